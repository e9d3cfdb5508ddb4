// DeepSpeed's ZeRO 0 to 3: where buckets are flushed, when they go, what waits for them.
#include "formats/dialect/dialects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "core/base/error.h"
#include "core/plan.h"
#include "formats/dialect/write.h"
#include "tests/support/readings.h"
#include "tests/support/small_plans.h"
#include "tests/support/text.h"

namespace syncline::dialect {
namespace {

using test::cluster_of;
using test::Groups;
using test::has_note;
using test::shipped_workload;
using test::tensor_of;
using test::workload_of;

const test::Framework kDeepSpeed{deepspeed_dialect(), cluster_of(2, 4)};
const test::Framework kTrainer{hf_trainer_dialect(), cluster_of(2, 4)};

Reading zero(const std::string& keys, const Workload& workload) {
  return kDeepSpeed.read(R"({"zero_optimization": {)" + keys + "}}", workload);
}

// From DeepSpeed's own words and from the Trainer's.
void expect_comes_back_from_both(const Json& config, const Workload& workload) {
  SCOPED_TRACE(config);
  const Strategy strategy =
      dialect::reading_of(kDeepSpeed.row, config, workload, kDeepSpeed.cluster).strategy;
  for (const auto& framework : {kDeepSpeed, kTrainer}) {
    framework.expect_comes_back(strategy, workload);
  }
}

// The host's memory: states at stages 1 to 3, parameters at stage 3 with them.
TEST(DeepSpeed, Offloads) {
  using Offload = Strategy::Offload;
  const Workload workload = workload_of({60, 40});
  const std::string states = R"(, "offload_optimizer": {"device": "cpu", "pin_memory": true})";
  const std::string parameters = R"(, "offload_param": {"device": "cpu"})";
  const auto offload = [&](const std::string& keys) {
    return zero(keys, workload).strategy.offload;
  };
  for (const char* stage : {R"("stage": 1)", R"("stage": 2)", R"("stage": 3)"}) {
    EXPECT_EQ(offload(stage), Offload::kNone);
    EXPECT_EQ(offload(stage + states), Offload::kOptimizer) << stage;
    EXPECT_EQ(offload(std::string(stage) + R"(, "cpu_offload": true)"), Offload::kOptimizer);
    expect_comes_back_from_both(Json::parse(R"({"zero_optimization": {)" + (stage + states) + "}}"),
                                workload);
  }
  EXPECT_EQ(offload(R"("stage": 3)" + states + parameters), Offload::kAll);
  EXPECT_EQ(offload(R"("stage": 3)" + parameters), Offload::kParameters);
  expect_comes_back_from_both(
      Json::parse(R"({"zero_optimization": {"stage": 3)" + states + parameters + "}}"), workload);
  EXPECT_EQ(offload(R"("stage": 2, "offload_optimizer": null, "offload_param": null)"),
            Offload::kNone);
  EXPECT_TRUE(has_note(zero(R"("stage": 0)" + states, workload), "no effect at stage 0"));
  EXPECT_TRUE(
      has_note(zero(R"("stage": 2)" + states + parameters, workload), "no effect below stage 3"));
  const std::string said = test::input_error(
      [&] { zero(R"("stage": 2, "offload_optimizer": {"device": "nvme"})", workload); });
  EXPECT_TRUE(test::contains(said, "with \"cpu\" the rest is predicted")) << said;
}

TEST(DeepSpeed, FlushesBeforeABucketWouldExceedItsSize) {
  // 60 + 40 is 100, no more; 30 + 70 + 1 would be. 300 is alone, whatever is around it.
  const Workload workload = workload_of({60, 40, 30, 70, 1, 300, 5, 5});
  const Strategy strategy =
      zero(R"("stage": 1, "reduce_bucket_size": 1e2, "overlap_comm": true)", workload).strategy;
  EXPECT_EQ(strategy.fusion.groups, (Groups{{0, 1}, {2, 3}, {4}, {5}, {6, 7}}));
  EXPECT_EQ(strategy.traits.in_flight, 1);
  EXPECT_EQ(strategy.exchange, Strategy::Exchange::kShardedUpdate);
  // Each goes with the gradient that no longer fits, and all parameters are gathered at once. Of
  // the large one, 10 elements behind the first, three parts end with partitions of 64: at 118 and
  // 246.
  const plan::Plan plan = kDeepSpeed.plan_of(strategy, workload);
  std::vector<int> ready;
  for (const auto& bucket : plan.buckets) ready.push_back(bucket.ready);
  EXPECT_EQ(ready, (std::vector<int>{2, 4, 5, 6, 6, 6, 7, 7}));
  EXPECT_EQ(strategy.traits.buckets.cuts, (std::vector<BucketTraits::Cuts>{{5, {118, 246}}}));
  EXPECT_EQ(plan.buckets.back().elements, 511);
}

// allreduce_and_scatter walked through slice by slice: which rank's partition holds each element of
// a parameter, and the sum of the slices so far.
std::vector<std::int64_t> parts_by_walk(const Workload& workload, std::size_t t, std::int64_t size,
                                        int ranks) {
  std::int64_t begin = 0;
  std::int64_t all = 0;
  for (const int at : registered_order(workload.tensors)) {
    if (static_cast<std::size_t>(at) == t) begin = all;
    all += workload.tensors[static_cast<std::size_t>(at)].elements;
  }
  while (all % (2 * ranks) != 0) ++all;
  const auto owner = [&](std::int64_t element) { return (begin + element) / (all / ranks); };
  const std::int64_t elements = workload.tensors[t].elements;
  if (elements <= size) return {elements};
  std::vector<std::int64_t> parts;
  std::int64_t sum = 0;
  for (std::int64_t element = 0; element < elements; ++element) {
    ++sum;
    const bool slice_ends = element + 1 == elements || owner(element) != owner(element + 1);
    if (!slice_ends || (sum <= size && element + 1 < elements)) continue;
    parts.push_back(sum);
    sum = 0;
  }
  return parts;
}

TEST(DeepSpeed, AGradientAboveTheSizeIsReducedInParts) {
  std::mt19937 random(23);
  std::size_t cut = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> sizes;
    const auto count = 1 + random() % 6;
    for (std::size_t i = 0; i < count; ++i) {
      sizes.push_back(1 + static_cast<std::int64_t>(random() % (i % 2 == 0 ? 40 : 900)));
    }
    Workload workload = workload_of(sizes);
    std::vector<int> places(count);
    std::iota(places.begin(), places.end(), 0);
    std::shuffle(places.begin(), places.end(), random);
    for (std::size_t i = 0; i < count; ++i) workload.tensors[i].registered = places[i];
    const auto size = 1 + static_cast<std::int64_t>(random() % 300);
    const Cluster cluster = cluster_of(1, 2 + static_cast<int>(random() % 7));
    const Json config{
        {"zero_optimization",
         {{"stage", 1 + round % 2}, {"overlap_comm", true}, {"reduce_bucket_size", size}}}};
    const Strategy strategy =
        dialect::reading_of(deepspeed_dialect(), config, workload, cluster).strategy;
    std::map<std::size_t, std::vector<std::int64_t>> found;
    const auto plan = plan::make_plan(workload, cluster, strategy);
    for (std::size_t b = 0; b + 1 < plan.buckets.size(); ++b) {  // the last one is gathered
      const auto& tensors = plan.buckets[b].tensors;
      if (tensors.size() > 1) continue;
      found[static_cast<std::size_t>(tensors.front())].push_back(plan.buckets[b].elements);
    }
    for (const auto& [t, parts] : found) {
      EXPECT_EQ(parts, parts_by_walk(workload, t, size, cluster.ranks())) << round << " " << t;
      cut += parts.size() > 1;
    }
    kDeepSpeed.on(cluster).expect_comes_back(strategy, workload);
  }
  EXPECT_GT(cut, 100u);
}

// An embedding of 128256 x 2048 in buckets of 50 million, 8 ranks: two partitions of 37 million
// at a time.
TEST(DeepSpeed, PartsOfAnEmbedding) {
  Workload workload = workload_of({8 * 4096 * 1024, 128256 * 2048});
  workload.tensors.back().name = "emb.w";
  const auto one_node = kDeepSpeed.on(cluster_of(1, 8));
  const auto read = [&](const std::string& more) {
    return one_node.read(R"({"zero_optimization": {"stage": 2, "overlap_comm": true,
                                 "reduce_bucket_size": 50000000)" +
                             more + "}}",
                         workload);
  };
  const auto collectives = [&](const std::string& more) {
    return test::count_of(one_node.plan_of(read(more).strategy, workload),
                          collective::CollectiveKind::kAllReduce);
  };
  EXPECT_EQ(collectives(""), 5u);
  EXPECT_TRUE(has_note(read(""), "emb.w is larger than reduce_bucket_size"));
  // Without slices by rank the bucket is reduced in one go.
  EXPECT_EQ(collectives(R"(, "reduce_scatter": false)"), 2u);
}

