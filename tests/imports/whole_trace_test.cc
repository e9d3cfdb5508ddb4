// Jobs cut into groups of ranks, of which every time is known: what is read of their traces is what
// the walk of all ranks made, the groups are told apart, and those that lie are refused.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "imports/kineto/groups.h"
#include "imports/scenario_of.h"
#include "tests/support/jobs.h"
#include "tests/support/packed.h"
#include "tests/support/whole_trace.h"

namespace syncline::job::kineto {
namespace {

using test::contains;
using test::CutJob;
using test::CutTraces;
using test::seconds_of;

const CutJob kMegatron{.tensor = 2, .pipeline = 2, .data = 2, .micro_batches = 4};
const CutJob kHybrid{.data = 4, .shard = 2};
const CutJob kSharded{.data = 4, .shard = 4};
const CutJob kInterleaved{.pipeline = 2, .data = 2, .micro_batches = 4, .chunks = 2};

// Null: there is none of that name.
const RankGroup* group_named(const Observed& observed, const std::string& name) {
  const auto found = std::ranges::find(observed.groups, name, &RankGroup::name);
  return found == observed.groups.end() ? nullptr : &*found;
}

bool assumes(const Imported& imported, const std::string& part) {
  return test::any_contains(imported.assumed, part);
}

constexpr double kExact = 1e-9;

void expect_gradients(const Step& step, const test::CutTruth& truth, const CutJob& job) {
  ASSERT_EQ(step.gradients.size(), truth.waits.size());
  for (std::size_t i = 0; i < truth.waits.size(); ++i) {
    const Gradient& gradient = step.gradients[i];
    EXPECT_NEAR(gradient.wait, seconds_of(truth.waits[i]) / job.micro_batches, kExact) << i;
    const std::size_t which = i % (job.expert > 1 ? 3 : 2);
    const std::int64_t each[] = {CutTraces::kHigh, CutTraces::kHigh * CutTraces::kWide,
                                 CutTraces::kExpert};
    EXPECT_EQ(gradient.elements, each[which]);
    EXPECT_EQ(gradient.expert, which == 2);
    EXPECT_EQ(gradient.dtype, DType::kBf16);
  }
}

void expect_layout(const Observed& observed, const CutJob& job) {
  ASSERT_TRUE(observed.whole);
  const Parallel& parallel = observed.whole->parallel;
  EXPECT_EQ(
      std::tie(parallel.tensor, parallel.context, parallel.pipeline, parallel.virtual_stages,
               parallel.expert, observed.whole->micro_batches),
      std::tie(job.tensor, job.context, job.pipeline, job.chunks, job.expert, job.micro_batches));
  EXPECT_EQ(parallel.pipeline_inside, job.inside);
  EXPECT_EQ(observed.whole->shards, job.shard > 0       ? job.shard
                                    : job.shared_update ? job.data
                                    : job.all_reduce    ? 0
                                                        : job.data * job.context / job.instances);
}

// The job's layout, and every rank's last step, part by part.
void expect_truth(const Observed& observed, const CutTraces& traces, const CutJob& job) {
  expect_layout(observed, job);
  for (const Rank& rank : observed.ranks) {
    const test::CutTruth& truth = traces.truth(rank.rank);
    ASSERT_EQ(rank.steps.size(), static_cast<std::size_t>(job.steps));
    const Step& step = rank.steps.back();
    EXPECT_NEAR(step.forward, seconds_of(truth.forward), kExact) << rank.rank;
    EXPECT_NEAR(step.backward, seconds_of(truth.backward), kExact) << rank.rank;
    EXPECT_NEAR(step.exposed, seconds_of(truth.exposed), kExact) << rank.rank;
    EXPECT_NEAR(step.stages, seconds_of(truth.stages), kExact) << rank.rank;
    EXPECT_NEAR(step.update, seconds_of(truth.update), kExact) << rank.rank;
    EXPECT_NEAR(step.host_gap, 0, kExact) << rank.rank;
    EXPECT_NEAR(step.gpu - step.between, seconds_of(truth.end - truth.begin), kExact);
    EXPECT_EQ(step.broadcast, 0);
    EXPECT_EQ(step.copy_out, 0);
    EXPECT_NEAR(test::sum_of(step), step.gpu, kExact);
    expect_gradients(step, truth, job);
  }
}

class WholeTrace : public test::JobFiles {
 protected:
  // Of the first so many ranks; 0: of all.
  Observed read(const CutTraces& traces, const CutJob& job, int ranks = 0) {
    std::vector<std::string> files;
    for (int rank = 0; rank < (ranks > 0 ? ranks : job.world()); ++rank) {
      files.push_back(written(traces.file(rank), rank));
    }
    return read_job(files);
  }
  // Of all ranks, each of whose steps is as the walk had it.
  Observed read_truly(const CutJob& job, const CutTraces& traces) {
    const Observed observed = read(traces, job);
    expect_truth(observed, traces, job);
    return observed;
  }
};

// Groups of the first rank.
void expect_use(const Observed& observed, const CutTraces& traces,
                const std::map<std::string, Role>& roles) {
  const test::CutTruth& truth = traces.truth(0);
  EXPECT_EQ(roles.size(), truth.use.size());
  for (const auto& [name, role] : roles) {
    const RankGroup* group = group_named(observed, name + "0");
    ASSERT_NE(group, nullptr) << name;
    EXPECT_EQ(group->role, role) << name << " is " << role_text(group->role);
    EXPECT_EQ(group->ranks.front(), 0) << name;
    EXPECT_EQ(group->ranks.size(), static_cast<std::size_t>(group->size)) << name;
    EXPECT_EQ(group->calls, static_cast<std::size_t>(truth.use.at(name).first)) << name;
    EXPECT_GE(group->hidden, -kExact) << name;
  }
}

TEST_F(WholeTrace, MegatronWithTensorPipelineAndData) {
  const CutTraces traces(kMegatron);
  const Observed observed = read_truly(kMegatron, traces);
  EXPECT_EQ(observed.whole->parallel.activation, 2 * CutTraces::kActivation);
  EXPECT_FALSE(observed.whole->regather);
  EXPECT_FALSE(observed.whole->gathers_late);
  for (const Rank& rank : observed.ranks) EXPECT_EQ(rank.stage, rank.rank / 4);
  expect_use(observed, traces,
             {{"tp", Role::kTensor}, {"pp", Role::kPipeline}, {"dp", Role::kData}});
  // Four layers, forward and backward, four micro-batches, 20 us each, all of it waited for.
  const RankGroup* tensor = group_named(observed, "tp0");
  EXPECT_EQ(tensor->calls, 32u);
  EXPECT_EQ(tensor->bytes, 32 * 2 * CutTraces::kActivation);
  EXPECT_NEAR(tensor->exposed, 32 * 20e-6, kExact);
  EXPECT_NEAR(tensor->hidden, 0, kExact);
  EXPECT_NEAR(group_named(observed, "pp0")->exposed, seconds_of(traces.truth(0).stages), kExact);
  EXPECT_NEAR(group_named(observed, "dp0")->exposed, seconds_of(traces.truth(0).exposed), kExact);
}

TEST_F(WholeTrace, EachBucketCarriesTheGradientsThatArrivedForIt) {
  const CutTraces traces(kMegatron);
  const Observed observed = read(traces, kMegatron, 1);
  std::vector<std::vector<int>> buckets;
  for (const ObservedExchange& exchange : observed.ranks[0].steps[0].exchanges) {
    if (!exchange.gradients.empty()) buckets.push_back(exchange.gradients);
  }
  EXPECT_EQ(buckets, (std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
}

TEST_F(WholeTrace, ShardsInTwoLevels) {
  const CutTraces traces(kHybrid);
  const Observed observed = read_truly(kHybrid, traces);
  EXPECT_FALSE(observed.whole->parallel.whole_job());
  EXPECT_TRUE(observed.whole->regather);
  EXPECT_TRUE(observed.whole->gathers_late);
  EXPECT_EQ(observed.whole->parameters, DType::kBf16);
  expect_use(observed, traces, {{"shard", Role::kInner}, {"replica", Role::kOuter}});
  EXPECT_EQ(group_named(observed, "shard0")->ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(group_named(observed, "replica0")->ranks, (std::vector<int>{0, 2}));
}

// torch's DTensors tell what all ranks of a tensor group hold of a weight.
TEST_F(WholeTrace, WeightsAreCutByTheTensorGroup) {
  const CutJob job{.tensor = 2, .data = 2, .shard = 2, .whole_shapes = true};
  const CutTraces traces(job);
  const Observed observed = read_truly(job, traces);
  for (const ObservedExchange& exchange : observed.ranks[0].steps[0].exchanges) {
    EXPECT_EQ(exchange.gradients.size(), exchange.kind == "reduce_scatter" ? 2u : 0u);
  }
}

// A tensor group may cut some weights only, and biases too: the collectives' sizes tell which.
TEST_F(WholeTrace, SomeShapesAreCutByTheTensorGroup) {
  const CutJob job{.tensor = 2, .data = 2, .shard = 2, .whole_shapes = true};
  const std::string text = CutTraces(job).file(0);
  for (const char* bias : {"[[8192]]", "[[64, 64]]", "[[8192, 1]]"}) {
    const Observed observed = read_job({written(test::replaced(text, "[[4096]]", bias))});
    const Step& step = observed.ranks[0].steps[0];
    for (std::size_t i = 0; i < step.gradients.size(); ++i) {
      EXPECT_EQ(step.gradients[i].elements,
                i % 2 == 0 ? CutTraces::kHigh : CutTraces::kHigh * CutTraces::kWide)
          << bias;
    }
    EXPECT_FALSE(test::any_contains(observed.warnings, "in no collective")) << bias;
    const bool guessed = bias != std::string("[[8192, 1]]");
    EXPECT_EQ(test::any_contains(observed.warnings, "cut by the tensor group by their sizes"),
              guessed)
        << bias;
  }
}

TEST_F(WholeTrace, ShardsOverAllRanks) {
  const CutTraces traces(kSharded);
  expect_use(read_truly(kSharded, traces), traces, {{"shard", Role::kData}});
}

TEST_F(WholeTrace, ChunksOfAnInterleavedPipeline) {
  for (const int chunks : {2, 3}) {
    CutJob job = kInterleaved;
    job.chunks = chunks;
    EXPECT_EQ(read_truly(job, CutTraces(job)).whole->parallel.schedule, Schedule::kInterleaved);
  }
}

TEST_F(WholeTrace, ContextGroupsAreInsideTheDataGroup) {
  CutJob job = kMegatron;
  job.context = 2;
  const CutTraces traces(job);
  expect_use(read_truly(job, traces), traces,
             {{"tp", Role::kTensor},
              {"cp", Role::kContext},
              {"pp", Role::kPipeline},
              {"dp", Role::kData}});
}

// Which gradients are the experts' is told by what their own groups carry.
TEST_F(WholeTrace, ExpertsHaveGroupsOfTheirOwn) {
  const CutJob job{.pipeline = 2, .data = 4, .micro_batches = 2, .expert = 2};
  const CutTraces traces(job);
  const Observed observed = read_truly(job, traces);
  EXPECT_EQ(observed.whole->parallel.expert_tensor, 1);
  expect_use(observed, traces,
             {{"ep", Role::kExpert},
              {"edp", Role::kExpertData},
              {"pp", Role::kPipeline},
              {"dp", Role::kData}});
  for (const ObservedExchange& exchange : observed.ranks[0].steps[0].exchanges) {
    for (const int place : exchange.gradients) {
      const Role role = observed.groups[static_cast<std::size_t>(exchange.in)].role;
      EXPECT_EQ(place % 3 == 2, role == Role::kExpertData);
    }
  }
  const Imported imported = scenario_of(observed, {});
  EXPECT_EQ(imported.scenario["workload"]["tensors"][2].at("expert"), true);
  EXPECT_EQ(imported.scenario["workload"]["parallel"].at("expert"), 2);
  // Sums that no choice of shapes gives.
  expect_refusal(test::replaced(traces.file(0), "\"Input Dims\": [[4096, 1024]]",
                                "\"Input Dims\": [[4096, 5120]]"),
                 "which are the experts' is not known");
}

TEST_F(WholeTrace, ExpertGroupsDivideAStage) {
  const CutJob job{.pipeline = 2, .data = 4, .micro_batches = 2, .expert = 2};
  expect_refusal(
      test::replaced(CutTraces(job).file(0), "GROUP\", \"Process Group Ranks\": \"[0, 1]\"",
                     "GROUP\", \"Process Group Ranks\": \"[0, 3]\""),
      "experts over 2 ranks, 3 apart, which do not divide the 4 ranks");
}

TEST_F(WholeTrace, AStepOfYearsIsDamaged) {
  std::string text = CutTraces(kSharded).file(0);
  text.insert(text.find("\"dur\": ", text.find("void gemm")) + 7, "99999999");
  expect_refusal(text, "lasts longer than hours: its times are damaged");
}

TEST_F(WholeTrace, InstancesOfMegatronsOptimizer) {
  const CutJob job{.tensor = 2, .data = 4, .micro_batches = 2, .instances = 2};
  const CutTraces traces(job);
  const Observed observed = read_truly(job, traces);
  expect_use(observed, traces,
             {{"tp", Role::kTensor}, {"shard", Role::kInner}, {"replica", Role::kOuter}});
  const Json strategy = scenario_of(observed, {}).scenario.at("strategies").at(0);
  EXPECT_EQ(strategy.at("hierarchy").at("group_size"), 2);
}

TEST_F(WholeTrace, StagesThatAreNeighbours) {
  CutJob job = kMegatron;
  job.inside = true;
  const Observed observed = read_truly(job, CutTraces(job));
  EXPECT_EQ(observed.ranks[2].stage, 1);
  EXPECT_EQ(observed.ranks[4].stage, 0);
}

TEST_F(WholeTrace, AllForwardPassesMayComeFirst) {
  CutJob job = kMegatron;
  EXPECT_EQ(read(CutTraces(job), job, 1).whole->parallel.schedule, Schedule::k1F1B);
  job.gpipe = true;
  const Observed observed = read_truly(job, CutTraces(job));
  EXPECT_EQ(observed.whole->parallel.schedule, Schedule::kGpipe);
  EXPECT_EQ(scenario_of(observed, {}).scenario["workload"]["parallel"].at("schedule"), "gpipe");
}

// What the last rank of a group took is not known before its trace is read.
TEST_F(WholeTrace, GroupsReadInPartMeasureNoNetwork) {
  const CutTraces traces(kMegatron);
  const auto measures = [&](const std::vector<int>& ranks) {
    std::vector<std::string> files;
    for (const int rank : ranks) files.push_back(written(traces.file(rank), rank));
    const Imported imported = scenario_of(read_job(files), {});
    return imported.scenario.at("cluster").contains("calibration");
  };
  EXPECT_FALSE(measures({0, 5}));
  EXPECT_TRUE(measures({0, 2}));
}

// torch calls messages that go together "coalesced", and tells no size of them.
TEST_F(WholeTrace, MessagesThatGoTogether) {
  const CutTraces traces(kMegatron);
  std::string text = test::replaced(traces.file(0), "\"recv\"", "\"coalesced\"");
  text = test::replaced(text, "\"send\"", "\"coalesced\"");
  text = test::replaced(text, "\"In msg nelems\": 2097152, \"Out msg nelems\": 2097152",
                        "\"In msg nelems\": 0, \"Out msg nelems\": 0");
  const Observed observed = read_job({written(text)});
  expect_truth(observed, traces, kMegatron);
  EXPECT_EQ(group_named(observed, "pp0")->calls, 8u);
  EXPECT_TRUE(
      assumes(scenario_of(observed, {}), "what pipeline stages send each other is not given"));
}

// Losses are averaged between passes, and sums are in fp32, which neither makes other buckets.
TEST_F(WholeTrace, LossesAreNoGradients) {
  CutJob job = kInterleaved;
  job.losses = true;
  job.wide_sums = true;
  const CutTraces traces(job);
  const Observed observed = read(traces, job, 2);
  expect_truth(observed, traces, job);
  EXPECT_FALSE(observed.whole->each_pass);
  const Json strategy = scenario_of(observed, {}).scenario.at("strategies").at(0);
  EXPECT_EQ(strategy.at("fusion").at("cast"), "fp32");
  EXPECT_EQ(strategy.at("gather_groups").size(), 8u);
}

TEST_F(WholeTrace, ShardsInAPipelineAreReducedInEveryMicroBatch) {
  const CutJob job{.pipeline = 2, .data = 2, .micro_batches = 3, .shard = 2};
  const CutTraces traces(job);
  const Observed observed = read(traces, job);
  expect_layout(observed, job);
  for (const Rank& rank : observed.ranks) {
    const Step& step = rank.steps.back();
    const test::CutTruth& truth = traces.truth(rank.rank);
    expect_gradients(step, truth, job);
    EXPECT_NEAR(step.forward, seconds_of(truth.forward), kExact);
    EXPECT_NEAR(step.backward, seconds_of(truth.backward), kExact);
    // What comes late first, another stage's message or the shards, is not told.
    EXPECT_NEAR(step.exposed + step.stages, seconds_of(truth.exposed + truth.stages), kExact);
  }
  EXPECT_TRUE(observed.whole->each_pass);
  EXPECT_EQ(scenario_of(observed, {}).scenario["strategies"][0].at("each_micro_batch"), true);
}

TEST_F(WholeTrace, RandomLayouts) {
  test::Dice dice(11);
  for (int i = 0; i < 25; ++i) {
    CutJob job;
    job.tensor = 1 << dice.between(0, 2);
    job.pipeline = dice.between(1, 4);
    job.data = dice.between(2, 3);
    job.micro_batches = job.pipeline * dice.between(1, 3);
    job.layers = 2 * dice.between(1, 3);
    job.all_reduce = dice.chance(40);
    job.context = dice.chance(30) ? 2 : 1;
    job.inside = job.context == 1 && job.pipeline > 1 && dice.chance(30);
    job.losses = dice.chance(50);
    job.steps = 2;
    const bool cut = job.tensor * job.pipeline * job.context > 1;
    if (job.all_reduce && !cut) continue;  // plain
    (void)read_truly(job, CutTraces(job));
    ASSERT_FALSE(HasFailure()) << job.tensor << " x " << job.pipeline << " x " << job.data << ", "
                               << job.micro_batches << ", " << job.layers;
  }
}

// Ranks and kinds of collectives say what groups are for where no word does.
TEST_F(WholeTrace, GroupsWithoutDescriptions) {
  for (CutJob job : {kMegatron, kHybrid, kSharded}) {
    const Observed told = read(CutTraces(job), job, 1);
    job.described = false;
    const Observed guessed = read(CutTraces(job), job, 1);
    ASSERT_EQ(told.groups.size(), guessed.groups.size());
    for (std::size_t i = 0; i < told.groups.size(); ++i) {
      EXPECT_EQ(told.groups[i].role, guessed.groups[i].role) << told.groups[i].description;
    }
  }
}

// Sums after the backward pass (norms, overflows, last buckets, losses) are not of
// the layers: the group is no tensor group.
TEST_F(WholeTrace, LaterSumsAreNotOfTheLayers) {
  CutJob job = kSharded;
  job.described = false;
  job.norms = 2;
  const Observed observed = read_truly(job, CutTraces(job));
  EXPECT_EQ(group_named(observed, "shard0")->role, Role::kData);
  EXPECT_EQ(observed.whole->shards, 4);
}

// As DeepSpeed's stages 1 and 2 do it: buckets are all-reduced, each rank updates a shard.
TEST_F(WholeTrace, AllReducedGradientsOfASharedUpdate) {
  for (const bool behind : {false, true}) {
    const CutJob job{.data = 4,
                     .all_reduce = true,
                     .behind = behind,
                     .shared_update = true,
                     .norms = 1,
                     .described = false};
    const Observed observed = read_truly(job, CutTraces(job));
    EXPECT_EQ(group_named(observed, "dp0")->role, Role::kData);
    const Imported imported = scenario_of(observed, {});
    const Json strategy = imported.scenario.at("strategies").at(0);
    EXPECT_EQ(strategy.at("exchange"), "sharded_update");
    EXPECT_EQ(strategy.value("overlap", true), !behind);
    EXPECT_EQ(strategy.at("fusion").at("groups").size(), 2u);
    EXPECT_EQ(strategy.at("gather_groups").size(), 1u);
    (void)test::scenario_in(imported.scenario);
  }
}

// The gradient that sends a bucket is not in it, although it has arrived.
TEST_F(WholeTrace, ABucketThatTheNextGradientSends) {
  for (const bool all_reduce : {false, true}) {
    const CutJob job{.data = 2,
                     .all_reduce = all_reduce,
                     .next_sends = true,
                     .shared_update = all_reduce,
                     .described = false};
    const Observed observed = read_truly(job, CutTraces(job));
    std::vector<std::vector<int>> buckets;
    for (const ObservedExchange& exchange : observed.ranks[0].steps[0].exchanges) {
      if (!exchange.gradients.empty()) buckets.push_back(exchange.gradients);
    }
    EXPECT_EQ(buckets, (std::vector<std::vector<int>>{{0, 1, 2}, {3, 4, 5, 6, 7}}));
  }
}

// Megatron without overlap_grad_reduce, with and without its optimizer's shards.
TEST_F(WholeTrace, LaterSumsDoNotOverlapTheBackwardPass) {
  for (const bool all_reduce : {false, true}) {
    CutJob job = kMegatron;
    job.behind = true;
    job.all_reduce = all_reduce;
    const Observed observed = read(CutTraces(job), job);
    const Json strategy = scenario_of(observed, {}).scenario.at("strategies").at(0);
    EXPECT_EQ(strategy.value("overlap", true), false);
  }
}

TEST_F(WholeTrace, WithoutGroupsOnlyThoseOfAllRanksAreFound) {
  CutJob all = kSharded;
  all.named = false;
  const Observed observed = read_truly(all, CutTraces(all));
  ASSERT_EQ(observed.groups.size(), 1u);
  EXPECT_EQ(observed.groups[0].ranks, (std::vector<int>{0, 1, 2, 3}));
  CutJob some = kHybrid, cut = kMegatron;
  some.named = cut.named = false;
  expect_refusal(CutTraces(some).file(0),
                 "name no groups of ranks, and gradients are scattered over 2 of 4");
  expect_refusal(CutTraces(cut).file(0), "name no groups of ranks");
}

TEST_F(WholeTrace, TheLateRankIsNamed) {
  CutJob job = kMegatron;
  job.late_rank = 3;
  const Observed observed = read_truly(job, CutTraces(job));
  const RankGroup* late = group_named(observed, "tp2");  // of ranks 2 and 3
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(late->last_rank, 3);
  EXPECT_EQ(late->matched, 32u);
  EXPECT_EQ(late->last, late->matched);
  // A tenth of the kernels ahead of each: of 4 x (1.26 + 2.46) ms.
  EXPECT_GT(late->waited, 0.1 * 4 * 3.72e-3 - kExact);
  const RankGroup* other = group_named(observed, "tp0");
  EXPECT_EQ(other->last_rank, -1);
  EXPECT_EQ(other->waited, 0);
  ASSERT_FALSE(observed.warnings.empty());
  EXPECT_TRUE(contains(observed.warnings.front(), "rank 3 is late: it comes last to 32 of 32"))
      << observed.warnings.front();
  EXPECT_TRUE(contains(observed.warnings.front(), "'tensor'"));
}

TEST_F(WholeTrace, GroupsThatLieAreRefusedInOneSentence) {
  const std::string text = CutTraces(kMegatron).file(0);
  const std::string before = "Ranks\": \"[0, 1]";
  const std::tuple<std::string, const char*, const char*> lies[] = {
      {before, "Ranks\": \"[0, 1, 2]", "is given as 2 ranks, and lists 3"},
      {before, "Ranks\": \"[0, 9]", "lists ranks beyond the job's: 0, 9"},
      {before, "Ranks\": \"[0, -4]", "lists ranks beyond the job's"},
      {before, "Ranks\": \"[1, 1]", "lists a rank twice"},
      {before, "Ranks\": \"[1, 2]", "carries collectives of rank 0, which is none of them"},
      {before, "Ranks\": \"[0, 4]", "groups overlap: "},
      {before, "Ranks\": \"[0, 3]", "stand in another order than tensor, context, data"},
      {"\"world_size\": 8", "\"world_size\": 6", "which do not divide the job's 6"},
      {"\"world_size\": 8", "\"world_size\": 16", "gradients are summed over 2 ranks"},
      {"\"world_size\"", "\"worlds\"", "whose number of ranks is not given"}};
  for (const auto& [from, to, part] : lies) expect_refusal(test::replaced(text, from, to), part);
  std::string twice = text;
  twice.replace(twice.find(before), before.size(), "Ranks\": \"[0, 2]");
  expect_refusal(twice, "is given twice");
  expect_refusal(test::replaced(CutTraces(kHybrid).file(0),
                                "Out msg nelems\": " + std::to_string(CutTraces::kLayer / 2),
                                "Out msg nelems\": 17"),
                 "is given as 2 ranks, and its reduce_scatter takes in");
}

// libkineto writes nothing behind the colon of a description that is none.
TEST_F(WholeTrace, DescriptionsMayBeMissingAltogether) {
  for (const CutJob& job : {kMegatron, kHybrid}) {
    CutJob bare = job;
    bare.described = false;
    const CutTraces traces(bare);
    const std::string text =
        test::replaced(traces.file(0), "Description\": \"undefined\",", "Description\": ,");
    const Observed observed = read_job({written(text)});
    expect_truth(observed, traces, bare);
    EXPECT_FALSE(test::warns(observed, "cannot be read"));
  }
}

// The groups' list at the top of a file tells ranks that events do not, as a list or as text.
TEST_F(WholeTrace, TheListOfGroupsTellsTheirRanks) {
  const CutTraces traces(kMegatron);
  const std::string text = test::replaced(traces.file(0), "\"Process Group Ranks\"", "\"nobody\"");
  for (const std::string ranks : {"[0, 2]", "\"[0, 2]\""}) {
    const std::string listed =
        test::replaced(text, "\"world_size\": 8",
                       "\"world_size\": 8, \"pg_config\": [{\"pg_name\": \"dp0\", \"pg_desc\": "
                       "\"DATA_PARALLEL_GROUP_WITH_CP\", \"pg_size\": 2, \"ranks\": " +
                           ranks +
                           "}, {\"pg_name\": \"all\", \"pg_desc\": \"default_pg\", \"pg_size\": 8, "
                           "\"ranks\": []}]");
    const Observed observed = read_job({written(listed)});
    EXPECT_EQ(group_named(observed, "dp0")->ranks, (std::vector<int>{0, 2}));
    EXPECT_EQ(group_named(observed, "all")->ranks.size(), 8u);
  }
}

// A group whose ranks nobody tells is told by its description and size.
TEST_F(WholeTrace, GroupsOfUnknownRanks) {
  const CutTraces traces(kMegatron);
  const std::string text = test::replaced(traces.file(0), "\"Process Group Ranks\"", "\"nobody\"");
  const Observed observed = read_job({written(text)});
  expect_truth(observed, traces, kMegatron);
  EXPECT_TRUE(group_named(observed, "tp0")->ranks.empty());
  expect_refusal(test::replaced(text, "\"Group size\"", "\"so many\""),
                 "tells neither its ranks nor how many they are");
}

// torch writes the first thirty ranks of a group.
TEST_F(WholeTrace, LongListsOfRanksGoOn) {
  const CutJob job{.tensor = 2, .data = 32, .layers = 2, .steps = 1};
  const std::string text = CutTraces(job).file(1);
  std::string all;
  std::string first;
  for (int i = 0; i < job.data; ++i) {
    const std::string rank = std::to_string(2 * i + 1);
    all += (i > 0 ? ", " : "") + rank;
    if (i < 30) first += rank + ", ";
  }
  const Observed observed = read_job({written(test::replaced(text, all, first + "..."))});
  const RankGroup* data = group_named(observed, "dp1");
  ASSERT_EQ(data->ranks.size(), 32u);
  EXPECT_EQ(data->ranks.back(), 63);
  // At uneven steps nobody knows how it goes on.
  const Observed odd = read_job({written(test::replaced(text, all, "1, 3, 7, ..."))});
  EXPECT_TRUE(group_named(odd, "dp1")->ranks.empty());
}

TEST_F(WholeTrace, RanksOfTwoJobsAreNotJoined) {
  CutJob other = kMegatron;
  other.micro_batches = 2;
  EXPECT_THROW((void)read_job({written(CutTraces(kMegatron).file(0), 0),
                               written(CutTraces(other).file(1), 1)}),
               InputError);
}

TEST_F(WholeTrace, DamagedBytesNeverDoMoreThanARefusal) {
  CutJob job = kMegatron;
  job.steps = 1;
  job.micro_batches = 2;
  const std::string text = CutTraces(job).file(4);
  test::Dice dice(5);
  std::size_t results = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string damaged =
        test::damaged(text, dice, 6, {'"', '[', ']', ',', ':', '9', '-', '0', '1', ' '});
    try {
      const Observed observed = read_job({written(damaged)});
      ++results;
      if (!observed.whole) continue;
      for (const Step& step : observed.ranks.at(0).steps) {
        EXPECT_EQ(step.broadcast, 0);
        EXPECT_EQ(step.copy_out, 0);
        EXPECT_NEAR(test::sum_of(step), step.gpu, 1e-9 + 1e-9 * step.gpu);
      }
      (void)scenario_of(observed, {});
    } catch (const InputError&) {
    }
  }
  EXPECT_GT(results, 30u);
}

TEST(RoleNamed, WordsOfMegatronAndOfTorchsMeshes) {
  const std::pair<Role, std::vector<const char*>> rows[] = {
      {Role::kTensor, {"TENSOR_MODEL_PARALLEL_GROUP", "mesh_tp", "mesh_infer_tp", "tp"}},
      {Role::kPipeline, {"PIPELINE_MODEL_PARALLEL_GROUP", "mesh_pp", "mesh_infer_pp"}},
      {Role::kContext,
       {"CONTEXT_PARALLEL_GROUP", "HIERARCHICAL_CONTEXT_PARALLEL_GROUPS", "mesh_cp"}},
      {Role::kExpert, {"EXPERT_MODEL_PARALLEL_GROUP", "mesh_ep"}},
      {Role::kExpertTensor, {"EXPERT_TENSOR_PARALLEL_GROUP"}},
      {Role::kExpertData,
       {"EXPERT_DATA_PARALLEL_GROUP", "INTRA_PARTIAL_EXPERT_DATA_PARALLEL_GROUP",
        "mesh_dp_shard_mod_ep"}},
      {Role::kOuter,
       {"INTER_PARTIAL_EXPERT_DATA_PARALLEL_GROUP", "INTER_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP",
        "mesh_dp_replicate"}},
      {Role::kOther,
       {"EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP", "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP",
        "TENSOR_AND_CONTEXT_PARALLEL_GROUP", "INTRA_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP",
        "MODEL_PARALLEL_GROUP", "EMBEDDING_GROUP", "tp_ep_pp", "tp_dp_cp"}},
      {Role::kData, {"DATA_PARALLEL_GROUP", "DATA_PARALLEL_GROUP_WITH_CP", "dp_cp"}},
      {Role::kInner,
       {"INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP", "mesh_dp_shard", "mesh_dp_shard_cp",
        "mesh_fsdp"}},
      {Role::kUnknown, {"mesh_dim_0", "default_pg", "undefined", ""}},
  };
  for (const auto& [role, words] : rows) {
    for (const char* word : words) {
      EXPECT_EQ(role_named(word), role) << word << " is " << role_text(role_named(word));
    }
  }
}

// Those that the documentation shows: written again with SYNCLINE_UPDATE_GOLDEN.
TEST_F(WholeTrace, TheSampleIsOfThisWalk) {
  CutJob job = kMegatron;
  job.steps = 1;
  job.late_rank = 3;
  const CutTraces traces(job);
  std::vector<std::string> files;
  for (int rank = 0; rank < job.world(); ++rank) {
    files.push_back(test::kineto_sample("megatron_2x2x2_rank" + std::to_string(rank) + ".json.gz"));
    const bool anew = std::getenv("SYNCLINE_UPDATE_GOLDEN") != nullptr;
    if (anew) test::write_packed(files.back(), traces.file(rank));
  }
  expect_truth(read_job(files), traces, job);
}

// The whole way: traces, a scenario, its first row beside the step that was measured.
TEST_F(WholeTrace, IsReplayed) {
  for (const CutJob& job : {kMegatron, kInterleaved, kHybrid, kSharded}) {
    const CutTraces traces(job);
    for (const int ranks : {job.world(), 1}) {
      const Observed observed = read(traces, job, ranks);
      const Imported imported = scenario_of(observed, {});
      const measure::Report report = test::evaluated(imported.scenario);
      const Seconds measured = typical_step(observed.ranks.front()).gpu;
      EXPECT_EQ(report.rows.front().strategy, kAsItRan);
      EXPECT_NEAR(report.rows.front().metrics.step_time / measured, 1, 0.02)
          << imported.scenario.at("strategies")[0].dump() << " of " << ranks << " ranks";
    }
  }
}

TEST_F(WholeTrace, TheScenarioHasTheLayoutAndAMicroBatch) {
  const CutTraces traces(kInterleaved);
  const Imported imported = scenario_of(read(traces, kInterleaved, 1), {});
  const Json& workload = imported.scenario.at("workload");
  EXPECT_EQ(workload.at("parallel").at("pipeline"), 2);
  EXPECT_EQ(workload.at("parallel").at("virtual_stages"), 2);
  EXPECT_EQ(workload.at("parallel").at("activation_bytes"), 2 * CutTraces::kActivation);
  EXPECT_EQ(workload.at("micro_batches"), 4);
  ASSERT_EQ(workload.at("tensors").size(), 4u * 8u);
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(workload["tensors"][i].at("part"), 3 - static_cast<int>(i / 8));
  }
  // Two chunks of four layers, on each of two stages: 4 x (300 + 310 + 320 + 330) us.
  EXPECT_NEAR(workload.at("forward_ms").get<double>(), 4 * 1.26, 1e-6);
  EXPECT_TRUE(assumes(imported, "no trace of a rank of pipeline stage 1"));
  const Json& strategy = imported.scenario.at("strategies").at(0);
  EXPECT_EQ(strategy.at("exchange"), "sharded");
  EXPECT_EQ(strategy.at("fusion").at("groups").size(), 8u);
  EXPECT_EQ(test::scenario_in(imported.scenario).workload.parallel.schedule,
            Schedule::kInterleaved);
}

// Each stage takes what its own trace tells.
TEST_F(WholeTrace, StagesHaveTheirOwnTimes) {
  CutJob job = kMegatron;
  job.tensor = 1;
  job.late_rank = 2;  // of the second stage
  const CutTraces traces(job);
  const Imported imported =
      scenario_of(read_job({written(traces.file(0), 0), written(traces.file(2), 2)}), {});
  const Json& tensors = imported.scenario.at("workload").at("tensors");
  ASSERT_EQ(tensors.size(), 16u);
  for (std::size_t i = 0; i < 8; ++i) {
    const double late = tensors[i].at("backward_us");
    const double own = tensors[i + 8].at("backward_us");
    EXPECT_NEAR(late / own, 1.1, 1e-6);
  }
  EXPECT_FALSE(assumes(imported, "no trace of a rank of pipeline stage"));
}

}  // namespace
}  // namespace syncline::job::kineto
