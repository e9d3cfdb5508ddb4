// The layouts that kernels/gemm_epilogue.cc gives cublasLt, multiplied on the CPU as cublasLt's
// documentation says it multiplies, against the host twin; and the argument checks.

#include "kernels/gemm_epilogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "kernels/reference/linear.h"

namespace syncline::kernels {
namespace {

constexpr Activation kActivations[] = {Activation::kIdentity, Activation::kRelu, Activation::kGelu};

Nonlinearity twin_of(Activation activation) {
  return activation == Activation::kRelu   ? Nonlinearity::kRelu
         : activation == Activation::kGelu ? Nonlinearity::kGeluTanh
                                           : Nonlinearity::kNone;
}

std::vector<double> random_values(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(size);
  for (auto& value : values) value = normal(random);
  return values;
}

// Auxiliary memory as cublasLt has it: relu's bits, gelu's elements, in columns of aux_leading.
// What lies outside a column is as it was.
struct Aux {
  std::vector<unsigned char> bits;
  std::vector<double> elements;

  Aux(Activation activation, std::int64_t rows, std::int64_t columns) {
    // Sizes in bytes; here an element of 4 bytes is a double.
    const std::size_t bytes = linear_aux_bytes(ElementType::kFp32, activation, rows, columns);
    if (activation == Activation::kRelu) bits.assign(bytes, 0xaa);
    if (activation == Activation::kGelu) elements.assign(bytes / 4, std::nan(""));
  }
  void put_bit(std::int64_t at, bool value) {
    unsigned char& byte = bits.at(static_cast<std::size_t>(at / 8));
    const auto mask = static_cast<unsigned char>(1 << (at % 8));
    byte = static_cast<unsigned char>(value ? byte | mask : byte & ~mask);
  }
  bool bit(std::int64_t at) const {
    return (bits.at(static_cast<std::size_t>(at / 8)) >> (at % 8) & 1) != 0;
  }
};

// D = epilogue(op(A) op(B)), column-major. `bias` is read by the forward epilogues and written by
// the others.
class ColumnMajorProduct {
 public:
  ColumnMajorProduct(const GemmLayout& layout, const std::vector<double>& a,
                     const std::vector<double>& b)
      : layout_(layout), a_(a), b_(b) {
    const auto a_rows = layout.transpose_a ? layout.a.columns : layout.a.rows;
    inner_ = layout.transpose_a ? layout.a.rows : layout.a.columns;
    const auto b_rows = layout.transpose_b ? layout.b.columns : layout.b.rows;
    const auto b_columns = layout.transpose_b ? layout.b.rows : layout.b.columns;
    EXPECT_EQ(a_rows, layout.d.rows);
    EXPECT_EQ(b_rows, inner_);
    EXPECT_EQ(b_columns, layout.d.columns);
    for (const auto& matrix : {layout.a, layout.b, layout.d}) {
      EXPECT_GE(matrix.leading, matrix.rows);
    }
  }

  std::vector<double> run(std::vector<double>& bias, Aux& aux) {
    const auto& d = layout_.d;
    EXPECT_EQ(static_cast<std::int64_t>(bias.size()), layout_.bias_elements);
    if (gradient_of_bias()) std::fill(bias.begin(), bias.end(), 0.0);
    std::vector<double> out(static_cast<std::size_t>(d.leading * d.columns), std::nan(""));
    for (std::int64_t j = 0; j < d.columns; ++j) {
      for (std::int64_t i = 0; i < d.rows; ++i) {
        double sum = 0;
        for (std::int64_t k = 0; k < inner_; ++k) sum += left(i, k) * right(k, j);
        out[static_cast<std::size_t>(i + j * d.leading)] =
            finish(sum, i, i + j * layout_.aux_leading, bias, aux);
      }
    }
    if (layout_.epilogue == GemmEpilogue::kBgradB) {
      for (std::int64_t j = 0; j < d.columns; ++j) {
        for (std::int64_t k = 0; k < inner_; ++k)
          bias.at(static_cast<std::size_t>(j)) += right(k, j);
      }
    }
    return out;
  }

