"""Datasets of at most one tile: their only leaf has no view of its own, the root's view shows what is in it (docs/format.md, "Views").

What HDF5 shows without h5cow is compared with arrays that numpy has kept.
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
from conftest import STOCK as ENV, h5cow
from seeds import seed

HISTORY = "_versioned_data"
FILES = pathlib.Path(__file__).parent / "files"


def run(program, *words, options="pieces=16"):
    h5cow("run", "--option", options, "--", sys.executable, "-c", program, *words)


def versions(path):
    return [row["name"] for row in json.loads(h5cow("log", "--json", path))][::-1]


def clean(path):
    assert not json.loads(h5cow("verify", "--json", path))["damage"]


def views(path):
    """name -> names of its sources, below the group of the history."""
    with h5py.File(path, "r") as f:
        group = f[f"{HISTORY}/views"]
        return {n: [s.dset_name.removeprefix(f"/{HISTORY}/") for s in group[n].virtual_sources()] if group[n].is_virtual else []
                for n in group}


def shown(path, version, name):
    with h5py.File(path, "r") as f:
        return f[f"{HISTORY}/versions/{version}/{name}"][()]


def test_a_version_of_a_small_dataset_has_one_view(tmp_path):
    path = tmp_path / "a.h5"
    run("""
import h5py, numpy as np, sys
for number in range(3):
    with h5py.File(sys.argv[1], 'a') as f:
        x = f.require_dataset('x', (20, 30), 'i4', chunks=(8, 16), maxshape=(None, 30))
        x[3 * number, 5] = number + 1
""", path, options="pieces=off")
    assert all(sources and {source.split("/")[-2] for source in sources} == {"raw"} for sources in views(path).values())
    assert len(views(path)) == 3
    clean(path)


GROWS = """
import h5py, numpy as np, sys
path, how = sys.argv[1:]
with h5py.File(path, 'a') as f:
    f.create_dataset('x', data=np.arange(640), chunks=(10,), maxshape=(None,))
with h5py.File(path, 'a') as f:
    x = f['x']
    if how == 'flushed':
        x[0] = -1
        f.flush()
    if how in ('copied', 'together'):
        f.copy('x', 'y')
    x.resize((700,))
    x[640:] = np.arange(640, 700)
    if how == 'together':
        f['y'].resize((800,))
        f['y'][640:] = np.arange(640, 800)
    if how == 'restored':
        x[:5] = 7
if how == 'copied':
    with h5py.File(path, 'a') as f:
        f['y'].resize((2000,))
        f['y'][1990:] = 5
"""


@pytest.mark.parametrize("how", ["plain", "flushed", "copied", "together", "restored"])
def test_a_leaf_gets_its_view_when_the_tree_grows_above_it(tmp_path, how):
    path = tmp_path / "a.h5"
    run(GROWS, path, how)
    np.testing.assert_array_equal(shown(path, "1", "x"), np.arange(640))
    wanted = np.arange(700)
    if how == "flushed":
        wanted[0] = -1
    if how == "restored":
        wanted[:5] = 7
    np.testing.assert_array_equal(shown(path, "2", "x"), wanted)
    if how == "together":  # both show the leaf that they share
        np.testing.assert_array_equal(shown(path, "2", "y"), np.arange(800))
    if how == "copied":
        wanted = np.concatenate([np.arange(640), np.zeros(1350, int), np.full(10, 5)])
        np.testing.assert_array_equal(shown(path, "3", "y"), wanted)
    if how == "restored":
        h5cow("restore", f"{path}@1")
        run("import h5py, sys\nwith h5py.File(sys.argv[1], 'a') as f:\n f['x'].resize((10000,))\n f['x'][9999] = 3", path)
        wanted = np.concatenate([np.arange(640), np.zeros(9360, int)])
        wanted[9999] = 3
        np.testing.assert_array_equal(shown(path, "4", "x"), wanted)
    clean(path)


def test_a_file_of_yesterday_goes_on_with_its_leaves_views(tmp_path):
    """Its small datasets have views of leaves, as format 2 wants; they grow above them with format 3 and later."""
    made = next((FILES / "format-2").iterdir()) / "all.h5"
    path = pathlib.Path(shutil.copy(made, tmp_path / "a.h5"))
    run("""
import h5py, sys
with h5py.File(sys.argv[1], 'a') as f:
    f.create_dataset('new of today', data=range(2000), chunks=(100,), maxshape=(None,))
with h5py.File(sys.argv[1], 'a') as f:
    f['new of today'].resize((20000,))
    f['new of today'][19999] = 1
