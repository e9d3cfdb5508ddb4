// Which kernel of kernels/ an operator of a workload runs as, by its kind and the sizes of its
// values; and which operators each operation of a plan stands for. Knows neither CUDA nor NCCL.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "core/cluster.h"
#include "core/job.h"
#include "core/plan.h"
#include "kernels/host_device.h"
#include "kernels/kernels.h"

namespace syncline::nccl_backend {

struct OperatorKernel {
  enum class Kind {
    kTime,     // none: its predicted time passes
    kNorm,     // batch_norm.h: rows x columns, `added` and `activation` with it
    kSum,      // kernels.h: `columns` elements, a second array where `added`
    kProduct,  // gemm_epilogue.h: rows x inner times inner x columns; fused with its bias: `added`
    kUpdate,   // kernels.h: `columns` elements, `states` beside each
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

}  // namespace syncline::nccl_backend
