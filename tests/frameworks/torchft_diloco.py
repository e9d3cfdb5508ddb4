"""What torchft's LocalSGD and DiLoCo ask its manager for, on random models: all-reduces by step, and
the steps in which their means are applied."""

import torch
from torch import nn
from torchft.local_sgd import DiLoCo, LocalSGD

import common


class Work:
    """An exchange that is over at once."""

    def wait(self, timeout=None):
        return True

    def get_future(self):
        future = torch.futures.Future()
        future.set_result([])
        return future


class Manager:
    """Stands for torchft's manager of replica groups: it writes down what it is asked for."""

    _use_async_quorum = False

    def __init__(self):
        self.step = 0  # inner steps that are over, with the present one
        self.synced = 0
        self.sent = []
        self.applied = []

    def allreduce(self, tensor, should_quantize=False):
        self.sent.append([self.step, tensor.numel()])
        return Work()

    def current_step(self):
        return self.synced

    def should_commit(self):
        self.applied.append(self.step)
        self.synced += 1
        return True

    def num_participants(self):
        return 2

    def nothing(self, *_, **__):
        pass

    register_state_dict_fn = set_state_dict_fns = start_quorum = nothing
    allow_state_dict_read = disallow_state_dict_read = nothing


def fragment_of(rng, layers):
    """Layers of one size: all fragments of a model have as many bytes."""
    return nn.Sequential(*(nn.Linear(width, out, bias) for width, out, bias in layers))


def case_of(seed):
    rng = common.draw(seed)
    fragments = rng.choice([1, 1, 2, 3, 4])
    layers = [(rng.randint(1, 40), rng.randint(1, 40), rng.random() < 0.5)
              for _ in range(rng.randint(1, 4))]
    every = fragments * rng.randint(1, 6)
    config = {"sync_every": every}
    local = fragments == 1 and rng.random() < 0.3
    if local:
        config["semi_sync_method"] = "local_sgd"
    else:
        if fragments > 1:
            config["num_fragments"] = fragments
        delay = rng.randrange(every // fragments)
        if delay > 0 and rng.random() < 0.6:
            config["fragment_sync_delay"] = delay
        if rng.random() < 0.4:
            config["use_bucketization"] = True
            config["bucket_cap_mb"] = rng.choice([0.0005, 0.001, 0.004, 1])
    model = nn.ModuleList(fragment_of(rng, layers) for _ in range(fragments))
    return model, config


def trained(model, config):
    manager = Manager()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    if config.get("semi_sync_method") == "local_sgd":
        around = LocalSGD(manager, model, inner, config["sync_every"])
    else:
        outer = [torch.optim.SGD(part.parameters(), lr=0.7, momentum=0.9, nesterov=True)
                 for part in model]
        around = DiLoCo(manager, list(model), inner, outer, config["sync_every"],
                        use_bucketization=config.get("use_bucketization", False),
                        bucket_cap_mb=config.get("bucket_cap_mb"),
                        fragment_sync_delay=config.get("fragment_sync_delay", 0))
    with around:
        for step in range(config["sync_every"]):
            manager.step = step + 1
            for parameter in model.parameters():
                parameter.grad = torch.ones_like(parameter)
            inner.step()
    return manager


def main():
    common.quiet()
    cases = []
    for seed in range(100):
        model, config = case_of(seed)
        manager = trained(model, config)
        tensors = [common.tensor_of(name, p) for name, p in model.named_parameters()]
        cases.append({"seed": seed, "config": config, "tensors": tensors[::-1],
                      "sent": manager.sent, "applied": manager.applied})
    import importlib.metadata

    head = {"framework": "torchft", "version": importlib.metadata.version("torchft"),
            "torch": torch.__version__.split("+")[0], "ranks": 2}
    common.write(common.out(), head, cases)


main()
