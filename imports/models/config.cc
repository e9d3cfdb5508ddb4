#include "imports/format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>

#include "catalogue/architectures/architecture.h"
#include "core/base/error.h"
#include "formats/input/read_workload.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "imports/models/families.h"

namespace syncline::job::models {
namespace {

// Returns `part`; fails if it does not divide `whole`.
std::int64_t dividing(Reader& reader, const char* key, std::int64_t part, std::int64_t whole,
                      const char* of_what) {
  if (whole % part == 0) return part;
  reader.fail(key, "found " + std::to_string(part) + ", expected a divisor of " +
                       std::to_string(whole) + of_what);
}

// Returns the number of heads. They share the hidden width unless they have a width of their own.
std::int64_t heads(Reader& reader, const char* key, std::int64_t hidden, bool own_width) {
  const std::int64_t count = size(reader, key, operators::kMaxHeads);
  return own_width ? count : dividing(reader, key, count, hidden, " hidden values");
}

// Returns the keys that most families share.
Json hidden_sizes(Reader& reader, bool own_width = false) {
  const std::int64_t hidden = size(reader, "hidden_size", operators::kMaxHidden);
  return {{"layers", size(reader, "num_hidden_layers", operators::kMaxLayers)},
          {"hidden", hidden},
          {"heads", heads(reader, "num_attention_heads", hidden, own_width)},
          {"inner", size(reader, "intermediate_size", operators::kMaxFfnWidth)}};
}

void add_words(Reader& reader, Json& shape, bool tied = false) {
  shape["words"] = width(reader, "vocab_size");
  shape["positions"] = width_or(reader, "max_position_embeddings", 2048);
  if (flag_or(reader, "tie_word_embeddings", tied)) shape["tied"] = true;
}

// Returns Llama's keys. `tied`: the head shares the embedding unless the file says otherwise.
Json llama_keys(Reader& reader, bool tied = false) {
  const bool own_width = has_value(reader, "head_dim");
  Json shape = hidden_sizes(reader, own_width);
  if (const char* key = "num_key_value_heads"; has_value(reader, key)) {
    shape["kv_heads"] = dividing(reader, key, width(reader, key), shape["heads"], " heads");
  }
  if (own_width) shape["head_width"] = size(reader, "head_dim", operators::kMaxHeadWidth);
  add_words(reader, shape, tied);
  return shape;
}

Json with(Json shape, std::initializer_list<std::pair<const char*, Json>> more) {
  for (const auto& [key, value] : more) shape[key] = value;
  return shape;
}

// Throws for Llama's own bias: it is on the output too, and no published model has it.
void expect_no_bias(Reader& reader) {
  for (const char* key : {"attention_bias", "mlp_bias", "use_bias"}) {
    expect_flag(reader, key, false);
  }
}

Json llama(Reader& reader) {
  expect_no_bias(reader);
  return llama_keys(reader);
}
Json tied_llama(Reader& reader) {
  expect_no_bias(reader);
  return llama_keys(reader, true);
}
Json qwen2(Reader& reader) { return with(llama_keys(reader), {{"bias", true}}); }
Json qwen3(Reader& reader) {
  expect_no_bias(reader);
  if (!has_value(reader, "head_dim")) reader.require("head_dim");
  return with(llama_keys(reader), {{"head_norm", true}});
}
Json gemma2(Reader& reader) { return with(tied_llama(reader), {{"norms", "both"}}); }
Json gemma3_text(Reader& reader) { return with(gemma2(reader), {{"head_norm", true}}); }
Json phi3(Reader& reader) { return with(llama(reader), {{"merged", true}}); }
Json olmo2(Reader& reader) {
  return with(llama(reader), {{"norms", "after"}, {"joint_norm", true}});
}
Json exaone4(Reader& reader) {
  return with(llama(reader), {{"norms", "after"}, {"head_norm", true}});
}
Json hunyuan(Reader& reader) { return with(llama(reader), {{"head_norm", true}}); }
Json arcee(Reader& reader) { return with(llama(reader), {{"gated", false}}); }
Json seed_oss(Reader& reader) {
  expect_flag(reader, "attention_out_bias", false);
  expect_flag(reader, "mlp_bias", false);
  const bool bias = flag_or(reader, "attention_bias", true);
  return with(llama_keys(reader), {{"bias", bias}});
}
// Returns GLM's keys. Its products of gate and inner half are one, which changes no size.
Json glm(Reader& reader) {
  const bool bias = flag_or(reader, "attention_bias", true);
  return with(llama_keys(reader), {{"bias", bias}});
}
Json glm4(Reader& reader) { return with(glm(reader), {{"norms", "both"}}); }

// Adds experts by these keys: their number, their width, and how many a token goes to.
void add_experts(Reader& reader, const char* count, const char* inner, Json& shape) {
  shape["experts"] = size(reader, count, kMaxExperts);
  shape["experts_per_token"] = size(reader, "num_experts_per_tok", kMaxExperts);
  shape["expert_inner"] = size(reader, inner, operators::kMaxFfnWidth);
}

// Fails unless all layers have experts.
void expect_experts_everywhere(Reader& reader) {
  if (size_or(reader, "decoder_sparse_step", 1, operators::kMaxLayers) != 1) {
    reader.fail("decoder_sparse_step", "only 1 is known: experts in every layer");
  }
  if (has_value(reader, "mlp_only_layers") && !reader.array("mlp_only_layers").empty()) {
    reader.fail("mlp_only_layers", "only none is known: experts in every layer");
  }
}

Json mixtral(Reader& reader) {
  Json shape = llama_keys(reader);
  add_experts(reader, "num_local_experts", "intermediate_size", shape);
  return shape;
}

Json granitemoeshared(Reader& reader) {
  Json shape = mixtral(reader);
  const char* key = "shared_intermediate_size";
  if (has_value(reader, key) && reader.integer(key, 0, operators::kMaxFfnWidth) > 0) {
    shape["shared_inner"] = size(reader, key, operators::kMaxFfnWidth);
  }
  return shape;
}

Json qwen3_moe(Reader& reader) {
  expect_no_bias(reader);
  Json shape = with(llama_keys(reader), {{"head_norm", true}});
  add_experts(reader, "num_experts", "moe_intermediate_size", shape);
  expect_experts_everywhere(reader);
  return shape;
}

Json qwen2_moe(Reader& reader) {
  Json shape = llama_keys(reader);
  if (flag_or(reader, "qkv_bias", true)) shape["bias"] = true;
  add_experts(reader, "num_experts", "moe_intermediate_size", shape);
  expect_experts_everywhere(reader);
  shape["shared_inner"] = size(reader, "shared_expert_intermediate_size", operators::kMaxFfnWidth);
  shape["shared_gate"] = true;
  return shape;
}

Json olmoe(Reader& reader) {
  Json shape = with(llama(reader), {{"joint_norm", true}});
  add_experts(reader, "num_experts", "intermediate_size", shape);
  return shape;
}

// Adds experts to all but the first layers, and some more that all tokens share.
void add_shared_experts(Reader& reader, Json& shape) {
  add_experts(reader, "n_routed_experts", "moe_intermediate_size", shape);
  shape["shared_inner"] = size_or(reader, "n_shared_experts", 0, kMaxExperts) *
                          shape["expert_inner"].get<std::int64_t>();
  if (has_value(reader, "first_k_dense_replace")) {
    shape["dense_layers"] = reader.integer("first_k_dense_replace", 0, operators::kMaxLayers);
  }
}

Json glm4_moe(Reader& reader) {
  Json shape = llama_keys(reader);
  if (flag_or(reader, "attention_bias", false)) shape["bias"] = true;
  if (flag_or(reader, "use_qk_norm", false)) shape["head_norm"] = true;
  add_shared_experts(reader, shape);
  return shape;
}

Json dots1(Reader& reader) {
  Json shape = with(llama(reader), {{"head_norm", true}});
  add_shared_experts(reader, shape);
  return shape;
}

// Returns the keys of latent attention.
Json deepseek(Reader& reader) {
  Json shape = hidden_sizes(reader, true);
  add_shared_experts(reader, shape);
  if (size_or(reader, "moe_layer_freq", 1, operators::kMaxLayers) != 1) {
    reader.fail("moe_layer_freq", "only 1 is known: experts in every layer after the first");
  }
  const std::int64_t width = size(reader, "qk_nope_head_dim", operators::kMaxHeadWidth);
  if (size(reader, "v_head_dim", operators::kMaxHeadWidth) != width) {
    reader.fail("v_head_dim",
                "only that of qk_nope_head_dim, " + std::to_string(width) + ", is known");
  }
  shape["head_width"] = width;
  shape["rope_width"] = size(reader, "qk_rope_head_dim", operators::kMaxHeadWidth);
  shape["latent"] = size(reader, "kv_lora_rank", operators::kMaxHidden);
  shape["query_latent"] = size_or(reader, "q_lora_rank", 0, operators::kMaxHidden);
  add_words(reader, shape);
  return shape;
}

Json gpt2(Reader& reader) {
  if (!flag_or(reader, "tie_word_embeddings", true)) {
    reader.fail("tie_word_embeddings", "found false, GPT-2's head is known as tied alone");
  }
  const std::int64_t hidden = size(reader, "n_embd", operators::kMaxHidden);
  Json shape = {{"layers", size(reader, "n_layer", operators::kMaxLayers)},
                {"hidden", hidden},
                {"heads", heads(reader, "n_head", hidden, false)},
                {"words", width(reader, "vocab_size")},
                {"positions", width_or(reader, "n_positions", 1024)}};
  if (has_value(reader, "n_inner"))
    shape["inner"] = size(reader, "n_inner", operators::kMaxFfnWidth);
  return shape;
}

// Returns ChatGLM2's keys and ChatGLM3's, which have names of their own for Llama's sizes.
Json chatglm(Reader& reader) {
  if (!has_value(reader, "ffn_hidden_size")) {
    reader.fail("ffn_hidden_size",
                "missing: ChatGLM before its second version is not known; `syncline init --tensors "
                "FILE` takes what torch prints by `" +
                    std::string(kPrintTensors) + "`");
  }
  expect_flag(reader, "add_bias_linear", false);
  expect_flag(reader, "rmsnorm", true);
  expect_flag(reader, "post_layer_norm", true);
  const std::int64_t hidden = size(reader, "hidden_size", operators::kMaxHidden);
  Json shape = {{"layers", size(reader, "num_layers", operators::kMaxLayers)},
                {"hidden", hidden},
                {"heads", heads(reader, "num_attention_heads", hidden, true)},
                {"head_width", size(reader, "kv_channels", operators::kMaxHeadWidth)},
                {"inner", size(reader, "ffn_hidden_size", operators::kMaxFfnWidth)},
                {"words", width(reader, "padded_vocab_size")},
                {"positions", width_or(reader, "seq_length", 2048)}};
  if (const char* key = "multi_query_group_num"; flag_or(reader, "multi_query_attention", false)) {
    shape["kv_heads"] = dividing(reader, key, width(reader, key), shape["heads"], " heads");
  }
  if (flag_or(reader, "add_qkv_bias", false)) shape["bias"] = true;
  return shape;
}

Json bert(Reader& reader) {
  Json shape = hidden_sizes(reader);
  shape["words"] = width(reader, "vocab_size");
  shape["positions"] = width_or(reader, "max_position_embeddings", 512);
  shape["kinds"] = size_or(reader, "type_vocab_size", 2, operators::kMaxTokenTypes);
  return shape;
}

std::int64_t image_of(Reader& reader) {
  return has_value(reader, "image_size")
             ? reader.integer("image_size", operators::kMinImage, operators::kMaxImage)
             : 224;
}

Json vit(Reader& reader) {
  Json shape = hidden_sizes(reader);
  const char* key = "patch_size";
  const std::int64_t patch = size_or(reader, key, 16, operators::kMaxImage);
  const std::int64_t image = image_of(reader);
  shape["patch"] = dividing(reader, key, patch, image, " pixels of an image's side");
  const std::int64_t across = image / patch;  // divides
  const auto rows = static_cast<double>(across * across + 1);
  const double widest = std::max({shape["hidden"].get<double>(), shape["inner"].get<double>(),
                                  shape["heads"].get<double>() * rows});
  if (rows * widest > operators::kMaxElements) {
    reader.fail(key, "found " + std::to_string(patch) + " for images of " + std::to_string(image) +
                         ": a tensor of more than 10^15 elements");
  }
  return shape;
}

// A type that an architecture of the catalogue lays down.
struct ModelType {
  std::string_view name;    // model_type
  std::string_view family;  // architecture
  Json (*shape)(Reader&);
  bool experts = false;
};

constexpr ModelType kTypes[] = {
    {"llama", "llama", llama},
    {"mistral", "llama", llama},
    {"ministral", "llama", llama},
    {"ministral3", "llama", llama},
    {"granite", "llama", llama},
    {"helium", "llama", llama},
    {"qwen2", "llama", qwen2},
    {"qwen2_vl_text", "llama", qwen2},
    {"qwen2_5_vl_text", "llama", qwen2},
    {"qwen3", "llama", qwen3},
    {"gemma", "llama", tied_llama},
    {"gemma2", "llama", gemma2},
    {"gemma3_text", "llama", gemma3_text},
    {"phi3", "llama", phi3},
    {"olmo2", "llama", olmo2},
    {"olmo3", "llama", olmo2},
    {"glm", "llama", glm},
    {"glm4", "llama", glm4},
    {"glm4v_text", "llama", glm4},
    {"smollm3", "llama", tied_llama},
    {"ernie4_5", "llama", tied_llama},
    {"exaone4", "llama", exaone4},
    {"hunyuan_v1_dense", "llama", hunyuan},
    {"seed_oss", "llama", seed_oss},
    {"arcee", "llama", arcee},
    {"mixtral", "llama", mixtral, true},
    {"granitemoe", "llama", mixtral, true},
    {"granitemoeshared", "llama", granitemoeshared, true},
    {"qwen2_moe", "llama", qwen2_moe, true},
    {"qwen3_moe", "llama", qwen3_moe, true},
    {"olmoe", "llama", olmoe, true},
    {"glm4_moe", "llama", glm4_moe, true},
    {"dots1", "llama", dots1, true},
    {"deepseek_v2", "llama", deepseek, true},
    {"deepseek_v3", "llama", deepseek, true},
    {"kimi_k2", "llama", deepseek, true},
    {"chatglm", "llama", chatglm},
    {"gpt2", "gpt2", gpt2},
    {"bert", "bert", bert},
    {"vit", "vit", vit},
};

const ModelType* shaped_type(std::string_view name) {
  const auto* row = std::ranges::find(kTypes, name, &ModelType::name);
  return row == std::end(kTypes) ? nullptr : row;
}

const Family* listed_type(std::string_view name) {
  for (const auto* rows : {&decoders(), &encoders(), &towers(), &pyramids()}) {
    const auto row = std::ranges::find(*rows, name, &Family::type);
    if (row != rows->end()) return &*row;
  }
  return nullptr;
}

bool is_one_of(const std::vector<Family>& rows, std::string_view type) {
  return std::ranges::find(rows, type, &Family::type) != rows.end();
}

// Returns the first class in `architectures`; empty: none.
std::string class_in(Reader& reader) {
  if (!has_value(reader, "architectures")) return {};
  const Json& classes = reader.json()["architectures"];
  const bool named = classes.is_array() && !classes.empty() && classes.front().is_string();
  return named ? classes.front().get<std::string>() : std::string();
}

// Returns the type of a class: llama for LlamaForCausalLM, deepseek_v3 for DeepseekV3Model.
std::string type_of_class(std::string name) {
  for (const char* end : {"For", "Model", "LMHead"}) {
    const auto at = name.find(end);
    if (at != std::string::npos && at > 0) name.resize(at);
  }
  name = plain_name(name);
  for (const ModelType& type : kTypes) {
    if (plain_name(type.name) == name) return std::string(type.name);
  }
  for (const auto* rows : {&decoders(), &encoders(), &towers(), &pyramids()}) {
    for (const Family& family : *rows) {
      if (plain_name(family.type) == name) return std::string(family.type);
    }
  }
  return {};
}

[[noreturn]] void fail_unknown(Reader& reader, const std::string& name) {
  std::set<std::string> known;  // some are in both tables
  for (const ModelType& type : kTypes) known.emplace(type.name);
  for (const auto* rows : {&decoders(), &encoders(), &towers(), &pyramids()}) {
    for (const Family& family : *rows) known.emplace(family.type);
  }
  const std::vector<std::string> names(known.begin(), known.end());
  reader.fail("model_type", "'" + name + "' is not known" + did_you_mean(name, names) +
                                "; `syncline init --tensors FILE` takes what torch prints by `" +
                                std::string(kPrintTensors) + "`");
}

// Returns the model's type, of those that are known: its model_type's, or its class's.
std::string type_of(Reader& reader) {
  const std::string made = type_of_class(class_in(reader));
  if (!has_value(reader, "model_type") && made.empty()) {
    reader.fail("model_type",
                "missing, so no family tells the layers of these sizes: write one (\"llama\"), or "
                "`syncline init --tensors FILE` takes what torch prints by `" +
                    std::string(kPrintTensors) + "`");
  }
  std::string name = has_value(reader, "model_type") ? reader.text("model_type") : made;
  const auto known = [](const std::string& type) {
    return shaped_type(type) != nullptr || listed_type(type) != nullptr;
  };
  if (!known(name)) {
    if (made.empty()) fail_unknown(reader, name);
    name = made;
  }
  const ModelType* shaped = shaped_type(name);
  if (shaped == nullptr || shaped->experts) return name;
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    if (has_value(reader, key) && reader.integer(key, 0, operators::kMaxVocabulary) > 1) {
      reader.fail(key, "a mixture of experts (" + name + "), which is not known here");
    }
  }
  return name;
}

// Returns the checkpoint's own name, the folder's, or the family's.
std::string name_of(Reader& reader, const std::string& file, const std::string& type) {
  if (has_value(reader, "_name_or_path")) {
    std::string path = reader.text("_name_or_path");
    while (path.ends_with('/')) path.pop_back();
    const auto slash = path.rfind('/');
    if (slash != std::string::npos) path.erase(0, slash + 1);
    if (!path.empty() && path != ".") return path;
  }
  const std::string folder = std::filesystem::path(file).parent_path().filename().string();
  const bool telling = !folder.empty() && folder != "." && folder != "..";
  return telling ? folder : type;
}

// How the classes of transformers end, the longer ones first.
struct Ending {
  std::string_view words;
  End end;
};
constexpr Ending kEndings[] = {
    {"ForSequenceClassification", End::kClasses},
    {"ForImageClassification", End::kClasses},
    {"ForImageClassificationWithTeacher", End::kTaught},
    {"ForVideoClassification", End::kClasses},
    {"ForSemanticSegmentation", End::kPixels},
    {"ForObjectDetection", End::kBoxes},
    {"ForAudioClassification", End::kSounds},
    {"ForTokenClassification", End::kEachToken},
    {"ForQuestionAnswering", End::kSpans},
    {"ForMultipleChoice", End::kChoices},
    {"ForNextSentencePrediction", End::kPairs},
    {"ForPreTraining", End::kPretrain},
    {"ForConditionalGeneration", End::kWords},
    {"ForMaskedLM", End::kWords},
    {"ForCTC", End::kWords},
    {"MTModel", End::kWords},
    {"ForCausalLM", End::kCausal},
    {"WithLMHeadModel", End::kCausal},
    {"LMHeadModel", End::kCausal},
    {"EncoderDecoderModel", End::kNone},
    {"EncoderModel", End::kEncoder},
    {"QuestionEncoder", End::kEncoder},
    {"ContextEncoder", End::kEncoder},
    {"Model", End::kNone},
};

[[noreturn]] void fail_class(Reader& reader, const std::string& name) {
  reader.fail("architectures", "the head of " + name +
                                   " is not known; `syncline init --tensors FILE` takes what " +
                                   "torch prints by `" + std::string(kPrintTensors) + "`");
}

// Returns a model's head by its class, which is the type's and an ending that is known. A file
// without a class is of the language model, if it `decodes`.
End end_of(Reader& reader, std::string_view type, bool decodes) {
  const std::string name = class_in(reader);
  if (name.empty()) return decodes ? End::kCausal : End::kNone;
  const auto* ending = std::ranges::find_if(
      kEndings, [&](const Ending& each) { return name.ends_with(each.words); });
  if (ending == std::end(kEndings)) fail_class(reader, name);
  // More words than the type's are of another model: GPT2DoubleHeads, SiglipVision.
  const std::string own = plain_name(name.substr(0, name.size() - ending->words.size()));
  const std::string known = plain_name(type);
  if (own != known && own.starts_with(known)) fail_class(reader, name);
  return ending->end;
}

// Warns of parts that are not read.
void say_parts(Reader& reader, std::vector<std::string>& warnings) {
  if (has_value(reader, "quantization_config")) warnings.emplace_back(kUnreadQuantisation);
}

// Returns true if the catalogue lays down the model with this end. ChatGLMModel has a head.
bool lays(const ModelType& type, End end) {
  if (type.family == "vit") return end == End::kClasses || end == End::kCausal;
  if (type.family == "bert") return end == End::kNone;
  return end == End::kNone || end == End::kCausal || end == End::kWords;
}

// Returns true if a model reads three colours, with biases, as the catalogue's ViT.
bool sees_colours(Reader& reader) {
  return channels_of(reader) == 3 && flag_or(reader, "qkv_bias", true);
}

// Removes the head that the checkpoint lacks, and warns of parts that are not read.
void take_parts(Reader& reader, const ModelType& type, Json& shape,
                std::vector<std::string>& warnings) {
  say_parts(reader, warnings);
  const bool headless = end_of(reader, type.name, true) == End::kNone && type.name != "chatglm";
  if (type.family != "llama" || !headless) return;
  shape["tied"] = true;
  warnings.push_back(class_in(reader) + " has no language head: its parameters are left out, " +
                     "though the time of its product is counted");
}

bool recognises_config(const Head& head) {
  const std::size_t first = head.bytes.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || head.bytes[first] != '{') return false;
  const auto says = [&](const char* key) { return head.bytes.find(key) != std::string::npos; };
  // If labels fill more than the head, `architectures` comes first.
  const bool sized = says("\"hidden_size\"") && says("\"num_hidden_layers\"");
  return sized || says("\"model_type\"") || says("\"architectures\"") ||
         (says("\"architecture\"") && says("\"num_classes\""));
}

