// GPT-2 small (Radford et al., 2019), 12 layers of 768; the language model's head shares the word
// embedding, whose gradient is therefore complete only at the end of the backward pass. Names and
// weights stored as [inner, columns] like the published checkpoints.
#include "core/operators/transformer.h"

namespace syncline::operators {

void build_gpt2_small(GraphBuilder& build, const ArchitectureOptions& options) {
  constexpr std::int64_t kHidden = 768, kWords = 50257, kPositions = 1024;
  constexpr int kLayers = 12;
  const BlockShape shape{options.batch, options.sequence, kHidden, 12};
  const BlockStyle style{true, false, options.fused_attention, options.fused_feedforward,
                         options.fused_linear};
  const std::int64_t rows = shape.rows();
  const int words = embedding(build, "transformer.wte.weight", kWords, kHidden, rows, true);
  const int positions =
      embedding(build, "transformer.wpe.weight", kPositions, kHidden, rows, false);
  int x = add(build, words, positions, shape.elements());
  x = dropout(build, x, shape.elements());
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string at = "transformer.h." + std::to_string(layer) + ".";
    const BlockNames names{{at + "attn.c_attn"}, at + "attn.c_attn", at + "attn.c_proj",
                           at + "ln_1",          at + "mlp.c_fc",    at + "mlp.c_proj",
                           at + "ln_2"};
    x = attention(build, x, shape, names, style);
    x = feedforward(build, x, shape, names, style);
  }
  x = layer_norm(build, x, rows, kHidden, "transformer.ln_f");
  const int logits = product(build, x, rows, kHidden, kWords, "transformer.wte.weight", true);
  cross_entropy(build, logits, rows * kWords);
}

}  // namespace syncline::operators
