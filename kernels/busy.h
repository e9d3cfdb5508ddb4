// Stand-ins for other work on the GPU: a kernel that holds a number of multiprocessors for a time,
// as a layer or a collective does, and one that moves bytes at a given rate for a time. Run next to
// a real kernel they show what sharing costs it: T(132 - c) multiprocessors, T(4.8 TB/s - rate).
//
// Neither computes anything. Times are those of the GPU's own clock in nanoseconds (%globaltimer),
// which on some GPUs advances by a microsecond at a time.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/status.h"

namespace syncline::kernels {

struct Occupation {
  int blocks = 1;     // multiprocessors to hold, where none holds two of the blocks
  int threads = 512;  // a block; NCCL's kernels have 512 to 640
  double seconds = 0;
  // Take a multiprocessor's shared memory whole: two blocks never meet on one, and no other kernel
  // that needs shared memory joins them. Without it they leave room beside them, as NCCL's do.
  bool exclusive = true;
};

// Every block counts its time from its own start.
Status occupy(const Occupation& occupation, cudaStream_t stream);

struct Traffic {
  int blocks = 8;
  double bytes_per_second = 0;  // of all blocks together, read and written bytes both counted
  double seconds = 0;
  void* buffer = nullptr;         // at a multiple of 16; read and written back unchanged
  std::int64_t buffer_bytes = 0;  // at least 16384 a block; beyond the L2 cache to reach memory
  // In device memory: the bytes really moved are added. Null: not counted.
  unsigned long long* moved = nullptr;
};

// Where the rate is more than the blocks can move they go as fast as they can: compare `moved`.
Status move_bytes(const Traffic& traffic, cudaStream_t stream);

}  // namespace syncline::kernels
