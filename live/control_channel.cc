#include "live/control_channel.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "core/visible.h"
#include "live/handshake.h"
#include "live/rank_environment.h"

namespace syncline::live {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// Signs of life, at most so far apart, and four within the time limit.
constexpr auto kBeatEvery = 250ms;
// Where a link is cut both ends find the other silent. Rank 0 is to report it: the others wait
// longer.
constexpr auto kOthersWait = 1000ms;

std::string packed_time(Seconds time) {
  std::string bytes(sizeof time, '\0');
  std::memcpy(bytes.data(), &time, sizeof time);
  return bytes;
}

std::string broken_text(int rank, const std::string& end, const std::string& what) {
  return rank_text(rank) + (end.empty() ? "" : " (" + end + ")") + " broke the protocol: " + what;
}

Seconds read_time(const std::string& bytes) {
  Seconds time = 0;
  if (bytes.size() == sizeof time) std::memcpy(&time, bytes.data(), sizeof time);
  return time;
}

}  // namespace

// The channel once all ranks are admitted: the connections, and the thread that listens on them,
// sends signs of life and finds out who has failed. Callers wait on `changed_` for what that thread
// finds; everything behind `mutex_` is shared with it.
class ControlChannel::Life {
 public:
  Life(const RankEnvironment& environment, const ControlChannelSettings& settings,
       std::vector<Connection> connections, const std::vector<std::string>& ends)
      : environment_(environment),
        settings_(settings),
        ends_(ends),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        connections_(std::move(connections)),
        gatherings_(environment.ranks) {
    for (auto& connection : connections_) {
      connection.heard = LiveClock::now();
      connection.inbox.expect(environment.rank == 0 ? "SPBFE" : "AQBFE", environment.ranks);
    }
    thread_ = std::thread([this] { listen(); });
  }

