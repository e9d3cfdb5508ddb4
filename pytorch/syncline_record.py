"""Records what a DistributedDataParallel job does in a step, and writes it as a scenario.

    from syncline_record import record
    record(model, step)            # step() trains once: forward, backward, optimizer.step()
    with record(model):            # or around the job's own loop, of which an update ends a step
        for batch in loader: ...

    torchrun ... -m syncline_record train.py ...      # or around that of a script as it is

Every rank calls it, at any moment of the training; rank 0 writes job.json, which `syncline tune
job.json --emit pytorch` takes. The steps run three ways in turns: as ever, with hooks, and with
hooks but without communication (no_sync); then without and with exchanges that are not the job's,
for what computation and communication take from each other. Parameters, buffers, gradients, the
optimizer's state and the random generators are put back afterwards, in a loop after the last of
these steps, behind which it goes on unseen; what else a step moves on (a data loader, a learning
rate, a gradient scaler) has then seen 78 steps more, 93 on CPUs. A step ends with an update; of a
job that accumulates gradients it has several backward passes, as many in each step.

Needs torch 1.13 or later and nothing else. Times are those of CUDA events on GPUs, of the host's
clock elsewhere. What goes wrong is told in one line, with the traceback where SYNCLINE_TRACEBACK is
set. Printed by `syncline record`.
"""

import argparse
import contextlib
import errno
import functools
import gc
import json
import math
import mmap
import os
import queue
import runpy
import secrets
import socket
import stat
import statistics
import sys
import threading
import time
import types

import torch
import torch.distributed as dist

try:
    import resource
except ImportError:  # Windows
    resource = None

_STEPS = 12  # of each kind that are counted
_WARM = 3  # steps that nobody looks at
_BLOCK = 4  # steps of a kind in a row, behind one that is not counted
_NOISY = 0.1  # a step's deviation from its neighbours, as a share
_MANY_OTHERS = 0.1  # of the processors that ranks need, as a share, before anybody is told
_COUNTED = 0.01  # seconds in which systems count what processors do
_MANY_PAGES = 0.01  # what taking memory anew costs of a step before anybody is told, as a share
_MANY_WAIT = 0.05  # of the smallest exchanges, as a share, before anybody is told
_SWEEP = 2.0  # seconds for the all-reduces, longer where five rounds of them take longer
_ADDED = 1 << 18  # values at the least, of which the sums in 16 bits are timed
_TICK = 0.004  # seconds between two looks of the scheduler, as most systems have it
_CODED = 1 << 24  # elements at most that are encoded beside a backward pass: thrice that is held
_DTYPES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16",
           torch.float64: "fp64"}
_HOOKS = {"ALLREDUCE": "allreduce_hook", "FP16_COMPRESS": "fp16_compress_hook"}
_KNOWN_HOOKS = ("allreduce_hook", "fp16_compress_hook", "bf16_compress_hook")


def record(model, step=None, *, steps=_STEPS, out="job.json", name=None, batch=None,
           optimizer=None):
    """Runs step() and writes the scenario to `out`, with the all-reduces as nccl-tests prints them
    beside it. Collective: all ranks of the model's process group call it.

    model      a DistributedDataParallel module; a plain one gives the times of one rank alone
    step       trains once; its result is ignored. Without it, `with record(model):` stands around
               the job's own loop
    steps      how many are counted of each kind, in blocks of 4
    batch      samples that a rank handles in a step
    optimizer  found by itself, unless it is none of torch.optim

    Returns the scenario on rank 0, None elsewhere; of a loop, `with record(model) as recording`
    has it as recording.scenario once recording.done is true. Raises RuntimeError where rank 0
    cannot write `out`, and where steps are not forward and backward passes of `model`, as many in
    each, and the update; hooks are gone then, too. A loop that ends too early is told in a line.
    """
    loop = _Loop(model, optimizer, steps, out, name, batch)
    if step is None:
        return loop
    with contextlib.closing(loop):
        loop.begin()
        while not loop.done:
            step()
            loop.step_ended()
    return loop.scenario


def _recording(job, steps, out, name, batch):
    """Yields where the job runs a step; gives what rank 0 has written."""
    _expect_writable(job, out)
    saved = _Saved(job)
    try:
        seen = yield from _looked_at(job, steps)
        if job.went_apart and job.logged("find_unused_parameters"):
            with _forgets_uses(job):
                yield
    finally:
        saved.put_back()

    def written():
        scenario = _scenario(job, seen, name or type(job.module).__name__, batch)
        notes = [note for note in (seen.busy(), seen.noise(), seen.crowded) if note]
        if notes:
            scenario["notes"] = notes
        _write(out, json.dumps(scenario, indent=1) + "\n")
        if seen.sweeps and _is_replaced(_place(out)):
            _write(_beside(out), _nccl_tests_rows(seen.hosts, seen.sweeps["world"]))
        print(_summary(job, seen, notes, out), flush=True)
        return scenario

    return _on_first(job, written)


def _looked_at(job, steps):
    """Yields where the job runs a step; gives all that was seen of them."""
    others = None if job.on_gpu else _Others(job)
    for _ in range(_WARM):  # after the first step DDP sorts its buckets anew
        yield
    hosts = job.gathered(socket.gethostname())
    sweeping = _sweeps(job, hosts)
    half = _Half(job)
    runs = yield from _run_in_turns(job, steps, [*sweeping.values(), half])
    seen = _Seen(job, runs)
    seen.hosts = hosts
    seen.copy_in, seen.copy_out = _copies(job, seen)
    seen.waiting = sweeping["world"].waiting() if sweeping else (0.0, 0.0)
    seen.sweeps = _swept(sweeping)
    seen.overlap = yield from _overlap(job, steps, seen, seen.sweeps)
    seen.rounding, seen.sums = half.rates()
    seen.memory = _memory(job)
    seen.page = _page_time()
    seen.selection = _selection(job, seen.overlap)
    seen.optimizer = _optimizer_word(job)
    seen.crowded = _crowded(others.ranks) if others else ""
    seen.others = others.share() if others else 0.0
    return seen


class _Loop:
    """Where the job's steps end: where the job itself says so, or, entered, at the last update of
    each."""

    def __init__(self, model, optimizer, steps, out, name, batch):
        self.done = False
        self.scenario = None
        self.seen = 0
        self.job = _Job(model, optimizer)
        self.steps, self.out = steps, out
        self.recording = _recording(self.job, steps, out, name, batch)
        self.undo = contextlib.ExitStack()
        self.latest = None  # optimizer
        self.last = None  # the one that ends a step, once it is known
        self.updates = 0
        self.when_done = None

    def begin(self):
        next(self.recording)

    def step_ended(self):
        self.seen += 1
        try:
            next(self.recording)
        except StopIteration as end:
            self.scenario, self.done = end.value, True
            self.undo.close()
            if self.when_done:
                self.when_done()

    def close(self):
        """What the steps have changed is put back, unless all were seen and it is."""
        self.undo.close()
        self.recording.close()

    def __enter__(self):
        if not self.job.optimizers:
            _fail("no optimizer of torch.optim trains the model: record(model, step) needs none")
        self.begin()
        self.job.in_loop = True
        hook = self.job.model.register_forward_pre_hook(self._learn_the_last)
        self.undo.callback(hook.remove)
        for optimizer in self.job.optimizers:
            _wrap_update(optimizer, self._update_begins,
                         functools.partial(self._update_ended, optimizer), self.undo)
        scalers = {torch.cuda.amp.GradScaler, getattr(torch.amp, "GradScaler", None)}
        for scaler in (one for one in scalers if one and "step" in vars(one)):
            self._count_updates_left_out(scaler)
        return self

    def __exit__(self, kind, *_):
        self.close()
        if kind is None:
            self.tell_if_too_early("the loop", "the model is as it was before")

    def tell_if_too_early(self, who, what):
        if not self.done and self.job.rank == 0:
            print(f"syncline_record: {who} ended after {self.seen} of the "
                  f"{_needed(self.job, self.steps)} steps that a recording needs: {self.out} was "
                  f"not written, and {what}", file=sys.stderr, flush=True)

    def _learn_the_last(self, *_):
        """Of several optimizers, by the first step, which ends with the next one's beginning."""
        if self.latest is not None and self.last is None:
            self.last = self.latest
            self.step_ended()

    def _update_begins(self):
        if self.job.watch:
            self.job.watch.step.first("update")

    def _update_ended(self, optimizer):
        if self.job.watch:
            self.job.watch.step.last("update_end")
        self.updates += 1
        self.latest = optimizer
        if optimizer is self.last:
            self.step_ended()

    def _count_updates_left_out(self, scaler):
        """Where a gradient is infinite, a scaler leaves out the update, maybe of one rank alone:
        the step ends all the same."""
        original = scaler.step

        @functools.wraps(original)
        def step(this, optimizer, *args, **kwargs):
            before = self.updates
            result = original(this, optimizer, *args, **kwargs)
            if self.updates == before and any(o is optimizer for o in self.job.optimizers):
                self._update_ended(optimizer)
            return result
        scaler.step = step
        self.undo.callback(setattr, scaler, "step", original)


