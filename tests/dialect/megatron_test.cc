// Megatron-Core: where buckets close and what they are padded to, worked out by hand.
#include "formats/dialect/megatron.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/error.h"
#include "core/plan.h"
#include "formats/dialect/write.h"
#include "tests/support/full_scenario.h"
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
using test::tensor_of;
using test::workload_of;

const test::Framework kMegatron{megatron_dialect(), cluster_of(1, 3)};

TEST(Megatron, ABucketClosesOnceItHasItsElements) {
  const Workload workload = workload_of({60, 40, 99, 1, 100, 7});
  EXPECT_EQ(
      kMegatron.groups_of(R"({"overlap-grad-reduce": true, "ddp-bucket-size": 100})", workload),
      (Groups{{0, 1}, {2, 3}, {4}, {5}}));
  // 307 parameters in two: 153 each.
  EXPECT_EQ(kMegatron.groups_of(R"({"overlap-grad-reduce": true, "ddp-num-buckets": 2})", workload),
            (Groups{{0, 1, 2}, {3, 4, 5}}));
  // Rounded down: 153 close a bucket, which 154 would not.
  EXPECT_EQ(kMegatron.groups_of(R"({"overlap-grad-reduce": true, "ddp-num-buckets": 2})",
                                workload_of({153, 54, 100})),
            (Groups{{0}, {1, 2}}));
  kMegatron.expect_refusals(
      workload, {{R"({"ddp-bucket-size": 1, "ddp-num-buckets": 2})", "give one of the two"}});
}

// With the distributed optimizer parameters begin at multiples of 64: 60 + 40 ends at 64 + 40 =
// 104.
TEST(Megatron, AlignmentCountsTowardsTheSize) {
  const Workload workload = workload_of({60, 40, 30, 30, 10});
  const std::string sized = R"({"overlap-grad-reduce": true, "ddp-bucket-size": 104)";
  EXPECT_EQ(kMegatron.groups_of(sized + "}", workload), (Groups{{0, 1, 2}, {3, 4}}));
  const Strategy sharded =
      kMegatron.read(sized + R"(, "use-distributed-optimizer": true})", workload).strategy;
  // {60, 40} ends at 104; {30, 30, 10} at 64 + 64 + 10 = 138.
  EXPECT_EQ(sharded.fusion.groups, (Groups{{0, 1}, {2, 3, 4}}));
  EXPECT_EQ(sharded.exchange, Strategy::Exchange::kSharded);
  // Three ranks: multiples of lcm(3, 128) = 384 elements. Each bucket comes to one of them.
  const plan::Plan plan = kMegatron.plan_of(sharded, workload);
  ASSERT_EQ(plan.buckets.size(), 2u);
  EXPECT_EQ(plan.buckets[0].padded_bytes, 384 * 4);
  EXPECT_EQ(plan.buckets[1].padded_bytes, 384 * 4);
  // For even rings lcm(3, 128, 65536) = 196608.
  const Strategy even = kMegatron
                            .read(sized + R"(, "use-distributed-optimizer": true,
                                             "ddp-pad-buckets-for-high-nccl-busbw": true})",
                                  workload)
                            .strategy;
  EXPECT_EQ(kMegatron.plan_of(even, workload).buckets[0].padded_bytes, 196608 * 4);
}

