"""h5cow recover FILE OUT of files that are whole: each version of OUT, and its head natively, is that of FILE.

Names change hands here: what stands at a name in one version is no sign of what stood there in another.
"""

import json
import random
import subprocess
import sys

import h5py
import pytest
from conftest import STOCK as ENV, h5cow
from seeds import seed

START = """
import ctypes, json, sys
import h5py, numpy as np
from h5py import h5d, h5l, h5o, h5p, h5s, h5t
library = ctypes.CDLL(next(l.split()[-1] for l in open('/proc/self/maps') if 'libhdf5' in l and '_hl' not in l))
library.H5Oget_comment.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_size_t]
library.H5Oget_comment.restype = ctypes.c_ssize_t
library.H5Pset_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
library.H5Pget_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_void_p]

def chunked(name, shape, chunks, options=0, gzip=None):
    # options: 2 is that chunks which the extent cuts are not filtered
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_chunk(chunks)
    if gzip is not None:
        p.set_deflate(gzip)
    assert library.H5Pset_chunk_opts(p.id, options) >= 0
    made = h5d.create(f.id, name.encode(), h5t.NATIVE_INT32, h5s.create_simple(shape, (h5s.UNLIMITED,) * len(shape)), p)
    h5py.Dataset(made)[...] = np.arange(np.prod(shape)).reshape(shape)
Soft, External, Group, Text = h5py.SoftLink, h5py.ExternalLink, h5py.Group, h5py.string_dtype()
"""
MAKE = """
steps, more = map(json.loads, sys.argv[2:])
for number, step in enumerate(steps, 1):
    with h5py.File(sys.argv[1], 'a', libver='latest', **(more if number == 1 else {})) as f:
        f.attrs['step'] = number
        exec(step)
"""
SHOW = """
def comment(o):
    text = ctypes.create_string_buffer(100)
    return library.H5Oget_comment(o.id, text, 100) and text.value.decode()

def chunk_options(p):
    options = ctypes.c_uint()
    return library.H5Pget_chunk_opts(p.id, ctypes.byref(options)) >= 0 and options.value

def properties(p):
    found = [p.get_attr_creation_order(), p.get_attr_phase_change()]
    return [*found, p.get_link_creation_order()] if isinstance(p, h5p.PropGCID) else found

def show(file):
    paths, told = {}, {}

    def kind(t):
        return str(t.dtype), paths.get(h5o.get_info(t).addr, 'no link') if t.committed() else None

    def plain(v):
        if isinstance(v, h5py.Reference):
            return paths.get(h5o.get_info(h5py.h5r.dereference(v, file.id)).addr, 'nowhere') if v else None
        if isinstance(v, np.ndarray):
            return [plain(x) for x in v.reshape(-1)]
        return repr(v.item() if isinstance(v, np.generic) else v)

    def walk(o, path):
        address = h5o.get_info(o).addr
        seen[address] = seen.get(address, 0) + 1
        if address in paths:
            told[path] = paths[address]
            return
        paths[address] = path
        objects.append((path, o))
        if not isinstance(o, h5py.h5g.GroupID):
            return
        tracked = o.get_create_plist().get_link_creation_order() & 1
        names = []
        o.links.iterate(names.append, idx_type=h5py.h5.INDEX_CRT_ORDER if tracked else h5py.h5.INDEX_NAME)
        names = [n for n in names if path or n != b'_versioned_data']
        told[path + '/'] = [(n.decode(), o.links.get_info(n).cset) for n in names]
        for name in names:
            below = path + '/' + name.decode()
            if o.links.get_info(name).type == h5l.TYPE_HARD:
                walk(h5o.open(o, name), below)
            else:
                told[below] = str(o.links.get_val(name))

    objects, seen = [], {}
    walk(h5o.open(file.id, b'/'), '')
    for path, o in objects:
        entry = told[path + ' is'] = {'comment': comment(o)}
        thing = file[path or '/']
        if not isinstance(o, h5t.TypeID):
            p = o.get_create_plist()
            entry['list'] = properties(p)
            # HDF5 itself counts the links of deleted groups too (docs/format.md on removed), and of groups that were moved
            # into themselves: more than the links that lead here does no harm, less would delete what is still linked
            count, rc = seen[h5o.get_info(o).addr], h5o.get_info(o).rc
            assert not path or count <= rc, (path, count, rc)
            entry['count'] = count
        if isinstance(thing, h5py.Dataset):
            entry['layout'] = [p.get_layout(), thing.chunks, thing.compression, p.get_fill_time(), p.get_alloc_time(),
                               p.get_layout() == h5d.CHUNKED and chunk_options(p), p.get_nfilters()]
            entry['shape'] = thing.shape, thing.maxshape
            entry['type'] = kind(o.get_type())
            entry['values'] = plain(thing[()]), plain(thing.fillvalue)
        elif isinstance(thing, h5py.Datatype):
            entry['type'] = str(o.dtype)
        entry['attributes'] = [(n, kind(thing.attrs.get_id(n).get_type()), plain(v)) for n, v in thing.attrs.items()]
    return told

print(json.dumps([show(h5py.File(name, 'r')) for name in sys.argv[1:]]))
"""