TEST(DeepSpeed, StagesDifferInWhatTheyReduceWhen) {
  Workload workload = workload_of({100, 100, 100});
  workload.micro_batches = 4;
  const auto plan_of = [&](const std::string& keys) {
    return kDeepSpeed.plan_of(zero(keys, workload).strategy, workload);
  };
  // The last micro-batch alone; every micro-batch; each with one gather.
  EXPECT_EQ(plan_of(R"("stage": 1, "reduce_bucket_size": 100)").buckets.size(), 3u + 1);
  EXPECT_EQ(plan_of(R"("stage": 2, "reduce_bucket_size": 100)").buckets.size(), 4u * 3 + 1);
  EXPECT_TRUE(has_note(zero(R"("stage": 2)", workload), "in every micro-batch"));
  // Stage 0 has buckets of its own size, and no overlap.
  const Reading plain = zero(R"("stage": 0, "reduce_bucket_size": 100)", workload);
  EXPECT_EQ(plain.strategy.fusion.groups, (Groups{{2, 1, 0}}));
  EXPECT_FALSE(plain.strategy.overlap);
  EXPECT_TRUE(has_note(plain, "no effect at stage 0"));
}

TEST(DeepSpeed, DefaultsAreNoted) {
  const Workload workload = workload_of({100});
  const Reading reading =
      zero(R"("stage": 2, "allgather_bucket_size": 2e8, "reduce_scatter": true)", workload);
  EXPECT_FALSE(reading.strategy.overlap);
  EXPECT_EQ(reading.strategy.traits.in_flight, 0);
  EXPECT_TRUE(has_note(reading, "overlap_comm is off"));
  EXPECT_TRUE(has_note(reading, "allgather_bucket_size has no effect"));
  EXPECT_TRUE(has_note(reading, "all-reduced, not reduce-scattered"));
  const Strategy owners =
      zero(R"("stage": 1, "use_multi_rank_bucket_allreduce": false)", workload).strategy;
  EXPECT_EQ(owners.exchange, Strategy::Exchange::kSharded);
  EXPECT_EQ(kDeepSpeed.read("{}", workload).strategy.exchange, Strategy::Exchange::kAllReduce);
}

