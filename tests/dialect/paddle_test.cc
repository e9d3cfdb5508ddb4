// Paddle's configurations: the published counts and bytes through the dialects, what Paddle
// silently does, and its own errors.
#include "formats/dialect/dialects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/plan.h"
#include "formats/json/text.h"
#include "tests/support/readings.h"
#include "tests/support/small_plans.h"
#include "tests/support/text.h"

namespace syncline::dialect {
namespace {

using test::cluster_of;
using test::contains;
using test::count_of;
using test::Groups;
using test::has_note;
using test::paddle_resnet50;
using test::shipped_workload;
using test::tensor_of;

using Sizes = std::vector<std::pair<std::size_t, double>>;  // tensors, MiB

const test::Framework kPaddle{paddle_dialect(), cluster_of(2, 8)};
const test::Framework kPaddleAlone{paddle_dialect(), cluster_of(1, 1)};

Reading read_paddle(const std::string& config, const Workload& workload = paddle_resnet50(10),
                    const test::Framework& paddle = kPaddle) {
  return paddle.read(config, workload);
}

Reading documents(const std::string& config, const test::Framework& paddle = kPaddle) {
  return paddle.read(config, paddle_resnet50(10), true);
}

std::vector<plan::Bucket> buckets(const std::string& config,
                                  const Workload& workload = paddle_resnet50(10),
                                  plan::TrainingPoint point = {}) {
  return plan::make_plan(workload, kPaddle.cluster, kPaddle.strategy_of(config, workload), point)
      .buckets;
}

Sizes sizes_of(const std::vector<plan::Bucket>& list) {
  Sizes sizes;
  for (const auto& bucket : list) {
    sizes.emplace_back(bucket.tensors.size(),
                       static_cast<double>(bucket.bytes) / static_cast<double>(kMiB));
  }
  return sizes;
}

void expect_sizes(const std::vector<plan::Bucket>& list, const Sizes& expected) {
  const Sizes found = sizes_of(list);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].first, expected[i].first) << "bucket " << i;
    EXPECT_NEAR(found[i].second, expected[i].second, 6e-4) << "bucket " << i;
  }
}

using Refused = std::vector<std::pair<std::string, std::string>>;

void expect_errors(const Refused& refused, bool as_documents = false) {
  kPaddle.expect_refusals(paddle_resnet50(10), refused, as_documents);
}

constexpr const char* k16 = R"({"fuse_grad_size_in_MB": 16, "_fuse_grad_size_in_TFLOPS": 50.0})";

// --- Fusion -----------------------------------------------------------------------------------

TEST(PaddleDialect, CountsOfTheLogs) {
  const std::map<std::int64_t, std::pair<std::size_t, std::size_t>> published{
      {10, {6, 5}}, {102, {6, 5}}, {1000, {7, 5}}};
  for (const auto& [classes, counts] : published) {
    const Workload workload = paddle_resnet50(classes);
    EXPECT_EQ(buckets(k16, workload).size(), counts.first) << classes;
    EXPECT_EQ(buckets("{}", workload).size(), counts.second) << classes;
  }
}

TEST(PaddleDialect, GroupsOfTheLoggedModel) {
  expect_sizes(buckets(k16),
               {{11, 17.102}, {9, 17.023}, {9, 21.035}, {36, 18.049}, {51, 14.238}, {45, 2.307}});
  expect_sizes(buckets("{}"), {{20, 34.125}, {33, 32.570}, {51, 19.433}, {51, 3.574}, {6, 0.0525}});
  EXPECT_EQ(buckets(k16)[0].bytes, 17932328);
  EXPECT_EQ(buckets(k16)[0].padded_bytes, 17932544);
}

TEST(PaddleDialect, GroupsWithTheImageNetHead) {
  const Workload workload = paddle_resnet50(1000);
  expect_sizes(buckets(k16, workload), {{8, 20.836},
                                        {9, 17.023},
                                        {9, 16.035},
                                        {18, 16.277},
                                        {33, 16.039},
                                        {51, 10.422},
                                        {33, 0.860}});
  expect_sizes(buckets("{}", workload),
               {{17, 37.859}, {27, 32.313}, {51, 22.626}, {51, 4.372}, {15, 0.3225}});
}

TEST(PaddleDialect, MixedPrecisionSplitsGroupsByDtype) {
  Workload workload = paddle_resnet50(10);
  for (auto& tensor : workload.tensors) {
    if (!tensor.name.starts_with("bn")) tensor.dtype = DType::kFp16;
  }
  EXPECT_EQ(buckets("{}", workload).size(), 8u);
  EXPECT_EQ(buckets(k16, workload).size(), 10u);
}

