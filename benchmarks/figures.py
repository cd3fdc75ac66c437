"""What parts.py measured, as tables with their targets. The texts above the tables define the work.

A figure has a key: part, size, what was measured, way. It has a value for each round that counted. Names that end with "bytes"
or "memory" are bytes, with "part" a plain number, all others seconds.
"""

import dataclasses
import statistics

NATIVE, COPIES, H5COW = "native", "copies", "h5cow"
VERSIONED, ONION = "versioned-hdf5", "Onion"


def values(rounds):
    return list(rounds.values()) if rounds else []


def median(rounds):
    return statistics.median(values(rounds)) if rounds else None


def ratios(own, others):
    """Of each round that both have."""
    return [own[r] / others[r] for r in own if others.get(r)] if own and others else []


@dataclasses.dataclass(frozen=True)
class Goal:
    """A target of h5cow. `most`: a value; `least`: likewise; `times`: times the value of OF, another way, or of size OF; `more`: more than native."""

    part: str
    size: int
    what: str
    kind: str
    bound: float
    of: object = NATIVE


GOALS = (
    Goal("series", 1500, "file, bytes", "most", 40e6),
    Goal("series", 1500, "file, bytes", "times", 1 / 6, VERSIONED),
    Goal("series", 1500, "a version", "most", 3e-3),
    Goal("series", 1500, "a version", "times", 1 / 8, VERSIONED),
    Goal("value", 10_000, "file, bytes", "most", 60e6),
    Goal("append", 10_000, "beyond the data, bytes", "most", 5 * 1024),
    Goal("chunks", 100, "commit", "most", 2e-3),
    Goal("chunks", 10_000_000, "commit", "times", 2.0, 100),
    Goal("chunks", 10_000_000, "write, memory", "more", 96 * 2**20),
    Goal("chunks", 10_000_000, "commit, memory", "more", 96 * 2**20),
    Goal("age", 20_000, "commit", "times", 1.3, 100),
    Goal("age", 100_000, "commit", "times", 1.3, 100),
    Goal("age", 100_000, "open @N, read a value", "most", 1.5e-3),
    Goal("objects", 10_000, "create, close", "times", 2.0),
    Goal("objects", 10_000, "open, read one of each", "times", 1.3),
    Goal("objects", 10_000, "change one", "most", 10e-3),
    Goal("objects", 10_000, "delete all", "times", 2.0),
    Goal("copy", 4000, "a group of them", "times", 5.0),
    Goal("attributes", 10_000, "create, close", "times", 3.0),
    Goal("groups", 100_000, "create, close", "times", 2.0),
    Goal("links", 100_000, "create, close", "times", 2.0),
    Goal("strings", 300_000, "write", "times", 1.3),
    Goal("strings", 300_000, "read", "times", 1.3),
    Goal("strings", 300_000, "append, one session", "times", 1.3),
    Goal("writes", 5000, "single elements", "times", 1.2),
    Goal("writes", 5000, "compound field", "times", 1.2),
    Goal("reads", 4096, "column by column", "times", 1.0),
    Goal("reads", 4096, "strided", "times", 1.2),
    Goal("reads", 4096, "fancy rows", "times", 1.0),
    Goal("reads", 4096, "mask", "times", 1.0),
    Goal("small", 500, "create", "times", 2.0),
    Goal("small", 500, "change again", "times", 2.0),
    Goal("small", 500, "a file, bytes", "most", 12 * 1024),
    Goal("steps", 300, "a step", "most", 15e-3),
    Goal("steps", 300, "a step, bytes", "most", 12 * 1024),
    Goal("anew", 200, "first dereference", "most", 1e-3),
    Goal("filters", 65_536, "H5Zfilter_avail, not selected", "most", 2.0),
    Goal("diff", 40_000, "diff", "most", 50e-3),
    Goal("diff", 40_000, "read by it, bytes", "most", 2**20),
    Goal("restore", 1024, "restore", "most", 50e-3),
    Goal("restore", 1024, "the file grows by, bytes", "most", 2**18 - 1),
    Goal("forget", 1000, "free in all, no filter, part", "least", 0.95),
    Goal("forget", 1000, "with new chunks, no filter, part", "most", 1.05),
    Goal("forget", 1000, "free in all, gzip, part", "least", 0.95),
    Goal("forget", 1000, "with new chunks, gzip, part", "most", 1.05),
    Goal("forget", 1000, "gc --compact against only those written, part", "most", 1.02),
    Goal("keep", 10_000, "rows in turn, size against 20, part", "most", 1.5),
    Goal("keep", 10_000, "rows at random, size against 20, part", "most", 1.5),
)

