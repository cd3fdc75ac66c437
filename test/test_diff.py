"""h5cow diff and h5cow show, on files that unmodified h5py programs make.

What must differ is worked out here from numpy arrays and from plain twins of each version, by numpy and by HDF5's own h5diff;
never from what the command says.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
from conftest import H5COW, STOCK, h5cow
from seeds import again, seed
from waiting import WAITING

FIRST = """
with h5py.File(sys.argv[1], 'w') as f:
    f['temp'] = np.arange(200.).reshape(10, 20)
    f.create_dataset('big', data=np.zeros((300, 100), 'f4'), chunks=(10, 10), maxshape=(None, 100))
    f['g/text'] = np.array(['a', 'b', 'c'], dtype=object)
    f['g/pairs'] = np.zeros(5, dtype=[('x', 'i2'), ('y', 'f8')])
    f['old'] = [1, 2]
    f['soft'] = h5py.SoftLink('/temp')
    f['temp'].attrs['units'] = 'K'
    f['temp'].attrs['x'] = np.arange(3)
    f['same'] = np.arange(10)
    f['refs'] = np.array([f['temp'].ref, f['same'].ref], dtype=h5py.ref_dtype)
    f['kind'] = 1
"""
SECOND = """
with h5py.File(sys.argv[1], 'a') as f:
    f['temp'][3, 4] = -1
    f['temp'][9, 19] = np.nan
    f['big'][250:253, 7] = [1, 2, 3.5]
    f['big'].resize((310, 100))
    f['g/text'][1] = 'changed\\n'
    f['g/pairs'][2] = (3, 4.5)
    del f['old'], f['soft'], f['kind']
    f['new/data'] = np.ones((2, 3), 'u1')
    f['soft'] = h5py.SoftLink('/g')
    f['temp'].attrs['units'] = 'C'
    f['temp'].attrs['y'] = 5
    del f['temp'].attrs['x']
    f['refs'][1] = f['temp'].ref
    f['outside'] = h5py.ExternalLink('o.h5', '/z')
    f.create_group('kind')
"""
# Positions and values are those of the two programs above.
TOLD = """\
/big: changed
  shape: (300, 100) -> (310, 100)
  elements: 3 of 30000 differ, in 1 of 300 chunks; the first at (250, 7); by at most 3.5 at (252, 7), on average 2.16667
    (250, 7): 0 -> 1
    (251, 7): 0 -> 2
/g/pairs: changed
  elements: 1 of 5 differ; the first at (2,)
    (2,): {x: 0, y: 0} -> {x: 3, y: 4.5}
/g/text: changed
  elements: 1 of 3 differ; the first at (1,)
    (1,): "b" -> "changed\\n"
/kind: replaced, dataset of int64 () -> group
/new: added, group
/new/data: added, dataset of uint8 (2, 3)
/old: removed, dataset of int64 (2,)
/outside: added, link to o.h5: /z
/refs: changed
  elements: 1 of 2 differ; the first at (1,)
    (1,): reference to /same -> reference to /temp
/soft: replaced, link to /temp -> link to /g
/temp: changed
  elements: 2 of 200 differ; the first at (3, 4); by at most 65 at (3, 4), on average 65
    (3, 4): 64 -> -1
    (9, 19): 199 -> nan
  attribute 'units': "K" -> "C"
  attribute 'x' removed: [0, 1, 2]
  attribute 'y' added: 5
