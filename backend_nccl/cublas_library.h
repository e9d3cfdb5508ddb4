// cuBLAS, loaded when it is asked for: the library takes a tenth of a second and 200 MB to load,
// which a program should not pay that multiplies no matrices.
#pragma once

#include <cublas_v2.h>

namespace syncline {

struct CublasLibrary {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasGemmEx) gemm = nullptr;
  decltype(&cublasGetStatusString) text = nullptr;
};

// Loaded once, and kept. Throws DeviceError where it is not there.
const CublasLibrary& cublas_library();

}  // namespace syncline
