#include "core/input/conflicts.h"

#include <algorithm>

#include "core/collective/nccl.h"
#include "core/compress/codec.h"

namespace syncline::input {
namespace {

// What of streams, parts and updates cannot be had together.
std::optional<Conflict> order_conflict(const Strategy& strategy) {
  if (!strategy.overlap && strategy.streams > 1) {
    return Conflict{"streams", "has no meaning with overlap: false (everything on one stream)"};
  }
  if (strategy.partition > 0 && strategy.fusion.rule != Fusion::Rule::kNone) {
    return Conflict{"partition_mb",
                    "parts are made of gradients that travel alone: needs fusion rule 'none'"};
  }
  const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
  if (codec != nullptr && codec->low_rank) {
    const char* cut = strategy.partition > 0          ? "partition_mb"
                      : !strategy.fusion.cuts.empty() ? "fusion.cuts"
                      : strategy.fusion.cycle > 0     ? "fusion.cycle_ms"
                                                      : nullptr;
    if (cut != nullptr) {
      return Conflict{cut,
                      "cannot be combined with codec 'powersgd', which factors whole gradients "
                      "as their buckets close"};
    }
  }
  if (strategy.fusion.cycle > 0 && strategy.fusion.close != Fusion::Close::kBefore) {
    // Packing at a tick has a rule of its own: Horovod's.
    return Conflict{"fusion.cycle_ms",
                    "needs close: before, as what is packed at a tick never exceeds size_mb"};
  }
  const bool in_full = !shards_update(strategy);
  if (strategy.cross_step && in_full && strategy.update == Strategy::Update::kAfterAll) {
    return Conflict{"update",
                    "'after_all' leaves nothing to overlap: with cross_step each layer's "
                    "parameters are updated before its forward pass"};
  }
  if (strategy.compute_fusion.fuse_all_optimizer_ops &&
      strategy.update == Strategy::Update::kPerBucket) {
    return Conflict{"compute_fusion.fuse_all_optimizer_ops",
                    "cannot stand beside update 'per_bucket': the one operator waits for every "
                    "gradient"};
  }
  return std::nullopt;
}

// What of micro-batches, and of gathering and waiting in the backward pass, cannot be had together.
std::optional<Conflict> backward_conflict(const Strategy& strategy, const Cluster& cluster) {
  const bool sharded = strategy.exchange == Strategy::Exchange::kSharded;
  if (strategy.regather && !sharded) return Conflict{"regather", "needs exchange 'sharded'"};
  if (strategy.regather_group > 0 && cluster.ranks() % strategy.regather_group != 0) {
    return Conflict{"regather_group", "does not divide the " + std::to_string(cluster.ranks()) +
                                          " ranks into groups of one size"};
  }
  if (strategy.kept_groups > static_cast<int>(strategy.gather_groups.size())) {
    return Conflict{"kept_groups",
                    "gather_groups has only " + std::to_string(strategy.gather_groups.size())};
  }
  if (strategy.hierarchy.across_last && !strategy.each_micro_batch) {
    return Conflict{"hierarchy.across_last", "has a meaning only with each_micro_batch"};
  }
  const char* key = strategy.each_micro_batch ? "each_micro_batch"
                    : strategy.in_flight > 0  ? "in_flight"
                    : strategy.regather       ? "regather"
                                              : nullptr;
  if (key == nullptr) return std::nullopt;
  if (strategy.local_sgd.enabled) {
    return Conflict{key, "cannot be combined with local_sgd, which averages parameters"};
  }
  if (strategy.fusion.cycle > 0) return Conflict{key, "cannot be combined with fusion.cycle_ms"};
  if (strategy.priority == Strategy::Priority::kLayer) {
    return Conflict{key, "cannot be combined with priority 'layer'"};
  }
  return std::nullopt;
}

// What of the schedule (what is exchanged when) cannot be had together, with the key to change.
std::optional<Conflict> schedule_conflict(const Strategy& strategy, const Cluster& cluster) {
  const LocalSgd& local = strategy.local_sgd;
  const bool split = strategy.exchange != Strategy::Exchange::kAllReduce;
  const bool reordered = strategy.priority == Strategy::Priority::kLayer;
  const char* key = split                    ? "exchange"
                    : strategy.cross_step    ? "cross_step"
                    : reordered              ? "priority"
                    : strategy.partition > 0 ? "partition_mb"
                                             : nullptr;
  if (key != nullptr) {
    if (!strategy.overlap) return Conflict{key, "has no meaning with overlap: false"};
    if (local.enabled) {
      return Conflict{key, "cannot be combined with local_sgd, which averages parameters"};
    }
    if (strategy.fusion.cycle > 0) return Conflict{key, "cannot be combined with fusion.cycle_ms"};
    if (strategy.bucket_copies) {
      return Conflict{"bucket_copies", std::string("is DDP's, which has no ") + key};
    }
  }
  if (split) {
    if (strategy.hierarchy.form == Hierarchy::Form::kLeaders) {
      return Conflict{"hierarchy", "form 'leaders' has no shards for an exchange in two halves"};
    }
    const std::string& codec = strategy.compression.codec;
    const bool sharded = shards_update(strategy);
    const compress::Codec* own = compress::find_codec(codec);
    if (own != nullptr && (sharded || own->sparse || own->low_rank)) {
      return Conflict{"compression", sharded       ? "sharded parameters are gathered in full"
                                     : own->sparse ? "a sparse exchange has no halves"
                                                   : "an exchange of factors has no halves"};
    }
    for (const auto kind :
         {collective::CollectiveKind::kReduceScatter, collective::CollectiveKind::kAllGather}) {
      const int size = shard_ranks(strategy, cluster.ranks());
      const bool inside = size != cluster.ranks() && !strategy.hierarchy.inside.empty();
      const std::string& name = inside ? strategy.hierarchy.inside : strategy.algorithm;
      if (collective::choice_fits(name, kind, size)) continue;
      return Conflict{"algorithm", "'" + name + "' does no " +
                                       std::string(collective::to_string(kind)) + " among " +
                                       std::to_string(size) + " ranks"};
    }
  }
  const auto& costs = strategy.fusion.costs;
  if (!costs.empty() && cluster.ranks() > 1 &&
      std::none_of(costs.begin(), costs.end(),
                   [&](const auto& cost) { return cost.ranks == cluster.ranks(); })) {
    return Conflict{"fusion.costs",
                    "none is for the " + std::to_string(cluster.ranks()) + " ranks"};
  }
  if (local.enabled && strategy.fusion.cycle > 0) {
    return Conflict{"fusion.cycle_ms", "has no meaning with local_sgd"};
  }
  if (local.enabled && local.subgroup > 1) {
    if (strategy.hierarchy.form != Hierarchy::Form::kFlat) {
      return Conflict{"hierarchy", "cannot be combined with local_sgd.subgroup"};
    }
    if (!collective::choice_fits(strategy.algorithm, collective::CollectiveKind::kAllReduce,
                                 local.subgroup)) {
      return Conflict{"algorithm", "'" + strategy.algorithm + "' does no all_reduce among " +
                                       std::to_string(local.subgroup) + " ranks"};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Conflict> conflict_of(const Strategy& strategy, const Cluster& cluster) {
  const int ranks = cluster.ranks();
  std::optional<Conflict> conflict;
  const auto must_fit = [&](const char* key, const std::string& name,
                            collective::CollectiveKind kind, int size) {
    if (conflict || collective::choice_fits(name, kind, size)) return;
    conflict = Conflict{key, "'" + name + "' does no " + std::string(collective::to_string(kind)) +
                                 " among " + std::to_string(size) + " ranks"};
  };
  const Hierarchy& hierarchy = strategy.hierarchy;
  if (hierarchy.form == Hierarchy::Form::kFlat) {
    must_fit("algorithm", strategy.algorithm, collective::CollectiveKind::kAllReduce, ranks);
  } else {
    const int size = hierarchy.group_size;
    const auto& inside = hierarchy.inside.empty() ? strategy.algorithm : hierarchy.inside;
    const auto& across = hierarchy.across.empty() ? strategy.algorithm : hierarchy.across;
    must_fit("hierarchy.across", across, collective::CollectiveKind::kAllReduce, ranks / size);
    if (hierarchy.form == Hierarchy::Form::kSharded) {
      must_fit("hierarchy.inside", inside, collective::CollectiveKind::kReduceScatter, size);
      must_fit("hierarchy.inside", inside, collective::CollectiveKind::kAllGather, size);
    } else {
      must_fit("hierarchy.inside", inside,
               hierarchy.first_all_reduce ? collective::CollectiveKind::kAllReduce
                                          : collective::CollectiveKind::kReduce,
               size);
      must_fit("hierarchy.inside", inside, collective::CollectiveKind::kBroadcast, size);
    }
  }
  if (!conflict && strategy.local_sgd.enabled && !strategy.compression.codec.empty()) {
    conflict = Conflict{"compression",
                        "cannot be combined with local_sgd: parameters are averaged in full"};
  }
  if (!conflict) conflict = order_conflict(strategy);
  if (!conflict) conflict = backward_conflict(strategy, cluster);
  if (!conflict) conflict = schedule_conflict(strategy, cluster);
  return conflict;
}

}  // namespace syncline::input
