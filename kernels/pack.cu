// Bytes per element, read and written: 8 fp32 -> fp32, 6 between fp32 and a 2-byte type. At an
// H200's 4.8 TB/s (data sheet) 25.5 M elements take at least 42.5 and 31.9 us, 340 M 567 and 425
// us.
//
// Tensors and slices at multiples of 16 bytes run at full speed; so do those with equal
// misalignment. Any other offset (a multiple of the element's size) is correct and slower.
#include "kernels/kernels.h"

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

constexpr int kGroup = 4;

// Returns the elements by which `to` exceeds a multiple of 16 bytes, from which tiles are counted.
template <typename To>
SYNCLINE_HOST_DEVICE inline int pack_shift(const void* to) {
  return misalignment<kGroup>(static_cast<const To*>(to));
}

template <typename From, typename To>
SYNCLINE_HOST_DEVICE inline void pack_tile(const PackEntry& tensor, std::int64_t tile, int thread) {
  constexpr int kGroups = kTileElements / kBlockThreads / kGroup;
  constexpr int kStride = kBlockThreads * kGroup;
  const From* from = static_cast<const From*>(tensor.from);
  To* to = static_cast<To*>(tensor.to);
  const std::int64_t size = tensor.elements;
  const std::int64_t start = tile * kTileElements - pack_shift<To>(to);
  const std::int64_t first = start + thread * kGroup;
  const bool from_aligned = is_aligned<kGroup>(from, start);
  const bool to_aligned = is_aligned<kGroup>(to, start);
  const bool whole = from_aligned && to_aligned && start >= 0 && start + kTileElements <= size;
  float values[kGroups][kGroup];
  // All loads come before the first store: they are in flight together.
  SYNCLINE_UNROLL
  for (int i = 0; i < kGroups; ++i) {
    if (whole) {
      load_vector<Reuse::kStream>(from + first + i * kStride, values[i]);
    } else {
      load_group<Reuse::kStream>(from, first + i * kStride, size, from_aligned, values[i]);
    }
  }
  SYNCLINE_UNROLL
  for (int i = 0; i < kGroups; ++i) {
    if (whole) {
      store_vector<Reuse::kKeep>(to + first + i * kStride, values[i]);
    } else {
      store_group<Reuse::kKeep>(to, first + i * kStride, size, to_aligned, values[i]);
    }
  }
}

template <typename From, typename To>
__global__ void __launch_bounds__(kBlockThreads, 5)
    pack_kernel(const __grid_constant__ PackTable table) {
  KernelBlock block;
  block.each([&](int thread) {
    for (std::int64_t tile = blockIdx.x; tile < table.end_tile; tile += gridDim.x) {
      const PackEntry& tensor = table.entries[tensor_of(table, tile)];
      pack_tile<From, To>(tensor, tile - tensor.first_tile, thread);
    }
  });
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

// ---- Launches -----------------------------------------------------------------------------------

template <typename From, typename To>
Status pack_all(std::span<const PackedTensor> tensors, cudaStream_t stream) {
  const auto kernel = pack_kernel<From, To>;
  PackTable table;
  const auto send = [&]() -> Status {
    if (table.end_tile == 0) return {};
    LaunchGrid grid;
    if (auto status = blocks_for(kernel, table.end_tile, &grid); !status.ok()) return status;
    return launch("pack_kernel", kernel, grid, stream, table);
  };
  for (const auto& tensor : tensors) {
    if (table.count == PackTable::kCapacity) {
      if (auto status = send(); !status.ok()) return status;
      table.count = 0;
      table.end_tile = 0;
    }
    if (tensor.elements == 0) continue;
    table.entries[table.count++] = {tensor.from, tensor.to, tensor.elements, table.end_tile};
    table.end_tile += tiles_of(tensor.elements, pack_shift<To>(tensor.to));
  }
  return send();
}

}  // namespace

Status pack(std::span<const PackedTensor> tensors, ElementType from, ElementType to,
            cudaStream_t stream) {
  if (from == ElementType::kFp32) {
    return with_type(to,
                     [&](auto type) { return pack_all<float, decltype(type)>(tensors, stream); });
  }
  if (to != ElementType::kFp32) return failure("pack: neither type is fp32");
  return with_type(from,
                   [&](auto type) { return pack_all<decltype(type), float>(tensors, stream); });
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
