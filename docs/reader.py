#!/usr/bin/env python3
"""Reads every version of a file that h5cow wrote, from format.md alone: no plugin, no virtual datasets in between.

usage: reader.py FILE                     the versions, also those that were forgotten: they cannot be read
       reader.py FILE VERSION             the datasets of a version: a name, a tag, or - for the head
       reader.py FILE VERSION DATASET     the elements of a dataset

Needs h5py and numpy. What is read is checked first: records of the index and chunks by XXH3-64, the content of chunks by
SHA-256. Damaged is raised where something does not agree; nothing is guessed.
"""

import hashlib
import math
import os
import re
import sys
from collections import namedtuple

os.environ.pop("HDF5_VOL_CONNECTOR", None)  # a connector would hide the history
import h5py
import numpy as np
from xxh3 import word, xxh3

TOP = "/_versioned_data"
UNLIMITED = MASK = 2**64 - 1
LEAF, INNER, ROOT, COMPOSED = 1, 2, 3, 4
FORMATS = range(1, 7)
MARK = re.compile(TOP + r"((?:/\.?)+)/(?:raw|views)/")  # the number of a root record: a binary digit for each slash
PART = re.compile(TOP + "/views/p([0-9a-f]+)")
PIECES = 64  # of a chunk, at most
NATIVE = 8  # `flags` of a dataset whose head is chunked
FORGOTTEN = 2  # `open` of a version whose tree is gone
Root = namedtuple("Root", "dataset pool extent maximum chunk level top chunks")
Composed = namedtuple("Composed", "base pool slots")  # base None: fill value; slots: number of the piece -> its slot in `pool`


class Damaged(Exception):
    """What was read is not what was written."""


def check(good, what):
    if not good:
        raise Damaged(what)