def make(path, steps, **more):
    h5cow("run", "--", sys.executable, "-c", START + MAKE, path, json.dumps(steps), json.dumps(more))


def shown(*names):
    """Through the connector."""
    return json.loads(h5cow("run", "--", sys.executable, "-c", START + SHOW, *names))


def natively(path):
    done = subprocess.run([sys.executable, "-c", START + SHOW, path], env=ENV, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)[0]


def without_layout(told):
    """HDF5 itself sees views."""
    return {k: {n: e for n, e in v.items() if n != "layout"} if isinstance(v, dict) else v for k, v in told.items()}


def recovered(path, versions):
    """OUT, which is what FILE is."""
    out = path.with_name("out.h5")
    told = json.loads(h5cow("recover", "--json", path, out))
    assert told["lost"] == [] and [v["state"] for v in told["versions"]] == ["whole"] * versions, told
    names = [f"@{number}" for number in range(1, versions + 1)] + [""]
    found, want = (shown(*(f"{p}{name}" for name in names)) for p in (out, path))
    for name, a, b in zip(names, found, want, strict=True):
        assert a == b, f"{name or 'head'}"
    assert without_layout(natively(out)) == without_layout(want[-1])
    h5cow("verify", out)
    return out


# ---- links ----------------------------------------------------------------------------------------------------------

LINKS = {
    "soft, then a dataset": ["f['z'] = [1, 2, 3]; f['a'] = Soft('/z')", "del f['a']; f['a'] = [7, 8, 9]"],
    "soft, then a group": ["f['z/x'] = 1; f['a'] = Soft('/z')", "del f['a']; f['a/y'] = 2"],
    "soft, then an empty group": ["f['z/x'] = 1; f['a'] = Soft('/z')", "del f['a']; f.create_group('a')"],
    "soft, then a type": ["f['z'] = [1]; f['a'] = Soft('/z')", "del f['a']; f['a'] = np.dtype('i4')"],
    "soft, then a second link": ["f['z'] = [1]; f['a'] = Soft('/z')", "del f['a']; f['a'] = f['z']"],
    "soft to nothing, then a group": ["f['a'] = Soft('/zz')", "del f['a']; f['a/b'] = 1"],
    "a dataset, soft, the dataset again": [
        "f['a'] = [1, 2, 3]; f['z'] = [4, 5, 6]",
        "f.move('a', 'x'); f['a'] = Soft('/z')",
        "del f['a']; f.move('x', 'a')",
    ],
    "a dataset, another, the dataset again": [
        "f['0'] = [4, 5, 6]; f['a'] = [1, 2, 3]",
        "f.move('a', 'x'); f['a'] = f['0']",
        "del f['a']; f.move('x', 'a'); del f['0']",
    ],
    "gone for a version": [
        "f['g/a'] = [1, 2, 3]; f['g/b'] = [4, 5, 6]",
        "f['h'] = f['g']; f.move('g/a', 'x'); f.move('g/b', 'g/a'); del f['g']",
        "f['g'] = f['h']; del f['h']; f.move('g/a', 'g/b'); f.move('x', 'g/a')",
    ],
    "two groups under one name": [
        "f['b/x'] = [1, 2, 3]; f['y'] = [4, 5, 6]",
        "f['a'] = f['b']; f.move('b/x', 'z'); f.move('y', 'b/x')",
        "del f['a']; f.move('b/x', 'y'); f.move('z', 'b/x')",
    ],
    "soft below a group that becomes soft": [
        "f['a/b/x'] = 1; f['c/b/y'] = 2",
        "del f['a']; f['a'] = Soft('/c')",
        "del f['a']; f['a/b'] = Soft('/c/b'); f['c/b/z'] = 3",
        "del f['a/b']; f['a/b/z'] = 4",
    ],
}


