#include "kernels/reference/sampled_threshold.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace syncline::kernels {
namespace {

// 0 where fewer are finite.
float ranked_magnitude(std::span<const float> window, std::int64_t rank) {
  std::vector<float> magnitudes;
  for (const float value : window) {
    if (std::isfinite(value)) magnitudes.push_back(std::fabs(value));
  }
  if (static_cast<std::int64_t>(magnitudes.size()) < rank) return 0;
  const auto at = magnitudes.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(magnitudes.begin(), at, magnitudes.end(), std::greater<>());
  return *at;
}

}  // namespace

SampleShape sample_shape(std::int64_t elements, std::int64_t kept) {
  SampleShape shape;
  shape.rank = std::min<std::int64_t>(32, kept / 2);
  const float proportion = static_cast<float>(kept) / static_cast<float>(shape.rank);
  shape.window = static_cast<std::int64_t>(static_cast<float>(elements) / proportion);
  shape.windows = std::min<std::int64_t>(16, static_cast<std::int64_t>(proportion / 2));
  shape.stride = elements / shape.windows;
  shape.threads = 256 * std::min<std::int64_t>(128, elements / 512);
  return shape;
}

float sampled_threshold(std::span<const float> residual, std::int64_t kept) {
  const auto shape = sample_shape(static_cast<std::int64_t>(residual.size()), kept);
  float sum = 0;
  for (std::int64_t i = 0; i < shape.windows; ++i) {
    const auto window = residual.subspan(static_cast<std::size_t>(i * shape.stride),
                                         static_cast<std::size_t>(shape.window));
    sum += ranked_magnitude(window, shape.rank);
  }
  return sum / static_cast<float>(shape.windows);
}

SparseMessage take_above(float threshold, std::int64_t kept, std::span<float> velocity,
                         std::span<float> residual) {
  const auto places = static_cast<std::size_t>(kept);
  SparseMessage message{std::vector<std::uint32_t>(places, 0xffffffffu),
                        std::vector<float>(places, -1.0f)};
  const auto elements = static_cast<std::int64_t>(residual.size());
  const auto threads = static_cast<std::size_t>(sample_shape(elements, kept).threads);
  std::size_t before = 0;  // magnitudes of at least the threshold that earlier threads have
  for (std::size_t thread = 0; thread < threads; ++thread) {
    std::size_t place = before;
    for (std::size_t i = thread; i < residual.size(); i += threads) {
      const float magnitude = std::fabs(residual[i]);
      if (!std::isfinite(magnitude)) continue;
      before += magnitude >= threshold ? 1 : 0;
      if (!(magnitude > threshold) || place >= places) continue;
      message.indices[place] = static_cast<std::uint32_t>(i);
      message.values[place] = std::exchange(residual[i], 0.0f);
      velocity[i] = 0;
      ++place;
    }
  }
  return message;
}

}  // namespace syncline::kernels
