// Every process sends a sign of life several times a second, from a thread of the channel's own: a
// process that is stopped sends none. A rank has failed when its connection breaks, or when nothing
// came from it for the time limit; rank 0 tells all others which one. A rank that others wait for
// in `gather` fails after the time limit too, even if it is alive.
#include "live/control_channel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "formats/text/visible.h"

namespace syncline::live {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// Signs of life, at most so far apart, and four within the time limit.
constexpr milliseconds kHeartbeatEvery = 250ms;
// Where a link is cut both ends find the other silent. Rank 0 is to report it: the others wait
// longer.
constexpr milliseconds kOthersWait = 1000ms;
// How long a rank that gives up waits until the others have read why.
constexpr milliseconds kParting = 1000ms;
// How long rank 0 goes on telling those who come that the run cannot take place; and how long a
// rank calls one that is alive before it knows that nobody is heard there any more.
constexpr milliseconds kIntroduction = 3000ms;

template <typename T>
std::string packed(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Of the first bytes.
template <typename T>
std::optional<T> unpacked(const std::string& bytes) {
  T value{};
  if (bytes.size() < sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// Several values as one, and back; nothing where they are not so many.
std::string joined(const std::vector<std::string>& values) {
  std::string text;
  for (const auto& value : values) text += packed<std::uint64_t>(value.size());
  for (const auto& value : values) text += value;
  return text;
}

std::optional<std::vector<std::string>> split(const std::string& text, int count) {
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(count));
  std::size_t at = lengths.size() * sizeof lengths[0];
  if (text.size() < at) return std::nullopt;
  std::memcpy(lengths.data(), text.data(), at);
  std::vector<std::string> values;
  for (const auto length : lengths) {
    if (length > text.size() - at) return std::nullopt;
    values.push_back(text.substr(at, length));
    at += length;
  }
  return at == text.size() ? std::optional(std::move(values)) : std::nullopt;
}

std::string broken_text(int rank, const std::string& end, const std::string& what) {
  return rank_text(rank) + (end.empty() ? "" : " (" + end + ")") + " broke the protocol: " + what;
}

}  // namespace

// The channel's thread, which alone hears the others, and what its callers share with it behind
// `mutex_`. Callers send by themselves and wait on `changed_` for what the thread finds. First the
// ranks meet: each calls rank 0 and says who it is; rank 0 welcomes all once all are there, or
// refuses all.
class ControlChannel::Life {
 public:
  Life(const RankEnvironment& environment, const ControlChannelSettings& settings)
      : environment_(environment),
        settings_(settings),
        first_hand_rank_(environment.rank <= 1),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        deadline_(LiveClock::now() + settings.timeout),
        peers_(environment.rank == 0 ? static_cast<std::size_t>(environment.ranks) : 1),
        most_(environment.rank == 0
                  ? kMostValue
                  : static_cast<std::size_t>(environment.ranks) * (kMostValue + 8)) {
    if (environment.rank == 0) {
      rendezvous_ = std::make_unique<OpenRendezvous>(environment);
      messenger_ = std::make_unique<Messenger>(rendezvous_->listener(), rendezvous_->token(),
                                               environment.ranks);
      peers_.front().state = Peer::State::kGone;  // this rank itself
    } else {
      first_ = std::make_unique<FirstRank>(environment);
      messenger_ = std::make_unique<Messenger>();
    }
    thread_ = std::thread([this] { live(); });
  }

  ~Life() {
    {
      const std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    wake();
    thread_.join();
  }

  void meet() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return met_ || not_met_; });
    if (not_met_) std::rethrow_exception(not_met_);
  }

