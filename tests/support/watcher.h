// A stranger on this machine who calls every port on which this process begins to listen, as soon
// as it does, says something that means nothing, and holds on.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
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
      constexpr int kMax = 512;
      for (int fd = 0; fd < kMax && !done_; ++fd) look_at(fd);
    }
  }

  void look_at(int fd) {
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) return;
    struct stat socket {};
    if (::fstat(fd, &socket) != 0) return;
    if (!called_.insert(socket.st_ino).second) return;
    const std::string end = live::own_end(fd);
    call(end.starts_with(live::kEveryAddress) ? live::kLoopback + end.substr(end.rfind(':')) : end);
  }

  void call(const std::string& end) {
    live::Socket socket = live::bind_socket(live::kEveryAddress, 0);
    if (!live::begin_call(socket, end)) return;
    pollfd connected{socket.fd(), POLLOUT, 0};
    ::poll(&connected, 1, 100);
    const std::string nothing(48, '\1');
    if (::send(socket.fd(), nothing.data(), nothing.size(), MSG_NOSIGNAL) < 0) return;
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