"""


@pytest.fixture(scope="module")
def story(programs, tmp_path_factory):
    path = tmp_path_factory.mktemp("diff") / "story.h5"
    for code in FIRST, SECOND:
        done = programs.python(code, path)
        assert done.returncode == 0, done.stderr
    return path


def by_path(text):
    """The paragraphs of the objects, in the order of their paths."""
    parts = []
    for line in text.splitlines(keepends=True):
        if line.startswith(" "):
            parts[-1] += line
        else:
            parts.append(line)
    return "".join(sorted(parts, key=lambda part: part.split(":")[0]))


def test_each_kind_of_difference_is_told(story):
    for words in ([f"{story}@1"], [f"{story}@1", story], [f"{story}@1", "@2"], [f"{story}@#1", f"{story}@~0"]):
        assert by_path(h5cow("diff", "-n", 2, *words, code=1)) == TOLD


def test_the_other_way_round(story):
    told = h5cow("diff", f"{story}@2", "@1", code=1)
    assert "/old: added, dataset of int64 (2,)\n" in told and "/new: removed, group\n" in told
    assert "/kind: replaced, group -> dataset of int64 ()\n" in told
    assert """  attribute 'units': "C" -> "K"\n""" in told and "  attribute 'x' added: [0, 1, 2]\n" in told


def test_nothing_differs(story):
    for words in ([f"{story}@2"], [f"{story}@1", "@1"], [story, story], [f"{story}@1", "@2", "/same"]):
        assert h5cow("diff", *words) == ""
    assert json.loads(h5cow("diff", "--json", story))["objects"] == []


def test_one_object_and_what_is_below_it(story):
    told = h5cow("diff", f"{story}@1", "@2", "/g", code=1)
    assert sorted(line for line in told.splitlines() if line[0] == "/") == ["/g/pairs: changed", "/g/text: changed"]
    assert h5cow("diff", f"{story}@1", "@2", "/new/data", code=1) == "/new/data: added, dataset of uint8 (2, 3)\n"
    assert "there is no '/nowhere' in" in h5cow("diff", f"{story}@1", "@2", "/nowhere", code=2)


def test_stat_counts(story):
    told = h5cow("diff", "--stat", f"{story}@1", "@2", code=1)
    rows = {line.split()[0]: line.split(None, 1)[1].strip() for line in told.split("\n\n")[0].splitlines()[1:]}
    assert rows["/big"].split() == "changed 3 of 30000 3.5 2.16667 shape".split()
    assert rows["/temp"].split() == "changed 2 of 200 65 65 3 attributes".split()
    assert rows["/kind"] == "replaced" and rows["/old"] == "removed" and rows["/new/data"] == "added"
    told_one_by_one = h5cow("diff", f"{story}@1", "@2", code=1)
    assert len(rows) == sum(not line.startswith(" ") for line in told_one_by_one.splitlines())
    assert told.splitlines()[-1] == "7 changed, 3 added, 1 removed; 8 elements differ"
    assert h5cow("diff", "--stat", story, "@2") == "" and h5cow("diff", "-s", "-q", f"{story}@1", code=1) == ""


def test_quiet_says_nothing(story):
    assert h5cow("diff", "-q", f"{story}@1", code=1) == ""


def test_as_json(story):
    told = json.loads(h5cow("diff", "--json", "-n", 1, f"{story}@1", code=1))
    assert told["before"] == {"file": str(story), "version": "1"}
    assert told["after"] == {"file": str(story), "version": "2"}
    objects = {item.pop("path"): item for item in told["objects"]}
    assert objects["/big"] == {
        "change": "changed",
        "shape": {"before": [300, 100], "after": [310, 100]},
        "elements": {
            "changed": 3, "compared": 30000, "chunks_changed": 1, "chunks": 300, "first": [250, 7], "largest": 3.5,
            "largest_at": [252, 7], "largest_relative": None, "mean": pytest.approx(6.5 / 3),
            "values": [{"at": [250, 7], "before": "0", "after": "1"}],
        },
    }
    assert objects["/kind"] == {"change": "replaced", "before": "dataset of int64 ()", "after": "group"}
    assert {"name": "y", "change": "added", "after": "5"} in objects["/temp"]["attributes"]
    assert objects["/temp"]["elements"]["largest_relative"] == pytest.approx(65 / 64)


def test_json_has_no_number_for_what_is_infinite(programs, tmp_path):
    """Some parsers take Infinity, which is not JSON; Python's is one of them."""
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    path = tmp_path / "infinite.h5"
    code = "with h5py.File(sys.argv[1], 'a') as f: f.require_dataset('x', (2,), 'f8')[:] = eval(sys.argv[2])"
    for values in "[np.inf, 0]", "[-np.inf, 0]", "[1e308, 0]", "[-1e308, 0]":
        assert programs.python(code, path, values).returncode == 0
    for before, after in (1, 2), (2, 3), (3, 4):
        for verb in (["diff", f"{path}@{before}", f"@{after}"], ["show", f"{path}@{after}"]):
            code = int(verb[0] == "diff")
            told = json.loads(h5cow(verb[0], "--json", *verb[1:], code=code), parse_constant=refuse)
            found = told["objects"][0]["elements"]
            assert found["largest"] is None and found["mean"] is None and found["largest_at"] == [0]
            assert "by at most inf at (0,), on average inf" in h5cow(*verb, code=code)


