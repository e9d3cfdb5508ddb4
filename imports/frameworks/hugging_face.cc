// Settings of Hugging Face's libraries: accelerate's YAML and launches, TrainingArguments as a file
// or as flags, and the files that LLaMA-Factory, TRL, axolotl and ms-swift put around them.
// Sources: accelerate 1.12.0 (utils/dataclasses.py, commands/launch.py) and transformers 4.57.3
// (training_args.py).
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "formats/dialect/framework_keys.h"
#include "formats/json/text.h"
#include "formats/text/files.h"
#include "formats/text/visible.h"
#include "imports/frameworks/keys.h"
#include "imports/frameworks/settings.h"
#include "imports/models/families.h"

namespace syncline::job::frameworks {
namespace {

namespace fs = std::filesystem;

// Names of other trainers for the same thing.
constexpr std::array<std::pair<const char*, const char*>, 20> kOtherNames{
    {{"base_model", "model_name_or_path"},
     {"model", "model_name_or_path"},
     {"model_id_or_path", "model_name_or_path"},
     {"pretrained_model_name_or_path", "model_name_or_path"},
     {"model_name", "model_name_or_path"},
     {"model_path", "model_name_or_path"},
     {"model_id", "model_name_or_path"},
     {"micro_batch_size", "per_device_train_batch_size"},
     {"train_batch_size_per_device", "per_device_train_batch_size"},
     {"per_gpu_train_batch_size", "per_device_train_batch_size"},
     {"sequence_len", "max_length"},
     {"cutoff_len", "max_length"},
     {"max_seq_length", "max_length"},
     {"max_seq_len", "max_length"},
     {"model_max_length", "max_length"},
     {"block_size", "max_length"},
     {"tuner_type", "finetuning_type"},
     {"train_type", "finetuning_type"},
     {"sft_type", "finetuning_type"},
     {"adapter", "finetuning_type"}}};

// Renames keys that LLaMA-Factory's web page saves: "model_path", and "compute_type"
// with the names of switches.
void rename_web_keys(const std::string& file, Json& all) {
  const Keys own{all, file};
  const std::string type = lower(own.word("compute_type"));
  if (!has_value(all, "compute_type") && !has_value(all, "training_stage")) return;
  if (!has_value(all, "stage")) all["stage"] = "sft";
  for (const char* name : {"bf16", "fp16", "pure_bf16"}) {
    if (type == name && !has_value(all, name)) all[name] = true;
  }
  for (const char* name : {"model_path", "model_name"}) {
    if (has_value(all, name) && !has_value(all, "model_name_or_path")) {
      all["model_name_or_path"] = all[name];
    }
  }
}

// Sets the defaults of other trainers: LLaMA-Factory (0.9.5, hparams/) and
// ms-swift (4.6, trainers/arguments.py) compute activations again, LLaMA-Factory trains adapters,
// axolotl (0.19, builders/base.py) shards with any fsdp_config.
void take_other_defaults(const std::string& file, Json& all) {
  rename_web_keys(file, all);
  const Keys own{all, file};
  // axolotl's words for recomputation with its inputs in the host's memory.
  for (const char* word : {"offload", "offload_disk", "unsloth"}) {
    if (lower(own.word("gradient_checkpointing")) != word) continue;
    all["gradient_checkpointing"] = all["activation_offloading"] = true;
  }
  const bool factory =
      has_any(all, {"stage", "finetuning_type"}) && has_any(all, {"template", "cutoff_len"});
  const bool swift = has_any(all, {"tuner_type", "train_type", "sft_type"});
  const bool sharded =
      has_value(all, "base_model") && has_value(all, "fsdp_config") && !has_value(all, "fsdp");
  const bool again =
      factory ? !own.on("disable_gradient_checkpointing") : own.on("gradient_checkpointing", true);
  if (factory || swift) all["gradient_checkpointing"] = again;
  if (factory && !has_value(all, "finetuning_type")) all["finetuning_type"] = "lora";
  if (sharded) all["fsdp"] = true;
  if (swift && !has_any(all, {"per_device_train_batch_size", "batch_size"})) {
    all["per_device_train_batch_size"] = 1;
  }
  if (has_any(all, {"bf16", "fp16"})) return;
  // ms-swift trains in the format that it loads a model in, axolotl in bf16 where there is one.
  if (swift && lower(own.word("torch_dtype", own.word("dtype"))) == "float16") {
    all["fp16"] = true;
  } else if (swift && own.word("torch_dtype") == "bfloat16") {
    all["bf16"] = true;
  } else if (swift || has_value(all, "base_model")) {
    all["bf16"] = "auto";
  }
  if (has_value(all, "sft_type") && has_value(all, "batch_size")) {
    all["per_device_train_batch_size"] = all["batch_size"];
  }
}

// Refuses to train by preferences or rewards: other models and generation take a part of the step.
void refuse_preferences(const Keys& arguments) {
  const Json& all = arguments.all;
  const std::string stage = lower(arguments.word("stage", "sft"));
  std::string key = stage == "sft" || stage == "pt" ? "" : "stage";
  for (const char* one : {"rl", "rlhf_type", "num_generations", "max_completion_length",
                          "reward_funcs", "reward_model", "ref_model", "max_prompt_length"}) {
    if (has_value(all, one)) key = one;
  }
  if (key.empty()) return;
  fail(arguments.file, key,
       "trains by preferences or rewards, where reference models, pairs of answers or generation "
       "take a part of the step that is not modelled: `syncline record` observes the job");
}

Json renamed(const Json& arguments, const std::string& file) {
  Json all = with_underscores(arguments);
  take_other_defaults(file, all);
  for (const auto& [other, name] : kOtherNames) {
    if (has_value(all, other) && !has_value(all, name)) all[name] = all[other];
  }
  return all;
}

void read_model(const Keys& arguments, Settings& settings) {
  const std::string name = arguments.word("model_name_or_path");
  if (name.empty() || !arguments.all["model_name_or_path"].is_string()) return;
  const fs::path own = fs::path(name) / "config.json";
  for (const fs::path& file : {own, fs::path(arguments.file).parent_path() / own}) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) continue;
    settings.model = file.string();
    return;
  }
  take_model_named(name, settings);
}

