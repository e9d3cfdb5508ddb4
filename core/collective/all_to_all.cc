#include "core/collective/guarded.h"

namespace syncline::collective {
namespace direct {
namespace {

bool scatters(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
}

bool gathers(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather;
}

bool fits(CollectiveKind kind, int ranks) {
  return ranks <= kMaxAllToAll && (scatters(kind) || gathers(kind));
}

int rounds_of(CollectiveKind kind) { return (scatters(kind) ? 1 : 0) + (gathers(kind) ? 1 : 0); }

// Returns messages between any two members: the receiver's part to be summed, or the sender's sum.
Round between_all(int ranks, std::int64_t elements, bool add) {
  Round round;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      const Range part = part_of(elements, ranks, add ? to : from);
      if (from != to && part.size() > 0) round.push_back({from, to, part, add});
    }
  }
  return round;
}

Schedule rounds(CollectiveKind kind, int ranks, std::int64_t elements) {
  Schedule rounds;
  if (scatters(kind)) rounds.push_back(between_all(ranks, elements, true));
  if (gathers(kind)) rounds.push_back(between_all(ranks, elements, false));
  return rounds;
}

EdgeSets edges(CollectiveKind, int ranks) { return {edges_of(between_all(ranks, ranks, false))}; }

Stages stages(CollectiveKind kind, int ranks, std::int64_t) {
  return {{0, 1, 1.0 / ranks, rounds_of(kind)}};
}

Cost cost(CollectiveKind kind, int ranks, std::int64_t) {
  const double steps = rounds_of(kind);
  return {steps, steps * (ranks - 1) / ranks};
}

}  // namespace
}  // namespace direct

const Algorithm* all_to_all() {
  static const Algorithm row = guarded_algorithm<direct::fits, direct::rounds, direct::edges,
                                                 direct::stages, direct::cost, one_chunk>(
      "all_to_all", "each member sends each other its part, which sums them: 2 steps");
  return &row;
}

}  // namespace syncline::collective