def test_show_tells_who_made_a_version_and_what_of_it(programs, tmp_path):
    path = tmp_path / "show.h5"
    code = "with h5py.File(sys.argv[1], 'a') as f: f.require_dataset('x', (3,), 'i4')[1] = int(sys.argv[2])"
    for value, message in ((1, "first"), (2, "second \x1b[31m")):
        options = "message=" + message.replace("\x1b", "%1B")
        assert programs.python(code, path, value, options=options).returncode == 0
    told = h5cow("show", "--utc", path)
    assert told.startswith("version 2\nmade of 1\ntime    20") and "\nmessage second \\x1b[31m\n" in told
    assert told.endswith("/x: changed\n  elements: 1 of 3 differ; the first at (1,); by at most 1 at (1,), on average 1\n")
    assert "/x: added, dataset of int32 (3,)\n" in h5cow("show", f"{path}@1")
    told = json.loads(h5cow("show", "--json", f"{path}@1"))
    assert (told["name"], told["parent"], told["message"]) == ("1", None, "first")
    assert [item["path"] for item in told["objects"]] == ["/x"]
    assert h5cow("show", path, "/x").endswith("on average 1\n")


def test_a_region_is_the_same_one_when_its_dataset_has_grown(programs, tmp_path):
    path = tmp_path / "grown.h5"
    first = """
with h5py.File(sys.argv[1], 'w') as f:
    t = f.create_dataset('t', (10, 10), 'i4', maxshape=(None, None), chunks=(5, 5))
    regions = [t.regionref[2:5, 3], t.regionref[...], t.regionref[np.eye(10, dtype=bool)]]
    f.create_dataset('region', data=regions, dtype=h5py.regionref_dtype)
    f['region'].attrs.create('one', regions[0], dtype=h5py.regionref_dtype)
    f.create_dataset('other', data=regions[0], dtype=h5py.regionref_dtype)
"""
    second = """
with h5py.File(sys.argv[1], 'a') as f:
    f['t'].resize((20, 20))
    f['other'][()] = f['t'].regionref[2:6, 3]
"""
    for code in first, second:
        done = programs.python(code, path)
        assert done.returncode == 0, done.stderr
    for version in 1, 2:
        h5cow("export", f"{path}@{version}", tmp_path / f"{version}.h5")
    for words in ([f"{path}@1", "@2"], [tmp_path / "1.h5", tmp_path / "2.h5"]):
        assert h5cow("diff", "-s", *words, code=1).count("changed  ") == 2, h5cow("diff", *words, code=1)
        assert h5cow("diff", *words, "/region") == ""
        assert "1 of 1 differ" in h5cow("diff", *words, "/other", code=1)


def test_numbers_within_a_tolerance(programs, tmp_path):
    path = tmp_path / "close.h5"
    code = "with h5py.File(sys.argv[1], 'a') as f: f.require_dataset('x', (4,), 'f8')[:] = eval(sys.argv[2])"
    for values in "[1, 100, -0., np.nan]", "[1.01, 102, 0., np.nan]":
        assert programs.python(code, path, values).returncode == 0
    assert "2 of 4 differ" in h5cow("diff", f"{path}@1", code=1)
    assert "1 of 4 differ; the first at (1,)" in h5cow("diff", "-a", "0.02", f"{path}@1", code=1)
    assert h5cow("diff", "-r", "0.021", f"{path}@1") == ""
    assert h5cow("diff", "--absolute=2", f"{path}@1") == ""


