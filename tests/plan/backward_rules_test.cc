// What frameworks do in the backward pass besides sending buckets: wait for an exchange before they
// go on, gather parameters again, exchange in every micro-batch, wait for the gradient that no
// longer fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/plan/planned.h"

namespace syncline::plan {
namespace {

using collective::CollectiveKind;
using test::cluster_of;
using test::tensor_of;

Workload layers(int count) {
  Workload workload;
  workload.forward = 0.010;
  for (int i = 0; i < count; ++i) {
    workload.tensors.push_back(tensor_of("layer" + std::to_string(i) + ".weight", {1000}));
    workload.tensors.back().backward = 0.001;
  }
  return workload;
}

// What each piece of the backward pass waits for.
using Awaited = std::vector<std::vector<OpId>>;
Awaited awaited_backward(const Plan& plan) {
  return each(ops_of(plan, Phase::kBackward), &Op::after);
}

Strategy in_groups(std::vector<std::vector<int>> groups) {
  Strategy strategy = strategy_with(Fusion::Rule::kGroups);
  strategy.fusion.groups = std::move(groups);
  return strategy;
}

Seconds step_time(const Workload& workload, const Cluster& cluster, const Strategy& strategy) {
  return last_period(*run::make_model_executor({cluster, {}, 1}),
                     make_plan(workload, cluster, strategy));
}

TEST(InFlight, TheBackwardPassWaitsForAllButALimitedNumber) {
  Strategy strategy;
  strategy.traits.in_flight = 1;
  const Plan plan = make_plan(layers(4), cluster_of(4, 1), strategy);
  const auto sends = sent(plan, CollectiveKind::kAllReduce);
  // When the second begins only the first is under way.
  EXPECT_EQ(awaited_backward(plan), (Awaited{{}, {}, {sends[0]}, {sends[1]}}));
  strategy.traits.in_flight = 2;
  const Plan two = make_plan(layers(4), cluster_of(4, 1), strategy);
  EXPECT_EQ(awaited_backward(two),
            (Awaited{{}, {}, {}, {sent(two, CollectiveKind::kAllReduce)[0]}}));
}

// By hand: four buckets of c seconds each and 1 ms of backward each. Under way alone, bucket i
// begins with the later of its gradients and the end of bucket i - 1, and gradients i + 2 begin
// once bucket i is there: 10 + 1 + 1 + c + (c or 1) + ...
TEST(InFlight, CostsWhatOverlapIsLost) {
  Workload workload = layers(4);
  const Cluster cluster = cluster_of(2, 1);
  for (auto& tensor : workload.tensors) tensor = tensor_of(tensor.name, {12500000});
  for (auto& tensor : workload.tensors) tensor.backward = 0.001;
  Strategy strategy;
  const Seconds free = step_time(workload, cluster, strategy);
  const Seconds c = (free - 0.011) / 4;  // exchanged one after the other from the first one on
  ASSERT_GT(c, 0.003);
  strategy.traits.in_flight = 1;
  // Gradients 2 and 3 are computed while buckets 1 and 2 travel: the last exchange is no later.
  EXPECT_NEAR(step_time(workload, cluster, strategy), free, 1e-9);
  // A long computation behind that hides nothing while it waits.
  workload.tensors[2].backward = 0.050;
  strategy.traits.in_flight = 0;
  const Seconds hidden = step_time(workload, cluster, strategy);
  EXPECT_NEAR(hidden, 0.010 + 0.052 + 0.001 + c + std::max(0.0, c - 0.001), 1e-9);
  strategy.traits.in_flight = 1;
  const Seconds begun = 0.011 + std::max(0.001, c);  // of gradient 2
  EXPECT_NEAR(step_time(workload, cluster, strategy), begun + 0.050 + c + std::max(0.001, c), 1e-9);
}

TEST(InFlight, IsNeverFasterAndNoLimitFromTheNumberOfBucketsOn) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    Workload workload = layers(3 + static_cast<int>(random() % 6));
    for (auto& tensor : workload.tensors) {
      tensor = tensor_of(tensor.name, {1 + static_cast<std::int64_t>(random() % 4000000)});
      tensor.backward = 1e-5 * static_cast<double>(random() % 500);
    }
    Strategy strategy;
    strategy.streams = 1 + static_cast<int>(random() % 2);
    const Cluster cluster = cluster_of(4, 1);
    const Seconds free = step_time(workload, cluster, strategy);
    Seconds before = free;
    for (int most = 9; most >= 1; --most) {
      strategy.traits.in_flight = most;
      const Seconds time = step_time(workload, cluster, strategy);
      if (most == 9) {
        EXPECT_EQ(time, free);
      }
      EXPECT_GE(time, before * (1 - 1e-9)) << round << " " << most;
      before = time;
    }
  }
}

