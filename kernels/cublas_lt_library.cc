#include "kernels/cublas_lt_library.h"

#include <dlfcn.h>

#include <string>

namespace syncline::kernels {
namespace {

template <typename Function>
void find(void* library, const char* name, Function& function, Status& status) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr && status.ok()) {
    status = failure(std::string("dlsym ") + name + ": " + dlerror());
  }
}

CublasLtLibrary load() {
  CublasLtLibrary lt;
  // The version of the header that this was built with.
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    lt.status = failure(std::string("dlopen: ") + dlerror());
    return lt;
  }
  find(library, "cublasLtCreate", lt.create, lt.status);
  find(library, "cublasLtGetStatusString", lt.text, lt.status);
  find(library, "cublasLtMatmulDescCreate", lt.desc_create, lt.status);
  find(library, "cublasLtMatmulDescDestroy", lt.desc_destroy, lt.status);
  find(library, "cublasLtMatmulDescSetAttribute", lt.desc_set, lt.status);
  find(library, "cublasLtMatrixLayoutCreate", lt.layout_create, lt.status);
  find(library, "cublasLtMatrixLayoutDestroy", lt.layout_destroy, lt.status);
  find(library, "cublasLtMatmulPreferenceCreate", lt.preference_create, lt.status);
  find(library, "cublasLtMatmulPreferenceDestroy", lt.preference_destroy, lt.status);
  find(library, "cublasLtMatmulPreferenceSetAttribute", lt.preference_set, lt.status);
  find(library, "cublasLtMatmulAlgoGetHeuristic", lt.heuristic, lt.status);
  find(library, "cublasLtMatmul", lt.matmul, lt.status);
  return lt;
}

}  // namespace

const CublasLtLibrary& cublas_lt_library() {
  static const CublasLtLibrary kLibrary = load();
  return kLibrary;
}

}  // namespace syncline::kernels
