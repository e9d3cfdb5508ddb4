#include "imports/format.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string_view>

#include "catalogue/architectures/architecture.h"
#include "core/base/error.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"

namespace syncline::job::models {
namespace {

constexpr std::int64_t kMostExperts = 4096;

// A key that is there and not null.
bool given(Reader& reader, const char* key) {
  const Json* value = reader.find(key);
  return value != nullptr && !value->is_null();
}

std::int64_t size_or(Reader& reader, const char* key, std::int64_t fallback,
                     std::int64_t most = operators::kMostWords) {
  return given(reader, key) ? reader.integer(key, 1, most) : fallback;
}

bool flag_or(Reader& reader, const char* key, bool fallback) {
  return given(reader, key) ? reader.boolean_or(key, fallback) : fallback;
}

std::int64_t size(Reader& reader, const char* key, std::int64_t most = operators::kMostWords) {
  return reader.integer(key, 1, most);
}

// What makes up the whole in equal parts.
std::int64_t dividing(Reader& reader, const char* key, std::int64_t part, std::int64_t whole,
                      const char* of_what) {
  if (whole % part == 0) return part;
  reader.fail(key, "found " + std::to_string(part) + ", expected a divisor of " +
                       std::to_string(whole) + of_what);
}

// Heads share the hidden width, but for those that have one of their own.
std::int64_t heads(Reader& reader, const char* key, std::int64_t hidden, bool own_width) {
  const std::int64_t count = size(reader, key, operators::kMostHeads);
  return own_width ? count : dividing(reader, key, count, hidden, " hidden values");
}

// The keys that most families share.
Json hidden_sizes(Reader& reader, bool own_width = false) {
  const std::int64_t hidden = size(reader, "hidden_size", operators::kMostHidden);
  return {{"layers", size(reader, "num_hidden_layers", operators::kMostLayers)},
          {"hidden", hidden},
          {"heads", heads(reader, "num_attention_heads", hidden, own_width)},
          {"inner", size(reader, "intermediate_size", operators::kMostInner)}};
}

void add_words(Reader& reader, Json& shape) {
  shape["words"] = size(reader, "vocab_size");
  shape["positions"] = size_or(reader, "max_position_embeddings", 2048);
  if (flag_or(reader, "tie_word_embeddings", false)) shape["tied"] = true;
}

Json llama_shape(Reader& reader, bool bias, bool head_norm) {
  const bool own_width = given(reader, "head_dim");
  Json shape = hidden_sizes(reader, own_width);
  if (const char* key = "num_key_value_heads"; given(reader, key)) {
    shape["kv_heads"] = dividing(reader, key, size(reader, key), shape["heads"], " heads");
  }
  if (own_width) shape["head_width"] = size(reader, "head_dim", operators::kMostHeadWidth);
  add_words(reader, shape);
  if (bias) shape["bias"] = true;
  if (head_norm) shape["head_norm"] = true;
  return shape;
}

// Llama's own bias is on the output too, which nobody publishes.
Json llama(Reader& reader) {
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    if (flag_or(reader, key, false)) reader.fail(key, "found true, only false is known");
  }
  return llama_shape(reader, false, false);
}
Json qwen2(Reader& reader) { return llama_shape(reader, true, false); }
Json qwen3(Reader& reader) {
  if (flag_or(reader, "attention_bias", false)) {
    reader.fail("attention_bias", "found true, only false is known");
  }
  if (!given(reader, "head_dim")) reader.require("head_dim");
  return llama_shape(reader, false, true);
}

// Experts of `inner` each, of which a token goes to some.
void add_experts(Reader& reader, const char* count, const char* inner, Json& shape) {
  shape["experts"] = size(reader, count, kMostExperts);
  shape["experts_per_token"] = size(reader, "num_experts_per_tok", kMostExperts);
  shape["expert_inner"] = size(reader, inner, operators::kMostInner);
}

Json mixtral(Reader& reader) {
  Json shape = llama_shape(reader, false, false);
  add_experts(reader, "num_local_experts", "intermediate_size", shape);
  return shape;
}

Json qwen3_moe(Reader& reader) {
  Json shape = qwen3(reader);
  add_experts(reader, "num_experts", "moe_intermediate_size", shape);
  if (size_or(reader, "decoder_sparse_step", 1) != 1) {
    reader.fail("decoder_sparse_step", "only 1 is known: experts in every layer");
  }
  if (given(reader, "mlp_only_layers") && !reader.array("mlp_only_layers").empty()) {
    reader.fail("mlp_only_layers", "only none is known: experts in every layer");
  }
  return shape;
}

// Latent attention; the first layers have no experts, the others one more that all tokens share.
Json deepseek(Reader& reader) {
  Json shape = hidden_sizes(reader, true);
  add_experts(reader, "n_routed_experts", "moe_intermediate_size", shape);
  shape["shared_inner"] = size_or(reader, "n_shared_experts", 0, kMostExperts) *
                          shape["expert_inner"].get<std::int64_t>();
  if (given(reader, "first_k_dense_replace")) {
    shape["dense_layers"] = reader.integer("first_k_dense_replace", 0, operators::kMostLayers);
  }
  if (size_or(reader, "moe_layer_freq", 1) != 1) {
    reader.fail("moe_layer_freq", "only 1 is known: experts in every layer after the first");
  }
  const std::int64_t width = size(reader, "qk_nope_head_dim", operators::kMostHeadWidth);
  if (size(reader, "v_head_dim", operators::kMostHeadWidth) != width) {
    reader.fail("v_head_dim",
                "only that of qk_nope_head_dim, " + std::to_string(width) + ", is known");
  }
  shape["head_width"] = width;
  shape["rope_width"] = size(reader, "qk_rope_head_dim", operators::kMostHeadWidth);
  shape["latent"] = size(reader, "kv_lora_rank", operators::kMostHidden);
  shape["query_latent"] = size_or(reader, "q_lora_rank", 0, operators::kMostHidden);
  add_words(reader, shape);
  return shape;
}

Json gpt2(Reader& reader) {
  if (!flag_or(reader, "tie_word_embeddings", true)) {
    reader.fail("tie_word_embeddings", "found false, GPT-2's head is known as tied alone");
  }
  const std::int64_t hidden = size(reader, "n_embd", operators::kMostHidden);
  Json shape = {{"layers", size(reader, "n_layer", operators::kMostLayers)},
                {"hidden", hidden},
                {"heads", heads(reader, "n_head", hidden, false)},
                {"words", size(reader, "vocab_size")},
                {"positions", size_or(reader, "n_positions", 1024)}};
  if (given(reader, "n_inner")) shape["inner"] = size(reader, "n_inner", operators::kMostInner);
  return shape;
}

Json bert(Reader& reader) {
  Json shape = hidden_sizes(reader);
  shape["words"] = size(reader, "vocab_size");
  shape["positions"] = size_or(reader, "max_position_embeddings", 512);
  shape["kinds"] = size_or(reader, "type_vocab_size", 2, operators::kMostKinds);
  return shape;
}

std::int64_t image_of(Reader& reader) {
  return given(reader, "image_size")
             ? reader.integer("image_size", operators::kLeastImage, operators::kMostImage)
             : 224;
}

Json vit(Reader& reader) {
  Json shape = hidden_sizes(reader);
  const char* key = "patch_size";
  const std::int64_t patch = size_or(reader, key, 16, operators::kMostImage);
  const std::int64_t image = image_of(reader);
  shape["patch"] = dividing(reader, key, patch, image, " pixels of an image's side");
  const std::int64_t across = image / patch;  // divides
  const auto rows = static_cast<double>(across * across + 1);
  const double widest = std::max({shape["hidden"].get<double>(), shape["inner"].get<double>(),
                                  shape["heads"].get<double>() * rows});
  if (rows * widest > operators::kMostElements) {
    reader.fail(key, "found " + std::to_string(patch) + " for images of " + std::to_string(image) +
                         ": a tensor of more than 10^15 elements");
  }
  return shape;
}

struct ModelType {
  std::string_view name;    // model_type
  std::string_view family;  // architecture
  Json (*shape)(Reader&);
  bool experts = false;
};

constexpr ModelType kTypes[] = {
    {"llama", "llama", llama},
    {"mistral", "llama", llama},
    {"qwen2", "llama", qwen2},
    {"qwen3", "llama", qwen3},
    {"mixtral", "llama", mixtral, true},
    {"qwen3_moe", "llama", qwen3_moe, true},
    {"deepseek_v2", "llama", deepseek, true},
    {"deepseek_v3", "llama", deepseek, true},
    {"kimi_k2", "llama", deepseek, true},
    {"gpt2", "gpt2", gpt2},
    {"bert", "bert", bert},
    {"vit", "vit", vit},
};

const ModelType& type_of(Reader& reader) {
  const std::string name = reader.text("model_type");
  const auto known = std::ranges::find(kTypes, name, &ModelType::name);
  const bool found = known != std::end(kTypes);
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    if (found && known->experts) break;
    if (given(reader, key) && reader.integer(key, 0, operators::kMostWords) > 1) {
      reader.fail(key, "a mixture of experts (" + name + "), which is not known here");
    }
  }
  if (found) return *known;
  std::string names;
  for (const ModelType& type : kTypes) {
    names += (names.empty() ? "" : ", ") + std::string(type.name);
  }
  reader.fail("model_type", "'" + name + "' is not known, only " + names);
}

