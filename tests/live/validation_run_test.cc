// A scenario predicted and run by ranks that are threads, on a machine whose times are known.
#include "live/validation_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "core/executor.h"
#include "tests/support/emulated_ranks.h"
#include "tests/support/ranks.h"

namespace syncline::live {
namespace {

using test::backend_of;
using test::emulated_scenario;
using test::EmulatedMachine;
using test::Failures;
using test::run_ranks;

constexpr int kValidators = 3;

// A run with the same hooks on every rank.
struct Ran {
  Failures failures;
  std::vector<measure::Validation> reports;  // by rank
};

Ran ran(const ValidationRun& run, const ValidationHooks& hooks = {}) {
  Ran result;
  result.reports.resize(kValidators);
  result.failures = run_ranks(kValidators, [&](ControlChannel& channel) {
    run_validation(run, channel, hooks, result.reports[static_cast<std::size_t>(channel.rank())]);
  });
  return result;
}

ValidationRun run_on(const EmulatedMachine& machine) {
  ValidationRun run;
  run.scenario = emulated_scenario(kValidators);
  run.backend = backend_of(machine);
  run.predictor = run::make_model_executor;
  run.repeats = 3;
  return run;
}

// Twice as long latencies as the scenario says.
EmulatedMachine slower_machine() {
  EmulatedMachine machine;
  machine.cluster = emulated_scenario(kValidators).cluster;
  machine.cluster.tiers[0].latency *= 2;
  return machine;
}

Seconds step_on(const Cluster& cluster, const Strategy& strategy) {
  Scenario scenario = emulated_scenario(kValidators);
  scenario.cluster = cluster;
  collective::CostCache cache(cluster);
  return measure::evaluate_strategy(scenario, strategy, *run::make_model_executor({cluster, {}, 1}),
                                    cache)
      .metrics.step_time;
}

class ValidationRunTest : public testing::Test {
 protected:
  EmulatedMachine machine = slower_machine();
  ValidationRun run = run_on(machine);
};

TEST_F(ValidationRunTest, ARowIsWhatBothExecutorsSay) {
  std::atomic<int> predictors = 0;
  run.predictor = [&](const run::ExecutorSettings& settings) {
    ++predictors;
    return run::make_model_executor(settings);
  };
  const Ran result = ran(run);
  EXPECT_EQ(result.failures, Failures(kValidators));
  EXPECT_EQ(predictors, 2) << "rank 0 alone predicts";

  const measure::Validation& report = result.reports[0];
  EXPECT_EQ(report.scenario, "small");
  EXPECT_EQ(report.baseline, "each");
  EXPECT_EQ(report.ranks, kValidators);
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.hardware.rfind("emulated ranks, ", 0), 0U) << report.hardware;
  EXPECT_DOUBLE_EQ(report.clock_error, 1e-6);
  ASSERT_EQ(report.rows.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const Strategy& strategy = run.scenario.strategies[i];
    const measure::ValidatedRow& row = report.rows[i];
    EXPECT_EQ(row.strategy, strategy.name);
    EXPECT_NEAR(row.predicted, step_on(run.scenario.cluster, strategy), 1e-12);
    EXPECT_NEAR(row.median, step_on(machine.cluster, strategy), 1e-12);
    EXPECT_GT(row.median, row.predicted);
    EXPECT_EQ(row.steps.size(), 3U) << "without the warm-up";
    EXPECT_EQ(row.bytes_sent, 3000) << "of the rank that sent most, per step";
  }
  for (const measure::Validation& each : result.reports) {
    ASSERT_EQ(each.rows.size(), 2U);
    EXPECT_EQ(each.rows[0].values_match, true);
    EXPECT_TRUE(all_values_match(each));
  }
}

// Their parameters are others after each period.
TEST_F(ValidationRunTest, OuterStepsAreComparedAfterTheSamePeriods) {
  LocalSgd& local = run.scenario.strategies[0].local_sgd;
  local.enabled = true;
  local.period = 2;
  local.outer.optimizer = Outer::Optimizer::kNesterov;
  for (const int repeats : {1, 4}) {
    run.repeats = repeats;
    for (const measure::Validation& each : ran(run).reports) {
      EXPECT_EQ(each.rows.at(0).values_match, true) << repeats;
    }
  }
}

TEST_F(ValidationRunTest, PublishedSpeedupsAreNextToTheirRow) {
  Published published;
  published.strategy = "one";
  published.speedup = 1.5;
  run.scenario.published = {published};
  const Ran result = ran(run);
  EXPECT_FALSE(result.reports[0].rows.at(0).published_speedup);
  EXPECT_EQ(result.reports[0].rows.at(1).published_speedup, 1.5);
}

TEST_F(ValidationRunTest, AWrongValueOnOneRankIsKnownToAll) {
  machine.wrong_rank = 1;
  for (const bool real : {false, true}) {
    run.real_values = real;
    for (const measure::Validation& report : ran(run).reports) {
      ASSERT_EQ(report.rows.size(), 2U) << "a wrong row does not end the run";
      EXPECT_EQ(report.rows[0].values_match, false);
      EXPECT_FALSE(all_values_match(report));
    }
  }
  run.check_values = false;
  for (const measure::Validation& report : ran(run).reports) {
    EXPECT_EQ(report.rows.at(0).values_match, std::nullopt);
    EXPECT_TRUE(all_values_match(report));
  }
}

TEST_F(ValidationRunTest, RealValuesMayBeRounded) {
  run.real_values = true;
  for (const measure::Validation& report : ran(run).reports) EXPECT_TRUE(all_values_match(report));
}

// Rank 0 alone tells how far it is.
TEST_F(ValidationRunTest, ProgressIsReportedInOrderAndOnce) {
  std::mutex mutex;
  std::vector<std::string> told;
  const auto tell = [&](const std::string& text) {
    const std::lock_guard lock(mutex);
    told.push_back(text);
  };
  ValidationHooks hooks;
  hooks.calibrating = [&] { tell("calibrating"); };
  hooks.predicted = [&](const Strategy& strategy, Seconds) { tell("predicted " + strategy.name); };
  hooks.measured = [&](const PlanPair& pair, Seconds median) {
    tell("measured " + pair.strategy.name);
    EXPECT_NEAR(median, step_on(machine.cluster, pair.strategy), 1e-12);
    EXPECT_FALSE(pair.predicted.spans.empty());
    EXPECT_EQ(pair.measured.period_ends.size(), 5U);
  };
  hooks.row = [&](const measure::ValidatedRow& row) { tell("row " + row.strategy); };
  EXPECT_EQ(ran(run, hooks).failures, Failures(kValidators));
  EXPECT_EQ(told, std::vector<std::string>({"predicted each", "measured each", "row each",
                                            "predicted one", "measured one", "row one"}));
}

// Ctrl-C reaches the ranks at different moments; rank 0's counts.
TEST_F(ValidationRunTest, RankZerosInterruptionEndsAllRanksAtTheSameRow) {
  for (const int interrupted : {0, 1}) {
    std::vector<measure::Validation> reports(kValidators);
    const Failures failures = run_ranks(kValidators, [&](ControlChannel& channel) {
      auto& report = reports[static_cast<std::size_t>(channel.rank())];
      ValidationHooks hooks;
      hooks.interrupted = [&] { return channel.rank() == interrupted && !report.rows.empty(); };
      // A run that is killed here leaves what was written last.
      hooks.row = [&](const measure::ValidatedRow&) {
        EXPECT_EQ(report.complete, report.rows.size() == 2U);
      };
      run_validation(run, channel, hooks, report);
    });
    EXPECT_EQ(failures, Failures(kValidators));
    for (const measure::Validation& report : reports) {
      EXPECT_EQ(report.rows.size(), interrupted == 0 ? 1U : 2U);
      EXPECT_EQ(report.complete, interrupted != 0);
    }
  }
}

// What a hook throws (a full disk, for one) ends the run on rank 0; the others name it as gone.
TEST_F(ValidationRunTest, AHookThatThrowsEndsTheRun) {
  ValidationHooks hooks;
  hooks.row = [](const measure::ValidatedRow&) { throw MachineError("no space left"); };
  const Failures failures = ran(run, hooks).failures;
  EXPECT_EQ(failures[0], "no space left");
  EXPECT_EQ(failures[1], "rank 0 ended before the others");
}

// On links that are ten times slower than the scenario says, the measured ones predict the machine.
TEST_F(ValidationRunTest, CalibratedLinksPredictTheMachine) {
  machine.cluster.tiers[0].latency *= 5;
  const measure::Validation before = ran(run).reports[0];
  run.calibration.emplace().largest = 1 << 18;
  run.calibration->repeats = 1;
  ValidationHooks hooks;
  Seconds latency = 0;
  hooks.calibrated = [&](const LinkCalibration& found) {
    latency = found.cluster.tiers.at(0).latency;
  };
  const Ran after = ran(run, hooks);
  EXPECT_EQ(after.failures, Failures(kValidators));
  EXPECT_NEAR(latency, machine.cluster.tiers[0].latency, 0.1 * latency);
  EXPECT_TRUE(before.samples.empty());
  for (const measure::Validation& report : after.reports) EXPECT_FALSE(report.samples.empty());
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_GT(std::abs(before.rows[i].error()), 0.1);
    EXPECT_LT(std::abs(after.reports[0].rows[i].error()), 0.02);
  }
}

TEST_F(ValidationRunTest, TheCodecThatAStrategyUses) {
  std::vector<Strategy> strategies(2);
  EXPECT_EQ(codec_of(strategies), nullptr);
  // A calibration encodes single gradients, which codecs of low rank do not.
  strategies[0].compression.codec = "powersgd";
  EXPECT_EQ(codec_of(strategies), nullptr);
  strategies[1].compression.codec = "fp16";
  ASSERT_NE(codec_of(strategies), nullptr);
  EXPECT_EQ(codec_of(strategies)->name, "fp16");
}

}  // namespace
}  // namespace syncline::live
