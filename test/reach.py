#!/usr/bin/env python3
"""Every HDF5 that can be had, with the one plugin of the wheel: docs/reach.md is written from what is found here.

usage: reach.py PLACE [--only WORDS] [--write-docs] [--environments]

PLACE is a Debian that ./dev is in: bookworm, forky, trixie. A cell is a program there, in a language, with a libhdf5, and every
cell is tried in the same way (`check`). The program takes

    write N        open the file, or make it; put the number N + 1 into its row N; close it
    read [@REV]    print the numbers
    crash          add 4 and flush, add 5, print "ready", and wait to be killed

What each place has found is kept in build/reach. The last place, trixie, adds up, and with --write-docs writes the page: a line
that was not tried stays as it was, with its date. --environments: prints a line for each virtual environment that the place
needs, its name and its packages; ./dev makes them, and tells where in H5COW_REACH_NAME. `-` are the newest modules.
"""

import argparse
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from modules import FILES, TEXTS
from waiting import WAITING

TOP = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = TOP / "test/reach"
PAGE = TOP / "docs/reach.md"
FOUND = TOP / "build/reach"
PLACES = {"bookworm": "Debian 12", "trixie": "Debian 13", "forky": "Debian forky"}
TITLES = {"h5py": "h5py", "netCDF4": "netCDF4", "tables": "PyTables"}
STOCK = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_")}

# ---- the cells -------------------------------------------------------------------------------------------------------


@dataclass
class Cell:
    place: str
    name: str
    words: list  # of the program
    hdf5: dict  # file -> release of the library that writes it
    build: tuple = ()  # a command that makes the program, in the folder of the test
    library: str = ""  # what the program must have loaded, where its release tells it from no other
    environment: str = ""  # virtual environment
    by_option: bool = False  # the program looks for the file itself, so that FILE@1 is not found: the option `at`
    replaces: bool = False  # the program makes another file each time, and renames it
    left_out: bool = False  # HDF5 before 1.14


PYTHON = """
import sys, time
modules = [dict() for text in {texts}]
for module, text in zip(modules, {texts}):
    exec(text, module)
if sys.argv[1] == "write":
    for module in modules:
        module["write"](int(sys.argv[2]))
elif sys.argv[1] == "read":
    for module in modules:
        print(*module["read"](*sys.argv[2:]))
else:
    files = [module["begin"]() for module in modules]
    for module, file in zip(modules, files):
        module["put"](file, 3)
        module["flush"](file)
        module["put"](file, 4)
    print("ready", flush=True)
    time.sleep(600)
"""
COMBINED = [["h5py"], ["netCDF4"], ["tables"], ["h5py", "netCDF4"], ["h5py", "tables"], ["netCDF4", "tables"],
            ["tables", "netCDF4", "h5py"]]
WHEELS = {"h5py": "3.16.0", "netCDF4": "1.7.5", "tables": "3.11.1"}  # ./dev's wheel_modules, and what HDF5 they bring:
NEWEST = {"h5py": "2.0.0", "netCDF4": "2.2.0", "tables": "1.14.6"}
# release of h5py and what it needs -> release of HDF5, and the Debians whose Python has a wheel of it
RELEASES = {
    "h5py==3.9.0 numpy<2": ("1.12.2", ["bookworm"]),
    "h5py==3.10.0 numpy<2": ("1.14.2", ["bookworm"]),
    "h5py==3.11.0": ("1.14.2", ["bookworm"]),
    "h5py==3.12.1": ("1.14.4", ["bookworm", "trixie"]),
    "h5py==3.13.0": ("1.14.6", ["bookworm", "trixie"]),
    "h5py==3.14.0": ("1.14.6", ["bookworm", "trixie"]),
    "h5py==3.15.1": ("1.14.6", ["bookworm", "trixie"]),
}
DISTRIBUTION = {"trixie": "1.14.5", "forky": "2.2.0"}
SERIAL = "$(pkg-config --cflags --libs hdf5)"
OPENMPI = "$(pkg-config --cflags --libs hdf5-openmpi)"
WITH_MPI = ["env", "H5PY_ALWAYS_USE_MPI=1", "python3"]  # how Debian's h5py is told which of its two builds to be
NOT_RUN = {  # what cannot be had, and why
    "conda-forge's HDF5": "not run: conda-forge cannot be reached from where this page is written",
}


