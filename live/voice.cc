// The time of the last line in nanoseconds of the monotonic clock, 8 bytes in memory that the
// processes of a job share; nothing there until someone speaks.
#include "live/voice.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace syncline {
namespace {

constexpr const char* kVariable = "SYNCLINE_VOICE";

std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// "descriptor inode": a program in between may have closed it and opened another of that number.
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

std::int64_t last_line(int fd) {
  std::int64_t time = 0;
  return ::pread(fd, &time, sizeof time, 0) == sizeof time ? time : 0;
}

}  // namespace

Voice::Voice() {
  fd_ = ::memfd_create("syncline-voice", 0);  // without it, launchers say more than they must
  const std::string name = name_of(fd_);
  if (!name.empty()) ::setenv(kVariable, name.c_str(), 1);
}

Voice::~Voice() {
  if (fd_ < 0) return;
  ::unsetenv(kVariable);
  ::close(fd_);
}

bool Voice::used() const { return last_line(fd_) != 0; }

void note_line() {
  const std::int64_t time = now();
  const int fd = inherited();
  if (fd >= 0) [[maybe_unused]]
    const auto n = ::pwrite(fd, &time, sizeof time, 0);
}

bool line_within(std::chrono::milliseconds time) {
  const std::int64_t last = last_line(inherited());
  return last != 0 && now() - last < std::chrono::nanoseconds(time).count();
}

}  // namespace syncline
