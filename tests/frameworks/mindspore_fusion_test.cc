// The gradients that MindSpore's compiled graphs sum together.

#include <gtest/gtest.h>

#include "formats/dialect/dialects.h"
#include "tests/frameworks/facts.h"

namespace syncline::dialect {
namespace {

// MindSpore 2.10 fuses nothing unless comm_fusion is given or parameters have ids, which the
// dialect, as MindSpore 2.2 does, reads as one sum of all.
TEST(MindSporeFusionFacts, GradientsThatTravelTogether) {
  for (const test::Facts& facts : test::facts_of("fusion")) {
    int compared = 0, apart = 0;
    for (const Json& one : facts.cases) {
      const Json fusion = one.at("config").value("comm_fusion", Json{{"openstate", false}});
      if (fusion.contains("openstate")) {
        EXPECT_EQ(one.at("groups").size(), one.at("tensors").size());
        ++apart;
        continue;
      }
      SCOPED_TRACE(facts.place(one) + " " + one.at("config").dump());
      const test::Framework mindspore{mindspore_dialect(), test::cluster_of(8, 1)};
      const Workload workload = test::workload_of_case(facts, one);
      const plan::Plan plan = mindspore.plan_of(one.at("config").dump(), workload);
      EXPECT_EQ(test::sorted_groups(test::groups_of_plan(plan, workload)),
                test::sorted_groups(test::groups_of_case(one)));
      ++compared;
    }
    EXPECT_GT(compared, 50);
    EXPECT_GT(apart, 10);
  }
}

}  // namespace
}  // namespace syncline::dialect
