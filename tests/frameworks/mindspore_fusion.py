"""MindSpore's comm_fusion on random models: the gradients that each all-reduce of the compiled graph
joins, in the order of the graph.

The package has its GPU's libraries but no CUDA: `stand_ins` compiles libraries whose functions do
nothing, so that graphs are compiled as for eight GPUs. No device is asked for anything until that is
over; where it would run, the compilation ends with an error, once the graph has been written down.
"""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

LIBRARIES = {"libcublas.so.11": ("cublas", "curand"), "libcudnn.so.8": ("cudnn",),
             "libcusolver.so.11": ("cusolver",), "libcufft.so.10": ("cufft",),
             "libcusparse.so.11": ("cusparse",), "libnvrtc.so.11.2": ("nvrtc",),
             "libcudart.so.11.0": ("cuda", "__cuda"), "libcuda.so.1": ("cu",)}
OWN = {"cudaGetDeviceCount": "int cudaGetDeviceCount(int* n) { *n = 8; return 0; }",
       "cudaGetDevice": "int cudaGetDevice(int* n) { *n = 0; return 0; }",
       "cudaMemGetInfo": "int cudaMemGetInfo(unsigned long* a, unsigned long* b) "
                         "{ *a = *b = 8ul << 30; return 0; }",
       "cudaMalloc": "#include <stdlib.h>\nint cudaMalloc(void** p, unsigned long n) "
                     "{ *p = malloc(n ? n : 1); return 0; }",
       "cudaGetErrorString": 'const char* cudaGetErrorString(int e) { return "none"; }',
       "__cudaRegisterFatBinary":
           "void** __cudaRegisterFatBinary(void* p) { static void* x[4]; return x; }"}


def stand_ins(folder):
    """Makes what MindSpore looks for below CUDA_HOME, for CUDA 11.6."""
    import importlib.util

    package = pathlib.Path(importlib.util.find_spec("mindspore").origin).parent
    plugin = package / "lib" / "plugin"
    names = set()
    for file in (plugin / "libmindspore_gpu.so.11.6", *(plugin / "gpu").iterdir()):
        said = subprocess.run(["nm", "-D", "--undefined-only", file], capture_output=True, text=True,
                              check=True).stdout
        names |= {line.split()[-1].split("@")[0] for line in said.splitlines()}
    for part in ("bin", "lib64"):
        (folder / part).mkdir()
    compiler = folder / "bin" / "nvcc"
    compiler.write_text('#!/bin/sh\necho "Cuda compilation tools, release 11.6, V11.6.124"\n')
    compiler.chmod(0o755)
    for library, beginnings in LIBRARIES.items():
        own = sorted(name for name in names if name.startswith(beginnings))
        names -= set(own)
        text = "\n".join(OWN.get(name, f"long {name}() {{ return 0; }}") for name in own)
        (folder / "a.c").write_text(text + "\n")
        (folder / "a.map").write_text(library + " { global: *; };\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "-w", f"-Wl,--version-script={folder / 'a.map'}",
                        f"-Wl,-soname,{library}", "-o", folder / "lib64" / library, folder / "a.c"],
                       check=True)


def fusion_of(rng, count):
    mode = rng.choice(["auto", "size", "size", "size"])
    if rng.random() < 0.4:
        ends = sorted(rng.sample(range(count + 2), rng.randrange(1, min(4, count))))
        return {"allreduce": {"mode": "index", "config": ends}}
    return {"allreduce": {"mode": mode, "config": None if mode == "auto" else rng.randrange(1, 4)}}


def has_list(config):
    return config.get("comm_fusion", {}).get("allreduce", {}).get("mode") == "index"


