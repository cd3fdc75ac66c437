#!/usr/bin/env python3
"""What a small call costs with one plugin and with another, without one, and the ratios: calls.c, interleaved.

usage: ./dev exec python3 benchmarks/calls.py BEFORE [AFTER] [--times N] [--rounds N] [--instructions]

BEFORE and AFTER are folders with libh5cow.so; AFTER is the one that was just built. Each round runs all in turn, in the other
order than the round before, so that many short rounds say more than few long ones where others use the machine. Printed are, of the
processor time and of the instructions (where the system counts them) of a call, medians, the median of the ratios of each round of
AFTER to BEFORE, which has to be at most 1.02, half of these ratios, and the ratio of the smallest. --instructions counts with
valgrind, where the system does not: a run of N calls less a run of none.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

TARGET = 1.02


def environment(plugins):
    env = {key: value for key, value in os.environ.items() if not key.startswith("HDF5_")}
    return {**env, "HDF5_PLUGIN_PATH": str(plugins), "HDF5_VOL_CONNECTOR": "h5cow sync=off"} if plugins else env


def run(program, work, plugins, times, folder):
    """Nanoseconds and instructions of one call."""
    said = subprocess.run([program, work, folder / "f.h5", str(times)], env=environment(plugins), capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    (folder / "f.h5").unlink()
    return [int(word) / times for word in said.stdout.split()]


def under_valgrind(program, work, plugins, times, folder):
    counts = []
    for n in 0, times:
        out = folder / "out"
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program, work, folder / "f.h5", str(n)],
                              env=environment(plugins), capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0, done.stderr
        (folder / "f.h5").unlink()
        counts.append(int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.M)[1]))
    return [0, (counts[1] - counts[0]) / times]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path, nargs="?", default=pathlib.Path(os.environ["H5COW_BUILD"]) / "connector")
    parser.add_argument("--times", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--instructions", action="store_true")
    arguments = parser.parse_args()
    program = pathlib.Path(os.environ["H5COW_BUILD"]) / "benchmarks/calls"
    measure = under_valgrind if arguments.instructions else run
    ways = {"native": None, "before": arguments.before.resolve(), "after": arguments.after.resolve()}
    for plugins in filter(None, ways.values()):
        assert (plugins / "libh5cow.so").exists(), f"no libh5cow.so in {plugins}"
    met = True
    with tempfile.TemporaryDirectory() as name:
        for work in "write", "ask":
            rounds = []
            for n in range(arguments.rounds):
                order = list(ways) if n % 2 else list(reversed(ways))
                rounds.append({way: measure(program, work, ways[way], arguments.times, pathlib.Path(name)) for way in order})
            for at, unit in enumerate(("ns", "instructions")):
                if not all(each["before"][at] for each in rounds):
                    continue
                medians = ", ".join(f"{way} {statistics.median(each[way][at] for each in rounds):.0f}" for way in ways)
                ratios = sorted(each["after"][at] / each["before"][at] for each in rounds)
                ratio = statistics.median(ratios)
                least = min(each["after"][at] for each in rounds) / min(each["before"][at] for each in rounds)
                half = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
                met &= ratio <= TARGET
                print(f"{work}: {medians} {unit} a call; after / before {ratio:.4f}, half of them {half[0]:.4f} to {half[1]:.4f}, "
                      f"of the smallest {least:.4f}", flush=True)  # fmt: skip
    print(f"target {TARGET}: {'met' if met else 'missed'}")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
