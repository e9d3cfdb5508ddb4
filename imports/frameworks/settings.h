// A job as a framework's own settings describe it: layout, samples of a step, exchange of gradients
// and, if described, the model. Read as they are: Megatron's flags (a line, or a captured launch)
// and YAML, torchtitan's TOML, DeepSpeed's JSON, and the files and flags of Hugging Face's
// libraries. Keys that change no step's time are ignored; keys that are unknown or not evaluated
// are named.
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
  std::int64_t global_batch = 0;   // samples per step, all ranks together; 0: not given
  std::int64_t micro_batches = 0;  // 0: not given
  Json strategy;                   // dialect and config
  std::string model;               // file of a model that the settings name, if it is here
  std::string no_model;            // reason why the model is missing, "... trains BERT"; or empty
  // Adapters of a frozen model (models::Adapters), as JSON; null: the whole model is trained.
  Json adapters = nullptr;
  Json parts = nullptr;    // the same if the model reads images; null: no part of it is frozen
  bool autocast = false;   // parameters and gradients stay in fp32
  bool compiled = false;   // by torch.compile
  bool modules = true;     // of PyTorch; false: the framework has kernels of its own
  std::int64_t ranks = 0;  // processes that the settings start; 0: not given
  std::int64_t nodes = 0;  // machines that the settings name; 0: not given
  std::map<std::string, std::string> nccl;  // variables of a launch that a scenario has keys for
  std::vector<std::string> assumed;
};

// Reads `text`: a file of settings or captured launches ("-": standard input), or its content.
// `more`: flags that override the file's; `launch`: number of a launch, 0: the one that trains.
// Nullopt if `text` is neither. Throws InputError for invalid settings, with key and value, and for
// a framework that is not supported, with its name.
std::optional<Settings> read_settings(const std::string& text, const std::string& more = "",
                                      int launch = 0);

