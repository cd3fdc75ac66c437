"""h5cow restore, undo, redo: a file, or objects of it, are as they were, with the same objects, and nothing is lost.

Restoring whole files at random is an operation of the differential test; here are objects, words, and what other libraries see.
"""

import json
import os
import random

import h5py
import numpy as np
import pytest
from conftest import H5COW, again, h5cow, seed

STORY = [
    """
with h5py.File(sys.argv[1], 'w') as f:
    f['x'] = np.arange(20000.)
    f['x'].attrs['unit'] = 'K'
    f.create_dataset('g/y', (300, 100), 'f4', chunks=(10, 100), compression='gzip', maxshape=(None, 100))[...] = 7
    f['g/text'] = np.array(['a', 'bc'], dtype=object)
    f['g/again'] = f['g/y']
    f['g/soft'] = h5py.SoftLink('/x')
    f['g/outside'] = h5py.ExternalLink('other.h5', '/z')
    f['type'] = np.dtype('i2')
    f.create_dataset('typed', (3000,), f['type'])
    f['typed'].attrs.create('t', 3, dtype=f['type'])
    f['small'] = [1, 2, 3]
    f['refs'] = np.array([f['x'].ref, f['g/y'].ref], dtype=h5py.ref_dtype)
    f.attrs['story'] = 'one'
""",
    """
with h5py.File(sys.argv[1], 'a') as f:
    f['x'][5:15] = -1
    f['x'].attrs['unit'] = 'C'
    f['x'].attrs['new'] = np.arange(5)
    f['g/y'].resize((200, 100))
    f['typed'][:] = 5
    f['small'][1] = 9
    f['deep/er/est'] = np.arange(3000)
""",
    """
with h5py.File(sys.argv[1], 'a') as f:
    del f['g'], f['type'], f['small']
    f['small'] = 'another one'
    f.move('deep/er', 'moved')
    f['refs'][0] = f['x'].ref
    f.attrs['story'] = 'three'
""",
]


@pytest.fixture
def story(programs, tmp_path):
    path = tmp_path / "a.h5"
    for code in STORY:
        done = programs.python(code, path)
        assert done.returncode == 0, done.stderr
    return path


def rows(path):
    return json.loads(h5cow("log", "--json", path))[::-1]


def same(a, b, *path):
    """Nothing differs; and by HDF5's own tools, which read what is there without h5cow."""
    assert h5cow("diff", a, b, *path) == ""


def listed(path, *words, **more):
    told = json.loads(h5cow("restore", "--json", *words[:1], path, *words[1:], **more))
    return {change["path"]: change["change"] for change in told["changes"]}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_file_is_as_it_was_and_remembers_that(programs, story, version):
    before = os.path.getsize(story)
    told = h5cow("restore", f"{story}@{version}")
    assert told.startswith(f"{story}: " + ("all of it is as in version 3 already\n" if version == 3 else f"as in version {version}; version #4\n"))
    assert os.path.getsize(story) - before < 20000  # of 300,000
    same(f"{story}@{version}", story)
    for old in (1, 2, 3):
        assert h5cow("diff", f"{story}@{old}", f"{story}@{old}") == ""
    if version != 3:
        row = rows(story)[3]
        assert (row["parent"], row["message"], row["chunks"]) == (str(version), f"restore: as in version {version}", 0)
    programs.verified(story)
    done = programs.python("f = h5py.File(sys.argv[1], 'a'); f['x'][7] = 77; f.close()", story)
    assert done.returncode == 0, done.stderr
    assert rows(story)[-1]["parent"] == rows(story)[-2]["name"]


