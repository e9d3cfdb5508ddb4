// BERT (Devlin et al., 2018) with its pooler and no task's head; the names are those of the
// published checkpoints. Dropout everywhere but after the activation, as published.
#include "core/operators/transformer.h"

namespace syncline::operators {

void build_bert(GraphBuilder& build, const ArchitectureOptions& options) {
  const BlockShape shape = block_shape(options, options.sequence);
  const BlockStyle style{.norm_first = false,
                         .stored_out = true,
                         .fused_attention = options.fused_attention,
                         .fused_feedforward = options.fused_feedforward,
                         .fused_linear = options.fused_linear,
                         .flash_attention = options.flash_attention};
  const std::int64_t hidden = shape.hidden;
  const std::int64_t rows = shape.rows();
  const int words = embedding(build, "embeddings.word_embeddings.weight", options.shape.words,
                              hidden, rows, false);
  const int positions = embedding(build, "embeddings.position_embeddings.weight",
                                  options.shape.positions, hidden, rows, false);
  const int kinds = embedding(build, "embeddings.token_type_embeddings.weight", options.shape.kinds,
                              hidden, rows, false);
  int x = add(build, words, positions, shape.elements());
  x = add(build, x, kinds, shape.elements());
  x = layer_norm(build, x, rows, hidden, "embeddings.LayerNorm");
  x = dropout(build, x, shape.elements());
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
    x = attention(build, x, shape, names, style);
    x = feedforward(build, x, shape, names, style);
  }
  // The pooler takes each sample's first token; the others' gradient is zero, and written.
  const int first = build.activation(options.batch * hidden);
  const int read = build.activation(options.batch * hidden);
  build.add("slice", {{x, 0}, {read}}, {{first}});
  build.on_backward(
      [=, &build] { build.add("slice_grad", {{build.gradient(first)}}, {{build.contribute(x)}}); });
  int pooled = linear(build, first, options.batch, hidden, hidden, "pooler.dense.weight",
                      "pooler.dense.bias", true, options.fused_linear);
  pooled = activate(build, "tanh", pooled, options.batch * hidden);
  mean_loss(build, pooled, options.batch * hidden);
}

}  // namespace syncline::operators
