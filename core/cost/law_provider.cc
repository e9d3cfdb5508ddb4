#include "core/cost/law_provider.h"

#include <algorithm>
#include <map>
#include <memory>

#include "core/collective/collective.h"

namespace syncline::cost {
namespace {

struct Shape {
  int nodes = 0;
  int gpus_per_node = 0;  // of one group; 0: uneven
  int groups_per_node = 1;
};

Shape shape_of(const collective::Groups& groups, int gpus_per_node) {
  Shape shape;
  std::map<int, int> members;
  for (int member = 0; member < groups.size; ++member) {
    ++members[groups.rank(0, member) / gpus_per_node];
  }
  shape.nodes = static_cast<int>(members.size());
  shape.gpus_per_node = members.begin()->second;
  for (const auto& [node, count] : members) {
    if (count != shape.gpus_per_node) shape.gpus_per_node = 0;
  }
  const int first_node = members.begin()->first;
  int beside = 0;
  for (int group = 0; group < groups.count; ++group) {
    bool here = false;
    for (int member = 0; member < groups.size && !here; ++member) {
      here = groups.rank(group, member) / gpus_per_node == first_node;
    }
    beside += here ? 1 : 0;
  }
  shape.groups_per_node = std::max(1, beside);
  return shape;
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

CollectiveLaw collective_law(MeasuredLaw law, int gpus_per_node, Seconds overhead) {
  // Prices copy their cluster: all copies share the tables.
  const auto shared = std::make_shared<const MeasuredLaw>(std::move(law));
  return [shared, gpus_per_node,
          overhead](const collective::Collective& collective) -> std::optional<CollectiveTime> {
    const auto forced = forced_of(*shared, collective);
    if (!forced) return std::nullopt;
    const Shape shape = shape_of(collective.groups, gpus_per_node);
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
