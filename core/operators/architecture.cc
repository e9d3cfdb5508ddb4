#include "core/operators/architecture.h"

#include <algorithm>
#include <array>
#include <utility>

namespace syncline::operators {
namespace {

constexpr TransformerShape bert(std::int64_t layers, std::int64_t hidden) {
  return {
      .layers = layers, .hidden = hidden, .heads = hidden / 64, .words = 30522, .positions = 512};
}

constexpr TransformerShape gpt2(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {.layers = layers, .hidden = hidden, .heads = heads, .words = 50257, .positions = 1024};
}

constexpr TransformerShape vit(std::int64_t layers, std::int64_t hidden) {
  return {.layers = layers, .hidden = hidden, .heads = hidden / 64, .patch = 16};
}

// By the config.json beside each checkpoint on the Hugging Face hub.
constexpr TransformerShape kLlama2Of7b{
    .layers = 32, .hidden = 4096, .heads = 32, .inner = 11008, .words = 32000, .positions = 4096};
constexpr TransformerShape kLlama3Of8b{.layers = 32,
                                       .hidden = 4096,
                                       .heads = 32,
                                       .kv_heads = 8,
                                       .inner = 14336,
                                       .words = 128256,
                                       .positions = 8192};
constexpr TransformerShape kLlama32Of1b{.layers = 16,
                                        .hidden = 2048,
                                        .heads = 32,
                                        .kv_heads = 8,
                                        .inner = 8192,
                                        .words = 128256,
                                        .positions = 131072,
                                        .tied = true};
constexpr TransformerShape kTinyLlama{.layers = 22,
                                      .hidden = 2048,
                                      .heads = 32,
                                      .kv_heads = 4,
                                      .inner = 5632,
                                      .words = 32000,
                                      .positions = 2048};
constexpr TransformerShape kMistral7b{.layers = 32,
                                      .hidden = 4096,
                                      .heads = 32,
                                      .kv_heads = 8,
                                      .inner = 14336,
                                      .words = 32000,
                                      .positions = 32768};
constexpr TransformerShape kQwen2Of7b{.layers = 28,
                                      .hidden = 3584,
                                      .heads = 28,
                                      .kv_heads = 4,
                                      .inner = 18944,
                                      .words = 152064,
                                      .positions = 32768,
                                      .bias = true};
constexpr TransformerShape kQwen25Of05b{.layers = 24,
                                        .hidden = 896,
                                        .heads = 14,
                                        .kv_heads = 2,
                                        .inner = 4864,
                                        .words = 151936,
                                        .positions = 32768,
                                        .tied = true,
                                        .bias = true};
constexpr TransformerShape kQwen3Of06b{.layers = 28,
                                       .hidden = 1024,
                                       .heads = 16,
                                       .kv_heads = 8,
                                       .head_width = 128,
                                       .inner = 3072,
                                       .words = 151936,
                                       .positions = 40960,
                                       .tied = true,
                                       .head_norm = true};

constexpr TransformerShape llama3(std::int64_t layers, std::int64_t hidden, std::int64_t inner) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = hidden / 128,
          .kv_heads = 8,
          .inner = inner,
          .words = 128256,
          .positions = 131072};
}
constexpr TransformerShape kMixtral8x7b{.layers = 32,
                                        .hidden = 4096,
                                        .heads = 32,
                                        .kv_heads = 8,
                                        .inner = 14336,
                                        .words = 32000,
                                        .positions = 32768,
                                        .experts = 8,
                                        .experts_per_token = 2,
                                        .expert_inner = 14336};
constexpr TransformerShape kQwen3Of30b{.layers = 48,
                                       .hidden = 2048,
                                       .heads = 32,
                                       .kv_heads = 4,
                                       .head_width = 128,
                                       .inner = 6144,
                                       .words = 151936,
                                       .positions = 40960,
                                       .head_norm = true,
                                       .experts = 128,
                                       .experts_per_token = 8,
                                       .expert_inner = 768};
