// Computation that is real work instead of time that passes: products of bf16 matrices by cuBLAS,
// as many as take about as long. They occupy the whole GPU, as layers do, so that a step's time
// holds what communication and computation cost each other on it.
#pragma once

#include <cuda_runtime.h>

#include "backend_nccl/cublas_library.h"
#include "backend_nccl/device.h"
#include "core/units.h"

namespace syncline::nccl_backend {

class MatrixLoad {
 public:
  // Measures one product, alone on the GPU. Throws DeviceError.
  MatrixLoad();
  ~MatrixLoad();
  MatrixLoad(const MatrixLoad&) = delete;
  MatrixLoad& operator=(const MatrixLoad&) = delete;

  // How many products computation of so long is. What rounding leaves is carried to the next.
  int products(Seconds seconds);
  void run(int products, cudaStream_t stream);

 private:
  void multiply(int times);

  static constexpr int kSide = 2048;
  const CublasLibrary& cublas_;
  cublasHandle_t handle_ = nullptr;
  CudaMemory matrices_;
  CudaMemory workspace_;
  Seconds one_ = 0;
  Seconds carried_ = 0;
};

}  // namespace syncline::nccl_backend
