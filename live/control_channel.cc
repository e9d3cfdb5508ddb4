// Every process sends heartbeats several times a second, from a thread of the channel's own: a
// stopped process sends none. A rank has failed if its connection breaks, or if it is silent for
// the time limit; rank 0 tells all others which rank that is. A rank that others wait for in
// `gather` fails after the time limit too, even if it is alive.
#include "live/control_channel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/index.h"
#include "formats/text/visible.h"
#include "live/gathering.h"
#include "live/meeting.h"
#include "live/packed.h"
#include "live/peers.h"

namespace syncline::live {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// Time for which a rank that gives up waits until the others have read the reason.
constexpr milliseconds kParting = 1000ms;

}  // namespace

// Owns a descriptor that wakes a thread at once.
class Bell {
 public:
  Bell() : bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  int fd() const { return bell_.fd(); }
  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = write(bell_.fd(), &one, sizeof one);
  }
  void silence() const {
    std::uint64_t rung = 0;
    [[maybe_unused]] const auto n = read(bell_.fd(), &rung, sizeof rung);
  }

 private:
  const Socket bell_;
};

// Owns one question for rank 0's time, and its answer.
class ClockQuestion {
 public:
  explicit ClockQuestion(std::uint64_t number) : number_(number) {}
  std::uint64_t number() const { return number_; }
  // Takes the answer. Returns how rank 0 broke the protocol, or nullopt.
  std::optional<std::string> take_answer(const Message& pong) {
    const auto there = unpack_number<Seconds>(pong.bytes);
    if (offset_ || pong.number != number_ || !there) return kUnasked;
    const Seconds here = ControlChannel::now();
    offset_ = {*there - (sent_ + here) / 2, (here - sent_) / 2};
    return std::nullopt;
  }
  const std::optional<ClockOffset>& offset() const { return offset_; }

  static constexpr const char* kUnasked = "it gave a time that was not asked for";

 private:
  std::uint64_t number_;
  Seconds sent_ = ControlChannel::now();
  std::optional<ClockOffset> offset_;
};

// A failure of the run. `first_hand`: this rank found it and tells the others; failures found by
// other ranks arrive from rank 0.
struct Failure {
  std::string text;
  bool first_hand = false;
};

// Owns the channel's thread, the only one that receives, and the first failure that it finds.
// Callers share this state under `mutex_`: they send themselves, and wait on `changed_` for the
// thread's results.
class ControlChannel::Life {
 public:
  Life(const RankEnvironment& environment, const ControlChannelSettings& settings)
      : settings_(settings),
        is_first_(environment.rank == 0),
        finds_first_hand_(environment.rank <= 1),
        meeting_(environment, settings.key, settings.timeout),
        peers_(environment, meeting_.open_messenger()),
        gathering_(environment, kPatient) {
    thread_ = std::thread([this] { live(); });
  }