 private:
  static double element(const std::vector<double>& values, const ColumnMajor& shape, bool transpose,
                        std::int64_t i, std::int64_t j) {
    if (transpose) std::swap(i, j);
    return values.at(static_cast<std::size_t>(i + j * shape.leading));
  }
  double left(std::int64_t i, std::int64_t k) const {
    return element(a_, layout_.a, layout_.transpose_a, i, k);
  }
  double right(std::int64_t k, std::int64_t j) const {
    return element(b_, layout_.b, layout_.transpose_b, k, j);
  }
  bool gradient_of_bias() const {
    return layout_.epilogue == GemmEpilogue::kDReluBgrad ||
           layout_.epilogue == GemmEpilogue::kDGeluBgrad ||
           layout_.epilogue == GemmEpilogue::kBgradB;
  }

  // One element of row `i`; `at` is its place in the auxiliary matrix.
  double finish(double sum, std::int64_t i, std::int64_t at, std::vector<double>& bias,
                Aux& aux) const {
    const auto row = static_cast<std::size_t>(i);
    const auto place = static_cast<std::size_t>(at);
    switch (layout_.epilogue) {
      case GemmEpilogue::kDefault:
      case GemmEpilogue::kBgradB:
        return sum;
      case GemmEpilogue::kBias:
        return sum + bias.at(row);
      case GemmEpilogue::kReluAuxBias:
        aux.put_bit(at, sum + bias.at(row) > 0);
        [[fallthrough]];
      case GemmEpilogue::kReluBias:
        return std::max(sum + bias.at(row), 0.0);
      case GemmEpilogue::kGeluAuxBias:
        aux.elements.at(place) = sum + bias.at(row);
        [[fallthrough]];
      case GemmEpilogue::kGeluBias:
        return activated(Nonlinearity::kGeluTanh, sum + bias.at(row));
      case GemmEpilogue::kDRelu:
        return aux.bit(at) ? sum : 0;
      case GemmEpilogue::kDReluBgrad: {
        const double dz = aux.bit(at) ? sum : 0;
        bias.at(row) += dz;
        return dz;
      }
      case GemmEpilogue::kDGelu:
        return sum * activation_slope(Nonlinearity::kGeluTanh, aux.elements.at(place));
      case GemmEpilogue::kDGeluBgrad: {
        const double dz = sum * activation_slope(Nonlinearity::kGeluTanh, aux.elements.at(place));
        bias.at(row) += dz;
        return dz;
      }
    }
    return std::nan("");
  }

  const GemmLayout& layout_;
  const std::vector<double>& a_;
  const std::vector<double>& b_;
  std::int64_t inner_ = 0;
};

void expect_same(const std::vector<double>& got, const std::vector<double>& expected,
                 const char* name) {
  SCOPED_TRACE(name);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-10) << i;
}

std::size_t size_of(std::int64_t a, std::int64_t b) { return static_cast<std::size_t>(a * b); }

// Two layers, as in training: x -> z -> h = f(z) -> y. The first gives the auxiliary matrix that
// the second's gradient reads.
void check_layouts(Activation activation, std::int64_t rows, std::int64_t inputs,
                   std::int64_t hidden, std::int64_t outputs) {
  SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(inputs) + " -> " +
               std::to_string(hidden) + " -> " + std::to_string(outputs));
  const auto twin = twin_of(activation);
  LinearLayer first{static_cast<std::size_t>(rows),
                    static_cast<std::size_t>(inputs),
                    static_cast<std::size_t>(hidden),
                    random_values(size_of(rows, inputs), 1),
                    random_values(size_of(hidden, inputs), 2),
                    random_values(size_of(hidden, 1), 3)};
  const LinearShape first_shape{ElementType::kFp32, activation, rows, inputs, hidden};
  const auto expected = linear_output(first, twin);
  Aux aux(activation, rows, hidden);
  for (const bool keep : {false, true}) {
    const auto layout = forward_layout(first_shape, keep);
    Aux scratch(activation, rows, hidden);
    const auto y = ColumnMajorProduct(layout, first.w, first.x).run(first.b, keep ? aux : scratch);
    expect_same(y, expected.y, "y");
  }

  const LinearLayer second{static_cast<std::size_t>(rows),
                           static_cast<std::size_t>(hidden),
                           static_cast<std::size_t>(outputs),
                           expected.y,
                           random_values(size_of(outputs, hidden), 4),
                           random_values(size_of(outputs, 1), 5)};
  const LinearShape second_shape{ElementType::kFp32, activation, rows, hidden, outputs};
  const auto dy = random_values(size_of(rows, outputs), 6);
  const auto before = linear_gradient_before(second, dy, twin, expected.z);
  const bool activates = activation != Activation::kIdentity;
  for (const bool bias_gradient : {false, activates}) {
    const auto layout = input_gradient_layout(second_shape, bias_gradient);
    std::vector<double> db(bias_gradient ? size_of(hidden, 1) : 0);
    const auto dz = ColumnMajorProduct(layout, second.w, dy).run(db, aux);
    expect_same(dz, before.values, "dz");
    if (bias_gradient) expect_same(db, before.bias, "db before");
  }