TEST(PaddleDialect, WithoutASizeOnlyLayersAreFused) {
  const std::string config = R"({"fuse_grad_size_in_MB": -1})";
  EXPECT_EQ(buckets(config).size(), 160u);
  Workload workload;
  workload.tensors = {tensor_of("linear_0.b_0", {3}), tensor_of("linear_0.w_0", {6})};
  EXPECT_EQ(buckets(config, workload).size(), 1u);
  workload.tensors = {tensor_of("create_parameter_1", {3}), tensor_of("create_parameter_0", {6})};
  EXPECT_EQ(buckets(config, workload).size(), 2u);
  EXPECT_TRUE(has_note(read_paddle(config), "-1 merges nothing by size"));
  EXPECT_EQ(buckets(R"({"fuse_grad_size_in_MB": 0})").size(), 160u);
}

TEST(PaddleDialect, FusionSwitchedOffOrWithOneWorker) {
  const auto unfused = buckets(R"({"fuse_all_reduce_ops": false})");
  ASSERT_EQ(unfused.size(), 161u);
  EXPECT_EQ(unfused[0].padded_bytes, unfused[0].bytes);
  EXPECT_EQ(kPaddleAlone.plan_of("{}", paddle_resnet50(10)).buckets.size(), 161u);
}

TEST(PaddleDialect, TheTflopsAreACountOfGradientsWithAStrictTest) {
  const Reading reading = read_paddle(R"({"_fuse_grad_size_in_TFLOPS": 20.9})");
  EXPECT_EQ(reading.strategy.fusion.count, 21);
  EXPECT_TRUE(has_note(reading, "closes at more than that: at 21"));
  // Looked at above 1 only.
  EXPECT_EQ(read_paddle(R"({"_fuse_grad_size_in_TFLOPS": 1.0})").strategy.fusion.count, 0);
  EXPECT_EQ(read_paddle(R"({"_fuse_grad_size_in_TFLOPS": -3.5})").strategy.fusion.count, 0);
  EXPECT_TRUE(has_note(read_paddle(R"({"_fuse_grad_size_in_TFLOPS": 1.0})"), "sets no limit"));
  // The documents' spelling.
  const Reading spelt = read_paddle(R"({"fuse_grad_size_in_TFLOPS": 30.0})");
  EXPECT_EQ(spelt.strategy.fusion.count, 31);
  EXPECT_TRUE(has_note(spelt, "no attribute without the underscore"));
  expect_errors(
      {{R"({"fuse_grad_size_in_TFLOPS": 3.0, "_fuse_grad_size_in_TFLOPS": 3.0})", "given twice"}});
}

// --- Setters ----------------------------------------------------------------------------------

TEST(PaddleDialect, SettersIgnoreOtherTypes) {
  for (const char* value : {"16.0", "16.5", "\"16\"", "null", "[16]"}) {
    const Reading reading = read_paddle(std::string(R"({"fuse_grad_size_in_MB": )") + value + "}");
    EXPECT_EQ(reading.strategy.fusion.size, 32 * kMiB) << value;
    EXPECT_TRUE(has_note(reading, "fuse_grad_size_in_MB should have value of int type")) << value;
    EXPECT_TRUE(has_note(reading, "32 stays")) << value;
  }
  // The documents' own listing: an int where a float is wanted.
  const Reading tflops = read_paddle(R"({"_fuse_grad_size_in_TFLOPS": 20})");
  EXPECT_EQ(tflops.strategy.fusion.count, 51);
  EXPECT_TRUE(has_note(tflops, "_fuse_grad_size_in_TFLOPS should have value of float type: 20"));
  const Reading flag = read_paddle(R"({"fuse_all_reduce_ops": 0, "nccl_comm_num": "2"})");
  EXPECT_EQ(flag.strategy.fusion.rule, Fusion::Rule::kSize);
  EXPECT_TRUE(has_note(flag, "fuse_all_reduce_ops should have value of bool type: 0 is ignored"));
  EXPECT_TRUE(has_note(flag, "nccl_comm_num should have value of int type: '2' is ignored"));
  // Python's True is an int.
  EXPECT_EQ(read_paddle(R"({"fuse_grad_size_in_MB": true})").strategy.fusion.size, kMiB);
}

TEST(PaddleDialect, RefusesNumbersThatOverflowTheField) {
  expect_errors(
      {{R"({"fuse_grad_size_in_MB": 2147483648})",
        "fuse_grad_size_in_MB: found 2147483648: Value out of range"},
       {R"({"_fuse_grad_size_in_TFLOPS": 1e300})", "Value out of range"},
       {R"({"nccl_comm_num": 0})", "nccl_comm_num: found 0, expected a whole number from 1"},
       {R"({"nccl_comm_num": 65})", "from 1 to 64"}});
}

