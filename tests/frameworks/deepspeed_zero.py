"""DeepSpeed's ZeRO 0 to 3 on random models: every collective of a step, in order. Of ZeRO 3 also on
models whose modules lie in others."""

import importlib
import os

os.environ.update(DS_ACCELERATOR="cpu", RANK="0", LOCAL_RANK="0", MASTER_ADDR="localhost",
                  MASTER_PORT="29511")

import torch
from torch import nn

import common


class Part(nn.Module):
    """Parameters, each used once and in this order."""

    def __init__(self, shapes):
        super().__init__()
        for i, shape in enumerate(shapes):
            self.register_parameter(f"w{i}", nn.Parameter(torch.zeros(shape)))

    def forward(self, x):
        for parameter in self.parameters():
            x = x + parameter.sum()
        return x


class Model(nn.Module):
    def __init__(self, rng):
        super().__init__()
        largest = rng.choice([200, 2000, 20000])
        self.layers = nn.ModuleList()
        for _ in range(rng.randrange(1, 9)):
            self.layers.append(Part([[rng.randrange(1, largest)]
                                     for _ in range(rng.randrange(1, 5))]))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.sum()


class Block(nn.Module):
    """Modules inside one that may have parameters too."""

    def __init__(self, rng, largest, depth):
        super().__init__()
        for i in range(rng.choice([0, 0, 1, 2])):
            self.register_parameter(f"w{i}", nn.Parameter(torch.zeros(rng.randrange(1, largest))))
        self.first = part_of(rng, largest, depth)
        if rng.random() < 0.5:
            self.second = part_of(rng, largest, depth)

    def forward(self, x):
        for parameter in self.parameters(recurse=False):
            x = x + parameter.sum()
        for child in self.children():
            x = child(x)
        return x


def part_of(rng, largest, depth):
    if depth > 0 and rng.random() < 0.5:
        return Block(rng, largest, depth - 1)
    return Part([[rng.randrange(1, largest)] for _ in range(rng.randrange(1, 4))])


class Nested(nn.Module):
    def __init__(self, rng):
        super().__init__()
        largest = rng.choice([200, 2000, 20000])
        self.embed = Part([[rng.randrange(1, largest)]])
        self.layers = nn.ModuleList()
        for _ in range(rng.randrange(1, 6)):
            self.layers.append(Block(rng, largest, 1))
        self.norm = Part([[rng.randrange(1, largest)]])

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x).sum()


def config_of(rng, stage, ranks, passes, largest):
    zero = {"stage": stage}
    if stage > 0:
        zero["reduce_bucket_size"] = rng.choice([largest // 3 + 1, 2 * largest, 6 * largest, 10**6])
        if rng.random() < 0.6:
            zero["overlap_comm"] = rng.random() < 0.6
        if rng.random() < 0.3:
            zero["contiguous_gradients"] = False
    if stage in (1, 2):
        if rng.random() < 0.2:
            zero["reduce_scatter"] = False
    if stage == 3:
        zero["stage3_param_persistence_threshold"] = rng.choice([0, largest // 4, largest])
        zero["stage3_prefetch_bucket_size"] = rng.choice([largest // 2, largest, 4 * largest])
        zero["stage3_max_reuse_distance"] = rng.choice([0, 0, 2 * largest, 10**9])
        if ranks > 3 and rng.random() < 0.3:
            zero["zero_hpz_partition_size"] = 2
    return {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": passes,
            "zero_optimization": zero}


def case_of(seed, stage, make=Model):
    import deepspeed

    rng = common.draw(seed)
    ranks = rng.choice([2, 3, 4, 8])
    os.environ["WORLD_SIZE"] = str(ranks)
    common.join(ranks)
    deepspeed.comm.comm.cdb = None
    deepspeed.init_distributed("fake", verbose=False)
    from deepspeed.utils import groups
    groups._WORLD_GROUP = None
    groups._ZERO_PARAM_INTRA_PARALLEL_GROUP = None
    model = make(rng)
    tensors = [common.tensor_of(n, p) for n, p in model.named_parameters()]
    largest = max(p.numel() for p in model.parameters())
    passes = rng.choice([1, 1, 2, 3])
    config = config_of(rng, stage, ranks, passes, largest)
    names = [name for name, _ in model.named_parameters()]
    frozen = common.freeze(common.draw(-seed), names) if seed >= 60 and stage > 0 and names[1:] else []
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.SGD(trained, lr=0.1), config=dict(
            config, zero_allow_untested_optimizer=True, zero_force_ds_cpu_optimizer=False))
    recorder = common.Recorder()
    for _ in range(3):
        recorder.seen.clear()
        with recorder:
            for p in range(passes):
                recorder.when = f"f{p}"
                loss = engine(torch.zeros(2))
                recorder.when = f"b{p}"
                engine.backward(loss)
                recorder.when = "u"
                engine.step()
    engine.destroy()
    common.leave()
    return {"seed": seed, "ranks": ranks, "config": config, "micro_batches": passes,
            "tensors": tensors[::-1], **({"frozen": frozen} if frozen else {}),
            "registered": list(range(len(tensors)))[::-1],
            # Without one number each: whether gradients overflowed, and their norm.
            "collectives": [one for one in recorder.seen if one[2] > 1]}


def main():
    common.quiet()
    common.give_streams_to_the_processor()
    import deepspeed
    # The name deepspeed.comm.torch is torch itself.
    backend = importlib.import_module("deepspeed.comm.torch")
    backend.build_shm_op = lambda: None  # collectives in shared memory, which would be compiled

    for stage, make in ((0, Model), (1, Model), (2, Model), (3, Model), (3, Nested)):
        cases = [case_of(seed, stage, make) for seed in range(int(os.environ.get("CASES", 60 if stage == 0 else 90)))]
        rule = f"zero{stage}" + ("_nested" if make is Nested else "")
        common.write(common.out().replace("zero", rule), {
            "framework": "deepspeed", "version": deepspeed.__version__, "torch": torch.__version__,
            "rule": rule,
            "about": "collectives: when (f, b: passes, u: step, with the number of the "
                     "micro-batch), kind, elements, bytes an element, ranks"}, cases)


main()