// Adds the parameters of an architecture of the catalogue, in the order of use.
void append_generated(const Json& shape, Laid& laid) {
  Json own = shape;
  const bool words = laid.has_words();
  if (!words) own["tied"] = true;  // no head of its own
  const Json operators = {
      {"architecture", "llama"}, {"dtype", "fp32"}, {"sequence", 1}, {"shape", own}};
  const Json json = {{"name", "text"}, {"operators", operators}};
  Cluster any;
  any.device.flops = any.device.half_flops = any.device.memory = 1;
  const Workload workload = input::read_workload(Reader(json, "config", ""), any);
  const auto experts = own.value("experts", std::int64_t{1});
  const double share = static_cast<double>(own.value("experts_per_token", std::int64_t{1})) /
                       std::max(1.0, static_cast<double>(experts));
  double table = 0;
  for (auto tensor = workload.tensors.rbegin(); tensor != workload.tensors.rend(); ++tensor) {
    const bool embedding = is_table(tensor->name);
    const bool product = tensor->shape.size() == 2 && !embedding;
    laid.add(tensor->name, tensor->shape, product ? tensor->expert ? share : 1 : 0);
    if (embedding) table = static_cast<double>(tensor->elements);
  }
  if (words && own.value("tied", false)) laid.all.back().multiplied += table;
}

