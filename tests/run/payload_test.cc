// Payloads: what a rank's bucket looks like on the wire, format by format.
#include "core/run/payload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>

#include "core/run/sample_gradients.h"
#include "tests/plan/planned.h"

namespace syncline::run {
namespace {

using test::cluster_of;
using test::sparse_tensor_of;
using test::tensor_of;

TEST(Payload, NumbersKeepTheirFormat) {
  const std::vector<float> values = {0, 1, -2, 0.5F, 255, -256, 1e-3F};
  for (const DType format : {DType::kFp32, DType::kFp64, DType::kFp16, DType::kBf16}) {
    std::vector<std::byte> bytes(values.size() * index(size_of(format)));
    std::vector<float> back(values.size());
    encode_numbers(format, values.data(), static_cast<std::int64_t>(values.size()), bytes.data());
    decode_numbers(format, bytes.data(), static_cast<std::int64_t>(values.size()), back.data());
    for (std::size_t i = 0; i + 1 < values.size(); ++i) EXPECT_EQ(back[i], values[i]);
    const bool half = size_of(format) == 2;
    EXPECT_NEAR(back.back(), values.back(), half ? 1e-5 : 0);
  }
}

TEST(Payload, ADenseBucketIsItsTensorsAndPadding) {
  Workload workload;
  workload.tensors = {tensor_of("a", {3}), tensor_of("b", {2})};
  Strategy strategy = plan::strategy_with(Fusion::Rule::kOne);
  strategy.fusion.align = 32;
  const plan::Plan plan = plan::make_plan(workload, cluster_of(2, 1), strategy);
  const Payload payload(plan, 0, 1, workload);
  ASSERT_EQ(payload.bytes(), plan.buckets[0].padded_bytes);
  EXPECT_TRUE(payload.by_tensor());
  RankGradients gradients = {{1, 2, 3}, {4, 5}};
  std::vector<std::byte> bytes(static_cast<std::size_t>(payload.bytes()), std::byte{0xff});
  payload.fill(gradients, bytes.data());
  std::vector<float> wire(bytes.size() / 4);
  std::memcpy(wire.data(), bytes.data(), bytes.size());
  EXPECT_EQ(std::vector<float>(wire.begin(), wire.begin() + 5),
            (std::vector<float>{1, 2, 3, 4, 5}));
  for (std::size_t i = 5; i < wire.size(); ++i) EXPECT_EQ(wire[i], 0) << "padding";

  const std::vector<float> other = {7, 8};
  payload.fill_tensor(1, other, bytes.data());
  payload.read(bytes.data(), gradients);
  EXPECT_EQ(gradients, (RankGradients{{1, 2, 3}, {7, 8}}));
}

// Whoever sums a part of a bucket across groups begins at the part that its own group left it, as a
// member of the reduce-scatter before: in subgroups of a LocalSGD, and among tensor ranks.
void expect_own_parts(const plan::Plan& plan, const Workload& workload) {
  int shards = 0;
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const Payload payload(plan, static_cast<int>(b), rank, workload);
      const auto& all = payload.collectives();
      ASSERT_EQ(all.at(0).kind, collective::CollectiveKind::kReduceScatter);
      const auto scattered = collective::find_place(all[0].groups, rank);
      ASSERT_TRUE(scattered);
      ASSERT_EQ(all.at(1).kind, collective::CollectiveKind::kAllReduce);
      EXPECT_EQ(payload.place(1), scattered->member * all[1].elements * all[1].unit)
          << "bucket " << b << " rank " << rank;
      shards += scattered->member > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(shards, 0);
}

TEST(Payload, AcrossGroupsEachRankSumsItsPart) {
  Workload workload;
  workload.tensors = {tensor_of("a", {64})};
  Strategy strategy = plan::in_blocks(Hierarchy::Form::kSharded, 2);
  expect_own_parts(plan::make_plan(workload, cluster_of(2, 4), strategy), workload);
  workload.parallel.tensor = 2;
  expect_own_parts(plan::make_plan(workload, cluster_of(2, 4), strategy), workload);
  workload.parallel.tensor = 1;
  strategy.local_sgd = plan::local_strategy(2).local_sgd;
  strategy.local_sgd.subgroup = 4;
  expect_own_parts(plan::make_plan(workload, cluster_of(2, 4), strategy), workload);
}

TEST(Payload, SumsRoundInTheBucketsFormat) {
  Workload workload;
  workload.tensors = {tensor_of("half", {1}, DType::kBf16)};
  const plan::Plan plan = plan::make_plan(workload, cluster_of(2, 1), {});
  const Payload payload(plan, 0, 0, workload);
  ASSERT_EQ(payload.bytes(), 2);
  std::vector<std::byte> a(2);
  std::vector<std::byte> b(2);
  const float large = 256;
  const float small = 1;  // half of the last place of 256 in bfloat16: rounds to even
  encode_numbers(DType::kBf16, &large, 1, a.data());
  encode_numbers(DType::kBf16, &small, 1, b.data());
  payload.add(a.data(), std::array{b.data()}, 2);
  float sum = 0;
  decode_numbers(DType::kBf16, a.data(), 1, &sum);
  EXPECT_EQ(sum, 256);
}

TEST(Payload, ASparseCodecKeepsTheRestInItsResidual) {
  Workload workload;
  workload.tensors = {tensor_of("large", {1000})};
  Strategy strategy = plan::dgc_strategy(1);
  strategy.compression.sparsity = {0.75};
  const plan::Plan plan = plan::make_plan(workload, cluster_of(2, 1), strategy);
  const Payload payload(plan, 0, 1, workload);
  ASSERT_EQ(payload.bytes(), 2 * 250 * 8);
  RankGradients gradients = {std::vector<float>(1000)};
  for (std::size_t i = 0; i < 1000; ++i) gradients[0][i] = static_cast<float>(i);
  std::vector<std::byte> bytes(static_cast<std::size_t>(payload.bytes()));
  payload.fill(gradients, bytes.data());
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(gradients[0][i], i < 750 ? static_cast<float>(i) : 0) << i;
  }
  // Rank 0's pairs have not come: all zero, they add nothing.
  payload.read(bytes.data(), gradients);
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(gradients[0][i], i < 750 ? 0 : static_cast<float>(i)) << i;
  }
}

