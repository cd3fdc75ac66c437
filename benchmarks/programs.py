"""The h5py programs of bench.py: each is one piece of work, in a process of its own, and times itself.

usage: programs.py WORK FILE NUMBER WAY      one line of JSON: what it measured, by name

They are ordinary programs, which do not know whether h5cow is below them. WAY is native, h5cow, copies (a copy of the file before
each change) or versioned-hdf5; only the last two make a difference to what they do. Names that end
with "bytes" or "memory" are bytes, all others seconds. What was written is compared at the end, outside of the times.

The histories `series`, `value` and `append` make the same changes as onion.c: both take their numbers from scramble().
"""

import contextlib
import json
import os
import resource
import shutil
import statistics
import sys
import time

import h5py
import numpy as np

now = time.perf_counter
VERSIONED = "versioned-hdf5"
SERIES_FIRST, SERIES_CHUNK, SERIES_MORE = 5000, 4096, 10  # elements
VALUE_ELEMENTS, VALUE_CHUNK = 1 << 17, 1 << 13
APPEND_MORE, APPEND_CHUNK = 100, 8192
DATASETS = "abc"


def scramble(x):
    """splitmix64, of a number or of many."""
    with np.errstate(over="ignore"):
        x = np.asarray(x, "u8") + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def random(first, count):
    """COUNT doubles below 1: number FIRST of the sequence, and those after it."""
    return (scramble(np.arange(first, first + count, dtype="u8")) >> np.uint64(11)).astype("f8") * 2.0**-53


