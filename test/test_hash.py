"""h5cow hash, against docs/hash.py, which computes the hash with h5py alone, and by what must and must not change it."""

import ctypes
import importlib.util
import json
import random
import subprocess

import h5py
import numpy as np
import pytest
from conftest import STOCK, TEST, h5cow
from seeds import again, seed

spec = importlib.util.spec_from_file_location("hash", TEST.parent / "docs/hash.py")
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

RICH = """
t = h5py.h5t
with h5py.File(sys.argv[1], 'w') as f:
    f['x'] = np.arange(6000, dtype='<i4').reshape(20, 30, 10)
    f.create_dataset('chunked', data=np.arange(300000.).reshape(300, 1000), chunks=(7, 333), maxshape=(None, 2000), compression=1)
    f['big endian'] = np.arange(100, dtype='>i8')
    f['half'] = np.array([1.5, -0.0, np.nan], '<f2')
    f['double'] = np.arange(5, dtype='>f8')
    f['long'] = np.arange(3, dtype=np.longdouble)
    f['fixed'] = np.array([b'a', b'bcd', b''])
    for name, pad in (('terminated', t.STR_NULLTERM), ('spaces', t.STR_SPACEPAD)):
        kind = t.C_S1.copy(); kind.set_size(6); kind.set_strpad(pad)
        d = h5py.h5d.create(f.id, name.encode(), kind, h5py.h5s.create_simple((2,)))
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b'ab', b'cdefg'], 'S6'), mtype=t.py_create(np.dtype('S6')))
    f.create_dataset('texts', data=['one', '', 'drei\\u00e9'], dtype=h5py.string_dtype())
    f.create_dataset('no texts', (4,), dtype=h5py.string_dtype('ascii'))
    gaps = np.dtype({'names': ['a', 'b', 'c'], 'formats': ['i1', '>f8', ('u2', (2, 3))], 'offsets': [0, 8, 20], 'itemsize': 40})
    f.create_dataset('gaps', data=np.zeros(5, gaps))
    f['gaps'][2] = (1, 2.5, np.arange(6).reshape(2, 3))
    mixed = np.dtype([('t', h5py.string_dtype()), ('n', [('x', 'i2'), ('l', h5py.vlen_dtype('i4'))])])
    d = f.create_dataset('mixed', (3,), mixed)
    d[1] = ('word', (4, np.array([1, 2, 3], 'i4')))
    d = f.create_dataset('lists', (4,), h5py.vlen_dtype('<i2'))
    d[0], d[3] = [1, 2], [3]
    f.create_dataset('choice', data=[0, 1, 7], dtype=h5py.enum_dtype({'b': 0, 'a': 1, 'c': 300}, 'i2'))
    f['truth'] = [True, False]
    f['opaque'] = np.array([b'1234567', b'abc'], 'V7')
    f['nothing'] = h5py.Empty('f4')
    f['scalar'] = 5.5
    f.create_dataset('none', (0, 7), 'i4', maxshape=(None, 7))
    f.create_dataset('unwritten', (200, 1000), 'i4', chunks=(10, 10), fillvalue=7)
    f.create_group('empty')
    f['deep/er/y'] = np.arange(10)
    f['deep/up'] = f['/']
    f['again'] = f['deep/er']
    f['type'] = np.dtype([('q', '<f4'), ('r', 'S3')])
    f['typed'] = np.zeros(2, f['type'].dtype)
    f['soft'] = h5py.SoftLink('/no/where')
    f['outside'] = h5py.ExternalLink('other.h5', '/z')
    f.create_dataset('references', (4,), h5py.ref_dtype)
    f['references'][1], f['references'][2] = f['deep/er'].ref, f['typed'].ref
    f.create_dataset('regions', (3,), h5py.regionref_dtype)
    f['regions'][0], f['regions'][1] = f['x'].regionref[2:4, 3, ::2], f['deep/er/y'].regionref[1:3]
    for o in f, f['x'], f['deep'], f['type']:
        o.attrs['one'] = np.arange(3, dtype='>u2')
        o.attrs['text'] = 'value'
        o.attrs['texts'] = ['a', 'bc']
        o.attrs['null'] = h5py.Empty('i4')
        o.attrs['to'] = f['scalar'].ref
        h5py.h5o.set_comment(o.id, b'said')
"""
MORE = """
with h5py.File(sys.argv[1], 'a') as f:
    f['chunked'][17, 400:500] = -1
    f['chunked'].resize((310, 1000))
    del f['deep/er/y'], f['soft']
    f['lists'][1] = [9] * 5
"""


