#include "core/plan/fusion_patterns.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

namespace syncline::plan {
namespace {

bool half_channels_last(const Operator& op) {
  return op.dtype == DType::kFp16 && op.layout == Layout::kNhwc;
}

using Guard = bool (*)(const Operator&);

// Folds every chain of operators of these kinds into its last one. In a chain each operator is the
// only reader of the previous one. `guard` must hold for the operator at index `guarded`. Returns
// the number of chains.
int fold_chains(OperatorGraph& graph, const std::vector<std::string>& kinds,
                const std::string& fused, Guard guard, std::size_t guarded = 0) {
  int count = 0;
  for (int op = 0; op < graph.size(); ++op) {
    if (!graph.is(op, kinds.front())) continue;
    std::vector<OperatorLink> chain{{-1, op}};
    while (chain.back().exists() && chain.size() < kinds.size()) {
      chain.push_back(find_link(graph, chain.back().reader, kinds[chain.size()]));
    }
    if (!chain.back().exists() || !guard(graph.at(chain[guarded].reader))) continue;
    for (std::size_t i = 1; i < chain.size(); ++i) {
      graph.fold(chain[i - 1].reader, chain[i].reader, chain[i].value, fused);
    }
    ++count;
  }
  return count;
}

bool always(const Operator&) { return true; }

// --- fuse_gemm_epilogue_pass.cc

// Returns the edge matmul_v2 -> elementwise_add (its first input) if the second input is a bias.
OperatorLink bias_of(const OperatorGraph& graph, int product) {
  if (graph.at(product).columns == 0) return {};
  const OperatorLink link = find_link(graph, product, "elementwise_add");
  if (!link.exists()) return {};
  const auto& inputs = graph.at(link.reader).inputs;
  const Bytes row = graph.at(product).columns * size_of(graph.at(product).dtype);
  const bool bias = inputs.size() == 2 && inputs[0].value == link.value &&
                    graph.value(inputs[1].value).bytes <= row;
  return bias ? link : OperatorLink{};
}

// Returns the activation that is the sum's only reader except its own gradient. Its columns must
// suit cublasLt, which keeps relu's mask in words of 128 bits and gelu's input in vectors of 8.
OperatorLink epilogue_activation(const OperatorGraph& graph, int sum, std::int64_t columns) {
  struct Row {
    const char* kind;
    const char* gradient;
    std::int64_t divisor;
  };
  for (const Row& row : {Row{"relu", "relu_grad", 128}, Row{"gelu", "gelu_grad", 8}}) {
    for (const auto& output : graph.at(sum).outputs) {
      const int act = reader_of_kind(graph, output.value, row.kind);
      if (act < 0 || columns % row.divisor != 0) continue;
      const int gradient = reader_of_kind(graph, output.value, row.gradient);
      const std::size_t inside = gradient >= 0 ? 2 : 1;
      if (graph.readers(output.value).size() == inside) return {output.value, act};
    }
  }
  return {};
}

// Fuses products forward. Adds outputs of fused activations to `activated`, for the gradients.
int fuse_products(OperatorGraph& graph, std::set<int>& activated) {
  int count = 0;
  for (int op = 0; op < graph.size(); ++op) {
    if (!graph.is(op, "matmul_v2")) continue;
    const OperatorLink bias = bias_of(graph, op);
    if (!bias.exists()) continue;
    const std::int64_t columns = graph.at(op).columns;
    const OperatorLink act = epilogue_activation(graph, bias.reader, columns);
    graph.fold(op, bias.reader, bias.value, "fused_gemm_epilogue");
    ++count;
    if (!act.exists()) continue;
    for (const auto& output : graph.at(act.reader).outputs) activated.insert(output.value);
    graph.fold(bias.reader, act.reader, act.value, "fused_gemm_epilogue");
  }
  return count;
}

// Folds bias gradients into the gradients of their products. If the product's input is in
// `activated`, folds the activation's gradient too. Returns the number of products.
int fuse_product_gradients(OperatorGraph& graph, const std::set<int>& activated) {
  int count = 0;
  for (int op = 0; op < graph.size(); ++op) {
    if (!graph.is(op, "elementwise_add_grad")) continue;
    const OperatorLink link = find_link(graph, op, "matmul_v2_grad");
    if (!link.exists() || graph.at(link.reader).columns == 0) continue;
    const int product = link.reader;
    const auto& inputs = graph.at(product).inputs;
    const bool behind_fused = std::ranges::any_of(
        inputs, [&](const Operand& input) { return activated.contains(input.value); });
    graph.fold(op, product, link.value, "fused_gemm_epilogue_grad");
    ++count;
    if (!behind_fused) continue;
    for (const char* gradient : {"relu_grad", "gelu_grad"}) {
      const OperatorLink act = find_link(graph, product, gradient);
      if (!act.exists()) continue;
      graph.fold(product, act.reader, act.value, "fused_gemm_epilogue_grad");
      break;
    }
  }
  return count;
}

// --- fuse_optimizer_op_pass.cc

// The operators of one kind, and properties that prevent their fusion.
struct Updates {
  int operators = 0;
  std::vector<int> dense;  // those with a dense gradient
  std::set<DType> dtypes;  // of their gradients
  bool direct = true;      // each reads a gradient itself, not its cast
};

// Returns the updates. `tensor_of`: by value, the tensor with this gradient, or -1.
Updates updates_of(const OperatorGraph& graph, const std::string& kind, const Workload& workload,
                   const std::vector<int>& tensor_of) {
  Updates updates;
  for (int op = 0; op < graph.size(); ++op) {
    if (!graph.is(op, kind)) continue;
    ++updates.operators;
    int tensor = -1;
    for (const auto& input : graph.at(op).inputs) {
      tensor = std::max(tensor, tensor_of[index(input.value)]);
    }
    if (tensor < 0) {
      updates.direct = false;
      updates.dense.push_back(op);
      continue;
    }
    const Tensor& gradient = workload.tensors[index(tensor)];
    if (gradient.sparse) continue;
    updates.dense.push_back(op);
    updates.dtypes.insert(gradient.dtype);
  }
  return updates;
}

// True if one of the operators reads another's output.
bool dependent(const OperatorGraph& graph, const std::vector<int>& ops) {
  return std::ranges::any_of(ops, [&](int op) {
    return std::ranges::any_of(graph.at(op).outputs, [&](const Operand& output) {
      return std::ranges::any_of(graph.readers(output.value), [&](int reader) {
        return reader != op && std::ranges::find(ops, reader) != ops.end();
      });
    });
  });
}

// Returns why the pass leaves them unfused; empty if it fuses them.
std::string refusal_of(const OperatorGraph& graph, const Updates& updates) {
  if (updates.dense.size() <= 1) return "there are not two to fuse";
  if (dependent(graph, updates.dense)) return "one reads what another writes";
  if (!updates.direct || updates.dtypes.size() > 1) {
    return "the gradients are of several dtypes, so there is no one buffer for them";
  }
  return {};
}

}  // namespace

FusionMatch fuse_relu_depthwise_conv(OperatorGraph& graph, const Workload&) {
  FusionMatch count;
  for (int conv = 0; conv < graph.size(); ++conv) {
    if (!graph.is(conv, "depthwise_conv2d")) continue;
    for (const auto& input : std::vector<Operand>(graph.at(conv).inputs)) {
      const int relu = graph.writer(input.value);
      if (!graph.is(relu, "relu")) continue;
      // Only the convolution and the two gradients may read the relu's output.
      const int conv_grad = reader_of_kind(graph, input.value, "depthwise_conv2d_grad");
      const int relu_grad = reader_of_kind(graph, input.value, "relu_grad");
      const bool inside = std::ranges::all_of(graph.readers(input.value), [&](int reader) {
        return reader == conv || reader == conv_grad || reader == relu_grad;
      });
      if (!inside) continue;
      // Fused in both directions or neither: half a fusion would leave a gradient without input.
      const OperatorLink back =
          conv_grad >= 0 ? find_link(graph, conv_grad, "relu_grad") : OperatorLink{};
      const bool both = back.exists() && back.reader == relu_grad;
      if ((conv_grad >= 0 || relu_grad >= 0) && !both) continue;
      const int before = graph.at(relu).inputs.front().value;
      if (both) {
        graph.replace_input(conv_grad, input.value, before);
        graph.replace_input(relu_grad, input.value, before);
        graph.fold(conv_grad, relu_grad, back.value, "depthwise_conv2d_grad");
        ++count.backward;
      }
      graph.fold(relu, conv, input.value, "depthwise_conv2d");
      ++count.forward;
      break;
    }
  }
  return count;
}

FusionMatch fuse_bn_act(OperatorGraph& graph, const Workload&) {
  FusionMatch count;
  count.forward =
      fold_chains(graph, {"batch_norm", "relu"}, "fused_batch_norm_act", half_channels_last);
  count.backward = fold_chains(graph, {"relu_grad", "batch_norm_grad"}, "fused_batch_norm_act_grad",
                               half_channels_last, 1);
  return count;
}

FusionMatch fuse_bn_add_act(OperatorGraph& graph, const Workload&) {
  FusionMatch count;
  count.forward = fold_chains(graph, {"batch_norm", "elementwise_add", "relu"},
                              "fused_bn_add_activation", half_channels_last);
  count.backward = fold_chains(graph, {"relu_grad", "elementwise_add_grad", "batch_norm_grad"},
                               "fused_bn_add_activation_grad", half_channels_last, 2);
  return count;
}

// Fuses in the order of the pass: first operators before the sum, then those after it.
FusionMatch fuse_elewise_add_act(OperatorGraph& graph, const Workload&) {
  constexpr std::array<const char*, 3> kActivations{"relu", "scale", "tanh"};
  const std::string fused = "fused_elemwise_add_activation";
  FusionMatch count;
  for (const char* act : kActivations) {
    count.forward += fold_chains(graph, {act, "elementwise_add"}, fused, always);
  }
  for (const char* act : kActivations) {
    count.forward += fold_chains(graph, {"elementwise_add", act}, fused, always);
  }
  count.backward +=
      fold_chains(graph, {"relu_grad", "elementwise_add_grad"}, fused + "_grad", always);
  count.backward +=
      fold_chains(graph, {"elementwise_add_grad", "relu_grad"}, fused + "_grad", always);
  return count;
}

FusionMatch fuse_gemm_epilogue(OperatorGraph& graph, const Workload&) {
  std::set<int> activated;
  FusionMatch count;
  count.forward = fuse_products(graph, activated);
  count.backward = fuse_product_gradients(graph, activated);
  return count;
}

// Follows fuse_optimizer_op_pass.cc: tried on adam, sgd and momentum in order; one kind is fused.
FusionMatch fuse_all_optimizers(OperatorGraph& graph, const Workload& workload) {
  std::vector<int> tensor_of(workload.operators->values.size(), -1);
  for (std::size_t i = 0; i < workload.operators->gradients.size(); ++i) {
    const int value = workload.operators->gradients[i];
    if (value >= 0) tensor_of[index(value)] = static_cast<int>(i);
  }
  FusionMatch refused{.detail = "no sgd, momentum or adam operators"};
  bool none = true;
  for (const std::string kind : {"adam", "sgd", "momentum"}) {
    const Updates updates = updates_of(graph, kind, workload, tensor_of);
    if (updates.operators == 0) continue;
    const std::string found = "found " + std::to_string(updates.operators) + " " + kind +
                              " operators, and " + std::to_string(updates.dense.size()) +
                              " for dense gradients; ";
    const std::string refusal = refusal_of(graph, updates);
    if (refusal.empty()) {
      graph.join(updates.dense, "fused_" + kind);
      return {.detail = found + "they become one"};
    }
    // The first refusal is reported.
    if (std::exchange(none, false)) refused.detail = found + "none is fused: " + refusal;
  }
  return refused;
}

}  // namespace syncline::plan
