#include "tests/pairs/fragments.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace syncline::pairs {
namespace {

constexpr const char* kWorkload = "workload";
constexpr const char* kStrategies = "strategies";

// Eight layers between an embedding and a head. Whatever nothing else asks for: links of which
// nothing is known, one ring for each gradient.
Json base_of(const Shape& shape) {
  Json root = Json::parse(R"json({
    "name": "pairs",
    "workload": {"name": "layers", "batch": 2, "forward_ms": 6, "update_ms": 1, "tensors": []},
    "cluster": {
      "name": "pairs",
      "intra": {"latency_us": 3, "bandwidth_gbps": 400},
      "inter": {"latency_us": 12, "bandwidth_gbps": 20},
      "device": {"name": "own", "tflops": 14, "half_tflops": 60, "memory_gbytes_per_s": 800,
                 "memory_gbytes": 32, "launch_us": 5, "host_sync_us": 10}
    },
    "strategies": [{"name": "s"}]
  })json");
  root["cluster"]["nodes"] = shape.nodes;
  root["cluster"]["gpus_per_node"] = shape.gpus;
  Json& tensors = root[kWorkload]["tensors"];
  const auto add = [&](const std::string& name, int rows, int columns, int microseconds) {
    tensors.push_back(
        {{"name", name}, {"shape", Json::array({rows, columns})}, {"backward_us", microseconds}});
  };
  add("head.weight", 1200, 240, 500);
  constexpr int kLayers = 8;
  for (int layer = kLayers - 1; layer >= 0; --layer) {
    const std::string module = "model.layers." + std::to_string(layer);
    add(module + ".mlp.weight", 960, 240, 900);
    add(module + ".norm.bias", 1, 240, 30);
    add(module + ".att.weight", 480, 240, 400);
  }
  add("model.embed.weight", 1200, 240, 200);
  return root;
}

void replace(std::string& text, const std::string& word, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(word, at)) != text.npos; at += by.size()) {
    text.replace(at, word.size(), by);
  }
}

// A patch for this shape.
Json written_for(const Shape& shape, std::string text) {
  const int inside = shape.gpus > 1 ? shape.gpus : std::min(2, shape.ranks());
  replace(text, "$nodes", std::to_string(shape.nodes));
  replace(text, "$gpus", std::to_string(shape.gpus));
  replace(text, "$ranks", std::to_string(shape.ranks()));
  replace(text, "$inside", std::to_string(inside));
  replace(text, "$across", std::to_string(shape.ranks() / inside));
  replace(text, "$source", SYNCLINE_SOURCE_DIR);
  return Json::parse(text);
}

void merge(Json patch, Json& root) {
  const auto taken = [&](const char* key) {
    Json part = patch.value(key, Json::object());
    patch.erase(key);
    return part;
  };
  const Json strategy = taken("strategy"), tensors = taken("tensors"),
             operators = taken("operators");
  // One of another kind takes its place whole.
  if (patch.contains("cluster") && patch["cluster"].contains("fabric")) {
    root["cluster"].erase("fabric");
  }
  root.merge_patch(patch);
  root[kStrategies][0].merge_patch(strategy);
  Json& workload = root[kWorkload];
  if (workload.contains("operators")) workload["operators"].merge_patch(operators);
  if (!workload.contains("tensors")) return;
  for (const auto& [part, change] : tensors.items()) {
    for (Json& tensor : workload["tensors"]) {
      if (tensor["name"].get<std::string>().find(part) != std::string::npos) {
        tensor.merge_patch(change);
      }
    }
  }
}

