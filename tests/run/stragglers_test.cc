// Expected maxima against published and exact values, and the draws that a simulation makes.
#include "core/run/stragglers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

namespace syncline::run {
namespace {

constexpr Jitter kNormal{Jitter::Kind::kNormal, 1.0};
constexpr Jitter kExponential{Jitter::Kind::kExponential, 1.0};
constexpr Jitter kBoth[] = {{Jitter::Kind::kNormal, 0.1}, {Jitter::Kind::kExponential, 0.1}};

TEST(ExpectedSlowest, NormalOrderStatistics) {
  const std::pair<int, double> table[] = {{1, 0},      {2, 0.564},   {4, 1.029},
                                          {8, 1.424},  {16, 1.766},  {32, 2.070},
                                          {64, 2.344}, {128, 2.595}, {256, 2.827}};
  for (const auto& [ranks, z] : table) {
    EXPECT_NEAR(expected_slowest(kNormal, ranks, 1) - 1, z, 1e-3) << ranks << " ranks";
  }
}

TEST(ExpectedSlowest, NormalSpreadShrinksWithTheRootOfTheSteps) {
  const Jitter small{Jitter::Kind::kNormal, 0.05};
  const double one = expected_slowest(small, 32, 1) - 1;
  EXPECT_NEAR(one, 0.05 * 2.070, 1e-4);
  EXPECT_NEAR(expected_slowest(small, 32, 16) - 1, one / 4, 1e-9);
}

// A rank alone in its group waits for others at the end of a period alone: what counts is its sum
// over all micro-batches of all steps.
TEST(ExpectedSlowest, RanksInGroupsOfOneWaitOncePerPeriod) {
  for (const Jitter& jitter : kBoth) {
    for (const auto& [passes, steps] : {std::pair{1, 1}, {4, 1}, {1, 3}, {4, 3}}) {
      EXPECT_DOUBLE_EQ(expected_slowest(jitter, Waits{1, 32, passes, steps}),
                       expected_slowest(jitter, 32, passes * steps))
          << passes << " passes, " << steps << " steps";
    }
    EXPECT_LT(expected_slowest(jitter, Waits{1, 32, 4, 3}),
              expected_slowest(jitter, Waits{1, 32, 1, 3}));
  }
}

TEST(ExpectedSlowest, ExponentialMeansOfSeveralSteps) {
  const std::pair<int, double> table[] = {
      {1, 4.059}, {2, 2.991}, {4, 2.309}, {8, 1.872}, {16, 1.589}};
  for (const auto& [steps, mean] : table) {
    EXPECT_NEAR(expected_slowest(kExponential, 32, steps) - 1, mean, 1e-3) << steps << " steps";
  }
}

// The maximum of n exponentials is the harmonic number H_n.
TEST(ExpectedSlowest, ExponentialHarmonicNumbers) {
  double harmonic = 0;
  for (int ranks = 1; ranks <= 4096; ++ranks) {
    harmonic += 1.0 / ranks;
    if ((ranks & (ranks - 1)) != 0) continue;
    EXPECT_NEAR(expected_slowest(kExponential, ranks, 1) - 1, harmonic, 1e-7) << ranks;
  }
}

// The greater of two: 1 / sqrt(pi) standard deviations above the mean, and for a sum of k
// exponentials binomial(2 k, k) / 4^k of the mean.
TEST(ExpectedSlowest, TheSlowerOfTwoInClosedForm) {
  EXPECT_NEAR(expected_slowest(kNormal, 2, 1) - 1, 1 / std::sqrt(std::numbers::pi), 1e-9);
  EXPECT_NEAR(expected_slowest(kNormal, 3, 1) - 1, 1.5 / std::sqrt(std::numbers::pi), 1e-9);
  for (const int k : {1, 2, 3, 10, 100, 200, 201, 1000, 5000}) {
    const double above =
        std::exp(std::lgamma(2.0 * k + 1) - 2 * std::lgamma(k + 1.0) - k * std::log(4.0));
    EXPECT_NEAR(expected_slowest(kExponential, 2, k) - 2, above, 1e-8) << k;
  }
}

TEST(ExpectedSlowest, OneWithoutJitter) {
  EXPECT_EQ(expected_slowest({}, 1024, 1), 1);
  EXPECT_EQ(expected_slowest(kNormal, 1, 5), 1);
  EXPECT_DOUBLE_EQ(expected_slowest(kExponential, 1, 5), 2);  // the mean itself
}

// Over many steps all ranks come to the mean, from above: for n ranks about z_n / sqrt(steps) more.
TEST(ExpectedSlowest, LongExponentialPeriodsApproachTheMean) {
  for (const int steps : {256, 700, 1024, 4096}) {
    const double above = expected_slowest(kExponential, 32, steps) - 2;
    EXPECT_NEAR(above, 2.07 / std::sqrt(steps), 0.2 / std::sqrt(steps)) << steps << " steps";
  }
}

TEST(ExpectedSlowest, GrowsWithTheRanksAndFallsWithTheSteps) {
  for (const Jitter& jitter : {kNormal, kExponential}) {
    for (int ranks = 2; ranks <= 1 << 20; ranks *= 4) {
      EXPECT_GT(expected_slowest(jitter, 2 * ranks, 1), expected_slowest(jitter, ranks, 1));
      EXPECT_LT(expected_slowest(jitter, ranks, 2), expected_slowest(jitter, ranks, 1));
    }
  }
}

// Groups of a DiLoCo training: their ranks meet in each step, they themselves once a period.
TEST(ExpectedSlowest, GroupsWaitForTheirSlowestInEachStep) {
  constexpr int kGroups = 4, kRanks = 8, kPeriods = 400;
  for (const Jitter& jitter : kBoth) {
    for (const int steps : {5, 20}) {
      double drawn = 0;
      for (int period = 0; period < kPeriods; ++period) {
        double last = 0;
        for (int group = 0; group < kGroups; ++group) {
          double sum = 0;
          for (int step = period * steps; step < (period + 1) * steps; ++step) {
            double slowest = 0;
            for (int rank = group * kRanks; rank < (group + 1) * kRanks; ++rank) {
              slowest = std::max(slowest, jitter_factor(jitter, 7, rank, step));
            }
            sum += slowest;
          }
          last = std::max(last, sum / steps);
        }
        drawn += last / kPeriods;
      }
      const double expected = expected_slowest(jitter, Waits{kRanks, kGroups, 1, steps});
      EXPECT_NEAR(expected, drawn, 0.006) << steps;  // of few steps the mean is skewed
      EXPECT_GT(expected, expected_slowest(jitter, kRanks, 1));
    }
  }
}

// Mean and deviation.
std::pair<double, double> moments_of(const Jitter& jitter, std::uint64_t seed) {
  double sum = 0;
  double squares = 0;
  constexpr int kRanks = 200;
  constexpr int kSteps = 1000;
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int step = 0; step < kSteps; ++step) {
      const double factor = jitter_factor(jitter, seed, rank, step);
      sum += factor;
      squares += factor * factor;
    }
  }
  const double n = kRanks * kSteps;
  return {sum / n, std::sqrt(squares / n - sum / n * (sum / n))};
}