def test_the_objects_are_the_same_ones(programs, story):
    """References that were never restored lead to what was: the head's objects keep their addresses."""
    done = programs.python("""
import json
with h5py.File(sys.argv[1], 'a') as f:
    f['keep'] = np.array([f['x'].ref, f['deep'].ref], dtype=h5py.ref_dtype)
""", story)
    assert done.returncode == 0, done.stderr
    h5cow("restore", f"{story}@1")
    look = """
with h5py.File(sys.argv[1]) as f:
    print([f[r] == f[n] for r, n in zip(f['refs'], ('x', 'g/y'))], f['g/y'] == f['g/again'], f['typed'].id.get_type().committed(),
          f['typed'].attrs.get_id('t').get_type().committed(), h5py.h5o.get_info(f['g/y'].id).rc,
          f['x'].attrs['unit'], list(f['x'].attrs), f['g/text'][1], f['small'][1], f['g'].get('soft', getlink=True).path)
"""
    expected = "[True, True] True True True 2 K ['unit'] b'bc' 2 /x\n"
    for run in (programs.python, lambda code, *words: programs.stock("python3", "-c", programs.code(code, errors=False), *words)):
        done = run(look, story)
        assert done.stdout == expected, done.stdout + done.stderr


def test_what_is_listed(story, sha256):
    before = sha256(story)
    expected = {"/": "changed", "/deep/er": "added", "/g": "added", "/moved": "removed", "/small": "replaced", "/type": "added"}
    told = json.loads(h5cow("restore", "--json", "--dry-run", f"{story}@2"))
    assert {c["path"]: c["change"] for c in told["changes"]} == expected
    assert (told["restored"], told["restored_number"], told["dry_run"], told["version"]) == ("2", 2, True, None)
    text = h5cow("restore", "-n", f"{story}@2")
    assert text.startswith(f"{story}: would be as in version 2:\n") and "  + added /g\n" in text and "  - removed /moved\n" in text
    assert h5cow("restore", "-n", "-q", f"{story}@2") == f"{story}: would be as in version 2:\n"
    assert sha256(story) == before and len(rows(story)) == 3
    told = json.loads(h5cow("restore", "--json", "-m", "back again", f"{story}@2"))
    assert {c["path"]: c["change"] for c in told["changes"]} == expected
    assert told["version"] == 4 and rows(story)[3]["message"] == "back again"
    assert h5cow("restore", f"{story}@2") == f"{story}: all of it is as in version 2 already\n" and len(rows(story)) == 4


def test_single_objects(programs, story):
    assert listed(f"{story}@1", "-q", "/x", "/g/y") == {"/x": "changed", "/g": "added", "/g/y": "added"}
    same(f"{story}@1", story, "/x")
    same(f"{story}@1", story, "/g/y")
    with h5py.File(story) as f:
        assert list(f["g"]) == ["y"] and f.attrs["story"] == "three" and f["small"][()] == b"another one"
    row = rows(story)[3]
    assert (row["parent"], row["message"]) == ("3", "restore: as in version 1: /x, /g/y")
    assert listed(f"{story}@1", "-q", "/g/soft", "/g/outside", "/small") == {"/g/soft": "added", "/g/outside": "added", "/small": "replaced"}
    with h5py.File(story) as f:
        assert f["g"].get("soft", getlink=True).path == "/x" and f["g"].get("outside", getlink=True).filename == "other.h5"
        assert list(f["small"]) == [1, 2, 3]
    assert listed(f"{story}@1", "-q", "/g/") == {"/g/text": "added", "/g/again": "added"}
    same(f"{story}@1", story, "/g")
    assert listed(f"{story}@2", "-q", "/") != {}
    same(f"{story}@2", story)
    programs.verified(story)


