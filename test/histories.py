"""Random histories: sessions, restores, undos, tags, squashes, forgetting, collecting and compacting, against a model that keeps
plain arrays. Whatever remains of a history must read as it was, through the connector and without it, and verify.

    ./dev exec python3 -B test/histories.py --count 500

Exit code 1 and the seed of the history where one is wrong.
"""

import argparse
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from seeds import seed

BUILD = Path(os.environ.get("H5COW_BUILD", Path(__file__).parent.parent / "build/release"))
COMMAND = str(BUILD / "cli/h5cow")

# One session: what is done to the file is said in JSON, so that the model does the same.
SESSION = """
import json, sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'a', libver='latest') as f:
    for what, path, *rest in json.loads(sys.argv[2]):
        if what == 'dataset':
            rows, number, more = rest
            f.create_dataset(path, data=np.random.default_rng(number).integers(0, 1000, (rows, 20)), maxshape=(None, 20),
                             chunks=(4, 20), **more)
        elif what == 'small':
            f[path] = np.arange(rest[0])
        elif what == 'text':
            f[path] = ['text %d %d' % (rest[0], i) for i in range(12)]
        elif what == 'fill':
            first, last, number = rest
            f[path][first:last] = np.random.default_rng(number).integers(0, 1000, (last - first, 20))
        elif what == 'resize':
            f[path].resize(rest[0], axis=0)
        elif what == 'note':
            f[path].attrs['note'] = rest[0]
        elif what == 'group':
            f.create_group(path)
        elif what == 'delete':
            del f[path]
"""
# Everything in a file, or in a version of it, as JSON.
LOOK = """
import json, sys, h5py, numpy as np
def everything(root):
    seen = {'/': {'note': int(root.attrs.get('note', -1))}}
    def look(path, o):
        if path.startswith('_versioned_data'):
            return
        entry = seen['/' + path] = {'note': int(o.attrs.get('note', -1))}
        if isinstance(o, h5py.Dataset):
            v = o[()]
            entry['values'] = [t.decode() for t in v] if v.dtype.kind == 'O' else v.tolist()
    root.visititems(look)
    return seen
told = []
for name in sys.argv[1:]:
    name, _, inner = name.partition('::')
    with h5py.File(name, 'r') as f:
        told.append(everything(f[inner] if inner else f))
print(json.dumps(told))
"""


class Wrong(Exception):
    pass


def call(words, connector=False, check=True):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HDF5_VOL")}
    env["HDF5_PLUGIN_PATH"] = str(BUILD / "connector")
    if connector:
        env["HDF5_VOL_CONNECTOR"] = "h5cow sync=off" if connector is True else connector
    done = subprocess.run([str(w) for w in words], env=env, capture_output=True, text=True, timeout=600)
    if check and done.returncode != 0:
        raise Wrong(f"{words[:6]} ended with {done.returncode}: {done.stdout[-300:]} {done.stderr[-1500:]}")
    return done.stdout


def numbers(number, rows):
    import numpy as np

    return np.random.default_rng(number).integers(0, 1000, (rows, 20)).tolist()


