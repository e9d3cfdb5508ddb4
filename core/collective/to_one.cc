#include "core/collective/guarded.h"

namespace syncline::collective {
namespace to_one {
namespace {

// An all-reduce is two rounds of N-1 whole payloads through member 0's port: a reduce, with all
// sending to it at once, and a broadcast, with it sending to all at once.
bool gathers(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduce;
}

bool spreads(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kBroadcast;
}

bool fits(CollectiveKind kind, int) { return gathers(kind) || spreads(kind); }

Schedule rounds(CollectiveKind kind, int ranks, std::int64_t elements) {
  Round in;
  Round out;
  if (elements > 0) {
    for (int member = 1; member < ranks; ++member) {
      in.push_back({member, 0, {0, elements}, true});
      out.push_back({0, member, {0, elements}, false});
    }
  }
  Schedule rounds;
  if (gathers(kind)) rounds.push_back(in);
  if (spreads(kind)) rounds.push_back(out);
  return rounds;
}

EdgeSets edges(CollectiveKind kind, int ranks) {
  EdgeSets sets;
  for (const Round& round : rounds(kind, ranks, 1)) sets.push_back(edges_of(round));
  return sets;
}

Stages stages(CollectiveKind kind, int, std::int64_t) {
  if (gathers(kind) && spreads(kind)) return {{0, 1, 1.0, 1}, {1, 2, 1.0, 1}};
  return {{0, 1, 1.0, 1}};
}

Cost cost(CollectiveKind kind, int ranks, std::int64_t) {
  const double directions = kind == CollectiveKind::kAllReduce ? 2 : 1;
  return {directions, directions * (ranks - 1)};
}

}  // namespace
}  // namespace to_one

Algorithm to_one_algorithm() {
  return guarded_algorithm<to_one::fits, to_one::rounds, to_one::edges, to_one::stages,
                           to_one::cost, one_chunk>(
      "to_one", "all send to member 0, which sums and sends back: 2 steps, one busy port");
}

}  // namespace syncline::collective
