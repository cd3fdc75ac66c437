#!/usr/bin/env python3
"""What many small objects cost, copied or made, and committed, next to native HDF5: many.c, interleaved.

usage: ./dev exec python3 benchmarks/many.py [--rounds N] [--only WORK] [--plugins FOLDER]

Each round makes the files anew, with and without history, and does the same to both, in the other order than the round
before. Printed are, of the time from opening the file to having closed it, and of the processor's, which says more where others
use the machine, medians, and the median and the range of the ratios of each round. The target, 5 times native's time, is that
of 4,000 datasets copied and of 2,000 attributes made.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile

SIZES = {"copy": (1000, 2000, 4000), "copy-here": (1000, 2000, 4000), "create": (1000, 2000, 4000), "attributes": (500, 1000, 2000)}
TARGET = 5.0
AT = {("copy", 4000), ("attributes", 2000)}


def environment(plugins):
    env = {key: value for key, value in os.environ.items() if not key.startswith("HDF5_")}
    return {**env, "HDF5_PLUGIN_PATH": str(plugins), "HDF5_VOL_CONNECTOR": "h5cow sync=off"} if plugins else env


def run(program, work, plugins, file, n):
    done = subprocess.run([program, work, file, str(n)], env=environment(plugins), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


def main():
    build = pathlib.Path(os.environ["H5COW_BUILD"])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=SIZES, action="append")
    parser.add_argument("--plugins", type=pathlib.Path, default=build / "connector")
    arguments = parser.parse_args()
    program = build / "benchmarks/many"
    ways = {"native": None, "h5cow": arguments.plugins.resolve()}
    met = True
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "f.h5"
        for work in arguments.only or SIZES:
            for n in SIZES[work]:
                rounds = []
                for i in range(arguments.rounds):
                    took = {}
                    for way in list(ways) if i % 2 else reversed(ways):
                        run(program, "make", ways[way], file, n)
                        took[way] = run(program, work, ways[way], file, n)
                        file.unlink()
                    rounds.append(took)
                for at, clock in enumerate(("time", "processor")):
                    ratios = sorted(took["h5cow"][at] / took["native"][at] for took in rounds)
                    ratio = statistics.median(ratios)
                    medians = ", ".join(f"{way} {statistics.median(took[way][at] for took in rounds) * 1000:.0f} ms" for way in ways)
                    target = ""
                    if (work, n) in AT and clock == "time":
                        met &= ratio <= TARGET
                        target = f"; target {TARGET:.0f} {'met' if ratio <= TARGET else 'missed'}"
                    print(f"{work} {n}, {clock}: {medians}; ratio {ratio:.2f}, {ratios[0]:.2f} to {ratios[-1]:.2f}{target}", flush=True)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
