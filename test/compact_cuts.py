#!/usr/bin/env python3
"""Power cuts and kills in the middle of `h5cow gc --compact`: at the file's name is the old file, or the new one, whole.

usage: compact_cuts.py [--states N]    about N power cuts (2000), and N / 160 kills

recorded_calls.c notes every call of the command, and of the processes that it starts, which changes something in the file's
folder. After each of these calls the power may go. What the folder may then hold, as on any file system with a journal for
names:

  * Names: creating, renaming and removing are on the disk in the order in which they were done; those before a sync of the
    folder for sure, of the others the first few, or none. No sync of a file brings its name along.
  * Bytes: what was done to a file before fsync or fdatasync of it is there for sure. Of what came later any part may be there:
    each write as a whole, not at all, some of its sectors of 512 bytes, or only the length that the file got by it; each
    change of length or not. A name may be there long before the bytes.
  * Permissions and extended attributes: as bytes, but fdatasync does nothing for them.

Where there are few such states all are looked at, else random ones; more of them where what is at the file's name is not all on
the disk. For each: FILE is the old one or the finished one, byte by byte; or the command finds no damage in it and the same
versions, tags and content. Its permissions are those that it had. Nothing else is there but the unfinished file. After some of
them, and after every kill, `gc --compact` has to work again, and to leave nothing behind. When the command has ended well, the
new file is there for good; until then nobody else could write to it.
"""

import argparse
import collections
import ctypes
import hashlib
import itertools
import json
import math
import os
import pathlib
import random
import signal
import stat
import struct
import subprocess
import sys
import tempfile

from conftest import BUILD, PLUGINS, STOCK
from results import results
from seeds import again, seed

H5COW = BUILD / "cli/h5cow"
RECORDER = BUILD / "test/librecorded_calls.so"
SECTOR = 512
MOST_WRONG = 5  # then it is enough
PR_SET_CHILD_SUBREAPER = 36

# Each step of this history is a version.
WRITER = """
import sys, h5py, numpy as np
path, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for n in range(first, last):
    with h5py.File(path, "a") as f:
        if n == 0:
            f.create_dataset("x", data=np.arange(4000.), chunks=(200,), maxshape=(None,))
            f.create_dataset("g/z", (40, 100), "i4", chunks=(10, 25), compression="gzip", shuffle=True)
            f.create_dataset("names", (30,), h5py.string_dtype(), chunks=(10,))
            f["g/fixed"] = np.array([b"one", b"two"])
            f["link"] = h5py.SoftLink("/g/z")
        f["x"][n * 300 : n * 300 + 250] = -n
        f["x"].resize((4000 + n,))
        f["g/z"][n] = np.arange(100) * n
        f["names"][n] = f"text {n} " * n
        f["g"].attrs["n"] = n
        f["x"].attrs["note"] = "a longer text of an attribute " * n
        f[f"new/{n}"] = np.arange(n + 1)
"""
READER = "import sys, h5py\nwith h5py.File(sys.argv[1], 'r'):\n    print('open', flush=True)\n    sys.stdin.read()\n"


def run(words, env=STOCK, **more):
    return subprocess.run([str(word) for word in words], env=env, capture_output=True, text=True, **more)


def h5cow(*words):
    done = run([H5COW, *words])
    assert done.returncode == 0, f"h5cow {words[0]}: {(done.stderr or done.stdout).strip()}"
    return done.stdout


def python(code, *words, **more):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        env={**STOCK, "HDF5_PLUGIN_PATH": PLUGINS, "HDF5_VOL_CONNECTOR": "h5cow"}, **more,
    )  # fmt: skip


def go_on(path, first, last):
    assert python(WRITER, path, first, last).wait() == 0


# ---- files as they are ----


