// A strategy written in the keys of a scenario and read again makes the same plan: every knob, and
// whatever the dialects read.
#include "formats/input/scenario_json.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "core/plan.h"
#include "formats/input/document.h"

namespace syncline::input {
namespace {

std::string exactly(double value) {
  char text[64];
  std::snprintf(text, sizeof text, " %a", value);
  return text;
}

std::string numbers(const std::vector<int>& list) {
  std::string text;
  for (const int number : list) text += " " + std::to_string(number);
  return text;
}

// Everything that a plan says.
std::string plan_text(const plan::Plan& plan, const Workload& workload) {
  std::string text = std::to_string(plan.ranks) + " ranks, " + std::to_string(plan.streams) +
                     " streams, " + std::to_string(plan.steps) + " steps\n";
  for (const auto& bucket : plan.buckets) {
    text += "bucket" + numbers(bucket.tensors);
    for (const std::int64_t figure : {std::int64_t{bucket.sparse}, bucket.elements, bucket.bytes,
                                      bucket.padded_bytes, bucket.kept, std::int64_t{bucket.ready},
                                      bucket.first, static_cast<std::int64_t>(bucket.dtype)}) {
      text += ", " + std::to_string(figure);
    }
    text += (bucket.codec == nullptr ? "" : ", " + std::string(bucket.codec->name)) + "\n";
  }
  for (const auto& op : plan.ops) {
    text += std::to_string(op.stream) + " " + std::to_string(op.step) + ": " +
            plan::describe(op, plan, workload) + exactly(plan::seconds_of(op.work)) + " after" +
            numbers(op.after) + ", previous" + numbers(op.after_previous);
    if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
      const collective::Groups& groups = collective->groups;
      text += " " + std::string(collective->algorithm->name) + " " +
              std::to_string(collective->elements) + " x " + std::to_string(collective->unit) +
              numbers({groups.base, groups.count, groups.group_step, groups.size,
                       groups.member_step, collective->nccl.has_value()});
    }
    text += "\n";
  }
  return text;
}

// All plans of a run: ramps, periods and phases of ticks included.
std::string run_text(const Scenario& scenario) {
  const Strategy& strategy = scenario.strategies.front();
  std::string text;
  for (const auto& phase : plan::training_phases(strategy, scenario.training)) {
    text += std::to_string(phase.steps) + " of\n" +
            plan_text(plan::make_plan(scenario.workload, scenario.cluster, strategy, phase.point),
                      scenario.workload);
  }
  return text;
}

Document document_with(const Json& strategy, const std::string& workload) {
  Document document = document_from_text("x.json", R"({"name": "x", "workload": )" + workload +
                                                       R"(, "cluster": {"name": "c", "nodes": 4,
      "gpus_per_node": 4, "intra": {"latency_us": 4, "bandwidth_gbps": 100},
      "inter": {"latency_us": 30, "bandwidth_gbps": 10}, "device": {"memory_gbytes_per_s": 500,
      "launch_us": 5, "host_sync_us": 10, "tflops": 15, "half_tflops": 100}},
      "strategies": [{"name": "s"}],
      "training": {"from": 0, "steps": 50, "loss": [[0, 4], [50, 1]],
                   "learning_rate": {"initial": 0.1}}})");
  document.root["strategies"] = Json::array({strategy});
  return document;
}

// Layers with a weight and a bias, half precision among them, a sparse embedding and a buffer.
std::string small_workload() {
  std::string tensors;
  for (int i = 0; i < 14; ++i) {
    tensors += R"({"name": "layer)" + std::to_string(i / 2) + (i % 2 == 0 ? ".weight" : ".bias") +
               R"(", "shape": [)" + std::to_string(20000 + 90000 * (i % 5)) +
               (i % 4 == 1 ? R"(], "dtype": "fp16")" : "]") + R"(, "forward_us": 40,
               "backward_us": )" +
               std::to_string(200 + 150 * (i % 3)) + "}, ";
  }
  return R"({"name": "w", "batch": 8, "forward_ms": 1, "update_ms": 0.2, "tensors": [)" + tensors +
         R"({"name": "embedding.weight", "shape": [1000, 64], "sparse_rows": 32,
             "forward_us": 20, "backward_us": 30}],
      "buffers": [{"name": "layer0.running_mean", "shape": [64]}]})";
}

