#include "core/compress/dgc.h"

#include <algorithm>
#include <cmath>
#include <functional>

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
  const auto count = std::min<std::size_t>(static_cast<std::size_t>(kept), gradient.size());
  Encoded encoded;
  if (count == 0) return encoded;
  // The smallest magnitude that is sent, and how many of those equal to it fit in.
  std::vector<float> magnitudes(gradient.size());
  std::transform(gradient.begin(), gradient.end(), magnitudes.begin(),
                 [](float value) { return std::fabs(value); });
  const auto last = magnitudes.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(magnitudes.begin(), last, magnitudes.end(), std::greater<>());
  const float threshold = *last;
  auto equal = std::count(magnitudes.begin(), last + 1, threshold);
  for (std::size_t index = 0; index < gradient.size(); ++index) {
    const float magnitude = std::fabs(gradient[index]);
    const bool sent = magnitude > threshold || (magnitude == threshold && equal-- > 0);
    if (!sent) continue;
    encoded.indices.push_back(static_cast<std::int32_t>(index));
    encoded.values.push_back(gradient[index]);
    gradient[index] = 0;
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
