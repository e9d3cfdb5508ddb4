#!/usr/bin/env python3
"""Whether two builds answer alike: `tests/tools/compare_builds.py OLD NEW`.

Runs both programs on every scenario under scenarios/ with check, plan, buckets, run, explain, tune
and emit, in JSON and in CSV, and compares what they print value by value. Figures are compared as they are written, which is bit by bit. Exit codes and refusals are
compared as well.

--expect FILE lists the differences that are intended, one a line: a pattern of where they are, and a
sentence that says why. The pattern is `verb format scenario value`, with * and ? as in a shell:

    explain json * strategies[*].exchanges    Counts collectives, as every other verb does.

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
MOST_SHOWN = 5  # differences of one answer


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


def questions(scenario, strategies):
    """(verb, format, scenario, arguments) of all that is asked about a scenario."""
    for form in ("json", "csv"):
        for verb in ("check", "run", "explain", "tune"):
            yield verb, form, scenario, [verb, scenario, "--format", form]
        for verb in ("plan", "buckets"):
            for name in strategies:
                yield verb, form, scenario, [verb, scenario, "--strategy", name, "--format", form]
    for framework in FRAMEWORKS:
        for name in strategies:
            yield "emit", "json", scenario, ["emit", scenario, "--strategy", name, "--dialect",
                                             framework]


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


def answer(program, arguments, form):
    """What the program says, by path: its values, its exit code and what it says beside them."""
    done = subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    said = {"exit": Number(done.returncode), "stderr": done.stderr}
    try:
        said.update(flat(json.loads(done.stdout, parse_float=Number, parse_int=Number))
                    if form == "json" else values_of_csv(done.stdout))
    except ValueError:
        said["stdout"] = done.stdout
    return said


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


class Comparison:
    """Counts answers, and says where they differ."""

    def __init__(self, expected):
        self.expected = expected
        self.met = [0] * len(expected)
        self.counts = dict.fromkeys(("compared", "equal", "expected", "different"), 0)

    def add(self, question, old, new):
        """Counts one question's two answers, and prints what nobody expected of them."""
        verb, form, scenario, arguments = question
        self.counts["compared"] += 1
        differing = [path for path in {**old, **new}
                     if old.get(path, "nothing") != new.get(path, "nothing")]
        if not differing:
            self.counts["equal"] += 1
            return
        surprising = [path for path in differing if not self.expects((verb, form, scenario, path))]
        self.counts["different" if surprising else "expected"] += 1
        if surprising:
            print(f"different: {' '.join(arguments)}")
        for path in surprising[:MOST_SHOWN]:
            print(f"    {path}: {old.get(path, 'nothing')!s:.120} -> "
                  f"{new.get(path, 'nothing')!s:.120}")
        if len(surprising) > MOST_SHOWN:
            print(f"    and {len(surprising) - MOST_SHOWN} more")

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
    parser.add_argument("--verbs", help="which verbs, with commas; all of them if left out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs at a time")
    parser.add_argument("--only", metavar="PART", default="", help="scenarios with this in the name")
    options = parser.parse_args()
    asked = [question for scenario, strategies in scenarios() if options.only in scenario
             for question in questions(scenario, strategies)
             if not options.verbs or question[0] in options.verbs.split(",")]
    comparison = Comparison(expectations(options.expect))
    with ThreadPoolExecutor(options.jobs) as pool:
        answers = pool.map(lambda one: [answer(program, one[3], one[1])
                                        for program in (options.old, options.new)], asked)
        for question, (old, new) in zip(asked, answers):
            comparison.add(question, old, new)
    return 0 if comparison.end() else 1


if __name__ == "__main__":
    sys.exit(main())