// The parts of a gradient are one exchange of those that may be under way.
TEST(InFlight, CountsAGradientsPartsAsOne) {
  Strategy strategy = in_groups({{0}, {1}, {2}, {3}});
  strategy.traits.in_flight = 1;
  strategy.traits.buckets.cuts = {{1, {300, 700}}};
  const Plan plan = make_plan(layers(4), cluster_of(4, 1), strategy);
  EXPECT_EQ(each(plan.buckets, &Bucket::elements),
            (std::vector<std::int64_t>{1000, 300, 400, 300, 1000, 1000}));
  const auto sends = sent(plan, CollectiveKind::kAllReduce);
  EXPECT_EQ(awaited_backward(plan), (Awaited{{}, {}, {sends[0]}, {sends[1], sends[2], sends[3]}}));
}

// What a part is copied for is its own bytes: all parts together cost what the whole does.
TEST(Cuts, CopiesCostTheSame) {
  Workload workload = layers(2);
  Cluster cluster = cluster_of(4, 1);
  cluster.device.memory = 1e9;
  Strategy strategy;
  strategy.bucket_copies = true;
  const auto copied = [&] {
    const Plan plan = make_plan(workload, cluster, strategy);
    return seconds_of_all(ops_of(plan, Busy::Reason::kCopyIn)) +
           seconds_of_all(ops_of(plan, Busy::Reason::kCopyOut));
  };
  const Seconds whole = copied();
  ASSERT_GT(whole, 0);
  strategy.traits.buckets.cuts = {{0, {1, 999, 5000}}};  // nothing is cut behind its end
  EXPECT_NEAR(copied(), whole, 1e-12);
  EXPECT_EQ(make_plan(workload, cluster, strategy).buckets.size(), 4u);
}

TEST(WithNext, ABucketWaitsForTheNextGradient) {
  Strategy strategy = in_groups({{0, 1}, {2}, {3}});
  strategy.traits.buckets.with_next = true;
  const Plan plan = make_plan(layers(4), cluster_of(2, 1), strategy);
  EXPECT_EQ(each(plan.buckets, &Bucket::ready),
            (std::vector<int>{2, 3, 3}));  // nothing comes behind
  EXPECT_EQ(plan.buckets[1].tensors, (std::vector<int>{2}));
}

TEST(EachMicroBatch, AllReducesInEveryOne) {
  Workload workload = layers(4);
  workload.micro_batches = 3;
  for (const auto exchange : {Strategy::Exchange::kAllReduce, Strategy::Exchange::kSharded,
                              Strategy::Exchange::kShardedUpdate}) {
    Strategy strategy = exchanging(exchange);
    strategy.fusion.rule = Fusion::Rule::kCount;
    strategy.fusion.count = 2;
    strategy.each_micro_batch = true;
    const bool gathers = exchange != Strategy::Exchange::kAllReduce;
    if (gathers) strategy.gather_groups = {{0, 1, 2, 3}};
    const Plan plan = make_plan(workload, cluster_of(4, 1), strategy);
    EXPECT_EQ(plan.buckets.size(), 3u * 2 + (gathers ? 1 : 0));
    const auto kind = exchange == Strategy::Exchange::kSharded ? CollectiveKind::kReduceScatter
                                                               : CollectiveKind::kAllReduce;
    const auto sends = sent(plan, kind);
    const auto none = [](const std::vector<OpId>& ids) { return std::ranges::count(ids, -1); };
    EXPECT_EQ(none(sends), gathers ? 1 : 0);
    EXPECT_EQ(none(sent(plan, CollectiveKind::kAllGather)), 6);
    // The second micro-batch's forward pass waits for the first one's exchanges.
    const auto forward = ops_of(plan, Phase::kForward);
    ASSERT_EQ(forward.size(), 3u);
    EXPECT_EQ(forward[1]->after, (std::vector<OpId>{sends[0], sends[1]}));
    EXPECT_NEAR(seconds_of_phase(plan, Phase::kForward), 3 * 0.010, 1e-12);
    EXPECT_NEAR(seconds_of_phase(plan, Phase::kBackward), 3 * 0.004, 1e-12);
  }
}

