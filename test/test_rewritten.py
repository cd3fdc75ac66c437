"""What the command says of change where programs write everything again: mode 'w', or delete and create.

What must differ is known from the values that are written, and from plain twins of the versions by HDF5's own means.
"""

import json

import h5py
import numpy as np
import pytest
from conftest import STOCK, h5cow

netcdf = pytest.mark.skipif(__import__("importlib").util.find_spec("netCDF4") is None, reason="no netCDF4")

REFERENCES = """
from h5py import h5r
k = int(sys.argv[2])
with h5py.File(sys.argv[1], 'w') as f:
    f.create_group('pad%d' % k)  # other addresses each time
    f['x'] = np.arange(3000.)
    f['g/y'] = np.arange(3000).reshape(30, 100)
    f['z'] = np.arange(4)
    f['second/name'] = f['g/y']
    to = 'zxz'[k] if k < 3 else 'z'
    f.attrs['object'] = f['x'].ref
    f.attrs['region'] = f['g/y'].regionref[2:5, 3]
    f.attrs['moved'] = f[to].ref
    f['objects'] = np.array([f['x'].ref, f['g'].ref, f['second/name'].ref, f[to].ref], dtype=h5py.ref_dtype)
    f['regions'] = np.array([f['g/y'].regionref[1, :], f['x'].regionref[k:9]], dtype=h5py.regionref_dtype)
"""


def told(*words, code):
    return {o["path"]: o for o in json.loads(h5cow("diff", "--json", *words, code=code))["objects"]}


def test_references_are_equal_when_they_lead_to_the_same_path(programs, tmp_path):
    path = tmp_path / "a.h5"
    for k in range(3):
        done = programs.python(REFERENCES, path, k)
        assert done.returncode == 0, done.stderr
    for k in range(2):
        found = told(f"{path}@{k + 1}", f"{path}@{k + 2}", code=1)
        assert set(found) == {f"/pad{k}", f"/pad{k + 1}", "/", "/objects", "/regions"}
        assert [a["name"] for a in found["/"]["attributes"]] == ["moved"]
        assert [found[p]["elements"]["changed"] for p in ("/objects", "/regions")] == [1, 1]
    # the two ends are the same but for what differs on purpose, in one file and in plain ones
    for k in (1, 3):
        h5cow("export", f"{path}@{k}", tmp_path / f"{k}.h5")
    for words in ((f"{path}@1", f"{path}@3"), (tmp_path / "1.h5", tmp_path / "3.h5")):
        assert set(told(*words, code=1)) == {"/pad0", "/pad2", "/regions"}


def test_references_to_an_object_of_two_names(tmp_path):
    for name, order in (("a", ("aa", "zz")), ("b", ("zz", "aa")), ("c", ("zz", "aa"))):
        with h5py.File(tmp_path / f"{name}.h5", "w", libver="latest") as f:
            for group in order:
                f.create_group(group)
            f["zz/o"] = np.arange(3000)
            f["aa/o"] = f["zz/o"]
            f["loop"] = f["/"]
            f["aa/other"] = np.arange(3000)
            f.attrs["r"] = f["aa/other" if name == "c" else "zz/o"].ref
            f.attrs["g"] = f["zz/o"].regionref[5:9]
    assert h5cow("diff", tmp_path / "a.h5", tmp_path / "b.h5") == ""
    assert [a["name"] for a in told(tmp_path / "a.h5", tmp_path / "c.h5", code=1)["/"]["attributes"]] == ["r"]


@netcdf
def test_dimension_scales_of_netcdf_written_again(programs, tmp_path):
    code = """
import netCDF4
for k in range(2):
    with netCDF4.Dataset(sys.argv[1], 'w') as f:
        f.createDimension('x', 50); f.createDimension('t', None)
        f.createVariable('x', 'f8', ('x',))[:] = np.arange(50.)
        f.createVariable('v', 'f8', ('t', 'x'))[0:3] = np.arange(150.).reshape(3, 50)
"""
    done = programs.python(code, tmp_path / "a.nc")
    assert done.returncode == 0, done.stderr
    assert len({h5cow("hash", f"{tmp_path}/a.nc@{v}").split()[0] for v in (1, 2)}) == 1
    assert h5cow("diff", f"{tmp_path}/a.nc@1", f"{tmp_path}/a.nc@2") == ""
