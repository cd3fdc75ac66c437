"""Large groups of which little changes at a time: their versions are copies of which HDF5 has not counted the links. Each version is to
be what the file was, whatever was changed, forgotten and committed in between, for HDF5 alone as well."""

import json
import random

import h5py
import pytest
from conftest import h5cow
from seeds import seed

# Sessions that change a little of a large group; prints what the file was at the end of each, as `tree` of TREE tells it.
SESSIONS = """
import json, random
path, first, count, kind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
r = random.Random(f'{sys.argv[5]} {first}')

def group(f):
    return f if kind == 'root' else f['g/h'] if kind == 'deep' else f['g']

def add(at, name):
    which = r.randrange(8)
    if which == 0:
        at.create_group(name)['in'] = r.randrange(99)
    elif which == 1:
        at[name] = h5py.SoftLink(r.choice(['d3', 'nowhere', '/d4' if kind == 'absolute' else 'd4']))
    elif which == 2:
        at[name] = np.dtype('i2')
    elif which == 3:
        at[name] = r.randrange(99)  # small: kept by HDF5
    else:
        at.create_dataset(name, data=np.arange(1000.) + r.randrange(99), chunks=(100,), maxshape=(None,))
        if r.randrange(3) == 0:
            at[name].attrs['a'] = r.randrange(99)

def change(f, at, fresh):
    names = [name for name in at if name not in ('g', 'counter', '_versioned_data')]
    name = r.choice(names)
    link = at.get(name, getlink=True)
    which = r.randrange(14)
    if which < 6 and isinstance(link, h5py.HardLink):
        x = at[name]
        if isinstance(x, h5py.Dataset):
            x[... if x.shape == () else r.randrange(x.shape[0])] = r.randrange(1000)
        elif isinstance(x, h5py.Group):
            x.attrs['b'] = r.randrange(99)
    elif which < 8:
        add(at, fresh)
    elif which == 8:
        del at[name]
    elif which == 9:
        at.move(name, fresh)
    elif which == 10 and isinstance(link, h5py.HardLink):
        if kind == 'several' and r.randrange(4) == 0:
            at[fresh] = at[name]
    elif which == 11:
        del at[name]
        add(at, name)
    elif which == 12 and r.randrange(4) == 0:
        at.attrs[f'of group {r.randrange(3)}'] = r.randrange(99)
    elif which == 13 and isinstance(link, h5py.HardLink) and isinstance(at[name], h5py.Group):
        at[name][f'more{fresh}'] = np.arange(2000) + r.randrange(99)

exec(open(sys.argv[6]).read())
told = []
if first == 0:
    with h5py.File(path, 'w', libver=r.choice(['earliest', 'latest', ('v108', 'v110')]), track_order=kind == 'ordered' or None) as f:
        at = f
        for name in [] if kind == 'root' else ['g', 'h'] if kind == 'deep' else ['g']:
            at = at.create_group(name, track_order=kind == 'ordered' or None)
        at['d3'] = np.arange(600.)
        at['d4'] = np.arange(600)
        for k in range(r.choice([40, 90, 300])):
            add(at, f'n{k}')
        f['counter'] = 0
    with h5py.File(path) as f:
        told.append(tree(f))
    first = 1
for session in range(first, first + count):
    with h5py.File(path, 'r+') as f:
        f['counter'][()] = session
        for k in range(r.choice([0, 1, 1, 2, 4])):
            change(f, group(f), f'{r.choice("anz")}{session}.{k}')
            if r.randrange(5) == 0:
                f.flush()
    with h5py.File(path) as f:
        told.append(tree(f))
print(json.dumps(told))
"""

# `tree(group)`: all that a group has below it, what is one object having one number.
TREE = """
import h5py

def tree(top):
    seen = {}

    def one(x):
        key = h5py.h5o.get_info(x.id).addr
        if key in seen:
            return ['seen', seen[key]]
        seen[key] = len(seen)
        attrs = {name: int(x.attrs[name]) for name in sorted(x.attrs)} if not isinstance(x, h5py.Datatype) else {}
        if isinstance(x, h5py.Dataset):
            return ['dataset', attrs, x[()].tolist()]
        if isinstance(x, h5py.Datatype):
            return ['type', str(x.dtype)]
        links = []
        for name in x:
            if name == '_versioned_data':
                continue
            link = x.get(name, getlink=True)
            path = getattr(link, 'path', '')
            if path.startswith('/_versioned_data/versions/'):
                path = '/' + path.split('/', 4)[4]
            links.append([name, path] if isinstance(link, h5py.SoftLink) else [name, one(x[name])])
        return ['group', attrs, links]

    return one(top)
"""


