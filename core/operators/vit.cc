// Vision Transformer (Dosovitskiy et al., 2020): an image cut into patches, each a token, and one
// token more for the class, as in torchvision. Attention is one kernel.
#include "core/operators/transformer.h"

namespace syncline::operators {
namespace {

// The patches' tokens with the class's in front.
int with_class_token(GraphBuilder& build, int patches, const BlockShape& shape) {
  const int token = build.parameter("class_token", {1, 1, shape.hidden}, true);
  const int y = build.activation(shape.elements());
  build.add("concat", {{patches}, {token}}, {{y}});
  build.on_backward([=, &build] {
    const int dy = build.gradient(y);
    const int dpatches = build.contribute(patches);
    const int dtoken = build.contribute_parameter(token);
    build.add("concat_grad", {{dy}}, {{dpatches}, {dtoken}});
  });
  return y;
}

// The class's token of each sample, which alone reaches the head.
int class_token_of(GraphBuilder& build, int x, const BlockShape& shape) {
  const int first = build.activation(shape.batch * shape.hidden);
  build.add("slice", {{x, 0}}, {{first}});
  build.on_backward(
      [=, &build] { build.add("slice_grad", {{build.gradient(first)}}, {{build.contribute(x)}}); });
  return first;
}

}  // namespace

void build_vit(GraphBuilder& build, const ArchitectureOptions& options) {
  const std::int64_t side = options.image / options.shape.patch;
  const BlockShape shape = block_shape(options, side * side + 1);
  const BlockStyle style{.norm_first = true, .stored_out = true, .flash_attention = true};
  Image image{0, options.batch, 3, options.image};
  image.value = build.activation(image.elements());
  build.mark_constant(image.value);
  const Image patches = conv2d(build, image, "conv_proj.weight", shape.hidden, options.shape.patch,
                               options.shape.patch);
  int x = add_bias(build, patches.value, patches.elements(), "conv_proj.bias", shape.hidden);
  x = transpose(build, x, patches.elements());
  x = with_class_token(build, x, shape);
  x = add_bias(build, x, shape.elements(), "encoder.pos_embedding", shape.sequence * shape.hidden);
  for (std::int64_t layer = 0; layer < options.shape.layers; ++layer) {
    const std::string at = "encoder.layers.encoder_layer_" + std::to_string(layer) + ".";
    const std::string self = at + "self_attention.";
    const BlockNames names{{self + "in_proj"}, self + "in_proj", self + "out_proj", at + "ln_1",
                           at + "mlp.0",       at + "mlp.3",     at + "ln_2"};
    x = attention(build, x, shape, names, style);
    x = feedforward(build, x, shape, names, style);
  }
  x = layer_norm(build, x, shape.rows(), shape.hidden, "encoder.ln");
  x = class_token_of(build, x, shape);
  const int logits = linear(build, x, options.batch, shape.hidden, options.classes,
                            "heads.head.weight", "heads.head.bias", true, false);
  cross_entropy(build, logits, options.batch * options.classes);
}

}  // namespace syncline::operators
