"""Every filter of hdf5plugin's wheel and of Debian's packages, on datasets of several shapes and types (filter_plugins.py): created,
changed, appended to, in versions, after gc --compact, exported. Native HDF5 is the judge: the same program makes a plain file.

The modules are PyPI's: H5COW_FILTER_PLUGINS names a Python that has h5py and hdf5plugin. Debian's filters are in
H5COW_DEBIAN_FILTERS, or where its packages put them. What is not there is skipped.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import H5COW, PLUGINS, STOCK, WAITING
from filter_plugins import DEBIAN, ENDS, FILTERS, KINDS, SAME, expected

PROGRAM = pathlib.Path(__file__).parent / "filter_plugins.py"
PYTHON = os.environ.get("H5COW_FILTER_PLUGINS") or sys.executable
DEBIANS = os.environ.get("H5COW_DEBIAN_FILTERS") or "/usr/lib/x86_64-linux-gnu/hdf5/serial/plugins"


def has_plugins(python):
    return subprocess.run([python, "-c", "import h5py, hdf5plugin"], capture_output=True, timeout=WAITING).returncode == 0


@pytest.fixture(scope="session")
def wheel(programs):
    if not has_plugins(PYTHON):
        pytest.skip(f"{PYTHON} has no hdf5plugin: H5COW_FILTER_PLUGINS=PYTHON names one with h5py and hdf5plugin")
    code = "import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)"
    return subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True, timeout=WAITING).stdout.strip()


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("[", "null"))]


def environments(plugins, options="", named=True):
    """Natively, through the connector, and of the command. Not NAMED: the program itself knows where the filters are."""
    stock = {**STOCK, "HDF5_PLUGIN_PATH": plugins if named else "/nowhere"}
    through = {**STOCK, "HDF5_PLUGIN_PATH": f"{PLUGINS}:{plugins}" if named else PLUGINS, "HDF5_VOL_CONNECTOR": f"h5cow {options}".strip()}
    return stock, through, {**STOCK, "HDF5_PLUGIN_PATH": plugins}


def lives(programs, tmp_path, python, environment, options, answers, pieces):
    """The program natively and through the connector, and then the file with history by all ways."""
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    plain.mkdir()
    ours.mkdir()
    stock, through, _ = environment
    native = lines(programs.run([python, "-B", PROGRAM, plain, options], stock))
    done = programs.run([python, "-B", PROGRAM, ours, options], through)
    kept = {}
    for number, (kind, (was, _), (now, end)) in enumerate(zip(KINDS, native, lines(done), strict=True)):
        where, answer = f"{options}, {kind}, pieces={pieces}", expected(answers, kind)
        assert not os.WIFSIGNALED(end), f"{where}: crashed\n{done.stderr[-2000:]}"
        if answer == ENDS:  # in the middle of a call, with exit()
            assert was is None and now is None, where
            continue
        assert was is None or was[0] == answer, where  # native HDF5 crashes after some that are not written
        assert now == was or (was is None and now[0] == answer), (where, was, now, done.stderr[-2000:])
        if answer == SAME:
            kept[ours / f"{number}.h5"] = now[1]
    stays(programs, kept, python, options, environment)


def stays(programs, kept, python, options, environment):
    """What was seen of each file: in its versions, and by every way to it."""
    stock, through, command = environment
    cow = lambda *words: subprocess.run([H5COW, *map(str, words)], capture_output=True, text=True, env=command, timeout=WAITING)
    looks = lambda env, paths: lines(programs.run([python, "-B", PROGRAM, "--look", options, *paths], env))
    versions = [f"{path}@{n}" for path in kept for n in (1, 2, 3)]

    for turn in ("as made", "compacted"):
        assert looks(through, versions) == [state for seen in kept.values() for state in seen], turn
        assert looks(through, kept) == looks(stock, kept) == [seen[2] for seen in kept.values()], turn
        for path in kept if turn == "as made" else ():
            done = cow("gc", "--compact", path)
            assert done.returncode == 0, (path, done.stderr)
    for path in kept:
        done = cow("export", f"{path}@2", path.with_suffix(".exported"))
        assert done.returncode == 0, (path, done.stderr)
        done = cow("verify", path)
        assert done.returncode == 0, (path, done.stdout, done.stderr)
    assert looks(stock, [path.with_suffix(".exported") for path in kept]) == [seen[1] for seen in kept.values()]


@pytest.mark.parametrize("pieces", ["16", "off"])
@pytest.mark.parametrize("name", FILTERS)
def test_filters_of_the_wheel(programs, tmp_path, wheel, name, pieces):
    lives(programs, tmp_path, PYTHON, environments(wheel, f"pieces={pieces}", False), name, FILTERS[name], pieces)


@pytest.mark.parametrize("pieces", ["16", "off"])
@pytest.mark.parametrize("name", DEBIAN)
def test_filters_of_debian(programs, tmp_path, name, pieces):
    options, answers = DEBIAN[name]
    number = name.split()[0]
    found = subprocess.run(
        [sys.executable, "-c", f"import h5py; raise SystemExit(not h5py.h5z.filter_avail({number}))"],
        capture_output=True, env={**STOCK, "HDF5_PLUGIN_PATH": DEBIANS}, timeout=WAITING)
    if found.returncode != 0:
        pytest.skip(f"no filter {number} in {DEBIANS}: install Debian's hdf5-filter-plugin packages, or set H5COW_DEBIAN_FILTERS")
    lives(programs, tmp_path, sys.executable, environments(DEBIANS, f"pieces={pieces}"), options, answers, pieces)


def test_import_takes_a_filter_as_it_is(programs, tmp_path, wheel):
    """Bitshuffle computes other parameters from those that it has computed."""
    path, (stock, through, command) = tmp_path / "plain.h5", environments(wheel, named=False)
    program = "import h5py, hdf5plugin, sys, numpy as np; f = h5py.File(sys.argv[1], sys.argv[2]); "
    run = lambda code, *words, env: programs.run([PYTHON, "-c", program + code, *words], env)
    tell = "print(f['x']._filters, f['x'][()].sum())"
    made = run("f.create_dataset('x', data=np.arange(100000), chunks=(10000,), **hdf5plugin.Bitshuffle()); f.close()", path, "w", env=stock)
    assert made.returncode == 0, made.stderr
    before = run(tell, path, "r", env=stock).stdout
    done = subprocess.run([H5COW, "import", path], capture_output=True, text=True, env=command, timeout=WAITING)
    assert done.returncode == 0, done.stderr
    assert run(tell, path, "r", env=through).stdout == before != ""
    assert run("f['x'][5] = 7; f.close()", path, "r+", env=through).returncode == 0
    assert run("print(f['x'][:7])", path, "r", env=stock).stdout.split() == "[0 1 2 3 4 7 6]".split()
