// Columns made orthogonal and of length 1, from the first on (Gram and Schmidt, as
// core/compress/power_sgd.cc has it): a factor of low rank. A column that the ones before it span
// becomes zeros.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/host_device.h"

namespace syncline::kernels {

// One row after the other, `rank` numbers each.
struct Factor {
  float* numbers = nullptr;
  std::int64_t rows = 0;
  std::int32_t rank = 0;
};

// A block of threads for each.
Status orthogonalise(const std::vector<Factor>& factors, cudaStream_t stream);

}  // namespace syncline::kernels
