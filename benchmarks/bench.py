#!/usr/bin/env python3
"""Time and size of everyday work, natively and through the connector, in one run. ./dev bench builds and calls this.

usage: bench.py [--repeat N] [--mib N]

Each workload runs in a process of its own (start of Python not counted), natively and with the connector in turn, N
times; the medians and their ratio are printed. Files lie in a temporary folder and are in the page cache when read.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

# What runs under the clock, in this order, on one file: later ones find what earlier ones wrote.
WORKLOADS = {
    "write, no filter": "f = h5py.File(name, 'w'); f.create_dataset('x', data=data, chunks=(1 << 15,)); f.close()",
    "write, shuffle+gzip": "f = h5py.File(name, 'w'); f.create_dataset('x', data=data, chunks=(1 << 15,), "
    "compression='gzip', shuffle=True); f.close()",
    "write the same again": "f = h5py.File(name, 'r+'); f['x'][...] = data; f.close()",
    "read all": "f = h5py.File(name, 'r'); f['x'][...]; f.close()",
    "1000 random reads of 8 values": "f = h5py.File(name, 'r'); x = f['x']\n"
    "for i in places: x[i:i + 8]\nf.close()",
    "change one value": "f = h5py.File(name, 'r+'); f['x'][12345] = float(os.getpid()); f.close()",
    "1000 small datasets": "f = h5py.File(name, 'r+')\n"
    "for i in range(1000): f[f'g{i // 100}/d{i}'] = i\nf.close()",
}

PROGRAM = """
import os, sys, time
import h5py, numpy as np
name, mib = sys.argv[1], int(sys.argv[2])
random = np.random.default_rng(1)
data = np.cumsum(random.standard_normal(mib << 17)).round(2)
places = random.integers(0, len(data) - 8, 1000)
start = time.perf_counter()
{body}
print(time.perf_counter() - start)
"""


def measure(name, body, mib, connector):
    env = {key: value for key, value in os.environ.items() if key != "HDF5_VOL_CONNECTOR"}
    if connector:
        env["HDF5_VOL_CONNECTOR"] = "h5cow"
    command = [sys.executable, "-c", PROGRAM.format(body=body), name, str(mib)]
    return float(subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument("--mib", type=int, default=64, help="size of the data set in MiB (default 64)")
    arguments = parser.parse_args()
    times = {(work, kind): [] for work in WORKLOADS for kind in (False, True)}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(arguments.repeat):
            for kind in (False, True):
                name = os.path.join(folder, "connector.h5" if kind else "native.h5")
                if os.path.exists(name):
                    os.unlink(name)
                for work, body in WORKLOADS.items():
                    times[work, kind].append(measure(name, body, arguments.mib, kind))
        sizes = [os.path.getsize(os.path.join(folder, f)) for f in ("native.h5", "connector.h5")]
    print(f"{arguments.mib} MiB of float64, median of {arguments.repeat}, {os.cpu_count()} cores")
    print(f"{'':32}{'native':>12}{'connector':>12}{'ratio':>8}")
    for work in WORKLOADS:
        native, connector = (statistics.median(times[work, kind]) for kind in (False, True))
        print(f"{work:32}{native * 1e3:9.1f} ms{connector * 1e3:9.1f} ms{connector / native:8.2f}")
    print(f"{'file at the end':32}{sizes[0] / 2**20:8.1f} MiB{sizes[1] / 2**20:8.1f} MiB{sizes[1] / sizes[0]:8.2f}")


if __name__ == "__main__":
    main()