TEST(PaddleDialect, UnknownKeysAreNamedWithTheNearest) {
  expect_errors({{R"({"fuse_allreduce_ops": true})", "did you mean 'fuse_all_reduce_ops'?"},
                 {R"({"build_strategy": {"fuse_bn_acts_ops": true}})",
                  "build_strategy.fuse_bn_acts_ops: unknown key (did you mean 'fuse_bn_act_ops'?)"},
                 {R"({"dgc_configs": {"rampup_steps": 2}})", "did you mean 'rampup_step'?"},
                 {R"({"localsgd_configs": {"k_step": 2}})", "did you mean 'k_steps'?"},
                 {R"({"adaptive_localsgd_configs": {"k_steps": 2}})", "init_k_steps"}});
}

// Mixed precision is in the workload's dtypes: nothing else changes.
TEST(PaddleDialect, AmpIsANote) {
  const Reading reading = read_paddle(R"({"amp": true, "amp_configs": {"use_pure_fp16": true}})");
  EXPECT_TRUE(has_note(reading, "in the dtypes that the workload gives them"));
  EXPECT_TRUE(read_paddle(R"({"amp": false})").notes.empty());
  expect_sizes(buckets(R"({"amp": true})"), sizes_of(buckets("{}")));
}

TEST(PaddleDialect, AnEmptyConfigurationSaysNothing) {
  const Reading reading = read_paddle("{}");
  EXPECT_TRUE(reading.notes.empty());
  EXPECT_EQ(reading.strategy.streams, 1);
  EXPECT_EQ(reading.strategy.hierarchy.form, Hierarchy::Form::kFlat);
  EXPECT_EQ(reading.strategy.update, Strategy::Update::kPerBucket);
}

// --- Streams ----------------------------------------------------------------------------------

TEST(PaddleDialect, TheSyncFlagLeavesOneAllReduceInFlight) {
  const Reading quiet = read_paddle(R"({"nccl_comm_num": 2})");
  EXPECT_EQ(quiet.strategy.streams, 1);
  EXPECT_EQ(quiet.notes,
            std::vector<std::string>{"sync_nccl_allreduce is true by default: one all-reduce in "
                                     "flight at a time, nccl_comm_num = 2 gains nothing"});
  EXPECT_TRUE(has_note(read_paddle(R"({"nccl_comm_num": 3, "sync_nccl_allreduce": true})"),
                       "sync_nccl_allreduce is true: one"));
  const Reading async = read_paddle(R"({"nccl_comm_num": 2, "sync_nccl_allreduce": false})");
  EXPECT_EQ(async.strategy.streams, 2);
  EXPECT_TRUE(async.notes.empty());
  EXPECT_EQ(documents(R"({"nccl_comm_num": 2})").strategy.streams, 2);
  EXPECT_EQ(documents(R"({"nccl_comm_num": 2, "sync_nccl_allreduce": true})").strategy.streams, 1);
}

TEST(PaddleDialect, GuardsOfOneWorkerAndOfSyncBatchNorm) {
  const Reading alone = read_paddle(R"({"nccl_comm_num": 2, "sync_nccl_allreduce": false})",
                                    paddle_resnet50(10), kPaddleAlone);
  EXPECT_EQ(alone.strategy.streams, 1);
  EXPECT_EQ(alone.notes,
            std::vector<std::string>{"set nccl_comm_num=1 since you only have 1 node."});
  const Reading norm = read_paddle(
      R"({"nccl_comm_num": 2, "sync_nccl_allreduce": false, "sync_batch_norm": true,
          "use_hierarchical_allreduce": true, "hierarchical_allreduce_inter_nranks": 8})");
  EXPECT_EQ(norm.strategy.streams, 1);
  EXPECT_EQ(norm.strategy.hierarchy.form, Hierarchy::Form::kFlat);
  ASSERT_EQ(norm.notes.size(), 1u);
  EXPECT_TRUE(has_note(norm, "num_threads=1, nccl_comm_num=1, hierachical_allreduce=False"));
}

// --- Hierarchy --------------------------------------------------------------------------------

std::string hierarchical(int inter) {
  return R"({"use_hierarchical_allreduce": true, "hierarchical_allreduce_inter_nranks": )" +
         std::to_string(inter) + "}";
}

