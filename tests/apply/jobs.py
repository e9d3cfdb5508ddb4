"""Training jobs to which strategies are applied, checked against DistributedDataParallel and loops
by hand.

    jobs.py CASES RANK RANKS FOLDER    CASES: a name in _CASES; ranks meet through a file in FOLDER

Exit code 0: every check held.
"""

import copy
import functools
import math
import os
import signal
import sys
import time
import types

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import syncline_apply as applier

_STEPS = 20
# In the order in which gradients become ready.
_NAMES = ["6.bias", "6.weight", "4.bias", "4.weight", "2.bias", "2.weight", "1.bias", "1.weight",
          "0.bias", "0.weight"]


def net():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(12, 40), nn.BatchNorm1d(40), nn.Linear(40, 33), nn.ReLU(),
                         nn.Linear(33, 20), nn.Tanh(), nn.Linear(20, 4))


def sgd(model):
    return torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-3)


def begun(table, **how):
    """A net, its optimizer, and the net with the strategy applied."""
    model = net()
    optimizer = sgd(model)
    return model, optimizer, applier.apply(model, optimizer, strategy=table, **how)


def parameters_of(model):
    return [p.detach().clone() for p in model.parameters()]


def strategy(buckets, names=None, **more):
    """One of this net; buckets are lists of places."""
    sizes = {name: p.numel() for name, p in net().named_parameters()}
    gradients = [[(names or {}).get(name, name), sizes[name]] for name in _NAMES]
    made = [b if isinstance(b, dict) else {"places": b} for b in buckets]
    return {"name": "a test's", "ranks": dist.get_world_size(), "streams": 1,
            "gradients": gradients, "buckets": made, **more}


def batch(step):
    dice = torch.Generator().manual_seed(1000 * step + dist.get_rank())
    return torch.randn(6, 12, generator=dice), torch.randn(6, 4, generator=dice)


def train(model, optimizer, steps=_STEPS, late=0.0, set_to_none=True, begin=0):
    for step in range(begin, begin + steps):
        optimizer.zero_grad(set_to_none=set_to_none)
        x, y = batch(step)
        loss = (model(x) - y).pow(2).mean()
        if late and step % 3 == dist.get_rank():
            time.sleep(late)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.7)  # sees the mean, or ranks drift apart
        optimizer.step()


def trained_by(wrap, **how):
    model = net()
    optimizer = sgd(model)
    train(wrap(model, optimizer), optimizer, **how)
    return parameters_of(model)


def by_ddp(hook=None, state=None, **how):
    def wrap(model, _):
        ddp = DistributedDataParallel(model, broadcast_buffers=False)
        if hook is not None:
            ddp.register_comm_hook(state, hook)
        return ddp
    return trained_by(wrap, **how)


def by_strategy(table, find_unused=False, **how):
    return trained_by(lambda model, optimizer: applier.apply(
        model, optimizer, strategy=table, find_unused_parameters=find_unused, timeout=60), **how)


def check_close(found, wanted, what, exactly=False):
    for a, b in zip(found, wanted):
        assert torch.equal(a, b) if exactly else torch.allclose(a, b, rtol=1e-4, atol=1e-6), (
            what, (a - b).abs().max())
    assert all(torch.isfinite(a).all() for a in found), what


def check_same_on_all(found, what):
    for t in found:
        first = t.clone()
        dist.broadcast(first, src=0)
        assert torch.equal(first, t), what


def raises(what, *parts):
    try:
        what()
    except RuntimeError as error:
        for part in ("syncline_apply: ", *parts):
            assert part in str(error), error
        assert "\n" not in str(error), error
    else:
        raise AssertionError(parts)


_ALL = list(range(10))
_GROUPINGS = {
    "one": [_ALL],
    "each alone": [[i] for i in _ALL],
    "runs": [[0, 1, 2], [3, 4], [5, 6, 7, 8, 9]],
    "not contiguous": [[0, 3, 9], [1, 2, 8], [4, 5, 6, 7]],
    "out of order": [[8, 9], [4, 5, 6, 7], [0, 1, 2, 3]],
}


def groupings_and_streams(folder):
    wanted = by_ddp()
    check_same_on_all(wanted, "DDP")
    # Two summands make one sum, in whatever order.
    exactly = dist.get_world_size() == 2
    for name, buckets in _GROUPINGS.items():
        for streams in (1, 2, 3):
            found = by_strategy(strategy(buckets, streams=streams))
            check_close(found, wanted, (name, streams), exactly)
            check_same_on_all(found, (name, streams))
    runs = _GROUPINGS["runs"]
    check_close(by_strategy(strategy(runs, overlap=0)), wanted, "at the end", exactly)
    check_close(by_strategy(strategy(runs), set_to_none=False), wanted, "kept gradients", exactly)
    check_close(by_strategy(strategy(runs, streams=2), late=0.02), wanted, "late", exactly)
    check_close(by_strategy(strategy(runs), find_unused=True), wanted, "none unused", exactly)
    unknown = {name: f"layer_{i}" for i, name in enumerate(_NAMES)}
    check_close(by_strategy(strategy(_GROUPINGS["not contiguous"], unknown)), wanted, "by place",
                exactly)


