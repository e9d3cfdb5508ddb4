#include "core/dialect/dialects.h"

#include <algorithm>
#include <utility>

#include "core/dialect/changes.h"
#include "core/dialect/mindspore_rules.h"
#include "core/json/reader.h"

namespace syncline::dialect {
namespace {

using namespace mindspore;

// Places in parameter order, first layer first, as tensors, which are in backward order.
Parts in_backward_order(Parts groups, std::size_t count) {
  const int last = static_cast<int>(count) - 1;
  for (auto& group : groups) {
    std::reverse(group.begin(), group.end());
    for (int& index : group) index = last - index;
  }
  return groups;
}

Reading read(Reader config, const Workload& workload, const Cluster& cluster, bool as_documents) {
  Reading reading;
  // Parameters come first layer first; the workload's gradients in backward order.
  std::vector<const Tensor*> parameters;
  for (auto it = workload.tensors.rbegin(); it != workload.tensors.rend(); ++it) {
    parameters.push_back(&*it);
  }
  Context context = read_context(config, reading.notes);
  const Ids ids = read_ids(config, parameters, context);
  config.finish();
  Strategy& strategy = reading.strategy;
  strategy.fusion.rule = Fusion::Rule::kGroups;
  if (context.sharded && cluster.ranks() > 1) {
    // The graph of a step ends with its update; the next one gathers each layer's parameters ahead
    // of its forward pass.
    const Sharded groups = sharded_groups(context, parameters, ids, cluster.ranks(), reading.notes);
    if (!groups.gathered.empty()) {
      strategy.exchange = Strategy::Exchange::kSharded;
      strategy.cross_step = true;
    }
    strategy.gather_groups = in_backward_order(groups.gathered, parameters.size());
    Parts exchanged = groups.scattered;
    exchanged.insert(exchanged.end(), groups.all_reduced.begin(), groups.all_reduced.end());
    strategy.fusion.groups = in_backward_order(exchanged, parameters.size());
    return reading;
  }
  strategy.fusion.to_fp32 = !as_documents && !context.front_end() && any_narrow(workload);

  Parts groups;
  if (as_documents) {
    groups = documented_groups(context, parameters, ids);
  } else if (context.front_end()) {
    groups = front_end_groups(context, parameters, ids, reading.notes);
  } else {
    groups = reducer_groups(context, parameters, ids, reading.notes);
  }
  strategy.fusion.groups = in_backward_order(std::move(groups), parameters.size());
  return reading;
}

// Sizes by which both kinds of collective may have been fused.
std::vector<Json> suggest_sharded() {
  std::vector<Json> configs;
  for (const int gather : {64, 1, 2, 4, 8, 16, 32, 128, 256, 1024}) {
    for (const int scatter : {64, 1, 2, 4, 8, 16, 32, 128, 256, 1024}) {
      Json config{{"parallel_mode", "semi_auto_parallel"}, {"enable_parallel_optimizer", true}};
      config["comm_fusion"] = {{"allgather", {{"mode", "size"}, {"config", gather}}},
                               {"reducescatter", {{"mode", "size"}, {"config", scatter}}}};
      configs.push_back(config);
    }
  }
  return configs;
}

// Any partition into runs of its parameter order, first layer first, is an index list; everything
// in one AllReduce and every gradient alone have words of their own.
std::vector<Json> suggest(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                          const Workload&, const Cluster&) {
  if (strategy.exchange == Strategy::Exchange::kSharded) return suggest_sharded();
  Json config{{"parallel_mode", "data_parallel"}};
  if (buckets.size() < 2 || strategy.local_sgd.enabled) return {config};
  std::vector<Json> configs;
  Json ends = Json::array();
  std::int64_t last = -1;
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
    last += static_cast<std::int64_t>(bucket->tensors.size());
    ends.push_back(last);
  }
  const bool alone = std::all_of(buckets.begin(), buckets.end(), [](const plan::Bucket& bucket) {
    return bucket.tensors.size() == 1;
  });
  if (alone) {
    config["comm_fusion"] = {{"allreduce", {{"mode", "size"}, {"config", 0}}}};
    configs.push_back(config);
  }
  config["comm_fusion"] = {{"allreduce", {{"mode", "index"}, {"config", ends}}}};
  configs.push_back(config);
  return configs;
}

// comm_fusion by size; the units are MindSpore's, whatever the mode makes of them.
Changes changes(const Json&, const Cluster&) {
  Changes changes;
  for (const int megabytes : {0, 1, 2, 4, 8, 16, 32, 64, 128, 256}) {
    const Json all_reduce{{"mode", "size"}, {"config", megabytes}};
    changes.push_back({ChangeKind::kFusion, {{"comm_fusion", {{"allreduce", all_reduce}}}}});
  }
  return changes;
}

// MindSpore exchanges nothing unless it is told that there is a second rank.
Json least() { return {{"parallel_mode", "data_parallel"}}; }

// Any buckets can be said by their end indices, on one flat ring: the best ones there.
std::vector<Json> candidates(const Strategy&, const Workload& workload, const Cluster& cluster,
                             const Partitions& partitions) {
  const Json plain = least();
  const Strategy strategy = read(Reader(plain, "mindspore", ""), workload, cluster, false).strategy;
  std::vector<Json> configs{plain};
  const auto buckets = partitions.best_buckets(strategy);
  for (auto& config : suggest(strategy, buckets, workload, cluster)) {
    configs.push_back(std::move(config));
  }
  return configs;
}

}  // namespace

Dialect mindspore_dialect() {
  return {.name = "mindspore",
          .summary = "MindSpore 2.2: parallel_mode, comm_fusion, set_comm_fusion",
          .read = read,
          .suggest = suggest,
          .changes = changes,
          .least = least,
          .candidates = candidates};
}

}  // namespace syncline::dialect