def test_what_is_not_there_is_said_and_nothing_is_done(story, sha256):
    before = sha256(story)
    for words, sentence in (
        ([f"{story}@1", "/deep"], "version '1' has no '/deep'"),
        ([f"{story}@1", "/x", "/none/at/all"], "version '1' has no group '/none'"),
        ([f"{story}@1", "/x/y"], "'/x' is no group"),
        ([f"{story}@1", "/g/soft/y"], "has no group '/g/soft', but a link"),
        ([f"{story}@2", "/deep/er/est"], "'/deep/er' is not the group that it was in version '2'"),
        ([f"{story}@1", "/_versioned_data/log"], "has no '/_versioned_data"),
        ([f"{story}@9"], "no version '9'"),
        ([story], "which version? FILE@REV"),
        ([f"{story}@1", "x"], "'x' is not a path in the file"),
        ([], "it wants FILE@REV"),
        (["--force=yes", f"{story}@1"], "--force"),
    ):
        told = h5cow("restore", *words, code=2)
        assert sentence in told, (words, told)
    for verb in ("undo", "redo"):
        assert "one FILE, not 2 words" in h5cow(verb, story, "/x", code=2)
        h5cow(verb, f"{story}@1", code=2)
    assert "nothing to redo" in h5cow("redo", story, code=2)
    assert sha256(story) == before


def test_undo_and_redo_as_in_an_editor(programs, tmp_path):
    """Against a model: a list of states, and where one is in it."""
    print(again())
    r, path = random.Random(seed()), tmp_path / "u.h5"
    states, at, value = [], -1, 0

    def content():
        with h5py.File(path) as f:
            return int(f["v"][0])

    for step in range(30):
        what = "write" if at < 0 else r.choice(["write", "undo", "undo", "redo", "redo", "restore", "tag"])
        if what == "write":
            value += 1
            done = programs.python("f = h5py.File(sys.argv[1], 'a'); f.require_dataset('v', (2000,), 'i4')[0] = int(sys.argv[2]); f.close()", path, value)
            assert done.returncode == 0, done.stderr
            states[at + 1:] = [value]
            at += 1
        elif what == "tag":  # nothing is done to the data
            h5cow("tag", f"{path}@latest", f"t{step}")
        elif what == "restore":
            old = r.randrange(1, len(rows(path)) + 1)
            with h5py.File(path) as f:
                wanted = int(f[f"_versioned_data/versions/{old}/v"][0])
            if wanted in (states[at], *states[max(at - 1, 0):at + 2]):
                continue  # then it is an undo or a redo, or nothing
            h5cow("restore", f"{path}@{old}")
            states[at + 1:] = [wanted]
            at += 1
        else:
            possible = at > 0 if what == "undo" else at + 1 < len(states)
            told = h5cow(what, path, code=0 if possible else 2)
            assert possible or f"nothing to {what}" in told
            at += (possible and (-1 if what == "undo" else 1))
        assert content() == states[at], (step, what)
    programs.verified(path)


def test_what_was_restored_and_is_forgotten_is_told_by_what_is_left(programs, story):
    h5cow("restore", f"{story}@2")
    h5cow("forget", story, "2")
    assert json.loads(h5cow("show", "--json", story))["parent"] == "1"
    assert json.loads(h5cow("log", "--json", story))[0]["parent"] == "1"
    text = h5cow("show", story)
    assert text.startswith("version 4\nmade of 1\nafter   3\ntime "), text


def test_log_and_show_of_what_was_restored(programs, story):
    h5cow("restore", f"{story}@1", "/small")
    h5cow("restore", f"{story}@1")
    h5cow("undo", story)
    told = [line.rstrip() for line in h5cow("log", "--graph", "--oneline", story).splitlines()[1:]]
    assert [line[:6].rstrip() for line in told] == ["*", "| *", "* |", "* |", "* |", "|/", "*"], told
    told = [line.split() for line in h5cow("log", "--graph", "--oneline", "-n", "2", story).splitlines()[1:]]
    assert [line[:2] for line in told] == [["*", "6"], ["*", "5"]] or [line[:3] for line in told][1] == ["|", "*", "5"], told
    text = h5cow("show", f"{story}@5")
    assert "as was  1\nafter   4\n" in text and "/x: changed" in text
    text = h5cow("show", f"{story}@4")
    assert "made of 3\n" in text and "/small" in text and "/x" not in text
    assert [row["name"] for row in json.loads(h5cow("log", "--json", "--object", "/x", story))] == ["6", "5", "2", "1"]
    parts = json.loads(h5cow("blame", "--json", f"{story}@5", "/x"))
    assert {part["version"]["name"] for part in parts} == {"1"}
    told = json.loads(h5cow("log", "--operations", "--json", story))
    assert [(one["version"], one["what"]) for one in told] == [
        (6, "version #6: undone, all as in version 4"), (5, "version #5: restored, all as in version 1"),
        (4, "version #4: restored, /small as in version 1")]