class _Script:
    """Of a script as it is: the loop of the first DistributedDataParallel model that it makes, from
    the first pass for which an optimizer is there."""

    def __init__(self, path, out, stop):
        self.path, self.out, self.stop = path, out, stop
        self.model = None
        self.loop = None
        self.hook = None

    def run(self):
        end = None
        self._wait_for_model()
        try:
            runpy.run_path(self.path, run_name="__main__")
        except SystemExit as error:
            end = error
        if self.loop:
            self.loop.close()
        if end is None or not end.code:
            self._tell_if_too_early()
        if end is not None:
            raise end

    def _wait_for_model(self):
        kind = torch.nn.parallel.DistributedDataParallel
        original = kind.__init__

        @functools.wraps(original)
        def made(model, *args, **kwargs):
            original(model, *args, **kwargs)
            if self.model is None:
                self.model = model
                self.hook = model.register_forward_pre_hook(self._begin)
        kind.__init__ = made

    def _begin(self, model, *_):
        if not (model.training and torch.is_grad_enabled()):
            return
        loop = _Loop(model, None, _STEPS, self.out, None, None)
        if loop.job.optimizers:
            self.hook.remove()
            loop.when_done = sys.exit if self.stop else None
            self.loop = loop.__enter__()

    def _tell_if_too_early(self):
        if self.loop:
            self.loop.tell_if_too_early(self.path, "what it saved meanwhile is not valid")
        elif os.environ.get("RANK", "0") == "0":
            what = ("did not train its DistributedDataParallel model with an optimizer of "
                    "torch.optim" if self.model else "built no DistributedDataParallel model")
            print(f"syncline_record: {self.path} {what}: nothing was recorded", file=sys.stderr,
                  flush=True)


