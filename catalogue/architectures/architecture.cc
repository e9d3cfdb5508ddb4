#include "catalogue/architectures/architecture.h"

#include <algorithm>
#include <array>
#include <deque>
#include <initializer_list>
#include <mutex>
#include <tuple>
#include <utility>

namespace syncline::operators {
namespace {

// Returns the shape with these flags set.
using Flag = bool TransformerShape::*;
constexpr Flag kTied = &TransformerShape::tied, kBias = &TransformerShape::bias,
               kHeadNorm = &TransformerShape::head_norm;
constexpr TransformerShape with(std::initializer_list<Flag> flags, TransformerShape shape) {
  for (const Flag flag : flags) shape.*flag = true;
  return shape;
}

constexpr TransformerShape mixture(std::int64_t experts, std::int64_t a_token, std::int64_t inner,
                                   TransformerShape shape) {
  shape.experts = experts;
  shape.experts_per_token = a_token;
  shape.expert_inner = inner;
  return shape;
}

constexpr TransformerShape deepseek(std::int64_t shared_inner, std::int64_t dense_layers,
                                    TransformerShape shape) {
  shape.shared_inner = shared_inner;
  shape.dense_layers = dense_layers;
  shape.query_latent = 1536;
  shape.latent = 512;
  shape.rope_width = 64;
  return shape;
}

// Parmar et al., "Nemotron-4 15B Technical Report", 2024, and NVIDIA, "Nemotron-4 340B", 2024.
constexpr TransformerShape nemotron4(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  TransformerShape shape{layers, hidden, heads, 8, 0, 0, 256000, 4096};
  shape.gated = false;
  return shape;
}

Architecture images(std::string_view name, std::string_view summary,
                    void (*build)(GraphBuilder&, const ArchitectureOptions&)) {
  return {.name = name, .summary = summary, .images = true, .build = build};
}

template <ResNet kNet>
Architecture resnet(std::string_view name, std::string_view summary) {
  return images(name, summary,
                [](auto& build, const auto& options) { build_resnet(build, options, kNet); });
}

template <std::array<int, 5> kDeep>
Architecture vgg(std::string_view name, std::string_view summary) {
  return images(name, summary,
                [](auto& build, const auto& options) { build_vgg(build, options, kDeep); });
}

constexpr TransformerShape patches_of(std::int64_t patch, TransformerShape shape) {
  shape.patch = patch;
  return shape;
}

// Returns a row of BERT or GPT-2: Paddle's layers as well as torch's.
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
  row.longest = std::int64_t{1} << 20;  // positions are computed, without a table
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

// Shapes: layers, hidden, heads, those of keys and values, their width, inner, words, positions.
std::span<const Architecture> architectures() {
  static const std::array rows{
      resnet<ResNet{.blocks{3, 4, 6, 3}, .stride_first = true}>(
          "resnet50", "ResNet-50 v1 as in Paddle, stride in the first convolution"),
      resnet<ResNet{{3, 4, 6, 3}}>("resnet50_v1.5",
                                   "ResNet-50 v1.5, stride in the 3 x 3, Paddle's names"),
      resnet<ResNet{{2, 2, 2, 2}, false}>("resnet18", "ResNet-18, likewise"),
      resnet<ResNet{{3, 4, 6, 3}, false}>("resnet34", "ResNet-34, likewise"),
      resnet<ResNet{{3, 4, 23, 3}}>("resnet101", "ResNet-101 v1.5, likewise"),
      resnet<ResNet{{3, 8, 36, 3}}>("resnet152", "ResNet-152 v1.5, likewise"),
      resnet<ResNet{.blocks{3, 4, 6, 3}, .width = 2}>("wide_resnet50_2",
                                                      "Wide ResNet-50, likewise"),
      vgg<std::array{1, 1, 2, 2, 2}>("vgg11",
                                     "VGG-11 without batch normalisation, torchvision's names"),
      vgg<std::array{2, 2, 2, 2, 2}>("vgg13", "VGG-13, likewise"),
      vgg<std::array{2, 2, 3, 3, 3}>("vgg16", "VGG-16, likewise"),
      vgg<std::array{2, 2, 4, 4, 4}>("vgg19", "VGG-19, likewise"),
      vision("vit_b_16", "ViT-B/16 as torchvision has it", {12, 768, 12}),
      vision("vit_b_32", "ViT-B/32, likewise", patches_of(32, {12, 768, 12})),
      vision("vit_l_16", "ViT-L/16, likewise", {24, 1024, 16}),
      vision("vit_l_32", "ViT-L/32, likewise", patches_of(32, {24, 1024, 16})),
      vision("vit_h_14", "ViT-H/14, likewise", patches_of(14, {32, 1280, 16})),
      language("bert_base", "BERT-base with its pooler, no task's head", build_bert,
               {12, 768, 12, 0, 0, 0, 30522, 512}),
      language("bert_large", "BERT-large with its pooler, no task's head", build_bert,
               {24, 1024, 16, 0, 0, 0, 30522, 512}),
      language("gpt2_small", "GPT-2 small, its language model head tied to the embedding",
               build_gpt2, {12, 768, 12, 0, 0, 0, 50257, 1024}),
      language("gpt2_medium", "GPT-2 medium, likewise", build_gpt2,
               {24, 1024, 16, 0, 0, 0, 50257, 1024}),
      language("gpt2_large", "GPT-2 large, likewise", build_gpt2,
               {36, 1280, 20, 0, 0, 0, 50257, 1024}),
      language("gpt2_xl", "GPT-2 XL, likewise", build_gpt2, {48, 1600, 25, 0, 0, 0, 50257, 1024}),
      // Llama and its relatives, by the config.json with each checkpoint on the Hugging Face hub.
      llama("llama2_7b", "Llama 2 7B", {32, 4096, 32, 0, 0, 11008, 32000, 4096}),
      llama("llama3_8b", "Llama 3 8B, grouped queries", {32, 4096, 32, 8, 0, 14336, 128256, 8192}),
      llama("llama3_70b", "Llama 3 70B, likewise", {80, 8192, 64, 8, 0, 28672, 128256, 131072}),
      llama("llama3.1_405b", "Llama 3.1 405B, likewise",
            {126, 16384, 128, 8, 0, 53248, 128256, 131072}),
      llama("llama3.2_1b", "Llama 3.2 1B, its head tied to the embedding",
            with({kTied}, {16, 2048, 32, 8, 0, 8192, 128256, 131072})),
      llama("tinyllama_1.1b", "TinyLlama 1.1B", {22, 2048, 32, 4, 0, 5632, 32000, 2048}),
      llama("mistral_7b", "Mistral 7B v0.1", {32, 4096, 32, 8, 0, 14336, 32000, 32768}),
      llama("qwen2_7b", "Qwen2 and Qwen2.5 7B, biases on queries, keys and values",
            with({kBias}, {28, 3584, 28, 4, 0, 18944, 152064, 32768})),
      llama("qwen2.5_0.5b", "Qwen2.5 0.5B, likewise, its head tied to the embedding",
            with({kTied, kBias}, {24, 896, 14, 2, 0, 4864, 151936, 32768})),
      llama("qwen3_0.6b", "Qwen3 0.6B, queries and keys normalised by head",
            with({kTied, kHeadNorm}, {28, 1024, 16, 8, 128, 3072, 151936, 40960})),
      llama("mixtral_8x7b", "Mixtral 8x7B, a mixture of experts",
            mixture(8, 2, 14336, {32, 4096, 32, 8, 0, 14336, 32000, 32768})),
      llama("qwen3_30b_a3b", "Qwen3 30B-A3B, likewise",
            mixture(128, 8, 768, with({kHeadNorm}, {48, 2048, 32, 4, 128, 6144, 151936, 40960}))),
      llama(
          "deepseek_v2", "DeepSeek-V2, likewise, latent attention",
          deepseek(3072, 1, mixture(160, 6, 1536, {60, 5120, 128, 0, 128, 12288, 102400, 163840}))),
      llama(
          "deepseek_v3", "DeepSeek-V3 without its second head, likewise",
          deepseek(2048, 3, mixture(256, 8, 2048, {61, 7168, 128, 0, 128, 18432, 129280, 163840}))),
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
  const auto row = std::ranges::find(rows, name, &Architecture::name);
  return row == rows.end() ? nullptr : &*row;
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const auto& row : architectures()) names.emplace_back(row.name);
  return names;
}

namespace {

Generated build_step(const Architecture& architecture, const ArchitectureOptions& options) {
  GraphBuilder build(options.dtype, options.layout, options.fp32_gradients);
  ArchitectureOptions all = options;
  all.shape = complete_shape(architecture.shaped ? options.shape : architecture.shape);
  all.shape.gated &= architecture.build != build_gpt2;
  all.fused_linear |= options.eager;
  architecture.build(build, all);
  build.backward();
  build.update(options.optimizer, !options.eager);
  if (options.eager) set_eager_kernels(build.list, options, architecture.build == build_gpt2);
  const std::int64_t head = all.shape.words / options.parallel.tensor;
  for (Operator& op : build.list.operators) {
    const bool layer = op.columns > 0 && op.columns != head;
    op.rounded = options.rounded && (op.dtype == DType::kFp32 || layer);
  }
  Generated generated{std::move(build.list), std::move(build.tensors), std::move(build.buffers),
                      inner_collectives(all)};
  const Bytes unit = size_of(options.dtype);
  generated.activation = all.own_rows() * all.shape.hidden * unit;
  const bool tied = all.shape.tied || architecture.build == build_gpt2;
  if (tied && all.parallel.pipeline > 1) generated.tied = generated.tensors.front().bytes();
  for (Tensor& tensor : generated.tensors) {
    tensor.expert = tensor.name.find(".experts.") != std::string::npos;
  }
  return generated;
}

// Returns all by which one step differs from another. Of a pipeline this is only if there is one.
auto key_of(const Architecture& architecture, const ArchitectureOptions& options) {
  const auto& [batch, dtype, rounded, layout, image, classes, sequence, optimizer, fused_attention,
               fused_feedforward, fused_linear, flash_attention, eager, fp32_gradients, shape,
               parallel] = options;
  return std::tuple(
      std::string(architecture.name), architecture.build, architecture.shaped, architecture.shape,
      batch, dtype, rounded, layout, image, classes, sequence, optimizer, fused_attention,
      fused_feedforward, fused_linear, flash_attention, eager, fp32_gradients, shape,
      std::tuple(parallel.tensor, parallel.sequence, parallel.context, parallel.context_all_to_all,
                 std::min(parallel.pipeline, 2), parallel.expert, parallel.expert_tensor,
                 parallel.overlap_tensor, parallel.overlap_expert));
}

}  // namespace

// A search of layouts asks for the same steps in many pipelines, so the last ones are kept.
Generated generate(const Architecture& architecture, const ArchitectureOptions& options) {
  constexpr std::size_t kKept = 8;
  using Key = decltype(key_of(architecture, options));
  static std::mutex mutex;
  static std::deque<std::pair<Key, Generated>> known;
  const Key key = key_of(architecture, options);
  const std::lock_guard lock(mutex);
  const auto found = std::ranges::find(known, key, &std::pair<Key, Generated>::first);
  if (found != known.end()) return found->second;
  if (known.size() == kKept) known.pop_back();
  return known.emplace_front(key, build_step(architecture, options)).second;
}

namespace {

// Adds a tensor group's collectives that overlap with products; returns their number of halves. Of
// n parts the first one waits, so at most (n - 1) / n are hidden. Experts do not overlap.
std::int64_t overlap_tensor(const ArchitectureOptions& options, Bytes all,
                            std::vector<Inner>& list) {
  using Axis = Inner::Axis;
  using Form = Inner::Form;
  const TransformerShape& shape = options.shape;
  const int parts = options.parallel.tensor;
  // FLOPs of a product of a rank's tokens with `columns` columns, or rows, in all.
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

// Returns forward FLOPs of a rank's tokens in the products of a layer with experts.
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
    // An all-gather before each half, a reduce-scatter after it; one reduce-scatter for the
    // embedding, one all-gather for the head. The backward pass does the opposite of each.
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
    // A layer's two all-to-alls share its products: half of them each.
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

TransformerShape complete_shape(TransformerShape shape) {
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  if (shape.head_width == 0 && shape.heads > 0) shape.head_width = shape.hidden / shape.heads;
  if (shape.inner == 0) shape.inner = 4 * shape.hidden;
  return shape;
}

}  // namespace syncline::operators
