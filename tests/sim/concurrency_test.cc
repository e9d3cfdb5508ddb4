// What happens when collectives, ranks and switches get in each other's way: two streams on one
// link, flows that cannot fill it, a switch that carries less than its ports, ranks that compute at
// uneven speed. Model, merged simulation and step-by-step simulation must tell the same story.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/run/stragglers.h"
#include "tests/plan/planned.h"
#include "tests/support/simulated.h"

namespace syncline::sim {
namespace {

enum class Way { kModel, kMerged, kStep };

std::unique_ptr<run::Executor> executor_of(Way way, const Cluster& cluster) {
  run::ExecutorSettings settings{cluster, {}, 1};
  if (way == Way::kModel) return run::make_model_executor(settings);
  settings.simulation.granularity =
      way == Way::kStep ? Simulation::Granularity::kStep : Simulation::Granularity::kMerged;
  return make_sim_executor(settings);
}

constexpr std::int64_t kTenMiB = 10 * kMiB / 4;  // fp32 elements

// One all-reduce of 10 MiB over all ranks on each of `streams` streams, all ready at once.
Seconds all_reduces(Way way, const Cluster& cluster, const std::string& algorithm, int streams) {
  const int ranks = cluster.ranks();
  std::vector<std::pair<plan::StreamId, collective::Collective>> collectives;
  for (int s = 1; s <= streams; ++s) {
    collectives.emplace_back(s, all_reduce(ranks, algorithm, kTenMiB));
  }
  return time_of(*executor_of(way, cluster), plan_of(ranks, collectives));
}

struct Case {
  Way way;
  std::string algorithm;
  int ranks;
};

std::string name_of(Way way) {
  return way == Way::kModel ? "model" : way == Way::kMerged ? "merged" : "step";
}

std::string name_of_case(const testing::TestParamInfo<Case>& i) {
  const Case& c = i.param;
  return c.algorithm + "_" + std::to_string(c.ranks) + "_ranks_" + name_of(c.way);
}

std::vector<Case> cases(const std::vector<std::string>& algorithms, const std::vector<int>& ranks) {
  std::vector<Case> list;
  for (const Way way : {Way::kModel, Way::kMerged, Way::kStep}) {
    for (const auto& algorithm : algorithms) {
      for (const int n : ranks) list.push_back({way, algorithm, n});
    }
  }
  return list;
}

// The closed form on one tier: what of it is latency, what is transfer.
struct Closed {
  Seconds latency;
  Seconds transfer;
};

Closed closed_form(const std::string& algorithm, const Cluster& cluster) {
  const collective::Cost cost = collective::find_algorithm(algorithm)->cost(
      collective::CollectiveKind::kAllReduce, cluster.ranks(), kTenMiB);
  const Tier& tier = cluster.tiers.front();
  return {cost.steps * tier.latency,
          cost.volume * static_cast<double>(kTenMiB * 4) / tier.bandwidth};
}

// Messages of one round may drift apart step by step; elsewhere the arithmetic is exact.
double tolerance(Way way) { return way == Way::kModel ? 1e-9 : way == Way::kMerged ? 1e-5 : 0.02; }

class Concurrency : public testing::TestWithParam<Case> {};

TEST_P(Concurrency, TwoStreamsShareTheLink) {
  const auto& [way, algorithm, ranks] = GetParam();
  const Cluster cluster = flat_cluster(ranks);
  const Seconds one = all_reduces(way, cluster, algorithm, 1);
  const Seconds two = all_reduces(way, cluster, algorithm, 2);
  EXPECT_GT(two, 1.5 * one) << "the second was free";
  EXPECT_LT(two, 2 * one) << "one after the other";
  EXPECT_LT(two, 2 * one + cluster.tiers[0].latency);
}

TEST_P(Concurrency, OnlyTheLatencyOfTheSecondIsHidden) {
  const auto& [way, algorithm, ranks] = GetParam();
  // Step by step, the messages of two pipelined trees interleave: there is no closed form.
  if (algorithm == "double_binary_tree" && way == Way::kStep) return;
  const Cluster cluster = flat_cluster(ranks);
  const Closed closed = closed_form(algorithm, cluster);
  for (const int streams : {1, 2, 3}) {
    const Seconds expected = closed.latency + streams * closed.transfer;
    EXPECT_NEAR(all_reduces(way, cluster, algorithm, streams), expected, tolerance(way) * expected)
        << streams << " streams";
  }
}

INSTANTIATE_TEST_SUITE_P(TenMiB, Concurrency,
                         testing::ValuesIn(cases({"ring", "double_binary_tree", "halving_doubling"},
                                                 {2, 8})),
                         name_of_case);

// One TCP stream does not fill a fast link; several do.
class FlowCap : public testing::TestWithParam<Case> {};

TEST_P(FlowCap, TwoHalfLinkFlowsAreFreeAndAThirdIsNot) {
  const auto& [way, algorithm, ranks] = GetParam();
  Cluster cluster = flat_cluster(ranks);
  const Closed whole = closed_form(algorithm, cluster);
  cluster.tiers[0].flow_cap = cluster.tiers[0].bandwidth / 2;
  const Seconds one = whole.latency + 2 * whole.transfer;
  const Seconds three = whole.latency + 3 * whole.transfer;
  EXPECT_NEAR(all_reduces(way, cluster, algorithm, 1), one, tolerance(way) * one);
  EXPECT_NEAR(all_reduces(way, cluster, algorithm, 2), one, tolerance(way) * one);
  EXPECT_NEAR(all_reduces(way, cluster, algorithm, 3), three, tolerance(way) * three);
}

INSTANTIATE_TEST_SUITE_P(TenMiB, FlowCap,
                         testing::ValuesIn(cases({"ring", "halving_doubling"}, {2, 8})),
                         name_of_case);

// A switch that carries a quarter of what its ports could send it.
class Oversubscribed : public testing::TestWithParam<Way> {};

TEST_P(Oversubscribed, EveryEdgeOfAFlatRingCrossesTheSwitch) {
  for (const int ranks : {2, 3, 8}) {
    Cluster cluster = flat_cluster(ranks);
    const Closed closed = closed_form("ring", cluster);
    cluster.tiers[0].oversubscription = 4;
    const Seconds expected = closed.latency + 4 * closed.transfer;
    EXPECT_NEAR(all_reduces(GetParam(), cluster, "ring", 1), expected,
                tolerance(GetParam()) * expected)
        << ranks << " ranks";
  }
}

// 4 nodes x 4 GPUs: what leaves a node takes a switch with a quarter of the ports' capacity four
// times as long.
TEST_P(Oversubscribed, ANodeCrossesTheSwitchWithWhatLeavesIt) {
  struct Crossing {
    const char* algorithm;
    double share;   // of the payload, by a node
    double slower;  // at least so many times
  };
  for (const auto& [algorithm, share, slower] :
       {// Each round, every node's port carries one shard out and one in.
        Crossing{"ring", 2 * 15.0 / 16, 1},
        // The near exchanges, of a half and a quarter, stay in the node; each GPU sends an eighth
        // and a sixteenth across, and again on the way back.
        Crossing{"halving_doubling", 4 * 2 * (1.0 / 8 + 1.0 / 16), 1.5}}) {
    SCOPED_TRACE(algorithm);
    Cluster cluster = two_tier_cluster(4, 4);
    const Seconds wide = all_reduces(GetParam(), cluster, algorithm, 1);
    const Seconds transfer = share * static_cast<double>(kTenMiB * 4) / cluster.tiers[1].bandwidth;
    cluster.tiers[1].oversubscription = 4;
    const Seconds narrow = all_reduces(GetParam(), cluster, algorithm, 1);
    EXPECT_GT(narrow, slower * wide);
    EXPECT_NEAR(narrow - wide, 3 * transfer, 0.02 * 3 * transfer);
  }
}

TEST_P(Oversubscribed, TrafficThatStaysInTheNodeDoesNotNotice) {
  Cluster cluster = two_tier_cluster(4, 4);
  const auto inside = [&] {
    const auto collective = collective_of(collective::CollectiveKind::kAllReduce, "ring",
                                          collective::block_groups(16, 4), kTenMiB);
    return time_of(*executor_of(GetParam(), cluster), plan_of(16, {{1, collective}}));
  };
  const Seconds wide = inside();
  cluster.tiers[1].oversubscription = 16;
  EXPECT_NEAR(inside(), wide, 1e-9 * wide);
}

INSTANTIATE_TEST_SUITE_P(Ways, Oversubscribed,
                         testing::Values(Way::kModel, Way::kMerged, Way::kStep),
                         [](const auto& i) { return name_of(i.param); });

// Ranks that draw their speed again at each step: the simulation plays it out, the model knows the
// expectation.
struct Uneven {
  Jitter::Kind kind;
  double relative;
  int ranks;
  int period;
};

class Stragglers : public testing::TestWithParam<Uneven> {};

// A forward pass of 10 ms, and a backward pass of 20.
Workload one_weight() {
  Workload workload;
  workload.forward = 10e-3;
  workload.tensors.push_back({"w", {1000}, 1000, DType::kFp32, false, 0, -1, 20e-3});
  return workload;
}

Seconds mean_period(Way way, const Cluster& cluster, const plan::Plan& plan, int periods = 1500) {
  const auto ends = executor_of(way, cluster)->run(plan, {}, periods).timeline.period_ends;
  return (ends.back() - ends.front()) / (periods - 1);
}

TEST_P(Stragglers, TheSimulationsMeanIsTheModelsExpectation) {
  const auto& [kind, relative, ranks, period] = GetParam();
  Cluster cluster = flat_cluster(ranks);
  cluster.jitter = {kind, relative};
  const plan::Plan plan = plan::make_plan(one_weight(), cluster, plan::local_strategy(period), {});
  const Seconds expected = mean_period(Way::kModel, cluster, plan) / period;
  const Seconds seen = mean_period(Way::kMerged, cluster, plan) / period;
  EXPECT_NEAR(seen, expected, 0.03 * expected);

  // The exchange of 4 KB is next to nothing, so what is left over the mean is the waiting.
  const double waits = run::expected_slowest(cluster.jitter, ranks, period) - 1;
  EXPECT_GT(expected, 30e-3 * (1 + waits));
  EXPECT_GT(waits, 0.4 * relative);
  EXPECT_NEAR(seen - expected, 0, 0.1 * waits * 30e-3);
}

// Synchronous training meets at every step.
class SynchronousStragglers : public Stragglers {};

TEST_P(SynchronousStragglers, WaitAtEveryStep) {
  const auto& [kind, relative, ranks, unused] = GetParam();
  Workload workload;
  workload.forward = 10e-3;
  for (const char* name : {"a", "b", "c"}) {
    workload.tensors.push_back({name, {1000}, 1000, DType::kFp32, false, 0, -1, 5e-3});
  }
  Cluster cluster = flat_cluster(ranks);
  cluster.jitter = {kind, relative};
  const plan::Plan plan = plan::make_plan(workload, cluster, {}, {});
  const Seconds expected = mean_period(Way::kModel, cluster, plan);
  EXPECT_NEAR(mean_period(Way::kMerged, cluster, plan), expected, 0.03 * expected);
}

// A step of four micro-batches: its paces even out, but where ranks meet in each.
TEST(UnevenRanks, MicroBatchesEvenOut) {
  Workload workload = one_weight();
  workload.micro_batches = 4;
  Cluster cluster = flat_cluster(16);
  cluster.jitter = {Jitter::Kind::kNormal, 0.1};
  const auto mean_step = [&](Way way) {
    return mean_period(way, cluster, plan::make_plan(workload, cluster, {}), 800);
  };
  const double slowest = run::expected_slowest(cluster.jitter, 16, 1) - 1;
  const Seconds evened = mean_step(Way::kModel);
  EXPECT_NEAR(evened, 120e-3 * (1 + slowest / 2), 1e-3);  // the root of four
  EXPECT_NEAR(mean_step(Way::kMerged), evened, 0.005 * evened);
  workload.delayed_scaling = true;
  EXPECT_NEAR(mean_step(Way::kModel), 120e-3 * (1 + slowest), 1e-3);
  // Nobody said: both take what is expected.
  cluster.jitter.guessed = true;
  EXPECT_NEAR(mean_step(Way::kMerged), mean_step(Way::kModel), 1e-9);
}

// Groups of a DiLoCo training meet inside in each step: a step costs each what one alone waits.
TEST(UnevenRanks, GroupsWaitForTheirOwnInEachStep) {
  Cluster cluster = flat_cluster(16);
  cluster.jitter = {Jitter::Kind::kNormal, 0.1};
  Strategy strategy = plan::local_strategy(50);
  strategy.fusion.rule = Fusion::Rule::kOne;
  strategy.local_sgd.subgroup = 4;
  strategy.local_sgd.outer.optimizer = Outer::Optimizer::kNesterov;
  const plan::Plan plan = plan::make_plan(one_weight(), cluster, strategy);
  EXPECT_EQ(run::waits_of(plan), (run::Waits{4, 4, 1, 50}));
  const double inside = run::expected_slowest(cluster.jitter, 4, 1);
  for (const Way way : {Way::kModel, Way::kMerged}) {
    const Seconds step = plan::last_period(*executor_of(way, cluster), plan) / 50;
    EXPECT_GT(step, 30e-3 * inside);
    EXPECT_LT(step, 30e-3 * (inside + 0.02));
  }
}

std::vector<Uneven> unevens(const std::vector<int>& periods) {
  std::vector<Uneven> list;
  for (const int ranks : {4, 16}) {
    for (const int period : periods) {
      list.push_back({Jitter::Kind::kNormal, 0.3, ranks, period});
      list.push_back({Jitter::Kind::kExponential, 1.0, ranks, period});
    }
  }
  return list;
}

std::string uneven_name(const testing::TestParamInfo<Uneven>& i) {
  return std::string(i.param.kind == Jitter::Kind::kNormal ? "normal_" : "exponential_") +
         std::to_string(i.param.ranks) + "_ranks_period_" + std::to_string(i.param.period);
}

INSTANTIATE_TEST_SUITE_P(Jitter, Stragglers, testing::ValuesIn(unevens({1, 4})), uneven_name);
INSTANTIATE_TEST_SUITE_P(Jitter, SynchronousStragglers, testing::ValuesIn(unevens({1})),
                         uneven_name);

}  // namespace
}  // namespace syncline::sim
