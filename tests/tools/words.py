#!/usr/bin/env python3
"""How plain the words are: `make words`.

Counts the words of README.md and docs/, the length of sentences in their prose and in what the program
says, and private words (banned_words.txt beside this file: a regular expression, a tab, what to write
instead). Prints counts and offenders. With --check it ends with 1 where a limit is passed.

Descriptions of the schemas count too. Prose is what stands in no code, table, link target or comment. What the program says are the string
literals of product code, adjacent ones joined, of four and more words that are no list of names.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

README_WORDS = 900
DOCS_WORDS = 13000
MEDIAN = 20
LONGEST = 40
GENERATED = ("docs/keys.md",)  # of scenarios/schema.json
SCHEMAS = ("scenarios/schema.json", "reports/answers.json")
# Words of diaries beside their data are not counted; their sentences are not either.
PAGES = ("README.md", "CONTRIBUTING.md")

_LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|#\s*include[^\n]*|R"(\w*)\((?P<raw>.*?)\)\1"'
    r'|(?P<text>"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*)'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.DOTALL)
_PYTHON = re.compile(r'"""(?P<doc>.*?)"""|#[^\n]*|(?P<text>f?"(?:\\.|[^"\\\n])*"(?:\s*f?"(?:\\.|[^"\\\n])*")*)',
                     re.DOTALL)
# What a list of names has none of.
_SENTENCE = re.compile(r"(?<![\w-])(the|an?|is|are|of|to|and|or|not|no|in|on|by|for|with|at|it|per)(?![\w-])", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`|--[\w-]+|\{[^{}]*\}|'[^' ]*'")


def prose(text):
    """The paragraphs and list items of a Markdown page, without code, tables and targets of links."""
    text = re.sub(r"^```.*?^```[^\n]*$", "\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    blocks, block = [], []
    for line in text.splitlines() + [""]:
        begins = re.match(r"\s*([-*+]|\d+\.)\s+", line)
        if not line.strip() or line.lstrip().startswith(("|", "#", "    ")) or begins:
            if block:
                blocks.append(" ".join(block))
            block = []
        if line.strip() and not line.lstrip().startswith(("|", "#")):
            block.append(line[begins.end():] if begins else line.strip())
    return blocks


def sentences(text):
    """Of a paragraph; code counts as one word."""
    text = _CODE.sub("code", text)
    text = re.sub(r"\b(e\.g|i\.e|etc|vs|no)\.", r"\1", text)
    parts = re.split(r"(?<=[.!?:;])[)\"']*\s+", text)
    return [part for part in parts if words(part) > 0]


def words(text):
    return len([word for word in text.split() if re.search(r"\w", word)])


def literals(text, python=False):
    """What stands in string literals, adjacent ones joined."""
    found = []
    for match in (_PYTHON if python else _LITERAL).finditer(text):
        if match.group("text"):
            parts = re.findall(r'"((?:\\.|[^"\\\n])*)"', match.group("text"))
            said = "".join(parts).replace('\\"', '"').replace("\\n", ". ")
            if words(said) >= 4 and 20 * len(_SENTENCE.findall(said)) >= words(said):
                found.append(said)
    # Headings of columns are read too, however short.
    return found if python else found + re.findall(r'\b(?:shown|both)\("((?:\\.|[^"\\])+)"', text)


def descriptions(schema):
    """Of a JSON schema's objects and keys."""
    if isinstance(schema, list):
        return [text for one in schema for text in descriptions(one)]
    if not isinstance(schema, dict):
        return []
    return [text for key, one in schema.items() for text in
            ([one] if key == "description" and isinstance(one, str) else descriptions(one))]


def banned(root):
    rules = []
    for line in (root / "tests/tools/banned_words.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, _, instead = line.partition("\t")
            rules.append((re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), instead.strip()))
    return rules


def offences(place, texts, rules):
    """(lengths, lines that name an offence)."""
    lengths, lines = [], []
    for text in texts:
        for sentence in sentences(text):
            lengths.append(words(sentence))
            if lengths[-1] > LONGEST:
                lines.append(f"{place}: {lengths[-1]} words: {sentence}")
            for rule, instead in rules:
                match = rule.search(sentence)
                if match:
                    lines.append(f"{place}: '{match.group()}' (say: {instead}): {sentence}")
    return lengths, lines


def gathered(root):
    """(pages by name, product sources by name), texts of each."""
    tracked = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True,
                             check=True).stdout.split()
    pages, sources = {}, {}
    for name in tracked:
        path = root / name
        if not path.is_file():
            continue
        if name in PAGES or re.fullmatch(r"docs/[\w-]+\.md", name):
            pages[name] = path.read_text()
        elif re.search(r"\.(cc|h|cu|cuh|py)$", name) and not name.startswith("tests/"):
            sources[name] = path.read_text()
    return pages, sources


def report(name, lengths):
    if lengths:
        print(f"{name}: {len(lengths)} sentences, median {statistics.median(lengths):g} words, "
              f"longest {max(lengths)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).parents[2], type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="", help="places whose name begins like this")
    options = parser.parse_args()
    rules = banned(options.root)
    pages, sources = gathered(options.root)
    readme = words(pages.get("README.md", ""))
    docs = sum(words(text) for name, text in pages.items()
               if name.startswith("docs/") and name not in GENERATED)
    print(f"README.md: {readme} words, at most {README_WORDS}")
    print(f"docs: {docs} words, at most {DOCS_WORDS}")
    over = [] if readme <= README_WORDS and docs <= DOCS_WORDS else ["too many words"]
    for name, texts in (
            ("pages", {n: prose(t) for n, t in pages.items() if n not in GENERATED}),
            ("schemas", {n: descriptions(json.loads((options.root / n).read_text()))
                         for n in SCHEMAS if (options.root / n).is_file()}),
            ("messages", {n: literals(t, n.endswith(".py")) for n, t in sources.items()})):
        lengths, lines = [], []
        for place, said in sorted(texts.items()):
            if not place.startswith(options.only):
                continue
            more, named = offences(place, said, rules)
            lengths += more
            lines += named
        report(name, lengths)
        print(f"{name}: {len(lines)} offences")
        print("".join("  " + line + "\n" for line in lines), end="")
        over += lines
        if lengths and statistics.median(lengths) > MEDIAN:
            over.append(f"{name}: median above {MEDIAN}")
    return 1 if options.check and over else 0


if __name__ == "__main__":
    sys.exit(main())
