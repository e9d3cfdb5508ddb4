#include "core/collective/price.h"

#include <algorithm>

namespace syncline {

struct PriceBook::Entry {
  CollectiveKind kind;
  const Algorithm* algorithm;
  Groups groups;
  std::int64_t chunks;
  CollectivePrice price;

  bool operator==(const Collective& other) const {
    return kind == other.kind && algorithm == other.algorithm && groups == other.groups;
  }
};

namespace {

int resource_of(const Link& link) { return 3 * link.tier + static_cast<int>(link.part); }

// One round's demand on each link, and the flows' own caps.
class Load {
 public:
  explicit Load(const Network& network)
      : network_(network), share_(static_cast<std::size_t>(network.link_count()), 0.0) {}

  void add(int from, int to, double fraction) {
    route_.clear();
    network_.route(from, to, route_);
    for (const int id : route_) {
      const Link& link = network_.link(id);
      if (link.per_flow) {
        slowest_flow_ = std::max(slowest_flow_, fraction / link.capacity);
        continue;
      }
      double& share = share_[static_cast<std::size_t>(id)];
      if (share == 0) touched_.push_back(id);
      share += fraction;
    }
  }

  // Adds `repeat` such rounds to the stage and begins anew.
  void settle(StagePrice& stage, double repeat) {
    double slowest = slowest_flow_;
    for (const int id : touched_) {
      const Link& link = network_.link(id);
      double& share = share_[static_cast<std::size_t>(id)];
      const double seconds = share / link.capacity;
      slowest = std::max(slowest, seconds);
      double& usage = stage.usage[static_cast<std::size_t>(resource_of(link))];
      usage = std::max(usage, seconds * repeat);
      stage.links.emplace_back(id, seconds * repeat);
      share = 0;
    }
    stage.seconds_per_byte = slowest * repeat;
    touched_.clear();
    slowest_flow_ = 0;
  }

 private:
  const Network& network_;
  std::vector<double> share_;
  std::vector<int> touched_;
  std::vector<int> route_;
  double slowest_flow_ = 0;
};

CollectivePrice work_out(const Network& network, const Collective& collective, int ranks) {
  CollectivePrice price;
  price.sent.assign(static_cast<std::size_t>(ranks), 0.0);
  Load load(network);
  const Groups& groups = collective.groups;
  const auto stages =
      collective.algorithm->stages(collective.kind, groups.size, collective.elements);
  const auto latencies = stage_latencies(network, groups, stages);
  for (const auto& stage : stages) {
    const auto repeat = static_cast<double>(stage.repeat);
    for (int g = 0; g < groups.count; ++g) {
      for (const auto& edge : stage.edges) {
        const int from = groups.rank(g, edge.from);
        load.add(from, groups.rank(g, edge.to), edge.fraction);
        price.sent[static_cast<std::size_t>(from)] += edge.fraction * repeat;
      }
    }
    StagePrice& priced = price.stages.emplace_back();
    load.settle(priced, repeat);
    priced.latency = latencies[price.stages.size() - 1];
    price.latency += priced.latency;
    price.seconds_per_byte += priced.seconds_per_byte;
    for (std::size_t r = 0; r < price.usage.size(); ++r) price.usage[r] += priced.usage[r];
  }
  return price;
}

}  // namespace

std::vector<Seconds> stage_latencies(const Network& network, const Groups& groups,
                                     const Stages& stages) {
  struct Message {
    std::size_t from;
    std::size_t to;
    Seconds latency;
  };
  std::vector<std::vector<Message>> messages;
  Seconds least = 0;
  Seconds most = 0;
  bool first = true;
  for (const auto& stage : stages) {
    auto& list = messages.emplace_back();
    for (int g = 0; g < groups.count; ++g) {
      for (const auto& edge : stage.edges) {
        const int from = groups.rank(g, edge.from);
        const int to = groups.rank(g, edge.to);
        const Seconds latency = network.latency(network.crossing(from, to));
        list.push_back({static_cast<std::size_t>(from), static_cast<std::size_t>(to), latency});
        least = first ? latency : std::min(least, latency);
        most = std::max(most, latency);
        first = false;
      }
    }
  }
  std::vector<Seconds> shares;
  if (least == most) {
    for (const auto& stage : stages) shares.push_back(static_cast<double>(stage.repeat) * most);
    return shares;
  }
  // Mixed tiers: follow when each rank is free, round by round.
  const Seconds both = network.fastest();
  std::vector<Seconds> free(static_cast<std::size_t>(network.ranks()), 0.0);
  std::vector<Seconds> received = free;  // when its last awaited message was off the wire
  std::vector<Seconds> next, off_wire;
  Seconds last = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (std::int64_t r = 0; r < stages[s].repeat; ++r) {
      next = free;
      off_wire = received;
      for (const auto& m : messages[s]) {
        const Seconds begin = std::max(free[m.from], received[m.to]);
        next[m.from] = std::max(next[m.from], begin + both);
        next[m.to] = std::max(next[m.to], begin + m.latency);
        off_wire[m.to] = std::max(off_wire[m.to], begin + both);
      }
      free.swap(next);
      received.swap(off_wire);
    }
    const Seconds now = *std::max_element(free.begin(), free.end());
    shares.push_back(now - last);
    last = now;
  }
  return shares;
}

PriceBook::PriceBook(const Cluster& cluster) : cluster_(cluster), network_(cluster) {}
PriceBook::~PriceBook() = default;

const CollectivePrice& PriceBook::price(const Collective& collective) {
  const std::int64_t chunks =
      collective.algorithm->chunks(collective.kind, collective.groups.size, collective.elements);
  // Plans use a handful of different collectives, mostly the same one again.
  if (last_ != nullptr && *last_ == collective && last_->chunks == chunks) return last_->price;
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return *entry == collective && entry->chunks == chunks;
  });
  if (known != entries_.end()) {
    last_ = known->get();
    return last_->price;
  }
  entries_.push_back(
      std::make_unique<Entry>(Entry{collective.kind, collective.algorithm, collective.groups,
                                    chunks, work_out(network_, collective, cluster_.ranks())}));
  last_ = entries_.back().get();
  return last_->price;
}

Seconds PriceBook::time(const Collective& collective) {
  const CollectivePrice& known = price(collective);
  return cluster_.collective_overhead + known.latency +
         known.seconds_per_byte * static_cast<double>(collective.bytes());
}

}  // namespace syncline
