"""References to objects that no link leads to: those that were deleted in an earlier session, whose bytes HDF5 still opens."""

import ctypes
import json
import os
import shutil

import h5py
import numpy as np
import pytest
from conftest import h5cow
from test_import import hid, library, refused

FORMS = ("earliest", "latest")
PAIR = np.dtype([("n", "i4"), ("o", h5py.ref_dtype), ("r", h5py.regionref_dtype)])


def new_references(f, names):
    """A dataset and an attribute of H5T_STD_REF: two objects, a region, an attribute of the first, a null."""
    lib = library()
    std_ref = ctypes.c_int64.in_dll(lib, "H5T_STD_REF_g")
    refs = (ctypes.c_uint8 * 64 * 5)()
    at = [ctypes.byref(refs, 64 * i) for i in range(5)]
    file, space = hid(f.id.id), hid(lib.H5Screate_simple(1, (ctypes.c_uint64 * 1)(5), None))
    region = f[names[0]].id.get_space()
    region.select_hyperslab((1,), (3,))
    for i, name in enumerate(names):
        assert lib.H5Rcreate_object(file, name.encode(), hid(0), at[i]) >= 0
    assert lib.H5Rcreate_region(file, names[0].encode(), hid(region.id), hid(0), at[2]) >= 0
    assert lib.H5Rcreate_attr(file, names[0].encode(), b"a", hid(0), at[3]) >= 0
    dataset = hid(lib.H5Dcreate2(file, b"new", std_ref, space, hid(0), hid(0), hid(0)))
    attribute = hid(lib.H5Acreate2(dataset, b"new", std_ref, space, hid(0), hid(0)))
    assert lib.H5Dwrite(dataset, std_ref, hid(0), hid(0), hid(0), refs) >= 0
    assert lib.H5Awrite(attribute, std_ref, refs) >= 0
    for reference in at[:4]:
        lib.H5Rdestroy(reference)
    lib.H5Aclose(attribute)
    lib.H5Dclose(dataset)
    lib.H5Sclose(space)


def fill(f):
    """References of each kind in each place, to g and what is in it, and to y."""
    f["y"], f["g/x"], f["g/t"] = np.arange(50.0), np.arange(100.0), np.dtype("f8")
    x, y = f["g/x"], f["y"]
    x.attrs["a"] = 3
    ends = [x.ref, y.ref, f["g"].ref, f["g/t"].ref]
    regions = [x.regionref[1:4], y.regionref[2:5]]
    f.create_dataset("objects", data=ends, dtype=h5py.ref_dtype)
    f.create_dataset("chunks", data=ends, dtype=h5py.ref_dtype, chunks=(1,), maxshape=(None,))
    f.create_dataset("regions", data=regions, dtype=h5py.regionref_dtype)
    pairs = np.array([(1, x.ref, regions[0]), (2, y.ref, regions[1])], PAIR)
    f.create_dataset("pairs", data=pairs, dtype=PAIR)
    lists = f.create_dataset("lists", (2,), h5py.vlen_dtype(h5py.ref_dtype))
    lists[0], lists[1] = np.array(ends, dtype=h5py.ref_dtype), np.array([y.ref], dtype=h5py.ref_dtype)
    y.attrs["object"], y.attrs["region"] = x.ref, regions[0]
    y.attrs.create("objects", ends, dtype=h5py.ref_dtype)
    y.attrs.create("pairs", pairs, dtype=PAIR)
    new_references(f, ["g/x", "y"])


LOOK = """
def to(r):
    if not isinstance(r, h5py.Reference):
        return [to(i) for i in r] if hasattr(r, '__len__') else str(r)
    try:
        return f[r].name if r else None
    except KeyError:  # of an object that was deleted, where that is known
        return None
with h5py.File(sys.argv[1], 'r') as f:
    seen = {n: to(f[n][()]) for n in ('objects', 'chunks', 'regions', 'pairs', 'lists')}
    seen.update({'@' + n: to(f['y'].attrs[n]) for n in ('object', 'region', 'objects', 'pairs')})
    seen['selected'] = str(f['y'].regionref.selection(f['regions'][1]))
import json
print(json.dumps(seen))
"""


