// Plans of every kind, for the tests of live backends: every algorithm, hierarchy and codec, copies
// and parts.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/algorithm.h"
#include "core/collective/nccl.h"
#include "core/executor.h"
#include "core/plan.h"
#include "core/run/sample_gradients.h"
#include "tests/support/small_plans.h"

namespace syncline::test {

// Tensors of awkward sizes, in three formats, and one that is sparse. Computation takes no time, so
// that operations meet each other as closely as they can.
inline Workload awkward() {
  Workload workload;
  workload.tensors = {tensor_of("a.w", {7}),
                      tensor_of("a.b", {13, 3}),
                      sparse_tensor_of("embedding", {50, 3}, 8),
                      tensor_of("c.w", {64}, DType::kFp16),
                      tensor_of("d", {101}, DType::kFp64),
                      tensor_of("large", {2000}),
                      tensor_of("e", {1})};
  workload.buffers = {tensor_of("mean", {5})};
  return workload;
}

// Each rank's own, by rank.
inline run::Gradients gradients_of_all(const Workload& workload, int ranks,
                                       std::uint64_t seed = 1) {
  run::Gradients all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(run::sample_gradients(workload, rank, ranks, seed));
  }
  return all;
}

// As one rank has them: of the others nothing.
inline run::Gradients gradients_of_one(const Workload& workload, int rank, int ranks) {
  run::Gradients own(static_cast<std::size_t>(ranks));
  own[static_cast<std::size_t>(rank)] = run::sample_gradients(workload, rank, ranks, 1);
  return own;
}

struct LiveCase {
  std::string what;
  plan::Plan plan;
};

// How far sums of low rank may lie apart that were added in another order.
inline float tolerance_of_factors(const plan::Plan& plan) {
  const bool half = std::ranges::any_of(
      plan.buckets, [](const plan::Bucket& bucket) { return size_of(bucket.dtype) == 2; });
  return half ? 0.05F : 1e-3F;
}

inline LiveCase planned(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                        std::string what) {
  return {std::move(what), plan::make_plan(workload, cluster, strategy)};
}

// What the scenario's reader refuses is not planned.
inline bool fits(const Strategy& strategy, int ranks) {
  const auto& hierarchy = strategy.hierarchy;
  // By `nccl` blocks go all to all.
  const bool nccl = strategy.algorithm == collective::kNcclName;
  const collective::Algorithm* row =
      collective::find_algorithm(nccl ? "all_to_all" : strategy.algorithm);
  const int size = hierarchy.form == Hierarchy::Form::kFlat ? 1 : hierarchy.group_size;
  if (!row->fits(collective::CollectiveKind::kAllReduce, ranks / size)) return false;
  if (size == 1) return true;
  const auto inside = [&](collective::CollectiveKind kind) { return row->fits(kind, size); };
  if (hierarchy.form == Hierarchy::Form::kSharded) {
    return inside(collective::CollectiveKind::kReduceScatter) &&
           inside(collective::CollectiveKind::kAllGather);
  }
  return inside(hierarchy.first_all_reduce ? collective::CollectiveKind::kAllReduce
                                           : collective::CollectiveKind::kReduce) &&
         inside(collective::CollectiveKind::kBroadcast);
}

