// A tuned answer as a whole: what the scenario's own rows and its library have to do with it, and
// how sure it says it is.
#include "studies/tune/certainty.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "tests/support/tunings.h"

namespace syncline::tune {
namespace {

using test::tuning_of;

// Ten gradients on four nodes; keys of the cluster and the strategies as given.
input::Document document_over(double gbps, const std::string& cluster_keys,
                              const std::string& strategies, const std::string& more = "",
                              double latency_us = 20) {
  Json root =
      Json::parse(R"({"name": "sure", "workload": {"name": "w", "batch": 4, "forward_ms": 3},
      "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 1)" +
                  cluster_keys + R"(}, "strategies": )" + strategies + more + "}");
  root["cluster"]["inter"] = {{"latency_us", latency_us}, {"bandwidth_gbps", gbps}};
  for (int i = 0; i < 10; ++i) {
    root["workload"]["tensors"].push_back({{"name", "l" + std::to_string(i)},
                                           {"shape", {30000 + 300000 * (i % 4)}},
                                           {"backward_us", 600}});
  }
  return input::document_of("sure.json", root);
}

// What DDP itself makes of a cap, whatever the best's rule of fusion is.
TEST(DdpCurve, IsDdpsOwnIfDdpIsAsked) {
  const auto document = document_over(
      5, "", R"([{"name": "ddp", "dialect": "pytorch", "config": {"static_graph": true}}])");
  const Tuning tuning = tuning_of(document);
  ASSERT_GT(tuning.ddp_curve.size(), 2U);
  const dialect::Dialect& pytorch = *dialect::find_dialect("pytorch");
  const Scenario& scenario = tuning.scenario;
  for (const CurvePoint& point : tuning.ddp_curve) {
    const double cap = static_cast<double>(point.size) / static_cast<double>(kMiB);
    const Json config{{"static_graph", true}, {"bucket_cap_mb", cap}};
    const Strategy strategy =
        dialect::reading_of(pytorch, config, scenario.workload, scenario.cluster).strategy;
    EXPECT_DOUBLE_EQ(point.step_time, step_by_model(scenario, strategy)) << cap;
  }
  const auto other = document_over(5, "", R"([{"name": "one", "fusion": {"rule": "one"}}])");
  EXPECT_TRUE(tuning_of(other).ddp_curve.empty());
  EXPECT_FALSE(tuning_of(other, {}, &pytorch).ddp_curve.empty());
}

constexpr const char* kTwoRows =
    R"([{"name": "one", "fusion": {"rule": "one"}},
        {"name": "halves", "exchange": "sharded", "fusion": {"rule": "size", "size_mb": 1},
         "cross_step": true}])";

TEST(Certainty, NoBestIsWorseThanARowOfTheFile) {
  for (const double gbps : {0.5, 5.0, 50.0}) {
    for (const char* gpu : {"", R"(, "device": {"name": "A100"})"}) {
      const Tuning tuning = tuning_of(document_over(gbps, gpu, kTwoRows));
      Evaluator model(tuning.scenario);
      for (const auto& row : tuning.scenario.strategies) {
        const Seconds step = model.step_time(row);
        EXPECT_LE(tuning.tuned.winner().metrics.step_time, step * 1.001) << row.name << gpu;
      }
    }
  }
}

TEST(Certainty, ALibraryIsNotAskedForWhatItCannotRun) {
  const Tuning tuning = tuning_of(document_over(5, R"(, "device": {"name": "A100"})", kTwoRows));
  EXPECT_EQ(tuning.search.algorithms, std::vector<std::string>{"nccl"});
  for (const auto& ranked : tuning.tuned.ranking) EXPECT_EQ(ranked.strategy.algorithm, "nccl");
}

// On a network that hides everything nothing is gained, and what the user has is the choice.
TEST(Certainty, TheBaselineStaysIfThereIsNoGain) {
  const Tuning tuning = tuning_of(
      document_over(4000, "", R"([{"name": "mine", "fusion": {"rule": "size", "size_mb": 2}},
                                      {"name": "other", "streams": 2}])",
                    "", 0.1));
  EXPECT_EQ(tuning.tuned.winner().strategy.name, "mine");
  EXPECT_LE(tuning.tuned.winner().metrics.step_time, tuning.tuned.fastest * 1.001);
}

