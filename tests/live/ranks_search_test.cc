// A search on ranks that are threads, on a machine whose times are known: all ranks run the same
// candidates, and what is found is as good as the machine says.
#include "live/ranks_search.h"

#include <gtest/gtest.h>

#include <mutex>

#include "studies/machines/live_tuner.h"
#include "studies/tune/search_space.h"
#include "tests/support/emulated_ranks.h"
#include "tests/support/ranks.h"

namespace syncline::live {
namespace {

using test::backend_of;
using test::emulated_scenario;
using test::EmulatedMachine;
using test::Failures;
using test::run_ranks;
using test::Scratch;

constexpr int kRanks = 3;

struct Searched {
  Failures failures;
  tune::LiveReport report;  // rank 0's
  std::vector<int> runs;    // by rank
};

class RanksSearchTest : public testing::Test {
 protected:
  RanksSearchTest() {
    machine.cluster = scenario.cluster;
    machine.cluster.tiers[0].latency *= 3;
    machine.wobble = 0.01;
    search.machine.backend_name = "emulated";
    search.machine.backend = backend_of(machine);
    begun = tune::begin_report(scenario, tune::default_search(scenario), {}, false);
    begun.settings.search.budget = 4;
    begun.settings.search.steps = 4;
  }

  Searched searched(const RanksSearchHooks& hooks = {}) {
    Searched result;
    result.runs.assign(kRanks, 0);
    std::mutex mutex;
    machine.on_run = [&](int rank) {
      const std::lock_guard lock(mutex);
      ++result.runs[static_cast<std::size_t>(rank)];
    };
    result.failures = run_ranks(kRanks, [&](ControlChannel& channel) {
      tune::LiveReport report = begun;
      search_on_ranks(search, scenario, channel, hooks, report);
      if (channel.rank() == 0) result.report = report;
    });
    return result;
  }

  // The machine's own time for a strategy, without its wobble.
  Seconds time_of(const Strategy& strategy) {
    Scenario true_scenario = scenario;
    true_scenario.cluster = machine.cluster;
    return tune::Evaluator(true_scenario).step_time(strategy);
  }

  Scenario scenario = emulated_scenario(kRanks);
  EmulatedMachine machine;
  RanksSearch search;
  tune::LiveReport begun;
};

TEST_F(RanksSearchTest, AllRanksRunWhatRankZeroSearches) {
  const Searched result = searched();
  EXPECT_EQ(result.failures, Failures(kRanks));
  const tune::LiveTuning& tuning = result.report.tuning;
  EXPECT_TRUE(tuning.complete);
  EXPECT_EQ(tuning.source, "measured with emulated on 3 ranks");
  ASSERT_FALSE(tuning.observations.empty());
  EXPECT_LE(tuning.observations.size(), 4U);
  const auto evaluations = static_cast<int>(tuning.observations.size());
  EXPECT_EQ(result.runs, std::vector<int>(kRanks, evaluations));
  for (const auto& observation : tuning.observations) {
    const Seconds truth = time_of(begun.problem.candidates[observation.candidate].strategy);
    EXPECT_NEAR(observation.step_time, truth, 0.05 * truth);
  }
  EXPECT_FALSE(result.report.truth) << "nothing was swept";
}

TEST_F(RanksSearchTest, ASweepGradesTheAnswer) {
  search.sweep = true;
  RanksSearchHooks hooks;
  int evaluated = 0;
  int swept = 0;
  bool announced = false;
  hooks.evaluation.ends = [&](const tune::Evaluation& evaluation, const tune::Measurement&) {
    EXPECT_EQ(evaluation.number, evaluated++);
    EXPECT_FALSE(announced);
  };
  hooks.sweeping = [&] { announced = true; };
  hooks.swept.begins = [&](const tune::Candidate& candidate, const tune::Evaluation& evaluation) {
    EXPECT_EQ(evaluation.number, swept);
    EXPECT_EQ(candidate.name, begun.problem.candidates[static_cast<std::size_t>(swept++)].name);
  };
  const Searched result = searched(hooks);
  EXPECT_EQ(result.failures, Failures(kRanks));
  ASSERT_TRUE(result.report.truth);
  const tune::KnownTruth& truth = *result.report.truth;
  const auto candidates = begun.problem.candidates.size();
  EXPECT_EQ(static_cast<std::size_t>(swept), candidates);
  // Everything searched, everything swept, and the baseline.
  EXPECT_EQ(result.runs, std::vector<int>(kRanks, evaluated + swept + 1));
  EXPECT_TRUE(truth.measured);
  EXPECT_LE(truth.least, truth.best);
  EXPECT_NEAR(truth.best, time_of(result.report.best().strategy), 0.05 * truth.best);
  EXPECT_NEAR(truth.baseline, time_of(scenario.strategies[0]), 0.05 * truth.baseline);
}

TEST_F(RanksSearchTest, AnInterruptedSearchIsNotSweptAndDismissesTheOthers) {
  search.sweep = true;
  int evaluated = 0;
  RanksSearchHooks hooks;
  hooks.evaluation.ends = [&](const tune::Evaluation&, const tune::Measurement&) { ++evaluated; };
  begun.settings.interrupted = [&] { return evaluated == 2; };
  const Searched result = searched(hooks);
  EXPECT_EQ(result.failures, Failures(kRanks));
  EXPECT_FALSE(result.report.tuning.complete);
  EXPECT_FALSE(result.report.truth);
  EXPECT_EQ(result.runs, std::vector<int>(kRanks, 2));
}

TEST_F(RanksSearchTest, EvaluationsInTheJournalAreNotRunAgain) {
  const Scratch scratch;
  std::unique_ptr<tune::Journal> journal;
  RanksSearchHooks hooks;
  hooks.journal = [&](const tune::LiveObjective& objective) {
    journal = nullptr;  // closes the file
    journal = std::make_unique<tune::Journal>(
        scratch.path("journal"),
        tune::journal_header("x", begun.problem, begun.settings, objective));
    return journal.get();
  };
  const Searched whole = searched(hooks);
  EXPECT_EQ(whole.failures, Failures(kRanks));
  const auto count = whole.report.tuning.observations.size();
  EXPECT_EQ(whole.report.tuning.resumed, 0U);
  EXPECT_EQ(journal->entries().size(), count);
  const Searched again = searched(hooks);
  EXPECT_EQ(again.report.tuning.resumed, count);
  EXPECT_EQ(again.report.tuning.state.best, whole.report.tuning.state.best);
  EXPECT_EQ(again.runs, std::vector<int>(kRanks, 0));
}

TEST_F(RanksSearchTest, AWrongValueEndsTheSearchOnEveryRank) {
  machine.wrong_rank = 2;
  const Searched result = searched();
  for (const auto& failure : result.failures) {
    EXPECT_NE(failure.find("did not end with the values of the host executor"), std::string::npos)
        << failure;
    EXPECT_EQ(failure, result.failures[0]);
  }
  search.machine.check_values = false;
  EXPECT_EQ(searched().failures, Failures(kRanks));
}

}  // namespace
}  // namespace syncline::live
