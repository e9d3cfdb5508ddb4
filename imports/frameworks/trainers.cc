// Reads PyTorch trainers that use its own strategies: Lightning and MosaicML's Composer. Sources:
// lightning 2.6 (pytorch/strategies, fabric/plugins/precision), mosaicml 0.28
// (utils/parallelism.py, distributed/mosaic_parallelism.py, trainer/trainer.py), llm-foundry 0.22
// (models/mpt/configuration_mpt.py).
#include <algorithm>
#include <array>
#include <optional>

#include "formats/json/text.h"
#include "formats/text/visible.h"
#include "imports/frameworks/keys.h"
#include "imports/frameworks/settings.h"

namespace syncline::job::frameworks {
namespace {

std::size_t marks_in(const Json& json, std::initializer_list<const char*> keys) {
  if (!json.is_object()) return 0;
  return static_cast<std::size_t>(
      std::ranges::count_if(keys, [&](const char* key) { return json.contains(key); }));
}

// Format of products for a precision, and true if parameters stay in fp32.
struct Products {
  std::string dtype = "fp32";
  bool mixed = false;
};

Products products_of(const std::string& precision, const std::string& key,
                     const std::string& file) {
  const std::string word = lower(precision);
  if (word == "bf16-true" || word == "16-true") return {word[0] == 'b' ? "bf16" : "fp16", false};
  for (const char* mixed : {"bf16", "bf16-mixed", "amp_bf16"}) {
    if (word == mixed) return {"bf16", true};
  }
  for (const char* mixed : {"16", "16-mixed", "amp_fp16"}) {
    if (word == mixed) return {"fp16", true};
  }
  if (word == "transformer-engine" || word == "amp_fp8") return {"fp8", true};
  if (word == "32" || word == "32-true" || word == "fp32") return {};
  fail(file, key,
       "found '" + shorten_text(visible(word), 60) +
           "', which is not modelled: 32, 16-mixed, bf16-mixed, 16-true and bf16-true are, and "
           "Composer's fp32, amp_bf16, amp_fp16 and amp_fp8");
}

std::string format_of(const Products& products) {
  return products.dtype == "fp16" ? "float16" : "bfloat16";
}

// Returns the last part of a class's or a function's name.
std::string short_name(const std::string& path) { return path.substr(path.rfind('.') + 1); }

struct LightningStrategy {
  std::string name = "auto";  // "ddp", "DDPStrategy"
  Json arguments = Json::object();
};

LightningStrategy strategy_in(const Json& trainer, const std::string& file) {
  const Json strategy = trainer.value("strategy", Json());
  if (strategy.is_null()) return {};
  if (strategy.is_string()) return {short_name(strategy.get<std::string>()), Json::object()};
  // Hydra's projects write _target_, and its arguments next to it.
  const bool hydra = strategy.is_object() && strategy.contains("_target_");
  const char* key = hydra ? "_target_" : "class_path";
  if (!strategy.is_object() || !strategy.contains(key) || !strategy[key].is_string()) {
    fail(file, "trainer.strategy",
         "expected a name, class_path with init_args, or _target_ with its arguments");
  }
  Json arguments = hydra ? strategy : section_of(strategy, "init_args");
  arguments.erase("_target_");
  return {short_name(strategy[key].get<std::string>()), std::move(arguments)};
}

// Names arguments that no reader evaluates; those that Lightning hands to torch are in torch's
// list.
void name_unread_arguments(const LightningStrategy& strategy,
                           std::initializer_list<std::string> lists, Settings& settings) {
  const std::string left =
      unread_keys(strategy.arguments, "trainer.strategy", lists, {"init_sync"}, settings.assumed);
  if (!left.empty()) {
    settings.assumed.push_back("nothing gained or lost by what is left out: " + left);
  }
}

// Returns DDP's configuration. Only here no_sync covers all but the last micro-batch.
Json lightning_ddp(const LightningStrategy& strategy, const std::string& file, Settings& settings) {
  Json config{{"no_sync", true}};
  if (strategy.name.ends_with("find_unused_parameters_true")) {
    config["find_unused_parameters"] = true;
  }
  for (const auto& [key, value] : strategy.arguments.items()) {
    constexpr std::array kRead{"find_unused_parameters", "gradient_as_bucket_view", "static_graph",
                               "bucket_cap_mb",          "broadcast_buffers",       "init_sync"};
    if (value.is_null()) continue;
    if (std::ranges::find(kRead, key) != kRead.end()) {
      config[key] = value;
    } else if (key == "ddp_comm_hook" && value.is_string()) {
      config["comm_hook"] = short_name(value.get<std::string>());
    } else if (key == "model_averaging_period" || key.starts_with("ddp_comm")) {
      fail(file, "trainer.strategy." + key,
           "is not read: write the hook in a scenario with \"dialect\": \"pytorch\"");
    }
  }
  name_unread_arguments(strategy, {"lightning.DDPStrategy", "pytorch"}, settings);
  return {{"dialect", "pytorch"}, {"config", std::move(config)}};
}

Json lightning_fsdp(const LightningStrategy& strategy, const Products& products,
                    const std::string& file, Settings& settings) {
  const Keys arguments{strategy.arguments, file};
  Json config{{"version", 1}, {"use_orig_params", arguments.on("use_orig_params", true)}};
  if (strategy.name == "fsdp_cpu_offload" || arguments.on("cpu_offload")) {
    config["cpu_offload"] = true;
  }
  std::string sharding = arguments.word("sharding_strategy", "FULL_SHARD");
  for (char& letter : sharding) letter = static_cast<char>(std::toupper(letter));
  config["sharding_strategy"] = sharding;
  if (has_value(strategy.arguments, "device_mesh")) {
    config["device_mesh"] = strategy.arguments["device_mesh"];
  }
  const bool layers = has_value(strategy.arguments, "auto_wrap_policy");
  if (sharding.starts_with("HYBRID") && !layers && !config.contains("device_mesh") &&
      !has_value(strategy.arguments, "process_group")) {
    fail(file, "trainer.strategy.sharding_strategy",
         sharding + " needs auto_wrap_policy, process_group or device_mesh: Lightning refuses it");
  }
  config["units"] = layers ? Json("layers") : Json::array();
  if (!layers) {
    settings.assumed.emplace_back("the model as one unit of FSDP, as no auto_wrap_policy is given");
  }
  if (products.dtype != "fp32") {
    config["mixed_precision"] = {{"param_dtype", format_of(products)},
                                 {"reduce_dtype", format_of(products)}};
  }
  if (has_value(strategy.arguments, "activation_checkpointing") ||
      has_value(strategy.arguments, "activation_checkpointing_policy")) {
    settings.workload["activation_checkpointing"] = "full";
  }
  name_unread_arguments(strategy, {"lightning.FSDPStrategy", "fsdp1"}, settings);
  return {{"dialect", "fsdp"}, {"config", std::move(config)}};
}

// Returns DeepSpeed's configuration as Lightning's strategy makes it.
Settings lightning_deepspeed(const LightningStrategy& strategy, const Products& products,
                             std::int64_t steps, const std::string& file) {
  const Keys arguments{strategy.arguments, file};
  Json config = Json::object();
  if (has_value(strategy.arguments, "config")) {
    const Json& own = strategy.arguments["config"];
    config = own.is_string() ? read_json_file(own.get<std::string>()) : own;
  } else {
    std::int64_t stage = arguments.size("stage", 2);
    const std::string begin = "deepspeed_stage_";
    if (strategy.name.starts_with(begin)) stage = strategy.name[begin.size()] - '0';
    constexpr std::int64_t kBucket = 200'000'000;
    Json zero{{"stage", stage},
              {"contiguous_gradients", arguments.on("contiguous_gradients", true)},
              {"overlap_comm", arguments.on("overlap_comm", true)},
              {"allgather_partitions", arguments.on("allgather_partitions", true)},
              {"reduce_scatter", arguments.on("reduce_scatter", true)},
              {"allgather_bucket_size", arguments.size("allgather_bucket_size", kBucket)},
              {"reduce_bucket_size", arguments.size("reduce_bucket_size", kBucket)}};
    const bool named = strategy.name.find("offload") != strategy.name.npos;
    for (const auto& [key, name, device] :
         {std::tuple{"offload_optimizer", "offload_optimizer", "offload_optimizer_device"},
          {"offload_parameters", "offload_param", "offload_params_device"}}) {
      if (!named && !arguments.on(key)) continue;
      if (named && stage < 3 && name == std::string("offload_param")) continue;
      zero[name] = {{"device", lower(arguments.word(device, "cpu"))}};
    }
    config["zero_optimization"] = std::move(zero);
  }
  for (const char* key : {"bf16", "fp16"}) {
    if (!config.contains(key)) config[key] = {{"enabled", products.dtype == key}};
  }
  if (!config.contains("gradient_accumulation_steps")) {
    config["gradient_accumulation_steps"] = steps;
  }
  Settings settings = of_deepspeed(config, file);
  name_unread_arguments(strategy, {"lightning.DeepSpeedStrategy"}, settings);
  return settings;
}

// Returns the samples per rank and pass from the data's arguments.
std::int64_t batch_in(const Json& data, const std::string& file) {
  if (!data.is_object()) return 0;
  for (const char* key : {"batch_size", "train_batch_size", "micro_batch_size"}) {
    const Json size = data.value(key, Json());
    if (size.is_number_integer()) return Keys{data, file}.size(key, 0);
  }
  for (const auto& [key, inside] : data.items()) {
    if (const std::int64_t size = batch_in(inside, file); size > 0) return size;
  }
  return 0;
}

bool any_of_names(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Sets Composer's model by its sizes, or by its name.
void take_composer_model(const Json& model, Settings& settings, const std::string& file) {
  const Keys keys{model, file};
  const std::string name =
      keys.word("pretrained_model_name_or_path", keys.word("pretrained_model_name"));
  if (has_value(model, "model_config")) {
    settings.no_model = "model.model_config, the sizes of '" +
                        shorten_text(visible(keys.word("name")), 40) +
                        "', is not read (its config.json is, and a model's name)";
    return;
  }
  if (!name.empty()) return take_model_named(name, settings);
  if (!has_value(model, "d_model") || !has_value(model, "n_layers") || !has_value(model, "n_heads"))
    return;
  const Json& attention = section_of(model, "attn_config");
  const Json& inner = section_of(model, "ffn_config");
  const Keys attends{attention, file}, feeds{inner, file};
  const std::int64_t hidden = keys.size("d_model", 1), heads = keys.size("n_heads", 1);
  const std::int64_t positions = keys.size("max_seq_len", 2048);
  const bool learned =
      keys.on("learned_pos_emb", true) && !attends.on("alibi") && !attends.on("rope");
  const bool gated = feeds.word("ffn_type", "mptmlp").find("glu") != std::string::npos;
  const std::int64_t kv =
      attends.word("attn_type") == "multiquery_attention" ? 1 : attends.size("kv_n_heads", heads);
  const bool gpt2 = learned && !keys.on("no_bias") && !gated && kv == heads &&
                    keys.on("tie_word_embeddings", true);
  Json shape{{"layers", keys.size("n_layers", 1)},
             {"hidden", hidden},
             {"heads", heads},
             {"inner", feeds.size("ffn_hidden_size", keys.size("expansion_ratio", 4) * hidden)},
             {"positions", positions},
             {"words", keys.size("vocab_size", 50368)}};
  if (!gpt2) {
    if (kv != heads) shape["kv_heads"] = kv;
    if (keys.on("tie_word_embeddings", true)) shape["tied"] = true;
    if (!gated) shape["gated"] = false;
  }
  settings.workload["name"] =
      "MPT of " + shape["layers"].dump() + " layers, hidden " + std::to_string(hidden);
  settings.workload["source"] = "the model section of Composer's settings";
  Json& operators = settings.workload["operators"];
  operators["architecture"] = gpt2 ? "gpt2" : "llama";
  if (gpt2) operators["flash_attention"] = true;
  operators["shape"] = std::move(shape);
}

// Reads llm-foundry's adapters: peft's own configuration, or "lora" in its older files.
void take_composer_adapters(const Json& all, Settings& settings, const std::string& file) {
  const Json& newer = section_of(section_of(all, "model"), "peft_config");
  const Json& peft = newer.empty() ? section_of(section_of(all, "lora"), "args") : newer;
  if (peft.empty()) return;
  const Keys keys{peft, file};
  if (lower(keys.word("peft_type", "lora")) != "lora") {
    fail(file, "model.peft_config.peft_type", "other adapters than LoRA are not modelled yet");
  }
  Json arguments{{"use_peft", true}};
  for (const auto& [own, name] : {std::pair{"r", "lora_r"},
                                  {"target_modules", "target_modules"},
                                  {"modules_to_save", "modules_to_save"},
                                  {"use_dora", "use_dora"},
                                  {"layers_to_transform", "layers_to_transform"}}) {
    if (has_value(peft, own)) arguments[name] = peft[own];
  }
  take_adapters(arguments, file, settings);
}

Json composer_fsdp(const Json& fsdp, const Products& products, const std::string& file,
                   Settings& settings) {
  const Keys keys{fsdp, file};
  std::string sharding = keys.word("sharding_strategy", "FULL_SHARD");
  for (char& letter : sharding) letter = static_cast<char>(std::toupper(letter));
  Json config{
      {"version", 1}, {"units", "layers"}, {"use_orig_params", keys.on("use_orig_params", true)}};
  if (keys.on("cpu_offload")) config["cpu_offload"] = true;
  const std::int64_t replicas = keys.size("data_parallel_replicate_degree", 1);
  const std::int64_t shards = fsdp.value("data_parallel_shard_degree", Json(-1)) == -1
                                  ? -1
                                  : keys.size("data_parallel_shard_degree", 1);
  Json mesh = fsdp.value("device_mesh", Json());
  if (replicas > 1) mesh = {replicas, shards};
  if (mesh.is_array() && mesh.size() == 2) {
    if (sharding == "FULL_SHARD") sharding = "HYBRID_SHARD";
    if (sharding == "SHARD_GRAD_OP") sharding = "_HYBRID_SHARD_ZERO2";
    config["device_mesh"] = mesh;
  }
  config["sharding_strategy"] = sharding;
  const Json mixed = fsdp.value("mixed_precision", Json("DEFAULT"));
  const std::string word = mixed.is_string() ? lower(mixed.get<std::string>()) : "";
  if (mixed.is_object()) {
    for (const char* key : {"param_dtype", "reduce_dtype"}) {
      const std::string format = lower(Keys{mixed, file}.word(key));
      if (format.empty()) continue;
      config["mixed_precision"][key] = format == "bf16" || format == "bfloat16"  ? "bfloat16"
                                       : format == "fp16" || format == "float16" ? "float16"
                                                                                 : "float32";
    }
  } else if ((word == "default" || word == "pure") && products.dtype != "fp32") {
    config["mixed_precision"] = {
        {"param_dtype", format_of(products)},
        {"reduce_dtype", word == "pure" ? format_of(products) : "float32"}};
  } else if (word != "full" && word != "default" && word != "pure") {
    fail(file, "fsdp_config.mixed_precision",
         "found '" + shorten_text(visible(word), 60) + "', expected FULL, DEFAULT or PURE");
  }
  const std::string ahead = keys.word("backward_prefetch", "BACKWARD_POST");
  if (lower(ahead) != "backward_pre") {
    settings.assumed.push_back(
        "units gathered for the backward pass one early (BACKWARD_PRE) in place of "
        "backward_prefetch " +
        shorten_text(visible(ahead), 40));
  }
  if (keys.on("activation_checkpointing")) settings.workload["activation_checkpointing"] = "full";
  if (keys.on("activation_cpu_offload")) {
    settings.assumed.emplace_back(
        "activations kept on the GPU, where fsdp_config.activation_cpu_offload has them on the "
        "host");
  }
  return {{"dialect", "fsdp"}, {"config", std::move(config)}};
}

const Json& parameters_of(const Json& yaml) {
  const Json& inside = section_of(yaml, "parameters");  // a job of MosaicML's platform
  return inside.empty() ? yaml : inside;
}

}  // namespace

namespace {

std::size_t marks_of_lightning(const Json& trainer) {
  return marks_in(trainer, {"accelerator", "strategy", "devices", "num_nodes", "precision",
                            "accumulate_grad_batches", "max_epochs", "max_steps",
                            "gradient_clip_val", "log_every_n_steps"});
}

// Says if a file is the trainer's section alone, as projects with Hydra keep it.
bool is_trainer_alone(const Json& yaml) {
  return marks_of_lightning(yaml) >= 3 && has_any(yaml, {"accelerator", "strategy"});
}

}  // namespace

bool is_lightning(const Json& yaml) {
  if (!yaml.is_object()) return false;
  return marks_of_lightning(section_of(yaml, "trainer")) + marks_in(yaml, {"seed_everything"}) >=
             2 ||
         is_trainer_alone(yaml);
}

Settings of_lightning(const Json& yaml, const std::string& file) {
  const Json all = with_references(yaml);
  const bool inside = !section_of(all, "trainer").empty();
  const Json& section = inside ? section_of(all, "trainer") : all;
  const Keys trainer{section, file};
  const LightningStrategy strategy = strategy_in(section, file);
  const Products products =
      products_of(trainer.word("precision", "32-true"), "trainer.precision", file);
  const std::int64_t steps = trainer.size("accumulate_grad_batches", 1);
  const std::string& name = strategy.name;
  Settings settings;
  if (name == "DeepSpeedStrategy" || name.starts_with("deepspeed")) {
    settings = lightning_deepspeed(strategy, products, steps, file);
  } else if (any_of_names(name, {"fsdp", "fsdp_cpu_offload", "FSDPStrategy"})) {
    settings.strategy = lightning_fsdp(strategy, products, file, settings);
  } else if (any_of_names(name, {"auto", "DDPStrategy"}) || name.starts_with("ddp")) {
    settings.strategy = lightning_ddp(strategy, file, settings);
  } else {
    fail(file, "trainer.strategy",
         "found '" + shorten_text(visible(name), 60) +
             "', which is not modelled: ddp, fsdp and deepspeed are, by their names and classes");
  }
  settings.framework = "Lightning";
  settings.workload["operators"]["dtype"] = products.dtype;
  settings.autocast = products.mixed;
  settings.micro_batches = steps;
  for (const char* key : {"data", "datamodule", "data_module"}) {
    const std::int64_t batch = batch_in(section_of(all, key), file);
    if (batch > 0) settings.workload["batch"] = batch;
  }
  const Json& model = section_of(all, "model");
  const Json& arguments = section_of(model, "init_args");
  name_own_flags({arguments.empty() ? model : arguments, file}, settings);
  const Json devices = section.value("devices", Json());
  if (devices.is_number_integer() && devices > 0) {
    settings.nodes = trainer.size("num_nodes", 1);
    settings.ranks = trainer.size("devices", 1) * settings.nodes;
  }
  return settings;
}

bool is_composer(const Json& yaml) {
  const Json& all = parameters_of(yaml);
  // OLMo shares names with Composer, and has a section of its own.
  return !all.contains("fsdp") &&
         marks_in(all, {"global_train_batch_size", "device_train_microbatch_size", "fsdp_config",
                        "max_duration", "train_loader", "eval_loader", "algorithms"}) >= 2 &&
         has_any(all, {"global_train_batch_size", "device_train_microbatch_size", "fsdp_config"});
}

Settings of_composer(const Json& yaml, const std::string& file) {
  const Json all = with_references(parameters_of(yaml));
  const Keys keys{all, file};
  const Products products = products_of(keys.word("precision", "amp_bf16"), "precision", file);
  Settings settings;
  const Json& newer = section_of(section_of(all, "parallelism_config"), "fsdp");
  const Json& fsdp = newer.empty() ? section_of(all, "fsdp_config") : newer;
  if (fsdp.empty()) {
    settings.strategy = {{"dialect", "pytorch"}, {"config", {{"no_sync", true}}}};
  } else {
    settings.strategy = composer_fsdp(fsdp, products, file, settings);
  }
  settings.framework = "Composer";
  settings.workload["operators"]["dtype"] = products.dtype;
  settings.autocast = products.mixed;
  settings.global_batch = keys.size("global_train_batch_size", 0);
  if (const std::int64_t batch = keys.size("device_train_microbatch_size", 0); batch > 0) {
    settings.workload["batch"] = batch;
  }
  if (const std::int64_t length = keys.size("max_seq_len", 0); length > 0) {
    settings.workload["operators"]["sequence"] = length;
  }
  take_composer_model(section_of(all, "model"), settings, file);
  take_composer_adapters(all, settings, file);
  // Modules of adapters are wrapped (llm-foundry, prepare_hf_model_for_fsdp); from_pretrained gives
  // fp32.
  if (settings.adapters.is_object()) {
    settings.adapters.update({{"wrapped", true}, {"kept_full", settings.autocast}});
  }
  return settings;
}

std::optional<Settings> of_image_script(const TrainingCommand& training) {
  const Json& flags = training.flags;
  const bool torchvision = flags.contains("data-path"), timm = flags.contains("data-dir");
  const Json name = flags.value("model", Json());
  if (torchvision == timm || !name.is_string() || training.script != "train.py") {
    return std::nullopt;
  }
  const std::string word = name == "resnet50" ? "resnet50_v1.5" : name.get<std::string>();
  const operators::Architecture* row = operators::find_architecture(word);
  if (row == nullptr || !row->images || row->shaped) return std::nullopt;
  // Defaults of references/classification/train.py (torchvision 0.21) and train.py (timm 1.0).
  const std::int64_t usual = torchvision ? 32 : 128;
  const std::string file = "the launch";
  const Json all = with_underscores(flags);
  const Keys keys{all, file};
  Settings settings;
  settings.framework = torchvision ? "torchvision's reference script" : "timm's script";
  settings.workload = {{"name", row->name},
                       {"source", "generated: " + std::string(row->summary)},
                       {"batch", keys.size("batch_size", keys.size("b", usual))}};
  const bool amp = flags.contains("amp");
  const std::string half = keys.word("amp_dtype", "float16") == "bfloat16" ? "bf16" : "fp16";
  settings.workload["operators"] = {{"architecture", row->name}, {"dtype", amp ? half : "fp32"}};
  // torch.backends.cudnn.allow_tf32 is on by default, that of matrix products is not.
  if (!amp && !row->name.starts_with("vit")) {
    settings.workload["operators"]["dtype"] = "tf32";
    settings.assumed.emplace_back("convolutions in TF32 if the device has it, torch's default");
  }
  settings.autocast = amp;
  settings.micro_batches = timm ? keys.size("grad_accum_steps", 1) : 1;
  settings.strategy = {{"dialect", "pytorch"}, {"config", Json::object()}};
  if (timm && settings.micro_batches > 1) settings.strategy["config"]["no_sync"] = true;
  settings.assumed.push_back("train.py as " + settings.framework + " is, by --model and " +
                             (torchvision ? "--data-path" : "--data-dir") +
                             ": DDP with torch's defaults, samples per GPU");
  std::string left;
  for (const char* key : {"sync_bn", "model_ema", "use_deterministic_algorithms", "channels_last",
                          "torchcompile", "train_crop_size", "img_size", "num_classes"}) {
    if (has_value(all, key)) left += (left.empty() ? "" : ", ") + std::string(key);
  }
  if (!left.empty()) settings.assumed.push_back("nothing gained or lost by: " + left);
  return settings;
}

namespace {

// Returns OpenRLHF's flags by their names up to 0.8; later ones have a section: ds.zero_stage.
Json openrlhf_flags(const Json& flags) {
  Json all = with_underscores(flags);
  constexpr std::array<std::pair<const char*, const char*>, 15> kNames{
      {{"model.model_name_or_path", "pretrain"},
       {"model.gradient_checkpointing_enable", "gradient_checkpointing"},
       {"data.max_len", "max_len"},
       {"train.batch_size", "train_batch_size"},
       {"train.micro_batch_size", "micro_train_batch_size"},
       {"ds.zero_stage", "zero_stage"},
       {"ds.param_dtype", "param_dtype"},
       {"ds.zpg", "zpg"},
       {"ds.adam_offload", "adam_offload"},
       {"ds.overlap_comm", "overlap_comm"},
       {"ds.packing_samples", "packing_samples"},
       {"ds.load_in_4bit", "load_in_4bit"},
       {"ds.lora.rank", "lora_rank"},
       {"ds.lora.target_modules", "target_modules"},
       {"ds.ring_attn_size", "ring_attn_size"}}};
  bool sections = false;
  for (const auto& [name, older] : kNames) {
    if (!has_value(all, name)) continue;
    sections = true;
    all[older] = all[name];
  }
  if (sections && !has_value(all, "param_dtype")) all["param_dtype"] = "bf16";
  return all;
}

}  // namespace

// Takes the defaults of openrlhf/cli/train_sft.py (0.8 and 0.10), and DeepSpeed's own sizes.
Json arguments_of_openrlhf(const TrainingCommand& training) {
  if (training.script.find("openrlhf.cli.train_sft") == std::string::npos) return nullptr;
  const Json all = openrlhf_flags(training.flags);
  const std::string file = "the launch";
  const Keys keys{all, file};
  for (const char* key : {"ring_attn_size", "ds_tensor_parallel_size", "ds.tensor_parallel_size"}) {
    if (keys.size(key, 1) == 1) continue;
    fail(file, key,
         "OpenRLHF's cuts of a model over ranks are not modelled yet: write workload.parallel in a "
         "scenario");
  }
  for (const auto& [key, value] : all.items()) {
    if (!key.starts_with("fsdp.")) continue;
    fail(file, key, "is no flag of OpenRLHF's own, which trains by DeepSpeed: --fsdp says FSDP");
  }
  Json zero{{"stage", all.value("zero_stage", Json()) == 0 ? 0 : keys.size("zero_stage", 2)}};
  if (keys.on("overlap_comm")) zero["overlap_comm"] = true;
  if (keys.on("adam_offload")) zero["offload_optimizer"] = {{"device", "cpu"}};
  if (keys.size("zpg", 1) > 1) zero["zero_hpz_partition_size"] = keys.size("zpg", 1);
  Json arguments{{"per_device_train_batch_size", keys.size("micro_train_batch_size", 8)},
                 {"max_length", keys.size("max_len", 2048)},
                 {"bf16", keys.on("bf16") || keys.word("param_dtype") == "bf16"},
                 {"gradient_checkpointing", keys.on("gradient_checkpointing")},
                 {"packing", keys.on("packing_samples")},
                 {"gradient_accumulation_steps", "auto"},
                 {"deepspeed",
                  {{"train_batch_size", keys.size("train_batch_size", 128)},
                   {"gradient_accumulation_steps", "auto"},
                   {"zero_optimization", zero}}}};
  if (has_value(all, "pretrain")) arguments["model_name_or_path"] = all["pretrain"];
  if (keys.word("lora_rank", "0") != "0") {
    arguments.update({{"use_lora", true},
                      {"lora_rank", all["lora_rank"]},
                      {"target_modules", all.value("target_modules", Json("all-linear"))}});
    if (keys.on("load_in_4bit")) arguments["load_in_4bit"] = true;
  }
  return arguments;
}

}  // namespace syncline::job::frameworks
