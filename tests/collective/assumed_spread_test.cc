#include "core/collective/assumed_spread.h"

#include <gtest/gtest.h>

#include <cmath>

namespace syncline::collective {
namespace {

TEST(AssumedSpread, HasNoJumpsAndIsWidestForMiddlePayloads) {
  for (const bool nccl : {false, true}) {
    EXPECT_GT(assumed_spread(nccl, 1 << 19), assumed_spread(nccl, 1e9));
    EXPECT_GT(assumed_spread(nccl, 1 << 19), assumed_spread(nccl, 1 << 13));
    double before = assumed_spread(nccl, 1);
    for (double bytes = 1; bytes < 1e15; bytes *= 1.1) {
      const double spread = assumed_spread(nccl, bytes);
      EXPECT_GT(spread, 0.3);
      EXPECT_LT(std::abs(spread - before), 0.02) << bytes;
      before = spread;
    }
  }
}

}  // namespace
}  // namespace syncline::collective
