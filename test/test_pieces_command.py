"""Composed chunks (docs/format.md) in the command: what is stored as a base and pieces is looked at, compared, damaged, freed and recovered.

Option pieces=16 cuts small chunks too. What is damaged here is damaged with plain h5py or by changing bytes.
"""

import json
import pathlib
import random
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
from conftest import H5COW, STOCK as ENV, h5cow
from seeds import seed
from test_recover import check, flip, records, stored, versions
from waiting import WAITING

VIEWS = "_versioned_data/views"
COMPOSED = 4  # kind of an index record
MAKE = """
import h5py, numpy as np, sys
more = {'compression': 'gzip'} if sys.argv[2] == 'gzip' else {}
for number in (1, 2, 3, 4):
    with h5py.File(sys.argv[1], 'a', libver='latest') as f:
        if number == 1:
            f.create_dataset('x', data=np.arange(6000, dtype='<i4').reshape(200, 30), chunks=(20, 30), maxshape=(None, 30),
                             fillvalue=-9, **more)
            f.create_dataset('row', data=np.arange(1000.), chunks=(160,), maxshape=(None,), **more)
            f.create_dataset('deep', data=np.arange(4 * 6 * 10, dtype='>i2').reshape(4, 6, 10), chunks=(2, 3, 10), **more)
        if number == 2:
            f['x'][45, 3] = -1
            f['row'][999] = -1
        if number == 3:
            f['x'][45, 4] = -2
            f['x'][59, 0] = -3
            f['deep'][3, 5, 9] = -4
        if number == 4:
            f['row'].resize((1010,))
            f['row'][1000:] = 5
            f['x'][45, 3] = 1353
"""


