#include "core/compress/sparse_apply.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace syncline {
namespace {

bool acceptable(const SparseMessage& message, std::size_t weights) {
  const auto& indices = message.indices;
  const bool rising =
      std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()) == indices.end();
  return rising && (indices.empty() || indices.back() < weights) &&
         std::all_of(message.values.begin(), message.values.end(),
                     [](float value) { return std::isfinite(value); });
}

}  // namespace

bool apply_messages(std::span<const SparseMessage> ranks, float rate, std::span<float> weights) {
  const auto good = [&](const SparseMessage& message) {
    return acceptable(message, weights.size());
  };
  if (!std::all_of(ranks.begin(), ranks.end(), good)) return false;
  for (const SparseMessage& message : ranks) {
    for (std::size_t i = 0; i < message.indices.size(); ++i) {
      float& weight = weights[message.indices[i]];
      const float step = rate * message.values[i];
      weight -= step;
    }
  }
  return true;
}

}  // namespace syncline
