"""Small changes cost pieces of chunks: what is read of each version, with the connector and without it, and what that costs."""

import json
import random
import sys

import h5py
import numpy as np
import pytest
from conftest import H5COW, STOCK
from seeds import seed

# Writes a history at random, and beside it, as plain arrays, what each version is.
LIFE = """
import json, random
at, shape, chunks, kind, sessions, number = json.loads(sys.argv[2])
rng = random.Random(number)
dtype = np.dtype([('a', 'i2'), ('b', 'f8')]) if kind == 'compound' else np.dtype('i1' if kind == 'bytes' else 'f8')
more = {}
if kind == 'gzip': more = dict(compression='gzip', shuffle=True)
if kind == 'fletcher32': more = dict(fletcher32=True)
if kind == 'scaleoffset': dtype, more = np.dtype('i4'), dict(scaleoffset=0)
if kind == 'fill': more = dict(fillvalue=7)
if kind == 'never': more = dict(fillvalue=7, fill_time='never')

def values(shape):
    a = np.array([rng.randrange(100) for _ in range(int(np.prod(shape)))])
    if dtype.names is None:
        return a.reshape(shape).astype(dtype)
    out = np.zeros(shape, dtype)
    out['a'], out['b'] = a.reshape(shape), a.reshape(shape) / 7
    return out

def grown(a, shape):
    b = np.zeros(shape, dtype) if dtype.names else np.full(shape, 7 if kind in ('fill', 'never') else 0, dtype)
    cut = tuple(slice(0, min(n, m)) for n, m in zip(a.shape, shape))
    b[cut] = a[cut]
    return b

at, path, versions = tuple(at), sys.argv[1], []
a = values(shape)
with h5py.File(path, 'w', libver=at) as f:
    f.create_dataset('x', data=a, chunks=tuple(chunks), maxshape=(None,) * len(shape), **more)
    f['other'] = a[:1]
versions.append(a.copy())
for session in range(sessions):
    with h5py.File(path, 'r+', libver=at) as f:
        d = f['x']
        for _ in range(rng.randint(1, 4)):
            do = rng.choice(['point', 'point', 'box', 'grow', 'shrink', 'flush', 'all', 'copy', 'chunk', 'back'])
            if do == 'point':
                place = tuple(rng.randrange(n) for n in a.shape)
                d[place] = a[place] = values((1,))[0]
            elif do == 'box':
                place = tuple(slice(i := rng.randrange(n), i + 1 + rng.randrange(n - i)) for n in a.shape)
                d[place] = a[place] = values(a[place].shape)
            elif do == 'grow':
                axis = rng.randrange(a.ndim)
                size = tuple(n + rng.randint(1, 2 * chunks[axis]) * (i == axis) for i, n in enumerate(a.shape))
                d.resize(size)
                new = grown(a, size)
                if kind == 'never':  # what nobody wrote is anything
                    rest = tuple(slice(a.shape[i] if i == axis else 0, None) for i in range(a.ndim))
                    d[rest] = new[rest] = values(new[rest].shape)
                a = new
            elif do == 'shrink':
                a = a[tuple(slice(0, 1 + rng.randrange(n)) for n in a.shape)].copy()
                d.resize(a.shape)
            elif do == 'flush':
                f.flush()
            elif do == 'all' and rng.random() < .3:
                a = values(a.shape)
                d[...] = a
            elif do == 'copy' and 'copy' not in f:
                f.copy('x', 'copy')
                place = tuple(rng.randrange(n) for n in a.shape)
                f['copy'][place] = values((1,))[0]
                del f['copy']
            elif do == 'chunk' and d.id.get_num_chunks():
                info = d.id.get_chunk_info(rng.randrange(d.id.get_num_chunks()))
                if info.chunk_offset is None:  # it is not in its place yet
                    continue
                mask, raw = d.id.read_direct_chunk(info.chunk_offset)
                assert len(raw) == info.size
                d.id.write_direct_chunk(info.chunk_offset, raw, mask)
            elif do == 'back' and len(versions) > 1:
                old = versions[rng.randrange(len(versions))]
                if old.shape == a.shape:
                    a = old.copy()
                    d[...] = a
        f.attrs['session'] = session
    versions.append(a.copy())
np.savez(path + '.npz', *versions)
"""

