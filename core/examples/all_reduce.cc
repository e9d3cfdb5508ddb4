// One all-reduce on a small cluster by every algorithm of the engine: its rounds and its time.
#include <cstdint>
#include <cstdio>
#include <string>

#include "core/algorithm.h"
#include "core/cluster.h"
#include "core/cost.h"

namespace collective = syncline::collective;

// Returns two nodes of four GPUs: 100 GB/s and 5 us inside a node, 10 GB/s and 20 us between them.
static syncline::Cluster small_cluster() {
  syncline::Cluster cluster;
  cluster.nodes = 2;
  cluster.gpus_per_node = 4;
  cluster.tiers = {{.name = "node", .span = 4, .latency = 5e-6, .bandwidth = 100e9},
                   {.name = "network", .span = 8, .latency = 20e-6, .bandwidth = 10e9}};
  return cluster;
}

int main() {
  const syncline::Cluster cluster = small_cluster();
  collective::CostCache costs(cluster);
  collective::Collective all_reduce;
  all_reduce.kind = collective::CollectiveKind::kAllReduce;
  all_reduce.groups = collective::world_group(cluster.ranks());
  all_reduce.unit = 4;  // bytes of an fp32 value

  std::printf("all-reduce on %d ranks    4 KB: rounds     us  64 MB: rounds     us\n",
              cluster.ranks());
  for (const collective::Algorithm& algorithm : collective::algorithms()) {
    std::printf("%-21s", std::string(algorithm.name).c_str());
    all_reduce.algorithm = &algorithm;
    for (const std::int64_t elements : {1'000, 16'000'000}) {
      all_reduce.elements = elements;
      const auto rounds = algorithm.rounds(all_reduce.kind, cluster.ranks(), elements).size();
      std::printf("  %13zu  %5.0f", rounds, costs.time(all_reduce) * 1e6);
    }
    std::printf("\n");
  }
}
