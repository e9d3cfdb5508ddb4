#!/usr/bin/env python3
"""Real PyTorch jobs in the lab: recorded, predicted, then measured, in this order.

    scenarios/jobs/jobs.py [--ranks 2] [--rates 1gbit 500mbit] [--jobs mlp ...] [--rounds 6]
                           [--folder build/jobs] [--keep scenarios/published/jobs]
                           [--machine "machine B"]

For each job and rate: the job records itself (syncline_record); every strategy is priced and the
best one searched and written as a file, before any of them is run. Then, round by round, the job
records itself anew, the strategies are priced from that, and all are measured in turns, each applied
as a user would: a machine that is slower for an hour is so for both. The measured steps stand beside
the strategies in the scenario of the recording that is in the middle of all by its predicted steps,
which `syncline fidelity --set jobs` prices anew. What is done already is not done again. Needs root,
python3-torch, python3-torchvision (resnet18), and a quiet machine for an hour and a half.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from experiment import PYTHON, ROOT, read, syncline, wait_for_quiet, write  # noqa: E402
CAPS = (1, 2, 4, 8, 16, 25, 1000)
JOBS = ("mlp", "convnet", "transformer", "resnet18")


# The C library gives memory back to the system and takes it anew within a step, or does not, by what
# a process has allocated before: 0 to 10,000 pages a step of the same job, up to a seventh of it.
HELD_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1"}


class Experiment:
    """One job behind links of one rate."""

    def __init__(self, options, job, rate):
        self.options = options
        self.job = job
        self.rate = rate
        self.folder = options.folder / f"{options.ranks}x{rate}"
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, ending):
        return self.folder / f"{self.job}.{ending}"

    def in_lab(self, what, turn):
        modules = [str(self.options.folder), str(HERE)]
        environment = dict(os.environ, PYTHONPATH=":".join(modules), PYTHONDONTWRITEBYTECODE="1",
                           OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", **HELD_MEMORY)
        syncline("lab", "--ranks", self.options.ranks, "--rate", self.rate, "--", PYTHON,
                 HERE / "rank.py", what, self.job, self.folder, turn, environment=environment,
                 captured=False)

    def between_quiet_moments(self, timed, tries=3):
        """Again where others' work came in between, whatever was timed."""
        for _ in range(tries):
            wait_for_quiet(self.options.patience)
            timed()
            if wait_for_quiet(0):
                break

    def turn(self, turn, ending):
        return self.path(f"{turn}.{ending}")

    def record(self):
        self.recording(0)

    def recording(self, turn):
        """Records the job, and prices every strategy from that."""
        if not self.turn(turn, "json").exists():
            self.between_quiet_moments(lambda: self.in_lab("record", turn))
        if self.turn(turn, "predicted.json").exists():
            return
        scenario = read(self.turn(turn, "json"))
        scenario.update(strategies=strategies(scenario["workload"]["tensors"], self.options.ranks),
                        published=[])
        write(self.turn(turn, "scenario.json"), scenario)
        write(self.turn(turn, "predicted.json"),
              json.loads(syncline("run", self.turn(turn, "scenario.json"), "--format", "json")))

    def predict(self):
        """Writes what applies each strategy, and the best of a search."""
        if self.path("measure.settings.json").exists():
            return
        scenario = read(self.turn(0, "scenario.json"))
        settings = [self.setting(strategy) for strategy in scenario["strategies"]]
        write(self.path("measure.settings.json"), settings + [self.tuned(scenario)])

    def setting(self, strategy):
        if strategy.get("dialect") == "pytorch":
            return {"name": strategy["name"], "ddp": strategy["config"]}
        file = self.path(strategy["name"].replace(" ", "_") + ".py")
        syncline("emit", self.turn(0, "scenario.json"), "--strategy", strategy["name"], "--dialect",
                 "pytorch", "--python", file)
        return {"name": strategy["name"], "apply": str(file)}

    def tuned(self, scenario):
        """The best of a search around DDP's default, as the file that applies it."""
        file = self.path("tuned.py")
        default = next(s for s in scenario["strategies"] if s["name"] == "cap 25")
        write(self.path("tune.json"), {**scenario, "strategies": [default]})
        found = json.loads(syncline("tune", self.path("tune.json"), "--emit", "pytorch", "--python",
                                    file, "--format", "json"))
        write(self.path("tuned.json"), found)
        return {"name": "tuned", "apply": str(file)}

    def measure(self):
        for turn in range(self.options.rounds):
            if not self.path(f"measure.{turn}.json").exists():
                self.recording(turn)
                self.in_lab("measure", turn)

    def measured(self):
        """{strategy: groups of steps, seconds} of all rounds."""
        rounds = [read(self.path(f"measure.{turn}.json")) for turn in range(self.options.rounds)]
        return {name: [group for one in rounds for group in one[name]] for name in rounds[0]}

    def middle(self):
        """The round whose recording predicts the steps in the middle of all."""
        def long(turn):
            rows = read(self.turn(turn, "predicted.json"))["rows"]
            return statistics.fmean(math.log(row["step_time_s"]) for row in rows)
        return sorted(range(self.options.rounds), key=long)[(self.options.rounds - 1) // 2]

    def keep(self):
        """The scenario with what was measured, and what noise there was."""
        scenario = read(self.turn(self.middle(), "scenario.json"))
        choice = dict(read(self.path("tuned.json"))["best"], name="tuned")
        machine = self.options.machine
        scenario["name"] = ", ".join(filter(None, (
            self.job, f"{self.options.ranks} ranks at {self.rate}", machine)))
        scenario["strategies"].append(choice)
        scenario["baseline"] = "cap 25"
        scenario["published"] = []
        for name, groups in self.measured().items():
            low, _, high = statistics.quantiles(map(statistics.fmean, groups), n=4)
            scenario["published"].append({
                "strategy": name, "use": "predicted", "step_time_s": round(typical(groups), 6),
                "source": f"python3-torch in the lab, median of {len(groups)} visits, the means of "
                          f"half of them from {1e3 * low:.1f} to {1e3 * high:.1f} ms; predicted "
                          "before"})
        self.options.keep.mkdir(parents=True, exist_ok=True)
        name = "_".join([self.job, f"{self.options.ranks}x{self.rate}", *machine.lower().split()])
        write(self.options.keep / f"{name}.json", scenario)


def typical(groups):
    """The step that is neither slow nor quick: the median of each of a period's steps, their mean. A
    mean over steps would hold the seconds in which others took a share of the machine; what is
    recorded are medians too."""
    return statistics.fmean(statistics.median(steps) for steps in zip(*groups))


def strategies(tensors, ranks):
    def ddp(name, **config):
        return {"name": name, "dialect": "pytorch", "config": config}
    listed = [ddp(f"cap {cap}", bucket_cap_mb=cap) for cap in CAPS]
    listed += [ddp("views", gradient_as_bucket_view=True),
               ddp("fp16 hook", comm_hook="fp16_compress_hook"),
               {"name": "two groups", "streams": 2, "fusion": {"rule": "size", "size_mb": 2}},
               {"name": "explicit buckets",
                "fusion": {"rule": "groups", "groups": thirds(tensors)}},
               {"name": "dgc", "compression": {"codec": "dgc", "sparsity": [0.99]}},
               {"name": "localsgd 4", "local_sgd": {"period": 4}, "fusion": {"rule": "one"}}]
    if ranks == 4:
        listed.append({"name": "two levels", "hierarchy": {"group_size": 2},
                       "fusion": {"rule": "size", "size_mb": 4}})
    return listed


def thirds(tensors):
    """Three buckets of about as many elements."""
    counts = [1]
    for tensor in tensors:
        elements = 1
        for extent in tensor["shape"]:
            elements *= extent
        counts.append(counts[-1] + elements)
    groups = [[], [], []]
    for i, before in enumerate(counts[:-1]):
        groups[min(2, 3 * before // counts[-1])].append(i)
    return [group for group in groups if group]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rates", nargs="+", default=["1gbit", "500mbit"])
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=JOBS)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/jobs")
    parser.add_argument("--keep", type=pathlib.Path, default=ROOT / "scenarios/published/jobs")
    parser.add_argument("--machine", default="",
                        help="what tells the tables of this machine from another's")
    parser.add_argument("--patience", type=float, default=10, metavar="MINUTES",
                        help="to wait for a quiet machine ahead of each round")
    parser.add_argument("--stages", nargs="+", default=["record", "predict", "measure", "keep"])
    options = parser.parse_args()
    if "resnet18" in options.jobs and "record" in options.stages and subprocess.run(
            [PYTHON, "-c", "import torchvision"], capture_output=True, check=False).returncode != 0:
        sys.exit(f"jobs.py: resnet18 needs torchvision, which {PYTHON} has not: python3-torchvision, "
                 "or --jobs mlp convnet transformer")
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "syncline_record.py").unlink(missing_ok=True)
    syncline("record", "-o", options.folder / "syncline_record.py")
    for rate in options.rates:
        for job in options.jobs:
            experiment = Experiment(options, job, rate)
            for stage in options.stages:
                getattr(experiment, stage)()


if __name__ == "__main__":
    main()
