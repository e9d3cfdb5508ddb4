// Intervals: what may be off moves a row the way it should, and what two rows share cancels.
#include "studies/rows/uncertainty.h"

#include <gtest/gtest.h>

#include <cmath>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/internal_error.h"
#include "core/base/statistics.h"
#include "core/cost.h"
#include "core/metrics.h"
#include "studies/rows/draws.h"
#include "tests/support/fabrics.h"
#include "tests/support/full_scenario.h"
#include "tests/support/studies.h"

namespace syncline::measure {
namespace {

// Twelve gradients over a network of so many Gbit/s.
Scenario scenario_over(double gbps, const std::string& cluster_keys = "") {
  Json root = Json::parse(R"({"name": "d", "workload": {"name": "w", "forward_ms": 4},
      "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 1)" +
                          cluster_keys + R"(},
      "strategies": [{"name": "alone"}, {"name": "one", "fusion": {"rule": "one"}},
                     {"name": "small", "fusion": {"rule": "size", "size_mb": 2}}]})");
  root["cluster"]["inter"] = {{"latency_us", 20}, {"bandwidth_gbps", gbps}};
  for (int i = 0; i < 12; ++i) {
    root["workload"]["tensors"].push_back({{"name", "l" + std::to_string(i)},
                                           {"shape", {40000 + 400000 * (i % 4)}},
                                           {"backward_us", 700}});
  }
  return test::parsed(root);
}

double width(const Interval& interval) { return std::log(interval.high / interval.low); }

std::size_t place(Uncertainty uncertainty) { return static_cast<std::size_t>(uncertainty); }

double slower(const Scenario& scenario, const Strategy& strategy, Uncertainty uncertainty) {
  return Uncertainties(scenario).sensitivity(strategy).slower[place(uncertainty)];
}

// An executor that says of every period that it ends then.
class EndsAt : public run::Executor {
 public:
  explicit EndsAt(Seconds end) : end_(end) {}
  std::string_view name() const override { return "ends"; }
  run::Outcome run(const plan::Plan&, const run::Gradients&, int periods) override {
    run::Outcome outcome;
    for (int p = 1; p <= periods; ++p) outcome.timeline.period_ends.push_back(end_ * p);
    return outcome;
  }

