#!/usr/bin/env python3
"""Asks the frameworks anew, each in a virtual environment of its own below build/frameworks, and says
which facts differ from those that are checked in. With --write they take their place."""

import argparse
import difflib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import venv

HERE = pathlib.Path(__file__).resolve().parent
FACTS = HERE / "facts"
KEYS = HERE.parents[1] / "formats" / "dialect" / "keys"

# deepspeed needs torch while it is installed, hence without isolation.
ENVIRONMENTS = {
    "torch2.6": [
        ["torch==2.6.0", "numpy==2.4.6", "setuptools", "wheel"],
        ["deepspeed==0.19.8", "--no-build-isolation"],
        ["accelerate==1.12.0", "transformers==4.57.3"],
        ["lightning==2.6.6"],
        ["megatron-core==0.16.1", "--no-deps"],
    ],
    "torch2.15": [
        ["torch==2.15.0", "numpy==2.5.5", "setuptools", "wheel"],
        ["megatron-core==0.19.2", "--no-deps"],
        ["torchft==0.2.0"],
        ["torchtitan==0.2.2"],
        ["transformers==5.24.0"],
    ],
    "paddle3.3": [["paddlepaddle==3.3.1", "setuptools"]],
    "mindspore2.10": [["mindspore==2.10.0", "setuptools"]],
    "debian12": None,  # the system's own python3-torch
    "plain": [],  # asks pip for the texts of other packages
}
SYSTEM = "/usr/bin/python3"
# Those that ask for a newer Python than Debian 12's.
PYTHONS = {"torch2.15": ("python3.12", "python3.13", "python3.14"),
           "debian12": ("python3-torch 1.13",)}
# Script, the environment that runs it, the file that it is given, and the facts that it writes.
SCRIPTS = [
    ("torch_ddp.py", "debian12", "torch1.13_ddp.json", ["torch1.13_ddp.json"]),
    ("torch_ddp.py", "torch2.6", "torch2.6_ddp.json", ["torch2.6_ddp.json"]),
    ("torch_ddp_compiled.py", "torch2.6", "torch2.6_ddp_compiled.json",
     ["torch2.6_ddp_compiled.json"]),
    ("torch_fsdp.py", "torch2.6", "torch2.6_fsdp.json",
     ["torch2.6_fsdp1.json", "torch2.6_fsdp2.json"]),
    ("torch_ddp.py", "torch2.15", "torch2.15_ddp.json", ["torch2.15_ddp.json"]),
    ("torch_ddp_compiled.py", "torch2.15", "torch2.15_ddp_compiled.json",
     ["torch2.15_ddp_compiled.json"]),
    ("torch_fsdp.py", "torch2.15", "torch2.15_fsdp.json",
     ["torch2.15_fsdp1.json", "torch2.15_fsdp2.json"]),
    ("torchtitan_job.py", "torch2.15", "torchtitan0.2_job.json", ["torchtitan0.2_job.json"]),
    ("torchft_diloco.py", "torch2.15", "torchft0.2_diloco.json", ["torchft0.2_diloco.json"]),
    ("paddle_fleet.py", "paddle3.3", "paddle3.3_fleet.json",
     ["paddle3.3_fleet_raw.json", "paddle3.3_fleet_fused.json"]),
    ("mindspore_fusion.py", "mindspore2.10", "mindspore2.10_fusion.json",
     ["mindspore2.10_fusion.json"]),
    ("deepspeed_zero.py", "torch2.6", "deepspeed0.19_zero.json",
     [f"deepspeed0.19_{rule}.json" for rule in ("zero0", "zero1", "zero2", "zero3", "zero3_nested")]),
    ("megatron_core.py", "torch2.6", "megatron_core0.16_buffers.json",
     ["megatron_core0.16_buffers.json"]),
    ("hugging_face_models.py", "torch2.6", "transformers4.57_models.json",
     ["transformers4.57_models.json"]),
    ("hugging_face_models.py", "torch2.15", "transformers5.24_models.json",
     ["transformers5.24_models.json"]),
    ("hugging_face.py", "torch2.6", "transformers4.57_hugging_face.json",
     ["transformers4.57_hugging_face.json"]),
    ("lightning_trainer.py", "torch2.6", "lightning2.6_trainer.json",
     ["lightning2.6_trainer.json"]),
    ("megatron_arguments.py", "torch2.15", "megatron_core0.19_arguments.json",
     ["megatron_core0.19_arguments.json"]),
    ("keys.py", "torch2.6", "keys", ["torch.json", "deepspeed.json", "transformers.json",
                                     "accelerate.json"]),
    ("keys.py", "torch2.15", "keys", ["megatron-core.json"]),
    ("keys.py", "plain", "keys", ["horovod.json", "lightning.json", "torchtitan.json"]),
    ("keys.py", "paddle3.3", "keys", ["paddlepaddle.json"]),
    ("keys.py", "mindspore2.10", "keys", ["mindspore.json"]),
]


