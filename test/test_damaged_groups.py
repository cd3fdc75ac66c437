"""Damage where HDF5 keeps the links of groups: every verb ends by itself with a sentence, and those that only read change nothing.

Listing a group in any order but its own, HDF5 1.14.5 makes a table of all links first, and where one of them cannot be read it frees entries
that were never written: with a single flipped bit, diff, export, forget and stat crashed. Whoever lists links asks for HDF5's order, and sorts."""

import random
import re

import h5py
import pytest
from seeds import seed

SIGNATURES = b"BTHD|BTLF|BTIN|FRHP|FHDB|FHIB|OHDR|TREE|SNOD|HEAP"
MANY = 30  # links are in an index and a heap from nine on
FLIPS = 8

MAKE = f"""
with h5py.File(sys.argv[1], 'w', libver=sys.argv[2], track_order=sys.argv[3] == 'tracked') as f:
    for k in range({MANY}):
        f[f'd{{k}}'] = np.arange(5) + k
    g = f.create_group('g', track_order=sys.argv[3] == 'tracked')
    for k in range({MANY}):
        g.create_group(f'm{{k}}')
"""
CHANGE = """
with h5py.File(sys.argv[1], 'r+') as f:
    f['d3'][1] = 7
    f['g'].create_group('new')
"""
# Reads, unless it has a new file to write to: that is the last word.
READING = [
    ["log"], ["ls"], ["show"], ["stat"], ["verify"], ["hash"], ["doctor"], ["diff", "{}@1", "{}"], ["blame", "{}", "/d3"], ["export", "{}@1", "new.h5"],
    ["import", "{}", "new.h5"], ["copy", "{}", "new.h5"], ["recover", "{}", "new.h5"], ["cp", "{}@1", "/g", "new.h5"],
]
WRITING = [["restore", "{}", "1"], ["undo"], ["forget", "{}", "1"], ["squash", "{}", "1..2"], ["gc"], ["tag", "{}", "1", "first"]]


@pytest.fixture(scope="module")
def healthy(programs, tmp_path_factory):
    """KIND, LIBVER, ORDER -> the bytes of a file: with a history, or without."""
    known = {}

    def make(kind, libver, order):
        if (kind, libver, order) not in known:
            path = tmp_path_factory.mktemp("healthy") / "a.h5"
            run = programs.python if kind == "history" else lambda code, *words: programs.stock("python3", "-c", programs.code(code, errors=False), *words)
            assert run(MAKE, path, libver, order).returncode == 0 and run(CHANGE, path).returncode == 0
            known[kind, libver, order] = path.read_bytes()
        return known[kind, libver, order]

    return make


@pytest.mark.parametrize("order", ["untracked", "tracked"])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("kind", ["history", "plain"])
def test_every_verb_ends_by_itself(programs, healthy, tmp_path, kind, libver, order):
    data, dice = healthy(kind, libver, order), random.Random(seed())
    places = [found.start() for found in re.finditer(SIGNATURES, data)]
    path, new = tmp_path / "a.h5", tmp_path / "new.h5"
    for place in dice.sample(places, min(FLIPS, len(places))):
        at, bit = min(place + dice.randrange(4, 60), len(data) - 1), 1 << dice.randrange(8)
        damaged = data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
        for verb, *words in dice.sample(READING, 5) + dice.sample(WRITING, 2) + [["stat"], ["forget", "{}", "1"]]:
            path.write_bytes(damaged)
            new.unlink(missing_ok=True)
            words = [word.replace("{}", str(path)).replace("new.h5", str(new)) for word in words or ["{}"]]
            done = programs.cow(verb, *words)  # no signal
            said = f"{verb}, bit {bit} of byte {at} of {len(data)} flipped: {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}"
            assert done.returncode in (0, 1, 2) and (done.returncode != 2 or done.stderr or "!" in done.stdout), said
            assert verb in {w[0] for w in WRITING} or path.read_bytes() == damaged, said


@pytest.mark.parametrize("order", ["untracked", "tracked"])
def test_each_index_and_heap_of_links(programs, healthy, tmp_path, order):
    """Once each, the version number: HDF5 refuses the block. All of these once crashed."""
    data, path = healthy("history", "latest", order), tmp_path / "a.h5"
    for place in [found.start() for found in re.finditer(b"BTLF|FHDB|FHIB|FRHP", data)]:
        damaged = data[: place + 4] + bytes([data[place + 4] ^ 0x40]) + data[place + 5 :]
        for words in ["stat", path], ["forget", path, "1"], ["diff", f"{path}@1", path], ["export", f"{path}@1", tmp_path / "e.h5"]:
            path.write_bytes(damaged)
            (tmp_path / "e.h5").unlink(missing_ok=True)
            done = programs.cow(*words)
            assert done.returncode in (0, 1, 2), (place, words)


@pytest.mark.parametrize("order", [None, h5py.h5p.CRT_ORDER_TRACKED | h5py.h5p.CRT_ORDER_INDEXED], ids=["untracked", "tracked"])
@pytest.mark.parametrize("count", [3, 20, 3000])
def test_links_keep_the_order_of_their_creation(programs, tmp_path, order, count):
    """In versions, in what is restored, exported and imported: as recorded, or by their names."""
    names = [f"n{k * 7919 % count}" for k in range(count)]
    path, exported = tmp_path / "a.h5", tmp_path / "e.h5"
    code = """
        with h5py.File(sys.argv[1], 'w', libver='latest') as f:
            g = f.create_group('g', track_order=sys.argv[2] == '1')
            for name in sys.argv[3].split(','):
                g.create_group(name) if hash(name) % 2 else g.__setitem__(name, h5py.SoftLink('/x'))
    """
    assert programs.python(code, path, int(order is not None), ",".join(names)).returncode == 0
    wanted = names if order is not None else sorted(names)
    assert programs.cow("export", f"{path}@1", exported).returncode == 0
    with h5py.File(path) as f, h5py.File(exported) as e:
        for group in f["_versioned_data/versions/1/g"], f["g"], e["g"]:
            assert list(group) == wanted
