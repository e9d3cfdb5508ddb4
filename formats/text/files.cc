#include "formats/text/files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "formats/text/visible.h"

namespace syncline {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenTries{10};

// Closed with its owner.
class OpenFile {
 public:
  explicit OpenFile(int number) : number_(number) {}
  ~OpenFile() { close(); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  // Closes the file. Some file systems tell only now that nothing was written.
  bool close() {
    const int number = number_;
    number_ = -1;
    return number < 0 || ::close(number) == 0;
  }

 private:
  int number_;
};

[[noreturn]] void failed(const std::string& path, int reason) {
  throw MachineError(path + ": " + std::strerror(reason));
}

void wait_in_calls(int file) { ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) & ~O_NONBLOCK); }

// Files by device and number, as several names may lead to one.
class FilesRead {
 public:
  using Id = std::pair<dev_t, ino_t>;
  static FilesRead& all() {
    static FilesRead files;
    return files;
  }

  void add(const struct stat& status) {
    if (!S_ISREG(status.st_mode)) return;
    const std::lock_guard lock(mutex_);
    known_.insert({status.st_dev, status.st_ino});
  }
  void remove(const struct stat& status) {
    const std::lock_guard lock(mutex_);
    known_.erase({status.st_dev, status.st_ino});
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    known_.clear();
  }
  bool contains(const struct stat& status) {
    const std::lock_guard lock(mutex_);
    return known_.contains({status.st_dev, status.st_ino});
  }

 private:
  std::mutex mutex_;
  std::set<Id> known_;
};

// Reading ------------------------------------------------------------------------------------

// Returns the first bytes of a pipe, or nullopt if no writer opens it within `wait_limit`. A pipe
// without a writer looks like an empty one; a writer may take any time.
std::optional<std::string> first_of_pipe(int pipe, std::chrono::milliseconds wait_limit) {
  char block[1 << 12];
  bool opened = false;
  for (const auto until = Clock::now() + wait_limit;;) {
    const ssize_t got = ::read(pipe, block, sizeof block);
    if (got > 0 || (got == 0 && opened)) return std::string(block, static_cast<std::size_t>(got));
    if (got == 0) {
      if (Clock::now() >= until) return std::nullopt;
      std::this_thread::sleep_for(kBetweenTries);
    } else if (errno == EAGAIN) {
      opened = true;
      wait_in_calls(pipe);
    } else if (errno != EINTR) {
      return std::nullopt;
    }
  }
}

// Returns true for what may be waited for: a pipe, a terminal. The kernel has files and devices
// that wait for input for ever (/proc/kmsg, /dev/kmsg).
bool has_writer(int file) {
  struct stat status {};
  const bool known = ::fstat(file, &status) == 0;
  return known && !S_ISREG(status.st_mode) && (!S_ISCHR(status.st_mode) || ::isatty(file) == 1);
}

[[noreturn]] void fail_endless(const std::string& name) {
  throw InputError(name + ": has no end: it waits for what the kernel will say");
}

// Appends the rest of a file. A pipe or a device has no size beforehand: at most `most` is read.
void read_to_end(int file, const std::string& name, long long most, std::string& text) {
  const bool waits = has_writer(file);
  if (waits) wait_in_calls(file);
  char block[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && !waits && errno == EAGAIN) fail_endless(name);
    if (got < 0) throw InputError(name + ": cannot be read: " + std::strerror(errno));
    if (got == 0) return;
    text.append(block, static_cast<std::size_t>(got));
    if (static_cast<long long>(text.size()) > most) {
      throw InputError(name + ": more than " + std::to_string(most >> 20) + " MiB");
    }
  }
}

// Writing ------------------------------------------------------------------------------------

// Destination of a path.
struct Target {
  std::string path;                  // no link
  std::optional<int> descriptor;     // of this process, that the path names
  std::optional<struct stat> known;  // status of the file there
};

std::optional<int> descriptor_named(const std::string& path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = -1;
    const char* end = path.data() + path.size();
    const auto read = std::from_chars(path.data() + folder.size(), end, number);
    if (read.ec == std::errc() && read.ptr == end && number >= 0) return number;
  }
  return std::nullopt;
}