// The checkpoint's own name, the folder's, or the family's.
std::string name_of(Reader& reader, const std::string& file, const ModelType& type) {
  if (given(reader, "_name_or_path")) {
    std::string path = reader.text("_name_or_path");
    while (path.ends_with('/')) path.pop_back();
    const auto slash = path.rfind('/');
    if (slash != std::string::npos) path.erase(0, slash + 1);
    if (!path.empty() && path != ".") return path;
  }
  const std::string folder = std::filesystem::path(file).parent_path().filename().string();
  const bool telling = !folder.empty() && folder != "." && folder != "..";
  return telling ? folder : std::string(type.name);
}

std::int64_t classes_of(Reader& reader) {
  if (given(reader, "id2label") && reader.json()["id2label"].is_object()) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(reader.json()["id2label"].size()));
  }
  return size_or(reader, "num_labels", 1000);
}

// The class that a decoder's config is of, where that has no language head; else "".
std::string headless(Reader& reader, const ModelType& type) {
  if (type.family != "llama" || !given(reader, "architectures")) return {};
  const Json& classes = reader.json()["architectures"];
  if (!classes.is_array() || classes.empty() || !classes.front().is_string()) return {};
  const auto name = classes.front().get<std::string>();
  for (const char* end : {"Model", "Classification", "QuestionAnswering"}) {
    if (name.ends_with(end)) return name;
  }
  return {};
}

