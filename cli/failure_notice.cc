#include "cli/failure_notice.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace syncline::cli {
namespace {

// A notice is the time of the last printed failure, in nanoseconds of the monotonic clock: 8 bytes
// in memory that the processes of a job share, empty until one of them prints a failure.
constexpr const char* kVariable = "SYNCLINE_FAILURE_NOTICE";

std::int64_t ticks() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// Returns "descriptor inode": a program in between may have closed the descriptor and opened
// another file under the same number.
std::string name_of(int fd) {
  struct stat file {};
  if (fd < 0 || ::fstat(fd, &file) != 0) return "";
  return std::to_string(fd) + " " + std::to_string(file.st_ino);
}

int inherited() {
  const char* name = std::getenv(kVariable);
  if (name == nullptr) return -1;
  const int fd = std::atoi(name);
  return name_of(fd) == name ? fd : -1;
}

std::int64_t last_printed(int fd) {
  std::int64_t time = 0;
  return ::pread(fd, &time, sizeof time, 0) == sizeof time ? time : 0;
}

}  // namespace

FailureNotice::FailureNotice() {
  fd_ =
      ::memfd_create("syncline-failure-notice", 0);  // without it launchers print the failure again
  const std::string name = name_of(fd_);
  if (!name.empty()) ::setenv(kVariable, name.c_str(), 1);
}

FailureNotice::~FailureNotice() {
  if (fd_ < 0) return;
  ::unsetenv(kVariable);
  ::close(fd_);
}

bool FailureNotice::has_failure() const { return last_printed(fd_) != 0; }

void note_failure_printed() {
  const std::int64_t time = ticks();
  const int fd = inherited();
  if (fd >= 0) [[maybe_unused]]
    const auto n = ::pwrite(fd, &time, sizeof time, 0);
}

bool failure_printed_within(std::chrono::milliseconds time) {
  const std::int64_t last = last_printed(inherited());
  return last != 0 && ticks() - last < std::chrono::nanoseconds(time).count();
}

}  // namespace syncline::cli
