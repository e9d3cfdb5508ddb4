// Computation beside a collective takes longer, and sums in software hold both up: closed forms,
// properties, and the simulation's agreement.
#include "core/run/interference.h"

#include <gtest/gtest.h>

#include <functional>
#include <iomanip>
#include <sstream>

#include "core/job/overlap.h"
#include "core/metrics.h"
#include "core/sim/sim_executor.h"
#include "formats/input/document.h"
#include "tests/plan/planned.h"
#include "tests/support/random_scenario.h"

namespace syncline::run {
namespace {

// Two gradients, 10 ms of backward each, over a network of so many Gbit/s.
Scenario two_gradients(double slowdown, double gbps, const std::string& strategy = "",
                       const std::string& more = "") {
  return input::parse_scenario(input::document_from_text("slowed.json", R"({"name": "s",
      "workload": {"name": "w", "forward_ms": 5, "update_ms": 1, "tensors": [
        {"name": "b", "shape": [1000000], "backward_us": 10000},
        {"name": "a", "shape": [1000000], "backward_us": 10000}]},
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1, "library": "links",
        "device": {"overlap_slowdown": )" + std::to_string(slowdown) + more +
                                                                            R"(},
        "inter": {"latency_us": 10, "bandwidth_gbps": )" + std::to_string(gbps) +
                                                                            R"(}},
      "strategies": [{"name": "alone")" + strategy + "}]}"));
}

measure::Metrics metrics_of(const Scenario& scenario, Executor& executor) {
  collective::CostCache cache(scenario.cluster);
  return measure::evaluate_strategy(scenario, scenario.strategies.front(), executor, cache).metrics;
}

Seconds step_of(const Scenario& scenario, Executor& executor) {
  return metrics_of(scenario, executor).step_time;
}

Seconds modelled(const Scenario& scenario) {
  return step_of(scenario, *make_model_executor({scenario.cluster, {}, 1}));
}

// The first collective of that kind, alone.
Seconds exchange_of(const Scenario& scenario,
                    collective::CollectiveKind kind = collective::CollectiveKind::kAllReduce) {
  collective::CostCache cache(scenario.cluster);
  const plan::Plan plan =
      plan::make_plan(scenario.workload, scenario.cluster, scenario.strategies.front());
  for (const auto& collective : plan::collectives_of(plan)) {
    if (collective.kind == kind) return cache.time(collective);
  }
  return 0;
}

void expect_simulated(const Scenario& scenario, const std::string& what) {
  const auto simulated = sim::make_sim_executor({scenario.cluster, scenario.simulation, 1});
  EXPECT_NEAR(step_of(scenario, *simulated) / modelled(scenario), 1, 1e-6) << what;
}

// On random scenarios a step only gets longer, but for so much where streams share links, as `key`
// of the device takes one value after the other.
void expect_longer(const char* key, const std::vector<double>& values, double slack_of_shared,
                   const std::function<void(Json& root, std::uint64_t seed)>& change) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Json root = test::random_small_scenario(seed, 16);
    root["cluster"]["library"] = "links";
    change(root, seed);
    const bool shared = root["strategies"][0].value("streams", 1) > 1;
    Seconds before = 0;
    for (const double value : values) {
      root["cluster"]["device"][key] = value;
      const Seconds step =
          modelled(input::parse_scenario(input::document_from_text("r.json", root.dump())));
      EXPECT_GE(step, before * (1 - (shared ? slack_of_shared : 1e-9)))
          << seed << " at " << value << ": " << root["strategies"].dump();
      before = step;
    }
  }
}

// An exchange that begins beside computation waits 3 ms.
const std::string kWaits = R"(, "overlap_collective_slowdown": 0, "overlap_delay_us": 3000)";

TEST(Slowed, AHiddenCollectiveCostsItsShare) {
  const Scenario scenario = two_gradients(0.25, 10);
  const Seconds exchange = exchange_of(scenario);
  ASSERT_LT(exchange, 0.010);
  // The first exchange takes a quarter longer beside the second gradient, which loses a fifth of
  // that time; the second runs beside nothing.
  EXPECT_NEAR(modelled(scenario), 0.005 + 0.020 + 0.25 * exchange + exchange + 0.001, 1e-9);
}

