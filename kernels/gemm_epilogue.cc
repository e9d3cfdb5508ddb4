// Maps a linear layer's row-major products to cublasLt's column-major ones, D = op(A) op(B), with
// an epilogue on D. A row-major matrix [r][c], read by columns, is its own transpose: c rows, r
// columns, leading dimension c. So with y[rows][outputs], x[rows][inputs] and w[outputs][inputs]
//
//   forward           y = f(x w^T + b)        y^T  = w   x^T    A = w (transposed), B = x
//   input gradient    dz = (dy w) * f'(z)     dz^T = w^T dy^T   A = w, B = dy
//   weight gradient   dw = dy^T x             dw^T = x^T dy     A = x, B = dy (transposed)
//
// with z the activation's input that gave x. The bias has D's number of rows in the first two; the
// weight gradient's bias, the sum of dy over the rows, comes from B (BGRADB).
//
// Bytes in addition to the plain product: none, except 1/8 byte (relu) or one element (gelu) per
// element if the backward pass wants the auxiliary matrix. As separate kernels bias and activation
// each read and write y once more.
//
// Gelu is cublasLt's here, with tanh in place of erf: at most 5e-4 from elementwise.cu's; its
// reference is Nonlinearity::kGeluTanh. cublasLt does not specify the relu of a NaN: use
// add_activation if a NaN must stay.
//
// cublasLt is loaded (dlopen) at the first call. It runs the first answer of its heuristics for the
// shape, the arrays' alignment and the bytes of workspace. The answer is stored per device, so that
// equal inputs give equal bits on one machine and version.
#include "kernels/gemm_epilogue.h"

#include <cuda_runtime_api.h>

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "kernels/cublas_lt_library.h"

namespace syncline::kernels {
namespace {

struct Operands {
  const void* a;
  const void* b;
  void* d;
  const void* bias;  // the bias, or the place for its gradient
  const void* aux;
};

Status lt_status(cublasStatus_t status, const std::string& call) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return failure(call + ": " + cublas_lt_library().text(status));
}

cudaDataType_t data_type(ElementType type) {
  return type == ElementType::kFp32   ? CUDA_R_32F
         : type == ElementType::kBf16 ? CUDA_R_16BF
                                      : CUDA_R_16F;
}

// A matrix as stored, before op().
struct ColumnMajor {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;

