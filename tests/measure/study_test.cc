// A study that is interrupted ends with what it has.
#include "studies/study/study.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "studies/study/study_calibration.h"
#include "tests/support/studies.h"

namespace syncline::measure {
namespace {

input::Document document_of(int points) {
  Json root = Json::parse(R"({"name": "s", "workload": {"name": "w", "tensors":
      [{"name": "t", "shape": [1000], "backward_us": 10}]}, "strategies": [{"name": "plain"}],
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1,
                  "inter": {"latency_us": 10, "bandwidth_gbps": 10}}})");
  for (int i = 0; i < points; ++i) root["sweep"]["cluster.inter.bandwidth_gbps"].push_back(i + 1);
  return input::document_from_text("s.json", root.dump());
}

// Wherever it comes, the next question is the last one.
TEST(Study, EndsAtOnceIfInterrupted) {
  constexpr int kPoints = 20;
  const input::Document document = document_of(kPoints);
  for (int at = 0; at < 3 * kPoints; ++at) {
    int asked = 0;
    bool judged = false;
    StudyOptions options = test::study_options();
    options.judged = [&] { judged = true; };
    options.interrupted = [&] { return ++asked > at; };
    const Report report = run_study(document, options);
    const bool whole = report.rows.size() == kPoints;
    EXPECT_EQ(report.complete, whole) << at;
    EXPECT_EQ(judged, at > kPoints) << at << ": points are judged one by one, asking between";
    EXPECT_TRUE(whole || asked <= at + 2) << at;
  }
}

// A taken row is the row that a report keeps, here and over processes; here it comes before the
// next one is evaluated.
TEST(Study, RowsArriveAsTheyAreEvaluated) {
  constexpr std::size_t kPoints = 20;
  const input::Document document = document_of(kPoints);
  StudyOptions options = test::study_options();
  const Report kept = run_study(document, options);
  for (const int jobs : {1, 3}) {
    std::vector<Row> taken;
    std::size_t behind = 0;
    options.parallel_map = run::over_processes(jobs);
    options.take_row = [&](Row row) { taken.push_back(std::move(row)); };
    options.progress = [&](std::size_t done, std::size_t) {
      behind = std::max(behind, done - taken.size());
    };
    const Report report = run_study(document, options);
    EXPECT_TRUE(report.complete);
    EXPECT_TRUE(report.rows.empty());
    if (jobs == 1) {
      EXPECT_EQ(behind, 0U);
    }
    ASSERT_EQ(taken.size(), kPoints);
    for (std::size_t i = 0; i < kPoints; ++i) {
      EXPECT_EQ(row_bytes(taken[i]), row_bytes(kept.rows[i])) << i;
      EXPECT_EQ(taken[i].sweep, kept.rows[i].sweep) << i;
    }
  }
}

TEST(Study, JudgingIsCountedPointByPoint) {
  StudyOptions options = test::study_options();
  std::vector<std::size_t> judged;
  options.judging = [&](std::size_t done, std::size_t wanted) {
    EXPECT_EQ(wanted, 5U);
    judged.push_back(done);
  };
  run_study(document_of(5), options);
  EXPECT_EQ(judged, (std::vector<std::size_t>{1, 2, 3, 4, 5}));
}

// Predictions at a set of values cost a reading of the scenario and a run of each row.
TEST(FitParameters, AsksForNoValuesTwice) {
  std::set<std::vector<double>> asked;
  const auto found =
      fit_parameters({{"a", 1, 0, 10}, {"b", 2, 0, 10}}, [&](const std::vector<double>& values) {
        EXPECT_TRUE(asked.insert(values).second) << testing::PrintToString(values);
        return std::vector{values[0] - 3, values[1] - values[0], std::fabs(values[1] - 4)};
      });
  EXPECT_NEAR(found[0], 10.0 / 3, 1e-3);
  EXPECT_GT(asked.size(), 4u);
}

}  // namespace
}  // namespace syncline::measure
