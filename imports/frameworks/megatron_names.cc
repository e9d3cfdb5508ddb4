// Source: NVIDIA/Megatron-LM d98e8a64, megatron/training/arguments.py, and older flags of 2021 to
// 2024; megatron-core 0.12.1's configuration classes.
#include "imports/frameworks/megatron_names.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

namespace syncline::job::frameworks {
namespace {

constexpr std::string_view kWithoutEffect =
    "abort-on-unmet-fused-kernel-constraints kill-switch-path sync-tp-duplicated-parameters "
    "DDP-impl activation-func-clamp-value adam-beta1 adam-beta2 adam-eps adlr-autoresume "
    "adlr-autoresume-interval allow-ambiguous-pad-tokens app-tag-run-name app-tag-run-version "
    "apply-layernorm-1p apply-query-key-layer-scaling apply-residual-connection-post-layernorm "
    "async-save async-strategy attention-dropout attention-softmax-in-fp32 "
    "auto-detect-ckpt-format bert-load calc-ft-timeouts calculate-per-token-loss "
    "check-for-large-grads check-for-nan-in-loss-and-grad check-for-spiky-loss "
    "check-weight-hash-across-dp-replicas-interval ckpt-assume-constant-structure "
    "ckpt-convert-format ckpt-convert-save ckpt-convert-update-legacy-dist-opt-format "
    "ckpt-format ckpt-fully-parallel-load ckpt-fully-parallel-save ckpt-step clip-grad "
    "config-logger-dir cross-entropy-fusion-impl cross-entropy-loss-fusion data-args-path "
    "data-cache-path data-impl data-parallel-random-init data-path dataloader-type dataset "
    "ddp-average-in-collective ddp-impl decoupled-lr decoupled-min-lr "
    "decrease-batch-size-if-needed disable-bf16-reduced-precision-matmul "
    "disable-gloo-process-groups disable-msc disable-straggler-on-startup dist-ckpt-format "
    "dist-ckpt-optim-fully-reshardable dist-ckpt-save-pre-mcore-014 dist-ckpt-strictness "
    "distrib-optim-fully-reshardable-mem-efficient distributed-timeout-minutes "
    "distributed-timeout-seconds-after-init distributed-world-size "
    "dump-param-to-param-group-map embedding-init-method-std enable-experimental "
    "enable-ft-package enable-msc end-weight-decay eod-mask-loss error-injection-rate "
    "error-injection-type eval-interval eval-iters exit-duration-in-mins exit-interval "
    "exit-on-missing-checkpoint exit-signal exit-signal-handler "
    "exit-signal-handler-for-dataloader finetune fp16-lm-cross-entropy fp4-quantizer-factory "
    "fp4-recipe fp8-amax-compute-algo fp8-amax-history-len fp8-interval fp8-margin "
    "full-validation glu-linear-offset hidden-dropout hysteresis ict-load inference-rng-tracker "
    "init-method-std init-method-xavier-uniform init-model-with-meta-device initial-loss-scale "
    "inprocess-active-world-size inprocess-barrier-timeout inprocess-completion-timeout "
    "inprocess-empty-cuda-cache inprocess-granularity inprocess-hard-timeout "
    "inprocess-heartbeat-interval inprocess-heartbeat-timeout inprocess-last-call-wait "
    "inprocess-max-iterations inprocess-monitor-process-interval "
    "inprocess-monitor-thread-interval inprocess-progress-watchdog-interval inprocess-restart "
    "inprocess-soft-timeout inprocess-termination-grace-time iterations-to-skip lazy-mpu-init "
    "legacy-tokenizer load load-main-params-from-ckpt local-rank local-ranks-filter "
    "log-batch-size-to-tensorboard log-dir log-energy log-interval "
    "log-learning-rate-to-tensorboard log-loss-scale-to-tensorboard log-memory-interval "
    "log-memory-to-tensorboard log-num-zeros-in-grad log-optimizer-states-to-tensorboard "
    "log-params-norm log-progress log-straggler log-throughput log-timers-to-tensorboard "
    "log-validation-ppl-to-tensorboard log-world-size-to-tensorboard logging-level loss-scale "
    "loss-scale-window lr lr-decay-iters lr-decay-samples lr-decay-style lr-decay-tokens "
    "lr-warmup-fraction lr-warmup-init lr-warmup-iters lr-warmup-samples lr-warmup-tokens "
    "lr-wsd-decay-iters lr-wsd-decay-samples lr-wsd-decay-style manual-gc manual-gc-eval "
    "manual-gc-interval mask-prob master-addr master-port max-restarts memory-snapshot-path "
    "merge-file mid-level-dataset-surplus min-loss-scale min-lr mmap-bin-files mmap-warmup "
    "mock-data moe-apply-probs-on-input moe-aux-loss-coeff moe-grouped-gemm "
    "moe-input-jitter-eps moe-per-layer-logging moe-permute-fusion moe-router-bias-update-rate "
    "moe-router-dtype moe-router-enable-expert-bias moe-router-force-load-balancing "
    "moe-router-fusion moe-router-group-topk moe-router-load-balancing-type "
    "moe-router-num-groups moe-router-padding-for-fp8 moe-router-padding-for-quantization "
    "moe-router-pre-softmax moe-router-score-function moe-router-topk-limited-devices "
    "moe-router-topk-scaling-factor moe-token-dispatcher-type moe-token-drop-policy "
    "moe-token-dropping moe-upcycling-granularity moe-use-upcycling moe-z-loss-coeff "
    "monitor-interval mrope-section mscale mscale-all-dim mtp-loss-scaling-factor "
    "multiple-validation-sets muon-extra-scale-factor muon-fp32-matmul-prec muon-momentum "
    "muon-no-split-qkv muon-num-ns-steps muon-scale-mode muon-tp-mode muon-use-nesterov nnodes "
    "no-async-tensor-model-parallel-allreduce no-barrier-with-level-1-timing "
    "no-check-for-nan-in-loss-and-grad no-ckpt-fully-parallel-save "
    "no-clone-scatter-output-in-embedding no-create-attention-mask-in-dataloader "
    "no-data-sharding no-gradient-reduce-div-fusion no-initialization no-load-lr-state "
    "no-load-optim no-load-rng no-log-loss-scale-to-tensorboard no-manual-gc-eval "
    "no-mmap-bin-files no-one-logger no-pin-cpu-grads no-pin-cpu-params no-rope-freq "
    "no-save-optim no-save-rng no-strict-fsdp-dtensor-load "
    "no-use-tokenizer-model-from-checkpoint-args node-rank non-persistent-ckpt-type "
    "non-persistent-global-ckpt-dir non-persistent-local-ckpt-algo "
    "non-persistent-local-ckpt-dir non-persistent-save-interval norm-epsilon nproc-per-node "
    "num-dataset-builder-threads num-gpus num-nodes num-workers object-storage-cache-path "
    "one-logger-async one-logger-project one-logger-run-name onnx-safe openai-gelu "
    "override-opt-param-scheduler per-split-data-args-path persistent-save-interval "
    "pretrained-checkpoint profile profile-ranks profile-step-end profile-step-start "
    "rdzv-backend rdzv-conf rdzv-endpoint rdzv-id record-memory-history redirects replication "
    "replication-factor replication-jump rerun-mode reset-attention-mask reset-position-ids "
    "reset-progress result-rejected-tracker-filename role rope-scaling-factor rope-type "
    "rotary-base rotary-interleaved rotary-percent rotary-scaling-factor "
    "rotary-seq-len-interpolation-factor run-workload-inspector-server sample-rate save "
    "save-interval save-retain-interval seed sgd-momentum short-seq-prob skip-train "
    "skip-train-iteration-range split standalone start-method start-weight-decay "
    "straggler-ctrlr-port straggler-minmax-count te-rng-tracker tee tensorboard-dir "
    "tensorboard-log-interval tensorboard-queue-size test-data-path test-mode "
    "tiktoken-num-special-tokens tiktoken-pattern tiktoken-special-tokens timing-log-level "
    "timing-log-option titles-data-path tokenizer-metadata tokenizer-model "
    "tokenizer-name-or-path tp-comm-bootstrap-backend tp-comm-overlap-cfg "
    "train-data-exact-num-epochs train-data-path train-iters train-samples train-sync-interval "
    "train-tokens trust-remote-code use-checkpoint-args use-checkpoint-opt-param-scheduler "
    "use-cpu-initialization use-dist-ckpt use-flash-attn use-flash-attn-v2 use-mcore-models "
    "use-mp-args-from-checkpoint-args use-persistent-ckpt-worker use-pytorch-profiler "
    "use-rope-scaling use-rotary-position-embeddings use-tokenizer-model-from-checkpoint-args "
    "valid-data-path vocab-extra-ids vocab-file wandb-entity wandb-exp-name "
    "wandb-experiment-name wandb-logger wandb-project wandb-save-dir warmup weight-decay "
    "weight-decay-incr-style";

// The configuration's own names, of a YAML, that are no flags: fusions and hooks as they come.
constexpr std::string_view kFieldsWithoutEffect =
    "activation-func-fp8-input-store align-grad-reduce align-param-gather apply-rope-fusion "
    "async-tensor-model-parallel-allreduce attention-backend autocast-dtype "
    "barrier-with-l1-time barrier-with-level-1-timing batch-p2p-comm batch-p2p-sync beta-fast "
    "beta-slow bias-activation-fusion bias-dropout-fusion check-for-nan-in-grad "
    "clone-scatter-output-in-embedding cpu-offloading-activations cpu-offloading-weights "
    "cuda-graph-retain-backward-graph cuda-graph-scope cuda-graph-use-single-mempool "
    "cuda-graph-warmup-steps "
    "deallocate-pipeline-outputs disable-parameter-transpose-cache distributed-backend "
    "embedding-init-method enable-autocast exp-avg-dtype exp-avg-sq-dtype "
    "external-gpu-device-mapping finalize-model-grads-func fp8-wgrad generation-config "
    "grad-scale-func grad-sync-func gradient-accumulation-fusion gradient-reduce-div-fusion "
    "hf-model-id init-method layernorm-epsilon layernorm-zero-centered-gamma lazy-init "
    "main-grads-dtype main-params-dtype mamba-head-dim mamba-num-groups mamba-state-dim "
    "masked-softmax-fusion memory-efficient-layer-norm moe-deepep-num-sms moe-router-padding "
    "no-sync-func num-layers-at-end-in-bf16 num-layers-at-start-in-bf16 "
    "optimizer-offload-fraction original-max-position-embeddings output-layer-init-method "
    "parallel-output param-sync-func params-dtype perform-initialization persist-layer-norm "
    "pin-cpu-grads pin-cpu-params pipeline-dtype preserve-fp32-weights rope-scaling "
    "scatter-embedding-sequence-parallel seq-len-interpolation-factor should-pad-vocab "
    "softmax-scale tie-word-embeddings timers tp-comm-bulk-dgrad tp-comm-bulk-wgrad "
    "tp-comm-overlap-ag tp-comm-overlap-rs tp-comm-split-ag tp-comm-split-rs tp-only-amax-red "
    "transformer-layer-spec use-gloo-process-groups use-te-rng-tracker "
    "use-transformer-engine-full-layer-spec use-transformer-engine-op-fuser "
    "variable-seq-lengths wgrad-deferral-limit";

// Given at all, they change a step's time: other kernels, other messages, other memory.
constexpr std::string_view kLeftOut =
    "checkpoint-in-cpu embed-layernorm cpu-offloading cpu-offloading-num-layers "
    "contigious-checkpointing deepspeed deepspeed-config defer-embedding-wgrad-compute "
    "delay-wgrad-compute deterministic-mode disable-moe-token-dropping "
    "disable-symmetric-registration disable-tp-comm-bulk-dgrad disable-tp-comm-bulk-wgrad "
    "disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs disable-tp-comm-split-ag "
    "disable-tp-comm-split-rs distribute-saved-activations distribute-checkpointed-activations "
    "empty-unused-memory-level enable-cuda-graph external-cuda-graph first-last-layers-bf16 "
    "fp32-residual-connection fp4-param-gather fp8-dot-product-attention "
    "fp8-multi-head-attention fsdp-double-buffer high-priority-stream-groups "
    "keep-fp8-transpose-cache "
    "microbatch-group-size-per-virtual-pipeline-stage moe-enable-deepep "
    "moe-expert-capacity-factor moe-layer-recompute moe-pad-expert-input-to-capacity "
    "moe-shared-expert-overlap moe-use-legacy-grouped-gemm mtp-num-layers "
    "nccl-communicator-config-path no-align-grad-reduce no-align-param-gather "
    "no-bias-dropout-fusion no-bias-gelu-fusion no-bias-swiglu-fusion no-fp8-wgrad "
    "no-gradient-accumulation-fusion no-masked-softmax-fusion no-persist-layer-norm "
    "no-pipeline-parallel no-position-embedding no-rope-fusion "
    "no-scatter-gather-tensors-in-pipeline "
    "optimizer-cpu-offload overlap-cpu-optimizer-d2h-h2d "
    "overlap-p2p-communication-warmup-flush overlap-p2p-comm-warmup-flush "
    "overlap-param-gather-with-optimizer-step partition-activations "
    "pipeline-model-parallel-comm-backend pp-partition-method profile-backward qk-l2-norm "
    "rampup-batch-size reuse-grad-buf-for-mxfp8-param-ag sharp-enabled-group "
    "spec suggested-communication-unit-size symmetric-ar-type synchronize-each-layer "
    "tp-comm-overlap-rs-dgrad tp-comm-overlap-disable-fc1 tp-comm-overlap-disable-qkv "
    "tp-comm-atomic-ag tp-comm-atomic-rs use-fused-weighted-squared-relu use-legacy-models "
    "use-precision-aware-optimizer use-ring-exchange-p2p use-sharp use-te-activation-func "
    "use-torch-optimizer-for-cpu-offload window-attn-skip-freq window-size "
    "zero-stage zero-reduce-bucket-size zero-allgather-bucket-size zero-contigious-gradients";

// What other values than these change.
struct Usual {
  std::string_view name;
  std::array<std::string_view, 4> values;
};
constexpr Usual kUsual[]{{"attention-backend", {"auto", "flash", "fused", "AttnBackend.auto"}},
                         {"cuda-graph-impl", {"none", "", "", ""}},
                         {"distributed-backend", {"nccl", "", "", ""}},
                         {"exp-avg-dtype", {"fp32", "torch.float32", "", ""}},
                         {"exp-avg-sq-dtype", {"fp32", "torch.float32", "", ""}},
                         {"main-grads-dtype", {"fp32", "torch.float32", "", ""}},
                         {"main-params-dtype", {"fp32", "torch.float32", "", ""}},
                         {"pipeline-model-parallel-comm-backend", {"nccl", "", "", ""}},
                         {"recompute-modules", {"core_attn", "[\"core_attn\"]", "", ""}},
                         {"softmax-type", {"vanilla", "", "", ""}},
                         {"transformer-impl", {"transformer_engine", "", "", ""}}};

// With them the model, or what the ranks do, is another one.
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

bool megatron_without_effect(std::string_view name) {
  static const Names flags = names_in(kWithoutEffect);
  static const Names fields = names_in(kFieldsWithoutEffect);
  const bool usual = std::ranges::find(kUsual, name, &Usual::name) != std::end(kUsual);
  const bool refused = std::ranges::find(kRefused, name, &Refused::name) != std::end(kRefused);
  return usual || refused || flags.contains(name) || fields.contains(name);
}

bool megatron_left_out(std::string_view name, const Json& value) {
  static const Names left_out = names_in(kLeftOut);
  const auto usual = std::ranges::find(kUsual, name, &Usual::name);
  if (usual != std::end(kUsual)) {
    const std::string text = text_of_value(value);
    return !text.empty() && std::ranges::find(usual->values, text) == usual->values.end();
  }
  return left_out.contains(name);
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
