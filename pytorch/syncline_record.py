"""Records what a training job does in a step, and writes it as a scenario: one of
DistributedDataParallel, of FSDP 1 or 2 (and torchtitan), or of DeepSpeed's ZeRO.

    from syncline_record import record
    record(model, step)            # step() trains once: forward, backward, optimizer.step()
    with record(model):            # or around the job's own loop, of which an update ends a step
        for batch in loader: ...

    torchrun ... -m syncline_record train.py ...      # or around that of a script as it is
    torchrun ... -m syncline_record -m torchtitan.train ...         # or of a module

Every rank calls it, at any moment of the training; rank 0 writes job.json, which `syncline tune
job.json --emit pytorch` takes. The steps run three ways in turns: as ever, with hooks, and with
hooks but without communication (no_sync; of sharded jobs, collectives that answer at once with the
rank's own shard); then without and with exchanges that are not the job's, for what computation and
communication take from each other. Parameters, buffers, gradients, the
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
import importlib
import json
import math
import mmap
import os
import queue
import re
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
_DDP_BUCKET = 25 << 20  # bytes, DistributedDataParallel's default
_LARGE = 0.05  # of a large collective's time in a step: first tries of scenarios/sharded, 1 Gbit/s
_SMALL = 0.3  # of a small one's between recordings (scenarios/training)
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

    model      a DistributedDataParallel module, the outermost one of FSDP, or DeepSpeed's engine; a
               plain one gives the times of one rank alone
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
        scenario = _scenario(job, seen, name or job.name(), batch or job.batch())
        notes = [note for note in (seen.busy(), seen.noise(), seen.crowded, job.note(seen)) if note]
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
    seen.in_steps = _in_steps(job, seen, seen.sweeps) if seen.sweeps else {}
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
        self.job = _job_of(model, optimizer)
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
        hook = self.job.before_forward(self._learn_the_last)
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
    """Of a script as it is, or a module: the loop of the first model that it wraps for training
    in parallel, from the first pass for which an optimizer is there."""

    def __init__(self, path, out, stop, is_module):
        self.path, self.out, self.stop, self.is_module = path, out, stop, is_module
        self.model = None
        self.loop = None
        self.hook = None
        self.refused = False

    def run(self):
        end = None
        self._wait_for_model()
        try:
            if self.is_module:
                runpy.run_module(self.path, run_name="__main__", alter_sys=True)
            else:
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
        self._watch_makers(torch.nn.parallel.DistributedDataParallel, "__init__", self._found)
        self._watch_makers(torch.nn.Module, "__init__", self._found_engine)
        for place in ("torch.distributed.fsdp", "torch.distributed._composable.fsdp"):
            # Where it cannot be imported (torch 1.13 under Python 3.11), no job has it.
            with contextlib.suppress(Exception):
                module = importlib.import_module(place)
                for name, whose in (("fully_shard", module),
                                    ("__init__", getattr(module, "FullyShardedDataParallel", None))):
                    if whose is not None and hasattr(whose, name):
                        self._watch_makers(whose, name, self._found)

    @staticmethod
    def _watch_makers(whose, name, found):
        """Calls `found` with the model that a function of that name was given, once it is done."""
        original = getattr(whose, name)

        @functools.wraps(original)
        def made(model, *args, **kwargs):
            result = original(model, *args, **kwargs)
            found(model)
            return result
        setattr(whose, name, made)

    def _found_engine(self, model):
        if any(kind.__name__ == "DeepSpeedEngine" for kind in type(model).__mro__):
            self._found(model)

    def _found(self, model):
        """The first, or one around it."""
        if isinstance(model, (list, tuple)) or self.loop or self.refused:
            return
        if self.model is not None:
            if all(one is not self.model for one in model.modules()):
                return
            self.hook.remove()
        self.model = model
        ahead = {"prepend": True} if hasattr(model, "_get_fsdp_state") else {}
        self.hook = model.register_forward_pre_hook(self._begin, **ahead)

    def _begin(self, model, *_):
        if not (model.training and torch.is_grad_enabled()):
            return
        try:
            loop = _Loop(model, None, _STEPS, self.out, None, None)
        except RecordError as error:  # it trains as if nobody had looked
            self.refused = True
            self.hook.remove()
            self._tell(str(error))
            return
        if loop.job.optimizers:
            self.hook.remove()
            loop.when_done = sys.exit if self.stop else None
            self.loop = loop.__enter__()

    @staticmethod
    def _tell(line):
        if os.environ.get("RANK", "0") == "0":
            print(line, file=sys.stderr, flush=True)

    def _tell_if_too_early(self):
        if self.loop:
            self.loop.tell_if_too_early(self.path, "what it saved meanwhile is not valid")
        elif not self.refused:
            what = (f"did not train its {self._kind()} model with an optimizer of torch.optim"
                    if self.model is not None else
                    "built no DistributedDataParallel, FSDP or DeepSpeed model")
            self._tell(f"syncline_record: {self.path} {what}: nothing was recorded; a profile of "
                       "its steps can be, by syncline import")

    def _kind(self):
        if isinstance(self.model, torch.nn.parallel.DistributedDataParallel):
            return "DistributedDataParallel"
        return "FSDP" if hasattr(self.model, "_get_fsdp_state") or _is_fsdp1(self.model) \
            else "DeepSpeed"


def _main():
    parser = argparse.ArgumentParser(
        prog="syncline_record", description="Runs a training script as it is, on every rank, and "
        "records the steps of its first model of DistributedDataParallel, FSDP or DeepSpeed.")
    parser.add_argument("--out", metavar="FILE", default="job.json",
                        help="the scenario that rank 0 writes (default: job.json)")
    parser.add_argument("--stop", action="store_true",
                        help="end the script once the scenario is written")
    parser.add_argument("-m", dest="is_module", action="store_true",
                        help="the script is a module, as for python -m")
    parser.add_argument("script", help="the training script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    options = parser.parse_args()
    # As Python itself would have started it.
    sys.argv = [options.script, *options.arguments]
    if not options.is_module:
        try:
            with open(options.script, "rb"):
                pass
        except OSError as error:
            _fail(f"{options.script}: {error.strerror}")
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = (os.getcwd() if options.is_module
                       else os.path.dirname(os.path.realpath(options.script)))
    _Script(options.script, options.out, options.stop, options.is_module).run()


def _needed(job, steps):
    """How many steps a recording takes."""
    kinds = (3 if job.exchanges() else 2) + (2 + any(_is_coded(job, name) for name in job.gradients)
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

    dialect = "pytorch"
    sweep = _SWEEP  # seconds
    rounds = 5  # of all-reduces at the least
    narrows = True  # settings that round or thin out gradients are asked for, too

    def __init__(self, model, optimizer):
        self.model = model
        self.is_ddp = hasattr(model, "no_sync") and hasattr(model, "_get_ddp_logging_data")
        self.module = model.module if self.is_ddp else model
        self.gradients = self._find_gradients()
        if not self.gradients:
            _fail("the model has no parameter that is trained")
        self.device = next(iter(self.gradients.values())).device
        self.on_gpu = self.device.type == "cuda"
        self.group = model.process_group if self.is_ddp else None
        together = self.exchanges()
        self.rank = dist.get_rank(self.group) if together else 0
        self.ranks = dist.get_world_size(self.group) if together else 1
        self.backend = dist.get_backend(self.group) if together else ""
        self.optimizers = [optimizer] if optimizer is not None else self._find_optimizers()
        self.sparse_rows = {}
        self.passes = 1  # backward passes of a step, once steps were watched
        self.calls = 1  # of backward() in a pass: a loss in chunks has several
        self.went_apart = False  # there were steps without communication
        self.in_loop = False  # _Loop sees the updates
        self.watch = None

    def name(self):
        return type(self.module).__name__

    def batch(self):
        """Samples of a pass, where the job itself says so."""
        return None

    def exchanges(self):
        """Whether its steps communicate, and can be made to do without."""
        return self.is_ddp

    def _find_gradients(self):
        ignored = getattr(self.model, "parameters_to_ignore", ())
        return {name: p for name, p in self.module.named_parameters()
                if p.requires_grad and name not in ignored and p.numel() > 0}

    def _find_optimizers(self):
        own = {id(p) for p in self.trained()}
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

    def before_forward(self, hook):
        """Calls it ahead of each forward pass; gives what removes it."""
        return self.model.register_forward_pre_hook(hook)

    def without_exchange(self):
        """While entered, backward passes do not communicate."""
        self.went_apart = True
        return self.model.no_sync()

    def really(self):
        """While entered, collectives are, whatever the steps do without."""
        return contextlib.nullcontext()

    def hook_gradients(self, watch):
        """Tells `watch` when each gradient is ready."""
        for name, parameter in self.gradients.items():
            watch.hook_gradient(name, parameter)

    def sums_in_pass(self):
        """Whether the pass that begins is to exchange its gradients."""
        return getattr(self.model, "require_backward_grad_sync", True)

    def pass_ended(self, step):
        """After each backward pass."""

    def trained(self):
        """Parameters that optimizers have."""
        return self.gradients.values()

    def kept(self):
        """Tensors that training changes."""
        return [*self.module.parameters(), *self.module.buffers()]

    def keepers(self):
        """Optimizers of torch.optim, whose state is that of the training."""
        return self.optimizers

    def shares(self):
        """In how many parts ranks update the parameters."""
        return 1

    def strategy(self, seen):
        """As a scenario has it."""
        config = _config(self)
        if seen.sums_last:
            config["no_sync"] = True
        return {"name": "as recorded", "dialect": "pytorch", "config": config}

    def collectives(self, seen):
        """Of a step."""
        return (1 if seen.sums_last else self.passes) * len(self.bucket_bytes())

    def note(self, seen):
        """What a scenario cannot say of the job, in a sentence."""
        return ""

    def what_is_sent(self, seen):
        """In a few words."""
        return f"{len(seen.order)} gradients in {len(self.bucket_bytes())} buckets"

    def logged(self, key, default=None):
        """What DDP says of itself."""
        return self.model._get_ddp_logging_data().get(key, default) if self.is_ddp else default

    def bucket_bytes(self):
        """Of each bucket of a step, in the order in which DDP sends them."""
        sizes = self.logged("rebuilt_bucket_sizes") or self.logged("bucket_sizes") or "0"
        return [int(size) for size in sizes.split(",")]

    def widest(self):
        """Bytes of the largest collective whose time is measured."""
        return max(self.bucket_bytes())


class _Saved:
    """What steps change, kept on the host, to be put back. Steps without communication let the
    ranks' parameters drift apart: nothing of that may stay."""

    def __init__(self, job):
        self.job = job
        self.tensors = [(t, self._copy(t)) for t in job.kept()]
        self.grads = [(p, p.grad if hasattr(p.grad, "_local_tensor") else None,
                       None if p.grad is None else self._copy(p.grad))
                      for p in job.module.parameters()]
        self.states = [(o, {p: {key: self._copy(value) for key, value in state.items()}
                            for p, state in o.state.items()}) for o in job.keepers()]
        # Whether the next step begins with rank 0's buffers; none does after one in no_sync.
        self.sends_buffers = getattr(job.model, "require_forward_param_sync", None)
        self.dice = torch.get_rng_state()
        self.gpu_dice = torch.cuda.get_rng_state(job.device) if job.on_gpu else None

    @staticmethod
    def _copy(value):
        return _own(value).detach().to("cpu", copy=True) if torch.is_tensor(value) else value

    @torch.no_grad()
    def put_back(self):
        for tensor, copy in self.tensors:
            _own(tensor).copy_(copy)
        for p, shard, copy in self.grads:
            if p.grad is None:
                p.grad = shard
            if copy is None or p.grad is None or copy.is_sparse:
                p.grad = None if copy is None else copy.to(p.device)
            else:
                _own(p.grad).copy_(copy)
        for optimizer, kept in self.states:
            for p in list(optimizer.state):
                if p not in kept:
                    del optimizer.state[p]
            for p, state in kept.items():
                for key in set(optimizer.state[p]) - set(state):
                    del optimizer.state[p][key]
                for key, value in state.items():
                    if torch.is_tensor(value):
                        _own(optimizer.state[p][key]).copy_(value)
                    else:
                        optimizer.state[p][key] = value
        if self.sends_buffers is not None:
            self.job.model.require_forward_param_sync = self.sends_buffers
        torch.set_rng_state(self.dice)
        if self.gpu_dice is not None:
            torch.cuda.set_rng_state(self.gpu_dice, self.job.device)


