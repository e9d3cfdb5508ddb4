"""Tunes how a data-parallel PyTorch job exchanges its gradients, while it trains.

    from syncline_apply import autotune
    model = autotune(model, optimizer)  # in place of DistributedDataParallel(model)

The first steps run by DistributedDataParallel and are recorded: with hooks, and with all exchanges
put off to the end of the backward pass, so that each is a step of the training like any other. Rank
0 then asks the program `syncline` for settings, in a process of its own, while the training goes
on. Those that the model cannot tell apart take turns with DistributedDataParallel, some steps each,
until one is faster with 95 % or the budget is spent; the job keeps it. A setting is changed ahead
of a forward pass, behind an update: hooks, gradients and the optimizer's state stay where they are.

Needs torch 1.13 or later, the program on rank 0, and syncline_apply.py and syncline_record.py next
to it (`syncline record -o FOLDER` writes all three). Ahead of the choice it takes memory for the
gradients once more.
"""

import ast
import atexit
import contextlib
import gc
import hashlib
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

if __package__:
    from . import apply as _apply, record as _record
else:
    import syncline_apply as _apply
    import syncline_record as _record

_DDP = "DistributedDataParallel"
_RECORDED = 4  # steps of each kind
_BLOCK = 4  # steps of a setting in a row, behind one that is not counted
_LEAST = 3  # turns before a setting is given up
_TRIED = 4  # settings besides the first
_ROWS = 24  # of the search's ranking that are looked at
_LOOK = 4  # steps between two looks for an answer
_PATIENCE = 120  # seconds for an answer
_SURE = 0.95
_EQUAL = 0.005  # a gain, as a share, for which no more steps are spent
_UNSURE = 0.02  # a prediction's deviation at the least, as a share: few steps were recorded
_AGAIN = 64  # steps between two looks at the batch
_DDP_ARGUMENTS = {"bucket_cap_mb", "broadcast_buffers", "gradient_as_bucket_view",
                  "process_group"}


def autotune(model, optimizer, *, steps=200, rounded=False, changed=False, journal=None,
             program=None, find_unused_parameters=False, timeout=None, **ddp):
    """Gives a module that calls `model`, exchanges its gradients and finds out how best. Collective.

    steps                   at most, in which settings are recorded and tried
    rounded                 settings that send 16 bits are tried, too
    changed                 and those that change the training: DGC, PowerSGD
    journal                 a file, JSON: all steps and what was kept. The same job begins there next
                            time; one that was stopped meanwhile goes on
    program                 `syncline`; else the environment's SYNCLINE, that of PATH or of pip
    find_unused_parameters  as DistributedDataParallel has it
    timeout                 seconds that a rank waits for the others; torch's own limit if left out
    ddp                     DistributedDataParallel's own bucket_cap_mb, broadcast_buffers and
                            gradient_as_bucket_view: with these the job begins

    With another batch, in 64 steps in a row, it tunes again. A model of fully_shard (FSDP2) comes back
    as it is: without wrapping it anew, what is tried is how early its parameters are gathered and
    whether they stay after the forward pass; `syncline tune --emit fsdp` advises groups. Raises RuntimeError as apply() does.
    """
    asked = {"steps": steps, "rounded": bool(rounded), "changed": bool(changed)}
    if _shards_of(model):
        if rounded or changed or ddp or find_unused_parameters:
            _fail("of a model of fully_shard only the moments of its all-gathers can be tuned: leave "
                  "out rounded, changed and DistributedDataParallel's arguments")
        return _Sharded(model, optimizer, asked, journal, timeout).watched()
    strange = set(ddp) - _DDP_ARGUMENTS
    if strange or ddp.get("process_group") not in (None, dist.group.WORLD):
        _fail(f"{', '.join(strange) or 'another process_group'} is not among what autotune can keep "
              "as it is: use `syncline record` and `tune` for this job")
    if isinstance(model, DistributedDataParallel):
        _fail("give the module itself, without DistributedDataParallel around it")
    _apply._begin_alike(model)
    ddp["find_unused_parameters"] = find_unused_parameters
    return Tuned(model, _Replicated(model, optimizer, asked, journal, program, timeout, ddp))


