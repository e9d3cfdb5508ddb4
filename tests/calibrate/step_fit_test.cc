// What a device loses, fitted to measured steps: known values come back, and what rows cannot tell
// is said.
#include "studies/calibrate/step_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "core/cluster.h"
#include "tests/support/dice.h"
#include "tests/support/full_scenario.h"
#include "tests/support/studies.h"

namespace syncline::calibrate {
namespace {

input::Document document_of(const Json& root) {
  return input::document_from_text("job.json", root.dump());
}

// A job whose exchange and backward pass take about as long as each other, with buckets of so many
// caps.
Json job(test::Dice& dice, const std::string& library, int caps) {
  Json tensors = Json::array();
  double bytes = 0;
  double pass = 0;
  const int count = dice.between(8, 30);
  for (int t = 0; t < count; ++t) {
    const int elements = dice.pick<int>({1000, 65536, 262144, 1048576, 2359296});
    const int backward = dice.between(300, 6000);
    tensors.push_back(
        {{"name", "t" + std::to_string(t)}, {"shape", {elements}}, {"backward_us", backward}});
    bytes += 4.0 * elements;
    pass += backward * kMicrosecond;
  }
  const double share = 0.3 + 0.1 * dice.between(0, 12);
  Json strategies = Json::array();
  const double all = bytes / static_cast<double>(kMiB);
  for (int c = 0; c < caps; ++c) {
    const double cap = all * std::pow(0.5, c) * 1.1;
    strategies.push_back(
        {{"name", "cap" + std::to_string(c)}, {"fusion", {{"rule", "size"}, {"size_mb", cap}}}});
  }
  return {
      {"name", "job"},
      {"workload",
       {{"name", "w"},
        {"forward_ms", 1000 * pass * 0.01 * dice.between(20, 100)},
        {"tensors", tensors}}},
      {"cluster",
       {{"name", "c"},
        {"nodes", dice.pick<int>({2, 4, 8})},
        {"gpus_per_node", 1},
        {"library", library},
        {"inter", {{"latency_us", 30}, {"bandwidth_gbps", 1.5 * 8e-9 * bytes / (share * pass)}}}}},
      {"strategies", strategies}};
}

// What a device loses, in the keys of cluster.device.
Json truth_of(test::Dice& dice, const std::string& library) {
  const double slowdown = 0.01 * dice.between(10, 100);
  const double delay = library == "gloo" ? 100 * dice.between(0, 80) : 0;
  return {{"overlap_slowdown", slowdown},
          {"overlap_collective_slowdown", library == "nccl" ? slowdown : 0},
          {"overlap_delay_us", delay},
          {"data_parallel_overhead_us", 100 * dice.between(0, 50)}};
}

std::vector<Seconds> steps_of(Json root, const Json& truth) {
  root["cluster"]["device"] = truth;
  const Scenario scenario = test::parsed(root);
  std::vector<Seconds> steps;
  for (const auto& strategy : scenario.strategies) {
    steps.push_back(test::step_time(scenario, strategy));
  }
  return steps;
}

// Rows measured with so much noise at most; the first ones are to be fitted.
Json measured(Json root, const std::vector<Seconds>& steps, double noise, test::Dice& dice,
              int fitted) {
  std::vector<int> order;
  for (std::size_t i = 0; i < steps.size(); ++i) order.push_back(static_cast<int>(i));
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(dice.between(0, static_cast<int>(i) - 1))]);
  }
  root["published"] = Json::array();
  for (const int i : order) {
    const double factor = 1 + noise * 0.01 * dice.between(-100, 100);
    Json row = {{"strategy", "cap" + std::to_string(i)},
                {"step_time_s", steps[static_cast<std::size_t>(i)] * factor}};
    if (fitted-- > 0) row["use"] = "calibrated";
    root["published"].push_back(row);
  }
  return root;
}