@pytest.mark.parametrize("words, sentence", [
    ([], "which files?"), (["a", "b", "/c", "d"], "it wants two states"), (["-n", "few", "a"], "--values wants a number"),
    (["-a", "-1", "a"], "--absolute wants a number"), (["a", "b", "c"], "begins with '/'"), (["--what", "a"], "no option"),
    (["nowhere.h5"], "cannot read 'nowhere.h5'"),
])
def test_wrong_usage(words, sentence):
    assert sentence in h5cow("diff", *words, code=2)


def test_a_version_that_is_not_there(story):
    assert "7" in h5cow("diff", f"{story}@7", code=2)
    assert "7" in h5cow("show", f"{story}@7", code=2)


def test_plain_files(story, tmp_path):
    plain = tmp_path / "plain.h5"
    h5cow("export", f"{story}@1", plain)
    assert h5cow("diff", plain, f"{story}@1") == ""
    assert by_path(h5cow("diff", "-n", 2, plain, story, code=1)) == TOLD.replace(", in 1 of 300 chunks", "")
    assert "has no history" in h5cow("show", plain, code=2)


def test_what_cannot_be_read_is_said_and_the_rest_is_compared(programs, story, tmp_path):
    path = tmp_path / "damaged.h5"
    shutil.copy(story, path)
    with h5py.File(path, "r") as f:
        for pool in f["_versioned_data/raw"].values():
            if pool.dtype == np.dtype("f4"):
                places = [pool.id.get_chunk_info(i) for i in range(pool.id.get_num_chunks())]
    with open(path, "r+b") as f:  # the last chunk that was written is the one that version 2 changed
        f.seek(places[-1].byte_offset + 40)
        f.write(b"damage")
    told = h5cow("diff", f"{path}@1", code=2)
    assert "/big: changed\n" in told and "  ! elements cannot be compared: " in told and "checksum" in told
    assert "/temp: changed\n" in told and "/outside: added" in told


KINDS = {
    "i2": lambda r, n: r.integers(-5, 5, n).astype("i2"),
    "u8": lambda r, n: r.integers(0, 2**64 - 1, n, dtype="u8", endpoint=True),
    "f4": lambda r, n: r.choice(np.array([0, -0.0, 1.5, np.nan, np.inf, -3e30], "f4"), n),
    ">f8": lambda r, n: r.normal(size=n).round(1).astype(">f8"),
    "S5": lambda r, n: r.choice(np.array([b"", b"a", b"abcde"]), n).astype("S5"),
    "pair": lambda r, n: np.array(list(zip(r.integers(0, 3, n), r.integers(0, 2, n) / 2)), dtype=[("x", "i1"), ("y", "f8")]),
    "text": lambda r, n: r.choice(np.array(["", "a", "bb"], dtype=object), n),
}
RANDOM = """
import json
with h5py.File(sys.argv[1], 'a') as f:
    for name, shape, chunks, key in json.loads(sys.argv[2]):
        values = np.load(sys.argv[3], allow_pickle=True)[key]
        text = h5py.string_dtype() if values.dtype == object else values.dtype
        if name not in f:
            f.create_dataset(name, shape, text, chunks=tuple(chunks) if chunks else None,
                             maxshape=(None,) * len(shape) if chunks else None)
        elif tuple(shape) != f[name].shape:
            f[name].resize(shape)
        f[name][...] = values
"""


def different(a, b):
    """Where two arrays of one type differ, by value."""
    if a.dtype.kind == "f":
        return ~((a == b) | (np.isnan(a) & np.isnan(b)))
    return np.asarray(a != b, bool)


