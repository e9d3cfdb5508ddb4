// Input that is likely a mistake: one row each, beside what is like it and meant.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/collective/library.h"
#include "studies/warnings/warnings.h"
#include "tests/support/full_scenario.h"
#include "tests/support/studies.h"
#include "tests/support/text.h"

namespace syncline::measure {
namespace {

// Two nodes of a known kind, a model of known layers.
Json usual() {
  return Json::parse(R"({
    "name": "d",
    "workload": {"name": "gpt2_small", "batch": 4, "operators": {
      "architecture": "gpt2_small", "sequence": 128, "dtype": "fp16"}},
    "cluster": {"name": "c", "node": "dgx-1", "nodes": 2, "device": {"base": "v100-sxm"},
                "inter": {"latency_us": 10, "bandwidth_gbps": 100}},
    "strategies": [{"name": "s", "dialect": "pytorch", "config": {}}]})");
}

Json usual_but(const char* patch) {
  Json scenario = usual();
  scenario.merge_patch(Json::parse(patch));
  return scenario;
}

using test::warnings_in;

std::vector<std::string> suspicious_in(const Json& scenario) {
  auto warnings = warnings_in(scenario);
  return take_suspicious(warnings);
}

// Part of the only suspicious value; empty: none.
void expect_suspicious(const Json& scenario, const std::string& what, const std::string& part) {
  const auto suspicious = suspicious_in(scenario);
  ASSERT_EQ(suspicious.size(), part.empty() ? 0U : 1U) << what << Json(suspicious).dump(1);
  if (part.empty()) return;
  EXPECT_TRUE(test::contains(suspicious[0], part)) << suspicious[0];
}

TEST(DoubtfulInput, IsNotedForClusterAndWorkload) {
  const std::pair<const char*, const char*> rows[] = {
      // patches of `usual`
      {"{}", ""},
      {R"({"cluster": {"gpus_per_node": 9}})", "cluster.gpus_per_node is 9, and a dgx-1 has 8"},
      {R"({"cluster": {"gpus_per_node": 4}})", ""},
      {R"({"cluster": {"device": {"name": "NVIDIA A100-SXM4-80GB"}}})",
       "cluster.device.name is 'NVIDIA A100-SXM4-80GB', and the figures are those of v100-sxm: a "
       "name is a label (\"base\": \"a100-sxm-80gb\" takes the figures of that device)"},
      {R"({"cluster": {"device": {"name": "Tesla V100-SXM2-32GB"}}})", "takes the figures of that"},
      {R"({"cluster": {"device": {"name": "Tesla V100-SXM2-16GB"}}})", ""},
      {R"({"cluster": {"device": {"name": "our own"}}})", ""},
      {R"({"workload": {"operators": {"dtype": "bf16"}}})",
       "has no fast products in bf16: they take the rate of fp32"},
      {R"({"workload": {"operators": {"dtype": "bf16"}},
           "cluster": {"node": "dgx-a100", "device": {"base": "a100-sxm-40gb"}}})",
       ""},
      {R"({"workload": {"batch": 512}})", "was the batch of all 16 GPUs meant (32 each)?"},
      {R"({"workload": {"batch": 513}})", ""},
      {R"({"workload": {"batch": 64}})", ""},
      {R"({"workload": {"batch": 65536}})", ""},
      {R"({"workload": {"batch": 512}, "cluster": {"device": {"memory_gbytes": 400}}})", ""},
      {R"({"cluster": {"inter": {"bandwidth_gbps": 1.25}}})", "were 1.25 GB/s meant (10 Gbit/s)?"},
      {R"({"cluster": {"inter": {"bandwidth_gbps": 12.5}}})", "were 12.5 GB/s meant (100 Gbit/s)?"},
      {R"({"cluster": {"inter": {"bandwidth_gbps": 1}}})", ""},
      {R"({"cluster": {"inter": {"bandwidth_gbps": 25}}})", ""},
      {R"({"cluster": {"inter": {"latency_us": 0.025}}})", "were milliseconds meant (25 us)?"},
      {R"({"cluster": {"inter": {"latency_us": 25000}}})", ""},
      {R"({"cluster": {"inter": {"latency_us": 0}}})", ""},
      {R"({"cluster": {"inter": {"latency_us": 1}}})", ""},
  };
  for (const auto& [patch, suspicious] : rows) {
    expect_suspicious(usual_but(patch), patch, suspicious);
  }
}

// GPT-2's 50,257 words, on GPUs whose kernels ask for more.
TEST(Warnings, SayWhatAnOddVocabularyCosts) {
  const auto told = [](const char* patch) {
    const auto warnings = warnings_in(usual_but(patch));
    const auto found = std::ranges::find_if(warnings, [](const auto& warning) {
      return test::contains(warning, "50257 columns are no multiple of 8");
    });
    return found == warnings.end() ? std::string() : *found;
  };
  EXPECT_EQ(told("{}"), "") << "a V100";
  const char* hopper = R"({"workload": {"operators": {"dtype": "bf16"}},
                           "cluster": {"node": "dgx-h100", "device": {"base": "h100-sxm"}}})";
  EXPECT_TRUE(test::contains(told(hopper), "which 50304 would spare")) << told(hopper);
  EXPECT_EQ(told(R"({"workload": {"operators": {"dtype": "fp32"}},
                     "cluster": {"node": "dgx-h100", "device": {"base": "h100-sxm"}}})"),
            "");
}

