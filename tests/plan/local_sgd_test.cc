// When parameters are averaged: Paddle's fixed and adaptive rules.
#include "core/plan/planner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/plan/planned.h"

namespace syncline::plan {
namespace {

Training run_of(std::int64_t steps, std::int64_t from = 0) {
  Training training;
  training.from = from;
  training.steps = steps;
  training.loss = {{0, 4}, {static_cast<double>(from + steps), 4}};
  return training;
}

LocalSgd fixed(std::int64_t period, std::int64_t begin_step = 1) {
  return local_strategy(period, begin_step).local_sgd;
}

LocalSgd adaptive(std::int64_t init_period = 1, std::int64_t begin_step = 1) {
  LocalSgd local = fixed(1, begin_step);
  local.adaptive = true;
  local.init_period = init_period;
  return local;
}

using Shares = std::map<std::int64_t, std::int64_t>;
constexpr std::int64_t kNever = 1000000;  // steps behind the last averaging

Shares shares_of(const LocalSgd& local, const Training& training) {
  Shares shares;
  for (const auto& share : period_shares(local, training)) {
    const std::int64_t period = share.point.averaged ? share.point.period : kNever;
    EXPECT_TRUE(shares.emplace(period, share.steps).second) << "a period is listed once";
  }
  return shares;
}

std::int64_t total(const Shares& shares) {
  std::int64_t sum = 0;
  for (const auto& [period, steps] : shares) sum += steps;
  return sum;
}

TEST(AdaptivePeriod, IsTheRootOfTheGainRoundedUp) {
  // A quarter of the learning rate at the first loss: sqrt(4) = 2.
  EXPECT_EQ(adaptive_period(adaptive(), 0.1, 4, 0.025, 4), 2);
  EXPECT_EQ(adaptive_period(adaptive(), 0.1, 4, 0.0249, 4), 3);
  EXPECT_EQ(adaptive_period(adaptive(), 0.1, 4, 0.1, 1), 1);
  EXPECT_EQ(adaptive_period(adaptive(), 0.1, 4, 0.05, 3), 2);  // sqrt(1.5)
}

// AdaComm has tau_0 outside the root; Paddle has it inside.
TEST(AdaptivePeriod, TheFirstPeriodIsInsideTheRoot) {
  EXPECT_EQ(adaptive_period(adaptive(9), 0.1, 4, 0.1, 4), 3);
  EXPECT_EQ(adaptive_period(adaptive(16), 0.1, 4, 0.1, 1), 2);
}

TEST(AdaptivePeriod, IsBetweenOneAndTheMaximum) {
  EXPECT_EQ(adaptive_period(adaptive(), 0.1, 4, 1e-9, 4), 16);
  EXPECT_EQ(adaptive_period(adaptive(), 0.1, 4, 0, 4), 16);  // at the end of a decay to nothing
  EXPECT_EQ(adaptive_period(adaptive(), 0.1, 4, 10, 1e-9), 1);
  LocalSgd local = adaptive();
  local.max_period = 5;
  EXPECT_EQ(adaptive_period(local, 0.1, 4, 1e-9, 4), 5);
}

void expect_rates(const Training& training, const std::map<std::int64_t, double>& expected) {
  for (const auto& [step, rate] : expected) {
    EXPECT_DOUBLE_EQ(learning_rate_at(training, step), rate) << step;
  }
}

TEST(LearningRate, ConstantOrPolynomial) {
  Training training = run_of(100);
  training.learning_rate.initial = 0.5;
  training.learning_rate.final = 0.1;
  expect_rates(training, {{0, 0.5}, {100, 0.5}});
  training.learning_rate.decay = Training::LearningRate::Decay::kPolynomial;
  expect_rates(training, {{0, 0.5}, {50, 0.3}, {100, 0.1}, {1000, 0.1}});
  training.learning_rate.power = 2;
  EXPECT_DOUBLE_EQ(learning_rate_at(training, 50), 0.2);
}

TEST(LearningRate, RisesAndThenFallsOverItsOwnSteps) {
  Training training;
  training.steps = 30;  // as far as the run is evaluated
  auto& rate = training.learning_rate;
  rate.initial = 0.5;
  rate.final = 0.1;
  rate.decay = Training::LearningRate::Decay::kCosine;
  rate.warmup = 20;
  rate.steps = 100;
  expect_rates(training,
               {{0, 0.025}, {1, 0.025}, {10, 0.25}, {20, 0.5}, {60, 0.3}, {100, 0.1}, {101, 0.1}});
  EXPECT_NEAR(learning_rate_at(training, 40), 0.3 + 0.2 * std::sqrt(0.5), 1e-12);
  rate.decay = Training::LearningRate::Decay::kPolynomial;
  EXPECT_DOUBLE_EQ(learning_rate_at(training, 40), 0.4);
  rate.decay = Training::LearningRate::Decay::kConstant;
  EXPECT_DOUBLE_EQ(learning_rate_at(training, 40), 0.5);
}

TEST(Loss, IsLinearBetweenPointsAndConstantOutside) {
  Training training;
  training.loss = {{10, 8}, {20, 4}, {40, 2}};
  const std::map<std::int64_t, double> expected{{0, 8},  {10, 8}, {15, 6},     {20, 4},
                                                {30, 3}, {40, 2}, {1000000, 2}};
  for (const auto& [step, loss] : expected) EXPECT_DOUBLE_EQ(loss_at(training, step), loss) << step;
}

TEST(PeriodShares, TheFirstStepsAverageEveryTime) {
  EXPECT_EQ(shares_of(fixed(4), run_of(101)), (Shares{{1, 1}, {4, 100}}));
  EXPECT_EQ(shares_of(fixed(4, 30), run_of(100)), (Shares{{1, 30}, {4, 68}, {kNever, 2}}));
  EXPECT_EQ(shares_of(fixed(4, 100), run_of(100)), (Shares{{1, 100}}));
  EXPECT_EQ(shares_of(fixed(4, 1000), run_of(100)), (Shares{{1, 100}}));
  EXPECT_EQ(shares_of(fixed(1), run_of(100)), (Shares{{1, 100}}));
}

// Seventeen steps, the first seven averaged each, then steps 10, 13 and 16; a run of step 11 alone,
// which is an averaging's, and one of step 10, which is none's.
TEST(PeriodShares, StepsAfterTheLastAveragingAreNotAveraged) {
  EXPECT_EQ(shares_of(fixed(3, 7), run_of(17)), (Shares{{1, 7}, {3, 9}, {kNever, 1}}));
  Training one = run_of(1);
  one.from = 10;
  EXPECT_EQ(shares_of(fixed(4, 7), one), (Shares{{1, 1}}));
  one.from = 9;
  EXPECT_EQ(shares_of(fixed(4, 7), one), (Shares{{kNever, 1}}));
  one.steps = 7;  // steps 10 to 16: two are left of one period, then a whole one and one more
  EXPECT_EQ(shares_of(fixed(4, 7), one), (Shares{{2, 2}, {4, 4}, {kNever, 1}}));
}

// Steps count from 1: a run from 20 covers the steps 21 to 120.
TEST(PeriodShares, ARunThatBeginsLater) {
  EXPECT_EQ(shares_of(fixed(8, 30), run_of(100, 20)), (Shares{{1, 10}, {8, 88}, {kNever, 2}}));
  EXPECT_EQ(shares_of(fixed(8, 30), run_of(100, 30)), (Shares{{8, 96}, {kNever, 4}}));
  EXPECT_EQ(shares_of(fixed(8, 30), run_of(100, 500)), (Shares{{2, 2}, {8, 96}, {kNever, 2}}));
}

TEST(PeriodShares, AddUpToTheRun) {
  for (const std::int64_t steps : {1, 2, 3, 17, 1000}) {
    for (const std::int64_t from : {0, 1, 5, 100}) {
      for (const std::int64_t begin : {1, 2, 16, 2000}) {
        for (const std::int64_t period : {1, 3, 16}) {
          EXPECT_EQ(total(shares_of(fixed(period, begin), run_of(steps, from))), steps);
          Training training = run_of(steps, from);
          training.loss = {{0, 7}, {50, 3}, {1000, 1}};
          training.learning_rate.decay = Training::LearningRate::Decay::kPolynomial;
          EXPECT_EQ(total(shares_of(adaptive(period, begin), training)), steps);
        }
      }
    }
  }
}

// Paddle's loop, step by step: an averaging sets the period that follows, from the loss and the
// rate of the averaging step itself.
Shares walked(const LocalSgd& local, const Training& training) {
  Shares shares;
  std::int64_t last = 0;
  std::int64_t period = local.init_period;
  std::int64_t since = 0;
  for (std::int64_t step = 1; step <= *training.steps; ++step) {
    ++since;
    const bool warm = step <= local.begin_step;
    if (!warm && step - last != period) continue;
    shares[warm ? 1 : period] += since;
    since = 0;
    last = step;
    period = adaptive_period(local, learning_rate_at(training, 1), loss_at(training, 1),
                             learning_rate_at(training, step), loss_at(training, step));
  }
  if (since > 0) shares[period] += since;
  return shares;
}

TEST(PeriodShares, AdaptivePeriodsOfADecayingRate) {
  Training training = run_of(5000);
  training.loss = {{0, 7}, {500, 3}, {5000, 1.5}};
  training.learning_rate.decay = Training::LearningRate::Decay::kPolynomial;
  for (const std::int64_t init : {1, 4, 25}) {
    for (const std::int64_t begin : {1, 30}) {
      const Shares expected = walked(adaptive(init, begin), training);
      const Shares found = shares_of(adaptive(init, begin), training);
      EXPECT_EQ(total(found), total(expected));
      // Which of two neighbouring periods a step falls into is a matter of a few steps.
      for (const auto& [period, steps] : expected) {
        EXPECT_NEAR(static_cast<double>(found.contains(period) ? found.at(period) : 0),
                    static_cast<double>(steps), 40.0)
            << "init " << init << ", begin " << begin << ", period " << period;
      }
    }
  }
}

// The loss falls between step 100, at which the first period is set, and step 101.
TEST(PeriodShares, ThePeriodIsSetAtTheAveragingStep) {
  Training training = run_of(110);
  training.loss = {{100, 9}, {101, 1}};
  EXPECT_EQ(shares_of(adaptive(9, 100), training), walked(adaptive(9, 100), training));
}

}  // namespace
}  // namespace syncline::plan