// By the order in which parameters were registered, the last one first; buckets go as they are
// complete.
TEST(Megatron, BucketsFollowTheModelsOrder) {
  Workload workload = workload_of({60, 40, 99, 1});
  const auto groups_with = [&](const std::vector<int>& places) {
    for (std::size_t i = 0; i < places.size(); ++i) workload.tensors[i].registered = places[i];
    return kMegatron.groups_of(R"({"overlap-grad-reduce": true, "ddp-bucket-size": 100})",
                               workload);
  };
  EXPECT_EQ(groups_with({3, 2, 1, 0}), (Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(groups_with({3, 1, 2, 0}), (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(groups_with({0, 1, 2, 3}), (Groups{{1, 0}, {3, 2}}));
}

// Elements of each bucket of a part, of a model made from its row.
std::vector<std::int64_t> bucket_elements(const char* architecture, int pipeline, int part,
                                          const char* config) {
  const Scenario scenario = test::parsed(Json::parse(
      R"({"name": "m", "workload": {"name": "m", "batch": 1, "micro_batches": 8,
          "parallel": {"pipeline": )" +
      std::to_string(pipeline) + R"(},
          "operators": {"architecture": ")" +
      architecture + R"(", "dtype": "bf16", "sequence": 1024}},
          "cluster": {"name": "c", "node": "dgx-h100", "nodes": 1},
          "strategies": [{"name": "s", "dialect": "megatron", "config": )" +
      config + "}]}"));
  std::vector<std::int64_t> elements;
  for (const auto& group : scenario.strategies.front().fusion.groups) {
    std::int64_t sum = 0;
    for (const int t : group)
      sum += scenario.workload.tensors[static_cast<std::size_t>(t)].elements;
    if (scenario.workload.tensors[static_cast<std::size_t>(group.front())].part == part) {
      elements.push_back(sum);
    }
  }
  return elements;
}

// Gate and up are one parameter of Megatron's, queries, keys and values another: no bucket ends
// between them. Figures: the log of Megatron-Bridge on 8 H100, and arithmetic.
TEST(Megatron, ItsOwnParametersFillBuckets) {
  const char* overlapped = R"({"overlap-grad-reduce": true, "use-distributed-optimizer": true,
                               "overlap-param-gather": true})";
  std::vector<std::int64_t> llama(17, 60'821'504);
  llama.front() = 50'333'696;
  llama.back() = 273'158'144;
  EXPECT_EQ(bucket_elements("llama3.2_1b", 1, 0, overlapped), llama);
  EXPECT_EQ(bucket_elements("llama3_8b", 1, 0, overlapped).size(), 98U);
  EXPECT_EQ(bucket_elements("llama2_7b", 1, 0, overlapped).size(), 98U);
}

// An embedding that the first and the last stage share has a bucket of its own in both, where the
// optimizer is distributed.
TEST(Megatron, ASharedEmbeddingIsABucket) {
  const char* sharded = R"({"overlap-grad-reduce": true, "use-distributed-optimizer": true})";
  const auto first = bucket_elements("llama3.2_1b", 2, 0, sharded);
  ASSERT_EQ(first.size(), 10U);
  EXPECT_EQ(first[8], 10'489'856);
  EXPECT_EQ(first[9], 262'668'288);
  const auto last = bucket_elements("llama3.2_1b", 2, 1, sharded);
  ASSERT_EQ(last.size(), 2U);
  EXPECT_EQ(last[0], 262'668'288);
  EXPECT_EQ(bucket_elements("llama3.2_1b", 2, 1, R"({"overlap-grad-reduce": true})").size(), 1U);
}

// The default grows with the ranks: 40 million elements, or a million a rank.
TEST(Megatron, DefaultSizes) {
  const Workload workload = workload_of(std::vector<std::int64_t>(100, 1'000'000));
  const auto count = [&](int nodes) {
    return kMegatron.on(cluster_of(nodes, 8))
        .read(R"({"overlap-grad-reduce": true})", workload)
        .strategy.fusion.groups.size();
  };
  EXPECT_EQ(count(1), 3u);  // 40, 40, 20
  EXPECT_EQ(count(5), 3u);
  EXPECT_EQ(count(8), 2u);  // 64, 36
  const Reading off = kMegatron.read(R"({"ddp-bucket-size": 5})", workload);
  EXPECT_EQ(off.strategy.fusion.groups.size(), 1u);
  EXPECT_TRUE(has_note(off, "no effect without overlap-grad-reduce"));
}

TEST(Megatron, ABufferForEachFormat) {
  Workload workload = workload_of({10, 10, 10, 10});
  workload.tensors[1].dtype = workload.tensors[3].dtype = DType::kFp16;
  EXPECT_EQ(
      kMegatron.groups_of(R"({"overlap-grad-reduce": true, "ddp-bucket-size": 20})", workload),
      (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(kMegatron.read("{}", workload).strategy.fusion.groups, (Groups{{1, 3}, {0, 2}}));
}

TEST(Megatron, Bf16IsReducedInFp32UnlessThatIsTurnedOff) {
  const Workload workload = workload_of({640, 640}, DType::kBf16);
  const auto plan_of = [&](const std::string& more) {
    return kMegatron.on(cluster_of(1, 2))
        .plan_of(R"({"use-distributed-optimizer": true)" + more + "}", workload);
  };
  // Gradients of 1280 elements in four bytes; parameters are gathered in two.
  const plan::Plan wide = plan_of("");
  ASSERT_EQ(wide.buckets.size(), 2u);
  EXPECT_EQ(wide.buckets[0].bytes, 1280 * 4);
  EXPECT_EQ(wide.buckets[1].bytes, 1280 * 2);
  const plan::Plan narrow = plan_of(R"(, "grad-reduce-in-bf16": true)");
  ASSERT_EQ(narrow.buckets.size(), 1u);
  EXPECT_EQ(narrow.buckets[0].bytes, 1280 * 2);
  EXPECT_TRUE(has_note(kMegatron.read("{}", workload), "twice the bytes"));
}

// A bucket goes when all its parameters are ready in the last micro-batch: that one's backward pass
// alone hides it.
TEST(Megatron, AllReducesInTheLastMicroBatch) {
  Workload workload = workload_of({60, 40, 99, 1});
  workload.micro_batches = 4;
  for (auto& tensor : workload.tensors) tensor.backward = 1e-3;
  const plan::Plan plan = plan::make_plan(
      workload, cluster_of(2, 4),
      kMegatron.strategy_of(R"({"overlap-grad-reduce": true, "ddp-bucket-size": 100})", workload));
  EXPECT_EQ(plan.buckets.size(), 2U);
  Seconds computed = 0;
  for (const auto& op : plan.ops) {
    if (std::holds_alternative<collective::Collective>(op.work)) break;
    const auto* compute = std::get_if<plan::Compute>(&op.work);
    if (compute != nullptr && compute->phase == plan::Phase::kBackward)
      computed += compute->seconds;
  }
  EXPECT_DOUBLE_EQ(computed, 3 * 4e-3 + 2e-3);
}

TEST(Megatron, SaysWhatItRefuses) {
  Workload workload = workload_of({10});
  kMegatron.expect_refusals(workload, {{R"({"overlap-param-gather": true})",
                                        "only supported with use-distributed-optimizer"},
                                       {R"({"tensor-model-parallel-size": 2})",
                                        "is 2, but the workload has \"parallel\": {\"tensor\": 1}"},
                                       {R"({"sequence-parallel": true})", "\"sequence\": 0"},
                                       {R"({"ddp-bucket-sise": 2})", "ddp-bucket-size"}});
  const std::string batches =
      R"({"micro-batch-size": 2, "global-batch-size": 24})";  // 24 / (2 * 3)
  EXPECT_TRUE(contains(kMegatron.refusal(batches, workload), "4 micro-batches per step"));
  workload.micro_batches = 4;
  EXPECT_EQ(kMegatron.refusal(batches, workload), "");
  EXPECT_TRUE(
      contains(kMegatron.refusal(R"({"micro-batch-size": 2, "global-batch-size": 25})", workload),
               "is not divisible"));
}

// Megatron has no flag for other schedules than its own two.
TEST(Megatron, SaysWhichSchedulesItHas) {
  Workload workload = workload_of({10});
  EXPECT_FALSE(has_note(kMegatron.read("{}", workload), "no flag says"));
  workload.parallel.schedule = Schedule::kZeroBubble;
  EXPECT_TRUE(has_note(kMegatron.read("{}", workload), "no flag says the workload's"));
}

// Layers' matrices are gathered in a byte each and have buffers of their own; the embedding and the
// norm travel in bf16. Sizes are multiples of the padding.
TEST(Megatron, GathersFp8ParametersInOneByte) {
  Workload workload;
  workload.delayed_scaling = true;
  for (const auto& [name, shape] : std::vector<std::pair<std::string, std::vector<std::int64_t>>>{
           {"layers.1.mlp.weight", {768, 128}},
           {"layers.1.norm.weight", {384}},
           {"layers.0.mlp.weight", {384, 128}},
           {"embed_tokens.weight", {768, 128}}}) {
    workload.tensors.push_back(tensor_of(name, shape, DType::kBf16));
  }
  Json config{{"overlap-grad-reduce", true},
              {"overlap-param-gather", true},
              {"use-distributed-optimizer", true},
              {"grad-reduce-in-bf16", true},
              {"fp8-format", "hybrid"},
              {"fp8-param-gather", true}};
  const Reading fp8 = kMegatron.read(config.dump(), workload);
  EXPECT_EQ(fp8.strategy.fusion.groups, (Groups{{0, 2}, {1, 3}}));
  const auto gathered = [&](const Strategy& strategy) {
    std::vector<Bytes> bytes;
    for (const auto& op : kMegatron.plan_of(strategy, workload).ops) {
      if (op.gathers) bytes.push_back(std::get<collective::Collective>(op.work).bytes());
    }
    std::ranges::sort(bytes);
    return bytes;
  };
  EXPECT_EQ(gathered(fp8.strategy), (std::vector<Bytes>{(768 + 384) * 128, 2 * (384 + 768 * 128)}));
  EXPECT_TRUE(kMegatron.write(fp8.strategy, workload)->exact);

  config.erase("fp8-param-gather");
  const Reading bf16 = kMegatron.read(config.dump(), workload);
  EXPECT_EQ(bf16.strategy.fusion.groups, (Groups{{0, 1, 2, 3}}));
  workload.delayed_scaling = false;
  EXPECT_TRUE(contains(kMegatron.refusal(config.dump(), workload), "\"delayed_scaling\": true"));
  config["fp8-recipe"] = "blockwise";
  EXPECT_EQ(kMegatron.refusal(config.dump(), workload), "");
  EXPECT_TRUE(
      contains(kMegatron.refusal(R"({"fp8-param-gather": true})", workload), "with fp8-format"));
  EXPECT_TRUE(
      contains(kMegatron.refusal(
                   R"({"fp8-param-gather": true, "fp8": "e4m3", "fp8-recipe": "mxfp8"})", workload),
               "needs use-distributed-optimizer"));
}

// Read, planned, written and read again: the same plan.
TEST(Megatron, ComesBack) {
  std::mt19937 random(11);
  for (const char* name : {"resnet50_v100.json", "bert_base.json", "gpt2_small.json"}) {
    Workload workload = shipped_workload(name);
    for (int round = 0; round < 12; ++round) {
      workload.micro_batches = 1 + static_cast<std::int64_t>(random() % 3);
      Json config{{"overlap-grad-reduce", true},
                  {"ddp-bucket-size", 1 + static_cast<std::int64_t>(random() % 30'000'000)}};
      if (round % 2 == 0) config["use-distributed-optimizer"] = true;
      if (round % 4 == 0) config["overlap-param-gather"] = true;
      if (round % 6 == 0) config["ddp-pad-buckets-for-high-nccl-busbw"] = true;
      const auto megatron = kMegatron.on(cluster_of(2, 4));
      const Strategy strategy =
          dialect::reading_of(megatron.row, config, workload, megatron.cluster).strategy;
      SCOPED_TRACE(config);
      const Written back = megatron.expect_comes_back(strategy, workload);
      EXPECT_EQ(back.strategy.traits.buckets.pad_elements, strategy.traits.buckets.pad_elements);
    }
  }
}

}  // namespace
}  // namespace syncline::dialect
