// The products of a linear layer, each fused into one kernel by cublasLt's epilogues: bias and
// activation forward; the activation's slope and the bias gradient backward. fp32, bf16 or fp16,
// sums and epilogue in fp32 (never TF32). All tensors are dense and row-major: x[rows][inputs],
// w[outputs][inputs], b[outputs], y[rows][outputs].
#pragma once

#include <cstddef>

#include "kernels/host_device.h"
#include "kernels/kernels.h"

namespace syncline::kernels {

// A product of a linear layer. Dimensions are from 1 to 2^31 - 1.
struct LinearShape {
  ElementType type = ElementType::kBf16;
  Activation activation = Activation::kIdentity;
  std::int64_t rows = 0;  // rows of x and y: the batch
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};

// Returns the leading dimension of an activation's auxiliary matrix [rows][columns], as cublasLt
// accepts it. relu keeps a bit per element (z > 0), in multiples of 128 bits; gelu keeps z in the
// elements' type, in multiples of 8 elements. Without an activation it is 0.
inline std::int64_t linear_aux_leading(Activation activation, std::int64_t columns) {
  const std::int64_t unit = activation == Activation::kRelu ? 128 : 8;
  return activation == Activation::kIdentity ? 0 : (columns + unit - 1) / unit * unit;
}

inline std::size_t linear_aux_bytes(ElementType type, Activation activation, std::int64_t rows,
                                    std::int64_t columns) {
  const auto elements = static_cast<std::size_t>(rows) *
                        static_cast<std::size_t>(linear_aux_leading(activation, columns));
  if (activation == Activation::kRelu) return elements / 8;
  return elements * static_cast<std::size_t>(element_bytes(type));
}

// Bytes that cuBLAS's documentation recommends for Hopper. Less, or none, is allowed and leaves
// fewer kernels to choose from.
constexpr std::size_t kGemmWorkspaceBytes = std::size_t{32} << 20;

// Device memory at a multiple of 256 bytes, one per stream.
struct GemmWorkspace {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

struct LinearForward {
  const void* x = nullptr;
  const void* w = nullptr;
  const void* b = nullptr;  // null: no bias; allowed only without an activation
  void* y = nullptr;
  // linear_aux_bytes(type, activation, rows, outputs) at a multiple of 16 bytes; null: not kept.
  // Null without an activation.
  void* aux = nullptr;
};

// Computes y = f(x w^T + b).
Status linear_forward(const LinearShape& shape, const LinearForward& arrays,
                      const GemmWorkspace& workspace, cudaStream_t stream);

struct LinearInputGradient {
  const void* dy = nullptr;
  const void* w = nullptr;
  const void* aux = nullptr;  // aux of the layer that made x; null without an activation
  void* dz = nullptr;         // [rows][inputs]
  void* db = nullptr;         // [inputs]: the sum of dz over the rows; null: not wanted
};

// Computes dz = (dy w) * f'(z) with x = f(z); shape.activation is that of the previous layer. db is
// that layer's bias gradient. Without an activation cublasLt has no epilogue for it: db must be
// null, and that layer's weight gradient gives it.
Status linear_input_gradient(const LinearShape& shape, const LinearInputGradient& arrays,
                             const GemmWorkspace& workspace, cudaStream_t stream);

struct LinearWeightGradient {
  const void* dy = nullptr;
  const void* x = nullptr;
  void* dw = nullptr;
  void* db = nullptr;  // [outputs]: the sum of dy over the rows; null: not wanted
};

// Computes dw = dy^T x.
Status linear_weight_gradient(const LinearShape& shape, const LinearWeightGradient& arrays,
                              const GemmWorkspace& workspace, cudaStream_t stream);

}  // namespace syncline::kernels
