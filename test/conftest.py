"""Tests from outside: they find the runners beside them, and run programs with and without the connector.

The connector is looked for in HDF5_PLUGIN_PATH (./dev sets it), else in the build folder. Nothing in the test process
itself goes through it: programs that do are subprocesses.
"""

import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

TEST = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TEST))

from waiting import WAITING  # noqa: E402
from seeds import again, seed  # noqa: E402

seed()  # before xdist starts its workers, which have to find the same tests

STOCK = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_")}
PLUGINS = os.environ.get("HDF5_PLUGIN_PATH") or str(TEST.parent / "build/release/connector")
BUILD = pathlib.Path(os.environ.get("H5COW_BUILD") or pathlib.Path(PLUGINS.split(":")[0]).parent)
H5COW = shutil.which("h5cow") or str(BUILD / "cli/h5cow")
PACKAGE = TEST.parent / "python/h5cow"
VENV = os.environ.get("H5COW_WHEEL_VENV")  # where the wheel and PyPI's modules are installed

# Prints every error stack that HDF5 makes, as C programs do; h5py keeps only two of its lines.
SHOW_ERRORS = """
import importlib, h5py
importlib.import_module(h5py.h5.__name__.rpartition('.')[0] + '._errors').unsilence_errors()
"""


def lookup3(data):
    """The checksum of HDF5's metadata."""

    def turn(x, k):
        return (x << k | x >> 32 - k) & 0xFFFFFFFF

    def word(at):
        return int.from_bytes(data[at : at + 4], "little")

    a = b = c = 0xDEADBEEF + len(data) & 0xFFFFFFFF
    at = 0
    while len(data) - at > 12:
        a, b, c = a + word(at), b + word(at + 4), c + word(at + 8)
        for k in (4, 6, 8, 16, 19, 4):
            a = ((a - c) & 0xFFFFFFFF) ^ turn(c & 0xFFFFFFFF, k)
            c = (c + b) & 0xFFFFFFFF
            a, b, c = b & 0xFFFFFFFF, c, a
        at += 12
    a, b, c = (x & 0xFFFFFFFF for x in (a + word(at), b + word(at + 4), c + word(at + 8)))
    for k in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - turn(b, k)) & 0xFFFFFFFF
        a, b, c = b, c, a
    return b


FULL = set((TEST / "full.txt").read_text().splitlines())
# Files that take minutes go first, so that no core waits for the last one of them.
MINUTES = ["hostile", "accidents", "copied", "stowed", "compact", "tools", "yesterday", "moved", "lost", "growth_instructions", "forget"]


def pytest_configure(config):
    config.addinivalue_line("markers", "full: named in test/full.txt, so only ./dev test --full runs it")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in MINUTES)
    for item in items:
        if f"{item.path.name}::{item.function.__name__}" in FULL:
            item.add_marker("full")


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(again())


def unfence(path):
    """Take the fence off a file with history, as no program does, so that HDF5 without the connector can damage it."""
    with open(path, "r+b") as f:
        head = bytearray(f.read(48))
        if head[:9] != b"\x89HDF\r\n\x1a\n\x03" or head[9] != 8:
            return
        assert lookup3(bytes(head[:44])) == int.from_bytes(head[44:], "little"), "not the checksum of HDF5"
        head[20:28] = b"\xff" * 8
        head[44:] = lookup3(bytes(head[:44])).to_bytes(4, "little")
        f.seek(0)
        f.write(head)


@pytest.fixture(autouse=True)
def without_fence(monkeypatch):
    """What tests change in their own process they change as if there were no fence."""
    if importlib.util.find_spec("h5py") is None:  # where the wheel is tested
        return
    import h5py

    real = h5py.File.__init__

    def opened(self, name, mode="r", *more, **options):
        if mode in ("r+", "a") and os.path.exists(name):
            unfence(name)
        real(self, name, mode, *more, **options)

    monkeypatch.setattr(h5py.File, "__init__", opened)


class Programs:
    """Runs commands; each returns the finished process, text captured."""

    def run(self, command, env, **more):
        more = {"capture_output": True, "text": True, "timeout": WAITING, "stdin": subprocess.DEVNULL, **more}
        return subprocess.run([str(word) for word in command], env=env, **more)

    def connector(self, *command, options="", plugins=PLUGINS, **more):
        """With HDF5_VOL_CONNECTOR=h5cow, as a user would set it."""
        selected = f"h5cow {options}".strip()
        return self.run(command, {**STOCK, "HDF5_PLUGIN_PATH": plugins, "HDF5_VOL_CONNECTOR": selected}, **more)

    def stock(self, *command, **more):
        """Without the connector, and without any way to find it."""
        return self.run(command, {**STOCK, "HDF5_PLUGIN_PATH": "/nowhere"}, **more)

    def cow(self, *arguments, **more):
        """The command h5cow."""
        done = self.stock(H5COW, *arguments, **more)
        assert done.returncode >= 0, done.stderr
        return done

    def verified(self, path):
        """h5cow verify finds nothing."""
        done = self.cow("verify", path)
        assert done.returncode == 0, done.stdout + done.stderr

    def code(self, code, errors=True):
        """The text of an h5py program."""
        return (SHOW_ERRORS if errors else "") + "import h5py, sys, numpy as np\n" + textwrap.dedent(code)

    def python(self, code, *arguments, options="", plugins=PLUGINS, errors=True, **more):
        """An h5py program through the connector. It must end by itself, whatever it finds: a signal is a crash."""
        code = self.code(code, errors)
        done = self.connector(sys.executable, "-c", code, *arguments, options=options, plugins=plugins, **more)
        assert done.returncode >= 0, f"crashed with signal {-done.returncode}\n{done.stderr}"
        return done


def h5cow(*words, code=0, env=STOCK, **more):
    """Run the command; its standard output, with the errors where it fails. The exit code must be CODE."""
    command = [H5COW, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=WAITING, **more)
    assert done.returncode == code, (words, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout if code == 0 else done.stdout + done.stderr


@pytest.fixture(scope="session")
def programs():
    """And the connector really is the one in use."""
    programs = Programs()
    plugins = [path for folder in PLUGINS.split(":") for path in pathlib.Path(folder).glob("libh5cow.so")]
    assert plugins, f"no libh5cow.so in {PLUGINS}: run ./dev test"
    return programs


@pytest.fixture(scope="session")
def sha256():
    return lambda path: hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """The folder of the Python package, with plugin and command."""
    if VENV:
        return next(pathlib.Path(VENV).glob("lib/python3*/site-packages/h5cow"))
    plugin = next(path for folder in PLUGINS.split(":") for path in pathlib.Path(folder).glob("libh5cow.so"))
    folder = tmp_path_factory.mktemp("package") / "h5cow"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__", "plugin"))
    (folder / "plugin").mkdir()
    (folder / "plugin/libh5cow.so").symlink_to(plugin)
    (folder / "plugin/h5cow").symlink_to(H5COW if os.path.exists(H5COW) else BUILD / "cli/h5cow")
    return folder
