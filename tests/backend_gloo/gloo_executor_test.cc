// The Gloo executor moves what the host executor moves: every algorithm, hierarchy, codec and
// preset, between ranks that are threads here and talk over real sockets all the same.
#include "backend_gloo/gloo_executor.h"

#include <gtest/gtest.h>

#include "core/plan/planner.h"
#include "core/run/host_executor.h"
#include "core/run/sample_gradients.h"
#include "tests/support/ranks.h"
#include "tests/support/small_plans.h"

namespace syncline {
namespace {

using test::cluster_of;
using test::Failures;
using test::run_ranks;
using test::sparse_tensor_of;
using test::tensor_of;

// Tensors of awkward sizes, in three formats, and one that is sparse. Computation takes no time, so
// that operations meet each other as closely as they can.
Workload awkward() {
  Workload workload;
  workload.tensors = {tensor_of("a.w", {7}),
                      tensor_of("a.b", {13, 3}),
                      sparse_tensor_of("embedding", {50, 3}, 8),
                      tensor_of("c.w", {64}, DType::kFp16),
                      tensor_of("d", {101}, DType::kFp64),
                      tensor_of("large", {2000}),
                      tensor_of("e", {1})};
  workload.buffers = {tensor_of("mean", {5})};
  return workload;
}

struct Case {
  std::string what;
  Plan plan;
};

Case planned(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
             std::string what) {
  return {std::move(what), make_plan(workload, cluster, strategy)};
}

bool fits(const Strategy& strategy, int ranks) {
  const auto& hierarchy = strategy.hierarchy;
  const Algorithm* row = find_algorithm(strategy.algorithm);
  const int size = hierarchy.form == Hierarchy::Form::kFlat ? 1 : hierarchy.group_size;
  if (!row->fits(CollectiveKind::kAllReduce, ranks / size)) return false;
  if (size == 1) return true;
  const auto inside = [&](CollectiveKind kind) { return row->fits(kind, size); };
  if (hierarchy.form == Hierarchy::Form::kSharded) {
    return inside(CollectiveKind::kReduceScatter) && inside(CollectiveKind::kAllGather);
  }
  return inside(CollectiveKind::kReduce) && inside(CollectiveKind::kBroadcast);
}

std::vector<Case> cases(const Workload& workload, int ranks) {
  std::vector<Case> list;
  const Cluster cluster = cluster_of(ranks, 1);
  for (const auto& algorithm : algorithms()) {
    for (const auto form :
         {Hierarchy::Form::kFlat, Hierarchy::Form::kLeaders, Hierarchy::Form::kSharded}) {
      for (const int streams : {1, 2}) {
        Strategy strategy;
        strategy.algorithm = std::string(algorithm.name);
        strategy.hierarchy.form = form;
        strategy.hierarchy.group_size = 2;
        strategy.streams = streams;
        if (form != Hierarchy::Form::kFlat && ranks % 2 != 0) continue;
        if (!fits(strategy, ranks)) continue;
        strategy.fusion.rule = streams == 1 ? Fusion::Rule::kOne : Fusion::Rule::kSize;
        strategy.fusion.size = 200;
        strategy.fusion.align = 32;
        list.push_back(planned(workload, cluster, strategy,
                               strategy.algorithm + " form " +
                                   std::to_string(static_cast<int>(form)) + " streams " +
                                   std::to_string(streams)));
      }
    }
  }
  for (const char* codec : {"dgc", "fp16", "bf16"}) {
    Strategy strategy;
    strategy.compression.codec = codec;
    strategy.compression.sparsity = {0.75};
    strategy.compression.min_elements = 30;
    list.push_back(planned(workload, cluster, strategy, codec));
  }
  Strategy copies;
  copies.fusion.rule = Fusion::Rule::kOne;
  copies.bucket_copies = true;
  Cluster slow = cluster;
  slow.device.memory = 1e9;
  list.push_back(planned(workload, slow, copies, "copies"));
  Strategy parts;
  parts.partition = 400;
  list.push_back(planned(workload, cluster, parts, "parts"));
  return list;
}

class GlooExecutor : public testing::TestWithParam<int> {};

TEST_P(GlooExecutor, MovesWhatTheHostMoves) {
  const int ranks = GetParam();
  const Workload workload = awkward();
  const auto list = cases(workload, ranks);
  ASSERT_GT(list.size(), 6U);
  Gradients input;
  for (int rank = 0; rank < ranks; ++rank) {
    input.push_back(sample_gradients(workload, rank, ranks, 1));
  }
  std::vector<Outcome> expected;
  for (const auto& c : list) {
    expected.push_back(make_host_executor(workload)->run(c.plan, input, 1));
  }
  const Failures failures = run_ranks(ranks, [&](Meeting& meeting) {
    const auto executor = make_gloo_executor(workload, meeting);
    const auto rank = static_cast<std::size_t>(meeting.rank());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const int periods = i % 3 == 0 ? 3 : 1;
      const Outcome outcome = executor->run(list[i].plan, input, periods);
      EXPECT_EQ(outcome.gradients[rank], expected[i].gradients[rank])
          << list[i].what << ", rank " << rank;
      EXPECT_EQ(outcome.bytes_sent[rank], expected[i].bytes_sent[rank] * periods) << list[i].what;
      EXPECT_EQ(outcome.timeline.spans.size(),
                list[i].plan.ops.size() * static_cast<std::size_t>(ranks * periods));
      EXPECT_EQ(outcome.timeline.period_ends.size(), static_cast<std::size_t>(periods));
    }
  });
  EXPECT_EQ(failures, Failures(static_cast<std::size_t>(ranks)));
}

INSTANTIATE_TEST_SUITE_P(Worlds, GlooExecutor, testing::Values(2, 3, 4, 5));

TEST(GlooExecutorAlone, OneRankHasNobodyToTalkTo) {
  const Workload workload = awkward();
  const Failures failures = run_ranks(1, [&](Meeting& meeting) {
    const Gradients input = {sample_gradients(workload, 0, 1, 1)};
    const Outcome outcome = make_gloo_executor(workload, meeting)
                                ->run(make_plan(workload, cluster_of(1, 1), {}), input, 2);
    EXPECT_EQ(outcome.gradients, input);
  });
  EXPECT_EQ(failures, Failures(1));
}

}  // namespace
}  // namespace syncline
