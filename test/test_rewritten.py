"""What the command says of change where programs write everything again: mode 'w', or delete and create.

What must differ is known from the values that are written, and from plain twins of the versions by HDF5's own means.
"""

import json

import h5py
import numpy as np
import pytest
from conftest import STOCK, h5cow

netcdf = pytest.mark.skipif(__import__("importlib").util.find_spec("netCDF4") is None, reason="no netCDF4")

REFERENCES = """
from h5py import h5r
k = int(sys.argv[2])
with h5py.File(sys.argv[1], 'w') as f:
    f.create_group('pad%d' % k)  # other addresses each time
    f['x'] = np.arange(3000.)
    f['g/y'] = np.arange(3000).reshape(30, 100)
    f['z'] = np.arange(4)
    f['second/name'] = f['g/y']
    to = 'zxz'[k] if k < 3 else 'z'
    f.attrs['object'] = f['x'].ref
    f.attrs['region'] = f['g/y'].regionref[2:5, 3]
    f.attrs['moved'] = f[to].ref
    f['objects'] = np.array([f['x'].ref, f['g'].ref, f['second/name'].ref, f[to].ref], dtype=h5py.ref_dtype)
    f['regions'] = np.array([f['g/y'].regionref[1, :], f['x'].regionref[k:9]], dtype=h5py.regionref_dtype)
"""


def told(*words, code):
    return {o["path"]: o for o in json.loads(h5cow("diff", "--json", *words, code=code))["objects"]}


def test_references_are_equal_when_they_lead_to_the_same_path(programs, tmp_path):
    path = tmp_path / "a.h5"
    for k in range(3):
        done = programs.python(REFERENCES, path, k)
        assert done.returncode == 0, done.stderr
    for k in range(2):
        found = told(f"{path}@{k + 1}", f"{path}@{k + 2}", code=1)
        assert set(found) == {f"/pad{k}", f"/pad{k + 1}", "/", "/objects", "/regions"}
        assert [a["name"] for a in found["/"]["attributes"]] == ["moved"]
        assert [found[p]["elements"]["changed"] for p in ("/objects", "/regions")] == [1, 1]
    # the two ends are the same but for what differs on purpose, in one file and in plain ones
    for k in (1, 3):
        h5cow("export", f"{path}@{k}", tmp_path / f"{k}.h5")
    for words in ((f"{path}@1", f"{path}@3"), (tmp_path / "1.h5", tmp_path / "3.h5")):
        assert set(told(*words, code=1)) == {"/pad0", "/pad2", "/regions"}


def test_references_to_an_object_of_two_names(tmp_path):
    for name, order in (("a", ("aa", "zz")), ("b", ("zz", "aa")), ("c", ("zz", "aa"))):
        with h5py.File(tmp_path / f"{name}.h5", "w", libver="latest") as f:
            for group in order:
                f.create_group(group)
            f["zz/o"] = np.arange(3000)
            f["aa/o"] = f["zz/o"]
            f["loop"] = f["/"]
            f["aa/other"] = np.arange(3000)
            f.attrs["r"] = f["aa/other" if name == "c" else "zz/o"].ref
            f.attrs["g"] = f["zz/o"].regionref[5:9]
    assert h5cow("diff", tmp_path / "a.h5", tmp_path / "b.h5") == ""
    assert [a["name"] for a in told(tmp_path / "a.h5", tmp_path / "c.h5", code=1)["/"]["attributes"]] == ["r"]


@netcdf
def test_dimension_scales_of_netcdf_written_again(programs, tmp_path):
    code = """
import netCDF4
for k in range(2):
    with netCDF4.Dataset(sys.argv[1], 'w') as f:
        f.createDimension('x', 50); f.createDimension('t', None)
        f.createVariable('x', 'f8', ('x',))[:] = np.arange(50.)
        f.createVariable('v', 'f8', ('t', 'x'))[0:3] = np.arange(150.).reshape(3, 50)
"""
    done = programs.python(code, tmp_path / "a.nc")
    assert done.returncode == 0, done.stderr
    assert len({h5cow("hash", f"{tmp_path}/a.nc@{v}").split()[0] for v in (1, 2)}) == 1
    assert h5cow("diff", f"{tmp_path}/a.nc@1", f"{tmp_path}/a.nc@2") == ""


# ---- log --object, ls, blame, report ----