def seen(programs, path, native=False):
    done = programs.stock("python3", "-c", programs.code(LOOK), path) if native else programs.python(LOOK, path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module", params=FORMS)
def plain(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("unlinked") / "plain.h5"
    with h5py.File(path, "w", libver=request.param) as f:
        fill(f)
    with h5py.File(path, "a", libver=request.param) as f:
        assert f[f["objects"][0]].name == "/g/x"
        del f["g"]
    return path


PLACES = ("the dataset '/objects' (3)", "the dataset '/chunks' (3)", "the dataset '/regions' (1)", "the dataset '/pairs' (2)",
          "the dataset '/lists' (3)", "the dataset '/new' (3)", "the attribute 'new' of '/new' (3)", "the attribute 'object' of '/y' (1)",
          "the attribute 'region' of '/y' (1)", "the attribute 'objects' of '/y' (3)", "the attribute 'pairs' of '/y' (2)")


def test_the_rest_of_a_file_with_references_to_deleted_objects_is_imported(plain, programs, tmp_path, sha256):
    before, natively = sha256(plain), seen(programs, plain, native=True)
    done = programs.cow("import", plain, tmp_path / "c.h5")
    assert done.returncode == 0, done.stderr
    assert sha256(plain) == before
    assert "25 references pointed to objects that no link leads to" in done.stderr and len(done.stderr.splitlines()) == 1
    assert all(place in done.stderr for place in PLACES), done.stderr
    # what h5py gives no name natively is null; what has a name has the same
    assert natively["objects"] == [None, "/y", None, None] and natively["@pairs"] == [["1", None, None], ["2", "/y", "/y"]]
    assert seen(programs, tmp_path / "c.h5") == natively
    programs.verified(tmp_path / "c.h5")
    h5cow("export", tmp_path / "c.h5", tmp_path / "e.h5")
    assert seen(programs, tmp_path / "e.h5", native=True) == natively
    dumped = programs.stock("h5dump", "-d", "/new", tmp_path / "e.h5").stdout
    assert dumped.count("NULL") == 8 and dumped.count("/y") == 2, dumped


def test_a_plain_file_is_replaced_only_when_that_is_wanted(plain, programs, tmp_path, monkeypatch, sha256):
    """An object without a link may live by a reference count: a file does not tell that from one that was deleted."""
    natively = seen(programs, plain, native=True)
    monkeypatch.chdir(tmp_path)
    shutil.copy(plain, "plain.h5")
    refused(programs, sha256, "no link leads to: deleted ones", "plain.h5")
    refused(programs, sha256, "the dataset '/objects' (3)", "plain.h5")
    refused(programs, sha256, "import --drop-unlinked plain.h5", "plain.h5")
    done = programs.python("h5py.File(sys.argv[1], 'r+')", "plain.h5", options="adopt=yes")
    assert done.returncode != 0 and "import --drop-unlinked plain.h5" in done.stderr, done.stderr
    assert os.listdir() == ["plain.h5"] and seen(programs, "plain.h5", native=True) == natively
    done = programs.cow("import", "--drop-unlinked", "plain.h5")
    assert done.returncode == 0 and "25 references pointed to objects that no link leads to" in done.stderr, done.stderr
    assert seen(programs, "plain.h5") == natively
    programs.verified("plain.h5")


@pytest.mark.parametrize("form", FORMS)
def test_verbs_take_versions_with_references_to_deleted_objects(programs, tmp_path, form):
    """The same, of a file with history."""
    with h5py.File(tmp_path / "plain.h5", "w", libver=form) as f:
        fill(f)
    h5cow("import", tmp_path / "plain.h5", tmp_path / "c.h5")
    done = programs.python("with h5py.File(sys.argv[1], 'a', libver=sys.argv[2]) as f: del f['g']", tmp_path / "c.h5", form)
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "plain.h5", "a", libver=form) as f:
        del f["g"]
    natively = seen(programs, tmp_path / "plain.h5", native=True)
    whole = seen(programs, f"{tmp_path}/c.h5@1")
    assert whole["objects"] == ["/g/x", "/y", "/g", "/g/t"]
    for words, out, at in ((["export", "c.h5", "e.h5"], "e.h5", "e.h5"), (["recover", "c.h5", "r.h5"], "r.h5", "r.h5"),
                           (["gc", "--compact", "c.h5"], "c.h5", "c.h5")):
        done = programs.cow(*words, cwd=tmp_path)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        if words[0] == "export":
            assert "25 references pointed to" in done.stderr and all(place in done.stderr for place in PLACES), done.stderr
        assert seen(programs, tmp_path / at, native=out == "e.h5") == natively, words
        if out != "e.h5":
            programs.verified(tmp_path / out)
            assert seen(programs, f"{tmp_path / out}@1") == whole, words
    done = programs.cow("cp", "c.h5:/y", "y.h5:/y", cwd=tmp_path)
    assert done.returncode == 0 and "the attribute 'objects' of '/y' (3)" in done.stderr, done.stderr
