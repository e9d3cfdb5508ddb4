#include "core/codec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace syncline::compress {
namespace {

constexpr std::int64_t kBlock = 128;
constexpr Bytes kScaleBytes = sizeof(float);

// Whole numbers from -kMax to kMax.
template <int kMax>
struct Whole {
  static constexpr float kLargest = kMax;

  static std::uint8_t code(float value) {
    const float whole = std::nearbyint(std::clamp(value, -kLargest, kLargest));
    return static_cast<std::uint8_t>(static_cast<std::int8_t>(whole));
  }
  static float value(std::uint8_t code) { return static_cast<std::int8_t>(code); }
};

// An 8-bit float without infinities, subnormal below its least exponent. `kLast` is the code of the
// largest number; codes above are no numbers.
template <int kMantissa, int kBias, int kLast>
struct Minifloat {
  static constexpr int kSign = 0x80;

  static float value(std::uint8_t code) {
    const int exponent = (code & 0x7f) >> kMantissa;
    const int fraction = code & ((1 << kMantissa) - 1);
    const int whole = exponent == 0 ? fraction : fraction + (1 << kMantissa);
    const float size =
        std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - kBias - kMantissa);
    return (code & kSign) != 0 ? -size : size;
  }
  static const inline float kLargest = value(kLast);

  // Returns the nearest number; of two equally near ones that with last bit 0.
  static std::uint8_t code(float given) {
    static const auto sizes = [] {
      std::array<float, kLast + 1> table{};
      for (std::size_t i = 0; i < table.size(); ++i) table[i] = value(static_cast<std::uint8_t>(i));
      return table;
    }();
    const float size = std::min(std::fabs(given), kLargest);
    const auto above = std::ranges::lower_bound(sizes, size);
    auto nearest = static_cast<int>(above - sizes.begin());
    if (nearest > 0) {
      const float up = *above - size;
      const float down = size - *std::prev(above);
      const bool odd = (nearest & 1) != 0;
      if (down < up || (down == up && odd)) --nearest;
    }
    return static_cast<std::uint8_t>(nearest | (std::signbit(given) ? kSign : 0));
  }
};

using E4M3 = Minifloat<3, 7, 0x7e>;
using E5M2 = Minifloat<2, 15, 0x7b>;

// kPerByte codes share a byte, the first in its low bits.
template <typename Format, int kPerByte>
struct Blocks {
  static constexpr int kBits = 8 / kPerByte;
  static constexpr Bytes kUnit = kScaleBytes + kBlock / kPerByte;

  static bool applies(const Tensor& tensor, std::int64_t min_elements) {
    return !tensor.sparse && size_of(tensor.dtype) > 1 && tensor.elements >= min_elements;
  }

  static Bytes encoded_bytes(std::int64_t elements, std::int64_t) {
    return (elements + kBlock - 1) / kBlock * kUnit;
  }

  static double encode_traffic(std::int64_t elements, std::int64_t kept, Bytes element_size) {
    return static_cast<double>(elements * element_size + encoded_bytes(elements, kept));
  }

  static double decode_traffic(std::int64_t elements, std::int64_t kept, int, Bytes element_size) {
    return encode_traffic(elements, kept, element_size);
  }

  static void pack(const float* values, std::byte* unit) {
    float most = 0;
    bool finite = true;
    for (std::int64_t i = 0; i < kBlock; ++i) {
      most = std::max(most, std::fabs(values[i]));
      finite = finite && std::isfinite(values[i]);
    }
    // A value that is not finite makes its whole block so: training cannot continue anyway.
    const float scale = finite ? most / Format::kLargest : std::numeric_limits<float>::quiet_NaN();
    std::memcpy(unit, &scale, sizeof scale);
    std::array<std::uint8_t, kBlock / kPerByte> codes{};
    for (std::int64_t i = 0; i < kBlock && scale > 0; ++i) {
      const int code = Format::code(values[i] / scale) & ((1 << kBits) - 1);
      auto& byte = codes[static_cast<std::size_t>(i / kPerByte)];
      byte = static_cast<std::uint8_t>(byte | code << i % kPerByte * kBits);
    }
    std::memcpy(unit + kScaleBytes, codes.data(), codes.size());
  }

  static void unpack(const std::byte* unit, float* values) {
    float scale = 0;
    std::memcpy(&scale, unit, sizeof scale);
    for (std::int64_t i = 0; i < kBlock; ++i) {
      const auto byte = static_cast<unsigned>(unit[kScaleBytes + i / kPerByte]);
      unsigned code = byte >> static_cast<unsigned>(i % kPerByte * kBits) & ((1U << kBits) - 1);
      const bool negative = kBits < 8 && (code >> (kBits - 1)) != 0;
      if (negative) code |= ~0U << kBits;  // sign of a whole number
      values[i] = scale * Format::value(static_cast<std::uint8_t>(code));
    }
  }

  static Encoded encode(std::vector<float>& gradient, std::int64_t) {
    Encoded encoded;
    encoded.values.resize((gradient.size() + kBlock - 1) / kBlock * kBlock);
    std::ranges::copy(gradient, encoded.values.begin());
    std::array<std::byte, kUnit> unit;
    for (std::size_t at = 0; at < encoded.values.size(); at += kBlock) {
      pack(encoded.values.data() + at, unit.data());
      unpack(unit.data(), encoded.values.data() + at);
    }
    encoded.values.resize(gradient.size());
    std::ranges::fill(gradient, 0.0F);  // rounding errors are not kept
    return encoded;
  }

  static void add(const Encoded& encoded, std::vector<float>& sum) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += encoded.values[i];
  }

  static Codec codec(std::string_view name, std::string_view summary) {
    Codec made{name,           summary,        false,  applies, encoded_bytes,
               encode_traffic, decode_traffic, encode, add,     DType::kBf16};
    made.block = kBlock;
    made.pack = pack;
    made.unpack = unpack;
    return made;
  }
};

}  // namespace

Codec int8_codec() {
  return Blocks<Whole<127>, 1>::codec("int8", "whole numbers of 8 bits, a scale for each 128");
}
Codec int4_codec() {
  return Blocks<Whole<7>, 2>::codec("int4", "whole numbers of 4 bits, a scale for each 128");
}
Codec fp8_codec() {
  return Blocks<E4M3, 1>::codec("fp8", "8-bit floats (E4M3), a scale for each 128");
}
Codec fp8_e5m2_codec() {
  return Blocks<E5M2, 1>::codec("fp8_e5m2", "8-bit floats (E5M2), a scale for each 128");
}

}  // namespace syncline::compress