// Follows a path link by link, as one on the way may name a descriptor.
Target target_of(const std::string& path) {
  constexpr int kMaxLinks = 40;
  if (path.empty()) failed(path, ENOENT);
  if (path.find('\0') != std::string::npos) failed(shorten_text(path), EINVAL);
  Target target{path, {}, {}};
  for (int links = 0;; ++links) {
    if (links > kMaxLinks) failed(path, ELOOP);
    target.descriptor = descriptor_named(target.path);
    std::error_code no_link;
    const fs::path next = fs::read_symlink(target.path, no_link);
    if (target.descriptor || no_link) break;
    target.path = (fs::path(target.path).parent_path() / next).string();
  }
  struct stat status {};
  if (target.descriptor) {
    if (::fcntl(*target.descriptor, F_GETFL) < 0) failed(path, errno);
  } else if (::stat(target.path.c_str(), &status) == 0) {
    target.known = status;
  }
  return target;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

void write_all(int file, const std::string& content, const std::string& path) {
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t wrote = ::write(file, content.data() + done, content.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) failed(path, wrote < 0 ? errno : EIO);
    done += static_cast<std::size_t>(wrote);
  }
}

// Opens the target; a pipe without a reader cannot be opened yet.
int open_into(const Target& target, std::chrono::milliseconds wait_limit) {
  for (const auto until = Clock::now() + wait_limit;;) {
    const int file =
        ::open(target.path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    if (file >= 0) wait_in_calls(file);
    if (file >= 0 || errno != ENXIO || !S_ISFIFO(target.known->st_mode)) return file;
    if (Clock::now() >= until) throw MachineError(target.path + ": nobody reads this pipe");
    std::this_thread::sleep_for(kBetweenTries);
  }
}

void write_into(const Target& target, const std::string& content, const std::string& path,
                std::chrono::milliseconds wait_limit) {
  if (target.descriptor) {
    // Earlier output comes first.
    std::cout.flush();
    std::cerr.flush();
    write_all(*target.descriptor, content, path);
    return;
  }
  OpenFile file(open_into(target, wait_limit));
  if (!file) failed(path, errno);
  write_all(file.number(), content, path);
  if (!file.close()) failed(path, errno);
}

// A new file in the folder of another, under a name that cannot be prepared by others.
class Beside {
 public:
  Beside(const std::string& path, mode_t mode) {
    do {
      constexpr char kDigits[] = "0123456789abcdef";
      std::random_device random;
      name_ = folder_of(path) + ".partial-";
      for (int digit = 0; digit < 16; ++digit) name_ += kDigits[random() % 16];
      number_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    } while (number_ < 0 && errno == EEXIST);
  }
  ~Beside() {
    if (number_ >= 0 && !kept_) ::unlink(name_.c_str());
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  int number() const { return number_; }
  bool rename_to(const std::string& path) {
    kept_ = ::rename(name_.c_str(), path.c_str()) == 0;
    return kept_;
  }

 private:
  std::string name_;
  int number_ = -1;
  bool kept_ = false;
};

void replace(const Target& target, const std::string& content, const std::string& path) {
  constexpr mode_t kOwnerAlone = 0600;
  constexpr mode_t kAll = 0666;
  constexpr mode_t kPermissions = 0777;
  Beside beside(target.path, target.known ? kOwnerAlone : kAll);
  if (beside.number() < 0) failed(path, errno);
  OpenFile file(beside.number());
  if (target.known) {
    // Only root may give a file away; whoever may write it keeps the rest.
    [[maybe_unused]] const int given =
        ::fchown(file.number(), target.known->st_uid, target.known->st_gid);
    ::fchmod(file.number(), target.known->st_mode & kPermissions);
  }
  write_all(file.number(), content, path);
  if (!file.close()) failed(path, errno);
  if (!beside.rename_to(target.path)) failed(path, errno);
}

bool is_replaced(const Target& target) {
  return !target.descriptor && (!target.known || S_ISREG(target.known->st_mode));
}

void expect_writable(const Target& target, const std::string& path) {
  if (!target.descriptor && target.known && FilesRead::all().contains(*target.known)) {
    throw InputError(path + ": was read, and would be replaced: name another file to write");
  }
  if (target.descriptor) {
    if ((::fcntl(*target.descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY) failed(path, EBADF);
    return;
  }
  const auto allowed = [](const std::string& place, int what) {
    return ::faccessat(AT_FDCWD, place.c_str(), what, AT_EACCESS) == 0;
  };
  if (target.known && S_ISDIR(target.known->st_mode)) failed(path, EISDIR);
  if (target.known && S_ISBLK(target.known->st_mode)) throw MachineError(path + ": is a disk");
  if (target.known && !allowed(target.path, W_OK)) failed(path, errno);
  const std::string folder = folder_of(target.path);
  if (is_replaced(target) && !allowed(folder, W_OK | X_OK)) {
    if (errno == ENOENT) throw InputError(path + ": no such folder");
    failed(path, errno);
  }
}

}  // namespace

int open_to_read(const std::string& path, std::string_view kind) {
  if (path.find('\0') != std::string::npos) {
    throw InputError(shorten_text(path) + ": no such file: a name has no NUL");
  }
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error == std::errc::too_many_symbolic_link_levels) {
    throw InputError(path + ": a link that leads back to itself");
  }
  if (!fs::exists(status)) throw InputError(path + ": no such file");
  if (fs::is_directory(status)) {
    throw InputError(path + ": is a folder, expected " + std::string(kind));
  }
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) throw InputError(path + ": cannot be opened for reading");
  struct stat opened {};
  if (::fstat(file, &opened) == 0) FilesRead::all().add(opened);
  struct pollfd now {
    file, POLLIN, 0
  };
  if (!has_writer(file) && ::poll(&now, 1, 0) == 0) {
    ::close(file);
    fail_endless(path);
  }
  return file;
}

std::string read_text_file(const std::string& path, std::string_view kind, long long most,
                           std::chrono::milliseconds wait_limit) {
  const OpenFile in(open_to_read(path, kind));
  struct stat status {};
  const bool known = ::fstat(in.number(), &status) == 0;
  if (known && S_ISREG(status.st_mode) && status.st_size > most) {
    throw InputError(path + ": " + std::to_string(status.st_size >> 20) +
                     " MiB, expected at most " + std::to_string(most >> 20) + " MiB");
  }
  std::string text;
  if (known && S_ISFIFO(status.st_mode)) {
    const auto first = first_of_pipe(in.number(), wait_limit);
    if (!first) throw InputError(path + ": a pipe into which nobody writes");
    text = *first;
  }
  read_to_end(in.number(), path, most, text);
  return text;
}

void note_read(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) FilesRead::all().add(status);
}

void may_be_replaced(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) FilesRead::all().remove(status);
}

void forget_what_was_read() { FilesRead::all().clear(); }

void expect_different(const std::vector<std::string>& paths) {
  std::map<std::string, std::string> seen;  // by destination
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    const Target target = target_of(path);
    if (!is_replaced(target)) continue;
    std::error_code unknown;
    const std::string place = fs::weakly_canonical(target.path, unknown).string();
    const auto [first, fresh] = seen.emplace(unknown ? target.path : place, path);
    if (fresh) continue;
    throw InputError(path + ": two outputs go there" +
                     (first->second == path ? "" : ", the other as " + first->second) +
                     ": name another file for one of them");
  }
}

std::string read_standard_input() {
  std::string text;
  read_to_end(STDIN_FILENO, "standard input", kLargestFile, text);
  return text;
}

void write_file(const std::string& path, const std::string& content,
                std::chrono::milliseconds wait_limit) {
  const Target target = target_of(path);
  expect_writable(target, path);
  if (is_replaced(target)) {
    replace(target, content, path);
  } else {
    write_into(target, content, path, wait_limit);
  }
}

void expect_writable(const std::string& path) { expect_writable(target_of(path), path); }

}  // namespace syncline