// The sizes that nobody gives, each to the element.
TEST(DeepSpeed, DefaultsToTheElement) {
  constexpr std::int64_t kMillion = 1'000'000;
  // No more than 500 million in a bucket; at stage 0 one closes once it holds more. Buckets fill as
  // parameters were registered, the last gradient first.
  const Workload large = workload_of({300 * kMillion, 200 * kMillion, 1, 5});
  const Strategy first = zero(R"("stage": 1)", large).strategy;
  EXPECT_EQ(first.fusion.groups, (Groups{{3, 2, 1}, {0}}));
  EXPECT_TRUE(first.bucket_copies);
  EXPECT_EQ(zero(R"("stage": 0)", large).strategy.fusion.groups, (Groups{{3, 2, 1, 0}}));
  // Parameters of up to 100,000 elements stay in place, each gathered by itself.
  const Strategy third =
      zero(R"("stage": 3)", workload_of({100'000, 100'001, 50 * kMillion, 1})).strategy;
  EXPECT_EQ(third.gather_groups, (Groups{{3}, {0}}));
  EXPECT_EQ(third.traits.fetches, (Fetches{1000 * kMillion, 50 * kMillion, 1000 * kMillion}));
}

// A bucket is of one format of communication, not of one format of gradients.
TEST(DeepSpeed, FormatsShareBucketsIfOneIsCommunicated) {
  Workload workload = workload_of({60, 40, 30});
  workload.tensors[0].dtype = DType::kFp16;
  workload.tensors[2].dtype = DType::kFp16;
  const std::string config =
      R"("zero_optimization": {"stage": 1, "reduce_bucket_size": 100, "overlap_comm": true}})";
  EXPECT_EQ(kDeepSpeed.read("{" + config, workload).strategy.fusion.groups.size(), 2u);
  const Strategy strategy =
      kDeepSpeed.read(R"({"communication_data_type": "fp32", )" + config, workload).strategy;
  EXPECT_EQ(strategy.fusion.groups, (Groups{{0, 1}, {2}}));
  const plan::Plan plan = kDeepSpeed.plan_of(strategy, workload);
  EXPECT_EQ(plan.buckets.front().bytes, 400);
}

