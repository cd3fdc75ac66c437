"""The wheel in dist/: what is in the file; and with what PyPI's modules bring, one libhdf5 each, alone and in one process.

The default run looks at a wheel that is there already, if it was made from these sources. `./dev test --wheel` makes it, and
fetches the modules.
"""

import ast
import base64
import csv
import hashlib
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import zipfile

import pytest
from conftest import STOCK
from modules import FILES, TEXTS
from waiting import WAITING

TOP = pathlib.Path(__file__).resolve().parent.parent
VENV = os.environ.get("H5COW_WHEEL_VENV")
MADE_NOW = "H5COW_WHEEL" in os.environ
FULL = os.environ.get("H5COW_WHEEL") == "1"
GLIBC = (2, 34)
LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

with_pypi = pytest.mark.skipif(
    not VENV, reason="PyPI cannot be reached" if MADE_NOW else "PyPI's modules: only with ./dev test --wheel"
)


def newest_source():
    files = [TOP / "meson.build", TOP / "meson_options.txt", TOP / "LICENSE"]
    for folder in ("api", "cli", "connector", "python"):
        files += [path for path in (TOP / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return max(path.stat().st_mtime for path in files)


@pytest.fixture(scope="module")
def wheel():
    found = max(TOP.glob("dist/h5cow-*.whl"), key=lambda path: path.stat().st_mtime, default=None)
    if found is None or (not MADE_NOW and found.stat().st_mtime < newest_source()):
        pytest.skip("dist/ has no wheel of these sources: ./dev wheel makes it")
    return found


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    """With the permissions that pip gives: programs are programs."""
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder)
        for entry in file.infolist():
            os.chmod(folder / entry.filename, stat.S_IMODE(entry.external_attr >> 16))
    return folder


def told(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


# ---- the file ----


def test_its_name_and_tag(wheel, unpacked):
    version = re.search(r"version: '([^']+)'", (TOP / "meson.build").read_text())[1]
    assert wheel.name == f"h5cow-{version}-py3-none-manylinux_2_34_{os.uname().machine}.whl"
    info = unpacked / f"h5cow-{version}.dist-info"
    assert f"Tag: py3-none-manylinux_2_34_{os.uname().machine}\n" in (info / "WHEEL").read_text()
    assert f"Version: {version}\n" in (info / "METADATA").read_text()
    assert f'__version__ = "{version}"\n' in (unpacked / "h5cow/__init__.py").read_text()


def test_its_record_is_right(unpacked):
    record = next(unpacked.glob("*.dist-info/RECORD"))
    rows = list(csv.reader(record.read_text().splitlines()))
    for name, digest, size in rows:
        if name != str(record.relative_to(unpacked)):
            data = (unpacked / name).read_bytes()
            assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert int(size) == len(data)
    assert {name for name, *_ in rows} == {str(p.relative_to(unpacked)) for p in unpacked.rglob("*") if p.is_file()}


def test_all_of_the_package_is_in_it(unpacked):
    for path in (TOP / "python/h5cow").iterdir():
        if path.is_file():
            assert (unpacked / "h5cow" / path.name).read_bytes() == path.read_bytes()
    assert (unpacked / "h5cow/py.typed").exists()


def test_licences_of_all_that_is_linked_in(unpacked):
    folder = next(unpacked.glob("*.dist-info/licenses"))
    metadata = (folder.parent / "METADATA").read_text()
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    assert sorted(re.findall(r"^License-File: (.*)$", metadata, re.M)) == sorted(texts)
    every = "\n".join(texts.values())
    for holder in ("Yann Collet", "Francesc Alted", "Jean-loup Gailly", "Google", "The OpenSSL Project", "Metaparadigm",
                   "Meta Platforms|Facebook", "Kiyoshi Masui", "GCC RUNTIME LIBRARY EXCEPTION"):
        assert re.search(holder, every), holder
    assert "Apache License" in texts["Apache-2.0.txt"]


@pytest.mark.parametrize("name", ["libh5cow.so", "h5cow"])
def test_what_it_needs_of_the_system(unpacked, name):
    """glibc 2.34 and nothing else: no libhdf5, no codec."""
    path = unpacked / "h5cow/plugin" / name
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", told("readelf", "-dW", path)))
    assert needed and needed <= LIBRARIES
    assert not re.search(r"\((RPATH|RUNPATH)\)", told("readelf", "-dW", path))
    symbols = told("nm", "-D", "--undefined-only", path)
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"@GLIBC_([\d.]+)", symbols)}
    assert versions and max(versions) <= GLIBC
    assert not re.search(r" U H5", symbols)
    assert set(re.findall(r"@([A-Z]+)", symbols)) == {"GLIBC"}


