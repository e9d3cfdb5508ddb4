"""FSDP 1 and 2 on random models: every collective of a step, in order, and what a rank holds."""

import fnmatch

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy,
                                    ShardingStrategy, fully_shard)

try:
    from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState
except ImportError:
    from torch.distributed._composable.fsdp._fsdp_state import FSDPState

import common


class Part(nn.Module):
    """Parameters, then parts, each used once and in this order."""

    def __init__(self, shapes, parts=()):
        super().__init__()
        self.own = []
        for name, shape in shapes:
            self.own.append(name)
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))
        self.order = [name for name, _ in parts]
        for name, part in parts:
            self.add_module(name, part)

    def forward(self, x):
        for name in self.own:
            x = x + getattr(self, name).sum()
        for name in self.order:
            x = getattr(self, name)(x)
        return x


class WithLoss(Part):
    """A model that computes its loss, as transformers' do with labels. Its output is then no part's
    output, so that the root's hook is the first of the backward pass."""

    def forward(self, x):
        return super().forward(x).sum()


def shapes(rng, count):
    return [(f"w{i}", [rng.randrange(1, 40) for _ in range(rng.randrange(1, 4))])
            for i in range(count)]


class Layers(nn.ModuleList):
    def forward(self, x):
        for layer in self:
            x = layer(x)
        return x


def model_of(rng):
    inner = rng.random() < 0.4
    layers = []
    for _ in range(rng.randrange(1, 6)):
        parts = [("mlp", Part(shapes(rng, rng.randrange(1, 3))))] if inner else []
        layers.append(Part(shapes(rng, rng.randrange(1, 5)), parts))
    parts = [("embed", Part(shapes(rng, 1))), ("layers", Layers(layers)),
             ("norm", Part(shapes(rng, 1))), ("head", Part(shapes(rng, 1)))]
    return WithLoss([], parts), inner


def modules_of(model, pattern):
    depth = pattern.count(".")
    return [(name, module) for name, module in model.named_modules()
            if name.count(".") == depth and fnmatch.fnmatch(name, pattern)]


def units_of(rng, inner):
    units = ["layers.*"] if rng.random() < 0.9 else []
    if inner and rng.random() < 0.6:
        units.append("layers.*.mlp")
    units += [name for name in ("embed", "head", "norm") if rng.random() < 0.35]
    return units


