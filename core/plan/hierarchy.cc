#include "core/plan/hierarchy.h"

#include "core/collective/nccl.h"

namespace syncline::plan {
namespace {

const std::string& named(const std::string& name, const std::string& fallback) {
  return name.empty() ? fallback : name;
}

// Sharding splits the payload evenly; the odd elements are rounded up so that none is lost.
std::int64_t shard(std::int64_t elements, int parts) { return (elements + parts - 1) / parts; }

}  // namespace

std::vector<collective::Collective> all_reduce_by(const Strategy& strategy, const Cluster& cluster,
                                                  std::int64_t elements, Bytes unit, int bucket) {
  using Kind = collective::CollectiveKind;
  const Hierarchy& hierarchy = strategy.hierarchy;
  const int ranks = cluster.ranks();
  const int size = hierarchy.group_size;
  std::vector<collective::Collective> collectives;
  const auto add = [&](Kind kind, const std::string& algorithm, collective::Groups groups,
                       std::int64_t count) {
    if (groups.size < 2) return;
    collectives.push_back({kind, nullptr, groups, count, unit, bucket, {}});
    collective::choose_algorithm(collectives.back(), algorithm, cluster);
  };

  if (hierarchy.form == Hierarchy::Form::kFlat) {
    add(Kind::kAllReduce, strategy.algorithm, collective::world_group(ranks), elements);
    return collectives;
  }
  // Two levels: inside blocks of neighbours, which share fast links, and across them.
  const std::string& inside = named(hierarchy.inside, strategy.algorithm);
  const std::string& across = named(hierarchy.across, strategy.algorithm);
  const collective::Groups blocks = collective::block_groups(ranks, size);
  if (hierarchy.form == Hierarchy::Form::kLeaders) {
    collectives.reserve(3);
    add(hierarchy.first_all_reduce ? Kind::kAllReduce : Kind::kReduce, inside, blocks, elements);
    add(Kind::kAllReduce, across, collective::leader_group(ranks, size), elements);
    add(Kind::kBroadcast, inside, blocks, elements);
    return collectives;
  }
  // Sharded, every rank of a block carries its part across, so all NICs work at once.
  const std::int64_t part = shard(elements, size);
  collectives.reserve(3);
  add(Kind::kReduceScatter, inside, blocks, part * size);
  add(Kind::kAllReduce, across, collective::shard_groups(ranks, size), part);
  add(Kind::kAllGather, inside, blocks, part * size);
  return collectives;
}

collective::Collective all_gather_by(const Strategy& strategy, const Cluster& cluster,
                                     std::int64_t elements, Bytes unit, int bucket) {
  constexpr auto kKind = collective::CollectiveKind::kAllGather;
  const int ranks = cluster.ranks();
  collective::Collective collective{kKind,  nullptr, collective::world_group(ranks), elements, unit,
                                    bucket, {}};
  const bool fits = collective::choice_fits(strategy.algorithm, kKind, ranks);
  collective::choose_algorithm(collective, fits ? strategy.algorithm : "ring", cluster);
  return collective;
}

}  // namespace syncline::plan
