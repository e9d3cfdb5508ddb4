
#include <Eigen/Core>

#include "core/compress/half.h"

namespace syncline::compress {

Codec fp16_codec() {
  return HalfPrecision<Eigen::half>::codec(
      "fp16", "gradients rounded to half precision for the wire, summed by all-reduce",
      DType::kFp16);
}

}  // namespace syncline::compress
