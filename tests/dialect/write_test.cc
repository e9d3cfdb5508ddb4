// There and back: a configuration that is written from a strategy, read again, makes the same plan.

#include "formats/dialect/write.h"

#include <gtest/gtest.h>

#include "core/plan.h"
#include "formats/input/document.h"
#include "tests/support/text.h"

namespace syncline::dialect {
namespace {

using test::contains;

Scenario scenario_of(const std::string& strategy,
                     const std::string& workload = "resnet50_paddle_class10") {
  return input::parse_scenario(input::document_from_text(
      "write", R"({"name": "write", "workload": ")" SYNCLINE_SOURCE_DIR "/scenarios/workloads/" +
                   workload + R"(.json", "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 8,
      "intra": {"latency_us": 4, "bandwidth_gbps": 1000},
      "inter": {"latency_us": 8, "bandwidth_gbps": 100}}, "strategies": [)" +
                   strategy + "]}"));
}

Written written(const Scenario& scenario, const char* dialect) {
  const auto result = write_config(*find_dialect(dialect), scenario.strategies.front(),
                                   scenario.workload, scenario.cluster);
  EXPECT_TRUE(result.has_value()) << dialect;
  return result.value_or(Written{});
}

void expect_round_trip(const std::string& strategy, const char* dialect,
                       const std::string& workload = "resnet50_paddle_class10") {
  const Scenario scenario = scenario_of(strategy, workload);
  const Written result = written(scenario, dialect);
  EXPECT_TRUE(result.exact) << strategy << ": " << result.difference << "\n" << result.config;
  // Read once more, from the text that a user would paste.
  const Scenario again = scenario_of(R"({"name": "again", "dialect": ")" + std::string(dialect) +
                                         R"(", "config": )" + result.config.dump() + "}",
                                     workload);
  const plan::Plan before =
      plan::make_plan(scenario.workload, scenario.cluster, scenario.strategies.front());
  const plan::Plan after = plan::make_plan(again.workload, again.cluster, again.strategies.front());
  EXPECT_EQ(plan_difference(before, after), "") << strategy;
}

std::string in_dialect(const char* dialect, const std::string& config) {
  return R"({"name": "s", "dialect": ")" + std::string(dialect) + R"(", "config": )" + config + "}";
}

void expect_pytorch_comes_back(const std::string& config,
                               const std::string& workload = "resnet50_v100") {
  expect_round_trip(in_dialect("pytorch", config), "pytorch", workload);
}

TEST(Write, PyTorchComesBack) {
  for (const char* cap : {"0.5", "1", "4", "8", "17", "25", "50", "1000"}) {
    const std::string config = R"({"bucket_cap_mb": )" + std::string(cap) + "}";
    expect_pytorch_comes_back(config);
    expect_pytorch_comes_back(config, "bert_base");
  }
  for (const char* config :
       {R"({"comm_hook": "fp16_compress_hook"})", R"({"find_unused_parameters": true})",
        R"({"comm_hook": "bf16_compress_hook", "gradient_as_bucket_view": true})",
        R"({"gradient_as_bucket_view": true})",
        R"({"comm_hook": "post_localSGD_hook", "PostLocalSGDState": {"start_localSGD_iter": 10},
            "PeriodicModelAverager": {"period": 4}})"}) {
    expect_pytorch_comes_back(config);
  }
  for (const char* rest : {"}", R"(, "find_unused_parameters": true})"}) {
    for (const char* list : {"[0.5, 30]", "[1, 2, 40, 12]", "[8, 8, 8, 8, 8, 8]"}) {
      expect_pytorch_comes_back(R"({"bucket_cap_mb_list": )" + std::string(list) + rest);
    }
  }
}

// LocalSGD averages buffers behind the parameters: no list of DDP's limits reaches so far.
TEST(Write, BuffersThatAreAveragedAreNoGradients) {
  Scenario scenario = scenario_of(R"({"name": "local", "local_sgd": {"period": 4},
                                      "fusion": {"rule": "one"}})",
                                  "resnet50_v100");
  scenario.workload.buffers.assign(106, scenario.workload.tensors.front());
  const auto result = write_config(*find_dialect("pytorch"), scenario.strategies.front(),
                                   scenario.workload, scenario.cluster);
  EXPECT_TRUE(!result || !result->config.contains("bucket_cap_mb_list")) << result->config;
}

