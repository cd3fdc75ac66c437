"""As many chunks, dimensions and kinds of fill values as HDF5 takes: none of them is too many for a history."""

import json
import sys

import h5py
import numpy as np
import pytest

from conftest import H5COW

MANY = """
import h5py, numpy as np, sys
path, n = sys.argv[1], int(sys.argv[2])
with h5py.File(path, 'w') as f:
    f.create_dataset('t', (0,), 'f8', maxshape=(None,), chunks=(1,))
for session in range(2):
    with h5py.File(path, 'r+') as f:
        f['t'].resize((n * (session + 1),))
        f['t'][n * session:] = np.arange(n) + 0.5 + session
"""


@pytest.mark.parametrize("chunks", [1500, 2000, 6000])
def test_many_tiny_chunks_in_a_small_file(programs, tmp_path, chunks):
    """The tables of a session get more rows than the file had bytes for when it began."""
    path = tmp_path / "a.h5"
    done = programs.connector(sys.executable, "-c", MANY, path, chunks)
    assert done.returncode == 0, done.stderr
    right = [np.arange(chunks) + 0.5, np.arange(chunks) + 1.5]
    with h5py.File(path, "r") as f:
        assert (f["t"][...] == np.concatenate(right)).all()
        assert (f["_versioned_data/versions/2/t"][...] == right[0]).all()
    programs.verified(path)


DIMENSIONS = """
import h5py, numpy as np, sys
path = sys.argv[1]
with h5py.File(path, 'w') as f:
    for rank in (1, 5, 31, 32):
        shape = (2,) * min(rank, 4) + (1,) * (rank - min(rank, 4))
        d = f.create_dataset(f'd{rank}', shape, 'i2')
        d[...] = np.arange(d.size).reshape(shape)
        d.attrs['a'] = np.arange(d.size).reshape(shape)
        if rank == 32:
            continue # h5py itself crashes where it reads strings of so many dimensions: HDF5 1.14.5 does not reclaim them
        d.attrs.create('s', np.array(['text'] * d.size, dtype=object).reshape(shape), dtype=h5py.string_dtype())
        s = f.create_dataset(f's{rank}', shape, h5py.string_dtype())
        s[...] = np.array(['e%d' % i for i in range(s.size)], dtype=object).reshape(shape)
with h5py.File(path, 'r+') as f:
    for rank in (1, 5, 31, 32):
        f[f'd{rank}'][0] = -1
        f[f'd{rank}'].attrs['a'] = f[f'd{rank}'][...] + 1
        if rank < 32:
            f[f's{rank}'][0] = 'new'
with h5py.File(path, 'r') as f:
    print([[x, f[x][...].ravel().tolist().__repr__(), {k: v.ravel().tolist().__repr__() for k, v in f[x].attrs.items()}] for x in f if x[0] != '_'])
"""


