// Intervals: what may be off moves a row the way it should, and what two rows share cancels.
#include "core/measure/doubt.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/collective/price.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/measure/study.h"
#include "core/run/model_executor.h"

namespace syncline::measure {
namespace {

// Twelve gradients over a network of so many Gbit/s.
Scenario scenario_over(double gbps, const std::string& cluster_keys = "",
                       const std::string& workload_keys = "") {
  std::string tensors;
  for (int i = 0; i < 12; ++i) {
    tensors += std::string(i > 0 ? ", " : "") + R"({"name": "l)" + std::to_string(i) +
               R"(", "shape": [)" + std::to_string(40000 + 400000 * (i % 4)) +
               R"(], "backward_us": 700})";
  }
  return input::parse_scenario(input::document_from_text("doubt.json", R"({"name": "d",
      "workload": {"name": "w", "forward_ms": 4, "tensors": [)" + tensors + "]" +
                                                                           workload_keys +
                                                                           R"(},
      "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 1, "inter": {"latency_us": 20,
                  "bandwidth_gbps": )" + std::to_string(gbps) + "}" + cluster_keys +
                                                                           R"(},
      "strategies": [{"name": "alone"}, {"name": "one", "fusion": {"rule": "one"}},
                     {"name": "small", "fusion": {"rule": "size", "size_mb": 2}}]})"));
}

Seconds step_of(const Scenario& scenario, const Strategy& strategy) {
  const auto executor = run::make_model_executor({scenario.cluster, {}, 1});
  collective::PriceBook book(scenario.cluster);
  return price_strategy(scenario, strategy, *executor, book).metrics.step_time;
}

double width(const Interval& interval) { return std::log(interval.high / interval.low); }

std::size_t place(Doubt doubt) { return static_cast<std::size_t>(doubt); }

TEST(Doubt, AnIntervalHoldsItsPrediction) {
  for (const double gbps : {0.1, 1.0, 10.0, 100.0}) {
    const Scenario scenario = scenario_over(gbps);
    Doubts doubts(scenario);
    for (const auto& strategy : scenario.strategies) {
      const Seconds step = step_of(scenario, strategy);
      const Interval interval = interval_of(step, doubts.sway(strategy));
      EXPECT_LT(interval.low, step);
      EXPECT_GT(interval.high, step);
      EXPECT_GT(interval.low, 0.2 * step);
      EXPECT_LT(interval.high, 5 * step);
    }
  }
}

TEST(Doubt, EachInputMovesWhatRestsOnIt) {
  const Scenario slow = scenario_over(0.5);
  Doubts by_network(slow);
  const Sway network = by_network.sway(slow.strategies[1]);
  EXPECT_GT(network.slower[place(Doubt::kBandwidth)], 0.1);
  EXPECT_LT(network.faster[place(Doubt::kBandwidth)], -0.02);
  EXPECT_EQ(widest(network).first, Doubt::kBandwidth);

  const Scenario fast = scenario_over(1000);
  Doubts by_computation(fast);
  const Sway computation = by_computation.sway(fast.strategies[1]);
  EXPECT_LT(computation.slower[place(Doubt::kBandwidth)],
            0.2 * network.slower[place(Doubt::kBandwidth)]);
  EXPECT_GT(computation.slower[place(Doubt::kComputation)], 0.02);

  // Many small messages rest on latency, one large one does not.
  const Scenario between = scenario_over(10);
  Doubts doubts(between);
  EXPECT_GT(doubts.sway(between.strategies[0]).slower[place(Doubt::kLatency)],
            2 * doubts.sway(between.strategies[1]).slower[place(Doubt::kLatency)]);
}

// An end of an interval is the step with that input moved, with what computation and collectives
// then lose to each other.
TEST(Doubt, AnEndIsTheStepOfTheMovedInput) {
  const std::string device = R"(, "library": "links", "device": {"overlap_slowdown": 0.5,
      "overlap_collective_slowdown": 0.2, "overlap_delay_us": 1500})";
  for (const double gbps : {1.0, 4.0, 20.0}) {
    const Scenario scenario = scenario_over(gbps, device);
    Scenario alone = scenario;
    alone.cluster.nodes = 1;
    alone.cluster.tiers.clear();
    for (const bool slower : {false, true}) {
      const Strategy& first = alone.strategies.front();
      const double factor =
          Doubts(alone).step_with(first, Doubt::kComputation, slower) / step_of(alone, first);
      ASSERT_GT(std::abs(std::log(factor)), 0.01);
      Scenario moved = scenario;
      moved.workload = stretched(scenario.workload, factor);
      for (const auto& strategy : scenario.strategies) {
        EXPECT_NEAR(Doubts(scenario).step_with(strategy, Doubt::kComputation, slower),
                    step_of(moved, strategy), 1e-12)
            << strategy.name << " at " << gbps;
      }
    }
  }
}