Seconds true_step(const StepRow& row, const std::vector<Seconds>& steps) {
  return steps[std::stoul(row.key.strategy.substr(3))];
}

// The worst of the rows that were left out, as they are without noise.
double worst(const StepFit& fit, const std::vector<Seconds>& steps, Seconds StepRow::*predicted) {
  double worst = 0;
  for (const auto& row : fit.rows) {
    if (row.fitted) continue;
    worst = std::max(worst, std::fabs(row.*predicted / true_step(row, steps) - 1));
  }
  return worst;
}

TEST(StepFit, KnownLossesPredictTheCapsThatWereLeftOut) {
  test::Dice dice(7);
  for (int round = 0; round < 40; ++round) {
    const std::string library = dice.pick<std::string>({"nccl", "gloo"});
    const int caps = dice.between(4, 7);
    const Json root = job(dice, library, caps);
    const Json truth = truth_of(dice, library);
    const double noise = 0.01 * dice.between(0, 3);
    const auto steps = steps_of(root, truth);
    const StepFit fit = fit_steps(document_of(measured(root, steps, noise, dice, caps - 1)));
    EXPECT_LE(worst(fit, steps, &StepRow::after), noise + 0.025)
        << round << library << truth << noise << caps << fit.figures.front().value;
  }
}

// Where what was believed is right by chance, two rows may tell apart what they cannot: half a per
// cent is let through.
TEST(StepFit, TwoRowsDoNoHarm) {
  test::Dice dice(11);
  double before = 0;
  double after = 0;
  for (int round = 0; round < 40; ++round) {
    const std::string library = dice.pick<std::string>({"nccl", "gloo"});
    const Json root = job(dice, library, dice.between(3, 7));
    const Json truth = truth_of(dice, library);
    const double noise = 0.01 * dice.between(0, 3);
    const auto steps = steps_of(root, truth);
    const StepFit fit = fit_steps(document_of(measured(root, steps, noise, dice, 2)));
    EXPECT_LE(worst(fit, steps, &StepRow::after),
              worst(fit, steps, &StepRow::before) + noise + 0.005)
        << round << library << truth << noise;
    before += worst(fit, steps, &StepRow::before);
    after += worst(fit, steps, &StepRow::after);
  }
  // On the whole they are worth their measuring.
  EXPECT_LT(after, 0.4 * before);
}

// What is written is read as it was fitted, and a second fit of it begins there.
TEST(StepFit, WritesAScenarioThatPredictsWhatItSays) {
  test::Dice dice(3);
  const Json root = job(dice, "gloo", 4);
  const auto steps = steps_of(root, truth_of(dice, "gloo"));
  const StepFit fit = fit_steps(document_of(measured(root, steps, 0.01, dice, 3)));
  const Scenario written = input::parse_scenario(document_of(fit.fitted.root));
  EXPECT_TRUE(written.cluster.device.overlap.given);
  EXPECT_LT(written.cluster.device.overlap.spread, 1);
  EXPECT_EQ(std::count_if(written.published.begin(), written.published.end(),
                          [](const Published& row) { return row.calibrated; }),
            3);
  EXPECT_EQ(fit.fitted.root.at("notes").size(), 1u);
  for (const auto& row : fit.rows) {
    const Strategy& strategy = *find_strategy(written, row.key.strategy);
    EXPECT_NEAR(test::step_time(written, strategy) / row.after, 1, 1e-5);
  }
}

StepFit fit_of_rows_without_overlap() {
  test::Dice dice(5);
  Json root = job(dice, "nccl", 3);
  for (auto& strategy : root["strategies"]) strategy["overlap"] = false;
  const auto steps = steps_of(root, {{"overlap_slowdown", 0}, {"data_parallel_overhead_us", 3000}});
  return fit_steps(document_of(measured(root, steps, 0, dice, 2)));
}

