"""What the experiments under scenarios/ have in common: the program, and files that are never half
written."""

import json
import os
import pathlib
import subprocess
import sys

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
