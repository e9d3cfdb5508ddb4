// Names of operations (core/plan/describe.cc), as the trace shows them.
#include <gtest/gtest.h>

#include "tests/reports/traced_plan.h"

namespace syncline {
namespace {

TEST(Describe, EveryKindOfWork) {
  const Workload workload = test::named_workload(3);
  const Plan plan = test::small_plan(3);
  const auto text = [&](Work work) {
    return describe(test::op(0, std::move(work)), plan, workload);
  };
  EXPECT_EQ(text(Compute{Phase::kForward, 1, 0, -1}), "forward");
  EXPECT_EQ(text(Compute{Phase::kBackward, 1, 0, 0}), "backward layer0.weight");
  EXPECT_EQ(text(Compute{Phase::kBackward, 1, 0, 2}), "backward layer0.weight .. layer2.weight");
  EXPECT_EQ(text(Compute{Phase::kUpdate, 1, 0, 2}), "update");
  EXPECT_EQ(text(Compute{Phase::kUpdate, 1, 1, 2}), "update layer1.weight .. layer2.weight");
  EXPECT_EQ(text(Compute{Phase::kAverage, 1, 0, 2}), "average");
  EXPECT_EQ(text(Collective{CollectiveKind::kAllReduce, nullptr, {}, 1, 4, 3}),
            "all_reduce bucket 3");
  EXPECT_EQ(text(Encode{2, 0}), "encode bucket 2");
  EXPECT_EQ(text(Decode{2, 0}), "decode bucket 2");
  EXPECT_EQ(text(HostSync{1}), "host sync");
}

TEST(Describe, BuffersFollowTheTensors) {
  const Workload workload = test::named_workload(3);
  EXPECT_EQ(tensor_name(workload, 2), "layer2.weight");
  EXPECT_EQ(tensor_name(workload, 3), "bn.running_mean");
}

}  // namespace
}  // namespace syncline
