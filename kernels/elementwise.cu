#include "kernels/kernels.h"

#include <cmath>

#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

// Gelu is z * Phi(z), Phi the normal distribution, with erf by formula 7.1.26 of Abramowitz and
// Stegun (absolute error 1.5e-7). Its one exponential is also the slope's density, so that
// computing takes no longer than memory in either direction.
SYNCLINE_HOST_DEVICE inline float exponential(float x) {
#if defined(__CUDA_ARCH__)
  return __expf(x);
#else
  return std::exp(x);
#endif
}

// Returns Phi(z), and sets `bell` to the density's exponential exp(-z^2 / 2).
SYNCLINE_HOST_DEVICE inline float normal_distribution(float z, float& bell) {
  const float x = fabsf(z) * 0.70710678f;
  bell = exponential(-x * x);
  const float t = 1.0f / (1.0f + 0.3275911f * x);
  const float polynomial =
      t * (0.254829592f +
           t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  const float tail = 0.5f * polynomial * bell;  // beyond |z|
  return z < 0 ? tail : 1.0f - tail;
}

template <Activation kActivation>
SYNCLINE_HOST_DEVICE inline float activate(float z) {
  if constexpr (kActivation == Activation::kRelu) return z < 0 ? 0.0f : z;
  if constexpr (kActivation == Activation::kGelu) {
    if (z < -40.0f) return 0.0f;  // also minus infinity, with a product of NaN
    float bell;
    return z * normal_distribution(z, bell);
  }
  return z;
}

// Returns the derivative at z; relu's is 0 at 0, as torch's.
template <Activation kActivation>
SYNCLINE_HOST_DEVICE inline float slope(float z) {
  if constexpr (kActivation == Activation::kRelu) return z <= 0 ? 0.0f : 1.0f;
  if constexpr (kActivation == Activation::kGelu) {
    if (fabsf(z) > 40.0f) return z < 0 ? 0.0f : 1.0f;
    float bell;
    const float phi = normal_distribution(z, bell);
    return phi + z * bell * 0.39894228f;  // 1 / sqrt(2 pi)
  }
  return 1.0f;
}

// Elements per group of 16 bytes; groups are aligned to the output's address.
template <typename T>
constexpr int kActivationGroup = 16 / static_cast<int>(sizeof(T));

// Computes one tile. Forward: `out` is y, and dy is null. Backward: `out` is dz.
template <typename T, Activation kActivation, bool kBackward>
SYNCLINE_HOST_DEVICE inline void add_activation_tile(const T* a, const T* b, const T* dy, T* out,
                                                     std::int64_t size, std::int64_t tile,
                                                     int thread) {
  constexpr int kGroup = kActivationGroup<T>;
  constexpr int kGroups = kTileElements / kBlockThreads / kGroup;
  constexpr int kAtOnce = kGroups < 2 ? kGroups : 2;
  constexpr int kStride = kBlockThreads * kGroup;
  const std::int64_t start = tile * kTileElements - misalignment<kGroup>(out);
  const bool a_aligned = is_aligned<kGroup>(a, start);
  const bool b_aligned = b != nullptr && is_aligned<kGroup>(b, start);
  const bool dy_aligned = kBackward && is_aligned<kGroup>(dy, start);
  const bool whole = start >= 0 && start + kTileElements <= size && a_aligned &&
                     (b == nullptr || b_aligned) && (!kBackward || dy_aligned);

  SYNCLINE_UNROLL
  for (int begin = 0; begin < kGroups; begin += kAtOnce) {
    const std::int64_t first = start + thread * kGroup + begin * kStride;
    float z[kAtOnce][kGroup];
    float added[kAtOnce][kGroup] = {};
    float gradient[kAtOnce][kGroup];
    SYNCLINE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const std::int64_t at = first + i * kStride;
      if (whole) {
        load_vector<Reuse::kStream>(a + at, z[i]);
        if (b != nullptr) load_vector<Reuse::kStream>(b + at, added[i]);
        if constexpr (kBackward) load_vector<Reuse::kStream>(dy + at, gradient[i]);
      } else {
        load_group<Reuse::kStream>(a, at, size, a_aligned, z[i]);
        if (b != nullptr) load_group<Reuse::kStream>(b, at, size, b_aligned, added[i]);
        if constexpr (kBackward) {
          load_group<Reuse::kStream>(dy, at, size, dy_aligned, gradient[i]);
        }
      }
    }
    SYNCLINE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      SYNCLINE_UNROLL
      for (int j = 0; j < kGroup; ++j) {
        const float sum = z[i][j] + added[i][j];
        z[i][j] = kBackward ? gradient[i][j] * slope<kActivation>(sum) : activate<kActivation>(sum);
      }
      const std::int64_t at = first + i * kStride;
      if (whole) {
        store_vector<Reuse::kKeep>(out + at, z[i]);
      } else {
        store_group<Reuse::kKeep>(out, at, size, true, z[i]);
      }
    }
  }
}

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
  LaunchGrid grid;
  if (auto status = blocks_for(kernel, tiles, &grid); !status.ok()) return status;
  return launch("add_activation_kernel", kernel, grid, stream, a, b, gradient, result,
                inputs.elements, tiles);
}

template <typename T>
Status launch_typed(const AddActivation& inputs, const void* dy, void* out, cudaStream_t stream) {
  const auto one = inputs.activation == Activation::kRelu   ? launch_one<T, Activation::kRelu>
                   : inputs.activation == Activation::kGelu ? launch_one<T, Activation::kGelu>
                                                            : launch_one<T, Activation::kIdentity>;
  return one(inputs, dy, out, stream);
}

Status launch_any(const AddActivation& inputs, const void* dy, void* out, cudaStream_t stream) {
  return with_type(inputs.type, [&](auto element) {
    return launch_typed<decltype(element)>(inputs, dy, out, stream);
  });
}

}  // namespace

Status add_activation(const AddActivation& inputs, void* y, cudaStream_t stream) {
  return launch_any(inputs, nullptr, y, stream);
}

Status add_activation_gradient(const AddActivation& inputs, const void* dy, void* dz,
                               cudaStream_t stream) {
  if (inputs.elements == 0) return {};
  return launch_any(inputs, dy, dz, stream);
}

}  // namespace syncline::kernels