@pytest.fixture(scope="module")
def rich(programs, tmp_path_factory):
    path = tmp_path_factory.mktemp("hash") / "rich.h5"
    for code in RICH, MORE:
        done = programs.python(code, path)
        assert done.returncode == 0, done.stderr
    return path


def hash_of(*words):
    return json.loads(h5cow("hash", "--json", *words))["hash"]


@pytest.mark.parametrize("version", [1, 2])
def test_the_hash_of_a_version_is_that_of_the_plain_file(rich, tmp_path, version):
    plain = tmp_path / "plain.h5"
    h5cow("export", f"{rich}@{version}", plain)
    known = reference.content_hash(plain)
    told = json.loads(h5cow("hash", "--json", "--list", f"{rich}@{version}"))
    assert {o["path"]: o["hash"] for o in told["objects"]} == dict(known.objects)
    assert told["hash"] == known.total and told["format"] == 1 and told["version"] == str(version)
    assert hash_of(plain) == known.total
    lines = h5cow("hash", "-l", f"{rich}@{version}").splitlines()
    assert lines == [f"{own}  {path}" for path, own in known.objects] + [f"{known.total}  {rich}@{version}"]


@pytest.mark.parametrize("path", ["/", "/deep", "/regions"])
def test_natively_a_file_with_history_is_its_newest_state(rich, path):
    """hash.py without the connector: the reserved group is not hashed, as h5cow hash does not see it."""
    told = json.loads(h5cow("hash", "--json", "--list", rich, path))
    known = reference.content_hash(rich, path)
    assert dict(known.objects) == {o["path"]: o["hash"] for o in told["objects"]}
    assert known.total == told["hash"]


