"""A program that makes or changes very many datasets in one session: closed ones do not wait in memory for the commit."""

import sys

import h5py
import numpy as np
import pytest
from conftest import H5COW

# Creates N datasets, or changes each of them, or creates them and deletes some: the largest memory that the process had, in KiB.
MANY = """
import resource
path, n, change = sys.argv[1], int(sys.argv[2]), sys.argv[3] == 'change'
with h5py.File(path, 'r+' if change else 'w') as f:
    for k in range(n):
        if change:
            f[f'd{k}'][3] = -1
        else:
            f[f'd{k}'] = np.arange(k, k + 1200)
            if sys.argv[3] == 'delete' and k % 50 == 49:
                f[f'd{k}'][0] = 1
                del f[f'd{k}'], f[f'd{k - 40}']
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def run(programs, path, text, *words, options="sync=off"):
    done = programs.connector(sys.executable, "-c", programs.code("import numpy as np\n" + text), path, *words, options=options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_memory_does_not_grow_with_the_datasets_of_a_session(programs, tmp_path):
    path = tmp_path / "a.h5"
    for work, most in (("create", 1.3), ("change", 1.7), ("delete", 1.3)):
        few, many = (int(run(programs, tmp_path / ("deleted.h5" if work == "delete" else f"{n}.h5"), MANY, n, work)) for n in (3000, 9000))
        assert many < most * few, (work, few, many)  # without it: 1.9, 2.2, 1.9
    path = tmp_path / "9000.h5"
    with h5py.File(path) as f:
        for k in range(0, 9000, 7):
            for x, third in ((f[f"d{k}"], -1), (f[f"_versioned_data/versions/1/d{k}"], k + 3)):
                assert x[3] == third and x[0] == k and x[1199] == k + 1199, (k, x)
        assert len(f["_versioned_data/versions/2"]) == len(f["_versioned_data/heads"]) == 9000
    done = programs.stock(H5COW, "verify", path)
    assert done.returncode == 0, done.stdout + done.stderr


# Each case changes what was closed and committed early; right is what head and version 1 are to hold.
CHANGES = {
    "attribute": "f['b'].attrs['unit'] = 'K'",
    "attribute, not opened for it": "h5py.h5a.create(f.id, b'unit', h5py.h5t.NATIVE_INT8, h5py.h5s.create(h5py.h5s.SCALAR), obj_name=b'b')",
    "again": "f['b'][2] = 77",
    "grown": "f['b'].resize((50,))",
    "deleted": "del f['b']",
    "deleted, another at its place": "del f['b']; f['b'] = np.arange(7.)",
    "deleted with its group": "f.create_group('g'); f.move('b', 'g/b'); del f['g']",
    "deleted, a small one at its place": "del f['b']; f.create_dataset('b', data=5)",
    "cut, and deleted": "d = f['b']; d.resize((5,)); del f['b']; del d",
    "written and stored, and deleted": "d = f['b']; d[...] = 0; d.id.flush(); del f['b']; del d",
    "written, and deleted": "d = f['b']; d[0] = 1; del f['b']; del d",
    "read, and deleted": "d = f['b']; del f['b']; f['q'] = np.arange(30.); del d",
    "moved": "f.move('b', 'c')",
    "second link": "f['c'] = f['b']",
    "second link, the first one gone": "f['c'] = f['b']; del f['b']",
    "copied": "f.copy('b', 'c'); f['c'][1] = 5",
    "flushed between": "f.flush(); f['b'][3] = 8",
    "flushed, and deleted": "f.flush(); del f['b']",
    "deleted with a group that never had a link": "g = h5py.Group(h5py.h5g.create(f.id, None)); g['x'] = np.arange(30.); g['y'] = np.arange(2000.)"
                                                  "; del g; f['small'], f['small too'] = 5, 6",
    "made in a deleted group": "f.flush(); g = f.create_group('g'); del f['g']; g['h/x'] = np.arange(30.); g['h/y'] = np.arange(2000.); del g"
                               "; f['small'], f['small too'] = 5, 6",
    "kept open": "global x; x = f['b']; del f['b']; x[1] = 9",
    "deleted while open, and linked again": "d = f['b']; del f['b']; f['q'] = np.arange(30.); h5py.h5o.link(d.id, f.id, b'b'); d[2] = 5; del d",
}
LIFE = """
with h5py.File(sys.argv[1], 'w') as f:
    for name in 'abde':
        f.create_dataset(name, data=np.arange(40.), chunks=(8,), maxshape=(None,))
    %s
    f['z'] = np.arange(30.)
    for name in 'ad':
        f[name][0] = -1
