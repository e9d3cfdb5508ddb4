#include "backend_nccl/cublas_library.h"

#include <dlfcn.h>

#include <string>

#include "backend_nccl/device.h"

namespace syncline::nccl_backend {
namespace {

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw DeviceError(std::string("dlsym ") + name + ": " + dlerror());
}

CublasLibrary load() {
  // Of the version whose header this was built with.
  const std::string name = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw DeviceError(std::string("dlopen: ") + dlerror());
  CublasLibrary cublas;
  find(library, "cublasCreate_v2", cublas.create);
  find(library, "cublasDestroy_v2", cublas.destroy);
  find(library, "cublasSetStream_v2", cublas.set_stream);
  find(library, "cublasSetWorkspace_v2", cublas.set_workspace);
  find(library, "cublasGemmEx", cublas.gemm);
  find(library, "cublasGetStatusString", cublas.text);
  return cublas;
}

}  // namespace

const CublasLibrary& cublas_library() {
  static const CublasLibrary kLibrary = load();
  return kLibrary;
}

}  // namespace syncline::nccl_backend
