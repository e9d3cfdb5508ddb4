"""Command lines that nobody would write, for faults.py: verbs with options of their own help, scenarios
of this repository with values changed, files of the fuzzers' corpora with bytes changed. The same seed
gives the same lines."""
import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STRANGE = [None, True, False, 0, -1, 1, 2, 7, 1e-320, 1e308, -1e308, 0.5, 2**31, 2**63, 2**64, 10**400,
           "", "a", "ring", "x" * 3000, "\x1b[31m", "\u202e", "\0", "\ud7ff", "=1+1", "../..", "/dev/null",
           [], {}, [[]], [1, 2], [{}], {"a": 1}, [None] * 50, "1e999", "nan", "auto", "dgx-h100"]
WORDS = ["", "0", "-1", "1", "2", "3", "64", "1e9", "nan", "inf", "-inf", "1e-320", "99999999999999999999",
         "a", "\x1b[31mx", "\u202e", "x" * 2000, "/dev/null", "/dev/full", "/nowhere/x", ".", "--", "-",
         "json", "csv", "table", "pytorch", "horovod", "megatron", "ring", "1,2,4", "k=v", "2=0.5",
         "cluster.nodes=2", "workload.tensors.0.shape=[1]", "strategies.0.streams=0", "1/2", "4x100gbit"]
VERBS = ["run", "run", "run", "tune", "tune", "explain", "plan", "buckets", "check", "emit", "init",
         "init", "import", "calibrate logs", "calibrate steps", "calibrate kernels", "record", "list",
         "schema", "completion", "fidelity", "capture", "compare", "validate"]
SCENARIO_VERBS = {"run", "tune", "explain", "plan", "buckets", "check", "emit", "validate",
                  "calibrate steps"}
LARGEST = 60_000  # bytes of a scenario to begin with


class CommandLines:
    def __init__(self, program, random, folder):
        self.program, self.random, self.folder = program, random, folder
        self.scenarios = [json.loads(path.read_text()) for path in sorted(ROOT.glob("scenarios/**/*.json"))
                          if path.stat().st_size < LARGEST and self._is_scenario(path)]
        self.corpus = [path for path in sorted((ROOT / "tests/fuzz/corpus").glob("*/*"))
                       if path.stat().st_size < LARGEST]
        self.options = {verb: self._options_of(verb) for verb in sorted(set(VERBS))}
        (folder / "scenarios").symlink_to(ROOT / "scenarios")

    @staticmethod
    def _is_scenario(path):
        root = json.loads(path.read_text())
        return isinstance(root, dict) and {"workload", "cluster", "strategies"} <= root.keys()

    def _options_of(self, verb):
        """(name, whether a value follows) of each option in its help."""
        text = subprocess.run([self.program, *verb.split(), "--help-all"], capture_output=True,
                              text=True, check=True).stdout
        found = re.findall(r"^  (?:-\w,)?(--[a-z-]+)(?:[ {](\S+))?", text, re.M)
        return [(name, value.isupper() or value.endswith("...")) for name, value in found
                if name not in ("--help", "--help-all")]

    def changed(self, value, changes):
        """The value with some members replaced, removed, doubled or added."""
        places = []

        def look(at, place):
            if isinstance(at, (dict, list)) and len(places) < 5000:
                keys = list(at) if isinstance(at, dict) else range(len(at))
                for key in keys:
                    places.append((at, key))
                    look(at[key], place)
        look(value, ())
        for _ in range(changes):
            if not places:
                break
            parent, key = self.random.choice(places)
            try:
                old = parent[key]
            except (KeyError, IndexError):
                continue
            kind = self.random.randrange(7)
            if kind < 3:
                parent[key] = self.random.choice(STRANGE)
            elif kind == 3 and isinstance(old, (int, float)) and abs(old) < 1e300:
                parent[key] = old * self.random.choice([-1, 0, 1e-9, 0.1, 3, 1000, 1e12])
            elif kind == 4:
                del parent[key]
            elif kind == 5 and isinstance(parent, list):
                parent.extend([old] * self.random.choice([1, 2, 100]))
            elif isinstance(parent, dict):
                parent[str(key) + self.random.choice(["", "x", "\x1b", "_ms"])] = old
        return value

    def scenario(self, number):
        """A file with a changed scenario; now and then with changed bytes, too."""
        root = json.loads(json.dumps(self.random.choice(self.scenarios)))
        root = self.changed(root, self.random.choice([0, 1, 1, 2, 5, 20]))
        text = json.dumps(root, ensure_ascii=self.random.random() < 0.5)
        path = self.folder / f"{number}.json"
        data = text.encode("utf-8", "surrogatepass")
        path.write_bytes(self.bytes_of(data) if self.random.random() < 0.1 else data)
        return path

    def bytes_of(self, data):
        for _ in range(self.random.choice([0, 1, 1, 3, 10])):
            at = self.random.randrange(len(data) + 1)
            piece = self.random.choice([b"", b"\0", b"\xff", b"[" * 99, b'"', b"9" * 30, b"\n", b"{",
                                        data[at:at + 200] * 20])
            data = data[:at] + piece + data[at + self.random.choice([0, 1, 30]):]
        return data

    def file(self, number, place):
        source = self.random.choice(self.corpus)
        path = self.folder / f"{number}-{place}{self.random.choice(['', '.json', '.txt', '.yaml', '.sh', '.csv'])}"
        path.write_bytes(self.bytes_of(source.read_bytes()))
        return path

    def value(self, number, place):
        kind = self.random.random()
        if kind < 0.7:
            return self.random.choice(WORDS)
        if kind < 0.9:
            return str(self.file(number, place))
        return str(self.folder / f"out-{number}-{place}")

    def line(self, number):
        """The words after the program's name."""
        verb = self.random.choice(VERBS)
        words = verb.split()
        if verb in SCENARIO_VERBS:
            words.append(str(self.scenario(number)))
        elif verb == "init":
            words.append(self.random.choice(["llama3_8b", "resnet50", "bert_base", str(self.file(number, "m"))]))
            words += self.random.choice([["--node", "dgx-h100"], ["--gpu", "a100-sxm-80gb"], [],
                                         ["--gpu", "h100-sxm", "--node", str(self.file(number, "n"))]])
        elif verb in ("import", "calibrate logs", "calibrate kernels"):
            words += [str(self.file(number, place)) for place in range(self.random.choice([1, 1, 2]))]
        elif verb == "validate":
            words += ["--ranks", "2", "--timeout", "5"]
        for place in range(self.random.choice([0, 1, 1, 2, 4])):
            name, takes = self.random.choice(self.options[verb] or [("--help", False)])
            words.append(name)
            if takes != (self.random.random() < 0.05):
                words.append(self.value(number, f"o{place}"))
        if verb == "tune":
            words += ["--budget", "30"]
        if verb in ("capture", "compare"):
            words += ["--", "true", "echo 1"][0 if verb == "capture" else 1:]
        # A NUL ends a word of a command line.
        return [word.replace("\0", "") for word in words]
