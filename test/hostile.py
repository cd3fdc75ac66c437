#!/usr/bin/env python3
"""Hostile files: whatever somebody put under /_versioned_data, nothing crashes, hangs or takes the machine's memory.

usage: hostile.py [--all | --count N] [--seed S] [--only PART]... [--build FOLDER] [--keep FOLDER] [--list]

A file with history is made through the connector. Each case is a copy of it in which stock h5py replaced one thing below
/_versioned_data: an attribute, a table, a row, a name, a link, an object. (The fence is taken off for that and put back,
journal and all, as somebody would who means harm.) Every file is opened, listed, read at its newest state and at two
versions, written, and read again by h5py through the connector, and by the command: log, stat, doctor, verify, export, copy,
import and recover.
Forged composed chunks, and runs that lead astray, are in hostile_pieces.py: of these also what is read is compared.
Limits: 1 GiB of address space (with AddressSanitizer of resident memory, by its own option), 4 MiB of stack (half of the usual: so half as many
groups in each other find what takes too much of it), 20 s of computing, and, for what only reads, 64 MiB and a few times the file's size of memory.

What fails is run by h5py without the connector as well: what kills HDF5 itself is counted apart. --all: every case; else
a sample of --count, by --jobs processes. Cases have names, so that --only finds one again.
"""

import argparse
import ctypes
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from hostile_pieces import BEGIN, CHANGE, GAP, READ, Forged
from results import results

TEST = pathlib.Path(__file__).resolve().parent
MEMORY, STACK, CPU, WALL = 1 << 30, 4 << 20, 20, 600
READING = 64 << 20, 8  # bytes, and times the file's size, that reading may take
NO_MEMORY = re.compile(r"no(t enough| ) ?memory|MemoryError|memory allocation failed|unable to allocate|Cannot allocate", re.I)

# ---- what is done with a file: in a child of a server, which has h5py loaded --------------------------------------------

AND = ", and "  # between the names of two cases

STATES = ["", "@1", "@6", "@7", "@~0"]  # of the healthy file: the head, without composed chunks, before some, with them, the newest

STEP = None  # shared memory: what the child is doing


def at(step):
    text = step.encode()[:200]
    STEP[: len(text) + 1] = text + b"\0"


def look(h5py, f, everything):
    """Everything that can be reached, at most 3,000 objects; large things only in part."""
    met, todo = set(), ["/"]
    while todo and len(met) < 3000:
        path = todo.pop()
        try:
            o = f[path]
            info = h5py.h5o.get_info(o.id)
            if (info.fileno, info.addr) in met:
                continue
            met.add((info.fileno, info.addr))
        except Exception as why:
            yield why
            continue
        try:
            for name in list(o.attrs)[:50]:
                if o.attrs.get_id(name).get_storage_size() < 1 << 22:
                    o.attrs[name]
        except Exception as why:
            yield why
        try:
            if isinstance(o, h5py.Group):
                for name in list(o)[:200]:
                    if everything or path != "/" or name != "_versioned_data":
                        o.get(name, getlink=True)
                        todo.append(path.rstrip("/") + "/" + name)
            elif isinstance(o, h5py.Dataset) and o.shape is not None:
                o.dtype, o.chunks, o.maxshape, o.fillvalue, o.compression, o.id.get_storage_size()
                o[()] if o.size * max(o.dtype.itemsize, 1) < 1 << 22 else o[(0,) * o.ndim]
        except Exception as why:
            yield why


def shown(h5py, path):
    """What READ has, as digests; None: it cannot be read."""
    digests = {}
    try:
        with h5py.File(path, "r") as f:
            for name in READ:
                try:
                    values = f[name][()] if f[name].size < 1 << 20 else None
                    bytes_ = repr([list(v) for v in values]).encode() if values.dtype.hasobject else values.tobytes()
                    digests[name] = hashlib.sha1(bytes_).hexdigest()
                except Exception:
                    digests[name] = None
    except Exception:
        return dict.fromkeys(READ)
    return digests


def all_shown(h5py, path, when):
    """STATES -> what they show. The newest one is made anew by what is written."""
    at(f"compare {when}")
    return {revision: shown(h5py, path + revision) for revision in STATES}


def through(h5py, path, everything):
    """-> errors."""
    import numpy as np

    errors = []
    before = {} if everything else all_shown(h5py, path, "before")
    for revision in [""] if everything else ["", "@1", "@2"]:
        at("read" + revision)
        try:
            with h5py.File(path + revision, "r") as f:
                errors += look(h5py, f, everything)
        except Exception as why:
            errors.append(why)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # of what only reads
    at("write")
    try:
        with h5py.File(path, "r+") as f:
            for name in ("group/x", "texts", "flat", "packed", "cut", "packed_cut", "many"):
                try:
                    f[name][(0,) * f[name].ndim if "cut" in name else 0] = "new" if name == "texts" else 77
                except Exception as why:
                    errors.append(why)
            f["many"][10:12] = 4, 5  # what another chunk has
            f["group"].attrs["new"] = 1
            f["group/made"] = np.arange(3000)
    except Exception as why:
        errors.append(why)
    at("read again")
    try:
        with h5py.File(path, "r") as f:
            errors += look(h5py, f, False)
    except Exception as why:
        errors.append(why)
    if not everything:
        errors.append(("seen", [before, all_shown(h5py, path, "after")]))
    at("end")
    errors.append(("rss", most))
    return errors


def limits(asan):
    resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU + 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))
    if not asan:  # its shadow counts as memory, so it has a limit of its own: ASAN_OPTIONS below
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def serve(asan):
    """For each line with a path: a child looks at the file; answered by one line of JSON."""
    global STEP
    import mmap

    import h5py
    import numpy  # noqa: F401

    everything = "HDF5_VOL_CONNECTOR" not in os.environ
    h5py.h5.get_libversion()
    STEP = mmap.mmap(-1, 4096)
    for line in sys.stdin:
        path = line.rstrip("\n")
        at("begin")
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            limits(asan)
            found = through(h5py, path, everything)
            rss = [e[1] for e in found if isinstance(e, tuple) and e[0] == "rss"]
            seen = [e[1] for e in found if isinstance(e, tuple) and e[0] == "seen"]
            texts = [f"{type(e).__name__}: {e}" for e in found if not isinstance(e, tuple)]
            bad = [t for t in texts if NO_MEMORY.search(t)]
            os.write(write, json.dumps({"errors": len(texts), "memory": bad[:3], "rss": rss, "seen": seen, "first": texts[:2]}).encode())
            os.close(write)
            at("exit")
            sys.stderr.flush()
            ctypes.CDLL(None).exit(0)  # HDF5 closes itself, as when a program ends; Python need not
        os.close(write)
        with open("/proc/self/statm") as f:
            own = int(f.read().split()[1]) * 4
        ready, _, _ = select.select([read], [], [], WALL)
        answer = os.read(read, 65536) if ready else b""
        os.close(read)
        limit = time.monotonic() + (WALL if ready else 0)
        while (done := os.wait4(child, os.WNOHANG))[0] == 0:
            if time.monotonic() > limit:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.002)
        status, usage = done[1], done[2]
        told = json.loads(answer) if answer else {"errors": 0, "memory": [], "rss": [], "seen": [], "first": []}
        told.update(
            status=os.waitstatus_to_exitcode(status),
            step=STEP[:].split(b"\0")[0].decode(errors="replace"),
            cpu=usage.ru_utime + usage.ru_stime,
            more=1024 * max(0, (told["rss"] or [usage.ru_maxrss])[0] - own),
        )
        print(json.dumps(told), flush=True)