  std::vector<std::string> gather(const std::string& mine, milliseconds wait_limit) {
    std::unique_lock lock(mutex_);
    if (failed_) throw MachineError(failure_);
    if (mine.size() > kMostValue) {
      throw MachineError("this rank has " + std::to_string(mine.size()) +
                         " bytes for the others; at most " + std::to_string(kMostValue) +
                         " can be gathered");
    }
    gathered_.reset();
    if (environment_.rank == 0) {
      take_value(0, mine, wait_limit);
    } else {
      awaits_all_ = true;
      send_value(peers_.front(), MessageKind::kShare, gathering_, packed(wait_limit.count()), mine);
    }
    wake();
    changed_.wait(lock, [&] { return failed_ || first_left_ || gathered_; });
    if (!gathered_) throw MachineError(why_not());
    return std::move(*gathered_);
  }

  ClockOffset clock() {
    if (environment_.rank == 0) return {};
    ClockOffset best{0, 1};
    constexpr std::uint64_t kExchanges = 40;
    for (std::uint64_t i = 0; i < kExchanges; ++i) {
      std::unique_lock lock(mutex_);
      pong_.reset();
      awaited_pong_ = i;
      const Seconds sent = ControlChannel::now();
      send(peers_.front(), MessageKind::kPing, i);
      wake();
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
    send_all(MessageKind::kFailed, 0, text.substr(0, kPieceBytes));
    wake();
    changed_.wait(lock, [&] { return parted_; });
  }

  // Once the ranks have met.
  const std::string& own_address() const { return own_address_; }
  // Of rank 0; on rank 0, of any.
  const std::string& end_of(int rank) const { return peers_[static_cast<std::size_t>(rank)].end; }

 private:
  // Rank 0, as the others have it; or one of the others, as rank 0 has it.
  struct Peer {
    enum class State { kAbsent, kHere, kGone };
    State state = State::kAbsent;
    std::string id = {};   // of its connection; empty: rank 0
    std::string end = {};  // its address and port
    LiveClock::time_point heard = LiveClock::now();
    bool lost = false;        // its connection is gone
    std::string pieces = {};  // of a value that it gives
  };

  int rank_of(const Peer& peer) const { return static_cast<int>(&peer - peers_.data()); }

  void wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = write(wake_.fd(), &one, sizeof one);
  }

  // Everything from here to live() is called with the lock.

  std::string why_not() const { return failed_ ? failure_ : "rank 0 ended before the others"; }

  void send(Peer& peer, MessageKind kind, std::uint64_t number = 0, const std::string& bytes = "") {
    if (peer.state != Peer::State::kHere) return;
    const auto sent = messenger_->send(peer.id, kind, number, bytes);
    peer.lost = peer.lost || sent == Messenger::Sent::kGone;
    if (sent == Messenger::Sent::kUnread) misspoken(peer, "it asks and does not read the answers");
  }

  void send_all(MessageKind kind, std::uint64_t number = 0, const std::string& bytes = "") {
    for (Peer& peer : peers_) send(peer, kind, number, bytes);
  }

  void send_value(Peer& peer, MessageKind kind, std::uint64_t number, const std::string& head,
                  const std::string& value) {
    std::size_t sent = 0;
    for (; value.size() - sent > kPieceBytes; sent += kPieceBytes) {
      send(peer, MessageKind::kPiece, 0, value.substr(sent, kPieceBytes));
    }
    send(peer, kind, number, head + value.substr(sent));
  }

  // The first failure decides. `first_hand`: found here, so this rank tells the others; what
  // another rank found reaches them by way of rank 0.
  void note_failure(const std::string& text, bool first_hand) {
    if (!met_) return environment_.rank == 0 ? refuse_all(text) : give_up(text, first_hand);
    if (failed_ || leaving_) return;
    failed_ = true;
    failure_ = text;
    first_hand_ = first_hand;
    if (first_hand) send_all(MessageKind::kFailed, 0, text.substr(0, kPieceBytes));
    changed_.notify_all();
  }

  // The other end has said what no rank says.
  void misspoken(Peer& peer, const std::string& what) {
    peer.state = Peer::State::kGone;
    note_failure(broken_text(rank_of(peer), peer.end, what), first_hand_rank_);
  }

  // The meeting ----------------------------------------------------------------------------------

  void give_up(const std::string& text, bool first_hand) {
    if (!not_met_) not_met_ = std::make_exception_ptr(RendezvousError(text, first_hand));
  }