// Precision of products. `mixed`: parameters stay in fp32 (autocast).
struct Precision {
  std::string dtype = "fp32";  // empty: the device's usual one
  bool mixed = false;
  bool chosen = false;
};

Precision precision_of(const Keys& arguments, const Keys& launch) {
  if (arguments.on("pure_bf16")) return {"bf16", false, true};
  for (const char* dtype : {"bf16", "fp16"}) {
    if (arguments.on(dtype)) return {dtype, true, true};
  }
  const std::string word = lower(launch.word("mixed_precision"));
  if (word == "bf16" || word == "fp16" || word == "fp8") return {word, true, true};
  if (!word.empty() && word != "no" && word != "false") {
    fail(launch.file, "mixed_precision",
         "found '" + shorten_text(visible(word), 60) + "', expected no, fp16, bf16 or fp8");
  }
  for (const char* dtype : {"bf16", "fp16"}) {
    if (arguments.word(dtype) == "auto") return {"", true, false};
  }
  if (arguments.on("tf32")) return {"tf32", false, true};
  const bool chosen =
      !word.empty() || arguments.all.contains("bf16") || arguments.all.contains("fp16");
  return {"fp32", false, chosen};
}

// Returns the content of `key`: the settings' own object, or a file next to the settings or the
// run.
Json content_of(const Json& value, const std::string& key, const std::string& file) {
  if (value.is_object()) return value;
  if (!value.is_string()) {
    fail(file, key,
         "found " + shorten_text(visible(value.dump()), 60) +
             ", expected a file's name or its content, {...}");
  }
  const fs::path name = value.get<std::string>();
  std::error_code error;
  const fs::path folder = fs::path(file).parent_path();
  for (const fs::path& place : {name, folder / name, folder / name.filename()}) {
    if (!fs::is_regular_file(place, error)) continue;
    return read_json_file(place.string());
  }
  fail(file, key,
       "names '" + shorten_text(visible(name.string()), 120) +
           "', which is neither here nor next to these settings: put it there, or its content in "
           "place of its name");
}

bool is_file_near(const fs::path& name, const std::string& file) {
  std::error_code error;
  const fs::path folder = fs::path(file).parent_path();
  return std::ranges::any_of(
      std::array{name, folder / name, folder / name.filename()},
      [&](const fs::path& place) { return fs::is_regular_file(place, error); });
}

// Returns the stage in a file's name: "ds_z3_config", "zero2", "stage_2"; nullopt: none.
std::optional<int> stage_in(const std::string& name) {
  const std::string plain = models::plain_name(name);
  for (const std::string_view word : {"zero", "stage", "z"}) {
    for (auto at = plain.find(word); at != plain.npos; at = plain.find(word, at + 1)) {
      const auto digit = at + word.size();
      const bool number = digit < plain.size() && plain[digit] >= '0' && plain[digit] <= '3';
      const bool ends = digit + 1 >= plain.size() ||
                        std::isdigit(static_cast<unsigned char>(plain[digit + 1])) == 0;
      if (number && ends) return plain[digit] - '0';
    }
  }
  return std::nullopt;
}

