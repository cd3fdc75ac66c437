"""What bench.py measured, as tables; and docs/performance.md around them. Targets stand here and nowhere else."""

import os
import platform
import statistics
import time

WAYS = NATIVE, COPIES, H5COW = "native", "copies", "h5cow"
BARE = "without journal"  # h5cow in a build without the journal
SYNC_TARGET = 0.05  # of the time without the journal
COMMIT_TARGET = 0.002  # seconds more than the disk needs
MEMORY_TARGET = 256  # MiB more than native
OPEN_TARGET = 2.0

# Rows in this order: key, title, target of time against native (None: not asked for).
WORKS = (
    ("plain: write", "write, no filter", 1.6),
    ("plain: write all again, 1 % of the chunks differ", "write all again, 1 % of the chunks differ", None),
    ("plain: write only 1 % of the chunks", "write only 1 % of the chunks", None),
    ("plain: read", "read", 1.3),
    ("plain: read version 1", "read the first version", None),
    ("gzip: write", "write, shuffle and gzip", 1.0),
    ("gzip: write all again, 1 % of the chunks differ", "write all again, 1 % of the chunks differ, gzip", None),
    ("gzip: write only 1 % of the chunks", "write only 1 % of the chunks, gzip", None),
    ("gzip: read", "read, gzip", 1.3),
    ("gzip: read version 1", "read the first version, gzip", None),
    ("rows: row by row", "write row by row", 1.5),
    ("rows: row by row, extending", "write row by row, extending each time", 1.5),
    ("versions: change one value", "{versions} times: open, change one value, close", None),
)
STORED = (
    ("plain: three versions", "three versions, no filter"),
    ("gzip: three versions", "three versions, shuffle and gzip"),
    ("rows: row by row", "written row by row"),
    ("rows: row by row, extending", "written row by row, extending each time"),
    ("versions: change one value", "{many} versions of a small file"),
)


def commit_target(chunks, changes):
    """Bytes of metadata, or None where nothing was promised."""
    if chunks <= 100 and changes == 1:
        return 4096
    if chunks >= 1_000_000:
        return 12 * 1024 + 256 * changes
    return None


