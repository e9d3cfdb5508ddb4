// Where a step's time goes, over random scenarios in every framework's words and all executors that
// cost: the parts are none negative, and add up to the step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/executor.h"
#include "core/metrics/bound.h"
#include "core/sim/sim_executor.h"
#include "formats/dialect/dialect.h"
#include "studies/explain/explanation.h"
#include "tests/support/full_scenario.h"
#include "tests/support/random_configs.h"

namespace syncline::measure {
namespace {

struct Costing {
  const char* name;
  const char* granularity;  // of the simulation; nullptr: the model
  int seeds;
};

class Accounting : public testing::TestWithParam<Costing> {};

// What each rank's compute stream does, and what is on the network.
void expect_to_add_up(const Evaluated& evaluated, double tolerance, const std::string& what) {
  const Metrics& metrics = evaluated.metrics;
  const Seconds step = metrics.step_time;
  const Seconds little = tolerance * step;
  ASSERT_GT(step, 0) << what;
  ASSERT_NEAR(metrics.compute + metrics.comm_overhead + metrics.exposed, step, little) << what;
  ASSERT_GE(metrics.exposed, 0) << what;
  ASSERT_GE(metrics.comm_overhead, 0) << what;
  ASSERT_GE(metrics.communication, 0) << what;
  ASSERT_LE(metrics.communication, step + little) << what;
  // The compute stream stands still for nothing but collectives, unless the host waits and decodes
  // on their streams too, or for ticks.
  const bool elsewhere = std::ranges::any_of(evaluated.plan.ops, [](const plan::Op& op) {
    return op.stream != plan::kComputeStream &&
           !std::holds_alternative<collective::Collective>(op.work) &&
           plan::reason_of(op.work) != plan::Busy::Reason::kSums &&
           plan::reason_of(op.work) != plan::Busy::Reason::kInterference;
  });
  if (elsewhere) return;
  ASSERT_LE(metrics.exposed, metrics.communication + little) << what;
}

void expect_shares_to_add_up(const Evaluated& evaluated, const Scenario& scenario,
                             const std::string& what) {
  collective::CostCache cache(scenario.cluster);
  const Bottleneck parts = bottleneck_of(evaluated, scenario, cache);
  const Seconds sum = parts.compute + parts.stragglers + parts.overhead + parts.comm_overhead +
                      parts.communication();
  ASSERT_NEAR(sum, parts.step, 1e-9 * parts.step) << what;
  for (const Seconds part : {parts.compute, parts.stragglers, parts.overhead, parts.comm_overhead,
                             parts.start_up, parts.transfer}) {
    ASSERT_GE(part, -1e-12 * parts.step) << what;
  }
}

TEST_P(Accounting, PartsAddUpToTheStep) {
  const Costing way = GetParam();
  for (const auto& name : dialect::dialect_names()) {
    for (int seed = 1; seed <= way.seeds; ++seed) {
      Json root = test::random_framework_scenario(static_cast<std::uint64_t>(seed), name, 8);
      if (way.granularity != nullptr) root["simulation"]["grain"] = way.granularity;
      const Scenario scenario = test::parsed(root);
      const run::ExecutorSettings settings{scenario.cluster, scenario.simulation, scenario.seed};
      const auto executor = way.granularity == nullptr ? run::make_model_executor(settings)
                                                       : sim::make_sim_executor(settings);
      collective::CostCache cache(scenario.cluster);
      const Evaluated evaluated =
          evaluate_strategy(scenario, scenario.strategies.front(), *executor, cache);
      const std::string what = name + " " + std::to_string(seed) + ": " + root.dump();
      // SimGrid's precision is absolute.
      expect_to_add_up(evaluated, way.granularity == nullptr ? 1e-9 : 1e-6, what);
      if (way.granularity == nullptr && scenario.cluster.ranks() > 1) {
        expect_shares_to_add_up(evaluated, scenario, what);
      }
      // Message by message a collective may be some percent faster than its closed form.
      const double tolerance = way.granularity == nullptr ? 1e-7 : 0.08;
      const Seconds bound = lower_bound_of(scenario, scenario.strategies.front(),
                                           std::numeric_limits<double>::infinity(), cache);
      ASSERT_LE(bound, evaluated.metrics.step_time * (1 + tolerance)) << what;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Executors, Accounting,
                         testing::Values(Costing{"model", nullptr, 300},
                                         Costing{"merged", "merged", 40},
                                         Costing{"step", "step", 20}),
                         [](const auto& i) { return std::string(i.param.name); });

// A caller of the library may forget the levels of the network.
TEST(Evaluation, TiersJoinAllRanks) {
  Job job;
  job.workload.forward = 1;
  job.workload.tensors.resize(1);
  job.workload.tensors[0].elements = 1000;
  job.cluster.name = "pair";
  job.cluster.nodes = 2;
  const auto refusal = [&]() -> std::string {
    collective::CostCache cache(job.cluster);
    try {
      evaluate_strategy(job, {}, *run::make_model_executor({job.cluster}), cache);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(
      refusal(),
      "the tiers of cluster 'pair' join 1 of its 2 ranks: the last one's span is all of them");
  job.cluster.tiers = {{.name = "inter", .span = 2, .latency = 1e-5, .bandwidth = 1e9}};
  EXPECT_EQ(refusal(), "");
}

// Runs a plan like the model; counts the walks of messages at its begin, when a simulation starts
// its process.
class Counting : public run::Executor {
 public:
  explicit Counting(const Cluster& cluster) : model_(run::make_model_executor({cluster})) {}
  std::string_view name() const override { return "counting"; }
  run::Outcome run(const plan::Plan& plan, const run::Gradients& input, int periods) override {
    walks = collective::walks();
    return model_->run(plan, input, periods);
  }

  std::size_t walks = 0;

 private:
  std::unique_ptr<run::Executor> model_;
};

TEST(Evaluation, MessagesAreWalkedBeforeASimulationStartsItsProcess) {
  Job job;
  job.workload.forward = 1;
  job.workload.tensors.resize(1);
  job.workload.tensors[0].elements = 1 << 20;
  job.cluster.name = "large";
  job.cluster.nodes = 1024;
  job.cluster.gpus_per_node = 8;
  job.cluster.tiers = {{.name = "intra", .span = 8, .latency = 5e-6, .bandwidth = 25e9},
                       {.name = "inter", .span = 8192, .latency = 2e-5, .bandwidth = 1e9}};
  Strategy strategy;
  strategy.algorithm = "double_binary_tree";
  collective::CostCache cache(job.cluster);
  Counting executor(job.cluster);
  const std::size_t before = collective::walks();
  evaluate_strategy(job, strategy, executor, cache);
  EXPECT_GT(executor.walks, before);
  EXPECT_EQ(collective::walks(), executor.walks);
}

}  // namespace
}  // namespace syncline::measure
