// Rank 0's account of gatherings: when they are complete, and when they no longer can be.
#include "live/gathering.h"

#include <gtest/gtest.h>

namespace syncline::live {
namespace {

using namespace std::chrono_literals;

bool all_connected(std::size_t) { return true; }

TEST(Gatherings, AreCompleteWithTheLastValue) {
  Gatherings gatherings(3);
  EXPECT_FALSE(gatherings.add(1, "b", 0ms));
  EXPECT_FALSE(gatherings.add(2, "c", 0ms));
  EXPECT_EQ(gatherings.add(0, "a", 0ms), std::vector<std::string>({"a", "b", "c"}));
  EXPECT_FALSE(gatherings.add(0, "", 0ms));
  EXPECT_FALSE(gatherings.add(1, "later", 0ms));
  EXPECT_EQ(gatherings.add(2, "", 0ms), std::vector<std::string>({"", "later", ""}));
}

TEST(Gatherings, ExpectEachRankOnceAndInOrder) {
  Gatherings gatherings(3);
  EXPECT_TRUE(gatherings.expects(0, 1));
  EXPECT_FALSE(gatherings.expects(1, 1)) << "the next one, before this one is complete";
  gatherings.add(1, "b", 0ms);
  EXPECT_FALSE(gatherings.expects(0, 1)) << "twice";
  gatherings.add(0, "a", 0ms);
  gatherings.add(2, "c", 0ms);
  EXPECT_FALSE(gatherings.expects(0, 2)) << "one that is complete";
  EXPECT_TRUE(gatherings.expects(1, 1));
}

TEST(Gatherings, OfOneRankAreCompleteAtOnce) {
  Gatherings gatherings(1);
  EXPECT_EQ(gatherings.add(0, "a", kNoLimit), std::vector<std::string>({"a"}));
}

TEST(Gatherings, TheLongestPatienceCounts) {
  Gatherings gatherings(4);
  const auto begun = LiveClock::now();
  gatherings.add(0, "", 0ms);
  gatherings.add(2, "", 5000ms);
  EXPECT_FALSE(gatherings.failure(begun + 4s, 1000ms, all_connected));
  EXPECT_EQ(gatherings.failure(begun + 6s, 1000ms, all_connected),
            "ranks 1, 3 did not reach the barrier within 5 s");
  EXPECT_FALSE(gatherings.failure(begun + 6s, 20s, all_connected)) << "the time limit is more";
  gatherings.add(3, "", kNoLimit);
  EXPECT_FALSE(gatherings.failure(begun + 1000s, 1000ms, all_connected));
}

TEST(Gatherings, AMissingRankThatLeftIsNamed) {
  Gatherings gatherings(3);
  gatherings.add(0, "", kNoLimit);
  gatherings.add(1, "", kNoLimit);
  const auto left = [](std::size_t gone) { return [=](std::size_t rank) { return rank != gone; }; };
  EXPECT_FALSE(gatherings.failure(LiveClock::now(), 1000ms, left(1))) << "its value is here";
  EXPECT_EQ(gatherings.failure(LiveClock::now(), 1000ms, left(2)),
            "rank 2 ended before the others");
}

}  // namespace
}  // namespace syncline::live
