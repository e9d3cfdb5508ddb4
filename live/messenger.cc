#include "live/messenger.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace syncline::live {
namespace {

constexpr std::size_t kHead = 1 + sizeof(std::uint64_t);

void require(bool done, const char* call) {
  if (!done) throw MachineError(std::string(call) + ": " + zmq_strerror(zmq_errno()));
}

// A curve25519 key pair.
struct Keys {
  std::string open = std::string(crypto_box_PUBLICKEYBYTES, '\0');
  std::string secret = std::string(crypto_box_SECRETKEYBYTES, '\0');
};

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

// Returns rank 0's keys, which follow from the token.
Keys keys_of_first(const std::string& token) {
  const std::string seed = "syncline: rank 0 of a run: " + token;
  std::string hash(crypto_box_SEEDBYTES, '\0');
  crypto_generichash(bytes_of(hash), hash.size(),
                     reinterpret_cast<const unsigned char*>(seed.data()), seed.size(), nullptr, 0);
  Keys keys;
  crypto_box_seed_keypair(bytes_of(keys.open), bytes_of(keys.secret), bytes_of(hash));
  return keys;
}

// Throws if descriptors are short: ZeroMQ ends the process if it lacks one for its own use.
void expect_descriptors() {
  constexpr int kNeeded = 16;
  std::vector<Socket> free;
  for (int i = 0; i < kNeeded; ++i) {
    free.emplace_back(eventfd(0, EFD_CLOEXEC));
    if (!free.back()) throw MachineError("eventfd: " + std::string(std::strerror(errno)));
  }
}

// Raises the soft limit of open files: silent peers keep a descriptor until kProof.
void allow_descriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Starts as many threads as ZeroMQ will. Throws MachineError if the machine gives none: ZeroMQ
// would abort the process.
void expect_threads() {
  try {
    const auto until_asked = [](const std::stop_token& end) {
      while (!end.stop_requested()) std::this_thread::yield();
    };
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) threads.emplace_back(until_asked);
  } catch (const std::system_error& error) {
    throw MachineError(std::string("no thread for the connections of the ranks: ") +
                       error.code().message() + "; see ulimit -v and ulimit -u");
  }
}

// Returns one part of a message, if one has come. `more`: further parts belong to it.
std::optional<std::string> next_part(void* socket, bool& more, int* fd = nullptr) {
  zmq_msg_t message;
  zmq_msg_init(&message);
  std::optional<std::string> text;
  if (zmq_msg_recv(&message, socket, ZMQ_DONTWAIT) >= 0) {
    text.emplace(static_cast<const char*>(zmq_msg_data(&message)), zmq_msg_size(&message));
    if (fd != nullptr) *fd = zmq_msg_get(&message, ZMQ_SRCFD);
  }
  more = text && zmq_msg_more(&message) != 0;
  zmq_msg_close(&message);
  return text;
}

int readable(void* socket) {
  int fd = -1;
  std::size_t size = sizeof fd;
  zmq_getsockopt(socket, ZMQ_FD, &fd, &size);
  return fd;
}

}  // namespace

std::string new_token() {
  unsigned char bytes[32];
  randombytes_buf(bytes, sizeof bytes);
  char text[2 * sizeof bytes + 1];
  return sodium_bin2hex(text, sizeof text, bytes, sizeof bytes);
}

void Messenger::Closing::operator()(void* socket) const { zmq_close(socket); }

void Messenger::set(int option, int value) {
  require(zmq_setsockopt(socket_.get(), option, &value, sizeof value) == 0, "zmq_setsockopt");
}

void Messenger::set(int option, const std::string& value) {
  require(zmq_setsockopt(socket_.get(), option, value.data(), value.size()) == 0, "zmq_setsockopt");
}

// Opens the socket, with limits on unauthenticated peers.
void Messenger::open(int kind) {
  require(sodium_init() >= 0, "sodium_init");
  if (zmq_has("curve") == 0) {
    throw MachineError("the ZeroMQ of this machine was built without CURVE, by which ranks meet");
  }
  expect_descriptors();
  expect_threads();
  context_.reset(zmq_ctx_new(), zmq_ctx_term);
  socket_.reset(zmq_socket(context_.get(), kind));
  require(socket_ != nullptr, "zmq_socket");
  constexpr int kMore = 1024;  // bytes of a message besides its piece
  set(ZMQ_LINGER, 0);
  set(ZMQ_HANDSHAKE_IVL, static_cast<int>(kProof.count()));
  const std::int64_t longest = kPieceBytes + kMore;
  require(zmq_setsockopt(socket_.get(), ZMQ_MAXMSGSIZE, &longest, sizeof longest) == 0,
          "zmq_setsockopt");
  watch();
}

// Opens the socket by which ZeroMQ reports events on connections.
void Messenger::watch() {
  constexpr const char* kPlace = "inproc://events";
  constexpr int kWanted = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_CONNECTED | ZMQ_EVENT_CLOSED |
                          ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                          ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                          ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
  require(zmq_socket_monitor(socket_.get(), kPlace, kWanted) == 0, "zmq_socket_monitor");
  events_.reset(zmq_socket(context_.get(), ZMQ_PAIR));
  require(events_ != nullptr, "zmq_socket");
  const int all = 0;  // no limit: ZeroMQ must not wait
  zmq_setsockopt(events_.get(), ZMQ_RCVHWM, &all, sizeof all);
  require(zmq_connect(events_.get(), kPlace) == 0, "zmq_connect");
}

