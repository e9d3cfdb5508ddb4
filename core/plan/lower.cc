#include "core/plan/lower.h"

namespace syncline {

Schedule lower(const Collective& collective) {
  const Groups& groups = collective.groups;
  const Schedule inside =
      collective.algorithm->rounds(collective.kind, groups.size, collective.elements);
  Schedule world(inside.size());
  for (std::size_t r = 0; r < inside.size(); ++r) {
    world[r].reserve(inside[r].size() * static_cast<std::size_t>(groups.count));
    for (int g = 0; g < groups.count; ++g) {
      for (Transfer transfer : inside[r]) {
        transfer.from = groups.rank(g, transfer.from);
        transfer.to = groups.rank(g, transfer.to);
        world[r].push_back(transfer);
      }
    }
  }
  return world;
}

}  // namespace syncline