class Tuned(torch.nn.Module):
    """The model, whose gradients are exchanged. `module` is the one that was given."""

    def __init__(self, module, tuner):
        super().__init__()
        self.module = module
        self._tuner = tuner

    def __call__(self, *args, **kwargs):
        # Ahead of all hooks: a step ends where the next one begins.
        self._tuner.look(args, kwargs)
        return super().__call__(*args, **kwargs)

    def forward(self, *args, **kwargs):
        return self._tuner.forward(args, kwargs)

    def no_sync(self):
        """Backward passes in here only add to the gradients."""
        return self._tuner.no_sync()

    @property
    def tuning(self):
        """All that was recorded, asked, tried and kept so far, as `journal` has it; complete on
        rank 0."""
        return self._tuner.told


def _fail(message):
    raise _apply.ApplyError(f"syncline_autotune: {message}")


class _Control:
    """What ranks tell each other besides the training, in a group of its own."""

    def __init__(self, device, timeout):
        limit = {} if timeout is None else {"timeout": _apply.datetime.timedelta(seconds=timeout)}
        self.group = dist.new_group(**limit)
        self.device = device if dist.get_backend(self.group) == "nccl" else torch.device("cpu")

    def tell(self, value):
        """Rank 0's value, on all ranks."""
        text = json.dumps(value).encode() if dist.get_rank() == 0 else b""
        size = self._alike(torch.tensor([len(text)], device=self.device))
        wire = torch.zeros(int(size), dtype=torch.uint8, device=self.device)
        if text:
            wire.copy_(torch.frombuffer(bytearray(text), dtype=torch.uint8))
        return json.loads(bytes(self._alike(wire).cpu().numpy().tobytes()))

    def _alike(self, tensor):
        with self._told_in_one_line():
            dist.broadcast(tensor, src=0, group=self.group)
        return tensor

    def sums(self, values):
        shared = torch.tensor(values, dtype=torch.float64, device=self.device)
        with self._told_in_one_line():
            dist.all_reduce(shared, group=self.group)
        return shared.tolist()

    def begin_sum(self, value):
        """What gives the sum later: nobody waits for it now."""
        shared = torch.tensor([value], device=self.device)
        work = dist.all_reduce(shared, group=self.group, async_op=True)

        def wait():
            with self._told_in_one_line():
                work.wait()
            return shared.item()
        return wait

    @staticmethod
    @contextlib.contextmanager
    def _told_in_one_line():
        try:
            yield
        except RuntimeError as error:
            _fail(f"rank {dist.get_rank()}: the ranks could not agree on a setting; if another rank "
                  "has ended, see there: " + str(error).strip().split("\n")[0])


class _Recorded(_record._Job):
    """The job as the recorder sees it: nothing of a step is undone, for all are the training's own;
    those without communication put it off."""

    sweep = 0.0
    rounds = 3

    def __init__(self, tuner):
        super().__init__(tuner.ddp, tuner.optimizer)
        self.tuner = tuner
        self.narrows = tuner.asked["rounded"] or tuner.asked["changed"]

    def without_exchange(self):
        if self.sparse_rows:
            _record._fail(f"{next(iter(self.sparse_rows))} has a sparse gradient")
        return self.tuner.putting_off(self)


class _Exchange(_apply._Reducer):
    """The gradients of one setting after the other."""

    def __init__(self, tuner, table, lanes):
        self.tuner = tuner
        super().__init__(tuner.trained, tuner.optimizer, table, lanes,
                         tuner.arguments["find_unused_parameters"])

    def _finish(self):
        recorded = self.tuner.recorded
        if recorded is not None and recorded.watch:
            recorded.watch.step.put_off()
        super()._finish()