Messenger::Messenger(const Socket& listener, const std::string& token, int ranks) {
  allow_descriptors();
  open(ZMQ_ROUTER);
  const Keys keys = keys_of_first(token);
  set(ZMQ_CURVE_SERVER, 1);
  set(ZMQ_CURVE_SECRETKEY, keys.secret);
  set(ZMQ_ROUTER_MANDATORY, 1);
  // For a peer that does not read: the values of all ranks in one gathering, and some more.
  constexpr int kMore = 2000;
  constexpr int kPieces = static_cast<int>(kMaxValue / kPieceBytes) + 1;
  set(ZMQ_SNDHWM, ranks * kPieces + kMore);
  Socket heard(fcntl(listener.fd(), F_DUPFD_CLOEXEC, 0));
  set(ZMQ_USE_FD, heard.fd());
  require(zmq_bind(socket_.get(), ("tcp://" + own_end(listener.fd())).c_str()) == 0, "zmq_bind");
  heard.release();
}

Messenger::Messenger() {
  open(ZMQ_DEALER);
  constexpr int kAgain = 20;         // milliseconds
  constexpr int kConnecting = 3000;  // milliseconds
  set(ZMQ_RECONNECT_IVL, kAgain);
  set(ZMQ_CONNECT_TIMEOUT, kConnecting);
  set(ZMQ_SNDHWM, 0);
  Keys keys;
  crypto_box_keypair(bytes_of(keys.open), bytes_of(keys.secret));
  set(ZMQ_CURVE_PUBLICKEY, keys.open);
  set(ZMQ_CURVE_SECRETKEY, keys.secret);
}

Messenger::~Messenger() {
  if (socket_) zmq_socket_monitor(socket_.get(), nullptr, 0);
}

void Messenger::call(const std::string& address, int port, const std::string& token) {
  if (!called_.empty()) zmq_disconnect(socket_.get(), called_.c_str());
  called_ = "tcp://" + address + ":" + std::to_string(port);
  set(ZMQ_CURVE_SERVERKEY, keys_of_first(token).open);
  require(zmq_connect(socket_.get(), called_.c_str()) == 0, "zmq_connect");
}

Messenger::Sent Messenger::send(const std::string& to, MessageKind kind, std::uint64_t number,
                                const std::string& bytes) {
  if (!to.empty() &&
      zmq_send(socket_.get(), to.data(), to.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
    return zmq_errno() == EAGAIN ? Sent::kUnread : Sent::kGone;
  }
  std::string text(kHead, static_cast<char>(kind));
  std::memcpy(text.data() + 1, &number, sizeof number);
  text += bytes;
  return zmq_send(socket_.get(), text.data(), text.size(), ZMQ_DONTWAIT) < 0 ? Sent::kGone
                                                                             : Sent::kYes;
}

std::optional<Message> Messenger::next() {
  bool more = false;
  Message message;
  auto text = next_part(socket_.get(), more, &message.fd);
  if (!text) return std::nullopt;
  bool whole = true;
  if (!called_.empty()) {
    whole = !more;
  } else {
    message.from = std::move(*text);
    text = more ? next_part(socket_.get(), more, &message.fd) : std::nullopt;
    whole = text && !more;
  }
  while (more) next_part(socket_.get(), more);
  if (!whole || text->size() < kHead) {
    message.number = 1;
    return message;
  }
  message.kind = static_cast<MessageKind>((*text)[0]);
  std::memcpy(&message.number, text->data() + 1, sizeof message.number);
  message.bytes = text->substr(kHead);
  return message;
}

// Returns the next event on a connection, if any. Notes callers that were refused.
std::optional<LineEvent> Messenger::event() {
  for (;;) {
    bool more = false;
    const auto text = next_part(events_.get(), more);
    while (more) next_part(events_.get(), more);
    std::uint16_t what = 0;
    std::int32_t value = 0;
    if (!text || text->size() != sizeof what + sizeof value) return std::nullopt;
    std::memcpy(&what, text->data(), sizeof what);
    std::memcpy(&value, text->data() + sizeof what, sizeof value);
    if (what == ZMQ_EVENT_CONNECTED) return LineEvent::kReached;
    if (what == ZMQ_EVENT_CLOSED) return LineEvent::kNobody;
    if (what == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) return LineEvent::kProved;
    if (what == ZMQ_EVENT_ACCEPTED) {
      const std::string end = other_end(value);
      if (parse_port(end) != 0) ends_[value] = end;  // unless it has gone already
    } else if (what == ZMQ_EVENT_DISCONNECTED) {
      const auto end = ends_.extract(value);
      if (std::exchange(refused_, false) && end) last_turned_away_ = end.mapped();
      return LineEvent::kClosed;
    } else {
      refused_ = true;
      ++turned_away_;
      return LineEvent::kRefused;
    }
  }
}

void Messenger::wait(int wake, std::chrono::milliseconds time) const {
  constexpr long long kLongest = 200;
  pollfd waiting[] = {{wake, POLLIN, 0},
                      {readable(socket_.get()), POLLIN, 0},
                      {readable(events_.get()), POLLIN, 0}};
  poll(waiting, std::size(waiting),
       static_cast<int>(std::clamp<long long>(time.count(), 0, kLongest)));
}

std::string Messenger::refused_callers_text() const {
  if (turned_away_ == 0) return "";
  return "; " + std::to_string(turned_away_) + (turned_away_ == 1 ? " caller" : " callers") +
         " without this run's token came" +
         (last_turned_away_.empty() ? "" : ", the last from " + last_turned_away_);
}

}  // namespace syncline::live
