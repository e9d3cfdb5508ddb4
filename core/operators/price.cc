#include "core/operators/price.h"

#include <algorithm>
#include <cassert>

namespace syncline::operators {

Seconds kernel_time(const OperatorList& list, const Operator& op, const Device& device) {
  const Seconds compute =
      op.matrix_flops / device.product_flops(op.dtype) + op.flops / device.flops;
  return std::max(compute, traffic(list, op) / device.memory);
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
