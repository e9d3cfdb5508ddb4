// The published bucket lists of Paddle, PyTorch's and Horovod's rules, and what every rule keeps.
#include "core/plan/fusion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/plan/planned.h"

namespace syncline::plan {
namespace {

using test::indices_of;
using test::paddle_resnet50;
using test::pointers_to;
using test::shipped_workload;
using test::tensor_of;

using Groups = std::vector<std::vector<int>>;

Groups fuse_all(const std::vector<Tensor>& tensors, const Fusion& fusion) {
  return fuse(pointers_to(tensors), indices_of(tensors), fusion);
}

// Bytes of each tensor alone, for cases in which names do not matter.
std::vector<Tensor> tensors_of(const std::vector<std::int64_t>& elements) {
  std::vector<Tensor> tensors;
  for (const auto n : elements) tensors.push_back(tensor_of(std::to_string(tensors.size()), {n}));
  return tensors;
}

Fusion by_size(Bytes size, Fusion::Close close = Fusion::Close::kAfter) {
  Fusion fusion = strategy_with(Fusion::Rule::kSize).fusion;
  fusion.size = size;
  fusion.close = close;
  return fusion;
}

Fusion by_count(std::int64_t count) {
  Fusion fusion = strategy_with(Fusion::Rule::kCount).fusion;
  fusion.count = count;
  return fusion;
}

Fusion by_index(std::vector<std::int64_t> ends) {
  Fusion fusion = strategy_with(Fusion::Rule::kIndex).fusion;
  fusion.ends = std::move(ends);
  return fusion;
}

// Paddle's "at most 50 gradients" is tested as "more than 50": it closes at 51.
Fusion paddle(double mebibytes) {
  Fusion fusion = by_size(static_cast<Bytes>(mebibytes * static_cast<double>(kMiB)));
  fusion.count = 51;
  fusion.by_layer = true;
  fusion.layer_key = Fusion::LayerKey::kFirstDot;
  fusion.align = 256;
  return fusion;
}

using Sizes = std::vector<std::pair<std::size_t, double>>;  // tensors, MiB

Sizes sizes_of(const std::vector<Tensor>& tensors, const Fusion& fusion) {
  Sizes sizes;
  for (const auto& group : fuse_all(tensors, fusion)) {
    Bytes bytes = 0;
    for (const int index : group) bytes += tensors[static_cast<std::size_t>(index)].bytes();
    sizes.emplace_back(group.size(), static_cast<double>(bytes) / static_cast<double>(kMiB));
  }
  return sizes;
}

void expect_sizes(const Sizes& found, const Sizes& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].first, expected[i].first) << "group " << i;
    EXPECT_NEAR(found[i].second, expected[i].second, 6e-4) << "group " << i;
  }
}

// In parameter order.
std::vector<Tensor> resnet50_forward() {
  auto tensors = shipped_workload("resnet50_v100.json").tensors;
  std::ranges::reverse(tensors);
  return tensors;
}

// The two counts of the documents' logs, 6 and 5 groups of the model with ten classes, and those of
// other heads.
TEST(PaddleFusion, GroupsOfTheLogs) {
  const auto groups_of = [](std::int64_t classes, double mebibytes) {
    const auto tensors = paddle_resnet50(classes).tensors;
    EXPECT_EQ(tensors.size(), 161u);
    return sizes_of(tensors, paddle(mebibytes));
  };
  expect_sizes(groups_of(10, 16),
               {{11, 17.102}, {9, 17.023}, {9, 21.035}, {36, 18.049}, {51, 14.238}, {45, 2.307}});
  expect_sizes(groups_of(10, 32),
               {{20, 34.125}, {33, 32.570}, {51, 19.433}, {51, 3.574}, {6, 0.0525}});
  EXPECT_EQ(groups_of(102, 16).size(), 6u);
  EXPECT_EQ(groups_of(102, 32).size(), 5u);
  expect_sizes(groups_of(1000, 16), {{8, 20.836},
                                     {9, 17.023},
                                     {9, 16.035},
                                     {18, 16.277},
                                     {33, 16.039},
                                     {51, 10.422},
                                     {33, 0.860}});
  expect_sizes(groups_of(1000, 32),
               {{17, 37.859}, {27, 32.313}, {51, 22.626}, {51, 4.372}, {15, 0.3225}});
}

TEST(PaddleFusion, PaddingOfTheFirstGroup) {
  const auto tensors = paddle_resnet50(10).tensors;
  const Fusion fusion = paddle(16);
  const auto buckets = buckets_of(pointers_to(tensors), fuse_all(tensors, fusion)[0], fusion);
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].bytes, 17932328);
  EXPECT_EQ(buckets[0].padded_bytes, 17932544);
}

