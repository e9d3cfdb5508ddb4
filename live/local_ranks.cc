#include "live/local_ranks.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "live/messenger.h"
#include "live/socket.h"

namespace syncline::live {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::vector<RankCommand> local_ranks(const std::vector<std::string>& command, int ranks,
                                     const std::string& meet) {
  Socket listener = meet.empty() ? listen_on(kLoopback, 0) : Socket();
  const std::string port = meet.empty() ? std::to_string(parse_port(own_end(listener.fd()))) : "";
  const std::string token = new_token();
  std::vector<RankCommand> list;
  for (int rank = 0; rank < ranks; ++rank) {
    RankCommand own;
    own.words = command;
    own.environment = {{"SYNCLINE_RANK", std::to_string(rank)},
                       {"SYNCLINE_RANKS", std::to_string(ranks)},
                       {"SYNCLINE_PORT", port},
                       {"SYNCLINE_TOKEN", token}};
    if (rank > 0) own.out = -1;
    list.push_back(std::move(own));
  }
  list.front().environment["SYNCLINE_LISTENER"] = std::to_string(listener.fd());
  list.front().given = listener.release();
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

}  // namespace syncline::live
