// What the network between groups must carry, against closed forms and against table 4 of Douillard
// et al. 2025 (Streaming DiLoCo, arXiv 2501.18512): two groups, bf16, a period of 100 steps, three
// layers a fragment, one step of delay, no latency.
#include "studies/layouts/utilisation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/run/stragglers.h"
#include "formats/input/document.h"
#include "formats/input/scenario_json.h"
#include "tests/support/text.h"

namespace syncline::tune {
namespace {

struct Model {
  double billions;
  int layers;
  Seconds step;
};
const Model kOne{1, 24, 0.1}, kTen{10, 48, 0.8}, kHundred{100, 108, 4.9};

constexpr double kPeriod = 100;

// All layers alike, the backward pass twice the forward.
Json scenario_of(const Model& model, double latency_us = 0) {
  Json tensors = Json::array();
  for (int layer = 0; layer < model.layers; ++layer) {
    tensors.push_back({{"name", "layer" + std::to_string(layer) + ".weight"},
                       {"shape", {std::llround(model.billions * 1e9 / model.layers)}},
                       {"dtype", "bf16"},
                       {"backward_us", 1e6 * model.step * 2 / 3 / model.layers}});
  }
  const auto local = [](int fragments, int delay) {
    return Json{{"period", kPeriod},
                {"fragments", fragments},
                {"delay", delay},
                {"outer", {{"optimizer", "nesterov"}}}};
  };
  const Json one{{"rule", "one"}};
  return {{"name", "table 4"},
          {"workload",
           {{"name", "layers"}, {"forward_ms", 1e3 * model.step / 3}, {"tensors", tensors}}},
          {"cluster",
           {{"name", "two places"},
            {"nodes", 2},
            {"gpus_per_node", 1},
            {"inter", {{"latency_us", latency_us}, {"bandwidth_gbps", 1}}}}},
          {"strategies",
           {{{"name", "plain"}},
            {{"name", "vanilla"}, {"local_sgd", local(1, 0)}, {"fusion", one}},
            {{"name", "overlapped"}, {"local_sgd", local(model.layers / 3, 1)}, {"fusion", one}}}}};
}

Utilisation found(const Json& scenario, double target) {
  return utilisation_of(input::document_from_text("x.json", scenario.dump()), target);
}

const Utilised& row_of(const Utilisation& found, const std::string& name) {
  return *std::ranges::find(found.rows, name,
                            [](const Utilised& row) { return row.strategy.name; });
}

double needed_gbps(const Utilisation& found, const std::string& name) {
  return *row_of(found, name).needed / kGigabitPerSecond;
}

// Of two groups each sends the other half of what is left and gets a half back: all of its bits.
double gigabits(const Model& model) { return 16 * model.billions; }

// The exposed time of an exchange that leaves so much for it, and the rate that it asks for.
double vanilla(const Model& model, double target, Seconds hidden = 0) {
  return gigabits(model) / (kPeriod * model.step * (1 / target - 1) + hidden);
}
double overlapped(const Model& model, double target, Seconds hidden = 0) {
  const double fragments = model.layers / 3;
  const Seconds each = kPeriod * model.step / fragments * (1 / target - 1);
  return gigabits(model) / fragments / (each + model.step + hidden);
}

TEST(Utilisation, DiLoCoNeedsWhatItsClosedFormSays) {
  for (const Model& model : {kOne, kTen, kHundred}) {
    for (const double target : {0.5, 0.8, 0.9, 0.95, 0.99}) {
      const Utilisation answer = found(scenario_of(model), target);
      EXPECT_NEAR(needed_gbps(answer, "vanilla") / vanilla(model, target), 1, 2e-3);
      EXPECT_NEAR(needed_gbps(answer, "overlapped") / overlapped(model, target), 1, 2e-3);
    }
  }
}

// Their simulation sends a layer's outer gradient once its last backward pass is through: a
// backward pass more to hide behind, ahead of the update that makes the parameters. With that our
// closed form gives their figures to a step of their grid of bandwidths, which is 1.207; plain
// training as it is.
TEST(Utilisation, PublishedTableOfStreamingDiLoCo) {
  constexpr double kGrid = 1.207;
  const std::vector<double> targets{0.5, 0.8, 0.9, 0.95, 0.99};
  struct Row {
    Model model;
    std::vector<double> plain, vanilla, overlapped;
  };
  const std::vector<Row> table{{kOne,
                                {86.8, 152.6, 184.2, 222.3, 569.0},
                                {1.4, 6.2, 13.3, 23.3, 86.8},
                                {1.4, 4.3, 6.2, 9.1, 11.0}},
                               {kTen,
                                {104.8, 222.3, 222.3, 268.3, 471.5},
                                {1.7, 7.5, 16.0, 33.9, 104.8},
                                {1.7, 3.6, 5.2, 6.2, 7.5}},
                               {kHundred,
                                {184.2, 323.8, 390.7, 390.7, 471.5},
                                {3.0, 11.0, 23.3, 49.4, 184.2},
                                {1.7, 3.6, 4.3, 5.2, 5.2}}};
  for (const Row& row : table) {
    for (std::size_t t = 0; t < targets.size(); ++t) {
      const Utilisation answer = found(scenario_of(row.model), targets[t]);
      const Seconds backward = row.model.step * 2 / 3;
      const auto near = [&](double ours, double theirs) {
        EXPECT_LT(std::fabs(std::log(ours / theirs)), 1.05 * std::log(kGrid))
            << row.model.billions << " " << targets[t] << ": " << ours << ", " << theirs;
      };
      near(needed_gbps(answer, "plain: plain"), row.plain[t]);
      near(vanilla(row.model, targets[t], backward), row.vanilla[t]);
      near(overlapped(row.model, targets[t], backward), row.overlapped[t]);
    }
  }
}

TEST(Utilisation, AtTheNeededBandwidthTheTargetIsMet) {
  Json scenario = scenario_of(kTen, 50'000);
  for (const double target : {0.6, 0.95}) {
    const Utilisation answer = found(scenario, target);
    for (const Utilised& row : answer.rows) {
      // A step of plain training waits for a message in any case.
      const bool plain = !row.strategy.local_sgd.enabled;
      ASSERT_TRUE(row.needed || plain) << row.strategy.name;
      if (!row.needed) continue;
      scenario["cluster"]["inter"]["bandwidth_gbps"] = *row.needed / kGigabitPerSecond;
      const Utilisation there = found(scenario, target);
      const auto place = static_cast<std::size_t>(&row - answer.rows.data());
      EXPECT_NEAR(there.rows[place].given, target, 1e-3) << row.strategy.name;
      EXPECT_TRUE(
          std::ranges::is_sorted(row.curve, [](double a, double b) { return a < b - 1e-9; }));
      EXPECT_LE(row.curve.back(), 1 + 1e-9);
    }
  }
}

// Steps of messages that were measured say nothing of other links.
TEST(Utilisation, MeasuredTimesAreLeftOut) {
  Json scenario = scenario_of(kOne);
  const double needed = needed_gbps(found(scenario, 0.9), "vanilla");
  scenario["cluster"]["inter"]["measured_steps_us"] = {{1000, 100}, {1001000, 8100}};
  const Utilisation answer = found(scenario, 0.9);
  EXPECT_NEAR(needed_gbps(answer, "vanilla"), needed, 1e-3 * needed);
  EXPECT_TRUE(test::any_contains(answer.warnings, "measured times of collectives are"));
}

// A group's ranks wait in its steps; across groups there is little left to wait for.
TEST(Utilisation, WaitsInsideAGroupAreItsOwnStep) {
  Json scenario = scenario_of(kTen);
  scenario["cluster"]["gpus_per_node"] = 32;
  scenario["cluster"]["intra"] = {{"latency_us", 1}, {"bandwidth_gbps", 1e5}};
  scenario["cluster"]["jitter"] = {{"distribution", "exponential"}, {"relative", 0.1}};
  const Utilised diloco = row_of(found(scenario, 0.9), "DiLoCo");
  const double slowest = run::expected_slowest({Jitter::Kind::kExponential, 0.1}, 32, 1);
  EXPECT_NEAR(diloco.alone / kTen.step, slowest, 0.002);
  EXPECT_GT(diloco.curve.back(), 0.98);
  EXPECT_LT(diloco.curve.back(), 1);
}

// A fabric's links grow with its ports: it needs more of them where it is narrow, and is not stuck.
TEST(Utilisation, AFabricGrowsWithItsPorts) {
  Json scenario = scenario_of(kOne);
  scenario["cluster"]["nodes"] = 8;
  const double ports = needed_gbps(found(scenario, 0.9), "vanilla");
  for (const double narrow : {1.0, 10.0}) {
    scenario["cluster"]["fabric"] = {
        {"kind", "leaf_spine"}, {"nodes_per_leaf", 4}, {"oversubscription", narrow}};
    const Utilised row = row_of(found(scenario, 0.9), "vanilla");
    ASSERT_TRUE(row.needed) << narrow;
    EXPECT_GE(*row.needed / kGigabitPerSecond, 0.999 * ports);
    EXPECT_LE(*row.needed / kGigabitPerSecond, 1.001 * narrow * ports);
    EXPECT_GT(row.curve.back(), 0.99) << narrow;
  }
}

// What is named is pasted into the scenario as it stands, and is the same there.
TEST(Utilisation, ItsStrategiesArePastedBack) {
  Json scenario = scenario_of(kTen);
  scenario["cluster"]["gpus_per_node"] = 4;
  scenario["cluster"]["intra"] = {{"latency_us", 1}, {"bandwidth_gbps", 1000}};
  scenario["strategies"] = {
      {{"name", "plain"}, {"dialect", "pytorch"}, {"config", Json::object()}}};
  const Utilisation answer = found(scenario, 0.9);
  ASSERT_GT(answer.rows.size(), 10u);
  for (std::size_t row = 1; row < answer.rows.size(); ++row) {
    Strategy strategy = answer.rows[row].strategy;
    strategy.name = "pasted";
    scenario["strategies"][1] = input::strategy_json(strategy);
    const Utilised back = row_of(found(scenario, 0.9), "pasted");
    EXPECT_EQ(back.strategy.local_sgd, strategy.local_sgd) << scenario["strategies"][1];
    EXPECT_NEAR(back.given, answer.rows[row].given, 1e-6) << scenario["strategies"][1];
    EXPECT_NEAR(*back.needed / *answer.rows[row].needed, 1, 1e-3);
  }
}

// One of two groups is half as fast. On a wide link plain training goes at its pace, two thirds of
// the mean's; with steps by speed both are busy all the time.
TEST(Utilisation, CoversGroupsThatDifferInSpeed) {
  Json scenario = scenario_of(kOne);
  scenario["cluster"]["speeds"] = {1, 0.5};
  Json by_speed = scenario["strategies"][1];
  by_speed["name"] = "by speed";
  by_speed["local_sgd"]["period"] = 90;
  by_speed["local_sgd"]["periods"] = {120, 60};
  scenario["strategies"].push_back(by_speed);
  const Utilisation answer = found(scenario, 0.6);
  EXPECT_NEAR(row_of(answer, "plain: plain").curve.back(), 0.5 / 0.75, 0.01);
  EXPECT_NEAR(row_of(answer, "vanilla").curve.back(), 0.5 / 0.75, 0.01);
  EXPECT_NEAR(row_of(answer, "by speed").curve.back(), 120 * 0.75 / 90, 0.01);
}

// A message of a second cannot be hidden in a step of a tenth, whatever the bandwidth.
TEST(Utilisation, NoBandwidthMakesUpForLatency) {
  const Json scenario = scenario_of(kOne, 1e6);
  EXPECT_FALSE(row_of(found(scenario, 0.8), "plain: plain").needed);
  // Two of them behind a hundred steps, which take ten seconds.
  EXPECT_TRUE(row_of(found(scenario, 0.8), "vanilla").needed);
  EXPECT_FALSE(row_of(found(scenario, 0.85), "vanilla").needed);
}

}  // namespace
}  // namespace syncline::tune