class _Tuner:
    """What runs where a step begins: the steps before it are over, for there was an update."""

    start = None  # the setting that the job begins with

    def __init__(self, module, optimizer, asked, journal, timeout):
        self.module, self.optimizer, self.asked, self.timeout = module, optimizer, asked, timeout
        self.trained = {name: p for name, p in module.named_parameters()
                        if p.requires_grad and p.numel() > 0}
        if not self.trained:
            _fail("the model has no parameter that is trained")
        self.device = next(iter(self.trained.values())).device
        self.arguments = {}
        self.control = _Control(self.device, timeout)
        self.updated = True
        self.disturbed = False
        self.batch = self.tuned_batch = None
        self.others = 0  # steps in a row with another batch than the one that was tuned for
        self.since = 0  # steps behind the tuning
        self.pending = None  # waits for the number of ranks with another batch
        self.waited = 0  # steps, for an answer
        self.marks = []  # [setting, when it began, whether it counts] of each step
        self.journal = _Journal(journal, self.control)
        self.told = {}
        self.course = self._tuned() if dist.get_world_size() > 1 else None
        _apply._around_step(optimizer, self._before_update, self._after_update)

    # ---- what the module calls ----

    def look(self, args, kwargs):
        if not torch.is_grad_enabled():
            self.disturbed = True  # an evaluation, whose time is no step's
            return
        if not self.updated:
            return
        self.updated = False
        self.batch = _batch(args, kwargs)
        if self.course is None:
            self._look_at_batch()
        else:
            self.marks.append([self.setting() if self.marks else "", self._now(), False])
            if next(self.course, self) is self:
                self.course = None
        self.disturbed = self.batch != self.tuned_batch

    def _after_update(self):
        self.updated = True

    def _before_update(self):
        pass

    def setting(self):
        return self.told.get("now", self.start["name"])

    # ---- the course ----

    def _now(self):
        if self.device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    def _seconds(self, begin, end):
        if self.device.type != "cuda":
            return end - begin
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    def _tuned(self):
        """Yields where a step begins."""
        self.tuned_batch = self.batch
        self.told = {"version": 1, "job": self._fingerprint(), "asked": self.asked}
        earlier = self.control.tell(self.journal.of(self.told["job"], self.asked))
        self.told.update(earlier)
        yield from self._prepare()
        if "kept" in earlier:
            self.switch(self._named(earlier["kept"]))
            self._release()
            self._say(f"keeps '{earlier['kept']}', as {self.journal.path} has it for this job")
            return
        try:
            if "settings" not in self.told:
                yield from self._propose()
            yield from self._race()
        except _record.RecordError as error:
            self._keep_first(str(error).partition(": ")[2])

    def _prepare(self):
        yield from ()

    def _keep_first(self, reason):
        """Nothing to choose from: the job goes on as it began."""
        self.switch(self.told.setdefault("first", self.start))
        self.told.update(reason=reason, steps=self._steps())
        self._say(f"keeps {self.told['first']['name']}: {reason}")
        self._release()
        self.journal.write(self.told)

    def _fingerprint(self):
        gradients = [[name, list(p.shape), str(p.dtype)] for name, p in self.trained.items()]
        device = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "CPU"
        return {"ranks": dist.get_world_size(), "backend": dist.get_backend(), "device": device,
                "batch": self.batch, "torch": torch.__version__,
                "gradients": hashlib.sha256(json.dumps(gradients).encode()).hexdigest()[:16],
                "ddp": {key: value for key, value in sorted(self.arguments.items())
                        if key != "process_group"}}

    def _named(self, name):
        return next(s for s in [self.told["first"], *self.told["settings"]] if s["name"] == name)

    def _race(self):
        """Turns of some steps for each setting that may still be the fastest."""
        told = self.told
        settings = [told["first"], *told["settings"]]
        rounds = told.setdefault("rounds", [])  # {name: mean of the logarithms of its steps}
        left = [setting["name"] for setting in settings]
        left = _left(rounds, left)
        while len(left) > 1 and (len(self.marks) - self.waited + len(left) * (1 + _BLOCK)
                                 <= self.asked["steps"]):
            turn = len(rounds) % len(left)
            taken = {}
            for name in left[turn:] + left[:turn]:
                logarithm = yield from self._block(self._named(name))
                if logarithm is not None:
                    taken[name] = logarithm
            if len(taken) == len(left):
                rounds.append(taken)
                left = _left(rounds, left)
            told["steps"] = self._steps()
            self.journal.write(told)
        self._keep(left)

    def _block(self, setting):
        """The mean of the logarithms of its steps' seconds, the same on all ranks; None where all of
        them were disturbed."""
        self.switch(setting)
        yield
        marks, disturbed = [self.marks[-1][1]], []
        for _ in range(_BLOCK):
            yield
            self.marks[-1][2] = not self.disturbed
            marks.append(self.marks[-1][1])
            disturbed.append(float(self.disturbed))
        times = [self._seconds(begin, end) for begin, end in zip(marks, marks[1:])]
        shared = self.control.sums(times + disturbed)
        good = [math.log(total / dist.get_world_size())
                for total, others in zip(shared, shared[_BLOCK:]) if others == 0]
        return statistics.median(good) if good else None

    def _keep(self, left):
        told = self.told
        rounds, first = told["rounds"], told["first"]["name"]
        best = _best(rounds, left, told["predicted"])
        told["kept"] = best
        self.switch(self._named(best))
        told["steps"] = self._steps()
        told["cost_steps"] = self._cost(best)
        if best != first:
            # Of the logarithm of first / best.
            middle, half = _interval(_differences(rounds, first, best))
            told["gain"] = {"percent": 100 * math.expm1(middle),
                            "low": 100 * math.expm1(middle - half),
                            "high": 100 * math.expm1(middle + half)}
        self._say(_line(told, len(left)))
        self._release()
        self.journal.write(told)

    def _release(self):
        """What the setting that was kept does not need."""
        self.marks = []

    def _steps(self):
        """[setting, milliseconds, whether it counted] of each step of this rank."""
        return [[setting, round(1e3 * self._seconds(begin, end), 4), counted]
                for (_, begin, _), (setting, end, counted) in zip(self.marks, self.marks[1:])]

    def _cost(self, kept):
        """How many steps of the kept setting the tuning has cost beyond its own."""
        own = [ms for name, ms, counted in self.told["steps"] if name == kept and counted]
        if not own:
            return None
        # What others do on the machine is no cost of it: half of the steps tell.
        usual = statistics.median(own)
        return round(sum(ms / usual - 1 for _, ms, _ in self.told["steps"]), 2)

    def _say(self, line):
        if dist.get_rank() == 0:
            print("syncline_autotune: " + line, flush=True)

    # ---- afterwards ----

    def _look_at_batch(self):
        """Tunes again where all ranks have had another batch for long."""
        if self.tuned_batch is None or dist.get_world_size() == 1:
            return
        self.others = self.others + 1 if self.batch != self.tuned_batch else 0
        self.since += 1
        if self.since % _AGAIN:
            return
        pending, self.pending = self.pending, None
        if pending is not None and pending() == dist.get_world_size():
            self.others = self.waited = 0
            self.switch(self.start)
            self.marks = [["", self._now(), False]]
            self.course = self._tuned()
            if next(self.course, self) is self:
                self.course = None
            return
        self.pending = self.control.begin_sum(int(self.others >= _AGAIN))


