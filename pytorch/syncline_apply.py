"""Exchanges the gradients of a data-parallel PyTorch job as a strategy of Syncline says.

    from syncline_apply import apply
    model = apply(model, optimizer)  # in place of DistributedDataParallel(model)

Every rank calls it once, after init_process_group and the optimizer's making, with the same plain
module. Gradients that travel together share a flat buffer, of which their .grad are views; a
buffer is exchanged as soon as it and those before it are complete, on as many streams as the
strategy has, and backward() returns when all are in: what .grad holds then is the mean over all
ranks, as with DistributedDataParallel. The model's own buffers (batch norm) are rank 0's ahead of
each step, as there; LocalSGD averages them. Of a job that accumulates gradients, all passes but the
last run under model.no_sync(). With zero_grad(set_to_none=False) the gradients stay in their
buffers; otherwise each is copied there once.

The strategy below is a table of numbers and names. Gradients are found by name; where the model
knows none of the names, by their place in the order of readiness, which the first step shows, and
their size. Needs torch 1.13 or later and nothing else. What goes wrong is told in one line, with
the traceback where SYNCLINE_TRACEBACK is set. Written by `syncline emit --python`.

With an outer step (DiLoCo) the state_dict of what apply() gives holds it too: a checkpoint of a job
goes on as if it had not been stopped.
"""

import atexit
import contextlib
import datetime
import functools
import hashlib
import importlib
import itertools
import math
import os
import queue
import sys
import threading
import types

import torch
import torch.distributed as dist

STRATEGY = None

_PARTING = 10  # seconds for exchanges that are left over when a job ends by an error
_HALVES = {"fp16": torch.float16, "bf16": torch.bfloat16}
_FEW = 1 << 14  # elements among which the largest are found as fast without a sample
_SAMPLED = 61  # one in so many: a prime, since rows are multiples of small ones


def apply(model, optimizer, *, strategy=None, find_unused_parameters=False, timeout=None):
    """Gives a module that calls `model` and exchanges as the strategy says. Collective.

    optimizer               a strategy with DGC or LocalSGD acts before or after its step()
    strategy                in place of this file's own
    find_unused_parameters  some parameters get no gradient in some steps: they count as zero on a
                            rank; what no rank used keeps the gradient that it had, or none, as in
                            DistributedDataParallel. Not together with reentrant checkpoints
    timeout                 seconds that a rank waits for the others in an exchange; torch's own
                            limit if left out

    Raises RuntimeError where strategy and model do not fit or the ranks have different models, and
    from backward() where an exchange fails, on every rank that is left.
    """
    strategy = strategy or STRATEGY
    if strategy is None:
        _fail("no strategy: `syncline emit --python FILE` writes this file with one")
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        _fail("give the module itself, without DistributedDataParallel around it")
    _begin_alike(model)
    trained = {name: p for name, p in model.named_parameters()
               if p.requires_grad and p.numel() > 0}
    if not trained:
        _fail("the model has no parameter that is trained")
    device = next(iter(trained.values())).device
    if dist.get_rank() == 0 and dist.get_world_size() != strategy["ranks"]:
        print(f"syncline_apply: '{strategy['name']}' was made for {strategy['ranks']} ranks, this "
              f"job has {dist.get_world_size()}", flush=True)
    _expect_sums(strategy, trained, device)
    local = strategy.get("local_sgd", {})
    if "outer" in local:
        exchange = _made_far_apart(model, trained, optimizer, strategy, device, timeout,
                                   find_unused_parameters)
    elif local:
        exchange = _Averager(model, trained, optimizer, strategy,
                             _lanes(device, strategy, timeout))
    else:
        exchange = _Reducer(trained, optimizer, strategy, _lanes(device, strategy, timeout),
                            find_unused_parameters)
        if strategy.get("broadcast_buffers", 1):
            exchange.buffers = _same_types(model.buffers())
    _around_step(optimizer, exchange.before_step, exchange.after_step)
    return (_AppliedFarApart if "outer" in local else Applied)(model, exchange)


def autotune(model, optimizer, **how):
    """Gives a module that finds out while it trains how its gradients are best exchanged: see
    autotune of syncline_tuner.py, which is next to this file."""
    try:
        tuner = importlib.import_module("syncline.tuner" if __package__ else "syncline_tuner")
    except ModuleNotFoundError as error:
        _fail(f"{error.name} is missing: `syncline record -o FOLDER` writes all that autotune takes")
    return tuner.autotune(model, optimizer, **how)


class Applied(torch.nn.Module):
    """The model, whose gradients or parameters are exchanged. `module` is the one that was given."""

    def __init__(self, module, exchange):
        super().__init__()
        self.module = module
        self._exchange = exchange

    def forward(self, *args, **kwargs):
        self._exchange.before_forward()
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        """Backward passes in here only add to the gradients."""
        before, self._exchange.on = self._exchange.on, False
        try:
            yield
        finally:
            self._exchange.on = before

    def average(self):
        """LocalSGD: the ranks' parameters now, as at the end of a training. Collective."""
        self._exchange.average()

    def loss(self, value):
        """Of this step on this rank: an adaptive period of LocalSGD follows it. Others ignore it."""
        self._exchange.told_loss = value.detach() if torch.is_tensor(value) else value


class _AppliedFarApart(Applied):
    """Whose outer step is part of the state_dict: the parameters that it began with, its momentum
    and what is under way."""

    def get_extra_state(self):
        return self._exchange.state()

    def set_extra_state(self, state):
        self._exchange.load(state)


class ApplyError(RuntimeError):
    """Told in one line where nobody catches it; with SYNCLINE_TRACEBACK set, as any other error."""


def _fail(message):
    raise ApplyError(f"syncline_apply: {message}")