// Returns the section of a file that is not here, by its name: one of ms-swift's own (3.0,
// swift/llm/ds_config), of LLaMA-Factory's (0.9.3, examples/deepspeed), of axolotl's (0.9,
// deepspeed_configs), or one with the stage in its name and DeepSpeed's defaults. Sets its
// owner.
Json zero_by_name(const fs::path& name, int stage, std::string& owner) {
  const std::string own = name.filename().string();
  const std::string number = "ds_z" + std::to_string(stage);
  const bool swift =
      own.starts_with("zero") ? name.extension().empty() : own.starts_with("default-zero");
  const bool factory = own == number + "_config.json" || own == number + "_offload_config.json";
  const bool axolotl =
      name.parent_path().filename() == "deepspeed_configs" && own.starts_with("zero");
  owner = swift     ? "ms-swift"
          : factory ? "LLaMA-Factory"
          : axolotl ? "axolotl"
                    : "DeepSpeed by default";
  Json zero{{"stage", stage}};
  if (swift || factory || axolotl) zero["overlap_comm"] = !factory;
  if (swift && stage < 3) zero["reduce_bucket_size"] = zero["allgather_bucket_size"] = 200000000;
  const bool offload = own.find("offload") != own.npos;
  const bool shards_alone = own.find("offload_param") != own.npos || (swift && stage == 3);
  if ((offload && !shards_alone) || (axolotl && own == "zero2.json")) {
    zero["offload_optimizer"] = {{"device", "cpu"}};
  }
  if (stage < 3) return zero;
  if (offload) zero["offload_param"] = {{"device", "cpu"}};
  if (axolotl) zero["max_live_parameters"] = zero["max_reuse_distance"] = 0;
  for (const char* key : {"reduce_bucket_size", "stage3_prefetch_bucket_size",
                          "stage3_param_persistence_threshold"}) {
    zero[key] = "auto";
  }
  return zero;
}

// Returns the arguments' configuration of DeepSpeed: a file's, or what its name says.
Json zero_config(const Json& value, const std::string& file, std::vector<std::string>& assumed) {
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  const std::optional<int> stage = stage_in(fs::path(name).filename().string());
  if (name.empty() || is_file_near(name, file) || !stage) {
    return content_of(value, "deepspeed", file);
  }
  std::string whose;
  Json zero = zero_by_name(name, *stage, whose);
  assumed.push_back("ZeRO stage " + std::to_string(*stage) + " as " + whose +
                    " has it, formats as the Trainer's, by the name '" +
                    shorten_text(visible(name), 80) + "' of a file that is not here: put it " +
                    "next to the settings to have it read");
  return {{"zero_optimization", std::move(zero)},
          {"bf16", {{"enabled", "auto"}}},
          {"fp16", {{"enabled", "auto"}}}};
}

// Returns a section of accelerate's without the prefix of its keys.
Json without_prefix(const Json& section, const std::string& prefix) {
  Json plain = Json::object();
  for (const auto& [key, value] : section.items()) {
    plain[key.starts_with(prefix) ? key.substr(prefix.size()) : key] = value;
  }
  return plain;
}

constexpr std::array<const char*, 5> kShardings{"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD",
                                                "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"};

// Returns FSDP1's word for its number, its name or the Trainer's option; empty: it is none of them.
std::string sharding_named(std::string word) {
  for (char& letter : word) letter = static_cast<char>(std::toupper(letter));
  for (std::size_t i = 0; i < kShardings.size(); ++i) {
    const std::string name = kShardings[i];
    const std::string other = name.starts_with('_') ? name.substr(1) : name;
    if (word == name || word == other || word == std::to_string(i + 1)) return name;
  }
  return "";
}

struct Sharding {
  Json config = Json::object();  // fsdp_config's keys without their prefix
  std::string word;              // the Trainer's option, if it names a strategy
  bool wraps = false;            // the Trainer's auto_wrap
  bool offloads = false;         // the Trainer's offload
  bool trainer = false;          // said by the Trainer's `fsdp`
};

// Reads the Trainer's `fsdp`: "full_shard auto_wrap", a list of these, or true.
Sharding sharding_of_trainer(const Keys& arguments) {
  Sharding sharding;
  sharding.trainer = true;
  const Json& option = arguments.all["fsdp"];
  std::vector<std::string> words;
  if (option.is_array()) {
    for (const Json& one : option) words.push_back(one.is_string() ? one.get<std::string>() : "");
  } else if (option.is_string()) {
    std::string word;
    for (const char letter : option.get<std::string>() + " ") {
      if (letter != ' ' && letter != ',') {
        word += letter;
      } else if (!word.empty()) {
        words.push_back(std::exchange(word, {}));
      }
    }
  }
  for (const std::string& one : words) {
    const std::string named = sharding_named(one);
    if (!named.empty()) {
      sharding.word = named;
    } else if (lower(one) == "auto_wrap") {
      sharding.wraps = true;
    } else if (lower(one) == "offload") {
      sharding.offloads = true;
    } else if (lower(one) != "true") {
      fail(arguments.file, "fsdp",
           "found '" + shorten_text(visible(one), 60) +
               "', expected full_shard, shard_grad_op, no_shard, hybrid_shard, hybrid_shard_zero2, "
               "auto_wrap or offload");
    }
  }
  if (has_value(arguments.all, "fsdp_config")) {
    sharding.config = without_prefix(
        content_of(arguments.all["fsdp_config"], "fsdp_config", arguments.file), "fsdp_");
  }
  for (const auto& [key, value] : arguments.all.items()) {
    if (key.starts_with("fsdp_") && key != "fsdp_config") sharding.config[key.substr(5)] = value;
  }
  return sharding;
}

