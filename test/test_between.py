"""A file moves between programs with HDF5 1.14 and programs with HDF5 2, which make versions of it in turn: between.c, compiled
once for each of them, with one plugin.

Both libraries must be here: ./dev test --hdf5 2 fetches the one of Debian 13 and says in H5COW_HDF5_1 where it is.
"""

import os
import pathlib
import random
import shlex
import shutil
import subprocess

import pytest
from conftest import H5COW, PLUGINS, STOCK, TEST
from seeds import seed
from waiting import WAITING

OLDER = os.environ.get("H5COW_HDF5_1")
SOURCES = ["between.c", "harness.c", "through.c", "samples.c", "whole.c", "differential/compare.c"]
VERSIONS = 6

pytestmark = pytest.mark.skipif(not OLDER, reason="two HDF5 libraries: only with ./dev test --hdf5 2")


def told(*words):
    return shlex.split(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


class Library:
    """A libhdf5, the program that is linked with it, and how both are run."""

    def __init__(self, folder, flags, links, libraries):
        self.program = folder / "between"
        words = ["cc", "-std=gnu17", "-O1", "-w", "-D_GNU_SOURCE", "-DH5_USE_114_API", f"-I{TEST}", *flags, "-o", self.program]
        words += [TEST / source for source in SOURCES] + links + ["-lcmocka", "-lm"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.env = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS, "HDF5_VOL_CONNECTOR": "h5cow", "LD_LIBRARY_PATH": libraries}
        self.version = None

    def run(self, *words):
        command = [str(word) for word in (self.program, *words)]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=WAITING)
        assert done.returncode == 0, (self.version, words, done.stdout[-3000:], done.stderr[-3000:])
        self.version = done.stdout.split("\n")[0]
        return done.stdout


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    usr = pathlib.Path(OLDER, "usr")
    lib = next(usr.glob("lib/*/libhdf5_serial.so")).parent
    older = Library(tmp_path_factory.mktemp("older"), [f"-I{usr}/include/hdf5/serial"], [f"-L{lib}", "-lhdf5_serial"], str(lib))
    newer = Library(tmp_path_factory.mktemp("newer"), told("pkg-config", "--cflags", "hdf5"),
                    told("pkg-config", "--libs", "hdf5"), "")
    older.command = {**STOCK, "LD_LIBRARY_PATH": str(lib), "H5COW_LIBHDF5": str(lib / "libhdf5_serial.so")}
    newer.command = STOCK
    return older, newer


def verified(library, path):
    """The command, with this library: nothing is wrong, and these are the versions."""
    done = subprocess.run([H5COW, "verify", path], env=library.command, capture_output=True, text=True, timeout=WAITING)
    assert done.returncode == 0, (library.version, done.stdout, done.stderr)


def orders():
    """Who writes which version: in turn, and as it comes."""
    chosen = random.Random(seed())
    return [[n % 2 for n in range(VERSIONS)], [(n + 1) % 2 for n in range(VERSIONS)],
            [chosen.randrange(2) for _ in range(VERSIONS)]]


@pytest.mark.parametrize("order", orders(), ids=lambda order: "".join("12"[who] for who in order))
def test_versions_of_both_libraries(libraries, tmp_path, order):
    path = tmp_path / "file.h5"
    for version, who in enumerate(order, 1):
        if version > 1:
            shutil.copy(f"{path}.{version - 1}", f"{path}.{version}")
        libraries[who].run("write", version, path)
        for library in libraries:
            library.run("check", version, path)
            verified(library, path)
    assert [library.version.split(".")[0] for library in libraries] == ["HDF5 1", "HDF5 2"]


def test_complex_numbers_stay_what_they_are_in_the_hands_of_hdf5_1(libraries, tmp_path):
    older, newer = libraries
    path = tmp_path / "file.h5"
    newer.run("make", path)
    for version, library in enumerate((older, older, newer, older), 2):
        library.run("change", version, path)
        newer.run("read", version, path)
        older.run("read", version, path)
        verified(newer, path)
