// Any bytes are training curves, from which every strategy gets to a target or does not, or an
// InputError.
#include "studies/worth/curves.h"

#include <cstdlib>

#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(curves, bytes) {
  namespace worth = syncline::worth;
  constexpr auto kLoss = worth::Quantity::kLoss;
  const auto curves = worth::curves_of(bytes, "fuzzed.csv", kLoss);
  for (const worth::Reach& reach : worth::reaches_of(curves, kLoss, 0.5)) {
    if (reach.reached > reach.seeds || !(reach.at >= 0)) std::abort();
  }
}
