#!/usr/bin/env python3
"""Whether two builds answer alike: `tests/tools/compare_builds.py OLD NEW`.

Runs both programs on the same questions and compares what they print value by value. Figures are
compared as they are written, which is bit by bit. Exit codes and refusals are compared as well.

    scenarios   every scenario under scenarios/, with check, plan, buckets, run (by the model, and by
                both grains of the simulation where that takes under a minute), explain, tune, emit
    fidelity    the page of published measurements
    random      5,000 random scenarios: their plans, rows, explanations, and some simulations
    frameworks  20,000 random configurations of frameworks: their plans and rows
    pairs       native strategies that cover every pair of knobs: plans, rows, simulations, buckets

The last three come from `--draw PROGRAM` (make compare builds it). --sets names some of the sets,
--share 0.1 takes every tenth of what is drawn.

--expect FILE lists the differences that are intended, one a line: a pattern of where they are, and a
sentence that says why. The pattern is `verb format scenario value`, with * and ? as in a shell:

    explain json * strategies[*].exchanges    Counts collectives, as every other verb does.

--rounding 1e-12 takes figures for equal that differ by no more than that share of themselves, as
sums of the same terms in another order do; such answers are counted by themselves. --figures
compares figures, exit codes and yes or no, whatever the words around them.

Prints what was compared, equal, expected and different, and each difference. Ends with 1 where
there is one that nobody expected, or an expectation that nothing meets.
"""
import argparse
import csv
import fnmatch
import io
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FRAMEWORKS = ("paddle", "mindspore", "pytorch", "horovod", "megatron", "deepspeed", "hf_trainer",
              "fsdp")
SETS = ("scenarios", "fidelity", "random", "frameworks", "pairs")
SIMULATED = ["run", "--executor", "sim"]
DRAWN = {"random": 5000, "frameworks": 20000, "pairs": 0}
# What is asked of every scenario that is drawn, and of each tenth.
ASKED = {"random": ([["run"], ["plan"]], [SIMULATED, ["explain"]]),
         "frameworks": ([["plan"]], [["run"], ["buckets"]]),
         "pairs": ([["run"], ["plan"], ["buckets"], ["explain"], SIMULATED], [["tune"]])}
MOST_SHOWN = 5  # differences of one answer
PATIENCE = 60  # seconds for a simulation


class Number(str):
    """A figure as it is written: one bit off is another text."""


def scenarios():
    """Every file under scenarios/ that names a workload, a cluster and strategies."""
    for folder, _, names in sorted(os.walk(os.path.join(ROOT, "scenarios"))):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not name.endswith(".json"):
                continue
            with open(path, encoding="utf-8") as file:
                root = json.load(file)
            if isinstance(root, dict) and {"workload", "cluster", "strategies"} <= root.keys():
                yield os.path.relpath(path, ROOT), [each["name"] for each in root["strategies"]]


class Question:
    """What a program is asked: a command line, and a scenario in place of a file's name."""

    def __init__(self, form, scenario, words, text=None, patience=None):
        self.words = [*words, "--format", form] if words[0] != "emit" else words
        self.form, self.scenario, self.text, self.patience = form, scenario, text, patience

    def answer(self, program):
        """What the program says, by path: values, exit code, messages. None: no patience left."""
        try:
            done = subprocess.run([program, *self.words], cwd=ROOT, capture_output=True, text=True,
                                  check=False, input=self.text, timeout=self.patience)
        except subprocess.TimeoutExpired:
            return None
        # How much time is left is nobody's answer.
        said = {"exit": Number(done.returncode),
                "stderr": re.sub(r"about \d+ \w+ left", "some time left", done.stderr)}
        try:
            said.update(flat(json.loads(done.stdout, parse_float=Number, parse_int=Number))
                        if self.form == "json" else values_of_csv(done.stdout))
        except ValueError:
            said["stdout"] = done.stdout
        return said


def of_scenario(scenario, strategies):
    """All that is asked about a scenario under scenarios/."""
    for form in ("json", "csv"):
        for verb in ("check", "run", "explain", "tune"):
            yield Question(form, scenario, [verb, scenario])
        for verb in ("plan", "buckets"):
            for name in strategies:
                yield Question(form, scenario, [verb, scenario, "--strategy", name])
    for grain in ("merged", "step"):
        yield Question("json", scenario, [*SIMULATED, scenario, "--grain", grain],
                       patience=PATIENCE)
    for framework in FRAMEWORKS:
        for name in strategies:
            yield Question("json", scenario, ["emit", scenario, "--strategy", name, "--dialect",
                                              framework])


