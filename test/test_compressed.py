"""Native chunked datasets in head and versions whose chunks are far smaller than their values, or missing: released builds
made such by H5Ocopy. What the door asks of sizes must let them through."""

import subprocess

import h5py
import numpy as np
import pytest
from conftest import H5COW, STOCK
from hostile import fence_off, fence_on

ROWS = 1 << 19  # zeros that gzip packs a thousandfold: four mebibytes, in a file of far less


@pytest.fixture(params=["packed", "sparse", "packed texts"])
def copied(request, programs, tmp_path):
    """A file whose /x is a native chunked dataset, in the head and in version 2: no row of `datasets` names it."""
    path = tmp_path / "copied.h5"
    programs.python("h5py.File(sys.argv[1], 'w')['small'] = 1", path)
    fence = fence_off(path)
    with h5py.File(path, "r+", libver=("v110", "latest")) as f:
        if request.param == "packed":
            f.create_dataset("x", data=np.zeros(ROWS), chunks=(1 << 17,), compression="gzip", compression_opts=9)
        elif request.param == "sparse":
            f.create_dataset("x", (ROWS,), "f8", chunks=(1 << 10,))[5] = 7
        else:
            f.create_dataset("x", data=np.full(1 << 18, b"a" * 8, "S8"), chunks=(1 << 16,), compression="gzip")
    fence_on(path, fence)
    done = programs.python("h5py.File(sys.argv[1], 'r+')['x'].attrs['kept'] = 1", path)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return path, {"packed": 0.0, "sparse": 7.0, "packed texts": b"a" * 8}[request.param]


@pytest.mark.parametrize("revision", ["", "@2"])
def test_native_compressed_and_sparse_datasets_are_read(programs, copied, revision):
    path, value = copied
    done = programs.python("d = h5py.File(sys.argv[1], 'r')['x']; print(d[5], len(d[...]), d.shape)", f"{path}{revision}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == str(value)


def test_they_are_kept_by_the_next_version(programs, copied):
    path, value = copied
    done = programs.python("f = h5py.File(sys.argv[1], 'r+'); f['small'][()] = 2; f['x'].attrs['new'] = 1", path)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    done = programs.python("d = h5py.File(sys.argv[1], 'r')['x']; print(d[5])", f"{path}@3")
    assert done.stdout.strip() == str(value), done.stderr


def test_they_are_exported_and_checked(programs, copied, tmp_path):
    path, value = copied
    for revision in ("", "@2"):
        out = tmp_path / f"out{revision}.h5"
        done = subprocess.run([H5COW, "export", f"{path}{revision}", out], env=STOCK, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        with h5py.File(out, "r") as f:
            assert f["x"][5] == value
    programs.verified(path)
