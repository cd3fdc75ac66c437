"""Views in parts (docs/format.md, Views): where a file has many of them, they are in groups of their own, and HDF5 finds them all the same."""

import json
import pathlib
import re
import shutil
import sys

import h5py
import numpy as np
import pytest
from conftest import h5cow, lookup3
from seeds import seed as seed_of_run
from test_recover import flip, header

HISTORY = "_versioned_data"
PART = 4096  # bytes of the index
CHUNKS, SIZE = 4096, 2

MAKE = f"""
import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'w') as f:
    f.create_dataset('x', data=np.ones({CHUNKS * SIZE}), chunks=({SIZE},), maxshape=(None,))
    f.create_dataset('y', data=np.zeros(100), chunks=(10,), fillvalue=3, maxshape=(None,))
"""
# each session changes every second chunk or so: leaves have long records
CHANGE = f"""
import h5py, numpy as np, sys
path, first, last, seed = sys.argv[1], *map(int, sys.argv[2:])
for v in range(first, last):
    random = np.random.default_rng([seed, v])
    with h5py.File(path, 'r+') as f:
        data = f['x'][()]
        data[random.choice({CHUNKS}, {CHUNKS} // 2, replace=False) * {SIZE}] = v
        f['x'][...] = data
        f['y'][random.integers(100)] = v
"""


def run(program, *words, code=0):
    return h5cow("run", "--", sys.executable, "-c", program, *words, code=code)


