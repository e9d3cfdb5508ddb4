#!/usr/bin/env python3
"""How large the product code is: `make measure`.

Prints the lines of each folder and of the tests, content lines among them (without empty lines, lone
braces, includes and comments), the headers and the types in them by room, those of the engine's face,
the rules that exclude knobs, the longest functions, classes of more than 250 lines, where ten or more lines stand in two places, and which
functions have more than 70 lines. Product code is what git tracks of C++, CUDA and Python outside
tests. Ends with 1 where something is over the limit or repeated. With --limits (`make rooms`) it
prints what is over the limit, and nothing else. More large classes than MOST_LARGE, private words in names (banned_names.txt), types of two
headers with one name, and headers that open with more than five lines are over it too.

A type is a class, struct, union or enum with a name and a body in a .h file, nested ones too; aliases
and forward declarations do not count. A room is a folder, below core, catalogue, formats and studies a folder of its own. A rule that
excludes a knob is a `Conflict{...}` or a row of the table of knobs that `.enable(...)` others.
"""
import argparse
import ast
import pathlib
import re
import subprocess
import sys
from collections import Counter, defaultdict

CPP = (".cc", ".h", ".cu", ".cuh")
# Classes of more than so many lines, and how many of them may be left.
LARGE = 250
MOST_LARGE = 0

