// DistributedDataParallel: buckets against a second implementation, written for the test.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "core/base/error.h"
#include "core/plan.h"
#include "core/plan/fusion.h"
#include "formats/dialect/dialects.h"
#include "formats/dialect/write.h"
#include "tests/support/readings.h"
#include "tests/support/small_plans.h"
#include "tests/support/text.h"

namespace syncline::dialect {
namespace {

using test::cluster_of;
using test::contains;
using test::Groups;
using test::has_note;
using test::shipped_workload;
using test::sparse_tensor_of;
using test::tensor_of;
using test::tensors_in;
using test::workload_of;

const test::Framework kDdp{pytorch_ddp_dialect(), cluster_of(2, 4)};

Bytes bytes_of(const std::vector<int>& group, const Workload& workload) {
  Bytes bytes = 0;
  for (const int index : group) bytes += workload.tensors[static_cast<std::size_t>(index)].bytes();
  return bytes;
}

// Each type by itself: its dense tensors in order, cut from the front, the first piece at `first`,
// the others at the cap; sparse tensors are pieces of their own. Full pieces in the order of their
// last tensors, then what is left over, the type that was met last first.
Groups by_type(const Workload& workload, Bytes first, Bytes cap) {
  Groups groups;
  Groups left;
  for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kBf16, DType::kFp64}) {
    std::vector<int> own;
    for (int i = 0; i < static_cast<int>(workload.tensors.size()); ++i) {
      const Tensor& tensor = workload.tensors[static_cast<std::size_t>(i)];
      if (!tensor.sparse && tensor.dtype == dtype) own.push_back(i);
    }
    std::size_t begin = 0;
    Bytes limit = first;
    while (begin < own.size()) {
      std::size_t end = begin;
      Bytes bytes = 0;
      do {
        bytes += workload.tensors[static_cast<std::size_t>(own[end])].bytes();
        ++end;
      } while (end < own.size() && bytes < limit);
      (bytes >= limit ? groups : left)
          .emplace_back(own.begin() + static_cast<std::ptrdiff_t>(begin),
                        own.begin() + static_cast<std::ptrdiff_t>(end));
      begin = end;
      limit = cap;
    }
  }
  for (int i = 0; i < static_cast<int>(workload.tensors.size()); ++i) {
    if (workload.tensors[static_cast<std::size_t>(i)].sparse) groups.push_back({i});
  }
  std::sort(groups.begin(), groups.end(),
            [](const auto& a, const auto& b) { return a.back() < b.back(); });
  // What is left over of a type begins with the type's first gradient, or behind a full bucket.
  const auto met = [&](const std::vector<int>& group) {
    const DType own = workload.tensors[static_cast<std::size_t>(group.front())].dtype;
    return std::find_if(workload.tensors.begin(), workload.tensors.end(),
                        [&](const Tensor& t) { return !t.sparse && t.dtype == own; });
  };
  std::sort(left.begin(), left.end(),
            [&](const auto& a, const auto& b) { return met(a) > met(b); });
  groups.insert(groups.end(), left.begin(), left.end());
  return groups;
}

std::vector<int> ready_of(const std::vector<plan::Bucket>& buckets) {
  std::vector<int> ready;
  for (const auto& bucket : buckets) ready.push_back(bucket.ready);
  return ready;
}

std::string capped(double mib, const char* torch = "2.7") {
  return R"({"bucket_cap_mb": )" + std::to_string(mib) + R"(, "torch": ")" + torch + "\"}";
}

TEST(PyTorchDdp, ResNet50ByDefault) {
  const Workload workload = shipped_workload("resnet50_v100.json");
  const Groups groups = kDdp.groups_of("{}", workload);
  EXPECT_EQ(groups, by_type(workload, kMiB, 25 * kMiB));
  EXPECT_EQ(groups.front(), (std::vector<int>{0, 1}));  // fc.bias and fc.weight, 7.8 MiB
  EXPECT_GE(bytes_of(groups.front(), workload), kMiB);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Bytes limit = i == 0 ? kMiB : 25 * kMiB;
    const Bytes bytes = bytes_of(groups[i], workload);
    if (i + 1 < groups.size()) {
      EXPECT_GE(bytes, limit);
    }
    std::vector<int> but_last = groups[i];
    but_last.pop_back();
    EXPECT_LT(bytes_of(but_last, workload), limit);  // it closed at once
  }
  EXPECT_EQ(groups.size(), 5u);
}

TEST(PyTorchDdp, EveryModelAndCap) {
  for (const char* name : {"resnet50_v100.json", "resnet101_v100.json", "vgg16_bn_v100.json",
                           "bert_base.json", "gpt2_small.json", "fasterrcnn_r50_fpn.json"}) {
    const Workload workload = shipped_workload(name);
    for (const int mib : {1, 4, 25, 64, 1000}) {
      EXPECT_EQ(kDdp.groups_of(capped(mib), workload), by_type(workload, mib * kMiB, mib * kMiB))
          << name << " " << mib;
      EXPECT_EQ(kDdp.groups_of(capped(mib, "2.2"), workload), by_type(workload, kMiB, mib * kMiB))
          << name << " " << mib;
    }
  }
}

