#include "core/compress/dgc.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace syncline::compress {
namespace {

// An int32 index and an fp32 value, as in Paddle's encoding.
constexpr Bytes kPairBytes = 8;

// True for fp32 gradients; small ones are not worth their launches.
bool applies(const Tensor& tensor, std::int64_t min_elements) {
  return !tensor.sparse && tensor.dtype == DType::kFp32 && tensor.elements >= min_elements;
}

Bytes encoded_bytes(std::int64_t, std::int64_t kept) { return kPairBytes * kept; }

// Returns bytes: momentum correction and accumulation read gradient, velocity and residual and
// write the latter two (20 per element); selecting the largest reads the residual again (4).
double encode_traffic(std::int64_t elements, std::int64_t kept, Bytes element_size) {
  return static_cast<double>(elements) * 6.0 * static_cast<double>(element_size) +
         static_cast<double>(kept * kPairBytes);
}

// Returns bytes to clear the gradient and add each rank's pairs: a read, then a read and a write.
double decode_traffic(std::int64_t elements, std::int64_t kept, int ranks, Bytes element_size) {
  return static_cast<double>(elements * element_size) +
         static_cast<double>(ranks) * static_cast<double>(kept) *
             static_cast<double>(kPairBytes + 2 * element_size);
}

// Returns a float's magnitude as an integer of the same order (IEEE 754: exponent, then mantissa).
std::uint32_t magnitude(float value) {
  constexpr std::uint32_t kWithoutSign = 0x7fffffff;
  return std::bit_cast<std::uint32_t>(value) & kWithoutSign;
}

// Selection by histogram, like the first digit of radix selection: magnitudes are counted by their
// leading bits. All above the digit of the last kept one are kept, and only the few of that digit
// are ordered. Two passes over the gradient, for any values.
constexpr unsigned kDigitBits = 12;
constexpr unsigned kDigitShift = 31 - kDigitBits;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

// Returns the digit of the `kept`-th largest. Requires 0 < kept <= size.
std::uint32_t digit_of_last(const std::vector<float>& gradient, std::size_t kept) {
  // Neighbours often share a digit: with four sets of counters an increment need not wait for the
  // previous one.
  constexpr std::size_t kSets = 4;
  std::vector<std::uint32_t> counts(kSets * kDigits, 0);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    ++counts[(i % kSets) * kDigits + (magnitude(gradient[i]) >> kDigitShift)];
  }
  std::size_t above = 0;
  for (std::size_t digit = kDigits; digit-- > 0;) {
    for (std::size_t set = 0; set < kSets; ++set) above += counts[set * kDigits + digit];
    if (above >= kept) return static_cast<std::uint32_t>(digit);
  }
  return 0;
}

// Returns the `kept` largest magnitudes, ties to the lower index, in index order.
Encoded encode(std::vector<float>& gradient, std::int64_t kept) {
  Encoded encoded;
  const auto count = std::min<std::size_t>(static_cast<std::size_t>(kept), gradient.size());
  if (count == 0) return encoded;
  const std::uint32_t digit = digit_of_last(gradient, count);
  const std::uint32_t least = digit << kDigitShift;
  std::vector<std::int32_t> candidates;  // in index order
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    if (magnitude(gradient[i]) >= least) candidates.push_back(static_cast<std::int32_t>(i));
  }
  // The last kept element decides among equals.
  const auto larger = [&](std::int32_t a, std::int32_t b) {
    const std::uint32_t x = magnitude(gradient[static_cast<std::size_t>(a)]);
    const std::uint32_t y = magnitude(gradient[static_cast<std::size_t>(b)]);
    return x != y ? x > y : a < b;
  };
  auto order = candidates;
  const auto last = order.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(order.begin(), last, order.end(), larger);
  const std::int32_t last_kept = *last;
  encoded.indices.reserve(count);
  encoded.values.reserve(count);
  for (const std::int32_t index : candidates) {
    if (index != last_kept && !larger(index, last_kept)) continue;
    encoded.indices.push_back(index);
    encoded.values.push_back(gradient[static_cast<std::size_t>(index)]);
  }
  for (const std::int32_t index : encoded.indices) gradient[static_cast<std::size_t>(index)] = 0;
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
          "largest elements as (index, value) pairs, sent by all-gather",
          true,
          applies,
          encoded_bytes,
          encode_traffic,
          decode_traffic,
          encode,
          add};
}

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
  // Above 2^24 elements fp32 may round to more than all.
  return std::clamp<std::int64_t>(kept, 1, elements);
}

std::vector<std::int64_t> sparsity_changes(const Compression& compression) {
  std::vector<std::int64_t> changes{compression.rampup_begin_step};
  // The index never falls, so each rise is found by bisection.
  const std::int64_t end = compression.rampup_begin_step + compression.rampup_step;
  for (int index = 1; index < static_cast<int>(compression.sparsity.size()); ++index) {
    std::int64_t rise = compression.rampup_begin_step;
    for (std::int64_t above = end + 1; rise < above;) {
      const std::int64_t step = rise + (above - rise) / 2;
      const bool before = sparsity_index(compression, step) < index;
      (before ? rise : above) = before ? step + 1 : step;
    }
    if (rise > changes.back()) changes.push_back(rise);
  }
  return changes;
}

}  // namespace syncline::compress
