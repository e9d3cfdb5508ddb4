#include <algorithm>
#include <optional>
#include <string_view>

#include "formats/dialect/changes.h"
#include "formats/dialect/ddp_buckets.h"
#include "formats/dialect/schemes.h"

namespace syncline::dialect {
namespace {

// Returns the format of the products that take narrow copies of wider parameters (torch.autocast).
std::optional<DType> cast_format(const Workload& workload) {
  if (any_narrow(workload)) return std::nullopt;
  const auto& operators = workload.operators->operators;
  const auto cast = std::ranges::find_if(operators, [](const Operator& op) {
    return op.part == StepPart::kForward && op.kind == "cast";
  });
  if (cast == operators.end()) return std::nullopt;
  return cast->dtype;
}

// Returns FSDP2's configuration for a job that has none: each layer a unit, its parameters gathered
// in the format of the products that autocast takes.
Json fsdp_config(const Workload& workload, const Cluster& cluster) {
  const Dialect* fsdp = find_dialect("fsdp");
  Json config{{"version", 2}, {"units", Json::array()}};
  if (fsdp != nullptr) {
    config["units"] = fsdp->candidates({}, workload, cluster, {}).back()["units"];
  }
  if (const auto format = cast_format(workload)) {
    const bool unsaid = *format == DType::kFp32;
    const bool fp16 = *format == DType::kFp16 || (unsaid && !has_bf16(cluster));
    config["mp_policy"] = {{"param_dtype", fp16 ? "float16" : "bfloat16"},
                           {"reduce_dtype", "float32"}};
  }
  return config;
}

// Returns the mesh of shards inside nodes, for any number of nodes.
Json node_mesh(const Cluster& cluster) { return {kOthers, cluster.gpus_per_node}; }

void add_fsdp2(const Json& config, const Cluster& cluster, std::vector<Scheme>& list) {
  const auto add = [&](const char* name, const Json& reshard, const Json& mesh) {
    list.push_back({name, "fsdp",
                    patched_config(config, {{"reshard_after_forward", reshard}, {"mesh", mesh}})});
  };
  add("FSDP2", nullptr, nullptr);
  add("FSDP2, not resharded", false, nullptr);
  if (!has_levels(cluster)) return;
  add("HSDP", nullptr, node_mesh(cluster));
  add("HSDP, not resharded", false, node_mesh(cluster));
  add("FSDP2, resharded inside nodes", cluster.gpus_per_node, nullptr);
}

void add_fsdp1(const Json& config, const Cluster& cluster, std::vector<Scheme>& list) {
  const bool levels = has_levels(cluster);
  for (const char* word : {"FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"}) {
    const bool hybrid = std::string_view(word).find("HYBRID") != std::string_view::npos;
    if (hybrid && !levels) continue;
    list.push_back(
        {"FSDP1, " + std::string(word), "fsdp",
         patched_config(config, {{"sharding_strategy", word}, {"device_mesh", nullptr}})});
  }
}

Scheme plain_ddp() { return {"DDP", "pytorch", Json::object()}; }

}  // namespace

std::vector<Scheme> pytorch_schemes(const Json& config, const Workload& workload,
                                    const Cluster& cluster) {
  std::vector<Scheme> list{plain_ddp()};
  if (config.is_object() && config.value("version", 2) == 1) {
    add_fsdp1(config, cluster, list);
  } else {
    add_fsdp2(config.is_object() ? config : fsdp_config(workload, cluster), cluster, list);
  }
  return list;
}

}  // namespace syncline::dialect