def test_what_the_plugin_exports(unpacked):
    """Anything else could take the place of a symbol of the program, or the program's take its."""
    symbols = told("nm", "-D", "--defined-only", unpacked / "h5cow/plugin/libh5cow.so").split("\n")
    names = {line.split()[-1] for line in symbols if line}
    assert names == {"H5PLget_plugin_type", "H5PLget_plugin_info", "h5cow_instance_1"}


@pytest.mark.skipif(not FULL, reason="takes two minutes: only with ./dev test --wheel")
def test_built_again_elsewhere_it_is_the_same(wheel, tmp_path):
    again = tmp_path / "another folder of the same sources".replace(" ", "-")
    shutil.copytree(TOP, again, ignore=shutil.ignore_patterns("build", "dist", ".git", "__pycache__"))
    done = subprocess.run([again / "dev", "wheel"], capture_output=True, text=True, timeout=10 * WAITING)
    assert done.returncode == 0, done.stderr
    other = again / "dist" / wheel.name
    with zipfile.ZipFile(wheel) as a, zipfile.ZipFile(other) as b:
        assert [n for n in a.namelist() if a.read(n) != b.read(n)] == []
    assert other.read_bytes() == wheel.read_bytes()


# ---- with HDF5 ----

def program(module):
    """Three versions; prints what the file has then, and HDF5's version."""
    return TEXTS[module] + "\nfor n in range(3): write(n)\nprint(read(), version)\n"


def run(words, cwd, code=0, told="", **env):
    env = {**STOCK, "PYTHONDONTWRITEBYTECODE": "1", **env}
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=WAITING)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    assert re.fullmatch(told, done.stderr), done.stderr
    return done.stdout


@pytest.mark.parametrize("module", TEXTS)
def test_with_the_modules_of_the_distribution(unpacked, tmp_path, module):
    """As `pip install` would put it beside them. One libhdf5 for all of them."""
    pytest.importorskip(module, reason="only with the distribution's modules")
    h5cow = [sys.executable, "-m", "h5cow"]
    words = [*h5cow, "run", "-m", "by run", "--", sys.executable, "-c", program(module)]
    assert run(words, tmp_path, PYTHONPATH=str(unpacked)).startswith("[1, 2, 3] ")
    run([*h5cow, "verify", FILES[module]], tmp_path, PYTHONPATH=str(unpacked))
    rows = json.loads(run([*h5cow, "log", "--json", FILES[module]], tmp_path, PYTHONPATH=str(unpacked)))
    assert [row["message"] for row in rows] == ["by run"] * 3


@with_pypi
@pytest.mark.parametrize("module", TEXTS)
def test_a_module_of_pypi_alone(tmp_path, module):
    """The console script; and the libhdf5 that wrote is the module's own."""
    h5cow = f"{VENV}/bin/h5cow"
    said = run([h5cow, "run", "-m", "by run", "--", f"{VENV}/bin/python", "-c", program(module)], tmp_path)
    values, version = said.rsplit(" ", 1)
    assert ast.literal_eval(values) == [1, 2, 3]
    rows = json.loads(run([h5cow, "log", "--json", FILES[module]], tmp_path))
    assert [(row["message"], row["hdf5"]) for row in rows] == [("by run", version.strip())] * 3
    run([h5cow, "verify", FILES[module]], tmp_path)


ALL = """
import h5cow, os, sys
if {enable}:
    h5cow.enable(message="all")
modules = {{}}
for module, text in {texts}:
    exec(text, modules.setdefault(module, {{}}))
for n in range(3):
    for m in modules.values():
        m["write"](n)
assert [m["read"]() for m in modules.values()] == [[1, 2, 3]] * 3
assert len({{m["version"] for m in modules.values()}}) == 3, "each has its own"
assert modules["h5py"]["read"]("@2") == [1, 2]
import h5py, tables
# one writer, whichever library he has
with h5py.File("tables.h5", "a") as writer:
    try:
        tables.open_file("tables.h5", "a")
    except Exception as error:
        print("refused" if "h5cow" in str(error) or "lock" in str(error) else error)
with tables.open_file("h5py.h5", "a") as writer:
    try:
        h5py.File("h5py.h5", "a")
    except OSError as error:
        print("refused" if "h5cow" in str(error) or "lock" in str(error) else error)
with tables.open_file("h5py.h5", "r") as a, h5py.File("h5py.h5", "r") as b:
    assert a.root.d[2, 0] == b["d"][2, 0] == 3
for name in {files}:
    assert [v.message for v in h5cow.versions(name)] == ["all"] * 3
    assert not h5cow.verify(name).damaged
"""


