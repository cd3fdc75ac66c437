#!/usr/bin/env python3
"""The tests, one part after the other; the last line counts them. ./dev test builds what they need and calls this.

usage: run.py [--full | --rest] [--long] [--suites | --wheel [--fast] | --mpi | --browser | --hdf5 2 [--short]] [--write-docs]
              [--steps N] [--seed S] [--kills N] [--many SECONDS]

Two tiers. The default is what a change is tried with: minutes. --full is everything; --rest is what --full has beyond the
default. Tests that take more than some seconds belong to the full run alone: test/full.txt names them.

Each part prints its own counted line and keeps its whole output in build/test-logs. A part that cannot be counted, or
that ends badly without a failed test, counts as one failed test: nothing that was not run can look like a success.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor

from seeds import seed

TEST = pathlib.Path(__file__).resolve().parent
FULL = set((TEST / "full.txt").read_text().splitlines())  # tests of the full run alone: C tests by name, others as FILE::FUNCTION
BUILD = pathlib.Path(os.environ.get("H5COW_BUILD", TEST.parent / "build/release")).parent
LOGS = BUILD / "test-logs"
STEPS = 16_000  # of the differential test, all runs together
DEFAULT_STEPS = 2_000  # in the default tier
SUITES_STEPS = 50_000  # with --suites
RUNS = 8  # of the differential test, each with its own seed
DEFAULT_RUNS = 2
# Properties that the differential test is not clean with yet: with a small metadata cache the count of a named type may be too high,
# and library bounds of each session have not run long enough.
LEFT_OUT = "bounds,metadata-cache"
COPIES = 200  # of H5Ocopy with all combinations of flags; 5,000 with ./dev reliability --only 12
KILLS = 300  # of a writer beside readers
DEFAULT_KILLS = 20
LONG = 5  # seconds: a test of the default tier that takes longer belongs to the full run
LONG_PROGRAM = 20  # the same of a C program of many tests
MANY = 40  # seconds of many readers at one file
PART_TIMEOUT = 3 * 3600  # seconds; what hangs is ended long before, by limits of its own
SUITES = {  # name for --only -> what is printed, its runner, whether it runs without --suites
    "hdf5": ("HDF5's own tests", ["run_hdf5_suite.py"], False),
    "api": ("HDF5 API tests", ["run_api_suite.py"], True),
    "pandas": ("pandas tests", ["run_pytest_suites.py", "pandas"], True),
    "h5py": ("h5py tests", ["run_pytest_suites.py", "h5py"], True),
    "h5netcdf": ("h5netcdf tests", ["run_pytest_suites.py", "h5netcdf"], True),
    "pytables": ("PyTables tests", ["run_pytables_suite.py"], True),
    "xarray": ("xarray tests", ["run_pytest_suites.py", "xarray"], False),
    "netcdf4": ("netCDF4-python tests", ["run_pytest_suites.py", "netCDF4"], False),
}
WHEEL_SUITE = "h5py, wheel with HDF5 2.0.0"
SUITE_TIMEOUT = 6 * 3600  # of a test-suite of others in full; PyTables' takes over half an hour natively
# C tests whose outcome is up to the HDF5 library; of the rest, what takes minutes is about files, memory and disks.
HDF5_TESTS = [
    "access", "api", "array", "bounds", "codec", "conversion", "copies", "counts", "drivers", "files", "found", "head", "mapped", "model",
    "programs", "properties", "references", "scenarios", "threads", "types", "vol", "differential agrees with itself",
]
SHORT_STEPS = 4_000
COUNTED = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped\s*$")


def logged(command, log, env=None, timeout=PART_TIMEOUT):
    """Run COMMAND with its output in LOG. Its exit code, or why it has none; and the output."""
    with open(log, "w") as out:
        try:
            code = subprocess.run(
                [str(word) for word in command],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=timeout,
            ).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            code = str(error)
    return code, log.read_text(errors="replace")


def log_file(title):
    return LOGS / (re.sub(r"\W+", "-", title.lower()).strip("-") + ".log")


class Tests:
    """Runs parts and adds up what they count."""

    def __init__(self):
        self.total = [0, 0, 0]
        self.begun = self.started = time.monotonic()

    def count(self, title, counts):
        now = time.monotonic()
        self.total = [a + b for a, b in zip(self.total, counts)]
        seconds = f"({now - self.started:.0f} s; {now - self.begun:.0f} s so far)"
        self.started = now
        print("{}: {} passed, {} failed, {} skipped {}".format(title, *counts, seconds), flush=True)

    def part(self, title, command, count, shown=None, **more):
        """One command of many tests; COUNT turns its output into (passed, failed, skipped), or None."""
        self.parts([(title, command, count, shown, more)])

    def parts(self, parts):
        """Such commands, each of which keeps one core busy, as many at a time as there are cores; told in their order."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            ends = [pool.submit(logged, command, log_file(title), **more) for title, command, _, _, more in parts]
            for (title, _, count, shown, _), end in zip(parts, ends):
                self.ended(title, end.result(), count, shown)

    def ended(self, title, end, count, shown):
        log = log_file(title)
        code, text = end
        counts = count(text)
        if counts is None:
            counts = (0, 1, 0)
        elif code != 0 and counts[1] == 0:
            counts = (counts[0], 1, counts[2])
        self.count(title, counts)
        for line in text.splitlines():
            if shown is not None and re.match(shown, line):
                print(f"    {line}")
        if counts[1]:
            tell(code, log, text)

    def end(self):
        print("{} passed, {} failed, {} skipped".format(*self.total))
        return 1 if self.total[1] else 0

    def programs(self, title, commands, env):
        """Programs that are one test each, as many at a time as there are cores. COMMANDS: name -> command."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = {n: pool.submit(logged, c, log_file(f"{title} {n}"), env) for n, c in commands.items()}
            ends = {name: job.result() for name, job in jobs.items()}
        failed = {name: end for name, end in ends.items() if end[0] != 0}
        self.count(title, (len(ends) - len(failed), len(failed), 0))
        print(f"    {', '.join(commands)}")
        for name, (code, text) in failed.items():
            tell(code, log_file(f"{title} {name}"), text, lines=8)


def tell(code, log, text, lines=25):
    """The end of LOG, whose TEXT this is; before it what meson or pytest has there of each test that failed."""
    print(f"    exit code {code}; the end of {log}:")
    meson = re.findall(r"^[―-]+ (?:✀|8<) [^\n]*\n(.*?)^[―-]+$", text, re.M | re.S)
    pytest = re.findall(r"^(_{3,} \S[^\n]* _{3,}\n.*?)(?=^_{3,} \S[^\n]* _{3,}$|^=+ [^\n]* =+$|\Z)", text, re.M | re.S)
    text = re.sub(r"^SKIPPED .*\n", "", text, flags=re.M)
    for part in [*meson, *pytest, text]:
        for line in [*part.splitlines()[:1], *part.splitlines()[1:][-lines:]]:
            print(f"    | {line[:200]}")
    sys.stdout.flush()


def counted_line(text):
    """Counts from the last line that says 'N passed, N failed, N skipped'."""
    found = [match for line in text.splitlines() if (match := COUNTED.search(line))]
    return tuple(int(number) for number in found[-1].groups()) if found else None


def junit(path):
    """A counter that reads a JUnit file which the command writes; one that an earlier run left is removed now."""
    path.unlink(missing_ok=True)

    def count(_):
        try:
            cases = list(ElementTree.parse(path).getroot().iter("testcase"))
        except (OSError, ElementTree.ParseError):
            return None
        failed = sum(c.find("failure") is not None or c.find("error") is not None for c in cases)
        skipped = sum(c.find("skipped") is not None for c in cases)
        return (len(cases) - failed - skipped, failed, skipped) if cases else None

    return count


def c_tests(tests, title, build, *which, setup=None):
    """The tests that meson knows of one build folder; WHICH: names, or options that choose. With SETUP those of its suite."""
    command = ["meson", "test", "-C", BUILD / build, "--no-rebuild", "--print-errorlogs", "--timeout-multiplier", "6", *which]
    name = "testlog"
    if setup:
        command += ["--setup", setup, "--suite", setup]
        name += f"-{setup}"
    tests.part(title, command, junit(BUILD / build / "meson-logs" / f"{name}.junit.xml"))


def names_of(build, long):
    """The C tests of a build folder that belong to the full run alone, or the others."""
    told = subprocess.run(["meson", "introspect", "--tests", BUILD / build], capture_output=True, text=True, check=True).stdout
    return [test["name"] for test in json.loads(told) if (test["name"] in FULL) == long]


def tell_long(path, most):
    """Name the tests of a JUnit file that take more than MOST seconds."""
    for case in ElementTree.parse(path).getroot().iter("testcase") if path.exists() else ():
        if float(case.get("time") or 0) > most:
            print(f"    more than {most} s, belongs to the full run: {case.get('classname')} {case.get('name')}, {case.get('time')} s")


def differential(tests, steps, runs=RUNS, copies=COPIES):
    """Each run has a seed of its own; a failed run's log ends with the arguments that repeat it."""
    each, title = -(-steps // runs), f"Differential test, {runs} x "
    program = BUILD / "release/test/differential"
    commands = {f"seed {s}": [program, "--steps", each, "--seed", s, "--without", LEFT_OUT] for s in range(seed(), seed() + runs)}
    title += f"{each} steps"
    if copies:
        commands[f"copies, seed {seed() + runs}"] = [program, "--copies", copies, "--seed", seed() + runs, "--without", LEFT_OUT]
        title += f" and {copies} copies"
    tests.programs(title, commands, {**os.environ, "HDF5_VOL_CONNECTOR": "h5cow"})


def kill(tests, kills):
    tests.programs("Kill -9", {"kills.py": [sys.executable, "-B", TEST / "kills.py", "--kills", kills]}, os.environ)


def crowds(tests, kills, seconds):
    """Several programs at one file, one crowd after the other: each has readers enough for all cores."""
    kill(tests, kills)
    for title, command in (
        ("Many readers", [TEST / "many.py", "--seconds", seconds]),
        ("Forgetting under fire", [TEST / "fire.py", "--kills", max(20, kills // 5)]),
        ("Histories at random", [TEST / "histories.py", "--count", max(10, kills // 10)]),
    ):
        tests.programs(title, {command[0].name: [sys.executable, "-B", *command]}, os.environ)


def from_outside(tests, title, path, env, *which):
    """pytest, a file of tests on each core and one more, since tests wait for the disk; what it skips is named. WHICH: options that
    choose tests."""
    xml = LOGS / f"{log_file(title).stem}.xml"
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-rsfE", "-p", "no:cacheprovider", f"--junit-xml={xml}", path]
    command += ["-n", str(os.cpu_count() + 1), "--dist", "loadfile", *which]
    tests.part(title, command, junit(xml), shown=r"SKIPPED", env=env)
    return xml


def suite_of_others(title, runner, *more, python=sys.executable, env=None):
    """A part: against its own native run. The results stay in LOGS for docs/conformance.md."""
    command = [python, "-B", TEST / runner[0], *runner[1:], "--logs", LOGS, *more]
    shown = r".*: (native|connector|gained|exception|LOST|not run)"
    return title, command, counted_line, shown, {"timeout": SUITE_TIMEOUT, "env": env}


def elsewhere(tests):
    """What ./dev has had tested in another Debian: a log each, which ends with a counted line if all went well."""
    for log in sorted((BUILD / "elsewhere").glob("*.log")):
        text = log.read_text(errors="replace")
        counts = counted_line(text) or (0, 1, 0)
        ended = re.search(r"^ended with exit code (\d+)$", text, re.M)
        if ended and counts[1] == 0:
            counts = (counts[0], 1, counts[2])
        tests.count(log.stem, counts)
        for line in text.splitlines():
            if re.search(r"skipped, since|SKIPPED|^\S.*: \d+ passed", line):
                print(f"    {line.strip()}")
        if counts[1]:
            tell(ended[1] if ended else "0", log, text)


def wheel(tests, fast):
    """The wheel with PyPI's modules, as dist/ has it: the package's tests, and h5py's own, for its HDF5."""
    from_outside(tests, "Wheel", TEST / "test_wheel.py", None)
    if "H5COW_WHEEL_VENV" not in os.environ:
        tests.count("Python package", (0, 0, 1))
        print("    SKIPPED: PyPI cannot be reached")
        return
    from_outside(tests, "Python package", TEST / "test_package.py", None)
    if fast:
        return
    venv = pathlib.Path(os.environ["H5COW_WHEEL_VENV"])
    plugin = next(venv.glob("lib/python3*/site-packages/h5cow/plugin"))
    filters = {**os.environ, "HDF5_PLUGIN_PATH": str(plugin), "H5COW_FILTER_PLUGINS": str(venv / "bin/python")}
    filters["PATH"] = f"{venv}/bin:{os.environ['PATH']}"
    from_outside(tests, "Filters of hdf5plugin", TEST / "test_filter_plugins.py", filters)
    tests.parts([suite_of_others(
        "h5py tests", ["run_pytest_suites.py", "h5py", "--suite", WHEEL_SUITE], python=venv / "bin/python",
        env={**os.environ, "HDF5_PLUGIN_PATH": str(plugin)},
    )])


def suites_of_others(tests, everything, only):
    parts = [suite_of_others(title, runner, *(["--all"] if everything and name in ("pytables", "xarray") else []))
             for name, (title, runner, quick) in SUITES.items() if (quick or everything) and (not only or name in only)]
    if everything:  # hours, and some of them use all cores
        for part in parts:
            tests.parts([part])
    else:
        tests.parts(parts)
        print("    only with ./dev test --suites: all of PyTables, xarray, netCDF4-python, tools that are not here")


def with_hdf5(tests, release, steps, short):
    """What is up to the HDF5 library, with the one that is here."""
    c_tests(tests, f"C tests with HDF5 {release}", "release", *(HDF5_TESTS if short else ()))
    from_outside(tests, "Files between HDF5 1 and 2", TEST / "test_between.py", None)
    # HDF5 2.2.0, as Debian builds it, ends in H5O_msg_flush while it copies a copy of a named type: differential --self
    # --copies 200 --seed 3087188194
    differential(tests, steps or (SHORT_STEPS if short else STEPS), copies=0)
    if not short:
        suite = f"h5py with HDF5 {release}"
        tests.parts([suite_of_others(suite, ["run_pytest_suites.py", "h5py", "--suite", suite])])


def write_docs(tests, wanted):
    if wanted and not tests.total[1]:
        subprocess.run([sys.executable, "-B", TEST / "conformance.py", LOGS], check=True)


def damage(tests):
    """More of what the C tests begin with; with sanitizers."""
    folder = BUILD / "sanitize"
    run = [folder / "test/damage", "--long", "--command", folder / "cli/h5cow"]
    env = {**os.environ, "HDF5_VOL_CONNECTOR": "h5cow", "HDF5_PLUGIN_PATH": str(folder / "connector")}
    tests.programs("Damaged files", {"tables, index, chunks": run, "anywhere": [*run, "--anywhere"]}, env)


def bounds(tests):
    """All pairs of library version bounds after all others."""
    folder = BUILD / "release"
    env = {**os.environ, "HDF5_VOL_CONNECTOR": "h5cow sync=off", "HDF5_PLUGIN_PATH": str(folder / "connector")}
    env |= {"H5COW_TEST_BOUNDS": "all", "H5COW_COMMAND": str(folder / "cli/h5cow")}
    tests.programs("Library version bounds", {"all pairs": [folder / "test/test_bounds"]}, env)


def bit_rot(tests):
    """Each byte of a small file, and more bits of a larger one than the C tests turn over."""
    folder = BUILD / "release"
    run = [folder / "test/bitrot", "--command", folder / "cli/h5cow", "--jobs", max(1, os.cpu_count() // 2)]
    env = {**os.environ, "HDF5_VOL_CONNECTOR": "h5cow", "HDF5_PLUGIN_PATH": str(folder / "connector")}
    tests.programs("Bit rot", {"small": [*run, "--part", "small"], "large": [*run, "--part", "large"]}, env)


def default_tier(tests, steps, kills):
    c_tests(tests, "C tests with ASan and UBSan", "sanitize", *names_of("sanitize", False))
    tell_long(BUILD / "sanitize/meson-logs/testlog.junit.xml", LONG_PROGRAM)
    tell_long(from_outside(tests, "Tests from outside", TEST, None, "-m", "not full"), LONG)
    differential(tests, steps or DEFAULT_STEPS, DEFAULT_RUNS, copies=0)
    kill(tests, kills or DEFAULT_KILLS)


def rest_of_full(tests, steps, kills, seconds, long):
    """What the default tier leaves out. The short C tests run here once more, without sanitizers."""
    elsewhere(tests)
    c_tests(tests, "C tests", "release")
    c_tests(tests, "C tests with ASan and UBSan, the long ones", "sanitize", *names_of("sanitize", True))
    c_tests(tests, "C tests under valgrind", "release", setup="valgrind")
    c_tests(tests, "C tests with threads under ThreadSanitizer", "threads", "workers", "threads")
    from_outside(tests, "Tests from outside, the long ones", TEST, None, "-m", "full")
    differential(tests, steps or (10 * STEPS if long else STEPS))
    crowds(tests, kills or (10 * KILLS if long else KILLS), seconds)
    if long:
        damage(tests)
        bounds(tests)
        bit_rot(tests)
    suites_of_others(tests, False, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all tests, not only those that are quick")
    parser.add_argument("--rest", action="store_true", help="what --full has beyond the default")
    parser.add_argument("--long", action="store_true", help="--full, with ten times as many random steps and more damaged files")
    parser.add_argument("--suites", action="store_true", help="only the test-suites of others, and more random steps")
    parser.add_argument("--wheel", action="store_true", help="only the wheel, and the Python package in it")
    parser.add_argument("--fast", action="store_true", help="with --wheel: what the default run has of it")
    parser.add_argument("--mpi", action="store_true", help="only programs of many processes, with the libhdf5 of each MPI")
    parser.add_argument("--browser", action="store_true", help="only the page of h5cow report, in a browser")
    parser.add_argument("--write-docs", action="store_true", help="with --suites, --wheel or --hdf5: write what was run into docs/conformance.md")
    parser.add_argument("--only", action="append", choices=SUITES, help="with --suites: only this one; several times")
    parser.add_argument("--steps", type=int, help=f"steps of the differential test (default {DEFAULT_STEPS}, of --full {STEPS}, with --suites {SUITES_STEPS})")
    parser.add_argument("--seed", type=int, help="where all random numbers begin (default: drawn anew)")
    parser.add_argument("--hdf5", help="2: only what is up to the HDF5 library, with that release (./dev builds with it)")
    parser.add_argument("--short", action="store_true", help="with --hdf5: what fits into a default run")
    parser.add_argument("--kills", type=int, help=f"kills of a writer (default {DEFAULT_KILLS}, of --full {KILLS})")
    parser.add_argument("--many", type=int, default=MANY, help=f"seconds of many readers (default {MANY})")
    arguments = parser.parse_args()
    full = arguments.full or arguments.long

    if arguments.seed is not None:
        os.environ["H5COW_TEST_SEED"] = str(arguments.seed)
    print(f"seed {seed()}; again: ./dev test --seed {seed()}", flush=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    for file in LOGS.glob("suite-*.json"):
        file.unlink()
    tests = Tests()
    if arguments.hdf5:
        with_hdf5(tests, arguments.hdf5, arguments.steps, arguments.short)
        write_docs(tests, arguments.write_docs)
        return tests.end()
    if arguments.mpi:
        from_outside(tests, "MPI", TEST / "test_mpi.py", None)
        return tests.end()
    if arguments.browser:
        from_outside(tests, "Browser: reports", TEST / "test_browser.py", None)
        from_outside(tests, "Browser: the site", TEST / "test_site.py", None)
        return tests.end()
    if arguments.wheel:
        wheel(tests, arguments.fast)
        write_docs(tests, arguments.write_docs)
        return tests.end()
    if arguments.suites:
        if not arguments.only:
            differential(tests, arguments.steps or SUITES_STEPS)
            from_outside(tests, "Tools", TEST / "test_tools.py", {**os.environ, "H5COW_SUITES": "1"})
            from_outside(tests, "Filters of Debian", TEST / "test_filter_plugins.py", None)
        suites_of_others(tests, True, arguments.only)
    else:
        if full or not arguments.rest:
            default_tier(tests, arguments.steps, arguments.kills)
        if full or arguments.rest:
            rest_of_full(tests, arguments.steps, arguments.kills, arguments.many, arguments.long)
    write_docs(tests, arguments.write_docs and arguments.suites)
    return tests.end()


if __name__ == "__main__":
    sys.exit(main())
