#include "core/codec.h"

#include <Eigen/Core>
#include <algorithm>

#include "core/base/internal_error.h"

namespace syncline::compress {
namespace {

// Half is a 16-bit floating-point type that converts from and to float.
template <typename Half>
struct HalfPrecision {
  static constexpr Bytes kHalfBytes = 2;

  static bool applies(const Tensor& tensor, std::int64_t min_elements) {
    return !tensor.sparse && size_of(tensor.dtype) > kHalfBytes && tensor.elements >= min_elements;
  }

  static Bytes encoded_bytes(std::int64_t elements, std::int64_t) { return kHalfBytes * elements; }

  // Returns the traffic of a cast, in both directions: it reads one format and writes the other.
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
      value = 0;  // rounding errors are not kept
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

}  // namespace

Codec fp16_codec() {
  return HalfPrecision<Eigen::half>::codec(
      "fp16", "gradients rounded to half precision for the wire, summed by all-reduce",
      DType::kFp16);
}
Codec bf16_codec() {
  return HalfPrecision<Eigen::bfloat16>::codec(
      "bf16", "gradients rounded to bfloat16 for the wire, summed by all-reduce", DType::kBf16);
}

namespace {

std::vector<Codec>& codec_rows() {
  static std::vector<Codec> rows{
      dgc_codec(),  fp16_codec(), bf16_codec(), power_sgd_codec(), batched_power_sgd_codec(),
      int8_codec(), int4_codec(), fp8_codec(),  fp8_e5m2_codec()};
  return rows;
}

}  // namespace

std::span<const Codec> codecs() { return codec_rows(); }

void hand_in(const Codec& row) {
  if (find_codec(row.name) != nullptr) {
    throw InternalError("two codecs have the name '" + std::string(row.name) + "'");
  }
  codec_rows().push_back(row);
}

const Codec* find_codec(std::string_view name) {
  const auto row = std::ranges::find(codecs(), name, &Codec::name);
  return row == codecs().end() ? nullptr : &*row;
}

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const auto& codec : codecs()) names.emplace_back(codec.name);
  return names;
}

}  // namespace syncline::compress