@pytest.mark.parametrize("history", [False, True])
def test_what_an_external_link_leads_to_stays_as_it_is(tmp_path, sha256, history):
    path, other = tmp_path / "a.h5", tmp_path / "other.h5"
    made = "f['t'] = [1, 2, 3]; f['g/precious'] = [1, 2, 3]; f['g'].attrs['k'] = 1; f['g/h/p'] = 1; f['n'] = np.dtype('i4')"
    if history:
        make(other, [made])
    else:
        with h5py.File(other, "w") as f:
            exec(made, {"f": f, "np": __import__("numpy")})
    links = "".join(f"f['{n}'] = External('other.h5', '/{n}');" for n in "tgn")
    steps = [
        links,
        "del f['t'], f['g'], f['n']; f['t'] = [7, 8, 9]; f.create_group('g').attrs['m'] = 2; f['n'] = np.dtype('i4')",
        "del f['t'], f['g'], f['n'];" + links,
        "del f['g']; f['g/h/q'] = 2",
    ]
    make(path, steps)
    before = sha256(other)
    names = [f"{path}@{n}" for n in range(1, 5)]
    out = tmp_path / "out.h5"
    told = json.loads(h5cow("recover", "--json", path, out))
    assert sha256(other) == before, "recover wrote into a file that it was not asked for"
    assert told["lost"] == []
    assert shown(*names, path) == shown(*(n.replace("a.h5", "out.h5") for n in names), out)
    assert natively(out) == natively(path)


# ---- values ---------------------------------------------------------------------------------------------------------

VALUES = {
    "small": ["f['s'] = [1, 2, 3]", "del f['s']; f.create_dataset('s', (3,), 'i8')"],
    "texts": ["f.create_dataset('s', (3,), Text)[:] = 'x'", "del f['s']; f.create_dataset('s', (3,), Text)"],
    "one": ["f.create_dataset('s', (), 'i8')[()] = 5", "del f['s']; f.create_dataset('s', (), 'i8')"],
    "a few chunks": [
        "f.create_dataset('s', (20,), 'i8', chunks=(5,))[:] = 1",
        "del f['s']; f.create_dataset('s', (20,), 'i8', chunks=(5,))[0] = 7",
    ],
    "a fill value": [
        "f.create_dataset('s', (1000,), 'f4', fillvalue=5)[:] = 1",
        "del f['s']; f.create_dataset('s', (1000,), 'f4', fillvalue=5)",
    ],
    "chunks with a fill value": [
        "f.create_dataset('s', (10000,), 'f4', chunks=(1000,), fillvalue=5)[:] = 1",
        "del f['s']; f.create_dataset('s', (10000,), 'f4', chunks=(1000,), fillvalue=5)[5000] = 2",
    ],
    "texts with a fill value": [
        "f.create_dataset('s', (4000,), Text, chunks=(500,), fillvalue='none')[:] = 'x'",
        "del f['s']; f.create_dataset('s', (4000,), Text, chunks=(500,), fillvalue='none')[2000] = 'y'",
    ],
    "texts that shrink and grow": [
        "f.create_dataset('s', (4000,), Text, chunks=(500,), maxshape=(None,), fillvalue='none')[:] = 'x'",
        "f['s'].resize((700,)); f['s'].resize((4000,))",
    ],
}


@pytest.mark.parametrize("steps", VALUES.values(), ids=VALUES)
def test_a_dataset_made_anew_has_nothing_of_the_old_one(tmp_path, steps):
    make(tmp_path / "a.h5", [*steps, "f['other'] = 1"])
    recovered(tmp_path / "a.h5", len(steps) + 1)


def test_a_group_with_many_links(tmp_path):
    """The process that waits takes ten silent seconds of computing for a loop without end."""
    path = tmp_path / "a.h5"
    make(path, ["g = f.create_group('g')\nfor i in range(80000): g['l%06d' % i] = Soft('/x')", "f['g/n'] = 1"])
    out = path.with_name("out.h5")
    assert json.loads(h5cow("recover", "--json", path, out))["lost"] == []
    with h5py.File(out) as f:
        assert len(f["g"]) == 80001


# ---- types, comments, orders, properties ----------------------------------------------------------------------------

