// Architectures whose operators are generated: one training step, forward, backward and update,
// with the gradients in backward order. Each is one row here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/operators/builder.h"

namespace syncline::operators {

struct ArchitectureOptions {
  std::int64_t batch = 1;
  DType dtype = DType::kFp32;
  Layout layout = Layout::kNchw;  // of images
  std::int64_t image = 224;       // height and width
  std::int64_t classes = 1000;
  std::int64_t sequence = 128;  // tokens a sample
  Optimizer optimizer = Optimizer::kMomentum;
  // The transformer written with Paddle's fused layers, as its FusedMultiHeadAttention,
  // FusedFeedForward and FusedLinear launch them.
  bool fused_attention = false;
  bool fused_feedforward = false;
  bool fused_linear = false;
};

struct Generated {
  OperatorList operators;
  std::vector<Tensor> tensors;
  std::vector<Tensor> buffers;
};

struct Architecture {
  std::string_view name;
  std::string_view summary;
  bool images = false;       // takes image and classes; others take sequence and the fused layers
  std::int64_t longest = 0;  // sequence, by its table of positions
  Optimizer optimizer = Optimizer::kMomentum;
  void (*build)(GraphBuilder&, const ArchitectureOptions&);
};

std::span<const Architecture> architectures();
const Architecture* find_architecture(std::string_view name);  // or nullptr
std::vector<std::string> architecture_names();

Generated generate(const Architecture& architecture, const ArchitectureOptions& options);

// The rows, each in a file of its own.
void build_resnet50(GraphBuilder& build, const ArchitectureOptions& options);
void build_resnet50_v1_5(GraphBuilder& build, const ArchitectureOptions& options);
void build_vgg16(GraphBuilder& build, const ArchitectureOptions& options);
void build_bert_base(GraphBuilder& build, const ArchitectureOptions& options);
void build_bert_large(GraphBuilder& build, const ArchitectureOptions& options);
void build_gpt2_small(GraphBuilder& build, const ArchitectureOptions& options);

}  // namespace syncline::operators
