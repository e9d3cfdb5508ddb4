#include "core/input/parts.h"

#include <algorithm>

#include "core/collective/algorithm.h"
#include "core/collective/nccl.h"
#include "core/compress/codec.h"
#include "core/input/knobs.h"

namespace syncline::input {
namespace {

// Knobs that leave no room for others: the first that has moved of these is at fault.
struct Exclusion {
  std::string key;
  std::vector<std::string> others;
  std::string why;
};

const std::vector<Exclusion>& exclusions() {
  static const std::vector<Exclusion> table{
      Exclusion{"overlap",
                {"streams", "exchange", "cross_step", "priority", "partition_mb"},
                "has no meaning with overlap: false (everything on one stream)"},
      Exclusion{"fusion.rule",
                {"partition_mb"},
                "parts are made of gradients that travel alone: needs fusion rule 'none'"},
      Exclusion{"local_sgd",
                {"fusion.cycle_ms"},
                "cannot be combined with local_sgd, which averages parameters"},
      Exclusion{"fusion.cycle_ms",
                {"each_micro_batch", "in_flight", "regather", "exchange", "cross_step", "priority",
                 "partition_mb"},
                "cannot be combined with fusion.cycle_ms"},
      Exclusion{"priority",
                {"each_micro_batch", "in_flight", "regather"},
                "cannot be combined with priority 'layer'"},
      Exclusion{"bucket_copies",
                {"cross_step", "priority"},
                "cannot be combined with bucket_copies, which delay the next forward pass"}};
  return table;
}

bool has_moved(const Strategy& strategy, const std::string& key) {
  constexpr std::string_view kFusion = "fusion.";
  if (!key.starts_with(kFusion)) return !strategy_knobs().knob(key).at_rest(strategy);
  return !fusion_knobs().knob(key.substr(kFusion.size())).at_rest(strategy.fusion);
}

std::optional<Conflict> excluded(const Strategy& strategy) {
  for (const auto& [key, others, why] : exclusions()) {
    if (!has_moved(strategy, key)) continue;
    for (const std::string& other : others) {
      if (has_moved(strategy, other)) return Conflict{other, why};
    }
  }
  return std::nullopt;
}

// What of updates and of passes over the model cannot be had together.
std::optional<Conflict> order_conflict(const Strategy& strategy) {
  if (strategy.fusion.cycle > 0 && strategy.fusion.close != Fusion::Close::kBefore) {
    // Packing at a tick has a rule of its own: Horovod's.
    return Conflict{"fusion.cycle_ms",
                    "needs close: before, as what is packed at a tick never exceeds size_mb"};
  }
  const bool each = strategy.update == Strategy::Update::kPerBucket;
  if (strategy.cross_step && !shards_update(strategy) && !each) {
    return Conflict{"update",
                    "'after_all' leaves nothing to overlap: with cross_step each layer's "
                    "parameters are updated before its forward pass"};
  }
  if (strategy.compute_fusion.fuse_all_optimizer_ops && each) {
    return Conflict{"compute_fusion.fuse_all_optimizer_ops",
                    "cannot be combined with update 'per_bucket': the one operator waits for every "
                    "gradient"};
  }
  if (strategy.regather && strategy.exchange != Strategy::Exchange::kSharded) {
    return Conflict{"regather", "needs exchange 'sharded'"};
  }
  if (strategy.kept_groups > static_cast<int>(strategy.gather_groups.size())) {
    return Conflict{"kept_groups",
                    "gather_groups has only " + std::to_string(strategy.gather_groups.size())};
  }
  if (strategy.hierarchy.across_last && !strategy.each_micro_batch) {
    return Conflict{"hierarchy.across_last", "has a meaning only with each_micro_batch"};
  }
  return std::nullopt;
}

// What a codec, or an exchange in two halves, cannot be had with.
std::optional<Conflict> payload_conflict(const Strategy& strategy, const Cluster& cluster) {
  const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
  if (codec != nullptr && codec->low_rank) {
    for (const char* cut : {"partition_mb", "fusion.cuts", "fusion.cycle_ms"}) {
      if (!has_moved(strategy, cut)) continue;
      return Conflict{cut,
                      "cannot be combined with codec 'powersgd', which factors whole gradients "
                      "as their buckets close"};
    }
  }
  const auto& costs = strategy.fusion.costs;
  if (!costs.empty() && cluster.ranks() > 1 &&
      std::ranges::find(costs, cluster.ranks(), &Fusion::AssumedCost::ranks) == costs.end()) {
    return Conflict{"fusion.costs",
                    "none is for the " + std::to_string(cluster.ranks()) + " ranks"};
  }
  if (strategy.exchange == Strategy::Exchange::kAllReduce) return std::nullopt;
  if (strategy.hierarchy.form == Hierarchy::Form::kLeaders) {
    return Conflict{"hierarchy",
                    "form 'leaders' has no shards for a reduce-scatter and an all-gather"};
  }
  const bool of_gradients = !strategy.local_sgd.enabled;
  if (codec != nullptr && of_gradients &&
      (shards_update(strategy) || codec->sparse || codec->low_rank)) {
    return Conflict{"compression", shards_update(strategy)
                                       ? "sharded parameters are gathered in full"
                                   : codec->sparse ? "sparse gradients have no reduce-scatter"
                                                   : "factors have no reduce-scatter"};
  }
  return std::nullopt;
}

// Blocks of ranks with steps of their own: a block holds whole groups.
std::optional<Conflict> periods_conflict(const LocalSgd& local, int ranks) {
  if (local.periods.empty()) return std::nullopt;
  const auto blocks = static_cast<std::int64_t>(local.periods.size());
  if (!local.outer.any()) {
    return Conflict{"local_sgd.periods", "blocks of ranks need local_sgd.outer"};
  }
  if (ranks / local.subgroup % blocks != 0) {
    return Conflict{"local_sgd.periods", "found " + std::to_string(blocks) +
                                             ", expected a divisor of the " +
                                             std::to_string(ranks / local.subgroup) + " groups"};
  }
  const std::int64_t all =
      std::accumulate(local.periods.begin(), local.periods.end(), std::int64_t{0});
  if (all != local.period * blocks) {
    return Conflict{"local_sgd.periods",
                    "their mean is " + std::to_string(all) + " / " + std::to_string(blocks) +
                        ", expected local_sgd.period, " + std::to_string(local.period)};
  }
  return std::nullopt;
}

// What LocalSGD leaves no room for. Gradients are exchanged in its groups alone.
std::optional<Conflict> local_conflict(const Strategy& strategy, const Workload& workload,
                                       int ranks) {
  const LocalSgd& local = strategy.local_sgd;
  if (!local.enabled) return std::nullopt;
  const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
  if (codec != nullptr && (codec->sparse || codec->low_rank)) {
    return Conflict{"compression",
                    "cannot be combined with local_sgd, which averages every parameter: needs a "
                    "codec that keeps all elements"};
  }
  for (const char* key : {"each_micro_batch", "in_flight", "regather", "exchange", "cross_step",
                          "priority", "partition_mb"}) {
    if (local.subgroup > 1 || !has_moved(strategy, key)) continue;
    return Conflict{key, "cannot be combined with local_sgd, unless its subgroup sums gradients"};
  }
  if (strategy.cross_step && !shards_update(strategy)) {
    return Conflict{"cross_step",
                    "cannot be combined with local_sgd: parameters are averaged once "
                    "all are updated"};
  }
  if (local.subgroup > 1 && strategy.hierarchy.form != Hierarchy::Form::kFlat &&
      local.subgroup % strategy.hierarchy.group_size != 0) {
    return Conflict{"hierarchy.group_size",
                    "does not divide local_sgd.subgroup, " + std::to_string(local.subgroup)};
  }
  if (local.outer.any() && ranks > 1 && local.subgroup == ranks) {
    return Conflict{"local_sgd.outer", "all ranks are in one group: nothing is averaged"};
  }
  if (local.fragments > static_cast<int>(workload.tensors.size())) {
    return Conflict{"local_sgd.fragments",
                    "found " + std::to_string(local.fragments) + ", the workload has " +
                        std::to_string(workload.tensors.size()) + " gradients"};
  }
  if (const auto conflict = periods_conflict(local, ranks)) return conflict;
  const std::int64_t room =
      (local.periods.empty() ? local.period : std::ranges::min(local.periods)) / local.fragments;
  if (!local.adaptive && room < 1) {
    return Conflict{"local_sgd.fragments",
                    "more than the " + std::to_string(local.period) + " steps of a period"};
  }
  if (!local.adaptive && local.delay >= room) {
    return Conflict{"local_sgd.delay", "found " + std::to_string(local.delay) +
                                           ", expected less than period / "
                                           "fragments, " +
                                           std::to_string(room)};
  }
  if (local.delay > 0 && !strategy.overlap) {
    return Conflict{"local_sgd.delay", "has no meaning with overlap: false"};
  }
  return std::nullopt;
}

// A collective that a strategy's routes take, among so many ranks, by the algorithm of a key.
struct Taken {
  const char* key;
  std::string algorithm;
  collective::CollectiveKind kind;
  int ranks;
};

std::vector<Taken> collectives_of(const Strategy& strategy, int ranks) {
  using enum collective::CollectiveKind;
  const Hierarchy& hierarchy = strategy.hierarchy;
  const auto named = [&](const std::string& own) { return own.empty() ? strategy.algorithm : own; };
  std::vector<Taken> list;
  if (hierarchy.form == Hierarchy::Form::kFlat) {
    list.push_back({"algorithm", strategy.algorithm, kAllReduce, ranks});
  } else {
    const int size = hierarchy.group_size;
    const bool sharded = hierarchy.form == Hierarchy::Form::kSharded;
    const auto sum = sharded ? kReduceScatter : hierarchy.first_all_reduce ? kAllReduce : kReduce;
    const std::string inside = named(hierarchy.inside);
    list.push_back({"hierarchy.across", named(hierarchy.across), kAllReduce, ranks / size});
    list.push_back({"hierarchy.inside", inside, sum, size});
    list.push_back({"hierarchy.inside", inside, sharded ? kAllGather : kBroadcast, size});
  }
  if (strategy.exchange != Strategy::Exchange::kAllReduce) {
    const int size = shard_ranks(strategy, ranks);
    const std::string& name = size != ranks ? named(hierarchy.inside) : strategy.algorithm;
    for (const auto kind : {kReduceScatter, kAllGather}) {
      list.push_back({"algorithm", name, kind, size});
    }
  }
  return list;
}

std::optional<Conflict> algorithm_conflict(const Strategy& strategy, int ranks) {
  // What groups exchange in a step, and what is averaged over them.
  const int group = strategy.local_sgd.enabled ? strategy.local_sgd.subgroup : 1;
  std::vector<Taken> taken = collectives_of(strategy, group > 1 ? group : ranks);
  if (group > 1 && ranks > 1) {
    taken.push_back({"algorithm", strategy.algorithm, collective::CollectiveKind::kAllReduce,
                     strategy.local_sgd.outer.any() ? ranks / group : ranks});
  }
  const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
  const bool blocks = codec != nullptr && codec->block > 1;
  for (const auto& [key, algorithm, kind, among] : taken) {
    if (blocks && algorithm == collective::kNcclName && among > collective::kMostAllToAll) {
      return Conflict{"compression", "NCCL sums no " + strategy.compression.codec +
                                         ": the ranks send it by all_to_all, among at most " +
                                         std::to_string(collective::kMostAllToAll) +
                                         " ranks, found " + std::to_string(among)};
    }
    if (collective::choice_fits(algorithm, kind, among)) continue;
    return Conflict{key, "'" + algorithm + "' does no " + std::string(collective::to_string(kind)) +
                             " among " + std::to_string(among) + " ranks"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Conflict> whole_job_conflict(const Strategy& strategy, const Workload& workload) {
  const Parallel& parallel = workload.parallel;
  if (!parallel.whole_job()) return std::nullopt;
  const std::string beside = " is not modelled yet together with workload.parallel";
  if (strategy.local_sgd.enabled) return Conflict{"local_sgd", "averaging" + beside};
  if (parallel.pipeline > 1 && strategy.fusion.cycle > 0) {
    return Conflict{"fusion.cycle_ms", "releasing at ticks" + beside + ".pipeline"};
  }
  const bool experts = std::ranges::any_of(workload.tensors, &Tensor::expert);
  if (strategy.priority != Strategy::Priority::kReady && (parallel.pipeline > 1 || experts)) {
    return Conflict{"priority", "ranking buckets" + beside + (experts ? ".expert" : ".pipeline")};
  }
  return std::nullopt;
}

std::optional<Conflict> conflict_of(const Strategy& strategy, const Workload& workload,
                                    const Cluster& whole) {
  const Cluster cluster = exchanging(whole, workload.parallel);
  if (auto conflict = excluded(strategy)) return conflict;
  if (auto conflict = whole_job_conflict(strategy, workload)) return conflict;
  if (auto conflict = order_conflict(strategy)) return conflict;
  if (auto conflict = payload_conflict(strategy, cluster)) return conflict;
  if (auto conflict = local_conflict(strategy, workload, cluster.ranks())) return conflict;
  return algorithm_conflict(strategy, cluster.ranks());
}

}  // namespace syncline::input