// Returns the operators of a model of the catalogue.
Json operators_of(Reader& reader, const ModelType& type, std::vector<std::string>& warnings) {
  Json operators = {{"architecture", type.family}, {"dtype", "bf16"}, {"autocast", true}};
  Json shape = type.shape(reader);
  take_parts(reader, type, shape, warnings);
  if (type.family == "vit") {
    constexpr std::int64_t kUsualClasses = 2;  // of transformers
    operators["image"] = image_of(reader);
    operators["classes"] = classes_of(reader, kUsualClasses);
  } else {
    constexpr std::int64_t kSequence = 2048;
    operators["sequence"] = std::min(kSequence, shape["positions"].get<std::int64_t>());
    warnings.push_back("samples of " + operators["sequence"].dump() + kUntoldTokens);
    if (type.family != "llama") operators["flash_attention"] = true;
  }
  operators["shape"] = std::move(shape);
  return operators;
}

// Returns the format that a checkpoint is stored in.
std::string dtype_in(Reader& reader) {
  for (const char* key : {"torch_dtype", "dtype"}) {
    if (!has_value(reader, key) || !reader.json()[key].is_string()) continue;
    const std::string word = reader.text(key);
    if (word == "bfloat16") return "bf16";
    if (word == "float16") return "fp16";
  }
  return "fp32";
}