// What is trained.
const std::vector<Fragment> kOfWorkloads{
    {"operators", "", R"({"workload": {"tensors": null, "forward_ms": null, "update_ms": null,
        "operators": {"architecture": "llama", "sequence": 64, "dtype": "bf16", "autocast": true,
                      "shape": {"layers": 8, "hidden": 128, "heads": 4, "inner": 512,
                                "words": 1000}}}})"},
    {"half precision", "", R"({"tensors": {"weight": {"dtype": "bf16"}},
        "operators": {"autocast": false}})"},
    {"sparse gradient", "", R"({"tensors": {"embed": {"sparse_rows": 100}}})"},
    {"frozen", "", R"({"tensors": {"mlp": {"frozen": true}}})"},
    {"buffers", "", R"({"workload": {"buffers": [{"name": "mean", "shape": [256]}],
        "buffer_broadcast_ms": 0.2}})"},
    {"measured copies", "", R"({"tensors": {"": {"copy_in_us": 8, "copy_out_us": 12}},
        "workload": {"host_gap_ms": 0.3}})"},
    {"tensor", "", R"({"workload": {"parallel": {"tensor": 2, "sequence": true}}})"},
    {"context", "", R"({"workload": {"parallel": {"context": 2}}})"},
    {"experts", "experts",
     R"({"workload": {"parallel": {"expert": 2}}, "tensors": {"mlp": {"expert": true}},
        "operators": {"shape": {"experts": 4}}})"},
    {"experts of a node", "experts",
     R"({"workload": {"parallel": {"expert": $inside}}, "tensors": {"mlp": {"expert": true}},
        "operators": {"shape": {"experts": 8}}})"},
    {"gpipe", "pipeline", R"({"workload": {"micro_batches": 4, "parallel":
        {"pipeline": 2, "schedule": "gpipe", "activation_bytes": 100000}}})"},
    {"1f1b", "pipeline", R"({"workload": {"micro_batches": 4, "parallel":
        {"pipeline": 2, "schedule": "1f1b", "activation_bytes": 100000, "tied_bytes": 500000}}})"},
    {"interleaved", "pipeline", R"({"workload": {"micro_batches": 4, "parallel":
        {"pipeline": 2, "schedule": "interleaved", "virtual_stages": 2,
         "activation_bytes": 100000}}})"},
    {"interleaved remainder", "pipeline", R"({"workload": {"micro_batches": 5, "parallel":
        {"pipeline": 4, "schedule": "interleaved", "virtual_stages": 4,
         "activation_bytes": 100000}},
        "tensors": {"head": {"part": 15}, "layers.7.": {"part": 15},
                    "layers.7.att": {"part": 14}, "layers.6.": {"part": 13},
                    "layers.6.att": {"part": 12}, "layers.5.": {"part": 11},
                    "layers.5.att": {"part": 10}, "layers.4.": {"part": 9},
                    "layers.4.att": {"part": 8}, "layers.3.": {"part": 7},
                    "layers.3.att": {"part": 6}, "layers.2.": {"part": 5},
                    "layers.2.att": {"part": 4}, "layers.1.": {"part": 3},
                    "layers.1.att": {"part": 2}, "layers.0.": {"part": 1},
                    "layers.0.att": {"part": 0}, "embed": {"part": 0}}})"},
    {"zero bubble", "pipeline", R"({"workload": {"micro_batches": 4, "parallel":
        {"pipeline": 2, "schedule": "zero_bubble", "activation_bytes": 100000}}})"},
    {"micro-batches", "", R"({"workload": {"micro_batches": 3}})"},
    {"each micro-batch", "", R"({"workload": {"micro_batches": 4},
        "strategy": {"each_micro_batch": true}})"},
    {"checkpointing", "", R"({"workload": {"activation_checkpointing": "full"}})"},
    {"checkpointing every second layer", "",
     R"({"workload": {"activation_checkpointing": "full", "checkpointing_every": 2}})"},
    {"checkpointing by products", "", R"({"workload": {"activation_checkpointing": "products"}})"},
    {"compute fusion", "", R"({"strategy": {"compute_fusion": {"fuse_gemm_epilogue": true}}})"},
};