class History:
    def __init__(self, folder, number):
        self.rnd = random.Random(number)
        self.path = folder / f"{number}.h5"
        self.head = {"/": {"note": -1}}
        self.versions = {}  # number -> content
        self.last = 0  # number of the newest version
        self.tags = {}
        self.count = 0

    # ---- a session ----

    def datasets(self):
        return [p for p, e in self.head.items() if e.get("kind") == "dataset"]

    def any_name(self):
        groups = [p for p, e in self.head.items() if e.get("kind", "group") == "group"]
        self.count += 1
        return f"{self.rnd.choice(groups).rstrip('/')}/n{self.count}"

    def step(self):
        rnd, head = self.rnd, self.head
        what = rnd.choice(["dataset", "small", "text", "fill", "fill", "fill", "fill", "resize", "note", "note", "group", "delete"])
        if what in ("fill", "resize") and not self.datasets():
            what = "dataset"
        if what == "dataset":
            path, rows, number = self.any_name(), rnd.randrange(0, 60), rnd.getrandbits(30)
            head[path] = {"kind": what, "note": -1, "values": numbers(number, rows)}
            return [what, path, rows, number, {"compression": "gzip"} if rnd.random() < 0.4 else {}]
        if what in ("small", "text"):
            path, n = self.any_name(), rnd.randrange(1, 30)
            head[path] = {"kind": what, "note": -1}
            head[path]["values"] = list(range(n)) if what == "small" else [f"text {n} {i}" for i in range(12)]
            return [what, path, n]
        if what == "fill":
            path, number = rnd.choice(self.datasets()), rnd.getrandbits(30)
            rows = len(head[path]["values"])
            first = rnd.randrange(rows + 1)
            last = rnd.randrange(first, rows + 1)
            head[path]["values"][first:last] = numbers(number, last - first)
            return [what, path, first, last, number]
        if what == "resize":
            path, rows = rnd.choice(self.datasets()), rnd.randrange(0, 80)
            values = head[path]["values"]
            head[path]["values"] = values[:rows] + [[0] * 20 for _ in range(rows - len(values))]
            return [what, path, rows]
        if what == "note":
            path = rnd.choice(list(head))
            head[path]["note"] = rnd.randrange(1000)
            return [what, path, head[path]["note"]]
        if what == "group":
            path = self.any_name()
            head[path] = {"kind": what, "note": -1}
            return [what, path]
        path = rnd.choice(list(head))
        if path == "/":
            return ["note", "/", head["/"].setdefault("note", -1)] if head["/"]["note"] >= 0 else self.step()
        for other in [p for p in head if p == path or p.startswith(path + "/")]:
            del head[other]
        return [what, path]

    def session(self):
        steps = [self.step() for _ in range(self.rnd.randrange(1, 6))]
        call([sys.executable, "-c", SESSION, self.path, json.dumps(steps)], connector=f"h5cow sync=off;pieces={self.rnd.choice(['on', 'off', '16', '16', '64'])}")
        self.made()

    # ---- the history ----

    def log(self):
        return json.loads(call([COMMAND, "log", "--json", "--all", self.path]))

    def made(self):
        """A version, or none where nothing differs; the log tells which."""
        told = self.log()
        rows = told["versions"] if isinstance(told, dict) else told
        newest = max((v["number"] for v in rows), default=0)
        if newest > self.last + 1:
            raise Wrong(f"{newest - self.last} versions were made at once")
        if newest == self.last + 1:
            self.versions[newest] = copy.deepcopy(self.head)
        elif shown(self.head) != shown(self.versions[self.last]):
            raise Wrong("something was changed, and no version was made")
        self.last = newest

    def go(self, number):
        self.head = copy.deepcopy(self.versions[number])
        self.made()

    def restore(self):
        number = self.rnd.choice(list(self.versions))
        call([COMMAND, "restore", f"{self.path}@#{number}"])
        self.go(number)

    def tag(self):
        self.count += 1
        number, name = self.rnd.choice(list(self.versions)), f"t{self.count}"
        call([COMMAND, "tag", f"{self.path}@#{number}", name])
        self.tags[name] = number

    def untag(self):
        if self.tags:
            name = self.rnd.choice(list(self.tags))
            call([COMMAND, "tag", "-d", self.path, name])
            del self.tags[name]

    def free(self):
        return [n for n in self.versions if n != self.last and n not in self.tags.values()]

    def forget(self):
        gone = [n for n in self.free() if self.rnd.random() < 0.6]
        if gone:
            more = ["--gc"] if self.rnd.random() < 0.5 else []
            call([COMMAND, "forget", *more, self.path, *(f"#{n}" for n in gone)])
        for n in gone:
            del self.versions[n]

    def squash(self):
        there = sorted(self.versions)
        last = self.rnd.randrange(len(there))
        first = self.rnd.randrange(last + 1)
        gone = there[first:last]
        if gone and not set(gone) & set(self.tags.values()):
            call([COMMAND, "squash", self.path, f"#{there[first]}..#{there[last]}"])
            for n in gone:
                del self.versions[n]

    def collect(self):
        call([COMMAND, "gc", self.path])

    def compact(self):
        call([COMMAND, "gc", "--compact", self.path])

    # ---- the same? ----

    def compare(self):
        there = sorted(self.versions)
        want = [shown(self.versions[n]) for n in there] + [shown(self.head)]
        names = {v["number"]: v["name"] for v in rows_of(self.log())}
        through = [f"{self.path}@{names[n]}" for n in there] + [self.path]
        without = [f"{self.path}::/_versioned_data/versions/{names[n]}" for n in there] + [self.path]
        for how, files in (("through the connector", through), ("without it", without)):
            seen = json.loads(call([sys.executable, "-c", LOOK, *files], connector=files is through))
            for n, a, b in zip([*there, "head"], seen, want):
                if a != b:
                    paths = [p for p in {*a, *b} if a.get(p) != b.get(p)]
                    raise Wrong(f"version {n}, read {how}, differs at {paths[:5]}")
        for name, n in self.tags.items():
            if names[n] not in call([COMMAND, "tag", self.path]):
                raise Wrong(f"the tag {name} is lost")
        call([COMMAND, "verify", self.path])

    def run(self, length):
        self.session()
        while not self.last:
            self.session()
        for _ in range(length):
            act = self.rnd.choices(
                [self.session, self.restore, self.tag, self.untag, self.forget, self.squash, self.collect, self.compact],
                [60, 8, 6, 2, 12, 6, 5, 2],
            )[0]
            self.acts.append(act.__name__)
            act()
        self.compare()

    acts: list


def rows_of(told):
    return told["versions"] if isinstance(told, dict) else told


def shown(content):
    return {p: {k: v for k, v in e.items() if k != "kind"} for p, e in content.items()}


def one(folder, number, length):
    history = History(folder, number)
    history.acts = []
    try:
        history.run(length)
    except (Wrong, subprocess.TimeoutExpired) as e:
        return f"history {number}: {' '.join(history.acts)}: {e}; its file is {history.path}"
    history.path.unlink()
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--length", type=int, default=14)
    parser.add_argument("--seed", type=int, help="of one history")
    parser.add_argument("--folder")
    options = parser.parse_args()
    folder = Path(options.folder or tempfile.mkdtemp(prefix="h5cow-histories-"))
    first = seed()
    todo = [options.seed] if options.seed is not None else range(first, first + options.count)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [w for w in pool.map(lambda n: one(folder, n, options.length), todo) if w]
    for w in wrong:
        print(w)
    print(f"{len(todo)} histories from seed {todo[0]}: {len(wrong)} wrong")
    if not wrong and not options.folder:
        shutil.rmtree(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
