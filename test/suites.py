"""What the runners of others' test-suites share: run one natively and with the connector, compare test by test.

A result is a dict of test name -> outcome ('passed', 'failed' or 'skipped'). A test that passes natively and does not
pass with the connector is a failure of ours, whatever else happened; also one that is missing because the run died.
"""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

OUTCOMES = ("passed", "failed", "skipped")


@dataclass
class Comparison:
    """Counts over the tests of the native run, and what got lost."""

    passed: int = 0
    skipped: int = 0
    lost: list = field(default_factory=list)  # (name, outcome with the connector, or 'missing')
    gained: list = field(default_factory=list)  # failed natively, passed with the connector


def compare(native, connector):
    """Judge each test: what passes natively must pass; what natively fails or skips counts as skipped."""
    result = Comparison()
    for name, expected in native.items():
        got = connector.get(name, "missing")
        if expected != "passed":
            result.skipped += 1
            if expected == "failed" and got == "passed":
                result.gained.append(name)
        elif got == "passed":
            result.passed += 1
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


def require_connector(connector):
    """Exit with one sentence unless h5py really runs through the connector: HDF5 and h5py fall back to native silently.

    The proof is in the file: only the connector makes /_versioned_data, and only a native reader sees it.
    """
    with tempfile.TemporaryDirectory() as folder:
        write = "import h5py; f = h5py.File('probe.h5', 'w'); f['x'] = range(5000); f.close()"
        read = "import h5py, sys; sys.exit('_versioned_data' not in h5py.File('probe.h5', 'r'))"
        made = subprocess.run(
            [sys.executable, "-c", write], cwd=folder, env=environment(connector), capture_output=True, text=True
        )
        seen = subprocess.run([sys.executable, "-c", read], cwd=folder, env=environment(None), capture_output=True)
        if made.returncode != 0 or seen.returncode != 0:
            sys.stderr.write(made.stderr[-4000:])
            sys.exit(f"connector '{connector}' is not active in h5py: is the folder of libh5cow.so in HDF5_PLUGIN_PATH?")


def report(suite, native, connector, note=""):
    """Print the comparison and the counted line that test/run.py reads. The exit code: 0 where nothing got lost."""
    result = compare(native, connector)
    print(f"{suite}: native    {tally(native)}")
    print(f"{suite}: connector {tally(connector)}{note}")
    for name, got in result.lost:
        print(f"{suite}: LOST {name}: passed natively, {got} with the connector")
    for name in result.gained:
        print(f"{suite}: gained {name}")
    failed = len(result.lost)
    if not any(outcome == "passed" for outcome in native.values()):
        print(f"{suite}: nothing passed natively, so nothing was compared")
        failed += 1
    print(f"{suite}: {result.passed} passed, {failed} failed, {result.skipped} skipped")
    return 1 if failed else 0
