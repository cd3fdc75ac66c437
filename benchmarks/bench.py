#!/usr/bin/env python3
"""Time, bytes on disk and memory of everyday work: HDF5 alone, HDF5 with a copy of the file for each version, h5cow.

usage: bench.py [--quick] [--repeat N] [--only NAME]... [--folder FOLDER] [--write-docs]

Every piece of work runs in a process of its own (workload.c, an ordinary HDF5 program), which times itself. One round
does all work in all ways, each piece in turn in one way after the other and in the next round in the other order; the
first round is dropped. h5cow does not wait for the disk (sync=off), as HDF5 does not; what waiting costs is measured
apart. Files lie in one folder, are in the page cache when they are used, and are on disk before the
next piece starts. What is printed, and written to docs/performance.md, is made by report.py.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import report

TOP = pathlib.Path(__file__).resolve().parent.parent
GROUPS = ("plain", "gzip", "rows", "versions", "sync", "commit", "open")
NATIVE, COPIES, H5COW = report.WAYS


class Sizes:
    def __init__(self, quick):
        self.mib = 64 if quick else 1024
        self.row_mib = 64 if quick else 1024
        self.versions = 100 if quick else 1000
        self.chunks = (100, 10_000) if quick else (100, 10_000, 1_000_000)
        self.commits = 16
        self.open_chunks = 100_000
        self.synced = 8 if quick else 32
        self.openers = 7
        self.opens = 11


class Bench:
    """One run: where the files are, and all that was measured."""

    def __init__(self, sizes, folder):
        build = os.environ.get("H5COW_BUILD")
        if not build:
            sys.exit("bench: H5COW_BUILD is not set: run ./dev bench")
        self.workload = pathlib.Path(build) / "benchmarks" / "workload"
        if not self.workload.exists():
            sys.exit(f"bench: {self.workload} is not there: run ./dev bench")
        self.bare = os.environ.get("H5COW_BUILD_WITHOUT_JOURNAL")
        self.sizes = sizes
        self.folder = folder
        self.results = report.Results(sizes)
        self.keep = False  # this round counts
        self.round = 0

    def file(self, name):
        return self.folder / name

    def environment(self, way, sync="off"):
        env = {key: value for key, value in os.environ.items() if key != "HDF5_VOL_CONNECTOR"}
        if way in (H5COW, report.BARE):
            env["HDF5_VOL_CONNECTOR"] = f"h5cow threads=2;sync={sync}"
        if way == report.BARE:
            env["HDF5_PLUGIN_PATH"] = str(pathlib.Path(self.bare) / "connector")
        return env

    def child(self, way, work, name, *numbers, sync="off"):
        """Run WORK; a dictionary of what it printed: seconds, memory (MiB), and lists for commit and open."""
        env = self.environment(way, sync)
        command = [str(self.workload), work, str(self.file(name)), *map(str, numbers)]
        ended = subprocess.run(command, env=env, capture_output=True, text=True)
        said = {"commit": [], "once": []}
        for line in ended.stdout.splitlines():
            key, *values = line.split()
            if key in ("commit", "once"):
                said[key].append([float(value) for value in values])
            else:
                said[key] = values[0]
        if ended.returncode != 0 or said.get("done") != "1":
            sys.exit(f"bench: {way}: {' '.join(command[1:])} failed:\n{ended.stdout}{ended.stderr}")
        if (said["connector"] == "1") != ("HDF5_VOL_CONNECTOR" in env):
            sys.exit(f"bench: the connector {'was not' if 'HDF5_VOL_CONNECTOR' in env else 'was'} loaded; see h5cow doctor")
        self.results.hdf5 = said["hdf5"]
        said["seconds"] = float(said["seconds"])
        said["memory"] = float(said["memory"]) / 1024
        self.to_disk(name)
        return said

    def need_bare(self):
        if not self.bare:
            sys.exit("bench: H5COW_BUILD_WITHOUT_JOURNAL is not set: run ./dev bench")

    def to_disk(self, name):
        if self.file(name).exists():
            with open(self.file(name), "rb") as file:
                os.fsync(file.fileno())

    def copy(self, former, name):
        """As cp does it. Seconds."""
        started = time.perf_counter()
        shutil.copyfile(self.file(former), self.file(name))
        return time.perf_counter() - started

    def ways(self, *ways):
        return ways if self.round % 2 == 0 else ways[::-1]

    def note(self, work, way, said, extra=0.0):
        if self.keep:
            self.results.work(work, way, said["seconds"] + extra, said["memory"])

    def note_bytes(self, what, way, *names):
        if self.keep:
            self.results.stored(what, way, sum(self.file(name).stat().st_size for name in names))

    def clear(self):
        for path in self.folder.iterdir():
            path.unlink()

    # ---- what is measured: each a piece of one round ----

    def field(self, group, smooth):
        mib = self.sizes.mib
        own = {NATIVE: "native.h5", H5COW: "h5cow.h5"}
        for way in self.ways(NATIVE, H5COW):
            self.note(f"{group}: write", way, self.child(way, "write", own[way], mib, smooth))
        shutil.copyfile(self.file("native.h5"), self.file("copy1.h5"))
        self.to_disk("copy1.h5")
        for number, work, title in ((2, "rewrite", "write all again, 1 % of the chunks differ"),
                                    (3, "change", "write only 1 % of the chunks")):
            for way in self.ways(NATIVE, COPIES, H5COW):
                extra = self.copy(f"copy{number - 1}.h5", f"copy{number}.h5") if way == COPIES else 0
                name = own.get(way, f"copy{number}.h5")
                self.note(f"{group}: {title}", way, self.child(way, work, name, mib, smooth), extra)
        for way in self.ways(NATIVE, H5COW):
            self.note(f"{group}: read", way, self.child(way, "read", own[way], mib, 2))
        for way, name in self.ways((COPIES, "copy1.h5"), (H5COW, "h5cow.h5@1")):
            self.note(f"{group}: read version 1", way, self.child(way, "read", name, mib, 0))
        self.note_bytes(f"{group}: three versions", NATIVE, "native.h5")
        self.note_bytes(f"{group}: three versions", H5COW, "h5cow.h5")
        self.note_bytes(f"{group}: three versions", COPIES, "copy1.h5", "copy2.h5", "copy3.h5")

    def plain(self):
        self.field("plain", 0)

    def gzip(self):
        self.field("gzip", 1)

    def rows(self):
        for grow, title in ((0, "row by row"), (1, "row by row, extending")):
            for way in self.ways(NATIVE, H5COW):
                name = f"{way}{grow}.h5"  # a file of its own: making one again would keep the former history
                self.note(f"rows: {title}", way, self.child(way, "rows", name, self.sizes.row_mib, grow))
                self.note_bytes(f"rows: {title}", way, name)

    def versions(self):
        for way in self.ways(NATIVE, COPIES, H5COW):
            name = f"{way}.h5"
            said = self.child(way, "versions", name, self.sizes.versions, int(way == COPIES))
            self.note("versions: change one value", way, said)
            self.note_bytes("versions: change one value", way,
                            *(path.name for path in self.folder.iterdir() if path.name.startswith(name)))

    def sync(self):
        """Waiting for the disk: a large write, many small commits, and single commits beside the disk's own time."""
        self.need_bare()
        for way, sync in self.ways((report.BARE, "off"), (H5COW, "off"), (H5COW, "normal"), (H5COW, "full"), (NATIVE, "")):
            said = self.child(way, "write", "large.h5", self.sizes.mib, 0, sync=sync)
            if self.keep:
                self.results.synced(("write", way, sync), said["seconds"])
            self.clear()
        with open(self.file("disk"), "wb") as file:
            for _ in range(self.sizes.mib // 64):
                file.write(os.urandom(1 << 20) * 64)
            written = time.perf_counter()
            file.flush()
            os.fdatasync(file.fileno())
        if self.keep:
            self.results.synced(("disk", "", ""), time.perf_counter() - written)
        self.clear()
        for sync in self.ways("off", "normal", "full"):
            command = [str(self.workload.parent / "commits"), str(self.file("commits.h5")), str(self.sizes.synced)]
            ended = subprocess.run(command, env=self.environment(H5COW, sync), capture_output=True, text=True)
            lines = [line.split() for line in ended.stdout.splitlines()]
            if ended.returncode != 0 or lines[-1] != ["done", "1"]:
                sys.exit(f"bench: {' '.join(command)} failed:\n{ended.stdout}{ended.stderr}")
            for kind, *values in lines[:-1] if self.keep else []:
                for part, value in enumerate(values):
                    self.results.synced((kind, sync, part), float(value))
            self.clear()

    def open(self):
        """Short, and so easily disturbed: several processes a round."""
        for way in (NATIVE, H5COW):
            self.child(way, "chunks", f"{way}.h5", self.sizes.open_chunks, 1)
        for _ in range(self.sizes.openers):
            for way in self.ways(NATIVE, H5COW):
                said = self.child(way, "open", f"{way}.h5", self.sizes.open_chunks, 1, self.sizes.opens)
                if self.keep:
                    self.results.opening(way, [seconds for seconds, in said["once"]])

    def commit(self):
        """Bytes are the same in every round: run once, at the end."""
        ways = NATIVE, report.BARE, H5COW
        self.need_bare()
        for rank in (1, 2):
            for chunks in self.sizes.chunks:
                for way in ways:
                    self.child(way, "chunks", f"{way}.whole", chunks, rank)
                for changes in (1,) if rank == 1 else (1, 16):
                    for way in ways:
                        self.copy(f"{way}.whole", f"{way}.h5")
                        said = self.child(way, "commit", f"{way}.h5", chunks, rank, changes, self.sizes.commits)
                        self.results.commit(rank, chunks, changes, way, said["commit"])
                self.clear()

    def run(self, groups, repeat):
        for self.round in range(repeat + 1):
            self.keep = self.round > 0
            for group in groups:
                if group == "commit":
                    continue
                started = time.monotonic()
                getattr(self, group)()
                self.clear()
                label = f"round {self.round} of {repeat}" if self.keep else "warming up"
                print(f"bench: {label}: {group} ({time.monotonic() - started:.0f} s)", file=sys.stderr)
        if "commit" in groups:
            started = time.monotonic()
            self.commit()
            print(f"bench: commit ({time.monotonic() - started:.0f} s)", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: under two minutes")
    parser.add_argument("--repeat", type=int, metavar="N", help="rounds that count (default 5, quick 1)")
    parser.add_argument("--only", action="append", choices=GROUPS, help="only this part; may be given several times")
    parser.add_argument("--folder", metavar="FOLDER", help="where the files go meanwhile (default: the build folder)")
    parser.add_argument("--write-docs", action="store_true", help="write docs/performance.md from this run")
    options = parser.parse_args()
    repeat = options.repeat if options.repeat is not None else 1 if options.quick else 5
    if repeat < 1:
        parser.error("--repeat must be at least 1")
    if options.write_docs and (options.only or options.quick):
        parser.error("--write-docs needs the whole run: leave --only and --quick away")
    sizes = Sizes(options.quick)
    place = options.folder or os.environ.get("H5COW_BUILD")
    if place is not None and not os.path.isdir(place):
        sys.exit(f"bench: there is no folder {place}")
    need = 6 * max(sizes.mib << 20, 1 << 28)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=place) as folder:
        if shutil.disk_usage(folder).free < need:
            sys.exit(f"bench: {need >> 20} MiB must be free for the files: name another place with --folder")
        started = time.monotonic()
        bench = Bench(sizes, pathlib.Path(folder))
        bench.run([group for group in GROUPS if not options.only or group in options.only], repeat)
        page = report.Page(bench.results, repeat, time.monotonic() - started, folder)
    print(page.tables())
    if os.environ.get("H5COW_RESULTS"):
        with open(os.environ["H5COW_RESULTS"], "a") as told:
            told.writelines(json.dumps(line) + "\n" for line in page.told())
    if options.write_docs:
        (TOP / "docs" / "performance.md").write_text(page.document())
        print("bench: docs/performance.md is written", file=sys.stderr)


if __name__ == "__main__":
    main()