PLACES = ["a", "b", "a/c", "a/d", "b/c", "b/c/e"]
RANDOM = """
import random
r = random.Random(int(sys.argv[2]))
with h5py.File(sys.argv[1], 'a', libver=('v110', 'latest'), track_order=int(sys.argv[3]) > 0) as f:
    for _ in range(r.randrange(1, 9)):
        place, what = r.choice(json.loads(sys.argv[4])), r.randrange(9)
        at = f.get(place)
        if what == 0 and place in f:
            del f[place]
        elif at is None and what < 6 and place not in f:
            try:
                if r.random() < .5:
                    f.create_group(place, track_order=r.random() < .4)
                elif r.random() < .5:
                    f.create_dataset(place, data=np.array([r.randrange(99)] * r.choice([3, 3000])), maxshape=(None,), chunks=(500,))
                else:
                    f[place] = np.array([str(r.random())] * 4, dtype=object)
            except (ValueError, OSError, TypeError):  # what is above it is no group
                pass
        elif isinstance(at, h5py.Dataset) and what < 5:
            at[r.randrange(len(at))] = str(r.random()) if at.dtype == object else r.randrange(99)
        elif isinstance(at, h5py.Dataset) and at.chunks and what == 5:
            at.resize((r.randrange(1, 5000),))
        elif at is not None and what == 6:
            at.attrs[r.choice('xyz')] = r.choice([1, 'text', np.arange(r.randrange(5))])
        elif at is not None and what == 7 and len(at.attrs):
            del at.attrs[r.choice(list(at.attrs))]
        elif at is not None and what == 8:
            other = r.choice(json.loads(sys.argv[4]))
            if other not in f and f.get(other.rpartition('/')[0] or '/', getclass=True) is h5py.Group and not other.startswith(place):
                f[other] = at if r.random() < .6 else h5py.SoftLink('/' + place)
"""


@pytest.mark.parametrize("number", range(6))
def test_random_objects_of_random_versions(programs, tmp_path, number):
    """The object is as it was, and nothing else has changed, as far as other links do not lead into it."""
    print(again())
    r, path = random.Random(seed() + number), tmp_path / "r.h5"
    for step in range(8):
        done = programs.python("import json\n" + RANDOM, path, r.randrange(1 << 30), number % 2, json.dumps(PLACES))
        assert done.returncode == 0, done.stderr
        known = rows(path)
        if step < 2 or not known:
            continue
        version, place = r.choice(known)["name"], "/" + r.choice(PLACES)
        with h5py.File(path) as f:
            then = f[f"_versioned_data/versions/{version}"]
            there = all(isinstance(then.get(place[1:i], getlink=True), h5py.HardLink) for i in range(2, len(place)) if place[i] == "/")
            link = then.get(place[1:], getlink=True) if there else None
            there = link is not None
        done = programs.cow("restore", "-q", f"{path}@{version}", place)
        if not there:
            assert done.returncode == 2, (version, place, done.stdout)
            continue
        if done.returncode == 2:
            assert "is not the group that it was" in done.stderr, done.stderr
            continue
        if isinstance(link, h5py.SoftLink):  # which is what was restored; what it leads to is another object
            with h5py.File(path) as f:
                assert f.get(place, getlink=True).path == link.path.removeprefix(f"/_versioned_data/versions/{version}")
            continue
        now = h5cow("ls", "--json", "-r", path)
        done = programs.cow("diff", f"{path}@{version}", path, place)
        assert done.returncode == 0, (version, place, done.stdout, done.stderr, now)
        programs.verified(path)