def compare(path, states):
    """What HDF5 alone finds in each version that is there."""
    place = {}
    exec(TREE, place)
    with h5py.File(path) as f:
        assert place["tree"](f) == states[-1]
        there = f["_versioned_data/versions"]
        for number in there:
            assert place["tree"](there[number]) == states[int(number) - 1], number
        copied = len(f["_versioned_data/copied"]) if "copied" in f["_versioned_data"] else 0
        held = len(f["_versioned_data/held"]) if "held" in f["_versioned_data"] else 0
        return len(there), copied, held


@pytest.mark.parametrize("kind", ["root", "one", "deep", "ordered", "several", "absolute"])
def test_versions_of_a_large_group_are_what_it_was(programs, tmp_path, kind):
    path, helper = tmp_path / "a.h5", tmp_path / "tree.py"
    helper.write_text(TREE)
    r = random.Random(f"{seed()} {kind}")
    states, most = [], 0
    for options in ("", "keep=last:5", ""):
        count = 12
        done = programs.python(SESSIONS, path, len(states), count, kind, seed(), helper, options=f"sync=off;{options}".rstrip(";"))
        assert done.returncode == 0 and "h5cow" not in done.stderr, done.stderr
        states += json.loads(done.stdout)
        there, copied, held = compare(path, states)
        most = max(most, copied)
        programs.verified(path)
        if options == "":
            names = [str(k) for k in range(1, len(states)) if r.randrange(3) == 0]
            with h5py.File(path) as f:
                names = [name for name in names if name in f["_versioned_data/versions"]]
            if names:
                h5cow("forget", path, *names)
            compare(path, states)
            programs.verified(path)
            h5cow("gc", path)
            there, copied, held = compare(path, states)
            assert copied <= there * 3
            programs.verified(path)
    assert most > 0 or kind in ("several", "absolute")
    h5cow("gc", "--compact", path)
    compare(path, states)
    programs.verified(path)


GROUP = """
with h5py.File(sys.argv[1], 'w', libver='latest') as f:
    for k in range(60):
        f[f'g/n{k}'] = k
"""
CHANGE = "with h5py.File(sys.argv[1], 'r+') as f: f['g/n3'][()] += 1000"


def heap_blocks(data, header):
    """Where the direct blocks of the links of the group with the object header at HEADER are."""
    heaps = [at for at in (int.from_bytes(data[header + k : header + k + 8], "little") for k in range(300)) if data[at : at + 4] == b"FRHP"]
    root = int.from_bytes(data[heaps[0] + 132 : heaps[0] + 140], "little")
    if data[root : root + 4] == b"FHDB":
        return [root]
    found = [int.from_bytes(data[root + k : root + k + 8], "little") for k in range(17, 300, 8)]
    return [at for at in found if data[at : at + 4] == b"FHDB"]


def test_a_damaged_group_is_not_handed_on(programs, tmp_path):
    path = tmp_path / "a.h5"
    for code in (GROUP, CHANGE, CHANGE):
        assert programs.python(code, path).returncode == 0
    with h5py.File(path) as f:
        assert len(f["_versioned_data/copied"]) == 2
        header = h5py.h5o.get_info(f["_versioned_data/versions/3/g"].id).addr
    data = bytearray(path.read_bytes())
    blocks = {at: bytes(data[at : at + 512]) for at in heap_blocks(data, header)}
    (needed,) = [at for at, block in blocks.items() if b"\1\0\2n3" in block]
    at, name = next((at, b"\3n%d" % k) for at, block in blocks.items() for k in range(10, 60) if at != needed and b"\3n%d" % k in block)
    data[data.index(name, at) + 3] ^= 2  # another name, in a block that the session has no need of
    path.write_bytes(data)
    done = programs.python(CHANGE, path)
    assert done.returncode == 0, done.stderr
    with h5py.File(path) as f:
        versions = f["_versioned_data/versions"]
        assert sorted(versions["4/g"]) == sorted(f["g"]) == sorted(f"n{k}" for k in range(60))
        assert [versions[f"{v}/g/n3"][()] for v in (1, 2, 4)] == [3, 1003, 3003]
        assert [versions[f"4/g/n{k}"][()] for k in (0, 17, 59)] == [0, 17, 59]
    done = programs.cow("verify", path)
    assert done.returncode == 1 and "version 3" in done.stdout and "version 4" not in done.stdout, done.stdout