def random_history(programs, folder, number):
    """A file with versions, a plain twin of each, and the arrays of each."""
    r, versions = np.random.default_rng([seed(), number]), []
    path, state, layout = folder / "random.h5", {}, {}
    for version in range(1, 6):
        for kind, values in KINDS.items():
            rank = layout.setdefault(kind, (int(r.integers(1, 4)), bool(r.integers(0, 4))))[0]
            chunked = layout[kind][1]
            if kind not in state or (chunked and r.random() < 0.3):
                shape = tuple(int(n) for n in r.integers(1, 14, rank))
                old, state[kind] = state.get(kind), values(r, int(np.prod(shape))).reshape(shape)
                if old is not None:  # what was there stays
                    both = tuple(slice(min(a, b)) for a, b in zip(old.shape, shape))
                    state[kind] = state[kind].copy()
                    state[kind][both] = old[both]
            elif r.random() < 0.6:
                state[kind] = state[kind].copy()
                for _ in range(int(r.integers(1, 6))):
                    at = tuple(int(r.integers(0, n)) for n in state[kind].shape)
                    state[kind][at] = values(r, 1)[0]
        versions.append(dict(state))
        np.savez(folder / "values.npz", **state)
        steps = [(k, v.shape, [3] * v.ndim if layout[k][1] else None, k) for k, v in state.items()]
        code = programs.code(RANDOM)
        for way, file in ((programs.connector, path), (programs.stock, folder / f"twin{version}.h5")):
            if version > 1 and way == programs.stock:
                shutil.copy(folder / f"twin{version - 1}.h5", file)
            done = way(sys.executable, "-c", code, file, json.dumps(steps), folder / "values.npz")
            assert done.returncode == 0, done.stderr
    return path, versions


@pytest.mark.parametrize("number", range(4))
def test_random_pairs_of_versions_against_numpy_and_h5diff(programs, tmp_path, number):
    print(again())
    path, versions = random_history(programs, tmp_path, number)
    pairs = random.Random(seed() + number).sample([(a, b) for a in range(1, 6) for b in range(1, 6) if a != b], 8)
    for a, b in pairs:
        done = programs.stock(H5COW, "diff", "--json", f"{path}@{a}", f"@{b}")
        twins = programs.stock(H5COW, "diff", "--json", tmp_path / f"twin{a}.h5", tmp_path / f"twin{b}.h5")
        assert done.returncode == twins.returncode <= 1, done.stderr + twins.stderr
        for told in done, twins:
            objects = {item["path"][1:]: item for item in json.loads(told.stdout)["objects"]}
            for kind in KINDS:
                x, y = versions[a - 1][kind], versions[b - 1][kind]
                both = tuple(slice(min(m, n)) for m, n in zip(x.shape, y.shape))
                differs = different(x[both], y[both])
                found = objects.pop(kind, {})
                shapes = {"before": list(x.shape), "after": list(y.shape)}
                assert found.get("shape", shapes) == shapes and ("shape" in found) == (x.shape != y.shape), (kind, a, b)
                elements = found.get("elements", {"changed": 0})
                assert elements["changed"] == differs.sum(), (kind, a, b)
                if differs.any():
                    assert elements["first"] == [int(n) for n in np.argwhere(differs)[0]]
            assert objects == {}
        same_shapes = all(versions[a - 1][kind].shape == versions[b - 1][kind].shape for kind in KINDS)
        native = programs.stock("h5diff", tmp_path / f"twin{a}.h5", tmp_path / f"twin{b}.h5")
        if same_shapes:  # h5diff does not compare datasets of other shapes, and answers 0
            assert native.returncode == done.returncode, (a, b, native.stdout, done.stdout)


def blamed(versions, kind, last):
    """For each element the number of the version that gave it its value: what numpy says."""
    result = np.ones(versions[last - 1][kind].shape, int)
    for position in np.ndindex(result.shape):
        version = last
        while version > 1:
            older, newer = versions[version - 2][kind], versions[version - 1][kind]
            if any(p >= n for p, n in zip(position, older.shape)):
                break
            if different(np.array([older[position]], older.dtype), np.array([newer[position]], older.dtype))[0]:
                break
            version -= 1
        result[position] = version
    return result


