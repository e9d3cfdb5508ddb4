// How a kernel is launched, here and in no other way: launch("NAME", NAME, grid, stream,
// arguments). For .cu files only. Where nvcc does not compile them, they are C++: a kernel is a
// function that does what one block does, and whoever emulates a GPU runs it block by block
// (launch_on_host).
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/block.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#else
#include <cmath>
#include <functional>
#undef __shared__
#define __shared__ static thread_local  // a block finds what the last one left, as on a GPU
#ifndef __global__                      // CUDA's own headers may be there and have done so
#define __global__
#define __device__
#define __grid_constant__
#define __launch_bounds__(...)
#endif
#endif

namespace syncline::kernels {

// Blocks of a launch, kBlockThreads threads each.
struct Grid {
  unsigned x = 1;
  unsigned y = 1;
};

#if defined(__CUDACC__)

// `call` is the text of what was called: "cudaMemcpyAsync(bucket)".
inline Status cuda_status(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return {};
  return failure(std::string(call) + ": " + cudaGetErrorName(error) + ": " +
                 cudaGetErrorString(error));
}

// A launch that CUDA refuses is its failure, and is not blamed on the next; an error of an earlier
// kernel that is still running comes with a later call.
template <typename... Parameters>
Status launch(const char* name, void (*kernel)(Parameters...), Grid grid, cudaStream_t stream,
              std::type_identity_t<Parameters>... arguments) {
  kernel<<<dim3(grid.x, grid.y), kBlockThreads, 0, stream>>>(arguments...);
  return cuda_status(cudaGetLastError(), name);
}

inline Status clear(void* memory, std::size_t bytes, cudaStream_t stream) {
  return cuda_status(cudaMemsetAsync(memory, 0, bytes, stream), "cudaMemsetAsync");
}

// Blocks for `parts` parts of work: as many as the device holds at once, which walk the parts with
// the grid's stride; never more than there are parts, and at least one.
template <typename Kernel>
Status blocks_for(Kernel kernel, std::int64_t parts, Grid* grid) {
  int device = 0;
  int multiprocessors = 0;
  int each = 0;
  auto status = cuda_status(cudaGetDevice(&device), "cudaGetDevice");
  if (!status.ok()) return status;
  status =
      cuda_status(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
                  "cudaDeviceGetAttribute");
  if (!status.ok()) return status;
  status =
      cuda_status(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, kBlockThreads, 0),
                  "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  if (!status.ok()) return status;
  const std::int64_t held = static_cast<std::int64_t>(multiprocessors) * std::max(each, 1);
  grid->x = static_cast<unsigned>(std::max<std::int64_t>(1, std::min(parts, held)));
  return {};
}

#else

// Whose turn it is, as in CUDA.
inline thread_local Grid blockIdx;
inline thread_local Grid gridDim;

// In the stream's turn, `block` for each block of the grid, with blockIdx and gridDim set. Defined
// by whoever emulates a GPU.
void launch_on_host(const char* kernel, Grid grid, cudaStream_t stream,
                    std::function<void()> block);
Status clear(void* memory, std::size_t bytes, cudaStream_t stream);

template <typename... Parameters>
Status launch(const char* name, void (*kernel)(Parameters...), Grid grid, cudaStream_t stream,
              std::type_identity_t<Parameters>... arguments) {
  launch_on_host(name, grid, stream, [=] { kernel(arguments...); });
  return {};
}

template <typename Kernel>
Status blocks_for(Kernel, std::int64_t parts, Grid* grid) {
  constexpr std::int64_t kHeld = 7;  // few, and no power of two: blocks walk
  grid->x = static_cast<unsigned>(std::max<std::int64_t>(1, std::min(parts, kHeld)));
  return {};
}

#endif

}  // namespace syncline::kernels
