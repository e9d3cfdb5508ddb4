// A stranger on this machine who calls every port on which this process begins to listen, as soon
// as it does, says something that means nothing, and holds on.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <set>
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
  // Which of this process's descriptors listen: asked one by one, since the kernel's table of all
  // connections takes longer to read than a port is open where many have ended lately.
  void watch() {
    while (!done_) {
      constexpr int kMost = 512;
      for (int fd = 0; fd < kMost && !done_; ++fd) look_at(fd);
    }
  }

  void look_at(int fd) {
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) return;
    sockaddr_in own{};
    size = sizeof own;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) return;
    struct stat socket {};
    if (::fstat(fd, &socket) != 0 || own.sin_family != AF_INET) return;
    if (!called_.insert(socket.st_ino).second) return;
    const std::uint32_t address = ntohl(own.sin_addr.s_addr);
    std::string host;
    for (int byte = 3; byte >= 0; --byte) {
      host += std::to_string(address >> (8 * byte) & 255U) + (byte > 0 ? "." : "");
    }
    call(host == live::kEveryAddress ? live::kLoopback : host, ntohs(own.sin_port));
  }

  void call(const std::string& host, int port) {
    live::Socket socket = live::connect_once(host, port, live::LiveClock::now());
    if (!socket) return;
    std::size_t sent = 0;
    live::send_some(socket, std::string(48, '\1'), sent);
    held_.push_back(std::move(socket));
    ++calls_;
  }

  std::atomic<bool> done_ = false;
  std::atomic<int> calls_ = 0;
  std::set<ino_t> called_;  // sockets, each once
  std::vector<live::Socket> held_;
  std::thread thread_;
};

}  // namespace syncline::test
