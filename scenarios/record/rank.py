"""A training job that records itself, and the same measured by hand; started by record.py.

    rank.py record JOB FOLDER

Rank 0 writes JOB.json (the scenario), JOB.all_reduce.txt and by_hand/JOB.json: what timers between
the lines of the same steps found, and what recording costs a step, from pairs of steps with and
without hooks in random order.
"""

import contextlib
import random
import re
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import ranks
import syncline_record

STEPS = 40  # of each kind
BLOCK = 1 + syncline_record._BLOCK  # the first one is not counted
# With DDP's bucket_cap_mb.
JOBS = {"mlp": (lambda: (ranks.mlp(256, 1024, 3), torch.randn(32, 256)), 1),
        "convnet": (lambda: (ranks.convnet(), torch.randn(8, 3, 32, 32)), 2)}


class ByHand:
    """The same step with a timer between its lines, and hooks on the gradients."""

    def __init__(self, job, model):
        self.job, self.model = job, model
        self.steps = []
        self.ready = {}
        self.hooks = [p.register_hook(self.hook_of(name))
                      for name, p in job.module.named_parameters()]

    def hook_of(self, name):
        def arrives(_):
            self.ready[name] = time.perf_counter()
        return arrives

    def step(self):
        self.ready = {}
        at = [("begin", time.perf_counter())]
        self.job.step(self.model, lambda part, _: at.append((part, time.perf_counter())))
        times = {part: then - before for (_, before), (part, then) in zip(at, at[1:])}
        times["step"] = at[-1][1] - at[0][1]
        backward = dict(at)["forward"]
        watched = hasattr(torch.autograd.backward, "__wrapped__")
        alone = not self.model.require_backward_grad_sync
        self.steps.append((watched, alone, times,
                           {name: then - backward for name, then in self.ready.items()}))

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


def cost_of_recording(job, model, pairs):
    """Of pairs of steps, one with hooks and one without, in random order."""
    recorder = syncline_record._Job(model, job.optimizer)
    dice = random.Random(1)  # the same on all ranks
    taken = {True: [], False: []}  # with hooks, without

    def one(hooks):
        with syncline_record._Watch(recorder) if hooks else contextlib.nullcontext() as watch:
            if hooks:
                watch.step = syncline_record._Step(recorder)
            begin = time.perf_counter()
            job.step(model)
            return time.perf_counter() - begin
    one(True), one(False)
    for _ in range(pairs):
        order = [True, False]
        dice.shuffle(order)
        for hooks in order:
            taken[hooks].append(one(hooks))
    ratios = [watched / plain - 1 for watched, plain in zip(taken[True], taken[False])]
    # The median's 95 % interval, from the pairs drawn anew.
    medians = sorted(statistics.median(dice.choices(ratios, k=pairs)) for _ in range(2000))
    return {"pairs": pairs, "plain_ms": quartiles(taken[False]),
            "watched_ms": quartiles(taken[True]),
            "median_percent": round(100 * statistics.median(ratios), 3),
            "interval_95_percent": [round(100 * medians[i], 3) for i in (49, 1949)]}


def record(name, folder):
    build, cap = JOBS[name]
    job = ranks.job_of(build, 1e-3)
    model = DistributedDataParallel(job.module, bucket_cap_mb=cap)
    by_hand = ByHand(job, model)
    scenario = syncline_record.record(model, by_hand.step, steps=STEPS, name=name,
                                      batch=len(job.x), out=f"{folder}/{name}.json")
    for hook in by_hand.hooks:
        hook.remove()
    dist.barrier()
    cost = cost_of_recording(job, model, 300)
    of_ranks = ranks.every(by_hand.found())
    if dist.get_rank() != 0:
        return
    slowest = int(re.search(r"of rank (\d+)", scenario["workload"]["source"]).group(1))
    logged = model._get_ddp_logging_data()
    names = [n for n, _ in job.module.named_parameters()]
    order = logged["prev_iteration_grad_ready_order_indices"].split(",")
    ranks.write(f"{folder}/by_hand/{name}.json", {
        **of_ranks[slowest], "order": [names[int(i)] for i in order],
        "bucket_bytes": [int(b) for b in logged["rebuilt_bucket_sizes"].split(",")],
        "cost_of_recording": cost, "recorded": scenario["name"]})


if __name__ == "__main__":
    ranks.run(record, quiet=False)
