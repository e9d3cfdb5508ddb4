// cublasLt in host memory: that the right array goes to the right place, with the attributes that
// cublasLt's header asks for.
#include "tests/kernels/emulated/cublas_lt.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "kernels/cublas_lt_library.h"
#include "kernels/launch.h"
#include "kernels/reference/layers.h"

namespace syncline::kernels {

EmulatedCublasLt emulated;

namespace {

struct Product {
  cublasOperation_t transpose_a = CUBLAS_OP_N;
  cublasOperation_t transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  void* aux = nullptr;
  std::int64_t aux_leading = 0;
};

struct Matrix {
  cudaDataType type;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t leading;
};

float number_at(cudaDataType type, const void* values, std::int64_t at) {
  if (type == CUDA_R_16BF) return to_float(static_cast<const Bf16*>(values)[at]);
  if (type == CUDA_R_16F) return to_float(static_cast<const Fp16*>(values)[at]);
  return static_cast<const float*>(values)[at];
}

void put_at(cudaDataType type, void* values, std::int64_t at, double number) {
  const auto value = static_cast<float>(number);
  if (type == CUDA_R_16BF) {
    static_cast<Bf16*>(values)[at] = from_float<Bf16>(value);
  } else if (type == CUDA_R_16F) {
    static_cast<Fp16*>(values)[at] = from_float<Fp16>(value);
  } else {
    static_cast<float*>(values)[at] = value;
  }
}

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
  *layout = as<cublasLtMatrixLayoutOpaque_t>(new Matrix{
      type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading});
  const bool known = type == CUDA_R_32F || type == CUDA_R_16BF || type == CUDA_R_16F;
  return known && type != emulated.refused ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
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
  if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return take(emulated.workspace_limit, value, bytes);
  std::uint32_t alignment = 0;
  return take(alignment, value, bytes);
}

cublasStatus_t heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                         cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t* results,
                         int* count) {
  ++emulated.asked;
  *count = emulated.has_kernels ? 1 : 0;
  if (!emulated.has_kernels && emulated.says_not_supported) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

// One element behind the product, by the epilogue's bits as the header defines them. What it adds
// to the bias gradient comes in `slope`.
double finished(const Product& product, cudaDataType type, double sum, std::int64_t row,
                std::int64_t column, double& slope) {
  const int bits = product.epilogue;
  const auto at = row + column * product.aux_leading;
  const auto mask = [&] { return static_cast<unsigned char*>(product.aux) + at / 8; };
  const auto bit = static_cast<unsigned char>(1 << at % 8);
  if (bits == CUBLASLT_EPILOGUE_BGRADB) return sum;
  if ((bits & CUBLASLT_EPILOGUE_BIAS) != 0) sum += number_at(type, product.bias, row);
  const bool keeps = (bits & 128) != 0;
  if ((bits & CUBLASLT_EPILOGUE_RELU) != 0) {
    if (keeps) *mask() = static_cast<unsigned char>(sum > 0 ? *mask() | bit : *mask() & ~bit);
    sum = std::max(sum, 0.0);
  }
  if ((bits & CUBLASLT_EPILOGUE_GELU) != 0) {
    if (keeps) put_at(type, product.aux, at, sum);
    sum = activate(Nonlinearity::kGeluTanh, sum);
  }
  if ((bits & 8) != 0 && (*mask() & bit) == 0) sum = 0;
  if ((bits & 64) != 0) {
    sum *= activation_slope(Nonlinearity::kGeluTanh, number_at(type, product.aux, at));
  }
  slope = sum;
  return sum;
}

void multiply(const Product& product, const Matrix& left, const void* a, const Matrix& right,
              const void* b, const Matrix& out, void* d) {
  const bool turn_a = product.transpose_a == CUBLAS_OP_T;
  const bool turn_b = product.transpose_b == CUBLAS_OP_T;
  const std::int64_t inner = turn_a ? left.rows : left.columns;
  // Row i of op(A) and column j of op(B), each from its beginning.
  std::vector<double> row_of_a, column_of_b;
  for (std::int64_t i = 0; i < out.rows; ++i) {
    for (std::int64_t k = 0; k < inner; ++k) {
      row_of_a.push_back(
          number_at(left.type, a, turn_a ? k + i * left.leading : i + k * left.leading));
    }
  }
  for (std::int64_t j = 0; j < out.columns; ++j) {
    for (std::int64_t k = 0; k < inner; ++k) {
      column_of_b.push_back(
          number_at(right.type, b, turn_b ? j + k * right.leading : k + j * right.leading));
    }
  }
  const bool of_b = product.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  std::vector<double> sums(static_cast<std::size_t>(of_b ? out.columns : out.rows), 0.0);
  for (std::int64_t j = 0; j < out.columns; ++j) {
    for (std::int64_t i = 0; i < out.rows; ++i) {
      double sum = 0;
      const double* of_a = row_of_a.data() + i * inner;
      const double* of_column = column_of_b.data() + j * inner;
      for (std::int64_t k = 0; k < inner; ++k) sum += of_a[k] * of_column[k];
      double slope = 0;
      sum = finished(product, out.type, sum, i, j, slope);
      put_at(out.type, d, i + j * out.leading, sum);
      if (!of_b) sums[static_cast<std::size_t>(i)] += slope;
    }
    for (std::int64_t k = 0; of_b && k < inner; ++k) {
      sums[static_cast<std::size_t>(j)] += column_of_b[static_cast<std::size_t>(j * inner + k)];
    }
  }
  const bool sums_bias = of_b || (product.epilogue & 16) != 0;
  for (std::size_t i = 0; sums_bias && i < sums.size(); ++i) {
    put_at(out.type, product.bias, static_cast<std::int64_t>(i), sums[i]);
  }
}

// In the stream's turn; the descriptors may be gone by then.
cublasStatus_t matmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void*, const void* a,
                      cublasLtMatrixLayout_t a_layout, const void* b,
                      cublasLtMatrixLayout_t b_layout, const void*, const void*,
                      cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                      const cublasLtMatmulAlgo_t*, void*, std::size_t, cudaStream_t stream) {
  launch_on_host(
      "cublasLtMatmul", {1, 1}, stream,
      [product = *as<Product>(desc), left = *as<Matrix>(a_layout), a, right = *as<Matrix>(b_layout),
       b, out = *as<Matrix>(d_layout), d] { multiply(product, left, a, right, b, out, d); });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

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

}  // namespace syncline::kernels