TEST(ShardedUpdate, ReducesInFullAndGathersParameters) {
  Workload workload = layers(4);
  workload.update = 0.008;
  Strategy strategy = exchanging(Strategy::Exchange::kShardedUpdate);
  strategy.gather_groups = {{0, 1, 2, 3}};
  const Plan plan = make_plan(workload, cluster_of(4, 1), strategy);
  ASSERT_EQ(plan.buckets.size(), 5u);
  const auto reduced = sent(plan, CollectiveKind::kAllReduce);
  const auto gathered = sent(plan, CollectiveKind::kAllGather);
  EXPECT_TRUE(std::all_of(reduced.begin(), reduced.begin() + 4, [](OpId id) { return id > 0; }));
  EXPECT_EQ(collective_at(plan, gathered[4]).bytes(), 4 * 4000);
  // A quarter of the update on each of four ranks.
  EXPECT_NEAR(seconds_of_phase(plan, Phase::kUpdate), 0.002, 1e-12);
}

TEST(Regather, GathersTheNextUnitBeforeThisOnesBackwardPass) {
  const Plan plan = make_plan(layers(3), cluster_of(4, 1), regathering());
  constexpr auto kGather = CollectiveKind::kAllGather;
  constexpr auto kScatter = CollectiveKind::kReduceScatter;
  // The last unit, the root's, is not given up. Forward gathers come first layer first.
  EXPECT_EQ(
      each(collectives_of(plan), &collective::Collective::kind),
      (std::vector{kGather, kGather, kScatter, kScatter, kScatter, kGather, kGather, kGather}));
  EXPECT_EQ(each(collectives_of(plan), &collective::Collective::bucket),
            (std::vector<int>{0, 1, 0, 1, 2, 2, 1, 0}));
  const auto awaited = awaited_backward(plan);
  ASSERT_EQ(awaited.size(), 3u);
  EXPECT_EQ(collective_at(plan, awaited[0].at(0)).bucket, 0);
  EXPECT_EQ(collective_at(plan, awaited[1].at(0)).bucket, 1);
}

// What was given up after a micro-batch's backward pass comes back layer by layer for the next
// one's forward pass.
TEST(Regather, EachMicroBatchGathersForItsForwardPass) {
  Strategy strategy = regathering();
  strategy.each_micro_batch = true;
  Workload workload = layers(3);
  workload.forward = 3e-3;
  workload.micro_batches = 2;
  const Plan plan = make_plan(workload, cluster_of(4, 1), strategy);
  const auto kinds = each(collectives_of(plan), &collective::Collective::kind);
  // Twice for a forward pass of three units, twice for a backward pass of all but the root.
  EXPECT_EQ(std::ranges::count(kinds, CollectiveKind::kAllGather), 2 * 3 + 2 * 2);
  EXPECT_EQ(std::ranges::count(kinds, CollectiveKind::kReduceScatter), 2 * 3);
  EXPECT_DOUBLE_EQ(seconds_of_phase(plan, Phase::kForward), 2 * 3e-3);
  // The step's own forward pass waits for the step before; the second one for all that was
  // scattered, and each piece for its parameters.
  EXPECT_EQ(each(ops_of(plan, Phase::kForward), [](const Op* op) { return op->after.size(); }),
            (std::vector<std::size_t>{0, 0, 0, 4, 1, 1}));
}

