// Reads recipes, each one training script with its own settings: torchtune's and LitGPT's YAML, and
// launches of verl's supervised fine-tuning and of ms-swift's Megatron. Sources: torchtune 0.6
// (recipes/), litgpt 0.5 (finetune/, pretrain.py), verl 0.5 (trainer/fsdp_sft_trainer.py,
// trainer/config/sft_trainer.yaml), ms-swift 3.10 (swift/megatron/argument).
#include <algorithm>
#include <array>

#include "formats/text/visible.h"
#include "imports/frameworks/keys.h"
#include "imports/frameworks/settings.h"

namespace syncline::job::frameworks {
namespace {

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// Returns the modules that switches turn on.
Json modules_on(const Keys& keys,
                std::initializer_list<std::pair<const char*, std::vector<const char*>>> switches) {
  Json modules = Json::array();
  for (const auto& [key, names] : switches) {
    if (!keys.on(key)) continue;
    for (const char* name : names) modules.push_back(name);
  }
  return modules;
}

Json adapters_at(Json targets, std::int64_t rank, int bits) {
  return {
      {"rank", rank}, {"targets", std::move(targets)}, {"trained", Json::array()}, {"bits", bits}};
}

// Reads torchtune's adapters out of its model's arguments.
void take_torchtunes_adapters(const Json& model, bool quantised, const std::string& file,
                              Settings& settings) {
  const Keys keys{model, file};
  constexpr std::int64_t kUsualRank = 8;
  Json targets = Json::array();
  for (const Json& one : model.value("lora_attn_modules", Json::array())) {
    targets.push_back(one == "output_proj" ? Json("o_proj") : one);
  }
  for (const Json& name :
       modules_on(keys, {{"apply_lora_to_mlp", {"gate_proj", "up_proj", "down_proj"}},
                         {"apply_lora_to_output", {"lm_head"}}})) {
    targets.push_back(name);
  }
  if (keys.on("use_dora")) {
    fail(file, "model.use_dora",
         "trains magnitudes next to LoRA, which are not modelled: LoRA alone is (use_dora: false)");
  }
  settings.adapters =
      adapters_at(std::move(targets), keys.size("lora_rank", kUsualRank), quantised ? 4 : 0);
}

// Sets torchtune's model by its builder: "torchtune.models.llama3_1.lora_llama3_1_8b".
void take_torchtunes_model(const Json& model, const std::string& file, Settings& settings) {
  std::string name = last_part(Keys{model, file}.word("_component_"));
  const bool quantised = name.starts_with("qlora_"), lora = quantised || name.starts_with("lora_");
  if (lora) name.erase(0, name.find('_') + 1);
  std::ranges::replace(name, '_', '-');
  take_model_named(name, settings);
  if (lora) take_torchtunes_adapters(model, quantised, file, settings);
}

// Refuses torchtune's recipes that run other models or generate.
void refuse_other_recipes(const Json& all, const std::string& file) {
  const std::string loss = lower(Keys{section_of(all, "loss"), file}.word("_component_"));
  std::string key;
  for (const char* one : {"teacher_model", "kd_loss", "ref_checkpointer", "policy_model",
                          "reward_and_value_model", "valuehead", "vllm"}) {
    if (has_value(all, one)) key = one;
  }
  if (loss.find("dpo") != loss.npos || loss.find("rlhf") != loss.npos) key = "loss._component_";
  if (key.empty()) return;
  fail(file, key,
       "trains with other models, or by preferences, which takes a part of the step that is not "
       "modelled: `syncline record` observes the job");
}

// Returns torchtune's exchange: FSDP 2 in the parameters' own format, with sums in every pass.
Json torchtunes_strategy(const Keys& keys) {
  Json config{{"version", 2},
              {"units", "layers"},
              {"reshard_after_forward", keys.on("fsdp_reshard_after_forward", true)}};
  if (keys.on("fsdp_cpu_offload")) config["offload_policy"] = true;
  const std::int64_t replicas = keys.size("data_parallel_replicate_dim", 1);
  if (replicas > 1) config["mesh"] = {replicas, -1};
  return {{"dialect", "fsdp"}, {"config", std::move(config)}};
}

// Says that an optimizer, by its class, is taken for Adam.
void name_other_optimizer(const std::string& optimizer, Settings& settings) {
  const std::string kind = lower(last_part(optimizer));
  if (kind.empty() || (kind.starts_with("adam") && kind.find("bit") == kind.npos)) return;
  settings.assumed.push_back("Adam's states and update in place of optimizer " +
                             shorten_text(visible(optimizer), 60));
}

void name_torchtunes_rest(const Json& all, const Keys& keys, Settings& settings) {
  std::string left;
  for (const char* key : {"optimizer_in_bwd", "custom_sharded_layers", "enable_fp8_training",
                          "ac_mode", "tensor_parallel_plan"}) {
    const bool off = !has_value(all, key) || all[key] == false;
    if (!off) left += (left.empty() ? "" : ", ") + std::string(key);
  }
  if (!left.empty()) {
    settings.assumed.push_back("nothing gained or lost by what is left out: " + left);
  }
  if (keys.on("enable_activation_offloading")) {
    settings.assumed.emplace_back(
        "activations kept on the GPU, where enable_activation_offloading has them on the host");
  }
  const std::string optimizer = Keys{section_of(all, "optimizer"), keys.file}.word("_component_");
  name_other_optimizer(optimizer, settings);
}

}  // namespace

bool is_torchtune(const Json& yaml) {
  const Json& model = section_of(yaml, "model");
  return model.is_object() && model.contains("_component_") &&
         any_under(yaml, "_component_", "torchtune.");
}

Settings of_torchtune(const Json& yaml, const std::string& file) {
  const Json all = with_references(yaml);
  const Keys keys{all, file};
  refuse_other_recipes(all, file);
  Settings settings;
  settings.framework = "torchtune";
  settings.workload["batch"] = keys.size("batch_size", 1);
  settings.micro_batches = keys.size("gradient_accumulation_steps", 1);
  const std::string dtype = lower(keys.word("dtype", "bf16"));
  settings.workload["operators"]["dtype"] = dtype;
  const Keys tokenizer{section_of(all, "tokenizer"), file};
  if (const std::int64_t length = tokenizer.size("max_seq_len", 0); length > 0) {
    settings.workload["operators"]["sequence"] = length;
  }
  if (keys.on("enable_activation_checkpointing")) {
    settings.workload["activation_checkpointing"] = "full";
  }
  settings.compiled = keys.on("compile");
  settings.strategy = torchtunes_strategy(keys);
  for (const auto& [key, name] :
       {std::pair{"tensor_parallel_dim", "tensor"}, {"context_parallel_dim", "context"}}) {
    if (const std::int64_t size = keys.size(key, 1); size > 1) {
      settings.workload["parallel"][name] = size;
    }
  }
  take_torchtunes_model(section_of(all, "model"), file, settings);
  name_torchtunes_rest(all, keys, settings);
  return settings;
}

bool is_litgpt(const Json& yaml) {
  const Json& train = section_of(yaml, "train");
  return train.contains("global_batch_size") && train.contains("micro_batch_size") &&
         has_any(yaml, {"checkpoint_dir", "out_dir", "model_name", "model_config"});
}

// LitGPT trains by Fabric, as Lightning would by these arguments.
Settings of_litgpt(const Json& yaml, const std::string& file) {
  const Keys keys{yaml, file};
  const bool tunes = !has_any(yaml, {"model_name", "model_config", "initial_checkpoint_dir"});
  Json sharding{{"auto_wrap_policy", "Block"}};
  if (tunes) sharding["activation_checkpointing_policy"] = "Block";
  if (!tunes) sharding["sharding_strategy"] = "HYBRID_SHARD";
  Json trainer{{"strategy", {{"class_path", "FSDPStrategy"}, {"init_args", sharding}}},
               {"precision", keys.word("precision", "bf16-mixed")}};
  for (const char* key : {"devices", "num_nodes"}) {
    if (yaml.value(key, Json()).is_number_integer()) trainer[key] = yaml[key];
  }
  Settings settings = of_lightning({{"trainer", trainer}}, file);
  settings.framework = "LitGPT";
  settings.assumed.clear();  // about arguments that are not in the file
  settings.strategy["config"]["no_sync"] = true;
  if (settings.ranks == 1) {
    settings.strategy = {{"dialect", "pytorch"}, {"config", {{"no_sync", true}}}};
    settings.workload.erase("activation_checkpointing");
    settings.assumed.emplace_back(
        "each GPU with the whole model, and nothing computed again, as LitGPT shards for devices "
        "above 1");
  }
  const Keys train{section_of(yaml, "train"), file};
  settings.workload["batch"] = train.size("micro_batch_size", 1);
  settings.global_batch = train.size("global_batch_size", 1);
  settings.micro_batches = 0;
  if (const std::int64_t length = train.size("max_seq_length", 0); length > 0) {
    settings.workload["operators"]["sequence"] = length;
  }
  std::string name = keys.word("model_name", keys.word("checkpoint_dir"));
  while (name.ends_with('/')) name.pop_back();
  if (!name.empty()) take_model_named(name, settings);
  if (has_value(yaml, "adapter_prompt_length") || has_value(yaml, "adapter_start_layer")) {
    fail(file, "adapter_prompt_length", "trains LLaMA-Adapter, which is not modelled: LoRA is");
  }
  const Json optimizer = yaml.value("optimizer", Json("AdamW"));
  const std::string kind = optimizer.is_object()   ? Keys{optimizer, file}.word("class_path")
                           : optimizer.is_string() ? optimizer.get<std::string>()
                                                   : "";
  name_other_optimizer(kind, settings);
  if (!has_any(yaml, {"lora_r", "lora_query", "lora_value"})) return settings;
  const std::string quantised = keys.word("quantize");
  const int bits = quantised.empty() ? 0 : quantised.find("int8") != quantised.npos ? 8 : 4;
  Json switches = yaml;
  for (const char* key : {"lora_query", "lora_value"}) {
    if (!has_value(yaml, key)) switches[key] = true;
  }
  settings.adapters =
      adapters_at(modules_on({switches, file}, {{"lora_query", {"q_proj"}},
                                                {"lora_key", {"k_proj"}},
                                                {"lora_value", {"v_proj"}},
                                                {"lora_projection", {"o_proj"}},
                                                {"lora_mlp", {"gate_proj", "up_proj", "down_proj"}},
                                                {"lora_head", {"lm_head"}}}),
                  keys.size("lora_r", 8), bits);
  if (settings.autocast) settings.adapters["kept_full"] = true;
  return settings;
}

// Takes the defaults of verl's package. Gradients are summed in fp32 after every pass.
std::optional<Settings> of_verls_tuning(const TrainingCommand& training, const std::string& file) {
  if (training.script != "verl.trainer.fsdp_sft_trainer") return std::nullopt;
  const Json all = with_overrides(training);
  const Keys top{all, file}, data{section_of(all, "data"), file},
      model{section_of(all, "model"), file};
  const Keys sharding{section_of(model.all, "fsdp_config"), file};
  constexpr std::int64_t kUsualBatch = 4, kUsualSamples = 256, kUsualLength = 1024;
  Settings settings;
  settings.framework = "verl's fsdp_sft_trainer";
  if (has_value(data.all, "micro_batch_size")) {
    fail(file, "data.micro_batch_size",
         "counts the samples of all ranks in older versions: say those of one, "
         "data.micro_batch_size_per_gpu");
  }
  settings.workload["batch"] = data.size("micro_batch_size_per_gpu", kUsualBatch);
  settings.global_batch = data.size("train_batch_size", kUsualSamples);
  const std::string dtype = lower(sharding.word("model_dtype", "fp32"));
  settings.autocast = dtype == "fp32" || dtype == "float32";
  settings.workload["operators"] = {{"dtype", "bf16"},
                                    {"sequence", data.size("max_length", kUsualLength)}};
  if (model.on("enable_gradient_checkpointing")) {
    settings.workload["activation_checkpointing"] = "full";
  }
  const std::int64_t cut = top.size("ulysses_sequence_parallel_size", 1);
  if (cut > 1) {
    settings.workload["parallel"] = {{"context", cut}, {"context_exchange", "all_to_all"}};
  }
  const bool older = model.word("strategy", "fsdp") == "fsdp";
  Json config{{"version", older ? 1 : 2}, {"units", "layers"}};
  config[older ? "mixed_precision" : "mp_policy"] = {{"param_dtype", "bfloat16"},
                                                     {"reduce_dtype", "float32"}};
  if (older) config.update({{"sharding_strategy", "FULL_SHARD"}, {"use_orig_params", false}});
  if (sharding.on("cpu_offload")) config[older ? "cpu_offload" : "offload_policy"] = true;
  settings.strategy = {{"dialect", "fsdp"}, {"config", std::move(config)}};
  if (model.word("lora_rank", "0") != "0") {
    Json arguments{{"use_lora", true},
                   {"lora_rank", model.all["lora_rank"]},
                   {"target_modules", model.all.value("target_modules", Json("all-linear"))}};
    take_adapters(arguments, file, settings);
    settings.adapters["wrapped"] = true;
    if (settings.autocast) settings.adapters["kept_full"] = true;
  }
  std::string left;
  for (const auto& [section, key] :
       {std::pair{&model, "use_liger"}, {&top, "use_remove_padding"}}) {
    if (section->on(key)) left += (left.empty() ? "" : ", ") + std::string(key);
  }
  if (!left.empty()) {
    settings.assumed.push_back("nothing gained or lost by what is left out: " + left);
  }
  if (const std::string name = model.word("partial_pretrain"); !name.empty()) {
    take_model_named(name, settings);
  }
  return settings;
}

namespace {

// Returns Megatron's flags with ms-swift's defaults, and without the flags that are its own.
Json flags_of_swift(const Json& given, const Keys& keys) {
  Json flags{{"micro-batch-size", 1},
             {"global-batch-size", 16},
             {"recompute-granularity", "selective"},
             {"use-distributed-optimizer", true},
             {"expert-tensor-parallel-size", 1}};
  if (keys.size("expert_model_parallel_size", 1) == 1) flags.erase("expert-tensor-parallel-size");
  constexpr std::array kOfSwift{"model",
                                "load",
                                "save",
                                "dataset",
                                "val_dataset",
                                "max_length",
                                "train_type",
                                "tuner_type",
                                "torch_dtype",
                                "packing",
                                "max_epochs",
                                "lora_rank",
                                "lora_alpha",
                                "lora_dropout",
                                "target_modules",
                                "merge_lora",
                                "attn_impl",
                                "freeze_llm",
                                "freeze_vit",
                                "freeze_aligner",
                                "system",
                                "model_author",
                                "model_name",
                                "model_type",
                                "load_safetensors",
                                "num_train_epochs",
                                "save_safetensors",
                                "dataset_num_proc",
                                "split_dataset_ratio",
                                "load_from_cache_file",
                                "megatron_extra_kwargs",
                                "use_hf",
                                "streaming"};
  for (const auto& [flag, value] : given.items()) {
    std::string name = flag;
    std::ranges::replace(name, '-', '_');
    if (std::ranges::find(kOfSwift, name) != kOfSwift.end()) continue;
    const std::string word = value.is_string() ? lower(value.get<std::string>()) : "";
    flags[flag] = word == "true" || word == "false" ? Json(word == "true") : value;
  }
  if (flags["recompute-granularity"] == "none") flags.erase("recompute-granularity");
  const std::string half = lower(keys.word("torch_dtype", "bfloat16"));
  if (!has_any(flags, {"bf16", "fp16"}) && half != "float32") {
    flags[half == "float16" ? "fp16" : "bf16"] = true;
  }
  if (const std::int64_t length = keys.size("max_length", 0); length > 0) {
    flags["seq-length"] = length;
  }
  return flags;
}

}  // namespace

// Takes ms-swift's defaults where they are not Megatron's, and its own names.
std::optional<Settings> of_megatron_swift(const TrainingCommand& training,
                                          const std::string& file) {
  if (training.program != "megatron") return std::nullopt;
  const Json own = with_underscores(training.flags);
  const Keys keys{own, file};
  if (training.script == "rlhf" || has_value(own, "rlhf_type")) {
    fail(file, "rlhf_type",
         "trains by preferences or rewards, which takes a part of the step that is not modelled: "
         "`syncline record` observes the job");
  }
  Settings settings = of_megatron(flags_of_swift(training.flags, keys), file);
  settings.framework = "ms-swift's Megatron";
  std::string name = keys.word("model", keys.word("load"));
  if (name.ends_with("-mcore")) name.resize(name.size() - std::string_view("-mcore").size());
  if (!name.empty()) take_model_named(name, settings);
  Json tuner = own;
  tuner["train_type"] = keys.word("train_type", keys.word("tuner_type", "full"));
  tuner["finetuning_type"] = tuner["train_type"];
  take_adapters(tuner, file, settings);
  return settings;
}

}  // namespace syncline::job::frameworks