def _main():
    parser = argparse.ArgumentParser(
        prog="syncline_record", description="Runs a training script as it is, on every rank, and "
        "records the steps of its first DistributedDataParallel model.")
    parser.add_argument("--out", metavar="FILE", default="job.json",
                        help="the scenario that rank 0 writes (default: job.json)")
    parser.add_argument("--stop", action="store_true",
                        help="end the script once the scenario is written")
    parser.add_argument("script", help="the training script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    options = parser.parse_args()
    try:
        with open(options.script, "rb"):
            pass
    except OSError as error:
        _fail(f"{options.script}: {error.strerror}")
    # As Python itself would have started it.
    sys.argv = [options.script, *options.arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(options.script))
    _Script(options.script, options.out, options.stop).run()


def _needed(job, steps):
    """How many steps a recording takes."""
    kinds = (3 if job.is_ddp else 2) + (2 + any(_is_coded(job, name) for name in job.gradients)
                                        if job.ranks > 1 else 0)
    forgetting = 1 if job.is_ddp and job.logged("find_unused_parameters") else 0
    return _WARM + -(-steps // _BLOCK) * (1 + _BLOCK) * kinds + forgetting


class RecordError(RuntimeError):
    """Told in one line where nobody catches it; with SYNCLINE_TRACEBACK set, as any other error."""


def _fail(message):
    raise RecordError(f"syncline_record: {message}")


def _tell(kind, error, trace, others=sys.excepthook):
    if issubclass(kind, RecordError) and not os.environ.get("SYNCLINE_TRACEBACK"):
        print(error, file=sys.stderr)
    else:
        others(kind, error, trace)


sys.excepthook = _tell


class _Job:
    """The model, who trains it together, and the clock of the device that it lives on."""

    sweep = _SWEEP  # seconds
    rounds = 5  # of all-reduces at the least
    narrows = True  # settings that round or thin out gradients are asked for, too

    def __init__(self, model, optimizer):
        self.model = model
        self.is_ddp = hasattr(model, "no_sync") and hasattr(model, "_get_ddp_logging_data")
        self.module = model.module if self.is_ddp else model
        ignored = getattr(model, "parameters_to_ignore", ())
        self.gradients = {name: p for name, p in self.module.named_parameters()
                          if p.requires_grad and name not in ignored and p.numel() > 0}
        if not self.gradients:
            _fail("the model has no parameter that is trained")
        self.device = next(iter(self.gradients.values())).device
        self.on_gpu = self.device.type == "cuda"
        self.group = model.process_group if self.is_ddp else None
        self.rank = dist.get_rank(self.group) if self.is_ddp else 0
        self.ranks = dist.get_world_size(self.group) if self.is_ddp else 1
        self.backend = dist.get_backend(self.group) if self.is_ddp else ""
        self.optimizers = [optimizer] if optimizer is not None else self._find_optimizers()
        self.sparse_rows = {}
        self.passes = 1  # backward passes of a step, once steps were watched
        self.went_apart = False  # there were steps without communication
        self.in_loop = False  # _Loop sees the updates
        self.watch = None

    def _find_optimizers(self):
        own = {id(p) for p in self.gradients.values()}
        return [o for o in gc.get_objects() if issubclass(type(o), torch.optim.Optimizer)
                and any(id(p) in own for group in o.param_groups for p in group["params"])]

    def now(self):
        """A point in time: of the compute stream on a GPU, where nothing waits for it."""
        if not self.on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    def wait(self):
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def seconds(self, begin, end):
        return begin.elapsed_time(end) / 1e3 if self.on_gpu else end - begin

    def gathered(self, text):
        """What every rank says, by rank."""
        if self.ranks == 1:
            return [text]
        # As a tensor: objects would need a device of their own to be gathered by NCCL.
        mine = torch.zeros(2560, dtype=torch.uint8)  # a bit for each of 8,192 processors, and more
        said = text.encode()[:mine.numel()]
        mine[:len(said)] = torch.tensor(list(said), dtype=torch.uint8)
        all_said = [torch.zeros(mine.numel(), dtype=torch.uint8, device=self.device)
                    for _ in range(self.ranks)]
        dist.all_gather(all_said, mine.to(self.device), group=self.group)
        return [bytes(t.tolist()).rstrip(b"\0").decode(errors="replace") for t in all_said]

    def of_slowest(self, values):
        """(its number, its values): of the rank whose first value is the largest."""
        firsts = [float(text) for text in self.gathered(repr(values[0]))]
        slowest = firsts.index(max(firsts))
        if self.ranks == 1:
            return 0, values
        own = values if self.rank == slowest else [0.0] * len(values)
        return slowest, self.over_ranks(own)

    def over_ranks(self, values, operation=dist.ReduceOp.SUM):
        """Value by value."""
        shared = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(shared, op=operation, group=self.group)
        return shared.tolist()

    def mean(self, values):
        """Of all ranks."""
        return [total / self.ranks for total in self.over_ranks(values)]

    def median_time(self, work, times):
        """Seconds, behind one that is not counted."""
        taken = []
        for _ in range(1 + times):
            self.wait()
            begin = time.perf_counter()
            work()
            self.wait()
            taken.append(time.perf_counter() - begin)
        return statistics.median(taken[1:])

    def without_exchange(self):
        """While entered, backward passes do not communicate."""
        self.went_apart = True
        return self.model.no_sync()

    def logged(self, key, default=None):
        """What DDP says of itself."""
        return self.model._get_ddp_logging_data().get(key, default) if self.is_ddp else default

    def bucket_bytes(self):
        """Of each bucket of a step, in the order in which DDP sends them."""
        sizes = self.logged("rebuilt_bucket_sizes") or self.logged("bucket_sizes") or "0"
        return [int(size) for size in sizes.split(",")]


class _Saved:
    """What steps change, kept on the host, to be put back. Steps without communication let the
    ranks' parameters drift apart: nothing of that may stay."""

    def __init__(self, job):
        self.job = job
        module = job.module
        self.tensors = [(t, self._copy(t)) for t in [*module.parameters(), *module.buffers()]]
        self.grads = [(p, None if p.grad is None else self._copy(p.grad))
                      for p in module.parameters()]
        self.states = [(o, {p: {key: self._copy(value) for key, value in state.items()}
                            for p, state in o.state.items()}) for o in job.optimizers]
        # Whether the next step begins with rank 0's buffers; none does after one in no_sync.
        self.sends_buffers = getattr(job.model, "require_forward_param_sync", None)
        self.dice = torch.get_rng_state()
        self.gpu_dice = torch.cuda.get_rng_state(job.device) if job.on_gpu else None

    @staticmethod
    def _copy(value):
        return value.detach().to("cpu", copy=True) if torch.is_tensor(value) else value

    @torch.no_grad()
    def put_back(self):
        for tensor, copy in self.tensors:
            tensor.copy_(copy)
        for p, copy in self.grads:
            if copy is None or p.grad is None or copy.is_sparse:
                p.grad = None if copy is None else copy.to(p.device)
            else:
                p.grad.copy_(copy)
        for optimizer, kept in self.states:
            for p in list(optimizer.state):
                if p not in kept:
                    del optimizer.state[p]
            for p, state in kept.items():
                for key in set(optimizer.state[p]) - set(state):
                    del optimizer.state[p][key]
                for key, value in state.items():
                    if torch.is_tensor(value):
                        optimizer.state[p][key].copy_(value)
                    else:
                        optimizer.state[p][key] = value
        if self.sends_buffers is not None:
            self.job.model.require_forward_param_sync = self.sends_buffers
        torch.set_rng_state(self.dice)
        if self.gpu_dice is not None:
            torch.cuda.set_rng_state(self.gpu_dice, self.job.device)


class _Step:
    """Points in time of one step."""

    def __init__(self, job):
        self.job = job
        self.marks = {}
        self.ready = {}  # by gradient, in the order in which they were ready
        self.backwards = 0
        self.updates = 0
        self.sums = []  # by pass: whether DDP is to exchange its gradients
        self.beside = None  # _Beside: exchanges that the backward pass starts
        self.pages = 0

    def first(self, what):
        if what not in self.marks:
            self.marks[what] = self.job.now()

    def last(self, what):
        self.marks[what] = self.job.now()

    def begin_pass(self):
        """Of several passes the marks are those of the last one, which exchanges the gradients."""
        if "backward_end" in self.marks:
            for what in ("forward", "backward", "backward_end", "put_off_end"):
                self.marks.pop(what, None)
            self.ready = {}
        self.first("forward")

    def put_off(self):
        """The pass ends, but for the exchange of its gradients, which counts for nothing."""
        self.last("backward_end")
        if self.beside:
            self.beside.wait()
        self.first("put_off_end")

    def end_pass(self):
        if "put_off_end" in self.marks:
            self.last("put_off_end")
            return
        self.last("backward_end")
        if self.beside:
            self.beside.wait()

    def start_beside(self, name):
        if self.beside and self.backwards >= self.job.passes:
            self.beside.start(name)

    def seconds(self, begin, end):
        """0 where it was not seen."""
        seen = begin in self.marks and end in self.marks
        return self.job.seconds(self.marks[begin], self.marks[end]) if seen else 0.0

    def times(self):
        """Once the device is done."""
        put_off = self.seconds("backward_end", "put_off_end")
        times = {"step": self.seconds("begin", "end") - put_off,
                 "forward": self.seconds("forward", "backward"),
                 "backward": self.seconds("backward", "backward_end"),
                 "update": self.seconds("update", "update_end"),
                 "passes": self.backwards, "sums": self.sums, "pages": self.pages}
        if "backward" in self.marks:
            begin = self.marks["backward"]
            times["ready"] = {n: self.job.seconds(begin, at) for n, at in self.ready.items()}
        return times

    def check(self):
        for what in ("forward", "backward"):
            if what not in self.marks:
                _fail(f"no {what} pass was seen: a step must call the model that was given, and "
                      "loss.backward()")
        if self.updates > len(self.job.optimizers):
            _fail(f"a step has {self.updates} updates: give record(model, step) one that trains "
                  "once")


class _Watch:
    """While entered, hooks mark when the parts of `step` begin and end, and each gradient."""

    def __init__(self, job, alone=False):
        self.job = job
        self.alone = alone  # without communication
        self.step = None
        self.undo = contextlib.ExitStack()

    def __enter__(self):
        with self.undo:  # where one of them fails, those before it go
            self._hook_forward()
            self._hook_backward()
            for optimizer in () if self.job.in_loop else self.job.optimizers:
                self._hook_update(optimizer)
            self.job.watch = self
            self.undo.callback(setattr, self.job, "watch", None)
            for name, parameter in self.job.gradients.items():
                self._hook_gradient(name, parameter)
            self.undo = self.undo.pop_all()
        return self

    def __exit__(self, *_):
        self.undo.close()

    def _hook_forward(self):
        def begins(*_):
            if torch.is_grad_enabled():
                self.step.begin_pass()
                self.step.sums.append(getattr(self.job.model, "require_backward_grad_sync", True))
            if self.alone and self.job.is_ddp:  # whatever a loop has set since
                self.job.model.require_backward_grad_sync = False
        hook = self.job.model.register_forward_pre_hook(begins)
        self.undo.callback(hook.remove)

    def _hook_backward(self):
        original = torch.autograd.backward
        depth = 0  # activation checkpoints run backward passes inside the backward pass

        @functools.wraps(original)
        def backward(*args, **kwargs):
            nonlocal depth
            depth += 1
            if depth == 1:
                self.step.backwards += 1
                self.step.first("backward")
                self.step.start_beside("")
            try:
                return original(*args, **kwargs)
            finally:
                depth -= 1
                if depth == 0:
                    self.step.end_pass()
        torch.autograd.backward = backward  # Tensor.backward calls it by this name
        self.undo.callback(setattr, torch.autograd, "backward", original)

    def _hook_update(self, optimizer):
        def begins(*_):
            self.step.first("update")

        def ended(*_):
            self.step.updates += 1
            self.step.last("update_end")
        if hasattr(optimizer, "register_step_pre_hook"):  # torch 2.0
            self.undo.callback(optimizer.register_step_pre_hook(begins).remove)
            self.undo.callback(optimizer.register_step_post_hook(ended).remove)
        else:
            _wrap_update(optimizer, begins, ended, self.undo)

    def _hook_gradient(self, name, parameter):
        def is_ready(*_):
            self.step.ready[name] = self.job.now()
            self.step.start_beside(name)
            gradient = parameter.grad
            if gradient is not None and gradient.is_sparse:
                self.job.sparse_rows[name] = gradient._indices().size(1)
        if hasattr(parameter, "register_post_accumulate_grad_hook"):  # torch 2.1
            hook = parameter.register_post_accumulate_grad_hook(is_ready)
        else:
            with torch.enable_grad():
                accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            hook = accumulator.register_hook(is_ready)
            self.undo.callback(lambda kept: None, accumulator)  # or it would be gone already
        self.undo.callback(hook.remove)


def _wrap_update(optimizer, begins, ended, undo):
    """Calls them before and after each."""
    original = optimizer.step

    @functools.wraps(original)
    def step(_, *args, **kwargs):
        begins()
        result = original(*args, **kwargs)
        ended()
        return result
    if "step" in vars(optimizer):  # a learning rate scheduler's
        undo.callback(setattr, optimizer, "step", original)
    else:
        undo.callback(vars(optimizer).pop, "step", None)
    # A method, for schedulers that are made meanwhile ask whose it is.
    optimizer.step = types.MethodType(step, optimizer)


def _run_in_turns(job, steps, between):
    """Times of the counted steps, by kind. What else is timed goes on between them, for what
    disturbs a machine for a second would otherwise count for all exchanges, or for none."""
    kinds = ["plain", "exchanged", "alone"] if job.is_ddp else ["plain", "alone"]
    runs = {kind: [] for kind in kinds}
    turns = -(-steps // _BLOCK)
    for turn in range(turns):
        first = turn % len(kinds)
        for kind in kinds[first:] + kinds[:first]:
            runs[kind] += yield from _run_block(job, kind)
        for timed in between:
            timed.go_on(turns)
    return runs


def _run_block(job, kind, exchanges=None):
    """Yields for each step. `exchanges`, if given, makes those that run beside the backward pass of
    a step. The first step is not counted: the host is not ahead of the GPU yet, ranks have drifted
    apart, and DDP decides by the step before whether buffers are broadcast."""
    taken = []
    with contextlib.ExitStack() as stack:
        watch = None
        forgets = _nothing
        if kind == "alone" and job.is_ddp:
            stack.enter_context(job.without_exchange())
        elif job.went_apart and job.logged("find_unused_parameters"):
            forgets = stack.enter_context(_forgets_uses(job))
        if kind != "plain":
            watch = stack.enter_context(_Watch(job, alone=kind == "alone"))
        for i in range(1 + _BLOCK):
            taken.append(_Step(job))
            taken[-1].beside = exchanges(i) if exchanges else None
            if watch:
                watch.step = taken[-1]
            before = _pages()
            taken[-1].first("begin")
            yield
            forgets()
            taken[-1].last("end")
            taken[-1].pages = _pages() - before
            if watch:
                taken[-1].check()
    job.wait()
    return [{**one.times(), **(one.beside.times(one) if one.beside else {})} for one in taken[1:]]


def _nothing():
    pass


@contextlib.contextmanager
def _forgets_uses(job):
    """Yields what ends it. DDP takes the parameters that passes in no_sync have used for used in its
    next exchange, and fails where one has no gradient any more: there, each has one."""
    def fill(*_):
        for name, parameter in job.gradients.items():
            if parameter.grad is None and name not in job.sparse_rows and torch.is_grad_enabled():
                parameter.grad = torch.zeros_like(parameter)
    hook = job.model.register_forward_pre_hook(fill)
    try:
        yield hook.remove
    finally:
        hook.remove()


class _Seen:
    """Medians over the steps. Computing times are those without communication, in which nothing
    else used the device, of the slowest rank: the others wait for it."""

    def __init__(self, job, runs):
        self.runs = runs
        job.passes, self.sums_last = self._passes(job)
        parts = ("step", "forward", "backward", "update")
        own = [self.median("alone", part) for part in parts]
        own += [self.ready(name) for name in job.gradients]
        self.own_step = own[0]
        self.slowest, times = job.of_slowest(own)
        self.alone = dict(zip(parts, times))
        self.uneven = self._uneven(job)
        ready_of = dict(zip(job.gradients, times[len(parts):]))
        self.order, self.always = self._order(job)
        self.unused = [name for name in job.gradients if name not in self.order]
        # Those that the loss does not depend on lie where the model defines them, ready with the
        # gradient before: DDP's buckets hold them, too.
        names = list(job.gradients)
        for name in self.unused:
            at = names.index(name)
            self.order.insert(self.order.index(names[at - 1]) if at else len(self.order), name)
        self.waits = {}
        before = 0.0
        for name in self.order:
            ready = max(before, ready_of[name])
            self.waits[name] = ready - before
            before = ready
        # All that is neither forward pass, gradients nor update: data, clipping, zero_grad.
        earlier = (job.passes - 1) * (self.alone["forward"] + self.alone["backward"])
        self.gap = max(0.0, self.alone["step"] - earlier - self.alone["forward"] - before
                       - self.alone["update"])

    def _order(self, job):
        """(names in the order of readiness on rank 0, those that are ready in each step on each
        rank)."""
        watched = [step["ready"] for kind in ("exchanged", "alone")
                   for step in self.runs.get(kind, [])]
        last = list(self.runs.get("exchanged", self.runs["alone"])[-1]["ready"])
        always = [float(all(name in ready for ready in watched)) for name in job.gradients]
        if job.ranks > 1:
            # Places from 1 on; 0: it is not ready in that step.
            places = [last.index(name) + 1.0 if name in last and job.rank == 0 else 0.0
                      for name in job.gradients]
            places = dict(zip(job.gradients, job.over_ranks(places)))
            last = sorted((name for name in places if places[name] > 0), key=places.get)
            always = job.over_ranks(always, dist.ReduceOp.MIN)
        return last, {name for name, each in zip(job.gradients, always) if each}

    def _passes(self, job):
        """(backward passes of a step, whether the last one alone exchanges)."""
        watched = [step for kind in ("exchanged", "alone") for step in self.runs.get(kind, [])]
        counts = sorted({step["passes"] for step in watched})
        if len(counts) > 1:
            _fail(f"steps run {counts[0]} to {counts[-1]} backward passes; a recording needs as many "
                  "in each")
        exchanged = [tuple(step["sums"]) for step in self.runs.get("exchanged", [])]
        last = (False,) * (counts[0] - 1) + (True,)
        if exchanged and counts[0] > 1 and set(exchanged) not in ({last}, {(True,) * counts[0]}):
            _fail(f"of the {counts[0]} backward passes of a step neither all communicate nor the last "
                  "one alone (no_sync)")
        return counts[0], counts[0] > 1 and set(exchanged) == {last}

    def median(self, kind, what):
        return statistics.median(step[what] for step in self.runs[kind])

    def ready(self, name):
        found = [step["ready"][name] for step in self.runs["alone"] if name in step["ready"]]
        return statistics.median(found) if found else 0.0

    def spread(self, kind, what="step"):
        """Half of the steps lie within this share of their median."""
        low, middle, high = statistics.quantiles([step[what] for step in self.runs[kind]], n=4)
        return (high - low) / 2 / middle if middle else 0.0

    def jitter(self):
        """Deviation of a step from the ones around it, as a share: what slows a machine down for a
        while slows all of its ranks."""
        moves = [abs(b - a) for block in self._blocks("alone") for a, b in zip(block, block[1:])]
        # Half of all normal values are within 0.6745 deviations; a difference varies twice as much.
        return statistics.median(moves) / 0.6745 / 2 ** 0.5 / self.median("alone", "step")

    def drift(self):
        """How far apart the same steps lie at different moments: the standard deviation of the
        logarithm of a block's median, each kind of step around its own."""
        off = [math.log(statistics.median(block) / self.median(kind, "step"))
               for kind in self.runs for block in self._blocks(kind)]
        return (sum(x * x for x in off) / max(1, len(off) - len(self.runs))) ** 0.5

    def _blocks(self, kind):
        """The times of steps in a row."""
        times = [step["step"] for step in self.runs[kind]]
        return [times[i:i + _BLOCK] for i in range(0, len(times), _BLOCK)]

    def time_spread(self):
        """How far the times may lie from those of another moment, or another strategy: pages that a
        step takes anew are all of one's, none of another's; a time may have lost all of what others
        took, or nothing."""
        _, seconds = self.taken_anew()
        return math.hypot(self.drift(), seconds / 2 / self.median("plain", "step"),
                          math.log(1 - min(self.others, 0.9)) / 2)

    def _uneven(self, job):
        """The deviation of ranks' steps as a share that explains how much longer the slowest one
        of a step takes than the slowest rank does: each step waits for it."""
        if job.ranks == 1:
            return 0.0
        longest = statistics.median(job.over_ranks([step["step"] for step in self.runs["alone"]],
                                                   dist.ReduceOp.MAX))
        # The largest of so many normal values (Blom 1958), in deviations.
        largest = statistics.NormalDist().inv_cdf((job.ranks - 0.375) / (job.ranks + 0.25))
        return max(0.0, longest / self.alone["step"] - 1) / largest

    def taken_anew(self):
        """(pages that a step takes anew from the system, the seconds that this costs)."""
        pages = self.median("plain", "pages")
        return pages, pages * self.page

    def busy(self):
        """What the user must know of a machine that was; empty on a quiet one."""
        if self.others < _MANY_OTHERS:
            return ""
        return (f"recorded on a busy machine: other processes took {100 * self.others:.0f} % of "
                "the processors that the ranks need; record again when it is quiet")

    def noise(self):
        """The same of one on which equal steps differ."""
        jitter = self.jitter()
        if jitter < _NOISY:
            return ""
        return (f"recorded on a noisy machine: steps without communication differ by "
                f"{100 * jitter:.0f} % from one to the next; record again when it is quiet")

    def compared(self, kind, other, what="step"):
        """(how much longer the one takes, how far chance may put that off), in seconds."""
        # Of medians of normal values, 95 %: 1.96 * 1.253 * deviation / root of their number.
        errors = [2.46 * self.spread(k, what) / 0.6745 * self.median(k, what)
                  / len(self.runs[k]) ** 0.5 for k in (kind, other)]
        return (self.median(kind, what) - self.median(other, what),
                (errors[0] ** 2 + errors[1] ** 2) ** 0.5)

    def cost(self):
        """Of recording a step: (what hooks add, how far chance may put that off)."""
        return self.compared("exchanged" if "exchanged" in self.runs else "alone", "plain")

    def overhead(self):
        """What the forward pass takes longer with communication, where DDP broadcasts the buffers.
        0 where chance explains it."""
        if "exchanged" not in self.runs:
            return 0.0
        longer, doubt = self.compared("exchanged", "alone", "forward")
        return longer if longer > doubt else 0.0


def _copies(job, seen):
    """({gradient: seconds}, the same) of the copies into buckets, which divide by the ranks, and
    back: DDP's own operations, done by themselves, since in a step the exchanges disturb the one
    and hide the other. Empty where DDP does without."""
    if job.ranks == 1 or job.logged("gradient_as_bucket_view"):
        return {}, {}
    shares = {name: torch.ones_like(job.gradients[name]) for name in seen.order}
    buckets = {name: torch.ones_like(share) for name, share in shares.items()}

    def median_times(copy):
        taken = {name: [] for name in seen.order}
        for _ in range(7):
            marks = [job.now()]
            for name in seen.order:
                copy(shares[name], buckets[name])
                marks.append(job.now())
            job.wait()
            for name, begin, end in zip(seen.order, marks, marks[1:]):
                taken[name].append(job.seconds(begin, end))
        return {name: 0.0 if name in job.sparse_rows else statistics.median(times)
                for name, times in taken.items()}
    with torch.no_grad():
        return (median_times(lambda share, bucket: torch.mul(share, 1 / job.ranks, out=bucket)),
                median_times(lambda share, bucket: share.copy_(bucket)))


def _sweeps(job, hosts):
    """All-reduces of this job's own process group: {"world": _Sweep, "node": ...}, the second one
    inside each node where there are several, of several ranks."""
    if job.ranks == 1:
        return {}
    sweeps = {"world": _Sweep(job, job.group)}
    nodes, inside = _shape(hosts)
    if nodes > 1 and inside > 1 and job.ranks == dist.get_world_size():
        groups = [dist.new_group(range(i, i + inside)) for i in range(0, job.ranks, inside)]
        sweeps["node"] = _Sweep(job, groups[job.rank // inside])
    return sweeps


class _Sweep:
    """All-reduces from 4 KiB to the largest bucket, in rounds over all sizes."""

    def __init__(self, job, group):
        self.job, self.group = job, group
        largest = max(16384, max(job.bucket_bytes()) // 4)  # elements
        self.counts = [1024]
        while self.counts[-1] < largest:
            self.counts.append(min(largest, self.counts[-1] * 2))
        self.payload = torch.zeros(largest, device=job.device)
        self._round()
        self.rounds = max(job.rounds, min(200, int(job.sweep / sum(self._round()))))
        self.taken = []

    def _round(self):
        taken = []
        # The first one would count how far the ranks have come apart in the steps before.
        dist.all_reduce(self.payload[:1], group=self.group)
        for count in self.counts:
            self.job.wait()
            begin = time.perf_counter()
            dist.all_reduce(self.payload[:count], group=self.group)
            self.job.wait()
            taken.append(time.perf_counter() - begin)
        # The mean over the ranks, as nccl-tests takes it, and the same on all of them.
        times = torch.tensor(taken, device=self.job.device)
        dist.all_reduce(times, group=self.group)
        return (times / dist.get_world_size(self.group)).tolist()

    def go_on(self, turns):
        """The next one's share of so many turns."""
        self.taken += [self._round() for _ in range(-(-self.rounds // turns))]

    def waiting(self):
        """(share of the smallest that wait, seconds that these take longer) where exchanges take
        either of two times: the ranks' mean, the same on all of them."""
        smallest = sorted(times[0] for times in self.taken)
        median = statistics.median(smallest)
        late = [seconds for seconds in smallest if seconds > 2 * median + _TICK / 4]
        return len(late) / len(smallest), statistics.mean(late) - median if late else 0.0

    def times(self):
        """(bytes, seconds)."""
        means = [_mean(times) for times in zip(*self.taken)]
        return [(4 * count, seconds) for count, seconds in zip(self.counts, _rising(means))]


def _swept(sweeping):
    """{"world": [(bytes, seconds)], "node": ...}."""
    if "node" in sweeping:
        dist.destroy_process_group(sweeping["node"].group)
    return {where: sweep.times() for where, sweep in sweeping.items()}


def _mean(times):
    """Without a fiftieth on either side. Of exchanges, not the median: where one of three waits for
    the processor's next tick, a step pays for all three."""
    cut = len(times) // 50
    return statistics.mean(sorted(times)[cut:len(times) - cut])


def _rising(values):
    """The nearest that nowhere fall, for more bytes take no less time: neighbours that do share
    their mean."""
    runs = []  # [sum, how many]
    for value in values:
        runs.append([value, 1])
        while len(runs) > 1 and runs[-2][0] * runs[-1][1] > runs[-1][0] * runs[-2][1]:
            total, count = runs.pop()
            runs[-1][0] += total
            runs[-1][1] += count
    return [total / count for total, count in runs for _ in range(count)]


class _Beside:
    """Exchanges of one size that the backward pass starts, one after the other, of zeros."""

    def __init__(self, job, payload, places):
        self.job = job
        self.payload = payload
        self.places = places  # names of the gradients that start one; "": the pass itself
        self.started = []  # [begin, work, end]

    def start(self, name):
        if name not in self.places:
            return
        entry = [self.job.now(), None, None]
        self.started.append(entry)
        entry[1] = dist.all_reduce(self.payload, group=self.job.group, async_op=True)
        if self.job.on_gpu:
            with torch.cuda.stream(_side_stream(self.job.device)):
                entry[1].wait()
                entry[2] = torch.cuda.Event(enable_timing=True)
                entry[2].record()
        else:
            entry[1].get_future().then(lambda _: entry.__setitem__(2, self.job.now()))

    def wait(self):
        for _, work, _ in self.started:
            work.wait()

    def times(self, step):
        """{"took": of those that ended beside the pass, "cut": how far the others had come}. The
        rank that came last has the shortest time, which is the exchange's own: the others have
        waited for it."""
        end_of_pass = step.marks["backward_end"]
        mine = []  # seconds, and whether it ended in time, of each
        for begin, _, end in self.started:
            ended = end is not None and self.job.seconds(end, end_of_pass) >= 0
            mine += [max(0.0, self.job.seconds(begin, end if ended else end_of_pass)), float(ended)]
        least = self.job.over_ranks(mine, dist.ReduceOp.MIN)
        times = list(zip(least[0::2], least[1::2]))
        return {"took": [seconds for seconds, ended in times if ended],
                "cut": [seconds for seconds, ended in times if not ended]}


@functools.lru_cache(maxsize=None)
def _side_stream(device):
    return torch.cuda.Stream(device)


def _overlap(job, steps, seen, sweeps):
    """What computation and an exchange take from each other while both run: {"slowdown", of
    computation; "collective_slowdown"; "delay", seconds an exchange; "coded": (seconds that a step
    takes longer while DGC encodes beside it, so many gradients, of so many elements)}, the ranks'
    mean. Empty where nothing was exchanged."""
    if "exchanged" not in seen.runs or not sweeps:
        return {}
    # Two sizes tell apart what an exchange waits and what it loses while bytes flow: of the
    # smallest one next to none do.
    short = [one for one in sweeps["world"] if one[1] < 0.6 * seen.alone["backward"]]
    large, small = (short or sweeps["world"][:1])[-1], sweeps["world"][0]
    kinds = [_exchanges_of(job, seen, size) for size in (large, small)]
    turns, encoded = [], []
    with contextlib.closing(_Coding(job, seen.order)) as coding:
        for _ in range(-(-steps // _BLOCK)):
            beside = yield from _run_block(job, "alone", lambda i: kinds[i % 2]())
            alone = yield from _run_block(job, "alone")
            turns.append((beside[1::2], beside[0::2], alone))
            if coding.selections:
                encoded.append((yield from _run_block(job, "alone", lambda _: coding)))
    delay, slope = _delays(turns, large[1], small[1])
    # While an exchange waits for a processor it takes nothing from the computation. Neighbouring
    # blocks are compared: what slows the machine down for a while is in both.
    flowing = statistics.mean(sum(max(0.0, t - delay) for t in one["took"] + one["cut"])
                              for with_large, _, _ in turns for one in with_large)
    lost = statistics.median(
        statistics.median(one["backward"] for one in with_large)
        - statistics.median(one["backward"] for one in alone) for with_large, _, alone in turns)
    share = min(max(0.0, lost / flowing), 0.9) if flowing > 0 else 0.0
    coded = [statistics.median(one["step"] for one in there)
             - statistics.median(one["step"] for one in alone)
             for there, (_, _, alone) in zip(encoded, turns)]
    share, slope, delay, coded = job.mean([share, slope, delay,
                                           statistics.median(coded) if coded else 0.0])
    return {"slowdown": share / (1 - share), "collective_slowdown": slope, "delay": delay,
            "coded": (coded, len(coding.selections), coding.elements)}


def _delays(turns, large, small):
    """(seconds that an exchange waits, share that it takes longer), of exchanges that take so long
    by themselves."""
    took = [[t for turn in turns for one in turn[i] for t in one["took"]] for i in (0, 1)]
    longer = [_mean(times) - alone if times else 0.0
              for times, alone in zip(took, (large, small))]
    slope = max(0.0, _slope(longer[0] - longer[1], large - small, _doubt_of_difference(*took)))
    return max(0.0, statistics.mean(longer) - slope * (large + small) / 2), slope


def _slope(rise, run, doubt):
    """rise / run as far as `doubt`, the rise's standard deviation, lets it be told from nothing: a
    collective that shares its processor takes about twice as long, which deviates by 1."""
    return rise * run / (run * run + doubt * doubt) if run > 0 else 0.0


def _doubt_of_difference(*samples):
    """Standard deviation of the difference of two means; infinite where one cannot be told."""
    if any(len(times) < 2 for times in samples):
        return math.inf
    return sum(statistics.variance(times) / len(times) for times in samples) ** 0.5


def _exchanges_of(job, seen, size):
    """Makes the exchanges of a size that follow each other through the backward pass, with time
    for a slow one; the same on all ranks."""
    payload = torch.zeros(size[0] // 4, device=job.device)
    places, at, free = {""}, 0.0, 1.5 * size[1] + 0.006
    for name in seen.order:
        at += seen.waits[name]
        if at >= free and at < seen.alone["backward"] and name in seen.always:
            places.add(name)
            free = at + 1.5 * size[1] + 0.006
    return lambda: _Beside(job, payload, places)


def _memory(job):
    """Bytes a second that pass memory while all gradients are copied: read and written."""
    if job.ranks == 1:
        return 0.0
    own = [torch.zeros_like(parameter) for parameter in job.gradients.values()]
    copies = [torch.zeros_like(tensor) for tensor in own]
    passing = 2 * sum(t.numel() * t.element_size() for t in own)

    def copy_all():
        for tensor, copy in zip(own, copies):
            copy.copy_(tensor)
    return 1 / job.mean([job.median_time(copy_all, 7) / passing])[0]


def _pages():
    """That this process has taken anew from the system so far: the C library gives memory back that
    is free, or does not, by what was allocated before, and a step takes it again."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt if resource else 0


def _page_time():
    """Seconds that the system takes to hand out a page, beyond those of writing to it."""
    taken = []
    with mmap.mmap(-1, 16 << 20) as fresh:
        before = _pages()
        for _ in range(2):
            begin = time.perf_counter()
            for at in range(0, len(fresh), mmap.PAGESIZE):
                fresh[at] = 1
            taken.append(time.perf_counter() - begin)
        return max(0.0, taken[0] - taken[1]) / max(1, _pages() - before)


class _Half:
    """What becoming 16 bits wide costs the job's gradients, and the sums of those, which Gloo takes
    on the processor."""

    def __init__(self, job):
        self.job = job
        # Of few values, waking up would cost more of the processor than adding.
        self.count = max(16384, max(job.bucket_bytes()) // 4, _ADDED)
        self.taken = []

    def go_on(self, turns):
        """The next one's share of so many turns: what disturbs a machine for a second would count
        for all samples of it."""
        if self.job.ranks == 1 or not self.job.narrows:
            return
        # Sums of values too small for 16 bits to hold them whole take a processor twice as long: it
        # is the job's own that count.
        whole = _gradient_values(self.job, self.count)
        as_many_bytes = torch.zeros(-(-self.count // 2), device=self.job.device)
        self._once(whole.clone(), as_many_bytes)
        self.taken += [self._once(whole.clone(), as_many_bytes)
                       for _ in range(max(3, -(-9 // turns)))]

    def _once(self, whole, as_many_bytes):
        """Seconds: of rounding and dividing as DDP's hook does and of the way back; of the
        processor that communication takes beyond one of as many bytes."""
        job = self.job
        job.wait()
        marks = [time.perf_counter()]
        half = whole.to(torch.float16).div_(job.ranks)
        job.wait()
        marks.append(time.perf_counter())
        processor = [time.process_time()]
        for payload in (half, as_many_bytes):
            dist.all_reduce(payload, group=job.group)
            job.wait()
            processor.append(time.process_time())
        marks.append(time.perf_counter())
        whole.copy_(half)
        job.wait()
        marks.append(time.perf_counter())
        return (marks[1] - marks[0] + marks[3] - marks[2],
                processor[1] - processor[0] - (processor[2] - processor[1]))

    def rates(self):
        """(bytes a second at which gradients become 16 bits wide and come back; bytes of 16 bits a
        second that the backend adds up in software). 0 where nothing was exchanged, or where
        nothing is added up on the processor."""
        job = self.job
        if not self.taken:
            return 0.0, 0.0
        rounding, sums = map(statistics.median, zip(*self.taken))
        # fp32 is read and fp16 written, and the other way round.
        rounding, sums = job.mean([rounding / (12 * self.count), max(0.0, sums)])
        added = 2 * self.count * (job.ranks - 1) / job.ranks
        return 1 / max(rounding, 1e-15), 0.0 if job.on_gpu or sums <= 0 else added / sums


def _gradient_values(job, count):
    """So many values as the job's gradients have them, those of the last step again and again."""
    known = [p.grad.detach().reshape(-1).float() for p in job.gradients.values()
             if p.grad is not None and not p.grad.is_sparse]
    if not known:
        return torch.full((count,), 0.01, device=job.device)
    together = torch.cat(known)
    return together.repeat(-(-count // together.numel()))[:count]


def _selection(job, overlap):
    """(elements a second, seconds besides) with which DGC encodes: by itself, the largest gradient
    and one of next to no elements. Where an element costs more in a step, in which one gradient
    after the other comes by and two threads share the caches, it is that."""
    if job.ranks == 1 or not job.narrows:
        return 0.0, 0.0
    largest = max(gradient.numel() for gradient in job.gradients.values())
    small = min(1024, largest)
    times = [_selection_time(job, elements) for elements in (small, largest)]
    per_element, besides = job.mean([(times[1] - times[0]) / max(1, largest - small), times[0]])
    seconds, gradients, elements = overlap.get("coded", (0.0, 0, 0))
    beside = (seconds - gradients * besides) / elements if elements else 0.0
    if max(per_element, beside) <= 0:  # too few elements to tell
        return job.mean([largest / times[1]])[0], 0.0
    per_element = max(per_element, beside)
    return 1 / per_element, max(0.0, besides - small * per_element)


def _selection_time(job, elements):
    gradient = _gradient_values(job, elements)
    coder = _Selection(gradient, job.ranks, {})
    return job.median_time(lambda: coder.go(gradient), 15)


class _Selection:
    """What the file of `syncline emit --python` does with a gradient for DGC, a hundredth kept, but
    the exchange: momentum, what was held back, the largest, and adding up what all ranks sent."""

    def __init__(self, like, ranks, room):
        self.ranks = ranks
        self.room = room  # that all of a thread share, by place
        self.velocity, self.residual, self.buffer = (torch.zeros_like(like) for _ in range(3))
        self.kept = max(1, like.numel() // 100)

    def _scratch(self, place):
        known = self.room.get(place)
        if known is None or known.numel() < self.buffer.numel():
            known = self.room[place] = torch.empty_like(self.buffer)
        return known[:self.buffer.numel()]

    @torch.no_grad()
    def go(self, gradient):
        fast, held = self._scratch(0), self._scratch(1)
        torch.mul(self.velocity, 0.9, out=fast).add_(gradient)
        torch.add(self.residual, fast, out=held)
        if math.isfinite(held.sum()):
            self.velocity.copy_(fast)
            self.residual.copy_(held)
        magnitude = torch.abs(self.residual, out=fast)
        places, candidates = _candidates(magnitude, self.kept)
        least = torch.topk(candidates, self.kept).values[-1]
        above = candidates > least
        equal = (candidates == least).nonzero().flatten()[:self.kept - int(above.sum())]
        indices = places[torch.cat([above.nonzero().flatten(), equal]).sort().values]
        values = self.residual[indices]
        self.residual[indices] = 0
        self.velocity[indices] = 0
        sent = torch.cat([indices.to(torch.int32), values.view(torch.int32)])
        self.buffer.zero_()
        for _ in range(self.ranks):
            self.buffer.index_add_(0, sent[:self.kept].long(),
                                   sent[self.kept:].view(torch.float32))
        self.buffer.div_(self.ranks)


def _is_coded(job, name, besides=0):
    """Whether its gradient is encoded, besides so many elements. On CPUs: on a GPU that would take
    memory that the job may need."""
    gradient = job.gradients[name]
    return (job.narrows and not job.on_gpu and besides + gradient.numel() <= _CODED
            and gradient.dtype == torch.float32 and name not in job.sparse_rows)


class _Coding:
    """Gradients that a thread encodes as the backward pass has them ready, as the file does it, but
    exchanges nothing."""

    def __init__(self, job, order):
        self.job = job
        self.selections = {}
        self.elements = 0
        room = {}
        for name in order:
            parameter = job.gradients[name]
            if _is_coded(job, name, self.elements):
                self.selections[name] = _Selection(parameter.detach().reshape(-1), job.ranks, room)
                self.elements += parameter.numel()
        self.tasks = queue.SimpleQueue()
        self.failed = None
        self.thread = threading.Thread(target=self._serve, daemon=True)
        if self.selections:
            self.thread.start()

    def _serve(self):
        for task in iter(self.tasks.get, None):
            try:
                task()
            except Exception as error:  # told to whoever waits
                self.failed = error

    def start(self, name):
        if name in self.selections:
            gradient = self.job.gradients[name].grad.detach().reshape(-1)
            self.tasks.put(lambda: self.selections[name].go(gradient))

    def wait(self):
        done = threading.Event()
        self.tasks.put(done.set)
        done.wait()
        if self.failed is not None:
            raise self.failed

    def times(self, _):
        return {}

    def close(self):
        """A thread that torch wakes while Python ends would abort the process."""
        self.tasks.put(None)
        if self.selections:
            self.thread.join()


def _candidates(magnitude, kept):
    """Where to look for the largest, told by a sample."""
    elements = magnitude.numel()
    if elements > 1 << 14:
        sample = magnitude[::61]
        least = torch.topk(sample, int(1.25 * kept / elements * sample.numel()) + 8).values[-1]
        places = (magnitude >= least).nonzero().flatten()
        if places.numel() >= kept:
            return places, magnitude[places]
    return torch.arange(elements, device=magnitude.device), magnitude


def _shape(hosts):
    """Nodes and ranks on each. Where they are uneven, or not in order, every rank is a node."""
    runs = [host for i, host in enumerate(hosts) if i == 0 or hosts[i - 1] != host]
    inside = len(hosts) // len(runs)
    even = len(set(runs)) == len(runs) and all(
        hosts[i] == hosts[i - i % inside] for i in range(len(hosts)))
    return (len(runs), inside) if even and len(runs) * inside == len(hosts) else (len(hosts), 1)


def _round(value, digits=6):
    return float(f"{value:.{digits}g}")


def _tier(points, ranks):
    """A level of the network as a cluster describes it: the time of a ring's rounds by their
    bytes, rising in both."""
    rounds = 2 * (ranks - 1)
    curve = []
    for size, seconds in points:
        least = curve[-1][1] * 1.0001 if curve else 0.0
        curve.append([_round(size / ranks), _round(max(seconds / rounds * 1e6, least), 9)])
    (left, before), (right, last) = curve[-2:]
    return {"latency_us": curve[0][1],
            "bandwidth_gbps": _round((right - left) / (last - before) * 8e-3),
            "measured_steps_us": curve}


def _table(points, nodes, inside):
    """What collectives of NCCL were measured to take: the sizes one by one, the last one's rate
    beyond them."""
    lines = [{"from_bytes": size, "to_bytes": size, "latency_us": _round(seconds * 1e6),
              "us_per_mbyte": 0} for size, seconds in points]
    size, seconds = points[-1]
    lines[-1].update(latency_us=0, us_per_mbyte=_round(seconds * 1e6 / (size / 1e6)))
    return {"collective": "all_reduce", "nodes": nodes, "gpus_per_node": inside,
            "rows": len(points), "min_bytes": points[0][0], "max_bytes": size, "clean": True,
            "in_sample_percent": 0, "form": "segments", "lines": lines}


def _processors():
    """The machine that this process is on, its compute threads, and as bits where they may run."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            machine = file.read().strip()  # one for all containers of it
        mine = os.sched_getaffinity(0)
    except (OSError, AttributeError):  # not Linux
        machine, mine = socket.gethostname(), range(os.cpu_count() or 1)
    return f"{machine} {torch.get_num_threads()} {sum(1 << at for at in mine):x}"


def _machines(ranks):
    """{machine: (its ranks, their compute threads, the processors where these may run as bits)}."""
    machines = {}
    for rank, said in enumerate(ranks):
        machine, threads, where = said.rsplit(" ", 2)
        there, known_threads, known_where = machines.get(machine, ([], 0, 0))
        machines[machine] = (there + [rank], known_threads + int(threads),
                             known_where | int(where, 16))
    return machines


class _Others:
    """What other processes take, from now on, of the processors that ranks compute on."""

    def __init__(self, job):
        self.job = job
        self.ranks = job.gathered(_processors())
        _, _, self.where = _machines(self.ranks)[self.ranks[job.rank].rsplit(" ", 2)[0]]
        self.before = self._read()

    def _read(self):
        return time.perf_counter(), _used(self.where), _used_by_this()

    def share(self):
        """The same on all ranks."""
        took, used, own = (now - before for now, before in zip(self._read(), self.before))
        used -= _COUNTED * (1 + bin(self.where).count("1"))  # which counting may be off by
        said = self.job.gathered(f"{used / took:.4f} {own / took:.4f}")
        return _share_of_others(self.ranks, [tuple(map(float, text.split())) for text in said])


def _used(where):
    """Seconds that these processors have worked so far, for whomever, other virtual machines too; 0
    where the system does not say."""
    ticks = 0
    with contextlib.suppress(OSError), open("/proc/stat", encoding="ascii") as file:
        for line in file:
            name, *times = line.split()
            if name[:3] == "cpu" and name[3:].isdigit() and where >> int(name[3:]) & 1:
                user, nice, system, *_, stolen = map(int, times[:8])
                ticks += user + nice + system + stolen
    return ticks and ticks / os.sysconf("SC_CLK_TCK")


def _used_by_this():
    """Seconds of processors that this process and those that it started, as for data, have used."""
    ticks, started = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", encoding="utf-8",
                                                errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()  # behind a name that may hold anything
            started.setdefault(int(fields[1]), []).append(int(name))
            ticks[int(name)] = sum(map(int, fields[11:15]))  # of its own, and of those that ended
    own = [os.getpid()]
    for process in own:
        own += started.get(process, ())
    total = sum(ticks.get(process, 0) for process in own)
    return total and total / os.sysconf("SC_CLK_TCK")


def _share_of_others(ranks, used):
    """Of the processors that a machine's ranks need, what others took beyond those that are left
    over; on the machine where it is most. `used`: how many each rank has seen at work, and how many
    worked for it."""
    shares = [0.0]
    for there, threads, where in _machines(ranks).values():
        processors = bin(where).count("1")
        needed = min(threads, processors)
        others = used[there[0]][0] - sum(used[rank][1] for rank in there)
        shares.append((others - (processors - needed)) / needed)
    return min(1.0, max(shares))


def _crowded(ranks):
    """What the user must know where ranks compute with more threads than their machine has
    processors for; empty where each has its own."""
    for there, threads, where in _machines(ranks).values():
        processors = bin(where).count("1")
        if threads > processors:
            ranks_of, of_them = "s" * (len(there) > 1), "s" * (processors > 1)
            return (f"{threads} threads of {len(there)} rank{ranks_of} compute on {processors} "
                    f"processor{of_them} of a machine: while one waits another computes, and "
                    "predictions for other strategies are no more than a hint; fewer ranks, "
                    "or a smaller OMP_NUM_THREADS, leave each its own")
    return ""


def _cluster(job, hosts, sweeps):
    nodes, inside = _shape(hosts)
    device = torch.cuda.get_device_name(job.device) if job.on_gpu else "CPU"
    cluster = {"name": f"{nodes} x {inside} {device}", "nodes": nodes, "gpus_per_node": inside,
               "device": {"name": device}}
    if job.on_gpu:
        size = torch.cuda.get_device_properties(job.device).total_memory
        cluster["device"]["memory_gbytes"] = _round(size / 1e9)
    if not sweeps:
        return cluster
    cluster["source"] = f"all-reduces of the job's own process group over {job.backend}"
    cluster["library"] = job.backend if job.backend in ("nccl", "gloo") else "links"
    world = _tier(sweeps["world"], job.ranks)
    if inside > 1:
        cluster["intra"] = _tier(sweeps["node"], inside) if "node" in sweeps else world
    if nodes > 1:
        cluster["inter"] = world
    if nodes > 1 and inside > 1 and "node" not in sweeps:
        cluster["source"] += "; the links inside a node were not measured, theirs are assumed"
    if job.backend == "nccl":
        tables = [_table(sweeps["world"], nodes, inside)]
        if "node" in sweeps:
            tables.append(_table(sweeps["node"], 1, inside))
        least = sweeps.get("node", sweeps["world"])[0][1] * 1e6
        cluster["calibration"] = {"tables": tables,
                                  "node": {"base_us": _round(least), "step_us": 0}}
        for level in ("intra", "inter"):
            cluster.get(level, {}).pop("measured_steps_us", None)
    return cluster


def _tensors(job, seen):
    tensors = []
    registered = {name: place for place, name in enumerate(job.gradients)}
    for name in seen.order:
        parameter = job.gradients[name]
        if parameter.dtype not in _DTYPES:
            _fail(f"{name} is {parameter.dtype}; expected one of "
                  + ", ".join(str(dtype) for dtype in _DTYPES))
        tensor = {"name": name, "shape": list(parameter.shape), "dtype": _DTYPES[parameter.dtype],
                  "registered": registered[name], "backward_us": _round(seen.waits[name] * 1e6)}
        if name in job.sparse_rows:
            tensor["sparse_rows"] = job.sparse_rows[name]
        if seen.copy_in:
            tensor["copy_in_us"] = _round(seen.copy_in[name] * 1e6)
            tensor["copy_out_us"] = _round(seen.copy_out[name] * 1e6)
        tensors.append(tensor)
    return tensors


def _workload(job, seen, name, batch):
    counted = len(seen.runs["alone"])
    broadcasts = _broadcasts(job)
    workload = {"name": name,
                "source": f"recorded by syncline_record, torch {torch.__version__}: medians of "
                          f"{counted} steps without communication, of rank {seen.slowest}, the "
                          f"slowest of {job.ranks}",
                "torch": ".".join(torch.__version__.split(".")[:2]),
                "forward_ms": _round(seen.alone["forward"] * 1e3),
                "update_ms": _round(seen.alone["update"] * 1e3),
                "host_gap_ms": _round(seen.gap * 1e3),
                "time_spread": _round(min(1, seen.time_spread()), 3),
                "tensors": _tensors(job, seen)}
    if broadcasts and seen.overhead() > 0:
        workload["buffer_broadcast_ms"] = _round(seen.overhead() * 1e3)
    if job.passes > 1:
        workload["micro_batches"] = job.passes
    if batch:
        workload["batch"] = batch
    if seen.optimizer:
        workload["optimizer"] = seen.optimizer
    buffers = [{"name": n, "shape": list(b.shape), "dtype": _DTYPES[b.dtype]}
               for n, b in job.module.named_buffers() if b.dtype in _DTYPES and b.numel() > 0]
    if buffers:
        workload["buffers"] = buffers
    return workload


def _optimizer_word(job):
    """What keeps as many values of each parameter as the job's optimizers; None: more than any."""
    if not job.optimizers:
        return None
    kept = [sum(torch.is_tensor(value) and value.shape == p.shape and p.dim() > 0
                for value in state.values())
            for optimizer in job.optimizers for p, state in optimizer.state.items()]
    return {0: "sgd", 1: "momentum", 2: "adam"}.get(max(kept, default=0))


def _broadcasts(job):
    """Whether DDP makes buffers equal ahead of each step."""
    return bool(job.logged("broadcast_buffers")) and any(True for _ in job.module.buffers())


def _config(job):
    """DDP's own arguments without those that were left alone, and what else decides its buckets."""
    config = {}
    if not getattr(job.model, "bucket_bytes_cap_default", False):
        cap = job.logged("bucket_cap_bytes", 25 * 2**20)
        # As it was written, before DDP took the whole bytes of it.
        config["bucket_cap_mb"] = next(mb for mb in (_round(cap / 2**20, n) for n in range(1, 18))
                                       if int(mb * 2**20) == cap)
    first = getattr(dist, "_DEFAULT_FIRST_BUCKET_BYTES", 2**20)
    if first != 2**20:
        config["_DEFAULT_FIRST_BUCKET_BYTES"] = first
    for key in ("gradient_as_bucket_view", "find_unused_parameters"):
        if job.logged(key):
            config[key] = True
    if getattr(job.model, "static_graph", False):
        config["static_graph"] = True
    if os.environ.get("DDP_SET_LAST_BUCKET_CAP") == "1":
        config["DDP_SET_LAST_BUCKET_CAP"] = 1
    if job.logged("broadcast_buffers") == 0 and any(True for _ in job.module.buffers()):
        config["broadcast_buffers"] = False
    hook = _hook(job)
    if hook in _KNOWN_HOOKS:
        config["comm_hook"] = hook
    if _is_compiled(job):
        config["torch_compile"] = _compiler_cuts()
    return config


def _is_compiled(job):
    """Whether torch.compile made the model, or what calls it, a graph (torch 2.0)."""
    if "torch._dynamo" not in sys.modules:
        return False
    compiled = sys.modules["torch._dynamo"].eval_frame.OptimizedModule
    own = {id(job.model), id(job.module)}
    return any(getattr(m, "_compiled_call_impl", None) is not None for m in (job.model, job.module)) \
        or isinstance(job.module, compiled) or any(
            id(getattr(other, "_orig_mod", None)) in own for other in gc.get_objects()
            if issubclass(type(other), compiled))


def _compiler_cuts():
    """How it treats DDP: by DDPOptimizer's pieces, unless that is off."""
    return {"optimize_ddp": getattr(sys.modules["torch._dynamo"].config, "optimize_ddp", True)}


def _hook(job):
    hook = job.logged("comm_hook") or ""
    return _HOOKS.get(hook, hook)


def _scenario(job, seen, name, batch):
    strategy = {"name": "as recorded", "dialect": "pytorch", "config": _config(job)}
    if seen.sums_last:
        strategy["config"]["no_sync"] = True
    measured = {"strategy": strategy["name"], "step_time_s": _round(seen.median("plain", "step")),
                "source": f"median of {len(seen.runs['plain'])} steps of the job itself, half of "
                          f"them within {100 * seen.spread('plain'):.1f} %"}
    cluster = _cluster(job, seen.hosts, seen.sweeps)
    device = cluster["device"]
    if seen.overhead() > 0 and not _broadcasts(job):
        device["data_parallel_overhead_us"] = _round(seen.overhead() * 1e6)
    if seen.rounding:
        device.update(memory_gbytes_per_s=_round(seen.memory / 1e9),
                      rounding_gbytes_per_s=_round(seen.rounding / 1e9))
    if seen.sums:
        device["sums_gbytes_per_s"] = _round(seen.sums / 1e9)
    if seen.selection[0] > 0:
        device.update(select_gelements_per_s=_round(seen.selection[0] / 1e9),
                      selection_us=_round(seen.selection[1] * 1e6))
    if seen.overlap:
        device.update(overlap_slowdown=_round(seen.overlap["slowdown"]),
                      overlap_collective_slowdown=_round(seen.overlap["collective_slowdown"]),
                      overlap_delay_us=_round(seen.overlap["delay"] * 1e6))
    if job.ranks > 1:
        relative = _round(min(0.33, seen.uneven), 3)
        if relative > 0:
            cluster["jitter"] = {"distribution": "normal", "relative": relative}
        exchanges = 1 if seen.sums_last else job.passes
        measured["collectives"] = exchanges * len(job.bucket_bytes())
    return {"name": f"{name}, as recorded", "workload": _workload(job, seen, name, batch),
            "cluster": cluster, "strategies": [strategy], "published": [measured]}


def _nccl_tests_rows(hosts, points):
    """For `syncline calibrate logs`."""
    nodes, inside = _shape(hosts)
    ranks = nodes * inside
    lines = ["# COLLECTIVE: all_reduce_perf", f"# NODES: {nodes}", f"# GPUS: {ranks}",
             "#       size         count    type   redop    root         time       algbw       "
             "busbw  #wrong",
             "#        (B)    (elements)                             (us)      (GB/s)      (GB/s)"]
    rates = []
    for size, seconds in points:
        rate = size / seconds / 1e9
        rates.append(rate * 2 * (ranks - 1) / ranks)
        lines.append(f"{size:12d}  {size // 4:12d}   float     sum      -1  {seconds * 1e6:11.2f}  "
                     f"{rate:10.6f}  {rates[-1]:10.6f}       0")
    lines.append(f"# Avg bus bandwidth    : {statistics.mean(rates):.6f}")
    return "\n".join(lines) + "\n"


def _may_be_preempted():
    """By a thread of its own that wakes up: so it is unless the process was given a policy."""
    return hasattr(os, "sched_getscheduler") and os.sched_getscheduler(0) == os.SCHED_OTHER


def _beside(out):
    return os.path.splitext(out)[0] + ".all_reduce.txt"


# ---- files: as the program itself writes them ----

def _place(path):
    """Where a path leads, link by link; a number where it names an open file of this process."""
    path = os.fspath(path)
    for _ in range(40):
        folder, name = os.path.split(path)
        if folder in ("/dev/fd", "/proc/self/fd") and name.isdigit():
            return int(name)
        if not os.path.islink(path):
            return path
        path = os.path.join(folder, os.readlink(path))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _is_replaced(place):
    """Devices, pipes and open files are written into."""
    return not isinstance(place, int) and (not os.path.exists(place) or os.path.isfile(place))


def _on_first(job, act):
    """What act() gives, on rank 0 alone. Collective: where it fails there, no rank ends well."""
    given, wrong = None, ""
    if job.rank == 0:
        try:
            given = act()
        except RecordError as error:
            wrong = str(error)
    wrong = job.gathered(wrong)[0]
    if wrong:
        raise RecordError(wrong)
    return given


def _expect_writable(job, out):
    """Before the work, on all ranks: rank 0's `out`, as far as it can be known without writing."""
    def tried():
        try:
            _try_place(_place(out))
        except OSError as error:
            _fail(f"{out}: {error.strerror}")

    _on_first(job, tried)


def _try_place(place):
    if isinstance(place, int):
        os.fstat(place)
        return
    needed = os.path.dirname(place) or "." if _is_replaced(place) else place
    if os.path.isdir(place) or stat.S_ISBLK(os.stat(needed).st_mode):
        raise OSError(errno.EISDIR, "is a folder or a disk")
    for one in {needed, place} if os.path.exists(place) else {needed}:
        if not os.access(one, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    if not _is_replaced(place):
        file = _opened(place)  # fails where nobody reads a pipe
        os.write(file, b"")  # where a device is full
        if stat.S_ISFIFO(os.fstat(file).st_mode):
            _pipes.append(file)  # closed, it would end for its reader
        else:
            os.close(file)


_pipes = []


def _write(path, text):
    """A file is there whole or not at all, under a name that nobody can have prepared until then;
    it keeps its mode. A link stays, what it leads to is written."""
    try:
        place = _place(path)
        if _is_replaced(place):
            _replace(place, text)
        else:
            sys.stdout.flush()
            with open(_opened(place), "w", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        _fail(f"{path}: {error.strerror}")


def _opened(place):
    """To be written into. A pipe that nobody reads is not waited for."""
    if isinstance(place, int):
        return os.dup(place)
    file = os.open(place, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY)
    os.set_blocking(file, True)
    return file


def _replace(place, text):
    beside = os.path.join(os.path.dirname(place), f".partial-{secrets.token_hex(8)}")
    known = os.stat(place) if os.path.exists(place) else None
    with open(beside, "x", encoding="utf-8",
              opener=lambda name, how: os.open(name, how, 0o600 if known else 0o666)) as file:
        try:
            file.write(text)
            file.flush()
            if known:
                with contextlib.suppress(OSError):  # only root may give a file away
                    os.chown(beside, known.st_uid, known.st_gid)
                os.chmod(beside, stat.S_IMODE(known.st_mode))
            os.replace(beside, place)
        except OSError:
            os.unlink(beside)
            raise


def _summary(job, seen, notes, out):
    alone = {what: 1e3 * seconds for what, seconds in seen.alone.items()}
    step = 1e3 * seen.median("plain", "step")
    lines = [*notes,
             f"step {step:.2f} ms (half of {len(seen.runs['plain'])} within "
             f"{100 * seen.spread('plain'):.1f} %); without communication {alone['step']:.2f} ms: "
             f"forward {alone['forward']:.2f}, backward {alone['backward']:.2f}, "
             f"update {alone['update']:.2f}, rest {1e3 * seen.gap:.2f}"]
    if "exchanged" in seen.runs:
        hidden = 1e3 * (seen.median("exchanged", "step") - seen.alone["step"])
        lines.append(f"communication that nothing hides: {hidden:.2f} ms; {len(seen.order)} "
                     f"gradients in {len(job.bucket_bytes())} buckets")
        if seen.overhead() > 0:
            lines.append(f"{1e3 * seen.overhead():.2f} ms of it in the forward pass" + (
                ", where DDP broadcasts the buffers: broadcast_buffers=False saves that"
                if _broadcasts(job) else ""))
    if seen.overlap:
        share = seen.overlap["slowdown"] / (1 + seen.overlap["slowdown"])
        lines.append(f"during communication computation loses {100 * share:.0f} % of its time, "
                     f"communication takes {1e3 * seen.overlap['delay']:.2f} ms longer and "
                     f"{100 * seen.overlap['collective_slowdown']:.0f} % more")
    cost, doubt = (1e5 * seconds / step for seconds in seen.cost())
    lines.append(f"cost of recording: {cost:+.1f} % of a step, give or take {doubt:.1f} %")
    if seen.alone["step"] > 1.1 * seen.own_step:
        lines.append(f"rank {seen.slowest} computes longer than this one, which takes "
                     f"{1e3 * seen.own_step:.2f} ms: the scenario has its times")
    pages, seconds = seen.taken_anew()
    if not job.on_gpu and 1e3 * seconds > _MANY_PAGES * step:
        lines.append(f"a step takes {pages:.0f} pages of memory again from the system, about "
                     f"{1e3 * seconds:.1f} ms, with another strategy maybe none or more: "
                     "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1 in the job's environment keeps "
                     "them (glibc)")
    share, longer = seen.waiting
    if share > _MANY_WAIT and job.backend == "gloo" and _may_be_preempted():
        lines.append(f"{100 * share:.0f} % of the smallest collectives take {1e3 * longer:.1f} ms "
                     "longer than the others: Gloo's thread keeps the processor from the one that "
                     "it waits for, until the scheduler's next tick; with chrt --batch 0 in front "
                     "of the job's command they may not (Linux)")
    if not job.optimizers:
        lines.append("no optimizer of torch.optim was found: the update counts as the host's time")
    if seen.unused:
        lines.append(f"{len(seen.unused)} parameters got no gradient, {seen.unused[0]} the first; "
                     "they are assumed to be ready at once")
    if _hook(job) and _hook(job) not in _KNOWN_HOOKS:
        lines.append(f"the communication hook {_hook(job)} is not known: written as a plain "
                     "all-reduce")
    if job.logged("has_sync_bn"):
        lines.append("SyncBatchNorm communicates even in no_sync: that is part of forward and "
                     "backward here")
    lines.append(f"wrote {out}; next: syncline tune {out} --emit pytorch")
    return "\n".join("syncline_record: " + line for line in lines)


if __name__ == "__main__":
    _main()
