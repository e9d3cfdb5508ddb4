#!/usr/bin/env python3
"""What transformers' TrainingArguments and accelerate's launch make of random settings.

    hugging_face.py OUT.json

A case is a file of settings of a kind: "trainer" (TrainingArguments) or "accelerate" (the YAML of
accelerate launch). Each is asked in a process of its own, as both libraries speak to each other
through environment variables. Written are the precision, and what DistributedDataParallel, FSDP or DeepSpeed
are given in the end.
"""
import json
import os
import random
import sys
import tempfile

HIDDEN = 4096
CASES = 80


def random_trainer(pick):
    case = {"per_device_train_batch_size": pick.choice([1, 2, 4, 16])}
    if pick.random() < 0.7:
        case["gradient_accumulation_steps"] = pick.choice([1, 2, 8])
    precision = pick.choice(["bf16", "fp16", None, "bf16"])
    if precision:
        case[precision] = True
    if pick.random() < 0.4:
        case["gradient_checkpointing"] = True
    way = pick.choice(["ddp", "fsdp", "fsdp", "deepspeed"])
    if way == "ddp":
        if pick.random() < 0.5:
            case["ddp_find_unused_parameters"] = pick.random() < 0.5
        if pick.random() < 0.5:
            case["ddp_bucket_cap_mb"] = pick.choice([10, 25, 50, 100])
    elif way == "fsdp":
        words = [pick.choice(["full_shard", "shard_grad_op", "hybrid_shard", "hybrid_shard_zero2"])]
        if pick.random() < 0.7:
            words.append("auto_wrap")
        case["fsdp"] = " ".join(words) if pick.random() < 0.5 else words
        config = {}
        if pick.random() < 0.4:
            config["backward_prefetch"] = "backward_pre"
        if pick.random() < 0.4:
            config["use_orig_params"] = pick.random() < 0.5
        if pick.random() < 0.3:
            config["transformer_layer_cls_to_wrap"] = ["LlamaDecoderLayer"]
        if config:
            case["fsdp_config"] = {pick.choice(["", "fsdp_"]) + key: value
                                   for key, value in config.items()}
    else:
        zero = {"stage": pick.choice([0, 1, 2, 3])}
        for key in ("reduce_bucket_size", "stage3_prefetch_bucket_size",
                    "stage3_param_persistence_threshold"):
            if zero["stage"] == 3 or (key == "reduce_bucket_size" and zero["stage"] > 0):
                zero[key] = pick.choice(["auto", 50000000])
        config = {"zero_optimization": zero, "train_batch_size": "auto",
                  "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}
        for key in ("bf16", "fp16"):
            if pick.random() < 0.7:
                config[key] = {"enabled": "auto"}
        case["deepspeed"] = config
    return case


def random_accelerate(pick):
    case = {"compute_environment": "LOCAL_MACHINE", "machine_rank": 0, "num_machines": 1,
            "num_processes": 8, "main_training_function": "main",
            "mixed_precision": pick.choice(["no", "bf16", "fp16", "bf16"])}
    way = pick.choice(["MULTI_GPU", "FSDP", "FSDP", "DEEPSPEED"])
    case["distributed_type"] = way
    if way == "FSDP":
        config = {}
        if pick.random() < 0.5:
            config["fsdp_version"] = 2
            if pick.random() < 0.7:
                config["fsdp_reshard_after_forward"] = pick.random() < 0.5
        elif pick.random() < 0.8:
            config["fsdp_sharding_strategy"] = pick.choice(
                ["FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2", "NO_SHARD", 1, 2])
        if pick.random() < 0.8:
            config["fsdp_auto_wrap_policy"] = pick.choice(["TRANSFORMER_BASED_WRAP", "NO_WRAP"])
        if pick.random() < 0.5 and "fsdp_version" not in config:
            config["fsdp_use_orig_params"] = pick.random() < 0.5
        if pick.random() < 0.5 and "fsdp_version" not in config:
            config["fsdp_backward_prefetch"] = pick.choice(["BACKWARD_PRE", "NO_PREFETCH"])
        case["fsdp_config"] = config
    elif way == "DEEPSPEED":
        case["deepspeed_config"] = {"zero_stage": pick.choice([0, 1, 2, 3]), "zero3_init_flag": False,
                                    "gradient_accumulation_steps": pick.choice([1, 4]),
                                    "offload_optimizer_device": "none",
                                    "offload_param_device": "none"}
    return case


def fsdp_said():
    from accelerate.utils import FullyShardedDataParallelPlugin
    precision = os.environ.get("ACCELERATE_MIXED_PRECISION", "no")
    # Broadcasting parameters needs a device that a processor is not.
    os.environ["FSDP_SYNC_MODULE_STATES"] = "false"
    os.environ["FSDP_CPU_RAM_EFFICIENT_LOADING"] = "false"
    plugin = FullyShardedDataParallelPlugin()
    if precision != "no":
        plugin.set_mixed_precision(precision)
    policy = plugin.mixed_precision_policy
    said = {"version": plugin.fsdp_version,
            "wraps": getattr(plugin.auto_wrap_policy, "__name__", None),
            "param_dtype": str(policy.param_dtype) if policy else None,
            "reduce_dtype": str(policy.reduce_dtype) if policy else None}
    if plugin.fsdp_version == 1:
        sharding = plugin.sharding_strategy
        if sharding is None:
            sharding = plugin.reshard_after_forward
        said["sharding"] = sharding.name
        said["prefetch"] = plugin.backward_prefetch.name if plugin.backward_prefetch else None
        said["use_orig_params"] = bool(plugin.use_orig_params)
    else:
        said["reshard_after_forward"] = plugin.reshard_after_forward
    return said


def trainer_said(case):
    from transformers import TrainingArguments
    from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig
    own = {key: value for key, value in case.items() if key != "deepspeed"}
    # A processor has neither: what is asked for is what counts.
    halves = {key: own.pop(key) for key in ("bf16", "fp16") if key in own}
    arguments = TrainingArguments(output_dir="/nowhere", use_cpu=True, **own)
    for key, value in halves.items():
        setattr(arguments, key, value)
        if value:
            os.environ["ACCELERATE_MIXED_PRECISION"] = key
    said = {"batch": arguments.per_device_train_batch_size,
            "accumulation": arguments.gradient_accumulation_steps,
            "checkpointing": arguments.gradient_checkpointing,
            "precision": os.environ.get("ACCELERATE_MIXED_PRECISION", "no")}
    if "deepspeed" in case:
        config = HfTrainerDeepSpeedConfig(json.loads(json.dumps(case["deepspeed"])))
        config.trainer_config_process(arguments)

        class Config:
            hidden_size = HIDDEN

        class Model:
            config = Config()

        config.trainer_config_finalize(arguments, Model(), 1000)
        from accelerate.utils import DeepSpeedPlugin
        plugin = DeepSpeedPlugin(hf_ds_config=config)
        plugin.set_mixed_precision(said["precision"])
        filled = plugin.hf_ds_config.config
        said["deepspeed"] = {
            "micro": filled.get("train_micro_batch_size_per_gpu"),
            "accumulation": filled.get("gradient_accumulation_steps"),
            "bf16": filled.get("bf16", {}).get("enabled", False),
            "fp16": filled.get("fp16", {}).get("enabled", False),
            "zero": filled["zero_optimization"]}
    elif arguments.fsdp:
        said["fsdp"] = fsdp_said()
    return said


def accelerate_said(case):
    import yaml
    from accelerate.commands import launch
    from accelerate.utils.launch import prepare_multi_gpu_env
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(case, file)
        file.flush()
        arguments = launch.launch_command_parser().parse_args(["--config_file", file.name, "train.py"])
        if case["distributed_type"] == "DEEPSPEED":
            arguments.use_deepspeed = True
        arguments, defaults, _ = launch._validate_launch_command(arguments)
        said = {"precision": arguments.mixed_precision}
        if case["distributed_type"] == "DEEPSPEED":
            from accelerate.utils.launch import prepare_deepspeed_cmd_env
            arguments.deepspeed_multinode_launcher = "standard"
            if not hasattr(arguments, "deepspeed_fields_from_accelerate_config"):
                arguments.deepspeed_fields_from_accelerate_config = ""
            _, environment = prepare_deepspeed_cmd_env(arguments)
            said["deepspeed"] = {"stage": int(environment["ACCELERATE_DEEPSPEED_ZERO_STAGE"]),
                                 "accumulation": int(
                                     environment["ACCELERATE_GRADIENT_ACCUMULATION_STEPS"])}
        else:
            os.environ.update(prepare_multi_gpu_env(arguments))
            if os.environ.get("ACCELERATE_USE_FSDP") == "true":
                said["fsdp"] = fsdp_said()
    return said


def said_of(kind, case):
    return trainer_said(case) if kind == "trainer" else accelerate_said(case)


def asked_apart(kind, case):
    """What a fork of this process says, which has imported everything."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            said = said_of(kind, json.loads(json.dumps(case)))
        except BaseException as error:  # a refusal is an answer
            said = {"refused": f"{type(error).__name__}: {error}"[:200]}
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = json.loads(pipe.read())
    os.wait()
    return said


def main():
    import common
    import accelerate
    import transformers
    import transformers.integrations.deepspeed
    from accelerate.commands import launch
    from accelerate.utils import FullyShardedDataParallelPlugin
    cases = []
    for number in range(CASES):
        pick = random.Random(number)
        kind = "trainer" if number % 2 == 0 else "accelerate"
        case = random_trainer(pick) if kind == "trainer" else random_accelerate(pick)
        said = asked_apart(kind, case)
        cases.append({"seed": number, "kind": kind, "settings": case, "said": said})
    common.write(sys.argv[1], {"framework": "transformers", "version": transformers.__version__,
                               "accelerate": accelerate.__version__, "hidden": HIDDEN}, cases)


if __name__ == "__main__":
    main()
