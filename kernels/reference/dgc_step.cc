#include "kernels/reference/dgc_step.h"

#include <algorithm>
#include <cmath>
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

SparseMessage take_out(std::vector<std::uint32_t> indices, std::span<float> velocity,
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

float dgc_clip_coefficient(std::span<const float> gradient, float max_norm) {
  double squares = 0;
  for (const float g : gradient) {
    if (!std::isfinite(g)) return std::numeric_limits<float>::quiet_NaN();
    squares += static_cast<double>(g) * static_cast<double>(g);
  }
  const double norm = std::sqrt(squares);
  if (max_norm <= 0 || norm <= static_cast<double>(max_norm)) return 1;
  return static_cast<float>(static_cast<double>(max_norm) / norm);
}

}  // namespace syncline::kernels
