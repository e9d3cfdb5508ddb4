// VGG-16 (Simonyan and Zisserman, 2014): 13 convolutions with bias, three fully connected layers.
// In Paddle a convolution's bias is an elementwise_add of its own, before the relu.
#include <vector>

#include "core/operators/architecture.h"
#include "core/operators/layers.h"

namespace syncline::operators {

void build_vgg16(GraphBuilder& build, const ArchitectureOptions& options) {
  Image x{0, options.batch, 3, options.image};
  x.value = build.activation(x.elements());
  build.mark_constant(x.value);
  int position = 0;  // in torchvision's list of layers, which the names count
  const std::vector<std::vector<std::int64_t>> groups{
      {64, 64}, {128, 128}, {256, 256, 256}, {512, 512, 512}, {512, 512, 512}};
  for (const auto& group : groups) {
    for (const auto channels : group) {
      const std::string name = "features." + std::to_string(position);
      x = conv2d(build, x, name + ".weight", channels, 3, 1);
      x.value = add_bias(build, x.value, x.elements(), name + ".bias", channels);
      x.value = activate(build, "relu", x.value, x.elements());
      position += 2;
    }
    x = max_pool(build, x);
    ++position;
  }
  int y = x.value;
  std::int64_t inner = x.channels * x.size * x.size;
  for (const int layer : {0, 3, 6}) {
    const std::string name = "classifier." + std::to_string(layer);
    const std::int64_t columns = layer == 6 ? options.classes : 4096;
    y = linear(build, y, options.batch, inner, columns, name + ".weight", name + ".bias", true,
               false);
    inner = columns;
    if (layer == 6) break;
    y = activate(build, "relu", y, options.batch * columns);
    y = dropout(build, y, options.batch * columns);
  }
  cross_entropy(build, y, options.batch * options.classes);
}

}  // namespace syncline::operators