TEST(Certainty, EveryRankedRowHasItsInterval) {
  const Tuning tuning = tuning_of(document_over(3, "", R"([{"name": "alone"}])"));
  const Certainty& sure = tuning.certainty;
  for (const Ranked& ranked : tuning.tuned.ranking) {
    EXPECT_LT(ranked.step.low, ranked.metrics.step_time);
    EXPECT_GT(ranked.step.high, ranked.metrics.step_time);
  }
  EXPECT_GT(sure.chance, 0.5);
  for (std::size_t i = 1; i < sure.size_sensitivities.size(); ++i) {
    EXPECT_GE(sure.size_sensitivities[i - 1].lost_percent, sure.size_sensitivities[i].lost_percent);
  }
}

// Where copies into buckets cost and the baseline's framework can do without, the search tries it.
TEST(Certainty, CopiesThatCostAreSearched) {
  const auto copies = [](const char* cluster, const char* dialect) {
    const std::string row =
        R"([{"name": "mine", "dialect": ")" + std::string(dialect) + R"(", "config": {}}])";
    return tuning_of(document_over(3, cluster, row)).search.bucket_copies;
  };
  constexpr const char* kMemory = R"(, "device": {"memory_gbytes_per_s": 100})";
  EXPECT_EQ(copies(kMemory, "pytorch"), (std::vector<bool>{true, false}));
  EXPECT_TRUE(copies("", "pytorch").empty());
  EXPECT_TRUE(copies(kMemory, "horovod").empty());
}

// Sizes between which the curve goes up and down.
Json uneven_gradients() {
  constexpr std::array kRows{93, 27, 538, 64, 84, 214, 28, 9, 512, 30, 357, 437};
  constexpr std::array kMicroseconds{110, 327, 370, 312, 54, 349, 310, 352, 85, 264, 364, 114};
  Json tensors = Json::array();
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    tensors.push_back({{"name", "m" + std::to_string(i) + ".w"},
                       {"shape", {kRows[i], 256}},
                       {"backward_us", kMicroseconds[i]}});
  }
  return tensors;
}

// Called as good are all the sizes that are, wherever they lie, and the best's own is one of them.
TEST(Certainty, AllSizesThatAreAsGoodAreNamed) {
  std::size_t several = 0;
  for (const double gbps : {1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0}) {
    input::Document document = document_over(gbps, "", R"([{"name": "alone"}])");
    document.root["workload"]["tensors"] = uneven_gradients();
    document.root["search"] = {{"fusion", {{"size_mb", "breakpoints"}}}, {"confirm", 0}};
    const Tuning tuning = tuning_of(document);
    const Certainty& sure = tuning.certainty;
    const auto& curve = tuning.tuned.curve;
    const Seconds least = std::ranges::min(curve, {}, &CurvePoint::step_time).step_time;
    const auto named = [&](Bytes size) {
      return std::ranges::any_of(sure.as_good, [&](const SizeRange& range) {
        return range.low <= size && size <= range.high;
      });
    };
    for (const auto& point : curve) {
      EXPECT_EQ(named(point.size), point.step_time <= least * 1.01) << gbps << " " << point.size;
    }
    several += sure.as_good.size() > 1 ? 1 : 0;
    if (!sure.size) continue;
    EXPECT_EQ(*sure.size, tuning.tuned.winner().strategy.fusion.size);
    EXPECT_TRUE(named(*sure.size)) << gbps;
  }
  EXPECT_GT(several, 0u) << "of more than one stretch";
}

// What a calibration of the scenario has pinned down is as sure here as in `run`.
TEST(Certainty, AScenariosOwnCalibrationMakesItSurer) {
  const char* strategies = R"([{"name": "alone"}, {"name": "one", "fusion": {"rule": "one"}}])";
  const std::string published = R"(, "published": [
      {"strategy": "alone", "step_time_s": 0.036, "use": "calibrated"},
      {"strategy": "one", "step_time_s": 0.037, "use": "calibrated"}],
      "calibration": {"parameters": {
        "cluster.inter.bandwidth_gbps": {"start": 3, "min": 1, "max": 10}}})";
  const auto width = [](const Tuning& tuning) {
    return tuning.certainty.step.high / tuning.certainty.step.low;
  };
  EXPECT_LT(width(tuning_of(document_over(3, "", strategies, published))),
            width(tuning_of(document_over(3, "", strategies))));
}

}  // namespace
}  // namespace syncline::tune
