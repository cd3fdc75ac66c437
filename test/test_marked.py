"""The view of a root may be the snapshot itself: docs/format.md, Views. It tells by a mark in its first mapping whose view it is."""

import json
import re
import shutil
import sys

import h5py
import numpy as np
import pytest
from conftest import h5cow

HISTORY = "_versioned_data"
MAKE = """
import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'a', libver=sys.argv[2]) as f:
    f['row'] = np.arange(5000)
    f.create_dataset('grows', data=np.arange(600.).reshape(20, 30), chunks=(8, 16), maxshape=(None, 30), fillvalue=7)
    f.create_dataset('many', data=np.arange(3000), chunks=(10,), maxshape=(None,))
    f.create_dataset('zip', data=np.arange(5000), chunks=(500,), compression='gzip')
    f.create_dataset('empty', (0,), 'f8', chunks=(100,), maxshape=(None,))
    f.create_dataset('holes', (5000,), 'f8', chunks=(100,))
    f['told'] = np.arange(5000)
    f['told'].attrs['unit'] = 'K'
    f['type'] = np.dtype([('a', 'i4'), ('b', 'f8')])
    f.create_dataset('typed', (1000,), f['type'], chunks=(100,))[3] = (1, 2.5)
    h5py.h5o.set_comment(f.id, b'said', obj_name=b'row')
with h5py.File(sys.argv[1], 'a', libver=sys.argv[2]) as f:
    for name in ('row', 'many', 'zip', 'told'):
        f[name][17] = -1
    f['grows'].resize((25, 30))
    f['grows'][24, 3] = -1
    f['typed'][4] = (3, 4.5)
"""
MARKED = {"row", "grows", "many", "zip"}
NUMBER = re.compile(f"/{HISTORY}((?:/\\.?)+)/(?:raw|views)/")


def run(program, *words):
    h5cow("run", "--", sys.executable, "-c", program, *words)


def address(item):
    return h5py.h5o.get_info(item.id).addr


def marks(dataset):
    """The number in the mark of each mapping, None: it has none."""
    found = [NUMBER.match(s.dset_name) for s in dataset.virtual_sources()] if dataset.is_virtual else []
    return [m and int("".join("1" if d else "0" for d in m[1].split("/")[1:]), 2) for m in found]


def damage(path, code=0):
    return [d["what"] for d in json.loads(h5cow("verify", "--json", path, code=code))["damage"]]


@pytest.fixture(params=["earliest", "latest"])
def made(request, tmp_path):
    run(MAKE, tmp_path / "a.h5", request.param)
    return tmp_path / "a.h5"


def test_a_snapshot_is_the_view_of_its_root(made, stock):
    assert damage(made) == []
    with h5py.File(made, "r") as f:
        group = f[HISTORY]
        assert group.attrs["format"] == 4
        views = {address(group["views"][name]): int(name, 16) for name in group["views"]}
        heads = {address(item) for item in group["heads"].values()}
        for version in "1", "2":
            for name in f"{HISTORY}/versions/{version}", :
                for key, item in f[name].items():
                    if isinstance(item, h5py.Dataset):
                        assert (address(item) in views) == (key in MARKED), key
                        assert marks(item)[:1] == ([views[address(item)]] if key in MARKED else [None] * item.is_virtual)
                        assert not any(marks(item)[1:])
                        assert (address(item) in heads) == (version == "2" and key in MARKED)
                        assert item.maxshape == f[key].maxshape and item.fillvalue == f[key].fillvalue
            assert f[f"{HISTORY}/versions/{version}/told"].attrs["unit"] == "K"
    for version in "1", "2":
        assert '"said"' in stock("h5ls", "-v", f"{made}/{HISTORY}/versions/{version}/row")


def test_views_have_no_attributes(made):
    """netCDF without the connector would take one for a dimension of the file."""
    with h5py.File(made, "r") as f:
        assert all(len(item.attrs) == 0 for item in f[f"{HISTORY}/views"].values())


def test_what_gets_attributes_later_has_a_snapshot_of_its_own(made):
    run("import h5py, sys\nwith h5py.File(sys.argv[1], 'a') as f: f['row'].attrs['a'] = 1", made)
    run("import h5py, sys\nwith h5py.File(sys.argv[1], 'a') as f: del f['row'].attrs['a']; f['row'][0] = 5", made)
    assert damage(made) == []
    with h5py.File(made, "r") as f:
        trees = f[f"{HISTORY}/versions"]
        assert [list(trees[v]["row"].attrs) for v in "1234"] == [[], [], ["a"], []]
        assert [bool(marks(trees[v]["row"])[0]) for v in "1234"] == [True, True, False, True]
        assert list(trees["3"]["row"][[0, 17]]) == [0, -1] and trees["4"]["row"][0] == 5