  // The run cannot take place. Those who have joined are told now, those who are still to come when
  // they do.
  void refuse_all(const std::string& text) {
    if (!refusal_.empty()) return;
    refusal_ = text.substr(0, kPieceBytes);
    send_all(MessageKind::kRefuse, 0, refusal_);
    deadline_ = std::min(deadline_, LiveClock::now() + kIntroduction);
  }

  // Of a caller that has proved to know the token. Who is there already does not say it again.
  void take_hello(const Message& hello) {
    const int rank = static_cast<int>(std::min<std::uint64_t>(hello.number, 1U << 30U));
    const std::string name = rank_text(rank);
    const std::size_t space = std::min(hello.bytes.find(' '), hello.bytes.size());
    const std::string ranks = hello.bytes.substr(0, space);
    if (met_) {
    } else if (ranks != std::to_string(environment_.ranks)) {
      refuse_all(name + " was started for " + visible(ranks.substr(0, 10)) + " ranks, rank 0 for " +
                 std::to_string(environment_.ranks));
    } else if (hello.bytes.substr(space) != " " + settings_.key) {
      refuse_all(name + " was started with another scenario or other options than rank 0");
    }
    const auto r = static_cast<std::size_t>(rank);
    const bool twice = r >= peers_.size() || peers_[r].state != Peer::State::kAbsent;
    if (!refusal_.empty()) {
      messenger_->send(hello.from, MessageKind::kRefuse, 0, refusal_);
    } else if (twice) {
      messenger_->send(hello.from, MessageKind::kRefuse, 1, started_twice_text(rank));
    }
    if (twice) return;
    peers_[r] = {Peer::State::kHere, hello.from, other_end(hello.fd)};
    // Ranks on other machines reach this one by an address that is not the loopback.
    const std::string own = address_in(own_end(hello.fd));
    if (!own.starts_with("127.")) own_address_ = own;
  }

  std::vector<char> here() const {
    std::vector<char> flags;
    for (const Peer& peer : peers_) flags.push_back(peer.state == Peer::State::kAbsent ? 0 : 1);
    return flags;
  }

  // Rank 0 while the others join.
  void receive() {
    const bool all = std::ranges::count(here(), 0) == 0;
    const bool late = LiveClock::now() >= deadline_;
    if (late && !all) {
      refuse_all(missing_ranks_text(here()) + " did not join within " +
                 limit_text(settings_.timeout) + messenger_->turned_away());
    }
    if (!refusal_.empty()) {
      if (all || late) give_up(refusal_, true);
    } else if (all) {
      send_all(MessageKind::kWelcome);
      rendezvous_->close();
      met();
    }
  }

  void met() {
    met_ = true;
    for (Peer& peer : peers_) peer.heard = LiveClock::now();
    changed_.notify_all();
  }

  // Any other rank: calls where rank 0 is said to be now, until it is welcome.
  void call() {
    const auto now = LiveClock::now();
    const bool heard = peers_.front().state == Peer::State::kHere;
    // Rank 0 itself waits for the last ones until its own deadline, and then says so.
    if (now >= deadline_ + (heard ? settings_.timeout + 2 * kIntroduction : milliseconds(0))) {
      give_up("rank 0 did not join within " + limit_text(settings_.timeout) + first_->where() +
                  (refused_ ? "; who answers there does not know this run's token" : ""),
              first_hand_rank_);
    }
    if (heard) return;
    const auto place = first_->now();
    if (place && place != called_) {
      messenger_->call(numeric_address(place->host), place->port, place->token);
      called_ = place;
      called_since_ = now;
    }
    if (place && !reached_ && now - called_since_ > kIntroduction && first_->lives()) {
      give_up(started_twice_text(environment_.rank) + ", or it came too late: the ranks of " +
                  environment_.file + " have met",
              true);
    }
  }