class Server:
    def __init__(self, env, asan, said):
        """SAID: a file for what its children write to standard error."""
        words = [sys.executable, __file__, "--serve"] + (["--asan"] if asan else [])
        self.said = open(said, "a+", errors="replace")
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, env=env, text=True
        )

    def ask(self, path):
        self.said.truncate(0)
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.said.close()


# ---- the healthy file -------------------------------------------------------------------------------------------------

MAKE = """
import h5py, sys, numpy as np
with h5py.File(sys.argv[1], 'w', track_order=True) as f:
    x = f.create_dataset('group/x', data=np.arange(6000, dtype='<i4').reshape(200, 30), chunks=(10, 30), maxshape=(None, 30))
    f.create_dataset('packed', data=np.arange(4000), chunks=(500,), compression='gzip', shuffle=True)
    f.create_dataset('flat', data=np.arange(2000.))
    f.create_dataset('texts', data=['text %d' % i for i in range(60)], chunks=(20,), maxshape=(None,), dtype=h5py.string_dtype())
    f.create_dataset('lists', (20,), chunks=(10,), maxshape=(None,), dtype=h5py.vlen_dtype('i4'))
    for i in range(20):
        f['lists'][i] = np.arange(i)
    pair = np.dtype([('a', 'i4'), ('t', h5py.string_dtype()), ('b', 'f8', (2,))])
    f.create_dataset('pairs', (30,), chunks=(10,), maxshape=(None,), dtype=pair)
    f['pairs'][3] = (7, 'seven', (1, 2))
    f['small'] = 5
    f['word'] = 'a word'
    f['type'] = np.dtype([('a', 'i4'), ('b', 'f8')])
    f['typed'] = np.zeros(3, f['type'].dtype)
    f.create_dataset('references', data=[f['group'].ref, x.ref], dtype=h5py.ref_dtype)
    f['soft'] = h5py.SoftLink('/group/x')
    f['group/near'] = h5py.SoftLink('x')
    f['hard'] = f['group']
    f['outside'] = h5py.ExternalLink('nowhere.h5', '/x')
    f['gone'] = np.arange(1000)
    for n in range(5):
        f.create_dataset('torn%d' % n, data=np.arange(100), chunks=(50,), fletcher32=True)
    f.create_dataset('many', data=np.arange(2400, dtype='<i8'), chunks=(2,))
    f.attrs['title'] = 'one'
    x.attrs['long'] = np.arange(500.)
    x.attrs['words'] = ['a', 'bc']
for number in (2, 3):
    with h5py.File(sys.argv[1], 'r+') as f:
        f['group/x'][:10] += number
        f['texts'][number] = 'changed'
        f['small'][()] = number
        f['many'][number] = -number
        f.attrs['title'] = 'number %d' % number
        if number == 3:
            del f['gone']
            f['group/later'] = np.arange(2000)
"""
# What cannot be put into a version: elements of a dataset that HDF5 keeps itself, damaged (make_base). More versions, so
# that `incomplete` has rows of several.
TEAR = """
import h5py, sys, numpy as np
with h5py.File(sys.argv[1], 'r+') as f:
    f['group/x'][:10] += 1
    noise = np.random.default_rng(f['group/x'][0, 0]).random(1000)  # its place is one for the table of free ones, when it goes
    f.require_dataset('noise', (1000,), 'f8', chunks=(1000,), compression='gzip')[:] = noise
    for name in f:
        if name.startswith('torn'):
            f[name].attrs['title'] = 'torn'
"""


def fence_off(path):
    """-> the address of the fence header."""
    from conftest import unfence

    with open(path, "rb") as f:
        old = f.read(28)[20:]
    unfence(path)
    return old


def fence_on(path, fence):
    """As after a commit: the superblock with the fence, and the slots with what stock HDF5 made of the file."""
    sys.path.insert(0, str(TEST.parent / "docs"))
    import conftest
    from xxh3 import xxh3

    with open(path, "r+b") as f:
        bytes_ = bytearray(f.read())
        head = bytearray(bytes_[:48])
        extension = head[20:28]
        head[20:28] = fence
        head[44:] = conftest.lookup3(bytes(head[:44])).to_bytes(4, "little")
        f.seek(0)
        f.write(head)
        anchor = int.from_bytes(fence, "little") - 512
        for at_ in (48, 56):
            slot = int.from_bytes(bytes_[anchor + at_ : anchor + at_ + 8], "little")
            for copy in (slot, slot + 512):
                record = bytearray(bytes_[copy : copy + 512])
                if record[:8] != b"h5cowslt":
                    continue
                record[48:56] = record[64:72] = len(bytes_).to_bytes(8, "little")
                record[56:64] = extension
                record[168:216] = head
                record[504:] = xxh3(bytes(record[:504])).to_bytes(8, "little")
                f.seek(copy)
                f.write(record)


# ---- cases --------------------------------------------------------------------------------------------------------------


