"""What the runners of others' test-suites share: run one natively and with the connector, compare test by test.

A result is a dict of test name -> outcome ('passed', 'failed' or 'skipped'). A test that passes natively and does not
pass with the connector is a failure of ours, whatever else happened; also one that is missing because the run died.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import conformance

OUTCOMES = ("passed", "failed", "skipped")


@dataclass
class Comparison:
    """Counts over the tests of the native run, and what got lost."""

    passed: int = 0
    skipped: int = 0
    lost: list = field(default_factory=list)  # (name, outcome with the connector, or 'missing')
    exceptions: list = field(default_factory=list)  # lost, and conformance.EXCEPTIONS says why
    gained: list = field(default_factory=list)  # failed natively, passed with the connector


def compare(native, connector, suite=None):
    """Judge each test: what passes natively must pass; what natively fails or skips counts as skipped, and so does an
    exception that conformance.py lists for SUITE."""
    result = Comparison()
    for name, expected in native.items():
        got = connector.get(name, "missing")
        if expected != "passed":
            result.skipped += 1
            if expected == "failed" and got == "passed":
                result.gained.append(name)
        elif got == "passed":
            result.passed += 1
        elif got in ("failed", "skipped") and conformance.reason(suite, name) is not None:
            result.skipped += 1
            result.exceptions.append(name)
        else:
            result.lost.append((name, got))
    return result


def tally(outcomes):
    """'777 passed, 3 failed, 5 skipped' of one run."""
    return ", ".join(f"{sum(o == kind for o in outcomes.values())} {kind}" for kind in OUTCOMES)


def environment(connector):
    """The environment of this process with the connector selected (a value for HDF5_VOL_CONNECTOR) or none."""
    env = {key: value for key, value in os.environ.items() if key != "HDF5_VOL_CONNECTOR"}
    if connector is not None:
        env["HDF5_VOL_CONNECTOR"] = connector
    return env


# Programs that write a dataset with history to probe.h5, by the module whose HDF5 library they use.
PROBES = {
    "h5py": "import h5py; f = h5py.File('probe.h5', 'w'); f['x'] = range(5000); f.close()",
    "tables": "import tables; f = tables.open_file('probe.h5', 'w'); f.create_array('/', 'x', list(range(5000))); f.close()",
    "netCDF4": "import netCDF4; f = netCDF4.Dataset('probe.h5', 'w'); f.createDimension('d', 5000);"
    " f.createVariable('x', 'i8', ('d',))[:] = range(5000); f.close()",
}


def require_connector(connector, module="h5py"):
    """Exit with one sentence unless MODULE really runs through the connector: HDF5 and the modules fall back to native
    silently, and each may bring an HDF5 library of its own.

    The proof is in the file: only the connector makes /_versioned_data, and only a native reader sees it.
    """
    with tempfile.TemporaryDirectory() as folder:
        read = "import h5py, sys; sys.exit('_versioned_data' not in h5py.File('probe.h5', 'r'))"
        made = subprocess.run(
            [sys.executable, "-c", PROBES[module]],
            cwd=folder,
            env=environment(connector),
            capture_output=True,
            text=True,
        )
        seen = subprocess.run([sys.executable, "-c", read], cwd=folder, env=environment(None), capture_output=True)
        if made.returncode != 0 or seen.returncode != 0:
            sys.stderr.write(made.stderr[-4000:])
            sys.exit(
                f"connector '{connector}' is not active in {module}: is the folder of libh5cow.so in HDF5_PLUGIN_PATH?"
            )


def counts(outcomes):
    return {kind: sum(o == kind for o in outcomes.values()) for kind in OUTCOMES}


def save(logs, suite, version, runs, whole=True, lost=(), exceptions=(), gained=()):
    """What conformance.py makes the page of. RUNS: 'native', 'connector' ... -> outcomes."""
    kept = {"suite": suite, "version": version, "whole": whole, "lost": list(lost)}
    kept |= {"exceptions": list(exceptions), "gained": list(gained)}
    kept |= {run: counts(outcomes) for run, outcomes in runs.items()}
    file = re.sub(r"\W+", "-", suite.lower())
    pathlib.Path(logs, f"suite-{file}.json").write_text(json.dumps(kept, indent=1))


def report(suite, version, native, connector, note="", logs=None, whole=True, others=None):
    """Print the comparison and the counted line that test/run.py reads; keep the result for the page in LOGS. WHOLE: not
    only a selection. OTHERS: runs that are only counted. The exit code: 0 where nothing got lost."""
    result = compare(native, connector, suite)
    print(f"{suite}: version {version}")
    print(f"{suite}: native    {tally(native)}")
    print(f"{suite}: connector {tally(connector)}{note}")
    for name, got in result.lost:
        print(f"{suite}: LOST {name}: passed natively, {got} with the connector")
    for name in result.exceptions:
        print(f"{suite}: exception {name}: see docs/conformance.md")
    for name in result.gained:
        print(f"{suite}: gained {name}")
    failed = len(result.lost)
    if not any(outcome == "passed" for outcome in native.values()):
        print(f"{suite}: nothing passed natively, so nothing was compared")
        failed += 1
    if logs is not None:
        runs = {"native": native} | (others or {}) | {"connector": connector}
        save(logs, suite, version, runs, whole, [name for name, _ in result.lost], result.exceptions, result.gained)
    print(f"{suite}: {result.passed} passed, {failed} failed, {result.skipped} skipped")
    return 1 if failed else 0