def test_nothing_is_copied_that_hdf5_alone_would_meet_twice(programs, tmp_path):
    """A member with another link, or a link back to the group: HDF5 tells them by counts."""
    path = tmp_path / "a.h5"
    code = GROUP + "    f['g/again'] = f['g/n5']\n    f['g/up'] = f['g']\n"
    assert programs.python(code, path).returncode == 0
    assert programs.python(CHANGE, path).returncode == 0
    with h5py.File(path) as f:
        assert "copied" not in f["_versioned_data"]
        met = []
        f["_versioned_data/versions/2"].visit(met.append)
        assert len(met) == 61
    assert programs.python("with h5py.File(sys.argv[1], 'r+') as f: del f['g/again'], f['g/up']", path).returncode == 0
    assert programs.python(CHANGE, path).returncode == 0
    with h5py.File(path) as f:
        assert "copied" in f["_versioned_data"] and f["_versioned_data/versions/4/g/n3"][()] == 2003
    programs.verified(path)


def test_counts_of_versions_are_those_of_the_file(programs, tmp_path):
    path = tmp_path / "a.h5"
    for code in (GROUP, CHANGE, CHANGE):
        assert programs.python(code, path).returncode == 0
    done = programs.python("for v in '123':\n    with h5py.File(f'{sys.argv[1]}@{v}') as f:\n"
                           "        print(*(h5py.h5o.get_info(f[n].id).rc for n in ('/', 'g', 'g/n3', 'g/n4')))", path)
    assert done.returncode == 0 and set(done.stdout.split()) == {"1"}, done.stdout + done.stderr


def test_files_of_before_are_of_the_older_format(programs, tmp_path):
    """What has no copied group can be read by an h5cow that knows of none."""
    path = tmp_path / "a.h5"
    assert programs.python(GROUP, path).returncode == 0
    with h5py.File(path) as f:
        assert f["_versioned_data"].attrs["format"] < 5
    assert programs.python(CHANGE, path).returncode == 0
    with h5py.File(path) as f:
        assert f["_versioned_data"].attrs["format"] == 5


def sessions(programs, path, texts, make="", file="libver='latest'", options="sync=off"):
    """A file with a large group `g`, made by MAKE besides; then each of TEXTS is a session. What the file was after each."""
    code = f"""
import json
exec({TREE!r})
path, first, options = sys.argv[1], sys.argv[2] == '0', dict({file})
def told():
    with h5py.File(path) as f:
        print('told', json.dumps(tree(f)))
if first:
    with h5py.File(path, 'w', **options) as f:
        g = f.create_group('g')
        exec(sys.argv[3])
        for k in range(60):
            g.create_dataset(f'n{{k}}', data=np.arange(1000.), chunks=(100,), maxshape=(None,))
    told()
for text in sys.argv[4:]:
    with h5py.File(path, 'r+') as f:
        g = f['g']
        exec(text)
    told()
"""
    done = programs.python(code, path, 0, make, *texts, options=options)
    assert done.returncode == 0 and "h5cow" not in done.stderr, done.stderr
    return [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("told ")]


LITTLE = "g['n3'][0] = g['n3'][0] + 1"


@pytest.mark.parametrize("made", ["g['new/link'] = h5py.SoftLink('x')", "g['new/a/b'] = g['n5']", "f.move('g/n7', 'g/new/n7')"])
def test_groups_made_on_the_way_to_a_link_are_in_the_version(programs, tmp_path, made):
    path = tmp_path / "a.h5"
    _, copied, _ = compare(path, sessions(programs, path, [LITTLE, made, LITTLE]))
    assert copied > 1
    programs.verified(path)


# HDF5 has the links of this `g` in its header where they are fewer than 60.
FEW_IN_HEADER = """
import ctypes, h5py
library = next(line.split()[-1] for line in open('/proc/self/maps') if 'libhdf5' in line and '_hl' not in line)
gcpl = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
assert ctypes.CDLL(library).H5Pset_link_phase_change(ctypes.c_int64(gcpl.id), 60, 60) >= 0
del f['g']
h5py.h5g.create(f.id, b'g', gcpl=gcpl)
g = f['g']
g['a'] = g['b'] = g['c'] = 1
"""