def python(modules, words, place, name, hdf5, **more):
    """A cell of Python modules: each writes a file of its own, all in one process."""
    texts = [TEXTS[module] for module in modules]
    alone = modules == ["h5py"]
    return Cell(place, name, [*words, "-c", PYTHON.format(texts=repr(texts))],
                {FILES[m]: hdf5[m] if isinstance(hdf5, dict) else hdf5 for m in modules}, by_option=not alone, **more)


def compiled(place, name, file, hdf5, compiler, source, flags, **more):
    return Cell(place, name, ["./program"], {file: hdf5},
                ("sh", "-c", f"{compiler} -O1 -Wall -Werror -o program {PROGRAMS / source} {flags}"), **more)


def cells():
    for place, hdf5 in DISTRIBUTION.items():
        yield compiled(place, "C", "c.h5", hdf5, "cc", "program.c", SERIAL)
        yield compiled(place, "C++", "cpp.h5", hdf5, "c++", "program.cpp", f"{SERIAL} -lhdf5_serial_cpp")
        yield compiled(place, "Fortran", "fortran.h5", hdf5, "gfortran", "program.f90", f"-lhdf5_serial_fortran {SERIAL}")
        for modules in ["h5py"], ["netCDF4"], ["tables"], ["tables", "netCDF4", "h5py"]:
            yield python(modules, ["python3"], place, " and ".join(TITLES[m] for m in modules), hdf5)
    hdf5 = DISTRIBUTION["trixie"]
    yield Cell("trixie", "R: hdf5r", ["Rscript", PROGRAMS / "hdf5r.R"], {"hdf5r.h5": hdf5})
    yield Cell("trixie", "R: rhdf5", ["Rscript", PROGRAMS / "rhdf5.R"], {"rhdf5.h5": hdf5})
    octave = ["octave-cli", "-q"]
    yield Cell("trixie", "Octave: netcdf", [*octave, PROGRAMS / "netcdf.m"], {"octave.nc": hdf5}, by_option=True)
    yield Cell("trixie", "Octave: save", [*octave, PROGRAMS / "save.m"], {"octave.h5": hdf5}, by_option=True, replaces=True)
    yield compiled("trixie", "C, Open MPI's libhdf5", "c.h5", hdf5, "mpicc", "program.c", OPENMPI,
                   library="libhdf5_openmpi.so")
    for modules, name in (["h5py"], "h5py, Open MPI's libhdf5"), (["tables", "h5py"], "PyTables, and h5py with Open MPI's libhdf5"):
        yield python(modules, WITH_MPI, "trixie", name, hdf5, library="libhdf5_openmpi.so")
    for place in "bookworm", "trixie":
        for modules in COMBINED:
            name = " and ".join(f"{TITLES[m]} {WHEELS[m]}" for m in modules) + (", wheels" if len(modules) > 1 else ", wheel")
            yield python(modules, ["python"], place, name, NEWEST, environment="-")
        for release, (hdf5, places) in RELEASES.items():
            if place in places:
                yield python(["h5py"], ["python"], place, f"{release.split()[0]}, wheel".replace("==", " "), hdf5,
                             environment=release, left_out=hdf5 < "1.14")


def variable(environment):
    """Where ./dev tells its folder."""
    return "H5COW_REACH_" + name_of(environment).replace(".", "_").replace("-", "_")


def name_of(environment):
    return "newest" if environment == "-" else environment.split()[0].replace("==", "-")


# ---- one cell --------------------------------------------------------------------------------------------------------


class Failed(Exception):
    """What is wrong, in a sentence."""


