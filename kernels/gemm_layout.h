// From the row-major products of a linear layer to what cublasLt multiplies: column-major matrices,
// D = op(A) op(B), with an epilogue on D. A row-major matrix [r][c] is, read by columns, its own
// transpose: c rows, r columns, leading dimension c. So with y[rows][outputs], x[rows][inputs] and
// w[outputs][inputs]
//
//   forward           y = f(x w^T + b)        y^T  = w   x^T    A = w (transposed), B = x
//   input gradient    dz = (dy w) * f'(z)     dz^T = w^T dy^T   A = w, B = dy
//   weight gradient   dw = dy^T x             dw^T = x^T dy     A = x, B = dy (transposed)
//
// where z is the sum that the activation turned into x. The bias has as many elements as D rows in
// the first two; the weight gradient's, the sum of dy over the rows, comes from B (BGRADB).
//
// Plain functions of numbers: tests/kernels/gemm_epilogue_test.cc multiplies by these layouts on
// the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activation.h"
#include "kernels/host_device.h"

namespace syncline::kernels {

// A product of a linear layer. Dimensions are from 1 to 2^31 - 1.
struct LinearShape {
  ElementType type = ElementType::kBf16;
  Activation activation = Activation::kIdentity;
  std::int64_t rows = 0;  // of x and y: the batch
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};

// cublasLt's, by its names.
enum class GemmEpilogue {
  kDefault,
  kBias,
  kReluBias,
  kReluAuxBias,
  kGeluBias,
  kGeluAuxBias,
  kDRelu,
  kDReluBgrad,
  kDGelu,
  kDGeluBgrad,
  kBgradB,
};

// As stored, before op().
struct ColumnMajor {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;

  bool operator==(const ColumnMajor&) const = default;
  // clang-tidy takes what the compiler makes of it for a pointer.
  auto operator<=>(const ColumnMajor&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct GemmLayout {
  ElementType type = ElementType::kBf16;
  bool transpose_a = false;
  bool transpose_b = false;
  ColumnMajor a;
  ColumnMajor b;
  ColumnMajor d;
  GemmEpilogue epilogue = GemmEpilogue::kDefault;
  std::int64_t bias_elements = 0;  // 0: none
  std::int64_t aux_leading = 0;    // of the auxiliary matrix, bits (relu) or elements (gelu)

  auto operator<=>(const GemmLayout&) const = default;  // NOLINT(modernize-use-nullptr)
};

// `keep_aux`: the backward pass will want the auxiliary matrix (linear_aux_bytes).
GemmLayout forward_layout(const LinearShape& shape, bool keep_aux);
// shape.activation is the one that made x: its auxiliary matrix has `inputs` columns.
GemmLayout input_gradient_layout(const LinearShape& shape, bool bias_gradient);
// shape.activation plays no part.
GemmLayout weight_gradient_layout(const LinearShape& shape, bool bias_gradient);

// The auxiliary matrix [rows][columns] of an activation, rows of a leading dimension that cublasLt
// accepts: relu keeps a bit an element (z > 0), in multiples of 128 bits; gelu keeps z in the
// elements' type, in multiples of 8 elements. No activation keeps nothing.
std::int64_t linear_aux_leading(Activation activation, std::int64_t columns);
std::size_t linear_aux_bytes(ElementType type, Activation activation, std::int64_t rows,
                             std::int64_t columns);

}  // namespace syncline::kernels
