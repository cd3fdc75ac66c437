"""Rooms use each other downward only. docs/architecture.md, "The order of rooms", says the order; here the sources are held to it.

Three readings: every #include of connector/ and cli/; every symbol that an object of the build takes from another one, so that
a declaration of one's own opens no back door; and, inside a room, which files call each other in a circle.
"""

import collections
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import BUILD

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/architecture.md"
# Headers that only files of their own room include, besides every internal.h: history/ shows others history.h alone.
PRIVATE = {"connector/vol/vol.h"} | {
    str(path.relative_to(ROOT)) for path in (ROOT / "connector/history").glob("*.h") if path.name != "history.h"
}
# A compiler's switch, no room.
BELOW_ALL = {"connector/planted.h"}
# Files of one room that call each other in a circle, each leading to each: (folder, its files, why). No circle may grow and none
# may come; where one shrinks, its line here does.
CIRCLES = [
    (
        "connector/history",
        """absolute_links api attempt collect commit copied copy_elements counts dataset datasets decide deleted file forget
        former_tree group_copy hashes head naming operations pieces pools previous reach snapshot snapshot_table space stand_in
        stowed sums superseded tables told version_objects views""",
        "an open file leads to all its parts, and each part to the file: to be taken apart",
    ),
    (
        "connector/history",
        "copy copy_references",
        "what a reference leads to is copied as any object is, and an object may hold references",
    ),
    (
        "connector/history",
        "restore restore_links restore_object",
        "an object that a restored group links to is restored as any object is",
    ),
    (
        "connector/io",
        """chunk_cache chunks composed content heap memory_size stored transfer transfer_calls transfer_irregular
        transfer_regular""",
        "making room in the cache stores chunks, and storing a chunk uses the cache",
    ),
    (
        "connector/vol",
        """adopt attribute chunk class create dapl dataset datatype detour drivers exit file group hide journal link mapped
        metadata_cache object operations path sorted sources target unopened visit wrappers""",
        "a callback for one kind of object opens another kind by that one's callback: sources of virtual datasets, detours",
    ),
]


def levels():
    """Room -> its height. Rooms of one line stand side by side, and know nothing of each other."""
    section = re.search(r"^## The order of rooms\n(.*?)^## ", PAGE.read_text(), re.M | re.S)[1]
    lines = re.findall(r"^\d+\. ((?:`[^`]+`(?:, )?)+)", section, re.M)
    return {room: height for height, line in enumerate(lines) for room in re.findall(r"`([^`]+)`", line)}


def room_of(path):
    """connector/io/plan.c -> io/, cli/log.c -> cli/, connector/plugin.c -> plugin.c"""
    parts = path.split("/")
    if parts[0] != "connector":
        return parts[0] + "/"
    return parts[1] + "/" if len(parts) > 2 else parts[1]


def sources(root):
    return sorted(str(p.relative_to(root)) for f in ("connector", "cli") for p in (root / f).rglob("*.[ch]"))


def included(root, path):
    """The headers of ours that a file includes, as paths. One that meson makes is left out: it belongs to library/."""
    for name in re.findall(r'^#include "([^"]+)"', (root / path).read_text(), re.M):
        places = [f"{path.rpartition('/')[0]}/{name}", f"connector/{name}", f"api/{name}"]
        found = [place for place in places if (root / place).exists()]
        if found:
            yield found[0]
        else:
            assert name.startswith("hdf5_") and room_of(path) == "library/", (path, name)


def private(root):
    """Headers that are not a room's door: they are said to be, or include one that is."""
    headers = {path: set(included(root, path)) for path in sources(root) if path.endswith(".h")}
    closed = {path for path in headers if path.endswith("/internal.h")} | PRIVATE
    while more := {path for path, names in headers.items() if path not in closed and names & closed}:
        closed |= more
    return closed


def may_use(order, user, used):
    return room_of(user) == room_of(used) or order[room_of(used)] < order[room_of(user)]


def wrong_includes(root):
    order, closed, wrong = levels(), private(root), []
    for path in sources(root):
        for header in included(root, path):
            if header in BELOW_ALL:
                continue
            if not may_use(order, path, header):
                wrong.append(f"{path} includes {header}, which is not below {room_of(path)}")
            elif room_of(header) != room_of(path) and header in closed:
                wrong.append(f"{path} includes {header}, which is for {room_of(header)} alone")
    return wrong