def test_only_a_history_is_left_out(tmp_path):
    """versioned-hdf5 uses the name for itself."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["_versioned_data/x"] = 1
        f["g/_versioned_data/y"] = 1
        f["g/_versioned_data"].attrs["format"] = 1
    assert hash_of(tmp_path / "a.h5") == reference.content_hash(tmp_path / "a.h5").total
    assert "/g/_versioned_data/y" in h5cow("hash", "-l", tmp_path / "a.h5")


def test_complex_numbers(tmp_path):
    x = np.array([1 + 2j, -0.5j, np.nan])
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for kind in "<c8", ">c16":
            f[kind] = x.astype(kind)
        f["one"] = 1j
        f["pairs"] = np.zeros(3, [("n", "i2"), ("z", "c8", (2,))])
        f["pairs"].attrs["z"] = x
        f.create_dataset("lists", (2,), h5py.vlen_dtype("c16"))
        f["lists"][1] = x
    known = reference.content_hash(tmp_path / "a.h5")
    told = json.loads(h5cow("hash", "--json", "--list", tmp_path / "a.h5"))
    assert dict(known.objects) == {o["path"]: o["hash"] for o in told["objects"]}
    assert hash_of(tmp_path / "a.h5") == known.total


def with_spare_bits(path, junk):
    """Types that do not use all of their bits: what stands in these is JUNK, in each byte."""
    t = h5py.h5t

    def long_doubles(values):
        raw = np.array(values, np.longdouble).view("u1").reshape(-1, np.dtype(np.longdouble).itemsize).copy()
        raw[:, 10:] = junk
        return raw.reshape(-1).view(np.longdouble)

    with h5py.File(path, "w") as f:
        f["long"] = long_doubles([1.5, -2, np.nan])
        f["long"].attrs["a"] = long_doubles([7])
        f["complex"] = long_doubles([1, 2, 3, 4]).view("c32")
        f.create_dataset("filled", (10,), np.longdouble, fillvalue=long_doubles([3])[0])
        lists = f.create_dataset("lists", (2,), h5py.vlen_dtype(np.longdouble))
        lists[1] = long_doubles([5, 6])
        pairs = np.zeros(3, [("n", "i2"), ("x", np.longdouble, (2,))])
        raw = pairs.view("u1").reshape(3, -1)
        raw[:, 12:18] = raw[:, 28:34] = junk
        f["pairs"] = pairs
        for order in "<>":
            kind = t.STD_U16LE.copy()
            kind.set_precision(10), kind.set_offset(3), kind.set_order(t.ORDER_LE if order == "<" else t.ORDER_BE)
            d = h5py.h5d.create(f.id, f"int{order}".encode(), kind, h5py.h5s.create_simple((2,)))
            stored = np.array([5 << 3 | junk & 0xE007, 1023 << 3 | junk & 0xE007], order + "u2")
            d.write(h5py.h5s.ALL, h5py.h5s.ALL, stored, mtype=kind)
    return path


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize != 16 or np.finfo(np.longdouble).nmant != 63, reason="not the long double of x86")
def test_bits_that_no_type_uses_do_not_matter(tmp_path):
    paths = [with_spare_bits(tmp_path / f"{junk}.h5", junk) for junk in (0, 0xA5, 0xFF)]
    assert np.array_equal(*(h5py.File(path)["int>"][:] for path in paths[:2]))
    for path in paths:
        told = json.loads(h5cow("hash", "--json", "--list", path))
        known = reference.content_hash(path)
        assert dict(known.objects) == {o["path"]: o["hash"] for o in told["objects"]}
        assert told["hash"] == known.total == hash_of(paths[0])
        assert h5cow("diff", paths[0], path) == ""


def test_what_diff_takes_to_be_equal_has_other_hashes(tmp_path):
    for name, values in (("a", [0.0, np.nan]), ("b", [-0.0, -np.nan])):
        with h5py.File(tmp_path / name, "w") as f:
            f["x"] = values
    assert hash_of(tmp_path / "a") != hash_of(tmp_path / "b") and h5cow("diff", tmp_path / "a", tmp_path / "b") == ""


TOOLS = {
    "netCDF4": """
import netCDF4
with netCDF4.Dataset(sys.argv[1], 'w') as f:
    f.createDimension('time', None); f.createDimension('x', 7)
    for name in 'time', 'x':
        f.createVariable(name, 'f8', (name,))[:] = np.arange(7)
    v = f.createVariable('temp', 'f4', ('time', 'x'), zlib=True, fill_value=-1)
    v[:3] = np.arange(21).reshape(3, 7); v.units = 'K'
    f.createVariable('name', str, ('x',))[:] = np.array(list('abcdefg'), object)
""",
    "tables": """
import tables
class Row(tables.IsDescription):
    n = tables.Int32Col(); x = tables.Float64Col(shape=(2, 2)); name = tables.StringCol(5)
with tables.open_file(sys.argv[1], 'w') as f:
    t = f.create_table('/', 'table', Row, filters=tables.Filters(5, 'zlib'))
    for i in range(100):
        t.row['n'], t.row['name'] = i, 'row%d' % i; t.row.append()
    t.flush(); t.cols.n.create_index()
    a = f.create_vlarray('/g', 'lists', tables.Int16Atom(), createparents=True)
    a.append([1, 2]); a.append([3])
