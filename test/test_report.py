"""h5cow report: what its page is given, against plain copies of every version; who may read it, and what it never replaces.

How the page looks and works in a browser: test_browser.py.
"""

import base64
import collections
import gzip
import json
import os
import pathlib
import random

import h5py
import numpy as np
import pytest
from conftest import h5cow
from report_pages import MAKE, given
from seeds import seed


@pytest.fixture(scope="module", params=range(4))
def story(request, programs, tmp_path_factory):
    """A random history: what the page says of it, and {path: list of values} of each version."""
    folder = tmp_path_factory.mktemp("report")
    count = random.Random(seed() + request.param).randrange(5, 14)
    done = programs.python(MAKE, folder / "a.h5", seed() + request.param, count)
    assert done.returncode == 0, done.stderr
    h5cow("report", "-o", folder / "a.html", folder / "a.h5")
    states = []
    for number in range(1, count + 1):
        h5cow("export", f"{folder}/a.h5@{number}", folder / f"{number}.h5")
        state = {"/": None}
        with h5py.File(folder / f"{number}.h5") as f:
            f.visititems(lambda name, o: state.update({f"/{name}": list(o[:]) if isinstance(o, h5py.Dataset) else None}))
        states.append(state)
    return given(folder / "a.html"), states


def test_what_each_version_changed(story):
    told, states = story
    expected = collections.defaultdict(list)
    for number, (before, after) in enumerate(zip([{}, *states], states)):
        for path in sorted({*before, *after}):
            if path not in before or path not in after:
                expected[path] += [number, "added" if path in after else "removed"]
            elif before[path] != after[path]:
                expected[path] += [number, "changed"]
    found = {o["path"]: o["changes"] for o in told["objects"]}
    # the attribute of the root changes each time; data may be written as it was, and a group lose what it has got
    expected["/"] = [0, "added", *(x for number in range(1, len(states)) for x in (number, "changed"))]
    assert found == expected
    counts = [len(o["changes"]) for o in told["objects"]]
    assert counts == sorted(counts, reverse=True) and told["more_objects"] == 0


def test_what_each_version_and_dataset_holds(story):
    told, states = story
    holders, users = collections.defaultdict(set), collections.defaultdict(set)
    for number, state in enumerate(states):
        for path, values in state.items():
            for at in range(0, len(values or ()), 1000):
                holders[tuple(values[at : at + 1000])].add(number)
                users[tuple(values[at : at + 1000])].add(path)
    storage, newest = told["storage"], len(states) - 1
    assert storage["chunks"] == 8000 * len(holders) and storage["nobody"] == 0
    # the newest state is the newest version: what only these two hold, to forget the version would not free
    alone = [8000 * sum(held == {number} for held in holders.values()) for number in range(newest)] + [0]
    assert storage["versions"] == alone
    # two datasets that had one name after each other are two
    assert storage["shared"] + storage["all"] == storage["chunks"]
    assert [storage[k] for k in ("all", "newest")] == [sum(d[k] for d in storage["datasets"]) for k in ("all", "newest")]
    assert all(0 <= d["newest"] <= d["all"] for d in storage["datasets"])
    for path in states[-1]:
        mine = [chunk for chunk, paths in users.items() if path in paths]
        only = 8000 * sum(users[chunk] == {path} for chunk in mine)
        assert sum(d["all"] for d in storage["datasets"] if d["path"] == path) <= only


def test_versions_of_the_log(story):
    told, states = story
    assert [v["name"] for v in told["versions"]] == [str(n + 1) for n in range(len(states))]
    assert [v["parent"] for v in told["versions"]] == [None, *(str(n + 1) for n in range(len(states) - 1))]
    assert told["trouble"] == [] and not any(v["open"] or v["incomplete"] for v in told["versions"])


PICTURES = """
name = sys.argv[1]
x = np.arange(500 * 300.).reshape(500, 300)
with h5py.File(name, 'w') as f:
    f.create_dataset('cube', data=np.stack([x, x + 1, x + 2]), chunks=(1, 100, 100), maxshape=(None, 500, 300))
    f['flat'], f['line'], f['one'], f['text'] = x.astype('i4'), np.arange(2000), 5, 'no number'
    f['bare'] = np.array([[np.nan, np.inf], [1, 2]])
with h5py.File(name, 'a') as f:
    f['cube'][1, 250, 100:200] = -7
with h5py.File(name, 'a') as f:
    f['line'][10] = 10**6
    f['text'][()] = 'still none'
"""


