"""A rank of a job in the lab, started by autotune.py.

    rank.py tuned JOB JOURNAL.json STEPS            trains until the job has chosen its setting
    rank.py fixed JOB JOURNAL.json ROUNDS           what the journal lists, in turns
"""

import contextlib
import importlib.util
import json
import os
import pathlib
import time

import torch.distributed as dist

import ranks
import syncline_apply
import syncline_tuner

STEPS = 3  # of a turn that count


def jobs():
    place = pathlib.Path(__file__).resolve().parents[1] / "jobs/rank.py"
    spec = importlib.util.spec_from_file_location("jobs_rank", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tuned(name, journal, steps):
    job = jobs().job_of(name)
    model = syncline_apply.autotune(job.module, job.optimizer, journal=journal, steps=int(steps))
    begun, taken = time.perf_counter(), 0
    while model._tuner.course is not None:
        job.step(model)
        taken += 1
    if dist.get_rank() == 0:
        print(f"{name}: {taken} steps, {time.perf_counter() - begun:.1f} s", flush=True)


def fixed(name, journal, rounds):
    """All settings of a journal in turns of a few steps, none is given up: as the job itself tries
    some, but for longer."""
    job = jobs().job_of(name)
    syncline_tuner._BLOCK = STEPS
    syncline_tuner._left = lambda rounds, names: names
    with open(journal, encoding="utf-8") as file:
        told = json.load(file)
    steps = int(rounds) * (1 + STEPS) * (1 + len(told["settings"])) + 1
    model = syncline_apply.autotune(job.module, job.optimizer, journal=journal, steps=steps)
    job.step(model)
    assert model.tuning["settings"] == told["settings"], "the journal is of another job"
    while model._tuner.course is not None:
        job.step(model)


if __name__ == "__main__":
    with contextlib.suppress(PermissionError):
        os.nice(-5)  # before others that compile, as far as they may
    # As the recorder advises for Gloo: a thread that wakes up takes the processor from none.
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    ranks.run(tuned, fixed, quiet=False)
