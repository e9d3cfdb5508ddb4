#include "core/cost.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/collective/nccl.h"

namespace syncline::collective {

namespace {

// A collective on the links, for all payloads with the same number of chunks.
struct Work {
  CollectiveKind kind;
  const Algorithm* algorithm;
  Groups groups;
  std::int64_t chunks;
  Stages stages;
  CollectiveCost cost;
  CollectiveCost at_once;                             // the same, all stages as one
  bool takes_long = false;                            // its longest chain is slow to find
  bool too_long = false;                              // true: too slow, so steady_ends
  std::size_t kept = 0;                               // most payloads in `ends`
  std::map<double, std::vector<StageEnd>> ends = {};  // by payload bytes
  LastEnds last_ends = {};
  LastEnds least_ends = {};  // of ranks that run ahead of each other without limit

  // Returns the ends of its stages, for a payload of `bytes`.
  std::vector<StageEnd> walk(double bytes) const {
    return too_long ? steady_ends(*cost.footprint, stages, cost.stages, bytes)
                    : stage_ends(*cost.footprint, stages, cost.stages, bytes);
  }

  bool operator==(const Collective& other) const {
    return kind == other.kind && algorithm == other.algorithm && groups == other.groups;
  }
  bool is(const Collective& other, std::int64_t other_chunks) const {
    return *this == other && chunks == other_chunks;
  }
};

bool same_tiers(const std::vector<Tier>& a, const std::vector<Tier>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tier& x, const Tier& y) {
    return x.span == y.span && x.latency == y.latency && x.bandwidth == y.bandwidth &&
           x.upload_ratio == y.upload_ratio && x.flow_cap == y.flow_cap &&
           x.oversubscription == y.oversubscription;
  });
}

// Returns the number of messages to search for the longest chain.
double messages_of(const Footprint& footprint, const Stages& stages) {
  double messages = 0;
  for (const Stage& stage : stages) {
    for (std::size_t s = stage.first; s < stage.last; ++s) {
      messages += static_cast<double>(footprint.sets()[s].messages.size()) *
                  static_cast<double>(stage.repeat);
    }
  }
  return messages;
}

// Returns the cost on links with `more` times the bandwidth.
CollectiveCost at_bandwidth(CollectiveCost cost, double more) {
  cost.seconds_per_byte /= more;
  for (StageCost& stage : cost.stages) {
    stage.seconds_per_byte /= more;
    stage.flow_rate *= more;
    for (auto& [link, seconds] : stage.links) seconds /= more;
  }
  return cost;
}

}  // namespace

// Collectives on a network, computed once for all caches on it. Callers hold the lock only during a
// new computation; results never change.
class CostCache::Links {
 public:
  explicit Links(const Cluster& cluster)
      : tiers_(cluster.tiers), topology_(cluster.topology), network_(cluster) {}

  // Returns the process's object for these links, which lives as long as a cache uses it.
  static std::shared_ptr<Links> of(const Cluster& cluster) {
    static std::mutex lock;
    static std::vector<std::weak_ptr<Links>> known;
    const std::lock_guard<std::mutex> guard(lock);
    std::erase_if(known, [](const auto& links) { return links.expired(); });
    for (const auto& each : known) {
      auto links = each.lock();
      if (links && links->network_.ranks() == cluster.ranks() &&
          links->topology_ == cluster.topology && same_tiers(links->tiers_, cluster.tiers)) {
        return links;
      }
    }
    auto fresh = std::make_shared<Links>(cluster);
    known.push_back(fresh);
    return fresh;
  }

  Work& work(const Collective& collective, std::int64_t chunks);