TEST(Slowed, LossesAreCountedInTheirPass) {
  const Scenario scenario = two_gradients(0.25, 10);
  const Seconds exchange = exchange_of(scenario);
  const auto metrics = metrics_of(scenario, *make_model_executor({scenario.cluster, {}, 1}));
  EXPECT_NEAR(metrics.compute, 0.026 + 0.2 * 1.25 * exchange, 1e-9);
  EXPECT_NEAR(metrics.communication, 2.25 * exchange, 1e-9);
  EXPECT_NEAR(metrics.exposed, exchange, 1e-9);
  EXPECT_NEAR(metrics.compute + metrics.exposed, metrics.step_time, 1e-9);
}

TEST(Slowed, NoMoreIsLostThanIsComputedMeanwhile) {
  const Scenario scenario = two_gradients(0.25, 0.1);
  const Seconds exchange = exchange_of(scenario);
  ASSERT_GT(exchange, 0.1);
  // The network is the bottleneck: the first exchange is slowed for as long as the 10 ms of
  // computation take beside it, the second follows and runs alone.
  EXPECT_NEAR(modelled(scenario), 0.005 + 0.010 + 2 * exchange + 0.25 * 0.0125 + 0.001, 1e-9);
}

TEST(Slowed, ACollectiveDuringComputationWaitsForAProcessor) {
  const Scenario fast = two_gradients(0.25, 10, "", kWaits);
  const Seconds exchange = exchange_of(fast);
  ASSERT_LT(exchange, 0.005);
  // Hidden: the wait costs nothing, and the computation loses nothing meanwhile.
  EXPECT_NEAR(modelled(fast), 0.005 + 0.020 + 0.2 * exchange + exchange + 0.001, 1e-9);
  const Scenario slow = two_gradients(0.25, 0.1, "", kWaits);
  EXPECT_NEAR(modelled(slow), 0.005 + 0.010 + 0.003 + 2 * exchange_of(slow) + 0.001, 1e-9);
  // No longer than there is computation.
  const std::string long_wait = R"(, "overlap_collective_slowdown": 0, "overlap_delay_us": 90000)";
  for (const double slowdown : {0.0, 1.0}) {
    const Scenario late = two_gradients(slowdown, 10, "", long_wait);
    EXPECT_NEAR(modelled(late), 0.005 + 0.020 + 2 * exchange + 0.001, 1e-9);
  }
}

// The example of interference.cc. Bytes for 3.98 ms and two rounds of 10 us are an exchange of 4
// ms.
TEST(Slowed, TheDelayTheExtraTimeAndTheLossAreOperations) {
  const Scenario scenario = two_gradients(
      0.25, 8 / 0.995, "", R"(, "overlap_collective_slowdown": 0.25, "overlap_delay_us": 3000)");
  ASSERT_NEAR(exchange_of(scenario), 0.004, 1e-9);
  collective::CostCache cache(scenario.cluster);
  const auto plan = with_interference(
      plan::make_plan(scenario.workload, scenario.cluster, scenario.strategies.front()),
      scenario.cluster.device, cache);
  const auto inserted = plan::ops_of(plan, plan::Busy::Reason::kInterference);
  const plan::StreamId streams[] = {1, 1, plan::kComputeStream};
  const Seconds seconds[] = {0.003, 0.001, 0.001};
  ASSERT_EQ(inserted.size(), 3u);
  for (std::size_t i = 0; i < inserted.size(); ++i) {
    EXPECT_EQ(inserted[i]->stream, streams[i]) << i;
    EXPECT_NEAR(plan::seconds_of(inserted[i]->work), seconds[i], 1e-9) << i;
  }
  EXPECT_NEAR(modelled(scenario), 0.005 + 0.025 + 0.001, 1e-9);
}

