#include "live/socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <vector>

#include "core/base/error.h"

namespace syncline::live {
namespace {

[[noreturn]] void failed_call(const std::string& call) {
  throw MachineError(call + ": " + std::strerror(errno));
}

void set_option(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

sockaddr* general(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

std::string numeric(const sockaddr_in& address) {
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return text;
}

// Reads a numeric address into `place`. Returns false for other text.
bool read_place(const std::string& address, int port, sockaddr_in& place) {
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<std::uint16_t>(port));
  return inet_pton(AF_INET, address.c_str(), &place.sin_addr) == 1;
}

bool is_loopback(const sockaddr_in& address) {
  constexpr std::uint32_t kNetwork = 127;
  return ntohl(address.sin_addr.s_addr) >> 24U == kNetwork;
}

std::vector<sockaddr_in> resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (code != 0) throw MachineError("getaddrinfo " + host + ": " + gai_strerror(code));
  std::vector<sockaddr_in> found;
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    std::memcpy(&found.emplace_back(), a->ai_addr, sizeof(sockaddr_in));
  }
  freeaddrinfo(list);
  return found;
}

std::string end_of(int fd, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  if (ask(fd, general(address), &length) != 0) return "an unknown address";
  return numeric(address) + ":" + std::to_string(ntohs(address.sin_port));
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

Socket bind_socket(const std::string& address, int port) {
  Socket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) failed_call("socket");
  set_option(made.fd(), IPPROTO_TCP, TCP_NODELAY, 1);
  // Connections left over from an earlier run do not block the port.
  if (port != 0) set_option(made.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  sockaddr_in here{};
  if (!read_place(address, port, here) || bind(made.fd(), general(here), sizeof here) != 0) {
    failed_call("bind to " + address + ", port " + std::to_string(port));
  }
  return made;
}

Socket listen_on(const std::string& address, int port) {
  Socket listener = bind_socket(address, port);
  if (listen(listener.fd(), SOMAXCONN) != 0) failed_call("listen");
  return listener;
}

void stop_listening(const Socket& listener) {
  sock_filter nothing{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog filter{1, &nothing};
  setsockopt(listener.fd(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

Socket try_accept(const Socket& listener) {
  Socket caller(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (caller) set_option(caller.fd(), IPPROTO_TCP, TCP_NODELAY, 1);
  return caller;
}

bool begin_call(const Socket& socket, const std::string& end) {
  sockaddr_in there{};
  return read_place(parse_address(end), parse_port(end), there) &&
         (connect(socket.fd(), general(there), sizeof there) == 0 || errno == EINPROGRESS);
}

std::string own_end(int fd) { return end_of(fd, getsockname); }

std::string other_end(int fd) { return end_of(fd, getpeername); }

std::string parse_address(const std::string& end) { return end.substr(0, end.rfind(':')); }

int parse_port(const std::string& end) {
  constexpr int kMaxPort = 65535;
  const std::size_t colon = end.rfind(':');
  if (colon == std::string::npos) return 0;
  int port = 0;
  const char* last = end.data() + end.size();
  const auto read = std::from_chars(end.data() + colon + 1, last, port);
  return read.ec == std::errc() && read.ptr == last && port > 0 && port <= kMaxPort ? port : 0;
}

std::string numeric_address(const std::string& host) { return numeric(resolve(host).front()); }

std::string reachable_address(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return kLoopback;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    const bool up = (i->ifa_flags & IFF_UP) != 0;
    if (i->ifa_addr == nullptr || !up || i->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{};
    std::memcpy(&address, i->ifa_addr, sizeof address);
    const bool chosen = !interface.empty() && std::string(i->ifa_name).starts_with(interface);
    if (chosen || (interface.empty() && !is_loopback(address))) return numeric(address);
  }
  return interface.empty() ? kLoopback : reachable_address();
}

std::string listen_address(const std::string& host, bool all_here) {
  for (sockaddr_in& found : resolve(host)) {
    const std::string address = numeric(found);
    const Socket trial(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(trial.fd(), general(found), sizeof found) != 0) continue;
    const bool named_so = host == address || host == "localhost";
    if (!is_loopback(found) || named_so || all_here) return address;
  }
  return kEveryAddress;
}

}  // namespace syncline::live
