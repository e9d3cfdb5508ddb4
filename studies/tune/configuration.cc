#include "studies/tune/configuration.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/index.h"
#include "core/metrics.h"
#include "core/metrics/bound.h"
#include "core/plan.h"
#include "core/plan/buckets.h"
#include "core/plan/compute_fusion.h"
#include "core/plan/route.h"
#include "core/run/interference.h"
#include "core/run/stragglers.h"
#include "formats/input/conflicts.h"
#include "formats/input/knobs.h"

namespace syncline::tune {
namespace {

// Most places at which the dynamic programme may end buckets; of more gradients, places are evenly
// spread.
constexpr std::size_t kMaxEnds = 2000;

// Sizes with known costs: evenly spaced points in each doubling.
constexpr int kSizesADoubling = 128;
constexpr int kSizeBits = std::countr_zero(static_cast<unsigned>(kSizesADoubling));

// Returns the index of the largest such size up to `bytes`.
std::size_t size_at_or_below(Bytes bytes) {
  const auto size = static_cast<std::uint64_t>(std::max<Bytes>(1, bytes));
  const int doubling = static_cast<int>(std::bit_width(size)) - 1;
  const int shift = doubling - kSizeBits;
  const std::uint64_t part = (shift >= 0 ? size >> shift : size << -shift) - kSizesADoubling;
  return static_cast<std::size_t>(doubling * kSizesADoubling) + static_cast<std::size_t>(part);
}

Bytes known_size(std::size_t number) {
  const int shift = static_cast<int>(number / kSizesADoubling) - kSizeBits;
  const auto size = static_cast<Bytes>(number % kSizesADoubling) + kSizesADoubling;
  return std::max<Bytes>(1, shift >= 0 ? size << shift : size >> -shift);
}

// Returns the busiest link's time per byte of payload over all of an exchange's collectives, at a
// payload of `bytes`; 0 if a pipelined algorithm makes it depend on the size.
double busiest_link(const plan::Route& route, double bytes, collective::CostCache& cache) {
  std::vector<const collective::CollectiveCost*> costs;
  std::vector<std::vector<double>> by_kind;
  for (const auto& [collective, own_stream, last_micro_batch] : route) {
    const auto& algorithm = *collective.algorithm;
    if (algorithm.chunks(collective.kind, collective.groups.size, std::int64_t{1} << 40) > 1) {
      return 0;
    }
    const double share = static_cast<double>(collective.bytes()) / bytes;
    costs.push_back(&cache.cost(collective));
    by_kind.push_back(measure::link_times(*costs.back(), share));
  }
  double busiest = 0;
  for (const auto& joint : collective::joint_kinds(costs)) {
    double seconds = 0;
    for (std::size_t p = 0; p < joint.size(); ++p) {
      if (joint[p] >= 0) seconds += by_kind[p][index(joint[p])];
    }
    busiest = std::max(busiest, seconds);
  }
  return busiest;
}

constexpr Seconds kNever = std::numeric_limits<double>::infinity();

// Returns the ends, following the choices back from the last gradient.
std::vector<std::size_t> ends_of(const std::vector<std::size_t>& begin_of_last) {
  std::vector<std::size_t> ends;
  for (std::size_t i = begin_of_last.size() - 1; i > 0; i = begin_of_last[i]) ends.push_back(i - 1);
  std::reverse(ends.begin(), ends.end());
  return ends;
}

}  // namespace

// Finds the best buckets. Gradients 0..L-1 become ready in this order. A bucket is a run of them,
// released when its last one is ready; one stream sends buckets one after the other. C[i], the
// earliest time at which the first i gradients are exchanged, follows from
//   C[0] = 0,   C[i] = min over j < i of max(C[j], ready[i-1]) + cost(j, i),
// because a prefix matters only through its finish. Exact for every cost of a run. With an affine
// cost (latency + bytes * rate) other orders and groupings that are not contiguous are no better:
// moving a gradient from a later bucket to an earlier-released one never raises a suffix sum. Costs
// that depend on other streams are not covered.
FusionPlan best_fusion(const std::vector<Seconds>& ready, const RunCost& cost) {
  const std::size_t count = ready.size();
  std::vector<Seconds> finish(count + 1, 0);
  std::vector<std::size_t> choice(count + 1, 0);
  for (std::size_t i = 1; i <= count; ++i) {
    finish[i] = kNever;
    for (std::size_t j = 0; j < i; ++j) {
      const Seconds end = std::max(finish[j], ready[i - 1]) + cost(j, i);
      if (end >= finish[i]) continue;
      finish[i] = end;
      choice[i] = j;
    }
  }
  return {finish[count], ends_of(choice)};
}

Configuration::Configuration(const Scenario& scenario, Strategy strategy,
                             collective::CostCache& cache)
    : scenario_(scenario),
      cluster_(exchanging(scenario)),
      strategy_(std::move(strategy)),
      cache_(cache) {
  const Workload& workload = scenario.workload;
  const Cluster& cluster = scenario.cluster;
  for (const auto& tensor : workload.tensors) tensors_.push_back(&tensor);
  for (const auto& buffer : workload.buffers) tensors_.push_back(&buffer);

  // The plan without fusion gives the exchanged tensors, their order, and the time each is ready.
  Strategy alone = strategy_;
  set_fusion(alone, {});
  alone.fusion.align = strategy_.fusion.align;
  alone.partition = 0;
  const auto phases = plan::training_phases(alone, scenario.training);
  const plan::Plan plan = plan::make_plan(workload, cluster, alone, phases.back().point);
  steps_ = plan.steps;
  const auto own = plan::fused_workload(workload, cluster.device, alone.compute_fusion);
  lower_bound_ = phases.size() == 1 ? measure::lower_bound(plan, own ? *own : workload, cache) : 0;

  find_candidates(plan, ready_times(plan));
  units_ = FusionUnits(tensors_, candidates_, {});
  judge_order(plan, phases.size());
  judge_exactness();
  prepare_costs();
}

void Configuration::set_streams(int streams) {
  strategy_.streams = streams;
  judge_exactness();
}

bool Configuration::is_unsupported(const Strategy& strategy) const {
  return input::conflict_of(strategy, scenario_.workload, scenario_.cluster).has_value();
}

// Returns the time at which each bucket of the plan without fusion is ready: along the compute
// stream with stragglers and encoding, but without an encoder's launches per bucket.
std::vector<Seconds> Configuration::ready_times(const plan::Plan& plan) {
  const double stretch = run::expected_slowest(cluster().jitter, plan);
  std::vector<Seconds> ready(plan.buckets.size(), 0);
  Seconds clock = 0, encoded = 0;
  for (const auto& op : plan.ops) {
    int bucket = -1;
    if (const auto* compute = std::get_if<plan::Compute>(&op.work)) {
      clock += compute->seconds * stretch;
    }
    if (const auto* busy = std::get_if<plan::Busy>(&op.work)) {
      if (busy->reason == plan::Busy::Reason::kHost) clock += busy->seconds;
      if (busy->reason == plan::Busy::Reason::kEncode) {
        // Launches per bucket depend on the fusion; the traffic does not.
        encoded += std::max(0.0, busy->seconds - encode_launches());
        bucket = busy->bucket;
      }
    }
    if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
      bucket = collective->bucket;
    }
    if (bucket < 0) continue;
    auto& moment = ready[index(bucket)];
    if (moment == 0) moment = clock + (strategy_.overlap ? encoded : 0);
    computed_ = clock;
  }
  tail_ = clock - computed_;
  // On one stream an exchange blocks the computation, so that all of it comes first or later.
  if (!strategy_.overlap) std::fill(ready.begin(), ready.end(), computed_);
  return ready;
}