def test_while_another_program_writes_it_is_refused(programs, story):
    done = programs.python("""
import os, subprocess
with h5py.File(sys.argv[1], 'r+') as f:
    f['x'][0] = 3
    env = {k: v for k, v in os.environ.items() if not k.startswith('HDF5_')}
    for words in (['restore', sys.argv[1] + '@1'], ['undo', sys.argv[1]]):
        done = subprocess.run([sys.argv[2], *words], env=env, capture_output=True, text=True)
        print(done.returncode, 'being written' in done.stderr or 'open' in done.stderr)
""", story, H5COW)
    assert done.stdout == "2 True\n2 True\n", done.stdout + done.stderr
    assert len(rows(story)) == 4


NATIVES = """
import itertools
texts = h5py.string_dtype()
pair = np.dtype([('a', 'i4'), ('t', texts)])
kinds = {'i': ('i4', lambda n: np.arange(1, n + 1)), 't': (texts, lambda n: np.array(['x%d' % i for i in range(n)], dtype=object)),
         'l': (h5py.vlen_dtype('i4'), lambda n: np.array([np.arange(i + 1) for i in range(n)] + [None], dtype=object)[:n]),
         'c': (pair, lambda n: np.array([(i, 'y') for i in range(n)], dtype=pair))}
with h5py.File(sys.argv[1], 'a') as f:
    first = 'i0' not in f
    for k, (kind, values) in kinds.items():
        for i, (shape, more) in enumerate([((), {}), ((3,), {}), ((3,), dict(chunks=(3,))), ((1,), dict(chunks=(1,))),
                                           ((4, 2), dict(chunks=(2, 2))), ((5,), dict(chunks=(2,), maxshape=(50,))),
                                           ((3,), dict(chunks=(3,), early=True))]):
            name, more = f'{k}{i}', dict(more)
            if first:
                dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                if more.pop('early', False):
                    dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
                if 'chunks' in more:
                    dcpl.set_chunk(more['chunks'])
                space = h5py.h5s.create(h5py.h5s.SCALAR) if shape == () else h5py.h5s.create_simple(shape, more.get('maxshape', shape))
                h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(np.dtype(kind), logical=True), space, dcpl)
            else:
                d = f[name]
                if d.maxshape and d.maxshape[0] == 50:
                    d.resize((9,))
                d[...] = values(max(d.size, 1)).reshape(d.shape) if shape else values(1)[0]
    if first:
        layout = h5py.VirtualLayout((5,), 'i4', maxshape=(None,))
        layout[:5] = h5py.VirtualSource('.', 'source', (5,))
        f.create_virtual_dataset('virtual', layout)
        f.create_dataset('outside', (4,), 'i4', maxshape=(40,), external=[(sys.argv[1] + '.raw', 0, h5py.h5f.UNLIMITED)])[...] = 1
        f.attrs['a'], f.attrs['b'] = 1, 2
        f['loop/back'] = f['/']
    else:
        f['virtual'].id.set_extent((9,))
        f['outside'].id.set_extent((7,))
        del f.attrs['a']
        f['loop'].attrs['seen'] = 1
"""


def test_datasets_that_hdf5_keeps_itself(programs, tmp_path):
    """What was never written, and what HDF5 1.14.5 cannot make smaller and larger again without losing a chunk."""
    path = tmp_path / "n.h5"
    for _ in range(2):
        done = programs.python(NATIVES, path)
        assert done.returncode == 0, done.stderr
    for version in (1, 2, 1):
        h5cow("restore", f"{path}@{version}")
        assert h5cow("diff", f"{path}@{version}", path) == ""
        programs.verified(path)
        with h5py.File(path) as f:
            for name in f:
                if isinstance(f[name], h5py.Dataset) and name not in ("virtual", "outside"):
                    now, then = f[name], f[f"_versioned_data/versions/{version}/{name}"]
                    assert now.shape == then.shape and repr(now[()]) == repr(then[()]), (name, version)
            assert f["virtual"].shape == ((5,), (9,))[version - 1] and f["outside"].shape == ((4,), (7,))[version - 1]
        assert "already" in h5cow("restore", f"{path}@{version}"), h5cow("restore", "-n", f"{path}@{version}")
    h5cow("restore", f"{path}@2", "/loop")
    with h5py.File(path) as f:
        assert "seen" in f["loop"].attrs and f["loop/back"] == f["/"] and "a" in f.attrs
    h5cow("restore", f"{path}@2", "/", "/loop/back")
    assert h5cow("diff", f"{path}@2", path) == ""
    programs.verified(path)


