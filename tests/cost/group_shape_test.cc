// How groups lie on nodes, told without counting members: as if they were counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "core/cost/cost_model_provider.h"

namespace syncline::cost {
namespace {

GroupShape counted(const collective::Groups& groups, int gpus_per_node) {
  std::map<int, int> members;
  for (int member = 0; member < groups.size; ++member) {
    ++members[groups.rank(0, member) / gpus_per_node];
  }
  GroupShape shape;
  shape.nodes = static_cast<int>(members.size());
  shape.gpus_per_node = members.begin()->second;
  for (const auto& [node, count] : members) {
    if (count != shape.gpus_per_node) shape.gpus_per_node = 0;
  }
  int beside = 0;
  for (int group = 0; group < groups.count; ++group) {
    bool here = false;
    for (int member = 0; member < groups.size; ++member) {
      here |= groups.rank(group, member) / gpus_per_node == members.begin()->first;
    }
    beside += here ? 1 : 0;
  }
  shape.groups_per_node = std::max(1, beside);
  return shape;
}

TEST(GroupShape, IsThatOfCountedMembers) {
  std::mt19937 random(4);
  const auto number = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  for (int i = 0; i < 3000; ++i) {
    collective::Groups groups;
    groups.base = number(0, 10);
    groups.size = number(1, 40);
    groups.member_step = number(1, 20);
    groups.count = number(1, 10);
    groups.group_step = number(0, 30);
    const int gpus = number(1, 16);
    ASSERT_EQ(group_shape(groups, gpus), counted(groups, gpus))
        << groups.base << " " << groups.size << " x " << groups.member_step << ", " << groups.count
        << " x " << groups.group_step << ", " << gpus << " a node";
  }
}

TEST(GroupShape, DescribesWorldsBlocksLeadersAndShards) {
  const GroupShape world = group_shape(collective::world_group(65536), 8);
  EXPECT_EQ(world, (GroupShape{8192, 8, 1}));
  EXPECT_EQ(group_shape(collective::block_groups(65536, 8), 8), (GroupShape{1, 8, 1}));
  EXPECT_EQ(group_shape(collective::leader_group(65536, 8), 8), (GroupShape{8192, 1, 1}));
  EXPECT_EQ(group_shape(collective::shard_groups(65536, 8), 8), (GroupShape{8192, 1, 8}));
}

}  // namespace
}  // namespace syncline::cost
