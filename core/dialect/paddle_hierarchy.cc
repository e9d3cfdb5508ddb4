#include "core/dialect/paddle_hierarchy.h"

#include "core/json/reader.h"

namespace syncline::dialect {
namespace {

constexpr const char* kKey = "hierarchical_allreduce_inter_nranks";

std::string number(std::int64_t value) { return std::to_string(value); }

// The documents take hierarchical_allreduce_inter_nranks for the number of leaders (here one a node
// unless given) and all-reduce inside the groups first.
Hierarchy documented_hierarchy(Reader& config, std::int64_t inter, const Cluster& cluster) {
  const int ranks = cluster.ranks();
  const std::int64_t leaders = config.has(kKey) ? inter : cluster.nodes;
  if (leaders < 1 || ranks % leaders != 0) {
    config.fail(kKey, "found " + number(leaders) + ", expected a divisor of the " + number(ranks) +
                          " workers: as the documents read it, the number of leaders");
  }
  Hierarchy hierarchy;
  hierarchy.form = Hierarchy::Form::kLeaders;
  hierarchy.group_size = ranks / static_cast<int>(leaders);
  hierarchy.first_all_reduce = true;
  return hierarchy;
}

// parallel_executor.cc, InitOrGetNCCLCommunicator and nccl_op_handle.h: reduce to the first rank of
// each group, all-reduce among those, broadcast.
Hierarchy hierarchy_of(Reader& config, std::int64_t inter, const Cluster& cluster,
                       std::vector<std::string>& notes) {
  const int ranks = cluster.ranks();
  if (inter <= 1) {
    config.fail(kKey, "The inter_nranks should be greater than 1, but received " + number(inter) +
                          (config.has(kKey) ? "" : ", its default") +
                          " (ranks a group; the nodes have " + number(cluster.gpus_per_node) + ")");
  }
  if (ranks % inter != 0) {
    config.fail(kKey, "num_trainers:" + number(ranks) + " mod inter_nranks:" + number(inter) +
                          " != 0, expected a divisor of the number of workers");
  }
  if (inter * inter != ranks) {
    notes.push_back(std::string(kKey) + " = " + number(inter) +
                    " is the number of ranks a group, " + number(ranks / inter) +
                    (ranks == inter ? " group" : " groups") +
                    "; the documents take it for the number of leaders");
  }
  notes.push_back(
      "hierarchical all-reduce begins with a reduce to each group's leader; the documents tell of "
      "an all-reduce inside the group");
  notes.push_back(
      "Fleet 2.0 and 2.1 hand the group size to gen_nccl_id under a misspelt name and may stop "
      "with 'inter_nranks -1 <= 1 while in hierarchical allreduce mode'");
  Hierarchy hierarchy;
  hierarchy.form = Hierarchy::Form::kLeaders;
  hierarchy.group_size = static_cast<int>(inter);
  return hierarchy;
}

}  // namespace

Hierarchy read_paddle_hierarchy(Reader& config, std::int64_t inter, const Cluster& cluster,
                                bool as_documents, std::vector<std::string>& notes) {
  return as_documents ? documented_hierarchy(config, inter, cluster)
                      : hierarchy_of(config, inter, cluster, notes);
}

}  // namespace syncline::dialect
