#!/usr/bin/env python3
"""Measures how comments and names of the product's C++ read: `make words` prints it after the pages.

Each figure has a limit, which only gets closer; the highest of ninja, leveldb, gloo and nvbench is
printed with it. With --check it ends with 1 if a limit is passed; with --list HABIT it prints places.
"""
import argparse
import pathlib
import re
import subprocess
import sys

# Habit: (limit, the anchors' highest). Shares are percent of comment blocks, others are counts.
LIMITS = {
    "functions of headers whose comment opens with a verb": (98, 51),  # at least
    "blocks that open with What, Of, Whether, Where, That, Those, Likewise, And, By, With": (0.2, 0.2),
    "blocks with 'what'": (0.4, 0.6),
    "blocks with 'where'": (0.2, 1.7),
    "blocks with 'stands' or 'stood'": (0.1, 0),
    "blocks with 'so many' or 'as many'": (0.1, 0.2),
    "blocks with 'behind'": (0.2, 0.3),
    "blocks with 'beside'": (0.1, 0),
    "blocks with 'of which', 'whose' or 'in which'": (0.2, 1.3),
    "sentences of more than 25 words, in percent": (1, None),
    "names in backquotes that no code has": (0, None),
    "functions named by a participle": (0, None),
    "tests with a banned word or an opening such as What or Of in their name": (0, None),
}
VERB_FIRST, *_ = LIMITS

_VERBS = set("""
accepts publishes does makes remembers rescales varies shards pools requires narrows adds adjusts advises aligns allocates announces answers appends applies asks assigns averages begins
binds bounds breaks brings broadcasts builds calls carries casts catches checks chooses clears closes
collects combines compares compiles computes confirms connects continues converts copies costs counts creates
cuts decides decodes deletes describes destroys detaches divides draws drops emits encodes ends ensures
estimates evaluates exchanges expands expects explains exports extends factors fetches files fills finds
finishes fits flushes folds follows forgets forks formats frees fuses gathers gets gives goes groups guards
guesses hands has hashes hides holds imports includes indexes inserts interpolates invents is joins judges keeps
launches lays leaves lengthens lets links lists loads locates lowers maps marks matches measures merges mixes
moves multiplies names notes numbers offers opens orders orthogonalises overlaps packs pads parses parts passes
patches pins places plans posts predicts prefers prepares prints proposes pulls pushes puts quotes raises ranks
reads rebuilds receives records reduces refuses registers rehearses releases removes renames repeats replaces
reports resets resolves restores returns reverses rewrites rounds runs samples says scales scans scatters
searches selects sends sets settles shares shifts shortens shows simulates skips sleeps solves sorts splits
spreads stages starts states stops stores stretches sums swaps syncs takes tells tests throws ties times
trains transforms translates traverses trims tries tunes turns unites unpacks updates uses validates verifies
waits walks warns works wraps writes yields zeroes reconstructs true prices prunes picks widens reaches
""".split())
_OPENINGS = {"What", "Of", "Whether", "Where", "That", "Those", "Likewise", "And", "By", "With"}
_PARTICIPLES = set("""
told said kept held taken drawn written known found made given left shown seen sent built cut put read set
bound hidden begun broken chosen driven gone grown hurt laid led lent lost meant met paid run shut sold spent
stuck thought understood won worn
""".split())
# Words that end like a participle and are none, or are verbs and adjectives of the field.
_NO_PARTICIPLES = set("""
need needs feed embed speed seed shed exceed proceed bed fed red need unused advanced mixed fixed signed
unsigned read put set cut run
""".split())

# Last words of a name that are no noun.
_ENDINGS = set("""
among apart as at away before by for forward from in inside instead into now of on out over place to together
up upwards with
""".split())

_FUNCTION = re.compile(
    r"(?:(?:inline|static|virtual|explicit|constexpr|friend|template\s*<[^>]*>|\[\[\w+\]\])\s+)*"
    r"(?P<type>[\w:<>,&*\s]*?)[\s&*]*(?P<name>~?\b[a-z_A-Z]\w*)\s*\(")


def blocks_of(text):
    """(line, text, the code after it) of each comment of whole lines."""
    lines, i = text.split("\n"), 0
    while i < len(lines):
        if not lines[i].lstrip().startswith("//"):
            i += 1
            continue
        j = i
        while j < len(lines) and lines[j].lstrip().startswith("//"):
            j += 1
        said = " ".join(line.strip()[2:].strip() for line in lines[i:j])
        yield i + 1, said, " ".join(line.strip() for line in lines[j:j + 6])
        i = j


def function_after(code):
    """The name of the function that the code declares first; None if it declares something else."""
    if re.match(r"(class|struct|enum|union|namespace|using|#|return|if|for|while|switch|case|else|\}|$)", code):
        return None
    head = re.split(r"[;{=]", code)[0]
    match = _FUNCTION.match(head)
    if not match or (not match["type"].strip() and not match["name"][:1].isupper() and
                     not match["name"].startswith("~")):
        return None
    return match["name"]


def opens_with_verb(said):
    return said.split(" ", 1)[0].rstrip(",:.").lower() in _VERBS


