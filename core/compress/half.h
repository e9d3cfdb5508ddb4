// What the two half precisions share: gradients are rounded for the wire and summed by all-reduce.
#pragma once

#include "core/compress/codec.h"

namespace syncline::compress {

// Half is a 16-bit floating-point type that converts from and to float.
template <typename Half>
struct HalfPrecision {
  static constexpr Bytes kHalfBytes = 2;

  static bool applies(const Tensor& tensor, std::int64_t min_elements) {
    return !tensor.sparse && size_of(tensor.dtype) > kHalfBytes && tensor.elements >= min_elements;
  }

  static Bytes encoded_bytes(std::int64_t elements, std::int64_t) { return kHalfBytes * elements; }

  // A cast reads one precision and writes the other, on the way out and on the way back.
  static double encode_traffic(std::int64_t elements, std::int64_t, Bytes element_size) {
    return static_cast<double>(elements) * static_cast<double>(element_size + kHalfBytes);
  }

  static double decode_traffic(std::int64_t elements, std::int64_t kept, int, Bytes element_size) {
    return encode_traffic(elements, kept, element_size);
  }

  static Encoded encode(std::vector<float>& gradient, std::int64_t) {
    Encoded encoded;
    encoded.values.reserve(gradient.size());
    for (auto& value : gradient) {
      encoded.values.push_back(static_cast<float>(Half(value)));
      value = 0;  // what rounding lost is not kept
    }
    return encoded;
  }

  static void add(const Encoded& encoded, std::vector<float>& sum) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += encoded.values[i];
  }

  static Codec codec(std::string_view name, std::string_view summary, DType wire) {
    return {name,           summary,        false,  applies, encoded_bytes,
            encode_traffic, decode_traffic, encode, add,     wire};
  }
};

// Half-precision transport: wider gradients are rounded to fp16 for the wire and summed there.

Codec fp16_codec();

// Bfloat16 transport: wider gradients keep their exponent and lose mantissa for the wire, and are
// summed there.

Codec bf16_codec();

}  // namespace syncline::compress
