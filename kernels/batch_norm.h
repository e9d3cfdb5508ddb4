// Batch normalisation over the last dimension (NHWC: rows = N*H*W, channels = C), training form,
// forward and backward: y = relu(gamma (x - mean) inverse_deviation + beta + residual), relu and
// residual optional. x, residual, y and their gradients are all fp32, bf16 or fp16; statistics,
// gamma and beta fp32. Bytes per element of 2: forward 6, with residual 8; backward 10 and 16.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace syncline::kernels {

struct BatchNorm {
  ElementType type = ElementType::kBf16;
  std::int64_t rows = 0;
  std::int32_t channels = 0;
  bool relu = false;
  float epsilon = 1e-5f;
  const void* x = nullptr;         // [rows][channels]
  const void* residual = nullptr;  // the same shape; null: none
  const float* gamma = nullptr;    // [channels], like all below
  const float* beta = nullptr;
  float* mean = nullptr;               // written by the forward pass, read by the backward pass
  float* inverse_deviation = nullptr;  // 1 / sqrt(variance + epsilon), written and read like mean
  float* workspace = nullptr;          // batch_norm_workspace() floats, for either direction
};

struct BatchNormGradients {
  const void* dy = nullptr;
  void* dx = nullptr;
  void* dresidual = nullptr;  // null if and only if there is no residual
  float* dgamma = nullptr;
  float* dbeta = nullptr;
};

// Returns the device memory that one call of either direction uses, in floats.
std::int64_t batch_norm_workspace(std::int64_t rows, std::int32_t channels);

// Launches three kernels each: sums over rows, their final sums, and the pass that writes.
Status batch_norm_forward(const BatchNorm& norm, void* y, cudaStream_t stream);
Status batch_norm_backward(const BatchNorm& norm, const BatchNormGradients& gradients,
                           cudaStream_t stream);

}  // namespace syncline::kernels
