// Numbers that the frameworks' documents and sources give and that belong to no single dialect
// test: other names of the same model, rules that the logs refute, bytes of hierarchy and
// compression.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/cost.h"
#include "core/plan.h"
#include "core/plan/fusion.h"
#include "formats/dialect/dialect.h"
#include "tests/support/readings.h"
#include "tests/support/small_plans.h"

namespace syncline::dialect {
namespace {

using test::cluster_of;
using test::paddle_resnet50;
using test::shipped_workload;
using test::tensor_of;

// Returns Paddle on two nodes; its dialect is handed in as the program begins.
const test::Framework& paddle_at_two_nodes() {
  static const test::Framework framework{*find_dialect("paddle"), cluster_of(2, 8)};
  return framework;
}

std::size_t count_in_paddle(const std::string& config, const Workload& workload) {
  return paddle_at_two_nodes().plan_of(config, workload).buckets.size();
}

constexpr const char* kBySixteen = R"({"fuse_grad_size_in_MB": 16})";

// The names that Paddle gives by itself: weight and bias of a layer agree up to the first dot.
Workload with_automatic_names(Workload workload) {
  std::map<std::string, int> seen;
  int convolutions = 0;
  for (auto& tensor : workload.tensors) {
    if (tensor.name.starts_with("fc")) continue;
    if (!tensor.name.starts_with("bn")) {
      tensor.name = "conv2d_" + std::to_string(convolutions++) + ".w_0";
      continue;
    }
    const bool scale = tensor.name.ends_with("_scale");
    const std::string layer = tensor.name.substr(0, tensor.name.rfind('_'));
    const int number = seen.emplace(layer, static_cast<int>(seen.size())).first->second;
    tensor.name = "batch_norm_" + std::to_string(number) + (scale ? ".w_0" : ".b_0");
  }
  return workload;
}

TEST(DocumentedNumbers, AutomaticNamesMakeLayersOfTwo) {
  const Workload workload = with_automatic_names(paddle_resnet50(10));
  // 53 convolutions, 53 batch norms, one head.
  EXPECT_EQ(count_in_paddle(R"({"fuse_grad_size_in_MB": -1})", workload), 107U);
  // The logged counts do not tell these names from the explicit ones.
  EXPECT_EQ(count_in_paddle(kBySixteen, workload), 6U);
  EXPECT_EQ(count_in_paddle("{}", workload), 5U);
}

TEST(DocumentedNumbers, ClosingBeforeTheSizeIsRefutedByTheLogs) {
  Fusion fusion;
  fusion.rule = Fusion::Rule::kSize;
  fusion.count = 51;
  fusion.by_layer = true;
  fusion.layer_key = Fusion::LayerKey::kFirstDot;
  fusion.close = Fusion::Close::kBefore;
  const auto tensors = paddle_resnet50(10).tensors;
  const auto count = [&](Bytes mebibytes) {
    fusion.size = mebibytes * kMiB;
    return plan::fuse(test::pointers_to(tensors), test::indices_of(tensors), fusion).size();
  };
  EXPECT_EQ(count(16), 8U) << "the log says 6";
  EXPECT_EQ(count(32), 5U);
}

TEST(DocumentedNumbers, ALayerAboveTheSizeIsOnItsOwnOnlyIfItBeginsAGroup) {
  Workload workload;
  constexpr std::int64_t kHuge = 20 * kMiB / 4;
  workload.tensors = {tensor_of("a", {kHuge}), tensor_of("b", {10}), tensor_of("c", {kHuge}),
                      tensor_of("d", {10})};
  EXPECT_EQ(test::tensors_in(paddle_at_two_nodes().plan_of(kBySixteen, workload).buckets),
            (test::Groups{{0}, {1, 2}, {3}}));
}

// Mixed precision: 53 convolutions and weight and bias of the head are halves, 106 of batch norm
// are not.
TEST(DocumentedNumbers, MixedPrecisionHasFiftyFiveHalves) {
  const Workload workload = shipped_workload("resnet50_v100_amp.json");
  const auto halves =
      std::count_if(workload.tensors.begin(), workload.tensors.end(),
                    [](const Tensor& tensor) { return tensor.dtype == DType::kFp16; });
  EXPECT_EQ(halves, 55);
  EXPECT_EQ(workload.tensors.size(), 161U);
}

// Hierarchical all-reduce of S bytes among E leaders: S into the leader, 2 (E - 1) / E S among the
// leaders, S back into the group.
TEST(DocumentedNumbers, BytesOfTheHierarchicalAllReduce) {
  const Workload workload = paddle_resnet50(10);
  const Cluster cluster = cluster_of(4, 8);
  const plan::Plan plan = paddle_at_two_nodes().on(cluster).plan_of(
      R"({"use_hierarchical_allreduce": true, "hierarchical_allreduce_inter_nranks": 8})",
      workload);
  collective::CostCache cache(cluster);
  std::vector<double> leader, follower;
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective == nullptr || collective->bucket != 0) continue;
    const auto& cost = cache.cost(*collective);
    leader.push_back(cost.payloads_sent(8));
    follower.push_back(0);
    for (int rank = 9; rank < 16; ++rank) {
      follower.back() = std::max(follower.back(), cost.payloads_sent(rank));
    }
  }
  EXPECT_EQ(leader, (std::vector<double>{0, 1.5, 1}));
  EXPECT_EQ(follower, (std::vector<double>{1, 0, 1}));
}

