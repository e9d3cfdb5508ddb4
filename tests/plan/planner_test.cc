// A strategy as operations: order, streams, dependencies, and what travels.
#include "core/base/error.h"
#include "core/communication.h"
#include "core/plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <set>

#include "tests/plan/planned.h"

namespace syncline::plan {
namespace {

using test::cluster_of;
using test::shipped_workload;
using test::sparse_tensor_of;
using test::tensor_of;

TEST(Planner, AStepIsForwardBackwardAllReduceUpdate) {
  const Plan plan = make_plan(five(), cluster_of(4, 1), {});
  EXPECT_EQ(plan.ranks, 4);
  EXPECT_EQ(plan.streams, 2);
  EXPECT_EQ(plan.steps, 1);
  ASSERT_EQ(plan.buckets.size(), 5u);
  ASSERT_EQ(plan.ops.size(), 12u);
  EXPECT_EQ(compute_of(plan.ops.front()).phase, Phase::kForward);
  EXPECT_EQ(compute_of(plan.ops.front()).seconds, 0.010);
  for (std::size_t i = 0; i < 5; ++i) {
    const Op& backward = plan.ops[1 + 2 * i];
    const Op& exchange = plan.ops[2 + 2 * i];
    EXPECT_EQ(compute_of(backward).first, static_cast<int>(i));
    EXPECT_EQ(compute_of(backward).last, static_cast<int>(i));
    EXPECT_EQ(compute_of(backward).seconds, 0.001);
    EXPECT_EQ(collective_in(exchange).bytes(), 400);
    EXPECT_EQ(exchange.after, (std::vector<OpId>{static_cast<OpId>(1 + 2 * i)}));
  }
  EXPECT_EQ(compute_of(plan.ops.back()).phase, Phase::kUpdate);
  EXPECT_EQ(plan.ops.back().after, (std::vector<OpId>{2, 4, 6, 8, 10}));
}

// The second and the last of five in backward order are frozen: nothing goes backward there.
Workload partly_frozen() {
  Workload workload = five();
  workload.tensors[1].frozen = workload.tensors[4].frozen = true;
  workload.tensors[4].backward = 0;
  return workload;
}

// Frozen parameters are computed with, and no rule of fusion sums them: the buckets and the time
// are those of the gradients alone.
TEST(Planner, FrozenParametersAreNotSummed) {
  const Workload frozen = partly_frozen();
  Workload alone = frozen;
  alone.tensors[2].backward += alone.tensors[1].backward;
  std::erase_if(alone.tensors, [](const Tensor& tensor) { return tensor.frozen; });
  const Cluster cluster = cluster_of(2, 2);
  for (const Fusion::Rule rule : {Fusion::Rule::kNone, Fusion::Rule::kLayer, Fusion::Rule::kSize,
                                  Fusion::Rule::kOne, Fusion::Rule::kMgWfbp}) {
    for (const auto exchange : {Strategy::Exchange::kAllReduce, Strategy::Exchange::kSharded}) {
      Strategy strategy;
      strategy.fusion.rule = rule;
      strategy.fusion.size = 800;
      strategy.exchange = exchange;
      const Plan with = make_plan(frozen, cluster, strategy);
      const Plan without = make_plan(alone, cluster, strategy);
      ASSERT_EQ(with.ops.size(), without.ops.size());
      for (std::size_t i = 0; i < with.ops.size(); ++i) {
        EXPECT_DOUBLE_EQ(seconds_of(with.ops[i].work), seconds_of(without.ops[i].work));
        EXPECT_EQ(with.ops[i].after, without.ops[i].after);
      }
      for (std::size_t b = 0; b < with.buckets.size(); ++b) {
        EXPECT_EQ(with.buckets[b].bytes, without.buckets[b].bytes);
      }
    }
  }
}

// Shards of frozen parameters are gathered for each pass that reaches them, and a group of nothing
// else is only gathered. The last group stays for the backward pass.
TEST(Planner, FrozenShardsAreGathered) {
  const auto moved = [](const Workload& workload) {
    Strategy strategy;
    strategy.exchange = Strategy::Exchange::kSharded;
    strategy.regather = strategy.cross_step = true;
    strategy.fusion.rule = Fusion::Rule::kGroups;
    strategy.fusion.groups = {{0}, {1}, {2, 3}, {4}};
    const Plan plan = make_plan(workload, cluster_of(2, 2), strategy);
    std::map<std::pair<collective::CollectiveKind, std::string>, Bytes> bytes;
    for (const Op* op : ops_of<collective::Collective>(plan)) {
      const auto& collective = collective_in(*op);
      const auto first = index(plan.buckets[index(collective.bucket)].tensors.front());
      bytes[{collective.kind, workload.tensors[first].name}] += collective.bytes();
    }
    return bytes;
  };
  using enum collective::CollectiveKind;
  const auto all = moved(five());
  auto frozen = moved(partly_frozen());
  EXPECT_EQ(all.size(), 8u);
  EXPECT_EQ(frozen.size(), 6u);
  for (const char* none : {"layer1.weight", "layer4.weight"}) {
    EXPECT_FALSE((frozen.contains({kReduceScatter, none}))) << none;
    frozen[{kReduceScatter, none}] = all.at({kReduceScatter, none});
  }
  EXPECT_EQ(frozen, all);
}

// 500 parameters of 4 bytes on 4 ranks of a node with an update of 1 us a parameter and a link of
// 1 MB/s: 4 x 500 us for all, 2 ms down and 2 ms up for each rank, a shard a quarter of that.
TEST(Planner, TheHostUpdates) {
  Cluster cluster = cluster_of(1, 4);
  cluster.device.host_update = 1e-6;
  cluster.device.host_link = 1e6;
  Strategy strategy;
  const auto update_of = [&](const Workload& workload) {
    const Plan plan = make_plan(workload, cluster, strategy);
    Seconds sum = 0;
    for (const Op* op : ops_of(plan, Phase::kUpdate)) sum += compute_of(*op).seconds;
    EXPECT_EQ(plan.updates_on_host, states_on_host(strategy));
    return sum;
  };
  EXPECT_DOUBLE_EQ(update_of(five()), 0.002);
  strategy.offload = Strategy::Offload::kOptimizer;
  EXPECT_DOUBLE_EQ(update_of(five()), 0.002 + 0.004);
  strategy.exchange = Strategy::Exchange::kSharded;
  EXPECT_DOUBLE_EQ(update_of(five()), 0.006 / 4);
  // Every micro-batch takes its gradients down; parameters that are not kept come up twice in each.
  Workload workload = five();
  workload.micro_batches = 3;
  strategy.each_micro_batch = true;
  EXPECT_DOUBLE_EQ(update_of(workload), (0.002 + 3 * 0.002 + 0.002) / 4);
  strategy.offload = Strategy::Offload::kAll;
  strategy.traits.sharded = FrameworkTraits::Sharded::kParameters;
  strategy.regather = true;
  EXPECT_DOUBLE_EQ(update_of(workload), (0.002 + 3 * 0.002 + 6 * 0.002) / 4);
  // Without the states the device updates, in 2 ms for all, and sends its shard down.
  strategy.offload = Strategy::Offload::kParameters;
  EXPECT_DOUBLE_EQ(update_of(workload), (0.002 + 6 * 0.002 + 0.002) / 4);
}

TEST(Planner, ABucketWaitsForItsLastGradient) {
  Strategy strategy = strategy_with(Fusion::Rule::kCount);
  strategy.fusion.count = 3;
  const Plan plan = make_plan(five(), cluster_of(2, 1), strategy);
  ASSERT_EQ(plan.buckets.size(), 2u);
  EXPECT_EQ(plan.buckets[0].tensors, (std::vector<int>{0, 1, 2}));
  EXPECT_DOUBLE_EQ(compute_of(plan.ops[1]).seconds, 0.003);
  EXPECT_EQ(compute_of(plan.ops[1]).last, 2);
  EXPECT_EQ(collective_in(plan.ops[2]).bytes(), 1200);
}

// Layers whose tensors lie apart: ordered by when they are complete, not by when they begin.
TEST(Planner, BucketsAreReducedInOrderOfCompletion) {
  Workload workload = five();
  workload.tensors[0].name = workload.tensors[4].name = "far.x";
  const Plan plan = make_plan(workload, cluster_of(2, 1), strategy_with(Fusion::Rule::kLayer));
  ASSERT_EQ(plan.buckets.size(), 4u);
  EXPECT_EQ(plan.buckets.back().tensors, (std::vector<int>{0, 4}));
  EXPECT_DOUBLE_EQ(seconds_of_phase(plan, Phase::kBackward), 0.005);
}

TEST(Planner, BucketsGoRoundTheStreams) {
  Strategy strategy;
  strategy.streams = 3;
  const Plan plan = make_plan(five(), cluster_of(4, 1), strategy);
  EXPECT_EQ(plan.streams, 4);
  EXPECT_EQ(each(ops_of<collective::Collective>(plan), &Op::stream),
            (std::vector<StreamId>{1, 2, 3, 1, 2}));
}

TEST(Planner, WithoutOverlapEverythingIsOnOneStream) {
  Strategy strategy = dgc_strategy(10);
  strategy.overlap = false;
  const Plan plan = make_plan(five(), cluster_of(4, 1), strategy);
  EXPECT_EQ(plan.streams, 1);
  for (const auto& op : plan.ops) EXPECT_EQ(op.stream, kComputeStream);
}

TEST(Planner, OneRankCommunicatesNothing) {
  for (Strategy strategy : {Strategy{}, dgc_strategy(10), local_strategy(4)}) {
    const Plan plan = make_plan(five(), cluster_of(1, 1), strategy);
    EXPECT_EQ(ops_of<Compute>(plan).size(), plan.ops.size());
  }
}

// A caller of the library that no reader of files has judged gets a sentence.
TEST(Planner, NamesThatNoTableHasAreRefused) {
  const auto refusal = [](const std::function<void(Strategy&)>& change) -> std::string {
    Strategy strategy;
    strategy.name = "mine";
    change(strategy);
    try {
      make_plan(five(), cluster_of(4, 8), strategy);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal([](Strategy&) {}), "");
  EXPECT_EQ(refusal([](Strategy& own) { own.algorithm = "rings"; }),
            "strategy 'mine': no algorithm is called 'rings'");
  EXPECT_EQ(refusal([](Strategy& own) { own.hierarchy.across = "x"; }),
            "strategy 'mine': no algorithm is called 'x'");
  EXPECT_EQ(refusal([](Strategy& own) { own.compression.codec = "zip"; }),
            "strategy 'mine': no codec is called 'zip'");
  for (const auto form : {Hierarchy::Form::kLeaders, Hierarchy::Form::kSharded}) {
    EXPECT_EQ(refusal([&](Strategy& own) { own.hierarchy.form = form; }),
              "strategy 'mine': hierarchy.group_size is 0: give the ranks of a group");
  }
}

TEST(Planner, LeadersReduceAllReduceAndBroadcast) {
  Strategy strategy = in_blocks(Hierarchy::Form::kLeaders, 8);
  strategy.fusion.rule = Fusion::Rule::kOne;
  strategy.hierarchy.inside = "to_one";
  const Plan plan = make_plan(five(), cluster_of(4, 8), strategy);
  auto phases = collectives_of(plan, 0);
  using enum collective::CollectiveKind;
  ASSERT_EQ(each(phases, &collective::Collective::kind),
            (std::vector{kReduce, kAllReduce, kBroadcast}));
  EXPECT_EQ(phases[0].groups, (collective::Groups{0, 4, 8, 8, 1}));
  EXPECT_EQ(phases[1].groups, (collective::Groups{0, 1, 0, 4, 8}));
  EXPECT_EQ(phases[2].groups, phases[0].groups);
  EXPECT_EQ(phases[0].algorithm->name, "to_one");
  EXPECT_EQ(phases[1].algorithm->name, "ring");
  for (const auto& phase : phases) EXPECT_EQ(phase.bytes(), 2000);

  strategy.hierarchy.first_all_reduce = true;
  phases = collectives_of(make_plan(five(), cluster_of(4, 8), strategy), 0);
  EXPECT_EQ(phases[0].kind, kAllReduce);
}

TEST(Planner, ShardsReduceScatterAllReduceAndGather) {
  Strategy strategy = in_blocks(Hierarchy::Form::kSharded, 8);
  strategy.fusion.rule = Fusion::Rule::kOne;
  const Plan plan = make_plan(five(), cluster_of(4, 8), strategy);
  const auto phases = collectives_of(plan, 0);
  using enum collective::CollectiveKind;
  ASSERT_EQ(each(phases, &collective::Collective::kind),
            (std::vector{kReduceScatter, kAllReduce, kAllGather}));
  EXPECT_EQ(phases[0].groups, (collective::Groups{0, 4, 8, 8, 1}));
  EXPECT_EQ(phases[1].groups, (collective::Groups{0, 8, 1, 4, 8}));
  // 500 elements do not divide by 8: 63 each, none lost.
  EXPECT_EQ(each(phases, &collective::Collective::elements),
            (std::vector<std::int64_t>{504, 63, 504}));
}

TEST(Planner, GroupsOfOneHaveNothingToDo) {
  for (const auto form : {Hierarchy::Form::kLeaders, Hierarchy::Form::kSharded}) {
    for (const int size : {1, 4}) {
      const Plan plan = make_plan(five(), cluster_of(4, 1), in_blocks(form, size));
      for (const auto& phase : collectives_of(plan, 0)) {
        EXPECT_GT(phase.groups.size, 1);
      }
    }
  }
}

TEST(Planner, PaddingTravels) {
  Strategy strategy = strategy_with(Fusion::Rule::kOne);
  strategy.fusion.align = 256;
  const Plan plan = make_plan(five(), cluster_of(2, 1), strategy);
  EXPECT_EQ(plan.buckets[0].bytes, 2000);
  EXPECT_EQ(collectives_of(plan, 0)[0].bytes(), 5 * 512);
}

TEST(Planner, UpdatesBucketByBucket) {
  Strategy strategy = strategy_with(Fusion::Rule::kCount);
  strategy.fusion.count = 2;
  strategy.update = Strategy::Update::kPerBucket;
  const Plan plan = make_plan(five(), cluster_of(2, 1), strategy);
  int updates = 0;
  for (const auto* op : ops_of(plan, Phase::kUpdate)) {
    ASSERT_EQ(op->after.size(), 1u);
    EXPECT_EQ(collective_at(plan, op->after[0]).bucket, updates++);
  }
  EXPECT_EQ(updates, 3);
  EXPECT_DOUBLE_EQ(seconds_of_phase(plan, Phase::kUpdate), 0.002);
}

// What the device adds as soon as there are two ranks: a wait of the host before each step's
// forward pass, and longer computation.
TEST(Planner, DataParallelRunningCostsEachRank) {
  for (const Strategy& strategy : {strategy_with(Fusion::Rule::kOne), local_strategy(2)}) {
    Cluster cluster = cluster_of(2, 1);
    const Plan before = make_plan(five(), cluster, strategy);
    cluster.device.data_parallel_overhead = 0.003;
    cluster.device.data_parallel_slowdown = 0.5;
    const Plan after = make_plan(five(), cluster, strategy);
    const auto waits = ops_of(after, Busy::Reason::kHost);
    ASSERT_EQ(waits.size(), static_cast<std::size_t>(after.steps));
    for (const auto* wait : waits) {
      EXPECT_EQ(std::get<Busy>(wait->work).seconds, 0.003);
      EXPECT_EQ(wait->stream, kComputeStream);
      EXPECT_EQ(compute_of(*(wait + 1)).phase, Phase::kForward);
    }
    const auto work = ops_of<Compute>(before);
    const auto longer = ops_of<Compute>(after);
    ASSERT_EQ(work.size(), longer.size());
    for (std::size_t i = 0; i < work.size(); ++i) {
      EXPECT_DOUBLE_EQ(compute_of(*longer[i]).seconds, 1.5 * compute_of(*work[i]).seconds);
    }
    // A rank alone pays nothing.
    cluster = cluster_of(1, 1);
    const std::size_t alone = make_plan(five(), cluster, strategy).ops.size();
    cluster.device.data_parallel_overhead = 0.003;
    cluster.device.data_parallel_slowdown = 0.5;
    const Plan plan = make_plan(five(), cluster, strategy);
    EXPECT_EQ(plan.ops.size(), alone);
    EXPECT_EQ(compute_of(plan.ops.front()).seconds, five().forward);
  }
}

// 161 parameters and 106 statistics, each averaged by itself.
TEST(Planner, LocalSgdAveragesEveryParameterOfResNet50) {
  const Workload workload = shipped_workload("resnet50_v100.json");
  const Plan plan = make_plan(workload, cluster_of(4, 8), local_strategy(7));
  EXPECT_EQ(plan.steps, 7);
  EXPECT_EQ(plan.buckets.size(), 267u);
  EXPECT_EQ(ops_of<collective::Collective>(plan).size(), 267u);
  EXPECT_EQ(plan.buckets.front().tensors, (std::vector<int>{160}));  // first layer first
  EXPECT_EQ(plan.buckets.back().tensors, (std::vector<int>{266}));
  EXPECT_NEAR(seconds_of_phase(plan, Phase::kBackward), 7 * backward_time(workload), 1e-9);
}

TEST(Planner, LocalSgdSyncsTheHostAroundTheAveraging) {
  Cluster cluster = cluster_of(4, 1);
  cluster.device.host_sync = 2e-5;
  cluster.device.memory = 1e9;
  const Plan plan = make_plan(five(), cluster, local_strategy(2));
  EXPECT_EQ(ops_of(plan, Busy::Reason::kHost).size(), 2u);
  const Op& average = plan.ops.back();
  EXPECT_EQ(compute_of(average).phase, Phase::kAverage);
  // Two reads and a write of 5 * 100 + 2 * 10 floats.
  EXPECT_DOUBLE_EQ(compute_of(average).seconds, 3 * 520 * 4 / 1e9);
}

TEST(Planner, LocalSgdPeriodAtAPoint) {
  const Strategy strategy = local_strategy(8, 30);
  const auto steps = [&](const TrainingPoint& point) {
    return make_plan(five(), cluster_of(2, 1), strategy, point).steps;
  };
  EXPECT_EQ(steps({}), 8);
  EXPECT_EQ(steps({29, 0}), 1);  // the 30th step, counted from 0
  EXPECT_EQ(steps({30, 0}), 8);
  EXPECT_EQ(steps({0, 5}), 5);
}

TEST(TrainingPhases, OneStepIsOnePhase) {
  const auto phases = training_phases(dgc_strategy(10), {});
  ASSERT_EQ(phases.size(), 1u);
  EXPECT_GT(phases[0].point.step, std::int64_t{1} << 50);
  Training training;
  training.step = 17;
  EXPECT_EQ(training_phases(dgc_strategy(10), training)[0].point.step, 17);
}

TEST(TrainingPhases, FollowTheRampOfDgc) {
  Strategy strategy = dgc_strategy(10);
  strategy.compression.sparsity = {0.984375, 0.996, 0.999};
  strategy.compression.rampup_begin_step = 2504;
  strategy.compression.rampup_step = 3756;
  Training training;
  training.from = 1000;
  training.steps = 9000;
  EXPECT_EQ(
      each(training_phases(strategy, training),
           [](const TrainingPhase& phase) { return std::pair(phase.point.step, phase.steps); }),
      (std::vector<std::pair<std::int64_t, std::int64_t>>{
          {1000, 1504}, {2504, 1252}, {3756, 1252}, {5008, 4992}}));
  training.from = 4000;
  training.steps = 10;
  EXPECT_EQ(training_phases(strategy, training).size(), 1u);
  EXPECT_EQ(training_phases({}, training).size(), 1u);
}

TEST(TrainingPhases, PowerSgdStartsLate) {
  Strategy strategy = compressing("powersgd");
  strategy.compression.rampup_begin_step = 30;
  Training training;
  training.steps = 100;
  EXPECT_EQ(each(training_phases(strategy, training), &TrainingPhase::steps),
            (std::vector<std::int64_t>{30, 70}));
}

TEST(TrainingPhases, FollowThePeriodsOfLocalSgd) {
  Training training;
  training.steps = 100;
  const auto phases = training_phases(local_strategy(8, 30), training);
  ASSERT_EQ(phases.size(), 3u);
  // Behind the last averaging the run is over before the next one.
  EXPECT_EQ(each(phases, [](const auto& phase) { return phase.point.period; }),
            (std::vector<std::int64_t>{1, 8, 6}));
  EXPECT_EQ(each(phases, &TrainingPhase::steps), (std::vector<std::int64_t>{30, 64, 6}));
  const Plan left = make_plan(five(), cluster_of(4, 1), local_strategy(8, 30), phases[2].point);
  EXPECT_EQ(left.steps, 6);
  EXPECT_TRUE(left.buckets.empty());
  TrainingPoint many = phases[2].point;
  many.period = 1000;  // alike: some stand for all
  EXPECT_EQ(make_plan(five(), cluster_of(4, 1), local_strategy(8, 30), many).steps, kPlainSteps);
}

// Whatever the knobs: operations wait for earlier ones alone, every gradient is in one bucket, all
// computation is there, and each bucket is exchanged on one stream.
TEST(EveryPlan, IsInOrderAndComplete) {
  std::mt19937 random(11);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const char* algorithms[] = {"ring", "to_one", "double_binary_tree", "halving_doubling"};
  for (int trial = 0; trial < 500; ++trial) {
    Workload workload;
    const int count = 1 + pick(12);
    for (int i = 0; i < count; ++i) {
      const std::string name = std::to_string(pick(4)) + "." + std::to_string(i);
      const DType dtype = pick(3) == 0 ? DType::kFp16 : DType::kFp32;
      workload.tensors.push_back(pick(5) == 0 ? sparse_tensor_of(name, {10, 4}, pick(5))
                                              : tensor_of(name, {1 + pick(60)}, dtype));
      workload.tensors.back().backward = 0.001 * pick(3);
    }
    workload.buffers = {tensor_of("mean", {3})};
    Strategy strategy;
    strategy.streams = 1 + pick(3);
    strategy.overlap = pick(4) != 0;
    strategy.algorithm = algorithms[pick(4)];
    strategy.fusion.rule = static_cast<Fusion::Rule>(pick(6));
    strategy.fusion.size = 1 + pick(300);
    strategy.fusion.count = 1 + pick(4);
    strategy.fusion.ends = {pick(5), 5 + pick(5)};
    strategy.update = pick(2) == 0 ? Strategy::Update::kAfterAll : Strategy::Update::kPerBucket;
    if (pick(3) == 0) {
      strategy.compression.codec = pick(2) == 0 ? "dgc" : "fp16";
      strategy.compression.min_elements = 20;
    } else if (pick(3) == 0) {
      strategy.local_sgd.enabled = true;
      strategy.local_sgd.period = 1 + pick(3);
    }
    const Plan plan = make_plan(workload, cluster_of(1 + pick(4), 1), strategy);
    SCOPED_TRACE("trial " + std::to_string(trial));

    std::set<std::pair<int, StreamId>> exchanged;
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const Op& op = plan.ops[i];
      ASSERT_GE(op.stream, 0);
      ASSERT_LT(op.stream, plan.streams);
      for (const OpId before : op.after) ASSERT_LT(before, static_cast<OpId>(i));
      if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
        exchanged.emplace(collective->bucket, op.stream);
        EXPECT_TRUE(collective->algorithm->fits(collective->kind, collective->groups.size));
      }
    }
    EXPECT_NEAR(seconds_of_phase(plan, Phase::kBackward), backward_time(workload) * plan.steps,
                1e-12);
    EXPECT_EQ(exchanged.size(), plan.ranks > 1 ? plan.buckets.size() : 0u);
    if (plan.ranks == 1 && strategy.local_sgd.enabled) continue;
    std::set<int> seen;
    std::size_t members = 0;
    for (const auto& bucket : plan.buckets) {
      members += bucket.tensors.size();
      seen.insert(bucket.tensors.begin(), bucket.tensors.end());
    }
    const std::size_t all = workload.tensors.size() + (strategy.local_sgd.enabled ? 1 : 0);
    EXPECT_EQ(seen.size(), all);
    EXPECT_EQ(members, all);
  }
}

// Gradients add up over three micro-batches; the first two keep theirs, whatever is exchanged.
TEST(MicroBatches, AreReducedDuringTheLastBackwardPass) {
  Workload workload = five();
  workload.micro_batches = 3;
  for (const auto exchange : {Strategy::Exchange::kAllReduce, Strategy::Exchange::kSharded}) {
    Strategy strategy = exchanging(exchange);
    strategy.fusion.rule = Fusion::Rule::kOne;
    const Plan plan = make_plan(workload, cluster_of(4, 1), strategy);
    using enum Phase;
    EXPECT_EQ(
        each(ops_of<Compute>(plan), [](const Op* op) { return compute_of(*op).phase; }),
        (std::vector{kForward, kBackward, kForward, kBackward, kForward, kBackward, kUpdate}));
    EXPECT_EQ(plan.buckets.size(), 1u);
    EXPECT_EQ(ops_of<collective::Collective>(plan).front()->after, (std::vector<OpId>{5}));
    // The gradients of an earlier pass are not ready to be sent.
    EXPECT_LT(compute_of(plan.ops[1]).last, compute_of(plan.ops[1]).first);
    EXPECT_EQ(describe(plan.ops[1], plan, workload), "backward");
  }
  const Plan local = make_plan(workload, cluster_of(4, 1), local_strategy(2));
  EXPECT_NEAR(seconds_of_phase(local, Phase::kBackward), 2 * 3 * 0.005, 1e-12);
}

Workload copied() {
  Workload workload = five();
  workload.copies_measured = true;
  workload.host_gap = 0.003;
  for (auto& tensor : workload.tensors) {
    tensor.copy_in = 0.0001;
    tensor.copy_out = 0.0004;
  }
  return workload;
}

TEST(MeasuredCopies, TakeThePlaceOfTheMemoryRate) {
  Cluster cluster = cluster_of(2, 1);
  cluster.device.memory = 1e9;
  Strategy strategy = strategy_with(Fusion::Rule::kCount);
  strategy.fusion.count = 2;
  strategy.bucket_copies = true;
  const Plan plan = make_plan(copied(), cluster, strategy, {});
  for (const auto& [reason, one] :
       {std::pair(Busy::Reason::kCopyIn, 0.0001), {Busy::Reason::kCopyOut, 0.0004}}) {
    EXPECT_NEAR(seconds_of_all(ops_of(plan, reason)), 5 * one, 1e-12);
  }

  strategy.bucket_copies = false;
  EXPECT_TRUE(ops_of(make_plan(copied(), cluster, strategy, {}), Busy::Reason::kCopyIn).empty());
}

// Parameters are gathered where they stay: only gradients are copied into a bucket, and back where
// their sum comes back.
TEST(MeasuredCopies, AreOnlyOfGradients) {
  using enum Strategy::Exchange;
  for (const auto exchange : {kAllReduce, kDecoupled, kSharded, kShardedUpdate}) {
    Strategy strategy = exchanging(exchange);
    strategy.bucket_copies = true;
    const Plan plan = make_plan(copied(), cluster_of(2, 1), strategy, {});
    const auto gone_in = ops_of(plan, Busy::Reason::kCopyIn);
    const auto come_back = ops_of(plan, Busy::Reason::kCopyOut);
    EXPECT_EQ(gone_in.size(), 5u);
    EXPECT_EQ(come_back.size(), shards_update(strategy) ? 0u : 5u);
    for (const Op* op : come_back) {
      const Op& brought = plan.ops[index(op->after.at(0))];
      EXPECT_EQ(brought.gathers, exchange == kDecoupled);
      EXPECT_EQ(collective_in(brought).bucket, std::get<Busy>(op->work).bucket);
    }
  }
}

TEST(HostGap, IsOncePerStepBetweenAllReducesAndUpdate) {
  for (Strategy strategy :
       {Strategy{}, exchanging(Strategy::Exchange::kSharded), local_strategy(3)}) {
    strategy.fusion.rule = Fusion::Rule::kOne;
    const Plan plan = make_plan(copied(), cluster_of(2, 1), strategy, {100, 0});
    const auto gaps = ops_of(plan, Busy::Reason::kHost);
    ASSERT_EQ(gaps.size(), static_cast<std::size_t>(plan.steps));
    EXPECT_EQ(std::get<Busy>(gaps.front()->work).seconds, 0.003);
    EXPECT_EQ(compute_of(*(gaps.front() + 1)).phase, Phase::kUpdate);
  }
}

}  // namespace
}  // namespace syncline::plan
