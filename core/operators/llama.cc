// Llama (Touvron et al., 2023) and what follows its plan: Mistral, and Qwen with biases or
// normalised heads. RMSNorm before each half, rotary positions, grouped-query attention in one
// kernel, SwiGLU; no dropout. Names are those of the Hugging Face checkpoints.
#include "core/operators/transformer.h"

namespace syncline::operators {
namespace {

// A row stays on the chip, so x is read once; the weight's gradient takes a pass of its own.
int rms_norm(GraphBuilder& build, int x, std::int64_t rows, std::int64_t width,
             const std::string& name) {
  const int scale = build.parameter(name + ".weight", {width}, false);
  const int y = build.activation(rows * width);
  build.add("rms_norm", {{x}, {scale}}, {{y}}).flops = 4 * real(rows * width);
  build.on_backward([=, &build] {
    const int dy = build.gradient(y);
    const int dx = build.contribute(x);
    const int dscale = build.contribute_parameter(scale);
    Operator& op = build.add("rms_norm_grad", {{x, 2}, {dy, 2}, {scale}}, {{dx}, {dscale}});
    op.flops = 8 * real(rows * width);
    op.kernels = 2;
  });
  return y;
}

// Turns pairs of a head's elements by their position; its gradient turns back.
int rotary(GraphBuilder& build, int x, std::int64_t elements) {
  const int y = build.activation(elements);
  build.add("fused_rope", {{x}}, {{y}}).flops = 3 * real(elements);
  build.on_backward([=, &build] {
    const int dy = build.gradient(y);
    build.add("fused_rope_grad", {{dy}}, {{build.contribute(x)}}).flops = 3 * real(elements);
  });
  return y;
}

// silu(gate) * up.
int swiglu(GraphBuilder& build, int gate, int up, std::int64_t elements) {
  const int y = build.activation(elements);
  build.add("swiglu", {{gate}, {up}}, {{y}}).flops = 3 * real(elements);
  build.on_backward([=, &build] {
    const int dy = build.gradient(y);
    const int dgate = build.contribute(gate);
    const int dup = build.contribute(up);
    build.add("swiglu_grad", {{gate}, {up}, {dy}}, {{dgate}, {dup}}).flops = 6 * real(elements);
  });
  return y;
}

// Queries, or keys, or values: a product, its bias, the normalisation of each head, the rotation.
int projected(GraphBuilder& build, int x, std::int64_t rows, const TransformerShape& shape,
              std::int64_t heads, const std::string& name, const std::string& norm) {
  const std::int64_t columns = heads * shape.head_width;
  int y = product(build, x, rows, shape.hidden, columns, name + ".weight", true);
  if (shape.bias) y = add_bias(build, y, rows * columns, name + ".bias", columns);
  if (norm.empty()) return y;  // values
  if (shape.head_norm) y = rms_norm(build, y, rows * heads, shape.head_width, norm);
  return rotary(build, y, rows * columns);
}

int llama_attention(GraphBuilder& build, int x, const ArchitectureOptions& options,
                    const std::string& at) {
  const TransformerShape& shape = options.shape;
  const std::int64_t rows = options.batch * options.sequence;
  const std::string self = at + "self_attn.";
  const int normed = rms_norm(build, x, rows, shape.hidden, at + "input_layernorm");
  const int q =
      projected(build, normed, rows, shape, shape.heads, self + "q_proj", self + "q_norm");
  const int k =
      projected(build, normed, rows, shape, shape.kv_heads, self + "k_proj", self + "k_norm");
  const int v = projected(build, normed, rows, shape, shape.kv_heads, self + "v_proj", "");
  const std::int64_t width = shape.heads * shape.head_width;
  const double flops = 4 * real(rows) * real(options.sequence) * real(width);
  int y = flash_attention(build, q, k, v, flops, rows * width);
  y = product(build, y, rows, width, shape.hidden, self + "o_proj.weight", true);
  return add(build, x, y, rows * shape.hidden);
}

int llama_feedforward(GraphBuilder& build, int x, const ArchitectureOptions& options,
                      const std::string& at) {
  const TransformerShape& shape = options.shape;
  const std::int64_t rows = options.batch * options.sequence;
  const std::string mlp = at + "mlp.";
  const int normed = rms_norm(build, x, rows, shape.hidden, at + "post_attention_layernorm");
  const int gate =
      product(build, normed, rows, shape.hidden, shape.inner, mlp + "gate_proj.weight", true);
  const int up =
      product(build, normed, rows, shape.hidden, shape.inner, mlp + "up_proj.weight", true);
  int y = swiglu(build, gate, up, rows * shape.inner);
  y = product(build, y, rows, shape.inner, shape.hidden, mlp + "down_proj.weight", true);
  return add(build, x, y, rows * shape.hidden);
}

}  // namespace

void build_llama(GraphBuilder& build, const ArchitectureOptions& options) {
  const TransformerShape& shape = options.shape;
  const std::int64_t rows = options.batch * options.sequence;
  const std::string words = "model.embed_tokens.weight";
  int x = embedding(build, words, shape.words, shape.hidden, rows, shape.tied);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    x = llama_attention(build, x, options, at);
    x = llama_feedforward(build, x, options, at);
  }
  x = rms_norm(build, x, rows, shape.hidden, "model.norm");
  const int logits = product(build, x, rows, shape.hidden, shape.words,
                             shape.tied ? words : "lm_head.weight", true);
  cross_entropy(build, logits, rows * shape.words);
}

}  // namespace syncline::operators
