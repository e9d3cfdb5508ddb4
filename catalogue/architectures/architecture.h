// Architectures whose operators are generated: one training step, forward, backward and update,
// with the gradients in backward order. Each is one row here.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalogue/architectures/builder.h"

namespace syncline::operators {

// What tells one transformer of a family from another. 0: as the comment says, or not of this
// family.
struct TransformerShape {
  // Normalisations of a half: of its input (Llama), of its output (OLMo 2), of both (Gemma 2).
  enum class Norms : std::uint8_t { kBefore, kAfter, kBoth };
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;     // of keys and values, as many as heads unless given (llama)
  std::int64_t head_width = 0;   // hidden / heads unless given (llama)
  std::int64_t inner = 0;        // of the feed-forward half, 4 hidden unless given
  std::int64_t words = 0;        // of the vocabulary
  std::int64_t positions = 0;    // that have an embedding (bert, gpt2), or that it was trained for
  std::int64_t kinds = 2;        // of tokens (bert)
  std::int64_t patch = 16;       // height and width of a patch of the image (vit)
  bool tied = false;             // the head shares the word embedding (llama; gpt2 always does)
  bool bias = false;             // of the query, key and value products (llama: as Qwen2 has it)
  bool head_norm = false;        // queries and keys are normalised head by head (llama: as Qwen3)
  bool gated = true;             // the inner half has a gate beside it (llama: Nemotron has none)
  Norms norms = Norms::kBefore;  // (llama)
  bool joint_norm = false;       // queries and keys are normalised across heads (llama: OLMo 2)
  bool merged = false;  // one product each for query, key, value, and for gate, up (llama: Phi-3)
  // A mixture of experts (llama: as Mixtral, DeepSeek): each token goes to some of so many experts
  // of `expert_inner` and to one that all share, of `shared_inner`; the first layers have none.
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 2;
  std::int64_t expert_inner = 0;
  std::int64_t shared_inner = 0;
  std::int64_t dense_layers = 0;
  bool shared_gate = false;  // weighs what all share (llama: as Qwen2-MoE)
  // Latent attention (llama: as DeepSeek-V2): queries, and keys with values, by way of so many
  // numbers; `rope_width` of a head's query and key turn by position, beside its head_width.
  std::int64_t query_latent = 0;
  std::int64_t latent = 0;
  std::int64_t rope_width = 0;
};

// Collectives inside a layer of a model that is cut: what, among whom, how often in one
// micro-batch. `bytes` are of the whole payload that a rank ends or begins with; of a ring, of each
// turn. Forward and backward counts are of all layers together.
struct Inner {
  enum class Axis { kTensor, kContext, kExpert } axis = Axis::kTensor;
  enum class Form {
    kAllReduce,
    kReduceScatter,
    kAllGather,
    kAllToAll,
    kRing
  } form = Form::kAllReduce;
  Bytes bytes = 0;
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  double hidden_flops = 0;  // of the products beside each forward one; twice that backward
};

struct ArchitectureOptions {
  std::int64_t batch = 1;
  DType dtype = DType::kFp32;
  bool rounded = false;  // products in TF32 of fp32; of half precision in FP8, but for the head's
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
  // Attention as one kernel that never writes its scores, forward and backward (torch's
  // scaled_dot_product_attention). llama and vit have no other.
  bool flash_attention = false;
  // PyTorch's modules as they come from transformers and torchvision, not compiled: norms, rotary
  // embeddings, activations and the loss are chains of kernels, and the optimizer walks lists.
  bool eager = false;
  // Gradients travel and are kept in fp32 whatever the products are in, as under torch.autocast.
  bool fp32_gradients = false;
  // Of an architecture that is `shaped`; the others have their own.
  TransformerShape shape;
  // How it is cut: the operators and gradients are those of one rank, were it to hold all layers.
  Parallel parallel;

  // Tokens of a rank, and of those the ones whose norms and residuals it computes.
  std::int64_t rows() const { return batch * sequence / parallel.context; }
  std::int64_t own_rows() const { return parallel.sequence ? rows() / parallel.tensor : rows(); }
};

struct Generated {
  OperatorList operators;
  std::vector<Tensor> tensors;
  std::vector<Tensor> buffers;
  std::vector<Inner> inner;
  Bytes activation = 0;  // what one layer hands to the next
  Bytes tied = 0;        // of an embedding of which a pipeline's both ends hold a copy
};

struct Architecture {
  std::string_view name;
  std::string_view summary;
  bool images = false;       // takes image and classes; others take sequence
  bool fused = false;        // has Paddle's fused layers, and attention either way
  std::int64_t longest = 0;  // sequence, by its table of positions; 0: the shape's
  Optimizer optimizer = Optimizer::kMomentum;
  void (*build)(GraphBuilder&, const ArchitectureOptions&);
  TransformerShape shape{};
  bool shaped = false;  // a family: its shape must be given
};

std::span<const Architecture> architectures();
const Architecture* find_architecture(std::string_view name);  // or nullptr
std::vector<std::string> architecture_names();

// A shaped architecture's shape must have its sizes. Images must be whole patches.
Generated generate(const Architecture& architecture, const ArchitectureOptions& options);

// The operators of `list` as PyTorch launches them where `options.eager`. `new_gelu`: activations
// are GPT-2's.
void take_apart(OperatorList& list, const ArchitectureOptions& options, bool new_gelu);

// Of the whole model, as its gradients have it.
std::int64_t parameters_of(const Generated& generated);

// The collectives inside the layers of a transformer that is cut, as Megatron has them (Korthikanti
// et al. 2022, 4.2); its shape completed.
std::vector<Inner> inner_collectives(const ArchitectureOptions& options);

// Fills in what a shape leaves to its other sizes.
TransformerShape completed(TransformerShape shape);

// The rows, each in a file of its own.
struct ResNet {
  std::array<int, 4> blocks{};  // of each stage
  bool bottleneck = true;
  bool stride_first = false;  // of a block's convolutions the first has the stride
  std::int64_t width = 1;     // factor of the inner channels of a bottleneck
};
void build_resnet(GraphBuilder& build, const ArchitectureOptions& options, const ResNet& net);
// `deep`: convolutions of each image size.
void build_vgg(GraphBuilder& build, const ArchitectureOptions& options,
               const std::array<int, 5>& deep);
void build_bert(GraphBuilder& build, const ArchitectureOptions& options);
void build_gpt2(GraphBuilder& build, const ArchitectureOptions& options);
void build_llama(GraphBuilder& build, const ArchitectureOptions& options);
void build_vit(GraphBuilder& build, const ArchitectureOptions& options);

// The largest sizes that a transformer may be given, in a scenario and in a model's own file:
// beyond what is trained, and small enough for every product of them to be counted.
inline constexpr std::int64_t kMostLayers = 2048;
inline constexpr std::int64_t kMostHidden = 1 << 20;
inline constexpr std::int64_t kMostHeads = 1 << 14;
inline constexpr std::int64_t kMostHeadWidth = 1 << 16;
inline constexpr std::int64_t kMostInner = 1 << 22;
inline constexpr std::int64_t kMostWords = 1 << 24;  // positions and classes too
inline constexpr std::int64_t kMostKinds = 1024;
// Of an image, in pixels of a side. Five halvings leave nothing of a smaller one.
inline constexpr std::int64_t kLeastImage = 32;
inline constexpr std::int64_t kMostImage = 4096;
inline constexpr double kMostElements = 1e15;  // of one tensor of a step

}  // namespace syncline::operators
