// YAML of Megatron and of Megatron-Bridge.
// Source: examples/gpt3/gpt_config.yaml of NVIDIA/Megatron-LM d98e8a64, megatron-bridge 0.3.1's
// training/config.py and training/mixed_precision.py.
#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "core/base/error.h"
#include "formats/text/limits.h"
#include "imports/frameworks/settings.h"

namespace syncline::job::frameworks {
namespace {

constexpr const char* kChunks = "num-virtual-stages-per-pipeline-rank";

std::string with_dashes_inside(std::string name) {
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  std::ranges::replace(name, '_', '-');
  return name;
}

// Sets the flag that corresponds to one of the configuration's names.
void set_field(std::string name, const Json& value, Json& flags) {
  name = with_dashes_inside(std::move(name));
  if (value.is_null() || name.empty()) return;
  if (flags.size() >= kMaxKeys) throw InputError("more than 5000 settings");
  const auto as = [&](const char* flag, const Json& given) { flags[flag] = given; };
  if (name == "num-moe-experts") return as("num-experts", value);
  if (name == "virtual-pipeline-model-parallel-size") return as(kChunks, value);
  if (name == "gated-linear-unit" && value == true) return as("swiglu", true);
  if (name == "activation-func" && value == "swiglu") return as("swiglu", true);
  if (name == "add-bias-linear") return as("disable-bias-linear", value == false);
  if (name == "overlap-p2p-comm") return as("no-overlap-p2p-communication", value == false);
  if (name == "num-layers-in-first-pipeline-stage") {
    return as("decoder-first-pipeline-num-layers", value);
  }
  if (name == "num-layers-in-last-pipeline-stage") {
    return as("decoder-last-pipeline-num-layers", value);
  }
  if (name == "share-embeddings-and-output-weights") {
    return as("untie-embeddings-and-output-weights", value == false);
  }
  // The configuration's groups say by themselves that queries are grouped.
  if (name == "num-query-groups" && !flags.contains("group-query-attention")) {
    flags["group-query-attention"] = true;
  }
  // False is only the default of these names: a flag that another name has set stays.
  if (name == "swiglu" && value == false && flags.contains(name)) return;
  if (name == "group-query-attention" && value == false && flags.contains(name)) return;
  flags[name] = value;
}

// Sets flags from a section's numbers, words and lists. `as`: its own names and their flags.
void take_section(const Json& section,
                  std::initializer_list<std::pair<const char*, const char*>> as, Json& flags) {
  for (const auto& [name, value] : section.items()) {
    if (value.is_null() || value.is_object() || name.starts_with('_')) continue;
    const auto own =
        std::ranges::find(as, name, [](const auto& pair) { return std::string(pair.first); });
    if (own == as.end()) {
      set_field(name, value, flags);
    } else if (*own->second != 0) {
      flags[own->second] = value;
    }
  }
}

void set_reduction(const Json& in_fp32, Json& flags) {
  flags.erase("accumulate-allreduce-grads-in-fp32");
  flags.erase("grad-reduce-in-bf16");
  flags[in_fp32 == true ? "accumulate-allreduce-grads-in-fp32" : "grad-reduce-in-bf16"] = true;
}

// Sets the formats by mixed_precision, which wins over model, optimizer and ddp.
void take_mixed_precision(const Json& given, const std::string& file, Json& flags) {
  if (given.is_string()) {
    const std::string name = given.get<std::string>();
    const bool bf16 = name.starts_with("bf16"), fp16 = name.starts_with("fp16");
    if (!bf16 && !fp16) {
      throw InputError(file + ": mixed_precision: found '" + name +
                       "', expected bf16_... or fp16_...");
    }
    flags["bf16"] = bf16;
    flags["fp16"] = fp16;
    set_reduction(bf16, flags);
    if (name.find("fp8") == name.npos) return;
    flags["fp8-format"] = "hybrid";
    const bool delayed = name.find("delayed") != name.npos;
    const bool blocks = name.find("subchannel") != name.npos;
    const bool mxfp8 = name.find("mxfp8") != name.npos;
    flags["fp8-recipe"] = delayed  ? "delayed"
                          : blocks ? "blockwise"
                          : mxfp8  ? "mxfp8"
                                   : "tensorwise";
    return;
  }
  if (!given.is_object()) return;
  for (const auto& [name, value] : given.items()) {
    const bool own = name == "bf16" || name == "fp16" || name == "fp8" || name == "fp8_recipe" ||
                     name == "fp8_param" || name == "fp8_param_gather" ||
                     name == "first_last_layers_bf16";
    if (own && !value.is_null()) set_field(name, value, flags);
  }
  if (given.contains("grad_reduce_in_fp32")) set_reduction(given["grad_reduce_in_fp32"], flags);
}

void take_model(const Json& model, Json& flags) {
  // Defaults of the configuration that differ from those of the flags.
  if (!model.contains("share_embeddings_and_output_weights")) {
    flags["untie-embeddings-and-output-weights"] = false;
  }
  const Json& hidden = model.value("hidden_size", Json());
  if (hidden.is_number_integer() && hidden > 0 && hidden < (1 << 24)) {
    flags["ffn-hidden-size"] = 4 * hidden.get<std::int64_t>();
  }
  take_section(model, {{"recompute_modules", "recompute-modules"}, {"fp8_param", ""}}, flags);
  if (model.value("should_pad_vocab", Json(true)) == false && flags.contains("vocab-size")) {
    flags["padded-vocab-size"] = flags["vocab-size"];
  }
  // The number of stages is the default of this flag.
  const char* group = "microbatch-group-size-per-vp-stage";
  const Json stages = flags.value("pipeline-model-parallel-size", Json(1));
  if (flags.contains(group) && flags[group] == stages) flags.erase(group);
}

// Names the sections that this file does not know.
void say_unknown_sections(const Json& yaml, std::vector<std::string>& notes) {
  static const std::set<std::string, std::less<>> known{"model",
                                                        "ddp",
                                                        "dist",
                                                        "optimizer",
                                                        "comm_overlap",
                                                        "train",
                                                        "tokenizer",
                                                        "rng",
                                                        "scheduler",
                                                        "dataset",
                                                        "mixed_precision",
                                                        "logger",
                                                        "checkpoint",
                                                        "ft",
                                                        "straggler",
                                                        "profiling",
                                                        "nvrx_straggler",
                                                        "tensor_inspect",
                                                        "peft",
                                                        "validation",
                                                        "rerun_state_machine",
                                                        "inprocess_restart",
                                                        "optimizer_config_override_provider",
                                                        "_target_",
                                                        "tensor_inspect_config"};
  std::string others;
  for (const auto& [name, value] : yaml.items()) {
    if (!known.contains(name) && !value.is_null()) others += (others.empty() ? "" : ", ") + name;
  }
  if (!others.empty()) notes.push_back("nothing of what is not known here: " + others);
}

}  // namespace

const Json& section_of(const Json& all, const char* key) {
  static const Json none = Json::object();
  const auto found = all.find(key);
  return found != all.end() && found->is_object() ? *found : none;
}

bool has_any(const Json& json, std::initializer_list<const char*> keys) {
  return json.is_object() &&
         std::ranges::any_of(keys, [&](const char* key) { return json.contains(key); });
}

bool any_under(const Json& json, std::string_view key, std::string_view begin) {
  if (json.is_array()) {
    return std::ranges::any_of(json, [&](const Json& one) { return any_under(one, key, begin); });
  }
  if (!json.is_object()) return false;
  for (const auto& [name, value] : json.items()) {
    if (name == key && value.is_string() &&
        value.get_ref<const std::string&>().starts_with(begin)) {
      return true;
    }
    if (any_under(value, key, begin)) return true;
  }
  return false;
}

bool is_megatron_yaml(const Json& yaml) {
  if (has_any(yaml, {"language_model", "model_parallel"})) return true;
  int own = 0;
  for (const auto& [name, value] : yaml.items()) {
    // Sections of flags as they are: MODEL_ARGS: {--num-layers: 12}.
    const bool flags = value.is_object() && !value.empty() && value.begin().key().starts_with("--");
    static const std::set<std::string, std::less<>> names{"num-layers",
                                                          "hidden-size",
                                                          "num-attention-heads",
                                                          "seq-length",
                                                          "micro-batch-size",
                                                          "global-batch-size",
                                                          "tensor-model-parallel-size",
                                                          "pipeline-model-parallel-size",
                                                          "use-distributed-optimizer",
                                                          "overlap-grad-reduce",
                                                          "overlap-param-gather",
                                                          "bf16",
                                                          "fp16",
                                                          "ffn-hidden-size",
                                                          "sequence-parallel",
                                                          "context-parallel-size"};
    own += flags ? 4 : names.contains(with_dashes_inside(name)) ? 1 : 0;
  }
  return own >= 4;
}

Json flags_of_yaml(const Json& yaml) {
  Json flags = Json::object();
  const auto walk = [&](const auto& self, const Json& map) -> void {
    for (const auto& [name, value] : map.items()) {
      if (value.is_object()) {
        self(self, value);
        continue;
      }
      const std::string flag = with_dashes_inside(name);
      if (flags.contains(flag) && !value.is_null() && flags[flag] != value && value != false &&
          flag != "swiglu" && flag != "group-query-attention") {
        throw InputError(name + ": stands twice, as " + flags[flag].dump() + " and as " +
                         value.dump());
      }
      set_field(name, value, flags);
    }
  };
  if (yaml.is_object()) walk(walk, yaml);
  return flags;
}

bool is_bridge_yaml(const Json& yaml) {
  if (!yaml.is_object()) return false;
  const Json& model = section_of(yaml, "model");
  const bool sizes = has_any(model, {"num_layers", "hidden_size", "tensor_model_parallel_size"});
  if (any_under(yaml, "_target_", "megatron.bridge")) return sizes || yaml.contains("ddp");
  return sizes && has_any(yaml, {"ddp"}) && !yaml.contains("trainer");
}

Json flags_of_bridge(const Json& yaml, const std::string& file, std::vector<std::string>& said) {
  Json flags = Json::object();
  if (const auto peft = yaml.find("peft"); peft != yaml.end() && !peft->is_null()) {
    throw InputError(file +
                     ": peft: training of adapters alone: give the model's parameters by "
                     "--tensors in place of these settings");
  }
  if (!section_of(yaml, "recipe").empty()) {
    throw InputError(file +
                     ": recipe: changes of a recipe, whose other settings are not in the file: "
                     "give the run_config.yaml next to the checkpoints of such a run");
  }
  const Json& tokenizer = section_of(yaml, "tokenizer");
  const Json& model = section_of(yaml, "model");
  if (model.value("vocab_size", Json()).is_null()) {
    for (const char* key : {"tokenizer_type", "vocab_size"}) {
      if (tokenizer.contains(key)) set_field(key, tokenizer[key], flags);
    }
  }
  take_model(model, flags);
  // Both sections say whether there is one; either is enough.
  const Json& optimizer = section_of(yaml, "optimizer");
  const Json& ddp = section_of(yaml, "ddp");
  const bool shards = optimizer.value("use_distributed_optimizer", Json()) == true ||
                      ddp.value("use_distributed_optimizer", Json()) == true;
  for (const char* key : {"optimizer", "optimizer_cpu_offload", "use_precision_aware_optimizer",
                          "overlap_param_gather_with_optimizer_step", "main_grads_dtype",
                          "exp_avg_dtype", "exp_avg_sq_dtype"}) {
    if (optimizer.contains(key) && !optimizer[key].is_object()) {
      set_field(key, optimizer[key], flags);
    }
  }
  take_section(ddp,
               {{"bucket_size", "ddp-bucket-size"},
                {"average_in_collective", "ddp-average-in-collective"},
                {"pad_buckets_for_high_nccl_busbw", "ddp-pad-buckets-for-high-nccl-busbw"},
                {"grad_reduce_in_fp32", ""}},
               flags);
  flags["use-distributed-optimizer"] = shards;
  set_reduction(ddp.value("grad_reduce_in_fp32", Json(false)), flags);
  take_section(section_of(yaml, "dist"), {}, flags);
  take_section(section_of(yaml, "comm_overlap"),
               {{"overlap_p2p_comm", "overlap-p2p-comm-of-comm-overlap"},
                {"bucket_size", "ddp-bucket-size"},
                {"data_parallel_size", ""},
                {"tp_comm_overlap_cfg", ""}},
               flags);
  if (flags.contains("overlap-p2p-comm-of-comm-overlap")) {
    set_field("overlap_p2p_comm", Json(flags["overlap-p2p-comm-of-comm-overlap"]), flags);
    flags.erase("overlap-p2p-comm-of-comm-overlap");
  }
  const Json& train = section_of(yaml, "train");
  for (const char* key : {"micro_batch_size", "global_batch_size", "rampup_batch_size"}) {
    if (train.contains(key)) set_field(key, train[key], flags);
  }
  if (const auto mixed = yaml.find("mixed_precision"); mixed != yaml.end()) {
    take_mixed_precision(*mixed, file, flags);
  } else if (!flags.contains("bf16") && !flags.contains("fp16")) {
    take_mixed_precision("bf16_mixed", file, flags);
    said.emplace_back("mixed_precision bf16_mixed, as Megatron-Bridge's recipes have it");
  }
  // Without a bf16 gradient there is nothing to narrow.
  if (flags.value("bf16", Json(false)) != true) flags.erase("grad-reduce-in-bf16");
  say_unknown_sections(yaml, said);
  return flags;
}

}  // namespace syncline::job::frameworks
