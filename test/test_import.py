"""h5cow import and the option adopt: a plain file gets a history, and nothing of it is lost.

What the import itself compares is not asked here: h5ls, h5dump, h5diff and h5py look at both files.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
from conftest import H5COW
from waiting import WAITING


def library():
    """The libhdf5 that h5py uses, for what h5py has no call for."""
    h5py.h5.get_libversion()
    with open("/proc/self/maps") as maps:
        path = next(line.split()[-1] for line in maps if re.search(r"/libhdf5(_serial)?\.so", line))
    lib = ctypes.CDLL(path)
    lib.H5Oget_comment.restype = ctypes.c_ssize_t
    for name in ("H5Oopen_by_addr", "H5Pcreate", "H5Screate_simple", "H5Dcreate2", "H5Acreate2", "H5Oopen"):
        getattr(lib, name).restype = ctypes.c_int64
    return lib


def hid(number):
    return ctypes.c_int64(number)


class LinkClass(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int), ("id", ctypes.c_int), ("comment", ctypes.c_char_p)] + [
        (name, ctypes.c_void_p) for name in ("create", "move", "copy", "traverse", "delete", "query")
    ]


def add_user_defined_link(file, name, value):
    lib = library()
    callback = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: -1)
    kind = LinkClass(1, 187, b"test", None, None, None, ctypes.cast(callback, ctypes.c_void_p), None, None)
    assert lib.H5Lregister(ctypes.byref(kind)) >= 0
    assert lib.H5Lcreate_ud(hid(file.id.id), name, 187, value, ctypes.c_size_t(len(value)), hid(0), hid(0)) >= 0
    assert lib.H5Lunregister(187) >= 0


def add_new_references(file, targets):
    """A dataset of H5T_STD_REF: objects, a region, an attribute, nothing."""
    lib = library()
    std_ref = ctypes.c_int64.in_dll(lib, "H5T_STD_REF_g")
    refs = (ctypes.c_uint8 * 64 * 5)()
    dims = (ctypes.c_uint64 * 1)(5)
    space = hid(lib.H5Screate_simple(1, dims, None))
    dataset = hid(lib.H5Dcreate2(hid(file.id.id), b"new references", std_ref, space, hid(0), hid(0), hid(0)))
    at = [ctypes.byref(refs, 64 * i) for i in range(5)]
    assert lib.H5Rcreate_object(hid(file.id.id), targets[0], hid(0), at[0]) >= 0
    assert lib.H5Rcreate_object(hid(file.id.id), targets[1], hid(0), at[1]) >= 0
    region = file[targets[0].decode()].id.get_space()
    region.select_hyperslab((3, 1), (4, 2))
    assert lib.H5Rcreate_region(hid(file.id.id), targets[0], hid(region.id), hid(0), at[2]) >= 0
    assert lib.H5Rcreate_attr(hid(file.id.id), targets[0], b"units", hid(0), at[3]) >= 0
    assert lib.H5Dwrite(dataset, std_ref, hid(0), hid(0), hid(0), refs) >= 0
    for i in range(4):
        lib.H5Rdestroy(at[i])
    lib.H5Dclose(dataset)
    lib.H5Sclose(space)


def created(path, libver=None, shared=0, **more):
    """A new file, which keeps what SHARED says (H5O_SHMESG_*_FLAG) once for all objects; h5py does not know of that."""
    if not shared:
        return h5py.File(path, "w", libver=libver, **more)
    lists = [h5py.h5p.create(kind) for kind in (h5py.h5p.FILE_CREATE, h5py.h5p.FILE_ACCESS)]
    lists[1].set_libver_bounds(h5py.h5f.LIBVER_LATEST if libver else h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_LATEST)
    assert library().H5Pset_shared_mesg_nindexes(hid(lists[0].id), 1) >= 0
    assert library().H5Pset_shared_mesg_index(hid(lists[0].id), 0, shared, 8) >= 0
    return h5py.File(h5py.h5f.create(os.fsencode(path), h5py.h5f.ACC_TRUNC, *lists))


def make(path, libver=None, **more):
    """A file with everything that HDF5 has."""
    with created(path, libver, **more) as f:
        f.attrs["title"] = "all kinds"
        f.attrs["b first"] = np.arange(5)
        f.attrs["a second"] = 1.5
        g = f.create_group("ordered", track_order=True)
        for name in ("z", "a", "m", "b"):
            g.attrs[name] = name
        d = g.create_dataset(
            "d",
            data=np.arange(100000, dtype=">i4").reshape(1000, 100),
            chunks=(100, 30),
            maxshape=(None, 100),
            compression="gzip",
            shuffle=True,
            fletcher32=True,
            fillvalue=7,
            track_times=True,
        )
        d.attrs["units"] = "K"
        g.create_group("after d")
        g["alias"] = d
        g["up"] = f["/"]  # a cycle
        f["again/and again"] = d
        f["contiguous"] = np.random.default_rng(1).random((200, 50))
        f["tiny"] = np.arange(4)
        f["soft"] = h5py.SoftLink("/ordered/d")
        f["relative"] = h5py.SoftLink("../nowhere")
        f["external"] = h5py.ExternalLink("other.h5", "/x")
        f["größe"] = h5py.SoftLink("schön")
        add_user_defined_link(f, b"user defined", b"\1\0binary\0")
        f["named"] = np.dtype([("a", "i4"), ("b", "f8", (2, 3)), ("s", "S5")])
        f["named"].attrs["about"] = "a type"
        typed = f.create_dataset("typed", shape=(3000,), dtype=f["named"], chunks=(500,))
        typed[10:2000] = np.ones(1990, dtype=typed.dtype)
        f.attrs.create("of named type", np.zeros(2, dtype=typed.dtype), dtype=f["named"])
        f["a type that goes"] = np.dtype([("q", "u1"), ("r", "f4")])
        f.create_dataset("anonymous type", data=np.zeros(2000, dtype="u1")).attrs.create(
            "x", np.zeros(1, dtype=[("q", "u1"), ("r", "f4")])[0], dtype=f["a type that goes"]
        )
        del f["a type that goes"]
        strings = f.create_dataset("strings", shape=(1000,), dtype=h5py.string_dtype(), chunks=(100,), fillvalue="none")
        strings[::2] = "hällo"
        refs = f.create_dataset("references", shape=(2000,), dtype=h5py.ref_dtype, chunks=(500,))
        refs[0], refs[1], refs[2], refs[1999] = f["contiguous"].ref, g.ref, f.ref, f["named"].ref
        f.create_dataset("regions", shape=(10,), dtype=h5py.regionref_dtype)[3] = f["contiguous"].regionref[2:5, ::3]
        f.attrs["reference"] = d.ref
        f.attrs["region"] = d.regionref[1:4, 2:3]
        f["in compound"] = np.array([(1, d.ref)], dtype=[("n", "i4"), ("r", h5py.ref_dtype)])
        sequences = f.create_dataset("sequences", shape=(50,), dtype=h5py.vlen_dtype(h5py.ref_dtype))
        sequences[3] = np.array([d.ref, f.ref], dtype=h5py.ref_dtype)
        add_new_references(f, [b"contiguous", b"ordered"])
        h5py.h5o.set_comment(f.id, b"comment of the root")
        h5py.h5o.set_comment(d.id, b"comment of d")
        f.create_dataset("null", data=h5py.Empty("f4"))
        f.create_dataset("scalar", data=3.5)
        f.create_dataset("no elements", shape=(0, 5), maxshape=(None, 5), chunks=(10, 5))
        f.create_dataset("sparse", shape=(10**12,), maxshape=(None,), chunks=(1000,), dtype="i8")[5] = 6
        f.create_dataset("never written", shape=(500, 500), dtype="f8", fillvalue=-1)
        f.create_dataset("elsewhere", shape=(100,), dtype="i4", external=[("elsewhere.raw", 0, 400)])[...] = 3
        layout = h5py.VirtualLayout(shape=(200, 50), dtype="f8")
        layout[...] = h5py.VirtualSource(f["contiguous"])
        f.create_virtual_dataset("virtual", layout)
        f.create_dataset("lzf", data=np.zeros((300, 300)), chunks=(64, 64), compression="lzf")
        f["enum"] = np.zeros(3000, dtype=h5py.enum_dtype({"RED": 0, "GREEN": 1}))
        f["opaque"] = np.zeros(3000, dtype=np.dtype("V7"))
        many = f.create_group("many")
        for i in range(40):
            d.attrs[f"attribute {i}"] = i
            many[f"link {i}"] = h5py.SoftLink(f"/{i}")
        if libver == "latest":
            d.attrs["large"] = np.arange(20000)
    if more.get("userblock_size"):
        with open(path, "r+b") as f:
            f.write(b"#!/bin/sh\nthe user's block")


def listing(command, path, programs, connector=False):
    run = programs.connector if connector else programs.stock
    done = run(*command, path)
    text = done.stdout.replace(str(path), "FILE")
    text = re.sub(r'(DATASET|DATATYPE|GROUP) +[^\n]*FILE', r"\1 FILE", text)
    text = re.sub(r"Location: .*|shared-\d+:\d+|Opened .*|(lzf|method)-32000|DATASET \d+|@ *\d+", "", text)
    return re.sub(r"[^\n]*#[0-9]+[^\n]*\n", "", text)


def meaning(path):
    """What h5py sees, references by the names of what they lead to."""
    with h5py.File(path, "r") as f:
        names, seen = {}, []

        def key(o):
            return h5py.h5o.get_info(o.id).addr

        def walk(group, prefix):
            for name in group:
                if group.id.links.get_info(name.encode()).type > h5py.h5l.TYPE_EXTERNAL:
                    seen.append((prefix + name, "user-defined"))
                    continue
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    seen.append((prefix + name, repr(vars(group.get(name, getlink=True)))))
                    continue
                o = group[name]
                new = key(o) not in names
                names.setdefault(key(o), prefix + name)
                seen.append((prefix + name, names[key(o)]))
                if new and isinstance(o, h5py.Group):
                    walk(o, prefix + name + "/")

        names[key(f)] = "/"
        walk(f, "/")

        def said(value):
            if isinstance(value, h5py.RegionReference):
                return ("region", names[key(f[value])], f[value][value].tolist()) if value else None
            if isinstance(value, h5py.Reference):
                return names[key(f[value])] if value else None
            if isinstance(value, np.ndarray) and value.dtype.kind == "O":
                return [said(v) for v in value.ravel()]
            if isinstance(value, np.ndarray) and value.dtype.names:
                return [said(v) for v in value]
            if isinstance(value, np.void) and value.dtype.names:
                return [said(v) for v in value]
            return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else repr(value)

        for name in sorted(set(names.values())):
            o = f[name]
            comment = ctypes.create_string_buffer(100)
            library().H5Oget_comment(hid(o.id.id), comment, ctypes.c_size_t(100))
            seen.append((name, comment.value, [(n, said(o.attrs[n])) for n in o.attrs]))
            if name in ("/references", "/regions", "/in compound", "/sequences", "/strings", "/typed"):
                seen.append((name, said(o[()])))
            if isinstance(o, h5py.Dataset) and o.id.get_create_plist().get_layout() != h5py.h5d.VIRTUAL:
                p = o.id.get_create_plist()
                seen.append((name, o.shape, o.maxshape, o.chunks, p.get_layout(),
                             [p.get_filter(i) for i in range(p.get_nfilters())], p.get_alloc_time(), p.get_fill_time()))
        return seen


MEANING = "import sys; sys.path.insert(0, {!r}); import test_import; print(*test_import.meaning(sys.argv[1]), sep='\\n')"


def differences(a, b):
    """The first ones: pytest would compare long texts for minutes."""
    a, b = (text.splitlines() if isinstance(text, str) else [str(line) for line in text] for text in (a, b))
    return [(x, y) for x, y in zip(a, b) if x != y][:3] or a[len(b) : len(b) + 3] or b[len(a) : len(a) + 3]


def seen_through(programs, path):
    done = programs.connector(sys.executable, "-c", MEANING.format(os.path.dirname(__file__)), path)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# What h5diff would read for hours, cannot read, or (references) what h5py has compared.
LEFT_OUT = [
    word for name in ("sparse", "virtual", "lzf", "external", "references") for word in ("--exclude-path", "/" + name)
]


def same(programs, plain, versioned):
    assert not differences(meaning(plain), seen_through(programs, versioned))
    for command in (["h5ls", "-rv"], ["h5dump", "-A"]):
        assert not differences(listing(command, plain, programs), listing(command, versioned, programs, True))
    done = programs.connector("h5diff", *LEFT_OUT, plain, versioned)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize("libver,more", [(None, {}), ("latest", {"userblock_size": 1024, "track_order": True}),
                                         (None, {"track_order": True, "fs_strategy": "page", "fs_page_size": 8192}),
                                         ("latest", {"shared": 0x03}), (None, {"shared": 0x1F})])
def test_everything_comes_along(programs, tmp_path, monkeypatch, libver, more):
    monkeypatch.chdir(tmp_path)
    make("plain.h5", libver, **more)
    time.sleep(1.1)  # an object made by the import would be younger
    before = open("plain.h5", "rb").read()
    raw = os.stat("elsewhere.raw")
    done = programs.cow("import", "plain.h5", "new.h5")
    assert done.returncode == 0, done.stderr
    assert open("plain.h5", "rb").read() == before
    assert (os.stat("elsewhere.raw").st_mtime_ns, os.path.getsize("elsewhere.raw")) == (raw.st_mtime_ns, 400)
    assert "external storage" in done.stderr and "virtual dataset" in done.stderr
    same(programs, "plain.h5", "new.h5")
    programs.verified("new.h5")
    assert "imported from plain.h5" in programs.cow("log", "new.h5").stdout
    assert open("new.h5", "rb").read(100)[: more.get("userblock_size", 0)] == before[: min(100, more.get("userblock_size", 0))]
    # version 1 is that state, also after the head changed
    shutil.copy("new.h5", "kept.h5")
    done = programs.python("f = h5py.File('new.h5', 'r+'); del f['ordered/d']; f['contiguous'][0] = 1; f['again/n'] = 1; f.close()")
    assert done.returncode == 0, done.stderr
    programs.verified("new.h5")
    done = programs.connector("h5diff", *LEFT_OUT, "plain.h5", "new.h5@1")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    done = programs.cow("export", "new.h5@1", "exported.h5")
    assert done.returncode == 0, done.stderr
    assert not differences(meaning("plain.h5"), meaning("exported.h5"))


def test_extents_without_a_maximum_come_along(programs, tmp_path, monkeypatch):
    """HDF5 1.8 and older left it out where it is the extent, and such files are still about."""
    monkeypatch.chdir(tmp_path)
    with h5py.File("plain.h5", "w", libver=("earliest", "v108")) as f:
        f["d"] = np.arange(1234).reshape(2, 617)
        f["d"].attrs["a"] = np.arange(4321)
        f.create_dataset("c", data=np.arange(2341), chunks=(100,), compression="gzip")
        f["r"] = np.array([f["d"].regionref[1:, 5:9]], dtype=h5py.regionref_dtype)
    content = pathlib.Path("plain.h5").read_bytes()
    for shape in [(2, 617), (4321,), (2341,), (1,)]:
        numbers = b"".join(n.to_bytes(8, "little") for n in shape)
        head = bytes([1, len(shape)])
        old, new = (head + bytes([maximum]) + bytes(5) + numbers for maximum in (1, 0))
        assert old + numbers in content
        content = content.replace(old + numbers, new + bytes(len(numbers)))
    pathlib.Path("plain.h5").write_bytes(content)
    with h5py.File("plain.h5", "r") as f:
        assert f["d"].maxshape == (2, 617) and f["d"].attrs["a"][4320] == 4320 and f["c"][2340] == 2340
    done = programs.cow("import", "plain.h5", "out.h5")
    assert done.returncode == 0, done.stderr
    programs.verified("out.h5")
    same(programs, "plain.h5", "out.h5")
    # and where a program goes on with such a dataspace, nothing changes by itself
    for n in range(2):
        done = programs.python("""
            with h5py.File("plain.h5") as old, h5py.File("out.h5", "r+") as f:
                space = h5py.h5a.open(old["d"].id, b"a").get_space()
                if "b" not in f["d"].attrs:
                    h5py.h5a.create(f["d"].id, b"b", h5py.h5t.STD_I64LE, space).write(np.arange(4321))
                    h5py.h5d.create(f.id, b"small", h5py.h5t.STD_I64LE, h5py.h5a.open(f["d"].id, b"b").get_space())
                else:
                    f["d"].attrs["b"]
        """)
        assert done.returncode == 0, done.stderr
    assert len(json.loads(programs.cow("log", "--json", "out.h5").stdout)) == 2
    programs.verified("out.h5")


@pytest.mark.parametrize("sources", [True, False])
@pytest.mark.parametrize("out", [None, "out.h5", "elsewhere/out.h5"])
def test_virtual_datasets_that_grow_with_their_sources_come_along(programs, tmp_path, monkeypatch, sources, out):
    """They are as large as the sources that are found, which may be others for the copy."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in/deep").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    unlimited = h5py.h5s.UNLIMITED
    with h5py.File("in/plain.h5", "w", libver="latest") as f:
        for name, file, step in (("many", b"s-%b.h5", 5), ("one", b"s-0.h5", 1)):
            p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            whole = h5py.h5s.create_simple((5, 3), (unlimited, 3))
            whole.select_hyperslab((0, 0), (unlimited, 1), (step, 1), (step, 3))
            source = h5py.h5s.create_simple((5, 3), (unlimited, 3))
            if step == 1:
                source.select_hyperslab((0, 0), (unlimited, 1), (1, 1), (1, 3))
            p.set_virtual(whole, file, b"d", source)
            space = h5py.h5s.create_simple((5, 3), (unlimited, 3))
            h5py.h5d.create(f.id, name.encode(), h5py.h5t.STD_I32LE, space, p)
    for n in range(2 if sources else 0):
        with h5py.File(f"in/s-{n}.h5", "w") as f:
            f.create_dataset("d", data=np.full((5, 3), n, "i4"), maxshape=(None, 3))
    with h5py.File("in/plain.h5") as f:
        shapes = (f["many"].shape, f["one"].shape)
        assert shapes == (((10, 3), (5, 3)) if sources else ((0, 3), (0, 3)))
    done = programs.cow("import", "in/plain.h5", *filter(None, [out]))
    assert done.returncode == 0, done.stderr
    new = out or "in/plain.h5"
    programs.verified(new)
    seen = programs.python("with h5py.File(sys.argv[1]) as f: print((f['many'].shape, f['one'].shape))", new).stdout
    assert seen.strip() == str(shapes if out is None else ((0, 3), (0, 3)))


