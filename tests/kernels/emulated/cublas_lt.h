// What a test sets on the emulated cublasLt, and learns from it.
#pragma once

#include <cublasLt.h>

#include <cstdint>

namespace syncline::kernels {

struct EmulatedCublasLt {
  int asked = 0;  // heuristics, so often
  std::uint64_t workspace_limit = 0;
  bool has_kernels = true;
  bool says_not_supported = false;  // the other way in which it tells of none
  cudaDataType refused = CUDA_R_64F;
};
extern EmulatedCublasLt emulated;

}  // namespace syncline::kernels
