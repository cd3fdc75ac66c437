"""Files whose types are in encodings that the bounds of a later session (H5Pset_libver_bounds) end before: every verb, and the
options that go on with a file, work on them as on others, and no version lacks anything. All pairs of bounds: test_bounds.c.
"""

import json
import sys

import pytest
from conftest import h5cow

# A compound with an array, an enum and text, in all kinds of places; with 'latest' it is in the encoding of 1.12.
MAKE = """
t = np.dtype([('a', 'i4'), ('v', 'f4', (3,)), ('e', h5py.enum_dtype({'A': 0, 'B': 1}, basetype='i2'))])
with h5py.File(sys.argv[1], 'w', libver='latest') as f:
    f.create_dataset('chunked', data=np.zeros(5000, t), chunks=(100,), maxshape=(None,))
    f['tiny'], f['large'], f['type'] = np.zeros(2, t), np.zeros(1000, t), t
    f['named'] = f.create_dataset('of the type', data=np.zeros(500, t), dtype=f['type'])
    f['z'] = np.arange(5000)
    for o in (f, f['z'], f.create_group('g', track_order=True)):
        o.attrs['c'] = np.zeros(2, t)
        for i in range(9):
            o.attrs.create(f'e{i}', i % 2, dtype=h5py.enum_dtype({'A': 0, 'B': 1}, basetype='i2'))
"""
CHANGE = """
with h5py.File(sys.argv[1], 'r+', libver=('earliest', sys.argv[2])) as f:
    one = np.zeros(1, f['tiny'].dtype)
    one['a'], one['v'] = 1, 2
    for name in ('chunked', 'tiny', 'large', 'of the type'):
        f[name][1] = one[0]
    f['chunked'].resize((5100,))
    f['z'][3] = 99
    f.attrs['new'], f['z'].attrs['new'], f['g'].attrs['new'], f['g/new'] = 1, 2, 3, np.arange(2000)
    f.move('large', 'moved')
    del f['named']
"""
# No names of the native datasets that a version is made of; text and references are none here.
STATE = """
def show(name, o):
    print(name, o.shape, o.dtype, o[()].tobytes().hex()) if isinstance(o, h5py.Dataset) else print(name)
    for n in sorted(o.attrs):
        print(' ', n, o.attrs[n].tolist())
with h5py.File(sys.argv[1], 'r') as f:
    print(sorted((n, f.attrs[n].tolist()) for n in f.attrs))
    f.visititems(show)
"""
BOUNDS = ["v108", "v110"]


def done(process):
    assert process.returncode == 0, process.stderr
    return process.stdout


def stock(programs, code, *arguments):
    return done(programs.stock(sys.executable, "-c", programs.code(code), *arguments))


def cow(programs, code, *arguments, options=""):
    return done(programs.python(code, *arguments, options=options))


@pytest.fixture
def native(programs, tmp_path):
    """The states of a plain file, after MAKE and after CHANGE."""
    path = tmp_path / "native.h5"
    stock(programs, MAKE, path)
    states = [stock(programs, STATE, path)]
    stock(programs, CHANGE, path, "v110")
    return [*states, stock(programs, STATE, path)]


def whole(programs, path, states):
    """The versions of PATH are STATES; none lacks anything, nothing is damaged, and HDF5 alone reads the newest."""
    for version in json.loads(h5cow("log", "--json", path)):
        assert not version["incomplete"]
    programs.verified(path)
    for number, state in enumerate(states, 1):
        assert cow(programs, STATE, f"{path}@{number}") == state, number
    assert cow(programs, STATE, path) == states[-1]


@pytest.mark.parametrize("high", BOUNDS)
def test_a_session_within_older_bounds(programs, tmp_path, native, high):
    path = tmp_path / "cow.h5"
    cow(programs, MAKE, path)
    cow(programs, CHANGE, path, high)
    whole(programs, path, native)


def test_bounds_and_adopting(programs, tmp_path, native):
    path = tmp_path / "adopted.h5"
    stock(programs, MAKE, path)
    cow(programs, CHANGE, path, "v110", options="adopt=yes")
    whole(programs, path, native)


def test_bounds_and_what_makes_files_of_files(programs, tmp_path, native):
    """import, export, recover, cp and gc --compact."""
    plain, path, out = tmp_path / "plain.h5", tmp_path / "imported.h5", tmp_path / "out.h5"
    stock(programs, MAKE, plain)
    h5cow("import", plain, path)
    cow(programs, CHANGE, path, "v110")
    whole(programs, path, native)
    for number in (1, 2):
        h5cow("export", f"{path}@{number}", out)
        assert stock(programs, STATE, out) == native[number - 1]
        out.unlink()
    h5cow("recover", path, out)
    whole(programs, out, native)
    h5cow("gc", "--compact", path)
    whole(programs, path, native)


def test_bounds_and_going_back(programs, tmp_path, native):
    """restore and undo make again what is older, and a later session within the bounds goes on."""
    path = tmp_path / "cow.h5"
    cow(programs, MAKE, path)
    cow(programs, CHANGE, path, "v110")
    h5cow("restore", f"{path}@1")
    whole(programs, path, [*native, native[0]])
    cow(programs, CHANGE, path, "v110")
    whole(programs, path, [*native, *native])
    h5cow("undo", path)
    whole(programs, path, [*native, *native, native[0]])
    h5cow("forget", path, "1")
    cow(programs, CHANGE, path, "v110")
    h5cow("gc", path)
    programs.verified(path)
    assert cow(programs, STATE, f"{path}@6") == native[1] and cow(programs, STATE, path) == native[1]