// Leaves out what the checkpoint does not have, and says what of it is not read.
void take_parts(Reader& reader, const ModelType& type, Json& shape,
                std::vector<std::string>& warnings) {
  if (const std::string name = headless(reader, type); !name.empty()) {
    shape["tied"] = true;
    warnings.push_back(name + " has no language head: its parameters are left out, though the " +
                       "time of its product is counted, and a task's own head is left out");
  }
  if (given(reader, "quantization_config")) {
    warnings.emplace_back(
        "quantization_config is not read: all parameters are assumed to be trained, where a "
        "quantised job trains adapters alone");
  }
}

bool recognises_config(const Head& head) {
  const std::size_t first = head.bytes.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || head.bytes[first] != '{') return false;
  const auto says = [&](const char* key) { return head.bytes.find(key) != std::string::npos; };
  // `architectures` stands first where labels fill more than the head.
  return says("\"model_type\"") || says("\"architectures\"");
}

Observed read_config(const std::vector<std::string>& files) {
  if (files.size() > 1) throw InputError(files[1] + ": a model has one config.json");
  const Json json = read_json_file(files.front());
  Reader reader(json, files.front(), "");
  const ModelType& type = type_of(reader);
  Observed observed;
  observed.framework = "pytorch";
  observed.name = name_of(reader, files.front(), type);
  Json operators = {{"architecture", type.family}, {"dtype", "bf16"}, {"autocast", true}};
  const bool images = type.family == "vit";
  Json shape = type.shape(reader);
  take_parts(reader, type, shape, observed.warnings);
  if (images) {
    operators["image"] = image_of(reader);
    operators["classes"] = classes_of(reader);
  } else {
    constexpr std::int64_t kSequence = 2048;
    operators["sequence"] = std::min(kSequence, shape["positions"].get<std::int64_t>());
    observed.warnings.push_back("samples of " + operators["sequence"].dump() +
                                " tokens (operators.sequence), which a config does not tell");
    if (type.family != "llama") operators["flash_attention"] = true;
  }
  if (type.family == "bert") {
    observed.warnings.emplace_back("the encoder with its pooler; a task's head is left out");
  }
  operators["shape"] = std::move(shape);
  observed.workload = {{"name", observed.name},
                       {"source", "its config.json, model_type " + std::string(type.name)},
                       {"batch", 1},
                       {"operators", std::move(operators)}};
  return observed;
}

}  // namespace

const ImportFormat kConfig = {
    "config",
    "config: Hugging Face's config.json: Llama, Mixtral, Qwen, DeepSeek, GPT-2, BERT, "
    "ViT",
    recognises_config, read_config};

}  // namespace syncline::job::models
