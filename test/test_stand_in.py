"""What stands in for datasets that HDF5 has not opened is a table of the history, which h5cow has open: it stays as it is for who writes it."""

import pytest

# The table `pools` gets a row, and is in use by a handle that stands in for a dataset, or was.
CASES = {
    "opened": "d = f['a']; d[3]",
    "opened and closed": "f['a'][3]",
    "opened by a path": "d = h5py.h5d.open(f.id, b'/g/b')",
    "written": "f['a'][3] = 7",
    "created": "d = f.create_dataset('new', data=np.arange(300), chunks=(100,))",
    "created and closed": "f.create_dataset('new', data=np.arange(300), chunks=(100,))",
    "several": "d = [f['a'], f['g/b']]; f.create_dataset('new', data=np.arange(300), chunks=(100,)); d.pop()",
    "opened by HDF5 later": "d = f['a']; d.attrs['x'] = 1",
    "none": "",
}
SESSION = """
import os
def fill(f):
    f.create_dataset('a', data=np.arange(5000), chunks=(100,))
    f.create_dataset('g/b', data=np.arange(5000), chunks=(100,))
if sys.argv[2] == 'opened':
    with h5py.File(sys.argv[1], 'w') as f:
        fill(f)
f = h5py.File(sys.argv[1], 'r+' if sys.argv[2] == 'opened' else 'w')
if sys.argv[2] != 'opened':
    fill(f)
exec(sys.argv[3])
for k in range(3):  # each has a pool of its own
    f.create_dataset(f'c{k}', data=np.arange(5000) + k, chunks=(50 + k,))
if sys.argv[4] == 'closed before':
    d = None
f.flush()
os._exit(0)
"""
LOOK = """
with h5py.File(sys.argv[1]) as f:
    for k in range(3):
        assert (f[f'c{k}'][()] == np.arange(5000) + k).all()
"""


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("how", ["opened", "made"])
@pytest.mark.parametrize("when", ["open meanwhile", "closed before"])
def test_rows_of_the_table_are_in_the_file_after_a_flush(programs, tmp_path, when, how, case):
    file = tmp_path / "t.h5"
    done = programs.python(SESSION, file, how, CASES[case], when)
    assert done.returncode == 0, done.stderr
    programs.verified(file)
    done = programs.python(LOOK, file)
    assert done.returncode == 0, done.stderr
