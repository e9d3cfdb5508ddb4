"""What Megatron's own parser and validate_args make of random command lines."""

import contextlib
import importlib.metadata
import io
import os
import random
import shlex
import sys
import types

os.environ.update(CUDA_DEVICE_MAX_CONNECTIONS="1", RANK="0")

import torch
import triton

import common


def layout_of(rng, flags):
    flags["tensor-model-parallel-size"] = rng.choice([1, 1, 2, 4])
    flags["pipeline-model-parallel-size"] = stages = rng.choice([1, 1, 2, 4])
    layers = rng.choice([8, 12, 16, 24, 32])
    flags["num-layers"] = layers
    if rng.random() < 0.2:
        flags["context-parallel-size"] = 2
    way = rng.random()
    if stages > 1 and way < 0.3:
        flags["num-virtual-stages-per-pipeline-rank"] = rng.choice([1, 2, 3])
    elif stages > 1 and way < 0.5:
        flags["num-layers-per-virtual-pipeline-stage"] = rng.choice([1, 2, 3])
    elif stages > 1 and way < 0.6:
        parts = stages * rng.choice([1, 2])
        flags["pipeline-model-parallel-layout"] = "E" + "|".join(
            ["t" * (layers // parts)] * parts) + "L"
    elif stages > 2 and way < 0.7:
        flags["decoder-first-pipeline-num-layers"] = layers // stages - 1
    if way > 0.9:
        flags["account-for-embedding-in-pipeline-split"] = True
        flags["account-for-loss-in-pipeline-split"] = True
        if rng.random() < 0.7:
            flags["num-layers"] = layers - 2
    if rng.random() < 0.2:
        flags["no-overlap-p2p-communication"] = True
    if rng.random() < 0.5:
        flags["sequence-parallel"] = True
    if rng.random() < 0.1:
        flags["tp-comm-overlap"] = True


def model_of(rng, flags):
    flags["hidden-size"] = rng.choice([1024, 2048, 4096])
    flags["num-attention-heads"] = rng.choice([16, 32])
    flags["seq-length"] = rng.choice([1024, 4096])
    flags["max-position-embeddings"] = rng.choice([4096, 8192])
    if rng.random() < 0.3:
        flags["ffn-hidden-size"] = rng.choice([4096, 11008])
    if rng.random() < 0.6:
        flags["swiglu"] = True
    if rng.random() < 0.4:
        flags["group-query-attention"] = True
    if rng.random() < 0.4:
        flags["num-query-groups"] = rng.choice([4, 8])
    if rng.random() < 0.2:
        flags["kv-channels"] = 128
    if rng.random() < 0.5:
        flags["untie-embeddings-and-output-weights"] = True
    if rng.random() < 0.6:
        flags["position-embedding-type"] = "rope"
    if rng.random() < 0.2:
        flags["use-rotary-position-embeddings"] = True
    if rng.random() < 0.5:
        flags["normalization"] = "RMSNorm"
    flags["vocab-size"] = 32000
    if rng.random() < 0.2:
        flags["num-experts"] = rng.choice([4, 8])
        flags["moe-token-dispatcher-type"] = "alltoall"
        if rng.random() < 0.5:
            flags["moe-ffn-hidden-size"] = 1408
        if rng.random() < 0.4:
            flags["expert-tensor-parallel-size"] = 1
    if rng.random() < (0.7 if "num-experts" in flags else 0.03):
        flags["expert-model-parallel-size"] = rng.choice([2, 4])


def exchange_of(rng, flags):
    if rng.random() < 0.7:
        flags["bf16"] = True
    elif rng.random() < 0.5:
        flags["fp16"] = True
    if rng.random() < 0.2:
        flags["accumulate-allreduce-grads-in-fp32"] = True
    if rng.random() < 0.15:
        flags["grad-reduce-in-bf16"] = True
    if rng.random() < 0.6:
        flags["use-distributed-optimizer"] = True
    if rng.random() < 0.6:
        flags["overlap-grad-reduce"] = True
    if rng.random() < 0.35:
        flags["overlap-param-gather"] = True
    if rng.random() < 0.2:
        flags["ddp-bucket-size"] = 10**7
    if rng.random() < 0.1:
        flags["ddp-num-buckets"] = 4
    if rng.random() < 0.1 and "use-distributed-optimizer" in flags:  # which its buffers ask for
        flags["num-distributed-optimizer-instances"] = 2
    if rng.random() < 0.1:
        flags["optimizer"] = "sgd"


def step_of(rng, flags):
    flags["micro-batch-size"] = rng.choice([1, 2])
    if rng.random() < 0.8:
        flags["global-batch-size"] = rng.choice([16, 64, 96, 256])
    way = rng.random()
    if way < 0.2:
        flags["recompute-activations"] = True
    elif way < 0.4:
        flags["recompute-granularity"] = rng.choice(["full", "selective"])
        if rng.random() < 0.7:
            flags["recompute-method"] = rng.choice(["uniform", "block"])
            flags["recompute-num-layers"] = 1


def words_of(flags):
    words = []
    for name, value in flags.items():
        words.append("--" + name)
        if value is not True:
            words.append(str(value))
    return words


NAMES = ("tensor_model_parallel_size pipeline_model_parallel_size "
         "virtual_pipeline_model_parallel_size context_parallel_size expert_model_parallel_size "
         "expert_tensor_parallel_size sequence_parallel overlap_p2p_comm data_parallel_size "
         "micro_batch_size global_batch_size num_layers hidden_size num_attention_heads "
         "num_query_groups group_query_attention kv_channels ffn_hidden_size num_experts "
         "moe_ffn_hidden_size swiglu untie_embeddings_and_output_weights seq_length "
         "use_distributed_optimizer overlap_grad_reduce overlap_param_gather "
         "accumulate_allreduce_grads_in_fp32 grad_reduce_in_bf16 recompute_granularity "
         "ddp_bucket_size ddp_num_buckets num_distributed_optimizer_instances optimizer").split()


def asked(words, ranks):
    """The settings after correction, or why they are refused."""
    from megatron.core import num_microbatches_calculator as microbatches
    from megatron.training import arguments
    from megatron.training.argument_utils import core_transformer_config_from_args as transformer_config
    from megatron.training.training import get_megatron_ddp_config

    os.environ["WORLD_SIZE"] = str(ranks)
    sys.argv = ["pretrain_gpt.py", *words]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            args = arguments.parse_args()
            arguments.validate_args(args)
            microbatches.ConstantNumMicroBatchesCalculator(
                args.global_batch_size, args.micro_batch_size, args.data_parallel_size, False, 0)
            args.apply_rope_fusion = False  # which asks for Transformer Engine
            transformer_config(args)
            get_megatron_ddp_config(args)
        except SystemExit:
            return {"refused": "the parser"}
        except (AssertionError, ValueError, RuntimeError) as error:
            return {"refused": (str(error) or type(error).__name__)[:160]}
    said = {name: getattr(args, name) for name in NAMES}
    said["params_dtype"] = common.DTYPES[args.params_dtype]
    return said


def main():
    common.quiet()
    out = common.out()
    # Kernels are not tuned where there is no device, whose generation validate_args asks for.
    triton.autotune = lambda *_, **__: lambda kernel: kernel
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(major=9, minor=0)
    torch.cuda.is_available = lambda: True
    version = importlib.metadata.version("megatron-core")
    cases = []
    for seed in range(int(os.environ.get("CASES", 200))):
        rng = random.Random(seed)
        flags = {"train-iters": 10, "lr": 1e-4}
        for part in (layout_of, model_of, exchange_of, step_of):
            part(rng, flags)
        ranks = rng.choice([8, 16, 32])
        words = words_of(flags)
        cases.append({"seed": seed, "ranks": ranks, "line": shlex.join(words),
                      "said": asked(words, ranks)})
    common.write(out, {
        "framework": "megatron-core", "version": version, "rule": "arguments",
        "about": "a line of flags, and the settings after validate_args, or why it is refused"},
        cases)


main()