  const auto weights = linear_gradient_of_weights(second, dy);
  for (const bool bias_gradient : {false, true}) {
    const auto layout = weight_gradient_layout(second_shape, bias_gradient);
    std::vector<double> db(bias_gradient ? size_of(outputs, 1) : 0);
    const auto dw = ColumnMajorProduct(layout, second.x, dy).run(db, aux);
    expect_same(dw, weights.values, "dw");
    if (bias_gradient) expect_same(db, weights.bias, "db");
  }
}

TEST(GemmLayout, EveryProductIsTheRowMajorOne) {
  for (const auto activation : kActivations) {
    SCOPED_TRACE(static_cast<int>(activation));
    check_layouts(activation, 3, 5, 7, 11);  // all different: no two can be confused
    check_layouts(activation, 1, 1, 1, 1);
    check_layouts(activation, 2, 3, 129, 4);  // more than a word of relu's mask
    check_layouts(activation, 9, 8, 128, 1);
    check_layouts(activation, 1, 17, 24, 2);
  }
}

TEST(GemmLayout, NamesTheEpilogues) {
  LinearShape shape{ElementType::kBf16, Activation::kRelu, 4, 8, 16};
  EXPECT_EQ(forward_layout(shape, true).epilogue, GemmEpilogue::kReluAuxBias);
  EXPECT_EQ(forward_layout(shape, false).epilogue, GemmEpilogue::kReluBias);
  EXPECT_EQ(forward_layout(shape, false).aux_leading, 0);
  EXPECT_EQ(input_gradient_layout(shape, true).epilogue, GemmEpilogue::kDReluBgrad);
  EXPECT_EQ(weight_gradient_layout(shape, true).epilogue, GemmEpilogue::kBgradB);
  EXPECT_EQ(weight_gradient_layout(shape, true).aux_leading, 0);
  shape.activation = Activation::kGelu;
  EXPECT_EQ(forward_layout(shape, true).epilogue, GemmEpilogue::kGeluAuxBias);
  EXPECT_EQ(input_gradient_layout(shape, true).epilogue, GemmEpilogue::kDGeluBgrad);
  shape.activation = Activation::kIdentity;
  EXPECT_EQ(forward_layout(shape, true).epilogue, GemmEpilogue::kBias);
  EXPECT_EQ(input_gradient_layout(shape, false).epilogue, GemmEpilogue::kDefault);
}

TEST(GemmLayout, AuxiliaryMatricesAreAsCublasLtWantsThem) {
  const struct {
    std::int64_t columns, relu, gelu;
  } rows[] = {{1, 128, 8},     {8, 128, 8},     {9, 128, 16},      {127, 128, 128},
              {128, 128, 128}, {129, 256, 136}, {3072, 3072, 3072}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.columns);
    EXPECT_EQ(linear_aux_leading(Activation::kRelu, row.columns), row.relu);
    EXPECT_EQ(linear_aux_leading(Activation::kGelu, row.columns), row.gelu);
    EXPECT_EQ(linear_aux_leading(Activation::kIdentity, row.columns), 0);
  }
  EXPECT_EQ(linear_aux_bytes(ElementType::kBf16, Activation::kRelu, 10, 129), 320U);
  EXPECT_EQ(linear_aux_bytes(ElementType::kFp32, Activation::kRelu, 10, 129), 320U);
  EXPECT_EQ(linear_aux_bytes(ElementType::kBf16, Activation::kGelu, 10, 129), 2720U);
  EXPECT_EQ(linear_aux_bytes(ElementType::kFp32, Activation::kGelu, 10, 129), 5440U);
  EXPECT_EQ(linear_aux_bytes(ElementType::kFp32, Activation::kIdentity, 10, 129), 0U);
  // More than 2^32 bytes.
  EXPECT_EQ(linear_aux_bytes(ElementType::kFp32, Activation::kGelu, 1 << 20, 1 << 14), 1ULL << 36);
}

