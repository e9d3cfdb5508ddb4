// "others": the jobs beside a scenario's own, from their files, and where they may not be.
#include <gtest/gtest.h>

#include "core/fabric/topology.h"
#include "formats/input/document.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::input {
namespace {

using test::contains;

// Four nodes of a fabric of eight.
Json half_of_a_fabric() {
  return Json::parse(R"json({
    "name": "four",
    "workload": {"name": "w", "tensors": [{"name": "fc.weight", "shape": [10]}]},
    "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 1,
                "inter": {"latency_us": 10, "bandwidth_gbps": 8},
                "fabric": {"kind": "leaf_spine", "nodes": 8, "nodes_per_leaf": 4, "spines": 2}},
    "strategies": [{"name": "plain"}]
  })json");
}

class Others : public testing::Test {
 protected:
  Scenario read(const Json& first) {
    test::write_text(scratch_.path("first.json"), first.dump());
    return parse_scenario(read_document(scratch_.path("first.json")));
  }
  void expect_refused(const Json& first, const std::string& words) {
    const std::string said = test::input_error([&] { read(first); });
    EXPECT_TRUE(contains(said, words)) << said;
  }
  const test::Scratch scratch_;
};

TEST_F(Others, HaveTheNodesThatAreLeft) {
  Json first = half_of_a_fabric();
  first["cluster"]["fabric"]["placement"] = "spread";
  first["others"] = {{{"scenario", "first.json"}}};
  const Scenario scenario = read(first);
  EXPECT_EQ(scenario.cluster.topology->nodes, (std::vector<int>{0, 4, 1, 5}));
  ASSERT_EQ(scenario.others.size(), 1U);
  EXPECT_EQ(scenario.others[0].cluster.topology->nodes, (std::vector<int>{2, 3, 6, 7}));
  EXPECT_TRUE(scenario.others[0].others.empty());
  EXPECT_EQ(scenario.others[0].cluster.topology->links.size(),
            scenario.cluster.topology->links.size());
  first["others"][0]["placement"] = {7, 6, 3, 2};
  EXPECT_EQ(read(first).others[0].cluster.topology->nodes, (std::vector<int>{7, 6, 3, 2}));
}

TEST_F(Others, AreRefusedInWords) {
  Json first = half_of_a_fabric();
  first["others"] = {{{"scenario", "first.json"}, {"placement", {3, 4, 5, 6}}}};
  expect_refused(first, "others[0].placement: node 3 is another job's");
  first["others"] = {{{"scenario", "first.json"}}, {{"scenario", "first.json"}}};
  expect_refused(first, "it has 4 nodes, and those before it leave 0 of the fabric's 8");
  first["others"] = {{{"scenario", "none.json"}}};
  expect_refused(first, "none.json");
  first["others"] = {{{"scenario", "first.json"}, {"place", "spread"}}};
  expect_refused(first, "placement");
  first = half_of_a_fabric();
  first["others"] = {{{"scenario", "first.json"}}};
  first["simulation"] = {{"grain", "step"}};
  expect_refused(first, "simulated merged");
  first["simulation"] = {{"grain", "merged"}};
  first["cluster"]["fabric"] = "rdma";
  expect_refused(first, "others: they share the cluster's fabric");
}

TEST_F(Others, AreOnlyForRun) {
  Json first = half_of_a_fabric();
  first["others"] = {{{"scenario", "first.json"}}};
  read(first);
  EXPECT_THROW(parse_lone_scenario(read_document(scratch_.path("first.json"))), InputError);
}

}  // namespace
}  // namespace syncline::input
