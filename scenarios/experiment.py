"""What the experiments under scenarios/ have in common: the program, the lab, what a job recorded
and what is predicted from that. The other half, what their ranks have in common, is ranks.py."""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SYNCLINE = os.environ.get("SYNCLINE", str(ROOT / "build/syncline"))
PYTHON = os.environ.get("PYTHON", "/usr/bin/python3")
# The C library gives memory back to the system and takes it anew within a step, or does not, by
# what a process has allocated before: 0 to 10,000 pages a step of the same job, up to a seventh.
HELD_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1"}


def read(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def write(path, value):
    """Never half of it."""
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def syncline(*arguments, environment=None, captured=True):
    """What the program prints; ends with a line where it fails."""
    done = subprocess.run([SYNCLINE, *map(str, arguments)], text=True, check=False,
                          stdout=subprocess.PIPE if captured else None, env=environment)
    if done.returncode != 0:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: syncline {' '.join(map(str, arguments))} "
                 f"ended with {done.returncode}")
    return done.stdout


def in_lab(options, ranks, rate, script, *arguments, python=PYTHON):
    """Runs a script of ranks behind links of that rate ("50mbit", "50mbit-50ms": with that latency);
    what a job imports is in options.folder."""
    rate, _, latency = rate.partition("-")
    syncline("record", "-o", options.folder)
    environment = dict(os.environ, PYTHONPATH=f"{options.folder}:{ROOT / 'scenarios'}",
                       PYTHONDONTWRITEBYTECODE="1", SYNCLINE=SYNCLINE, OMP_NUM_THREADS="1",
                       OPENBLAS_NUM_THREADS="1", **HELD_MEMORY)
    syncline("lab", "--ranks", ranks, "--rate", rate, "--latency", latency.removesuffix("ms") or 0,
             "--", python, script, *arguments,
             environment=environment, captured=False)


class Recording:
    """What a job says of itself at one moment, the same with strategies, and their steps as they
    are predicted from that."""

    def __init__(self, folder, name):
        self.job, self.scenario, self.predicted = (
            folder / f"{name}.{ending}" for ending in ("json", "scenario.json", "predicted.json"))

    def predict(self, *options):
        write(self.predicted,
              json.loads(syncline("run", self.scenario, *options, "--format", "json")))

    def long(self):
        rows = read(self.predicted)["rows"]
        return statistics.fmean(math.log(row["step_time_s"]) for row in rows)


def middle(recordings):
    """The one that predicts the steps in the middle of all."""
    return sorted(recordings, key=Recording.long)[(len(recordings) - 1) // 2]


class Experiment:
    """One job on so many ranks, which `script` carries out."""

    def __init__(self, options, script, ranks, job, folder):
        self.options, self.script, self.ranks, self.job = options, script, ranks, job
        self.folder = options.folder / folder
        self.folder.mkdir(parents=True, exist_ok=True)

    def in_lab(self, rate, *arguments, python=PYTHON):
        in_lab(self.options, self.ranks, rate, self.script, *arguments, python=python)

    def recording(self, *name):
        return Recording(self.folder, ".".join(map(str, name)))

    def recorded(self, rate, recording, steps, looks, keys_of):
        """The job as it is now, and its scenario with what `keys_of` adds."""
        if not recording.job.exists():
            self.in_lab(rate, "record", self.job, recording.job, steps, looks)
        if not recording.scenario.exists():
            scenario = read(recording.job)
            write(recording.scenario, {**scenario, "published": [], **keys_of(scenario)})

    def emit(self, scenario, strategy, before):
        """The file that applies a strategy; its path begins with `before`."""
        file = pathlib.Path(f"{self.folder}/{before}{strategy.replace(' ', '_')}.py")
        if not file.exists():
            syncline("emit", scenario, "--strategy", strategy, "--dialect", "pytorch", "--python",
                     file)
        return str(file)


def measured_row(strategy, seconds, source):
    return {"strategy": strategy, "use": "predicted", "step_time_s": round(seconds, 6),
            "source": f"python3-torch in the lab, {source}"}


def parser_of(doc, name, jobs, stages, rates=()):
    """The options of all experiments, and those of one that several networks carry."""
    parser = argparse.ArgumentParser(description=doc.split("\n", 1)[0])
    if rates:
        parser.add_argument("--ranks", type=int, nargs="+", default=[2])
        parser.add_argument("--rates", nargs="+", default=rates)
        parser.add_argument("--keep", type=pathlib.Path,
                            default=ROOT / "scenarios/published" / name)
    parser.add_argument("--jobs", nargs="+", default=list(jobs), choices=jobs)
    parser.add_argument("--stages", nargs="+", default=list(stages), choices=stages)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / name)
    return parser