def test_new_references_lead_to_the_new_objects(programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make("plain.h5")
    assert programs.cow("import", "plain.h5").returncode == 0
    os.rename("plain.h5", "elsewhere.h5")  # what still led to the old file would lead to nothing
    done = programs.connector("h5dump", "-d", "/new references", "elsewhere.h5")
    assert done.returncode == 0, done.stderr
    for word in ("GROUP", "contiguous", "ordered", "units", "NULL"):
        assert word in done.stdout, done.stdout


@pytest.mark.parametrize("there", [True, False])
def test_references_into_other_files_come_along(programs, tmp_path, monkeypatch, there):
    """Of HDF5 1.12, which know their file by its name; it may be gone."""
    monkeypatch.chdir(tmp_path)
    lib = library()
    std_ref = ctypes.c_int64.in_dll(lib, "H5T_STD_REF_g")
    refs = (ctypes.c_uint8 * 64 * 3)()
    at = [ctypes.byref(refs, 64 * i) for i in range(3)]
    space = hid(lib.H5Screate_simple(1, (ctypes.c_uint64 * 1)(3), None))
    with h5py.File("other.h5", "w") as other, h5py.File("plain.h5", "w", libver="latest") as f:
        other["x"] = np.arange(100)
        other["x"].attrs["units"] = "K"
        f["own"] = np.arange(10)
        assert lib.H5Rcreate_object(hid(other.id.id), b"x", hid(0), at[0]) >= 0
        assert lib.H5Rcreate_attr(hid(other.id.id), b"x", b"units", hid(0), at[1]) >= 0
        assert lib.H5Rcreate_object(hid(f.id.id), b"own", hid(0), at[2]) >= 0
        dataset = hid(lib.H5Dcreate2(hid(f.id.id), b"refs", std_ref, space, hid(0), hid(0), hid(0)))
        attribute = hid(lib.H5Acreate2(hid(f.id.id), b"refs", std_ref, space, hid(0), hid(0)))
        assert lib.H5Dwrite(dataset, std_ref, hid(0), hid(0), hid(0), refs) >= 0
        assert lib.H5Awrite(attribute, std_ref, refs) >= 0
        for reference in at:
            lib.H5Rdestroy(reference)
        lib.H5Aclose(attribute)
        lib.H5Dclose(dataset)
        lib.H5Sclose(space)
    if not there:
        os.rename("other.h5", "elsewhere.h5")

    def dumped(path, run=programs.stock):
        done = run("h5dump", path)
        return done.returncode, re.sub(r"(DATASET|ATTRIBUTE) \d+", r"\1", done.stdout.replace(path, "FILE"))

    assert dumped("plain.h5")[1].count("other.h5/") == (4 if there else 2)
    for words in (["import", "plain.h5", "out.h5"], ["export", "out.h5", "again.h5"]):
        done = programs.cow(*words)
        assert done.returncode == 0 and done.stderr == "", done.stderr
    programs.verified("out.h5")
    assert dumped("again.h5") == dumped("plain.h5")
    assert dumped("out.h5", programs.connector) == dumped("plain.h5")


@pytest.mark.parametrize("when", [h5py.h5d.ALLOC_TIME_EARLY, h5py.h5d.ALLOC_TIME_LATE])
def test_chunks_stored_without_their_filter_stay_so_where_fill_values_are_as_long(programs, tmp_path, monkeypatch, when):
    """11 zeros are 11 bytes, deflated: such a chunk is there before the one that is copied."""
    monkeypatch.chdir(tmp_path)
    text = [b"abcdefghijk", b"lmnopqrstuv", b"wxyzABCDEFG"]
    with h5py.File("plain.h5", "w") as f:
        kind = h5py.h5t.py_create(np.dtype("S11"))
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((1,))
        dcpl.set_deflate(6)
        dcpl.set_alloc_time(when)
        dcpl.set_fill_time(h5py.h5d.FILL_TIME_ALLOC)
        for name, most in (b"fixed", 3), (b"growing", h5py.h5s.UNLIMITED):
            d = h5py.h5d.create(f.id, name, kind, h5py.h5s.create_simple((3,), (most,)), dcpl)
            d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array(text[::-1]), kind)
            d.flush()
            for i, value in enumerate(text):
                d.write_direct_chunk((i,), value, 1)
    for words in (
        ["import", "plain.h5", "out.h5"],
        ["export", "out.h5", "again.h5"],
        ["recover", "out.h5", "recovered.h5"],
        ["gc", "--compact", "out.h5"],
    ):
        done = programs.cow(*words)
        assert done.returncode == 0 and done.stderr == "", done.stderr
    with h5py.File("again.h5") as f:
        assert [list(f[name]) for name in ("fixed", "growing")] == [text, text]
        assert f["fixed"].id.get_chunk_info(0).filter_mask == 1
    for name in "out.h5", "recovered.h5":
        programs.verified(name)
        for path in name, name + "@1":
            done = programs.python(f"f = h5py.File('{path}', 'r'); print([list(f[name]) for name in ('fixed', 'growing')])")
            assert done.stdout.count("abcdefghijk") == 2 and done.stdout.count("wxyzABCDEFG") == 2, done.stderr