class Grid:
    """Which box of chunks a node of each level covers."""

    def __init__(self, chunk, maximum):
        self.maximum = [m if m == UNLIMITED else -(-m // c) for m, c in zip(maximum, chunk)]
        self.tile = self.doubled([1] * len(chunk), 6)[1]

    def doubled(self, span, times):
        """The span after TIMES doublings, and the factor of each dimension."""
        span, factor = list(span), [1] * len(span)
        for _ in range(times):
            open_dimensions = [d for d in range(len(span)) if span[d] < self.maximum[d]]
            if open_dimensions:
                d = min(open_dimensions, key=lambda d: (span[d], -d))
                span[d] = min(span[d] * 2, UNLIMITED)
                factor[d] *= 2
        return span, factor

    def level(self, level):
        """(span in chunks, split into children) of a node; the split of a leaf is its tile."""
        span, split = self.tile, self.tile
        for _ in range(level):
            span, split = self.doubled(span, 4)
        return span, split


def place(position, shape, fastest_first):
    """Coordinates of a position in a box."""
    at = [0] * len(shape)
    for d in range(len(shape)) if fastest_first else reversed(range(len(shape))):
        position, at[d] = divmod(position, shape[d])
    return at


class Payload:
    """The numbers of a record, one after the other."""

    def __init__(self, data, where):
        self.data, self.at, self.where = data, 0, where

    def byte(self):
        check(self.at < len(self.data), f"{self.where} ends too soon")
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                break
        check(byte < 128 and value <= MASK, f"{self.where} has a number of more than 64 bits")
        return value

    def difference(self):
        """A number that may be negative: zigzag-coded."""
        coded = self.number()
        return -(coded >> 1) - 1 if coded & 1 else coded >> 1

    def end(self):
        check(self.at == len(self.data), f"{self.where} has bytes left over")


def in_heap(t):
    """Does HDF5 keep parts of elements of this type elsewhere?"""
    if isinstance(t, h5py.h5t.TypeStringID):
        return t.is_variable_str()
    if isinstance(t, h5py.h5t.TypeCompoundID):
        return any(in_heap(t.get_member_type(i)) for i in range(t.get_nmembers()))
    if isinstance(t, h5py.h5t.TypeArrayID):
        return in_heap(t.get_super())
    return isinstance(t, h5py.h5t.TypeVlenID)


def content(value, dtype, null):
    """An element as the bytes that are hashed. NULL: its empty strings are null pointers; h5py does not tell."""
    text, base = h5py.check_string_dtype(dtype), h5py.check_vlen_dtype(dtype)
    if text is not None and text.length is None:
        value = value.encode() if isinstance(value, str) else value or b""
        return (2**64 - 1 if null and not value else len(value)).to_bytes(8, "little") + value
    if base is not None:
        return len(value).to_bytes(8, "little") + b"".join(content(v, base, null) for v in value)
    if dtype.names:
        return b"".join(content(value[name], dtype.fields[name][0], null) for name in dtype.names)
    if dtype.subdtype:
        return b"".join(content(v, dtype.base, null) for v in np.asarray(value).reshape((-1,) + dtype.base.shape))
    return np.asarray(value, dtype).tobytes()


def filled(dataset):
    """The array of a dataset like this one into which nothing was written."""
    with h5py.File("nothing", "w", driver="core", backing_store=False) as memory:
        dcpl, space = dataset.id.get_create_plist(), h5py.h5s.create_simple(dataset.shape)
        dcpl.set_layout(h5py.h5d.CONTIGUOUS)
        return h5py.Dataset(h5py.h5d.create(memory.id, None, dataset.id.get_type().copy(), space, dcpl))[()]


class History:
    def __init__(self, name):
        self.file = h5py.File(name, "r")
        if TOP not in self.file or self.file[TOP].attrs.get("format") not in FORMATS:
            raise ValueError(f"{name} has no history of format 1 to 6")
        self.log = self.file[TOP + "/index"][()].tobytes()
        check(self.log == b"" or self.log[:16] == b"h5cowidx" + bytes([1, 0, 0, 0, 0, 0, 0, 0]), "not an index log")

    def versions(self):
        """One dict a version, the oldest first; `open` FORGOTTEN: only this row of it is left."""
        rows = self.file[TOP + "/log"][()]
        decode = lambda value: value.decode() if isinstance(value, bytes) else int(value)
        return [{name: decode(row[name]) for name in rows.dtype.names} for row in rows]

    def incomplete(self, row):
        """[(path, why)] of what the version in this row of the log was made without."""
        if TOP + "/incomplete" not in self.file:
            return []
        decode = lambda text: text.decode("utf-8", "replace")
        rows = self.file[TOP + "/incomplete"][()]
        return [(decode(r["path"]), decode(r["reason"])) for r in rows if r["version"] == row]

    def top(self, version):
        """The root group of a version; None: the head."""
        if version is None:
            return self.file["/"]
        for path in (f"{TOP}/versions/{version}", f"{TOP}/tags/{version}"):
            if path in self.file:
                return self.file[path]
        gone = any(row["name"] == version and row["open"] == FORGOTTEN for row in self.versions())
        raise KeyError(f"version {version!r} is forgotten" if gone else f"there is no version {version!r}")

    def datasets(self, version):
        """Paths of all datasets, along hard links."""
        found, todo = [], [("", self.top(version), [])]
        while todo:
            path, group, above = todo.pop()
            for name in [] if group in above else group:
                if not isinstance(group.get(name, getlink=True), h5py.HardLink) or f"{path}/{name}" == TOP:
                    continue
                member = group[name]
                if isinstance(member, h5py.Group):
                    todo.append((f"{path}/{name}", member, above + [group]))
                elif isinstance(member, h5py.Dataset):
                    found.append(f"{path}/{name}")
        return sorted(found)

    def record(self, offset, kinds):
        """(level, payload) of a record of one of these KINDS."""
        where = f"the index record at offset {offset}"
        check(16 <= offset <= len(self.log) - 14 and self.log[offset : offset + 2] == b"cN", f"{where} is none")
        end = offset + 6 + word(self.log, offset + 4, 2)
        check(end <= min(offset + 6 + 1152, len(self.log) - 8), f"{where} has an impossible length")
        check(xxh3(self.log[offset:end]) == word(self.log, end), f"{where} is damaged: its checksum differs")
        check(self.log[offset + 2] in kinds and self.log[offset + 3] <= 64, f"{where} is of the wrong kind")
        return self.log[offset + 3], Payload(self.log[offset + 6 : end], where)

    def root(self, offset):
        level, p = self.record(offset, [ROOT])
        dataset, pool, rank = p.number(), p.number(), p.number()
        check(1 <= rank <= 32, f"{p.where} has an impossible rank")
        shape = [(p.number(), (p.number() - 1) & MASK, p.number()) for _ in range(rank)]
        back, chunks = p.number(), p.number()
        p.end()
        extent, maximum, chunk = (tuple(numbers) for numbers in zip(*shape))
        check(0 not in chunk and back <= offset - 16, f"{p.where} is impossible")
        return Root(dataset, pool, extent, maximum, chunk, level, offset - back if back else None, chunks)

    def composed(self, offset, pool, chunk):
        """The composed chunk at OFFSET, which must be this CHUNK of POOL."""
        _, p = self.record(offset, [COMPOSED])
        check([p.number() for _ in range(1 + len(chunk))] == [pool] + chunk, f"{p.where} is another chunk")
        base, pieces, own, slot, slots = p.number(), p.number(), p.number(), 0, {}
        check(own > 0, f"{p.where} has no piece of its own")
        base = base - 1 if base else None
        for i in (i for i in range(PIECES) if own >> i & 1):
            slot += p.difference()
            check(slot >= 0, f"{p.where} has an impossible piece")
            slots[i] = slot
        p.end()
        return Composed(base, pieces, slots)

    def slots(self, grid, pool, offset, level, origin):
        """(chunk, slot or Composed) of everything stored below the node at OFFSET, which must be that of LEVEL at ORIGIN."""
        found, p = self.record(offset, [INNER] if level else [LEAF])
        span, split = grid.level(level)
        check(p.number() == pool, f"{p.where} is of another pool")
        check([p.number() * s for s in span] == origin and found == level, f"{p.where} belongs to another place")
        if level:
            bitmap, child, below = p.byte() | p.byte() << 8, offset, grid.level(level - 1)[0]
            check(0 < bitmap < 1 << math.prod(split), f"{p.where} has impossible children")
            for i in (i for i in range(16) if bitmap >> i & 1):
                child += p.difference()
                check(child < offset, f"{p.where} has an impossible child")
                inside = place(i, split, fastest_first=False)
                yield from self.slots(grid, pool, child, level - 1, [o + at * b for o, at, b in zip(origin, inside, below)])
        else:
            position, end = 0, math.prod(split)
            while position < end:
                head = p.number()
                count, run = head >> 2, head & 3
                check(0 < count <= end - position, f"{p.where} has an impossible run")
                slot = p.number() if run in (1, 2) else None
                for i in range(count) if run else ():
                    chunk = [o + at for o, at in zip(origin, place(position + i, split, fastest_first=True))]
                    if run == 3:
                        back = p.number()
                        check(0 < back <= offset - 16, f"{p.where} has an impossible composed chunk")
                        yield chunk, self.composed(offset - back, pool, chunk)
                    else:
                        yield chunk, slot + (i if run == 1 else 0)
                position += count
        p.end()

    def chunk(self, raw, rows, slot, heap):
        """The elements of a slot, after comparing them with checksum and hash."""
        where = f"slot {slot} of {raw.name}"
        check(slot < min(len(rows), raw.shape[0] // raw.chunks[0]), f"{where} does not exist")
        row, box = rows[slot], (slice(slot * raw.chunks[0], (slot + 1) * raw.chunks[0]),)
        inside = tuple(slice(0, int(n)) for n in row["extent"])
        try:
            if heap:
                values, parts = raw[box], np.empty(raw.chunks, object)
                hashed = []
                for null in (True, False):  # empty strings: where both kinds are mixed, only the checksum can be told
                    parts.flat = [content(value, raw.dtype, null) for value in values.flat]
                    stored = b"".join(parts.flat)
                    hashed.append(b"".join(parts[inside].flat))
            else:
                parts = np.empty(raw.chunks, f"V{raw.id.get_type().get_size()}")
                memory, file = h5py.h5s.create_simple(raw.chunks), raw.id.get_space()
                file.select_hyperslab((box[0].start,) + (0,) * (raw.ndim - 1), raw.chunks)
                raw.id.read(memory, file, parts, raw.id.get_type())
                stored, hashed = parts.tobytes(), [parts[inside].tobytes()]
                base, extra = raw.dtype.subdtype or (raw.dtype, ())
                plain = not base.hasobject and raw.dtype.itemsize == parts.itemsize
                values = np.frombuffer(stored, base).reshape(raw.chunks + extra) if plain else raw[box]
        except OSError as error:
            raise Damaged(f"{where} cannot be decoded: {error}") from error
        check(xxh3(stored) == row["checksum"], f"{where} is damaged: its checksum differs")
        shape = str(tuple(int(n) for n in row["extent"])).encode()
        good = [hashlib.sha256(h + shape).digest() == row["hash"].tobytes() for h in hashed]
        check(any(good) or hashed[0] != hashed[-1], f"{where} is damaged: its hash differs")
        return values

    def pieces(self, raw, composed):
        """(box in a chunk of RAW, its elements) of each piece that COMPOSED has of its own."""
        where, chunk = f"a composed chunk of {raw.name}", raw.chunks
        check(f"{TOP}/raw/{composed.pool}" in self.file, f"{where} has no pool of pieces")
        pool, rows = self.file[f"{TOP}/raw/{composed.pool}"], self.file[f"{TOP}/slots/{composed.pool}"][()]
        piece = pool.chunks
        check(pool.id.get_type() == raw.id.get_type() and len(piece) == len(chunk), f"{where} has pieces of another type")
        # ones, then how much of one dimension, then what the chunk has
        cut = next((d for d in range(raw.ndim) if piece[d] > 1), raw.ndim - 1)
        while cut > 0 and piece[cut] == chunk[cut]:
            cut -= 1
        check(all(p == 1 for p in piece[:cut]) and piece[cut + 1 :] == chunk[cut + 1 :], f"{where} has impossible pieces")
        check(piece[cut] <= chunk[cut], f"{where} has impossible pieces")
        along = -(-chunk[cut] // piece[cut])
        count = along * math.prod(chunk[:cut])
        check(count <= PIECES and max(composed.slots) < count, f"{where} has too many pieces")
        for i, slot in composed.slots.items():
            before, at = divmod(i, along)
            first = place(before, chunk[:cut], fastest_first=False) + [at * piece[cut]]
            size = [1] * cut + [min(piece[cut], chunk[cut] - first[cut])]
            box = tuple(slice(f, f + n) for f, n in zip(first, size))
            values = self.chunk(pool, rows, slot, False)
            yield box, values[tuple(slice(0, n) for n in size)]

    def root_of(self, dataset):
        """The offset of a versioned dataset's root record; None: HDF5 keeps its elements itself."""
        dcpl = dataset.id.get_create_plist()
        if dcpl.get_layout() == h5py.h5d.CHUNKED:  # a head that every HDF5 reads
            rows = self.file[TOP + "/datasets"][()]
            of = np.flatnonzero((rows["head"] == h5py.h5o.get_info(dataset.id).addr) & (rows["flags"] & NATIVE != 0))
            return int(rows["root"][of[-1]]) if len(of) else None
        if dcpl.get_layout() != h5py.h5d.VIRTUAL or dcpl.get_virtual_count() == 0 or dcpl.get_virtual_filename(0) != ".":
            return None
        source = dcpl.get_virtual_dsetname(0)
        if mark := MARK.match(source):  # it is the root's view itself
            return int("".join("1" if digit else "0" for digit in mark[1].split("/")[1:]), 2)
        group, _, name = source.rpartition("/")
        if dcpl.get_virtual_count() != 1:
            return None
        if group == TOP + "/views":
            return int(name, 16)
        if part := PART.fullmatch(group):  # a part of them, which has 4096 bytes of the index
            return int(part[1], 16) * 4096 + int(name, 16)
        return int(self.file[TOP + "/datasets"][int(name)]["root"]) if group == TOP + "/heads" else None

    def read(self, version, path):
        """The elements of a dataset in a version (None: the head)."""
        dataset = self.top(version)[path.strip("/")]
        offset = self.root_of(dataset)
        if offset is None:
            return dataset[()]
        root = self.root(offset)
        raw, rows = self.file[f"{TOP}/raw/{root.pool}"], self.file[f"{TOP}/slots/{root.pool}"][()]
        check(root.extent == dataset.shape and root.chunk == raw.chunks, f"{path} and its index differ in shape")
        heap, chunks = in_heap(raw.id.get_type()), 0
        result, grid = filled(dataset), Grid(root.chunk, root.maximum)
        empty = result.reshape((-1,) + result.shape[dataset.ndim :])[:1].copy()  # one element of fill value
        for chunk, slot in self.slots(grid, root.pool, root.top, root.level, [0] * dataset.ndim) if root.top else ():
            start = [n * size for n, size in zip(chunk, root.chunk)]
            inside = [min(size, end - begin) for begin, size, end in zip(start, root.chunk, root.extent)]
            check(min(inside) > 0, f"{path} has a chunk outside its extent")
            if isinstance(slot, Composed):
                check(not heap, f"{path} has a composed chunk of elements in a heap")
                values = np.resize(empty, raw.chunks + empty.shape[1:]) if slot.base is None else np.array(self.chunk(raw, rows, slot.base, heap))
                for box, own in self.pieces(raw, slot):
                    values[box] = own
            else:
                values = self.chunk(raw, rows, slot, heap)
            result[tuple(slice(b, b + n) for b, n in zip(start, inside))] = values[tuple(slice(0, n) for n in inside)]
            chunks += 1
        check(chunks == root.chunks, f"{path} has {chunks} chunks instead of {root.chunks}")
        return result


def main(name, version="", path=""):
    history = History(name)
    if path:
        print(history.read(None if version == "-" else version, path))
    elif version:
        print("\n".join(history.datasets(None if version == "-" else version)))
    else:
        for number, row in enumerate(history.versions()):
            mark = " (forgotten)" if row["open"] == FORGOTTEN else ""
            print(row["name"] + mark, row["time"] / 1e6, row["user"], row["program"], row["message"], sep="\t")
            for path, why in history.incomplete(number):
                print("", "incomplete", path, why, sep="\t")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (Damaged, OSError, KeyError, ValueError) as error:
        sys.exit(f"reader: {error}")
