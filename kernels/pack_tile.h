// What pack does to one tile, for one thread: compiled into the kernel (pack.cu) and run on the CPU
// by the tests. The plan of a launch is here too: plain C++.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "kernels/pack.h"
#include "kernels/tensor_table.h"
#include "kernels/vector_access.h"

namespace syncline::kernels {

struct PackEntry {
  const void* from;
  void* to;
  std::int64_t elements;
  std::int64_t first_tile;
};

using PackTable = TensorTable<PackEntry, 1000>;
static_assert(sizeof(PackTable) + 128 <= kArgumentBytes);

// One launch. Its tiles go to the blocks in chunks of `tiles_per_chunk`; a chunk makes one partial
// sum, at first_partial + its number.
struct PackLaunch {
  PackTable table;
  std::int64_t chunks = 0;
  std::int64_t first_partial = 0;
};

struct PackPlan {
  std::vector<PackLaunch> launches;
  std::int64_t tiles_per_chunk = 1;
  std::int64_t partials = 0;
};

Status check_pack(std::span<const PackedTensor> tensors, const PackOptions& options);
PackPlan plan_pack(std::span<const PackedTensor> tensors, const PackOptions& options);

// 16 bytes at a time on the wider side.
template <typename From, typename To>
constexpr int kPackGroup = sizeof(From) == 2 && sizeof(To) == 2 ? 8 : 4;

// Where nothing is written, the groups follow `from`.
template <typename From, typename To>
SYNCLINE_HOST_DEVICE inline int pack_shift(const void* from, const void* to) {
  constexpr int kGroup = kPackGroup<From, To>;
  return to == nullptr ? misalignment<kGroup>(static_cast<const From*>(from))
                       : misalignment<kGroup>(static_cast<const To*>(to));
}

// Returns the sum of squares of what this thread wrote (or would have written).
template <typename From, typename To, bool kWrite>
SYNCLINE_HOST_DEVICE inline double pack_tile(const PackEntry& tensor, std::int64_t tile,
                                             float scale, bool measured, int thread) {
  constexpr int kGroup = kPackGroup<From, To>;
  constexpr int kGroups = kTileElements / kBlockThreads / kGroup;
  const From* from = static_cast<const From*>(tensor.from);
  To* to = static_cast<To*>(tensor.to);
  const std::int64_t size = tensor.elements;
  const int shift = pack_shift<From, To>(from, kWrite ? to : nullptr);
  const std::int64_t start = tile * kTileElements - shift;
  const std::int64_t first = start + thread * kGroup;
  constexpr int kStride = kBlockThreads * kGroup;
  const bool from_aligned = aligned_at<kGroup>(from, start);
  const bool to_aligned = !kWrite || aligned_at<kGroup>(to, start);

  float values[kGroups][kGroup];
  const bool whole = from_aligned && to_aligned && start >= 0 && start + kTileElements <= size;
  if (whole) {
    // All loads before the first use: they are under way together.
    SYNCLINE_UNROLL
    for (int i = 0; i < kGroups; ++i) {
      load_vector<Reuse::kStream>(from + first + i * kStride, values[i]);
    }
  } else {
    SYNCLINE_UNROLL
    for (int i = 0; i < kGroups; ++i) {
      load_group<Reuse::kStream>(from, first + i * kStride, size, from_aligned, values[i]);
    }
  }
  double sum = 0;
  SYNCLINE_UNROLL
  for (int i = 0; i < kGroups; ++i) {
    SYNCLINE_UNROLL
    for (int j = 0; j < kGroup; ++j) {
      float value = values[i][j] * scale;
      if constexpr (!std::is_same_v<To, float>) {
        if (kWrite && measured) value = to_float(from_float<To>(value));
      }
      values[i][j] = value;
      if (measured) sum += static_cast<double>(value) * static_cast<double>(value);
    }
  }
  if constexpr (kWrite) {
    if (whole) {
      SYNCLINE_UNROLL
      for (int i = 0; i < kGroups; ++i) {
        store_vector<Reuse::kKeep>(to + first + i * kStride, values[i]);
      }
    } else {
      SYNCLINE_UNROLL
      for (int i = 0; i < kGroups; ++i) {
        store_group<Reuse::kKeep>(to, first + i * kStride, size, to_aligned, values[i]);
      }
    }
  }
  return sum;
}

// The tiles of one chunk, whose tensors may change on the way.
template <typename From, typename To, bool kWrite>
SYNCLINE_HOST_DEVICE inline double pack_chunk(const PackTable& table, std::int64_t chunk,
                                              std::int64_t tiles_per_chunk, float scale,
                                              bool measured, int thread) {
  const std::int64_t begin = table.entries[0].first_tile + chunk * tiles_per_chunk;
  const std::int64_t end =
      begin + tiles_per_chunk < table.end_tile ? begin + tiles_per_chunk : table.end_tile;
  double sum = 0;
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const PackEntry& tensor = table.entries[tensor_of(table, tile)];
    sum += pack_tile<From, To, kWrite>(tensor, tile - tensor.first_tile, scale, measured, thread);
  }
  return sum;
}

// One thread's share of the partial sums, in a fixed order; four at a time are under way.
SYNCLINE_HOST_DEVICE inline double partials_of(const double* partials, std::int64_t count,
                                               int thread) {
  double sums[4] = {0, 0, 0, 0};
  std::int64_t i = thread;
  for (; i + 3 * kBlockThreads < count; i += 4 * kBlockThreads) {
    SYNCLINE_UNROLL
    for (int lane = 0; lane < 4; ++lane) sums[lane] += partials[i + lane * kBlockThreads];
  }
  for (; i < count; i += kBlockThreads) sums[0] += partials[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// A finite float's square is a finite double, and so are 2^63 of them: the sum alone shows whether
// all were finite.
SYNCLINE_HOST_DEVICE inline void write_measure(GradientMeasure& measure, double sum,
                                               double root_of_sum, float max_norm) {
  measure.sum_of_squares = sum;
  measure.norm = static_cast<float>(root_of_sum);
  measure.non_finite = sum <= 1.7976931348623157e308 ? 0 : 1;
  const float ratio = max_norm / (measure.norm + 1e-6f);
  measure.clip_coefficient = max_norm > 0 && ratio < 1 ? ratio : 1.0f;
}

}  // namespace syncline::kernels
