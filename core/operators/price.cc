#include "core/operators/price.h"

#include <algorithm>
#include <cassert>

namespace syncline::operators {

namespace {

// Of the rate of products, by kind; tests/hardware/reached_test.cc finds these figures again on
// published runs. Attention's kernels were written for Ampere, whose instructions fill less of a
// Hopper; those for Blackwell keep up with products (scenarios/published/whole_jobs, long samples).
double share_of_products(const Operator& op, const Device& device) {
  constexpr double kAttention = 0.68, kOnHopper = 0.45;
  // cuDNN has ways to convolve that take fewer products (Winograd's), which fp32 gets.
  constexpr double kConvolution = 1.3;
  constexpr int kHopper = 90, kBlackwell = 100;
  if (op.kind.starts_with("flash_attn")) {
    const int capability = device.compute_capability;
    return capability < kHopper ? kAttention : capability < kBlackwell ? kOnHopper : 1;
  }
  return op.dtype == DType::kFp32 && op.kind.starts_with("conv2d") ? kConvolution : 1;
}

}  // namespace

Seconds kernel_time(const OperatorList& list, const Operator& op, const Device& device) {
  const Seconds moved = traffic(list, op) / device.memory;
  const Seconds others = op.flops / device.flops;
  if (op.matrix_flops == 0) return std::max(others, moved);
  const double rate = device.product_flops(op.dtype) * share_of_products(op, device);
  return op.matrix_flops / rate + others + moved;
}

StepTimes price_operators(const OperatorList& list, const Device& device) {
  assert(device.flops > 0 && device.memory > 0 && "a device without rates prices no operators");
  StepTimes times;
  times.backward.resize(list.gradients.size());

  // Which gradient a value is, for the moment when it is written.
  std::vector<int> gradient_of(list.values.size(), -1);
  for (std::size_t i = 0; i < list.gradients.size(); ++i) {
    if (list.gradients[i] >= 0) {
      gradient_of[static_cast<std::size_t>(list.gradients[i])] = static_cast<int>(i);
    }
  }
  std::vector<Seconds> ready(list.gradients.size(), 0);

  Seconds issued = 0, end = 0, forward_end = 0, backward_end = 0;
  for (const auto& op : list.operators) {
    const int kernels = std::max(1, op.kernels);
    const Seconds each = kernel_time(list, op, device) / kernels;
    for (int k = 0; k < kernels; ++k) {
      issued += device.launch;
      const Seconds free = end > 0 ? end + device.kernel_gap : 0;
      end = std::max(issued, free) + each;
    }
    if (op.part == StepPart::kForward) forward_end = end;
    if (op.part != StepPart::kUpdate) backward_end = end;
    for (const auto& output : op.outputs) {
      const int gradient = gradient_of[static_cast<std::size_t>(output.value)];
      if (gradient >= 0) ready[static_cast<std::size_t>(gradient)] = end;
    }
  }

  times.forward = forward_end;
  Seconds before = forward_end;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const Seconds at = i + 1 == ready.size() ? backward_end : std::max(before, ready[i]);
    times.backward[i] = at - before;
    before = at;
  }
  times.update = end - backward_end;
  return times;
}

}  // namespace syncline::operators
