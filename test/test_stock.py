"""What programs without the connector see: the head and every version, with stock h5py, h5dump and netCDF.

A scenario is a list of sessions, each a list of steps. `test_stock.py write FILE SCENARIO` carries it out with plain h5py,
through the connector, in a process of its own: one session, one version. The same steps are carried out here on numpy
arrays; those are what must be read, never anything that the connector answered.
"""

import json
import os
import pathlib
import re
import shutil
import sys

import h5py
import numpy as np
import pytest

OLD_H5DUMP = os.environ.get("H5COW_OLD_H5DUMP")


def numbers(seed, shape, dtype):
    """Values that a seed stands for. Few different ones, so that chunks repeat now and then."""
    random = np.random.default_rng(seed)
    return random.integers(0, 3 if seed % 5 == 0 else 100, shape).astype(dtype)


def box(bounds):
    return tuple(slice(*bound) for bound in bounds)


def write(path, sessions):
    """The unaware program."""
    for session in sessions:
        with h5py.File(path, "a") as f:
            for step, name, *rest in session:
                if step == "create":
                    options, shape, seed = rest
                    data = numbers(seed, shape, options["dtype"]) if seed is not None else None
                    options = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
                    f.create_dataset(name, shape, data=data, **options)
                elif step == "write":
                    bounds, seed = rest
                    f[name][box(bounds)] = numbers(seed, f[name][box(bounds)].shape, f[name].dtype)
                elif step == "resize":
                    f[name].resize(rest[0])
                elif step == "attribute":
                    f[name].attrs[rest[0]] = rest[1]
                elif step == "delete":
                    del f[name]


def states(sessions):
    """What the file holds after each session: name -> array."""
    now, fill, result = {}, {}, []
    for session in sessions:
        for step, name, *rest in session:
            if step == "create":
                options, shape, seed = rest
                fill[name] = options.get("fillvalue", 0)
                dtype = np.dtype(options["dtype"])
                now[name] = numbers(seed, shape, dtype) if seed is not None else np.full(shape, fill[name], dtype)
            elif step == "write":
                bounds, seed = rest
                now[name][box(bounds)] = numbers(seed, now[name][box(bounds)].shape, now[name].dtype)
            elif step == "resize":
                old, now[name] = now[name], np.full(rest[0], fill[name], now[name].dtype)
                both = tuple(slice(0, min(a, b)) for a, b in zip(old.shape, rest[0]))
                now[name][both] = old[both]
            elif step == "delete":
                del now[name]
        result.append({name: array.copy() for name, array in now.items()})
    return result


def make(programs, path, sessions):
    """Write through the connector; what every version must hold, the newest last."""
    scenario = path.with_suffix(".json")
    scenario.write_text(json.dumps(sessions))
    done = programs.connector(sys.executable, __file__, "write", path, scenario)
    assert done.returncode == 0, done.stderr
    return states(sessions)


def read_h5py(programs, path, roots):
    """Every dataset below each of the groups, read by a process that has never heard of the connector."""
    out = path.with_suffix(".npz")
    done = programs.stock(sys.executable, __file__, "read", path, out, *roots)
    assert done.returncode == 0, done.stderr
    read = [{} for _ in roots]
    with np.load(out) as arrays:
        for key, array in arrays.items():
            number, name = key.split("|", 1)
            read[int(number)][name] = array
    return read


def read_into(path, out, *roots):
    arrays = {}
    with h5py.File(path, "r") as f:
        for number, root in enumerate(roots):

            def visit(name, thing, number=number):
                if isinstance(thing, h5py.Dataset) and not name.startswith("_versioned_data"):
                    arrays[f"{number}|{name}"] = thing[...]

            f[root].visititems(visit)
    np.savez(out, **arrays)


def read_h5dump(programs, path, name, dtype, shape, command="h5dump"):
    """One dataset through h5dump's binary output."""
    raw = path.with_suffix(".raw")
    raw.unlink(missing_ok=True)
    done = programs.stock(command, "-d", name, "-b", "LE", "-o", raw, path)
    assert done.returncode == 0, done.stderr
    found = re.search(r"DATASPACE +SIMPLE \{ \( ([\d, ]+) \)", done.stdout)
    assert found and tuple(map(int, found[1].split(","))) == tuple(shape), done.stdout
    return np.fromfile(raw, np.dtype(dtype).newbyteorder("<")).reshape(shape)


