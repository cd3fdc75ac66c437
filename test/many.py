#!/usr/bin/env python3
"""Many readers at a file that is written all the time.

usage: many.py [--seconds N] [--period MILLISECONDS]

One writer commits every 50 ms, by closing the file or by H5Fflush; 8 readers through the connector and 4 without it
open, read everything and close in loops, and now and then stay a while (crowd.py); `h5cow verify` runs all along.
No reader may see anything but one committed state; none through the connector may be refused, or see a state older
than the newest one when it opened; the others may be refused only while a commit is being applied. In the end every
version is there, and the file is not much larger than one that was written in the same way with nobody there.
"""

import argparse
import os
import pathlib
import random
import sys
import tempfile
import threading
import time

from crowd import CONNECTOR, Board, Readers, change, check, create, end, tell_readers, verify
from seeds import again, seed

if os.environ.get("HDF5_VOL_CONNECTOR") != "h5cow":
    os.execve(sys.executable, [sys.executable, "-B", *sys.argv], CONNECTOR)

import h5py

COUNTS = {"connector": 8, "stock": 4}
PER_OPENING = (1, 1, 1, 2, 3)  # commits; all but the last by a flush
MESSAGE = "unable to lock file"  # the one that is documented where nobody was killed


def write(path, board, dice, until, period):
    """Commit every PERIOD seconds, until UNTIL(commits). When each was begun and how long it took."""
    took, next_time, commits = [], time.monotonic(), 0
    while not until(commits):
        with h5py.File(path, "r+") as f:
            if check(f) != board.done:
                raise RuntimeError(f"the file has state {check(f)}, where {board.done} was committed")
            for left in reversed(range(dice.choice(PER_OPENING))):
                change(f, board.begun + 1, dice)
                board.begun += 1
                started = time.perf_counter()
                if left:
                    f.flush()
                    took.append(time.perf_counter() - started)
                    board.done = board.begun
                else:
                    f.close()
                    took.append(time.perf_counter() - started)
                    board.done = board.begun
                commits += 1
                next_time = max(next_time + period, time.monotonic() - period)
                time.sleep(max(0, next_time - time.monotonic()))
    return took


def verify_on(path, board, found):
    while not board.stop:
        found.append(verify(path))


def alone(folder, commits):
    """Bytes of a file that got as many commits with nobody there."""
    path, board = folder / "alone.h5", Board(folder / "alone-board")
    with h5py.File(path, "w") as f:
        create(f)
    write(path, board, random.Random(seed()), lambda done: done >= commits, 0)
    return path.stat().st_size


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--period", type=float, default=50, help="milliseconds from commit to commit")
    arguments = parser.parse_args()
    wrong, verified = [], []
    print(again())
    with tempfile.TemporaryDirectory(prefix="h5cow-many-") as folder:
        folder = pathlib.Path(folder)
        path, board_path = folder / "run.h5", folder / "board"
        board = Board(board_path)
        with h5py.File(path, "w") as f:
            create(f)
        readers = Readers(path, board_path, COUNTS, {"connector": 0.05, "stock": 0.05})
        verifier = threading.Thread(target=verify_on, args=(path, board, verified))
        started = time.monotonic()
        try:
            verifier.start()
            took = write(
                path, board, random.Random(seed()), lambda _: time.monotonic() - started > arguments.seconds,
                arguments.period / 1000,
            )  # fmt: skip
            seconds = time.monotonic() - started
            size = path.stat().st_size
            found = readers.end(board)
        except Exception as error:
            wrong.append(f"the writer: {type(error).__name__}: {error}")
            took, seconds, size, found = [0], 0, 0, []
        finally:
            board.stop = 1
            readers.kill()
            verifier.join()
        if (said := verify(path)) != 0:
            verified.append(said)
        wrong += [f"h5cow verify: {said}" for said in verified if said != 0]
        single = alone(folder, len(took))

    opens = tell_readers(found, wrong)
    ours = [reader for reader in found if reader["kind"] == "connector"]
    stock = [reader for reader in found if reader["kind"] == "stock"]
    refused = {}
    for reader in stock:
        for text, count in reader["refused"].items():
            refused[text] = refused.get(text, 0) + count
    if set(refused) - {MESSAGE}:
        wrong.append(f"readers without the connector were refused: {refused}")
    if [kind for kind, count in COUNTS.items() if sum(r["kind"] == kind for r in found) != count]:
        wrong.append("a reader is missing")
    if any(not reader["seen"] for reader in found):
        wrong.append("a reader saw nothing at all")
    if size > 2 * single + (16 << 20):
        wrong.append(f"the file has {size:,} bytes, {single:,} with nobody there")
    never = sum(error.startswith("open: ") for reader in ours for error in reader["errors"])
    took.sort()
    medians = sorted(reader["median"] for reader in ours) or [0]
    longest = max((reader["longest"] for reader in ours), default=0)
    print(
        f"{len(took):,} commits in {seconds:.0f} seconds, median {took[len(took) // 2] * 1000:.1f} ms; {size:,} bytes, "
        f"{single:,} with nobody there; verify ran {len(verified):,} times; refused without the connector: {refused}"
    )
    return end(
        8,
        f"1 writer, {COUNTS['connector']} readers through the connector, {COUNTS['stock']} without it, h5cow verify "
        f"all along, for {seconds:,.0f} seconds",
        f"{len(took):,} commits; {opens['connector']:,} and {opens['stock']:,} complete reads; "
        f"{len(wrong)} torn or wrong; {never} opens through the connector refused, they took "
        f"{medians[len(medians) // 2] * 1000:,.1f} ms (median) and {longest * 1000:,.0f} ms (longest) on "
        f"{os.cpu_count()} cores; {sum(refused.values()):,} opens without it refused "
        f"while a commit was applied; verify clean {sum(said == 0 for said in verified):,} times; "
        f"{size:,} bytes, {single:,} when nobody reads",
        f"test/many.py --seconds {arguments.seconds:.0f}",
        wrong,
    )


if __name__ == "__main__":
    sys.exit(main())
