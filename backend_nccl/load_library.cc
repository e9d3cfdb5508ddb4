#include "backend_nccl/device.h"

namespace syncline::nccl_backend {

void* load_library(const std::string& name) {
  constexpr int kHow = RTLD_NOW | RTLD_LOCAL;
  if (void* library = dlopen(name.c_str(), kHow)) return library;
  const std::string reason = dlerror();
  // CUDA's folders are not always among the loader's.
  for (const char* folder : {SYNCLINE_CUDA_FOLDER, SYNCLINE_NCCL_FOLDER}) {
    if (void* library = dlopen((folder + ("/" + name)).c_str(), kHow)) return library;
  }
  throw DeviceError("dlopen: " + reason);
}

}  // namespace syncline::nccl_backend
