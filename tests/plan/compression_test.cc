// What codecs and sparse gradients make of a plan: what travels, by which collective, and what
// encoding takes.
#include <gtest/gtest.h>

#include "tests/plan/planned.h"

namespace syncline::plan {
namespace {

using test::cluster_of;
using test::sparse_tensor_of;
using test::tensor_of;

Workload matrices_and_vectors() {
  Workload workload;
  workload.tensors = {tensor_of("b", {100}), tensor_of("w", {100, 50}), tensor_of("v", {30, 40}),
                      tensor_of("c", {30})};
  return workload;
}

Seconds first_seconds(const Plan& plan, Busy::Reason reason) {
  return seconds_of(ops_of(plan, reason).at(0)->work);
}

TEST(Planner, DgcTensorsTravelOneByOneAndTheRestIsFused) {
  Workload workload = five();
  workload.tensors[1] = tensor_of("large1", {20000});
  workload.tensors[3] = tensor_of("large3", {30000});
  Strategy strategy = dgc_strategy(16384);
  strategy.fusion.rule = Fusion::Rule::kOne;
  const Plan plan = make_plan(workload, cluster_of(4, 1), strategy);
  ASSERT_EQ(each(plan.buckets, &Bucket::tensors),
            (std::vector<std::vector<int>>{{1}, {3}, {0, 2, 4}}));
  EXPECT_EQ(plan.buckets[2].codec, nullptr);
  EXPECT_EQ(plan.buckets[0].codec, compress::find_codec("dgc"));
  EXPECT_EQ(plan.buckets[0].kept, 19);  // int(float(20000) * (1 - 0.999f))
  EXPECT_EQ(ops_of(plan, Busy::Reason::kEncode).size(), 2u);
  EXPECT_EQ(ops_of(plan, Busy::Reason::kDecode).size(), 2u);
  const auto gather = collectives_of(plan, 0);
  ASSERT_EQ(gather.size(), 1u);
  EXPECT_EQ(gather[0].kind, collective::CollectiveKind::kAllGather);
  EXPECT_EQ(gather[0].bytes(), 4 * 19 * 8);
}

// Encoding runs where gradients are made, decoding where they arrive.
TEST(Planner, EncodeComputesAndDecodeFollowsTheCollective) {
  Cluster cluster = cluster_of(4, 1);
  cluster.device.launch = 1e-5;
  Strategy strategy = dgc_strategy(10);
  strategy.compression.encode_launches = 14;
  strategy.compression.decode_launches = 3;
  const Plan plan = make_plan(five(), cluster, strategy);
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (reason_of(op.work) == Busy::Reason::kEncode) {
      EXPECT_EQ(op.stream, kComputeStream);
      EXPECT_DOUBLE_EQ(seconds_of(op.work), 14e-5);
      EXPECT_EQ(plan.ops[i + 1].after, (std::vector<OpId>{static_cast<OpId>(i)}));
    }
    if (reason_of(op.work) == Busy::Reason::kDecode) {
      EXPECT_EQ(op.stream, 1);
      EXPECT_DOUBLE_EQ(seconds_of(op.work), 3e-5);
    }
  }
}

// Where a processor rounds and adds them, 16 bits take longer than the memory that they pass.
TEST(Planner, RoundingHasARateOfItsOwn) {
  Cluster cluster = cluster_of(4, 1);
  cluster.device.memory = 1e9;
  const auto times = [&](const char* codec) {
    Strategy strategy = dgc_strategy(10);
    strategy.compression.codec = codec;
    const Plan plan = make_plan(five(), cluster, strategy);
    return std::pair(first_seconds(plan, Busy::Reason::kEncode),
                     first_seconds(plan, Busy::Reason::kDecode));
  };
  const auto by_memory = times("fp16");
  const auto largest = times("dgc");
  cluster.device.rounding = 1e9 / 4;
  EXPECT_DOUBLE_EQ(times("fp16").first, 4 * by_memory.first);
  EXPECT_DOUBLE_EQ(times("bf16").second, 4 * by_memory.second);
  EXPECT_EQ(times("dgc"), largest);
}

// Where somebody measured what finding the largest elements takes, memory traffic does not say it;
// codecs that keep all of them go on by traffic.
TEST(Planner, SelectionTakesWhatWasMeasured) {
  Cluster cluster = cluster_of(4, 1);
  cluster.device.memory = 1e9;
  cluster.device.select = 1e6;
  // What encoding an element takes.
  const auto encoding = [&](const Strategy& strategy) {
    const Plan plan = make_plan(five(), cluster, strategy);
    const auto& encode = std::get<Busy>(ops_of(plan, Busy::Reason::kEncode).at(0)->work);
    const Bucket& bucket = plan.buckets[index(encode.bucket)];
    return encode.seconds / static_cast<double>(bucket.elements);
  };
  const Strategy half = compressing("fp16", Fusion::Rule::kOne);
  EXPECT_DOUBLE_EQ(encoding(dgc_strategy(10)), 1e-6);
  cluster.device.selection = 1e-3;  // once a bucket, whatever is in it
  const auto elements =
      static_cast<double>(make_plan(five(), cluster, dgc_strategy(10)).buckets[0].elements);
  EXPECT_NEAR(encoding(dgc_strategy(10)), 1e-6 + 1e-3 / elements, 1e-15);
  const Seconds by_traffic = encoding(half);
  cluster.device.select = 0;
  EXPECT_DOUBLE_EQ(encoding(half), by_traffic);
  EXPECT_LT(encoding(dgc_strategy(10)), 1e-7);
}

TEST(Planner, DgcIsDenseBeforeItsRamp) {
  Strategy strategy = dgc_strategy(10);
  strategy.compression.rampup_begin_step = 100;
  strategy.compression.rampup_step = 100;
  strategy.compression.sparsity = {0.5, 0.9};
  const auto at = [&](const TrainingPoint& point) {
    return make_plan(five(), cluster_of(4, 1), strategy, point);
  };
  EXPECT_TRUE(ops_of(at({99, 0}), Busy::Reason::kEncode).empty());
  EXPECT_EQ(at({100, 0}).buckets[0].kept, 50);
  EXPECT_EQ(at({149, 0}).buckets[0].kept, 50);
  EXPECT_EQ(at({150, 0}).buckets[0].kept, 10);
  EXPECT_EQ(at({}).buckets[0].kept, 10);
}

TEST(Planner, HalfPrecisionHalvesWhatTravels) {
  const Plan plan = make_plan(five(), cluster_of(2, 1), compressing("fp16", Fusion::Rule::kOne));
  EXPECT_EQ(collectives_of(plan, 0)[0].kind, collective::CollectiveKind::kAllReduce);
  EXPECT_EQ(collectives_of(plan, 0)[0].bytes(), 1000);
}

// What is not compressed, the first factors and the second ones, each summed by itself.
TEST(Planner, PowerSgdSumsTwoFactorsOneAfterTheOther) {
  const Workload workload = matrices_and_vectors();
  Cluster cluster = cluster_of(4, 1);
  cluster.device.launch = 1e-5;
  Strategy strategy = compressing("powersgd", Fusion::Rule::kGroups);
  strategy.fusion.groups = {{0, 1, 2}, {3}};
  strategy.compression.rank = 3;
  strategy.compression.rampup_begin_step = 10;
  strategy.compression.encode_launches = 5;
  strategy.compression.decode_launches = 7;
  const Plan plan = make_plan(workload, cluster, strategy);
  ASSERT_EQ(plan.buckets.size(), 2U);
  for (const auto& collective : collectives_of(plan, 0)) {
    EXPECT_EQ(collective.kind, collective::CollectiveKind::kAllReduce);
  }
  EXPECT_EQ(each(collectives_of(plan, 0), &collective::Collective::elements),
            (std::vector<std::int64_t>{100, 3 * (100 + 30), 3 * (50 + 40)}));
  EXPECT_EQ(encoded_bytes(plan.buckets[0]), 4 * (100 + 3 * 130 + 3 * 90));
  // A bucket of vectors alone travels as it is.
  EXPECT_EQ(plan.buckets[1].codec, nullptr);
  EXPECT_EQ(collectives_of(plan, 1).size(), 1U);
  // Launches count by matrix.
  ASSERT_EQ(ops_of(plan, Busy::Reason::kEncode).size(), 1U);
  EXPECT_DOUBLE_EQ(first_seconds(plan, Busy::Reason::kEncode), 10e-5);
  EXPECT_DOUBLE_EQ(first_seconds(plan, Busy::Reason::kDecode), 14e-5);
  // Whole before its start.
  for (const std::int64_t step : {9, 10}) {
    const Plan early = make_plan(workload, cluster, strategy, {step, 0});
    EXPECT_EQ(ops_of(early, Busy::Reason::kEncode).size(), step < 10 ? 0U : 1U);
  }
  // The memory's rate, or that of the products where they take longer.
  cluster.device.launch = 0;
  cluster.device.memory = 1e9;
  const auto encoding = [&] {
    return first_seconds(make_plan(workload, cluster, strategy), Busy::Reason::kEncode);
  };
  const Seconds moved = encoding();
  EXPECT_GT(moved, 4.0 * 6 * 6300 / 1e9);
  cluster.device.flops = 1e6;
  EXPECT_GT(encoding(), 2.0 * 3 * 6200 / 1e6);
}

// A bucket's gradients one behind the other in a square: 6330 elements in one of 80.
TEST(Planner, BatchedPowerSgdFactorsEachBucketAsOne) {
  const Workload workload = matrices_and_vectors();
  Cluster cluster = cluster_of(4, 1);
  cluster.device.launch = 1e-5;
  Strategy strategy = compressing("batched_powersgd", Fusion::Rule::kOne);
  strategy.compression.rank = 3;
  strategy.compression.encode_launches = 5;
  const Plan plan = make_plan(workload, cluster, strategy);
  ASSERT_EQ(plan.buckets.size(), 1U);
  EXPECT_EQ(each(collectives_of(plan, 0), &collective::Collective::elements),
            (std::vector<std::int64_t>{3 * 80, 3 * 80}));
  EXPECT_EQ(encoded_bytes(plan.buckets[0]), 4 * 2 * 3 * 80);
  EXPECT_DOUBLE_EQ(first_seconds(plan, Busy::Reason::kEncode), 5e-5);
  // Vectors too.
  strategy.fusion.rule = Fusion::Rule::kNone;
  EXPECT_EQ(ops_of(make_plan(workload, cluster, strategy), Busy::Reason::kEncode).size(), 4U);
}

TEST(Planner, SparseGradientsAreGatheredAndNeverFused) {
  Workload workload = five();
  workload.tensors[2] = sparse_tensor_of("embedding", {1000, 16}, 32);
  for (const auto rule : {Fusion::Rule::kOne, Fusion::Rule::kLayer, Fusion::Rule::kSize,
                          Fusion::Rule::kCount, Fusion::Rule::kIndex}) {
    Strategy strategy = strategy_with(rule);
    strategy.fusion.size = kMiB;
    strategy.fusion.count = 100;
    strategy.fusion.ends = {4};
    const Plan plan = make_plan(workload, cluster_of(4, 1), strategy);
    int sparse = 0;
    for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
      if (!plan.buckets[b].sparse) continue;
      ++sparse;
      EXPECT_EQ(plan.buckets[b].tensors, (std::vector<int>{2}));
      const auto gather = collectives_of(plan, static_cast<int>(b));
      ASSERT_EQ(gather.size(), 1u);
      EXPECT_EQ(gather[0].kind, collective::CollectiveKind::kAllGather);
      EXPECT_EQ(gather[0].bytes(), 4 * 32 * (16 * 4 + 8));  // rows of floats with an int64 index
    }
    EXPECT_EQ(sparse, 1);
  }
}

// Sparse exchanges ignore the hierarchy, and go by ring where the algorithm does not gather.
TEST(Planner, GathersAreFlat) {
  Strategy strategy = dgc_strategy(10);
  strategy.algorithm = "double_binary_tree";
  strategy.hierarchy.form = Hierarchy::Form::kLeaders;
  strategy.hierarchy.group_size = 4;
  const auto gather = collectives_of(make_plan(five(), cluster_of(2, 4), strategy), 0);
  ASSERT_EQ(gather.size(), 1u);
  EXPECT_EQ(gather[0].groups, collective::world_group(8));
  EXPECT_EQ(gather[0].algorithm->name, "ring");
}

}  // namespace
}  // namespace syncline::plan
