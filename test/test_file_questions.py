"""What programs ask about a file beside its objects: images of the metadata cache, free space."""

import sys

import h5py
import pytest

# h5py has no call for these.
CALLS = """
import ctypes
class Image(ctypes.Structure):
    _fields_ = [('version', ctypes.c_int), ('made', ctypes.c_bool), ('status', ctypes.c_bool), ('ageout', ctypes.c_int)]
lib = ctypes.CDLL(next(l.split()[-1] for l in open('/proc/self/maps') if '/libhdf5.so' in l or '/libhdf5_serial.so' in l))
def access(made):
    fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    fapl.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    fapl.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_LATEST)
    assert lib.H5Pset_mdc_image_config(ctypes.c_int64(fapl.id), ctypes.byref(Image(1, made, False, -1))) >= 0
    return fapl
def told(f):
    fapl, image = f.id.get_access_plist(), Image(1)
    assert lib.H5Pget_mdc_image_config(ctypes.c_int64(fapl.id), ctypes.byref(image)) >= 0
    return image.made, image.status, image.ageout
def stored(f):
    address, size = ctypes.c_uint64(), ctypes.c_uint64()
    assert lib.H5Fget_mdc_image_info(ctypes.c_int64(f.id.id), ctypes.byref(address), ctypes.byref(size)) >= 0
    return size.value > 0
"""
SESSIONS = """
with h5py.File(h5py.h5f.create(sys.argv[1].encode(), h5py.h5f.ACC_TRUNC, fapl=access(True))) as f:
    print(told(f))
    f['x'] = np.arange(5000)
    with h5py.File(h5py.h5f.open(sys.argv[1].encode(), h5py.h5f.ACC_RDWR, access(True))) as again:
        print(told(again))
for n in range(2):
    with h5py.File(h5py.h5f.open(sys.argv[1].encode(), h5py.h5f.ACC_RDWR, access(n == 0))) as f:
        print(told(f))
        f.attrs[f'a{n}'] = n
with h5py.File(h5py.h5f.open(sys.argv[1].encode(), h5py.h5f.ACC_RDWR, access(True))) as f:
    print(told(f))
    f['y'] = f['x'][::2]
"""


def done(process):
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.skipif(h5py.version.hdf5_version_tuple >= (2,), reason="HDF5 2 cannot open native files with images")
def test_no_image_of_the_metadata_cache_is_made(programs, tmp_path):
    native, cow = tmp_path / "native.h5", tmp_path / "cow.h5"
    made = CALLS + "with h5py.File(sys.argv[1], 'r') as f: print(stored(f), sorted(f), sorted(f.attrs))"

    def stock(code, path):
        return done(programs.stock(sys.executable, "-c", programs.code(code), path))

    answers = stock(CALLS + SESSIONS, native)
    assert answers.split("\n")[0] == "(True, False, -1)"
    assert done(programs.python(CALLS + SESSIONS, cow)) == answers, "what the program asked for"
    assert stock(made, native).startswith("True"), "HDF5 alone makes one"
    assert stock(made, cow).startswith("False")
    assert done(programs.python(made, cow)).split(" ", 1)[1] == stock(made, native).split(" ", 1)[1]
    programs.verified(cow)


FREE = """
with h5py.File(sys.argv[1], 'w') as f:
    f['x'] = 5
    f.create_dataset('y', data=np.arange(5000), chunks=(500,), compression='gzip')
    del f['x'], f['y']
    print(f.id.get_freespace() > 0)
"""


def test_what_was_made_and_deleted_in_one_session_is_free(programs, tmp_path):
    native = done(programs.stock(sys.executable, "-c", programs.code(FREE), tmp_path / "native.h5"))
    assert done(programs.python(FREE, tmp_path / "cow.h5")) == native