# Compares each version with what it is.
LOOK = """
z = np.load(sys.argv[2])
for n, name in enumerate(z.files):
    f = h5py.File(f'{sys.argv[1]}@#{n + 1}' if sys.argv[3] == 'through' else sys.argv[1], 'r')
    at = '/x' if sys.argv[3] == 'through' else f'/_versioned_data/versions/{n + 1}/x'
    assert f[at].shape == z[name].shape, (n + 1, f[at].shape)
    assert f[at][...].tobytes() == z[name].tobytes(), n + 1
    for _ in range(3):
        place = tuple(slice(i := int(np.random.randint(m)), i + 1 + int(np.random.randint(m - i))) for m in z[name].shape)
        assert f[at][place].tobytes() == z[name][place].tobytes(), (n + 1, place)
    f.close()
print('same', len(z.files))
"""


def code(programs, text):
    return programs.code("import numpy as np\n" + text)


def looks_right(programs, path):
    for how in ("through", "without"):
        run = programs.connector if how == "through" else programs.stock
        done = run(sys.executable, "-c", code(programs, LOOK), path, f"{path}.npz", how)
        assert done.returncode == 0 and "same" in done.stdout, (how, done.stderr)
    done = programs.stock(H5COW, "verify", path)
    assert done.returncode == 0, done.stdout + done.stderr


def live(programs, path, shape, chunks, kind, sessions, number, options, at=("earliest", "v110")):
    words = json.dumps([at, shape, chunks, kind, sessions, number])
    done = programs.connector(sys.executable, "-c", code(programs, LIFE), path, words, options=options)
    assert done.returncode == 0, done.stderr


SHAPES = [((300,), (64,)), ((40, 30), (16, 10)), ((12, 7, 9), (5, 3, 4)), ((60, 1, 20), (1, 1, 20)), ((200, 3), (50, 3))]
KINDS = ["plain", "gzip", "fletcher32", "scaleoffset", "fill", "never", "compound", "bytes"]
OPTIONS = ["pieces=16", "pieces=16;cache=0", "pieces=64;threads=1", "pieces=200;compress=gzip:1"]


def cases(count):
    rng = random.Random(seed() ^ 0x9E3779)
    for n in range(count):
        kind = KINDS[n % len(KINDS)]
        at = rng.choice([("earliest", "v110"), ("latest", "latest")])
        yield pytest.param(*rng.choice(SHAPES), kind, rng.randrange(1 << 30), rng.choice(OPTIONS), at, id=f"{kind}-{n}")


@pytest.mark.parametrize("shape, chunks, kind, number, options, at", list(cases(16)))
def test_each_version_is_what_it_was(programs, tmp_path, shape, chunks, kind, number, options, at):
    path = tmp_path / "a.h5"
    live(programs, path, shape, chunks, kind, 12, number, options, at)
    looks_right(programs, path)


def sizes(programs, tmp_path, options, sessions=40):
    path = tmp_path / f"{options.replace('=', '-')}.h5"
    text = """
import os
rng = np.random.default_rng(5)
with h5py.File(sys.argv[1], 'w') as f:
    f.create_dataset('x', data=rng.random(131072), chunks=(8192,), maxshape=(None,))
with h5py.File(sys.argv[1], 'r+') as f:
    f['x'][::8192] = 0  # the head gets all of each chunk beside its pieces, once
size = os.path.getsize(sys.argv[1])
for n in range(int(sys.argv[2])):
    with h5py.File(sys.argv[1], 'r+') as f:
        f['x'][int(rng.integers(131072))] = n
print((os.path.getsize(sys.argv[1]) - size) // int(sys.argv[2]))
"""
    done = programs.connector(sys.executable, "-c", code(programs, text), path, sessions, options=options)
    assert done.returncode == 0, done.stderr
    return int(done.stdout), path


def test_one_value_costs_a_piece_and_not_a_chunk(programs, tmp_path):
    whole, _ = sizes(programs, tmp_path, "pieces=off")
    piece, _ = sizes(programs, tmp_path, "pieces=on")
    assert whole > 65536
    assert piece < 9000


