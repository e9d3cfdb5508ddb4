// Where a rank stands among the groups of a collective.
#include "core/collective/collective.h"

#include <gtest/gtest.h>

namespace syncline::collective {
namespace {

TEST(Groups, FindARanksPlace) {
  EXPECT_EQ(place_in(world_group(4), 2)->member, 2);
  EXPECT_EQ(place_in(block_groups(4, 2), 3)->group, 1);
  EXPECT_EQ(place_in(block_groups(4, 2), 3)->member, 1);
  EXPECT_FALSE(place_in(leader_group(4, 2), 3).has_value());
  EXPECT_EQ(place_in(leader_group(4, 2), 2)->member, 1);
  EXPECT_EQ(place_in(shard_groups(4, 2), 3)->group, 1);
}

}  // namespace
}  // namespace syncline::collective
