"""What the experiments under scenarios/ have in common: the program, and files that are never half
written."""

import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SYNCLINE = os.environ.get("SYNCLINE", str(ROOT / "build/syncline"))
PYTHON = os.environ.get("PYTHON", "/usr/bin/python3")


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def write(path, value):
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def syncline(*arguments, environment=None, captured=True):
    """What the program prints; ends with a line where it fails."""
    done = subprocess.run([SYNCLINE, *map(str, arguments)], text=True, check=False,
                          stdout=subprocess.PIPE if captured else None, env=environment)
    if done.returncode != 0:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: syncline {' '.join(map(str, arguments))} ended "
                 f"with {done.returncode}")
    return done.stdout


def _spread(_processor):
    """By how much a fixed piece of work varies within five seconds: what three quarters of it keep
    to, over its best. Medians of what is timed bear the last quarter."""
    taken = []
    end = time.monotonic() + 5
    while time.monotonic() < end:
        begin = time.perf_counter()
        sum(number * number for number in range(300_000))
        taken.append(time.perf_counter() - begin)
    return sorted(taken)[3 * len(taken) // 4] / min(taken)


QUIET = 1.25  # 1.05 to 1.15 on a quiet virtual machine, 1.3 to 1.9 beside others


def wait_for_quiet(minutes, told=sys.stderr):
    """Waits until every processor does the same work in the same time, at most so long; says what it
    found, and whether that is quiet. Where others take a share of them, what is recorded now is not
    what is measured next."""
    end = time.monotonic() + 60 * minutes
    count = os.cpu_count()
    with multiprocessing.Pool(count) as pool:
        while True:
            spread = max(pool.map(_spread, range(count), chunksize=1))
            if spread <= QUIET or time.monotonic() >= end:
                break
            print(f"the same work takes up to {spread:.2f} times as long: waiting for a quiet machine",
                  file=told)
            time.sleep(10)
    print(f"the same work takes up to {spread:.2f} times as long: "
          f"{'quiet' if spread <= QUIET else 'NOT quiet, what is timed now is uncertain'}", file=told)
    return spread <= QUIET