TEST(PaddleFusion, WithoutSizeMergingLayersStaySeparate) {
  Fusion fusion = strategy_with(Fusion::Rule::kLayer).fusion;
  fusion.layer_key = Fusion::LayerKey::kFirstDot;
  // Only weight and bias of the head share what stands before the dot.
  EXPECT_EQ(fuse_all(paddle_resnet50(10).tensors, fusion).size(), 160u);
  // The first install_check names linear_0.w_0 and linear_0.b_0, the later one has no dots.
  EXPECT_EQ(fuse_all({tensor_of("linear_0.b_0", {3}), tensor_of("linear_0.w_0", {6})}, fusion),
            (Groups{{0, 1}}));
  EXPECT_EQ(fuse_all({tensor_of("create_parameter_1", {3}), tensor_of("create_parameter_0", {6})},
                     fusion),
            (Groups{{0}, {1}}));
}

// the counts of Paddle, amp.rst: convolutions and head in fp16, batch norms in fp32 give 4 groups
// by size, each in two dtypes.
TEST(PaddleFusion, MixedPrecisionCounts) {
  auto tensors = paddle_resnet50(10).tensors;
  for (auto& tensor : tensors) {
    const bool norm = tensor.name.starts_with("bn");
    tensor.dtype = norm ? DType::kFp32 : DType::kFp16;
  }
  const auto count = [&](double mebibytes) {
    std::size_t buckets = 0;
    for (const auto& group : fuse_all(tensors, paddle(mebibytes))) {
      buckets += buckets_of(pointers_to(tensors), group, paddle(mebibytes)).size();
    }
    return buckets;
  };
  EXPECT_EQ(count(32), 8u);
  EXPECT_EQ(count(16), 10u);
}

// Paddle's dygraph reducer groups in forward order with PyTorch's limits.
TEST(DdpFusion, ForwardOrderAsThePaddleReducer) {
  const auto tensors = resnet50_forward();
  Fusion fusion = by_size(25 * kMiB);
  fusion.first_size = kMiB;
  expect_sizes(sizes_of(tensors, fusion),
               {{37, 1.548}, {78, 25.771}, {24, 28.295}, {15, 30.043}, {7, 11.836}});
  fusion.size = 32 * kMiB;
  expect_sizes(sizes_of(tensors, fusion), {{37, 1.548}, {93, 33.042}, {15, 34.043}, {16, 28.859}});
}

// PyTorch's reducer: backward order, 1 MiB first, a bucket closes once it has reached its limit.
TEST(DdpFusion, BackwardOrderWithASmallFirstBucket) {
  const auto tensors = shipped_workload("resnet50_v100.json").tensors;
  Fusion fusion = by_size(25 * kMiB);
  fusion.first_size = kMiB;
  const Sizes sizes = sizes_of(tensors, fusion);
  ASSERT_GE(sizes.size(), 2u);
  EXPECT_EQ(sizes[0].first, 2u);  // the head's bias and its 7.8 MiB weight
  for (std::size_t i = 1; i + 1 < sizes.size(); ++i) EXPECT_GE(sizes[i].second, 25);
}

TEST(DdpFusion, ABucketClosesAtItsLimitAndMayOvershoot) {
  const auto tensors = tensors_of({10, 10, 10, 100, 1, 1});
  EXPECT_EQ(fuse_all(tensors, by_size(80)), (Groups{{0, 1}, {2, 3}, {4, 5}}));
  Fusion fusion = by_size(120);
  fusion.first_size = 1;
  EXPECT_EQ(fuse_all(tensors, fusion), (Groups{{0}, {1, 2, 3}, {4, 5}}));
}

TEST(HorovodFusion, ABucketClosesBeforeItsLimit) {
  const auto before = Fusion::Close::kBefore;
  EXPECT_EQ(fuse_all(tensors_of({10, 10, 10, 100, 1, 1}), by_size(80, before)),
            (Groups{{0, 1}, {2}, {3}, {4, 5}}));
  // One that is too large by itself travels alone, wherever it stands.
  EXPECT_EQ(fuse_all(tensors_of({100, 1}), by_size(80, before)), (Groups{{0}, {1}}));
  Fusion fusion = by_size(80, before);
  fusion.first_size = 40;
  EXPECT_EQ(fuse_all(tensors_of({10, 10, 10, 10}), fusion), (Groups{{0}, {1, 2}, {3}}));
  fusion.count = 1;
  EXPECT_EQ(fuse_all(tensors_of({1, 1, 1}), fusion), (Groups{{0}, {1}, {2}}));
}