def views(folder):
    """What .grad holds lies in the flat buffer that travels, so that nothing is copied."""
    runs = _GROUPINGS["runs"]
    model, optimizer, wrapped = begun(strategy(runs), timeout=60)
    parameters = dict(model.named_parameters())
    for set_to_none in (False, True):
        train(wrapped, optimizer, steps=2, set_to_none=set_to_none)
        buffers = [{parameters[_NAMES[i]].grad.storage().data_ptr() for i in places}
                   for places in runs]
        assert all(len(pointers) == 1 for pointers in buffers), buffers
        assert len(set.union(*buffers)) == len(runs), buffers


def halves(folder):
    table = strategy([{"places": b, "codec": "fp16"} for b in _GROUPINGS["runs"]], streams=2)
    check_close(by_strategy(table), by_ddp(default_hooks.fp16_compress_hook), "fp16", True)


def hierarchies(folder):
    wanted = by_ddp()
    for form in ("leaders", "sharded"):
        for size in (2, 4, 1):
            for first in (0, 1):
                table = strategy(_GROUPINGS["not contiguous"], streams=2, hierarchy={
                    "form": form, "group_size": size, "first_all_reduce": first})
                found = by_strategy(table)
                check_close(found, wanted, (form, size, first))
                check_same_on_all(found, (form, size, first))
    table["hierarchy"]["group_size"] = 3
    raises(lambda: by_strategy(table), "groups of 3 ranks do not divide 4")


def later_torch(folder):
    """Stand-ins for the hooks of torch 2, which do the same on this one and count."""
    wanted = by_strategy(strategy(_GROUPINGS["runs"]))
    calls = []

    def gradient_hook(parameter, hook):
        accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]

        def counted(*_):
            calls.append("gradient")
            hook(parameter)
        accumulator.register_hook(counted)
        return accumulator

    def step_hook(which):
        def register(optimizer, hook):
            inner = optimizer.step

            def step(optimizer, *args, **kwargs):
                if which == "before":
                    calls.append(which), hook(optimizer, args, kwargs)
                inner(*args, **kwargs)
                if which == "after":
                    calls.append(which), hook(optimizer, args, kwargs)
            optimizer.step = types.MethodType(step, optimizer)
        return register
    torch.Tensor.register_post_accumulate_grad_hook = gradient_hook
    torch.optim.Optimizer.register_step_pre_hook = step_hook("before")
    torch.optim.Optimizer.register_step_post_hook = step_hook("after")
    try:
        check_close(by_strategy(strategy(_GROUPINGS["runs"])), wanted, "later", True)
    finally:
        del torch.Tensor.register_post_accumulate_grad_hook
        del torch.optim.Optimizer.register_step_pre_hook
        del torch.optim.Optimizer.register_step_post_hook
    assert calls.count("gradient") == 10 * _STEPS, len(calls)
    assert (calls.count("before"), calls.count("after")) == (_STEPS, _STEPS)


def accumulated(wrap, look=lambda model, wrapped, step: None):
    """A model after steps of two backward passes: the first adds up, the second exchanges both."""
    model = net()
    optimizer = sgd(model)
    wrapped = wrap(model, optimizer)
    for step in range(6):
        optimizer.zero_grad()
        with wrapped.no_sync():
            x, y = batch(2 * step)
            (wrapped(x) - y).pow(2).mean().backward()
        x, y = batch(2 * step + 1)
        (wrapped(x) - y).pow(2).mean().backward()
        optimizer.step()
        look(model, wrapped, step)
    return model


def accumulation(folder):
    table = strategy(_GROUPINGS["runs"])
    found = accumulated(lambda model, optimizer: applier.apply(model, optimizer, strategy=table))
    wanted = accumulated(lambda model, _: DistributedDataParallel(model, broadcast_buffers=False))
    check_close(parameters_of(found), parameters_of(wanted), "accumulation")


def statistics_of_batch_norm(folder):
    """Buffers as DDP leaves them: through accumulation, and a look at the model in between."""
    def look(model, wrapped, step):
        if step % 2 == 0:
            model.eval()
            with torch.no_grad():
                wrapped(batch(99)[0])
            model.train()

    def buffers(wrap):
        return [b.clone() for b in accumulated(wrap, look).buffers()]
    found = {}
    for on in (True, False):
        table = strategy(_GROUPINGS["runs"], **({} if on else {"broadcast_buffers": 0}))
        found[on] = buffers(
            lambda model, optimizer, table=table: applier.apply(model, optimizer, strategy=table))
        wanted = buffers(
            lambda model, _, on=on: DistributedDataParallel(model, broadcast_buffers=on))
        check_close(found[on], wanted, ("buffers", on), True)
    assert dist.get_rank() == 0 or not torch.equal(found[True][0], found[False][0])


