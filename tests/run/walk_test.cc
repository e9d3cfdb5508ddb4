// The order in which a walk releases operations.
#include "core/run/walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/base/index.h"

namespace syncline::run {
namespace {

plan::Op op_on(plan::StreamId stream, std::vector<plan::OpId> after = {}) {
  plan::Op op;
  op.stream = stream;
  op.after = std::move(after);
  return op;
}

plan::Plan plan_of(int streams, std::vector<plan::Op> ops) {
  plan::Plan plan;
  plan.streams = streams;
  plan.ops = std::move(ops);
  return plan;
}

// Everything that a finished operation releases, in order.
std::vector<int> finish(Walk& walk, int instance) {
  std::vector<int> ready;
  walk.pass_stream(instance, ready);
  walk.pass_dependents(instance, ready);
  std::ranges::sort(ready);
  return ready;
}

TEST(Walk, AStreamReleasesItsOperationsOneByOne) {
  Walk walk(plan_of(1, {op_on(0), op_on(0), op_on(0)}), 2);
  EXPECT_EQ(walk.instances(), 6);
  EXPECT_EQ(walk.first(), (std::vector<int>{0}));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(finish(walk, i), (std::vector<int>{i + 1}));
  EXPECT_TRUE(finish(walk, 5).empty());
}

TEST(Walk, AnOperationWaitsForItsStreamAndForWhatItFollows) {
  // Two computations; a collective for each on a stream of its own; an update after both.
  Walk walk(plan_of(3, {op_on(0), op_on(0), op_on(1, {0}), op_on(2, {1}), op_on(0, {2, 3})}), 2);
  EXPECT_EQ(walk.first(), (std::vector<int>{0}));
  EXPECT_EQ(finish(walk, 0), (std::vector<int>{1, 2}));
  EXPECT_TRUE(finish(walk, 2).empty());
  EXPECT_EQ(finish(walk, 1), (std::vector<int>{3}));
  EXPECT_EQ(finish(walk, 3), (std::vector<int>{4}));
  // The next period begins on each stream where the last one ended.
  EXPECT_EQ(finish(walk, 4), (std::vector<int>{5}));
  EXPECT_EQ(walk.period(5), 1);
  EXPECT_EQ(walk.op(5), 0);
  EXPECT_EQ(finish(walk, 5), (std::vector<int>{6, 7}));
}

TEST(Walk, AStreamWithoutOperationsIsNotRefused) {
  Walk walk(plan_of(4, {op_on(0), op_on(2, {0})}), 1);
  EXPECT_EQ(walk.first(), (std::vector<int>{0}));
  EXPECT_EQ(finish(walk, 0), (std::vector<int>{1}));
  EXPECT_TRUE(finish(walk, 1).empty());
}

// Whatever is finished first, each instance is released exactly once, after what it waits for.
TEST(Walk, RandomPlansAreWalkedOnceAndInOrder) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    constexpr int kPeriods = 3;
    std::vector<plan::Op> ops;
    const int count = 1 + static_cast<int>(random() % 20);
    for (int i = 0; i < count; ++i) {
      std::vector<plan::OpId> after;
      for (int before = 0; before < i; ++before) {
        if (random() % 6 == 0) after.push_back(before);
      }
      ops.push_back(op_on(static_cast<plan::StreamId>(random() % 4), after));
    }
    const plan::Plan plan = plan_of(4, ops);
    Walk walk(plan, kPeriods);
    std::vector<int> ready = walk.first();
    std::vector<char> done(index(walk.instances()), 0);
    std::vector<int> last(4, -1);
    int finished = 0;
    while (!ready.empty()) {
      std::swap(ready[random() % ready.size()], ready.back());
      const int instance = ready.back();
      ready.pop_back();
      const plan::Op& op = plan.ops[index(walk.op(instance))];
      ASSERT_FALSE(done[index(instance)]);
      for (const plan::OpId before : op.after) {
        ASSERT_TRUE(done[index(instance - walk.op(instance) + before)]);
      }
      ASSERT_GT(instance, last[index(op.stream)]);
      last[index(op.stream)] = instance;
      done[index(instance)] = 1;
      ++finished;
      walk.pass_stream(instance, ready);
      walk.pass_dependents(instance, ready);
    }
    ASSERT_EQ(finished, walk.instances());
  }
}

TEST(Walk, WaitsForThePeriodBefore) {
  // The second stream's operation is awaited by the first one of the next period.
  std::vector<plan::Op> ops{op_on(0), op_on(0), op_on(1, {1})};
  ops[0].after_previous = {2};
  Walk walk(plan_of(2, ops), 2);
  EXPECT_EQ(walk.first(), (std::vector<int>{0}));
  // 3 is next on stream 0 but waits for 2.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(finish(walk, i), (std::vector<int>{i + 1}));
  EXPECT_EQ(finish(walk, 5), std::vector<int>{});
}

}  // namespace
}  // namespace syncline::run
