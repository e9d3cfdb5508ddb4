#include "live/lab.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <mntent.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/error.h"

namespace syncline::live {
namespace {

[[noreturn]] void refused(const std::string& call) {
  throw MachineError("giving up rights: " + call + ": " + std::strerror(errno));
}

// Rights over all files as root has them, real-time priority, pinned memory.
constexpr int kKept[] = {CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER,
                         CAP_FSETID, CAP_IPC_LOCK,     CAP_SYS_NICE};

std::optional<unsigned> parse_number(const char* variable) {
  const char* text = std::getenv(variable);
  unsigned value = 0;
  if (text == nullptr) return std::nullopt;
  const char* end = text + std::strlen(text);
  const auto read = std::from_chars(text, end, value);
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

// The user who called sudo.
struct Caller {
  uid_t user;
  gid_t group;
};

std::optional<Caller> caller() {
  const auto user = parse_number("SUDO_UID");
  const auto group = parse_number("SUDO_GID");
  if (geteuid() != 0 || !user || !group || *user == 0) return std::nullopt;
  return Caller{*user, *group};
}

void become(const Caller& who) {
  const passwd* entry = getpwuid(who.user);
  const bool grouped =
      entry != nullptr ? initgroups(entry->pw_name, who.group) == 0 : setgroups(1, &who.group) == 0;
  if (!grouped) refused("setgroups");
  if (setresgid(who.group, who.group, who.group) != 0) refused("setresgid");
  if (setresuid(who.user, who.user, who.user) != 0) refused("setresuid");
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // becoming another user has cleared it
}

namespace fs = std::filesystem;

struct Mount {
  std::string place;
  std::string kind;
};

std::vector<Mount> mounts() {
  std::vector<Mount> all;
  FILE* table = setmntent("/proc/self/mounts", "r");
  if (table == nullptr) refused("/proc/self/mounts");
  while (const mntent* entry = getmntent(table)) all.push_back({entry->mnt_dir, entry->mnt_type});
  endmntent(table);
  return all;
}

void remount_to_be_read(const std::string& place, unsigned long more = 0) {
  struct statvfs now {};
  // A mount that another one covers is out of reach already.
  if (statvfs(place.c_str(), &now) != 0) return;
  const unsigned long kept = (now.f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)) | more;
  if (mount(nullptr, place.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | kept, nullptr)) {
    refused(place);
  }
}

void only_to_be_read(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) return;
  if (mount(path.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) refused(path);
  for (const auto& [place, kind] : mounts()) {
    if (place == path || place.starts_with(path + "/")) remount_to_be_read(place);
  }
}

// Makes further mounts of the kernel's files read-only, such as those in a folder with a system.
void cover_copies() {
  constexpr const char* kKinds[] = {"proc",    "sysfs",      "cgroup",    "cgroup2", "devtmpfs",
                                    "debugfs", "securityfs", "configfs",  "tracefs", "bpf",
                                    "pstore",  "efivarfs",   "selinuxfs", "fusectl", "binfmt_misc"};
  for (const auto& [place, kind] : mounts()) {
    const bool own = place == "/proc" || place == "/dev" || place.starts_with("/dev/");
    if (own || std::ranges::find(kKinds, kind) == std::end(kKinds)) continue;
    // Devices can be written to even in read-only folders.
    remount_to_be_read(place, MS_NODEV);
  }
}

// Forbids user namespaces: one gives all rights inside it, including mounts of the kernel's files.
// clone3's arguments are in memory, out of a filter's reach: the C library falls back to clone.
void forbid_user_namespaces() {
  const std::unique_ptr<void, decltype(&seccomp_release)> filter(seccomp_init(SCMP_ACT_ALLOW),
                                                                 &seccomp_release);
  if (filter == nullptr) throw MachineError("giving up rights: no seccomp filter");
  const auto expect = [](int result, const char* call) {
    errno = -result;
    if (result < 0) refused(call);
  };
#ifdef __x86_64__  // the kernel's other two interfaces
  expect(seccomp_arch_add(filter.get(), SCMP_ARCH_X86), "seccomp_arch_add");
  expect(seccomp_arch_add(filter.get(), SCMP_ARCH_X32), "seccomp_arch_add");
#endif
  const scmp_arg_cmp asked =
      SCMP_A0(SCMP_CMP_MASKED_EQ, static_cast<scmp_datum_t>(CLONE_NEWUSER), CLONE_NEWUSER);
  const auto refuse = [&](int call, int reason) {
    expect(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(reason), call, 0), "seccomp_rule_add");
  };
  for (const int call : {SCMP_SYS(unshare), SCMP_SYS(clone)}) {
    expect(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), call, 1, asked),
           "seccomp_rule_add");
  }
  refuse(SCMP_SYS(clone3), ENOSYS);
  refuse(SCMP_SYS(setns), EPERM);
  // This process still has the right to load one; programs of other users keep theirs.
  expect(seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_NNP, 0), "seccomp_attr_set");
  expect(seccomp_load(filter.get()), "seccomp_load");
}

