"""What the processor does for one dataset more, counted by valgrind: it must not grow with how many there are. Time would depend on the machine,
and calls of HDF5 (test_growth.c) say nothing of what is done without HDF5."""

import re
import sys

import h5py
import pytest

# N datasets in group `g`, each with a pool of its own (chunks of another size), or with the same; then one of them is changed.
MAKE = """
n = int(sys.argv[2])
with h5py.File(sys.argv[1], 'w', libver='latest') as f:
    for k in range(n):
        f.create_dataset(f'g/d{k}', data=np.arange(6.) + k, chunks=(6 + k * int(sys.argv[3]),), maxshape=(None,))
with h5py.File(sys.argv[1], 'r+', libver='latest') as f:
    f['g/d7'][3] = -1
"""


def instructions(programs, tmp_path, *command):
    out = tmp_path / "callgrind.out"
    done = programs.connector("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *command, options="threads=1")
    assert done.returncode == 0, done.stderr
    return done.stdout, int(re.search(r"^totals: (\d+)", out.read_text(), re.M).group(1))


@pytest.mark.parametrize("pools", ["pools of their own", "one pool"])
def test_reading_one_dataset_more(programs, tmp_path, pools):
    """h5dump opens each of them and reads all of it: a few values, so that finding them is most of the work. It visits
    them twice; of very many pools those that are idle are closed in between, which is part of what is allowed to grow here."""
    counted = []
    for n in (40, 80, 400):
        path = tmp_path / f"{n}.h5"
        done = programs.connector(sys.executable, "-c", programs.code(MAKE), path, n, int(pools != "one pool"), options="sync=off")
        assert done.returncode == 0, done.stderr
        with h5py.File(path) as f:
            assert len(f["_versioned_data/raw"]) == (n if pools != "one pool" else 1)
        text, count = instructions(programs, tmp_path, "h5dump", "-g", "/g", path)
        assert text.count("DATASET") == n and "-1," in text
        counted.append(count)
    few, many = (counted[1] - counted[0]) / 40, (counted[2] - counted[1]) / 320
    assert 0 < many < 1.3 * few, (few, many)
