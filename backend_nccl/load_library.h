// Libraries of CUDA's that are loaded when they are asked for, so that the program runs where there
// is neither CUDA nor NCCL.
#pragma once

#include <dlfcn.h>

#include <string>

#include "backend_nccl/device.h"

namespace syncline::nccl_backend {

// The library of that name ("libnccl.so.2"): where the loader finds it, else where the build did.
// It stays loaded. Throws DeviceError with the loader's own words.
void* load_library(const std::string& name);

// Its function of that name. Throws DeviceError where it has none.
template <typename Function>
void find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw DeviceError(std::string("dlsym ") + name + ": " + dlerror());
}

}  // namespace syncline::nccl_backend