  void take_event(LineEvent event) {
    Peer& first = peers_.front();
    if (environment_.rank == 0) {
      // Sending finds whose connection it was.
      if (event == LineEvent::kClosed) next_heartbeat_ = LiveClock::now() + 5ms;
    } else if (event == LineEvent::kReached) {
      reached_ = LiveClock::now();
    } else if (event == LineEvent::kNobody || event == LineEvent::kRefused) {
      // A refusal comes at once, silence ends after kProof. A busy machine may learn late that it
      // reached somebody, which makes silence look shorter.
      refused_ = event == LineEvent::kRefused && LiveClock::now() - *reached_ < kProof / 2;
    } else if (event == LineEvent::kClosed) {
      first.lost = first.state == Peer::State::kHere;
    } else if (first.state == Peer::State::kAbsent) {
      first.state = Peer::State::kHere;
      send(first, MessageKind::kHello, static_cast<std::uint64_t>(environment_.rank),
           std::to_string(environment_.ranks) + " " + settings_.key);
    }
  }

  // What is said
  // -----------------------------------------------------------------------------------

  // Whose message it is; null: of nobody who takes part.
  Peer* sender(const Message& message) {
    const auto speaks = [&](const Peer& peer) {
      return peer.state == Peer::State::kHere && peer.id == message.from;
    };
    const auto found = std::ranges::find_if(peers_, speaks);
    return found == peers_.end() ? nullptr : &*found;
  }

  void take(const Message& message) {
    Peer* peer = sender(message);
    if (peer == nullptr) {
      if (environment_.rank == 0 && message.kind == MessageKind::kHello) take_hello(message);
      return;
    }
    peer->heard = LiveClock::now();
    switch (message.kind) {
      case MessageKind::kHeartbeat:
        if (message.number == 0 && message.bytes.empty()) return;
        return misspoken(*peer, "it sent something that is no message");
      case MessageKind::kClose:
        // In order, once all is done; whoever still waits for that rank learns so.
        send(*peer, MessageKind::kClose);
        peer->state = Peer::State::kGone;
        first_left_ = environment_.rank != 0;
        return changed_.notify_all();
      case MessageKind::kFailed:
        return note_failure(visible(message.bytes), environment_.rank == 0);
      case MessageKind::kPiece:
        peer->pieces += message.bytes;
        if (peer->pieces.size() <= most_) return;
        return misspoken(*peer, "it gave more than " + std::to_string(most_) + " bytes");
      default:
        return environment_.rank == 0 ? take_of_rank(*peer, message) : take_of_first(message);
    }
  }

  // Rank 0's.
  void take_of_rank(Peer& peer, const Message& message) {
    if (message.kind == MessageKind::kPing) {
      return send(peer, MessageKind::kPong, message.number, packed(ControlChannel::now()));
    }
    if (message.kind == MessageKind::kShare) return take_share(peer, message);
    misspoken(peer, "it sent something that has no place here");
  }

  void take_share(Peer& peer, const Message& share) {
    using WaitLimit = milliseconds::rep;
    const auto wait_limit = unpacked<WaitLimit>(share.bytes);
    const bool expected = share.number == gathering_ && !values_.contains(rank_of(peer));
    if (!met_ || !expected || wait_limit.value_or(-1) < 0) {
      return misspoken(peer, "it gave a value that nobody waits for");
    }
    take_value(rank_of(peer),
               std::exchange(peer.pieces, {}) + share.bytes.substr(sizeof(WaitLimit)),
               milliseconds(*wait_limit));
  }

  // A rank's value has come. Once all have, everyone gets all of them.
  void take_value(int rank, std::string value, milliseconds wait_limit) {
    if (failed_) return;  // nobody is to go on as if nothing had happened
    if (values_.empty()) first_came_ = LiveClock::now();
    wait_limit_ = values_.empty() ? wait_limit : std::max(wait_limit_, wait_limit);
    values_[rank] = std::move(value);
    if (values_.size() < peers_.size()) return;
    gathered_.emplace();
    for (auto& [each, its] : values_) gathered_->push_back(std::move(its));
    values_.clear();
    const std::string all = joined(*gathered_);
    for (Peer& peer : peers_) send_value(peer, MessageKind::kAll, gathering_, "", all);
    ++gathering_;
    changed_.notify_all();
  }