def schedulers_and_copies(folder):
    """A scheduler wraps step(), before or after; an average of the weights copies the module."""
    for first in (True, False):
        model = net()
        optimizer = sgd(model)
        made = [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)] if first else []
        applied = applier.apply(model, optimizer, strategy=strategy(_GROUPINGS["runs"]))
        made += [] if first else [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]
        train(applied, optimizer, steps=1)
        made[0].step()
        assert optimizer.param_groups[0]["lr"] == 0.025
        copy.deepcopy(applied.module)(torch.zeros(2, 12))
        assert set(applied.state_dict()) == {"module." + key for key in model.state_dict()}


def local_sgd(folder):
    """Against a loop by hand: own steps, then the mean of parameters and statistics."""
    def by_hand(period, begin):
        model = net()
        optimizer = sgd(model)
        last = 0
        for step in range(1, _STEPS + 1):
            train(model, optimizer, steps=1, begin=step - 1)
            if step <= begin or step - last >= period:
                last = step
                for places in buckets:
                    average([tensors(model)[place] for place in places])
        return [t.detach().clone() for t in averaged(model)], last

    def average(group):
        # Side by side, so that a ring adds in the same order.
        flat = torch.cat([t.detach().flatten() for t in group])
        dist.all_reduce(flat)
        flat.div_(dist.get_world_size())
        for t, mean in zip(group, flat.split([t.numel() for t in group])):
            t.data.copy_(mean.view_as(t))

    def averaged(model):
        return [*model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]

    def tensors(model):
        own = dict(model.named_parameters())
        return [own[name] for name in _NAMES] + averaged(model)[-2:]
    buckets = [_ALL[5:], [10, 11], _ALL[:5]]
    buffers = [["1.running_mean", 40], ["1.running_var", 40]]
    for period, begin, streams in ((4, 1, 1), (4, 3, 2), (1, 0, 1), (7, 0, 2)):
        table = strategy(buckets, streams=streams, buffers=buffers,
                         local_sgd={"period": period, "begin_step": begin})
        model, optimizer, applied = begun(table)
        train(applied, optimizer)
        found = [t.detach().clone() for t in averaged(model)]
        wanted, last = by_hand(period, begin)
        check_close(found, wanted, ("local", period, begin), True)
        if last < _STEPS:
            apart = [t.clone() for t in found]
            dist.broadcast(apart[0], src=0)
            assert dist.get_rank() == 0 or not torch.equal(apart[0], found[0])
            applied.average()
            check_same_on_all([t.detach() for t in averaged(model)], "the training's end")


class ByHand:
    """DiLoCo as its papers have it: torch's own optimizers on a second copy of the parameters, each
    fragment's exchange where it is sent, its step where it is applied."""

    def __init__(self, group, fragments, period, delay, outer, begin=0, rounded=None):
        self.begin = begin
        self.rounded = rounded  # what sending makes of a row of values
        self.group, self.fragments, self.period, self.delay = group, fragments, period, delay
        self.model = net()
        self.optimizer = sgd(self.model)
        own = dict(self.model.named_parameters())
        self.own = [[own[_NAMES[place]] for place in places] for places in fragments]
        self.start = [[p.detach().clone().requires_grad_() for p in part] for part in self.own]
        nesterov = outer["optimizer"] == "nesterov"
        self.outer = [torch.optim.SGD(part, outer["rate"], nesterov=nesterov,
                                      momentum=outer["momentum"] if nesterov else 0)
                      for part in self.start]
        self.mix = outer.get("mix", 0.0)
        self.sums = {}
        ranks, me = dist.get_world_size(), dist.get_rank()
        peers = [dist.new_group(list(range(place, ranks, group))) for place in range(group)]
        blocks = [dist.new_group(list(range(first, first + group)))
                  for first in range(0, ranks, group)]
        self.peers, self.block = peers[me % group], blocks[me // group]
        self.replicas = ranks // group

    def step(self, number):
        self.optimizer.zero_grad()
        x, y = batch(number)
        (self.model(x) - y).pow(2).mean().backward()
        if self.group > 1:
            for p in self.model.parameters():
                p.grad.mul_(1.0 / self.group)
                dist.all_reduce(p.grad, group=self.block)
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.7)
        self.optimizer.step()
        place = (number - self.begin) % self.period + 1
        for f in range(len(self.fragments)):
            applied = (f + 1) * self.period // len(self.fragments)
            sent = applied - self.delay
            if number < self.begin:
                applied = sent = place
            if place == sent:
                self.sums[f] = self.means([start.detach() - own.detach()
                                           for start, own in zip(self.start[f], self.own[f])])
            if place == applied:
                self.apply(f)

    def means(self, gradients):
        if self.rounded is None:
            return [self.mean(gradient) for gradient in gradients]
        row = torch.cat([gradient.reshape(-1) for gradient in gradients])
        sent = [torch.empty_like(row) for _ in range(self.replicas)]
        dist.all_gather(sent, torch.from_numpy(self.rounded(row.numpy())), group=self.peers)
        total = sent[0]
        for other in sent[1:]:
            total = total + other
        mean = torch.from_numpy(self.rounded(total.numpy())) / self.replicas
        parts = mean.split([gradient.numel() for gradient in gradients])
        return [part.view_as(gradient) for part, gradient in zip(parts, gradients)]

    def mean(self, gradient):
        gradient.mul_(1.0 / self.replicas)
        dist.all_reduce(gradient, group=self.peers)
        return gradient

    @torch.no_grad()
    def apply(self, f):
        for start, gradient in zip(self.start[f], self.sums.pop(f)):
            start.grad = gradient
        self.outer[f].step()
        for start, own in zip(self.start[f], self.own[f]):
            own.copy_(torch.lerp(start, own, self.mix) if self.mix else start)