TEST(SampleGradients, AreAlikeEverywhereAndExactInSums) {
  Workload workload;
  workload.tensors = {tensor_of("a", {1000}), sparse_tensor_of("rows", {50, 4}, 7)};
  for (const int ranks : {1, 2, 16, 256}) {
    double largest = 0;
    for (const int rank : {0, ranks - 1}) {
      const auto gradients = sample_gradients(workload, rank, ranks, 3);
      EXPECT_EQ(gradients, sample_gradients(workload, rank, ranks, 3));
      for (const float value : gradients[0]) {
        EXPECT_EQ(value, std::round(value));
        largest = std::max(largest, std::abs(static_cast<double>(value)));
      }
    }
    EXPECT_LE(largest * ranks, 256);
    EXPECT_GT(largest, 0);
  }
  EXPECT_NE(sample_gradients(workload, 0, 2, 3), sample_gradients(workload, 1, 2, 3));
}

TEST(SampleGradients, WideIntegersAreExactInFp32AndSeldomEqual) {
  Workload workload;
  workload.tensors = {tensor_of("a", {10000})};
  for (const int ranks : {1, 4, 64}) {
    std::set<float> distinct;
    double largest = 0;
    const auto gradients = sample_gradients(workload, 0, ranks, 3, SampleValues::kWideIntegers);
    for (const float value : gradients[0]) {
      EXPECT_EQ(value, std::round(value));
      largest = std::max(largest, std::abs(static_cast<double>(value)));
      distinct.insert(value);
    }
    EXPECT_LT(largest * ranks, 0x1p24);
    EXPECT_GT(distinct.size(), 8000U);
  }
  plan::Plan plan = plan::make_plan(workload, cluster_of(2, 1), {});
  EXPECT_EQ(exact_values(plan), SampleValues::kWideIntegers);
  plan.buckets[0].dtype = DType::kBf16;
  EXPECT_EQ(exact_values(plan), SampleValues::kIntegers);
}

}  // namespace
}  // namespace syncline::run
