// What is allowed and rarely meant is said, once, and nothing else is.
#include "studies/warnings/warnings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/collective/collective.h"
#include "studies/warnings/gradient_order.h"
#include "tests/support/full_scenario.h"
#include "tests/support/studies.h"
#include "tests/support/text.h"

namespace syncline::measure {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::warnings_in;

// Two nodes, times, a device that is paid for: nothing to say about it.
Json plain() {
  return Json::parse(R"({
    "name": "p",
    "workload": {"name": "w", "forward_ms": 1, "tensors": [
      {"name": "fc2.weight", "shape": [10, 64], "backward_us": 100},
      {"name": "fc1.weight", "shape": [64, 32], "backward_us": 100}]},
    "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 2, "library": "links",
                "intra": {"latency_us": 3, "bandwidth_gbps": 1200},
                "inter": {"latency_us": 10, "bandwidth_gbps": 100},
                "device": {"memory_gbytes_per_s": 800, "tflops": 10}},
    "strategies": [{"name": "plain"}]})");
}

std::vector<std::string> warnings_on(const Json& scenario) {
  return warnings_of(test::parsed(scenario));
}

// The figures of an update on the host are guesses unless the cluster gives them.
TEST(Warnings, AnUpdateOnTheHostIsNamed) {
  Json scenario = plain();
  EXPECT_TRUE(warnings_on(scenario).empty());
  scenario["strategies"][0]["offload"] = "optimizer";
  auto said = warnings_on(scenario);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(contains(said[0], "0.81 ns to update a parameter, all of a node together, a guess"))
      << said[0];
  EXPECT_TRUE(contains(said[0], "25 GB/s")) << said[0];
  scenario["cluster"]["device"]["host_update_ns"] = 0.3;
  scenario["cluster"]["device"]["host_link_gbytes_per_s"] = 50;
  said = warnings_on(scenario);
  EXPECT_TRUE(
      contains(said.at(0), "0.3 ns to update a parameter, all of a node together; transfers"))
      << said.at(0);
}

// Costs that no measurement speaks for: said, for they look like the others.
TEST(Warnings, CollectivesThatLeaveTheMeasurementsAreNamed) {
  Scenario scenario = test::parsed(plain());
  const auto measured_up_to = [&](double bytes) {
    scenario.cluster.cost_model = [=](const collective::Collective& asked) {
      return std::optional(CollectiveTime{
          .time = 1e-3, .spread = 0.1, .measured = static_cast<double>(asked.bytes()) <= bytes});
    };
    return warnings_of(scenario);
  };
  EXPECT_TRUE(measured_up_to(1e9).empty());
  const auto some = measured_up_to(4000);
  ASSERT_EQ(some.size(), 1u);
  EXPECT_TRUE(contains(some[0], "strategy 'plain': 1 of 2 collectives leave the sizes or counts"));
  EXPECT_TRUE(contains(measured_up_to(1).at(0), "all collectives leave"));
  scenario.cluster.cost_model = [](const collective::Collective&) {
    return std::optional<CollectiveTime>();
  };
  EXPECT_TRUE(contains(warnings_of(scenario).at(0), "predicted without the cluster's calibration"));
}

// The only warning on the scenario.
std::string warning_on(const Json& scenario) {
  const auto warnings = warnings_on(scenario);
  EXPECT_EQ(warnings.size(), 1u) << Json(warnings).dump(1);
  return warnings.empty() ? "" : warnings.front();
}

TEST(Warnings, PlausibleInputHasNoWarning) {
  EXPECT_TRUE(warnings_on(plain()).empty()) << Json(warnings_on(plain())).dump();
}

// Each verb says them, not those alone that print notes.
TEST(Warnings, SettingsThatTheirFrameworkIgnores) {
  const auto on = [](const char* dialect, const char* config) {
    Json scenario = plain();
    scenario["strategies"][0].update({{"dialect", dialect}, {"config", Json::parse(config)}});
    const auto warnings = warnings_on(scenario);
    return std::ranges::count_if(warnings, tells_ignored);
  };
  EXPECT_EQ(on("paddle", R"({"fuse_grad_size_in_MB": 16.5})"), 1);
  EXPECT_EQ(on("paddle", R"({"fuse_grad_size_in_MB": 16})"), 0);
  EXPECT_EQ(on("deepspeed", R"({"zero_optimization": {"stage": 0, "reduce_bucket_size": 5000}})"),
            1);
  EXPECT_EQ(on("deepspeed", R"({"zero_optimization": {"stage": 3, "allgather_bucket_size": 5e8}})"),
            1);
  EXPECT_EQ(on("megatron", R"({"ddp-bucket-size": 40000000})"), 1);
}