def test_undo_passes_over_versions_in_which_nothing_differs(programs, tmp_path):
    path = tmp_path / "e.h5"
    for value in "abbc":
        done = programs.python("f = h5py.File(sys.argv[1], 'a'); f.require_dataset('s', (), h5py.string_dtype())[()] = sys.argv[2]; f.close()", path, value)
        assert done.returncode == 0, done.stderr

    def value():
        with h5py.File(path) as f:
            return f["s"][()].decode()

    assert len(rows(path)) == 4  # the third one is like the second
    seen = []
    for verb in ("undo", "undo", "redo", "redo", "undo", "undo"):
        h5cow(verb, path)
        seen.append(value())
    assert seen == ["b", "a", "b", "c", "b", "a"]
    assert "nothing to undo" in h5cow("undo", path, code=2)


def test_what_was_restored_and_then_changed_has_no_other_parent(programs, story, package):
    done = programs.python("f = h5py.File(sys.argv[1], 'a'); f['x'][0] = 4; f.close()", story)
    h5cow("restore", f"{story}@1", "/small")
    assert [row["parent"] for row in rows(story)] == [None, "1", "2", "3", "4"] and done.returncode == 0


def test_a_group_that_a_circle_keeps_alive_comes_back(programs, tmp_path):
    path = tmp_path / "c.h5"
    for code in ("f['g/h/x'] = np.arange(3000); f['g/h/y'] = 1; f['g/h/up'] = f['g']", "del f['g']"):
        done = programs.python(f"f = h5py.File(sys.argv[1], 'a'); {code}; f.close()", path)
        assert done.returncode == 0, done.stderr
    wanted = {"/g": "added", "/g/h": "added", "/g/h/x": "added"}
    assert listed(f"{path}@1", "-n", "/g/h/x") == wanted == listed(f"{path}@1", "-q", "/g/h/x")
    with h5py.File(path) as f:
        assert list(f["g"]) == ["h"] and list(f["g/h"]) == ["x"]
    programs.verified(path)


def test_long_names(programs, tmp_path):
    path, name = tmp_path / "l.h5", "n" * 3000
    for value in (1, 2):
        done = programs.python("f = h5py.File(sys.argv[1], 'a'); f.require_group('n' * 3000).attrs['v'] = int(sys.argv[2]); f.close()", path, value)
        assert done.returncode == 0, done.stderr
    assert listed(f"{path}@1", "-q", f"/{name}") == {f"/{name}": "changed"}


def test_what_is_saved_of_a_file_has_its_tags_and_branches(story, tmp_path):
    h5cow("restore", f"{story}@1")
    h5cow("undo", story)
    h5cow("tag", f"{story}@2", "kept")
    out = tmp_path / "out.h5"
    told = h5cow("recover", story, out)
    assert "nothing is lost" in told
    assert json.loads(h5cow("tag", "--json", out)) == json.loads(h5cow("tag", "--json", story))
    assert [row["parent"] for row in rows(out)] == [row["parent"] for row in rows(story)] == [None, "1", "2", "1", "3"]
    operations = [[(one["what"], one["version"]) for one in json.loads(h5cow("log", "--operations", "--json", path))] for path in (story, out)]
    assert operations[0] == operations[1] != []
    assert h5cow("undo", "-n", out).splitlines()[0].endswith("would be as in version 2:")


