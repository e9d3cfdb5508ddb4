"""One training job that records itself, and the same measured by hand beside it.

    job.py MODEL FOLDER        MODEL: mlp, convnet; a rank of torchrun's variables

Rank 0 writes MODEL.json (the scenario), MODEL.all_reduce.txt and by_hand/MODEL.json: what timers
between the lines of the same steps found, and what recording costs a step, from pairs of steps with
and without hooks in random order.
"""

import json
import random
import re
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import syncline_record

STEPS = 40  # of each kind
BLOCK = 1 + syncline_record._BLOCK  # the first one is not counted


def mlp():
    layers = [nn.Linear(256, 1024), nn.ReLU()]
    for _ in range(2):
        layers += [nn.Linear(1024, 1024), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(1024, 10)), torch.randn(32, 256), 1


def convnet():
    layers, channels = [], 3
    for width, stride in ((32, 1), (64, 2), (128, 2), (256, 2), (256, 1), (512, 2)):
        layers += [nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width),
                   nn.ReLU()]
        channels = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]
    return nn.Sequential(*layers), torch.randn(8, 3, 32, 32), 2


class Job:
    def __init__(self, name):
        torch.manual_seed(1)
        module, self.x, cap = {"mlp": mlp, "convnet": convnet}[name]()
        self.y = torch.randint(10, (len(self.x),))
        self.model = DistributedDataParallel(module, bucket_cap_mb=cap)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 1e-3, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.model(self.x), self.y).backward()
        self.optimizer.step()



class ByHand:
    """The same step with a timer between its lines, and hooks on the gradients."""

    def __init__(self, job):
        self.job = job
        self.steps = []
        self.ready = {}
        self.hooks = [p.register_hook(self.hook_of(name))
                      for name, p in job.model.module.named_parameters()]

    def hook_of(self, name):
        def arrives(_):
            self.ready[name] = time.perf_counter()
        return arrives

    def step(self):
        job, self.ready = self.job, {}
        at = [time.perf_counter()]
        job.optimizer.zero_grad(set_to_none=True)
        at.append(time.perf_counter())
        loss = job.loss(job.model(job.x), job.y)
        at.append(time.perf_counter())
        loss.backward()
        at.append(time.perf_counter())
        job.optimizer.step()
        at.append(time.perf_counter())
        times = dict(zip(("zero_grad", "forward", "backward", "update"),
                         (end - begin for begin, end in zip(at, at[1:]))), step=at[-1] - at[0])
        watched = hasattr(torch.autograd.backward, "__wrapped__")
        alone = not job.model.require_backward_grad_sync
        self.steps.append((watched, alone, times,
                           {name: then - at[2] for name, then in self.ready.items()}))

    def counted(self, watched, alone):
        """The steps of a kind that count: without those ahead of the first block, and without the
        first of each."""
        kind = [step for step in self.steps if step[:2] == (watched, alone)]
        kind = kind[-(STEPS // syncline_record._BLOCK) * BLOCK:]
        return [step for i, step in enumerate(kind) if i % BLOCK > 0]

    def found(self):
        alone = self.counted(True, True)
        return {"alone_ms": {part: quartiles([step[2][part] for step in alone])
                             for part in alone[0][2]},
                "ready_ms": {name: 1e3 * statistics.median(step[3][name] for step in alone)
                             for name in alone[0][3]},
                "plain_ms": quartiles([step[2]["step"] for step in self.counted(False, False)])}


def quartiles(values):
    return [round(1e3 * value, 4) for value in statistics.quantiles(values, n=4)]


def cost_of_recording(job, pairs):
    """Of pairs of steps, one with hooks and one without, in random order."""
    recorder = syncline_record._Job(job.model, job.optimizer)
    dice = random.Random(1)  # the same on all ranks
    ratios, plain, watched = [], [], []

    def one(hooks):
        if not hooks:
            begin = time.perf_counter()
            job.step()
            return time.perf_counter() - begin
        with syncline_record._Watch(recorder) as watch:
            watch.step = syncline_record._Step(recorder)
            begin = time.perf_counter()
            job.step()
            return time.perf_counter() - begin
    one(True), one(False)
    for _ in range(pairs):
        order = [True, False]
        dice.shuffle(order)
        taken = {hooks: one(hooks) for hooks in order}
        plain.append(taken[False])
        watched.append(taken[True])
        ratios.append(taken[True] / taken[False] - 1)
    # The median's 95 % interval, from the pairs drawn anew.
    medians = sorted(statistics.median(dice.choices(ratios, k=pairs)) for _ in range(2000))
    return {"pairs": pairs, "plain_ms": quartiles(plain), "watched_ms": quartiles(watched),
            "median_percent": round(100 * statistics.median(ratios), 3),
            "interval_95_percent": [round(100 * medians[i], 3) for i in (49, 1949)]}


def main():
    name, folder = sys.argv[1:3]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    job = Job(name)
    by_hand = ByHand(job)
    scenario = syncline_record.record(job.model, by_hand.step, steps=STEPS, name=name,
                                      batch=len(job.x), out=f"{folder}/{name}.json")
    for hook in by_hand.hooks:
        hook.remove()
    dist.barrier()
    cost = cost_of_recording(job, 300)
    of_ranks = [None, None]
    dist.all_gather_object(of_ranks, by_hand.found())
    if dist.get_rank() == 0:
        slowest = int(re.search(r"of rank (\d+)", scenario["workload"]["source"]).group(1))
        logged = job.model._get_ddp_logging_data()
        names = [n for n, _ in job.model.module.named_parameters()]
        order = logged["prev_iteration_grad_ready_order_indices"].split(",")
        found = {**of_ranks[slowest], "order": [names[int(i)] for i in order],
                 "bucket_bytes": [int(b) for b in logged["rebuilt_bucket_sizes"].split(",")],
                 "cost_of_recording": cost, "recorded": scenario["name"]}
        with open(f"{folder}/by_hand/{name}.json", "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
    dist.barrier()


if __name__ == "__main__":
    main()