// ZeRO-3: parameters in buckets of their own, of which some are still there for the backward pass;
// it is cut where the others come in.
TEST(Regather, InBucketsOfTheirOwn) {
  Workload workload = layers(4);
  Strategy strategy = regathering();
  strategy.fusion.rule = Fusion::Rule::kOne;
  strategy.gather_groups = {{0}, {3}, {1, 2}};
  strategy.traits.kept_groups = 1;
  const Plan plan = make_plan(workload, cluster_of(4, 1), strategy);
  std::vector<int> pieces;
  std::vector<int> brought;
  for (const Op* op : ops_of(plan, Phase::kBackward)) {
    pieces.push_back(compute_of(*op).first);
    for (const OpId id : op->after) brought.push_back(collective_at(plan, id).bucket);
  }
  EXPECT_EQ(pieces, (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(brought, (std::vector<int>{3, 2}));  // buckets 1 to 3 are the groups
}

// What goes on where, in order: "f2" a piece of the forward pass that begins with tensor 2, "g1" a
// gather of bucket 1, "b0" a piece of the backward pass.
std::vector<std::string> story(const Plan& plan) {
  std::vector<std::string> words;
  for (const auto& op : plan.ops) {
    if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
      if (collective->kind != CollectiveKind::kAllGather) continue;
      words.push_back("g" + std::to_string(collective->bucket));
    }
    const auto* compute = std::get_if<Compute>(&op.work);
    if (compute == nullptr || compute->phase == Phase::kUpdate) continue;
    words.push_back((compute->phase == Phase::kForward ? "f" : "b") +
                    std::to_string(compute->first));
  }
  return words;
}

Strategy fetching(std::int64_t live, std::int64_t ahead, std::int64_t reuse) {
  Strategy strategy = regathering();
  strategy.traits.fetches = {live, ahead, reuse};
  return strategy;
}

// Four layers of 1000 elements, below a model that enters both passes without parameters of its
// own. Buckets 4 to 7 are the parameters, in the order in which they are first asked for.
TEST(Fetches, AreAskedForAsModulesAreEntered) {
  const Workload workload = layers(4);
  using Words = std::vector<std::string>;
  const auto story_of = [&](std::int64_t live, std::int64_t ahead, std::int64_t reuse) {
    return story(make_plan(workload, cluster_of(4, 1), fetching(live, ahead, reuse)));
  };
  // Nothing early: each layer asks for its own.
  EXPECT_EQ(story_of(1'000'000, 0, 0), (Words{"g4", "f3", "g5", "f2", "g6", "f1", "g7", "f0", "g7",
                                              "b0", "g6", "b1", "g5", "b2", "g4", "b3"}));
  // One layer early, the model itself too. The forward pass's last layer asks for the one before it
  // again, as its own stays.
  EXPECT_EQ(story_of(1'000'000, 1, 0), (Words{"g4", "g5", "f3", "g6", "f2", "g7", "f1", "g6", "f0",
                                              "g5", "g4", "b0", "b1", "b2", "b3"}));
  // With room for one the model alone asks early, as nothing is in place yet.
  EXPECT_EQ(story_of(1000, 1000, 0), (Words{"g4", "f3", "g5", "f2", "g6", "f1", "g7", "f0", "g7",
                                            "b0", "g6", "b1", "g5", "b2", "g4", "b3"}));
  // What the backward pass reaches soon stays.
  EXPECT_EQ(story_of(1'000'000, 0, 1'000'000),
            (Words{"g4", "f3", "g5", "f2", "g6", "f1", "g7", "f0", "b0", "b1", "b2", "b3"}));
  EXPECT_EQ(story_of(1'000'000, 0, 2001), (Words{"g4", "f3", "g5", "f2", "g6", "f1", "g7", "f0",
                                                 "b0", "b1", "g5", "b2", "g4", "b3"}));
}

// The law: a piece of a pass begins once each of its parameters was gathered in this micro-batch,
// or stays in place.
void expect_parameters_in_place(const Plan& plan, const Strategy& strategy) {
  std::vector<char> stays(100, 0);
  for (const auto& group : strategy.gather_groups) {
    for (const int t : group) stays[static_cast<std::size_t>(t)] = 1;
  }
  std::vector<char> in_place = stays;
  bool backward = false;
  for (const auto& op : plan.ops) {
    const auto* compute = std::get_if<Compute>(&op.work);
    if (compute == nullptr || compute->last < compute->first) continue;
    const bool passes = compute->phase == Phase::kForward || compute->phase == Phase::kBackward;
    if (!passes) continue;
    if (std::exchange(backward, compute->phase == Phase::kBackward) && !backward) in_place = stays;
    for (const OpId id : op.after) {
      const auto* moved =
          std::get_if<collective::Collective>(&plan.ops[static_cast<std::size_t>(id)].work);
      if (moved == nullptr || moved->kind != CollectiveKind::kAllGather) continue;
      for (const int t : plan.buckets[static_cast<std::size_t>(moved->bucket)].tensors) {
        in_place[static_cast<std::size_t>(t)] = 1;
      }
    }
    for (int t = compute->first; t <= compute->last; ++t) {
      EXPECT_TRUE(in_place[static_cast<std::size_t>(t)]) << "tensor " << t;
    }
  }
}

TEST(Fetches, BringEachParameterBeforeItsLayer) {
  std::mt19937 random(3);
  const auto up_to = [&](int most) {
    return static_cast<int>(random() % (static_cast<unsigned>(most) + 1));
  };
  for (int round = 0; round < 300; ++round) {
    Workload workload;
    workload.forward = 0.01;
    workload.micro_batches = 1 + up_to(2);
    for (int block = 4; block >= 0; --block) {
      for (const char* own : {".b.w", ".b.bias", ".a.w", ".norm"}) {
        workload.tensors.push_back(
            tensor_of("model.blocks." + std::to_string(block) + own, {8 + 8 * up_to(100)}));
        workload.tensors.back().backward = 1e-3;
      }
    }
    Strategy strategy = fetching(1 + up_to(6000), up_to(3000), up_to(6000));
    strategy.each_micro_batch = true;
    for (int t = 0; t < 20; ++t) {
      if (up_to(3) == 0) strategy.gather_groups.push_back({t});
    }
    strategy.traits.kept_groups = static_cast<int>(strategy.gather_groups.size());
    strategy.traits.regather_group = up_to(1) == 0 ? 0 : 2;
    expect_parameters_in_place(make_plan(workload, cluster_of(4, 1), strategy), strategy);
  }
}

// Gradients of a piece are there at its end, and with them their buckets.
TEST(Pieces, EndBucketsWithTheirSegment) {
  Strategy strategy;
  strategy.graph_segments = {1, 3};
  const auto ready = [&] {
    return each(make_plan(layers(4), cluster_of(4, 1), strategy).buckets, &Bucket::ready);
  };
  EXPECT_EQ(ready(), (std::vector<int>{1, 1, 3, 3}));
  strategy.graph_segments = {1};  // the rest is one too
  EXPECT_EQ(ready(), (std::vector<int>{1, 1, 3, 3}));
  strategy.traits.buckets.with_next = true;
  EXPECT_EQ(ready(), (std::vector<int>{1, 3, 3, 3}));
  strategy.traits.buckets.with_next = false;
  // One piece hides nothing.
  strategy.graph_segments = {3};
  const Cluster cluster = cluster_of(4, 1);
  Strategy after;
  after.overlap = false;
  EXPECT_NEAR(step_time(layers(4), cluster, strategy), step_time(layers(4), cluster, after), 1e-9);
}

// Three tensors of 100, 64 and 1 elements at multiples of 64: 128 + 64 + 1, then a multiple of
// 384 = lcm(3, 128).
TEST(Padding, RoundsTensorsAndBucketsUp) {
  Workload workload;
  workload.tensors = {tensor_of("a", {100}), tensor_of("b", {64}), tensor_of("c", {1})};
  Strategy strategy = strategy_with(Fusion::Rule::kOne);
  strategy.traits.buckets.align_elements = 64;
  Plan plan = make_plan(workload, cluster_of(3, 1), strategy);
  EXPECT_EQ(plan.buckets[0].padded_bytes, 193 * 4);
  EXPECT_EQ(plan.buckets[0].bytes, 165 * 4);
  strategy.traits.buckets.pad_elements = 384;
  plan = make_plan(workload, cluster_of(3, 1), strategy);
  EXPECT_EQ(plan.buckets[0].padded_bytes, 384 * 4);
  // In the format that travels, and for parameters likewise.
  for (auto& tensor : workload.tensors) tensor.dtype = DType::kBf16;
  strategy.exchange = Strategy::Exchange::kSharded;
  strategy.fusion.sum_format = DType::kFp32;
  strategy.gather_groups = {{0, 1, 2}};
  plan = make_plan(workload, cluster_of(3, 1), strategy);
  EXPECT_EQ(plan.buckets[0].padded_bytes, 384 * 4);
  EXPECT_EQ(plan.buckets[1].padded_bytes, 384 * 2);
}

// Rows are padded tensor by tensor; what has no dimension is left as it is.
TEST(Padding, RoundsTheFirstDimensionUp) {
  Workload workload;
  workload.tensors = {tensor_of("even", {8, 3}), tensor_of("one", {1, 197, 2}),
                      tensor_of("odd", {5}), tensor_of("none", {})};
  Strategy strategy = strategy_with(Fusion::Rule::kOne);
  strategy.traits.buckets.pad_rows = 4;
  const Plan plan = make_plan(workload, cluster_of(4, 1), strategy);
  EXPECT_EQ(plan.buckets[0].padded_bytes, (8 * 3 + 4 * 197 * 2 + 8 + 1) * 4);
  EXPECT_EQ(plan.buckets[0].bytes, (8 * 3 + 197 * 2 + 5 + 1) * 4);
}

// DDP makes the buffers equal ahead of a step, whatever is fused and whichever micro-batches there
// are; LocalSGD does not, and neither does who turns it off, nor a rank that is alone.
TEST(Buffers, AreBroadcastBeforeEachStep) {
  Workload workload = layers(4);
  const Cluster cluster = cluster_of(2, 1);
  Strategy strategy;
  const Seconds without = step_time(workload, cluster, strategy);
  workload.buffer_broadcast = 0.004;
  EXPECT_NEAR(step_time(workload, cluster, strategy), without + 0.004, 1e-12);
  EXPECT_DOUBLE_EQ(time_before_forward(make_plan(workload, cluster, strategy)), 0.004);
  EXPECT_EQ(time_before_forward(make_plan(workload, cluster_of(1, 1), strategy)), 0);

  Workload accumulating = workload;
  accumulating.micro_batches = 3;
  EXPECT_DOUBLE_EQ(time_before_forward(make_plan(accumulating, cluster, strategy)), 0.004);

  Cluster costly = cluster;
  costly.device.data_parallel_overhead = 0.001;
  workload.host_gap = 0.002;  // later in the step
  EXPECT_DOUBLE_EQ(time_before_forward(make_plan(workload, costly, strategy)), 0.005);

  Strategy local = local_strategy(4);
  EXPECT_DOUBLE_EQ(time_before_forward(make_plan(workload, costly, local)), 4 * 0.001);
  // As a hook of DDP's it leaves that to DDP, and averages the parameters alone, as one.
  local.local_sgd.warmup_gradients = true;
  workload.buffers = {tensor_of("mean", {10})};
  for (const int subgroup : {1, 2}) {
    local.local_sgd.subgroup = subgroup;
    const Plan plan = make_plan(workload, costly, local);
    EXPECT_DOUBLE_EQ(time_before_forward(plan), 4 * 0.005) << subgroup;
    EXPECT_EQ(plan.buckets.back().elements, 4000) << subgroup;
  }
  local.traits.broadcast_buffers = false;
  EXPECT_DOUBLE_EQ(time_before_forward(make_plan(workload, costly, local)), 4 * 0.001);
  strategy.traits.broadcast_buffers = false;
  EXPECT_DOUBLE_EQ(time_before_forward(make_plan(workload, costly, strategy)), 0.001);
}

}  // namespace
}  // namespace syncline::plan