TEST(PyTorchDdp, FractionsOfAMebibyte) {
  Workload workload;
  workload.tensors = {tensor_of("a", {1 << 18}), tensor_of("b", {1 << 16}),
                      tensor_of("c", {1 << 16}), tensor_of("d", {1 << 17}), tensor_of("e", {1})};
  // 1 MiB is the first limit; then 0.5 MiB each: 0.25 + 0.25, 0.5, and the rest.
  EXPECT_EQ(kDdp.groups_of(capped(0.5, "2.2.1"), workload), (Groups{{0}, {1, 2}, {3}, {4}}));
  // Before torch 2.3 the cap does not lower the first limit.
  workload.tensors[0] = tensor_of("a", {(1 << 18) - 1});
  EXPECT_EQ(kDdp.groups_of(capped(0.5, "1.13.1+cu117"), workload), (Groups{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(kDdp.groups_of(capped(0.5, "2.3.0a0"), workload), (Groups{{0}, {1, 2}, {3}, {4}}));
  EXPECT_EQ(kDdp.groups_of(capped(0.5), workload),
            kDdp.groups_of(R"({"bucket_cap_mb": 0.5})", workload));
}

TEST(PyTorchDdp, TypesFillBucketsOfTheirOwn) {
  Workload workload;
  const auto half = [](std::int64_t n) { return tensor_of("h", {n}, DType::kFp16); };
  workload.tensors = {tensor_of("a", {10}), half(1 << 18),        tensor_of("b", {1 << 18}),
                      half(1 << 18),        tensor_of("c", {10}), half(10)};
  // FP32 reaches 1 MiB with b, FP16 with the second of 0.5 MiB; the rest closes at the end.
  EXPECT_EQ(kDdp.groups_of("{}", workload), (Groups{{0, 2}, {1, 3}, {5}, {4}}));
}

// The reducer launches buckets by their index. What is left over of a type has the last ones,
// however early its gradients were there, and goes when those ahead of it have gone.
TEST(PyTorchDdp, LeftoverGradientsGoLast) {
  Workload workload;
  workload.tensors = {tensor_of("head", {1 << 10})};
  for (int i = 0; i < 3; ++i) {
    workload.tensors.push_back(tensor_of("b", {1 << 20}, DType::kBf16));  // 2 MiB
  }
  const auto buckets = [&] { return kDdp.plan_of(capped(2), workload).buckets; };
  EXPECT_EQ(tensors_in(buckets()), (Groups{{1}, {2}, {3}, {0}}));
  EXPECT_EQ(ready_of(buckets()), (std::vector<int>{1, 2, 3, 3}));
  // A sparse gradient has a bucket of its own, which closes as it comes: ahead of what is left.
  workload.tensors.push_back(sparse_tensor_of("embedding", {1000, 4}, 3));
  EXPECT_EQ(buckets().back().tensors, (std::vector<int>{0}));
}

TEST(PyTorchDdp, PlansKeepTheOrderOfTheBuckets) {
  std::mt19937 random(19);
  for (int round = 0; round < 100; ++round) {
    Workload workload;
    const auto count = 2 + static_cast<int>(random() % 30);
    for (int i = 0; i < count; ++i) {
      const auto dtype = std::array{DType::kFp32, DType::kFp16, DType::kBf16}[random() % 3];
      workload.tensors.push_back(
          tensor_of("t", {static_cast<std::int64_t>(1 + random() % 400000)}, dtype));
      workload.tensors.back().sparse = random() % 10 == 0;
      workload.tensors.back().sparse_rows = 1;
    }
    std::vector<int> places(workload.tensors.size());
    std::iota(places.begin(), places.end(), 0);
    std::shuffle(places.begin(), places.end(), random);
    for (std::size_t i = 0; i < places.size(); ++i) workload.tensors[i].registered = places[i];
    const std::string stay = round % 2 == 0 ? "true" : "false";
    const Strategy strategy = kDdp.strategy_of(
        R"({"bucket_cap_mb": 1, "find_unused_parameters": )" + stay + "}", workload);
    const auto buckets = kDdp.plan_of(strategy, workload).buckets;
    int ready = 0;
    for (const auto& bucket : buckets) {
      ready = std::max(ready, *std::max_element(bucket.tensors.begin(), bucket.tensors.end()));
      EXPECT_EQ(bucket.ready, ready) << round;
    }
    EXPECT_EQ(tensors_in(buckets), strategy.fusion.groups) << round;
  }
}

TEST(PyTorchDdp, SparseGradientsAreBucketsOfTheirOwn) {
  Workload workload;
  workload.tensors = {tensor_of("a", {10}), sparse_tensor_of("embedding", {1000000, 4}, 3),
                      tensor_of("b", {10})};
  EXPECT_EQ(kDdp.groups_of("{}", workload), (Groups{{1}, {0, 2}}));
  EXPECT_EQ(kDdp.plan_of("{}", workload).buckets.size(), 2u);
}

TEST(PyTorchDdp, RandomLists) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Workload workload;
    const auto count = static_cast<int>(random() % 60);
    for (int i = 0; i < count; ++i) {
      const auto dtype = std::array{DType::kFp32, DType::kFp16, DType::kBf16}[random() % 3];
      const auto elements =
          static_cast<std::int64_t>(1 + random() % (round % 2 == 0 ? 100000 : 3000000));
      workload.tensors.push_back(tensor_of("t", {elements}, dtype));
      if (random() % 10 == 0) workload.tensors.back().sparse = true;
    }
    const double cap = 0.25 * static_cast<double>(1 + random() % 40);
    EXPECT_EQ(kDdp.groups_of(capped(cap), workload),
              by_type(workload, static_cast<Bytes>(cap * static_cast<double>(kMiB)),
                      static_cast<Bytes>(cap * static_cast<double>(kMiB))))
        << round;
  }
}

// Without a rebuild the first step's buckets stay: first layer first, the list reversed.
TEST(PyTorchDdp, UnusedParametersKeepTheBucketsOfTheFirstStep) {
  Workload workload;  // forward: a, b, c, d, e
  workload.tensors = {tensor_of("e", {1 << 16}), tensor_of("d", {1 << 17}),
                      tensor_of("c", {1 << 16}), tensor_of("b", {1 << 16}),
                      tensor_of("a", {1 << 18})};
  const std::string unused =
      R"({"bucket_cap_mb": 0.5, "torch": "2.2", "find_unused_parameters": true)";
  // a is 1 MiB, the first limit; then 0.5 MiB each: b and c, d; e is left over.
  EXPECT_EQ(kDdp.groups_of(unused + "}", workload), (Groups{{0}, {1}, {3, 2}, {4}}));
  EXPECT_TRUE(has_note(kDdp.read(unused + "}", workload), "never rebuilt"));
  // A static graph is rebuilt all the same: e, d and c reach 1 MiB, b and a the rest.
  EXPECT_EQ(kDdp.groups_of(unused + R"(, "static_graph": true})", workload),
            kDdp.groups_of(capped(0.5, "2.2"), workload));
  EXPECT_EQ(kDdp.groups_of(capped(0.5, "2.2"), workload), (Groups{{0, 1, 2}, {3, 4}}));
}

// GPT-2 124M on two GPUs, counted by github.com/schemmy/exp-llm under explicit caps: the first
// bucket follows the cap.
TEST(PyTorchDdp, CountedAllReducesOfGpt2) {
  const Workload workload = shipped_workload("gpt2_small.json");
  for (const auto& [cap, buckets] :
       std::vector<std::pair<double, std::size_t>>{{1, 50}, {25, 13}, {100, 4}, {500, 1}}) {
    EXPECT_EQ(kDdp.groups_of(capped(cap), workload).size(), buckets) << cap;
  }
  EXPECT_EQ(kDdp.groups_of(capped(100, "2.2"), workload).size(), 5U);
  EXPECT_EQ(kDdp.groups_of(capped(500, "2.2"), workload).size(), 2U);
}

TEST(PyTorchDdp, ALimitForEachBucket) {
  const Workload workload = workload_of(std::vector<std::int64_t>(8, 1 << 16));  // 0.25 MiB each
  EXPECT_EQ(kDdp.groups_of(R"({"bucket_cap_mb_list": [0.25, 0.75, 0.5]})", workload),
            (Groups{{0}, {1, 2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(kDdp.groups_of(R"({"_DEFAULT_FIRST_BUCKET_BYTES": 500000})", workload),
            (Groups{{0, 1}, {2, 3, 4, 5, 6, 7}}));
  // Only where no cap was given, from torch 2.3 on.
  EXPECT_EQ(kDdp.groups_of(R"({"_DEFAULT_FIRST_BUCKET_BYTES": 1, "bucket_cap_mb": 1})", workload),
            (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(
      kDdp.groups_of(R"({"_DEFAULT_FIRST_BUCKET_BYTES": 1, "bucket_cap_mb": 1, "torch": "2.1"})",
                     workload),
      (Groups{{0}, {1, 2, 3, 4}, {5, 6, 7}}));
  // The small bucket last.
  EXPECT_EQ(
      kDdp.groups_of(R"({"_DEFAULT_FIRST_BUCKET_BYTES": 262144, "DDP_SET_LAST_BUCKET_CAP": 1})",
                     workload),
      (Groups{{0, 1, 2, 3, 4, 5, 6}, {7}}));
  // It acts where buckets are rebuilt: those of the first step stay as they are.
  const std::string unused = R"({"find_unused_parameters": true)";
  EXPECT_EQ(kDdp.groups_of(unused + R"(, "DDP_SET_LAST_BUCKET_CAP": 1})", workload),
            kDdp.groups_of(unused + "}", workload));
}

// Every backward pass exchanges, unless it runs under no_sync.
TEST(PyTorchDdp, MicroBatchesUnderNoSync) {
  Workload workload = shipped_workload("resnet50_v100.json");
  workload.micro_batches = 3;
  const auto buckets_of = [&](const std::string& config) {
    const Strategy strategy = kDdp.strategy_of(config, workload);
    kDdp.expect_comes_back(strategy, workload);
    return kDdp.plan_of(strategy, workload).buckets.size();
  };
  EXPECT_EQ(buckets_of("{}"), 3u * 5);
  EXPECT_EQ(buckets_of(R"({"no_sync": true})"), 5u);
  EXPECT_TRUE(has_note(kDdp.read("{}", workload), "saves 2 all-reduces"));
}

TEST(PyTorchDdp, PlanHasTheSameBuckets) {
  const Workload workload = shipped_workload("resnet50_v100.json");
  const Strategy strategy = kDdp.strategy_of("{}", workload);
  EXPECT_EQ(tensors_in(kDdp.plan_of(strategy, workload).buckets), strategy.fusion.groups);
}

TEST(PyTorchDdp, Hooks) {
  const Workload workload = shipped_workload("resnet50_v100.json");
  for (const auto& [hook, codec] : {std::pair{"allreduce_hook", ""},
                                    {"fp16_compress_hook", "fp16"},
                                    {"bf16_compress_hook", "bf16"}}) {
    const std::string config = R"({"comm_hook": ")" + std::string(hook) + "\"}";
    EXPECT_EQ(kDdp.strategy_of(config, workload).compression.codec, codec);
  }
  EXPECT_EQ(kDdp.groups_of(R"({"comm_hook": "fp16_compress_hook"})", workload),
            kDdp.groups_of("{}", workload));
}

// Where torch itself fails, that is said of the configuration.
TEST(PyTorchDdp, RefusesSettingsThatFailInsideTorch) {
  Workload workload;
  workload.tensors = {tensor_of("scale", {}), tensor_of("w", {64, 64}, DType::kBf16)};
  Cluster cluster = cluster_of(2, 1);
  const auto said = [&](const std::string& hook, const std::string& torch) {
    const std::string config = R"({"comm_hook": ")" + hook + R"(", "torch": ")" + torch + R"("})";
    std::string note;
    const std::string refusal = test::input_error([&] {
      const Reading reading = kDdp.on(cluster).read(config, workload);
      if (has_note(reading, "fails inside torch")) note = reading.notes[1];
    });
    return refusal + note;
  };
  EXPECT_TRUE(contains(said("powerSGD_hook", "2.7"), "first dimension of scale"));
  EXPECT_EQ(said("batched_powerSGD_hook", "2.7"), "");
  for (const char* hook : {"bf16_compress_hook", "allreduce_hook"}) {
    EXPECT_EQ(said(hook, "1.13"), "") << hook;  // NCCL
  }
  cluster.library = Library::kGloo;
  for (const char* hook : {"bf16_compress_hook", "allreduce_hook"}) {
    EXPECT_TRUE(contains(said(hook, "1.13"), "Gloo of torch 1.13 sums no bf16"))
        << hook << said(hook, "1.13");
    EXPECT_EQ(said(hook, "2.7"), "") << hook;
  }
  EXPECT_EQ(said("fp16_compress_hook", "1.13"), "");
}

// PowerSGDState's own defaults, and what its hook does on GPUs.
TEST(PyTorchDdp, PowerSgd) {
  const Workload workload = shipped_workload("resnet50_v100.json");
  const Compression plain =
      kDdp.read(R"({"comm_hook": "powerSGD_hook"})", workload).strategy.compression;
  EXPECT_EQ(plain.codec, "powersgd");
  EXPECT_EQ(std::tuple(plain.rank, plain.min_rate, plain.rampup_begin_step),
            std::tuple(1, 2.0, 1000));
  const std::string config = R"({"comm_hook": "powerSGD_hook", "bucket_cap_mb": 8, "PowerSGDState":
      {"matrix_approximation_rank": 4, "start_powerSGD_iter": 10, "min_compression_rate": 0.5}})";
  const Reading reading = kDdp.read(config, workload);
  const Compression& given = reading.strategy.compression;
  EXPECT_EQ(std::tuple(given.rank, given.min_rate, given.rampup_begin_step),
            std::tuple(4, 0.5, 10));
  EXPECT_EQ(reading.strategy.fusion.groups, kDdp.groups_of(capped(8), workload));
  // On links alone nothing is known of a device that would be waited for; NCCL's hook waits.
  EXPECT_TRUE(reading.strategy.overlap);
  Cluster gpus = cluster_of(2, 4);
  gpus.library = Library::kNccl;
  const Reading waits = kDdp.on(gpus).read(config, workload);
  EXPECT_FALSE(waits.strategy.overlap);
  EXPECT_TRUE(has_note(waits, "torch.cuda.synchronize"));
  for (const Cluster& cluster : {cluster_of(2, 4), gpus}) {
    const Strategy strategy =
        dialect::reading_of(pytorch_ddp_dialect(), Json::parse(config), workload, cluster).strategy;
    const Json back = kDdp.on(cluster).expect_comes_back(strategy, workload).config;
    EXPECT_EQ(back.at("PowerSGDState").at("matrix_approximation_rank"), 4);
  }
}

// Columns one by one up to rank 2; a QR decomposition above, since torch 1.12.
TEST(PyTorchDdp, PowerSgdsColumns) {
  const auto launches = [](int rank, const char* torch) {
    Workload workload = shipped_workload("resnet50_v100.json");
    workload.framework_version = torch;
    const std::string config =
        R"({"comm_hook": "powerSGD_hook", "PowerSGDState": {"matrix_approximation_rank": )" +
        std::to_string(rank) + "}}";
    return kDdp.read(config, workload).strategy.compression.encode_launches - 1;
  };
  EXPECT_EQ(launches(1, "2.1"), 2);
  EXPECT_EQ(launches(2, "2.1"), 8);
  EXPECT_EQ(launches(4, "2.1"), 17);
  EXPECT_EQ(launches(64, "1.12"), 77);
  EXPECT_EQ(launches(64, "1.11"), 380);
}

// batched_powerSGD_hook: whole buckets, whatever that saves.
TEST(PyTorchDdp, BatchedPowerSgd) {
  const Workload workload = shipped_workload("resnet50_v100.json");
  const std::string config = R"({"comm_hook": "batched_powerSGD_hook", "PowerSGDState":
      {"matrix_approximation_rank": 2, "min_compression_rate": 7}})";
  const Strategy strategy = kDdp.strategy_of(config, workload);
  EXPECT_EQ(strategy.compression.codec, "batched_powersgd");
  EXPECT_EQ(strategy.compression.rank, 2);
  EXPECT_EQ(strategy.compression.rampup_begin_step, 1000);
  Json back = kDdp.expect_comes_back(strategy, workload).config;
  EXPECT_EQ(back["comm_hook"], "batched_powerSGD_hook");
  EXPECT_FALSE(back["PowerSGDState"].contains("min_compression_rate"));
  EXPECT_EQ(back["PowerSGDState"]["start_powerSGD_iter"], 1000);
  Cluster gpus = cluster_of(2, 4);
  gpus.library = Library::kNccl;
  const Reading waits = kDdp.on(gpus).read(config, workload);
  EXPECT_FALSE(waits.strategy.overlap);
  EXPECT_TRUE(has_note(waits, "batched_powerSGD_hook waits for the device"));
}

// DDPOptimizer counts whole layers from the last one on: the first piece ends where 1 MiB is
// reached whatever the cap is, the others at the cap; their gradients are there together.
TEST(PyTorchDdp, CompiledModelsComeInPieces) {
  Workload workload;
  for (const char* layer : {"g", "f", "e", "d", "c", "b", "a"}) {
    workload.tensors.push_back(tensor_of(std::string(layer) + ".bias", {1 << 17}));
    workload.tensors.push_back(tensor_of(std::string(layer) + ".weight", {1 << 17}));
  }
  // Layers of 1 MiB. DDP's buckets are of 2 MiB from the first on, the pieces of 1, 2, 2 and 2.
  const Reading split =
      kDdp.read(R"({"bucket_cap_mb": 2, "torch_compile": {"optimize_ddp": true}})", workload);
  EXPECT_EQ(split.strategy.graph_segments, (std::vector<std::int64_t>{1, 5, 9, 13}));
  EXPECT_EQ(split.strategy.fusion.groups.size(), 4u);
  const auto ready = [&](const std::string& config) {
    return ready_of(kDdp.plan_of(config, workload).buckets);
  };
  EXPECT_EQ(ready_of(kDdp.plan_of(split.strategy, workload).buckets),
            (std::vector<int>{5, 9, 13, 13}));
  EXPECT_EQ(ready(R"({"bucket_cap_mb": 2, "torch": "2.2", "torch_compile": true})"),
            (std::vector<int>{1, 5, 9, 13}));
  EXPECT_TRUE(has_note(split, "into 4"));
  // In one graph nothing is there before its end; uncompiled each is there by itself.
  EXPECT_EQ(ready(R"({"bucket_cap_mb": 4, "torch_compile": {"optimize_ddp": false}})"),
            (std::vector<int>{13, 13}));
  EXPECT_EQ(ready(R"({"bucket_cap_mb": 4, "torch_compile": false})"), (std::vector<int>{7, 13}));
  // A piece ends between layers.
  EXPECT_EQ(kDdp.read(R"({"_DEFAULT_FIRST_BUCKET_BYTES": 1, "torch_compile": true})", workload)
                .strategy.graph_segments,
            (std::vector<std::int64_t>{1, 13}));
}

// The compiler's own buckets: 1 MiB first, even with an explicit cap, then the cap; by
// concatenation.
TEST(PyTorchDdp, TheCompilerJoinsAllReducesItself) {
  const Workload workload = workload_of(std::vector<std::int64_t>(8, 1 << 17));  // 0.5 MiB each
  for (const char* mode : {"python_reducer", "python_reducer_without_compiled_forward"}) {
    const Reading reading = kDdp.read(
        R"({"bucket_cap_mb": 1.5, "gradient_as_bucket_view": true,
            "torch_compile": {"optimize_ddp": ")" +
            std::string(mode) + "\"}}",
        workload);
    EXPECT_EQ(reading.strategy.fusion.groups, (Groups{{0, 1}, {2, 3, 4}, {5, 6, 7}}));
    EXPECT_TRUE(reading.strategy.graph_segments.empty());
    EXPECT_TRUE(reading.strategy.bucket_copies);
    EXPECT_FALSE(reading.strategy.traits.whole_first_step);
  }
}

// Arguments that are no part of a step, or whose copies take what was measured: the plan is the
// same.
TEST(PyTorchDdp, ArgumentsThatChangeNoStep) {
  const Workload workload = shipped_workload("resnet50_v100.json");
  for (const char* key : {"init_sync", "skip_all_reduce_unused_params", "batched_grad_copy"}) {
    const std::string config = R"({")" + std::string(key) + R"(": true})";
    EXPECT_EQ(plan_difference(kDdp.plan_of("{}", workload), kDdp.plan_of(config, workload)), "")
        << key;
  }
}

// Until the order of gradients is known there is one bucket: but for a graph that is searched in
// every step, and limits for each bucket.
TEST(PyTorchDdp, TheFirstStepHasOneBucket) {
  const Workload workload = shipped_workload("resnet50_v100.json");
  const auto whole = [&](const std::string& config) {
    return kDdp.read(config, workload).strategy.traits.whole_first_step;
  };
  EXPECT_TRUE(whole("{}"));
  EXPECT_TRUE(whole(capped(25)));
  EXPECT_FALSE(whole(R"({"find_unused_parameters": true})"));
  EXPECT_TRUE(whole(R"({"find_unused_parameters": true, "static_graph": true})"));
  EXPECT_FALSE(whole(R"({"bucket_cap_mb_list": [1, 25]})"));
}

// Any grouping in the order of readiness has limits that say it.
TEST(PyTorchDdp, LimitsForAnyRunsOfGradients) {
  std::mt19937 random(19);
  for (int round = 0; round < 60; ++round) {
    Workload workload;
    Strategy strategy;
    strategy.fusion.rule = Fusion::Rule::kGroups;
    const int count = 1 + static_cast<int>(random() % 40);
    for (int i = 0; i < count; ++i) {
      workload.tensors.push_back(
          tensor_of("t", {static_cast<std::int64_t>(1 + random() % 2000000)}));
      if (i == 0 || random() % 3 == 0) strategy.fusion.groups.emplace_back();
      strategy.fusion.groups.back().push_back(i);
    }
    const Json config = kDdp.expect_comes_back(strategy, workload).config;
    EXPECT_EQ(kDdp.groups_of(config.dump(), workload), strategy.fusion.groups) << config;
  }
  // One cap where that does it.
  const Workload workload = shipped_workload("resnet50_v100.json");
  const auto written = kDdp.write(kDdp.strategy_of(capped(8), workload), workload);
  EXPECT_TRUE(written->config.contains("bucket_cap_mb")) << written->config;
  // Parts of an order that is not the gradients' have none.
  Strategy crossed;
  crossed.fusion.rule = Fusion::Rule::kGroups;
  crossed.fusion.groups = {{0, 2}, {1, 3}};
  EXPECT_FALSE(kDdp.write(crossed, workload_of({1000, 1000, 1000, 1000}))->exact);
}

// What the job's torch makes of a configuration counts where the configuration names none, and what
// is written for the job is what that version understands.
TEST(PyTorchDdp, AJobHasATorch) {
  Workload workload = shipped_workload("resnet50_v100.json");
  const Strategy eight = kDdp.strategy_of(capped(8), workload);
  const Strategy mixed = kDdp.strategy_of(R"({"bucket_cap_mb_list": [1, 2, 40, 12]})", workload);
  const auto write = [&](const Strategy& strategy) {
    const auto written = kDdp.write(strategy, workload);
    EXPECT_TRUE(written);
    return written.value_or(Written{});
  };
  EXPECT_EQ(write(eight).config, (Json{{"bucket_cap_mb", 8.0}}));
  EXPECT_TRUE(write(mixed).exact);
  workload.framework_version = "1.13";
  EXPECT_EQ(kDdp.groups_of(R"({"bucket_cap_mb": 8})", workload),
            kDdp.groups_of(capped(8, "2.2"), workload));
  EXPECT_EQ(kDdp.groups_of(capped(8, "2.7"), workload), eight.fusion.groups);
  // Its first bucket has a limit of its own, and it knows no list.
  EXPECT_EQ(write(eight).config,
            (Json{{"bucket_cap_mb", 8.0}, {"_DEFAULT_FIRST_BUCKET_BYTES", 8 * kMiB}}));
  EXPECT_TRUE(write(eight).exact);
  EXPECT_FALSE(write(mixed).exact);
  EXPECT_FALSE(write(mixed).config.contains("bucket_cap_mb_list"));
  const Strategy old = kDdp.strategy_of(R"({"bucket_cap_mb": 8})", workload);
  EXPECT_EQ(write(old).config, (Json{{"bucket_cap_mb", 8.0}}));
  EXPECT_TRUE(write(old).exact);
  // The Trainer has no word for the variable.
  const auto trained = write_config(hf_trainer_dialect(), eight, workload, cluster_of(2, 4));
  ASSERT_TRUE(trained);
  EXPECT_FALSE(trained->exact) << trained->config;
  // A version that a configuration alone names is not the job's, and that is said.
  const char* alone = "torch is given for this configuration alone";
  EXPECT_FALSE(has_note(kDdp.read(capped(8), workload), alone));
  workload.framework_version.clear();
  EXPECT_TRUE(has_note(kDdp.read(capped(8), workload), alone));
  workload.framework_version = "2.4";
  EXPECT_FALSE(write(mixed).config.contains("bucket_cap_mb_list"));
  workload.framework_version = "2.12";
  EXPECT_TRUE(write(mixed).exact);
}

TEST(PyTorchDdp, CopiesUnlessGradientsAreViews) {
  const Workload workload = workload_of({1000, 1000});
  Cluster cluster = cluster_of(2, 4);
  cluster.device.memory = 1e9;
  const auto copies = [&](const std::string& config) {
    std::vector<std::pair<bool, Seconds>> list;
    for (const auto& op :
         plan::make_plan(workload, cluster, kDdp.strategy_of(config, workload)).ops) {
      const auto reason = plan::reason_of(op.work);
      const bool into = reason == plan::Busy::Reason::kCopyIn;
      if (into || reason == plan::Busy::Reason::kCopyOut) {
        list.emplace_back(into, plan::seconds_of(op.work));
      }
    }
    return list;
  };
  // 8000 bytes are read and written, in and out.
  EXPECT_EQ(copies("{}"), (std::vector<std::pair<bool, Seconds>>{{true, 16e-6}, {false, 16e-6}}));
  EXPECT_TRUE(copies(R"({"gradient_as_bucket_view": true})").empty());
}

TEST(PyTorchDdp, BuffersAreBroadcastUnlessItIsTurnedOff) {
  Workload workload = workload_of({1000, 1000});
  workload.buffer_broadcast = 0.003;
  for (const bool on : {true, false}) {
    const std::string config = on ? "{}" : R"({"broadcast_buffers": false})";
    const Strategy strategy = kDdp.strategy_of(config, workload);
    EXPECT_EQ(plan::time_before_forward(kDdp.plan_of(strategy, workload)), on ? 0.003 : 0.0);
    const Json back = kDdp.expect_comes_back(strategy, workload).config;
    EXPECT_EQ(back.contains("broadcast_buffers"), !on);
  }
}

TEST(PyTorchDdp, PostLocalSgd) {
  Workload workload = workload_of({1000000, 1000000});
  workload.forward = 1e-3;
  const Strategy strategy = kDdp.strategy_of(R"({"comm_hook": "post_localSGD_hook",
      "PostLocalSGDState": {"start_localSGD_iter": 100}, "PeriodicModelAverager": {"period": 4}})",
                                             workload);
  // Two buckets in each of four steps inside the nodes, then everything once among all.
  const plan::Plan plan = kDdp.plan_of(strategy, workload);
  EXPECT_EQ(plan.steps, 4);
  std::vector<int> sizes;
  for (const auto& op : plan.ops) {
    if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
      EXPECT_EQ(collective->kind, collective::CollectiveKind::kAllReduce);
      sizes.push_back(collective->groups.size);
    }
  }
  EXPECT_EQ(sizes, (std::vector<int>{4, 4, 4, 4, 4, 4, 4, 4, 8}));
  EXPECT_EQ(plan.buckets.back().bytes, 8000000);
  // Before its start: gradients, among all.
  const plan::Plan before = plan::make_plan(workload, kDdp.cluster, strategy, {99});
  EXPECT_EQ(before.steps, 1);
  EXPECT_EQ(before.buckets.size(), 2u);
  Training training;
  training.steps = 500;
  const auto phases = plan::training_phases(strategy, training);
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0].steps, 100);
  EXPECT_EQ(phases[1].steps, 400);
  EXPECT_EQ(phases[1].point.period, 4);
  const Json again = kDdp.expect_comes_back(strategy, workload).config;
  EXPECT_EQ(again.value("comm_hook", ""), "post_localSGD_hook");
}

