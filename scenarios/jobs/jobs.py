#!/usr/bin/env python3
"""Real PyTorch jobs in the lab: recorded, predicted, then measured, in this order.

    scenarios/jobs/jobs.py [--ranks 2] [--rates 1gbit 500mbit] [--jobs mlp ...] [--rounds 6]
                           [--folder build/jobs] [--keep scenarios/published/jobs]

For each job and rate: the job records itself (syncline_record); every strategy is priced and the
best one searched and written as a file, before any of them is run; then all are measured in turns,
each applied as a user would, and the measured steps stand beside the strategies in a scenario, which
`syncline fidelity --set jobs` prices anew. What is done already, round by round, is not done again.
Needs root, python3-torch, python3-torchvision (resnet18), and a quiet machine for an hour.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from experiment import PYTHON, ROOT, read, syncline, write  # noqa: E402
CAPS = (1, 2, 4, 8, 16, 25, 1000)
JOBS = ("mlp", "convnet", "transformer", "resnet18")


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
                           OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        syncline("lab", "--ranks", self.options.ranks, "--rate", self.rate, "--", PYTHON,
                 HERE / "rank.py", what, self.job, self.folder, turn, environment=environment,
                 captured=False)

    def record(self):
        if not self.path("json").exists():
            self.in_lab("record", 0)

    def predict(self):
        """Prices every strategy and writes what applies it."""
        if self.path("measure.settings.json").exists():
            return
        scenario = read(self.path("json"))
        recorded = scenario["strategies"][0]["config"]
        scenario.update(strategies=strategies(recorded, scenario["workload"]["tensors"],
                                              self.options.ranks), published=[])
        write(self.path("scenario.json"), scenario)
        write(self.path("predicted.json"),
              json.loads(syncline("run", self.path("scenario.json"), "--format", "json")))
        settings = [self.setting(strategy) for strategy in scenario["strategies"]]
        write(self.path("measure.settings.json"), settings + [self.tuned(scenario)])

    def setting(self, strategy):
        if strategy.get("dialect") == "pytorch":
            arguments = {key: value for key, value in strategy["config"].items() if key != "torch"}
            return {"name": strategy["name"], "ddp": arguments}
        file = self.path(strategy["name"].replace(" ", "_") + ".py")
        syncline("emit", self.path("scenario.json"), "--strategy", strategy["name"], "--dialect",
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
                self.in_lab("measure", turn)

    def measured(self):
        """{strategy: means of groups of steps} of all rounds."""
        rounds = [read(self.path(f"measure.{turn}.json")) for turn in range(self.options.rounds)]
        return {name: [mean for one in rounds for mean in one[name]] for name in rounds[0]}

    def keep(self):
        """The scenario with what was measured, and what noise there was."""
        scenario = read(self.path("scenario.json"))
        choice = dict(read(self.path("tuned.json"))["choice"], name="tuned")
        scenario["name"] = f"{self.job}, {self.options.ranks} ranks at {self.rate}"
        scenario["strategies"].append(choice)
        scenario["baseline"] = "cap 25"
        scenario["published"] = []
        for name, means in self.measured().items():
            low, middle, high = statistics.quantiles(means, n=4)
            scenario["published"].append({
                "strategy": name, "use": "predicted", "step_time_s": round(middle, 6),
                "source": f"python3-torch in the lab, median of {len(means)} means of 4 steps, half "
                          f"of them from {1e3 * low:.1f} to {1e3 * high:.1f} ms; predicted before"})
        self.options.keep.mkdir(parents=True, exist_ok=True)
        write(self.options.keep / f"{self.job}_{self.options.ranks}x{self.rate}.json", scenario)


def strategies(recorded, tensors, ranks):
    def ddp(name, **config):
        return {"name": name, "dialect": "pytorch", "config": {"torch": recorded["torch"], **config}}
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
    parser.add_argument("--stages", nargs="+", default=["record", "predict", "measure", "keep"])
    options = parser.parse_args()
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
