#include "core/cost/law_provider.h"

#include <algorithm>
#include <memory>

#include "core/collective/collective.h"

namespace syncline::cost {
namespace {

// Members of the first group on the node of its member `first`, that one and those after it.
int members_beside(const collective::Groups& groups, int first, int gpus_per_node) {
  if (groups.member_step == 0) return 1;
  const int left = gpus_per_node - 1 - groups.rank(0, first) % gpus_per_node;
  return std::min(left / groups.member_step + 1, groups.size - first);
}

// Whether the group has a member on the node.
bool touches(const collective::Groups& groups, int group, int node, int gpus_per_node) {
  const int begin = groups.rank(group, 0);
  const int before = std::max(0, node * gpus_per_node - begin);
  const int step = std::max(1, groups.member_step);
  const int member = (before + step - 1) / step;  // the first that is not on an earlier node
  return member < groups.size && groups.rank(group, member) / gpus_per_node == node;
}

// What the law is asked about: NCCL's choice, or an algorithm that NCCL was forced to in some
// table. Empty: nothing that was measured.
std::optional<ForcedAlgorithm> forced_of(const MeasuredLaw& law,
                                         const collective::Collective& collective) {
  if (collective.nccl) return ForcedAlgorithm::kNone;
  if (collective.algorithm == nullptr) return std::nullopt;
  ForcedAlgorithm forced = ForcedAlgorithm::kNone;
  if (collective.algorithm->name == "ring") forced = ForcedAlgorithm::kRing;
  if (collective.algorithm->name == "double_binary_tree") forced = ForcedAlgorithm::kTree;
  if (forced == ForcedAlgorithm::kNone) return std::nullopt;
  if (forced == ForcedAlgorithm::kTree && law.tree) return forced;
  for (const TableLaw& table : law.tables) {
    if (table.forced == forced) return forced;
  }
  return std::nullopt;
}

}  // namespace

GroupShape group_shape(const collective::Groups& groups, int gpus_per_node) {
  GroupShape shape;
  shape.gpus_per_node = members_beside(groups, 0, gpus_per_node);
  // Where members lie alike on every node that follows, two nodes stand for all of them.
  const int step = std::max(1, groups.member_step);
  const bool askew = step < gpus_per_node && gpus_per_node % step != 0;
  for (int member = 0; member < groups.size; ++shape.nodes) {
    const int here = members_beside(groups, member, gpus_per_node);
    if (here != shape.gpus_per_node) shape.gpus_per_node = 0;
    member += here;
    if (askew || shape.nodes == 0 || member >= groups.size) continue;
    // From the second node on, each holds as many as this one.
    const int more = (groups.size - member) / here;
    shape.nodes += more;
    member += more * here;
  }
  const int node = groups.rank(0, 0) / gpus_per_node;
  int beside = 0;
  for (int group = 0; group < groups.count; ++group) {
    // Groups begin one after the other: later ones lie beyond.
    if (groups.rank(group, 0) / gpus_per_node > node) break;
    beside += touches(groups, group, node, gpus_per_node) ? 1 : 0;
  }
  shape.groups_per_node = std::max(1, beside);
  return shape;
}

CollectiveLaw collective_law(MeasuredLaw law, int gpus_per_node, Seconds overhead) {
  // Prices copy their cluster: all copies share the tables.
  const auto shared = std::make_shared<const MeasuredLaw>(std::move(law));
  return [shared, gpus_per_node,
          overhead](const collective::Collective& collective) -> std::optional<CollectiveTime> {
    const auto forced = forced_of(*shared, collective);
    if (!forced) return std::nullopt;
    const GroupShape shape = group_shape(collective.groups, gpus_per_node);
    if (shape.gpus_per_node == 0) return std::nullopt;
    auto bytes = static_cast<double>(collective.bytes());
    if (shape.nodes > 1 && shape.groups_per_node > 1 && shared->scale) {
      // What all of them send together, in units of what one alone could.
      const int busy = std::min(gpus_per_node, shape.groups_per_node * shape.gpus_per_node);
      bytes *=
          std::max(1.0, shape.groups_per_node * rate_share(*shared->scale, shape.gpus_per_node) /
                            rate_share(*shared->scale, busy));
    }
    const auto answer =
        law_time(*shared, collective.kind, bytes, shape.nodes, shape.gpus_per_node, *forced);
    if (!answer) return std::nullopt;
    return CollectiveTime{std::max(0.0, answer->time - overhead), answer->spread, answer->in_range};
  };
}

}  // namespace syncline::cost
