"""Who is refused a file learns why: from `h5cow run` where the program says nothing but "HDF error", and on a page where HDF5 without the
connector has a message of its own."""

import pathlib
import subprocess
import sys

import h5py
import pytest
from conftest import H5COW, PLUGINS, STOCK, h5cow
from waiting import WAITING

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"

HOLD = "import h5py, sys; f = h5py.File(sys.argv[1], 'r+'); print('open', flush=True); sys.stdin.readline(); f.close()"

# What programs do of which one hears nothing.
SECOND = {
    "h5py": "import h5py, sys\ntry: h5py.File(sys.argv[1], 'r+')\nexcept OSError: print('HDF error')",
    "h5py, 'w'": "import h5py, sys\ntry: h5py.File(sys.argv[1], 'w')\nexcept OSError: print('HDF error')",
    "netCDF4": "import netCDF4, sys\ntry: netCDF4.Dataset(sys.argv[1], 'a')\nexcept OSError as e: print(e)",
}

LATER = f"""
import h5py, subprocess, sys
holder = subprocess.Popen([sys.executable, '-c', {HOLD!r}, sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
holder.stdout.readline()
for name in sys.argv[1:]:
    try: h5py.File(name, 'r+')
    except OSError: print('HDF error')
holder.communicate()
h5py.File(sys.argv[1], 'r+').close()
"""


def run(code, *arguments, quiet=False):
    command = [H5COW, "run", *(["-q"] if quiet else []), "--", sys.executable, "-c", code, *map(str, arguments)]
    env = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=WAITING)


@pytest.fixture
def made(programs, tmp_path):
    path = tmp_path / "a.h5"
    done = programs.python("h5py.File(sys.argv[1], 'w')['x'] = np.arange(5000)", path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def holder(made):
    env = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS, "HDF5_VOL_CONNECTOR": "h5cow"}
    with subprocess.Popen([sys.executable, "-c", HOLD, made], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True) as process:
        assert process.stdout.readline() == "open\n"
        yield process
        process.communicate("\n", timeout=WAITING)


@pytest.mark.parametrize("program", SECOND)
def test_run_says_who_has_the_file(made, holder, program):
    pytest.importorskip(program.split(",")[0])
    done = run(SECOND[program], made)
    assert done.returncode == 0 and "HDF error" in done.stdout, done.stderr
    said = [line for line in done.stderr.splitlines() if "could not open a file" in line]
    assert len(said) == 1 and f"{made}: the file is being written by process {holder.pid} (" in said[0], done.stderr
    assert "could not open" not in run(SECOND[program], made, quiet=True).stderr
    # a `run` in it has said it
    inner = f"import subprocess, sys; subprocess.run([{H5COW!r}, 'run', '--', sys.executable, '-c', {SECOND[program]!r}, sys.argv[1]])"
    assert run(inner, made).stderr.count("could not open a file") == 1


def test_run_does_not_speak_of_what_was_opened_later(programs, made, tmp_path):
    done = run(LATER, made)
    assert "HDF error" in done.stdout and "could not open" not in done.stderr, done.stderr


def test_the_page_has_what_hdf5_says_without_the_connector(programs, made):
    """In its own words, for those who search for them."""
    code = "f = h5py.File(sys.argv[1], sys.argv[2])"
    page = " ".join((DOCS / "install.md").read_text().split())
    for mode in ("r+", "a"):
        done = programs.stock(sys.executable, "-c", programs.code(code), made, mode)
        assert done.returncode == 1 and "unknown message with 'fail if unknown' flag" in done.stderr, done.stderr
        last = done.stderr.splitlines()[-1]
        assert last.partition(": ")[2] in page, last
