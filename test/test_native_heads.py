"""Heads that HDF5 reads by itself (H5COW_HEADS=native): every kind of dataset, and what verify says of damaged ones."""

import re
import sys

import conftest
import h5py
import pytest

SIGN = b"h5cowhd1"  # at the end of the root of a head's index, docs/format.md


@pytest.fixture(autouse=True)
def native_heads(monkeypatch):
    monkeypatch.setitem(conftest.STOCK, "H5COW_HEADS", "native")


# Each is created, changed, and changed again, natively and through h5cow.
KINDS = {
    "numbers": ("f.create_dataset('d', data=np.arange(20000), chunks=(3000,))", "f['d'][7] = -1", "f['d'][6000:9000] = 5"),
    "contiguous": ("f['d'] = np.arange(90000.).reshape(300, 300)", "f['d'][5, 5] = -1", "f['d'][...] = 2"),
    "gzip": (
        "f.create_dataset('d', data=np.arange(30000.).reshape(300, 100), chunks=(70, 30), compression='gzip', shuffle=True, fletcher32=True)",
        "f['d'][99, 99] = 0",
        "f['d'][:70] = 1",
    ),
    "big-endian floats": ("f.create_dataset('d', data=np.arange(9000, dtype='>f4'), chunks=(500,))", "f['d'][0] = 3", "f['d'][1] = 4"),
    "texts": (
        "f.create_dataset('d', data=['a', 'bb', 'ccc'] * 2000, dtype=h5py.string_dtype(), chunks=(700,))",
        "f['d'][2] = 'changed'",
        "f['d'][5999] = ''",
    ),
    "sequences": (
        "d = f.create_dataset('d', (3000,), dtype=h5py.vlen_dtype('i4'), chunks=(300,)); d[5] = [1, 2, 3]",
        "f['d'][5] = [9]",
        "f['d'][2999] = [7, 7]",
    ),
    "compounds": (
        "f.create_dataset('d', data=np.zeros(9000, dtype=[('a', 'i4'), ('b', 'f8', (3,)), ('s', 'S5')]), chunks=(400,))",
        "f['d'][1] = (1, (1, 2, 3), b'q')",
        "f['d'][8999] = (2, (4, 5, 6), b'rs')",
    ),
    "compounds with texts": (
        "f['d'] = np.array([('x' * (k % 7), k) for k in range(5000)], dtype=[('t', h5py.string_dtype()), ('k', 'i8')])",
        "f['d'][3] = ('y', -3)",
        "f['d'][4999] = ('z', -4)",
    ),
    "texts with a fill value": (
        "f.create_dataset('d', data=['a', ''] * 3000, dtype=h5py.string_dtype(), chunks=(700,), fillvalue=''); f.create_dataset('e', data=['b'], dtype=h5py.string_dtype(), maxshape=(None,), fillvalue='none')",
        "f['d'][2] = 'changed'; f.create_dataset('c', data=['c'], dtype=h5py.string_dtype(), maxshape=(None,), fillvalue='none'); f['e'].resize((2,)); f['e'].attrs['a'] = 'text'",
        "f['d'][5999] = 'b'; f['e'][1] = 'f'; del f['c']",
    ),
    "allocated early": (
        "p = h5py.h5p.create(h5py.h5p.DATASET_CREATE); p.set_chunk((700,)); p.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY);"
        "s = h5py.h5s.create_simple((6000,), (h5py.h5s.UNLIMITED,)); h5py.h5d.create(f.id, b'd', h5py.h5t.NATIVE_INT16, s, p)",
        "f['d'][2] = 7; f['d'].resize((9000,))",
        "f['d'].resize((4000,)); f['d'].resize((5000,)); f['d'][3900] = 1",
    ),
    "enumerations": (
        "f.create_dataset('d', data=np.zeros(90000, 'i1'), dtype=h5py.enum_dtype({'A': 0, 'B': 1}, 'i1'), chunks=(4000,))",
        "f['d'][3] = 1",
        "f['d'][80000:] = 1",
    ),
    "named types": (
        "f['t'] = np.dtype([('a', 'i4'), ('b', 'f8')]); f.create_dataset('d', (9000,), dtype=f['t'], chunks=(400,)); f.create_dataset('e', (9000,), dtype=f['t'])",
        "f['d'][1] = (1, 2); f['e'][:] = (3, 4); f.create_dataset('g', (9000,), dtype=f['t'])",
        "f['d'][8999] = (2, 4); del f['e']",
    ),
    "fill value, order, resized": (
        "d = f.create_dataset('d', (9000,), dtype='f4', chunks=(400,), fillvalue=7, maxshape=(None,), track_order=True); d.attrs['x'] = 1; d[0] = 1",
        "f['d'].resize((12000,)); f['d'][11000] = 3",
        "f['d'].resize((500,)); f['d'].resize((2000,)); f['d'].attrs['y'] = 2",
    ),
}