def far_apart(folder):
    """To the bit, where two replicas are summed: then there is one order."""
    nesterov = {"optimizer": "nesterov", "rate": 0.7, "momentum": 0.9}
    sgd_half = {"optimizer": "sgd", "rate": 0.5}
    ranks = dist.get_world_size()
    for group, fragments, period, delay, outer in (
            (1, [_ALL], 4, 0, nesterov), (1, [_ALL], 4, 3, sgd_half), (1, [_ALL], 1, 0, nesterov),
            (1, [_ALL[5:], _ALL[:5]], 6, 0, nesterov), (1, [_ALL[5:], _ALL[:5]], 6, 2, nesterov),
            (1, [_ALL[5:], _ALL[:5]], 7, 1, {**nesterov, "mix": 0.25}),
            (1, [_ALL[5:], _ALL[:5]], [8, 4], 1, nesterov),
            (2, [_ALL[5:], _ALL[:5]], 6, 2, nesterov)):
        if group >= ranks:
            continue
        local = {"period": period, "begin_step": 0, "delay": delay, "group": group, "outer": outer}
        steps = _STEPS
        if isinstance(period, list):  # of the first half of the ranks, and of the second
            local["periods"], local["period"] = period, sum(period) // 2
            period = period[dist.get_rank() * 2 // ranks]
            steps = 2 * period
        averaged = [{"places": places, "fragment": f} for f, places in enumerate(fragments)]
        table = strategy([_ALL[:4], _ALL[4:]], local_sgd=local, averaged=averaged)
        model, optimizer, applied = begun(table)
        by_hand = ByHand(group, fragments, period, delay, outer)
        for step in range(steps):
            train(applied, optimizer, steps=1, begin=step)
            by_hand.step(step)
        found, wanted = parameters_of(model), parameters_of(by_hand.model)
        exact = ranks // group == 2 and (group == 1 or ranks == 4)
        check_close(found, wanted, ("far apart", group, len(fragments), period, delay), exact)
        applied.average()
        if not outer.get("mix"):
            check_same_on_all(parameters_of(model), "the training's end")


def whole_numbers(most):
    """Blocks of 128 as whole numbers up to `most` times a scale, element by element."""
    def rounded(row):
        values = numpy.empty_like(row)
        for begin in range(0, len(row), 128):
            block = row[begin:begin + 128]
            scale = numpy.abs(block).max() / numpy.float32(most)
            for i, value in enumerate(block):
                code = numpy.rint(value / scale) if scale > 0 else numpy.float32(0)
                values[begin + i] = scale * min(max(code, -most), most)
        return values
    return rounded


def far_apart_in_low_precision(folder):
    outer = {"optimizer": "nesterov", "rate": 0.7, "momentum": 0.9}
    ranks = dist.get_world_size()
    for codec, most in (("int8", 127), ("int4", 7)):
        for group in (1, 2):
            if group >= ranks:
                continue
            fragments = [_ALL[5:], _ALL[:5]]
            local = {"period": 6, "begin_step": 0, "delay": 2, "group": group, "outer": outer}
            averaged = [{"places": places, "fragment": f, "codec": codec}
                        for f, places in enumerate(fragments)]
            model, optimizer, applied = begun(strategy([_ALL], local_sgd=local, averaged=averaged))
            by_hand = ByHand(group, fragments, 6, 2, outer, rounded=whole_numbers(most))
            for step in range(_STEPS):
                train(applied, optimizer, steps=1, begin=step)
                by_hand.step(step)
            check_close(parameters_of(model), parameters_of(by_hand.model),
                        ("far apart", codec, group), ranks // group == 2)
            applied.average()
            check_same_on_all(parameters_of(model), "the training's end")


def low_precision(folder):
    """Writes each step's gradients of this rank and what came of them, for the codecs to judge."""
    for codec in ("int8", "int4", "fp8", "fp8_e5m2"):
        buckets = [{"places": places, "codec": codec} for places in _GROUPINGS["runs"]]
        model, optimizer, applied = begun(strategy(buckets, streams=2))
        own = dict(model.named_parameters())
        with open(f"{folder}/{codec}-{dist.get_rank()}", "wb") as file:
            write_steps(applied, optimizer, own, file)
        check_same_on_all(list(own.values()), codec)
    numbers = applier._BLOCKS["fp8"]
    bad = torch.cat([torch.full((128,), 1e-3), torch.full((100,), math.inf), torch.zeros(130)])
    back = numbers.unpack(numbers.pack(bad))
    assert torch.isnan(back[128:256]).all() and torch.isfinite(back[:128]).all(), back
    assert not back[256:].any() and back.numel() == 384, back


def far_apart_goes_on(folder):
    """From a checkpoint, with a fragment under way: as if it had not been stopped."""
    outer = {"optimizer": "nesterov", "rate": 0.7, "momentum": 0.9}
    local = {"period": 6, "begin_step": 0, "delay": 2, "outer": outer}
    averaged = [{"places": _ALL[5:], "fragment": 0}, {"places": _ALL[:5], "fragment": 1}]
    table = strategy([_ALL], local_sgd=local, averaged=averaged)

    _, optimizer, through = begun(table)
    train(through, optimizer, steps=17)
    _, optimizer, first = begun(table)
    train(first, optimizer, steps=11)
    assert any(f.under_way for f in first._exchange.fragments)
    kept = copy.deepcopy((first.state_dict(), optimizer.state_dict()))
    train(first, optimizer, steps=3)  # what comes of it no longer matters
    _, optimizer, second = begun(table)
    second.load_state_dict(kept[0])
    optimizer.load_state_dict(kept[1])
    train(second, optimizer, steps=6, begin=11)
    check_close(parameters_of(second), parameters_of(through), "goes on", True)


def adaptive_local_sgd(folder):
    """Averaged when the rule says so, told of losses of which each rank knows its own."""
    def mean_loss(step):
        return 2.0 * 0.9 ** step  # rank by rank a tenth apart

    def wanted(begin, init, most):
        """The steps of averaging: the least period whose square reaches the rule's."""
        steps, step, period = [], 0, None
        while step <= 24:
            step += 1
            period = period or next(k for k in range(1, 99) if k * k >= init or k == most)
            if step <= begin or step - (steps[-1] if steps else 0) >= period:
                steps.append(step)
                square = init * mean_loss(step) * rate(1) / (mean_loss(1) * rate(step))
                period = next(k for k in range(1, 99) if k * k >= square or k == most)
        return [s for s in steps if s <= 24]

    def rate(step):
        return 0.05 * 0.7 ** step
    apart = (dist.get_rank() - (dist.get_world_size() - 1) / 2) * 0.1
    for begin, init, most, as_tensor in ((1, 1, 16, True), (3, 4, 16, False), (0, 9, 5, True)):
        table = strategy([_ALL], local_sgd={"adaptive": 1, "init_period": init, "max_period": most,
                                            "begin_step": begin})
        model, optimizer, applied = begun(table)
        equal = []
        for step in range(1, 25):
            optimizer.param_groups[0]["lr"] = rate(step)
            loss = mean_loss(step) + apart
            applied.loss(torch.tensor(loss, requires_grad=True) if as_tensor else loss)
            train(applied, optimizer, steps=1, begin=step - 1)
            first = model[0].weight.detach().clone()
            dist.broadcast(first, src=0)
            same = torch.tensor(int(torch.equal(first, model[0].weight)))
            dist.all_reduce(same, op=dist.ReduceOp.MIN)
            if same.item():
                equal.append(step)
        assert equal == wanted(begin, init, most), (equal, wanted(begin, init, most))
        assert len({b - a for a, b in zip(equal, equal[1:])}) > 1, equal
    raises(lambda: train(applied, optimizer, steps=20), "call model.loss(value)")


def dgc(folder):
    """Writes what each rank had and what came of it, for whoever knows it better."""
    ramp = {"sparsity": [0.75, 0.9, 0.97], "rampup_begin_step": 3, "rampup_step": 6}
    sparse = {1: "6.weight", 5: "2.weight", 9: "0.weight"}
    buckets = [[0, 2, 3, 4], {"places": [1], "codec": "dgc"}, {"places": [5], "codec": "dgc"},
               [6, 7, 8], {"places": [9], "codec": "dgc"}]
    for nesterov in (False, True):
        for streams in (1, 3):
            model = net()
            own = dict(model.named_parameters())
            optimizer = torch.optim.SGD([
                {"params": [p for n, p in own.items() if n != "0.weight"], "nesterov": nesterov},
                {"params": [own["0.weight"]], "weight_decay": 0.0625, "nesterov": nesterov}],
                0.0625, momentum=0.9)
            applied = applier.apply(model, optimizer, strategy=strategy(
                buckets, streams=streams, dgc=ramp,
                hierarchy={"form": "sharded", "group_size": 2}))
            path = f"{folder}/dgc-{int(nesterov)}-{streams}-{dist.get_rank()}"
            with open(path, "wb") as file:
                for step in range(_STEPS):
                    dgc_step(applied, optimizer, own, sparse.values(), step, file)
            check_same_on_all(list(own.values()), "dgc")
            # Steps behind the ramp's begin leave no momentum of theirs in the optimizer.
            assert set(optimizer.state[own["0.weight"]]["momentum_buffer"].shape) == {12, 40}
    adam = torch.optim.Adam(net().parameters())
    raises(lambda: applier.apply(net(), adam, strategy=strategy(buckets, dgc=ramp)), "Adam")


def largest_of_many(folder):
    """Whatever a sample says: representative or not, ties, zeros, from one element to all but one."""
    elements = 50_000
    torch.manual_seed(5)
    normal = torch.randn(elements)
    sampled = torch.zeros(elements)
    sampled[::applier._SAMPLED] = 1 + torch.rand(sampled[::applier._SAMPLED].numel())
    kinds = {"normal": normal, "small": normal * 1e-30, "heavy": normal.pow(9),
             "ties": (normal * 3).round(), "zeros": torch.zeros(elements),
             "sampled are the largest": sampled + 0.1 * normal, "unsampled": normal * (sampled == 0),
             "rising": torch.arange(elements) - 100.0, "one": (normal == normal.max()) * 1.0}
    for name, values in kinds.items():
        by_size = values.abs().sort(descending=True, stable=True).indices
        for kept in (1, 2, 499, 5_000, 19_000, 26_000, elements - 1):
            one = applier._Dgc(values, {})
            one.residual, one.velocity = values.clone(), values + 1
            indices, sent = one.taken(kept, applier._Room())
            wanted = by_size[:kept].sort().values
            assert torch.equal(indices, wanted), (name, kept)
            assert torch.equal(sent, values[wanted]), (name, kept)
            left = torch.ones(elements, dtype=torch.bool)
            left[wanted] = False
            assert torch.equal(one.residual, values * left) and torch.equal(
                one.velocity, (values + 1) * left), (name, kept)


def what_is_not_finite(folder):
    """Leaves its element as it was; large ones, whose sum is not, count."""
    group = {"weight_decay": 0.0, "nesterov": False, "momentum": 0.5}
    room = applier._Room()
    held = torch.tensor([1.0, 2.0, 3.0, -4.0])
    one = applier._Dgc(held, {})
    one.residual, one.velocity = held.clone(), 10 * held
    one.accumulate(torch.tensor([math.inf, 1.0, math.nan, -math.inf]), held, group, room)
    assert one.velocity.tolist() == [10, 11, 30, -40], one.velocity
    assert one.residual.tolist() == [1, 13, 3, -4], one.residual
    one.accumulate(torch.full((4,), 3e38), held, group, room)
    assert one.velocity.tolist() == torch.tensor([3e38] * 4).tolist(), one.velocity
    assert torch.isfinite(one.residual).all()


def dgc_step(applied, optimizer, own, sparse, step, file):
    optimizer.zero_grad()
    x, y = batch(step)
    loss = (applied(x) - y).pow(2).mean()
    local = torch.autograd.grad(loss, [own[name] for name in sparse], retain_graph=True)
    before = {name: own[name].detach().clone() for name in sparse}
    loss.backward()
    mean = {name: own[name].grad.clone() for name in sparse}
    optimizer.step()
    for name, gradient in zip(sparse, local):
        for t in (gradient, before[name], mean[name]):
            write(file, t)
        if step >= 3:  # plain descent, as the momentum is in what was sent
            stepped = before[name] - mean[name] * optimizer.param_groups[0]["lr"]
            assert torch.allclose(own[name].detach(), stepped, rtol=1e-6, atol=1e-7), name
            assert own[name].grad is None


_POWER = {"matrix_approximation_rank": 2, "start_powerSGD_iter": 3, "min_compression_rate": 1.5}


def power_sgd(folder):
    """DDP's one bucket of this small net by torch's hook, to the bit; further groupings and streams
    train too, all ranks alike."""
    for more in ({}, {"matrix_approximation_rank": 1}, {"matrix_approximation_rank": 4},
                 {"warm_start": False}, {"use_error_feedback": False}):
        options = {**_POWER, **more}
        wanted = by_ddp(powerSGD_hook.powerSGD_hook, powerSGD_hook.PowerSGDState(None, **options))
        found = by_strategy(strategy([_ALL], powersgd=options))
        check_close(found, wanted, ("powersgd", more), True)
        found = by_strategy(strategy([_ALL], powersgd=options, overlap=0), late=0.01)
        check_close(found, wanted, ("powersgd, late", more), True)
    plain = by_ddp()
    for streams in (1, 2):
        found = by_strategy(strategy(_GROUPINGS["runs"], powersgd=_POWER, streams=streams))
        check_same_on_all(found, "powersgd")
        assert not torch.equal(found[0], plain[0])
    power_sgd_steps(folder)


def power_sgd_steps(folder):
    """Writes the first factors, then each step's gradients of this rank and what came of them."""
    for rank in (1, 2, 4):
        options = {**_POWER, "matrix_approximation_rank": rank}
        model, optimizer, applied = begun(strategy([_ALL], powersgd=options))
        own = dict(model.named_parameters())
        with open(f"{folder}/powersgd-{rank}-{dist.get_rank()}", "wb") as file:
            for q in first_factors([own[name] for name in _NAMES], options):
                write(file, q)
            write_steps(applied, optimizer, own, file)


def first_factors(parameters, options):
    """As torch's hook draws them for a bucket: by shape, from a seed that numpy draws."""
    shapes = {}
    for p in parameters:
        n, m = p.shape[0], p.numel() // p.shape[0]
        r = min(n, m, options["matrix_approximation_rank"])
        if (n + m) * r * options["min_compression_rate"] < n * m:
            shapes.setdefault((n, m), []).append((m, r))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(numpy.random.RandomState(0).randint(1_000_000_000))
        return [torch.randn(1, *q) for group in shapes.values() for q in group]


def write(file, t):
    file.write(bytes(t.detach().contiguous().view(torch.uint8).flatten().tolist()))


def write_steps(applied, optimizer, own, file):
    """Trains, and writes of each step the rank's own gradients, then their means."""
    for step in range(_STEPS):
        optimizer.zero_grad()
        x, y = batch(step)
        loss = (applied(x) - y).pow(2).mean()
        parameters = [own[name] for name in _NAMES]
        for t in torch.autograd.grad(loss, parameters, retain_graph=True):
            write(file, t)
        loss.backward()
        for p in parameters:
            write(file, p.grad)
        optimizer.step()


def wrong_tables(folder):
    def applied(table, model=None, **how):
        model = model or net()
        return applier.apply(model, sgd(model), strategy=table, **how)
    runs = _GROUPINGS["runs"]
    raises(lambda: applied(strategy(runs, {"4.bias": "5.bias"})), "the model has no parameter 5.bias")
    table = strategy(runs)
    table["gradients"][3][1] = 7
    raises(lambda: applied(table), "4.weight has 660 elements here, 7 in the strategy")
    short = strategy([[0, 1]])
    del short["gradients"][2:]
    raises(lambda: applied(short), "the strategy has no parameter 0.weight")
    raises(lambda: applied(None), "syncline emit --python FILE")
    raises(lambda: applied(strategy(runs), DistributedDataParallel(net())), "without Distributed")
    # By place a size that is wrong shows in the first step, on all ranks.
    unknown = {name: f"layer_{i}" for i, name in enumerate(_NAMES)}
    table = strategy(runs, unknown)
    table["gradients"][1], table["gradients"][3] = table["gradients"][3], table["gradients"][1]
    raises(lambda: by_strategy(table), "gradient 1 in the order of readiness is 6.weight with 80",
           "layer_3 with 660")


def what_torch_cannot_do(folder):
    """Said ahead of the first step, on all ranks."""
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(1.0))
            self.base = nn.Linear(4, 4)

    def applied(model, names, **more):
        sizes = dict((name, p.numel()) for name, p in model.named_parameters())
        table = {"name": "a test's", "ranks": dist.get_world_size(), "streams": 1,
                 "gradients": [[name, sizes[name]] for name in names],
                 "buckets": [{"places": list(range(len(names)))}], **more}
        return applier.apply(model, sgd(model), strategy=table)
    names = ["base.bias", "base.weight", "scale"]
    applied(Scaled(), names)
    raises(lambda: applied(Scaled(), names, powersgd=_POWER),
           "powerSGD_hook cannot take scale, which has no dimension")
    try:
        dist.all_reduce(torch.zeros(1, dtype=torch.bfloat16), group=dist.new_group())
    except RuntimeError:
        said = f"Gloo of torch {torch.__version__} sums no bfloat16"
        raises(lambda: applied(nn.Linear(4, 4).bfloat16(), ["bias", "weight"]), said)
        halves = [{"places": _ALL, "codec": "bf16"}]
        raises(lambda: applier.apply(net(), sgd(net()), strategy=strategy(halves)), said)


def models_that_differ(folder):
    """The first tensor that does is named, the same on all ranks, before anything is exchanged."""
    second = dist.get_rank() == 1

    def applied(change):
        model = net()
        if second:
            change(model)
        applier.apply(model, sgd(model), strategy=strategy(_GROUPINGS["runs"]), timeout=5)

    def narrower(model):
        model[4] = nn.Linear(33, 12)
        model[6] = nn.Linear(12, 4)

    def other_buffer(model):
        model[1].running_var = model[1].running_var.double()
    said = "the ranks have different models: rank 1 has "
    for change, its, one in (
            (narrower, "parameter 4.weight of 12 x 33 float32", "4.weight of 20 x 33 float32"),
            (lambda model: model.append(nn.Linear(4, 4)), "parameter 7.weight of 4 x 4 float32",
             "buffer 1.running_mean of 40 float32"),
            (lambda model: model[2].half(), "parameter 2.weight of 33 x 40 float16", "float32"),
            (lambda model: model[2].bias.requires_grad_(False),
             "parameter 2.bias of 33 float32, frozen", "2.bias of 33 float32"),
            (other_buffer, "buffer 1.running_var of 40 float64", "1.running_var of 40 float32"),
            (lambda model: model.__delitem__(6), "buffer 1.running_mean of 40 float32",
             "parameter 6.weight of 4 x 20 float32")):
        raises(lambda: applied(change), said + its + ", rank 0 has ", one)
    applied(lambda model: nn.init.zeros_(model[0].weight))  # values are rank 0's


def a_model_that_differs_is_one_line(folder):
    model = net()
    if dist.get_rank() == 1:
        model[6] = nn.Linear(20, 3)
    applier.apply(model, sgd(model), strategy=strategy(_GROUPINGS["runs"]))


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.base, self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x, head):
        return (self.one if head == 0 else self.other)(self.base(x))


