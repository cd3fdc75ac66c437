"""Elements that nobody wrote are zeros, or the fill value, and never what stood in the file before: with every layout, time of
allocation, time of filling and fill value, after deletions, and in versions. Native HDF5 is the judge, in a file in which nothing was
deleted: where it gives out space again it shows what was there."""

import sys

import pytest

PROGRAM = """
import h5py, itertools, numpy as np, sys
from h5py import h5d, h5p, h5s, h5t
path, churn = sys.argv[1], sys.argv[2] == 'churn'
COMPOUND = np.dtype([('a', '<i4'), ('b', '<f8'), ('c', 'S5')])
TYPES = {'float': np.dtype('<f4'), 'text': np.dtype('S3'), 'compound': COMPOUND}
LAYOUTS = {'contiguous': h5d.CONTIGUOUS, 'compact': h5d.COMPACT, 'chunked': h5d.CHUNKED, 'growing': h5d.CHUNKED}
ALLOC = {'default': None, 'early': h5d.ALLOC_TIME_EARLY, 'late': h5d.ALLOC_TIME_LATE, 'incremental': h5d.ALLOC_TIME_INCR}
FILL = {'ifset': h5d.FILL_TIME_IFSET, 'alloc': h5d.FILL_TIME_ALLOC, 'never': h5d.FILL_TIME_NEVER}
SHAPES = {'scalar': (), 'small': (13,), 'flat': (9, 30), 'large': (3001,)}
VALUES = 'default', 'undefined', 'own'

def names():
    return ['-'.join(words) for words in itertools.product(TYPES, LAYOUTS, ALLOC, FILL, SHAPES, VALUES)]

def create(f, name):
    type, layout, alloc, fill, shape, value = name.split('-')
    p = h5p.create(h5p.DATASET_CREATE)
    dims = SHAPES[shape]
    p.set_layout(LAYOUTS[layout])
    if p.get_layout() == h5d.CHUNKED:
        if not dims:
            return False
        p.set_chunk(tuple(max(1, n // 2) for n in dims))
    if ALLOC[alloc] is not None:
        p.set_alloc_time(ALLOC[alloc])
    p.set_fill_time(FILL[fill])
    if value == 'own' and type == 'text':
        return False  # h5py writes an address
    if value == 'own':
        p.set_fill_value(np.array(7 if type == 'float' else (5, 6.5, b'ab'), dtype=TYPES[type]))
    elif value == 'undefined':
        library.H5Pset_fill_value(ctypes.c_int64(p.id), ctypes.c_int64(0), None)
    most = tuple(h5s.UNLIMITED for n in dims) if layout == 'growing' else dims
    space = h5s.create_simple(dims, most) if dims else h5s.create(h5s.SCALAR)
    try:
        h5d.create(f.id, name.encode(), h5t.py_create(TYPES[type], logical=True), space, p)
    except (ValueError, TypeError, RuntimeError, OSError):
        return False
    return True

import ctypes, re
library = ctypes.CDLL(next(line.split()[-1] for line in open('/proc/self/maps') if re.search(r'/libhdf5(_serial)?[-.][^/]*so', line)))

def junk(f, k):
    if churn:
        for i in range(25):
            g = f.create_group(f'junk{k}-{i}')
            g.attrs['x'] = np.full(50, 0x1111111111111111 * (i % 15 + 1), 'u8')
            g.create_dataset('d', data=np.full(20 + 37 * i, 0xEEEEEEEE, 'u4'))
            g.create_dataset('c', data=np.full(4000, 0xDDDDDDDD, 'u4'), chunks=(100,))

def sweep(f, k):
    if churn:
        for i in range(25):
            if (i + k) % 3:
                del f[f'junk{k}-{i}']

def write_part(f, name):
    d = f[name]
    if 'compound' in name:
        m = np.zeros(d.shape, [('b', '<f8')])
        m['b'] = 3
        space = d.id.get_space()
        if 'own' in name and (d.size > 13 or 'growing' in name):  # where each element is written, HDF5 takes members for written, and fills none
            space.select_hyperslab((2,) + (1,) * (d.ndim - 1), (3,) + (1,) * (d.ndim - 1))
        d.id.write(space, space, m, h5t.py_create(m.dtype))  # one member of each element
    elif d.shape == ():
        d[()] = 1 if 'float' in name else b'q'
    else:
        d[(slice(2, 4),) + (slice(1, 2),) * (d.ndim - 1)] = 2 if 'float' in name else b'q'

def refresh(f, made, part):
    for k, name in enumerate(made):
        if k % 4 == part:
            write_part(f, name)

with h5py.File(path, 'w', libver=('v110', 'v114')) as f:
    junk(f, 0)
    f.flush()
    sweep(f, 0)
    made = []
    for k, name in enumerate(n for n in names() if n.split('-')[0] == sys.argv[3]):
        if create(f, name):
            made.append(name)
    junk(f, 1)
    refresh(f, made, 0)
with h5py.File(path, 'r+', libver=('v110', 'v114')) as f:
    sweep(f, 1)
    refresh(f, made, 1)
    junk(f, 2)
with h5py.File(path, 'r+', libver=('v110', 'v114')) as f:
    sweep(f, 2)
    for k, name in enumerate(made):
        if 'growing' in name and k % 3 == 0:
            f[name].resize(tuple(n + 5 for n in f[name].shape))
    f.flush()
    refresh(f, made, 2)
    for k, name in enumerate(made):
        if 'growing' in name and k % 3 == 1 and 'never' not in name and 'undefined' not in name:  # else HDF5 shows what was cut off
            f[name].resize(tuple(n - 5 for n in f[name].shape))
            f[name].resize(tuple(n + 3 for n in f[name].shape))
def show(file, name):
    d = file[name]
    values = np.zeros(d.shape, d.dtype)
    try:
        d.id.read(h5s.ALL, h5s.ALL, values)
    except OSError:  # no fill value, and nothing was written
        values[...] = b'-' if d.dtype.kind == 'S' else 0
        name += '(unreadable)'
    print(name, d.shape, values.tobytes().hex())
print(len(made))
with h5py.File(path, 'r') as f:
    for name in made:
        show(f, name)
if churn:
    with h5py.File(path + '@3', 'r') as f:
        for name in made:
            show(f, name)
"""


@pytest.mark.parametrize("type", ["float", "text", "compound"])
def test_unwritten_elements_are_what_they_are_in_a_new_file(programs, tmp_path, type):
    native = programs.stock(sys.executable, "-c", PROGRAM, tmp_path / "native.h5", "new", type)
    assert native.returncode == 0, native.stderr
    count, *want = native.stdout.splitlines()
    assert int(count) > 60
    done = programs.connector(sys.executable, "-c", PROGRAM, tmp_path / "cow.h5", "churn", type)
    assert done.returncode == 0, done.stderr
    count_too, *got = done.stdout.splitlines()
    assert count_too == count
    differ = [(a.split()[0], a.split(") ")[1][:80], b.split(") ")[1][:80]) for a, b in zip(want + want, got, strict=True) if a != b]
    assert differ == [], (len(differ), differ[:12], sorted({name for name, *_ in differ}))
