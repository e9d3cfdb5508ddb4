#!/usr/bin/env python3
"""Jobs that tune themselves in the lab, and every fixed setting in turns: what each chose, what that
cost, and how many steps Horovod's rule takes (NOTES.md).

    scenarios/autotune/autotune.py [--ranks 2] [--rates 1gbit ...] [--jobs mlp convnet] [--rounds 8]
                                   [--folder build/autotune]

What is done is not done again. Needs root and python3-torch, and half an hour.
"""

import ast
import json
import math
import pathlib
import random
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from experiment import Experiment, parser_of, read, syncline, write  # noqa: E402

JOBS = ("mlp", "convnet", "transformer", "resnet18")
STAGES = ("tune", "fixed", "table")
DDP = "DistributedDataParallel"
CAPS = (1, 2, 4, 8)  # MiB, of DistributedDataParallel's bucket_cap_mb, by the file
HORIZON = 2000  # steps over which the cost of tuning is spread


class Cell(Experiment):
    """One job behind links of one rate."""

    def __init__(self, options, ranks, rate, job):
        super().__init__(options, HERE / "rank.py", ranks, job, f"{ranks}x{rate}")
        self.rate = rate

    def path(self, ending):
        return self.folder / f"{self.job}.{ending}.json"

    def tune(self):
        if not self.path("journal").exists() or "kept" not in read(self.path("journal")):
            self.in_lab(self.rate, "tuned", self.job, self.path("journal"), self.options.budget)

    def fixed(self):
        """What was tried and other sizes of buckets, as a journal that is to be gone through."""
        told = read(self.path("journal"))
        if not self.path("fixed").exists():
            settings = [s for s in told["settings"] if s["name"] != DDP]
            settings += [self.size(told["recorded"], cap) for cap in CAPS]
            write(self.path("fixed"), {**{key: told[key] for key in ("job", "asked", "first")},
                                       "settings": settings, "predicted": {}})
        if "kept" not in read(self.path("fixed")):
            self.in_lab(self.rate, "fixed", self.job, self.path("fixed"), self.options.rounds)

    def size(self, recorded, cap):
        name, file = f"{cap} MiB as DDP has it", self.folder / f"{self.job}.size.py"
        scenario = self.path("size")
        write(scenario, {**recorded, "published": [], "strategies": [
            {"name": name, "dialect": "pytorch", "config": {"bucket_cap_mb": cap}}]})
        syncline("emit", scenario, "--strategy", name, "--dialect", "pytorch", "--python", file)
        return {"name": name, "table": {**_table(file.read_text(encoding="utf-8")), "name": name}}

    def row(self):
        told = read(self.path("journal"))
        rounds = read(self.path("fixed"))["rounds"]
        fixed = {name: [math.exp(taken[name]) for taken in rounds] for name in rounds[0]}
        kept = told["kept"]
        # The best of the one half of the rounds is compared in the other, and the other way round:
        # the quickest of many that are alike was lucky.
        loss, doubt = behind(fixed, kept)
        gain = told.get("gain", {"percent": 0.0, "low": 0.0, "high": 0.0})
        horovod = Horovod(self, told)
        return [self.job, self.rate, f"{1e3 * statistics.median(fixed[DDP]):.0f} ms", told["kept"],
                f"{gain['percent']:.1f} ({gain['low']:.1f} to {gain['high']:.1f})",
                f"{100 * ddp_over(fixed, kept):.1f}", f"{100 * loss:.1f} +- {100 * doubt:.1f}",
                str(len(told["steps"])), f"{100 * told['cost_steps'] / HORIZON:.2f}",
                str(horovod.steps), f"{100 * horovod.loss():.1f}",
                f"{100 * horovod.cost() / HORIZON:.1f}"]


def _table(script):
    """STRATEGY of a file that the program wrote."""
    return next(ast.literal_eval(node.value) for node in ast.parse(script).body
                if isinstance(node, ast.Assign) and node.targets[0].id == "STRATEGY")


def behind(fixed, kept):
    """(how much longer the kept setting takes than the best, its standard error)."""
    count = len(fixed[kept])
    losses = []
    for begin in (0, 1):
        judged = {name: statistics.fmean(map(math.log, times[begin::2]))
                  for name, times in fixed.items()}
        best = min(judged, key=judged.get)
        losses += [math.log(fixed[kept][i] / fixed[best][i]) for i in range(1 - begin, count, 2)]
    return math.expm1(statistics.fmean(losses)), statistics.stdev(losses) / math.sqrt(count)


def ddp_over(fixed, kept):
    return math.expm1(statistics.fmean(math.log(a / b) for a, b in zip(fixed[DDP], fixed[kept])))


