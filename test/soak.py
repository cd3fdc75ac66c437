#!/usr/bin/env python3
"""The differential test with many seeds that nobody has tried.

usage: soak.py [--steps N] [--each N] [--minutes M] [--keep FOLDER]

Runs of --each steps, each with a fresh seed, on all cores, until there are --steps of them, or --minutes have gone by, or
it is told to end (SIGTERM): then what was done by then is the result.
What differs is told with the command that repeats it; the output of such a run is kept in --keep.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from conftest import BUILD, PLUGINS
from results import results

CONNECTOR = {**os.environ, "HDF5_VOL_CONNECTOR": "h5cow", "HDF5_PLUGIN_PATH": PLUGINS}


def one(seed, steps, keep):
    """Steps that were done, versions, comparisons, and what differed: None, or its report."""
    command = [BUILD / "test/differential", "--steps", str(steps), "--seed", str(seed)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=CONNECTOR,
        start_new_session=True,  # a signal for all of us lets it come to its end
    )
    told = re.search(r"^(\d+) steps, .*?(\d+) versions; compared: (\d+) trees, (\d+) versions .*?, (\d+) without", done.stdout, re.M)
    if done.returncode == 0 and told:
        numbers = [int(n) for n in told.groups()]
        return numbers[0], numbers[1], sum(numbers[2:]), None
    (keep / f"{seed}.log").write_text(done.stdout)
    where = re.search(r"at step (\d+)", done.stdout)
    found = re.search(r"^(DIFFERENCE.*\n.*|SIGNAL.*)", done.stdout, re.M)
    report = found.group(1) if found else f"exit code {done.returncode}: {done.stdout[-300:]}"
    return int(where.group(1)) if where else 0, 0, 0, report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--each", type=int, default=2_500)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--keep", type=pathlib.Path, default=BUILD.parent / "soak")
    arguments = parser.parse_args()
    arguments.keep.mkdir(parents=True, exist_ok=True)
    started, differences = time.monotonic(), []
    steps = versions = compared = seeds = 0

    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())

    def run(_):
        if ended.is_set() or (time.monotonic() - started) / 60 > arguments.minutes:
            return None
        seed = int.from_bytes(os.urandom(6), "little")
        return seed, one(seed, arguments.each, arguments.keep)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for outcome in pool.map(run, range(-(-arguments.steps // arguments.each))):
            if outcome is None:
                continue
            seed, (more, made, pairs, report) = outcome
            seeds, steps, versions, compared = seeds + 1, steps + more, versions + made, compared + pairs
            if report:
                differences.append(seed)
                print(f"{report}\n  again: differential --steps {arguments.each} --seed {seed}", flush=True)
            if seeds % 20 == 0:
                print(f"{seeds:,} seeds, {steps:,} steps, {len(differences)} differences", flush=True)
    told = (
        f"{steps:,} steps of {seeds:,} fresh seeds, {versions:,} versions, {compared:,} trees compared, {len(differences)} differences"
        + (f" (seeds {', '.join(map(str, differences))})" if differences else "")
    )
    what = "random programs of HDF5 calls, done to a native file and through the connector, with odd seeds with pieces of small chunks too; every answer, both trees and all versions compared"
    results(10, what, told, f"test/soak.py --steps {arguments.steps} --each {arguments.each}")
    print(told)
    print(f"{seeds - len(differences)} passed, {len(differences)} failed, 0 skipped")
    return 1 if differences or not seeds else 0


if __name__ == "__main__":
    sys.exit(main())
