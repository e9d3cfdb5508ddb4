// Computation that is real work instead of time that passes: a workload's operators as the kernels
// of kernels/ (backend_nccl/operator_load.h). Each reads numbers that no operator has written,
// so all of it comes from memory.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "backend_nccl/device.h"
#include "core/plan/plan.h"
#include "core/scenario/cluster.h"
#include "core/scenario/workload.h"
#include "kernels/host_device.h"
#include "kernels/kernels.h"

namespace syncline::nccl_backend {

// Which kernel of kernels/ an operator of a workload runs as, by its kind and the sizes of its
// values; and which operators each operation of a plan stands for. Knows neither CUDA nor NCCL.

struct OperatorKernel {
  enum class Kind {
    kTime,     // none: its predicted time passes
    kNorm,     // batch_norm.h: rows x columns, `added` and `activation` with it
    kSum,      // elementwise.h: `columns` elements, a second array where `added`
    kProduct,  // gemm_epilogue.h: rows x inner times inner x columns; fused with its bias: `added`
    kUpdate,   // update.h: `columns` elements, `states` beside each
  } kind = Kind::kTime;
  bool gradient = false;
  bool inputs_too = true;  // of a product's gradient: that of its input beside the weight's
  kernels::ElementType type = kernels::ElementType::kFp32;
  kernels::Activation activation = kernels::Activation::kIdentity;
  bool added = false;
  std::int64_t rows = 1, inner = 1, columns = 0;
  int states = 0;
  // Values; of a product the input, the weight and the gradient of the output. -1: any memory.
  std::array<int, 3> reads{-1, -1, -1};
  std::array<int, 2> writes{-1, -1};
  Seconds seconds = 0;  // predicted, without launch and gap
  int launches = 1;
};

// One for each operator of the workload, in its order; tensors tell a parameter's elements.
std::vector<OperatorKernel> operator_kernels(const Workload& workload, const Device& device);

// Operators [first, last) of the list.
struct OperatorRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

// By operation of the plan: the operators during whose predicted time it computes. A forward pass
// cut by layers, a backward pass by gradients and an update by buckets are parts of theirs. An
// operation longer than its pass stands for whole steps.
std::vector<std::vector<OperatorRange>> operators_by_operation(
    const plan::Plan& plan, const Workload& workload, const std::vector<OperatorKernel>& kernels);

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
  // How many commands that puts on the stream, about.
  int commands(plan::OpId op) const;
  // How much of the predicted time is kernels', in words.
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
