#include "core/plan/fusion_patterns.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

namespace syncline {
namespace {

// The first of an operator's outputs that one operator alone reads, of the kind asked for.
struct Link {
  int value = -1;
  int reader = -1;
};

Link link_to(const OperatorGraph& graph, int op, const std::string& kind) {
  for (const auto& output : graph.at(op).outputs) {
    const int reader = graph.only_reader(output.value);
    if (graph.is(reader, kind)) return {output.value, reader};
  }
  return {};
}

bool found(const Link& link) { return link.reader >= 0; }

bool half_channels_last(const Operator& op) {
  return op.dtype == DType::kFp16 && op.layout == Layout::kNhwc;
}

// Folds every `first` into the `second` that alone reads it, where `guard` holds for the operator
// at `guarded` of the two.
template <typename Guard>
int fold_pairs(OperatorGraph& graph, const std::string& first, const std::string& second,
               const std::string& kind, Guard guard) {
  int count = 0;
  for (int op = 0; op < graph.size(); ++op) {
    if (!graph.is(op, first)) continue;
    const Link link = link_to(graph, op, second);
    if (!found(link) || !guard(graph.at(op), graph.at(link.reader))) continue;
    graph.fold(op, link.reader, link.value, kind);
    ++count;
  }
  return count;
}

bool always(const Operator&, const Operator&) { return true; }

// Reader of `value` that is of this kind, or -1.
int reader_of_kind(const OperatorGraph& graph, int value, const std::string& kind) {
  for (const int op : graph.readers(value)) {
    if (graph.is(op, kind)) return op;
  }
  return -1;
}

bool is_in(const std::vector<int>& list, int item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// matmul_v2 -> elementwise_add (its first input), the second one being a bias.
Link bias_of(const OperatorGraph& graph, int product) {
  if (graph.at(product).columns == 0) return {};
  const Link link = link_to(graph, product, "elementwise_add");
  if (!found(link)) return {};
  const auto& inputs = graph.at(link.reader).inputs;
  const Bytes row = graph.at(product).columns * size_of(graph.at(product).dtype);
  const bool bias = inputs.size() == 2 && inputs[0].value == link.value &&
                    graph.value(inputs[1].value).bytes <= row;
  return bias ? link : Link{};
}

// The activation that alone reads the sum, but for its own gradient; its columns must suit
// cublasLt, which keeps relu's mask in words of 128 bits and gelu's input in vectors of 8.
Link epilogue_activation(const OperatorGraph& graph, int sum, std::int64_t columns) {
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

// What the products' gradients need to know of the forward pass: outputs of fused activations.
int fuse_products(OperatorGraph& graph, std::set<int>& activated) {
  int count = 0;
  for (int op = 0; op < graph.size(); ++op) {
    if (!graph.is(op, "matmul_v2")) continue;
    const Link bias = bias_of(graph, op);
    if (!found(bias)) continue;
    const std::int64_t columns = graph.at(op).columns;
    const Link act = epilogue_activation(graph, bias.reader, columns);
    graph.fold(op, bias.reader, bias.value, "fused_gemm_epilogue");
    ++count;
    if (!found(act)) continue;
    for (const auto& output : graph.at(act.reader).outputs) activated.insert(output.value);
    graph.fold(bias.reader, act.reader, act.value, "fused_gemm_epilogue");
  }
  return count;
}

int fuse_product_gradients(OperatorGraph& graph, const std::set<int>& activated) {
  int count = 0;
  for (int op = 0; op < graph.size(); ++op) {
    if (!graph.is(op, "elementwise_add_grad")) continue;
    const Link link = link_to(graph, op, "matmul_v2_grad");
    if (!found(link) || graph.at(link.reader).columns == 0) continue;
    const int product = link.reader;
    const auto& inputs = graph.at(product).inputs;
    const bool behind_fused = std::any_of(inputs.begin(), inputs.end(), [&](const Operand& input) {
      return activated.contains(input.value);
    });
    graph.fold(op, product, link.value, "fused_gemm_epilogue_grad");
    ++count;
    if (!behind_fused) continue;
    for (const char* gradient : {"relu_grad", "gelu_grad"}) {
      const Link act = link_to(graph, product, gradient);
      if (!found(act)) continue;
      graph.fold(product, act.reader, act.value, "fused_gemm_epilogue_grad");
      break;
    }
  }
  return count;
}

}  // namespace

PatternCount fuse_relu_depthwise_conv(OperatorGraph& graph) {
  PatternCount count;
  for (int conv = 0; conv < graph.size(); ++conv) {
    if (!graph.is(conv, "depthwise_conv2d")) continue;
    for (const auto& input : std::vector<Operand>(graph.at(conv).inputs)) {
      const int relu = graph.writer(input.value);
      if (!graph.is(relu, "relu")) continue;
      // Besides the convolution only the two gradients may read the relu's output.
      const int conv_grad = reader_of_kind(graph, input.value, "depthwise_conv2d_grad");
      const int relu_grad = reader_of_kind(graph, input.value, "relu_grad");
      std::vector<int> inside{conv, conv_grad, relu_grad};
      const auto& readers = graph.readers(input.value);
      if (!std::all_of(readers.begin(), readers.end(),
                       [&](int reader) { return is_in(inside, reader); })) {
        continue;
      }
      const Link back = conv_grad >= 0 ? link_to(graph, conv_grad, "relu_grad") : Link{};
      const bool both = found(back) && back.reader == relu_grad;
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

PatternCount fuse_bn_act(OperatorGraph& graph) {
  const auto first_fits = [](const Operator& bn, const Operator&) {
    return half_channels_last(bn);
  };
  const auto second_fits = [](const Operator&, const Operator& bn) {
    return half_channels_last(bn);
  };
  PatternCount count;
  count.forward = fold_pairs(graph, "batch_norm", "relu", "fused_batch_norm_act", first_fits);
  count.backward =
      fold_pairs(graph, "relu_grad", "batch_norm_grad", "fused_batch_norm_act_grad", second_fits);
  return count;
}

PatternCount fuse_bn_add_act(OperatorGraph& graph) {
  PatternCount count;
  for (int bn = 0; bn < graph.size(); ++bn) {
    if (!graph.is(bn, "batch_norm") || !half_channels_last(graph.at(bn))) continue;
    const Link sum = link_to(graph, bn, "elementwise_add");
    if (!found(sum)) continue;
    const Link act = link_to(graph, sum.reader, "relu");
    if (!found(act)) continue;
    graph.fold(bn, sum.reader, sum.value, "fused_bn_add_activation");
    graph.fold(sum.reader, act.reader, act.value, "fused_bn_add_activation");
    ++count.forward;
  }
  for (int act = 0; act < graph.size(); ++act) {
    if (!graph.is(act, "relu_grad")) continue;
    const Link sum = link_to(graph, act, "elementwise_add_grad");
    if (!found(sum)) continue;
    const Link bn = link_to(graph, sum.reader, "batch_norm_grad");
    if (!found(bn) || !half_channels_last(graph.at(bn.reader))) continue;
    graph.fold(act, sum.reader, sum.value, "fused_bn_add_activation_grad");
    graph.fold(sum.reader, bn.reader, bn.value, "fused_bn_add_activation_grad");
    ++count.backward;
  }
  return count;
}

// In the order of the pass: what comes before the sum first, then what comes behind it.
PatternCount fuse_elewise_add_act(OperatorGraph& graph) {
  constexpr std::array<const char*, 3> kActivations{"relu", "scale", "tanh"};
  const std::string fused = "fused_elemwise_add_activation";
  PatternCount count;
  for (const char* act : kActivations) {
    count.forward += fold_pairs(graph, act, "elementwise_add", fused, always);
  }
  for (const char* act : kActivations) {
    count.forward += fold_pairs(graph, "elementwise_add", act, fused, always);
  }
  count.backward += fold_pairs(graph, "relu_grad", "elementwise_add_grad", fused + "_grad", always);
  count.backward += fold_pairs(graph, "elementwise_add_grad", "relu_grad", fused + "_grad", always);
  return count;
}

PatternCount fuse_gemm_epilogue(OperatorGraph& graph) {
  std::set<int> activated;
  PatternCount count;
  count.forward = fuse_products(graph, activated);
  count.backward = fuse_product_gradients(graph, activated);
  return count;
}

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
