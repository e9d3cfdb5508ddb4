// Priority scheduling decided beforehand: small cases by hand.
#include "core/plan/buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace syncline::plan {
namespace {

using Order = std::vector<int>;

TEST(Priority, TheMostUrgentOfThoseThatAreReadyGoesWhenTheNetworkIsFree) {
  // 0 sets out alone at 0; when it is through at 2, both others are ready and 2 is more urgent.
  EXPECT_EQ(urgent_first({{0, 3, 2, 1}, {1, 2, 2, 1}, {1.5, 1, 2, 1}}, 0), (Order{0, 2, 1}));
  // Not ready in time: the less urgent goes ahead.
  EXPECT_EQ(urgent_first({{0, 3, 2, 1}, {1, 2, 2, 1}, {2.5, 1, 2, 1}}, 0), (Order{0, 1, 2}));
}

TEST(Priority, EqualOnesKeepTheirOrder) {
  EXPECT_EQ(urgent_first({{0, 1, 1, 1}, {0, 1, 1, 1}, {0, 1, 1, 1}}, 0), (Order{0, 1, 2}));
}

TEST(Priority, CreditCannotBeOvertaken) {
  const std::vector<Urgent> items{{0, 3, 2, 10}, {0, 2, 2, 10}, {1, 1, 2, 10}};
  // One at a time: 1 is more urgent than 0, then 2, which came meanwhile.
  EXPECT_EQ(urgent_first(items, 0), (Order{1, 2, 0}));
  // Two at a time: 1 and 0 are handed over at once.
  EXPECT_EQ(urgent_first(items, 20), (Order{1, 0, 2}));
  // Credit below a single one counts as one.
  EXPECT_EQ(urgent_first(items, 5), (Order{1, 2, 0}));
}

TEST(Priority, EveryOneOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<Urgent> items;
    for (int i = 0; i < 40; ++i) {
      items.push_back({static_cast<double>(random() % 20), static_cast<int>(random() % 5),
                       static_cast<double>(random() % 3), static_cast<Bytes>(random() % 9)});
    }
    const auto order = urgent_first(items, static_cast<Bytes>(random() % 20));
    Order all(items.size());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_TRUE(std::ranges::is_permutation(order, all));
  }
}

}  // namespace
}  // namespace syncline::plan