// On what.
const std::vector<Fragment> kOfClusters{
    {"other jobs", "", R"({"cluster": {"fabric": {"kind": "leaf_spine", "nodes": 16,
        "nodes_per_leaf": 4, "oversubscription": 4, "placement": "spread"}},
        "others": [{"scenario": "$source/tests/pairs/other_job.json", "placement": "spread"}]})"},
    {"fat tree", "fabric", R"({"cluster": {"fabric": {"kind": "fat_tree", "down": [4, 4],
        "up": [1, 2], "links": [1, 1], "hop_us": 0.5}}})"},
    {"leaf-spine", "fabric", R"({"cluster": {"fabric": {"kind": "leaf_spine", "nodes": 16,
        "nodes_per_leaf": 2, "oversubscription": 4, "routing": "ecmp"}}})"},
    {"torus", "fabric", R"({"cluster": {"fabric": {"kind": "torus", "sizes": [4, 2, 2]}}})"},
    {"dragonfly", "fabric", R"({"cluster": {"fabric": {"kind": "dragonfly", "groups": 2,
        "switches": 2, "hosts": 4}}})"},
    {"degraded links", "fabric", R"({"cluster": {"fabric": {"kind": "leaf_spine", "nodes": 16,
        "nodes_per_leaf": 2, "oversubscription": 2,
        "degraded": [{"link": "leaf0-spine0", "share": 0.2}]}}})"},
    {"levels above", "", R"({"cluster": {"upper": [{"name": "pods", "nodes_per_group": 2,
        "latency_us": 20, "bandwidth_gbps": 25}]}})"},
    {"loss and caps", "", R"({"cluster": {"inter": {"packet_loss": 0.0001, "flow_cap_gbps": 15,
        "jitter_us": 4}}})"},
    {"narrow ports", "", R"({"cluster": {"inter": {"nics": 2, "oversubscription": 2,
        "efficiency": 0.9, "upload_gbps": 8}}})"},
    {"links as library", "library", R"({"cluster": {"library": "links"}})"},
    {"gloo as library", "library", R"({"cluster": {"library": "gloo"}})"},
    {"nccl as library", "library",
     R"({"cluster": {"library": "nccl", "device": {"name": "V100"}}})"},
    {"calibrated", "library", R"({"cluster": {"library": "nccl", "calibration": {
        "node": {"base_us": 15, "step_us": 2}, "tables": [
          {"collective": "all_reduce", "nodes": $nodes, "gpus_per_node": $gpus, "rows": 20,
           "min_bytes": 1024, "max_bytes": 1073741824, "clean": true, "in_sample_percent": 2,
           "form": "sum", "exponent": 1, "lines": [
             {"from_bytes": 1024, "to_bytes": 1073741824, "latency_us": 40,
              "us_per_mbyte": 300}]}]}}})"},
    {"measured steps", "", R"({"cluster": {
        "inter": {"measured_steps_us": [[1000, 15], [1000000, 420], [100000000, 41000]]}}})"},
    {"interference", "", R"({"cluster": {"device": {"overlap_slowdown": 0.2,
        "overlap_collective_slowdown": 0.3, "overlap_delay_us": 20}}})"},
    {"costs of parallel running", "", R"({"cluster": {"collective_overhead_us": 10,
        "device": {"data_parallel_overhead_us": 200, "data_parallel_slowdown": 0.02,
                   "sums_gbytes_per_s": 10}}})"},
    {"jitter", "", R"({"cluster": {"jitter": {"relative": 0.05}}})"},
    {"uneven speeds", "", R"({"cluster": {"speeds": [1, 0.8]}})"},
};

// How gradients travel, in Syncline's own words.
const std::vector<Fragment> kOfStrategies{
    {"fusion by size", "fusion", R"({"strategy": {"fusion": {"rule": "size", "size_mb": 1,
        "first_size_mb": 0.25}}})"},
    {"fusion by count", "fusion", R"({"strategy": {"fusion": {"rule": "count", "count": 3}}})"},
    {"explicit buckets", "fusion", R"({"strategy": {"fusion": {"rule": "groups", "in_turn": true,
        "groups": [[0, 2], [1, 3, 4], [8, 7, 6, 5]]}}})"},
    {"merged by cost", "fusion", R"({"strategy": {"fusion": {"rule": "mg_wfbp"}}})"},
    {"ticks", "fusion", R"({"strategy": {"fusion": {"rule": "size", "size_mb": 1,
        "close": "before", "cycle_ms": 2}}})"},
    {"streams", "", R"({"strategy": {"streams": 3}})"},
    {"priority", "", R"({"strategy": {"priority": "layer", "cross_step": true, "credit_mb": 1}})"},
    {"cross-step", "", R"({"strategy": {"cross_step": true}})"},
    {"partition", "", R"({"strategy": {"partition_mb": 0.5}})"},
    {"no overlap", "", R"({"strategy": {"overlap": false}})"},
    {"optimizer on the host", "", R"({"strategy": {"offload": "optimizer"}})"},
    {"after all passes", "", R"({"strategy": {"after_passes": true}})"},
    {"copies and the host", "", R"({"strategy": {"bucket_copies": true, "host_sync": true}})"},
    {"update by bucket", "", R"({"strategy": {"update": "per_bucket"}})"},
    {"tree", "algorithm", R"({"strategy": {"algorithm": "double_binary_tree"}})"},
    {"halving", "algorithm", R"({"strategy": {"algorithm": "halving_doubling"}})"},
    {"all to all", "algorithm", R"({"strategy": {"algorithm": "all_to_all"}})"},
    {"leaders", "levels", R"({"strategy": {"hierarchy": {"form": "leaders",
        "group_size": $inside}}})"},
    {"sharded levels", "levels", R"({"strategy": {"hierarchy": {"form": "sharded",
        "group_size": $inside, "across_stream": true}}})"},
    {"fp16", "codec", R"({"strategy": {"compression": {"codec": "fp16"}}})"},
    {"int8", "codec", R"({"strategy": {"compression": {"codec": "int8"},
        "algorithm": "all_to_all"}})"},
    {"dgc", "codec", R"({"strategy": {"compression": {"codec": "dgc", "sparsity": [0.99],
        "min_elements": 2000}}})"},
    {"power sgd", "codec", R"({"strategy": {"compression": {"codec": "powersgd", "rank": 2},
        "fusion": {"rule": "layer"}}})"},
    {"local sgd", "averaging", R"({"strategy": {"local_sgd": {"period": 4}}})"},
    {"local sgd in groups", "averaging", R"({"strategy": {"local_sgd": {"period": 4,
        "subgroup": $inside}}})"},
    {"adaptive", "averaging", R"({"strategy": {"local_sgd": {"adaptive": true, "begin_step": 3}},
        "training": {"steps": 40, "loss": [[0, 2], [40, 1]], "learning_rate": {"initial": 0.1}}})"},
    {"outer step", "averaging", R"({"strategy": {"local_sgd": {"period": 6, "subgroup": $inside,
        "outer": {"optimizer": "nesterov"}}}})"},
    {"streamed outer step", "averaging", R"({"strategy": {"local_sgd": {"period": 6,
        "fragments": 2, "delay": 1, "outer": {"optimizer": "nesterov"}}}})"},
    {"decoupled", "exchange", R"({"strategy": {"exchange": "decoupled"}})"},
    {"sharded", "exchange", R"({"strategy": {"exchange": "sharded"}})"},
    {"sharded update", "exchange", R"({"strategy": {"exchange": "sharded_update"}})"},
    {"regathered", "exchange", R"({"strategy": {"exchange": "sharded", "cross_step": true,
        "regather": true, "fusion": {"rule": "layer"}}})"},
    {"narrow gathers", "exchange", R"({"strategy": {"exchange": "sharded", "cross_step": true,
        "gather_format": "bf16", "in_flight": 1}})"},
    {"fetches", "exchange", R"({"strategy": {"exchange": "sharded", "cross_step": true,
        "regather": true, "fetches": {"live_elements": 400000, "ahead_elements": 100000,
                                      "reuse_elements": 200000}}})"},
};

