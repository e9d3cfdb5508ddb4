#include "live/rights.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "core/error.h"

namespace syncline::live {
namespace {

[[noreturn]] void refused(const std::string& call) {
  throw MachineError("giving up rights: " + call + ": " + std::strerror(errno));
}

// Files as their owner root would, real-time priority, pinned memory.
constexpr int kKept[] = {CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER,
                         CAP_FSETID, CAP_IPC_LOCK,     CAP_SYS_NICE};

std::optional<unsigned> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  unsigned value = 0;
  if (text == nullptr) return std::nullopt;
  const char* end = text + std::strlen(text);
  const auto read = std::from_chars(text, end, value);
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

// Who called sudo.
struct Caller {
  uid_t user;
  gid_t group;
};

std::optional<Caller> caller() {
  const auto user = number_in("SUDO_UID");
  const auto group = number_in("SUDO_GID");
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

}  // namespace

void drop_rights() {
  std::uint64_t kept = 0;
  const auto who = caller();
  if (!who) {
    for (const int right : kKept) kept |= std::uint64_t{1} << static_cast<unsigned>(right);
  }
  // What exec may give to anybody from now on: fewer where this process has not all to give.
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
