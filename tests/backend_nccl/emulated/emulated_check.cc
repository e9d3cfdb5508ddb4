// The whole NCCL executor on an emulated GPU (emulated_gpu.cc): launches, events, communicators,
// staged work, the timeline, and what becomes of it when a rank fails.
#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <tuple>

#include "backend_nccl/nccl_executor.h"
#include "core/error.h"
#include "core/run/host_executor.h"
#include "core/run/sample_gradients.h"
#include "tests/support/live_cases.h"
#include "tests/support/ranks.h"

namespace syncline::kernels {
namespace {

using test::Failures;
using test::LiveCase;

void expect_host_values(int ranks, const Workload& workload, const std::vector<LiveCase>& list) {
  run::Gradients input;
  for (int rank = 0; rank < ranks; ++rank) {
    input.push_back(run::sample_gradients(workload, rank, ranks, 1));
  }
  std::vector<run::Gradients> expected;
  for (const auto& c : list) {
    expected.push_back(run::make_host_executor(workload)->run(c.plan, input, 1).gradients);
  }
  const Failures failures = test::run_ranks(ranks, [&](live::ControlChannel& channel) {
    const auto executor = nccl_backend::make_nccl_executor(workload, channel);
    const auto rank = static_cast<std::size_t>(channel.rank());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const plan::Plan& plan = list[i].plan;
      const int periods = i % 3 == 0 ? 3 : 1;
      const run::Outcome outcome = executor->run(plan, input, periods);
      EXPECT_EQ(outcome.gradients[rank], expected[i][rank]) << list[i].what << ", rank " << rank;
      EXPECT_EQ(outcome.timeline.spans.size(),
                plan.ops.size() * static_cast<std::size_t>(ranks * periods));
      std::map<std::tuple<int, int, plan::OpId>, run::Span> spans;
      for (const run::Span& span : outcome.timeline.spans) {
        spans[{span.rank, span.period, span.op}] = span;
      }
      constexpr Seconds kStep = 2e-6;
      for (const run::Span& span : outcome.timeline.spans) {
        EXPECT_LE(span.begin, span.end);
        const plan::Op& op = plan.ops[static_cast<std::size_t>(span.op)];
        for (const plan::OpId before : op.after) {
          EXPECT_GE(span.begin + kStep, (spans[{span.rank, span.period, before}].end));
        }
        for (const plan::OpId before : op.after_previous) {
          if (span.period == 0) continue;
          EXPECT_GE(span.begin + kStep, (spans[{span.rank, span.period - 1, before}].end));
        }
      }
    }
  });
  EXPECT_EQ(failures, Failures(static_cast<std::size_t>(ranks)));
}

class Emulated : public testing::TestWithParam<int> {};

TEST_P(Emulated, MovesWhatTheHostMoves) {
  const Workload workload = test::awkward();
  expect_host_values(GetParam(), workload, test::live_cases(workload, GetParam()));
}

TEST_P(Emulated, MovesWhatTheHostMovesAcrossSteps) {
  Workload workload = test::even();
  workload.forward = 1e-3;
  for (auto& tensor : workload.tensors) tensor.backward = 2e-4;
  expect_host_values(GetParam(), workload, test::step_cases(workload, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Worlds, Emulated, testing::Values(1, 2, 4));

TEST(EmulatedTimeline, StepsTakeWhatThePlanSays) {
  Workload workload = test::even();
  workload.forward = 0.02;
  const plan::Plan plan = plan::make_plan(workload, test::cluster_of(2, 1), {});
  const Failures failures = test::run_ranks(2, [&](live::ControlChannel& channel) {
    run::Gradients input(2);
    const auto rank = static_cast<std::size_t>(channel.rank());
    input[rank] = run::sample_gradients(workload, channel.rank(), 2, 1);
    const auto executor = nccl_backend::make_nccl_executor(workload, channel);
    const run::Outcome outcome = executor->run(plan, input, 3);
    EXPECT_GE(outcome.timeline.period_ends.front(), 0.0199);
    EXPECT_GE(outcome.timeline.period_ends.back(), 0.0597);
    EXPECT_GT(executor->clock_error(), 0);
    EXPECT_NE(executor->hardware().find("2 ranks on one GPU"), std::string::npos);
  });
  EXPECT_EQ(failures, Failures(2));
}

// Rank 1 never runs what the others wait for.
TEST(EmulatedFailure, ARankThatHangsIsTimedOut) {
  const Workload workload = test::even();
  const plan::Plan plan = plan::make_plan(workload, test::cluster_of(2, 1), {});
  const plan::Plan shorter = [&] {
    plan::Plan cut = plan;
    cut.ops.resize(1);
    cut.buckets.clear();
    return cut;
  }();
  const Failures failures = test::run_ranks(
      2,
      [&](live::ControlChannel& channel) {
        run::Gradients input(2);
        const auto rank = static_cast<std::size_t>(channel.rank());
        input[rank] = run::sample_gradients(workload, channel.rank(), 2, 1);
        const auto executor = nccl_backend::make_nccl_executor(workload, channel);
        executor->run(plan, input, 1);
        executor->run(rank == 0 ? plan : shorter, input, 1);
      },
      std::chrono::milliseconds(1500));
  EXPECT_NE(failures[0].find("rank 0: waiting for all_reduce bucket 0"), std::string::npos)
      << failures[0];
  EXPECT_NE(failures[0].find("no progress for 1.5 s"), std::string::npos) << failures[0];
  EXPECT_NE(failures[1], "");
}

TEST(EmulatedFailure, ARankThatLeavesEndsTheOthers) {
  const Workload workload = test::even();
  const plan::Plan plan = plan::make_plan(workload, test::cluster_of(3, 1), {});
  const Failures failures = test::run_ranks(3, [&](live::ControlChannel& channel) {
    run::Gradients input(3);
    const auto rank = static_cast<std::size_t>(channel.rank());
    input[rank] = run::sample_gradients(workload, channel.rank(), 3, 1);
    const auto executor = nccl_backend::make_nccl_executor(workload, channel);
    executor->run(plan, input, 1);
    if (rank == 2) {
      channel.fail("rank 2 has had enough");
      return;
    }
    executor->run(plan, input, 1);
  });
  for (const int rank : {0, 1}) {
    EXPECT_NE(failures[static_cast<std::size_t>(rank)].find("had enough"), std::string::npos)
        << failures[static_cast<std::size_t>(rank)];
  }
}

}  // namespace
}  // namespace syncline::kernels
