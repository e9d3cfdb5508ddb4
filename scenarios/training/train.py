#!/usr/bin/env python3
"""Real trainings in the lab, to an accuracy: predicted from other seeds, then measured (NOTES.md).

    scenarios/training/train.py [--ranks 2 4] [--jobs mlp convnet] [--rates 500mbit 50mbit]
                                [--stages record tune curves measure keep]
                                [--seconds 3600] [--folder build/training] [--seeds 5]
                                [--measured-seeds 5] [--tuning-seeds 2]
                                [--keep scenarios/published/training]
    scenarios/training/train.py --ranks 2 --jobs characters --rates 500mbit-50ms 50mbit-50ms

Each result has a file of its own and what is done is not done again: the script ends after
--seconds and says what is left. Needs root, python3-torch and python3-sklearn (for its digits).
"""

import collections
import csv
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from experiment import Experiment, measured_row, middle, parser_of, read, write  # noqa: E402

STAGES = ("record", "tune", "curves", "measure", "keep")
STEPS = 320
EVERY, WARM_UP = 16, 20  # steps between two looks; in which the learning rate rises: rank.py's
TARGETS = {"mlp": 0.96, "convnet": 0.96, "characters": 0.40}
LEARNING_RATES = (0.03, 0.1, 0.3)
TUNING_SEEDS = (100, 101)
CURVE_SEEDS = tuple(range(5, 10))
MEASURED_SEEDS = (0, 1, 2, 3, 4)
FREE = "10gbit"  # holds nobody up
RAMP = {"codec": "dgc", "sparsity": [0.75, 0.9375, 0.984375, 0.99], "rampup_step": 80,
        "min_elements": 4096}
# Strategies as a scenario names them, and the part of DGC that is left out.
DENSE = ({"name": "dense", "dialect": "pytorch", "config": {}}, None)
POWERSGD = ({"name": "powersgd 4", "fusion": {"rule": "one"},
             "compression": {"codec": "powersgd", "rank": 4, "rampup_begin_step": 10}}, None)


def far_apart():
    """What is tried between two places: dense, averaging now and then, outer steps in one go or
    streaming, each in fp32 and in int8, and what sends less in each step."""
    def outer(name, period, fragments=1, delay=0):
        local = {"period": period, "fragments": fragments, "delay": delay,
                 "outer": {"optimizer": "nesterov"}}
        plain = {"name": name, "local_sgd": local, "fusion": {"rule": "one"}}
        return [(plain, None),
                ({**plain, "name": f"{name} int8", "compression": {"codec": "int8"}}, None)]
    return [DENSE,
            ({"name": "localsgd 10", "local_sgd": {"period": 10}, "fusion": {"rule": "one"}}, None),
            *outer("diloco 10", 10), *outer("diloco 30", 30), *outer("diloco 100", 100),
            *outer("streaming 2", 32, 2, 4), *outer("streaming 4", 32, 4, 4),
            POWERSGD,
            ({"name": "dgc", "compression": RAMP}, None)]


def strategies(job):
    """As a scenario names them, and the part of DGC that is left out."""
    if job == "characters":
        return far_apart()

    def local(name, period, **more):
        return {"name": name, "local_sgd": {"period": period, **more}, "fusion": {"rule": "one"}}

    def dgc(name, **changed):
        return {"name": name, "compression": {**RAMP, **changed}}
    return [DENSE,
            ({"name": "fp16", "fusion": {"rule": "one"}, "compression": {"codec": "fp16"}}, None),
            POWERSGD,
            (dgc("dgc"), None),
            (dgc("dgc without warm-up", sparsity=RAMP["sparsity"][-1:], rampup_step=1), None),
            (dgc("dgc without momentum correction"), "momentum correction"),
            (dgc("dgc without masking"), "masking"),
            *((local(f"localsgd {k}", k), None) for k in (2, 4, 8, 16)),
            (local("post-local 8", 8, begin_step=48), None),
            (adaptive(), None)]


def adaptive():
    """By Paddle's rule, which holds the rate against the first step's: a twentieth of the highest,
    as it still rises. Every fourth step once it has risen, if the loss is what it was."""
    return {"name": "localsgd adaptive", "fusion": {"rule": "one"},
            "local_sgd": {"adaptive": True, "init_period": 16 * WARM_UP, "max_period": 16,
                          "begin_step": WARM_UP}}


def training_of(loss):
    """What the adaptive rule follows: of the learning rate only how it moves matters."""
    return {"steps": STEPS, "loss": loss,
            "learning_rate": {"initial": 0.1, "decay": "cosine", "warmup_steps": WARM_UP,
                              "steps": STEPS}}


