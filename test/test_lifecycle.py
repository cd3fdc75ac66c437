"""How Python programs begin and end: plugins that HDF5 tries by itself, file objects, closes that fail.

In C: test_lifecycle.c.
"""

import subprocess
import sys

import h5py
import pytest
from conftest import PLUGINS, STOCK


def findable(*command, **more):
    """The plugin can be found and is not asked for: HDF5 tries it when it cannot open a file."""
    return subprocess.run(
        [str(word) for word in command],
        env={**STOCK, "HDF5_PLUGIN_PATH": PLUGINS},
        capture_output=True,
        text=True,
        timeout=300,
        **more,
    )


@pytest.fixture(scope="module")
def made(programs, tmp_path_factory):
    path = tmp_path_factory.mktemp("lifecycle") / "two.h5"
    done = programs.python(
        """
        for mode in 'w', 'a':
            with h5py.File(sys.argv[1], mode) as f:
                f[mode] = np.arange(5000)
        """,
        path,
    )
    assert done.returncode == 0, done.stderr
    return path


OPEN_OBJECT = """
import h5py, sys
try:
    f = h5py.File(open(sys.argv[1], 'r+b'), sys.argv[2])
    print('open', sorted(name for name in f if name != '_versioned_data'))
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("mode", ["a", "r+", "r", "w", "x"])
def test_python_file_objects_end_as_without_the_plugin(programs, made, tmp_path, mode):
    """HDF5 keeps the access list of a file that a plugin says it can open, with what the file object's driver has on it,
    and frees that when Python has ended."""
    said = []
    for run in (programs.stock, findable):
        path = tmp_path / "copy.h5"
        path.write_bytes(made.read_bytes())
        done = run(sys.executable, "-c", OPEN_OBJECT, path, mode)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        said.append((done.stdout, done.stderr))
    assert said[0] == said[1]


OPEN_EACH = """
import h5py, sys
for name in sys.argv[1:] * 3:
    for mode in 'r', 'r+', 'x':
        try:
            h5py.File(name, mode).close()
            print(name, mode, 'open')
        except Exception as error:
            print(name, mode, type(error).__name__, error)
"""


def test_the_reason_of_a_failed_open_outlives_the_search_for_plugins(programs, tmp_path):
    names = ["text.h5", "empty.h5", "short.h5", "folder", "nothing.h5/x", "text.h5@1"]
    said = []
    for run in (programs.stock, findable):
        here = tmp_path / run.__name__
        (here / "folder").mkdir(parents=True)
        (here / "text.h5").write_text("no HDF5 file " * 100)
        (here / "empty.h5").write_text("")
        with h5py.File(here / "short.h5", "w") as f:
            f["x"] = range(1000)
        with open(here / "short.h5", "r+b") as f:
            f.truncate(4000)
        done = run(sys.executable, "-c", OPEN_EACH, *names, cwd=here)
        assert done.returncode == 0, done.stderr
        said.append((done.stdout, done.stderr))
    assert said[0] == said[1] and said[0][0] != ""


def test_a_program_ends_well_after_a_close_that_failed(programs, made, tmp_path):
    path = tmp_path / "full.h5"
    path.write_bytes(made.read_bytes())
    done = programs.python(
        """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        f = h5py.File(sys.argv[1], 'r+')
        f['lost'] = np.random.default_rng(1).integers(0, 1 << 60, 500000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200000, resource.RLIM_INFINITY))
        try:
            f.close()
            print('closed')
        except Exception as error:
            print(type(error).__name__)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        again = h5py.File(sys.argv[1], 'r')
        print(int(again['w'][4999]))
        """,
        path,
        errors=False,
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    assert done.stdout.split()[-1] == "4999" and "closed" not in done.stdout, done.stdout
    programs.verified(path)
    with h5py.File(path, "r") as f:
        assert sorted(f) == ["_versioned_data", "a", "w"]
