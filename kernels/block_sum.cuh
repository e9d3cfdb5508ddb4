// What the threads of a block do together on the GPU: sums in the fixed shape of block_sum.h, and
// finding out which block is the last one to finish.
#pragma once

#include <cuda_runtime.h>

#include "kernels/vector_access.h"

namespace syncline::kernels {

// Every thread of a block of kBlockThreads gives one value; thread 0 gets the sum.
template <typename T>
__device__ T block_sum(T value) {
  __shared__ T values[kBlockThreads];
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // an earlier sum's readers are done
  values[thread] = value;
  for (int stride = kBlockThreads / 2; stride >= 32; stride /= 2) {
    __syncthreads();
    if (thread < stride) values[thread] += values[thread + stride];
  }
  // The first warp holds 32 values now, each lane its own.
  value = values[thread];
  if (thread < 32) {
    for (int stride = 16; stride > 0; stride /= 2) {
      value += __shfl_down_sync(0xffffffffu, value, stride);
    }
  }
  return value;
}

// True in every thread of the one block that comes here last, which then sees what the others
// wrote before; nobody waits. `ticket` is 0 before the launch; the last block makes it 0 again.
__device__ inline bool is_last_block(unsigned* ticket) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    if (last) *ticket = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

}  // namespace syncline::kernels