TEST(HorovodFusion, NoBucketOfSeveralGradientsExceedsTheLimit) {
  const auto tensors = shipped_workload("resnet50_v100.json").tensors;
  for (const auto& [count, mebibytes] :
       sizes_of(tensors, by_size(8 * kMiB, Fusion::Close::kBefore))) {
    EXPECT_TRUE(mebibytes <= 8 || count == 1) << count << " tensors, " << mebibytes << " MiB";
  }
}

// MindSpore's index mode in parameter order.
TEST(IndexFusion, InclusiveEndsAndTheRest) {
  const auto tensors = resnet50_forward();
  expect_sizes(sizes_of(tensors, by_index({85, 160})), {{86, 12.282}, {75, 85.210}});
  expect_sizes(sizes_of(tensors, by_index({85})), {{86, 12.282}, {75, 85.210}});
}

TEST(IndexFusion, EndsPastTheLastCloseNothing) {
  const auto tensors = tensors_of({1, 1, 1});
  EXPECT_EQ(fuse_all(tensors, by_index({0, 2, 7, 1000000000000})), (Groups{{0}, {1, 2}}));
  EXPECT_EQ(fuse_all(tensors, by_index({99})), (Groups{{0, 1, 2}}));
}

// The same table: 16 MiB in effect, closed including the tensor that goes over.
TEST(SizeFusion, MindSporeDataParallel) {
  const auto tensors = resnet50_forward();
  expect_sizes(sizes_of(tensors, by_size(16 * kMiB)),
               {{94, 16.543}, {33, 16.039}, {12, 23.031}, {9, 17.023}, {9, 17.023}, {4, 7.832}});
  EXPECT_EQ(fuse_all(tensors, by_size(8 * kMiB)).size(), 11u);
  EXPECT_EQ(fuse_all(tensors, by_size(4 * kMiB)).size(), 19u);
}

