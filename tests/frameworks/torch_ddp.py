"""DistributedDataParallel: its buckets on random models, in the first step and in the third, each
with the number of gradients that were there when it went."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import common

RANKS = 4


class Chain(nn.Module):
    """Parameters used one after the other, in another order than the one they are registered in."""

    def __init__(self, rng):
        super().__init__()
        self.names = []
        mixed = rng.random() < 0.3
        largest = rng.choice([100, 3000, 40000])
        for i in range(rng.randrange(1, 24)):
            dtype = rng.choice(list(common.DTYPES)) if mixed else torch.float32
            shape = [rng.randrange(1, largest)] if rng.random() < 0.5 else [
                rng.randrange(1, 60), rng.randrange(1, max(2, largest // 30))]
            self.names.append(f"p{i}")
            self.register_parameter(f"p{i}", nn.Parameter(torch.zeros(shape, dtype=dtype)))
        if rng.random() < 0.6:
            rng.shuffle(self.names)

    def forward(self, x, passes=1):
        for name in self.names:
            x = x + getattr(self, name).double().sum()
        return x


def words(rng):
    config = {}
    first = 2 ** 20
    if rng.random() < 0.75:
        config["bucket_cap_mb"] = rng.choice([0.001, 0.01, 0.05, 0.25, 1, 25])
    if rng.random() < 0.4:
        first = config["_DEFAULT_FIRST_BUCKET_BYTES"] = rng.choice([1, 2000, 30000])
    choice = rng.random()
    if choice < 0.2:
        config["find_unused_parameters"] = True
    elif choice < 0.4:
        config["static_graph"] = True
    elif choice < 0.5:
        config["static_graph"] = config["find_unused_parameters"] = True
    if rng.random() < 0.3:
        config["gradient_as_bucket_view"] = True
    return config, first


def case_of(seed):
    rng = common.draw(seed)
    model = Chain(rng)
    config, first = words(rng)
    dist._DEFAULT_FIRST_BUCKET_BYTES = first
    ddp = DistributedDataParallel(
        model, **{k: v for k, v in config.items() if not k.startswith("_")})
    names = {id(p): n for n, p in model.named_parameters()}
    arrived = []
    for name, parameter in model.named_parameters():
        parameter.register_hook(lambda _, name=name: arrived.append(name))

    buckets = common.watch_buckets(ddp, names, arrived)
    steps = []
    for _ in range(3):
        arrived.clear()
        buckets.clear()
        ddp(torch.zeros((), dtype=torch.float64, requires_grad=True)).backward()
        steps.append(list(buckets))
    order = list(arrived)
    place = {name: i for i, name in enumerate(order)}
    registered = [n for n, _ in model.named_parameters()]
    parameters = dict(model.named_parameters())
    as_places = lambda step: [[[place[n] for n in b[0]], b[1] - 1, b[2]] for b in step]
    return {"seed": seed, "config": config,
            "tensors": [common.tensor_of(n, parameters[n]) for n in order],
            "registered": [registered.index(n) for n in order],
            "first": as_places(steps[0]), "later": as_places(steps[2])}


def main():
    common.quiet()
    common.join(RANKS)
    cases = [case_of(seed) for seed in range(100)]
    common.write(common.out(), {
        "framework": "torch", "version": torch.__version__, "rule": "ddp", "ranks": RANKS,
        "about": "buckets: tensors, the last gradient that was there, elements"}, cases)


main()
