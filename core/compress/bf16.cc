
#include <Eigen/Core>

#include "core/compress/half.h"

namespace syncline::compress {

Codec bf16_codec() {
  return HalfPrecision<Eigen::bfloat16>::codec(
      "bf16", "gradients rounded to bfloat16 for the wire, summed by all-reduce", DType::kBf16);
}

}  // namespace syncline::compress