  // Returns the ends of the stages for a payload of `bytes`.
  std::vector<StageEnd> ends(Work& work, double bytes) {
    if (work.kept == 0) return work.walk(bytes);
    const std::lock_guard<std::mutex> guard(lock_);
    if (work.ends.size() >= work.kept && !work.ends.contains(bytes)) return work.walk(bytes);
    const auto [it, fresh] = work.ends.try_emplace(bytes);
    if (fresh) it->second = work.walk(bytes);
    return it->second;
  }
  // Returns the last of them, up to rounding.
  StageEnd last_end(Work& work, double bytes) {
    const std::lock_guard<std::mutex> guard(lock_);
    return work.last_ends.at(bytes, [&](double each) { return work.walk(each).back(); });
  }
  // Returns the earliest of it if ranks run ahead of each other without limit, up to rounding.
  StageEnd least_end(Work& work, double bytes) {
    const std::lock_guard<std::mutex> guard(lock_);
    return work.least_ends.at(bytes, [&](double each) {
      return stage_ends(*work.cost.footprint, work.stages, work.cost.stages, each, true).back();
    });
  }

 private:
  std::shared_ptr<const Footprint> footprint(const Collective& collective) const;

  std::vector<Tier> tiers_;
  std::shared_ptr<const fabric::Topology> topology_;
  Network network_;
  std::mutex lock_;
  std::vector<std::unique_ptr<Work>> works_;
};

// A collective in this cache.
struct CostCache::Entry {
  std::shared_ptr<Links> links;
  Work& work;
  double latency;    // factor on the links' latency
  double bandwidth;  // factor on the links' bandwidth
  // Costs on shifted links; empty: the links' own.
  std::optional<CollectiveCost> own_cost = {};
  std::optional<CollectiveCost> own_at_once = {};

  // Latencies by payload bytes; if all messages cost the same, one list under 0.
  std::unordered_map<Bytes, std::vector<Seconds>> latencies = {};
  const std::pair<const Bytes, std::vector<Seconds>>* last_latencies = nullptr;

  const CollectiveCost& cost() const { return own_cost ? *own_cost : work.cost; }
  const CollectiveCost& at_once() const { return own_at_once ? *own_at_once : work.at_once; }
  bool uniform() const { return work.cost.footprint->uniform(); }

  // Returns the ends of the stages. Times are sums of latencies and bytes / bandwidths, so those on
  // shifted links are those of another payload, scaled.
  std::vector<StageEnd> ends(double bytes) const {
    std::vector<StageEnd> ends = links->ends(work, moved(bytes));
    for (StageEnd& end : ends) end = shifted(end);
    return ends;
  }
  // Returns the earliest end of the last stage if ranks run ahead of each other without limit. If
  // the longest chain is slow to find: one message and its busiest link's bytes.
  StageEnd least_end(double bytes) const {
    if (work.takes_long) {
      const Seconds transfer = at_once().seconds_per_byte * bytes;
      return {latency * work.cost.footprint->fastest() + transfer, transfer};
    }
    return shifted(links->least_end(work, moved(bytes)));
  }

  // Return the payload to walk on the unshifted links, and its end on the shifted ones.
  double moved(double bytes) const {
    return work.takes_long ? bytes : bytes / (latency * bandwidth);
  }
  StageEnd shifted(const StageEnd& end) const {
    if (latency == 1 && bandwidth == 1) return end;
    const double shift = work.takes_long ? 1 / bandwidth : latency;
    const Seconds transfer = end.transfer * shift;
    return {(end.time - end.transfer) * latency + transfer, transfer};
  }

  // Returns each stage's time minus its transfer; negative if it began early.
  std::vector<Seconds> added(double bytes) const {
    if (!uniform()) return stage_latencies(ends(bytes), cost().stages, bytes);
    // If all messages have the fastest latency, each round adds it, for any payload.
    std::vector<Seconds> list;
    for (const Stage& stage : work.stages) {
      list.push_back(static_cast<double>(stage.repeat) * work.cost.footprint->fastest() * latency);
    }
    return list;
  }

  // True if stages overlap: they wait less than 0 in addition to their transfers.
  bool overlaps(Seconds waited, Seconds transfer) const {
    constexpr double kRounding = 1e-9;
    return cost().stages.size() > 1 && waited < -kRounding * transfer;
  }

