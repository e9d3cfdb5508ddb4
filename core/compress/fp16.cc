#include "core/compress/fp16.h"

#include <Eigen/Core>

namespace syncline {
namespace {

constexpr Bytes kHalfBytes = 2;

bool applies(const Tensor& tensor, std::int64_t min_elements) {
  return !tensor.sparse && size_of(tensor.dtype) > kHalfBytes && tensor.elements >= min_elements;
}

Bytes encoded_bytes(std::int64_t elements, std::int64_t) { return kHalfBytes * elements; }

// A cast reads one precision and writes the other, on the way out and on the way back.
double encode_traffic(std::int64_t elements, std::int64_t, Bytes element_size) {
  return static_cast<double>(elements) * static_cast<double>(element_size + kHalfBytes);
}

double decode_traffic(std::int64_t elements, std::int64_t kept, int, Bytes element_size) {
  return encode_traffic(elements, kept, element_size);
}

Encoded encode(std::vector<float>& gradient, std::int64_t) {
  Encoded encoded;
  encoded.values.reserve(gradient.size());
  for (auto& value : gradient) {
    encoded.values.push_back(static_cast<float>(Eigen::half(value)));
    value = 0;  // what rounding lost is not kept
  }
  return encoded;
}

void add(const Encoded& encoded, std::vector<float>& sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += encoded.values[i];
}

}  // namespace

Codec fp16_codec() {
  return {"fp16",
          "gradients rounded to half precision for the wire, summed by all-reduce",
          false,
          applies,
          encoded_bytes,
          encode_traffic,
          decode_traffic,
          encode,
          add};
}

}  // namespace syncline
