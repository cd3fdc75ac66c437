#!/usr/bin/env python3
"""Planted bugs: proves that the tests can fail. Needs a build with -Dplanted=true, where H5COW_PLANTED names the bug
that is active (connector/planted.h).

usage: planted.py BUILD [--only NAME]... [--all]

First every test must pass without a bug. Then for each bug the tests run that shall catch it, the shortest first, until
one fails. A bug that none of them catches is a failure of this program. --all: goes on after the first that fails.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from results import results

TEST = pathlib.Path(__file__).resolve().parent
TIMEOUT = 300  # seconds; a test that hangs has caught the bug as well


def crash(*scenarios):
    """Power cuts in some scenarios: few damages are enough for a bug."""
    return [f"crash --damages 4 --scenario {scenario}" for scenario in scenarios]


CRASH = crash("create", "create_and_flush", "rewrite", "pins_move", "failed_sync", "shrink", "applied_late")
JOURNAL = ["test_journal"]

# Bug -> (what it does, the tests that shall catch it). A test is a program in BUILD/test with its arguments; of a
# Python program (NAME.py) it is TEST/NAME.py.
BUGS = {
    "skip_sync_1": ("the extent is not synced before the slot", CRASH),
    "skip_sync_2": ("a commit is reported before its slot is synced", CRASH),
    "swap_slot_and_sync": ("the slot is written before the sync of what it names", CRASH),
    "skip_sync_of_pages": ("no sync between the pages and the clean superblock", CRASH),
    "no_flag_before_pages": ("pages are applied without the flag in the superblock", CRASH),
    "superblock_clean_with_pages": ("the clean superblock goes with the pages", CRASH),
    "reuse_live_slot": ("a slot is written into the block of the newest one", CRASH),
    "reuse_dying_extent": ("an extent is used again before the slot that let go of it is durable", CRASH),
    "other_slot_forgotten": ("recovery does not keep the extents of the older slot", CRASH + JOURNAL),
    "extent_unchecked": ("the hash of an extent is not checked", JOURNAL + CRASH),
    "slot_unchecked": ("the checksum of a slot is not checked", JOURNAL + CRASH),
    "shrinking_end_unprotects": ("a shrinking end of the file lowers what is protected", crash("shrink") + CRASH),
    "write_through": ("writes below the protected end go to the file", CRASH),
    "apply_under_pin": ("a commit is applied although a reader pinned an older state", JOURNAL),
    "late_pin_not_seen": ("a pin that came during the commit is not looked for", JOURNAL),
    "apply_under_stock_reader": ("a commit is applied under the shared lock of a stock reader", JOURNAL),
    "upgrade_shared_lock": ("applying takes a shared lock, to upgrade it later", JOURNAL),
    "shared_writer_lock": ("the writer's lock is shared", JOURNAL),
    "trust_unsynced": ("recovery applies a record that nobody synced", JOURNAL),
    "slot_not_renewed": ("a pending commit is applied although its slot may never reach the disk", JOURNAL),
    "superblock_not_restored": ("a superblock that a crash left flagged stays so", CRASH),
    "failed_commit_stays": ("the slot of a commit that failed is not voided", crash("failed_sync")),
    "voided_slot_not_synced": ("a writer goes on before a voided slot is on the disk", JOURNAL),
    "cut_tail_too_early": ("extents that the older slot needs are cut off", CRASH),
    "commit_from_flush": ("HDF5's truncation, which a flush reaches, commits", JOURNAL + CRASH),
    "child_commits": ("a forked child commits what its parent wrote", JOURNAL),
    "reuse_pinned_space": ("space that a pinned state can see is written directly", JOURNAL),
    "refused_writer_truncates": ("O_TRUNC before the lock is held", JOURNAL),
    "no_fence": ("the superblock on disk has no fence", CRASH + JOURNAL),
    "not_looked_again_after_pin": ("a reader does not read the slots again after it pinned", JOURNAL),
    "older_pin_is_kept": ("a reader that pinned an older state keeps that pin", JOURNAL),
    "unpublished_is_read": ("a reader takes a slot that is not published yet", JOURNAL),
    "no_room_reserved": ("no room is reserved for a commit's record", JOURNAL),
    "file_not_looked_at": ("nobody looks whether the file was replaced or cut", JOURNAL),
    "head_before_history": ("the head is committed before its version is made", ["points"]),
    "sum_unchecked": ("checksums of small datasets and attributes are not checked", ["bitrot --part small --every 100"]),
    "chunk_unchecked": ("the checksum of a chunk is not checked", ["damage --mutations 60"]),
    "node_unchecked": ("the checksum of an index node is not checked", ["test_index", "damage --mutations 200"]),
}
# These run on the connector; all others must not.
THROUGH_CONNECTOR = ("damage", "bitrot", "points")


class Runner:
    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.log = tempfile.TemporaryFile("w+", errors="replace")

    def run(self, test, bug=None):
        """What made TEST fail, in a few words; None: it passed."""
        name, *arguments = test.split()
        command = [self.build / "test" / name] if not name.endswith(".py") else [sys.executable, "-B", TEST / name]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("HDF5_", "H5COW_"))}
        if name.split(".")[0] in THROUGH_CONNECTOR:  # HDF5 looks for plugins even where none is selected
            env.update(HDF5_PLUGIN_PATH=str(self.build / "connector"), HDF5_VOL_CONNECTOR="h5cow")
        if bug is not None:
            env["H5COW_PLANTED"] = bug
        self.log.seek(0)
        self.log.truncate()
        try:
            code = subprocess.run(
                [*command, *arguments], env=env, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, timeout=TIMEOUT
            ).returncode
        except subprocess.TimeoutExpired:
            return "hangs"
        if code == 0:
            return None
        self.log.seek(0)
        return reason(self.log.read()) or f"exit code {code}"


def reason(text):
    """The first line that says what is wrong."""
    for pattern in (r"FAILED  \] (test_\w+)", r"operation \d+, [^:]*: (.*)", r": (state \d+ .*)", r"(Assertion .*)", r"(wrong .*)"):
        found = re.search(pattern, text)
        if found:
            return re.sub(r"/\S*/", "", found.group(1))[:90]
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:90] if lines else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    bugs = {name: BUGS[name] for name in (arguments.only or BUGS)}
    runner = Runner(arguments.build)
    failed = 0

    for test in dict.fromkeys(t for _, tests in bugs.values() for t in tests):
        why = runner.run(test)
        if why:
            print(f"without any bug {test} fails: {why}", flush=True)
            failed += 1
    if failed:
        return 1
    for name, (what, tests) in bugs.items():
        started, caught = time.monotonic(), []
        for test in tests:
            why = runner.run(test, name)
            if why:
                caught.append(f"{test}: {why}")
                if not arguments.all:
                    break
        failed += not caught
        print(f"{name:30} {'; '.join(caught) or 'NOT CAUGHT'} ({time.monotonic() - started:.1f} s)", flush=True)
    print(f"{len(bugs) - failed} passed, {failed} failed, 0 skipped")
    if not arguments.only:
        result = f"{len(bugs) - failed} of {len(bugs)} caught"
        results(6, f"{len(bugs)} bugs planted, one at a time", result, "test/planted.py BUILD")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