  // Returns a payload's waits in addition to its transfer: by stage, or as one if ranks run so far
  // ahead of each other that the transfers of stages overlap.
  std::vector<Seconds> waits(double bytes) const {
    std::vector<Seconds> list = added(bytes);
    if (uniform()) return list;
    const Seconds transfer = cost().seconds_per_byte * bytes;
    Seconds sum = std::accumulate(list.begin(), list.end(), Seconds{0});
    if (overlaps(sum, transfer)) {
      const Seconds whole = sum + transfer;
      return {std::max(0.0, whole - at_once().seconds_per_byte * bytes)};
    }
    sum = std::max(0.0, sum);
    // A stage that begins early shortens the waits of the others by its gain.
    Seconds waited = 0;
    for (Seconds& seconds : list) waited += seconds = std::max(0.0, seconds);
    for (Seconds& seconds : list) seconds *= waited > 0 ? sum / waited : 1;
    return list;
  }
  // Returns the sum of waits() and the transfer, up to rounding.
  Seconds quick_time(double bytes) {
    const Seconds transfer = cost().seconds_per_byte * bytes;
    if (uniform()) {
      const auto& rounds = latencies_of(0);
      return std::accumulate(rounds.begin(), rounds.end(), transfer);
    }
    const Seconds end = shifted(links->last_end(work, moved(bytes))).time;
    const bool overlap = overlaps(end - transfer, transfer);
    return std::max(end, overlap ? at_once().seconds_per_byte * bytes : transfer);
  }
  // Stored, because bounds ask for one size again and again.
  const std::vector<Seconds>& latencies_of(Bytes bytes) {
    if (uniform()) bytes = 0;
    if (last_latencies == nullptr || last_latencies->first != bytes) {
      const auto [it, fresh] = latencies.try_emplace(bytes);
      if (fresh) it->second = waits(static_cast<double>(bytes));
      last_latencies = &*it;
    }
    return last_latencies->second;
  }
  const CollectiveCost& cost_of(Bytes bytes) {
    return latencies_of(bytes).size() == cost().stages.size() ? cost() : at_once();
  }
};

// One payload with the time of a cost model.
struct CostCache::CostModelEntry {
  Collective collective;
  CollectiveCost cost;
  std::vector<Seconds> latencies;
  LeastCost least;  // up to `least_of` bytes
  Bytes least_of = -1;

  bool operator==(const Collective& other) const {
    return collective.kind == other.kind && collective.algorithm == other.algorithm &&
           collective.groups == other.groups && collective.bytes() == other.bytes() &&
           collective.nccl == other.nccl;
  }
};

namespace {

// Adds up the load of each stage's sets on the links.
CollectiveCost work_out(std::shared_ptr<const Footprint> footprint, const Stages& stages) {
  CollectiveCost cost;
  std::vector<std::int64_t> messages(footprint->link_kinds(), 0);
  cost.carried.assign(footprint->link_kinds(), 0.0);
  for (const auto& stage : stages) {
    const auto repeat = static_cast<double>(stage.repeat);
    BytesPerSecond flow_cap = std::numeric_limits<double>::infinity();
    std::vector<int> busy;
    for (std::size_t s = stage.first; s < stage.last; ++s) {
      const SetFootprint& set = footprint->sets()[s];
      flow_cap = std::min(flow_cap, set.flow_cap);
      for (const auto& [kind, count] : set.load) {
        if (messages[static_cast<std::size_t>(kind)] == 0) busy.push_back(kind);
        messages[static_cast<std::size_t>(kind)] += count;
      }
    }
    std::sort(busy.begin(), busy.end());
    StageCost& evaluated = cost.stages.emplace_back();
    double slowest = stage.fraction / flow_cap;
    for (const int kind : busy) {
      auto& count = messages[static_cast<std::size_t>(kind)];
      const double share = stage.fraction * static_cast<double>(count) / footprint->parts();
      const double seconds = share / footprint->capacity(kind);
      slowest = std::max(slowest, seconds);
      evaluated.links.emplace_back(kind, seconds * repeat);
      cost.carried[static_cast<std::size_t>(kind)] += share * repeat;
      count = 0;
    }
    evaluated.seconds_per_byte = slowest * repeat;
    evaluated.flow_rate = stage.fraction / slowest;
    cost.seconds_per_byte += evaluated.seconds_per_byte;
  }
  cost.footprint = std::move(footprint);
  return cost;
}

// Returns all stages' transfers as if they began together: each link works for as long as before.
CollectiveCost at_once(const CollectiveCost& cost) {
  CollectiveCost whole;
  whole.footprint = cost.footprint;
  whole.carried = cost.carried;
  if (cost.stages.empty()) return whole;
  std::map<int, double> work;
  for (const StageCost& stage : cost.stages) {
    for (const auto& [kind, seconds] : stage.links) work[kind] += seconds;
  }
  for (const auto& [kind, seconds] : work) {
    whole.seconds_per_byte = std::max(whole.seconds_per_byte, seconds);
  }
  // The smallest share of the payload that a stage sends in one flow, over the time of all stages.
  double least = std::numeric_limits<double>::infinity();
  for (const StageCost& stage : cost.stages) {
    least = std::min(least, stage.flow_rate * stage.seconds_per_byte);
  }
  whole.stages.push_back(
      {whole.seconds_per_byte, {work.begin(), work.end()}, least / whole.seconds_per_byte});
  return whole;
}

}  // namespace