@with_pypi
@pytest.mark.parametrize("enable", [True, False])
@pytest.mark.parametrize("order", [["h5py", "netCDF4", "tables"], ["tables", "netCDF4", "h5py"]])
def test_all_modules_of_pypi_in_one_process(tmp_path, order, enable):
    """Three copies of HDF5, of three versions; each is served by an instance of the plugin of its own."""
    texts = [(module, TEXTS[module]) for module in order]
    code = ALL.format(enable=enable, texts=texts, files=list(FILES.values()))
    words = [f"{VENV}/bin/python", "-c", code]
    told = ""
    if not enable:
        words = [f"{VENV}/bin/h5cow", "run", "-m", "all", "--", *words]
        told = r"(h5cow: .* could not open a file: .* by process .*\n)+"
    assert run(words, tmp_path, told=told) == "refused\n" * 2


@with_pypi
def test_filters_of_netcdf4_are_found(tmp_path):
    """It brings plugins for HDF5 itself, and sets HDF5_PLUGIN_PATH only where nobody else does."""
    code = """
import netCDF4, sys
with netCDF4.Dataset("z.nc", "w") as d:
    d.createDimension("x", 1000)
    d.createVariable("d", "f4", ("x",), compression="zstd")[:] = 1
with netCDF4.Dataset("z.nc") as d:
    print(d["d"].filters()["zstd"], d["d"][:].sum())
"""
    python = f"{VENV}/bin/python"
    plain = run([python, "-c", code], tmp_path)
    assert plain == "True 1000.0\n"
    (tmp_path / "z.nc").unlink()
    assert run([f"{VENV}/bin/h5cow", "run", "--", python, "-c", code], tmp_path) == plain
    (tmp_path / "z.nc").unlink()
    assert run([python, "-c", "import h5cow; h5cow.enable()\n" + code], tmp_path) == plain


@with_pypi
def test_the_command_uses_h5py_s_libhdf5(tmp_path):
    found = json.loads(run([f"{VENV}/bin/h5cow", "doctor", "--json"], tmp_path))
    assert pathlib.Path(found["libhdf5"]["file"]).parent.name == "h5py.libs"
    assert pathlib.Path(found["plugin"]["folder"]).parts[-2:] == ("h5cow", "plugin")


@with_pypi
def test_readme_s_lines_in_a_fresh_environment(wheel, tmp_path):
    """As printed; but for the wheel's folder, and h5py of the version that is tested."""
    readme = re.search(r"^## Python\n(.*?)^## ", (TOP / "README.md").read_text(), re.M | re.S)[1]
    lines, program = re.findall(r"^```(?:python)?\n(.*?)^```$", readme, re.M | re.S)
    install = re.search(r"^pip install dist/h5cow-\*\.whl h5py$", lines, re.M)[0]
    told(sys.executable, "-m", "venv", tmp_path / "venv")
    told("sh", "-c", f"cd {TOP} && {tmp_path}/venv/bin/{install}")
    assert len(program.splitlines()) == 10
    said = run([tmp_path / "venv/bin/python", "-c", program], tmp_path).splitlines()
    assert re.fullmatch(r"1 \d{4}-\d\d-\d\d .* first run", said[0]) and re.fullmatch(r"calibrated .* sensor 1 was off", said[1])
    assert said[2] == "[21.5 20.9]" and len(said) == 3


@pytest.mark.skipif(not MADE_NOW, reason="makes a virtual environment: only with ./dev test --wheel")
def test_alone_it_installs_and_says_what_it_lacks(wheel, tmp_path):
    """Where there is no HDF5 at all, as on a fresh machine."""
    told(sys.executable, "-m", "venv", tmp_path / "venv")
    told(tmp_path / "venv/bin/pip", "install", "--no-index", wheel)
    assert run([tmp_path / "venv/bin/h5cow", "--help"], tmp_path).startswith("Usage: h5cow VERB")
    done = subprocess.run([tmp_path / "venv/bin/h5cow", "log", "x"], capture_output=True, text=True)
    assert done.returncode == 2 and "no HDF5 library can be used" in done.stderr
    done = subprocess.run([tmp_path / "venv/bin/python", "-c", "import h5cow; h5cow.open('x')"], capture_output=True, text=True)
    assert "No module named 'h5py'" in done.stderr
