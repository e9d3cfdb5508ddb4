// The order in which a plan is handed to GPUs: no rank waits for one that waits for it, and every
// dependency of the plan is kept by a stream or an event.
#include "backend_nccl/launch_order.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/index.h"
#include "tests/support/live_cases.h"

namespace syncline::nccl_backend {
namespace {

using test::LiveCase;

// Those of the other live backend, and plans whose steps meet: LocalSGD, a step that begins before
// the last one's exchange is over, more streams than buckets.
std::vector<LiveCase> all_cases(int ranks) {
  const Workload workload = test::awkward();
  auto list = test::live_cases(workload, ranks);
  for (auto& extra : test::step_cases(test::even(), ranks)) list.push_back(std::move(extra));
  return list;
}

// Which instances (period, operation) have ended when one begins, as the GPU guarantees it.
class Guaranteed {
 public:
  Guaranteed(const plan::Plan& plan, const LaunchOrder& order, int periods)
      : operations_(plan.ops.size()), before_(operations_ * index(periods)) {
    std::vector<int> last(index(plan.streams), -1);
    for (int p = 0; p < periods; ++p) {
      for (const OrderedLaunch& launch : order.launches) {
        const std::size_t here = index(p) * operations_ + index(launch.op);
        int& previous = last[index(launch.stream)];
        if (previous >= 0) take(here, index(previous));
        for (const EventWait& wait : launch.waits) {
          if (wait.previous && p == 0) continue;
          take(here, index(wait.previous ? p - 1 : p) * operations_ + index(wait.op));
        }
        previous = static_cast<int>(here);
      }
    }
  }

  bool ended(int period, plan::OpId op, int by_period, plan::OpId by) const {
    return before_[index(by_period) * operations_ + index(by)].count(index(period) * operations_ +
                                                                     index(op)) > 0;
  }

 private:
  void take(std::size_t here, std::size_t earlier) {
    before_[here].insert(earlier);
    before_[here].insert(before_[earlier].begin(), before_[earlier].end());
  }

  std::size_t operations_;
  std::vector<std::set<std::size_t>> before_;
};

class LaunchOrderOf : public testing::TestWithParam<int> {};

TEST_P(LaunchOrderOf, KeepsEveryDependency) {
  constexpr int kPeriods = 3;
  for (const auto& c : all_cases(GetParam())) {
    const LaunchOrder order = launch_order(c.plan);
    ASSERT_EQ(order.launches.size(), c.plan.ops.size());
    const Guaranteed guaranteed(c.plan, order, kPeriods);
    for (int p = 0; p < kPeriods; ++p) {
      for (std::size_t i = 0; i < c.plan.ops.size(); ++i) {
        const auto id = static_cast<plan::OpId>(i);
        for (const plan::OpId before : c.plan.ops[i].after) {
          EXPECT_TRUE(guaranteed.ended(p, before, p, id)) << c.what << ": " << before << " " << id;
        }
        if (p == 0) continue;
        for (const plan::OpId before : c.plan.ops[i].after_previous) {
          EXPECT_TRUE(guaranteed.ended(p - 1, before, p, id))
              << c.what << ": " << before << " of the period before, " << id;
        }
      }
    }
  }
}

// An event that nothing was recorded for lets everything pass: every wait must name a launch that
// has been made by then and that records one.
TEST_P(LaunchOrderOf, WaitsForWhatHasBeenLaunched) {
  for (const auto& c : all_cases(GetParam())) {
    const LaunchOrder order = launch_order(c.plan);
    for (const OrderedLaunch& launch : order.launches) {
      for (const EventWait& wait : launch.waits) {
        EXPECT_TRUE(wait.previous || wait.op < launch.op) << c.what;
        EXPECT_TRUE(order.launches[index(wait.op)].awaited) << c.what;
        EXPECT_NE(c.plan.ops[index(wait.op)].stream, launch.stream) << c.what;
      }
    }
  }
}

// The hardest case for ranks that wait for each other: nothing overlaps, a host goes on only when
// what it launched has ended, and a collective ends only once all of its members have come. Ranks
// take turns in every order that a few seeds give.
TEST_P(LaunchOrderOf, NoRankWaitsForOneThatWaitsForIt) {
  const int ranks = GetParam();
  for (const auto& c : all_cases(ranks)) {
    const LaunchOrder order = launch_order(c.plan);
    std::vector<std::size_t> next(index(ranks), 0);
    const auto waits_in = [&](int rank) -> int {  // the communicator that it waits in, or -1
      if (next[index(rank)] == order.launches.size()) return -1;
      const OrderedLaunch& launch = order.launches[next[index(rank)]];
      if (launch.communicator < 0) return -1;
      const auto& key = order.communicators[index(launch.communicator)];
      return collective::find_place(key.groups, rank) ? launch.communicator : -1;
    };
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = ranks - 1; rank >= 0; --rank) {
        while (next[index(rank)] < order.launches.size() && waits_in(rank) < 0) {
          ++next[index(rank)];
          moved = true;
        }
      }
      for (int rank = 0; rank < ranks; ++rank) {
        const int communicator = waits_in(rank);
        if (communicator < 0) continue;
        const collective::Groups& groups = order.communicators[index(communicator)].groups;
        const int group = collective::find_place(groups, rank)->group;
        bool all = true;
        for (int m = 0; m < groups.size; ++m) {
          const int member = groups.rank(group, m);
          all = all && waits_in(member) == communicator && next[index(member)] == next[index(rank)];
        }
        if (!all) continue;
        for (int m = 0; m < groups.size; ++m) ++next[index(groups.rank(group, m))];
        moved = true;
      }
    }
    for (const std::size_t reached : next) EXPECT_EQ(reached, order.launches.size()) << c.what;
  }
}

