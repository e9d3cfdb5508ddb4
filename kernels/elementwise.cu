#include "kernels/elementwise.h"

#include "kernels/elementwise_tile.h"
#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

template <typename T, Activation kActivation, bool kBackward>
__global__ void __launch_bounds__(kBlockThreads, 4)
    add_activation_kernel(const T* a, const T* b, const T* dy, T* out, std::int64_t size,
                          std::int64_t tiles) {
  KernelBlock block;
  block.each([&](int thread) {
    for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      add_activation_tile<T, kActivation, kBackward>(a, b, dy, out, size, tile, thread);
    }
  });
}

template <typename T, Activation kActivation>
Status launch_one(const AddActivation& inputs, const void* dy, void* out, cudaStream_t stream) {
  const auto* a = static_cast<const T*>(inputs.a);
  const auto* b = static_cast<const T*>(inputs.b);
  const auto* gradient = static_cast<const T*>(dy);
  auto* result = static_cast<T*>(out);
  const auto kernel = dy == nullptr ? add_activation_kernel<T, kActivation, false>
                                    : add_activation_kernel<T, kActivation, true>;
  const std::int64_t tiles = tiles_of(inputs.elements, misalignment<kActivationGroup<T>>(result));
  if (tiles == 0) return {};
  Grid grid;
  if (auto status = blocks_for(kernel, tiles, &grid); !status.ok()) return status;
  return launch("add_activation_kernel", kernel, grid, stream, a, b, gradient, result,
                inputs.elements, tiles);
}

template <typename T>
Status launch_typed(const AddActivation& inputs, const void* dy, void* out, cudaStream_t stream) {
  switch (inputs.activation) {
    case Activation::kRelu:
      return launch_one<T, Activation::kRelu>(inputs, dy, out, stream);
    case Activation::kGelu:
      return launch_one<T, Activation::kGelu>(inputs, dy, out, stream);
    case Activation::kIdentity:
      break;
  }
  return launch_one<T, Activation::kIdentity>(inputs, dy, out, stream);
}

Status launch_any(const AddActivation& inputs, const void* dy, void* out, cudaStream_t stream) {
  switch (inputs.type) {
    case ElementType::kBf16:
      return launch_typed<Bf16>(inputs, dy, out, stream);
    case ElementType::kFp16:
      return launch_typed<Fp16>(inputs, dy, out, stream);
    case ElementType::kFp32:
      break;
  }
  return launch_typed<float>(inputs, dy, out, stream);
}

}  // namespace

Status add_activation(const AddActivation& inputs, void* y, cudaStream_t stream) {
  if (auto status = check_add_activation(inputs, y); !status.ok()) return status;
  return launch_any(inputs, nullptr, y, stream);
}

Status add_activation_gradient(const AddActivation& inputs, const void* dy, void* dz,
                               cudaStream_t stream) {
  if (auto status = check_add_activation_gradient(inputs, dy, dz); !status.ok()) return status;
  if (inputs.elements == 0) return {};
  return launch_any(inputs, dy, dz, stream);
}

}  // namespace syncline::kernels