def test_chunks_that_were_filled_by_appends_are_slots_and_one_mapping(programs, tmp_path):
    """One in pieces would be a mapping of its own in every later version. The first one is: it has what the first version wrote as its base."""
    path = tmp_path / "a.h5"
    text = """
with h5py.File(sys.argv[1], 'w') as f:
    f.create_dataset('x', data=np.arange(50.), chunks=(1024,), maxshape=(None,))
for n in range(1, 90):
    with h5py.File(sys.argv[1], 'r+') as f:
        f['x'].resize((50 * n + 50,))
        f['x'][50 * n:] = np.arange(50. * n, 50 * n + 50)
"""
    done = programs.connector(sys.executable, "-c", code(programs, text), path)
    assert done.returncode == 0, done.stderr
    with h5py.File(path) as f:
        for n in range(1, 91):
            x = f[f"_versioned_data/versions/{n}/x"]
            assert (x[...] == np.arange(50.0 * n)).all()
            assert len(x.virtual_sources()) <= 3, (n, x.virtual_sources())
    done = programs.stock(H5COW, "verify", path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_chunk_at_the_end_that_is_changed_everywhere_is_not_pieces_for_ever(programs, tmp_path):
    """It is not full, so its pieces are not counted while they lie in order: here they soon do not."""
    path = tmp_path / "a.h5"
    text = """
rng = np.random.default_rng(int(sys.argv[2]))
with h5py.File(sys.argv[1], 'w') as f:
    f.create_dataset('x', data=rng.random(1024), chunks=(1024,), maxshape=(None,))
for n in range(19):
    with h5py.File(sys.argv[1], 'r+') as f:
        f['x'].resize((1074 + 50 * n,))
        f['x'][1024 + 50 * n:] = rng.random(50)
for n in range(30):
    with h5py.File(sys.argv[1], 'r+') as f:
        f['x'][1024 + int(rng.integers(950))] = n
"""
    done = programs.connector(sys.executable, "-c", code(programs, text), path, seed())
    assert done.returncode == 0, done.stderr
    with h5py.File(path) as f:
        assert [len(f["_versioned_data/slots"][name]) for name in f["_versioned_data/raw"]][0] > 1
        assert (f["_versioned_data/versions/50/x"][...] == f["x"][...]).all()


def test_a_file_without_pieces_gets_them_when_it_is_changed(programs, tmp_path):
    """And one with pieces is written on by programs that want none."""
    path = tmp_path / "a.h5"
    live(programs, path, (300,), (64,), "plain", 4, 1, "pieces=off")
    with np.load(f"{path}.npz") as z:
        versions = [z[name] for name in z.files]
    for options, value in (("pieces=16", 1.5), ("pieces=off", 2.5), ("pieces=64", 3.5), ("pieces=16", 4.5)):
        text = "f = h5py.File(sys.argv[1], 'r+'); f['x'][0] = float(sys.argv[2]); f.close()"
        done = programs.connector(sys.executable, "-c", code(programs, text), path, value, options=options)
        assert done.returncode == 0, done.stderr
        versions.append(versions[-1].copy())
        versions[-1][0] = value
    np.savez(f"{path}.npz", *versions)
    looks_right(programs, path)


def test_what_versions_leave_free_is_found_with_pieces_and_what_they_need_stays(programs, tmp_path):
    path = tmp_path / "a.h5"
    live(programs, path, (2000,), (256,), "plain", 30, seed() % 1000, "pieces=16")
    with np.load(f"{path}.npz") as z:
        versions = [z[name] for name in z.files]
    done = programs.stock(H5COW, "forget", path, "--keep-last=5")
    assert done.returncode == 0, done.stderr
    for words in (["gc"], ["gc", "--compact"]):
        done = programs.stock(H5COW, *words, path)
        assert done.returncode == 0, done.stderr
        with h5py.File(path) as f:
            for name in range(len(versions) - 4, len(versions) + 1):
                there = f[f"_versioned_data/versions/{name}/x"][...]
                assert there.tobytes() == versions[name - 1].tobytes(), (words, name)
        done = programs.stock(H5COW, "verify", path)
        assert done.returncode == 0, done.stdout + done.stderr
        text = "f = h5py.File(sys.argv[1], 'r+'); f['x'][0] = 99; f.close()"
        done = programs.connector(sys.executable, "-c", code(programs, text), path, options="pieces=16")
        assert done.returncode == 0, done.stderr
        done = programs.stock(H5COW, "undo", path)
        assert done.returncode == 0, done.stderr


def test_a_damaged_piece_is_noticed_and_named(programs, tmp_path):
    _, path = sizes(programs, tmp_path, "pieces=on", 3)
    with h5py.File(path) as f:
        pool = max(f["_versioned_data/raw"], key=int)
        info = f[f"_versioned_data/raw/{pool}"].id.get_chunk_info(0)
    with open(path, "r+b") as f:
        f.seek(info.byte_offset)
        byte = f.read(1)[0]
        f.seek(info.byte_offset)
        f.write(bytes([byte ^ 1]))
    text = "h5py.File(sys.argv[1], 'r')['x'][...]"
    done = programs.connector(sys.executable, "-c", code(programs, text), path)
    assert done.returncode != 0 and "piece" in done.stderr, done.stderr
    done = programs.stock(H5COW, "verify", path)
    assert done.returncode != 0 and "/x" in done.stdout + done.stderr, done.stdout + done.stderr


def test_stock_tools_read_versions_with_pieces(programs, tmp_path):
    _, path = sizes(programs, tmp_path, "pieces=on", 2)
    done = programs.run(["h5dump", "-d", "/_versioned_data/versions/3/x", "-s", "0", "-c", "4", path], STOCK)
    assert done.returncode == 0 and "DATA" in done.stdout, done.stderr


def test_a_piece_is_not_what_a_program_encoded_at_great_length(programs, tmp_path):
    """Chunks of the shape of pieces are in the same pool."""
    path = tmp_path / "a.h5"
    text = """
import zlib
v = np.arange(128) * 3.
with h5py.File(sys.argv[1], 'w') as f:
    f.create_dataset('x', data=np.arange(8192.), chunks=(8192,), maxshape=(None,), compression='gzip')
with h5py.File(sys.argv[1], 'r+') as f:
    d = f.create_dataset('d', shape=(128,), chunks=(128,), maxshape=(None,), dtype='f8', compression='gzip')
    d.id.write_direct_chunk((0,), zlib.compress(v.tobytes()) + bytes(200000))
with h5py.File(sys.argv[1], 'r+') as f:
    f['x'][128:256] = v
with h5py.File(sys.argv[1]) as f:
    assert (f['x'][128:256] == v).all() and (f['d'][:] == v).all()
"""
    done = programs.connector(sys.executable, "-c", code(programs, text), path)
    assert done.returncode == 0, done.stderr
    with h5py.File(path) as f:
        assert (f["x"][128:256] == np.arange(128) * 3.0).all()
        shapes = [raw.chunks for raw in f["_versioned_data/raw"].values()]
        assert shapes == [(8192,), (128,)], "one pool of both, or this tests nothing"
    done = programs.stock(H5COW, "verify", path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("rank", [31, 32])
def test_stock_hdf5_reads_the_highest_ranks(programs, tmp_path, rank):
    """HDF5 cannot take parts of chunks of rank 32 into a virtual dataset: there chunks stay whole."""
    path = tmp_path / "a.h5"
    text = """
rank = int(sys.argv[2])
shape, chunks = (2,) * 12 + (1,) * (rank - 12), (2,) * 10 + (1,) * (rank - 10)
a = np.arange(4096, dtype='i2').reshape(shape)
with h5py.File(sys.argv[1], 'w') as f:
    f.create_dataset('x', data=a, chunks=chunks)
for n in range(2):
    with h5py.File(sys.argv[1], 'r+') as f:
        f['x'][(n,) * 12 + (0,) * (rank - 12)] = -1 - n
"""
    look = """
rank = int(sys.argv[2])
with h5py.File(sys.argv[1]) as f:
    for n in range(3):
        a = np.arange(4096, dtype='i2')
        if n > 0:
            a[0] = -1
        if n > 1:
            a[4095] = -2
        assert (f[f'_versioned_data/versions/{n + 1}/x'][...].ravel() == a).all(), n
"""
    done = programs.connector(sys.executable, "-c", code(programs, text), path, rank, options="pieces=16")
    assert done.returncode == 0, done.stderr
    done = programs.stock(sys.executable, "-c", code(programs, look), path, rank)
    assert done.returncode == 0, (done.returncode, done.stderr)
    with h5py.File(path) as f:
        assert len(f["_versioned_data/raw"]) == (2 if rank < 32 else 1)  # the second pool has pieces
