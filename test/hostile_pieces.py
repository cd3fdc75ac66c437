"""Cases of test/hostile.py: composed chunks that cannot be (a base slot and pieces, docs/format.md), and runs that lead astray: which
slots have a hash (hashes/<pool>), which rows of `snapshots` an address has (snapshot_rows).

Whoever means harm computes checksums anew, so all of these have right ones where nothing else is said. What then is a possible
record, though not the one that was written, nobody can tell: such cases are only not to crash. Of all others `judged` says that
the datasets of READ are right or an error, in the head and in versions, before and after a program has written to the file.
"""

import pathlib
import sys

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "docs"))
from xxh3 import word, xxh3

TOP = "/_versioned_data"
COMPOSED = 4  # kind of a record
HOLES, SLOTS, SAME, RUN_COMPOSED = range(4)
GAP = 8000  # bytes of the index that nothing names: room for forged records, before the leaves that are to name them
READ = ("cut", "packed_cut", "filler", "many", "texts", "lists", "group/x")  # what is compared

# Small changes of large chunks. In `cut`, of rank 2, a piece is less than a row, and chunks are cut by the extent on both sides; the
# last chunk of both was a hole. Records of `filler` stand between those and the leaves, so that each distance in a leaf has two bytes.
BEGIN = """
import h5py, sys, numpy as np
with h5py.File(sys.argv[1], 'r+') as f:
    d = f.create_dataset('cut', (20, 700), '<i4', chunks=(8, 400), fillvalue=-5)
    d[:16] = np.arange(16 * 700).reshape(16, 700)
    d[16:, :400] = 9
    d = f.create_dataset('packed_cut', (9000,), '<i8', chunks=(2048,), maxshape=(None,), compression='gzip')
    d[:8192] = np.arange(8192)
    f['filler'] = np.arange(6 * 2048, dtype='<i4')
"""
CHANGE = """
import h5py, sys, numpy as np
with h5py.File(sys.argv[1], 'r+') as f:
    for row in 1, 9, 17:
        for column in 5, 150, 390, 403, 699:
            f['cut'][row, column] = -row
    f['packed_cut'][7::1000] = -1
    f['filler'][7::700] = -1
    f['texts'][1] = 'once more'
    f['lists'][1] = np.arange(7)
    f['pairs'][1] = (8, 'eight', (3, 4))
    f['many'][7] = -7
"""


# ---- records -------------------------------------------------------------------------------------------------------------


def varint(value, size=1):
    """Of SIZE bytes at least: the last ones may say nothing."""
    out = bytearray()
    while value > 127 or len(out) + 1 < size:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


