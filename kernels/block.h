// A block of kBlockThreads threads as the kernels' block algorithms see it, so that each algorithm
// is written once: CudaBlock (block.cuh) is the real one, SerialBlock stands in for it on the CPU,
// thread after thread.
//
// A block algorithm is a sequence of phases. Inside a phase, each(f), threads do not see each
// other's writes but through fetch_add; between two phases lies a barrier. What a thread keeps from
// one phase to the next is an Each<T>: a register on the GPU, an array over threads here.
#pragma once

#include <cstdint>

#include "kernels/block_sum.h"
#include "kernels/host_device.h"
#include "kernels/vector_access.h"

// A block algorithm runs on the GPU when nvcc compiles it, and on the CPU otherwise.
#if defined(__CUDACC__)
#define SYNCLINE_BLOCK_ALGORITHM __device__ inline
#else
#define SYNCLINE_BLOCK_ALGORITHM inline
#endif

namespace syncline::kernels {

#if !defined(__CUDACC__)

class SerialBlock {
 public:
  template <typename T>
  struct Each {
    T values[kBlockThreads];
    T& operator[](int thread) { return values[thread]; }
  };

  // Threads of a phase run in rising or in falling order: an algorithm that depends on the order
  // inside a phase gives different results.
  explicit SerialBlock(bool falling = false) : falling_(falling) {}

  // f(thread) for all threads, then a barrier.
  template <typename F>
  void each(F&& f) {
    for (int i = 0; i < kBlockThreads; ++i) f(falling_ ? kBlockThreads - 1 - i : i);
  }

  // Each thread's value becomes the sum of those of lower threads; all of them together come back.
  std::uint32_t exclusive_sum(Each<std::uint32_t>& x) {
    std::uint32_t total = 0;
    for (auto& value : x.values) {
      const std::uint32_t mine = value;
      value = total;
      total += mine;
    }
    return total;
  }

  // The sum in the fixed shape of block_sum.h; on the GPU thread 0 alone has it.
  double sum(Each<double>& x) { return tree_sum(x.values); }

  // On counters in shared or global memory.
  static std::uint32_t fetch_add(std::uint32_t* counter, std::uint32_t by) {
    const std::uint32_t before = *counter;
    *counter += by;
    return before;
  }

  // True in the one of `of` blocks that comes last; it sees what the others wrote. The ticket is 0
  // before the first comes and again after the last.
  bool last_of(std::uint32_t* ticket, std::uint32_t of) {
    if (++*ticket != of) return false;
    *ticket = 0;
    return true;
  }

 private:
  bool falling_;
};

#endif

}  // namespace syncline::kernels
