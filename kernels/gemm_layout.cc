#include "kernels/gemm_layout.h"

namespace syncline::kernels {
namespace {

// A dense row-major matrix as cublasLt reads it.
ColumnMajor transposed_view(std::int64_t rows, std::int64_t columns) {
  return {columns, rows, columns};
}

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

GemmEpilogue forward_epilogue(Activation activation, bool keep_aux) {
  if (activation == Activation::kRelu) {
    return keep_aux ? GemmEpilogue::kReluAuxBias : GemmEpilogue::kReluBias;
  }
  if (activation == Activation::kGelu) {
    return keep_aux ? GemmEpilogue::kGeluAuxBias : GemmEpilogue::kGeluBias;
  }
  return GemmEpilogue::kBias;
}

GemmEpilogue gradient_epilogue(Activation activation, bool bias_gradient) {
  if (activation == Activation::kRelu) {
    return bias_gradient ? GemmEpilogue::kDReluBgrad : GemmEpilogue::kDRelu;
  }
  if (activation == Activation::kGelu) {
    return bias_gradient ? GemmEpilogue::kDGeluBgrad : GemmEpilogue::kDGelu;
  }
  return GemmEpilogue::kDefault;
}

}  // namespace

std::int64_t linear_aux_leading(Activation activation, std::int64_t columns) {
  if (activation == Activation::kRelu) return rounded_up(columns, 128);
  if (activation == Activation::kGelu) return rounded_up(columns, 8);
  return 0;
}

std::size_t linear_aux_bytes(ElementType type, Activation activation, std::int64_t rows,
                             std::int64_t columns) {
  const auto elements = static_cast<std::size_t>(rows) *
                        static_cast<std::size_t>(linear_aux_leading(activation, columns));
  if (activation == Activation::kRelu) return elements / 8;
  return elements * static_cast<std::size_t>(element_bytes(type));
}

GemmLayout forward_layout(const LinearShape& shape, bool keep_aux) {
  GemmLayout layout;
  layout.type = shape.type;
  layout.transpose_a = true;
  layout.a = transposed_view(shape.outputs, shape.inputs);  // w
  layout.b = transposed_view(shape.rows, shape.inputs);     // x
  layout.d = transposed_view(shape.rows, shape.outputs);    // y
  layout.epilogue = forward_epilogue(shape.activation, keep_aux);
  layout.bias_elements = shape.outputs;
  if (keep_aux) layout.aux_leading = linear_aux_leading(shape.activation, shape.outputs);
  return layout;
}

GemmLayout input_gradient_layout(const LinearShape& shape, bool bias_gradient) {
  GemmLayout layout;
  layout.type = shape.type;
  layout.a = transposed_view(shape.outputs, shape.inputs);  // w
  layout.b = transposed_view(shape.rows, shape.outputs);    // dy
  layout.d = transposed_view(shape.rows, shape.inputs);     // dz
  layout.epilogue = gradient_epilogue(shape.activation, bias_gradient);
  layout.bias_elements = bias_gradient ? shape.inputs : 0;
  layout.aux_leading = linear_aux_leading(shape.activation, shape.inputs);
  return layout;
}

GemmLayout weight_gradient_layout(const LinearShape& shape, bool bias_gradient) {
  GemmLayout layout;
  layout.type = shape.type;
  layout.transpose_b = true;
  layout.a = transposed_view(shape.rows, shape.inputs);     // x
  layout.b = transposed_view(shape.rows, shape.outputs);    // dy
  layout.d = transposed_view(shape.outputs, shape.inputs);  // dw
  layout.epilogue = bias_gradient ? GemmEpilogue::kBgradB : GemmEpilogue::kDefault;
  layout.bias_elements = bias_gradient ? shape.outputs : 0;
  return layout;
}

}  // namespace syncline::kernels
