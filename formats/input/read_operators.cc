#include "formats/input/read_operators.h"

#include <algorithm>
#include <map>
#include <utility>

#include "catalogue/architectures/architecture.h"
#include "formats/json/reader.h"

namespace syncline::input {
namespace {

constexpr std::int64_t kMaxValueBytes = std::int64_t{1} << 46;
constexpr std::size_t kMaxOperators = 200000;

DType format_of(const std::string& word) {
  if (word == "fp16") return DType::kFp16;
  return word == "bf16" || word == "fp8" ? DType::kBf16 : DType::kFp32;
}

Layout layout_of(Reader& reader, const std::string& fallback) {
  return reader.word_or("layout", fallback, {"NCHW", "NHWC"}) == "NHWC" ? Layout::kNhwc
                                                                        : Layout::kNchw;
}

operators::Optimizer optimizer_of(Reader& reader, operators::Optimizer fallback) {
  if (!reader.has("optimizer")) return fallback;
  const std::string word = reader.word_or("optimizer", "", {"sgd", "momentum", "adam"});
  return word == "sgd"    ? operators::Optimizer::kSgd
         : word == "adam" ? operators::Optimizer::kAdam
                          : operators::Optimizer::kMomentum;
}

void take_generated(Reader& reader, operators::Generated& generated, Workload& workload,
                    bool given) {
  workload.operators = generated.operators;
  if (!given) {
    workload.tensors = std::move(generated.tensors);
    if (workload.buffers.empty()) workload.buffers = std::move(generated.buffers);
    return;
  }
  const auto& made = generated.tensors;
  if (made.size() != workload.tensors.size()) {
    reader.fail("architecture", "has " + std::to_string(made.size()) +
                                    " gradients, the workload's tensors are " +
                                    std::to_string(workload.tensors.size()));
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i].elements == workload.tensors[i].elements) continue;
    reader.fail("architecture", "its gradient " + std::to_string(i) + ", " + made[i].name +
                                    ", has " + std::to_string(made[i].elements) +
                                    " elements, the workload's, " + workload.tensors[i].name +
                                    ", has " + std::to_string(workload.tensors[i].elements));
  }
}

// Reads a mixture of experts, and latent attention.
void read_experts(Reader& reader, operators::TransformerShape& shape) {
  constexpr std::int64_t kMaxExperts = 4096;
  const auto size = [&](const char* key, std::int64_t fallback, std::int64_t most) {
    return reader.integer_or(key, fallback, 0, most);
  };
  shape.experts = size("experts", 0, kMaxExperts);
  shape.experts_per_token = size("experts_per_token", 2, kMaxExperts);
  shape.expert_inner = size("expert_inner", shape.inner, operators::kMaxFfnWidth);
  shape.shared_inner = size("shared_inner", 0, operators::kMaxFfnWidth);
  shape.dense_layers = size("dense_layers", 0, shape.layers);
  shape.shared_gate = reader.boolean_or("shared_gate", false);
  shape.query_latent = size("query_latent", 0, operators::kMaxHidden);
  shape.latent = size("latent", 0, operators::kMaxHidden);
  shape.rope_width = size("rope_width", 0, operators::kMaxHeadWidth);
  if (shape.experts > 0 && shape.experts_per_token > shape.experts) {
    reader.fail("experts_per_token", "more than the " + std::to_string(shape.experts) + " experts");
  }
}

// Fails if a layout does not divide the model's sizes.
void judge_cut(Reader& reader, const operators::Architecture& row,
               const operators::ArchitectureOptions& options) {
  const Parallel& parallel = options.parallel;
  if (!parallel.whole_job()) return;
  const operators::TransformerShape& shape = options.shape;
  const bool llama = row.build == operators::build_llama;
  if (!llama && row.build != operators::build_gpt2) {
    reader.fail("architecture", "'" + std::string(row.name) +
                                    "' is not cut by workload.parallel: llama and gpt2 are");
  }
  const auto divides = [&](int by, std::int64_t count, const char* what) {
    if (count % by == 0) return;
    reader.fail("architecture",
                std::to_string(by) + " ranks cannot share " + std::to_string(count) + " " + what);
  };
  divides(parallel.tensor, shape.heads, "heads");
  divides(parallel.tensor, operators::complete_shape(shape).inner, "columns of the inner half");
  divides(parallel.context, options.sequence, "tokens of a sequence");
  if (parallel.expert > 1) divides(parallel.expert, shape.experts, "experts");
  if (parallel.expert > 1 && shape.experts == 0) {
    reader.fail("architecture", "has no experts, which workload.parallel.expert shares");
  }
  if (!llama && parallel.context > 1) reader.fail("architecture", "context cuts llama alone");
}

