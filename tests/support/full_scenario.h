// A valid scenario with every optional key. Tests of the reader make one mistake at a time in it.
#pragma once

#include <string>
#include <string_view>

#include "formats/input/document.h"
#include "tests/support/expect.h"

namespace syncline::test {

inline constexpr std::string_view kFullScenarioText = R"json({
  "$schema": "schema.json",
  "name": "full",
  "about": "Every key once.",
  "notes": ["Nobody measured this."],
  "workload": {
    "$schema": "../schema.json",
    "name": "three_tensors",
    "source": "made up",
    "about": "A head, a scale and an embedding.",
    "batch": 32,
    "micro_batches": 1,
    "dtype": "fp32",
    "product_dtype": "bf16",
    "forward_ms": 1.5,
    "backward_ms": 3,
    "update_ms": 0.1,
    "optimizer": "momentum",
    "tensors": [
      {"name": "fc.weight", "shape": [10, 64], "dtype": "bf16", "backward_us": 20,
       "backward_flops": 81920, "forward_flops": 40960},
      {"name": "scale", "shape": [], "backward_us": 10},
      {"name": "embedding.weight", "shape": [1000, 64], "sparse_rows": 32, "backward_us": 30}
    ],
    "buffers": [{"name": "bn.running_mean", "shape": [64], "dtype": "fp64"}]
  },
  "cluster": {
    "$schema": "../schema.json",
    "name": "pods",
    "source": "made up",
    "about": "Four pods of eight nodes.",
    "nodes": 32,
    "gpus_per_node": 8,
    "intra": {"latency_us": 3, "bandwidth_gbps": 1200},
    "inter": {"latency_us": 12.5, "bandwidth_gbps": 100, "flow_cap_gbps": 30, "nics": 2,
              "efficiency": 0.9, "measured": false, "oversubscription": 1.5},
    "upper": [{"name": "pods", "nodes_per_group": 8, "latency_us": 20, "bandwidth_gbps": 400,
               "upload_gbps": 100, "jitter_us": 0, "packet_loss": 0,
               "flow_cap_gbps": 30, "nics": 1, "efficiency": 1, "measured": false, "oversubscription": 2.5}],
    "collective_overhead_us": 5, "fabric": "rdma", "library": "nccl",
    "device": {"name": "V100", "tflops": 15.7, "efficiency": 0.5, "memory_gbytes_per_s": 800, "memory_gbytes": 16,
               "rounding_gbytes_per_s": 6, "sums_gbytes_per_s": 2, "select_gelements_per_s": 7, "selection_us": 3, "launch_us": 5, "host_sync_us": 10,
               "host_link_gbytes_per_s": 20, "host_update_ns": 0.5, "data_parallel_overhead_us": 900,
               "data_parallel_slowdown": 0.05},
    "jitter": {"distribution": "normal", "relative": 0.05, "guessed": false},
    "speeds": [1, 0.5],
    "nccl": {"cpu": "amd", "compute_capability": 80, "nvlink": true, "nvswitch": true,
             "gpu_direct": false, "channels": 8, "channel_intra_gbytes_per_s": 20,
             "channel_inter_gbytes_per_s": 12, "tree": "plain"},
    "calibration": {
      "tables": [
        {"collective": "all_reduce", "nodes": 2, "gpus_per_node": 8, "source": "made up", "rows": 3,
         "min_bytes": 8, "max_bytes": 1e9, "clean": true, "in_sample_percent": 1,
         "left_out_percent": 2, "slow_percent": 0, "spreads": [{"bytes": 16, "percent": 3}],
         "form": "sum", "exponent": 2, "outlier_bytes": [16],
         "lines": [{"from_bytes": 8, "to_bytes": 1e9, "latency_us": 20, "us_per_mbyte": 10}]}
      ],
      "node": {"base_us": 6.6, "step_us": 0.6},
      "scale": {
        "graph": {"amd": false, "channels": 4, "ring_intra_gbytes_per_s": 20,
                  "ring_inter_gbytes_per_s": 20, "tree_intra_gbytes_per_s": 20,
                  "tree_inter_gbytes_per_s": 20, "plain_tree": true, "ll128": false},
        "latency_scale": 1.5, "inside_scale": 1, "bandwidth_gbytes_per_s": 90, "inside_gbytes_per_s": 300,
        "median_error_percent": 3,
        "rates": [{"gpus_per_node": 8, "bandwidth_gbytes_per_s": 90}],
        "steps": [
          {"path": "ring Simple", "base_us": 8, "latency_us": 20, "bandwidth_gbytes_per_s": 90,
           "intra_share": 0.3, "exponent": 4},
          {"path": "tree LL", "base_us": 7, "latency_us": 5, "bandwidth_gbytes_per_s": 20,
           "fill_us": 100, "chain_us": 0}
        ]
      }
    }
  },
  "strategies": [
    {"name": "plain"},
    {"name": "fused", "about": "Buckets by size.", "overlap": true, "streams": 2,
     "algorithm": "double_binary_tree",
     "fusion": {"rule": "size", "size_mb": 25, "first_size_mb": 1, "count": 40, "close": "before",
                "by_layer": true, "layer_key": "first_dot", "align_bytes": 256},
     "hierarchy": {"form": "leaders", "group_size": 8, "first": "all_reduce", "inside": "to_one",
                   "across": "ring"},
     "update": "per_bucket"},
    {"name": "compressed", "fusion": {"rule": "index", "ends": [0, 2]},
     "compression": {"codec": "dgc", "sparsity": [0.75, 0.999], "rampup_begin_step": 100,
                     "rampup_step": 10, "min_elements": 16384, "encode_launches": 14,
                     "decode_launches": 3}},
    {"name": "local", "local_sgd": {"begin_step": 2, "adaptive": true, "init_period": 1,
                                    "max_period": 16}},
    {"name": "every_4", "local_sgd": {"period": 4, "subgroup": 8, "warmup": "gradients"}},
    {"name": "merged", "fusion": {"rule": "mg_wfbp", "min_elements": 8192,
     "costs": [{"ranks": 64, "latency_us": 500, "us_per_mbyte": 850},
               {"ranks": 128, "latency_us": 900, "us_per_mbyte": 850},
               {"ranks": 256, "latency_us": 900, "us_per_mbyte": 850}]}},
    {"name": "crossing", "preset": "bytescheduler", "exchange": "decoupled", "cross_step": true,
     "priority": "layer", "credit_mb": 16, "partition_mb": 4, "update": "per_bucket"},
    {"name": "copied", "bucket_copies": true, "host_sync": true, "offload": "optimizer", "broadcast_buffers": false,
     "fusion": {"rule": "size", "size_mb": 25, "close": "before", "cycle_ms": 1, "cast": "fp32"}},
    {"name": "forward", "preset": "dear",
     "fusion": {"rule": "size", "size_mb": 25, "close": "before", "order": "forward"}},
    {"name": "listed", "fusion": {"rule": "groups", "groups": [[0, 2], [1]], "with_next": true, "sums_frozen": true,
     "in_turn": true, "cuts": [{"tensor": 1, "at": [2, 5]}], "pad_rows": 8,
     "align_elements": 64, "pad_elements": 128}, "regather": true, "kept_groups": 1,
     "kept_in_step": true, "each_micro_batch": true, "after_passes": true, "in_flight": 1, "exchange": "sharded",
     "gather_groups": [[0, 1, 2]]},
    {"name": "live", "exchange": "sharded", "cross_step": true, "pieces": [1],
     "fetches": {"live_elements": 1000, "ahead_elements": 200, "reuse_elements": 500},
     "gather_format": "fp8",
     "each_micro_batch": true, "regather": true, "regather_group": 4,
     "hierarchy": {"form": "sharded", "group_size": 8, "across_stream": true, "across_last": true}}
  ],
  "baseline": "plain",
  "sweep": {
    "cluster.nodes": [8, 16],
    "strategies.fused.fusion.size_mb": [1, 25]
  },
  "training": {
    "from": 0,
    "steps": 1000,
    "learning_rate": {"initial": 0.1, "decay": "polynomial", "power": 1, "final": 0,
                      "warmup_steps": 2, "steps": 50},
    "loss": [[0, 6.9], [1000, 1.5]]
  },
  "seed": 7,
  "published": [
    {"strategy": "fused", "sweep": {"cluster.nodes": 16}, "step_time_s": 0.1, "throughput": 900,
     "speedup": 3.5, "collectives": 2, "buckets": [[2, 0.25], [1, 1]], "use": "calibrated",
     "source": "made up", "note": "none", "accuracy": 76.5}
  ],
  "calibration": {
    "parameters": {"cluster.inter.efficiency": {"start": 0.8, "min": 0.1, "max": 1}},
    "each": ["cluster.nodes"], "leave_out": "cluster.nodes", "out_of_range": "nothing is"
  },
  "simulation": {"grain": "step", "fold": false, "periods": 5, "warmup": 1},
  "search": {
    "base": "fused",
    "fusion": {"optimum": true, "size_mb": [1, 2.5], "close": ["after", "before"],
               "first_size_mb": [0, 1], "cycle_ms": [0, 2.5], "count": [10, 20],
               "rules": ["none", "one"]},
    "streams": [1, 2],
    "algorithm": ["ring", "to_one"],
    "hierarchy": ["flat", {"form": "sharded", "group_size": 8}],
    "compression": ["none", {"codec": "fp16", "encode_launches": 1},
                    {"codec": "powersgd", "rank": 2, "min_compression_rate": 1.5}],
    "local_sgd": ["none", {"period": 4}],
    "exchange": ["all_reduce", "decoupled"],
    "cross_step": [false, true],
    "priority": ["ready", "layer"],
    "confirm": 2
  }
})json";

