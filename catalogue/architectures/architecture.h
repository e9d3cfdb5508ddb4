// Architectures with generated operators: one training step, forward, backward and update, with the
// gradients in backward order. Each is one row of the table in architecture.cc.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalogue/architectures/builder.h"

namespace syncline::operators {

// Sizes that distinguish the transformers of a family. 0: the default in the comment, or not of
// this family.
struct TransformerShape {
  // Normalisations of a half: of its input (Llama), of its output (OLMo 2), of both (Gemma 2).
  enum class Norms : std::uint8_t { kBefore, kAfter, kBoth };
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;     // heads of keys and values (llama); default: heads
  std::int64_t head_width = 0;   // default: hidden / heads (llama)
  std::int64_t inner = 0;        // width of the feed-forward half; default: 4 hidden
  std::int64_t words = 0;        // size of the vocabulary
  std::int64_t positions = 0;    // table of embeddings (bert, gpt2), or longest in training
  std::int64_t kinds = 2;        // kinds of tokens (bert)
  std::int64_t patch = 16;       // height and width of a patch of the image (vit)
  bool tied = false;             // the head shares the word embedding (llama; gpt2 always does)
  bool bias = false;             // queries, keys and values have one (llama: as in Qwen2)
  bool head_norm = false;        // queries and keys are normalised per head (llama: as in Qwen3)
  bool gated = true;             // the inner half has a gate (llama: not in Nemotron)
  Norms norms = Norms::kBefore;  // (llama)
  bool joint_norm = false;       // queries and keys are normalised across heads (llama: OLMo 2)
  bool merged = false;  // one product each for query, key, value, and for gate, up (llama: Phi-3)
  // A mixture of experts (llama: as in Mixtral, DeepSeek): tokens go to experts of `expert_inner`
  // and to a shared one of `shared_inner` (0: none). The first `dense_layers` have no experts.
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 2;
  std::int64_t expert_inner = 0;
  std::int64_t shared_inner = 0;
  std::int64_t dense_layers = 0;
  bool shared_gate = false;  // weighs the shared expert (llama: as in Qwen2-MoE)
  // Sizes of latent attention (llama: as in DeepSeek-V2): of queries, and of keys with values.
  // `rope_width` of a head's query and key, besides head_width, rotate by position.
  std::int64_t query_latent = 0;
  std::int64_t latent = 0;
  std::int64_t rope_width = 0;

  bool operator==(const TransformerShape&) const = default;
};

// Collectives inside the layers of a partitioned model, per micro-batch. `bytes` is the whole
// payload that a rank begins or ends with; for a ring, that of each turn. Forward and backward
// counts are of all layers together.
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
  double hidden_flops = 0;  // products that overlap each forward one; backward twice that
};

struct ArchitectureOptions {
  std::int64_t batch = 1;
  DType dtype = DType::kFp32;
  bool rounded = false;  // fp32 products in TF32; half-precision ones in FP8, except the head's
  Layout layout = Layout::kNchw;  // layout of images
  std::int64_t image = 224;       // height and width
  std::int64_t classes = 1000;
  std::int64_t sequence = 128;  // tokens per sample
  Optimizer optimizer = Optimizer::kMomentum;
  // Uses Paddle's fused layers for the transformer, as launched by its FusedMultiHeadAttention,
  // FusedFeedForward and FusedLinear.
  bool fused_attention = false;
  bool fused_feedforward = false;
  bool fused_linear = false;
  // Attention is one kernel that never writes its scores, forward and backward (torch's
  // scaled_dot_product_attention). llama and vit have no other.
  bool flash_attention = false;
  // PyTorch's modules from transformers and torchvision, not compiled: norms, rotary embeddings,
  // activations and the loss are chains of kernels, and the optimizer loops over lists.
  bool eager = false;
  // Gradients are stored and sent in fp32 for any type of products, as under torch.autocast.
  bool fp32_gradients = false;
  // Shape for an architecture that is `shaped`; the others have their own.
  TransformerShape shape;
  // The partitioning: operators and gradients are those of one rank, as if it held all layers.
  Parallel parallel;