class Results:
    """Numbers of all rounds that count."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.hdf5 = ""
        self.seconds = {}  # (work, way): one a round
        self.memory = {}  # MiB, likewise
        self.bytes = {}
        self.opened = {}  # (which, way): seconds, several a round
        self.waits = {}  # what sync() of bench.py measured: seconds
        self.commits = {}  # (rank, chunks, changes, way): [appended, overwritten, changed, seconds] each

    def work(self, work, way, seconds, memory):
        self.seconds.setdefault((work, way), []).append(seconds)
        self.memory.setdefault((work, way), []).append(memory)

    def stored(self, what, way, size):
        self.bytes.setdefault((what, way), []).append(size)

    def synced(self, key, seconds):
        self.waits.setdefault(key, []).append(seconds)

    def opening(self, way, seconds):
        """SECONDS: of one opening after another in one process."""
        self.opened.setdefault(("first", way), []).append(seconds[0])
        self.opened.setdefault(("again", way), []).append(statistics.median(seconds[1:]))

    def commit(self, rank, chunks, changes, way, commits):
        self.commits[rank, chunks, changes, way] = commits


def table(head, rows):
    """Markdown that can be read as it is: first column to the left, all others to the right."""
    width = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(cells):
        padded = [c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, width))]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(width)) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


def time_text(seconds):
    if seconds is None:
        return ""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def size_text(size):
    if size is None:
        return ""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size:.0f} bytes"


def ratio_text(value, former):
    return f"{value / former:.2f}" if value is not None and former else ""


def verdict(value, target, text=None):
    """The target, and whether it was met."""
    if target is None or value is None:
        return ""
    return f"≤ {text or format(target, '.1f')} {'met' if value <= target else 'MISSED'}"


class Page:
    def __init__(self, results, repeat, seconds, folder):
        self.results = results
        self.repeat = repeat
        self.took = seconds
        self.system = file_system(folder)
        self.words = {"versions": f"{results.sizes.versions:,}", "many": f"{results.sizes.versions + 1:,}"}

    def median(self, numbers, *key):
        found = numbers.get(key)
        return statistics.median(found) if found else None

    def time_table(self):
        rows = []
        for key, title, target in WORKS:
            native, copies, own = (self.median(self.results.seconds, key, way) for way in WAYS)
            if own is None:
                continue
            spread = ""
            if native:
                each = [b / a for a, b in zip(self.results.seconds[key, NATIVE], self.results.seconds[key, H5COW])]
                spread = f"{min(each):.2f} to {max(each):.2f}"
            rows.append([title.format(**self.words), time_text(native), time_text(copies), time_text(own),
                         ratio_text(own, native), spread, verdict(native and own / native, target),
                         ratio_text(own, copies)])
        head = ["work", "native", "copies", "h5cow", "/ native", "each round", "target", "/ copies"]
        return table(head, rows) if rows else ""

    def bytes_table(self):
        rows = []
        for key, title in STORED:
            native, copies, own = (self.median(self.results.bytes, key, way) for way in WAYS)
            if own is not None:
                rows.append([title.format(**self.words), size_text(native), size_text(copies), size_text(own),
                             ratio_text(own, native), ratio_text(own, copies)])
        head = ["on disk", "native, last state only", "copies", "h5cow", "/ native", "/ copies"]
        return table(head, rows) if rows else ""

    def memory_table(self):
        rows = []
        for key, title, _ in WORKS:
            native, own = (self.median(self.results.memory, key, way) for way in (NATIVE, H5COW))
            if native is None or own is None:
                continue
            rows.append([title.format(**self.words), f"{native:.0f} MiB", f"{own:.0f} MiB", ratio_text(own, native),
                         f"{own - native:+.0f} MiB", verdict(own - native, MEMORY_TARGET, f"{MEMORY_TARGET} MiB")])
        head = ["largest memory of the process", "native", "h5cow", "/ native", "more", "target"]
        return table(head, rows) if rows else ""

    def commit_table(self):
        rows = []
        for (rank, chunks, changes, way), commits in self.results.commits.items():
            if way != BARE:
                continue
            appended, overwritten, changed = (statistics.mean(commit[i] for commit in commits) for i in range(3))
            data = changes * 16 * 8  # what the chunks themselves hold
            journalled = self.results.commits[rank, chunks, changes, H5COW]
            all = statistics.mean(commit[0] + commit[2] for commit in journalled) - data
            own = statistics.median(commit[3] for commit in journalled)
            native = statistics.median(commit[3] for commit in self.results.commits[rank, chunks, changes, NATIVE])
            target = commit_target(chunks, changes)
            rows.append([f"{rank}-D, {chunks:,} chunks", str(changes), f"{appended - data:,.0f}", f"{changed:,.0f}",
                         f"{appended - data + changed:,.0f}",
                         verdict(appended - data + changed, target, target and f"{target:,}"),
                         f"{overwritten:,.0f}", f"{all:,.0f}", time_text(own), time_text(native)])
        head = ["dataset", "chunks changed", "appended", "changed in place", "together", "target", "written over",
                "with the journal", "time", "native"]
        return table(head, rows) if rows else ""

    def open_table(self):
        rows = []
        for which, title in (("first", "the first time in a process"), ("again", "again in the same process")):
            native, own = (self.median(self.results.opened, which, way) for way in (NATIVE, H5COW))
            if own is not None:
                rows.append([title, time_text(native), time_text(own), ratio_text(own, native),
                             verdict(own / native, OPEN_TARGET)])
        head = [f"open, read one value of {self.results.sizes.open_chunks:,} chunks, close", "native", "h5cow",
                "/ native", "target"]
        return table(head, rows) if rows else ""

    def sync_tables(self):
        def median(*key):
            return self.median(self.results.waits, *key)

        bare, disk = median("write", BARE, "off"), median("disk", "", "")
        if bare is None:
            return "", ""
        rows = []
        for way, sync, title in ((NATIVE, "", "native"), (BARE, "off", "h5cow in a build without the journal"),
                                 (H5COW, "off", "h5cow, sync=off"), (H5COW, "normal", "h5cow, sync=normal"),
                                 (H5COW, "full", "h5cow, sync=full")):
            own = median("write", way, sync)
            compared = (way, sync) == (H5COW, "off")
            on_disk = own + disk if way == NATIVE else None if sync == "off" else own
            rows.append([title, time_text(own), f"{own / bare - 1:+.1%}" if compared else "",
                         verdict(own / bare - 1, SYNC_TARGET, f"{SYNC_TARGET:+.0%}") if compared else "",
                         time_text(on_disk)])
        large = table(["write, no filter", "time", "more", "target", "and it is on the disk"], rows)
        floor = self.floor()
        rows = []
        for sync in ("full", "normal", "off"):
            flush, close = median("flush", sync, 0), median("close", sync, 0)
            target = floor + COMMIT_TARGET if sync == "full" else None
            rows.append([f"sync={sync}", time_text(flush), verdict(flush, target, target and time_text(target)),
                         time_text(close)])
        small = table(["1 MiB", "write and H5Fflush", "target", "open, write and close"], rows)
        return large, small, floor, median("disk", "full", 0), median("disk", "full", 1)

    def tables(self):
        parts = (self.time_table(), self.bytes_table(), self.memory_table(), self.commit_table(), self.open_table(),
                 *self.sync_tables()[:2])
        return "\n\n".join(part for part in parts if part)

    def told(self):
        """What docs/reliability.md says of it."""
        if self.median(self.results.waits, "write", BARE, "off") is None:
            return []
        (bare, full, off), floor = self.costs(), self.floor()
        command = "./dev bench --only sync"
        return [
            {"item": 9, "what": "commits of 1 MiB by H5Fflush, sync=full; in turn with them two fdatasync of the same bytes",
             "result": f"median {time_text(full)}; the disk alone {time_text(floor)}; "
                       f"{verdict(full, floor + COMMIT_TARGET, time_text(floor + COMMIT_TARGET))}", "command": command},
            {"item": 9, "what": f"{self.results.sizes.mib} MiB written with sync=off, against a build without the journal",
             "result": f"{off / bare - 1:+.1%}; {verdict(off / bare - 1, SYNC_TARGET, f'{SYNC_TARGET:+.0%}')}",
             "command": command},
        ]

    def floor(self):
        """Seconds that the disk needs for two syncs."""
        waits = self.results.waits
        return statistics.median(a + b for a, b in zip(waits["disk", "full", 0], waits["disk", "full", 1]))

    def costs(self):
        return [self.median(self.results.waits, *key)
                for key in (("write", BARE, "off"), ("flush", "full", 0), ("write", H5COW, "off"))]

    def sync_words(self):
        large, small, floor, first, second = self.sync_tables()
        return {"large": large, "small": small, "floor": time_text(floor), "first": time_text(first),
                "second": time_text(second)}

    def document(self):
        sizes = self.results.sizes
        rounds = f"{self.repeat} round" + "s" * (self.repeat > 1)
        return DOCUMENT.format(
            times=self.time_table(), bytes=self.bytes_table(), memory=self.memory_table(), commits=self.commit_table(),
            opened=self.open_table(), **self.sync_words(), rounds=rounds, minutes=self.took / 60, mib=sizes.mib,
            commit_count=sizes.commits, opens=sizes.opens, openers=sizes.openers, hdf5=self.results.hdf5,
            date=time.strftime("%Y-%m-%d"), machine=machine(), system=self.system, **self.words)


def machine():
    cpu, memory = platform.machine(), 0
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo") as info:
        for line in info:
            if line.startswith("MemTotal:"):
                memory = int(line.split()[1])
    return f"{len(os.sched_getaffinity(0))} cores ({cpu}), {memory / 2**20:.0f} GiB of memory"


def file_system(folder):
    """The type of file system that FOLDER is on: that of the longest mount point above it."""
    best, kind = "", "unknown"
    folder = os.path.realpath(folder)
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            _, point, name, *_ = line.split()
            if (folder + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
                best, kind = point, name
    return kind


DOCUMENT = """\
# Performance

