// Shared by kernels and their emulation on the CPU: functions for both sides, and conversions of
// gradients' elements (fp32, bf16, fp16) with equal bits on both. Rounding is to the nearest, ties
// to even; subnormals stay; a NaN becomes 0x7fff, as on the GPU. Kernels are compiled without fused
// multiply-add (-fmad=false) and fast math, so that +, *, / and sqrt in float and double round
// alike.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

// SYNCLINE_UNROLL precedes loops over arrays that must be in registers: an array that is indexed by
// a real loop lives in (slow) local memory.
#if defined(__CUDACC__)
#define SYNCLINE_HOST_DEVICE __host__ __device__
#else
#define SYNCLINE_HOST_DEVICE
#endif
#if defined(__CUDA_ARCH__)
#define SYNCLINE_UNROLL _Pragma("unroll")
#else
#define SYNCLINE_UNROLL
#endif

// A stream of the CUDA runtime, by the name and the type of its own headers.
typedef struct CUstream_st* cudaStream_t;

namespace syncline::kernels {

// The result of a launcher. Empty text: the work is in the stream. Otherwise the text names the
// wrong argument (and there was no launch), or the failed CUDA call with its reason.
struct Status {
  std::string text;

  bool ok() const { return text.empty(); }
};

inline Status failure(std::string text) { return {std::move(text)}; }

enum class ElementType { kFp32, kBf16, kFp16 };

inline int element_bytes(ElementType type) { return type == ElementType::kFp32 ? 4 : 2; }

struct Bf16 {
  std::uint16_t bits;
};
struct Fp16 {
  std::uint16_t bits;
};

SYNCLINE_HOST_DEVICE inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

SYNCLINE_HOST_DEVICE inline float float_of(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

SYNCLINE_HOST_DEVICE inline bool is_finite(float value) {
  return (bits_of(value) & 0x7f800000u) != 0x7f800000u;
}

SYNCLINE_HOST_DEVICE inline bool is_nan(float value) {
  return (bits_of(value) & 0x7fffffffu) > 0x7f800000u;
}

SYNCLINE_HOST_DEVICE inline float to_float(float value) { return value; }

SYNCLINE_HOST_DEVICE inline float to_float(Bf16 value) {
  return float_of(static_cast<std::uint32_t>(value.bits) << 16);
}

// Widens: sign, 5 bits of exponent (bias 15), 10 of mantissa; below 2^-14 the steps are 2^-24.
SYNCLINE_HOST_DEVICE inline float to_float(Fp16 value) {
#if defined(__CUDA_ARCH__)
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
#else
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = value.bits & 0x3ffu;
  if (exponent == 0) {
    const float small = static_cast<float>(mantissa) * 0x1p-24f;
    return float_of(bits_of(small) | sign);
  }
  if (exponent == 31) return float_of(sign | 0x7f800000u | (mantissa << 13));
  return float_of(sign | ((exponent + 112) << 23) | (mantissa << 13));
#endif
}

template <typename T>
SYNCLINE_HOST_DEVICE T from_float(float value);

template <>
SYNCLINE_HOST_DEVICE inline float from_float<float>(float value) {
  return value;
}

template <>
SYNCLINE_HOST_DEVICE inline Bf16 from_float<Bf16>(float value) {
#if defined(__CUDA_ARCH__)
  std::uint16_t narrow;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow) : "f"(value));
  return {narrow};
#else
  if (is_nan(value)) return {0x7fff};
  const std::uint32_t bits = bits_of(value);
  // Half a step, minus one if the last kept bit is even: a tie then rounds down.
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return {static_cast<std::uint16_t>(rounded >> 16)};
#endif
}

template <>
SYNCLINE_HOST_DEVICE inline Fp16 from_float<Fp16>(float value) {
#if defined(__CUDA_ARCH__)
  std::uint16_t narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow) : "f"(value));
  return {narrow};
#else
  if (is_nan(value)) return {0x7fff};
  const std::uint32_t sign = (bits_of(value) >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits_of(value) & 0x7fffffffu;
  std::uint32_t half = 0x7c00u;    // infinity
  if (magnitude < (113u << 23)) {  // below 2^-14: steps of 2^-24
    // Adding 0.5, which has a last bit of 2^-24, makes the float unit round.
    half = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
  } else if (magnitude < 0x477ff000u) {  // below 65520; from there on 2^16 is nearer
    half = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return {static_cast<std::uint16_t>(sign | half)};
#endif
}

}  // namespace syncline::kernels