// Finds the tensors that a fusion rule may group: dense gradients, each a bucket in this plan.
void Configuration::find_candidates(const plan::Plan& plan, const std::vector<Seconds>& ready) {
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
    const plan::Bucket& bucket = plan.buckets[b];
    if (bucket.sparse || (bucket.codec != nullptr && bucket.codec->sparse)) continue;
    candidates_.push_back(bucket.tensors.front());
    single_.push_back(bucket);
    ready_.push_back(ready[b]);
  }
}

// Decides whether buckets are exchanged in order of readiness, and by themselves.
void Configuration::judge_order(const plan::Plan& plan, std::size_t phases) {
  // In two halves, across steps or by priority, buckets are not in order of readiness; copies and
  // the host's waits delay later gradients. The recurrence excludes updates between buckets, a mean
  // over several phases, and pipelines.
  simple_ = input::in_order_of_readiness(strategy_) && phases == 1 &&
            single_.size() == plan.buckets.size() && !scenario_.workload.parallel.whole_job();
  // Buckets of several formats cannot all be joined.
  for (const plan::Bucket& bucket : single_) {
    const plan::Bucket& first = single_.front();
    simple_ &= bucket.dtype == first.dtype && bucket.codec == first.codec;
    encodes_ |= bucket.codec != nullptr;
  }
}

