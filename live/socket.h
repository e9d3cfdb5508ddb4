// TCP sockets as the ranks' control channel needs them: accepting and making connections, each with
// a deadline. Listens on IPv4.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace syncline::live {

using LiveClock = std::chrono::steady_clock;

// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Listens on every address of this machine. Port 0: one that is free. Throws MachineError.
Socket listen_on(int port);
int port_of(const Socket& socket);
// The next connection, as a socket that does not block; an empty socket if none comes by
// `deadline`.
Socket accept_by(const Socket& listener, LiveClock::time_point deadline);
// Tries until `deadline`: the other side may not listen yet. An empty socket if it never does.
// Throws MachineError where the host's name cannot be resolved.
Socket connect_by(const std::string& host, int port, LiveClock::time_point deadline);

// Whether someone listens there, within a second.
bool answers(const std::string& host, int port);

// The numeric address of this end.
std::string own_address(const Socket& socket);

// The numeric address by which others most likely reach this machine: of its first interface that
// is up, else the loopback.
std::string reachable_address();

// Sends what can be sent without waiting, from `bytes[sent]` on, and advances `sent`. False once
// the other side is gone.
bool send_some(const Socket& socket, const std::string& bytes, std::size_t& sent);
// Whether the other side's system has acknowledged all that was sent.
bool all_arrived(const Socket& socket);

}  // namespace syncline::live
