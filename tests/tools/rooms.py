#!/usr/bin/env python3
"""The include graph of core, held against what core/CMakeLists.txt lets each room see.

Prints every room with the rooms that it includes, in an order in which each stands on those before
it, and ends with the number of cycles and of arrows that point upwards. Exit 1 where there is one,
where a folder has no library of its own, where a library does not list its sources, or where a file
of any folder defines something outside its folder's namespace.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = "base"  # the files that lie in core itself
ROOM = re.compile(r"syncline_room\(\s*(\w+) core/(\w+)\s+SOURCES (.*?)\s+LINKS (.*?)\s*(?:PRIVATE_LINKS.*?)?(?:COLD\s*)?(?:TOGETHER\s*)?(?:ALONE.*?)?\)", re.S)

# What every file speaks of stays in `syncline` itself.
PLAIN = ("core", "core/json", "core/scenario")
NAMED_OTHERWISE = {"backend_gloo": "gloo_backend", "backend_nccl": "nccl_backend"}
BLOCK = re.compile(r"^namespace (syncline[\w:]*) \{\n(.*?)^\}", re.M | re.S)
DECLARATIONS = re.compile(r"(?:(?:struct|class|enum class) \w+;\s*)*")


def listed_rooms():
    """{room: (listed sources, rooms that it is linked to)}, as the build has them."""
    text = (ROOT / "core/CMakeLists.txt").read_text()
    rooms = {BASE: (set(re.search(r"add_library\(syncline_base STATIC (.*?)\)", text)[1].split()), set())}
    for name, folder, sources, links in ROOM.findall(text):
        assert name == folder, f"library {name} is not named after core/{folder}"
        rooms[name] = (set(sources.split()), {word for word in links.split() if "::" not in word})
    return rooms


def folder_of(room):
    return ROOT / "core" / ("" if room == BASE else room)


def files_of(room, pattern):
    """Those of a room, with the folders in it; the base's lie beside the rooms."""
    folder = folder_of(room)
    return list(folder.glob(pattern) if room == BASE else folder.rglob(pattern))


def room_of(path):
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else BASE


def includes():
    """[(file, included file)] between files of core."""
    arrows = []
    for path in sorted((ROOT / "core").rglob("*.[hc]*")):
        if path.suffix not in (".h", ".cc"):
            continue
        name = path.relative_to(ROOT).as_posix()
        for target in re.findall(r'^#include "(core/[^"]+)"', path.read_text(), re.M):
            arrows.append((name, target))
    return arrows


def namespace_of(folder):
    """Of what stands in a folder, whose own folders (kernels/reference) share its namespace."""
    parts = folder.split("/")
    if parts[0] == "core":
        return "syncline" if folder in PLAIN else "syncline::" + parts[1]
    return "syncline::" + NAMED_OTHERWISE.get(parts[0], parts[0])


def strangers():
    """Files that define something outside their namespace; a forward declaration defines nothing."""
    found = []
    for top in ("core", "sim", "kernels", "reports", "live", "backend_gloo", "backend_nccl", "cli"):
        for path in sorted((ROOT / top).rglob("*.[hc]*")):
            if path.suffix not in (".h", ".cc", ".cu", ".cuh"):
                continue
            own = namespace_of(path.parent.relative_to(ROOT).as_posix())
            for name, inside in BLOCK.findall(path.read_text()):
                at_home = name == own or own != "syncline" and name.startswith(own + "::")
                if not at_home and not DECLARATIONS.fullmatch(inside.strip()):
                    found.append(f"{path.relative_to(ROOT)} defines names in {name}, not in {own}")
    return found


def below(room, rooms, seen=None):
    """Every room that may be included from `room`: itself and all that it is linked to."""
    seen = set() if seen is None else seen
    if room not in seen:
        seen.add(room)
        for link in rooms[room][1]:
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


def main():
    rooms = listed_rooms()
    folders = {path.name for path in (ROOT / "core").iterdir() if path.is_dir()} | {BASE}
    faults = [f"core/{name} has no library of its own" for name in sorted(folders - rooms.keys())]
    for name, (sources, _) in rooms.items():
        folder = folder_of(name)
        for path in {path.relative_to(folder).as_posix() for path in files_of(name, "*.cc")} ^ sources:
            faults.append(f"core/{name}: {path} is either not listed or not there")

    faults += strangers()

    arrows = includes()
    graph = {name: set() for name in rooms}
    upward = []
    for source, target in arrows:
        start, end = room_of(source), room_of(target)
        if start == end:
            continue
        graph[start].add(end)
        if end not in below(start, rooms):
            upward.append(f"{source} includes {target}")

    order = sorted(rooms, key=lambda room: (len(below(room, rooms)), room))
    for name in order:
        files = len(files_of(name, "*.[hc]*"))
        seen = " ".join(other for other in order if other in graph[name])
        print(f"{name:<11}{files:>3} files  {'-> ' + seen if seen else ''}")
    knots = cycles(graph)
    between = sum(len(ends) for ends in graph.values())
    print(f"{len(arrows)} includes, {between} arrows between {len(rooms)} rooms: "
          f"{len(knots)} cycles, {len(upward)} upward arrows")
    for line in faults + [" <-> ".join(knot) for knot in knots] + upward:
        print("  " + line)
    return 1 if faults or knots or upward else 0


if __name__ == "__main__":
    sys.exit(main())