# Where HDF5 gives room otherwise: options of h5py.File, those of each opening last.
FILES = {
    "plain": ("", ""),
    "user block": (", userblock_size=1024", ""),
    "pages": (", fs_strategy='page'", ""),
    "small pages": (", fs_strategy='page', fs_page_size=512", ""),  # HDF5 1.14.5 alone does not come back where it keeps free space as well
    "keeps free space": (", fs_strategy='fsm', fs_persist=True", ""),
    "aligned": ("", ", alignment_threshold=1, alignment_interval=2048"),
}


def told(path, chunks=False, **options):
    """All that HDF5 alone tells of the dataset but where it is."""
    with h5py.File(path, **options) as f:
        d = f["d"]
        assert not d.is_virtual
        stored = sorted((c.chunk_offset, c.filter_mask) for c in map(d.id.get_chunk_info, range(d.id.get_num_chunks()))) if d.chunks else None
        values = repr(d[...].ravel().tolist())
        named = d.id.get_type().committed(), [(name, f[name].fillvalue, f[name].attrs.get("a")) for name in "ceg" if name in f]
        return named, str(d.dtype), d.shape, d.maxshape, str(d.fillvalue), sorted(d.attrs), values, stored if chunks else d.chunks


@pytest.mark.parametrize("kind", KINDS)
def test_hdf5_alone_reads_what_was_written(programs, tmp_path, kind):
    is_read(programs, tmp_path, kind, "plain")


@pytest.mark.parametrize("file", list(FILES)[1:])
@pytest.mark.parametrize("kind", KINDS)
def test_hdf5_alone_reads_files_of_other_kinds(programs, tmp_path, kind, file):
    is_read(programs, tmp_path, kind, file)


def is_read(programs, tmp_path, kind, file):
    plain, path = tmp_path / "plain.h5", tmp_path / "a.h5"
    made, opened = FILES[file]
    for options, text in zip((f"'w'{made}", "'r+'", "'r+'"), KINDS[kind]):
        code = f"f = h5py.File(sys.argv[1], {options}{opened})\n{text}\nf.close()"
        assert programs.stock(sys.executable, "-c", programs.code(code), plain).returncode == 0
        done = programs.python(code, path)
        assert done.returncode == 0, done.stderr
        expected, found = told(plain), told(path)
        assert found[:-1] == expected[:-1]
        if "page" in file:
            assert told(path, page_buf_size=1 << 16) == found
        assert kind in ("contiguous", "compounds with texts") or (found[-1] == expected[-1] and told(path, chunks=1)[-1] == told(plain, chunks=1)[-1])
        programs.verified(path)


def test_copies_are_such_heads_as_well(programs, tmp_path):
    plain, path = tmp_path / "plain.h5", tmp_path / "a.h5"
    sessions = (
        "'w'", "f.create_dataset('g/d', data=np.arange(20000.), chunks=(500,), compression='gzip', maxshape=(None,)); f['g/d'].attrs['u'] = 'm';"
               "f.create_dataset('g/s', data=[f'x{k}' for k in range(5000)], chunks=(300,)); f['d'] = h5py.SoftLink('/c/d')",
        "'r+'", "f['g/d'][7] = -1; f.copy('g', 'c'); f.copy('g/s', 's')",
        "'r+'", "f['c/d'][8] = -2; f['g/d'].resize((100,)); f['s'][0] = 'changed'",
        "'r+'", "del f['g']; f['c/d'][7000:] = 1",
    )
    for options, text in zip(sessions[::2], sessions[1::2]):
        code = f"f = h5py.File(sys.argv[1], {options})\n{text}\nf.close()"
        assert programs.stock(sys.executable, "-c", programs.code(code), plain).returncode == 0
        done = programs.python(code, path, options="pieces=16")
        assert done.returncode == 0, done.stderr
        with h5py.File(plain) as f, h5py.File(path) as g:
            for name in ("c/d", "c/s", "s", "g/d", "g/s"):
                assert (name in f) == (name in g)
                if name in f:
                    assert not g[name].is_virtual and f[name][...].tolist() == g[name][...].tolist() and dict(f[name].attrs) == dict(g[name].attrs)
        programs.verified(path)


