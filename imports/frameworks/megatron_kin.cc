// Frameworks with Megatron's models: NeMo's megatron_gpt_config.yaml and gpt-neox' YAML. Sources:
// NVIDIA/NeMo 000316c8 (megatron_base_model.py), apex (distributed_fused_adam.py),
// EleutherAI/gpt-neox (neox_arguments/arguments.py, neox_args.py, deepspeed_args.py).
#include <algorithm>
#include <array>

#include "formats/text/visible.h"
#include "imports/frameworks/keys.h"
#include "imports/frameworks/settings.h"

namespace syncline::job::frameworks {
namespace {

constexpr std::int64_t kElementsPerMb = (1 << 20) / 4;  // of fp32, in which buckets are counted

// Names of NeMo's that are no flags of Megatron's, by the flags that say the same.
constexpr std::array<std::pair<const char*, const char*>, 21> kOfNemo{
    {{"micro_batch_size", "micro-batch-size"},
     {"global_batch_size", "global-batch-size"},
     {"tensor_model_parallel_size", "tensor-model-parallel-size"},
     {"pipeline_model_parallel_size", "pipeline-model-parallel-size"},
     {"virtual_pipeline_model_parallel_size", "num-virtual-stages-per-pipeline-rank"},
     {"context_parallel_size", "context-parallel-size"},
     {"expert_model_parallel_size", "expert-model-parallel-size"},
     {"num_layers", "num-layers"},
     {"hidden_size", "hidden-size"},
     {"ffn_hidden_size", "ffn-hidden-size"},
     {"num_attention_heads", "num-attention-heads"},
     {"kv_channels", "kv-channels"},
     {"max_position_embeddings", "max-position-embeddings"},
     {"position_embedding_type", "position-embedding-type"},
     {"make_vocab_size_divisible_by", "make-vocab-size-divisible-by"},
     {"vocab_size", "vocab-size"},
     {"num_moe_experts", "num-experts"},
     {"moe_router_topk", "moe-router-topk"},
     {"moe_token_dispatcher_type", "moe-token-dispatcher-type"},
     {"activations_checkpoint_granularity", "recompute-granularity"},
     {"activations_checkpoint_method", "recompute-method"}}};

void take_nemo_model(const Json& model, const std::string& file, Json& flags) {
  const Keys keys{model, file};
  for (const auto& [name, flag] : kOfNemo) {
    if (has_value(model, name)) flags[flag] = model[name];
  }
  // NeMo's own files name a method of full recomputation also with "selective", and it has no
  // effect.
  if (flags.value("recompute-granularity", Json()) != "full") flags.erase("recompute-method");
  for (const char* name : {"encoder_seq_length", "seq_length"}) {
    if (has_value(model, name) && !flags.contains("seq-length")) flags["seq-length"] = model[name];
  }
  const Json& data = section_of(model, "data");
  if (!flags.contains("seq-length") && has_value(data, "seq_length")) {
    flags["seq-length"] = data["seq_length"];
  }
  if (has_value(model, "num_query_groups")) {
    flags["group-query-attention"] = true;
    flags["num-query-groups"] = model["num_query_groups"];
  }
  if (lower(keys.word("activation", "gelu")).ends_with("glu")) flags["swiglu"] = true;
  if (lower(keys.word("normalization", "layernorm")) == "rmsnorm") {
    flags["normalization"] = "RMSNorm";
  }
  if (!keys.on("bias", true)) flags["disable-bias-linear"] = true;
  if (!keys.on("share_embeddings_and_output_weights", true)) {
    flags["untie-embeddings-and-output-weights"] = true;
  }
  const std::string tokenizer = Keys{section_of(model, "tokenizer"), file}.word("type");
  if (tokenizer == "GPT2BPETokenizer") flags["tokenizer-type"] = tokenizer;
  const bool sequence =
      keys.on("sequence_parallel") && keys.size("tensor_model_parallel_size", 1) > 1;
  if (sequence) flags["sequence-parallel"] = true;
  if (sequence && keys.on("ub_tp_comm_overlap")) flags["tp-comm-overlap"] = true;
  const bool chunks = keys.size("virtual_pipeline_model_parallel_size", 1) > 1;
  if (chunks && !keys.on("overlap_p2p_comm")) flags["no-overlap-p2p-communication"] = true;
  if (keys.on("fp8")) flags["fp8-format"] = keys.on("fp8_hybrid", true) ? "hybrid" : "e4m3";
}

// Writes how NeMo sums gradients: by apex's distributed Adam, or in chunks of its main gradients.
void take_nemo_exchange(const Json& model, const std::string& file, Json& flags,
                        std::vector<std::string>& notes) {
  const Keys keys{model, file};
  const Json& section = section_of(model, "optim");
  const Keys optim{section, file};
  const std::string name = optim.word("name", "fused_adam");
  if (name == "distributed_fused_adam" || name == "mcore_distributed_optim") {
    flags["use-distributed-optimizer"] = true;
    if (optim.on("overlap_grad_sync", true)) flags["overlap-grad-reduce"] = true;
    if (optim.on("overlap_param_sync")) flags["overlap-param-gather"] = true;
    constexpr std::int64_t kUsual = 100;
    flags["ddp-bucket-size"] = optim.size("bucket_cap_mb", kUsual) * kElementsPerMb;
    const std::string format = lower(optim.word("grad_sync_dtype", "fp32"));
    const bool narrow = format.find("16") != format.npos;
    flags[narrow ? "grad-reduce-in-bf16" : "accumulate-allreduce-grads-in-fp32"] = true;
    notes.emplace_back(
        "apex's distributed Adam, of buckets of one size, as Megatron's distributed optimizer with "
        "buckets of " +
        flags["ddp-bucket-size"].dump() + " elements");
    return;
  }
  if (name.find("adam") == name.npos) flags["optimizer"] = name;
  const bool sooner = keys.on("megatron_amp_O2") && keys.on("async_grad_allreduce", true) &&
                      keys.size("pipeline_model_parallel_size", 1) == 1 &&
                      !keys.on("sequence_parallel") && !keys.on("gradient_accumulation_fusion");
  flags["accumulate-allreduce-grads-in-fp32"] = true;
  if (!sooner) return;
  constexpr std::int64_t kUsual = 125;
  flags["overlap-grad-reduce"] = true;
  flags["ddp-bucket-size"] = keys.size("grad_allreduce_chunk_size_mb", kUsual) * kElementsPerMb;
}

// Returns the keys with underscores for dashes, as gpt-neox takes them one by one.
Json neox_keys(const Json& yaml) { return with_underscores(yaml); }

// Writes a gated feed-forward layer. Without a size its two matrices and the gate have together the
// parameters of two of four times the width (megatron/model/transformer.py).
void take_neox_gate(const Keys& keys, Json& flags, std::vector<std::string>& notes) {
  flags["swiglu"] = true;
  const std::int64_t hidden = keys.size("hidden_size", 0);
  if (flags.contains("ffn-hidden-size") || hidden <= 0 || hidden > (1 << 24)) return;
  const std::int64_t unit = std::max<std::int64_t>(1, keys.size("mlp_multiple_of", 256));
  const std::int64_t inner = (8 * hidden / 3 + unit - 1) / unit * unit;
  flags["ffn-hidden-size"] = inner;
  notes.push_back("gates of " + std::to_string(inner) +
                  ", two thirds of four times the width in multiples of " + std::to_string(unit));
}

void take_neox_model(const Keys& keys, Json& flags, std::vector<std::string>& notes) {
  for (const auto& [name, flag] : std::initializer_list<std::pair<const char*, const char*>>{
           {"num_layers", "num-layers"},
           {"hidden_size", "hidden-size"},
           {"num_attention_heads", "num-attention-heads"},
           {"seq_length", "seq-length"},
           {"max_position_embeddings", "max-position-embeddings"},
           {"feedforward_size", "ffn-hidden-size"},
           {"intermediate_size", "ffn-hidden-size"},
           {"make_vocab_size_divisible_by", "make-vocab-size-divisible-by"},
           {"vocab_size", "vocab-size"},
           {"padded_vocab_size", "padded-vocab-size"},
           {"model_parallel_size", "tensor-model-parallel-size"},
           {"train_micro_batch_size_per_gpu", "micro-batch-size"}}) {
    if (has_value(keys.all, name)) flags[flag] = keys.all[name];
  }
  if (has_value(keys.all, "num_kv_heads")) {
    flags["group-query-attention"] = true;
    flags["num-query-groups"] = keys.all["num_kv_heads"];
  }
  // Zero stages are no pipeline.
  const Json stages = keys.all.value("pipe_parallel_size", Json(0));
  if (stages != 0) flags["pipeline-model-parallel-size"] = keys.size("pipe_parallel_size", 1);
  const std::string norm = lower(keys.word("norm", "layernorm"));
  if (norm.starts_with("rms")) flags["normalization"] = "RMSNorm";
  const std::string position = keys.word("pos_emb", "learned");
  if (position == "rotary") flags["position-embedding-type"] = "rope";
  if (position == "alibi" || position == "none" || position == "rpe") {
    flags["position-embedding-type"] = "none";
  }
  if (keys.on("no_weight_tying")) flags["untie-embeddings-and-output-weights"] = true;
  const std::string activation = lower(keys.word("activation", "gelu"));
  const std::string mlp = lower(keys.word("mlp_type", "regular"));
  if (activation.ends_with("glu") || mlp == "llama" || mlp == "gated") {
    take_neox_gate(keys, flags, notes);
  }
  if (keys.on("sequence_parallel")) flags["sequence-parallel"] = true;
  if (keys.on("checkpoint_activations")) flags["recompute-granularity"] = "full";
  if (flags.contains("vocab-size") || flags.contains("padded-vocab-size")) return;
  const std::string tokenizer = lower(keys.word("tokenizer_type", "GPT2BPETokenizer"));
  if (tokenizer == "gpt2bpetokenizer") flags["tokenizer-type"] = "GPT2BPETokenizer";
  if (tokenizer != "hftokenizer" || !keys.word("vocab_file").ends_with("20B_tokenizer.json"))
    return;
  constexpr int kWordsOf20B = 50277;  // EleutherAI/gpt-neox-20b, added ones among them
  flags["vocab-size"] = kWordsOf20B;
  notes.push_back("a vocabulary of " + std::to_string(kWordsOf20B) +
                  ", that of 20B_tokenizer.json");
}

// Returns the keys of the file that DeepSpeed reads; the rest is gpt-neox' own.
Json neox_zero(const Json& all) {
  Json config = Json::object();
  for (const char* key :
       {"zero_optimization", "fp16", "bf16", "gradient_clipping", "communication_data_type",
        "prescale_gradients", "gradient_predivide_factor", "sparse_gradients", "data_types"}) {
    if (has_value(all, key)) config[key] = all[key];
  }
  if (all.value("fp32_allreduce", Json()) == true) config["communication_data_type"] = "fp32";
  if (!config.contains("zero_optimization")) config["zero_optimization"] = {{"stage", 0}};
  // "fp16" may be of another type.
  const Json& half = section_of(config, "fp16");
  const std::string type = half.contains("type") ? half["type"].dump() : "";
  const bool bf16 = type.find("bfloat16") != type.npos || type.find("bf16") != type.npos ||
                    all.value("precision", Json()) == "bfloat16";
  if (bf16) {
    config.erase("fp16");
    config["bf16"] = {{"enabled", true}};
  }
  for (const char* key : {"fp16", "bf16"}) {
    if (config.contains(key))
      config[key] = {{"enabled", section_of(config, key).value("enabled", Json(true))}};
  }
  return config;
}

}  // namespace

bool is_nemo(const Json& yaml) {
  const Json& model = section_of(yaml, "model");
  return yaml.contains("trainer") && has_any(model, {"num_layers", "hidden_size"}) &&
         has_any(model, {"tensor_model_parallel_size", "megatron_amp_O2", "mcore_gpt",
                         "encoder_seq_length", "activations_checkpoint_granularity"});
}

Settings of_nemo(const Json& yaml, const Json& more, const std::string& file) {
  const Json all = with_references(yaml);
  const Json& model = section_of(all, "model");
  const Json& section = section_of(all, "trainer");
  const Keys keys{model, file}, trainer{section, file};
  if (keys.on("fsdp")) fail(file, "model.fsdp", "FSDP inside NeMo is not modelled yet");
  const Json& peft = section_of(model, "peft");
  if (has_value(peft, "peft_scheme") && peft["peft_scheme"] != "none") {
    fail(file, "model.peft",
         "training of adapters alone: give the model's parameters by "
         "--tensors in place of these settings");
  }
  Json flags = Json::object();
  std::vector<std::string> notes;
  take_nemo_model(model, file, flags);
  take_nemo_exchange(model, file, flags, notes);
  const std::string precision = lower(trainer.word("precision", "32"));
  if (precision.starts_with("bf16")) flags["bf16"] = true;
  if (precision.starts_with("16")) flags["fp16"] = true;
  if (!flags.contains("bf16")) flags.erase("grad-reduce-in-bf16");
  flags.update(more);
  Settings settings = of_megatron(flags, file);
  settings.framework = "NeMo";
  settings.modules = false;
  // Without O2 parameters stay in fp32.
  settings.autocast = !keys.on("megatron_amp_O2") && precision != "32";
  const Json devices = section.value("devices", Json());
  if (devices.is_number_integer() && devices > 0) {
    settings.nodes = trainer.size("num_nodes", 1);
    settings.ranks = trainer.size("devices", 1) * settings.nodes;
  }
  settings.assumed.insert(settings.assumed.begin(), notes.begin(), notes.end());
  return settings;
}

bool is_neox(const Json& yaml) {
  if (!yaml.is_object()) return false;
  const Json all = neox_keys(yaml);
  const auto keys = {"pipe_parallel_size",
                     "model_parallel_size",
                     "gpt_j_residual",
                     "output_layer_parallelism",
                     "no_weight_tying",
                     "pos_emb",
                     "train_micro_batch_size_per_gpu"};
  const auto count =
      std::ranges::count_if(keys, [&](const char* key) { return all.contains(key); });
  return count >= 2 && all.contains("num_layers") && all.contains("hidden_size") &&
         !all.contains("tensor_model_parallel_size");
}

Settings of_neox(const Json& yaml, const Json& more, const std::string& file) {
  const Json all = neox_keys(yaml);
  const Keys keys{all, file};
  Json flags = Json::object();
  std::vector<std::string> notes;
  take_neox_model(keys, flags, notes);
  const Json config = neox_zero(all);
  const Settings zero = of_deepspeed(config, file);
  const std::string dtype = zero.workload["operators"].value("dtype", "fp32");
  if (dtype == "bf16" || dtype == "fp16") flags[dtype] = true;
  flags.update(more);
  Settings settings = of_megatron(flags, file);
  settings.framework = "gpt-neox";
  settings.modules = false;
  settings.strategy = zero.strategy;
  settings.micro_batches = keys.size("gradient_accumulation_steps", 1);
  settings.global_batch = keys.size("train_batch_size", 0);
  settings.assumed.insert(settings.assumed.begin(), notes.begin(), notes.end());
  settings.assumed.insert(settings.assumed.end(), zero.assumed.begin(), zero.assumed.end());
  std::string left;
  for (const char* key :
       {"attention_config", "sparse_attention", "moe_num_experts", "moe_expert_parallel_size",
        "gpt_j_residual", "use_mup", "checkpoint_num_layers", "partition_activations",
        "synchronize_each_layer", "cpu_optimizer", "expansion_factor", "sliding_window_width"}) {
    if (!has_value(all, key) || all[key] == false || all[key] == 1) continue;
    left += (left.empty() ? "" : ", ") + std::string(key);
  }
  if (!left.empty()) {
    settings.assumed.push_back("nothing gained or lost by what is left out: " + left);
  }
  return settings;
}

}  // namespace syncline::job::frameworks