TEST(Warnings, TheSameOfSeveralStrategiesIsOneLine) {
  Json scenario = plain();
  scenario["cluster"].erase("device");
  for (const char* name : {"a", "b", "c"}) {
    scenario["strategies"].push_back({{"name", name}, {"compression", {{"codec", "fp16"}}}});
  }
  EXPECT_EQ(warning_on(scenario),
            "strategies 'a', 'b' and 'c': cluster.device.memory_gbytes_per_s is not given, "
            "encoding costs nothing");
  for (const char* name : {"d", "e", "f"}) {
    scenario["strategies"].push_back({{"name", name}, {"compression", {{"codec", "fp16"}}}});
  }
  EXPECT_TRUE(contains(warning_on(scenario), "strategies 'a', 'b', 'c', 'd' and 2 more: "));
}

TEST(Warnings, UnitsThatAreOffByAThousand) {
  const auto with = [](const char* part, const char* key, double value) {
    Json scenario = plain();
    scenario["cluster"][part][key] = value;
    return scenario;
  };
  const std::tuple<const char*, const char*, double, const char*> mistakes[] = {
      {"inter", "bandwidth_gbps", 25000,
       "cluster.inter.bandwidth_gbps: 25000 Gbit/s is more than any NIC carries"},
      {"inter", "latency_us", 20000, "cluster.inter.latency_us: 20000 us per message"},
      {"intra", "bandwidth_gbps", 300000, "GPU's port"},
      {"device", "tflops", 312000, "was GFLOP/s meant?"},
      {"device", "memory_gbytes_per_s", 2e6, "was MB/s meant?"}};
  for (const auto& [part, key, value, told] : mistakes) {
    EXPECT_TRUE(contains(warning_on(with(part, key, value)), told)) << part << key;
  }
  // What is sold stays: eight NICs of 800 Gbit/s, NVLink of a rack, the newest memory.
  Json fast = with("inter", "bandwidth_gbps", 800);
  fast["cluster"]["inter"]["nics"] = 8;
  fast["cluster"]["intra"]["bandwidth_gbps"] = 7200;
  fast["cluster"]["device"] = {{"tflops", 5000}, {"memory_gbytes_per_s", 8000}};
  EXPECT_TRUE(warnings_on(fast).empty()) << Json(warnings_on(fast)).dump();
}

TEST(Warnings, SizesInTheWrongUnit) {
  const auto with = [](const Json& strategy) {
    Json scenario = plain();
    scenario["strategies"] = Json::array({strategy});
    return scenario;
  };
  const auto dialect = [&](const char* name, const Json& config) {
    return with({{"name", "s"}, {"dialect", name}, {"config", config}});
  };
  const char* bytes = "were bytes written where MiB are read?";
  const std::pair<Json, const char*> mistakes[] = {
      {dialect("horovod", {{"HOROVOD_FUSION_THRESHOLD", 64}}),
       "HOROVOD_FUSION_THRESHOLD is read in bytes"},
      {dialect("pytorch", {{"bucket_cap_mb", 26214400}}), bytes},
      {dialect("paddle", {{"fuse_grad_size_in_MB", 33554432}}), bytes},
      {dialect("paddle", {{"fuse_grad_size_in_MB", 524288}}), bytes},
      {with({{"name", "s"}, {"fusion", {{"rule", "size"}, {"size_mb", 26214400}}}}),
       "strategy 's': buckets of 2.62144e+07 MiB"}};
  for (const auto& [scenario, told] : mistakes) {
    EXPECT_TRUE(contains(warning_on(scenario), told)) << scenario["strategies"];
  }
  // A generous size on a tiny model, no fusion at all, and what `emit` writes for one bucket.
  for (const Json& usual :
       {dialect("horovod", {{"HOROVOD_FUSION_THRESHOLD", 0}}), dialect("horovod", Json::object()),
        dialect("pytorch", {{"bucket_cap_mb", 1000000}}), dialect("paddle", Json::object()),
        with({{"name", "s"}, {"fusion", {{"rule", "size"}, {"size_mb", 1000}}}})}) {
    EXPECT_TRUE(warnings_on(usual).empty()) << usual.dump() << Json(warnings_on(usual)).dump();
  }
}