def test_chunks_are_moved_without_decoding(programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File("plain.h5", "w") as f:
        d = f.create_dataset("d", shape=(100, 100), chunks=(10, 100), dtype="i4", compression="gzip", compression_opts=9)
        d[...] = np.arange(10000).reshape(100, 100)
        d.id.write_direct_chunk((20, 0), bytes(4000), 1)  # stored without its filter
        chunks = [d.id.read_direct_chunk((i, 0)) for i in range(0, 100, 10)]
    assert programs.cow("import", "plain.h5").returncode == 0
    done = programs.python("""
        d = h5py.File('plain.h5', 'r')['d']
        print([d.id.read_direct_chunk((i, 0)) for i in range(0, 100, 10)])
    """)
    assert done.stdout.strip() == str(chunks)


@pytest.mark.parametrize("kind", ["plain", "gzip", "text", "sparse"])
@pytest.mark.parametrize(
    "shape, most, chunk",
    [
        ((6, 8), (6, None), (2, 3)),
        ((4, 5, 9), (4, 5, None), (2, 2, 2)),
        ((4, 9, 5), (4, None, 5), (2, 2, 2)),
        ((5, 40), (50, None), (2, 3)),
        ((9, 5), (None, 5), (2, 2)),
        ((9, 5), (None, None), (2, 2)),
        ((9, 5), (10, 5), (2, 2)),
    ],
)
def test_chunks_of_every_index_come_along(programs, tmp_path, monkeypatch, kind, shape, most, chunk):
    """HDF5 1.14.5 lists those of an extensible array at wrong places, unless its first dimension is the unlimited one."""
    monkeypatch.chdir(tmp_path)
    want = np.arange(1, 1 + np.prod(shape)).reshape(shape)
    more = {"dtype": h5py.string_dtype() if kind == "text" else "i4", "compression": "gzip" if kind == "gzip" else None}
    with h5py.File("plain.h5", "w", libver="latest") as f:
        d = f.create_dataset("d", shape=shape, maxshape=most, chunks=chunk, **more)
        if kind == "sparse":
            want[tuple(slice(n // 2, None) for n in shape)] = 0
            for i in np.ndindex(*(-(-n // c) for n, c in zip(shape, chunk))):
                where = tuple(slice(a * c, a * c + c) for a, c in zip(i, chunk))
                if want[where].any():
                    d[where] = want[where]
        else:
            d[...] = want.astype(str) if kind == "text" else want
        stored = d.id.get_num_chunks()
    if kind == "text":
        want = want.astype(str).astype("S")
    assert programs.cow("import", "plain.h5", "history.h5").returncode == 0
    assert programs.cow("export", "history.h5@1", "again.h5").returncode == 0
    code = "import h5py; d = h5py.File('history.h5', 'r')['d']; print(d.id.get_num_chunks())"
    done = programs.connector(sys.executable, "-c", code)
    assert int(done.stdout) == stored, done.stderr
    for name in ("plain.h5", "history.h5", "again.h5"):
        with h5py.File(name, "r") as f:
            assert np.array_equal(f["d"][...].astype(want.dtype), want), name
    with h5py.File("again.h5", "r") as f:
        assert f["d"].id.get_num_chunks() == stored


def test_chunks_larger_than_the_maximum_come_along(programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File("plain.h5", "w") as f:  # HDF5 allows them while the extent is 0
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((16,))
        space = h5py.h5s.create_simple((0,), (4,))
        d = h5py.Dataset(h5py.h5d.create(f.id, b"d", h5py.h5t.NATIVE_INT32, space, dcpl))
        d.resize((3,))
        d[...] = [1, 2, 3]
    assert programs.cow("import", "plain.h5", "history.h5").returncode == 0
    assert programs.cow("export", "history.h5@1", "again.h5").returncode == 0
    with h5py.File("again.h5", "r") as f:
        assert f["d"].chunks == (16,) and f["d"].maxshape == (4,) and list(f["d"]) == [1, 2, 3]


def test_in_place_keeps_permissions_times_and_symbolic_links(programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("store")
    with h5py.File("store/plain.h5", "w") as f:
        f["x"] = np.arange(3000)
    os.chmod("store/plain.h5", 0o640)
    os.utime("store/plain.h5", (1_000_000_000, 1_100_000_000))
    os.link("store/plain.h5", "second.h5")
    try:
        os.setxattr("store/plain.h5", "user.note", b"mine")
        noted = True
    except OSError:
        noted = False
    os.symlink("store/plain.h5", "link.h5")
    before = os.stat("store/plain.h5")
    done = programs.cow("import", "-m", "the beginning", "--name", "start", "link.h5")
    assert done.returncode == 0, done.stderr
    after = os.stat("store/plain.h5")
    assert os.path.islink("link.h5")
    assert "1 other name " in done.stderr
    assert (after.st_mode, after.st_uid, after.st_gid, after.st_mtime) == (
        before.st_mode, before.st_uid, before.st_gid, before.st_mtime)
    if noted:
        assert os.getxattr("store/plain.h5", "user.note") == b"mine"
    assert sorted(os.listdir("store")) == ["plain.h5"]
    assert re.search(r"^start .*the beginning", programs.cow("log", "store/plain.h5").stdout, re.M)
    assert programs.cow("log", "second.h5").returncode == 2  # as it was


def refused(programs, sha256, words, *arguments, names=("plain.h5",), **more):
    before = {name: sha256(name) for name in names}
    folder = sorted(os.listdir())
    done = programs.cow("import", *arguments, **more)
    assert done.returncode == 2 and done.stdout == "", done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1 and words in done.stderr, done.stderr
    assert {name: sha256(name) for name in names} == before
    assert sorted(os.listdir()) == folder


def test_what_cannot_be_imported_is_refused_and_nothing_changes(programs, tmp_path, monkeypatch, sha256):
    monkeypatch.chdir(tmp_path)
    with h5py.File("plain.h5", "w") as f:
        f["x"] = np.arange(3000)
        f["y"] = np.arange(3000)
    shutil.copy("plain.h5", "other.h5")
    refused(programs, sha256, "exists", "plain.h5", "other.h5", names=("plain.h5", "other.h5"))
    refused(programs, sha256, "No such file", "nothing.h5")
    with open("text", "w") as f:
        f.write("no HDF5" * 100)
    refused(programs, sha256, "not an HDF5 file", "text", names=("text",))
    refused(programs, sha256, "directory", ".", names=("plain.h5",))
    refused(programs, sha256, "cannot create", "plain.h5", "no folder/out.h5")
    # open elsewhere: for writing, for reading
    for mode in ("r+", "r"):
        holder = subprocess.Popen(
            [sys.executable, "-c", f"import h5py, sys; f = h5py.File('plain.h5', {mode!r}); print(flush=True); sys.stdin.read()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={k: v for k, v in os.environ.items() if not k.startswith("HDF5_")})
        holder.stdout.readline()
        words = "open for writing in another program" if mode == "r+" else "open in another program"
        refused(programs, sha256, words, "plain.h5")
        holder.communicate(b"")
    # the name that h5cow needs
    with h5py.File("plain.h5", "r+") as f:
        f["_versioned_data/mine"] = 1
    refused(programs, sha256, "_versioned_data", "plain.h5")
    with h5py.File("plain.h5", "r+") as f:
        del f["_versioned_data"]
    # a history
    assert programs.cow("import", "other.h5").returncode == 0
    refused(programs, sha256, "has a history already", "other.h5", names=("other.h5",))
    refused(programs, sha256, "has a history already", "other.h5", "out.h5", names=("other.h5",))
    assert programs.stock("h5repack", "other.h5", "repacked.h5").returncode == 0
    refused(programs, sha256, "would lose that history", "repacked.h5", names=("repacked.h5",))
    done = programs.cow("import", "repacked.h5", "again.h5")
    assert done.returncode == 0 and "older versions" in done.stderr
    programs.verified("again.h5")
    assert programs.connector("h5diff", "plain.h5", "again.h5").returncode == 0
    # references to objects that have no link
    with h5py.File("lost.h5", "w") as f:
        d = f.create_dataset("d", data=np.arange(10))
        library().H5Oincr_refcount(hid(d.id.id))
        f.attrs["r"] = d.ref
        del f["d"]
    refused(programs, sha256, "no link leads to", "lost.h5", names=("lost.h5",))


def test_damaged_files_are_refused_or_imported_as_they_can_be_read(programs, tmp_path, monkeypatch, sha256):
    monkeypatch.chdir(tmp_path)
    with h5py.File("good.h5", "w", libver="latest") as f:
        for i in range(6):
            f.create_dataset(f"g{i}/d", data=np.arange(3000), chunks=(1000,), fletcher32=True).attrs["a"] = i
    good = open("good.h5", "rb").read()
    random = np.random.default_rng(7)
    outcomes = {0: 0, 2: 0}
    for round in range(40):
        bytes_ = bytearray(good)
        if round % 4 == 0:
            bytes_ = bytes_[: random.integers(len(good))]
        else:
            for at in random.integers(0, len(good), 30 if round % 2 else 3):
                bytes_[at] ^= 0xFF
        with open("plain.h5", "wb") as f:
            f.write(bytes_)
        before = sha256("plain.h5")
        done = programs.cow("import", "plain.h5", timeout=WAITING)
        outcomes[done.returncode] += 1
        assert sorted(os.listdir()) == ["good.h5", "plain.h5"]
        if done.returncode == 2:
            assert sha256("plain.h5") == before and len(done.stderr.splitlines()) == 1
        else:
            programs.verified("plain.h5")
    assert outcomes[2] >= 15, outcomes


def test_interrupted_import_changes_nothing(programs, tmp_path, monkeypatch, sha256):
    monkeypatch.chdir(tmp_path)
    with h5py.File("plain.h5", "w") as f:
        for i in range(400):
            f.create_dataset(f"d{i}", data=np.random.default_rng(i).random(3000), chunks=(100,), compression="gzip")
    before = sha256("plain.h5")
    whole = os.stat("plain.h5").st_size
    env = {k: v for k, v in os.environ.items() if not k.startswith("HDF5_")}

    def written():
        """Bytes of the file that the import writes; it may be renamed at any moment."""
        sizes = [0]
        for entry in os.scandir():
            with contextlib.suppress(FileNotFoundError):
                sizes.append(entry.stat().st_size if entry.name != "plain.h5" else 0)
        return max(sizes)

    for part in (0, 0.01, 0.2, 0.5, 0.8, 0.95):  # of what is to be written
        process = subprocess.Popen([H5COW, "import", "plain.h5"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        while process.poll() is None and written() < part * whole:
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        process.wait()
        assert os.listdir() == ["plain.h5"]
        if sha256("plain.h5") != before:  # all was done when the signal came, whatever the exit code
            programs.verified("plain.h5")
            break
        assert process.returncode != 0


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace here")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
@pytest.mark.parametrize("ignored", [True, False])
def test_signals_do_to_it_what_they_do_to_others(programs, tmp_path, monkeypatch, sha256, number, ignored):
    """Nothing, where they are ignored, as under nohup; else it ends by them, with nothing changed."""
    monkeypatch.chdir(tmp_path)
    with h5py.File("plain.h5", "w") as f:
        f["x"] = np.arange(1000)
    before = sha256("plain.h5")
    env = {k: v for k, v in os.environ.items() if not k.startswith("HDF5_")}
    done = subprocess.run(["strace", "-f", "-o", "/dev/null", "-e", f"inject=pwrite64:signal={number.value}:when=5",
                           H5COW, "import", "plain.h5"], env=env, capture_output=True, text=True, timeout=WAITING,
                          preexec_fn=lambda: signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL))
    assert os.listdir() == ["plain.h5"]
    if ignored:
        assert done.returncode == 0 and done.stderr == "", done.stderr
        programs.verified("plain.h5")
    else:
        assert done.returncode == -number, (done.returncode, done.stderr)
        assert "nothing was changed" in done.stderr and sha256("plain.h5") == before


def test_progress_is_shown_on_terminals_only(programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File("plain.h5", "w") as f:
        f.create_dataset("d", data=np.arange(2000000), chunks=(20,))
    begun = time.monotonic()
    done = programs.cow("import", "plain.h5", "a.h5")
    assert done.stderr == ""
    if time.monotonic() - begun < 3:  # what takes less than a second says nothing
        return
    done = programs.stock("script", "-qec", f"{H5COW} import plain.h5 b.h5", "/dev/null")
    assert re.search(r"(copying|checking) +\[#* *\] +\d+\.\d %", done.stdout)


# ---- adopt ----


def test_adopt_gives_a_plain_file_a_history_before_it_is_written(programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make("plain.h5")
    shutil.copy("plain.h5", "kept.h5")
    write = "f = h5py.File('plain.h5', 'r+'); f['contiguous'][0] = 5; f.close()"
    assert programs.python(write).returncode == 0  # not without the option
    assert programs.cow("log", "plain.h5").returncode == 2
    shutil.copy("kept.h5", "plain.h5")
    done = programs.python("f = h5py.File('plain.h5', 'r'); f['contiguous'][0]", options="adopt=yes")
    assert done.returncode == 0 and programs.cow("log", "plain.h5").returncode == 2  # nor for reading
    done = programs.python(write, options="adopt=yes;message=mine;name=second")
    assert done.returncode == 0, done.stderr
    log = programs.cow("log", "plain.h5").stdout
    assert re.search(r"^second .*mine$", log, re.M) and re.search(r"^1 .*as it was", log, re.M)
    programs.verified("plain.h5")
    assert sorted(os.listdir()) == ["elsewhere.raw", "kept.h5", "plain.h5"]
    done = programs.python("""
        new, old, kept = (h5py.File(name, 'r') for name in ('plain.h5', 'plain.h5@1', 'kept.h5'))
        assert (new['contiguous'][0] == 5).all() and (old['contiguous'][...] == kept['contiguous'][...]).all()
    """)
    assert done.returncode == 0, done.stderr
    assert programs.python("f = h5py.File('plain.h5', 'a'); f['more'] = 1; f.close()", options="adopt=yes").returncode == 0
    assert len(programs.cow("log", "plain.h5").stdout.splitlines()) == 4  # it happens once


def test_adopt_refuses_where_import_does(programs, tmp_path, monkeypatch, sha256):
    monkeypatch.chdir(tmp_path)
    with h5py.File("plain.h5", "w") as f:
        f["_versioned_data/mine"] = 1
    before = sha256("plain.h5")
    done = programs.python("h5py.File('plain.h5', 'r+')", options="adopt=yes")
    assert done.returncode == 1 and "adopt=yes" in done.stderr
    with h5py.File("plain.h5", "w") as f:
        f["x"] = 1
    holder = h5py.File("plain.h5", "r")
    before = sha256("plain.h5")
    assert programs.python("h5py.File('plain.h5', 'r+')", options="adopt=yes").returncode == 1
    holder.close()
    done = programs.python("f = h5py.File('plain.h5', 'r'); g = h5py.File('plain.h5', 'r+')", options="adopt=yes")
    assert done.returncode == 1
    assert sha256("plain.h5") == before and os.listdir() == ["plain.h5"]
    # a file that is not there is made, as always
    assert programs.python("h5py.File('new.h5', 'a').create_group('g')", options="adopt=yes").returncode == 0
    done = programs.python("h5py.File('missing.h5', 'r+')", options="adopt=yes")
    assert "FileNotFoundError" in done.stderr
