#include "core/job/frameworks/settings.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/dialect/megatron.h"
#include "core/error.h"
#include "core/files.h"
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

}  // namespace syncline::job