def values(side):
    return np.frombuffer(base64.b64decode(side["values"]), "<f4").reshape(side["height"], side["width"])


def test_names_that_are_no_utf_8(programs, tmp_path):
    code = """
name = b'caf\\xe9'
with h5py.File(sys.argv[1], 'a') as f:
    g = f.require_group('g').id
    if not g.links.exists(name):
        h5py.h5d.create(g, name, h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((2000,)))
    h5py.Dataset(h5py.h5d.open(g, name))[7] += 1
"""
    for _ in range(2):
        done = programs.python(code, tmp_path / "a.h5")
        assert done.returncode == 0, done.stderr
    assert "not all of" not in h5cow("report", tmp_path / "a.h5")
    told = given(tmp_path / "a.h5.html")
    assert told["trouble"] == [] and [p["path"] for p in told["pictures"]] == ["/g/caf?"]
    assert told["pictures"][0]["after"]["shape"] == [2000]


def test_pictures_before_and_after(programs, tmp_path):
    assert programs.python(PICTURES, tmp_path / "a.h5").returncode == 0
    h5cow("report", tmp_path / "a.h5")
    found = {p["path"]: p for p in given(tmp_path / "a.h5.html")["pictures"]}
    assert list(found) == ["/line", "/cube", "/bare", "/flat"]  # those that changed last first; others by name
    x = np.arange(500 * 300.0).reshape(500, 300)
    cube, before = found["/cube"], x + 1
    after = before.copy()
    after[250, 100:200] = -7
    assert cube["slice"] == [1] and (cube["before"]["version"], cube["after"]["version"]) == ("1", "3")
    assert cube["changed"] == 1 and not cube["added"] and cube["after"]["shape"] == [3, 500, 300]
    assert np.array_equal(values(cube["before"]), before[::3, ::2].astype("f4"))
    assert np.array_equal(values(cube["after"]), after[::3, ::2].astype("f4"))
    assert found["/flat"]["added"] and "before" not in found["/flat"]
    line = np.arange(2000.0)[::4]
    assert found["/line"]["line"] and np.array_equal(values(found["/line"]["before"])[0], line)
    assert np.array_equal(values(found["/bare"]["after"]), np.array([[np.nan, np.inf], [1, 2]], "f4"), equal_nan=True)
    h5cow("report", "-f", "--pictures=1", tmp_path / "a.h5")
    assert [p["path"] for p in given(tmp_path / "a.h5.html")["pictures"]] == ["/line"]
    h5cow("report", "-fp0", tmp_path / "a.h5")
    assert given(tmp_path / "a.h5.html")["pictures"] == []


def test_what_a_file_says_stays_text(programs, tmp_path):
    evil = "</script><script>alert(1)</script><!--"
    code = "import os\nwith h5py.File(sys.argv[1], 'w') as f: f[sys.argv[2].replace('/', '|')] = np.arange(3)"
    assert programs.python(code, tmp_path / "a.h5", evil, options=f"message={evil.replace(' ', '')}").returncode == 0
    h5cow("report", tmp_path / "a.h5")
    page = (tmp_path / "a.h5.html").read_text()
    assert page.count("</script>") == 2 and "<!--" not in page and page.count("<script") == 2
    told = given(tmp_path / "a.h5.html")
    assert told["versions"][0]["message"] == evil and told["objects"][0]["path"].startswith("/")
    assert not [word for word in ("http://", "https://", "src=", "@import") if word in page.replace("http://www.w3.org/2000/svg", "")]


@pytest.fixture
def small(programs, tmp_path):
    assert programs.python("with h5py.File(sys.argv[1], 'w') as f: f['x'] = np.arange(3)", tmp_path / "a.h5").returncode == 0
    return tmp_path / "a.h5"


def test_the_page_is_as_private_as_the_file(small):
    small.chmod(0o600)
    h5cow("report", small)
    assert os.stat(f"{small}.html").st_mode & 0o777 == 0o600