TEST(Doubt, WhatTwoRowsShareCancelsInTheirRatio) {
  const Scenario scenario = scenario_over(1);
  Doubts doubts(scenario);
  const Sway one = doubts.sway(scenario.strategies[1]);
  const Sway other = doubts.sway(scenario.strategies[2]);
  const double apart = width(interval_of(1, one)) + width(interval_of(1, other));
  EXPECT_LT(width(ratio_interval(1, one, other)), 0.5 * apart);
  // The same row against itself differs by what is its own alone.
  Sway shared = one;
  shared.own = 0;
  EXPECT_DOUBLE_EQ(width(ratio_interval(1, shared, shared)), 0);
}

TEST(Doubt, ChancesOfBothOrdersAddUpToOne) {
  const Scenario scenario = scenario_over(2);
  Doubts doubts(scenario);
  for (const auto& first : scenario.strategies) {
    for (const auto& second : scenario.strategies) {
      const Seconds a = step_of(scenario, first);
      const Seconds b = step_of(scenario, second);
      const Sway x = doubts.sway(first);
      const Sway y = doubts.sway(second);
      EXPECT_NEAR(chance_shorter(a, x, b, y) + chance_shorter(b, y, a, x), 1, 1e-12);
      EXPECT_EQ(chance_shorter(a, x, b, y) > 0.5, a < b);
    }
  }
}

TEST(Doubt, MeasuredInputsAreSurerThanAssumedOnes) {
  const Scenario assumed = scenario_over(1);
  Scenario measured = assumed;
  measured.cluster.law = [&](const collective::Collective& asked) {
    collective::PriceBook book(assumed.cluster);
    return std::optional(CollectiveTime{.time = book.time(asked), .spread = 0.05});
  };
  Doubts wide(assumed);
  Doubts narrow(measured);
  EXPECT_LT(width(interval_of(1, narrow.sway(measured.strategies[1]))),
            0.5 * width(interval_of(1, wide.sway(assumed.strategies[1]))));
  // A calibration of the scenario itself pins down what it fitted.
  Doubts pinned(assumed, {.computation = 0.01, .network = 0.01, .framework = {}});
  EXPECT_LT(width(interval_of(1, pinned.sway(assumed.strategies[1]))),
            width(interval_of(1, narrow.sway(assumed.strategies[1]))));
}

TEST(Doubt, TimesFromARateAreLessSureThanTimesGiven) {
  const std::string device = R"(, "device": {"tflops": 10, "efficiency": 0.4})";
  const Scenario given = scenario_over(1000, device);
  Scenario rated = given;
  rated.workload.rated_times = true;
  Doubts sure(given);
  Doubts guessed(rated);
  EXPECT_GT(guessed.sway(rated.strategies[0]).slower[place(Doubt::kComputation)],
            4 * sure.sway(given.strategies[0]).slower[place(Doubt::kComputation)]);
}

// Operators on devices that published runs speak of are surer than on others; where the host's
// launches decide, the slower end is a host that takes 40 us a kernel, the faster one of 5.
TEST(Doubt, OperatorsAreAsSureAsWhatPublishedRunsSayOfThem) {
  const auto sway_of = [](const char* node, int batch, int gpus) {
    const Scenario scenario = input::parse_scenario(input::document_of(
        "o.json",
        {{"name", "o"},
         {"workload",
          {{"name", "gpt2"},
           {"batch", batch},
           {"operators",
            {{"architecture", "gpt2_medium"},
             {"sequence", batch == 1 ? 64 : 1024},
             {"dtype", "fp16"}}}}},
         {"cluster", {{"name", "c"}, {"node", node}, {"nodes", 1}, {"gpus_per_node", gpus}}},
         {"strategies", {{{"name", "one"}, {"overlap", false}}}}}));
    const Sway sway = Doubts(scenario).sway(scenario.strategies[0]);
    return std::pair(sway.slower[place(Doubt::kComputation)],
                     sway.faster[place(Doubt::kComputation)]);
  };
  const auto [slower, faster] = sway_of("dgx-a100", 32, 8);
  EXPECT_NEAR(slower, 0.179, 0.03);
  EXPECT_NEAR(faster, -0.179, 0.03);
  EXPECT_GT(sway_of("dgx-b200", 64, 8).first, 0.27);
  const auto [hosted, captured] = sway_of("dgx-a100", 1, 1);
  EXPECT_GT(hosted, 0.6);
  EXPECT_LT(captured, -0.2);
}