// 200,000 draws: the mean is known to 0.2 % of the spread.
TEST(JitterFactor, MeanAndSpread) {
  for (const std::uint64_t seed : {1ULL, 2ULL, 12345678901234567ULL}) {
    for (const auto& [kind, expected] :
         {std::pair(Jitter::Kind::kNormal, 1.0), {Jitter::Kind::kExponential, 1.1}}) {
      const auto [mean, deviation] = moments_of({kind, 0.1}, seed);
      EXPECT_NEAR(mean, expected, 0.001);
      EXPECT_NEAR(deviation, 0.1, 0.001);
    }
  }
}

TEST(JitterFactor, IsAFunctionOfSeedRankAndStep) {
  const Jitter jitter{Jitter::Kind::kNormal, 0.1};
  EXPECT_EQ(jitter_factor({}, 1, 2, 3), 1);
  EXPECT_EQ(jitter_factor(jitter, 1, 2, 3), jitter_factor(jitter, 1, 2, 3));
  std::set<double> different;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (int rank = 0; rank < 10; ++rank) {
      for (int step = 0; step < 10; ++step) {
        different.insert(jitter_factor(jitter, seed, rank, step));
      }
    }
  }
  EXPECT_EQ(different.size(), 1000u);
}

// What is drawn agrees with what is expected.
TEST(JitterFactor, SlowestOfManyDraws) {
  for (const Jitter& jitter : kBoth) {
    double sum = 0;
    constexpr int kSteps = 5000;
    for (int step = 0; step < kSteps; ++step) {
      double slowest = 0;
      for (int rank = 0; rank < 16; ++rank) {
        slowest = std::max(slowest, jitter_factor(jitter, 3, rank, step));
      }
      sum += slowest;
    }
    EXPECT_NEAR(sum / kSteps, expected_slowest(jitter, 16, 1), 0.006);
  }
}

}  // namespace
}  // namespace syncline::run
