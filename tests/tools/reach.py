#!/usr/bin/env python3
"""How much of the program is behind each verb: `make reach`.

Follows a verb's source through what it includes, and through the sources that define what those
headers declare. Prints the lines that it reaches, as a share of all C++ outside tests. With --limits
(`make rooms`) it prints the verbs over their limit alone, and ends with 1 where there is one.

A header is taken to need every source of its folder that includes it and defines, outside unnamed
namespaces, a function that it declares (the same name, the same last word of the first parameter's
type), and the source of its own name. So the share is more than one function of it would need, and
alike for every commit. Frameworks, predictors and backends are handed in by main and are behind no
other verb.
"""
import argparse
import pathlib
import re
import subprocess
import sys
from collections import defaultdict

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPP = (".cc", ".h", ".cu", ".cuh")

# What is asked: its source, and the percent of all lines that it may reach.
LIMITS = {
    "check": ("cli/check.cc", 35),
    "plan": ("cli/plan.cc", 35),
    "run": ("cli/run.cc", 45),
    "one evaluated row": ("studies/rows/row_evaluator.cc", 30),
    "one strategy, by the engine": ("core/metrics/evaluate.cc", 15),
}
VERBS = ("buckets", "calibrate", "emit", "explain", "import", "init", "list", "tune", "validate")


def sources():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name: (ROOT / name).read_text(errors="replace") for name in listed.stdout.split("\n")
            if name.endswith(CPP) and not name.startswith("tests/") and (ROOT / name).exists()}


def first_type(parameters):
    """The last word of the first parameter's type."""
    depth, first = 0, ""
    for letter in parameters:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            break
        first += letter
    words = re.findall(r"\w+", re.sub(r"\b(const|std)\b|::|[&*]", " ", first.split("=")[0]))
    return words[-2] if len(words) > 1 else words[0] if words else ""


def functions(pattern, text):
    return {f"{name}/{first_type(given)}" for name, given in re.findall(pattern, text, re.M)}


# Verbs declare themselves in these headers, and need none of the others; their tables do.
TABLES = {"cli/verbs.h": "cli/program.cc", "cli/modules/live.h": "cli/modules/live.cc",
          "cli/modules/imports.h": "cli/modules/imports.cc"}

DEFINED = r"^(?!\s)[\w:<>,&*\s]*?\b(\w+)\(([^;{}]*?)\)[^;{}()]*(?:\{|:)"
DECLARED = r"^(?:[\w:<>,&*\s\[\]]+?)\b(\w+)\(([^;{}]*?)\)[^;{}()]*;"
UNNAMED = re.compile(r"^namespace \{$.*?^\}  // namespace$", re.M | re.S)


class Graph:
    def __init__(self, texts):
        self.lines = {name: text.count("\n") for name, text in texts.items()}
        self.includes = {
            name: [header for header in re.findall(r'#include "([^"]+)"', text) if header in texts
                   and TABLES.get(header, name) == name]
            for name, text in texts.items()}
        definers = defaultdict(set)
        for name, text in texts.items():
            if name.endswith((".cc", ".cu")):
                for function in functions(DEFINED, UNNAMED.sub("", text)):
                    definers[function].add(name)
        self.behind = {}
        for header, text in texts.items():
            if not header.endswith((".h", ".cuh")):
                continue
            stem = header.rsplit(".", 1)[0]
            behind = {stem + end for end in (".cc", ".cu")} & texts.keys()
            for function in functions(DECLARED, text):
                behind |= {name for name in definers[function] if header in self.includes[name] and
                           self.room(name).startswith(self.room(header))}
            self.behind[header] = behind

    @staticmethod
    def room(name):
        return name.rsplit("/", 1)[0]

    def reach(self, start):
        seen, todo = set(), [start]
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += self.includes[name]
                todo += self.behind.get(name, ())
        return seen

    def percent(self, start):
        return 100 * sum(self.lines[name] for name in self.reach(start)) / sum(self.lines.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--limits", action="store_true", help="print what is over its limit alone")
    limits_alone = parser.parse_args().limits
    graph = Graph(sources())
    if not limits_alone:
        print(f"{'':<28} percent  limit   lines of {sum(graph.lines.values()):,}")
    over = 0
    places = {verb: (f"cli/{verb}.cc", f"cli/modules/{verb}.cc") for verb in VERBS}
    asked = LIMITS | {verb: (next(filter(graph.lines.get, places[verb])), None) for verb in VERBS}
    for name, (source, limit) in asked.items():
        percent = graph.percent(source)
        fails = limit is not None and percent > limit
        over += fails
        if not limits_alone:
            shown = f"{limit:>5}" if limit is not None else "    -"
            lines = sum(graph.lines[each] for each in graph.reach(source))
            print(f"{name:<28} {percent:>7.1f}  {shown}  {lines:>6,}")
        if fails:
            print(f"{name}: {source} reaches {percent:.1f} % of the program, at most {limit} are allowed "
                  "(tests/tools/reach.py)")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