TEST(PaddleDialect, HierarchicalAllReduceByRanksAGroup) {
  const Workload workload = paddle_resnet50(10);
  const Reading reading = kPaddle.on(cluster_of(4, 8)).read(hierarchical(8), workload);
  EXPECT_EQ(reading.strategy.hierarchy.form, Hierarchy::Form::kLeaders);
  EXPECT_EQ(reading.strategy.hierarchy.group_size, 8);
  EXPECT_FALSE(reading.strategy.hierarchy.first_all_reduce);
  EXPECT_TRUE(has_note(reading, "= 8 is the number of ranks per group, 4 groups"));
  EXPECT_TRUE(has_note(reading, "reduce to each group's leader"));
  EXPECT_TRUE(has_note(reading, "misspelt name"));
  const plan::Plan plan = plan::make_plan(workload, cluster_of(4, 8), reading.strategy);
  EXPECT_EQ(count_of(plan, collective::CollectiveKind::kReduce), 5u);
  EXPECT_EQ(count_of(plan, collective::CollectiveKind::kAllReduce), 5u);
  EXPECT_EQ(count_of(plan, collective::CollectiveKind::kBroadcast), 5u);
  // Four groups of four: both readings agree on them.
  EXPECT_FALSE(has_note(read_paddle(hierarchical(4)), "number of leaders"));
  // One group passes Paddle's checks.
  EXPECT_EQ(read_paddle(hierarchical(16)).strategy.hierarchy.group_size, 16);
}

TEST(PaddleDialect, HierarchicalRunsFlatOnOneNode) {
  const Reading reading = kPaddle.on(cluster_of(1, 8)).read(hierarchical(8), paddle_resnet50(10));
  EXPECT_EQ(reading.strategy.hierarchy.form, Hierarchy::Form::kFlat);
  ASSERT_EQ(reading.notes.size(), 1u);
  EXPECT_TRUE(has_note(reading, "set hierachical_allreduce=False since you only have 1 node"));
  // Even with a group size that the checks would refuse.
  EXPECT_EQ(kPaddle.on(cluster_of(1, 8))
                .read(hierarchical(3), paddle_resnet50(10))
                .strategy.hierarchy.form,
            Hierarchy::Form::kFlat);
}

TEST(PaddleDialect, HierarchicalErrorsInPaddlesWords) {
  expect_errors({{hierarchical(1), "The inter_nranks should be greater than 1, but received 1"},
                 {hierarchical(0), "The inter_nranks should be greater than 1, but received 0"},
                 {R"({"use_hierarchical_allreduce": true})", "but received 1, its default"},
                 {hierarchical(3), "num_trainers:16 mod inter_nranks:3 != 0"},
                 {hierarchical(32), "num_trainers:16 mod inter_nranks:32 != 0"}});
  // Without the switch nobody looks at it.
  EXPECT_TRUE(read_paddle(R"({"hierarchical_allreduce_inter_nranks": 3})").notes.empty());
}

TEST(PaddleDialect, TheDocumentsCountLeaders) {
  const Reading reading = documents(hierarchical(2));
  EXPECT_EQ(reading.strategy.hierarchy.form, Hierarchy::Form::kLeaders);
  EXPECT_EQ(reading.strategy.hierarchy.group_size, 8);
  EXPECT_TRUE(reading.strategy.hierarchy.first_all_reduce);
  EXPECT_TRUE(reading.notes.empty());
  const plan::Plan plan = kPaddle.plan_of(reading.strategy, paddle_resnet50(10));
  EXPECT_EQ(count_of(plan, collective::CollectiveKind::kReduce), 0u);
  EXPECT_EQ(count_of(plan, collective::CollectiveKind::kAllReduce), 10u);
  EXPECT_EQ(documents(R"({"use_hierarchical_allreduce": true})").strategy.hierarchy.group_size, 8);
  // Their example, 8 leaders on one node of 8, is not flat to them: each rank leads itself.
  EXPECT_EQ(documents(hierarchical(8), kPaddle.on(cluster_of(1, 8))).strategy.hierarchy.group_size,
            1);
  expect_errors({{hierarchical(3), "the number of leaders"},
                 {hierarchical(0), "expected a divisor of the 16 workers"}},
                true);
}

TEST(PaddleDialect, TheDocumentsTakeTheCountAsTheyWriteIt) {
  const Reading reading = documents(R"({"fuse_grad_size_in_MB": 16,
                                        "fuse_grad_size_in_TFLOPS": 50})");
  EXPECT_EQ(reading.strategy.fusion.count, 50);
  EXPECT_TRUE(reading.notes.empty());
  const Workload workload = paddle_resnet50(10);
  EXPECT_EQ(plan::make_plan(workload, cluster_of(1, 8), reading.strategy).buckets.size(), 6u);
  EXPECT_EQ(plan::make_plan(workload, cluster_of(1, 8), documents("{}").strategy).buckets.size(),
            5u);
}

// --- DGC --------------------------------------------------------------------------------------

constexpr const char* kRamp = R"({"dgc": true, "dgc_configs": {"rampup_begin_step": 2504,
    "rampup_step": 3756, "sparsity": [0.984375, 0.996, 0.999]}})";