TEST(Warnings, ATotalThatContradictsItsParts) {
  Json scenario = plain();
  scenario["workload"]["backward_ms"] = 0.2;
  EXPECT_TRUE(warnings_in(scenario).empty());
  scenario["workload"]["backward_ms"] = 40;
  EXPECT_EQ(warnings_in(scenario),
            std::vector<std::string>{"the gradients' backward_us add up to 0.2 ms, and are "
                                     "stretched to backward_ms, 40 ms"});
}

// How a model that was measured elsewhere is used on another device.
TEST(Warnings, AFilesTimesUnderTheScenariosTotalAreMeant) {
  Json scenario = plain();
  scenario["workload"] = {{"file", SYNCLINE_SOURCE_DIR "/scenarios/workloads/resnet50_v100.json"},
                          {"backward_ms", 600}};
  EXPECT_TRUE(warnings_in(scenario).empty());
}

TEST(Warnings, TheAssumedCostOfOverlapIsNoted) {
  Json scenario = plain();
  scenario["cluster"].erase("library");
  scenario["cluster"]["device"]["name"] = "A100";
  scenario["strategies"] = {{{"name", "own"}, {"algorithm", "nccl"}}};
  EXPECT_TRUE(contains(warnings_on(scenario)[0], "slow each other down by 65 %"));
  scenario["cluster"]["gpus_per_node"] = 4;
  scenario["cluster"]["nccl"] = {{"nvlink", true}};
  EXPECT_TRUE(contains(warnings_on(scenario)[0], "slow each other down by 18.9 %"));
  scenario["cluster"]["device"]["overlap_slowdown"] = 0.1;
  EXPECT_EQ(warnings_on(scenario).size(), 1U);
}

// Nothing says whether collectives slow these ranks down.
TEST(Warnings, AnUnknownCostOfOverlapIsNoted) {
  Json scenario = plain();
  scenario["cluster"].erase("library");
  EXPECT_TRUE(contains(warnings_on(scenario)[0], "neither cluster.device nor cluster.library"));
  scenario["cluster"]["device"]["overlap_slowdown"] = 0;
  EXPECT_TRUE(warnings_on(scenario).empty());
}

// Gradients of 4 MiB that take 2 ms each.
Json larger() {
  Json scenario = plain();
  for (auto& tensor : scenario["workload"]["tensors"]) {
    tensor["shape"] = {1024, 1024};
    tensor["backward_us"] = 2000;
  }
  return scenario;
}

// DDP's first step has one bucket, behind its backward pass; what that takes is evaluated.
TEST(Warnings, AFirstStepOfOneBucket) {
  Json scenario = larger();
  const auto with = [&](const Json& config) {
    const Json row{{"name", "ddp"}, {"dialect", "pytorch"}, {"config", config}};
    scenario["strategies"] = Json::array({row});
    return test::any_contains(warnings_on(scenario),
                              "strategy 'ddp': the first step sums all gradients in one bucket (");
  };
  EXPECT_TRUE(with({{"bucket_cap_mb", 1}}));
  EXPECT_FALSE(with({{"bucket_cap_mb", 1}, {"find_unused_parameters", true}}));
  EXPECT_FALSE(with({{"bucket_cap_mb", 1000}}));  // no other than the later ones
}

// One line for all of them, and none is lost because its name differs by a digit.
// Of one point, wherever they stand.
std::ptrdiff_t count_of(const std::vector<std::string>& warnings,
                        const std::vector<std::string>& parts) {
  return std::ranges::count_if(warnings, [&](const std::string& warning) {
    return !contains(warning, "sweep points") &&
           std::ranges::all_of(parts, [&](const auto& part) { return contains(warning, part); });
  });
}

TEST(Warnings, FirstStepsOfSeveralStrategiesAreOneLine) {
  Json scenario = larger();
  scenario["strategies"] = Json::array();
  for (const int cap : {1, 4}) {
    scenario["strategies"].push_back({{"name", "cap " + std::to_string(cap)},
                                      {"dialect", "pytorch"},
                                      {"config", {{"bucket_cap_mb", cap}}}});
  }
  const auto warnings = warnings_in(scenario);
  EXPECT_EQ(count_of(warnings, {"strategies 'cap 1' and 'cap 4': the first step sums",
                                "in one bucket (up to "}),
            1)
      << Json(warnings).dump(1);
}

