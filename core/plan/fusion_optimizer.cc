// The pass behind fuse_all_optimizer_ops.
#include <algorithm>
#include <set>
#include <string>

#include "core/plan/fusion_patterns.h"

namespace syncline {
namespace {

bool is_in(const std::vector<int>& list, int item) {
  return std::find(list.begin(), list.end(), item) != list.end();
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
    OptimizerFusion here;
    here.kind = kind;
    std::vector<int> dense;
    std::set<DType> dtypes;
    bool direct = true;  // each reads a gradient itself, not its cast
    for (int op = 0; op < graph.size(); ++op) {
      if (!graph.is(op, kind)) continue;
      ++here.operators;
      int tensor = -1;
      for (const auto& input : graph.at(op).inputs) {
        tensor = std::max(tensor, tensor_of[static_cast<std::size_t>(input.value)]);
      }
      if (tensor < 0) {
        direct = false;
        dense.push_back(op);
        continue;
      }
      const Tensor& gradient = workload.tensors[static_cast<std::size_t>(tensor)];
      if (gradient.sparse) continue;
      dense.push_back(op);
      dtypes.insert(gradient.dtype);
    }
    here.dense = static_cast<int>(dense.size());
    if (here.operators == 0) continue;
    const bool dependent = std::any_of(dense.begin(), dense.end(), [&](int op) {
      const auto& outputs = graph.at(op).outputs;
      return std::any_of(outputs.begin(), outputs.end(), [&](const Operand& output) {
        const auto& readers = graph.readers(output.value);
        return std::any_of(readers.begin(), readers.end(),
                           [&](int reader) { return reader != op && is_in(dense, reader); });
      });
    });
    if (dense.size() <= 1) {
      here.refusal = "there are not two to fuse";
    } else if (dependent) {
      here.refusal = "one reads what another writes";
    } else if (!direct || dtypes.size() > 1) {
      here.refusal = "the gradients are of several dtypes, so there is no one buffer for them";
    }
    if (!here.refusal.empty()) {
      if (result.kind.empty()) result = here;
      continue;
    }
    graph.join(dense, std::string("fused_") + kind);
    return here;
  }
  return result;
}

}  // namespace syncline
