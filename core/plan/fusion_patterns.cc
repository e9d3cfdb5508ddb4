#include "core/plan/fusion_patterns.h"

#include <algorithm>
#include <array>
#include <string>

namespace syncline::plan {
namespace {

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
    const OperatorLink link = link_to(graph, op, second);
    if (!link.found() || !guard(graph.at(op), graph.at(link.reader))) continue;
    graph.fold(op, link.reader, link.value, kind);
    ++count;
  }
  return count;
}

bool always(const Operator&, const Operator&) { return true; }

}  // namespace

bool is_in(const std::vector<int>& list, int item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

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
      // In both directions or not at all: half a fusion would leave a gradient without its input.
      const OperatorLink back =
          conv_grad >= 0 ? link_to(graph, conv_grad, "relu_grad") : OperatorLink{};
      const bool both = back.found() && back.reader == relu_grad;
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
    const OperatorLink sum = link_to(graph, bn, "elementwise_add");
    if (!sum.found()) continue;
    const OperatorLink act = link_to(graph, sum.reader, "relu");
    if (!act.found()) continue;
    graph.fold(bn, sum.reader, sum.value, "fused_bn_add_activation");
    graph.fold(sum.reader, act.reader, act.value, "fused_bn_add_activation");
    ++count.forward;
  }
  for (int act = 0; act < graph.size(); ++act) {
    if (!graph.is(act, "relu_grad")) continue;
    const OperatorLink sum = link_to(graph, act, "elementwise_add_grad");
    if (!sum.found()) continue;
    const OperatorLink bn = link_to(graph, sum.reader, "batch_norm_grad");
    if (!bn.found() || !half_channels_last(graph.at(bn.reader))) continue;
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

}  // namespace syncline::plan
