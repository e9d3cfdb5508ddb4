#include "core/scenario/operators.h"

#include <algorithm>

namespace syncline {

double traffic(const OperatorList& list, const Operator& op) {
  double bytes = 0;
  for (const auto* side : {&op.inputs, &op.outputs}) {
    for (const auto& operand : *side) {
      const Value& value = list.values[static_cast<std::size_t>(operand.value)];
      bytes += static_cast<double>(operand.passes) * static_cast<double>(value.bytes);
    }
  }
  return bytes;
}

int count_of(const OperatorList& list, const std::string& kind) {
  return static_cast<int>(std::count_if(list.operators.begin(), list.operators.end(),
                                        [&](const Operator& op) { return op.kind == kind; }));
}

double flops_of(const OperatorList& list, StepPart part) {
  double flops = 0;
  for (const auto& op : list.operators) {
    if (op.part == part) flops += op.flops + op.matrix_flops;
  }
  return flops;
}

}  // namespace syncline