 private:
  Seconds end_;
};

// An update on the host takes 3.7 times as long or as short at the ends of 80 % without a figure:
// published times are 0.22 to 3 ns a parameter. A given figure is off by less.
TEST(Uncertainty, AnUpdateOnTheHostIsWide) {
  const auto ends = [](const std::string& device) {
    Scenario scenario = scenario_over(1e6, device);
    Strategy& strategy = scenario.strategies[1];
    strategy.offload = Strategy::Offload::kOptimizer;
    const Sensitivity sensitivity = Uncertainties(scenario).sensitivity(strategy);
    return std::pair(sensitivity.slower[place(Uncertainty::kDevice)],
                     sensitivity.faster[place(Uncertainty::kDevice)]);
  };
  // Nothing else takes as long as an update of 1 s a parameter.
  const auto [slower, faster] =
      ends(R"(, "device": {"name": "x", "host_link_gbytes_per_s": 1e-6})");
  EXPECT_NEAR(slower, std::log(3 / 0.22) / 2, 0.02);
  EXPECT_NEAR(faster, -std::log(3 / 0.22) / 2, 0.02);
  EXPECT_LT(ends(R"(, "device": {"name": "x", "host_update_ns": 1e6})").first, 0.5);
}

// What every verb prints comes of these two. A network that loses all makes no step of them.
TEST(Evaluated, InvalidTimesAreRefused) {
  Scenario scenario = scenario_over(10);
  collective::CostCache cache(scenario.cluster);
  const Strategy& strategy = scenario.strategies.front();
  const auto refused = [&](const auto& call) {
    try {
      call();
    } catch (const InternalError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const double wrong : {0.0, -1.0, std::nan(""), HUGE_VAL, 1.8e152}) {
    EndsAt executor(wrong);
    const std::string said =
        refused([&] { evaluate_strategy(scenario, strategy, executor, cache); });
    EXPECT_EQ(said.find("internal error: strategy 'alone' has a step of"), 0U) << said;
  }
  EndsAt right(0.5);
  EXPECT_EQ(evaluate_strategy(scenario, strategy, right, cache).metrics.step_time, 0.5);
  Scenario garbage = scenario_over(10);
  garbage.workload.tensors.front().backward = HUGE_VAL;
  const std::string said = refused([&] { Uncertainties(garbage).sensitivity(strategy); });
  EXPECT_NE(said.find("'alone'"), std::string::npos) << said;
}

// A rank alone whose step computes nothing is no mistake of ours, but none of a network either.
TEST(Evaluated, AStepWithoutWorkIsRefused) {
  Scenario idle = test::parsed(Json::parse(R"({"name": "job", "workload": {"name": "w",
      "tensors": [{"name": "a", "shape": [10], "backward_us": 0}]},
    "cluster": {"name": "c", "nodes": 1, "gpus_per_node": 1}, "strategies": [{"name": "plain"}]})"));
  const auto executor = run::make_model_executor({idle.cluster, {}, 1});
  collective::CostCache cache(idle.cluster);
  EXPECT_THROW(evaluate_strategy(idle, idle.strategies.front(), *executor, cache), InputError);
  idle.workload.forward = 1e-3;
  EXPECT_EQ(evaluate_strategy(idle, idle.strategies.front(), *executor, cache).metrics.step_time,
            1e-3);
}

// Flows that are hashed meet more or fewer others by another seed: an interval is wider by that.
TEST(Uncertainty, CollisionsOfHashedFlowsAreInTheInterval) {
  fabric::Topology topology = leaves(8, 4, 1);
  const auto own = [](const fabric::Topology& on, std::uint64_t seed) {
    fabric::Topology seeded = on;
    seeded.seed = seed;
    const Scenario scenario =
        ring_job(on_fabric(flat_cluster(8), seeded,
                           fabric::place_nodes(on, 8, fabric::Placement::kSpread, 1)),
                 1e-3);
    const Strategy& strategy = scenario.strategies.front();
    return std::pair(test::step_time(scenario, strategy),
                     Uncertainties(scenario).sensitivity(strategy).own);
  };
  const auto [even, plain] = own(topology, 1);
  topology.hashed = true;
  // By hand: the given seed's step against those of the four that follow.
  const auto [step, wide] = own(topology, 1);
  double squares = 0;
  for (std::uint64_t seed = 2; seed <= 5; ++seed) {
    const double off = std::log(own(topology, seed).first / step);
    squares += off * off;
  }
  EXPECT_GT(step, even);
  EXPECT_GT(squares, 0);
  // What is a row's own otherwise hangs on its exposed share, which collisions raise a little.
  EXPECT_GE(wide, std::sqrt(squares / 4));
  EXPECT_NEAR(wide, std::hypot(plain, std::sqrt(squares / 4)), 0.01);
  // Two leaves with one way between them leave nothing to be hashed.
  fabric::LeafSpine shape;
  shape.nodes = 8;
  shape.nodes_per_leaf = 4;
  shape.speed = kNodePort / 2;
  fabric::Topology one_way = fabric::leaf_spine(shape);
  const auto before = own(one_way, 1);
  one_way.hashed = true;
  EXPECT_EQ(own(one_way, 1), before);
}

TEST(Uncertainty, AnIntervalContainsItsPrediction) {
  for (const double gbps : {0.1, 1.0, 10.0, 100.0}) {
    const Scenario scenario = scenario_over(gbps);
    Uncertainties uncertainties(scenario);
    for (const auto& strategy : scenario.strategies) {
      const Seconds step = test::step_time(scenario, strategy);
      const Interval interval = interval_of(step, uncertainties.sensitivity(strategy));
      EXPECT_LT(interval.low, step);
      EXPECT_GT(interval.high, step);
      EXPECT_GT(interval.low, 0.2 * step);
      EXPECT_LT(interval.high, 5 * step);
    }
  }
}

TEST(Uncertainty, EachInputMovesWhatRestsOnIt) {
  const Scenario slow = scenario_over(0.5);
  const Sensitivity network = Uncertainties(slow).sensitivity(slow.strategies[1]);
  EXPECT_GT(network.slower[place(Uncertainty::kBandwidth)], 0.1);
  EXPECT_LT(network.faster[place(Uncertainty::kBandwidth)], -0.02);
  EXPECT_EQ(widest(network).first, Uncertainty::kBandwidth);

  const Scenario fast = scenario_over(1000);
  const Sensitivity computation = Uncertainties(fast).sensitivity(fast.strategies[1]);
  EXPECT_LT(computation.slower[place(Uncertainty::kBandwidth)],
            0.2 * network.slower[place(Uncertainty::kBandwidth)]);
  EXPECT_GT(computation.slower[place(Uncertainty::kComputation)], 0.02);

  // Many small messages rest on latency, one large one does not.
  const Scenario between = scenario_over(10);
  EXPECT_GT(slower(between, between.strategies[0], Uncertainty::kLatency),
            2 * slower(between, between.strategies[1], Uncertainty::kLatency));
}

// An end of an interval is the step with that input moved, with what computation and collectives
// then lose to each other.
TEST(Uncertainty, AnEndIsTheStepOfTheMovedInput) {
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
          Uncertainties(alone).shifted_step(first, Uncertainty::kComputation, slower) /
          test::step_time(alone, first);
      ASSERT_GT(std::abs(std::log(factor)), 0.01);
      Scenario moved = scenario;
      moved.workload = scale_computation(scenario.workload, factor);
      for (const auto& strategy : scenario.strategies) {
        EXPECT_NEAR(
            Uncertainties(scenario).shifted_step(strategy, Uncertainty::kComputation, slower),
            test::step_time(moved, strategy), 1e-12)
            << strategy.name << " at " << gbps;
      }
    }
  }
}