TEST(PaddleDialect, DgcCompressesTheLargeAndFusesNothing) {
  const Workload workload = paddle_resnet50(10);
  const Reading reading = read_paddle(R"({"dgc": true})", workload);
  const Compression& dgc = reading.strategy.compression;
  EXPECT_EQ(dgc.codec, "dgc");
  EXPECT_EQ(dgc.sparsity, std::vector<double>{0.999});
  EXPECT_EQ(dgc.min_elements, 16384);
  EXPECT_EQ(dgc.encode_launches, 14);
  EXPECT_EQ(dgc.decode_launches, 17);
  EXPECT_EQ(reading.strategy.fusion.rule, Fusion::Rule::kNone);
  EXPECT_TRUE(has_note(reading, "52 gradients are compressed, 109 "));

  const plan::Plan plan = kPaddle.plan_of(reading.strategy, workload);
  EXPECT_EQ(plan.buckets.size(), 161u);
  EXPECT_EQ(std::ranges::count_if(plan.buckets, [](auto& b) { return b.codec != nullptr; }), 52);
  EXPECT_EQ(count_of(plan, collective::CollectiveKind::kAllGather), 52u);
  EXPECT_EQ(count_of(plan, collective::CollectiveKind::kAllReduce), 109u);
}

TEST(PaddleDialect, EncodedBytesOfResNet50) {
  const std::vector<std::pair<double, std::pair<Bytes, Bytes>>> published{
      {0.75, {50978816, 46923776}},
      {0.9375, {12744704, 11730944}},
      {0.984375, {3186176, 2932736}},
      {0.996, {815496, 750608}},
      {0.999, {203728, 187512}}};
  for (const auto& [sparsity, bytes] : published) {
    const std::string config =
        R"({"dgc": true, "dgc_configs": {"sparsity": [)" + Json(sparsity).dump() + "]}}";
    for (const std::int64_t classes : {1000, 10}) {
      Bytes sent = 0;
      for (const auto& bucket : buckets(config, paddle_resnet50(classes))) {
        if (bucket.codec != nullptr) {
          sent += bucket.codec->encoded_bytes(bucket.elements, bucket.kept);
        }
      }
      EXPECT_EQ(sent, classes == 1000 ? bytes.first : bytes.second) << sparsity;
    }
  }
}

TEST(PaddleDialect, SparsityStepsOfTheDocuments) {
  const auto kept_at = [](const std::string& config, std::int64_t step) {
    const auto list = buckets(config, paddle_resnet50(10), {step, 0});
    std::int64_t kept = 0;
    for (const auto& bucket : list) kept += bucket.codec != nullptr ? bucket.kept : 0;
    return 8 * kept;
  };
  const std::vector<std::pair<std::int64_t, Bytes>> example{
      {0, 0},         {2503, 0},      {2504, 2932736}, {3755, 2932736},
      {3756, 750608}, {5007, 750608}, {5008, 187512}};
  for (const auto& [step, bytes] : example) EXPECT_EQ(kept_at(kRamp, step), bytes) << step;
  const std::string five = R"({"dgc": true, "dgc_configs": {"rampup_step": 100,
      "sparsity": [0.75, 0.9375, 0.984375, 0.996, 0.999]}})";
  const std::vector<std::pair<std::int64_t, Bytes>> steps{
      {0, 46923776}, {19, 46923776}, {20, 11730944}, {39, 11730944}, {40, 2932736},
      {59, 2932736}, {60, 750608},   {79, 750608},   {80, 187512},   {99, 187512}};
  for (const auto& [step, bytes] : steps) EXPECT_EQ(kept_at(five, step), bytes) << step;
  // Before the ramp nothing is fused either.
  EXPECT_EQ(buckets(kRamp, paddle_resnet50(10), {0, 0}).size(), 161u);
  // An empty list is Paddle's default.
  EXPECT_EQ(read_paddle(R"({"dgc": true, "dgc_configs": {"sparsity": []}})")
                .strategy.compression.sparsity,
            std::vector<double>{0.999});
}