  ~Life() {
    {
      const std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    bell_.ring();
    thread_.join();
  }

  // Waits until the ranks have met. Throws if they cannot.
  void meet() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return meeting_.is_done() || meeting_.failure(); });
    if (meeting_.failure()) std::rethrow_exception(meeting_.failure());
  }

  std::vector<std::string> gather(const std::string& mine, milliseconds wait_limit) {
    std::unique_lock lock(mutex_);
    if (failure_) throw MachineError(failure_->text);
    gathering_.give(mine, wait_limit, peers_);
    wait_for(lock, [&] { return gathering_.complete(); });
    return gathering_.take_values();
  }

  ClockOffset clock() {
    if (is_first_) return {};
    ClockOffset best{0, 1};
    constexpr std::uint64_t kExchanges = 40;
    for (std::uint64_t i = 0; i < kExchanges; ++i) {
      std::unique_lock lock(mutex_);
      question_.emplace(i);
      peers_.send(peers_.first(), MessageKind::kPing, i);
      wait_for(lock, [&] { return question_->offset().has_value(); });
      const ClockOffset offset = *question_->offset();
      if (i == 0 || offset.error < best.error) best = offset;
    }
    return best;
  }

  // Returns the failure, if one is known within that time; else nullopt.
  std::optional<std::string> failure(milliseconds within = milliseconds(0)) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, within, [&] { return failure_.has_value(); })) return std::nullopt;
    return failure_->text;
  }

  // Tells the others, and returns once they have it, or a moment later.
  void tell_failure(const std::string& text) {
    std::unique_lock lock(mutex_);
    told_ = true;
    set_failure({text, true});
    bell_.ring();
    changed_.wait(lock, [&] { return parted_; });
  }

  // Returns this rank's address. Requires that the ranks have met.
  const std::string& own_address() const { return meeting_.own_address(); }
  // Returns the address and port of rank 0; on rank 0, of any rank.
  const std::string& end_of(int rank) const { return peers_.all()[index(rank)].end; }

 private:
  // All functions from here to live() require the lock.

  // Lets the thread send, and waits until `found` returns true. Throws if a failure or rank 0's end
  // comes first.
  template <typename Found>
  void wait_for(std::unique_lock<std::mutex>& lock, Found found) {
    bell_.ring();
    changed_.wait(lock, [&] { return failure_ || first_left_ || found(); });
    if (found()) return;
    throw MachineError(failure_ ? failure_->text : "rank 0 ended before the others");
  }

  void set_failure(Failure failure) {
    gathering_.stop();
    if (failure.first_hand) {
      peers_.send_all(MessageKind::kFailed, 0, failure.text.substr(0, kPieceBytes));
    }
    failure_ = std::move(failure);
    changed_.notify_all();
  }

  // Notes a failure; the first one decides.
  void note_failure(const Failure& failure) {
    if (!meeting_.is_done()) return meeting_.fail(failure.text, failure.first_hand, peers_);
    if (!failure_ && !leaving_) set_failure(failure);
  }

  // Notes a failure that this rank found, if there is one.
  void note_found(const std::optional<std::string>& text) {
    if (text) note_failure({*text, finds_first_hand_});
  }

  // Notes how a rank broke the protocol, if it did. Its further messages are ignored.
  void note_broken(Peer& peer, const std::optional<std::string>& how) {
    if (!how) return;
    peer.state = Peer::State::kGone;
    note_found(broken_text(peers_.rank_of(peer), peer.end, *how));
  }

  void take(const Message& message) {
    Peer* peer = peers_.sender(message);
    if (peer == nullptr) {
      if (is_first_ && message.kind == MessageKind::kHello) meeting_.take_hello(message, peers_);
      return;
    }
    peer->heard = LiveClock::now();
    switch (message.kind) {
      case MessageKind::kHeartbeat:
        if (message.number == 0 && message.bytes.empty()) return;
        return note_broken(*peer, "it sent something that is no message");
      case MessageKind::kClose:
        // It ends in order; a rank that still waits for it learns so.
        peers_.send(*peer, MessageKind::kClose);
        peer->state = Peer::State::kGone;
        first_left_ = !is_first_;
        break;
      case MessageKind::kFailed:
        return note_failure({visible(message.bytes), is_first_});
      case MessageKind::kPiece:
        return note_broken(*peer, gathering_.take_piece(*peer, message.bytes));
      default:
        note_broken(*peer, is_first_ ? take_of_rank(*peer, message) : take_of_first(message));
    }
    changed_.notify_all();
  }

  // Takes another rank's message on rank 0. Returns how it broke the protocol, or nullopt.
  std::optional<std::string> take_of_rank(Peer& peer, const Message& message) {
    if (message.kind == MessageKind::kShare) {
      return gathering_.take_share(peer, message, meeting_.is_done(), peers_);
    }
    if (message.kind != MessageKind::kPing) return kMisplaced;
    peers_.send(peer, MessageKind::kPong, message.number, pack_number(now()));
    return std::nullopt;
  }

  // Takes rank 0's message on another rank. Returns how it broke the protocol, or nullopt.
  std::optional<std::string> take_of_first(const Message& message) {
    if (meeting_.take_answer(message, peers_)) return std::nullopt;
    if (message.kind == MessageKind::kAll) return gathering_.take_all(peers_.first(), message);
    if (message.kind != MessageKind::kPong) return kMisplaced;
    return question_ ? question_->take_answer(message) : ClockQuestion::kUnasked;
  }

  void take_event(LineEvent event) {
    if (event == LineEvent::kClosed) {
      peers_.take_closed();
    } else if (!is_first_) {
      meeting_.take_event(event, peers_);
    }
  }

  // Takes messages; false: more are waiting. A peer that sends without end cannot block the checks.
  bool hear() {
    constexpr int kMax = 1000;
    while (const auto event = peers_.messenger().event()) take_event(*event);
    for (int i = 0; i < kMax; ++i) {
      note_found(peers_.find_unread());
      const auto message = peers_.messenger().next();
      if (!message) return true;
      take(*message);
    }
    return false;
  }

  void wait(std::unique_lock<std::mutex>& lock, milliseconds most) {
    lock.unlock();
    peers_.wait(bell_.fd(), most);
    bell_.silence();
    lock.lock();
  }

  // Runs the thread, until a failure is known or this rank leaves.
  void live() {
    std::unique_lock lock(mutex_);
    for (;;) {
      peers_.heartbeat(std::min<milliseconds>(kHeartbeatEvery, settings_.timeout / 4));
      bool all = hear();
      if (!meeting_.is_done()) {
        meeting_.attend(peers_);
        changed_.notify_all();
        all = hear();
      }
      if (all) note_found(peers_.find_lost(meeting_.is_done()));
      if (meeting_.failure()) return part(lock, kParting);
      if (meeting_.is_done()) {
        note_found(peers_.find_silent(settings_.timeout));
        note_found(gathering_.find_missing(peers_, settings_.timeout));
      }
      if (failure_) return end(lock);
      if (leaving_) return part(lock, settings_.timeout);
      wait(lock, !all ? 0ms : meeting_.is_done() ? kHeartbeatEvery : 10ms);
    }
  }

  // Says goodbye after all other messages, and waits until the others have heard it.
  void part(std::unique_lock<std::mutex>& lock, milliseconds most) {
    peers_.send_all(MessageKind::kClose);
    const auto deadline = LiveClock::now() + most;
    while (peers_.any_hears() && LiveClock::now() < deadline) {
      wait(lock, 20ms);
      while (const auto event = peers_.messenger().event()) take_event(*event);
      peers_.heartbeat(20ms);
      while (const auto message = peers_.messenger().next()) peers_.take_goodbye(*message);
    }
    parted_ = true;
    changed_.notify_all();
  }

  // Ends the thread after a failure. The others know of it before this rank acts on it.
  void end(std::unique_lock<std::mutex>& lock) {
    const bool announce = !told_ && settings_.on_failure;
    part(lock, kParting);
    lock.unlock();
    if (announce) settings_.on_failure(failure_->text, failure_->first_hand);
  }

  static constexpr const char* kMisplaced = "it sent something that has no place here";

  const ControlChannelSettings& settings_;
  const bool is_first_;          // this rank is rank 0
  const bool finds_first_hand_;  // rank 1 reports the failure of rank 0
  const Bell bell_;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Meeting meeting_;
  Peers peers_;
  Gathering gathering_;
  std::optional<ClockQuestion> question_;  // the last one
  std::optional<Failure> failure_;
  bool told_ = false;        // the failure is this rank's own
  bool parted_ = false;      // the others have read the reason
  bool leaving_ = false;     // this rank leaves in order
  bool first_left_ = false;  // rank 0 left in order
};

Seconds ControlChannel::now() {
  return std::chrono::duration<double>(LiveClock::now().time_since_epoch()).count();
}

ControlChannel::ControlChannel(const RankEnvironment& environment, ControlChannelSettings settings)
    : environment_(environment),
      settings_(std::move(settings)),
      life_(std::make_unique<Life>(environment_, settings_)) {
  life_->meet();
}

ControlChannel::~ControlChannel() = default;

const std::string& ControlChannel::own_address() const { return life_->own_address(); }

std::vector<std::string> ControlChannel::gather(const std::string& mine, milliseconds wait_limit) {
  return life_->gather(mine, wait_limit);
}

void ControlChannel::barrier(milliseconds wait_limit) { life_->gather("", wait_limit); }

std::string ControlChannel::from_first(const std::string& mine, milliseconds wait_limit) {
  return life_->gather(environment_.rank == 0 ? mine : "", wait_limit).front();
}

void ControlChannel::check() const {
  if (const auto failure = life_->failure()) throw MachineError(*failure);
}

void ControlChannel::broken_by(int rank, const std::string& what) const {
  const bool known = environment_.rank == 0 || rank == 0;
  throw MachineError(broken_text(rank, known ? life_->end_of(rank) : "", what));
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
