// Descriptors, TCP sockets and the addresses of this machine, for ranks. IPv4.
#pragma once

#include <chrono>
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
  // Returns the descriptor, which its caller owns from now on.
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

inline constexpr const char* kLoopback = "127.0.0.1";
inline constexpr const char* kEveryAddress = "0.0.0.0";

// Returns a non-blocking socket at a numeric address of this machine. Port 0: a free one. Throws
// MachineError.
Socket bind_socket(const std::string& address, int port);
Socket listen_on(const std::string& address, int port);
// Stops listening; the port stays occupied, so that no other process can take its place.
void stop_listening(const Socket& listener);
// Returns the next caller, as a socket that does not block; an empty socket if none is there.
Socket try_accept(const Socket& listener);
// Begins to call an end; the socket can be written once it is connected. Returns false if no
// listener can be there.
bool begin_call(const Socket& socket, const std::string& end);

// Returns the numeric address and port of this or the other end: "10.0.0.3:4711".
std::string own_end(int fd);
std::string other_end(int fd);
// Returns the part before an end's colon, or the port after it; 0: no port.
std::string parse_address(const std::string& end);
int parse_port(const std::string& end);

// Returns the first numeric IPv4 address of a host. Throws MachineError if it has none.
std::string numeric_address(const std::string& host);
// Returns the numeric IPv4 address by which others most likely reach this machine: of the interface
// that `interface` names or begins with (GLOO_SOCKET_IFNAME), else of the first that is up, else
// the loopback.
std::string reachable_address(const std::string& interface = "");
// Returns the address to listen on as `host`: this machine's address of that name. Returns every
// address if the name has no address here (a service's name). Also if it means the loopback by
// another word (a machine's own name in /etc/hosts), unless `all_here`: others call from outside.
std::string listen_address(const std::string& host, bool all_here);

}  // namespace syncline::live
