// The only way to launch a kernel: launch("NAME", NAME, grid, stream, arguments). For .cu files
// only. Without nvcc they are C++: a kernel is a function that does the work of one block, and the
// emulation of a GPU runs it block by block (launch_on_host).
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
#define __shared__ static thread_local  // blocks find the last one's values, as on a GPU
#ifndef __global__                      // CUDA's own headers may have defined these
#define __global__
#define __device__
#define __grid_constant__
#define __launch_bounds__(...)
#endif
#endif

namespace syncline::kernels {

// Many tensors in one launch: their table is a kernel argument by value (CUDA 12.1 and later take
// 32764 bytes of arguments), so that it needs no copy to the device and no buffer. More tensors
// than a table holds take several launches.
constexpr int kArgumentBytes = 32764;  // all arguments of one kernel, CUDA 12.1, sm_70 and later

// Stores tensors with a `std::int64_t first_tile` each. Tiles are numbered through all tensors of
// the table, in order; a tensor without elements has none.
template <typename Entry, int kEntries>
struct TensorTable {
  static constexpr int kCapacity = kEntries;

  std::int32_t count = 0;
  std::int64_t end_tile = 0;  // one past the last tensor's last tile
  Entry entries[kCapacity];
};

// Returns the tensor that has tile `tile`: the last one that begins at or before it. Tensors
// without tiles share their first_tile with the next one and are never the last.
template <typename Entry, int kCapacity>
SYNCLINE_HOST_DEVICE inline int tensor_of(const TensorTable<Entry, kCapacity>& table,
                                          std::int64_t tile) {
  int low = 0;
  int high = table.count;  // invariant: entries[low].first_tile <= tile < entries[high].first_tile
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

// Places `count` of T in a workspace at `used`, and advances `used`. Every part is at a multiple of
// 256 bytes. Without memory (base is null) it only counts.
template <typename T>
void place_part(void* base, std::size_t* used, std::int64_t count, T** part) {
  if (base) *part = reinterpret_cast<T*>(static_cast<std::byte*>(base) + *used);
  *used += (static_cast<std::size_t>(count) * sizeof(T) + 255) / 256 * 256;
}

// Calls f(T{}) for a type that is known only at run time.
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

// Calls launch_some(table, grid, first) for one table of entries after another, one block per
// entry; `first` is the number of the table's first entry.
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

// Returns a failed call's status. `call` is the text of the call: "cudaMemcpyAsync(bucket)".
inline Status cuda_status(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return {};
  return failure(std::string(call) + ": " + cudaGetErrorName(error) + ": " +
                 cudaGetErrorString(error));
}

// Launches a kernel. Returns a refused launch as a failure at once, so that the next one is not
// blamed. An error of an earlier kernel that still runs appears in a later call.
template <typename... Parameters>
Status launch(const char* name, void (*kernel)(Parameters...), LaunchGrid grid, cudaStream_t stream,
              std::type_identity_t<Parameters>... arguments) {
  kernel<<<dim3(grid.x, grid.y), kBlockThreads, 0, stream>>>(arguments...);
  return cuda_status(cudaGetLastError(), name);
}

inline Status clear(void* memory, std::size_t bytes, cudaStream_t stream) {
  return cuda_status(cudaMemsetAsync(memory, 0, bytes, stream), "cudaMemsetAsync");
}

// Sets `grid` for `parts` parts of work: the blocks that the device holds at once, which walk the
// parts with the grid's stride; at most `parts`, at least one.
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

// The current block, as in CUDA.
inline thread_local LaunchGrid blockIdx;
inline thread_local LaunchGrid gridDim;

// Runs `block` in stream order for each block of the grid, with blockIdx and gridDim set. Defined
// by the emulation of a GPU.
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
  constexpr std::int64_t kHeld = 7;  // few, and no power of two, so that blocks walk
  grid->x = static_cast<unsigned>(std::max<std::int64_t>(1, std::min(parts, kHeld)));
  return {};
}

#endif

}  // namespace syncline::kernels