TEST(StepFit, RowsWithoutOverlapSayNothingOfIt) {
  const StepFit fit = fit_of_rows_without_overlap();
  ASSERT_EQ(fit.figures.size(), 2u);
  EXPECT_FALSE(fit.figures.front().told);
  EXPECT_NEAR(fit.figures.front().value, fit.figures.front().before, 1e-3);
  EXPECT_TRUE(fit.figures.back().told);
  EXPECT_GT(fit.figures.back().value, 2000);
  EXPECT_LT(fit.figures.back().low, 3000);
  EXPECT_GT(fit.figures.back().high, 3000);
  ASSERT_FALSE(fit.notes.empty());
  EXPECT_NE(fit.notes.front().find("say nothing of overlap_slowdown"), std::string::npos);
  // What no row tells is not written: it is still what is assumed, with its interval.
  EXPECT_FALSE(fit.fitted.root["cluster"]["device"].contains("overlap_slowdown"));
}

// The prior is skewed, and so is what it leaves: a sixth of what is assumed, or twice.
TEST(StepFit, ParametersWithoutRowsKeepTheirPriors) {
  const StepFit fit = fit_of_rows_without_overlap();
  const OverlapPrior prior = overlap_prior(Library::kNccl, true);
  const StepFigure& slowdown = fit.figures.front();
  EXPECT_NEAR(slowdown.low / slowdown.before, prior.least, 0.02);
  EXPECT_NEAR(slowdown.high / slowdown.before, prior.most, 0.02);
}

TEST(StepFit, ChoosesRows) {
  test::Dice dice(9);
  Json root = job(dice, "nccl", 3);
  Json& rows = root["published"] = Json::array();
  for (const char* name : {"cap2", "cap0", "cap1"}) {
    rows.push_back({{"strategy", name}, {"throughput", 10}});
  }
  const auto fitted = [&](const std::vector<std::string>& words) {
    std::string names;
    for (const auto& row : fit_steps(document_of(root), words).rows) {
      if (row.fitted) names += row.key.strategy + " ";
    }
    return names;
  };
  EXPECT_EQ(fitted({}), "cap2 cap0 ");
  EXPECT_EQ(fitted({"1"}), "cap2 ");
  EXPECT_EQ(fitted({"cap1", "cap2"}), "cap2 cap1 ");
  root["published"][2]["use"] = "calibrated";
  EXPECT_EQ(fitted({}), "cap1 ");
  EXPECT_THROW(fitted({"4"}), InputError);
  EXPECT_THROW(fitted({"cap7"}), InputError);
  root["sweep"] = {{"cluster.device.overlap_slowdown", {0, 0.1}}};
  EXPECT_THROW(fitted({}), InputError);
  root.erase("sweep");
  root.erase("published");
  EXPECT_THROW(fitted({}), InputError);
}

TEST(StepFit, RowsMayBeAtSweepPoints) {
  test::Dice dice(13);
  Json root = job(dice, "nccl", 2);
  root["sweep"] = {{"cluster.nodes", {2, 4}}};
  root["published"] = Json::array();
  for (const int nodes : {2, 4}) {
    Json at = root;
    at.erase("sweep");
    at["published"] = Json::array();
    at["cluster"]["nodes"] = nodes;
    const auto steps =
        steps_of(at, {{"overlap_slowdown", 0.4}, {"overlap_collective_slowdown", 0.4}});
    for (int cap = 0; cap < 2; ++cap) {
      root["published"].push_back({{"strategy", "cap" + std::to_string(cap)},
                                   {"sweep", {{"cluster.nodes", nodes}}},
                                   {"step_time_s", steps[static_cast<std::size_t>(cap)]}});
    }
  }
  const StepFit fit = fit_steps(document_of(root), {"3"});
  ASSERT_EQ(fit.rows.size(), 4u);
  EXPECT_NEAR(fit.rows.back().after / fit.rows.back().measured, 1, 0.02);
}

}  // namespace
}  // namespace syncline::calibrate
