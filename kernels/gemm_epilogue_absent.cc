// Replaces gemm_epilogue.cc if there is no cublasLt.h.
#include "kernels/gemm_epilogue.h"

namespace syncline::kernels {
namespace {

Status absent() { return failure("products: the kernels were built without cublasLt.h"); }

}  // namespace

Status linear_forward(const LinearShape&, const LinearForward&, const GemmWorkspace&,
                      cudaStream_t) {
  return absent();
}
Status linear_input_gradient(const LinearShape&, const LinearInputGradient&, const GemmWorkspace&,
                             cudaStream_t) {
  return absent();
}
Status linear_weight_gradient(const LinearShape&, const LinearWeightGradient&, const GemmWorkspace&,
                              cudaStream_t) {
  return absent();
}

}  // namespace syncline::kernels
