#include "live/socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "core/error.h"

namespace syncline::live {
namespace {

[[noreturn]] void fail(const std::string& call) {
  throw MachineError(call + ": " + std::strerror(errno));
}

std::string numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = {};
  if (getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  // An IPv4 caller of an IPv6 socket.
  const std::string found = text;
  constexpr const char* kMapped = "::ffff:";
  return found.rfind(kMapped, 0) == 0 ? found.substr(std::strlen(kMapped)) : found;
}

void set_no_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int milliseconds_to(LiveClock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - LiveClock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 1000));
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0) throw MachineError("getaddrinfo " + host + ": " + gai_strerror(code));
  return {list, freeaddrinfo};
}

// While nobody listens on a port that the system also gives to callers, a call may be given that
// very port and reach itself.
bool is_itself(const Socket& call) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t here_length = sizeof here;
  socklen_t there_length = sizeof there;
  getsockname(call.fd(), reinterpret_cast<sockaddr*>(&here), &here_length);
  getpeername(call.fd(), reinterpret_cast<sockaddr*>(&there), &there_length);
  return here_length == there_length && std::memcmp(&here, &there, here_length) == 0;
}

// One attempt at each address.
Socket call_once(const Addresses& addresses, LiveClock::time_point deadline) {
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    Socket call(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!call) continue;
    if (connect(call.fd(), a->ai_addr, a->ai_addrlen) != 0) {
      if (errno != EINPROGRESS) continue;
      pollfd waiting{call.fd(), POLLOUT, 0};
      if (poll(&waiting, 1, std::max(1, milliseconds_to(deadline))) <= 0) continue;
      int error = 0;
      socklen_t length = sizeof error;
      getsockopt(call.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
      if (error != 0) continue;
    }
    if (is_itself(call)) continue;
    set_no_delay(call.fd());
    return call;
  }
  return {};
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family != AF_INET) return true;
  sockaddr_in in{};
  std::memcpy(&in, address, sizeof in);
  constexpr std::uint32_t kNetwork = 127;
  return ntohl(in.sin_addr.s_addr) >> 24U == kNetwork;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Socket listen_on(const std::string& address, int port) {
  Socket listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) fail("socket");
  const int on = 1;
  setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &here.sin_addr) != 1) {
    throw MachineError("cannot listen on '" + address + "': not an IPv4 address");
  }
  if (bind(listener.fd(), reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0) {
    fail("bind to " + address + ", port " + std::to_string(port));
  }
  if (listen(listener.fd(), SOMAXCONN) != 0) fail("listen");
  return listener;
}

void stop_listening(const Socket& listener) {
  shutdown(listener.fd(), SHUT_RD);
  // A socket that may share its port does so with any that does not listen.
  const int off = 0;
  setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &off, sizeof off);
}

int port_of(const Socket& socket) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

Socket accept_now(const Socket& listener, bool& exhausted) {
  Socket caller(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  exhausted = !caller && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS);
  if (caller) set_no_delay(caller.fd());
  return caller;
}

Socket connect_once(const std::string& host, int port, LiveClock::time_point deadline) {
  return call_once(resolve(host, port), deadline);
}

Socket connect_by(const std::string& host, int port, LiveClock::time_point deadline) {
  const Addresses addresses = resolve(host, port);
  for (;;) {
    if (Socket call = call_once(addresses, deadline)) return call;
    if (LiveClock::now() >= deadline) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::string own_address(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &length);
  return numeric(reinterpret_cast<const sockaddr*>(&address), length);
}

std::string other_end(const Socket& socket) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  if (getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return "an unknown address";
  }
  return numeric(reinterpret_cast<const sockaddr*>(&address), length) + ":" +
         std::to_string(ntohs(address.sin_port));
}

std::string reachable_address(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return kLoopback;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    const bool up = (i->ifa_flags & IFF_UP) != 0;
    if (i->ifa_addr == nullptr || !up || i->ifa_addr->sa_family != AF_INET) continue;
    const bool chosen = !interface.empty() && std::string(i->ifa_name).starts_with(interface);
    if (chosen || (interface.empty() && !is_loopback(i->ifa_addr))) {
      return numeric(i->ifa_addr, sizeof(sockaddr_in));
    }
  }
  return interface.empty() ? kLoopback : reachable_address();
}

std::string address_to_listen_on(const std::string& host, bool all_here) {
  const Addresses addresses = resolve(host, 0);
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    if (a->ai_family != AF_INET) continue;
    const std::string address = numeric(a->ai_addr, a->ai_addrlen);
    const Socket trial(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(trial.fd(), a->ai_addr, a->ai_addrlen) != 0) continue;
    const bool named_so = host == address || host == "localhost";
    if (!is_loopback(a->ai_addr) || named_so || all_here) return address;
  }
  return kEveryAddress;
}

bool send_some(const Socket& socket, const std::string& bytes, std::size_t& sent) {
  while (sent < bytes.size()) {
    const auto n =
        send(socket.fd(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
  }
  return true;
}

bool all_arrived(const Socket& socket) {
  int left = 0;
  return ioctl(socket.fd(), SIOCOUTQ, &left) != 0 || left == 0;
}

}  // namespace syncline::live
