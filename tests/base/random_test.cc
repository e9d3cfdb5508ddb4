// The generator is the published one: a seed means the same on every machine and in every version.
#include "core/base/random.h"

#include <gtest/gtest.h>

namespace syncline {
namespace {

// The row that splitmix64 is checked against everywhere.
TEST(Random, IsSplitmix64) {
  Random random(1234567);
  for (const std::uint64_t bits : {6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                                   4593380528125082431U, 16408922859458223821U}) {
    EXPECT_EQ(random.bits(), bits);
  }
}

TEST(Random, StreamsOfOneSeedDiffer) {
  Random first(1, 0), second(1, 1), again(1, 0);
  const std::uint64_t bits = first.bits();
  EXPECT_NE(bits, second.bits());
  EXPECT_EQ(bits, again.bits());
}

TEST(Random, DrawsAreWhatTheySay) {
  Random random(7, 3);
  constexpr int kDraws = 100000;
  double uniforms = 0, normals = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double uniform = random.uniform();
    ASSERT_TRUE(uniform > 0 && uniform < 1);
    ASSERT_LT(random.below(10), 10U);
    const double normal = random.normal();
    uniforms += uniform;
    normals += normal;
    squares += normal * normal;
  }
  EXPECT_NEAR(uniforms / kDraws, 0.5, 0.01);
  EXPECT_NEAR(normals / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
}

}  // namespace
}  // namespace syncline