TEST(DeepSpeed, SaysWhatItRefuses) {
  Workload workload = workload_of({100});
  const std::string batches = R"({"train_batch_size": 96, "train_micro_batch_size_per_gpu": 4,
                                  "optimizer": {"type": "AdamW"}})";
  kDeepSpeed.expect_refusals(
      workload, {{R"({"zero_optimization": {"stage": 4}})", "stage"},
                 {R"({"zero_optimization": {"reduce_buckets_size": 3}})", "reduce_bucket_size"},
                 {R"({"zero_optimization": {"reduce_bucket_size": "auto"}})", "hidden_size"},
                 {R"({"train_batch_size": 100, "train_micro_batch_size_per_gpu": 4,
            "gradient_accumulation_steps": 3})",
                  "100 != 4 * 3 * 8"},
                 {batches, "3 micro-batches"}});
  workload.micro_batches = 3;
  EXPECT_EQ(kDeepSpeed.refusal(batches, workload), "");
}

TEST(DeepSpeed, ComesBack) {
  std::mt19937 random(13);
  for (const char* name : {"resnet50_v100.json", "bert_base.json"}) {
    Workload workload = shipped_workload(name);
    for (int round = 0; round < 16; ++round) {
      workload.micro_batches = 1 + static_cast<std::int64_t>(random() % 3);
      const Json config{
          {"zero_optimization",
           {{"stage", round % 3},
            {"overlap_comm", round % 2 == 0},
            {"contiguous_gradients", round % 5 != 0},
            {"use_multi_rank_bucket_allreduce", round % 4 != 0},
            {"reduce_bucket_size", 1 + static_cast<std::int64_t>(random() % 30'000'000)}}}};
      expect_comes_back_from_both(config, workload);
    }
  }
}

