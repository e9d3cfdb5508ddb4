// Grid sizes. For .cu files only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda_status.cuh"

namespace syncline {

// Blocks for `tiles` tiles: as many as the device holds at once at `blocks_per_sm`, which walk the
// tiles with the grid's stride; never more than there are tiles, and at least one.
inline Status blocks_for(std::int64_t tiles, int blocks_per_sm, unsigned* blocks) {
  int device = 0;
  int multiprocessors = 0;
  if (auto status = cuda_status(cudaGetDevice(&device), "cudaGetDevice"); !status.ok()) {
    return status;
  }
  const auto error =
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (auto status = cuda_status(error, "cudaDeviceGetAttribute"); !status.ok()) return status;
  const std::int64_t held = static_cast<std::int64_t>(multiprocessors) * blocks_per_sm;
  *blocks = static_cast<unsigned>(std::max<std::int64_t>(1, std::min(tiles, held)));
  return {};
}

}  // namespace syncline