class _Replicated(_Tuner):
    """Of a model that each rank has: the setting is how gradients are exchanged."""

    start = {"name": _DDP}

    def __init__(self, module, optimizer, asked, journal, program, timeout, ddp):
        super().__init__(module, optimizer, asked, journal, timeout)
        self.arguments = ddp
        self.exchange = None
        self.lanes = {}
        self.ddp = self._wrapped()
        self.by_ddp = True
        self.recorded = None  # the job whose exchanges are put off
        self.held = False  # in no_sync()
        self.begins = True  # the next forward pass begins with rank 0's buffers
        self.program = self._found(program)

    def _wrapped(self):
        return DistributedDataParallel(self.module, **self.arguments)

    def _found(self, program):
        """The program, on rank 0; an error on all ranks where it is neither there nor needed any
        more."""
        program = (program or os.environ.get("SYNCLINE") or shutil.which("syncline")
                   or os.path.join(os.path.dirname(sys.executable), "syncline"))  # as pip has it
        there = shutil.which(program) is not None
        done = self.journal.earlier is not None and "kept" in self.journal.earlier
        if not self.control.tell(there or done or dist.get_world_size() == 1):
            _fail("the program `syncline` is not in rank 0's PATH: give its place as program=PATH or "
                  "in the environment's SYNCLINE")
        return program

    def forward(self, args, kwargs):
        # As DistributedDataParallel would have it, whoever was in charge before.
        begins, self.begins = self.begins, not self.held and torch.is_grad_enabled()
        if self.by_ddp:
            self.ddp.require_forward_param_sync = begins
            return self.ddp(*args, **kwargs)
        self.exchange.begins = begins
        self.exchange.before_forward()
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        before, self.held = self.held, True
        self._direct()
        try:
            yield
        finally:
            self.held = before
            self._direct()

    def _direct(self):
        """Who exchanges the next backward pass: DistributedDataParallel, the setting's own exchange,
        or nobody."""
        own = not self.by_ddp or self.recorded is not None
        if self.exchange is not None:
            self.exchange.on = own and not self.held
        if self.ddp is not None:
            self.ddp.require_backward_grad_sync = not own and not self.held

    def _before_update(self):
        if self.exchange is not None and self.exchange.on:
            self.exchange.before_step()

    @contextlib.contextmanager
    def putting_off(self, recorded):
        """While entered, all gradients are exchanged at the end of the backward pass, in the groups
        that DistributedDataParallel has."""
        self._exchange_by(_groups_of(self.ddp, self.trained))
        self.recorded = recorded
        self._direct()
        try:
            yield
        finally:
            self.recorded = None
            self._direct()

    def _exchange_by(self, table):
        lanes = self._lanes(table)
        if self.exchange is None:
            self.exchange = _Exchange(self, table, lanes)
            if self.arguments.get("broadcast_buffers", True):
                self.exchange.buffers = _apply._same_types(self.module.buffers())
        else:
            self.exchange.become(table, lanes)

    def _lanes(self, table):
        """Streams that earlier settings have made serve for later ones."""
        key = json.dumps(table.get("hierarchy"))
        made = self.lanes.setdefault(key, [])
        if len(made) < table["streams"]:
            made += _apply._lanes(self.device, {**table, "streams": table["streams"] - len(made)},
                                  self.timeout)
        return made[:table["streams"]]

    def switch(self, setting):
        """From this step on."""
        self.told["now"] = setting["name"]
        self.by_ddp = "table" not in setting
        if not self.by_ddp:
            self._exchange_by(setting["table"])
        elif self.ddp is None:
            self.ddp = self._wrapped()
        self._direct()

    def _propose(self):
        job = _Recorded(self)
        seen = yield from _record._looked_at(job, _RECORDED)
        self._first()
        asking = None
        if dist.get_rank() == 0:
            asking = _Question(self.program, self.asked)
            asking.begin(lambda: _record._scenario(job, seen, type(self.module).__name__,
                                                   self.batch))
        answer = None
        while answer is None:
            for _ in range(_LOOK):
                yield
                self.waited += 1
            answer = self.control.tell(asking and asking.answer())
        if "error" in answer:
            _record._fail(answer["error"])
        self.told.update(answer)
        self.journal.write(self.told)

    def _first(self):
        """The setting that the others are measured against."""
        setting = self.start
        if self.arguments["find_unused_parameters"]:
            # It takes for used what passes without it have used, and would fill their gradients.
            setting = {"name": f"the buckets of {_DDP}",
                       "table": _groups_of(self.ddp, self.trained, overlap=1)}
        self.told["first"] = setting
        self.switch(setting)

    def _release(self):
        """A module that goes takes its hooks along."""
        if self.by_ddp:
            if self.exchange is not None:
                self.exchange.close()
                self.exchange = None
        else:
            self.ddp = None
        gc.collect()
        super()._release()


