#include "core/compress/dgc.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace syncline {
namespace {

// An int32 index and an fp32 value, as in Paddle's encoding.
constexpr Bytes kPairBytes = 8;

// Only fp32 gradients are compressed, and small ones are not worth their launches.
bool applies(const Tensor& tensor, std::int64_t min_elements) {
  return !tensor.sparse && tensor.dtype == DType::kFp32 && tensor.elements >= min_elements;
}

Bytes encoded_bytes(std::int64_t, std::int64_t kept) { return kPairBytes * kept; }

// Momentum correction and accumulation read gradient, velocity and residual and write the latter
// two (20 bytes an element); selecting exactly the largest reads the residual once more (4).
double encode_traffic(std::int64_t elements, std::int64_t kept, Bytes element_size) {
  return static_cast<double>(elements) * 6.0 * static_cast<double>(element_size) +
         static_cast<double>(kept * kPairBytes);
}

// Clears the gradient, then adds each rank's pairs: read a pair, read and write its element.
double decode_traffic(std::int64_t elements, std::int64_t kept, int ranks, Bytes element_size) {
  return static_cast<double>(elements * element_size) +
         static_cast<double>(ranks) * static_cast<double>(kept) *
             static_cast<double>(kPairBytes + 2 * element_size);
}

// Exactly the `kept` largest magnitudes, ties to the lower index, in index order.
Encoded encode(std::vector<float>& gradient, std::int64_t kept) {
  std::vector<std::int32_t> order(gradient.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::min<std::size_t>(static_cast<std::size_t>(kept), order.size());
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  const auto larger = [&](std::int32_t a, std::int32_t b) {
    const float x = std::fabs(gradient[static_cast<std::size_t>(a)]);
    const float y = std::fabs(gradient[static_cast<std::size_t>(b)]);
    return x != y ? x > y : a < b;
  };
  if (middle != order.end()) std::nth_element(order.begin(), middle, order.end(), larger);
  order.resize(count);
  std::sort(order.begin(), order.end());
  Encoded encoded;
  encoded.indices = order;
  for (const std::int32_t index : order) {
    auto& value = gradient[static_cast<std::size_t>(index)];
    encoded.values.push_back(value);
    value = 0;
  }
  return encoded;
}

void add(const Encoded& encoded, std::vector<float>& sum) {
  for (std::size_t i = 0; i < encoded.indices.size(); ++i) {
    sum[static_cast<std::size_t>(encoded.indices[i])] += encoded.values[i];
  }
}

}  // namespace

Codec dgc_codec() {
  return {"dgc",
          "largest elements as (index, value) pairs, exchanged by all-gather",
          true,
          applies,
          encoded_bytes,
          encode_traffic,
          decode_traffic,
          encode,
          add};
}

}  // namespace syncline