// On a stream of its own the second exchange begins while the first has its bytes to send yet: the
// links have been idle for as long as that one waited.
TEST(Slowed, NoBytesFlowWhileACollectiveWaits) {
  const Scenario scenario = two_gradients(0, 0.1, R"(, "streams": 2)", kWaits);
  const Seconds exchange = exchange_of(scenario);
  EXPECT_NEAR(modelled(scenario), 0.005 + 0.010 + 0.003 + 2 * exchange + 0.001, 1e-4);
}

TEST(Slowed, ComputationLosesNothingWhileACollectiveWaits) {
  const Scenario scenario = two_gradients(1, 0.1, "", kWaits);
  ASSERT_GT(exchange_of(scenario), 0.020);
  const auto metrics = metrics_of(scenario, *make_model_executor({scenario.cluster, {}, 1}));
  // Of the second gradient's 10 ms three go by before anything flows, and seven take twice as long.
  EXPECT_NEAR(metrics.compute, 0.026 + 0.007, 1e-9);
}

// What is yet to be encoded keeps the processor busy too.
TEST(Slowed, ACollectiveWaitsForEncodingAfterItsBucket) {
  const Scenario scenario = two_gradients(
      0, 10, R"(, "compression": {"codec": "fp16"})",
      R"(, "overlap_collective_slowdown": 0, "overlap_delay_us": 90000, "rounding_gbytes_per_s": 6)");
  const Seconds encoding = 0.001;
  EXPECT_NEAR(modelled(scenario),
              0.005 + 0.020 + 2 * encoding + 2 * (exchange_of(scenario) + encoding) + 0.001, 1e-9);
}

TEST(Slowed, NoStrategyGetsFasterByWaiting) {
  expect_longer(
      "overlap_delay_us", {0.0, 10.0, 100.0, 1000.0, 1e4, 1e5}, 0.1,
      [](Json& root, std::uint64_t) { root["cluster"]["device"]["overlap_slowdown"] = 0; });
}

TEST(Slowed, OnlyDuringACollective) {
  const std::string apart = R"(, "overlap": false)";
  EXPECT_EQ(modelled(two_gradients(0, 10, apart)), modelled(two_gradients(0.3, 10, apart)));
  const std::string one = R"(, "fusion": {"rule": "one"})";
  EXPECT_EQ(modelled(two_gradients(0, 10, one)), modelled(two_gradients(0.3, 10, one)));
  Scenario lonely = two_gradients(0.3, 10);
  lonely.cluster.nodes = 1;
  lonely.cluster.tiers.clear();
  collective::CostCache cache(lonely.cluster);
  const auto plan = plan::make_plan(lonely.workload, lonely.cluster, lonely.strategies.front());
  EXPECT_EQ(with_interference(plan, lonely.cluster.device, cache).ops.size(), plan.ops.size());
}

TEST(Slowed, GrowsWithTheSlowdownAndTheSimulationAgrees) {
  Seconds before = 0;
  for (const double slowdown : {0.0, 0.1, 0.2, 0.4, 1.0}) {
    const Scenario scenario = two_gradients(slowdown, 10);
    const Seconds step = modelled(scenario);
    EXPECT_GT(step, before);
    before = step;
    expect_simulated(scenario, std::to_string(slowdown));
  }
  for (const double gbps : {0.1, 10.0}) {
    expect_simulated(two_gradients(0.5, gbps, "", R"(, "overlap_delay_us": 3000)"),
                     std::to_string(gbps));
  }
}

// The most urgent bucket first: the pass up to a bucket loses to what was sent before it.
TEST(Slowed, IsTheSameByPriorityAsInOrder) {
  for (const double gbps : {0.1, 10.0}) {
    const Seconds in_order = modelled(two_gradients(0.25, gbps));
    EXPECT_NEAR(modelled(two_gradients(0.25, gbps, R"(, "priority": "layer")")), in_order, 1e-9);
  }
}