class _Sharded(_Tuner):
    """Of a model of fully_shard: the setting is when parameters are gathered, and for how long."""

    start = {"name": "as it was", "shards": {}}

    def __init__(self, module, optimizer, asked, journal, timeout):
        super().__init__(module, optimizer, asked, journal, timeout)
        self.shards = _shards_of(module)
        self.before = None  # of each module, once a step has made them
        self.order = []  # of their forward passes

    def watched(self):
        # Ahead of the hook by which the first parameters are gathered.
        self.module.register_forward_pre_hook(lambda _, args, kwargs: self.look(args, kwargs),
                                              prepend=True, with_kwargs=True)
        self.module.tuning = lambda: self.told
        return self.module

    def _prepare(self):
        """Sees in which order modules run."""
        seen = {}
        hooks = [shard.register_forward_pre_hook(lambda module, *_: seen.setdefault(module))
                 for shard in self.shards]
        yield  # hooks of the outermost do not see this one, which is under way
        seen.clear()
        yield
        for hook in hooks:
            hook.remove()
        self.order = list(seen)

    def _propose(self):
        self.told["first"] = self.start
        if len(self.order) < 2:
            _record._fail("fully_shard has made fewer than two groups that are gathered")
        settings = [("forward prefetch 1", {"forward": 1}), ("forward prefetch 2", {"forward": 2}),
                    ("prefetch 2", {"forward": 2, "backward": 2})]
        if self._room():
            settings.append(("parameters stay after the forward pass", {"stay": True}))
        self.told["settings"] = [{"name": name, "shards": how} for name, how in settings]
        self.told["predicted"] = {}
        yield from ()

    def _room(self):
        """Whether all parameters fit into the memory that is free, on each rank, and are dropped
        now."""
        whole = sum(p.numel() * p.element_size() for p in self.module.parameters())
        if self.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self.device)
            free += torch.cuda.memory_reserved(self.device)
            free -= torch.cuda.memory_allocated(self.device)
        else:
            free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / dist.get_world_size()
        dropped = any(group.post_forward_mesh_info is not None
                      for shard in self.shards for group in _groups_gathered(shard))
        return self.control.sums([free > 1.5 * whole and dropped]) == [dist.get_world_size()]

    def switch(self, setting):
        self.told["now"] = setting["name"]
        how = setting["shards"]
        if self.before is None:
            if not how:
                return
            self.before = {shard: _gathers(shard) for shard in self.shards}
        places = {shard: place for place, shard in enumerate(self.order)}
        for shard, (forward, backward, groups) in self.before.items():
            at = places.get(shard)
            if at is not None and "forward" in how:
                forward = self.order[at + 1:at + 1 + how["forward"]]
            if at is not None and "backward" in how:
                backward = self.order[max(0, at - how["backward"]):at][::-1]
            shard.set_modules_to_forward_prefetch(forward)
            shard.set_modules_to_backward_prefetch(backward)
            for group, mesh in groups:
                group.post_forward_mesh_info = None if "stay" in how else mesh


