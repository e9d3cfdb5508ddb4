// A block of kBlockThreads threads as the kernels see it, so that each is written once: CudaBlock
// is the real one, SerialBlock stands in for it on the CPU, thread after thread. KernelBlock is the
// one that this compiler makes kernels of.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/vector_access.h"

// What blocks do runs on the GPU when nvcc compiles it, and on the CPU otherwise.
#if defined(__CUDACC__)
#define SYNCLINE_BLOCK_ALGORITHM __device__ inline
#else
#define SYNCLINE_BLOCK_ALGORITHM inline
#endif

namespace syncline::kernels {

// A kernel is a sequence of phases. Inside a phase, each(f), threads do not see each other's writes
// but through fetch_add; between two phases lies a barrier. What a thread keeps from one phase to
// the next is an Each<T>: a register on the GPU, an array over threads here.
//
// Sums have a fixed shape: halves are added pairwise, thread t takes t + 128, then t + 64 and so
// on. The order never depends on the machine, so neither do the bits.

#if defined(__CUDACC__)

class CudaBlock {
 public:
  template <typename T>
  struct Each {
    T value;
    __device__ T& operator[](int) { return value; }
  };

  // f(thread) for all threads, then a barrier.
  template <typename F>
  __device__ void each(F&& f) {
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
  }

  // Each thread's value becomes the sum of those of lower threads; all of them together come back.
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

  // Returns the sum of all threads' values; thread 0 alone has it.
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
    // The first warp holds 32 values now, each lane its own.
    value = values[thread];
    if (thread < 32) {
      for (int stride = 16; stride > 0; stride /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, stride);
      }
    }
    return value;
  }

  // On counters in shared or global memory.
  __device__ static std::uint32_t fetch_add(std::uint32_t* counter, std::uint32_t by) {
    return atomicAdd(counter, by);
  }

  // True in the one of `of` blocks that comes last; it sees what the others wrote. The ticket is 0
  // before the first comes and again after the last. Each thread's fence puts its writes before the
  // ticket; the last block's fence keeps it from reading anything older than the tickets it saw.
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

  // Threads of a phase run in rising or in falling order: what depends on the order inside a phase
  // gives different results. Whoever runs blocks says which.
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