def compiled(rng, graphs):
    import numpy
    import mindspore
    from mindspore import context, nn, ops
    from mindspore.common.api import _cell_graph_executor

    mode = rng.choice(["data_parallel", "hybrid_parallel", "semi_auto_parallel"])
    # No two parameters of a shape: a shape in the graph is a parameter.
    widths = rng.sample(range(64, 704, 8), rng.randrange(3, 9))

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layers = nn.SequentialCell([nn.Dense(a, b) for a, b in zip(widths, widths[1:])])
            for layer in self.layers if mode == "semi_auto_parallel" else []:
                layer.matmul.shard(((8, 1), (1, 1)))
                layer.bias_add.shard(((8, 1), (1,)))

        def construct(self, x):
            return ops.reduce_mean(self.layers(x))

    model = Model()
    parameters = model.trainable_params()
    config = {"parallel_mode": mode}
    if rng.random() < 0.9:
        config["comm_fusion"] = fusion_of(rng, len(parameters))
    ids = {}
    if rng.random() < 0.25:
        for i, layer in enumerate(model.layers):
            if rng.random() < 0.5:
                ids[f"layers.{i}"] = rng.randrange(0, 4)
                layer.set_comm_fusion(ids[f"layers.{i}"])
        if ids:
            config["set_comm_fusion"] = ids
        if ids and rng.random() < 0.5:
            config["comm_fusion"] = {"openstate": False}
        # The reducer's group is named as Ascend's, a list's by the device: here they do not meet.
        elif ids and mode != "semi_auto_parallel" and has_list(config):
            config["comm_fusion"] = {"allreduce": {"mode": "auto", "config": None}}
    context.reset_auto_parallel_context()
    context.set_auto_parallel_context(
        device_num=8, global_rank=0, full_batch=mode == "semi_auto_parallel",
        **{key: value for key, value in config.items() if key != "set_comm_fusion"})
    mindspore._c_expression.AutoParallelContext.get_instance().set_hccl_test_avaible(True)
    step = nn.TrainOneStepCell(model, nn.Momentum(parameters, 0.1, 0.9))
    step.set_train()
    try:
        _cell_graph_executor.compile(step, mindspore.Tensor(numpy.zeros((16, widths[0])),
                                                            mindspore.float32), phase="train")
    except RuntimeError as error:
        if "libnvidia_collective.so" not in str(error):
            raise
    tensors = [[one.name, list(one.shape)] for one in parameters]
    shapes = {tuple(shape): name for name, shape in tensors}
    assert len(shapes) == len(tensors)
    return config, tensors[::-1], groups_in(graphs, shapes)


def groups_in(graphs, shapes):
    """The last graph that was written down."""
    file = max(graphs.rglob("hwopt_common_final_graph*.ir"), key=lambda one: one.stat().st_mtime)
    groups = []
    for kind, of in re.findall(r"= (AllReduce|AllGather|ReduceScatter)\(.*\n\s+: \((.*)\) -> ",
                               file.read_text()):
        sizes = [tuple(map(int, one.split(","))) if one else ()
                 for one in re.findall(r"Tensor\[\w+\], \(([\d, ]*)\)", of)]
        if sizes != [()]:  # the loss
            groups.append([shapes[size] for size in sizes])
    return groups


def main():
    import mindspore
    from mindspore._c_expression import ms_ctx_param

    graphs = pathlib.Path(tempfile.mkdtemp())
    mindspore.set_context(mode=mindspore.GRAPH_MODE, save_graphs=2, save_graphs_path=str(graphs))
    mindspore.context._context().set_param(ms_ctx_param.device_target, "GPU")
    lines = []
    for seed in range(int(os.environ.get("CASES", "100"))):
        for one in graphs.iterdir():
            shutil.rmtree(one) if one.is_dir() else one.unlink()
        config, tensors, groups = compiled(random.Random(seed), graphs)
        lines.append(json.dumps({"seed": seed, "config": config, "tensors": tensors,
                                 "groups": groups}, separators=(",", ":")))
    head = {"framework": "mindspore", "version": mindspore.__version__, "rule": "fusion",
            "about": "groups: the gradients of each all-reduce, in the order of the graph; "
                     "tensors: name and shape, in backward order; on 8 ranks"}
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n")
    shutil.rmtree(graphs)


if os.environ.get("CUDA_HOME", "").endswith("stand_ins"):
    main()
else:
    made = pathlib.Path(tempfile.mkdtemp()) / "stand_ins"
    made.mkdir()
    stand_ins(made)
    ran = subprocess.run([sys.executable, *sys.argv], check=False,
                         env=dict(os.environ, CUDA_HOME=str(made), GLOG_v="4",
                                  LD_LIBRARY_PATH=str(made / "lib64")))
    shutil.rmtree(made.parent)
    sys.exit(ran.returncode)