TEST(Uncertainty, SharedErrorsCancelInTheRatioOfTwoRows) {
  const Scenario scenario = scenario_over(1);
  Uncertainties uncertainties(scenario);
  const Sensitivity one = uncertainties.sensitivity(scenario.strategies[1]);
  const Sensitivity other = uncertainties.sensitivity(scenario.strategies[2]);
  const double apart = width(interval_of(1, one)) + width(interval_of(1, other));
  EXPECT_LT(width(ratio_interval(1, one, other)), 0.5 * apart);
  // The same row against itself differs by what is its own alone.
  Sensitivity shared = one;
  shared.own = 0;
  EXPECT_DOUBLE_EQ(width(ratio_interval(1, shared, shared)), 0);
}

// Two rows of one scenario have the same error, except for a share of the gain.
TEST(Uncertainty, RowsOfOneScenarioErrAlike) {
  Sensitivity one, other;
  one.own = other.own = 0.02;
  EXPECT_DOUBLE_EQ(own_of_ratio(1, one, other), 0.008);
  EXPECT_DOUBLE_EQ(own_of_ratio(1.25, one, other), std::hypot(0.008, 0.28 * 0.2));
  EXPECT_DOUBLE_EQ(own_of_ratio(0.8, other, one), own_of_ratio(1.25, one, other));
  // Collisions of hashed flows are each row's own.
  one.hashed = 0.03;
  one.own = std::hypot(0.02, 0.03);
  EXPECT_DOUBLE_EQ(own_of_ratio(1, one, other), std::hypot(0.008, 0.03));
  // The rows' own error alone leaves no gain of 3 % open.
  for (const double gain : {1.03, 1.3, 3.0}) {
    EXPECT_GT(std::log(gain), kHeldDeviations * own_of_ratio(gain, other, other)) << gain;
  }
}

// A row that computes more than another may do so by more or less than predicted.
TEST(Uncertainty, DifferentComputationIsUncertain) {
  Sensitivity one, other;
  one.work = std::log(1.5);
  other.work = 0;
  EXPECT_DOUBLE_EQ(own_of_ratio(1, one, other), 0.43 * std::log(1.5));
  EXPECT_DOUBLE_EQ(own_of_ratio(1, other, one), own_of_ratio(1, one, other));
  EXPECT_DOUBLE_EQ(own_of_ratio(1, one, one), 0);
  other.work.reset();  // measured
  EXPECT_DOUBLE_EQ(own_of_ratio(1, one, other), 0);
}

