"""A rank of a training in the lab, started by train.py.

    rank.py record MODEL OUT.json STEPS LOOKS   the job as syncline_record sees it
    rank.py train TASKS.json SECONDS            every task that is begun within so many seconds

A task is {"model", "apply": a file of `syncline emit --python`, "leave_out": a part of DGC or null,
"seed", "rate", "steps", "target": an accuracy to stop at or null, "out": the file for its result}.
"""

import json
import math
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

import ranks

BATCH = 32  # images a rank and step
BATCHES = {"characters": 8}  # rows of text
ROW = 64  # characters
CHARACTERS = 97  # that are told apart: line ends, ASCII from blank to tilde, all others
WARM_UP = 20  # steps in which the learning rate rises
HELD_OUT = 500  # images or rows that no rank trains on
EVERY = 16  # steps between two looks at them
# Steps until the first. No fragment of train.py's is on its way then: they are sent at the end of
# every 8th or 16th step from the 5th or 13th on and taken 4 later. One on its way would arrive while
# the clock stands still.
FIRST = 3


def convnet():
    return nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
                         nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Flatten(),
                         nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 10))


class Causal(nn.Module):
    """A convolution over the characters until now."""

    def __init__(self, channels, wanted, width=5):
        super().__init__()
        self.convolution = nn.Conv1d(channels, wanted, width)
        self.before = width - 1

    def forward(self, x):
        return torch.relu(self.convolution(nn.functional.pad(x, (self.before, 0))))


class Embedded(nn.Module):
    """Characters' codes as columns."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(CHARACTERS, 64)

    def forward(self, x):
        return self.table(x).transpose(1, 2)


def characters():
    return nn.Sequential(Embedded(), Causal(64, 128), Causal(128, 128), Causal(128, 128),
                         nn.Conv1d(128, CHARACTERS, 1))


MODELS = {"mlp": lambda: ranks.mlp(64, 256, 2), "convnet": convnet, "characters": characters}


def split(x, y):
    """What to train on, and what is held out: the same for everybody."""
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    held, taught = order[:HELD_OUT], order[HELD_OUT:]
    return x[taught], y[taught], x[held], y[held]


def digits():
    """Images and their classes."""
    from sklearn.datasets import load_digits
    images, classes = load_digits(return_X_y=True)
    return split(torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(classes))


def licences():
    """Rows of the texts that Debian's base-files ships, each character's next as its class."""
    texts = [path.read_text(encoding="utf-8", errors="ignore")
             for path in sorted(pathlib.Path("/usr/share/common-licenses").iterdir())
             if not path.is_symlink()]
    codes = torch.tensor([min(max(ord(letter) - 31, 0), CHARACTERS - 1) for letter in "".join(texts)])
    rows = codes[:len(codes) // (ROW + 1) * (ROW + 1)].view(-1, ROW + 1)
    return split(rows[:, :-1], rows[:, 1:])


class Learning(ranks.Job):
    """A model that learns its data: every epoch all of it in a new order, dealt out to the ranks
    batch by batch."""

    def __init__(self, model, data, rate, seed):
        torch.manual_seed(seed)
        super().__init__(MODELS[model](), data[0], data[1], rate)
        self.size = BATCHES.get(model, BATCH)
        self.dice = torch.Generator().manual_seed(1000 + seed)
        self.order = torch.empty(0, dtype=torch.long)

    def batch(self):
        together = self.size * dist.get_world_size()
        if len(self.order) < together:
            self.order = torch.randperm(len(self.x), generator=self.dice)
        batch, self.order = self.order[:together], self.order[together:]
        own = batch[self.size * dist.get_rank():][:self.size]
        return self.x[own], self.y[own]


def data_of(model):
    return licences() if model == "characters" else digits()


def learning_rate(step, steps, most):
    """Rises to `most`, then falls to nothing by half a cosine."""
    if step < WARM_UP:
        return most * (step + 1) / WARM_UP
    return most * (1 + math.cos(math.pi * (step - WARM_UP) / (steps - WARM_UP))) / 2


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
        self.held, self.held_classes = data[2:]
        self.job = Learning(task["model"], data, task["rate"], task["seed"])
        applied = ranks.applied_file(task["apply"])
        leave_out(applied, task["leave_out"])
        self.model = applied.apply(self.job.module, self.job.optimizer)

    def step(self, number):
        for group in self.job.optimizer.param_groups:
            group["lr"] = learning_rate(number, self.task["steps"], self.task["rate"])

        def told(part, loss):
            if part == "backward":
                self.model.loss(loss)  # an adaptive period follows it
        return float(self.job.step(self.model, told))

    @torch.no_grad()
    def score(self):
        """Loss and accuracy on the images held out, of the mean of the ranks' parameters, which
        differ where LocalSGD is inside a period."""
        parameters = list(self.job.module.parameters())
        own = nn.utils.parameters_to_vector(parameters)
        mean = own.clone()
        dist.all_reduce(mean)  # all at once: over a long link each of them takes its latency
        self.put(parameters, mean.div_(dist.get_world_size()))
        said = self.job.module(self.held)
        self.put(parameters, own)
        right = (said.argmax(1) == self.held_classes).float().mean()
        return float(self.job.loss(said, self.held_classes)), float(right)

    @staticmethod
    def put(parameters, values):
        for p, own in zip(parameters, values.split([p.numel() for p in parameters])):
            p.copy_(own.view_as(p))

    def run(self):
        """[step, seconds of training until there, loss, accuracy, mean loss of the batches since
        the look before] from step 0 on; the first loss is that of the images held out."""
        points = [[0, 0.0, *self.score()]]
        points[0].append(points[0][2])
        seconds = 0.0
        dist.barrier()
        looks = [*range(FIRST, self.task["steps"], EVERY), self.task["steps"]]
        for before, now in zip([0, *looks], looks):
            begin = time.perf_counter()
            losses = [self.step(number) for number in range(before, now)]
            taken = torch.tensor([time.perf_counter() - begin])
            dist.all_reduce(taken, dist.ReduceOp.MAX)  # not the barrier's own time over a long link
            seconds += float(taken)
            points.append([now, seconds, *self.score(), sum(losses) / len(losses)])
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
    data = {}
    began = time.monotonic()
    with open(tasks, encoding="utf-8") as file:
        listed = json.load(file)
    for task in listed:
        if not agreed(time.monotonic() - began < float(limit)):
            break
        model = task["model"]
        data.setdefault(model, data_of(model))
        points = Training(task, data[model]).run()
        ranks.write(task["out"], {**task, "ranks": dist.get_world_size(), "points": points})
        if dist.get_rank() == 0:
            print(f"{task['out']}: {points[-1]}", file=sys.stderr, flush=True)


def record(*arguments):
    ranks.record(lambda name: Learning(name, data_of(name), 0.01, 1), *arguments)


if __name__ == "__main__":
    ranks.run(record, train)
