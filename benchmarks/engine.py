"""What runs the work of bench.py: processes, rounds, and what happens when one of them fails. Knows no workload.

Each piece of work is a process of its own. One that fails, or takes longer than anybody would wait for, is noted with its reason, is
not tried again in later rounds, and stops nothing else. All that was measured is saved after every round.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import report
from figures import COPIES, H5COW, NATIVE, ONION, VERSIONED  # noqa: F401 (parts.py takes them from here)


ALL_WAYS = "all ways"  # of a part that fails as a whole


class Failed(Exception):
    """A piece of work could not be done; its text says why."""


class Sizes:
    def __init__(self, quick, most=None):
        self.mib = 64 if quick else 1024
        self.row_mib = 64 if quick else 1024
        self.versions = 100 if quick else 1000
        self.chunks = (100, 10_000) if quick else (100, 10_000, 1_000_000)
        self.commits = 16
        self.open_chunks = 100_000
        self.synced = 8 if quick else 32
        self.openers = 7
        self.opens = 11
        self.series = 60 if quick else 1500
        self.value = (100,) if quick else (2000, 10_000)
        self.append = (100,) if quick else (2000, 10_000)
        self.versioned = 2000  # no more versions by versioned-hdf5, where each costs more than the one before
        self.many_chunks = (100, 10_000) if quick else (100, 10_000, 1_000_000, 10_000_000)
        self.ages = (100, 500) if quick else (100, 20_000, 100_000)
        self.objects = (100, 500) if quick else (100, 1000, 10_000)
        self.copies = 200 if quick else 4000
        self.attributes = (100, 500) if quick else (100, 1000, 10_000)
        self.groups = (1000,) if quick else (1000, 10_000, 100_000)
        self.strings = 30_000 if quick else 300_000
        self.writes = 1000 if quick else 5000
        self.reads = 1024 if quick else 4096
        self.diff = 400 if quick else 40_000
        self.restore = 32 if quick else 1024
        self.forget = 40 if quick else 1000
        self.keep = 60 if quick else 10_000
        self.small = 50 if quick else 500
        self.steps = 30 if quick else 300
        self.anew = (20,) if quick else (50, 200)
        self.filters = 2000 if quick else 65_536
        self.patience = 60 if quick else 1200  # seconds of one process
        for name, value in vars(self).items() if most else []:
            if name in ("series", "versioned", "copies", "strings", "diff", "forget", "keep", "small", "steps"):
                setattr(self, name, min(value, most))
            elif isinstance(value, tuple):
                setattr(self, name, tuple(sorted({min(n, most) for n in value})))


class Engine:
    """One run: where the files are, and all that was measured."""

    piece = staticmethod(contextlib.nullcontext)  # around each process that is run: see beside.py

    def __init__(self, sizes, folder, repeat, save, other=None, plugins=None):
        """OTHER: a build whose command is measured, with the plugin that is found in PLUGINS; None: this one's."""
        build = os.environ.get("H5COW_BUILD")
        if not build:
            sys.exit("bench: H5COW_BUILD is not set: run ./dev bench")
        self.workload = pathlib.Path(build) / "benchmarks" / "workload"
        if not self.workload.exists():
            sys.exit(f"bench: {self.workload} is not there: run ./dev bench")
        self.command = str(pathlib.Path(other or build) / "cli" / "h5cow")
        self.plugins = plugins
        self.bare = os.environ.get("H5COW_BUILD_WITHOUT_JOURNAL")
        self.sizes = sizes
        self.folder = folder
        self.repeat = repeat
        self.save = save
        self.results = report.Results(sizes)
        self.round = 0  # 0: it does not count
        self.current = None
        self.place = ""
        self.began = self.told_at = time.monotonic()

    def file(self, name):
        return self.folder / name

    def environment(self, way, sync="off"):
        env = {key: value for key, value in os.environ.items() if key != "HDF5_VOL_CONNECTOR"}
        if way in (H5COW, report.BARE):
            env["HDF5_VOL_CONNECTOR"] = f"h5cow threads=2;sync={sync}"
        if self.plugins is not None:
            env["HDF5_PLUGIN_PATH"] = self.plugins
        if way == report.BARE:
            env["HDF5_PLUGIN_PATH"] = str(pathlib.Path(self.bare) / "connector")
        return env

    # ---- processes ----

    def run_child(self, command, env):
        """-> what it printed. Raises Failed; also at once where this piece of work has failed before."""
        if self.current in self.results.failures:
            raise Failed(self.results.failures[self.current])
        with self.piece():
            return self.run_piece(list(map(str, command)), env)

    def run_piece(self, command, env):
        words = " ".join(pathlib.Path(word).name if "/" in word else word for word in command)
        child = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            said, trouble = child.communicate(timeout=self.sizes.patience)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise Failed(f"`{words}` took longer than {self.sizes.patience} s") from None
        except BaseException:
            child.kill()
            raise
        if child.returncode < 0:
            raise Failed(f"`{words}` was ended by {signal.Signals(-child.returncode).name}")
        if child.returncode != 0:
            print(f"{said}{trouble}", file=sys.stderr)
            raise Failed(f"`{words}` failed: {trouble.strip().splitlines()[-1] if trouble.strip() else 'no reason was given'}")
        return said

    def child(self, way, work, name, *numbers, sync="off"):
        """Run WORK of workload.c; a dictionary of what it printed: seconds, memory (MiB), and lists for commit and once."""
        env = self.environment(way, sync)
        said = {"commit": [], "once": []}
        for line in self.run_child([self.workload, work, self.file(name), *numbers], env).splitlines():
            key, *values = line.split()
            if key in ("commit", "once"):
                said[key].append([float(value) for value in values])
            else:
                said[key] = values[0]
        if (said["connector"] == "1") != ("HDF5_VOL_CONNECTOR" in env):
            raise Failed(f"the connector {'was not' if 'HDF5_VOL_CONNECTOR' in env else 'was'} loaded; see h5cow doctor")
        self.results.hdf5 = said["hdf5"]
        said["seconds"] = float(said["seconds"])
        said["memory"] = float(said["memory"]) / 1024
        self.to_disk(name)
        return said

    def need_bare(self):
        if not self.bare:
            raise Failed("H5COW_BUILD_WITHOUT_JOURNAL is not set: run ./dev bench")

    def to_disk(self, name):
        if self.file(name).exists():
            with open(self.file(name), "rb") as file:
                os.fsync(file.fileno())

    def copy(self, former, name):
        """As cp does it. Seconds."""
        started = time.perf_counter()
        shutil.copyfile(self.file(former), self.file(name))
        return time.perf_counter() - started

    def clear(self):
        for path in self.folder.iterdir():
            path.unlink()

    # ---- rounds ----

    def ways(self, *ways):
        return ways if self.round % 2 == 0 else ways[::-1]

    def rounds(self, count, warm=False, what=""):
        """One after the other; with WARM, one before them does not count. Each is told and saved."""
        for self.round in range(0 if warm else 1, count + 1):
            yield self.round
            self.tell(f"{what}round {self.round} of {count}" if self.round else f"{what}warming up")
        self.round = 1

    def tell(self, what):
        now = time.monotonic()
        print(f"bench: {self.place}: {what} ({now - self.told_at:.0f} s; {(now - self.began) / 60:.0f} minutes in all)",
              file=sys.stderr, flush=True)
        self.told_at = now
        self.save(self.results)

    @contextlib.contextmanager
    def attempt(self, part, size, way, what=""):
        """What fails in it is noted, and not tried again."""
        self.current = (part, size, way, what)
        try:
            yield
        except Failed as failed:
            if self.current not in self.results.failures:
                print(f"bench: {part} {size:,}, {way}: {failed}", file=sys.stderr, flush=True)
            self.results.failures[self.current] = str(failed)
        finally:
            self.current = None

    def failed(self, part, size, way):
        return (part, size, way, "") in self.results.failures

    # ---- what is noted, if the round counts ----

    def note(self, work, way, said, extra=0.0):
        if self.round:
            self.results.work(work, way, self.round, said["seconds"] + extra, said["memory"])

    def note_bytes(self, what, way, *names):
        if self.round:
            self.results.stored(what, way, self.round, sum(self.file(name).stat().st_size for name in names))

    def figures(self, part, size, way, told):
        for what, value in told.items() if self.round else ():
            self.results.figures.setdefault((part, size, what, way), {})[self.round] = value