// ZeRO's third stage has the first one's hooks and its own: it may be slower beside it, not faster.
TEST(Uncertainty, HooksOfStagesAreNotOne) {
  constexpr auto kFramework = static_cast<std::size_t>(Uncertainty::kFramework);
  Sensitivity first, third;
  first.slower[kFramework] = third.slower[kFramework] = std::log(2.6);
  first.hooks = 1;
  third.hooks = 3;
  const Interval apart = ratio_interval(1, third, first);
  EXPECT_DOUBLE_EQ(apart.high, 2.6);
  EXPECT_DOUBLE_EQ(apart.low, 1);
  EXPECT_DOUBLE_EQ(ratio_interval(1, first, third).low, 1 / 2.6);
  EXPECT_DOUBLE_EQ(width(ratio_interval(1, third, third)), 0);
}

// Each input has one draw in each of as many equally likely ranges, and a mirrored one.
TEST(Draws, AreEvenlySpread) {
  const auto& draws = common_draws();
  const std::size_t n = draws.size();
  for (std::size_t d = 0; d < kUncertainties; ++d) {
    std::vector<std::size_t> ranges;
    for (std::size_t k = 0; k < n; ++k) {
      EXPECT_DOUBLE_EQ(draws[k].inputs.at(d), -draws[n - 1 - k].inputs.at(d));
      ranges.push_back(static_cast<std::size_t>(static_cast<double>(n) *
                                                normal_distribution(draws[k].inputs.at(d))));
    }
    std::ranges::sort(ranges);
    for (std::size_t k = 0; k < n; ++k) EXPECT_EQ(ranges[k], k);
  }
}

// If all draws agree, the interval has only the rows' own error; otherwise the draws' is added.
TEST(Draws, GiveTheIntervalOfWhatTheyAre) {
  const Interval own = interval_of_draws(1.2, {0, 0, 0}, 0.05);
  EXPECT_NEAR(own.low, 1.2 * std::exp(-kHeldDeviations * 0.05), 1e-9);
  EXPECT_NEAR(own.high, 1.2 * std::exp(kHeldDeviations * 0.05), 1e-9);
  std::vector<double> wide;
  for (int i = 0; i < 1000; ++i) wide.push_back(0.3 * normal_quantile((i + 0.5) / 1000));
  const Interval both = interval_of_draws(2, wide, 0.4);
  EXPECT_NEAR(std::log(both.high / 2), kHeldDeviations * 0.5, 1e-3);
  EXPECT_NEAR(std::log(both.low / 2), -kHeldDeviations * 0.5, 1e-3);
  EXPECT_DOUBLE_EQ(factor_between(0.5, 3, 0), 1);
  EXPECT_DOUBLE_EQ(factor_between(0.5, 3, kHeldDeviations), 3);
  EXPECT_DOUBLE_EQ(factor_between(0.5, 3, -kHeldDeviations), 0.5);
}

// Communication next to computation never takes longer than after it, except for the delays of its
// starts: what both lose to each other is shared, not wasted. So the exchange of one strategy,
// overlapped, is decided to be faster.
TEST(Uncertainty, OverlapIsNoSlowerThanOneAfterTheOther) {
  for (const double gbps : {2.0, 5.0, 10.0, 20.0}) {
    Json root = Json::parse(R"({"name": "o", "workload": {"name": "w", "forward_ms": 20},
        "cluster": {"name": "c", "nodes": 1, "gpus_per_node": 2, "library": "nccl",
                    "device": {"base": "rtx-3090"}, "intra": {"latency_us": 5}},
        "strategies": [{"name": "after", "overlap": false, "fusion": {"rule": "none"}},
                       {"name": "beside", "fusion": {"rule": "none"}}]})");
    root["cluster"]["intra"]["bandwidth_gbps"] = 8 * gbps;
    for (int i = 0; i < 24; ++i) {
      root["workload"]["tensors"].push_back(
          {{"name", "l" + std::to_string(i)}, {"shape", {2000000}}, {"backward_us", 2000}});
    }
    const Scenario scenario = test::parsed(root);
    Uncertainties uncertainties(scenario);
    const Strategy& after = scenario.strategies[0];
    const Strategy& beside = scenario.strategies[1];
    const Seconds most = uncertainties.shifted_step(beside, Uncertainty::kOverlap, true);
    const Seconds serial = test::step_time(scenario, after);
    constexpr double kStarts = 0.01;
    EXPECT_LE(most, serial * (1 + kStarts)) << gbps;
    const double ratio = serial / test::step_time(scenario, beside);
    const Interval gain = uncertainties.ratio(ratio, {after, uncertainties.sensitivity(after)},
                                              {beside, uncertainties.sensitivity(beside)});
    EXPECT_GT(gain.low, 0.985) << gbps;
    EXPECT_LT(gain.low, ratio);
    EXPECT_GT(gain.high, ratio);
  }
}