""",
}


@pytest.mark.parametrize("tool", TOOLS)
def test_files_of_other_programs(programs, tmp_path, tool):
    pytest.importorskip(tool)
    path, plain, packed = tmp_path / "file.h5", tmp_path / "plain.h5", tmp_path / "packed.h5"
    done = programs.python(TOOLS[tool], path)
    assert done.returncode == 0, done.stderr
    h5cow("export", path, plain)
    subprocess.run(["h5repack", "-f", "SHUF", "-f", "GZIP=9", plain, packed], env=STOCK, check=True)
    assert hash_of(path) == hash_of(plain) == hash_of(packed)
    assert hash_of(path) == reference.content_hash(plain).total


@pytest.mark.parametrize("path", ["/deep", "/x", "/type", "/references", "/regions", "/mixed"])
def test_one_object_and_what_is_below_it(rich, tmp_path, path):
    plain = tmp_path / "plain.h5"
    h5cow("export", rich, plain)
    assert h5cow("hash", rich, path) == f"{reference.content_hash(plain, path).total}  {rich} {path}\n"


def test_what_hash_py_prints(rich, tmp_path):
    plain = tmp_path / "plain.h5"
    h5cow("export", rich, plain)
    done = subprocess.run(["python3", TEST.parent / "docs/hash.py", "--list", plain], env=STOCK, capture_output=True, text=True)
    assert done.stdout == h5cow("hash", "-l", plain), done.stderr


def make(path, change=None, **how):
    """A plain file that does not differ in what it holds, whatever HOW says."""
    order, names = how.get("order", "<"), ["a", "b", "c", "d"]
    if how.get("backwards"):
        names.reverse()
    with h5py.File(path, "w", libver=how.get("libver"), track_order=how.get("track", False)) as f:
        made = {
            "a": lambda: f.create_dataset("a", data=np.arange(70000).reshape(700, 100), dtype=order + "i4", maxshape=(None, 100),
                                          chunks=how.get("chunks", True), compression=how.get("compression")),
            "b": lambda: f.create_dataset("b", data=np.linspace(0, 1, 50), dtype=order + "f8"),
            "c": lambda: f.create_dataset("c/d", data=["x", "yz"], dtype=h5py.string_dtype()),
            "d": lambda: f.create_dataset("d", data=np.zeros(3, [("q", order + "i2"), ("r", "S4")])),
        }
        for name in names:
            made[name]()
        for name in names[:2] if not how.get("backwards") else reversed(names[2:]):
            f["c"].attrs[name] = np.array([1, 2], order + "u2")
        f["c"]["link"] = h5py.SoftLink("d")
        if change is not None:
            change(f)
    return path


def test_how_it_is_stored_does_not_matter(tmp_path):
    first = hash_of(make(tmp_path / "0.h5"))
    ways = [{"order": ">"}, {"chunks": (13, 7)}, {"chunks": (700, 1), "compression": "gzip"}, {"backwards": True, "track": True},
            {"libver": "latest"}, {"order": ">", "chunks": (3, 100), "backwards": True, "libver": ("v110", "latest")}]
    for number, way in enumerate(ways):
        assert hash_of(make(tmp_path / f"{number + 1}.h5", **way)) == first, way


def test_sequences_of_either_byte_order(tmp_path):
    """h5py 3.13 writes them as they should be, and reads them in the wrong order: hash.py is no judge of these."""
    for order in "<>":
        with h5py.File(tmp_path / f"{order}.h5", "w") as f:
            d = f.create_dataset("x", (3,), h5py.vlen_dtype(order + "i2"))
            d[0], d[2] = [1, 2], [3]
    assert hash_of(tmp_path / "<.h5") == hash_of(tmp_path / ">.h5") == reference.content_hash(tmp_path / "<.h5").total


CHANGES = {
    "an element": lambda f: f["a"].__setitem__((699, 99), 5),
    "an element of the second block": lambda f: f["a"].__setitem__((656, 0), 5),
    "a text": lambda f: f["c/d"].__setitem__(1, "yZ"),
    "a member": lambda f: f["d"].__setitem__(0, (1, b"")),
    "an attribute": lambda f: f["c"].attrs.__setitem__("a", np.array([1, 3], "u2")),
    "the type of an attribute": lambda f: f["c"].attrs.create("a", [1, 2], dtype="u4"),
    "the name of an attribute": lambda f: f["c"].attrs.rename("a", "A") if hasattr(f["c"].attrs, "rename")
    else h5py.h5a.rename(f["c"].id, b"a", b"A"),
    "one attribute more": lambda f: f.attrs.__setitem__("more", 1),
    "the shape": lambda f: f["a"].resize((701, 100)),
    "the maximum": lambda f: (f.__delitem__("b"), f.create_dataset("b", data=np.linspace(0, 1, 50), maxshape=(60,))),
    "the type": lambda f: (f.__delitem__("b"), f.create_dataset("b", data=np.linspace(0, 1, 50), dtype="f4")),
    "a name": lambda f: f.move("b", "B"),
    "a link": lambda f: f["c"].__setitem__("other", h5py.SoftLink("d")),
    "where a link leads": lambda f: (f["c"].__delitem__("link"), f["c"].__setitem__("link", h5py.SoftLink("e"))),
    "a second link to one object": lambda f: f.__setitem__("e", f["b"]),
    "an empty group": lambda f: f.create_group("e"),
    "a comment": lambda f: h5py.h5o.set_comment(f["b"].id, b"new"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_the_hash_does(tmp_path, change):
    before, after = make(tmp_path / "0.h5"), make(tmp_path / "1.h5", CHANGES[change])
    assert hash_of(before) != hash_of(after)
    assert h5cow("diff", before, after, code=1) != "" or change == "a second link to one object"
    assert hash_of(after) == reference.content_hash(after).total


def test_a_copy_is_not_a_second_link(tmp_path):
    linked = make(tmp_path / "0.h5", lambda f: f.__setitem__("e", f["b"]))
    copied = make(tmp_path / "1.h5", lambda f: f.copy("b", "e"))
    assert hash_of(linked) != hash_of(copied)


def test_random_histories_the_hash_is_the_same_where_diff_finds_nothing(programs, tmp_path):
    draw = random.Random(seed())
    code = """
