"""What forgetting gives back. Half of 1,000 versions are forgotten: how many of the bytes that only they had are free again? And a
file with keep=last:20 is written 10,000 times: how large is it, against its size after 20?

    ./dev exec python3 -B benchmarks/forget.py [--versions N] [--writes N]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BUILD = Path(os.environ.get("H5COW_BUILD", Path(__file__).parent.parent / "build/release"))
COMMAND = str(BUILD / "cli/h5cow")
ENV = {k: v for k, v in os.environ.items() if not k.startswith("HDF5_VOL")} | {"HDF5_PLUGIN_PATH": str(BUILD / "connector")}
WRITE = """
import os, sys, h5py, numpy as np
path, first, last, packed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == 'gzip'
dice, rows = np.random.default_rng(first), int(sys.argv[5])
for number in range(first, last):
    with h5py.File(path, 'a', libver='latest') as f:
        if 'x' not in f:
            more = {'compression': 'gzip'} if packed else {}
            f.create_dataset('x', data=dice.integers(0, 1 << 30, (rows, 4096)), chunks=(1, 4096), **more)
            f['note'] = np.arange(100.)
        for row in (0, 1) if sys.argv[6] == 'same' else (number % rows,) if sys.argv[6] == 'next' else dice.integers(0, rows, 2):
            f['x'][row] = dice.integers(0, 1 << 30, 4096)
        f.attrs['number'] = number
"""

# Many small datasets. STEP 2: a version for every second state, which is what is left where every second version is forgotten.
SMALL = """
import sys, h5py, numpy as np
path, versions, step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
dice = np.random.default_rng(1)
for number in range(0, versions, step):
    with h5py.File(path, 'a', libver='latest') as f:
        for more in range(step):
            for k in range(200):
                if number + more == 0:
                    f[f'd{k}'] = dice.integers(0, 1 << 30, 500)
            for k in dice.integers(0, 200, 5):
                f[f'd{k}'][:] = dice.integers(0, 1 << 30, 500)
"""


def run(words, options=None):
    env = ENV | ({"HDF5_VOL_CONNECTOR": f"h5cow {options}"} if options else {})
    return subprocess.run([str(w) for w in words], env=env, check=True, capture_output=True, text=True).stdout


def write(path, first, last, packed, rows, which, options="sync=off"):
    """By a program in a file of its own, as programs are: each version's row has the command line."""
    program = path.parent / "write.py"
    program.write_text(WRITE)
    run([sys.executable, program, path, first, last, packed, rows, which], options)


def half(folder, packed, versions):
    path = folder / f"half-{packed}.h5"
    write(path, 0, versions, packed, 100, "same")
    gone = [f"#{n}" for n in range(1, versions, 2)]
    alone = json.loads(run([COMMAND, "forget", "-n", "--json", path, *gone]))["frees"]
    write(path, versions, versions + 1, packed, 100, "same")
    before = path.stat()
    run([COMMAND, "forget", "--gc", path, *gone])
    write(path, versions + 1, versions + 2, packed, 100, "same")  # the record of the commit before gives its place back
    after = path.stat()
    given = (before.st_blocks - after.st_blocks) * 512
    size = after.st_size
    write(path, versions + 2, versions + versions // 4, packed, 100, "same")
    grown = path.stat().st_size - size
    print(
        f"{versions} versions, every second forgotten, {packed}: {alone} bytes of chunks were theirs alone; "
        f"{given} ({100 * given / alone:.1f} %) given back to the file system; "
        f"{versions // 4} versions more, and the file grows by {grown}"
    )
    run([COMMAND, "verify", path])
    compact = path.with_suffix(".compact.h5")
    compact.write_bytes(path.read_bytes())
    run([COMMAND, "gc", "--compact", compact])
    print(f"  gc --compact: {path.stat().st_blocks * 512} bytes on the disk become {compact.stat().st_size}")


def small(folder, versions):
    program = folder / "small.py"
    program.write_text(SMALL)
    every, kept = folder / "every.h5", folder / "kept.h5"
    for path, step in (every, 1), (kept, 2):
        run([sys.executable, program, path, versions, step], "sync=off")
    run([COMMAND, "forget", every, *(f"#{n}" for n in range(1, versions, 2))])
    run([COMMAND, "gc", "--compact", every])
    sizes = every.stat().st_size, kept.stat().st_size
    print(
        f"200 small datasets, {versions} versions, every second forgotten, gc --compact: {sizes[0]} bytes, {sizes[0] / sizes[1]:.4f} x "
        f"of the {sizes[1]} that a file has to which only the others were written"
    )


def keep(folder, writes, which):
    path = folder / f"keep-{which}.h5"
    write(path, 0, 20, "none", 1000, which, "keep=last:20;sync=off")
    first = path.stat().st_size
    write(path, 20, writes, "none", 1000, which, "keep=last:20;sync=off")
    last = path.stat()
    there = len(json.loads(run([COMMAND, "log", "--json", path])))
    print(
        f"keep=last:20, {which} rows written {writes} times: {first} bytes after 20, {last.st_size} at the end ({last.st_size / first:.2f} x; "
        f"{last.st_blocks * 512 / first:.2f} x on the disk), {there} versions"
    )
    run([COMMAND, "verify", path])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--versions", type=int, default=1000)
    parser.add_argument("--writes", type=int, default=10000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="h5cow-forget-") as folder:
        for packed in ("none", "gzip"):
            half(Path(folder), packed, options.versions)
        small(Path(folder), options.versions)
        for which in ("next", "random"):
            keep(Path(folder), options.writes, which)


main()
