#include "live/meeting.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "formats/text/visible.h"

namespace syncline::live {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// Time for which rank 0 tells newcomers that the run cannot take place. Also the time for which a
// rank calls a living rank 0 before it knows that no caller is heard any more.
constexpr milliseconds kIntroduction = 3000ms;

// Returns flags of the ranks that have come, by rank.
std::vector<char> here(const Peers& peers) {
  std::vector<char> flags;
  for (const Peer& peer : peers.all()) flags.push_back(peer.state == Peer::State::kAbsent ? 0 : 1);
  return flags;
}

}  // namespace

Meeting::Meeting(const RankEnvironment& environment, std::string key, milliseconds timeout)
    : environment_(environment),
      key_(std::move(key)),
      timeout_(timeout),
      deadline_(LiveClock::now() + timeout) {
  if (environment.rank == 0) {
    rendezvous_ = std::make_unique<OpenRendezvous>(environment);
  } else {
    first_ = std::make_unique<FirstRank>(environment);
  }
}

std::unique_ptr<Messenger> Meeting::open_messenger() const {
  if (!rendezvous_) return std::make_unique<Messenger>();
  return std::make_unique<Messenger>(rendezvous_->listener(), rendezvous_->token(),
                                     environment_.ranks);
}

void Meeting::attend(Peers& peers) {
  try {
    rendezvous_ ? receive(peers) : call(peers);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void Meeting::fail(const std::string& text, bool first_hand, Peers& peers) {
  rendezvous_ ? refuse_all(text, peers) : give_up(text, first_hand);
}

void Meeting::give_up(const std::string& text, bool first_hand) {
  if (!failure_) failure_ = std::make_exception_ptr(RendezvousError(text, first_hand));
}

// Tells those who have joined that the run cannot take place. Later ones hear it when they come.
void Meeting::refuse_all(const std::string& text, Peers& peers) {
  if (!refusal_.empty()) return;
  refusal_ = text.substr(0, kPieceBytes);
  peers.send_all(MessageKind::kRefuse, 0, refusal_);
  deadline_ = std::min(deadline_, LiveClock::now() + kIntroduction);
}

void Meeting::take_hello(const Message& hello, Peers& peers) {
  const int rank = static_cast<int>(std::min<std::uint64_t>(hello.number, 1U << 30U));
  const std::string name = rank_text(rank);
  const std::size_t space = std::min(hello.bytes.find(' '), hello.bytes.size());
  const std::string ranks = hello.bytes.substr(0, space);
  if (met_) {
  } else if (ranks != std::to_string(environment_.ranks)) {
    refuse_all(name + " was started for " + visible(ranks.substr(0, 10)) + " ranks, rank 0 for " +
                   std::to_string(environment_.ranks),
               peers);
  } else if (hello.bytes.substr(space) != " " + key_) {
    refuse_all(name + " was started with another scenario or other options than rank 0", peers);
  }
  const auto r = static_cast<std::size_t>(rank);
  // A rank that has joined says hello only once.
  const bool twice = r >= peers.all().size() || peers.all()[r].state != Peer::State::kAbsent;
  if (!refusal_.empty()) {
    peers.messenger().send(hello.from, MessageKind::kRefuse, 0, refusal_);
  } else if (twice) {
    peers.messenger().send(hello.from, MessageKind::kRefuse, 1, started_twice_text(rank));
  }
  if (twice) return;
  peers.all()[r] = {Peer::State::kHere, hello.from, other_end(hello.fd)};
  // Ranks on other machines reach this one by an address that is not the loopback.
  const std::string own = parse_address(own_end(hello.fd));
  if (!own.starts_with("127.")) own_address_ = own;
}

void Meeting::receive(Peers& peers) {
  const std::vector<char> joined = here(peers);
  const bool all = std::ranges::count(joined, 0) == 0;
  const bool late = LiveClock::now() >= deadline_;
  if (late && !all) {
    refuse_all(missing_ranks_text(joined) + " did not join within " + limit_text(timeout_) +
                   peers.messenger().refused_callers_text(),
               peers);
  }
  if (!refusal_.empty()) {
    if (all || late) give_up(refusal_, true);
  } else if (all) {
    peers.send_all(MessageKind::kWelcome);
    rendezvous_->close();
    end(peers);
  }
}

void Meeting::end(Peers& peers) {
  met_ = true;
  peers.hear_all();
}

// Calls rank 0 at its currently published address, until it welcomes this rank.
void Meeting::call(Peers& peers) {
  const auto now = LiveClock::now();
  const bool heard = peers.first().state == Peer::State::kHere;
  // Rank 0 itself waits for the last ones until its own deadline, and then says so.
  if (now >= deadline_ + (heard ? timeout_ + 2 * kIntroduction : milliseconds(0))) {
    give_up("rank 0 did not join within " + limit_text(timeout_) + first_->where() +
                (refused_ ? "; who answers there does not know this run's token" : ""),
            environment_.rank == 1);
  }
  if (heard) return;
  const auto place = first_->now();
  if (place && place != called_) {
    peers.messenger().call(numeric_address(place->host), place->port, place->token);
    called_ = place;
    called_since_ = now;
  }
  if (place && !reached_ && now - called_since_ > kIntroduction && first_->lives()) {
    give_up(started_twice_text(environment_.rank) + ", or it came too late: the ranks of " +
                environment_.file + " have met",
            true);
  }
}

void Meeting::take_event(LineEvent event, Peers& peers) {
  Peer& first = peers.first();
  if (event == LineEvent::kReached) {
    reached_ = LiveClock::now();
  } else if (event == LineEvent::kNobody || event == LineEvent::kRefused) {
    // A refusal comes at once, silence ends after kProof. A busy machine may learn late that it
    // reached a listener, which makes silence look shorter.
    refused_ = event == LineEvent::kRefused && LiveClock::now() - *reached_ < kProof / 2;
  } else if (event == LineEvent::kProved && first.state == Peer::State::kAbsent) {
    first.state = Peer::State::kHere;
    peers.send(first, MessageKind::kHello, static_cast<std::uint64_t>(environment_.rank),
               std::to_string(environment_.ranks) + " " + key_);
  }
}

bool Meeting::take_answer(const Message& message, Peers& peers) {
  if (met_) return false;
  if (message.kind == MessageKind::kWelcome) {
    peers.first().end = other_end(message.fd);
    own_address_ = parse_address(own_end(message.fd));
    end(peers);
    return true;
  }
  if (message.kind != MessageKind::kRefuse) return false;
  give_up(visible(message.bytes), message.number == 1);
  return true;
}

}  // namespace syncline::live
