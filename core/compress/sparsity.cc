#include "core/compress/dgc.h"

#include <algorithm>

namespace syncline::compress {

int sparsity_index(const Compression& compression, std::int64_t step) {
  if (step < compression.rampup_begin_step) return -1;
  const auto since = static_cast<float>(step - compression.rampup_begin_step);
  const auto count = static_cast<float>(compression.sparsity.size());
  const float position = since * count / static_cast<float>(compression.rampup_step);
  const auto last = static_cast<float>(compression.sparsity.size() - 1);
  return static_cast<int>(std::min(position, last));
}

std::int64_t kept_elements(std::int64_t elements, double sparsity) {
  const float ratio = 1.0F - static_cast<float>(sparsity);
  const auto kept = static_cast<std::int64_t>(static_cast<float>(elements) * ratio);
  // Above 2^24 elements the rounding of fp32 may go past them.
  return std::clamp<std::int64_t>(kept, 1, elements);
}

std::vector<std::int64_t> sparsity_changes(const Compression& compression) {
  std::vector<std::int64_t> changes{compression.rampup_begin_step};
  // The index never falls, so each rise is found by bisection.
  const std::int64_t end = compression.rampup_begin_step + compression.rampup_step;
  for (int index = 1; index < static_cast<int>(compression.sparsity.size()); ++index) {
    std::int64_t low = compression.rampup_begin_step;
    std::int64_t high = end + 1;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (sparsity_index(compression, middle) >= index) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (low > changes.back()) changes.push_back(low);
  }
  return changes;
}

}  // namespace syncline::compress
