// In place of gemm_epilogue.cc where there is no cublasLt.h.
#include "kernels/gemm_epilogue.h"

namespace syncline::kernels {
namespace {

Status absent(const char* launcher) {
  return failure(std::string(launcher) + ": the kernels were built without cublasLt.h");
}

}  // namespace

Status linear_forward(const LinearShape& shape, const LinearForward& arrays,
                      const GemmWorkspace& workspace, cudaStream_t) {
  const auto status = check_linear_forward(shape, arrays, workspace);
  return status.ok() ? absent("linear_forward") : status;
}

Status linear_input_gradient(const LinearShape& shape, const LinearInputGradient& arrays,
                             const GemmWorkspace& workspace, cudaStream_t) {
  const auto status = check_linear_input_gradient(shape, arrays, workspace);
  return status.ok() ? absent("linear_input_gradient") : status;
}

Status linear_weight_gradient(const LinearShape& shape, const LinearWeightGradient& arrays,
                              const GemmWorkspace& workspace, cudaStream_t) {
  const auto status = check_linear_weight_gradient(shape, arrays, workspace);
  return status.ok() ? absent("linear_weight_gradient") : status;
}

}  // namespace syncline::kernels
