#include "backend_nccl/cublas_library.h"

#include <string>

#include "backend_nccl/load_library.h"

namespace syncline::nccl_backend {
namespace {

CublasLibrary load() {
  // Of the version whose header this was built with.
  void* library = load_library("libcublas.so." + std::to_string(CUBLAS_VER_MAJOR));
  CublasLibrary cublas;
  find_function(library, "cublasCreate_v2", cublas.create);
  find_function(library, "cublasDestroy_v2", cublas.destroy);
  find_function(library, "cublasSetStream_v2", cublas.set_stream);
  find_function(library, "cublasSetWorkspace_v2", cublas.set_workspace);
  find_function(library, "cublasGemmEx", cublas.gemm);
  find_function(library, "cublasGetStatusString", cublas.text);
  return cublas;
}

}  // namespace

const CublasLibrary& cublas_library() {
  static const CublasLibrary kLibrary = load();
  return kLibrary;
}

}  // namespace syncline::nccl_backend
