// kernels/gemm_epilogue.cc on a cublasLt that is emulated in host memory, fp32: that the right
// array goes to the right place, with the attributes that cublasLt's header asks for, and that the
// heuristics are asked once for each product.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cublas_lt_library.h"
#include "kernels/gemm_epilogue.h"
#include "kernels/reference/linear.h"

namespace {

struct Product {
  cublasOperation_t transpose_a = CUBLAS_OP_N;
  cublasOperation_t transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float* bias = nullptr;
  void* aux = nullptr;
  std::int64_t aux_leading = 0;
};

struct Matrix {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t leading;
};

int asked_heuristics = 0;
std::uint64_t workspace_limit = 0;
bool has_kernels = true;
bool says_not_supported = false;  // the other way in which it tells of none
int device = 0;

template <typename To, typename From>
To* as(From* opaque) {
  return reinterpret_cast<To*>(opaque);
}

cublasStatus_t create(cublasLtHandle_t* handle) {
  static int kHandle = 0;
  *handle = as<cublasLtContext>(&kHandle);
  return CUBLAS_STATUS_SUCCESS;
}

const char* text(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "invalid value" : "another failure";
}

cublasStatus_t desc_create(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                           cudaDataType_t scale) {
  *desc = as<cublasLtMatmulDescOpaque_t>(new Product);
  return compute == CUBLAS_COMPUTE_32F && scale == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS
                                                              : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t desc_destroy(cublasLtMatmulDesc_t desc) {
  delete as<Product>(desc);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Value>
cublasStatus_t take(Value& to, const void* from, std::size_t bytes) {
  if (bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t desc_set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                        const void* value, std::size_t bytes) {
  Product& product = *as<Product>(desc);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(product.transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(product.transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(product.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(product.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return take(product.aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return take(product.aux_leading, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t layout_create(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                             std::uint64_t columns, std::int64_t leading) {
  *layout = as<cublasLtMatrixLayoutOpaque_t>(
      new Matrix{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading});
  return type == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t layout_destroy(cublasLtMatrixLayout_t layout) {
  delete as<Matrix>(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t preference_create(cublasLtMatmulPreference_t* preference) {
  *preference = as<cublasLtMatmulPreferenceOpaque_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t preference_destroy(cublasLtMatmulPreference_t preference) {
  delete as<int>(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t preference_set(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t what,
                              const void* value, std::size_t bytes) {
  if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return take(workspace_limit, value, bytes);
  std::uint32_t alignment = 0;
  return take(alignment, value, bytes);
}

cublasStatus_t heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                         cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t* results,
                         int* count) {
  ++asked_heuristics;
  *count = has_kernels ? 1 : 0;
  if (!has_kernels && says_not_supported) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

// One element behind the product, by the epilogue's bits as the header defines them.
float finished(const Product& product, double sum, std::int64_t row, std::int64_t column) {
  using syncline::kernels::Nonlinearity;
  const int bits = product.epilogue;
  const auto at = row + column * product.aux_leading;
  const auto mask = [&] { return static_cast<unsigned char*>(product.aux) + at / 8; };
  const auto kept = [&] { return static_cast<float*>(product.aux) + at; };
  const auto bit = static_cast<unsigned char>(1 << at % 8);
  if (bits == CUBLASLT_EPILOGUE_BGRADB) return static_cast<float>(sum);
  if ((bits & CUBLASLT_EPILOGUE_BIAS) != 0) sum += product.bias[row];
  const bool keeps = (bits & 128) != 0;
  if ((bits & CUBLASLT_EPILOGUE_RELU) != 0) {
    if (keeps) *mask() = static_cast<unsigned char>(sum > 0 ? *mask() | bit : *mask() & ~bit);
    sum = std::max(sum, 0.0);
  }
  if ((bits & CUBLASLT_EPILOGUE_GELU) != 0) {
    if (keeps) *kept() = static_cast<float>(sum);
    sum = syncline::kernels::activated(Nonlinearity::kGeluTanh, sum);
  }
  if ((bits & 8) != 0 && (*mask() & bit) == 0) sum = 0;
  if ((bits & 64) != 0) {
    sum *= syncline::kernels::activation_slope(Nonlinearity::kGeluTanh, *kept());
  }
  if ((bits & 16) != 0) product.bias[row] += static_cast<float>(sum);
  return static_cast<float>(sum);
}

cublasStatus_t matmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void*, const void* a,
                      cublasLtMatrixLayout_t a_layout, const void* b,
                      cublasLtMatrixLayout_t b_layout, const void*, const void*,
                      cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                      const cublasLtMatmulAlgo_t*, void*, std::size_t, cudaStream_t) {
  const Product& product = *as<Product>(desc);
  const Matrix& left = *as<Matrix>(a_layout);
  const Matrix& right = *as<Matrix>(b_layout);
  const Matrix& out = *as<Matrix>(d_layout);
  const bool turn_a = product.transpose_a == CUBLAS_OP_T;
  const bool turn_b = product.transpose_b == CUBLAS_OP_T;
  const std::int64_t inner = turn_a ? left.rows : left.columns;
  const auto element = [](const void* values, const Matrix& matrix, bool turn, std::int64_t i,
                          std::int64_t j) {
    return static_cast<double>(
        static_cast<const float*>(values)[turn ? j + i * matrix.leading : i + j * matrix.leading]);
  };
  if ((product.epilogue & 16) != 0) std::fill_n(product.bias, out.rows, 0.0f);
  if (product.epilogue == CUBLASLT_EPILOGUE_BGRADB) std::fill_n(product.bias, out.columns, 0.0f);
  for (std::int64_t j = 0; j < out.columns; ++j) {
    for (std::int64_t i = 0; i < out.rows; ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < inner; ++k) {
        sum += element(a, left, turn_a, i, k) * element(b, right, turn_b, k, j);
      }
      static_cast<float*>(d)[i + j * out.leading] = finished(product, sum, i, j);
    }
    if (product.epilogue != CUBLASLT_EPILOGUE_BGRADB) continue;
    for (std::int64_t k = 0; k < inner; ++k) {
      product.bias[j] += static_cast<float>(element(b, right, turn_b, k, j));
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cudaError_t cudaGetDevice(int* current) {
  *current = device;
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t) { return "cudaError"; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }

namespace syncline::kernels {

const CublasLtLibrary& cublas_lt_library() {
  static const CublasLtLibrary kEmulated{{},
                                         create,
                                         text,
                                         desc_create,
                                         desc_destroy,
                                         desc_set,
                                         layout_create,
                                         layout_destroy,
                                         preference_create,
                                         preference_destroy,
                                         preference_set,
                                         heuristic,
                                         matmul};
  return kEmulated;
}

namespace {

std::vector<float> random_values(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (auto& value : values) value = normal(random);
  return values;
}

std::vector<double> wide(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

void expect_near(const std::vector<float>& got, const std::vector<double>& expected,
                 const char* name) {
  SCOPED_TRACE(name);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 2e-5) << i;
}

constexpr std::size_t kRows = 9;
constexpr std::size_t kInputs = 5;
constexpr std::size_t kHidden = 131;
constexpr std::size_t kOutputs = 7;

struct alignas(256) Workspace {
  std::byte bytes[1024];
};

class EmulatedGemm : public testing::TestWithParam<Activation> {
 protected:
  std::vector<float> x_ = random_values(kRows * kInputs, 1);
  std::vector<float> w_ = random_values(kHidden * kInputs, 2);
  std::vector<float> b_ = random_values(kHidden, 3);
  std::vector<float> w2_ = random_values(kOutputs * kHidden, 4);
  std::vector<float> dy_ = random_values(kRows * kOutputs, 5);
  std::vector<float> h_ = std::vector<float>(kRows * kHidden);
  Workspace memory_;
  GemmWorkspace workspace_{&memory_, sizeof memory_};
};

TEST_P(EmulatedGemm, EveryProductIsItsTwins) {
  const Activation activation = GetParam();
  const bool activates = activation != Activation::kIdentity;
  const auto twin = activation == Activation::kRelu   ? Nonlinearity::kRelu
                    : activation == Activation::kGelu ? Nonlinearity::kGeluTanh
                                                      : Nonlinearity::kNone;
  const LinearShape first{ElementType::kFp32, activation, kRows, kInputs, kHidden};
  const LinearShape second{ElementType::kFp32, activation, kRows, kHidden, kOutputs};
  std::vector<Workspace> aux(
      linear_aux_bytes(first.type, activation, kRows, kHidden) / sizeof(Workspace) + 1);
  void* const kept = activates ? aux.data() : nullptr;

  const auto forward = linear_forward(first, {x_.data(), w_.data(), b_.data(), h_.data(), kept},
                                      workspace_, nullptr);
  ASSERT_EQ(forward.text, "");
  const LinearLayer layer{kRows, kInputs, kHidden, wide(x_), wide(w_), wide(b_)};
  const auto expected = linear_output(layer, twin);
  expect_near(h_, expected.y, "y");

  std::vector<float> dz(h_.size());
  std::vector<float> db(kHidden);
  const auto input = linear_input_gradient(
      second, {dy_.data(), w2_.data(), kept, dz.data(), activates ? db.data() : nullptr},
      workspace_, nullptr);
  ASSERT_EQ(input.text, "");
  const LinearLayer behind{kRows, kHidden, kOutputs, wide(h_), wide(w2_), {}};
  const auto before = linear_gradient_before(behind, wide(dy_), twin, expected.z);
  expect_near(dz, before.values, "dz");
  if (activates) expect_near(db, before.bias, "db before");

  std::vector<float> dw(w2_.size());
  std::vector<float> db2(kOutputs);
  const auto weights = linear_weight_gradient(
      second, {dy_.data(), h_.data(), dw.data(), db2.data()}, workspace_, nullptr);
  ASSERT_EQ(weights.text, "");
  const auto of_weights = linear_gradient_of_weights(behind, wide(dy_));
  expect_near(dw, of_weights.values, "dw");
  expect_near(db2, of_weights.bias, "db");
}

INSTANTIATE_TEST_SUITE_P(Activations, EmulatedGemm,
                         testing::Values(Activation::kIdentity, Activation::kRelu,
                                         Activation::kGelu));

TEST_F(EmulatedGemm, AChoiceIsKeptPerDeviceShapeAndWorkspace) {
  LinearShape shape{ElementType::kFp32, Activation::kIdentity, 3, kInputs, kHidden};
  const auto asked = [&] {
    const int before = asked_heuristics;
    const auto status = linear_forward(shape, {x_.data(), w_.data(), b_.data(), h_.data(), nullptr},
                                       workspace_, nullptr);
    EXPECT_EQ(status.text, "");
    return asked_heuristics - before;
  };
  EXPECT_EQ(asked(), 1);
  EXPECT_EQ(workspace_limit, sizeof memory_);
  EXPECT_EQ(asked(), 0);
  shape.rows = 4;
  EXPECT_EQ(asked(), 1);
  shape.activation = Activation::kRelu;
  EXPECT_EQ(asked(), 1);
  workspace_ = {};
  EXPECT_EQ(asked(), 1);
  EXPECT_EQ(workspace_limit, 0U);
  device = 1;
  EXPECT_EQ(asked(), 1);
  EXPECT_EQ(asked(), 0);
  device = 0;
  EXPECT_EQ(asked(), 0);
}

TEST_F(EmulatedGemm, WhereCublasLtHasNoKernelTheCallIsNamed) {
  const LinearShape shape{ElementType::kFp32, Activation::kRelu, 2, kInputs, kHidden};
  const LinearForward arrays{x_.data(), w_.data(), b_.data(), h_.data(), nullptr};
  for (const bool not_supported : {false, true}) {
    has_kernels = false;
    says_not_supported = not_supported;
    const auto status = linear_forward(shape, arrays, workspace_, nullptr);
    has_kernels = true;
    EXPECT_EQ(status.text,
              "cublasLtMatmulAlgoGetHeuristic(D 131 x 2, A 5 x 131, B 5 x 2, epilogue RELU_BIAS): "
              "no kernel of cublasLt does this within 1024 bytes of workspace");
  }
  EXPECT_TRUE(linear_forward(shape, arrays, workspace_, nullptr).ok());  // a failure is not kept
  // The emulation knows fp32 alone: what a call refuses comes back with its name.
  LinearShape other = shape;
  other.type = ElementType::kBf16;
  EXPECT_EQ(linear_forward(other, arrays, workspace_, nullptr).text,
            "cublasLtMatrixLayoutCreate: invalid value");
}

}  // namespace
}  // namespace syncline::kernels
