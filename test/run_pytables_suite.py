#!/usr/bin/env python3
"""PyTables' own test-suite, natively and with the connector: what passes natively must pass.

usage: run_pytables_suite.py [--all] [--only MODULE]... [--connector STRING] [--logs FOLDER]

Without --all only the modules that take a few seconds. The suite is what `python3 -m tables.tests.test_all` runs,
module by module on all cores, the long modules in several pieces. A process writes each test down before and after it
runs: one that dies or hangs costs the test it was in, and another process goes on behind that.

The native outcomes are kept in the cache folder for the installed versions, so that they are found out only once.
"""

import argparse
import importlib
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import suites

# Seconds without an end of a test; natively none takes longer than 20, on a machine that does nothing else.
TIMEOUT = 600
# Pieces of the modules that take long; the others are one piece each.
PIECES = {
    "test_tables": 8,
    "test_queries": 6,
    "test_indexvalues": 6,
    "test_vlarray": 2,
    "test_earray": 2,
    "test_carray": 2,
    "test_indexes": 2,
    "test_array": 2,
}
# What runs without --all: all kinds of nodes, attributes and links, copies and moves, but not the big tables of queries.
FAST = [
    "test_attributes",
    "test_create",
    "test_backcompat",
    "test_types",
    "test_lists",
    "test_tree",
    "test_do_undo",
    "test_enum",
    "test_hdf5compat",
    "test_links",
    "test_carray",
    "test_vlarray",
    "test_nestedtypes",
    "test_utils",
    "test_direct_chunk",
    "test_filenode",
]


# ---- in the process that runs tests ---------------------------------------------------------------------------------


