"""The parts of bench.py that show what costs grow with, and what the command's verbs cost. Each notes figures: see figures.py.

A part is a function of the Bench. It makes its rounds itself, ways in turn within each, and stops nothing when a contestant fails:
`bench.attempt` notes why, and the part goes on with the others. What takes minutes to make is made once, and measured in every round.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from engine import COPIES, H5COW, NATIVE, ONION, VERSIONED, Failed

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs.py"


def program(bench, way, work, n, name):
    """Run a work of programs.py or of onion.c. -> what it measured."""
    env = bench.environment(way)
    if way == ONION:
        command = [str(bench.workload.parent / "onion"), work, str(bench.file(name)), str(n)]
    else:
        python = sys.executable
        if way == VERSIONED:
            python = os.environ.get("H5COW_VERSIONED")
            if not python:
                raise Failed("not there: PyPI could not be reached")
            env = {key: value for key, value in env.items() if not key.startswith("HDF5_")}
        command = [python, "-B", str(PROGRAMS), work, str(bench.file(name)), str(n), way]
    told = json.loads(bench.run_child(command, env).splitlines()[-1])
    del told["memory"]
    hdf5 = told.pop("hdf5")
    bench.to_disk(name)
    if way == H5COW and not run(bench, ["log", "-n", "1", bench.file(name)])[1]:
        raise Failed("the connector was not loaded; see h5cow doctor")
    if way == VERSIONED:
        bench.results.contestants[way] = f"{way} {told.pop('version')}, with HDF5 {hdf5}"
    return told


def compared(bench, part, work, n, ways, rounds, warm=False):
    """WORK of N in all WAYS, ROUNDS times; WARM: and once before, which does not count."""
    for _ in bench.rounds(rounds, warm, f"{work} {n:,}, "):
        for way in bench.ways(*ways):
            with bench.attempt(part, n, way):
                told = program(bench, way, work, n, f"{part}.h5")
                bench.figures(part, n, way, told)
            bench.clear()


# ---- histories ----


def series(bench):
    compared(bench, "series", "series", bench.sizes.series, (NATIVE, COPIES, VERSIONED, ONION, H5COW), min(bench.repeat, 3))


def value(bench):
    for n in bench.sizes.value:
        compared(bench, "value", "value", n, contestants(bench, n), 1)


def append(bench):
    for n in bench.sizes.append:
        compared(bench, "append", "append", n, contestants(bench, n), 1)


def contestants(bench, n):
    return (NATIVE, VERSIONED, ONION, H5COW) if n <= bench.sizes.versioned else (NATIVE, ONION, H5COW)


# ---- growth ----


def chunks(bench):
    for n in bench.sizes.many_chunks:
        for way in (NATIVE, H5COW):
            with bench.attempt("chunks", n, way):
                said = bench.child(way, "chunks", f"{way}.h5", n, 1)
                bench.figures("chunks", n, way, {"write, close": said["seconds"], "write, memory": said["memory"] * 2**20,
                                                 "file, bytes": bench.file(f"{way}.h5").stat().st_size})
        bench.tell(f"{n:,} chunks are written")
        for _ in bench.rounds(bench.repeat, what=f"commits to {n:,}, "):
            for way in bench.ways(NATIVE, H5COW):
                with bench.attempt("chunks", n, way):
                    said = bench.child(way, "commit", f"{way}.h5", n, 1, 1, bench.sizes.commits, 0)
                    bench.figures("chunks", n, way, {"commit": statistics.median(commit[3] for commit in said["commit"]),
                                                     "commit, memory": said["memory"] * 2**20})
        bench.clear()


def age(bench):
    """One file each, that gets older. A way that has failed once has no file to go on with."""
    former, alive = 0, [NATIVE, H5COW]
    for n in bench.sizes.ages:
        for way in alive:
            with bench.attempt("age", n, way):
                bench.child(way, "age", f"{way}.h5", former, n)
                bench.figures("age", n, way, {"file, bytes": bench.file(f"{way}.h5").stat().st_size})
        bench.tell(f"{n:,} versions are made")
        for _ in bench.rounds(bench.repeat, what=f"commits after {n:,}, "):
            for way in bench.ways(*alive):
                with bench.attempt("age", n, way):
                    bench.figures("age", n, way, {"commit": each(bench, way, "touch", f"{way}.h5")})
                    if way == H5COW:
                        bench.figures("age", n, way, {"open @N, read a value": each(bench, way, "glance", f"{way}.h5@{n // 2}"),
                                                      "log -n 3": run(bench, ["log", "-n", "3", bench.file("h5cow.h5")])[0]})
        former, alive = n, [way for way in alive if not bench.failed("age", n, way)]
    bench.clear()


def each(bench, way, work, name):
    """The median of many times in one process."""
    return statistics.median(once for once, in bench.child(way, work, name, bench.sizes.commits)["once"])


def objects(bench):
    for n in bench.sizes.objects:
        compared(bench, "objects", "objects", n, (NATIVE, H5COW), bench.repeat, warm=n < 5000)


def copy(bench):
    compared(bench, "copy", "copy", bench.sizes.copies, (NATIVE, H5COW), bench.repeat)


def attributes(bench):
    for n in bench.sizes.attributes:
        compared(bench, "attributes", "attributes", n, (NATIVE, H5COW), bench.repeat)


def groups(bench):
    for work in ("groups", "links"):
        for n in bench.sizes.groups:
            compared(bench, work, work, n, (NATIVE, H5COW), bench.repeat)


def access(bench):
    for work, n in (("strings", bench.sizes.strings), ("writes", bench.sizes.writes), ("reads", bench.sizes.reads)):
        compared(bench, work, work, n, (NATIVE, H5COW), bench.repeat, warm=True)


def small(bench):
    for work, sizes in (("small", (bench.sizes.small,)), ("steps", (bench.sizes.steps,)), ("anew", bench.sizes.anew), ("filters", (bench.sizes.filters,))):
        for n in sizes:
            compared(bench, work, work, n, (NATIVE, H5COW), bench.repeat, warm=True)
    n = bench.sizes.filters
    for _ in bench.rounds(bench.repeat, what="filters, h5cow not selected, "):
        with bench.attempt("filters", n, H5COW, "not selected"):
            told = program(bench, NATIVE, "filters", n, "filters.h5")
            bench.figures("filters", n, H5COW, {"H5Zfilter_avail, not selected": told["H5Zfilter_avail"]})
        bench.clear()
    for _ in bench.rounds(bench.repeat, warm=True, what="start of the command, "):
        with bench.attempt("start", 1, H5COW):
            bench.figures("start", 1, H5COW, {"h5cow --version": run(bench, ["--version"])[0]})


# ---- the command's verbs ----


def run(bench, words, right=(0,)):
    """The command h5cow. -> seconds, what it said, bytes that it read."""
    with bench.piece():
        return run_command(bench, words, right)


def run_command(bench, words, right):
    env = bench.environment(NATIVE)
    started = time.perf_counter()
    child = subprocess.Popen([bench.command, *map(str, words)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = child.stdout.read()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    took = time.perf_counter() - started
    io = dict(line.split(": ") for line in pathlib.Path(f"/proc/{child.pid}/io").read_text().splitlines())
    trouble = child.stderr.read()
    if child.wait() not in right:
        raise Failed(f"h5cow {words[0]}: {trouble.strip()}")
    return took, said, int(io["rchar"])


def diff(bench):
    n = bench.sizes.diff
    with bench.attempt("diff", n, H5COW):
        program(bench, H5COW, "chunked", n, "diff.h5")
        words = ["diff", "--json", f"{bench.file('diff.h5')}@1", f"{bench.file('diff.h5')}@2"]
        for _ in bench.rounds(bench.repeat, warm=True):
            took, _, read = zip(*(run(bench, words, right=(1,)) for _ in range(7)))
            bench.figures("diff", n, H5COW, {"diff": statistics.median(took), "read by it, bytes": max(read)})
    bench.clear()


def restore(bench):
    n = bench.sizes.restore
    path = bench.file("restore.h5")
    with bench.attempt("restore", n, H5COW):
        program(bench, H5COW, "twice", n, "restore.h5")
        for _ in bench.rounds(bench.repeat, warm=True):
            took, grown = [], []
            for number in (2, 3):  # each differs from what is there in every value
                size = path.stat().st_size
                took.append(run(bench, ["restore", f"{path}@{number}"])[0])
                grown.append(path.stat().st_size - size)
            bench.figures("restore", n, H5COW, {"restore": statistics.median(took), "the file grows by, bytes": max(grown)})
    bench.clear()


def work_of(bench, options, *words):
    """A program of programs.py that measures nothing, with options of the connector."""
    env = bench.environment(NATIVE) | {"HDF5_VOL_CONNECTOR": f"h5cow {options}"}
    bench.run_child([sys.executable, "-B", str(PROGRAMS), *map(str, words)], env)


def half_forgotten(bench, versions, packed, back, free, used):
    """Parts of the bytes that only forgotten versions had: BACK with the file system; FREE there or for new chunks. USED: what the
    file takes when as many new chunks were written, against what it took before."""
    path = bench.file("half.h5")

    def write(first, last):
        work_of(bench, "sync=off", "rewritten", path, first, last, 100, "same", packed)

    def vacant():
        told = bench.run_child([sys.executable, "-B", str(PROGRAMS), "vacant", str(path)], bench.environment(NATIVE))
        return path.stat().st_blocks * 512, path.stat().st_size, json.loads(told)

    write(0, versions)
    gone = [f"#{n}" for n in range(1, versions, 2)]
    alone = json.loads(run(bench, ["forget", "-n", "--json", path, *gone])[1])["frees"]
    write(versions, versions + 1)
    taken, size, places = vacant()
    chunks = json.loads(run(bench, ["forget", "--gc", "--json", path, *gone])[1])["collected"]["chunks"]
    write(versions + 1, versions + 2)  # the record of the commit before gives its place back
    taken_now, size_now, places_now = vacant()
    run(bench, ["verify", path])
    work_of(bench, "sync=off", "more_chunks", path, chunks, packed)
    run(bench, ["verify", path])
    return {back: (taken - taken_now) / alone, free: (places_now - places + size - size_now) / alone,
            used: path.stat().st_blocks * 512 / taken}


def compacted(bench, versions):
    every, kept = bench.file("every.h5"), bench.file("kept.h5")
    for path, step in (every, 1), (kept, 2):
        work_of(bench, "sync=off", "small_datasets", path, versions, step)
    run(bench, ["forget", every, *(f"#{n}" for n in range(1, versions, 2))])
    run(bench, ["gc", "--compact", every])
    return every.stat().st_size / kept.stat().st_size


def kept_small(bench, writes, which):
    path = bench.file("keep.h5")
    options = "keep=last:20;sync=off"
    work_of(bench, options, "rewritten", path, 0, 20, 1000, which, "none")
    first = path.stat().st_size
    work_of(bench, options, "rewritten", path, 20, writes, 1000, which, "none")
    run(bench, ["verify", path])
    return path.stat().st_size / first


def forget(bench):
    """The same in every round: once."""
    versions, writes = bench.sizes.forget, bench.sizes.keep
    for part, size, what, measure in (
        ("forget", versions, ("given back, no filter, part", "free in all, no filter, part", "with new chunks, no filter, part"),
         lambda what: half_forgotten(bench, versions, "none", *what)),
        ("forget", versions, ("given back, gzip, part", "free in all, gzip, part", "with new chunks, gzip, part"),
         lambda what: half_forgotten(bench, versions, "gzip", *what)),
        ("forget", versions, ("gc --compact against only those written, part",), lambda what: {what[0]: compacted(bench, versions)}),
        ("keep", writes, ("rows in turn, size against 20, part",), lambda what: {what[0]: kept_small(bench, writes, "next")}),
        ("keep", writes, ("rows at random, size against 20, part",), lambda what: {what[0]: kept_small(bench, writes, "random")}),
    ):
        with bench.attempt(part, size, H5COW, what[0]):
            bench.figures(part, size, H5COW, measure(what))
        bench.tell(what[0].removesuffix(", part"))
        bench.clear()


PARTS = {part.__name__: part for part in (series, value, append, chunks, age, objects, copy, attributes, groups, access, small, diff, restore,
                                          forget)}
