// Jobs that share a fabric: exact cases of max-min shares, and where nothing is shared.
#include "core/measure/company.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/fabrics.h"

namespace syncline::measure {
namespace {

// A job that only communicates: one gradient over a ring of these nodes, without latency.
Scenario job_on(fabric::Topology topology, const std::vector<int>& nodes, Seconds backward = 0) {
  Scenario scenario;
  topology.shared = true;
  Cluster tiers = flat_cluster(static_cast<int>(nodes.size()));
  tiers.tiers[0].latency = 0;
  scenario.name = "on " + std::to_string(nodes.front());
  scenario.cluster = on_fabric(tiers, std::move(topology), nodes);
  Tensor tensor;
  tensor.name = "w";
  tensor.shape = {1 << 24};
  tensor.elements = 1 << 24;
  tensor.backward = backward;
  scenario.workload.name = "one";
  scenario.workload.batch = 1;
  scenario.workload.tensors = {tensor};
  Strategy strategy;
  strategy.name = "ring";
  strategy.algorithm = "ring";
  scenario.strategies = {strategy};
  scenario.baseline = "ring";
  return scenario;
}

Company company_of(Scenario first, std::vector<Scenario> others) {
  first.others = std::move(others);
  return together(first, first.strategies.front()).company;
}

// Two leaves of four nodes, whose trunk is half a node's port.
fabric::Topology narrow() { return leaves(8, 4, 8); }

TEST(Company, EqualJobsHaveHalfOfASpineEach) {
  const Company company = company_of(job_on(narrow(), {0, 4}), {job_on(narrow(), {1, 5})});
  ASSERT_EQ(company.jobs.size(), 2U);
  // Two rounds of half of the payload over half a port.
  const Seconds alone = 4.0 * (1 << 24) / (kNodePort / 2);
  for (const Company::Job& job : company.jobs) {
    EXPECT_NEAR(job.alone, alone, 1e-9 * alone);
    EXPECT_NEAR(job.together, 2 * alone, 2e-9 * alone);
  }
  ASSERT_FALSE(company.hot.empty());
  EXPECT_NE(company.hot.front().first.find("spine"), std::string::npos);
  EXPECT_NEAR(company.hot.front().second, 1, 1e-9);
  const Company three =
      company_of(job_on(narrow(), {0, 4}), {job_on(narrow(), {1, 5}), job_on(narrow(), {2, 6})});
  for (const Company::Job& job : three.jobs) EXPECT_NEAR(job.together, 3 * alone, 1e-8 * alone);
}

TEST(Company, NobodySlowsJobsOnOtherLinks) {
  for (const std::vector<int>& nodes : {std::vector<int>{1, 2}, {5, 7}}) {
    const Company company = company_of(job_on(narrow(), {0, 4}), {job_on(narrow(), nodes)});
    for (const Company::Job& job : company.jobs) EXPECT_EQ(job.together, job.alone);
  }
  // On a torus of one dimension, a ring of neighbours each.
  const fabric::Topology torus = fabric::torus({8}, kNodePort / 4);
  const Company company = company_of(job_on(torus, {0, 1}), {job_on(torus, {4, 5})});
  for (const Company::Job& job : company.jobs) EXPECT_EQ(job.together, job.alone);
}

// Max-min is by message: two of a job have twice what another's only one has.
TEST(Company, SharesAreByMessage) {
  const Company company = company_of(job_on(narrow(), {0, 4, 1, 5}), {job_on(narrow(), {2, 6})});
  EXPECT_NEAR(company.jobs[0].together / company.jobs[0].alone, 1.5, 1e-6);
  EXPECT_NEAR(company.jobs[1].together / company.jobs[1].alone, 3, 1e-6);
}

// A job that hardly communicates takes what it sends, and no more.
TEST(Company, ARareJobTakesItsMean) {
  const Seconds message = 4.0 * (1 << 24) / (kNodePort / 2);
  const Company company =
      company_of(job_on(narrow(), {0, 4}), {job_on(narrow(), {1, 5}, 18 * message)});
  // It meets a busy link each time, so it sends for twice as long: 2 of 20, at half of the spine.
  EXPECT_NEAR(company.jobs[1].together, 20 * message, 1e-3 * message);
  EXPECT_NEAR(company.jobs[0].together, message / (1 - 0.5 * 2 / 20), 1e-3 * message);
}

// What no job alone can fill, several may.
TEST(Company, FillsLinksThatEachAloneCouldNot) {
  // Two of four nodes have room on a trunk of two ports; with the other two they do not.
  const fabric::Topology half = leaves(8, 4, 2);
  const Company company = company_of(job_on(half, {0, 4, 1, 5}), {job_on(half, {2, 6, 3, 7})});
  for (const Company::Job& job : company.jobs) {
    EXPECT_NEAR(job.together / job.alone, 2, 1e-6);
  }
}

}  // namespace
}  // namespace syncline::measure
