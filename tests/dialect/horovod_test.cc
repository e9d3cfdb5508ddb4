// Horovod: what is ready at a tick is packed in order and never exceeds the threshold.
#include "formats/dialect/dialects.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/executor.h"
#include "core/plan.h"
#include "core/plan/buckets.h"
#include "formats/dialect/write.h"
#include "studies/study/study.h"
#include "tests/support/readings.h"
#include "tests/support/small_plans.h"
#include "tests/support/text.h"

namespace syncline::dialect {
namespace {

using test::cluster_of;
using test::Groups;
using test::has_note;
using test::shipped_workload;
using test::sparse_tensor_of;
using test::tensor_of;

const test::Framework kHorovod{horovod_dialect(), cluster_of(4, 1)};

Groups packed(const std::string& config, const Workload& workload,
              const Cluster& cluster = kHorovod.cluster) {
  const Strategy strategy = kHorovod.on(cluster).strategy_of(config, workload);
  return test::tensors_in(plan::gradient_buckets(workload, cluster, strategy, {}).buckets);
}

// Gradients of these many KiB, all ready at once unless a wait is given.
Workload gradients_of(const std::vector<std::int64_t>& kib,
                      const std::vector<double>& waits_ms = {}) {
  Workload workload;
  for (std::size_t i = 0; i < kib.size(); ++i) {
    workload.tensors.push_back(tensor_of("g" + std::to_string(i), {kib[i] * 256}));
    if (!waits_ms.empty()) workload.tensors.back().backward = waits_ms[i] * kMillisecond;
  }
  return workload;
}

std::string threshold(std::int64_t bytes, const std::string& more = "") {
  return R"({"HOROVOD_FUSION_THRESHOLD": )" + std::to_string(bytes) + more + "}";
}

TEST(Horovod, NeverExceedsTheThresholdExceptForOneLargeGradient) {
  const Workload workload = gradients_of({3, 5, 1, 20, 2, 6, 1});
  EXPECT_EQ(packed(threshold(8 * kKiB), workload), (Groups{{0, 1}, {2}, {3}, {4, 5}, {6}}));
  EXPECT_EQ(packed(threshold(0), workload), (Groups{{0}, {1}, {2}, {3}, {4}, {5}, {6}}));
  EXPECT_EQ(packed("{}", workload), (Groups{{0, 1, 2, 3, 4, 5, 6}}));
}

TEST(Horovod, DefaultIs128MiB) {
  EXPECT_EQ(packed("{}", gradients_of({64 * 1024, 64 * 1024, 1})), (Groups{{0, 1}, {2}}));
}

TEST(Horovod, BufferSplitsEvenlyAmongTheRanksOfANode) {
  // 8 GPUs: multiples of 4 KiB, so 5 KiB become 8.
  const Workload workload = gradients_of({3, 5, 1});
  EXPECT_EQ(packed(threshold(5 * kKiB), workload, cluster_of(1, 8)), (Groups{{0, 1}, {2}}));
  EXPECT_EQ(packed(threshold(5 * kKiB), workload, cluster_of(8, 1)), (Groups{{0}, {1}, {2}}));
}

TEST(Horovod, LooksPastAnotherTypeWhileItFits) {
  Workload workload = gradients_of({2, 4, 2, 2});
  workload.tensors[1].dtype = DType::kFp16;  // 2 KiB
  EXPECT_EQ(packed(threshold(8 * kKiB), workload), (Groups{{0, 2, 3}, {1}}));
  // 2 + 2 looked past is more than 3: the bucket closes there, and what follows the half waits for
  // the half's bucket, which looks past nothing either.
  EXPECT_EQ(packed(threshold(3 * kKiB), workload), (Groups{{0}, {1}, {2}, {3}}));
  // What was looked past comes first for the next bucket, in its order.
  workload = gradients_of({2, 2, 2, 2, 2});
  workload.tensors[1].dtype = workload.tensors[3].dtype = DType::kFp16;
  EXPECT_EQ(packed(threshold(16 * kKiB), workload), (Groups{{0, 2, 4}, {1, 3}}));
}

// Ticks of the first phase come a fortieth of a cycle after whole ones.
TEST(Horovod, TicksSeparate) {
  // Ready at 0.5, 1, 1.5, 1.5, 3.25 ms: ticks 1.025, 1.025, 2.025, 2.025, 4.025.
  const Workload workload = gradients_of({1, 1, 1, 1, 1}, {0.5, 0.5, 0.5, 0, 1.75});
  EXPECT_EQ(packed("{}", workload), (Groups{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(packed(R"({"HOROVOD_CYCLE_TIME": 2})", workload), (Groups{{0, 1, 2, 3}, {4}}));
  EXPECT_EQ(packed(R"({"HOROVOD_CYCLE_TIME": "3.5"})", workload), (Groups{{0, 1, 2, 3, 4}}));
  // Without a cycle each moment is released by itself.
  EXPECT_EQ(packed(R"({"HOROVOD_CYCLE_TIME": 0})", workload), (Groups{{0}, {1}, {2, 3}, {4}}));
  // The forward pass shifts the ticks: 0.75, 1.25, 1.75, 1.75, 3.5.
  Workload later = workload;
  later.forward = 0.25e-3;
  EXPECT_EQ(packed("{}", later), (Groups{{0}, {1, 2, 3}, {4}}));
}

// A second way to the same buckets: every tick's list cut greedily by sums.
TEST(Horovod, ResNet50PacksInOrder) {
  const Workload workload = shipped_workload("resnet50_v100.json");
  for (const double cycle : {1.0, 5.0, 25.0}) {
    for (const std::int64_t mib : {1, 16, 64, 128}) {
      Groups expected;
      double ready = workload.forward;
      double tick = -1;
      Bytes bytes = 0;
      for (int i = 0; i < static_cast<int>(workload.tensors.size()); ++i) {
        const Tensor& tensor = workload.tensors[static_cast<std::size_t>(i)];
        ready += tensor.backward;
        const double own = std::ceil(ready / (cycle * 1e-3) - 0.5 / plan::kTickPhases);
        if (own != tick || bytes + tensor.bytes() > mib * kMiB) {
          expected.emplace_back();
          bytes = 0;
        }
        tick = own;
        bytes += tensor.bytes();
        expected.back().push_back(i);
      }
      EXPECT_EQ(packed(threshold(mib * kMiB, R"(, "HOROVOD_CYCLE_TIME": )" + std::to_string(cycle)),
                       workload, cluster_of(4, 8)),
                expected)
          << cycle << " ms, " << mib << " MiB";
    }
  }
}

TEST(Horovod, EveryGradientOnce) {
  Workload workload = shipped_workload("resnet50_v100.json");
  for (std::size_t i = 0; i < workload.tensors.size(); i += 3)
    workload.tensors[i].dtype = DType::kFp16;
  const auto groups = packed(threshold(4 * kMiB), workload);
  std::multiset<int> seen;
  for (const auto& group : groups) {
    Bytes bytes = 0;
    for (const int index : group) {
      seen.insert(index);
      const Tensor& tensor = workload.tensors[static_cast<std::size_t>(index)];
      bytes += tensor.bytes();
      EXPECT_EQ(tensor.dtype, workload.tensors[static_cast<std::size_t>(group.front())].dtype);
    }
    if (group.size() > 1) {
      EXPECT_LE(bytes, 4 * kMiB);
    }
  }
  EXPECT_EQ(seen.size(), 161u);
  EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), 161u);
}

TEST(Horovod, HalvesHalveWhatIsPacked) {
  const Workload workload = gradients_of({4, 4, 4, 4});
  EXPECT_EQ(packed(threshold(8 * kKiB), workload), (Groups{{0, 1}, {2, 3}}));
  const Reading reading =
      kHorovod.read(threshold(8 * kKiB, R"(, "compression": "fp16")"), workload);
  EXPECT_EQ(packed(threshold(8 * kKiB, R"(, "compression": "fp16")"), workload),
            (Groups{{0, 1, 2, 3}}));
  EXPECT_EQ(reading.strategy.compression.codec, "fp16");
}

TEST(Horovod, SparseGradientsAreBucketsOfTheirOwn) {
  Workload workload = gradients_of({1, 1});
  workload.tensors.insert(workload.tensors.begin() + 1, sparse_tensor_of("embedding", {100, 4}, 3));
  const Reading reading = kHorovod.read("{}", workload);
  EXPECT_EQ(packed("{}", workload), (Groups{{0, 2}, {1}}));
  EXPECT_EQ(plan::make_plan(workload, cluster_of(4, 1), reading.strategy).buckets.size(), 2u);
}

TEST(Horovod, HierarchicalShardsInsideTheNode) {
  const Workload workload = gradients_of({1, 1});
  for (const char* on :
       {R"({"HOROVOD_HIERARCHICAL_ALLREDUCE": 1})", R"({"HOROVOD_HIERARCHICAL_ALLREDUCE": "1"})",
        R"({"HOROVOD_HIERARCHICAL_ALLREDUCE": true})"}) {
    const Reading reading = kHorovod.on(cluster_of(2, 4)).read(on, workload);
    EXPECT_EQ(reading.strategy.hierarchy.form, Hierarchy::Form::kSharded) << on;
    EXPECT_EQ(reading.strategy.hierarchy.group_size, 4);
    EXPECT_GT(plan::make_plan(workload, cluster_of(2, 4), reading.strategy).ops.size(), 4u);
  }
  const Reading single =
      kHorovod.on(cluster_of(1, 8)).read(R"({"HOROVOD_HIERARCHICAL_ALLREDUCE": 1})", workload);
  EXPECT_EQ(single.strategy.hierarchy.form, Hierarchy::Form::kFlat);
  EXPECT_TRUE(has_note(single, "flat with one node"));
  EXPECT_TRUE(has_note(
      kHorovod.on(cluster_of(8, 1)).read(R"({"HOROVOD_HIERARCHICAL_ALLREDUCE": 1})", workload),
      "flat with one GPU a node"));
  const Reading word =
      kHorovod.on(cluster_of(2, 4)).read(R"({"HOROVOD_HIERARCHICAL_ALLREDUCE": "true"})", workload);
  EXPECT_EQ(word.strategy.hierarchy.form, Hierarchy::Form::kFlat);
  EXPECT_TRUE(has_note(word, "'true' is none: off"));
}

TEST(Horovod, Notes) {
  const Workload workload = gradients_of({1, 1});
  EXPECT_TRUE(has_note(kHorovod.read(R"({"HOROVOD_AUTOTUNE": 1})", workload), "not emulated"));
  EXPECT_TRUE(has_note(kHorovod.read(R"({"HOROVOD_AUTOTUNE": 1})", workload), "cannot come back"));
  EXPECT_TRUE(has_note(kHorovod.read(R"({"HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE": 5})", workload),
                       "no effect without HOROVOD_AUTOTUNE: HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE"));
  EXPECT_TRUE(has_note(kHorovod.read("{}", workload), "wait for a tick"));
  EXPECT_FALSE(has_note(kHorovod.read("{}", workload), "emulated"));
  EXPECT_TRUE(has_note(kHorovod.read(R"({"HOROVOD_CYCLE_TIME": 0})", workload), "without a pause"));
}

Seconds step_time(const std::string& config, const Workload& workload, const Cluster& cluster) {
  Scenario scenario;
  scenario.workload = workload;
  scenario.cluster = cluster;
  const Strategy strategy = kHorovod.on(cluster).strategy_of(config, workload);
  const auto model = run::make_model_executor({cluster, {}, 1});
  collective::CostCache cache(cluster);
  return measure::evaluate_strategy(scenario, strategy, *model, cache).metrics.step_time;
}

// A tick delays: one gradient, ready at 0.5 ms, exchanged in 1 ms, ticks every 4 ms. A step that
// begins evenly over the cycle waits (p - 0.5) mod 4 for its tick.
TEST(Horovod, TheMeanOverThePhasesOfACycle) {
  Cluster cluster = cluster_of(2, 1);
  cluster.tiers[0].latency = 0;
  cluster.tiers[0].bandwidth = 1024e6;
  double sum = 0;
  for (int phase = 0; phase < plan::kTickPhases; ++phase) {
    const double tick = 4 * (phase + 0.5) / plan::kTickPhases;
    sum += (tick < 0.5 ? tick + 4 : tick) + 1;
  }
  EXPECT_NEAR(step_time(R"({"HOROVOD_CYCLE_TIME": 4})", gradients_of({1000}, {0.5}), cluster),
              sum / plan::kTickPhases * 1e-3, 1e-9);
}

// Percent of the whole iteration over the best fusion without ticks, on measured V100 traces:
// computed beside this project by an emulation of Horovod's ticks, for its default (128 MiB, 1 ms)
// and the best point of a grid. alpha (s) and beta (s/byte) are an all-reduce's.
TEST(Horovod, TicksOnMeasuredTraces) {
  struct Row {
    const char* workload;
    double alpha, beta, optimum_ms, default_percent, grid_percent;
    int grid_mb, grid_ms;
  };
  const Row rows[] = {
      {"resnet50_v100.json", 0.00023583677659915685, 4.0594787739537565e-10, 128.34, 0.38, 0.38, 1,
       1},
      {"resnet50_v100.json", 0.0003, 6e-10, 128.41, 11.14, 2.69, 48, 5},
      {"resnet50_v100.json", 0.001368709228921283, 1.6569786551462448e-09, 237.35, 31.2, 4.66, 64,
       10},
      {"vgg16_bn_v100.json", 0.00023583677659915685, 4.0594787739537565e-10, 308.81, 1.97, 2.0, 24,
       3},
      {"vgg16_bn_v100.json", 0.0003, 6e-10, 416.41, 1.83, 1.79, 24, 3},
      {"vgg16_bn_v100.json", 0.001368709228921283, 1.6569786551462448e-09, 1003.55, 3.4, 2.14, 32,
       10},
  };
  for (const Row& row : rows) {
    const Workload workload = shipped_workload(row.workload);
    Cluster cluster = cluster_of(2, 1);
    cluster.tiers[0].latency = row.alpha / 2;
    cluster.tiers[0].bandwidth = 1 / row.beta;
    const auto percent = [&](const std::string& config) {
      return 100 * (step_time(config, workload, cluster) * 1e3 / row.optimum_ms - 1);
    };
    EXPECT_NEAR(percent("{}"), row.default_percent, 0.05) << row.workload << " " << row.alpha;
    EXPECT_NEAR(percent(threshold(row.grid_mb * kMiB,
                                  R"(, "HOROVOD_CYCLE_TIME": )" + std::to_string(row.grid_ms))),
                row.grid_percent, 0.1)
        << row.workload << " " << row.alpha;
  }
}

TEST(Horovod, ComesBack) {
  const Workload workload = shipped_workload("resnet50_v100.json");
  const auto horovod = kHorovod.on(cluster_of(4, 8));
  for (const char* config :
       {"{}", R"({"HOROVOD_FUSION_THRESHOLD": 16777216, "HOROVOD_CYCLE_TIME": 2.5})",
        R"({"HOROVOD_FUSION_THRESHOLD": 0})", R"({"HOROVOD_CYCLE_TIME": 0})",
        R"({"compression": "fp16", "HOROVOD_HIERARCHICAL_ALLREDUCE": 1})",
        R"({"HOROVOD_NUM_NCCL_STREAMS": 2})"}) {
    SCOPED_TRACE(config);
    horovod.expect_comes_back(horovod.strategy_of(config, workload), workload);
  }
  // Without ticks there is only a nearest.
  Strategy plain;
  plain.fusion.rule = Fusion::Rule::kOne;
  const auto nearest = horovod.write(plain, workload);
  ASSERT_TRUE(nearest.has_value());
  EXPECT_FALSE(nearest->exact);
}

TEST(Horovod, Mistakes) {
  kHorovod.expect_refusals(
      gradients_of({1, 1}),
      {{R"({"HOROVOD_FUSION_THRESHOLD": -1})",
        "x.json: c.HOROVOD_FUSION_THRESHOLD: found -1, expected"},
       {R"({"HOROVOD_FUSION_THRESHOLD": "64MB"})", "found '64MB', expected a number"},
       {R"({"HOROVOD_FUSION_THRESHOLD": ""})", "expected a number"},
       {R"({"HOROVOD_FUSION_THRESHOLD": "nan"})", "expected a number"},
       {R"({"HOROVOD_FUSION_THRESHOLD": 1.5})", "a whole number of bytes"},
       {R"({"HOROVOD_CYCLE_TIME": -2})", "c.HOROVOD_CYCLE_TIME: found -2"},
       {R"({"HOROVOD_CYCLE_TIME": []})", "c.HOROVOD_CYCLE_TIME: found a list"},
       {R"({"HOROVOD_HIERARCHICAL_ALLREDUCE": 2})", "c.HOROVOD_HIERARCHICAL_ALLREDUCE: found 2"},
       {R"({"HOROVOD_HIERARCHICAL_ALLREDUCE": null})", "expected 0 or 1, or true or false"},
       {R"({"HOROVOD_TORUS_ALLREDUCE": 1})", "not modelled"},
       {R"({"compression": "fp15"})", "did you mean 'fp16'?"},
       {R"({"HOROVOD_FUSION_TRESHOLD": 1})", "did you mean 'HOROVOD_FUSION_THRESHOLD'?"}});
}

}  // namespace
}  // namespace syncline::dialect