""", path)
    clean(path)
    with h5py.File(path, "r") as f:
        assert f[HISTORY].attrs["format"] >= 4
    assert shown(path, versions(path)[-1], "new of today")[1999] == 1999


def test_an_older_number_on_such_a_file_is_damage(tmp_path):
    path = tmp_path / "a.h5"
    run("import h5py, sys\nwith h5py.File(sys.argv[1], 'w') as f:\n f['x'] = list(range(5000))\n f['x'].attrs['a'] = 1", path)
    with h5py.File(path, "r+") as f:
        assert f[HISTORY].attrs["format"] == 3  # with an attribute, the view of the root is not the snapshot
        f[HISTORY].attrs.modify("format", np.uint32(2))
    told = json.loads(h5cow("verify", "--json", path, code=1))
    assert any("leaves without views" in damage["what"] for damage in told["damage"])


@pytest.mark.parametrize("what", ["lost", "shifted", "short"])
def test_damage_to_a_root_view_is_told_and_hurts_only_without_h5cow(tmp_path, what):
    path = tmp_path / "a.h5"
    run("import h5py, numpy as np, sys\nwith h5py.File(sys.argv[1], 'w') as f: f['x'] = np.arange(5000)", path)
    (name,) = views(path)
    with h5py.File(path, "r+") as f:
        group = f[f"{HISTORY}/views"]
        old = group[name]
        layout = h5py.VirtualLayout(old.shape, old.dtype)
        for source in old.virtual_sources():
            space = source.src_space.get_select_bounds()
            box = h5py.VirtualSource(".", source.dset_name, f[source.dset_name].shape)
            first, last = source.vspace.get_select_bounds()
            view, raw = slice(first[0], last[0] + 1), slice(space[0][0], space[1][0] + 1)
            if what == "short":
                view, raw = slice(view.start, view.stop - 1), slice(raw.start, raw.stop - 1)
            if what == "shifted":
                view, raw = slice(view.start, view.stop - 1), slice(raw.start + 1, raw.stop)
            layout[view] = box[raw]
        del group[name]
        if what != "lost":
            group.create_virtual_dataset(name, layout)
    told = json.loads(h5cow("verify", "--json", path, code=1))
    assert all(f"views/{name}" in d["what"] or "heads/0" in d["what"] for d in told["damage"]) and told["damage"]
    assert "4999" in h5cow("run", "--", "h5dump", "-d", "/x", "-s", "4999", "-c", "1", path)


MODEL = """
import h5py, numpy as np, sys
name, steps = sys.argv[1], eval(sys.argv[2])
for session in steps:
    with h5py.File(name, 'a', libver='latest') as f:
        for step in session:
            kind = step[0]
            if kind == 'make':
                f.create_dataset('x', step[1], 'i4', chunks=step[2], maxshape=step[3], fillvalue=step[4])
            elif kind == 'resize':
                f['x'].resize(step[1])
            elif kind == 'flush':
                f.flush()
            else:
                f['x'][tuple(slice(*s) for s in step[1])] = step[2]
"""


def played(steps):
    """What the dataset has after each session."""
    for session in steps:
        for step in session:
            if step[0] == "make":
                fill, now = step[4], np.full(step[1], step[4], "i4")
            elif step[0] == "resize":
                new = np.full(step[1], fill, "i4")
                both = tuple(slice(0, min(a, b)) for a, b in zip(now.shape, step[1]))
                new[both] = now[both]
                now = new
            elif step[0] == "write":
                now[tuple(slice(*s) for s in step[1])] = step[2]
        yield now.copy()


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
@pytest.mark.parametrize("pieces", ["16", "off"])
def test_random_small_datasets_are_shown_without_h5cow(tmp_path, rank, pieces):
    draw = random.Random(seed())
    for case in range(3):
        chunk = tuple(draw.choice([1, 1, 2, 3, 7, 16]) for _ in range(rank))
        extent = lambda: tuple(draw.randint(0, c * draw.choice([1, 2, 4, 9])) + draw.randint(0, 1) for c in chunk)
        now, steps = extent(), []
        for number in range(draw.randint(2, 6)):
            session = [("make", now, chunk, (None,) * rank, draw.randint(-3, 3))] if number == 0 else []
            for _ in range(draw.randint(1, 4)):
                what = draw.random()
                if what < 0.25:
                    now = extent()
                    session.append(("resize", now))
                elif what < 0.35:
                    session.append(("flush",))
                elif min(now) > 0:
                    box = [sorted(draw.sample(range(n + 1), 2)) for n in now]
                    session.append(("write", box, draw.randint(1, 1000)))
            session.append(("write", [(0, 1)] * rank, 1000 + number) if min(now) > 0 else ("resize", now))
            steps.append(session)
        path = tmp_path / f"{case}.h5"
        run(MODEL, path, repr(steps), options=f"pieces={pieces}")
        clean(path)
        states = list(played(steps))
        with h5py.File(path, "r") as f:
            np.testing.assert_array_equal(f["x"][()], states[-1], f"{steps}")
            trees = [f[f"{HISTORY}/versions/{v}"] for v in versions(path)]
            changed = [s for i, s in enumerate(states) if i == 0 or s.shape != states[i - 1].shape or (s != states[i - 1]).any()]
            assert len(trees) >= len(changed) > 0
            for tree, state in zip(trees, changed) if len(trees) == len(changed) else [(trees[-1], states[-1])]:
                np.testing.assert_array_equal(tree["x"][()], state, f"{tree.name} {steps}")


@pytest.mark.parametrize("group", ["views", "heads"])
@pytest.mark.parametrize("datasets", [1, 3])
def test_recover_tells_views_from_heads_where_there_are_as_many(tmp_path, group, datasets):
    """A small dataset of one version has one view and one head, so the number of links tells nothing."""
    from test_recover import flip

    path = tmp_path / "a.h5"
    run("""
import h5py, numpy as np, sys
with h5py.File(sys.argv[1], 'w') as f:
    for i in range(int(sys.argv[2])):
        f[f'd{i}'] = np.arange(3000) + i
""", path, str(datasets))
    with h5py.File(path, "r") as f:
        where = h5py.h5o.get_info(f[HISTORY].id).addr
    flip(path, where + 10)
    h5cow("recover", path, tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5", "r") as f:
        for i in range(datasets):
            np.testing.assert_array_equal(f[f"d{i}"][()], np.arange(3000) + i)
            np.testing.assert_array_equal(f[f"{HISTORY}/versions/1/d{i}"][()], np.arange(3000) + i)
