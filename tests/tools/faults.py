#!/usr/bin/env python3
"""Faults given to the program from outside: it is killed at random moments, its disk is full or may
not be written, its descriptors and its memory run out, command lines are nonsense, strangers call
its ranks. What is expected is exact: after a kill the same command gives the same bytes; under every
limit it ends by itself, with 0, or with 2 or 3 and a reason; nothing half-written has a final name,
and no process, interface or namespace is left.

  faults.py PROGRAM [--kills 1000] [--lines 1000] [--strangers 1000] [--searches 10]
            [--seconds 600] [--seed 1] [--patience 30] [--only NAME]

Ends with 1 where anything else was seen, each case with the command that shows it. Cases for which
this machine lacks a right (mounting) are said to be left out.
"""
import argparse
import collections
import os
import random
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from command_lines import CommandLines

ROOT = Path(__file__).resolve().parents[2]
FIRST = ROOT / "scenarios" / "first.json"
LOG = ROOT / "scenarios/measured/nccl-tests/a100pcie-ib-gdr_allreduce_medium_n002x1.txt"
TRACE = ROOT / "tests/fuzz/corpus/kineto/2024.json"


class Faults:
    def __init__(self, program, seed, seconds, patience):
        self.program = str(program)
        self.patience = patience  # seconds after which a command hangs
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
            out, err = process.communicate(timeout=self.patience)
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
        command = self.command("validate", self.two_ranks("two"), "--ranks", "2", "--timeout", "5")
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

    def two_ranks(self, name, forward=5):
        """A scenario of two ranks."""
        scenario = self.folder / f"{name}.json"
        scenario.write_text(
            '{"name": "two", "workload": {"name": "w", "forward_ms": %s, "tensors": ['
            '{"name": "a", "shape": [100000], "backward_us": 4000},'
            '{"name": "b", "shape": [100000], "backward_us": 4000}]},'
            '"cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1,'
            '"inter": {"latency_us": 50, "bandwidth_gbps": 1}}, "strategies": [{"name": "s"}]}' % forward)
        return scenario

    def random_rank(self, process):
        """The process or one of its descendants."""
        found, at = [process.pid], 0
        while at < len(found):
            try:
                children = Path(f"/proc/{found[at]}/task/{found[at]}/children").read_text().split()
            except OSError:
                children = []
            found += map(int, children)
            at += 1
        return self.random.choice(found)

    @staticmethod
    def argument(process):
        """The first word behind the program's name; empty where the process has gone."""
        try:
            return (Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0") + [b"", b""])[1]
        except OSError:
            return b""

    @staticmethod
    def network():
        """Interfaces and named namespaces of this machine; those without a name end with their last
        process."""
        named = sorted(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else []
        return sorted(os.listdir("/sys/class/net")), named

    def kill_labs(self, kills):
        """A lab with a validation in it: the launcher or any process below it is killed, stopped or
        interrupted."""
        inside = self.command("validate", self.two_ranks("lab"), "--timeout", "4", "-o",
                              self.folder / "lab-report.json")
        command = self.command("lab", "--ranks", "2", "--rate", "1gbit", "--patience", "4", "--grace",
                               "1", "--", *inside)
        if os.geteuid() != 0:
            print("faults: left out, a lab needs root: labs")
            return
        typical, _ = self.typical(command)
        before = self.network()
        for _ in range(kills):
            if self.late():
                break
            process = self.start(command)
            time.sleep(self.random.uniform(0, 1.1 * typical))
            how = self.random.choice([signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGINT])
            target = self.random_rank(process)
            if how == signal.SIGSTOP and target == process.pid:
                how = signal.SIGKILL  # who stops the launcher wants it to wait
            try:
                os.kill(target, how)
            except ProcessLookupError:
                pass
            end = self.end_of(process)
            wrong = f"hangs after {how.name}" if end is None else ""
            if end and target != process.pid and end[0] not in (0, 2, 3, 130, 143, 137):
                wrong = f"{how.name}: {end[0]} {end[2][:200]}"
            left = self.left_behind()
            for _ in range(40):
                if self.network() == before:
                    break
                time.sleep(0.05)
            if left or self.network() != before:
                wrong += f" left: {left} {self.network()}, before: {before}"
            partial = [path.name for path in self.folder.iterdir() if path.name.startswith(".partial")]
            # A killed writer leaves the file without a final name.
            if partial and how != signal.SIGKILL:
                wrong += f" {partial}"
            for name in partial:
                (self.folder / name).unlink()
            self.count("kills: labs", wrong, command)

    def kill_searches(self, searches):
        """A search on real processes is killed again and again until it ends. What its journal had
        stays, and once it is whole the answer is the same."""
        journal = self.folder / "search.jsonl"
        command = self.command("tune", self.two_ranks("search", 1), "--live", "gloo", "--ranks", "2",
                               "--budget", "4", "--timeout", "5", "--journal", journal, "--format",
                               "json")
        typical, _ = self.typical(command)
        for _ in range(searches):
            if self.late():
                break
            journal.unlink(missing_ok=True)
            wrong = ""
            for _ in range(self.random.randint(1, 4)):
                had = journal.read_bytes() if journal.exists() else b""
                process = self.start(command)
                time.sleep(self.random.uniform(0, 1.1 * typical))
                try:
                    os.kill(self.random_rank(process), signal.SIGKILL)
                except ProcessLookupError:
                    pass
                end = self.end_of(process)
                wrong = wrong or ("hangs" if end is None else "")
                now = journal.read_bytes() if journal.exists() else b""
                if not now.startswith(had[:had.rfind(b"\n") + 1]):
                    wrong = wrong or f"the journal lost {had[-200:]}, has {now[-200:]}"
            first = self.run(command)
            whole = journal.read_bytes() if journal.exists() else b""
            again = self.run(command)
            if not first or first[0] != 0 or not again or first[1] != again[1]:
                wrong = wrong or f"not the same answer: {first} {again}"
            if journal.exists() and journal.read_bytes() != whole:
                wrong = wrong or "a whole journal was changed"
            self.count("kills: searches on processes", wrong, command)
        self.expect_alone("kills: searches on processes")

    # Strangers ----------------------------------------------------------------------------------

    def ports_of(self, process):
        """Ports at which the process or its descendants listen."""
        inodes = set()
        for entry in Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or os.getpgid(int(entry.name)) == os.getpgid(0):
                    continue
                if self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    inodes |= {os.readlink(file) for file in (entry / "fd").iterdir()}
            except OSError:
                continue
        ports = set()
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                ports.add(int(words[1].split(":")[1], 16))
        return ports

    def strangers(self, wanted):
        command = self.command("validate", self.two_ranks("strangers", 50), "--ranks", "2", "--timeout",
                               "15", "--repeats", "30")
        self.typical(command)
        calls = 0
        while calls < wanted and not self.late():
            process = self.start(command)
            open_ones = []
            while process.poll() is None and calls < wanted:
                for port in self.ports_of(process) or [0]:
                    for _ in range(40 if port else 0):
                        calls += self.call(port, open_ones)
                time.sleep(0.002)
            end = self.end_of(process)
            for one in open_ones:
                one.close()
            wrong = "" if end and end[0] == 0 else f"{end and (end[0], end[2][:300])}"
            self.count("strangers: runs", wrong, command)
        self.counts["strangers: calls"] = [calls, 0]
        self.expect_alone("strangers")

    def call(self, port, open_ones):
        """One connection that says nothing, too much, something like ZeroMQ's greeting, or leaves."""
        try:
            one = socket.create_connection(("127.0.0.1", port), 0.2)
        except OSError:
            return 0
        greeting = b"\xff\0\0\0\0\0\0\0\1\x7f\3\0CURVE" + bytes(48)
        said = self.random.choice([b"", b"\0", greeting, greeting[:11], self.random.randbytes(64),
                                   b"GET / HTTP/1.1\r\n\r\n", self.random.randbytes(4000),
                                   greeting + self.random.randbytes(300)])
        try:
            one.sendall(said)
        except OSError:
            pass
        if self.random.random() < 0.1 and len(open_ones) < 200:
            open_ones.append(one)
        else:
            one.close()
        return 1

    # Command lines --------------------------------------------------------------------------------

    def command_lines(self, wanted):
        place = self.folder / "lines"
        place.mkdir()
        lines = CommandLines(self.program, self.random, place)
        for number in range(wanted):
            if self.late():
                break
            command = self.command(*lines.line(number))
            for wrong in self.seen_of(command) or [""]:
                self.count("command lines", wrong, command)
            for path in place.iterdir():
                if path.name.startswith(".partial"):
                    self.count("command lines", f"left {path.name}", command)
                if path.name != "scenarios":
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.expect_alone("command lines")

    def seen_of(self, command):
        """What is wrong with a run: signals, codes, time, memory, words that no terminal should get."""
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = self.start(command, limits={resource.RLIMIT_CPU: 21, resource.RLIMIT_AS: 4 << 30})
        try:
            out, err = process.communicate(timeout=10 * self.patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return ["hangs"]
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = used.ru_utime + used.ru_stime - begin.ru_utime - begin.ru_stime
        wrong = []
        if seconds > 20:
            wrong.append(f"takes {seconds:.0f} s")
        elif process.returncode not in (0, 2, 3, 130):
            wrong.append(f"ends with {process.returncode}: {err[:200]}")
        if used.ru_maxrss > 2 << 20 and begin.ru_maxrss <= 2 << 20:
            wrong.append(f"takes {used.ru_maxrss >> 10} MiB")
        if b"unexpected failure" in err or (process.returncode != 0 and not err.strip()):
            wrong.append(f"says {err[:300]}")
        for text in (out, err):
            if any(byte < 32 and byte not in b"\t\n\r" or byte == 127 for byte in text):
                wrong.append("prints control characters")
            try:
                text.decode()
            except UnicodeDecodeError:
                wrong.append("prints what is not UTF-8")
        if len(err) > 4000:
            wrong.append(f"says {len(err)} bytes")
        if re.search(rb"[:,\[]\s*-?(NaN|Infinity|nan|inf)\s*[,}\]]", out):
            wrong.append("prints a number that is none")
        return wrong

    # Limits -----------------------------------------------------------------------------------

    def verbs(self):
        """Each verb with files to write, by name of those."""
        scenario = self.two_ranks("two")
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
    parser.add_argument("--patience", type=float, default=30, help="more on a busy machine")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--strangers", type=int, default=1000)
    parser.add_argument("--searches", type=int, default=10)
    parser.add_argument("--only", help="journals, outputs, ranks, labs, searches, strangers, lines, "
                                       "descriptors, memory, disks")
    options = parser.parse_args()
    faults = Faults(options.program.resolve(), options.seed, options.seconds,
                    options.patience)
    quarter = options.kills // 4
    eighth = options.kills // 8
    parts = {
        "journals": lambda: faults.kill_journals(quarter),
        "outputs": lambda: faults.kill_outputs(quarter),
        "ranks": lambda: faults.kill_ranks(options.kills - 2 * quarter - eighth),
        "labs": lambda: faults.kill_labs(eighth),
        "searches": lambda: faults.kill_searches(options.searches),
        "strangers": lambda: faults.strangers(options.strangers),
        "lines": lambda: faults.command_lines(options.lines),
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