NETCDF = """
import netCDF4
d = netCDF4.Dataset(sys.argv[1], sys.argv[2])
if sys.argv[2] == 'w':
    d.createDimension('t', None); d.createDimension('x', 500)
    d.createVariable('t', 'f8', ('t',)); d.createVariable('x', 'f8', ('x',)); d.createVariable('v', 'f4', ('t', 'x'))
    d['x'][:] = np.arange(500); d['t'][:] = [0, 1, 2]; d['v'].units = 'K'
if sys.argv[3] == '5':
    d.createVariable('w', 'i4', ('x',))[:] = 4; d['v'].units = 'C'; d['t'][3] = 3
d['v'][1, 10:20] = float(sys.argv[3]); d['v'][0] = 1
d.close()
"""


def test_a_file_of_netcdf(programs, tmp_path):
    path = tmp_path / "a.nc"
    for mode, value in (("w", 3), ("a", 4), ("a", 5)):
        done = programs.python(NETCDF, path, mode, value)
        assert done.returncode == 0, done.stderr
    h5cow("restore", f"{path}@1")
    read = """
import netCDF4
d = netCDF4.Dataset(sys.argv[1])
print(list(d.variables), d['v'].dimensions, d['v'].shape, float(d['v'][1, 10]), d['v'].units, float(d['x'][7]), len(d.dimensions['t']))
"""
    for run in (programs.python, lambda *words: programs.stock("python3", "-c", programs.code(words[0], errors=False), *words[1:])):
        done = run(read, path)
        assert done.stdout == "['t', 'x', 'v'] ('t', 'x') (3, 500) 3.0 K 7.0 3\n", done.stdout + done.stderr
    h5cow("undo", path)
    done = programs.python(read, path)
    assert done.stdout == "['t', 'x', 'v', 'w'] ('t', 'x') (4, 500) 5.0 C 7.0 4\n", done.stdout + done.stderr
    h5cow("restore", f"{path}@2", "/v")
    done = programs.python(read, path)
    assert done.stdout == "['t', 'x', 'v', 'w'] ('t', 'x') (4, 500) 4.0 K 7.0 4\n", done.stdout + done.stderr
    programs.verified(path)


def test_a_file_of_pytables(programs, tmp_path):
    path = tmp_path / "a.h5"
    make = """
import tables
with tables.open_file(sys.argv[1], 'a') as f:
    if '/t' not in f:
        f.create_table('/', 't', {'a': tables.Int32Col(), 'b': tables.StringCol(8)})
        f.root.t.cols.a.create_index()
    f.root.t.append([(int(sys.argv[2]), 'row')] * 1000)
    f.root.t.attrs.last = int(sys.argv[2])
"""
    for value in (1, 2, 3):
        done = programs.python(make, path, value)
        assert done.returncode == 0, done.stderr
    h5cow("restore", f"{path}@2")
    read = """
import tables
with tables.open_file(sys.argv[1]) as f: print(len(f.root.t), f.root.t[1500]['a'], f.root.t.read_where('a == 2').size, f.root.t.attrs.last)
"""
    done = programs.python(read, path)
    assert done.stdout == "2000 2 1000 2\n", done.stdout + done.stderr
    done = programs.python(make, path, 9)
    assert done.returncode == 0, done.stderr
    done = programs.python(read, path)
    assert done.stdout == "3000 2 1000 9\n", done.stdout + done.stderr
    programs.verified(path)


def test_what_a_group_that_held_itself_held_comes_back_with_its_absolute_links(programs, tmp_path):
    """Its newest snapshot is of the restored version, whose name is in the value of the link."""
    path = tmp_path / "a.h5"
    for words in ("way = f.create_group('t/way'); way['again'] = way; way.create_group('g')['l'] = h5py.SoftLink('/t'); f['x'] = 1", "f['y'] = 2",
                  "del f['t']", "f['z'] = 3"):
        assert programs.python(f"import h5py\nwith h5py.File(sys.argv[1], 'a') as f:\n    {words}", path).returncode == 0
    h5cow("restore", f"{path}@2")
    with h5py.File(path, "r") as f:
        for version in f["_versioned_data/versions"].values():
            if "t" in version:
                assert version["t/way/g"].get("l", getlink=True).path == f"{version.name}/t"
    assert json.loads(h5cow("verify", "--json", path))["damage"] == []


