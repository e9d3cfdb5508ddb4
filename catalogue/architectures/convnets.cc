// Convolutional networks: ResNet-50, VGG-16.
#include <array>
#include <vector>

#include "catalogue/architectures/architecture.h"
#include "catalogue/architectures/transformer.h"

namespace syncline::operators {
namespace {

Image conv_bn(GraphBuilder& build, const Image& x, const std::string& conv, const std::string& bn,
              std::int64_t channels, std::int64_t kernel, std::int64_t stride, bool relu) {
  Image y = conv2d(build, x, conv + "_weights", channels, kernel, stride);
  y = batch_norm(build, y, bn);
  if (relu) y.value = activate(build, "relu", y.value, y.elements());
  return y;
}

// Adds three convolutions, then the shortcut: the identity, or a projection if the shape changes.
Image bottleneck(GraphBuilder& build, const Image& x, const std::string& name,
                 std::int64_t channels, std::int64_t stride, bool stride_first) {
  const auto branch = [&](const Image& in, const char* part, std::int64_t out, std::int64_t kernel,
                          std::int64_t step, bool relu) {
    const std::string suffix = name + "_branch" + part;
    return conv_bn(build, in, "res" + suffix, "bn" + suffix, out, kernel, step, relu);
  };
  Image y = branch(x, "2a", channels, 1, stride_first ? stride : 1, true);
  y = branch(y, "2b", channels, 3, stride_first ? 1 : stride, true);
  y = branch(y, "2c", 4 * channels, 1, 1, false);
  Image shortcut = x;
  if (x.channels != y.channels || stride != 1) {
    shortcut = branch(x, "1", 4 * channels, 1, stride, false);
  }
  y.value = add(build, shortcut.value, y.value, y.elements());
  y.value = activate(build, "relu", y.value, y.elements());
  return y;
}

}  // namespace

void build_resnet50(GraphBuilder& build, const ArchitectureOptions& options, bool stride_first) {
  Image x = input_image(build, options);
  x = conv_bn(build, x, "conv1", "bn_conv1", 64, 7, 2, true);
  x = pool(build, x, false);
  constexpr std::array<int, 4> kBlocks{3, 4, 6, 3};
  for (std::size_t stage = 0; stage < kBlocks.size(); ++stage) {
    for (int block = 0; block < kBlocks[stage]; ++block) {
      const std::string name =
          std::to_string(stage + 2) + std::string(1, static_cast<char>('a' + block));
      const std::int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      x = bottleneck(build, x, name, std::int64_t{64} << stage, stride, stride_first);
    }
  }
  x = pool(build, x, true);
  const std::int64_t logits = options.batch * options.classes;
  int y = product(build, x.value, options.batch, x.channels, options.classes, "fc_0.w_0", false);
  y = add_bias(build, y, logits, "fc_0.b_0", options.classes);
  cross_entropy(build, y, logits);
}

// Builds VGG (Simonyan and Zisserman, 2014): convolutions with bias, `deep` in each of the last
// three sizes, and three fully connected layers. In Paddle a convolution's bias is a separate
// elementwise_add, before the relu.
void build_vgg(GraphBuilder& build, const ArchitectureOptions& options, std::size_t deep) {
  Image x = input_image(build, options);
  int position = 0;  // index in torchvision's list of layers, for the names
  using Channels = std::vector<std::int64_t>;
  const std::vector<Channels> groups{
      {64, 64}, {128, 128}, Channels(deep, 256), Channels(deep, 512), Channels(deep, 512)};
  for (const auto& group : groups) {
    for (const auto channels : group) {
      const std::string name = "features." + std::to_string(position);
      x = conv2d(build, x, name + ".weight", channels, 3, 1);
      x.value = add_bias(build, x.value, x.elements(), name + ".bias", channels);
      x.value = activate(build, "relu", x.value, x.elements());
      position += 2;
    }
    x = pool(build, x, false);
    ++position;
  }
  int y = x.value;
  std::int64_t inner = x.channels * x.size * x.size;
  for (const int layer : {0, 3, 6}) {
    const std::string name = "classifier." + std::to_string(layer);
    const std::int64_t columns = layer == 6 ? options.classes : 4096;
    y = linear(build, y, options.batch, inner, columns, name, true, false);
    inner = columns;
    if (layer == 6) break;
    y = activate(build, "relu", y, options.batch * columns);
    y = dropout(build, y, options.batch * columns);
  }
  cross_entropy(build, y, options.batch * options.classes);
}

}  // namespace syncline::operators
