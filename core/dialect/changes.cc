#include "core/dialect/changes.h"

#include <array>

namespace syncline {
namespace {

using Changes = std::vector<ConfigChange>;

constexpr std::array kMebibytes{1, 2, 4, 8, 16, 25, 32, 64, 128};

// DistributedStrategy. Each size is tried with the limit by count as it stands, and without one.
Changes paddle_changes(const Json& config, const Cluster& cluster) {
  Changes changes;
  const bool unfused = config.value("fuse_all_reduce_ops", Json(true)) == Json(false);
  for (const int mebibytes : kMebibytes) {
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

Changes paddle_dygraph_changes(const Json& config) {
  const char* key = config.contains("fuse_grad_size_in_MB") ? "fuse_grad_size_in_MB"  //
                                                            : "comm_buffer_size";
  Changes changes;
  for (const int mebibytes : kMebibytes) {
    changes.push_back({ChangeKind::kFusion, {{key, mebibytes}}});
  }
  return changes;
}

// comm_fusion by size; the units are MindSpore's, whatever the mode makes of them.
Changes mindspore_changes() {
  Changes changes;
  for (const int megabytes : {0, 1, 2, 4, 8, 16, 32, 64, 128, 256}) {
    const Json all_reduce{{"mode", "size"}, {"config", megabytes}};
    changes.push_back({ChangeKind::kFusion, {{"comm_fusion", {{"allreduce", all_reduce}}}}});
  }
  return changes;
}

Changes pytorch_changes() {
  Changes changes;
  for (const int mebibytes : kMebibytes) {
    changes.push_back({ChangeKind::kFusion, {{"bucket_cap_mb", mebibytes}}});
  }
  changes.push_back({ChangeKind::kCompression, {{"comm_hook", "fp16_compress_hook"}}});
  return changes;
}

Changes horovod_changes() {
  Changes changes;
  for (const int mebibytes : kMebibytes) {
    changes.push_back({ChangeKind::kFusion, {{"HOROVOD_FUSION_THRESHOLD", mebibytes * kMiB}}});
  }
  for (const double milliseconds : {0.1, 0.5, 2.0, 5.0, 10.0}) {
    changes.push_back({ChangeKind::kFusion, {{"HOROVOD_CYCLE_TIME", milliseconds}}});
  }
  for (const int hierarchical : {0, 1}) {
    changes.push_back({ChangeKind::kHierarchy, {{"HOROVOD_HIERARCHICAL_ALLREDUCE", hierarchical}}});
  }
  changes.push_back({ChangeKind::kCompression, {{"compression", "fp16"}}});
  return changes;
}

// What a key is where a configuration does not give it. Keys of the patches alone.
const Json& defaults_of(std::string_view dialect) {
  static const Json paddle{{"fuse_grad_size_in_MB", 32},
                           {"_fuse_grad_size_in_TFLOPS", 50.0},
                           {"fuse_all_reduce_ops", true},
                           {"nccl_comm_num", 1},
                           {"sync_nccl_allreduce", true},
                           {"use_hierarchical_allreduce", false},
                           {"hierarchical_allreduce_inter_nranks", 1},
                           {"dgc", false},
                           {"localsgd", false},
                           {"localsgd_configs", {{"k_steps", 1}}}};
  static const Json dygraph{{"comm_buffer_size", 25}};
  static const Json pytorch{{"bucket_cap_mb", 25}, {"comm_hook", "allreduce_hook"}};
  static const Json horovod{{"HOROVOD_FUSION_THRESHOLD", 128 * kMiB},
                            {"HOROVOD_CYCLE_TIME", 1},
                            {"HOROVOD_HIERARCHICAL_ALLREDUCE", 0},
                            {"compression", "none"}};
  static const Json none = Json::object();
  if (dialect == "paddle") return paddle;
  if (dialect == "paddle_dygraph") return dygraph;
  if (dialect == "pytorch") return pytorch;
  if (dialect == "horovod") return horovod;
  return none;
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// One part for each key of the patch whose value changes; objects are walked.
void tell(const Json& config, const Json& patch, const Json& defaults, const std::string& above,
          std::string& text) {
  for (const auto& [key, value] : patch.items()) {
    const std::string path = above.empty() ? key : above + "." + key;
    const Json* before = config.contains(key) ? &config[key] : nullptr;
    const Json* otherwise = defaults.contains(key) ? &defaults[key] : nullptr;
    if (value.is_object()) {
      static const Json none = Json::object();
      tell(before != nullptr && before->is_object() ? *before : none, value,
           otherwise != nullptr ? *otherwise : none, path, text);
      continue;
    }
    if (before != nullptr ? *before == value : otherwise != nullptr && *otherwise == value) {
      continue;
    }
    if (!text.empty()) text += ", ";
    text += path + ": ";
    text += before != nullptr      ? value_text(*before)
            : otherwise != nullptr ? value_text(*otherwise) + " (default)"
                                   : "not given";
    text += " -> " + value_text(value);
  }
}

}  // namespace

std::vector<ConfigChange> config_changes(std::string_view dialect, const Json& config,
                                         const Cluster& cluster) {
  if (dialect == "paddle") return paddle_changes(config, cluster);
  if (dialect == "paddle_dygraph") return paddle_dygraph_changes(config);
  if (dialect == "mindspore") return mindspore_changes();
  if (dialect == "pytorch") return pytorch_changes();
  if (dialect == "horovod") return horovod_changes();
  return {};
}

std::string change_text(std::string_view dialect, const Json& config, const Json& patch) {
  std::string text;
  tell(config, patch, defaults_of(dialect), "", text);
  return text;
}

}  // namespace syncline
