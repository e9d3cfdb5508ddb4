// Source: NVIDIA/Megatron-LM, megatron/training/arguments.py, flags of 2021 to 2024;
// Megatron-Bridge.
#include "imports/frameworks/megatron_names.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "formats/dialect/framework_keys.h"

namespace syncline::job::frameworks {
namespace {

// Flags that the package's own list lacks: of launchers, Megatron-DeepSpeed, Megatron-Bridge and
// earlier versions. kOthers have no effect on a step, kOthersLeftOut change its time.
constexpr std::string_view kOthers =
    "DDP-impl abort-on-unmet-fused-kernel-constraints align-grad-reduce "
    "async-tensor-model-parallel-allreduce barrier-with-l1-time barrier-with-level-1-timing "
    "check-for-nan-in-loss-and-grad data-impl dataset ddp-impl distributed-world-size "
    "external-gpu-device-mapping generation-config hf-model-id kill-switch-path lazy-init "
    "legacy-tokenizer local-ranks-filter log-batch-size-to-tensorboard log-dir "
    "log-learning-rate-to-tensorboard log-loss-scale-to-tensorboard "
    "log-optimizer-states-to-tensorboard lr-decay-tokens lr-warmup-tokens manual-gc-eval "
    "master-addr master-port max-restarts mmap-bin-files mmap-warmup moe-router-padding "
    "monitor-interval muon-use-nesterov nnodes no-async-tensor-model-parallel-allreduce "
    "no-load-lr-state node-rank nproc-per-node num-gpus num-nodes parallel-output "
    "preserve-fp32-weights rdzv-backend rdzv-conf rdzv-endpoint rdzv-id redirects "
    "reset-progress role rope-scaling scatter-embedding-sequence-parallel "
    "seq-len-interpolation-factor should-pad-vocab skip-train-iteration-range standalone "
    "start-method sync-tp-duplicated-parameters tee tie-word-embeddings "
    "tiktoken-special-tokens tokenizer-name-or-path train-data-exact-num-epochs train-tokens "
    "transformer-layer-spec use-flash-attn-v2 use-gloo-process-groups "
    "use-tokenizer-model-from-checkpoint-args use-transformer-engine-full-layer-spec "
    "wandb-experiment-name wandb-logger";
constexpr std::string_view kOthersLeftOut =
    "checkpoint-in-cpu contigious-checkpointing deepspeed deepspeed-config "
    "disable-moe-token-dropping distribute-checkpointed-activations embed-layernorm "
    "moe-use-legacy-grouped-gemm no-pipeline-parallel no-scatter-gather-tensors-in-pipeline "
    "partition-activations pp-partition-method profile-backward synchronize-each-layer "
    "use-legacy-models zero-allgather-bucket-size zero-contigious-gradients "
    "zero-reduce-bucket-size zero-stage";

// A flag's usual values: any other value changes the step.
struct Usual {
  std::string_view name;
  std::array<std::string_view, 4> values;
};
constexpr Usual kUsual[]{{"attention-backend", {"auto", "flash", "fused", "AttnBackend.auto"}},
                         {"cuda-graph-impl", {"none", "", "", ""}},
                         {"distributed-backend", {"nccl", "", "", ""}},
                         {"exp-avg-dtype", {"fp32", "torch.float32", "", ""}},
                         {"exp-avg-sq-dtype", {"fp32", "torch.float32", "", ""}},
                         {"main-params-dtype", {"fp32", "torch.float32", "", ""}},
                         {"pipeline-model-parallel-comm-backend", {"nccl", "", "", ""}},
                         {"recompute-modules", {"core_attn", "[\"core_attn\"]", "", ""}},
                         {"softmax-type", {"vanilla", "", "", ""}},
                         {"transformer-impl", {"transformer_engine", "", "", ""}}};

// A flag that makes it another job: another model, or other work of the ranks.
struct Refused {
  std::string_view name;
  std::string_view why;
  std::string_view fine = "";  // a value with which it is not
};
constexpr std::string_view kFsdp = "FSDP inside Megatron is not modelled yet";
constexpr std::string_view kEncoder = "an encoder next to the decoder is not modelled yet";
constexpr std::string_view kMamba = "layers of Mamba's kind are not modelled yet";
constexpr Refused kRefused[]{
    {"use-torch-fsdp2", kFsdp},
    {"use-megatron-fsdp", kFsdp},
    {"use-custom-fsdp", kFsdp},
    {"enable-full-sharding-in-hsdp", kFsdp},
    {"data-parallel-sharding-strategy", kFsdp, "no_shard"},
    {"hierarchical-context-parallel-sizes", "two-level context parallelism is not modelled yet"},
    {"moe-extended-tp",
     "tensor parallelism of experts across their parallel ranks too: give "
     "--expert-tensor-parallel-size and --expert-model-parallel-size"},
    {"yaml-cfg", "names a YAML, which says all that flags say: give that file"},
    {"batch-size", "is the old name of --micro-batch-size: write that"},
    {"encoder-num-layers", kEncoder},
    {"decoder-num-layers", kEncoder},
    {"decoder-seq-length", kEncoder},
    {"encoder-tensor-model-parallel-size", kEncoder},
    {"encoder-pipeline-model-parallel-size", kEncoder},
    {"pipeline-model-parallel-split-rank", kEncoder},
    {"standalone-embedding-stage", "a stage of the embedding alone is not modelled yet"},
    {"heterogeneous-layers-config-path", "layers that differ are not modelled yet"},
    {"heterogeneous-layers-config-encoded-json", "layers that differ are not modelled yet"},
    {"hybrid-attention-ratio", kMamba},
    {"hybrid-mlp-ratio", kMamba},
    {"hybrid-override-pattern", kMamba},
    {"hybrid-layer-pattern", kMamba},
    {"is-hybrid-model", kMamba},
    {"retro-add-retriever", "a retriever (Retro) is not modelled yet"},
    {"perform-rl-step", "reinforcement learning is not modelled yet"},
    {"vision-pretraining", "models of images are not read from Megatron's flags"}};

using Names = std::set<std::string, std::less<>>;

Names names_in(std::string_view text) {
  std::istringstream all{std::string(text)};
  return {std::istream_iterator<std::string>(all), {}};
}

std::string text_of_value(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

bool megatron_known(std::string_view name) {
  static const Names others = names_in(kOthers);
  static const Names left_out = names_in(kOthersLeftOut);
  const bool usual = std::ranges::find(kUsual, name, &Usual::name) != std::end(kUsual);
  const bool refused = std::ranges::find(kRefused, name, &Refused::name) != std::end(kRefused);
  return usual || refused || others.contains(name) || left_out.contains(name) ||
         dialect::key_list("megatron").keys.contains(name);
}

bool megatron_left_out(std::string_view name, const Json& value) {
  static const Names left_out = names_in(kOthersLeftOut);
  if (std::ranges::find(kRefused, name, &Refused::name) != std::end(kRefused)) return false;
  const auto usual = std::ranges::find(kUsual, name, &Usual::name);
  if (usual != std::end(kUsual)) {
    const std::string text = text_of_value(value);
    return !text.empty() && std::ranges::find(usual->values, text) == usual->values.end();
  }
  const auto& keys = dialect::key_list("megatron").keys;
  const auto own = keys.find(name);
  if (own == keys.end()) return left_out.contains(name);
  const bool evaluated = own->second.mark == dialect::FrameworkKey::Mark::kModelled;
  return evaluated || own->second.is_ignored(value);
}

std::string megatron_refusal(std::string_view name, const Json& value) {
  const auto row = std::ranges::find(kRefused, name, &Refused::name);
  if (row == std::end(kRefused)) return "";
  const std::string text = text_of_value(value);
  if (!row->fine.empty() && text == row->fine) return "";
  return std::string(row->why);
}

std::string megatron_name_today(const std::string& name) {
  static const std::map<std::string, std::string> names{
      {"model-parallel-size", "tensor-model-parallel-size"},
      {"encoder-seq-length", "seq-length"},
      {"rotary-position-embeddings", "use-rotary-position-embeddings"},
      {"pad-vocab-size-to", "padded-vocab-size"},
      {"fp8-param", "fp8-param-gather"},
      {"ddp-reduce-scatter-with-fp32-accumulation", "reduce-scatter-with-fp32-accumulation"},
      {"nccl-ub", "use-nccl-ub"},
      {"microbatch-group-size-per-vp-stage", "microbatch-group-size-per-virtual-pipeline-stage"}};
  const auto today = names.find(name);
  return today == names.end() ? name : today->second;
}

}  // namespace syncline::job::frameworks