void expect_same_plan_again(const std::string& strategy, const std::string& workload) {
  SCOPED_TRACE(strategy);
  const Document document = document_with(Json::parse(strategy), workload);
  const Scenario scenario = parse_scenario(document);
  const Json written = strategy_json(scenario.strategies.front());
  SCOPED_TRACE(written.dump());
  EXPECT_FALSE(written.contains("dialect"));
  Scenario again;
  ASSERT_NO_THROW(again = parse_scenario(document_with(written, workload)));
  EXPECT_EQ(run_text(again), run_text(scenario));
  EXPECT_EQ(strategy_json(again.strategies.front()), written) << "written twice, differently";
}

TEST(StrategyJson, EveryKnobReadsBackAsTheSamePlan) {
  for (
      const char* strategy : {
          R"({"name": "s"})",
          R"({"name": "s", "overlap": false, "algorithm": "halving_doubling"})",
          R"({"name": "s", "streams": 3, "algorithm": "nccl", "fusion": {"rule": "one"}})",
          R"({"name": "s", "fusion": {"rule": "layer"}, "update": "per_bucket"})",
          R"({"name": "s", "fusion": {"rule": "size", "size_mb": 0.7, "first_size_mb": 0.1,
               "count": 3, "by_layer": true, "layer_key": "first_dot", "align_bytes": 256}})",
          R"({"name": "s", "fusion": {"rule": "size", "size_mb": 0.3, "close": "before",
               "cast": "fp32"}})",
          R"({"name": "s", "fusion": {"rule": "size", "size_mb": 0.9, "close": "before",
               "cycle_ms": 0.7}})",
          R"({"name": "s", "fusion": {"rule": "size", "size_mb": 0.9, "order": "forward"}})",
          R"({"name": "s", "fusion": {"rule": "count", "count": 5, "by_layer": true}})",
          R"({"name": "s", "fusion": {"rule": "index", "ends": [0, 4, 9]}})",
          R"({"name": "s", "fusion": {"rule": "groups", "groups": [[5, 0], [1, 7, 3]]}})",
          R"({"name": "s", "fusion": {"rule": "groups", "groups": [[1, 0], [2], [3, 4, 5]]}})",
          R"({"name": "s", "fusion": {"rule": "mg_wfbp", "align_bytes": 512}})",
          R"({"name": "s", "hierarchy": {"form": "leaders", "first": "all_reduce",
               "inside": "to_one", "across": "double_binary_tree"}})",
          R"({"name": "s", "hierarchy": {"form": "sharded", "group_size": 8}, "streams": 2})",
          R"({"name": "s", "compression": {"codec": "dgc", "sparsity": [0.75, 0.9, 0.99],
               "rampup_begin_step": 5, "rampup_step": 20, "min_elements": 30000,
               "encode_launches": 14, "decode_launches": 3}})",
          R"({"name": "s", "compression": {"codec": "fp16", "encode_launches": 2}})",
          R"({"name": "s", "compression": {"codec": "powersgd", "rank": 2, "rampup_begin_step": 7,
               "min_compression_rate": 1.5}, "fusion": {"rule": "one"}})",
          R"({"name": "s", "exchange": "sharded", "cross_step": true, "regather": true,
               "gather_groups": [[0, 2], [1, 3, 4]], "kept_groups": 1})",
          R"({"name": "s", "exchange": "sharded", "cross_step": true, "regather": true,
               "regather_group": 4, "each_micro_batch": true, "hierarchy": {"form": "sharded",
               "group_size": 8, "across_stream": true, "across_last": true}})",
          R"({"name": "s", "exchange": "decoupled", "hierarchy": {"form": "sharded"}})",
          R"({"name": "s", "local_sgd": {"period": 4, "begin_step": 9}})",
          R"({"name": "s", "local_sgd": {"period": 4, "subgroup": 4, "warmup": "gradients"},
               "fusion": {"rule": "size", "size_mb": 0.5}})",
          R"({"name": "s", "local_sgd": {"adaptive": true, "init_period": 2, "max_period": 8}})",
          R"({"name": "s", "exchange": "decoupled"})",
          R"({"name": "s", "exchange": "decoupled", "cross_step": true, "fusion": {"rule": "one"}})",
          R"({"name": "s", "exchange": "sharded"})",
          R"({"name": "s", "exchange": "sharded", "cross_step": true, "update": "per_bucket"})",
          R"({"name": "s", "exchange": "sharded", "cross_step": true,
               "gather_groups": [[0, 2], [1, 3, 4]]})",
          R"({"name": "s", "cross_step": true})",
          R"({"name": "s", "priority": "layer", "credit_mb": 0.5, "partition_mb": 0.1})",
          R"({"name": "s", "preset": "dear"})",
          R"({"name": "s", "preset": "bytescheduler"})",
          R"({"name": "s", "preset": "bytescheduler", "fusion": {"rule": "layer"}})",
          R"({"name": "s", "preset": "mg_wfbp"})",
          R"({"name": "s", "bucket_copies": true, "host_sync": true, "streams": 2,
               "fusion": {"rule": "size", "size_mb": 0.5}})",
      }) {
    expect_same_plan_again(strategy, small_workload());
  }
}