double CollectiveCost::payloads_sent(int rank) const {
  // The innermost tier's ports are the ranks'; a rank's port out comes first (network.h).
  if (footprint->link_kinds() == 0) return 0;
  const int kind = footprint->kind_of_link()[static_cast<std::size_t>(Network::port_of(rank))];
  return kind < 0 ? 0 : carried[static_cast<std::size_t>(kind)];
}

std::vector<std::vector<int>> joint_kinds(const std::vector<const CollectiveCost*>& costs) {
  // Many costs have few footprints, so these distinguish links.
  std::vector<const Footprint*> footprints;
  std::vector<std::size_t> footprint_of;
  for (const auto* cost : costs) {
    const auto known = std::find(footprints.begin(), footprints.end(), cost->footprint.get());
    footprint_of.push_back(static_cast<std::size_t>(known - footprints.begin()));
    if (known == footprints.end()) footprints.push_back(cost->footprint.get());
  }
  std::vector<std::vector<int>> distinct;  // by footprint
  if (footprints.size() == 1) {
    for (std::size_t kind = 0; kind < footprints.front()->link_kinds(); ++kind) {
      distinct.push_back({static_cast<int>(kind)});
    }
  } else if (!footprints.empty()) {
    std::set<std::vector<int>> seen;
    std::vector<int> kinds(footprints.size());
    for (std::size_t id = 0; id < footprints.front()->kind_of_link().size(); ++id) {
      for (std::size_t f = 0; f < kinds.size(); ++f) kinds[f] = footprints[f]->kind_of_link()[id];
      if (std::any_of(kinds.begin(), kinds.end(), [](int kind) { return kind >= 0; })) {
        seen.insert(kinds);
      }
    }
    distinct.assign(seen.begin(), seen.end());
  }
  std::vector<std::vector<int>> joint;
  for (const auto& kinds : distinct) {
    auto& list = joint.emplace_back();
    for (const std::size_t f : footprint_of) list.push_back(kinds[f]);
  }
  return joint;
}

CostCache::CostCache(const Cluster& cluster) : cluster_(cluster), links_(Links::of(cluster)) {}
CostCache::CostCache(const Cluster& cluster, const LinkShift& shift)
    : cluster_(cluster), latency_(shift.latency), bandwidth_(shift.bandwidth) {
  Cluster unshifted = cluster;
  unshifted.tiers = shift.from;
  links_ = Links::of(unshifted);
}
CostCache::~CostCache() = default;

