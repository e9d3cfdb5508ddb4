// The time to a target is a product, with the uncertain inputs of both factors.
#include "studies/worth/time_to_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/executor.h"

namespace syncline::worth {
namespace {

// Eight gradients over links of one Gbit/s.
input::Document document() {
  Json root = Json::parse(R"({"name": "w", "workload": {"name": "w", "forward_ms": 20},
      "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 1,
                  "inter": {"latency_us": 50, "bandwidth_gbps": 1}},
      "baseline": "dense",
      "strategies": [
        {"name": "dense", "fusion": {"rule": "one"}},
        {"name": "local 4", "fusion": {"rule": "one"}, "local_sgd": {"period": 4}},
        {"name": "ramp", "compression": {"codec": "dgc", "sparsity": [0.5, 0.999],
                                         "rampup_step": 1000}},
        {"name": "unknown", "fusion": {"rule": "layer"}}]})");
  for (int i = 0; i < 8; ++i) {
    root["workload"]["tensors"].push_back(
        {{"name", "l" + std::to_string(i)}, {"shape", {500000}}, {"backward_us", 3000}});
  }
  return input::document_of("worth.json", root);
}

// A training that is at the target after so many steps.
Curve reaching(const std::string& strategy, std::int64_t seed, double steps) {
  return {strategy, seed, {{0, 0}, {steps, 1}, {2 * steps, 2}}};
}

Objective objective(std::vector<Curve> curves) {
  return {Quantity::kAccuracy, 1, std::move(curves), {}};
}

Worth worth_in(const input::Document& document, Objective objective,
               const std::optional<tune::TuneOptions>& search = std::nullopt) {
  return worth_of(document, std::move(objective), "model", run::make_model_executor, search);
}

Worth worth_with(std::vector<Curve> curves,
                 const std::optional<tune::TuneOptions>& search = std::nullopt) {
  return worth_in(document(), objective(std::move(curves)), search);
}

const WorthRow& row_of(const Worth& worth, const std::string& name) {
  const auto row = std::ranges::find(worth.rows, name, &WorthRow::name);
  if (row == worth.rows.end()) throw std::out_of_range(name);
  return *row;
}

TEST(TimeToTarget, IsStepsTimesTheirTime) {
  const Worth worth = worth_with({reaching("dense", 1, 100), reaching("local 4", 1, 180)});
  ASSERT_EQ(worth.rows.size(), 2U);
  for (const WorthRow& row : worth.rows) {
    EXPECT_NEAR(row.time, row.step * row.reach.at, 1e-12 * row.time);
    EXPECT_LT(row.interval.low, row.time);
    EXPECT_GT(row.interval.high, row.time);
  }
  EXPECT_LE(worth.rows[0].time, worth.rows[1].time);
  EXPECT_EQ(worth.none, (std::vector<std::string>{"ramp", "unknown"}));
  const double ratio = row_of(worth, "dense").time / row_of(worth, "local 4").time;
  EXPECT_NEAR(row_of(worth, "local 4").gain, ratio, 1e-12 * ratio);
}

TEST(TimeToTarget, SpreadOfTheSeedsWidensTheTimeAndNotTheStep) {
  const Worth sure = worth_with({reaching("dense", 1, 100), reaching("dense", 2, 100)});
  const Worth doubtful = worth_with({reaching("dense", 1, 70), reaching("dense", 2, 100 / 0.7)});
  const auto width = [](const measure::Interval& interval) {
    return std::log(interval.high / interval.low);
  };
  const WorthRow& one = sure.rows.front();
  const WorthRow& other = doubtful.rows.front();
  EXPECT_NEAR(one.time, other.time, 0.01 * one.time);
  EXPECT_NEAR(width(one.interval), width(one.step_interval), 1e-9);
  // Two seeds, log-deviation of 0.5044: with Student's t, 0.5044 * sqrt(1.5) * 3.0777 to either
  // side.
  const double spread = 0.50442 * std::sqrt(1.5) * 3.0777;
  EXPECT_NEAR(std::log(other.interval.high / other.time),
              std::hypot(std::log(other.step_interval.high / other.step), spread), 1e-3);
  EXPECT_NEAR(std::log(other.time / other.interval.low),
              std::hypot(std::log(other.step / other.step_interval.low), spread), 1e-3);
}

// Rows of one scenario err alike; how many steps a training takes is its own.
TEST(TimeToTarget, SpreadOfTheSeedsKeepsAComparisonOpen) {
  const Worth doubtful = worth_with({reaching("dense", 1, 70), reaching("dense", 2, 100 / 0.7),
                                     reaching("local 4", 1, 180), reaching("local 4", 2, 180)});
  const double spread = 0.50442 * std::sqrt(1.5) * 3.0777;
  const WorthRow& local = row_of(doubtful, "local 4");
  EXPECT_GT(std::log(local.gain_interval.high / local.gain), spread - 1e-3);
  EXPECT_GT(std::log(local.gain / local.gain_interval.low), spread - 1e-3);
  EXPECT_LT(doubtful.rows.front().chance_over_next, 0.9);
}

