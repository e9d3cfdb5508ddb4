#include "core/collective/price.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace syncline {

struct PriceBook::Entry {
  CollectiveKind kind;
  const Algorithm* algorithm;
  Groups groups;
  std::int64_t chunks;
  CollectivePrice price;
  CriticalPath path;
  // By payload bytes; where all messages pay alike, one list under 0.
  std::unordered_map<Bytes, std::vector<Seconds>> latencies;

  bool operator==(const Collective& other) const {
    return kind == other.kind && algorithm == other.algorithm && groups == other.groups;
  }
};

namespace {

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

CollectivePrice work_out(const Network& network, const Groups& groups, const Stages& stages) {
  CollectivePrice price;
  price.sent.assign(static_cast<std::size_t>(network.ranks()), 0.0);
  Load load(network);
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
    price.seconds_per_byte += priced.seconds_per_byte;
  }
  return price;
}

}  // namespace

PriceBook::PriceBook(const Cluster& cluster) : cluster_(cluster), network_(cluster) {}
PriceBook::~PriceBook() = default;

PriceBook::Entry& PriceBook::entry(const Collective& collective) {
  const Groups& groups = collective.groups;
  const std::int64_t chunks =
      collective.algorithm->chunks(collective.kind, groups.size, collective.elements);
  // Plans use a handful of different collectives, mostly the same one again.
  if (last_ != nullptr && *last_ == collective && last_->chunks == chunks) return *last_;
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return *entry == collective && entry->chunks == chunks;
  });
  if (known != entries_.end()) {
    last_ = known->get();
    return *last_;
  }
  const Stages stages =
      collective.algorithm->stages(collective.kind, groups.size, collective.elements);
  entries_.push_back(std::make_unique<Entry>(Entry{collective.kind,
                                                   collective.algorithm,
                                                   groups,
                                                   chunks,
                                                   work_out(network_, groups, stages),
                                                   CriticalPath(network_, groups, stages),
                                                   {}}));
  last_ = entries_.back().get();
  return *last_;
}

const CollectivePrice& PriceBook::price(const Collective& collective) {
  return entry(collective).price;
}

const std::vector<Seconds>& PriceBook::latencies(const Collective& collective) {
  Entry& known = entry(collective);
  const Bytes bytes = known.path.uniform() ? 0 : collective.bytes();
  const auto [it, fresh] = known.latencies.try_emplace(bytes);
  if (fresh) it->second = known.path.latencies(static_cast<double>(bytes));
  return it->second;
}

std::vector<Seconds> PriceBook::latencies_for(const Collective& collective, double bytes) {
  return entry(collective).path.latencies(bytes);
}

Seconds PriceBook::time(const Collective& collective) {
  const CollectivePrice& known = price(collective);
  const auto& list = latencies(collective);
  return std::accumulate(list.begin(), list.end(), cluster_.collective_overhead) +
         known.seconds_per_byte * static_cast<double>(collective.bytes());
}

}  // namespace syncline
