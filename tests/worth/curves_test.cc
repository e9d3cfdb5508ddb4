// Training curves: what a file may hold, and the step at which a target is reached.
#include "studies/worth/curves.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"
#include "tests/support/expect.h"

namespace syncline::worth {
namespace {

Curve curve(std::vector<Look> looks) { return {"s", 0, std::move(looks)}; }

TEST(Curves, AreReadByTheNamesOfTheirColumns) {
  const auto curves = curves_of(
      "seed,loss,strategy,hours,step\r\n1,0.5,\"dgc, \"\"whole\"\"\",3,20\r\n"
      "1,0.9,\"dgc, \"\"whole\"\"\",3,10\r\n\r\n2,0.8,dense,3,0\r\n2,,dense,3,5\r\n",
      "c.csv", Quantity::kLoss);
  ASSERT_EQ(curves.size(), 2U);
  EXPECT_EQ(curves[0].strategy, "dgc, \"whole\"");
  EXPECT_EQ(curves[0].seed, 1);
  ASSERT_EQ(curves[0].looks.size(), 2U);
  EXPECT_EQ(curves[0].looks[0].at, 10);  // in order of the steps
  EXPECT_EQ(curves[0].looks[1].value, 0.5);
  ASSERT_EQ(curves[1].looks.size(), 1U);  // an empty value is no look
}

TEST(Curves, OtherFilesAreRefusedWithTheirPlace) {
  for (const auto& [text, message] : std::vector<std::pair<const char*, const char*>>{
           {"strategy,step\na,1\n",
            ", line 1: found no column 'loss', expected strategy, step, loss and, of several "
            "trainings, seed"},
           {"strategy,step,loss\na,1\n",
            ", line 2: found 2 cells, expected 3 as in the first line"},
           {"strategy,step,loss\na,1,0.5x\n",
            ", line 2: column loss: found '0.5x', expected a number"},
           {"strategy,step,loss\na,-1,0.5\n", ", line 2: found step -1, expected 0 to 1e12"},
           {"strategy,step,loss\na,nan,0.5\n", ", line 2: found step nan, expected 0 to 1e12"},
           {"strategy,step,loss,loss\n", ", line 1: column 'loss' twice"},
           {"strategy,step,loss\n,1,1\n", ", line 2: found no strategy's name"},
           {"", ", line 0: found no line, expected the columns' names first"},
           {"strategy,step,loss\n", ", line 1: found no row with a value in column 'loss'"},
           {"strategy,step,loss\na,7,1\na,7,2\n",
            ": strategy 'a', seed 0 has step 7 twice: several trainings need a column seed"}}) {
    EXPECT_EQ(test::input_error([&text = text] { curves_of(text, "c.csv", Quantity::kLoss); }),
              std::string("c.csv") + message);
  }
}

TEST(Curves, MayRunOverSeconds) {
  const std::string text = "strategy,step,seconds,loss\na,0,0,1\na,5,0.25,0.5\n";
  const auto curves = curves_of(text, "c.csv", Quantity::kLoss, Over::kSeconds);
  EXPECT_EQ(curves.at(0).looks.at(1).at, 0.25);
}

TEST(Curves, ATargetIsReachedWhenTheSmoothedCurveFirstCrossesIt) {
  // Smoothed: 0.9, 0.8, 0.6, 0.4, 0.3.
  const Curve falling = curve({{0, 1.0}, {10, 0.8}, {20, 0.6}, {30, 0.4}, {40, 0.2}});
  EXPECT_NEAR(*reach_target(falling, Quantity::kLoss, 0.7), 15, 1e-9);
  EXPECT_NEAR(*reach_target(falling, Quantity::kLoss, 0.4), 30, 1e-9);
  EXPECT_FALSE(reach_target(falling, Quantity::kLoss, 0.25));
  EXPECT_EQ(*reach_target(falling, Quantity::kLoss, 2), 0);
  EXPECT_EQ(*reach_target(falling, Quantity::kAccuracy, 0.8), 0);
  // A single look above the target is not there yet.
  const Curve lucky = curve({{0, 0.1}, {1, 0.1}, {2, 0.9}, {3, 0.1}, {4, 0.1}});
  EXPECT_FALSE(reach_target(lucky, Quantity::kAccuracy, 0.5));
}

// What comes later does not run ahead: a training has reached nothing before its first step.
TEST(Curves, NoTargetIsReachedBeforeTheFirstStep) {
  EXPECT_NEAR(*reach_target(curve({{0, 0.1}, {10, 0.9}}), Quantity::kAccuracy, 0.5), 10, 1e-9);
  EXPECT_NEAR(*reach_target(curve({{0, 0.1}, {10, 0.9}, {20, 0.9}}), Quantity::kAccuracy, 0.5), 7.5,
              0.5);
  EXPECT_EQ(*reach_target(curve({{0, 0.6}, {10, 0.9}}), Quantity::kAccuracy, 0.5), 0);
}

TEST(Curves, NanReachesNoTarget) {
  const double nan = std::nan("");
  EXPECT_FALSE(reach_target(curve({{0, 1}, {1, nan}, {2, nan}}), Quantity::kLoss, 0.5));
  EXPECT_EQ(*reach_target(curve({{0, nan}, {1, nan}, {2, 0.1}, {3, 0.1}, {4, 0.1}}),
                          Quantity::kLoss, 0.5),
            3);
}

// On straight lines the rule gives the crossing itself, wherever the looks are.
TEST(Curves, OnAStraightLineTheCrossingIsExact) {
  Random random(7, 1);
  for (int round = 0; round < 200; ++round) {
    const double slope = 0.001 + 0.01 * random.uniform();
    const double every = 1 + std::floor(20 * random.uniform());
    Curve line = curve({});
    for (int i = 0; i <= 20; ++i) line.looks.push_back({every * i, slope * every * i});
    const double at = every * (0.1 + 18 * random.uniform());
    const auto rising = reach_target(line, Quantity::kAccuracy, slope * at);
    ASSERT_TRUE(rising);
    EXPECT_NEAR(*rising, at, 1e-9 * at);
    for (Look& look : line.looks) look.value = 1 - look.value;
    EXPECT_NEAR(*reach_target(line, Quantity::kLoss, 1 - slope * at), at, 1e-6 * at);
  }
}

TEST(Curves, SeedsGiveAMeanAndASpreadThatCoversTheNext) {
  Random random(3, 1);
  int held = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    const auto steps = [&] { return std::exp(5 + 0.2 * random.normal()); };
    std::vector<Curve> curves;
    for (int seed = 0; seed < 5; ++seed) {
      const double at = steps();  // straight through the target there
      curves.push_back({"s", seed, {{0, 0}, {at, 1}, {2 * at, 2}}});
    }
    const auto reaches = reaches_of(curves, Quantity::kAccuracy, 1);
    ASSERT_EQ(reaches.size(), 1U);
    ASSERT_TRUE(reaches[0].always() && reaches[0].spread);
    const double next = std::log(steps() / reaches[0].at);
    held += std::fabs(next) <= 1.2815515655446004 * *reaches[0].spread ? 1 : 0;
  }
  EXPECT_NEAR(held / static_cast<double>(kRounds), 0.8, 0.025);
}

TEST(Curves, AStrategyThatSometimesFailsIsNotAlwaysThere) {
  const auto reaches = reaches_of({{"a", 1, {{0, 0}, {10, 1}, {20, 1}, {30, 1}}},
                                   {"a", 2, {{0, 0}, {10, 0}, {20, 0}, {30, 0}}},
                                   {"b", 1, {{0, 0}, {10, 1}, {20, 1}, {30, 1}}}},
                                  Quantity::kAccuracy, 0.9);
  ASSERT_EQ(reaches.size(), 2U);
  EXPECT_EQ(reaches[0].seeds, 2U);
  EXPECT_EQ(reaches[0].reached, 1U);
  EXPECT_FALSE(reaches[0].always());
  EXPECT_TRUE(reaches[1].always());
  EXPECT_EQ(reaches[0].end, 0.5);  // of 1 and 0: a deviation of 0.7071, by t of one degree
  EXPECT_NEAR(*reaches[0].end_half_width, 0.70711 / std::sqrt(2.0) * 12.706, 1e-3);
  EXPECT_FALSE(reaches[1].end_half_width);
  EXPECT_FALSE(reaches[1].spread);  // of a single training
}

TEST(Curves, AFilesQuantityIsAccuracyIfItHasThat) {
  EXPECT_EQ(find_quantity("strategy,step,loss,accuracy\nx,1,2,0.5\n"), Quantity::kAccuracy);
  EXPECT_EQ(find_quantity("strategy,step,\"accuracy\"\r\n"), Quantity::kAccuracy);
  EXPECT_EQ(find_quantity("strategy,step,loss\naccuracy,1,2\n"), Quantity::kLoss);
  EXPECT_EQ(find_quantity(""), Quantity::kLoss);
}

}  // namespace
}  // namespace syncline::worth
