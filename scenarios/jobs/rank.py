"""A rank of a job in the lab, started by jobs.py.

    rank.py record JOB OUT.json STEPS LOOKS            by syncline_record, in a moment of quiet
    rank.py measure JOB SETTINGS.json OUT.json ROUND   every setting of the list
"""

import gc
import json
import random
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

import ranks

GROUP = 4  # steps that are measured in a row: LocalSGD's period
LOOKS = 12  # ahead of a visit, a quarter of a second each


def resnet18():
    import torchvision  # the only job that needs it
    return torchvision.models.resnet18(num_classes=10), torch.randn(16, 3, 64, 64)


# Of ordinary layers, sized so that computation and exchange are of one order between 500 Mbit/s and
# 1 Gbit/s on one thread of a processor.
JOBS = {"mlp": lambda: (ranks.mlp(512, 1024, 3), torch.randn(64, 512)),
        "convnet": lambda: (ranks.convnet(), torch.randn(32, 3, 32, 32)),
        "transformer": lambda: (ranks.Encoder(), torch.randint(2000, (2, 32))),
        "resnet18": resnet18}


def job_of(name):
    # Learning next to nothing: the one batch would be learnt by heart within a recording and its
    # gradients shrink by 40 times, below what 16 bits hold whole.
    return ranks.job_of(JOBS[name], 1e-6)


def model_of(job, setting):
    """One way to exchange the gradients: DDP's arguments, or a file that applies a strategy."""
    if "apply" in setting:
        return ranks.applied_file(setting["apply"]).apply(job.module, job.optimizer)
    arguments = dict(setting["ddp"])
    hook = arguments.pop("comm_hook", None)
    model = DistributedDataParallel(job.module, **arguments)
    if hook:
        model.register_comm_hook(None, getattr(default_hooks, hook))
    return model


def visit(name, setting):
    """Seconds of each step of a group; the setting has the job anew."""
    gc.collect()  # with a module go its parameters' accumulators and the hooks on gradients
    job = job_of(name)
    model = model_of(job, setting)
    for _ in range(GROUP):  # DDP decides its buckets in the first; LocalSGD's first period
        job.step(model)
    dist.barrier()
    at = [time.perf_counter()]
    for _ in range(GROUP):
        job.step(model)
        at.append(time.perf_counter())
    dist.barrier()
    return [end - begin for begin, end in zip(at, at[1:])]


def measured(name, settings, turn, visits=3):
    """{setting: groups of steps, seconds}. Settings alternate, each time in another order: a moment
    in which others take a share of the machine lasts a second or two and meets one visit, not a
    row; a visit that it met is made again. What is recorded was recorded in a quiet moment too."""
    machine = ranks.Quiet()
    quiet = 0
    taken = {setting["name"]: [] for setting in settings}
    shuffled = random.Random(turn)  # the same on all ranks
    for _ in range(visits):
        for setting in shuffled.sample(settings, len(settings)):
            steps, alone = machine.around(lambda: visit(name, setting), LOOKS)
            taken[setting["name"]].append(steps)
            quiet += alone
    if dist.get_rank() == 0:
        print(f"{quiet} of {visits * len(settings)} visits between quiet moments", flush=True)
    # Ranks meet in an exchange, so that what one of them is behind at the end of a step, the others
    # wait for in the next: the mean over ranks counts it once.
    every = ranks.every(taken)
    return {key: [[sum(steps) / len(every) for steps in zip(*groups)]
                  for groups in zip(*(one[key] for one in every))] for key in taken}


def record(*arguments):
    ranks.record(job_of, *arguments)


def measure(name, settings, out, turn):
    with open(settings, encoding="utf-8") as file:
        ranks.write(out, measured(name, json.load(file), int(turn)))


if __name__ == "__main__":
    ranks.run(record, measure)