def _own(tensor):
    """What this rank holds of it."""
    return getattr(tensor, "_local_tensor", tensor)


class _Step:
    """Points in time of one step."""

    def __init__(self, job):
        self.job = job
        self.marks = {}
        self.ready = {}  # by gradient, in the order in which they were ready
        self.backwards = 0
        self.calls = 0  # of backward() in this pass
        self.updates = 0
        self.sums = []  # by pass: whether its gradients are exchanged
        self.entered = []  # (when, gradients): modules of the last forward pass, as it came to them
        self.sent = []  # _Sent: the collectives of a sharded job
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
        self.calls = 0
        self.entered = []
        self.first("forward")

    def begin_backward(self):
        """A pass of a sharded job is a forward pass and all backward() until the next one:
        torchtitan's loss calls it for each chunk of the tokens, then for what comes before the
        head."""
        self.calls += 1
        if self.calls == 1 or self.job.is_ddp:
            self.backwards += 1
            self.first("backward")
            self.start_beside("")

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
        self.job.pass_ended(self)
        if self.beside and (self.job.is_ddp or self.calls >= self.job.calls):
            self.beside.wait()

    def enter(self, names):
        if "backward" not in self.marks:  # what is computed again belongs to the backward pass
            self.entered.append((self.job.now(), names))

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
                 "passes": self.backwards, "calls": self.calls, "sums": self.sums,
                 "pages": self.pages}
        if "backward" in self.marks:
            begin = self.marks["backward"]
            times["ready"] = {n: self.job.seconds(begin, at) for n, at in self.ready.items()}
            times["entered"] = self._forward_by_module(begin)
        times["sent"] = self.sent
        return times

    def _forward_by_module(self, end):
        """{its gradients: seconds}, from when the pass came to a module until it came to the next."""
        taken = {}
        ends = [at for at, _ in self.entered[1:]] + [end]
        for (at, names), then in zip(self.entered, ends):
            taken[names] = taken.get(names, 0.0) + self.job.seconds(at, then)
        return taken

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
            self.job.hook_gradients(self)
            self.undo = self.undo.pop_all()
        return self

    def __exit__(self, *_):
        self.undo.close()

    def _hook_forward(self):
        def begins(*_):
            if torch.is_grad_enabled():
                self.step.begin_pass()
                self.step.sums.append(self.job.sums_in_pass())
            if self.alone and self.job.is_ddp:  # whatever a loop has set since
                self.job.model.require_backward_grad_sync = False
        hook = self.job.before_forward(begins)
        self.undo.callback(hook.remove)

    def _hook_backward(self):
        original = torch.autograd.backward
        depth = 0  # activation checkpoints run backward passes inside the backward pass

        @functools.wraps(original)
        def backward(*args, **kwargs):
            nonlocal depth
            depth += 1
            if depth == 1:
                self.step.begin_backward()
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

    def is_ready(self, name):
        again = name in self.step.ready
        self.step.ready[name] = self.job.now()
        if self.job.is_ddp or not again:
            self.step.start_beside(name)

    def hook_gradient(self, name, parameter):
        def is_ready(*_):
            self.is_ready(name)
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
    kinds = ["plain", "exchanged", "alone"] if job.exchanges() else ["plain", "alone"]
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
        if kind == "alone" and job.exchanges():
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
        self.whole = job.is_ddp  # each rank has all parameters
        job.passes, self.sums_last = self._passes(job)
        parts = ("step", "forward", "backward", "update")
        own = [self.median("alone", part) for part in parts]
        own += [self.ready(name) for name in job.gradients]
        self.own_step = own[0]
        self.slowest, times = job.of_slowest(own)
        self.alone = dict(zip(parts, times))
        self.uneven = self._uneven(job)
        ready_of = dict(zip(job.gradients, times[len(parts):]))
        self.forward = self._forward(job)
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

    def _forward(self, job):
        """{gradient: seconds of the forward pass} of rank 0's modules, shared out by their elements;
        empty where the pass was not seen module by module."""
        steps = [step["entered"] for step in self.runs["alone"] if step.get("entered")]
        if not steps:
            return {}
        seconds = dict.fromkeys(job.gradients, 0.0)
        for names in steps[-1]:
            taken = statistics.median(step.get(names, 0.0) for step in steps)
            elements = sum(job.gradients[name].numel() for name in names)
            for name in names:
                seconds[name] += taken * job.gradients[name].numel() / elements
        return seconds

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
        job.calls = min(step["calls"] for step in watched)
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
        0 where chance explains it, and where it is the parameters' that it gathers."""
        if "exchanged" not in self.runs or not self.whole:
            return 0.0
        longer, doubt = self.compared("exchanged", "alone", "forward")
        return longer if longer > doubt else 0.0