// Kernels of one code base say little of another's: what both compute does not cancel.
TEST(Uncertainty, RatesOfTwoCodeBasesDoNotCancel) {
  Sensitivity one, other;
  const std::size_t d = place(Uncertainty::kComputation);
  one.slower[d] = other.slower[d] = 0.2;
  one.faster[d] = other.faster[d] = -0.2;
  one.kernels = other.kernels = 1;
  EXPECT_DOUBLE_EQ(width(ratio_interval(1, one, other)), 0);
  other.kernels = 0;  // nobody knows whose
  EXPECT_DOUBLE_EQ(width(ratio_interval(1, one, other)), 0);
  other.kernels = 2;
  EXPECT_DOUBLE_EQ(width(ratio_interval(1, one, other)), 2 * std::hypot(0.2, 0.2));
}

TEST(Uncertainty, ChancesOfBothOrdersAddUpToOne) {
  const Scenario scenario = scenario_over(2);
  Uncertainties uncertainties(scenario);
  for (const auto& first : scenario.strategies) {
    for (const auto& second : scenario.strategies) {
      const Seconds a = test::step_time(scenario, first);
      const Seconds b = test::step_time(scenario, second);
      const Sensitivity x = uncertainties.sensitivity(first);
      const Sensitivity y = uncertainties.sensitivity(second);
      EXPECT_NEAR(chance_shorter(a, x, b, y) + chance_shorter(b, y, a, x), 1, 1e-12);
      EXPECT_EQ(chance_shorter(a, x, b, y) > 0.5, a < b);
    }
  }
}

TEST(Uncertainty, MeasuredInputsAreSurerThanAssumedOnes) {
  const Scenario assumed = scenario_over(1);
  Scenario measured = assumed;
  measured.cluster.cost_model = [&](const collective::Collective& asked) {
    collective::CostCache cache(assumed.cluster);
    return std::optional(CollectiveTime{.time = cache.time(asked), .spread = 0.05});
  };
  Uncertainties wide(assumed);
  Uncertainties narrow(measured);
  EXPECT_LT(width(interval_of(1, narrow.sensitivity(measured.strategies[1]))),
            0.5 * width(interval_of(1, wide.sensitivity(assumed.strategies[1]))));
  // A calibration of the scenario itself pins down what it fitted.
  Uncertainties fit_errors(assumed, {.computation = 0.01, .network = 0.01, .framework = {}});
  EXPECT_LT(width(interval_of(1, fit_errors.sensitivity(assumed.strategies[1]))),
            width(interval_of(1, narrow.sensitivity(assumed.strategies[1]))));
}

TEST(Uncertainty, TimesFromARateAreLessSureThanTimesGiven) {
  const std::string device = R"(, "device": {"tflops": 10, "efficiency": 0.4})";
  const Scenario given = scenario_over(1000, device);
  Scenario rated = given;
  rated.workload.rated_times = true;
  EXPECT_GT(slower(rated, rated.strategies[0], Uncertainty::kComputation),
            4 * slower(given, given.strategies[0], Uncertainty::kComputation));
}