def unused_parameters(folder):
    """In some steps the ranks use other heads, in some one is used by nobody: what an optimizer
    remembers, or takes away, must not move that."""
    def steps(wrap, by=None, to_none=True):
        model = TwoHeads()
        optimizer = (by or kinds[0])(model.parameters())
        wrapped = wrap(model, optimizer)
        for step in range(8):
            optimizer.zero_grad(set_to_none=to_none)
            x, _ = batch(step)
            head = (dist.get_rank() + step) % 2 if step % 3 else 0
            wrapped(x[:, :4], head).pow(2).mean().backward()
            optimizer.step()
        return parameters_of(model)
    names = ["one.bias", "one.weight", "other.bias", "other.weight", "base.bias", "base.weight"]
    sizes = [2, 8, 2, 8, 4, 16]
    table = {**strategy([]), "gradients": [list(pair) for pair in zip(names, sizes)],
             "buckets": [{"places": [0, 1]}, {"places": [2, 3, 4]}, {"places": [5]}]}

    def wrap(**how):
        return lambda model, optimizer: applier.apply(model, optimizer, strategy=table, **how)
    kinds = [functools.partial(torch.optim.SGD, lr=0.1),
             functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.1),
             functools.partial(torch.optim.AdamW, lr=0.1)]
    for by in kinds:
        for to_none in (True, False):
            wanted = steps(lambda m, _: DistributedDataParallel(m, find_unused_parameters=True),
                           by, to_none)
            check_close(steps(wrap(find_unused_parameters=True), by, to_none), wanted,
                        f"unused, {by.func.__name__}")
    raises(lambda: steps(wrap()), "other.weight got no gradient", "find_unused_parameters")


