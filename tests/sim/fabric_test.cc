// Collectives on fabrics: exact cases, and the model held against the simulation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/random.h"
#include "tests/support/fabrics.h"
#include "tests/support/simulated.h"

namespace syncline::sim {
namespace {

using collective::CollectiveKind;

constexpr std::int64_t kLarge = 1 << 24;  // elements, where latency hardly counts

// Rings side by side, or one.
plan::Plan rings(int ranks, const collective::Groups& groups, std::int64_t elements = kLarge) {
  return plan_of(ranks, {{1, collective_of(CollectiveKind::kAllReduce, "ring", groups, elements)}});
}

// In closed form and in both grains.
void expect_time(const Cluster& cluster, const plan::Plan& plan, Seconds expected) {
  EXPECT_NEAR(modelled(cluster, plan), expected, 1e-9 * expected);
  EXPECT_NEAR(simulated(cluster, plan, Granularity::kStep), expected, 1e-4 * expected);
  EXPECT_NEAR(simulated(cluster, plan, Granularity::kMerged), expected, 1e-4 * expected);
}

// A job alone on a balanced fabric has the network of its tiers: the same bits.
TEST(BalancedFabric, EvaluatesExactlyAsTiers) {
  for (const int gpus : {1, 4}) {
    const Cluster tiers = gpus == 1 ? flat_cluster(16) : two_tier_cluster(16, gpus);
    const collective::Groups world = collective::world_group(tiers.ranks());
    const std::vector<fabric::Topology> balanced{
        leaves(16, 4, 1), leaves(16, 4, 1, 4),
        fabric::fat_tree({{4, 2, 2}, {1, 4, 4}, {1, 1, 1}, {0, kNodePort, kNodePort}})};
    for (const auto& topology : balanced) {
      const Cluster cluster = on_fabric(tiers, topology);
      for (const auto& algorithm : collective::algorithms()) {
        for (const auto kind : collective::kAllCollectiveKinds) {
          if (!algorithm.fits(kind, tiers.ranks())) continue;
          for (const std::int64_t elements : {std::int64_t{100}, kLarge}) {
            const plan::Plan plan =
                plan_of(tiers.ranks(), {{1, {kind, &algorithm, world, elements, 4, 0}}});
            EXPECT_EQ(modelled(cluster, plan), modelled(tiers, plan)) << algorithm.name;
          }
        }
      }
    }
  }
}

// Every message of a halving between blocks crosses the spine: with k nodes for one cable upwards,
// what crosses takes k times as long.
TEST(Oversubscription, MultipliesTheTimeIfAllMessagesCross) {
  for (const double k : {1.0, 2.0, 4.0, 8.0}) {
    const Cluster cluster = on_fabric(flat_cluster(8), leaves(8, 4, k));
    // Ranks 0-3 and 4-7 in two leaves; four groups, each of a rank here and one there.
    // Two ranks: two rounds of half the payload.
    SCOPED_TRACE(k);
    expect_time(cluster, rings(8, {0, 4, 1, 2, 4}), 2 * 20e-6 + k * 4.0 * kLarge / kNodePort);
  }
}

// From leaf to leaf there are two links, by way of a spine; inside a leaf there is none.
TEST(Hops, CostTimeOnTheWayFromSwitchToSwitch) {
  fabric::Topology topology = leaves(8, 4, 1);
  topology.hop = 3e-6;
  const Cluster cluster = on_fabric(flat_cluster(8), topology);
  for (const auto& [step, hops] : {std::pair{1, 0}, std::pair{4, 2}}) {
    // Two ranks, `step` apart: two rounds of half the payload.
    SCOPED_TRACE(step);
    expect_time(cluster, rings(8, {0, 1, 1, 2, step}, 1000),
                2 * (20e-6 + hops * 3e-6) + 4000 / kNodePort);
  }
}

// A ring in the order of the leaves crosses each trunk once, whose four cables' worth it does not
// need; the same ring over nodes that are dealt out leaf by leaf crosses with every message.
TEST(Oversubscription, DependsOnThePlacementForARing) {
  const plan::Plan plan = all_reduce_plan(16, "ring", kLarge);
  const Seconds alone = modelled(flat_cluster(16), plan);
  const fabric::Topology topology = leaves(16, 4, 4);
  EXPECT_NEAR(modelled(on_fabric(flat_cluster(16), topology), plan), alone, 1e-9 * alone);
  const Cluster spread = on_fabric(
      flat_cluster(16), topology, fabric::place_nodes(topology, 16, fabric::Placement::kSpread, 1));
  const double rounds = 30;
  const Seconds expected = rounds * (20e-6 + 4 * 4.0 * kLarge / 16 / kNodePort);
  EXPECT_NEAR(modelled(spread, plan), expected, 1e-6 * expected);
  EXPECT_NEAR(simulated(spread, plan, Granularity::kStep), expected, 1e-3 * expected);
}

// Eight rings side by side, one a GPU's NIC: on rails of their own they meet nobody inside a block,
// however narrow the spines are.
TEST(Rails, CostNothingToCollectivesThatKeepToThem) {
  const int gpus = 4;
  const Cluster tiers = two_tier_cluster(8, gpus);
  const collective::Groups by_gpu = collective::shard_groups(tiers.ranks(), gpus);
  const plan::Plan plan = rings(tiers.ranks(), by_gpu);
  const Cluster narrow = on_fabric(tiers, leaves(8, 8, 1000, gpus));
  EXPECT_NEAR(modelled(narrow, plan), modelled(tiers, plan), 1e-9 * modelled(tiers, plan));
  EXPECT_NEAR(simulated(narrow, plan, Granularity::kStep),
              simulated(tiers, plan, Granularity::kStep), 1e-6 * modelled(tiers, plan));
  // One of the rings alone has one NIC, a quarter of the node's port.
  collective::Groups single = by_gpu;
  single.count = 1;
  const plan::Plan alone = rings(tiers.ranks(), single);
  EXPECT_NEAR(modelled(narrow, alone), modelled(narrow, plan), 1e-6 * modelled(narrow, plan));
  // A ring from rail to rail crosses the spines, and 1000 times 8 NICs' worth are missing there.
  const Cluster crossing = on_fabric(tiers, leaves(8, 1, 4, gpus));
  EXPECT_NEAR(modelled(crossing, plan) / modelled(tiers, plan), 4, 0.01);
}

// A ring over all GPUs has all NICs of a node, and rings of one GPU a node have its share of them.
TEST(Rails, AllNicsOfANodeCarryWhateverTheGpusAreThatShareThem) {
  const int gpus = 8;
  const Cluster tiers = two_tier_cluster(4, gpus);
  for (const int nics : {2, 4, 8, 12, 16}) {
    const Cluster cluster = on_fabric(tiers, leaves(4, 4, 1, nics));
    for (const auto& groups : {collective::world_group(32), collective::shard_groups(32, gpus)}) {
      const plan::Plan plan = rings(32, groups);
      const Seconds expected = modelled(tiers, plan);
      EXPECT_NEAR(modelled(cluster, plan), expected, 1e-3 * expected) << nics;
      EXPECT_NEAR(simulated(cluster, plan, Granularity::kStep),
                  simulated(tiers, plan, Granularity::kStep), 1e-3 * expected)
          << nics;
    }
  }
}

TEST(Torus, ARingHasNoContention) {
  const std::vector<int> sizes{4, 4, 2};
  const Cluster flat = flat_cluster(32);
  const Cluster cluster = on_fabric(flat, fabric::torus(sizes, kNodePort));
  const plan::Plan plan = all_reduce_plan(32, "ring", kLarge);
  EXPECT_NEAR(modelled(cluster, plan), modelled(flat, plan), 1e-9 * modelled(flat, plan));
  // Scattered, messages of several pairs share links.
  const fabric::Topology topology = fabric::torus(sizes, kNodePort);
  const Cluster scattered = on_fabric(
      flat, topology, fabric::place_nodes(topology, 32, fabric::Placement::kScattered, 1));
  EXPECT_GT(modelled(scattered, plan), 1.9 * modelled(flat, plan));
}

// Two collectives at once over one narrow trunk: max-min gives each half of it.
TEST(Spine, IsSharedMaxMin) {
  const Cluster cluster = on_fabric(flat_cluster(8), leaves(8, 4, 4));
  const auto pair = [&](int base) {
    return collective_of(CollectiveKind::kAllReduce, "ring", {base, 1, 0, 2, 4}, kLarge);
  };
  const Seconds alone = modelled(cluster, plan_of(8, {{1, pair(0)}}));
  const plan::Plan both = plan_of(8, {{1, pair(0)}, {2, pair(1)}});
  EXPECT_NEAR(modelled(cluster, both) / alone, 2, 0.01);
  EXPECT_NEAR(simulated(cluster, both, Granularity::kStep) / alone, 2, 0.01);
}

// Steps of two jobs that only communicate, on these nodes of a fabric, together over alone. The
// second one's is the mean of its whole steps.
std::pair<double, double> slowdowns(fabric::Topology topology, const std::vector<int>& first,
                                    const std::vector<int>& second) {
  topology.shared = true;
  const auto job = [&](const std::vector<int>& nodes) {
    const int ranks = static_cast<int>(nodes.size());
    return run::Beside{all_reduce_plan(ranks, "ring", kLarge),
                       on_fabric(flat_cluster(ranks), topology, nodes)};
  };
  run::ExecutorSettings settings;
  settings.cluster = job(first).cluster;
  settings.others = {job(second)};
  constexpr int kPeriods = 12;
  const auto outcome = make_sim_executor(settings)->run(job(first).plan, {}, kPeriods);
  const auto& ends = outcome.others.at(0);
  const auto steps = static_cast<double>(ends.size());
  const auto alone = [](const run::Beside& one) {
    return simulated(one.cluster, one.plan, Granularity::kMerged, false);
  };
  return {outcome.timeline.period_ends.back() / kPeriods / alone(job(first)),
          ends.back() / steps / alone(job(second))};
}

TEST(SeveralJobs, ShareASpineMaxMin) {
  const fabric::Topology narrow = leaves(8, 4, 8);
  const auto [first, second] = slowdowns(narrow, {0, 4}, {1, 5});
  EXPECT_NEAR(first, 2, 0.01);
  EXPECT_NEAR(second, 2, 0.01);
  const auto [two, one] = slowdowns(narrow, {0, 4, 1, 5}, {2, 6});
  EXPECT_NEAR(two, 1.5, 0.01);
  EXPECT_NEAR(one, 3, 0.3);  // the last of its steps are cut off
}

TEST(SeveralJobs, OnOtherLinksAreNotSlowed) {
  const auto [first, second] = slowdowns(leaves(8, 4, 8), {0, 4}, {1, 2});
  EXPECT_NEAR(first, 1, 1e-6);
  EXPECT_NEAR(second, 1, 1e-6);
}

// Fabrics, placements and collectives at random. Alone and two at once.
struct FabricCase {
  Cluster tiers;  // the same without the fabric
  Cluster cluster;
  plan::Plan plan;
  std::string words;
};

fabric::Topology random_fabric(Random& random, int nodes, int nics) {
  const double narrow = std::exp2(random.below(4)) / 2;
  fabric::Topology topology;
  switch (random.below(4)) {
    case 0:
      topology = fabric::fat_tree(
          {{4, 2, 4}, {1, 2, 2}, {1, 1, 1}, {0, 2 * kNodePort / narrow, 2 * kNodePort / narrow}});
      break;
    case 1:
      topology = leaves(nodes, 1 << (1 + random.below(3)), narrow, nics);
      break;
    case 2:
      topology = fabric::dragonfly(
          {4, 4, 2, 1 + static_cast<int>(random.below(2)), kNodePort / narrow, kNodePort / narrow});
      break;
    default:
      topology = fabric::torus({4, 4, 2}, kNodePort / narrow);
  }
  topology.hashed = random.below(2) == 0;
  topology.seed = random.below(100);
  topology.parts = std::max(topology.lanes, topology.hashed ? nics : 1);
  return topology;
}

FabricCase random_case(std::uint64_t seed) {
  Random random(seed, 0);
  const int nodes = 4 << random.below(4);
  const int gpus = std::min(1 << random.below(3), 64 / nodes);
  const int nics = gpus;
  const Cluster tiers = gpus > 1 ? two_tier_cluster(nodes, gpus) : flat_cluster(nodes);
  fabric::Topology topology = random_fabric(random, nodes, nics);
  if (seed % 4 == 0) topology.hop = 2e-6;
  const auto how = static_cast<fabric::Placement>(random.below(3));
  FabricCase made{
      tiers, on_fabric(tiers, topology, fabric::place_nodes(topology, nodes, how, seed)), {}, {}};
  const int ranks = tiers.ranks();
  const auto& algorithm = collective::algorithms()[random.below(collective::algorithms().size())];
  const auto kind = collective::kAllCollectiveKinds[random.below(5)];
  const std::string name = algorithm.fits(kind, ranks) ? std::string(algorithm.name) : "ring";
  const collective::Groups groups = gpus > 1 && random.below(2) == 0
                                        ? collective::shard_groups(ranks, gpus)
                                        : collective::world_group(ranks);
  const std::int64_t elements = 1 << (14 + random.below(11));
  const bool fits = collective::find_algorithm(name)->fits(kind, groups.size);
  const auto what = collective_of(kind, fits ? name : "ring", groups, elements);
  made.plan =
      random.below(4) == 0 ? plan_of(ranks, {{1, what}, {2, what}}) : plan_of(ranks, {{1, what}});
  made.words =
      topology.kind + (topology.hashed ? " hashed " : " even ") + std::to_string(nodes) + " x " +
      std::to_string(gpus) + ", placement " + std::to_string(static_cast<int>(how)) + ", " + name +
      " " + std::string(to_string(kind)) + " groups of " + std::to_string(groups.size) + ", " +
      std::to_string(elements) + " elements, " + std::to_string(made.plan.ops.size()) + " at once";
  return made;
}

// By how many percent the model is off, of all cases.
struct Errors {
  std::vector<std::pair<double, std::string>> cases;

