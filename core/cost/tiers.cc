#include "core/cost/tiers.h"

#include <utility>

#include "core/statistics.h"

namespace syncline::cost {

std::optional<double> tree_factor(const MeasuredLaw& law) {
  bool network = false;
  for (const TableLaw& table : law.tables) {
    network = network || (table.nodes > 1 && table.forced != ForcedAlgorithm::kTree);
  }
  if (!law.scale || !network) return std::nullopt;
  std::vector<double> factors;
  for (const TableLaw& table : law.tables) {
    if (table.forced != ForcedAlgorithm::kTree || table.nodes <= 2) continue;
    const BytesPerSecond rate =
        law.scale->rates.back().bandwidth * rate_share(*law.scale, table.gpus_per_node);
    constexpr int kSizes = 64;
    for (int i = 0; i <= kSizes; ++i) {
      const double bytes = table.min_bytes + (table.max_bytes - table.min_bytes) * i / kSizes;
      factors.push_back(size_time(table.law, bytes) * rate / bytes);
    }
  }
  if (factors.empty()) return std::nullopt;
  return median(std::move(factors));
}

}  // namespace syncline::cost