TEST(Write, BuffersAreNobodysToSuggest) {
  Scenario scenario = scenario_of(R"({"name": "local", "local_sgd": {"period": 4},
                                      "fusion": {"rule": "size", "size_mb": 4}})",
                                  "resnet50_v100");
  scenario.workload.buffers.assign(106, scenario.workload.tensors.front());
  static std::size_t seen;
  seen = 0;
  Dialect dialect = *find_dialect("fsdp");
  dialect.suggest = [](const Strategy&, const std::vector<plan::Bucket>& buckets,
                       const Workload& workload, const Cluster&) {
    for (const auto& bucket : buckets) {
      EXPECT_FALSE(bucket.tensors.empty());
      for (const int tensor : bucket.tensors) EXPECT_LT(tensor, std::ssize(workload.tensors));
      seen += bucket.tensors.size();
    }
    return std::vector<Json>{};
  };
  EXPECT_FALSE(
      write_config(dialect, scenario.strategies.front(), scenario.workload, scenario.cluster));
  EXPECT_GE(seen, scenario.workload.tensors.size());
}

TEST(Write, PaddleComesBack) {
  for (const char* config :
       {"{}", R"({"fuse_grad_size_in_MB": 16})", R"({"fuse_all_reduce_ops": false})",
        R"({"fuse_grad_size_in_MB": 8, "_fuse_grad_size_in_TFLOPS": 20.0})",
        R"({"nccl_comm_num": 3, "sync_nccl_allreduce": false})",
        R"({"use_hierarchical_allreduce": true, "hierarchical_allreduce_inter_nranks": 8})",
        R"({"dgc": true, "dgc_configs": {"sparsity": [0.99]}})",
        R"({"localsgd": true, "localsgd_configs": {"k_steps": 4, "begin_step": 1}})"}) {
    expect_round_trip(in_dialect("paddle", config), "paddle");
  }
}

TEST(Write, MindSporeTakesAnyRunOfItsOrder) {
  for (const char* ends : {"[80]", "[0, 1, 2]", "[20, 35]", "[10, 50, 90, 120, 159]"}) {
    expect_round_trip(
        R"({"name": "s", "fusion": {"rule": "index", "ends": )" + std::string(ends) + "}}",
        "mindspore");
  }
  expect_round_trip(R"({"name": "s", "fusion": {"rule": "one"}})", "mindspore");
  expect_round_trip(R"({"name": "s"})", "mindspore");
}

TEST(Write, OneFrameworksBucketsInAnothersWords) {
  expect_round_trip(in_dialect("pytorch", "{}"), "mindspore", "resnet50_v100");
  expect_round_trip(in_dialect("paddle", "{}"), "mindspore");
}

// DDP has neither streams nor a hierarchy; a schedule that a framework lacks is named.
TEST(Write, InexpressibleSettingsAreReported) {
  struct Lack {
    const char* dialect;
    const char* strategy;
    const char* difference;
  };
  for (const auto& [dialect, strategy, difference] :
       {Lack{"pytorch", R"({"name": "s", "streams": 2})", "1 communication stream instead of 2"},
        Lack{"paddle", R"({"name": "s", "hierarchy": {"form": "sharded"}})", "other collectives"},
        Lack{"mindspore", R"({"name": "s", "cross_step": true, "fusion": {"rule": "one"}})",
             "when all parameters are in"},
        Lack{"mindspore",
             R"({"name": "s", "fusion": {"size_mb": 1000, "close": "before", "cycle_ms": 1000}})",
             "not at ticks"},
        Lack{"horovod", R"({"name": "s"})", ""}}) {
    const Written result = written(scenario_of(strategy), dialect);
    EXPECT_FALSE(result.exact) << strategy;
    EXPECT_TRUE(contains(result.difference, difference)) << result.difference;
  }
}

TEST(Write, PaddleDygraphIsNotWritten) {
  const Scenario scenario = scenario_of(R"({"name": "s"})");
  EXPECT_FALSE(write_config(*find_dialect("paddle_dygraph"), scenario.strategies.front(),
                            scenario.workload, scenario.cluster)
                   .has_value());
}

}  // namespace
}  // namespace syncline::dialect