// What stays in place, and what the passes fetch, which tests/frameworks holds against DeepSpeed.
TEST(DeepSpeed, Stage3FetchesWhatDoesNotPersist) {
  const Workload workload = workload_of({40, 3, 60, 50, 2, 70, 30});
  const auto strategy_of = [&](const std::string& more) {
    return zero(R"("stage": 3, "reduce_bucket_size": 100, "stage3_prefetch_bucket_size": 80,
                   "stage3_param_persistence_threshold": 3)" +
                    more,
                workload)
        .strategy;
  };
  const Strategy strategy = strategy_of(R"(, "stage3_max_reuse_distance": 200)");
  EXPECT_EQ(strategy.fusion.groups, (Groups{{0, 1}, {2}, {3, 4}, {5, 6}}));
  EXPECT_EQ(strategy.gather_groups, (Groups{{4}, {1}}));
  EXPECT_EQ(strategy.traits.kept_groups, 2);
  EXPECT_EQ(strategy.traits.fetches, (Fetches{1'000'000'000, 80, 200}));
  EXPECT_TRUE(strategy.regather);
  EXPECT_TRUE(strategy.overlap);
  EXPECT_EQ(strategy.traits.in_flight, 3);
  EXPECT_EQ(strategy.exchange, Strategy::Exchange::kSharded);
  // In the order in which they were registered, as long as there is room.
  EXPECT_EQ(strategy_of(R"(, "stage3_model_persistence_threshold": 2)").gather_groups,
            (Groups{{4}}));
  // With no room, or nothing asked for early, each module gathers its own.
  for (const char* keys :
       {R"(, "stage3_max_live_parameters": 0)", R"(, "stage3_prefetch_bucket_size": 0)"}) {
    const Reading reading = zero(R"("stage": 3)" + std::string(keys), workload);
    EXPECT_EQ(reading.strategy.traits.fetches.ahead, 0) << keys;
    EXPECT_TRUE(reading.strategy.traits.fetches.any()) << keys;
    EXPECT_TRUE(has_note(reading, "waits for its own parameters")) << keys;
  }
}

TEST(DeepSpeed, Stage3ComesBack) {
  std::mt19937 random(17);
  Workload workload = shipped_workload("bert_base.json");
  for (int round = 0; round < 20; ++round) {
    workload.micro_batches = 1 + static_cast<std::int64_t>(random() % 2);
    Json config;
    config["zero_optimization"] = {
        {"stage", 3},
        {"overlap_comm", round % 4 != 0},
        {"contiguous_gradients", round % 5 != 0},
        {"reduce_bucket_size", 1 + static_cast<std::int64_t>(random() % 30'000'000)},
        {"stage3_prefetch_bucket_size", 1 + static_cast<std::int64_t>(random() % 30'000'000)},
        {"stage3_max_live_parameters",
         static_cast<std::int64_t>(random() % (round % 3 == 0 ? 50'000'000 : 200'000'000))},
        {"stage3_param_persistence_threshold", 1 + static_cast<std::int64_t>(random() % 700'000)},
        {"stage3_max_reuse_distance", 1 + static_cast<std::int64_t>(random() % 300'000'000)}};
    expect_comes_back_from_both(config, workload);
  }
}

// By itself a rank gathers nothing: its plan has the gradients' buckets alone, few or many.
TEST(DeepSpeed, Stage3OfOneRankComesBack) {
  const test::Framework alone{deepspeed_dialect(), cluster_of(1, 1)};
  for (const std::int64_t bucket : {1, 100, 10'000'000}) {
    const Workload workload = workload_of({60, 40, 30, 70, 1, 300, 5, 5});
    const Json config{{"zero_optimization",
                       {{"stage", 3},
                        {"reduce_bucket_size", bucket},
                        {"stage3_prefetch_bucket_size", 50},
                        {"stage3_param_persistence_threshold", 2}}}};
    const Strategy strategy = reading_of(alone.row, config, workload, alone.cluster).strategy;
    ASSERT_GT(strategy.gather_groups.size(), 0u);
    alone.expect_comes_back(strategy, workload);
  }
}

TEST(HfTrainer, ArgumentsBecomeThoseOfDdp) {
  const Workload workload = workload_of(std::vector<std::int64_t>(8, 1 << 18));  // 1 MiB each
  const auto groups = [&](const std::string& config) {
    return kTrainer.groups_of(config, workload);
  };
  // An explicit cap is the first bucket's too.
  EXPECT_EQ(groups(R"({"ddp_bucket_cap_mb": 3, "ddp_find_unused_parameters": false,
                       "learning_rate": 1e-4})"),
            (Groups{{0, 1, 2}, {3, 4, 5}, {6, 7}}));
  // Without gradient checkpointing the Trainer asks for unused parameters: the buckets of the first
  // step stay, counted from the first layer, which ends up with the full ones.
  EXPECT_EQ(groups(R"({"ddp_bucket_cap_mb": 3})"), (Groups{{1, 0}, {4, 3, 2}, {7, 6, 5}}));
  EXPECT_EQ(groups(R"({"ddp_bucket_cap_mb": 3, "gradient_checkpointing": true})"),
            (Groups{{0, 1, 2}, {3, 4, 5}, {6, 7}}));
  // accelerate passes on what differs from its defaults, of which 25 is one: torch's own limits.
  const auto limited = [&](const std::string& cap) {
    return groups(R"({"ddp_find_unused_parameters": false)" + cap + "}");
  };
  EXPECT_EQ(limited(R"(, "ddp_bucket_cap_mb": 25)"), (Groups{{0}, {1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_EQ(limited(R"(, "ddp_bucket_cap_mb": 25)"), limited(""));
  EXPECT_EQ(limited(R"(, "ddp_bucket_cap_mb": 24)"), (Groups{{0, 1, 2, 3, 4, 5, 6, 7}}));
  const auto told = [&](const std::string& torch) {
    return has_note(
        kTrainer.read(R"({"ddp_bucket_cap_mb": 25, "torch": ")" + torch + "\"}", workload),
        "accelerate's default");
  };
  EXPECT_TRUE(told("2.7"));
  EXPECT_FALSE(told("2.2"));  // there the first bucket closes at 1 MiB whatever is given
  const Reading reading = kTrainer.read(R"({"bf16": true})", workload);
  EXPECT_TRUE(has_note(reading, "ddp_find_unused_parameters is not given"));
  EXPECT_TRUE(has_note(reading, "autocast"));
  // torch_compile: what DDPOptimizer makes of it.
  const Strategy compiled =
      kTrainer.strategy_of(R"({"ddp_bucket_cap_mb": 3, "torch_compile": true})", workload);
  EXPECT_FALSE(compiled.graph_segments.empty());
  kTrainer.expect_refusals(workload,
                           {{R"({"ddp_bucket_cap": 3})", "ddp_bucket_cap_mb"},
                            {R"({"gradient_accumulation_steps": 8})", "\"micro_batches\": 1"},
                            {R"({"fsdp": "full_shard"})", "fsdp"}});
}

TEST(HfTrainer, DeepSpeedInside) {
  Workload workload = workload_of({100, 100});
  workload.micro_batches = 2;
  const Reading reading = kTrainer.read(
      R"({"gradient_accumulation_steps": 2, "ddp_bucket_cap_mb": 5,
          "deepspeed": {"train_batch_size": "auto", "gradient_accumulation_steps": "auto",
                        "zero_optimization": {"stage": 1, "reduce_bucket_size": 100}}})",
      workload);
  EXPECT_EQ(reading.strategy.fusion.groups, (Groups{{1}, {0}}));
  EXPECT_TRUE(has_note(reading, "ddp_bucket_cap_mb has no effect"));
}

TEST(HfTrainer, ComesBack) {
  const Workload workload = shipped_workload("bert_base.json");
  for (const char* config :
       {R"({"ddp_bucket_cap_mb": 10})", R"({"ddp_find_unused_parameters": false})",
        R"({"ddp_bucket_cap_mb": 100, "ddp_find_unused_parameters": false})"}) {
    const Strategy strategy =
        dialect::reading_of(kTrainer.row, Json::parse(config), workload, kTrainer.cluster).strategy;
    SCOPED_TRACE(config);
    kTrainer.expect_comes_back(strategy, workload);
  }
}

}  // namespace
}  // namespace syncline::dialect
