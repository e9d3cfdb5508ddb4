// R. Rabenseifner's all-reduce, as described in R. Thakur, R. Rabenseifner and W. Gropp,
// "Optimization of collective communication operations in MPICH", Int. J. High Performance
// Computing Applications 19 (2005).
#include "core/collective/guarded.h"

#include <bit>
#include <utility>

namespace syncline::collective {
namespace halving_doubling {
namespace {

// Only a power of two of members can halve and double. The others, `extra` of them, fold away:
// members 0 to 2*extra-1 form pairs. Each pair's odd member sends all to the even one before the
// start and gets the result after the end: 2 more steps, each with the whole payload. `core`
// members take part; core member v is group member `member(v)`.
struct Fold {
  int core = 1;
  int extra = 0;
  int member(int v) const { return v < extra ? 2 * v : v + extra; }
};

Fold fold_of(int ranks) {
  const int core = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
  return {core, ranks - core};
}

int log2_of(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

// The halving: core member v begins with the whole payload as its range. In step s = 0, 1, ... it
// gives half of its range to the partner v ^ distance, which adds it, and goes on with the other
// half: 2^-(s+1) of the payload each way, (core-1)/core after the log2(core) steps, and every
// member then owns the sum of one shard. The doubling undoes the steps in the opposite order:
// partners send each other all they have, which overwrites. So an all-reduce takes 2 log2(core)
// steps and 2 (core-1)/core of the payload.
//
// In an all-reduce the distance doubles while the vector halves (1, 2, 4, ...), so that the large
// messages go to near members. A reduce-scatter must leave shard m at member m; it takes the
// distances the other way round (core/2, ..., 2, 1), so that the bits of m, from the highest,
// choose the halves.
struct Halving {
  Fold fold;
  bool near_first = true;

  int steps() const { return log2_of(fold.core); }
  int distance(int step) const { return 1 << (near_first ? step : steps() - 1 - step); }

  // Returns the range of v after `done` steps. The halves are cut at the borders of the shards (not
  // at midpoints, which drift from them when 2^steps does not divide the payload).
  Range range(int v, int done, std::int64_t elements) const {
    std::int64_t index = 0;
    for (int step = 0; step < done; ++step) {
      index = 2 * index + ((v & distance(step)) != 0 ? 1 : 0);
    }
    return part_of(elements, std::int64_t{1} << done, index);
  }
};

Round exchange(const Halving& halving, int step, std::int64_t elements, bool add) {
  Round round;
  for (int v = 0; v < halving.fold.core; ++v) {
    const int partner = v ^ halving.distance(step);
    const int keeper = add ? partner : v;  // halving sends the partner's half, doubling its own
    const Range range = halving.range(keeper, step + 1, elements);
    if (range.size() == 0) continue;
    round.push_back({halving.fold.member(v), halving.fold.member(partner), range, add});
  }
  return round;
}

bool fits(CollectiveKind kind, int ranks) {
  if (kind == CollectiveKind::kAllReduce) return true;
  return (kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllGather) &&
         std::has_single_bit(static_cast<unsigned>(ranks));
}

bool halves(CollectiveKind kind) { return kind != CollectiveKind::kAllGather; }
bool doubles(CollectiveKind kind) { return kind != CollectiveKind::kReduceScatter; }

// Returns the rounds that fold members away before the start and return their result after the end.
std::pair<Round, Round> folding(const Fold& fold, std::int64_t elements) {
  std::pair<Round, Round> rounds;
  for (int pair = 0; pair < fold.extra && elements > 0; ++pair) {
    rounds.first.push_back({2 * pair + 1, 2 * pair, {0, elements}, true});
    rounds.second.push_back({2 * pair, 2 * pair + 1, {0, elements}, false});
  }
  return rounds;
}

Schedule rounds(CollectiveKind kind, int ranks, std::int64_t elements) {
  const Halving halving = {fold_of(ranks), kind == CollectiveKind::kAllReduce};
  const auto [fold_in, fold_out] = folding(halving.fold, elements);
  Schedule rounds;
  if (halving.fold.extra > 0) rounds.push_back(fold_in);
  for (int step = 0; halves(kind) && step < halving.steps(); ++step) {
    rounds.push_back(exchange(halving, step, elements, true));
  }
  for (int step = halving.steps() - 1; doubles(kind) && step >= 0; --step) {
    rounds.push_back(exchange(halving, step, elements, false));
  }
  if (halving.fold.extra > 0) rounds.push_back(fold_out);
  return rounds;
}

// Returns a set for each step, the same in both directions; then the two of the folding.
EdgeSets edges(CollectiveKind kind, int ranks) {
  const Halving halving = {fold_of(ranks), kind == CollectiveKind::kAllReduce};
  EdgeSets sets;
  for (int step = 0; step < halving.steps(); ++step) {
    sets.push_back(edges_of(exchange(halving, step, ranks, true)));
  }
  if (halving.fold.extra == 0) return sets;
  const auto [fold_in, fold_out] = folding(halving.fold, 1);
  sets.insert(sets.end(), {edges_of(fold_in), edges_of(fold_out)});
  return sets;
}

Stages stages(CollectiveKind kind, int ranks, std::int64_t) {
  const Fold fold = fold_of(ranks);
  const int steps = log2_of(fold.core);
  const auto one_set = [](int set, double fraction) {
    const auto first = static_cast<std::size_t>(set);
    return Stage{first, first + 1, fraction, 1};
  };
  const auto part = [](int step) { return 1.0 / static_cast<double>(std::int64_t{2} << step); };
  Stages stages;
  if (fold.extra > 0) stages.push_back(one_set(steps, 1.0));
  for (int step = 0; halves(kind) && step < steps; ++step) {
    stages.push_back(one_set(step, part(step)));
  }
  for (int step = steps - 1; doubles(kind) && step >= 0; --step) {
    stages.push_back(one_set(step, part(step)));
  }
  if (fold.extra > 0) stages.push_back(one_set(steps + 1, 1.0));
  return stages;
}

Cost cost(CollectiveKind kind, int ranks, std::int64_t) {
  const Fold fold = fold_of(ranks);
  const double phases = kind == CollectiveKind::kAllReduce ? 2 : 1;
  const double folding = fold.extra > 0 ? 2 : 0;
  return {phases * log2_of(fold.core) + folding, phases * (fold.core - 1) / fold.core + folding};
}

}  // namespace
}  // namespace halving_doubling

Algorithm halving_doubling_algorithm() {
  return guarded_algorithm<halving_doubling::fits, halving_doubling::rounds,
                           halving_doubling::edges, halving_doubling::stages,
                           halving_doubling::cost, one_chunk>(
      "halving_doubling", "partners swap halves, then double: fewest bytes, 2 log2 N steps");
}

}  // namespace syncline::collective
