"""Whole chunks whose elements lie in memory as many short runs: they are copied together while they are hashed, and are the same chunks as when they lie
there in one piece.

The judge is an array that numpy keeps, HDF5 without the connector, and the size of the file.
"""

import random
import sys

import pytest
from seeds import seed

# argv: file, seed, properties of the file
PROGRAM = """
import os, random

draw = random.Random(sys.argv[2])
more = eval(sys.argv[3])
any_values = np.random.default_rng(draw.randrange(2**32))

def place(d, values, box):
    # from the middle of a larger array, every second of it, or as it is
    how = draw.choice(['box', 'box', 'box', 'spread', 'alone'])
    if how == 'alone':
        d[box] = values
        return
    larger = np.full(tuple((2 if how == 'spread' and k == 0 else 1) * (n + draw.randrange(1, 4)) for k, n in enumerate(values.shape)), 77, values.dtype)
    within = tuple(slice(0, 2 * n, 2) if how == 'spread' and k == 0 else slice(1, n + 1) for k, n in enumerate(values.shape))
    larger[within] = values
    d.write_direct(larger, within, box)

chunks, dtype, shape = eval(sys.argv[4])
field = any_values.integers(0, 250, shape).astype(dtype)
with h5py.File(sys.argv[1], 'w', **more) as f:
    d = f.create_dataset('x', shape, dtype, chunks=chunks, maxshape=(None,) + shape[1:])
    place(d, field, np.s_[...])
    f.flush()
    assert (d[...] == field).all()
    for _ in range(draw.choice([1, 3])):
        change(d, field) if draw.random() < 0.7 else None
for _ in range(4):
    with h5py.File(sys.argv[1], 'r+', **({'page_buf_size': more['page_buf_size']} if 'page_buf_size' in more else {})) as f:
        d = f['x']
        for _ in range(draw.choice([1, 3])):
            change(d, field)
before = os.stat(sys.argv[1]).st_size
with h5py.File(sys.argv[1], 'r+') as f:
    f['x'][...] = field
    place(f['x'], field, np.s_[...])
grown = os.stat(sys.argv[1]).st_size - before
assert grown < 60000, grown
with h5py.File(sys.argv[1], 'r') as f:
    assert (f['x'][...] == field).all()
np.save(sys.argv[1] + '.npy', field)
"""
CHANGE = """
def change(d, field):
    box = []
    for n, c in zip(d.shape, d.chunks):
        first = draw.randrange(0, n)
        box.append(slice(first, n if draw.random() < 0.6 else draw.randrange(first, n) + 1))
        if draw.random() < 0.6:
            box[-1] = slice(first // c * c, n)
    box = tuple(box)
    values = field[box] + np.asarray(draw.choice([0, 0, 1, 3])).astype(field.dtype)
    if draw.random() < 0.5:
        values[(0,) * values.ndim] += np.asarray(1).astype(field.dtype)
    place(d, values, box)
    field[box] = values
"""
READ = """
with h5py.File(sys.argv[1], 'r') as f:
    assert (f['x'][...] == np.load(sys.argv[1] + '.npy')).all()
"""

KINDS = [
    "(32, 256), 'f8', (640, 1024)",
    "(32, 250), 'f8', (700, 1000)",  # runs that are no multiple of 64 bytes
    "(64, 512), 'f8', (300, 1300)",  # edges
    "(8, 8, 512), 'f4', (64, 48, 1024)",
    "(2, 4, 16, 256), 'i2', (12, 16, 48, 512)",
    "(1024, 1024), 'u1', (4096, 3072)",
    "(512, 4096), 'u1', (2048, 8192)",  # more runs than are listed
]
FILES = ["{}", "{'libver': 'latest'}", "{'libver': 'latest', 'fs_strategy': 'page', 'fs_page_size': 65536, 'page_buf_size': 1 << 22}"]


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_in_runs_are_those_in_one_piece(programs, tmp_path, kind):
    number = random.Random(f"{seed()} {kind}").getrandbits(32)
    for n, file in enumerate(FILES):
        for threads in (1, 2):
            name = tmp_path / f"{n}-{threads}.h5"
            done = programs.python(CHANGE + PROGRAM, name, number, file, kind, options=f"threads={threads};pieces={'off' if n == 1 else 'on'}")
            assert done.returncode == 0, (number, file, done.stderr)
            done = programs.stock(sys.executable, "-c", programs.code(READ), name)
            assert done.returncode == 0, (number, file, done.stderr)
            programs.verified(name)