  // Another rank's, from rank 0.
  void take_of_first(const Message& message) {
    Peer& first = peers_.front();
    if (message.kind == MessageKind::kWelcome && !met_) {
      first.end = other_end(message.fd);
      own_address_ = address_in(own_end(message.fd));
      return met();
    }
    if (message.kind == MessageKind::kRefuse && !met_) {
      return give_up(visible(message.bytes), message.number == 1);
    }
    if (message.kind == MessageKind::kAll) return take_all(first, message);
    if (message.kind == MessageKind::kPong) return take_pong(first, message);
    misspoken(first, "it sent something that has no place here");
  }

  void take_all(Peer& first, const Message& message) {
    gathered_ = split(std::exchange(first.pieces, {}) + message.bytes, environment_.ranks);
    if (!gathered_ || !std::exchange(awaits_all_, false) || message.number != gathering_) {
      gathered_.reset();
      return misspoken(first, "it gave values that nobody waits for");
    }
    ++gathering_;
    changed_.notify_all();
  }

  void take_pong(Peer& first, const Message& pong) {
    const auto there = unpacked<Seconds>(pong.bytes);
    if (pong.number != awaited_pong_ || !there) {
      return misspoken(first, "it gave a time that was not asked for");
    }
    awaited_pong_.reset();
    pong_ = Pong{*there, ControlChannel::now()};
    changed_.notify_all();
  }

  // Who is gone
  // ------------------------------------------------------------------------------------

  void look_for_lost() {
    for (Peer& peer : peers_) {
      if (!peer.lost || peer.state != Peer::State::kHere) continue;
      peer.state = Peer::State::kGone;
      note_failure(rank_text(rank_of(peer)) + (met_ ? " ended in the middle of the run"
                                                    : " ended before all ranks had joined"),
                   first_hand_rank_);
    }
  }

  // Finds ranks that have been silent, or that were waited for, too long.
  void look_for_silent(LiveClock::time_point now) {
    const auto limit = settings_.timeout + (environment_.rank == 0 ? 0ms : kOthersWait);
    // Not if it is this process that did not listen, having been stopped.
    const bool stopped =
        now - std::exchange(looked_, now) > 2 * kHeartbeatEvery + settings_.timeout / 4;
    for (Peer& peer : peers_) {
      if (stopped) peer.heard = now;
      if (peer.state != Peer::State::kHere || now - peer.heard < limit) continue;
      note_failure(rank_text(rank_of(peer)) + " has been silent for " +
                       limit_text(settings_.timeout) + ": it hangs, or its link is cut",
                   first_hand_rank_);
    }
    look_at_gathering(now);
  }

  void look_at_gathering(LiveClock::time_point now) {
    if (values_.empty()) return;
    std::vector<char> here;
    for (Peer& peer : peers_) {
      const int rank = rank_of(peer);
      here.push_back(values_.contains(rank) ? 1 : 0);
      if (here.back() != 0 || peer.state == Peer::State::kHere || rank == 0) continue;
      note_failure(rank_text(rank) + " ended before the others", true);
    }
    const auto limit = std::max(wait_limit_, settings_.timeout);
    if (wait_limit_ == kPatient || now - first_came_ < limit) return;
    note_failure(
        missing_ranks_text(here) + " did not reach the barrier within " + limit_text(limit), true);
  }

  // False where more has come: who talks without end keeps nobody from looking after the others.
  bool hear() {
    constexpr int kMost = 1000;
    while (const auto event = messenger_->event()) take_event(*event);
    for (int i = 0; i < kMost; ++i) {
      const auto message = messenger_->next();
      if (!message) return true;
      take(*message);
    }
    return false;
  }

  void heartbeat(milliseconds every) {
    if (LiveClock::now() < next_heartbeat_) return;
    next_heartbeat_ = LiveClock::now() + every;
    send_all(MessageKind::kHeartbeat);
  }