// DDP goes on broadcasting buffers ahead of each step, and the averager has the parameters alone.
TEST(PyTorchDdp, PostLocalSgdLeavesBuffersToDdp) {
  Workload workload = workload_of({1000000, 1000000});
  workload.forward = 1e-3;
  workload.buffers = {tensor_of("mean", {64})};
  workload.buffer_broadcast = 0.002;
  for (const bool inside : {true, false}) {
    const Strategy strategy = kDdp.strategy_of(R"({"comm_hook": "post_localSGD_hook",
        "PostLocalSGDState": {"start_localSGD_iter": 100, "post_local_gradient_allreduce": )" +
                                                   std::string(inside ? "true" : "false") +
                                                   R"(}, "PeriodicModelAverager": {"period": 4}})",
                                               workload);
    const plan::Plan plan = kDdp.plan_of(strategy, workload);
    EXPECT_DOUBLE_EQ(plan::time_before_forward(plan), 4 * 0.002) << inside;
    EXPECT_EQ(plan.buckets.back().bytes, 8000000) << inside;
    EXPECT_EQ(plan.buckets.size(), inside ? 9u : 1u);
  }
}

TEST(PyTorchDdp, Mistakes) {
  const Workload workload = shipped_workload("resnet50_v100.json");
  for (const char* config :
       {R"({"bucket_cap_mb": 0})",
        R"({"bucket_cap_mb": -1})",
        R"({"bucket_cap_mb": "25"})",
        R"({"comm_hook": "post_localSGD_hook"})",
        R"({"comm_hook": "post_localSGD_hook", "PostLocalSGDState": {"start_localSGD_iter": 1,
            "subgroup_size": 3}, "PeriodicModelAverager": {"period": 4}})",
        R"({"PeriodicModelAverager": {"period": 4}})",
        R"({"bucket_cap": 25})",
        R"({"comm_hook": "fp8_hook"})",
        R"({"comm_hook": "quantization_perchannel_hook"})",
        R"({"comm_hook": "fp16_compress_wrapper"})",
        R"({"static_graph": 1})",
        R"({"torch": "newest"})",
        R"({"torch": "2"})",
        R"({"bucket_cap_mb_list": []})",
        R"({"bucket_cap_mb_list": [0]})",
        R"({"bucket_cap_mb_list": [1], "torch": "2.7"})",
        R"({"bucket_cap_mb_list": [1], "bucket_cap_mb": 1})",
        R"({"comm_hook": "powerSGD_hook", "PowerSGDState": {"start_powerSGD_iter": 1}})",
        R"({"comm_hook": "powerSGD_hook", "PowerSGDState": {"matrix_approximation_rank": 0}})",
        R"({"PowerSGDState": {}})",
        R"({"torch_compile": {"optimize_ddp": "reducer"}})",
        R"({"torch_compile": {"mode": "default"}})",
        R"({"torch_compile": true, "bucket_cap_mb": 0.5})"}) {
    EXPECT_THROW(kDdp.read(config, workload), InputError) << config;
  }
}