TEST(PaddleDialect, DgcGuards) {
  const Reading alone = read_paddle(kRamp, paddle_resnet50(10), kPaddleAlone);
  EXPECT_TRUE(alone.strategy.compression.codec.empty());
  EXPECT_TRUE(has_note(alone, "dgc needs more than one worker"));
  const Reading off = read_paddle(R"({"dgc_configs": {"rampup_step": 3}})");
  EXPECT_TRUE(off.strategy.compression.codec.empty());
  EXPECT_TRUE(has_note(off, "dgc_configs has no effect"));
  // The encoded path knows no hierarchy.
  Json both = parse_json_text("s.json", hierarchical(8));
  both["dgc"] = true;
  const Reading reading = read_paddle(both.dump());
  EXPECT_TRUE(has_note(reading, "encoded gradients flat"));
  const plan::Plan plan = kPaddle.plan_of(reading.strategy, paddle_resnet50(10));
  EXPECT_EQ(count_of(plan, collective::CollectiveKind::kAllGather), 52u);
  EXPECT_EQ(count_of(plan, collective::CollectiveKind::kReduce), 109u);

  expect_errors({{R"({"dgc": true, "dgc_configs": {"sparsity": [1.5]}})", "ratio must >= 0"},
                 {R"({"dgc": true, "dgc_configs": {"sparsity": [0]}})", "ratio must < 1"},
                 {R"({"dgc": true, "dgc_configs": {"sparsity": [1]}})", "k >= 2"},
                 {R"({"dgc": true, "dgc_configs": {"sparsity": [0.99999]}})", "k >= 2"},
                 {R"({"dgc": true, "dgc_configs": {"sparsity": ["a"]}})", "sparsity[0]: found 'a'"},
                 {R"({"dgc": true, "dgc_configs": {"sparsity": 0.9}})", "expected a list"},
                 {R"({"dgc": true, "dgc_configs": {"rampup_step": 0}})", "rampup_step: found 0"},
                 {R"({"dgc": true, "dgc_configs": {"rampup_begin_step": -1}})", "found -1"}});
}

// --- LocalSGD ---------------------------------------------------------------------------------

TEST(PaddleDialect, LocalSgdSumsTensorsOneByOneOnTwoRings) {
  const Workload workload = paddle_resnet50(10);
  const Reading reading = read_paddle(
      R"({"localsgd": true, "localsgd_configs": {"k_steps": 4, "begin_step": 30},
          "fuse_all_reduce_ops": true, "nccl_comm_num": 4, "build_strategy": {}})");
  EXPECT_TRUE(reading.strategy.local_sgd.enabled);
  EXPECT_FALSE(reading.strategy.local_sgd.adaptive);
  EXPECT_EQ(reading.strategy.local_sgd.period, 4);
  EXPECT_EQ(reading.strategy.local_sgd.begin_step, 30);
  EXPECT_TRUE(has_note(reading, "267 tensors"));
  EXPECT_TRUE(has_note(
      reading, "no effect under LocalSGD: fuse_all_reduce_ops, nccl_comm_num, build_strategy"));

  const plan::Plan plan = plan::make_plan(workload, cluster_of(4, 8), reading.strategy);
  EXPECT_EQ(plan.steps, 4);
  EXPECT_EQ(plan.streams, 3);
  EXPECT_EQ(plan.buckets.size(), 267u);
  std::map<plan::StreamId, int> on;
  for (const auto& op : plan.ops) {
    if (std::holds_alternative<collective::Collective>(op.work)) ++on[op.stream];
  }
  EXPECT_EQ(on, (std::map<plan::StreamId, int>{{1, 134}, {2, 133}}));
}

TEST(PaddleDialect, AdaptiveLocalSgd) {
  const Reading reading = read_paddle(R"({"adaptive_localsgd": true,
      "adaptive_localsgd_configs": {"init_k_steps": 4, "begin_step": 10}})");
  const LocalSgd& local = reading.strategy.local_sgd;
  EXPECT_TRUE(local.enabled && local.adaptive);
  EXPECT_EQ(local.init_period, 4);
  EXPECT_EQ(local.begin_step, 10);
  EXPECT_EQ(local.max_period, 16);
  EXPECT_TRUE(has_note(reading, "inside the square root"));
  EXPECT_FALSE(has_note(read_paddle(R"({"adaptive_localsgd": true})"), "square root"));
}

TEST(PaddleDialect, LocalSgdGuards) {
  const Reading alone = read_paddle(R"({"localsgd": true})", paddle_resnet50(10), kPaddleAlone);
  EXPECT_FALSE(alone.strategy.local_sgd.enabled);
  EXPECT_TRUE(has_note(alone, "LocalSGD needs more than one worker"));
  EXPECT_TRUE(has_note(read_paddle(R"({"localsgd_configs": {}})"), "localsgd_configs has no"));
  expect_errors(
      {{R"({"localsgd": true, "localsgd_configs": {"k_steps": 0}})", "k_steps: found 0"},
       {R"({"dgc": true, "localsgd": true})",
        "localsgd: cannot be combined with dgc: the meta optimizer of neither"},
       {R"({"dgc": true, "adaptive_localsgd": true})", "adaptive_localsgd: cannot be"},
       {R"({"localsgd": true, "adaptive_localsgd": true})", "meta_optimizers_black_list"}});
}

// --- build_strategy ---------------------------------------------------------------------------

