"""h5cow ls, against what h5py finds in plain files, and versions that are known since each change was one."""

import json

import h5py
import numpy as np
import pytest
from conftest import h5cow

FIRST = """
with h5py.File(sys.argv[1], 'w') as f:
    f['x'] = np.arange(200.).reshape(10, 20)
    f.create_dataset('big', (300, 100), 'f4', chunks=(10, 10), maxshape=(None, 100))
    f['g/text'] = np.array(['a', 'b'], dtype=object)
    f['g/inner/y'] = 5
    f['type'] = np.dtype('i2')
    f['again'] = f['g/inner']
    f['g/up'] = f['/']
    f['soft'] = h5py.SoftLink('/g')
    f['near'] = h5py.SoftLink('g/text')
    f['outside'] = h5py.ExternalLink('o.h5', '/z')
    f['odd\\nname'] = h5py.Empty('f8')
"""
CHANGES = [
    "f['x'][3, 4] = -1",  # 2
    "f['g/inner/y'].attrs['unit'] = 'K'",
    "f['big'].resize((310, 100))",
    "f['new/deep'] = 1",  # 5
    "del f['near']; f['near'] = h5py.SoftLink('x')",
]
CHANGED = {  # in the newest state; a group with what is below it, of /g also the root
    "/x": "2", "/big": "4", "/g": "6", "/g/text": "1", "/g/inner": "3", "/g/inner/y": "3", "/type": "1", "/again": "3",
    "/again/y": "3", "/new": "5", "/new/deep": "5", "/odd\nname": "1", "/g/up": "6",
}
LINKS = {"/soft": "link to /g", "/near": "link to x", "/outside": "link to o.h5: /z"}


@pytest.fixture(scope="module")
def story(programs, tmp_path_factory):
    path = tmp_path_factory.mktemp("ls") / "story.h5"
    for code in [FIRST, *(f"with h5py.File(sys.argv[1], 'a') as f: {change}" for change in CHANGES)]:
        done = programs.python(code, path)
        assert done.returncode == 0, done.stderr
    return path


def listed(*words):
    return {item["path"]: item for item in json.loads(h5cow("ls", "--json", *words))}


def test_the_version_that_changed_each_object_last(story):
    found = listed("-r", story)
    assert {path: item["changed_in"] for path, item in found.items() if item["kind"] != "link"} == {
        path: version for path, version in CHANGED.items() if path != "/g/inner/y"  # which /again, listed first, has
    }
    assert {path: item["what"] for path, item in found.items() if item["kind"] == "link"} == LINKS
    assert found["/g/up"]["same_as"] == "/" and found["/g/inner"]["same_as"] == "/again"
    assert listed("-r", f"{story}@2")["/again"]["changed_in"] == "1" and "/new" not in listed("-r", f"{story}@4")


@pytest.mark.parametrize("version", range(1, 7))
def test_everything_that_h5py_finds(story, tmp_path, version):
    plain = tmp_path / "plain.h5"
    h5cow("export", f"{story}@{version}", plain)
    found, expected = listed("-r", f"{story}@{version}"), {}

    def walk(group, path, met):
        for name in group:
            link, below = group.get(name, getlink=True), path.rstrip("/") + "/" + name
            if not isinstance(link, h5py.HardLink):
                expected[below] = "link"
                continue
            o = group[name]
            kind = {h5py.Group: "group", h5py.Dataset: "dataset", h5py.Datatype: "type"}[type(o)]
            expected[below] = kind
            if kind == "dataset":
                shape = "(nothing)" if o.shape is None else str(o.shape)
                assert found[below]["what"].startswith("dataset of ") and found[below]["what"].endswith(shape)
            if kind == "group" and o.id not in met:
                met.append(o.id)
                walk(o, below, met)

    with h5py.File(plain, "r") as f:
        walk(f, "/", [f["/"].id])
    assert {path: item["kind"] for path, item in found.items()} == expected
    assert listed("-r", plain).keys() == expected.keys()
    top = {path: kind for path, kind in expected.items() if path.count("/") == 1}
    assert {path: item["kind"] for path, item in listed(f"{story}@{version}").items()} == top
    assert all("changed_in" not in item for item in listed(plain).values())


def test_as_a_table(story):
    lines = h5cow("ls", story, "/g").splitlines()
    assert [line.split() for line in lines] == [
        ["path", "changed", "in", "what"],
        ["/g/inner/", "3", "group"],
        ["/g/text", "1", "dataset", "of", "string", "(2,)"],
        ["/g/up/", "6", "group"],
    ]
    assert "/odd\\nname  1           dataset of float64 (nothing)" in h5cow("ls", story)
    assert h5cow("ls", f"{story}@1", "/x").splitlines()[1].split() == ["/x", "1", "dataset", "of", "float64", "(10,", "20)"]


def test_the_root_and_an_empty_group(tmp_path):
    path = tmp_path / "plain.h5"
    h5py.File(path, "w").close()
    assert h5cow("ls", path) == "path  what\n" and json.loads(h5cow("ls", "--json", path)) == []


def test_many_links_and_deep_groups(programs, tmp_path):
    path = tmp_path / "many.h5"
    code = """
with h5py.File(sys.argv[1], 'w') as f:
    for i in range(3000):
        f['flat/%d' % i] = h5py.SoftLink('/x')
    g = f
    for i in range(1000):
        g = g.create_group('d')
"""
    assert programs.python(code, path).returncode == 0
    found = listed("-r", path)
    assert len(found) == 3000 + 1000 + 1 and "/d" * 1000 in found


def test_what_cannot_be_opened_is_said_and_the_rest_is_listed(tmp_path):
    path = tmp_path / "torn.h5"
    with h5py.File(path, "w", libver="latest") as f:
        f["good"], f["torn"] = 1, [1, 2]
        at = h5py.h5o.get_info(f["torn"].id).addr
    data = bytearray(path.read_bytes())
    data[at + 8] ^= 0xFF
    path.write_bytes(data)
    told = h5cow("ls", path, code=2)
    assert "/good  dataset of int64 ()" in told and "/torn  cannot be opened" in told
    assert f"h5cow: '/torn' of '{path}' cannot be opened: " in told


@pytest.mark.parametrize("words, sentence", [
    (["story", "/nowhere"], "'/nowhere' of '"),
    (["story", "x"], "begins with '/'"),
    (["story@99"], "there is no version '99'"),
    ([], "which file?"),
])
def test_wrong_usage(story, words, sentence):
    told = h5cow("ls", *(word.replace("story", str(story)) for word in words), code=2)
    assert sentence in told and told.startswith("h5cow: ") and len(told.splitlines()) <= 2, told


def test_a_verb_that_was_mistyped():
    for wrong, right in {"lgo": "log", "dif": "diff", "exprot": "export", "recver": "recover", "Verify": "verify"}.items():
        assert h5cow(wrong, "x", code=2) == f"h5cow: there is no verb '{wrong}': is it '{right}'?\n"
    assert "'h5cow --help' lists them" in h5cow("commit", "x", code=2)
    assert np.all([len(h5cow(w, code=2).splitlines()) == 1 for w in ("", "l" * 10000)])
