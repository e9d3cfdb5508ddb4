#include "core/plan/plan.h"

namespace syncline::plan {

collective::Schedule lower(const collective::Collective& collective) {
  const collective::Groups& groups = collective.groups;
  const collective::Schedule inside =
      collective.algorithm->rounds(collective.kind, groups.size, collective.elements);
  collective::Schedule world(inside.size());
  for (std::size_t r = 0; r < inside.size(); ++r) {
    world[r].reserve(inside[r].size() * static_cast<std::size_t>(groups.count));
    for (int g = 0; g < groups.count; ++g) {
      for (collective::Transfer transfer : inside[r]) {
        transfer.from = groups.rank(g, transfer.from);
        transfer.to = groups.rank(g, transfer.to);
        world[r].push_back(transfer);
      }
    }
  }
  return world;
}

}  // namespace syncline::plan