OTHERS = {
    "types linked after their datasets": [
        "f['t'] = np.dtype('i2'); f.create_dataset('a', (3,), f['t']); f['g'] = np.dtype('i4')\n"
        "f.create_dataset('b', (3000,), f['g']); f.attrs.create('x', np.zeros(2, 'i2'), dtype=f['t'])",
        "f['z'] = np.dtype('i8'); f.create_dataset('y', (3,), f['z'])",
    ],
    "a type that gets an attribute": [
        "f['A'] = np.dtype('i2'); f.create_dataset('b', (3,), f['A']); f.create_dataset('c', (3000,), f['A'])\n"
        "f.create_group('g').attrs.create('x', np.zeros(2, 'i2'), dtype=f['A'])",
        "f['A'].attrs['x'] = 1",
        "f['c'][0] = 1; f['g'].attrs['y'] = 1",
        "f.move('A', 'z'); f['d'] = 1",
        "f['c'][1] = 2; f['g'].attrs['y'] = 2; f['z'].attrs['x'] = 3",
        "f['e'] = f['z']; del f['z']",
    ],
    "another type at the same name": [
        "f['A'] = np.dtype('i2'); f.create_dataset('b', (3,), f['A']); f.create_dataset('c', (3000,), f['A'])",
        "del f['A']; f['A'] = np.dtype('i2'); f.create_dataset('d', (3000,), f['A']); f['c'][0] = 5",
        "del f['A'], f['d']; f['A'] = np.dtype('i4'); f.create_dataset('d', (3000,), f['A'])",
    ],
    "a type without a link": [
        "f['A'] = np.dtype('i2'); f.create_dataset('b', (3,), f['A']); f.create_dataset('c', (3000,), f['A']); del f['A']",
        "f['c'][0] = 5; f['b'][0] = 6",
    ],
    "a dataset of a named type, then not": [
        "f['A'] = np.dtype('i2'); f.create_dataset('c', (3000,), f['A'])",
        "del f['c']; f.create_dataset('c', (3000,), 'i2')",
        "del f['c']; f.create_dataset('c', (3000,), f['A'])",
    ],
    "a comment": [
        "h5o.set_comment(f.create_group('g').id, b'hello')",
        "h5o.set_comment(f['g'].id, b'')",
        "h5o.set_comment(f['g'].id, b'again')",
    ],
    "an order of links": [
        "g = f.create_group('g', track_order=True); g['a'] = 1; g['b'] = 2; g['c'] = Soft('b'); g['h/x'] = 1",
        "g = f['g']; del g['a']; g['a'] = 1",
        "g = f['g']; del g['c']; g['c'] = Soft('b'); g['d'] = 3",
        "f['g'].move('h', 'i')",
        "g = f['g']; g.move('i', 'h'); g.move('a', 'z'); g['a'] = 4; g['h/y'] = g['z']",
    ],
    "chunks, then others of another last dimension": [
        "chunked('a', (40,), (8,)); chunked('b', (12, 11), (4, 4)); chunked('c', (40,), (1,))",
        "del f['a'], f['b'], f['c']; chunked('a', (40,), (3,)); chunked('b', (12, 11), (4, 3)); chunked('c', (40,), (40,))",
        "f['a'][0] = 7; f['b'][0] = 7; f['c'][0] = 7",
    ],
    "chunks whose edges are filtered, then not": [
        "chunked('a', (10, 11), (4, 4), 2, gzip=4); chunked('b', (10, 11), (4, 4), gzip=4)",
        "del f['a'], f['b']; chunked('a', (10, 11), (4, 4), gzip=4); chunked('b', (10, 11), (4, 4), 2, gzip=4)",
    ],
    "an order that was not recorded": [
        "g = f.create_group('g'); g['b'] = 1; g['b2/x'] = 1",
        "del f['g']; g = f.create_group('g', track_order=True); g['b'] = 1; g['a'] = 2; g['b2/x'] = 1",
        "del f['g']; g = f.create_group('g'); g['b'] = 1; g['a'] = 2; g['b2/x'] = 1",
    ],
}


@pytest.mark.parametrize("steps", [*LINKS.values(), *OTHERS.values()], ids=[*LINKS, *OTHERS])
def test_every_version_comes_out_as_it_is(tmp_path, steps):
    make(tmp_path / "a.h5", steps)
    recovered(tmp_path / "a.h5", len(steps))


def test_the_order_of_the_root(tmp_path):
    steps = ["f['b'] = 1; f['a'] = 2; f['c'] = Soft('a')", "f.move('b', 'x'); f.move('x', 'b')", "del f['c']; f['c'] = 1"]
    make(tmp_path / "a.h5", steps, track_order=True)
    out = recovered(tmp_path / "a.h5", len(steps))
    assert [link[0] for link in natively(out)["/"]] == ["a", "b", "c"]