// Parameters that are gathered again for the backward pass: the first bucket's while the pass waits
// for them, the second's beside the first one's pass, the last one's never.
TEST(Slowed, ParametersGatheredDuringThePassCostTheirShare) {
  const auto scenario = [](double slowdown, bool regather) {
    Scenario made = two_gradients(slowdown, 10, R"(, "exchange": "sharded")");
    Tensor third = made.workload.tensors.back();
    third.name = "c";
    made.workload.tensors.push_back(third);
    made.strategies.front().regather = regather;
    return made;
  };
  const auto lost = [&](bool regather) {
    return modelled(scenario(0.25, regather)) - modelled(scenario(0, regather));
  };
  const Seconds gather = exchange_of(scenario(0, false), collective::CollectiveKind::kAllGather);
  ASSERT_GT(gather, 0);
  EXPECT_NEAR(lost(true) - lost(false), 0.25 * gather, 1e-9);
}

// What the next forward pass begins without is gathered beside it: the layer that it begins with
// runs beside the second one's gather.
TEST(Slowed, TheForwardPassIsSlowedByGathersDuringIt) {
  const auto scenario = [](double slowdown, double gbps, const std::string& more = "") {
    Scenario made =
        two_gradients(slowdown, gbps, R"(, "preset": "dear", "fusion": {"rule": "none"})", more);
    made.workload.update = 0;
    made.workload.tensors[0].name = "b.weight";
    made.workload.tensors[1].name = "a.weight";
    return made;
  };
  const Scenario fast = scenario(0, 20);
  const Seconds gather = exchange_of(fast, collective::CollectiveKind::kAllGather);
  ASSERT_GT(gather, 0);
  ASSERT_LT(1.25 * gather, 0.0025);
  // A quarter of a half beside the backward pass, and a quarter of one beside the forward pass.
  EXPECT_NEAR(modelled(scenario(0.25, 20)) - modelled(fast), 2 * 0.25 * gather, 1e-9);
  const Scenario slow = scenario(0.25, 0.1);
  // All of the layer beside the gather, and both slower; what waits for it takes no longer.
  EXPECT_NEAR(modelled(slow) - modelled(scenario(0, 0.1)), 0.25 * (0.0125 + 0.0025), 1e-9);
  for (const Scenario& made : {scenario(0.25, 20), slow}) expect_simulated(made, "gathered");
  const std::string waits = R"(, "overlap_collective_slowdown": 0, "overlap_delay_us": 1000)";
  EXPECT_NEAR(modelled(scenario(0, 0.1, waits)) - modelled(scenario(0, 0.1)), 0.002, 1e-9);
}

// What may be run beside computation in any form takes no less time where both lose more. Where
// streams share links, one that waits leaves its part to the others, so that what the update waits
// for may come in earlier.
TEST(Slowed, NoStrategyGetsFasterBySlowingDown) {
  expect_longer("overlap_slowdown", {0.0, 0.1, 0.3, 0.6, 1.0}, 0.15, [](Json&, std::uint64_t) {});
}

// Two gradients that travel in 16 bits, which a library adds up at so many 10^9 bytes a second; 0:
// at no cost.
Scenario two_in_half(double sums, double slowdown, double gbps, const std::string& strategy = "",
                     const std::string& more = "") {
  return two_gradients(
      slowdown, gbps, R"(, "compression": {"codec": "fp16"})" + strategy,
      R"(, "overlap_collective_slowdown": 0, "sums_gbytes_per_s": )" + std::to_string(sums) + more);
}

// What the processor takes for the half of 2 MB that each of two ranks adds up.
Seconds sums_at(double gbytes_per_second) { return 1e6 / (gbytes_per_second * 1e9); }

// An exchange with sums: they go on while the first half of the bytes flows, in two segments, and
// one segment of the shorter of both is left over. `busy`: what the bytes need of the processor.
Seconds with_sums(Seconds exchange, Seconds sums, double busy, double times = 1) {
  const Seconds half = exchange / 2;
  return exchange + std::max(0.0, times * sums - (1 - busy) * half) + std::min(half, sums) / 2;
}