// Reads how a layer's halves are normalised, and whether their products are merged.
void read_halves(Reader& reader, operators::TransformerShape& shape) {
  using Norms = operators::TransformerShape::Norms;
  const std::string norms = reader.word_or("norms", "before", {"before", "after", "both"});
  shape.norms = norms == "before"  ? Norms::kBefore
                : norms == "after" ? Norms::kAfter
                                   : Norms::kBoth;
  shape.joint_norm = reader.boolean_or("joint_norm", false);
  shape.merged = reader.boolean_or("merged", false);
  if (shape.joint_norm && shape.head_norm) {
    reader.fail("joint_norm", "remove it, or head_norm: queries and keys are normalised once");
  }
  if (shape.merged && (shape.joint_norm || shape.head_norm || !shape.gated)) {
    reader.fail("merged", "has no meaning with head_norm or joint_norm, nor without gates");
  }
}

// Reads the sizes of one of a family.
operators::TransformerShape read_shape(Reader reader, bool images) {
  operators::TransformerShape shape;
  shape.layers = reader.integer("layers", 1, operators::kMaxLayers);
  shape.hidden = reader.integer("hidden", 1, operators::kMaxHidden);
  shape.heads = reader.integer("heads", 1, operators::kMaxHeads);
  shape.kv_heads = reader.integer_or("kv_heads", shape.heads, 1, shape.heads);
  if (shape.heads % shape.kv_heads != 0) {
    reader.fail("kv_heads", "found " + std::to_string(shape.kv_heads) + ", expected a divisor of " +
                                std::to_string(shape.heads) + " heads");
  }
  shape.head_width = reader.integer_or("head_width", 0, 1, operators::kMaxHeadWidth);
  if (shape.head_width == 0 && shape.hidden % shape.heads != 0) {
    reader.fail("heads", "found " + std::to_string(shape.heads) + ", expected a divisor of " +
                             std::to_string(shape.hidden) + ", or head_width");
  }
  shape.inner = reader.integer_or("inner", 4 * shape.hidden, 1, operators::kMaxFfnWidth);
  if (!images) {
    shape.words = reader.integer("words", 1, operators::kMaxVocabulary);
    shape.positions = reader.integer_or("positions", 1024, 1, operators::kMaxVocabulary);
    shape.kinds = reader.integer_or("kinds", shape.kinds, 1, operators::kMaxTokenTypes);
    shape.tied = reader.boolean_or("tied", false);
    shape.bias = reader.boolean_or("bias", false);
    shape.head_norm = reader.boolean_or("head_norm", false);
    shape.gated = reader.boolean_or("gated", true);
    read_halves(reader, shape);
    read_experts(reader, shape);
  } else {
    shape.patch = reader.integer_or("patch", shape.patch, 1, operators::kMaxImage);
  }
  reader.finish();
  return shape;
}

// Refuses sizes that no machine trains with: they are a mistake, and would overflow.
void judge_size(Reader& reader, const operators::ArchitectureOptions& options, bool images) {
  const operators::TransformerShape shape = operators::complete_shape(options.shape);
  if (shape.layers == 0) return;
  const auto real = [](std::int64_t count) { return static_cast<double>(count); };
  if (images && options.image % shape.patch != 0) {
    reader.fail("image", "found " + std::to_string(options.image) +
                             ", expected a multiple of the " + std::to_string(shape.patch) +
                             " of a patch");
  }
  const double side = real(options.image) / real(shape.patch);
  const double sequence = images ? side * side + 1 : real(options.sequence);
  const double rows = real(options.batch) * sequence;
  const double widest =
      real(std::max({shape.words, shape.inner, shape.hidden, shape.heads * shape.head_width}));
  if (rows * std::max(widest, real(shape.heads) * sequence) > operators::kMaxElements) {
    reader.fail("architecture", "a step of more than 10^15 elements in one tensor");
  }
}