TEST(PaddleDialect, TheFusedOptimiserWaitsForEveryAllReduce) {
  const std::string config = R"({"build_strategy": {"fuse_all_optimizer_ops": true}})";
  const Workload workload = paddle_resnet50(10);
  const Reading fused = read_paddle(config, workload);
  EXPECT_EQ(fused.strategy.update, Strategy::Update::kAfterAll);
  EXPECT_TRUE(has_note(fused, "waits for every all-reduce"));
  const auto updates = [&](const Strategy& strategy) {
    return std::ranges::count_if(kPaddle.plan_of(strategy, workload).ops, [](const plan::Op& op) {
      const auto* work = std::get_if<plan::Compute>(&op.work);
      return work != nullptr && work->phase == plan::Phase::kUpdate;
    });
  };
  EXPECT_EQ(updates(fused.strategy), 1);
  EXPECT_EQ(updates(read_paddle("{}").strategy), 5);

  Workload mixed = workload;
  mixed.tensors[5].dtype = DType::kFp16;
  const Reading several = read_paddle(config, mixed);
  EXPECT_EQ(several.strategy.update, Strategy::Update::kPerBucket);
  EXPECT_TRUE(has_note(several, "several dtypes"));
  const Reading dgc =
      read_paddle(R"({"dgc": true, "build_strategy": {"fuse_all_optimizer_ops": true}})");
  EXPECT_EQ(dgc.strategy.update, Strategy::Update::kPerBucket);
  EXPECT_TRUE(has_note(dgc, "two types of operator"));
}

// Without operators below the layers it is unknown what the switches fuse; the times stand.
TEST(PaddleDialect, ComputeFusionIsReadAndNoted) {
  const std::string config = R"({"build_strategy": {"fuse_elewise_add_act_ops": true,
      "fuse_bn_act_ops": true, "fuse_bn_add_act_ops": true, "fused_bn_add_act_ops": true,
      "fuse_relu_depthwise_conv": true, "fuse_broadcast_ops": true, "fuse_gemm_epilogue": true}})";
  const Reading reading = read_paddle(config);
  EXPECT_EQ(reading.notes.size(), 3u);
  EXPECT_TRUE(has_note(reading,
                       "fuse_relu_depthwise_conv, fuse_bn_act_ops, fuse_bn_add_act_ops, "
                       "fuse_gemm_epilogue, fuse_elewise_add_act_ops: what they fuse is not "
                       "known, as the workload has no operators"));
  EXPECT_TRUE(has_note(reading, "the documents' spelling of fuse_bn_add_act_ops"));
  EXPECT_TRUE(has_note(reading, "fuse_broadcast_ops is turned off: it only works under Reduce"));
  const ComputeFusion& fusion = reading.strategy.compute_fusion;
  EXPECT_TRUE(fusion.fuse_elewise_add_act_ops && fusion.fuse_bn_act_ops &&
              fusion.fuse_bn_add_act_ops && fusion.fuse_relu_depthwise_conv &&
              fusion.fuse_gemm_epilogue);
  EXPECT_FALSE(fusion.fuse_all_optimizer_ops);
  EXPECT_TRUE(read_paddle(R"({"build_strategy": {"fuse_bn_act_ops": false}})").notes.empty());
  expect_errors({{R"({"build_strategy": {"fuse_bn_act_ops": 1}})", "expected true or false"},
                 {R"({"build_strategy": 1})", "build_strategy: found 1, expected an object"}});
}

TEST(PaddleDialect, OneComputeFusionIsOnByDefault) {
  EXPECT_TRUE(read_paddle("{}").strategy.compute_fusion.fuse_bn_add_act_ops);
  const auto off = read_paddle(R"({"build_strategy": {"fuse_bn_add_act_ops": false}})");
  EXPECT_FALSE(off.strategy.compute_fusion.fuse_bn_add_act_ops);
  // LocalSGD leaves the graph executor out, and with it the build strategy.
  EXPECT_FALSE(read_paddle(R"({"localsgd": true})").strategy.compute_fusion.fuse_bn_add_act_ops);
}

TEST(PaddleDialect, EveryNoteIsOneLine) {
  for (const char* config :
       {kRamp, k16, R"({"localsgd": true, "nccl_comm_num": 2})",
        R"({"fuse_grad_size_in_MB": -1, "nccl_comm_num": 2, "use_hierarchical_allreduce": true,
            "hierarchical_allreduce_inter_nranks": 8,
            "build_strategy": {"fuse_all_optimizer_ops": true, "fuse_broadcast_ops": true}})"}) {
    const Reading reading = read_paddle(config);
    EXPECT_FALSE(reading.notes.empty()) << config;
    for (const auto& note : reading.notes) EXPECT_FALSE(contains(note, "\n")) << note;
  }
}

// --- Dygraph ----------------------------------------------------------------------------------

const test::Framework kDygraph{paddle_dygraph_dialect(), cluster_of(2, 8)};

std::vector<plan::Bucket> dygraph_buckets(const std::string& config, const Workload& workload) {
  return kDygraph.plan_of(config, workload).buckets;
}