// Behind each collective that adds 16 bits up, on its stream, and nowhere else.
TEST(Sums, FollowTheirCollectives) {
  const Scenario scenario = two_in_half(0.5, 0, 10, R"(, "overlap": false)");
  collective::CostCache cache(scenario.cluster);
  const auto given =
      plan::make_plan(scenario.workload, scenario.cluster, scenario.strategies.front());
  const auto plan = with_interference(given, scenario.cluster.device, cache);
  EXPECT_EQ(plan.ops.size(), given.ops.size() + 2);
  for (const plan::Op* op : plan::ops_of<collective::Collective>(plan)) {
    const auto& collective = plan::collective_in(*op);
    const plan::Op& next = *(op + 1);
    const auto& sums = std::get<plan::Busy>(next.work);
    EXPECT_EQ(sums.reason, plan::Busy::Reason::kSums);
    EXPECT_EQ(sums.bucket, collective.bucket);
    EXPECT_EQ(next.stream, op->stream);
    EXPECT_EQ(sums.seconds,
              sums_beyond(collective, scenario.cluster.device, cache.time(collective)));
  }
}

// Where the bytes hide all sums but one segment: two segments of each part, or of a mebibyte each.
TEST(Sums, LeaveOneSegmentOfAPartOver) {
  Device device;
  device.sums = 1e9;
  const auto left = [&](double mebibytes, int ranks) {
    collective::Collective collective;
    collective.groups = collective::world_group(ranks);
    collective.unit = 2;
    collective.elements = static_cast<std::int64_t>(mebibytes * ranks * (1 << 20) / 2);
    const Seconds work = mebibytes * (ranks - 1) * (1 << 20) / 1e9;
    return sums_beyond(collective, device, 1e3) / work;
  };
  EXPECT_DOUBLE_EQ(left(0.25, 2), 1.0 / 2);
  EXPECT_DOUBLE_EQ(left(2, 2), 1.0 / 2);
  EXPECT_DOUBLE_EQ(left(3, 2), 1.0 / 3);
  EXPECT_DOUBLE_EQ(left(8, 2), 1.0 / 8);
  EXPECT_DOUBLE_EQ(left(3, 5), 1.0 / (4 * 3));
}

TEST(Sums, DelayTheBytesIfTheyAreSlower) {
  const std::string apart = R"(, "overlap": false)";
  const Seconds exchange = exchange_of(two_in_half(0, 0, 10));
  const Seconds free = modelled(two_in_half(0, 0, 10, apart));
  ASSERT_LT(sums_at(2), exchange / 2);
  EXPECT_NEAR(modelled(two_in_half(2, 0, 10, apart)), free + sums_at(2), 1e-12);  // two halves
  ASSERT_GT(sums_at(0.5), exchange / 2);
  const Seconds held = sums_at(0.5) - exchange / 4;
  EXPECT_NEAR(modelled(two_in_half(0.5, 0, 10, apart)), free + 2 * held, 1e-12);
}

TEST(Sums, AreOnlyOfSixteenBits) {
  const std::string slow = R"(, "sums_gbytes_per_s": 0.01)";
  EXPECT_EQ(modelled(two_gradients(0.25, 10, "", slow)), modelled(two_gradients(0.25, 10)));
  EXPECT_GT(modelled(two_in_half(0.01, 0.25, 10)), modelled(two_in_half(0, 0.25, 10)));
}

// The first exchange runs beside the second gradient, where it gets half of the processor; the
// second one runs alone.
TEST(Sums, ShareTheProcessorWithTheComputation) {
  const Seconds flow = exchange_of(two_in_half(0, 0.25, 10));
  const Seconds sums = sums_at(0.5);
  ASSERT_LT(with_sums(flow, sums, 0.2, 2), 0.010);
  const Seconds lost = 0.2 * flow + sums;
  EXPECT_NEAR(modelled(two_in_half(0.5, 0.25, 10)),
              0.005 + 0.020 + lost + with_sums(flow, sums, 0.2) + 0.001, 1e-9);
}