TEST(DoubtfulInput, IsNotedForFrameworksConfigurations) {
  const std::tuple<const char*, const char*, const char*> rows[] = {
      {"fsdp", "{}",
       "no units are given, so the model is one unit and nothing overlaps the backward pass: name "
       "the modules that are wrapped (\"units\": [\"transformer.h.*\"]), or say that it is one "
       "(\"units\": [])"},
      {"fsdp", R"({"units": []})", ""},
      {"fsdp", R"({"units": ["transformer.h.*"]})", ""},
      {"deepspeed", R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": 25}})",
       "reduce_bucket_size counts elements, and 25 of them are a bucket of 100 bytes: were MiB "
       "meant (25 MiB of fp32 are 6553600 elements)?"},
      {"deepspeed", R"({"zero_optimization": {"stage": 0, "reduce_bucket_size": 25}})", ""},
      {"deepspeed", R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": 5e6}})", ""},
      {"megatron", R"({"overlap-grad-reduce": true, "ddp-bucket-size": 25})",
       "ddp-bucket-size counts elements"},
      {"megatron", R"({"overlap-grad-reduce": true})", ""},
      {"horovod", R"({"HOROVOD_CYCLE_TIME": 0.005})",
       "is read in milliseconds: were 0.005 s meant (5 ms)?"},
      {"horovod", R"({"HOROVOD_CYCLE_TIME": 0})", ""},
      {"horovod", R"({"HOROVOD_CYCLE_TIME": 5})", ""},
      {"horovod", R"({"HOROVOD_FUSION_THRESHOLD": 64})", "were MiB meant"},
      {"pytorch", R"({"bucket_cap_mb": 26214400})", "were bytes written where MiB are read?"},
  };
  for (const auto& [dialect, config, suspicious] : rows) {
    Json scenario = usual();
    scenario["workload"]["operators"]["dtype"] = "fp32";  // FSDP takes one format a unit
    scenario["strategies"][0]["dialect"] = dialect;
    scenario["strategies"][0]["config"] = Json::parse(config);
    expect_suspicious(scenario, config, suspicious);
    for (const auto& line : suspicious_in(scenario)) {
      EXPECT_TRUE(line.starts_with("strategy 's': ")) << line;
    }
  }
}

// Tensor cores of a V100 know no bf16: its products take fp32's rate, not fp16's.
TEST(DoubtfulInput, ProductsThatADeviceDoesNotHaveTakeTheRateOfFp32) {
  const auto backward = [](const char* dtype) {
    Json scenario = usual();
    scenario["workload"]["operators"]["dtype"] = dtype;
    return backward_time(test::parsed(scenario).workload);
  };
  EXPECT_GT(backward("bf16"), 2 * backward("fp16"));
  EXPECT_LE(backward("bf16"), backward("fp32"));
}

// Beside its base a name is a label: neither NCCL's model nor the rate of bf16 follows it.
TEST(DoubtfulInput, ANameChangesNothingNextToABase) {
  Json scenario = usual();
  scenario["workload"]["operators"]["dtype"] = "bf16";
  const Scenario own = test::parsed(scenario);
  scenario["cluster"]["device"]["name"] = "NVIDIA H100 80GB HBM3";
  const Scenario labelled = test::parsed(scenario);
  EXPECT_EQ(collective::named_capability(labelled.cluster), 70);
  EXPECT_EQ(backward_time(labelled.workload), backward_time(own.workload));
}

// That is no mistake: a warning, and not suspicious.
TEST(DoubtfulInput, NcclReplacesRccl) {
  Json scenario = usual();
  scenario["cluster"] = {{"name", "c"}, {"node", "mi300x-platform"}, {"nodes", 2}};
  scenario["cluster"]["library"] = "nccl";
  EXPECT_TRUE(suspicious_in(scenario).empty());
  EXPECT_TRUE(
      test::any_contains(warnings_of(test::parsed(scenario)), "runs RCCL, which is not modelled"));
}

// A workload that bears an architecture's name takes the name of the one that is put in its place.
TEST(DoubtfulInput, AGeneratedWorkloadIsNamedByItsArchitecture) {
  Json scenario = usual();
  scenario["workload"]["operators"]["architecture"] = "gpt2_medium";
  EXPECT_EQ(test::parsed(scenario).workload.name, "gpt2_medium");
  scenario["workload"]["name"] = "ours";
  EXPECT_EQ(test::parsed(scenario).workload.name, "ours");
}

TEST(DoubtfulInput, IsPrintedBeforeOtherWarnings) {
  Json scenario = usual();
  scenario["cluster"]["gpus_per_node"] = 9;
  auto warnings = warnings_in(scenario);
  ASSERT_GT(warnings.size(), 1U);
  EXPECT_TRUE(warnings.front().starts_with(kDoubtful)) << warnings.front();
  const std::size_t all = warnings.size();
  EXPECT_EQ(take_suspicious(warnings).size(), 1U);
  EXPECT_EQ(warnings.size(), all - 1);
}

}  // namespace
}  // namespace syncline::measure
