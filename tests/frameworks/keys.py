"""Every key that frameworks have, from their packages: formats/dialect/keys/*.json.

    keys.py OUT_FOLDER FRAMEWORK...

What a key is for Syncline is a judgement, which stays with the key when the list is made anew: a key
that is new is one that matters and is not modelled, until somebody judges it. Those have their
defaults with them, which change nothing.
"""
import dataclasses
import importlib.metadata
import inspect
import json
import os
import pathlib
import sys

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


FRAMEWORKS = {"torch": torch_lists, "deepspeed": deepspeed_lists, "megatron-core": megatron_lists,
              "transformers": transformers_lists, "accelerate": accelerate_lists}
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
        version = importlib.metadata.version(framework)
        text = json.dumps({"framework": framework, "version": version, "lists": made}, indent=1)
        (pathlib.Path(out) / f"{framework}.json").write_text(text + "\n")


main()
