// What a framework's own settings tell of a job: its layout, the samples of a step, how gradients
// are exchanged and, where they describe it, the model. Megatron's flags (a line, or the script
// that holds them) and YAML, torchtitan's TOML and DeepSpeed's JSON are read as they are. What
// changes no step's time is passed over; what is not evaluated, or not known, is named.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json/json.h"

namespace syncline::job {

struct Settings {
  std::string framework;  // "Megatron"
  // Keys of a scenario's workload: parallel, batch, activation_checkpointing, and with a model its
  // name and operators.
  Json workload = Json::object();
  std::int64_t global_batch = 0;   // samples a step, all ranks together; 0: not told
  std::int64_t micro_batches = 0;  // 0: not told
  Json strategy;                   // as it is configured: dialect and config
  bool autocast = false;  // parameters and gradients are in fp32 whatever the products are in
  std::vector<std::string> assumed;
};

// `text` is a file of settings, or what stands in one. Nothing where it is neither. Throws
// InputError naming key and value for settings that make no sense.
std::optional<Settings> read_settings(const std::string& text);

namespace frameworks {

inline constexpr std::int64_t kMostRanks = 1 << 20;
inline constexpr std::int64_t kMostSamples = 1 << 30;

// Flags by their names without the dashes, "--seq-length 8192" as a number, "--swiglu" as true;
// several values as a list. Shell scripts are read without being run: comments, quotes, variables
// that they set. A flag that stands twice has its last value.
Json flags_of(const std::string& text);

Settings of_megatron(const Json& flags, const std::string& file);
// Mappings one in the other become flags, the configuration's own names Megatron's flags.
Json flags_of_yaml(const Json& yaml);
Settings of_torchtitan(const Json& toml, const std::string& file);
Settings of_deepspeed(const Json& json, const std::string& file);

}  // namespace frameworks
}  // namespace syncline::job
