#include "core/collective/guarded.h"

#include <algorithm>

namespace syncline::collective {
namespace ring {
namespace {

// While a chain fills and drains, no two of its rounds load the same links, so its stages cannot be
// folded: they list min(chunks, N-1) edges for each of some N rounds, N^2 until kMaxChunks caps it.
// So long a chain is all start-up time anyway; use the trees for it.
constexpr int kMaxChainRanks = 1024;

bool is_chain(CollectiveKind kind) {
  return kind == CollectiveKind::kReduce || kind == CollectiveKind::kBroadcast;
}

bool fits(CollectiveKind kind, int ranks) { return !is_chain(kind) || ranks <= kMaxChainRanks; }

// Returns chunks; 1 for a message that is not passed on.
std::int64_t chunks(CollectiveKind kind, int ranks, std::int64_t elements) {
  return is_chain(kind) && ranks > 2 ? pipeline_chunks(elements) : 1;
}

// Appends one lap: the payload is cut into N shards, and in each of N-1 rounds every member passes
// the shard that it got in the previous round to the next member: (N-1)/N of the payload through
// every port. The first shard makes it one half or the other of an all-reduce:
//   lead 1, adding       member i begins with shard i-1, so the sum of shard m ends its way,
//                        after all the others have added to it, at member m: a reduce-scatter;
//   lead 0, overwriting  member i begins with its own shard i: an all-gather.
void append_lap(Schedule& rounds, int ranks, std::int64_t elements, int lead, bool add) {
  for (int step = 0; step < ranks - 1; ++step) {
    Round& round = rounds.emplace_back();
    for (int from = 0; from < ranks; ++from) {
      const int shard = (from - lead - step + ranks) % ranks;
      const Range range = part_of(elements, ranks, shard);
      if (range.size() > 0) round.push_back({from, (from + 1) % ranks, range, add});
    }
  }
}

// Returns an edge of the chain: the ring left open, with the payload in `chunks` chunks that follow
// each other. Depth d is the d-th edge on a chunk's way: 0->1->...->N-1 in a broadcast, N-1->...->0
// in a reduce. It carries chunk r-d in round r, so the last chunk is through after chunks + N-2
// rounds of 1/chunks of the payload each. The edge of each depth is a set of its own.
Transfer chain_hop(CollectiveKind kind, int ranks, int depth) {
  if (kind == CollectiveKind::kBroadcast) return {depth, depth + 1, {}, false};
  return {ranks - 1 - depth, ranks - 2 - depth, {}, true};
}

Schedule chain_rounds(CollectiveKind kind, int ranks, std::int64_t elements) {
  const std::int64_t count = chunks(kind, ranks, elements);
  Schedule rounds;
  for (std::int64_t r = 0; r < count + ranks - 2; ++r) {
    Round& round = rounds.emplace_back();
    const auto first = static_cast<int>(std::max<std::int64_t>(0, r - count + 1));
    for (int depth = first; depth <= std::min<std::int64_t>(r, ranks - 2); ++depth) {
      Transfer hop = chain_hop(kind, ranks, depth);
      hop.elements = part_of(elements, count, r - depth);
      if (hop.elements.size() > 0) round.push_back(hop);
    }
  }
  return rounds;
}

int laps(CollectiveKind kind) { return kind == CollectiveKind::kAllReduce ? 2 : 1; }

Schedule rounds(CollectiveKind kind, int ranks, std::int64_t elements) {
  if (is_chain(kind)) return chain_rounds(kind, ranks, elements);

  Schedule rounds;
  if (kind != CollectiveKind::kAllGather) append_lap(rounds, ranks, elements, 1, true);
  if (kind != CollectiveKind::kReduceScatter) append_lap(rounds, ranks, elements, 0, false);
  return rounds;
}

EdgeSets edges(CollectiveKind kind, int ranks) {
  EdgeSets sets;
  if (is_chain(kind)) {
    for (int depth = 0; depth <= ranks - 2; ++depth) {
      const Transfer hop = chain_hop(kind, ranks, depth);
      sets.push_back({{hop.from, hop.to}});
    }
    return sets;
  }
  EdgeSet& lap = sets.emplace_back();
  for (int from = 0; from < ranks; ++from) lap.push_back({from, (from + 1) % ranks});
  return sets;
}

Stages stages(CollectiveKind kind, int ranks, std::int64_t elements) {
  if (is_chain(kind)) {
    const std::int64_t count = chunks(kind, ranks, elements);
    return pipelined_stages(ranks - 1, count, 1.0 / static_cast<double>(count));
  }
  return {{0, 1, 1.0 / ranks, std::int64_t{laps(kind)} * (ranks - 1)}};
}

Cost cost(CollectiveKind kind, int ranks, std::int64_t elements) {
  if (is_chain(kind)) {
    const auto count = static_cast<double>(chunks(kind, ranks, elements));
    const double steps = count + ranks - 2;
    return {steps, steps / count};
  }
  const double steps = laps(kind) * (ranks - 1.0);
  return {steps, steps / ranks};
}

}  // namespace
}  // namespace ring

Algorithm ring_algorithm() {
  return guarded_algorithm<ring::fits, ring::rounds, ring::edges, ring::stages, ring::cost,
                           ring::chunks>(
      "ring", "each member passes shards to the next: fewest bytes, 2(N-1) steps");
}

}  // namespace syncline::collective