class Trial:
    """A cell in a folder of its own, with the plugin and the command of the wheel."""

    def __init__(self, cell, plugin, folder):
        self.cell, self.folder = cell, folder
        self.words = [str(word) for word in cell.words]
        self.command = [str(plugin / "h5cow")]
        if cell.environment:
            venv = pathlib.Path(os.environ[variable(cell.environment)])
            self.words[0] = str(venv / "bin" / self.words[0])
            self.command = [str(venv / "bin/h5cow")]
            plugin = next(venv.glob("lib/python3*/site-packages/h5cow/plugin"))
        self.plugin = plugin

    def env(self, options=""):
        return {**STOCK, "HDF5_PLUGIN_PATH": str(self.plugin), "HDF5_VOL_CONNECTOR": f"h5cow {options}".strip(),
                "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, words, env, errors=False):
        """Standard output, which alone may be written to; with ERRORS: standard error."""
        done = subprocess.run(words, cwd=self.folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=WAITING)
        said = done.stderr.strip()
        if done.returncode != 0 or (said and not errors):
            shown = [word if len(word) < 100 else "..." for word in words]
            raise Failed(f"{' '.join(shown)} ended with {done.returncode}: {said[-2000:] or done.stdout[-2000:]}")
        return said if errors else done.stdout

    def write(self, n, **more):
        return self.run([*self.words, "write", str(n)], self.env(), **more)

    def numbers(self, version=0):
        """What the program reads from its files, each a list; of an old version, by its name or by the option."""
        by_name = version and not self.cell.by_option
        options = f"at={version}" if version and not by_name else ""
        said = self.run([*self.words, "read", *([f"@{version}"] if by_name else [])], self.env(options))
        return [[int(word) for word in line.split()] for line in said.strip().splitlines()]

    def killed(self):
        """The program ends while it has what it has not committed. Without a cache, so that some of that is in the file."""
        words, env = [*self.words, "crash"], self.env("cache=0")
        done = subprocess.Popen(words, cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                text=True, start_new_session=True)
        end = threading.Timer(WAITING, os.killpg, [done.pid, signal.SIGKILL])
        end.start()
        try:
            said = done.stdout.readline()
            if self.cell.library not in pathlib.Path(f"/proc/{done.pid}/maps").read_text():
                raise Failed(f"the program does not use {self.cell.library}")
        finally:
            end.cancel()
            if done.poll() is None:
                os.killpg(done.pid, signal.SIGKILL)
            done.stdout.close()
        if said != "ready\n" or done.wait() != -signal.SIGKILL:
            raise Failed(f"the program that was to be killed said {said!r} and ended with {done.returncode}")

    def has(self, count, versions=None):
        """All files have 1, 2, ... COUNT, a version each, or VERSIONS, and are whole."""
        versions = versions or count
        for version in dict.fromkeys([0, 1, max(1, versions - 1)]):
            numbers, expected = self.numbers(version), list(range(1, (version or versions) + 1 + count - versions))
            if numbers != [expected] * len(self.cell.hdf5):
                raise Failed(f"version {version or 'that is newest'} reads {numbers}, not {expected}")
        for file, hdf5 in self.cell.hdf5.items():
            rows = json.loads(self.run([*self.command, "log", "--json", file], STOCK))
            found = sorted((row["number"], row["hdf5"]) for row in rows)
            if found != [(n + 1, hdf5) for n in range(versions)]:
                raise Failed(f"{file} has the versions {found}, not {versions} by HDF5 {hdf5}")
            self.run([*self.command, "verify", file], STOCK)


def check(trial):
    """Three versions, time travel, verify; a crash; and on from there."""
    cell = trial.cell
    if cell.build:
        trial.run([str(word) for word in cell.build], STOCK)
    if cell.left_out:
        return check_left_out(trial)
    for n in range(3):
        trial.write(n)
    if cell.replaces:
        trial.has(3, versions=1)
        return ["1, of a new file each time", "`at=1`", "yes", ""]
    trial.has(3)
    trial.killed()
    trial.has(4)
    trial.write(4)
    trial.has(5)
    return ["yes", "`at=1`" if cell.by_option else "`@1`", "yes", "yes"]


def check_left_out(trial):
    """It is said, in one line by each process beside HDF5's own error stack, and the files are plain."""
    for n in range(3):
        said = trial.write(n, errors=True)
        ours = [row for row in said.splitlines() if row.startswith("h5cow: ")]
        if len(ours) != 1 or not all(f"version {hdf5}: " in ours[0] for hdf5 in trial.cell.hdf5.values()):
            raise Failed(f"said {said!r}, not one line that names the release")
    env = {name: value for name, value in trial.env().items() if name != "HDF5_VOL_CONNECTOR"}
    if trial.run([*trial.words, "read"], env).split() != ["1", "2", "3"]:
        raise Failed("what was written is not there")
    return ["none, says so", "", "", ""]


@dataclass
class Result:
    place: str
    name: str
    hdf5: str
    outcome: str  # passed, failed, skipped
    said: list  # columns of the page; of other outcomes: why


def tried(cell, plugin):
    hdf5 = ", ".join(dict.fromkeys(cell.hdf5.values()))
    if cell.environment and variable(cell.environment) not in os.environ:
        return Result(cell.place, cell.name, hdf5, "skipped", ["PyPI cannot be reached"])
    with tempfile.TemporaryDirectory() as folder:
        try:
            return Result(cell.place, cell.name, hdf5, "passed", check(Trial(cell, plugin, folder)))
        except (Failed, subprocess.TimeoutExpired) as error:
            return Result(cell.place, cell.name, hdf5, "failed", [str(error)])


# ---- the page --------------------------------------------------------------------------------------------------------

BEGIN = """\
# Reach

Programs that know nothing of versions, with every HDF5 that could be had, and one file of h5cow for all of them: the plugin in
the wheel of `./dev wheel`, made in Debian 12. Written by `./dev test --reach --write-docs` (`test/reach.py`, `test/reach/`); do
not edit. A line that could not be tried again keeps its date.

* **versions**: the program runs three times, and its files have three versions, by this HDF5. Where several modules are
  named, they are in one process, in this order, each with a file of its own.
* **time travel**: the same program reads the first version, and the one before the newest: as `FILE@1`, or by the option `at`,
  where the program looks for the file itself.
* **verify**: `h5cow verify` finds nothing wrong, then and after the crash.
* **crash**: the program adds something and flushes, adds more, and is killed with `SIGKILL`. The flush is there, what came after it
  is not, and the program goes on with the next version.

Octave's `save` writes another file and renames it, so each file has one version, its own; it does not append to HDF5 files.

| where | program | HDF5 | versions | time travel | verify | crash | tried |
|---|---|---|---|---|---|---|---|
"""


def line(place, name, *columns):
    return "| " + " | ".join([place, name, *columns]) + " |\n"


def page(results, before):
    """The text of the page. BEFORE: the former one, whose lines stay where RESULTS has nothing new."""
    former = {tuple(part.strip() for part in row.split("|")[1:3]): row for row in before.splitlines(True) if row.startswith("| ")}
    new = {(PLACES[r["place"]], r["name"]): r for r in results if r["outcome"] == "passed"}
    text, today = BEGIN, datetime.date.today().isoformat()
    for cell in cells():
        key = (PLACES[cell.place], cell.name)
        if key in new:
            said = new[key]["said"]
            text += line(*key, new[key]["hdf5"], *said, today)
        else:
            text += former.get(key) or line(*key, ", ".join(dict.fromkeys(cell.hdf5.values())), "not run", "", "", "", "")
    for name, why in NOT_RUN.items():
        text += line("", name, "", why, "", "", "", "")
    return text


def summary(chosen, write_docs):
    """What all places have found: each that is not right, and the counted line. The exit code."""
    results = [result for file in sorted(FOUND.glob("*.json")) for result in json.loads(file.read_text())]
    seen = {(result["place"], result["name"]) for result in results}
    results += [asdict(Result(c.place, c.name, "", "skipped", [f"{PLACES[c.place]} could not be made, or the wheel"]))
                for c in chosen if (c.place, c.name) not in seen]
    for result in results:
        if result["outcome"] != "passed":
            print(f"{PLACES[result['place']]}, {result['name']}: {result['outcome']}: {result['said'][0]}")
    counts = {kind: sum(result["outcome"] == kind for result in results) for kind in ("passed", "failed", "skipped")}
    counts["skipped"] += len(NOT_RUN)
    if write_docs and not counts["failed"]:
        PAGE.write_text(page(results, PAGE.read_text() if PAGE.exists() else ""))
        print(f"wrote {PAGE}")
    print(", ".join(f"{number} {kind}" for kind, number in counts.items()))
    return 1 if counts["failed"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("place", choices=PLACES)
    parser.add_argument("--only", default="", help="cells whose line has this")
    parser.add_argument("--write-docs", action="store_true")
    parser.add_argument("--environments", action="store_true")
    arguments = parser.parse_args()
    chosen = [cell for cell in cells() if arguments.only in f"{PLACES[cell.place]} {cell.name}"]
    here = [cell for cell in chosen if cell.place == arguments.place]
    if arguments.environments:
        for environment in dict.fromkeys(cell.environment for cell in here if cell.environment):
            print(name_of(environment), environment)
        return 0
    wheel = max(TOP.glob("dist/h5cow-*.whl"), key=lambda path: path.stat().st_mtime)
    FOUND.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        plugin = pathlib.Path(folder, "h5cow/plugin")
        with zipfile.ZipFile(wheel) as file:
            file.extractall(folder, [name for name in file.namelist() if name.startswith("h5cow/plugin/")])
        os.chmod(plugin / "h5cow", 0o755)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda cell: tried(cell, plugin), here))
    (FOUND / f"{arguments.place}.json").write_text(json.dumps([asdict(result) for result in results], indent=1))
    for result in results:
        print(f"{PLACES[result.place]}, {result.name}: {result.outcome}", flush=True)
    return summary(chosen, arguments.write_docs) if arguments.place == "trixie" else 0


if __name__ == "__main__":
    sys.exit(main())
