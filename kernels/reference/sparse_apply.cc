#include "kernels/reference/sparse_apply.h"

#include <algorithm>
#include <cmath>

namespace syncline::kernels {
namespace {

constexpr std::uint32_t kPad = 0xffffffffu;

bool acceptable(const SparseMessage& message, std::size_t weights, bool rising) {
  for (std::size_t i = 0; i < message.indices.size(); ++i) {
    const std::uint32_t index = message.indices[i];
    if (index == kPad) continue;
    if (index >= weights || !std::isfinite(message.values[i])) return false;
    if (rising && i > 0 && message.indices[i - 1] >= index) return false;
  }
  return true;
}

}  // namespace

bool apply_messages(std::span<const SparseMessage> ranks, float rate, std::span<float> weights,
                    bool rising) {
  const auto good = [&](const SparseMessage& message) {
    return acceptable(message, weights.size(), rising);
  };
  if (!std::all_of(ranks.begin(), ranks.end(), good)) return false;
  for (const SparseMessage& message : ranks) {
    for (std::size_t i = 0; i < message.indices.size(); ++i) {
      if (message.indices[i] == kPad) continue;
      float& weight = weights[message.indices[i]];
      const float step = rate * message.values[i];
      weight -= step;
    }
  }
  return true;
}

}  // namespace syncline::kernels
