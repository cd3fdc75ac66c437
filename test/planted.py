#!/usr/bin/env python3
"""Planted bugs: proves that the tests can fail. Each bug is a patch, test/planted/NAME.patch, whose first lines say what
it does, which promise it breaks and which tests must catch it.

usage: planted.py BUILD [--only NAME]... [--all]    plant one bug after the other, and run its tests
       planted.py BUILD --copy                      only bring BUILD/tree up to date
       planted.py --refresh                         write the patches anew from the present tree

BUILD/tree is a copy of the sources, BUILD/build its build folder (./dev makes it). First every test must pass without a
bug. Then each bug is planted in the copy, and the tests that shall catch it are built and run, in their order, until one
fails; --all: all of them. It is a failure of this program when no test catches a bug, when its patch does not apply, and
when the compiler makes the same code with it as without it. A run that was ended is gone on with, unless the sources have
changed since: BUILD/done.json.

--refresh: for patches whose surroundings have changed. What it has changed wants to be looked at: `git diff`.
"""

import argparse
import fcntl
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from results import results

TEST = pathlib.Path(__file__).resolve().parent
TOP = TEST.parent
TIMEOUT = 300  # seconds; a test that hangs has caught the bug as well
# The build needs none of them; of docs/ tests need the programs.
NOT_COPIED = {".git", "build", "dist", "__pycache__", ".pytest_cache", ".hypothesis"}


def crash(*scenarios):
    """Power cuts in some scenarios: few damages are enough for a bug."""
    return [f"crash --damages 4 --scenario {scenario}" for scenario in scenarios]


# What patches name in a word. All else is a test: a program in BUILD/build/test, or a Python file of test/, with its arguments; one that
# is named test_*.py is run by pytest.
GROUPS = {
    "power cuts": crash("create", "create_and_flush", "rewrite", "pins_move", "failed_sync", "shrink", "applied_late"),
    "shrinking": crash("shrink"),
    "failed syncs": crash("failed_sync"),
}
# These run on the connector; all others must not.
THROUGH_CONNECTOR = ("damage", "bitrot", "points", "test_api", "test_counts", "test_properties", "test_unopened", "compact_cuts.py")


class Failure(Exception):
    """Why a bug could not be planted, in a sentence."""


# ---- patches --------------------------------------------------------------------------------------------------------


class Patch:
    """One bug: NAME, WHAT it does, the promise that it BREAKS and the file where that STANDS IN, the TESTS that must
    catch it, the FILES that it changes."""

    def __init__(self, path):
        self.path, self.name = path, path.stem
        parts = re.fullmatch(r'((.*?)\nBreaks: "(.*?)" \((\S+)\)\nCaught by: (.*?)\n\n)(--- .*)', path.read_text(), re.S)
        if parts is None:
            raise SystemExit(f"{path.name} does not begin as the other patches: what it does, Breaks:, Caught by:, a line between")
        self.head, self.what, self.breaks, self.stands_in, caught, diff = parts.groups()
        self.tests = list(dict.fromkeys(test for part in caught.split("; ") for test in GROUPS.get(part, [part])))
        self.files = re.findall(r"^\+\+\+ b/(\S+)", diff, re.M)

    def apply(self, tree, *options):
        """Plant the bug in TREE."""
        lacking = [file for file in self.files if not (tree / file).exists()]
        if lacking:
            raise Failure(f"{self.path.name} does not apply: there is no {lacking[0]}")
        command = ["patch", "-p1", "--force", "--no-backup-if-mismatch", "--reject-file=-", "-i", self.path.resolve(), *options]
        done = subprocess.run(command, cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"{self.path.name} does not apply: {', '.join(self.files)} has changed where the bug is planted")

    def refresh(self, tree):
        """The text of the patch with the lines that surround the bug in TREE."""
        with tempfile.TemporaryDirectory() as folder:
            new, text = pathlib.Path(folder), self.head
            for file in self.files:
                if (tree / file).exists():
                    write(new / file, (tree / file).read_bytes())
            self.apply(new)
            for file in self.files:
                labels = ["--label", f"a/{file}", "--label", f"b/{file}"]
                text += subprocess.run(["diff", "-u", *labels, tree / file, new / file], capture_output=True, text=True).stdout
        return text


