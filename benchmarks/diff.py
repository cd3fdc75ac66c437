"""What it costs to compare two versions of a large dataset: 10 GiB in 40,000 chunks, 10 of them changed. How long, and how much is read?

    ./dev exec python3 -B benchmarks/diff.py [--chunks N] [--filter gzip|none]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD = Path(os.environ.get("H5COW_BUILD", Path(__file__).parent.parent / "build/release"))
COMMAND = str(BUILD / "cli/h5cow")
ENV = {k: v for k, v in os.environ.items() if not k.startswith("HDF5_VOL")} | {"HDF5_PLUGIN_PATH": str(BUILD / "connector")}
ROWS = 32768  # of a chunk of 256 KiB
WRITE = """
import sys, h5py, numpy as np
path, chunks, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with h5py.File(path, 'w', libver='latest') as f:
    more = {'compression': 'gzip'} if sys.argv[4] == 'gzip' else {}
    x = f.create_dataset('x', (chunks * rows,), 'f8', chunks=(rows,), **more)
    some = np.arange(100. * rows)
    for first in range(0, chunks, 100):
        n = min(100, chunks - first)
        x[first * rows:(first + n) * rows] = some[:n * rows]
with h5py.File(path, 'a', libver='latest') as f:
    for chunk in range(chunks // 20, chunks, chunks // 10):
        f['x'][chunk * rows + 7] = -1
"""


def read_by(command):
    """-> bytes that a process has read, seconds, what it said; it may end with 1."""
    begun = time.perf_counter()
    child = subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE)
    said = child.stdout.read()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    took = time.perf_counter() - begun
    io = dict(line.split(": ") for line in Path(f"/proc/{child.pid}/io").read_text().splitlines())
    assert child.wait() == 1
    return int(io["rchar"]), took, said


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=40000)
    parser.add_argument("--filter", choices=["gzip", "none"], default="gzip")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.h5"
        subprocess.run([sys.executable, "-c", WRITE, path, str(options.chunks), str(ROWS), options.filter], check=True,
                       env=ENV | {"HDF5_VOL_CONNECTOR": "h5cow sync=off"})
        command = [COMMAND, "diff", "--json", f"{path}@1", f"{path}@2"]
        runs = [read_by(command) for _ in range(21)]
        told = json.loads(runs[0][2])
        bare = [read_by(command[:2] + [f"{path}@1", f"{path}@2"])[1] for _ in range(21)]
        print(f"{options.chunks} chunks of 256 KiB ({options.filter}), a file of {path.stat().st_size} bytes: "
              f"{statistics.median(r[1] for r in runs) * 1e3:.1f} ms, as text {statistics.median(bare) * 1e3:.1f} ms, "
              f"{max(r[0] for r in runs)} bytes read; {json.dumps(told)[:300]}")


if __name__ == "__main__":
    main()
