// How wrong we say that we are: percentiles, which rows count as predicted, and fits that are made
// for each part of a sweep.

#include "studies/fidelity/fidelity.h"

#include "studies/fidelity/cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/validation_report.h"
#include "tests/support/full_scenario.h"
#include "tests/support/printed.h"
#include "tests/support/studies.h"
#include "tests/support/text.h"

namespace syncline::measure {
namespace {

TEST(Fidelity, SummarisesMagnitudes) {
  EXPECT_FALSE(summary_of({}));
  const auto one = summary_of({-3});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->median, 3);
  EXPECT_EQ(one->p90, 3);
  EXPECT_EQ(one->worst, 3);
  // 1 .. 11: ranks are hit exactly.
  std::vector<double> errors;
  for (int i = 11; i >= 1; --i) errors.push_back(i % 2 == 0 ? i : -i);
  const auto many = summary_of(errors);
  EXPECT_EQ(many->rows, 11u);
  EXPECT_DOUBLE_EQ(many->median, 6);
  EXPECT_DOUBLE_EQ(many->p90, 10);
  EXPECT_DOUBLE_EQ(many->worst, 11);
  EXPECT_DOUBLE_EQ(summary_of({1, 2})->median, 1.5);
  EXPECT_DOUBLE_EQ(summary_of({1, 2})->p90, 1.9);
}

TEST(Fidelity, SummarisesIntervals) {
  EXPECT_FALSE(interval_summary({}));
  const auto summary = interval_summary({{10, true}, {30, false}, {20, true}, {40, true}});
  ASSERT_TRUE(summary);
  EXPECT_DOUBLE_EQ(summary->held, 75);
  EXPECT_DOUBLE_EQ(summary->width, 25);
}

// One bucket without overlap on a one-tier network: step = forward + backward + transfer. Twice the
// nodes were published with a much slower network than a ring's cost model allows, so that one fit
// for both must fail and a fit for each must not.
input::Document two_clusters(const std::string& calibration) {
  return input::document_from_text("two", R"({
    "name": "two",
    "workload": {"name": "w", "batch": 1, "forward_ms": 1, "tensors": [
      {"name": "a", "shape": [1000000], "backward_us": 1000},
      {"name": "b", "shape": [1000000], "backward_us": 1000}]},
    "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1, "inter": {"latency_us": 0, "bandwidth_gbps": 10}},
    "strategies": [{"name": "one", "overlap": false, "fusion": {"rule": "one"}},
                   {"name": "each", "overlap": false}],
    "sweep": {"cluster.nodes": [2, 4]},
    "calibration": {"parameters": {
      "cluster.inter.bandwidth_gbps": {"start": 5, "min": 0.1, "max": 100}})" +
                                              calibration + R"(},
    "published": [
      {"strategy": "one", "sweep": {"cluster.nodes": 2}, "step_time_s": 0.011, "use": "calibrated"},
      {"strategy": "each", "sweep": {"cluster.nodes": 2}, "step_time_s": 0.022},
      {"strategy": "one", "sweep": {"cluster.nodes": 4}, "step_time_s": 0.039, "use": "calibrated"}]
  })");
}

Report studied(const std::string& calibration) { return test::studied(two_clusters(calibration)); }

TEST(Fidelity, FitsEachPartOfASweepFromItsOwnRows) {
  const Report together = studied("");
  EXPECT_GT(std::fabs(*together.rows.front().error_percent), 5);

  const Report apart = studied(R"(, "each": ["cluster.nodes"])");
  ASSERT_EQ(apart.fitted.size(), 2u);
  // 8 MB in 8 ms; 8 MB * 2 * 3 / 4 in 36 ms.
  EXPECT_NEAR(apart.fitted[0].value, 8.0, 1e-4);
  EXPECT_NEAR(apart.fitted[1].value, 8.0 / 3, 1e-4);
  EXPECT_EQ(apart.fitted[0].at, (SweepPoint{{"cluster.nodes", Json(2)}}));
  EXPECT_EQ(apart.fitted[1].at, (SweepPoint{{"cluster.nodes", Json(4)}}));
  for (const auto& row : apart.rows) {
    if (row.strategy != "one") continue;
    EXPECT_NEAR(*row.error_percent, 0, 1e-4);
  }
}

TEST(Fidelity, EachNamesKeysOfTheSweep) {
  for (const char* wrong : {R"(, "each": ["cluster.gpus_per_node"])", R"(, "each": [3])"}) {
    const std::string error = test::input_error([&] { studied(wrong); });
    EXPECT_TRUE(test::contains(error, "calibration.each")) << error;
    EXPECT_TRUE(test::contains(error, "keys of the sweep")) << error;
  }
}

TEST(Fidelity, KeepsCalibratedAndPredictedRowsApart) {
  FidelityTable table = table_of(studied(R"(, "each": ["cluster.nodes"])"));
  EXPECT_EQ(table.name, "two");
  EXPECT_EQ(table.calibrated.size(), 2u);
  ASSERT_EQ(table.predicted.size(), 1u);
  EXPECT_NEAR(table.predicted[0], -50, 1e-3);  // predicted 11 ms, published 22
}