class Payload:
    """The numbers of a record, one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value, shift, byte = 0, 0, 128
        while byte & 128:
            byte = self.data[self.at]
            value, shift, self.at = value | (byte & 127) << shift, shift + 7, self.at + 1
        return value

    def difference(self):
        coded = self.number()
        return -(coded >> 1) - 1 if coded & 1 else coded >> 1


def zigzag(difference):
    """A difference of numbers of 64 bits."""
    difference = (difference + 2**63) % 2**64 - 2**63
    return 2 * difference if difference >= 0 else -2 * difference - 1


def record(payload, kind=COMPOSED, level=0, length=None):
    body = b"cN" + bytes([kind, level]) + (len(payload) if length is None else length).to_bytes(2, "little") + payload
    return body + xxh3(body).to_bytes(8, "little")


def payload(composed):
    """Of a dict: pool, chunk, base (None), pieces, own (of bits), slots (in the order of bits)."""
    base = composed["base"]
    numbers = [composed["pool"], *composed["chunk"], 0 if base is None else base + 1, composed["pieces"], composed["own"]]
    before = 0
    for slot in composed["slots"]:
        numbers.append(zigzag(slot - before))
        before = slot
    return b"".join(varint(n % 2**64) for n in numbers)


def bits(number):
    return [i for i in range(number.bit_length()) if number >> i & 1]


def row_of(f, name):
    """Of the table `datasets`."""
    head = h5py.h5o.get_info(f[name].id).addr
    (row,) = (row for row in f[TOP + "/datasets"][()] if row["head"] == head)
    return row


class Index:
    """What the head of a dataset has in the index log, of one leaf, and how to change it."""

    def __init__(self, f, name, gap):
        self.f, self.name, self.gap = f, name, gap
        self.log = f[TOP + "/index"][...].tobytes()
        row = row_of(f, name)
        self.pool = int(row["pool"])
        root = self.read(int(row["root"]))
        root.number(), root.number()
        self.rank = root.number()
        for _ in range(3 * self.rank):
            root.number()
        self.leaf = int(row["root"]) - root.number()
        p = self.read(self.leaf)
        self.origin = [p.number() for _ in range(1 + self.rank)]
        self.at, self.runs = self.leaf + 6 + p.at, []  # where runs begin; (kind, count, numbers)
        told = 0
        while p.at < len(p.data):
            head = p.number()
            numbers = [p.number() for _ in range({HOLES: 0, SLOTS: 1, SAME: 1, RUN_COMPOSED: head >> 2}[head & 3])]
            self.runs.append((head & 3, head >> 2, numbers))
            told += head >> 2
        self.tile = told
        self.room = len(p.data) - (self.at - self.leaf - 6)

    def read(self, offset):
        return Payload(self.log[offset + 6 : offset + 6 + word(self.log, offset + 4, 2)])

    def distances(self):
        return [distance for kind, _, numbers in self.runs if kind == RUN_COMPOSED for distance in numbers]

    def composed(self, which=0):
        p = self.read(self.leaf - self.distances()[which])
        numbers = [p.number() for _ in range(4 + self.rank)]
        composed = {"pool": numbers[0], "chunk": numbers[1 : 1 + self.rank], "base": numbers[-3] - 1 if numbers[-3] else None,
                    "pieces": numbers[-2], "own": numbers[-1], "slots": []}
        before = 0
        for _ in bits(numbers[-1]):
            before += p.difference()
            composed["slots"].append(before)
        return composed

    def write(self, offset, data):
        self.f[TOP + "/index"][offset : offset + len(data)] = np.frombuffer(data, "u1")

    def lead(self, runs):
        """The leaf has these runs, in as many bytes as it had."""
        numbers = [n for kind, count, more in runs for n in (count << 2 | kind, *more)]
        size = [len(varint(n)) for n in numbers]
        more = self.room - sum(size)
        assert more >= 0 and numbers, (self.room, size)
        for i in range(len(size)):
            add = min(more, 10 - size[i])
            size[i], more = size[i] + add, more - add
        data = b"".join(varint(n, s) for n, s in zip(numbers, size))
        body = self.log[self.leaf : self.at] + data
        self.write(self.leaf, body + xxh3(body).to_bytes(8, "little"))

    def instead(self, forged, which=0):
        """FORGED, a record, for composed chunk WHICH."""
        self.write(self.gap, forged)
        runs, seen = [], 0
        for kind, count, numbers in self.runs:
            if kind == RUN_COMPOSED:
                numbers = [self.leaf - self.gap if seen + i == which else n for i, n in enumerate(numbers)]
                seen += count
            runs.append((kind, count, numbers))
        self.lead(runs)


# ---- cases ---------------------------------------------------------------------------------------------------------------


class Forged:
    """Adds cases to CASES (hostile.Cases) about a file whose index has its gap at GAP."""

    def __init__(self, cases, gap):
        self.cases, self.gap = cases, gap
        self.records()
        self.leaves()
        self.slots()
        self.pools()
        self.hashes()
        self.snapshot_rows()
        self.pages()

    def add(self, name, change, judged=True, told=False):
        self.cases.add(name, change)
        if judged:
            self.cases.judged.add(name)
        if told:
            self.cases.told.add(name)

    # -- composed chunks

    def forge(self, how, make, judged=True, names=("cut", "packed_cut"), which=0, told=None):
        """MAKE(index, composed) gives bytes of a record, or changes COMPOSED."""
        for name in names:

            def change(f, n=name):
                index = Index(f, n, self.gap)
                composed = index.composed(which)
                made = make(index, composed)
                index.instead(made if isinstance(made, bytes) else record(payload(composed)), which)

            self.add(f"composed: {name}: {how}", change, judged, judged if told is None else told)

    def records(self):
        forge = self.forge

        def put(**values):
            return lambda index, c: c.update({key: v(index, c) if callable(v) else v for key, v in values.items()})

        def own(change):
            """CHANGE a dict of piece -> slot."""

            def make(index, c):
                pieces = dict(zip(bits(c["own"]), c["slots"]))
                pieces = change(index, c, pieces) or pieces
                c["own"] = sum(1 << i for i in pieces)
                c["slots"] = [pieces[i] for i in sorted(pieces)]

            return make

        def slots_of(index, pool):
            return len(index.f[f"{TOP}/slots/{pool}"])

        forge("as it was, elsewhere", lambda index, c: None, told=False)
        forge("as it was, a slot of all its numbers in ten bytes", lambda index, c: record(
            b"".join(varint(n, 10) for n in [c["pool"], *c["chunk"], c["base"] + 1, c["pieces"], c["own"], *(
                zigzag(b - a) for a, b in zip([0] + c["slots"], c["slots"]))])), told=False)
        for pool in (0, 1, 99, 2**32 - 1, 2**32, 2**64 - 1):
            forge(f"of pool {pool}", put(pool=pool))
        for chunk in (1, 2, 63, 2**63, 2**64 - 1):
            forge(f"of chunk {chunk}", lambda index, c, n=chunk: c.update(chunk=[n] * index.rank))
        for base in (10**6, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 3):
            forge(f"base is slot {base}", put(base=base))
        forge("base is the first slot that there is not", put(base=lambda i, c: slots_of(i, c["pool"])))
        forge("base is another slot", put(base=lambda i, c: (c["base"] + 1) % slots_of(i, c["pool"])), judged=False)
        forge("no base", put(base=None), judged=False)
        forge("base is itself", put(base=lambda i, c: 2**63 + i.gap))
        for pool in (99, 2**32 - 1, 2**32, 2**64 - 1):
            forge(f"pieces in pool {pool}", put(pieces=pool))
        forge("pieces in its own pool", put(pieces=lambda i, c: c["pool"]))
        forge("pieces in its own pool, itself as the one piece", put(pieces=lambda i, c: c["pool"], own=1, slots=lambda i, c: [2**63 + i.gap]))
        forge("pieces in its own pool, another chunk as the one piece", put(pieces=lambda i, c: c["pool"], own=1, slots=[1]), judged=False)
        for other in ("cut", "packed_cut", "filler", "many", "group/x", "texts", "lists"):
            forge(f"pieces in the pool of {other}", put(pieces=lambda i, c, n=other: int(row_of(i.f, n)["pool"]) if i.name != n else 10**6))
            forge(f"pieces in the pool of {other}, slot 0 alone", put(
                pieces=lambda i, c, n=other: int(row_of(i.f, n)["pool"]) if i.name != n else 10**6, own=1, slots=[0]), judged=other == "texts")
        for other in ("cut", "packed_cut", "filler"):
            forge(f"pieces in those of {other}", put(pieces=lambda i, c, n=other: Index(i.f, n, 0).composed()["pieces"] if i.name != n else 10**6))
        forge("no piece", put(own=0, slots=[]))
        forge("all 64 pieces", put(own=2**64 - 1, slots=lambda i, c: (c["slots"] * 64)[:64]))
        forge("64 pieces and one more", lambda i, c: record(payload({**c, "own": 2**64 - 1, "slots": (c["slots"] * 65)[:65]})))
        for count in (65, 2**32):
            forge(f"a bit for piece {count - 1}", lambda i, c, n=min(count, 80): record(
                payload({**c, "own": 1, "slots": []}).rpartition(b"\1")[0] + b"\xff" * 9 + bytes([1 | n & 126]) + varint(zigzag(0))))
        for piece in (24, 31, 32, 62, 63):
            forge(f"piece {piece}, behind the last one", own(lambda i, c, p, n=piece: p.update({max(n, 32 if i.rank == 1 else 0): c["slots"][0]})))
        forge("a piece more, without a slot", lambda i, c: record(payload({**c, "own": c["own"] | 1 << 23})))
        forge("a slot more, without a piece", lambda i, c: record(payload({**c, "slots": c["slots"] + [c["slots"][0]]})))
        forge("a piece twice", lambda i, c: record(payload({**c, "slots": [c["slots"][0], *c["slots"]]})))
        forge("pieces in the other order", own(lambda i, c, p: dict(zip(p, list(p.values())[::-1]))), judged=False)
        forge("all pieces in one slot", own(lambda i, c, p: dict.fromkeys(p, c["slots"][0])), judged=False)
        forge("a piece at another place", own(lambda i, c, p: {(n + 1 if n == max(p) else n): s for n, s in p.items()}), judged=False)
        for slot in (10**6, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1):
            forge(f"a piece in slot {slot}", own(lambda i, c, p, s=slot: {n: s for n in p}))
        forge("a piece in the first slot that there is not", own(lambda i, c, p: p.update({max(p): slots_of(i, c["pieces"])})))
        forge("a piece before slot 0", own(lambda i, c, p: p.update({max(p): -1})))
        for how, cut in ("one byte short", lambda b: b[:-1]), ("one byte more", lambda b: b + b"\0"), ("of no bytes", lambda b: b""), (
                "of 1,152 bytes", lambda b: b + bytes(1152 - len(b))), ("of 1,153 bytes", lambda b: b + bytes(1153 - len(b))), (
                "a number that does not end", lambda b: b[:-1] + b"\xff"), ("a number of 70 bits", lambda b: b[:-1] + b"\xff" * 9 + b"\x7f"):
            forge(how, lambda i, c, x=cut: record(x(payload(c))))
        for length in (0, 5, 1152, 65535):
            forge(f"says {length} bytes", lambda i, c, n=length: record(payload(c), length=n))
        for kind in (0, 1, 2, 3, 5, 255):
            forge(f"kind {kind}", lambda i, c, k=kind: record(payload(c), kind=k))
        for level in (1, 64, 255):
            forge(f"level {level}", lambda i, c, k=level: record(payload(c), level=k))
        forge("another checksum", lambda i, c: record(payload(c))[:-1] + b"\0")
        forge("no record", lambda i, c: bytes(40))
        forge("format 1", lambda i, c: i.f[TOP].attrs.modify("format", 1))
        forge("its last one, edge and hole, with all pieces", lambda i, c: c.update(own=2**24 - 1, slots=(c["slots"] * 24)[:24]), which=-1, judged=False)

    def leaf(self, how, make, judged=True, names=("cut", "packed_cut")):
        """MAKE(index, distances) gives runs."""
        for name in names:

            def change(f, n=name):
                index = Index(f, n, self.gap)
                index.lead(make(index, index.distances()))

            self.add(f"leaf: {name}: {how}", change, judged, told=True)

    def leaves(self):
        def first(distance):
            """Of the first composed chunk."""

            def make(index, d):
                n = distance(index) if callable(distance) else distance
                return [(kind, count, [n, *numbers[1:]] if kind == RUN_COMPOSED and numbers[0] == d[0] else numbers)
                        for kind, count, numbers in index.runs]

            return make

        self.leaf("a composed chunk at distance 0", first(0))
        self.leaf("a composed chunk in the log's beginning", first(lambda i: i.leaf - 8))
        self.leaf("a composed chunk in the other one's leaf", first(lambda i: i.leaf - Index(i.f, "cut", 0).leaf if i.name != "cut" else 1))
        self.leaf("a composed chunk one byte on", first(lambda i: i.distances()[0] - 1))
        self.leaf("composed chunks in each other's places", lambda i, d: [
            (kind, count, [d.pop() for _ in numbers]) for kind, count, numbers in i.runs])
        self.leaf("the first and the last composed chunk are one", lambda i, d: [
            (RUN_COMPOSED, 1, d[:1]), (HOLES, i.tile - 2, []), (RUN_COMPOSED, 1, d[:1])], judged=False)
        self.leaf("a composed chunk outside the extent", lambda i, d: [
            (RUN_COMPOSED, 1, d[:1]), (HOLES, i.tile - 2, []), (RUN_COMPOSED, 1, d[1:2])], judged=False)
        for count in (0, 65, 2**32):
            self.leaf(f"a run of {count} composed chunks", lambda i, d, n=count: [(RUN_COMPOSED, n, d[:1])])
        self.leaf("too few composed chunks", lambda i, d: [(RUN_COMPOSED, i.tile, d[:2])])
        self.leaf("the base instead", lambda i, d: [(SLOTS, 1, [i.composed()["base"]]), (RUN_COMPOSED, 1, d[1:2]), (HOLES, i.tile - 2, [])], judged=False)
        # none of these datasets has composed chunks, nor has one whose elements are in heaps any
        for name in ("many", "texts", "lists", "pairs", "group/x"):

            def change(f, n=name):
                index, cut = Index(f, n, self.gap) if n != "many" else self.first_leaf(f), Index(f, "packed_cut", 0)
                c = {**cut.composed(), "pool": index.pool, "chunk": [0] * index.rank, "base": 0}
                index.write(self.gap, record(payload(c)))
                assert index.leaf > self.gap, "it was written before there was a gap"
                rest = [(kind, count, numbers) for kind, count, numbers in index.runs]
                kind, count, numbers = rest[0]
                begin = [(RUN_COMPOSED, 1, [index.leaf - self.gap])]
                index.lead(begin + [(HOLES, index.tile - 1, [])] if index.room >= 5 else begin)

            self.add(f"leaf: {name}: a composed chunk", change, told=True)

    def first_leaf(self, f):
        """Of `many`, whose tree is higher: the last leaf that stands before its root."""
        index = Index.__new__(Index)
        index.f, index.name, index.gap, index.rank = f, "many", self.gap, 1
        index.log = f[TOP + "/index"][...].tobytes()
        row = row_of(f, "many")
        index.pool = int(row["pool"])
        at = [n for n in range(16, int(row["root"])) if index.log[n : n + 3] == b"cN\1" and index.log[n + 6] == index.pool]
        index.leaf = at[-1]
        p = index.read(index.leaf)
        p.number(), p.number()
        index.at, index.room, index.runs = index.leaf + 6 + p.at, len(p.data) - p.at, [(HOLES, 64, [])]
        index.tile = 64
        return index

    # -- slots and pools of pieces

    def slots(self):
        def rows(how, change, what=("base", "piece"), judged=True):
            for name in "cut", "packed_cut":
                for place in what:

                    def apply(f, n=name, w=place):
                        c = Index(f, n, 0).composed()
                        pool, slot = (c["pool"], c["base"]) if w == "base" else (c["pieces"], c["slots"][0])
                        table = f[f"{TOP}/slots/{pool}"]
                        all_rows = table[...]
                        change(all_rows, slot)
                        table[...] = all_rows

                    self.add(f"slot of the {place} of {name}: {how}", apply, judged, told=True)

        def zero(rows, slot):
            rows[slot] = np.zeros((), rows.dtype)

        def extent(rows, slot, value):
            rows["extent"][slot] = value

        rows("vacant", zero)
        rows("another checksum", lambda rows, slot: rows["checksum"].__setitem__(slot, 1))
        rows("another hash", lambda rows, slot: rows["hash"].__setitem__(slot, np.frombuffer(bytes(range(32)), "u1")
                                                                        if rows["hash"].dtype == "u1" else bytes(range(1, 33))))
        rows("the hash of another", lambda rows, slot: rows["hash"].__setitem__(slot, rows["hash"][slot - 1]))
        rows("the row of another", lambda rows, slot: rows.__setitem__(slot, rows[slot - 1]))
        for value in (0, 2**32 - 1):
            rows(f"extent {value}", lambda rows, slot, v=value: extent(rows, slot, v))

        def contents(how, change, names=("cut", "packed_cut")):
            for name in names:
                for place in "base", "piece":

                    def apply(f, n=name, w=place):
                        c = Index(f, n, 0).composed()
                        pool, slot = (c["pool"], c["base"]) if w == "base" else (c["pieces"], c["slots"][0])
                        raw = f[f"{TOP}/raw/{pool}"]
                        at = (slot * raw.chunks[0],) + (0,) * (raw.ndim - 1)
                        change(raw, at)

                    self.add(f"contents of the {place} of {name}: {how}", apply, told=True)

        contents("one element is another", lambda raw, at: raw.__setitem__(at, raw[at] + 1))
        contents("zeros", lambda raw, at: raw.__setitem__(slice(at[0], at[0] + raw.chunks[0]), 0))
        for size in (1, 100, 5000, 1 << 20):
            contents(f"{size} bytes", lambda raw, at, n=size: raw.id.write_direct_chunk(at, b"x" * n), names=("packed_cut",))
        contents("no filter, by its mask", lambda raw, at: raw.id.write_direct_chunk(at, bytes(raw.chunks[0] * 8), 1), names=("packed_cut",))
        contents("a packed chunk of 2^24 bytes", self.bomb, names=("packed_cut",))

    def bomb(self, raw, at):
        import zlib

        raw.id.write_direct_chunk(at, zlib.compress(bytes(1 << 24), 9))

    def pools(self):
        h5py = self.cases.h5py

        def of_pieces(f, name):
            return Index(f, name, 0).composed()["pieces"]

        def raw(how, make, judged=True):
            for name in "cut", "packed_cut":

                def apply(f, n=name):
                    path = f"{TOP}/raw/{of_pieces(f, n)}"
                    old = f[path]
                    values, shape, chunks, dtype = old[...], old.shape, old.chunks, old.dtype
                    del f[path]
                    make(f, path, values, shape, chunks, dtype)

                self.add(f"pool of pieces of {name}: {how}", apply, judged, told=True)

        def create(f, path, shape, dtype, chunks, **more):
            return f.create_dataset(path, shape, dtype, chunks=chunks, maxshape=(None,) + shape[1:], **more)

        raw("there is none", lambda f, path, v, s, c, t: None)
        raw("no chunk is there", lambda f, path, v, s, c, t: create(f, path, s, t, c))
        raw("elements of two bytes", lambda f, path, v, s, c, t: create(f, path, s, "i2", c).__setitem__(..., v))
        raw("elements of eight bytes and another order", lambda f, path, v, s, c, t: create(f, path, s, ">i8", c).__setitem__(..., v))
        raw("elements are texts", lambda f, path, v, s, c, t: create(f, path, s, h5py.string_dtype(), c))
        raw("elements are lists", lambda f, path, v, s, c, t: create(f, path, s, h5py.vlen_dtype("i4"), c))
        raw("pieces of one element", lambda f, path, v, s, c, t: create(f, path, s, t, (1,) * len(c)))
        raw("pieces that are longer by one", lambda f, path, v, s, c, t: create(f, path, s[:-1] + (s[-1] + 1,), t, c[:-1] + (c[-1] + 1,)))
        raw("pieces as large as 2^30", lambda f, path, v, s, c, t: create(f, path, s, t, (1 << 28,) + (1,) * (len(c) - 1)))
        raw("of another rank", lambda f, path, v, s, c, t: create(f, path, s + (2,), t, c + (2,)))
        raw("contiguous", lambda f, path, v, s, c, t: f.create_dataset(path, data=v))
        raw("itself", lambda f, path, v, s, c, t: f.__setitem__(path, h5py.SoftLink(path)))
        raw("that of the base", lambda f, path, v, s, c, t: f.__setitem__(path, f[f"{TOP}/raw/{Index(f, 'cut', 0).pool}"]))
        raw("its slots instead", lambda f, path, v, s, c, t: f.__setitem__(path, f[path.replace("raw", "slots")]))
        for how, more in ("packed and shuffled", {"compression": "gzip", "shuffle": True}), ("lzf", {"compression": "lzf"}), (
                "with a checksum", {"fletcher32": True}), ("scaled", {"scaleoffset": 0}):
            raw(how, lambda f, path, v, s, c, t, m=more: create(f, path, s, t, c, **m).__setitem__(..., v))
        for name in "cut", "packed_cut":
            for what in "raw", "slots":
                for rows in (0, 1):
                    self.add(f"pool of pieces of {name}: {what} cut to {rows}", lambda f, n=name, w=what, r=rows: f[
                        f"{TOP}/{w}/{of_pieces(f, n)}"].resize(r, axis=0))
            self.add(f"pool of pieces of {name}: no slots", lambda f, n=name: f.__delitem__(f"{TOP}/slots/{of_pieces(f, n)}"))
            self.add(f"pool of pieces of {name}: no row of pools", lambda f, n=name: f[TOP + "/pools"].resize(of_pieces(f, n), axis=0))

            def signature(f, n=name):
                c, table = Index(f, n, 0).composed(), f[TOP + "/pools"]
                rows = table[...]
                rows[c["pieces"]] = rows[c["pool"]]
                table[...] = rows

            self.add(f"pool of pieces of {name}: the signature of that of the base", signature)

    # -- runs

    def runs(self, where, how, change, judged=True):
        """CHANGE(rows, runs, loose): RUNS [slice], LOOSE a slice of ROWS, which are written again."""

        def apply(f):
            table = f[f"{TOP}/{where}"]
            rows = table[...]
            value = rows.dtype.names[1]
            runs, at = [], 64
            for i in range(int(rows[value][0]) & 0xFFFFFFFF):
                count = int(rows["key"][1 + i]) & 0xFFFFFFFF
                runs.append(slice(at, at + count))
                at += count
            made = change(rows, runs, slice(at, at + (int(rows[value][0]) >> 32)))
            if made is not None and len(made) != len(table):
                table.resize((len(made),))
            table[...] = rows if made is None else made

        self.add(f"runs: {where}: {how}", apply, judged)

    def both(self, where):
        """What may be said of any runs."""
        value = self.cases.rows[where][1].names[1]

        def put(how, row, member, n):
            def change(rows, runs, loose):
                rows[value if member else "key"][row] = n(rows, runs) if callable(n) else n

            self.runs(where, how, change)

        for noted in (0, 1, 63, 64, 10**6, 2**63, 2**64 - 1):
            put(f"{noted} noted", 0, 0, noted)
        for count in (0, 2, 63, 64, 2**32 - 1):
            put(f"{count} runs", 0, 1, lambda rows, runs, n=count: int(rows[value][0]) >> 32 << 32 | n)
        for count in (1, 256, 257, 2**32 - 1):
            put(f"{count} loose ones", 0, 1, lambda rows, runs, n=count: n << 32 | int(rows[value][0]) & 0xFFFFFFFF)
        for count in (0, 1, 2**20, 2**31, 2**32 - 1):
            put(f"a run of {count}", 1, 0, lambda rows, runs, n=count: int(rows["key"][1]) >> 32 << 32 | n)
        for count in (1, 100, 2**32 - 1):
            put(f"{count} with the key 0", 1, 0, lambda rows, runs, n=count: n << 32 | int(rows["key"][1]) & 0xFFFFFFFF)
        put("more taken than are there", 1, 1, 2**32 - 1)
        put("63 runs of 2^32", 0, 1, 63)
        self.runs(where, "63 runs of 2^31 rows", lambda rows, runs, loose: (
            rows[value].__setitem__(0, 63), rows["key"].__setitem__(slice(1, 64), 2**31)) and None)
        self.runs(where, "a run that is the table itself, 63 times", lambda rows, runs, loose: (
            rows[value].__setitem__(0, 63), rows["key"].__setitem__(slice(1, 64), (len(rows) - 64) // 63)) and None)

        def each(how, change):
            def apply(rows, runs, loose):
                for run in runs:
                    rows[run] = change(rows[run], rows)

            self.runs(where, how, apply)

        def values(n):
            def change(run, rows):
                run = run.copy()
                run[value] = n(run[value]) if callable(n) else n
                return run

            return change

        def keys(n):
            def change(run, rows):
                run = run.copy()
                run["key"] = n(run["key"]) if callable(n) else n
                return run

            return change

        each("unsorted", lambda run, rows: run[::-1])
        each("shuffled", lambda run, rows: np.random.default_rng(3).permutation(run))
        each("one key", keys(lambda k: k[len(k) // 2]))
        each("each key twice", keys(lambda k: np.repeat(k[::2], 2)[: len(k)]))
        each("all keys 0", keys(0))
        each("all keys 2^64-1", keys(2**64 - 1))
        each("all keys their greatest", keys(lambda k: k.max()))
        each("keys one more", keys(lambda k: k + np.uint64(1)))
        for n in (0, 1, 10**6, 2**32, 2**63, 2**64 - 1):
            each(f"all lead to {n}", values(n))
        each("each leads to the next one's", values(lambda v: np.roll(v, 1)))
        each("each leads one further", values(lambda v: v + np.uint64(1)))
        each("each leads one back", values(lambda v: v - np.uint64(1)))
        each("each leads where the other end does", values(lambda v: v[::-1]))
        self.runs(where, "no rows behind the header", lambda rows, runs, loose: rows[:64].copy())
        self.runs(where, "half of the header", lambda rows, runs, loose: rows[:32].copy())
        self.runs(where, "half of the rows", lambda rows, runs, loose: rows[: len(rows) // 2].copy())
        self.runs(where, "zeros", lambda rows, runs, loose: np.zeros_like(rows))
        self.runs(where, "all ones", lambda rows, runs, loose: np.frombuffer(b"\xff" * 16 * len(rows), rows.dtype).copy())

    def hashes(self):
        for where in [name for name in self.cases.tables if name.startswith("hashes/")]:
            self.both(where)

            def vacant(rows, runs, loose):
                """All that is noted may be given out again."""
                for run in runs:
                    rows["key"][run] = 0
                    rows["key"][1] = (run.stop - run.start) << 32 | run.stop - run.start

            self.runs(where, "all slots are vacant", vacant)

            def loose_vacant(rows, runs, loose):
                first = runs[-1].stop
                more = np.zeros(200, rows.dtype)
                more["slot"] = np.arange(200)
                rows = np.concatenate([rows[:first], more, np.zeros((-first - 200) % 256, rows.dtype)])
                rows["slot"][0] = int(rows["slot"][0]) & 0xFFFFFFFF | 200 << 32
                return rows

            self.runs(where, "200 slots are vacant, by loose ones", loose_vacant)

    def snapshot_rows(self):
        where = "snapshot_rows"
        self.both(where)

        def lead_to_older(f):
            """Of each head with several rows the newest one's entry leads to the oldest, as if that were the newest: all checksums fit."""
            table, snapshots = f[f"{TOP}/{where}"], f[TOP + "/snapshots"][...]
            rows = table[...]
            noted, first, last = int(rows["key"][0]), {}, {}
            for n, head in enumerate(snapshots["head"][:noted]):
                first.setdefault(int(head), n)
                last[int(head)] = n
            for head, n in last.items():
                key = xxh3(np.array([0, head], "u8").tobytes()) or 1
                for at in np.flatnonzero(rows["key"][64:] == key):
                    if int(rows["row"][64 + at]) == 2**64 - 1 - n:
                        rows["row"][64 + at] = 2**64 - 1 - first[head]
            table[...] = rows

        self.add(f"runs: {where}: each head leads to its oldest row", lead_to_older)

        def forget_newest(f):
            """Entries of the newest row of each head are of another key."""
            table, snapshots = f[f"{TOP}/{where}"], f[TOP + "/snapshots"][...]
            rows = table[...]
            noted = int(rows["key"][0])
            last = {int(head): n for n, head in enumerate(snapshots["head"][:noted])}
            for head, n in last.items():
                key = xxh3(np.array([0, head], "u8").tobytes()) or 1
                for at in np.flatnonzero(rows["key"][64:] == key):
                    if int(rows["row"][64 + at]) == 2**64 - 1 - n:
                        rows["key"][64 + at] += 1
            table[...] = rows

        self.add(f"runs: {where}: no entry leads to the newest row of a head", forget_newest)

    def pages(self):
        """Bytes of a page that its checksum does not fit."""
        for where in [name for name in self.cases.tables if name.startswith("hashes/")] + ["snapshot_rows"]:
            for page in (0, 1, 2):
                for how, change in ("another byte", lambda raw: raw[:77] + bytes([raw[77] ^ 0x55]) + raw[78:]), (
                        "another checksum", lambda raw: raw[:-1] + bytes([raw[-1] ^ 1])), (
                        "half of it", lambda raw: raw[: len(raw) // 2]), ("twice", lambda raw: raw + raw):

                    def apply(f, w=where, p=page, x=change):
                        table = f[f"{TOP}/{w}"]
                        mask, raw = table.id.read_direct_chunk((p * table.chunks[0],))
                        table.id.write_direct_chunk((p * table.chunks[0],), x(bytes(raw)), mask)

                    self.add(f"runs: {where}: page {page} has {how}", apply)

                def unchecked(f, w=where, p=page):
                    """As if HDF5 had written it without a checksum."""
                    table = f[f"{TOP}/{w}"]
                    _, raw = table.id.read_direct_chunk((p * table.chunks[0],))
                    raw = bytearray(raw[:-4])
                    raw[200:300] = bytes(100)
                    table.id.write_direct_chunk((p * table.chunks[0],), bytes(raw), 1)

                self.add(f"runs: {where}: page {page} has zeros, and no checksum", unchecked)
