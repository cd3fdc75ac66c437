"""Compounds whose members are picked, put elsewhere or left out, between memory and file: as natively, to the byte of each member."""

import pytest
from seeds import seed

CODE = """
import hashlib, random
path, number = sys.argv[1], int(sys.argv[2])
rnd = random.Random(number)
low = h5py.h5d

def plain():
    return rnd.choice(['i1', '<i2', '<i4', '>i4', '<f8', '<f4', 'S3', ('<i2', (3,)), ('<f8', (2, 2))])

def compound(names, kinds, least=0):
    # members at random places, in random order
    at, offsets = 0, []
    for name in names:
        at += rnd.choice([0, 0, 1, 3, 8])
        offsets.append(at)
        at += np.dtype(kinds[name]).itemsize
    return np.dtype({'names': list(names), 'formats': [kinds[n] for n in names], 'offsets': offsets,
                     'itemsize': max(least, at + rnd.choice([0, 0, 5]))})

names = ['m%d' % i for i in range(rnd.randrange(2, 9))]
kinds = {n: plain() for n in names}
if rnd.random() < 0.4:
    kinds['m0'] = compound(['u', 'v'], {'u': '<i4', 'v': '<f8'})
stored = compound(names, kinds)

def in_memory():
    some = rnd.sample(names, rnd.randrange(1, len(names) + 1))
    mine = dict(kinds)
    for n in some:
        if kinds[n] in ('i1', '<i2', '<i4', '>i4') and rnd.random() < 0.2:
            mine[n] = '<i8'  # converted
    if rnd.random() < 0.3:
        mine['x'] = '<i8'  # the file has no such member
        some.insert(rnd.randrange(len(some) + 1), 'x')
    made = compound(some, mine)
    if made.itemsize == stored.itemsize and not set(names) <= set(some):
        # of another size than the file's: HDF5 would lose the members that it leaves out (test_what_is_not_written_stays)
        made = compound(some, mine, made.itemsize + 1)
    return made

def content(kind, n):
    return np.frombuffer(rnd.randbytes(kind.itemsize * n), kind).copy()

def leaves(values):
    if values.dtype.names:
        for name in sorted(set(values.dtype.names) - {'x'}):  # HDF5 clears what the file does not have, if nothing was written yet
            yield from leaves(values[name])
    else:
        yield np.ascontiguousarray(values).tobytes()

def told(values):
    return hashlib.sha256(b''.join(leaves(values))).hexdigest()[:16]

shape, chunk = rnd.choice([((30000,), (1000,)), ((30000,), (7001,)), ((200, 150), (30, 40)), ((9, 60, 50), (4, 60, 20))])
more = {}
if rnd.random() < 0.5:
    more['fillvalue'] = content(stored, 1)[0]
if rnd.random() < 0.3:
    more['compression'] = 'gzip'
with h5py.File(path, 'w', libver='latest') as f:
    f.create_dataset('x', shape, stored, chunks=chunk, **more)
np.seterr(all='ignore')
for step in range(12):
    with h5py.File(path, 'r+', libver='latest') as f:
        x = f['x']
        for _ in range(rnd.randrange(1, 4)):
            space = x.id.get_space()
            if rnd.random() < 0.6:
                start = tuple(rnd.randrange(n // 2 + 1) for n in shape)
                stride = tuple(rnd.choice([1, 1, 1, 2]) for n in shape)
                count = tuple((n - s + t - 1) // t - rnd.randrange(3) for n, s, t in zip(shape, start, stride))
                space.select_hyperslab(start, count, stride)
            n = space.get_select_npoints()
            kind = in_memory()
            values = content(kind, n + 7)
            memory = h5py.h5s.create_simple((n + 7,))
            memory.select_hyperslab((rnd.choice([0, 3]),), (n,))
            if rnd.random() < 0.5:
                x.id.write(memory, space, values, h5py.h5t.py_create(kind))
            else:
                x.id.read(memory, space, values, h5py.h5t.py_create(kind))
                print(step, told(values))
        print(step, told(x[...]))
"""


@pytest.mark.parametrize("number", range(30))
def test_members_are_moved_as_natively(programs, tmp_path, number):
    random = str(seed() + number)
    native = programs.stock("python3", "-c", programs.code(CODE), tmp_path / "native.h5", random)
    assert native.returncode == 0, native.stderr
    done = programs.python(CODE, tmp_path / "a.h5", random)
    assert done.returncode == 0, done.stderr
    assert done.stdout == native.stdout != ""
    programs.verified(tmp_path / "a.h5")


SAME_SIZE = """
path, kept, written = sys.argv[1], np.arange(4000) % 100, np.arange(4000) * 3
stored = np.dtype([('a', '<i4'), ('b', 'i1')])
picked = np.dtype({'names': ['a'], 'formats': [sys.argv[2]], 'offsets': [5 - np.dtype(sys.argv[2]).itemsize], 'itemsize': 5})
with h5py.File(path, 'w') as f:
    f.create_dataset('x', (4000,), stored, chunks=(1000,))[...] = np.array([(1, n) for n in kept], stored)
with h5py.File(path, 'r+') as f:
    values = np.zeros(4000, picked)
    values['a'] = written
    f['x'].id.write(h5py.h5s.ALL, h5py.h5s.ALL, values, h5py.h5t.py_create(picked))
with h5py.File(path, 'r') as f:
    print(np.array_equal(f['x']['a'], written), np.array_equal(f['x']['b'], kept))
"""


@pytest.mark.parametrize("kind", ["<i4", "<i2"])
def test_what_is_not_written_stays(programs, tmp_path, kind):
    """HDF5 1.14 begins a chunk that is written as a whole with zeros where an element has as many bytes in memory as in the
    file, as if all members were written (H5D__chunk_write): natively the others are lost."""
    done = programs.python(SAME_SIZE, tmp_path / "a.h5", kind)
    assert (done.returncode, done.stdout) == (0, "True True\n"), done.stderr
    programs.verified(tmp_path / "a.h5")