// Operators on devices that published runs speak of are surer than on others; where the host's
// launches decide, the slower end is a host that takes 40 us a kernel, the faster one of 5.
TEST(Uncertainty, OperatorsAreAsSureAsWhatPublishedRunsSayOfThem) {
  const auto sensitivity_of = [](const char* node, int batch, int gpus) {
    const Scenario scenario = test::parsed(
        {{"name", "o"},
         {"workload",
          {{"name", "gpt2"},
           {"batch", batch},
           {"operators",
            {{"architecture", "gpt2_medium"},
             {"sequence", batch == 1 ? 64 : 1024},
             {"dtype", "fp16"}}}}},
         {"cluster", {{"name", "c"}, {"node", node}, {"nodes", 1}, {"gpus_per_node", gpus}}},
         {"strategies", {{{"name", "one"}, {"overlap", false}}}}});
    const Sensitivity sensitivity = Uncertainties(scenario).sensitivity(scenario.strategies[0]);
    return std::pair(sensitivity.slower[place(Uncertainty::kComputation)],
                     sensitivity.faster[place(Uncertainty::kComputation)]);
  };
  const auto [slower, faster] = sensitivity_of("dgx-a100", 32, 8);
  EXPECT_NEAR(slower, 0.179, 0.03);
  EXPECT_NEAR(faster, -0.179, 0.03);
  EXPECT_GT(sensitivity_of("dgx-b200", 64, 8).first, 0.27);
  const auto [hosted, captured] = sensitivity_of("dgx-a100", 1, 1);
  EXPECT_GT(hosted, 0.6);
  EXPECT_LT(captured, -0.2);
}

// What the model leaves out in a row of its own: 0.8 % of the step, and of what it waits for
// communication 3 %, as independent parts.
TEST(Uncertainty, ARowsOwnPartGrowsWithItsExposedCommunication) {
  const auto own = [](const Scenario& scenario) {
    return Uncertainties(scenario).sensitivity(scenario.strategies[1]).own;
  };
  Scenario scenario = scenario_over(1);
  const Strategy& one = scenario.strategies[1];
  const Seconds computed = scenario.workload.forward + backward_time(scenario.workload);
  for (const double share : {0.25, 0.5, 0.9}) {
    // A longer backward pass ahead of the only bucket; what follows it is as long as before.
    const Seconds exposed = test::step_time(scenario, one) - computed;
    Scenario longer = scenario;
    longer.workload.forward += exposed / share - exposed - computed;
    EXPECT_NEAR(own(longer), std::hypot(0.008, 0.03 * share), 1e-9) << share;
  }
  scenario.cluster.nodes = 1;
  EXPECT_DOUBLE_EQ(own(scenario), 0.008) << "one rank waits for nothing";
}

// The rows of a study carry their intervals, whichever executor evaluates them.
TEST(Uncertainty, RowsCarryTheirIntervals) {
  const auto document = input::document_from_text("rows.json", R"({"name": "rows",
      "workload": {"name": "w", "forward_ms": 2, "tensors": [
        {"name": "a", "shape": [500000], "backward_us": 900},
        {"name": "b", "shape": [900000], "backward_us": 900}]},
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1,
                  "inter": {"latency_us": 20, "bandwidth_gbps": 5}},
      "strategies": [{"name": "alone"}, {"name": "one", "fusion": {"rule": "one"}}],
      "sweep": {"cluster.nodes": [2, 4, 8]}})");
  StudyOptions options = test::study_options();
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
    EXPECT_EQ(row.sensitivity, elsewhere.rows[i].sensitivity);
    EXPECT_EQ(row.gain.high, elsewhere.rows[i].gain.high);
  }
}

// Hooks of sharded jobs hold kernels up; ranks of Gloo compute on the host, which has none.
TEST(Uncertainty, OnlyKernelsWaitForTheHostsHooks) {
  for (const char* dialect : {"fsdp", "deepspeed"}) {
    const auto slower_end = [&](const std::string& library) {
      Scenario scenario = scenario_over(10, R"(, "library": ")" + library + '"');
      Strategy strategy = scenario.strategies.front();
      strategy.dialect = dialect;
      strategy.exchange = Strategy::Exchange::kShardedUpdate;
      return slower(scenario, strategy, Uncertainty::kFramework);
    };
    EXPECT_GT(slower_end("nccl"), 4 * slower_end("gloo")) << dialect;
    EXPECT_GT(slower_end("gloo"), 0) << dialect;
  }
}

