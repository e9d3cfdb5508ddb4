// What addition and activation do to one tile, for one thread: compiled into the kernels
// (elementwise.cu) and run on the CPU by the tests.
#pragma once

#include "kernels/elementwise.h"
#include "kernels/vector_access.h"

namespace syncline::kernels {

Status check_add_activation(const AddActivation& inputs, const void* y);
Status check_add_activation_gradient(const AddActivation& inputs, const void* dy, const void* dz);

// Groups of 16 bytes follow the output's address.
template <typename T>
constexpr int kActivationGroup = 16 / static_cast<int>(sizeof(T));

// dy is null going forward; `out` is y then, and dz going back.
template <typename T, Activation kActivation, bool kBackward>
SYNCLINE_HOST_DEVICE inline void add_activation_tile(const T* a, const T* b, const T* dy, T* out,
                                                     std::int64_t size, std::int64_t tile,
                                                     int thread) {
  constexpr int kGroup = kActivationGroup<T>;
  constexpr int kGroups = kTileElements / kBlockThreads / kGroup;
  constexpr int kAtOnce = kGroups < 2 ? kGroups : 2;
  constexpr int kStride = kBlockThreads * kGroup;
  const std::int64_t start = tile * kTileElements - misalignment<kGroup>(out);
  const bool a_aligned = aligned_at<kGroup>(a, start);
  const bool b_aligned = b != nullptr && aligned_at<kGroup>(b, start);
  const bool dy_aligned = kBackward && aligned_at<kGroup>(dy, start);
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

}  // namespace syncline::kernels