def patches():
    return {path.stem: Patch(path) for path in sorted((TOP / "test/planted").glob("*.patch"))}


def refresh():
    failed = 0
    for patch in patches().values():
        try:
            text = patch.refresh(TOP)
        except Failure as failure:
            print(f"{failure}; write it anew")
            failed += 1
            continue
        if text != patch.path.read_text():
            patch.path.write_text(text)
            print(f"{patch.path.name} is written anew")
    return 1 if failed else 0


# ---- the copy -------------------------------------------------------------------------------------------------------


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def sources(top):
    """Path -> content of what TOP has."""
    found = {}
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in NOT_COPIED]
        if pathlib.Path(folder) == top / "docs":
            names = [name for name in names if name.endswith(".py")]
        for name in names:
            path = pathlib.Path(folder, name)
            found[path.relative_to(top)] = path.read_bytes()
    return found


def copy(tree):
    """Make TREE what TOP is, also where a run was ended with a bug in it. Only what differs is written, with the time of now:
    a file with its former time would be older than the object that was made from the bug. Returns a digest of all."""
    wanted, there = sources(TOP), sources(tree)
    for path in there.keys() - wanted.keys():
        (tree / path).unlink()
    digest = hashlib.sha256()
    for path, content in sorted(wanted.items()):
        if there.get(path) != content:
            write(tree / path, content)
        (tree / path).chmod((TOP / path).stat().st_mode)
        digest.update(f"{path} {len(content)} ".encode() + content)
    return digest.hexdigest()


# ---- building and running -------------------------------------------------------------------------------------------


class Runner:
    def __init__(self, folder):
        self.tree, self.build = folder / "tree", folder / "build"
        self.log = tempfile.TemporaryFile("w+", errors="replace")
        self.code = {}  # of each object without a bug
        self.made = set()  # test programs that are up to date

    def command(self, command, **more):
        """What COMMAND writes to self.log; its exit code."""
        self.log.seek(0)
        self.log.truncate()
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, **more).returncode

    def told(self):
        self.log.seek(0)
        return self.log.read()

    def make(self, *targets):
        if self.command(["ninja", "-C", self.build, *targets]) != 0:
            raise Failure("it does not build: " + (re.search(r"error: .*|$", self.told()).group(0) or self.told()[-200:]))

    def make_for(self, test):
        name = test.split()[0]
        if name not in self.made:
            programs = ["cli/h5cow", "test/librecorded_calls.so"] if name.endswith(".py") else [f"test/{name}"]
            self.make(*programs, *(["connector/libh5cow.so"] if name in THROUGH_CONNECTOR or name.endswith(".py") else []))
            self.made.add(name)

    def run(self, test):
        """What made TEST fail, in a few words; None: it passed."""
        self.make_for(test)
        name, *arguments = test.split()
        env = {k: v for k, v in os.environ.items() if not k.startswith(("HDF5_", "H5COW_"))}
        if name in THROUGH_CONNECTOR:  # HDF5 looks for plugins even where none is selected
            env.update(HDF5_PLUGIN_PATH=str(self.build / "connector"), HDF5_VOL_CONNECTOR="h5cow")
        program = [self.build / "test" / name]
        if name.endswith(".py"):
            pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if name.startswith("test_") else []
            program = [sys.executable, "-B", *pytest, self.tree / "test" / name]
            env.update(H5COW_BUILD=str(self.build), HDF5_PLUGIN_PATH=str(self.build / "connector"))
            env["PATH"] = f"{self.build / 'cli'}:{env['PATH']}"
        try:
            code = self.command([*program, *arguments], env=env, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return "hangs"
        return None if code == 0 else reason(self.told()) or f"exit code {code}"

    def objects(self):
        return {path: path.stat().st_mtime_ns for path in (self.build / "connector").rglob("*.o")}

    def code_of(self, path):
        """An object without its debugging information, which changes with every line."""
        with tempfile.NamedTemporaryFile() as stripped:
            subprocess.run(["objcopy", "--strip-debug", path, stripped.name], check=True)
            return hashlib.sha256(pathlib.Path(stripped.name).read_bytes()).digest()

    def catch(self, patch, every):
        """Plant the bug and run its tests. What caught it: test and reason; raises Failure when it cannot be planted."""
        before = {file: (self.tree / file).read_bytes() for file in patch.files if (self.tree / file).exists()}
        times, caught = self.objects(), []
        self.made.clear()
        try:
            patch.apply(self.tree, "-F0")
            self.make_for(patch.tests[0])
            made = [path for path, time in self.objects().items() if times.get(path) != time]
            if all(self.code_of(path) == self.code.get(path) for path in made):
                raise Failure(f"{patch.path.name} changes nothing: the compiler makes the same code as without it")
            for test in patch.tests:
                why = self.run(test)
                if why:
                    caught.append(f"{test}: {why}")
                    if not every:
                        break
        finally:
            for file, content in before.items():
                write(self.tree / file, content)
        return caught


def reason(text):
    """The first line that says what is wrong."""
    for pattern in (
        r"FAILED  \] (test_\w+)", r"^FAILED \S+::(\w+)", r"FAILED: (.*)", r"operation \d+, [^:]*: (.*)", r": (state \d+ .*)",
        r"(Assertion .*)", r"WRONG: (.*)", r"(wrong .*)",
    ):  # fmt: skip
        found = re.search(pattern, text, re.M)
        if found:
            return re.sub(r"/\S*/", "", found.group(1))[:90]
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:90] if lines else ""


