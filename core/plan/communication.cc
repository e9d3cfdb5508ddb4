#include "core/communication.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/index.h"
#include "core/cost.h"
#include "core/job/parallel.h"
#include "core/plan/buckets.h"
#include "core/plan/fetch_trace.h"
#include "core/plan/fusion.h"
#include "core/plan/route.h"

namespace syncline::plan {
namespace {

// Returns streams, waits and overheads, which are the same for all exchanges.
Communication without_exchanges(const Workload& workload, const Cluster& cluster,
                                const Strategy& strategy) {
  Communication communication;
  communication.ranks = cluster.ranks();
  communication.streams = strategy.overlap ? strategy.streams : 0;
  communication.across_stream = strategy.overlap && strategy.traits.across_stream;
  communication.updates_by_bucket = strategy.update == Strategy::Update::kPerBucket;
  communication.each_micro_batch = strategy.each_micro_batch && !strategy.after_passes;
  communication.gathers_each_pass = gathers_each_pass(strategy);
  communication.cross_step = strategy.cross_step;
  communication.in_flight = strategy.traits.in_flight;
  const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
  communication.by_clock = strategy.exchange == Strategy::Exchange::kAllReduce &&
                           !strategy.each_micro_batch && strategy.traits.in_flight == 0 &&
                           !strategy.cross_step && (codec == nullptr || !codec->low_rank);
  if (strategy.host_sync) communication.host_sync = cluster.device.host_sync;
  communication.step_begin = cluster.step_overhead();
  if (cluster.ranks() > 1 && strategy.traits.broadcast_buffers) {
    communication.buffer_broadcast = workload.buffer_broadcast;
  }
  return communication;
}

// Returns, by tensor, if one of the first `count` groups contains it.
std::vector<char> in_groups(const Workload& workload, const std::vector<std::vector<int>>& groups,
                            std::size_t count) {
  std::vector<char> in(workload.tensors.size(), 0);
  for (std::size_t g = 0; g < std::min(count, groups.size()); ++g) {
    for (const int t : groups[g]) in[index(t)] = 1;
  }
  return in;
}

// Splits exchanges in two halves: one part of the sum per rank, then all parts for all ranks. If
// parameters have their own buckets, gradients in none of these are summed at once.
void split(Communication& communication, const Workload& workload, const Cluster& cluster,
           const Strategy& strategy, const std::vector<char>& gathered_apart) {
  const bool apart = !communication.parameters.empty();
  for (BucketExchange& exchange : communication.gradients) {
    const Bucket& bucket = exchange.bucket;
    const bool selected = bucket.codec != nullptr && bucket.codec->sparse;
    const bool factored = bucket.codec != nullptr && bucket.codec->low_rank;
    const bool dense = !bucket.sparse && !selected && !factored;
    const auto first = index(bucket.tensors.front());
    if (!dense || (apart && gathered_apart[first] == 0)) continue;
    if (shards_update(strategy)) exchange.shards = communication.shards;
    if (strategy.exchange != Strategy::Exchange::kShardedUpdate) {
      exchange.reduce = scatter_of(bucket, cluster, strategy);
      exchange.scattered = true;
    }
    if (apart) continue;
    exchange.gather = gather_of(bucket, workload, cluster, strategy, false);
    // The last unit is the root; its parameters are never resharded.
    const bool root = &exchange == &communication.gradients.back();
    if (strategy.regather && !root)
      exchange.regather = gather_of(bucket, workload, cluster, strategy, true);
  }
}

// Takes away the gathers for the backward pass of parameters that it does not reach.
void drop_unreached(Communication& communication) {
  int last = -1;
  for (const BucketExchange& sum : communication.gradients) last = std::max(last, sum.bucket.ready);
  for (BucketExchange& exchange : communication.parameters) {
    if (exchange.needed > last) exchange.regather.clear();
  }
}

// Adds parameters in their own buckets; those of the first groups stay gathered. Buckets that go in
// turn are needed when the earliest of them and of the later ones is.
void gather_apart(Communication& communication, const Workload& workload, const Cluster& cluster,
                  const Strategy& strategy) {
  const auto kept = in_groups(workload, strategy.gather_groups, index(strategy.traits.kept_groups));
  for (const Bucket& bucket : gather_buckets(workload, strategy, strategy.gather_groups)) {
    BucketExchange& exchange = communication.parameters.emplace_back();
    exchange.bucket = bucket;
    exchange.gather = gather_of(bucket, workload, cluster, strategy, false);
    exchange.needed = std::ranges::min(bucket.tensors);
    const bool again = strategy.regather && kept[index(exchange.needed)] == 0;
    if (again) exchange.regather = gather_of(bucket, workload, cluster, strategy, true);
  }
  if (!strategy.traits.buckets.in_turn) return;
  int needed = std::numeric_limits<int>::max();
  auto& parameters = communication.parameters;
  for (auto exchange = parameters.rbegin(); exchange != parameters.rend(); ++exchange) {
    exchange->needed = needed = std::min(needed, exchange->needed);
  }
  // Around all others is one that is gathered first and summed last: needed from the start on.
  const auto first = std::ranges::find_if(
      parameters, [](const BucketExchange& exchange) { return !exchange.regather.empty(); });
  if (parameters.end() - first < 2) return;
  std::vector<int> trained = first->bucket.tensors;
  std::erase_if(trained, [&](int t) { return workload.tensors[index(t)].frozen; });
  const auto& last = communication.gradients.back().bucket.tensors;
  if (std::ranges::is_permutation(trained, last)) first->needed = 0;
}

// Returns the strategy with buckets of its own for parameters, if they would be gathered as their
// gradients were scattered and some are frozen: the groups that gradients would make with them. The
// last group stays gathered.
Strategy with_gathers(const Workload& workload, const Strategy& strategy) {
  if (!holds_shards(strategy) || !strategy.gather_groups.empty() || strategy.traits.fetches.any() ||
      std::ranges::none_of(workload.tensors, &Tensor::frozen)) {
    return strategy;
  }
  Strategy with = strategy;
  std::vector<const Tensor*> tensors;
  std::vector<int> dense;
  for (const Tensor& tensor : workload.tensors) {
    if (!tensor.sparse) dense.push_back(static_cast<int>(tensors.size()));
    tensors.push_back(&tensor);
  }
  with.gather_groups = fuse(tensors, dense, strategy.fusion);
  if (!strategy.regather) return with;
  std::rotate(with.gather_groups.begin(), with.gather_groups.end() - 1, with.gather_groups.end());
  with.traits.kept_groups = 1;
  return with;
}

// Owns the parameters that the passes gather, and how.
class Fetched {
 public:
  Fetched(Communication& communication, const Workload& workload, const Cluster& cluster,
          const Strategy& strategy)
      : communication_(communication), workload_(workload), cluster_(cluster), strategy_(strategy) {
    communication.fetching = true;
  }