TEST(Sums, TakeTimeWithRoundingBothWays) {
  const std::string rounding = R"(, "rounding_gbytes_per_s": 6)";  // a millisecond either way
  const Seconds flow = exchange_of(two_in_half(0, 0.25, 10));
  const Seconds sums = sums_at(0.5);
  const Seconds lost = 0.2 * flow + sums + 0.001;
  EXPECT_NEAR(modelled(two_in_half(0.5, 0.25, 10, "", rounding)),
              0.005 + 0.020 + 2 * 0.001 + lost + with_sums(flow, sums, 0.2) + 0.001 + 0.001, 1e-9);
}

TEST(Sums, GetTheWholeProcessorOnceThePassIsOver) {
  const Seconds flow = exchange_of(two_in_half(0, 0.25, 10));
  const Seconds sums = sums_at(0.1);
  const Seconds alone = with_sums(flow, sums, 0.2);
  const Seconds beside = with_sums(flow, sums, 0.2, 2);
  const Seconds pass = 0.010 / (1 - (0.2 * flow + sums) / beside);
  ASSERT_LT(pass, beside);
  const Seconds first = alone + (beside - alone) * pass / beside;
  EXPECT_NEAR(modelled(two_in_half(0.1, 0.25, 10)), 0.005 + 0.010 + first + alone + 0.001, 1e-9);
}

TEST(Sums, TheSimulationAgrees) {
  for (const double rate : {0.05, 0.2, 0.5, 2.0}) {
    for (const char* strategy : {"", R"(, "overlap": false)"}) {
      expect_simulated(two_in_half(rate, 0.25, 10, strategy), std::to_string(rate) + strategy);
    }
  }
}

TEST(Sums, NoStrategyGetsFasterBySlowerSums) {
  expect_longer("sums_gbytes_per_s", {1000.0, 10.0, 3.0, 1.0, 0.3, 0.1}, 0.1,
                [](Json& root, std::uint64_t seed) {
                  root["workload"]["dtype"] = "fp16";
                  root["cluster"]["device"]["overlap_slowdown"] =
                      0.1 * static_cast<double>(seed % 8);
                });
}

// By what joins a node's GPUs: a switch, or PCIe, host memory and bridges between two.
TEST(Slowed, IsAssumedByTheGpusPath) {
  Cluster cluster;
  cluster.library = Library::kNccl;
  const auto slowdown = [&](int gpus, double gigabytes, std::optional<bool> nvlink) {
    cluster.gpus_per_node = gpus;
    cluster.nccl.nvlink = nvlink;
    cluster.tiers = {{.name = "intra", .span = gpus, .bandwidth = gigabytes * 1e9}};
    return overlap_believed(cluster).likely.slowdown;
  };
  const double joined = overlap_prior(Library::kNccl, true).likely.slowdown;
  const double apart = overlap_prior(Library::kNccl, false).likely.slowdown;
  EXPECT_GT(apart, 2 * joined);
  EXPECT_EQ(slowdown(8, 300, {}), joined);
  EXPECT_EQ(slowdown(8, 31.5, {}), apart);
  EXPECT_EQ(slowdown(2, 56, {}), apart);
  EXPECT_EQ(slowdown(2, 300, {}), apart);
  EXPECT_EQ(slowdown(8, 31.5, true), joined);
  EXPECT_EQ(slowdown(1, 31.5, {}), joined);
}