// Returns the wrapped modules: the layers, or none, so that the model is one unit.
Json units_of(const Sharding& sharding, const Keys& config, std::vector<std::string>& assumed) {
  std::string policy = config.word("auto_wrap_policy");
  for (char& letter : policy) letter = static_cast<char>(std::toupper(letter));
  const bool by_size =
      policy == "SIZE_BASED_WRAP" || (sharding.wraps && config.size("min_num_params", 1) > 1);
  if (by_size) {
    assumed.emplace_back("the layers as units of FSDP in place of those that min_num_params makes");
  }
  const bool layers = by_size || policy == "TRANSFORMER_BASED_WRAP" ||
                      (sharding.trainer && sharding.wraps) ||
                      has_value(config.all, "transformer_layer_cls_to_wrap");
  return layers ? Json("layers") : Json::array();
}

// Returns FSDP's strategy. accelerate's no_sync goes around all but the last micro-batch.
Json strategy_of(const Sharding& sharding, const Precision& precision, const std::string& file,
                 Settings& settings) {
  const Keys config{sharding.config, file};
  const std::int64_t version = config.size("version", 1);
  Json own{{"version", version}, {"no_sync", true}};
  if (sharding.offloads || config.on("offload_params") || config.on("cpu_offload")) {
    own[version == 1 ? "cpu_offload" : "offload_policy"] = true;
  }
  own["units"] = units_of(sharding, config, settings.assumed);
  if (precision.mixed) {
    const char* format = precision.dtype == "fp16" ? "float16" : "bfloat16";
    own[version == 1 ? "mixed_precision" : "mp_policy"] = {{"param_dtype", format},
                                                           {"reduce_dtype", format}};
  }
  if (version == 1) {
    const std::string again = config.word("reshard_after_forward");
    const std::string word = config.word("sharding_strategy", again);
    std::string named = word.empty() ? "FULL_SHARD" : sharding_named(word);
    if (!sharding.word.empty()) named = sharding.word;
    if (named.empty()) {
      fail(file, "fsdp_sharding_strategy",
           "found '" + shorten_text(visible(word), 60) +
               "', expected FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD or "
               "HYBRID_SHARD_ZERO2");
    }
    own["sharding_strategy"] = named;
    own["use_orig_params"] = config.on("use_orig_params", true);
    const std::string ahead =
        config.word("backward_prefetch", sharding.trainer ? "NO_PREFETCH" : "BACKWARD_PRE");
    if (lower(ahead) != "backward_pre") {
      settings.assumed.push_back(
          "units gathered for the backward pass one early (BACKWARD_PRE) in "
          "place of fsdp_backward_prefetch " +
          shorten_text(visible(ahead), 40));
    }
  } else {
    own["reshard_after_forward"] = config.on("reshard_after_forward", true);
  }
  if (config.on("activation_checkpointing")) {
    settings.workload["activation_checkpointing"] = "full";
  }
  return {{"dialect", "fsdp"}, {"config", std::move(own)}};
}

// Returns the configuration that accelerate's plugin makes of its own keys.
Json plugin_config(const Keys& plugin) {
  if (has_value(plugin.all, "deepspeed_config_file")) {
    return content_of(plugin.all["deepspeed_config_file"], "deepspeed_config_file", plugin.file);
  }
  Json zero{{"stage", plugin.all.contains("zero_stage") && plugin.all["zero_stage"] == 0
                          ? 0
                          : plugin.size("zero_stage", 2)}};
  for (const auto& [key, name] : {std::pair{"offload_optimizer_device", "offload_optimizer"},
                                  {"offload_param_device", "offload_param"}}) {
    const std::string device = lower(plugin.word(key, "none"));
    if (device != "none") zero[name] = {{"device", device}};
  }
  return {{"zero_optimization", std::move(zero)}};
}

