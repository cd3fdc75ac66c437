#!/usr/bin/env python3
"""What the cost of small things grows with: chunks, versions, objects, attributes, links. h5py, with h5cow and natively in turn.

usage: ./dev exec python3 -B benchmarks/growth.py [--only WORK] [--rounds N] [--most N] [--plugins FOLDER]

Each line is one work at one size: the medians of both, and the median of the ratios of the rounds. sync=off.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

# work: sizes. A work is a function of a path and a size below; it returns what it measured, in seconds.
SIZES = {
    "chunks": (100, 10_000, 1_000_000, 10_000_000),
    "versions": (100, 2_000, 20_000, 100_000),
    "objects": (100, 1_000, 10_000),
    "attributes": (100, 1_000, 10_000),
    "groups": (1_000, 10_000, 100_000),
    "links": (1_000, 10_000, 100_000),
    "elements": (100_000,),
    "sessions": (1_000,),
    "strings": (300_000,),
    "writes": (5_000,),
}


def now():
    return time.perf_counter()


def commit(path, name="x", at=0):
    """Open, change one element, close."""
    start = now()
    with h5py.File(path, "r+", libver="latest") as f:
        f[name][at] += 1
    return now() - start


def chunks(path, n):
    start = now()
    with h5py.File(path, "w", libver="latest") as f:
        x = f.create_dataset("x", (n * 16,), "i8", chunks=(16,))
        for at in range(0, n, 65536):
            x[at * 16 : (at + 65536) * 16] = np.arange(at * 16, min(at + 65536, n) * 16)
    made = now() - start
    many = [commit(path, at=k * 16) for k in np.random.default_rng(1).integers(0, n, 9)]
    return {"create, close": made, "commit": statistics.median(many), "commit, memory": memory()}


def memory():
    """More than the process had when it was started, in seconds that are bytes: the unit is told by the name."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def versions(path, n):
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("x", data=np.arange(100_000), chunks=(1000,))
    for at in range(n):
        commit(path, at=at % 1000)
    many = [commit(path, at=k) for k in range(9)]
    told = {"commit": statistics.median(many), "size": os.path.getsize(path)}
    if os.environ.get("HDF5_VOL_CONNECTOR"):
        took = []
        for _ in range(5):
            start = now()
            h5py.File(f"{path}@{n // 2}", "r").close()
            took.append(now() - start)
        told["open @N"] = statistics.median(took)
        start = now()
        subprocess.run([os.environ["H5COW_COMMAND"], "log", "-n", "3", path], check=True, stdout=subprocess.DEVNULL)
        told["log -n 3"] = now() - start
    return told


