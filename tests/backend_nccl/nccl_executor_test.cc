// The NCCL executor on the GPU at hand, where there is one: it leaves what the host executor
// leaves. Ranks are processes, as NCCL will have it: each test starts this program again, once a
// rank.
#include "backend_nccl/nccl_executor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "core/executor.h"
#include "core/run/payload.h"
#include "live/local_ranks.h"
#include "tests/support/live_cases.h"
#include "tests/support/ranks.h"

namespace syncline::nccl_backend {
namespace {

using test::LiveCase;

#define SKIP_WITHOUT_GPU()                                                      \
  if (const std::string reason = why_no_nccl(); !reason.empty()) {              \
    GTEST_SKIP() << "nothing of the NCCL executor was run: " << reason << "\n"; \
  }

// Runs the test `name` of this program as so many ranks. It finds a place in the environment then.
live::JobEnd run_as_ranks(int ranks, const std::string& name) {
  auto commands = live::local_ranks({std::filesystem::read_symlink("/proc/self/exe").string(),
                                     "--gtest_filter=NcclExecutorRank." + name, "--gtest_brief=1"},
                                    ranks);
  for (auto& command : commands) command.environment["SYNCLINE_NCCL_TEST"] = "1";
  return live::run_ranks(commands, {});
}

bool is_rank() { return std::getenv("SYNCLINE_NCCL_TEST") != nullptr; }

#define SKIP_UNLESS_RANK() \
  if (!is_rank()) GTEST_SKIP() << "a part of the NcclExecutor tests, which start it\n"

live::ControlChannelSettings quick() {
  live::ControlChannelSettings settings;
  settings.timeout = std::chrono::seconds(20);
  return settings;
}

void expect_host_values(live::ControlChannel& channel, const std::vector<LiveCase>& list,
                        const Workload& workload, const NcclSettings& settings) {
  const int ranks = channel.ranks();
  const run::Gradients input = test::gradients_of_all(workload, ranks);
  const auto executor = make_nccl_executor(workload, channel, settings);
  const auto rank = static_cast<std::size_t>(channel.rank());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const plan::Plan& plan = list[i].plan;
    const int periods = i % 3 == 0 ? 3 : 1;
    const auto expected = run::make_host_executor(workload)->run(plan, input, 1).gradients;
    const run::Outcome outcome = executor->run(plan, input, periods);
    EXPECT_EQ(outcome.gradients[rank], expected[rank]) << list[i].what << ", rank " << rank;
    EXPECT_EQ(outcome.timeline.spans.size(),
              plan.ops.size() * static_cast<std::size_t>(ranks * periods));
    // What waits for something begins when that has ended, on the rank's own clock.
    std::map<std::tuple<int, int, plan::OpId>, run::Span> spans;
    for (const run::Span& span : outcome.timeline.spans) {
      EXPECT_LE(span.begin, span.end);
      spans[{span.rank, span.period, span.op}] = span;
    }
    for (const run::Span& span : outcome.timeline.spans) {
      for (const plan::OpId before : plan.ops[static_cast<std::size_t>(span.op)].after) {
        constexpr Seconds kEventStep = 2e-6;
        EXPECT_GE(span.begin + kEventStep, (spans[{span.rank, span.period, before}].end))
            << list[i].what;
      }
    }
  }
}

void carry_out(const NcclSettings& settings) {
  const auto environment = live::read_rank_environment(live::process_environment());
  ASSERT_TRUE(environment.has_value());
  live::ControlChannel channel(*environment, quick());
  const Workload awkward = test::awkward();
  expect_host_values(channel, test::live_cases(awkward, environment->ranks), awkward, settings);
  const Workload even = test::even();
  expect_host_values(channel, test::step_cases(even, environment->ranks), even, settings);
}

TEST(NcclExecutorRank, MovesWhatTheHostMoves) {
  SKIP_UNLESS_RANK();
  carry_out({});
}

TEST(NcclExecutorRank, MovesTheSameAsAGraph) {
  SKIP_UNLESS_RANK();
  NcclSettings settings;
  settings.graph = true;
  carry_out(settings);
}

// Rank 1 is gone in the middle of a run: rank 0 learns it and says who.
TEST(NcclExecutorRank, OneDies) {
  SKIP_UNLESS_RANK();
  const auto environment = live::read_rank_environment(live::process_environment());
  ASSERT_TRUE(environment.has_value());
  Workload workload = test::even();
  workload.forward = 0.5;
  const plan::Plan plan = plan::make_plan(workload, test::cluster_of(environment->ranks, 1), {});
  live::ControlChannel channel(*environment, quick());
  const run::Gradients input =
      test::gradients_of_one(workload, environment->rank, environment->ranks);
  const auto executor = make_nccl_executor(workload, channel);
  executor->run(plan, input, 1);
  if (environment->rank == 1) {
    alarm(1);  // it ends by the signal, in its forward pass
    executor->run(plan, input, 100);
    FAIL() << "it should have ended";
  }
  try {
    executor->run(plan, input, 100);
    FAIL() << "it should have failed";
  } catch (const MachineError& error) {
    EXPECT_NE(std::string(error.what()).find("rank"), std::string::npos) << error.what();
  }
}

TEST(NcclExecutor, MovesWhatTheHostMoves) {
  SKIP_WITHOUT_GPU();
  for (const int ranks : {1, 2, 4}) {
    EXPECT_EQ(live::exit_code(run_as_ranks(ranks, "MovesWhatTheHostMoves")), 0) << ranks;
  }
}

TEST(NcclExecutor, MovesTheSameAsAGraph) {
  SKIP_WITHOUT_GPU();
  EXPECT_EQ(live::exit_code(run_as_ranks(2, "MovesTheSameAsAGraph")), 0);
}

TEST(NcclExecutor, ARankThatDiesEndsTheOthers) {
  SKIP_WITHOUT_GPU();
  const live::JobEnd end = run_as_ranks(2, "OneDies");
  EXPECT_EQ(end.ranks.at(0).code, 0);
  EXPECT_FALSE(end.ranks.at(0).by_us);
  EXPECT_EQ(end.ranks.at(1).signal, SIGALRM);
}

TEST(NcclExecutor, SaysWhyThereIsNone) {
  const std::string reason = why_no_nccl();
  if (reason.empty()) GTEST_SKIP() << "there is a GPU\n";
  const Workload workload = test::even();
  const auto failures = test::run_ranks(1, [&](live::ControlChannel& channel) {
    const auto none = make_nccl_executor(workload, channel);
    EXPECT_EQ(none, nullptr) << "made without a GPU";
  });
  EXPECT_EQ(failures.at(0), "--backend nccl: " + reason);
}

}  // namespace
}  // namespace syncline::nccl_backend
