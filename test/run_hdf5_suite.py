#!/usr/bin/env python3
"""HDF5's own test programs (test/ of its source): natively, with its connector pass_through, and with h5cow.

usage: run_hdf5_suite.py [--connector STRING] [--logs FOLDER] [--only NAME]... [--again]

The programs are those that ctest of the build in H5COW_HDF5_TESTS calls H5TEST-*, with the command lines and environments
that it gives them, each in a copy of the folder that it runs in. What must pass is what native passes: every program, and
every line "Testing ..." that one prints. A program that ends at its first failure hides what stands behind it: those lines
are counted, and the program is in conformance.EXCEPTIONS, or lost.

ctest also lists entries that only remove files: they are counted as entries, as ctest counts them, and nothing is run.

The connector is the one that was built against the library of these programs: build/hdf5-tests. A second run with it has
test/hdf5_outside.c answer what programs ask of libhdf5's inside: what fails without that and passes with it looked inside.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import suites

SUITE = "HDF5 tests"
PASS_THROUGH = "pass_through under_vol=0;under_info={}"
CPU = 1200  # seconds of computing for a process; natively the slowest takes 30
PATIENCE = 4 * 3600  # seconds until HDF5's test library ends a program that hangs
PRINTED = 16 << 20  # bytes that are kept of what a process prints: error stacks can go on for gigabytes
PLUGINS = pathlib.Path(__file__).resolve().parent.parent / "build/hdf5-tests"
RESULT = re.compile(r"(?:^|[\s.]|(?=\*))(PASSED|\*FAILED\*|-SKIP-|\*WARNING\*)\s*$")
WORD = {"PASSED": "passed", "*FAILED*": "failed", "-SKIP-": "skipped", "*WARNING*": "passed"}


@dataclasses.dataclass
class Program:
    name: str
    command: list
    environment: dict
    fails: bool  # is meant to
    after: tuple  # programs whose files it goes on with


def programs(build):
    """What ctest would run, by name; and the names of the entries that only clear up a folder that others use as well."""
    listed = subprocess.run(
        ["ctest", "--show-only=json-v1", "-R", "^H5TEST(XPR)?-"], cwd=build, capture_output=True, text=True, check=True
    )
    found, clearing = {}, []
    for test in json.loads(listed.stdout)["tests"]:
        name = test["name"].partition("-")[2]
        if name.endswith(("clear-objects", "clean-objects")):
            clearing.append(name)
            continue
        properties = {p["name"]: p["value"] for p in test["properties"]}
        if properties.get("DISABLED"):
            continue
        command, environment = without_cmake(test["command"])
        environment |= dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", ()))
        after = tuple(other.partition("-")[2] for other in properties.get("DEPENDS", ()) if "-objects" not in other)
        found[name] = Program(name, command, environment, bool(properties.get("WILL_FAIL")), after)
    return found, clearing


def parse(text):
    """Outcomes of the lines 'Testing ...' by what they test, with a number from the second such on. A line without a
    result is the one that the program ended in, or one that only announces others."""
    outcomes, seen = {}, {}
    pending = ""
    for line in text.splitlines():
        if start := re.match(r"^\s*Testing(?::|\s+--|\s)\s*(.*)$", line):
            pending = re.split(r"\s{3,}|\.{4,}", RESULT.sub("", start[1]).strip())[0]
            seen[pending] = seen.get(pending, 0) + 1
            if seen[pending] > 1:
                pending += f" #{seen[pending]}"
        found = RESULT.search(line)
        if found and pending:
            outcomes.setdefault(pending, WORD[found[1]])
    return outcomes


def without_cmake(command):
    """A command line that has CMake run the program, keep its output and look only at its exit code: the program's own
    command line, and what is set in its environment. Where CMake compares the output as well, the command as it is."""
    given = dict(word.split("=", 1) for word in command if re.match(r"TEST_\w+(:STRING)?=", word))
    given = {name.removesuffix(":STRING"): value for name, value in given.items()}
    if given.get("TEST_SKIP_COMPARE") != "TRUE":
        return command, {}
    own = {"LD_LIBRARY_PATH": given["TEST_LIBRARY_DIRECTORY"]} if "TEST_LIBRARY_DIRECTORY" in given else {}
    if "TEST_ENV_VAR" in given:
        own[given["TEST_ENV_VAR"]] = given["TEST_ENV_VALUE"].replace("\\", "")
    return [given["TEST_PROGRAM"], *given["TEST_ARGS"].split()], own


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_one(program, folder, origin, environment, log):
    """Whether the program ended as it should, and what it printed."""
    here = [word.replace(origin, str(folder)) for word in program.command]
    own = {name: value.replace(origin, str(folder)) for name, value in program.environment.items()}
    process = subprocess.Popen(
        here,
        cwd=folder,
        env={**own, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=limits,
    )
    with open(log, "wb") as out, process.stdout as printed:
        room = PRINTED
        while piece := printed.read1(1 << 16):
            out.write(piece[:room])
            room -= len(piece[:room])
    code = process.wait()
    text = pathlib.Path(log).read_text(errors="replace")
    return (code != 0) == program.fails, text


def run_program(program, all_programs, build, environment, logs):
    """Outcomes of the program and of what it tests, in a copy of the folder that ctest would run it in."""
    origin = str(pathlib.Path(build, "test/H5TEST"))
    with tempfile.TemporaryDirectory(prefix="h5cow-hdf5-") as scratch:
        folder = pathlib.Path(scratch, "H5TEST")
        shutil.copytree(origin, folder, symlinks=True)
        for before in program.after:
            run_one(all_programs[before], folder, origin, environment, logs / f"{program.name}.before.log")
        passed, text = run_one(program, folder, origin, environment, logs / f"{program.name}.log")
    outcomes = {f"{program.name} / {what}": outcome for what, outcome in parse(text).items()}
    outcomes[program.name] = "passed" if passed else "failed"
    return outcomes


def run(found, names, build, connector, logs, outside=False):
    """Outcomes of all programs, as many at a time as there are cores."""
    environment = suites.environment(connector) | {"HDF5_ALARM_SECONDS": str(PATIENCE)}
    environment.pop("HDF5_PLUGIN_PATH", None)
    if connector not in (None, PASS_THROUGH):
        environment["HDF5_PLUGIN_PATH"] = str(PLUGINS / "connector")
    if outside:
        environment["LD_PRELOAD"] = str(PLUGINS / "test/hdf5_outside.so")
    logs.mkdir(parents=True, exist_ok=True)
    outcomes = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(run_program, found[name], found, build, environment, logs) for name in names]
        for job in jobs:
            outcomes.update(job.result())
    return outcomes


def hidden(native, connector):
    """What stands behind the failure of a program, or is lost with its output, counts as failed."""
    for name in native:
        if name not in connector and connector.get(name.partition(" / ")[0]) == "failed":
            connector[name] = "failed"


def run_all(found, names, build, connector, logs):
    """Title of a run -> outcomes. "outside": of what fails with the connector, with test/hdf5_outside.c."""
    runs = {}
    for title, selected in (("native", None), ("pass_through", PASS_THROUGH), ("connector", connector)):
        runs[title] = run(found, names, build, selected, logs / f"hdf5-{title}")
        print(f"{SUITE}: {title}: {suites.tally(runs[title])}", flush=True)
    failing = [name for name in names if runs["connector"][name] != "passed"]
    runs["outside"] = run(found, failing, build, connector, logs / "hdf5-outside", outside=True)
    return runs


def looked_inside(runs):
    """What passes natively, and with the connector only where test/hdf5_outside.c answers."""
    return [
        name
        for name, outcome in runs["native"].items()
        if outcome == "passed" and runs["connector"].get(name) != "passed" and runs["outside"].get(name) == "passed"
    ]


def entries(runs, names, clearing, version, logs, whole):
    """Count as ctest does."""
    by_run = {}
    for title in ("native", "pass_through", "connector"):
        outcomes = runs[title]
        passed = sum(outcomes[name] == "passed" for name in names)
        print(
            f"{SUITE}: {title}: {passed} of {len(names)} programs, {passed + len(clearing)} of "
            f"{len(names) + len(clearing)} ctest entries, {len(clearing)} of which only clear up"
        )
        by_run[title] = {name: outcomes[name] for name in names} | {name: "passed" for name in clearing}
    suites.save(logs, f"{SUITE}: ctest entries", version, by_run, whole)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connector", default="h5cow", help="value of HDF5_VOL_CONNECTOR (default: h5cow)")
    parser.add_argument("--logs", default=".", help="folder for the logs (default: here)")
    parser.add_argument("--only", action="append", help="this program, without H5TEST-; may be given several times")
    parser.add_argument("--again", action="store_true", help="run nothing: judge what the last run left in the folder")
    arguments = parser.parse_args()
    build = os.environ.get("H5COW_HDF5_TESTS")
    if build is None:
        print(f"{SUITE}: not here (H5COW_HDF5_TESTS): ./dev test --suites makes them where cmake is")
        print(f"{SUITE}: 0 passed, 1 failed, 0 skipped")
        sys.exit(1)
    found, clearing = programs(build)
    logs = pathlib.Path(arguments.logs).resolve()
    names = arguments.only or list(found)
    kept = logs / "hdf5-outcomes.json"
    if arguments.again:
        runs = json.loads(kept.read_text())
    else:
        runs = run_all(found, names, build, arguments.connector, logs)
        kept.write_text(json.dumps(runs, indent=1))
    version = subprocess.run(["pkg-config", "--modversion", "hdf5"], capture_output=True, text=True).stdout.strip()
    whole = not arguments.only
    entries(runs, names, clearing, version, logs, whole)
    for name in looked_inside(runs):
        print(f"{SUITE}: looks inside: {name}: passes where test/hdf5_outside.c answers")
    hidden(runs["native"], runs["connector"])
    others = {"pass_through": runs["pass_through"]}
    sys.exit(suites.report(SUITE, version, runs["native"], runs["connector"], "", logs, whole, others))


if __name__ == "__main__":
    main()