def objects(path, n):
    told = {}
    start = now()
    with h5py.File(path, "w", libver="latest") as f:
        for k in range(n):
            f.create_dataset(f"d{k}", data=np.arange(k, k + 4096), chunks=(1024,))
    told["create, close"] = now() - start
    start = now()
    with h5py.File(path, "r") as f:
        for k in range(n):
            f[f"d{k}"][7]
    told["open, read one of each"] = now() - start
    told["change one"] = statistics.median(commit(path, f"d{k}") for k in range(0, n, n // 5))
    size = os.path.getsize(path)
    commit(path, "d3")
    told["change one, bytes"] = os.path.getsize(path) - size + 1
    start = now()
    with h5py.File(path, "r+", libver="latest") as f:
        for k in range(n):
            del f[f"d{k}"]
    told["delete all"] = now() - start
    return told


def attributes(path, n):
    start = now()
    with h5py.File(path, "w", libver="latest") as f:
        d = f.create_dataset("x", data=np.arange(10))
        for k in range(n):
            d.attrs[f"a{k}"] = k
    told = {"create, close": now() - start}
    told["commit"] = statistics.median(commit(path) for _ in range(5))
    return told


def groups(path, n):
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


def links(path, n):
    start = now()
    with h5py.File(path, "w", libver="latest") as f:
        g = f.create_group("g")
        for k in range(n):
            f[f"l{k}"] = g
    return {"create, close": now() - start}


def elements(path, n):
    with h5py.File(path, "w", libver="latest") as f:
        x = f.create_dataset("x", (n * 16,), "i8", chunks=(16,))
        x[...] = np.arange(n * 16)
    took = []
    for _ in range(9):
        start = now()
        with h5py.File(path, "r") as f:
            f["x"][n * 8]
        took.append(now() - start)
    return {"first": took[0], "again": statistics.median(took[1:])}


def sessions(path, n):
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("x", data=np.arange(100_000), chunks=(100,))
    size = os.path.getsize(path)
    start = now()
    for k in range(n):
        commit(path, at=k)
    return {"all": now() - start, "bytes each": (os.path.getsize(path) - size) / n + 1}


def strings(path, n):
    values = [f"value {k}" for k in range(n)]
    start = now()
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("x", data=values, dtype=h5py.string_dtype(), chunks=(10_000,), maxshape=(None,))
    told = {"write": now() - start}
    start = now()
    with h5py.File(path, "r") as f:
        f["x"][...]
    told["read"] = now() - start
    start = now()
    for _ in range(10):
        with h5py.File(path, "r+", libver="latest") as f:
            x = f["x"]
            x.resize((x.shape[0] + 100,))
            x[-100:] = values[:100]
    told["append, 10 sessions"] = now() - start
    start = now()
    with h5py.File(path, "r+", libver="latest") as f:
        x = f["x"]
        for _ in range(100):
            x.resize((x.shape[0] + 1000,))
            x[-1000:] = values[:1000]
    told["append, one session"] = now() - start
    return told


def writes(path, n):
    told = {}
    with h5py.File(path, "w", libver="latest") as f:
        x = f.create_dataset("x", (n,), "f8", chunks=(1000,))
        c = f.create_dataset("c", (1_000_000,), [("a", "i4"), ("b", "f8"), ("c", "i2")], chunks=(10_000,))
        c[...] = np.zeros(1_000_000, c.dtype)
        r = f.create_dataset("r", (2000, 1000), "f8", chunks=(100, 100))
        start = now()
        for k in range(n):
            x[k] = k
        told["single elements"] = now() - start
        row = np.random.default_rng(1).random(1000)
        start = now()
        for k in range(2000):
            r[k] = row + k
        told["rows"] = now() - start
    with h5py.File(path, "r") as f:
        start = now()
        f["c"]["b"]
        told["compound field"] = now() - start
    return told


def measure(work, n, plugins):
    env = {key: value for key, value in os.environ.items() if not key.startswith("HDF5_")}
    if plugins:
        env |= {"HDF5_PLUGIN_PATH": str(plugins), "HDF5_VOL_CONNECTOR": "h5cow sync=off"}
        env["H5COW_COMMAND"] = str(plugins.parent / "cli/h5cow")
    with tempfile.TemporaryDirectory(prefix="h5cow-growth-") as folder:
        words = [sys.executable, "-B", __file__, "--work", work, str(n), f"{folder}/f.h5"]
        return json.loads(subprocess.run(words, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout)


def text(what, value):
    if "bytes" in what or "size" in what or "memory" in what:
        return f"{value / 1e6:.3f} MB"
    return f"{value * 1000:.2f} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=int, default=1_000_000, help="no larger sizes")
    parser.add_argument("--only", choices=SIZES, action="append")
    parser.add_argument("--plugins", type=pathlib.Path)
    arguments = parser.parse_args()
    plugins = (arguments.plugins or pathlib.Path(os.environ["H5COW_BUILD"]) / "connector").resolve()
    for work in arguments.only or SIZES:
        for n in SIZES[work]:
            if n > arguments.most:
                continue
            rounds = []
            for i in range(arguments.rounds):
                ways = [plugins, None]
                rounds.append({way: measure(work, n, way) for way in (ways if i % 2 else reversed(ways))})
            for what in rounds[0][plugins]:
                with_history = [r[plugins][what] for r in rounds]
                line = f"{work} {n}, {what}: h5cow {text(what, statistics.median(with_history))}"
                if what in rounds[0][None]:
                    native = [r[None][what] for r in rounds]
                    ratio = statistics.median(a / b for a, b in zip(with_history, native))
                    line += f", native {text(what, statistics.median(native))}, {ratio:.2f} x"
                print(line, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        import h5py
        import numpy as np

        print(json.dumps(globals()[sys.argv[2]](sys.argv[4], int(sys.argv[3]))))
    else:
        main()