def test_as_many_dimensions_as_there_can_be(programs, tmp_path):
    path, plain = tmp_path / "a.h5", tmp_path / "plain.h5"
    done = programs.connector(sys.executable, "-c", DIMENSIONS, path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == programs.stock(sys.executable, "-c", DIMENSIONS, plain).stdout
    programs.verified(path)
    for command in (
        ["diff", f"{path}@1", f"{path}@2"],
        ["hash", path],
        ["recover", path, tmp_path / "saved.h5"],
        ["export", f"{path}@1", tmp_path / "one.h5"],
        ["restore", f"{path}@1"],
        ["import", plain, tmp_path / "taken.h5"],
    ):
        done = programs.cow(*command)
        assert done.returncode in (0, 1) and "crash" not in done.stdout + done.stderr, (command, done.stderr)
    with h5py.File(path, "r") as f:
        assert f["d32"][...].ravel().tolist() == list(range(16))
        assert f["s31"][...].ravel().tolist() == [b"e%d" % i for i in range(16)]
    programs.verified(path)


FILLS = """
import h5py, json, sys
path = sys.argv[1]
with h5py.File(path, 'w') as f: # h5py sets fill values of strings as strings of variable length
    for i in range(20):
        f.create_dataset(f'd{i}', (10,), f'S{5 + i}', maxshape=(None,), fillvalue=b'abcde', chunks=(2,))
        f[f'd{i}'][3] = b'xyz'
    f.create_dataset('contiguous', (3000,), 'S9', fillvalue=b'fill')
    f.create_dataset('number', (30,), 'i4', fillvalue=7.0, chunks=(2,))
with h5py.File(path, 'r+') as f:
    f['d3'].resize((12,))
    print(json.dumps([[x, f[x].fillvalue.tolist().__repr__(), f[x][:12].tolist().__repr__()] for x in f if x[0] != '_']))
"""


def test_fill_values_that_are_strings_of_another_kind(programs, tmp_path):
    path, plain = tmp_path / "a.h5", tmp_path / "plain.h5"
    done = programs.connector(sys.executable, "-c", FILLS, path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(programs.stock(sys.executable, "-c", FILLS, plain).stdout)
    with h5py.File(path, "r") as f:
        assert f["_versioned_data/versions/2/d3"][...].tolist() == [b"abcde"] * 3 + [b"xyz"] + [b"abcde"] * 8
    done = programs.stock(H5COW, "verify", path)
    assert done.returncode == 0, done.stdout + done.stderr


# ---- boxes with more elements than HDF5 counts ----

OPEN = [
    ((10000, 1, 64, 64), (1, 1, 64, 64)),
    ((20000, 1, 64, 64), (1, 1, 64, 64)),
    ((600000, 100, 100), (1, 100, 100)),
    ((4294967346, 40), (4, 16)),
    ((4000000000, 40), (4, 16)),
    ((70000, 3, 2, 2, 2), (1, 1, 1, 1, 2)),
]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("shape, chunk", OPEN, ids=str)
def test_all_dimensions_are_unlimited_and_one_is_long(programs, tmp_path, shape, chunk, libver):
    """The box of an index node is as long in each of them."""
    done = programs.python(f"""
        n, rest = {shape[0]}, {shape[1:]}
        with h5py.File('a.h5', 'w', libver={libver!r}) as f:
            d = f.create_dataset('d', (n, *rest), 'f4', chunks={chunk}, maxshape=(None,) * {len(shape)}, fillvalue=3)
            d[0], d[n // 2], d[n - 1] = 5, 6, 7
        with h5py.File('a.h5', 'r+', libver={libver!r}) as f:   # longer, and with another end
            f['d'].resize((n + n // 3, *rest))
            f['d'][n + n // 3 - 1] = 8
        with h5py.File('a.h5', 'r+', libver={libver!r}) as f:   # wider, without a change of what there is
            f['d'].resize((n, *[2 * k for k in rest]))
        with h5py.File('a.h5', 'r+', libver={libver!r}) as f:
            f['d'][n - 2] = 9
    """, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    n = shape[0]
    expected = {"1": {0: 5, n // 2: 6, n - 1: 7, 1: 3}, "2": {0: 5, n // 2: 6, n - 1: 7, n + n // 3 - 1: 8, n + 5: 3},
                "3": {0: 5, n // 2: 6, n - 1: 7, 2: 3}, "4": {0: 5, n // 2: 6, n - 1: 7, n - 2: 9, 3: 3}}
    with h5py.File(tmp_path / "a.h5") as f:
        for name, rows in [*expected.items(), ("head", expected["4"])]:
            d = f["d" if name == "head" else f"_versioned_data/versions/{name}/d"]
            inner = tuple(slice(0, k) for k in shape[1:])
            for row, value in rows.items():
                assert (d[(row, *inner)] == value).all(), (name, row)
            if name in "34":
                beyond = (0,) + tuple(slice(k, None) for k in shape[1:])
                assert (d[beyond] == 3).all()
    done = programs.cow("verify", tmp_path / "a.h5")
    assert done.returncode == 0, done.stdout