operators::Generated read_architecture(Reader& reader, Workload& workload, bool given) {
  const operators::Architecture* row = operators::find_architecture(
      reader.word_or("architecture", "", operators::architecture_names()));
  const auto only_for = [&](const char* key, bool applies, const char* kinds) {
    if (reader.has(key) && !applies) {
      reader.fail(key, "has no meaning with '" + std::string(row->name) + "', only with " + kinds);
    }
  };
  for (const char* key : {"image", "classes", "layout"}) only_for(key, row->images, "images");
  only_for("sequence", !row->images, "transformers of text");
  for (const char* key :
       {"fused_attention", "fused_feedforward", "fused_linear", "flash_attention"}) {
    only_for(key, row->fused, "BERT and GPT-2");
  }
  only_for("shape", row->shaped, "a family: llama, gpt2, bert, vit");
  operators::ArchitectureOptions options;
  options.batch = workload.batch;
  const std::string format =
      reader.word_or("dtype", "fp32", {"fp32", "tf32", "fp16", "bf16", "fp8"});
  options.rounded = format == "tf32" || format == "fp8";
  options.dtype = format_of(format);
  options.layout = layout_of(reader, "NCHW");
  options.image =
      reader.integer_or("image", options.image, operators::kMinImage, operators::kMaxImage);
  options.classes = reader.integer_or("classes", options.classes, 1, operators::kMaxVocabulary);
  options.shape = row->shaped ? read_shape(reader.object("shape"), row->images) : row->shape;
  if (!row->images) {
    const std::int64_t longest = row->longest > 0 ? row->longest : options.shape.positions;
    options.sequence =
        reader.integer_or("sequence", std::min(options.sequence, longest), 1, longest);
    workload.tokens = options.sequence;
  }
  options.optimizer = optimizer_of(reader, row->optimizer);
  if (!workload.optimizer_given) {
    workload.optimizer_given = reader.has("optimizer");
    workload.optimizer_states = operators::states_of(options.optimizer);
  }
  options.fused_attention = reader.boolean_or("fused_attention", false);
  options.fused_feedforward = reader.boolean_or("fused_feedforward", false);
  options.fused_linear = reader.boolean_or("fused_linear", false);
  options.flash_attention = reader.boolean_or("flash_attention", false);
  options.fp32_gradients = reader.boolean_or("autocast", false);
  options.eager = reader.boolean_or("eager", false);
  constexpr std::int64_t kMaxSamples = 1 << 20;
  if (options.batch > kMaxSamples) {
    reader.fail("architecture", "a batch of " + std::to_string(options.batch) +
                                    ", expected at most " + std::to_string(kMaxSamples));
  }
  judge_size(reader, options, row->images);
  options.parallel = workload.parallel;
  judge_cut(reader, *row, options);
  operators::Generated generated = operators::generate(*row, options);
  take_generated(reader, generated, workload, given);
  return generated;
}

// Reads the list of an operator's values by name. A value that is named twice is read twice.
std::vector<Operand> read_operands(Reader& reader, const char* key,
                                   const std::map<std::string, int>& values) {
  std::vector<Operand> operands;
  if (!reader.has(key)) return operands;
  const Json& list = reader.array(key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = std::string(key) + "[" + std::to_string(i) + "]";
    if (!list[i].is_string()) {
      reader.fail(place, "found " + describe(list[i]) + ", expected a value's name");
    }
    const auto name = list[i].get<std::string>();
    const auto known = values.find(name);
    if (known == values.end()) {
      std::vector<std::string> names;
      for (const auto& [value, unused] : values) names.push_back(value);
      reader.fail(place, "'" + name + "' is not among the values" + did_you_mean(name, names));
    }
    bool again = false;
    for (auto& operand : operands) {
      if (operand.value != known->second) continue;
      ++operand.passes;
      again = true;
    }
    if (!again) operands.push_back({known->second});
  }
  return operands;
}