TEST(Fidelity, TablesOutOfRangeStayOutOfTheOverallFigure) {
  const FidelityTable inside{"set", "inside", "", {0.5}, {1, -3}, ""};
  const FidelityTable outside{"set", "outside", "", {}, {90}, "it says so"};
  const FidelityTable fitted{"other", "fitted only", "", {2}, {}, ""};
  const auto all = overall({inside, outside, fitted});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->rows, 2u);
  EXPECT_EQ(all->worst, 3);

  const Json json = Json::parse(test::json_of(std::vector{inside, outside, fitted}));
  ASSERT_EQ(json["tables"].size(), 3u);
  EXPECT_EQ(json["tables"][0]["calibrated_rows"], 1);
  EXPECT_EQ(json["tables"][0]["predicted_rows"], 2);
  EXPECT_EQ(json["tables"][0]["median_error_percent"], 2);
  EXPECT_EQ(json["tables"][0]["in_range"], true);
  EXPECT_EQ(json["tables"][1]["in_range"], false);
  EXPECT_TRUE(json["tables"][2]["worst_error_percent"].is_null());
  EXPECT_EQ(json["overall"]["worst_error_percent"], 3);
  EXPECT_EQ(json["overall"]["tables"], 1);
}

// A pair is decided where its interval leaves out 1; right where what was measured lies there too.
TEST(Cases, AreDecidedByTheirIntervals) {
  PairCase pair;
  pair.said = 1.2;
  pair.interval = {0.9, 1.5};
  pair.measured = 1.1;
  EXPECT_EQ(pair.decision(), Decision::kOpen);
  pair.interval = {1.05, 1.5};
  EXPECT_EQ(pair.decision(), Decision::kRight);
  pair.measured = 0.99;
  EXPECT_EQ(pair.decision(), Decision::kWrong);
  EXPECT_FALSE(pair.contains_measured());
  const PairSummary summary = pair_summary({pair, pair});
  EXPECT_EQ(summary.wrong, 2U);
  EXPECT_EQ(summary.right + summary.open, 0U);
  EXPECT_DOUBLE_EQ(summary.intervals->held, 0);
  EXPECT_NEAR(summary.intervals->width, 25, 1e-9);
}

// Every case of the lists that ship names its source; ones that constants were chosen by say so.
TEST(Cases, InShippedListsHaveSources) {
  const std::string folder = SYNCLINE_SOURCE_DIR "/scenarios/measured/";
  const auto pairs = published_pairs(folder + "pairs.json");
  ASSERT_GE(pairs.size(), 10U);
  for (const PairCase& pair : pairs) {
    EXPECT_FALSE(pair.source.empty());
    EXPECT_NE(pair.a, pair.b);
    EXPECT_LE(pair.interval.low, pair.said);
    EXPECT_GE(pair.interval.high, pair.said);
    // Constants were chosen in sight of these: the shares of ZeRO's hooks (dialects.h), and the
    // error of differences in computation (uncertainty.cc).
    const bool seen = pair.kind.starts_with("ZeRO") || pair.source.starts_with("Korthikanti") ||
                      pair.source.starts_with("torchao") || pair.source.starts_with("PyTorch's") ||
                      (pair.source.starts_with("BELLE") && test::contains(pair.a, "z3"));
    EXPECT_EQ(pair.fitted, seen) << pair.job;
    if (pair.kind == "ZeRO-3 or TP x PP") {
      EXPECT_NE(pair.decision(), Decision::kWrong) << pair.b;
    }
  }
  const auto memory = published_memory(folder + "memory.json");
  ASSERT_GE(memory.size(), 5U);
  for (const MemoryCase& one : memory) {
    EXPECT_EQ(one.said > 1e9, one.left_out.empty()) << one.job;
    EXPECT_FALSE(one.source.empty());
  }
}

// Rows of a table: those that differ, against the baseline at the same point.
TEST(Cases, CompareATablesRowsWithItsBaseline) {
  Report report;
  report.scenario = "table";
  report.baseline = "dense";
  const auto add = [&](const char* name, double step, double measured) {
    Row& row = report.rows.emplace_back();
    row.strategy = name;
    row.metrics.step_time = step;
    row.speedup = 1 / step;
    row.gain = {0.9 / step, 1.1 / step};
    row.published.emplace();
    row.published->step_time = measured;
    row.published->source = "a paper";
  };
  add("dense", 1, 1);
  add("fused", 0.5, 0.4);
  add("alike", 1, 1.001);
  const auto pairs = pairs_of(report, "papers");
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].b, "fused");
  EXPECT_DOUBLE_EQ(pairs[0].said, 2);
  EXPECT_DOUBLE_EQ(pairs[0].measured, 2.5);
  EXPECT_EQ(pairs[0].source, "a paper");
  EXPECT_EQ(pairs[0].decision(), Decision::kRight);
}

}  // namespace
}  // namespace syncline::measure
