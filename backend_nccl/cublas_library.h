// cuBLAS, loaded when it is asked for: the library takes a tenth of a second and 200 MB to load,
// which a program should not pay that multiplies no matrices.
#pragma once

#include <cublas_v2.h>

namespace syncline::nccl_backend {

struct CublasLibrary {
  // Of the function's two overloads the library's own; a wrong type would not compile here.
  using Gemm = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                  int, const void*, const void*, cudaDataType, int, const void*,
                                  cudaDataType, int, const void*, void*, cudaDataType, int,
                                  cublasComputeType_t, cublasGemmAlgo_t);
  static_assert(sizeof(static_cast<Gemm>(&cublasGemmEx)) == sizeof(Gemm));

  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  Gemm gemm = nullptr;
  decltype(&cublasGetStatusString) text = nullptr;
};

// Loaded once, and kept. Throws DeviceError where it is not there.
const CublasLibrary& cublas_library();

}  // namespace syncline::nccl_backend
