// A row of the table from functions of two ranks or more: one rank fits, and has no work.
#pragma once

#include <cassert>

#include "core/algorithm.h"

namespace syncline::collective {

// Returns a row that calls these for two ranks or more; all but kFits only for fitting kinds.
template <auto kFits, auto kRounds, auto kEdges, auto kStages, auto kCost, auto kChunks>
Algorithm guarded_algorithm(std::string_view name, std::string_view summary) {
  using Kind = CollectiveKind;
  static constexpr auto kFit = [](Kind kind, int ranks) {
    return ranks == 1 || (ranks > 1 && kFits(kind, ranks));
  };
  static constexpr auto kAsked = [](auto of, Kind kind, int ranks, auto... elements) {
    assert(kFit(kind, ranks) && "an algorithm was asked for a collective that does not fit");
    return ranks == 1 ? decltype(of(kind, ranks, elements...)){} : of(kind, ranks, elements...);
  };
  return {
      name,
      summary,
      kFit,
      [](Kind k, int ranks, std::int64_t n) { return kAsked(kRounds, k, ranks, n); },
      [](Kind k, int ranks) { return kAsked(kEdges, k, ranks); },
      [](Kind k, int ranks, std::int64_t n) { return kAsked(kStages, k, ranks, n); },
      [](Kind k, int ranks, std::int64_t n) { return ranks == 1 ? Cost{} : kCost(k, ranks, n); },
      [](Kind k, int ranks, std::int64_t n) {
        return ranks == 1 ? std::int64_t{1} : kChunks(k, ranks, n);
      }};
}

}  // namespace syncline::collective