// Reads DeepSpeed's configuration, filled in as the trainer above it does.
Settings of_zero(Json config, const Keys& arguments, const Precision& precision, std::int64_t steps,
                 const std::string& file) {
  expect_known(config, "deepspeed", "DeepSpeed", file);
  const auto fill = [&](const char* key, const Json& value) {
    const auto own = config.find(key);
    if (own == config.end() || *own == "auto" || own->is_null()) config[key] = value;
  };
  // TrainingArguments that name neither have both off.
  if (precision.chosen || (!arguments.all.empty() && !precision.dtype.empty())) {
    for (const char* key : {"bf16", "fp16"}) {
      const bool half = precision.dtype == key || (precision.dtype == "fp8" && key[0] == 'b');
      const auto own = config.find(key);
      const bool open = own == config.end() || !own->is_object() || !own->contains("enabled") ||
                        (*own)["enabled"] == "auto";
      if (open) config[key]["enabled"] = half;
    }
  }
  fill("gradient_accumulation_steps", steps);
  if (has_value(arguments.all, "per_device_train_batch_size")) {
    fill("train_micro_batch_size_per_gpu", arguments.size("per_device_train_batch_size", 1));
  }
  if (config.value("train_batch_size", Json()) == "auto") config.erase("train_batch_size");
  // A device of "none" is no offload.
  if (const auto zero = config.find("zero_optimization"); zero != config.end()) {
    for (const char* key : {"offload_optimizer", "offload_param"}) {
      const Json& own = section_of(*zero, key);
      if (own.is_object() && own.value("device", Json()) == "none") zero->erase(key);
    }
  }
  return of_deepspeed(config, file);
}

// Reads the plugin's keys as Megatron's flags.
Settings of_plugin_of_megatron(const Json& section, const Precision& precision,
                               const std::string& file) {
  const Json plain = without_prefix(section, "megatron_lm_");
  const Keys plugin{plain, file};
  Json flags{{"tensor-model-parallel-size", plugin.size("tp_degree", 1)},
             {"pipeline-model-parallel-size", plugin.size("pp_degree", 1)},
             {"sequence-parallel", plugin.on("sequence_parallelism")},
             {"use-distributed-optimizer", plugin.on("use_distributed_optimizer")}};
  if (plugin.on("recompute_activations")) flags["recompute-activations"] = true;
  if (precision.mixed) flags[precision.dtype] = true;
  Settings settings = of_megatron(flags, file);
  settings.micro_batches = plugin.size("num_micro_batches", 1);
  return settings;
}

// Returns DistributedDataParallel's strategy under accelerate, with the Trainer's arguments if
// there are any.
Json strategy_of_ddp(const Json& arguments) {
  Json config = Json::object();
  for (const char* key : {"ddp_find_unused_parameters", "ddp_bucket_cap_mb",
                          "ddp_broadcast_buffers", "gradient_checkpointing", "torch_compile"}) {
    if (!has_value(arguments, key)) continue;
    Json value = arguments[key];
    if (value.is_string()) value = number_or_text(value.get<std::string>());
    if (value.is_string()) value = lower(value.get<std::string>()) == "true";
    config[key] = std::move(value);
  }
  if (arguments.empty()) return {{"dialect", "pytorch"}, {"config", {{"no_sync", true}}}};
  return {{"dialect", "hf_trainer"}, {"config", std::move(config)}};
}

void read_degrees(const Keys& degrees, Settings& settings) {
  Json parallel = Json::object();
  const std::int64_t tensor = degrees.size("tp_size", 1), context = degrees.size("cp_size", 1);
  if (tensor > 1) parallel["tensor"] = tensor;
  if (context > 1) parallel["context"] = context;
  if (!parallel.empty()) settings.workload["parallel"] = std::move(parallel);
  const std::int64_t replicas = degrees.size("dp_replicate_size", 1);
  Json& config = settings.strategy["config"];
  if (replicas > 1 && config.value("version", 1) == 2) config["mesh"] = {replicas, -1};
}

// Names arguments that change a step's time or memory and are not modelled: the Trainer's,
// accelerate's, and those of the trainers around them.
void name_left_out(const Keys& arguments, const Keys& launch, std::vector<std::string>& assumed) {
  std::string left;
  const auto add = [&](const std::string& keys) {
    if (!keys.empty()) left += (left.empty() ? "" : ", ") + keys;
  };
  add(dialect::list_ignored_keys(arguments.all, dialect::key_list("hf_trainer")));
  add(dialect::list_ignored_keys(launch.all, dialect::key_list("accelerate")));
  for (const char* section : {"fsdp_config", "deepspeed_config", "megatron_lm_config"}) {
    const std::string prefix =
        section == std::string_view("fsdp_config") ? "fsdp_" : "megatron_lm_";
    add(dialect::list_ignored_keys(without_prefix(section_of(launch.all, section), prefix),
                                   dialect::key_list("accelerate." + std::string(section))));
  }
  const auto add_if_on = [&](std::initializer_list<const char*> keys, auto to) {
    for (const char* key : keys) {
      if (has_value(arguments.all, key) && arguments.all[key] != false) to(key);
    }
  };
  add_if_on({"enable_liger_kernel", "use_unsloth", "packing", "num_generations"}, add);
  add_if_on({"activation_offloading", "layer_offloading", "use_unsloth_gc"}, [&](const char* key) {
    assumed.push_back("activations kept on the GPU, where " + std::string(key) +
                      " has them on the host");
  });
  if (!left.empty()) {
    assumed.push_back("nothing gained or lost by what is left out: " + left);
  }
  name_unknown(launch.all, "accelerate", "accelerate", assumed);
  Json plugin = section_of(launch.all, "deepspeed_config");
  for (const auto& [key, mark] : dialect::key_list("accelerate").keys) plugin.erase(key);
  name_unknown(plugin, "accelerate.deepspeed_config", "accelerate", assumed);
  const std::string optimizer =
      lower(arguments.word("optim", arguments.word("optimizer", "adamw")));
  const bool adam = optimizer.starts_with("adam") && optimizer.find("bit") == optimizer.npos;
  if (!adam) {
    assumed.push_back("Adam's states and update in place of optim " +
                      shorten_text(visible(optimizer), 40));
  }
}

