// Names of operations (core/plan/describe.cc), as the trace shows them.
#include <gtest/gtest.h>

#include "tests/reports/traced_plan.h"

namespace syncline::reports {
namespace {

TEST(Describe, EveryKindOfWork) {
  const Workload workload = test::named_workload(3);
  const plan::Plan plan = test::small_plan(3);
  const auto text = [&](plan::Work work) {
    return plan::describe(test::op(0, std::move(work)), plan, workload);
  };
  EXPECT_EQ(text(plan::Compute{plan::Phase::kForward, 1, 0, -1}), "forward");
  EXPECT_EQ(text(plan::Compute{plan::Phase::kBackward, 1, 0, 0}), "backward layer0.weight");
  EXPECT_EQ(text(plan::Compute{plan::Phase::kBackward, 1, 0, 2}),
            "backward layer0.weight .. layer2.weight");
  EXPECT_EQ(text(plan::Compute{plan::Phase::kUpdate, 1, 0, 2}), "update");
  EXPECT_EQ(text(plan::Compute{plan::Phase::kUpdate, 1, 1, 2}),
            "update layer1.weight .. layer2.weight");
  EXPECT_EQ(text(plan::Compute{plan::Phase::kAverage, 1, 0, 2}), "average");
  EXPECT_EQ(
      text(collective::Collective{collective::CollectiveKind::kAllReduce, nullptr, {}, 1, 4, 3}),
      "all_reduce bucket 3");
  EXPECT_EQ(text(plan::Busy{plan::Busy::Reason::kEncode, 0, 2}), "encode bucket 2");
  EXPECT_EQ(text(plan::Busy{plan::Busy::Reason::kDecode, 0, 2}), "decode bucket 2");
  EXPECT_EQ(text(plan::Busy{plan::Busy::Reason::kHost, 1}), "host sync");
}

TEST(Describe, BuffersFollowTheTensors) {
  const Workload workload = test::named_workload(3);
  EXPECT_EQ(plan::tensor_name(workload, 2), "layer2.weight");
  EXPECT_EQ(plan::tensor_name(workload, 3), "bn.running_mean");
}

}  // namespace
}  // namespace syncline::reports
