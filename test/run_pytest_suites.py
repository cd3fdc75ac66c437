#!/usr/bin/env python3
"""A Python package's own test-suite, natively and with the connector: what passes natively must pass.

usage: run_pytest_suites.py PACKAGE [--all] [--suite NAME] [--connector STRING] [--logs FOLDER]

PACKAGE: h5py, h5netcdf, pandas (its tests of HDFStore), xarray (its tests of files), netCDF4 (whose tests are no part of the installed package: they are
in the folder that H5COW_NETCDF4_SOURCE names; ./dev sets it where the source package can be had).

One process per test file, so that a crash costs that file's tests and no others; large files in several pieces.
"""

import argparse
import importlib.metadata
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import suites

TIMEOUT = 1800  # seconds for one process; natively the slowest takes 70 on a busy machine


@dataclass
class Package:
    suite: str  # what it is called
    probe: str  # the module whose HDF5 library it uses
    patterns: tuple  # of test files, below the folder of the package
    fast: tuple = ()  # classes that run without --all; none: all of them
    pieces: int = 1  # of a test file
    slow: tuple = ()  # tests that run with --all only


PACKAGES = {
    "h5py": Package("h5py", "h5py", ("tests/**/test_*.py",)),
    "h5netcdf": Package("h5netcdf", "h5py", ("tests/test_*.py",)),
    # each of test_complibs is one of PyTables' compressors at one of its levels, and takes as long as all the others of its file
    "pandas": Package("pandas", "tables", ("tests/io/pytables/test_*.py",), slow=("test_complibs",)),
    "netCDF4": Package("netCDF4-python", "netCDF4", ("test/test_*.py",)),
    "xarray": Package(
        "xarray",
        "netCDF4",
        ("tests/test_backends.py", "tests/test_backends_api.py", "tests/test_backends_datatree.py"),
        fast=("TestNetCDF4Data", "TestH5NetCDFData"),
        pieces=4,
    ),
}


def source(name):
    """The folder with the package's tests, or None. Debian keeps h5py proper one folder further down."""
    if name == "netCDF4":
        return os.environ.get("H5COW_NETCDF4_SOURCE")
    found = importlib.util.find_spec(name)
    return None if found is None else pathlib.Path(found.origin).parent


def test_nodes(name, folder, everything):
    """Lists of pytest's node ids, one list a process."""
    package = PACKAGES[name]
    files = sorted(file for pattern in package.patterns for file in pathlib.Path(folder).rglob(pattern))
    if not files:
        sys.exit(f"there are no tests of {name} below {folder}")
    if package.fast and not everything:
        return [[f"{files[0]}::{kind}"] for kind in package.fast]
    if package.pieces == 1:
        return [[str(file)] for file in files]
    nodes = []
    for file in files:
        names = re.findall(r"^(?:class (Test\w+)|def (test_\w+))", file.read_text(), re.MULTILINE)
        ids = [f"{file}::{a or b}" for a, b in dict.fromkeys(names)]
        nodes += [ids[i :: package.pieces] for i in range(package.pieces) if ids[i :: package.pieces]]
    return nodes


def parse(xml, stem):
    """Outcomes by 'file::class::name' of a JUnit file."""
    outcomes = {}
    for case in ElementTree.parse(xml).getroot().iter("testcase"):
        kind = (case.get("classname") or "").rpartition(f"{stem}.")[2].rpartition(f".{stem}")[2]
        name = "::".join(part for part in (stem, "" if kind == stem else kind, case.get("name")) if part)
        if case.find("failure") is not None or case.find("error") is not None:
            outcomes[name] = "failed"
        elif case.find("skipped") is not None:
            outcomes.setdefault(name, "skipped")
        else:
            outcomes.setdefault(name, "passed")
    return outcomes


def run_nodes(nodes, left_out, connector, log):
    """Outcomes of one process (none when it died), and how it ended if not well."""
    file = pathlib.Path(nodes[0].partition("::")[0])
    with tempfile.TemporaryDirectory() as folder, open(log, "w") as out:
        xml = pathlib.Path(folder, "junit.xml")
        command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={xml}"]
        command += ["-k", " and ".join(f"not {name}" for name in left_out)] if left_out else []
        try:
            code = subprocess.run(
                [*command, *nodes],
                cwd=folder,
                env={**suites.environment(connector), "NO_NET": "1"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT,
            ).returncode
        except subprocess.TimeoutExpired:
            return {}, f"{file.name} stopped after {TIMEOUT} seconds"
        if not xml.exists():
            return {}, f"{file.name} ended with {'signal ' + str(-code) if code < 0 else 'exit code ' + str(code)}"
        return parse(xml, file.stem), ""


def run(all_nodes, left_out, connector, logs):
    """Outcomes of all processes, as many at a time as there are cores."""
    logs.mkdir(parents=True, exist_ok=True)
    outcomes, notes = {}, []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = []
        for i, nodes in enumerate(all_nodes):
            stem = pathlib.Path(nodes[0].partition("::")[0]).stem
            jobs.append(pool.submit(run_nodes, nodes, left_out, connector, logs / f"{stem}-{i}.log"))
        for job in jobs:
            found, note = job.result()
            outcomes.update(found)
            if note:
                notes.append(note)
    return outcomes, "".join(f"; {note}" for note in notes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", choices=PACKAGES)
    parser.add_argument("--all", action="store_true", help="also what takes minutes")
    parser.add_argument("--suite", help="what it is called where it is counted (default: as usual)")
    parser.add_argument("--connector", default="h5cow", help="value of HDF5_VOL_CONNECTOR (default: h5cow)")
    parser.add_argument("--logs", default=".", help="folder for the logs (default: here)")
    arguments = parser.parse_args()
    name, logs = arguments.package, pathlib.Path(arguments.logs).resolve()
    package = PACKAGES[name]
    suite = arguments.suite or package.suite
    folder = source(name)
    if folder is None:
        print(f"{suite}: not run, since its tests are not here (H5COW_NETCDF4_SOURCE)")
        print(f"{suite}: 0 passed, 0 failed, 1 skipped")
        return
    suites.require_connector(arguments.connector, package.probe)
    nodes = test_nodes(name, folder, arguments.all)
    left_out = () if arguments.all else package.slow
    native, _ = run(nodes, left_out, None, logs / f"{name}-native")
    connector, note = run(nodes, left_out, arguments.connector, logs / f"{name}-connector")
    version = importlib.metadata.version(name)
    whole = arguments.all or not (package.fast or package.slow)
    sys.exit(suites.report(suite, version, native, connector, note, logs, whole))


if __name__ == "__main__":
    main()