// Lays the head of a task on a decoder, by the columns of its last norm.
void lay_decoder_task(Reader& reader, Laid& laid) {
  constexpr std::int64_t kUsualClasses = 2;
  if (!laid.ends_in({End::kClasses, End::kEachToken, End::kSpans})) return;
  const bool spans = laid.ends_in({End::kSpans});
  laid.linear("score", laid.all.back().shape.front(), spans ? 2 : classes_of(reader, kUsualClasses),
              !laid.ends_in({End::kClasses}));
}

// Returns the parameters of a model of any other family, with the FLOPs of their products.
Json tensors_in(Reader& reader, const std::string& type, std::vector<std::string>& warnings) {
  const Family* family = listed_type(type);
  Laid laid(end_of(reader, type, !is_one_of(encoders(), type)));
  if (family != nullptr) {
    family->lay(reader, laid);
  } else if (!lay_shaped(reader, type, laid)) {
    fail_class(reader, class_in(reader));
  }
  if (family == nullptr || is_one_of(decoders(), type)) lay_decoder_task(reader, laid);
  if (!class_in(reader).empty() && !laid.end_is_known()) fail_class(reader, class_in(reader));
  say_parts(reader, warnings);
  const std::string dtype = dtype_in(reader);
  for (Parameter& parameter : laid.all) parameter.dtype = dtype;
  const std::string tokens = is_one_of(pyramids(), type)
                                 ? "each stage's positions of an image"
                                 : std::to_string(kTokens) + " tokens a sample in every part";
  warnings.push_back(kFlopsBy + tokens +
                     ", without attention's own products, and no activations in memory: " + type +
                     " is known by its parameters");
  return tensors_of(laid.all, true);
}

