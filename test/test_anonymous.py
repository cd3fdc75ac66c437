"""`f["x"] = array` of h5py makes a dataset without a name, and links it then. HDF5 finds the name of such a one by searching all of
the file: nobody is to ask for it."""

import shutil
import sys

import pytest

MADE = """
with h5py.File(sys.argv[1], 'w') as f:
    for k in range(1500):
        f.create_dataset(f'd{k}', data=np.arange(1200.) + k)
"""
ONE_MORE = {
    "named": "f.create_dataset('new', data=np.arange(1200.))",
    "without a name": "f['new'] = np.arange(1200.)",
    "copied": "f.copy('d7', 'new')",
    "a group": "f['new'] = h5py.Group(h5py.h5g.create(f.id, None))",
    "a type": "f['new'] = np.dtype('f4')",
}


def reads(programs, path, what):
    """How often a session that makes one more object reads from the file system."""
    text = f"with h5py.File(sys.argv[1], 'r+') as f: {ONE_MORE[what]}"
    trace = ["strace", "-f", "-c", "-e", "trace=pread64,preadv"]
    done = programs.connector(*trace, sys.executable, "-c", programs.code("import numpy as np\n" + text), path, options="sync=off")
    assert done.returncode == 0, done.stderr
    return sum(int(line.split()[3]) for line in done.stderr.splitlines() if line.split()[-1:] in (["pread64"], ["preadv"]))


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace here")
def test_no_kind_of_creation_searches_the_file(programs, tmp_path):
    path = tmp_path / "a.h5"
    done = programs.connector(sys.executable, "-c", programs.code("import numpy as np\n" + MADE), path, options="sync=off")
    assert done.returncode == 0, done.stderr
    found = {}
    for what in ONE_MORE:
        shutil.copyfile(path, tmp_path / "b.h5")
        found[what] = reads(programs, tmp_path / "b.h5", what)
    assert 50 < found["named"], found
    for what, n in found.items():
        assert n < 1.8 * found["named"], found  # a search: 2.6 times as many
