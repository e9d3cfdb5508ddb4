// A block of kBlockThreads threads as the kernels see it, so that each kernel is written once.
// CudaBlock is the real one; SerialBlock emulates it on the CPU, thread after thread. KernelBlock
// is the one for this compiler.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/vector_access.h"

// Functions of blocks run on the GPU if nvcc compiles them, otherwise on the CPU.
#if defined(__CUDACC__)
#define SYNCLINE_BLOCK_ALGORITHM __device__ inline
#else
#define SYNCLINE_BLOCK_ALGORITHM inline
#endif

namespace syncline::kernels {

// A kernel is a sequence of phases, separated by barriers. Inside a phase, each(f), threads see
// each other's writes only through fetch_add. A thread keeps values across phases in an Each<T>: a
// register on the GPU, an array over threads here.
//
// Sums have a fixed shape: halves are added pairwise, thread t adds t + 128, then t + 64 and so on.
// The order never depends on the machine, and neither do the bits.

#if defined(__CUDACC__)

class CudaBlock {
 public:
  template <typename T>
  struct Each {
    T value;
    __device__ T& operator[](int) { return value; }
  };

  // Calls f(thread) for all threads, then waits at a barrier.
  template <typename F>
  __device__ void each(F&& f) {
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
  }

  // Replaces each thread's value by the sum of those of lower threads, and returns the sum of all.
  // Sums each warp by shuffles, then adds the totals of the warps before.
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

  // Returns the sum of all threads' values, valid in thread 0 only.
  __device__ double sum(Each<double>& x) {
    __shared__ double values[kBlockThreads];
    const int thread = static_cast<int>(threadIdx.x);
    double value = x.value;
    __syncthreads();  // an earlier sum's readers are done
    values[thread] = value;
    for (int stride = kBlockThreads / 2; stride >= 32; stride /= 2) {
      __syncthreads();
      if (thread < stride) values[thread] += values[thread + stride];
    }
    // The first warp now holds 32 values, one per lane.
    value = values[thread];
    if (thread < 32) {
      for (int stride = 16; stride > 0; stride /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, stride);
      }
    }
    return value;
  }

  // Adds to a counter in shared or global memory, and returns the old value.
  __device__ static std::uint32_t fetch_add(std::uint32_t* counter, std::uint32_t by) {
    return atomicAdd(counter, by);
  }

  // Returns true in the last of `of` blocks, which sees the others' writes. The ticket is 0 before
  // the first block and after the last. Each thread's fence orders its writes before the ticket.
  // The last block's fence keeps it from reading values older than the tickets.
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

using KernelBlock = CudaBlock;

#else

// Returns the sum in its fixed shape; it stays in values[0].
template <typename T>
T tree_sum(T (&values)[kBlockThreads]) {
  for (int stride = kBlockThreads / 2; stride > 0; stride /= 2) {
    for (int thread = 0; thread < stride; ++thread) values[thread] += values[thread + stride];
  }
  return values[0];
}

class SerialBlock {
 public:
  template <typename T>
  struct Each {
    T values[kBlockThreads];
    T& operator[](int thread) { return values[thread]; }
  };

  // True: threads of a phase run in falling order, else rising, so that a dependence on their order
  // changes results. Set by the code that runs blocks.
  static inline thread_local bool falling = false;

  template <typename F>
  void each(F&& f) {
    for (int i = 0; i < kBlockThreads; ++i) f(falling ? kBlockThreads - 1 - i : i);
  }

  std::uint32_t exclusive_sum(Each<std::uint32_t>& x) {
    std::uint32_t total = 0;
    for (auto& value : x.values) {
      const std::uint32_t mine = value;
      value = total;
      total += mine;
    }
    return total;
  }

  double sum(Each<double>& x) { return tree_sum(x.values); }

  static std::uint32_t fetch_add(std::uint32_t* counter, std::uint32_t by) {
    const std::uint32_t before = *counter;
    *counter += by;
    return before;
  }

  bool last_of(std::uint32_t* ticket, std::uint32_t of) {
    if (++*ticket != of) return false;
    *ticket = 0;
    return true;
  }
};

using KernelBlock = SerialBlock;

#endif

}  // namespace syncline::kernels
