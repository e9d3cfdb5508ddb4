#include "formats/dialect/write.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "core/plan.h"

namespace syncline::dialect {
namespace {

using collective::CollectiveKind;

// The algorithm of a collective on one kind of communicator; empty: NCCL's own choice.
struct Choice {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int nodes = 0;
  int ranks = 0;
  std::string algorithm;

  bool operator==(const Choice&) const = default;
};

// Returns NCCL's name: "allreduce" for "all_reduce".
std::string nccl_name(CollectiveKind kind) {
  std::string name(collective::to_string(kind));
  std::erase(name, '_');
  return name;
}

// Returns NCCL's name of the algorithm. NCCL has trees only for all-reduces.
std::string nccl_algorithm(const collective::Collective& collective) {
  const bool tree = !collective.nccl && collective.algorithm->name == "double_binary_tree";
  if (collective.nccl || (tree && collective.kind != CollectiveKind::kAllReduce)) return {};
  return tree ? "tree" : std::string(collective.algorithm->name);
}

// Returns the nodes of the first group: all groups of a regular partition are alike.
int nodes_of(const collective::Groups& groups, const Cluster& cluster) {
  std::set<int> nodes;
  for (int m = 0; m < groups.size; ++m) nodes.insert(groups.rank(0, m) / cluster.gpus_per_node);
  return static_cast<int>(nodes.size());
}

std::vector<Choice> choices_of(const Strategy& strategy, const Workload& workload,
                               const Cluster& cluster) {
  std::vector<Choice> choices;
  if (cluster.library != Library::kNccl) return choices;
  for (const auto& op : plan::exchange_plan(workload, cluster, strategy).ops) {
    const auto* work = std::get_if<collective::Collective>(&op.work);
    if (work == nullptr || work->bucket < 0) continue;  // stages' messages
    Choice choice{work->kind, nodes_of(work->groups, cluster), work->groups.size,
                  nccl_algorithm(*work)};
    if (std::find(choices.begin(), choices.end(), choice) == choices.end()) {
      choices.push_back(std::move(choice));
    }
  }
  return choices;
}

}  // namespace

std::string nccl_table(const Strategy& strategy, const Workload& workload, const Cluster& cluster) {
  std::string lines;
  for (const Choice& choice : choices_of(strategy, workload, cluster)) {
    if (choice.algorithm.empty()) continue;
    lines += nccl_name(choice.kind) + ",0,-1," + choice.algorithm + ",any,-1," +
             std::to_string(choice.nodes) + "," + std::to_string(choice.ranks) + "\n";
  }
  return lines;
}

std::string nccl_setting(const Strategy& strategy, const Workload& workload,
                         const Cluster& cluster) {
  std::map<std::string, std::set<std::string>> algorithms;
  for (const Choice& choice : choices_of(strategy, workload, cluster)) {
    algorithms[nccl_name(choice.kind)].insert(choice.algorithm);
  }
  std::string setting;
  for (const auto& [name, names] : algorithms) {
    if (names.size() > 1) return {};
    if (names.begin()->empty()) continue;
    setting += (setting.empty() ? "" : ";") + name + ":" + *names.begin();
  }
  return setting.empty() ? setting : "NCCL_ALGO=" + setting;
}

}  // namespace syncline::dialect
