"""docs/python.md does what it says: its programs are written, its commands run, and their output is as printed there."""

import os
import pathlib
import re
import subprocess

import pytest
from conftest import H5COW, PLUGINS, STOCK
from waiting import WAITING

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/python.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


def test_every_block_of_the_page(tmp_path, package):
    """Where h5cow is installed, HDF5 finds its plugin by itself; here the variable stands for that."""
    path = f"{pathlib.Path(H5COW).parent}:{os.environ['PATH']}"
    env = {**STOCK, "PATH": path, "HDF5_PLUGIN_PATH": PLUGINS, "COLUMNS": "200",
           "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    told, ran = None, 0
    for kind, text in BLOCKS:
        if kind == "python":
            name = re.match(r"# (\w+\.py)\n", text)
            assert name, f"this block has no name: {text}"
            (tmp_path / name[1]).write_text(text)
            continue
        if kind == "text":
            assert told == text
            continue
        assert kind == "sh", kind
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], cwd=tmp_path, env=env, capture_output=True,
                              text=True, timeout=WAITING)
        assert done.returncode == 0, (text, done.stdout, done.stderr)
        told, ran = done.stdout, ran + 1
    assert ran >= 10


def versions(path, env):
    done = subprocess.run([H5COW, "log", path], env=env, capture_output=True, text=True)
    return len(done.stdout.splitlines()) - 1 if done.returncode == 0 else 0


OPEN = {
    "h5py": "import h5py{late}\nf = h5py.File('x', '{mode}'); f.require_dataset('d', (9,), 'i4')[0] = {value}; f.close()",
    "netCDF4": "import netCDF4{late}\nd = netCDF4.Dataset('x', '{mode}')\n"
               "'t' in d.dimensions or d.createDimension('t', 3)\nd.setncattr('n', {value}); d.close()",
    "tables": "import tables{late}\nf = tables.open_file('x', '{mode}'); f.root._v_attrs.n = {value}; f.close()",
}


@pytest.mark.parametrize("module", OPEN)
def test_what_came_too_late_is_told_where_it_can_be(tmp_path, module):
    env = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS}
    late = "\nimport os; os.environ['HDF5_VOL_CONNECTOR'] = 'h5cow threads=1'"

    def run(text, **more):
        done = subprocess.run(["python3", "-c", text], cwd=tmp_path, env={**env, **more}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stderr.count("was set after HDF5 had started")

    assert run(OPEN[module].format(late=late, mode="w", value=1)) == 0 and versions(tmp_path / "x", env) == 0
    os.unlink(tmp_path / "x")
    assert run(OPEN[module].format(late="", mode="w", value=1), HDF5_VOL_CONNECTOR="h5cow") == 0
    assert versions(tmp_path / "x", env) == 1
    text = OPEN[module].format(late=late, mode="a", value=2)
    if module == "h5py":
        text += "\n" + OPEN[module].format(late="", mode="a", value=3)
    assert run(text) == 1, "once, and not for each file"
    assert versions(tmp_path / "x", env) > 1
    assert run(OPEN[module].format(late="", mode="a", value=4)) == 0, "who never asked for it is not told"