def objects(build):
    """(source, what it defines, what it takes from others), of each object that has a source."""
    folders = {"connector/libh5cow_objects.a.p": "connector/", "connector/libh5cow.so.p": "connector/", "cli/h5cow.p": "cli/"}
    for folder, where in folders.items():
        by_object = {path[len(where) :].replace("/", "_") + ".o": path for path in sources(ROOT) if path.startswith(where)}
        for file in sorted((build / folder).glob("*.o")):
            if file.name not in by_object:
                continue  # its source has another name by now
            lines = subprocess.run(["nm", file], capture_output=True, text=True, check=True).stdout.splitlines()
            symbols = [line.split()[-2:] for line in lines]
            defined = {name for kind, name in symbols if kind in "TDBRVWC"}
            yield by_object[file.name], defined, {name for kind, name in symbols if kind == "U"}


def calls(build):
    """File -> file -> the symbols that the first takes from the second."""
    everything = list(objects(build))
    home = {name: path for path, defined, _ in everything for name in defined}
    taken = {path: collections.defaultdict(set) for path, _, _ in everything}
    for path, _, wanted in everything:
        for name in wanted & home.keys():
            taken[path][home[name]].add(name)
    return taken


def wrong_calls(build):
    order, closed, wrong = levels(), private(ROOT), []
    doors = collections.defaultdict(str)
    for path in sources(ROOT):
        if path.endswith(".h") and path not in closed:
            doors[room_of(path)] += (ROOT / path).read_text()
    for user, others in calls(build).items():
        for used, names in others.items():
            if not may_use(order, user, used):
                wrong.append(f"{user} uses {', '.join(sorted(names))} of {used}, which is not below {room_of(user)}")
            elif room_of(user) != room_of(used):
                door = doors[room_of(used)]
                hidden = sorted(name for name in names if not re.search(rf"\b{name}\b", door))
                if hidden:
                    wrong.append(f"{user} uses {', '.join(hidden)} of {used}, which no door of {room_of(used)} offers")
    return wrong


