// Transformers: BERT, GPT-2, ViT, Llama and their relatives.
#include <algorithm>

#include "catalogue/architectures/transformer.h"

namespace syncline::operators {
namespace {

// Returns the patches' tokens with the class's in front.
int with_class_token(GraphBuilder& build, int patches, const Block& block) {
  const int token = build.parameter("class_token", {1, 1, block.hidden}, true);
  const int y = build.activation(block.elements());
  build.add("concat", {{patches}, {token}}, {{y}});
  build.on_backward([=, &build] {
    const int dy = build.gradient(y);
    const int dpatches = build.contribute(patches);
    const int dtoken = build.contribute_parameter(token);
    build.add("concat_grad", {{dy}}, {{dpatches}, {dtoken}});
  });
  return y;
}

// Returns the first token of each sample, the only one that reaches the head. The others' gradient
// is zero, and written. `copied`: the read counts.
int first_tokens(GraphBuilder& build, int x, std::int64_t elements, bool copied) {
  const int first = build.activation(elements);
  std::vector<Operand> inputs{{x, 0}};
  if (copied) inputs.push_back({build.activation(elements)});
  build.add("slice", std::move(inputs), {{first}});
  build.on_backward(
      [=, &build] { build.add("slice_grad", {{build.gradient(first)}}, {{build.contribute(x)}}); });
  return first;
}

int rms_norm(GraphBuilder& build, int x, std::int64_t rows, std::int64_t width,
             const std::string& name) {
  return normalise(build, "rms_norm", x, rows, width, name);
}

// Rotates pairs of a head's elements by their position; its gradient rotates back.
int rotary(GraphBuilder& build, int x, std::int64_t elements) {
  return activate(build, "fused_rope", x, elements, 3);
}

// Returns silu(gate) * up.
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

// Adds SwiGLU of one value that holds gate and product.
int swiglu_of_both(GraphBuilder& build, int both, std::int64_t elements) {
  const int y = build.activation(elements);
  build.add("swiglu", {{both}}, {{y}}).flops = 3 * real(elements);
  build.on_backward([=, &build] {
    const int dy = build.gradient(y);
    const int dboth = build.contribute(both);
    build.add("swiglu_grad", {{both}, {dy}}, {{dboth}}).flops = 6 * real(elements);
  });
  return y;
}

// Returns a rank's share of `count` in the tensor group, at least 1: if there are fewer heads of
// keys and values than ranks, several ranks have the same.
std::int64_t own(std::int64_t count, const ArchitectureOptions& options) {
  return std::max<std::int64_t>(1, (count + options.parallel.tensor - 1) / options.parallel.tensor);
}

// Returns queries, keys or values: a product, its bias, the normalisation of each head, rotation.
int projected(GraphBuilder& build, int x, std::int64_t rows, const TransformerShape& shape,
              std::int64_t heads, const std::string& name, const std::string& norm) {
  const std::int64_t columns = heads * shape.head_width;
  int y = product(build, x, rows, shape.hidden, columns, name + ".weight", true);
  if (shape.bias) y = add_bias(build, y, rows * columns, name + ".bias", columns);
  if (norm.empty()) return y;  // values
  if (shape.head_norm) y = rms_norm(build, y, rows * heads, shape.head_width, norm);
  if (shape.joint_norm) y = rms_norm(build, y, rows, columns, norm);
  return rotary(build, y, rows * columns);
}

// Adds latent attention (DeepSeek-V2, 2.1): both paths go down to few numbers, which are
// normalised, and up to the heads. Every rank computes the whole way down, and up to its own heads.
int latent_attention(GraphBuilder& build, int x, const ArchitectureOptions& options,
                     const std::string& self) {
  const TransformerShape& shape = options.shape;
  const std::int64_t rows = options.rows();
  const std::int64_t heads = own(shape.heads, options);
  const std::int64_t wide = shape.head_width + shape.rope_width;  // width of a query and a key
  int q = x;
  std::int64_t inner = shape.hidden;
  if (shape.query_latent > 0) {
    q = product(build, q, rows, inner, shape.query_latent, self + "q_a_proj.weight", true);
    q = rms_norm(build, q, rows, shape.query_latent, self + "q_a_layernorm");
    inner = shape.query_latent;
  }
  q = product(build, q, rows, inner, heads * wide, self + "q_b_proj.weight", true);
  q = rotary(build, q, rows * heads * wide);
  int kv = product(build, x, rows, shape.hidden, shape.latent + shape.rope_width,
                   self + "kv_a_proj_with_mqa.weight", true);
  kv = rms_norm(build, kv, rows, shape.latent, self + "kv_a_layernorm");
  kv = product(build, kv, rows, shape.latent, 2 * heads * shape.head_width,
               self + "kv_b_proj.weight", true);
  const double flops =
      real(rows) * real(options.sequence) * real(heads) * real(wide + shape.head_width);
  const std::int64_t width = heads * shape.head_width;
  const int y = flash_attention(build, q, kv, kv, flops, rows * width);
  return product(build, y, rows, width, shape.hidden, self + "o_proj.weight", true);
}

// Normalises the input of a half, or its output before the sum with `x`, as the shape's `norms`
// says.
int normed_before(GraphBuilder& build, int x, const ArchitectureOptions& options,
                  const std::string& name) {
  if (options.shape.norms == TransformerShape::Norms::kAfter) return x;
  return rms_norm(build, x, options.own_rows(), options.shape.hidden, name);
}
int normed_after(GraphBuilder& build, int x, int y, const ArchitectureOptions& options,
                 const std::string& name) {
  const std::int64_t rows = options.own_rows();
  if (options.shape.norms != TransformerShape::Norms::kBefore) {
    y = rms_norm(build, y, rows, options.shape.hidden, name);
  }
  return add(build, x, y, rows * options.shape.hidden);
}

// Adds attention with queries, keys and values by one product.
int merged_attention(GraphBuilder& build, int x, const ArchitectureOptions& options,
                     const std::string& self, double flops) {
  const TransformerShape& shape = options.shape;
  const std::int64_t rows = options.rows();
  const std::int64_t heads = own(shape.heads, options);
  const std::int64_t turned = heads + own(shape.kv_heads, options);
  const std::int64_t columns = (turned + own(shape.kv_heads, options)) * shape.head_width;
  int y = product(build, x, rows, shape.hidden, columns, self + "qkv_proj.weight", true);
  if (shape.bias) y = add_bias(build, y, rows * columns, self + "qkv_proj.bias", columns);
  y = rotary(build, y, rows * turned * shape.head_width);
  return flash_attention(build, y, y, y, flops, rows * heads * shape.head_width);
}

int llama_attention(GraphBuilder& build, int x, const ArchitectureOptions& options,
                    const std::string& at) {
  const TransformerShape& shape = options.shape;
  const std::int64_t rows = options.rows();
  const std::string self = at + "self_attn.";
  const int normed = normed_before(build, x, options, at + "input_layernorm");
  const std::string after = at + "post_attention_layernorm";
  if (shape.latent > 0) {
    return normed_after(build, x, latent_attention(build, normed, options, self), options, after);
  }
  const std::int64_t heads = own(shape.heads, options);
  const std::int64_t kv_heads = own(shape.kv_heads, options);
  const std::int64_t width = heads * shape.head_width;
  // The kernel skips later tokens, half of all pairs.
  const double flops = 2 * real(rows) * real(options.sequence) * real(width);
  int y = 0;
  if (shape.merged) {
    y = merged_attention(build, normed, options, self, flops);
  } else {
    const int q = projected(build, normed, rows, shape, heads, self + "q_proj", self + "q_norm");
    const int k = projected(build, normed, rows, shape, kv_heads, self + "k_proj", self + "k_norm");
    const int v = projected(build, normed, rows, shape, kv_heads, self + "v_proj", "");
    y = flash_attention(build, q, k, v, flops, rows * width);
  }
  y = product(build, y, rows, width, shape.hidden, self + "o_proj.weight", true);
  return normed_after(build, x, y, options, after);
}

// Returns the inner half: `rows` tokens in all, evenly over `networks` parallel networks of equal
// size. One kernel each for all of them.
int inner_half(GraphBuilder& build, int x, std::int64_t rows, std::int64_t networks,
               const TransformerShape& shape, std::int64_t inner, const std::string& name) {
  const std::int64_t each = std::max<std::int64_t>(1, rows / networks);
  const std::int64_t wide = networks * inner;
  const auto widened = [&](const char* weight) {
    return product(build, x, each, shape.hidden, wide, name + weight, true);
  };
  if (shape.merged) {
    const int both =
        product(build, x, each, shape.hidden, 2 * wide, name + "gate_up_proj.weight", true);
    const int y = swiglu_of_both(build, both, each * wide);
    return product(build, y, each, wide, shape.hidden, name + "down_proj.weight", true);
  }
  const int gate = shape.gated ? widened("gate_proj.weight") : -1;
  const int up = widened("up_proj.weight");
  const int y = shape.gated ? swiglu(build, gate, up, each * wide)
                            : activate(build, "squared_relu", up, each * wide, 0);
  return product(build, y, each, wide, shape.hidden, name + "down_proj.weight", true);
}

// Returns tokens in their own order: each is the weighted sum of its experts' outputs.
int unpermuted(GraphBuilder& build, int x, int weights, std::int64_t elements) {
  const int y = build.activation(elements);
  build.add("unpermute", {{x}, {weights}}, {{y}});
  build.on_backward([=, &build] {
    const int dy = build.gradient(y);
    const int dx = build.contribute(x);
    const int dweights = build.contribute(weights);
    build.add("unpermute_grad", {{x}, {weights}, {dy}}, {{dx}, {dweights}});
  });
  return y;
}

// Adds experts: each of a token's experts, on any rank, gets a copy, and their sum comes back.
// Assumes tokens spread evenly.
int experts(GraphBuilder& build, int x, const ArchitectureOptions& options,
            const std::string& mlp) {
  const TransformerShape& shape = options.shape;
  const Parallel& parallel = options.parallel;
  const std::int64_t rows = options.own_rows();
  const int scores =
      product(build, x, rows, shape.hidden, shape.experts, mlp + "gate.weight", true);
  const int weights = activate(build, "softmax", scores, rows * shape.experts, 4);
  // If a tensor group divides its tokens, the ranks that share an expert gather theirs for it.
  const int gathered = parallel.sequence ? parallel.expert_tensor : 1;
  const std::int64_t tokens = rows * shape.experts_per_token * gathered;
  int y = activate(build, "permute", x, tokens * shape.hidden, 0);
  y = inner_half(build, y, tokens, shape.experts / parallel.expert, shape,
                 shape.expert_inner / parallel.expert_tensor, mlp + "experts.");
  return unpermuted(build, y, weights, rows * shape.hidden);
}

int llama_feedforward(GraphBuilder& build, int x, const ArchitectureOptions& options,
                      const std::string& at, bool dense) {
  const TransformerShape& shape = options.shape;
  const std::int64_t rows = options.rows();
  const std::string mlp = at + "mlp.";
  const bool before = shape.norms == TransformerShape::Norms::kBefore;
  const int normed = normed_before(
      build, x, options, at + (before ? "post_attention_layernorm" : "pre_feedforward_layernorm"));
  const std::string after = at + "post_feedforward_layernorm";
  if (dense) {
    const std::int64_t inner = own(shape.inner, options);
    return normed_after(build, x, inner_half(build, normed, rows, 1, shape, inner, mlp), options,
                        after);
  }
  const std::int64_t all = options.own_rows() * shape.hidden;
  int y = experts(build, normed, options, mlp);
  if (shape.shared_inner > 0) {
    const std::int64_t inner = own(shape.shared_inner, options);
    int shared = inner_half(build, normed, rows, 1, shape, inner, mlp + "shared_experts.");
    if (shape.shared_gate) {
      const std::int64_t own_rows = options.own_rows();
      int gate = product(build, normed, own_rows, shape.hidden, 1,
                         mlp + "shared_expert_gate.weight", true);
      gate = activate(build, "sigmoid", gate, own_rows);
      shared = unpermuted(build, shared, gate, all);
    }
    y = add(build, y, shared, all);
  }
  return normed_after(build, x, y, options, after);
}

}  // namespace

// Builds BERT (Devlin et al., 2018) with its pooler and without a task's head; names are those of
// the published checkpoints. Dropout everywhere except after the activation, as published.
void build_bert(GraphBuilder& build, const ArchitectureOptions& options) {
  const Block block{options, options.sequence, false, true};
  const std::int64_t hidden = block.hidden;
  const std::int64_t rows = block.rows();
  const int words = embedding(build, "embeddings.word_embeddings.weight", options.shape.words,
                              hidden, rows, false);
  const int positions = embedding(build, "embeddings.position_embeddings.weight",
                                  options.shape.positions, hidden, rows, false);
  const int kinds = embedding(build, "embeddings.token_type_embeddings.weight", options.shape.kinds,
                              hidden, rows, false);
  int x = add(build, words, positions, block.elements());
  x = add(build, x, kinds, block.elements());
  x = normalise(build, "layer_norm", x, block.rows_between(), hidden, "embeddings.LayerNorm");
  x = dropout(build, x, block.elements());
  for (std::int64_t layer = 0; layer < options.shape.layers; ++layer) {
    const std::string at = "encoder.layer." + std::to_string(layer) + ".";
    const std::string self = at + "attention.self.";
    const BlockNames names{{self + "query", self + "key", self + "value"},
                           self + "qkv",
                           at + "attention.output.dense",
                           at + "attention.output.LayerNorm",
                           at + "intermediate.dense",
                           at + "output.dense",
                           at + "output.LayerNorm"};
    x = attention(build, x, block, names);
    x = feedforward(build, x, block, names);
  }
  x = first_tokens(build, x, options.batch * hidden, true);
  x = linear(build, x, options.batch, hidden, hidden, "pooler.dense", true, options.fused_linear);
  x = activate(build, "tanh", x, options.batch * hidden);
  mean_loss(build, x, options.batch * hidden);
}

// Builds GPT-2 (Radford et al., 2019). The head shares the word embedding, so its gradient is
// complete only at the end of the backward pass. Names and weights, stored as [inner, columns], are
// the published checkpoints'.
void build_gpt2(GraphBuilder& build, const ArchitectureOptions& options) {
  const std::int64_t hidden = options.shape.hidden;
  const std::int64_t vocabulary = own(options.shape.words, options);
  const Block block{options, options.sequence, true, false};
  const bool tied = options.parallel.pipeline == 1;  // otherwise each end has its own
  const std::int64_t rows = block.rows();
  const int words = embedding(build, "transformer.wte.weight", vocabulary, hidden, rows, tied);
  const int positions =
      embedding(build, "transformer.wpe.weight", options.shape.positions, hidden, rows, false);
  int x = add(build, words, positions, block.elements());
  x = dropout(build, x, block.elements());
  for (std::int64_t layer = 0; layer < options.shape.layers; ++layer) {
    const std::string at = "transformer.h." + std::to_string(layer) + ".";
    const BlockNames names{{at + "attn.c_attn"}, at + "attn.c_attn", at + "attn.c_proj",
                           at + "ln_1",          at + "mlp.c_fc",    at + "mlp.c_proj",
                           at + "ln_2"};
    x = attention(build, x, block, names);
    x = feedforward(build, x, block, names);
  }
  x = normalise(build, "layer_norm", x, block.rows_between(), hidden, "transformer.ln_f");
  const int logits = product(build, x, rows, hidden, vocabulary,
                             tied ? "transformer.wte.weight" : "lm_head.weight", true);
  cross_entropy(build, logits, rows * vocabulary);
}

// Builds the Vision Transformer (Dosovitskiy et al., 2020): an image's patches are tokens, with one
// more token for the class, as in torchvision. Attention is one kernel.
void build_vit(GraphBuilder& build, const ArchitectureOptions& options) {
  const std::int64_t side = options.image / options.shape.patch;
  Block block{options, side * side + 1, true, true};
  block.options.flash_attention = true;
  block.options.fused_attention = block.options.fused_feedforward = false;
  const Image patches = conv2d(build, input_image(build, options), "conv_proj.weight", block.hidden,
                               options.shape.patch, options.shape.patch);
  int x = add_bias(build, patches.value, patches.elements(), "conv_proj.bias", block.hidden);
  x = activate(build, "transpose2", x, patches.elements(), 0);
  x = with_class_token(build, x, block);
  x = add_bias(build, x, block.elements(), "encoder.pos_embedding", block.sequence * block.hidden);
  for (std::int64_t layer = 0; layer < options.shape.layers; ++layer) {
    const std::string at = "encoder.layers.encoder_layer_" + std::to_string(layer) + ".";
    const std::string self = at + "self_attention.";
    const BlockNames names{{self + "in_proj"}, self + "in_proj", self + "out_proj", at + "ln_1",
                           at + "mlp.0",       at + "mlp.3",     at + "ln_2"};
    x = attention(build, x, block, names);
    x = feedforward(build, x, block, names);
  }
  x = normalise(build, "layer_norm", x, block.rows(), block.hidden, "encoder.ln");
  x = first_tokens(build, x, options.batch * block.hidden, false);
  const int logits =
      linear(build, x, options.batch, block.hidden, options.classes, "heads.head", true, false);
  cross_entropy(build, logits, options.batch * options.classes);
}

// Builds Llama (Touvron et al., 2023) and models like it: Mistral, Qwen with biases or normalised
// heads, Gemma and OLMo 2 with other normalisations, Phi-3 with fewer products. RMSNorm before each
// half, rotary positions, grouped-query attention in one kernel, SwiGLU; no dropout. Names are
// those of the Hugging Face checkpoints.
void build_llama(GraphBuilder& build, const ArchitectureOptions& options) {
  const TransformerShape& shape = options.shape;
  const std::int64_t rows = options.rows();
  const std::string words = "model.embed_tokens.weight";
  const bool tied = shape.tied && options.parallel.pipeline == 1;  // otherwise each end has its own
  int x = embedding(build, words, own(shape.words, options), shape.hidden, rows, tied);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    x = llama_attention(build, x, options, at);
    x = llama_feedforward(build, x, options, at, shape.experts == 0 || layer < shape.dense_layers);
  }
  x = rms_norm(build, x, options.own_rows(), shape.hidden, "model.norm");
  const int logits = product(build, x, rows, shape.hidden, own(shape.words, options),
                             tied ? words : "lm_head.weight", true);
  cross_entropy(build, logits, rows * own(shape.words, options));
}

}  // namespace syncline::operators
