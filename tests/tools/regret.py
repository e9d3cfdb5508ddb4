#!/usr/bin/env python3
"""The regret of `tune --emit` on random small jobs: the best configuration that it writes, against
every configuration of a grid over the framework's own keys, each evaluated by `run`. Left out: find_unused_parameters, a walk of the graph that no model has.

    tests/tools/regret.py PROGRAM [--jobs 60] [--seed 57] [--limit 0.5]

Prints a line per job and exits with 1 if a regret exceeds the limit, in percent.
"""

import argparse
import itertools
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile


def sums_of(sizes):
    """Every total of neighbours: the sizes at which another bucket is filled."""
    totals = {sum(sizes[i:j]) for i in range(len(sizes)) for j in range(i + 1, len(sizes) + 1)}
    return sorted(totals)


def groups_of(cluster):
    """Groups of ranks smaller than the job, none of one rank: nodes and more of them."""
    ranks = cluster["nodes"] * cluster["gpus_per_node"]
    sizes = [cluster["gpus_per_node"] * 2 ** power for power in range(8)]
    return [size for size in sizes if 1 < size < ranks and cluster["gpus_per_node"] > 1]


def ranks_of(cluster):
    return cluster["nodes"] * cluster["gpus_per_node"]


def configs_of_pytorch(elements, _):
    caps = [None] + [4 * total / 2 ** 20 for total in sums_of(elements)]
    for cap, views in itertools.product(caps, (False, True)):
        config = {"gradient_as_bucket_view": views}
        if cap is not None:
            config["bucket_cap_mb"] = cap
        yield config


def configs_of_horovod(elements, _):
    sizes = [0] + [4 * total for total in sums_of(elements)]
    for size, cycle, streams, levels in itertools.product(
            sizes, (0.1, 0.5, 1, 2.5, 5), (1, 2, 3, 4), (0, 1)):
        yield {"HOROVOD_FUSION_THRESHOLD": size, "HOROVOD_CYCLE_TIME": cycle,
               "HOROVOD_NUM_NCCL_STREAMS": streams, "HOROVOD_HIERARCHICAL_ALLREDUCE": levels}


def configs_of_megatron(elements, cluster):
    yield {}
    for size in sums_of(elements):
        yield {"overlap-grad-reduce": True, "ddp-bucket-size": size}
    instances = [1] + [ranks_of(cluster) // group for group in groups_of(cluster)]
    for count, even in itertools.product(instances, (False, True)):
        sharded = {"use-distributed-optimizer": True, "num-distributed-optimizer-instances": count,
                   "ddp-pad-buckets-for-high-nccl-busbw": even}
        yield sharded
        for size, gathers in itertools.product(sums_of(elements), (False, True)):
            yield dict(sharded, **{"overlap-grad-reduce": True, "ddp-bucket-size": size,
                                   "overlap-param-gather": gathers})


def zero_of(elements, cluster):
    yield {"stage": 0}
    sizes = sums_of(elements)
    both = (False, True)
    for stage, overlap, size, copies, scatter, many in itertools.product(
            (1, 2), both, sizes, both, both, both):
        yield {"stage": stage, "overlap_comm": overlap, "reduce_bucket_size": size,
               "contiguous_gradients": copies, "reduce_scatter": scatter,
               "use_multi_rank_bucket_allreduce": many}
    for overlap, size, copies, ahead, kept, group in itertools.product(
            both, sizes, both, (0, 50_000_000), (0, 100_000, 1_000_000),
            [None] + groups_of(cluster)):
        zero = {"stage": 3, "overlap_comm": overlap, "reduce_bucket_size": size,
                "contiguous_gradients": copies, "stage3_prefetch_bucket_size": ahead,
                "stage3_param_persistence_threshold": kept}
        yield zero if group is None else dict(zero, zero_hpz_partition_size=group)


def configs_of_deepspeed(elements, cluster):
    for zero in zero_of(elements, cluster):
        yield {"zero_optimization": zero}


def configs_of_trainer(elements, cluster):
    for total in sums_of(elements):
        yield {"ddp_bucket_cap_mb": 4 * total / 2 ** 20, "ddp_find_unused_parameters": False}
    for config in configs_of_deepspeed(elements, cluster):
        yield {"deepspeed": config}


def configs_of_fsdp(elements, cluster):
    names = [f"layers.{i}" for i in range(len(elements))]
    units = [[], ["layers.*"]] + [[names[i:i + count] for i in range(0, len(names), count)]
                                  for count in range(2, len(names))]
    groups = groups_of(cluster)
    meshes = [None] + [[ranks_of(cluster) // group, group] for group in groups]
    for own, again, mesh in itertools.product(units, [None, False, True] + groups, meshes):
        config = {"version": 2, "units": own, "reshard_after_forward": again, "mesh": mesh}
        if mesh is None or not isinstance(again, int) or isinstance(again, bool):
            yield {key: value for key, value in config.items() if value is not None}
    words = ["FULL_SHARD", "SHARD_GRAD_OP"]
    words += ["HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"] if groups else []
    for own, word, flat in itertools.product(units, words, (False, True)):
        yield {"version": 1, "units": own, "sharding_strategy": word, "use_orig_params": flat}


def configs_of_paddle(elements, cluster):
    sizes = sorted({max(1, math.ceil(4 * total / 2 ** 20)) for total in sums_of(elements)})
    fusions = [{"fuse_all_reduce_ops": False}]
    fusions += [{"fuse_grad_size_in_MB": size, "_fuse_grad_size_in_TFLOPS": 1e6} for size in sizes]
    levels = [{}]
    if groups_of(cluster):
        levels.append({"use_hierarchical_allreduce": True,
                       "hierarchical_allreduce_inter_nranks": cluster["gpus_per_node"]})
    for fusion, streams, level in itertools.product(fusions, (1, 2, 3, 4), levels):
        yield dict(fusion, nccl_comm_num=streams, sync_nccl_allreduce=streams == 1, **level)


def configs_of_mindspore(elements, _):
    count = len(elements)
    plain = {"parallel_mode": "data_parallel"}
    yield plain
    for ends in itertools.chain.from_iterable(
            itertools.combinations(range(count - 1), size) for size in range(count)):
        fusion = {"allreduce": {"mode": "index", "config": list(ends) + [count - 1]}}
        yield dict(plain, comm_fusion=fusion)


FRAMEWORKS = {"pytorch": configs_of_pytorch, "horovod": configs_of_horovod,
              "megatron": configs_of_megatron, "deepspeed": configs_of_deepspeed,
              "fsdp": configs_of_fsdp, "hf_trainer": configs_of_trainer,
              "paddle": configs_of_paddle, "mindspore": configs_of_mindspore}


def random_job(chance):
    """A scenario without strategies: a few gradients on a few nodes."""
    tensors = [{"name": f"layers.{i}.weight", "shape": [int(10 ** chance.uniform(4.5, 7.3))],
                "backward_us": round(10 ** chance.uniform(1.5, 3.7), 1)}
               for i in range(chance.randint(3, 6))]
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
    configs = list(FRAMEWORKS[framework](elements, job["cluster"]))
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
            print(f"{number:3} {framework:10} {tried:5} configurations, regret {percent:6.2f} %",
                  flush=True)
            if percent > options.limit:
                print(f"    of the grid {json.dumps(config)}\n    written     {json.dumps(written)}")
    over = sum(percent > options.limit for percent in regrets)
    print(f"{len(regrets)} jobs: worst regret {max(regrets):.2f} %, {over} over {options.limit} %")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
