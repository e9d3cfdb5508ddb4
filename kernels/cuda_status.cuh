// CUDA's answers as a Status. For .cu files only: it includes CUDA's headers.
#pragma once

#include <cuda_runtime.h>

#include "kernels/status.h"

namespace syncline::kernels {

// `call` is the text of what was called: "cudaMemcpyAsync(bucket)".
inline Status cuda_status(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return {};
  return failure(std::string(call) + ": " + cudaGetErrorName(error) + ": " +
                 cudaGetErrorString(error));
}

// After <<<>>>: a launch that CUDA refused. It clears the error, so that the next launch is not
// blamed for it; an error of an earlier kernel that is still running comes with a later call.
inline Status launch_status(const char* kernel) { return cuda_status(cudaGetLastError(), kernel); }

}  // namespace syncline::kernels
