"""Contiguous data of more than a chunk is cut evenly: chunks are stored whole, and what they have beyond the data is little."""

import json
import math
import random
import sys

import h5py
import numpy as np
import pytest
from conftest import h5cow
from seeds import seed

KINDS = ["u1", "<i2", "<i4", "<i8", "V39", "V200"]
OURS = [
    ("<i8", shape)
    for shape in [(33000,), (182, 182), (64, 64, 3, 3), (66000,), (100000,), (300, 300), (7, 11, 13, 50), (37, 4000), (19, 19, 19, 19), (2, 1, 70000, 1)]
]
WRITE = """
import json
path, shapes = sys.argv[1], json.loads(sys.argv[2])
with h5py.File(path, 'w') as f:
    for k, (kind, shape) in enumerate(shapes):
        values = np.random.default_rng(k).integers(256, size=(*shape, np.dtype(kind).itemsize), dtype='u1')
        f[f'd{k}'] = values.view(kind)[..., 0]
"""


def shapes_of(dice, target, n):
    """Of data of more than TARGET bytes, and of up to eight times as much."""
    while n > 0:
        kind = dice.choice(KINDS)
        weights = [dice.random() for _ in range(dice.choice((1, 1, 2, 2, 3, 4, 6, 9)))]
        elements = target / np.dtype(kind).itemsize * 2 ** dice.uniform(0, 3)
        shape = [max(1, round(elements ** (w / sum(weights)))) for w in weights]
        if math.prod(shape) * np.dtype(kind).itemsize > target:
            yield kind, shape
            n -= 1


@pytest.mark.parametrize("target", [1 << 14, 1 << 18])
def test_little_is_stored_beyond_the_data(programs, tmp_path, target):
    path, plain = tmp_path / "a.h5", tmp_path / "plain.h5"
    shapes = [*OURS, *shapes_of(random.Random(seed()), target, 60)]
    done = programs.python(WRITE, path, json.dumps(shapes), options=f"chunk={target};sync=off")
    assert done.returncode == 0, done.stderr
    assert programs.stock(sys.executable, "-c", programs.code(WRITE), plain, json.dumps(shapes)).returncode == 0
    for row in json.loads(h5cow("stat", "--json", path))["datasets"]:
        kind, shape = shapes[int(row["path"][2:])]
        chunk = math.prod(row["chunk_shape"]) * np.dtype(kind).itemsize
        assert row["distinct_chunks"] == row["chunks"] and row["stored_bytes"] < 1.05 * row["logical_bytes"], row
        assert (target * 0.24 if max(shape) >= 128 else target / 32) < chunk <= target, row
    with h5py.File(path) as ours, h5py.File(plain) as theirs:
        assert sorted(theirs) == sorted(k for k in ours if k[0] != "_")
        for k in theirs:
            assert ours[k].shape == theirs[k].shape and ours[k][()].tobytes() == theirs[k][()].tobytes(), k
    programs.verified(path)


LENGTHS = """
with h5py.File(sys.argv[1], 'w') as f:
    for k in range(200):
        f[f'd{k}'] = np.arange(33000 + 500 * k)
"""


def test_datasets_of_many_lengths_share_pools(programs, tmp_path):
    path = tmp_path / "a.h5"
    done = programs.python(LENGTHS, path, options="sync=off")
    assert done.returncode == 0, done.stderr
    with h5py.File(path) as f:
        assert len(f["_versioned_data/raw"]) <= 33


CHANGE = """
path, other = sys.argv[1:]
with h5py.File(path, 'r+') as f, h5py.File(other, 'w') as g:
    f['x'][7] = f['x'][8] + 1
    f.copy('x', 'same')
    f.copy('x', g, 'x')
    f['new'] = f['x'][()]
"""


def test_a_dataset_keeps_the_chunks_it_has(programs, tmp_path):
    """Those of another choice too: it is changed, copied and put back; what is made anew gets chunks of its own."""
    path, other, values = tmp_path / "a.h5", tmp_path / "b.h5", np.arange(90000.0).reshape(300, 300)
    done = programs.python("with h5py.File(sys.argv[1], 'w') as f: f['x'] = np.arange(90000.).reshape(300, 300)", path, options="chunk=600K")
    assert done.returncode == 0, done.stderr
    done = programs.python(CHANGE, path, other)
    assert done.returncode == 0, done.stderr
    changed = values.copy()
    changed[7] = values[8] + 1

    def chunks(path):
        return {row["path"][1:]: row["chunk_shape"] for row in json.loads(h5cow("stat", "--json", path))["datasets"]}

    old, new = chunks(f"{path}@1")["x"], chunks(other)["x"]
    assert old != new and chunks(path) == {"x": old, "same": old, "new": new}
    h5cow("restore", f"{path}@1", "/x")
    assert chunks(path) == {"x": old, "same": old, "new": new}
    for name, right in (path, {"x": values, "same": changed, "new": changed}), (other, {"x": changed}):
        with h5py.File(name) as f:
            for key, wanted in right.items():
                assert (f[key][()] == wanted).all(), (name, key)
        programs.verified(name)
