// Trainers that cut a model by degrees of their own: PaddleNLP's arguments, MindFormers' YAML and
// NeMo Automodel's. Sources: PaddlePaddle/PaddleNLP 2.8 (trainer/training_args.py) and Paddle
// 01fbd77c (fleet/utils/hybrid_parallel_util.py), mindspore-lab/mindformers 03542d03
// (trainer/base_trainer.py, models/llama), NVIDIA-NeMo/Automodel 013d1137
// (components/distributed/config.py).
#include <algorithm>
#include <array>

#include "catalogue/architectures/architecture.h"
#include "core/base/error.h"
#include "formats/text/visible.h"
#include "imports/frameworks/keys.h"
#include "imports/frameworks/settings.h"

namespace syncline::job::frameworks {
namespace {

// A degree of a layout: the key that has it, and the scenario's.
struct Degree {
  const char* key;
  const char* name;
};

// Sets the degrees above 1. Returns the product of all given ones.
std::int64_t take_degrees(const Keys& keys, std::initializer_list<Degree> degrees,
                          Settings& settings) {
  std::int64_t product = 1;
  for (const auto& [key, name] : degrees) {
    // Not positive is not given.
    const Json value = keys.all.value(key, Json());
    const bool off = value.is_number_integer() && value < 1;
    const std::int64_t size = off ? 1 : keys.size(key, 1);
    if (size > 1) settings.workload["parallel"][name] = size;
    product = std::min(product * size, kMaxRanks);
  }
  return product;
}

std::int64_t degree_of(const Settings& settings, const char* name) {
  const Json& parallel = section_of(settings.workload, "parallel");
  return parallel.value(name, std::int64_t{1});
}

void name_ignored(const Json& all, std::initializer_list<const char*> keys, Settings& settings) {
  std::vector<std::string> left;
  for (const char* key : keys) {
    if (has_value(all, key) && all[key] != false && all[key] != 0) left.emplace_back(key);
  }
  if (left.empty()) return;
  settings.assumed.push_back("nothing gained or lost by what is left out: " +
                             list_words(left, 8, ", "));
}

// Refuses PaddleNLP's files of other work than training by tokens.
void refuse_other_work(const Keys& keys) {
  for (const char* key : {"do_ptq", "do_qat", "do_gptq", "do_awq", "prefix_tuning", "dora", "lokr",
                          "vera", "reft", "weight_quantize_algo"}) {
    if (!has_value(keys.all, key) || keys.all[key] == false) continue;
    fail(keys.file, key,
         "trains or quantises a part of the model in a way that is not modelled: give the model's "
         "parameters by --tensors in place of these settings");
  }
  for (const char* key : {"dpo_beta", "beta", "ref_model_update_steps", "reward_model", "kl_coeff",
                          "loss_type", "num_return_sequences"}) {
    if (!has_value(keys.all, key)) continue;
    fail(keys.file, key,
         "trains by preferences or rewards, which is not modelled: `syncline record` observes the "
         "job");
  }
}

// Returns the sum of gradients in fp32 that the passes collect (amp_master_grad).
Json paddle_fusion(Json fusion, const Keys& keys) {
  if (keys.on("amp_master_grad")) fusion["cast"] = "fp32";
  return fusion;
}

// Returns the strategy. Fleet sums once all passes are over, 128 MiB at a time, or parameter by
// parameter where optimizer states are sharded; paddle.DataParallel overlaps the backward pass.
Json paddle_strategy(const Keys& keys, Settings& settings) {
  const std::string sharding = lower(keys.word("sharding"));
  const auto says = [&](const char* word) { return sharding.find(word) != sharding.npos; };
  const bool fleet = degree_of(settings, "tensor") * degree_of(settings, "pipeline") > 1;
  const std::string overlap = keys.word("pipeline_parallel_config") + " " +
                              keys.word("sharding_parallel_config") + " " +
                              keys.word("data_parallel_config");
  const bool later = overlap.find("overlap") == overlap.npos;
  if (says("stage3")) {
    settings.assumed.emplace_back("GroupSharded's stage 3 as FSDP shards and gathers layers");
    return {{"dialect", "fsdp"}, {"config", {{"version", 1}, {"units", "layers"}}}};
  }
  const bool shards = says("stage1") || says("stage2");
  if (!shards && !fleet) return {{"dialect", "paddle_dygraph"}, {"config", Json::object()}};
  Json own = Json::object();
  if (later && !says("stage2")) own["after_passes"] = true;
  if (says("stage2")) own["each_micro_batch"] = true;
  if (says("offload")) own["offload"] = "optimizer";
  constexpr int kFleetMb = 128;
  if (!shards) {
    own["fusion"] = paddle_fusion({{"rule", "size"}, {"size_mb", kFleetMb}}, keys);
    settings.assumed.emplace_back(
        "gradients summed 128 MiB at a time, as fleet's fused_allreduce_gradients does");
    return own;
  }
  own["exchange"] = "sharded";
  own["fusion"] = paddle_fusion({{"rule", "none"}}, keys);
  const std::int64_t among = keys.all.value("sharding_parallel_degree", Json(-1)) == -1
                                 ? -1
                                 : keys.size("sharding_parallel_degree", 1);
  if (among > 1) own["hierarchy"] = {{"form", "sharded"}, {"group_size", among}};
  settings.assumed.emplace_back(
      "each parameter's sum at its owner and its broadcast as a reduce-scatter and an all-gather");
  return own;
}

void read_paddle_recompute(const Keys& keys, Settings& settings) {
  if (!keys.on("recompute")) return;
  const std::string granularity = keys.word("recompute_granularity", "full");
  settings.workload["activation_checkpointing"] = granularity == "full" ? "full" : "selective";
  if (granularity == "full_attn") {
    settings.assumed.emplace_back(
        "attention's scores alone computed again, where recompute_granularity full_attn does so "
        "with all of attention");
  }
}

}  // namespace

bool is_paddle_nlp(const Json& json) {
  return json.is_object() && has_any(json, {"tensor_parallel_degree", "pipeline_parallel_degree",
                                            "sharding_parallel_degree", "virtual_pp_degree"});
}

Settings of_paddle_nlp(const Json& json, const std::string& file) {
  const Keys keys{json, file};
  refuse_other_work(keys);
  Settings settings;
  settings.framework = "PaddleNLP";
  settings.workload["parallel"] = Json::object();
  settings.modules = false;
  take_degrees(keys,
               {{"tensor_parallel_degree", "tensor"},
                {"pipeline_parallel_degree", "pipeline"},
                {"virtual_pp_degree", "virtual_stages"},
                {"context_parallel_degree", "context"},
                {"sep_parallel_degree", "context"},
                {"expert_parallel_degree", "expert"}},
               settings);
  if (degree_of(settings, "pipeline") == 1) settings.workload["parallel"].erase("virtual_stages");
  if (has_value(json, "sep_parallel_degree") && degree_of(settings, "context") > 1) {
    settings.workload["parallel"]["context_exchange"] = "all_to_all";
  }
  if (keys.on("sequence_parallel") && degree_of(settings, "tensor") > 1) {
    settings.workload["parallel"]["sequence"] = true;
  }
  if (settings.workload["parallel"].empty()) settings.workload.erase("parallel");
  settings.workload["batch"] = keys.size("per_device_train_batch_size", 8);
  settings.micro_batches = keys.size("gradient_accumulation_steps", 1);
  Json& operators = settings.workload["operators"];
  operators["dtype"] = keys.on("bf16") ? "bf16" : keys.on("fp16") ? "fp16" : "fp32";
  settings.autocast = operators["dtype"] != "fp32" && keys.word("fp16_opt_level", "O1") != "O2";
  for (const char* key : {"max_seq_length", "max_length", "max_seq_len"}) {
    if (has_value(json, key)) operators["sequence"] = keys.size(key, 1);
  }
  read_paddle_recompute(keys, settings);
  const std::string name = keys.word("model_name_or_path");
  if (!name.empty()) take_model_named(name, settings);
  settings.strategy = paddle_strategy(keys, settings);
  if (keys.on("lora")) {
    const Json rank = json.value("lora_rank", Json(8));
    take_adapters({{"use_lora", true}, {"lora_rank", rank}, {"target_modules", "all"}}, file,
                  settings);
  }
  name_ignored(json,
               {"tensor_parallel_config", "tensor_parallel_output", "num_hidden_layers",
                "fuse_attention_qkv", "fuse_attention_ffn", "enable_linear_fused_grad_add",
                "recompute_use_reentrant", "use_moe", "rope_scaling_factor"},
               settings);
  return settings;
}

namespace {

// Returns true for "true", and for a list with layers in it.
bool recomputes(const Json& value) {
  if (value.is_array()) {
    return std::ranges::any_of(value, [](const Json& one) { return recomputes(one); });
  }
  const bool chosen = value.is_object() && !value.empty();
  return value == true || chosen || (value.is_number() && value > 0);
}

// Returns the layers in a list of stages, or of stages and chunks.
std::int64_t layers_in(const Json& value) {
  if (value.is_number_integer()) return std::clamp<std::int64_t>(value, 0, kMaxRanks);
  std::int64_t layers = 0;
  if (!value.is_array() || value.size() > static_cast<std::size_t>(kMaxRanks)) return layers;
  for (const Json& one : value) layers = std::min(layers + layers_in(one), kMaxRanks);
  return layers;
}

// Returns the first of a model's keys that is given: MindFormers has names of its own, and those of
// Hugging Face.
std::int64_t first_size(const Keys& model, std::initializer_list<const char*> names,
                        std::int64_t otherwise) {
  for (const char* name : names) {
    if (has_value(model.all, name)) return model.size(name, otherwise);
  }
  return otherwise;
}

// Reads the layers that MindFormers computes again.
void read_recomputation(const Json& recompute, const Keys& model, Settings& settings) {
  const bool all_again = recomputes(recompute.value("recompute", Json()));
  if (all_again || recomputes(recompute.value("select_recompute", Json()))) {
    settings.workload["activation_checkpointing"] = all_again ? "full" : "selective";
  }
  const std::int64_t layers = first_size(model, {"num_layers", "num_hidden_layers"}, 0);
  const std::int64_t again = layers_in(recompute.value("recompute", Json()));
  if (again > 0 && again < layers) {
    settings.assumed.push_back(
        "all layers are computed again, where recompute_config does so with " +
        std::to_string(again) + " of " + std::to_string(layers));
  }
}

// Returns the feed-forward width of LlamaConfig: two thirds of four times the hidden size, in
// multiples, unless it is given.
std::int64_t llama_inner(const Keys& model, std::int64_t hidden) {
  const std::int64_t given = first_size(model, {"intermediate_size"}, 0);
  if (given > 0) return given;
  double inner = 4.0 * static_cast<double>(hidden);
  const Json wider = model.all.value("ffn_dim_multiplier", Json());
  constexpr double kRounded = 0.01;  // as MindFormers adds it
  if (wider.is_number() && wider > 0) inner *= wider.get<double>() + kRounded;
  const std::int64_t unit = model.size("multiple_of", 256);
  const auto third = static_cast<std::int64_t>(2 * static_cast<std::int64_t>(inner) / 3);
  return std::min(operators::kMaxFfnWidth, (third + unit - 1) / unit * unit);
}

// Sets the model by the sizes of LlamaConfig, or of Hugging Face's names for such a model.
void take_mindformers_model(const Json& section, const std::string& name, const std::string& file,
                            Settings& settings) {
  const Keys model{section, file};
  const std::string type = model.word("type", model.word("model_type"));
  const std::int64_t layers = first_size(model, {"num_layers", "num_hidden_layers"}, 0);
  const std::int64_t hidden = first_size(model, {"hidden_size"}, 0);
  const std::int64_t heads = first_size(model, {"num_heads", "num_attention_heads"}, 0);
  const std::int64_t words = first_size(model, {"vocab_size"}, 0);
  constexpr std::array kLikeLlama{"LlamaConfig", "llama", "qwen2", "Qwen2Config"};
  const bool like = std::ranges::find(kLikeLlama, type) != kLikeLlama.end();
  const bool sized = layers > 0 && hidden > 0 && heads > 0 && words > 0;
  if (!like || !sized) {
    if (!name.empty()) take_model_named(name, settings);
    if (!type.empty() && !like && !settings.no_model.empty()) {
      settings.no_model = "'" + shorten_text(visible(type), 60) +
                          "' of model.model_config is not read: LlamaConfig with its sizes is";
    }
    return;
  }
  Json shape{{"layers", layers},
             {"hidden", hidden},
             {"heads", heads},
             {"inner", llama_inner(model, hidden)},
             {"positions", first_size(model, {"seq_length", "max_position_embeddings"}, 1 << 17)},
             {"words", words}};
  const std::int64_t groups = first_size(model, {"n_kv_heads", "num_key_value_heads"}, heads);
  if (groups != heads) shape["kv_heads"] = groups;
  if (model.on("tie_word_embeddings")) shape["tied"] = true;
  if (model.on("qkv_has_bias", type == "qwen2" || type == "Qwen2Config")) shape["bias"] = true;
  settings.workload["name"] = name.empty() ? "a model of " + std::to_string(layers) + " layers"
                                           : shorten_text(visible(name), 60);
  settings.workload["source"] = "MindFormers' model_config";
  settings.workload["operators"]["architecture"] = "llama";
  settings.workload["operators"]["shape"] = std::move(shape);
}

std::string short_format(const std::string& name, const std::string& otherwise) {
  const std::string word = lower(name.substr(name.rfind('.') + 1));
  if (word == "bfloat16" || word == "bf16") return "bf16";
  if (word == "float16" || word == "fp16") return "fp16";
  return word == "float32" || word == "fp32" ? "fp32" : otherwise;
}

// Returns MindSpore's context.
Json mindspore_strategy(const Json& section, const std::string& file) {
  const Keys context{section, file};
  constexpr std::array kModes{"data_parallel", "semi_auto_parallel", "auto_parallel",
                              "hybrid_parallel"};
  Json mode = section.value("parallel_mode", Json(1));
  if (mode.is_number_integer() && mode >= 0 && mode < std::ssize(kModes)) {
    mode = kModes.at(mode.get<std::size_t>());
  }
  Json config{{"parallel_mode", std::move(mode)}};
  if (context.on("enable_parallel_optimizer")) {
    config["enable_parallel_optimizer"] = true;
    const Json& sizes = section_of(section, "parallel_optimizer_config");
    if (sizes.contains("parallel_optimizer_threshold")) {
      config["parallel_optimizer_config"] = {
          {"parallel_optimizer_threshold", sizes["parallel_optimizer_threshold"]}};
    }
  }
  if (section.value("comm_fusion", Json()).is_object()) {
    config["comm_fusion"] = section["comm_fusion"];
  }
  return {{"dialect", "mindspore"}, {"config", std::move(config)}};
}

}  // namespace

bool is_mindformers(const Json& yaml) {
  return yaml.is_object() && yaml.contains("parallel_config") && yaml.contains("runner_config");
}

Settings of_mindformers(const Json& yaml, const std::string& file) {
  const Json all = with_references(yaml);
  const Json& runner_section = section_of(all, "runner_config");
  const Json& recompute = section_of(all, "recompute_config");
  const Json& model_section = section_of(all, "model");
  const Json& sizes = section_of(model_section, "model_config");
  const Json& layout = section_of(all, "parallel_config");
  const Keys keys{all, file}, runner{runner_section, file}, model{sizes, file}, cut{layout, file};
  if (const std::string mode = keys.word("run_mode", "train"); mode == "predict") {
    fail(file, "run_mode", "is predict: of MindFormers' settings those that train are read");
  }
  if (!section_of(sizes, "pet_config").empty()) {
    fail(file, "model.model_config.pet_config",
         "training of adapters alone: give the model's parameters by --tensors in place of these "
         "settings");
  }
  const Json& experts = section_of(all, "moe_config");
  if (Keys{experts, file}.size("expert_num", 1) > 1) {
    fail(file, "moe_config.expert_num",
         "experts are not read from MindFormers' settings: name the model, its layout by --tp, "
         "--pp and --ep");
  }
  Settings settings;
  settings.framework = "MindFormers";
  settings.workload["parallel"] = Json::object();
  settings.modules = false;
  settings.ranks = take_degrees(cut,
                                {{"data_parallel", "data"},
                                 {"model_parallel", "tensor"},
                                 {"pipeline_stage", "pipeline"},
                                 {"context_parallel", "context"}},
                                settings);
  take_degrees(cut, {{"expert_parallel", "expert"}}, settings);
  settings.workload["parallel"].erase("data");
  if (cut.on("use_seq_parallel") && degree_of(settings, "tensor") > 1) {
    settings.workload["parallel"]["sequence"] = true;
  }
  if (settings.workload["parallel"].empty()) settings.workload.erase("parallel");
  const bool staged = degree_of(settings, "pipeline") > 1;
  settings.workload["batch"] = runner.size("batch_size", 1);
  // Accumulation has no effect in a pipeline, the number of micro-batches none without one.
  settings.micro_batches =
      staged ? cut.size("micro_batch_num", 1) : runner.size("gradient_accumulation_steps", 1);
  if (const std::int64_t copies = keys.size("micro_batch_interleave_num", 1); copies > 1) {
    settings.micro_batches *= copies;
    settings.assumed.push_back("micro_batch_interleave_num " + std::to_string(copies) +
                               " as further micro-batches, whose communication hides nothing");
  }
  Json& operators = settings.workload["operators"];
  operators["dtype"] = short_format(model.word("compute_dtype"), "fp16");
  const std::string kept =
      short_format(model.word("param_init_type", model.word("params_dtype")), "fp32");
  settings.autocast = kept == "fp32" && operators["dtype"] != "fp32";
  const Json& task = section_of(section_of(all, "train_dataset"), "data_loader");
  const std::int64_t length =
      model.size("seq_length", Keys{section_of(task, "config"), file}.size("seq_length", 0));
  if (length > 0) operators["sequence"] = length;
  take_mindformers_model(sizes, Keys{section_of(all, "trainer"), file}.word("model_name"), file,
                         settings);
  read_recomputation(recompute, Keys{sizes, file}, settings);
  settings.strategy = mindspore_strategy(section_of(all, "parallel"), file);
  settings.assumed.emplace_back(
      "the given GPUs and their library, where MindFormers trains on Ascend");
  name_ignored(layout, {"vocab_emb_dp", "gradient_aggregation_group"}, settings);
  name_ignored(sizes, {"fine_grain_interleave", "offset"}, settings);
  return settings;
}

namespace {

// Returns the strategy and its word: "FSDP2Manager" is fsdp2, as strategy says it since 2026.
std::string automodel_strategy(const Keys& distributed) {
  std::string word = distributed.word("strategy", distributed.word("_target_", "fsdp2"));
  word = lower(word.substr(word.rfind('.') + 1));
  if (word.ends_with("manager")) word.resize(word.size() - std::string_view("manager").size());
  std::erase(word, '_');
  return word;
}

// Returns FSDP2's configuration: layers are units, the last one stays gathered, as the root does.
Json automodel_fsdp(const Keys& distributed, Settings& settings, bool pipelined) {
  Json config{{"version", 2}, {"units", "layers"}};
  config["no_sync"] = distributed.on("defer_fsdp_grad_sync", true);
  const Json& given = section_of(distributed.all, "mp_policy");
  const Keys formats{given, distributed.file};
  const auto format = [&](const char* key, const char* usual) {
    const std::string word = formats.word(key, usual);
    return word.substr(word.rfind('.') + 1);
  };
  config["mp_policy"] = {{"param_dtype", format("param_dtype", "bfloat16")},
                         {"reduce_dtype", format("reduce_dtype", "float32")}};
  const Json again = distributed.all.value("reshard_after_forward", Json());
  if (again.is_boolean() || pipelined) {
    config["reshard_after_forward"] = again.is_boolean() ? again : Json(false);
  } else if (const operators::Architecture* row = operators::find_architecture(
                 section_of(settings.workload, "operators").value("architecture", ""));
             row != nullptr && !row->images && !row->name.starts_with("gpt2")) {
    config["not_resharded"] = {"model.layers." + std::to_string(row->shape.layers - 1)};
  } else {
    settings.assumed.emplace_back("the last layer gathered again, which Automodel keeps");
  }
  if (has_value(distributed.all, "offload_policy")) config["offload_policy"] = "CPUOffloadPolicy";
  const std::int64_t replicas = distributed.size("dp_replicate_size", 1);
  if (replicas > 1) config["mesh"] = {replicas, -1};
  return {{"dialect", "fsdp"}, {"config", std::move(config)}};
}

// Sets the model by the name that from_pretrained, or its configuration, is given.
void take_automodel_model(const Json& model, const std::string& file, Settings& settings) {
  const Json& inside = section_of(model, "config");
  for (const Json* section : {&model, &inside}) {
    const std::string name = Keys{*section, file}.word("pretrained_model_name_or_path");
    if (!name.empty()) return take_model_named(name, settings);
  }
}

// Returns the samples of a micro-batch, by the section of today or of 2025.
std::int64_t samples_of_pipeline(const Json& yaml, const std::string& file, Settings& settings) {
  const Json& older = section_of(yaml, "autopipeline");
  const Json& newer = section_of(section_of(yaml, "distributed"), "pipeline");
  const Keys pipeline{newer.empty() ? older : newer, file};
  const std::string schedule = lower(pipeline.word("pp_schedule", "1f1b"));
  if (schedule != "1f1b") {
    settings.assumed.push_back("the schedule 1F1B in place of " +
                               shorten_text(visible(schedule), 40));
  }
  settings.assumed.emplace_back("one pipeline for all samples of a step");
  return pipeline.size("pp_microbatch_size", 1);
}

// Returns the positions of a sample; 0 if they are not given.
std::int64_t automodel_length(const Json& yaml, const std::string& file) {
  const Json& packed = section_of(yaml, "packed_sequence");
  const Json size = packed.value("packed_sequence_size", Json(0));
  if (size.is_number_integer() && size > 0) {
    return Keys{packed, file}.size("packed_sequence_size", 1);
  }
  const Json& data = section_of(yaml, "dataset");
  const Keys set{data, file};
  return set.size("seq_length", set.size("seq_len", 0));
}

void take_automodel_adapters(const Json& peft, const std::string& file, Settings& settings) {
  if (peft.empty()) return;
  const Keys keys{peft, file};
  Json arguments{{"use_lora", true}, {"lora_r", keys.size("dim", 8)}};
  arguments["target_modules"] = keys.on("match_all_linear") || !has_value(peft, "target_modules")
                                    ? Json("all")
                                    : peft["target_modules"];
  if (keys.on("use_dora")) arguments["use_dora"] = true;
  // Patterns such as "*_proj" mean all projections.
  if (arguments["target_modules"].dump().find('*') != std::string::npos) {
    arguments["target_modules"] = "all";
    settings.assumed.emplace_back("adapters at all products for the patterns in peft");
  }
  take_adapters(arguments, file, settings);
}

}  // namespace

bool is_automodel(const Json& yaml) {
  return yaml.is_object() && yaml.contains("step_scheduler") &&
         (any_under(yaml, "_target_", "nemo_automodel") || yaml.contains("distributed"));
}

Settings of_automodel(const Json& yaml, const std::string& file) {
  const Json& cut = section_of(yaml, "distributed");
  const Json& steps = section_of(yaml, "step_scheduler");
  const Json& model = section_of(yaml, "model");
  const Keys distributed{cut, file}, scheduler{steps, file}, named{model, file};
  const std::string target = named.word("_target_");
  if (target.find("Diffusion") != target.npos || target.find("diffusion") != target.npos) {
    fail(file, "model._target_", "is a diffusion model, which is not modelled");
  }
  Settings settings;
  settings.framework = "NeMo Automodel";
  const std::int64_t product = take_degrees(
      distributed, {{"tp_size", "tensor"}, {"pp_size", "pipeline"}, {"cp_size", "context"}},
      settings);
  take_degrees(distributed, {{"ep_size", "expert"}}, settings);
  if (has_value(cut, "dp_size") && cut["dp_size"] != "none") {
    settings.ranks = product * distributed.size("dp_size", 1);
  }
  const bool sequence = distributed.on("sequence_parallel") && degree_of(settings, "tensor") > 1;
  if (sequence) settings.workload["parallel"]["sequence"] = true;
  const bool pipelined = degree_of(settings, "pipeline") > 1;
  settings.workload["batch"] =
      pipelined ? samples_of_pipeline(yaml, file, settings) : scheduler.size("local_batch_size", 1);
  settings.global_batch = scheduler.size("global_batch_size", 0);
  // A stored format of the checkpoint ("auto") is bf16 for the models of today.
  const std::string stored = short_format(named.word("torch_dtype", "bfloat16"), "bf16");
  settings.workload["operators"]["dtype"] = "bf16";
  settings.autocast = stored == "fp32";
  take_automodel_model(model, file, settings);
  if (const std::int64_t length = automodel_length(yaml, file); length > 0) {
    settings.workload["operators"]["sequence"] = length;
  }
  const Json& parallelizer = section_of(yaml, "parallelizer");
  if (distributed.on("activation_checkpointing") ||
      Keys{parallelizer, file}.on("activation_checkpointing")) {
    settings.workload["activation_checkpointing"] = "full";
  }
  const std::string strategy = automodel_strategy(distributed);
  if (strategy == "ddp") {
    settings.strategy = {{"dialect", "pytorch"}, {"config", {{"no_sync", true}}}};
  } else if (strategy == "fsdp2") {
    settings.strategy = automodel_fsdp(distributed, settings, pipelined);
  } else {
    fail(file, "distributed",
         "'" + shorten_text(visible(strategy), 40) +
             "' is not modelled: FSDP2 and DDP are (syncline init MODEL --fsdp --tp N)");
  }
  take_automodel_adapters(section_of(yaml, "peft"), file, settings);
  if (!section_of(yaml, "compile").empty()) {
    settings.compiled = Keys{section_of(yaml, "compile"), file}.on("enabled");
  }
  return settings;
}

}  // namespace syncline::job::frameworks
