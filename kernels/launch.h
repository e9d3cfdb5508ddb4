// How a kernel is launched, here and in no other way: launch("NAME", NAME, grid, stream,
// arguments). For .cu files only. Where nvcc does not compile them, they are C++: a kernel is a
// function that does what one block does, and whoever emulates a GPU runs it block by block
// (launch_on_host).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/block.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#else
#include <cmath>
#include <functional>
#undef __shared__
#define __shared__ static thread_local  // a block finds what the last one left, as on a GPU
#ifndef __global__                      // CUDA's own headers may be there and have done so
#define __global__
#define __device__
#define __grid_constant__
#define __launch_bounds__(...)
#endif
#endif

namespace syncline::kernels {

// Many tensors in one launch: a table of them travels with the launch itself, as a kernel argument
// by value (CUDA 12.1 and later take 32764 bytes of arguments), so that no copy to the device and
// no lifetime of a buffer comes with it. More tensors than a table holds are several launches.
constexpr int kArgumentBytes = 32764;  // of all arguments of one kernel, CUDA 12.1, sm_70 and later

// Entry has `std::int64_t first_tile`: tiles are counted through all tensors of the table, in
// order, from the first tensor's first_tile on; a tensor without elements has none.
template <typename Entry, int kEntries>
struct TensorTable {
  static constexpr int kCapacity = kEntries;

  std::int32_t count = 0;
  std::int64_t end_tile = 0;  // one past the last tensor's last tile
  Entry entries[kCapacity];
};

// Returns the tensor that has tile `tile`: the last one whose first tile is not behind it. Tensors
// without tiles share their first_tile with the next one and are never the last.
template <typename Entry, int kCapacity>
SYNCLINE_HOST_DEVICE inline int tensor_of(const TensorTable<Entry, kCapacity>& table,
                                          std::int64_t tile) {
  int low = 0;
  int high = table.count;  // entries[low].first_tile <= tile < entries[high].first_tile
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (table.entries[middle].first_tile <= tile) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// A part of a workspace for `count` of T, after the `used` bytes of those before it, which grow.
// Every part is at a multiple of 256 bytes. Without memory (base is null) it only counts.
template <typename T>
void place_part(void* base, std::size_t* used, std::int64_t count, T** part) {
  if (base) *part = reinterpret_cast<T*>(static_cast<std::byte*>(base) + *used);
  *used += (static_cast<std::size_t>(count) * sizeof(T) + 255) / 256 * 256;
}

// f(T{}) for the type that is known only now.
template <typename F>
auto with_type(ElementType type, F&& f) {
  if (type == ElementType::kBf16) return f(Bf16{});
  if (type == ElementType::kFp16) return f(Fp16{});
  return f(float{});
}

// Blocks of a launch, kBlockThreads threads each.
struct LaunchGrid {
  unsigned x = 1;
  unsigned y = 1;
};

// launch_some(table, grid, first) for as many entries at a time as a table holds, a block each;
// `first` is the number of the table's first entry.
template <typename Table, typename Entry, typename F>
Status in_tables(const std::vector<Entry>& entries, F&& launch_some) {
  Status status;
  for (std::size_t first = 0; first < entries.size() && status.ok(); first += Table::kCapacity) {
    const std::size_t count = std::min<std::size_t>(Table::kCapacity, entries.size() - first);
    Table table{};
    std::copy_n(entries.begin() + static_cast<std::ptrdiff_t>(first), count, table.entries);
    status = launch_some(table, LaunchGrid{static_cast<unsigned>(count)},
                         static_cast<std::uint32_t>(first));
  }
  return status;
}

#if defined(__CUDACC__)

// `call` is the text of what was called: "cudaMemcpyAsync(bucket)".
inline Status cuda_status(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return {};
  return failure(std::string(call) + ": " + cudaGetErrorName(error) + ": " +
                 cudaGetErrorString(error));
}

// A launch that CUDA refuses is its failure, and is not blamed on the next; an error of an earlier
// kernel that is still running comes with a later call.
template <typename... Parameters>
Status launch(const char* name, void (*kernel)(Parameters...), LaunchGrid grid, cudaStream_t stream,
              std::type_identity_t<Parameters>... arguments) {
  kernel<<<dim3(grid.x, grid.y), kBlockThreads, 0, stream>>>(arguments...);
  return cuda_status(cudaGetLastError(), name);
}

inline Status clear(void* memory, std::size_t bytes, cudaStream_t stream) {
  return cuda_status(cudaMemsetAsync(memory, 0, bytes, stream), "cudaMemsetAsync");
}

// Blocks for `parts` parts of work: as many as the device holds at once, which walk the parts with
// the grid's stride; never more than there are parts, and at least one.
template <typename Kernel>
Status blocks_for(Kernel kernel, std::int64_t parts, LaunchGrid* grid) {
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
  grid->x = static_cast<unsigned>(std::max<std::int64_t>(1, std::min(parts, held)));
  return {};
}

#else

// Whose turn it is, as in CUDA.
inline thread_local LaunchGrid blockIdx;
inline thread_local LaunchGrid gridDim;

// In the stream's turn, `block` for each block of the grid, with blockIdx and gridDim set. Defined
// by whoever emulates a GPU.
void launch_on_host(const char* kernel, LaunchGrid grid, cudaStream_t stream,
                    std::function<void()> block);
Status clear(void* memory, std::size_t bytes, cudaStream_t stream);

template <typename... Parameters>
Status launch(const char* name, void (*kernel)(Parameters...), LaunchGrid grid, cudaStream_t stream,
              std::type_identity_t<Parameters>... arguments) {
  launch_on_host(name, grid, stream, [=] { kernel(arguments...); });
  return {};
}

template <typename Kernel>
Status blocks_for(Kernel, std::int64_t parts, LaunchGrid* grid) {
  constexpr std::int64_t kHeld = 7;  // few, and no power of two: blocks walk
  grid->x = static_cast<unsigned>(std::max<std::int64_t>(1, std::min(parts, kHeld)));
  return {};
}

#endif

}  // namespace syncline::kernels
