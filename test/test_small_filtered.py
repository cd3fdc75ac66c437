"""Datasets that are so small that HDF5 keeps them itself, with filters that HDF5 may not have: nothing of them is lost, and nothing is taken
for damage."""

import json
import sys

import pytest

from conftest import h5cow

LZF = """
import h5py, numpy as np
with h5py.File('a.h5', 'w') as f:
    f.create_dataset('x', data=np.arange(50.), compression='lzf')
    f.create_dataset('names', data=['a%d' % i for i in range(100)], dtype=h5py.string_dtype(), compression='lzf')
"""
BLOSC = """
import numpy, tables
with tables.open_file('a.h5', 'w') as f:
    f.create_carray('/', 'x', obj=numpy.arange(50.), chunkshape=(50,), filters=tables.Filters(5, 'blosc'))
    f.create_carray('/', 'names', obj=numpy.char.mod('a%d', numpy.arange(100)).astype('S4'), chunkshape=(30,), filters=tables.Filters(9, 'blosc:zlib', shuffle=False))
"""
UNKNOWN = """
import h5py
with h5py.File('a.h5', 'w') as f:
    p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    p.set_chunk((50,))
    p.set_filter(32099, h5py.h5z.FLAG_OPTIONAL, (3,))
    h5py.h5d.create(f.id, b'x', h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((50,)), p).write_direct_chunk((0,), b'encoded')
"""
CHANGE = """
import h5py
with h5py.File('a.h5', 'r+') as f:
    f['x'].attrs['unit'] = 'm'
"""
# In a process that has none of these filters.
STORED = """
import h5py, sys
h5py.h5z.unregister_filter(32000)
with h5py.File('a.h5') as f:
    for name in sys.argv[1:]:
        print(f[name].id.read_direct_chunk((0,)), dict(f[name].attrs))
"""


@pytest.fixture
def here(programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(text, *more, connector=True):
        done = programs.python(text, *more) if connector else programs.stock(sys.executable, "-c", text, *more)
        assert done.returncode == 0, done.stderr
        return done

    return run


@pytest.mark.parametrize("make", [LZF, BLOSC], ids=["lzf", "blosc"])
def test_the_command_reads_them(programs, here, make):
    if make is BLOSC:
        pytest.importorskip("tables")
    here(make)
    here(CHANGE)
    programs.verified("a.h5")
    assert json.loads(h5cow("log", "--json", "a.h5"))[0]["incomplete"] == []
    whole = h5cow("hash", "a.h5").split()[0]
    h5cow("recover", "a.h5", "b.h5")
    h5cow("export", "a.h5", "c.h5")
    h5cow("import", "c.h5", "d.h5")
    assert [h5cow("hash", name).split()[0] for name in ("b.h5", "c.h5", "d.h5")] == [whole] * 3
    h5cow("diff", "a.h5", "c.h5")
    h5cow("restore", "a.h5@1")
    h5cow("gc", "--compact", "a.h5")
    h5cow("cp", "a.h5:/x", "a.h5:/y")
    programs.verified("a.h5")


@pytest.mark.parametrize("make", [LZF, UNKNOWN], ids=["lzf", "unknown"])
def test_a_version_has_them_where_the_filter_is_missing(programs, here, make):
    here(make)
    done = here("import h5py\nh5py.h5z.unregister_filter(32000)\n" + CHANGE)
    assert done.stderr == ""
    first, head, second = here(STORED, "_versioned_data/versions/1/x", "x", "_versioned_data/versions/2/x", connector=False).stdout.splitlines()
    assert head == second and head.startswith(first.partition(" {")[0]) and "unit" in head and "unit" not in first
