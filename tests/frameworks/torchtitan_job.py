#!/usr/bin/env python3
"""What torchtitan wraps, for random job files: the units of rank 0's model parts, and its pipeline.

    torchtitan_job.py OUT.json

Models are on torch's meta device, rank 0 is alone in a group in which nobody answers. Written are
FSDP's mesh and formats, and of each unit its modules and the ranks it is resharded to; of a pipeline
the stages of a rank and the micro-batches.
"""
import importlib
import random
import re
import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule

import common

CASES = 100
MODELS = {"llama3": ["8B", "70B"], "qwen3": ["0.6B", "1.7B", "8B"]}
SCHEDULES = ["1F1B", "GPipe", "Interleaved1F1B"]


def random_job(pick):
    name = pick.choice(["llama3", "llama3", "qwen3"])
    degree = lambda share: pick.choice([2, 4]) if pick.random() < share else 1
    parallelism = {"data_parallel_replicate_degree": degree(0.4),
                   "data_parallel_shard_degree": pick.choice([1, 2, 4, 8, 8]),
                   "tensor_parallel_degree": degree(0.3), "context_parallel_degree": degree(0.25),
                   "pipeline_parallel_degree": degree(0.35) if name == "llama3" else 1}
    for key in list(parallelism):  # what is left out is as it is by default
        if parallelism[key] == 1 and key != "data_parallel_shard_degree" and pick.random() < 0.5:
            del parallelism[key]
    if pick.random() < 0.5:
        parallelism["fsdp_reshard_after_forward"] = pick.choice(["default", "always", "never"])
    training = {"seq_len": 4096, "local_batch_size": pick.choice([4, 8])}
    if parallelism.get("pipeline_parallel_degree", 1) > 1:
        parallelism["pipeline_parallel_schedule"] = pick.choice(SCHEDULES)
        if pick.random() < 0.5:
            parallelism["pipeline_parallel_microbatch_size"] = pick.choice([1, 2])
    if pick.random() < 0.3:
        training["mixed_precision_param"] = pick.choice(["float32", "bfloat16"])
    return {"model": {"name": name, "flavor": pick.choice(MODELS[name])}, "training": training,
            "parallelism": parallelism, "compile": {"enable": False},
            "activation_checkpoint": {"mode": "none"}}


def config_of(job):
    from torchtitan.config import JobConfig
    config = JobConfig()
    for section, keys in job.items():
        for key, value in keys.items():
            setattr(getattr(config, section), key, value)
    return config


def ranks_of(job):
    ranks = 1
    for key, value in job["parallelism"].items():
        ranks *= value if key.endswith("_degree") else 1
    return ranks


def units_of(part):
    """[modules of the unit, ranks it is resharded to behind the forward pass, of all]."""
    names = {module: re.sub(r"\d+", "*", name) for name, module in part.named_modules()}
    found = []
    for module in part.modules():
        state = module._get_fsdp_state() if isinstance(module, FSDPModule) else None
        group = state and state._fsdp_param_group
        if not group:
            continue
        to = group.post_forward_mesh_info
        unit = [sorted(names[one] for one in group.modules),
                to.shard_mesh_size if to else 1, group.mesh_info.shard_mesh_size]
        if unit not in found:
            found.append(unit)
    return found


def said_of(job):
    from torchtitan.distributed import ParallelDims, parallel_dims
    parallel_dims.device_type = "cpu"
    spec = importlib.import_module(f"torchtitan.models.{job['model']['name']}").get_train_spec()
    config = config_of(job)
    own = config.parallelism
    dist.init_process_group("fake", rank=0, world_size=ranks_of(job),
                            store=torch.testing._internal.distributed.fake_pg.FakeStore())
    dims = ParallelDims(
        dp_replicate=own.data_parallel_replicate_degree, dp_shard=own.data_parallel_shard_degree,
        cp=own.context_parallel_degree, tp=own.tensor_parallel_degree,
        pp=own.pipeline_parallel_degree, ep=1, etp=1, world_size=ranks_of(job))
    dims.build_mesh()
    arguments = spec.model_args[job["model"]["flavor"]]
    arguments.update_from_config(config)
    with torch.device("meta"):
        model = spec.model_cls(arguments)
    said = {}
    if dims.pp_enabled:
        schedule, parts, _, _ = spec.pipelining_fn(
            model, dims, config, torch.device("cpu"), arguments, spec.parallelize_fn,
            torch.nn.functional.cross_entropy)
        said["stages"] = len(parts)
        said["micro_batches"] = schedule._n_microbatches
    else:
        parts = [spec.parallelize_fn(model, dims, config)]
    said["units"] = []
    for part in parts:
        said["units"] += [unit for unit in units_of(part) if unit not in said["units"]]
    if said["units"]:
        state = next(state for state in (module._get_fsdp_state() for module in parts[0].modules()
                                         if isinstance(module, FSDPModule))
                     if state._fsdp_param_group)
        said["mesh"] = list(state._fsdp_param_group.mesh_info.mesh.shape)
        policy = state._mp_policy
        said["param_dtype"] = str(policy.param_dtype).replace("torch.", "")
        said["reduce_dtype"] = str(policy.reduce_dtype).replace("torch.", "")
    return said


def main():
    import importlib.metadata
    import torch.testing._internal.distributed.fake_pg
    common.quiet()
    cases = []
    for number in range(CASES):
        job = random_job(random.Random(number))
        said = common.answer(said_of, job)
        if dist.is_initialized():
            dist.destroy_process_group()
        cases.append({"seed": number, "job": job, "ranks": ranks_of(job), "said": said})
    common.write(sys.argv[1], {"framework": "torchtitan",
                               "version": importlib.metadata.version("torchtitan"),
                               "rule": "job"}, cases)


if __name__ == "__main__":
    main()
