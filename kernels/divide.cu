#include "kernels/divide.h"
#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

__global__ void divide_kernel(float* values, std::int64_t count, float divisor) {
  KernelBlock block;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  block.each([&](int thread) {
    std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + thread;
    for (; i < count; i += step) values[i] = values[i] / divisor;
  });
}

}  // namespace

Status divide(float* values, std::int64_t count, float divisor, cudaStream_t stream) {
  if (count < 0) return failure("divide: a negative count");
  if (count == 0) return {};
  if (values == nullptr) return failure("divide: a null pointer");
  Grid grid;
  const Status status =
      blocks_for(divide_kernel, (count + kBlockThreads - 1) / kBlockThreads, &grid);
  if (!status.ok()) return status;
  return launch("divide_kernel", divide_kernel, grid, stream, values, count, divisor);
}

}  // namespace syncline::kernels