def _shards_of(model):
    return [m for m in model.modules() if hasattr(m, "set_modules_to_forward_prefetch")]


def _groups_gathered(shard):
    state = shard._get_fsdp_state()
    groups = getattr(state, "_fsdp_param_groups", None) or [state._fsdp_param_group]
    return [group for group in groups if group is not None]


def _gathers(shard):
    """(modules gathered ahead in the forward pass, the same backward, [(group, where it is dropped to
    behind it)])."""
    state = shard._get_fsdp_state()
    return ([other._modules[0] for other in state._states_to_forward_prefetch],
            [other._modules[0] for other in state._states_to_backward_prefetch],
            [(group, group.post_forward_mesh_info) for group in _groups_gathered(shard)])


def _batch(args, kwargs):
    """Samples of a step's first pass: the first tensor's first dimension."""
    for value in [*args, *kwargs.values()]:
        if torch.is_tensor(value) and value.dim() > 0:
            return value.shape[0]
    return None


def _groups_of(ddp, trained, overlap=0):
    """The buckets that DistributedDataParallel has now, as a table."""
    logged = ddp._get_ddp_logging_data()
    names = list(trained)
    places = logged.get("rebuilt_per_bucket_param_indices")
    registered = [name for name, p in ddp.module.named_parameters() if p.requires_grad]
    if places:
        groups = [[registered[int(i)] for i in group.split()] for group in places.split(",")]
        groups = [[name for name in group if name in trained] for group in groups]
    else:
        groups, left = [[]], [int(size) for size in logged["bucket_sizes"].split(",")]
        for name in reversed(names):
            size = trained[name].numel() * trained[name].element_size()
            if groups[-1] and left and left[0] < size:
                groups.append([])
                left.pop(0)
            if left:
                left[0] -= size
            groups[-1].append(name)
    # A flat buffer has one type.
    groups = [[name for name in group if trained[name].dtype == kind] for group in groups
              for kind in dict.fromkeys(trained[name].dtype for name in group)]
    order = [name for group in groups for name in group]
    return {"name": f"the buckets of {_DDP}", "ranks": dist.get_world_size(), "streams": 1,
            "overlap": overlap, "gradients": [[name, trained[name].numel()] for name in order],
            "buckets": [{"places": [order.index(name) for name in group]} for group in groups]}


# ---- what is asked ----

