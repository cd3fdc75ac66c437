#!/usr/bin/env python3
"""Time, bytes on disk and memory of HDF5 work: HDF5 alone, with a copy of the file for each version, h5cow, and others that keep versions.

usage: bench.py [--quick] [--repeat N] [--only PART]... [--most N] [--folder FOLDER] [--results FILE] [--add] [--from FILE] [--write-docs]

Every piece of work runs in a process of its own, which times itself: workload.c and programs.py, ordinary programs in C and by
h5py. A part does its work in all ways, in turn within a round and in the next round in the other order; where rounds are short, the
first is dropped. h5cow does not wait for the disk (sync=off), as HDF5 does not; what waiting costs is a part of its own. Files lie in
one folder, are in the page cache when they are used, and are on disk before the next piece starts.

engine.py runs processes and rounds, parts.py has what grows (chunks, versions, objects) and the command's verbs. All that was
measured is in FILE (build/bench.json; of a part or a quick run build/bench-part.json) after every round; --from makes the page of it without measuring, --add keeps what it has of other
parts; --beside is beside.py. What is printed, and written to docs/performance.md, is made by report.py and figures.py; its plots by plots.py.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

import beside
import parts
import report
from engine import ALL_WAYS, COPIES, H5COW, NATIVE, Engine, Failed, Sizes

TOP = pathlib.Path(__file__).resolve().parent.parent


class Bench(Engine):
    """The parts that compare everyday work; each method is one, and one round of it."""

    state = ""  # of the code, where there are two

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

    def blosc(self):
        for way in self.ways(NATIVE, H5COW):
            self.note("blosc: write", way, self.child(way, "write", f"{way}.h5", self.sizes.mib, 2))
            self.note_bytes("blosc: written", way, f"{way}.h5")
        for way in self.ways(NATIVE, H5COW):
            self.note("blosc: read", way, self.child(way, "read", f"{way}.h5", self.sizes.mib, 0))

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
            if self.round:
                self.results.synced(("write", way, sync), said["seconds"])
            self.clear()
        with open(self.file("disk"), "wb") as file:
            for _ in range(self.sizes.mib // 64):
                file.write(os.urandom(1 << 20) * 64)
            written = time.perf_counter()
            file.flush()
            os.fdatasync(file.fileno())
        if self.round:
            self.results.synced(("disk", "", ""), time.perf_counter() - written)
        self.clear()
        for sync in self.ways("off", "normal", "full"):
            command = [str(self.workload.parent / "commits"), str(self.file("commits.h5")), str(self.sizes.synced)]
            lines = [line.split() for line in self.run_child(command, self.environment(H5COW, sync)).splitlines()]
            if lines[-1] != ["done", "1"]:
                raise Failed("`commits` has not come to its end")
            for kind, *values in lines[:-1] if self.round else []:
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
                if self.round:
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
                        said = self.child(way, "commit", f"{way}.h5", chunks, rank, changes, self.sizes.commits, 1)
                        self.results.commit(rank, chunks, changes, way, said["commit"])
                self.clear()

    def run(self, names):
        for number, name in enumerate(names, 1):
            self.place = f"{self.state}part {number} of {len(names)}, {name}"
            self.round = 1
            if name in parts.PARTS:
                parts.PARTS[name](self)
            elif name == "commit":
                self.one_round(name)
                self.tell("done")
            else:
                for _ in self.rounds(self.repeat, warm=True):
                    self.one_round(name)

    def one_round(self, name):
        """All of it or nothing further: its ways build on each other's files."""
        with self.attempt(name, self.sizes.mib, ALL_WAYS):
            getattr(self, name)()
        self.clear()


NAMES = ("plain", "gzip", "blosc", "rows", "versions", "sync", "commit", "open", *parts.PARTS)


