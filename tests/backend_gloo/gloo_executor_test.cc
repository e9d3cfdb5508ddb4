// The Gloo executor moves what the host executor moves: every algorithm, hierarchy, codec and
// preset, between ranks that are threads here and talk over real sockets all the same.
#include "backend_gloo/gloo_executor.h"

#include <gtest/gtest.h>

#include "core/run/sample_gradients.h"
#include "live/link_calibration.h"
#include "tests/plan/planned.h"
#include "tests/support/live_cases.h"
#include "tests/support/ranks.h"
#include "tests/support/watcher.h"

namespace syncline::gloo_backend {
namespace {

using test::awkward;
using test::cluster_of;
using test::Failures;
using test::live_cases;
using test::run_ranks;

class GlooExecutor : public testing::TestWithParam<int> {};

run::Gradients sampled(const Workload& workload, int ranks) {
  run::Gradients input;
  for (int rank = 0; rank < ranks; ++rank) {
    input.push_back(run::sample_gradients(workload, rank, ranks, 1));
  }
  return input;
}

// Every plan ends on every rank with the host executor's values and bytes.
void expect_as_host(const Workload& workload, const std::vector<test::LiveCase>& list, int ranks) {
  const run::Gradients input = sampled(workload, ranks);
  std::vector<run::Outcome> expected;
  for (const auto& c : list) {
    expected.push_back(run::make_host_executor(workload)->run(c.plan, input, 1));
  }
  const Failures failures = run_ranks(ranks, [&](live::ControlChannel& channel) {
    const auto executor = make_gloo_executor(workload, channel);
    const auto rank = static_cast<std::size_t>(channel.rank());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const int periods = i % 3 == 0 ? 3 : 1;
      const run::Outcome outcome = executor->run(list[i].plan, input, periods);
      EXPECT_EQ(outcome.gradients[rank], expected[i].gradients[rank])
          << list[i].what << ", rank " << rank;
      EXPECT_EQ(outcome.bytes_sent[rank], expected[i].bytes_sent[rank] * periods) << list[i].what;
      std::size_t operations = 0;
      for (int each = 0; each < ranks; ++each) {
        for (const auto& op : list[i].plan.ops) {
          operations += plan::concerns(list[i].plan, op, each) ? 1 : 0;
        }
      }
      EXPECT_EQ(outcome.timeline.spans.size(), operations * static_cast<std::size_t>(periods));
      EXPECT_EQ(outcome.timeline.period_ends.size(), static_cast<std::size_t>(periods));
    }
  });
  EXPECT_EQ(failures, Failures(static_cast<std::size_t>(ranks)));
}

TEST_P(GlooExecutor, MovesWhatTheHostMoves) {
  const Workload workload = awkward();
  const auto list = live_cases(workload, GetParam());
  ASSERT_GT(list.size(), 6U);
  expect_as_host(workload, list, GetParam());
}

TEST_P(GlooExecutor, KeepsStepsApartAsThePlanSays) {
  const Workload workload = test::even();
  expect_as_host(workload, test::step_cases(workload, GetParam()), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Worlds, GlooExecutor, testing::Values(2, 3, 4, 5));

// Over several periods, whose outer steps follow one from the other.
TEST(GlooExecutorOfOuterSteps, MovesWhatTheHostMoves) {
  const Workload workload = awkward();
  constexpr int kRanks = 4;
  std::vector<plan::Plan> plans;
  for (const int group : {1, 2}) {
    for (auto& outer : test::outer_cases(workload, cluster_of(2, 2), group)) {
      plans.push_back(std::move(outer.plan));
    }
  }
  const run::Gradients input = sampled(workload, kRanks);
  const Failures failures = run_ranks(kRanks, [&](live::ControlChannel& channel) {
    const auto executor = make_gloo_executor(workload, channel);
    const auto rank = static_cast<std::size_t>(channel.rank());
    for (const plan::Plan& plan : plans) {
      const run::Outcome found = executor->run(plan, input, 3);
      const run::Outcome expected = run::make_host_executor(workload)->run(plan, input, 3);
      EXPECT_EQ(found.gradients[rank], expected.gradients[rank]);
      EXPECT_EQ(found.bytes_sent[rank], expected.bytes_sent[rank]);
    }
  });
  EXPECT_EQ(failures, Failures(kRanks));
}

// Messages of several pieces, each of whole blocks.
TEST(GlooExecutorOfBlocks, MovesWhatTheHostMoves) {
  Workload workload;
  workload.tensors = {test::tensor_of("large", {1 << 20}), test::tensor_of("small", {77})};
  for (const int ranks : {2, 3, 4}) {
    std::vector<test::LiveCase> list;
    for (const char* codec : {"int8", "int4", "fp8"}) {
      Strategy strategy = plan::compressing(codec, Fusion::Rule::kOne);
      list.push_back({codec, plan::make_plan(workload, cluster_of(ranks, 1), strategy)});
      strategy.algorithm = "all_to_all";
      list.push_back({"direct", plan::make_plan(workload, cluster_of(ranks, 1), strategy)});
      strategy.exchange = Strategy::Exchange::kDecoupled;
      list.push_back({"in halves", plan::make_plan(workload, cluster_of(ranks, 1), strategy)});
      if (ranks != 4) continue;
      strategy.exchange = Strategy::Exchange::kAllReduce;
      for (const auto form : {Hierarchy::Form::kSharded, Hierarchy::Form::kLeaders}) {
        strategy.hierarchy.form = form;
        strategy.hierarchy.group_size = 2;
        list.push_back({"in levels", plan::make_plan(workload, cluster_of(2, 2), strategy)});
      }
    }
    expect_as_host(workload, list, ranks);
  }
}

// What a calibration sends of them: a block is the unit.
TEST(GlooExecutorOfBlocks, IsTimedBySamplesOfItsCodec) {
  const Failures failures = run_ranks(2, [](live::ControlChannel& channel) {
    const auto samples = live::codec_samples(
        channel,
        [](const Workload& workload, live::ControlChannel& own) {
          return make_gloo_executor(workload, own);
        },
        *compress::find_codec("int8"), 1);
    EXPECT_FALSE(samples.empty());
    for (const auto& sample : samples) EXPECT_GT(sample.traffic, 0);
  });
  EXPECT_EQ(failures, Failures(2));
}

// Stages with operations of their own, tied by messages: plain, interleaved, with the weights'
// gradients apart; replicas that sum or shard; tensor parallelism beside them.
TEST(GlooExecutorOfPipelines, MovesWhatTheHostMoves) {
  for (const auto& [schedule, chunks] :
       {std::pair{Schedule::k1F1B, 1}, {Schedule::kInterleaved, 2}, {Schedule::kZeroBubble, 1}}) {
    for (const int tensor : {1, 2}) {
      for (const bool inside : {false, true}) {
        Parallel parallel = plan::pipeline(2, schedule, chunks);
        parallel.tensor = tensor;
        parallel.pipeline_inside = inside;
        parallel.activation = 5000;
        const Workload workload = plan::job(parallel, 2, 240);
        std::vector<test::LiveCase> list;
        for (const auto exchange : {Strategy::Exchange::kAllReduce, Strategy::Exchange::kSharded}) {
          Strategy strategy = plan::strategy_with(Fusion::Rule::kOne);
          strategy.exchange = exchange;
          list.push_back({"pipeline", plan::make_plan(workload, cluster_of(2, 4), strategy)});
          strategy.hierarchy.form = Hierarchy::Form::kSharded;
          strategy.hierarchy.group_size = 2;
          if (tensor == 1) {
            list.push_back({"two levels", plan::make_plan(workload, cluster_of(2, 4), strategy)});
          }
        }
        expect_as_host(workload, list, 8);
      }
    }
  }
}

// Gloo takes whoever calls a port of its own first for the other rank: it must not listen.
TEST(GlooExecutorAmongUnauthenticatedPeers, MovesWhatTheHostMoves) {
  const test::Watcher watcher;
  const Workload workload = awkward();
  const auto wait_limit = live::LiveClock::now() + std::chrono::seconds(60);
  const auto enough = [&] { return watcher.calls() > 0 || live::LiveClock::now() > wait_limit; };
  for (int turn = 0; turn < 5 || !enough(); ++turn) {
    expect_as_host(workload, {live_cases(workload, 3).front()}, 3);
  }
  EXPECT_GT(watcher.calls(), 0);
}

TEST(GlooExecutorAlone, OneRankHasNobodyToTalkTo) {
  const Workload workload = awkward();
  const Failures failures = run_ranks(1, [&](live::ControlChannel& channel) {
    const run::Gradients input = sampled(workload, 1);
    const run::Outcome outcome =
        make_gloo_executor(workload, channel)
            ->run(plan::make_plan(workload, cluster_of(1, 1), {}), input, 2);
    EXPECT_EQ(outcome.gradients, input);
  });
  EXPECT_EQ(failures, Failures(1));
}

}  // namespace
}  // namespace syncline::gloo_backend
