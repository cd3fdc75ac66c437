"""Many programs at one file: what kills.py and many.py have in common.

Every state of the file has a number, and all of its content follows from that number, so that a reader notices a
mixture of states. A board in shared memory has the number of the newest commit that returned ("done") and of the
newest that was begun: a reader through the connector must see one from done, as it was before opening, to begun, as
it is afterwards. One without the connector may also see an older one, or be refused with one of two messages.

crowd.py KIND FILE BOARD SEED is such a reader: it opens, reads all, checks, closes, until the board says stop; and
now and then it keeps the file open and reads it again.
"""

import collections
import json
import mmap
import random
import subprocess
import sys
import time

import h5py
import numpy as np
from conftest import BUILD, PLUGINS, STOCK
from waiting import WAITING
from results import results

CONNECTOR = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS, "HDF5_VOL_CONNECTOR": "h5cow"}
WITHOUT = {**STOCK, "HDF5_PLUGIN_PATH": "/nowhere"}

# What HDF5 without the connector says, and why it may.
REFUSALS = {
    "unable to lock file": "a commit is being applied",
    "file is already open for write": "a program was killed while it applied a commit",
}


class Torn(Exception):
    """Something that is no state of the file."""


# ---- content ----


def series(number):
    return number * 1_000_000 + np.arange(400 + number % 7 * 50, dtype="i8")


def picture(number):
    return np.full((40, 50), number, "i4")


def note(number):
    return f"state {number} " * (number % 5 + 1)


def create(f):
    f.create_dataset("series", data=series(0), chunks=(64,), maxshape=(None,))
    f.create_dataset("picture", data=picture(0), chunks=(16, 16), compression="gzip")
    f.create_dataset("g/t0", data=[0])
    f["g"].attrs["number"] = 0
    f.attrs["note"] = note(0)
    f.attrs["number"] = 0


def change(f, number, order=random):
    """From the state that the file has to that of NUMBER, in any order."""

    def whole_series():
        f["series"].resize(series(number).shape)
        f["series"][:] = series(number)

    def whole_picture():
        f["picture"][...] = picture(number)

    def members():
        for name in list(f["g"]):
            del f["g"][name]
        f["g"].create_dataset(f"t{number}", data=[number])

    def attributes():
        f["g"].attrs["number"] = number
        f.attrs["note"] = note(number)

    def numbered():
        f.attrs["number"] = number

    steps = [whole_series, whole_picture, members, attributes, numbered]
    order.shuffle(steps)
    for step in steps:
        step()


def check(f):
    """The number of the state that the open file or group shows."""
    number = int(f.attrs["number"])
    wrong = []
    if not np.array_equal(f["series"][:], series(number)):
        wrong.append("series")
    if not np.array_equal(f["picture"][...], picture(number)):
        wrong.append("picture")
    if list(f["g"]) != [f"t{number}"] or f["g"][f"t{number}"][0] != number:
        wrong.append("members")
    if f["g"].attrs["number"] != number or f.attrs["note"] != note(number):
        wrong.append("attributes")
    if wrong:
        raise Torn(f"state {number} has {', '.join(wrong)} of another one")
    return number


# ---- the board ----


class Board:
    """Three numbers that processes share."""

    def __init__(self, path):
        with open(path, "a+b") as file:
            file.truncate(24)
            self.numbers = memoryview(mmap.mmap(file.fileno(), 24)).cast("q")

    done = property(lambda self: self.numbers[0], lambda self, value: self.numbers.__setitem__(0, value))
    begun = property(lambda self: self.numbers[1], lambda self, value: self.numbers.__setitem__(1, value))
    stop = property(lambda self: self.numbers[2], lambda self, value: self.numbers.__setitem__(2, value))


# ---- readers ----


def read_on(kind, path, board, seed, pause):
    """Read until told to stop. What was found, for the one who started this."""
    dice = random.Random(seed)
    refused, errors, seen, opens, again, waits = collections.Counter(), [], set(), 0, 0, []
    while not board.stop and len(errors) < 10:
        done, started = board.done, time.perf_counter()
        try:
            f = h5py.File(path, "r")
        except OSError as error:
            why = next((text for text in REFUSALS if text in str(error)), None)
            if kind == "stock" and why:
                refused[why] += 1
            else:
                errors.append(f"open: {error}")
            time.sleep(0.001)
            continue
        waits.append(time.perf_counter() - started)
        opens += 1
        try:
            with f:
                number = check(f)
                if number > board.begun or (kind == "connector" and number < done):
                    raise Torn(f"state {number} was seen when {done} was committed and {board.begun} begun")
                seen.add(number)
                for _ in range(dice.choice((0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2))):
                    time.sleep(dice.uniform(0, 0.15))
                    if check(f) != number:
                        raise Torn(f"state {number} became another one while the file was open")
                    again += 1
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
        time.sleep(dice.uniform(0, pause))
    waits.sort()
    return {
        "kind": kind, "opens": opens, "again": again, "refused": dict(refused), "errors": errors, "seen": sorted(seen),
        "median": waits[len(waits) // 2] if waits else 0, "longest": waits[-1] if waits else 0,
    }  # fmt: skip


class Readers:
    """Readers in processes of their own."""

    def __init__(self, path, board_path, counts, pauses):
        self.processes = []
        for kind, count in counts.items():
            for i in range(count):
                words = [sys.executable, "-B", __file__, kind, path, board_path, len(self.processes) + 1, pauses[kind]]
                env = CONNECTOR if kind == "connector" else WITHOUT
                command = [str(word) for word in words]
                self.processes.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))

    def end(self, board):
        """Their findings."""
        board.stop = 1
        found = []
        for process in self.processes:
            out, _ = process.communicate(timeout=WAITING)
            if process.returncode != 0:
                found.append({"kind": "?", "opens": 0, "errors": [f"it ended with {process.returncode}"], "seen": []})
            else:
                found.append(json.loads(out))
        return found

    def kill(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def verify(path):
    """0 or what h5cow verify says."""
    command = [BUILD / "cli/h5cow", "verify", path]
    done = subprocess.run(command, env=CONNECTOR, capture_output=True, text=True)
    return 0 if done.returncode == 0 else (done.stdout + done.stderr).strip() or f"exit code {done.returncode}"


def tell_readers(found, wrong):
    """Print what readers have found; what is wrong with it is added to WRONG. Complete reads of each kind."""
    opens = collections.Counter()
    for reader in found:
        wrong += [f"a reader ({reader['kind']}): {error}" for error in reader["errors"]]
        shown = {key: value for key, value in reader.items() if key not in ("seen", "errors")}
        print(f"reader: {shown}, {len(reader['seen']):,} different states")
        opens[reader["kind"]] += reader["opens"]
    return opens


def end(item, what, result, command, wrong):
    """Print what is wrong; a line for docs/reliability.md. The exit code."""
    for line in wrong[:20]:
        print(f"WRONG: {line}")
    results(item, what, result, command)
    return 1 if wrong else 0


def main():
    kind, path, board, seed, pause = sys.argv[1:]
    print(json.dumps(read_on(kind, path, Board(board), int(seed), float(pause))))


if __name__ == "__main__":
    main()
