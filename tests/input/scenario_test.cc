// From JSON to typed values: units, defaults, the rules that share out time, and network levels.
#include "formats/scenario/scenario.h"
#include "formats/json/text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/dice.h"
#include "tests/support/full_scenario.h"
#include "tests/support/text.h"

namespace syncline::input {
namespace {

using test::contains;
using test::error_of;
using test::full_scenario;
using test::parsed;
using test::small_scenario;

TEST(Scenario, UnitsAreSiInside) {
  const Scenario full = parsed(full_scenario());
  const Workload& workload = full.workload;
  EXPECT_DOUBLE_EQ(workload.forward, 1.5e-3);
  EXPECT_DOUBLE_EQ(workload.update, 1e-4);
  const Cluster& cluster = full.cluster;
  ASSERT_EQ(cluster.tiers.size(), 3u);
  EXPECT_DOUBLE_EQ(cluster.tiers[0].latency, 3e-6);
  EXPECT_DOUBLE_EQ(cluster.tiers[0].bandwidth, 150e9);             // 1200 Gbit/s
  EXPECT_DOUBLE_EQ(cluster.tiers[1].bandwidth, 12.5e9 * 0.9 * 2);  // two ports at 90 %
  EXPECT_DOUBLE_EQ(cluster.tiers[1].flow_cap, 3.75e9);
  EXPECT_EQ(cluster.tiers[1].oversubscription, 1.5);
  EXPECT_TRUE(std::isinf(cluster.tiers[0].flow_cap));
  EXPECT_DOUBLE_EQ(cluster.collective_overhead, 5e-6);
  EXPECT_DOUBLE_EQ(cluster.device.flops, 15.7e12 * 0.5);
  EXPECT_DOUBLE_EQ(cluster.device.memory, 800e9);
  EXPECT_DOUBLE_EQ(cluster.device.launch, 5e-6);
  EXPECT_DOUBLE_EQ(cluster.device.host_sync, 1e-5);
  EXPECT_EQ(cluster.jitter.kind, Jitter::Kind::kNormal);
  EXPECT_EQ(cluster.jitter.relative, 0.05);
}

// What a port sends at; what TCP reaches beside lost packets; what the latest of some messages
// takes.
TEST(Scenario, LinksThatAreNotAsTheirDataSheet) {
  const auto tier_of = [](const char* keys) {
    Json scenario = small_scenario();
    scenario["cluster"]["nodes"] = 2;
    scenario["cluster"]["gpus_per_node"] = 1;
    scenario["cluster"]["inter"] = Json::parse(keys);
    return parsed(scenario).cluster.tiers.at(0);
  };
  const Tier home =
      tier_of(R"({"latency_us": 1, "bandwidth_gbps": 8, "upload_gbps": 2, "nics": 2})");
  EXPECT_DOUBLE_EQ(home.bandwidth, 2e9);
  EXPECT_DOUBLE_EQ(home.upload(), 5e8);
  EXPECT_DOUBLE_EQ(home.narrower(), 5e8);
  // 100 ms there and back. One packet of a hundred: Reno's sqrt(150) packets a round trip. One of a
  // million: CUBIC's 1.054 (0.1 s x 10^6)^0.75.
  const auto reached = [&](const char* loss) {
    const std::string keys = R"({"latency_us": 50000, "bandwidth_gbps": 8, "packet_loss": )";
    return tier_of((keys + loss + "}").c_str()).flow_cap;
  };
  EXPECT_NEAR(reached("0.01"), std::sqrt(150) * 1448 / 0.1, 1);
  EXPECT_NEAR(reached("1e-6"), 1.054 * std::pow(1e5, 0.75) * 1448 / 0.1, 1);
  EXPECT_TRUE(std::isinf(reached("0")));
  // The larger of two standard normals is 1 / sqrt(pi) in the mean.
  const Tier late = tier_of(R"({"latency_us": 1000, "jitter_us": 300, "bandwidth_gbps": 8})");
  EXPECT_NEAR(late.latency, 1e-3 + 3e-4 / std::sqrt(M_PI), 1e-12);
}

TEST(Scenario, WorkloadShapesAndDtypes) {
  const Workload workload = parsed(full_scenario()).workload;
  EXPECT_EQ(workload.batch, 32);
  ASSERT_EQ(workload.tensors.size(), 3u);
  EXPECT_EQ(workload.tensors[0].elements, 640);
  EXPECT_EQ(workload.tensors[0].bytes(), 1280);
  EXPECT_EQ(workload.tensors[1].elements, 1);
  EXPECT_EQ(workload.tensors[1].dtype, DType::kFp32);
  EXPECT_TRUE(workload.tensors[2].sparse);
  EXPECT_EQ(workload.tensors[2].sparse_rows, 32);
  EXPECT_FALSE(workload.tensors[0].sparse);
  EXPECT_EQ(workload.buffers.at(0).bytes(), 512);
  EXPECT_EQ(gradient_bytes(workload), 1280 + 4 + 256000);
}

// A frozen parameter makes no gradient of its own, so it takes half of the backward time of one
// that is trained; after the last gradient nothing goes backward.
TEST(Scenario, FrozenParametersTakeHalf) {
  Json json = small_scenario();
  Json& workload = json["workload"];
  workload = {{"name", "w"}, {"forward_ms", 1}, {"backward_ms", 3}};
  for (const char* name : {"a", "b", "c", "d"}) {
    workload["tensors"].push_back({{"name", name}, {"shape", {100}}});
  }
  workload["tensors"][1]["frozen"] = workload["tensors"][3]["frozen"] = true;
  const Workload read = parsed(json).workload;
  EXPECT_DOUBLE_EQ(read.tensors[0].backward, 1.2e-3);
  EXPECT_DOUBLE_EQ(read.tensors[1].backward, 0.6e-3);
  EXPECT_EQ(read.tensors[3].backward, 0);
  EXPECT_EQ(gradient_bytes(read), 800);
  EXPECT_EQ(last_gradient(read), 2);
  Json tail = json;
  tail["workload"].erase("backward_ms");
  for (auto& tensor : tail["workload"]["tensors"]) tensor["backward_us"] = 10;
  EXPECT_TRUE(contains(error_of(tail), "d is frozen and after the last gradient"));
  Json all = json;
  for (auto& tensor : all["workload"]["tensors"]) tensor["frozen"] = true;
  EXPECT_TRUE(contains(error_of(all), "all are frozen, expected one gradient"));
}

TEST(Scenario, EveryKnobOfAStrategy) {
  const Scenario full = parsed(full_scenario());
  const Strategy& fused = full.strategies.at(1);
  EXPECT_EQ(fused.streams, 2);
  EXPECT_EQ(fused.algorithm, "double_binary_tree");
  EXPECT_EQ(fused.fusion.rule, Fusion::Rule::kSize);
  EXPECT_EQ(fused.fusion.size, 25 * kMiB);
  EXPECT_EQ(fused.fusion.first_size, kMiB);
  EXPECT_EQ(fused.fusion.count, 40);
  EXPECT_EQ(fused.fusion.close, Fusion::Close::kBefore);
  EXPECT_TRUE(fused.fusion.by_layer);
  EXPECT_EQ(fused.fusion.layer_key, Fusion::LayerKey::kFirstDot);
  EXPECT_EQ(fused.fusion.align, 256);
  EXPECT_EQ(fused.hierarchy.form, Hierarchy::Form::kLeaders);
  EXPECT_EQ(fused.hierarchy.group_size, 8);
  EXPECT_TRUE(fused.hierarchy.first_all_reduce);
  EXPECT_EQ(fused.hierarchy.inside, "to_one");
  EXPECT_EQ(fused.hierarchy.across, "ring");
  EXPECT_EQ(fused.update, Strategy::Update::kPerBucket);
  const Compression& dgc = full.strategies.at(2).compression;
  EXPECT_EQ(full.strategies[2].fusion.ends, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(dgc.codec, "dgc");
  EXPECT_EQ(dgc.sparsity, (std::vector<double>{0.75, 0.999}));
  EXPECT_EQ(dgc.rampup_begin_step, 100);
  EXPECT_EQ(dgc.rampup_step, 10);
  EXPECT_EQ(dgc.encode_launches, 14);
  EXPECT_EQ(dgc.decode_launches, 3);
  const LocalSgd& local = full.strategies.at(3).local_sgd;
  EXPECT_TRUE(local.enabled && local.adaptive);
  EXPECT_EQ(local.begin_step, 2);
  EXPECT_EQ(local.max_period, 16);
  EXPECT_EQ(full.strategies.at(4).local_sgd.period, 4);
}

TEST(Scenario, DefaultsOfAPlainStrategy) {
  const Scenario small = parsed(small_scenario());
  const Strategy& plain = small.strategies.at(0);
  EXPECT_TRUE(plain.overlap);
  EXPECT_EQ(plain.streams, 1);
  EXPECT_EQ(plain.algorithm, "ring");
  EXPECT_EQ(plain.fusion.rule, Fusion::Rule::kNone);
  EXPECT_EQ(plain.hierarchy.form, Hierarchy::Form::kFlat);
  EXPECT_TRUE(plain.compression.codec.empty());
  EXPECT_FALSE(plain.local_sgd.enabled);
  EXPECT_EQ(plain.update, Strategy::Update::kAfterAll);
  EXPECT_EQ(small.seed, 1u);
  EXPECT_EQ(small.cluster.jitter.kind, Jitter::Kind::kNone);
  EXPECT_FALSE(small.training.step || small.training.steps);
  EXPECT_TRUE(small.simulation.fold);
}

TEST(Scenario, TheBaselineIsTheFirstUnlessNamed) {
  Json scenario = small_scenario();
  scenario["strategies"].push_back({{"name", "other"}});
  EXPECT_EQ(parsed(scenario).baseline, "plain");
  scenario["baseline"] = "other";
  EXPECT_EQ(parsed(scenario).baseline, "other");
  scenario["baseline"] = "othr";
  EXPECT_TRUE(contains(error_of(scenario), "x.json: baseline: found 'othr'"));
  EXPECT_TRUE(contains(error_of(scenario), "plain, other (did you mean 'other'?)"));
}

TEST(Scenario, PublishedRowsTrainingAndCalibration) {
  const Scenario full = parsed(full_scenario());
  const Published& row = full.published.at(0);
  EXPECT_EQ(row.strategy, "fused");
  EXPECT_EQ(row.sweep.at(0).first, "cluster.nodes");
  EXPECT_EQ(row.step_time, 0.1);
  EXPECT_EQ(row.collectives, 2);
  EXPECT_EQ(row.buckets.at(0), (std::pair<std::int64_t, double>{2, 0.25}));
  EXPECT_TRUE(row.calibrated);
  EXPECT_EQ(row.accuracy, 76.5);
  EXPECT_EQ(full.training.steps, 1000);
  EXPECT_EQ(full.training.learning_rate.decay, Training::LearningRate::Decay::kPolynomial);
  EXPECT_EQ(full.training.loss.size(), 2u);
  EXPECT_EQ(full.calibration.parameters.at(0).path, "cluster.inter.efficiency");
  EXPECT_EQ(full.calibration.leave_out, "cluster.nodes");
  EXPECT_EQ(full.simulation.granularity, Simulation::Granularity::kStep);
  EXPECT_FALSE(full.simulation.fold);
  EXPECT_EQ(full.simulation.periods, 5);
  EXPECT_EQ(full.simulation.warmup, 1);
}

TEST(Sweep, TheFirstKeyIsTheOutermost) {
  Json scenario = small_scenario();
  scenario["sweep"] = Json::parse(R"({"cluster.nodes": [1, 2], "seed": [7, 8, 9]})");
  const auto points = sweep_points(parsed(scenario));
  ASSERT_EQ(points.size(), 6u);
  EXPECT_EQ(points[0], (SweepPoint{{"cluster.nodes", 1}, {"seed", 7}}));
  EXPECT_EQ(points[2], (SweepPoint{{"cluster.nodes", 1}, {"seed", 9}}));
  EXPECT_EQ(points[3], (SweepPoint{{"cluster.nodes", 2}, {"seed", 7}}));
  EXPECT_EQ(sweep_points(parsed(small_scenario())).size(), 1u);
}

// A point that is asked for alone is the one that nested loops come to.
TEST(Sweep, AnyPointIsThatOfNestedLoops) {
  test::Dice dice(17);
  for (int round = 0; round < 50; ++round) {
    Scenario scenario;
    std::vector<SweepPoint> wanted{{}};
    for (int axis = dice.between(0, 4); axis > 0; --axis) {
      const std::string path = "axis" + std::to_string(axis);
      std::vector<Json> values;
      for (int i = dice.between(1, 5); i > 0; --i) values.emplace_back(dice.between(0, 99));
      std::vector<SweepPoint> longer;
      for (const auto& point : wanted) {
        for (const auto& value : values) {
          longer.push_back(point);
          longer.back().emplace_back(path, value);
        }
      }
      wanted = std::move(longer);
      scenario.sweep.emplace_back(path, std::move(values));
    }
    const Sweep sweep(scenario);
    ASSERT_EQ(sweep.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(sweep.point(i), wanted[i]) << i;
  }
}

TEST(Sweep, ValuesAreListsThatStayAffordable) {
  Json scenario = small_scenario();
  for (const char* wrong : {"[]", "3", "{}", "null", "\"a\""}) {
    scenario["sweep"] = {{"cluster.nodes", Json::parse(wrong)}};
    EXPECT_TRUE(contains(error_of(scenario), "x.json: sweep.cluster.nodes: found")) << wrong;
  }
  scenario["sweep"] = Json::object();
  for (const char* path : {"seed", "cluster.nodes", "workload.batch", "cluster.gpus_per_node"}) {
    scenario["sweep"][path] = std::vector<int>(100, 1);
  }
  EXPECT_TRUE(contains(error_of(scenario), "more than a million"));
}

TEST(Sweep, ValuesReadAsAPersonWritesThem) {
  EXPECT_EQ(plain_text(100), "100");
  EXPECT_EQ(plain_text(0.5), "0.5");
  EXPECT_EQ(plain_text("ring"), "ring");
  EXPECT_EQ(plain_text(true), "true");
}

// Three tensors of 10, 30 and 60 elements.
Json timed(const char* keys, const std::vector<const char*>& of_tensors) {
  Json scenario = small_scenario();
  scenario["workload"].update(Json::parse(keys));
  scenario["workload"]["tensors"] = Json::array();
  const int elements[] = {10, 30, 60};
  for (std::size_t i = 0; i < 3; ++i) {
    Json tensor = {{"name", "t" + std::to_string(i)}, {"shape", {elements[i]}}};
    tensor.update(Json::parse(of_tensors[i]));
    scenario["workload"]["tensors"].push_back(tensor);
  }
  return scenario;
}

void expect_waits(const Json& scenario, std::vector<double> milliseconds) {
  const Workload workload = parsed(scenario).workload;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(workload.tensors[i].backward, milliseconds[i] * 1e-3, 1e-12) << "tensor " << i;
  }
}

constexpr const char* kNothing = "{}";

TEST(BackwardTime, MeasuredWaitsAreNotScaled) {
  expect_waits(
      timed("{}", {R"({"backward_us": 5})", R"({"backward_us": 0})", R"({"backward_us": 1.5})"}),
      {0.005, 0, 0.0015});
}

TEST(BackwardTime, ATotalScalesTheWaits) {
  expect_waits(timed(R"({"backward_ms": 8})", {R"({"backward_us": 1, "backward_flops": 9})",
                                               R"({"backward_us": 1})", R"({"backward_us": 2})"}),
               {2, 2, 4});
}

TEST(BackwardTime, ATotalIsSharedByFlopsElseByElements) {
  expect_waits(timed(R"({"backward_ms": 10})",
                     {R"({"backward_flops": 4})", R"({"backward_flops": 1})", kNothing}),
               {8, 2, 0});
  expect_waits(timed(R"({"backward_ms": 10})", {kNothing, kNothing, kNothing}), {1, 3, 6});
}

TEST(BackwardTime, FlopsAreTimedByTheDevice) {
  Json scenario = timed("{}", {R"({"backward_flops": 4e9, "forward_flops": 1e9})",
                               R"({"backward_flops": 1e9})", R"({"forward_flops": 1e9})"});
  scenario["cluster"]["device"] = Json::parse(R"({"tflops": 2, "efficiency": 0.5})");
  expect_waits(scenario, {4, 1, 0});
  EXPECT_DOUBLE_EQ(parsed(scenario).workload.forward, 2e-3);
  scenario["workload"]["forward_ms"] = 7;
  EXPECT_DOUBLE_EQ(parsed(scenario).workload.forward, 7e-3);
}

TEST(BackwardTime, WaitsAreGivenForAllOrForNone) {
  const std::string message =
      error_of(timed("{}", {R"({"backward_us": 5})", kNothing, R"({"backward_us": 1})"}));
  EXPECT_TRUE(contains(message, "x.json: workload.tensors: ")) << message;
  EXPECT_TRUE(contains(message, "2 of 3")) << message;
}

// Waits that are all zero cannot be scaled: that must not turn 10 ms of work into none in silence.
TEST(BackwardTime, ATotalOverZeroWaitsIsNotLost) {
  const char* zero = R"({"backward_us": 0})";
  const Json scenario = timed(R"({"backward_ms": 10})", {zero, zero, zero});
  if (!error_of(scenario).empty()) return;
  EXPECT_NEAR(backward_time(parsed(scenario).workload), 0.010, 1e-12);
}

TEST(Network, TiersSpanTheRanksBelowThem) {
  const Cluster cluster = parsed(full_scenario()).cluster;
  ASSERT_EQ(cluster.tiers.size(), 3u);
  EXPECT_EQ(cluster.ranks(), 256);
  EXPECT_EQ(cluster.tiers[0].name, "intra");
  EXPECT_EQ(cluster.tiers[0].span, 8);
  EXPECT_EQ(cluster.tiers[1].name, "inter");
  EXPECT_EQ(cluster.tiers[1].span, 64);
  EXPECT_EQ(cluster.tiers[2].name, "pods");
  EXPECT_EQ(cluster.tiers[2].span, 256);
}

TEST(Network, LevelsThatJoinASingleUnitAreLeftOut) {
  const auto names = [](const Json& scenario) {
    std::vector<std::string> list;
    for (const auto& tier : parsed(scenario).cluster.tiers) list.push_back(tier.name);
    return list;
  };
  using Names = std::vector<std::string>;
  Json scenario = small_scenario();
  scenario["cluster"] = full_scenario()["cluster"];
  EXPECT_EQ(names(scenario), (Names{"intra", "inter", "pods"}));
  scenario["cluster"]["gpus_per_node"] = 1;
  EXPECT_EQ(names(scenario), (Names{"inter", "pods"}));
  scenario["cluster"]["nodes"] = 8;
  EXPECT_EQ(names(scenario), (Names{"inter"}));
  scenario["cluster"].erase("upper");
  scenario["cluster"]["nodes"] = 1;
  EXPECT_EQ(names(scenario), Names{});
  scenario["cluster"].erase("inter");
  scenario["cluster"].erase("intra");
  EXPECT_EQ(names(scenario), Names{});
  scenario["cluster"]["gpus_per_node"] = 2;
  EXPECT_TRUE(contains(error_of(scenario), "cluster.intra: missing"));
  scenario["cluster"]["gpus_per_node"] = 1;
  scenario["cluster"]["nodes"] = 2;
  EXPECT_TRUE(contains(error_of(scenario), "cluster.inter: missing"));
}

TEST(Network, GroupsOfNodesMustDivide) {
  Json scenario = small_scenario();
  scenario["cluster"] = full_scenario()["cluster"];
  scenario["cluster"]["upper"][0]["nodes_per_group"] = 5;
  EXPECT_TRUE(contains(error_of(scenario), "x.json: cluster.upper[0].nodes_per_group: found 5"));
  scenario["cluster"]["upper"][0]["nodes_per_group"] = 64;
  EXPECT_TRUE(contains(error_of(scenario), "found 64"));
  // Two levels: the outer groups consist of whole inner ones.
  scenario["cluster"]["upper"][0]["nodes_per_group"] = 8;
  Json outer = scenario["cluster"]["upper"][0];
  outer["name"] = "halls";
  outer["nodes_per_group"] = 4;
  scenario["cluster"]["upper"].push_back(outer);
  EXPECT_TRUE(contains(error_of(scenario), "upper[1].nodes_per_group: found 4"));
  scenario["cluster"]["upper"][1]["nodes_per_group"] = 16;
  EXPECT_EQ(parsed(scenario).cluster.tiers.back().span, 256);
}

// Evaluation keeps room for kMaxTiers levels (cost.h): a deeper network must be refused here.
TEST(Network, MoreLevelsThanCanBeEvaluatedAreRefused) {
  Json scenario = small_scenario();
  scenario["cluster"] = full_scenario()["cluster"];
  scenario["cluster"]["nodes"] = 512;
  const Json level = scenario["cluster"]["upper"][0];
  scenario["cluster"]["upper"] = Json::array();
  for (int nodes = 2; nodes <= 256; nodes *= 2) {
    Json next = level;
    next["nodes_per_group"] = nodes;
    next["name"] = "level" + std::to_string(nodes);
    scenario["cluster"]["upper"].push_back(next);
  }
  EXPECT_TRUE(contains(error_of(scenario), "x.json: cluster.upper")) << error_of(scenario);
}

TEST(Strategies, GroupsMustDivideTheRanks) {
  Json scenario = small_scenario();
  scenario["cluster"]["nodes"] = 6;
  for (const char* form : {"leaders", "sharded"}) {
    scenario["strategies"][0]["hierarchy"] = {{"form", form}, {"group_size", 4}};
    const std::string message = error_of(scenario);
    EXPECT_TRUE(contains(message, "x.json: strategies[0].hierarchy.group_size: found 4"))
        << message;
    EXPECT_TRUE(contains(message, "divisor of the 6 ranks")) << message;
    scenario["strategies"][0]["hierarchy"]["group_size"] = 3;
    EXPECT_EQ(error_of(scenario), "");
  }
}

TEST(Strategies, AdaptivePeriodsNeedALoss) {
  Json scenario = small_scenario();
  scenario["strategies"][0]["local_sgd"] = {{"adaptive", true}};
  EXPECT_TRUE(contains(error_of(scenario), "strategies[0].local_sgd.adaptive: needs"));
  scenario["training"] = {{"steps", 100}};
  EXPECT_TRUE(contains(error_of(scenario), "training.loss"));
  scenario["training"] = Json::parse(R"({"loss": [[0, 5]]})");
  EXPECT_TRUE(contains(error_of(scenario), "training.steps"));
  scenario["training"]["steps"] = 100;
  EXPECT_EQ(error_of(scenario), "");
}

// A swept workload or cluster is an object; a published row may call it by its name.
TEST(Scenario, APublishedRowNamesASweptObject) {
  Json scenario = small_scenario();
  scenario.erase("published");
  const Json cluster = scenario["cluster"];
  Json other = cluster;
  other["name"] = "other";
  scenario["sweep"] = {{"cluster", {cluster, other}}};
  const std::string strategy = scenario["strategies"][0]["name"];
  const auto with = [&](const Json& value) {
    Json whole = scenario;
    whole["published"] = Json::array(
        {{{"strategy", strategy}, {"sweep", {{"cluster", value}}}, {"step_time_s", 1.0}}});
    return whole;
  };
  const SweepPoint wanted{{"cluster", other}};
  EXPECT_EQ(parsed(with("other")).published.at(0).sweep, wanted);
  EXPECT_EQ(parsed(with(other)).published.at(0).sweep, wanted);
  EXPECT_TRUE(contains(error_of(with("another")), "cluster never takes the value 'another'"));
}

// Each rank carries its part of what a group holds alike across, and the group gathers the parts:
// by the strategy's algorithm too.
TEST(Scenario, AnOuterStepGathersInsideItsGroups) {
  Json scenario = small_scenario();
  scenario["cluster"]["nodes"] = 4;
  scenario["cluster"]["gpus_per_node"] = 1;
  scenario.erase("published");
  scenario["baseline"] = "s";
  Json& strategy = scenario["strategies"][0];
  strategy = Json::parse(R"({"name": "s", "local_sgd":
      {"period": 6, "subgroup": 2, "outer": {"optimizer": "nesterov"}}})");
  for (const auto& [algorithm, gathers] : {std::pair("ring", true),
                                           {"halving_doubling", true},
                                           {"double_binary_tree", false},
                                           {"to_one", false}}) {
    strategy["algorithm"] = algorithm;
    const std::string refusal = gathers ? "" : std::string(algorithm) + "' does no all_gather";
    EXPECT_TRUE(gathers ? error_of(scenario).empty() : contains(error_of(scenario), refusal))
        << algorithm << ": " << error_of(scenario);
  }
  strategy["algorithm"] = "to_one";
  strategy["local_sgd"].erase("outer");
  EXPECT_EQ(error_of(scenario), "");
}

}  // namespace
}  // namespace syncline::input
