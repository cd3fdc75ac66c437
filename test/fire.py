"""Forgetting and freeing under fire: forget, gc, gc --compact and writers with keep= are killed at random moments, half of the time while
a reader has an old version open. After each kill: what was not to be forgotten is there and right, through the connector and without
it; what was, is there as a whole or gone as a whole; the reader sees what it saw. Between the kills a writer is stopped
(SIGSTOP) in the middle of its work, which nobody else may disturb.

    ./dev exec python3 -B test/fire.py --kills 200

Exit code 1 and what is wrong.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from seeds import again, seed

BUILD = Path(os.environ.get("H5COW_BUILD", Path(__file__).parent.parent / "build/release"))
COMMAND = str(BUILD / "cli/h5cow")
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith("HDF5_VOL")} | {"HDF5_PLUGIN_PATH": str(BUILD / "connector")}

CONTENT = """
import sys, time, h5py, numpy as np
ROWS = 64
def content(number):
    pieces = np.arange(ROWS * 512).reshape(ROWS, 512)
    pieces.flat[np.arange(max(0, number - 60), number + 1) * 7919 % pieces.size] = -1
    return {'pieces': pieces,
            'plain': np.random.default_rng(number).integers(0, 99, (ROWS, 512)),
            'packed': np.random.default_rng(number // 3).integers(0, 99, (ROWS, 512))}
def right(f, where=''):
    g = f[where] if where else f
    number = int(g.attrs['number'])
    want = content(number)
    return number if all((g[k][...] == v).all() for k, v in want.items()) and g['few'][0] == number else -1
"""
WRITE = CONTENT + """
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    with h5py.File(sys.argv[1], 'a', libver='latest') as f:
        for k, v in content(number).items():
            if k in f:
                f[k][...] = v
            else:
                f.create_dataset(k, data=v, chunks=(4, 512), **({'compression': 'gzip'} if k == 'packed' else {}))
        if 'few' in f:
            del f['few']
        f['few'] = [number]
        f.attrs['number'] = number
        if len(sys.argv) > 4:
            f.flush()
            print('stop here', flush=True)
            time.sleep(float(sys.argv[4]))
"""
READ = CONTENT + """
for name in sys.argv[1:]:
    path, _, inner = name.partition('::')
    with h5py.File(path, 'r') as f:
        print(right(f, inner))
"""
PIN = CONTENT + """
with h5py.File(sys.argv[1], 'r') as f:
    for line in sys.stdin:
        print(right(f), flush=True)
"""


class Wrong(Exception):
    pass


def connector(options=""):
    return PLAIN | {"HDF5_VOL_CONNECTOR": f"h5cow {options}".strip()}


def run(words, env=PLAIN, allowed=(0,)):
    done = subprocess.run([str(w) for w in words], env=env, capture_output=True, text=True, timeout=300)
    if done.returncode not in allowed:
        raise Wrong(f"{[str(w) for w in words][:7]} ended with {done.returncode}: {done.stdout[-300:]} {done.stderr[-1500:]}")
    return done


class Fire:
    def __init__(self, path, dice):
        self.path, self.dice, self.next = path, dice, 0
        self.write(40)
        self.pin = None

    def write(self, count):
        run([sys.executable, "-c", WRITE, self.path, self.next, self.next + count], connector("sync=off"))
        self.next += count

    def rows(self):
        """{number of the version: its name}, of those that are there."""
        told = json.loads(run([COMMAND, "log", "--json", self.path]).stdout)
        return {v["number"]: v["name"] for v in (told["versions"] if isinstance(told, dict) else told)}

    # ---- the reader ----

    def hold(self):
        there = self.rows()
        name = there[self.dice.choice(sorted(there)[:-1] or list(there))]
        self.pin = subprocess.Popen(
            [sys.executable, "-c", PIN, f"{self.path}@{name}"], env=connector(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pinned = self.ask()

    def ask(self):
        self.pin.stdin.write("now\n")
        self.pin.stdin.flush()
        return int(self.pin.stdout.readline() or -2)

    def let_go(self):
        if self.pin is not None:
            self.pin.stdin.close()
            self.pin.wait()
        self.pin = None

    # ---- what is killed ----

    def work(self):
        """(words, environment, versions that may go, a version that may come)"""
        there = sorted(self.rows())
        kind = self.dice.choice(["forget", "forget --gc", "gc", "keep", "compact"])
        if kind == "keep":
            words = [sys.executable, "-c", WRITE, self.path, self.next, self.next + 3]
            return words, connector("keep=last:20"), set(there), 3
        if kind == "gc":
            return [COMMAND, "gc", self.path], PLAIN, set(), 0
        if kind == "compact":
            return [COMMAND, "gc", "--compact", self.path], PLAIN, set(), 0
        gone = [n for n in there[:-1] if self.dice.random() < 0.2]
        if not gone:
            return [COMMAND, "gc", self.path], PLAIN, set(), 0
        return [COMMAND, *kind.split(), self.path, *(f"#{n}" for n in gone)], PLAIN, set(gone), 0

    def kill_one(self):
        before = set(self.rows())
        words, env, may_go, comes = self.work()
        child = subprocess.Popen([str(w) for w in words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        delay = self.dice.random() * (1.0 if comes or "--compact" in words else 0.12)
        try:
            child.wait(delay)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
        time.sleep(0.05)  # what it started ends with it
        after = set(self.rows())
        if not before - after <= may_go:
            raise Wrong(f"{words[:5]}: versions {sorted(before - after - may_go)} are gone")
        if not comes and before - after not in (set(), may_go):
            raise Wrong(f"{words[:5]}: a part of what was to go is gone")
        self.next += len(after - before)

    def look(self):
        there = self.rows()
        names = [there[n] for n in sorted(there)]
        through = [f"{self.path}@{n}" for n in names] + [self.path]
        without = [f"{self.path}::/_versioned_data/versions/{n}" for n in names] + [self.path]
        ways = [(through, connector())]
        if self.pin is None:  # a reader that is at an older state keeps newer ones from HDF5 alone: docs/promises.md
            ways.append((without, PLAIN))
        for files, env in ways:
            if env is PLAIN:
                run([COMMAND, "recover", self.path])  # what was committed is applied
            seen = run([sys.executable, "-c", READ, *files], env).stdout.split()
            if "-1" in seen or seen[-1] != seen[-2]:
                raise Wrong(f"read {'without the connector' if env is PLAIN else 'through it'}: {seen}")
        run([COMMAND, "verify", self.path])

    # ---- stopped in the middle ----

    def stop_one(self, seconds):
        words = [sys.executable, "-c", WRITE, str(self.path), str(self.next), str(self.next + 1), "0.1"]
        writer = subprocess.Popen(words, env=connector(), stdout=subprocess.PIPE, text=True)
        writer.stdout.readline()
        writer.send_signal(signal.SIGSTOP)
        end = time.monotonic() + seconds
        while True:
            for verb in (["gc"], ["gc", "--compact"]):
                if run([COMMAND, *verb, self.path], allowed=range(256)).returncode == 0:
                    raise Wrong(f"{verb} did not mind that a writer is at work")
            if time.monotonic() >= end:
                break
            time.sleep(min(5, seconds / 4))
        writer.send_signal(signal.SIGCONT)
        if writer.wait(60) != 0:
            raise Wrong("a writer that was stopped could not go on")
        self.next += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--stopped", type=float, default=1, help="seconds for which a writer is stopped, once in twenty kills")
    options = parser.parse_args()
    print(again(), flush=True)
    dice = random.Random(seed())
    with tempfile.TemporaryDirectory(prefix="h5cow-fire-") as folder:
        fire = Fire(Path(folder) / "f.h5", dice)
        try:
            for kill in range(options.kills):
                if kill % 20 == 0:
                    fire.let_go()
                    fire.stop_one(options.stopped)
                    fire.write(max(1, 30 - len(fire.rows())))
                if kill % 20 == 10:
                    fire.hold()
                fire.kill_one()
                if fire.pin is not None and fire.ask() != fire.pinned:
                    raise Wrong("the reader does not see any more what it saw")
                if kill % 5 == 4:
                    fire.look()
            fire.let_go()
            fire.look()
        except Wrong as e:
            print(f"after {kill} kills: {e}")
            return 1
    print(f"{options.kills} kills: nothing wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
