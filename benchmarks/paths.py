#!/usr/bin/env python3
"""What elements cost on their way, natively, with one plugin and with another: paths.c, interleaved.

usage: ./dev exec python3 -B benchmarks/paths.py [--only WORK] [--rounds N] [--before FOLDER] [--options TEXT]

Each line is a step: medians of wall and processor time, and the medians of the ratios of each round. sync=off. BEFORE is a
folder with another libh5cow.so.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile

WORKS = "strings", "singles", "rows", "fields"


def run(work, plugins, options):
    env = {key: value for key, value in os.environ.items() if not key.startswith("HDF5_")}
    if plugins:
        env |= {"HDF5_PLUGIN_PATH": str(plugins), "HDF5_VOL_CONNECTOR": f"h5cow sync=off {options}"}
    program = pathlib.Path(os.environ["H5COW_BUILD"]) / "benchmarks/paths"
    with tempfile.TemporaryDirectory(prefix="h5cow-paths-") as folder:
        said = subprocess.run([program, work, f"{folder}/f.h5"], env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {step: (int(wall), int(cpu)) for step, wall, cpu in (line.split("\t") for line in said.splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=WORKS, action="append")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--before", type=pathlib.Path)
    parser.add_argument("--options", default="")
    arguments = parser.parse_args()
    ways = {"native": None, "h5cow": pathlib.Path(os.environ["H5COW_BUILD"]).resolve() / "connector"}
    if arguments.before:
        ways["before"] = arguments.before.resolve()
    for work in arguments.only or WORKS:
        rounds = []
        for i in range(arguments.rounds + 1):
            order = list(ways) if i % 2 else list(reversed(ways))
            rounds.append({way: run(work, ways[way], arguments.options) for way in order})
        for step in rounds[0]["native"]:
            line = f"{step}:"
            for way in ways:
                for at, kind in enumerate(("wall", "cpu")):
                    took = [r[way][step][at] for r in rounds[1:]]
                    ratio = statistics.median(t / r["native"][step][at] for t, r in zip(took, rounds[1:]))
                    line += f" {way} {statistics.median(took) / 1e6:.2f} ms {kind}" if kind == "wall" else f" {statistics.median(took) / 1e6:.2f} {kind}"
                    line += f" ({ratio:.2f} x)" if way != "native" else ""
                line += ";"
            print(line.rstrip(";"), flush=True)


if __name__ == "__main__":
    main()
