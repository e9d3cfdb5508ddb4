// Sums of one value a thread in a fixed shape: halves are added pairwise, thread t takes t + 128,
// then t + 64 and so on. The order never depends on the machine, so neither do the bits; the GPU's
// form is in block_sum.cuh.
#pragma once

#include "kernels/vector_access.h"

namespace syncline::kernels {

// The CPU's form; leaves the sum in values[0].
template <typename T>
T tree_sum(T (&values)[kBlockThreads]) {
  for (int stride = kBlockThreads / 2; stride > 0; stride /= 2) {
    for (int thread = 0; thread < stride; ++thread) values[thread] += values[thread + stride];
  }
  return values[0];
}

}  // namespace syncline::kernels
