"""A program under `h5cow run` that loses a history is told of: replace, remove, empty, keep a backup. docs/command.md, "run"."""

import subprocess
import sys

import pytest
from conftest import H5COW, PLUGINS, STOCK
from waiting import WAITING

MAKE = "import h5py, sys\nf = h5py.File(sys.argv[1], 'a')\nf.require_dataset('x', (), 'i8')[()] += 1\nf.close()"


def run(folder, code, *words, stock=False):
    """What `run` says; with STOCK the program itself has no h5cow."""
    env = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS}
    without = ["env", "-u", "HDF5_VOL_CONNECTOR", "HDF5_PLUGIN_PATH=/nowhere"] if stock else []
    command = [H5COW, "run", "--", *without, sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=WAITING)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "run.h5"
    for _ in range(3):
        assert run(tmp_path, MAKE, path) == ""
    return path


NEW = "import h5py, os, shutil\n"
LOSSES = {
    "emptied": (NEW + "h5py.File('run.h5', 'w')", "emptied or written anew", None, True),
    "truncated": (NEW + "os.truncate('run.h5', 0)", "emptied or written anew", None, False),
    "deleted": (NEW + "os.remove('run.h5')", "is not there any more", None, False),
    "renamed": (NEW + "os.rename('run.h5', 'old.h5')", "is not there any more", "old.h5", False),
    "replaced": (NEW + "h5py.File('tmp', 'w').close(); os.replace('tmp', 'run.h5')", "is another file now, with a history", None, False),
    "replaced by a plain file": (NEW + "h5py.File('tmp', 'w').close(); os.replace('tmp', 'run.h5')", "is another file now, without", None, True),
    "kept as backup": (NEW + "os.rename('run.h5', 'run.bak'); h5py.File('run.h5', 'w').close()", "is another file now", "run.bak", False),
    "copied as backup": (NEW + "shutil.copy('run.h5', 'run.bak'); h5py.File('run.h5', 'w')", "emptied or written anew", "run.bak", True),
}


@pytest.mark.parametrize("how", LOSSES)
@pytest.mark.parametrize("from_elsewhere", [False, True])
def test_loss_is_said_and_where_the_history_is(tmp_path, file, how, from_elsewhere):
    code, what, where, stock = LOSSES[how]
    folder = tmp_path
    if from_elsewhere:
        folder = tmp_path / "elsewhere"
        folder.mkdir()
        code = f"import os; os.chdir({str(tmp_path)!r})\n" + code
    said = [line for line in run(folder, code, file, stock=stock).splitlines() if f"'{file}'" in line and "histor" in line
            and "h5cow import" not in line]
    assert len(said) == 1 and what in said[0], said
    assert f"is in '{tmp_path / where}' now" in said[0] if where else "version #3 '3', made 20" in said[0]


def test_nothing_is_said_of_files_that_keep_their_history(tmp_path, file):
    code = ("import h5py, shutil\nh5py.File('run.h5', 'w')['x'] = 1\nh5py.File('run.h5', 'r+')['y'] = 1\n"
            "shutil.copy('run.h5', 'copy.h5'); h5py.File('other.h5', 'w')")
    assert run(tmp_path, code) == ""


def test_inner_run_says_it_alone(tmp_path, file):
    code = f"import subprocess\nsubprocess.run([{H5COW!r}, 'run', '--', 'rm', {str(file)!r}])"
    assert run(tmp_path, code).count("not there any more") == 1
