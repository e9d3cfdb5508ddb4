#include "core/measure/advice.h"

#include <algorithm>
#include <optional>

#include "core/measure/study.h"

namespace syncline {
namespace {

// One way to change a strategy.
struct Candidate {
  std::string change;
  Strategy strategy;
};

// Candidates of one kind: only the best of them is told.
struct Kind {
  std::vector<Candidate> candidates;
  bool changes_training = false;
};

Kind fusion_changes(const Strategy& strategy) {
  Kind kind;
  for (const int mebibytes : {1, 2, 4, 8, 16, 32, 64}) {
    Strategy changed = strategy;
    changed.fusion = Fusion{};
    changed.fusion.rule = Fusion::Rule::kSize;
    changed.fusion.size = mebibytes * kMiB;
    changed.fusion.align = strategy.fusion.align;
    changed.fusion.to_fp32 = strategy.fusion.to_fp32;
    changed.partition = 0;  // parts are made of gradients that travel alone
    // Ticks are the framework's: they stay, with their packing.
    changed.fusion.cycle = strategy.fusion.cycle;
    if (changed.fusion.cycle > 0) changed.fusion.close = Fusion::Close::kBefore;
    kind.candidates.push_back({"fuse gradients up to " + std::to_string(mebibytes) +
                                   " MiB (fusion: rule size, size_mb " + std::to_string(mebibytes) +
                                   ")",
                               changed});
  }
  if (strategy.fusion.cycle > 0) return kind;
  Strategy alone = strategy;
  alone.fusion = Fusion{};
  kind.candidates.push_back({"send each gradient by itself (fusion: rule none)", alone});
  return kind;
}

Kind stream_changes(const Strategy& strategy) {
  Kind kind;
  if (!strategy.overlap) {
    Strategy changed = strategy;
    changed.overlap = true;
    kind.candidates.push_back({"communicate during the backward pass (overlap: true)", changed});
    return kind;
  }
  for (const int streams : {2, 3, 4}) {
    if (streams <= strategy.streams) continue;
    Strategy changed = strategy;
    changed.streams = streams;
    kind.candidates.push_back({"use " + std::to_string(streams) +
                                   " communication streams (streams: " + std::to_string(streams) +
                                   ")",
                               changed});
  }
  return kind;
}

Kind hierarchy_changes(const Strategy& strategy, const Cluster& cluster) {
  Kind kind;
  const int group = cluster.gpus_per_node;
  if (cluster.nodes < 2 || group < 2 || strategy.hierarchy.form != Hierarchy::Form::kFlat ||
      strategy.exchange != Strategy::Exchange::kAllReduce || strategy.local_sgd.subgroup > 1) {
    return kind;
  }
  for (const bool sharded : {true, false}) {
    Strategy changed = strategy;
    changed.algorithm = "ring";
    changed.hierarchy = Hierarchy{};
    changed.hierarchy.form = sharded ? Hierarchy::Form::kSharded : Hierarchy::Form::kLeaders;
    changed.hierarchy.group_size = group;
    kind.candidates.push_back(
        {std::string("all-reduce in two levels, inside each node and across (hierarchy: form ") +
             (sharded ? "sharded)" : "leaders)"),
         changed});
  }
  return kind;
}

Kind algorithm_changes(const Strategy& strategy, const Cluster& cluster) {
  Kind kind;
  if (strategy.hierarchy.form != Hierarchy::Form::kFlat) return kind;
  for (const auto& algorithm : algorithms()) {
    if (algorithm.name == strategy.algorithm) continue;
    if (!algorithm.fits(CollectiveKind::kAllReduce, cluster.ranks())) continue;
    const bool halves = algorithm.fits(CollectiveKind::kReduceScatter, cluster.ranks()) &&
                        algorithm.fits(CollectiveKind::kAllGather, cluster.ranks());
    if (strategy.exchange != Strategy::Exchange::kAllReduce && !halves) continue;
    Strategy changed = strategy;
    changed.algorithm = algorithm.name;
    kind.candidates.push_back({"all-reduce by " + std::string(algorithm.name) +
                                   " (algorithm: " + std::string(algorithm.name) + ")",
                               changed});
  }
  return kind;
}

Kind compression_changes(const Strategy& strategy) {
  Kind kind;
  kind.changes_training = true;
  if (!strategy.compression.codec.empty() || strategy.local_sgd.enabled) return kind;
  if (strategy.exchange == Strategy::Exchange::kSharded) return kind;
  for (const char* codec : {"fp16", "dgc"}) {
    // A sparse exchange has no halves.
    if (strategy.exchange != Strategy::Exchange::kAllReduce && codec == std::string("dgc"))
      continue;
    Strategy changed = strategy;
    changed.compression.codec = codec;
    const std::string how = codec == std::string("dgc") ? "0.1 % of each large gradient"
                                                        : "gradients in half precision";
    kind.candidates.push_back({"send " + how + " (compression: codec " + codec + ")", changed});
  }
  return kind;
}

Kind averaging_changes(const Strategy& strategy) {
  Kind kind;
  kind.changes_training = true;
  if (strategy.local_sgd.enabled || !strategy.compression.codec.empty()) return kind;
  if (strategy.cross_step || strategy.exchange != Strategy::Exchange::kAllReduce) return kind;
  Strategy changed = strategy;
  changed.fusion.cycle = 0;
  changed.local_sgd.enabled = true;
  changed.local_sgd.period = 4;
  kind.candidates.push_back({"average parameters every 4 steps (local_sgd: period 4)", changed});
  return kind;
}

}  // namespace

std::vector<Advice> advise(const Scenario& scenario, const Strategy& strategy, Executor& executor,
                           PriceBook& book, double least_percent) {
  std::vector<Advice> advice;
  if (scenario.cluster.ranks() == 1) return advice;
  const Seconds now = price_strategy(scenario, strategy, executor, book).metrics.step_time;
  for (const Kind& kind : {fusion_changes(strategy), stream_changes(strategy),
                           hierarchy_changes(strategy, scenario.cluster),
                           algorithm_changes(strategy, scenario.cluster),
                           compression_changes(strategy), averaging_changes(strategy)}) {
    std::optional<Advice> best;
    for (const auto& candidate : kind.candidates) {
      const Seconds then =
          price_strategy(scenario, candidate.strategy, executor, book).metrics.step_time;
      const double gain = 100 * (1 - then / now);
      if (gain < least_percent || (best && gain <= best->gain_percent)) continue;
      best = Advice{candidate.change, candidate.strategy, then, gain, kind.changes_training};
    }
    if (best) advice.push_back(*best);
  }
  std::stable_sort(advice.begin(), advice.end(), [](const Advice& a, const Advice& b) {
    return a.gain_percent > b.gain_percent;
  });
  return advice;
}

}  // namespace syncline
