// The gradients that Fleet's static programs sum together, as Paddle's own passes join them.

#include <gtest/gtest.h>

#include "formats/dialect/dialects.h"
#include "tests/frameworks/facts.h"

namespace syncline::dialect {
namespace {

void expect_groups(const char* rule, bool in_order) {
  for (const test::Facts& facts : test::facts_of(rule)) {
    for (const Json& one : facts.cases) {
      SCOPED_TRACE(facts.place(one) + " " + one.at("config").dump());
      const test::Framework paddle{paddle_dialect(), test::cluster_of(4, 1)};
      const Workload workload = test::workload_of_case(facts, one);
      const plan::Plan plan = paddle.plan_of(one.at("config").dump(), workload);
      const auto ours = test::groups_of_plan(plan, workload);
      const auto theirs = test::groups_of_case(one);
      EXPECT_EQ(in_order ? ours : test::sorted_groups(ours),
                in_order ? theirs : test::sorted_groups(theirs));
    }
  }
}

TEST(PaddleFleetFacts, GroupsOfTheGraphsPass) { expect_groups("fleet_fused", true); }

// In any order, since gradients of one operator that travel apart go backwards.
TEST(PaddleFleetFacts, GroupsOfTheRawProgram) { expect_groups("fleet_raw", false); }

// ResNet-50 with 10 and 1000 classes, at 32 and 16 MiB; and as Paddle 3 sends it.
TEST(PaddleFleetFacts, ResNet50IsFusedAsTheDocumentsSay) {
  const test::Facts fused = test::facts_of("fleet_fused").front();
  const test::Facts raw = test::facts_of("fleet_raw").front();
  EXPECT_EQ(fused.cases[0].at("tensors").size(), 161u);
  EXPECT_EQ(fused.cases[0].at("groups").size(), 5u);
  EXPECT_EQ(fused.cases[1].at("groups").size(), 7u);
  EXPECT_EQ(raw.cases[0].at("groups").size(), 21u);
}

}  // namespace
}  // namespace syncline::dialect