TEST_P(LaunchOrderOf, ACommunicatorServesOneStreamAndOneGrouping) {
  for (const auto& c : all_cases(GetParam())) {
    const LaunchOrder order = launch_order(c.plan);
    for (const OrderedLaunch& launch : order.launches) {
      const auto* collective =
          std::get_if<collective::Collective>(&c.plan.ops[index(launch.op)].work);
      ASSERT_EQ(collective != nullptr, launch.communicator >= 0) << c.what;
      if (collective == nullptr) continue;
      const auto& key = order.communicators[index(launch.communicator)];
      EXPECT_EQ(key.stream, launch.stream) << c.what;
      EXPECT_EQ(key.groups, collective->groups) << c.what;
      EXPECT_EQ(key.algorithm, nccl_algorithm(*collective)) << c.what;
    }
    for (std::size_t i = 0; i < order.communicators.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        EXPECT_FALSE(order.communicators[i] == order.communicators[j]) << c.what;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, LaunchOrderOf, testing::Values(1, 2, 3, 4, 6));

plan::Plan by_hand(const std::vector<plan::Op>& ops, int streams) {
  plan::Plan plan;
  plan.ranks = 2;
  plan.streams = streams;
  plan.ops = ops;
  return plan;
}

plan::Op waiting(plan::StreamId stream, std::vector<plan::OpId> after,
                 std::vector<plan::OpId> after_previous = {}) {
  plan::Op op;
  op.stream = stream;
  op.after = std::move(after);
  op.after_previous = std::move(after_previous);
  op.work = plan::Busy{plan::Busy::Reason::kTick};
  return op;
}

TEST(LaunchOrder, WaitsForTheLastOnEachStreamOnce) {
  const plan::Plan plan = by_hand({waiting(0, {}), waiting(0, {}), waiting(1, {0, 1}),
                                   waiting(1, {0}), waiting(2, {0, 2, 1}), waiting(0, {4, 3})},
                                  3);
  const LaunchOrder order = launch_order(plan);
  using Waits = std::vector<EventWait>;
  EXPECT_EQ(order.launches[2].waits, (Waits{{1, false}}));
  EXPECT_EQ(order.launches[3].waits, Waits{});
  EXPECT_EQ(order.launches[4].waits, (Waits{{1, false}, {2, false}}));
  EXPECT_EQ(order.launches[5].waits, (Waits{{3, false}, {4, false}}));
  EXPECT_FALSE(order.launches[0].awaited);
  EXPECT_TRUE(order.launches[1].awaited);
}

TEST(LaunchOrder, WaitsAcrossPeriods) {
  const plan::Plan plan = by_hand({waiting(0, {}, {2, 3}), waiting(0, {}, {2}), waiting(1, {0}),
                                   waiting(1, {}), waiting(0, {3}, {3})},
                                  2);
  const LaunchOrder order = launch_order(plan);
  using Waits = std::vector<EventWait>;
  EXPECT_EQ(order.launches[0].waits, (Waits{{3, true}}));
  EXPECT_EQ(order.launches[1].waits, Waits{});
  EXPECT_EQ(order.launches[2].waits, (Waits{{0, false}}));
  EXPECT_EQ(order.launches[4].waits, (Waits{{3, false}}));
}

TEST(LaunchOrder, NamesNcclsAlgorithms) {
  using Kind = collective::CollectiveKind;
  for (const auto& [algorithm, picked, kind, name] :
       std::vector<std::tuple<std::string, bool, Kind, std::string>>{
           {"", false, Kind::kAllReduce, ""},
           {"ring", false, Kind::kAllReduce, "ring"},
           {"double_binary_tree", false, Kind::kAllReduce, "tree"},
           {"halving_doubling", false, Kind::kAllReduce, ""},
           {"ring", true, Kind::kAllReduce, ""},
           {"ring", false, Kind::kBroadcast, ""}}) {
    collective::Collective collective;
    collective.kind = kind;
    if (!algorithm.empty()) collective.algorithm = collective::find_algorithm(algorithm);
    if (picked) collective.nccl = collective::NcclPick{};
    EXPECT_EQ(nccl_algorithm(collective), name) << algorithm;
  }
}

}  // namespace
}  // namespace syncline::nccl_backend