# What is no code: comments, and what may hold braces without opening a block.
_NO_CODE = re.compile(
    r'R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'",
    re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
# What opens a block that holds functions rather than statements.
_SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b(?![^{]*\))")
_NAME = re.compile(r"(~?\w+|operator\W+)\s*\(")
_TYPE = re.compile(r"\b(?:enum(?:\s+class)?|class|struct|union)\s+(?:[\w()]+\s+)?\w[\w:]*\s*"
                   r"(?:final\s*)?(?::[^{};()]*)?\{")
_EXCLUSION = re.compile(r"\bConflict\{\s*[^\s}]|\)\s*\.enable\(")


def blank(match):
    """The same lines with nothing in them."""
    return re.sub(r"[^\n]", " ", match.group())


def code_of(text):
    """Without comments, directives and what stands in quotes."""
    return _DIRECTIVE.sub(blank, _NO_CODE.sub(blank, text))


def types_of(text):
    return len(_TYPE.findall(code_of(text)))


def exclusions_of(text):
    return len(_EXCLUSION.findall(code_of(text)))


def room_of(path):
    folders = path.split("/")[:-1]
    split = folders[:1] in (["core"], ["catalogue"], ["formats"], ["studies"])
    return "/".join(folders[:2 if split else 1])


def functions_of_cpp(text):
    """(name, first line, lines) of every function with a body; lambdas count to where they stand."""
    code = code_of(text)
    found = []
    begin = 0  # of the declaration at hand
    depth = 0  # of blocks inside a function
    start = None
    for match in re.finditer(r"[{};]", code):
        at, mark = match.start(), match.group()
        if mark == "{":
            head = code[begin:at]
            if depth > 0:
                depth += 1
            elif not _SCOPE.search(head) and "(" in head and not re.search(r"=\s*$", head):
                start, depth = begin + len(head) - len(head.lstrip()), 1
        elif mark == "}" and depth > 0:
            depth -= 1
            if depth == 0:
                name = _NAME.search(code, start)
                first = code.count("\n", 0, start) + 1
                lines = code.count("\n", start, at) + 1
                found.append((name.group(1) if name else "?", first, lines))
        if depth == 0:
            begin = at + 1
    return found


def classes_of(text):
    """(name, first line, lines) of every class or struct with a body."""
    code = code_of(text)
    found = []
    for match in re.finditer(r"\b(?:class|struct)\s+([\w:]+)[^;{}()]*\{", code):
        depth, at = 1, match.end()
        while depth > 0 and at < len(code):
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        found.append((match.group(1), code.count("\n", 0, match.start()) + 1,
                      code.count("\n", match.start(), at) + 1))
    return found


def content_lines(path, text):
    """Lines that say something."""
    return sum(1 for _, line in lines_of_code(path, text) if not re.fullmatch(r"[{}()\[\];,\s]*", line)
               and not (path.endswith(".py") and line.startswith("#")))


def functions_of_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def lines_of_code(path, text):
    """(line number, line) without comments, empty lines and what every file begins with."""
    if path.endswith(CPP):
        text = re.sub(r"//[^\n]*", "", text)
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line and not line.startswith(("#include", "import ", "from ")):
            yield number, line


def repeated(sources, least):
    """[(length, place, place)] of runs of lines that stand in two places, the longest first."""
    files = {path: list(lines_of_code(path, text)) for path, text in sources.items()}
    windows = defaultdict(list)
    for path, lines in files.items():
        for i in range(len(lines) - least + 1):
            windows[tuple(line for _, line in lines[i:i + least])].append((path, i))
    pairs = set()
    for places in windows.values():
        pairs.update((a, b) for k, b in enumerate(places) for a in places[:k])
    runs = []
    for (path, i), (other, j) in pairs:
        if ((path, i - 1), (other, j - 1)) in pairs:
            continue  # inside a longer run
        length = 0
        while ((path, i + length), (other, j + length)) in pairs:
            length += 1
        runs.append((length + least - 1, "%s:%d" % (path, files[path][i][0]),
                     "%s:%d" % (other, files[other][j][0])))
    return sorted(runs, reverse=True)


def over_limit(functions, longest):
    """[(lines, function)]"""
    return [(size, "%s  %s" % (name, place)) for size, name, place in functions if size > longest]


def print_counts(counts):
    for name, count in sorted(counts.items(), key=lambda item: -item[1]):
        print("%8d  %s" % (count, name))


def print_sizes(lines, content, files, tests):
    print("Lines of product code: %d in %d files; content lines: %d"
          % (sum(lines.values()), files, content))
    print_counts(lines)
    print("\nLines of tests: %d in %d files"
          % (sum(text.count("\n") for text in tests.values()), len(tests)))


def print_concepts(sources):
    headers = {path: text for path, text in sources.items() if path.endswith(".h")}
    types = Counter()
    for path, text in headers.items():
        types[room_of(path)] += types_of(text)
    print("\nTypes in headers: %d in %d headers" % (sum(types.values()), len(headers)))
    print_counts(+types)
    face = {path: text for path, text in headers.items() if re.fullmatch(r"core/\w+\.h", path)}
    print("\nThe engine's face: %d headers, %d types; behind it %d types"
          % (len(face), sum(types_of(text) for text in face.values()),
             sum(count for room, count in types.items() if room.startswith("core/"))))
    print("\nRules that exclude knobs: %d" % sum(exclusions_of(text) for path, text in
                                                 sources.items() if path.endswith(".cc")))


def tracked_sources():
    """{path: text} of what git tracks of C++, CUDA and Python."""
    paths = subprocess.run(["git", "ls-files"], check=True, capture_output=True,
                           text=True).stdout.split()
    return {path: pathlib.Path(path).read_text(encoding="utf-8") for path in paths
            if path.endswith(CPP + (".py",))}


def shared_names(sources):
    """Types of two headers that have one name, outside classes: {name: headers}."""
    homes = defaultdict(set)
    for path, text in sources.items():
        if path.endswith(".h"):
            code = _NO_CODE.sub(blank, text)
            for name in re.findall(r"^(?:class|struct|union|enum(?: class)?) (\w+)[^;(]*\{", code, re.MULTILINE):
                homes[name].add(path)
    return {name: sorted(paths) for name, paths in sorted(homes.items()) if len(paths) > 1}


def private_names(sources, banned):
    """Names of which a part is a private word, where they first stand: {name: path}."""
    found = {}
    for path, text in sources.items():
        if path.endswith(CPP):
            code = _DIRECTIVE.sub(blank, _NO_CODE.sub(blank, text))
            for name in re.findall(r"[A-Za-z_]\w*", code):
                parts = re.findall(r"[A-Z]?[a-z]+", name)
                if any(part.lower() in banned for part in parts):
                    found.setdefault(name, path)
    return found


def prefaces(sources):
    """The headers that open with more lines of comment than a reader takes in: (lines, path)."""
    found = []
    for path, text in sources.items():
        opening = re.match(r"(?://[^\n]*\n)*", text).group()
        if path.endswith(".h") and opening.count("\n") > 5:
            found.append((opening.count("\n"), path))
    return sorted(found, reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", type=int, default=10, help="how many to list (default 10)")
    parser.add_argument("--longest", type=int, default=70,
                        help="lines that a function may have (default 70)")
    parser.add_argument("--limits", action="store_true", help="only what is over the limit")
    parser.add_argument("--repeated", type=int, default=10,
                        help="lines that two places may not share (default 10)")
    options = parser.parse_args()

    tracked = tracked_sources()
    tests = {path: text for path, text in tracked.items() if path.startswith("tests/")}
    sources = {path: text for path, text in tracked.items() if path not in tests}

    lines = Counter()
    functions = []
    for path, text in sources.items():
        python = path.endswith(".py")
        lines[path.split("/")[0] + (" (Python)" if python else "")] += text.count("\n")
        found = functions_of_python(text) if python else functions_of_cpp(text)
        functions += [(size, name, "%s:%d" % (path, line)) for name, line, size in found]
    functions.sort(reverse=True)
    over = over_limit(functions, options.longest)
    runs = [] if options.limits else repeated(sources, options.repeated)
    if not options.limits:
        content = sum(content_lines(path, text) for path, text in sources.items())
        print_sizes(lines, content, len(sources), tests)
        print_concepts(sources)
        print("\nThe longest of %d functions (lines):" % len(functions))
        for size, name, place in functions[:options.functions]:
            print("%8d  %s  %s" % (size, name, place))
        print("\nRuns of %d and more lines in two places: %d" % (options.repeated, len(runs)))
        for length, place, other in runs:
            print("%8d  %s  %s" % (length, place, other))
        print()
    classes = sorted(((size, name, "%s:%d" % (path, line)) for path, text in sources.items()
                      if path.endswith(CPP) for name, line, size in classes_of(text)), reverse=True)
    large = [each for each in classes if each[0] > LARGE]
    print("Classes of more than %d lines: %d" % (LARGE, len(large)))
    for size, name, place in large:
        print("%8d  %s  %s" % (size, name, place))
    print("Functions of more than %d lines: %d" % (options.longest, len(over)))
    for size, what in over:
        print("%8d  %s" % (size, what))
    shared = shared_names(sources)
    print("Types with a shared name: %d" % len(shared))
    for name, paths in shared.items():
        print("  %s  %s" % (name, " ".join(paths)))
    long_openings = prefaces(tracked)
    print("Headers that open with more than 5 lines: %d" % len(long_openings))
    for size, path in long_openings:
        print("%8d  %s" % (size, path))
    banned = set(pathlib.Path(__file__).with_name("banned_names.txt").read_text().split())
    private = private_names(sources, banned)
    print("Names with a private word: %d" % len(private))
    for name, path in sorted(private.items()):
        print("  %s  %s" % (name, path))
    many = len(large) > MOST_LARGE
    return 1 if runs or over or private or shared or long_openings or many else 0


if __name__ == "__main__":
    sys.exit(main())
