#include "live/local_ranks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "live/messenger.h"
#include "live/rendezvous.h"

namespace syncline::live {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "syncline-meet-";

// The folder, if nobody else holds it.
Socket locked(const std::string& folder) {
  Socket lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (lock && flock(lock.fd(), LOCK_EX | LOCK_NB) != 0) lock = Socket();
  return lock;
}

// The prefix and what mkdtemp and mkostemp put behind it.
bool is_made_name(const std::string& name, std::string_view prefix) {
  constexpr std::size_t kMade = 6;
  return name.size() == prefix.size() + kMade && name.starts_with(prefix) &&
         std::all_of(name.end() - kMade, name.end(),
                     [](unsigned char letter) { return std::isalnum(letter) != 0; });
}

// What ranks meet in, by name and content.
bool is_meeting(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  std::error_code error;
  return name == "meet" && fs::is_regular_file(entry.symlink_status(error)) &&
         is_meeting_file(entry.path().string());
}

// A folder that holds nothing else, with what it holds. A destructor calls this: it does not throw.
void remove_meeting(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!is_meeting(*entry)) return;
    files.push_back(entry->path());
  }
  if (error) return;
  for (const auto& file : files) fs::remove(file, error);
  rmdir(folder.c_str());
}

// Of a launcher that was killed, and no user's folder that is only named alike.
void remove_left_one(const fs::path& folder) {
  constexpr mode_t kOwnerAlone = 0700;
  constexpr mode_t kPermissions = 07777;
  const Socket lock = locked(folder.string());
  struct stat status {};
  if (!lock || fstat(lock.fd(), &status) != 0) return;
  const bool ours = status.st_uid == geteuid() && (status.st_mode & kPermissions) == kOwnerAlone;
  if (ours) remove_meeting(folder);
}

// A notice is the time of the last printed failure, in nanoseconds of the monotonic clock: 8
// bytes in memory that the processes of a job share, empty until one of them prints a failure.
constexpr const char* kVariable = "SYNCLINE_FAILURE_NOTICE";

std::int64_t ticks() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// "descriptor inode": a program in between may have closed the descriptor and opened another file
// under the same number.
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

std::vector<RankCommand> local_ranks(const std::vector<std::string>& command, int ranks,
                                     const std::string& file) {
  std::vector<RankCommand> list;
  const std::string token = new_token();
  for (int rank = 0; rank < ranks; ++rank) {
    RankCommand own;
    own.words = command;
    own.environment = {{"SYNCLINE_RANK", std::to_string(rank)},
                       {"SYNCLINE_RANKS", std::to_string(ranks)},
                       {"SYNCLINE_MEET", file},
                       {"SYNCLINE_TOKEN", token}};
    if (rank > 0) own.out = -1;
    list.push_back(std::move(own));
  }
  return list;
}

std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  std::string word;
  while (std::getline(file, word, '\0')) words.push_back(word);
  if (words.empty()) throw MachineError("/proc/self/cmdline: cannot be read");
  words.front() = fs::read_symlink("/proc/self/exe").string();
  return words;
}

RendezvousFolder::RendezvousFolder() {
  std::error_code error;
  const auto temporary = fs::temp_directory_path(error);
  if (error) throw MachineError("TMPDIR: " + error.message());
  for (const auto& entry : fs::directory_iterator(temporary, error)) {
    if (is_made_name(entry.path().filename().string(), kPrefix)) remove_left_one(entry.path());
  }
  // Between its making and its locking another launcher may take it for one that was left.
  while (!lock_ || !fs::exists(folder_)) {
    std::string name = (temporary / (std::string(kPrefix) + "XXXXXX")).string();
    if (mkdtemp(name.data()) == nullptr) throw MachineError(name + ": " + std::strerror(errno));
    folder_ = name;
    lock_ = locked(folder_);
    if (!lock_ && fs::exists(folder_)) break;  // where there are no locks, it goes without
  }
}

RendezvousFolder::~RendezvousFolder() { remove_meeting(folder_); }

FailureNotice::FailureNotice() {
  fd_ =
      ::memfd_create("syncline-failure-notice", 0);  // without it launchers repeat what was printed
  const std::string name = name_of(fd_);
  if (!name.empty()) ::setenv(kVariable, name.c_str(), 1);
}

FailureNotice::~FailureNotice() {
  if (fd_ < 0) return;
  ::unsetenv(kVariable);
  ::close(fd_);
}

bool FailureNotice::given() const { return last_printed(fd_) != 0; }

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

}  // namespace syncline::live