def value_of(seed, version):
    """What x is in a version, by numpy alone."""
    data = np.ones(CHUNKS * SIZE)  # no chunk is a hole, which nobody can tell from one that is lost
    for v in range(2, version + 1):
        data[np.random.default_rng([seed, v]).choice(CHUNKS, CHUNKS // 2, replace=False) * SIZE] = v
    return data


def parts(f):
    """The boundary, and the offsets of all views, by the group that they are in."""
    history = f[HISTORY]
    single = {int(name, 16) for name in history["views"] if re.fullmatch("[0-9a-f]+", name)}
    divided = {int(part[1:], 16): {int(part[1:], 16) * PART + int(name, 16) for name in history["views"][part]}
               for part in history["views"] if re.fullmatch("p[0-9a-f]+", part)}
    assert len(single) + len(divided) == len(history["views"])
    return history.attrs.get("views_in_parts"), single, divided


def damage(path, code=0):
    return [d["what"] for d in json.loads(h5cow("verify", "--json", path, code=code))["damage"]]


@pytest.fixture
def seed():
    return seed_of_run()


@pytest.fixture
def made(tmp_path, seed):
    run(MAKE, tmp_path / "a.h5")
    run(CHANGE, tmp_path / "a.h5", "2", "14", str(seed))
    return tmp_path / "a.h5"


def test_where_views_are(made, seed):
    with h5py.File(made) as f:
        begins, single, divided = parts(f)
        assert f[HISTORY].attrs["format"] == 6 and begins % PART == 0 and begins <= 2 * PART
        assert single and max(single) < begins and len(divided) > 3
        for part, offsets in divided.items():
            assert part * PART >= begins and all(o // PART == part for o in offsets)
        for version in range(1, 14):
            assert np.array_equal(f[f"{HISTORY}/versions/{version}/x"][()], value_of(seed, version)), version
        assert np.array_equal(f["x"][()], value_of(seed, 13))
        views = f[f"{HISTORY}/views"]
        assert f[f"{HISTORY}/heads/0"] in [views[f"p{part:x}"][name] for part in divided for name in views[f"p{part:x}"]]
    assert damage(made) == []


def test_a_small_file_has_none(tmp_path):
    run("import h5py, numpy as np, sys; h5py.File(sys.argv[1], 'w')['x'] = np.arange(5000)", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as f:
        assert parts(f)[0] is None and f[HISTORY].attrs["format"] < 6 and parts(f)[2] == {}


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_one_commit_of_many_views(tmp_path, libver):
    """The boundary comes up in the middle of it."""
    rows = 300000
    run(f"""
import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'w', libver=sys.argv[2]) as f:
    data = np.arange({rows}) // 2 * (np.arange({rows}) % 5 > 0)
    f.create_dataset('x', data=data.reshape(-1, 8), chunks=(1, 8), maxshape=(None, 8))
    for k in range(200):
        f.create_dataset(f'd{{k}}', data=np.arange(k, k + 40), chunks=(10,))
""", tmp_path / "a.h5", libver)
    with h5py.File(tmp_path / "a.h5") as f:
        begins, single, divided = parts(f)
        assert begins and single and len(divided) > 2 and max(single) < begins
        assert np.array_equal(f[f"{HISTORY}/versions/1/x"][()].ravel(), np.arange(rows) // 2 * (np.arange(rows) % 5 > 0))
        assert all(f[f"{HISTORY}/versions/1/d{k}"][5] == k + 5 for k in range(0, 200, 9))
    assert damage(tmp_path / "a.h5") == []


@pytest.mark.parametrize("files", sorted((pathlib.Path(__file__).parent / "files").glob("format-*/*")), ids=lambda p: p.parent.name)
def test_files_of_yesterday_get_parts(tmp_path, files):
    shutil.copy(files / "all.h5", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as f:
        before = {v: f[f"{HISTORY}/versions/{v}/grid"][()] for v in range(1, 7)}
        old = parts(f)
    run(f"""
import h5py, numpy as np, sys
for v in range(12):
    with h5py.File(sys.argv[1], 'r+') as f:
        if v == 0:
            f.create_dataset('new', data=np.zeros({CHUNKS * SIZE}), chunks=({SIZE},))
        data = f['new'][()]
        data[np.random.default_rng(v).choice({CHUNKS}, {CHUNKS} // 2, replace=False) * {SIZE}] = v
        f['new'][...] = data
        f['grid'][v, v] = 100 + v
""", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as f:
        begins, single, divided = parts(f)
        assert (old[0] is not None) == (files.parent.name == "format-6")
        if files.parent.name != "format-6":
            assert old[0] is None and begins and divided and old[1] <= single
            assert f[HISTORY].attrs["format"] == 6
        for v, grid in before.items():
            assert np.array_equal(f[f"{HISTORY}/versions/{v}/grid"][()], grid)
        for v in range(12):
            assert f[f"{HISTORY}/versions/{7 + v}/grid"][v, v] == 100 + v
    assert damage(tmp_path / "a.h5") == []


def test_copies_from_one_part_to_another(made, seed):
    run("""
import h5py, sys
with h5py.File(sys.argv[1], 'r+') as f:
    for k in range(6):
        f.copy('x', f'x{k}')
        f.copy('y', f'y{k}')
        f.create_group(f'g{k}')
        f.copy('x', f[f'g{k}'], 'again')
    f.copy('g2', 'h2')
    f['x0'][0] = 77
    del f['x']
""", made)
    expected = value_of(seed, 13)
    with h5py.File(made) as f:
        for name in ["x1", "x5", "g0/again", "h2/again"]:
            assert np.array_equal(f[name][()], expected)
            assert np.array_equal(f[f"{HISTORY}/versions/14/{name}"][()], expected)
        assert f["x0"][0] == 77 and np.array_equal(f["x0"][1:], expected[1:]) and "x" not in f
        assert np.array_equal(f[f"{HISTORY}/versions/13/x"][()], expected)
    assert damage(made) == []


def test_what_is_forgotten_goes_from_the_parts(made, seed):
    with h5py.File(made) as f:
        before = parts(f)
    h5cow("forget", made, "1..12", "--gc")
    with h5py.File(made) as f:
        begins, single, divided = parts(f)
        assert begins == before[0] and sum(map(len, divided.values())) * 4 < sum(map(len, before[2].values()))
        assert np.array_equal(f[f"{HISTORY}/versions/13/x"][()], value_of(seed, 13))
    assert damage(made) == []
    run(CHANGE, made, "14", "20", str(seed))
    with h5py.File(made) as f:
        assert np.array_equal(f[f"{HISTORY}/versions/19/x"][()], value_of(seed, 19))
    assert damage(made) == []
    h5cow("gc", "--compact", made)
    with h5py.File(made) as f:
        assert np.array_equal(f[f"{HISTORY}/versions/19/x"][()], value_of(seed, 19))
    assert damage(made) == []


def test_amended_versions_lose_their_former_views(tmp_path):
    """A transaction with many flushes: each makes the version anew."""
    run(f"""
import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'w') as f:
    x = f.create_dataset('x', data=np.zeros({CHUNKS * SIZE}), chunks=({SIZE},))
    f.flush()
    for v in range(1, 10):
        data = x[()]
        data[np.random.default_rng(v).choice({CHUNKS}, {CHUNKS} // 2, replace=False) * {SIZE}] = v
        x[...] = data
        f.flush()
""", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as f:
        begins, single, divided = parts(f)
        assert begins and len(single) + sum(map(len, divided.values())) < 200, "those of former states are gone"
        assert len(f[f"{HISTORY}/versions"]) == 1
        assert np.array_equal(f[f"{HISTORY}/versions/1/x"][()], f["x"][()])
    assert damage(tmp_path / "a.h5") == []


def patch_number(path, name, size, value):
    """An attribute of the history, and the checksum of its block, without HDF5, which would leave no journal."""
    data = bytearray(path.read_bytes())
    at = data.index(name.encode() + b"\0\x10\0\0\0" + bytes([size, 0, 0, 0]), header(path, HISTORY))
    begin = max(data.rfind(b"OHDR", 0, at), data.rfind(b"OCHK", 0, at))
    end = next(e for e in range(at, at + 2000) if lookup3(bytes(data[begin:e])) == int.from_bytes(data[e : e + 4], "little"))
    place = at + len(name) + 1 + 12 + 4
    data[place : place + size] = int(value).to_bytes(size, "little")
    data[end : end + 4] = lookup3(bytes(data[begin:end])).to_bytes(4, "little")
    path.write_bytes(data)


def test_what_a_file_says_of_its_parts_is_not_trusted(made, seed, sha256):
    with h5py.File(made) as f:
        begins = int(f[HISTORY].attrs["views_in_parts"])
    head = "import h5py, sys; print(h5py.File(sys.argv[1])['x'][()].sum())"
    patch_number(made, "views_in_parts", 8, begins + 5)
    before = sha256(made)
    told = run("import h5py, sys; h5py.File(sys.argv[1], 'r+')", made, code=1)
    assert "views_in_parts" in told and "h5cow verify" in told and sha256(made) == before
    assert float(run(head, made)) == value_of(seed, 13).sum()
    assert any("views_in_parts" in what for what in damage(made, 1))
    # another multiple: what is not where it is looked for is told, and the head is committed
    for version, wrong in enumerate([begins + PART, begins - PART, 0, 2**64 - PART], 14):
        patch_number(made, "views_in_parts", 8, wrong)
        assert any("view" in what for what in damage(made, 1))
        run(CHANGE, made, str(version), str(version + 1), str(seed))
        assert float(run(head, made)) == value_of(seed, version).sum()
    patch_number(made, "views_in_parts", 8, begins)
    for version in range(1, 18):
        assert np.array_equal(through_connector(made, version), value_of(seed, version))


def through_connector(path, version):
    """What h5cow reads of x in a version."""
    told = run(f"import h5py, sys; sys.stdout.write(h5py.File(sys.argv[1] + '@{version}')['x'][()].tobytes().hex())", path)
    return np.frombuffer(bytes.fromhex(told))


def test_a_format_that_is_too_low_is_told(made):
    patch_number(made, "format", 4, 5)
    assert any("format 5" in what and "in parts" in what for what in damage(made, 1))


def index_byte(f, offset):
    """Where in the file that byte of the index is."""
    index = f[HISTORY]["index"].id
    chunk = index.get_create_plist().get_chunk()[0]
    return index.get_chunk_info_by_coord((offset // chunk * chunk,)).byte_offset + offset % chunk


@pytest.mark.parametrize("group", ["whole", "lost"])
def test_views_in_parts_know_what_the_index_lost(made, seed, group):
    """recover follows them, also where nothing leads to the groups of the history any more."""
    with h5py.File(made) as f:
        views = {h5py.h5o.get_info(f[f"{HISTORY}/views/p{part:x}/{o % PART:x}"].id).addr: o
                 for part, offsets in parts(f)[2].items() for o in offsets}
        root = views[h5py.h5o.get_info(f[f"{HISTORY}/versions/10/x"].id).addr]
        leaf = max(o for o in views.values() if o < root - 200)
        places = [index_byte(f, leaf + 12)]
    if group == "lost":
        places.append(header(made, HISTORY) + 12)
    for place in places:
        flip(made, place)
    out = made.with_name("out.h5")
    told = json.loads(h5cow("recover", "--json", made, out))
    assert told["lost"] == [], told["lost"]
    with h5py.File(out) as f:
        for version in range(1, 14):
            assert np.array_equal(f[f"{HISTORY}/versions/{version}/x"][()], value_of(seed, version)), version
    assert damage(out) == []