class GemmArguments : public testing::Test {
 protected:
  static void expect(const Status& status, const char* part) {
    EXPECT_NE(status.text.find(part), std::string::npos) << status.text;
  }
  static const void* odd(const void* address) { return static_cast<const char*>(address) + 1; }

  alignas(256) float memory_[64] = {};
  LinearShape shape_{ElementType::kFp32, Activation::kRelu, 2, 2, 2};
  LinearForward forward_{memory_, memory_, memory_, memory_, memory_};
  LinearInputGradient input_{memory_, memory_, memory_, memory_, memory_};
  LinearWeightGradient weights_{memory_, memory_, memory_, memory_};
  GemmWorkspace workspace_{memory_, 256};
};

TEST_F(GemmArguments, GoodOnesPass) {
  EXPECT_TRUE(check_linear_forward(shape_, forward_, workspace_).ok());
  EXPECT_TRUE(check_linear_forward(shape_, forward_, {}).ok());
  EXPECT_TRUE(check_linear_input_gradient(shape_, input_, workspace_).ok());
  EXPECT_TRUE(check_linear_weight_gradient(shape_, weights_, workspace_).ok());
  forward_.aux = nullptr;
  input_.db = nullptr;
  weights_.db = nullptr;
  EXPECT_TRUE(check_linear_forward(shape_, forward_, workspace_).ok());
  EXPECT_TRUE(check_linear_input_gradient(shape_, input_, workspace_).ok());
  EXPECT_TRUE(check_linear_weight_gradient(shape_, weights_, workspace_).ok());
}

TEST_F(GemmArguments, BadShapesAreNamed) {
  const auto forward = [&](LinearShape shape, const char* part) {
    expect(check_linear_forward(shape, forward_, workspace_), part);
    expect(check_linear_input_gradient(shape, input_, workspace_), part);
    expect(check_linear_weight_gradient(shape, weights_, workspace_), part);
  };
  LinearShape bad = shape_;
  bad.rows = 0;
  forward(bad, ": 0 rows, allowed are 1 to 2147483647");
  bad = shape_;
  bad.inputs = -3;
  forward(bad, ": -3 inputs");
  bad = shape_;
  bad.outputs = std::int64_t{1} << 31;
  forward(bad, ": 2147483648 outputs");
  bad = shape_;
  bad.type = static_cast<ElementType>(5);
  forward(bad, "unknown element type");
  bad = shape_;
  bad.activation = static_cast<Activation>(-1);
  forward(bad, "unknown activation");
}

TEST_F(GemmArguments, BadArraysAreNamed) {
  auto forward = forward_;
  forward.w = nullptr;
  expect(check_linear_forward(shape_, forward, workspace_), "linear_forward: w is a null pointer");
  forward = forward_;
  forward.b = nullptr;
  expect(check_linear_forward(shape_, forward, workspace_), "b is a null pointer");
  forward = forward_;
  forward.x = odd(memory_);
  expect(check_linear_forward(shape_, forward, workspace_), "x is not aligned");
  forward = forward_;
  forward.aux = memory_ + 1;
  expect(check_linear_forward(shape_, forward, workspace_), "aux is not aligned to 16");
  auto input = input_;
  input.aux = nullptr;
  expect(check_linear_input_gradient(shape_, input, workspace_), "aux is a null pointer");
  input = input_;
  input.db = const_cast<void*>(odd(memory_));
  expect(check_linear_input_gradient(shape_, input, workspace_), "db is not aligned");
  auto weights = weights_;
  weights.dw = nullptr;
  expect(check_linear_weight_gradient(shape_, weights, workspace_),
         "linear_weight_gradient: dw is a null pointer");
  expect(check_linear_forward(shape_, forward_, {nullptr, 256}), "workspace is null");
  expect(check_linear_forward(shape_, forward_, {memory_ + 1, 128}), "not aligned to 256 bytes");
}

TEST_F(GemmArguments, WithoutAnActivationThereIsNothingToKeep) {
  shape_.activation = Activation::kIdentity;
  expect(check_linear_forward(shape_, forward_, workspace_), "there is no activation");
  expect(check_linear_input_gradient(shape_, input_, workspace_), "db is given");
  input_.db = nullptr;
  expect(check_linear_input_gradient(shape_, input_, workspace_), "aux is given");
  input_.aux = nullptr;
  EXPECT_TRUE(check_linear_input_gradient(shape_, input_, workspace_).ok());
}

}  // namespace
}  // namespace syncline::kernels