def test_no_group_is_copied_whose_links_go_into_its_header(programs, tmp_path):
    path = tmp_path / "a.h5"
    less = "del g['a']; del g['b']; del g['c']; del g['n9']"
    states = sessions(programs, path, [LITTLE, LITTLE, less, LITTLE], FEW_IN_HEADER)
    _, copied, _ = compare(path, states)
    assert copied == 2
    programs.verified(path)


@pytest.mark.parametrize(
    "file, change",
    [
        pytest.param("", "if i % 4 == 1: g['x' * 5000] = 1\nelif i % 4 == 2: del g['x' * 5000]\nelse: g['n3'][0] = i", id="long name"),
        pytest.param(", fs_strategy='fsm', fs_persist=True", "g['n3'][0] = i + 1", id="HDF5 keeps free space"),
    ],
)
def test_copies_that_no_version_needs_leave_their_place(programs, tmp_path, file, change):
    path = tmp_path / "a.h5"
    sessions(programs, path, [], file=f"libver='latest'{file}")
    code = """
import os
for i in range(int(sys.argv[2]), int(sys.argv[3])):
    with h5py.File(sys.argv[1], 'r+') as f:
        g = f['g']
        exec(sys.argv[4])
"""
    sizes = []
    for first, end in ((0, 20), (20, 60)):
        done = programs.python(code, path, first, end, change, options="sync=off;keep=last:2")
        assert done.returncode == 0, done.stderr
        sizes.append(path.stat().st_size)
    programs.verified(path)
    assert sizes[1] - sizes[0] < 100_000, sizes


def test_what_a_writer_has_flushed_before_it_dies_is_in_the_file(programs, tmp_path):
    """The end of the file that HDF5 tells may be older than the copies."""
    path = tmp_path / "a.h5"
    states = sessions(programs, path, [])
    code = f"""
import json, os
exec({TREE!r})
for i in range(1, 61):
    if os.fork() == 0:
        f = h5py.File(sys.argv[1], 'r+')
        for k in range(i % 6 + 1):
            f[f'g/n{{i % 5}}'][:k + 1] = i + k / 10
            f.flush()
        print('told', json.dumps(tree(f)), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""
    done = programs.python(code, path, options="sync=off")
    assert done.returncode == 0, done.stderr
    states += [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("told ")]
    assert len(states) == 61
    compare(path, states)
    programs.verified(path)


def test_copies_take_the_places_of_others(programs, tmp_path):
    """Also where the group has changed its size a little, and HDF5 has put something amid the place."""
    path = tmp_path / "a.h5"
    sessions(programs, path, [])
    code = """
import random
for i in range(int(sys.argv[2]), int(sys.argv[3])):
    r = random.Random(i)
    with h5py.File(sys.argv[1], 'r+') as f:
        g = f['g']
        for k in range(3):
            name = r.choice(list(g))
            if r.randrange(3) == 0:
                del g[name]
            else:
                g[name][...] = i
        while len(g) < 500:
            g['y' * r.randrange(1, 60) + f'{i}.{len(g)}'] = i
"""
    sizes = []
    for first, end in ((0, 60), (60, 160)):
        done = programs.python(code, path, first, end, options="sync=off;keep=last:2")
        assert done.returncode == 0, done.stderr
        sizes.append(path.stat().st_size)
    programs.verified(path)
    assert sizes[1] < sizes[0] * 3 / 2, sizes


def test_what_an_amended_version_has_no_more_is_not_held(programs, tmp_path):
    path = tmp_path / "a.h5"
    code = """
with h5py.File(sys.argv[1], 'w', libver='latest') as f:
    g = f.create_group('g')
    for k in range(60):
        g.create_dataset(f'n{k}', data=np.arange(1000.), chunks=(100,), maxshape=(None,))
    f.flush()
    for k in range(5):
        g[f'n{k}'][0] = k + 1
        f.flush()
"""
    done = programs.python(code, path, options="sync=off")
    assert done.returncode == 0, done.stderr
    programs.verified(path)
    with h5py.File(path) as f:
        history = f["_versioned_data"]
        named = {int(row["snapshot"]) for row in history["snapshots"]}
        assert len(history["copied"]) == 1 and len(history["held"]) == 60
        assert all(int(name, 16) in named for group in ("held", "copied") for name in history[group])