def begin(runner, bugs):
    """Build without a bug, and run all tests, which must pass."""
    failed = []
    for test in dict.fromkeys(test for patch in bugs for test in patch.tests):
        why = runner.run(test)
        failed += [f"{test} fails: {why}"] if why else []
    if failed:
        raise Failure("; ".join(failed))
    runner.code = {path: runner.code_of(path) for path in runner.objects()}


def plant(folder, names, every):
    """Returns (bugs that were planted, how many were not caught)."""
    digest = copy(folder / "tree")
    bugs = [patch for name, patch in patches().items() if name in (names or [name])]
    note = folder / "done.json"
    known = json.loads(note.read_text()) if note.exists() else {}
    caught_before = known["caught"] if known.get("sources") == digest and not names else {}
    todo = [patch for patch in bugs if patch.name not in caught_before]
    for name, line in caught_before.items():
        print(f"{line}, in the run that was ended", flush=True)
    runner, failed = Runner(folder), 0
    begin(runner, todo)
    for patch in todo:
        started = time.monotonic()
        try:
            caught = runner.catch(patch, every)
            seen = "; ".join(caught) or "NOT CAUGHT"
        except Failure as failure:
            caught, seen = [], f"FAILED: {failure}"
        failed += not caught
        line = f"{patch.name:30} {seen} ({time.monotonic() - started:.1f} s)"
        print(line, flush=True)
        if caught and not names:
            caught_before[patch.name] = line
            note.with_suffix(".new").write_text(json.dumps({"sources": digest, "caught": caught_before}, indent=1))
            note.with_suffix(".new").replace(note)
    if not names:
        note.unlink(missing_ok=True)
    return bugs, failed


def main(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", type=pathlib.Path)
    parser.add_argument("--only", action="append", default=[], choices=list(patches()), metavar="NAME")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--copy", action="store_true")
    parser.add_argument("--refresh", action="store_true")
    arguments = parser.parse_args(words)
    if arguments.refresh:
        return refresh()
    if arguments.build is None:
        parser.error("which BUILD?")
    folder = arguments.build.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run plants other bugs in the same tree
        if arguments.copy:
            copy(folder / "tree")
            return 0
        try:
            bugs, failed = plant(folder, arguments.only, arguments.all)
        except Failure as failure:
            print(f"without any bug: {failure}")
            return 1
    print(f"{len(bugs) - failed} passed, {failed} failed, 0 skipped")
    if not arguments.only:
        result = f"{len(bugs) - failed} of {len(bugs)} caught"
        results(6, f"{len(bugs)} bugs planted, one at a time", result, "test/planted.py BUILD")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
