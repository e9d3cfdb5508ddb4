// Convolutional networks: ResNet and VGG.
#include <algorithm>
#include <string>

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

// A block's place, its name and its sizes.
struct BlockPlace {
  std::string name;
  std::int64_t channels;
  std::int64_t stride;
};

// Adds three convolutions, or two of a basic block, then the shortcut: the identity, or a
// projection if the shape changes.
Image residual(GraphBuilder& build, const Image& x, const BlockPlace& place, const ResNet& net) {
  const auto branch = [&](const Image& in, const char* part, std::int64_t out, std::int64_t kernel,
                          std::int64_t step, bool relu) {
    const std::string suffix = place.name + "_branch" + part;
    return conv_bn(build, in, "res" + suffix, "bn" + suffix, out, kernel, step, relu);
  };
  const std::int64_t stride = place.stride;
  const std::int64_t out = place.channels * (net.bottleneck ? 4 : 1);
  Image y = x;
  if (net.bottleneck) {
    const std::int64_t inner = place.channels * net.width;
    y = branch(y, "2a", inner, 1, net.stride_first ? stride : 1, true);
    y = branch(y, "2b", inner, 3, net.stride_first ? 1 : stride, true);
    y = branch(y, "2c", out, 1, 1, false);
  } else {
    y = branch(y, "2a", out, 3, stride, true);
    y = branch(y, "2b", out, 3, 1, false);
  }
  Image shortcut = x;
  if (x.channels != y.channels || stride != 1) shortcut = branch(x, "1", out, 1, stride, false);
  y.value = add(build, shortcut.value, y.value, y.elements());
  y.value = activate(build, "relu", y.value, y.elements());
  return y;
}

// A block's letter, or of more than 26 a number, as in Caffe's names.
std::string block_name(std::size_t stage, int block, int blocks) {
  constexpr int kLetters = 26;
  const std::string name = std::to_string(stage + 2);
  if (blocks <= kLetters) return name + std::string(1, static_cast<char>('a' + block));
  return name + (block == 0 ? "a" : "b" + std::to_string(block));
}

}  // namespace

void build_resnet(GraphBuilder& build, const ArchitectureOptions& options, const ResNet& net) {
  Image x = input_image(build, options);
  x = conv_bn(build, x, "conv1", "bn_conv1", 64, 7, 2, true);
  x = pool(build, x, false);
  for (std::size_t stage = 0; stage < net.blocks.size(); ++stage) {
    const int blocks = net.blocks[stage];
    for (int block = 0; block < blocks; ++block) {
      const std::int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      x = residual(build, x, {block_name(stage, block, blocks), std::int64_t{64} << stage, stride},
                   net);
    }
  }
  x = pool(build, x, true);
  const std::int64_t logits = options.batch * options.classes;
  int y = product(build, x.value, options.batch, x.channels, options.classes, "fc_0.w_0", false);
  y = add_bias(build, y, logits, "fc_0.b_0", options.classes);
  cross_entropy(build, y, logits);
}

// Builds VGG (Simonyan and Zisserman, 2014): convolutions with bias and three fully connected
// layers. In Paddle a convolution's bias is an elementwise_add of its own, before the relu.
void build_vgg(GraphBuilder& build, const ArchitectureOptions& options,
               const std::array<int, 5>& deep) {
  Image x = input_image(build, options);
  int position = 0;  // index in torchvision's list of layers, for the names
  constexpr std::int64_t kWidest = 512;
  for (std::size_t size = 0; size < deep.size(); ++size) {
    const std::int64_t channels = std::min(std::int64_t{64} << size, kWidest);
    for (int one = 0; one < deep[size]; ++one) {
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