// axolotl's names of accelerate's degrees.
const std::map<std::string, std::string> kDegreesOfAxolotl{
    {"tensor_parallel_size", "tp_size"},
    {"context_parallel_size", "cp_size"},
    {"sequence_parallel_degree", "cp_size"},
    {"dp_replicate_size", "dp_replicate_size"}};

// Returns the degrees of accelerate's settings, and of axolotl's, which are handed to it.
Json degrees_of(const Json& all, const Json& launch_settings) {
  Json degrees =
      without_prefix(section_of(launch_settings, "parallelism_config"), "parallelism_config_");
  for (const auto& [own, name] : kDegreesOfAxolotl) {
    if (has_value(all, "base_model") && all.contains(own)) degrees[name] = all[own];
  }
  return degrees;
}

}  // namespace

// Names a script's own flags that mean another training to a reader of their names: adapters, and
// cuts of the model.
void name_own_flags(const Keys& arguments, Settings& settings) {
  std::string adapters, cuts;
  const bool refused = has_any(arguments.all, {"use_peft", "use_lora", "finetuning_type"});
  for (const auto& [key, value] : arguments.all.items()) {
    if (value.is_null() || dialect::says_off(value)) continue;
    const std::string name = lower(key);
    const bool adapter = name.find("lora") != name.npos || name.find("peft") != name.npos ||
                         name.find("adapter") != name.npos;
    if (adapter && !refused && !settings.adapters.is_object()) {
      adapters += (adapters.empty() ? "" : ", ") + shorten_text(visible(key), 60);
    }
    const bool whole = value == 1 || value == "1";
    for (const char* cut :
         {"pipe_parallel_size", "pipeline_parallel_size", "pp_size", "pp", "model_parallel_size",
          "tensor_parallel_size", "tp_size", "tp", "context_parallel_size", "cp_size", "cp",
          "sequence_parallel_size", "sp_size", "ulysses_size"}) {
      const bool own = has_value(arguments.all, "base_model") && kDegreesOfAxolotl.contains(name);
      if (name == cut && !whole && !own)
        cuts += (cuts.empty() ? "" : ", ") + name + " " + value.dump();
    }
  }
  if (!adapters.empty()) {
    settings.assumed.push_back("a whole model that is trained, though " + adapters +
                               " may be of adapters (LoRA), whose gradients alone would travel");
  }
  const std::string dialect = settings.strategy.value("dialect", "");
  std::string shards;
  for (const auto& [key, value] : arguments.all.items()) {
    const std::string name = lower(key);
    const bool zero = name.find("deepspeed") != name.npos || name.starts_with("zero_");
    const bool says = zero || name.find("fsdp") != name.npos || name == "sharding_strategy";
    if (!says || value.is_null() || dialect::says_off(value)) continue;
    shards += (shards.empty() ? "" : ", ") + shorten_text(visible(key), 60);
  }
  if (!shards.empty() && (dialect == "hf_trainer" || dialect == "pytorch")) {
    settings.assumed.push_back("gradients summed by DDP, though the script has " + shards +
                               " (--zero 3 or --fsdp says how they are sharded)");
  }
  if (!cuts.empty()) {
    settings.assumed.push_back("a model that is not cut, though the script has " + cuts);
  }
}