# Of each part: heading, columns, what is done. Parts that share a table stand together.
TABLES = (
    (("series",), "1,500 versions of three series", (NATIVE, COPIES, VERSIONED, ONION, H5COW), """\
Three one-dimensional datasets of doubles, in chunks of 4,096 (32 KiB), without a filter. Each has 5,000 random values at first.
In each version, ten neighbours somewhere in each dataset get other random values, and ten are appended: 1,500 versions end with
20,000 values each. A version is: open for reading and writing, change, close; its time is the mean of all of them. The bytes are
those of all files at the end. Native HDF5 keeps the last state only. `copies` copies the file before each version. versioned-hdf5
makes a version by its `stage_version`, with what PyPI brings for it. Onion is HDF5's own driver for revisions
(`benchmarks/onion.c`, pages of 4 KiB), a program in C, where the others are h5py programs: about half a millisecond of Python is
in each of their versions and not in its. All begin with `libver="latest"`."""),
    (("value",), "One value changed, 10,000 times", (NATIVE, VERSIONED, ONION, H5COW), """\
A dataset of 1 MiB of random doubles, in chunks of 64 KiB. Each version changes one value at random. Otherwise as above; versioned-hdf5 makes 2,000 versions only, since each takes it longer than
the one before."""),
    (("append",), "100 rows appended, 10,000 times", (NATIVE, VERSIONED, ONION, H5COW), """\
A one-dimensional dataset of doubles, in chunks of 8,192 (64 KiB), begins with 100 random ones. Each version appends 100. *Beyond the
data* is what the file has at its end besides 8 bytes for each value, divided by the number of versions. Otherwise as above; versioned-hdf5 makes 2,000 versions only."""),
    (("chunks",), "Many chunks", (NATIVE, H5COW), """\
A one-dimensional dataset that can grow, in chunks of 16 doubles, written in slabs of 8 MiB by one process. Another process then
opens the file, changes one value, and closes it, 16 times; the median of these times is the `commit`. (`benchmarks/workload.c`)
The memory is the largest that the process ever had."""),
    (("age",), "Many versions", (NATIVE, H5COW), """\
A dataset of 100,000 doubles in chunks of 1,000 gets as many versions as said, each by opening the file, changing one value and
closing it. Then a process does the same 16 times, and the median is the `commit`; others open `FILE@N`, in the middle of the
history, and read one value; and `h5cow log -n 3` shows the newest versions, with all that starting a command takes."""),
    (("objects", "copy", "attributes", "groups", "links"), "Many objects", (NATIVE, H5COW), """\
By h5py, with `libver="latest"`. `objects`: datasets of 4,096 integers in four chunks, in the root group; all made in one session;
one element of each read in another; one element of one dataset changed, a session each (the median of ten); all deleted in one. Then as
many are made in another file as most h5py programs do, `f[name] = values`: contiguous, without a name at first, in HDF5's oldest format.
`copy`: a group of datasets of four chunks of 512 bytes is copied by one `H5Ocopy`, then each of them by one of its own.
`attributes`: of one object, a number each. `groups` and `links`: in the root group; hard links to one group."""),
    (("strings", "writes", "reads"), "Kinds of elements and of access", (NATIVE, H5COW), """\
By h5py. `strings`: strings of variable length in chunks of 10,000 are written, read, and appended to: 100 in each of ten sessions, then 1,000
a hundred times in one. `writes`: doubles written one by one in one session; one of three fields read, of a million compound
elements in chunks of 10,000. `reads`: of a square of doubles in chunks of 64 x 512 (256 KiB): every 64th column, each by a call of its own; every 7th
row and 5th column; an eighth of the rows, at random; a mask with 5 % of the elements. Times include what h5py does."""),
    (("small", "steps", "anew", "filters", "start"), "Small files and short sessions", (NATIVE, H5COW), """\
By h5py, as most programs use it. `small`: files with one dataset of ten integers, made, read, changed and changed again, each time
opened and closed. `steps`: as emcee keeps a sampler of 32 walkers in 5 dimensions, a session a step: a row of two datasets, all of a third, and
three attributes, one of 2.5 kB. `anew`: a file of ten datasets and references to them is written with mode `w` as many times as said; then it is
opened, and the first reference is followed. `filters`: H5Zfilter_avail of as many numbers, also by
a program that finds the plugin and does not select it. `start`: the command, from its start to its end."""),
    (("diff",), "Comparing versions", (H5COW,), """\
`h5cow diff FILE@1 FILE@2 --json` of a dataset in chunks of 256 KiB (40,000 are 10 GiB; a hundred of them differ, the others are
those again; gzip), of which ten chunks have changed. Time and bytes are those of the process, from its start."""),
    (("restore",), "Restoring a version", (H5COW,), """\
`h5cow restore FILE@N` of a file with one dataset in chunks of 256 KiB, as many MiB as said, whose two versions differ in every value. That the file
grows by less than a chunk says that no chunk was written."""),
    (("forget", "keep"), "Forgetting", (H5COW,), """\
`forget`: a file of as many versions, 100 chunks of 32 KiB, of which each version writes two anew; every second version is
forgotten, and `gc` run. Of the bytes of chunks that only those had, the file system has got some back: *given back*. *Free in all* are, in
parts of the same, the places that the next writer gives out, holes among them, each once: slots that hold nothing, and what the table
`free` has. *With new chunks*: as many as were freed are written by a hundred sessions; what the file takes of the disk then, against
before. *gc --compact*: a
file of 200 small datasets, in the same way, against a file to which only the kept versions were ever written. `keep`: a file of
1,000 chunks of 32 KiB that is written as many times with the option `keep=last:20`, against its size after 20."""),
)

