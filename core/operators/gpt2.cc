// GPT-2 (Radford et al., 2019); the language model's head shares the word
// embedding, whose gradient is therefore complete only at the end of the backward pass. Names and
// weights stored as [inner, columns] like the published checkpoints.
#include "core/operators/transformer.h"

namespace syncline::operators {

void build_gpt2(GraphBuilder& build, const ArchitectureOptions& options) {
  const std::int64_t hidden = options.shape.hidden;
  const std::int64_t vocabulary = options.shape.words;
  const BlockShape shape = block_shape(options, options.sequence);
  const BlockStyle style{.norm_first = true,
                         .stored_out = false,
                         .fused_attention = options.fused_attention,
                         .fused_feedforward = options.fused_feedforward,
                         .fused_linear = options.fused_linear,
                         .flash_attention = options.flash_attention};
  const std::int64_t rows = shape.rows();
  const int words = embedding(build, "transformer.wte.weight", vocabulary, hidden, rows, true);
  const int positions =
      embedding(build, "transformer.wpe.weight", options.shape.positions, hidden, rows, false);
  int x = add(build, words, positions, shape.elements());
  x = dropout(build, x, shape.elements());
  for (std::int64_t layer = 0; layer < options.shape.layers; ++layer) {
    const std::string at = "transformer.h." + std::to_string(layer) + ".";
    const BlockNames names{{at + "attn.c_attn"}, at + "attn.c_attn", at + "attn.c_proj",
                           at + "ln_1",          at + "mlp.c_fc",    at + "mlp.c_proj",
                           at + "ln_2"};
    x = attention(build, x, shape, names, style);
    x = feedforward(build, x, shape, names, style);
  }
  x = layer_norm(build, x, rows, hidden, "transformer.ln_f");
  const int logits = product(build, x, rows, hidden, vocabulary, "transformer.wte.weight", true);
  cross_entropy(build, logits, rows * vocabulary);
}

}  // namespace syncline::operators