"""
TREE = """
import json
def tree(group):
    return {name: (x.shape, np.asarray(x[...]).ravel().tolist(), sorted(x.attrs))
            if isinstance(x, h5py.Dataset) else tree(x) for name, x in group.items() if name != '_versioned_data'}
with h5py.File(sys.argv[1], 'r') as f:
    print(json.dumps(tree(f if len(sys.argv) < 3 else f[sys.argv[2]])))
"""


@pytest.mark.parametrize("memory", ["1K", "64M"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_committed_early_may_be_changed(programs, tmp_path, change, memory):
    text = LIFE % CHANGES[change]
    plain, path = tmp_path / "plain.h5", tmp_path / "a.h5"
    done = programs.stock(sys.executable, "-c", programs.code("import numpy as np\n" + text), plain)
    assert done.returncode == 0, done.stderr
    run(programs, path, text, options=f"memory={memory}")
    code = programs.code("import numpy as np\n" + TREE)
    right = programs.stock(sys.executable, "-c", code, plain).stdout
    assert "[" in right
    assert run(programs, path, TREE) == right
    assert run(programs, f"{path}@1", TREE) == right
    assert programs.stock(sys.executable, "-c", code, path).stdout == right
    assert programs.stock(sys.executable, "-c", code, path, "/_versioned_data/versions/1").stdout == right
    done = programs.stock(H5COW, "verify", path)
    assert done.returncode == 0, done.stdout + done.stderr
    run(programs, path, "f = h5py.File(sys.argv[1], 'r+'); f['a'][1] = 3; f.close()")
    for words in (["forget", "1"], ["gc"], ["verify"]):
        done = programs.stock(H5COW, words[0], path, *words[1:])
        assert done.returncode == 0, (words, done.stdout + done.stderr)


# What makes HDF5 evict the header of a dataset that was deleted, and that h5cow has open until the commit.
EVICTIONS = {
    "small cache": (
        "c = f.id.get_mdc_config(); c.set_initial_size = True; c.initial_size = c.min_size = c.max_size = 1024; f.id.set_mdc_config(c)",
        "for k in range(20): f.create_group(f'way{k}')",
    ),
    "much metadata": ("pass", "for k in range(1000): f.create_group(f'way{k}').attrs['a'] = np.zeros(4000)"),
}


@pytest.mark.parametrize("gone", ["del f['h']", "g = f['h']; del f['h']; del g", "d = f['h/y']; del f['h']; del d"])
@pytest.mark.parametrize("eviction", EVICTIONS)
def test_what_was_deleted_is_not_committed_early(programs, tmp_path, eviction, gone):
    """HDF5 forgets that it has no link when its metadata cache evicts the header; its place may be another object's later."""
    plain, path = tmp_path / "plain.h5", tmp_path / "a.h5"
    with h5py.File(plain, "w") as f:
        f.create_dataset("g/y", data=np.arange(1000.))
    before, evict = EVICTIONS[eviction]
    text = f"""
with h5py.File(sys.argv[1], 'w') as f:
    f.create_dataset('x', data=np.arange(40.), chunks=(8,), maxshape=(None,))
with h5py.File(sys.argv[2]) as source, h5py.File(sys.argv[1], 'r+') as f:
    {before}
    source.copy('g', f, 'h')
    {gone}
    {evict}
    f['x'][3] = 8
    for k in range(20):
        f.create_group(f'group{{k}}')
"""
    run(programs, path, text, plain, options="memory=1K;sync=off")
    with h5py.File(path) as f:
        version = f["_versioned_data/versions/2"]
        assert set(version) == set(f) - {"_versioned_data"}
        for k in range(20):
            assert isinstance(f[f"group{k}"], h5py.Group) and isinstance(version[f"group{k}"], h5py.Group), k
    done = programs.stock(H5COW, "verify", path)
    assert done.returncode == 0, done.stdout + done.stderr


