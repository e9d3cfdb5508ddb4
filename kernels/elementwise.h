// Addition and activation in one pass, forward and backward: y = f(a + b). All arrays have the same
// type, fp32, bf16 or fp16; arithmetic is in fp32.
// Bytes an element, read and written, with 2-byte (fp32) elements: forward 6 (12), backward 8 (16),
// each 2 (4) less without b. An addition and an activation as two kernels move 10. At an H200's
// 4.8 TB/s (data sheet) 205 M 2-byte elements take at least 256 us forward.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace syncline::kernels {

// Relu keeps a NaN, as torch's does. Its slope is 0 at 0.
enum class Activation { kIdentity, kRelu, kGelu };

struct AddActivation {
  ElementType type = ElementType::kFp32;
  Activation activation = Activation::kIdentity;
  const void* a = nullptr;
  const void* b = nullptr;  // null: y = f(a)
  std::int64_t elements = 0;
};

// y may be a or b.
Status add_activation(const AddActivation& inputs, void* y, cudaStream_t stream);

// dz = dy * f'(a + b): the gradient of a, and of b too. Nothing but the inputs was kept; dz may be
// any of the arrays. For relu `a` may be y and `b` null: y is positive where a + b was.
Status add_activation_gradient(const AddActivation& inputs, const void* dy, void* dz,
                               cudaStream_t stream);

}  // namespace syncline::kernels