def leaves(suite):
    """The test cases of a suite, in order."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from leaves(test)
        else:
            yield test


class Diary(unittest.TestResult):
    """Writes '> name' before a test and 'outcome name' behind it, and what went wrong to standard output."""

    def __init__(self, out, names):
        super().__init__()
        self.out, self.names = out, names

    def note(self, word, test):
        self.out.write(f"{word} {self.names.get(id(test), str(test))}\n")
        self.out.flush()

    def wrong(self, test, error):
        self.outcome = "failed"
        print(f"== {test.id()}\n{self._exc_info_to_string(error, test)}", flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.outcome = "passed"
        self.note(">", test)

    def stopTest(self, test):
        super().stopTest(test)
        self.note(self.outcome, test)

    def addError(self, test, error):
        self.wrong(test, error)
        if not isinstance(test, unittest.TestCase):  # a class or module that could not be set up: its tests never start
            self.note("failed", test)

    def addFailure(self, test, error):
        self.wrong(test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.wrong(test, error)

    def addSkip(self, test, reason):
        self.outcome = "skipped"
        if not isinstance(test, unittest.TestCase):
            self.note("skipped", test)

    def addExpectedFailure(self, test, error):
        pass

    def addUnexpectedSuccess(self, test):
        self.outcome = "failed"


def work(module, piece, pieces, diary):
    """Run every PIECES-th class of a module but the tests that the diary knows already."""
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    tempfile.tempdir = folder
    package = "tables.nodes.tests" if module == "test_filenode" else "tables.tests"
    tests = list(leaves(importlib.import_module(f"{package}.{module}").suite()))
    names, seen, classes = {}, {}, {}
    for test in tests:
        name = f"{module}::{type(test).__name__}::{test.id().rsplit('.', 1)[1]}"
        seen[name] = seen.get(name, 0) + 1
        names[id(test)] = name if seen[name] == 1 else f"{name} #{seen[name]}"
        classes.setdefault(type(test), []).append(test)
    done = {line.split(" ", 1)[1].rstrip("\n") for line in open(diary)}
    with open(diary, "a") as out:
        for kind in list(classes)[piece::pieces]:
            suite = unittest.TestSuite(test for test in classes[kind] if names[id(test)] not in done)
            suite.run(Diary(out, names))
    shutil.rmtree(folder, ignore_errors=True)


# ---- in the process that starts them --------------------------------------------------------------------------------


def read_diary(diary):
    """Outcomes by name; a test that began and never ended failed."""
    outcomes = {}
    for line in diary.read_text().splitlines():
        word, name = line.split(" ", 1)
        outcomes[name] = "failed" if word == ">" else word
    return outcomes


def run_piece(module, piece, pieces, connector, logs):
    """Outcomes of one piece of a module, and how often its process died."""
    diary, log = logs / f"{module}-{piece}.tests", logs / f"{module}-{piece}.log"
    diary.write_text("")
    deaths = 0
    command = [sys.executable, "-B", "-X", "faulthandler", __file__, "--work", module, str(piece), str(pieces), str(diary)]
    with open(log, "w") as out:
        while True:
            before = diary.stat().st_size
            process = subprocess.Popen(
                command, env=suites.environment(connector), stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
            while True:
                try:
                    code = process.wait(10)
                    break
                except subprocess.TimeoutExpired:
                    if time.time() - diary.stat().st_mtime > TIMEOUT:
                        process.kill()
            if code == 0 or diary.stat().st_size == before:
                break
            deaths += 1
            print(f"== process ended with {code}", file=out, flush=True)
    return read_diary(diary), deaths + (code != 0)


def run(modules, connector, logs):
    """Outcomes by module, and how it ended if not well."""
    logs.mkdir(parents=True, exist_ok=True)
    outcomes, note = {module: {} for module in modules}, ""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {
            (module, piece): pool.submit(run_piece, module, piece, PIECES.get(module, 1), connector, logs)
            for module in sorted(modules, key=lambda m: -PIECES.get(m, 1))
            for piece in range(PIECES.get(module, 1))
        }
        for (module, _), job in jobs.items():
            found, deaths = job.result()
            outcomes[module].update(found)
            if deaths:
                note += f"; a process of {module} died {deaths} times"
    return outcomes, note


def versions():
    """Of what decides about the native outcomes."""
    import numpy
    import tables

    python = ".".join(str(part) for part in sys.version_info[:3])
    return f"tables-{tables.__version__}-hdf5-{tables.hdf5_version}-numpy-{numpy.__version__}-python-{python}"


def run_native(modules, logs):
    """Outcomes by module; from the cache where all of a module passed before."""
    cache = pathlib.Path(os.environ.get("H5COW_INSIDE") or logs, "native", versions())
    cache.mkdir(parents=True, exist_ok=True)
    outcomes = {m: json.loads((cache / f"{m}.json").read_text()) for m in modules if (cache / f"{m}.json").exists()}
    missing = [module for module in modules if module not in outcomes]
    if len(missing) < len(modules):
        print(f"PyTables: native outcomes of {len(modules) - len(missing)} modules are from the cache")
    made, _ = run(missing, None, logs)
    for module, found in made.items():
        outcomes[module] = found
        if found and "failed" not in found.values():
            part = cache / f"{module}.{os.getpid()}"
            part.write_text(json.dumps(found))
            part.rename(cache / f"{module}.json")
    return outcomes


def all_modules():
    """What test_all runs, in its order."""
    from tables.tests import test_suite

    names = test_suite.suite.__code__.co_consts
    found = [c for const in names for c in (const if isinstance(const, tuple) else (const,)) if isinstance(c, str)]
    return [c.rsplit(".", 1)[1] for c in found if re.fullmatch(r"tables\.(\w+\.)*test_\w+", c)]


def joined(outcomes):
    return {name: outcome for module in outcomes.values() for name, outcome in module.items()}


def main():
    if sys.argv[1:2] == ["--work"]:
        module, piece, pieces, diary = sys.argv[2:]
        work(module, int(piece), int(pieces), os.path.abspath(diary))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="all modules")
    parser.add_argument("--only", action="append", metavar="MODULE", help="only this module (may be repeated)")
    parser.add_argument("--connector", default="h5cow", help="value of HDF5_VOL_CONNECTOR (default: h5cow)")
    parser.add_argument("--logs", default=".", help="folder for the logs (default: here)")
    arguments = parser.parse_args()
    logs = pathlib.Path(arguments.logs).resolve()
    suites.require_connector(arguments.connector, "tables")
    modules = arguments.only or (all_modules() if arguments.all else FAST)
    native = joined(run_native(modules, logs / "pytables-native"))
    connector, note = run(modules, arguments.connector, logs / "pytables-connector")
    version = importlib.metadata.version("tables")
    whole = arguments.all and not arguments.only
    sys.exit(suites.report("PyTables", version, native, joined(connector), note, logs, whole))


if __name__ == "__main__":
    main()
