#!/usr/bin/env python3
"""Sharded jobs in the lab: one setting of each package is recorded, its others are predicted from
that, then all are measured (NOTES.md).

    scenarios/sharded/sharded.py [--ranks 2 4] [--rates 200mbit 1gbit 5gbit] [--jobs blocks ...]
                                 [--folder build/sharded] [--keep scenarios/published/sharded]

`syncline fidelity --set sharded` predicts anew what is kept. What is done is not done again. Needs
root, what `make frameworks` makes, and a quiet machine for an hour.
"""

import os
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from experiment import ROOT, Experiment, measured_row, parser_of, read, write  # noqa: E402

FRAMEWORKS = pathlib.Path(os.environ.get("FRAMEWORKS", ROOT / "build/frameworks"))
JOBS = ("blocks", "transformer")
STAGES = ("record", "measure", "keep", "table")


def fsdp_strategies(recorded, ranks):
    """FSDP2's first, which is recorded."""
    config = recorded["config"]
    listed = {"FSDP2": config, "FSDP2, kept": {**config, "reshard_after_forward": False},
              "FSDP1": {"version": 1, "units": config["units"], "use_orig_params": True},
              **({"HSDP": {**config, "mesh": [-1, 2]}} if ranks == 4 else {})}
    return [{"name": name, "dialect": "fsdp", "config": config} for name, config in listed.items()
            ] + [{"name": "DDP", "dialect": "pytorch", "config": {}}]


def ddp_strategies(recorded, ranks):
    return [{**recorded, "name": "DDP"}]


def zero_strategies(recorded, ranks):
    config = recorded["config"]
    return [{"name": f"ZeRO {stage}", "dialect": "deepspeed",
             "config": {**config, "zero_optimization": {**config["zero_optimization"],
                                                        "stage": stage}}} for stage in (3, 2, 1)]


class Package:
    """Who trains, the setting that is recorded, and those that are predicted from it."""

    def __init__(self, name, folder, recorded, strategies):
        self.name, self.recorded, self.strategies = name, recorded, strategies
        self.python = FRAMEWORKS / folder / "bin/python"


PACKAGES = (Package("ddp", "torch2.15", "DDP", ddp_strategies),
            Package("fsdp", "torch2.15", "FSDP2", fsdp_strategies),
            Package("zero", "torch2.6", "ZeRO 3", zero_strategies))


class Sharded(Experiment):
    """One job behind links of one rate, as one package trains it."""

    def __init__(self, options, ranks, rate, job, package):
        super().__init__(options, HERE / "rank.py", ranks, job, f"{ranks}x{rate}")
        self.rate, self.package = rate, package
        self.recording_ = self.recording(job, package.name)
        self.measured = self.folder / f"{job}.{package.name}.measured.json"

    def record(self):
        """Records the one setting, and prices all from that."""
        recording = self.recording_
        if not recording.job.exists():
            self.in_lab(self.rate, "record", self.job, self.package.recorded, recording.job,
                        self.options.steps, python=self.package.python)
        if not recording.predicted.exists():
            scenario = read(recording.job)
            write(recording.scenario, {**scenario, "published": [], "strategies":
                                       self.package.strategies(scenario["strategies"][0], self.ranks)})
            recording.predict()

    def measure(self):
        if not self.measured.exists():
            names = [row["strategy"] for row in read(self.recording_.predicted)["rows"]]
            self.in_lab(self.rate, "measure", self.job, ";".join(names), self.measured,
                        self.options.visits, python=self.package.python)

    def keep(self):
        """The scenario with what was measured, and what noise there was."""
        scenario = read(self.recording_.scenario)
        scenario["name"] = f"{self.job}, {self.ranks} ranks at {self.rate}, {self.package.name}"
        for name, steps in read(self.measured).items():
            low, middle, high = statistics.quantiles(steps, n=4)
            scenario["published"].append(measured_row(
                name, middle, f"median of {len(steps)} steps, half of them from {1e3 * low:.1f} to "
                f"{1e3 * high:.1f} ms; predicted before, from {self.package.recorded}"))
        self.options.keep.mkdir(parents=True, exist_ok=True)
        write(self.options.keep / f"{self.job}_{self.ranks}x{self.rate}_{self.package.name}.json",
              scenario)

    def rows(self):
        """(setting, predicted, measured), seconds."""
        measured = read(self.measured)
        return [(self.named(row["strategy"]), row["step_time_s"],
                 statistics.median(measured[row["strategy"]]))
                for row in read(self.recording_.predicted)["rows"]]

    def named(self, setting):
        apart = setting == "DDP" and self.package.recorded != setting
        return f"{setting}{BY_ANOTHER}" if apart else setting


BY_ANOTHER = " by FSDP2's recording"


def print_table(cells):
    """Errors of each setting over all cells, and how often the fastest of a cell is named."""
    errors, losses = {}, []
    for rows in cells.values():
        for name, predicted, measured in rows:
            errors.setdefault(name, []).append(predicted / measured - 1)
        own = [row for row in rows if not row[0].endswith(BY_ANOTHER)]
        named = min(own, key=lambda row: row[1])
        losses.append(named[2] / min(row[2] for row in own) - 1)
    print("setting | cells | median error, % | worst, %")
    for name, listed in errors.items():
        print(f"{name} | {len(listed)} | {100 * statistics.median(map(abs, listed)):.1f} | "
              f"{100 * max(listed, key=abs):+.1f}")
    print(f"the fastest is named in {losses.count(0)} of {len(losses)} cells; the named one is at "
          f"most {100 * max(losses):.1f} % over it")


def main():
    parser = parser_of(__doc__, "sharded", JOBS, STAGES, ["200mbit", "1gbit", "5gbit"])
    parser.set_defaults(ranks=[2, 4])
    parser.add_argument("--steps", type=int, default=12, help="to record, of each kind")
    parser.add_argument("--visits", type=int, default=5, help="to a setting")
    options = parser.parse_args()
    cells = {}
    for ranks in options.ranks:
        for rate in options.rates:
            for job in options.jobs:
                for package in PACKAGES:
                    experiment = Sharded(options, ranks, rate, job, package)
                    for stage in options.stages:
                        if stage != "table":
                            getattr(experiment, stage)()
                    if experiment.measured.exists():
                        cells.setdefault((ranks, rate, job), []).extend(experiment.rows())
    if "table" in options.stages and cells:
        print_table(cells)


if __name__ == "__main__":
    main()