def memory():
    """Largest that this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# ---- histories: many small versions of one file ----


@contextlib.contextmanager
def session(path, way, name):
    """Open, change what is yielded, close: one version, whatever makes versions."""
    if way == VERSIONED:
        from versioned_hdf5 import VersionedHDF5File

        with h5py.File(path, "r+", libver="latest") as f, VersionedHDF5File(f).stage_version(name) as staged:
            yield staged
    else:
        with h5py.File(path, "r+", libver="latest") as f:
            yield f


def begin_history(path, way, made):
    """The first version: MADE, names and (values, elements of a chunk)."""
    with h5py.File(path, "w", libver="latest") as f:
        if way != VERSIONED:
            for name, (values, chunk) in made.items():
                f.create_dataset(name, data=values, chunks=(chunk,), maxshape=(None,))
            return
        from versioned_hdf5 import VersionedHDF5File

        with VersionedHDF5File(f).stage_version("v0") as staged:
            for name, (values, chunk) in made.items():
                staged.create_dataset(name, data=values, chunks=(chunk,), maxshape=(None,))


def read_version(path, way, number):
    """All datasets as version NUMBER (0: the first) has them; None where there is no such version."""
    if way == VERSIONED:
        from versioned_hdf5 import VersionedHDF5File

        with h5py.File(path, "r") as f:
            return {name: x[...] for name, x in VersionedHDF5File(f)[f"v{number}"].items()}
    if way == "copies":
        path = f"{path}.{number}" if number else path
    elif os.environ.get("HDF5_VOL_CONNECTOR"):
        path = f"{path}@{number + 1}"
    else:
        return None
    with h5py.File(path, "r") as f:
        return {name: f[name][...] for name in f}


def history(path, n, way, made, change):
    """N versions. CHANGE makes one, number V, in a mapping of names to datasets, and in a mapping of names to arrays."""
    state = {name: np.copy(values) for name, (values, _) in made.items()}
    begin_history(path, way, made)
    halfway, took, points = None, 0.0, []
    current = path
    total = os.path.getsize(path)
    for v in range(1, n + 1):
        start = now()
        if way == "copies":
            shutil.copyfile(current, f"{path}.{v}")
            current = f"{path}.{v}"
        with session(current, way, f"v{v}") as f:
            change(v, f)
        took += now() - start
        change(v, state)
        if way == "copies":
            total += os.path.getsize(current)
        if v == n // 2:
            halfway = {name: np.copy(x) for name, x in state.items()}
        if v in (10, 30, 100, 300, 1000, 3000, 10_000, n):
            points.append([v, took, total if way == "copies" else os.path.getsize(path)])
    compare(read_head(current, way, n), state, "the newest state")
    for number, right in ((0, {name: values for name, (values, _) in made.items()}), (n // 2, halfway)):
        found = read_version(path, way, number) if right else None
        if found is not None:
            compare(found, right, f"version {number}")
    return {"a version": took / n, "file, bytes": points[-1][2], "points": points}


def read_head(path, way, n):
    if way == VERSIONED:
        return read_version(path, way, n)
    with h5py.File(path, "r") as f:
        return {name: f[name][...] for name in f}


def compare(found, right, what):
    for name, values in right.items():
        if not np.array_equal(found[name], values):
            raise SystemExit(f"{what} is not what was written: {name}")


def put(values, at, new):
    """Into a dataset, or the array that it is compared with."""
    values[at : at + len(new)] = new


def extend(f, name, new):
    if isinstance(f[name], np.ndarray):
        f[name] = np.concatenate([f[name], new])
    else:
        n = f[name].shape[0]
        f[name].resize((n + len(new),))
        f[name][n:] = new


def change_series(v, f):
    """Ten neighbours change somewhere, and ten are appended, in each dataset."""
    for d, name in enumerate(DATASETS):
        key = (v * 8 + d) * 64
        length = f[name].shape[0]
        put(f[name], int(scramble(key)) % (length - SERIES_MORE + 1), random(key + 1, SERIES_MORE))
        extend(f, name, random(key + 32, SERIES_MORE))


def series(path, n, way):
    made = {name: (random(10**9 + d * 10**6, SERIES_FIRST), SERIES_CHUNK) for d, name in enumerate(DATASETS)}
    return history(path, n, way, made, change_series)


def change_value(v, f):
    put(f["x"], int(scramble(v * 64)) % VALUE_ELEMENTS, random(v * 64 + 1, 1))


def value(path, n, way):
    return history(path, n, way, {"x": (random(10**9, VALUE_ELEMENTS), VALUE_CHUNK)}, change_value)


def change_append(v, f):
    extend(f, "x", random(v * 1000, APPEND_MORE))


def append(path, n, way):
    told = history(path, n, way, {"x": (random(10**9, APPEND_MORE), APPEND_CHUNK)}, change_append)
    told["beyond the data, bytes"] = (told["file, bytes"] - (n + 1) * APPEND_MORE * 8) / n
    return told


# ---- many objects ----


def session_of_one(path, name):
    """Open, change one element, close."""
    start = now()
    with h5py.File(path, "r+", libver="latest") as f:
        f[name][0] += 1
    return now() - start


def objects(path, n, way):
    told = {}
    start = now()
    with h5py.File(path, "w", libver="latest") as f:
        for k in range(n):
            f.create_dataset(f"d{k}", data=np.arange(k, k + 4096), chunks=(1024,))
    told["create, close"] = now() - start
    start = now()
    with h5py.File(path, "r") as f:
        wrong = sum(f[f"d{k}"][7] != k + 7 for k in range(n))
    told["open, read one of each"] = now() - start
    told["change one"] = statistics.median(session_of_one(path, f"d{k}") for k in range(1, n, max(1, n // 9)))
    size = os.path.getsize(path)
    session_of_one(path, "d0")
    told["change one: the file grows by, bytes"] = os.path.getsize(path) - size
    start = now()
    with h5py.File(path, "r+", libver="latest") as f:
        for k in range(n):
            del f[f"d{k}"]
    told["delete all"] = now() - start
    start = now()
    with h5py.File(f"{path}.assigned", "w") as f:
        for k in range(n):
            f[f"d{k}"] = np.arange(k, k + 4096)
    told["by f[name] = values: create, close"] = now() - start
    os.remove(f"{path}.assigned")
    if wrong:
        raise SystemExit(f"{wrong} values are not what was written")
    return told


def copy(path, n, way):
    """H5Ocopy: of a group of datasets by one call, then of each by a call of its own."""
    with h5py.File(path, "w", libver="latest") as f:
        for k in range(n):
            f.create_dataset(f"sources/d{k}", data=np.arange(k * 512, (k + 1) * 512, dtype="i4"), chunks=(128,), maxshape=(None,))
    told = {}
    start = now()
    with h5py.File(path, "r+", libver="latest") as f:
        f.copy("sources", "copies")
    told["a group of them"] = now() - start
    start = now()
    with h5py.File(path, "r+", libver="latest") as f:
        to = f.create_group("others")
        for k in range(n):
            f.copy(f"sources/d{k}", to, name=f"d{k}")
    told["one by one"] = now() - start
    with h5py.File(path, "r") as f:
        for place in ("copies", "others"):
            if f[f"{place}/d{n - 1}"][-1] != n * 512 - 1:
                raise SystemExit("a copy is not what was copied")
    return told


def attributes(path, n, way):
    start = now()
    with h5py.File(path, "w", libver="latest") as f:
        d = f.create_dataset("x", data=np.arange(10))
        for k in range(n):
            d.attrs[f"a{k}"] = k
    told = {"create, close": now() - start}
    told["change an element"] = statistics.median(session_of_one(path, "x") for _ in range(5))
    return told


def groups(path, n, way):
    start = now()
    with h5py.File(path, "w", libver="latest") as f:
        for k in range(n):
            f.create_group(f"g{k}")
    told = {"create, close": now() - start}
    start = now()
    with h5py.File(path, "r+", libver="latest") as f:
        f["g5"].attrs["a"] = 1
    told["change one"] = now() - start
    return told


def links(path, n, way):
    start = now()
    with h5py.File(path, "w", libver="latest") as f:
        g = f.create_group("g")
        for k in range(n):
            f[f"l{k}"] = g
    return {"create, close": now() - start}


# ---- kinds of elements, and of access ----


def strings(path, n, way):
    values = [f"value {k}" for k in range(n)]
    start = now()
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("x", data=values, dtype=h5py.string_dtype(), chunks=(10_000,), maxshape=(None,))
    told = {"write": now() - start}
    start = now()
    with h5py.File(path, "r") as f:
        found = f["x"][...]
    told["read"] = now() - start
    start = now()
    for _ in range(10):
        with h5py.File(path, "r+", libver="latest") as f:
            x = f["x"]
            x.resize((x.shape[0] + 100,))
            x[-100:] = values[:100]
    told["append, ten sessions"] = now() - start
    start = now()
    with h5py.File(path, "r+", libver="latest") as f:
        x = f["x"]
        for _ in range(100):
            x.resize((x.shape[0] + 1000,))
            x[-1000:] = values[:1000]
    told["append, one session"] = now() - start
    if [found[k] for k in (0, n // 2, n - 1)] != [values[k].encode() for k in (0, n // 2, n - 1)]:
        raise SystemExit("strings are not what was written")
    return told


def writes(path, n, way):
    told = {}
    with h5py.File(path, "w", libver="latest") as f:
        x = f.create_dataset("x", (n,), "f8", chunks=(1000,))
        c = f.create_dataset("c", (1_000_000,), [("a", "i4"), ("b", "f8"), ("c", "i2")], chunks=(10_000,))
        rows = np.zeros(1_000_000, c.dtype)
        rows["b"] = np.arange(1_000_000)
        c[...] = rows
        start = now()
        for k in range(n):
            x[k] = k
        told["single elements"] = now() - start
    with h5py.File(path, "r") as f:
        start = now()
        b = f["c"]["b"]
        told["compound field"] = now() - start
        if not np.array_equal(b, rows["b"]) or not np.array_equal(f["x"][...], np.arange(n)):
            raise SystemExit("values are not what was written")
    return told


def reads(path, n, way):
    """Of a square of N x N doubles, in chunks as wide as eight of them are high."""
    field = random(1, n * n).reshape(n, n)
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("x", data=field, chunks=(64, 512))
    told, some, mask = {}, np.unique(scramble(np.arange(n // 8)) % np.uint64(n)).astype("i8"), field < 0.05

    def read(what, call, right):
        with h5py.File(path, "r") as f:
            start = now()
            found = call(f["x"])
            told[what] = now() - start
        if not np.array_equal(found, right):
            raise SystemExit(f"{what}: not what was written")

    read("column by column", lambda x: np.stack([x[:, k] for k in range(0, n, 64)]), field[:, ::64].T)
    read("strided", lambda x: x[::7, ::5], field[::7, ::5])
    read("fancy rows", lambda x: x[some, :], field[some, :])
    read("mask", lambda x: x[mask], field[mask])
    return told


# ---- what the command's verbs are measured on ----


def chunked(path, n, way):
    """N chunks of 256 KiB, of which only a hundred differ; then a second version, with ten chunks changed."""
    rows = 32768
    some = np.arange(100.0 * rows)
    with h5py.File(path, "w", libver="latest") as f:
        x = f.create_dataset("x", (n * rows,), "f8", chunks=(rows,), compression="gzip")
        for first in range(0, n, 100):
            count = min(100, n - first)
            x[first * rows : (first + count) * rows] = some[: count * rows]
    with h5py.File(path, "r+", libver="latest") as f:
        for chunk in range(n // 20, n, n // 10):
            f["x"][chunk * rows + 7] = -1
    return {}


def twice(path, n, way):
    """Two versions of N MiB that differ in every value."""
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("x", (n << 17,), "f8", chunks=(1 << 15,))
    with h5py.File(path, "r+", libver="latest") as f:
        for mib in range(n):
            f["x"][mib << 17 : (mib + 1) << 17] = random(mib << 17, 1 << 17)
    with h5py.File(path, "r+", libver="latest") as f:
        for mib in range(n):
            f["x"][mib << 17 : (mib + 1) << 17] = random((n + mib) << 17, 1 << 17)
    return {}


def rewritten(path, first, last, rows, which, packed):
    """Versions FIRST to LAST (excluded) of ROWS rows of 32 KiB, a chunk each: which of them a version writes, WHICH says."""
    dice = np.random.default_rng(first)
    for number in range(first, last):
        with h5py.File(path, "a", libver="latest") as f:
            if "x" not in f:
                more = {"compression": "gzip"} if packed else {}
                f.create_dataset("x", data=dice.integers(0, 1 << 30, (rows, 4096)), chunks=(1, 4096), **more)
                f["note"] = np.arange(100.0)
            chosen = {"same": (0, 1), "next": (number % rows,), "random": dice.integers(0, rows, 2)}[which]
            for row in chosen:
                f["x"][row] = dice.integers(0, 1 << 30, 4096)
            f.attrs["number"] = number


def more_chunks(path, count, packed):
    """COUNT chunks as those of `rewritten`, by a hundred sessions or fewer: what a session writes stands in its record as well."""
    dice = np.random.default_rng(2)
    sessions = min(count, 100)
    for session in range(sessions):
        with h5py.File(path, "a", libver="latest") as f:
            rows = count * (session + 1) // sessions - count * session // sessions
            more = {"compression": "gzip"} if packed else {}
            f.create_dataset(f"more{session}", data=dice.integers(0, 1 << 30, (rows, 4096)), chunks=(1, 4096), **more)


def vacant(path):
    """Bytes that the next writer of a file with history gives out, each once: what the table `free` has, and slots of pools without
    filters that hold nothing. Holes are there as well. (docs/format.md)"""
    places = []
    with h5py.File(path, "r") as f:
        history = f["_versioned_data"]
        if "free" in history:
            places = [(int(address), int(size)) for address, size in history["free"][1:] if size > 0]
        for pool, raw in history["raw"].items():
            rows = history["slots"][pool][:]
            holds = np.frombuffer(rows.tobytes(), "u1").reshape(len(rows), -1).any(axis=1)
            if raw.id.get_create_plist().get_nfilters() > 0:
                continue
            for slot in np.flatnonzero(~holds):
                chunk = raw.id.get_chunk_info_by_coord((int(slot) * raw.chunks[0],) + (0,) * (raw.ndim - 1))
                if chunk.byte_offset is not None:
                    places.append((chunk.byte_offset, chunk.size))
    covered, end = 0, 0
    for address, size in sorted(places):
        covered += max(0, address + size - max(address, end))
        end = max(end, address + size)
    return covered


def small_datasets(path, versions, step):
    """200 datasets, five of them written anew in each state. STEP 2: a version for every second state only."""
    dice = np.random.default_rng(1)
    for number in range(0, versions, step):
        with h5py.File(path, "a", libver="latest") as f:
            for more in range(step):
                if number + more == 0:
                    for k in range(200):
                        f[f"d{k}"] = dice.integers(0, 1 << 30, 500)
                for k in dice.integers(0, 200, 5):
                    f[f"d{k}"][:] = dice.integers(0, 1 << 30, 500)


# ---- small files and short sessions ----


def small(path, n, way):
    """N files with one dataset of ten integers: the mean of each."""
    names = [path, *(f"{path}.{k}" for k in range(1, n))]

    def create(name, k):
        with h5py.File(name, "w") as f:
            f["x"] = range(10)

    def read(name, k):
        with h5py.File(name, "r") as f:
            if f["x"][3] != 3:
                raise SystemExit("a value is not what was written")

    def change(name, k):
        with h5py.File(name, "r+") as f:
            f["x"][0] = k + 5

    told = {}
    for what, work in (("create", create), ("read", read), ("change", change), ("change again", change)):
        start = now()
        for k, name in enumerate(names):
            work(name, k)
        told[what] = (now() - start) / n
    told["a file, bytes"] = sum(os.path.getsize(name) for name in names) // n
    return told


def steps(path, n, way):
    """As emcee's HDFBackend keeps a sampler of 32 walkers in 5 dimensions: each step opens the file, and closes it."""
    with h5py.File(path, "w") as f:
        g = f.create_group("mcmc")
        g.attrs["iteration"] = 0
        g.create_dataset("accepted", data=np.zeros(32))
        g.create_dataset("chain", (n, 32, 5), maxshape=(None, 32, 5), dtype="f8")
        g.create_dataset("log_prob", (n, 32), maxshape=(None, 32), dtype="f8")
    size, start = os.path.getsize(path), now()
    for k in range(n):
        with h5py.File(path, "a") as f:
            g = f["mcmc"]
            g["chain"][k], g["log_prob"][k] = random(160 * k, 160).reshape(32, 5), random(32 * k, 32)
            g["accepted"][:] += 1
            g.attrs["random_state_0"], g.attrs["random_state_1"] = "MT19937", scramble(np.arange(312 * k, 312 * (k + 1))).view("u4")
            g.attrs["iteration"] = k + 1
    told = {"a step": (now() - start) / n, "a step, bytes": (os.path.getsize(path) - size) // n}
    with h5py.File(path, "r") as f:
        if f["mcmc/accepted"][0] != n or f["mcmc/log_prob"][n - 1, 0] != random(32 * (n - 1), 1)[0]:
            raise SystemExit("the values are not what was written")
    return told


def anew(path, n, way):
    """N versions of ten datasets, all of them written anew each time; then a reference is followed, the first of an opening."""
    for version in range(n):
        with h5py.File(path, "w") as f:
            for k in range(10):
                f[f"d{k}"] = np.arange(k, k + 100) + version
            f.create_dataset("refs", data=[f[f"d{k}"].ref for k in range(10)], dtype=h5py.ref_dtype)
    times = []
    for _ in range(9):
        with h5py.File(path, "r") as f:
            reference = f["refs"][3]
            start = now()
            found = f[reference]
            times.append(now() - start)
            if found[0] != 3 + n - 1:
                raise SystemExit("a reference leads to something else")
    return {"first dereference": statistics.median(times)}


def filters(path, n, way):
    """H5Zfilter_avail of N numbers, as versioned-hdf5 asks."""
    h5py.File(path, "w").close()
    with h5py.File(path, "r"):
        start = now()
        for number in range(n):
            h5py.h5z.filter_avail(number)
    return {"H5Zfilter_avail": now() - start}


def main():
    if sys.argv[1] == "rewritten":
        path, first, last, rows, which, packed = sys.argv[2:]
        rewritten(path, int(first), int(last), int(rows), which, packed == "gzip")
        told = {}
    elif sys.argv[1] == "more_chunks":
        path, count, packed = sys.argv[2:]
        more_chunks(path, int(count), packed == "gzip")
        told = {}
    elif sys.argv[1] == "vacant":
        print(json.dumps(vacant(sys.argv[2])))
        return
    elif sys.argv[1] == "small_datasets":
        small_datasets(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        told = {}
    else:
        work, path, n, way = sys.argv[1:]
        told = WORKS[work](path, int(n), way)
    told["memory"] = memory()
    told["hdf5"] = h5py.version.hdf5_version
    if way_of_versioned():
        import versioned_hdf5

        told["version"] = versioned_hdf5.__version__
    print(json.dumps(told))


def way_of_versioned():
    return sys.argv[-1] == VERSIONED


WORKS = {work.__name__: work for work in (series, value, append, objects, copy, attributes, groups, links, strings, writes,
                                          reads, chunked, twice, small, steps, anew, filters)}

if __name__ == "__main__":
    main()
