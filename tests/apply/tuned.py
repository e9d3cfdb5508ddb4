"""Training jobs that tune themselves, checked against DistributedDataParallel.

    tuned.py CASES RANK RANKS FOLDER    CASES: a name in _CASES; ranks meet through a file in FOLDER

Exit code 0: every check held. What is tried is set by a journal, but for the jobs that ask the
program (SYNCLINE).
"""

import contextlib
import hashlib
import io
import json
import math
import os
import signal
import sys
import types

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import syncline_record as recorder
import syncline_tuner as tuner
from syncline_apply import autotune

_STEPS = 300
_NAMES = ["3.bias", "3.weight", "2.bias", "2.weight", "1.bias", "1.weight", "0.bias", "0.weight"]
_ALL = list(range(8))
_TABLES = {
    "one": {"buckets": [_ALL]},
    "each alone, two streams": {"buckets": [[i] for i in _ALL], "streams": 2},
    "out of order": {"buckets": [[6, 7], [2, 3, 4], [0, 1, 5]], "streams": 3},
    "at the end": {"buckets": [_ALL[:3], _ALL[3:]], "overlap": 0},
}


class Net(nn.Sequential):
    """Whose last but one layer is not used in every step, if it is told so."""

    def __init__(self):
        super().__init__(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.Linear(24, 24), nn.Linear(24, 4))
        self.skips = False

    def forward(self, x):
        self.skips, skips = False, self.skips
        x = self[1](self[0](x)).relu()
        return self[3](x if skips else self[2](x).tanh())


def net():
    torch.manual_seed(5)
    return Net()


def settings():
    sizes = {name: p.numel() for name, p in net().named_parameters()}
    return [{"name": name, "table": {
        "name": name, "ranks": dist.get_world_size(), "streams": 1,
        "gradients": [[n, sizes[n]] for n in _NAMES], **table,
        "buckets": [{"places": places} for places in table["buckets"]]}}
        for name, table in _TABLES.items()]


class Loop:
    """One training; `how`: what a script does besides."""

    def __init__(self, wrap, **how):
        self.module = net()
        self.optimizer = torch.optim.SGD(self.module.parameters(), 0.05, momentum=0.9,
                                         weight_decay=1e-3)
        self.model = wrap(self.module, self.optimizer)
        self.how = how
        self.at = 0
        self.seen = []  # a hash of what there is behind each step

    def batch(self, part=0):
        dice = torch.Generator().manual_seed(1000 * self.at + 10 * part + dist.get_rank())
        size = self.how.get("size", 6)
        return torch.randn(size, 12, generator=dice), torch.randn(size, 4, generator=dice)

    def backward(self, part=0, scale=1.0):
        x, y = self.batch(part)
        if self.how.get("skips"):
            # On no rank, on one of them, or on all.
            self.module.skips = (self.at + self.at // 2 * dist.get_rank()) % 3 == 0
        ((self.model(x) - y).pow(2).mean() * scale).backward()

    def train(self, steps):
        for _ in range(steps):
            self.optimizer.zero_grad(set_to_none=not self.how.get("keeps"))
            for part in range(self.how.get("passes", 1) - 1):
                with self.model.no_sync():
                    self.backward(part)
            # Now and then a scaled loss overflows, and the update is left out.
            scale = (3e38 if self.at % 7 == 3 else 64.0) if self.how.get("scales") else 1.0
            self.backward(99, scale)
            gradients = [p.grad for p in self.module.parameters() if p.grad is not None]
            if self.how.get("scales"):
                for gradient in gradients:
                    gradient.div_(64.0)
            if all(torch.isfinite(gradient).all() for gradient in gradients):
                nn.utils.clip_grad_norm_(self.model.parameters(), 0.7)
                self.optimizer.step()
            if self.at % 15 == 14:
                self.evaluate()
            self.at += 1
            together = torch.cat([t.double().flatten() for t in self.states()])
            self.seen.append(hashlib.sha256(bytes(together.numpy().tobytes())).digest())

    def evaluate(self):
        self.model.train(self.at % 30 == 29)  # or moves the statistics, too
        with torch.no_grad():
            self.model(self.batch()[0])
        self.model.train()

    def states(self):
        kept = [self.optimizer.state[p].get("momentum_buffer") for p in self.module.parameters()]
        return [t.clone() for t in [*self.module.state_dict().values(), *kept] if t is not None]


def by_ddp(steps=_STEPS, unused=False, **how):
    loop = Loop(lambda model, _: DistributedDataParallel(model, find_unused_parameters=unused), **how)
    loop.train(steps)
    return loop


def wrapped(journal=None, **more):
    return lambda model, optimizer: autotune(model, optimizer, journal=journal, timeout=60, **more)


def planned(folder, name, batch=6, unused=False, **more):
    """A journal that has the settings, as if the model had been asked for them."""
    path = f"{folder}/{name}.json"
    predicted = {setting["name"]: {"speedup": 1.01, "speedup_low": 0.9, "speedup_high": 1.1}
                 for setting in settings()}
    with Journaled():
        job = Loop(wrapped(find_unused_parameters=unused, program=sys.executable)).model._tuner
        job.batch = batch
        first = {"name": tuner._DDP}
        if unused:
            first = {"name": "first", "table": tuner._groups_of(job.ddp, job.trained, 1)}
        if dist.get_rank() == 0:
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"job": job._fingerprint(), "asked": {"rounded": False, "changed": False},
                           "first": first, "settings": settings(), "predicted": predicted,
                           **more}, file)
    dist.barrier()
    return path


