// Chooses a kernel of kernels/ for each operator of a workload, by its kind and its values' sizes.
// Divides operators among a plan's operations. Knows neither CUDA nor NCCL.
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
    kTime,     // no kernel: its predicted time passes
    kNorm,     // batch_norm.h: rows x columns, with `added` and `activation`
    kSum,      // kernels.h: `columns` elements, and a second array if `added`
    kProduct,  // gemm_epilogue.h: rows x inner times inner x columns; fused with its bias: `added`
    kUpdate,   // kernels.h: `columns` elements with `states` each
  } kind = Kind::kTime;
  bool gradient = false;
  bool inputs_too = true;  // a product's gradient: also the input's, not only the weight's
  kernels::ElementType type = kernels::ElementType::kFp32;
  kernels::Activation activation = kernels::Activation::kIdentity;
  bool added = false;
  std::int64_t rows = 1, inner = 1, columns = 0;
  int states = 0;
  // Indices of values (product: input, weight, output's gradient). -1: any memory.
  std::array<int, 3> reads{-1, -1, -1};
  std::array<int, 2> writes{-1, -1};
  Seconds seconds = 0;  // predicted, without launch and gap
  int launches = 1;
};

// Returns one kernel for each operator of the workload, in order. A parameter's number of elements
// is that of its tensor.
std::vector<OperatorKernel> operator_kernels(const Workload& workload, const Device& device);

// Operators [first, last) of the list.
struct OperatorRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

// Returns, by operation of the plan, the operators that it computes, by their predicted times. The
// parts of a pass (forward by layers, backward by gradients, update by buckets) share its
// operators. An operation that lasts longer than the workload's pass (several steps in one) repeats
// all operators, as often as its time is that of a step.
std::vector<std::vector<OperatorRange>> operators_by_operation(
    const plan::Plan& plan, const Workload& workload, const std::vector<OperatorKernel>& kernels);

}  // namespace syncline::nccl_backend
