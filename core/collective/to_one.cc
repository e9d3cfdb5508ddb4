#include "core/collective/to_one.h"

#include <cassert>

namespace syncline::collective {
namespace {

// An all-reduce is two rounds of N-1 whole payloads through member 0's port: a reduce, in which
// all send to it at once, and a broadcast, in which it sends to all at once.
bool gathers(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduce;
}

bool spreads(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kBroadcast;
}

bool fits(CollectiveKind kind, int ranks) {
  return ranks == 1 || (ranks > 1 && (gathers(kind) || spreads(kind)));
}

std::int64_t chunks(CollectiveKind, int, std::int64_t) { return 1; }

Schedule rounds(CollectiveKind kind, int ranks, std::int64_t elements) {
  assert(fits(kind, ranks) && "to_one: rounds asked for a collective that does not fit");
  if (ranks == 1) return {};

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

Stages stages(CollectiveKind kind, int ranks, std::int64_t) {
  assert(fits(kind, ranks) && "to_one: stages asked for a collective that does not fit");
  if (ranks == 1) return {};

  Stage in;
  Stage out;
  for (int member = 1; member < ranks; ++member) {
    in.edges.push_back({member, 0, 1.0});
    out.edges.push_back({0, member, 1.0});
  }
  Stages stages;
  if (gathers(kind)) stages.push_back(in);
  if (spreads(kind)) stages.push_back(out);
  return stages;
}

Cost cost(CollectiveKind kind, int ranks, std::int64_t) {
  const double directions = kind == CollectiveKind::kAllReduce ? 2 : 1;
  if (ranks == 1) return {};
  return {directions, directions * (ranks - 1)};
}

}  // namespace

Algorithm to_one_algorithm() {
  return {"to_one", "all send to member 0, which sums and sends back: 2 steps, one busy port",
          fits,     rounds,
          stages,   cost,
          chunks};
}

}  // namespace syncline::collective