# Every session writes everything. What differs from one to the next: `big` one chunk in sessions 2 and 5 (and back in 6), `text` in 3,
# `small` in 4, an attribute in 5, `g/last` is made in 3 and deleted in 6; `g/deep/same`, `kind`, `soft` never change.
STORY = """
import os
how, k = sys.argv[2], int(sys.argv[3])
def fill(f):
    big = np.arange(50000.)
    if k >= 2: big[12345] = -1
    if k == 5: big[40000] = -5
    f.create_dataset('big', data=big, chunks=(1000,), maxshape=(None,), compression='gzip', fillvalue=-3)
    f['text'] = np.array(['text %d' % n for n in range(3000)] + ['changed' if k >= 3 else 'as it was'], dtype=object)
    f['small'] = [1, 2, 3, 4 + (k >= 4)]
    f['g/deep/same'] = np.arange(20000, dtype='i4').reshape(100, 200)
    f['g/deep/nan'] = np.full(3000, np.nan)
    f['g/deep'].attrs['unit'] = 'K' if k < 5 else 'C'
    f['kind'] = np.dtype([('a', 'i4'), ('b', 'f8')])
    f['typed'] = np.zeros(2000, dtype=f['kind'].dtype)
    if 3 <= k < 6: f['g/last'] = np.arange(3000)
    f['soft'] = h5py.SoftLink('/big')
    f['again'] = f['g/deep/same']
    f['g'].attrs['refers'] = f['big'].ref
    f.create_dataset('refs', (2000,), h5py.ref_dtype)[:] = f['g/deep/same'].ref
if how == 'w':
    with h5py.File(sys.argv[1], 'w') as f: fill(f)
else:
    with h5py.File(sys.argv[1], 'a') as f:
        for name in list(f): del f[name]
        if how == 'flushed': f.flush()
        fill(f)
"""
CHANGED = {"/big": [1, 2, 5, 6], "/text": [1, 3], "/small": [1, 4], "/g/deep/same": [1], "/g/deep/nan": [1], "/g/deep": [1, 5],
           "/kind": [1], "/typed": [1], "/again": [1], "/refs": [1], "/g": [1, 3, 5, 6], "/g/last": [3, 6], "/": [1, 2, 3, 4, 5, 6]}


@pytest.fixture(scope="module", params=["w", "delete and create", "flushed"])
def story(request, programs, tmp_path_factory):
    path = tmp_path_factory.mktemp("rewritten") / "a.h5"
    for k in range(1, 7):
        done = programs.python(STORY, path, request.param, k)
        assert done.returncode == 0, done.stderr
    return path


def versions_of(path, name, *words):
    return [v["number"] for v in json.loads(h5cow("log", "--json", "--object", name, *words, path))][::-1]


def test_the_log_of_an_object_lists_what_changed_it(story):
    assert {name: versions_of(story, name) for name in CHANGED} == CHANGED
    assert versions_of(story, "/big", "-n2") == [5, 6] and versions_of(story, "/text", "-n1") == [3]


def test_ls_says_where_each_object_last_changed(story):
    for version in range(1, 7):
        listed = json.loads(h5cow("ls", "-r", "--json", f"{story}@{version}"))
        found = {o["path"]: int(o["changed_in"]) for o in listed if o["kind"] != "link"}
        assert found == {name: max(n for n in CHANGED[name] if n <= version) for name in found}, version
        assert ("/g/last" in found) == (3 <= version < 6)
    assert [o["changed_in"] for o in json.loads(h5cow("ls", "--json", story)) if o["path"] == "/g"] == ["6"]


def wrote(path, name, *words):
    """The version that wrote each part, by number of the part's first element."""
    told = json.loads(h5cow("blame", "--json", *words, path, name))
    return [(p["first"][0] if p["first"] else 0, p.get("chunks", p.get("elements")), p["version"]["number"]) for p in told]


def test_blame_credits_who_changed_it(story):
    assert wrote(story, "/big") == [(0, 12, 1), (12000, 1, 2), (13000, 27, 1), (40000, 1, 6), (41000, 9, 1)]
    assert wrote(f"{story}@5", "/big") == [(0, 12, 1), (12000, 1, 2), (13000, 27, 1), (40000, 1, 5), (41000, 9, 1)]
    assert wrote(story, "/big", "-s12344", "-c3") == [(12344, 1, 1), (12345, 1, 2), (12346, 1, 1)]
    assert wrote(story, "/small") == [(0, 3, 1), (3, 1, 4)]
    assert wrote(story, "/text", "-s2999", "-c2") == [(2999, 1, 1), (3000, 1, 3)]
    for name in ("/text", "/g/deep/same", "/g/deep/nan", "/typed", "/refs"):
        assert {n for _, _, n in wrote(story, name)} <= {1, 3 if name == "/text" else 1}, name


