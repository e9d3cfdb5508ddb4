// A search on an emulated machine: what it finds, and how good that is in truth.
#include "studies/machines/live_tuner.h"

#include <gtest/gtest.h>

#include "studies/tune/search_space.h"
#include "tests/support/emulated_ranks.h"

namespace syncline::tune {
namespace {

TEST(EmulatedSearch, KnowsItsTruth) {
  const Scenario scenario = test::emulated_scenario(4);
  LiveReport report = begin_report(scenario, default_search(scenario), {}, false);
  EXPECT_EQ(report.baseline, "each");
  report.settings.search.budget = 5;
  Evaluator truth(scenario);
  MeasurementWatch watch;
  int begun = 0;
  std::vector<Seconds> measured;
  watch.begins = [&](const Candidate&, const Evaluation& evaluation) {
    EXPECT_EQ(evaluation.number, begun++);
  };
  watch.ends = [&](const Evaluation&, const Measurement& measurement) {
    measured.push_back(measurement.step_time);
  };
  search_emulated(
      truth, 0.02, watch, [](const LiveObjective&) { return nullptr; }, report);

  EXPECT_EQ(measured.size(), report.tuning.observations.size());
  EXPECT_EQ(begun, static_cast<int>(measured.size()));
  ASSERT_TRUE(report.truth);
  EXPECT_FALSE(report.truth->measured);
  EXPECT_DOUBLE_EQ(report.truth->best, truth.step_time(report.best().strategy));
  EXPECT_DOUBLE_EQ(report.truth->baseline, truth.step_time(scenario.strategies[0]));
  Seconds least = report.truth->best;
  for (const auto& candidate : report.problem.candidates) {
    least = std::min(least, truth.step_time(candidate.strategy));
  }
  EXPECT_DOUBLE_EQ(report.truth->least, least);
  EXPECT_LT(report.truth->best, report.truth->baseline);
}

// A model that is off ranks other candidates; nothing is left out where all are wanted.
TEST(EmulatedSearch, AllCandidatesAreMoreThanThoseWorthTrying) {
  // On a network this slow the fusions differ by more than what is worth trying.
  Scenario scenario = test::emulated_scenario(4);
  scenario.cluster.tiers[0].latency = 20e-3;
  const Search search = default_search(scenario);
  EXPECT_GT(begin_report(scenario, search, {}, true).problem.candidates.size(),
            begin_report(scenario, search, {}, false).problem.candidates.size());
}

}  // namespace
}  // namespace syncline::tune