  ~Life() {
    {
      const std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    wake();
    thread_.join();
  }

  std::vector<std::string> gather(const std::string& mine, milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (failed_) throw MachineError(failure_);
    if (mine.size() > kMostValue) {
      throw MachineError("this rank has " + std::to_string(mine.size()) +
                         " bytes for the others; at most " + std::to_string(kMostValue) +
                         " can be gathered");
    }
    gathered_.reset();
    const std::uint64_t number = next_gathering_++;
    awaits_all_ = environment_.rank != 0;
    if (environment_.rank == 0) {
      take_value(0, mine, patience);
    } else {
      // The patience travels in front, so that rank 0 knows it even if rank 0 comes last.
      connections_.front().send(FrameKind::kShare, number,
                                joined({std::to_string(patience.count()), mine}));
    }
    // The thread sends what has not gone yet.
    const auto waits = [](const Connection& connection) { return !connection.unsent.empty(); };
    if (std::any_of(connections_.begin(), connections_.end(), waits)) wake();
    changed_.wait(lock, [&] { return failed_ || first_left_ || gathered_; });
    if (!gathered_) throw MachineError(why_not());
    return std::move(*gathered_);
  }

  ClockOffset clock() {
    if (environment_.rank == 0) return {};
    ClockOffset best{0, 1};
    constexpr int kExchanges = 40;
    for (int i = 0; i < kExchanges; ++i) {
      std::unique_lock lock(mutex_);
      pong_.reset();
      awaited_pong_ = static_cast<std::uint64_t>(i);
      const Seconds sent = ControlChannel::now();
      connections_.front().send(FrameKind::kPing, *awaited_pong_);
      changed_.wait(lock, [&] { return failed_ || first_left_ || pong_; });
      if (!pong_) throw MachineError(why_not());
      const Seconds error = (pong_->here - sent) / 2;
      if (i == 0 || error < best.error) best = {pong_->there - (sent + pong_->here) / 2, error};
    }
    return best;
  }

  // The failure that is known, or becomes known within that time; nothing: there is none.
  std::optional<std::string> failure(milliseconds within = milliseconds(0)) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, within, [&] { return failed_; })) return std::nullopt;
    return failure_;
  }

  // Returns once the others have it, or a moment later.
  void tell_failure(const std::string& text) {
    std::unique_lock lock(mutex_);
    told_ = failed_ = true;
    failure_ = text;
    send_all(FrameKind::kFailed, 0, text);
    wake();
    changed_.wait(lock, [&] { return parted_; });
  }

 private:
  void wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = write(wake_.fd(), &one, sizeof one);
  }

  // Everything from here to listen() is called with the lock.

  std::string why_not() const { return failed_ ? failure_ : "rank 0 ended before the others"; }

  int rank_at(std::size_t connection) const {
    return environment_.rank == 0 ? static_cast<int>(connection) : 0;
  }

  void send_all(FrameKind kind, std::uint64_t number = 0, const std::string& bytes = "") {
    for (auto& connection : connections_) connection.send(kind, number, bytes);
  }

  // Rank 0: a rank's value has come. Once all have, everyone gets all of them.
  void take_value(int rank, const std::string& value, milliseconds patience) {
    if (failed_) return;  // nobody is to go on as if nothing had happened
    const std::uint64_t number = gatherings_.number();
    auto values = gatherings_.add(rank, value, patience);
    if (!values) return;
    send_all(FrameKind::kAll, number, joined(*values));
    gathered_ = std::move(*values);
    changed_.notify_all();
  }

  // The first failure decides. `first_hand`: found here, so this rank tells the others; what
  // another rank found reaches them by way of rank 0.
  void note_failure(const std::string& text, bool first_hand) {
    if (failed_ || leaving_) return;
    failed_ = true;
    failure_ = text;
    first_hand_ = first_hand;
    if (first_hand) send_all(FrameKind::kFailed, 0, text.substr(0, kMostText));
    changed_.notify_all();
  }

  // The other end has said what no rank says, or somebody speaks in its place.
  void misspoken(std::size_t from, const std::string& what) {
    connections_[from] = Connection();
    const int rank = rank_at(from);
    note_failure(broken_text(rank, ends_[static_cast<std::size_t>(rank)], what),
                 environment_.rank <= 1);
  }

  void take(std::size_t from, const Frame& frame) {
    switch (frame.kind) {
      case FrameKind::kShare:
        return take_share(from, frame);
      case FrameKind::kAll:
        return take_all(from, frame);
      case FrameKind::kPing:
        if (connections_[from].unsent.size() > kMostText) {
          return misspoken(from, "it asks for the time and does not read the answers");
        }
        return connections_[from].send(FrameKind::kPong, frame.number,
                                       packed_time(ControlChannel::now()));
      case FrameKind::kPong:
        if (frame.number != awaited_pong_ || frame.bytes.size() != sizeof(Seconds)) {
          return misspoken(from, "it gave a time that was not asked for");
        }
        awaited_pong_.reset();
        pong_ = Pong{read_time(frame.bytes), ControlChannel::now()};
        changed_.notify_all();
        return;
      case FrameKind::kFailed:
        return note_failure(visible(frame.bytes), environment_.rank == 0);
      case FrameKind::kBye:
        // In order, once all is done; whoever still waits for that rank learns so.
        connections_[from] = Connection();
        first_left_ = environment_.rank != 0;
        changed_.notify_all();
        return;
      default:
        return;
    }
  }

  void take_share(std::size_t from, const Frame& frame) {
    const auto parts = split(frame.bytes);
    long long patience = -1;
    if (parts.size() == 2) {
      const char* end = parts[0].data() + parts[0].size();
      const auto read = std::from_chars(parts[0].data(), end, patience);
      if (read.ec != std::errc() || read.ptr != end) patience = -1;
    }
    const int rank = rank_at(from);
    if (patience < 0 || !gatherings_.expects(frame.number, rank)) {
      return misspoken(from, "it gave a value that nobody waits for");
    }
    take_value(rank, parts[1], milliseconds(patience));
  }

  void take_all(std::size_t from, const Frame& frame) {
    auto values = split(frame.bytes);
    const bool asked = awaits_all_ && frame.number + 1 == next_gathering_;
    if (!asked || values.size() != static_cast<std::size_t>(environment_.ranks)) {
      return misspoken(from, "it gave values that nobody waits for");
    }
    awaits_all_ = false;
    gathered_ = std::move(values);
    changed_.notify_all();
  }

  void hear_connections() {
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      Connection& connection = connections_[i];
      if (!connection) continue;
      connection.flush();
      pollfd unread{connection.socket.fd(), POLLIN, 0};
      bool there = true;
      if (poll(&unread, 1, 0) > 0) {
        connection.heard = LiveClock::now();
        there = connection.inbox.read(connection.socket.fd());
      }
      while (auto frame = connection.inbox.next()) {
        take(i, *frame);
        if (!connection) break;
      }
      if (connection && !connection.inbox.wrong().empty()) {
        misspoken(i, std::string(connection.inbox.wrong()));
      }
      if (there || !connection) continue;
      connection = Connection();
      note_failure(rank_text(rank_at(i)) + " ended in the middle of the run",
                   environment_.rank <= 1);
    }
  }

  // Finds ranks that have been silent, or that were waited for, too long.
  void look_for_failures(LiveClock::time_point now) {
    const auto limit = settings_.timeout + (environment_.rank == 0 ? milliseconds(0) : kOthersWait);
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      if (!connections_[i] || now - connections_[i].heard < limit) continue;
      // Not if it is this process that did not listen, having been stopped.
      pollfd unread{connections_[i].socket.fd(), POLLIN, 0};
      if (poll(&unread, 1, 0) > 0) continue;
      note_failure(rank_text(rank_at(i)) + " has been silent for " + limit_text(settings_.timeout) +
                       ": it hangs, or its link is cut",
                   environment_.rank <= 1);
    }
    const auto connected = [&](std::size_t r) { return static_cast<bool>(connections_[r]); };
    const auto late = gatherings_.failure(now, settings_.timeout, connected);
    if (late) note_failure(*late, true);
  }

  // The thread: until a failure is known or this rank leaves.
  void listen() {
    auto next_beat = LiveClock::now();
    std::unique_lock lock(mutex_);
    for (;;) {
      std::vector<pollfd> waiting{{wake_.fd(), POLLIN, 0}};
      for (const auto& connection : connections_) {
        if (connection) waiting.push_back(connection.awaited());
      }
      lock.unlock();
      wait_for_events(waiting, time_until(next_beat));
      std::uint64_t woken = 0;
      [[maybe_unused]] const auto n = read(wake_.fd(), &woken, sizeof woken);
      lock.lock();
      hear_connections();
      const auto now = LiveClock::now();
      if (now >= next_beat) {
        next_beat = now + std::min<milliseconds>(kBeatEvery, settings_.timeout / 4);
        send_all(FrameKind::kBeat);
      }
      look_for_failures(now);
      if (failed_) return end(lock);
      if (leaving_) return leave();
    }
  }

  // The others know of a failure before this rank acts on it.
  void end(std::unique_lock<std::mutex>& lock) {
    const bool announce = !told_ && settings_.on_failure;
    const std::string text = failure_;
    const bool first_hand = first_hand_;
    close_after_sending(connections_);
    parted_ = true;
    changed_.notify_all();
    lock.unlock();
    if (announce) settings_.on_failure(text, first_hand);
  }

  // Says goodbye, behind what is still to be sent, and waits until all of it has arrived.
  void leave() {
    send_all(FrameKind::kBye);
    const auto deadline = LiveClock::now() + settings_.timeout;
    const auto on_its_way = [](Connection& connection) {
      connection.flush();
      if (connection && !connection.inbox.read(connection.socket.fd())) connection = Connection();
      while (connection.inbox.next()) {
      }
      return connection && (!connection.unsent.empty() || !all_arrived(connection.socket));
    };
    while (std::count_if(connections_.begin(), connections_.end(), on_its_way) > 0 &&
           LiveClock::now() < deadline) {
      std::this_thread::sleep_for(1ms);
    }
  }

  struct Pong {
    Seconds there = 0;  // rank 0's time when it answered
    Seconds here = 0;   // ours when the answer came
  };

  const RankEnvironment& environment_;
  const ControlChannelSettings& settings_;
  const std::vector<std::string>& ends_;
  const Socket wake_;  // written to make the thread look at once
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Connection> connections_;  // rank 0: by rank, none for itself; others: one
  std::uint64_t next_gathering_ = 0;
  Gatherings gatherings_;                             // rank 0's
  bool awaits_all_ = false;                           // of rank 0
  std::optional<std::vector<std::string>> gathered_;  // complete
  std::optional<std::uint64_t> awaited_pong_;
  std::optional<Pong> pong_;
  bool failed_ = false;
  bool first_hand_ = false;
  bool told_ = false;        // the failure is this rank's own
  bool parted_ = false;      // the others have read why
  bool leaving_ = false;     // this rank, in order
  bool first_left_ = false;  // rank 0 has, in order
  std::string failure_;
};

