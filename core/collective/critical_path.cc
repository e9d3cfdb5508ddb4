#include "core/collective/critical_path.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "core/collective/colour.h"

namespace syncline::collective {
namespace {

// What one round puts on the links. A round touches few of many links: clearing it costs no more
// than filling it.
class RoundLoad {
 public:
  explicit RoundLoad(const Network& network)
      : network_(network), load_(static_cast<std::size_t>(network.link_count()), 0.0) {}

  void add(const std::vector<int>& route, double fraction) {
    for (const int id : route) {
      if (network_.link(id).per_flow) continue;
      load_[static_cast<std::size_t>(id)] += fraction;
      touched_.push_back(id);
    }
  }

  // What a message of that share takes for each byte of the payload, beside the others.
  double seconds_per_byte(const std::vector<int>& route, double fraction) const {
    double seconds = 0;
    for (const int id : route) {
      const Link& link = network_.link(id);
      const double bytes = link.per_flow ? fraction : load_[static_cast<std::size_t>(id)];
      seconds = std::max(seconds, bytes / link.capacity);
    }
    return seconds;
  }

  void clear() {
    for (const int id : touched_) load_[static_cast<std::size_t>(id)] = 0;
    touched_.clear();
  }

 private:
  const Network& network_;
  std::vector<double> load_;  // by link
  std::vector<int> touched_;
};

// Calls visit(from, to, fraction, route) for every message of a round, in all groups.
template <typename Visit>
void for_each_message(const Network& network, const Groups& groups, const Stage& stage,
                      const Visit& visit) {
  std::vector<int> route;
  for (int g = 0; g < groups.count; ++g) {
    for (const auto& edge : stage.edges) {
      const int from = groups.rank(g, edge.from);
      const int to = groups.rank(g, edge.to);
      route.clear();
      network.route(from, to, route);
      visit(from, to, edge.fraction, route);
    }
  }
}

}  // namespace

bool CriticalPath::Message::operator<(const Message& other) const {
  return std::tie(from, to, latency, seconds_per_byte) <
         std::tie(other.from, other.to, other.latency, other.seconds_per_byte);
}

CriticalPath::CriticalPath(const Network& network, const Groups& groups, const Stages& stages)
    : fastest_(network.fastest()) {
  RoundLoad load(network);
  Seconds least = std::numeric_limits<double>::infinity();
  Seconds most = 0;
  for (const auto& stage : stages) {
    // First what the round puts on each link, then how long each message takes beside the others.
    for_each_message(network, groups, stage, [&](int, int, double fraction, const auto& route) {
      load.add(route, fraction);
    });
    auto& messages = stages_.emplace_back();
    double slowest = 0;
    for_each_message(
        network, groups, stage, [&](int from, int to, double fraction, const auto& route) {
          const double seconds = load.seconds_per_byte(route, fraction);
          const Seconds latency = network.latency(network.crossing(from, to));
          messages.push_back(
              {static_cast<std::size_t>(from), static_cast<std::size_t>(to), latency, seconds});
          slowest = std::max(slowest, seconds);
          least = std::min(least, latency);
          most = std::max(most, latency);
        });
    load.clear();
    repeats_.push_back(stage.repeat);
    nominal_.push_back(slowest * static_cast<double>(stage.repeat));
  }
  uniform_ = least == most && most == fastest_;
  if (uniform_) {
    stages_.clear();
    return;
  }
  merge_alike(network.ranks());
}

void CriticalPath::merge_alike(int ranks) {
  // Colour refinement: a rank is distinguished by the messages that it sends and awaits in each
  // stage, and by the colours of the ranks at their other ends.
  std::vector<Colour> colours(static_cast<std::size_t>(ranks), 1);
  std::vector<Colour> next;
  std::unordered_map<Colour, std::size_t> number;
  while (true) {
    next = colours;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      for (const auto& m : stages_[s]) {
        const Colour what = mix(mix(s, bits(m.latency)), bits(m.seconds_per_byte));
        next[m.from] += mix(mix(what, 1), colours[m.to]);
        next[m.to] += mix(mix(what, 2), colours[m.from]);
      }
    }
    for (auto& colour : next) colour = mix(colour, 3);
    colours.swap(next);
    number.clear();
    for (const auto colour : colours) number.try_emplace(colour, number.size());
    if (number.size() == classes_) break;
    classes_ = number.size();
  }
  for (auto& messages : stages_) {
    for (auto& m : messages) {
      m.from = number.at(colours[m.from]);
      m.to = number.at(colours[m.to]);
    }
    std::sort(messages.begin(), messages.end());
    messages.erase(std::unique(messages.begin(), messages.end()), messages.end());
  }
}

std::vector<Seconds> CriticalPath::latencies(double bytes) const {
  std::vector<Seconds> added;
  added.reserve(repeats_.size());
  if (uniform_) {
    for (const auto repeat : repeats_) added.push_back(static_cast<double>(repeat) * fastest_);
    return added;
  }
  // Rounds in order, every message after its sender's last round and its receiver's last message:
  // by class, when it begins its next round, and when its last awaited message was off the wire.
  std::vector<Seconds> free(classes_, 0.0);
  std::vector<Seconds> received(classes_, 0.0);
  std::vector<Seconds> next_free, next_received;
  Seconds last = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    for (std::int64_t round = 0; round < repeats_[s]; ++round) {
      next_free = free;
      next_received = received;
      for (const auto& m : stages_[s]) {
        const Seconds begin = std::max(free[m.from], received[m.to]);
        const Seconds left = begin + fastest_ + m.seconds_per_byte * bytes;
        const Seconds arrived = begin + m.latency + m.seconds_per_byte * bytes;
        next_free[m.from] = std::max(next_free[m.from], left);
        next_free[m.to] = std::max(next_free[m.to], arrived);
        next_received[m.to] = std::max(next_received[m.to], left);
      }
      free.swap(next_free);
      received.swap(next_received);
    }
    const Seconds now = *std::max_element(free.begin(), free.end());
    added.push_back(std::max(0.0, now - last - nominal_[s] * bytes));
    last = now;
  }
  return added;
}

}  // namespace syncline::collective
