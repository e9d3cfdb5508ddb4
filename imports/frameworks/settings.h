// What a framework's own settings tell of a job: its layout, the samples of a step, how gradients
// are exchanged and, where they describe it, the model. Megatron's flags (a line, or a captured
// launch) and YAML, torchtitan's TOML, DeepSpeed's JSON and the files and flags of Hugging
// Face's libraries are read as they are. What changes no step's time is passed over; what is not
// evaluated, or not known, is named.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json/json.h"
#include "formats/launch/launch.h"

namespace syncline::job {

struct Settings {
  std::string framework;  // "Megatron"
  // Keys of a scenario's workload: parallel, batch, activation_checkpointing, and with a model its
  // name and operators.
  Json workload = Json::object();
  std::int64_t global_batch = 0;   // samples a step, all ranks together; 0: not told
  std::int64_t micro_batches = 0;  // 0: not told
  Json strategy;                   // as it is configured: dialect and config
  std::string no_model;    // why they describe none, where that is not plain: "... trains BERT"
  bool autocast = false;   // parameters and gradients are in fp32 whatever the products are in
  bool compiled = false;   // by torch.compile
  std::int64_t ranks = 0;  // processes that the settings start; 0: not told
  std::vector<std::string> assumed;
};

// `text` is a file of settings or captured launches ("-": standard input), or what stands in one;
// `more` are flags that win over those of a file; `launch` chooses among launches, by its number;
// 0: the one that trains. Nothing where it is neither. Throws InputError naming key and value for
// settings that make no sense, and the framework for those of one that is not read.
std::optional<Settings> read_settings(const std::string& text, const std::string& more = "",
                                      int launch = 0);

namespace frameworks {

struct ShellLines;

inline constexpr std::int64_t kMostRanks = 1 << 20;
inline constexpr std::int64_t kMostSamples = 1 << 30;

// The launch that trains.
struct TrainingCommand {
  Json flags = Json::object();   // with the content of captured files in place of their names
  std::string program;           // "torchrun"
  std::string script;            // "pretrain_gpt.py"
  Json launch = Json::object();  // flags ahead of the script
  std::vector<Json> settings;    // files behind it: their content, or the name of one not captured
  // Keys of these files and their values: "trainer.devices=8", as Hydra and OmegaConf take them.
  std::vector<std::pair<std::string, std::string>> overrides;
  std::int64_t ranks = 0;                          // processes that it starts; 0: it does not say
  std::vector<std::string> around;                 // words of srun or mpirun
  std::map<std::string, std::string> environment;  // of a captured one
  std::vector<std::string> said;                   // what was chosen, and what was passed over
};
// `chosen` counts from 1; 0: the one that trains.
TrainingCommand training_command(const std::vector<launch::CapturedLaunch>& launches, int chosen);

// Returns the settings that a launch names as one, with its overrides and its flags that name keys:
// "--trainer.devices 8".
Json with_overrides(const TrainingCommand& training);

// Each command of some lines as a launch.
std::vector<launch::CapturedLaunch> launches_in_lines(const ShellLines& lines);

// Flags of a line by their names without the dashes, "--seq-length 8192" as a number, "--swiglu" as
// true; several values as a list. A flag that stands twice has its last value.
Json flags_of(const std::string& text);

// Whether flags are Megatron's, of which one at least says so.
bool marks_megatron(const Json& flags);

// `script`: the program that takes the flags, where that is known.
Settings of_megatron(const Json& flags, const std::string& file, const std::string& script = "");

// Megatron's own YAML, whose mappings one in the other become flags, the configuration's own names
// Megatron's flags.
bool is_megatron_yaml(const Json& yaml);
Json flags_of_yaml(const Json& yaml);
// Megatron-Bridge's run_config.yaml: each section by its own rules. Adds what was passed over.
bool is_bridge_yaml(const Json& yaml);
Json flags_of_bridge(const Json& yaml, const std::string& file, std::vector<std::string>& said);
// "settings of NeMo, which ...: give ...", where settings, or a launch, bear the mark of another
// framework. Empty: they do not.
std::string other_framework(const Json& settings);
std::string other_program(const TrainingCommand& training);

// NeMo's YAML of a Megatron model and gpt-neox', with flags of Megatron's that win.
bool is_nemo(const Json& yaml);
Settings of_nemo(const Json& yaml, const Json& more, const std::string& file);
bool is_neox(const Json& yaml);
Settings of_neox(const Json& yaml, const Json& more, const std::string& file);
// YAML of LightningCLI, and of Composer as llm-foundry has it.
bool is_lightning(const Json& yaml);
Settings of_lightning(const Json& yaml, const std::string& file);
bool is_composer(const Json& yaml);
Settings of_composer(const Json& yaml, const std::string& file);

// Settings of an exchange alone, by their names: Paddle's, MindSpore's, Horovod's, PyTorch's.
std::optional<Settings> of_own_settings(const Json& json, const std::string& file);
// Paddle's DistributedStrategy as save_to_prototxt writes it.
Settings of_prototxt(const std::string& text, const std::string& file);

// A mapping's own mapping of that name; an empty one where there is none.
const Json& section_of(const Json& all, const char* key);
// Names flags as files name the same settings: "batch-size" as "batch_size".
Json underscored(const Json& flags);
bool has_any(const Json& json, std::initializer_list<const char*> keys);
// Finds a text with this beginning under any key of this name, at any depth.
bool any_under(const Json& json, std::string_view key, std::string_view begin);

Settings of_torchtitan(const Json& toml, const std::string& file);
Settings of_deepspeed(const Json& json, const std::string& file);
// Hugging Face's libraries: keys of accelerate's YAML, and of TrainingArguments and the files that
// other trainers put around them.
bool is_accelerate(const Json& json);
bool is_trainer(const Json& json);
// Reads TrainingArguments beside accelerate's settings; either may be an empty object.
Settings of_hugging_face(const Json& arguments, const Json& launch, const std::string& file);
// Takes the model of a name such as "meta-llama/Llama-3.1-8B", if it is known.
void take_model_named(const std::string& name, Settings& settings);
// Returns the flags of accelerate's launch as its YAML has them.
Json launch_settings(const Json& flags, const std::string& file);
// Of DeepSpeed's configuration what the Trainer fills in by the width of the model (accelerate
// 16cb6eb8, accelerator.py).
void fill_auto_sizes(std::int64_t hidden, Json& config, std::vector<std::string>& assumed);

}  // namespace frameworks
}  // namespace syncline::job