class File:
    """DATA: its bytes; ABOUT: who may use it, and its extended attributes."""

    def __init__(self, data, about):
        self.data, self.about = data, about

    @classmethod
    def read(cls, path):
        found = path.stat()
        about = {"mode": stat.S_IMODE(found.st_mode), "owner": (found.st_uid, found.st_gid)}
        about.update({name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith("user.")})
        return cls(path.read_bytes(), about)

    def write(self, path):
        path.write_bytes(self.data)
        for name, value in self.about.items():
            if name == "mode":
                path.chmod(value)
            elif name == "owner":
                os.chown(path, *value)
            else:
                os.setxattr(path, name, value)


def digest(file):
    return hashlib.blake2b(file.data, key=str(file.about).encode()[:64]).digest()


def files_in(folder):
    return {path.name: File.read(path) for path in folder.iterdir()}


def unfinished_of(path):
    """The new file's name, as docs/command.md has it."""
    return f".h5cow-compact-{path.stat().st_ino:x}.tmp"


def put(folder, files, name):
    """Write FILES to FOLDER, which is empty. FILE has another inode there, so the unfinished file gets another name."""
    path = folder / name
    files[name].write(path)
    others = [file for other, file in files.items() if other != name]
    assert len(others) <= 1
    for file in others:
        file.write(folder / unfinished_of(path))
    return path


# ---- what was called ----


class Call:
    """What recorded_calls.c notes. CUTS: where a power cut may tear the data. FATES: how many things may become of the call.
    0: it is lost; FATES - 1: all of it is there; of a write FATES - 2: only the length, others: bits that name sectors."""

    def __init__(self, kind, inode, offset, size, name, to, data):
        self.kind, self.inode, self.offset, self.size, self.name, self.to, self.data = kind, inode, offset, size, name, to, data
        self.cuts, self.fates = [], 2
        if kind == "w":
            self.cuts = [0, *range(-offset % SECTOR or SECTOR, len(data), SECTOR), len(data)]
            self.fates = 2 ** (len(self.cuts) - 1) + 1


def recording(folder, log, **more):
    """The environment in which what changes FOLDER is noted in LOG."""
    log.unlink(missing_ok=True)
    return {**STOCK, "LD_PRELOAD": str(RECORDER), "RECORDED_FOLDER": str(folder), "RECORDED_LOG": str(log), **more}


def recorded(words, folder, log, **more):
    """Run the command so; its exit code, when all that it has started has ended, and what it said."""
    done = run([H5COW, *words], recording(folder, log, **more), start_new_session=True)
    try:
        while os.waitpid(-1, 0):
            pass
    except ChildProcessError:
        return done.returncode, done.stderr


def calls_of(log):
    text = log.read_bytes()
    (count,), at, calls = struct.unpack_from("<q", text), 8, []
    while at < len(text):
        kind, inode, offset, size, length, name, to = struct.unpack_from("<5q256s256s", text, at)
        at += struct.calcsize("<5q256s256s")
        names = [one.partition(b"\0")[0].decode() for one in (name, to)]
        calls.append(Call(chr(kind), inode, offset, size, *names, text[at : at + length]))
        at += length
    assert len(calls) == count
    return calls


# ---- what a power cut leaves ----


def lengthen(data, size):
    data.extend(bytes(max(0, size - len(data))))


def store(data, offset, new):
    lengthen(data, offset)
    data[offset : offset + len(new)] = new


def perform(data, about, call, fate):
    """Do again what becomes of CALL."""
    if fate == 0:
        return
    if call.kind == "w" and fate == call.fates - 1:
        store(data, call.offset, call.data)
    elif call.kind == "w" and fate == call.fates - 2:
        lengthen(data, call.offset + len(call.data))
    elif call.kind == "w":
        for i, (start, end) in enumerate(itertools.pairwise(call.cuts)):
            if fate >> i & 1:
                store(data, call.offset + start, call.data[start:end])
    elif call.kind == "t":
        lengthen(data, call.size)
        del data[call.size :]
    elif call.kind == "e" and call.size:
        lengthen(data, call.offset + call.size)
    elif call.kind == "h":
        end = min(len(data), call.offset + call.size)
        data[call.offset : end] = bytes(max(0, end - call.offset))
    elif call.kind == "m":
        about["mode"] = call.size
    elif call.kind == "o":
        about["owner"] = tuple(old if new < 0 else new for old, new in zip(about["owner"], (call.offset, call.size), strict=True))
    elif call.kind == "x":
        about[call.name] = call.data
    elif call.kind == "y":
        about.pop(call.name, None)