def of_drawn(program, name, share):
    """All that is asked about what is drawn of a set."""
    drawn = subprocess.run([program, name, str(DRAWN[name])], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    every = max(1, round(1 / share))
    for index, text in enumerate(drawn[::every]):
        always, at_times = ASKED[name]
        for words in always + (at_times if index % 10 == 0 else []):
            yield Question("json", f"{name}[{index * every}]", [words[0], "-", *words[1:]], text)


def questions(options):
    """Everything that is asked, set by set."""
    sets = options.sets.split(",")
    if "scenarios" in sets:
        for scenario, strategies in scenarios():
            if options.only in scenario:
                yield from of_scenario(scenario, strategies)
    if "fidelity" in sets:
        yield Question("json", "fidelity", ["fidelity"])
    for name in DRAWN:
        if name in sets and options.draw is None:
            print(f"left out: {name}, as --draw names no program")
        elif name in sets:
            yield from of_drawn(options.draw, name, options.share)


def flat(value, path=""):
    """The leaves of a JSON document by their paths."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from flat(part, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        yield f"{path}.length", Number(len(value))
        for index, part in enumerate(value):
            yield from flat(part, f"{path}[{index}]")
    else:
        yield path, value


def values_of_csv(text):
    """The cells of a CSV table by line and column."""
    lines = list(csv.reader(io.StringIO(text)))
    for number, line in enumerate(lines):
        for column, cell in enumerate(line):
            heading = lines[0][column] if column < len(lines[0]) else str(column)
            yield f"line[{number}].{heading}", cell


def expectations(path):
    """(pattern, sentence) of every line of the file."""
    if path is None:
        return []
    with open(path, encoding="utf-8") as file:
        lines = [line.split(None, 4) for line in file if line.strip() and line[0] != "#"]
    for line in lines:
        if len(line) < 5:
            raise SystemExit(f"{path}: a line has a verb, a format, a scenario, a value and a "
                             f"sentence, not '{' '.join(line)}'")
    return [(line[:4], line[4].strip()) for line in lines]


def meets(pattern, place):
    """Whether each word of the place is like the pattern's; brackets stand for themselves."""
    return all(fnmatch.fnmatchcase(word, re.sub(r"\[", "[[]", wanted))
               for word, wanted in zip(place, pattern))


def is_word(value):
    """Whether it is text that is no figure; what is not there is not one either."""
    if isinstance(value, Number) or not isinstance(value, str):
        return value is None
    try:
        float(value)
    except ValueError:
        return True
    return False


class Comparison:
    """Counts answers, and says where they differ."""

    def __init__(self, expected, options):
        self.expected = expected
        self.rounding = options.rounding
        self.figures = options.figures
        self.met = [0] * len(expected)
        self.counts = dict.fromkeys(("compared", "equal", "rounded", "expected", "different", "too long"), 0)

    def add(self, question, old, new):
        """Counts one question's two answers, and prints what nobody expected of them."""
        if old is None or new is None:
            self.counts["too long"] += 1
            return
        self.counts["compared"] += 1
        differing = [path for path in {**old, **new}
                     if old.get(path, "nothing") != new.get(path, "nothing")
                     and not (self.figures and is_word(old.get(path)) and is_word(new.get(path)))]
        if not differing:
            self.counts["equal"] += 1
            return
        differing = [path for path in differing if not self.rounds(old.get(path), new.get(path))]
        if not differing:
            self.counts["rounded"] += 1
            return
        place = (question.words[0], question.form, question.scenario)
        surprising = [path for path in differing if not self.expects((*place, path))]
        self.counts["different" if surprising else "expected"] += 1
        if surprising:
            print(f"different: {' '.join(question.words)}"
                  f"{' < ' + question.scenario if question.text else ''}", flush=True)
        for path in surprising[:MOST_SHOWN]:
            print(f"    {path}: {old.get(path, 'nothing')!s:.120} -> "
                  f"{new.get(path, 'nothing')!s:.120}")
        if len(surprising) > MOST_SHOWN:
            print(f"    and {len(surprising) - MOST_SHOWN} more")

    def rounds(self, old, new):
        """Whether two figures differ by rounding alone."""
        try:
            old, new = float(old), float(new)
        except (TypeError, ValueError):
            return False
        return abs(old - new) <= self.rounding * max(abs(old), abs(new))

    def expects(self, place):
        """Whether some line of the file expects a difference there."""
        found = [i for i, (pattern, _) in enumerate(self.expected) if meets(pattern, place)]
        for i in found:
            self.met[i] += 1
        return bool(found)

    def end(self):
        """Prints the counts; whether all is as expected."""
        for (pattern, sentence), met in zip(self.expected, self.met):
            print(f"expected {met} times: {' '.join(pattern)}: {sentence}")
        print(", ".join(f"{count} {word}" for word, count in self.counts.items()))
        return self.counts["different"] == 0 and all(self.met)


def main():
    """Compares the two programs that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("old", type=os.path.abspath)
    parser.add_argument("new", type=os.path.abspath)
    parser.add_argument("--expect", metavar="FILE", help="the differences that are intended")
    parser.add_argument("--sets", default=",".join(SETS), help="with commas; all if left out")
    parser.add_argument("--draw", metavar="PROGRAM", type=os.path.abspath,
                        help="draws the last three sets: build/syncline_draw_scenarios")
    parser.add_argument("--share", type=float, default=1, help="how much of what is drawn")
    parser.add_argument("--rounding", type=float, default=0, help="0: figures are alike bit by bit")
    parser.add_argument("--figures", action="store_true", help="words may differ")
    parser.add_argument("--verbs", help="which verbs, with commas; all of them if left out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs at a time")
    parser.add_argument("--only", metavar="PART", default="", help="scenarios with this in the name")
    options = parser.parse_args()
    verbs = options.verbs.split(",") if options.verbs else None
    asked = [each for each in questions(options) if not verbs or each.words[0] in verbs]
    comparison = Comparison(expectations(options.expect), options)
    with ThreadPoolExecutor(options.jobs) as pool:
        answers = pool.map(lambda one: [one.answer(program)
                                        for program in (options.old, options.new)], asked)
        for count, (question, (old, new)) in enumerate(zip(asked, answers), 1):
            comparison.add(question, old, new)
            if sys.stderr.isatty() or count % 2000 == 0:
                print(f"\r{count} of {len(asked)}", end="", file=sys.stderr, flush=True)
    return 0 if comparison.end() else 1


if __name__ == "__main__":
    sys.exit(main())
