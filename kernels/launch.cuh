// Grid sizes. For .cu files only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda_status.cuh"
#include "kernels/vector_access.h"

namespace syncline::kernels {

// Blocks of kBlockThreads for `parts` parts of work: as many as the device holds at once, which
// walk the parts with the grid's stride; never more than there are parts, and at least one.
template <typename Kernel>
Status blocks_for(Kernel kernel, std::int64_t parts, unsigned* blocks) {
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
  *blocks = static_cast<unsigned>(std::max<std::int64_t>(1, std::min(parts, held)));
  return {};
}

}  // namespace syncline::kernels
