#!/usr/bin/env python3
"""The regret of `tune --emit` on random small jobs: the best configuration that it writes, against
every configuration of a grid over the framework's own keys, each evaluated by `run`.

    tests/tools/regret.py PROGRAM [--jobs 60] [--seed 57] [--limit 0.5]

Prints a line per job and exits with 1 if a regret exceeds the limit, in percent.
"""

import argparse
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile


def sums_of(sizes):
    """Every total of neighbours: the sizes at which another bucket is filled."""
    totals = {sum(sizes[i:j]) for i in range(len(sizes)) for j in range(i + 1, len(sizes) + 1)}
    return sorted(totals)


def configs_of_pytorch(elements):
    caps = [None] + [4 * total / 2 ** 20 for total in sums_of(elements)]
    for cap, views in itertools.product(caps, (False, True)):
        config = {"gradient_as_bucket_view": views}
        if cap is not None:
            config["bucket_cap_mb"] = cap
        yield config


def configs_of_horovod(elements):
    sizes = [0] + [4 * total for total in sums_of(elements)]
    for size, cycle, streams in itertools.product(sizes, (0.1, 1, 5), (1, 2, 3, 4)):
        yield {"HOROVOD_FUSION_THRESHOLD": size, "HOROVOD_CYCLE_TIME": cycle,
               "HOROVOD_NUM_NCCL_STREAMS": streams}


def configs_of_megatron(elements):
    for shards in (False, True):
        yield {"use-distributed-optimizer": shards}
        for size, gathers in itertools.product(sums_of(elements), (False, True)):
            if gathers and not shards:
                continue
            yield {"use-distributed-optimizer": shards, "overlap-grad-reduce": True,
                   "ddp-bucket-size": size, "overlap-param-gather": gathers}


def configs_of_deepspeed(elements):
    for stage, overlap, size in itertools.product(range(4), (False, True), sums_of(elements)):
        yield {"zero_optimization": {"stage": stage, "overlap_comm": overlap,
                                     "reduce_bucket_size": size}}


def configs_of_fsdp(_):
    for units, again in itertools.product(([], ["layers.*"]), (False, True)):
        yield {"version": 2, "units": units, "reshard_after_forward": again}
    for units, sharding in itertools.product(([], ["layers.*"]), ("FULL_SHARD", "SHARD_GRAD_OP")):
        yield {"version": 1, "units": units, "sharding_strategy": sharding}


FRAMEWORKS = {"pytorch": configs_of_pytorch, "horovod": configs_of_horovod,
              "megatron": configs_of_megatron, "deepspeed": configs_of_deepspeed,
              "fsdp": configs_of_fsdp}


def random_job(chance):
    """A scenario without strategies: a few gradients on a few nodes."""
    tensors = [{"name": f"layers.{i}.weight", "shape": [int(10 ** chance.uniform(4.5, 7.3))],
                "backward_us": round(10 ** chance.uniform(1.5, 3.7), 1)}
               for i in range(chance.randint(3, 9))]
    return {"name": "random", "workload": {"name": "random", "forward_ms": chance.uniform(0.5, 10),
                                           "tensors": tensors},
            "cluster": {"name": "random", "nodes": chance.choice((2, 4, 8)),
                        "gpus_per_node": chance.choice((1, 2, 8)), "device": "v100-sxm-32gb",
                        "intra": {"latency_us": 5, "bandwidth_gbps": 600},
                        "inter": {"latency_us": chance.choice((5, 20, 50)),
                                  "bandwidth_gbps": chance.choice((1, 10, 25, 100, 400))}}}


def asked(program, folder, scenario, *arguments):
    path = folder / "job.json"
    path.write_text(json.dumps(scenario))
    ran = subprocess.run([program, *arguments[:1], str(path), *arguments[1:], "--format", "json"],
                         capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: {ran.stderr}")
    return json.loads(ran.stdout)


def regret_of(program, folder, job, framework):
    """(percent above the best of the grid, the best there, its configuration, what was written)."""
    elements = [tensor["shape"][0] for tensor in job["workload"]["tensors"]]
    configs = list(FRAMEWORKS[framework](elements))
    every = dict(job, strategies=[{"name": f"c{i}", "dialect": framework, "config": config}
                                  for i, config in enumerate(configs)])
    rows = asked(program, folder, every, "run")["rows"]
    best = min(rows, key=lambda row: row["step_time_s"])
    config = configs[int(best["strategy"][1:])]
    given = dict(job, strategies=[{"name": "given", "dialect": framework,
                                   "config": configs[0]}])
    written = asked(program, folder, given, "tune", "--emit", framework)["emitted"]
    percent = 100 * (written["step_time_s"] / best["step_time_s"] - 1)
    return percent, len(configs), config, written["config"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=57)
    parser.add_argument("--limit", type=float, default=0.5)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    regrets = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.jobs):
            framework = list(FRAMEWORKS)[number % len(FRAMEWORKS)]
            percent, tried, config, written = regret_of(
                options.program, pathlib.Path(folder), random_job(chance), framework)
            regrets.append(percent)
            print(f"{number:3} {framework:9} {tried:4} configurations, regret {percent:6.2f} %",
                  flush=True)
            if percent > options.limit:
                print(f"    of the grid {json.dumps(config)}\n    written     {json.dumps(written)}")
    over = sum(percent > options.limit for percent in regrets)
    print(f"{len(regrets)} jobs: worst regret {max(regrets):.2f} %, {over} over {options.limit} %")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
