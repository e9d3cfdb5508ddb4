#include "kernels/divide.h"
#include "kernels/launch.cuh"

namespace syncline::kernels {
namespace {

__global__ void divide_kernel(float* values, std::int64_t count, float divisor) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < count; i += step) values[i] = __fdiv_rn(values[i], divisor);
}

}  // namespace

Status divide(float* values, std::int64_t count, float divisor, cudaStream_t stream) {
  if (count < 0) return failure("divide: a negative count");
  if (count == 0) return {};
  if (values == nullptr) return failure("divide: a null pointer");
  unsigned blocks = 1;
  const Status status =
      blocks_for(divide_kernel, (count + kBlockThreads - 1) / kBlockThreads, &blocks);
  if (!status.ok()) return status;
  divide_kernel<<<blocks, kBlockThreads, 0, stream>>>(values, count, divisor);
  return launch_status("divide");
}

}  // namespace syncline::kernels