This page was written by `./dev bench --write-docs` on {date}, prose and all: change `benchmarks/report.py`, not this
page. HDF5 {hdf5}, {machine}, files on {system}.
{rounds} after one that was dropped, {minutes:.0f} minutes in all.

Three ways to do the same work are compared: **native**, HDF5 without any versions; **copies**, HDF5 with a full copy of
the file before each change, which is how versions are kept without h5cow; and **h5cow**. The program that does the work
(`benchmarks/workload.c`) is the same in all three, and knows of none of them. Each piece of work is a process of its
own; it times what stands from opening the file to having closed it. Ways take turns within a round, in changing order.
Files are in the page cache before they are read, and the disk is left in peace before the next piece starts: what is
compared is the work of the processor and memory, not of the disk. Times are medians; *each round* is the smallest and
the largest ratio to native of any single round.

The field is {mib} MiB of doubles, 2048 wide, in chunks of 64 x 512 (256 KiB), written and read in pieces of 64 MiB.
Without a filter its values are random; with shuffle and gzip (level 4) it is smooth, with ten bits after the point.
h5cow runs with `threads=2` and `sync=off`, since HDF5 never waits for the disk either; all other options at their
defaults. What waiting costs is the last part of this page. h5cow does what native does not: it hashes every chunk when it
stores it, checks every chunk when it reads it, keeps all versions, and commits them through its journal.

## Time

{times}

## Bytes on disk

The file at the end; for copies, all of them together. *Three versions* are the field as written, written again with 1 %
of the chunks different, and after a further 1 % was changed. The small file has eight datasets of 1000 doubles.

{bytes}

## Memory

The limit that was set is {limit} MiB more than native. The program's own 64 MiB are in both numbers.

{memory}

## What a commit costs

Chunks of 16 doubles; a commit changes one value in each of so many scattered chunks. Means of {commit_count} commits
one after another, in bytes; the data of the changed chunks is not counted. *Changed in place* are bytes of the former
file that have another value afterwards, *written over* those that were written to at all: HDF5 rewrites a whole chunk
of a table to change a row of it. These columns are of a build without the journal, since they are what a version costs;
*with the journal* is all together with it: what is changed in place stands in the journal first, whose place in the file is
used again. Time, also with it, is that of open, write, close; *native* that of the same without versions.

{commits}

## Opening

{openers} processes a round open the same file {opens} times each. The first time includes what HDF5 and the connector
set up once in a process, but not loading them. The chunks are those of the commits.

{opened}

## Waiting for the disk

With `sync=full`, the default, a commit waits twice until what it wrote is on the disk. Here the disk is not left in peace:
it is what is measured. Writing {mib} MiB as above; for native the last column is its time and that of an `fdatasync` of as
much data:

{large}

Commits of 1 MiB of new data each. In turn with them the disk alone: appending 1 MiB and `fdatasync` took {first},
overwriting 512 bytes and `fdatasync` {second}, {floor} together; the target is that and 2 ms. `open, write and close`
also applies the commit, which waits once more.

{small}
""".replace("{limit}", str(MEMORY_TARGET))
