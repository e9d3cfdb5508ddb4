#include "core/dialect/paddle_trials.h"

#include <algorithm>
#include <set>

#include "core/dialect/paddle_write.h"

namespace syncline::dialect {

// Each size is tried with the limit by count as it stands, and without one.
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
  for (const int comms : {2, 3, 4}) {
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

Json paddle_defaults() {
  return {{"fuse_grad_size_in_MB", 32},
          {"_fuse_grad_size_in_TFLOPS", 50.0},
          {"fuse_all_reduce_ops", true},
          {"nccl_comm_num", 1},
          {"sync_nccl_allreduce", true},
          {"use_hierarchical_allreduce", false},
          {"hierarchical_allreduce_inter_nranks", 1},
          {"dgc", false},
          {"localsgd", false},
          {"localsgd_configs", {{"k_steps", 1}}}};
}

namespace {

// Whole mebibytes, at most 50 gradients or as many as there are.
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

// Under dgc and LocalSGD Paddle fuses nothing; LocalSGD reads no other switch either.
std::vector<Json> paddle_candidates(const Strategy& winner, const Workload&, const Cluster& cluster,
                                    const Partitions& partitions) {
  const Json training = paddle_training_of(winner);
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