inline std::vector<LiveCase> live_cases(const Workload& workload, int ranks) {
  std::vector<LiveCase> list;
  const Cluster cluster = cluster_of(ranks, 1);
  for (const auto& algorithm : collective::algorithms()) {
    for (const auto form :
         {Hierarchy::Form::kFlat, Hierarchy::Form::kLeaders, Hierarchy::Form::kSharded}) {
      for (const int streams : {1, 2}) {
        Strategy strategy;
        strategy.algorithm = std::string(algorithm.name);
        strategy.hierarchy.form = form;
        strategy.hierarchy.group_size = 2;
        strategy.streams = streams;
        if (form != Hierarchy::Form::kFlat && ranks % 2 != 0) continue;
        if (!fits(strategy, ranks)) continue;
        strategy.fusion.rule = streams == 1 ? Fusion::Rule::kOne : Fusion::Rule::kSize;
        strategy.fusion.size = 200;
        strategy.fusion.align = 32;
        list.push_back(planned(workload, cluster, strategy,
                               strategy.algorithm + " form " +
                                   std::to_string(static_cast<int>(form)) + " streams " +
                                   std::to_string(streams)));
      }
    }
  }
  for (const char* codec : {"dgc", "fp16", "bf16", "int8", "int4", "fp8", "fp8_e5m2"}) {
    Strategy strategy;
    strategy.compression.codec = codec;
    if (compress::find_codec(codec)->block > 1) strategy.algorithm = "all_to_all";
    strategy.compression.sparsity = {0.75};
    strategy.compression.min_elements = 30;
    list.push_back(planned(workload, cluster, strategy, codec));
  }
  for (const char* codec : {"powersgd", "batched_powersgd"}) {
    Strategy strategy;
    strategy.compression.codec = codec;
    strategy.compression.rank = 2;
    strategy.compression.min_elements = 30;
    list.push_back(planned(workload, cluster, strategy, codec));
  }
  Strategy copies;
  copies.fusion.rule = Fusion::Rule::kOne;
  copies.bucket_copies = true;
  Cluster slow = cluster;
  slow.device.memory = 1e9;
  list.push_back(planned(workload, slow, copies, "copies"));
  Strategy parts;
  parts.partition = 400;
  list.push_back(planned(workload, cluster, parts, "parts"));
  return list;
}

// Parameters averaged in fragments with an outer step, each as it is or in blocks, applied at once
// or a step later; `group`: ranks that are one replica.
inline std::vector<LiveCase> outer_cases(const Workload& workload, Cluster cluster, int group) {
  cluster.device.memory = 1e10;
  std::vector<LiveCase> list;
  for (const std::string codec : {"", "int8", "fp8"}) {
    for (const int delay : {0, 1}) {
      Strategy strategy;
      strategy.compression.codec = codec;
      if (!codec.empty()) strategy.algorithm = "all_to_all";
      LocalSgd& local = strategy.local_sgd;
      local.enabled = true;
      local.period = 4;
      local.fragments = 2;
      local.delay = delay;
      local.subgroup = group;
      local.outer = {Outer::Optimizer::kNesterov, 0.7, 0.9, 0.25};
      list.push_back(planned(workload, cluster, strategy,
                             "outer steps, " + codec + ", delay " + std::to_string(delay)));
    }
  }
  return list;
}

// Tensors that every world up to six ranks splits evenly, in three formats.
inline Workload even() {
  Workload workload;
  workload.tensors = {tensor_of("a", {60}),
                      tensor_of("b", {120, 2}),
                      tensor_of("c", {180}, DType::kFp16),
                      tensor_of("d", {60}, DType::kFp64),
                      tensor_of("e", {600}),
                      tensor_of("f", {120})};
  workload.buffers = {tensor_of("mean", {60})};
  return workload;
}

// Plans whose steps meet or whose exchange is split: halves, LocalSGD, steps that begin before the
// last one's exchange is over, updates by bucket, waits of the host.
inline std::vector<LiveCase> step_cases(const Workload& workload, int ranks) {
  std::vector<LiveCase> list;
  const auto add = [&](const Strategy& strategy, const std::string& what) {
    list.push_back(planned(workload, cluster_of(ranks, 1), strategy, what));
  };
  for (const int streams : {1, 3}) {
    Strategy base;
    base.streams = streams;
    const std::string many = " streams " + std::to_string(streams);
    Strategy decoupled = base;
    decoupled.exchange = Strategy::Exchange::kDecoupled;
    add(decoupled, "decoupled" + many);
    decoupled.cross_step = true;
    add(decoupled, "decoupled across steps" + many);
    Strategy sharded = base;
    sharded.exchange = Strategy::Exchange::kSharded;
    sharded.cross_step = true;
    add(sharded, "sharded" + many);
    sharded.regather = true;
    add(sharded, "gathered again" + many);
    Strategy crossing = base;
    crossing.cross_step = true;
    crossing.priority = Strategy::Priority::kLayer;
    crossing.partition = 400;
    add(crossing, "crossing" + many);
    Strategy local = base;
    local.local_sgd.enabled = true;
    local.local_sgd.period = 2;
    add(local, "local SGD" + many);
    Strategy updates = base;
    updates.update = Strategy::Update::kPerBucket;
    updates.host_sync = true;
    add(updates, "updates by bucket" + many);
  }
  Strategy alone;
  alone.overlap = false;
  add(alone, "no overlap");
  return list;
}

}  // namespace syncline::test
