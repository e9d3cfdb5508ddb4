#include "backend_nccl/matrix_load.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace syncline::nccl_backend {
namespace {

void check(cublasStatus_t status, const std::string& call) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw DeviceError(call + ": " + cublas_library().text(status));
  }
}

constexpr std::size_t kMatrixBytes = std::size_t{2048} * 2048 * 2;
// Enough for Hopper, by cuBLAS's documentation; of our own, so that a graph can capture it.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20U;

}  // namespace

MatrixLoad::MatrixLoad()
    : cublas_(cublas_library()),
      matrices_(CudaMemory::Where::kDevice, 3 * kMatrixBytes),
      workspace_(CudaMemory::Where::kDevice, kWorkspaceBytes) {
  static_assert(kMatrixBytes == std::size_t{2} * kSide * kSide);
  check(cublas_.create(&handle_), "cublasCreate");
  const CudaStream stream(false);
  check(cublas_.set_stream(handle_, stream.get()), "cublasSetStream");
  check(cublas_.set_workspace(handle_, workspace_.data(), kWorkspaceBytes), "cublasSetWorkspace");
  // Small numbers, not zeros, which draw less power and run faster: 0x3c23 is 0.00995 in bf16.
  const std::vector<std::uint16_t> numbers(3 * kMatrixBytes / 2, 0x3c23);
  check_cuda(cudaMemcpy(matrices_.data(), numbers.data(), 3 * kMatrixBytes, cudaMemcpyHostToDevice),
             "cudaMemcpy to the device");
  constexpr int kWarm = 200;
  constexpr int kTimes = 500;
  const CudaEvent begin(true);
  const CudaEvent end(true);
  multiply(kWarm);
  begin.record(stream.get());
  multiply(kTimes);
  end.record(stream.get());
  check_cuda(cudaEventSynchronize(end.get()), "cudaEventSynchronize");
  one_ = seconds_between(begin, end) / kTimes;
}

MatrixLoad::~MatrixLoad() {
  if (handle_ != nullptr) cublas_.destroy(handle_);
}

void MatrixLoad::multiply(int times) {
  const float one = 1;
  const float zero = 0;
  const std::byte* a = matrices_.data();
  const std::byte* b = a + kMatrixBytes;
  std::byte* c = matrices_.data() + 2 * kMatrixBytes;
  for (int i = 0; i < times; ++i) {
    check(cublas_.gemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kSide, kSide, kSide, &one, a, CUDA_R_16BF,
                       kSide, b, CUDA_R_16BF, kSide, &zero, c, CUDA_R_16BF, kSide,
                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
  }
}

int MatrixLoad::products(Seconds seconds) {
  carried_ += seconds;
  const auto times = static_cast<int>(std::max(0L, std::lround(carried_ / one_)));
  carried_ -= times * one_;
  return times;
}

void MatrixLoad::run(int products, cudaStream_t stream) {
  check(cublas_.set_stream(handle_, stream), "cublasSetStream");
  // Setting a stream forgets the workspace.
  check(cublas_.set_workspace(handle_, workspace_.data(), kWorkspaceBytes), "cublasSetWorkspace");
  multiply(products);
}

}  // namespace syncline::nccl_backend