// Returns a collective's work on these links. It is computed once.
Work& CostCache::Links::work(const Collective& collective, std::int64_t chunks) {
  const std::lock_guard<std::mutex> guard(lock_);
  for (const auto& known : works_) {
    if (known->is(collective, chunks)) return *known;
  }
  constexpr double kFewMessages = 1 << 21;  // some milliseconds
  Stages stages =
      collective.algorithm->stages(collective.kind, collective.groups.size, collective.elements);
  CollectiveCost cost = work_out(footprint(collective), stages);
  constexpr double kMaxMessages = 1 << 25;  // a fifth of a second
  const double messages = messages_of(*cost.footprint, stages);
  const bool takes_long = messages > kFewMessages;
  // A walk takes 0.1 ms. Plans have some hundred sizes, searches very many.
  constexpr double kQuick = 1 << 13;
  constexpr std::size_t kManySizes = 256;
  const std::size_t kept = takes_long          ? std::numeric_limits<std::size_t>::max()
                           : messages > kQuick ? kManySizes
                                               : 0;
  const bool too_long = messages > kMaxMessages;
  CollectiveCost whole = at_once(cost);
  works_.push_back(std::make_unique<Work>(
      Work{collective.kind, collective.algorithm, collective.groups, chunks, std::move(stages),
           std::move(cost), std::move(whole), takes_long, too_long, kept}));
  return *works_.back();
}

// Payloads that differ only in their chunks use the same edges.
std::shared_ptr<const Footprint> CostCache::Links::footprint(const Collective& collective) const {
  for (const auto& known : works_) {
    if (*known == collective) return known->cost.footprint;
  }
  const auto edges = collective.algorithm->edges(collective.kind, collective.groups.size);
  return std::make_shared<const Footprint>(network_, collective.groups, edges);
}

// Returns the collective's entry in this cache.
CostCache::Entry& CostCache::entry(const Collective& collective) {
  const std::int64_t chunks =
      collective.algorithm->chunks(collective.kind, collective.groups.size, collective.elements);
  // Plans use a handful of different collectives, mostly the same ones again: these come first.
  if (last_ != nullptr && last_->work.is(collective, chunks)) return *last_;
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry->work.is(collective, chunks);
  });
  if (known != entries_.end()) {
    last_ = known->get();
    std::rotate(entries_.begin(), known, known + 1);
    return *last_;
  }
  Work& work = links_->work(collective, chunks);
  entries_.push_back(std::make_unique<Entry>(Entry{links_, work, latency_, bandwidth_}));
  last_ = entries_.back().get();
  if (bandwidth_ != 1) {
    last_->own_cost = at_bandwidth(work.cost, bandwidth_);
    last_->own_at_once = at_bandwidth(work.at_once, bandwidth_);
  }
  return *last_;
}

// Returns the time by the cluster's cost model, else by NCCL's. On a fabric it is that of a longer
// payload if these ranks get less bandwidth than the measured ones.
std::optional<CollectiveTime> CostCache::cost_model_time(const Collective& collective) {
  if (collective.bytes() == 0 || collective.groups.size < 2) return std::nullopt;
  if (cluster_.cost_model) {
    const auto answer = cluster_.cost_model(collective);
    if (answer && (cluster_.topology == nullptr || answer->measured_on < 2)) return answer;
    if (answer) {
      const double share = share_of_measured(collective, answer->measured_on);
      constexpr double kRounding = 1e-9;
      if (std::fabs(share - 1) < kRounding) return answer;
      Collective longer = collective;
      longer.elements =
          std::max<std::int64_t>(1, std::llround(static_cast<double>(longer.elements) / share));
      return cluster_.cost_model(longer);
    }
  }
  return nccl_.time(collective);
}

// Returns the share that the fabric lets pass here / its share between the first `measured_on`
// ranks of each group, without failures and other jobs.
double CostCache::share_of_measured(const Collective& collective, int measured_on) {
  for (const auto& [known, share] : shares_of_measured_) {
    if (known.kind == collective.kind && known.groups == collective.groups) return share;
  }
  Cluster whole = cluster_;
  if (whole.topology->as_measured != nullptr) whole.topology = whole.topology->as_measured;
  Collective measured = collective;
  measured.groups.size = std::min(measured_on, collective.groups.size);
  const double share = passing_share(cluster_, collective) / passing_share(whole, measured);
  return shares_of_measured_.emplace_back(collective, share).second;
}

