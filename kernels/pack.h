// Many tensors copied in one launch: gradients into a bucket (pack) or a bucket's slices back
// (unpack: the same with `from` and `to` exchanged), on the way cast between fp32, bf16 and fp16,
// scaled, and measured: norm, clip coefficient, and whether anything is infinite or NaN.
//
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