# How a group comes to be open without a link. HDF5 then takes what is in it along when it closes it.
UNLINKED = {
    "deleted": "g = f.create_group('g'); g2 = f['g']; del f['g']",
    "deleted with its parent": "g = f.create_group('p/g'); g2 = f['p/g']; del f['p']",
    "deleted with its parent, which is open": "p = f.create_group('p'); g = p.create_group('g'); g2 = f['p/g']; del f['p']; del p",
    "never linked": "g = h5py.Group(h5py.h5g.create(f.id, None)); g2 = g['.']",
    "linked again, and deleted": "g = f.create_group('g'); g2 = f['g']; del f['g']; f['h'] = g; del f['h']",
}


@pytest.mark.parametrize("unlinked", UNLINKED)
def test_a_deleted_group_that_is_open_takes_nothing_along_that_a_version_knows(programs, tmp_path, unlinked):
    path = tmp_path / "a.h5"
    text = f"""
with h5py.File(sys.argv[1], 'w') as f:
    f['x'], f['y'], f['z'] = np.arange(40.), np.arange(2000.), np.arange(2000.)
with h5py.File(sys.argv[1], 'r+') as f:
    {UNLINKED[unlinked]}
    g['y'] = f['y']
    del f['y']
    for k in range(2500):
        f.create_group(f'way{{k}}').attrs['a'] = np.zeros(4000)
    del g
    g2['z'] = f['z']
    del f['z'], g2
    f['x'][3] = 8
"""
    run(programs, path, text)
    with h5py.File(path) as f:
        assert set(f["_versioned_data/versions/1"]) == {"x", "y", "z"} and len(f["_versioned_data/removed"]) == 2
        assert all(f[f"_versioned_data/versions/1/{name}"][1999] == 1999 for name in "yz")
    done = programs.stock(H5COW, "verify", path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_comes_to_the_place_of_a_deleted_group_is_not_taken_for_it(programs, tmp_path):
    """The group is open, so it is remembered that it has no link; closed, its address is another's."""
    path = tmp_path / "a.h5"
    text = """
with h5py.File(sys.argv[1], 'w') as f:
    f['x'], f['y'] = np.arange(40.), np.arange(2000.)
with h5py.File(sys.argv[1], 'r+') as f:
    places = set()
    for k in range(20):
        g = f.create_group('g')
        g2 = f['g']
        del f['g']
        places.add(h5py.h5o.get_info(g.id).addr)
        del g, g2
        g = f.create_group(f'g{k}')
        again = h5py.h5o.get_info(g.id).addr in places
        g['y'] = f['y']
        del g
    assert again
    g = f.create_group('g')
    del f['g']
    f['h'] = g
    g['y'] = f['y']
    del g
"""
    run(programs, path, text)
    with h5py.File(path) as f:
        assert len(f["_versioned_data/removed"]) == 0
        assert all(f[f"_versioned_data/versions/2/g{k}/y"] == f["_versioned_data/versions/2/y"] for k in range(20))
    done = programs.stock(H5COW, "verify", path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_chunks_of_what_was_deleted_again_are_used_again(programs, tmp_path):
    """Datasets that come and go within one session: their slots are free for the next, and nothing is left of them."""
    path = tmp_path / "a.h5"
    text = """
with h5py.File(sys.argv[1], 'w') as f:
    for k in range(4):
        f.create_dataset(f'd{k}', data=np.random.default_rng(k).random(20000), chunks=(5000,))
    for k in range(4):
        del f[f'd{k}']
    f['last'] = 1
with h5py.File(sys.argv[1], 'r+') as f:
    for k in range(4):
        f.create_dataset(f'e{k}', data=np.random.default_rng(9 + k).random(20000), chunks=(5000,))
"""
    run(programs, path, text, options="memory=1K")
    with h5py.File(path) as f:
        assert [len(slots) for slots in f["_versioned_data/slots"].values()] == [16]
        assert len(f["_versioned_data/heads"]) == 4 and len(f["_versioned_data/views"]) == 4
