#!/usr/bin/env python3
"""The first minutes on a machine with a GPU: kernels checked and timed, NCCL's values compared and
its steps timed between ranks, steps of known models and of DDP jobs predicted and then measured.

    hour.py [--out build/gpu-hour] [--seconds 420] [--parts kernels values ...]

Needs a GPU, python3 with torch, and the program (SYNCLINE; `make gpu-pack` carries it to a machine
without packages). Each part has its limit, and the folder is complete after each of them:
hour.json says what was done, `syncline fidelity --from FOLDER --set gpu` compares. Exit codes: 0;
1 a part failed; 2 no program; 3 no GPU.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SYNCLINE = os.environ.get("SYNCLINE", str(ROOT / "build/syncline"))
GPU_CHECK = os.environ.get("SYNCLINE_GPU_CHECK", str(ROOT / "build-gpu-check/gpu_check"))
sys.path[:0] = [str(HERE), str(HERE.parent)]
import ddp  # noqa: E402
import models  # noqa: E402
from experiment import read, write  # noqa: E402

DDP = [{"name": "DDP", "dialect": "pytorch", "config": {}}]


class PartError(Exception):
    """A sentence on what went wrong."""


class Hour:
    def __init__(self, options):
        self.folder = options.out.resolve()
        self.published, self.measured = self.folder / "published/gpu", self.folder / "measured/gpu"
        for folder in (self.folder, self.published, self.measured):
            folder.mkdir(parents=True, exist_ok=True)
        self.end = time.monotonic() + options.seconds
        self.limit = options.seconds
        self.gpu = gpu()
        self.card = card_of(self.gpu)
        self.said = {"format": "syncline gpu-hour 1", "gpu": self.gpu,
                     "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                     "syncline": output([SYNCLINE, "version"]), "parts": []}

    def run(self, name, limit, part):
        left = self.end - time.monotonic()
        if left < 10:
            self.say(name, 0, "left out", "no time was left")
            return
        self.limit = min(limit, left)
        print(f"{name}: at most {self.limit:.0f} s", flush=True)
        begin = time.monotonic()
        try:
            state, words = "done", part()
        except PartError as error:
            state, words = "failed", str(error)
        except OSError as error:
            state, words = "failed", f"{error.filename}: {error.strerror}"
        except subprocess.TimeoutExpired:
            state, words = "failed", f"not done within {self.limit:.0f} s"
        self.say(name, time.monotonic() - begin, state, words)

    def say(self, name, seconds, state, words):
        self.said["parts"].append(
            {"part": name, "seconds": round(seconds, 1), "state": state, "says": words})
        write(self.folder / "hour.json", self.said)
        print(f"{name}: {state} after {seconds:.0f} s: {words}", flush=True)

    def call(self, name, *command, environment=None):
        """Its output goes to a file; the last line of it is what a failure says."""
        log = self.folder / f"{name}.txt"
        with open(log, "w", encoding="utf-8") as file:
            process = subprocess.Popen([str(word) for word in command], stdout=file,
                                       stderr=subprocess.STDOUT, start_new_session=True,
                                       env=dict(os.environ, **(environment or {})))
            try:
                code = process.wait(self.limit)
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, 15)
                raise
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() or ["no output"]
        if code != 0:
            told = next((line for line in lines if " cases, " in line), lines[-1])
            raise PartError(f"{pathlib.Path(str(command[0])).name} ended with {code}: {told}")
        return lines

    # ---- parts

    def kernels(self):
        """Every kernel checked against the host, and timed."""
        file = self.folder / "kernels.json"
        lines = self.call("kernels", GPU_CHECK, "--out", file, "--date", self.said["date"])
        return next(line for line in lines if " cases, " in line)

    def values(self, ranks, *strategies):
        """What every kind of exchange leaves, beside the host executor's."""
        only = [word for name in strategies for word in ("--strategy", name)]
        out = self.folder / f"values_{ranks}_ranks.json"
        self.call(f"values_{ranks}", SYNCLINE, "validate", HERE / "correctness.json", "--set",
                  f"cluster.nodes={ranks}", "--backend", "nccl", "--ranks", ranks, "--timeout", 60,
                  "--warmup", 1, "--repeats", 2, "-o", out, *only)
        rows = read(out)["rows"]
        wrong = [row["strategy"] for row in rows if row["values_match"] is not True]
        if wrong:
            raise PartError("wrong values: " + ", ".join(wrong))
        return f"{len(rows)} strategies on {ranks} ranks, all values equal"

    def operators(self, name, *workload):
        """Compute fusion: a step's operators as kernels, one by one and fused."""
        out = self.measured / f"{self.card}_{name}_operators.json"
        settings = [f"cluster.device.base={self.gpu}", *workload]
        self.call(f"operators_{name}", SYNCLINE, "validate", HERE / "operators.json", "--backend",
                  "nccl", "--compute", "kernels", "--ranks", 1, "--timeout", 60, "--warmup", 2,
                  "--repeats", 9, "--no-check", "-o", out,
                  *(word for setting in settings for word in ("--set", setting)))
        errors = [abs(row["error_percent"]) for row in read(out)["rows"]]
        return f"{len(errors)} ways to fuse, {statistics.median(errors):.1f} % off in the median"

    def timing(self, ranks):
        """Steps over links of 1 Gbit/s where they can be shaped, else over the loopback."""
        out = self.measured / f"{self.card}_{ranks}_ranks.json"
        command = ["validate", HERE / "timing.json", "--set", f"cluster.nodes={ranks}", "--backend",
                   "nccl", "--calibrate", "--warmup", 1, "--repeats", 3, "--timeout", 60, "-o", out]
        shaped = "at 1 Gbit/s"
        try:
            self.call("timing", SYNCLINE, "lab", "--ranks", ranks, "--rate", "1gbit", "--", SYNCLINE,
                      *command)
        except PartError as error:
            shaped = f"over the loopback ({error})"
            self.call("timing", SYNCLINE, *command, "--ranks", ranks)
        rows = read(out)["rows"]
        errors = [abs(row["error_percent"]) for row in rows]
        return f"{len(rows)} strategies {shaped}, {statistics.median(errors):.1f} % off in the median"

    def steps(self):
        """Steps of known models on one GPU, priced from its data sheet alone."""
        rows = [row for row in models.ROWS if models.workload_of(row)]
        scenario = {
            "name": f"Steps of known models on one {self.card.upper()}",
            "about": "PyTorch's eager steps of random weights and data, unless a row says compiled; "
                     "AdamW or SGD with momentum as torch chooses them.",
            "workload": models.workload_of(rows[0]),
            "cluster": {"name": self.gpu, "nodes": 1, "gpus_per_node": 1,
                        "device": {"base": self.gpu}},
            "strategies": DDP, "sweep": {"workload": [models.workload_of(row) for row in rows]}}
        file = self.published / f"{self.card}_steps.json"
        write(file, scenario)
        predicted = json.loads(output([SYNCLINE, "run", str(file), "--format", "json"]))["rows"]
        write(self.folder / "steps_predicted.json", predicted)
        try:
            self.call("steps", sys.executable, HERE / "steps.py", self.folder / "steps.json",
                      "--only", "steps", "--seconds", self.limit - 45)
        finally:
            self.keep_steps(file, scenario)
        return f"{len(scenario['published'])} models"

    def keep_steps(self, file, scenario):
        scenario["published"] = []
        with contextlib.suppress(FileNotFoundError):
            found = read(self.folder / "steps.json")
            for row in found["steps"]:
                workload = models.workload_of(row)
                if workload and "step_s" in row:
                    scenario["published"].append({
                        "strategy": "DDP", "sweep": {"workload": workload}, "use": "predicted",
                        "step_time_s": round(row["step_s"], 7),
                        "source": f"torch {found['torch']}, {row['kernels']} kernels busy for "
                                  f"{1e3 * row['busy_s']:.2f} ms, forward "
                                  f"{1e3 * row['forward_s']:.2f}, update {1e3 * row['update_s']:.2f}"})
        write(file, scenario)

    def job(self, name, ranks):
        """A DDP job recorded, its settings predicted, then measured."""
        self.call("recorder", SYNCLINE, "record", "-o", self.folder / "syncline_record.py")
        self.call(f"{name}_record", sys.executable, HERE / "ddp.py", self.folder, "--ranks", ranks,
                  "--jobs", name, "--stage", "record")
        scenario = read(self.folder / f"{name}.json")
        scenario.update(
            name=f"{ddp.TITLES[name]} under DDP, {ranks} ranks on one {self.card.upper()}",
            about="DistributedDataParallel over NCCL, ranks that share one GPU and talk through "
                  "sockets; recorded by syncline_record, other settings measured afterwards.",
            baseline="cap 25", published=[],
            strategies=[{"name": key, "dialect": "pytorch", "config": config}
                        for key, config in ddp.SETTINGS.items()])
        file = self.published / f"{self.card}_{name}_{ranks}_ranks.json"
        write(file, scenario)
        predicted = json.loads(output([SYNCLINE, "run", str(file), "--format", "json"]))["rows"]
        self.call(f"{name}_measure", sys.executable, HERE / "ddp.py", self.folder, "--ranks", ranks,
                  "--jobs", name, "--stage", "measure")
        taken = read(self.folder / f"{name}.measured.json")
        errors = []
        for key, seconds in taken.items():
            step = statistics.median(seconds)
            scenario["published"].append(
                {"strategy": key, "use": "predicted", "step_time_s": round(step, 6),
                 "source": f"median of {len(seconds)} steps; predicted before"})
            errors += [abs(row["step_time_s"] / step - 1) for row in predicted
                       if row["strategy"] == key]
        write(file, scenario)
        return f"{len(taken)} settings, {100 * statistics.median(errors):.1f} % off in the median"


