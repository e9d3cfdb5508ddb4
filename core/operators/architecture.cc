#include "core/operators/architecture.h"

#include <algorithm>
#include <array>
#include <utility>

namespace syncline::operators {

std::span<const Architecture> architectures() {
  static const std::array<Architecture, 6> rows{{
      {"resnet50", "ResNet-50 v1, the stride in the first convolution of a block, Paddle's names",
       true, 0, Optimizer::kMomentum, build_resnet50},
      {"resnet50_v1.5", "ResNet-50 v1.5, the stride in the 3 x 3 convolution, Paddle's names", true,
       0, Optimizer::kMomentum, build_resnet50_v1_5},
      {"vgg16", "VGG-16 without batch normalisation, torchvision's names", true, 0,
       Optimizer::kMomentum, build_vgg16},
      {"bert_base", "BERT-base with its pooler, no task's head", false, 512, Optimizer::kAdam,
       build_bert_base},
      {"bert_large", "BERT-large with its pooler, no task's head", false, 512, Optimizer::kAdam,
       build_bert_large},
      {"gpt2_small", "GPT-2 small, its language model head tied to the embedding", false, 1024,
       Optimizer::kAdam, build_gpt2_small},
  }};
  return rows;
}

const Architecture* find_architecture(std::string_view name) {
  const auto rows = architectures();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const auto& a) { return a.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const auto& row : architectures()) names.emplace_back(row.name);
  return names;
}

Generated generate(const Architecture& architecture, const ArchitectureOptions& options) {
  GraphBuilder build(options.dtype, options.layout);
  architecture.build(build, options);
  build.backward();
  build.update(options.optimizer);
  return {std::move(build.list), std::move(build.tensors), std::move(build.buffers)};
}

}  // namespace syncline::operators
