#include "live/gathering.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "live/packed.h"

namespace syncline::live {
namespace {

using std::chrono::milliseconds;

constexpr const char* kUnawaited = "it gave a value that nobody waits for";
constexpr const char* kUnawaitedValues = "it gave values that nobody waits for";

// Writes several values as one.
std::string joined(const std::vector<std::string>& values) {
  std::string text;
  for (const auto& value : values) text += pack_number<std::uint64_t>(value.size());
  for (const auto& value : values) text += value;
  return text;
}

// Reads `count` values out of one; nullopt if they are more or fewer.
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

}  // namespace

Gathering::Gathering(const RankEnvironment& environment, milliseconds patient)
    : rank_(environment.rank),
      ranks_(environment.ranks),
      patient_(patient),
      most_(rank_ == 0 ? kMaxValue : static_cast<std::size_t>(ranks_) * (kMaxValue + 8)) {}

void Gathering::give(const std::string& mine, milliseconds wait_limit, Peers& peers) {
  if (mine.size() > kMaxValue) {
    throw MachineError("this rank has " + std::to_string(mine.size()) +
                       " bytes for the others; at most " + std::to_string(kMaxValue) +
                       " can be gathered");
  }
  gathered_.reset();
  if (rank_ == 0) return add(0, mine, wait_limit, peers);
  awaits_all_ = true;
  peers.send_value(peers.first(), MessageKind::kShare, number_, pack_number(wait_limit.count()),
                   mine);
}

std::optional<std::string> Gathering::take_piece(Peer& peer, const std::string& bytes) const {
  peer.pieces += bytes;
  if (peer.pieces.size() <= most_) return std::nullopt;
  return "it gave more than " + std::to_string(most_) + " bytes";
}

std::optional<std::string> Gathering::take_share(Peer& peer, const Message& share, bool met,
                                                 Peers& peers) {
  using WaitLimit = milliseconds::rep;
  const int rank = peers.rank_of(peer);
  const auto wait_limit = unpack_number<WaitLimit>(share.bytes);
  const bool expected = share.number == number_ && !values_.contains(rank);
  if (!met || !expected || wait_limit.value_or(-1) < 0) return kUnawaited;
  add(rank, std::exchange(peer.pieces, {}) + share.bytes.substr(sizeof(WaitLimit)),
      milliseconds(*wait_limit), peers);
  return std::nullopt;
}

// Adds a rank's value. The last one completes the gathering: all ranks get all values.
void Gathering::add(int rank, std::string value, milliseconds wait_limit, Peers& peers) {
  if (stopped_) return;
  if (values_.empty()) first_came_ = LiveClock::now();
  wait_limit_ = values_.empty() ? wait_limit : std::max(wait_limit_, wait_limit);
  values_[rank] = std::move(value);
  if (values_.size() < static_cast<std::size_t>(ranks_)) return;
  gathered_.emplace();
  for (auto& [each, its] : values_) gathered_->push_back(std::move(its));
  values_.clear();
  const std::string all = joined(*gathered_);
  for (Peer& peer : peers.all()) peers.send_value(peer, MessageKind::kAll, number_, "", all);
  ++number_;
}

std::optional<std::string> Gathering::take_all(Peer& first, const Message& all) {
  gathered_ = split(std::exchange(first.pieces, {}) + all.bytes, ranks_);
  if (!gathered_ || !std::exchange(awaits_all_, false) || all.number != number_) {
    gathered_.reset();
    return kUnawaitedValues;
  }
  ++number_;
  return std::nullopt;
}

std::optional<std::string> Gathering::find_missing(const Peers& peers, milliseconds timeout) const {
  if (values_.empty()) return std::nullopt;
  std::vector<char> came;
  for (const Peer& peer : peers.all()) {
    const int rank = peers.rank_of(peer);
    came.push_back(values_.contains(rank) ? 1 : 0);
    if (came.back() != 0 || peer.state == Peer::State::kHere || rank == 0) continue;
    return rank_text(rank) + " ended before the others";
  }
  const auto limit = std::max(wait_limit_, timeout);
  if (wait_limit_ == patient_ || LiveClock::now() - first_came_ < limit) return std::nullopt;
  return missing_ranks_text(came) + " did not reach the barrier within " + limit_text(limit);
}

}  // namespace syncline::live