def test_a_flush_in_the_middle(tmp_path):
    """The version of a flush is replaced, tree and views, and the file is what it would be without."""
    run("""
import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'w') as f:
    f['x'] = np.arange(5000)
    for number in range(5):
        f['x'][number] = -1
        f.flush()
        if number == 2:
            f['x'].attrs['a'] = 1
            f.flush()
            del f['x'].attrs['a']
""", tmp_path / "a.h5")
    assert damage(tmp_path / "a.h5") == []
    with h5py.File(tmp_path / "a.h5", "r") as f:
        assert len(f[f"{HISTORY}/versions"]) == 1
        assert len([v for v in f[f"{HISTORY}/views"].values() if any(marks(v))]) == 1, "what is left is of composed chunks"
        assert list(f[f"{HISTORY}/versions/1/x"][:6]) == [-1] * 5 + [5]


@pytest.mark.parametrize("bounds", [[], ["-j", "3", "-k", "3"]], ids=["", "latest"])
def test_stock_tools_copy_what_a_version_has(tmp_path, stock, bounds):
    made, repacked = tmp_path / "a.h5", tmp_path / "repacked.h5"
    run("\n".join(line for line in MAKE.splitlines() if "type'" not in line and "typed" not in line), made, "earliest")
    stock("h5repack", *bounds, made, repacked)
    stock("h5copy", "-i", made, "-o", tmp_path / "one.h5", "-s", "/_versioned_data", "-d", "/_versioned_data")
    for path in made, repacked, tmp_path / "one.h5":
        with h5py.File(path, "r") as f:
            tree = f[f"{HISTORY}/versions/1"]
            for name in MARKED:
                assert tree[name].size == tree[name][()].size > 0
            assert tree["row"][17] == 17 and tree["many"][17] == 17 and (tree["grows"][()] == np.arange(600).reshape(20, 30)).all()