class Journaled(contextlib.redirect_stdout):
    """Keeps what is said."""

    def __init__(self):
        super().__init__(io.StringIO())


def check_same(found, wanted, what):
    assert len(found) == len(wanted), what
    for a, b in zip(found, wanted):
        assert torch.equal(a, b), (what, (a - b).abs().max())


def every_setting_in_turn(folder):
    """Settings change every few steps, whatever the script does: nothing is lost."""
    for name, how in {"plain": {}, "kept gradients": {"keeps": True}, "passes": {"passes": 3},
                      "scaled": {"scales": True, "keeps": True},
                      "unused": {"skips": True, "unused": True}}.items():
        unused = how.get("unused", False)
        own = {key: value for key, value in how.items() if key != "unused"}
        journal = planned(folder, name, unused=unused)
        loop = Loop(wrapped(journal, find_unused_parameters=unused, steps=_STEPS - 20), **own)
        tried = tuner._left
        tuner._left = lambda rounds, names: names  # none is given up
        with Journaled() as said:
            loop.train(_STEPS if "scales" not in own else _STEPS * 7 // 6 + 2)
        tuner._left = tried
        wanted = by_ddp(loop.at, **how)
        check_same(loop.states(), wanted.states(), name)
        assert loop.seen == wanted.seen, name
        told = loop.model.tuning
        assert len(told["rounds"]) == (_STEPS - 20) // 25, (name, len(told["rounds"]))
        assert all(len(taken) == 5 for taken in told["rounds"]), name
        assert loop.model._tuner.course is None
        wanted = "syncline_autotune: keeps " if dist.get_rank() == 0 else ""
        assert said.getvalue().startswith(wanted) and said.getvalue().count("\n") == bool(wanted)


def each_setting_kept(folder):
    wanted = by_ddp().states()
    for setting in [{"name": tuner._DDP}, *settings()]:
        journal = planned(folder, "kept", kept=setting["name"])
        with Journaled():
            loop = Loop(wrapped(journal))
            loop.train(_STEPS)
        check_same(loop.states(), wanted, setting["name"])
        assert loop.model._tuner.course is None
        assert (loop.model._tuner.ddp is None) == ("table" in setting)
        assert loop.model.tuning["now"] == setting["name"]
    # Of another batch nothing is known.
    loop = Loop(wrapped(journal, program=sys.executable), size=5)
    loop.train(2)
    assert loop.model._tuner.course is not None and "kept" not in loop.model.tuning


def hooks_and_checkpoints(folder):
    """A user's hooks are called once a step; a checkpoint of any moment goes on elsewhere."""
    journal = planned(folder, "hooks")
    loop = Loop(wrapped(journal, steps=80))
    calls = {"gradient": 0, "forward": 0}

    def count(what):
        calls[what] += 1
    loop.module[0].weight.register_hook(lambda gradient: count("gradient") or gradient * 0.5)
    loop.model.register_forward_pre_hook(lambda *_: count("forward"))
    with Journaled():
        loop.train(40)
        saved = io.BytesIO()
        torch.save([loop.model.state_dict(), loop.optimizer.state_dict()], saved)
        loop.train(60)
    assert calls == {"gradient": 100, "forward": 106}, calls  # six looks at the model
    other = Loop(lambda model, _: DistributedDataParallel(model))
    other.module[0].weight.register_hook(lambda gradient: gradient * 0.5)
    saved.seek(0)
    model, optimizer = torch.load(saved)
    other.model.load_state_dict(model)
    other.optimizer.load_state_dict(optimizer)
    other.at = 40
    other.train(60)
    check_same(loop.states(), other.states(), "from a checkpoint")


def interrupted(folder):
    """What was tried before is known to the next run."""
    journal = planned(folder, "interrupted")
    with contextlib.suppress(KeyboardInterrupt), Journaled():
        loop = Loop(wrapped(journal, steps=1000))
        loop.train(80)
        raise KeyboardInterrupt
    dist.barrier()
    known = len(loop.model.tuning["rounds"])
    assert known >= 3
    loop = Loop(wrapped(journal, steps=1000))
    loop.train(1)
    assert len(loop.model.tuning["rounds"]) == known
    check_same(loop.states(), by_ddp(1).states(), "again")


def whole_course(folder):
    """Recorded, asked, tried and kept; then another batch, for which it begins anew."""
    journal = f"{folder}/course.json"
    loop = Loop(wrapped(journal, steps=100))
    sizes = [6]
    for size in (6, 9):
        loop.how["size"] = size
        with Journaled() as said:
            for _ in range(40):
                while loop.model.tuning.get("job", {}).get("batch") != size \
                        or loop.model._tuner.course is not None:
                    loop.train(1)
                    sizes.append(size)
            loop.train(5)
            sizes += [size] * 5
        if dist.get_rank() == 0:
            assert said.getvalue().count("\n") == 1, said.getvalue()
            with open(journal, encoding="utf-8") as file:
                kept = json.load(file)
            check_journal(kept, size)
            assert f"keeps {kept['kept']}" in said.getvalue().replace("'", ""), said.getvalue()
    wanted = Loop(lambda model, _: DistributedDataParallel(model))
    for size in sizes[1:]:
        wanted.how["size"] = size
        wanted.train(1)
    check_same(loop.states(), wanted.states(), "the whole course")
    assert loop.seen == wanted.seen


def check_journal(kept, size):
    tensors = kept["recorded"]["workload"]["tensors"]
    assert sorted(tensor["name"] for tensor in tensors) == sorted(_NAMES)
    assert kept["job"]["batch"] == kept["recorded"]["workload"]["batch"] == size
    assert kept["recorded"]["strategies"][0]["dialect"] == "pytorch"
    assert kept["settings"] and set(kept["predicted"]) == {s["name"] for s in kept["settings"]}
    for setting in kept["settings"]:
        places = [place for bucket in setting["table"]["buckets"] for place in bucket["places"]]
        assert sorted(places) == _ALL
    names = [step[0] for step in kept["steps"]]
    assert set(names) <= {tuner._DDP, *kept["predicted"]}, set(names)
    # But for those in which the model was looked at.
    counted, tried = (sum(step[2] for step in kept["steps"]),
                      4 * sum(len(taken) for taken in kept["rounds"]))
    assert 0.75 * tried < counted <= tried, (counted, tried)
    assert len(kept["rounds"]) >= 3
    assert (kept["kept"] == tuner._DDP) == ("gain" not in kept)
    if "gain" in kept:
        assert kept["gain"]["low"] < kept["gain"]["percent"] < kept["gain"]["high"]


def what_cannot_be_recorded(folder):
    """The training goes on as it was, and says why nothing is tuned."""
    class Sparse(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(20, 4, sparse=True)

        def forward(self, x):
            return self.words(x)
    finals = []
    with Journaled() as said:
        for tuned in (True, False):
            torch.manual_seed(3)
            module = Sparse()
            optimizer = torch.optim.SGD(module.parameters(), 0.1)
            model = (autotune(module, optimizer, program=sys.executable) if tuned
                     else DistributedDataParallel(module))
            for step in range(30):
                optimizer.zero_grad()
                model(torch.tensor([step % 20, dist.get_rank()])).pow(2).mean().backward()
                optimizer.step()
            finals.append(module.words.weight.detach().clone())
    check_same(finals[:1], finals[1:], "sparse")
    line = "keeps DistributedDataParallel: words.weight has a sparse gradient\n"
    assert said.getvalue() == ("syncline_autotune: " + line if dist.get_rank() == 0 else "")


def statistics_of_turns(folder):
    # Tables of Student's t, 95 % on both sides.
    for freedom, wanted in {1: 12.706, 2: 4.303, 3: 3.182, 5: 2.571, 10: 2.228, 29: 2.045}.items():
        assert abs(tuner._student(freedom) - wanted) < 6e-4, (freedom, tuner._student(freedom))
    assert abs(tuner._student(4, 0.99) - 4.604) < 6e-4
    noise = [0.01, -0.01, 0.0, 0.005, -0.005]
    rounds = [{"a": 0.1 + x, "b": x, "c": 0.002 - x / 2} for x in noise]
    assert tuner._left(rounds[:2], ["a", "b", "c"]) == ["a", "b", "c"]  # too few
    assert tuner._left(rounds, ["a", "b", "c"]) == ["b", "c"]  # a takes 10 % longer
    same = [{"a": x, "b": x + 0.001} for x in noise]  # a tenth of a percent is worth no step
    assert tuner._left(same, ["a", "b"]) == ["a"]
    # Where little was measured, what was predicted decides; where much was, that.
    expected = {name: {"speedup": gain, "speedup_low": gain - 0.02, "speedup_high": gain + 0.02}
                for name, gain in {"b": 1.10, "c": 1.02}.items()}
    assert tuner._best([], ["a", "b", "c"], expected) == "b"
    noisy = [{"a": 0.0, "b": x, "c": -x} for x in (0.3, -0.31, 0.02)]
    assert tuner._best(noisy, ["a", "b", "c"], expected) == "b"
    clear = [{"a": x, "b": x, "c": x - 0.05 + x / 100} for x in noise]
    assert tuner._best(clear, ["a", "b", "c"], expected) == "c"
    # A smaller batch at the end of an epoch, or a look at the model, is no step's time.
    assert tuner._batch(["x", torch.zeros(()), torch.zeros(7, 2)], {}) == 7
    assert tuner._batch([], {"x": torch.zeros(3)}) == 3 and tuner._batch([1], {}) is None


def what_is_put_off_is_no_part_of_a_step(folder):
    clock = iter([0, 1, 3, 10, 10, 17, 20])
    job = types.SimpleNamespace(now=lambda: next(clock), seconds=lambda begin, end: end - begin)
    step = recorder._Step(job)
    step.first("begin")
    step.begin_pass()
    step.first("backward")
    step.put_off()
    step.end_pass()
    step.last("end")
    times = step.times()
    assert (times["step"], times["forward"], times["backward"]) == (13, 2, 7), times


def refuses(folder):
    for what, part in ((lambda: Loop(wrapped(program="/nowhere/syncline")), "rank 0's PATH"),
                       (lambda: Loop(wrapped(static_graph=True)), "static_graph is not among"),
                       (lambda: autotune(DistributedDataParallel(net()), None), "without Distr")):
        try:
            what()
        except RuntimeError as error:
            assert str(error).startswith("syncline_autotune: ") and part in str(error), error
            assert "\n" not in str(error)
        else:
            raise AssertionError(part)


def foreign_journals_are_kept(folder):
    """A file of another purpose is not replaced, and each rank says so before the training."""
    path = f"{folder}/train.py"
    for text in ("import torch\n", "[1]", "[" * 100000, '{"job": {}, "asked": {}, "settings": 5}'):
        if dist.get_rank() == 0:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        dist.barrier()
        for journal, why in ((path, "is no journal of autotune and is kept"),
                             (f"{folder}/nowhere/j.json", "No such file"),
                             ("/dev/full", "No space left")):
            try:
                Loop(wrapped(journal, program=sys.executable))
                raise AssertionError("it went well")
            except RuntimeError as error:
                assert str(error).startswith(f"syncline_autotune: {journal}") and why in str(error)
        with open(path, encoding="utf-8") as file:
            assert file.read() == text
        dist.barrier()


def rank_is_killed(folder):
    """Behind the tuning by the strategy's exchange, as in apply."""
    with Journaled():
        loop = Loop(wrapped(planned(folder, "killed", kept="one")))
        loop.train(5)
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    loop.train(100)


def rank_is_killed_in_a_turn(folder):
    loop = Loop(wrapped(planned(folder, "turn"), steps=10000))
    while loop.model.tuning.get("now") != "one" or not loop.model.tuning.get("rounds"):
        loop.train(1)
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    loop.train(100)


def sharded(folder):
    """A model of fully_shard, whatever it gathers when, trains as one that nobody tunes."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (2,))

    def run(steps, wrap=lambda model, optimizer: model):
        torch.manual_seed(5)
        model = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(5)])
        for block in model:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        assert wrap(model, optimizer) is model
        for step in range(steps):
            dice = torch.Generator().manual_seed(1000 * step + dist.get_rank())
            optimizer.zero_grad()
            model(torch.randn(4, 16, generator=dice)).pow(2).mean().backward()
            optimizer.step()
        return model, [p.detach().full_tensor() for p in model.parameters()]
    wanted, shortly = run(_STEPS)[1], run(30)[1]
    tried, tuner._left = tuner._left, lambda rounds, names: names  # none is given up
    journal = f"{folder}/sharded.json"
    with Journaled() as said:
        model, found = run(_STEPS, wrapped(journal, steps=_STEPS - 20))
    tuner._left = tried
    check_same(found, wanted, "sharded")
    told = model.tuning()
    assert len(told["settings"]) == 4, [setting["name"] for setting in told["settings"]]
    assert len(told["rounds"]) > 9 and {len(taken) for taken in told["rounds"]} == {5}
    assert said.getvalue().count("keeps") == (dist.get_rank() == 0), said.getvalue()
    gathers = [tuner._gathers(shard) for shard in tuner._shards_of(run(2)[0])]
    for setting in [tuner._Sharded.start, *told["settings"]]:
        if dist.get_rank() == 0:
            with open(journal, "w", encoding="utf-8") as file:
                json.dump({**told, "kept": setting["name"]}, file)
        dist.barrier()
        with Journaled():
            model, found = run(30, wrapped(journal))
        check_same(found, shortly, setting["name"])
        how, shards = setting["shards"], tuner._shards_of(model)
        for at, (shard, before) in enumerate(zip(shards, gathers)):
            forward, backward, groups = tuner._gathers(shard)
            assert forward == shards[at + 1:at + 1 + how.get("forward", 0)], setting
            assert backward == shards[max(0, at - how.get("backward", 0)):at][::-1], setting
            stays = [group.post_forward_mesh_info is None for group, _ in groups]
            assert stays == [how.get("stay", mesh is None) for _, mesh in before[2]], setting


_CASES = {
    "two": [statistics_of_turns, what_is_put_off_is_no_part_of_a_step, refuses,
            foreign_journals_are_kept, every_setting_in_turn, each_setting_kept,
            hooks_and_checkpoints, interrupted, what_cannot_be_recorded],
    "course": [whole_course],
    "sharded": [sharded],
    "killed": [rank_is_killed],
    "killed_in_a_turn": [rank_is_killed_in_a_turn],
}


def main():
    cases, rank, ranks, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=ranks)
    for case in _CASES[cases]:
        case(folder)
        dist.barrier()
        print(case.__name__, "holds", flush=True)
    dist.destroy_process_group()


main()