namespace {

// Says if a `distributed_type` of accelerate's is of machines that are not modelled.
bool is_other_machine(const std::string& type) {
  return type.find("TPU") != type.npos || type.find("XLA") != type.npos || type == "TP";
}

// Says if DistributedDataParallel gets parameters, and so gradients, in half precision: TRL's,
// axolotl's and ms-swift's trainers load them so. For FSDP accelerate makes them fp32, as
// LLaMA-Factory always does.
bool loads_half(const Keys& arguments, const Settings& settings) {
  const Json& all = arguments.all;
  const std::string dialect = settings.strategy.value("dialect", "");
  const bool factory = has_any(all, {"stage", "template"});
  if (factory || (dialect != "hf_trainer" && dialect != "pytorch")) return false;
  const bool own = has_any(all, {"base_model", "tuner_type", "train_type", "sft_type"});
  const std::string loaded =
      lower(arguments.word("torch_dtype", arguments.word("dtype", own ? "bfloat16" : "")));
  return loaded == "bfloat16" || loaded == "float16";
}

// Returns the exchange of gradients, by the reader of DeepSpeed, FSDP or Megatron.
Settings exchange_of(const Keys& arguments, const Keys& launch, const std::string& type,
                     const Precision& precision, std::int64_t steps) {
  const Json& all = arguments.all;
  const std::string& file = arguments.file;
  Settings settings;
  if (has_value(all, "deepspeed")) {
    std::vector<std::string> assumed;
    const Json config = zero_config(all["deepspeed"], file, assumed);
    settings = of_zero(config, arguments, precision, steps, file);
    settings.assumed.insert(settings.assumed.begin(), assumed.begin(), assumed.end());
  } else if (has_value(all, "fsdp") && all["fsdp"] != false) {
    settings.strategy = strategy_of(sharding_of_trainer(arguments), precision, file, settings);
  } else if (type == "DEEPSPEED" || launch.on("use_deepspeed")) {
    settings = of_zero(plugin_config({section_of(launch.all, "deepspeed_config"), file}), arguments,
                       precision, steps, file);
  } else if (type == "MEGATRON_LM" || launch.on("use_megatron_lm")) {
    settings = of_plugin_of_megatron(section_of(launch.all, "megatron_lm_config"), precision, file);
  } else if (type == "FSDP" || launch.on("use_fsdp")) {
    Sharding sharding;
    sharding.config = without_prefix(section_of(launch.all, "fsdp_config"), "fsdp_");
    settings.strategy = strategy_of(sharding, precision, file, settings);
  } else {
    settings.strategy = strategy_of_ddp(all);
  }
  return settings;
}

std::size_t count_of(const Json& json, std::initializer_list<const char*> keys) {
  if (!json.is_object()) return 0;
  return static_cast<std::size_t>(
      std::ranges::count_if(keys, [&](const char* key) { return json.contains(key); }));
}

}  // namespace

bool is_accelerate(const Json& json) {
  return count_of(json, {"compute_environment", "distributed_type", "mixed_precision",
                         "num_processes", "num_machines", "machine_rank", "main_training_function",
                         "fsdp_config", "deepspeed_config", "megatron_lm_config", "downcast_bf16",
                         "rdzv_backend", "same_network", "parallelism_config"}) >= 2 &&
         !json.contains("per_device_train_batch_size");
}

bool is_trainer(const Json& json) {
  if (!json.is_object()) return false;
  const Json all = with_underscores(json);
  const auto arguments = {"per_device_train_batch_size",
                          "gradient_accumulation_steps",
                          "ddp_find_unused_parameters",
                          "ddp_bucket_cap_mb",
                          "model_name_or_path",
                          "base_model",
                          "finetuning_type"};
  return has_any(all, arguments) && count_of(all, {"per_device_train_batch_size",
                                                   "gradient_accumulation_steps",
                                                   "ddp_find_unused_parameters",
                                                   "ddp_bucket_cap_mb",
                                                   "model_name_or_path",
                                                   "base_model",
                                                   "finetuning_type",
                                                   "stage",
                                                   "cutoff_len",
                                                   "sequence_len",
                                                   "micro_batch_size",
                                                   "bf16",
                                                   "fp16",
                                                   "gradient_checkpointing",
                                                   "deepspeed",
                                                   "fsdp",
                                                   "fsdp_config",
                                                   "learning_rate",
                                                   "num_train_epochs",
                                                   "output_dir",
                                                   "max_steps",
                                                   "lr_scheduler_type",
                                                   "warmup_ratio"}) >= 2;
}