@pytest.fixture
def stock(programs):
    def call(*words):
        done = programs.stock(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout
    return call


def replaced(view, source=lambda i, name: name, shift=0):
    """The mappings of a view, with other sources, or SHIFT rows further on."""
    layout = h5py.VirtualLayout(view.shape, view.dtype, view.maxshape)
    for i, s in enumerate(view.virtual_sources()):
        name = source(i, s.dset_name)
        (first, last), (from_, to) = s.vspace.get_select_bounds(), s.src_space.get_select_bounds()
        box = h5py.VirtualSource(".", name, view.file[name].shape)
        layout[tuple(slice(a, b + 1 - shift) for a, b in zip(first, last))] = box[
            tuple(slice(a + shift, b + 1) for a, b in zip(from_, to))]
    return layout


def test_a_copy_made_without_h5cow_is_read_and_is_no_damage(made):
    with h5py.File(made, "r+") as f:
        f.copy(f"{HISTORY}/versions/1/row", "old row")
    assert damage(made) == []
    run("import h5py, sys\nwith h5py.File(sys.argv[1], 'r') as f: assert f['old row'][17] == 17 and f['row'][17] == -1", made)
    with h5py.File(made, "r+") as f:
        layout = replaced(f["old row"], shift=1)
        del f["old row"]
        f.create_virtual_dataset("old row", layout)
    assert any("'/old row' does not show" in what for what in damage(made, code=1))


def test_a_mark_of_another_record_is_damage(made):
    """Of an older one, a newer one, and one that is none."""
    with h5py.File(made, "r") as f:
        own = [int(name, 16) for name in f[f"{HISTORY}/views"]]
        first = marks(f[f"{HISTORY}/versions/1/row"])[0]
    for number in sorted(own)[-1], first + 1, 12345:
        path = shutil.copy(made, made.with_name("b.h5"))
        with h5py.File(path, "r+") as f:
            tree, name = f[f"{HISTORY}/versions/1"], f"{first:x}"
            digits = "".join("/." if d == "1" else "/" for d in f"{number:b}")
            layout = replaced(tree["row"], lambda i, s: NUMBER.sub(f"/{HISTORY}{digits}/raw/", s) if i == 0 else s)
            for group in f[f"{HISTORY}/views"], tree:
                del group[name if group != tree else "row"]
            f[f"{HISTORY}/views"].create_virtual_dataset(name, layout)
            tree["row"] = f[f"{HISTORY}/views/{name}"]
        assert damage(path, code=1)


def test_a_copy_in_the_file_shares_the_view_and_not_the_mark(made):
    run("import h5py, sys\nwith h5py.File(sys.argv[1], 'a') as f: f.copy('row', 'copy')", made)
    run("import h5py, sys\nwith h5py.File(sys.argv[1], 'a') as f: f['row'][0] = 9; f['copy'][1] = 8", made)
    assert damage(made) == []
    h5cow("forget", "--keep-last", "1", "--gc", made)
    assert damage(made) == []
    run("import h5py, sys\nwith h5py.File(sys.argv[1]) as f: assert list(f['row'][:2]) == [9, 1] and list(f['copy'][:2]) == [0, 8]", made)


def test_restored_and_forgotten(made):
    h5cow("restore", f"{made}@1", "/row")
    assert damage(made) == []
    run("import h5py, sys\nwith h5py.File(sys.argv[1]) as f: assert f['row'][17] == 17", made)
    h5cow("forget", "--keep-last", "1", "--gc", made)
    assert damage(made) == []
    with h5py.File(made, "r") as f:
        (tree,) = f[f"{HISTORY}/versions"].values()
        assert tree["row"][17] == 17 and tree["many"][17] == -1


def test_a_damaged_view_costs_its_version_and_not_the_head(made):
    from test_recover import flip

    with h5py.File(made, "r") as f:
        where = address(f[f"{HISTORY}/versions/1/row"])
    flip(made, where + 12)
    assert any("/row" in what for what in damage(made, code=1))
    whole = json.loads(h5cow("verify", "--json", made, code=1))["damage"]
    assert ["1"] in [d["versions"] for d in whole if d["what"].startswith("the object '/row' cannot be read")]
    run("import h5py, sys\nwith h5py.File(sys.argv[1]) as f: assert f['row'][17] == -1 and f['row'][4999] == 4999", made)
    run("import h5py, sys\nwith h5py.File(sys.argv[1] + '@2') as f: assert f['row'][17] == -1", made)
    out = made.with_name("out.h5")
    h5cow("recover", made, out, code=1)
    with h5py.File(out, "r") as f:
        assert f["row"][17] == -1 and "row" not in f[f"{HISTORY}/versions/1"] and f[f"{HISTORY}/versions/1/many"][17] == 17


def test_of_a_damaged_object_it_is_told_where_it_is_missing(tmp_path):
    """It is damaged itself, and so hit with h5cow as well; told once, however many versions share it."""
    from test_recover import flip

    path = tmp_path / "a.h5"
    for words in ("f['g/x'] = np.arange(5000); f['s'] = 'said'; f['s'].attrs['by'] = 'me'; f['g/again'] = f['s']", "f['g/x'][3] = -1", "f['other'] = 1", "f['more'] = 2"):
        run(f"import h5py, numpy as np, sys\nwith h5py.File(sys.argv[1], 'a', libver='latest') as f: {words}", path)
    with h5py.File(path, "r") as f:
        places = [address(f[f"{HISTORY}/versions/{n}"][name]) for n, name in ((2, "g/x"), (1, "s"))]
        assert places[0] == address(f[f"{HISTORY}/versions/4/g/x"])
    for place, names, versions in (places[0], ["/g/x"], ["4", "3", "2"]), (places[1], ["/s", "/g/again"], ["4", "3", "2", "1"]):
        copy = shutil.copy(path, tmp_path / "b.h5")
        flip(copy, place + 12)
        (told,) = [d for d in json.loads(h5cow("verify", "--json", copy, code=1))["damage"] if f"the object '{names[0]}' cannot" in d["what"]]
        assert (told["objects"], told["versions"], told["head"]) == (names, versions, False)
        assert not told["only_without_h5cow"]
        assert "hit: version" in h5cow("verify", copy, code=1)
    run("import h5py, sys\nwith h5py.File(sys.argv[1], 'r') as f: assert f['s'][()] == b'said'", copy)


def test_what_lives_without_a_link_keeps_its_view_when_its_version_is_forgotten(tmp_path):
    """A group that holds itself has the dataset; its snapshot is needed by newer versions, in whose trees it is not."""
    path = tmp_path / "a.h5"
    for words in ("g = f.create_group('g'); g['again'] = g; g['x'] = np.arange(5000); f['r'] = g['x'].ref; f['other'] = 1",
                  "del f['g']", "f['other'][()] = 2"):
        run(f"import h5py, numpy as np, sys\nwith h5py.File(sys.argv[1], 'a') as f: {words}", path)

    def read(version, first):
        run("import h5py, sys\nwith h5py.File(sys.argv[1]) as f: assert f[f['r'][()]][0] == int(sys.argv[2])", f"{path}{version}", first)

    h5cow("forget", path, "1")
    run("import h5py, sys\nwith h5py.File(sys.argv[1], 'a') as f: f[f['r'][()]][0] = 77", path)
    h5cow("gc", path)
    assert damage(path) == []
    read("@2", 0), read("@3", 0), read("", 77)
    run("import h5py, sys\nwith h5py.File(sys.argv[1], 'a') as f: f['new'] = list(range(9000)); f['back'] = f[f['r'][()]]", path)
    h5cow("gc", path)
    assert damage(path) == []
    read("@2", 0), read("@3", 0), read("", 77)


@pytest.mark.parametrize("mark", ["0", "1" * 64, "1" * 65, "01"])
def test_what_is_no_mark_is_no_mark(made, mark):
    with h5py.File(made, "r+") as f:
        tree = f[f"{HISTORY}/versions/1"]
        digits = "".join("/." if d == "1" else "/" for d in mark)
        layout = replaced(tree["row"], lambda i, s: NUMBER.sub(f"/{HISTORY}{digits}/raw/", s) if i == 0 else s)
        del tree["row"]
        tree.create_virtual_dataset("row", layout)
    assert any("/row" in what for what in damage(made, code=1))
    h5cow("log", made)