  // Adds the passes' gathers. A second copy exists once a step has gathered the parameters, of
  // frozen ones from the first step of the training on; those with one travel separately.
  void add() {
    const bool second = strategy_.traits.regather_group > 0;
    const bool later = strategy_.each_micro_batch && workload_.micro_batches > 1;
    std::vector<char> gathered;
    for (const Tensor& tensor : workload_.tensors) gathered.push_back(tensor.frozen ? 1 : 0);
    for (const FetchGroup& group : fetch_trace(workload_, strategy_).groups) {
      std::vector<int> copied, fresh;
      for (const int t : group.tensors) {
        (std::exchange(gathered[index(t)], 1) != 0 ? copied : fresh).push_back(t);
      }
      if (!second || fresh.empty()) {
        add(group, group.tensors, second, Fetch::Turn::kEach);
        continue;
      }
      if (!copied.empty()) add(group, copied, true, Fetch::Turn::kFirst);
      add(group, fresh, false, Fetch::Turn::kFirst);
      if (later) add(group, group.tensors, true, Fetch::Turn::kLater);
    }
  }

 private:
  void add(const FetchGroup& group, const std::vector<int>& tensors, bool again, Fetch::Turn turn) {
    for (Bucket& bucket : gather_buckets(workload_, strategy_, {tensors})) {
      Route route = gather_of(bucket, workload_, cluster_, strategy_, again);
      const auto [place, fresh] =
          places_.try_emplace(bucket.tensors, communication_.parameters.size());
      if (fresh) communication_.parameters.emplace_back().bucket = std::move(bucket);
      communication_.fetches.push_back(
          {place->second, std::move(route), group.asked, group.needed, turn});
    }
  }

