"""Every key that frameworks have, from their packages: formats/dialect/keys/*.json.

    keys.py OUT_FOLDER FRAMEWORK...

What a key is for Syncline is a judgement, which stays with the key when the list is made anew: a key
that is new is one that matters and is not modelled, until somebody judges it. Those have their
defaults with them, which change nothing.
"""
import ast
import dataclasses
import importlib.metadata
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

MARKED = pathlib.Path(__file__).resolve().parents[2] / "formats" / "dialect" / "keys"


def plain(value):
    """A default as JSON has it; None for one that it has not."""
    return value if isinstance(value, (bool, int, float, str)) else None


def parameters(function, *without):
    return {name: plain(one.default) for name, one in inspect.signature(function).parameters.items()
            if name not in ("self", *without) and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)}


def fields(kind):
    return {one.name: plain(one.default) for one in dataclasses.fields(kind)
            if not one.name.startswith("_")}


def options(parser):
    """By the words of a command line, without the dashes. One that turns something off is off itself
    where it is not given."""
    return {word[2:]: False if one.const is False or word.startswith("--no-") else plain(one.default)
            for one in parser._actions for word in one.option_strings
            if word.startswith("--") and word != "--help"}


def torch_lists():
    from torch.distributed._composable.fsdp import fully_shard
    from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.nn.parallel import DistributedDataParallel

    return {"pytorch": parameters(DistributedDataParallel.__init__, "module"),
            "pytorch.PowerSGDState": parameters(PowerSGDState.__init__),
            "fsdp1": parameters(FullyShardedDataParallel.__init__, "module"),
            "fsdp2": parameters(fully_shard, "module")}


def deepspeed_lists():
    os.environ["DS_ACCELERATOR"] = "cpu"
    from deepspeed.runtime import config
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig

    asked = {}

    class Keys:
        """What is looked for among a file's keys."""

        def __init__(self, file):
            self.file = file

        def __contains__(self, key):
            asked.setdefault(key, None)
            return dict.__contains__(self.file, key)

        def __iter__(self):
            return dict.__iter__(self.file)

    class File(dict):
        def keys(self):
            return Keys(self)

        def get(self, key, default=None):
            asked[key] = plain(default)
            return super().get(key, default)

        def __getitem__(self, key):
            asked.setdefault(key, None)
            return super().__getitem__(key)

        def __contains__(self, key):
            asked.setdefault(key, None)
            return super().__contains__(key)

    config.DeepSpeedConfig(File(train_batch_size=1))
    zero = {}
    for name, field in DeepSpeedZeroConfig.model_fields.items():
        for word in {name, field.alias} - {None}:
            zero[word] = plain(field.default)
    gone = getattr(config, "_REMOVED_TOP_LEVEL_CONFIG_KEYS", {})
    gone_zero = getattr(config, "_REMOVED_ZERO_CONFIG_KEYS", {})
    return {"deepspeed": dict.fromkeys(gone) | asked, "deepspeed.removed": gone,
            "deepspeed.zero_optimization": dict.fromkeys(gone_zero) | zero,
            "deepspeed.zero_optimization.removed": gone_zero}


def megatron_lists():
    import argparse

    from megatron.core.distributed import DistributedDataParallelConfig
    from megatron.core.optimizer import OptimizerConfig
    from megatron.core.transformer import MLATransformerConfig
    from megatron.training import arguments

    parser = arguments.add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False))
    names = {}
    for kind in (DistributedDataParallelConfig, OptimizerConfig, MLATransformerConfig):
        names.update({name.replace("_", "-"): value for name, value in fields(kind).items()})
    return {"megatron": names | options(parser)}


def transformers_lists():
    from transformers import TrainingArguments

    return {"hf_trainer": fields(TrainingArguments)}


def accelerate_lists():
    from accelerate.commands import launch
    from accelerate.commands.config.config_args import ClusterConfig
    from accelerate.utils import (DeepSpeedPlugin, FullyShardedDataParallelPlugin,
                                  MegatronLMPlugin)

    words = {name.replace("-", "_"): value
             for name, value in options(launch.launch_command_parser()).items()}
    return {"accelerate": fields(ClusterConfig) | words,
            "accelerate.fsdp_config": fields(FullyShardedDataParallelPlugin),
            "accelerate.deepspeed_config": fields(DeepSpeedPlugin),
            "accelerate.megatron_lm_config": fields(MegatronLMPlugin)}


# Read as text, since they are only asked for names and defaults: lightning and torchtitan import
# torch, Horovod is built with it. torchtitan 0.3 has no JobConfig; 0.1's files are still read.
SOURCES = {"horovod": ["0.28.1"], "lightning": ["2.6.6"], "torchtitan": ["0.2.2", "0.1.0"]}


def source(package, version):
    """The folder with a release's files, as pip brings them."""
    folder = pathlib.Path(tempfile.mkdtemp())
    kind = ["--no-binary", ":all:"] if package == "horovod" else []
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", f"{package}=={version}",
                    "--no-deps", "-d", folder, *kind], check=True)
    file = next(folder.iterdir())
    if file.suffix == ".whl":
        zipfile.ZipFile(file).extractall(folder)
    else:
        tarfile.open(file).extractall(folder, filter="data")
        folder = folder / file.name.removesuffix(".tar.gz")
    return folder