Json launch_settings(const Json& flags, const std::string& file,
                     std::vector<std::string>& assumed) {
  Json all = Json::object();
  if (flags.value("config-file", Json()).is_object()) {
    all = flags["config-file"];  // captured
  } else if (flags.contains("config-file")) {
    const std::string config = flags["config-file"].dump();
    const std::string name =
        flags["config-file"].is_string() ? flags["config-file"].get<std::string>() : config;
    std::error_code error;
    fs::path place = name;
    if (!fs::is_regular_file(place, error)) place = fs::path(file).parent_path() / place.filename();
    const bool here = fs::is_regular_file(place, error);
    const std::optional<int> stage = stage_in(fs::path(name).filename().string());
    if (!here && !stage) {
      fail(file, "config_file",
           "names '" + shorten_text(visible(name), 120) +
               "', which is neither here nor next to the script: run init where it is");
    }
    if (!here) {
      all = {{"distributed_type", "DEEPSPEED"}, {"deepspeed_config", {{"zero_stage", *stage}}}};
      assumed.push_back("ZeRO stage " + std::to_string(*stage) + " by the name '" +
                        shorten_text(visible(name), 80) +
                        "' of accelerate's file, which is not here: put it next to the script to "
                        "have it read");
    }
    if (here)
      all = parse_yaml(place.string(), read_text_file(place.string(), "settings of accelerate"));
  }
  const Json named = with_underscores(flags);
  constexpr std::array kCounts{"num_processes", "num_machines", "machine_rank"};
  for (const auto& [name, value] : named.items()) {
    // A variable without a value: the ranks are init's own then.
    if (value == true && std::ranges::find(kCounts, name) != kCounts.end()) continue;
    const bool sharding = name.starts_with("fsdp_"), megatron = name.starts_with("megatron_lm_");
    const bool zero = name.starts_with("zero") || name.starts_with("offload_") ||
                      name == "deepspeed_config_file" || name == "gradient_accumulation_steps";
    Json& section = sharding   ? all["fsdp_config"]
                    : megatron ? all["megatron_lm_config"]
                    : zero     ? all["deepspeed_config"]
                               : all;
    section[name] = value;
  }
  return all;
}

Settings of_hugging_face(const Json& given_arguments, const Json& launch_settings,
                         const std::string& file) {
  const Json all = renamed(given_arguments, file);
  const Keys arguments{all, file}, launch{launch_settings, file};
  refuse_preferences(arguments);
  std::string type = launch.word("distributed_type");
  if (is_other_machine(type)) {
    fail(file, "distributed_type",
         type +
             " is not modelled: MULTI_GPU, FSDP, DEEPSPEED and "
             "MEGATRON_LM are");
  }
  const Precision precision = precision_of(arguments, launch);
  const Json& plugin = section_of(launch_settings, "deepspeed_config");
  const std::int64_t steps =
      arguments.size("gradient_accumulation_steps",
                     Keys{plugin, file}.size("gradient_accumulation_steps",
                                             launch.size("gradient_accumulation_steps", 1)));
  Settings settings = exchange_of(arguments, launch, type, precision, steps);
  const bool plain = settings.framework.empty();  // neither DeepSpeed nor Megatron
  settings.framework = all.empty() ? "accelerate" : "Hugging Face's Trainer";
  if (plain) {
    settings.autocast = precision.mixed;
    if (precision.dtype.empty()) {
      settings.assumed.emplace_back(
          "the device's usual precision, as bf16 or fp16 is 'auto' (--dtype)");
    } else {
      settings.workload["operators"]["dtype"] = precision.dtype;
    }
    if (!precision.chosen && !precision.dtype.empty()) {
      settings.assumed.emplace_back(
          "products, parameters and gradients in fp32, as neither bf16 nor fp16 is set (--dtype)");
    }
  }
  if (settings.micro_batches == 0) settings.micro_batches = steps;
  if (has_any(all, {"tuner_type", "train_type"}) && !all.contains("gradient_accumulation_steps")) {
    settings.assumed.emplace_back(
        "one pass a step in place of the passes that ms-swift takes to reach 16 samples a step "
        "(gradient_accumulation_steps)");
  }
  if (has_value(all, "per_device_train_batch_size")) {
    settings.workload["batch"] = arguments.size("per_device_train_batch_size", 1);
  } else if (!all.empty() && !settings.workload.contains("batch")) {
    settings.workload["batch"] = 8;
    settings.assumed.emplace_back("8 samples per GPU, the Trainer's per_device_train_batch_size");
  }
  if (has_value(all, "max_length")) {
    settings.workload["operators"]["sequence"] = arguments.size("max_length", 1);
  }
  if (arguments.on("gradient_checkpointing") || arguments.on("activation_checkpointing")) {
    settings.workload["activation_checkpointing"] = "full";
  }
  settings.compiled = arguments.on("torch_compile");
  // Without a type accelerate starts one process, whatever number stands in its file.
  const bool alone = type == "NO" && !launch.on("multi_gpu") && plain;
  settings.ranks = alone ? 1 : launch.size("num_processes", 0);
  settings.nodes = alone ? 1 : launch.size("num_machines", 0);
  read_degrees({degrees_of(all, launch_settings), file}, settings);
  take_adapters(arguments.all, arguments.file, settings);
  // peft keeps adapters in fp32.
  const bool lora = settings.adapters.is_object() && settings.adapters["rank"] != 0;
  if (plain && !lora && loads_half(arguments, settings)) settings.autocast = false;
  wrap_adapters(has_value(arguments.all, "base_model"), settings);
  name_own_flags(arguments, settings);
  name_left_out(arguments, launch, settings.assumed);
  read_model(arguments, settings);
  return settings;
}

}  // namespace syncline::job::frameworks
