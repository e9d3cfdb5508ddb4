#include "catalogue/architectures/transformer.h"

namespace syncline::operators {
namespace {

// Adds the bias after the tensor group's sum, on a rank's own tokens, if `summed`.
int block_linear(GraphBuilder& build, int x, const Block& block, std::int64_t inner,
                 std::int64_t columns, const std::string& name, bool summed = false) {
  if (summed && block.rows_between() < block.rows() && !block.options.fused_linear) {
    const int y =
        product(build, x, block.rows(), inner, columns, name + ".weight", block.stored_out);
    return add_bias(build, y, block.rows_between() * columns, name + ".bias", columns);
  }
  return linear(build, x, block.rows(), inner, columns, name, block.stored_out,
                block.options.fused_linear);
}

int block_norm(GraphBuilder& build, int x, const Block& block, const std::string& name) {
  return normalise(build, "layer_norm", x, block.rows_between(), block.hidden, name);
}

// Returns the input of a half.
int opened(GraphBuilder& build, int x, const Block& block, const std::string& norm) {
  return block.norm_first ? block_norm(build, x, block, norm) : x;
}

// Adds the mask to the scores: it is small, and has no gradient.
int add_mask(GraphBuilder& build, int x, const Block& block) {
  const int mask = build.activation(block.options.batch * block.sequence);
  const int y = build.activation(block.scores());
  build.add("elementwise_add", {{x}, {mask}}, {{y}}).flops = real(block.scores());
  build.on_backward([=, &build] {
    const int dy = build.gradient(y);
    build.add("elementwise_add_grad", {{dy, 0}}, {{build.contribute(x), 0}});
  });
  return y;
}

// Splits one value into three by a copy, heads first.
std::vector<int> split_heads(GraphBuilder& build, int x, std::int64_t elements) {
  const std::vector<int> parts{build.activation(elements), build.activation(elements),
                               build.activation(elements)};
  build.add("transpose2", {{x}}, {{parts[0]}, {parts[1]}, {parts[2]}});
  build.on_backward([=, &build] {
    const int a = build.gradient(parts[0]);
    const int b = build.gradient(parts[1]);
    const int c = build.gradient(parts[2]);
    build.add("transpose2_grad", {{a}, {b}, {c}}, {{build.contribute(x)}});
  });
  return parts;
}

// Returns softmax(scale q k^T + mask) v, from heads to heads. `masked`: softmax adds the mask.
int weighted_values(GraphBuilder& build, const std::vector<int>& heads, const Block& block,
                    bool masked) {
  const std::int64_t count = block.heads();
  const std::int64_t width = block.hidden / block.options.shape.heads;
  const int q = activate(build, "scale", heads[0], block.own_elements());
  int scores = batched_product(build, q, heads[1], count, block.sequence, width, block.sequence);
  if (!masked) scores = add_mask(build, scores, block);
  scores = activate(build, "softmax", scores, block.scores(), 4);
  scores = dropout(build, scores, block.scores());
  return batched_product(build, scores, heads[2], count, block.sequence, block.sequence, width);
}

// Returns residual + dropout(x + bias), and its normalisation if it has a name, in one kernel: the
// last of both fused layers. The backward pass takes one for dx and one for the sums over rows.
int fused_tail(GraphBuilder& build, int x, int residual, const Block& block,
               const std::string& bias, const std::string& norm) {
  const std::int64_t elements = block.elements();
  const int b = build.parameter(bias, {block.hidden}, true);
  const int sum = build.activation(elements);
  const int mask = build.raw_value({}, elements);
  std::vector<Operand> inputs{{x}, {residual}, {b}};
  std::vector<Operand> outputs{{sum}, {mask}};
  const bool normed = !norm.empty();
  const int scale = normed ? build.parameter(norm + ".weight", {block.hidden}, false) : 0;
  const int offset = normed ? build.parameter(norm + ".bias", {block.hidden}, false) : 0;
  const int y = normed ? build.activation(elements) : sum;
  if (normed) {
    inputs.insert(inputs.end(), {{scale}, {offset}});
    outputs.push_back({y});
  }
  build.add(normed ? "bias_dropout_residual_layer_norm" : "bias_dropout_residual", inputs, outputs)
      .flops = real(elements) * (normed ? 11 : 3);
  build.on_backward([=, &build] {
    const int dy = build.gradient(y);
    std::vector<Operand> read{{dy, 2}, {mask}};
    std::vector<Operand> written;
    if (normed) {
      read.push_back({sum, 2});
      written.push_back({build.contribute_parameter(offset)});
      written.push_back({build.contribute_parameter(scale)});
    }
    written.push_back({build.contribute_parameter(b)});
    written.push_back({build.contribute(x)});
    // Without a normalisation the residual's gradient is dY itself.
    written.push_back({build.contribute(residual), normed ? 1 : 0});
    Operator& op =
        build.add(normed ? "bias_dropout_residual_layer_norm_grad" : "bias_dropout_residual_grad",
                  read, written);
    op.flops = real(elements) * (normed ? 15 : 3);
    op.kernels = 2;
  });
  return y;
}

// Adds about ten kernels (eleven with the normalisation first) instead of the plain layer's 20: one
// product for all three projections, its bias in the epilogue.
int fused_attention(GraphBuilder& build, int x, const Block& block, const BlockNames& names) {
  build.set_prefix("fused_attention.");
  int y = opened(build, x, block, names.attention_norm);
  y = linear(build, y, block.rows(), block.hidden, 3 * block.hidden, names.all, block.stored_out,
             true);
  y = weighted_values(build, split_heads(build, y, block.elements()), block, true);
  y = activate(build, "transpose2", y, block.elements(), 0);
  y = product(build, y, block.rows(), block.hidden, block.hidden, names.output + ".weight",
              block.stored_out);
  y = fused_tail(build, y, x, block, names.output + ".bias",
                 block.norm_first ? "" : names.attention_norm);
  build.set_prefix("");
  return y;
}

// Returns bias + gelu + dropout in one kernel; the gradient needs x and the mask.
int fused_gelu(GraphBuilder& build, int x, std::int64_t elements, const std::string& bias,
               std::int64_t width) {
  const int b = build.parameter(bias, {width}, true);
  const int y = build.activation(elements);
  const int mask = build.raw_value({}, elements);
  build.add("bias_gelu_dropout", {{x}, {b}}, {{y}, {mask}}).flops = 3 * real(elements);
  build.on_backward([=, &build] {
    const int dy = build.gradient(y);
    const int db = build.contribute_parameter(b);
    Operator& op =
        build.add("bias_gelu_dropout_grad", {{dy}, {x}, {mask}}, {{build.contribute(x)}, {db}});
    op.flops = 3 * real(elements);
    op.kernels = 2;
  });
  return y;
}

int fused_feedforward(GraphBuilder& build, int x, const Block& block, const BlockNames& names) {
  build.set_prefix("fused_feedforward.");
  const std::int64_t wide = block.options.shape.inner;
  int y = opened(build, x, block, names.feedforward_norm);
  y = product(build, y, block.rows(), block.hidden, wide, names.inner + ".weight",
              block.stored_out);
  y = fused_gelu(build, y, block.rows() * wide, names.inner + ".bias", wide);
  y = product(build, y, block.rows(), wide, block.hidden, names.outer + ".weight",
              block.stored_out);
  y = fused_tail(build, y, x, block, names.outer + ".bias",
                 block.norm_first ? "" : names.feedforward_norm);
  build.set_prefix("");
  return y;
}

// Adds dropout and the residual, and the normalisation if it comes last.
int plain_tail(GraphBuilder& build, int y, int x, const Block& block, const std::string& norm) {
  y = dropout(build, y, block.elements());
  y = add(build, x, y, block.elements());
  return block.norm_first ? y : block_norm(build, y, block, norm);
}

}  // namespace

int flash_attention(GraphBuilder& build, int q, int k, int v, double flops, std::int64_t elements) {
  const int y = build.activation(elements);
  build.add("flash_attn", {{q}, {k}, {v}}, {{y}}).matrix_flops = flops;
  build.on_backward([=, &build] {
    const int dy = build.gradient(y);
    const int dq = build.contribute(q);
    const int dk = build.contribute(k);
    const int dv = build.contribute(v);
    build.add("flash_attn_grad", {{q}, {k}, {v}, {y}, {dy}}, {{dq}, {dk}, {dv}}).matrix_flops =
        2 * flops;
  });
  return y;
}

int attention(GraphBuilder& build, int x, const Block& block, const BlockNames& names) {
  if (block.options.fused_attention) return fused_attention(build, x, block, names);
  int y = opened(build, x, block, names.attention_norm);
  std::vector<int> heads;
  if (names.projections.size() == 1) {
    y = block_linear(build, y, block, block.hidden, 3 * block.hidden / block.tensor,
                     names.projections.front());
    heads = split_heads(build, y, block.own_elements());
  } else {
    for (const auto& name : names.projections) {
      heads.push_back(
          block_linear(build, y, block, block.hidden, block.hidden / block.tensor, name));
      heads.back() = activate(build, "transpose2", heads.back(), block.own_elements(), 0);
    }
  }
  if (block.options.flash_attention) {
    const double flops = 4 * real(block.own_elements()) * real(block.sequence);
    y = flash_attention(build, heads[0], heads[1], heads[2], flops, block.own_elements());
  } else {
    y = weighted_values(build, heads, block, false);
    y = activate(build, "transpose2", y, block.own_elements(), 0);
  }
  y = block_linear(build, y, block, block.hidden / block.tensor, block.hidden, names.output, true);
  return plain_tail(build, y, x, block, names.attention_norm);
}

int feedforward(GraphBuilder& build, int x, const Block& block, const BlockNames& names) {
  if (block.options.fused_feedforward) return fused_feedforward(build, x, block, names);
  const std::int64_t wide = block.options.shape.inner / block.tensor;
  int y = opened(build, x, block, names.feedforward_norm);
  y = block_linear(build, y, block, block.hidden, wide, names.inner);
  y = activate(build, "gelu", y, block.rows() * wide);
  y = block_linear(build, y, block, wide, block.hidden, names.outer, true);
  return plain_tail(build, y, x, block, names.feedforward_norm);
}

}  // namespace syncline::operators
