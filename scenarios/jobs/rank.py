"""A rank of a job in the lab, started by jobs.py with torchrun's variables.

    rank.py record JOB FOLDER ROUND      JOB.ROUND.json by syncline_record
    rank.py measure JOB FOLDER ROUND     every setting of JOB.measure.settings.json
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

GROUP = 4  # steps that are measured in a row: LocalSGD's period


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


class Machine:
    """Whether the ranks' processors are theirs alone at the moment: a fixed piece of work beside the
    best it ever took. Looked at ahead of a visit and behind it, never at what the visit measured."""
    QUIET = 1.15
    LOOKS = 12  # a quarter of a second each

    def __init__(self):
        self.best = float("inf")

    def is_quiet(self):
        taken = []
        for _ in range(25):
            begin = time.perf_counter()
            sum(number * number for number in range(100_000))
            taken.append(time.perf_counter() - begin)
        self.best = min(self.best, *taken)
        slowest = torch.tensor([sorted(taken)[18] / self.best])
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        return slowest.item() <= self.QUIET

    def wait(self):
        any(self.is_quiet() for _ in range(self.LOOKS))

    def visit(self, name, setting, tries=3):
        """(seconds of each step, whether it was quiet around them)"""
        for _ in range(tries):
            self.wait()
            taken = visit(name, setting)
            if self.is_quiet():
                return taken, True
        return taken, False


def visit(name, setting):
    """Seconds of each step of a group; the setting has the job anew."""
    job = models.Job(name)
    taken = []
    with Setting(job, setting) as running:
        for _ in range(GROUP):  # DDP decides its buckets in the first; LocalSGD's first period
            running.step()
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(GROUP):
            running.step()
            end = time.perf_counter()
            taken.append(end - begin)
            begin = end
        dist.barrier()
    return taken


def measure(name, settings, turn, visits=3):
    """{setting: groups of steps, seconds}. Settings alternate, each time in another order: a moment in
    which others take a share of the machine lasts a second or two and meets one visit, not a row; a
    visit that it met is made again. What is recorded was recorded in a quiet moment too."""
    machine = Machine()
    quiet = 0
    taken = {setting["name"]: [] for setting in settings}
    shuffled = random.Random(turn)  # the same on all ranks
    for _ in range(visits):
        for setting in shuffled.sample(settings, len(settings)):
            steps, alone = machine.visit(name, setting)
            taken[setting["name"]].append(steps)
            quiet += alone
    if dist.get_rank() == 0:
        print(f"{quiet} of {visits * len(settings)} visits between quiet moments", flush=True)
    return mean_of_ranks(taken)


def mean_of_ranks(found):
    """Ranks meet in an exchange, so that what one of them is behind at the end of a step, the others
    wait for in the next: the mean over ranks counts it once."""
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, found)
    def mean(name, group, step):
        return sum(one[name][group][step] for one in every) / len(every)
    return {name: [[mean(name, group, step) for step in range(GROUP)]
                   for group in range(len(groups))] for name, groups in found.items()}


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
    # On one processor a thread of Gloo's that wakes up takes it from the thread whose lock it then
    # waits for, until the scheduler's next tick: not with this policy, as the recorder advises.
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
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