TEST(Warnings, LinesOfOnePointThatDifferInDigitsAreAllPrinted) {
  Json scenario = plain();
  scenario["cluster"]["gpus_per_node"] = 8;
  scenario["strategies"] = Json::array();
  for (const char* name : {"a 1", "a 2"}) {
    scenario["strategies"].push_back(
        {{"name", name}, {"hierarchy", {{"form", "leaders"}, {"group_size", 1}}}});
  }
  scenario["strategies"][1]["hierarchy"]["group_size"] =
      scenario["cluster"]["nodes"].get<int>() * 8;
  const auto warnings = warnings_in(scenario);
  for (const char* name : {"'a 1'", "'a 2'"}) {
    EXPECT_EQ(count_of(warnings, {"has only one level", name}), 1)
        << name << Json(warnings).dump(1);
  }
}

TEST(Warnings, ShapesThatPowerSgdHasToGuess) {
  Json scenario = plain();
  scenario["strategies"][0]["compression"] = {{"codec", "powersgd"}};
  EXPECT_EQ(warnings_on(scenario), std::vector<std::string>{});
  for (auto& tensor : scenario["workload"]["tensors"]) tensor["shape"] = {640};
  EXPECT_TRUE(contains(warning_on(scenario), "each counts as nearly a square"));
}

TEST(Warnings, RowsOfDifferentNetworksAreNamed) {
  Json scenario = plain();
  scenario["cluster"].erase("library");
  scenario["cluster"]["device"] = {{"name", "A100"}, {"overlap_slowdown", 0}};
  scenario["strategies"] = {{{"name", "own"}, {"algorithm", "ring"}},
                            {{"name", "ddp"}, {"dialect", "pytorch"}, {"config", Json::object()}}};
  const auto warnings = warnings_on(scenario);
  ASSERT_EQ(warnings.size(), 2u);  // and what the choice of NCCL rests on
  EXPECT_TRUE(contains(warnings[0],
                       "strategy 'ddp' is predicted by NCCL's model, and strategy 'own' on the "
                       "links by an algorithm of its own"));
  EXPECT_TRUE(contains(warnings[0], "\"algorithm\": \"nccl\""));
  EXPECT_TRUE(contains(warnings[1],
                       "strategy 'ddp': NCCL chooses for compute capability "
                       "80"));
  scenario["strategies"][0]["algorithm"] = "nccl";
  EXPECT_TRUE(contains(warning_on(scenario), "strategies 'own' and 'ddp': NCCL chooses"));
  // Nobody knows that these GPUs call NCCL.
  scenario["strategies"][0]["algorithm"] = "ring";
  scenario["cluster"]["library"] = "links";
  EXPECT_TRUE(warnings_on(scenario).empty());
}

TEST(Warnings, ASweepMergesWarningsThatDifferOnlyInNumbers) {
  Json scenario = plain();
  scenario["sweep"] = {{"cluster.inter.bandwidth_gbps", {10, 25000, 50000}}};
  const auto warnings = warnings_in(scenario);
  EXPECT_EQ(test::studied(scenario).warnings, warnings);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(contains(warnings[0], "25000 Gbit/s is more than any NIC carries"));
  EXPECT_TRUE(contains(warnings[0],
                       "(at 2 of 3 sweep points, first at "
                       "cluster.inter.bandwidth_gbps = 25000)"));

  scenario["sweep"] = {{"cluster.inter.bandwidth_gbps", {25000, 50000}}};
  const auto both = warnings_in(scenario);
  ASSERT_EQ(both.size(), 1u);
  EXPECT_TRUE(contains(both[0],
                       "(as at cluster.inter.bandwidth_gbps = 25000; other sweep points "
                       "differ)"));
}

// The order of gradients ------------------------------------------------------------------------

Workload named(const std::vector<std::string>& names) {
  Workload workload;
  for (const auto& name : names) workload.tensors.push_back({.name = name, .shape = {4}});
  return workload;
}

Workload turned_round(Workload workload) {
  std::reverse(workload.tensors.begin(), workload.tensors.end());
  return workload;
}