class Kept:
    """A file: what is surely on the disk of it, and the calls of which any part may be."""

    def __init__(self, sure):
        self.sure, self.calls = sure, []

    def after(self, fates):
        if not any(fates):
            return self.sure
        data, about = bytearray(self.sure.data), dict(self.sure.about)
        for call, fate in zip(self.calls, fates, strict=True):
            perform(data, about, call, fate)
        return File(bytes(data), about)

    def sync(self, kinds):
        """The calls of these kinds are on the disk."""
        self.sure = self.after([call.fates - 1 if call.kind in kinds else 0 for call in self.calls])
        self.calls = [call for call in self.calls if call.kind not in kinds]


class Folder:
    """A folder on a disk. FILES: name -> File, INODES: name -> number."""

    def __init__(self, files, inodes):
        self.names = {name: Kept(file) for name, file in files.items()}  # for sure
        self.since = []  # changes of them that may be there, the first ones first
        self.by_inode = {inodes[name]: kept for name, kept in self.names.items()}

    def call(self, call):
        if call.kind == "c":
            new = self.by_inode[call.inode] = Kept(File(b"", {"mode": call.size, "owner": (call.offset, os.getegid())}))
            self.since.append((call, new))
        elif call.kind in "rlu":
            self.since.append((call, None))
        elif call.kind in "sd" and call.inode not in self.by_inode:  # the folder
            self.names, self.since = self.names_after(len(self.since)), []
        elif call.kind in "sd":
            self.by_inode[call.inode].sync("wteh" if call.kind == "d" else "wtehmoxy")
        else:
            self.by_inode[call.inode].calls.append(call)

    def names_after(self, count):
        names = dict(self.names)
        for call, new in self.since[:count]:
            if call.kind == "c":
                names[call.name] = new
            elif call.kind == "l":
                names[call.to] = names[call.name]
            else:
                gone = names.pop(call.name)
                if call.kind == "r":
                    names[call.to] = gone
        return names


def moments(start, calls):
    """When the power may go, and which names are there: (done calls, name -> Kept). None where nothing is new."""
    folder = Folder(*start)
    for done in range(len(calls) + 1):
        if done > 0:
            folder.call(calls[done - 1])
        for count in range(len(folder.since) + 1):
            names = folder.names_after(count)
            if done == len(calls) or calls[done - 1].kind != "w" or any(kept.calls for kept in names.values()):
                yield done, names


