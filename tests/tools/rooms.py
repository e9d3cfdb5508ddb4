#!/usr/bin/env python3
"""The include graph of the rooms, held against what the build lets each of them see.

A room is a library of one folder (cmake/rooms.cmake): those of core, catalogue, formats and studies,
and imports. Prints every room with the rooms that it includes, in an order in which each stands on
those before it, and ends with the number of cycles and of arrows that point upwards. Exit 1 where
there is one, where a folder has no library of its own, where a library does not list its sources,
where a file of any folder defines something outside its folder's namespace, or where the engine
(core) knows JSON or the name of a framework.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOPS = ("core", "catalogue", "formats", "studies", "imports")
ROOM = re.compile(r"syncline_room\(\s*(\w+) (\S+)\s+SOURCES (.*?)\)", re.S)
WORDS = ("HEADERS", "LINKS", "PRIVATE_LINKS", "PRECOMPILE", "COLD", "TOGETHER", "ALONE")

# What every file speaks of stays in `syncline` itself.
PLAIN = ("core/base", "core/job", "formats/json", "formats/scenario", "formats/text")
NAMED_OTHERWISE = {
    "backend_gloo": "gloo_backend", "backend_nccl": "nccl_backend", "core/metrics": "measure",
    "catalogue/architectures": "operators", "formats/nccl_log": "calibrate", "imports": "job",
    "studies/explain": "measure", "studies/fidelity": "measure", "studies/layouts": "tune",
    "studies/machines": "tune", "studies/rows": "measure", "studies/study": "measure",
    "studies/warnings": "measure",
}
# A room goes by the engine's ten headers (core/README.md); these many others are still included.
OPENED = 33
OTHERS = ("kernels", "reports", "live", "backend_gloo", "backend_nccl", "cli")
BLOCK = re.compile(r"^namespace (syncline[\w:]*) \{\n(.*?)^\}", re.M | re.S)
DECLARATIONS = re.compile(r"(?:(?:struct|class|enum class) [\w:]+;\s*)*")
FOREIGN = re.compile(r"\w*(?:nlohmann|paddle|mindspore|horovod|megatron|deepspeed|torch|fsdp)\w*", re.I)


class Room:
    def __init__(self, name, folder, parts):
        self.name, self.folder = name, folder
        self.sources = set(parts["SOURCES"])
        self.links = {word for word in parts.get("LINKS", ()) if re.fullmatch(r"[a-z_]+", word)}
        above = folder.rsplit("/", 1)[0]
        self.headers = [f"{above}/{header}" for header in parts.get("HEADERS", ())]

    def files(self, pattern):
        return list((ROOT / self.folder).rglob(pattern))


def listed_rooms():
    """{name: room}, as the build has them."""
    rooms = {}
    for top in TOPS:
        path = ROOT / top / "CMakeLists.txt"
        text = (path if path.exists() else ROOT / "CMakeLists.txt").read_text()
        for name, folder, rest in ROOM.findall(text):
            if folder.split("/")[0] != top:
                continue
            parts, key = {}, "SOURCES"
            for word in rest.split():
                if word in WORDS:
                    key = word
                parts.setdefault(key, [])
                if word != key:
                    parts[key].append(word)
            rooms[name] = Room(name, folder, parts)
    return rooms


def room_of(path, rooms):
    """The room that a file belongs to, or that gives it out; None where there is none."""
    for room in rooms.values():
        if path in room.headers or path.startswith(room.folder + "/"):
            return room.name
    return None


def includes(rooms):
    """[(file, included file)] between files of the rooms."""
    arrows = []
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*.[hc]*")):
            if path.suffix not in (".h", ".cc") or "examples" in path.parts:
                continue
            name = path.relative_to(ROOT).as_posix()
            for target in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
                if target.split("/")[0] in TOPS:
                    arrows.append((name, target))
    return arrows


def namespace_of(folder):
    """Of what is in a folder, whose own folders (kernels/reference) share its namespace."""
    if folder in PLAIN:
        return "syncline"
    return "syncline::" + NAMED_OTHERWISE.get(folder, folder.rsplit("/", 1)[-1])


def strangers(rooms):
    """Files that define something outside their namespace; a forward declaration defines nothing."""
    folders = {room.folder: room.headers for room in rooms.values()} | {top: [] for top in OTHERS}
    found = []
    for folder, headers in folders.items():
        own = namespace_of(folder)
        for path in sorted((ROOT / folder).rglob("*.[hc]*")) + [ROOT / header for header in headers]:
            if path.suffix not in (".h", ".cc", ".cu", ".cuh"):
                continue
            for name, inside in BLOCK.findall(path.read_text()):
                at_home = name == own or own != "syncline" and name.startswith(own + "::")
                if not at_home and not DECLARATIONS.fullmatch(inside.strip()):
                    found.append(f"{path.relative_to(ROOT)} defines names in {name}, not in {own}")
    return found


def foreign_words():
    """Where the engine's code knows JSON or a framework; its comments may name where a rule is from."""
    found = []
    for path in sorted((ROOT / "core").rglob("*.[hc]*")):
        if path.suffix not in (".h", ".cc") or "examples" in path.parts:
            continue
        code = re.sub(r"//[^\n]*", "", path.read_text())
        for word in sorted({match[0] for match in FOREIGN.finditer(code)}):
            found.append(f"{path.relative_to(ROOT)} names '{word}': the engine knows neither JSON nor a "
                         "framework")
    return found


