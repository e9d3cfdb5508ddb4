// A stranger on this machine who calls every port on which this process begins to listen, as soon
// as it does, says something that means nothing, and holds on.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "live/socket.h"

namespace syncline::test {

class Watcher {
 public:
  Watcher() : thread_([this] { watch(); }) {}
  ~Watcher() {
    done_ = true;
    thread_.join();
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  int calls() const { return calls_; }

 private:
  // The sockets of this process, by inode.
  static std::set<std::string> own_sockets() {
    std::set<std::string> inodes;
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", gone)) {
      const std::string name = std::filesystem::read_symlink(entry.path(), gone).string();
      if (name.starts_with("socket:[")) inodes.insert(name.substr(8, name.size() - 9));
    }
    return inodes;
  }

  void watch() {
    std::set<std::string> called;
    while (!done_) {
      const auto own = own_sockets();
      std::ifstream table("/proc/net/tcp");
      std::string line;
      std::getline(table, line);
      while (std::getline(table, line)) {
        std::istringstream words(line);
        std::string number, local, remote, state, queues, timer, retries, uid, probe, inode;
        words >> number >> local >> remote >> state >> queues >> timer >> retries >> uid >> probe >>
            inode;
        constexpr const char* kListens = "0A";
        if (state != kListens || own.count(inode) == 0 || !called.insert(inode).second) continue;
        call(local);
      }
    }
  }

  // "0100007F:A1B2"
  void call(const std::string& local) {
    const unsigned long address = std::stoul(local.substr(0, 8), nullptr, 16);
    std::string host;
    for (int i = 0; i < 4; ++i) {
      host += (i == 0 ? "" : ".") + std::to_string(address >> (8 * i) & 255U);
    }
    if (host == live::kEveryAddress) host = live::kLoopback;
    const int port = std::stoi(local.substr(9), nullptr, 16);
    live::Socket socket = live::connect_once(host, port, live::LiveClock::now());
    if (!socket) return;
    std::size_t sent = 0;
    live::send_some(socket, std::string(48, '\1'), sent);
    held_.push_back(std::move(socket));
    ++calls_;
  }

  std::atomic<bool> done_ = false;
  std::atomic<int> calls_ = 0;
  std::vector<live::Socket> held_;
  std::thread thread_;
};

}  // namespace syncline::test
