// Many tensors in one launch: a table of them travels with the launch itself, as a kernel argument
// by value (CUDA 12.1 and later take 32764 bytes of arguments), so that no copy to the device and
// no lifetime of a buffer comes with it. More tensors than a table holds are several launches.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace syncline::kernels {

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

// The tensor that has tile `tile`: the last one whose first tile is not behind it. Tensors without
// tiles share their first_tile with the next one and are never the last.
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

}  // namespace syncline::kernels