def circles(build):
    """Sets of files of one room in which each leads to each."""
    taken = calls(build)
    inside = {a: {b for b in others if room_of(a) == room_of(b)} for a, others in taken.items()}

    def reached(start):
        seen, left = set(), [start]
        while left:
            for other in inside.get(left.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    left.append(other)
        return seen

    far = {path: reached(path) for path in inside}
    return {frozenset(other for other in far[path] if path in far[other]) for path in inside if path in far[path]}


def test_the_list_has_every_room_and_no_other():
    there = {room_of(path) for path in sources(ROOT) if path not in BELOW_ALL} | {"api/"}
    assert set(levels()) == there


def test_no_include_goes_upward_or_sideways():
    assert wrong_includes(ROOT) == []


def test_no_call_goes_upward_or_past_a_door():
    assert len(calls(BUILD)) > 100, "the build has no objects"
    assert wrong_calls(BUILD) == []


def test_h5_calls_no_hdf5():
    used = {b for a, others in calls(BUILD).items() if room_of(a) == "h5/" for b in others}
    used |= {header for path in sources(ROOT) if room_of(path) == "h5/" for header in included(ROOT, path)}
    assert {room_of(path) for path in used} == {"base/", "h5/"}


def test_files_call_each_other_in_circles_only_where_that_is_said():
    said = {frozenset(f"{folder}/{name}.c" for name in names.split()) for folder, names, _ in CIRCLES}
    found = circles(BUILD)
    grown = {min(files): sorted(files - max(said, key=lambda known: len(known & files))) for files in found}
    assert {path: names for path, names in grown.items() if names} == {}, "a circle has grown, or is new"
    assert found == said, "a circle has shrunk: so must its line in CIRCLES"


def structures(text):
    """(comment before it, how many fields) of each structure in the text of a source."""
    bare = re.sub(r"/\*.*?\*/", lambda comment: re.sub(r"\S", " ", comment[0]), text, flags=re.S)
    for found in re.finditer(r"^(?:typedef )?struct(?: \w+)? \{\n(.*?)^\}", bare, re.M | re.S):
        fields = [re.sub(r"\(.*?\)", "", part) for part in found[1].split(";") if part.strip()]
        comment = re.search(r"/\*((?:(?!\*/).)*)\*/\s*\Z", text[: found.start()], re.S)
        yield comment[1] if comment else "", sum(1 + part.count(",") for part in fields)


def test_large_structures_have_a_reason_beside_them():
    large = [
        (path, fields)
        for path in sources(ROOT)
        for comment, fields in structures((ROOT / path).read_text())
        if fields > 20 and "More than 20 fields:" not in comment
    ]
    assert large == []


LONGEST = 79  # lines of a function


def functions(text):
    """Of each function: the line that it begins in, and how many it has from brace to brace."""
    lines, begin = text.split("\n"), None
    for number, line in enumerate(lines, 1):
        if line == "{":
            begin = number
        elif line == "}" and begin is not None:
            yield begin, number - begin + 1
            begin = None


def test_functions_are_short():
    long = [(path, line, n) for path in sources(ROOT) for line, n in functions((ROOT / path).read_text()) if n > LONGEST]
    assert long == []
    assert list(functions("int f(void)\n{\n    return 1;\n}\n")) == [(2, 3)]


def test_a_planted_large_structure_is_found():
    text = "struct a {\n" + "    int x, y; /* two */\n" * 11 + "};\n"
    assert list(structures(text)) == [("", 22)]
    assert list(structures("/* More than 20 fields: why. */\n" + text)) == [(" More than 20 fields: why. ", 22)]


@pytest.mark.parametrize(
    "path, header, said",
    [
        ("connector/store/pool.c", "vol/class.h", "not below store/"),  # upward
        ("connector/store/pool.c", "journal/journal.h", "not below store/"),  # sideways
        ("connector/base/error.c", "store/pool.h", "not below base/"),
        ("connector/import/import.c", "history/internal.h", "for history/ alone"),
        ("cli/log.c", "vol/vol.h", "for vol/ alone"),
        ("cli/log.c", "history/copy.h", "for history/ alone"),
        ("cli/log.c", "history/snapshot_table.h", "for history/ alone"),
    ],
)
def test_a_planted_include_is_found(tmp_path, path, header, said):
    for folder in ("connector", "cli", "api"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    assert wrong_includes(tmp_path) == []
    file = tmp_path / path
    file.write_text(file.read_text().replace('#include "', f'#include "{header}"\n#include "', 1))
    (wrong,) = wrong_includes(tmp_path)
    assert wrong.startswith(f"{path} includes connector/{header}") and said in wrong


@pytest.mark.parametrize(
    "user, used, name, said",
    [
        ("store/pool.c", "vol/class.c", "cow_class", "not below store/"),
        ("view/view.c", "io/codec.c", "cow_codec_open", "not below view/"),
        ("import/import.c", "history/state.c", "cow_file_fail", "no door of history/ offers"),
    ],
)
def test_a_planted_call_is_found(tmp_path, user, used, name, said):
    folder = tmp_path / "connector/libh5cow_objects.a.p"
    folder.mkdir(parents=True)
    texts = {user: f"extern int {name}(void);\nint planted(void);\nint planted(void) {{ return {name}(); }}\n",
             used: f"int {name}(void);\nint {name}(void) {{ return 1; }}\n"}
    for path, text in texts.items():
        file = folder / (path.replace("/", "_") + ".o")
        subprocess.run(["cc", "-x", "c", "-c", "-o", file, "-"], input=text, text=True, check=True)
    (wrong,) = wrong_calls(tmp_path)
    assert wrong.startswith(f"connector/{user} uses {name} of connector/{used}") and said in wrong


def test_a_planted_circle_is_found(tmp_path):
    folder = tmp_path / "connector/libh5cow_objects.a.p"
    folder.mkdir(parents=True)
    names = ["grid", "node", "pool"]
    for name, after in zip(names, names[1:] + names[:1], strict=True):
        text = f"int {name}(void), {after}(void);\nint {name}(void) {{ return {after}(); }}\n"
        file = folder / f"store_{name}.c.o"
        subprocess.run(["cc", "-x", "c", "-c", "-o", file, "-"], input=text, text=True, check=True)
    assert circles(tmp_path) == {frozenset(f"connector/store/{name}.c" for name in names)}
