"""Tables that a session writes by their bytes, and that HDF5 has opened in the same process, before or meanwhile: each sees what the other did."""

import json
import sys

import h5py
import pytest
from conftest import H5COW
from seeds import seed

# Each change sets all elements of a dataset to one value. Versions are read in the same process, so that HDF5 opens tables of a file that is written.
BEGIN = """
import json, random, sys
import h5py, numpy as np
path, seed = sys.argv[1], int(sys.argv[2])
dice = random.Random(seed)
N = 7
def value(i, k):
    return 1000 * i + k
state = [0] * N
history = []
def remember():
    history.append(list(state))
with h5py.File(path, 'w') as f:
    for i in range(N):
        f.create_dataset(f'd{i}', data=np.full(100 + 40 * i, value(i, 0), dtype=f'i{(2, 4, 8)[i % 3]}'), chunks=(50,), maxshape=(None,))
remember()
def change(f, i):
    state[i] += 1
    f[f'd{i}'][...] = value(i, state[i] % 7)
    if dice.random() < 0.3:
        f[f'd{i}'].resize((f[f'd{i}'].shape[0] + dice.randrange(-3, 9),))
        f[f'd{i}'][...] = value(i, state[i] % 7)
def look(version):
    with h5py.File(f'{path}@{version}', 'r') as v:
        for i in range(N):
            have = set(v[f'd{i}'][...].tolist())
            assert have == {value(i, history[version - 1][i] % 7)}, (seed, version, i, have)
def look_at_some():
    for _ in range(2):
        look(dice.randrange(1, len(history) + 1))
"""
CASES = {
    "sessions of one change": """
for _ in range(60):
    with h5py.File(path, 'r+') as f:
        change(f, dice.randrange(N))
    remember()
""",
    "a version is read before the change": """
for _ in range(25):
    with h5py.File(path, 'r+') as f:
        look_at_some()
        change(f, dice.randrange(N))
    remember()
""",
    "a version is read between two changes": """
for _ in range(25):
    with h5py.File(path, 'r+') as f:
        change(f, dice.randrange(N))
        look_at_some()
        change(f, dice.randrange(N))
    remember()
""",
    "a version stays open": """
for _ in range(15):
    with h5py.File(path, 'r+') as f:
        change(f, dice.randrange(N))
        v = h5py.File(f'{path}@{dice.randrange(1, len(history) + 1)}', 'r')
        held = [v[f'd{i}'] for i in range(N)]
        change(f, dice.randrange(N))
        f.flush()
        look_at_some()
        change(f, dice.randrange(N))
        before = [x[...].tolist() for x in held]
        f.flush()
        assert before == [x[...].tolist() for x in held]
    look_at_some()
    v.close()
    remember()
""",
    "the file is opened again while it is open": """
kept = None
for k in range(25):
    f = h5py.File(path, 'r+')
    one = f[f'd{dice.randrange(N)}'] # keeps HDF5's file open
    change(f, dice.randrange(N))
    f.close()
    with h5py.File(path, 'r+') as g:
        change(g, dice.randrange(N))
    del one
history = [] # how many versions that makes is not the question
""",
    "flushes": """
for _ in range(20):
    with h5py.File(path, 'r+') as f:
        for _ in range(4):
            change(f, dice.randrange(N))
            f.flush()
    remember()
""",
    "new pools between": """
for k in range(15):
    with h5py.File(path, 'r+') as f:
        change(f, dice.randrange(N))
        f.create_dataset(f'new{k}', data=np.arange(90.) + k, chunks=(10 + k,), maxshape=(None,))
        change(f, dice.randrange(N))
        f.flush()
        if k > 2:
            f[f'new{k - 2}'][5] = -1
            del f[f'new{k - 3}']
    remember()
""",
    "pools are closed, and opened again": """
with h5py.File(path, 'r+') as f:
    f.create_dataset('many', shape=(4000,), dtype='i4', chunks=(4,), maxshape=(None,))
    for k in range(600):
        f.create_dataset(f'of{k}', shape=(1000,), chunks=(100 + k,), maxshape=(None,))
        f[f'of{k}'][0] = 1
remember()
for n in range(2):
    with h5py.File(path, 'r+') as f: # slots of `many` fill chunks of their table, which HDF5 makes
        for half in range(2):
            f['many'][half * 2000:half * 2000 + 2000] = dice.randrange(1 << 30) + np.arange(2000)
            f.flush()
            for k in range(half * 300, half * 300 + 300):
                f[f'of{k}'][1] = n
            f.flush()
        want = dice.randrange(1 << 30) + np.arange(4000)
        f['many'][...] = want
        change(f, dice.randrange(N))
    remember()
    with h5py.File(path, 'r') as f:
        assert (f['many'][...] == want).all()
""",
}
END = """
for version in range(1, len(history) + 1):
    look(version)
with h5py.File(path, 'r') as f:
    for i in range(N):
        assert set(f[f'd{i}'][...].tolist()) == {value(i, state[i] % 7)}
print(json.dumps([[value(i, state[i] % 7) for i in range(N)] for state in history + [state]]))
"""


@pytest.mark.parametrize("case", CASES)
def test_tables_are_the_same_for_both(programs, tmp_path, case):
    path = tmp_path / "t.h5"
    done = programs.connector(sys.executable, "-c", BEGIN + CASES[case] + END, path, seed())
    assert done.returncode == 0, done.stderr
    *history, state = json.loads(done.stdout)
    with h5py.File(path) as f:  # HDF5 alone sees the same
        versions = f["_versioned_data/versions"]
        trees = [versions[str(k + 1)] for k in range(len(history))] + [f, versions[max(versions, key=int)]]
        for tree, right in zip(trees, [*history, state, state], strict=True):
            assert [set(tree[f"d{i}"][...].tolist()) for i in range(len(right))] == [{one} for one in right]
    done = programs.stock(H5COW, "verify", path)
    assert done.returncode == 0, done.stdout + done.stderr
