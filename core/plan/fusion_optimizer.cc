// The pass behind fuse_all_optimizer_ops.
#include <algorithm>
#include <set>
#include <string>

#include "core/plan/fusion_patterns.h"

namespace syncline::plan {
namespace {

// The operators of one kind, and what would stand in the way of fusing them.
struct Updates {
  int operators = 0;
  std::vector<int> dense;  // those that update by a dense gradient
  std::set<DType> dtypes;  // of their gradients
  bool direct = true;      // each reads a gradient itself, not its cast
};

// `tensor_of`: by value, the tensor whose gradient it is, or -1.
Updates updates_of(const OperatorGraph& graph, const char* kind, const Workload& workload,
                   const std::vector<int>& tensor_of) {
  Updates updates;
  for (int op = 0; op < graph.size(); ++op) {
    if (!graph.is(op, kind)) continue;
    ++updates.operators;
    int tensor = -1;
    for (const auto& input : graph.at(op).inputs) {
      tensor = std::max(tensor, tensor_of[static_cast<std::size_t>(input.value)]);
    }
    if (tensor < 0) {
      updates.direct = false;
      updates.dense.push_back(op);
      continue;
    }
    const Tensor& gradient = workload.tensors[static_cast<std::size_t>(tensor)];
    if (gradient.sparse) continue;
    updates.dense.push_back(op);
    updates.dtypes.insert(gradient.dtype);
  }
  return updates;
}

// Whether one of the operators reads what another of them writes.
bool dependent(const OperatorGraph& graph, const std::vector<int>& ops) {
  return std::any_of(ops.begin(), ops.end(), [&](int op) {
    const auto& outputs = graph.at(op).outputs;
    return std::any_of(outputs.begin(), outputs.end(), [&](const Operand& output) {
      const auto& readers = graph.readers(output.value);
      return std::any_of(readers.begin(), readers.end(),
                         [&](int reader) { return reader != op && is_in(ops, reader); });
    });
  });
}

// Why the pass leaves them as they are; empty where it fuses them.
std::string refusal_of(const OperatorGraph& graph, const Updates& updates) {
  if (updates.dense.size() <= 1) return "there are not two to fuse";
  if (dependent(graph, updates.dense)) return "one reads what another writes";
  if (!updates.direct || updates.dtypes.size() > 1) {
    return "the gradients are of several dtypes, so there is no one buffer for them";
  }
  return {};
}

}  // namespace

// fuse_optimizer_op_pass.cc, tried on adam, sgd and momentum in this order; one kind is fused.
OptimizerFusion fuse_all_optimizers(OperatorGraph& graph, const Workload& workload) {
  std::vector<int> tensor_of(workload.operators.values.size(), -1);
  for (std::size_t i = 0; i < workload.operators.gradients.size(); ++i) {
    const int value = workload.operators.gradients[i];
    if (value >= 0) tensor_of[static_cast<std::size_t>(value)] = static_cast<int>(i);
  }
  OptimizerFusion result;
  for (const char* kind : {"adam", "sgd", "momentum"}) {
    const Updates updates = updates_of(graph, kind, workload, tensor_of);
    if (updates.operators == 0) continue;
    OptimizerFusion here;
    here.kind = kind;
    here.operators = updates.operators;
    here.dense = static_cast<int>(updates.dense.size());
    here.refusal = refusal_of(graph, updates);
    if (here.refusal.empty()) {
      graph.join(updates.dense, std::string("fused_") + kind);
      return here;
    }
    // Of several that are refused the first is reported.
    if (result.kind.empty()) result = here;
  }
  return result;
}

}  // namespace syncline::plan
