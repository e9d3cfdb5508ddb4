// A new collective algorithm: recursive doubling. In round k each rank exchanges its whole sum with
// the rank whose number differs in bit k, so 2^n ranks are done after n rounds.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <string>

#include "core/algorithm.h"
#include "core/cluster.h"
#include "core/collective/guarded.h"
#include "core/cost.h"

using namespace syncline::collective;

namespace doubling {

static int steps(int ranks) { return std::countr_zero(static_cast<unsigned>(ranks)); }

static bool fits(CollectiveKind kind, int ranks) {
  return kind == CollectiveKind::kAllReduce && std::has_single_bit(static_cast<unsigned>(ranks));
}

// The exact transfers, which executors carry out.
static Schedule rounds(CollectiveKind, int ranks, std::int64_t elements) {
  Schedule schedule;
  for (int step = 0; elements > 0 && step < steps(ranks); ++step) {
    Round& round = schedule.emplace_back();
    for (int rank = 0; rank < ranks; ++rank) {
      round.push_back({rank, rank ^ (1 << step), {0, elements}, true});
    }
  }
  return schedule;
}

// The same for costing: the edges of each step, and the share of the payload on each edge.
static EdgeSets edges(CollectiveKind kind, int ranks) {
  EdgeSets sets;
  for (const Round& round : rounds(kind, ranks, 1)) sets.push_back(edges_of(round));
  return sets;
}

static Stages stages(CollectiveKind, int ranks, std::int64_t) {
  Stages stages;
  for (std::size_t step = 0; step < static_cast<std::size_t>(steps(ranks)); ++step) {
    stages.push_back({step, step + 1, 1.0, 1});
  }
  return stages;
}

// The textbook formula: log2 N start-ups and log2 N payloads through each port.
static Cost cost(CollectiveKind, int ranks, std::int64_t) {
  const double all = steps(ranks);
  return {all, all};
}

}  // namespace doubling

int main() {
  hand_in(guarded_algorithm<doubling::fits, doubling::rounds, doubling::edges, doubling::stages,
                            doubling::cost, one_chunk>(
      "doubling", "partners swap all they have: log2 N steps"));

  syncline::Cluster cluster;
  cluster.nodes = 8;
  cluster.tiers = {{.name = "network", .span = 8, .latency = 20e-6, .bandwidth = 10e9}};
  CostCache costs(cluster);
  Collective sum;
  sum.groups = world_group(cluster.ranks());
  sum.unit = 4;  // bytes of an fp32 value
  std::printf("all-reduce on 8 ranks, us    4 KB    1 MB   64 MB\n");
  for (const Algorithm& algorithm : algorithms()) {
    sum.algorithm = &algorithm;
    std::printf("%-25s", std::string(algorithm.name).c_str());
    for (const std::int64_t elements : {1'000, 250'000, 16'000'000}) {
      sum.elements = elements;
      std::printf(" %7.0f", costs.time(sum) * 1e6);
    }
    std::printf("\n");
  }
}