// A network of images by the name that another library gives it.
struct NamedImages {
  std::string_view name;  // timm's
  std::string_view row;
};
constexpr NamedImages kTimm[] = {
    {"resnet18", "resnet18"},
    {"resnet34", "resnet34"},
    {"resnet50", "resnet50_v1.5"},
    {"resnet101", "resnet101"},
    {"resnet152", "resnet152"},
    {"wide_resnet50_2", "wide_resnet50_2"},
    {"vgg11", "vgg11"},
    {"vgg13", "vgg13"},
    {"vgg16", "vgg16"},
    {"vgg19", "vgg19"},
    {"vit_base_patch16_224", "vit_b_16"},
    {"vit_base_patch32_224", "vit_b_32"},
    {"vit_large_patch16_224", "vit_l_16"},
    {"vit_large_patch32_224", "vit_l_32"},
    {"vit_huge_patch14_224", "vit_h_14"},
};

// Residual networks of transformers (modeling_resnet.py), by the blocks of their stages.
struct Stages {
  std::string_view row;
  std::string_view block;
  std::array<int, 4> blocks;
};
constexpr Stages kResNets[] = {{"resnet18", "basic", {2, 2, 2, 2}},
                               {"resnet34", "basic", {3, 4, 6, 3}},
                               {"resnet50_v1.5", "bottleneck", {3, 4, 6, 3}},
                               {"resnet101", "bottleneck", {3, 4, 23, 3}},
                               {"resnet152", "bottleneck", {3, 8, 36, 3}}};

