"""What the processor does for one dataset more, counted by valgrind: it must not grow with how many there are. Time would depend on the machine,
and calls of HDF5 (test_growth.c) say nothing of what is done without HDF5."""

import re
import subprocess
import sys

import h5py
import pytest
from conftest import PLUGINS, STOCK

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


# HDF5 opens each file of HDF5_PLUGIN_PATH for each filter that it does not know.
FILTERS = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print(sum(library.H5Zfilter_avail(40000 + k) for k in range(int(sys.argv[2]))))
"""


def test_asking_for_filters_that_are_not_there(programs, tmp_path):
    """With nothing but HDF5_PLUGIN_PATH, as with the connector in use: versioned-hdf5 asks for all 65,536 when it is imported."""
    with open("/proc/self/maps") as maps:
        library = next(line.split()[-1] for line in maps if re.search(r"/libhdf5(_serial)?[-.][^/]*so", line))
    each = []
    for connector in {"HDF5_VOL_CONNECTOR": "h5cow"}, {}:
        counted = []
        for n in 1, 41:
            out = tmp_path / "callgrind.out"
            done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, "-S", "-c", FILTERS, library, str(n)],
                                  env={**STOCK, "HDF5_PLUGIN_PATH": PLUGINS, **connector}, capture_output=True, text=True)
            assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
            counted.append(int(re.search(r"^totals: (\d+)", out.read_text(), re.M).group(1)))
        each.append((counted[1] - counted[0]) / 40)
    in_use, path_only = each
    assert 0 < path_only < 2 * in_use, (in_use, path_only)


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