constexpr TransformerShape kDeepSeekV2{.layers = 60,
                                       .hidden = 5120,
                                       .heads = 128,
                                       .head_width = 128,
                                       .inner = 12288,
                                       .words = 102400,
                                       .positions = 163840,
                                       .experts = 160,
                                       .experts_per_token = 6,
                                       .expert_inner = 1536,
                                       .shared_inner = 3072,
                                       .dense_layers = 1,
                                       .query_latent = 1536,
                                       .latent = 512,
                                       .rope_width = 64};
constexpr TransformerShape kDeepSeekV3{.layers = 61,
                                       .hidden = 7168,
                                       .heads = 128,
                                       .head_width = 128,
                                       .inner = 18432,
                                       .words = 129280,
                                       .positions = 163840,
                                       .experts = 256,
                                       .experts_per_token = 8,
                                       .expert_inner = 2048,
                                       .shared_inner = 2048,
                                       .dense_layers = 3,
                                       .query_latent = 1536,
                                       .latent = 512,
                                       .rope_width = 64};
// Parmar et al., "Nemotron-4 15B Technical Report", 2024, and NVIDIA, "Nemotron-4 340B", 2024.
constexpr TransformerShape nemotron4(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = 8,
          .words = 256000,
          .positions = 4096,
          .gated = false};
}

Architecture images(std::string_view name, std::string_view summary,
                    void (*build)(GraphBuilder&, const ArchitectureOptions&)) {
  return {.name = name, .summary = summary, .images = true, .build = build};
}

// BERT and GPT-2: Paddle's layers as well as torch's.
Architecture language(std::string_view name, std::string_view summary,
                      void (*build)(GraphBuilder&, const ArchitectureOptions&),
                      const TransformerShape& shape) {
  return {.name = name,
          .summary = summary,
          .fused = true,
          .longest = shape.positions,
          .optimizer = Optimizer::kAdam,
          .build = build,
          .shape = shape,
          .shaped = shape.layers == 0};
}

Architecture llama(std::string_view name, std::string_view summary, const TransformerShape& shape) {
  Architecture row = language(name, summary, build_llama, shape);
  row.fused = false;
  row.longest = std::int64_t{1} << 20;  // positions are computed, no table ends
  return row;
}

Architecture vision(std::string_view name, std::string_view summary,
                    const TransformerShape& shape) {
  return {.name = name,
          .summary = summary,
          .images = true,
          .optimizer = Optimizer::kAdam,
          .build = build_vit,
          .shape = shape,
          .shaped = shape.layers == 0};
}

}  // namespace

