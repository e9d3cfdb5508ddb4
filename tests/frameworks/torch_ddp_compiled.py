"""A compiled model under DistributedDataParallel on random models: the pieces into which
DDPOptimizer cuts its graph, and the buckets of the third step, each with the number of gradients
that were there when it went."""

import re

import torch
import torch.distributed as dist
from torch import nn
from torch._dynamo.backends import distributed
from torch.nn.parallel import DistributedDataParallel

import common

RANKS = 4
WIDTHS = (3, 16, 40)


class Block(nn.Module):
    """Layers by chance, with names that are found again in a graph's; some blocks add their input."""

    def __init__(self, rng, width, depth, counter):
        super().__init__()
        self.parts = []
        self.adds = rng.random() < 0.4
        for _ in range(rng.randrange(1, 5)):
            name = f"m{next(counter)}x"
            kind = rng.random()
            if depth > 0 and kind < 0.35:
                part = Block(rng, width, depth - 1, counter)
            elif kind < 0.7:
                inner = rng.choice(WIDTHS)
                hidden = f"m{next(counter)}x"
                self.add_module(hidden, nn.Linear(width, inner, bias=rng.random() < 0.7))
                self.parts.append(hidden)
                part = nn.Linear(inner, width, bias=rng.random() < 0.7)
            elif kind < 0.85:
                part = nn.LayerNorm(width)
            else:
                part = nn.ReLU()
            self.add_module(name, part)
            self.parts.append(name)

    def forward(self, x):
        y = x
        for name in self.parts:
            y = getattr(self, name)(y)
        return x + y if self.adds else y


class Net(nn.Module):
    def __init__(self, rng):
        super().__init__()
        counter = iter(range(1000))
        width = rng.choice(WIDTHS)
        self.first = nn.Linear(4, width)
        self.body = nn.ModuleList(Block(rng, width, 2, counter) for _ in range(rng.randrange(1, 4)))
        self.last = nn.Linear(width, 2)

    def forward(self, x):
        x = self.first(x)
        for block in self.body:
            x = block(x)
        return self.last(x)


def words(rng):
    cap = rng.choice([0.0005, 0.002, 0.01, 0.05, 25])
    first = rng.choice([1, 300, 500])
    return {"bucket_cap_mb": cap, "_DEFAULT_FIRST_BUCKET_BYTES": first, "torch_compile": True}, first


def name_of(mangled, names):
    """The parameter's name, of a placeholder's or a submodule's."""
    found = re.findall(r"(m\d+x|first|last)\w*?_(weight|bias)", mangled)
    module, leaf = found[-1]
    module = re.findall(r"m\d+x|first|last", mangled)[-1]
    return next(n for n in names if n.split(".")[-2:] == [module, leaf])


def arrivals(model, x):
    """Names in the order in which the eager backward pass makes the gradients."""
    order = []
    hooks = [p.register_hook(lambda _, n=n: order.append(n)) for n, p in model.named_parameters()]
    model(x).sum().backward()
    for hook in hooks:
        hook.remove()
    model.zero_grad()
    return order


def case_of(seed):
    rng = common.draw(seed)
    torch._dynamo.reset()
    model = Net(rng)
    config, first = words(rng)
    dist._DEFAULT_FIRST_BUCKET_BYTES = first
    x = torch.randn(2, 4)
    order = arrivals(model, x)
    pieces = []

    class Watched(distributed.DDPOptimizer):
        def compile_fn(self, gm, inputs, **options):
            done = super().compile_fn(gm, inputs, **options)
            pieces.extend([name_of(p, order) for p in bucket.params]
                          for bucket in reversed(self.buckets))
            return done

    original, distributed.DDPOptimizer = distributed.DDPOptimizer, Watched
    ddp = DistributedDataParallel(model, bucket_cap_mb=config["bucket_cap_mb"])
    names = {id(p): n for n, p in model.named_parameters()}
    arrived = []
    for name, p in model.named_parameters():
        p.register_post_accumulate_grad_hook(lambda _, name=name: arrived.append(name))

    buckets = common.watch_buckets(ddp, names, arrived)
    compiled = torch.compile(ddp, backend="aot_eager")
    for _ in range(3):
        arrived.clear()
        buckets.clear()
        compiled(x).sum().backward()
    distributed.DDPOptimizer = original
    place = {name: i for i, name in enumerate(order)}
    registered = [n for n, _ in model.named_parameters()]
    parameters = dict(model.named_parameters())
    return {"seed": seed, "config": config,
            "tensors": [common.tensor_of(n, parameters[n]) for n in order],
            "registered": [registered.index(n) for n in order],
            "pieces": [sorted(place[n] for n in piece) for piece in pieces],
            "arrived": [place[n] for n in arrived],
            "later": [[[place[n] for n in b[0]], b[1], b[2]] for b in buckets]}


def main():
    common.quiet()
    common.join(RANKS)
    cases = [case_of(seed) for seed in range(60)]
    common.write(common.out(), {
        "framework": "torch", "version": torch.__version__, "rule": "ddp_compiled", "ranks": RANKS,
        "about": "pieces: tensors, the last one first; later: a bucket's tensors, the gradients "
                 "that were there, elements"}, cases)


main()
