#!/usr/bin/env python3
"""What atomic commits cost: a flush and a close with a change of 128 KiB, and writing 1 GiB, for each value of sync=.

usage: journal.py [FOLDER] [--without PLUGIN_FOLDER]

FOLDER (default: the current one) is on the disk to be measured. --without: a build of the connector without the journal,
to compare writing 1 GiB with. HDF5_PLUGIN_PATH tells where the connector is. Medians; times in milliseconds.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SMALL = """
import h5py, numpy, statistics, sys, time
name, rounds, size = sys.argv[1], 30, 1 << 17
random = numpy.random.default_rng(1)
with h5py.File(name, "w") as f:
    f.create_dataset("a", data=random.integers(0, 255, rounds * size, dtype="u1"), chunks=(size,))
def change(f, i):
    f["a"][i * size : (i + 1) * size] = random.integers(0, 255, size, dtype="u1")
flush, close = [], []
with h5py.File(name, "r+") as f:
    for i in range(rounds):
        change(f, i)
        start = time.perf_counter()
        f.flush()
        flush.append(time.perf_counter() - start)
for i in range(rounds):
    f = h5py.File(name, "r+")
    change(f, i)
    start = time.perf_counter()
    f.close()
    close.append(time.perf_counter() - start)
print(statistics.median(flush) * 1e3, statistics.median(close) * 1e3)
"""

LARGE = """
import h5py, numpy, sys, time
part = numpy.random.default_rng(1).integers(0, 2**63, 1 << 24, dtype="i8")
start = time.perf_counter()
with h5py.File(sys.argv[1], "w") as f:
    a = f.create_dataset("a", shape=(8 << 24,), dtype="i8", chunks=(1 << 17,))
    for i in range(8):
        part += 1
        a[i << 24 : (i + 1) << 24] = part
print((time.perf_counter() - start) * 1e3)
"""


def run(code, folder, options, plugins):
    name = pathlib.Path(folder) / "journal.h5"
    name.unlink(missing_ok=True)
    env = {**os.environ, "HDF5_VOL_CONNECTOR": f"h5cow {options}".strip(), "HDF5_PLUGIN_PATH": plugins}
    done = subprocess.run([sys.executable, "-c", code, name], env=env, stdout=subprocess.PIPE, text=True, check=True)
    name.unlink()
    return [float(word) for word in done.stdout.split()]


def sync_time(folder):
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for i in range(40):
            os.pwrite(file.fileno(), bytes(1 << 17), i << 17)
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", default=".")
    parser.add_argument("--without")
    args = parser.parse_args()
    plugins = os.environ["HDF5_PLUGIN_PATH"]
    print(f"one fdatasync of 128 KiB: {sync_time(args.folder):.2f}")
    for sync in ("full", "normal", "off"):
        flush, close = run(SMALL, args.folder, f"sync={sync}", plugins)
        print(f"sync={sync:6}  flush {flush:6.2f}  close {close:6.2f}")
    kinds = [("full", "sync=full", plugins), ("off", "sync=off", plugins)]
    if args.without:
        kinds.append(("without", "", args.without))
    times = {name: [] for name, _, _ in kinds}
    for _ in range(5):
        for name, options, where in kinds:
            times[name] += run(LARGE, args.folder, options, where)
    medians = {name: statistics.median(all) for name, all in times.items()}
    for name, median in medians.items():
        more = f"  {median / medians['without'] - 1:+.1%}" if args.without else ""
        print(f"1 GiB, {name:8} {median:8.1f}{more}")


if __name__ == "__main__":
    main()