// DeepSpeed's hooks around parameters take time per layer, and the host launches experts' kernels
// per layer: more layers of the same work widen the slow end. FSDP has a hook per unit.
TEST(Uncertainty, TheHostsTimeGrowsWithLayers) {
  const auto slower_end = [&](const char* dialect, bool layers, bool experts) {
    Scenario scenario = scenario_over(1000, R"(, "library": "nccl")");
    scenario.workload.rated_times = true;
    int number = 0;
    for (Tensor& tensor : scenario.workload.tensors) {
      tensor.name = "layers." + std::to_string(layers ? number++ : 0) + ".weight";
      tensor.expert = experts;
    }
    Strategy strategy = scenario.strategies.front();
    strategy.dialect = dialect;
    strategy.exchange = Strategy::Exchange::kShardedUpdate;
    strategy.regather = true;
    return slower(scenario, strategy,
                  experts ? Uncertainty::kComputation : Uncertainty::kFramework);
  };
  EXPECT_GT(slower_end("deepspeed", true, false), 1.2 * slower_end("deepspeed", false, false));
  EXPECT_DOUBLE_EQ(slower_end("fsdp", true, false), slower_end("fsdp", false, false));
  EXPECT_GT(slower_end("fsdp", true, true), 1.2 * slower_end("fsdp", false, true));
}

// Times that were measured with sharded parameters include the scheme's copies and hooks: a scheme
// without them may be faster, by more on processors; the other way round slower.
TEST(Uncertainty, MeasuredTimesKeepTheirScheme) {
  const auto ends = [](const std::string& library, bool sharded_first) {
    Scenario scenario = scenario_over(1000, R"(, "library": ")" + library + '"');
    Strategy& first = scenario.strategies.front();
    Strategy& sharded = sharded_first ? first : scenario.strategies[1];
    sharded.exchange = Strategy::Exchange::kShardedUpdate;
    sharded.regather = true;
    const Strategy& other = scenario.strategies[1];
    const Sensitivity sure = Uncertainties(scenario).sensitivity(other);
    return std::pair(sure.faster[place(Uncertainty::kFramework)],
                     sure.slower[place(Uncertainty::kFramework)]);
  };
  EXPECT_LT(ends("gloo", true).first, -0.1);
  EXPECT_LT(ends("nccl", true).first, -0.01);
  EXPECT_GT(ends("nccl", true).first, -0.04);
  EXPECT_GT(ends("gloo", false).second, 0.1);
  EXPECT_EQ(ends("gloo", false).first, 0);
  Scenario rated = scenario_over(10);
  rated.strategies.front().exchange = Strategy::Exchange::kShardedUpdate;
  rated.strategies.front().regather = true;
  EXPECT_TRUE(measured_under_another_scheme(rated, rated.strategies[1]));
  EXPECT_FALSE(measured_under_another_scheme(rated, rated.strategies[0]));
  rated.workload.rated_times = true;
  EXPECT_FALSE(measured_under_another_scheme(rated, rated.strategies[1]));
}

// What a profiler saw the copies wait for the host may be no more than their kernels.
TEST(Uncertainty, ProfiledCopiesMayTakeNoMoreThanTheirKernels) {
  Scenario scenario = scenario_over(1000);
  for (auto& tensor : scenario.workload.tensors) tensor.copy_out = 0.0002;
  scenario.workload.copies_measured = true;
  Strategy strategy = scenario.strategies[1];
  strategy.bucket_copies = true;
  const Seconds step = test::step_time(scenario, strategy);
  const Interval sure = interval_of(step, Uncertainties(scenario).sensitivity(strategy));
  scenario.workload.copy_kernels = 0.0001;
  const Interval unsure = interval_of(step, Uncertainties(scenario).sensitivity(strategy));
  EXPECT_LT(unsure.low, step - 0.0020);
  EXPECT_GT(sure.low, step - 0.0012);
  EXPECT_DOUBLE_EQ(unsure.high, sure.high);
}

// A job whose recordings lie far apart is known no better than that.
TEST(Uncertainty, TimesAreAsSureAsTheirRecording) {
  Scenario scenario = scenario_over(1000);
  const Strategy& strategy = scenario.strategies[1];
  const auto computation = [&] { return slower(scenario, strategy, Uncertainty::kComputation); };
  const double assumed = computation();
  scenario.workload.time_spread = 0.01;
  EXPECT_DOUBLE_EQ(computation(), assumed);  // a quiet recording is no surer than others
  scenario.workload.time_spread = 0.09;
  EXPECT_GT(computation(), 2 * assumed);
}

