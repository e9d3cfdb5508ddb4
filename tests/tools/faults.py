#!/usr/bin/env python3
"""Faults given to the program from outside: it is killed at random moments, its disk is full or may
not be written, its descriptors and its memory run out. What is expected is exact: after a kill the
same command gives the same bytes; under every limit it ends by itself, with 0, or with 2 or 3 and a
reason; nothing half-written has a final name, and no process is left.

  faults.py PROGRAM [--kills 1000] [--seconds 600] [--seed 1] [--only NAME]

Ends with 1 where anything else was seen, each case with the command that shows it. Cases for which
this machine lacks a right (mounting) are said to be left out.
"""
import argparse
import collections
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIRST = ROOT / "scenarios" / "first.json"
LOG = ROOT / "scenarios/measured/nccl-tests/a100pcie-ib-gdr_allreduce_medium_n002x1.txt"
TRACE = ROOT / "tests/fuzz/corpus/kineto/2024.json"
PATIENCE = 30  # seconds after which a command hangs


class Faults:
    def __init__(self, program, seed, seconds):
        self.program = str(program)
        self.random = random.Random(seed)
        self.until = time.monotonic() + seconds
        self.folder = Path(tempfile.mkdtemp(prefix="syncline-faults-"))
        self.mark = "SYNCLINE_FAULTS=" + self.folder.name
        self.counts = collections.OrderedDict()
        self.wrong = []

    def late(self):
        return time.monotonic() > self.until

    def command(self, *arguments):
        return [self.program, *map(str, arguments)]

    def start(self, command, environment=None, limits=None):
        def prepare():
            os.setsid()
            for what, most in (limits or {}).items():
                resource.setrlimit(what, (most, most))
            if limits:
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        name, value = self.mark.split("=")
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, preexec_fn=prepare, cwd=self.folder,
                                env={**os.environ, **(environment or {}), name: value})

    def end_of(self, process):
        """(exit code or -signal, stdout, stderr); None where it hangs, and is ended then."""
        try:
            out, err = process.communicate(timeout=PATIENCE)
            return process.returncode, out, err
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None

    def run(self, command, **how):
        return self.end_of(self.start(command, **how))

    def count(self, name, wrong="", command=()):
        done = self.counts.setdefault(name, [0, 0])
        done[0] += 1
        if wrong:
            done[1] += 1
            self.wrong.append(f"{name}: {wrong}\n    {shlex.join(map(str, command))}")

    def left_behind(self):
        """Processes of this run that are still there, once they had two seconds to go."""
        for _ in range(40):
            mine = []
            for entry in Path("/proc").iterdir():
                if not entry.name.isdigit() or int(entry.name) == os.getpid():
                    continue
                try:
                    if self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                        mine.append(int(entry.name))
                except OSError:
                    continue
            if not mine:
                return []
            time.sleep(0.05)
        for process in mine:
            os.kill(process, signal.SIGKILL)
        return mine

    def killed_somewhere(self, command, typical, environment=None):
        """Starts it and kills it at a random moment of its life; where it had not ended what it had
        printed by then, else None."""
        process = self.start(command, environment)
        time.sleep(self.random.uniform(0, 1.1 * typical))
        alive = process.poll() is None
        if alive:
            process.send_signal(signal.SIGKILL)
        printed, _ = process.communicate()
        return printed if alive else None

    def typical(self, command, environment=None):
        begin = time.monotonic()
        end = self.run(command, environment=environment)
        if end is None or end[0] != 0:
            sys.exit(f"faults: {shlex.join(command)} does not work by itself: {end}")
        return time.monotonic() - begin, end[1]

    # Kills ------------------------------------------------------------------------------------

    def kill_journals(self, kills):
        journal = self.folder / "tune.jsonl"
        command = self.command("tune", FIRST, "--live", "emulated", "--budget", "6", "--journal",
                               journal)
        typical, whole = self.typical(command)
        answer = lambda out: [line for line in out.splitlines() if b"journal" not in line.lower()]
        done = 0
        while done < kills and not self.late():
            journal.unlink(missing_ok=True)
            for _ in range(self.random.randint(1, 3)):
                self.killed_somewhere(command, typical)
                done += 1
                self.counts.setdefault("kills: journal", [0, 0])[0] += 1
            end = self.run(command)
            if end is None or end[0] != 0 or answer(end[1]) != answer(whole):
                self.counts["kills: journal"][1] += 1
                self.wrong.append(f"kills: journal: after it {end and (end[0], end[2][:300])}\n"
                                  f"    {shlex.join(command)}")
        self.expect_alone("kills: journal")

    def kill_outputs(self, kills):
        folder = self.folder / "out"
        command = self.command("run", FIRST, "--out", folder, "--jobs", "2")
        typical, _ = self.typical(command)
        whole = {path.name: path.read_bytes() for path in folder.iterdir()}
        for _ in range(kills):
            if self.late():
                break
            shutil.rmtree(folder, ignore_errors=True)
            self.killed_somewhere(command, typical)
            torn = [path.name for path in (folder.iterdir() if folder.exists() else [])
                    if path.name in whole and path.read_bytes() != whole[path.name]]
            self.count("kills: outputs", f"torn: {torn}" if torn else "", command)
        self.expect_alone("kills: outputs")

    def kill_ranks(self, kills):
        scenario = self.folder / "two.json"
        scenario.write_text(
            '{"name": "two", "workload": {"name": "w", "forward_ms": 5, "tensors": ['
            '{"name": "a", "shape": [100000], "backward_us": 4000},'
            '{"name": "b", "shape": [100000], "backward_us": 4000}]},'
            '"cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1,'
            '"inter": {"latency_us": 50, "bandwidth_gbps": 1}}, "strategies": [{"name": "s"}]}')
        command = self.command("validate", scenario, "--ranks", "2", "--timeout", "5")
        typical, _ = self.typical(command)
        for _ in range(kills):
            if self.late():
                break
            process = self.start(command)
            time.sleep(self.random.uniform(0, 1.1 * typical))
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            try:
                ranks = [int(child) for child in children.read_text().split()]
            except OSError:
                ranks = []
            target = self.random.choice([process.pid, *ranks])
            try:
                os.kill(target, signal.SIGKILL)
            except ProcessLookupError:
                pass
            end = self.end_of(process)
            wrong = "hangs" if end is None else ""
            if end and target != process.pid and end[0] not in (0, 3):
                wrong = f"a rank was killed: {end[0]} {end[2][:200]}"
            if end and end[0] == 3 and not end[2].strip():
                wrong = "ends without a word"
            self.count("kills: live ranks", wrong, command)
        self.expect_alone("kills: live ranks")

    def expect_alone(self, name):
        left = self.left_behind()
        self.count(name + ", nothing left", f"processes {left}" if left else "")

    # Limits -----------------------------------------------------------------------------------

    def verbs(self):
        """Each verb with files to write, by name of those."""
        scenario = self.folder / "two.json"
        if not scenario.exists():
            self.kill_ranks(0)
        return [
            ["check", FIRST], ["plan", FIRST], ["buckets", FIRST], ["explain", FIRST],
            ["list"], ["schema"], ["completion", "bash"], ["record", "-o", "DIR/record.py"],
            ["init", "bert_base", "--node", "dgx-h100", "-o", "DIR/init.json"],
            ["import", TRACE, "-o", "DIR/import.json", "--html", "DIR/import.html"],
            ["emit", FIRST, "--dialect", "pytorch", "--python", "DIR/apply.py"],
            ["run", FIRST], ["run", FIRST, "--executor", "sim"], ["run", FIRST, "--jobs", "3"],
            ["run", FIRST, "--trace", "DIR/trace.json"], ["run", FIRST, "--out", "DIR/out"],
            ["tune", FIRST, "--budget", "20", "--svg", "DIR/c.svg", "--csv", "DIR/c.csv"],
            ["tune", FIRST, "--live", "emulated", "--budget", "2", "--journal", "DIR/j"],
            ["calibrate", "logs", LOG, "-o", "DIR/c.json"],
            ["validate", scenario, "--ranks", "2", "--timeout", "5", "-o", "DIR/v.json"],
        ]

    def limited(self, name, command, limits, **how):
        end = self.run(command, limits=limits, **how)
        wrong = ""
        if end is None:
            wrong = "hangs"
        elif end[0] < 0 or end[0] not in (0, 2, 3):
            wrong = f"ends with {end[0]}: {end[2][:200]}"
        elif end[0] != 0 and not end[2].strip():
            wrong = "ends without a word"
        self.count(name, wrong, command)
        return end

    def placed(self, verb, name):
        """Its command, with files in a folder of that name, which is empty."""
        place = self.folder / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        return self.command(*(str(word).replace("DIR", str(place)) for word in verb))

    def usable(self):
        """The verbs that work here by themselves, written into `good`."""
        usable = []
        for verb in self.verbs():
            end = self.run(self.placed(verb, "good"))
            if end is not None and end[0] == 0:
                usable.append(verb)
            else:
                self.count("verbs by themselves", f"does not work: {end and end[2][:200]}", verb)
        return usable

    def scarce(self, name, limits, counts=lambda limit: True):
        """Each verb under each of the limits that count."""
        for verb in self.usable():
            for limit in limits:
                if self.late():
                    return
                command = self.placed(verb, "limited")
                if counts(limit):
                    self.limited(name, command, limit)
        self.expect_alone(name)

    def descriptors(self):
        self.scarce("descriptors exhausted", [{resource.RLIMIT_NOFILE: most}
                                              for most in (4, 5, 6, 8, 10, 13, 16, 24)])

    def memory(self):
        def loads(limit):
            """Before main() the loader may fail, with its own words and 127."""
            probe = self.run(self.command("--version"), limits=limit)
            return probe is not None and probe[0] == 0
        self.scarce("memory limited",
                    [{resource.RLIMIT_AS: mebibytes << 20}
                     for mebibytes in (100, 140, 170, 200, 230, 260, 300, 400)], loads)

    def disks(self):
        may = subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0
        if not may:
            print("faults: left out, mounting is not allowed here: disk full, read-only")
            return
        place = self.folder / "disk"
        place.mkdir()
        mounts = {
            "disk full": "mount -t tmpfs -o size=4k,nr_inodes=3 none {0}; head -c 8k /dev/zero "
                         ">{0}/rest 2>/dev/null; ",
            "read-only": "mount -t tmpfs -o ro none {0}; ",
        }
        for verb in self.usable():
            words = [str(word).replace("DIR", str(place)) for word in verb]
            if not any("DIR" in str(word) for word in verb):
                continue
            for name, mount in mounts.items():
                if self.late():
                    return
                script = (mount.format(shlex.quote(str(place))) +
                          shlex.join(self.command(*words)) + "; code=$?; "
                          f"for f in {shlex.quote(str(place))}/*; do [ \"$f\" = "
                          f"{shlex.quote(str(place))}/rest ] || [ ! -e \"$f\" ] || [ -d \"$f\" ] || "
                          "echo LEFT \"$f\" >&2; done; exit $code")
                command = ["unshare", "-m", "sh", "-c", script]
                end = self.limited(name, command, {})
                if end is not None and end[0] == 0:
                    self.count(name, "it says that it could write", command)
                if end is not None and b"LEFT" in end[2]:
                    self.count(name, f"half-written files: {end[2][-200:]}", command)
        self.expect_alone("disk full, read-only")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="journals, outputs, ranks, descriptors, memory, disks")
    options = parser.parse_args()
    faults = Faults(options.program.resolve(), options.seed, options.seconds)
    quarter = options.kills // 4
    parts = {
        "journals": lambda: faults.kill_journals(quarter),
        "outputs": lambda: faults.kill_outputs(quarter),
        "ranks": lambda: faults.kill_ranks(options.kills - 2 * quarter),
        "descriptors": faults.descriptors,
        "memory": faults.memory,
        "disks": faults.disks,
    }
    chosen = [options.only] if options.only else list(parts)
    for name in chosen:
        # Each part gets an even share of what is left.
        end = faults.until
        left = len(chosen) - chosen.index(name)
        faults.until = time.monotonic() + max(0.0, end - time.monotonic()) / left
        parts[name]()
        faults.until = end
    shutil.rmtree(faults.folder, ignore_errors=True)
    for name, (done, wrong) in faults.counts.items():
        print(f"{name:32} {done:6} cases  {wrong:4} wrong")
    for line in faults.wrong[:40]:
        print(line, file=sys.stderr)
    return 1 if faults.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
