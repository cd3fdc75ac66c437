"""What bench.py measured, as tables; and docs/performance.md around them. Targets stand here and in figures.py, and nowhere else."""

import ast
import json
import os
import platform
import statistics
import time
import types

import figures
from figures import COPIES, H5COW, NATIVE, median, ratios

WAYS = NATIVE, COPIES, H5COW
BARE = "without journal"  # h5cow in a build without the journal
SYNC_TARGET = 0.05  # of the time without the journal
COMMIT_TARGET = 0.002  # seconds more than the disk needs
MEMORY_TARGET = 256  # MiB more than native
OPEN_TARGETS = {"first": 1.5, "again": 2.0}
SESSION_TARGET = 2500  # bytes of a session that changes one value

# Rows in this order: key, title, target of time against native (None: not asked for).
WORKS = (
    ("plain: write", "write, no filter", 1.15),
    ("plain: write all again, 1 % of the chunks differ", "write all again, 1 % of the chunks differ", None),
    ("plain: write only 1 % of the chunks", "write only 1 % of the chunks", None),
    ("plain: read", "read", 0.75),
    ("plain: read version 1", "read the first version", None),
    ("gzip: write", "write, shuffle and gzip", 0.55),
    ("gzip: write all again, 1 % of the chunks differ", "write all again, 1 % of the chunks differ, gzip", None),
    ("gzip: write only 1 % of the chunks", "write only 1 % of the chunks, gzip", None),
    ("gzip: read", "read, gzip", 0.55),
    ("gzip: read version 1", "read the first version, gzip", None),
    ("blosc: write", "write, Blosc LZ4", 0.8),
    ("blosc: read", "read, Blosc LZ4", 0.8),
    ("rows: row by row", "write row by row", 1.2),
    ("rows: row by row, extending", "write row by row, extending each time", 1.2),
    ("versions: change one value", "{versions} times: open, change one value, close", 10.0),
)
STORED = (
    ("plain: three versions", "three versions, no filter"),
    ("gzip: three versions", "three versions, shuffle and gzip"),
    ("blosc: written", "written, Blosc LZ4"),
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
    """Numbers of all rounds that count: of each key a number for each round, or a list. A file of JSON holds all of it."""

    KEPT = ("seconds", "memory", "bytes", "figures", "opened", "waits", "commits", "failures", "contestants")

    def __init__(self, sizes):
        self.sizes = sizes
        self.hdf5 = ""
        self.repeat = self.took = 0
        self.date = self.machine = self.system = ""
        self.seconds = {}  # (work, way): {round: seconds}
        self.memory = {}  # MiB, likewise
        self.bytes = {}
        self.figures = {}  # (part, size, what, way): {round: value}
        self.opened = {}  # (which, way): seconds, several a round
        self.waits = {}  # what sync() of bench.py measured: seconds
        self.commits = {}  # (rank, chunks, changes, way): [appended, overwritten, changed, seconds] each
        self.failures = {}  # (part, size, way, what): why
        self.contestants = {}  # way: what it is

    def about(self, repeat, folder):
        self.repeat, self.date, self.machine, self.system = repeat, time.strftime("%Y-%m-%d"), machine(), file_system(folder)

    def work(self, work, way, number, seconds, memory):
        self.seconds.setdefault((work, way), {})[number] = seconds
        self.memory.setdefault((work, way), {})[number] = memory

    def stored(self, what, way, number, size):
        self.bytes.setdefault((what, way), {})[number] = size

    def synced(self, key, seconds):
        self.waits.setdefault(key, []).append(seconds)

    def opening(self, way, seconds):
        """SECONDS: of one opening after another in one process."""
        self.opened.setdefault(("first", way), []).append(seconds[0])
        self.opened.setdefault(("again", way), []).append(statistics.median(seconds[1:]))

    def commit(self, rank, chunks, changes, way, commits):
        self.commits[rank, chunks, changes, way] = commits

    def failed(self, part, size, way):
        """What a cell says where there is no value."""
        return "not measured" if (part, size, way, "") in self.failures else ""

    def save(self, path):
        """Written anew and renamed: what was saved before is never lost."""
        told = {name: getattr(self, name) for name in ("hdf5", "repeat", "took", "date", "machine", "system")}
        told["sizes"] = vars(self.sizes)
        for name in self.KEPT:
            told[name] = {repr(key): value for key, value in getattr(self, name).items()}
        with open(f"{path}.part", "w") as file:
            json.dump(told, file)
        os.replace(f"{path}.part", path)

    @classmethod
    def load(cls, path):
        with open(path) as file:
            told = json.load(file)
        results = cls(types.SimpleNamespace(**told.pop("sizes")))
        for name, value in told.items():
            if name in cls.KEPT:
                value = {ast.literal_eval(key): by_round(found) for key, found in value.items()}
            setattr(results, name, value)
        return results

    def merged(self, former):
        """With what FORMER has of other parts. Of a part that was run again, nothing former stays that would stand beside it."""
        if former is None:
            return self
        both = Results(self.sizes)
        vars(both).update({name: value for name, value in vars(self).items() if name not in self.KEPT})
        for name in self.KEPT:
            setattr(both, name, getattr(former, name) | getattr(self, name))
        again = {key[0] for key in (*self.figures, *self.failures)}
        both.figures = {key: value for key, value in former.figures.items() if key[0] not in again} | self.figures
        both.failures = {key: value for key, value in former.failures.items() if key[0] not in again} | self.failures
        both.took += former.took
        both.hdf5 = self.hdf5 or former.hdf5
        return both


def by_round(value):
    """JSON has no numbers as names."""
    return {int(number): found for number, found in value.items()} if isinstance(value, dict) else value


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


class Text:
    """How figures.py says numbers."""

    time, size, table = staticmethod(time_text), staticmethod(size_text), staticmethod(table)


class Page:
    def __init__(self, results):
        self.results = results
        self.words = {"versions": f"{results.sizes.versions:,}", "many": f"{results.sizes.versions + 1:,}"}
        self.verdicts = []  # (goal of figures.py or None, what, value, target, whether it is met) of each

    def verdict(self, what, value, target, text=None, shown=None):
        """The target, and whether it was met. TEXT and SHOWN: target and value as text, where they are no ratio to native."""
        if target is None or value is None:
            return ""
        said = f"≤ {text or format(target, '.2f')}"
        self.verdicts.append((None, what, shown or f"{value:.2f} x", said if text else f"{said} x native", value <= target))
        return f"{said} {'met' if value <= target else 'MISSED'}"

    def median(self, numbers, *key):
        found = numbers.get(key)
        return (median(found) if isinstance(found, dict) else statistics.median(found)) if found else None

    def time_table(self):
        rows = []
        for key, title, target in WORKS:
            native, copies, own = (self.median(self.results.seconds, key, way) for way in WAYS)
            if own is None:
                continue
            title = title.format(**self.words)
            each = ratios(self.results.seconds.get((key, H5COW)), self.results.seconds.get((key, NATIVE)))
            ratio = statistics.median(each) if each else None
            rows.append([title, time_text(native), time_text(copies), time_text(own), f"{ratio:.2f}" if each else "",
                         f"{min(each):.2f} to {max(each):.2f}" if each else "", self.verdict(title, ratio, target),
                         ratio_text(own, copies)])
        head = ["work", "native", "copies", "h5cow", "/ native", "each round", "target", "/ copies"]
        return table(head, rows) if rows else ""

    def bytes_table(self):
        rows = []
        for key, title in STORED:
            native, copies, own = (self.median(self.results.bytes, key, way) for way in WAYS)
            if own is None:
                continue
            title = title.format(**self.words)
            said = ""
            if key == "versions: change one value" and native:
                each = (own - native) / self.results.sizes.versions
                said = f"{each:,.0f} bytes each: " + self.verdict(f"bytes of {title}", each, SESSION_TARGET, f"{SESSION_TARGET:,} each",
                                                                             f"{each:,.0f} each")
            rows.append([title, size_text(native), size_text(copies), size_text(own), ratio_text(own, native),
                         ratio_text(own, copies), said])
        head = ["on disk", "native, last state only", "copies", "h5cow", "/ native", "/ copies", "target"]
        return table(head, rows) if rows else ""

    def memory_table(self):
        rows = []
        for key, title, _ in WORKS:
            native, own = (self.median(self.results.memory, key, way) for way in (NATIVE, H5COW))
            if native is None or own is None:
                continue
            title = title.format(**self.words)
            rows.append([title, f"{native:.0f} MiB", f"{own:.0f} MiB", ratio_text(own, native), f"{own - native:+.0f} MiB",
                         self.verdict(f"memory of: {title}", own - native, MEMORY_TARGET, f"{MEMORY_TARGET} MiB",
                                      f"{own - native:+.0f} MiB")])
        head = ["largest memory of the process", "native", "h5cow", "/ native", "more", "target"]
        return table(head, rows) if rows else ""

    def commit_table(self):
        rows = []
        for (rank, chunks, changes, way), commits in self.results.commits.items():
            if way != BARE or (rank, chunks, changes, H5COW) not in self.results.commits:
                continue
            appended, overwritten, changed = (statistics.mean(commit[i] for commit in commits) for i in range(3))
            data = changes * 16 * 8  # what the chunks themselves hold
            journalled = self.results.commits[rank, chunks, changes, H5COW]
            all = statistics.mean(commit[0] + commit[2] for commit in journalled) - data
            own = statistics.median(commit[3] for commit in journalled)
            native = statistics.median(commit[3] for commit in self.results.commits[rank, chunks, changes, NATIVE])
            target = commit_target(chunks, changes)
            title = f"{rank}-D, {chunks:,} chunks"
            rows.append([title, str(changes), f"{appended - data:,.0f}", f"{changed:,.0f}", f"{appended - data + changed:,.0f}",
                         self.verdict(f"bytes of a commit of {changes} in {title}", appended - data + changed, target,
                                      target and f"{target:,} bytes", f"{appended - data + changed:,.0f} bytes"),
                         f"{overwritten:,.0f}", f"{all:,.0f}", time_text(own), time_text(native)])
        head = ["dataset", "chunks changed", "appended", "changed in place", "together", "target", "written over",
                "with the journal", "time", "native"]
        return table(head, rows) if rows else ""

    def open_table(self):
        rows = []
        chunks = f"{self.results.sizes.open_chunks:,} chunks"
        for which, title in (("first", "the first time in a process"), ("again", "again in the same process")):
            native, own = (self.median(self.results.opened, which, way) for way in (NATIVE, H5COW))
            if own is not None and native:
                rows.append([title, time_text(native), time_text(own), ratio_text(own, native),
                             self.verdict(f"open, read one value of {chunks}, {title}", own / native, OPEN_TARGETS[which])])
        head = [f"open, read one value of {chunks}, close", "native", "h5cow", "/ native", "target"]
        return table(head, rows) if rows else ""

    def sync_tables(self):
        """-> of large writes, of commits; None where waiting was not measured to its end."""
        def median(*key):
            return self.median(self.results.waits, *key)

        bare, disk = median("write", BARE, "off"), median("disk", "", "")
        if bare is None or median("close", "full", 0) is None or median("disk", "full", 0) is None:
            return None
        rows = []
        for way, sync, title in ((NATIVE, "", "native"), (BARE, "off", "h5cow in a build without the journal"),
                                 (H5COW, "off", "h5cow, sync=off"), (H5COW, "normal", "h5cow, sync=normal"),
                                 (H5COW, "full", "h5cow, sync=full")):
            own = median("write", way, sync)
            compared = (way, sync) == (H5COW, "off")
            on_disk = own + disk if way == NATIVE else None if sync == "off" else own
            more = own / bare - 1
            said = self.verdict("what the journal adds to a large write", more, SYNC_TARGET, f"{SYNC_TARGET:+.0%}",
                                f"{more:+.1%}") if compared else ""
            rows.append([title, time_text(own), f"{more:+.1%}" if compared else "", said, time_text(on_disk)])
        large = table(["write, no filter", "time", "more", "target", "and it is on the disk"], rows)
        rows = []
        for sync in ("full", "normal", "off"):
            flush, close = median("flush", sync, 0), median("close", sync, 0)
            target = self.floor() + COMMIT_TARGET if sync == "full" else None
            rows.append([f"sync={sync}", time_text(flush),
                         self.verdict("a commit of 1 MiB, sync=full", flush, target, target and time_text(target),
                                      time_text(flush)), time_text(close)])
        return large, table(["1 MiB", "write and H5Fflush", "target", "open, write and close"], rows)

    def sections(self):
        """-> heading, text, tables of all that was measured, in the order of the page."""
        yield "Time", TIME, [self.time_table()]
        yield "Bytes on disk", BYTES, [self.bytes_table()]
        yield "Memory", MEMORY, [self.memory_table()]
        for heading, text, rows in figures.Figures(self.results, Text, self.verdicts).sections():
            yield heading, text, [rows]
        yield "What a commit costs", COMMITS, [self.commit_table()]
        yield "Opening", OPENING, [self.open_table()]
        waits = self.sync_tables()
        if waits:
            yield "Waiting for the disk", WAITING, [waits[0]]
            yield "", WAITING_OFTEN, [waits[1]]

    def tables(self):
        """What the terminal shows."""
        self.verdicts.clear()
        shown = [part for heading, _, found in self.sections() for part in found if part]
        return "\n\n".join(part for part in [*shown, self.failures(), self.counted()] if part)

    def absent(self):
        """Goals that were not measured."""
        told = {goal for goal, *_ in self.verdicts}
        return [goal for goal in figures.GOALS if goal not in told]

    def counted(self):
        met = sum(verdict[-1] for verdict in self.verdicts)
        return f"Of {len(self.verdicts)} targets that were measured, {met} are met; {len(self.absent())} others were not measured."

    def target_table(self):
        """Every target, those that are missed first."""
        rows = [[what, shown, text, "met" if met else "**missed**"]
                for _, what, shown, text, met in sorted(self.verdicts, key=lambda verdict: verdict[-1])]
        words = figures.Figures(self.results, Text, [])
        rows += [[words.label(goal.part, goal.size, goal.what), "", words.bound(goal), "not measured"] for goal in self.absent()]
        return table(["work", "measured", "target", ""], rows)

    def failures(self):
        if not self.results.failures:
            return ""
        rows = [[f"{part} {size:,}" + (f", {what}" if what else ""), way, why.replace("|", "\\|")]
                for (part, size, way, what), why in self.results.failures.items()]
        return table(["could not be measured", "way", "why"], rows)

    def told(self):
        """What docs/reliability.md says of it."""
        if self.sync_tables() is None:
            return []
        (bare, full, off), floor = self.costs(), self.floor()
        command = "./dev bench --only sync"
        slowest, more = floor + COMMIT_TARGET, off / bare - 1
        return [
            {"item": 9, "what": "commits of 1 MiB by H5Fflush, sync=full; in turn with them two fdatasync of the same bytes",
             "result": f"median {time_text(full)}; the disk alone {time_text(floor)}; "
                       f"{self.verdict('', full, slowest, time_text(slowest))}", "command": command},
            {"item": 9, "what": f"{self.results.sizes.mib} MiB written with sync=off, against a build without the journal",
             "result": f"{more:+.1%}; {self.verdict('', more, SYNC_TARGET, f'{SYNC_TARGET:+.0%}')}",
             "command": command},
        ]

    def floor(self):
        """Seconds that the disk needs for two syncs."""
        waits = self.results.waits
        return statistics.median(a + b for a, b in zip(waits["disk", "full", 0], waits["disk", "full", 1]))

    def costs(self):
        return [self.median(self.results.waits, *key)
                for key in (("write", BARE, "off"), ("flush", "full", 0), ("write", H5COW, "off"))]

    def document(self):
        sizes, results = self.results.sizes, self.results
        self.verdicts.clear()
        words = dict(self.words, mib=sizes.mib, commit_count=sizes.commits, opens=sizes.opens, openers=sizes.openers, limit=MEMORY_TARGET)
        if self.sync_tables():
            disk = self.median(results.waits, "disk", "full", 0), self.median(results.waits, "disk", "full", 1)
            words |= {"floor": time_text(self.floor()), "first": time_text(disk[0]), "second": time_text(disk[1])}
        self.verdicts.clear()
        parts = []
        for heading, text, tables in self.sections():
            if any(tables):
                text = text if heading in TEXTS_AS_THEY_ARE else text.format(**words)
                parts += [*([f"## {heading}"] if heading else []), text.strip(), *tables]
                parts += [f"![{words_of}](plots/{plot}.svg)" for plot, (under, words_of) in PLOTS.items()
                          if under == heading and self.has_plot(plot)]
        contestants = "".join(f" {what}." for _, what in sorted(results.contestants.items()))
        rounds = f"{results.repeat} round" + "s" * (results.repeat > 1)
        opening = OPENING_WORDS.format(date=results.date, hdf5=results.hdf5, machine=results.machine, system=results.system, rounds=rounds,
                                       minutes=results.took / 60, contestants=contestants, mib=sizes.mib)
        failures = self.failures()
        parts = [opening.strip(), "## Targets", TARGETS.strip(), self.counted(), self.target_table(),
                 "## Where the time goes", PROFILE.strip(), *parts]
        if failures:
            parts += ["## What could not be measured", failures]
        return "\n\n".join(parts) + "\n"

    def has_plot(self, plot):
        return any(key[0] == PLOTTED[plot] and key[3] == H5COW for key in self.results.figures)


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


# Plots of plots.py: under which heading, and what it shows, for those who cannot see it.
PLOTS = {
    "chunks": ("Many chunks", "Time of a commit of one changed chunk, and largest memory of its process, against the number of chunks: native, h5cow"),
    "versions": ("Many versions", "Time of a commit of one element, and of opening an old version, against the number of versions: native, h5cow"),
    "bytes": ("One value changed, 10,000 times", "Bytes of the file, and time of all versions, against the number of versions: native, versioned-hdf5, Onion, h5cow"),
    "objects": ("Many objects", "Time for each dataset of creating and of reading, and time of changing one, against the number of datasets: native, h5cow"),
}
PLOTTED = {"chunks": "chunks", "versions": "age", "bytes": "value", "objects": "objects"}  # the part of each
TEXTS_AS_THEY_ARE = {heading for _, heading, _, _ in figures.TABLES}

OPENING_WORDS = """\
# Performance

This page was written by `./dev bench --write-docs` on {date}, prose and all: change `benchmarks/report.py` and
`benchmarks/figures.py`, not this page. HDF5 {hdf5}, {machine}, files on {system}.
{rounds}, {minutes:.0f} minutes in all.{contestants}

Ways to do the same work are compared: **native**, HDF5 without any versions; **copies**, HDF5 with a full copy of
the file before each change, which is how versions are kept without h5cow; **h5cow**; and, where they can do the work,
**versioned-hdf5** and HDF5's **Onion** driver. The programs that do the work (`benchmarks/workload.c`, and `benchmarks/programs.py`
by h5py) are the same natively, with copies and with h5cow, and know of none of them. Each piece of work is a process of its
own; it times what stands from opening the file to having closed it. Ways take turns within a round, in changing order.
Files are in the page cache before they are read, and the disk is left in peace before the next piece starts: what is
compared is the work of the processor and memory, not of the disk. Times are medians of the rounds, */ native* the median of the
ratios of each round; *each round* is the smallest and the largest of them. What takes minutes to make is made once, and measured
in every round; the histories of 10,000 versions have one round.

h5cow runs with `threads=2` and `sync=off`, since HDF5 never waits for the disk either; all other options at their
defaults. What waiting costs is the last part of this page. h5cow does what native does not: it hashes every chunk when it
stores it, checks every chunk when it reads it, keeps all versions, and commits them through its journal.
"""

TARGETS = """\
What was set as a target before it was reached; those of memory and waiting are older, and stay. The parts below say what is measured.
"""

PROFILE = """
What is missed by far, as callgrind counted it on 2026-11-25 to 29: instructions of C programs that do the same work, with HDF5 1.14.5 built with
`-O2`. Hashing is not in these figures, since valgrind lacks the processor's instructions for SHA-256.

* *Written without a filter* (by time, of 0.95 s of processor in 0.55 s): hashing 0.41 s, with 512-bit vectors that keep both of the processor's ports for them busy three quarters of the
  time; the system's writing 0.31; copying what the program gave, once, while it is hashed, 0.05 to 0.1; checksums 0.05. Two cores are 90 % busy. How much of
  it shows depends on what else the memory of the machine has to do: from run to run 1.02 to 1.41.
* *Datasets created*: 0.46 million for each dataset of four chunks, natively 0.2; 1.0 where HDF5 created the
  head. It is kept as two virtual ones: the head, and the view of its root, which is the snapshot in the version as well; both are written as bytes. Links are the most
  of it: that of the head takes HDF5 0.07 million, those of the view 0.01, 0.04 and 0.03. Of chunks of a page and less, and of all metadata, pages are written instead of
  pieces: 1.2 calls for each dataset of 16 KiB, natively 5.3. Where HDF5 has to open the head, for an attribute, that takes as long as
  creating it; a dataset with attributes is kept as three.
* *One of many datasets changed*: 5.6 million in a group of 1,000, and 1,000 for each further member, whose link is read, checked and
  written again among the bytes of the group's last version. The first time it is 68,000 for each: all members get a link of their own.
* *Open, change one value, close*: 3.5 million in a file of eight datasets, 3.7 of sixteen, natively 1.3; of both, 1.05 million clear memory for HDF5's cache, which takes 12 µs. By time,
  13 % is spent in the system, for 92 reads, most of 4 KiB, and 23 writes. Tables, the log, chunks and views are written as bytes, and the program's dataset
  is not opened by HDF5; what stands in for it takes 0.1. The version's tree takes 0.27 million, and 0.16
  finding out what it needs; pieces, their record and its view 0.3; where the head leads, and the view's link, 0.2; the journal 0.24, the index 0.14, HDF5 writing
  out what it has 0.1.
* *Open, read one value, close*: 0.22 million more than natively in a file of 100,000 chunks, and 25 reads instead of 12; natively 0.28, besides the memory for HDF5's
  cache. HDF5 opening and closing a dataset that stands in for the one which is not opened takes 80,000 of it, its lists of properties for the file 40,000.
* *Three series, a version*: 17.8 million for three datasets, opened six times each, with Python and h5py. Storing 7.7 changed chunks takes 6.0,
  of which hashes in valgrind 4 and the pieces of 4.6 composed ones 2.0. Views take 0.8; the version's tree 0.9; opening the file 1.4, of which HDF5 1.2.
  Extents are written as bytes; where HDF5 opened the heads for them, that took 1.1. By time, 37 % is Python, numpy and h5py, 30 % HDF5, 12 % h5cow, 12 % the C library
  and 7 % the system.
* *Commits in files with many versions*: a session that changes one value takes 4.1 million at 100 versions, 5.6 at 20,000 and 5.3 at 100,000. Of the difference to 100, 0.5 to 0.9 is HDF5 reading, checking and writing blocks of up to 64 KiB in which it keeps the names of the
  group `versions`, and what is free between them; 0.2 to 0.5 is what finds chunks by their hashes and snapshots, which small files do without; the rest is
  that these files are larger, and so are the trees that are gone down. What takes longer than instructions say is memory: pages of a file of more than a
  gigabyte are in none of the processor's caches.
* *Datasets copied*: 1.0 million each, natively 0.1: HDF5 makes and closes two virtual datasets, the head and the snapshot, and links them.
* *Datasets deleted*: 97,000 each and 25,000 at the commit, natively 79,000: 55,000 moving the link to `removed`, 18,000 the look at what it leads to, 12,000 finding
  out at the commit what has no link any more.
* *Groups*: 103,000 each by a C program, natively 46,000: a version has a group for each, which takes HDF5 45,000 to make. *Links*: 57,000, natively 21,000: a version
  has each, which takes HDF5 24,000.
* *Strings*: 2,070 each, written or appended, natively 1,170: HDF5's heap as natively, their text and its hash 660 (valgrind: less with
  the processor's instructions), copies of the strings, since what they point to is the program's, 150. A commit is 2 ms of what a session takes.
* *Bytes of a commit of 16 of 1,000,000 chunks in 2-D*: 16 leaves of the index and 27 nodes above them change, and each has a view. A leaf's has 9 or 10
  mappings, most others 16, one for each child: 590 mappings of 100 bytes.
"""

TIME = """\
The field is {mib} MiB of doubles, 2048 wide, in chunks of 64 x 512 (256 KiB), written and read in pieces of 64 MiB.
Without a filter its values are random; with shuffle and gzip (level 4), and with Blosc (LZ4, level 5, shuffle; native HDF5 by
the plugin that Debian has of it), it is smooth, with ten bits after the point.
"""

BYTES = """\
The file at the end; for copies, all of them together. *Three versions* are the field as written, written again with 1 %
of the chunks different, and after a further 1 % was changed. The small file has eight datasets of 1000 doubles; each of its
versions changes one value, and has what the file is larger than native's, divided by their number.
"""

MEMORY = """\
The limit that was set is {limit} MiB more than native. The program's own 64 MiB are in both numbers.
"""

COMMITS = """\
Chunks of 16 doubles; a commit changes one value in each of so many scattered chunks. Means of {commit_count} commits
one after another, in bytes; the data of the changed chunks is not counted. *Changed in place* are bytes of the former
file that have another value afterwards, *written over* those that were written to at all: HDF5 rewrites a whole chunk
of a table to change a row of it. These columns are of a build without the journal, since they are what a version costs;
*with the journal* is all together with it: what is changed in place stands in the journal first, whose place in the file is
used again. Time, also with it, is that of open, write, close; *native* that of the same without versions.
"""

OPENING = """\
{openers} processes a round open the same file {opens} times each. The first time includes what HDF5 and the connector
set up once in a process, but not loading them. The chunks are those of the commits.
"""

WAITING = """\
With `sync=full`, the default, a commit waits twice until what it wrote is on the disk. Here the disk is not left in peace:
it is what is measured. Writing {mib} MiB as above; for native the last column is its time and that of an `fdatasync` of as
much data:
"""

WAITING_OFTEN = """\
Commits of 1 MiB of new data each. In turn with them the disk alone: appending 1 MiB and `fdatasync` took {first},
overwriting 512 bytes and `fdatasync` {second}, {floor} together; the target is that and 2 ms. `open, write and close`
also applies the commit, which waits once more.
"""