TEST(CountFusion, CountsTensorsNotLayers) {
  EXPECT_EQ(fuse_all(tensors_of({1, 1, 1, 1, 1}), by_count(2)), (Groups{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(fuse_all(tensors_of({1, 1}), by_count(1)), (Groups{{0}, {1}}));
  // Whole layers at a time: the third tensor of a layer may overshoot the count.
  Fusion fusion = by_count(2);
  fusion.by_layer = true;
  const std::vector<Tensor> tensors{tensor_of("b.x", {1}), tensor_of("a.x", {1}),
                                    tensor_of("a.y", {1}), tensor_of("c.x", {1})};
  EXPECT_EQ(fuse_all(tensors, fusion), (Groups{{0, 1, 2}, {3}}));
}

TEST(OneFusion, OneGroupOrNone) {
  const Fusion fusion = strategy_with(Fusion::Rule::kOne).fusion;
  EXPECT_EQ(fuse_all(tensors_of({1, 2, 3}), fusion), (Groups{{0, 1, 2}}));
  EXPECT_EQ(fuse_all({}, fusion), Groups{});
}

TEST(LayerFusion, MembersNeedNotBeNeighbours) {
  const Fusion fusion = strategy_with(Fusion::Rule::kLayer).fusion;
  const std::vector<Tensor> tensors{tensor_of("a.x", {1}), tensor_of("b.x", {1}),
                                    tensor_of("a.y", {1}), tensor_of("b.y", {1})};
  EXPECT_EQ(fuse_all(tensors, fusion), (Groups{{0, 2}, {1, 3}}));
}

TEST(LayerFusion, TheKeyEndsAtTheFirstOrTheLastDot) {
  EXPECT_EQ(layer_of("layer4.2.bn1.weight", Fusion::LayerKey::kLastDot), "layer4.2.bn1");
  EXPECT_EQ(layer_of("layer4.2.bn1.weight", Fusion::LayerKey::kFirstDot), "layer4");
  EXPECT_EQ(layer_of("conv1_weights", Fusion::LayerKey::kLastDot), "conv1_weights");
  EXPECT_EQ(layer_of("conv1_weights", Fusion::LayerKey::kFirstDot), "conv1_weights");
}

TEST(Buckets, OneADtypeInFirstSeenOrder) {
  const std::vector<Tensor> tensors{tensor_of("a", {3}, DType::kFp16), tensor_of("b", {5}),
                                    tensor_of("c", {7}, DType::kFp16)};
  Fusion fusion;
  fusion.align = 16;
  const auto buckets = buckets_of(pointers_to(tensors), {0, 1, 2}, fusion);
  EXPECT_EQ(each(buckets, &Bucket::tensors), (Groups{{0, 2}, {1}}));
  EXPECT_EQ(each(buckets, &Bucket::padded_bytes), (std::vector<Bytes>{32, 32}));
  EXPECT_EQ(each(buckets, &Bucket::ready), (std::vector<int>{2, 1}));
  EXPECT_EQ(buckets.at(0).dtype, DType::kFp16);
  EXPECT_EQ(buckets.at(0).elements, 10);
  EXPECT_EQ(buckets.at(0).bytes, 20);
}

// A rule drawn at random, with every knob that it knows.
Fusion random_fusion(std::mt19937& random) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Fusion fusion;
  fusion.rule = static_cast<Fusion::Rule>(pick(6));
  fusion.size = 1 + pick(400);
  fusion.first_size = pick(2) == 0 ? 0 : 1 + pick(100);
  fusion.count = pick(2) == 0 && fusion.rule != Fusion::Rule::kCount ? 0 : 1 + pick(8);
  for (std::int64_t end = pick(5); end < 60; end += 1 + pick(20)) fusion.ends.push_back(end);
  fusion.close = pick(2) == 0 ? Fusion::Close::kAfter : Fusion::Close::kBefore;
  fusion.by_layer = pick(2) == 0;
  fusion.layer_key = pick(2) == 0 ? Fusion::LayerKey::kLastDot : Fusion::LayerKey::kFirstDot;
  fusion.align = 1 + pick(64);
  return fusion;
}

bool goes_by_layer(const Fusion& fusion) {
  const bool merges = fusion.rule == Fusion::Rule::kSize || fusion.rule == Fusion::Rule::kCount;
  return fusion.rule == Fusion::Rule::kLayer || (merges && fusion.by_layer);
}

TEST(EveryFusion, KeepsEachCandidateOnceAndInOrder) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<Tensor> tensors;
    const auto count = random() % 50;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = std::to_string(random() % 4) + "." + std::to_string(random() % 4) +
                               "." + std::to_string(i);
      tensors.push_back(tensor_of(name, {1 + static_cast<std::int64_t>(random() % 40)},
                                  random() % 3 == 0 ? DType::kFp16 : DType::kFp32));
    }
    std::vector<int> candidates;
    for (const int i : indices_of(tensors)) {
      if (random() % 5 != 0) candidates.push_back(i);
    }
    const Fusion fusion = random_fusion(random);
    SCOPED_TRACE("trial " + std::to_string(trial));
    const Groups groups = fuse(pointers_to(tensors), candidates, fusion);

    std::vector<int> flat;
    for (const auto& group : groups) {
      ASSERT_FALSE(group.empty());
      flat.insert(flat.end(), group.begin(), group.end());
      std::vector<int> in_buckets;
      for (const auto& bucket : buckets_of(pointers_to(tensors), group, fusion)) {
        EXPECT_GE(bucket.padded_bytes, bucket.bytes);
        EXPECT_EQ(bucket.ready, *std::ranges::max_element(bucket.tensors));
        in_buckets.insert(in_buckets.end(), bucket.tensors.begin(), bucket.tensors.end());
      }
      EXPECT_TRUE(std::ranges::is_permutation(in_buckets, group));
    }
    if (!goes_by_layer(fusion)) {
      ASSERT_EQ(flat, candidates);
      continue;
    }
    ASSERT_TRUE(std::ranges::is_permutation(flat, candidates));
    // A layer is in one group, its members in order.
    std::map<std::string, std::pair<std::size_t, int>> seen;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const int index : groups[g]) {
        const auto layer =
            layer_of(tensors[static_cast<std::size_t>(index)].name, fusion.layer_key);
        const auto [it, fresh] = seen.try_emplace(layer, g, index);
        if (fresh) continue;
        ASSERT_EQ(it->second.first, g);
        ASSERT_LT(it->second.second, index);
        it->second.second = index;
      }
    }
  }
}

TEST(Fusion, EachGroupHasBucketsOfItsOwn) {
  std::vector<Tensor> tensors(4);
  for (Tensor& tensor : tensors) tensor.elements = 10;
  tensors[1].dtype = DType::kFp16;
  std::vector<Bucket> buckets;
  add_buckets(pointers_to(tensors), std::vector{0, 1}, {}, {}, buckets);
  add_buckets(pointers_to(tensors), std::vector{2, 3}, {}, {}, buckets);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].tensors, std::vector{0});
  EXPECT_EQ(buckets[1].tensors, std::vector{1});
  EXPECT_EQ(buckets[2].tensors, (std::vector{2, 3}));
  EXPECT_EQ(buckets[2].bytes, 80);
}

}  // namespace
}  // namespace syncline::plan
