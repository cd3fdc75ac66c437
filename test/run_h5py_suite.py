#!/usr/bin/env python3
"""h5py's own test-suite, natively and with the connector: what passes natively must pass.

usage: run_h5py_suite.py [--connector STRING] [--logs FOLDER]

One process per test file, so that a crash costs that file's tests and no others.
"""

import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor

import suites

TIMEOUT = 600  # seconds for one test file; natively the slowest takes two


def test_files():
    """The test files of the installed h5py, as paths. Debian keeps the package proper one folder further down."""
    package = pathlib.Path(importlib.util.find_spec("h5py").origin).parent
    files = sorted(package.rglob("tests/**/test_*.py"))
    if not files:
        sys.exit(f"the installed h5py has no tests below {package}")
    return files


def parse(xml):
    """Outcomes by 'class::name' of a JUnit file."""
    outcomes = {}
    for case in ElementTree.parse(xml).getroot().iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            outcomes[name] = "failed"
        elif case.find("skipped") is not None:
            outcomes.setdefault(name, "skipped")
        else:
            outcomes.setdefault(name, "passed")
    return outcomes


def run_file(file, connector, log):
    """Outcomes of one test file (none when it died), and how it ended if not well."""
    with tempfile.TemporaryDirectory() as folder, open(log, "w") as out:
        xml = pathlib.Path(folder, "junit.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={xml}", str(file)]
        try:
            code = subprocess.run(
                command,
                cwd=folder,
                env=suites.environment(connector),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT,
            ).returncode
        except subprocess.TimeoutExpired:
            return {}, f"{file.name} stopped after {TIMEOUT} seconds"
        if not xml.exists():
            return {}, f"{file.name} ended with {'signal ' + str(-code) if code < 0 else 'exit code ' + str(code)}"
        return parse(xml), ""


def run(connector, logs):
    """Outcomes of all test files."""
    logs.mkdir(parents=True, exist_ok=True)
    outcomes, notes = {}, []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(run_file, f, connector, logs / f"{f.stem}.log") for f in test_files()]
        for job in jobs:
            found, note = job.result()
            outcomes.update(found)
            if note:
                notes.append(note)
    return outcomes, "".join(f"; {note}" for note in notes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connector", default="h5cow", help="value of HDF5_VOL_CONNECTOR (default: h5cow)")
    parser.add_argument("--logs", default=".", help="folder for the logs (default: here)")
    arguments = parser.parse_args()
    logs = pathlib.Path(arguments.logs)
    suites.require_connector(arguments.connector)
    native, _ = run(None, logs / "h5py-native")
    connector, note = run(arguments.connector, logs / "h5py-connector")
    sys.exit(suites.report("h5py suite", native, connector, note))


if __name__ == "__main__":
    main()