TEST(GradientOrder, NamesOfModelsThatPeopleTrain) {
  const std::vector<std::vector<std::string>> forward{
      {"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight",
       "model.layers.0.mlp.up_proj.weight", "model.layers.1.self_attn.q_proj.weight",
       "model.layers.1.mlp.up_proj.weight", "model.norm.weight", "lm_head.weight"},
      {"cls_token", "patch_embed.proj.weight", "blocks.0.attn.qkv.weight",
       "blocks.1.attn.qkv.weight", "blocks.2.attn.qkv.weight", "head.weight"},
      {"0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias"},
      {"conv1.weight", "conv2.weight", "fc.weight"},
      {"fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0", "fc_2.w_0", "fc_2.b_0"},
      {"stem.conv.weight", "body.conv.weight", "classifier.weight"}};
  for (const auto& names : forward) {
    EXPECT_TRUE(is_forward_order(named(names))) << names.front();
    EXPECT_FALSE(is_forward_order(turned_round(named(names)))) << names.front();
  }
}

TEST(GradientOrder, NamesThatWereMadeUpSayNothing) {
  for (const auto& names :
       std::vector<std::vector<std::string>>{{"g0", "g1", "g2", "g3"},
                                             {"l0.w", "l1.w", "l2.w", "l3.w"},
                                             {"a"},
                                             {},
                                             {"fc", "scale"},
                                             {"head.weight", "embedding.weight"},
                                             {"bucket 1", "bucket 2", "bucket 3"}}) {
    EXPECT_FALSE(is_forward_order(named(names)));
  }
}

TEST(GradientOrder, MadeUpNamesCountIfTheShapesFollowEachOther) {
  Workload workload = named({"t0", "t1", "t2", "t3"});
  const std::vector<std::vector<std::int64_t>> shapes{{64, 784}, {128, 64}, {256, 128}, {10, 256}};
  for (std::size_t i = 0; i < shapes.size(); ++i) workload.tensors[i].shape = shapes[i];
  EXPECT_TRUE(is_forward_order(workload));
  EXPECT_FALSE(is_forward_order(turned_round(workload)));
  std::reverse(workload.tensors.begin(), workload.tensors.end());
  for (int i = 0; i < 4; ++i)
    workload.tensors[static_cast<std::size_t>(i)].name = "t" + std::to_string(i);
  EXPECT_FALSE(is_forward_order(workload));  // numbered as they become ready
}

TEST(GradientOrder, EveryShippedWorkloadIsInOrderAndTurnedRoundIsNot) {
  int workloads = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(SYNCLINE_SOURCE_DIR) / "scenarios" / "workloads")) {
    Json scenario = plain();
    scenario["workload"] = entry.path().string();
    const Workload workload = test::parsed(scenario).workload;
    EXPECT_FALSE(is_forward_order(workload)) << entry.path();
    EXPECT_TRUE(is_forward_order(turned_round(workload))) << entry.path();
    ++workloads;
  }
  EXPECT_GE(workloads, 15);
}

TEST(Warnings, TimesOfAnotherSchemeAreNoted) {
  Json scenario = plain();
  scenario["strategies"] = Json::parse(R"([
      {"name": "sharded", "dialect": "fsdp", "config": {"version": 2, "units": []}},
      {"name": "whole", "dialect": "pytorch", "config": {}}])");
  EXPECT_TRUE(contains(warning_on(scenario),
                       "strategy 'whole': computation is timed as in "
                       "'sharded', whose copies and hooks"));
  std::swap(scenario["strategies"][0], scenario["strategies"][1]);
  EXPECT_TRUE(contains(warning_on(scenario),
                       "strategy 'sharded': computation is timed as in "
                       "'whole', without the copies and hooks"));
}

TEST(Warnings, ForwardOrderIsNoted) {
  Json scenario = plain();
  auto& tensors = scenario["workload"]["tensors"];
  tensors = Json::parse(R"([
      {"name": "embed.weight", "shape": [64, 32], "backward_us": 100},
      {"name": "head.weight", "shape": [10, 64], "backward_us": 100}])");
  EXPECT_TRUE(contains(warning_on(scenario),
                       "listed in forward order, 'embed.weight' first and "
                       "'head.weight' last"));
}

}  // namespace
}  // namespace syncline::measure