class Horovod:
    """Its tuner (parameter_manager.cc): 3 warm-ups and 21 evaluations of threshold (0 to 64 MiB) and
    cycle time (1 to 100 ms), of five means of ten steps each; four fixed points, then those of the
    highest expected improvement. Its steps are Syncline's predictions by Horovod's rules for the
    recorded job, with the noise of the measured ones."""

    STARTS = [(4, 5), (32, 50), (16, 25), (8, 10)]
    EVALUATIONS, WARM, STEPS = 21, 3, 50
    NOISE, MARGIN = 0.8, 0.01

    def __init__(self, cell, told):
        self.cell, self.scenario = cell, told["recorded"]
        self.steps = (self.WARM + self.EVALUATIONS) * self.STEPS
        self.grid = [(mib, ms) for mib in (0.1, 1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
                     for ms in (1, 2.5, 5, 10, 17, 25, 35, 50, 70, 100)]
        self.times = self._predicted()
        self.tried = self._search()

    def _predicted(self):
        """{(MiB, ms): seconds}."""
        file = self.cell.path("horovod")
        if not file.exists():
            listed = [{"name": f"{mib} MiB, {ms} ms", "dialect": "horovod",
                       "config": {"HOROVOD_FUSION_THRESHOLD": int(mib * 2**20),
                                  "HOROVOD_CYCLE_TIME": ms}} for mib, ms in self.grid]
            scenario = self.cell.path("horovod_scenario")
            write(scenario, {**self.scenario, "strategies": listed, "published": []})
            rows = json.loads(syncline("run", scenario, "--format", "json"))["rows"]
            write(file, {row["strategy"]: row["step_time_s"] for row in rows})
        known = read(file)
        return {(mib, ms): known[f"{mib} MiB, {ms} ms"] for mib, ms in self.grid}

    def _search(self):
        import numpy  # of the table alone
        dice = random.Random(1)
        nearest = [min(self.grid, key=lambda at, s=start: math.dist(at, s)) for start in self.STARTS]
        tried, scores = [], []
        for turn in range(self.EVALUATIONS):
            at = nearest[turn] if turn < len(nearest) else self._proposal(numpy, tried, scores)
            tried.append(at)
            scores.append(1 / (self.times[at] * dice.gauss(1, 0.02 / math.sqrt(self.STEPS))))
        self.best = tried[scores.index(max(scores))]
        return tried

    def _proposal(self, numpy, tried, scores):
        x, y = numpy.array(tried, float), numpy.array(scores)
        y = (y - y.mean()) / (y.std() or 1)
        at = numpy.array(self.grid, float)

        def kernel(a, b, length, deviation):
            apart = ((a[:, None] - b[None]) ** 2).sum(2)
            return deviation ** 2 * numpy.exp(-apart / (2 * length ** 2))

        def loss(of):
            noisy = kernel(x, x, *of) + self.NOISE ** 2 * numpy.eye(len(x))
            return 0.5 * y @ numpy.linalg.solve(noisy, y) + 0.5 * numpy.linalg.slogdet(noisy)[1]
        sizes = [(length, deviation) for length in (0.3, 1, 3, 10, 30, 100)
                 for deviation in (0.1, 0.3, 1, 3)]
        fitted = min(sizes, key=loss)
        noisy = kernel(x, x, *fitted) + self.NOISE ** 2 * numpy.eye(len(x))
        across = kernel(at, x, *fitted)
        mean = across @ numpy.linalg.solve(noisy, y)
        variance = fitted[1] ** 2 - (across * numpy.linalg.solve(noisy, across.T).T).sum(1)
        deviation = numpy.sqrt(numpy.maximum(variance, 1e-12))
        best = (kernel(x, x, *fitted) @ numpy.linalg.solve(noisy, y)).max()
        z = (mean - best - self.MARGIN) / deviation
        normal = statistics.NormalDist()
        improvement = deviation * numpy.array([v * normal.cdf(v) + normal.pdf(v) for v in z])
        return self.grid[int(improvement.argmax())]

    def loss(self):
        """How much longer a step takes by its choice than by the best of the grid."""
        return self.times[self.best] / min(self.times.values()) - 1

    def cost(self):
        """Of its steps, in steps by its own choice; warm-ups run at the first point."""
        run = [self.tried[0]] * self.WARM + self.tried
        return sum(self.STEPS * (self.times[at] / self.times[self.best] - 1) for at in run)


def main():
    parser = parser_of(__doc__, "autotune", JOBS, STAGES, ["2gbit", "1gbit", "500mbit"])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--budget", type=int, default=200)
    options = parser.parse_args()
    cells = [Cell(options, ranks, rate, job) for ranks in options.ranks for rate in options.rates
             for job in options.jobs]
    for cell in cells:
        if "tune" in options.stages:
            cell.tune()
        if "fixed" in options.stages:
            cell.fixed()
    if "table" in options.stages:
        print("job | rate | DDP step | kept | gain in the job, % (95 %) | gain in turns, % | over the "
              "best, % | steps | cost, % | Horovod: steps | over its best, % | cost, %")
        for cell in cells:
            if cell.path("fixed").exists() and "kept" in read(cell.path("fixed")):
                print(" | ".join(cell.row()))


if __name__ == "__main__":
    main()
