#include "formats/dialect/paddle.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "formats/dialect/write.h"

namespace syncline::dialect {
namespace {

// Returns gradient compression and parameter averaging; empty if every gradient is exchanged
// uncompressed.
Json training_of(const Strategy& strategy) {
  Json config = Json::object();
  if (strategy.local_sgd.enabled) {
    const auto& local = strategy.local_sgd;
    const char* keys = local.adaptive ? "adaptive_localsgd_configs" : "localsgd_configs";
    config[local.adaptive ? "adaptive_localsgd" : "localsgd"] = true;
    config[keys][local.adaptive ? "init_k_steps" : "k_steps"] =
        local.adaptive ? local.init_period : local.period;
    config[keys]["begin_step"] = local.begin_step;
  } else if (strategy.compression.codec == "dgc") {
    config["dgc"] = true;
    config["dgc_configs"] = {{"rampup_begin_step", strategy.compression.rampup_begin_step},
                             {"rampup_step", strategy.compression.rampup_step},
                             {"sparsity", strategy.compression.sparsity}};
  }
  return config;
}

// Returns the keys that do not depend on sizes: communicators, hierarchy, compression, averaging.
Json switches_of(const Strategy& strategy) {
  Json config = training_of(strategy);
  if (strategy.local_sgd.enabled) return config;
  if (strategy.streams > 1) config["nccl_comm_num"] = strategy.streams;
  if (!strategy.host_sync) config["sync_nccl_allreduce"] = false;
  if (strategy.hierarchy.form == Hierarchy::Form::kLeaders) {
    config["use_hierarchical_allreduce"] = true;
    config["hierarchical_allreduce_inter_nranks"] = strategy.hierarchy.group_size;
  }
  return config;
}

// Returns the keys that differ from the defaults of a build strategy.
Json build_strategy_of(const ComputeFusion& fusion) {
  Json build = Json::object();
  for (const auto& [key, on, usual] : kBuildSwitches) {
    if (fusion.*on != usual) build[key] = fusion.*on;
  }
  return build;
}

// Returns sizes in whole mebibytes, all that Paddle accepts.
std::vector<std::int64_t> sizes_for(const Fusion& fusion,
                                    const std::vector<plan::Bucket>& buckets) {
  std::vector<std::int64_t> sizes;
  if (fusion.rule == Fusion::Rule::kSize) sizes.push_back(fusion.size / kMiB);
  std::vector<plan::Bucket> closed;
  if (buckets.size() > 1) closed.assign(buckets.begin(), buckets.end() - 1);
  for (const double size : sizes_that_close(closed)) {
    sizes.push_back(static_cast<std::int64_t>(std::floor(size)));
  }
  sizes.insert(sizes.end(), kTriedMebibytes.begin(), kTriedMebibytes.end());
  sizes.push_back(1 << 20);
  return sizes;
}

// Returns sizes in whole mebibytes, each with limits of 50 and of all gradients.
std::vector<Json> fusions_worth_trying(const Partitions& partitions) {
  Fusion form;
  form.rule = Fusion::Rule::kSize;
  form.by_layer = true;
  form.layer_key = Fusion::LayerKey::kFirstDot;
  std::set<Bytes> sizes;
  for (const Bytes size : partitions.sizes(form)) {
    sizes.insert(std::max<Bytes>(1, (size + kMiB - 1) / kMiB));
  }
  std::vector<Json> fusions{{{"fuse_all_reduce_ops", false}}};
  for (const Bytes size : sizes) {
    for (const double count : {50.0, 1e6}) {
      fusions.push_back({{"fuse_grad_size_in_MB", size}, {"_fuse_grad_size_in_TFLOPS", count}});
    }
  }
  return fusions;
}

}  // namespace

std::vector<Json> suggest_paddle(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                                 const Workload& workload, const Cluster&) {
  Json switches = switches_of(strategy);
  const Json build = build_strategy_of(strategy.compute_fusion);
  const bool matters = !workload.operators->empty() && !strategy.local_sgd.enabled;
  if (matters && !build.empty()) switches["build_strategy"] = build;
  if (strategy.local_sgd.enabled || strategy.compression.codec == "dgc") return {switches};
  std::vector<Json> configs;
  Json unfused = switches;
  unfused["fuse_all_reduce_ops"] = false;
  if (strategy.fusion.rule == Fusion::Rule::kNone) configs.push_back(unfused);
  // A limit of N gradients closes a group at N + 1; kNoCount is more than any model has.
  constexpr double kNoCount = 1e6;
  std::vector<double> counts{50, kNoCount};
  if (strategy.fusion.count > 1) {
    counts.insert(counts.begin(), static_cast<double>(strategy.fusion.count - 1));
  }
  for (const std::int64_t size : sizes_for(strategy.fusion, buckets)) {
    if (size < 1) continue;
    for (const double count : counts) {
      Json config = switches;
      config["fuse_grad_size_in_MB"] = size;
      config["_fuse_grad_size_in_TFLOPS"] = count;
      configs.push_back(config);
    }
  }
  configs.push_back(unfused);
  return configs;
}

// Returns changes; each size is tried with the configured limit by count, and without one.
Changes paddle_changes(const Json& config, const Cluster& cluster) {
  Changes changes;
  const bool unfused = config.value("fuse_all_reduce_ops", Json(true)) == Json(false);
  for (const int mebibytes : kTriedMebibytes) {
    Json patch{{"fuse_grad_size_in_MB", mebibytes}};
    if (unfused) patch["fuse_all_reduce_ops"] = true;
    changes.push_back({ChangeKind::kFusion, patch});
    patch["_fuse_grad_size_in_TFLOPS"] = 100000.0;
    changes.push_back({ChangeKind::kFusion, patch});
  }
  changes.push_back({ChangeKind::kFusion, {{"fuse_all_reduce_ops", false}}});
  for (const int comms : {1, 2, 3, 4}) {
    changes.push_back(
        {ChangeKind::kStreams, {{"nccl_comm_num", comms}, {"sync_nccl_allreduce", false}}});
  }
  for (const char* fuse : {"fuse_elewise_add_act_ops", "fuse_bn_act_ops", "fuse_bn_add_act_ops",
                           "fuse_relu_depthwise_conv", "fuse_gemm_epilogue"}) {
    changes.push_back({ChangeKind::kCompute, {{"build_strategy", {{fuse, true}}}}});
  }
  if (cluster.gpus_per_node > 1) {
    changes.push_back({ChangeKind::kHierarchy,
                       {{"use_hierarchical_allreduce", true},
                        {"hierarchical_allreduce_inter_nranks", cluster.gpus_per_node}}});
  }
  changes.push_back({ChangeKind::kHierarchy, {{"use_hierarchical_allreduce", false}}});
  changes.push_back({ChangeKind::kCompression, {{"dgc", true}}});
  changes.push_back(
      {ChangeKind::kAveraging, {{"localsgd", true}, {"localsgd_configs", {{"k_steps", 4}}}}});
  return changes;
}

// Returns configurations. dgc and LocalSGD fuse nothing; LocalSGD reads no other switch either.
std::vector<Json> paddle_candidates(const Strategy& winner, const Workload&, const Cluster& cluster,
                                    const Partitions& partitions) {
  const Json training = training_of(winner);
  if (winner.local_sgd.enabled) return {training};
  const std::vector<Json> fusions =
      training.empty() ? fusions_worth_trying(partitions) : std::vector<Json>{training};
  const bool levels = cluster.nodes > 1 && cluster.gpus_per_node > 1;
  std::vector<Json> configs;
  for (const bool leaders : {false, true}) {
    if (leaders && !levels) continue;
    for (const int communicators : {1, 2, 3, 4}) {
      for (Json config : fusions) {
        if (communicators > 1) {
          config["nccl_comm_num"] = communicators;
          config["sync_nccl_allreduce"] = false;
        }
        if (leaders) {
          config["use_hierarchical_allreduce"] = true;
          config["hierarchical_allreduce_inter_nranks"] = cluster.gpus_per_node;
        }
        configs.push_back(std::move(config));
      }
    }
  }
  return configs;
}

}  // namespace syncline::dialect