def main():
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: about two minutes")
    parser.add_argument("--repeat", type=int, metavar="N", help="rounds that count (default 3, quick 1)")
    parser.add_argument("--only", action="append", choices=NAMES, metavar="PART",
                        help=f"only this part; may be given several times: {', '.join(NAMES)}")
    parser.add_argument("--most", type=int, metavar="N", help="at most N chunks, versions, objects, in parts that have sizes")
    parser.add_argument("--folder", metavar="FOLDER", help="where the files go meanwhile (default: the build folder)")
    parser.add_argument("--results", metavar="FILE", help="where all that is measured goes (default: build/bench.json; of a part, build/bench-part.json)")
    parser.add_argument("--add", action="store_true", help="keep what that file has of other parts")
    parser.add_argument("--from", dest="source", metavar="FILE", help="measure nothing: the tables, and the page, of this file")
    parser.add_argument("--beside", metavar="COMMIT", help="measure another state of the code in the same run, in turn: one table, before and after")
    parser.add_argument("--write-docs", action="store_true", help="write docs/performance.md and docs/plots from this run")
    options = parser.parse_args()
    repeat = options.repeat if options.repeat is not None else 1 if options.quick else 3
    if repeat < 1:
        parser.error("--repeat must be at least 1")
    if options.most is not None and options.most < 100:
        parser.error("--most must be at least 100")
    if options.write_docs and not options.source and (options.quick or (options.only and not options.add)):
        parser.error("--write-docs needs the whole run: leave --quick away, and give --add with --only")
    if options.beside:
        if options.source or options.add or options.write_docs:
            parser.error("--beside goes with --quick, --repeat, --only, --most and --folder")
        return measure_both(options, repeat)
    results = report.Results.load(options.source) if options.source else measure(options, repeat)
    page = report.Page(results)
    print(page.tables())
    if os.environ.get("H5COW_RESULTS"):
        with open(os.environ["H5COW_RESULTS"], "a") as told:
            told.writelines(json.dumps(line) + "\n" for line in page.told())
    if options.write_docs:
        import plots

        (TOP / "docs" / "plots").mkdir(exist_ok=True)
        for name, svg in plots.all_plots(results):
            (TOP / "docs" / "plots" / f"{name}.svg").write_text(svg)
        (TOP / "docs" / "performance.md").write_text(page.document())
        print("bench: docs/performance.md and docs/plots are written", file=sys.stderr)
    for part, size, way, what in results.failures:
        if way in (NATIVE, H5COW, ALL_WAYS):
            return 1  # the page says which
    return 0


@contextlib.contextmanager
def folder_for(options, sizes, states=1):
    """Where the files go."""
    place = options.folder or os.environ.get("H5COW_BUILD")
    if place is not None and not os.path.isdir(place):
        sys.exit(f"bench: there is no folder {place}")
    need = states * 6 * max(sizes.mib << 20, 1 << 28)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=place) as folder:
        if shutil.disk_usage(folder).free < need:
            sys.exit(f"bench: {need >> 20} MiB must be free for the files: name another place with --folder")
        yield pathlib.Path(folder)


def parts_of(options):
    return [name for name in NAMES if not options.only or name in options.only]


def measure_both(options, repeat):
    other = os.environ.get("H5COW_BUILD_BESIDE")
    if not other:
        sys.exit("bench: H5COW_BUILD_BESIDE is not set: run ./dev bench --beside COMMIT")
    sizes = Sizes(options.quick, options.most)
    with folder_for(options, sizes, 2) as folder:
        benches = []
        for name, build, plugins in (("before", other, beside.search_path(other)), ("after", None, None)):
            (folder / name).mkdir()
            kept = pathlib.Path(os.environ["H5COW_BUILD"]).parent / f"bench-{name}.json"
            bench = Bench(sizes, folder / name, repeat, lambda results, kept=kept: results.save(kept), build, plugins)
            bench.state = f"{name}, "
            bench.results.about(repeat, folder)
            benches.append(bench)
        beside.run_both(*benches, parts_of(options))
    before, after = (bench.results for bench in benches)
    print(f"before: {options.beside}\n")
    print(beside.table(before, after))
    for failure, why in [*before.failures.items(), *after.failures.items()]:
        print(f"bench: {failure[0]} {failure[1]:,}, {failure[2]}: {why}", file=sys.stderr)
    return int(any(way in (NATIVE, H5COW, ALL_WAYS) for _, _, way, _ in after.failures))


def measure(options, repeat):
    sizes = Sizes(options.quick, options.most)
    whole = options.add or not (options.quick or options.only)
    place_of_results = pathlib.Path(os.environ.get("H5COW_BUILD", TOP / "build/release")).parent
    kept = pathlib.Path(options.results or place_of_results / ("bench.json" if whole else "bench-part.json"))
    former = report.Results.load(kept) if options.add and kept.exists() else None
    with folder_for(options, sizes) as folder:

        def save(results):
            results.took = time.monotonic() - bench.began
            results.merged(former).save(kept)

        bench = Bench(sizes, folder, repeat, save)
        bench.results.about(repeat, folder)
        bench.run(parts_of(options))
        save(bench.results)
    return bench.results.merged(former)


if __name__ == "__main__":
    sys.exit(main())
