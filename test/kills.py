#!/usr/bin/env python3
"""kill -9 in a loop: an h5py writer that knows nothing of it, readers with and without the connector all along.

usage: kills.py [--kills N]

The writer opens, changes everything, sometimes flushes, closes, and begins again, until it is killed at a random
moment; then the next one goes on. No reader may ever see anything but a committed state (crowd.py). What was not
there after a kill may never have been seen by anybody; whatever was reported as committed is there, and for good,
as a version of its own when it was closed; and `h5cow verify` finds nothing. One kill in ten hits a writer that
creates its file.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from crowd import BUILD, CONNECTOR, Board, Readers, change, check, create, end, tell_readers, verify
from seeds import again, seed

if os.environ.get("HDF5_VOL_CONNECTOR") != "h5cow":
    os.execve(sys.executable, [sys.executable, "-B", *sys.argv], CONNECTOR)

import h5py  # writers are forked from this process; it never opens a file itself

ROUND = 0.025  # seconds of a writer's round, forked and alone, where a writer lives
LIFE = 0.1  # seconds at most, a few rounds, and
BIRTH = 0.04  # one that creates its file so many; more where a round takes longer


# ---- in processes of their own ----


def write_on(path, board, tell, dice):
    """The writer's loop."""
    while True:
        f = h5py.File(path, dice.choice(("r+", "a")))
        tell("start", check(f))
        number = board.begun
        for left in reversed(range(dice.choice((1, 1, 2, 3)))):
            number += 1
            change(f, number, dice)
            board.begun = number
            if left:
                f.flush()
                board.done = number
                tell("flushed", number)
        f.close()
        board.done = number
        tell("closed", number)


def create_and_write_on(path, board, tell, dice):
    """The same from nothing, or from what is left of an earlier attempt."""
    f = h5py.File(path, "a" if board.done else dice.choice(("a", "w")))
    if "number" not in f.attrs:
        create(f)
    number = board.begun + 1
    change(f, number, dice)
    board.begun = number
    f.close()
    board.done = number
    tell("closed", number)
    write_on(path, board, tell, dice)


def make(path):
    with h5py.File(path, "w") as f:
        create(f)


def go_on(path):
    """The next start of a program that knows nothing: the states before it and after it."""
    with h5py.File(path, "a") as f:
        before = check(f) if "number" in f.attrs else None
        if before is None:
            create(f)
        change(f, 1000)
    with h5py.File(path, "r") as f:
        return before, check(f)


def numbers_of(path, versions):
    """The states of all versions, each read completely."""
    found = []
    for version in versions:
        with h5py.File(f"{path}@{version}", "r") as f:
            found.append(check(f))
    return found


def fork(work, *arguments):
    """Start WORK. Its process, and a pipe with the lines that it tells."""
    ours, its = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ours)
            tell = lambda *words: os.write(its, (json.dumps(words) + "\n").encode())
            work(tell, *arguments)
        except BaseException as error:
            tell("error", f"{type(error).__name__}: {error}")
        os._exit(0)
    os.close(its)
    return pid, os.fdopen(ours)


def lines_of(pid, pipe):
    with pipe:
        lines = [json.loads(line) for line in pipe]
    os.waitpid(pid, 0)
    return lines


def killed(work, path, board, seed, delay, awaited=None):
    """A writer that is killed after DELAY, or when AWAITED said so a moment ago; what it told."""
    pid, pipe = fork(lambda tell: work(path, board, tell, random.Random(seed)))
    if awaited is None:
        time.sleep(delay)
    else:
        end = time.monotonic() + 5 * LIFE
        while time.monotonic() < end and not awaited():
            time.sleep(0.0002)
        time.sleep(delay / 60)
    os.kill(pid, signal.SIGKILL)
    return lines_of(pid, pipe)


def result_of(work, *arguments):
    """(result, None) or (None, error)."""
    [(kind, text)] = lines_of(*fork(lambda tell: tell("result", work(*arguments))))
    return (text, None) if kind == "result" else (None, text)


# ---- what they say, and what must follow ----


def flagged(path):
    """Is the superblock marked as being written? Then a commit is being applied."""
    try:
        with open(path, "rb") as file:
            head = file.read(12)
    except FileNotFoundError:
        return False
    return head[:4] == b"\x89HDF" and head[11] & 1 == 1


class Story:
    """Of one file, from kill to kill."""

    def __init__(self, path, board, wrong):
        self.path, self.board, self.wrong = path, board, wrong
        self.closed, self.flushed, self.lost = set(), set(), set()
        self.question = (board.done, board.begun)  # which of them is there? the next one to look knows
        self.counts = {"in a commit": 0, "while applying": 0, "committed, not reported": 0, "lost": 0}

    def look(self, number):
        done, begun = self.question
        if number not in (done, begun):
            self.wrong.append(f"state {number} was found, where {done} was committed and {begun} begun")
        elif begun != done:
            self.counts["committed, not reported" if number == begun else "lost"] += 1
            if number != begun:
                self.lost.add(begun)
        self.question = (number, number)

    def kill(self, work, seed, delay, moment="any"):
        begun, was_flagged = self.board.begun, flagged(self.path)
        awaited = {
            "any": None,
            "commit": lambda: self.board.begun != begun,
            "apply": lambda: self.board.begun != begun and flagged(self.path),
        }[moment]
        for kind, what in killed(work, self.path, self.board, seed, delay, awaited):
            if kind == "error":
                self.wrong.append(f"the writer: {what}")
            elif kind == "start":
                self.look(what)
            else:
                (self.closed if kind == "closed" else self.flushed).add(what)
                self.question = (what, what)
        if self.board.begun != begun:  # it got so far
            self.question = (max(self.question[0], self.board.done), self.board.begun)
            self.counts["in a commit"] += self.board.begun != self.board.done
        self.counts["while applying"] += flagged(self.path) and not was_flagged