class _Question:
    """The model's proposals, found by a process beside the training."""

    def __init__(self, program, asked):
        self.program, self.asked = program, asked
        self.scenario = None
        self.found = None
        self.process = None
        self.begun = time.perf_counter()
        atexit.register(self._stop)

    def begin(self, scenario):
        try:
            self.scenario = scenario()
        except _record.RecordError as error:
            self.found = {"error": str(error).partition(": ")[2]}
            return
        threading.Thread(target=self._run, daemon=True).start()

    def answer(self):
        """None as long as there is none."""
        if self.found is None and time.perf_counter() - self.begun > _PATIENCE:
            self._stop()
            self.found = {"error": f"the search took longer than {_PATIENCE} s"}
        return self.found

    def _stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()

    def _run(self):
        try:
            with tempfile.TemporaryDirectory(prefix="syncline-") as folder:
                self.found = self._proposals(pathlib.Path(folder))
        except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            self.found = {"error": str(error)}

    def _asked(self, *words):
        """What the program prints. It yields the processor to the training, and Ctrl-C is not for
        it."""
        polite = ["nice", "-n", "10"] if shutil.which("nice") else []
        self.process = subprocess.Popen([*polite, self.program, *map(str, words)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, start_new_session=True)
        out, err = self.process.communicate()
        if self.process.returncode != 0:
            last = (err.strip() or "no message").splitlines()[-1]
            raise ValueError(f"syncline {words[0]} ended with {self.process.returncode}: {last}")
        return out

    def _proposals(self, folder):
        job, file = folder / "job.json", folder / "applied.py"
        job.write_text(json.dumps(self.scenario), encoding="utf-8")
        answer = json.loads(self._asked("tune", job, "--emit", "pytorch", "--python", file, "--top",
                                        _ROWS, "--format", "json"))
        wanted = [kind for kind in ("rounded", "changed") if self.asked[kind]]
        rows = answer["ranking"] + [row for row in answer["alternatives"]
                                    if row["training"] in wanted]
        rows = _distinct(rows)
        base = self.scenario["strategies"][0]
        own = [dict(row["strategy"], name=f"row {i}") for i, row in enumerate(rows)]
        job.write_text(json.dumps({**self.scenario, "strategies": [base, *own]}), encoding="utf-8")
        settings, predicted = [], {}
        for i, row in enumerate(rows):
            if len(settings) == _TRIED:
                break
            self._asked("emit", job, "--strategy", f"row {i}", "--dialect", "pytorch", "--python",
                        file)
            table = _table(file.read_text(encoding="utf-8"))
            if any(_is_near(table, setting["table"]) for setting in settings):
                continue
            name = row["strategy"]["name"]
            settings.append({"name": name, "table": {**table, "name": name}})
            predicted[name] = {key: row[key] for key in ("step_time_s", "step_time_low_s",
                               "step_time_high_s", "speedup", "speedup_low", "speedup_high")}
        if not settings:
            raise ValueError("the model has no proposal that a running job can try")
        return {"recorded": self.scenario, "settings": settings, "predicted": predicted}


def _distinct(rows):
    """Those that the model cannot tell from the best, quickest first. The file has gradients as
    views anyway; it averages no parameters of a job that is to go on by another setting."""
    found = {}
    best = min(rows, key=lambda row: row["step_time_s"])
    for row in sorted(rows, key=lambda row: row["step_time_s"]):
        strategy = {key: value for key, value in row["strategy"].items()
                    if key not in ("name", "bucket_copies")}
        if "local_sgd" not in strategy and row["speedup_high"] >= best["speedup_low"]:
            found.setdefault(json.dumps(strategy, sort_keys=True), row)
    return list(found.values())


def _table(script):
    """STRATEGY of a file that the program wrote."""
    for node in ast.parse(script).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "STRATEGY" \
                and isinstance(node.value, ast.Dict):
            return ast.literal_eval(node.value)
    raise ValueError("the program wrote no strategy")


def _is_near(one, other):
    """Whether steps could hardly tell them apart: no more than a quarter more buckets."""
    def rest(table):
        codecs = sorted({str(bucket.get("codec")) for bucket in table["buckets"]})
        return [table["streams"], table.get("hierarchy"), table.get("overlap", 1), codecs,
                table.get("dgc"), table.get("powersgd")]
    few, many = sorted(len(table["buckets"]) for table in (one, other))
    return rest(one) == rest(other) and many <= 1.25 * few


# ---- what is measured ----

def _differences(rounds, one, other):
    return [taken[one] - taken[other] for taken in rounds if one in taken and other in taken]


def _mean(rounds, name, among):
    """Against all of them, of the turns that all took part in."""
    common = [taken for taken in rounds if all(other in taken for other in among)]
    return statistics.mean(taken[name] for taken in common) if common else math.inf


def _best(rounds, names, predicted):
    """The one that is fastest by what was measured and what was predicted, each as far as it is
    certain; both against the first of them."""
    def faster(name):
        values = _differences(rounds, names[0], name)
        middle, half = _interval(values)
        doubt = half / _student(len(values) - 1) if len(values) > 1 else math.inf
        gain, spread = _expected(predicted.get(name))
        base, base_spread = _expected(predicted.get(names[0]))
        weights = [1 / max(doubt, 1e-6) ** 2, 1 / (spread ** 2 + base_spread ** 2)]
        return (weights[0] * middle + weights[1] * (gain - base)) / sum(weights)
    return max(names, key=lambda name: 0.0 if name == names[0] else faster(name))


def _expected(row):
    """(the logarithm of a predicted speedup, its standard deviation)."""
    if row is None:  # what the speedup is over
        return 0.0, _UNSURE
    half = math.log(row["speedup_high"] / row["speedup_low"]) / 2
    # 80 % of normal values are within 1.2816 deviations.
    return math.log(row["speedup"]), max(_UNSURE, half / 1.2816)


def _left(rounds, names):
    """Those that may still be faster than the best so far by more than is worth a step."""
    if len(rounds) < _LEAST or len(names) < 2:
        return names
    best = min(names, key=lambda name: _mean(rounds, name, names))
    left = []
    for name in names:
        if name != best:
            # All comparisons together hold with 95 % (Bonferroni).
            sure = 1 - (1 - _SURE) / (len(names) - 1)
            middle, half = _interval(_differences(rounds, name, best), sure)
            if middle - half > -_EQUAL:
                continue
        left.append(name)
    return left


def _interval(values, sure=_SURE):
    """(mean, half of its interval) by Student's distribution."""
    count = len(values)
    if count < 2:
        return (values[0] if values else 0.0), math.inf
    return (statistics.mean(values),
            _student(count - 1, sure) * statistics.stdev(values) / math.sqrt(count))


def _student(freedom, sure=_SURE):
    """The value within which Student's t lies so surely (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    def within(t):
        angle = math.atan(t / math.sqrt(freedom))
        sine, cosine = math.sin(angle), math.cos(angle)
        odd = freedom % 2
        if odd and freedom == 1:
            return 2 * angle / math.pi
        term = total = cosine if odd else 1.0
        for k in range(2 if odd else 1, freedom - 1, 2):
            term *= cosine * cosine * k / (k + 1)
            total += term
        return 2 / math.pi * (angle + sine * total) if odd else sine * total
    low, high = 0.0, 16.0
    while within(high) < sure:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) < sure else (low, middle)
    return high


def _line(told, left):
    """The end of the tuning, in one."""
    first, kept = told["first"]["name"], told["kept"]
    cost = "" if told["cost_steps"] is None else f", which cost {told['cost_steps']:.1f} steps"
    after = f"{len(told['steps'])} steps of tuning{cost}"
    if kept == first:
        others = [s["name"] for s in told["settings"]]
        return f"keeps {first}: nothing tried was faster ({', '.join(others)}); {after}"
    gain, predicted = told["gain"], told["predicted"].get(kept)
    expected = "" if predicted is None else ", predicted {:.1f} % (80 %: {:.1f} to {:.1f} %)".format(
        *(100 * (predicted[key] - 1) for key in ("speedup", "speedup_low", "speedup_high")))
    open_ = f"; between {left} settings no difference is certain" if left > 1 else ""
    return (f"keeps '{kept}': {gain['percent']:.1f} % faster than {first} (95 %: {gain['low']:.1f} "
            f"to {gain['high']:.1f} %){expected}{open_}; {after}")


def _earlier(path):
    """What a journal has; ValueError where the file is none."""
    with open(path, encoding="utf-8") as file:
        told = json.load(file)
    if not isinstance(told, dict) or not all(isinstance(told.get(key), dict)
                                             for key in ("job", "asked")):
        raise ValueError(path)
    if "settings" not in told:
        return told
    settings = [told.get("first"), *_list(told["settings"])]
    names = [setting.get("name") for setting in settings if isinstance(setting, dict)]
    if (len(names) < len(settings) or not all(isinstance(name, str) for name in names)
            or told.get("kept", names[0]) not in names
            or not all(isinstance(taken, dict) and set(taken) <= set(names)
                       and all(isinstance(value, float) for value in taken.values())
                       for taken in _list(told.get("rounds", [])))):
        raise ValueError(path)
    return told


def _list(value):
    return value if isinstance(value, list) else [None]


class _Journal:
    """What is written on rank 0, whole or not at all, also where the job is interrupted."""

    def __init__(self, path, control):
        self.path = path
        self.earlier = None
        wrong = ""
        if path is not None and dist.get_rank() == 0:
            try:
                _record._try_place(_record._place(path))
                if os.path.isfile(path) and os.path.getsize(path) > 0:
                    self.earlier = _earlier(path)
            except OSError as error:
                wrong = f"{path}: {error.strerror}"
            except (ValueError, RecursionError):
                wrong = f"{path} is no journal of autotune and is kept: name another file"
        wrong = control.tell(wrong)
        if wrong:
            _fail(wrong)

    def of(self, job, asked):
        """What an earlier run of this job has found out; on rank 0."""
        earlier = self.earlier or {}
        if earlier.get("job") != job or any(earlier.get("asked", {}).get(key) != asked[key]
                                            for key in ("rounded", "changed")):
            return {}
        return {key: earlier[key] for key in
                ("first", "settings", "predicted", "rounds", "kept", "gain", "recorded")
                if key in earlier and "settings" in earlier}

    def write(self, told):
        if self.path is not None and dist.get_rank() == 0:
            self.earlier = told
            _record._write(self.path, json.dumps(told, indent=1) + "\n")