TEST(PyTorchCode, IsWhatAScriptSays) {
  const auto code = [](const char* config) { return ddp_code(Json::parse(config)); };
  EXPECT_EQ(code("{}"), "model = DDP(model)");
  EXPECT_EQ(code(R"({"bucket_cap_mb": 2, "gradient_as_bucket_view": true, "torch": "2.1"})"),
            "model = DDP(model, bucket_cap_mb=2, gradient_as_bucket_view=True)");
  EXPECT_EQ(code(R"({"bucket_cap_mb": 2.0, "comm_hook": "bf16_compress_hook"})"),
            "model = DDP(model, bucket_cap_mb=2); "
            "model.register_comm_hook(None, bf16_compress_hook)");
  EXPECT_EQ(code(R"({"comm_hook": "powerSGD_hook",
                     "PowerSGDState": {"matrix_approximation_rank": 4}})"),
            "model = DDP(model); model.register_comm_hook("
            "PowerSGDState(None, matrix_approximation_rank=4), powerSGD_hook)");
  EXPECT_EQ(code(R"({"comm_hook": "post_localSGD_hook", "PostLocalSGDState":
                     {"start_localSGD_iter": 100, "post_local_gradient_allreduce": false},
                     "PeriodicModelAverager": {"period": 4}})"),
            "model = DDP(model); model.register_comm_hook("
            "PostLocalSGDState(None, None, start_localSGD_iter=100, "
            "post_local_gradient_allreduce=False), post_localSGD_hook); "
            "optimizer = PostLocalSGDOptimizer(optimizer, "
            "PeriodicModelAverager(period=4, warmup_steps=100))");
  EXPECT_EQ(code(R"({"bucket_cap_mb": 0.5, "_DEFAULT_FIRST_BUCKET_BYTES": 524288})"),
            "torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = 524288; "
            "model = DDP(model, bucket_cap_mb=0.5)");
}

}  // namespace
}  // namespace syncline::dialect