  void wait(std::unique_lock<std::mutex>& lock, milliseconds most) {
    const auto next = std::chrono::ceil<milliseconds>(next_heartbeat_ - LiveClock::now());
    lock.unlock();
    messenger_->wait(wake_.fd(), std::min(next, most));
    std::uint64_t woken = 0;
    [[maybe_unused]] const auto n = read(wake_.fd(), &woken, sizeof woken);
    lock.lock();
  }

  // The thread: until a failure is known or this rank leaves.
  void live() {
    std::unique_lock lock(mutex_);
    for (;;) {
      heartbeat(std::min<milliseconds>(kHeartbeatEvery, settings_.timeout / 4));
      bool all = hear();
      if (!met_) {
        attend();
        all = hear();
      }
      if (all) look_for_lost();
      if (not_met_) return part(lock, kParting);
      if (met_) look_for_silent(LiveClock::now());
      if (failed_) return end(lock);
      if (leaving_) return part(lock, settings_.timeout);
      wait(lock, !all ? 0ms : met_ ? kHeartbeatEvery : 10ms);
    }
  }

  void attend() {
    try {
      environment_.rank == 0 ? receive() : call();
    } catch (...) {
      not_met_ = std::current_exception();
    }
  }

  // Says goodbye, behind what is still to be said, and waits until the others have heard it.
  void part(std::unique_lock<std::mutex>& lock, milliseconds most) {
    send_all(MessageKind::kClose);
    const auto hears = [](const Peer& peer) {
      return peer.state == Peer::State::kHere && !peer.lost;
    };
    for (const auto deadline = LiveClock::now() + most;
         std::ranges::any_of(peers_, hears) && LiveClock::now() < deadline;) {
      wait(lock, 20ms);
      while (const auto event = messenger_->event()) take_event(*event);
      heartbeat(20ms);
      while (const auto message = messenger_->next()) {
        Peer* peer = sender(*message);
        if (peer != nullptr && message->kind == MessageKind::kClose)
          peer->state = Peer::State::kGone;
      }
    }
    parted_ = true;
    changed_.notify_all();
  }

  // The others know of a failure before this rank acts on it.
  void end(std::unique_lock<std::mutex>& lock) {
    const bool announce = !told_ && settings_.on_failure;
    part(lock, kParting);
    lock.unlock();
    if (announce) settings_.on_failure(failure_, first_hand_);
  }

  struct Pong {
    Seconds there = 0;  // rank 0's time when it answered
    Seconds here = 0;   // ours when the answer came
  };

  const RankEnvironment& environment_;
  const ControlChannelSettings& settings_;
  const bool first_hand_rank_;  // where rank 0 is gone the lowest of the others reports it
  std::unique_ptr<OpenRendezvous> rendezvous_;  // rank 0's
  std::unique_ptr<FirstRank> first_;            // the others'
  std::unique_ptr<Messenger> messenger_;
  const Socket wake_;  // written to make the thread look at once
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable changed_;
  LiveClock::time_point deadline_;  // of the meeting
  LiveClock::time_point next_heartbeat_ = LiveClock::now();
  LiveClock::time_point looked_ = LiveClock::now();  // for silent ranks
  std::vector<Peer> peers_;                          // rank 0: by rank; others: rank 0
  std::string own_address_ = kLoopback;
  const std::size_t most_;  // bytes of what one gives
  bool met_ = false;
  std::exception_ptr not_met_;  // why
  std::string refusal_;         // why the run cannot take place; empty: it can
  std::optional<FirstAddress> called_;
  LiveClock::time_point called_since_;
  std::optional<LiveClock::time_point> reached_;  // somebody listens there
  bool refused_ = false;               // and has said what nobody says who knows the token
  std::uint64_t gathering_ = 0;        // the one that is under way, or comes next
  std::map<int, std::string> values_;  // rank 0's, by rank
  LiveClock::time_point first_came_;   // of them
  milliseconds wait_limit_{0};         // of those who have come
  bool awaits_all_ = false;            // of rank 0
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
