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
  // The descriptor, which is its caller's from now on.
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

inline constexpr const char* kLoopback = "127.0.0.1";
inline constexpr const char* kEveryAddress = "0.0.0.0";

// Listens on one numeric address of this machine, or on every. Port 0: one that is free. Throws
// MachineError.
Socket listen_on(const std::string& address, int port);
// Nobody can call any more; the port stays taken, so that nobody takes another for this one.
void stop_listening(const Socket& listener);
int port_of(const Socket& socket);
// The next connection, as a socket that does not block; an empty socket if none is there, or
// `exhausted` where this process or the system has no descriptor for it.
Socket accept_now(const Socket& listener, bool& exhausted);
// One attempt, at each address of the host; an empty socket where nobody listens, or does not
// answer by `deadline`. Throws MachineError where the host's name cannot be resolved.
Socket connect_once(const std::string& host, int port, LiveClock::time_point deadline);
// Tries until `deadline`: the other side may not listen yet. An empty socket if it never does.
Socket connect_by(const std::string& host, int port, LiveClock::time_point deadline);

// The numeric address of this end.
std::string own_address(const Socket& socket);
// The numeric address and the port of the other end: "10.0.0.3:4711".
std::string other_end(const Socket& socket);

// The numeric IPv4 address by which others most likely reach this machine: of the interface that
// `interface` names or begins with (GLOO_SOCKET_IFNAME), else of the first that is up, else the
// loopback.
std::string reachable_address(const std::string& interface = "");
// Where to listen as `host`: the address of this machine that the name means here. Every address
// where it means none of this machine's (a service's name), or the loopback, by another word than
// that (a machine's own name in /etc/hosts), though not `all_here`: others call from outside.
std::string address_to_listen_on(const std::string& host, bool all_here);

// Sends what can be sent without waiting, from `bytes[sent]` on, and advances `sent`. False once
// the other side is gone.
bool send_some(const Socket& socket, const std::string& bytes, std::size_t& sent);
// Whether the other side's system has acknowledged all that was sent.
bool all_arrived(const Socket& socket);

}  // namespace syncline::live