def slowness(folder):
    """How many times longer than expected a round takes here and now."""
    started = time.monotonic()
    for number in range(4):
        _, error = result_of(go_on, folder / "slow.h5")
        assert error is None, error
    return min(10, max(1, (time.monotonic() - started) / 4 / ROUND))


def one_file(folder, kills, dice, wrong):
    """Most kills: one file that exists, with readers. The story, the readers' findings, the number of versions."""
    path, board_path = folder / "run.h5", folder / "board"
    board = Board(board_path)
    _, error = result_of(make, path)
    assert error is None, error
    life = LIFE * slowness(folder)
    story = Story(path, board, wrong)
    readers = Readers(path, board_path, {"connector": 2, "stock": 2}, {"connector": 0.05, "stock": 0.1})
    try:
        for _ in range(kills):
            moment = dice.choice(("any", "any", "any", "commit", "apply"))  # else few would hit the applying
            story.kill(write_on, dice.random(), dice.uniform(0, life), moment)
            if wrong:
                break
        found = readers.end(board)
    finally:
        readers.kill()
    for reader in found:
        if gone := set(reader["seen"]) & story.lost:
            wrong.append(f"a reader ({reader['kind']}) saw {sorted(gone)}, which were not there after a kill")
    done = subprocess.run([BUILD / "cli/h5cow", "log", "--json", path], capture_output=True, text=True)
    versions = [version["name"] for version in json.loads(done.stdout or "[]")]
    there, error = result_of(numbers_of, path, versions)
    if error:
        wrong.append(f"reading every version: {error}")
    else:
        if missing := story.closed - set(there):
            wrong.append(f"closed, and among no versions: {sorted(missing)}")
        if there != sorted(set(there), reverse=True):
            wrong.append(f"versions out of order: {there}")
        if back := set(there) & story.lost:
            wrong.append(f"not there after a kill, and now a version: {sorted(back)}")
    if (said := verify(path)) != 0:
        wrong.append(f"h5cow verify: {said}")
    return story, found, len(versions)


def new_files(folder, kills, dice, wrong):
    """Kills while a file is created; then a program's next start. How many of them found nothing, and something."""
    found, birth = {"nothing": 0, "something": 0}, BIRTH * slowness(folder)
    for number in range(kills):
        path, board = folder / f"new-{number}.h5", Board(folder / f"board-{number}")
        story = Story(path, board, wrong)
        for _ in range(dice.choice((1, 1, 2))):
            story.kill(create_and_write_on, dice.random(), dice.uniform(0, birth))
            if story.board.begun != story.board.done:
                break  # which of them it is, only who looks without writing could say
        states, error = result_of(go_on, path)
        if error or states[1] != 1000:
            wrong.append(f"after a file was created: {error or states}")
            continue
        if states[0] is not None:
            story.look(states[0])
        elif board.done:
            wrong.append(f"a new file was lost after state {board.done} was committed")
        found["nothing" if states[0] is None else "something"] += 1
        if (said := verify(path)) != 0:
            wrong.append(f"h5cow verify of a new file: {said}")
        path.unlink()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    arguments = parser.parse_args()
    dice, wrong, started = random.Random(seed()), [], time.monotonic()
    print(again())
    births = arguments.kills // 10
    with tempfile.TemporaryDirectory(prefix="h5cow-kills-") as folder:
        folder = pathlib.Path(folder)
        story, readers, versions = one_file(folder, arguments.kills - births, dice, wrong)
        size = (folder / "run.h5").stat().st_size
        created = new_files(folder, births, dice, wrong)

    opens = tell_readers(readers, wrong)
    print(f"{arguments.kills:,} kills, {births:,} of them while creating, in {time.monotonic() - started:.0f} seconds")
    print(f"of one file: {story.counts}; {len(story.closed):,} closed, {len(story.flushed):,} flushed")
    print(f"{versions:,} versions, {size:,} bytes; new files: {created}")
    return end(
        3,
        "an h5py writer killed at random moments, with 2 readers through the connector and 2 without it all along",
        f"{arguments.kills:,} kills, {story.counts['in a commit']:,} of them in a commit "
        f"({story.counts['while applying']:,} while it was applied), {births:,} while the file was created; "
        f"{opens['connector']:,} and {opens['stock']:,} complete reads; "
        f"{len(story.closed) + len(story.flushed):,} commits were reported; {versions:,} versions verified; "
        f"{len(wrong)} mixtures, losses or damages",
        f"test/kills.py --kills {arguments.kills}",
        wrong,
    )


if __name__ == "__main__":
    sys.exit(main())