def shares(counts, budget):
    """BUDGET states for so many moments; those with few states get no more than they have."""
    given, left = [0] * len(counts), len(counts)
    for i in sorted(range(len(counts)), key=counts.__getitem__):
        given[i] = min(counts[i], max(1, budget // left))
        budget, left = max(0, budget - given[i]), left - 1
    return given


def random_fate(call, likely, dice):
    luck = dice.random()
    if luck < likely:
        return call.fates - 1
    return 0 if luck < (1 + likely) / 2 else dice.randrange(call.fates)


def states(start, calls, name, budget, dice):
    """Yields (done calls, name -> File). About BUDGET."""
    counts = {False: [], True: []}
    for _, names in moments(start, calls):
        unsettled = name in names and bool(names[name].calls)
        counts[unsettled].append(math.prod(call.fates for kept in names.values() for call in kept.calls))
    half = budget // 2 if counts[True] else 0
    given = {True: iter(shares(counts[True], half)), False: iter(shares(counts[False], budget - half))}
    every = {unsettled: iter(counts[unsettled]) for unsettled in counts}
    for done, names in moments(start, calls):
        unsettled = name in names and bool(names[name].calls)
        share, count = next(given[unsettled]), next(every[unsettled])
        flat = [call for kept in names.values() for call in kept.calls]
        if count <= share:
            chosen = itertools.product(*(range(call.fates) for call in flat))
        else:
            chosen = (
                [random_fate(call, likely, dice) for call in flat]
                for likely in dice.choices((0, 0.02, 0.5, 0.9, 0.99, 1), k=share)
            )
        for of_all in chosen:
            left = iter(of_all)
            yield done, {one: kept.after([next(left) for _ in kept.calls]) for one, kept in names.items()}


# ---- what is wrong with it ----


def shown(path):
    """All that must stay: versions, tags, the content of each; or raises AssertionError."""
    h5cow("verify", path)
    log = json.loads(h5cow("log", "--all", "--json", path))
    for row in log:
        # sizes; and with what a version was made, which the smallest file leaves out of those that are forgotten
        for member in ("added", "chunks", "changed", *(("host", "program", "hdf5", "h5cow") if row["forgotten"] else ())):
            del row[member]
    there = ["", *(f"@#{row['number']}" for row in log if not row["forgotten"])]
    return log, h5cow("tag", path), [h5cow("hash", f"{path}{version}").split()[0] for version in there]


class Judge:
    """Of all states of one scenario. OLD and NEW: the File at NAME before and after."""

    def __init__(self, title, name, old, new, place, wrong):
        self.title, self.name, self.old, self.new, self.place, self.wrong = title, name, old, new, place, wrong
        self.known = {old.data: "old"}
        self.counts = collections.Counter()
        self.folders, self.contents = set(), set()
        self.shown = self.look(old)
        if new.data != old.data:
            assert self.look(new) == self.shown
            self.known[new.data] = "new"

    def look(self, file):
        with tempfile.TemporaryDirectory(dir=self.place) as folder:
            path = pathlib.Path(folder).resolve() / self.name
            path.write_bytes(file.data)
            return shown(path)

    def say(self, when, what):
        self.wrong.append(f"{self.title}, {when}: {what}")

    def verdict(self, file):
        """It is the "old" one, the "new" one, or the "same" in other bytes; else what is wrong."""
        if file.data not in self.known:
            try:
                self.known[file.data] = "same" if self.look(file) == self.shown else "it shows something else"
            except AssertionError as error:
                self.known[file.data] = f"it is damaged: {error}"
        return self.known[file.data]

    def judge(self, when, files, ended):
        """Look at a state. ENDED: the command has said that all went well."""
        others = [file for name, file in files.items() if name != self.name]
        if self.name not in files:
            self.say(when, "there is no file")
            return
        file = files[self.name]
        found = self.verdict(file)
        self.counts[found if found in ("old", "new", "same") else "wrong"] += 1
        if found not in ("old", "new", "same"):
            self.say(when, found)
        elif ended and found == "old" and self.new.data != self.old.data:
            self.say(when, "the command has ended, and the old file is back")
        elif file.about != self.old.about:
            self.say(when, f"permissions or attributes: {file.about} instead of {self.old.about}")
        if len(others) > 1:
            self.say(when, f"{len(others)} other files are left: {sorted(files)}")
        if any(other.about["mode"] & ~self.old.about["mode"] for other in others):
            self.say(when, "the unfinished file may be used by more than FILE may")
        self.contents.add(digest(file))
        self.folders.add(tuple(sorted((name, digest(files[name])) for name in files)))

    def next_run(self, when, folder):
        """gc --compact works in FOLDER, and leaves nothing behind."""
        self.counts["next runs"] += 1
        done = run([H5COW, "gc", "--compact", folder / self.name])
        if done.returncode != 0:
            self.say(when, f"the next gc --compact: {done.stderr.strip()}")
        files = files_in(folder)
        if list(files) != [self.name]:
            self.say(when, f"after the next gc --compact there are {sorted(files)}")
        elif self.verdict(files[self.name]) not in ("old", "new", "same"):
            self.say(when, f"after the next gc --compact: {self.verdict(files[self.name])}")


# ---- scenarios ----


def history(path):
    """Versions that were forgotten, whose space was given free, and others; a tag."""
    go_on(path, 0, 8)
    h5cow("forget", path, "2", "5")
    h5cow("gc", path)
    go_on(path, 8, 11)
    h5cow("forget", path, "3", "9")
    h5cow("tag", f"{path}@7", "paper")
    path.chmod(0o640)
    try:
        os.setxattr(path, "user.colour", b"red")
    except OSError:
        pass  # none on this file system


def history_with_a_commit_that_waits(path):
    """A reader was killed that kept the last commit from being applied."""
    go_on(path, 0, 6)
    h5cow("forget", path, "2")
    with python(READER, path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout.readline() == b"open\n"
        go_on(path, 6, 8)
        reader.kill()
    assert json.loads(h5cow("recover", "--dry-run", "--json", path))["pending"], "it was applied"


class Scenario:
    """A run of the command that was recorded. START: the files, and their inodes."""

    def __init__(self, title, words, make, place, wrong, left_behind=False):
        self.words, self.place = words, place
        folder, log = place / "made", place / "log"
        folder.mkdir()
        self.path = folder / "a.h5"
        self.name = self.path.name
        make(self.path)
        if left_behind:  # by a run that was killed half-way
            code, said = recorded(["gc", "--compact", self.path], folder, log, RECORDED_KILL="-150")
            assert code == -signal.SIGKILL and (folder / unfinished_of(self.path)).exists(), (code, said)
        self.start = files_in(folder), {path.name: path.stat().st_ino for path in folder.iterdir()}
        code, said = recorded([*words, self.path], folder, log)
        assert code == 0, said
        self.calls = calls_of(log)
        self.check_recording(folder)
        old = self.start[0][self.name]
        self.judge = Judge(title, self.name, old, File.read(self.path), place, wrong)

    def check_recording(self, folder):
        """All calls done again give what is there, else some were not noted."""
        done, there = Folder(*self.start), files_in(folder)
        for call in self.calls:
            done.call(call)
        names = done.names_after(len(done.since))
        assert names.keys() == there.keys(), (sorted(names), sorted(there))
        for name, kept in names.items():
            kept.sync("wtehmoxy")
            assert kept.sure.data == there[name].data, f"{name}: some write was not noted"
            assert kept.sure.about == there[name].about, (name, kept.sure.about, there[name].about)

    def cut(self, budget, next_runs, dice):
        """Power cuts."""
        number = 0
        for done, files in states(self.start, self.calls, self.name, budget, dice):
            when = f"a power cut after call {done} of {len(self.calls)}"
            self.judge.judge(when, files, done == len(self.calls))
            number += 1
            if self.name in files and dice.random() < next_runs / budget:
                with tempfile.TemporaryDirectory(dir=self.place) as folder:
                    put(pathlib.Path(folder), files, self.name)
                    self.judge.next_run(when, pathlib.Path(folder))
            if len(self.judge.wrong) >= MOST_WRONG:
                break
        return number

    def kill(self, number):
        """SIGKILL after call NUMBER, of the process that made it; -NUMBER: of all of them."""
        when = f"{'all' if number < 0 else 'one'} killed after call {abs(number)} of {len(self.calls)}"
        with tempfile.TemporaryDirectory(dir=self.place) as folder:
            folder = pathlib.Path(folder).resolve()
            path = put(folder, self.start[0], self.name)
            code, said = recorded([*self.words, path], folder, self.place / "log", RECORDED_KILL=str(number))
            files = files_in(folder)
            self.judge.judge(when, files, False)
            if code not in (-signal.SIGKILL, 0, 2):
                self.judge.say(when, f"it ended with {code}: {said}")
            elif code >= 0 and list(files) != [self.name]:
                self.judge.say(when, f"it ended with {code} and left {sorted(files)}")
            elif code == 2 and files[self.name].data != self.start[0][self.name].data:
                self.judge.say(when, f"it said that it failed, and FILE has changed: {said}")
            self.judge.counts["killed"] += code == -signal.SIGKILL
            if self.name in files:
                self.judge.next_run(when, folder)

    def write_before_the_name_is_synced(self):
        """A commit to the new file would be lost with its name, so nobody may write until that is on the disk."""
        when = "renamed, not yet synced"
        with tempfile.TemporaryDirectory(dir=self.place) as folder:
            folder = pathlib.Path(folder).resolve()
            path = put(folder, self.start[0], self.name)
            env = recording(folder, self.place / "log", RECORDED_STOP="r")
            command = subprocess.Popen([H5COW, *self.words, path], env=env, stdout=subprocess.DEVNULL)
            assert os.WIFSTOPPED(os.waitpid(command.pid, os.WUNTRACED)[1]), "it was not renamed"
            writer = python(WRITER, path, 20, 21, stderr=subprocess.PIPE)
            if b"is being written by process" not in writer.communicate()[1]:
                self.judge.say(when, "another program can write, and would lose that in a power cut")
            command.send_signal(signal.SIGCONT)
            assert command.wait() == 0
            go_on(path, 21, 22)


def sweep(budget, place, dice, wrong):
    compact, told = ["gc", "--compact"], ["gc", "--compact", "--dry-run"]
    place = pathlib.Path(place).resolve()
    for name in "abc":
        (place / name).mkdir()
    scenarios = [
        Scenario("gc --compact", compact, history, place / "a", wrong),
        Scenario("after a killed one", compact, history_with_a_commit_that_waits, place / "b", wrong, left_behind=True),
        Scenario("--dry-run", told, history, place / "c", wrong),
    ]
    for scenario in scenarios[:2]:
        scenario.write_before_the_name_is_synced()
    cuts = sum(s.cut(b, b // 250, dice) for s, b in zip(scenarios, (budget // 2, budget * 3 // 8, budget // 8), strict=True))
    places = [(s, sign * (n + 1)) for s in scenarios for n in range(len(s.calls)) for sign in (1, -1)]
    dice.shuffle(places)
    places.sort(key=lambda place: place[0].calls[abs(place[1]) - 1].kind == "w")  # the others are few: they get half
    few = sum(s.calls[abs(n) - 1].kind != "w" for s, n in places)
    kills = budget // 160
    first = min(few, kills // 2)
    for scenario, number in places[:first] + places[few : few + kills - first]:
        if len(wrong) < MOST_WRONG:
            scenario.kill(number)
    return scenarios, cuts, min(kills, first + len(places) - few)


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=2000)
    arguments = parser.parse_args(words)
    print(again(), flush=True)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # what a killed command leaves running is waited for
    wrong = []
    with tempfile.TemporaryDirectory(prefix="h5cow-compact-cuts-") as place:
        scenarios, cuts, kills = sweep(arguments.states, place, random.Random(seed()), wrong)
    counts = sum((s.judge.counts for s in scenarios), collections.Counter())
    for s in scenarios:
        print(f"{s.judge.title}: {len(s.calls)} calls, {len(s.judge.folders):,} different folders, "
              f"{len(s.judge.contents)} different contents at FILE; {dict(s.judge.counts)}")  # fmt: skip
    for line in wrong:
        print(f"WRONG: {line}")
    result = (
        f"{cuts:,} crash states ({sum(len(s.judge.folders) for s in scenarios):,} different ones) and {kills:,} kills: "
        f"{counts['old']:,} the old file, {counts['new']:,} the new one, {counts['same']:,} as whole in other bytes, "
        f"{counts['wrong']:,} anything else; {counts['next runs']:,} next runs; {len(wrong)} wrong"
    )
    print(result)
    what = "power cuts, and kills, after every system call of `gc --compact`, with any part of what was not synced"
    results(1, what, result, f"test/compact_cuts.py --states {arguments.states}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