def test_the_user_block(tmp_path):
    path, text = tmp_path / "a.h5", b"MATLAB 7.3 MAT-file".ljust(1024, b".")
    make(path, ["f['x'] = range(3000)", "f['x'][0] = 9"], userblock_size=1024)
    with open(path, "r+b") as f:
        f.write(text)
    out = recovered(path, 2)
    assert out.read_bytes()[:1024] == text


USER_DEFINED = """
class Link(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int), ("id", ctypes.c_int), ("comment", ctypes.c_char_p),
                *((n, ctypes.c_void_p) for n in ("create", "move", "copy")),
                ("traverse", ctypes.CFUNCTYPE(ctypes.c_int64)), ("delete", ctypes.c_void_p), ("query", ctypes.c_void_p)]
nowhere = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: -1)
link = Link(version=1, id=187, comment=b"of a test", traverse=nowhere)
assert library.H5Lregister(ctypes.byref(link)) >= 0
library.H5Lcreate_ud.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t,
                                 ctypes.c_int64, ctypes.c_int64]
assert library.H5Lcreate_ud(f.id.id, b"u", 187, b"VALUE", 5, 0, 0) >= 0
"""


def test_a_link_of_a_class_that_nobody_has(tmp_path):
    """Only its program knows where it leads; its value is kept."""
    make(tmp_path / "a.h5", [USER_DEFINED, "f['x'] = 1", "del f['u']; f['u/v'] = 1"])
    out = tmp_path / "out.h5"
    assert json.loads(h5cow("recover", "--json", tmp_path / "a.h5", out))["lost"] == []
    look = "import h5py, sys; fs = [h5py.File(n, 'r') for n in sys.argv[1:]]; print([f.id.links.get_info(b'u').type for f in fs])"
    names = [f"{out}@{n}" for n in (1, 2, 3)]
    assert h5cow("run", "--", sys.executable, "-c", look, *names) == "[187, 187, 0]\n"
    assert b"VALUE" in out.read_bytes()


CHANGES = """
import random
rnd = random.Random(SEED)
names = [g + n for g in ('', 'g/', 'h/', 'g/i/') for n in 'abc']

def kinds(*wanted):
    found = []
    def note(p, o):
        if isinstance(o, wanted): found.append(p)
    f.visititems(note)
    return found or ['/']

def numbers(n):
    return np.array([rnd.randrange(100) for _ in range(n)])

for _ in range(rnd.randrange(1, 12)):
    p, q = rnd.choice(names), rnd.choice(names + ['g', 'h', 'g/i'])
    try:
        match rnd.randrange(15):
            case 0: f[p] = numbers(rnd.choice([3, 900]))
            case 1: f.create_dataset(p, (900,), 'i8', chunks=(100,), fillvalue=rnd.choice([None, 7]))[rnd.randrange(900)] = 5
            case 2: f.create_dataset(p, rnd.choice([(3,), (), (2000,)]), rnd.choice(['i8', Text]))
            case 3 | 4: f.move(q, p)
            case 5: f[p] = rnd.choice([Soft('/' + q), Soft('b'), External('none.h5', '/' + q)])
            case 6: f[p] = f[q]
            case 7 | 8: del f[q]
            case 9:
                d = f[rnd.choice(kinds(h5py.Dataset))]
                d[...] = numbers(d.size).reshape(d.shape)
            case 10: f[p] = np.dtype(rnd.choice(['i2', 'i4']))
            case 11: f.create_dataset(p, (rnd.choice([3, 900]),), f[rnd.choice(kinds(h5py.Datatype))])
            case 12: f[rnd.choice(kinds(h5py.Group, h5py.Dataset, h5py.Datatype))].attrs['x'] = rnd.randrange(9)
            case 13 | 14: f.create_group(rnd.choice(['g', 'h', 'g/i']), track_order=rnd.choice([True, False]))
    except (KeyError, ValueError, OSError, RuntimeError, TypeError, AttributeError):
        pass  # there is something, or nothing, at the name
"""


@pytest.mark.parametrize("number", range(12))
def test_whatever_becomes_of_names(tmp_path, number):
    rnd = random.Random(seed() + number)
    steps = [CHANGES.replace("SEED", str(rnd.getrandbits(32))) for _ in range(rnd.randrange(3, 6))]
    make(tmp_path / "a.h5", steps, track_order=rnd.random() < 0.5)
    recovered(tmp_path / "a.h5", len(steps))