// `visit` is given the place of each value and the value, an object or list ahead of what it holds.
template <typename Node, typename Visit>
void walk(const Node& node, const typename Node::json_pointer& at, const Visit& visit) {
  visit(at, node);
  if (node.is_object()) {
    for (const auto& [key, value] : node.items()) walk(value, at / key, visit);
  } else if (node.is_array()) {
    for (std::size_t i = 0; i < node.size(); ++i) walk(node[i], at / i, visit);
  }
}

inline Json full_scenario() { return Json::parse(kFullScenarioText); }

// A small valid scenario: one gradient on two nodes.
inline Json small_scenario() {
  return Json::parse(R"json({
    "name": "small",
    "workload": {"name": "w", "tensors": [{"name": "fc.weight", "shape": [10]}]},
    "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1,
                "inter": {"latency_us": 10, "bandwidth_gbps": 8}},
    "strategies": [{"name": "plain"}]
  })json");
}

inline Scenario parsed(const Json& scenario) {
  return input::parse_scenario(input::document_from_text("x.json", scenario.dump()));
}

// The message of the InputError, or nothing where the text is a valid scenario. Any other
// exception is let through: it fails the test.
inline std::string error_of_text(const std::string& text) {
  return input_error([&] { input::parse_scenario(input::document_from_text("x.json", text)); });
}

inline std::string error_of(const Json& scenario) { return error_of_text(scenario.dump()); }

}  // namespace syncline::test