namespace frameworks {

struct Keys;
struct ShellLines;

inline constexpr std::int64_t kMaxRanks = 1 << 20;
inline constexpr std::int64_t kMaxSamples = 1 << 30;

// The launch that trains.
struct TrainingCommand {
  Json flags = Json::object();   // with the content of captured files instead of their names
  std::string program;           // "torchrun"
  std::string script;            // "pretrain_gpt.py"
  Json launch = Json::object();  // flags before the script
  std::vector<Json> settings;    // files after the script: content, or the name if not captured
  // Overrides of these files' keys: "trainer.devices=8", as Hydra and OmegaConf take them.
  std::vector<std::pair<std::string, std::string>> overrides;
  std::int64_t ranks = 0;                          // processes that it starts; 0: not given
  std::int64_t nodes = 0;                          // machines that it names; 0: not given
  std::vector<std::string> around;                 // words of srun or mpirun
  std::map<std::string, std::string> environment;  // of a captured launch
  std::vector<std::string> said;                   // notes on chosen and ignored parts
};
// Returns the launch with number `chosen`, from 1; 0: the one that trains.
TrainingCommand training_command(const std::vector<launch::CapturedLaunch>& launches, int chosen);

// Returns all settings that a launch names, merged, with its overrides and its flags that name
// keys: "--trainer.devices 8".
Json with_overrides(const TrainingCommand& training);

// Returns each command of some lines as a launch.
std::vector<launch::CapturedLaunch> launches_in_lines(const ShellLines& lines);

// Returns flags of a line by names without dashes: "--seq-length 8192" as a number, "--swiglu" as
// true, several values as a list. The last of repeated flags wins.
Json flags_of(const std::string& text);

// Returns true if flags are Megatron's; at least one must be specific to it.
bool marks_megatron(const Json& flags);

// Reads Megatron's flags. `script`: the program that takes them, if known.
Settings of_megatron(const Json& flags, const std::string& file, const std::string& script = "");

// Reads Megatron's own YAML: keys of nested mappings become flags; names of the configuration
// become Megatron's flags.
bool is_megatron_yaml(const Json& yaml);
Json flags_of_yaml(const Json& yaml);
// Reads Megatron-Bridge's run_config.yaml, section by section. Notes ignored parts in `said`.
bool is_bridge_yaml(const Json& yaml);
Json flags_of_bridge(const Json& yaml, const std::string& file, std::vector<std::string>& said);
// Returns "settings of NeMo, which ...: give ..." if settings, or a launch, are marked as another
// framework's; else empty.
// other_trainer: by arguments that look like the Trainer's or Megatron's.
std::string other_framework(const Json& settings);
std::string other_program(const TrainingCommand& training);
std::string other_trainer(const Json& arguments);

// Reads NeMo's YAML of a Megatron model, and gpt-neox's; flags of Megatron in `more` win.
bool is_nemo(const Json& yaml);
Settings of_nemo(const Json& yaml, const Json& more, const std::string& file);
bool is_neox(const Json& yaml);
Settings of_neox(const Json& yaml, const Json& more, const std::string& file);
// Reads YAML of LightningCLI, and of Composer in llm-foundry's form.
bool is_lightning(const Json& yaml);
Settings of_lightning(const Json& yaml, const std::string& file);
bool is_composer(const Json& yaml);
Settings of_composer(const Json& yaml, const std::string& file);

// Reads PaddleNLP's arguments, MindFormers' YAML and NeMo Automodel's.
bool is_paddle_nlp(const Json& json);
Settings of_paddle_nlp(const Json& json, const std::string& file);
bool is_mindformers(const Json& yaml);
Settings of_mindformers(const Json& yaml, const std::string& file);
bool is_automodel(const Json& yaml);
Settings of_automodel(const Json& yaml, const std::string& file);

// Reads YAML of torchtune's recipes and of LitGPT's.
bool is_torchtune(const Json& yaml);
Settings of_torchtune(const Json& yaml, const std::string& file);
bool is_litgpt(const Json& yaml);
Settings of_litgpt(const Json& yaml, const std::string& file);
// Reads a launch of verl's supervised fine-tuning; nullopt: it is none.
std::optional<Settings> of_verls_tuning(const TrainingCommand& training, const std::string& file);
// Reads a launch of ms-swift's `megatron`; nullopt: it is none.
std::optional<Settings> of_megatron_swift(const TrainingCommand& training, const std::string& file);

// Reads a launch of torchvision's reference script or of timm's, which train an architecture by
// DDP; nullopt: it is none.
std::optional<Settings> of_image_script(const TrainingCommand& training);
// Returns the Trainer's arguments that a launch of OpenRLHF's train_sft comes to; null: it is none.
Json arguments_of_openrlhf(const TrainingCommand& training);

// Reads settings of an exchange alone, by their names: Paddle's, MindSpore's, Horovod's, PyTorch's.
std::optional<Settings> of_own_settings(const Json& json, const std::string& file);
// Reads Paddle's DistributedStrategy as save_to_prototxt writes it.
Settings of_prototxt(const std::string& text, const std::string& file);

// Joins the first `most` words and counts the others: "a, b and 3 more".
std::string list_words(const std::vector<std::string>& words, std::size_t most,
                       const char* between);

// Returns the mapping at `key`; an empty one if there is none.
const Json& section_of(const Json& all, const char* key);
// Names flags as files name the same settings: "batch-size" as "batch_size".
Json with_underscores(const Json& flags);
bool has_any(const Json& json, std::initializer_list<const char*> keys);
// Returns true if any key of this name, at any depth, has a text that begins with `begin`.
bool any_under(const Json& json, std::string_view key, std::string_view begin);

Settings of_torchtitan(const Json& toml, const std::string& file);
Settings of_deepspeed(const Json& json, const std::string& file);
// Returns true for files of Hugging Face's libraries: accelerate's YAML; TrainingArguments, alone
// or inside other trainers' files.
bool is_accelerate(const Json& json);
bool is_trainer(const Json& json);
// Reads TrainingArguments together with accelerate's settings; either may be an empty object.
Settings of_hugging_face(const Json& arguments, const Json& launch, const std::string& file);
// Reads LoRA (use_peft or use_lora, lora_r, target_modules, ...): its gradients alone travel.
// Throws InputError for other ways to train a part of a model.
void take_adapters(const Json& arguments, const std::string& file, Settings& settings);
// Sets FSDP's units of a model with adapters as the Trainer, or axolotl, asks for them.
void wrap_adapters(bool axolotl, Settings& settings);
// Names a script's own flags, or a model's arguments, that may be of adapters or of a cut model.
void name_own_flags(const Keys& arguments, Settings& settings);
// Sets the model by a name such as "meta-llama/Llama-3.1-8B", if it is known.
void take_model_named(const std::string& name, Settings& settings);
// Returns the flags of accelerate's launch as its YAML has them. Notes a file that is not here.
Json launch_settings(const Json& flags, const std::string& file, std::vector<std::string>& assumed);
// Fills in the sizes of DeepSpeed's configuration that the Trainer derives from the model's width
// (accelerate 16cb6eb8, accelerator.py).
void fill_auto_sizes(std::int64_t hidden, Json& config, std::vector<std::string>& assumed);

}  // namespace frameworks
}  // namespace syncline::job
