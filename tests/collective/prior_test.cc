#include "core/collective/library.h"

#include <gtest/gtest.h>

#include <cmath>

namespace syncline::collective {
namespace {

constexpr Fabric kAll[] = {Fabric::kUnknown, Fabric::kTcp,  Fabric::kTcpx,     Fabric::kEfa,
                           Fabric::kRdma,    Fabric::kRccl, Fabric::kSlingshot};

TEST(Prior, HasNoJumpsAndLeavesTimesRisingWithThePayload) {
  for (const Fabric fabric : kAll) {
    for (const bool nvlink : {false, true}) {
      for (const bool across : {false, true}) {
        const Path path{across, fabric, nvlink};
        Prior before = nccl_prior(path, 1);
        for (double bytes = 1; bytes < 1e15; bytes *= 1.1) {
          const Prior prior = nccl_prior(path, bytes);
          EXPECT_GT(prior.spread, 0.15);
          EXPECT_LT(std::abs(prior.spread - before.spread), 0.03) << bytes;
          EXPECT_LT(std::abs(prior.bias - before.bias), 0.04) << bytes;
          // A payload of a tenth more never takes less where its bytes are what takes long.
          EXPECT_GT(prior.bias - before.bias, -std::log(1.1) / 4) << bytes;
          before = prior;
        }
      }
    }
  }
}

}  // namespace
}  // namespace syncline::collective