Json images_of(std::string_view row, std::int64_t image, std::int64_t classes) {
  return {{"architecture", row},
          {"dtype", "bf16"},
          {"autocast", true},
          {"image", image},
          {"classes", classes}};
}

// Returns the operators of timm's config.json, which names an architecture.
Json timm_operators(Reader& reader) {
  const std::string name = reader.text("architecture");
  const auto* row = std::ranges::find(kTimm, name, &NamedImages::name);
  if (row == std::end(kTimm)) {
    std::string names;
    for (const NamedImages& each : kTimm) {
      names += (names.empty() ? "" : ", ") + std::string(each.name);
    }
    reader.fail("architecture", "'" + name + "' of timm is not known: " + names +
                                    " are; `syncline init --tensors FILE` takes what torch "
                                    "prints by `" +
                                    std::string(kPrintTensors) + "`");
  }
  constexpr std::int64_t kUsual = 1000;
  return images_of(row->row, 224, size_or(reader, "num_classes", kUsual, kUsual * kUsual));
}

// Returns the operators of transformers' ResNet.
Json resnet_operators(Reader& reader) {
  const Json depths = reader.json().value("depths", Json({3, 4, 6, 3}));
  const std::string block = reader.json().value("layer_type", Json("bottleneck")).dump();
  const auto* row = std::ranges::find_if(kResNets, [&](const Stages& each) {
    return depths == Json(each.blocks) && block == "\"" + std::string(each.block) + "\"";
  });
  const Json widths =
      Json(row != std::end(kResNets) && row->block == "basic" ? std::array{64, 128, 256, 512}
                                                              : std::array{256, 512, 1024, 2048});
  for (const char* key : {"downsample_in_first_stage", "downsample_in_bottleneck"}) {
    expect_flag(reader, key, false);
  }
  const bool usual = reader.json().value("hidden_sizes", widths) == widths &&
                     size_or(reader, "embedding_size", 64, operators::kMaxHidden) == 64;
  if (row == std::end(kResNets) || !usual) {
    reader.fail("depths", "a ResNet of other sizes than those of 18, 34, 50, 101 and 152 layers");
  }
  if (channels_of(reader) != 3) reader.fail("num_channels", "only 3 is known");
  const End end = end_of(reader, "resnet", true);
  if (end != End::kClasses && end != End::kCausal) fail_class(reader, class_in(reader));
  return images_of(row->row, image_of(reader), classes_of(reader, 2));
}

