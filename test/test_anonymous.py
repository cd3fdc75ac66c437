"""`f["x"] = array` of h5py makes a dataset without a name, and links it then. HDF5 finds the name of such a one by searching all of
the file: nobody is to ask for it."""

import shutil
import sys

import pytest

MADE = """
with h5py.File(sys.argv[1], 'w') as f:
    for k in range(1500):
        f.create_dataset(f'd{k}', data=np.arange(1200.) + k)
    f.attrs['to'] = f['d900'].ref
    f.attrs['small'] = f.create_dataset('small', data=5).ref
    f.attrs['group'] = f.create_group('g').ref
"""
WORK = {
    "named": "f.create_dataset('new', data=np.arange(1200.))",
    "without a name": "f['new'] = np.arange(1200.)",
    "copied": "f.copy('d7', 'new')",
    "a group": "f['new'] = h5py.Group(h5py.h5g.create(f.id, None))",
    "a type": "f['new'] = np.dtype('f4')",
    "by a reference": "f[f.attrs['to']][3] = 1",
    "an attribute by a reference": "f[f.attrs['to']].attrs['a'] = 1",
    "a small one by a reference": "f[f.attrs['small']][()] = 7",
    "in a group by a reference": "f[f.attrs['group']]['x'] = np.arange(1200.)",
    "made from a reference": "f[f.attrs['group']].create_dataset('x', data=np.arange(1200.))",
    "deleted": "del f['d7']",
}


def reads(programs, path, what):
    """How often a session that does one thing reads from the file system."""
    text = f"with h5py.File(sys.argv[1], 'r+') as f: {WORK[what]}"
    trace = ["strace", "-f", "-c", "-e", "trace=pread64,preadv"]
    done = programs.connector(*trace, sys.executable, "-c", programs.code("import numpy as np\n" + text), path, options="sync=off")
    assert done.returncode == 0, done.stderr
    return sum(int(line.split()[3]) for line in done.stderr.splitlines() if line.split()[-1:] in (["pread64"], ["preadv"]))


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace here")
def test_no_kind_of_work_searches_the_file(programs, tmp_path):
    path = tmp_path / "a.h5"
    done = programs.connector(sys.executable, "-c", programs.code("import numpy as np\n" + MADE), path, options="sync=off")
    assert done.returncode == 0, done.stderr
    found = {}
    for what in WORK:
        shutil.copyfile(path, tmp_path / "b.h5")
        found[what] = reads(programs, tmp_path / "b.h5", what)
    assert 50 < found["named"], found
    for what, n in found.items():
        assert n < 1.8 * found["named"], found  # a search: 2.6 times as many