def _tell(kind, error, trace, others=sys.excepthook):
    if issubclass(kind, ApplyError) and not os.environ.get("SYNCLINE_TRACEBACK"):
        print(error, file=sys.stderr)
    else:
        others(kind, error, trace)


sys.excepthook = _tell


def _expect_sums(strategy, trained, device):
    """Fails ahead of the first step, on all ranks, where torch would fail in it."""
    scalars = [name for name, p in trained.items() if p.dim() == 0]
    if "powersgd" in strategy and scalars:
        _fail(f"torch's powerSGD_hook cannot take {scalars[0]}, which has no dimension: give it the "
              "shape [1]")
    codecs = {bucket.get("codec") for bucket in strategy["buckets"] + strategy.get("averaged", [])}
    as_they_are = None in codecs and any(p.dtype == torch.bfloat16 for p in trained.values())
    if dist.get_backend() != "gloo" or not ("bf16" in codecs or as_they_are):
        return
    group = dist.new_group()  # of its own: one that failed serves for nothing more
    try:
        dist.all_reduce(torch.zeros(1, dtype=torch.bfloat16, device=device), group=group)
    except RuntimeError as error:
        reason = str(error).strip().split("\n")[0]
        _fail(f"Gloo of torch {torch.__version__} sums no bfloat16 ({reason})")
    dist.destroy_process_group(group)


# ---- the same model on all ranks ----

def _begin_alike(model):
    try:
        _expect_same_models(model)
        for tensor in [*model.parameters(), *model.buffers()]:
            _take_from_first_rank(tensor)
    except ApplyError:
        raise
    except RuntimeError as error:
        _fail(f"rank {dist.get_rank()}: the ranks' models could not be compared; if another rank has "
              "ended, see there: " + str(error).strip().split("\n")[0])


def _expect_same_models(model):
    """Compared by a hash before anything else is exchanged: where a rank has other tensors, the first
    is named, on all ranks."""
    own = _described(model).encode()
    tensors = itertools.chain(model.parameters(), model.buffers())
    nccl = dist.get_backend() == "nccl"
    device = next((t.device for t in tensors), torch.device("cuda" if nccl else "cpu"))
    mine = _as_bytes(len(own).to_bytes(8, "little") + hashlib.sha256(own).digest(), device)
    given = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(given, mine)
    heads = [bytes(head.tolist()) for head in given]
    other = next((rank for rank, head in enumerate(heads) if head != heads[0]), None)
    if other is None:
        return
    texts = []
    for rank in (0, other):
        size = int.from_bytes(heads[rank][:8], "little")
        text = own if rank == dist.get_rank() else bytes(size)
        told = _as_bytes(text, device)
        if size > 0:
            dist.broadcast(told, src=rank)
        texts.append(bytes(told.tolist()).decode().splitlines())
    one, its = next(pair for pair in itertools.zip_longest(*texts, fillvalue="no tensor more")
                    if pair[0] != pair[1])
    _fail(f"the ranks have different models: rank {other} has {its}, rank 0 has {one}")


def _described(model):
    """A line a tensor, in the model's own order."""
    kinds = [("parameter", model.named_parameters()), ("buffer", model.named_buffers())]
    return "\n".join(
        f"{kind} {ascii(name)[1:-1]} of {' x '.join(map(str, t.shape)) or 'one'} "
        f"{str(t.dtype).split('.')[-1]}" + ("" if t.requires_grad or kind == "buffer" else ", frozen")
        for kind, tensors in kinds for name, t in tensors)


def _as_bytes(text, device):
    return torch.tensor(list(text), dtype=torch.uint8, device=device)


@torch.no_grad()
def _take_from_first_rank(tensor):
    # As bytes: not every backend moves every type.
    wire = tensor.detach().clone(memory_format=torch.contiguous_format).reshape(-1)
    if wire.numel() > 0:
        dist.broadcast(wire.view(torch.uint8), src=0)
        tensor.copy_(wire.view_as(tensor))


def _same_types(tensors):
    """Lists of those that are not empty, a list a type."""
    kinds = {}
    for tensor in tensors:
        if tensor.numel() > 0:
            kinds.setdefault(tensor.dtype, []).append(tensor.detach())
    return list(kinds.values())


def _around_step(optimizer, before, after):
    """Calls them before and after each optimizer.step()."""
    if hasattr(optimizer, "register_step_pre_hook"):  # torch 2.0
        optimizer.register_step_pre_hook(lambda *_: before())
        optimizer.register_step_post_hook(lambda *_: after())
        return
    inner = optimizer.step

    @functools.wraps(inner)
    def step(_, *args, **kwargs):
        before()
        result = inner(*args, **kwargs)
        after()
        return result
    optimizer.step = types.MethodType(step, optimizer)  # learning rate schedulers want a method


# ---- streams and what travels on them ----

def _lanes(device, strategy, timeout, blocks=None):
    """`blocks`: lists of ranks that exchange among themselves, of which one has this rank."""
    limit = {} if timeout is None else {"timeout": datetime.timedelta(seconds=timeout)}
    failures = []
    try:
        return [_Lane(device, strategy.get("hierarchy"), limit, failures, blocks)
                for _ in range(strategy["streams"])]
    except RuntimeError as error:
        _fail(f"rank {dist.get_rank()}: the ranks could not form their groups; if another rank has "
              "ended, see there: " + str(error).strip().split("\n")[0])


