#!/usr/bin/env python3
"""What Lightning's strategies make of random settings of a Trainer.

    lightning_trainer.py OUT.json

A case is a file as LightningCLI writes it. Written is what the strategy gives torch's
DistributedDataParallel and FSDP, and the configuration that it gives DeepSpeed. A Trainer asks for
devices; its strategies and their precision plugins do not.
"""
import importlib
import random
import sys

import common

CASES = 100
NAMES = ["ddp", "ddp_find_unused_parameters_true", "ddp_find_unused_parameters_false", "ddp_spawn",
         "fsdp", "deepspeed", "deepspeed_stage_1", "deepspeed_stage_2", "deepspeed_stage_3"]
SIZES = [50_000_000, 200_000_000, 1_000_000]


def drawn(pick, words, share=0.4):
    """{key: one of its values}, each with that chance."""
    return {key: pick.choice(values) for key, values in words.items() if pick.random() < share}


def random_class(pick):
    kind = pick.choice(["DDP", "FSDP", "FSDP", "DeepSpeed"])
    if kind == "DDP":
        words = drawn(pick, {"find_unused_parameters": [True, False], "bucket_cap_mb": [10, 50],
                             "gradient_as_bucket_view": [True, False], "static_graph": [True, False],
                             "broadcast_buffers": [True, False]})
    elif kind == "FSDP":
        words = drawn(pick, {
            "sharding_strategy": ["FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "NO_SHARD",
                                  "hybrid_shard"],
            "use_orig_params": [True, False], "forward_prefetch": [True],
            "limit_all_gathers": [True, False], "sync_module_states": [True]})
    else:
        words = drawn(pick, {"stage": [0, 1, 2, 3], "overlap_comm": [True, False],
                             "reduce_bucket_size": SIZES, "allgather_bucket_size": SIZES,
                             "contiguous_gradients": [True, False], "reduce_scatter": [True, False],
                             "allgather_partitions": [True, False]})
    return {"class_path": f"lightning.pytorch.strategies.{kind}Strategy", "init_args": words}


def random_settings(pick):
    strategy = pick.choice(NAMES) if pick.random() < 0.4 else random_class(pick)
    trainer = {"accelerator": "gpu", "strategy": strategy, "max_epochs": 1}
    precision = pick.choice(["32-true", "16-mixed", "bf16-mixed", "bf16-true", "16-true", 32, 16,
                             "bf16", None])
    if precision is not None:
        trainer["precision"] = precision
    trainer.update(drawn(pick, {"accumulate_grad_batches": [1, 2, 4, 16]}))
    return {"trainer": trainer}


def strategy_of(given):
    from lightning.pytorch.strategies import StrategyRegistry
    if isinstance(given, str):
        return StrategyRegistry.get(given)
    module, name = given["class_path"].rsplit(".", 1)
    return getattr(importlib.import_module(module), name)(**given["init_args"])


def half(dtype):
    return None if dtype is None else str(dtype).replace("torch.", "")


def said_of(settings):
    from lightning.fabric.strategies.deepspeed import _format_precision_config
    from lightning.pytorch.plugins import DeepSpeedPrecision, FSDPPrecision
    from lightning.pytorch.trainer.connectors.accelerator_connector import _convert_precision_to_unified_args
    trainer = settings["trainer"]
    strategy = strategy_of(trainer["strategy"])
    precision = _convert_precision_to_unified_args(trainer.get("precision")) or "32-true"
    kind = type(strategy).__name__
    if kind == "DDPStrategy":
        return {"ddp": {key: value for key, value in strategy._ddp_kwargs.items()
                        if value is not None}}
    if kind == "FSDPStrategy":
        strategy.precision_plugin = FSDPPrecision(precision)
        mixed = strategy.mixed_precision_config
        return {"fsdp": {"sharding": strategy.sharding_strategy.name,
                         "use_orig_params": strategy.kwargs.get("use_orig_params", False),
                         "param_dtype": half(mixed and mixed.param_dtype),
                         "reduce_dtype": half(mixed and mixed.reduce_dtype)}}
    config = strategy.config
    _format_precision_config(config=config, precision=DeepSpeedPrecision(precision).precision,
                             loss_scale=0, loss_scale_window=1000, min_loss_scale=1,
                             initial_scale_power=16, hysteresis=2)
    return {"deepspeed": {"zero": config["zero_optimization"],
                          **{key: config.get(key, {}).get("enabled", False)
                             for key in ("bf16", "fp16")}}}


def main():
    import lightning
    import torch
    common.quiet()
    # A processor has neither; what is asked for is what counts.
    torch.cuda.is_available = torch.cuda.is_bf16_supported = lambda *_, **__: True
    cases = []
    for number in range(CASES):
        settings = random_settings(random.Random(number))
        cases.append({"seed": number, "settings": settings,
                      "said": common.answer(said_of, settings)})
    common.write(sys.argv[1], {"framework": "lightning", "version": lightning.__version__,
                               "rule": "lightning"}, cases)


if __name__ == "__main__":
    main()
