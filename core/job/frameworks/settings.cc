#include "core/job/frameworks/settings.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/dialect/megatron.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json/reader.h"
#include "core/json/text.h"
#include "core/visible.h"

namespace syncline::job {
namespace {

constexpr long long kLargest = 1 << 20;

// Flags by which Megatron's are told from others.
bool is_megatron(const Json& flags) {
  if (flags.contains("num-layers") || flags.contains("micro-batch-size")) return true;
  return std::ranges::any_of(dialect::megatron_layout(),
                             [&](const auto& row) { return flags.contains(row.flag); });
}

bool is_deepspeed(const Json& json) {
  return std::ranges::any_of(
      std::array{"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu"},
      [&](const char* key) { return json.contains(key); });
}

}  // namespace

std::optional<Settings> read_settings(const std::string& text) {
  const bool flags = text.find("--") != std::string::npos &&
                     (text.starts_with("--") || text.find(' ') != std::string::npos);
  std::error_code error;
  const bool file = !flags && std::filesystem::is_regular_file(text, error);
  if (!flags && !file) return std::nullopt;
  const std::string name = file ? text : "the flags";
  std::string content = text;
  if (file) {
    if (std::filesystem::file_size(text, error) > kLargest) return std::nullopt;
    content = read_text_file(text, "settings of a framework");
  }
  std::erase(content, '\r');
  const std::string kind = file ? std::filesystem::path(text).extension().string() : "";
  if (kind == ".toml") return frameworks::of_torchtitan(parse_toml(name, content), name);
  if (kind == ".yaml" || kind == ".yml") {
    const Json all = frameworks::flags_of_yaml(parse_yaml(name, content));
    if (!is_megatron(all)) throw InputError(name + ": no settings of Megatron's");
    return frameworks::of_megatron(all, name);
  }
  if (const std::size_t first = content.find_first_not_of(" \t\n");
      first != std::string::npos && content[first] == '{') {
    const std::optional<Json> json = json_in(content);
    if (!json || !json->is_object() || !is_deepspeed(*json)) return std::nullopt;
    return frameworks::of_deepspeed(*json, name);
  }
  if (not_utf8(content)) return std::nullopt;  // weights
  const Json all = frameworks::flags_of(content);
  if (!is_megatron(all)) return std::nullopt;
  return frameworks::of_megatron(all, name);
}

namespace frameworks {
namespace {

std::int64_t size_of(Reader& reader, const char* key, std::int64_t most) {
  const Json* value = reader.find(key);
  if (value == nullptr || value->is_null() || *value == "auto") return 0;
  return reader.integer(key, 1, most);
}

bool enabled(const Json& json, const char* key) {
  const auto section = json.find(key);
  return section != json.end() && section->is_object() && section->value("enabled", Json()) == true;
}

}  // namespace

// DeepSpeed's JSON: the layout is what it says of tensor and sequence parallelism; the model and a
// pipeline's stages stand in the script. Source: DeepSpeed edaa7221, deepspeed/runtime/config.py
// and runtime/tensor_parallel/config.py.
Settings of_deepspeed(const Json& json, const std::string& file) {
  Reader reader(json, file, "");
  Settings settings;
  settings.framework = "DeepSpeed";
  Json parallel = Json::object();
  if (reader.has("tensor_parallel")) {
    Reader tensor = reader.object("tensor_parallel");
    const std::int64_t size = size_of(tensor, "autotp_size", kMostRanks);
    if (size > 1) parallel["tensor"] = size;
  }
  const std::int64_t sequence = size_of(reader, "sequence_parallel_size", kMostRanks);
  if (sequence > 1) {
    parallel["context"] = sequence;
    parallel["context_exchange"] = "all_to_all";
  }
  if (!parallel.empty()) settings.workload["parallel"] = std::move(parallel);
  const std::int64_t micro = size_of(reader, "train_micro_batch_size_per_gpu", kMostSamples);
  if (micro > 0) settings.workload["batch"] = micro;
  settings.micro_batches = size_of(reader, "gradient_accumulation_steps", kMostSamples);
  settings.global_batch = size_of(reader, "train_batch_size", kMostSamples);
  const bool bf16 = enabled(json, "bf16"), fp16 = enabled(json, "fp16");
  settings.workload["operators"] = {{"dtype", bf16 ? "bf16" : fp16 ? "fp16" : "fp32"}};
  Json config = json;
  // The layout is the workload's.
  for (const char* key : {"tensor_parallel", "sequence_parallel_size", "train_batch_size",
                          "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}) {
    config.erase(key);
  }
  settings.strategy = {{"dialect", "deepspeed"}, {"config", std::move(config)}};
  return settings;
}

}  // namespace frameworks
}  // namespace syncline::job