MAKE = """
with h5py.File(sys.argv[1], 'w') as f:
    f.create_dataset('d', data=np.arange(40000.), chunks=(4000,))
with h5py.File(sys.argv[1], 'r+') as f:
    f['d'][5] = -1  # a delta chunk: the head has the whole of it
"""
ENTRY = 8 + 8 * 2 + 8  # of a tree of rank 1: key and address


@pytest.fixture
def made(programs, tmp_path):
    """A file with such a head, its bytes, and where the root of its index is."""
    path = tmp_path / "a.h5"
    done = programs.python(MAKE, path, options="pieces=16")
    assert done.returncode == 0, done.stderr
    data = bytearray(path.read_bytes())
    size = 24 + 64 * ENTRY + 24  # K is 32
    roots = [m.start() + 20 - size for m in re.finditer(SIGN, data)]
    assert len(roots) == 1 and data[roots[0] : roots[0] + 4] == b"TREE"
    assert int.from_bytes(data[roots[0] + 6 : roots[0] + 8], "little") == 10
    return path, data, roots[0], size


def address_of(data, root, i):
    at = root + 24 + i * ENTRY + 24
    return at, int.from_bytes(data[at : at + 8], "little")


def other_address(data, root, size):
    at, address = address_of(data, root, 3)
    data[at : at + 8] = (address + 8).to_bytes(8, "little")


def two_of_one(data, root, size):
    (at, _), (_, other) = address_of(data, root, 3), address_of(data, root, 4)
    data[at : at + 8] = other.to_bytes(8, "little")


def one_less(data, root, size):
    data[root + 6] -= 1


def keys_out_of_order(data, root, size):
    data[root + 24 + 8 + 2 * ENTRY : root + 24 + 16 + 2 * ENTRY] = (36000).to_bytes(8, "little")


def other_owner(data, root, size):
    data[root + size - 12] ^= 1


def sign_gone(data, root, size):
    data[root + size - 20] ^= 1


def whole_changed(data, root, size):
    _, address = address_of(data, root, 0)
    assert data[address - 24 : address - 16] == b"h5cowwh1"
    data[address + 100] ^= 1


def itself_below(data, root, size):
    at, _ = address_of(data, root, 0)
    data[root + 5] = 1  # its level
    data[at : at + 8] = root.to_bytes(8, "little")


DAMAGES = [other_address, two_of_one, one_less, keys_out_of_order, other_owner, sign_gone, whole_changed, itself_below]


@pytest.mark.parametrize("damage", DAMAGES)
def test_verify_says_what_does_not_lead_to_the_newest_version(programs, made, damage):
    path, data, root, size = made
    programs.verified(path)
    damage(data, root, size)
    path.write_bytes(data)
    done = programs.cow("verify", path)
    assert done.returncode == 1 and "/d" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("damage", [other_owner, sign_gone])
def test_nobody_takes_a_damaged_head_for_a_plain_dataset(programs, made, damage):
    """HDF5 would write over slots that versions name, and free them."""
    path, data, root, size = made
    damage(data, root, size)
    path.write_bytes(data)
    before = versions(path)
    done = programs.python("f = h5py.File(sys.argv[1], 'r+'); f['d'][0] = 5", path)
    assert done.returncode == 1 and "damaged" in done.stderr, done.stdout + done.stderr
    assert versions(path) == before
    programs.python("f = h5py.File(sys.argv[1], 'r+'); del f['d']; f['e'] = np.arange(9000.); f.close()", path)
    assert {name: versions(path)[name] for name in before} == before


def versions(path):
    with h5py.File(path) as f:
        return {name: version["d"][...].tolist() for name, version in f["_versioned_data/versions"].items() if "d" in version}