// Where nobody measured a collective, the guess about one kind is not that about another: rows that
// use different kinds do not share all of the doubt, rows of one kind do.
TEST(Uncertainty, GuessedKindsOfCollectivesDoNotShareAllErrors) {
  Json root = Json::parse(R"({"name": "d", "workload": {"name": "w", "forward_ms": 4},
      "cluster": {"name": "c", "node": "p3.16xlarge", "nodes": 2},
      "strategies": [{"name": "flat", "algorithm": "nccl", "fusion": {"rule": "one"}},
                     {"name": "flat, two", "algorithm": "nccl",
                      "fusion": {"rule": "size", "size_mb": 60}},
                     {"name": "sharded", "algorithm": "nccl", "fusion": {"rule": "one"},
                      "hierarchy": {"form": "sharded"}}]})");
  for (int i = 0; i < 12; ++i) {
    root["workload"]["tensors"].push_back(
        {{"name", "l" + std::to_string(i)}, {"shape", {2000000}}, {"backward_us", 100}});
  }
  const Scenario scenario = test::parsed(root);
  Uncertainties uncertainties(scenario);
  const Sensitivity flat = uncertainties.sensitivity(scenario.strategies[0]);
  const Sensitivity two = uncertainties.sensitivity(scenario.strategies[1]);
  const Sensitivity sharded = uncertainties.sensitivity(scenario.strategies[2]);
  const auto ends_of = [](const Sensitivity& sensitivity, GuessedKind way) {
    return sensitivity.ways.at(static_cast<std::size_t>(way));
  };
  const std::array<double, 2> none{};
  EXPECT_LT(ends_of(flat, GuessedKind::kTreeOfTwo)[0], -0.1);
  EXPECT_GT(ends_of(flat, GuessedKind::kTreeOfTwo)[1], 0.1);
  EXPECT_EQ(ends_of(flat, GuessedKind::kOneEach), none);
  EXPECT_EQ(ends_of(sharded, GuessedKind::kTreeOfTwo), none);
  EXPECT_NE(ends_of(sharded, GuessedKind::kOneEach), none);
  EXPECT_NE(ends_of(sharded, GuessedKind::kInsideHalf), none);
  // Half as long again is no certainty between kinds, and is one within a kind.
  EXPECT_LT(chance_shorter(1, sharded, 1.5, flat), 0.98);
  EXPECT_GT(chance_shorter(1, sharded, 1.5, flat), 0.6);
  EXPECT_GT(chance_shorter(1, two, 1.5, flat), 0.99);
  // A log tells of all of them.
  FitErrors logged;
  logged.network = 0.1;
  EXPECT_EQ(Uncertainties(scenario, logged).sensitivity(scenario.strategies[0]).ways,
            Sensitivity().ways);
}

// A bandwidth that was measured narrows the interval, whatever the library.
TEST(Uncertainty, AMeasuredBandwidthIsSurer) {
  for (const std::string library : {"links", "nccl"}) {
    Json root = Json::parse(R"({"name": "d", "workload": {"name": "w", "batch": 1,
        "forward_ms": 100, "tensors": [{"name": "a", "shape": [500000000],
                                        "backward_us": 200000}]},
        "cluster": {"name": "2 GPUs", "nodes": 1, "gpus_per_node": 2,
                    "intra": {"latency_us": 5, "bandwidth_gbps": 160},
                    "device": {"base": "h100-pcie"}},
        "strategies": [{"name": "s", "overlap": false, "fusion": {"rule": "one"}}]})");
    root["cluster"]["library"] = library;
    root["strategies"][0]["algorithm"] = library == "nccl" ? "nccl" : "ring";
    const Scenario sheet = test::parsed(root);
    root["cluster"]["intra"]["measured"] = true;
    const Scenario measured = test::parsed(root);
    const auto interval = [](const Scenario& scenario) {
      const Strategy& strategy = scenario.strategies.front();
      return interval_of(test::step_time(scenario, strategy),
                         Uncertainties(scenario).sensitivity(strategy));
    };
    EXPECT_NEAR(test::step_time(measured, measured.strategies.front()), 0.4, 0.005) << library;
    EXPECT_LT(width(interval(measured)), 0.5 * width(interval(sheet))) << library;
  }
}

}  // namespace
}  // namespace syncline::measure