// Decides whether the recurrence of the dynamic programme describes a step exactly: a bucket begins
// when it is ready and the previous one has ended.
void Configuration::judge_exactness() {
  // Slowdown of computation by exchanges delays later gradients.
  const bool slowed = strategy_.overlap && cluster().device.overlap.any();
  exact_ = simple_ && !slowed && single_.size() <= kMaxExact &&
           (strategy_.streams == 1 || !strategy_.overlap) &&
           (!encodes_ || !strategy_.overlap || encode_launches() == 0);
}

// Allocates costs of runs or sizes, and computes the busiest link's time per byte for bounds.
void Configuration::prepare_costs() {
  low_rank_ =
      std::ranges::any_of(single_, [](const auto& bucket) { return !bucket.factors.empty(); });
  sums_.assign(1, {});
  for (const plan::Bucket& bucket : single_) {
    plan::Bucket& sum = sums_.emplace_back(sums_.back());
    sum.elements += bucket.elements;
    sum.bytes += bucket.bytes;
    sum.padded_bytes += bucket.padded_bytes;
    sum.kept += bucket.kept;
  }
  for (const plan::Bucket& sum : sums_) padded_.push_back(sum.padded_bytes);
  const std::size_t room = single_.size() <= kMaxExact
                               ? single_.size() * (single_.size() + 1)
                               : size_at_or_below(sums_.back().padded_bytes) + 2;
  costs_.assign(room, -1.0);
  if (single_.size() > kMaxExact) least_costs_.assign(room, -1.0);
  if (single_.empty()) return;
  const plan::Bucket& largest = *std::ranges::max_element(single_, {}, &plan::Bucket::padded_bytes);
  const plan::BucketExchange exchange =
      plan::exchange_of(largest, scenario_.workload, cluster(), strategy_);
  link_seconds_per_byte_ =
      busiest_link(exchange.reduce, static_cast<double>(largest.padded_bytes), cache_);
}

Seconds Configuration::encode_launches() const {
  return static_cast<double>(strategy_.compression.encode_launches) * cluster().device.launch;
}

plan::Bucket Configuration::join_buckets(std::size_t first, std::size_t end) const {
  plan::Bucket bucket = single_[first];
  // A low-rank codec compresses a bucket if it compresses any of its tensors.
  for (std::size_t i = first + 1; low_rank_ && i < end; ++i) {
    for (const auto& factors : single_[i].factors) bucket.factors.push_back(factors);
    if (!bucket.factors.empty() && bucket.codec == nullptr) bucket.codec = single_[i].codec;
  }
  bucket.elements = sums_[end].elements - sums_[first].elements;
  bucket.bytes = sums_[end].bytes - sums_[first].bytes;
  bucket.padded_bytes = sums_[end].padded_bytes - sums_[first].padded_bytes;
  bucket.kept = sums_[end].kept - sums_[first].kept;
  if (bucket.codec != nullptr && bucket.codec->whole_bucket) {
    plan::factor_whole(bucket, bucket.codec, strategy_.compression);
  }
  return bucket;
}

Seconds Configuration::exchange_time(plan::Bucket bucket) const {
  const plan::BucketExchange exchange =
      plan::exchange_of(std::move(bucket), scenario_.workload, cluster(), strategy_);
  Seconds time = exchange.decode + (strategy_.overlap ? 0 : exchange.encode);
  for (const plan::RouteStep& leg : exchange.reduce) {
    const Seconds wire = cache_.quick_time(leg.collective);
    time += wire + run::sums_beyond(leg.collective, cluster().device, wire);
  }
  return time;
}