@pytest.fixture(scope="module", params=["none", "gzip"])
def original(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("pieces") / "a.h5"
    h5cow("run", "--option", "pieces=16", "--", sys.executable, "-c", MAKE, path, request.param)
    return path


@pytest.fixture
def made(original, tmp_path):
    return pathlib.Path(shutil.copy(original, tmp_path / "a.h5"))


def verify(path, code=1):
    told = h5cow("verify", "--json", path, code=code)
    return json.loads(told)


def composed(path):
    """Addresses of the records of composed chunks, and where the index begins."""
    with h5py.File(path, "r") as f:
        index = h5py.h5d.open(f.id, b"_versioned_data/index").get_chunk_info(0).byte_offset
    return [address for address, kind in records(path) if kind == COMPOSED], index


def pools(path):
    """dataset -> (pool of its chunks, pool of its pieces), both by number."""
    found = {}
    with h5py.File(path, "r") as f:
        raw = f["_versioned_data/raw"]
        for name in ("x", "row", "deep"):
            mine = [p for p in raw if raw[p].dtype == f[name].dtype and raw[p].ndim == f[name].ndim]
            found[name] = sorted(mine, key=lambda p: -np.prod(raw[p].chunks))
    return found


def slot_of(path, pool, wanted):
    """The only slot of POOL that holds the number WANTED."""
    with h5py.File(path, "r") as f:
        raw = f[f"_versioned_data/raw/{pool}"]
        rows = sorted({int(at) // raw.chunks[0] for at in np.argwhere(raw[()] == wanted)[:, 0]})
    (slot,) = rows
    return slot


# ---- whole files ----------------------------------------------------------------------------------------------------


def test_files_with_composed_chunks_have_a_number_of_their_own(original):
    assert composed(original)[0]
    with h5py.File(original, "r") as f:
        assert f["_versioned_data"].attrs["format"] == 4
    told = verify(original, code=0)
    assert not told["damaged"]


LARGE = """
import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'a') as f:
    f.create_dataset('x', data=np.arange(6000), chunks=(60,)).attrs['a'] = 1
with h5py.File(sys.argv[1], 'a') as f:
    f['x'][100] = -1
"""


@pytest.mark.parametrize("pieces, number", [("16", 2), ("off", 1)])
def test_a_file_has_the_lowest_number_that_tells_what_is_in_it(tmp_path, pieces, number):
    """Datasets of more than one tile, with attributes: no leaf is without a view, no view is a snapshot."""
    h5cow("run", "--option", f"pieces={pieces}", "--", sys.executable, "-c", LARGE, tmp_path / "a.h5")
    assert bool(composed(tmp_path / "a.h5")[0]) == (number == 2)
    with h5py.File(tmp_path / "a.h5", "r") as f:
        assert f["_versioned_data"].attrs["format"] == number
    assert not verify(tmp_path / "a.h5", code=0)["damaged"]


def test_stat_counts_a_composed_chunk_as_one_and_its_slots_once(original):
    told = json.loads(h5cow("stat", "--json", original))
    row = {r["path"]: r for r in told["datasets"]}
    assert row["/x"]["chunks"] == row["/x"]["distinct_chunks"] == 10 and row["/row"]["chunks"] == 7
    assert 0 < row["/x"]["stored_bytes"] <= told["totals"]["chunk_bytes"]
    first = {r["path"]: r for r in json.loads(h5cow("stat", "--json", f"{original}@1"))["datasets"]}["/x"]
    assert row["/x"]["stored_bytes"] > first["stored_bytes"], "a base is needed as well as its pieces"
    assert row["/x"]["stored_bytes"] < first["stored_bytes"] * 1.2


def test_diff_finds_what_differs_and_nothing_else(original):
    def differing(a, b, *words):
        told = json.loads(h5cow("diff", "--json", *words, f"{original}@{a}", f"{original}@{b}", code=1))
        return {d["path"]: d["elements"] for d in told["objects"] if "elements" in d}

    found = differing(1, 2, "--values=9")
    assert found["/x"]["changed"] == 1 and found["/x"]["first"] == [45, 3] and found["/x"]["chunks_changed"] == 1
    assert [v["at"] for v in found["/row"]["values"]] == [[999]]
    found = differing(2, 3, "--values=9")
    assert [(v["at"], v["before"], v["after"]) for v in found["/x"]["values"]] == [
        ([45, 4], "1354", "-2"),
        ([59, 0], "1770", "-3"),
    ]
    assert found["/deep"]["first"] == [3, 5, 9] and "/row" not in found
    found = differing(1, 4)
    assert found["/x"]["changed"] == 2 and found["/x"]["compared"] == 6000 and found["/row"]["changed"] == 1


def test_hash_is_that_of_the_same_file_in_whole_chunks(original, tmp_path):
    h5cow("run", "--option", "pieces=off", "--", sys.executable, "-c", MAKE, tmp_path / "b.h5", "none")
    for version in (1, 2, 3, 4):
        a, b = (json.loads(h5cow("hash", "--json", f"{p}@{version}"))["hash"] for p in (original, tmp_path / "b.h5"))
        assert a == b


def test_blame_knows_the_version_of_each_chunk(original):
    told = json.loads(h5cow("blame", "--json", original, "/x"))
    assert sorted({part["version"]["name"] for part in told}) == ["1", "4"], told


@pytest.mark.parametrize("gone", [["1"], ["2"], ["1", "2"], ["1", "2", "3"]])
@pytest.mark.parametrize("compact", [False, True])
def test_what_remains_when_versions_are_forgotten(made, original, gone, compact):
    foreseen = json.loads(h5cow("forget", "--json", "--dry-run", made, *gone))
    h5cow("forget", "--gc", made, *gone)
    if compact:
        h5cow("gc", "--compact", made)
    verify(made, code=0)
    found, want = versions(made), versions(original)
    assert foreseen and found.keys() == want.keys() - set(gone)
    for name in found:
        check(found[name], want[name], [])


# ---- damaged ones ---------------------------------------------------------------------------------------------------


def spoil(path, pool, slot):
    address, size = stored(path, f"_versioned_data/raw/{pool}", slot)
    flip(path, address + size // 2)


def recovered(path, original):
    """What is lost; all else is as it was."""
    out = path.with_name("out.h5")
    told = json.loads(h5cow("recover", "--json", path, out, code=1))
    h5cow("verify", out)
    found, want = versions(out), versions(original)
    for name in want:
        check(found[name], want[name], [e for e in told["lost"] if name in e["versions"]])
    return told["lost"]


def test_a_damaged_piece_hits_the_chunk_where_it_is_used(made, original):
    chunks, pieces = pools(made)["x"]
    slot = slot_of(made, pieces, -3)  # of versions 3 and 4
    spoil(made, pieces, slot)
    (damage,) = verify(made)["damage"]
    assert (damage["pool"], damage["slot"], damage["chunk"]) == (int(pieces), slot, [2, 0])
    assert damage["objects"] == ["/x"] and damage["versions"] == ["4", "3"] and damage["head"]
    assert damage["older_version_with_data"] == "2"
    (lost,) = recovered(made, original)
    assert lost["object"] == "/x" and lost["chunk"] == [2, 0] and sorted(lost["versions"]) == ["3", "4"]
    assert lost["elements"] < 600 and lost["start"][0] <= 59 < lost["start"][0] + lost["count"][0]


def test_a_damaged_base_hits_all_that_is_composed_on_it(made, original):
    chunks, pieces = pools(made)["x"]
    slot = slot_of(made, chunks, 45 * 30 + 3)
    spoil(made, chunks, slot)
    (damage,) = verify(made)["damage"]
    assert (damage["slot"], damage["chunk"], damage["versions"]) == (slot, [2, 0], ["4", "3", "2", "1"])
    assert damage["older_version_with_data"] is None
    lost = recovered(made, original)
    assert {e["object"] for e in lost} == {"/x"} and all(e["chunk"] == [2, 0] for e in lost)
    each = {v: sum(e["elements"] for e in lost if v in e["versions"]) for v in "1234"}
    assert each["1"] == 600 and 0 < each["3"] < 600, "pieces that versions have of their own are not lost"


def test_a_damaged_record_hits_one_chunk(made, original):
    addresses, index = composed(made)
    flip(made, addresses[0] + 8)
    told = verify(made)["damage"]
    assert len(told) == 1 and "composed chunk" in told[0]["what"], told
    assert told[0]["versions"] and len(told[0]["objects"]) == 1 and told[0]["chunk"]


def test_a_format_1_file_has_no_composed_chunks(made):
    with h5py.File(made, "r+") as f:
        f["_versioned_data"].attrs.modify("format", np.uint32(1))
    (damage,) = verify(made)["damage"]
    assert "format 1" in damage["what"]


def remade(path, name, change):
    """The view NAME anew, with its mappings as CHANGE has them."""
    with h5py.File(path, "r+") as f:
        view = f[f"{VIEWS}/{name}"].id
        old, dcpl = view.get_create_plist(), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        mappings = [
            (old.get_virtual_vspace(i), old.get_virtual_dsetname(i), old.get_virtual_srcspace(i))
            for i in range(old.get_virtual_count())
        ]
        for vspace, source, sspace in change(mappings):
            dcpl.set_virtual(vspace, b".", source.encode(), sspace)
        new = h5py.h5d.create(f[VIEWS].id, b"new", view.get_type(), view.get_space(), dcpl)
        del f[f"{VIEWS}/{name}"]
        f[VIEWS].move("new", name)
        del new


def moved(mappings):
    """One of them shows other elements of its source, as many."""
    vspace, source, sspace = mappings[-1]
    first, _ = sspace.get_select_bounds()
    by = -1 if first[0] > 0 else 1
    selected = h5py.h5s.create_simple((sspace.shape[0] + 1, *sspace.shape[1:]))
    selected.select_none()
    for start, end in sspace.get_select_hyper_blocklist():
        box = tuple(int(e - s + 1) for s, e in zip(start, end))
        at = (int(start[0]) + by,) + tuple(int(s) for s in start[1:])
        selected.select_hyperslab(at, (1,) * len(at), block=box, op=h5py.h5s.SELECT_OR)
    return mappings[:-1] + [(vspace, source, selected)]


@pytest.mark.parametrize(
    "change",
    [lambda m: m[:-1], lambda m: m[1:], lambda m: [], moved, lambda m: [(v, s.replace("raw/", "raw/9"), p) for v, s, p in m]],
    ids=["without the last", "without the first", "without any", "shifted", "another source"],
)
def test_a_view_of_a_composed_chunk_that_shows_something_else_is_found(made, change):
    addresses, index = composed(made)
    name = f"{addresses[-1] - index:x}"
    remade(made, name, lambda m: m)
    verify(made, code=0)
    remade(made, name, change)
    (damage,) = verify(made)["damage"]
    assert f"views/{name}" in damage["what"] and damage["only_without_h5cow"] and damage["objects"]


def test_a_missing_view_of_a_composed_chunk_is_found(made):
    addresses, index = composed(made)
    name = f"{addresses[-1] - index:x}"
    with h5py.File(made, "r+") as f:
        del f[f"{VIEWS}/{name}"]
    (damage,) = verify(made)["damage"]
    assert f"views/{name}" in damage["what"]


def test_wherever_a_byte_changes_what_is_not_told_is_right(original, tmp_path):
    rnd, data, want = random.Random(seed()), original.read_bytes(), versions(original)
    path, out = tmp_path / "bad.h5", tmp_path / "out.h5"
    addresses, _ = composed(original)
    for at in rnd.sample(range(len(data)), 15) + [address + rnd.randrange(20) for address in addresses]:
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << rnd.randrange(8)]) + data[at + 1 :])
        done = subprocess.run([H5COW, "recover", "--json", path, out], capture_output=True, text=True, env=ENV, timeout=WAITING)
        assert done.returncode in (0, 1), (at, done.stderr)
        told, found = json.loads(done.stdout), versions(out)
        for name in found.keys() & want.keys():
            check(found[name], want[name], [e for e in told["lost"] if name in e["versions"]])
        out.unlink()
