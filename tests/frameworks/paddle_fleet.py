"""Fleet's static programs on random models and ResNet-50: which gradients travel together.

    fused by the graph's pass, coalesce_grad_tensor_pass, as ParallelExecutor ran it up to Paddle 2.5
    raw    the program as RawProgramOptimizer rewrites it, which is all that Paddle 2.6 and 3 have

Four workers, of whom this is one; the communicators of the startup program are left out, since they
are for devices.
"""
import json
import os
import random
import re
import subprocess
import sys

WORKERS = 4


def model_of(rng, nn):
    """Layers of parameters, some with a branch beside them, or ResNet-50 with so many classes."""
    class Block(nn.Layer):
        def __init__(self, into, out):
            super().__init__()
            self.main = nn.Linear(into, out)
            self.branch = nn.Linear(into, out) if rng.random() < 0.3 else None
            self.norm = nn.LayerNorm(out) if rng.random() < 0.3 else None

        def forward(self, x):
            y = self.main(x)
            if self.branch is not None:
                y = y + self.branch(x)
            return y if self.norm is None else self.norm(y)

    widths = [rng.randrange(2, 900) for _ in range(rng.randrange(2, 14))]
    return nn.Sequential(*(Block(a, b) for a, b in zip(widths, widths[1:]))), [None, widths[0]]


def program_of(rule, seed, strategy, classes=None):
    """The program of a training step under a strategy, and its gradients in order."""
    import paddle
    from paddle.distributed import fleet

    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        fleet.init(fleet.PaddleCloudRoleMaker(is_collective=True))
        model, shape = ((paddle.vision.models.resnet50(num_classes=classes), [None, 3, 224, 224])
                        if classes else model_of(random.Random(seed), paddle.nn))
        loss = paddle.mean(model(paddle.static.data("x", shape)))
        plain = paddle.optimizer.Momentum(0.1)
        own = fleet.DistributedStrategy()
        for key, value in strategy.items():
            setattr(own, key, value)
        fleet.distributed_optimizer(plain, strategy=own).minimize(loss, startup)
    return main, startup


def gradients(main):
    block = main.global_block()
    found = []
    for op in block.ops:
        if "op_role_var" in op.attr_names and op.attr("op_role") & 1:
            names = op.attr("op_role_var")
            found += [(names[i], list(block.var(names[i]).shape)) for i in range(0, len(names), 2)]
    return [[name, shape] for name, shape in dict(reversed(found)).items()][::-1]


def fused(rng, seed, classes):
    """The pass says what it does in its log, from another process."""
    config = {"fuse_grad_size_in_MB": rng.choice([1, 2, 4, 32])}
    if rng.random() < 0.5:
        config["_fuse_grad_size_in_TFLOPS"] = float(rng.choice([0, 1, 2, 5, 50]))
    if classes:
        config = {"fuse_grad_size_in_MB": 32 if classes == 10 else 16}
    said = subprocess.run([sys.executable, __file__, "pass", str(seed), str(classes or 0),
                           json.dumps(config)], capture_output=True, text=True, check=True,
                          env=dict(os.environ, GLOG_vmodule="coalesce_grad_tensor_pass=10"))
    last = said.stderr[said.stderr.rindex("SetGroupAccordingToMemorySize"):]
    groups = [re.findall(r"\((\S+)\(\d+\), ", line) for line in last.splitlines()
              if ", group size:" in line]
    return config, groups, json.loads(said.stdout.splitlines()[-1])


def run_pass(seed, classes, config):
    import paddle
    from paddle.base.framework import _apply_pass

    core = paddle.base.core
    main, startup = program_of("fused", seed, {"fuse_all_reduce_ops": False}, classes)
    tensors = gradients(main)
    # As graph_execution_optimizer.py handed them on.
    core._set_fuse_parameter_memory_size(config["fuse_grad_size_in_MB"])
    core._set_fuse_parameter_group_size(int(config.get("_fuse_grad_size_in_TFLOPS", 50.0)))
    _apply_pass(main, startup, "coalesce_grad_tensor_pass", {"nranks": WORKERS},
                {"nranks": "size_t"})
    print(json.dumps(tensors), flush=True)
    os._exit(0)  # the pass leaves memory that an ordinary end frees twice


def raw(rng, seed, classes):
    config = {"without_graph_optimization": True}
    if rng.random() < 0.6:
        config["fuse_grad_size_in_num"] = rng.choice([1, 2, 3, 8, 16])
    if rng.random() < 0.15:
        config["fuse_all_reduce_ops"] = False
    if classes:
        config = {"without_graph_optimization": True}
    main, _ = program_of("raw", seed, config, classes)
    ops = main.global_block().ops
    joined = {op.output("FusedOutput")[0]: op.input("Input") for op in ops
              if op.type == "coalesce_tensor"}
    groups = []
    for op in ops:
        if op.type in ("all_reduce", "c_allreduce_sum") and op.attr("op_role") & 1:
            name = (op.input("x") if op.type == "all_reduce" else op.input("X"))[0]
            groups.append(joined.get(name, [name.removesuffix("@GRAD")]))
    return config, groups, gradients(main)


def main():
    import logging

    import paddle
    from paddle.distributed.fleet.meta_optimizers import common

    logging.disable(logging.WARNING)
    os.environ.update(PADDLE_TRAINER_ID="0", PADDLE_TRAINERS_NUM=str(WORKERS),
                      PADDLE_CURRENT_ENDPOINT="127.0.0.1:36001",
                      PADDLE_TRAINER_ENDPOINTS=",".join(f"127.0.0.1:{36001 + i}"
                                                        for i in range(WORKERS)))
    common.CollectiveHelper._init_communicator = lambda *_, **__: None
    paddle.enable_static()
    with paddle.pir_utils.OldIrGuard():
        if sys.argv[1] == "pass":
            return run_pass(int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4]))
        for rule, cases in (("raw", 100), ("fused", 50)):
            cases = int(os.environ.get("CASES", cases))
            lines = []
            for seed in range(cases):
                rng = random.Random(seed)
                classes = {0: 10, 1: 1000}.get(seed)
                config, groups, tensors = {"raw": raw, "fused": fused}[rule](rng, seed, classes)
                lines.append(json.dumps({"seed": seed, "config": config, "tensors": tensors,
                                         "groups": groups}, separators=(",", ":")))
            head = {"framework": "paddlepaddle", "version": paddle.__version__,
                    "rule": f"fleet_{rule}",
                    "about": "groups: the parameters whose gradients one all-reduce sums, in order; "
                             "the first two cases are ResNet-50 with 10 and 1000 classes"}
            with open(sys.argv[1].replace("fleet", f"fleet_{rule}"), "w", encoding="utf-8") as file:
                file.write(json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n")


main()
