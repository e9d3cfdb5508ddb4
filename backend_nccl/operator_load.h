// Runs a workload's operators as the kernels of kernels/ instead of a timer
// (backend_nccl/operator_kernels.h). Each reads numbers that no operator has written, so all of it
// comes from memory.
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
  // Allocates memory. `device` predicts operators without a kernel. Throws InputError if the
  // workload has no operators, DeviceError if the memory is too small.
  OperatorLoad(const Workload& workload, const Device& device);

  // Maps the plan's operations to operators, for run() and commands().
  void prepare(const plan::Plan& plan);
  void run(plan::OpId op, cudaStream_t stream, const PassTime& pass) const;
  // Returns roughly the number of commands that run() puts on the stream.
  int commands(plan::OpId op) const;
  // Returns, as a sentence, the share of the predicted time that runs as kernels.
  std::string describe() const;

 private:
  void allocate();
  void launch(const OperatorKernel& kernel, std::size_t number, cudaStream_t stream) const;
  void norm(const OperatorKernel& kernel, cudaStream_t stream) const;
  void sum(const OperatorKernel& kernel, cudaStream_t stream) const;
  void product(const OperatorKernel& kernel, cudaStream_t stream) const;
  void update(const OperatorKernel& kernel, std::size_t number, cudaStream_t stream) const;
  const std::byte* input(int value) const { return read_.data() + at(value); }
  std::byte* output(int value) const { return written_.data() + at(value); }
  std::size_t at(int value) const {
    return value < 0 ? 0 : places_[static_cast<std::size_t>(value)];
  }

  const Workload& workload_;
  const Device device_;
  std::vector<OperatorKernel> kernels_;
  std::vector<std::vector<OperatorRange>> ranges_;  // per operation of the plan
  std::vector<std::size_t> places_;                 // per value, byte offset in read_ and written_
  std::vector<std::size_t> states_at_;              // per operator, elements
  std::size_t states_ = 0;                          // elements of each of the optimizer's arrays
  CudaMemory read_, written_, optimizer_, channels_, workspace_, aux_;
};

}  // namespace syncline::nccl_backend
