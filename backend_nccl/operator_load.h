// Computation that is real work instead of time that passes: a workload's operators as the kernels
// of kernels/ (backend_nccl/operator_kernels.h). Each reads numbers that no operator has written,
// so all of it comes from memory.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <vector>

#include "backend_nccl/device.h"
#include "backend_nccl/operator_kernels.h"

namespace syncline::nccl_backend {

// Lets time pass on the stream.
using PassTime = std::function<void(Seconds seconds, cudaStream_t stream)>;

class OperatorLoad {
 public:
  // `device` predicts what has no kernel. Throws InputError where the workload has no operators,
  // DeviceError where the memory is too small.
  OperatorLoad(const Workload& workload, const Device& device);

  // What the operations of a plan compute.
  void prepare(const plan::Plan& plan);
  void run(plan::OpId op, cudaStream_t stream, const PassTime& pass) const;
  // Returns how many commands that puts on the stream, about.
  int commands(plan::OpId op) const;
  // Returns how much of the predicted time is kernels', in words.
  std::string describe() const;

 private:
  void allocate();
  void launch(const OperatorKernel& kernel, std::size_t number, cudaStream_t stream) const;
  void norm(const OperatorKernel& kernel, cudaStream_t stream) const;
  void sum(const OperatorKernel& kernel, cudaStream_t stream) const;
  void product(const OperatorKernel& kernel, cudaStream_t stream) const;
  void update(const OperatorKernel& kernel, std::size_t number, cudaStream_t stream) const;
  const std::byte* read(int value) const { return read_.data() + at(value); }
  std::byte* written(int value) const { return written_.data() + at(value); }
  std::size_t at(int value) const {
    return value < 0 ? 0 : places_[static_cast<std::size_t>(value)];
  }

  const Workload& workload_;
  const Device device_;
  std::vector<OperatorKernel> kernels_;
  std::vector<std::vector<OperatorRange>> ranges_;  // by operation of the plan
  std::vector<std::size_t> places_;                 // by value, bytes from the beginning of each
  std::vector<std::size_t> states_at_;              // by operator, elements
  std::size_t states_ = 0;                          // elements of each of the optimiser's arrays
  CudaMemory read_, written_, optimizer_, channels_, workspace_, aux_;
};

}  // namespace syncline::nccl_backend