TEST(StrategyJson, ComputeFusionReadsBackAsTheSamePlan) {
  const std::string workload =
      R"({"name": "w", "batch": 64, "operators": {"architecture": "resnet50", "dtype": "fp16",
          "layout": "NHWC"}})";
  for (const char* strategy : {
           R"({"name": "s", "compute_fusion": {}})",
           R"({"name": "s", "compute_fusion": {"fuse_bn_add_act_ops": false,
               "fuse_bn_act_ops": true}})",
           R"({"name": "s", "compute_fusion": {"fuse_all_optimizer_ops": true,
               "fuse_elewise_add_act_ops": true, "fuse_gemm_epilogue": true,
               "fuse_relu_depthwise_conv": true}})",
           R"({"name": "s", "dialect": "paddle", "config": {"fuse_grad_size_in_MB": 8}})",
       }) {
    expect_same_plan_again(strategy, workload);
  }
}

TEST(StrategyJson, AWrittenDialectStrategyGivesTheSamePlan) {
  for (const char* strategy : {
           R"({"name": "s", "dialect": "paddle", "config": {}})",
           R"({"name": "s", "dialect": "paddle", "config": {"fuse_all_reduce_ops": false}})",
           R"({"name": "s", "dialect": "paddle", "config": {"fuse_grad_size_in_MB": 1,
               "nccl_comm_num": 2, "sync_nccl_allreduce": false,
               "use_hierarchical_allreduce": true, "hierarchical_allreduce_inter_nranks": 4}})",
           R"({"name": "s", "dialect": "paddle_dygraph", "config": {}})",
           R"({"name": "s", "dialect": "mindspore", "config": {
               "parallel_mode": "data_parallel"}})",
           R"({"name": "s", "dialect": "mindspore", "config": {
               "parallel_mode": "semi_auto_parallel", "enable_parallel_optimizer": true}})",
           R"({"name": "s", "dialect": "pytorch", "config": {}})",
           R"({"name": "s", "dialect": "pytorch", "config": {"bucket_cap_mb": 1,
               "comm_hook": "fp16_compress_hook"}})",
           R"({"name": "s", "dialect": "pytorch", "config": {"gradient_as_bucket_view": true}})",
           R"({"name": "s", "dialect": "horovod", "config": {}})",
           R"({"name": "s", "dialect": "horovod", "config": {"HOROVOD_FUSION_THRESHOLD": 0,
               "HOROVOD_CYCLE_TIME": 2.5, "compression": "fp16"}})",
           R"({"name": "s", "dialect": "horovod", "config": {"HOROVOD_CYCLE_TIME": 0,
               "HOROVOD_FUSION_THRESHOLD": 1000000, "HOROVOD_HIERARCHICAL_ALLREDUCE": 1}})",
       }) {
    expect_same_plan_again(strategy, small_workload());
  }
}

}  // namespace
}  // namespace syncline::input