def opened():
    """Private headers of the engine that other rooms include, without core/base and the simulation."""
    found = set()
    for path in ROOT.rglob("*.[hc]*"):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in (".h", ".cc", ".cu") or name.startswith(("core/", "tests/", "build")):
            continue
        found |= set(re.findall(r'^#include "(core/[a-z]+/[\w.]+)"', path.read_text(), re.M))
    return sorted(header for header in found if not header.startswith(("core/base/", "core/sim/")))


def below(room, rooms, seen=None):
    """Every room that may be included from `room`: itself and all that it is linked to."""
    seen = set() if seen is None else seen
    if room not in seen:
        seen.add(room)
        for link in rooms[room].links & rooms.keys():
            below(link, rooms, seen)
    return seen


def cycles(graph):
    """Sets of rooms that include each other in a circle (Tarjan's strongly connected components)."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for follower in graph[node]:
            if follower not in number:
                visit(follower)
                low[node] = min(low[node], low[follower])
            elif follower in stack:
                low[node] = min(low[node], number[follower])
        if low[node] == number[node]:
            knot = [stack.pop()]
            while knot[-1] != node:
                knot.append(stack.pop())
            if len(knot) > 1:
                found.append(sorted(knot))

    for node in graph:
        if node not in number:
            visit(node)
    return found


def unlisted(rooms):
    """Folders without a library, sources that no library lists, and those that are not there."""
    folders = {path.relative_to(ROOT).as_posix() for top in TOPS if top != "imports"
               for path in (ROOT / top).iterdir() if path.is_dir() and path.name != "examples"}
    listed = {room.folder for room in rooms.values()}
    faults = [f"{folder} has no library of its own" for folder in sorted(folders - listed)]
    for room in rooms.values():
        there = {path.relative_to(ROOT / room.folder).as_posix() for path in room.files("*.cc")}
        for source in sorted(there ^ room.sources):
            faults.append(f"{room.folder}: {source} is either not listed or not there")
    return faults


def main():
    rooms = listed_rooms()
    faults = unlisted(rooms) + strangers(rooms) + foreign_words()
    private = opened()
    if len(private) > OPENED:
        faults.append(f"{len(private)} private headers of the engine are included by other rooms, "
                      f"at most {OPENED}: {' '.join(private)}")

    arrows = includes(rooms)
    graph = {name: set() for name in rooms}
    upward = []
    for source, target in arrows:
        start, end = room_of(source, rooms), room_of(target, rooms)
        if start is None or end is None:
            faults.append(f"{source} includes {target}: one of them belongs to no room")
        elif start != end:
            graph[start].add(end)
            if end not in below(start, rooms):
                upward.append(f"{source} includes {target}")

    order = sorted(rooms, key=lambda room: (len(below(room, rooms)), room))
    for name in order:
        room = rooms[name]
        files = len(room.files("*.[hc]*")) + len(room.headers)
        seen = " ".join(other for other in order if other in graph[name])
        print(f"{room.folder:<24}{files:>3} files  {'-> ' + seen if seen else ''}")
    knots = cycles(graph)
    between = sum(len(ends) for ends in graph.values())
    print(f"{len(arrows)} includes, {between} arrows between {len(rooms)} rooms: "
          f"{len(knots)} cycles, {len(upward)} upward arrows")
    for line in faults + [" <-> ".join(knot) for knot in knots] + upward:
        print("  " + line)
    return 1 if faults or knots or upward else 0


if __name__ == "__main__":
    sys.exit(main())
