"""A rank of a training in the lab, started by train.py with torchrun's variables.

    rank.py record MODEL OUT.json      the job as syncline_record sees it
    rank.py train TASKS.json SECONDS   every task of the list that is begun within so many seconds

A task is {"model", "apply": a file of `syncline emit --python`, "leave_out": a part of DGC or null,
"seed", "rate", "steps", "target": an accuracy to stop at or null, "out": the file for its result}.
"""

import importlib.util
import json
import math
import os
import sys
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 32  # images a rank and step
WARM_UP = 20  # steps in which the learning rate rises
HELD_OUT = 500  # images that no rank trains on
EVERY = 16  # steps between two looks at them


def mlp():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
                         nn.Linear(256, 10))


def convnet():
    return nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
                         nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Flatten(),
                         nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 10))


MODELS = {"mlp": mlp, "convnet": convnet}


def digits():
    """Images and classes to train on, and those held out: the same split for everybody."""
    images, classes = load_digits(return_X_y=True)
    images = torch.tensor(images, dtype=torch.float32) / 16
    classes = torch.tensor(classes)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    held, taught = order[:HELD_OUT], order[HELD_OUT:]
    return images[taught], classes[taught], images[held], classes[held]


class Batches:
    """Every epoch all images in a new order, dealt out to the ranks batch by batch."""

    def __init__(self, count, seed):
        self.dice = torch.Generator().manual_seed(seed)
        self.count = count
        self.order = torch.empty(0, dtype=torch.long)

    def next(self):
        together = BATCH * dist.get_world_size()
        if len(self.order) < together:
            self.order = torch.randperm(self.count, generator=self.dice)
        batch, self.order = self.order[:together], self.order[together:]
        return batch[BATCH * dist.get_rank():][:BATCH]


def learning_rate(step, steps, most):
    """Rises to `most`, then falls to nothing by half a cosine."""
    if step < WARM_UP:
        return most * (step + 1) / WARM_UP
    return most * (1 + math.cos(math.pi * (step - WARM_UP) / (steps - WARM_UP))) / 2


def applied_file(path):
    spec = importlib.util.spec_from_file_location("applied", path)
    applied = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(applied)
    return applied


def leave_out(applied, part):
    """Takes a part of DGC out of the file's own: no strategy says so, for nobody wants it."""
    whole = applied._Dgc
    if part == "momentum correction":
        class Plain(whole):
            def accumulate(self, gradient, weight, group, room):
                self.residual = self.residual + gradient
        applied._Dgc = Plain
        applied._Reducer.before_step = lambda self: None  # the momentum is the optimizer's
    elif part == "masking":
        class Unmasked(whole):
            def taken(self, kept, room):
                velocity = self.velocity.clone()
                taken = super().taken(kept, room)
                self.velocity = velocity
                return taken
        applied._Dgc = Unmasked


class Training:
    """One model trained with one strategy from one seed."""

    def __init__(self, task, data):
        self.task = task
        self.images, self.classes, self.held, self.held_classes = data
        torch.manual_seed(task["seed"])
        self.module = MODELS[task["model"]]()
        self.optimizer = torch.optim.SGD(self.module.parameters(), task["rate"], momentum=0.9)
        applied = applied_file(task["apply"])
        leave_out(applied, task["leave_out"])
        self.model = applied.apply(self.module, self.optimizer)
        self.batches = Batches(len(self.images), 1000 + task["seed"])
        self.loss = nn.CrossEntropyLoss()

    def step(self, number):
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(number, self.task["steps"], self.task["rate"])
        batch = self.batches.next()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.model(self.images[batch]), self.classes[batch])
        loss.backward()
        self.model.loss(loss)  # an adaptive period follows it
        self.optimizer.step()
        return float(loss)

    @torch.no_grad()
    def score(self):
        """Loss and accuracy on the images held out, of the mean of the ranks' parameters, which
        differ where LocalSGD is inside a period."""
        parameters = list(self.module.parameters())
        own = [p.clone() for p in parameters]
        for p in parameters:
            dist.all_reduce(p)
            p.div_(dist.get_world_size())
        told = self.module(self.held)
        for p, before in zip(parameters, own):
            p.copy_(before)
        right = (told.argmax(1) == self.held_classes).float().mean()
        return float(self.loss(told, self.held_classes)), float(right)

    def run(self):
        """[step, seconds of training until there, loss, accuracy, mean loss of the batches since
        the look before] from step 0 on; the first loss is that of the images held out."""
        points = [[0, 0.0, *self.score()]]
        points[0].append(points[0][2])
        seconds = 0.0
        dist.barrier()
        for first in range(0, self.task["steps"], EVERY):
            begin = time.perf_counter()
            losses = [self.step(number) for number in range(first, first + EVERY)]
            dist.barrier()
            seconds += time.perf_counter() - begin
            points.append([first + EVERY, seconds, *self.score(), sum(losses) / EVERY])
            if self.reached(points):
                break
        return points

    def reached(self, points):
        """What crosses the target is a mean of three looks: one more than the first above it."""
        target = self.task["target"]
        done = target is not None and len(points) > 3 and \
            sum(point[3] for point in points[-3:]) / 3 >= target and points[-1][3] >= target
        return agreed(done)


def agreed(flag):
    """As rank 0 has it: ranks decide together, or one would wait for ever."""
    told = torch.tensor([int(flag)])
    dist.broadcast(told, src=0)
    return bool(told)


def train(tasks, limit):
    data = digits()
    began = time.monotonic()
    for task in tasks:
        if not agreed(time.monotonic() - began < limit):
            break
        points = Training(task, data).run()
        if dist.get_rank() == 0:
            beside = task["out"] + ".part"
            with open(beside, "w", encoding="utf-8") as file:
                json.dump({**task, "ranks": dist.get_world_size(), "points": points}, file)
            os.replace(beside, task["out"])
            print(f"{task['out']}: {points[-1]}", file=sys.stderr, flush=True)


def record(name, out):
    from syncline_record import record as recorded
    images, classes, _, _ = digits()
    torch.manual_seed(1)
    module = MODELS[name]()
    optimizer = torch.optim.SGD(module.parameters(), 0.01, momentum=0.9)
    model, loss = DistributedDataParallel(module), nn.CrossEntropyLoss()
    batches = Batches(len(images), 1)

    def step():
        batch = batches.next()
        optimizer.zero_grad(set_to_none=True)
        loss(model(images[batch]), classes[batch]).backward()
        optimizer.step()
    recorded(model, step, steps=160, name=name, batch=BATCH, out=out)


def main():
    torch.set_num_threads(1)
    # A processor for each rank, or a share of one where there are more ranks.
    os.sched_setaffinity(0, {int(os.environ["RANK"]) % os.cpu_count()})
    dist.init_process_group("gloo")
    if sys.argv[1] == "record":
        record(sys.argv[2], sys.argv[3])
    else:
        with open(sys.argv[2], encoding="utf-8") as file:
            train(json.load(file), float(sys.argv[3]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
