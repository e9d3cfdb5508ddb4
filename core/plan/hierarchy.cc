#include "core/plan/hierarchy.h"

namespace syncline {
namespace {

const Algorithm* named(const std::string& name, const std::string& fallback) {
  return find_algorithm(name.empty() ? fallback : name);
}

// Sharding splits the payload evenly; the odd elements are rounded up so that none is lost.
std::int64_t shard(std::int64_t elements, int parts) { return (elements + parts - 1) / parts; }

}  // namespace

std::vector<Collective> all_reduce_by(const Strategy& strategy, const Cluster& cluster,
                                      std::int64_t elements, Bytes unit, int bucket) {
  using Kind = CollectiveKind;
  const Hierarchy& hierarchy = strategy.hierarchy;
  const int ranks = cluster.ranks();
  const int size = hierarchy.group_size;
  std::vector<Collective> collectives;
  const auto add = [&](Kind kind, const Algorithm* algorithm, Groups groups, std::int64_t count) {
    if (groups.size < 2) return;
    collectives.push_back({kind, algorithm, groups, count, unit, bucket});
  };

  if (hierarchy.form == Hierarchy::Form::kFlat) {
    add(Kind::kAllReduce, find_algorithm(strategy.algorithm), world_group(ranks), elements);
    return collectives;
  }
  const Algorithm* inside = named(hierarchy.inside, strategy.algorithm);
  const Algorithm* across = named(hierarchy.across, strategy.algorithm);
  const Groups blocks = block_groups(ranks, size);
  if (hierarchy.form == Hierarchy::Form::kLeaders) {
    collectives.reserve(3);
    add(hierarchy.first_all_reduce ? Kind::kAllReduce : Kind::kReduce, inside, blocks, elements);
    add(Kind::kAllReduce, across, leader_group(ranks, size), elements);
    add(Kind::kBroadcast, inside, blocks, elements);
    return collectives;
  }
  const std::int64_t part = shard(elements, size);
  collectives.reserve(3);
  add(Kind::kReduceScatter, inside, blocks, part * size);
  add(Kind::kAllReduce, across, shard_groups(ranks, size), part);
  add(Kind::kAllGather, inside, blocks, part * size);
  return collectives;
}

Collective all_gather_by(const Strategy& strategy, int ranks, std::int64_t elements, Bytes unit,
                         int bucket) {
  const Algorithm* algorithm = find_algorithm(strategy.algorithm);
  if (!algorithm->fits(CollectiveKind::kAllGather, ranks)) algorithm = find_algorithm("ring");
  return {CollectiveKind::kAllGather, algorithm, world_group(ranks), elements, unit, bucket};
}

}  // namespace syncline