// And in frameworks' words.
const std::vector<Fragment> kOfDialects{
    {"ddp", "dialect", R"({"strategy": {"dialect": "pytorch", "config": {"bucket_cap_mb": 1}}})"},
    {"ddp compiled", "dialect", R"({"strategy": {"dialect": "pytorch", "config":
        {"bucket_cap_mb": 1, "torch_compile": {"optimize_ddp": true}}}})"},
    {"horovod", "dialect", R"({"strategy": {"dialect": "horovod", "config":
        {"HOROVOD_FUSION_THRESHOLD": 1000000, "HOROVOD_CYCLE_TIME": 2}}})"},
    {"hierarchical horovod", "dialect", R"({"strategy": {"dialect": "horovod", "config":
        {"HOROVOD_FUSION_THRESHOLD": 1000000, "HOROVOD_HIERARCHICAL_ALLREDUCE": 1}}})"},
    {"paddle", "dialect", R"({"strategy": {"dialect": "paddle", "config":
        {"fuse_grad_size_in_MB": 1, "nccl_comm_num": 2, "sync_nccl_allreduce": false}}})"},
    {"distributed optimizer", "dialect", R"({"strategy": {"dialect": "megatron", "config":
        {"overlap-grad-reduce": true, "use-distributed-optimizer": true,
         "overlap-param-gather": true, "ddp-bucket-size": 300000}}})"},
    {"megatron without overlap", "dialect", R"({"strategy": {"dialect": "megatron", "config":
        {"use-distributed-optimizer": true}}})"},
    {"instances", "dialect", R"({"strategy": {"dialect": "megatron", "config":
        {"overlap-grad-reduce": true, "use-distributed-optimizer": true,
         "num-distributed-optimizer-instances": 2, "ddp-bucket-size": 300000}}})"},
    {"zero 1", "dialect", R"({"strategy": {"dialect": "deepspeed", "config":
        {"zero_optimization": {"stage": 1, "reduce_bucket_size": 300000}}}})"},
    {"zero 2", "dialect", R"({"strategy": {"dialect": "deepspeed", "config":
        {"zero_optimization": {"stage": 2, "overlap_comm": true,
                               "reduce_bucket_size": 300000}}}})"},
    {"zero 3", "dialect", R"({"strategy": {"dialect": "deepspeed", "config":
        {"zero_optimization": {"stage": 3, "reduce_bucket_size": 300000,
          "stage3_prefetch_bucket_size": 200000, "stage3_param_persistence_threshold": 1000,
          "stage3_max_reuse_distance": 300000, "stage3_max_live_parameters": 1000000}}}})"},
    {"hpz", "dialect", R"({"strategy": {"dialect": "deepspeed", "config":
        {"zero_optimization": {"stage": 3, "reduce_bucket_size": 300000,
          "stage3_param_persistence_threshold": 1000, "stage3_max_reuse_distance": 0,
          "zero_hpz_partition_size": $inside}}}})"},
    {"mics", "dialect", R"({"strategy": {"dialect": "deepspeed", "config":
        {"zero_optimization": {"stage": 3, "reduce_bucket_size": 300000,
          "stage3_param_persistence_threshold": 1000, "mics_shard_size": $inside}}}})"},
    {"fsdp", "dialect", R"({"strategy": {"dialect": "fsdp", "config":
        {"units": ["model.layers.*"], "reshard_after_forward": true}}})"},
    {"units that stay", "dialect", R"({"strategy": {"dialect": "fsdp", "config":
        {"units": [["model.embed", "model.layers.7"], "model.layers.*"],
         "not_resharded": ["model.layers.2"],
         "mp_policy": {"param_dtype": "bfloat16", "reduce_dtype": "float32"}}}})"},
    {"replicas at the end", "dialect", R"({"strategy": {"dialect": "fsdp", "config":
        {"units": ["model.layers.*"], "mesh": [$across, $inside],
         "set_requires_all_reduce": false}}})"},
    {"fsdp 1", "dialect", R"({"strategy": {"dialect": "fsdp", "config":
        {"version": 1, "units": ["model.layers.*"], "sharding_strategy": "SHARD_GRAD_OP"}}})"},
    {"hsdp", "dialect", R"({"strategy": {"dialect": "fsdp", "config":
        {"units": ["model.layers.*"], "mesh": [$across, $inside]}}})"},
    {"hybrid shard", "dialect", R"({"strategy": {"dialect": "fsdp", "config":
        {"version": 1, "units": ["model.layers.*"], "sharding_strategy": "HYBRID_SHARD"}}})"},
    {"narrow sums", "dialect", R"({"strategy": {"dialect": "fsdp", "config":
        {"units": "layers", "mp_policy": {"param_dtype": "bf16", "reduce_dtype": "bf16"}}}})"},
    {"reshard to a number", "dialect", R"({"strategy": {"dialect": "fsdp", "config":
        {"units": ["model.layers.*"], "reshard_after_forward": 2}}})"},
    {"diloco", "dialect", R"({"strategy": {"dialect": "torchft", "config":
        {"sync_every": 6, "num_fragments": 2, "fragment_sync_delay": 1,
         "outer_optimizer": {"lr": 0.7, "momentum": 0.9, "nesterov": true},
         "group_world_size": $inside}}})"},
};

}  // namespace

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{{1, 1}, {2, 1}, {1, 2}, {8, 1},
                                      {4, 2}, {1, 8}, {3, 8}, {6, 4}};
  return all;
}

