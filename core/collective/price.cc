#include "core/collective/price.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "core/collective/nccl.h"

namespace syncline::collective {

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

// One payload that a law prices.
struct PriceBook::LawEntry {
  Collective collective;
  CollectivePrice price;
  std::vector<Seconds> latencies;
  std::optional<LeastPrice> least;  // up to `least_of` bytes
  Bytes least_of = -1;

  bool operator==(const Collective& other) const {
    return collective.kind == other.kind && collective.algorithm == other.algorithm &&
           collective.groups == other.groups && collective.bytes() == other.bytes() &&
           collective.nccl == other.nccl;
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
    // Groups work side by side: the messages of all of them share the links of a round.
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

std::optional<Seconds> PriceBook::law_time(const Collective& collective) const {
  if (collective.bytes() == 0 || collective.groups.size < 2) return std::nullopt;
  if (cluster_.law) {
    if (const auto answer = cluster_.law(collective)) return answer->time;
  }
  return nccl_law(cluster_, collective);
}

// The entry of a payload that a law prices, or nullptr where the links decide.
PriceBook::LawEntry* PriceBook::law_entry(const Collective& collective) {
  if (!cluster_.law && !collective.nccl) return nullptr;
  if (last_law_ != nullptr && *last_law_ == collective) return last_law_;
  const auto known = std::find_if(law_entries_.begin(), law_entries_.end(),
                                  [&](const auto& e) { return *e == collective; });
  if (known != law_entries_.end()) return last_law_ = known->get();
  const auto time = law_time(collective);
  if (!time) return nullptr;

  const Entry& links = entry(collective);
  const auto bytes = static_cast<double>(collective.bytes());
  auto fresh = std::make_unique<LawEntry>();
  fresh->collective = collective;
  fresh->price = links.price;
  fresh->latencies.assign(links.price.stages.size(), 0);
  const Seconds transfer = links.price.seconds_per_byte * bytes;
  if (*time >= transfer) {
    // What the law leaves above the transfer, in the proportions of the links' own latencies.
    const auto own = links.path.latencies(bytes);
    const Seconds sum = std::accumulate(own.begin(), own.end(), Seconds{0});
    for (std::size_t s = 0; s < own.size(); ++s) {
      fresh->latencies[s] = (*time - transfer) * (sum > 0 ? own[s] / sum : s == 0 ? 1 : 0);
    }
  } else {
    CollectivePrice& price = fresh->price;
    price.scale = *time / transfer;
    price.seconds_per_byte *= price.scale;
    for (StagePrice& stage : price.stages) {
      stage.seconds_per_byte *= price.scale;
      for (auto& [link, seconds] : stage.links) seconds *= price.scale;
    }
  }
  law_entries_.push_back(std::move(fresh));
  return last_law_ = law_entries_.back().get();
}

// Some rate and latency that no payload of 1 to `largest` bytes undercuts: the rate is the least of
// the links' and of the law's time per byte, the latency what every payload costs beyond it. The
// law is asked at each doubling of the size.
std::optional<LeastPrice> PriceBook::least(const Collective& collective, Bytes largest) {
  LawEntry* own = law_entry(collective);
  if (own == nullptr) return std::nullopt;
  if (own->least_of == largest) return own->least;
  std::vector<std::pair<double, Seconds>> times;
  double rate = own->price.seconds_per_byte;
  for (Bytes size = std::max<Bytes>(1, largest); size >= 1; size /= 2) {
    Collective other = collective;
    other.elements = std::max<std::int64_t>(1, size / other.unit);
    if (other.nccl) choose_algorithm(other, kNcclName, cluster_);
    const auto time = law_time(other);
    if (!time) continue;
    const auto bytes = static_cast<double>(other.bytes());
    if (times.empty()) rate = std::min(rate, entry(other).price.seconds_per_byte);
    times.emplace_back(bytes, *time);
    rate = std::min(rate, *time / bytes);
  }
  LeastPrice least;
  least.latency = std::numeric_limits<double>::infinity();
  for (const auto& [bytes, time] : times) {
    least.latency = std::min(least.latency, std::max(0.0, time - rate * bytes));
  }
  if (times.empty()) least.latency = 0;
  least.scale = own->price.seconds_per_byte > 0 ? rate / own->price.seconds_per_byte : 1;
  own->least = least;
  own->least_of = largest;
  return least;
}

const CollectivePrice& PriceBook::price(const Collective& collective) {
  if (const LawEntry* law = law_entry(collective)) return law->price;
  return entry(collective).price;
}

const std::vector<Seconds>& PriceBook::latencies(const Collective& collective) {
  if (const LawEntry* law = law_entry(collective)) return law->latencies;
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

}  // namespace syncline::collective
