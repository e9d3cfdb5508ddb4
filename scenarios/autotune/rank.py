"""A rank of a job in the lab, started by autotune.py.

    rank.py tuned JOB JOURNAL.json STEPS            trains until the job has chosen its setting
    rank.py fixed JOB JOURNAL.json OUT.json ROUNDS  what it has tried and bucket sizes, in turns
"""

import contextlib
import gc
import importlib.util
import json
import os
import pathlib
import random
import time

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import ranks
import syncline_apply
import syncline_tuner

CAPS = (1, 2, 4, 8, 25)
STEPS = 4  # of a visit that count
WARM = 3  # in the first of which DDP sorts its buckets anew


def jobs():
    place = pathlib.Path(__file__).resolve().parents[1] / "jobs/rank.py"
    spec = importlib.util.spec_from_file_location("jobs_rank", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tuned(name, journal, steps):
    job = jobs().job_of(name)
    model = syncline_apply.autotune(job.module, job.optimizer, journal=journal, steps=int(steps))
    begun, taken = time.perf_counter(), 0
    while model._tuner.course is not None:
        job.step(model)
        taken += 1
    if dist.get_rank() == 0:
        print(f"{name}: {taken} steps, {time.perf_counter() - begun:.1f} s", flush=True)


def settings_of(journal):
    with open(journal, encoding="utf-8") as file:
        told = json.load(file)
    tried = [setting for setting in told.get("settings", []) if "table" in setting]
    return tried + [{"name": f"DDP, {cap} MiB", "ddp": {"bucket_cap_mb": cap}} for cap in CAPS]


def visit(name, setting):
    gc.collect()  # with a module go its parameters' accumulators and the hooks on gradients
    job = jobs().job_of(name)
    model = (syncline_apply.apply(job.module, job.optimizer, strategy=setting["table"])
             if "table" in setting else DistributedDataParallel(job.module, **setting["ddp"]))
    for _ in range(WARM):
        job.step(model)
    dist.barrier()
    begun = time.perf_counter()
    for _ in range(STEPS):
        job.step(model)
    dist.barrier()
    return (time.perf_counter() - begun) / STEPS


def fixed(name, journal, out, rounds):
    """{setting: seconds of a step, a round each}."""
    settings = settings_of(journal)
    taken = {setting["name"]: [] for setting in settings}
    shuffled = random.Random(7)  # the same on all ranks
    for _ in range(int(rounds)):
        for setting in shuffled.sample(settings, len(settings)):
            taken[setting["name"]].append(visit(name, setting))
    ranks.write(out, taken)


if __name__ == "__main__":
    with contextlib.suppress(PermissionError):
        os.nice(-5)  # before others that compile, as far as they may
    ranks.run(tuned, fixed, quiet=False)
