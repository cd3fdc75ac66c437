"""Tests from outside: they find the runners beside them, and run programs with and without the connector.

The connector is looked for in HDF5_PLUGIN_PATH (./dev sets it), else in the build folder. Nothing in the test process
itself goes through it: programs that do are subprocesses.
"""

import hashlib
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

TEST = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TEST))

STOCK = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_")}
PLUGINS = os.environ.get("HDF5_PLUGIN_PATH") or str(TEST.parent / "build/release/connector")

# Prints every error stack that HDF5 makes, as C programs do; h5py keeps only two of its lines.
SHOW_ERRORS = """
import importlib, h5py
importlib.import_module(h5py.h5.__name__.rpartition('.')[0] + '._errors').unsilence_errors()
"""


class Programs:
    """Runs commands; each returns the finished process, text captured."""

    def run(self, command, env, **more):
        more = {"capture_output": True, "text": True, "timeout": 300, "stdin": subprocess.DEVNULL, **more}
        return subprocess.run([str(word) for word in command], env=env, **more)

    def connector(self, *command, options="", plugins=PLUGINS, **more):
        """With HDF5_VOL_CONNECTOR=h5cow, as a user would set it."""
        selected = f"h5cow {options}".strip()
        return self.run(command, {**STOCK, "HDF5_PLUGIN_PATH": plugins, "HDF5_VOL_CONNECTOR": selected}, **more)

    def stock(self, *command, **more):
        """Without the connector, and without any way to find it."""
        return self.run(command, {**STOCK, "HDF5_PLUGIN_PATH": "/nowhere"}, **more)

    def code(self, code, errors=True):
        """The text of an h5py program."""
        return (SHOW_ERRORS if errors else "") + "import h5py, sys, numpy as np\n" + textwrap.dedent(code)

    def python(self, code, *arguments, options="", plugins=PLUGINS, errors=True, **more):
        """An h5py program through the connector. It must end by itself, whatever it finds: a signal is a crash."""
        code = self.code(code, errors)
        done = self.connector(sys.executable, "-c", code, *arguments, options=options, plugins=plugins, **more)
        assert done.returncode >= 0, f"crashed with signal {-done.returncode}\n{done.stderr}"
        return done


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
