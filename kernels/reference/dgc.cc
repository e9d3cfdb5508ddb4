#include "kernels/reference/optimizers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace syncline::kernels {
std::vector<std::uint32_t> largest_magnitudes(std::span<const float> residual, std::int64_t kept) {
  std::vector<std::uint32_t> order;
  for (std::size_t i = 0; i < residual.size(); ++i) {
    if (std::isfinite(residual[i])) order.push_back(static_cast<std::uint32_t>(i));
  }
  const auto count = std::min<std::size_t>(static_cast<std::size_t>(kept), order.size());
  const auto larger = [&](std::uint32_t a, std::uint32_t b) {
    const float x = std::fabs(residual[a]);
    const float y = std::fabs(residual[b]);
    return x != y ? x > y : a < b;
  };
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
  if (end != order.end()) std::nth_element(order.begin(), end, order.end(), larger);
  order.resize(count);
  std::sort(order.begin(), order.end());
  return order;
}

SparseMessage extract(std::vector<std::uint32_t> indices, std::span<float> velocity,
                      std::span<float> residual) {
  SparseMessage message;
  message.values.reserve(indices.size());
  for (const std::uint32_t index : indices) {
    message.values.push_back(std::exchange(residual[index], 0.0f));
    velocity[index] = 0;
  }
  message.indices = std::move(indices);
  return message;
}

namespace {

constexpr std::uint32_t kPad = 0xffffffffu;

bool acceptable(const SparseMessage& message, std::size_t weights) {
  for (std::size_t i = 0; i < message.indices.size(); ++i) {
    const std::uint32_t index = message.indices[i];
    if (index == kPad) continue;
    if (index >= weights || !std::isfinite(message.values[i])) return false;
    if (i > 0 && message.indices[i - 1] >= index) return false;
  }
  return true;
}

}  // namespace

bool apply_messages(std::span<const SparseMessage> ranks, float rate, std::span<float> weights) {
  const auto good = [&](const SparseMessage& message) {
    return acceptable(message, weights.size());
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