namespace {

// Returns a number that payloads of one size between other ranks, as a pipeline's, seldom share.
Bytes number_of(const Collective& collective) {
  constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;
  std::uint64_t number = static_cast<std::uint64_t>(collective.bytes());
  for (const int part : {collective.groups.base, collective.groups.member_step,
                         collective.groups.size, static_cast<int>(collective.kind)}) {
    number = (number ^ static_cast<std::uint64_t>(part)) * kMix;
  }
  return static_cast<Bytes>(number >> 1);
}

}  // namespace

// Returns the entry of a payload with the time of a cost model, or nullptr if the links decide.
CostCache::CostModelEntry* CostCache::cost_model_entry(const Collective& collective) {
  if (!cluster_.cost_model && !collective.nccl) return nullptr;
  if (last_cost_model_ != nullptr && *last_cost_model_ == collective) return last_cost_model_;
  const Bytes number = number_of(collective);
  const auto [first, last] = cost_model_entries_.equal_range(number);
  const auto known =
      std::find_if(first, last, [&](const auto& e) { return *e.second == collective; });
  if (known != last) return last_cost_model_ = known->second.get();
  const auto answer = cost_model_time(collective);
  if (!answer) return nullptr;

  // Stretched links lengthen latency and transfer alike.
  const Seconds time = answer->time / answer->link_slowdown;
  Entry& links = entry(collective);
  const auto bytes = static_cast<double>(collective.bytes());
  auto fresh = std::make_unique<CostModelEntry>();
  fresh->collective = collective;
  // A cost model below the sum of the stages means that they overlap; their load on the links
  // stays. A time that equals the links' up to rounding is no overlap; nor can a single stage
  // overlap.
  constexpr double kRounding = 1e-9;
  const CollectiveCost& staged = links.cost_of(collective.bytes());
  const bool below = time < (1 - kRounding) * staged.seconds_per_byte * bytes;
  fresh->cost = below && staged.stages.size() > 1 ? links.at_once() : staged;
  fresh->latencies.assign(fresh->cost.stages.size(), 0);
  const Seconds transfer = fresh->cost.seconds_per_byte * bytes;
  if (time >= transfer) {
    // The cost model's time above the transfer, in the proportions of the links' own latencies.
    const auto& own = links.latencies_of(collective.bytes());
    const bool alike = own.size() == fresh->latencies.size();
    const Seconds sum = alike ? std::accumulate(own.begin(), own.end(), Seconds{0}) : 0;
    for (std::size_t s = 0; s < fresh->latencies.size(); ++s) {
      fresh->latencies[s] = (time - transfer) * (sum > 0 ? own[s] / sum : s == 0 ? 1 : 0);
    }
  }
  for (Seconds& latency : fresh->latencies) latency *= answer->link_slowdown;
  CollectiveCost& cost = fresh->cost;
  cost.scale = answer->link_slowdown * std::min(1.0, time / transfer);
  cost.seconds_per_byte *= cost.scale;
  for (StageCost& stage : cost.stages) {
    stage.seconds_per_byte *= cost.scale;
    for (auto& [link, seconds] : stage.links) seconds *= cost.scale;
  }
  last_cost_model_ = fresh.get();
  cost_model_entries_.emplace(number, std::move(fresh));
  return last_cost_model_;
}

// Returns the tangent at this payload: the longest path is convex, so its tangent is a lower bound.
// As ranks run ahead of each other, only a rank's own link is surely shared. The first byte waits
// for one message, for any number of rounds, or not at all if stages overlap (waits).
LeastCost CostCache::least_chunked_cost(const Collective& chunked, const Collective& payload) {
  Entry& links = entry(chunked);
  LeastCost least;
  const bool overlap = !links.uniform() && links.cost().stages.size() > 1;
  least.first = overlap ? 0 : links.latency * links.work.cost.footprint->fastest();
  if (links.uniform()) {
    const auto& rounds = links.latencies_of(payload.bytes());
    least.latency = std::accumulate(rounds.begin(), rounds.end(), Seconds{0});
    least.seconds_per_byte = links.cost().seconds_per_byte;
    return least;
  }
  const Bytes bytes = std::max<Bytes>(1, payload.bytes());
  const StageEnd end = links.least_end(static_cast<double>(bytes));
  least.latency = end.time - end.transfer;
  least.seconds_per_byte = end.transfer / static_cast<double>(bytes);
  return least;
}

