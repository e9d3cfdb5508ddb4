// Many tensors copied in one launch: gradients into a bucket (pack) or a bucket's slices back
// (unpack: the same with `from` and `to` exchanged), on the way cast between fp32, bf16 and fp16.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/host_device.h"

namespace syncline::kernels {

struct PackedTensor {
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t elements = 0;
};

// One launch for every 1000 tensors. Addresses are at multiples of their elements' size; nothing is
// cast in place. One of both types is fp32.
Status pack(std::span<const PackedTensor> tensors, ElementType from, ElementType to,
            cudaStream_t stream);

// A mean after a sum: every number divided by the same one, rounded as IEEE 754 divides, so that it
// is what a CPU would have got. 8 bytes an element, read and written.
Status divide(float* values, std::int64_t count, float divisor, cudaStream_t stream);

}  // namespace syncline::kernels