std::span<const Architecture> architectures() {
  static const std::array rows{
      images("resnet50", "ResNet-50 v1 as in Paddle, stride in the first convolution",
             build_resnet50),
      images("resnet50_v1.5", "ResNet-50 v1.5, stride in the 3 x 3, Paddle's names",
             build_resnet50_v1_5),
      images("vgg16", "VGG-16 without batch normalisation, torchvision's names", build_vgg16),
      images("vgg19", "VGG-19, likewise", build_vgg19),
      vision("vit_b_16", "ViT-B/16 as torchvision has it", vit(12, 768)),
      vision("vit_l_16", "ViT-L/16, likewise", vit(24, 1024)),
      language("bert_base", "BERT-base with its pooler, no task's head", build_bert, bert(12, 768)),
      language("bert_large", "BERT-large with its pooler, no task's head", build_bert,
               bert(24, 1024)),
      language("gpt2_small", "GPT-2 small, its language model head tied to the embedding",
               build_gpt2, gpt2(12, 768, 12)),
      language("gpt2_medium", "GPT-2 medium, likewise", build_gpt2, gpt2(24, 1024, 16)),
      language("gpt2_large", "GPT-2 large, likewise", build_gpt2, gpt2(36, 1280, 20)),
      language("gpt2_xl", "GPT-2 XL, likewise", build_gpt2, gpt2(48, 1600, 25)),
      llama("llama2_7b", "Llama 2 7B", kLlama2Of7b),
      llama("llama3_8b", "Llama 3 8B, grouped queries", kLlama3Of8b),
      llama("llama3_70b", "Llama 3 70B, likewise", llama3(80, 8192, 28672)),
      llama("llama3.1_405b", "Llama 3.1 405B, likewise", llama3(126, 16384, 53248)),
      llama("llama3.2_1b", "Llama 3.2 1B, its head tied to the embedding", kLlama32Of1b),
      llama("tinyllama_1.1b", "TinyLlama 1.1B", kTinyLlama),
      llama("mistral_7b", "Mistral 7B v0.1", kMistral7b),
      llama("qwen2_7b", "Qwen2 and Qwen2.5 7B, biases on queries, keys and values", kQwen2Of7b),
      llama("qwen2.5_0.5b", "Qwen2.5 0.5B, likewise, its head tied to the embedding", kQwen25Of05b),
      llama("qwen3_0.6b", "Qwen3 0.6B, queries and keys normalised by head", kQwen3Of06b),
      llama("mixtral_8x7b", "Mixtral 8x7B, a mixture of experts", kMixtral8x7b),
      llama("qwen3_30b_a3b", "Qwen3 30B-A3B, likewise", kQwen3Of30b),
      llama("deepseek_v2", "DeepSeek-V2, likewise, latent attention", kDeepSeekV2),
      llama("deepseek_v3", "DeepSeek-V3 without its second head, likewise", kDeepSeekV3),
      llama("nemotron4_15b", "Nemotron-4 15B, no gates", nemotron4(32, 6144, 48)),
      llama("nemotron4_340b", "Nemotron-4 340B, likewise", nemotron4(96, 18432, 96)),
      llama("llama", "Llama, Mistral, Qwen: the sizes that `shape` gives", {}),
      language("gpt2", "GPT-2 of the sizes that `shape` gives", build_gpt2, {}),
      language("bert", "BERT of the sizes that `shape` gives", build_bert, {}),
      vision("vit", "ViT of the sizes that `shape` gives", {}),
  };
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
  GraphBuilder build(options.dtype, options.layout, options.fp32_gradients);
  ArchitectureOptions all = options;
  all.shape = completed(architecture.shaped ? options.shape : architecture.shape);
  all.shape.gated &= architecture.build != build_gpt2;
  all.fused_linear |= options.eager;
  architecture.build(build, all);
  build.backward();
  build.update(options.optimizer, !options.eager);
  if (options.eager) take_apart(build.list, options, architecture.build == build_gpt2);
  const std::int64_t head = all.shape.words / options.parallel.tensor;
  for (Operator& op : build.list.operators) {
    const bool layer = op.columns > 0 && op.columns != head;
    op.rounded = options.rounded && (op.dtype == DType::kFp32 || layer);
  }
  Generated generated{std::move(build.list),
                      std::move(build.tensors),
                      std::move(build.buffers),
                      inner_collectives(all),
                      0,
                      0};
  const Bytes unit = size_of(options.dtype);
  generated.activation = all.own_rows() * all.shape.hidden * unit;
  const bool tied = all.shape.tied || architecture.build == build_gpt2;
  if (tied && all.parallel.pipeline > 1) generated.tied = generated.tensors.front().bytes();
  for (Tensor& tensor : generated.tensors) {
    tensor.expert = tensor.name.find(".experts.") != std::string::npos;
  }
  return generated;
}