class _Lane:
    """One communication stream with communicators of its own. Exchanges go one after the other:
    on a stream of the GPU, or on a thread where collectives hold the host up."""

    def __init__(self, device, hierarchy, limit, failures, blocks=None):
        self.ranks = dist.get_world_size() if blocks is None else len(blocks[0])
        if blocks is None:
            self.world = dist.new_group(**limit)
        else:
            groups = [dist.new_group(block, **limit) for block in blocks]
            self.world = next(group for group, block in zip(groups, blocks)
                              if dist.get_rank() in block)
        self.failures = failures  # of all lanes
        self.device = device
        self.room = _Room()
        self._join_levels(hierarchy, limit)
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        if self.stream is None:
            self.tasks = queue.SimpleQueue()
            threading.Thread(target=self._serve, daemon=True).start()
            # A thread that torch wakes while Python ends would abort the process.
            atexit.register(lambda: self._done().wait(_PARTING))

    def _join_levels(self, hierarchy, limit):
        """Blocks of neighbouring ranks, and across them the leaders or those of the same place.
        Every rank makes every group, as torch wants."""
        self.form = hierarchy["form"] if hierarchy else "flat"
        self.size = hierarchy["group_size"] if hierarchy else 1
        if self.form == "flat":
            return
        if self.ranks % self.size != 0:
            _fail(f"groups of {self.size} ranks do not divide {self.ranks}")
        self.first_all_reduce = hierarchy.get("first_all_reduce", 0) == 1
        me = dist.get_rank()
        self.place = me % self.size
        self.block = list(range(me - self.place, me - self.place + self.size))
        blocks = [dist.new_group(list(range(first, first + self.size)), **limit)
                  for first in range(0, self.ranks, self.size)]
        self.inside = blocks[me // self.size]
        places = range(1 if self.form == "leaders" else self.size)
        across = [dist.new_group(list(range(place, self.ranks, self.size)), **limit)
                  for place in places]
        self.across = across[self.place] if self.place < len(across) else None

    def run(self, name, exchange):
        """Carries it out behind those before; what was computed so far counts as there."""
        if self.stream is None:
            self.tasks.put((name, exchange))
            return
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            exchange()

    def wait(self):
        """Until all is exchanged, or a lane has failed."""
        if self.stream is not None:
            torch.cuda.current_stream(self.device).wait_stream(self.stream)
            return
        done = self._done()
        while not done.wait(0.05) and not self.failures:
            pass
        if self.failures:
            _fail(self.failures[0])

    def _done(self):
        """An event behind what is to be exchanged."""
        done = threading.Event()
        self.tasks.put(("", done.set))
        return done

    def _serve(self):
        while True:
            name, exchange = self.tasks.get()
            try:
                exchange()
            except Exception as error:  # told to whoever waits
                first_line = str(error).strip().split("\n")[0]
                self.failures.append(f"rank {dist.get_rank()}: {name} could not be sent; if "
                                     f"another rank has ended, see there: {first_line}")

    @torch.no_grad()
    def spread(self, kinds):
        """Rank 0's values to all ranks, all tensors of a type at once."""
        for tensors in kinds:
            wire = torch.cat([tensor.reshape(-1) for tensor in tensors])
            dist.broadcast(wire, src=0, group=self.world)
            if dist.get_rank() == 0:
                continue
            for tensor, part in zip(tensors, wire.split([t.numel() for t in tensors])):
                tensor.copy_(part.view_as(tensor))

    def mean(self, flat, codec=None):
        """Of all ranks, in place. Scaled ahead of the sum, as DistributedDataParallel does."""
        if codec is None:
            self._sum(flat.mul_(1.0 / self.ranks))
            return
        if codec in _BLOCKS:
            self._sum_blocks(flat, _BLOCKS[codec])
            flat.div_(self.ranks)
            return
        wire = flat.to(_HALVES[codec]).div_(self.ranks)
        self._sum(wire)
        flat.copy_(wire)

    def _sum(self, flat):
        if self.form == "flat":
            dist.all_reduce(flat, group=self.world)
        elif self.form == "leaders":
            leader = self.block[0]
            if self.first_all_reduce:
                dist.all_reduce(flat, group=self.inside)
            else:
                dist.reduce(flat, dst=leader, group=self.inside)
            if self.across is not None:
                dist.all_reduce(flat, group=self.across)
            dist.broadcast(flat, src=leader, group=self.inside)
        else:
            self._sum_by_shards(flat)

    def _sum_by_shards(self, flat):
        shards = list(flat.view(self.size, -1).unbind())
        mine = shards[self.place]
        if dist.get_backend(self.inside) == "gloo":  # it has no reduce-scatter
            for rank, shard in zip(self.block, shards):
                dist.reduce(shard, dst=rank, group=self.inside)
        else:
            dist.reduce_scatter_tensor(mine, flat, group=self.inside)
        dist.all_reduce(mine, group=self.across)
        if dist.get_backend(self.inside) == "gloo":
            dist.all_gather(shards, mine.clone(), group=self.inside)
        else:
            dist.all_gather_into_tensor(flat, mine, group=self.inside)

    def _sum_blocks(self, flat, codec):
        """All to all: each rank gets its part of all ranks' blocks and sums it in fp32. Then all
        get the sums, which are rounded once."""
        blocks = codec.pack(flat)
        count, me = blocks.shape[0], dist.get_rank(self.world)
        ends = [(rank + 1) * count // self.ranks for rank in range(self.ranks)]
        sizes = [end - begin for begin, end in zip([0, *ends], ends)]
        given = blocks.new_empty((sizes[me] * self.ranks, blocks.shape[1]))
        dist.all_to_all_single(given, blocks, [sizes[me]] * self.ranks, sizes, group=self.world)
        parts = codec.unpack(given).view(self.ranks, sizes[me] * _BLOCK)
        total = parts[me].clone()
        for rank in range(self.ranks):
            if rank != me:
                total += parts[rank]
        mine = blocks.new_zeros((max(sizes), blocks.shape[1]))  # collectives want one size
        mine[:sizes[me]] = codec.pack(total)
        sums = torch.cat([part[:size] for part, size in zip(self.gather(mine), sizes)])
        flat.copy_(codec.unpack(sums)[:flat.numel()])

    def gather(self, flat):
        """What every rank gives, by rank."""
        given = [torch.empty_like(flat) for _ in range(self.ranks)]
        dist.all_gather(given, flat, group=self.world)
        return given


# ---- low precision ----

_BLOCK = 128  # values that share a scale


class _Blocks:
    """Values as whole numbers or 8-bit floats, a scale in fp32 for each block: to the bit as
    Syncline's own codecs. Values that are not finite make their block so."""

    def __init__(self, largest, numbers=None):
        self.largest = largest
        self.numbers = numbers  # of a float, from 0 on; None: whole numbers

    def pack(self, flat):
        """A row of bytes a block: the scale, then the numbers."""
        rows = torch.nn.functional.pad(flat.float(), (0, -flat.numel() % _BLOCK)).view(-1, _BLOCK)
        most = rows.abs().amax(1, keepdim=True)
        # By a tensor: a GPU multiplies by the inverse of a number.
        scale = most / torch.full_like(most, self.largest)
        scale[~torch.isfinite(rows).all(1)] = math.nan
        scaled = torch.where(scale > 0, rows / scale, torch.zeros_like(rows))
        codes = self._codes(scaled.clamp_(-self.largest, self.largest))
        return torch.cat([scale.view(torch.uint8), codes], 1)

    def unpack(self, blocks):
        scale = blocks[:, :4].contiguous().view(torch.float32)
        return (self._values(blocks[:, 4:]) * scale).view(-1)

    def _codes(self, scaled):
        if self.numbers is not None:
            return self._nearest(scaled)
        codes = scaled.round_().to(torch.int8).view(torch.uint8)
        return codes if self.largest > 7 else codes[:, ::2] & 15 | codes[:, 1::2] << 4

    def _values(self, codes):
        if self.numbers is not None:
            sizes = self._numbers_on(codes.device)[(codes & 127).long()]
            return torch.where(codes > 127, -sizes, sizes)
        if self.largest == 7:
            codes = torch.stack([codes & 15, codes >> 4], 2).view(-1, _BLOCK)
            return (codes ^ 8).float() - 8
        return codes.contiguous().view(torch.int8).float()

    def _nearest(self, scaled):
        """Of two numbers that are equally near, the one whose code is even."""
        numbers, size = self._numbers_on(scaled.device), scaled.abs()
        above = torch.searchsorted(numbers, size)
        below = (above - 1).clamp_(min=0)
        up, down = numbers[above] - size, size - numbers[below]
        code = torch.where((down < up) | (down == up) & (above % 2 == 1), below, above)
        return (code + 128 * torch.signbit(scaled)).to(torch.uint8)

    def _numbers_on(self, device):
        self.numbers = self.numbers.to(device)
        return self.numbers


def _small_floats(mantissa, bias, last):
    """The numbers of 8-bit floats of Micikevicius et al. 2022, by code."""
    ones = 1 << mantissa
    numbers = [math.ldexp(code % ones + (ones if code >= ones else 0),
                          max(code >> mantissa, 1) - bias - mantissa) for code in range(last + 1)]
    return _Blocks(numbers[-1], torch.tensor(numbers))


_BLOCKS = {"int8": _Blocks(127), "int4": _Blocks(7), "fp8": _small_floats(3, 7, 0x7e),
           "fp8_e5m2": _small_floats(2, 15, 0x7b)}


def _is_dense(tensor):
    """Its strides leave no gaps, whatever their order (channels last)."""
    reach = sum((n - 1) * step for n, step in zip(tensor.size(), tensor.stride()))
    return 1 + reach == tensor.numel()


def _in_memory_order(tensor):
    dense = _is_dense(tensor)
    return tensor.as_strided((tensor.numel(),), (1,)) if dense else tensor.reshape(-1)


class _Flat:
    """Tensors side by side in one buffer, which any number of shards divides."""

    def __init__(self, tensors, shards):
        kinds = {(t.dtype, t.device) for t in tensors.values()}
        if len(kinds) > 1:
            _fail(f"{', '.join(tensors)} share a buffer in the strategy, but not a type and device")
        self.tensors = tensors
        self.elements = sum(t.numel() for t in tensors.values())
        padded = -(-self.elements // shards) * shards
        (dtype, device), = kinds
        self.buffer = torch.zeros(padded, dtype=dtype, device=device)
        self.views = {}
        begin = 0
        for name, t in tensors.items():
            part = self.buffer[begin:begin + t.numel()]
            self.views[name] = (part.as_strided(t.size(), t.stride(), begin) if _is_dense(t)
                                else part.view_as(t))
            begin += t.numel()

    @torch.no_grad()
    def fill(self):
        for name, tensor in self.tensors.items():
            self.views[name].copy_(tensor)


# ---- gradients ----

class _Bucket(_Flat):
    """Gradients that travel together."""

    def __init__(self, number, parameters, codec, dgc, shards):
        super().__init__(parameters, shards)
        self.name = f"bucket {number}"
        self.codec = codec
        self.dgc = _Dgc(self.buffer[:self.elements], dgc) if codec == "dgc" else None
        self.power = None
        self.begin_step()

    def begin_step(self):
        self.missing = set(self.tensors)
        self.sent = False

    def take(self, name):
        """The gradient is where the buffer is from now on."""
        parameter, view = self.tensors[name], self.views[name]
        gradient = parameter.grad
        if gradient is None:
            view.zero_()
        elif gradient.is_sparse:
            _fail(f"{name} has a sparse gradient, which this strategy cannot send")
        elif gradient.data_ptr() != view.data_ptr():
            view.copy_(gradient)
        parameter.grad = view
        self.missing.discard(name)

    def exchange(self, lane, step, group):
        if self.power is not None:
            self.power.exchange()
        elif self.dgc is not None and self.dgc.begun(step):
            weight = next(iter(self.tensors.values()))
            self.dgc.exchange(self.buffer[:self.elements], lane, step, weight, group)
        else:
            own = self.codec if self.codec in _HALVES or self.codec in _BLOCKS else None
            lane.mean(self.buffer, own)


class _Reducer:
    """Exchanges gradients as they become ready: buffers strictly in the strategy's order, which all
    ranks share, whatever order they are complete in."""

    def __init__(self, trained, optimizer, strategy, lanes, find_unused):
        self.on = True
        self.trained = trained
        self.optimizer = optimizer
        self.find_unused = find_unused
        self.buffers = []  # the model's, by type
        self.begins = True  # the next forward pass is the first one of a step
        self.become(strategy, lanes)
        self.hooks = [self._hook(name, parameter) for name, parameter in trained.items()]

    def become(self, strategy, lanes):
        """From the next step on. Gradients stay where they are until they are exchanged."""
        self.strategy = strategy
        self.lanes = lanes
        self.used = set()  # names with a gradient since the last exchange, find_unused alone
        self.at_end = strategy.get("overlap", 1) == 0
        self.step = 0
        self.here = {}  # names, in the order of readiness
        self.next = 0  # bucket
        if any(bucket.get("codec") == "dgc" for bucket in strategy["buckets"]):
            _check_sgd(self.optimizer)
        names = _matched(strategy["gradients"], self.trained, "parameter")
        self.buckets = None if names is None else self._made(names)

    def close(self):
        for _, hook in self.hooks:
            hook.remove()

    def _hook(self, name, parameter):
        def is_ready(*_):
            if self.find_unused:
                self.used.add(name)
            if self.on:
                self._arrived(name)
        if hasattr(parameter, "register_post_accumulate_grad_hook"):  # torch 2.1
            return None, parameter.register_post_accumulate_grad_hook(is_ready)
        with torch.enable_grad():
            accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        # The accumulator is kept, or it would be gone already.
        return accumulator, accumulator.register_hook(is_ready)

    def _made(self, names):
        """The strategy's buckets of these gradients, in the order of its table."""
        shards = self.lanes[0].size if self.lanes[0].form == "sharded" else 1
        buckets = [_Bucket(i, {names[place]: self.trained[names[place]]
                               for place in bucket["places"]},
                           bucket.get("codec"), self.strategy.get("dgc"), shards)
                   for i, bucket in enumerate(self.strategy["buckets"])]
        self.bucket_of = {name: bucket for bucket in buckets for name in bucket.tensors}
        if "powersgd" in self.strategy:
            self._compress_by_rank(buckets)
        return buckets

    def _compress_by_rank(self, buckets):
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as hooks
        for place, lane in enumerate(self.lanes):
            own = range(place, len(buckets), len(self.lanes))
            state = hooks.PowerSGDState(lane.world, **self.strategy["powersgd"])
            for i in own:
                buckets[i].power = _PowerSgd(hooks.powerSGD_hook, state, i, i == own[-1],
                                             buckets[i])

    def before_forward(self):
        """Ahead of a step all ranks take rank 0's buffers, as DistributedDataParallel has it: after
        each forward pass whose gradients were exchanged."""
        if self.begins and self.buffers:
            lane = self.lanes[0]
            lane.run("buffers", lambda: lane.spread(self.buffers))
            lane.wait()
        self.begins = self.on and torch.is_grad_enabled()

    def _arrived(self, name):
        if self.buckets is not None and not self.at_end:
            bucket = self.bucket_of[name]
            if bucket.sent:
                _fail(f"{name} got another gradient after it was sent: several backward "
                      "passes a step need no_sync() around all but the last")
            bucket.take(name)
            while self.next < len(self.buckets) and not self.buckets[self.next].missing:
                self._launch()
        if name not in self.here:
            self.here[name] = True
            if len(self.here) == (1 if self.find_unused else len(self.trained)):
                torch.autograd.Variable._execution_engine.queue_callback(self._finish)

    def _launch(self):
        bucket = self.buckets[self.next]
        lane = self.lanes[self.next % len(self.lanes)]
        self.next += 1
        bucket.sent = True
        group = None if bucket.dgc is None else _group_of(self.optimizer, bucket.tensors)
        step = self.step
        lane.run(bucket.name, lambda: bucket.exchange(lane, step, group))

    @torch.no_grad()
    def _finish(self):
        """At the end of the backward pass."""
        if self.buckets is None:
            self.buckets = self._made(self._names_by_place())
        left = {name: None if p.grad is None else p.grad.clone()
                for name, p in self.trained.items() if self.find_unused and name not in self.used}
        while self.next < len(self.buckets):
            for name in list(self.buckets[self.next].missing):
                self.buckets[self.next].take(name)
            self._launch()
        for lane in self.lanes:
            lane.wait()
        if self.find_unused:
            self._leave_unused(left)
        for bucket in self.buckets:
            bucket.begin_step()
        self.here = {}
        self.next = 0
        self.step += 1

    def _leave_unused(self, left):
        """Puts back the gradients of what no rank has used: an optimizer passes over those that are
        None. Collective."""
        lane = self.lanes[0]
        device = next(iter(self.trained.values())).device
        used = torch.tensor([name in self.used for name in self.trained], dtype=torch.int32,
                            device=device)
        lane.run("used parameters", lambda: dist.all_reduce(used, group=lane.world))
        lane.wait()
        self.used.clear()
        if not left:
            return
        for name, count in zip(self.trained, used.tolist()):
            if count == 0:
                self.trained[name].grad = left[name]

    def _names_by_place(self):
        """The gradients as rank 0 saw them become ready, held against the strategy's table."""
        if len(self.here) < len(self.trained):
            missing = next(name for name in self.trained if name not in self.here)
            _fail(f"{missing} got no gradient in the first step, which is to show the order")
        known = list(self.trained)
        order = torch.tensor([known.index(name) for name in self.here],
                             device=self.trained[known[0]].device)
        dist.broadcast(order, src=0)
        names = [known[i] for i in order.tolist()]
        for place, (name, elements) in enumerate(self.strategy["gradients"]):
            found = self.trained[names[place]].numel()
            if found != elements:
                _fail(f"the strategy is not for this model: gradient {place} in the order of "
                      f"readiness is {names[place]} with {found} elements, but {name} with "
                      f"{elements} in the strategy")
        return names

    @torch.no_grad()
    def before_step(self):
        if self.here:
            missing = next(name for name in self.trained if name not in self.here)
            _fail(f"{missing} got no gradient in this step: nothing was sent; "
                  "find_unused_parameters=True lets it count as zero")
        for bucket in self.buckets or []:
            # The momentum is in what was sent: the optimizer must not apply it once more.
            if bucket.dgc is None or not bucket.dgc.begun(self.step - 1):
                continue
            group = _group_of(self.optimizer, bucket.tensors)
            for parameter in bucket.tensors.values():
                if parameter.grad is not None:
                    parameter.add_(parameter.grad, alpha=-group["lr"])
                    parameter.grad = None

    def after_step(self):
        pass

    def average(self):
        _fail("this strategy averages no parameters")


def _matched(table, tensors, what):
    """The table's names where the model has just these, with these sizes; None where it knows none
    of them."""
    names = [name for name, _ in table]
    strange = [name for name in names if name not in tensors]
    if len(strange) == len(names):
        if len(names) != len(tensors):
            _fail(f"the strategy is not for this model: it has {len(names)} {what}s, the model "
                  f"{len(tensors)}")
        return None
    left = [name for name in tensors if name not in names]
    if strange or left:
        _fail("the strategy is not for this model: " + (
            f"the model has no {what} {strange[0]}" if strange
            else f"the strategy has no {what} {left[0]}"))
    for name, elements in table:
        if tensors[name].numel() != elements:
            _fail(f"the strategy is not for this model: {name} has {tensors[name].numel()} "
                  f"elements here, {elements} in the strategy")
    return names


def _matched_by_name(table, tensors, what):
    return _matched(table, tensors, what) or _fail(
        "the model knows none of the strategy's names, by which LocalSGD finds them")


# ---- Deep Gradient Compression ----

def _check_sgd(optimizer):
    if not isinstance(optimizer, torch.optim.SGD) or any(
            group.get("dampening") or group.get("maximize") for group in optimizer.param_groups):
        _fail("DGC corrects the momentum of torch.optim.SGD without dampening; it is not known for "
              f"this {type(optimizer).__name__}")


def _group_of(optimizer, tensors):
    """The optimizer's group of a bucket that DGC sends: of its one parameter."""
    (parameter,) = tensors.values()
    for group in optimizer.param_groups:
        if any(p is parameter for p in group["params"]):
            return group
    return _fail(f"the optimizer does not know {next(iter(tensors))}")


class _Dgc:
    """One gradient of which each rank sends the largest elements. Momentum correction and masking
    of Lin et al. (ICLR 2018), counts as in Paddle's dgc_op: fp32, each operation rounded by
    itself, so that they agree with Syncline's own to the bit."""

    def __init__(self, like, ramp):
        self.ramp = ramp
        self.velocity = torch.zeros_like(like)
        self.residual = torch.zeros_like(like)  # what has not been sent yet

    def begun(self, step):
        """Steps count from 0; before the ramp the gradient travels whole."""
        return step >= self.ramp["rampup_begin_step"]

    def kept(self, step):
        """How many elements a rank sends at this step, in fp32 as the framework counts them."""
        sparsity, fp32 = self.ramp["sparsity"], torch.float32
        since = torch.tensor(step - self.ramp["rampup_begin_step"], dtype=fp32)
        place = since * len(sparsity) / torch.tensor(self.ramp["rampup_step"], dtype=fp32)
        share = 1 - torch.tensor(sparsity[min(int(place), len(sparsity) - 1)], dtype=fp32)
        elements = self.residual.numel()
        return min(max(int(torch.tensor(elements, dtype=fp32) * share), 1), elements)

    @torch.no_grad()
    def accumulate(self, gradient, weight, group, room):
        """What is sent from. Written beside what there was: elements that are not finite keep that."""
        velocity, residual, other = (room.like(place, gradient) for place in range(3))
        if group["weight_decay"]:
            torch.mul(_in_memory_order(weight.detach()), group["weight_decay"], out=other)
            gradient = other.add_(gradient)
        if group["nesterov"]:
            torch.add(self.velocity, gradient, out=velocity).mul_(group["momentum"])
            torch.add(self.residual, velocity, out=residual).add_(gradient)
        else:
            torch.mul(self.velocity, group["momentum"], out=velocity).add_(gradient)
            torch.add(self.residual, velocity, out=residual)
        if math.isfinite(residual.sum()):  # then each of them is
            self.velocity.copy_(velocity)
            self.residual.copy_(residual)
            return
        finite = torch.isfinite(residual)
        self.velocity = torch.where(finite, velocity, self.velocity)
        self.residual = torch.where(finite, residual, self.residual)

    @torch.no_grad()
    def taken(self, kept, room):
        """The largest magnitudes, ties to the lower index, in index order; they wait no longer."""
        magnitude = torch.abs(self.residual, out=room.like(0, self.residual))
        places, candidates = _candidates(magnitude, kept)
        least = torch.topk(candidates, kept).values[-1]
        above = candidates > least
        equal = (candidates == least).nonzero().flatten()[:kept - int(above.sum())]
        indices = places[torch.cat([above.nonzero().flatten(), equal]).sort().values]
        values = self.residual[indices]
        self.residual[indices] = 0
        self.velocity[indices] = 0
        return indices, values

    @torch.no_grad()
    def exchange(self, buffer, lane, step, weight, group):
        """The mean of what all ranks send, into the buffer."""
        self.accumulate(buffer, weight, group, lane.room)
        kept = self.kept(step)
        indices, values = self.taken(kept, lane.room)
        # An index and a value are 8 bytes on the wire, as one tensor.
        sent = torch.cat([indices.to(torch.int32), values.view(torch.int32)])
        buffer.zero_()
        for given in lane.gather(sent):
            buffer.index_add_(0, given[:kept].long(), given[kept:].view(torch.float32))
        buffer.div_(lane.ranks)


def _candidates(magnitude, kept):
    """(places, magnitudes), in the order of places, of at least so many of the largest and all that
    equal the least of them. A sample tells from where on to look, for finding the largest among all
    takes many times longer; where it was not representative, all are given."""
    elements = magnitude.numel()
    share = 1.25 * kept / elements
    sample = magnitude[::_SAMPLED]
    drawn = int(share * sample.numel()) + 8
    if elements > _FEW and share < 0.5:
        places = (magnitude >= torch.topk(sample, drawn).values[-1]).nonzero().flatten()
        if places.numel() >= kept:
            return places, magnitude[places]
    return torch.arange(elements, device=magnitude.device), magnitude


class _Room:
    """Memory for what a lane computes on the way, in which one exchange follows another."""

    def __init__(self):
        self.tensors = {}

    def like(self, place, tensor):
        """So many elements of that type, with what the last one left in them."""
        which = place, tensor.dtype
        known = self.tensors.get(which)
        if known is None or known.numel() < tensor.numel():
            known = self.tensors[which] = torch.empty_like(tensor)
        return known[:tensor.numel()]


# ---- PowerSGD ----

class _PowerSgd:
    """A buffer as torch's own powerSGD_hook wants it (a GradBucket), and its exchange by it. What
    it keeps from step to step, errors and factors, is by a lane's state and a buffer's number."""

    def __init__(self, hook, state, number, last, bucket):
        self.hook, self.state = hook, state
        self.index = lambda: number
        self.is_last = lambda: last  # of its lane in a step: the state counts steps by it
        self.buffer = lambda: bucket.buffer
        self.gradients = lambda: list(bucket.views.values())

    @torch.no_grad()
    def exchange(self):
        self.hook(self.state, self).wait()


# ---- LocalSGD ----

class _Averager:
    """Each rank trains alone; every few steps the parameters are replaced by their mean."""

    def __init__(self, model, trained, optimizer, strategy, lanes):
        self.on = True
        self.lanes = lanes
        self.optimizer = optimizer
        self.local = strategy["local_sgd"]
        self.adaptive = self.local.get("adaptive", 0) == 1
        self.begin = self.local["begin_step"]
        self.period = self._period(1.0) if self.adaptive else self.local["period"]
        self.step = 0
        self.averaged = 0
        self.told_loss = None
        tensors = dict(trained)
        if strategy.get("buffers"):
            tensors.update((name, b) for name, b in model.named_buffers()
                           if b.is_floating_point() and b.numel() > 0)
        names = _matched_by_name(strategy["gradients"] + strategy.get("buffers", []), tensors,
                                 "parameter or buffer")
        shards = lanes[0].size if lanes[0].form == "sharded" else 1
        self.codecs = [bucket.get("codec") for bucket in strategy["buckets"]]
        self.flats = [_Flat({names[place]: tensors[names[place]] for place in bucket["places"]},
                            shards) for bucket in strategy["buckets"]]

    def before_forward(self):
        pass

    def before_step(self):
        pass

    def after_step(self):
        """Steps count from 1; up to begin_step each is averaged."""
        self.step += 1
        due = self.step <= self.begin or self.step - self.averaged >= self.period
        if due:
            self.average()
        if self.adaptive and (due or self.step == 1):
            self._follow_loss(due)
        self.told_loss = None

    def _follow_loss(self, due):
        """The next period by how far loss and learning rate are from those of the first step."""
        if self.told_loss is None:
            _fail("the period of averaging follows the loss: call model.loss(value) in each step, "
                  "before optimizer.step()")
        rate = self.optimizer.param_groups[0]["lr"]
        mean = torch.tensor(float(self.told_loss), device=self.lanes[0].device)
        dist.all_reduce(mean, group=self.lanes[0].world)
        loss = float(mean) / self.lanes[0].ranks
        if self.step == 1:
            self.first = rate, loss
        if due and math.isfinite(loss):
            first_rate, first_loss = self.first
            left = rate * first_loss
            self.period = self._period(first_rate * loss / left if left > 0 else math.inf)

    def _period(self, share):
        """As Paddle's adaptive_localsgd has it: init_period stands inside the root."""
        root = math.sqrt(max(0.0, share) * self.local["init_period"])
        return max(1, math.ceil(min(root, self.local["max_period"])))

    @torch.no_grad()
    def average(self):
        self.averaged = self.step
        for i, (flat, codec) in enumerate(zip(self.flats, self.codecs)):
            lane = self.lanes[i % len(self.lanes)]
            flat.fill()
            lane.run(f"bucket {i}", functools.partial(lane.mean, flat.buffer, codec))
        for lane in self.lanes:
            lane.wait()
        for flat in self.flats:
            for name, tensor in flat.tensors.items():
                tensor.detach().copy_(flat.views[name])


# ---- DiLoCo ----

def _made_far_apart(model, trained, optimizer, strategy, device, timeout, find_unused):
    """Groups of neighbours exchange their gradients, and the groups average far apart."""
    ranks, size = dist.get_world_size(), strategy["local_sgd"].get("group", 1)
    if ranks % size != 0 or size == ranks:
        _fail(f"groups of {size} ranks are not two or more in {ranks}")
    one = {"streams": 1}
    blocks = [list(range(first, first + size)) for first in range(0, ranks, size)]
    peers = [list(range(place, ranks, size)) for place in range(size)]
    across = _lanes(device, one, timeout, peers)[0]
    inside = reducer = None
    if size > 1:
        inside = _lanes(device, one, timeout, blocks)[0]
        reducer = _Reducer(trained, optimizer, strategy,
                           _lanes(device, strategy, timeout, blocks), find_unused)
    return _FarApart(trained, strategy, across, inside, size, reducer)


class _Fragment:
    """A part of the parameters: where it began, how far it has come, and its momentum."""

    def __init__(self, number, buckets, names, trained, shards):
        self.number = number
        self.under_way = False
        self.codecs = [bucket.get("codec") for bucket in buckets]
        self.flats = [_Flat({names[place]: trained[names[place]] for place in bucket["places"]},
                            shards * (_BLOCK if codec in _BLOCKS else 1))
                      for bucket, codec in zip(buckets, self.codecs)]
        for flat in self.flats:
            flat.fill()
        self.starts = [flat.buffer.clone() for flat in self.flats]
        self.momenta = [torch.zeros_like(start) for start in self.starts]

    def sum(self, across, inside, size):
        """Each rank of a group carries its part across; then the parts come together."""
        for flat, codec in zip(self.flats, self.codecs):
            if size == 1:
                across.mean(flat.buffer, codec)
                continue
            parts = list(flat.buffer.view(size, -1).unbind())
            mine = parts[dist.get_rank() % size]
            across.mean(mine, codec)
            dist.all_gather(parts, mine.clone(), group=inside.world)


class _FarApart:
    """DiLoCo: each fragment's outer gradient is sent some steps before it is applied."""

    def __init__(self, trained, strategy, across, inside, size, reducer):
        self.local = strategy["local_sgd"]
        self.outer = self.local["outer"]
        self.across, self.inside, self.size, self.reducer = across, inside, size, reducer
        self.step = 0
        periods = self.local.get("periods", [self.local["period"]])
        self.period = periods[dist.get_rank() * len(periods) // dist.get_world_size()]
        names = _matched_by_name(strategy["gradients"], trained, "parameter")
        buckets = strategy["averaged"]
        count = 1 + max(bucket.get("fragment", 0) for bucket in buckets)
        self.fragments = [
            _Fragment(f, [b for b in buckets if b.get("fragment", 0) == f], names, trained, size)
            for f in range(count)]

    @property
    def on(self):
        return self.reducer is None or self.reducer.on

    @on.setter
    def on(self, value):
        if self.reducer is not None:
            self.reducer.on = value

    def before_forward(self):
        if self.reducer is not None:
            self.reducer.before_forward()

    def before_step(self):
        if self.reducer is not None:
            self.reducer.before_step()

    def after_step(self):
        """Steps count from 1; up to begin_step all fragments take an outer step in each."""
        self.step += 1
        if self.step <= self.local["begin_step"]:
            self.average()
            return
        period, count = self.period, len(self.fragments)
        place = (self.step - self.local["begin_step"] - 1) % period + 1
        for fragment in self.fragments:
            applied = max(1, (fragment.number + 1) * period // count)
            sent = max(1, applied - self.local.get("delay", 0))
            if place == sent:
                self._send(fragment)
            if place == applied and fragment.under_way:
                self._apply(fragment)

    @torch.no_grad()
    def _send(self, fragment):
        for flat, start in zip(fragment.flats, fragment.starts):
            flat.fill()
            torch.sub(start, flat.buffer, out=flat.buffer)
        fragment.under_way = True
        self.across.run(f"fragment {fragment.number}",
                        lambda: fragment.sum(self.across, self.inside, self.size))

    @torch.no_grad()
    def _apply(self, fragment):
        self.across.wait()
        fragment.under_way = False
        nesterov = self.outer["optimizer"] == "nesterov"
        for flat, start, momentum in zip(fragment.flats, fragment.starts, fragment.momenta):
            step = flat.buffer
            if nesterov:
                momentum.mul_(self.outer["momentum"]).add_(step)
                step.add_(momentum, alpha=self.outer["momentum"])
            start.add_(step, alpha=-self.outer["rate"])
            flat.buffer.copy_(start)
            for name, tensor in flat.tensors.items():
                mix = self.outer.get("mix", 0.0)
                new = flat.views[name]
                tensor.detach().copy_(new if mix == 0 else torch.lerp(new, tensor.detach(), mix))

    def average(self):
        """What is under way is applied, then all fragments take an outer step."""
        for fragment in self.fragments:
            if fragment.under_way:
                self._apply(fragment)
        for fragment in self.fragments:
            self._send(fragment)
            self._apply(fragment)

    def state(self):
        self.across.wait()
        return {"step": self.step,
                "fragments": [{"under_way": fragment.under_way,
                               "sums": [flat.buffer.clone() for flat in fragment.flats],
                               "starts": [start.clone() for start in fragment.starts],
                               "momenta": [momentum.clone() for momentum in fragment.momenta]}
                              for fragment in self.fragments]}

    @torch.no_grad()
    def load(self, state):
        self.across.wait()
        if len(state["fragments"]) != len(self.fragments):
            _fail(f"the checkpoint has {len(state['fragments'])} fragments, the strategy "
                  f"{len(self.fragments)}")
        self.step = state["step"]
        for fragment, kept in zip(self.fragments, state["fragments"]):
            fragment.under_way = kept["under_way"]
            own = [flat.buffer for flat in fragment.flats] + fragment.starts + fragment.momenta
            for tensor, value in zip(own, kept["sums"] + kept["starts"] + kept["momenta"]):
                tensor.copy_(value)