const std::vector<Fragment>& fragments() {
  static const std::vector<Fragment> all = [] {
    std::vector<Fragment> joined;
    for (const auto* layer : {&kOfWorkloads, &kOfClusters, &kOfStrategies, &kOfDialects}) {
      joined.insert(joined.end(), layer->begin(), layer->end());
    }
    return joined;
  }();
  return all;
}

bool exclude(const Chosen& chosen) {
  for (std::size_t a = 0; a < chosen.size(); ++a) {
    for (std::size_t b = a + 1; b < chosen.size(); ++b) {
      const std::string& knob = fragments()[chosen[a]].knob;
      if (!knob.empty() && knob == fragments()[chosen[b]].knob) return true;
    }
  }
  return false;
}

Json scenario_of(const Shape& shape, const Chosen& chosen) {
  Json root = base_of(shape);
  for (const std::size_t each : chosen) merge(written_for(shape, fragments()[each].patch), root);
  return root;
}

std::string name_of(const Shape& shape, const Chosen& chosen) {
  std::string name = chosen.empty() ? "base" : "";
  for (const std::size_t each : chosen) {
    name += (name.empty() ? "" : " + ") + fragments()[each].name;
  }
  return name + " on " + std::to_string(shape.nodes) + " x " + std::to_string(shape.gpus);
}

}  // namespace syncline::pairs