TEST(PaddleDygraph, TheExampleListsInCommunicationOrder) {
  const Workload workload = shipped_workload("resnet50_v100.json");
  const Sizes by_25{{7, 11.836}, {15, 30.043}, {24, 28.295}, {78, 25.771}, {37, 1.548}};
  const Sizes by_32{{16, 28.859}, {15, 34.043}, {93, 33.042}, {37, 1.548}};
  expect_sizes(dygraph_buckets("{}", workload), by_25);
  expect_sizes(dygraph_buckets(R"({"comm_buffer_size": 25, "last_comm_buffer_size": 1,
                                   "find_unused_parameters": true})",
                               workload),
               by_25);
  expect_sizes(dygraph_buckets(R"({"comm_buffer_size": 32})", workload), by_32);
  expect_sizes(dygraph_buckets(R"({"fuse_grad_size_in_MB": 32})", workload), by_32);
  // Fleet's setter keeps its own default.
  expect_sizes(dygraph_buckets(R"({"fuse_grad_size_in_MB": 25.0})", workload), by_32);
}

TEST(PaddleDygraph, GroupsByDtypeAndOrdersThemByHowTheyClosed) {
  Workload workload;  // forward: a, b, c, d
  workload.tensors = {tensor_of("d", {1}), tensor_of("c", {kMiB}), tensor_of("b", {2}),
                      tensor_of("a", {2}, DType::kFp16)};
  const auto groups = [&](const std::string& config) {
    return kDygraph.on(cluster_of(2, 1)).groups_of(config, workload);
  };
  // b and c close, a is left over, and so is d.
  EXPECT_EQ(groups("{}"), (Groups{{3}, {0}, {2, 1}}));
  // By first parameter instead: a, then b and c, then d; reversed.
  EXPECT_EQ(groups(R"({"find_unused_parameters": true})"), (Groups{{0}, {2, 1}, {3}}));
  // A limit of nothing closes at each gradient after the first group.
  EXPECT_EQ(groups(R"({"fuse_grad_size_in_MB": 0})"), (Groups{{3}, {0}, {2, 1}}));
  workload.tensors.push_back(test::sparse_tensor_of("embedding", {100, 8}, 3));
  EXPECT_EQ(groups("{}"), (Groups{{3}, {0}, {2, 1}, {4}}));
}

TEST(PaddleDygraph, NotesAndErrors) {
  const Workload workload = shipped_workload("resnet50_v100.json");
  const auto reading = [&](const std::string& config) { return kDygraph.read(config, workload); };
  EXPECT_TRUE(reading("{}").notes.empty());
  EXPECT_EQ(reading("{}").strategy.update, Strategy::Update::kAfterAll);
  EXPECT_TRUE(has_note(reading(R"({"find_unused_parameters": true})"), "never rebuilt"));
  EXPECT_TRUE(has_note(reading(R"({"fuse_grad_size_in_MB": 0})"), "nothing is fused"));
  EXPECT_TRUE(has_note(reading(R"({"fuse_grad_size_in_MB": 2.5})"), "int type: 2.5 is ignored"));
  EXPECT_EQ(kDygraph.refusal(R"({"last_comm_buffer_size": 0})", workload),
            "x.json: c.last_comm_buffer_size: found 0: last_comm_buffer_size should be "
            "greater than 0");
  kDygraph.expect_refusals(
      workload, {{R"({"comm_buffer_size": 1, "fuse_grad_size_in_MB": 1})", "given twice"},
                 {R"({"comm_buffer_sise": 1})", "did you mean 'comm_buffer_size'?"}});
}

// Under sync_nccl_allreduce the host waits for each all-reduce before it issues the next.
TEST(Paddle, TheHostWaitsForEachAllReduceByDefault) {
  Cluster cluster = cluster_of(2, 8);
  cluster.device.host_sync = 20e-6;
  const auto waits = [&](const std::string& config) {
    const plan::Plan plan = kPaddle.on(cluster).plan_of(config, paddle_resnet50(10));
    return std::count_if(plan.ops.begin(), plan.ops.end(), [](const plan::Op& op) {
      return op.stream > 0 && plan::reason_of(op.work) == plan::Busy::Reason::kHost;
    });
  };
  EXPECT_EQ(waits("{}"), 5);
  EXPECT_EQ(waits(R"({"fuse_grad_size_in_MB": 16})"), 6);
  EXPECT_EQ(waits(R"({"sync_nccl_allreduce": false})"), 0);
  // Reduced inside, all-reduced among leaders, broadcast: it waits for each of the three.
  EXPECT_EQ(waits(R"({"use_hierarchical_allreduce": true,
                      "hierarchical_allreduce_inter_nranks": 8})"),
            15);
}

}  // namespace
}  // namespace syncline::dialect