def steps_to(points, target):
    """The step at which the target is crossed, as syncline says it: by the mean of a look but the
    first and its neighbours, on straight lines; None: never."""
    values = [point[3] for point in points]
    means = values[:1] + [statistics.fmean(values[i - 1:i + 2]) for i in range(1, len(values))]
    for i in range(1, len(means)):
        if means[i] >= target:
            share = (target - means[i - 1]) / (means[i] - means[i - 1])
            return points[i - 1][0] + share * (points[i][0] - points[i - 1][0])
    return None


class Model(Experiment):
    """One model on so many ranks: all of its strategies, seeds and rates."""

    def __init__(self, options, ranks, model):
        super().__init__(options, HERE / "rank.py", ranks, model, f"{model}_{ranks}")
        self.target = TARGETS[model]
        for below in ("apply", "tune", "curves", *options.rates):
            (self.folder / below).mkdir(exist_ok=True)

    def first_recorded(self):
        return self.recording(self.options.rates[0], MEASURED_SEEDS[0]).scenario

    def record(self):
        self.record_as_now(self.options.rates[0], MEASURED_SEEDS[0])
        for strategy, _ in strategies(self.job):
            self.applying(strategy["name"])

    def record_as_now(self, rate, seed):
        steps = 48 if self.job == "characters" else 160  # a step over 50 ms and more is long
        self.recorded(rate, self.recording(rate, seed), steps, 0, lambda _: {
            "name": f"{self.job}, {self.ranks} ranks at {rate}",
            "strategies": [strategy for strategy, _ in strategies(self.job)], "baseline": "dense",
            "training": training_of([[0, 2.3], [STEPS, 0.1]])})  # until curves tell

    def applying(self, name):
        return self.emit(self.first_recorded(), name, "apply/")

    def tasks(self, folder, seeds):
        """The trainings whose results lie in a folder; none while what they need is missing."""
        tuning = folder == "tune"
        if not self.first_recorded().exists() or not tuning and undone(self.tuning()):
            return []
        rates = LEARNING_RATES if tuning else [None]
        return [self.task(folder, strategy, part, seed, rate) for seed in seeds
                for strategy, part in strategies(self.job) for rate in rates]

    def tuning(self):
        return self.tasks("tune", TUNING_SEEDS)

    def task(self, folder, strategy, part, seed, rate):
        name = strategy["name"]
        label = f"{name.replace(' ', '_')}.{seed}" + (f".{rate}" if rate else "")
        return {"model": self.job, "strategy": name, "apply": self.applying(name),
                "leave_out": part, "seed": seed, "rate": rate or self.rate_of(name), "steps": STEPS,
                "target": self.target if folder in self.options.rates else None,
                "out": str(self.folder / folder / f"{label}.json")}

    def train(self, folder, seeds):
        """Trains what has no result yet, as far as time allows."""
        tasks = undone(self.tasks(folder, seeds))
        left = self.options.until - time.monotonic()
        if tasks and left > 0:
            write(self.folder / "tasks.json", tasks)
            self.in_lab(folder if folder in self.options.rates else FREE, "train",
                        self.folder / "tasks.json", left)

    def tune(self):
        self.train("tune", TUNING_SEEDS)

    def rate_of(self, name):
        """The learning rate that took fewest steps to the target; one that missed it counts as
        all of them, and the lower it stayed the longer."""
        def steps(task):
            points = read(task["out"])["points"]
            step = steps_to(points, self.target)
            return 2 * STEPS - STEPS * max(p[3] for p in points) if step is None else step
        tasks = [task for task in self.tuning() if task["strategy"] == name]
        return min(LEARNING_RATES, key=lambda rate: sum(
            steps(task) for task in tasks if task["rate"] == rate))

    def curves(self):
        self.train("curves", CURVE_SEEDS)

    def results(self, folder, seeds):
        found = collections.defaultdict(list)
        for task in self.tasks(folder, seeds):
            if not undone([task]):
                found[task["strategy"]].append(read(task["out"]))
        return found

    def table(self, path, folder, seeds):
        """All points of all trainings, as syncline reads curves; with seconds where it counts."""
        timed = folder in self.options.rates
        with open(path, "w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(["strategy", "seed", "step", *["seconds"] * timed, "loss", "accuracy"])
            for name, runs in self.results(folder, seeds).items():
                for one in runs:
                    for step, seconds, *scores, _ in one["points"]:
                        figures = [seconds] * timed + scores
                        table.writerow([name, one["seed"], step,
                                        *(round(figure, 4) for figure in figures)])

    def predict(self, recording):
        self.table(self.folder / "curves.csv", "curves", CURVE_SEEDS)
        training = training_of(self.loss_of(strategies(self.job)[-1][0]["name"]))
        write(recording.scenario, {**read(recording.scenario), "training": training})
        recording.predict("--objective", "time_to_accuracy", "--target", self.target, "--curves",
                          self.folder / "curves.csv")

    def loss_of(self, name):
        """[step, mean over the seeds of the curves], of the batches: what the adaptive rule sees,
        which is lower than that of images held out. Each mean stands in the middle of its steps."""
        runs = [one["points"] for one in self.results("curves", CURVE_SEEDS)[name]]
        return [[max(0, looks[0][0] - EVERY // 2),
                 round(statistics.fmean(look[4] for look in looks), 4)] for looks in zip(*runs)]

    def measure(self, seed):
        curves = self.tasks("curves", CURVE_SEEDS)
        if not curves or undone(curves):
            return
        for rate in self.options.rates:
            if time.monotonic() > self.options.until:
                return
            recording = self.recording(rate, seed)
            if not recording.predicted.exists():  # first predicted, then measured
                self.record_as_now(rate, seed)
                self.predict(recording)
            self.train(rate, [seed])

    def keep(self):
        """What was predicted from, and what was measured."""
        self.options.keep.mkdir(parents=True, exist_ok=True)
        named = self.options.keep / f"{self.job}_{self.ranks}"
        if (self.folder / "curves.csv").exists():
            self.table(f"{named}.curves.csv", "curves", CURVE_SEEDS)
        for rate in self.options.rates:
            if not self.results(rate, MEASURED_SEEDS):
                continue
            write(pathlib.Path(f"{named}x{rate}.json"), self.kept_scenario(rate))
            self.table(f"{named}x{rate}.measured.csv", rate, MEASURED_SEEDS)

    def kept_scenario(self, rate):
        """With the seconds a step over as many steps as all trainings had."""
        recordings = [self.recording(rate, seed) for seed in MEASURED_SEEDS]
        scenario = read(middle([one for one in recordings if one.predicted.exists()]).scenario)
        results = self.results(rate, MEASURED_SEEDS)
        all_had = min(one["points"][-1][0] for runs in results.values() for one in runs)
        scenario["training"] = {**scenario["training"], "steps": all_had}
        for name, runs in results.items():
            steps = [seconds_until(one["points"], all_had) / all_had for one in runs]
            scenario["published"].append(measured_row(
                name, statistics.median(steps),
                f"median of {len(steps)} trainings' first {all_had} steps"))
        return scenario

    def left(self):
        """Trainings that are still to be done."""
        wanted = self.tuning() + self.tasks("curves", CURVE_SEEDS)
        for rate in self.options.rates:
            wanted += self.tasks(rate, MEASURED_SEEDS)
        return len(undone(wanted))


def seconds_until(points, step):
    """On a straight line between two looks."""
    after = next(i for i, point in enumerate(points) if point[0] >= step)
    low, high = points[max(0, after - 1)], points[after]
    share = (step - low[0]) / (high[0] - low[0]) if high[0] > low[0] else 1
    return low[1] + share * (high[1] - low[1])


def undone(tasks):
    return [task for task in tasks if not pathlib.Path(task["out"]).exists()]


def main():
    parser = parser_of(__doc__, "training", TARGETS, STAGES, ["500mbit", "50mbit"])
    parser.set_defaults(ranks=[2, 4])
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seeds", type=int, default=5, help="of the curves")
    parser.add_argument("--measured-seeds", type=int, default=5)
    parser.add_argument("--tuning-seeds", type=int, default=2)
    options = parser.parse_args()
    global CURVE_SEEDS, MEASURED_SEEDS, TUNING_SEEDS
    CURVE_SEEDS = CURVE_SEEDS[:options.seeds]
    MEASURED_SEEDS = MEASURED_SEEDS[:options.measured_seeds]
    TUNING_SEEDS = TUNING_SEEDS[:options.tuning_seeds]
    options.until = time.monotonic() + options.seconds
    models = [Model(options, ranks, model) for ranks in options.ranks for model in options.jobs]
    for stage in options.stages:
        for seed in MEASURED_SEEDS if stage == "measure" else [None]:
            for model in models:
                getattr(model, stage)(*([] if seed is None else [seed]))
    print("\n".join(f"{one.job}, {one.ranks} ranks: {one.left()} trainings left"
                    for one in models))


if __name__ == "__main__":
    main()