  bool operator==(const ColumnMajor&) const = default;
  // clang-tidy mistakes the compiler's expansion for a pointer.
  auto operator<=>(const ColumnMajor&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct GemmLayout {
  ElementType type = ElementType::kBf16;
  bool transpose_a = false;
  bool transpose_b = false;
  ColumnMajor a;
  ColumnMajor b;
  ColumnMajor d;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int64_t bias_elements = 0;  // 0: none
  std::int64_t aux_leading = 0;    // leading dimension of aux in bits (relu) or elements (gelu)

  auto operator<=>(const GemmLayout&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Returns a dense row-major matrix as cublasLt reads it.
ColumnMajor transposed_view(std::int64_t rows, std::int64_t columns) {
  return {columns, rows, columns};
}

cublasLtEpilogue_t forward_epilogue(Activation activation, bool keep_aux, bool bias) {
  if (!bias) return CUBLASLT_EPILOGUE_DEFAULT;
  if (activation == Activation::kRelu) {
    return keep_aux ? CUBLASLT_EPILOGUE_RELU_AUX_BIAS : CUBLASLT_EPILOGUE_RELU_BIAS;
  }
  if (activation == Activation::kGelu) {
    return keep_aux ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_BIAS;
  }
  return CUBLASLT_EPILOGUE_BIAS;
}

cublasLtEpilogue_t gradient_epilogue(Activation activation, bool bias_gradient) {
  if (activation == Activation::kRelu) {
    return bias_gradient ? CUBLASLT_EPILOGUE_DRELU_BGRAD : CUBLASLT_EPILOGUE_DRELU;
  }
  if (activation == Activation::kGelu) {
    return bias_gradient ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// Returns a forward product's layout. `keep_aux`: stores the auxiliary matrix (linear_aux_bytes).
GemmLayout forward_layout(const LinearShape& shape, bool keep_aux, bool bias) {
  GemmLayout layout;
  layout.type = shape.type;
  layout.transpose_a = true;
  layout.a = transposed_view(shape.outputs, shape.inputs);  // w
  layout.b = transposed_view(shape.rows, shape.inputs);     // x
  layout.d = transposed_view(shape.rows, shape.outputs);    // y
  layout.epilogue = forward_epilogue(shape.activation, keep_aux, bias);
  layout.bias_elements = bias ? shape.outputs : 0;
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
  layout.epilogue = bias_gradient ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_DEFAULT;
  layout.bias_elements = bias_gradient ? shape.outputs : 0;
  return layout;
}

const char* name_of(cublasLtEpilogue_t epilogue) {
  static const std::map<cublasLtEpilogue_t, const char*> kNames{
      {CUBLASLT_EPILOGUE_DEFAULT, "DEFAULT"},
      {CUBLASLT_EPILOGUE_BIAS, "BIAS"},
      {CUBLASLT_EPILOGUE_RELU_BIAS, "RELU_BIAS"},
      {CUBLASLT_EPILOGUE_RELU_AUX_BIAS, "RELU_AUX_BIAS"},
      {CUBLASLT_EPILOGUE_GELU_BIAS, "GELU_BIAS"},
      {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, "GELU_AUX_BIAS"},
      {CUBLASLT_EPILOGUE_DRELU, "DRELU"},
      {CUBLASLT_EPILOGUE_DRELU_BGRAD, "DRELU_BGRAD"},
      {CUBLASLT_EPILOGUE_DGELU, "DGELU"},
      {CUBLASLT_EPILOGUE_DGELU_BGRAD, "DGELU_BGRAD"},
      {CUBLASLT_EPILOGUE_BGRADB, "BGRADB"},
  };
  return kNames.at(epilogue);
}

std::string text_of(const ColumnMajor& matrix) {
  return std::to_string(matrix.rows) + " x " + std::to_string(matrix.columns);
}

std::string text_of(const GemmLayout& layout) {
  return "D " + text_of(layout.d) + ", A " + text_of(layout.a) + ", B " + text_of(layout.b) +
         ", epilogue " + name_of(layout.epilogue);
}

// The descriptors of one product; `status` keeps the first failure.
class Descriptors {
 public:
  Descriptors(const GemmLayout& layout, const Operands& operands) : lt_(cublas_lt_library()) {
    take(lt_.desc_create(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, operation(layout.transpose_a), "TRANSA");
    set(CUBLASLT_MATMUL_DESC_TRANSB, operation(layout.transpose_b), "TRANSB");
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, layout.epilogue, "EPILOGUE");
    if (layout.bias_elements > 0) {
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias, "BIAS_POINTER");
    }
    if (layout.aux_leading > 0) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.aux, "EPILOGUE_AUX_POINTER");
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, layout.aux_leading, "EPILOGUE_AUX_LD");
    }
    make(a, layout.type, layout.a);
    make(b, layout.type, layout.b);
    make(d, layout.type, layout.d);
  }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors() {
    for (const auto matrix : {a, b, d}) {
      if (matrix != nullptr) lt_.layout_destroy(matrix);
    }
    if (product != nullptr) lt_.desc_destroy(product);
  }

  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr;
  cublasLtMatrixLayout_t b = nullptr;
  cublasLtMatrixLayout_t d = nullptr;
  Status status;

 private:
  static cublasOperation_t operation(bool transpose) {
    return transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
  }
  void take(cublasStatus_t answer, const std::string& call) {
    if (status.ok()) status = lt_status(answer, call);
  }
  template <typename Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value, const char* name) {
    if (!status.ok()) return;
    take(lt_.desc_set(product, attribute, &value, sizeof value),
         std::string("cublasLtMatmulDescSetAttribute(") + name + ")");
  }
  void make(cublasLtMatrixLayout_t& matrix, ElementType type, const ColumnMajor& shape) {
    if (!status.ok()) return;
    take(lt_.layout_create(&matrix, data_type(type), static_cast<std::uint64_t>(shape.rows),
                           static_cast<std::uint64_t>(shape.columns), shape.leading),
         "cublasLtMatrixLayoutCreate");
  }

  const CublasLtLibrary& lt_;
};

// Returns an address's alignment, a power of two up to 256: the heuristics' own unit.
std::uint32_t alignment_of(const void* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address) | 256;
  return static_cast<std::uint32_t>(value & (~value + 1));
}

using Alignments = std::array<std::uint32_t, 5>;  // A, B, D, the bias and the auxiliary matrix

Alignments alignments_of(const Operands& operands) {
  return {alignment_of(operands.a), alignment_of(operands.b), alignment_of(operands.d),
          alignment_of(operands.bias), alignment_of(operands.aux)};
}

// Finds the heuristics' first answer within the workspace.
Status first_algorithm(cublasLtHandle_t handle, const GemmLayout& layout,
                       const Alignments& alignments, std::uint64_t workspace_bytes,
                       const Descriptors& descriptors, cublasLtMatmulAlgo_t* algorithm) {
  const auto& lt = cublas_lt_library();
  cublasLtMatmulPreference_t preference = nullptr;
  auto status = lt_status(lt.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  if (!status.ok()) return status;
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    if (!status.ok()) return;
    status = lt_status(lt.preference_set(preference, attribute, &value, sizeof value),
                       "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments[0]);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments[1]);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments[2]);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments[2]);
  cublasLtMatmulHeuristicResult_t answer = {};
  int answers = 0;
  if (status.ok()) {
    const std::string call = "cublasLtMatmulAlgoGetHeuristic(" + text_of(layout) + ")";
    auto answer_status =
        lt.heuristic(handle, descriptors.product, descriptors.a, descriptors.b, descriptors.d,
                     descriptors.d, preference, 1, &answer, &answers);
    if (answer_status == CUBLAS_STATUS_SUCCESS && answers > 0) answer_status = answer.state;
    if (answer_status == CUBLAS_STATUS_NOT_SUPPORTED ||
        (answer_status == CUBLAS_STATUS_SUCCESS && answers == 0)) {
      status = failure(call + ": no kernel of cublasLt does this within " +
                       std::to_string(workspace_bytes) + " bytes of workspace");
    } else {
      status = lt_status(answer_status, call);
    }
  }
  lt.preference_destroy(preference);
  if (status.ok()) *algorithm = answer.algo;
  return status;
}

// Handles and choices. They live until the program ends: a handle destroyed after main() would call
// a CUDA runtime that is gone.
class Choices {
 public:
  // Returns cublasLt's first choice for this product, asked once for each device, layout and
  // alignment. `handle`: the device's.
  Status find(int device, const GemmLayout& layout, const Operands& operands,
              std::uint64_t workspace_bytes, const Descriptors& descriptors,
              cublasLtHandle_t* handle, cublasLtMatmulAlgo_t* algorithm) {
    const std::lock_guard lock(mutex_);
    cublasLtHandle_t& kept = handles_[device];
    if (kept == nullptr) {
      if (auto status = lt_status(cublas_lt_library().create(&kept), "cublasLtCreate");
          !status.ok()) {
        kept = nullptr;
        return status;
      }
    }
    *handle = kept;
    const Alignments alignments = alignments_of(operands);
    const Key key{device, layout, alignments, workspace_bytes};
    const auto known = algorithms_.find(key);
    if (known != algorithms_.end()) {
      *algorithm = known->second;
      return {};
    }
    const auto status =
        first_algorithm(kept, layout, alignments, workspace_bytes, descriptors, algorithm);
    if (status.ok()) algorithms_.emplace(key, *algorithm);
    return status;
  }

 private:
  using Key = std::tuple<int, GemmLayout, Alignments, std::uint64_t>;

  std::mutex mutex_;
  std::map<int, cublasLtHandle_t> handles_;
  std::map<Key, cublasLtMatmulAlgo_t> algorithms_;
};

Choices& choices() {
  static auto* const kChoices = new Choices;
  return *kChoices;
}

// Launches one product with its epilogue.
Status multiply(const GemmLayout& layout, const Operands& operands, const GemmWorkspace& workspace,
                cudaStream_t stream) {
  const auto& lt = cublas_lt_library();
  if (!lt.status.ok()) return lt.status;
  int device = 0;
  if (const auto error = cudaGetDevice(&device); error != cudaSuccess) {
    return failure(std::string("cudaGetDevice: ") + cudaGetErrorName(error) + ": " +
                   cudaGetErrorString(error));
  }
  const Descriptors descriptors(layout, operands);
  if (!descriptors.status.ok()) return descriptors.status;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulAlgo_t algorithm;
  if (auto status = choices().find(device, layout, operands, workspace.bytes, descriptors, &handle,
                                   &algorithm);
      !status.ok()) {
    return status;
  }
  const float one = 1;
  const float zero = 0;
  return lt_status(
      lt.matmul(handle, descriptors.product, &one, operands.a, descriptors.a, operands.b,
                descriptors.b, &zero, operands.d, descriptors.d, operands.d, descriptors.d,
                &algorithm, workspace.memory, workspace.bytes, stream),
      "cublasLtMatmul(" + text_of(layout) + ")");
}

}  // namespace

Status linear_forward(const LinearShape& shape, const LinearForward& arrays,
                      const GemmWorkspace& workspace, cudaStream_t stream) {
  return multiply(forward_layout(shape, arrays.aux != nullptr, arrays.b != nullptr),
                  {arrays.w, arrays.x, arrays.y, arrays.b, arrays.aux}, workspace, stream);
}

Status linear_input_gradient(const LinearShape& shape, const LinearInputGradient& arrays,
                             const GemmWorkspace& workspace, cudaStream_t stream) {
  return multiply(input_gradient_layout(shape, arrays.db != nullptr),
                  {arrays.w, arrays.dy, arrays.dz, arrays.db, arrays.aux}, workspace, stream);
}

Status linear_weight_gradient(const LinearShape& shape, const LinearWeightGradient& arrays,
                              const GemmWorkspace& workspace, cudaStream_t stream) {
  return multiply(weight_gradient_layout(shape, arrays.db != nullptr),
                  {arrays.x, arrays.dy, arrays.dw, arrays.db, nullptr}, workspace, stream);
}

}  // namespace syncline::kernels
