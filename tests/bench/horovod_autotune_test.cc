// The rival's background loop against what can be said by hand, and its search's habits.
#include "tests/bench/horovod_autotune.h"

#include <gtest/gtest.h>

namespace syncline::test {
namespace {

constexpr AffineCost kCost{1e-3, 1e-9};

StepTrace trace_of(std::vector<Seconds> ready, std::vector<double> bytes) {
  StepTrace trace;
  trace.forward = 0.01;
  trace.gradients = {std::move(ready), std::move(bytes)};
  return trace;
}

// One gradient waits for half a cycle in the mean, then travels.
TEST(HorovodStep, WaitsForItsTick) {
  const StepTrace trace = trace_of({0.1}, {1e6});
  const HorovodKnobs knobs{64, 10};
  EXPECT_NEAR(horovod_step_time(trace, kCost, knobs, 100), 0.01 + 0.1 + 0.005 + 2e-3, 1e-9);
}

// A cycle far below every wait: the loop is a free-running stream.
TEST(HorovodStep, ShortCyclesAreNoCycles) {
  const StepTrace trace = trace_of({0.1, 0.2, 0.3}, {1e6, 2e6, 3e6});
  const Seconds alone = step_time(trace, {0, 1, 2}, kCost);
  EXPECT_NEAR(horovod_step_time(trace, kCost, {64, 1e-3}), alone, 1e-6);
}

// A cycle beyond the backward pass: one bucket if the threshold allows, else what it allows.
TEST(HorovodStep, LongCyclesFuseEverythingUpToTheThreshold) {
  const StepTrace trace = trace_of({0.001, 0.002, 0.003}, {1e6, 2e6, 3e6});
  const double cycle = 10;
  const Seconds wait = 0.5 * cycle;  // first ticks at 1/4 and 3/4 of a cycle, both after 0.003 s
  const auto time = [&](double mib) {
    return horovod_step_time(trace, kCost, {mib, cycle / kMillisecond}, 2) - 0.01 - wait;
  };
  EXPECT_NEAR(time(64), 1e-3 + 6e-3, 1e-9);
  EXPECT_NEAR(time(3.0), 2e-3 + 6e-3, 1e-9);  // 1 + 2 MB, then 3 MB
  EXPECT_NEAR(time(0), 3e-3 + 6e-3, 1e-9);    // never exceeds: each alone
}

// The step never beats the optimum, whatever the knobs: ticks only delay.
TEST(HorovodStep, NeverBeatsTheOptimum) {
  const StepTrace trace = trace_of({0.01, 0.015, 0.04, 0.041, 0.06}, {1e6, 5e6, 2e6, 9e6, 4e6});
  const Seconds best = optimal_step_time(trace, kCost);
  for (const double mib : {0.0, 1.0, 4.0, 8.0, 64.0}) {
    for (const double ms : {1.0, 3.0, 10.0, 100.0}) {
      EXPECT_GE(horovod_step_time(trace, kCost, {mib, ms}), best) << mib << " " << ms;
    }
  }
}

TEST(HorovodAutotune, TwentyOneEvaluationsInTheBox) {
  const StepTrace trace = trace_of({0.01, 0.02, 0.03}, {1e6, 2e6, 3e6});
  int steps = 0;
  const auto measure = [&](const HorovodKnobs& knobs) {
    ++steps;
    return horovod_step_time(trace, kCost, knobs);
  };
  const HorovodTuning tuning = emulate_horovod_autotune(6e6, 1, measure);
  ASSERT_EQ(tuning.trials.size(), 21U);
  EXPECT_EQ(steps, 21 * 50);
  EXPECT_EQ(tuning.trials[1].knobs.threshold_mib, 32);
  EXPECT_EQ(tuning.trials[1].knobs.cycle_ms, 50);
  for (const auto& trial : tuning.trials) {
    EXPECT_GE(trial.knobs.threshold_mib, 0);
    EXPECT_LE(trial.knobs.threshold_mib, 64);
    EXPECT_GE(trial.knobs.cycle_ms, 1);
    EXPECT_LE(trial.knobs.cycle_ms, 100);
    EXPECT_LE(trial.score, tuning.trials[tuning.best].score);
  }
  // Seeded: the same seed asks the same.
  const HorovodTuning again = emulate_horovod_autotune(6e6, 1, measure);
  for (std::size_t i = 0; i < 21; ++i) {
    EXPECT_EQ(tuning.trials[i].knobs.threshold_mib, again.trials[i].knobs.threshold_mib);
    EXPECT_EQ(tuning.trials[i].knobs.cycle_ms, again.trials[i].knobs.cycle_ms);
  }
}

}  // namespace
}  // namespace syncline::test