class Cases:
    """name -> a function of the open file. Names say what was replaced by what."""

    def __init__(self, base, gap):
        import h5py
        import numpy as np

        self.h5py, self.np, self.all = h5py, np, {}
        self.asked_by_hdf5 = set()  # HDF5 asks for memory, and gives it back, for what it keeps itself and no reader can see
        with h5py.File(base, "r") as f:
            v = f["_versioned_data"]
            self.size = os.path.getsize(base)
            self.tables = ["log", "snapshots", "datasets", "pools", "index", "incomplete", "operations", "free", "snapshot_rows"]
            pools = sorted({"0", "1", *[n for n in v["raw"] if v["raw"][n].dtype.hasobject][:2]})
            self.tables += [f"{what}/{n}" for what in ("slots", "raw") for n in pools]
            self.tables += [f"hashes/{n}" for n in v["hashes"]]
            self.views = [f"views/{n}" for n in list(v["views"])[:4]] + ["heads/0", "heads/1"]
            self.members = [f"versions/{n}/{m}" for n in "12" for m in ("group/x", "texts", "small", "word", "type", "pairs")]
            self.members += [f"removed/{n}" for n in list(v["removed"])[:1]]
            self.groups = ["", "versions", "tags", "raw", "slots", "views", "heads", "removed", "hashes"]
            self.groups += ["versions/1", "versions/2", "versions/3", "versions/1/group", "versions/2/group"]
            self.rows = {n: (v[n].shape, v[n].dtype) for n in self.tables}
            self.texts = [n for n in v["raw"] if h5py.check_string_dtype(v["raw"][n].dtype)]
        self.types = {
            "i1": np.dtype("i1"), "u4": np.dtype("<u4"), "u4 big": np.dtype(">u4"), "u8": np.dtype("u8"),
            "f4": np.dtype("f4"), "f8": np.dtype("f8"), "S1": np.dtype("S1"), "S5000": np.dtype("S5000"),
            "text": h5py.string_dtype(), "lists": h5py.vlen_dtype("u4"), "list of texts": h5py.vlen_dtype(h5py.string_dtype()),
            "object reference": h5py.ref_dtype, "region reference": h5py.regionref_dtype,
            "enum": h5py.enum_dtype({"a": 1, "b": 2}), "opaque": np.dtype("V7"), "array": np.dtype(("u4", (1000,))),
            "compound": np.dtype([("a", "u4"), ("b", "f8")]), "compound of texts": np.dtype([("head", h5py.string_dtype())]),
            "nested": np.dtype([("a", [("b", [("c", "u1", (4,))])])]), "bool": np.dtype("?"),
        }
        for attribute in ("format", "absolute_links"):
            self.attribute("", attribute)
        self.attribute("versions/1", "title")
        self.attribute("versions/2/group/x", "words")
        for table in self.tables:
            self.links(table)
            self.datasets(table)
            self.shapes(table)
            self.stored(table)
            if self.rows[table][1].names:
                self.compounds(table)
                self.cells(table)
        for view in self.views + self.members:
            self.links(view)
            self.datasets(view)
        for group in self.groups:
            if group:
                self.links(group)
                self.datasets(group, only=("u4", "text", "compound"))
            self.inside(group)
        self.log()
        self.lengths()
        self.natives()
        self.tags()
        self.bytes()
        self.judged, self.told = set(), set()  # what is read of these is right or an error; verify tells of these
        Forged(self, gap)
        self.pairs()

    def add(self, name, change):
        assert name not in self.all, name
        self.all[name] = change

    def replace(self, what, how, change):
        """CHANGE(group, name) makes a new one in its place."""

        def apply(f):
            path = f"/_versioned_data/{what}"
            parent, _, name = path.rpartition("/")
            del f[path]
            change(f[parent], name)

        self.add(f"{what}: {how}", apply)

    # -- attributes

    def attribute(self, path, name):
        h5py, np = self.h5py, self.np
        where = f"_versioned_data/{path}@{name}"

        def put(how, make):
            def apply(f):
                o = f[f"/_versioned_data/{path}"]
                del o.attrs[name]
                make(o)

            self.add(f"{where}: {how}", apply)

        put("none", lambda o: None)
        for key, dtype in self.types.items():
            for shape in ((), (1,), (1000,), (0,)):
                put(f"{key} {shape}", lambda o, d=dtype, s=shape: self.empty_attribute(o, name, s, d))
        put("2^20 values", lambda o: o.attrs.create(name, np.full(1 << 20, 0x41414141, "u4")))
        put("2^20 texts", lambda o: o.attrs.create(name, ["t"] * (1 << 16)))
        put("null", lambda o: o.attrs.create(name, h5py.Empty("u4")))
        put("rank 32", lambda o: o.attrs.create(name, np.zeros((1,) * 32, "u4")))
        put("a long text", lambda o: o.attrs.create(name, "t" * 60000))
        put("not UTF-8", lambda o: o.attrs.create(name, b"\xff\xfe\x80"))
        put("committed", lambda o: self.committed(o, name))
        put("beside it names that are not UTF-8", lambda o: self.bad_names(o, name))
        for value in (0, 2, 0x41414141, 0xFFFFFFFF):
            put(f"says {value}", lambda o, v=value: o.attrs.create(name, v, dtype="<u4"))

    def empty_attribute(self, o, name, shape, dtype):
        h5py = self.h5py
        space = h5py.h5s.create(h5py.h5s.SCALAR) if shape == () else h5py.h5s.create_simple(shape)
        a = h5py.h5a.create(o.id, name.encode(), h5py.h5t.py_create(dtype, logical=True), space)
        if dtype.kind in "iuf" and shape != (0,):
            a.write(self.np.full(shape, 65, dtype))

    def committed(self, o, name):
        o.file["_versioned_data/committed"] = self.np.dtype("<u4")
        t = o.file["_versioned_data/committed"].id
        self.h5py.h5a.create(o.id, name.encode(), t, self.h5py.h5s.create(self.h5py.h5s.SCALAR))

    def bad_names(self, o, name):
        h5py = self.h5py
        o.attrs.create(name, 1, dtype="<u4")
        for odd in (b"\xff\xfe", b"\x01\x02", b"n" * 60000):
            h5py.h5a.create(o.id, odd, h5py.h5t.STD_U32LE, h5py.h5s.create(h5py.h5s.SCALAR))

    # -- links and kinds of objects

    def links(self, what):
        h5py = self.h5py
        path = f"/_versioned_data/{what}"

        def hard(target):
            return lambda g, n: g.__setitem__(n, g.file[target])

        self.replace(what, "nothing", lambda g, n: None)
        self.replace(what, "an empty group", lambda g, n: g.create_group(n))
        self.replace(what, "a named type", lambda g, n: g.__setitem__(n, self.np.dtype("u4")))
        for how, target in {
            "soft link to itself": path, "soft link to the root": "/", "soft link to nothing": "/no/thing",
            "soft link to its parent": ".", "soft link to the history": "/_versioned_data", "soft link to the head": "/group/x",
            "long soft link": "/x" * 30000,
        }.items():
            self.replace(what, how, lambda g, n, t=target: g.__setitem__(n, h5py.SoftLink(t)))
        self.replace(what, "soft link that is not UTF-8", lambda g, n: g.id.links.create_soft(n.encode(), b"/\xff\xfe"))
        self.replace(what, "two soft links in a circle", self.circle)
        self.replace(what, "hard link to the root", hard("/"))
        self.replace(what, "hard link to the history", hard("/_versioned_data"))
        self.replace(what, "hard link to the head", hard("/group/x"))
        self.replace(what, "hard link to a version", lambda g, n: g.__setitem__(n, g.file["/group"]))
        for how, (file, target) in {
            "external link to itself": (None, path), "external link to the root": (None, "/"),
            "external link to nowhere": ("/nowhere/at/all.h5", "/"), "external link to no HDF5 file": ("/etc/hostname", "/"),
        }.items():
            self.replace(what, how, lambda g, n, f=file, t=target: g.__setitem__(
                n, h5py.ExternalLink(f or os.path.basename(g.file.filename), t)))

    def circle(self, g, n):
        g[n] = self.h5py.SoftLink(n + "-other")
        g[n + "-other"] = self.h5py.SoftLink(n)

    # -- datasets of other types

    def make(self, g, n, shape, dtype, **more):
        if shape is None:
            return g.create_dataset(n, data=self.h5py.Empty(dtype if dtype.names is None else "u4"))
        return g.create_dataset(n, shape, dtype, **more)

    def datasets(self, what, only=None):
        shape = self.rows[what][0] if what in self.rows else (4,)
        for key, dtype in self.types.items():
            if only is not None and key not in only:
                continue
            self.replace(what, f"dataset of {key}", lambda g, n, d=dtype: g.create_dataset(
                n, shape, d, chunks=tuple(min(max(s, 1), 16) for s in shape), maxshape=(None,) + shape[1:]))

    def shapes(self, what):
        shape, dtype = self.rows[what]
        rest = shape[1:]
        for how, new in {
            "scalar": (), "null": None, "no rows": (0, *rest), "one row": (1, *rest), "a row less": (max(shape[0] - 1, 0), *rest),
            "a row more": (shape[0] + 1, *rest), "twice the rows": (2 * shape[0], *rest), "another dimension": (*shape, 2),
            "rank 32": (1,) * 32,
        }.items():
            self.replace(what, how, lambda g, n, s=new: self.make(g, n, s, dtype))
        for rows in (1 << 12, 1 << 20, 1 << 22, 40_000_000, 1 << 40, (1 << 63) - 1):
            def sparse(g, n, r=rows):
                chunk = tuple(min(max(s, 1), 64) for s in shape)
                g.create_dataset(n, shape, dtype, chunks=chunk, maxshape=(None,) + rest).resize((r, *rest))

            self.replace(what, f"{rows} rows without storage", sparse)

            def grown(f, r=rows):
                f[f"/_versioned_data/{what}"].resize((r, *rest))

            self.add(f"{what}: grown to {rows} rows", grown)
        for rows in (0, 1):
            self.add(f"{what}: cut to {rows} rows", lambda f, r=rows: f[f"/_versioned_data/{what}"].resize((r, *rest)))

    def stored(self, what):
        h5py, np = self.h5py, self.np
        shape, dtype = self.rows[what]
        rest, open_ = shape[1:], (None,) + shape[1:]

        def lowlevel(how, prepare, extent=shape, most=None):
            def make(g, n):
                plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                prepare(plist, g)
                space = h5py.h5s.create_simple(extent, most or extent)
                h5py.h5d.create(g.id, n.encode(), h5py.h5t.py_create(dtype, logical=True), space, plist)

            self.replace(what, how, make)

        unlimited = tuple(h5py.h5s.UNLIMITED for _ in shape)
        chunk = tuple(min(max(s, 1), 64) for s in shape)
        self.replace(what, "contiguous", lambda g, n: g.create_dataset(n, shape, dtype))
        lowlevel("compact", lambda p, g: p.set_layout(h5py.h5d.COMPACT))
        for bits in (20, 24, 27):
            for packed in (False, True):
                def bomb(g, n, b=bits, z=packed):
                    elements = max((1 << b) // max(dtype.itemsize * int(np.prod(rest or (1,))), 1), 1)
                    d = g.create_dataset(n, shape, dtype, chunks=(elements, *[max(s, 1) for s in rest]), maxshape=open_,
                                         compression="gzip" if z else None)
                    if z and shape[0] > 0 and not h5py.check_string_dtype(dtype) and not dtype.hasobject:
                        d[0] = np.zeros(rest, dtype)

                self.replace(what, f"chunks of 2^{bits} bytes{', packed' if packed else ''}", bomb)
        lowlevel("a chunk of 2^31 bytes", lambda p, g: p.set_chunk(
            ((1 << 31) // max(dtype.itemsize * int(np.prod(rest or (1,))), 1), *[max(s, 1) for s in rest])), most=unlimited)
        for how, filters in {"deflate": [1], "shuffle": [2], "missing filter": [32015], "two checksums": [3, 3],
                             "deflate and checksum": [1, 3], "lzf": [32000], "missing optional": [-32015],
                             "32 filters": [2] * 31}.items():
            def prepare(p, g, ids=filters):
                p.set_chunk(chunk)
                for number in ids:
                    p.set_filter(abs(number), h5py.h5z.FLAG_OPTIONAL if number < 0 or number > 32000 else 0,
                                 (6,) if number == 1 else (dtype.itemsize,) if number == 2 else ())

            lowlevel(how, prepare, most=unlimited)

        def garbage(g, n):
            d = g.create_dataset(n, shape, dtype, chunks=chunk, maxshape=open_, compression="gzip")
            d.id.write_direct_chunk((0,) * len(shape), bytes(range(256)), 0)

        self.replace(what, "packed garbage", garbage)
        for fill in (1, 0xFF):
            def filled(p, g, b=fill):
                p.set_chunk(chunk)
                if not dtype.hasobject:
                    p.set_fill_value(np.frombuffer(bytes([b]) * dtype.itemsize, dtype))

            lowlevel(f"rows of fill value {fill}", filled, most=unlimited)
            lowlevel(f"2^16 rows of fill value {fill}", filled, extent=(1 << 16, *rest), most=unlimited)

        def external(p, g):
            p.set_external(b"/etc/hostname", 0, 1 << 30)

        lowlevel("external storage", external)
        lowlevel("external storage in itself", lambda p, g: p.set_external(g.file.filename.encode(), 0, 1 << 30))
        for how, source in {"itself": what, "the log": "log", "nothing": "nothing"}.items():
            def virtual(g, n, s=source):
                layout = h5py.VirtualLayout(shape, dtype)
                layout[...] = h5py.VirtualSource(".", f"/_versioned_data/{s}", shape)
                g.create_virtual_dataset(n, layout)

            if shape[0] > 0:
                self.replace(what, f"virtual over {how}", virtual)

    # -- compounds

    def compounds(self, what):
        np, h5py = self.np, self.h5py
        shape, dtype = self.rows[what]
        fields = [(n, dtype.fields[n][0]) for n in dtype.names]

        def other(how, new):
            self.replace(what, how, lambda g, n: g.create_dataset(n, shape, np.dtype(new), chunks=(16,), maxshape=(None,)))

        for i, (name, _) in enumerate(fields):
            rest = fields[:i], fields[i + 1 :]
            if len(fields) > 1:
                other(f"without {name}", rest[0] + rest[1])
            other(f"{name} renamed", rest[0] + [("other", fields[i][1])] + rest[1])
            for key in ("i1", "f8", "S5000", "text", "lists", "array", "compound of texts", "object reference", "u4 big"):
                if self.types[key] != fields[i][1]:
                    other(f"{name} of {key}", rest[0] + [(name, self.types[key])] + rest[1])
        other("more members", fields + [("more", "u8")])
        other("other order", fields[::-1])
        other("padding", {"names": [n for n, _ in fields], "formats": [t for _, t in fields],
                          "offsets": [dtype.fields[n][1] for n in dtype.names], "itemsize": dtype.itemsize + 500})
        other("2,000 members", fields + [(f"m{i}", "u1") for i in range(2000)])

    def cells(self, what):
        np = self.np
        shape, dtype = self.rows[what]
        for name in dtype.names:
            kind = dtype.fields[name][0]
            if kind.base.kind not in "iu":
                continue
            for row in sorted({0, shape[0] // 2, shape[0] - 1}):
                for value in (0, 1, 2, 0xFFFFFFFF, 1 << 40, 1 << 63, (1 << 64) - 1, -1, self.size):
                    low, high = np.iinfo(kind.base).min, np.iinfo(kind.base).max
                    if not low <= value <= high:
                        continue

                    def change(f, n=name, r=row, v=value):
                        d = f[f"/_versioned_data/{what}"]
                        rows = d[...]
                        rows[n][r] = v
                        d[...] = rows

                    self.add(f"{what}: row {row}, {name} is {value}", change)

    # -- the log's texts, lengths in heaps, tags

    def log(self):
        np = self.np
        odd = {"nothing": "", "a slash": "a/b", "up": "..", "here": ".", "long": "n" * 300, "very long": "n" * (1 << 20),
               "no UTF-8": b"\xff\xfe\x80", "control characters": "a\x1b[2J\r\n\tb", "another's name": "2"}
        names = [("log", n) for n in ("name", "user", "host", "program", "hdf5", "h5cow", "message")]
        for table, name in names + [("incomplete", n) for n in ("path", "reason")] + [("operations", n) for n in ("user", "what")]:
            for how, text in odd.items():
                def change(f, w=table, n=name, t=text):
                    d = f[f"/_versioned_data/{w}"]
                    rows = d[...]
                    rows[n][1] = t
                    d[...] = rows

                self.add(f"{table}: {name} is {how}", change)

    def lengths(self):
        """What says how long a text is, and where it is: written as HDF5 does not write it."""
        h5py, np = self.h5py, self.np

        def first_chunk(f, what):
            d = f[f"/_versioned_data/{what}"]
            at_ = (0,) * d.ndim
            mask, raw = d.id.read_direct_chunk(at_)
            if d.fletcher32:
                raw = raw[:-4]
            return d, at_, bytearray(raw)

        # where the first text is, and the next one: in the log `name` and `user`, else `path` and `reason`, or elements
        targets = {"log": (0, 32), "incomplete": (16, 32), "operations": (16, 64), **{f"raw/{n}": (0, 16) for n in self.texts}}
        for what, places in targets.items():
            for length in (0xFFFFFFFF, 0x7FFFFFFF, 1 << 28, 1 << 20, 0):
                for place in (0, 1):
                    def longer(f, w=what, n=length, p=places[place]):
                        d, at_, raw = first_chunk(f, w)
                        raw[p : p + 4] = n.to_bytes(4, "little")
                        d.id.write_direct_chunk(at_, bytes(raw), 1 if d.fletcher32 else 0)

                    self.add(f"{what}: text {place} claims {length} bytes", longer)
            for how, value in {"nowhere": (1 << 62), "the superblock": 0, "itself": 48, "all ones": (1 << 64) - 1}.items():
                def elsewhere(f, w=what, v=value, p=places[0]):
                    d, at_, raw = first_chunk(f, w)
                    raw[p + 4 : p + 12] = v.to_bytes(8, "little")
                    d.id.write_direct_chunk(at_, bytes(raw), 1 if d.fletcher32 else 0)

                self.add(f"{what}: a text at {how}", elsewhere)

        def shared(f, what, member):
            """2,000 rows with one long text."""
            d = f[f"/_versioned_data/{what}"]
            rows = d[...]
            rows[member][:] = "m" * (1 << 20)
            d[...] = rows
            d, at_, raw = first_chunk(f, what)
            size = len(raw) // d.chunks[0]
            row = raw[:size]
            d.resize((2000,))
            for chunk in range(0, 2000, d.chunks[0]):
                d.id.write_direct_chunk((chunk,), bytes(row) * d.chunks[0], 1)

        for what, member in ("log", "message"), ("incomplete", "reason"), ("operations", "what"):
            self.add(f"{what}: 2,000 rows with one text of a mebibyte", lambda f, w=what, m=member: shared(f, w, m))

        def kept(f):
            """Each 64 rows no more than the file has, all of them much more."""
            f.create_dataset("_versioned_data/room", (1 << 24,), "u1").write_direct(np.zeros(1 << 24, "u1"))
            d = f["/_versioned_data/incomplete"]
            rows = d[...]
            rows["version"] = len(f["/_versioned_data/log"])
            rows["reason"][:] = "m" * (200 << 10)
            d[...] = rows
            d, _, raw = first_chunk(f, "incomplete")
            d.resize((20000,))
            for chunk in range(0, 20000, d.chunks[0]):
                d.id.write_direct_chunk((chunk,), bytes(raw[: len(raw) // d.chunks[0]]) * d.chunks[0], 1)

        self.add("incomplete: 20,000 rows with one text of 200 KiB, for the next version", kept)

        def shared_elements(f):
            d = f[f"/_versioned_data/raw/{self.texts[0]}"]
            d[0] = "m" * (1 << 21)
            d, at_, raw = first_chunk(f, f"raw/{self.texts[0]}")
            d.id.write_direct_chunk(at_, bytes(raw[:16]) * d.chunks[0], 0)

        self.add("raw: a chunk of elements with one long text", shared_elements)

    def natives(self):
        """Datasets that HDF5 keeps itself, in the head and in a version, where `snapshots` says that they have checksums."""
        h5py, np = self.h5py, self.np
        import zlib

        def packed(g, n, bytes_, chunk):
            d = g.create_dataset(n, (4,) if bytes_ == 4 else (bytes_,), "u1", chunks=(chunk,), maxshape=(None,), compression="gzip")
            zeros = zlib.compress(bytes(chunk), 9)
            for at_ in range(0, bytes_, chunk):
                d.id.write_direct_chunk((at_,), zeros)

        def texts(g, n, rows, length, claimed):
            d = g.create_dataset(n, (rows,), h5py.string_dtype(), chunks=(rows,), maxshape=(None,))
            d[0] = "m" * length
            _, raw = d.id.read_direct_chunk((0,))
            row = (claimed or int.from_bytes(raw[:4], "little")).to_bytes(4, "little") + raw[4:16]
            d.id.write_direct_chunk((0,), row * rows)

        for how, make in {
            "2^30 zeros, packed": lambda g, n: packed(g, n, 1 << 30, 1 << 24),
            "four elements in a packed chunk of 2^30 bytes": lambda g, n: packed(g, n, 4, 1 << 30),
            "4,096 texts that are one mebibyte": lambda g, n: texts(g, n, 4096, 1 << 20, None),
            "16 texts of 2^32 bytes": lambda g, n: texts(g, n, 16, 5, 0xFFFFFFFF),
            "2^27 texts": lambda g, n: g.create_dataset(n, (1 << 27,), h5py.string_dtype(), chunks=(1024,), compression="gzip").__setitem__(0, "t"),
            "2^40 values": lambda g, n: g.create_dataset(n, (1 << 40,), "u1", chunks=(1 << 16,)).__setitem__(0, 1),
        }.items():
            for place in "/small", "/_versioned_data/versions/1/small":
                def change(f, p=place, m=make):
                    g, n = f[p.rpartition("/")[0] or "/"], p.rpartition("/")[2]
                    old = h5py.h5o.get_info(f[p].id).addr
                    del g[n]
                    m(g, n)
                    new = h5py.h5o.get_info(f[p].id).addr
                    d = f["/_versioned_data/snapshots"]
                    rows = d[...]
                    for member in "head", "snapshot":
                        of = rows[member] == old
                        rows[member][of] = new
                        rows["elements"][of] = 1
                    d[...] = rows

                self.add(f"{place}: {how}", change)
                if "2^32" in how:
                    self.asked_by_hdf5.add(f"{place}: {how}")

    def tags(self):
        h5py = self.h5py
        for how, target in {
            "a version": "/_versioned_data/versions/2", "relative": "../versions/2", "nothing": "/no", "itself": "/_versioned_data/tags/1",
            "the root": "/", "all versions": "/_versioned_data/versions/", "below a version": "/_versioned_data/versions/1/group",
            "up": "/_versioned_data/versions/..", "long": "/_versioned_data/versions/" + "v" * 5000,
        }.items():
            def change(f, t=target):
                del f["/_versioned_data/versions/1"]
                f["/_versioned_data/tags/1"] = h5py.SoftLink(t)

            self.add(f"tags: 1 is {how}", change)

    # -- groups

    def inside(self, group):
        h5py, np = self.h5py, self.np
        where = f"/_versioned_data/{group}".rstrip("/")

        def put(how, change):
            self.add(f"in {where}: {how}", lambda f: change(f[where]))

        def deep(g, n=1000):
            for i in range(n):
                g = g.create_group("d")

        def odd_names(g):
            for name in (b"\xff\xfe", b"\x01", b" ", b"n" * 60000, b"a\nb", b"-1", b"18446744073709551616", b"ffffffffffffffffff"):
                h5py.h5g.create(g.id, name)

        def many(g):
            for i in range(3000):
                g[f"link{i}"] = h5py.SoftLink("/no")

        put("1,000 groups in each other", deep)
        put("odd names", odd_names)
        put("3,000 links", many)
        put("a hard link to itself", lambda g: g.__setitem__("self", g))
        put("a hard link to the root", lambda g: g.__setitem__("root", g.file["/"]))
        put("a hard link to the history", lambda g: g.__setitem__("history", g.file["/_versioned_data"]))
        put("a soft link to itself", lambda g: g.__setitem__("loop", h5py.SoftLink("loop")))
        put("a soft link to the history", lambda g: g.__setitem__("history", h5py.SoftLink("/_versioned_data")))
        put("an external link to itself", lambda g: g.__setitem__("out", h5py.ExternalLink(os.path.basename(g.file.filename), where + "/out")))
        put("a dataset of 2^40 values", lambda g: g.create_dataset("huge", (1 << 40,), "u8", chunks=(1024,)))
        put("a dataset of 2^62 bytes", lambda g: g.create_dataset("huge", (1 << 62,), "u1", chunks=(1024,)))
        put("a dataset of fill value without chunks", lambda g: h5py.h5d.create(
            g.id, b"wide", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((1 << 35,))))
        put("a large attribute", lambda g: g.attrs.create("large", np.zeros(1 << 18)))
        put("500 attributes", lambda g: [g.attrs.create(f"a{i}", i) for i in range(500)])
        put("empty", lambda g: [g.__delitem__(n) for n in list(g)])
        put("a comment", lambda g: h5py.h5o.set_comment(g.id, b"c" * 60000))

    # -- the index, byte by byte

    def bytes(self):
        size = self.rows["index"][0][0]
        generator = random.Random(7)
        for n in range(120):
            at_, value = generator.randrange(size), generator.randrange(256)

            def change(f, a=at_, v=value):
                f["/_versioned_data/index"][a] = v

            self.add(f"index: byte {at_} is {value} ({n})", change)


    # -- two things at once

    def pairs(self):
        generator = random.Random(17)
        names = list(self.all)
        for _ in range(600):
            first, second = generator.sample(names, 2)

            def change(f, a=self.all[first], b=self.all[second]):
                a(f)
                try:
                    b(f)
                except Exception:
                    pass  # what it would change is gone

            self.add(f"{first}{AND}{second}", change)
            if self.asked_by_hdf5 & {first, second}:
                self.asked_by_hdf5.add(f"{first}{AND}{second}")


# ---- all of it -----------------------------------------------------------------------------------------------------------


def of_signal(status):
    """The limit of computing is SIGXCPU, then SIGKILL; of the server's patience SIGKILL."""
    return "hang" if status in (-signal.SIGXCPU, -signal.SIGKILL) else "crash"


def damage_told(done):
    """How many damaged places `verify` tells of; many, where it gives up."""
    found = re.search(rb": (\d+) damaged place", done.stdout)
    return 1000 if done.returncode == 2 else int(found[1]) if found else 0


KINDS = ("crash", "hang", "limit", "wrong", "other")


class Run:
    def __init__(self, folder, command, plugins, asan, library):
        from conftest import STOCK

        self.folder, self.command, self.asan = pathlib.Path(folder), command, asan
        # pieces=8K: chunks of 12,800 bytes are 24 pieces, so there are some that are none
        self.env = {**STOCK, "HDF5_PLUGIN_PATH": plugins, "HDF5_VOL_CONNECTOR": "h5cow sync=off;pieces=8K"}
        self.stock = {**STOCK, "HDF5_PLUGIN_PATH": "/nowhere"}
        more = {
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:exitcode=99:max_allocation_size_mb=1024:hard_rss_limit_mb=1024",
            "UBSAN_OPTIONS": "halt_on_error=1",
        }
        if asan:
            self.env.update(more, LD_PRELOAD=library)
            self.stock.update(more)
        self.limits = ["prlimit", *([] if asan else [f"--as={MEMORY}"]), f"--stack={STACK}", f"--cpu={CPU}", "--core=0"]
        self.cow = Server(self.env, asan, self.folder / "cow.txt")
        self.native = None
        self.problems, self.natively, self.worst = [], [], (0, "")

    def make_base(self):
        self.base = self.folder / "base.h5"
        done = subprocess.run([sys.executable, "-c", MAKE, self.base], env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.tear()
        for _ in range(2):
            self.write_torn()
        for words in (["tag", f"{self.base}@1", "tagged"], ["describe", f"{self.base}@2", "the second one"], ["forget", "--gc", self.base, "4"]):
            done = subprocess.run([self.command, *words], env=self.stock, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        self.compose()
        self.add_rows()
        self.write_torn()
        self.fence = fence_off(self.base)

    def write_torn(self):
        done = subprocess.run([sys.executable, "-c", TEAR, self.base], env=self.env, capture_output=True, text=True)
        assert done.returncode == 0 and "is not complete: /torn" in done.stderr, done.stderr

    def compose(self):
        """Composed chunks, and before what names them a place in the index where others can be put."""
        import h5py

        for code in BEGIN, CHANGE:
            done = subprocess.run([sys.executable, "-c", code, self.base], env=self.env, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            if code == BEGIN:
                fence = fence_off(self.base)
                with h5py.File(self.base, "r+", libver=("v110", "latest")) as f:
                    index = f["_versioned_data/index"]
                    self.gap = len(index)
                    index.resize((len(index) + GAP,))
                fence_on(self.base, fence)

    def add_rows(self):
        """To `snapshots`, which others put out of force, so that it has the runs of a long one."""
        import h5py
        import numpy as np

        fence = fence_off(self.base)
        with h5py.File(self.base, "r+", libver=("v110", "latest")) as f:
            table = f["_versioned_data/snapshots"]
            rows = table[...]
            more = np.zeros(1100, rows.dtype)
            more["head"], more["snapshot"] = h5py.h5o.get_info(f.id).addr, 2**64 - 1
            table.resize((len(rows) + len(more),))
            table[...] = np.concatenate([more, rows])
        fence_on(self.base, fence)

    def tear(self):
        """Datasets that cannot be put into a version."""
        import h5py

        fence = fence_off(self.base)
        with h5py.File(self.base, "r+", libver=("v110", "latest")) as f:
            for name in f:
                if name.startswith("torn"):
                    f[name].id.write_direct_chunk((0,), bytes(404), 0)
        fence_on(self.base, fence)

    def natively_bad(self, name, path):
        """HDF5 itself cannot stand this file."""
        if self.native is None:
            env = {**self.stock, **({"LD_PRELOAD": self.env["LD_PRELOAD"]} if self.asan else {})}
            self.native = Server(env, self.asan, self.folder / "native.txt")
        told = self.native.ask(path)
        return told["status"] != 0 or (name in self.cases.asked_by_hdf5 and told["memory"] != [])

    def bad(self, name, path, kind, what):
        """A crash or hang that HDF5 has as well is excused; that it takes as much memory is not, but where the case says so."""
        copy = self.folder / "native.h5"
        shutil.copy(path, copy)
        fence_off(copy)
        known = (kind in ("crash", "hang") or name in self.cases.asked_by_hdf5) and self.natively_bad(name, copy)
        (self.natively if known else self.problems).append(kind)
        print(f"{'natively as well' if known else 'FAILED'}: {name}: {what}", flush=True)

    def commands(self, name, path):
        out = self.folder / "out.h5"
        for words in (["log", path], ["ls", "-r", path], ["ls", "-r", f"{path}@1"], ["show", path], ["diff", f"{path}@1"], ["blame", path, "/group/x"],
                      ["blame", "-c", "3,3", path, "/group/x"], ["bisect", "-b", "max > 1", path, "/group/x"], ["hash", path], ["hash", f"{path}@1"], ["stat", path], ["stat", f"{path}@1"], ["doctor", path],
                      ["report", "-o", out, path],
                      ["verify", path], ["export", f"{path}@1", out], ["export", path, out], ["copy", path, out], ["cp", f"{path}@1:/group", out], ["import", path, out],
                      ["recover", path, out], ["restore", "--dry-run", f"{path}@1"], ["restore", f"{out}@1"], ["restore", "--force", f"{out}@1", "/group"], ["undo", out],
                      ["tag", path], ["tag", f"{out}@1", "tagged"], ["rename", f"{out}@1", "renamed"], ["describe", f"{out}@1", "anew"], ["log", "--operations", path],
                      ["forget", "--gc", out, "3"], ["forget", "-n", "--keep-last=1", path], ["squash", "-n", path, "2..4"], ["gc", "-n", path], ["gc", out], ["gc", "--compact", out]):
            out.unlink(missing_ok=True)
            if out in words[1:2] or f"{out}@1" in words:
                shutil.copy(path, out)
            try:
                done = subprocess.run([*self.limits, self.command, *map(str, words)], env=self.stock, capture_output=True,
                                      timeout=WALL)
            except subprocess.TimeoutExpired:
                self.bad(name, path, "hang", f"h5cow {words[0]}: hangs")
                continue
            if words[0] == "verify":
                self.verified = damage_told(done)
            text = (done.stdout[-3000:] + done.stderr[-6000:]).decode(errors="replace")
            if done.returncode < 0 or done.returncode not in (0, 1, 2):
                self.bad(name, path, of_signal(done.returncode), f"h5cow {words[0]}: ended with {done.returncode}: {text[-3000:]}")
            elif NO_MEMORY.search(text):
                self.bad(name, path, "limit", f"h5cow {words[0]}: {text.strip()[-300:]}")
            elif "no reason was given" in text:
                self.bad(name, path, "other", f"h5cow {words[0]}: {text.strip()[-300:]}")

    def one(self, name, change, keep):
        import h5py

        path = self.folder / "hostile.h5"
        shutil.copy(self.base, path)
        try:
            with h5py.File(path, "r+", libver=("v110", "latest")) as f:
                change(f)
        except Exception as why:
            return f"{name}: {type(why).__name__}: {why}"
        fence_on(path, self.fence)
        if keep:
            shutil.copy(path, pathlib.Path(keep) / (re.sub(r"[^\w.@-]+", "_", name) + ".h5"))
        self.commands(name, path)
        original = self.folder / "original.h5"
        shutil.copy(path, original)
        told = self.cow.ask(path)
        more = told["more"] / (READING[0] + READING[1] * os.path.getsize(original))
        self.worst = max(self.worst, (told["cpu"], name))
        if told["status"] != 0:
            self.cow.said.seek(0)
            said = self.cow.said.read()[-3000:]
            what = f"h5py ended with {told['status']} at '{told['step']}': {said}"
            self.bad(name, original, of_signal(told["status"]), what)
        elif told["memory"]:
            self.bad(name, original, "limit", f"h5py: {told['memory']}")
        elif more > 1 and not self.asan:
            self.bad(name, original, "limit", f"h5py: reading took {told['more'] >> 20} MiB")
        elif name in self.cases.told and self.verified <= self.healthy_damage:
            self.bad(name, original, "other", "h5cow verify finds nothing")
        elif name in self.cases.judged and (wrong := self.wrong(told["seen"][0])):
            self.bad(name, original, "wrong", f"h5py: without an error something else is read: {', '.join(wrong)}")
        return None

    def look_at_healthy(self):
        """What READ has when nothing is wrong."""
        path = self.folder / "healthy.h5"
        shutil.copy(self.base, path)
        fence_on(path, self.fence)
        self.healthy_damage = damage_told(subprocess.run([self.command, "verify", path], env=self.stock, capture_output=True))
        self.healthy = self.cow.ask(path)["seen"][0]
        assert all(seen[state][name] for seen in self.healthy for state in STATES[2:] + [""] for name in READ), self.healthy

    def wrong(self, seen):
        """What is neither an error nor, before and after a write, what the healthy file has; of a write that fails the former."""
        before, after = self.healthy
        return [
            f"{name} in {state or 'the head'}{' after a write' if now is seen[1] else ''}"
            for now, states in ((seen[0], [before]), (seen[1], [before, after]))
            for state in STATES
            for name in READ
            if now[state][name] not in (None, *(there[state][name] for there in states))
        ]

    def close(self):
        self.cow.close()
        if self.native is not None:
            self.native.close()


def share(given):
    """The same by several processes, each with its part."""
    words = [sys.executable, __file__, "--jobs", "1", "--seed", str(given.seed), "--count", str(given.count or 150)]
    for option in ("build", "keep"):
        if getattr(given, option) is not None:
            words += [f"--{option}", getattr(given, option)]
    words += ["--all"] if given.all else []
    words += ["--minutes", str(given.minutes)] if given.minutes else []
    first, parts = map(int, given.part.split("/")) if given.part else (0, 1)
    shares = [f"{first + parts * n}/{parts * given.jobs}" for n in range(given.jobs)]
    with tempfile.NamedTemporaryFile("r", prefix="h5cow-hostile-") as told:
        env = {**os.environ, "H5COW_HOSTILE_TOLD": told.name}
        processes = [subprocess.Popen([*words, "--part", share], env=env) for share in shares]
        status = max(abs(process.wait()) for process in processes)
        parts = [json.loads(line) for line in told]
    if len(parts) == len(processes):
        tell(given, {**{key: sum(part[key] for part in parts) for key in parts[0]}, "cases": parts[0]["cases"]})
    return status


def tell(given, seen):
    """A line of docs/reliability.md, or the part of one."""
    if "H5COW_HOSTILE_TOLD" in os.environ:
        with open(os.environ["H5COW_HOSTILE_TOLD"], "a") as f:
            f.write(json.dumps(seen) + "\n")
        return
    checked = " with AddressSanitizer and UndefinedBehaviorSanitizer" if seen["asan"] else ""
    command = "test/hostile.py " + ("--all" if given.all else f"--count {given.count or 150}") + f" --seed {given.seed}"
    command += f" --minutes {given.minutes:g}" if given.minutes else ""
    results(
        11,
        f"files in which stock h5py replaced an attribute, a table, a row, a name, a link or an object below "
        f"/_versioned_data; each opened, listed, read at three states, written, verified, exported, copied, imported and "
        f"recovered{checked}, within {MEMORY >> 30} GiB and {CPU} s of computing",
        f"{seen['files']:,} of {seen['cases']:,} files: "
        f"{seen['crash']} crashes, {seen['hang']} hangs, {seen['limit']} limits hit, wrong data {seen['wrong']} times, {seen['other']} other failures; "
        f"{seen['natively']} failures that HDF5 has without h5cow; {seen['not made']} that HDF5 does not make",
        command + (" --build build/sanitize" if seen["asan"] else ""),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--count", type=int, help="so many (default 150, or all that --only names)")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    parser.add_argument("--only", action="append", help="cases with this in their names; several times")
    parser.add_argument("--build", help="build folder (default: the one in use); sanitize: with AddressSanitizer")
    parser.add_argument("--keep", help="copy the files here")
    parser.add_argument("--list", action="store_true", help="names of all cases")
    parser.add_argument("--minutes", type=float, help="begin no file after so long: the seed says in which order they come")
    parser.add_argument("--part", help="I/N: of all cases each Nth, from I on")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default 2)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--asan", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        return serve(given.asan)
    if given.jobs > 1 and not given.list and not given.only:
        return share(given)
    sys.path.insert(0, str(TEST))
    from conftest import BUILD

    build = pathlib.Path(given.build).resolve() if given.build else BUILD
    linked = subprocess.run(["ldd", build / "connector/libh5cow.so"], capture_output=True, text=True).stdout
    library = re.search(r"=> (\S*libasan\S*)", linked)
    with tempfile.TemporaryDirectory(prefix="h5cow-hostile-") as folder:
        run = Run(folder, build / "cli/h5cow", str(build / "connector"), library is not None, library and library[1])
        run.make_base()
        cases = run.cases = Cases(run.base, run.gap)
        names = [name for name in cases.all if not given.only or any(part in name for part in given.only if (AND in part) == (AND in name))]
        if given.list:
            print("\n".join(names))
            return 0
        run.look_at_healthy()
        random.Random(given.seed).shuffle(names)
        if not given.all and (given.count is not None or not given.only):
            names = names[: given.count or 150]
        if given.part:
            first, parts = map(int, given.part.split("/"))
            names = names[first::parts]
        print(f"seed {given.seed}: {len(names)} of {len(cases.all)} hostile files", flush=True)
        not_made, end = [], time.monotonic() + 60 * given.minutes if given.minutes else None
        for done, name in enumerate(names):
            if end is not None and time.monotonic() > end:
                names = names[:done]
                break
            if (text := run.one(name, cases.all[name], given.keep)) is not None:
                not_made.append(text)
            if done % 200 == 199:
                print(f"{done + 1} files", flush=True)
        run.close()
    for text in not_made:
        print(f"stock HDF5 does not make it: {text}")
    print(f"{len(names) - len(not_made)} hostile files, {len(not_made)} could not be made; {len(run.natively)} failures that "
          f"HDF5 has without h5cow, {len(run.problems)} others; longest {run.worst[0]:.1f} s ({run.worst[1]})")
    kinds = {kind: run.problems.count(kind) for kind in KINDS}
    tell(given, {"cases": len(cases.all), "files": len(names) - len(not_made), "natively": len(run.natively),
                 "not made": len(not_made), "asan": run.asan, **kinds})
    return 1 if run.problems or len(not_made) > len(names) // 10 else 0


if __name__ == "__main__":
    sys.exit(main())
