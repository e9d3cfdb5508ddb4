// cublasLt, loaded when it is first asked for (as backend_nccl does it with cuBLAS): half a
// gigabyte, which a program should not pay that multiplies no matrices.
#pragma once

#include <cublasLt.h>

#include "kernels/host_device.h"

namespace syncline::kernels {

struct CublasLtLibrary {
  Status status;  // why it is not there; then nothing else may be used

  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtGetStatusString) text = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
};

// Loaded once, and kept.
const CublasLtLibrary& cublas_lt_library();

}  // namespace syncline::kernels