def output(command):
    done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=60)
    if done.returncode != 0:
        raise PartError(f"{command[0]}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
    return done.stdout


def gpu():
    """As its driver names the first one; nothing where there is none."""
    if not shutil.which("nvidia-smi"):
        return ""
    done = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], text=True,
                          capture_output=True, check=False)
    return done.stdout.splitlines()[0].strip() if done.returncode == 0 and done.stdout else ""


def card_of(name):
    """"NVIDIA H100 80GB HBM3": the first word with a digit, without what stands behind a dash."""
    words = [word.split("-")[0] for word in name.split() if any(c.isdigit() for c in word)]
    return words[0].lower() if words else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/gpu-hour")
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--parts", nargs="+", default=[
        "kernels", "values", "groups", "operators", "operators_text", "timing", "steps", "resnet50",
        "gpt2"])
    options = parser.parse_args()
    try:
        hour = Hour(options)
    except (OSError, PartError) as error:
        print(f"gpu-hour: {error}; SYNCLINE names the program", file=sys.stderr)
        return 2
    if not hour.gpu:
        hour.say("gpu", 0, "failed", "no GPU: nvidia-smi finds none; nothing was measured")
        return 3
    ranks = 2
    parts = {
        "kernels": (80, hour.kernels),
        "values": (60, lambda: hour.values(ranks)),
        "groups": (60, lambda: hour.values(4, "leaders of 2", "shards of 2", "halves")),
        "operators": (40, lambda: hour.operators("resnet50")),
        "operators_text": (40, lambda: hour.operators("bert_base", "workload=" + json.dumps(
            {"name": "BERT-base", "batch": 128, "operators": {
                "architecture": "bert_base", "dtype": "fp16", "sequence": 128}}))),
        "timing": (120, lambda: hour.timing(ranks)),
        "steps": (150, hour.steps),
        "resnet50": (60, lambda: hour.job("resnet50", ranks)),
        "gpt2": (70, lambda: hour.job("gpt2", ranks)),
    }
    try:
        for name in options.parts:
            hour.run(name, *parts[name])
    except KeyboardInterrupt:
        print(f"\nstopped; {hour.folder} has what was done", file=sys.stderr)
        return 130
    return 1 if any(part["state"] == "failed" for part in hour.said["parts"]) else 0


if __name__ == "__main__":
    sys.exit(main())
