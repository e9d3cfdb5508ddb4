// Small random scenarios over everything that a strategy can say, on clusters of one to three
// tiers: what executors and bounds are held against each other on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "formats/input/document.h"
#include "tests/support/dice.h"

namespace syncline::test {

inline Json random_small_workload(Dice& dice) {
  Json tensors = Json::array();
  const int count = dice.between(1, 6);
  for (int t = 0; t < count; ++t) {
    const auto elements = dice.pick<int>({1000, 30000, 262144, 1000000, 4000000});
    Json tensor{{"name", "l" + std::to_string(t / 2) + ".p" + std::to_string(t)},
                {"shape", Json::array({elements})},
                {"backward_us", dice.pick<int>({0, 0, 20, 150, 700, 3000})}};
    if (dice.chance(10)) tensor["dtype"] = dice.pick<std::string>({"fp16", "fp64"});
    tensors.push_back(tensor);
  }
  return Json{{"name", "random"},
              {"batch", 1},
              {"forward_ms", dice.pick<int>({0, 0, 1, 10})},
              {"update_ms", dice.pick<int>({0, 0, 1})},
              {"tensors", tensors}};
}

inline Json random_links(Dice& dice) {
  Json tier{{"latency_us", dice.pick<int>({1, 2, 5, 10, 20, 50})},
            {"bandwidth_gbps", dice.pick<int>({1, 10, 25, 100, 400, 1000})}};
  if (dice.chance(15)) tier["flow_cap_gbps"] = tier["bandwidth_gbps"].get<double>() * 0.4;
  if (dice.chance(15)) tier["oversubscription"] = dice.pick<double>({1.5, 2, 4});
  if (dice.chance(15)) tier["nics"] = 2;
  if (dice.chance(15)) tier["efficiency"] = 0.8;
  if (tier["latency_us"] == 50) tier["upload_gbps"] = tier["bandwidth_gbps"].get<double>() / 4;
  return tier;
}

inline Json random_small_cluster(Dice& dice, int most_ranks) {
  int nodes = 0;
  int gpus = 0;
  do {
    nodes = dice.pick<int>({1, 2, 3, 4, 5, 6, 8, 12});
    gpus = dice.pick<int>({1, 2, 3, 4, 6, 8});
  } while (nodes * gpus < 2 || nodes * gpus > most_ranks);
  Json cluster{{"name", "random"}, {"nodes", nodes}, {"gpus_per_node", gpus}};
  if (gpus > 1) cluster["intra"] = random_links(dice);
  if (nodes > 1) cluster["inter"] = random_links(dice);
  if (nodes > 2 && nodes % 2 == 0 && dice.chance(30)) {
    Json level = random_links(dice);
    level["name"] = "pods";
    level["nodes_per_group"] = nodes / 2;
    cluster["upper"] = Json::array({level});
  }
  if (dice.chance(30)) cluster["collective_overhead_us"] = dice.between(0, 30);
  Json device{{"name", dice.pick<std::string>({"V100", "A100", "H100"})}};
  if (dice.chance(40)) {
    device["memory_gbytes_per_s"] = dice.between(100, 900);
    device["launch_us"] = dice.between(0, 10);
    device["host_sync_us"] = dice.between(0, 50);
    if (dice.chance(50)) {
      device["data_parallel_overhead_us"] = dice.between(0, 500);
      device["data_parallel_slowdown"] = dice.between(0, 20) / 100.0;
    }
  }
  cluster["device"] = device;
  return cluster;
}

// Groups of any size that divides the ranks.
inline Json random_hierarchy(Dice& dice, int ranks, const std::vector<std::string>& algorithms) {
  std::vector<int> sizes;
  for (int size = 1; size <= ranks; ++size) {
    if (ranks % size == 0) sizes.push_back(size);
  }
  Json hierarchy{{"form", dice.pick<std::string>({"leaders", "sharded"})},
                 {"group_size", dice.pick(sizes)}};
  if (dice.chance(50)) hierarchy["inside"] = dice.pick(algorithms);
  if (dice.chance(50)) hierarchy["across"] = dice.pick(algorithms);
  if (hierarchy["form"] == "leaders" && dice.chance(30)) hierarchy["first"] = "all_reduce";
  return hierarchy;
}

inline Json random_small_strategy(Dice& dice, int ranks) {
  const std::vector<std::string> algorithms{
      "ring", "ring", "to_one", "double_binary_tree", "halving_doubling", "nccl"};
  Json strategy{{"name", "s"}, {"algorithm", dice.pick(algorithms)}};
  if (dice.chance(10)) {
    strategy["overlap"] = false;
  } else {
    strategy["streams"] = dice.pick<int>({1, 1, 2, 3, 4});
  }
  const auto rule = dice.pick<std::string>({"none", "none", "layer", "size", "count", "one"});
  strategy["fusion"] = {{"rule", rule}};
  if (rule == "size") strategy["fusion"]["size_mb"] = dice.between(1, 60) / 4.0;
  if (rule == "count") strategy["fusion"]["count"] = dice.between(1, 4);
  if (dice.chance(30)) {
    strategy["hierarchy"] = random_hierarchy(dice, ranks, algorithms);
  }
  if (dice.chance(25)) strategy["exchange"] = dice.pick<std::string>({"decoupled", "sharded"});
  if (dice.chance(25)) strategy["cross_step"] = true;
  if (dice.chance(15)) strategy["priority"] = "layer";
  if (rule == "none" && dice.chance(20)) strategy["partition_mb"] = 1;
  if (dice.chance(15)) strategy["host_sync"] = true;
  if (dice.chance(15)) strategy["bucket_copies"] = true;
  if (dice.chance(20)) strategy["update"] = "per_bucket";
  if (dice.chance(15)) {
    strategy["local_sgd"] = {{"period", dice.pick<int>({1, 2, 4})}};
  } else if (dice.chance(25)) {
    strategy["compression"] = {{"codec", "fp16"}};
    if (dice.chance(50)) {
      strategy["compression"] = {
          {"codec", "dgc"}, {"sparsity", Json::array({0.99})}, {"min_elements", 2000}};
    }
  }
  return strategy;
}

// One strategy, "s". What contradicts itself is drawn again.
inline Json random_small_scenario(std::uint64_t seed, int most_ranks) {
  Dice dice(seed);
  const Json cluster = random_small_cluster(dice, most_ranks);
  const int ranks = cluster["nodes"].get<int>() * cluster["gpus_per_node"].get<int>();
  Json root{{"name", "random"},
            {"workload", random_small_workload(dice)},
            {"cluster", cluster},
            {"simulation", {{"periods", 3}, {"warmup", 1}}}};
  while (true) {
    root["strategies"] = Json::array({random_small_strategy(dice, ranks)});
    try {
      input::parse_scenario(input::document_from_text("random.json", root.dump()));
      return root;
    } catch (const InputError&) {
      continue;
    }
  }
}

}  // namespace syncline::test
