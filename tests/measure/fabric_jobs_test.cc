// Jobs that share a fabric: exact cases of max-min shares, and where nothing is shared.
#include "studies/rows/fabric_jobs.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/sim/sim_executor.h"
#include "tests/support/fabrics.h"
#include "tests/support/scratch.h"
#include "tests/support/studies.h"

namespace syncline::measure {
namespace {

// A job that only communicates: one gradient over a ring of these nodes, without latency.
Scenario job_on(fabric::Topology topology, const std::vector<int>& nodes, Seconds backward = 0) {
  topology.shared = true;
  Cluster tiers = flat_cluster(static_cast<int>(nodes.size()));
  tiers.tiers[0].latency = 0;
  Scenario scenario = ring_job(on_fabric(tiers, std::move(topology), nodes), backward);
  scenario.name = "on " + std::to_string(nodes.front());
  return scenario;
}

// Two rounds of half of the payload over half a port.
constexpr Seconds kAlone = 4.0 * (1 << 24) / (kNodePort / 2);

FabricJobs fabric_jobs_of(Scenario first, std::vector<Scenario> others) {
  first.others = std::move(others);
  return together(first, first.strategies.front()).fabric_jobs;
}

// Two leaves of four nodes, whose trunk is half a node's port.
fabric::Topology narrow() { return leaves(8, 4, 8); }

TEST(FabricJobs, EqualJobsHaveHalfOfASpineEach) {
  const FabricJobs fabric_jobs =
      fabric_jobs_of(job_on(narrow(), {0, 4}), {job_on(narrow(), {1, 5})});
  ASSERT_EQ(fabric_jobs.jobs.size(), 2U);
  for (const FabricJobs::Job& job : fabric_jobs.jobs) {
    EXPECT_NEAR(job.alone, kAlone, 1e-9 * kAlone);
    EXPECT_NEAR(job.together, 2 * kAlone, 2e-9 * kAlone);
  }
  ASSERT_FALSE(fabric_jobs.hot.empty());
  EXPECT_NE(fabric_jobs.hot.front().first.find("spine"), std::string::npos);
  EXPECT_NEAR(fabric_jobs.hot.front().second, 1, 1e-9);
  const FabricJobs three = fabric_jobs_of(job_on(narrow(), {0, 4}),
                                          {job_on(narrow(), {1, 5}), job_on(narrow(), {2, 6})});
  for (const FabricJobs::Job& job : three.jobs)
    EXPECT_NEAR(job.together, 3 * kAlone, 1e-8 * kAlone);
}

TEST(FabricJobs, JobsOnOtherLinksAreNotSlowed) {
  for (const std::vector<int>& nodes : {std::vector<int>{1, 2}, {5, 7}}) {
    const FabricJobs fabric_jobs =
        fabric_jobs_of(job_on(narrow(), {0, 4}), {job_on(narrow(), nodes)});
    for (const FabricJobs::Job& job : fabric_jobs.jobs) EXPECT_EQ(job.together, job.alone);
  }
  // On a torus of one dimension, a ring of neighbours each.
  const fabric::Topology torus = fabric::torus({8}, kNodePort / 4);
  const FabricJobs fabric_jobs = fabric_jobs_of(job_on(torus, {0, 1}), {job_on(torus, {4, 5})});
  for (const FabricJobs::Job& job : fabric_jobs.jobs) EXPECT_EQ(job.together, job.alone);
}

// Max-min is by message: two of a job have twice what another's only one has.
TEST(FabricJobs, SharesAreByMessage) {
  const FabricJobs fabric_jobs =
      fabric_jobs_of(job_on(narrow(), {0, 4, 1, 5}), {job_on(narrow(), {2, 6})});
  EXPECT_NEAR(fabric_jobs.jobs[0].together / fabric_jobs.jobs[0].alone, 1.5, 1e-6);
  EXPECT_NEAR(fabric_jobs.jobs[1].together / fabric_jobs.jobs[1].alone, 3, 1e-6);
}

// A job that hardly communicates takes what it sends, and no more.
TEST(FabricJobs, ARareJobTakesItsMean) {
  const FabricJobs fabric_jobs =
      fabric_jobs_of(job_on(narrow(), {0, 4}), {job_on(narrow(), {1, 5}, 18 * kAlone)});
  // It meets a busy link each time, so it sends for twice as long: 2 of 20, at half of the spine.
  EXPECT_NEAR(fabric_jobs.jobs[1].together, 20 * kAlone, 1e-3 * kAlone);
  EXPECT_NEAR(fabric_jobs.jobs[0].together, kAlone / (1 - 0.5 * 2 / 20), 1e-3 * kAlone);
}

// A calibration's times are those of a job alone.
TEST(FabricJobs, SlowsCalibratedCollectives) {
  const auto calibrated = [](const std::vector<int>& nodes) {
    Scenario scenario = job_on(narrow(), nodes);
    scenario.cluster.cost_model = [](const collective::Collective& asked) {
      return CollectiveTime{.time = kAlone * static_cast<double>(asked.bytes()) / (4 << 24),
                            .measured_on = 2};
    };
    return scenario;
  };
  const FabricJobs fabric_jobs = fabric_jobs_of(calibrated({0, 4}), {calibrated({1, 5})});
  for (const FabricJobs::Job& job : fabric_jobs.jobs) {
    EXPECT_NEAR(job.alone, kAlone, 1e-9 * kAlone);
    EXPECT_NEAR(job.together, 2 * kAlone, 1e-3 * kAlone);
  }
}

// What no job alone can fill, several may.
TEST(FabricJobs, FillsLinksThatEachAloneCouldNot) {
  // Two of four nodes have room on a trunk of two ports; with the other two they do not.
  const fabric::Topology half = leaves(8, 4, 2);
  const FabricJobs fabric_jobs =
      fabric_jobs_of(job_on(half, {0, 4, 1, 5}), {job_on(half, {2, 6, 3, 7})});
  for (const FabricJobs::Job& job : fabric_jobs.jobs) {
    EXPECT_NEAR(job.together / job.alone, 2, 1e-6);
  }
}

// What a search goes by: the baseline's own step, and links that it leaves alone as others load
// them.
TEST(FabricJobs, ASearchHasWhatTheOthersLeave) {
  Scenario first = job_on(narrow(), {0, 4});
  first.others = {job_on(narrow(), {1, 5})};
  const FabricJobs fabric_jobs = together(first, first.strategies.front()).fabric_jobs;
  const Scenario left = beside_others(first);
  EXPECT_TRUE(left.others.empty());
  const Seconds step = test::step_time(left, left.strategies.front());
  EXPECT_NEAR(step, fabric_jobs.jobs[0].together, 1e-9 * step);
  // Neighbours at one leaf send nothing up; who did would have half of what the others load.
  Scenario inside = job_on(narrow(), {2, 3});
  inside.others = {job_on(narrow(), {1, 5})};
  const fabric::Topology& whole = *inside.cluster.topology;
  const Scenario quiet = beside_others(inside);
  int loaded = 0;
  for (std::size_t link = 0; link < whole.links.size(); ++link) {
    const double share = quiet.cluster.topology->links[link].capacity / whole.links[link].capacity;
    EXPECT_LE(share, 1);
    loaded += share < 0.5 ? 1 : 0;
  }
  EXPECT_EQ(loaded, 4);  // up and down at both leaves
}

// A job beside itself: rows are steps under load, and so is what they are compared with.
TEST(FabricJobs, RowsAreStepsWithTheOthers) {
  const test::Scratch scratch;
  test::write_text(scratch.path("job.json"), R"json({
    "name": "job",
    "workload": {"name": "w", "tensors": [{"name": "w", "shape": [4194304], "backward_us": 1000}]},
    "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 1,
                "inter": {"latency_us": 10, "bandwidth_gbps": 8},
                "fabric": {"kind": "leaf_spine", "nodes": 8, "nodes_per_leaf": 4,
                           "oversubscription": 4, "placement": "spread"}},
    "others": [{"scenario": "job.json", "placement": "spread"}],
    "strategies": [{"name": "ring", "algorithm": "ring"},
                   {"name": "halving", "algorithm": "halving_doubling"}]
  })json");
  const input::Document document = input::read_document(scratch.path("job.json"));
  for (const bool simulated : {false, true}) {
    const auto rows =
        test::studied(document, simulated ? sim::make_sim_executor : run::make_model_executor).rows;
    ASSERT_EQ(rows.size(), 2U);
    for (const Row& row : rows) {
      ASSERT_EQ(row.fabric_jobs.jobs.size(), 2U);
      EXPECT_EQ(row.metrics.step_time, row.fabric_jobs.jobs[0].together);
      EXPECT_GT(row.metrics.step_time, 1.2 * row.fabric_jobs.jobs[0].alone);
      EXPECT_LE(row.metrics.lower_bound, row.metrics.step_time);
      EXPECT_LT(row.step.low, row.metrics.step_time);
      EXPECT_EQ(row.speedup, rows[0].metrics.step_time / row.metrics.step_time);
      const Row travelled = row_from_bytes(row_bytes(row));
      EXPECT_EQ(travelled.fabric_jobs.jobs[1].name, "job");
      EXPECT_EQ(travelled.fabric_jobs.jobs[1].together, row.fabric_jobs.jobs[1].together);
      EXPECT_EQ(travelled.fabric_jobs.hot, row.fabric_jobs.hot);
      EXPECT_EQ(travelled.executor, row.executor);
    }
    // Equal jobs with equal strategies are slowed alike.
    const auto& both = rows[0].fabric_jobs.jobs;
    EXPECT_NEAR(both[1].together, both[0].together, 1e-3 * both[0].together);
  }
}

}  // namespace
}  // namespace syncline::measure