def names_of_functions(text):
    """Names that a header or source declares, constructors aside."""
    code = re.sub(r"//[^\n]*", "", text)
    return set(re.findall(r"^[ \t]*(?:[\w:<>,&*]+[ \t&*]+)+([a-z]\w*)\((?!\*)", code, re.MULTILINE))


def is_participle(name):
    """Whether a name is a participle without its noun: "kept", "bound_to"; "quoted_name" is a noun."""
    first, *rest = name.split("_")
    if first in _NO_PARTICIPLES or (rest and rest[-1] not in _ENDINGS):
        return False
    return first in _PARTICIPLES or (first.endswith("ed") and len(first) > 3)


def habits_of(sources):
    """{habit: [place, ...]}, and the totals by which shares are taken."""
    found = {habit: [] for habit in LIMITS}
    habits = list(LIMITS)
    totals = {"blocks": 0, "functions": 0, "sentences": 0}
    code = "\n".join(re.sub(r"//[^\n]*", "", text) for text in sources.values())
    words = set(re.findall(r"\w+", code))
    patterns = [(habits[2], r"\bwhat(ever)?\b"), (habits[3], r"\bwhere\b"), (habits[4], r"\bst(ands?|ood)\b"),
                (habits[5], r"\b(so|as) many\b"), (habits[6], r"\bbehind\b"), (habits[7], r"\bbeside\b"),
                (habits[8], r"\b(of which|whose|in which)\b")]
    for name, text in sources.items():
        for line, said, after in blocks_of(text):
            place = f"{name}:{line}: {said[:90]}"
            totals["blocks"] += 1
            if said.split(" ", 1)[0] in _OPENINGS:
                found[habits[1]].append(place)
            for habit, pattern in patterns:
                if re.search(pattern, said, re.IGNORECASE):
                    found[habit].append(place)
            if name.endswith(".h") and function_after(after):
                totals["functions"] += 1
                if opens_with_verb(said):
                    found[habits[0]].append(place)
            for sentence in re.split(r"(?<=[.!?:;])\s+", said):
                totals["sentences"] += 1
                if len(sentence.split()) > 25:
                    found[habits[9]].append(place)
            for quoted in re.findall(r"`([A-Za-z_]\w{2,})(?:\(\))?`", said):
                if quoted not in words:
                    found[habits[10]].append(f"{name}:{line}: `{quoted}`")
        found[habits[11]] += [f"{name}: {own}" for own in sorted(names_of_functions(text))
                              if name.endswith(".h") and is_participle(own)]
    return found, totals


def figures_of(found, totals):
    """{habit: figure}: a share in percent, or a count."""
    figures = {}
    for habit, places in found.items():
        of = (totals["functions"] if habit == VERB_FIRST else totals["sentences"] if "sentences" in habit
              else totals["blocks"] if habit.startswith("blocks") else 0)
        figures[habit] = 100 * len(places) / max(1, of) if of else len(places)
    return figures


def oddly_named_tests(sources, banned):
    """Places of tests whose names, read as words, open like no sentence or hold a banned word."""
    found = []
    for place, text in sources.items():
        for suite, name in re.findall(r"^TEST\w*\(\s*(\w+),\s*(\w+)\)", text, re.MULTILINE):
            said = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
            if said.split(" ", 1)[0] in _OPENINGS or banned.search(said):
                found.append(f"{place}: {suite}.{name}")
    return found


def banned_words():
    rows = (pathlib.Path(__file__).parent / "banned_words.txt").read_text().splitlines()
    words = [row.split("\t")[0] for row in rows if row and not row.startswith("#")]
    return re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)


def read_sources(root, of_tests=False):
    tracked = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True,
                             check=True).stdout.split()
    return {name: (root / name).read_text() for name in tracked
            if re.search(r"\.(cc|h|cu|cuh)$", name) and name.startswith("tests/") == of_tests
            and (root / name).is_file()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).parents[2], type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="", help="sources whose name begins like this")
    parser.add_argument("--list", default="", metavar="HABIT", help="print places of the habits with this in "
                                                                    "their name")
    options = parser.parse_args()
    sources = {name: text for name, text in read_sources(options.root).items()
               if name.startswith(options.only)}
    found, totals = habits_of(sources)
    if not options.only:
        found[list(LIMITS)[12]] = oddly_named_tests(read_sources(options.root, True), banned_words())
    over = 0
    print(f"comments: {totals['blocks']} blocks, {totals['functions']} of functions in headers")
    for habit, figure in figures_of(found, totals).items():
        limit, anchors = LIMITS[habit]
        least = habit == VERB_FIRST
        passed = (figure < limit if least else figure > limit) and totals["blocks"] > 0
        over += passed
        others = f" (others: {anchors})" if anchors is not None else ""
        print(f"  {figure:6.1f}  {'at least' if least else 'at most'} {limit}{others}  {habit}"
              f"{'  OVER THE LIMIT' if passed else ''}")
        if options.list and options.list in habit:
            print("".join(f"    {place}\n" for place in found[habit]), end="")
    return 1 if options.check and over else 0


if __name__ == "__main__":
    sys.exit(main())
