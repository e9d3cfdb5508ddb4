"""A rank of a job in the lab, started by jobs.py with torchrun's variables.

    rank.py record JOB FOLDER ROUND      JOB.ROUND.json by syncline_record
    rank.py measure JOB FOLDER ROUND     every setting of JOB.measure.settings.json once
"""

import copy
import gc
import importlib.util
import json
import os
import random
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

import models

GROUP = 4  # steps whose mean counts as one measurement: LocalSGD's period


class Setting:
    """One way to exchange the gradients: DDP's arguments, or a file that applies a strategy."""

    def __init__(self, job, setting):
        self.job = job
        self.saved = copy.deepcopy(job.module.state_dict())
        self.optimizer = job.optimizer()
        if "apply" in setting:
            spec = importlib.util.spec_from_file_location("applied", setting["apply"])
            applied = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(applied)
            self.model = applied.apply(job.module, self.optimizer)
        else:
            arguments = dict(setting["ddp"])
            hook = arguments.pop("comm_hook", None)
            self.model = DistributedDataParallel(job.module, **arguments)
            if hook:
                self.model.register_comm_hook(None, getattr(default_hooks, hook))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # The hooks on gradients go with the parameters' accumulators, and those with the module.
        del self.model, self.optimizer
        gc.collect()

    def step(self):
        self.job.step(self.model, self.optimizer)


def measure_round(name, settings, order, groups):
    """{setting: means of groups of steps, seconds}; each setting has the job anew."""
    taken = {}
    for place in order:
        job = models.Job(name)
        with Setting(job, settings[place]) as setting:
            for _ in range(GROUP):  # DDP decides its buckets in the first; LocalSGD's first period
                setting.step()
            dist.barrier()
            means = []
            for _ in range(groups):
                begin = time.perf_counter()
                for _ in range(GROUP):
                    setting.step()
                means.append((time.perf_counter() - begin) / GROUP)
            dist.barrier()
        taken[settings[place]["name"]] = means
    return taken


def measure(name, settings, turn, groups=4):
    """Settings alternate, each round in another order, so that a busy moment meets all of them."""
    order = list(range(len(settings)))
    random.Random(turn).shuffle(order)  # the same on all ranks
    return slowest_of(measure_round(name, settings, order, groups))


def slowest_of(found):
    """The ranks end a step together but for what they do behind the last exchange."""
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, found)
    return {name: [max(values) for values in zip(*(one[name] for one in every))]
            for name in found}


def write(path, value):
    if dist.get_rank() == 0:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1)


def record(name, folder, turn):
    import syncline_record
    job = models.Job(name)
    optimizer = job.optimizer()
    model = DistributedDataParallel(job.module)
    syncline_record.record(model, lambda: job.step(model, optimizer), steps=48, name=name,
                           batch=len(job.x), out=f"{folder}/{name}.{turn}.json")


def main():
    what, name, folder, turn = sys.argv[1:5]
    torch.set_num_threads(1)
    # A machine of its own for each rank: its threads share one processor.
    os.sched_setaffinity(0, {int(os.environ["RANK"]) % os.cpu_count()})
    dist.init_process_group("gloo")
    if what == "record":
        record(name, folder, turn)
    else:
        with open(f"{folder}/{name}.measure.settings.json", encoding="utf-8") as file:
            settings = json.load(file)
        write(f"{folder}/{name}.measure.{turn}.json", measure(name, settings, int(turn)))
    dist.barrier()


if __name__ == "__main__":
    main()