Seconds ControlChannel::now() {
  return std::chrono::duration<double>(LiveClock::now().time_since_epoch()).count();
}

ControlChannel::ControlChannel(const RankEnvironment& environment, ControlChannelSettings settings)
    : environment_(environment), settings_(std::move(settings)) {
  const auto deadline = LiveClock::now() + settings_.timeout;
  Admission admission;
  if (environment_.rank == 0) {
    rendezvous_ = std::make_unique<OpenRendezvous>(environment_);
    admission = receive_all(rendezvous_->listener(), environment_, rendezvous_->token(),
                            settings_.key, settings_.timeout);
    rendezvous_->close();
  } else {
    FirstRank first(environment_);
    admission = call_first(first, environment_, settings_.key, deadline, settings_.timeout);
  }
  address_ = admission.own_address;
  token_ = admission.token;
  ends_.resize(static_cast<std::size_t>(environment_.ranks));
  for (std::size_t i = 0; i < admission.connections.size(); ++i) {
    if (admission.connections[i]) ends_[i] = other_end(admission.connections[i].socket);
  }
  life_ = std::make_unique<Life>(environment_, settings_, std::move(admission.connections), ends_);
}

ControlChannel::~ControlChannel() = default;

std::vector<std::string> ControlChannel::gather(const std::string& mine, milliseconds patience) {
  return life_->gather(mine, patience);
}

void ControlChannel::barrier(milliseconds patience) { life_->gather("", patience); }

std::string ControlChannel::from_first(const std::string& mine, milliseconds patience) {
  return life_->gather(environment_.rank == 0 ? mine : "", patience).front();
}

void ControlChannel::check() const {
  if (const auto failure = life_->failure()) throw MachineError(*failure);
}

void ControlChannel::broken_by(int rank, const std::string& what) const {
  throw MachineError(broken_text(rank, ends_[static_cast<std::size_t>(rank)], what));
}

ClockOffset ControlChannel::clock() { return life_->clock(); }

void ControlChannel::fail(const std::string& text, milliseconds suspicion) {
  if (const auto failure = life_->failure(suspicion)) {
    // on_failure ends this process.
    if (settings_.on_failure) std::this_thread::sleep_for(10s);
    throw MachineError(*failure);
  }
  life_->tell_failure(rank_text(rank()) + ": " + text);
}

}  // namespace syncline::live
