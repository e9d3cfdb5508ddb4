#include "core/cost/support.h"

#include <cmath>

namespace syncline::cost {

double spread_of(const Support& support) {
  constexpr double kLeast = 0.004;  // what repeats better than that was not measured so well
  constexpr double kSize = 0.1;
  constexpr double kNodes = 0.06;
  const double gpus = support.inside ? 0.15 : 0.06;
  constexpr double kPaths = 1;
  constexpr double kUnshown = 0.7;
  constexpr double kOtherKind = 0.07;
  const auto square = [](double part) { return part * part; };
  double sum = square(kLeast) + square(support.table) + square(kSize * support.sizes) +
               square(kNodes * support.nodes) + square(gpus * support.gpus) +
               square(kPaths * support.paths) + square(kUnshown) * support.unshown;
  if (support.other_kind) sum += square(kOtherKind);
  return std::sqrt(sum);
}

}  // namespace syncline::cost
