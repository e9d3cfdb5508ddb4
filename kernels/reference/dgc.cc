#include "kernels/reference/dgc.h"

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