def rank_is_killed(folder, **more):
    """In the middle of an exchange of several; the others say so and end."""
    _, optimizer, applied = begun(strategy(_GROUPINGS["each alone"], streams=2, **more), timeout=20)
    train(applied, optimizer, steps=3)
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    train(applied, optimizer, steps=3)


def rank_is_killed_in_power_sgd(folder):
    rank_is_killed(folder, powersgd={**_POWER, "start_powerSGD_iter": 2})


def rank_is_stuck(folder):
    """Longer than the others are ready to wait."""
    # A busy machine holds a rank up for seconds: the limit is above that.
    _, optimizer, applied = begun(strategy(_GROUPINGS["runs"]), timeout=8)
    train(applied, optimizer, steps=3)
    if dist.get_rank() == 1:
        time.sleep(14)
    train(applied, optimizer, steps=3)


def rank_is_late(folder):
    """Behind the comparison of models, where the others form their groups."""
    if dist.get_rank() == 1:
        form = applier._lanes
        applier._lanes = lambda *given: (time.sleep(4), form(*given))[1]
    begun(strategy(_GROUPINGS["runs"]), timeout=1)


def emitted(folder):
    """With the strategy that the file itself brings."""
    check_close(trained_by(applier.apply), by_ddp(), "emitted", True)


