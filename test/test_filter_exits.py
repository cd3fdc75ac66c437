"""A filter that calls exit: what native HDF5 keeps then is kept, and more. docs/promises.md, "How a program may end"."""

import json
import shutil
import subprocess

import pytest
from conftest import BUILD, H5COW, PLUGINS, STOCK
from waiting import WAITING

PROGRAM = str(BUILD / "test/filter_exits")
NATIVE = {**STOCK, "HDF5_PLUGIN_PATH": "/nowhere"}
OURS = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS, "HDF5_VOL_CONNECTOR": "h5cow"}
OLD, NEW = 0, 1


def run(*words, env):
    return subprocess.run([PROGRAM, *map(str, words)], env=env, capture_output=True, text=True, timeout=WAITING)


def kept(path, env):
    done = run("read", path, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def verify(path):
    """Nothing is damaged, and the newest version is the newest state."""
    plugins = path.parent / "plugins"
    plugins.mkdir()
    shutil.copy(BUILD / "test/libfilter_exits.so", plugins)
    env = {**STOCK, "HDF5_PLUGIN_PATH": f"{PLUGINS}:{plugins}"}
    for words in (["verify", path], ["diff", path, f"{path}@latest"]):
        done = subprocess.run([H5COW, *map(str, words)], env=env, capture_output=True, text=True, timeout=WAITING)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("moment", ["write", "part", "H5Dflush", "H5Fflush", "H5Dclose", "H5Fclose", "end"])
@pytest.mark.parametrize("kind, times", [("e", 1), ("e", 2), ("e", 100), ("r", 1)])
def test_what_native_keeps_is_kept(tmp_path, moment, kind, times):
    native, ours = tmp_path / "native.h5", tmp_path / "ours.h5"
    run("write", native, moment, times, kind, env=NATIVE)  # it may crash
    done = run("write", ours, moment, times, kind, env=OURS)
    assert done.returncode in (0, 7), done.stderr
    theirs, got = kept(native, NATIVE), kept(ours, OURS)
    for name in ("x", "y", "z", "small"):
        assert got[name][NEW] >= theirs[name][NEW], (name, theirs, got)
        assert sum(got[name]) == (9 if name == "small" else 9999), (name, got)
    assert got["group"] >= theirs["group"] and got["attribute"] >= theirs["attribute"]
    # what goes through no filter of the program is always there
    assert (got["y"], got["small"], got["group"], got["attribute"]) == ([0, 9999], [0, 9], 1, 1)
    if kind == "e":
        assert ("lost" in done.stderr) == (got["z"] != [0, 9999] or got["x"][NEW] == 0), (done.stderr, got)
    verify(ours)
    again = run("write", ours, "H5Fclose", 0, kind, env=OURS)
    assert again.returncode == 0 and not again.stderr and kept(ours, OURS)["x"] == [7000, 2999]


@pytest.mark.parametrize("moment", ["H5Dflush", "H5Fflush"])
def test_chunk_that_is_refused_by_a_flush_and_then_taken_is_in_the_version(tmp_path, moment):
    path = tmp_path / "ours.h5"
    done = run("write", path, moment, 2, "f", env=OURS)  # once with others, and once alone
    assert done.returncode == 0 and "flush" in done.stderr, done.stderr
    assert kept(path, OURS)["x"] == [7000, 2999]
    verify(path)