def versions(count):
    return [f"/_versioned_data/versions/{number}" for number in range(1, count + 1)]


def check(programs, path, expected, h5dump_of=None):
    """Head and all versions with h5py; the versions numbered in h5dump_of, and the head, with h5dump."""
    roots = versions(len(expected)) + ["/"]
    for root, read, want in zip(roots, read_h5py(programs, path, roots), [*expected, expected[-1]]):
        assert sorted(read) == sorted(want), root
        for name, array in want.items():
            assert read[name].dtype == array.dtype and read[name].shape == array.shape, (root, name)
            assert np.array_equal(read[name], array), (root, name)
    for number in h5dump_of or []:
        for root, want in ((roots[number - 1], expected[number - 1]), ("", expected[-1])):
            for name, array in want.items():
                if array.size:
                    dumped = read_h5dump(programs, path, f"{root}/{name}", array.dtype, array.shape)
                    assert np.array_equal(dumped, array), (root, name)


SHAPES = {1: (400,), 2: (60, 45), 3: (20, 18, 11), 4: (9, 8, 10, 7)}
CHUNKS = {1: (7,), 2: (8, 5), 3: (4, 6, 3), 4: (2, 3, 4, 5)}


def chunked(rank, dtype="<i4", **more):
    return {"dtype": dtype, "chunks": CHUNKS[rank], "maxshape": (None,) * rank, "fillvalue": 7, **more}