Operator read_operator(Reader& reader, const std::map<std::string, int>& values) {
  Operator op;
  op.kind = reader.text("kind");
  if (op.kind.empty()) reader.fail("kind", "empty");
  const std::string part = reader.word_or("part", "forward", {"forward", "backward", "update"});
  op.part = part == "forward"    ? StepPart::kForward
            : part == "backward" ? StepPart::kBackward
                                 : StepPart::kUpdate;
  op.inputs = read_operands(reader, "inputs", values);
  op.outputs = read_operands(reader, "outputs", values);
  if (reader.has("in_place")) {
    const auto in_place = read_operands(reader, "in_place", values);
    for (auto operand : in_place) op.outputs.push_back({operand.value, 0});
  }
  op.matrix_flops = reader.number_or("matrix_flops", 0, {0, 1e21});
  op.flops = reader.number_or("flops", 0, {0, 1e21});
  op.dtype = format_of(reader.word_or("dtype", "fp32", {"fp32", "fp16", "bf16"}));
  op.layout = layout_of(reader, "NCHW");
  op.kernels = static_cast<int>(reader.integer_or("kernels", 1, 1, 10000));
  op.columns = reader.integer_or("columns", 0, 0, std::int64_t{1} << 40);
  reader.finish();
  return op;
}

void judge_operator(Reader& reader, const OperatorList& list, const Operator& op,
                    std::vector<char>& written, const std::vector<char>& ever_written) {
  for (const auto& input : op.inputs) {
    const auto value = static_cast<std::size_t>(input.value);
    if (ever_written[value] != 0 && written[value] == 0) {
      reader.fail("inputs", "'" + list.values[value].name + "' is written only later");
    }
  }
  for (const auto& output : op.outputs) {
    const auto value = static_cast<std::size_t>(output.value);
    if (written[value] != 0) {
      reader.fail("outputs", "'" + list.values[value].name + "' is written twice");
    }
    written[value] = 1;
  }
  if (!list.operators.empty() && list.operators.back().part > op.part) {
    reader.fail("part", "comes after a later one: forward, backward, update");
  }
}

void read_list(Reader& reader, Workload& workload) {
  OperatorList& list = workload.operators.edit();
  std::map<std::string, int> values;
  for (auto& item : reader.objects("values")) {
    Value value;
    value.name = item.text("name");
    value.bytes = item.integer("bytes", 0, kMaxValueBytes);
    if (!values.emplace(value.name, static_cast<int>(list.values.size())).second) {
      item.fail("name", "'" + value.name + "' names two values");
    }
    item.finish();
    list.values.push_back(std::move(value));
  }
  std::vector<Reader> items = reader.objects("list");
  if (items.empty()) reader.fail("list", "empty, expected at least one operator");
  if (items.size() > kMaxOperators) reader.fail("list", "more than 200000 operators");
  std::vector<Operator> operators;
  std::vector<char> ever_written(list.values.size(), 0);
  for (auto& item : items) {
    operators.push_back(read_operator(item, values));
    for (const auto& output : operators.back().outputs) {
      ever_written[static_cast<std::size_t>(output.value)] = 1;
    }
  }
  std::vector<char> written(list.values.size(), 0);
  for (std::size_t i = 0; i < items.size(); ++i) {
    judge_operator(items[i], list, operators[i], written, ever_written);
    list.operators.push_back(std::move(operators[i]));
  }
  for (const auto& tensor : workload.tensors) {
    const auto value = values.find(tensor.name + "@GRAD");
    const bool known =
        value != values.end() && ever_written[static_cast<std::size_t>(value->second)] != 0;
    if (!known) {
      reader.fail("list",
                  "no operator writes '" + tensor.name + "@GRAD', the gradient of " + tensor.name);
    }
    list.gradients.push_back(value->second);
  }
}

}  // namespace

operators::Generated read_operators(Reader reader, Workload& workload, bool given) {
  operators::Generated generated;
  if (reader.has("architecture")) {
    generated = read_architecture(reader, workload, given);
  } else {
    if (!given) reader.fail("list", "needs the workload's tensors, whose gradients it computes");
    reader.require("list");
    read_list(reader, workload);
  }
  reader.finish();
  return generated;
}

}  // namespace syncline::input