def second(rng, ranks, frozen):
    model, inner = model_of(rng)
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    units = units_of(rng, inner)
    config = {"version": 2, "units": units}
    if not {"head", "norm"} & set(units) and rng.random() < 0.3:
        units.append(["norm", "head"])
    shards = ranks
    if rng.random() < 0.4:
        shards = rng.choice([s for s in (2, 4) if s < ranks and ranks % s == 0] or [ranks])
        if shards < ranks:
            config["mesh"] = [ranks // shards, shards]
    mesh = init_device_mesh("cpu", tuple(config.get("mesh", [ranks])),
                            mesh_dim_names=("replicate", "shard") if "mesh" in config else None)
    choice = rng.random()
    if choice < 0.25:
        config["reshard_after_forward"] = False
    elif choice < 0.5 and shards in (4, 8, 16):
        config["reshard_after_forward"] = 2
    elif choice > 0.75:
        config["reshard_after_forward"] = True
    kept = []
    if rng.random() < 0.3:
        kept = [u for u in units if isinstance(u, str) and "*" not in u][:1]
        if kept:
            config["not_resharded"] = kept
    policy = {}
    if rng.random() < 0.4:
        policy = config["mp_policy"] = {"param_dtype": "bfloat16", "reduce_dtype": "float32"}
    words = {"mesh": mesh, "mp_policy": MixedPrecisionPolicy(
        **{k: getattr(torch, v) for k, v in policy.items()})}
    if "reshard_after_forward" in config:
        words["reshard_after_forward"] = config["reshard_after_forward"]
    # Inner modules before those that hold them, as torch asks for.
    for unit in sorted(units, key=lambda u: -u.count(".") if isinstance(u, str) else 0):
        own = dict(words, reshard_after_forward=False) if unit in kept else words
        if isinstance(unit, list):
            fully_shard([model.get_submodule(name) for name in unit], **own)
            continue
        for _, module in modules_of(model, unit):
            fully_shard(module, **own)
    fully_shard(model, **words)
    return model, config


def first(rng, ranks, frozen):
    model, inner = model_of(rng)
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    units = units_of(rng, inner)
    config = {"version": 1, "units": units}
    word = rng.choice(["FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2",
                       "FULL_SHARD", "NO_SHARD"])
    words = {"device_id": torch.device("cpu"), "sharding_strategy": ShardingStrategy[word],
             "use_orig_params": rng.random() < 0.5 or bool(frozen)}
    if "HYBRID" in word:
        if ranks < 4:
            word = "FULL_SHARD"
            words["sharding_strategy"] = ShardingStrategy[word]
        else:
            shards = rng.choice([s for s in (2, 4) if s < ranks])
            config["device_mesh"] = [ranks // shards, shards]
            words["device_mesh"] = init_device_mesh(
                "cpu", (ranks // shards, shards), mesh_dim_names=("replicate", "shard"))
    config["sharding_strategy"] = word
    if rng.random() < 0.4:
        config["mixed_precision"] = {"param_dtype": "bfloat16", "reduce_dtype": "float32"}
        words["mixed_precision"] = MixedPrecision(param_dtype=torch.bfloat16,
                                                  reduce_dtype=torch.float32)
    config["use_orig_params"] = words["use_orig_params"]
    for unit in sorted(units, key=lambda u: -u.count(".")):
        for name, module in modules_of(model, unit):
            parent = model.get_submodule(name.rpartition(".")[0])
            wrapped = FullyShardedDataParallel(module, **words)
            if isinstance(parent, nn.ModuleList):
                parent[int(name.rpartition(".")[2])] = wrapped
            else:
                setattr(parent, name.rpartition(".")[2], wrapped)
    return FullyShardedDataParallel(model, **words), config


def mark_the_end(recorder):
    """What FSDP2 does in the root's callback, once the whole backward pass is over: sums of modules
    whose inputs have no gradient, in the order of the modules."""
    if not hasattr(FSDPState, "plain_end"):
        FSDPState.plain_end = FSDPState._root_post_backward_final_callback

    def end(state):
        when, recorder.when = recorder.when, recorder.when.replace("b", "e")
        FSDPState.plain_end(state)
        recorder.when = when

    FSDPState._root_post_backward_final_callback = end


def held(model):
    return sum(p.to_local().numel() if hasattr(p, "to_local") else p.numel()
               for p in model.parameters())


def case_of(seed, version):
    rng = common.draw(seed)
    ranks = rng.choice([2, 3, 4, 8, 16])
    if torch.distributed.is_initialized():  # the case before was refused
        common.leave()
    common.join(ranks)
    wrap = {1: first, 2: second}[version]
    # The names and shapes of the model before it is wrapped.
    state = rng.getstate()
    plain, _ = model_of(rng)
    tensors = [common.tensor_of(n, p) for n, p in plain.named_parameters()]
    rng.setstate(state)
    frozen = common.freeze(common.draw(-seed), [n for n, _ in plain.named_parameters()]) if seed >= 100 else []
    model, config = wrap(rng, ranks, frozen)
    passes = rng.choice([1, 1, 1, 2])
    if passes > 1 and "mesh" in config and rng.random() < 0.5:
        config["set_requires_all_reduce"] = False
    recorder = common.Recorder()
    mark_the_end(recorder)
    for step in range(2):
        recorder.seen.clear()
        with recorder:
            for p in range(passes):
                if config.get("set_requires_all_reduce") is False:
                    model.set_requires_all_reduce(p + 1 == passes)
                recorder.when = f"f{p}"
                loss = model(torch.zeros(2))
                recorder.when = f"b{p}"
                loss.backward()
        model.zero_grad()
    common.leave()
    return {"seed": seed, "ranks": ranks, "config": config, "micro_batches": passes,
            "tensors": tensors[::-1], **({"frozen": frozen} if frozen else {}),
            "collectives": recorder.seen, "held": held(model)}


def main():
    common.quiet()
    common.give_streams_to_the_processor()
    torch.cuda.current_stream = lambda *_: torch.cpu.current_stream()  # named so for all devices
    for version in (1, 2):
        # FSDP1 cannot run some frozen models twice ("Cannot writeback when the parameter shape changes").
        cases = [common.answer(lambda seed: case_of(seed, version), seed) for seed in range(160)]
        cases = [case for case in cases if "refused" not in case]
        common.write(common.out().replace("fsdp", f"fsdp{version}"), {
            "framework": "torch", "version": torch.__version__, "rule": f"fsdp{version}",
            "about": "collectives: when (f, b: passes, e: behind the backward pass, with the number of "
                     "the micro-batch), kind, elements, bytes an element, ranks; "
                     "held: elements of a rank's own shards"}, cases)


main()
