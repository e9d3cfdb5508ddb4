#include "live/local_ranks.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.h"

namespace syncline::live {

std::vector<RankCommand> local_ranks(const std::vector<std::string>& command, int ranks,
                                     const std::string& file) {
  std::vector<RankCommand> list;
  for (int rank = 0; rank < ranks; ++rank) {
    RankCommand own;
    own.words = command;
    own.environment = {{"SYNCLINE_RANK", std::to_string(rank)},
                       {"SYNCLINE_RANKS", std::to_string(ranks)},
                       {"SYNCLINE_MEET", file}};
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
  words.front() = std::filesystem::read_symlink("/proc/self/exe").string();
  return words;
}

RendezvousFolder::RendezvousFolder() {
  std::error_code error;
  const auto temporary = std::filesystem::temp_directory_path(error);
  if (error) throw MachineError("TMPDIR: " + error.message());
  std::string name = (temporary / "syncline-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw MachineError(name + ": " + std::strerror(errno));
  folder_ = name;
}

RendezvousFolder::~RendezvousFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace syncline::live