// Returns true for devices that a job may need.
bool is_harmless_device(const std::string& name) {
  constexpr const char* kNames[] = {
      "null",   "zero", "full",  "random", "urandom", "tty",       "ptmx",       "pts", "shm",
      "mqueue", "fd",   "stdin", "stdout", "stderr",  "hugepages", "infiniband", "dri", "kfd"};
  return name.starts_with("nvidia") ||
         std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const char* known) { return name == known; });
}

// A device file of the old /dev, to be placed in a new one.
struct DeviceFile {
  fs::path path;
  fs::path link;  // its target, if it is a link
  int file = -1;
};

void place_again(const DeviceFile& device) {
  std::error_code error;
  if (device.file < 0) return fs::create_symlink(device.link, device.path, error);
  struct stat status {};
  if (fstat(device.file, &status) != 0) refused(device.path);
  const bool made = S_ISDIR(status.st_mode) ? mkdir(device.path.c_str(), 0755) == 0
                                            : mknod(device.path.c_str(), S_IFREG | 0644, 0) == 0;
  const std::string was = "/proc/self/fd/" + std::to_string(device.file);
  if (!made || mount(was.c_str(), device.path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    refused(device.path);
  }
  close(device.file);
}

void own_devices() {
  std::vector<DeviceFile> devices;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/dev", error)) {
    if (!is_harmless_device(entry.path().filename().string())) continue;
    DeviceFile device{entry.path(), fs::read_symlink(entry.path(), error)};
    if (device.link.empty()) device.file = open(device.path.c_str(), O_PATH | O_CLOEXEC);
    devices.push_back(device);
  }
  constexpr unsigned long kHow = MS_NOSUID | MS_NOEXEC;
  if (mount("tmpfs", "/dev", "tmpfs", kHow, "mode=755,size=64k") != 0) refused("mounting /dev");
  for (const DeviceFile& device : devices) place_again(device);
  if (mount(nullptr, "/dev", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | kHow, nullptr) != 0) {
    refused("/dev");
  }
}

}  // namespace

void cover_machine() {
  own_devices();
  for (const char* path : {"/sys", "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus",
                           "/proc/fs", "/proc/acpi", "/proc/scsi", "/proc/driver", "/proc/mtrr"}) {
    only_to_be_read(path);
  }
  cover_copies();
  forbid_user_namespaces();
}

void drop_rights() {
  std::uint64_t kept = 0;
  const auto who = caller();
  if (!who) {
    for (const int right : kKept) kept |= std::uint64_t{1} << static_cast<unsigned>(right);
  }
  // Limits the rights that exec may give from now on; some may be missing already.
  for (int right = 0; prctl(PR_CAPBSET_READ, right, 0, 0, 0) >= 0; ++right) {
    const bool keep = (kept >> static_cast<unsigned>(right) & 1U) != 0;
    if (!keep && prctl(PR_CAPBSET_DROP, right, 0, 0, 0) != 0 && errno != EPERM) {
      refused("PR_CAPBSET_DROP");
    }
  }
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (who) become(*who);
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct own[2]{};
  if (syscall(SYS_capget, &head, own) != 0) refused("capget");
  for (unsigned i = 0; i < 2; ++i) {
    const auto word = static_cast<std::uint32_t>(kept >> (32U * i));
    own[i].effective &= word;
    own[i].permitted &= word;
    own[i].inheritable = 0;
  }
  if (syscall(SYS_capset, &head, own) != 0) refused("capset");
}

std::map<std::string, std::string> environment_of_user() {
  const auto who = caller();
  const passwd* entry = who ? getpwuid(who->user) : nullptr;
  if (entry == nullptr) return {};
  return {{"HOME", entry->pw_dir}, {"USER", entry->pw_name}, {"LOGNAME", entry->pw_name}};
}

std::string system_program(const std::string& name) {
  for (const char* folder : {"/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/"}) {
    const std::string file = folder + name;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  throw MachineError(name + ": not in /usr/sbin, /sbin, /usr/bin or /bin");
}

}  // namespace syncline::live