// 8 bytes a kept element to N - 1 others against 2 (N - 1) / N of 4 bytes each: even where the kept
// share is 1 / N, so 75 % sparsity moves more than dense from 5 ranks on.
TEST(DocumentedNumbers, DgcBreaksEvenAtOneOverTheRanks) {
  Workload workload;
  workload.tensors = {tensor_of("w", {1 << 20})};
  const auto sent = [&](int ranks, const char* config) {
    const Cluster cluster = cluster_of(ranks, 1);
    collective::CostCache cache(cluster);
    double bytes = 0;
    for (const auto& op : paddle_at_two_nodes().on(cluster).plan_of(config, workload).ops) {
      const auto* collective = std::get_if<collective::Collective>(&op.work);
      if (collective == nullptr) continue;
      bytes += cache.cost(*collective).payloads_sent(0) * static_cast<double>(collective->bytes());
    }
    return bytes;
  };
  const char* const sparse = R"({"dgc": true, "dgc_configs": {"sparsity": [0.75]}})";
  EXPECT_LT(sent(3, sparse), sent(3, "{}"));
  EXPECT_DOUBLE_EQ(sent(4, sparse), sent(4, "{}"));
  EXPECT_DOUBLE_EQ(sent(4, sparse), 6291456);
  EXPECT_GT(sent(5, sparse), sent(5, "{}"));
  // What the others receive of one rank is its 8 k bytes, from N - 1 of them.
  EXPECT_DOUBLE_EQ(sent(8, sparse), 7.0 * 8 * (1 << 18));
}

// MindSpore's model zoo splits ResNet-101 by [180, 313], ResNet-50 by [85, 160]: the last index is
// that of the last parameter.
TEST(DocumentedNumbers, ModelZooIndexLists) {
  const test::Framework mindspore{*find_dialect("mindspore"), cluster_of(2, 8)};
  const auto counts = [&](const char* list, const Workload& workload) {
    const std::string config = R"({"parallel_mode": "data_parallel", "comm_fusion":
        {"allreduce": {"mode": "index", "config": )" +
                               std::string(list) + "}}}";
    std::vector<std::size_t> found;
    for (const auto& bucket : mindspore.plan_of(config, workload).buckets) {
      found.push_back(bucket.tensors.size());
    }
    return found;  // in backward order: the list's last part first
  };
  EXPECT_EQ(counts("[180, 313]", shipped_workload("resnet101_v100.json")),
            (std::vector<std::size_t>{133, 181}));
  EXPECT_EQ(counts("[85, 160]", shipped_workload("resnet50_v100.json")),
            (std::vector<std::size_t>{75, 86}));
}

}  // namespace
}  // namespace syncline::dialect