// What the model leaves out in a row of its own: 0.8 % of the step, and of what it waits for
// communication 3 %, as independent parts.
TEST(Doubt, ARowsOwnPartGrowsWithItsExposedCommunication) {
  const auto own = [](const Scenario& scenario) {
    return Doubts(scenario).sway(scenario.strategies[1]).own;
  };
  Scenario scenario = scenario_over(1);
  const Strategy& one = scenario.strategies[1];
  const Seconds computed = scenario.workload.forward + backward_time(scenario.workload);
  for (const double share : {0.25, 0.5, 0.9}) {
    // A longer backward pass ahead of the only bucket; what follows it is as long as before.
    const Seconds exposed = step_of(scenario, one) - computed;
    Scenario longer = scenario;
    longer.workload.forward += exposed / share - exposed - computed;
    EXPECT_NEAR(own(longer), std::hypot(0.008, 0.03 * share), 1e-9) << share;
  }
  scenario.cluster.nodes = 1;
  EXPECT_DOUBLE_EQ(own(scenario), 0.008) << "one rank waits for nothing";
}

// The rows of a study carry their intervals, whoever prices them.
TEST(Doubt, RowsCarryTheirIntervals) {
  const auto document = input::document_from_text("rows.json", R"({"name": "rows",
      "workload": {"name": "w", "forward_ms": 2, "tensors": [
        {"name": "a", "shape": [500000], "backward_us": 900},
        {"name": "b", "shape": [900000], "backward_us": 900}]},
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1,
                  "inter": {"latency_us": 20, "bandwidth_gbps": 5}},
      "strategies": [{"name": "alone"}, {"name": "one", "fusion": {"rule": "one"}}],
      "sweep": {"cluster.nodes": [2, 4, 8]}})");
  StudyOptions options;
  options.make_executor = run::make_model_executor;
  const Report here = run_study(document, options);
  options.parallel_map = run::over_processes(2);
  const Report elsewhere = run_study(document, options);
  ASSERT_EQ(here.rows.size(), 6u);
  for (std::size_t i = 0; i < here.rows.size(); ++i) {
    const Row& row = here.rows[i];
    EXPECT_LT(row.step.low, row.metrics.step_time);
    EXPECT_GT(row.step.high, row.metrics.step_time);
    EXPECT_LE(row.gain.low, row.speedup);
    EXPECT_GE(row.gain.high, row.speedup);
    EXPECT_EQ(row.sway, elsewhere.rows[i].sway);
    EXPECT_EQ(row.gain.high, elsewhere.rows[i].gain.high);
  }
}

// What a profiler saw the copies wait for the host may be no more than their kernels.
TEST(Doubt, ProfiledCopiesMayTakeNoMoreThanTheirKernels) {
  Scenario scenario = scenario_over(1000);
  for (auto& tensor : scenario.workload.tensors) tensor.copy_out = 0.0002;
  scenario.workload.copies_measured = true;
  Strategy strategy = scenario.strategies[1];
  strategy.bucket_copies = true;
  const Seconds step = step_of(scenario, strategy);
  const Interval sure = interval_of(step, Doubts(scenario).sway(strategy));
  scenario.workload.copy_kernels = 0.0001;
  const Interval unsure = interval_of(step, Doubts(scenario).sway(strategy));
  EXPECT_LT(unsure.low, step - 0.0020);
  EXPECT_GT(sure.low, step - 0.0012);
  EXPECT_DOUBLE_EQ(unsure.high, sure.high);
}

// A job whose recordings lie far apart is known no better than that.
TEST(Doubt, TimesAreAsSureAsTheirRecording) {
  Scenario scenario = scenario_over(1000);
  const Strategy& strategy = scenario.strategies[1];
  const auto computation = [&] {
    return Doubts(scenario).sway(strategy).slower[static_cast<std::size_t>(Doubt::kComputation)];
  };
  const double assumed = computation();
  scenario.workload.time_spread = 0.01;
  EXPECT_DOUBLE_EQ(computation(), assumed);  // a quiet recording is no surer than others
  scenario.workload.time_spread = 0.09;
  EXPECT_GT(computation(), 2 * assumed);
}

}  // namespace
}  // namespace syncline::measure