import random
draw, (rows, columns) = random.Random(int(sys.argv[2])), (50, 40)
with h5py.File(sys.argv[1], 'w') as f:
    f.create_dataset('a', (rows, columns), 'i4', chunks=(7, 9))
    f['t'] = np.array(['x'] * 5, dtype=object)
for _ in range(12):
    with h5py.File(sys.argv[1], 'a') as f:
        what = draw.randrange(5)
        if what < 3:
            f['a'][draw.randrange(rows), draw.randrange(columns)] = draw.randrange(2)
        elif what == 3:
            f['t'][draw.randrange(5)] = draw.choice('xy')
        else:
            f.attrs['n'] = draw.randrange(2)
"""
    path, number = tmp_path / "random.h5", draw.randrange(1 << 32)
    done = programs.python(code, path, number)
    assert done.returncode == 0, done.stderr
    names = [row["name"] for row in json.loads(h5cow("log", "--json", path))]
    known = {name: hash_of(f"{path}@{name}") for name in names}
    for a in names:
        for b in names:
            if a < b:
                same = known[a] == known[b]
                assert (h5cow("diff", f"{path}@{a}", f"@{b}", code=0 if same else 1) == "") == same, again()


def test_what_was_never_written_takes_no_time(tmp_path):
    path = tmp_path / "sparse.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("x", (1 << 50,), "f8", chunks=(1 << 20,), fillvalue=2.5)
        f.create_dataset("y", (3, 1 << 40), [("a", "i2"), ("t", h5py.string_dtype())], chunks=(1, 1 << 20))
    small = tmp_path / "small.h5"
    with h5py.File(small, "w") as f:
        f["x"] = np.full(200000, 2.5)
    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as f:
        f.create_dataset("x", (200000,), "f8", chunks=(1000,), fillvalue=2.5)
    assert len(hash_of(path)) == 64
    assert hash_of(small) == hash_of(other) == reference.content_hash(small).total


@pytest.mark.parametrize("words, sentence", [
    (["x.h5"], "no such file"),
    (["rich", "/nowhere"], "there is no such object"),
    (["rich", "nowhere"], "begins with '/'"),
    (["rich@9"], "there is no version '9'"),
    ([], "which file?"),
    (["rich", "/x", "/y"], "one object at most"),
    (["--no", "rich"], "--no"),
])
def test_wrong_usage(rich, words, sentence):
    told = h5cow("hash", *(word.replace("rich", str(rich)) for word in words), code=2)
    assert sentence in told.lower() and told.startswith("h5cow: ") and len(told.splitlines()) <= 2, told


def test_what_cannot_be_read_is_said(tmp_path):
    path = tmp_path / "torn.h5"
    with h5py.File(path, "w") as f:
        f["good"] = 1
        d = f.create_dataset("sub/torn", data=np.arange(100), chunks=(50,), fletcher32=True)
        d.id.write_direct_chunk((0,), bytes(range(101)) * 4, 0)
    told = h5cow("hash", path, code=2)
    assert "'/sub/torn'" in told and "its elements" in told and len(told.splitlines()) == 1, told


@pytest.mark.parametrize("path", ["/out", "/out/q"])
def test_an_object_of_another_file_is_not_taken_for_one_of_this(tmp_path, path):
    for name in "ab":
        with h5py.File(tmp_path / f"{name}.h5", "w") as f:
            f.create_group("g/q")
            f["g"].attrs["of"] = name
            f["out"] = h5py.ExternalLink("b.h5", "/g")
    assert "leads to another file" in h5cow("hash", tmp_path / "a.h5", path, code=2)


def test_times_of_either_byte_order(tmp_path):
    """HDF5 does not convert them, so the same bytes are other times."""
    for name, kind in (("<", h5py.h5t.UNIX_D32LE), (">", h5py.h5t.UNIX_D32BE)):
        with h5py.File(tmp_path / f"{name}.h5", "w") as f:
            h5py.h5d.create(f.id, b"x", kind, h5py.h5s.create_simple((4,)))
    assert hash_of(tmp_path / "<.h5") != hash_of(tmp_path / ">.h5")


class LinkClass(ctypes.Structure):
    FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64)
    QUERY = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)
    _fields_ = [("version", ctypes.c_int), ("id", ctypes.c_int), ("comment", ctypes.c_char_p)] + [
        (name, ctypes.c_void_p) for name in ("create", "move", "copy", "traverse", "delete", "query")
    ]


def test_links_of_a_class_of_ones_own(tmp_path):
    """The value counts, whose class only the program knows that made it; diff and ls tell it."""
    paths, values = [tmp_path / f"{n}.h5" for n in range(3)], [b"abc", b"abd", b"abc"]
    for path, value in zip(paths, values):
        with h5py.File(path, "w") as f:
            library, traverse = reference.hdf5(), LinkClass.FUNCTION(lambda: -1)
            kind = LinkClass(1, 201, b"own", None, None, None, ctypes.cast(traverse, ctypes.c_void_p), None, None)
            assert library.H5Lregister(ctypes.byref(kind)) >= 0
            made = library.H5Lcreate_ud(ctypes.c_int64(f.id.id), b"own", 201, value, ctypes.c_size_t(3), ctypes.c_int64(0), ctypes.c_int64(0))
            assert made >= 0 and library.H5Lunregister(201) >= 0
    assert hash_of(paths[0]) == hash_of(paths[2]) != hash_of(paths[1])
    assert h5cow("diff", paths[0], paths[2]) == ""
    assert h5cow("diff", paths[0], paths[1], code=1) == "/own: replaced, link of class 201: abc -> link of class 201: abd\n"
    assert h5cow("ls", paths[1]).splitlines()[1].split(None, 1)[1] == "link of class 201: abd"


def test_a_dataset_of_which_nothing_can_be_read(tmp_path):
    """Without fill value, and never written: native HDF5 reads nothing of it."""
    path = tmp_path / "nothing.h5"
    with h5py.File(path, "w") as f:
        how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        assert reference.hdf5().H5Pset_fill_value(ctypes.c_int64(how.id), ctypes.c_int64(-1), None) >= 0
        how.set_fill_time(h5py.h5d.FILL_TIME_IFSET)
        h5py.h5d.create(f.id, b"x", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((5,)), how)
    assert len(hash_of(path)) == 64