def test_the_report_tells_no_change_where_there_is_none(story, tmp_path):
    from report_pages import given

    h5cow("report", "-o", tmp_path / "page.html", story)
    told = given(tmp_path / "page.html")
    found = {o["path"]: o["changes"] for o in told["objects"] if o["kind"] != "link"}
    wanted = {"/big": [0, "added", 1, "changed", 4, "changed", 5, "changed"], "/text": [0, "added", 2, "changed"],
              "/small": [0, "added", 3, "changed"], "/g/last": [2, "added", 5, "removed"], "/g/deep": [0, "added", 4, "changed"]}
    wanted.update({name: [0, "added"] for name in ("/", "/g", "/g/deep/same", "/g/deep/nan", "/kind", "/typed", "/refs")})
    met_again = {"/again", "/g/deep/same"}  # one object: told by the name that is met first
    assert {p: c for p, c in found.items() if p not in met_again} == {p: c for p, c in wanted.items() if p not in met_again}
    assert any(found.get(p) == [0, "added"] for p in met_again) and told["trouble"] == []
    assert {p["path"]: p["changed"] for p in told["pictures"]}["/big"] == 5


def test_diff_and_show_agree(story):
    """What one version changed, by each verb."""
    for version in range(2, 7):
        one = {o["path"] for o in json.loads(h5cow("show", "--json", f"{story}@{version}"))["objects"]}
        two = set(told(f"{story}@{version - 1}", f"{story}@{version}", code=1))
        wanted = {name for name, numbers in CHANGED.items() if version in numbers} - {"/"}
        assert one == two and one == wanted - ({"/g"} if version in (3, 5, 6) else set()), version
    assert h5cow("diff", f"{story}@1", f"{story}@1") == ""


def test_other_chunks_and_types_with_the_same_values(programs, tmp_path):
    """Values count, not how they are stored; a type counts."""
    path = tmp_path / "a.h5"
    code = """
with h5py.File(sys.argv[1], 'w') as f:
    f.create_dataset('x', data=np.arange(30000), chunks=(int(sys.argv[2]),), dtype=sys.argv[3])
    f['pad' + sys.argv[4]] = 1
"""
    for k, (chunk, kind) in enumerate([(1000, "i8"), (700, "i8"), (700, "i4"), (30000, "i4")]):
        assert programs.python(code, path, chunk, kind, k).returncode == 0
    assert versions_of(path, "/x") == [1, 3]
    assert {n for _, _, n in wrote(path, "/x")} == {3} and {n for _, _, n in wrote(f"{path}@2", "/x")} == {1}
    assert {o["path"]: o["changed_in"] for o in json.loads(h5cow("ls", "--json", path))} == {"/x": "3", "/pad3": "4"}


def test_what_was_appended_belongs_to_who_appended(programs, tmp_path):
    """Chunk by chunk against numpy: in place and written again in turn."""
    path = tmp_path / "a.h5"
    code = """
k, how = int(sys.argv[2]), sys.argv[3]
data = np.arange(900 + 350 * k, dtype='f8')
data[100:k * 100 + 100] += 0.5
if how == 'w':
    with h5py.File(sys.argv[1], 'w') as f: f.create_dataset('x', data=data, chunks=(100,), maxshape=(None,))
else:
    with h5py.File(sys.argv[1], 'a') as f:
        f['x'].resize(data.shape)
        f['x'][:] = data
"""
    states, expected = [], []
    for k, how in enumerate("wawwaaw"):
        assert programs.python(code, path, k, how).returncode == 0
        data = np.arange(900 + 350 * k, dtype="f8")
        data[100 : k * 100 + 100] += 0.5
        states.append(data)
        expected = [
            expected[c] if k > 0 and c < len(expected) and np.array_equal(data[c * 100 :][:100], states[-2][c * 100 :][:100]) else k + 1
            for c in range((len(data) + 99) // 100)
        ]
        found = [n for first, count, n in wrote(path, "/x") for _ in range(count)]
        assert found == expected, k


def test_a_branch_is_followed_to_where_it_comes_from(programs, tmp_path):
    path = tmp_path / "a.h5"
    code = "with h5py.File(sys.argv[1], 'w') as f: f['x'] = np.arange(3000) * int(sys.argv[2]); f['y'] = np.arange(3000)"
    for factor in (1, 2):
        assert programs.python(code, path, factor).returncode == 0
    h5cow("restore", f"{path}@1")
    assert programs.python(code, path, 1).returncode == 0
    assert versions_of(path, "/x") == [1, 2, 3] and versions_of(path, "/y") == [1]
    assert {o["path"]: o["changed_in"] for o in json.loads(h5cow("ls", "--json", path))} == {"/x": "1", "/y": "1"}
    assert {n for _, _, n in wrote(path, "/x")} == {1}
