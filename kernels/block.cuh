// The block of block.h on the GPU. For .cu files only.
#pragma once

#include <cuda_runtime.h>

#include "kernels/block.h"
#include "kernels/block_sum.cuh"

namespace syncline::kernels {

class CudaBlock {
 public:
  template <typename T>
  struct Each {
    T value;
    __device__ T& operator[](int) { return value; }
  };

  template <typename F>
  __device__ void each(F&& f) {
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
  }

  // Sums up each warp by shuffles, then adds the totals of the warps before.
  __device__ std::uint32_t exclusive_sum(Each<std::uint32_t>& x) {
    constexpr int kWarps = kBlockThreads / 32;
    __shared__ std::uint32_t warp_totals[kWarps];
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int warp = static_cast<int>(threadIdx.x / 32);
    std::uint32_t up_to_here = x.value;
    for (int offset = 1; offset < 32; offset *= 2) {
      const std::uint32_t before = __shfl_up_sync(0xffffffffu, up_to_here, offset);
      if (lane >= offset) up_to_here += before;
    }
    if (lane == 31) warp_totals[warp] = up_to_here;
    __syncthreads();
    std::uint32_t before = 0;
    std::uint32_t total = 0;
    for (int other = 0; other < kWarps; ++other) {
      const std::uint32_t sum = warp_totals[other];
      if (other < warp) before += sum;
      total += sum;
    }
    __syncthreads();  // the next sum may overwrite warp_totals
    x.value = before + up_to_here - x.value;
    return total;
  }

  __device__ double sum(Each<double>& x) { return block_sum(x.value); }

  __device__ static std::uint32_t fetch_add(std::uint32_t* counter, std::uint32_t by) {
    return atomicAdd(counter, by);
  }

  // Each thread's fence puts its writes before the ticket; the last block's fence keeps it from
  // reading anything older than the tickets it saw.
  __device__ bool last_of(std::uint32_t* ticket, std::uint32_t of) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      last = atomicAdd(ticket, 1u) == of - 1;
      if (last) *ticket = 0;
    }
    __syncthreads();
    if (last) __threadfence();
    return last;
  }
};

}  // namespace syncline::kernels
