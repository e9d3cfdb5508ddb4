#include "core/operators/transformer.h"

namespace syncline::operators {
namespace {

int block_linear(GraphBuilder& build, int x, std::int64_t rows, std::int64_t inner,
                 std::int64_t columns, const std::string& name, const BlockStyle& style) {
  return linear(build, x, rows, inner, columns, name + ".weight", name + ".bias", style.stored_out,
                style.fused_linear);
}

// Adds the mask to the scores: it is small, and has no gradient.
int add_mask(GraphBuilder& build, int x, const BlockShape& shape) {
  const int mask = build.activation(shape.batch * shape.sequence);
  const int y = build.activation(shape.scores());
  build.add("elementwise_add", {{x}, {mask}}, {{y}}).flops = real(shape.scores());
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

double attention_flops(const BlockShape& shape) {
  return 4 * real(shape.own_elements()) * real(shape.sequence);
}

// softmax(scale q k^T + mask) v, from heads to heads. `masked`: the softmax kernel adds the mask.
int weighted_values(GraphBuilder& build, const std::vector<int>& heads, const BlockShape& shape,
                    bool masked) {
  const std::int64_t count = shape.batch * shape.heads / shape.tensor;
  const std::int64_t width = shape.hidden / shape.heads;
  const int q = activate(build, "scale", heads[0], shape.own_elements());
  int scores = batched_product(build, q, heads[1], count, shape.sequence, width, shape.sequence);
  if (!masked) scores = add_mask(build, scores, shape);
  scores = softmax(build, scores, shape.scores());
  scores = dropout(build, scores, shape.scores());
  return batched_product(build, scores, heads[2], count, shape.sequence, shape.sequence, width);
}

// residual + dropout(x + bias), and its normalisation if it has a name, in one kernel: the last of
// both fused layers. The backward pass takes one for dx and one for the sums over rows.
int fused_tail(GraphBuilder& build, int x, int residual, const BlockShape& shape,
               const std::string& bias, const std::string& norm) {
  const std::int64_t elements = shape.elements();
  const int b = build.parameter(bias, {shape.hidden}, true);
  const int sum = build.activation(elements);
  const int mask = build.raw_value({}, elements);
  std::vector<Operand> inputs{{x}, {residual}, {b}};
  std::vector<Operand> outputs{{sum}, {mask}};
  const bool normed = !norm.empty();
  const int scale = normed ? build.parameter(norm + ".weight", {shape.hidden}, false) : 0;
  const int offset = normed ? build.parameter(norm + ".bias", {shape.hidden}, false) : 0;
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

// About ten kernels (eleven with the normalisation first) where the plain layer takes about 20:
// one product for all three projections, its bias in the epilogue.
int fused_attention(GraphBuilder& build, int x, const BlockShape& shape, const BlockNames& names,
                    const BlockStyle& style) {
  build.set_prefix("fused_attention.");
  int y = x;
  if (style.norm_first) {
    y = layer_norm(build, y, shape.rows(), shape.hidden, names.attention_norm);
  }
  y = linear(build, y, shape.rows(), shape.hidden, 3 * shape.hidden, names.all + ".weight",
             names.all + ".bias", style.stored_out, true);
  y = weighted_values(build, split_heads(build, y, shape.elements()), shape, true);
  y = transpose(build, y, shape.elements());
  y = product(build, y, shape.rows(), shape.hidden, shape.hidden, names.output + ".weight",
              style.stored_out);
  y = fused_tail(build, y, x, shape, names.output + ".bias",
                 style.norm_first ? "" : names.attention_norm);
  build.set_prefix("");
  return y;
}

// bias + gelu + dropout in one kernel; the gradient needs x and the mask.
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

int fused_feedforward(GraphBuilder& build, int x, const BlockShape& shape, const BlockNames& names,
                      const BlockStyle& style) {
  build.set_prefix("fused_feedforward.");
  const std::int64_t wide = shape.inner;
  int y = x;
  if (style.norm_first) {
    y = layer_norm(build, y, shape.rows(), shape.hidden, names.feedforward_norm);
  }
  y = product(build, y, shape.rows(), shape.hidden, wide, names.inner + ".weight",
              style.stored_out);
  y = fused_gelu(build, y, shape.rows() * wide, names.inner + ".bias", wide);
  y = product(build, y, shape.rows(), wide, shape.hidden, names.outer + ".weight",
              style.stored_out);
  y = fused_tail(build, y, x, shape, names.outer + ".bias",
                 style.norm_first ? "" : names.feedforward_norm);
  build.set_prefix("");
  return y;
}

// dropout, residual and, where the normalisation comes last, that.
int plain_tail(GraphBuilder& build, int y, int x, const BlockShape& shape, const std::string& norm,
               const BlockStyle& style) {
  y = dropout(build, y, shape.elements());
  y = add(build, x, y, shape.elements());
  return style.norm_first ? y : layer_norm(build, y, shape.rows(), shape.hidden, norm);
}

}  // namespace

BlockShape block_shape(const ArchitectureOptions& options, std::int64_t sequence) {
  return {options.batch,        sequence,
          options.shape.hidden, options.shape.heads,
          options.shape.inner,  options.parallel.tensor};
}

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

int attention(GraphBuilder& build, int x, const BlockShape& shape, const BlockNames& names,
              const BlockStyle& style) {
  if (style.fused_attention) return fused_attention(build, x, shape, names, style);
  int y = x;
  if (style.norm_first) {
    y = layer_norm(build, y, shape.rows(), shape.hidden, names.attention_norm);
  }
  std::vector<int> heads;
  if (names.projections.size() == 1) {
    y = block_linear(build, y, shape.rows(), shape.hidden, 3 * shape.hidden / shape.tensor,
                     names.projections.front(), style);
    heads = split_heads(build, y, shape.own_elements());
  } else {
    for (const auto& name : names.projections) {
      heads.push_back(block_linear(build, y, shape.rows(), shape.hidden,
                                   shape.hidden / shape.tensor, name, style));
      heads.back() = transpose(build, heads.back(), shape.own_elements());
    }
  }
  if (style.flash_attention) {
    y = flash_attention(build, heads[0], heads[1], heads[2], attention_flops(shape),
                        shape.own_elements());
  } else {
    y = weighted_values(build, heads, shape, false);
    y = transpose(build, y, shape.own_elements());
  }
  y = block_linear(build, y, shape.rows(), shape.hidden / shape.tensor, shape.hidden, names.output,
                   style);
  return plain_tail(build, y, x, shape, names.attention_norm, style);
}

int feedforward(GraphBuilder& build, int x, const BlockShape& shape, const BlockNames& names,
                const BlockStyle& style) {
  if (style.fused_feedforward) return fused_feedforward(build, x, shape, names, style);
  const std::int64_t wide = shape.inner / shape.tensor;
  int y = x;
  if (style.norm_first) {
    y = layer_norm(build, y, shape.rows(), shape.hidden, names.feedforward_norm);
  }
  y = block_linear(build, y, shape.rows(), shape.hidden, wide, names.inner, style);
  y = activate(build, "gelu", y, shape.rows() * wide);
  y = block_linear(build, y, shape.rows(), wide, shape.hidden, names.outer, style);
  return plain_tail(build, y, x, shape, names.feedforward_norm, style);
}

}  // namespace syncline::operators
