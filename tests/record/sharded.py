"""Jobs of FSDP that record themselves, and take what was then advised.

    sharded.py KIND RANK RANKS FOLDER    KIND: fsdp1, fsdp2, hsdp, set

Ranks meet through a file in FOLDER, which holds the recordings afterwards. `set` applies the lines
in FOLDER/code.txt. Exit code 0: every check held.
"""

import contextlib
import io
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

import syncline_record as recorder

recorder._SWEEP = recorder._Job.sweep = 0.02
_GROUP = torch._C._distributed_c10d.ProcessGroup


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(32, 64)
        self.down = nn.Linear(64, 32)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 32)
        self.layers = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def net():
    torch.manual_seed(3)
    return Net()


def wrapped(kind, ranks):
    model = net()
    if kind == "fsdp1":
        words = {"device_id": torch.device("cpu"), "use_orig_params": True}
        for i, layer in enumerate(model.layers):
            model.layers[i] = FullyShardedDataParallel(layer, **words)
        return FullyShardedDataParallel(model, **words)
    shape, names = (ranks,), ("shard",)
    if kind == "hsdp":
        shape, names = (ranks // 2, 2), ("replicate", "shard")
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def passes(model, optimizer, count=1):
    """What trains once, in so many passes."""
    def step():
        optimizer.zero_grad()
        for at in range(count):
            if count > 1:
                model.set_requires_gradient_sync(at + 1 == count)
            model(torch.randn(4, 8)).pow(2).mean().backward()
        optimizer.step()
    return step


def states(model, optimizer):
    own = [*model.parameters(), *(value for state in optimizer.state.values()
                                  for value in state.values() if torch.is_tensor(value))]
    return [recorder._own(t).detach().clone() for t in own] + [torch.get_rng_state()]


def recorded(model, step, folder, name):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        scenario = recorder.record(model, step, steps=4, out=f"{folder}/{name}.json")
    assert dist.get_rank() or "--emit fsdp" in said.getvalue(), said.getvalue()
    return scenario


def check_units(scenario, kind, ranks):
    strategy = scenario["strategies"][0]
    assert strategy["dialect"] == "fsdp" and strategy["config"]["units"] == ["layers.*"], strategy
    assert strategy["config"].get("mesh") == ([-1, 2] if kind == "hsdp" else None)
    tensors = {tensor["name"]: tensor for tensor in scenario["workload"]["tensors"]}
    known = dict(net().named_parameters())
    assert {name: t["shape"] for name, t in tensors.items()} == \
        {name: list(p.shape) for name, p in known.items()}
    assert [tensors[name]["registered"] for name in known] == list(range(len(known)))
    # In the order of the backward pass. FSDP 1 has all of the root's at its end: they are views of
    # one parameter, made before all others.
    place = {name: at for at, name in enumerate(tensors)}
    order = ["head.weight", "layers.2.up.weight", "layers.0.down.weight", "embed.weight"]
    order = order[1:] if kind == "fsdp1" else order
    assert sorted(order, key=place.get) == order, list(tensors)
    assert all(tensor["forward_us"] >= 0 for tensor in tensors.values())
    tables = {(t["collective"], t["gpus_per_node"])
              for t in scenario["cluster"]["calibration"]["tables"]}
    wanted = {(kind, ranks) for kind in ("all_reduce", "all_gather", "reduce_scatter")}
    assert wanted <= tables, tables


def records(kind, folder):
    ranks = dist.get_world_size()
    model = wrapped(kind, ranks)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    step = passes(model, optimizer)
    step()
    before, calls = states(model, optimizer), dict(vars(_GROUP))
    scenario = recorded(model, step, folder, kind)
    # Nothing is left of it: neither values nor hooks.
    after = states(model, optimizer)
    assert all(torch.equal(a, b) for a, b in zip(before, after)) and len(before) == len(after)
    assert dict(vars(_GROUP)) == calls
    hooks = sum(len(module._forward_pre_hooks) for module in model.modules())
    assert hooks == sum(len(m._forward_pre_hooks) for m in wrapped(kind, ranks).modules()), hooks
    if scenario:
        check_units(scenario, kind, ranks)
    if kind == "fsdp2":
        scenario = recorded(model, passes(model, optimizer, 3), folder, "accumulated")
        if scenario:
            assert scenario["workload"]["micro_batches"] == 3
            assert scenario["strategies"][0]["config"]["no_sync"] is True
        model.set_requires_gradient_sync(True)
        for layer in model.layers:
            layer.compile(backend="eager")
        recorded(model, step, folder, "compiled")
        what_is_refused(mesh=init_device_mesh("cpu", (1, ranks), mesh_dim_names=("a", "b")))


def what_is_refused(mesh):
    """One sentence, with what can be done, and the model trains as before."""
    model = net()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh["b"])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    try:
        recorder.record(model, passes(model, optimizer))
    except RuntimeError as error:
        assert "fully_shard" in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError("recorded")
    passes(model, optimizer)()


def sets(folder):
    """The lines that `emit --code` writes, on a model that nobody has wrapped."""
    with open(f"{folder}/code.txt", encoding="utf-8") as file:
        code = file.read()
    model = net()
    exec(code, {"fully_shard": fully_shard, "model": model})
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    passes(model, optimizer)()
    assert hasattr(model, "set_requires_gradient_sync")
    assert all(torch.isfinite(p.full_tensor()).all() for p in model.parameters())


def main():
    kind, rank, ranks, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/{kind}.meeting", rank=rank, world_size=ranks)
    if kind == "set":
        sets(folder)
    else:
        records(kind, folder)
    dist.barrier()
    dist.destroy_process_group()


main()
