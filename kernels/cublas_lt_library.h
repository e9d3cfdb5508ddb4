// cublasLt, loaded on first use, as backend_nccl loads NCCL: half a gigabyte that a program without
// matrix products should not pay for.
#pragma once

#include <cublasLt.h>

#include "kernels/host_device.h"

namespace syncline::kernels {

struct CublasLtLibrary {
  Status status;  // the reason why it is missing; if set, do not use the functions

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

// Loads the library on the first call, and returns it.
const CublasLtLibrary& cublas_lt_library();

}  // namespace syncline::kernels