def test_a_named_type_that_only_its_use_holds(programs, tmp_path):
    """It has no link, but is in versions as what is of this type is; and is restored with that."""
    path = tmp_path / "t.h5"
    story = """
def used(f, of):
    return h5py.Datatype(f[of].id.get_type() if of == 'd' else h5py.h5a.open(f[of].id, b'a').get_type())
with h5py.File(sys.argv[1], 'a') as f:
    %s
"""
    for words in ("f['t'] = f['u'] = np.dtype('i4'); f['t'].attrs['x'] = 1; f['u'].attrs['x'] = 2; f.create_group('g').attrs.create('a', 3, dtype=f['t'])"
                  "; f.create_dataset('d', (3000,), f['u']); del f['t'], f['u']", "used(f, 'g').attrs['x'] = 5", "del used(f, 'd').attrs['x']",
                  "f['named'] = used(f, 'g'); f['more'] = 1"):
        done = programs.python(story % words, path)
        assert done.returncode == 0 and "h5cow:" not in done.stderr, done.stderr
    told = story % "print(*(dict(used(f, of).attrs).get('x') for of in 'gd'))"

    def values(name):
        done = programs.python(told.replace("[1], 'a'", "[1], 'r'"), name)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert [values(f"{path}@{n}") for n in range(1, 5)] == ["1 2", "5 2", "5 None", "5 None"]
    assert listed(f"{path}@2", "-q", "/d") == {"/d": "changed"} and values(path) == "5 2"
    assert listed(f"{path}@1", "-q", "/g") == {} and values(path) == "5 2"  # of its type: that has a link now
    wanted = {"/g": "changed", "/more": "removed", "/named": "removed"}
    assert listed(f"{path}@1", "-n") == wanted == listed(f"{path}@1")
    assert values(path) == values(f"{path}@6") == "1 2"
    programs.verified(path)


def test_a_null_string_is_not_an_empty_one(programs, tmp_path):
    """HDF5 alone reads a null pointer where no string was written, and another one for an empty string. Checksums do not tell them apart."""
    path = tmp_path / "a.h5"
    for code in (
        "with h5py.File(sys.argv[1], 'w') as f:\n    for n in 2, 3: f.create_dataset(f'd{n}', (n,), h5py.string_dtype())[0] = 'x'",
        "with h5py.File(sys.argv[1], 'a') as f:\n    f['d2'][1] = ''",
        "with h5py.File(sys.argv[1], 'a') as f:\n    f['d3'][1:] = ['', '']",
    ):
        done = programs.python(code, path)
        assert done.returncode == 0, done.stderr

    def shown(name):
        done = programs.stock("h5dump", "-y", "-d", name, path)
        assert done.returncode == 0, done.stderr
        return done.stdout.partition("DATA {")[2].partition("}")[0].split()

    assert shown("/d2") == ['"x",', '""'] and shown("/d3") == ['"x",', '"",', '""']
    assert programs.cow("restore", f"{path}@1").returncode == 0
    assert shown("/d2") == ['"x",', "NULL"] and shown("/d3") == ['"x",', "NULL,", "NULL"]
    assert programs.cow("restore", f"{path}@2", "/d2").returncode == 0
    assert shown("/d2") == ['"x",', '""'] and shown("/d3") == ['"x",', "NULL,", "NULL"]
    log = programs.cow("log", "--json", path).stdout
    assert programs.cow("restore", f"{path}@2", "/d2").returncode == 0  # it is so already
    assert programs.cow("log", "--json", path).stdout == log