// Returns the minimum over numbers of chunks: the smallest payloads have the fewest rounds, the
// largest keep the links busiest.
LeastCost CostCache::least_of_links(const Collective& collective, Bytes largest) {
  LeastCost least = least_chunked_cost(collective, collective);
  const auto chunks = [&](std::int64_t elements) {
    return collective.algorithm->chunks(collective.kind, collective.groups.size, elements);
  };
  for (const std::int64_t elements : {std::int64_t{1}, largest / collective.unit}) {
    if (chunks(elements) == chunks(collective.elements)) continue;
    Collective other = collective;
    other.elements = elements;
    const LeastCost others = least_chunked_cost(other, collective);
    least.latency = std::min(least.latency, others.latency);
    least.seconds_per_byte = std::min(least.seconds_per_byte, others.seconds_per_byte);
  }
  return least;
}

// Returns a rate and a latency that no payload of 1 to `largest` bytes undercuts. The rate is the
// minimum of the busiest link's and of the cost model's time per byte, the latency the minimum cost
// in addition. The cost model is asked at each doubling of the size.
LeastCost CostCache::least(const Collective& collective, Bytes largest) {
  CostModelEntry* own = cost_model_entry(collective);
  if (own == nullptr) return least_of_links(collective, largest);
  if (own->least_of == largest) return own->least;
  std::vector<std::pair<double, Seconds>> times;
  const double busiest = entry(collective).at_once().seconds_per_byte * own->cost.scale;
  double rate = busiest;
  for (Bytes size = std::max<Bytes>(1, largest); size >= 1; size /= 2) {
    Collective other = collective;
    other.elements = std::max<std::int64_t>(1, size / other.unit);
    if (other.nccl) choose_algorithm(other, kNcclName, cluster_);
    const auto answer = cost_model_time(other);
    if (!answer) continue;
    const auto bytes = static_cast<double>(other.bytes());
    rate = std::min(rate, entry(other).at_once().seconds_per_byte * answer->link_slowdown);
    times.emplace_back(bytes, answer->time);
    rate = std::min(rate, answer->time / bytes);
  }
  LeastCost least;
  least.latency = std::numeric_limits<double>::infinity();
  for (const auto& [bytes, time] : times) {
    least.latency = std::min(least.latency, std::max(0.0, time - rate * bytes));
  }
  if (times.empty()) least.latency = 0;
  least.seconds_per_byte = rate;
  least.scale = busiest > 0 ? rate / busiest : 1;
  own->least = least;
  own->least_of = largest;
  return least;
}

const CollectiveCost& CostCache::cost(const Collective& collective) {
  if (const CostModelEntry* cost_model = cost_model_entry(collective)) return cost_model->cost;
  return entry(collective).cost_of(collective.bytes());
}

const std::vector<Seconds>& CostCache::latencies(const Collective& collective) {
  if (const CostModelEntry* cost_model = cost_model_entry(collective)) return cost_model->latencies;
  return entry(collective).latencies_of(collective.bytes());
}

Seconds CostCache::time(const Collective& collective) {
  const CollectiveCost& known = cost(collective);
  const auto& list = latencies(collective);
  return std::accumulate(list.begin(), list.end(), cluster_.collective_overhead) +
         known.seconds_per_byte * static_cast<double>(collective.bytes());
}

Seconds CostCache::quick_time(const Collective& collective) {
  if (cluster_.cost_model || collective.nccl) {
    if (const auto cost_model = cost_model_time(collective))
      return cluster_.collective_overhead + cost_model->time;
  }
  return cluster_.collective_overhead +
         entry(collective).quick_time(static_cast<double>(collective.bytes()));
}

}  // namespace syncline::collective