def runs(python, script=""):
    """Whether it starts: a stand-in of a version manager is found, and refuses."""
    return subprocess.run([python, "-c", script], capture_output=True, check=False).returncode == 0


def newer_python(names):
    """The first Python of these names on PATH that starts, or nothing."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    found = (shutil.which(name, path=folder) for name in names for folder in folders)
    return next((python for python in found if python and runs(python)), None)


def environment(root, name):
    """The environment's Python, with all that it takes installed."""
    if ENVIRONMENTS[name] is None:
        asks = "import torch, sys; sys.exit(not torch.__version__.startswith('1.13'))"
        return SYSTEM if runs(SYSTEM, asks) else None
    folder = root / name
    python = folder / "bin" / "python3"
    done = folder / "installed.json"
    wanted = json.dumps(ENVIRONMENTS[name])
    if done.exists() and done.read_text() == wanted:
        return python
    if name in PYTHONS and sys.version_info < (3, 12):
        found = newer_python(PYTHONS[name])
        if found is None:
            return None
        subprocess.run([found, "-m", "venv", folder], check=True)
    else:
        venv.create(folder, with_pip=True)
    for packages in ENVIRONMENTS[name]:
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True,
                       env=dict(os.environ, DS_BUILD_OPS="0"))
    done.write_text(wanted)
    return python


def differences(old, new):
    """Cases that are not the same, the first of them in words."""
    before = old.read_text().splitlines() if old.exists() else []
    after = new.read_text().splitlines()
    changed = [line for line in difflib.ndiff(before, after) if line.startswith("+ ")]
    return len(changed), (changed[0][:400] if changed else "")


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("folder", type=pathlib.Path, help="where environments and facts go")
    words.add_argument("--only", default="", help="scripts, or facts, whose name contains this")
    words.add_argument("--write", action="store_true", help="check the new facts in")
    options = words.parse_args()
    made = options.folder.resolve() / "facts"
    made.mkdir(parents=True, exist_ok=True)
    differ = 0
    for script, name, given, files in SCRIPTS:
        if options.only not in script and options.only not in given:
            continue
        python = environment(options.folder.resolve(), name)
        if python is None:
            print(f"{script}: left out, needs one of {', '.join(PYTHONS[name])}")
            continue
        began = time.monotonic()
        facts = KEYS if script == "keys.py" else FACTS
        asked = [pathlib.Path(file).stem for file in files] if script == "keys.py" else []
        if asked:
            (made / given).mkdir(exist_ok=True)
        ran = subprocess.run([python, HERE / script, made / given, *asked], cwd=HERE,
                             capture_output=True, text=True, check=False,
                             env=dict(os.environ, OMP_NUM_THREADS="1"))
        if ran.returncode != 0:
            sys.exit(f"{script}: {ran.stderr[-2000:]}")
        for file in files:
            new = made / given / file if asked else made / file
            count, first = differences(facts / file, new)
            differ += count > 0
            print(f"{file}: {count} cases differ" if count else f"{file}: as before", flush=True)
            if count:
                print("  " + first)
            if options.write:
                (facts / file).write_text(new.read_text())
        print(f"  {script}: {time.monotonic() - began:.0f} s")
    sys.exit(1 if differ and not options.write else 0)


main()