// Returns the time of a bucket of a known size.
Seconds Configuration::cost_of_size(std::size_t number) const {
  Seconds& known = costs_[number];
  if (known >= 0) return known;
  plan::Bucket bucket = single_.front();
  const double share =
      static_cast<double>(known_size(number)) / static_cast<double>(bucket.padded_bytes);
  const auto part = [share](std::int64_t of_first) {
    return std::max<std::int64_t>(of_first > 0 ? 1 : 0,
                                  std::llround(share * static_cast<double>(of_first)));
  };
  bucket.elements = part(bucket.elements);
  bucket.kept = part(bucket.kept);
  bucket.bytes = part(bucket.bytes);
  bucket.padded_bytes = known_size(number);
  return known = exchange_time(std::move(bucket));
}

// Returns the least time of a bucket between two known sizes: the smaller of their times.
Seconds Configuration::known_cost(Bytes bytes) const {
  const std::size_t below = size_at_or_below(bytes);
  Seconds& known = least_costs_[below];
  if (known < 0) known = std::min(cost_of_size(below), cost_of_size(below + 1));
  return known;
}

// Returns the time to exchange the candidates [first, end) as one bucket: exact and cached per run
// for up to kMaxExact candidates; else a lower bound by the bucket's size.
Seconds Configuration::cost(std::size_t first, std::size_t end) const {
  if (single_.size() > kMaxExact) {
    // The payload of a low-rank codec depends on the tensors' shapes, not on their size.
    if (low_rank_) return exchange_time(join_buckets(first, end));
    return known_cost(padded_[end] - padded_[first]);
  }
  Seconds& known = costs_[first * (single_.size() + 1) + end];
  if (known < 0) known = exchange_time(join_buckets(first, end));
  return known;
}

FusionPlan Configuration::optimum() const {
  const std::size_t count = single_.size();
  const std::size_t places = std::min(count, kMaxEnds);
  const auto end = [&](std::size_t place) {
    return place * count / std::max<std::size_t>(1, places);
  };
  std::vector<Seconds> ready;
  for (std::size_t place = 1; place <= places; ++place) ready.push_back(ready_[end(place) - 1]);
  FusionPlan best = best_fusion(
      ready, [&](std::size_t first, std::size_t last) { return cost(end(first), end(last)); });
  for (std::size_t& last : best.ends) last = end(last + 1) - 1;
  return best;
}

Seconds Configuration::step_time(Seconds finish) const {
  return (std::max(finish, computed_) + tail_) / steps_;
}

Seconds Configuration::lower_bound(const GroupEnds& ends) const {
  return lower_bounds(ends, {strategy_.streams}).front();
}

std::vector<Seconds> Configuration::lower_bounds(const GroupEnds& ends,
                                                 const std::vector<int>& streams) const {
  std::vector<Seconds> bounds(streams.size(), lower_bound_);
  if (!simple_) return bounds;
  // Two bounds, each of a schedule no worse than the real one. The first: buckets take turns on the
  // streams, each with the full network. The second: on any streams, all bytes released from a
  // moment on must pass the busiest link after it.
  struct Turns {
    std::vector<Seconds> free;  // by stream
    Seconds* next = nullptr;    // stream
    Seconds* end = nullptr;
  };
  std::vector<Turns> turns(streams.size());
  for (std::size_t k = 0; k < turns.size(); ++k) {
    turns[k].free.assign(index(strategy_.overlap ? streams[k] : 1), 0);
    turns[k].next = turns[k].free.data();
    turns[k].end = turns[k].next + turns[k].free.size();
  }
  Seconds passed = 0;
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    const Seconds ready = ready_[end - 1];
    const Seconds time = cost(first, end);
    for (Turns& each : turns) {
      *each.next = std::max(*each.next, ready) + time;
      if (++each.next == each.end) each.next = each.free.data();
    }
    const auto later = static_cast<double>(padded_.back() - padded_[first]);
    passed = std::max(passed, ready + link_seconds_per_byte_ * later);
    first = end;
  }
  for (std::size_t k = 0; k < turns.size(); ++k) {
    const Seconds finish = std::max(passed, std::ranges::max(turns[k].free));
    bounds[k] = std::max(bounds[k], step_time(finish));
  }
  return bounds;
}

}  // namespace syncline::tune