  void add(Seconds model, Seconds truth, const std::string& words) {
    cases.emplace_back(100 * (model / truth - 1), words);
  }
  double percentile(double share) {
    std::ranges::sort(cases, {}, [](const auto& each) { return std::fabs(each.first); });
    return std::fabs(
        cases[static_cast<std::size_t>(share * static_cast<double>(cases.size() - 1))].first);
  }
  void print(const char* against) {
    const double middle = percentile(0.5);
    std::printf("%-34s median %.2f %%, 90th %.2f %%, 97th %.2f %%, worst %+.1f %% (%s)\n", against,
                middle, percentile(0.9), percentile(0.97), cases.back().first,
                cases.back().second.c_str());
  }
};

TEST(RandomFabrics, TheModelAgreesWithEveryMessageSimulated) {
  Errors stepped;
  Errors merged;
  Errors on_tiers;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const FabricCase each = random_case(seed);
    const Seconds model = modelled(each.cluster, each.plan);
    stepped.add(model, simulated(each.cluster, each.plan, Granularity::kStep), each.words);
    merged.add(model, simulated(each.cluster, each.plan, Granularity::kMerged, false), each.words);
    on_tiers.add(modelled(each.tiers, each.plan),
                 simulated(each.tiers, each.plan, Granularity::kStep), each.words);
  }
  stepped.print("message by message");
  merged.print("merged");
  on_tiers.print("message by message, on tiers");
  EXPECT_LT(stepped.percentile(0.5), 0.5);
  EXPECT_LT(stepped.percentile(0.9), 3);
  EXPECT_LT(merged.percentile(0.97), 1);
}

}  // namespace
}  // namespace syncline::sim