TEST(Slowed, IsAssumedForNcclWithoutAMeasurement) {
  const auto cluster = [](const std::string& keys) {
    return input::parse_scenario(input::document_from_text("c.json", R"({"name": "s",
        "workload": {"name": "w", "tensors": [{"name": "a", "shape": [8]}]},
        "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1,
          "inter": {"latency_us": 10, "bandwidth_gbps": 10})" + keys +
                                                                         R"(},
        "strategies": [{"name": "alone"}]})"))
        .cluster;
  };
  const std::string v100 = R"(, "device": {"name": "V100")";
  const auto slowdown = [&](const std::string& keys) {
    return cluster(keys).device.overlap.slowdown;
  };
  EXPECT_EQ(slowdown(""), 0);  // which a note says
  EXPECT_EQ(slowdown(R"(, "device": {"name": "Gaudi"})"), 0);
  EXPECT_EQ(slowdown(R"(, "library": "links")"), 0);
  EXPECT_EQ(slowdown(v100 + "}"), overlap_prior(Library::kNccl, true).likely.slowdown);
  EXPECT_EQ(slowdown(R"(, "library": "gloo")"),
            overlap_prior(Library::kGloo, true).likely.slowdown);
  EXPECT_EQ(slowdown(v100 + R"(}, "library": "links")"), 0);
  EXPECT_EQ(slowdown(v100 + R"(, "overlap_slowdown": 0})"), 0);
  // What computation is said to lose in all is part of it.
  EXPECT_DOUBLE_EQ(slowdown(v100 + R"(, "data_parallel_slowdown": 0.1})"),
                   slowdown(v100 + "}") - 0.1);
  EXPECT_EQ(slowdown(v100 + R"(, "data_parallel_slowdown": 0.5})"), 0);
  const Overlap told = cluster(v100 + R"(, "overlap_slowdown": 0.1})").device.overlap;
  EXPECT_EQ(told.collective_slowdown, 0.1);
  EXPECT_EQ(told.delay, 0);
}

// To write down what is assumed changes nothing, and next to nothing more than that hardly
// anything: one key takes no other's value away.
TEST(Slowed, FollowsEachKeyWithoutSteps) {
  const auto cluster = [](const std::string& keys, const std::string& others) {
    return input::parse_scenario(input::document_from_text("c.json", R"({"name": "s",
        "workload": {"name": "w", "batch": 8, "operators": {"architecture": "resnet50"}},
        "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1,
          "inter": {"latency_us": 10, "bandwidth_gbps": 10},
          "device": {"base": "v100-sxm")" + keys + "}" + others +
                                                                         R"(},
        "strategies": [{"name": "alone"}]})"))
        .cluster;
  };
  constexpr double kTiny = 1e-9;
  for (const std::string library : {"nccl", "gloo", "links"}) {
    const std::string named = R"(, "library": ")" + library + "\"";
    const Overlap assumed = cluster("", named).device.overlap;
    const auto same = [&](const std::string& key, double value) {
      std::ostringstream text;
      text << std::setprecision(17) << R"(, ")" << key << R"(": )" << value;
      const Overlap told = cluster(text.str(), named).device.overlap;
      EXPECT_NEAR(told.slowdown, assumed.slowdown, 2 * kTiny) << library << text.str();
      EXPECT_NEAR(told.collective_slowdown, assumed.collective_slowdown, 2 * kTiny)
          << library << text.str();
      EXPECT_NEAR(told.delay, assumed.delay, 2 * kTiny) << library << text.str();
    };
    same("data_parallel_slowdown", kTiny);
    for (const double more : {0.0, kTiny}) {
      same("overlap_slowdown", assumed.slowdown + more);
      same("overlap_collective_slowdown", assumed.collective_slowdown + more);
      same("overlap_delay_us", (assumed.delay + more) / kMicrosecond);
    }
  }
  // Ranks differ as assumed, in whatever way they are said to.
  const Jitter assumed = cluster("", "").jitter;
  EXPECT_EQ(assumed.relative, Jitter::kGuess);
  const Jitter told = cluster("", R"(, "jitter": {"distribution": "exponential"})").jitter;
  EXPECT_EQ(told.kind, Jitter::Kind::kExponential);
  EXPECT_EQ(told.relative, Jitter::kGuess);
  EXPECT_TRUE(told.guessed);
  EXPECT_EQ(cluster("", R"(, "jitter": {"distribution": "normal"})").jitter.kind, assumed.kind);
  EXPECT_EQ(cluster("", R"(, "jitter": {"distribution": "none"})").jitter.kind,
            Jitter::Kind::kNone);
}

}  // namespace
}  // namespace syncline::run