// Returns the operators of a network of images that is no transformer; null: it is none.
Json convolving(Reader& reader) {
  if (reader.json().value("model_type", Json()) == "resnet") {
    return resnet_operators(reader);
  }
  const bool timm = !has_value(reader, "model_type") && has_value(reader, "architecture") &&
                    has_value(reader, "num_classes");
  return timm ? timm_operators(reader) : Json();
}

// Replaces numbers that Python writes and JSON lacks (time_step_limit of Mamba 2) by null.
std::string with_json_numbers(const std::string& text) {
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted && text[i] == '\\' && i + 1 < text.size()) out += text[i++];
    std::size_t skipped = 0;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (!quoted && skipped == 0 && text.compare(i, word.size(), word) == 0) skipped = word.size();
    }
    if (skipped > 0) out += "null";
    if (skipped == 0) out += text[i];
    if (skipped > 0) i += skipped - 1;
  }
  return out;
}

Observed read_config(const std::vector<std::string>& files) {
  if (files.size() > 1) throw InputError(files[1] + ": a model has one config.json");
  const Json json = parse_json_text(
      files.front(), with_json_numbers(read_text_file(files.front(), "a JSON file")));
  return workload_of_config(json, files.front(), "");
}

}  // namespace

Observed workload_of_config(const Json& json, const std::string& file, const std::string& name) {
  Reader reader(json, file, "");
  Observed observed;
  observed.framework = "pytorch";
  if (const Json images = convolving(reader); !images.is_null()) {
    observed.name = name.empty() ? name_of(reader, file, images["architecture"]) : name;
    observed.workload = {{"name", observed.name},
                         {"source", "its config.json"},
                         {"batch", 1},
                         {"operators", images}};
    return observed;
  }
  const std::string type = type_of(reader);
  observed.name = name.empty() ? name_of(reader, file, type) : name;
  const std::string source = "its config.json, model_type " + type;
  const ModelType* shaped = shaped_type(type);
  const bool usual = shaped != nullptr && (shaped->family != "vit" || sees_colours(reader));
  if (usual && lays(*shaped, end_of(reader, type, shaped->family != "bert"))) {
    observed.workload = {{"name", observed.name},
                         {"source", source},
                         {"batch", 1},
                         {"operators", operators_of(reader, *shaped, observed.warnings)}};
  } else {
    observed.workload =
        workload_of(observed.name, source, tensors_in(reader, type, observed.warnings));
  }
  return observed;
}

bool lay_shaped(Reader& reader, const std::string& type, Laid& laid) {
  const ModelType* shaped = shaped_type(type);
  if (shaped == nullptr || shaped->family != "llama") return false;
  const Json shape = shaped->shape(reader);
  append_generated(shape, laid);
  return true;
}

const ImportFormat kConfig = {
    "config", "config: Hugging Face's config.json, of most models of text, images and sound",
    recognises_config, read_config};

}  // namespace syncline::job::models