def scattered(rank, count, seed):
    """Sessions that each write a few small boxes here and there."""
    random, shape = np.random.default_rng(seed), SHAPES[rank]
    sessions = []
    for number in range(count):
        session = []
        for piece in range(3):
            first = [int(random.integers(0, n)) for n in shape]
            bounds = [(a, min(n, a + int(random.integers(1, 6)))) for a, n in zip(first, shape)]
            session.append(["write", "x", bounds, 1000 * number + piece])
        sessions.append(session)
    return sessions


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_scattered_chunks(programs, tmp_path, rank):
    path = tmp_path / "scattered.h5"
    sessions = [[["create", "x", chunked(rank), SHAPES[rank], 1]], *scattered(rank, 8, rank)]
    check(programs, path, make(programs, path, sessions), h5dump_of=[1, 5, 9])


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_scattered_chunks_of_a_dataset_never_written_whole(programs, tmp_path, rank):
    path = tmp_path / "holes.h5"
    sessions = [[["create", "x", chunked(rank, ">f8", compression="gzip", shuffle=True), SHAPES[rank], None]],
                *scattered(rank, 6, 10 + rank)]
    check(programs, path, make(programs, path, sessions), h5dump_of=[1, 4, 7])


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_resized_datasets(programs, tmp_path, rank):
    """Up in all dimensions, up in one, down, to nothing, and back: what was cut off must not come back."""
    path = tmp_path / "resized.h5"
    shape = SHAPES[rank]
    larger = [2 * n + 3 for n in shape]
    longer = [larger[0] * 3, *larger[1:]]
    smaller = [n // 2 + 1 for n in shape]
    sessions = [
        [["create", "x", chunked(rank), shape, 3]],
        [["resize", "x", larger]],
        [["write", "x", [(n - 5, n) for n in larger], 4]],
        [["resize", "x", longer], ["write", "x", [(longer[0] - 9, longer[0])] + [(0, 3)] * (rank - 1), 5]],
        [["resize", "x", smaller]],
        [["resize", "x", larger]],
        [["resize", "x", [0] * rank]],
        [["resize", "x", shape], ["write", "x", [(0, 4)] * rank, 6]],
        [["resize", "x", smaller], ["resize", "x", shape]],
    ]
    check(programs, path, make(programs, path, sessions), h5dump_of=[2, 4, 5, 6, 9])


def test_growth_in_each_dimension_by_turns(programs, tmp_path):
    path = tmp_path / "turns.h5"
    shape, sessions = [3, 3, 3], [[["create", "x", chunked(3), (3, 3, 3), 1]]]
    for turn in range(12):
        shape = list(shape)
        shape[turn % 3] += 4 + turn
        sessions.append([["resize", "x", shape], ["write", "x", [(n - 2, n) for n in shape], turn]])
    check(programs, path, make(programs, path, sessions), h5dump_of=[7, 13])


def test_many_small_versions(programs, tmp_path):
    path = tmp_path / "many.h5"
    sessions = [[["create", "x", chunked(2), SHAPES[2], 1]]]
    for number in range(60):
        row, column = number * 7 % 60, number * 11 % 45
        sessions.append([["write", "x", [(row, row + 1), (column, column + 1)], number + 2]])
    expected = make(programs, path, sessions)
    changed = [n for n in range(1, len(expected)) if not np.array_equal(expected[n - 1]["x"], expected[n]["x"])]
    kept = [expected[0], *(expected[n] for n in changed)]  # a session that wrote the same value made no version
    assert len(kept) > 50
    check(programs, path, kept, h5dump_of=[2, len(kept) // 2, len(kept)])


@pytest.mark.parametrize(
    "dtype, more",
    [
        ("i1", {}),
        (">u2", {"compression": "gzip", "fletcher32": True}),
        ("<f4", {"shuffle": True}),
        (">f8", {"compression": "lzf"}),
        ("<i8", {"scaleoffset": 0}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value) or "plain",
)
def test_types_and_filters(programs, tmp_path, dtype, more):
    path = tmp_path / "types.h5"
    sessions = [[["create", "x", chunked(2, dtype, **more), SHAPES[2], 5]],
                [["write", "x", [(10, 31), (4, 44)], 6]],
                [["resize", "x", [70, 50]], ["write", "x", [(65, 70), (0, 50)], 8]]]
    expected = make(programs, path, sessions)
    check(programs, path, expected, h5dump_of=None if more.get("compression") == "lzf" else [1, 2, 3])


def test_contiguous_compact_tiny_and_deleted_datasets(programs, tmp_path):
    path = tmp_path / "layouts.h5"
    plain = {"dtype": "<f8"}
    sessions = [
        [["create", "long", plain, (200_000,), 1], ["create", "group/tiny", plain, (5,), 2],
         ["create", "group/wide", plain, (40, 3000), 3]],
        [["write", "long", [(150_000, 150_010)], 4], ["write", "group/tiny", [(2, 3)], 11]],
        [["delete", "group/wide"], ["create", "later", chunked(1), SHAPES[1], 5]],
        [["write", "long", [(0, 200_000)], 6], ["delete", "group/tiny"]],
        [["create", "group/wide", chunked(2), SHAPES[2], 7]],
    ]
    check(programs, path, make(programs, path, sessions), h5dump_of=[1, 2, 3, 5])


def test_groups_attributes_and_links_of_every_version(programs, tmp_path):
    path = tmp_path / "tree.h5"
    done = programs.python(
        """
        path = sys.argv[1]
        with h5py.File(path, 'w') as f:
            g = f.create_group('a/b')
            d = g.create_dataset('d', data=np.arange(5000), chunks=(100,))
            d.attrs['unit'] = 'm'
            f.attrs['title'] = 'one'
            f['hard'] = d
            f['soft'] = h5py.SoftLink('/a/b/d')
            f['relative'] = h5py.SoftLink('a/b')
        with h5py.File(path, 'a') as f:
            f['a/b/d'].attrs['unit'] = 'km'
            f.attrs['title'] = 'two'
            f['a/b/d'][17] = -17
            f.create_group('c')
        with h5py.File(path, 'a') as f:
            f.move('a/b', 'moved')
            del f['soft'], f['hard']
            f['moved/d'].attrs['words'] = ['x', 'yy']
        """,
        path,
    )
    assert done.returncode == 0, done.stderr
    with h5py.File(path, "r") as f:
        one, two, three = (f[root] for root in versions(3))
        first = np.arange(5000)
        second = np.where(first == 17, -17, first)
        assert sorted(one) == ["a", "hard", "relative", "soft"] and one.attrs["title"] == "one"
        assert sorted(two) == ["a", "c", "hard", "relative", "soft"] and two.attrs["title"] == "two"
        assert sorted(three) == ["a", "c", "moved", "relative"] and three.attrs["title"] == "two"
        for root, unit, want in ((one, "m", first), (two, "km", second)):
            assert root["a/b/d"] == root["hard"] == root["soft"]  # one object, and the version's own
            assert root["soft"].attrs["unit"] == unit and np.array_equal(root["soft"][...], want)
            assert root["relative"]["d"] == root["hard"]
        assert one["hard"] != two["hard"]
        assert np.array_equal(three["moved/d"][...], second) and list(three["moved/d"].attrs["words"]) == ["x", "yy"]
        assert three.get("relative") is None and three["a"].keys() == set()


def test_compounds_strings_and_sequences(programs, tmp_path):
    path = tmp_path / "kinds.h5"
    done = programs.python(
        """
        path = sys.argv[1]
        table = np.dtype([('id', '>i2'), ('name', 'S5'), ('place', '<f4', (2,))])
        with h5py.File(path, 'w') as f:
            t = f.create_dataset('t', (50,), table, chunks=(8,), maxshape=(None,))
            t['id'] = np.arange(50)
            t['name'] = b'abc'
            f.create_dataset('s', data=['a', 'bb', ''], dtype=h5py.string_dtype(), chunks=(2,), maxshape=(None,))
            v = f.create_dataset('v', (4,), h5py.vlen_dtype('i4'), chunks=(2,))
            v[0], v[3] = [1, 2, 3], [4]
        with h5py.File(path, 'a') as f:
            f['t']['name'] = b'xyz'
            f['s'].resize((5,))
            f['s'][1] = 'changed'
            f['v'][3] = [5, 6]
        """,
        path,
    )
    assert done.returncode == 0, done.stderr
    with h5py.File(path, "r") as f:
        for root, name, strings, last in ((*versions(1), b"abc", [b"a", b"bb", b""], [4]),
                                          ("/", b"xyz", [b"a", b"changed", b"", b"", b""], [5, 6]),
                                          (versions(2)[1], b"xyz", [b"a", b"changed", b"", b"", b""], [5, 6])):
            tree = f[root]
            assert np.array_equal(tree["t"]["id"], np.arange(50)) and set(tree["t"]["name"]) == {name}
            assert list(tree["s"][...]) == strings
            assert [list(v) for v in tree["v"][...]] == [[1, 2, 3], [], [], last]


CDL = """netcdf made {
dimensions:
    time = UNLIMITED ;
    x = 4 ;
variables:
    float temp(time, x) ;
        temp:units = "K" ;
    int x(x) ;
data:
    temp = 1, 2, 3, 4, 5, 6, 7, 8 ;
    x = 10, 20, 30, 40 ;
}
"""


def ncdump_values(programs, path, variable):
    done = programs.stock("ncdump", "-p", "9,17", "-v", variable, path)
    assert done.returncode == 0, done.stderr
    name = variable.rpartition("/")[2]
    found = re.findall(rf"^ *{name} =\s*([^;]*);", done.stdout.partition("data:")[2], re.M)
    return [[None if v == "_" else float(v) for v in re.split(r"[,\s]+", values.strip())] for values in found]


@pytest.mark.skipif(not shutil.which("ncgen") or not shutil.which("ncdump"), reason="no netCDF tools")
def test_netcdf_reads_the_head_and_every_version(programs, tmp_path):
    path, cdl = tmp_path / "made.nc", tmp_path / "made.cdl"
    cdl.write_text(CDL)
    done = programs.connector("ncgen", "-4", "-o", path, cdl)
    assert done.returncode == 0, done.stderr
    code = """
import netCDF4, sys
with netCDF4.Dataset(sys.argv[1], 'a') as f:
    f['temp'][2] = [9, 10, 11, 12]
    f['temp'][0, 1] = -2
"""
    done = programs.connector(sys.executable, "-c", code, path)
    assert done.returncode == 0, done.stderr
    first, second = [1, 2, 3, 4, 5, 6, 7, 8], [1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    assert second in ncdump_values(programs, path, "temp")
    # Dimensions are found by object references, which lead stock readers to the head's, as long as it is now.
    assert ncdump_values(programs, path, "/_versioned_data/versions/1/temp") == [first + 4 * [None]]
    assert ncdump_values(programs, path, "/_versioned_data/versions/2/temp") == [second]
    assert ncdump_values(programs, path, "/_versioned_data/versions/2/x") == [[10, 20, 30, 40]]


def test_files_made_by_hdf5_tools(programs, tmp_path):
    """h5repack and h5copy write through the connector; stock h5diff finds nothing."""
    plain, path = tmp_path / "plain.h5", tmp_path / "tools.h5"
    with h5py.File(plain, "w") as f:
        f.create_dataset("x", data=numbers(1, (50, 40), "i4"), chunks=(7, 9), compression="gzip")
        f.create_dataset("y", data=numbers(2, (9000,), "f8"))
    for command in (["h5repack", plain, path], ["h5copy", "-i", plain, "-o", path, "-s", "x", "-d", "z"]):
        done = programs.connector(*command)
        assert done.returncode == 0, done.stderr
    one, two = versions(2)
    for a, b in (("/x", "/x"), ("/y", "/y"), ("/x", "/z"), ("/x", one + "/x"), ("/y", one + "/y"), ("/x", two + "/z")):
        done = programs.stock("h5diff", plain, path, a, b)
        assert done.returncode == 0, (a, b, done.stdout, done.stderr)
    done = programs.stock("h5dump", "-H", "-g", one, path)
    assert "GROUP" in done.stdout and '"z"' not in done.stdout


LINKS = """
with h5py.File("links.h5", "w") as f:
    f["group/data"] = [1, 2, 3]
    f["soft"] = h5py.SoftLink("/group/data")
    f["group/nowhere"] = h5py.SoftLink("/not/there")
    f["group/beside"] = h5py.SoftLink("data")
    f["top"] = h5py.SoftLink("/")
    f["other"] = h5py.ExternalLink("other.h5", "/x")
"""


def test_h5repack_copies_every_kind_of_link_out_of_a_version(programs, tmp_path, monkeypatch):
    """Links that are no hard ones come by H5Lcopy; a soft one leads where it led when it was written."""
    monkeypatch.chdir(tmp_path)
    with h5py.File("other.h5", "w") as f:
        f["x"] = [4, 5]
    programs.python(LINKS, check=True)
    programs.python("with h5py.File('links.h5', 'a') as f: del f['soft']", check=True)
    done = programs.connector("h5repack", "links.h5@1", "copy.h5")
    assert done.returncode == 0, done.stderr
    done = programs.stock("h5repack", "copy.h5", "stock.h5")
    assert done.returncode == 0, done.stderr
    with h5py.File("stock.h5", "r") as f:
        links = {name: f.get(name, getlink=True) for name in ("soft", "group/nowhere", "group/beside", "top", "other")}
        soft = {name: link.path for name, link in links.items() if isinstance(link, h5py.SoftLink)}
        assert soft == {"soft": "/group/data", "group/nowhere": "/not/there", "group/beside": "data", "top": "/"}
        assert (links["other"].filename, links["other"].path) == ("other.h5", "/x")
        assert list(f["soft"]) == [1, 2, 3] and list(f["other"]) == [4, 5]


@pytest.mark.skipif(not OLD_H5DUMP, reason="H5COW_OLD_H5DUMP names no h5dump of HDF5 1.10")
@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_hdf5_1_10_reads_the_head_and_every_version(programs, tmp_path, rank):
    path = tmp_path / "old.h5"
    larger = [2 * n + 3 for n in SHAPES[rank]]
    sessions = [[["create", "x", chunked(rank), SHAPES[rank], 1]], *scattered(rank, 3, 20 + rank),
                [["resize", "x", larger], ["write", "x", [(n - 5, n) for n in larger], 4]],
                [["resize", "x", [n // 2 for n in larger]]]]
    expected = make(programs, path, sessions)
    for root, want in zip([*versions(len(expected)), ""], [*expected, expected[-1]]):
        dumped = read_h5dump(programs, path, f"{root}/x", want["x"].dtype, want["x"].shape, OLD_H5DUMP)
        assert np.array_equal(dumped, want["x"]), root


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], json.loads(pathlib.Path(sys.argv[3]).read_text()))
    else:
        read_into(*sys.argv[2:])
