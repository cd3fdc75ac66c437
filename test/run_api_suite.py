#!/usr/bin/env python3
"""HDF5's own API tests (h5_api_test), natively and with the connector: what native passes must pass.

usage: run_api_suite.py [--connector STRING] [--logs FOLDER]

HDF5 falls back to native when a connector does not load, so that is checked first, and the program's header line.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import suites

TIMEOUT = 900  # seconds; natively it takes less than one
RESULT = re.compile(r"(?:^|\s)(PASSED|\*FAILED\*|-SKIP-|\*WARNING\*)\s*$")
WORD = {"PASSED": "passed", "*FAILED*": "failed", "-SKIP-": "skipped", "*WARNING*": "passed"}


def parse(text):
    """Outcomes by name. A name is 'section / test' or 'section / test / part', with a number from the second such on.

    A result may stand on a line of its own, after messages that the test printed.
    """
    outcomes = {}
    seen = {}
    section = test = pending = ""
    for line in text.splitlines():
        if banner := re.match(r"^\*\s+API (\w+) Tests\s+\*$", line):
            section = banner[1]
            continue
        found = RESULT.search(line)
        if start := re.match(r"^( *)Testing (.*)$", line):
            title = re.split(r"\s{3,}", RESULT.sub("", start[2]).strip())[0]  # padded; progress may follow
            if start[1]:
                pending = f"{section} / {test} / {title}"
            else:
                test = title
                pending = f"{section} / {title}"
            seen[pending] = seen.get(pending, 0) + 1
            if seen[pending] > 1:
                pending += f" #{seen[pending]}"
            outcomes[pending] = None
        if found and pending:
            # One test of 1.14.5 says PASSED twice, and the program counts both.
            name = pending if outcomes[pending] is None else f"{pending} (again)"
            outcomes[name] = WORD[found[1]]
    # What is left without a result is the heading of a test with parts, or the test in which the program died.
    headings = {name.rsplit(" / ", 1)[0] for name in outcomes if name.count(" / ") == 2}
    return {
        name: outcome or "failed"
        for name, outcome in outcomes.items()
        if outcome is not None or re.sub(r" #\d+$", "", name) not in headings
    }


def header_names(text, connector):
    """Whether the program says that it ran with this connector."""
    name = connector.split()[0] if connector else "native"
    return f"Running API tests with VOL connector '{name}'" in text


def run(connector, log):
    """Outcomes of one run, and how it ended if not well."""
    with tempfile.TemporaryDirectory() as folder, open(log, "w") as out:
        try:
            code = subprocess.run(
                ["h5_api_test"],
                cwd=folder,
                env=suites.environment(connector),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT,
            ).returncode
            note = f"; ended by signal {-code}" if code < 0 else ""
        except subprocess.TimeoutExpired:
            note = f"; stopped after {TIMEOUT} seconds"
    text = pathlib.Path(log).read_text(errors="replace")
    if not header_names(text, connector):
        sys.exit(f"h5_api_test did not run with connector '{connector or 'native'}':\n{text[-2000:]}")
    return parse(text), note


def version():
    """Of the library that the program was made for."""
    return subprocess.run(["pkg-config", "--modversion", "hdf5"], capture_output=True, text=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connector", default="h5cow", help="value of HDF5_VOL_CONNECTOR (default: h5cow)")
    parser.add_argument("--logs", default=".", help="folder for the two logs (default: here)")
    arguments = parser.parse_args()
    logs = pathlib.Path(arguments.logs)
    suites.require_connector(arguments.connector)
    native, _ = run(None, logs / "api-native.log")
    connector, note = run(arguments.connector, logs / "api-connector.log")
    sys.exit(suites.report("HDF5 API tests", version(), native, connector, note, logs))


if __name__ == "__main__":
    main()
