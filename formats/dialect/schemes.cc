#include "formats/dialect/schemes.h"

#include <algorithm>
#include <utility>

#include "formats/dialect/changes.h"
#include "formats/dialect/ddp_buckets.h"

namespace syncline::dialect {
namespace {

using Schemes = std::vector<Scheme>;

Json patched(Json config, const Json& patch) {
  if (!config.is_object()) config = Json::object();
  config.merge_patch(patch);
  return config;
}

// Returns true for several nodes of several GPUs: a scheme may end at the node.
bool has_levels(const Cluster& cluster) { return cluster.nodes > 1 && cluster.gpus_per_node > 1; }

// Returns true if products take narrow copies of wider parameters (torch.autocast).
bool casts_parameters(const Workload& workload) {
  return !any_narrow(workload) && std::ranges::any_of(workload.operators.operators, [](auto& op) {
    return op.part == StepPart::kForward && op.kind == "cast";
  });
}

// Returns FSDP2's configuration for a job that has none: each layer a unit, its parameters gathered
// in the format of the products that autocast takes.
Json fsdp_config(const Workload& workload, const Cluster& cluster) {
  const Dialect* fsdp = find_dialect("fsdp");
  Json config{{"version", 2}, {"units", Json::array()}};
  if (fsdp != nullptr) {
    config["units"] = fsdp->candidates({}, workload, cluster, {}).back()["units"];
  }
  if (casts_parameters(workload)) {
    config["mp_policy"] = {{"param_dtype", has_bf16(cluster) ? "bfloat16" : "float16"},
                           {"reduce_dtype", "float32"}};
  }
  return config;
}

Json node_mesh(const Cluster& cluster) { return {cluster.nodes, cluster.gpus_per_node}; }

void add_fsdp2(const Json& config, const Cluster& cluster, Schemes& list) {
  const auto add = [&](const char* name, const Json& reshard, const Json& mesh) {
    list.push_back(
        {name, "fsdp", patched(config, {{"reshard_after_forward", reshard}, {"mesh", mesh}})});
  };
  add("FSDP2", true, nullptr);
  add("FSDP2, not resharded", false, nullptr);
  if (!has_levels(cluster)) return;
  add("HSDP", true, node_mesh(cluster));
  add("HSDP, not resharded", false, node_mesh(cluster));
  add("FSDP2, resharded inside nodes", cluster.gpus_per_node, nullptr);
}

void add_fsdp1(const Json& config, const Cluster& cluster, Schemes& list) {
  const bool levels = has_levels(cluster);
  for (const char* word : {"FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"}) {
    const bool hybrid = std::string_view(word).find("HYBRID") != std::string_view::npos;
    if (hybrid && !levels) continue;
    list.push_back({"FSDP1, " + std::string(word), "fsdp",
                    patched(config, {{"sharding_strategy", word}, {"device_mesh", nullptr}})});
  }
}

Scheme plain_ddp() { return {"DDP", "pytorch", Json::object()}; }

// Returns DeepSpeed's stages with the other keys of a configuration.
std::vector<std::pair<std::string, Json>> stages_of(const Json& config, const Cluster& cluster) {
  std::vector<std::pair<std::string, Json>> stages;
  for (const int stage : {0, 1, 2, 3}) {
    const Json zero{
        {"stage", stage}, {"zero_hpz_partition_size", nullptr}, {"mics_shard_size", nullptr}};
    stages.emplace_back("ZeRO stage " + std::to_string(stage),
                        patched(config, {{"zero_optimization", zero}}));
  }
  if (has_levels(cluster)) {
    const Json zero{{"stage", 3},
                    {"zero_hpz_partition_size", cluster.gpus_per_node},
                    {"mics_shard_size", nullptr}};
    stages.emplace_back("ZeRO stage 3, hpZ inside nodes",
                        patched(config, {{"zero_optimization", zero}}));
  }
  return stages;
}

Schemes of_trainer(const Json& config, const Cluster& cluster) {
  const Json own = config.is_object() ? config : Json::object();
  Schemes list{{"DDP", "hf_trainer", patched(own, {{"deepspeed", nullptr}})}};
  const Json inside =
      own.contains("deepspeed") && own["deepspeed"].is_object() ? own["deepspeed"] : Json::object();
  for (const auto& [name, zero] : stages_of(inside, cluster)) {
    list.push_back({name, "hf_trainer", patched(own, {{"deepspeed", zero}})});
  }
  return list;
}

Schemes of_megatron(const Json& config) {
  const auto with = [&](bool distributed) {
    Json patch{{"use-distributed-optimizer", distributed}};
    // Keys that need it go with it.
    for (const char* key :
         {"overlap-param-gather", "num-distributed-optimizer-instances", "fp8-param-gather"}) {
      if (!distributed) patch[key] = nullptr;
    }
    return patched(config, patch);
  };
  return {{"Megatron, distributed optimizer", "megatron", with(true)},
          {"Megatron, whole optimizer", "megatron", with(false)}};
}

}  // namespace

std::vector<Scheme> schemes_beside(std::string_view dialect, const Json& config,
                                   const Workload& workload, const Cluster& cluster) {
  Schemes list;
  if (dialect == "deepspeed") {
    for (auto& [name, zero] : stages_of(config, cluster)) {
      list.push_back({name, "deepspeed", std::move(zero)});
    }
  } else if (dialect == "hf_trainer") {
    list = of_trainer(config, cluster);
  } else if (dialect == "megatron") {
    list = of_megatron(config);
  } else if (dialect == "fsdp" && config.is_object() && config.value("version", 2) == 1) {
    list = {plain_ddp()};
    add_fsdp1(config, cluster, list);
  } else if (dialect == "fsdp" || dialect == "pytorch" || dialect.empty()) {
    list = {plain_ddp()};
    const bool own = dialect == "fsdp" && config.is_object();
    add_fsdp2(own ? config : fsdp_config(workload, cluster), cluster, list);
  }
  return list;
}

void set_batches(std::int64_t batch, std::int64_t micro_batches, Json& config) {
  if (!config.is_object()) return;
  const auto set = [&](const char* key, std::int64_t value) {
    if (config.contains(key) && config[key].is_number()) config[key] = value;
  };
  set("train_micro_batch_size_per_gpu", batch);
  set("gradient_accumulation_steps", micro_batches);
  if (config.contains("deepspeed")) set_batches(batch, micro_batches, config["deepspeed"]);
}

}  // namespace syncline::dialect
