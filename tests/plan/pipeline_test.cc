// Jobs that are cut beside data parallelism: who sums what with whom, and the closed forms of
// pipelines' bubbles.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/base/internal_error.h"
#include "core/base/random.h"
#include "core/cost.h"
#include "core/metrics.h"
#include "core/plan/pipeline.h"
#include "core/sim/sim_executor.h"
#include "tests/plan/planned.h"

namespace syncline::plan {
namespace {

// Nothing takes time on its links.
Cluster free_links(int ranks) {
  Cluster cluster;
  cluster.nodes = ranks;
  cluster.tiers = {{"inter", ranks, 0, 1e30}};
  return cluster;
}

Seconds step_of(const Plan& plan, const Cluster& cluster) {
  const auto executor = run::make_model_executor({cluster, {}, 1});
  return measure::step_time_of(plan, executor->run(plan, {}, 3).timeline, 1);
}

Seconds step_of(const Workload& workload, const Cluster& cluster, const Strategy& strategy = {}) {
  return step_of(make_plan(workload, cluster, strategy), cluster);
}

std::vector<Parallel> all_schedules(int stages) {
  return {pipeline(stages, Schedule::kGpipe), pipeline(stages, Schedule::k1F1B),
          pipeline(stages, Schedule::kInterleaved, 3), pipeline(stages, Schedule::kZeroBubble)};
}

// (p - 1) (F + B) for GPipe and 1F1B; divided by the chunks where they are interleaved (Narayanan
// et al. 2021, 2.2); (p - 1) (F + B - W) where the backward pass is B and W (Qi et al. 2023).
TEST(Pipeline, BubblesAreThoseOfTheirAuthors) {
  for (const int stages : {2, 3, 4, 8}) {
    for (const int groups : {1, 2, 5}) {
      const int m = stages * groups;
      for (const Schedule schedule : {Schedule::kGpipe, Schedule::k1F1B}) {
        const Workload workload = job(pipeline(stages, schedule), m);
        EXPECT_NEAR(step_of(workload, free_links(stages)),
                    (m + stages - 1) * (kPartForward + kPartBackward), 1e-12)
            << stages << " stages, " << m << " micro-batches";
      }
      for (const int chunks : {2, 3, 5}) {
        const Workload workload = job(pipeline(stages, Schedule::kInterleaved, chunks), m);
        EXPECT_NEAR(step_of(workload, free_links(stages)),
                    (chunks * m + stages - 1) * (kPartForward + kPartBackward), 1e-12)
            << stages << " stages of " << chunks << " chunks, " << m << " micro-batches";
      }
      if (groups == 1) continue;  // its first stages have nothing to fill the bubble with
      const Workload workload = job(pipeline(stages, Schedule::kZeroBubble), m);
      const Seconds half = kPartBackward / 2;
      EXPECT_NEAR(step_of(workload, free_links(stages)),
                  m * (kPartForward + kPartBackward) + (stages - 1) * (kPartForward + half - half),
                  1e-12)
          << stages << " stages, zero bubble, " << m << " micro-batches";
    }
  }
}

// A step that exchanges nothing and is even takes just that; an uneven one no less. Zero bubble's
// last stage is bounded by one pass of weights less.
TEST(Pipeline, NoStepIsShorterThanItsBound) {
  for (const auto& parallel : all_schedules(4)) {
    for (const int m : {4, 8, 20}) {
      const Workload even = job(parallel, m);
      const Seconds step = step_of(even, free_links(4));
      const bool splits = parallel.schedule == Schedule::kZeroBubble;
      EXPECT_NEAR(least_step(even), step - (splits ? kPartBackward / 2 : 0), 1e-12);
      for (std::size_t longer = 0; longer < even.tensors.size(); ++longer) {
        Workload uneven = even;
        uneven.tensors[longer].backward *= 3;
        uneven.tensors[longer].forward *= 2;
        uneven.forward += even.tensors[longer].forward;
        uneven.update = 2e-3;
        EXPECT_LE(least_step(uneven), step_of(uneven, free_links(4)) + 1e-12) << longer;
      }
    }
  }
}

// Each pass once, a backward pass behind its forward pass, and no stage holds more than it may.
TEST(Pipeline, StagesWalkEachMicroBatchOnce) {
  for (const auto& parallel : all_schedules(4)) {
    for (const int m : {1, 3, 4, 7, 8}) {
      for (int stage = 0; stage < 4; ++stage) {
        std::vector<Pass> seen;
        int held = 0, most = 0;
        for (const Pass& pass : passes_of(parallel, m, stage)) {
          EXPECT_EQ(std::count(seen.begin(), seen.end(), pass), 0);
          const auto needs = [&](Pass::Kind kind) {
            Pass before = pass;
            before.kind = kind;
            EXPECT_EQ(std::count(seen.begin(), seen.end(), before), 1);
          };
          if (pass.kind == Pass::Kind::kBackward) needs(Pass::Kind::kForward);
          if (pass.kind == Pass::Kind::kWeights) needs(Pass::Kind::kBackward);
          held += pass.kind == Pass::Kind::kForward    ? 1
                  : pass.kind == Pass::Kind::kBackward ? -1
                                                       : 0;
          most = std::max(most, held);
          seen.push_back(pass);
        }
        const bool splits = parallel.schedule == Schedule::kZeroBubble;
        EXPECT_EQ(static_cast<int>(seen.size()), m * parallel.virtual_stages * (splits ? 3 : 2));
        const bool bounded = parallel.schedule == Schedule::k1F1B || splits;
        EXPECT_LE(most, bounded ? std::min(m, 4 - stage) : most);
      }
    }
  }
}

// Sends that a stage waits for lengthen each of its passes; those that overlap only the way
// through.
TEST(Pipeline, SendsTakeTimeOnTheirLinks) {
  Parallel parallel = pipeline(2, Schedule::kGpipe);
  parallel.activation = 1000000;
  Cluster cluster = free_links(2);
  cluster.tiers.front().bandwidth = 1e10;  // 0.1 ms a message
  cluster.library = Library::kLinks;
  const Seconds sent = 1e-4;
  const Seconds through = (4 + 1) * (kPartForward + kPartBackward);
  EXPECT_NEAR(step_of(job(parallel, 4), cluster), through + 2 * 4 * sent, 1e-9);
  parallel.overlap_sends = true;
  EXPECT_NEAR(step_of(job(parallel, 4), cluster), through + 2 * sent, 1e-9);
}

// A message costs its latency and its bytes over the bandwidth, whatever its size, and on whatever
// tier; messages that share a port share it, but wait no longer. A step of the simulation is right
// with it.
TEST(Pipeline, ASendIsOneMessage) {
  for (const int gpus : {1, 2}) {
    for (const Bytes bytes : {Bytes{1}, Bytes{1} << 20, Bytes{1} << 24, Bytes{1} << 28}) {
      for (const Seconds latency : {0.0, 5e-6, 500e-6, 10e-3}) {
        Parallel parallel = pipeline(2, Schedule::kGpipe);
        parallel.activation = bytes;
        Cluster cluster;
        cluster.nodes = 2;
        cluster.gpus_per_node = gpus;
        if (gpus > 1) cluster.tiers.push_back({"intra", gpus, 1e-6, 1e12});
        cluster.tiers.push_back({"inter", 2 * gpus, latency, 1.25e10});
        cluster.library = Library::kLinks;
        const Seconds sent = latency + gpus * static_cast<double>(bytes) / 1.25e10;
        const Seconds computed = 2 * (kPartForward + kPartBackward);
        const Workload workload = job(parallel, 1);
        // What two replicas sum by the way is none of this.
        const Plan plan = make_plan(workload, cluster, {});
        collective::CostCache cache(cluster);
        for (const auto& each : collectives_of(plan)) {
          if (each.kind != collective::CollectiveKind::kBroadcast) continue;
          EXPECT_NEAR(cache.time(each), sent, 1e-9 + 1e-6 * (gpus - 1)) << bytes << ", " << latency;
        }
        if (gpus > 1) continue;
        EXPECT_NEAR(step_of(plan, cluster), computed + 2 * sent, 1e-9) << bytes << ", " << latency;
        const auto sim = sim::make_sim_executor({cluster, {}, 1});
        EXPECT_NEAR(measure::step_time_of(plan, sim->run(plan, {}, 3).timeline, 1),
                    computed + 2 * sent, 1e-6 * sent + 1e-9);
      }
    }
  }
}

// A stage's gradients are summed by the ranks that hold the same part of the model.
TEST(Pipeline, EachStageSumsItsOwnGradients) {
  Parallel parallel = pipeline(2, Schedule::k1F1B);
  parallel.tensor = 2;
  const Cluster cluster = test::cluster_of(4, 4);  // replicas: 4, of 4 ranks each
  const Plan plan = make_plan(job(parallel, 4), cluster, strategy_with(Fusion::Rule::kOne));
  EXPECT_EQ(plan.roles, 2);
  EXPECT_EQ(plan.role_step, 8);
  ASSERT_EQ(plan.buckets.size(), 2U);
  for (int bucket = 0; bucket < 2; ++bucket) {
    const auto sums = collectives_of(plan, bucket);
    ASSERT_EQ(sums.size(), 1U);
    const collective::Groups expected{8 * bucket, 2, 1, 4, 2};
    EXPECT_EQ(sums.front().groups, expected);
    for (const int tensor : plan.buckets[index(bucket)].tensors) {
      EXPECT_EQ(tensor / 2, 1 - bucket);
    }
  }
}

// With the pipeline inside, replicas stand a whole replica apart.
// Exchanges wait for all passes of their stage: of the last chunk alone, or of all of them where
// they come after the passes, or share the computation's stream.
TEST(Pipeline, AllReducesMayWaitForAllPasses) {
  for (const auto& parallel : all_schedules(2)) {
    const Workload workload = job(parallel, 4);
    const Cluster cluster = cluster_of(4, 1);
    // Passes of a stage that begin no sooner in the plan than its first exchange.
    const auto behind = [&](const Strategy& strategy) {
      const Plan plan = make_plan(workload, cluster, strategy);
      std::vector<int> passes(index(plan.roles), -1);
      int exchanges = 0;
      for (const Op& op : plan.ops) {
        const auto* moved = std::get_if<collective::Collective>(&op.work);
        const auto role = index(plan.role_of(op.stream));
        if (moved != nullptr && moved->bucket >= 0) {
          passes[role] = std::max(passes[role], 0);
          ++exchanges;
        }
        const auto* compute = std::get_if<Compute>(&op.work);
        if (compute != nullptr && compute->phase == Phase::kBackward && passes[role] >= 0) {
          ++passes[role];
        }
      }
      EXPECT_GT(exchanges, 0);
      return *std::ranges::max_element(passes);
    };
    Strategy early, late, shared;
    late.after_passes = true;
    shared.overlap = false;
    EXPECT_EQ(behind(late), 0);
    EXPECT_EQ(behind(shared), 0);
    if (parallel.virtual_stages > 1) {
      EXPECT_GT(behind(early), 0);
    }
    const auto executor = run::make_model_executor({cluster, {}, 1});
    const Seconds step = step_of(workload, cluster, late);
    EXPECT_GE(step, step_of(workload, cluster, early) * (1 - 1e-12));
    const auto simulated = sim::make_sim_executor({cluster, {}, 1});
    const Plan plan = make_plan(workload, cluster, late);
    EXPECT_NEAR(measure::step_time_of(plan, simulated->run(plan, {}, 3).timeline, 1), step,
                0.01 * step);
  }
}

TEST(Pipeline, OrderPutsStagesOrReplicasSideBySide) {
  Parallel parallel = pipeline(2, Schedule::k1F1B);
  parallel.tensor = 2;
  parallel.pipeline_inside = true;
  const Plan plan =
      make_plan(job(parallel, 4), test::cluster_of(4, 4), strategy_with(Fusion::Rule::kOne));
  const collective::Groups first{0, 2, 1, 4, 4}, second{2, 2, 1, 4, 4};
  EXPECT_EQ(collectives_of(plan, 0).front().groups, first);
  EXPECT_EQ(collectives_of(plan, 1).front().groups, second);
  for (const int rank : {0, 1, 4, 5, 12, 13}) EXPECT_EQ(plan.role_of_rank(rank), 0);
  for (const int rank : {2, 3, 6, 7, 14, 15}) EXPECT_EQ(plan.role_of_rank(rank), 1);
}

// Experts are summed in groups of their own, behind neither kind waits the other.
TEST(Pipeline, ExpertsAreSummedByTheRanksThatHaveThem) {
  Parallel parallel;
  parallel.tensor = 2;
  parallel.expert = 4;
  Workload workload = job(parallel, 1);
  workload.tensors.front().expert = true;
  const Plan plan = make_plan(workload, test::cluster_of(4, 4), strategy_with(Fusion::Rule::kNone));
  const collective::Groups of_expert{0, 4, 1, 4, 4}, dense{0, 2, 1, 8, 2};
  EXPECT_EQ(collectives_of(plan, 0).front().groups, of_expert);
  EXPECT_EQ(collectives_of(plan, 1).front().groups, dense);
}

// Experts have plans of their own, in places of their own: parameters that are gathered again are
// awaited by the backward pass of their own first gradient, and by none before it.
TEST(Pipeline, ExpertsAreGatheredAgainForTheirOwnPass) {
  Workload workload;
  workload.parallel.expert = 2;
  for (int t = 0; t < 8; ++t) {
    workload.tensors.push_back(tensor_of("t" + std::to_string(t), {64}));
    workload.tensors.back().backward = 0.001;
    workload.tensors.back().expert = t % 2 == 1;
  }
  Strategy strategy = strategy_with(Fusion::Rule::kGroups);
  strategy.fusion.groups = {{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}};
  strategy.gather_groups = strategy.fusion.groups;
  strategy.exchange = Strategy::Exchange::kSharded;
  strategy.regather = true;
  strategy.cross_step = true;
  for (const bool in_turn : {false, true}) {
    strategy.traits.buckets.in_turn = in_turn;
    const Plan plan = make_plan(workload, test::cluster_of(4, 1), strategy);
    int awaited = 0;
    for (const Op& op : plan.ops) {
      const auto* pass = std::get_if<Compute>(&op.work);
      if (pass == nullptr || pass->phase != Phase::kBackward) continue;
      for (const OpId before : op.after) {
        const auto* gather =
            std::get_if<collective::Collective>(&plan.ops[static_cast<std::size_t>(before)].work);
        if (gather == nullptr || gather->kind != collective::CollectiveKind::kAllGather) continue;
        EXPECT_EQ(plan.buckets[static_cast<std::size_t>(gather->bucket)].tensors.front(),
                  pass->first);
        ++awaited;
      }
    }
    EXPECT_EQ(awaited, 8) << in_turn;
  }
}

// Groups are of neighbours among those that sum a dense gradient; experts are summed among those
// that hold them: 16 ranks of which four share the experts, 8 to a group. Each expert is on two
// ranks of a group. Where as many share them as a group has, on one, which exchanges nothing there.
TEST(Pipeline, GroupsOfExpertsAreTheirOwn) {
  using enum collective::CollectiveKind;
  const auto legs_of = [](Strategy strategy, int share, int size) {
    Parallel parallel;
    parallel.expert = share;
    Workload workload = job(parallel, 1);
    workload.tensors.front().expert = true;
    strategy.hierarchy.group_size = size;
    return collectives_of(make_plan(workload, test::cluster_of(4, 4), strategy), 0);
  };
  const auto kinds = [](const auto& legs) { return each(legs, &collective::Collective::kind); };
  const auto groups = [](const auto& legs) { return each(legs, &collective::Collective::groups); };
  using Kinds = std::vector<collective::CollectiveKind>;
  using List = std::vector<collective::Groups>;
  Strategy sharded = strategy_with(Fusion::Rule::kNone);
  sharded.hierarchy.form = Hierarchy::Form::kSharded;
  Strategy leaders = sharded;
  leaders.hierarchy.form = Hierarchy::Form::kLeaders;
  Strategy hybrid = sharded;
  hybrid.exchange = Strategy::Exchange::kSharded;
  // {0, 4}, {8, 12}, {1, 5}, ...; across {0, 8}, {4, 12}, {1, 9}, ...; leaders 0, 8 and 1, 9, ...
  const collective::Groups inside{0, 8, 1, 2, 4, 4, 8}, across{0, 8, 1, 2, 8, 4, 4};
  const collective::Groups first{0, 4, 1, 2, 8};
  for (const Strategy& strategy : {sharded, hybrid}) {
    const auto legs = legs_of(strategy, 4, 8);
    EXPECT_EQ(kinds(legs), (Kinds{kReduceScatter, kAllReduce, kAllGather}));
    EXPECT_EQ(groups(legs), (List{inside, across, inside}));
    const auto alone = legs_of(strategy, 8, 8);
    EXPECT_EQ(kinds(alone), Kinds{kAllReduce});
    EXPECT_EQ(groups(alone), (List{{0, 8, 1, 2, 8}}));
  }
  const auto legs = legs_of(leaders, 4, 8);
  EXPECT_EQ(kinds(legs), (Kinds{kReduce, kAllReduce, kBroadcast}));
  EXPECT_EQ(groups(legs), (List{inside, first, inside}));
  // An expert is on no rank of some groups: each rank by itself, or none at all where it is cut up.
  EXPECT_EQ(groups(legs_of(sharded, 8, 4)), (List{{0, 8, 1, 2, 8}}));
  EXPECT_THROW(legs_of(sharded, 4, 6), InternalError);
}

// Every layout of stages, chunks and micro-batches does each pass once, or is none: no plan is
// shorter than its step. Interleaved stages need a multiple of them.
TEST(Pipeline, EachPassOnceOrNoPlan) {
  int refused = 0;
  for (int stages = 2; stages <= 6; ++stages) {
    std::vector<Parallel> layouts{pipeline(stages, Schedule::kGpipe),
                                  pipeline(stages, Schedule::k1F1B),
                                  pipeline(stages, Schedule::kZeroBubble)};
    for (const int chunks : {2, 3, 4}) {
      layouts.push_back(pipeline(stages, Schedule::kInterleaved, chunks));
    }
    for (const Parallel& parallel : layouts) {
      for (int m = 1; m <= 3 * stages; ++m) {
        const Workload workload = job(parallel, m);
        Strategy strategy = strategy_with(Fusion::Rule::kOne);
        strategy.name = "mine";
        Seconds computed = 0;
        try {
          for (const Op* op : ops_of<Compute>(make_plan(workload, free_links(stages), strategy))) {
            computed += seconds_of(op->work);
          }
        } catch (const InternalError& error) {
          EXPECT_NE(std::string(error.what()).find("'mine'"), std::string::npos);
          EXPECT_EQ(parallel.schedule, Schedule::kInterleaved);
          EXPECT_NE(m % stages, 0) << stages << " x " << parallel.virtual_stages << ", " << m;
          ++refused;
          continue;
        }
        const Seconds all = parallel.parts() * m * (kPartForward + kPartBackward);
        EXPECT_NEAR(computed, all + workload.update, 1e-9)
            << stages << " x " << parallel.virtual_stages << ", " << m;
      }
    }
  }
  EXPECT_GT(refused, 10);
}

// One stage without tensor parallelism is plain data parallelism, to the bit.
TEST(Pipeline, OneStageIsDataParallelism) {
  const Workload workload = job({}, 3);
  const Cluster cluster = test::cluster_of(2, 4);
  const Strategy strategy = strategy_with(Fusion::Rule::kNone);
  const Plan plain = make_plan(workload, cluster, strategy);
  const Plan whole = whole_plan(workload, cluster, strategy, {});
  ASSERT_EQ(plain.ops.size(), whole.ops.size());
  EXPECT_EQ(step_of(plain, cluster), step_of(whole, cluster));
}

// By hand, for 24 layouts: each rank has a link of its own, so a ring of d replicas takes
// S = 2 (d - 1) / d x 4 MB / bandwidth for a stage's 4 MB. The first stage ends last. One bucket is
// summed when its last backward pass is over; of two, the first goes during the pass's second half.
TEST(Pipeline, AStepByHand) {
  for (const int stages : {1, 2, 4}) {
    for (const int replicas : {2, 4}) {
      for (const int tensor : {1, 2}) {
        for (const Schedule schedule : {Schedule::kGpipe, Schedule::k1F1B}) {
          Parallel parallel = pipeline(stages, schedule);
          parallel.tensor = tensor;
          const int m = 2 * stages;
          Cluster cluster = free_links(stages * replicas * tensor);
          cluster.tiers.front().bandwidth = 1e9;
          const Workload workload = job(parallel, m, 500000);
          const Seconds computed = (m + stages - 1) * (kPartForward + kPartBackward);
          const Seconds sum = 2.0 * (replicas - 1) / replicas * 4e6 / 1e9;
          const std::string what = std::to_string(stages) + " x " + std::to_string(replicas) +
                                   " x " + std::to_string(tensor);
          EXPECT_NEAR(step_of(workload, cluster, strategy_with(Fusion::Rule::kOne)), computed + sum,
                      1e-9)
              << what;
          EXPECT_NEAR(step_of(workload, cluster, strategy_with(Fusion::Rule::kNone)),
                      std::max(computed, computed - kPartBackward / 2 + sum / 2) + sum / 2, 1e-9)
              << what;
        }
      }
    }
  }
}

// Both ends hold one embedding: once the pass is over, its gradients are summed between them, and
// the first stage's next pass waits for its update.
TEST(Pipeline, TiedEndsWaitForEachOther) {
  Parallel parallel = pipeline(4, Schedule::k1F1B);
  Cluster cluster = free_links(4);
  cluster.tiers.front().bandwidth = 1e9;
  const int m = 8;
  const Seconds alone = step_of(job(parallel, m), cluster);
  EXPECT_NEAR(alone, (m + 3) * (kPartForward + kPartBackward), 1e-12);
  parallel.tied = 10'000'000;  // two ranks: each sends and gets them once, 10 ms
  EXPECT_NEAR(step_of(job(parallel, m), cluster), alone + 10e-3, 1e-9);
  const Plan plan = make_plan(job(parallel, m), cluster, {});
  EXPECT_EQ(std::ranges::count(collectives_of(plan), 10'000'000, &collective::Collective::elements),
            1);
  parallel.tied = 0;
  EXPECT_NEAR(step_of(job(parallel, m), cluster), alone, 0);
}

// Streams and messages by what they do, as traces and `plan` show them.
TEST(Pipeline, StreamsHaveNames) {
  Parallel parallel = pipeline(2, Schedule::k1F1B);
  parallel.tied = 1000;
  const Workload workload = job(parallel, 2);
  const Plan plan = make_plan(workload, free_links(4), {});
  std::set<std::string> seen;
  for (const Op& op : plan.ops) {
    seen.insert(stream_name(plan, op.stream, "exchange") + ": " +
                describe(op, plan, workload).substr(0, 12));
  }
  EXPECT_EQ(seen.count("stage 0 compute: forward"), 1U);
  EXPECT_EQ(seen.count("stage 1 compute: forward"), 1U);
  EXPECT_EQ(seen.count("stage 0 sends on: send activat"), 1U);
  EXPECT_EQ(seen.count("stage 1 sends back: send activat"), 1U);
  EXPECT_EQ(seen.count("stage 0 sends on: sum the tied"), 1U);
  for (const std::string& name : seen) {
    const bool exchanges = name.find("exchange 1") != std::string::npos;
    EXPECT_EQ(exchanges, name.find("all_reduce") != std::string::npos) << name;
  }
}

int drawn(Random& random, int most) { return static_cast<int>(random.below(index(most) + 1)); }

// A layout that a cluster of up to 64 ranks may have, any schedule and order.
Parallel random_layout(Random& random) {
  const auto up_to = [&](int most) { return drawn(random, most); };
  constexpr Schedule kPlain[] = {Schedule::kGpipe, Schedule::k1F1B, Schedule::kZeroBubble};
  Parallel parallel = pipeline(1 << up_to(2), kPlain[up_to(2)]);
  parallel.tensor = 1 << up_to(2);
  if (parallel.pipeline > 1 && up_to(2) == 0) {
    parallel.schedule = Schedule::kInterleaved;
    parallel.virtual_stages = 2 + up_to(1);
  }
  parallel.context = 1 << up_to(1);
  parallel.pipeline_inside = parallel.context == 1 && up_to(3) == 0;
  if (!parallel.pipeline_inside && up_to(2) == 0)
    parallel.expert = parallel.tensor * parallel.context;
  parallel.activation = up_to(100000);
  if (parallel.pipeline > 1 && up_to(2) == 0) parallel.tied = up_to(1000000);
  parallel.overlap_sends = up_to(1) == 1;
  return parallel;
}

// The simulation agrees with the model on random layouts.
TEST(Pipeline, SimulationAgreesWithTheModel) {
  Random random(37);
  const auto up_to = [&](int most) { return drawn(random, most); };
  std::vector<double> apart;
  for (int trial = 0; trial < 300; ++trial) {
    const Parallel parallel = random_layout(random);
    const int replicas = 1 << up_to(2);
    const int ranks = parallel.model_ranks() * replicas;
    const Cluster cluster = test::cluster_of(std::max(1, ranks / 4), std::min(4, ranks));
    Strategy strategy = strategy_with(up_to(1) == 1 ? Fusion::Rule::kOne : Fusion::Rule::kNone);
    if (up_to(1) == 1) strategy.exchange = Strategy::Exchange::kSharded;
    Workload workload = job(parallel, parallel.pipeline * (1 + up_to(2)), 500000);
    if (parallel.expert > 1) {
      for (std::size_t t = 0; t < workload.tensors.size(); t += 2)
        workload.tensors[t].expert = true;
    }
    const Plan plan = make_plan(workload, cluster, strategy);
    const auto sim = sim::make_sim_executor({cluster, {}, 1});
    const Seconds simulated = measure::step_time_of(plan, sim->run(plan, {}, 3).timeline, 1);
    const Seconds modelled = step_of(plan, cluster);
    apart.push_back(std::abs(simulated / modelled - 1));
    EXPECT_LT(apart.back(), 0.05) << "trial " << trial << ": " << parallel.pipeline
                                  << " stages, tensor " << parallel.tensor << ", context "
                                  << parallel.context << ", expert " << parallel.expert << ", "
                                  << replicas << " replicas";
  }
  std::ranges::sort(apart);
  EXPECT_LT(apart[apart.size() / 2], 1e-6);
  EXPECT_LT(apart[apart.size() * 9 / 10], 0.01);
}

// Ranks that sum one gradient are fewer than the layout has: it is no longer theirs.
TEST(Pipeline, ThePlanOfTheCollectivesHasNoLayout) {
  Workload workload = job(pipeline(2, Schedule::k1F1B), 4);
  workload.parallel.tensor = 2;
  const Cluster two = free_links(2);
  const Plan plan = exchange_plan(workload, two, strategy_with(Fusion::Rule::kOne));
  EXPECT_EQ(plan.roles, 1);
  EXPECT_EQ(plan.ranks, 2);
  ASSERT_EQ(plan.buckets.size(), 1u);
  EXPECT_EQ(plan.buckets.front().tensors.size(), workload.tensors.size());
}

}  // namespace
}  // namespace syncline::plan
