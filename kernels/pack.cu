// Bytes an element, read and written: 8 fp32 -> fp32, 6 between fp32 and a 2-byte type, 4 between
// 2-byte types; measuring adds none. Measuring alone (`to` null everywhere) reads 4 or 2. At an
// H200's 4.8 TB/s (data sheet) 25.5 M elements take at least 42.5, 31.9 and 21.3 us, 110 M 183,
// 138 and 91.7 us, 340 M 567, 425 and 283 us.
//
// Tensors and slices at multiples of 16 bytes run at full speed; so do those misaligned alike. Any
// other offset (a multiple of the element's size) is right and slower.
//
// The sum of squares is taken in double, of the values as written, in an order that depends on the
// list of tensors alone: the same bits in every run and on every GPU. One partial sum for every
// run of tiles (of 4096 elements), 8192 in all for the largest lists.
#include "kernels/pack.h"

#include <type_traits>
#include <vector>

#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

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

// `measure` comes with the last launch only; `partials` with all of them, where it is measured.
template <typename From, typename To, bool kWrite>
__global__ void __launch_bounds__(kBlockThreads, 5)
    pack_kernel(const __grid_constant__ PackLaunch part, std::int64_t tiles_per_chunk, float scale,
                double* partials, GradientMeasure* measure, float max_norm) {
  KernelBlock block;
  KernelBlock::Each<double> sums;
  for (std::int64_t chunk = blockIdx.x; chunk < part.chunks; chunk += gridDim.x) {
    block.each([&](int thread) {
      sums[thread] = pack_chunk<From, To, kWrite>(part.table, chunk, tiles_per_chunk, scale,
                                                  partials != nullptr, thread);
    });
    if (partials == nullptr) continue;
    const double sum = block.sum(sums);
    block.each([&](int thread) {
      if (thread == 0) partials[part.first_partial + chunk] = sum;
    });
  }
  if (measure == nullptr || !block.last_of(&measure->ticket, gridDim.x)) return;
  const std::int64_t count = part.first_partial + part.chunks;
  block.each([&](int thread) { sums[thread] = partials_of(partials, count, thread); });
  const double sum = block.sum(sums);
  block.each([&](int thread) {
    if (thread == 0) write_measure(*measure, sum, sqrt(sum), max_norm);
  });
}

template <typename From, typename To, bool kWrite>
Status launch_all(const PackPlan& plan, const PackOptions& options, cudaStream_t stream) {
  const auto kernel = pack_kernel<From, To, kWrite>;
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const PackLaunch& part = plan.launches[i];
    LaunchGrid grid;
    if (auto status = blocks_for(kernel, part.chunks, &grid); !status.ok()) return status;
    const bool last = i + 1 == plan.launches.size();
    auto status = launch("pack_kernel", kernel, grid, stream, part, plan.tiles_per_chunk,
                         options.scale, options.measure == nullptr ? nullptr : options.partials,
                         last ? options.measure : nullptr, options.max_norm);
    if (!status.ok()) return status;
  }
  return {};
}

__global__ void divide_kernel(float* values, std::int64_t count, float divisor) {
  KernelBlock block;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
  block.each([&](int thread) {
    std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + thread;
    for (; i < count; i += step) values[i] = values[i] / divisor;
  });
}

// ---- The plan of a launch ---------------------------------------------------------------------

bool writes(std::span<const PackedTensor> tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const PackedTensor& tensor) { return tensor.to != nullptr; });
}

std::int64_t tiles_of_tensor(const PackedTensor& tensor, ElementType from, ElementType to) {
  return with_type(from, [&](auto source) {
    return with_type(to, [&](auto target) {
      return tiles_of(tensor.elements,
                      pack_shift<decltype(source), decltype(target)>(tensor.from, tensor.to));
    });
  });
}

PackPlan plan_pack(std::span<const PackedTensor> tensors, const PackOptions& options) {
  // Where nothing is written only the type that is read counts.
  const ElementType to = writes(tensors) ? options.to : options.from;
  PackPlan plan;
  std::int64_t tile = 0;
  for (const auto& tensor : tensors) {
    if (tensor.elements == 0) continue;
    if (plan.launches.empty() || plan.launches.back().table.count == PackTable::kCapacity) {
      plan.launches.emplace_back();
    }
    PackTable& table = plan.launches.back().table;
    table.entries[table.count++] = {tensor.from, tensor.to, tensor.elements, tile};
    tile += tiles_of_tensor(tensor, options.from, to);
    table.end_tile = tile;
  }
  constexpr std::int64_t kPartials = 8192;  // the last block adds them all: not too many
  plan.tiles_per_chunk = std::max<std::int64_t>(1, (tile + kPartials - 1) / kPartials);
  for (auto& launch : plan.launches) {
    const std::int64_t tiles = launch.table.end_tile - launch.table.entries[0].first_tile;
    launch.chunks = (tiles + plan.tiles_per_chunk - 1) / plan.tiles_per_chunk;
    launch.first_partial = plan.partials;
    plan.partials += launch.chunks;
  }
  // No elements at all: one launch without chunks still writes the measure.
  if (plan.launches.empty() && options.measure != nullptr) plan.launches.emplace_back();
  return plan;
}

}  // namespace

std::int64_t pack_partials(std::span<const PackedTensor> tensors, const PackOptions& options) {
  return plan_pack(tensors, options).partials;
}

Status pack(std::span<const PackedTensor> tensors, const PackOptions& options,
            cudaStream_t stream) {
  const PackPlan plan = plan_pack(tensors, options);
  if (plan.launches.empty()) return {};
  const PackTable& table = plan.launches[0].table;
  const bool write = table.count > 0 && table.entries[0].to != nullptr;
  return with_type(options.from, [&](auto source) {
    using From = decltype(source);
    if (!write) return launch_all<From, From, false>(plan, options, stream);
    return with_type(options.to, [&](auto target) {
      return launch_all<From, decltype(target), true>(plan, options, stream);
    });
  });
}

Status divide(float* values, std::int64_t count, float divisor, cudaStream_t stream) {
  if (count == 0) return {};
  LaunchGrid grid;
  const Status status =
      blocks_for(divide_kernel, (count + kBlockThreads - 1) / kBlockThreads, &grid);
  if (!status.ok()) return status;
  return launch("divide_kernel", divide_kernel, grid, stream, values, count, divisor);
}

}  // namespace syncline::kernels
