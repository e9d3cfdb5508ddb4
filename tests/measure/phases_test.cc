// Phases of a training: the steps of a long LocalSGD period that are alike are measured once.
#include "core/metrics/phases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/support/studies.h"

namespace syncline::measure {
namespace {

// Sharded groups that exchange gradients in each step, DiLoCo across: steps overlap.
Scenario far_apart(std::int64_t period, int fragments = 1, std::int64_t delay = 0) {
  Scenario scenario =
      input::parse_scenario(input::read_document(SYNCLINE_SOURCE_DIR "/scenarios/far_apart.json"));
  scenario.strategies = {scenario.strategies.back()};
  LocalSgd& local = scenario.strategies.front().local_sgd;
  local.period = period;
  local.fragments = fragments;
  local.delay = delay;
  return scenario;
}

Seconds period_time(const Scenario& scenario) {
  const Strategy& strategy = scenario.strategies.front();
  return test::step_time(scenario, strategy) * static_cast<double>(strategy.local_sgd.period);
}

TEST(Phases, PlainStepsOfALongPeriodAreAlike) {
  const Seconds step = (period_time(far_apart(2000)) - period_time(far_apart(1000))) / 1000;
  for (const auto& [fragments, delay] : {std::pair{1, 0}, {4, 2}}) {
    const Seconds grown = period_time(far_apart(400, fragments, delay)) -
                          period_time(far_apart(200, fragments, delay));
    EXPECT_NEAR(grown / 200, step, 1e-3 * step) << fragments;
  }
}

// A period of 40 steps has 32 of them apart, one of 24 is planned as a whole.
TEST(Phases, APeriodInPartsIsThePeriodAsAWhole) {
  const Seconds step = (period_time(far_apart(2000)) - period_time(far_apart(1000))) / 1000;
  const Seconds whole = period_time(far_apart(24));
  EXPECT_NEAR(period_time(far_apart(40)), whole + 16 * step, 1e-3 * whole);
}

TEST(Phases, PlansOfAnyPeriodAreShort) {
  const Job& job = far_apart(100'000);
  std::size_t most = 0;
  double steps = 0, planned = 0;
  const Strategy strategy = far_apart(100'000).strategies.front();
  for_each_phase(job, strategy, {}, [&](TrainingStretch& phase) {
    most = std::max(most, static_cast<std::size_t>(phase.plan.steps));
    steps += phase.steps;
    planned += 1;
    EXPECT_EQ(phase.plan.wait_steps, 100'000);
  });
  EXPECT_EQ(most, 16U);
  EXPECT_EQ(steps, 100'000);
  EXPECT_EQ(planned, 2);
}

// A long period has a plan of few steps, for `plan`, `buckets`, warnings and comparisons too.
TEST(Phases, LongPeriodsHavePlansOfFewSteps) {
  const Scenario scenario = far_apart(100'000);
  const Strategy& strategy = scenario.strategies.front();
  const auto phases = planned_phases(strategy, scenario.training);
  ASSERT_EQ(phases.size(), 2U);
  std::int64_t steps = 0;
  bool averages = false;
  for (const plan::TrainingPhase& phase : phases) {
    const plan::Plan plan =
        plan::make_plan(scenario.workload, scenario.cluster, strategy, phase.point);
    EXPECT_LE(plan.steps, plan::kPlainSteps);
    averages |= std::ranges::any_of(plan.buckets, &plan::Bucket::averaged);
    steps += phase.steps;
  }
  EXPECT_TRUE(averages);
  EXPECT_EQ(steps, 100'000);
  // A short period is one phase.
  EXPECT_EQ(planned_phases(far_apart(24).strategies.front(), {}).size(), 1U);
}

}  // namespace
}  // namespace syncline::measure
