// MG-WFBP's rule against an independent computation of it on measured traces, and by hand.
#include "core/plan/fusion.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/executor.h"
#include "core/plan.h"
#include "tests/support/plans.h"
#include "tests/support/small_plans.h"

namespace syncline::plan {
namespace {

using test::shipped_workload;
using test::tensor_of;
using Groups = std::vector<std::vector<int>>;

// Two nodes whose ring all-reduce takes alpha + beta * bytes.
Cluster affine_cluster(double alpha, double beta) {
  Cluster cluster = flat_cluster(2);
  cluster.tiers[0].latency = alpha / 2;
  cluster.tiers[0].bandwidth = 1 / beta;
  return cluster;
}

// Computed beside this project from the traces of scenarios/workloads: alpha (s) and beta (s/byte)
// of an all-reduce, the optimum of backward and communication (ms), MG-WFBP's excess over it (%),
// and its number of buckets. Sources of the networks: MG-WFBP's repository, ASC-WFBP, gTop-k.
struct Row {
  const char* workload;
  double alpha, beta, optimum_ms, excess_percent;
  std::size_t buckets;
};

TEST(MgWfbp, OnMeasuredTraces) {
  const Row rows[] = {
      {"resnet50_v100.json", 4.204298980348825e-05, 2.0589360830118177e-10, 64.856, 0.0, 81},
      {"resnet50_v100.json", 0.00023583677659915685, 4.0594787739537565e-10, 65.058, 0.0, 31},
      {"resnet50_v100.json", 0.0001, 1.5e-10, 64.912, 0.0, 86},
      {"resnet50_v100.json", 0.0003, 6e-10, 65.129, 0.0, 6},
      {"resnet50_v100.json", 0.001368709228921283, 1.6569786551462448e-09, 174.076, 2.15, 2},
      {"resnet50_v100.json", 0.0009080981007148093, 7.395651186836712e-10, 79.817, 5.26, 3},
      {"resnet50_v100.json", 0.0026160000000000003, 1.3499999999999998e-08, 1385.892, 2.94, 2},
      {"resnet101_v100.json", 4.204298980348825e-05, 2.0589360830118177e-10, 106.457, 0.0, 185},
      {"resnet101_v100.json", 0.00023583677659915685, 4.0594787739537565e-10, 106.658, 0.0, 43},
      {"resnet101_v100.json", 0.0001, 1.5e-10, 106.512, 0.0, 164},
      {"resnet101_v100.json", 0.0003, 6e-10, 109.428, 0.0, 6},
      {"resnet101_v100.json", 0.001368709228921283, 1.6569786551462448e-09, 300.084, 2.19, 3},
      {"resnet101_v100.json", 0.0009080981007148093, 7.395651186836712e-10, 137.038, 20.38, 3},
      {"resnet101_v100.json", 0.0026160000000000003, 1.3499999999999998e-08, 2411.596, 3.35, 2},
      {"vgg16_bn_v100.json", 4.204298980348825e-05, 2.0589360830118177e-10, 114.648, 0.0, 4},
      {"vgg16_bn_v100.json", 0.00023583677659915685, 4.0594787739537565e-10, 225.91, 0.0, 3},
      {"vgg16_bn_v100.json", 0.0001, 1.5e-10, 111.722, 0.0, 7},
      {"vgg16_bn_v100.json", 0.0003, 6e-10, 333.504, 0.0, 3},
      {"vgg16_bn_v100.json", 0.001368709228921283, 1.6569786551462448e-09, 920.649, 0.0, 2},
      {"vgg16_bn_v100.json", 0.0009080981007148093, 7.395651186836712e-10, 412.572, 0.13, 3},
      {"vgg16_bn_v100.json", 0.0026160000000000003, 1.3499999999999998e-08, 7477.521, 0.15, 2},
  };
  Strategy strategy;
  strategy.fusion.rule = Fusion::Rule::kMgWfbp;
  for (const Row& row : rows) {
    const Workload workload = shipped_workload(row.workload);
    const Cluster cluster = affine_cluster(row.alpha, row.beta);
    const Plan plan = make_plan(workload, cluster, strategy);
    EXPECT_EQ(plan.buckets.size(), row.buckets) << row.workload << " " << row.alpha;
    const auto executor = run::make_model_executor({cluster, {}, 1});
    const Seconds makespan = time_of(*executor, plan) - workload.forward;
    EXPECT_NEAR(100 * (makespan * 1e3 / row.optimum_ms - 1), row.excess_percent, 0.01)
        << row.workload << " " << row.alpha;
  }
}

TEST(MgWfbp, MergesWhatWaitsAnyway) {
  const auto cost = [](Bytes bytes) { return 1.0 + static_cast<double>(bytes); };
  // Ready while the first is still on its way, and waiting costs less than a start-up.
  EXPECT_EQ(mg_wfbp_groups({0, 0.5}, {1, 1}, 1.0, cost), (Groups{{0, 1}}));
  // Waiting would cost more than it saves.
  EXPECT_EQ(mg_wfbp_groups({0, 1.5}, {1, 1}, 1.0, cost), (Groups{{0}, {1}}));
  // Ready only once the first is through.
  EXPECT_EQ(mg_wfbp_groups({0, 2}, {1, 1}, 5.0, cost), (Groups{{0}, {1}}));
  // The second waits for the network until 6; a third that is ready by then joins it, however long
  // after the second.
  EXPECT_EQ(mg_wfbp_groups({0, 1.2, 5.9}, {5, 1, 1}, 1.0, cost), (Groups{{0}, {1, 2}}));
  EXPECT_EQ(mg_wfbp_groups({}, {}, 1.0, cost), Groups{});
}

// Waits below the start-up add up: r_i = 0.9 i, bytes cost 0.8 each. The greedy rule merges
// everything that comes and ends late.
TEST(MgWfbp, IsGreedy) {
  const auto cost = [](Bytes bytes) { return 1.0 + 0.8 * static_cast<double>(bytes); };
  const int count = 10;
  std::vector<Seconds> ready;
  for (int i = 1; i <= count; ++i) ready.push_back(0.9 * i);
  const std::vector<Bytes> bytes(count, 1);
  Seconds end = 0;
  for (const auto& group : mg_wfbp_groups(ready, bytes, 1.0, cost)) {
    end = std::max(end, ready[static_cast<std::size_t>(group.back())]) +
          cost(static_cast<Bytes>(group.size()));
  }
  std::vector<Seconds> best(count + 1, 0);  // the dynamic programme over all partitions
  for (std::size_t i = 1; i <= count; ++i) {
    best[i] = 1e9;
    for (std::size_t j = 0; j < i; ++j) {
      best[i] =
          std::min(best[i], std::max(best[j], ready[i - 1]) + cost(static_cast<Bytes>(i - j)));
    }
  }
  EXPECT_NEAR(end / best[count], 1.36, 0.01);
}

TEST(MgWfbp, KeepsOneDtypePerBucketAndSparseGradientsApart) {
  Workload workload;
  workload.tensors = {tensor_of("a", {100}), tensor_of("b", {100}, DType::kFp16),
                      test::sparse_tensor_of("c", {50, 2}, 3), tensor_of("d", {100})};
  Strategy strategy;
  strategy.fusion.rule = Fusion::Rule::kMgWfbp;
  const Plan plan = make_plan(workload, affine_cluster(1e-3, 1e-9), strategy);
  ASSERT_EQ(plan.buckets.size(), 3u);
  for (const auto& bucket : plan.buckets) {
    for (const int index : bucket.tensors) {
      EXPECT_EQ(workload.tensors[static_cast<std::size_t>(index)].dtype, bucket.dtype);
    }
  }
}

// A small open group takes the next gradient although nothing would be gained by it.
TEST(MgWfbp, SmallGroupsGoOn) {
  const auto cost = [](Bytes) { return 1.0; };
  EXPECT_EQ(mg_wfbp_groups({0, 10, 20}, {1, 1, 1}, 0.1, cost), (Groups{{0}, {1}, {2}}));
  EXPECT_EQ(mg_wfbp_groups({0, 10, 20}, {1, 1, 1}, 0.1, cost, 2), (Groups{{0, 1}, {2}}));
  EXPECT_EQ(mg_wfbp_groups({0, 10, 20}, {1, 1, 1}, 0.1, cost, 3), (Groups{{0, 1, 2}}));
}

}  // namespace
}  // namespace syncline::plan