def literal(node):
    """A default that is written out, or its name; None for another."""
    if isinstance(node, ast.Name):
        return node.id
    try:
        return plain(ast.literal_eval(node))
    except (TypeError, ValueError):
        return None


def written(file, name):
    """The function or class of that name in a file."""
    return next(node for node in ast.walk(ast.parse(file.read_text()))
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name)


def arguments_in(function):
    own = function.args
    names = [one.arg for one in own.args]
    usual = dict(zip(reversed(names), map(literal, reversed(own.defaults))))
    usual |= {one.arg: literal(value) for one, value in zip(own.kwonlyargs, own.kw_defaults)
              if value is not None}
    return {name: usual.get(name) for name in [*names, *(one.arg for one in own.kwonlyargs)]
            if name != "self"}


def fields_in(kind):
    return {node.target.id: literal(node.value) if node.value else None for node in kind.body
            if isinstance(node, ast.AnnAssign)}


def init_in(file, name):
    return arguments_in(next(node for node in written(file, name).body
                             if isinstance(node, ast.FunctionDef) and node.name == "__init__"))


def horovod_lists():
    folder = source("horovod", *SOURCES["horovod"]) / "horovod"
    variables = set()
    for file in (folder / "common").rglob("*.h"):
        variables |= set(re.findall(r'#define (HOROVOD_\w+)\s+"\1"', file.read_text()))
    runner = (folder / "runner" / "common" / "util" / "config_parser.py").read_text()
    variables |= set(re.findall(r"^(HOROVOD_\w+) = '\1'", runner, re.M))
    wrapper = arguments_in(written(folder / "torch" / "optimizer.py", "DistributedOptimizer"))
    del wrapper["optimizer"]
    return {"horovod": dict.fromkeys(variables) | wrapper}


def lightning_lists():
    folder = source("lightning", *SOURCES["lightning"]) / "lightning" / "pytorch" / "strategies"
    names = {"ddp": "DDPStrategy", "fsdp": "FSDPStrategy", "deepspeed": "DeepSpeedStrategy"}
    return {f"lightning.{name}": init_in(folder / f"{file}.py", name)
            for file, name in names.items()}


def torchtitan_lists():
    lists = {}
    for version in SOURCES["torchtitan"]:
        folder = source("torchtitan", version) / "torchtitan"
        file = folder / "config" / "job_config.py"
        file = file if file.exists() else folder / "config_manager.py"
        job = written(file, "JobConfig")
        for section in job.body:
            if not isinstance(section, ast.AnnAssign):
                continue
            keys = fields_in(written(file, ast.unparse(section.annotation)))
            own = lists.setdefault(f"torchtitan.{section.target.id}", {})
            own.update({key: usual for key, usual in keys.items() if key not in own})
    return lists


def paddle_lists():
    import paddle
    from paddle.distributed.fleet import DistributedStrategy

    own = DistributedStrategy()
    fleet = {}
    for name, one in vars(DistributedStrategy).items():
        if isinstance(one, property):
            fleet[name] = plain(getattr(own, name))
    fleet |= {field.name: plain(getattr(own.strategy, field.name))
              for field in own.strategy.DESCRIPTOR.fields}
    build = own.strategy.build_strategy
    wrapper = parameters(paddle.DataParallel.__init__, "layers")
    return {"paddle": fleet, "paddle_dygraph": fleet | wrapper,
            "paddle.build_strategy": {field.name: plain(getattr(build, field.name))
                                      for field in build.DESCRIPTOR.fields}}


def mindspore_lists():
    from mindspore.parallel import _auto_parallel_context as context

    usual = {}
    for name in context._set_auto_parallel_context_func_map:
        read = context._get_auto_parallel_context_func_map.get(name)
        usual[name] = plain(read()) if read else None
    return {"mindspore": usual}


FRAMEWORKS = {"torch": torch_lists, "deepspeed": deepspeed_lists, "megatron-core": megatron_lists,
              "transformers": transformers_lists, "accelerate": accelerate_lists,
              "horovod": horovod_lists, "lightning": lightning_lists,
              "torchtitan": torchtitan_lists, "paddlepaddle": paddle_lists,
              "mindspore": mindspore_lists}
MARKS = ("modelled", "harmless", "matters")


def marked(file, lists):
    """The same keys as they are marked in the file that is checked in."""
    before = json.loads(file.read_text())["lists"] if file.exists() else {}
    made = {}
    for name, keys in lists.items():
        if name.endswith(".removed"):
            if keys:
                made[name.removesuffix(".removed")]["removed"] = sorted(keys)
            continue
        old = {key: mark for mark in MARKS for key in before.get(name, {}).get(mark, [])}
        of = {mark: sorted(k for k in keys if old.get(k, "matters") == mark) for mark in MARKS}
        of["matters"] = {key: keys[key] for key in of["matters"]}
        made[name] = of
    return made


def main():
    out, *names = sys.argv[1:]
    for framework in names:
        made = marked(MARKED / f"{framework}.json", FRAMEWORKS[framework]())
        version = " and ".join(SOURCES.get(framework) or [importlib.metadata.version(framework)])
        text = json.dumps({"framework": framework, "version": version, "lists": made}, indent=1)
        (pathlib.Path(out) / f"{framework}.json").write_text(text + "\n")


main()
