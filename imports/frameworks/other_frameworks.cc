// Marks by which settings and launches of unsupported frameworks are recognised.
#include <algorithm>
#include <string_view>

#include "imports/frameworks/settings.h"

namespace syncline::job::frameworks {
namespace {

bool has_all(const Json& json, std::initializer_list<const char*> keys) {
  return json.is_object() &&
         std::ranges::all_of(keys, [&](const char* key) { return json.contains(key); });
}

struct OtherFramework {
  const char* name;
  const char* instead;
  bool (*marks)(const Json&);
};

// The first framework in this order with a mark gives the name.
constexpr OtherFramework kOtherFrameworks[] = {
    {"Kubernetes", "give the command of its container",
     [](const Json& json) {
       return has_all(json, {"apiVersion", "kind"});
     }},
    {"NeMo Automodel", "it trains by FSDP2: syncline init MODEL --fsdp --tp N --batch N",
     [](const Json& json) { return any_under(json, "_target_", "nemo_automodel"); }},
    {"NeMo",
     "give the same job by Megatron's flags (--num-layers ... --tensor-model-parallel-size ...), "
     "or Megatron-Bridge's run_config.yaml",
     [](const Json& json) {
       return json.contains("exp_manager") || any_under(json, "_target_", "nemo");
     }},
    {"gpt-neox",
     "name the model, its layout by --tp and --pp, and its zero_optimization as a DeepSpeed JSON "
     "(syncline init config.json ds_config.json --tp 2 --pp 4 ...)",
     [](const Json& json) {
       return has_any(json, {"pipe-parallel-size", "pipe_parallel_size", "model-parallel-size",
                             "model_parallel_size", "gpt_j_residual", "gpt-j-residual",
                             "output_layer_parallelism"});
     }},
    {"slime",
     "its rollouts are not modelled: give Megatron's flags of the trained model, with --seq-length",
     [](const Json& json) {
       return has_any(json, {"rollout_batch_size", "rollout_num_gpus", "advantage_estimator"});
     }},
    {"verl", "give the trainer's own settings, DeepSpeed's JSON or Megatron's flags",
     [](const Json& json) { return json.contains("actor_rollout_ref"); }},
    {"NeMo RL", "give Megatron's flags of the policy that it trains",
     [](const Json& json) {
       return json.contains("policy") && has_any(json, {"grpo", "dpo", "sft", "loss_fn"});
     }},
    {"Lightning",
     "write the strategy's arguments in a scenario with \"dialect\": \"pytorch\" or \"fsdp\"",
     [](const Json& json) {
       return has_any(section_of(json, "trainer"), {"accelerator", "strategy"});
     }},
    {"MosaicML Composer, or OLMo,", "write the strategy in a scenario with \"dialect\": \"fsdp\"",
     [](const Json& json) {
       return has_any(json, {"device_train_microbatch_size", "global_train_batch_size",
                             "device_train_batch_size"});
     }},
    {"nanotron", "name the model and give --tp, --pp and --batch",
     [](const Json& json) {
       return has_any(section_of(json, "parallelism"), {"dp", "tp", "pp"}) &&
              json.contains("tokens");
     }},
    {"MaxText", "of JAX's frameworks none is modelled yet",
     [](const Json& json) {
       return has_any(json, {"base_emb_dim", "ici_fsdp_parallelism", "ici_tensor_parallelism"});
     }},
    {"PaddleFleetX", "write the strategy in a scenario with \"dialect\": \"paddle\"",
     [](const Json& json) {
       return has_any(section_of(json, "Distributed"), {"dp_degree", "mp_degree", "pp_degree"});
     }},
    {"Primus", "give Megatron's flags, or its own YAML", [](const Json& json) {
       return has_all(json, {"modules", "work_group"});
     }}};

std::string refusal_of(const OtherFramework& one) {
  return "settings of " + std::string(one.name) +
         ", by what stands in it, which are not read: " + one.instead;
}

}  // namespace

std::string other_framework(const Json& settings) {
  if (!settings.is_object()) return "";
  for (const OtherFramework& one : kOtherFrameworks) {
    if (one.marks(settings)) return refusal_of(one);
  }
  return "";
}

std::string other_trainer(const Json& arguments) {
  for (const OtherFramework& one : kOtherFrameworks) {
    const std::string_view name = one.name;
    if (name == "slime" && one.marks(arguments)) return refusal_of(one);
  }
  return "";
}

std::string other_program(const TrainingCommand& training) {
  const Json& flags = training.flags;
  if (training.script.find("openrlhf") != std::string::npos &&
      training.script.find("train_sft") == std::string::npos) {
    return "a launch of OpenRLHF's " + training.script.substr(training.script.rfind('.') + 1) +
           ", which also runs other models or rollouts: of OpenRLHF train_sft is modelled; "
           "`syncline record` observes the job";
  }
  const Json config = flags.value("config", Json());
  if (training.program == "tune" && config.is_string()) {
    return "a launch of torchtune's with " + config.get<std::string>() +
           ", a configuration in its package: give init that YAML (tune cp " +
           config.get<std::string>() + " my.yaml; syncline init my.yaml --node ...)";
  }
  if (training.script.starts_with("finetune_adapter") || training.script == "evaluate") {
    return "a launch of LitGPT's " + training.script +
           ", which is not modelled: of LitGPT pretrain, finetune_full and finetune_lora are";
  }
  if (training.script.starts_with("verl.")) {
    return "a launch of verl's " + training.script +
           ", which has settings in its package: name the model and the samples (syncline init "
           "MODEL "
           "--fsdp --batch N)";
  }
  if (has_any(flags, {"train.data-parallel-mode", "train.ulysses-parallel-size"})) {
    return "a launch of VeOmni's, whose YAML and flags are not read: it trains by FSDP2 or DDP "
           "(syncline init MODEL --fsdp --batch N --sequence N)";
  }
  if (training.script.starts_with("megatron_") && !training.overrides.empty()) {
    return "a launch of NeMo's " + training.script +
           ", which changes keys of a YAML that is not here: give init that YAML, its values "
           "changed (syncline init conf/NAME.yaml --node ...)";
  }
  if (has_any(flags, {"trainer.devices", "trainer.strategy", "trainer.accelerator"})) {
    return "a launch of Lightning's: write the strategy's arguments in a scenario with "
           "\"dialect\": "
           "\"pytorch\" or \"fsdp\"";
  }
  return "";
}

}  // namespace syncline::job::frameworks
