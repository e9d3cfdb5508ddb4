#include "live/local_ranks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "live/seal.h"

namespace syncline::live {

namespace fs = std::filesystem;

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

namespace {

constexpr const char* kPrefix = "syncline-meet-";

// The folder, if nobody else holds it.
Socket locked(const std::string& folder) {
  Socket lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (lock && flock(lock.fd(), LOCK_EX | LOCK_NB) != 0) lock = Socket();
  return lock;
}

// Of a launcher that was killed: nothing but what ranks meet in is removed, and no folder that
// holds anything else.
void remove_left_one(const fs::path& folder) {
  const Socket lock = locked(folder.string());
  struct stat status {};
  if (!lock || fstat(lock.fd(), &status) != 0 || status.st_uid != geteuid()) return;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with("meet")) fs::remove(entry.path(), ignored);
  }
  rmdir(folder.c_str());
}

}  // namespace

RendezvousFolder::RendezvousFolder() {
  std::error_code error;
  const auto temporary = fs::temp_directory_path(error);
  if (error) throw MachineError("TMPDIR: " + error.message());
  for (const auto& entry : fs::directory_iterator(temporary, error)) {
    if (entry.path().filename().string().starts_with(kPrefix)) remove_left_one(entry.path());
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

RendezvousFolder::~RendezvousFolder() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace syncline::live