namespace {

// The collectives of a tensor group that go beside a layer's products; returns of how many halves.
// In n parts the first one waits, so n - 1 of n are hidden at most. Experts hide nothing.
std::int64_t overlap_tensor(const ArchitectureOptions& options, Bytes all,
                            std::vector<Inner>& list) {
  using Axis = Inner::Axis;
  using Form = Inner::Form;
  const TransformerShape& shape = options.shape;
  const int parts = options.parallel.tensor;
  // Of a product of a rank's tokens with so many columns, or rows, in all.
  const auto flops = [&](std::int64_t columns) {
    return 2 * real(options.rows()) * real(shape.hidden) * real(columns) / parts * (parts - 1) /
           parts;
  };
  const std::int64_t width = shape.heads * shape.head_width;
  const std::int64_t dense = shape.experts > 0 ? shape.dense_layers : shape.layers;
  const auto add = [&](Form form, std::int64_t layers, std::int64_t columns) {
    if (layers > 0) list.push_back({Axis::kTensor, form, all, layers, layers, flops(columns)});
  };
  add(Form::kAllGather, shape.layers, width + 2 * shape.kv_heads * shape.head_width);
  add(Form::kReduceScatter, shape.layers, width);
  add(Form::kAllGather, dense, (shape.gated ? 2 : 1) * shape.inner);
  add(Form::kReduceScatter, dense, shape.inner);
  return shape.layers + dense;
}

// Of a rank's tokens in the products of a layer with experts, forward.
double expert_layer_flops(const ArchitectureOptions& options) {
  const TransformerShape& shape = options.shape;
  const std::int64_t width = shape.heads * shape.head_width;
  const std::int64_t columns =
      2 * width + 2 * shape.kv_heads * shape.head_width +
      (shape.gated ? 3 : 2) * (shape.experts_per_token * shape.expert_inner + shape.shared_inner);
  return 2 * real(options.rows()) * real(shape.hidden) * real(columns) / options.parallel.tensor;
}

}  // namespace

std::vector<Inner> inner_collectives(const ArchitectureOptions& options) {
  using Axis = Inner::Axis;
  using Form = Inner::Form;
  const TransformerShape& shape = options.shape;
  const Parallel& parallel = options.parallel;
  const Bytes unit = size_of(options.dtype);
  const std::int64_t halves = 2 * shape.layers;  // attention and feed-forward
  const Bytes all = options.rows() * shape.hidden * unit;
  std::vector<Inner> list;
  if (parallel.tensor > 1 && parallel.sequence) {
    // Gathered ahead of each half, summed in parts behind it; the embedding's sum comes in parts,
    // the head gathers. The backward pass does the opposite of each.
    std::int64_t alone = halves + 1;
    if (parallel.overlap_tensor) alone -= overlap_tensor(options, all, list);
    list.push_back({Axis::kTensor, Form::kAllGather, all, alone, alone});
    list.push_back({Axis::kTensor, Form::kReduceScatter, all, alone, alone});
  } else if (parallel.tensor > 1) {
    list.push_back({Axis::kTensor, Form::kAllReduce, all, halves + 1, halves + 1});
  }
  if (parallel.context > 1 && parallel.context_all_to_all) {
    const Bytes head = options.rows() * shape.head_width * unit / parallel.tensor;
    for (const std::int64_t heads : {shape.heads + 2 * shape.kv_heads, shape.heads}) {
      list.push_back({Axis::kContext, Form::kAllToAll, heads * head, shape.layers, shape.layers});
    }
  } else if (parallel.context > 1) {
    const std::int64_t kv = (shape.kv_heads + parallel.tensor - 1) / parallel.tensor;
    const double flops = 2 * real(options.rows()) * real(options.sequence) *
                         real(shape.heads * shape.head_width) / parallel.tensor;
    list.push_back({Axis::kContext, Form::kRing, 2 * options.rows() * kv * shape.head_width * unit,
                    shape.layers, 2 * shape.layers, flops});
  }
  if (parallel.expert > 1) {
    const std::int64_t layers = shape.layers - shape.dense_layers;
    const Bytes tokens = options.own_rows() * shape.experts_per_token * shape.hidden * unit;
    // Both ways of a layer share its products: half of them each.
    const double beside = parallel.overlap_expert ? expert_layer_flops(options) / 2 : 0;
    list.push_back({Axis::kExpert, Form::kAllToAll, tokens, 2 * layers, 2 * layers, beside});
  }
  return list;
}

std::int64_t parameters_of(const Generated& generated) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : generated.tensors) sum += tensor.elements;
  return sum;
}

TransformerShape completed(TransformerShape shape) {
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  if (shape.head_width == 0 && shape.heads > 0) shape.head_width = shape.hidden / shape.heads;
  if (shape.inner == 0) shape.inner = 4 * shape.hidden;
  return shape;
}

}  // namespace syncline::operators
