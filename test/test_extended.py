"""Datasets that are made larger or smaller while HDF5 has not opened them: the commit writes the new extent into the bytes of the object header. Whatever is
asked, done or read before and after, in whatever order, the head, each version, and what HDF5 alone reads are as after the same session natively."""

import json
import random
import sys

import pytest
from seeds import seed

# argv: file, session, seed, open with
SESSION = """
import json, random

def resize(d, n):
    d.resize(tuple(draw.randrange(1, (m or 60) + 1) for m in d.maxshape))
    if draw.random() < 0.7:
        d[tuple(slice(None, None, draw.choice([1, 2, 5])) for _ in d.shape)] = n % 200

def step(f, n):
    names = [name for name in sorted(f) if name != '_versioned_data' and isinstance(f[name], h5py.Dataset)] if draw.random() < 0.3 else sorted(name for name in f if name[0] in 'dm')
    name = draw.choice(names)
    what = draw.choice(['resize'] * 9 + ['info', 'info', 'attribute', 'flush', 'several', 'twice', 'move', 'delete', 'copy', 'region', 'visit', 'value', 'by group', 'make'])
    if what in ('resize', 'twice'):
        resize(f[name], n)
        if what == 'twice':
            f.flush()
            resize(f[name], n + 1)
    elif what == 'info':
        d = f[name]
        h5py.h5o.get_info(f.id, name.encode()) if draw.random() < 0.7 else h5py.h5o.get_info(d.id)
        resize(d, n)
        h5py.h5o.get_info(f.id, name.encode()) if draw.random() < 0.5 else h5py.h5o.get_info(d.id)
        assert d.shape == f[name].shape
        if draw.random() < 0.6:
            f.flush()
            d.attrs['later'] = n
    elif what == 'attribute':
        d = f[name]
        if draw.random() < 0.5:
            d.attrs['a'] = n
        resize(d, n)
        d.attrs[draw.choice('bc')] = n
    elif what == 'flush':
        f.flush()
    elif what == 'several':
        handles = [f[name], f['/' + name], h5py.Dataset(h5py.h5d.open(f.id, name.encode()))]
        for d in handles:
            resize(d, n)
            assert all(d.shape == e.shape for e in handles)
    elif what == 'move':
        d = f[name]
        resize(d, n)
        f.move(name, f'm{n}')
        assert d.shape == f[f'm{n}'].shape
    elif what == 'delete' and len(names) > 4:
        d = f[name]
        resize(d, n)
        del f[name]
        resize(d, n)
    elif what == 'copy':
        resize(f[name], n)
        f.flush()  # HDF5 1.14.5 does not copy all that it has in memory
        f.copy(name, f'dc{n}')
    elif what == 'region':
        d = f[name]
        resize(d, n)
        f.flush()
        assert d.regionref[tuple(slice(0, 1) for _ in d.shape)]
        assert h5py.h5r.get_region(d.regionref[...], f.id).get_simple_extent_dims() == d.shape
    elif what == 'visit':
        d = f[name]
        resize(d, n)
        f.visititems(lambda name, o: None)
    elif what == 'value':
        f[name][tuple(0 for _ in f[name].shape)] = n % 200
    elif what == 'by group':
        d = f['g/d']
        resize(d, n)
    elif what == 'make':
        make(f, f'dm{n}', n)
        resize(f[f'dm{n}'], n)

def make(at, name, n):
    rank = draw.choice([1, 1, 2, 3])
    most = tuple(draw.choice([None, 9, 40]) for _ in range(rank))
    most = most if None in most else (None,) + most[1:]
    shape = tuple(draw.randrange(1, (m or 30) + 1) for m in most)
    d = at.create_dataset(name, shape, draw.choice(['i4', 'f8', 'u1']), chunks=tuple(draw.randrange(1, 9) for _ in most), maxshape=most, fillvalue=draw.choice([None, None, None, 7]),
                          track_times=draw.choice([True, False]), compression=draw.choice([None, None, 'gzip']))
    d[...] = n % 200
    for k in range(draw.choice([0, 0, 0, 2, 12])):
        d.attrs[f'made{k}'] = k

n = int(sys.argv[2])
draw = random.Random(f'{sys.argv[3]} {n}')
with h5py.File(sys.argv[1], 'r+' if n > 0 else 'w', **eval(sys.argv[4])) as f:
    if n == 0:
        for k in range(6):
            make(f, f'd{k}', k)
        make(f.create_group('g'), 'd', 1)
    for k in range(draw.choice([1, 1, 2, 4, 8])):
        step(f, 100 * n + 10 * k)
    f.attrs['session'] = n
"""

TOLD = """
import json

def told(f):
    found = []
    f.visititems(lambda name, o: found.append([name, o.shape, str(o.maxshape), o[...].astype('f8').ravel().tolist(), sorted((k, int(v)) for k, v in o.attrs.items())])
                 if isinstance(o, h5py.Dataset) and not name.startswith('_versioned_data') else None)
    return sorted(found)
"""
HEAD = TOLD + """
with h5py.File(sys.argv[1], 'r') as f:
    print(json.dumps(told(f)))
"""
VERSIONS = TOLD + """
with h5py.File(sys.argv[1], 'r') as f:
    versions = f['_versioned_data/versions']
    print(json.dumps({int(v.attrs['session']): told(v) for v in (versions[name] for name in sorted(versions, key=int)) if 'session' in v.attrs}))
"""


@pytest.mark.parametrize("lists", ["{}", "{'libver': 'latest'}", "{'libver': 'v110'}"])
def test_extents_are_as_native(programs, tmp_path, lists):
    number = random.Random(f"{seed()} {lists}").getrandbits(32)
    native, file = tmp_path / "native.h5", tmp_path / "a.h5"

    def run(how, code, *arguments):
        done = how(sys.executable, "-c", programs.code(code), *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    right = {}
    for n in range(14):
        run(programs.stock, SESSION, native, n, number, lists)
        run(programs.connector, SESSION, file, n, number, lists)
        right[str(n)] = json.loads(run(programs.stock, HEAD, native))
        assert json.loads(run(programs.stock, HEAD, file)) == right[str(n)], (n, number)
    assert json.loads(run(programs.connector, HEAD, file)) == right[str(n)]
    assert json.loads(run(programs.stock, VERSIONS, file)) == right
    programs.verified(file)


@pytest.mark.parametrize("met", ["h5py.h5o.get_info(f.id, b'x')", "f.visititems(lambda name, o: None)", "h5py.h5a.exists(f.id, b'a', obj_name=b'x')"])
def test_a_header_that_hdf5_has_read(programs, tmp_path, met):
    """It has that in memory, and writes all of it when something else of it changes."""
    file = tmp_path / "a.h5"
    done = programs.python("with h5py.File(sys.argv[1], 'w', libver='latest') as f: f.create_dataset('x', data=np.arange(100), chunks=(64,), maxshape=(None,))", file)
    assert done.returncode == 0, done.stderr
    done = programs.python(
        f"""
        with h5py.File(sys.argv[1], 'r+', libver='latest') as f:
            d = f['x']
            {met}
            d.resize((300,))
            f.flush()
            d.attrs['later'] = 1
        """,
        file,
    )
    assert done.returncode == 0, done.stderr
    done = programs.stock(sys.executable, "-c", programs.code("print(h5py.File(sys.argv[1], 'r')['x'].shape)"), file)
    assert done.stdout == "(300,)\n", done.stdout + done.stderr
