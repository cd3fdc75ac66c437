"""h5cow env: a whole shell, virtual environment or kernel whose programs make versions."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import H5COW, PLUGINS, STOCK, h5cow
from waiting import WAITING

MAKE = "import h5py; h5py.File('t.h5', 'a').attrs['x'] = 1"
PLUGIN = next(folder for folder in PLUGINS.split(":") if os.path.exists(f"{folder}/libh5cow.so"))


def versions(path):
    return len(json.loads(h5cow("log", "--json", path)))


def in_shell(shell, text, folder, env=STOCK):
    words = {"fish": ["--no-config"], "csh": ["-f"], "tcsh": ["-f"]}.get(shell, [])
    return subprocess.run([shell, *words, "-c", text], cwd=folder, env=env, capture_output=True, text=True, timeout=WAITING)


@pytest.mark.parametrize("shell, load", [("sh", 'eval "$({})"'), ("bash", 'eval "$({})"'), ("fish", "{} | source"), ("csh", "eval `{}`")])
def test_each_program_of_a_shell_makes_versions(tmp_path, shell, load):
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell} here")
    text = load.format(f"{H5COW} env --shell={shell}") + f'\n{sys.executable} -c "{MAKE}"'
    done = in_shell(shell, text, tmp_path)
    assert done.returncode == 0, done.stderr
    assert versions(tmp_path / "t.h5") == 1


@pytest.mark.parametrize("value", ["it's", 'a "b" $HOME `id`', "50% off; now", "back\\slash!", "two\nlines", "ünï"])
def test_an_option_arrives_as_it_was_given(tmp_path, value):
    text = f'eval "$({H5COW} env --shell=sh -o "message=$1")"; {sys.executable} -c "{MAKE}"'
    done = subprocess.run(["sh", "-c", text, "sh", value], cwd=tmp_path, env=STOCK, capture_output=True, text=True, timeout=WAITING)
    assert done.returncode == 0, done.stderr
    assert json.loads(h5cow("log", "--json", tmp_path / "t.h5"))[0]["message"] == value


def test_unset_takes_it_back_and_keeps_other_folders(tmp_path):
    text = f'eval "$({H5COW} env --shell=sh)"; eval "$({H5COW} env --shell=sh --unset)"; echo "${{HDF5_VOL_CONNECTOR-none}} $HDF5_PLUGIN_PATH"'
    done = in_shell("sh", text, tmp_path, {**STOCK, "HDF5_PLUGIN_PATH": "/some/where:/else"})
    assert done.stdout == "none /some/where:/else\n", done.stderr


def test_a_plugin_that_does_not_load_is_told_to_no_shell(tmp_path):
    """HDF5 2 crashes at the first file when the environment names a connector that it cannot find."""
    (tmp_path / "bin").mkdir()
    shutil.copy(H5COW, tmp_path / "bin/h5cow")
    (tmp_path / "bin/libh5cow.so").write_bytes(b"no plugin")
    done = subprocess.run([tmp_path / "bin/h5cow", "env"], env=STOCK, capture_output=True, text=True, timeout=WAITING)
    assert (done.returncode, done.stdout) == (2, "") and "cannot be used" in done.stderr


@pytest.mark.parametrize("words", [["--shell=perl"], ["-o", "colour"], ["-o", "colour=red"], ["here"], ["--jupyter", "--unset"]])
def test_what_cannot_be_said_is_refused(words):
    assert h5cow("env", *words, code=2).startswith("h5cow: ")


@pytest.fixture
def venv(tmp_path):
    """A virtual environment that finds the modules of this Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", tmp_path / "my venv"], check=True)
    return tmp_path / "my venv"


def run_in(venv, code, folder, **env):
    return subprocess.run([venv / "bin/python3", "-c", code], cwd=folder, env={**STOCK, **env}, capture_output=True, text=True, timeout=WAITING)


def test_each_python_of_a_virtual_environment_makes_versions_until_it_is_taken_back(venv, tmp_path):
    path = tmp_path / "t.h5"
    h5cow("env", f"--venv={venv}", "-o", "message=ünï 'x'")
    assert run_in(venv, MAKE, tmp_path).returncode == 0
    assert json.loads(h5cow("log", "--json", path))[0]["message"] == "ünï 'x'"
    h5cow("env", "--venv", env={**STOCK, "VIRTUAL_ENV": str(venv)})  # again, and the active one
    assert run_in(venv, MAKE.replace("= 1", "= 2"), tmp_path).returncode == 0
    assert versions(path) == 2
    h5cow("env", f"--venv={venv}", "--unset")
    h5cow("env", f"--venv={venv}", "--unset")
    assert run_in(venv, "import os; assert 'HDF5_VOL_CONNECTOR' not in os.environ", tmp_path).returncode == 0


def test_a_virtual_environment_obeys_the_user_and_outlives_the_plugin(venv, tmp_path):
    (tmp_path / "bin").mkdir()
    shutil.copy(H5COW, tmp_path / "bin/h5cow")
    shutil.copy(f"{PLUGIN}/libh5cow.so", tmp_path / "bin/libh5cow.so")
    subprocess.run([tmp_path / "bin/h5cow", "env", f"--venv={venv}"], env=STOCK, check=True, timeout=WAITING)
    show = "import os; print(os.environ.get('HDF5_VOL_CONNECTOR'), os.environ.get('HDF5_PLUGIN_PATH'))"
    assert run_in(venv, show, tmp_path).stdout.startswith(f"h5cow {tmp_path}/bin:")
    assert run_in(venv, show, tmp_path, HDF5_PLUGIN_PATH="/mine").stdout == f"h5cow {tmp_path}/bin:/mine\n"
    assert run_in(venv, show, tmp_path, HDF5_VOL_CONNECTOR="native").stdout == "native None\n"
    (tmp_path / "bin/libh5cow.so").unlink()
    done = run_in(venv, show + "; import h5py; h5py.File('p.h5', 'w')['x'] = 1", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "None None\n", "")


def test_what_is_no_virtual_environment_is_left_alone(tmp_path):
    (tmp_path / "lib/python3.13/site-packages").mkdir(parents=True)
    assert "is no virtual environment" in h5cow("env", f"--venv={tmp_path}", code=2)
    assert list((tmp_path / "lib/python3.13/site-packages").iterdir()) == []
    assert "no virtual environment is active" in h5cow("env", "--venv", code=2, env={k: v for k, v in STOCK.items() if k not in ("VIRTUAL_ENV", "CONDA_PREFIX")})


def test_a_kernel_gets_both_variables(tmp_path):
    env = json.loads(h5cow("env", "--jupyter"))["env"]
    done = subprocess.run([sys.executable, "-c", MAKE], cwd=tmp_path, env={**STOCK, **env}, capture_output=True, timeout=WAITING)
    assert done.returncode == 0 and versions(tmp_path / "t.h5") == 1
