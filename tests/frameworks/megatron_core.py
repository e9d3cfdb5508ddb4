"""Megatron-Core's DistributedDataParallel on random models: every collective of a step, in order."""

import contextlib
import os

os.environ.update(CUDA_DEVICE_MAX_CONNECTIONS="1", MASTER_ADDR="localhost", MASTER_PORT="29512")

import torch
from torch import nn

import common


class Part(nn.Module):
    """Parameters, each used once and in this order."""

    def __init__(self, sizes, expert):
        super().__init__()
        for i, size in enumerate(sizes):
            parameter = nn.Parameter(torch.zeros(size))
            parameter.allreduce = not expert
            self.register_parameter(f"w{i}", parameter)

    def forward(self, x):
        for parameter in self.parameters():
            x = x + parameter.sum()
        return x


class Model(nn.Module):
    def __init__(self, rng, experts):
        super().__init__()
        largest = rng.choice([200, 2000, 20000])
        self.layers = nn.ModuleList()
        for _ in range(rng.randrange(1, 9)):
            sizes = [rng.randrange(1, largest) for _ in range(rng.randrange(1, 5))]
            self.layers.append(Part(sizes, experts and rng.random() < 0.4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.sum()


class Stream:
    def __init__(self, *_, **__):
        pass

    wait_stream = synchronize = lambda self, *_: None


def give_the_processor_for_cuda():
    """Buffers lie where current_device says; streams do nothing."""
    torch.cuda.current_device = lambda: torch.device("cpu")
    torch.cuda.Stream = Stream
    torch.cuda.current_stream = torch.cuda.default_stream = lambda *_: Stream()
    torch.cuda.stream = lambda *_: contextlib.nullcontext()
    torch.cuda.synchronize = lambda *_: None


def config_of(rng, ranks, expert, largest, narrow):
    config = {}
    overlap = rng.random() < 0.8
    if overlap:
        config["overlap-grad-reduce"] = True
        if rng.random() < 0.9:
            config["ddp-bucket-size"] = rng.choice([1, largest, 3 * largest, 10**6])
    if rng.random() < 0.6:
        config["use-distributed-optimizer"] = True
        if overlap and rng.random() < 0.6:
            config["overlap-param-gather"] = True
        if rng.random() < 0.2:
            config["ddp-pad-buckets-for-high-nccl-busbw"] = True
        if ranks % 2 == 0 and ranks > 2 and expert == 1 and rng.random() < 0.3:
            config["num-distributed-optimizer-instances"] = 2
    if narrow:
        config["bf16"] = True
        config["accumulate-allreduce-grads-in-fp32" if rng.random() < 0.5
               else "grad-reduce-in-bf16"] = True
    return config


def fields_of(config):
    return {"grad_reduce_in_fp32": config.get("accumulate-allreduce-grads-in-fp32", False),
            "overlap_grad_reduce": config.get("overlap-grad-reduce", False),
            "overlap_param_gather": config.get("overlap-param-gather", False),
            "use_distributed_optimizer": config.get("use-distributed-optimizer", False),
            "num_distributed_optimizer_instances":
                config.get("num-distributed-optimizer-instances", 1),
            "bucket_size": config.get("ddp-bucket-size"),
            "pad_buckets_for_high_nccl_busbw":
                config.get("ddp-pad-buckets-for-high-nccl-busbw", False)}


def case_of(seed):
    from megatron.core import parallel_state
    from megatron.core.distributed import (DistributedDataParallel,
                                           DistributedDataParallelConfig)
    from megatron.core.transformer import TransformerConfig

    rng = common.draw(seed)
    ranks = rng.choice([2, 3, 4, 8])
    expert = rng.choice([1, 1, 2, 4])
    expert = expert if ranks % expert == 0 else 1
    common.join(ranks)
    model = Model(rng, expert > 1)
    narrow = rng.random() < 0.4
    if narrow:
        model.bfloat16()
        for parameter in model.parameters():
            parameter.allreduce = getattr(parameter, "allreduce", True)
    named = list(model.named_parameters())
    largest = max(p.numel() for p in model.parameters())
    config = config_of(rng, ranks, expert, largest, narrow)
    passes = rng.choice([1, 1, 2])
    parallel_state.initialize_model_parallel(
        expert_model_parallel_size=expert, create_gloo_process_groups=False,
        num_distributed_optimizer_instances=config.get("num-distributed-optimizer-instances", 1))
    ddp = DistributedDataParallel(
        TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=1),
        DistributedDataParallelConfig(**fields_of(config)), model)
    tensors = [common.tensor_of(n, p) for n, p in named]
    experts = [i for i, (_, p) in enumerate(named[::-1]) if not p.allreduce]
    recorder = common.Recorder()
    for _ in range(3):
        recorder.seen.clear()
        with recorder:
            step(ddp, passes, config, recorder)
    parallel_state.destroy_model_parallel()
    common.leave()
    return {"seed": seed, "ranks": ranks, "config": config, "micro_batches": passes,
            "expert_ranks": expert, "experts": experts, "tensors": tensors[::-1],
            "registered": list(range(len(tensors)))[::-1],
            "collectives": recorder.seen[:]}


def step(ddp, passes, config, recorder):
    ddp.zero_grad_buffer()
    for p in range(passes):
        last = p == passes - 1
        with contextlib.nullcontext() if last else ddp.no_sync():
            recorder.when = f"f{p}"
            loss = ddp(torch.zeros(2))
            recorder.when = f"b{p}"
            loss.backward()
    ddp.finish_grad_sync()
    recorder.when = "u"
    if config.get("use-distributed-optimizer") and not config.get("overlap-param-gather"):
        ddp.start_param_sync()


def main():
    common.quiet()
    give_the_processor_for_cuda()
    import megatron.core

    cases = [case_of(seed) for seed in range(int(os.environ.get("CASES", 100)))]
    common.write(common.out(), {
        "framework": "megatron-core", "version": megatron.core.__version__,
        "torch": torch.__version__, "rule": "buffers",
        "about": "collectives: when (f, b: passes, u: step, with the number of the micro-batch), "
                 "kind, elements, bytes an element, ranks"}, cases)


main()
