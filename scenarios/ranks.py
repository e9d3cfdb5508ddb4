"""What the ranks of the experiments under scenarios/ have in common: models, a job's step, moments
of quiet, and how they start: in the lab, with torchrun's variables."""

import contextlib
import importlib.util
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def mlp(inputs, width, layers):
    """So many hidden layers, and the one that classifies."""
    modules = []
    for _ in range(layers):
        modules += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*modules, nn.Linear(width, 10))


def convnet():
    layers, channels = [], 3
    for width, stride in ((32, 1), (64, 2), (128, 2), (256, 2), (256, 1), (512, 2)):
        layers += [nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width),
                   nn.ReLU()]
        channels = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]
    return nn.Sequential(*layers)


class Encoder(nn.Module):
    """Four layers of a Transformer over token embeddings, the mean of which is classified."""

    def __init__(self, words=2000, width=256):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 4)
        self.head = nn.Linear(width, 10)

    def forward(self, words):
        return self.head(self.layers(self.embedding(words)).mean(1))


class Job:
    """A module that is trained."""

    def __init__(self, module, x, y, rate):
        self.module, self.x, self.y = module, x, y
        self.size = len(x)  # of a batch
        self.optimizer = torch.optim.SGD(module.parameters(), rate, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()

    def batch(self):
        return self.x, self.y

    def step(self, model, told=lambda part, loss: None):
        """`told` hears at the end of each part of it."""
        x, y = self.batch()
        self.optimizer.zero_grad(set_to_none=True)
        told("zero_grad", None)
        loss = self.loss(model(x), y)
        told("forward", loss)
        loss.backward()
        told("backward", loss)
        self.optimizer.step()
        told("update", loss)
        return loss


def job_of(build, rate):
    """A job of one batch in classes by chance."""
    torch.manual_seed(1)
    module, x = build()
    return Job(module, x, torch.randint(10, (len(x),)), rate)


def applied_file(path):
    """The module that `syncline emit --python` wrote."""
    spec = importlib.util.spec_from_file_location("applied", path)
    applied = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(applied)
    return applied


class Quiet:
    """Whether the ranks' processors are theirs alone at the moment: a fixed piece of work against
    the best it ever took. Looked at before and after what is timed, never at what was timed."""
    QUIET = 1.15

    def __init__(self):
        self.best = float("inf")

    def is_quiet(self):
        """A quarter of a second where it is."""
        taken = []
        for _ in range(25):
            begin = time.perf_counter()
            sum(number * number for number in range(100_000))
            taken.append(time.perf_counter() - begin)
        self.best = min(self.best, *taken)
        slowest = torch.tensor([sorted(taken)[18] / self.best])
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        return slowest.item() <= self.QUIET

    def around(self, timed, looks):
        """(what it gives, whether it was quiet before and after): thrice at most where others' work
        came in. Waits for quiet, so many looks at most; with none it is content with what is."""
        for _ in range(3 if looks else 1):
            any(self.is_quiet() for _ in range(looks))
            found = timed()
            if self.is_quiet():
                return found, True
        return found, False


def record(job_of, name, out, steps, looks):
    """The job as syncline_record sees it, in a quiet moment."""
    import syncline_record

    def timed():
        job = job_of(name)
        model = DistributedDataParallel(job.module)
        syncline_record.record(model, lambda: job.step(model), steps=int(steps), name=name,
                               batch=job.size, out=out)
    if dist.get_rank() == 0:
        print(f"{name}: waits up to {int(looks) // 240} minutes for a quiet machine", flush=True)
    _, alone = Quiet().around(timed, int(looks))
    if dist.get_rank() == 0 and not alone:
        print(f"{out}: the machine was NOT quiet, what was timed is uncertain", flush=True)


def every(value):
    """The value of each rank, on all of them."""
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def write(path, value):
    """Rank 0 does, never half of it."""
    if dist.get_rank() != 0:
        return
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
    os.replace(f"{path}.part", path)


def run(*commands, quiet=True):
    """The command that is named first in the arguments, with the others. On a machine that is not
    quiet the ranks go ahead of what else runs there, as far as they may."""
    torch.set_num_threads(1)
    if quiet:
        # A machine of its own for each rank: its threads share one processor.
        os.sched_setaffinity(0, {int(os.environ["RANK"]) % os.cpu_count()})
        # There a thread of Gloo's that wakes up takes it from the thread whose lock it then waits
        # for, until the scheduler's next tick: not with this policy, as the recorder advises.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    else:
        with contextlib.suppress(PermissionError):
            os.nice(-10)
    dist.init_process_group("gloo")
    {command.__name__: command for command in commands}[sys.argv[1]](*sys.argv[2:])
    dist.barrier()