def test_what_is_not_replaced(small, tmp_path):
    out = tmp_path / "o.html"
    out.write_text("mine")
    plain = tmp_path / "plain.h5"
    with h5py.File(plain, "w") as f:
        f["y"] = 1
    before = small.read_bytes(), plain.read_bytes()
    assert "exists" in h5cow("report", "-o", out, small, code=2)
    for target, why in ((small, "HDF5 file"), (plain, "HDF5 file"), (tmp_path, "folder"), (tmp_path / "no/o.html", "")):
        for force in ((), ("--force",)):
            assert why in h5cow("report", *force, "-o", target, small, code=2).replace("directory", "folder")
    assert out.read_text() == "mine" and before == (small.read_bytes(), plain.read_bytes())
    h5cow("report", "--force", "-o", out, small)
    assert given(out)["file"] == "a.h5"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.h5", "o.html", "plain.h5"]


def test_wrong_words(small, tmp_path):
    with h5py.File(tmp_path / "plain.h5", "w") as f:
        f["y"] = 1
    for words, why in (
        ((), "which file?"), ((small, small), "one file"), ((f"{small}@1",), "whole history"), ((tmp_path / "none.h5",), "No such file"),
        ((tmp_path / "plain.h5",), "history"), (("-p", "x", small), "number"), (("-o",), "-o"), (("--nothing", small), "--nothing"),
    ):  # fmt: skip
        assert why in h5cow("report", *words, code=2), words
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.h5", "plain.h5"]


def test_a_damaged_file_gets_a_page_that_says_so(programs, tmp_path):
    """Each byte of the index in turn would take long: the nodes' bytes, in steps."""
    path = tmp_path / "a.h5"
    assert programs.python(MAKE, path, seed(), 8).returncode == 0
    with h5py.File(path) as f:
        index = f["_versioned_data/index"]
        whole, places = path.read_bytes(), []
        for k in range(index.id.get_num_chunks()):
            info = index.id.get_chunk_info(k)
            places += range(info.byte_offset, info.byte_offset + min(info.size, len(index) - info.chunk_offset[0]))
    rnd, said = random.Random(seed()), 0
    for place in rnd.sample(places, 12):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        done = programs.cow("report", "-f", path)
        assert done.returncode in (0, 1), done.stderr
        told = given(tmp_path / "a.h5.html")
        assert (done.returncode == 1) == (told["trouble"] != []) == ("could be read" in done.stderr), (told["trouble"], done.stderr)
        said += done.returncode
        json.dumps(told)
    assert said > 0


def test_what_a_damaged_file_leaves_open_is_no_crash_at_the_end(tmp_path):
    """HDF5 cannot close some object of it, and with that it keeps the plugin until it has closed its property lists."""
    packed = pathlib.Path(__file__).parent / "files/damaged/left-open-at-exit.h5.gz"
    (tmp_path / "a.h5").write_bytes(gzip.decompress(packed.read_bytes()))
    said = h5cow("report", tmp_path / "a.h5", code=1)
    assert "not all of" in said and (tmp_path / "a.h5.html").exists()


def test_what_was_undone_has_no_picture(programs, tmp_path):
    """A version that was made of an older one lacks what came between, and that is no damage."""
    make = """
with h5py.File(sys.argv[1], 'a') as f:
    if 'x' not in f:
        f['x'] = np.arange(3000)
        f['g/kept'] = np.arange(3000)
    elif 'y' not in f:
        f['y'] = np.arange(3000)
        f['g/z'] = np.arange(3000)
        f['again'] = f['g']
        f['x'][:] = 7
    else:
        f['g/kept'][5] = 0
"""
    path = tmp_path / "a.h5"
    for _ in range(2):
        assert programs.python(make, path).returncode == 0
    h5cow("undo", path)
    h5cow("report", path)
    found = given(tmp_path / "a.h5.html")
    assert found["trouble"] == []
    assert {p["path"] for p in found["pictures"]} == {"/x", "/g/kept"}
    h5cow("redo", path)
    h5cow("report", "-f", path)
    found = {p["path"]: p for p in given(tmp_path / "a.h5.html")["pictures"]}
    assert {"/x", "/y", "/g/kept"} <= set(found) and "before" in found["/x"]
    for revision in ("#1", "#2", "#1"):
        h5cow("restore", f"{path}@{revision}")
    assert programs.python(make.replace("'y' not in f", "False"), path).returncode == 0  # after that, another change
    h5cow("report", "-f", path)
    found = given(tmp_path / "a.h5.html")
    assert found["trouble"] == [] and {p["path"] for p in found["pictures"]} == {"/x", "/g/kept"}
    assert {p["path"]: p["changed"] for p in found["pictures"]}["/g/kept"] == len(found["versions"]) - 1