def _copies(job, seen):
    """({gradient: seconds}, the same) of the copies into buckets, which divide by the ranks, and
    back: DDP's own operations, done by themselves, since in a step the exchanges disturb the one
    and hide the other. Empty where DDP does without."""
    if not job.is_ddp or job.ranks == 1 or job.logged("gradient_as_bucket_view"):
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
    """Collectives of this job's own process group: {"world": _Sweep, "node": ...}, the second one
    inside each node where there are several, of several ranks. Of a sharded job also all-gathers
    and reduce-scatters, and all of them in the groups that its mesh has or might have:
    {(kind, nodes, ranks on each): _Sweep}."""
    if job.ranks == 1:
        return {}
    sweeps = {"world": _Sweep(job, job.group)}
    nodes, inside = _shape(hosts)
    if nodes > 1 and inside > 1 and job.ranks == dist.get_world_size():
        sweeps["node"] = _Sweep(job, _groups_of(job, inside)[0], own=True)
    if job.is_ddp:
        return sweeps
    for kind in ("all_gather", "reduce_scatter"):
        sweeps[kind, nodes, inside] = _Sweep(job, job.group, kind)
    for shards in sorted({*job.shard_sizes(), inside}):
        if not 1 < shards < job.ranks or job.ranks % shards:
            continue
        neighbours, across = _groups_of(job, shards)
        shape = (1, shards) if shards <= inside else (shards // inside, inside)
        for kind in ("all_gather", "reduce_scatter"):
            sweeps[(kind, *shape)] = _Sweep(job, neighbours, kind, own=kind == "all_gather")
        # The replicas of a shard: one rank a node, or as many as shards share it.
        beside = max(1, inside // shards)
        sweeps["all_reduce", job.ranks // shards // beside, beside] = _Sweep(job, across, own=True)
    return sweeps


def _groups_of(job, shards):
    """This rank's (group of so many neighbours, group of those at its place in theirs)."""
    neighbours = [dist.new_group(range(i, i + shards)) for i in range(0, job.ranks, shards)]
    across = [dist.new_group(range(i, job.ranks, shards)) for i in range(shards)]
    return neighbours[job.rank // shards], across[job.rank % shards]


class _Sweep:
    """Collectives of a kind from 4 KiB to the largest bucket, in rounds over all sizes."""

    def __init__(self, job, group, kind="all_reduce", own=False):
        self.job, self.group, self.kind, self.own = job, group, kind, own
        self.ranks = dist.get_world_size(group)
        largest = self._whole(max(16384, job.widest() // 4))  # elements
        self.counts = [self._whole(1024)]
        while self.counts[-1] < largest:
            self.counts.append(min(largest, self._whole(self.counts[-1] * 2)))
        self.payload = torch.zeros(largest, device=job.device)
        self.part = torch.zeros(largest // self.ranks, device=job.device)
        self._round()
        share = job.sweep if kind == "all_reduce" else job.sweep / 2
        self.rounds = max(job.rounds, min(200, int(share / sum(self._round()))))
        self.taken = []

    def _whole(self, count):
        """As many as ranks can share evenly."""
        return count if self.kind == "all_reduce" else -(-count // self.ranks) * self.ranks

    def _send(self, count):
        whole, part = self.payload[:count], self.part[:count // self.ranks]
        if self.kind == "all_gather":
            dist.all_gather_into_tensor(whole, part, group=self.group)
        elif self.kind == "reduce_scatter":
            dist.reduce_scatter_tensor(part, whole, group=self.group)
        else:
            dist.all_reduce(whole, group=self.group)

    def _round(self):
        taken = []
        # The first one would count how far the ranks have come apart in the steps before.
        dist.all_reduce(self.payload[:1], group=self.group)
        for count in self.counts:
            self.job.wait()
            begin = time.perf_counter()
            self._send(count)
            self.job.wait()
            taken.append(time.perf_counter() - begin)
        # The mean over the ranks, as nccl-tests takes it, and the same on all of them.
        times = torch.tensor(taken, device=self.job.device)
        dist.all_reduce(times, group=self.group)
        return (times / self.ranks).tolist()

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


def _in_steps(job, seen, sweeps):
    """{(kind, ranks): (how many times as long as in its sweep a collective takes in the job's own
    steps, the deviation of that between steps, the largest one's bytes)}. Gloo's all-gathers take
    half as long again if ranks begin them apart, as behind computation, and go on so for a while."""
    if job.is_ddp or job.on_gpu or "exchanged" not in seen.runs:
        return {}
    points = {("all_reduce", job.ranks): sweeps["world"]}
    for where, times in sweeps.items():
        if isinstance(where, tuple):
            points.setdefault((where[0], where[1] * where[2]), times)
    shares, largest = {}, {}
    for step in seen.runs["exchanged"]:
        took = _in_turn(step["sent"])
        for key, times in points.items():
            sent = {one: seconds for one, seconds in took.items()
                    if (one.kind, one.ranks) == key and one.elements > 1}
            alone = sum(_time_of(times, one.elements * one.width) for one in sent)
            shares.setdefault(key, []).append(sum(sent.values()) / alone if alone else 0.0)
            largest[key] = max((one.elements * one.width for one in sent), default=0)
    # The same on all ranks: a kind that a step has not is 0 on each.
    keys = sorted(shares)
    means = job.mean([share for key in keys for share in shares[key]])
    count = len(seen.runs["exchanged"])
    found = {key: means[i * count:(i + 1) * count] for i, key in enumerate(keys)}
    return {key: (statistics.mean(each), statistics.pstdev(each) / statistics.mean(each),
                  largest[key])
            for key, each in found.items() if min(each) > 0}


def _in_turn(sent):
    """{collective: seconds}, without those in which an earlier one was not over."""
    took, before = {}, 0.0
    for one in sorted((one for one in sent if one.end is not None), key=lambda one: one.end):
        took[one] = one.end - max(one.begin, before)
        before = one.end
    return took


def _time_of(points, size):
    """Seconds of so many bytes, between those that were measured, else in proportion."""
    for (left, before), (right, last) in zip(points, points[1:]):
        if size <= right:
            return before + (last - before) * max(0.0, (size - left) / (right - left))
    return points[-1][1] * size / points[-1][0]


def _swept(sweeping):
    """{"world": [(bytes, seconds)], "node": ...}."""
    for sweep in sweeping.values():
        if sweep.own:
            dist.destroy_process_group(sweep.group)
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
        with self.job.really():
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
    own = []
    for p in job.gradients.values():
        if job.is_ddp or not own or sum(one.numel() for one in own) < _CODED:
            own.append(torch.zeros(p.shape, dtype=p.dtype, device=job.device))
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


def _table(points, nodes, inside, collective="all_reduce", in_steps=(1.0, 0.0, 0)):
    """What collectives were measured to take: the sizes one by one, the last one's rate beyond
    them. Steps differ from that by _LARGE, and small messages take the processes' waking time as
    much as the network's. `in_steps`: _in_steps of this kind."""
    times, apart, largest = in_steps
    sizes = [size for size, _ in points]
    points = list(zip(sizes, _rising(
        [seconds * (times if size <= largest else 1.0) for size, seconds in points])))
    lines = [{"from_bytes": size, "to_bytes": size, "latency_us": _round(seconds * 1e6),
              "us_per_mbyte": 0} for size, seconds in points]
    size, seconds = points[-1]
    lines[-1].update(latency_us=0, us_per_mbyte=_round(seconds * 1e6 / (size / 1e6)))
    return {"collective": collective, "nodes": nodes, "gpus_per_node": inside,
            "rows": len(points), "min_bytes": points[0][0], "max_bytes": size, "clean": True,
            "in_sample_percent": 0, "form": "segments", "lines": lines,
            "spreads": [{"bytes": size, "percent": _round(
                100 * math.hypot(_LARGE, apart, _SMALL * min(1.0, points[0][1] / seconds)), 3)}
                for size, seconds in points]}


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


def _cluster(job, hosts, sweeps, in_steps=None):
    nodes, inside = _shape(hosts)
    device = torch.cuda.get_device_name(job.device) if job.on_gpu else "CPU"
    cluster = {"name": f"{nodes} x {inside} {device}", "nodes": nodes, "gpus_per_node": inside,
               "device": {"name": device}}
    if job.on_gpu:
        size = torch.cuda.get_device_properties(job.device).total_memory
        cluster["device"]["memory_gbytes"] = _round(size / 1e9)
    if not sweeps:
        return cluster
    what = "all-reduces" if job.is_ddp else "collectives"
    cluster["source"] = f"{what} of the job's own process group over {job.backend}"
    cluster["library"] = job.backend if job.backend in ("nccl", "gloo") else "links"
    world = _tier(sweeps["world"], job.ranks)
    if inside > 1:
        cluster["intra"] = _tier(sweeps["node"], inside) if "node" in sweeps else world
    if nodes > 1:
        cluster["inter"] = world
    if nodes > 1 and inside > 1 and "node" not in sweeps:
        cluster["source"] += "; the links inside a node were not measured, theirs are assumed"
    if job.backend == "nccl" or not job.is_ddp:
        in_steps = in_steps or {}

        def times_of(kind, nodes, inside):
            return in_steps.get((kind, nodes * inside), (1.0, 0.0, 0))
        tables = [_table(sweeps["world"], nodes, inside,
                         in_steps=times_of("all_reduce", nodes, inside))]
        if "node" in sweeps:
            tables.append(_table(sweeps["node"], 1, inside))
        shapes = {(table["collective"], table["nodes"], table["gpus_per_node"]) for table in tables}
        tables += [_table(points, *where[1:], where[0], times_of(*where))
                   for where, points in sweeps.items()
                   if isinstance(where, tuple) and where not in shapes]
        if job.backend != "nccl":  # whose rings they are
            for table in tables:
                table["algorithm"] = "ring"
        least = sweeps.get("node", sweeps["world"])[0][1] * 1e6
        cluster["calibration"] = {"tables": tables,
                                  "node": {"base_us": _round(least), "step_us": 0}}
    if job.backend == "nccl":
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
        if seen.forward:
            tensor["forward_us"] = _round(seen.forward[name] * 1e6)
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
                # Of all parameters, whoever updates them.
                "update_ms": _round(seen.alone["update"] * 1e3 * job.shares()),
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
            for optimizer in job.keepers() for p, state in optimizer.state.items()]
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
    strategy = job.strategy(seen)
    measured = {"strategy": strategy["name"], "step_time_s": _round(seen.median("plain", "step")),
                "source": f"median of {len(seen.runs['plain'])} steps of the job itself, half of "
                          f"them within {100 * seen.spread('plain'):.1f} %"}
    cluster = _cluster(job, seen.hosts, seen.sweeps, seen.in_steps)
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
        measured["collectives"] = job.collectives(seen)
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


# ---- jobs whose ranks hold shards: FSDP 1 and 2, DeepSpeed ----

_INSTEAD = "profile it instead, and give the traces to syncline import (docs/import.md)"

# What a wrapper puts into the names of modules.
_WRAPPERS = ("_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module", "module")

# Collectives of torch's process groups, by the payloads that they have: one each way, lists of
# them, or a list for each rank. The names have changed with torch 2.15.
_GROUP_CALLS = {
    "allreduce": ("all_reduce", "in place"), "allreduce_coalesced": ("all_reduce", "in place"),
    "reduce": ("reduce", "in place"), "broadcast": ("broadcast", "in place"),
    "_allgather_base": ("all_gather", "whole"), "all_gather_single": ("all_gather", "whole"),
    "allgather_into_tensor_coalesced": ("all_gather", "whole"),
    "all_gather_single_coalesced": ("all_gather", "whole"), "allgather": ("all_gather", "parts"),
    "_reduce_scatter_base": ("reduce_scatter", "whole"),
    "reduce_scatter_single": ("reduce_scatter", "whole"),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", "whole"),
    "reduce_scatter_single_coalesced": ("reduce_scatter", "whole"),
    "reduce_scatter": ("reduce_scatter", "parts")}


class _Sent:
    """A collective of a step: kind, elements of the whole payload, bytes of an element, ranks, and
    when it began and was over, if a processor carried it out."""

    def __init__(self, kind, elements, width, ranks):
        self.kind, self.elements, self.width, self.ranks = kind, elements, width, ranks
        self.begin = self.end = None

    def watch(self, begin, work):
        def over(_):
            self.end = time.perf_counter()
        self.begin = begin
        with contextlib.suppress(RuntimeError):  # a backend without futures
            work.get_future().add_done_callback(over)
        return work


class _Answered:
    """What a collective gives that is over already."""

    def __init__(self, result):
        self.result_ = result

    def wait(self, *_):
        return True

    is_completed = is_success = wait

    def synchronize(self):
        pass

    block_current_stream = synchronize

    def result(self):
        return self.result_

    def get_future(self):
        future = torch.futures.Future()
        future.set_result(self.result_)
        return future


def _flat(value):
    """The tensors in lists of lists."""
    return [value] if torch.is_tensor(value) else [t for one in value for t in _flat(one)]


def _listed(value):
    return [value] if torch.is_tensor(value) else list(value)


class _Collectives:
    """While entered, those that Python asks of torch's process groups are noted; with `answered`
    nothing is sent: a rank's own shard stands for those of all."""

    def __init__(self, job, answered):
        self.job, self.answered = job, answered
        self.passing = False
        self.undo = contextlib.ExitStack()

    def __enter__(self):
        kind = torch._C._distributed_c10d.ProcessGroup
        for name, (what, form) in _GROUP_CALLS.items():
            if name in vars(kind):
                # As the class has it, and as it is called.
                self.undo.callback(setattr, kind, name, vars(kind)[name])
                setattr(kind, name, self._noted(getattr(kind, name), what, form))
        self.job.seen_by = self
        self.undo.callback(setattr, self.job, "seen_by", None)
        return self

    def __exit__(self, *_):
        self.undo.close()

    def _noted(self, original, kind, form):
        @functools.wraps(original)
        def call(group, first, *others, **options):
            if self.passing:
                return original(group, first, *others, **options)
            inputs = others[0] if form != "in place" else first
            elements = max(sum(t.numel() for t in _flat(side)) for side in (first, inputs))
            sent = _Sent(kind, elements, _flat(first)[0].element_size(), group.size())
            if self.job.watch and self.job.watch.step:
                self.job.watch.step.sent.append(sent)
            # Of one number ranks make decisions, and wait for each other.
            if not self.answered or elements <= 1:
                begin = time.perf_counter()
                work = original(group, first, *others, **options)
                return work if self.job.on_gpu or self.answered else sent.watch(begin, work)
            if form != "in place":
                self._answer(group, kind, form, first, inputs)
            return _Answered(_flat(first))
        return call

    @staticmethod
    @torch.no_grad()
    def _answer(group, kind, form, outputs, inputs):
        ranks, rank = group.size(), group.rank()
        for out, given in zip(_listed(outputs), _listed(inputs)):
            if kind == "all_gather" and form == "whole":
                # It may lie in what it becomes a part of.
                out.view(ranks, -1).copy_(given.reshape(1, -1).clone())
            elif kind == "all_gather":
                for part in _flat(out):
                    part.copy_(given)
            elif form == "whole":
                out.view(-1).copy_(given.reshape(ranks, -1)[rank])
            else:
                out.copy_(given[rank])


class _Gradient:
    """One that no rank has whole for long."""

    grad = None

    def __init__(self, shape, dtype, device):
        self.shape, self.dtype, self.device = torch.Size(shape), dtype, device

    def numel(self):
        return self.shape.numel()


def _clean(name):
    """A module's or parameter's name as the model had it before it was wrapped."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS[:3])


class _ShardedJob(_Job):
    """One whose ranks gather parameters and scatter sums. A subclass sets by _look: places,
    {(module, its attribute): gradient's name}, and units."""

    narrows = False

    def __init__(self, model, optimizer):
        self.seen_by = None
        self.places = {}
        super().__init__(model, optimizer)
        self.is_ddp = False
        if self.ranks > 1 and self.mesh_ranks() != self.ranks:
            _fail(f"the model is sharded over {self.mesh_ranks()} of the job's {self.ranks} ranks: "
                  "tensor, context and pipeline parallelism are not recorded; " + _INSTEAD)

    def exchanges(self):
        return True

    def as_registered(self, gradients):
        """In the order of the modules that have them."""
        order = {module: at for at, module in enumerate(self.module.modules())}
        names = [name for _, name in sorted(self.places.items(), key=lambda one: order[one[0][0]])]
        return {name: gradients[name] for name in names}

    def mesh_ranks(self):
        """That hold the parameters together, replicas included."""
        return self.ranks

    def shard_sizes(self):
        """Ranks of the groups whose collectives are to be measured: the job's own, and others that
        its mesh might have."""
        return {self.shards(), self.ranks // 2}

    def shards(self):
        return self.ranks

    def shares(self):
        return self.shards()

    def before_forward(self, hook):
        return self.model.register_forward_pre_hook(hook, prepend=True)

    @contextlib.contextmanager
    def without_exchange(self):
        with _Collectives(self, answered=True):
            yield

    @contextlib.contextmanager
    def really(self):
        if self.seen_by is None:
            yield
            return
        self.seen_by.passing = True
        try:
            yield
        finally:
            self.seen_by.passing = False

    def hook_gradients(self, watch):
        if self.seen_by is None:
            watch.undo.enter_context(_Collectives(self, answered=False))
        self.hook_tensors(watch)
        modules = {}
        for (module, _), name in self.places.items():
            modules.setdefault(module, []).append(name)
        for module, names in modules.items():
            hook = module.register_forward_pre_hook(_entering(watch, tuple(names)))
            watch.undo.callback(hook.remove)

    def sums_in_pass(self):
        return False  # until it is seen

    def pass_ended(self, step):
        step.sums[-1] |= any(one.kind in ("reduce_scatter", "all_reduce") and one.elements > 1
                             for one in step.sent[getattr(step, "passed", 0):])
        step.passed = len(step.sent)

    def collectives(self, seen):
        """Without those of one number: norms, and whether something overflowed."""
        return sum(one.elements > 1 for one in seen.runs["exchanged"][-1]["sent"])

    def note(self, seen):
        if self.calls == 1 or self.ranks == 1:
            return ""
        return (f"a pass calls backward() {self.calls} times, as a loss in chunks does: it is "
                f"predicted as one call, maybe without some of the {self.collectives(seen)} "
                "collectives that a step has")

    def what_is_sent(self, seen):
        sent = [one for one in seen.runs["exchanged"][-1]["sent"] if one.elements > 1]
        kinds = sorted({one.kind for one in sent})
        return f"{len(seen.order)} gradients; of a step " + ", ".join(
            f"{sum(one.kind == kind for one in sent)} x {kind} of "
            f"{sum(one.elements * one.width for one in sent if one.kind == kind) / 2**20:.2f} MiB"
            for kind in kinds)

    def bucket_bytes(self):
        return [max(sum(4 * self.gradients[name].numel() for name in unit)
                    for unit in self.units)]

    def widest(self):
        """Or DistributedDataParallel's bucket: another setting may send as much."""
        whole = sum(4 * gradient.numel() for gradient in self.gradients.values())
        return max(*self.bucket_bytes(), min(whole, _DDP_BUCKET))


def _entering(watch, names):
    def entered(*_):
        watch.step.enter(names)
    return entered


class _Fsdp(_ShardedJob):
    """`units` has the gradients of each, `modules` their names; the root's is the first."""

    dialect = "fsdp"

    def _pattern(self, names, known):
        """The modules of all units, the numbers in them as * where each such module is one."""
        patterns = []
        for name in names:
            pattern = ".".join("*" if part.isdigit() else part for part in name.split("."))
            alike = {other for other in known if re.fullmatch(
                re.escape(pattern).replace(r"\*", r"\d+"), other)}
            entry = pattern if alike <= set(names) else name
            if entry not in patterns:
                patterns.append(entry)
        return patterns

    def _units(self):
        known = {_clean(name) for name, _ in self.model.named_modules()}
        single = [one[0] for one in self.modules if len(one) == 1 and one[0]]
        together = [list(one) for one in self.modules if len(one) > 1]
        return self._pattern(single, known) + together

    def strategy(self, seen):
        config = {"version": self.version, "units": self._units(), **self.config()}
        passes = seen.runs["exchanged"][-1]["sums"]
        if seen.sums_last:
            config["no_sync"] = True
        elif len(passes) > 1 and self.shards() < self.ranks and self.version == 2:
            across = [one for one in seen.runs["exchanged"][-1]["sent"]
                      if one.kind == "all_reduce" and one.elements > 1]
            scattered = [one for one in seen.runs["exchanged"][-1]["sent"]
                         if one.kind == "reduce_scatter"]
            if len(across) < len(scattered):
                config["set_requires_all_reduce"] = False
        return {"name": "as recorded", "dialect": self.dialect, "config": config}


def _formats(policy, keys):
    """{key: torch's name} of the formats that a policy sets."""
    return {key: str(getattr(policy, key)).replace("torch.", "") for key in keys
            if getattr(policy, key, None) is not None}


class _Fsdp2(_Fsdp):
    """fully_shard."""

    version = 2

    def _find_gradients(self):
        gradients, self.units, self.modules, self.groups = {}, [], [], []
        self.leaves = {}  # by name: what becomes its unsharded parameter
        for name, module in self.model.named_modules():
            groups = _fsdp2_groups(module)
            if len(groups) > 1:
                _fail(f"{_clean(name) or 'the root'} has several groups of parameters "
                      "(shard_placement_fn): that is not recorded; " + _INSTEAD)
            for group in groups:
                if any(group is known for known in self.groups):
                    continue
                self._take(name, group, gradients)
        held = {id(p.sharded_param) for group in self.groups for p in group.fsdp_params}
        apart = [name for name, p in self.model.named_parameters()
                 if p.requires_grad and p.numel() > 0 and id(p) not in held
                 and not hasattr(p, "_local_tensor")]
        if apart:
            _fail(f"{len(apart)} parameters are in no module that fully_shard was called with, "
                  f"{apart[0]} the first: call it with the whole model, too")
        return self.as_registered(gradients)

    def name(self):
        return type(self.model).__mro__[2].__name__  # behind FSDP's own classes

    def _take(self, name, group, gradients):
        names = {id(module): _clean(full) for full, module in self.model.named_modules()}
        unit = []
        for one in group.fsdp_params:
            info = one._module_info
            full = ".".join(filter(None, (names[id(info.module)], info.param_name)))
            if not one.sharded_param.requires_grad:
                continue
            gradients[full] = _Gradient(one._orig_size, one.sharded_param.dtype,
                                        one.sharded_param.device)
            self.places[info.module, info.param_name] = full
            self.leaves[full] = one
            unit.append(full)
        self.groups.append(group)
        if unit:
            self.units.append(unit)
            self.modules.append(tuple(names[id(module)] for module in group.modules))
        if "CPUOffload" in type(group.offload_policy).__name__:
            _fail("shards that are kept on the host (CPUOffloadPolicy) are not recorded; " + _INSTEAD)

    def trained(self):
        return list(self.model.parameters())

    def mesh(self):
        return self.groups[0].mesh_info.mesh

    def mesh_ranks(self):
        for group in self.groups:
            if group.mesh_info.mesh != self.mesh():
                _fail("units lie on different meshes (experts, tensor parallelism): that is not "
                      "recorded; " + _INSTEAD)
        ranks = self.mesh().mesh.flatten().tolist()
        if ranks == list(range(len(ranks))) and not hasattr(self.groups[0].mesh_info,
                                                            "shard_mesh_size"):
            _fail("a mesh that only replicates is not recorded: use DistributedDataParallel")
        return len(ranks) if ranks == sorted(ranks) else -1

    def shards(self):
        return self.groups[0].mesh_info.shard_mesh_size

    def hook_tensors(self, watch):
        for name, one in self.leaves.items():
            hook = one._unsharded_param.register_post_accumulate_grad_hook(
                lambda _, name=name: watch.is_ready(name))
            watch.undo.callback(hook.remove)

    def config(self):
        own = [(names, group) for names, group in zip(self.modules, self.groups) if names != ("",)]
        config = {}
        again = [_resharded_to(group) for _, group in own] or [True]
        if len(set(again) - {False}) > 1:
            _fail("units are resharded to groups of different sizes: that is not recorded; "
                  + _INSTEAD)
        after = next((to for to in again if to is not False), False)
        root = [group for names, group in zip(self.modules, self.groups) if names == ("",)]
        if after is not True or any(_resharded_to(group) for group in root):
            config["reshard_after_forward"] = after  # since torch 2.8 the root's, too, if given
        if len(set(again)) > 1:
            config["not_resharded"] = [names[0] for (names, _), to in zip(own, again) if to is False]
        if self.shards() < self.ranks:
            config["mesh"] = [-1, self.shards()]
        policy = _formats(self.groups[0].fsdp_params[0], ("param_dtype", "reduce_dtype"))
        if policy:
            config["mp_policy"] = policy
        return config


def _fsdp2_groups(module):
    """The parameters that fully_shard has grouped for this module."""
    ask = getattr(module, "_get_fsdp_state", None)
    if ask is None or not any(kind.__name__ == "FSDPModule" for kind in type(module).__mro__):
        return []
    state = ask()
    groups = getattr(state, "_fsdp_param_groups", None)
    return [one for one in (groups if groups is not None else [state._fsdp_param_group]) if one]


def _resharded_to(group):
    """True, False, or the ranks of a smaller group."""
    after = group.post_forward_mesh_info
    if after is None:
        return False
    size = after.shard_mesh_size
    return True if size == group.mesh_info.shard_mesh_size else size


class _Fsdp1(_Fsdp):
    """FullyShardedDataParallel."""

    version = 1

    def _find_gradients(self):
        gradients, self.units, self.modules, self.wrapped = {}, [], [], []
        names = {id(module): _clean(full) for full, module in self.model.named_modules()}
        for name, module in self.model.named_modules():
            handle = getattr(module, "_handle", None)
            if not _is_fsdp1(module) or handle is None:
                continue
            flat = handle.flat_param
            if not flat.requires_grad:
                continue
            unit = []
            for (attribute, owner, _), shape in zip(flat._param_infos, flat._shapes):
                full = ".".join(filter(None, (names[id(owner)], attribute)))
                gradients[full] = _Gradient(shape, flat.dtype, flat.device)
                self.places[owner, attribute] = full
                unit.append(full)
            self.units.append(unit)
            self.modules.append((_clean(name),))
            self.wrapped.append(module)
            if module.cpu_offload.offload_params:
                _fail("shards that are kept on the host (CPUOffload) are not recorded; " + _INSTEAD)
        return self.as_registered(gradients)

    def name(self):
        return type(self.model.module).__name__

    def trained(self):
        flat = [module._handle.flat_param for module in self.wrapped]
        return [*self.model.parameters(), *flat]

    def kept(self):
        flat = [module._handle.flat_param for module in self.wrapped]
        views = {id(p) for one in flat for p in getattr(one, "_params", None) or ()}
        return [*flat, *(t for t in super().kept()
                         if id(t) not in views and all(t is not one for one in flat))]

    def shards(self):
        return dist.get_world_size(self.wrapped[0].process_group)

    def mesh_ranks(self):
        across = getattr(self.wrapped[0], "_inter_node_pg", None)
        return self.shards() * (dist.get_world_size(across) if across is not None else 1)

    def hook_tensors(self, watch):
        """FSDP makes each parameter anew in each pass, a view of its unit's."""
        for (owner, attribute), name in self.places.items():
            def entered(module, *_, attribute=attribute, name=name):
                view = getattr(module, attribute)
                if torch.is_grad_enabled() and view.requires_grad:
                    view.register_hook(lambda _: watch.is_ready(name))
            watch.undo.callback(owner.register_forward_pre_hook(entered).remove)

    def config(self):
        module = self.wrapped[0]
        config = {"sharding_strategy": module.sharding_strategy.name}
        if module._use_orig_params:
            config["use_orig_params"] = True
        if "HYBRID" in config["sharding_strategy"]:
            config["device_mesh"] = [-1, self.shards()]
        if module.backward_prefetch is None or module.backward_prefetch.name != "BACKWARD_PRE":
            config["backward_prefetch"] = getattr(module.backward_prefetch, "name", "NONE")
        policy = _formats(module.mixed_precision, ("param_dtype", "reduce_dtype"))
        if policy:
            config["mixed_precision"] = policy
        return config


def _is_fsdp1(module):
    return any(kind.__name__ == "FullyShardedDataParallel" for kind in type(module).__mro__)


class _DeepSpeed(_ShardedJob):
    """DeepSpeed's engine, with its configuration as it was given."""

    dialect = "deepspeed"

    def _find_gradients(self):
        self.module = self.model.module
        if type(self.model).__name__ == "PipelineEngine":
            _fail("DeepSpeed's pipelines are not recorded; " + _INSTEAD)
        gradients = {}
        names = {id(p): name for name, p in self.module.named_parameters()}
        for module in self.module.modules():
            for attribute, p in module.named_parameters(recurse=False):
                if p.requires_grad:
                    shape = getattr(p, "ds_shape", p.shape)
                    gradients[names[id(p)]] = _Gradient(shape, p.dtype, p.device)
                    self.places.setdefault((module, attribute), names[id(p)])
        self.units = [list(gradients)]
        return gradients

    def batch(self):
        return self.model.train_micro_batch_size_per_gpu()

    def _find_optimizers(self):
        return [self.model.optimizer] if self.model.optimizer is not None else []

    def _stage(self):
        return self.model.zero_optimization_stage()

    def mesh_ranks(self):
        group = getattr(self.model, "data_parallel_group", None)
        return self.ranks if group is None else dist.get_world_size(group)

    def shards(self):
        sizes = self.model._config._param_dict.get("zero_optimization", {})
        return sizes.get("mics_shard_size", -1) if sizes.get("mics_shard_size", -1) > 0 else self.ranks

    def shares(self):
        return self.shards() if self._stage() > 0 else 1

    def before_forward(self, hook):
        return self.model.register_forward_pre_hook(hook)

    def keepers(self):
        return [getattr(self.model.optimizer, "optimizer", self.model.optimizer)]

    def kept(self):
        """Parameters, shards of them, and the copies in fp32 that are updated."""
        optimizer = self.model.optimizer
        own = [p for p in self.module.parameters() if p.numel() > 0]
        own += [p.ds_tensor for p in self.module.parameters() if hasattr(p, "ds_tensor")]
        for key in ("fp32_partitioned_groups_flat", "single_partition_of_fp32_groups",
                    "fp32_groups_flat_partition"):
            own += list(getattr(optimizer, key, ()))
        return own + list(self.module.buffers())

    def hook_tensors(self, watch):
        names = {id(p): name for name, p in self.module.named_parameters()}
        for p in self.module.parameters():
            if p.requires_grad:
                hook = p.register_post_accumulate_grad_hook(
                    lambda _, name=names[id(p)]: watch.is_ready(name))
                watch.undo.callback(hook.remove)

    def strategy(self, seen):
        return {"name": "as recorded", "dialect": self.dialect,
                "config": self.model._config._param_dict}


def _job_of(model, optimizer):
    """The kind of job that a model tells."""
    kinds = {kind.__name__ for kind in type(model).__mro__}
    if kinds & {"DeepSpeedEngine", "PipelineEngine"}:
        return _DeepSpeed(model, optimizer)
    if any(_fsdp2_groups(module) for module in model.modules()):
        return _Fsdp2(model, optimizer)
    if any(_is_fsdp1(module) for module in model.modules()):
        return _Fsdp1(model, optimizer)
    return _Job(model, optimizer)


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
        lines.append(f"communication that nothing hides: {hidden:.2f} ms; "
                     + job.what_is_sent(seen))
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
    lines.append(f"wrote {out}; next: syncline tune {out} --emit {job.dialect}")
    return "\n".join("syncline_record: " + line for line in lines)


if __name__ == "__main__":
    _main()
