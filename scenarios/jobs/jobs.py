#!/usr/bin/env python3
"""Real PyTorch jobs in the lab: recorded, predicted, then measured, in this order (NOTES.md).

    scenarios/jobs/jobs.py [--ranks 2] [--rates 1gbit 500mbit] [--jobs mlp ...] [--rounds 6]
                           [--folder build/jobs] [--keep scenarios/published/jobs]
                           [--machine "machine B"]

`syncline fidelity --set jobs` predicts anew what is kept. What is done is not done again. Needs root,
python3-torch, python3-torchvision (resnet18), and a quiet machine for an hour and a half.
"""

import itertools
import json
import math
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from experiment import (PYTHON, Experiment, measured_row, middle, parser_of, read,  # noqa: E402
                        syncline, write)

CAPS = (1, 2, 4, 8, 16, 25, 1000)
JOBS = ("mlp", "convnet", "transformer", "resnet18")
STAGES = ("record", "predict", "measure", "keep")


class Job(Experiment):
    """One job behind links of one rate."""

    def __init__(self, options, ranks, rate, job):
        super().__init__(options, HERE / "rank.py", ranks, job, f"{ranks}x{rate}")
        self.rate = rate

    def path(self, ending):
        return self.folder / f"{self.job}.{ending}"

    def record(self, turn=0):
        """Records the job, and prices every strategy from that."""
        recording = self.recording(self.job, turn)
        looks = round(240 * self.options.patience)  # of a quarter of a second
        self.recorded(self.rate, recording, 48, looks, lambda scenario: {
            "strategies": strategies(scenario["workload"]["tensors"], self.ranks)})
        if not recording.predicted.exists():
            recording.predict()

    def predict(self):
        """Writes what applies each strategy, and the best of a search."""
        if self.path("measure.settings.json").exists():
            return
        scenario = read(self.recording(self.job, 0).scenario)
        settings = [self.setting(strategy) for strategy in scenario["strategies"]]
        write(self.path("measure.settings.json"), settings + [self.tuned(scenario)])

    def setting(self, strategy):
        name = strategy["name"]
        if strategy.get("dialect") == "pytorch":
            return {"name": name, "ddp": strategy["config"]}
        scenario = self.recording(self.job, 0).scenario
        return {"name": name, "apply": self.emit(scenario, name, f"{self.job}.")}

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
            measured = self.path(f"measure.{turn}.json")
            if not measured.exists():
                self.record(turn)
                self.in_lab(self.rate, "measure", self.job, self.path("measure.settings.json"),
                            measured, turn)

    def keep(self):
        """The scenario with what was measured, and what noise there was."""
        turns = range(self.options.rounds)
        scenario = read(middle([self.recording(self.job, turn) for turn in turns]).scenario)
        machine = self.options.machine
        scenario["name"] = ", ".join(filter(None, (
            self.job, f"{self.ranks} ranks at {self.rate}", machine)))
        scenario["strategies"].append(dict(read(self.path("tuned.json"))["best"], name="tuned"))
        scenario["baseline"] = "cap 25"
        rounds = [read(self.path(f"measure.{turn}.json")) for turn in turns]
        for name in rounds[0]:
            groups = [group for one in rounds for group in one[name]]
            low, _, high = statistics.quantiles(map(statistics.fmean, groups), n=4)
            scenario["published"].append(measured_row(
                name, typical(groups), f"median of {len(groups)} visits, the means of half of them "
                f"from {1e3 * low:.1f} to {1e3 * high:.1f} ms; predicted before"))
        self.options.keep.mkdir(parents=True, exist_ok=True)
        name = "_".join([self.job, f"{self.ranks}x{self.rate}", *machine.lower().split()])
        write(self.options.keep / f"{name}.json", scenario)


def typical(groups):
    """The step that is neither slow nor quick: the median of each of a period's steps, their mean.
    A mean over steps would hold the seconds in which others took a share of the machine; what is
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
    ends = list(itertools.accumulate(math.prod(tensor["shape"]) for tensor in tensors))
    groups = [[], [], []]
    for i, before in enumerate([0, *ends[:-1]]):
        groups[min(2, 3 * (before + 1) // (ends[-1] + 1))].append(i)
    return [group for group in groups if group]


def main():
    parser = parser_of(__doc__, "jobs", JOBS, STAGES, ["1gbit", "500mbit"])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--machine", default="",
                        help="what tells the tables of this machine from another's")
    parser.add_argument("--patience", type=float, default=10, metavar="MINUTES",
                        help="to wait for a quiet machine before each recording")
    options = parser.parse_args()
    if "resnet18" in options.jobs and "record" in options.stages and subprocess.run(
            [PYTHON, "-c", "import torchvision"], capture_output=True, check=False).returncode != 0:
        sys.exit(f"jobs.py: resnet18 needs torchvision, which {PYTHON} has not: "
                 "python3-torchvision, or --jobs mlp convnet transformer")
    for place in itertools.product(options.ranks, options.rates, options.jobs):
        experiment = Job(options, *place)
        for stage in options.stages:
            getattr(experiment, stage)()


if __name__ == "__main__":
    main()