  Communication& communication_;
  const Workload& workload_;
  const Cluster& cluster_;
  const Strategy& strategy_;
  std::map<std::vector<int>, std::size_t> places_;  // indices of the parameters, by tensors
};

// Returns the order of the buckets if the most urgent one is sent first, by their predicted times.
std::vector<int> urgent_order(const Communication& communication, const Workload& workload,
                              const Cluster& cluster, const Strategy& strategy) {
  collective::CostCache cache(cluster);
  std::vector<Urgent> items;
  Seconds clock = 0;
  int next = 0;
  for (const BucketExchange& exchange : communication.gradients) {
    for (; next <= exchange.bucket.ready; ++next) {
      clock += workload.tensors[index(next)].backward;
    }
    clock += exchange.encode;
    // The parameters that the forward pass needs first became ready last.
    const Seconds wait = exchange.release < 0 ? 0 : exchange.release - exchange.expected;
    Urgent item{clock + wait, -exchange.bucket.ready, 0, exchange.bucket.bytes};
    for (const RouteStep& leg : exchange.reduce) item.duration += cache.time(leg.collective);
    items.push_back(item);
  }
  return urgent_first(items, strategy.credit);
}

// Memory traffic of an outer step in bytes per byte of a gradient: to make it from a rank's
// parameters and those of the last outer step, and to take the step, including momentum and mixing.
struct OuterTraffic {
  double make = 0;
  double apply = 3;  // a mean is two reads and a write
};

OuterTraffic traffic_of(const Outer& outer) {
  if (!outer.any()) return {};
  const double momentum = outer.optimizer == Outer::Optimizer::kNesterov ? 2 : 0;
  return {3, 4 + momentum + (outer.mix > 0 ? 1 : 0)};
}

}  // namespace

Communication communication_of(const Workload& workload, const Cluster& cluster,
                               const Strategy& given, const TrainingPoint& point) {
  const Strategy strategy = with_gathers(workload, given);
  Communication communication = without_exchanges(workload, cluster, strategy);
  GradientBuckets gradients = gradient_buckets(workload, cluster, strategy, point);
  communication.gradients.reserve(gradients.buckets.size());
  for (std::size_t b = 0; b < gradients.buckets.size(); ++b) {
    communication.gradients.push_back(
        exchange_of(std::move(gradients.buckets[b]), workload, cluster, strategy));
    if (gradients.releases.empty()) continue;
    BucketExchange& exchange = communication.gradients[b];
    std::tie(exchange.release, exchange.expected) = gradients.releases[b];
  }
  const int holders = cluster.ranks() > 1 ? shard_ranks(strategy, cluster.ranks()) : 1;
  if (strategy.exchange != Strategy::Exchange::kAllReduce && holders > 1) {
    if (shards_update(strategy)) {
      communication.shards = holders;
      gather_apart(communication, workload, cluster, strategy);
      if (strategy.traits.buckets.sums_frozen) drop_unreached(communication);
      if (strategy.traits.fetches.any()) Fetched(communication, workload, cluster, strategy).add();
    }
    split(communication, workload, cluster, strategy,
          communication.fetching
              ? std::vector<char>(workload.tensors.size(), 1)
              : in_groups(workload, strategy.gather_groups, strategy.gather_groups.size()));
  }
  if (strategy.priority == Strategy::Priority::kLayer && cluster.ranks() > 1) {
    communication.order = urgent_order(communication, workload, cluster, strategy);
  }
  return communication;
}

Communication local_communication(const Workload& workload, const Cluster& cluster,
                                  const Strategy& strategy, const TrainingPoint& point) {
  Strategy inside = strategy;
  inside.local_sgd = {};
  inside.compression = {};
  const int group = cluster.ranks() > 1 ? strategy.local_sgd.subgroup : 1;
  Communication communication =
      group > 1 ? communication_of(workload, group_view(cluster, group), inside, point)
                : without_exchanges(workload, cluster, inside);
  if (!strategy.local_sgd.warmup_gradients) communication.buffer_broadcast = 0;
  return communication;
}

std::vector<std::vector<BucketExchange>> averaged_parameters(const Workload& workload,
                                                             const Cluster& cluster,
                                                             const Strategy& strategy) {
  // If gradients are exchanged, the fusion is theirs: parameters travel as one, and buffers stay if
  // DDP broadcasts them. An outer step is for parameters only.
  const LocalSgd& local = strategy.local_sgd;
  Fusion one;
  one.rule = Fusion::Rule::kOne;
  const bool fused = local.subgroup > 1 || local.warmup_gradients;
  const bool buffers = !local.warmup_gradients && !local.outer.any();
  const double share = local.outer.any() && holds_shards(strategy) ? 1.0 / local.subgroup : 1;
  const OuterTraffic traffic = traffic_of(local.outer);
  const auto seconds = [&](double times, const Bucket& bucket) {
    const double bytes = times * share * static_cast<double>(bucket.bytes);
    return cluster.device.memory > 0 ? bytes / cluster.device.memory : 0;
  };
  const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
  std::vector<std::vector<BucketExchange>> fragments;
  for (auto& buckets : parameter_buckets(workload, fused ? one : strategy.fusion,
                                         fused ? BucketTraits{} : strategy.traits.buckets, buffers,
                                         local.fragments)) {
    auto& own = fragments.emplace_back();
    for (Bucket& bucket : buckets) {
      bucket.averaged = true;
      const auto first = index(bucket.tensors.front());
      if (first < workload.tensors.size())
        compress(bucket, codec, strategy.compression, workload, 0);
      own.push_back(exchange_of(std::move(bucket), workload, cluster, strategy));
      BucketExchange& exchange = own.back();
      exchange.encode *= share;
      exchange.decode *= share;
      exchange.apply = seconds(traffic.apply, exchange.bucket);
      if (!local.outer.any()) continue;
      exchange.copy_in = seconds(traffic.make, exchange.bucket);
      exchange.copy_out = 0;
      exchange.reduce = sum_across_groups(exchange.bucket, cluster, strategy);
    }
  }
  return fragments;
}

}  // namespace syncline::plan