TEST(TimeToTarget, ARampIsEvaluatedOverTheStepsToTheTarget) {
  const Seconds soon = worth_with({reaching("ramp", 1, 200)}).rows.front().step;
  const Seconds late = worth_with({reaching("ramp", 1, 20000)}).rows.front().step;
  EXPECT_GT(soon, 1.2 * late);  // half of the values travel for the first 500 steps
}

TEST(TimeToTarget, StrategiesThatNeverReachTheTargetAreListed) {
  const Worth worth = worth_with({reaching("dense", 1, 100),
                                  {"local 4", 1, {{0, 0}, {10, 0.5}, {20, 0.5}}},
                                  reaching("stranger", 1, 5)});
  ASSERT_EQ(worth.rows.size(), 1U);
  ASSERT_EQ(worth.never.size(), 1U);
  EXPECT_EQ(worth.never[0].strategy, "local 4");
  EXPECT_EQ(worth.left, (std::vector<std::string>{"stranger"}));
  EXPECT_THROW(worth_with({reaching("stranger", 1, 5)}), InputError);
}

TEST(TimeToTarget, AtTheBreakEvenBandwidthBothTakeAsLong) {
  const std::vector<Curve> curves{reaching("dense", 1, 100), reaching("local 4", 1, 130)};
  const Worth worth = worth_with(curves);
  const auto& even = row_of(worth, "local 4").even;
  ASSERT_TRUE(even && even->value);
  input::Document there = document();
  input::set_key(there, even->path, *even->value);
  EXPECT_NEAR(row_of(worth_in(there, objective(curves)), "local 4").gain, 1, 1e-4);
  // As fast a step but more steps: it pays below, not above.
  input::set_key(there, even->path, *even->value * 3);
  EXPECT_LT(row_of(worth_in(there, objective(curves)), "local 4").gain, 1);
}

// Steps that were measured on a link speak of its own bandwidth; of others the link speaks.
TEST(TimeToTarget, TheBreakEvenLooksBeyondALinkThatWasMeasured) {
  const std::vector<Curve> curves{reaching("dense", 1, 100), reaching("local 4", 1, 130)};
  const auto even_of = [&](const input::Document& asked) {
    return *row_of(worth_in(asked, objective(curves)), "local 4").even;
  };
  const auto plain = even_of(document());
  input::Document measured = document();
  measured.root["cluster"]["inter"]["measured_steps_us"] =
      Json::parse("[[1000, 60], [1000000, 8100], [4000000, 32100]]");
  const auto even = even_of(measured);
  ASSERT_TRUE(plain.value && even.value);
  EXPECT_GT(*plain.value, 2 * plain.now);
  EXPECT_NEAR(*even.value, *plain.value, 1e-3 * *plain.value);
}

TEST(TimeToTarget, MeasuredTimesAreNextToIt) {
  Objective both = objective({reaching("dense", 1, 100), reaching("local 4", 1, 130)});
  both.measured = {
      reaching("dense", 8, 12), reaching("dense", 9, 3), {"local 4", 8, {{0, 0}, {1, 0}, {2, 0}}}};
  const Worth worth = worth_in(document(), both);
  const WorthRow& dense = row_of(worth, "dense");
  ASSERT_TRUE(dense.measured && measured_ratio(dense));
  EXPECT_NEAR(dense.measured->at, 6, 1e-9);  // seconds, in the geometric mean
  EXPECT_NEAR(*measured_ratio(dense), dense.time / 6, 1e-9);
  EXPECT_FALSE(measured_ratio(row_of(worth, "local 4")));  // it never was there
}

TEST(TimeToTarget, ASearchMakesNoTrainingSlowerAndChangesNone) {
  const std::vector<Curve> curves{reaching("dense", 1, 100), reaching("local 4", 1, 130),
                                  reaching("unknown", 1, 100)};
  const Worth plain = worth_with(curves);
  const Worth searched = worth_with(curves, tune::TuneOptions{});
  double least = 1;
  for (const WorthRow& row : searched.rows) {
    const double ratio = row.time / row_of(plain, row.name).time;
    EXPECT_LE(ratio, 1.0011) << row.name;
    least = std::min(least, ratio);
    EXPECT_EQ(row.strategy.local_sgd.enabled, row.name == "local 4");
    EXPECT_TRUE(row.strategy.compression.codec.empty());
  }
  EXPECT_LT(least, 0.99);
}

}  // namespace
}  // namespace syncline::worth