def emitted_far_apart(folder):
    """Likewise, DiLoCo by hand."""
    model, optimizer, applied = begun(None)
    local = applier.STRATEGY["local_sgd"]
    fragments = [bucket["places"] for bucket in applier.STRATEGY["averaged"]]
    assert len(fragments) == 2 and sorted(sum(fragments, [])) == _ALL
    by_hand = ByHand(local["group"], fragments, local["period"], local["delay"], local["outer"],
                     local["begin_step"])
    for step in range(_STEPS):
        train(applied, optimizer, steps=1, begin=step)
        by_hand.step(step)
    check_close(parameters_of(model), parameters_of(by_hand.model), "emitted", True)


_CASES = {
    "two": [groupings_and_streams, views, halves, later_torch, accumulation, statistics_of_batch_norm,
            schedulers_and_copies, local_sgd, far_apart, far_apart_in_low_precision,
            far_apart_goes_on, adaptive_local_sgd, wrong_tables, models_that_differ, unused_parameters],
    "four": [groupings_and_streams, hierarchies, local_sgd, far_apart, far_apart_in_low_precision,
             far_apart_goes_on, adaptive_local_sgd],
    "dgc": [dgc, largest_of_many, what_is_not_finite],
    "powersgd": [power_sgd],
    "low_precision": [low_precision],
    "cannot": [what_torch_cannot_do],
    "differs": [a_model_that_differs_is_one_line],
    "killed": [rank_is_killed],
    "killed_powersgd": [rank_is_killed_in_power_sgd],
    "stuck": [rank_is_stuck],
    "late": [rank_is_late],
    "emitted": [emitted],
    "emitted_far_apart": [emitted_far_apart],
}


def main():
    cases, rank, ranks, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=ranks)
    for case in _CASES[cases]:
        case(folder)
        dist.barrier()
        print(case.__name__, "holds", flush=True)
    if cases == "cannot":
        os._exit(0)  # torch 1.13 now and then aborts where it takes down a group that failed
    dist.destroy_process_group()


main()