ITEMS = {"series": "versions of three series", "value": "versions of one value", "append": "appends", "chunks": "chunks", "age": "versions", "objects": "datasets",
         "copy": "datasets copied", "attributes": "attributes", "groups": "groups", "links": "links", "strings": "strings",
         "writes": "calls", "reads": "wide", "diff": "chunks", "restore": "MiB", "forget": "versions", "keep": "sessions", "small": "files", "steps": "steps",
         "anew": "times written", "filters": "numbers", "start": "command"}


def is_size(what):
    return what.endswith(("bytes", "memory"))


class Figures:
    """Tables of a Results (report.py). TEXT: its functions for times and sizes. VERDICTS gets each target: what, value, bound, met."""

    def __init__(self, results, text, verdicts):
        self.results, self.text, self.verdicts = results, text, verdicts

    def rounds(self, part, size, what, way):
        return self.results.figures.get((part, size, what, way))

    def shown(self, what, value):
        if value is None:
            return ""
        if what.endswith("part"):
            return f"{value:.3f}"
        return self.text.size(value) if is_size(what) else self.text.time(value)

    def target(self, goal):
        """-> what is measured, and the same as text; None where it cannot be told."""
        own = self.rounds(goal.part, goal.size, goal.what, H5COW)
        if not own:
            return None
        if goal.kind in ("most", "least"):
            return median(own), self.shown(goal.what, median(own))
        if goal.kind == "more":
            native = self.rounds(goal.part, goal.size, goal.what, NATIVE)
            if not native:
                return None
            more = median(own) - median(native)
            return more, f"native {'-' if more < 0 else '+'} {self.text.size(abs(more))}"
        if isinstance(goal.of, int):
            small = self.rounds(goal.part, goal.of, goal.what, H5COW)
            found = [median(own) / median(small)] if small else []
        else:
            found = ratios(own, self.rounds(goal.part, goal.size, goal.what, goal.of))
        return (statistics.median(found), f"{statistics.median(found):.2f} x") if found else None

    def bound(self, goal):
        """The target as text: bytes as they were set, MB or KiB."""
        if goal.kind == "most" and is_size(goal.what) and goal.bound % 1e6 == 0:
            return f"≤ {goal.bound / 1e6:.0f} MB"
        if goal.kind in ("most", "least"):
            return f"{'≤' if goal.kind == 'most' else '≥'} {self.shown(goal.what, goal.bound)}"
        if goal.kind == "more":
            return f"≤ native + {self.text.size(goal.bound)}"
        factor = f"1/{1 / goal.bound:.0f}" if goal.bound < 0.5 else f"{goal.bound:.1f} x"
        return f"≤ {factor} {f'that at {goal.of:,}' if isinstance(goal.of, int) else goal.of}"

    def targets(self, part, size, what):
        """What the last column says of a row."""
        said = []
        for goal in GOALS:
            if (goal.part, goal.size, goal.what) != (part, size, what):
                continue
            told = self.target(goal)
            if told is None:
                continue
            value, shown = told
            text = self.bound(goal)
            met = value >= goal.bound if goal.kind == "least" else value <= goal.bound
            said.append(f"{text} {'met' if met else 'MISSED'}")
            self.verdicts.append((goal, self.label(part, size, what), shown, text, met))
        return "; ".join(said)

    def label(self, part, size, what):
        return f"{size:,} {ITEMS[part]}: {what.removesuffix(', bytes').removesuffix(', part')}"

    def row(self, part, size, what, ways):
        cells = [self.label(part, size, what)]
        for way in ways:
            rounds = self.rounds(part, size, what, way)
            if rounds:
                cells.append(self.shown(what, median(rounds)))
            else:
                cells.append(self.results.failed(part, size, way))
        if NATIVE in ways:
            each = ratios(self.rounds(part, size, what, H5COW), self.rounds(part, size, what, NATIVE))
            cells.append(f"{statistics.median(each):.2f}" if each else "")
            cells.append(f"{min(each):.2f} to {max(each):.2f}" if len(each) > 1 else "")
        return [*cells, self.targets(part, size, what)]

    def sections(self):
        """-> heading, text, table of each that was measured."""
        for parts, heading, ways, text in TABLES:
            rows = []
            for part in parts:
                found = sorted({(size, what) for p, size, what, _ in self.results.figures if p == part and what != "points"},
                               key=lambda key: key[0])
                order = list(dict.fromkeys(what for p, _, what, _ in self.results.figures if p == part))
                found.sort(key=lambda key: (key[0], order.index(key[1])))
                rows += [self.row(part, size, what, ways) for size, what in found]
            if rows:
                head = ["", *ways, *(["/ native", "each round"] if NATIVE in ways else []), "target"]
                yield heading, text, self.text.table(head, rows)