  // Returns a rank's tokens; own_rows() those for its norms and residuals.
  std::int64_t rows() const { return batch * sequence / parallel.context; }
  std::int64_t own_rows() const { return parallel.sequence ? rows() / parallel.tensor : rows(); }
};

struct Generated {
  Shared<OperatorList> operators;
  std::vector<Tensor> tensors;
  std::vector<Tensor> buffers;
  std::vector<Inner> inner;
  Bytes activation = 0;  // output of one layer, input of the next
  Bytes tied = 0;        // an embedding of which both ends of a pipeline hold a copy
};

struct Architecture {
  std::string_view name;
  std::string_view summary;
  bool images = false;       // takes image and classes; others take sequence
  bool fused = false;        // has Paddle's fused layers, and both kinds of attention
  std::int64_t longest = 0;  // longest sequence, by its table of positions; 0: the shape's
  Optimizer optimizer = Optimizer::kMomentum;
  void (*build)(GraphBuilder&, const ArchitectureOptions&);
  TransformerShape shape{};
  bool shaped = false;  // a family: its shape must be given
};

std::span<const Architecture> architectures();
const Architecture* find_architecture(std::string_view name);  // or nullptr
std::vector<std::string> architecture_names();

// Returns one step. Requires a shape with sizes if the architecture is `shaped`, and an image side
// that is a multiple of the patch.
Generated generate(const Architecture& architecture, const ArchitectureOptions& options);

// Sets kernels and traffic of operators in `list` to those of PyTorch's uncompiled chains.
// `new_gelu`: activations are GPT-2's.
void set_eager_kernels(OperatorList& list, const ArchitectureOptions& options, bool new_gelu);

// Returns the parameters of the whole model, by its gradients.
std::int64_t parameters_of(const Generated& generated);

// Returns the collectives inside the layers of a partitioned transformer, as in Megatron
// (Korthikanti et al. 2022, 4.2). Requires a completed shape.
std::vector<Inner> inner_collectives(const ArchitectureOptions& options);

// Returns the shape with sizes that depend on its other sizes filled in.
TransformerShape complete_shape(TransformerShape shape);

// Shape of a ResNet.
struct ResNet {
  std::array<int, 4> blocks{};  // of each stage
  bool bottleneck = true;
  bool stride_first = false;  // a block's first convolution has the stride
  std::int64_t width = 1;     // factor of the inner channels of a bottleneck
};
// Adds the operators of a row's network; each of these builders has its own file.
void build_resnet(GraphBuilder& build, const ArchitectureOptions& options, const ResNet& net);
// Adds VGG. `deep`: convolutions of each image size.
void build_vgg(GraphBuilder& build, const ArchitectureOptions& options,
               const std::array<int, 5>& deep);
void build_bert(GraphBuilder& build, const ArchitectureOptions& options);
void build_gpt2(GraphBuilder& build, const ArchitectureOptions& options);
void build_llama(GraphBuilder& build, const ArchitectureOptions& options);
void build_vit(GraphBuilder& build, const ArchitectureOptions& options);

// Largest sizes of a transformer, in a scenario and in a model's own file: larger than any trained
// one, and small enough that no product of them overflows.
inline constexpr std::int64_t kMaxLayers = 2048;
inline constexpr std::int64_t kMaxHidden = 1 << 20;
inline constexpr std::int64_t kMaxHeads = 1 << 14;
inline constexpr std::int64_t kMaxHeadWidth = 1 << 16;
inline constexpr std::int64_t kMaxFfnWidth = 1 << 22;
inline constexpr std::int64_t kMaxVocabulary = 1 << 24;  // positions and classes too
inline constexpr std::int64_t kMaxTokenTypes = 1024;
// Limits of an image's side, in pixels. Five halvings reduce a smaller image to nothing.
inline constexpr std::int64_t kMinImage = 32;
inline constexpr std::int64_t kMaxImage = 4096;
inline constexpr double kMaxElements = 1e15;  // elements of one tensor of a step

}  // namespace syncline::operators
