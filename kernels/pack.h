// Many tensors copied in one launch: gradients into a bucket (pack) or a bucket's slices back
// (unpack: the same with `from` and `to` exchanged), on the way cast between fp32, bf16 and fp16,
// scaled, and measured: norm, clip coefficient, and whether anything is infinite or NaN.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/host_device.h"

namespace syncline::kernels {

struct PackedTensor {
  const void* from = nullptr;
  void* to = nullptr;  // may be `from` where both types are the same; null: only measured
  std::int64_t elements = 0;
};

// In device memory; zeroed once (ticket) before its first use.
struct GradientMeasure {
  double sum_of_squares;    // of the values as written (scaled, and rounded to their new type)
  float norm;               // its square root
  float clip_coefficient;   // min(1, max_norm / (norm + 1e-6)), as torch's clip_grad_norm_
  std::int32_t non_finite;  // 1 where a written value is infinite or NaN
  std::uint32_t ticket;     // the kernel's own: 0 between launches
};

struct PackOptions {
  ElementType from = ElementType::kFp32;
  ElementType to = ElementType::kFp32;  // without effect where nothing is written
  float scale = 1;                      // multiplies every element, in fp32
  // Null: not measured. Otherwise `partials` is device memory for pack_partials() doubles.
  GradientMeasure* measure = nullptr;
  double* partials = nullptr;
  float max_norm = 0;  // 0: the clip coefficient is 1
};

// How many doubles `PackOptions::partials` must hold.
std::int64_t pack_partials(std::span<const PackedTensor> tensors, const PackOptions& options);

// One launch for every 1000 tensors. Addresses are at multiples of their elements' size; what is
// cast is not cast in place, and all of it is written or none.
Status pack(std::span<const PackedTensor> tensors, const PackOptions& options, cudaStream_t stream);

// A mean after a sum: every number divided by the same one, rounded as IEEE 754 divides, so that it
// is what a CPU would have got. 8 bytes an element, read and written.
Status divide(float* values, std::int64_t count, float divisor, cudaStream_t stream);

}  // namespace syncline::kernels