@pytest.mark.parametrize("number", range(2))
def test_blame_of_random_histories_against_numpy(programs, tmp_path, number):
    print(again())
    path, versions = random_history(programs, tmp_path, 100 + number)
    for last in (5, 3):
        for kind in KINDS:
            expected, found = blamed(versions, kind, last), {}
            for run in json.loads(h5cow("blame", "--json", "-s", ",".join("0" * expected.ndim), f"{path}@{last}", f"/{kind}")):
                first, stop = (int(np.ravel_multi_index(run[key], expected.shape)) for key in ("first", "last"))
                assert run["elements"] == stop - first + 1
                found.update(dict.fromkeys(range(first, stop + 1), run["version"]["number"]))
            assert [found[i] for i in range(expected.size)] == expected.ravel().tolist(), (kind, last)
            whole = json.loads(h5cow("blame", "--json", f"{path}@{last}", f"/{kind}"))
            with h5py.File(tmp_path / "twin1.h5") as f:
                cut = f[kind].chunks is not None  # into chunks of three, by the program
            if cut and "chunks" in whole[0]:
                shapes = {v[kind].shape for v in versions[:last]}
                grid = [-(-n // 3) for n in expected.shape]
                chunks = {}
                for run in whole:
                    at = [int(np.ravel_multi_index([n // 3 for n in run[key]], grid)) for key in ("first", "last")]
                    chunks.update(dict.fromkeys(range(at[0], at[1] + 1), run["version"]["number"]))
                assert set(chunks) == set(range(int(np.prod(grid))))
                for number, version in chunks.items():
                    place = np.unravel_index(number, grid)
                    box = tuple(slice(3 * n, 3 * n + 3) for n in place)
                    newest = expected[box].max()
                    # a chunk is another one with other zeros (-0 equals 0), and an edge chunk where the extent is another
                    before, after = (versions[max(0, v)][kind] for v in (version - 2, version - 1))
                    other = len(shapes) > 1 or after.dtype.kind == "f" and before[box].tobytes() != after[box].tobytes()
                    assert version >= newest if other else version == newest, (kind, last, place)


def test_blame_names_the_box_and_who_wrote_it(programs, tmp_path):
    path = tmp_path / "blame.h5"
    code = "with h5py.File(sys.argv[1], 'a') as f: f.require_dataset('x', (200, 200), 'i4', chunks=(100, 100))[eval(sys.argv[2])] = 7"
    for where, message in (("np.s_[:]", "all"), ("np.s_[120, 3:5]", "two")):
        assert programs.python(code.replace("= 7", "= 7 + len(sys.argv[2])"), path, where, options=f"message={message}").returncode == 0
    lines = h5cow("blame", "--utc", path, "/x").splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == ["(0, 0)", "(100, 0)", "(100, 100)"]
    assert [line.split()[-1] for line in lines[1:]] == ["all", "two", "all"]
    lines = h5cow("blame", "-s", "120,2", "-c", "1,4", path, "/x").splitlines()
    assert [line.split("  ")[:3] for line in lines[1:]] == [["(120, 2)"] * 2 + [""], ["(120, 3)", "(120, 4)", ""], ["(120, 5)"] * 2 + [""]]
    assert h5cow("blame", f"{path}@1", "/x", "--json").count('"first"') == 1


@pytest.mark.parametrize("words, sentence", [
    (["-s", "1", "FILE", "/temp"], "--start wants 2 numbers"), (["-s", "1,x", "FILE", "/temp"], "--start wants 2 numbers"),
    (["-s", "1,2,3", "FILE", "/temp"], "--start wants 2 numbers"), (["-c", "11,1", "FILE", "/temp"], "larger than the dataset"),
    (["-s", "10,0", "FILE", "/temp"], "10 elements in dimension 0"), (["-s", "0,21", "FILE", "/temp"], "20 elements in dimension 1"),
    (["-c", "1,0", "FILE", "/temp"], "--count is 0 in dimension 1"),
    (["FILE", "/g"], "it is no dataset"), (["FILE", "/nowhere"], "cannot be looked at"), (["FILE", "temp"], "begins with '/'"),
    (["FILE"], "a file and the path"), (["FILE@9", "/temp"], "9"),
])
def test_blame_of_what_is_not_there(story, words, sentence):
    assert sentence in h5cow("blame", *[word.replace("FILE", str(story)) for word in words], code=2)


def test_a_file_that_is_being_written(programs, tmp_path):
    """The newest commit of a program that goes on is compared; what it has not committed is not."""
    path = tmp_path / "live.h5"
    code = """
        f = h5py.File(sys.argv[1], 'w')
        f['x'] = np.zeros(1000)
        f.close()
        f = h5py.File(sys.argv[1], 'a')
        f['x'][5] = 1
        f.flush()
        f['x'][6] = 1
        import subprocess
        done = subprocess.run([sys.argv[2], 'diff', '-n', '9', sys.argv[1] + '@1'], env={}, capture_output=True, text=True)
        print(done.stdout, done.stderr)
        assert done.returncode == 1
    """
    done = programs.python(code, path, H5COW, errors=False)
    assert done.returncode == 0, done.stderr
    assert "1 of 1000 differ" in done.stdout and "(5,): 0 -> 1" in done.stdout


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind here")
def test_what_is_stored_alike_is_not_decoded_to_be_compared(tmp_path):
    """Instructions are counted: an export decodes each chunk once, to check it. So does this, and nothing else of the kind."""
    with h5py.File(tmp_path / "p.h5", "w") as f:
        data = np.cumsum(np.random.default_rng(1).normal(size=(64, 8192)), axis=1).round(2)
        f.create_dataset("gzip", data=data, chunks=(1, 8192), compression="gzip", compression_opts=1, shuffle=True)
        f["contiguous"] = data[:16]

    def instructions(*words):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--vgdb=no", H5COW, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, env=STOCK, cwd=tmp_path, timeout=WAITING)
        assert done.returncode == 0 and done.stdout == "", done.stdout + done.stderr
        return int(re.search(r"Collected : ([0-9]+)", done.stderr)[1])

    h5cow("import", tmp_path / "p.h5", tmp_path / "h.h5")
    exported = instructions("export", "h.h5", "e.h5")
    assert instructions("diff", "h.h5@1", "e.h5") < 1.5 * exported


def test_numbers_are_compared_as_numbers_where_their_bytes_differ(tmp_path):
    """Zeros of both signs, NaNs of any bits, both byte orders, numbers in chunks with other filters, or in an edge chunk."""
    kinds = {">f8": 0.5, "<f4": 0.25, ">i2": 1, "<u8": 2**63, "<f2": 2.0}
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000002], "u8").view("f8")
    with h5py.File(tmp_path / "a.h5", "w") as a, h5py.File(tmp_path / "b.h5", "w") as b:
        for f, sign, other in ((a, 1, 0), (b, -1, 1)):
            f["zeros"] = np.full(9, sign * 0.0)
            f["nan"] = odd[[other, 1 - other, other]]
            f.create_dataset("edge", data=np.arange(11.0), chunks=(4,), **({"compression": "gzip"} if other else {}))
            f.create_dataset("kept", data=np.arange(12.0) + other * (np.arange(12) == 9), chunks=(4,), compression="gzip")
            f.create_dataset("sparse", (40,), "f8", chunks=(4,))[other * 20:other * 20 + 4] = [0, 0, 3, 0]
            for kind, step in kinds.items():
                data = np.zeros((5, 7), kind)
                data[3, 4] = other * step
                f.create_dataset(kind, data=data, chunks=(2, 3))
                f["contiguous " + kind] = data
    for words in (["a.h5", "b.h5"], ["h.h5@1", "b.h5"], ["a.h5", "i.h5@1"]):
        if words[0] == "h.h5@1":
            h5cow("import", tmp_path / "a.h5", tmp_path / "h.h5")
            h5cow("import", tmp_path / "b.h5", tmp_path / "i.h5")
        told = json.loads(h5cow("diff", "--json", *words, code=1, cwd=tmp_path))["objects"]
        found = {o["path"]: (o["elements"]["changed"], o["elements"]["first"], o["elements"]["compared"]) for o in told}
        expected = {"/kept": (1, [9], 12), "/sparse": (2, [2], 40)}
        for kind in kinds:
            expected["/" + kind] = expected["/contiguous " + kind] = (1, [3, 4], 35)
        assert found == expected, words
