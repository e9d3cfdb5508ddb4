"""A rank of a sharded job in the lab, started by sharded.py.

    rank.py record JOB SETTING OUT.json STEPS       by syncline_record
    rank.py measure JOB SETTINGS OUT.json VISITS     settings, between semicolons, in turns
"""

import gc
import os
import random
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import ranks

GROUP = 3  # steps of a visit that count


class Blocks(nn.Module):
    """Six residual blocks of two matrices."""

    def __init__(self, width=256):
        super().__init__()
        self.embed = nn.Linear(64, width)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))
            for _ in range(6))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


JOBS = {"blocks": lambda: (Blocks(), torch.randn(128, 64)),
        "transformer": lambda: (ranks.Encoder(), torch.randint(2000, (4, 32)))}


def job_of(name):
    return ranks.job_of(JOBS[name], 1e-6)


def layers_of(module):
    layers = module.layers
    return layers if isinstance(layers, nn.ModuleList) else layers.layers


_meshes = {}


def mesh_of(shape):
    """One of each shape: with a new one come new groups of processes."""
    from torch.distributed.device_mesh import init_device_mesh
    if shape not in _meshes:
        _meshes[shape] = init_device_mesh("cpu", shape, mesh_dim_names=("replicate", "shard"))
    return _meshes[shape]


def fsdp2(module, shape=None, **options):
    from torch.distributed.fsdp import fully_shard
    mesh = mesh_of(shape) if shape else mesh_of((1, dist.get_world_size()))["shard"]
    for layer in layers_of(module):
        fully_shard(layer, mesh=mesh, **options)
    return fully_shard(module, mesh=mesh, **options)


def fsdp1(module):
    from torch.distributed.fsdp import FullyShardedDataParallel
    words = {"device_id": torch.device("cpu"), "use_orig_params": True}
    layers = layers_of(module)
    for at, layer in enumerate(layers):
        layers[at] = FullyShardedDataParallel(layer, **words)
    return FullyShardedDataParallel(module, **words)


TORCH = {"DDP": DistributedDataParallel,
         "FSDP1": fsdp1,
         "FSDP2": fsdp2,
         "FSDP2, kept": lambda module: fsdp2(module, reshard_after_forward=False),
         "HSDP": lambda module: fsdp2(module, (dist.get_world_size() // 2, 2))}


def optimizer_of(model):
    return torch.optim.Adam(model.parameters(), 1e-6)


def zero(job, stage):
    """(DeepSpeed's engine, what trains once), its collectives over Gloo and not in shared memory."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    import deepspeed
    from deepspeed.comm import torch as deepspeed_torch
    deepspeed_torch.build_shm_op = lambda: None
    engine, *_ = deepspeed.initialize(
        model=job.module, optimizer=optimizer_of(job.module),
        config={"train_micro_batch_size_per_gpu": job.size, "zero_force_ds_cpu_optimizer": False,
                "zero_optimization": {"stage": stage}})

    def step():
        engine.backward(job.loss(engine(job.x), job.y))
        engine.step()
    return engine, step


def made(name, setting):
    """(the model as the setting has it, what trains it once)."""
    job = job_of(name)
    if setting.startswith("ZeRO"):
        return zero(job, int(setting.rsplit(" ", 1)[1]))
    model = TORCH[setting](job.module)
    optimizer = optimizer_of(model)

    def step():
        optimizer.zero_grad()
        job.loss(model(job.x), job.y).backward()
        optimizer.step()
    return model, step


def record(name, setting, out, steps):
    import syncline_record
    model, step = made(name, setting)
    syncline_record.record(model, step, steps=int(steps), name=name, batch=job_of(name).size, out=out)


def visit(name, setting):
    """Seconds of each step; the setting has the job anew."""
    gc.collect()
    _, step = made(name, setting)
    for _ in range(2):  # DDP decides its buckets in the first, ZeRO its order
        step()
    dist.barrier()
    at = [time.perf_counter()]
    for _ in range(GROUP):
        step()
        at.append(time.perf_counter())
    dist.barrier()
    return [end - begin for begin, end in zip(at, at[1:])]


def measure(name, settings, out, visits):
    """Writes {setting: seconds of each step, the mean over ranks}."""
    settings = settings.split(";")
    taken = {setting: [] for setting in settings}
    shuffled = random.Random(1)  # the same on all ranks
    for _ in range(int(visits)):
        for setting in shuffled.sample(settings, len(settings)):
            taken[setting] += visit(name, setting)
    every = ranks.every(taken)
    ranks.write(out, {setting: [sum(steps) / len(every) for steps in
                                zip(*(one[setting] for one in every))] for setting in taken})


if __name__ == "__main__":
    ranks.run(record, measure)
