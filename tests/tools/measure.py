#!/usr/bin/env python3
"""How large the product code is: `make measure`.

Prints the lines of each folder, the longest functions, where ten or more lines stand in two places,
and what is over a limit: a function of more than 70 lines, a file of cli of more than 130. Product
code is what git tracks of C++, CUDA and Python outside tests. Ends with 1 where something is over a
limit or repeated. With --limits (`make rooms`) it prints what is over a limit, and nothing else.
"""
import argparse
import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict

CPP = (".cc", ".h", ".cu", ".cuh")

# What is no code: comments, and what may hold braces without opening a block.
_NO_CODE = re.compile(
    r'R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'",
    re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
# What opens a block that holds functions rather than statements.
_SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b(?![^{]*\))")
_NAME = re.compile(r"(~?\w+|operator\W+)\s*\(")


def blank(match):
    """The same lines with nothing in them."""
    return re.sub(r"[^\n]", " ", match.group())


def functions_of_cpp(text):
    """(name, first line, lines) of every function with a body; lambdas count to where they stand."""
    code = _DIRECTIVE.sub(blank, _NO_CODE.sub(blank, text))
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


def over_limits(sources, functions, options):
    """[(lines, what, lines that it may have)], functions and then files."""
    over = [(size, "%s  %s" % (name, place), options.longest)
            for size, name, place in functions if size > options.longest]
    for path, text in sorted(sources.items()):
        if path.startswith("cli/") and text.count("\n") > options.face:
            over.append((text.count("\n"), path, options.face))
    return over


def print_sizes(lines, files, functions, options):
    print("Lines of product code: %d in %d files" % (sum(lines.values()), files))
    for folder, count in sorted(lines.items(), key=lambda item: -item[1]):
        print("%8d  %s" % (count, folder))
    print("\nThe longest of %d functions (lines):" % len(functions))
    for size, name, place in functions[:options.functions]:
        print("%8d  %s  %s" % (size, name, place))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", type=int, default=10, help="how many to list (default 10)")
    parser.add_argument("--longest", type=int, default=70,
                        help="lines that a function may have (default 70)")
    parser.add_argument("--face", type=int, default=130,
                        help="lines that a file of cli may have (default 130)")
    parser.add_argument("--limits", action="store_true", help="only what is over a limit")
    parser.add_argument("--repeated", type=int, default=10,
                        help="lines that two places may not share (default 10)")
    options = parser.parse_args()

    paths = subprocess.run(["git", "ls-files"], check=True, capture_output=True,
                           text=True).stdout.split()
    sources = {}
    for path in paths:
        if path.endswith(CPP + (".py",)) and not path.startswith("tests/"):
            with open(path, encoding="utf-8") as file:
                sources[path] = file.read()

    lines = Counter()
    functions = []
    for path, text in sources.items():
        python = path.endswith(".py")
        lines[path.split("/")[0] + (" (Python)" if python else "")] += text.count("\n")
        found = functions_of_python(text) if python else functions_of_cpp(text)
        functions += [(size, name, "%s:%d" % (path, line)) for name, line, size in found]
    functions.sort(reverse=True)
    over = over_limits(sources, functions, options)
    if not options.limits:
        print_sizes(lines, len(sources), functions, options)
    runs = [] if options.limits else repeated(sources, options.repeated)
    if not options.limits:
        print("\nRuns of %d and more lines in two places: %d" % (options.repeated, len(runs)))
    for length, place, other in runs:
        print("%8d  %s  %s" % (length, place, other))
    print("%sOver a limit: %d" % ("" if options.limits else "\n", len(over)))
    for size, name, most in over:
        print("%8d  %s, %d at most" % (size, name, most))
    return 1 if runs or over else 0


if __name__ == "__main__":
    sys.exit(main())
