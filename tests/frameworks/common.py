"""What the scripts that ask a framework have in common: who is asked, what it sends, how facts are
written down."""

import json
import random
import sys

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

KINDS = {
    "_allgather_base_": "all_gather",
    "allgather_": "all_gather",
    "allgather_into_tensor_coalesced_": "all_gather",
    "_reduce_scatter_base_": "reduce_scatter",
    "reduce_scatter_": "reduce_scatter",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter",
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce",
    "broadcast_": "broadcast",
    "reduce_": "reduce",
}


def join(ranks):
    """Makes this process rank 0 of a group in which nobody answers and nobody waits. torch 1 has
    none: there it is alone, and sends no parameters, as Gloo knows no bf16."""
    try:
        from torch.testing._internal.distributed.fake_pg import FakeStore
    except ImportError:
        dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
        dist.utils._sync_params_and_buffers = lambda *_, **__: None
        return
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())


def leave():
    dist.destroy_process_group()


def give_streams_to_the_processor():
    """torch.cpu's streams lack what FSDP asks of a GPU's: here nothing runs beside anything else."""

    class Event:
        def __init__(self, *_, **__):
            pass

        record = wait = synchronize = lambda self, *_: None

        def query(self):
            return True

    torch.cpu.Event = Event
    torch.cpu.Stream.record_event = lambda self, event=None: event or Event()
    for name in ("wait_event", "wait_stream", "synchronize"):
        setattr(torch.cpu.Stream, name, lambda self, *_: None)


class Recorder(TorchDispatchMode):
    """Collectives in the order in which they are asked for: when, kind, elements of the whole
    payload (what a gather ends with, what a reduction begins with), bytes an element, ranks."""

    def __init__(self):
        super().__init__()
        self.when = ""
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "c10d":
            self.note(func.name().split("::")[1].split(".")[0], args)
        return func(*args, **(kwargs or {}))

    def note(self, name, args):
        kind = KINDS.get(name)
        if kind is None:
            self.seen.append([self.when, name, 0, 0, 0])
            return
        ranks = next(g for g in map(group_of, args) if g is not None).size()
        tensors = [flat(a) for a in args if isinstance(a, (torch.Tensor, list))]
        whole = max(tensors, key=lambda t: sum(x.numel() for x in t))
        elements = sum(x.numel() for x in whole)
        self.seen.append([self.when, kind, elements, whole[0].element_size(), ranks])


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [x for each in value for x in flat(each)]


def group_of(value):
    try:
        return dist.ProcessGroup.unbox(value)
    except Exception:  # another argument
        return None


def watch_buckets(ddp, names, arrived):
    """The list that DistributedDataParallel's buckets of a pass are added to: names of gradients, how
    many had arrived, elements. Nothing is summed."""
    buckets = []

    def hook(_, bucket):
        buckets.append([[names[id(p)] for p in bucket.parameters()], len(arrived),
                        bucket.buffer().numel()])
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    ddp.register_comm_hook(None, hook)
    return buckets


def answer(ask, given):
    """What a framework says; a refusal is an answer."""
    try:
        return ask(given)
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"[:200]}


DTYPES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.float64: "fp64"}


def tensor_of(name, parameter):
    """[name, shape], and the format where it is another than fp32."""
    entry = [name, list(parameter.shape)]
    if parameter.dtype != torch.float32:
        entry.append(DTYPES[parameter.dtype])
    return entry


def write(path, head, cases):
    """A case a line, so that what differs is seen in a diff."""
    lines = [json.dumps(case, separators=(",", ":")) for case in cases]
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n")


def quiet():
    torch.set_num_threads(1)
    import logging
    import warnings

    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)


def draw(seed):
    torch.manual_seed(seed)
    return random.Random(seed)


def freeze(rng, names):
    """Names of parameters that are frozen: single ones, as next to adapters, whole layers, or all
    ahead of a layer. One parameter at least is trained."""
    layer = {name: ".".join(name.split(".")[:2]) for name in names}
    layers = list(dict.fromkeys(layer.values()))
    way = rng.choice(["single", "single", "layers", "ahead"])
    share = rng.choice([0.3, 0.7, 0.9])
    if way == "ahead":
        off = set(layers[:rng.randrange(1, max(2, len(layers)))])
    else:
        off = {each for each in layers if way == "layers" and rng.random() < share}
    frozen = [name for name in names
              if layer[name] in off or way == "single" and rng.random() < share]
    if len(frozen) == len(names):
        frozen.remove(rng.choice(names))
    return frozen


def out():
    return sys.argv[1]
