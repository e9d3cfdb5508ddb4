// The pass behind fuse_gemm_epilogue (fuse_gemm_epilogue_pass.cc).
#include <algorithm>
#include <set>
#include <string>

#include "core/plan/fusion_patterns.h"

namespace syncline::plan {
namespace {

// matmul_v2 -> elementwise_add (its first input), the second one being a bias.
OperatorLink bias_of(const OperatorGraph& graph, int product) {
  if (graph.at(product).columns == 0) return {};
  const OperatorLink link = link_to(graph, product, "elementwise_add");
  if (!link.found()) return {};
  const auto& inputs = graph.at(link.reader).inputs;
  const Bytes row = graph.at(product).columns * size_of(graph.at(product).dtype);
  const bool bias = inputs.size() == 2 && inputs[0].value == link.value &&
                    graph.value(inputs[1].value).bytes <= row;
  return bias ? link : OperatorLink{};
}

// The activation that alone reads the sum, but for its own gradient; its columns must suit
// cublasLt, which keeps relu's mask in words of 128 bits and gelu's input in vectors of 8.
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

// What the products' gradients need to know of the forward pass: outputs of fused activations.
int fuse_products(OperatorGraph& graph, std::set<int>& activated) {
  int count = 0;
  for (int op = 0; op < graph.size(); ++op) {
    if (!graph.is(op, "matmul_v2")) continue;
    const OperatorLink bias = bias_of(graph, op);
    if (!bias.found()) continue;
    const std::int64_t columns = graph.at(op).columns;
    const OperatorLink act = epilogue_activation(graph, bias.reader, columns);
    graph.fold(op, bias.reader, bias.value, "fused_gemm_epilogue");
    ++count;
    if (!act.found()) continue;
    for (const auto& output : graph.at(act.reader).outputs) activated.insert(output.value);
    graph.fold(bias.reader, act.reader, act.value, "fused_gemm_epilogue");
  }
  return count;
}

int fuse_product_gradients(OperatorGraph& graph, const std::set<int>& activated) {
  int count = 0;
  for (int op = 0; op < graph.size(); ++op) {
    if (!graph.is(op, "elementwise_add_grad")) continue;
    const OperatorLink link = link_to(graph, op, "matmul_v2_grad");
    if (!link.found() || graph.at(link.reader).columns == 0) continue;
    const int product = link.reader;
    const auto& inputs = graph.at(product).inputs;
    const bool behind_fused = std::any_of(inputs.begin(), inputs.end(), [&](const Operand& input) {
      return activated.contains(input.value);
    });
    graph.fold(op, product, link.value, "fused_gemm_epilogue_grad");
    ++count;
    if (!behind_fused) continue;
    for (const char* gradient : {"relu_grad", "gelu_grad"}) {
      const OperatorLink act = link_to(graph, product, gradient);
      if (!act.found()) continue;
      graph.fold(product, act.reader, act.value, "fused_gemm_epilogue_grad");
      break;
    }
  }
  return count;
}

}  // namespace

PatternCount fuse_gemm_epilogue(OperatorGraph& graph) {
  std::set<int> activated;
  PatternCount count;
  count.forward = fuse_products(graph, activated);
  count.backward = fuse_product_gradients(graph, activated);
  return count;
}

}  // namespace syncline::plan
