"""Bad input, damaged files and full disks: one HDF5 error, whose lowest record says what is wrong, where, and what to do.

Never a crash, never a silent fallback to plain HDF5, never a changed file.
"""

import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import pytest
from conftest import H5COW, PLUGINS, STOCK
from waiting import WAITING

TEST = pathlib.Path(__file__).resolve().parent

MAKE = """
with h5py.File(sys.argv[1], 'w') as f:
    f.create_dataset('group/x', data=np.arange(6000, dtype='<i4').reshape(200, 30), chunks=(10, 30), maxshape=(None, 30))
    f.attrs['title'] = 'one'
for number in (2, 3):
    with h5py.File(sys.argv[1], 'a') as f:
        f['group/x'][:10] += 10000 * number
"""
FIRST = np.arange(6000, dtype="<i4").reshape(200, 30)


def at_version(number):
    want = FIRST.copy()
    want[:10] += sum(10000 * n for n in range(2, number + 1))
    return want


@pytest.fixture(scope="module")
def original(programs, tmp_path_factory):
    path = tmp_path_factory.mktemp("bad") / "three.h5"
    done = programs.python(MAKE, path)
    assert done.returncode == 0, done.stderr
    with h5py.File(path, "r") as f:
        assert sorted(f["_versioned_data/versions"]) == ["1", "2", "3"]
    return path


@pytest.fixture
def made(original, tmp_path):
    """Three versions of one file; a copy that a test may damage."""
    return pathlib.Path(shutil.copy(original, tmp_path / "three.h5"))


def lowest(done):
    """The lowest record of each error stack that was printed."""
    found = []
    for stack in re.split(r"HDF5-DIAG: .*\n", done.stderr)[1:]:
        records = re.findall(r"#\d+: .*? in \S+\(\): (.*(?:\n(?! +#| +major).*)*)", stack)
        if records:
            found.append(records[-1])
    return found


def refused(done, *words, exactly_one=True):
    """The program failed, by an error that contains all the words (regular expressions) in its lowest record."""
    assert done.returncode > 0, f"it succeeded\n{done.stdout}{done.stderr}"
    found = lowest(done)
    assert any(all(re.search(word, text, re.I) for word in words) for text in found), (words, found, done.stderr[-3000:])
    if exactly_one:
        assert found.count(found[-1]) == len(found), found


@contextlib.contextmanager
def unchanged(sha256, *paths):
    """The files are bit for bit what they were, and nothing new lies beside them."""
    before = [(sha256(path), sorted(os.listdir(path.parent))) for path in paths]
    yield
    assert [(sha256(path), sorted(os.listdir(path.parent))) for path in paths] == before


# ---- options ---------------------------------------------------------------------------------------------------------


BAD_OPTIONS = [
    ("colour=red", ["colour", "compress", "chunk"]),  # names the key, and the keys there are
    ("threads=0", ["threads", "1", "64"]),
    ("threads=many", ["threads=many"]),
    ("commit=never", ["commit=never", "close", "flush"]),
    ("compress=blosc:rar", ["compress", "rar", "zstd"]),
    ("compress=gzip:12", ["compress", "12", "9"]),
    ("compress=lzf:5:bit", ["compress"]),
    ("compress=zip", ["compress=zip", "blosc", "lzf", "gzip"]),
    ("name=a/b", ["name=a/b", "64 bytes"]),
    ("name=" + 65 * "n", ["name=n", "64 bytes"]),
    ("at", ["at"]),
    ("under_vol=517;under_info={}", ["under_vol", "517", "native"]),
]


@pytest.mark.parametrize("options, words", BAD_OPTIONS)
def test_a_bad_option_is_an_error_that_names_key_and_values(programs, made, sha256, options, words):
    with unchanged(sha256, made):
        for mode in ("r", "r+", "a", "w"):
            done = programs.python("h5py.File(sys.argv[1], sys.argv[2])", made, mode, options=options)
            refused(done, *words, re.escape(options), exactly_one=mode != "a")
        done = programs.python("h5py.File(sys.argv[1], 'w')", made.parent / "new.h5", options=options)
        refused(done, *words)
        done = programs.python("h5py.is_hdf5(sys.argv[1]); h5py.h5f.open(sys.argv[1].encode())", made, options=options)
        refused(done, *words)


TOOLS = ["h5dump -H {}", "h5ls {}", "h5stat {}", "h5diff {} {}", "h5copy -i {} -o {} -s /group/x -d /copy", "ncdump -h {}"]


@pytest.mark.skipif(h5py.version.hdf5_version_tuple >= (2, 0, 0), reason="HDF5 2 cannot be kept from it")
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("options", ["colour=red", "at=99", "at=~x"])
def test_hdf5s_own_tools_do_not_go_on_without_the_connector(programs, made, sha256, options, tool):
    """They try the native connector when a file cannot be opened, and would show the newest state as version 99."""
    with unchanged(sha256, made):
        done = programs.connector(*tool.format(made, made).split(), options=options)
        assert done.returncode > 0 and "group" not in done.stdout.replace(str(made), ""), done.stdout


def test_a_version_that_is_not_there_does_not_keep_others_from_being_opened(programs, made):
    code = """
    for path in sys.argv[1:]:
        try:
            print(h5py.File(path, 'r')['group/x'][...].sum())
        except OSError:
            print('none')
    """
    other = made.parent / "other.h5"
    programs.python("h5py.File(sys.argv[1], 'w')['group/x'] = [7]", other)
    done = programs.python(code, other, made, other, options="at=2")
    assert done.stdout.split() == ["none", str(at_version(2).sum()), "none"], done.stderr


def test_the_under_vol_that_scripts_carry_is_accepted(programs, made):
    done = programs.connector("h5dump", "-H", made, options="under_vol=0;under_info={}")
    assert done.returncode == 0 and "_versioned_data" not in done.stdout, done.stderr


# ---- revisions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["99", "no-such-tag", "~7", "{1999-01-01}"])
def test_a_revision_that_is_not_there_is_an_error_that_names_those_that_are(programs, made, sha256, revision):
    with unchanged(sha256, made):
        done = programs.python("h5py.File(sys.argv[1], 'r')", f"{made}@{revision}")
        refused(done, r"three\.h5|version", "[13~]")
        done = programs.python("h5py.File(sys.argv[1], 'r')", made, options=f"at={revision}")
        refused(done, r"three\.h5|version", "[13~]")


@pytest.mark.parametrize("revision", ["~x", "{yesterday}", "~"])
def test_a_revision_that_makes_no_sense_is_an_error(programs, made, sha256, revision):
    with unchanged(sha256, made):
        done = programs.python("h5py.File(sys.argv[1], 'r')", made, options=f"at={revision}")
        refused(done, re.escape(revision))


def test_a_revision_of_a_file_without_history_is_an_error(programs, tmp_path, sha256):
    plain = tmp_path / "plain.h5"
    with h5py.File(plain, "w") as f:
        f["x"] = 1
    with unchanged(sha256, plain):
        refused(programs.python("h5py.File(sys.argv[1], 'r')", f"{plain}@1"), r"plain\.h5", exactly_one=False)


@pytest.mark.parametrize("mode", ["r+", "a"])
def test_a_version_cannot_be_opened_for_writing(programs, made, sha256, mode):
    with unchanged(sha256, made):
        done = programs.python(f"h5py.File(sys.argv[1], {mode!r})", f"{made}@2")
        refused(done, "version", "read|writ", exactly_one=mode == "r+")
        done = programs.python(f"h5py.File(sys.argv[1], {mode!r})", made, options="at=2")
        refused(done, "version", "read|writ", exactly_one=mode == "r+")


@pytest.mark.parametrize("mode", ["w", "x"])
def test_a_version_cannot_be_created_anew(programs, made, sha256, mode):
    with unchanged(sha256, made):
        done = programs.python(f"h5py.File(sys.argv[1], {mode!r})", f"{made}@2")
        assert done.returncode > 0 or pathlib.Path(f"{made}@2").exists()
        if done.returncode == 0:  # a literal file of that name is allowed to be made; the history is not touched
            pathlib.Path(f"{made}@2").unlink()


@pytest.mark.parametrize(
    "change",
    [
        "f['group/x'][0, 0] = 1",
        "f['group/x'].resize((5, 30))",
        "f['group/x'].id.write_direct_chunk((0, 0), bytes(1200))",
        "f['group/x'].attrs['a'] = 1",
        "f.attrs['title'] = 'other'",
        "f.create_group('new')",
        "f.create_dataset('new', data=[1])",
        "del f['group']",
        "f.move('group', 'other')",
        "f['soft'] = h5py.SoftLink('/x')",
    ],
)
def test_nothing_in_a_version_can_be_changed(programs, made, sha256, change):
    with unchanged(sha256, made):
        done = programs.python(f"f = h5py.File(sys.argv[1], 'r')\n{change}", f"{made}@2")
        assert done.returncode > 0 and "Error" in done.stderr, done.stderr
        assert any(re.search("read|writ", text, re.I) for text in lowest(done)), done.stderr


# ---- files that are not what they should be --------------------------------------------------------------------------


@pytest.mark.parametrize("part", [7, 100, 0.3, 0.7])
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_truncated_file_is_refused(programs, made, sha256, part, mode):
    size = made.stat().st_size
    os.truncate(made, part if isinstance(part, int) else int(size * part))
    with unchanged(sha256, made):
        done = programs.python(f"h5py.File(sys.argv[1], {mode!r})['group/x'][...]", made)
        refused(done, "truncated|signature|not.* HDF5|superblock|eof|read", exactly_one=False)


@pytest.mark.parametrize("content", [b"\0" * 5000, b"just a text\n" * 50, b"\x89HDF\r\n\x1a\n" + b"\xff" * 3000])
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_foreign_file_is_refused(programs, tmp_path, sha256, content, mode):
    path = tmp_path / "foreign.h5"
    path.write_bytes(content)
    with unchanged(sha256, path):
        done = programs.python(f"h5py.File(sys.argv[1], {mode!r})", path)
        assert done.returncode > 0 and lowest(done), done.stderr


@pytest.mark.parametrize("mode", ["r", "r+", "a", "w", "w-"])
def test_a_pipe_is_refused_and_not_waited_for(programs, tmp_path, mode):
    """HDF5 itself waits for the other end of one that it shall read."""
    path = tmp_path / "pipe.h5"
    os.mkfifo(path)
    done = programs.python(f"h5py.File(sys.argv[1], {mode!r})", path, timeout=WAITING)
    assert done.returncode > 0 and lowest(done), done.stderr
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_an_empty_file_is_taken_as_hdf5_takes_it(programs, tmp_path):
    """Refused for reading. Opened for writing, HDF5 makes a file of it."""
    for mode in ("r", "r+"):
        codes = []
        for run in (programs.python, lambda code, path: programs.stock(sys.executable, "-c", code, path)):
            path = tmp_path / "empty.h5"
            path.write_bytes(b"")
            codes.append(run(f"import h5py, sys; h5py.File(sys.argv[1], {mode!r}).close()", path).returncode)
        assert codes[0] == codes[1] == (mode == "r"), mode


def test_a_file_with_a_group_that_happens_to_have_our_name_is_not_taken_for_ours(programs, tmp_path, sha256):
    path = tmp_path / "stranger.h5"
    with h5py.File(path, "w") as f:
        f["_versioned_data/x"] = np.arange(10)
        f["y"] = np.arange(10)
    with unchanged(sha256, path):
        done = programs.python("print(list(h5py.File(sys.argv[1], 'r')['y'][...]))", path)
    if done.returncode:  # refusing is right as well, if it says so
        refused(done, "_versioned_data", exactly_one=False)
    with h5py.File(path, "r") as f:
        assert list(f["_versioned_data/x"]) == list(range(10))


@pytest.mark.parametrize("mode", ["r", "r+", "w"])
def test_a_newer_format_is_refused(programs, made, sha256, mode):
    with h5py.File(made, "r+") as f:
        f["_versioned_data"].attrs.modify("format", np.uint32(99))
    with unchanged(sha256, made):
        done = programs.python(f"h5py.File(sys.argv[1], {mode!r})", made)
        refused(done, "format", "99", "newer|upgrade|update|install|this h5cow", exactly_one=False)


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_newer_format_is_refused_behind_a_link(programs, made, tmp_path, sha256, mode):
    with h5py.File(made, "r+") as f:
        f["_versioned_data"].attrs.modify("format", np.uint32(99))
    outer = tmp_path / "outer.h5"
    with h5py.File(outer, "w") as f:
        f["there"] = h5py.ExternalLink(made, "/group/x")
        f["group"] = h5py.ExternalLink(made, "/group")
    with unchanged(sha256, made):
        done = programs.python("h5py.File(sys.argv[1], sys.argv[2])['there'][0] = 5", outer, mode)
        refused(done, "format", "99", "newer", exactly_one=False)
        for change in ("f.create_dataset('group/y', data=[1])", "f.create_group('group/y')", "del f['group/x']",
                       "f['group'].attrs['a'] = 1", "h5py.h5a.delete(f.id, b'a', obj_name=b'group')",
                       "f['group/y'] = h5py.SoftLink('/x')", "f.move('group/x', 'group/y')"):
            done = programs.python(f"f = h5py.File(sys.argv[1], sys.argv[2])\n{change}", outer, mode)
            assert done.returncode > 0, change
            refused(done, "format|write intent|read-only|open for reading", exactly_one=False)


@pytest.mark.parametrize("name", ["log", "snapshots", "datasets", "pools", "index", "raw", "slots", "versions"])
def test_history_with_a_part_missing_is_an_error_not_a_crash(programs, made, sha256, name):
    with h5py.File(made, "r+") as f:
        del f["_versioned_data"][name]
    with unchanged(sha256, made):
        done = programs.python("print(h5py.File(sys.argv[1], 'r')['group/x'][...].sum())", f"{made}@2")
        if done.returncode == 0:  # the part was not needed for this
            assert done.stdout.strip() == str(at_version(2).sum())
        else:
            assert lowest(done), done.stderr


# ---- damage ----------------------------------------------------------------------------------------------------------


def flip(path, offset, count=1, mask=0x40):
    with open(path, "r+b") as f:
        f.seek(offset)
        old = f.read(count)
        f.seek(offset)
        f.write(bytes(b ^ mask for b in old))


def raw_data(f):
    """The pool of the test's dataset: the one whose slots are chunks of 10 x 30."""
    return next(d for d in f["_versioned_data/raw"].values() if d.chunks == (10, 30))


def place_of(path, choose, row, bytes_in_row=0):
    """File offset of a row of an unfiltered chunked dataset."""
    with h5py.File(path, "r") as f:
        dataset = choose(f)
        chunk, size = dataset.chunks[0], dataset.dtype.itemsize * int(np.prod(dataset.shape[1:], dtype=int))
        where = dataset.id.get_chunk_info_by_coord((row // chunk * chunk,) + (0,) * (dataset.ndim - 1))
        return where.byte_offset + row % chunk * size + bytes_in_row


READ = "print(h5py.File(sys.argv[1], 'r')['group/x'][...].sum())"


def test_a_damaged_chunk_is_an_error_that_says_where_and_what_is_left(programs, made, sha256):
    with h5py.File(made, "r") as f:  # the slot of the newest state of the first chunk
        rows = raw_data(f)[...]
        slot = next(i for i in range(len(rows) // 10) if np.array_equal(rows[10 * i : 10 * i + 10], at_version(3)[:10]))
    flip(made, place_of(made, raw_data, 10 * slot + 3, 17))
    with unchanged(sha256, made):
        done = programs.python(READ, made)
        refused(done, r"three\.h5", "group/x", "chunk", "version", "2")
        for number in (1, 2):  # what it promises
            done = programs.python(READ, f"{made}@{number}")
            assert done.returncode == 0 and done.stdout.strip() == str(at_version(number).sum()), done.stderr


def test_an_error_names_a_dataset_that_was_reached_by_a_reference(programs, made):
    with h5py.File(made, "r") as f:
        rows = raw_data(f)[...]
        slot = next(i for i in range(len(rows) // 10) if np.array_equal(rows[10 * i : 10 * i + 10], FIRST[50:60]))
    flip(made, place_of(made, raw_data, 10 * slot, 5))
    code = """
    f = h5py.File(sys.argv[1], sys.argv[2])
    d = f[f['group/x'].ref]
    %s
    """
    refused(programs.python(code % "d[55]", made, "r"), r"three\.h5: /group/x", "chunk")
    refused(programs.python(code % "d[55, 3] = 1", made, "r+"), r"three\.h5: /group/x", "chunk", exactly_one=False)


def test_a_damaged_chunk_hurts_only_those_who_read_it(programs, made, sha256):
    with h5py.File(made, "r") as f:
        rows = raw_data(f)[...]
        slot = next(i for i in range(len(rows) // 10) if np.array_equal(rows[10 * i : 10 * i + 10], FIRST[50:60]))
    flip(made, place_of(made, raw_data, 10 * slot, 5))
    with unchanged(sha256, made):
        done = programs.python("print(h5py.File(sys.argv[1], 'r')['group/x'][60:].sum())", made)
        assert done.returncode == 0 and done.stdout.strip() == str(at_version(3)[60:].sum()), done.stderr
        done = programs.python("print(h5py.File(sys.argv[1], 'r')['group/x'][55].sum())", made)
        refused(done, r"three\.h5", "group/x", "chunk")


def test_a_damaged_chunk_is_not_written_back(programs, made):
    """Changing a part of it would hash wrong bytes as if they were right."""
    with h5py.File(made, "r") as f:
        rows = raw_data(f)[...]
        slot = next(i for i in range(len(rows) // 10) if np.array_equal(rows[10 * i : 10 * i + 10], FIRST[50:60]))
    flip(made, place_of(made, raw_data, 10 * slot, 5))
    done = programs.python("h5py.File(sys.argv[1], 'r+')['group/x'][55, 3] = 1", made)
    refused(done, r"three\.h5", "group/x", "chunk", exactly_one=False)
    with h5py.File(made, "r") as f:
        assert sorted(f["_versioned_data/versions"]) == ["1", "2", "3"]


def test_every_damaged_byte_of_the_index_is_noticed_or_harmless(programs, made, sha256):
    with h5py.File(made, "r") as f:
        length = f["_versioned_data/index"].shape[0]
    healthy = made.read_bytes()
    noticed = 0
    for row in range(0, length, max(1, length // 12)):
        made.write_bytes(healthy)
        flip(made, place_of(made, lambda f: f["_versioned_data/index"], row))
        with unchanged(sha256, made):
            done = programs.python(READ, made)
        if done.returncode == 0:
            assert done.stdout.strip() == str(at_version(3).sum()), f"byte {row}: wrong values, and no error"
        else:
            noticed += 1
            refused(done, r"three\.h5|index", "index|node|root|checksum|damaged", exactly_one=False)
    assert noticed >= 3


MAKE_TYPES = """
from h5py import h5t
import numpy as np
TYPES = {
    'number': np.dtype('>i2'),
    'names': np.dtype([('colour', h5py.enum_dtype({'red': 1, 'green': 2})), ('place', '<f4', (3,))]),
    'text': h5py.string_dtype(),
}
with h5py.File(sys.argv[1], 'w') as f:
    for name, kind in TYPES.items():
        f[name] = kind
        f.create_dataset('of ' + name, (6,), f[name])
        f.create_dataset('large of ' + name, (2000,), f[name], chunks=(1000,))
        f.attrs.create('of ' + name, np.zeros(2, kind) if name != 'text' else ['a', 'b'], dtype=f[name])
    f['of number'][...] = np.arange(6)
    f['large of number'][...] = np.arange(2000)
    f.attrs.modify('of number', np.arange(7, 9))
with h5py.File(sys.argv[1], 'a') as f:
    f['of number'][0] = 100
"""
# Per flip, what is read otherwise than before, and no error.
READ_TYPES = """
import json
from h5py import h5a, h5d, h5t
import numpy as np
path, name, flips = sys.argv[1], sys.argv[2].encode(), json.loads(sys.argv[3])

def seen(what):
    try:
        return what()
    except (OSError, KeyError, RuntimeError, ValueError, TypeError):
        return None

def value(opened):
    read = np.empty(opened.get_space().shape, '<i4')
    opened.read(*([] if isinstance(opened, h5a.AttrID) else 2 * [h5py.h5s.ALL]), read)
    return read.tolist()

def all_of_it():
    with h5py.File(path, 'r') as f:
        yield 'type', seen(lambda: h5t.open(f.id, name).encode())
        for dataset in (b'of ' + name, b'large of ' + name):
            yield dataset.decode(), seen(lambda: h5d.open(f.id, dataset).get_type().encode())
            if name == b'number':
                yield dataset.decode() + ' read', seen(lambda: value(h5d.open(f.id, dataset)))
        yield 'attribute', seen(lambda: h5a.open(f.id, b'of ' + name).get_type().encode())
        if name == b'number':
            yield 'attribute read', seen(lambda: value(h5a.open(f.id, b'of ' + name)))

def look():
    return dict(all_of_it())

def put(at, mask):
    with open(path, 'r+b') as f:
        f.seek(at)
        old = f.read(1)[0]
        f.seek(at)
        f.write(bytes([old ^ mask]))

healthy = look()
assert None not in healthy.values(), healthy
errors = 0
for at, mask in flips:
    put(at, mask)
    now = seen(look)
    put(at, mask)
    errors += now is None or None in now.values()
    for what in healthy:
        if now is not None and now[what] is not None and now[what] != healthy[what]:
            print(at, mask, what, healthy[what], now[what])
print('errors', errors)
"""


@pytest.mark.parametrize("name", ["number", "names", "text"])
def test_a_damaged_named_type_is_noticed(programs, tmp_path, name):
    path = tmp_path / "types.h5"
    done = programs.python(MAKE_TYPES, path)
    assert done.returncode == 0, done.stderr
    with h5py.File(path, "r") as f:
        at = h5py.h5o.get_info(f[name].id).addr
    whole = path.read_bytes()
    assert whole[at] == 1, "as HDF5 1.6 makes them, without a checksum"
    length = 16 + int.from_bytes(whole[at + 8 : at + 12], "little")
    flips = [(at + i, mask) for i in range(length) for mask in (0xFF, 1 << i % 8)]
    done = programs.python(READ_TYPES, path, name, json.dumps(flips))
    assert done.returncode == 0, done.stderr
    *wrong, errors = done.stdout.splitlines()
    assert not wrong, wrong
    assert int(errors.split()[1]) > length // 2
    assert path.read_bytes() == whole


def test_verify_tells_of_a_damaged_named_type(programs, tmp_path):
    path = tmp_path / "types.h5"
    assert programs.python(MAKE_TYPES, path).returncode == 0
    with h5py.File(path, "r") as f:
        at = h5py.h5o.get_info(f["number"].id).addr
    programs.verified(path)
    message = path.read_bytes().index(b"\x10\x09\x00\x00\x02\x00\x00\x00", at)  # class; big endian, signed; two bytes
    flip(path, message + 1, mask=1)
    done = programs.cow("verify", path)
    assert done.returncode == 1
    assert "the datatype '/number' is not what was written" in done.stdout, done.stdout


def test_opening_a_damaged_named_type_says_why(programs, tmp_path):
    path = tmp_path / "types.h5"
    assert programs.python(MAKE_TYPES, path).returncode == 0
    with h5py.File(path, "r") as f:
        at = h5py.h5o.get_info(f["number"].id).addr
    message = path.read_bytes().index(b"\x10\x09\x00\x00\x02\x00\x00\x00", at)
    flip(path, message + 1, mask=1)
    for how in ("h5py.h5t.open(f.id, b'number')", "f['number']", "f['of number'].dtype", "f['/'].attrs['of number']"):
        done = programs.python(f"import sys, h5py\nwith h5py.File(sys.argv[1], 'r') as f:\n    {how}", path)
        assert done.returncode != 0, how
        assert "is not what was written" in done.stderr, (how, done.stderr)


def slots_of(f):
    raw = raw_data(f)
    return f["_versioned_data/slots"][raw.name.rpartition("/")[2]]


def test_a_damaged_slot_table_is_noticed(programs, made, sha256):
    with h5py.File(made, "r") as f:
        count, offset = len(slots_of(f)), slots_of(f).dtype.fields["checksum"][1]
    for row in range(count):
        flip(made, place_of(made, slots_of, row, offset + 3))
    with unchanged(sha256, made):
        refused(programs.python(READ, made), r"three\.h5", "group/x", "chunk")


def test_damage_in_a_slots_hash_gives_no_wrong_data(programs, made):
    """Only deduplication reads it: at worst a chunk is stored twice."""
    with h5py.File(made, "r") as f:
        count, offset = len(slots_of(f)), slots_of(f).dtype.fields["hash"][1]
    for row in range(count):
        flip(made, place_of(made, slots_of, row, offset + 3))
    done = programs.python("h5py.File(sys.argv[1], 'r+')['group/x'][:20] = np.arange(600).reshape(20, 30)", made)
    assert done.returncode >= 0
    want = at_version(3)
    if done.returncode == 0:
        want[:20] = FIRST[:20]
    with h5py.File(made, "r") as f:
        assert np.array_equal(f["group/x"][...], want)


# ---- filters ---------------------------------------------------------------------------------------------------------

FILTER = """
#include <H5PLextern.h>
static size_t same(unsigned flags, size_t n, const unsigned values[], size_t bytes, size_t *room, void **buf)
{
    (void)flags, (void)n, (void)values, (void)room;
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)*buf)[i] ^= 0x55;
    return bytes;
}
static const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, 305, 1, 1, "xor for tests", NULL, NULL, same};
H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_FILTER; }
const void *H5PLget_plugin_info(void) { return &filter; }
"""


@pytest.fixture(scope="module")
def filter_folder(tmp_path_factory):
    """A filter plugin that some machines have and others have not."""
    folder = tmp_path_factory.mktemp("filter")
    (folder / "filter.c").write_text(FILTER)
    if not shutil.which("cc") or not shutil.which("pkg-config"):
        pytest.skip("no C compiler")
    flags = subprocess.run(["pkg-config", "--cflags", "hdf5"], capture_output=True, text=True, check=True).stdout.split()
    command = ["cc", "-shared", "-fPIC", *flags, "-o", folder / "libfilter305.so", folder / "filter.c"]
    subprocess.run(command, check=True)
    return folder


def test_a_missing_filter_is_an_error_and_then_it_is_there_again(programs, tmp_path, sha256, filter_folder):
    from conftest import H5COW, PLUGINS, STOCK

    path = tmp_path / "filtered.h5"
    code = """
    with h5py.File(sys.argv[1], 'w') as f:
        f.create_dataset('x', data=np.arange(3000), chunks=(100,), compression=305)
    with h5py.File(sys.argv[1], 'a') as f:
        f['x'][10] = -1
    """
    done = programs.python(code, path, plugins=f"{PLUGINS}:{filter_folder}")
    assert done.returncode == 0, done.stderr
    want = np.arange(3000)
    want[10] = -1
    with unchanged(sha256, path):
        done = programs.python("h5py.File(sys.argv[1], 'r')['x'][...]", path)
        refused(done, "filter", "305|xor for tests", exactly_one=False)
        done = programs.python("h5py.File(sys.argv[1], 'r+')['x'][5] = 1", path)
        assert done.returncode > 0 and "filter" in done.stderr
    done = programs.python("print(h5py.File(sys.argv[1], 'r')['x'][...].sum())", path,
                           plugins=f"{PLUGINS}:{filter_folder}")
    assert done.returncode == 0 and done.stdout.strip() == str(want.sum()), done.stderr


def test_a_missing_filter_is_named_by_the_command(programs, tmp_path, filter_folder):
    """And not the folder where HDF5 has looked for it last."""
    code = "import h5py, sys; h5py.File(sys.argv[1], 'w').create_dataset('x', data=[1] * 3000, chunks=(100,), compression=305)"
    env = {**STOCK, "HDF5_PLUGIN_PATH": str(filter_folder)}
    subprocess.run([sys.executable, "-c", code, tmp_path / "plain.h5"], env=env, check=True)
    done = programs.cow("import", tmp_path / "plain.h5", tmp_path / "out.h5")
    assert done.returncode == 2 and "filter 'xor for tests' is not registered" in done.stderr, done.stderr
    assert sorted(os.listdir(tmp_path)) == ["plain.h5"]


# ---- disks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [2_000, 100_000, 1_000_000])
def test_a_full_disk_is_an_error_not_a_crash(programs, made, more):
    limit = made.stat().st_size + more

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    code = """
    f = h5py.File(sys.argv[1], 'r+')
    f.create_dataset('big', data=np.random.default_rng(1).integers(0, 1 << 60, 500_000), chunks=(1000,))
    f['group/x'][...] = -1
    f.close()
    """
    done = programs.python(code, made, preexec_fn=limited)
    assert done.returncode > 0 and "Error" in done.stderr, done.stderr
    assert any(re.search("write|space|too large|errno|limit", text, re.I) for text in lowest(done)), lowest(done)


def test_a_commit_that_fails_on_a_full_disk_is_an_error(programs, made):
    """Everything fits in memory until the file is closed."""
    limit = made.stat().st_size + 500

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    code = """
    f = h5py.File(sys.argv[1], 'r+')
    f['group/x'][...] = np.random.default_rng(1).integers(0, 1 << 30, (200, 30))
    try:
        f.close()
    except Exception as error:
        print('close:', error)
        sys.exit(3)
    """
    done = programs.python(code, made, preexec_fn=limited)
    assert done.returncode > 0, "the version could not be written, and nobody was told"


SMALL_DISK = """
import ctypes, os, shutil, subprocess, sys
folder, kilobytes, source, result, *command = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
NEW_NAMESPACE, PRIVATE = 0x20000, 0x44000
if libc.unshare(NEW_NAMESPACE):
    sys.exit(77)
libc.mount(b"none", b"/", None, PRIVATE, None)
if libc.mount(b"none", folder.encode(), b"tmpfs", 0, f"size={kilobytes}k".encode()):
    sys.exit(77)
path = os.path.join(folder, "three.h5")
shutil.copy(source, path)
code = subprocess.run([*command, path]).returncode
shutil.copy(path, result)
sys.exit(code if code >= 0 else 99)
"""

FILL = """
f = h5py.File(sys.argv[1], 'r+')
f['group/x'][...] = -1
f.create_dataset('big', data=np.random.default_rng(1).integers(0, 1 << 60, 500_000), chunks=(1000,))
f.close()
"""


@pytest.mark.parametrize("room", [8, 16, 60, 500, 2000])  # KiB; the program needs about 4000
@pytest.mark.parametrize("close", ["f.close()", "sys.exit(3)"])
def test_a_disk_that_is_full_is_an_error_and_versions_stay(programs, made, tmp_path, room, close):
    folder, result = tmp_path / "disk", tmp_path / "after.h5"
    folder.mkdir()
    program = programs.code(FILL.replace("f.close()", close))
    size = made.stat().st_size // 1024 + room
    done = programs.connector(sys.executable, "-c", SMALL_DISK, folder, size, made, result, sys.executable, "-c", program,
                              timeout=WAITING)
    if done.returncode == 77:
        pytest.skip("only root can make a small disk; the limit on a file's size is tested")
    assert done.returncode not in (0, 99), f"it succeeded, or crashed\n{done.stderr}"
    assert "No space left on device" in done.stderr and "three.h5" in done.stderr, done.stderr
    if close == "f.close()":
        found = lowest(done)
        assert found and all("errno = 28" in text and "three.h5" in text for text in found), found
    for number in (1, 2, 3):
        want = str(at_version(number).sum())
        code = f"import h5py; print(h5py.File('{result}', 'r')['_versioned_data/versions/{number}/group/x'][...].sum())"
        assert programs.stock(sys.executable, "-c", code).stdout.strip() == want


def test_where_there_is_no_room_the_command_says_what_is_forgotten(programs, made, tmp_path):
    """forget --gc is two commits: the second may fail alone."""
    folder, result, seen = tmp_path / "disk", tmp_path / "after.h5", set()
    folder.mkdir()
    for room in range(0, 100, 2):  # KiB
        size = made.stat().st_size // 1024 + room
        done = programs.stock(sys.executable, "-c", SMALL_DISK, folder, size, made, result, H5COW, "forget", "--keep-last=1", "--gc")
        if done.returncode == 77:
            pytest.skip("only root can make a small disk")
        if not result.exists():  # there was no room for the file itself
            continue
        said = [text for text in ("; nothing was changed", "; the versions are forgotten, and nothing was freed") if text in done.stderr]
        assert len(said) == (done.returncode != 0) and len(done.stderr.splitlines()) == len(said), done.stderr
        left = programs.stock(H5COW, "log", "--json", result)
        assert len(json.loads(left.stdout)) == (3 if said == ["; nothing was changed"] else 1), (room, done.stderr)
        assert "no damage" in programs.stock(H5COW, "verify", result).stdout
        seen.add(said[0] if said else "done")
    # that the second fails alone is rare: it needs little room
    assert {"; nothing was changed", "done"} <= seen, seen


@pytest.mark.parametrize("verb", ["export", "copy", "import", "recover"])
@pytest.mark.parametrize("most", [3000, 20_000])
@pytest.mark.parametrize("kills", [True, False])  # what a limit does to a program, unless it ignores the signal
def test_the_command_says_in_one_sentence_that_there_is_no_room(made, tmp_path, verb, most, kills):
    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if kills else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    plain, out = tmp_path / "plain.h5", tmp_path / "out.h5"
    with h5py.File(plain, "w") as f:
        f["x"] = np.arange(5000)
    source = plain if verb == "import" else made
    done = subprocess.run([H5COW, verb, source, out], env=STOCK, capture_output=True, text=True, preexec_fn=limited)
    assert done.returncode == 2 and not out.exists(), done.stderr
    assert len(done.stderr.splitlines()) == 1 and "File too large" in done.stderr, done.stderr
    assert "buf = " not in done.stderr and "time = " not in done.stderr, done.stderr
    assert sorted(os.listdir(tmp_path)) == ["plain.h5", "three.h5"]


@pytest.fixture
def as_nobody(tmp_path):
    """Arguments that make a child process one that file permissions hold for; the folder it may read."""
    if os.geteuid() != 0:
        yield {}, tmp_path
        return
    folder, plugins = pathlib.Path(tempfile.mkdtemp()), pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    plugins.chmod(0o755)
    for part in PLUGINS.split(":"):  # which may lie where only root may look
        for plugin in pathlib.Path(part).glob("libh5cow.so"):
            shutil.copy(plugin, plugins)

    def nobody():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    yield {"preexec_fn": nobody, "plugins": str(plugins)}, folder
    folder.chmod(0o755)
    shutil.rmtree(folder)
    shutil.rmtree(plugins)


def test_a_read_only_directory(programs, original, sha256, as_nobody):
    """Reading works; writing and creating are refused, with the reason of the system."""
    become, folder = as_nobody
    made = pathlib.Path(shutil.copy(original, folder / "three.h5"))
    made.chmod(0o444)
    folder.chmod(0o555)
    try:
        with unchanged(sha256, made):
            for name, number in ((made, 3), (f"{made}@1", 1)):
                done = programs.python(READ, name, **become)
                assert done.returncode == 0 and done.stdout.strip() == str(at_version(number).sum()), done.stderr
            for mode in ("r+", "w"):
                done = programs.python(f"h5py.File(sys.argv[1], {mode!r})", made, **become)
                refused(done, "permission denied|errno = 13", exactly_one=False)
            done = programs.python("h5py.File(sys.argv[1], 'w')", folder / "new.h5", **become)
            refused(done, "permission denied|errno = 13", exactly_one=False)
    finally:
        folder.chmod(0o755)


def test_a_missing_directory_keeps_the_error_that_h5py_knows(programs, tmp_path):
    done = programs.python("h5py.File(sys.argv[1], 'r')", tmp_path / "no" / "such.h5")
    assert done.returncode > 0 and "FileNotFoundError" in done.stderr
    done = programs.python("h5py.File(sys.argv[1], 'a').close()", tmp_path / "new.h5")
    assert done.returncode == 0, done.stderr


# ---- the plugin itself -----------------------------------------------------------------------------------------------


def test_the_connector_changes_nothing_for_a_file_without_history(programs, tmp_path, sha256):
    plain, twin = tmp_path / "plain.h5", tmp_path / "twin.h5"
    for path in (plain, twin):
        with h5py.File(path, "w") as f:
            f.create_dataset("x", data=np.arange(100), chunks=(10,), track_times=False)
    change = "f = h5py.File(sys.argv[1], 'r+'); f['x'][3] = 7; f.close()"
    assert programs.python(change, plain).returncode == 0
    assert programs.stock(sys.executable, "-c", "import h5py, sys\n" + change, twin).returncode == 0
    with h5py.File(plain, "r") as a, h5py.File(twin, "r") as b:
        assert list(a) == ["x"] and np.array_equal(a["x"][...], b["x"][...]) and not a["x"].is_virtual
    assert plain.stat().st_size == twin.stat().st_size


@pytest.mark.parametrize("name", ["_versioned_data", "/_versioned_data/versions", "_versioned_data/raw/0"])
def test_the_history_cannot_be_reached_by_its_path(programs, made, sha256, name):
    with unchanged(sha256, made):
        done = programs.python("h5py.File(sys.argv[1], 'r')[sys.argv[2]]", made, name)
        assert done.returncode > 0 and "KeyError" in done.stderr, done.stderr
    done = programs.python("f = h5py.File(sys.argv[1], 'r+'); del f[sys.argv[2]]", made, name)
    assert done.returncode > 0, "the history was deleted"
    with h5py.File(made, "r") as f:
        assert sorted(f["_versioned_data/versions"]) == ["1", "2", "3"]


# ---- links, references and names -------------------------------------------------------------------------------------


def as_natively(programs, code, folder, *arguments):
    """The program says the same with the connector as without, each in a folder of its own; that of the connector."""
    said = {}
    for how, run in (("native", programs.stock), ("connector", programs.connector)):
        here = folder / how
        here.mkdir()
        done = run(sys.executable, "-c", programs.code(code, errors=False), *arguments, cwd=here)
        assert done.returncode == 0, (how, done.stderr[-3000:])
        said[how] = done.stdout
    assert said["native"] == said["connector"] != ""
    return folder / "connector"


TRY = """
    import os
    def attempt(what):
        try:
            answer = what()
            print('fine', answer if isinstance(answer, (int, float, str, bool)) else type(answer).__name__)
        except Exception as error:
            print(type(error).__name__)
"""


def test_external_links_to_what_is_not_there_or_foreign(programs, tmp_path, sha256):
    code = TRY + """\
    open('text.h5', 'w').write('only a text ' * 500)
    open('empty.h5', 'w').close()
    with h5py.File('other.h5', 'w') as f:
        f['x'] = [7, 8]
    with h5py.File('f.h5', 'w') as f:
        f['d'] = np.arange(5000)
        for n, target in enumerate([('missing.h5', '/x'), ('no folder/x.h5', '/x'), ('text.h5', '/x'), ('empty.h5', '/x'),
                                    ('other.h5', '/gone'), ('other.h5', '/x'), ('f.h5', '/d'), ('f.h5', '/link 6')]):
            f['link %d' % n] = h5py.ExternalLink(*target)
    for mode in 'r', 'r+':
        with h5py.File('f.h5', mode) as f:
            print(sorted(f), f.get('link 0', getlink=True).filename)
            for n in range(8):
                attempt(lambda: int(f['link %d' % n][1]))
                attempt(lambda: 'link %d' % n in f)
                attempt(lambda: f.get('link %d' % n) is None)
                if mode == 'r+':
                    attempt(lambda: f['link %d' % n].__setitem__(0, 70 + n))
            if mode == 'r+':
                f['d'][3] = -1
    with h5py.File('f.h5', 'r') as f:
        print(f['d'][0], f['d'][3], h5py.File('other.h5', 'r')['x'][0])
    """
    here = as_natively(programs, code, tmp_path)
    code = TRY + """\
    for name in 'f.h5', 'f.h5@1', 'f.h5@2':
        f = h5py.File(name, 'r')
        for n in range(5):
            attempt(lambda: f['link %d' % n][...])
        print(f['link 5'][1], f['d'][3])
    """
    done = programs.python(code, cwd=here, errors=False)
    words = done.stdout.split()
    assert done.returncode == 0 and [word for word in words if word.isdigit() or word == "-1"] == ["8", "-1", "8", "3", "8", "-1"]
    assert words.count("fine") == 0, done.stdout + done.stderr


def test_links_to_files_whose_history_is_damaged_are_errors(programs, made, tmp_path):
    outer = tmp_path / "outer.h5"
    programs.python("f = h5py.File(sys.argv[1], 'w'); f['there'] = h5py.ExternalLink(sys.argv[2], '/group/x'); f['own'] = 5",
                    outer, made)
    os.truncate(made, made.stat().st_size // 2)
    code = TRY + """\
    f = h5py.File(sys.argv[1], sys.argv[2])
    attempt(lambda: f['there'][...])
    print(f['own'][()])
    """
    for mode in "r", "r+":
        done = programs.python(code, outer, mode, errors=False)
        assert done.returncode == 0 and done.stdout.split() == ["KeyError", "5"], done.stdout + done.stderr


def test_references_to_deleted_objects_are_errors(programs, tmp_path):
    """Natively they show what is left of the object, or the next one at its address. In the version that had it, it is there."""
    code = TRY + """\
    with h5py.File('f.h5', 'w') as f:
        f['gone'] = np.arange(5000)
        f['stays'] = np.arange(3)
        f.create_dataset('to', data=[f['gone'].ref, f['stays'].ref], dtype=h5py.ref_dtype)
        f.create_dataset('region', data=f['gone'].regionref[3:5], dtype=h5py.regionref_dtype)
    with h5py.File('f.h5', 'r+') as f:
        del f['gone']
    with h5py.File('f.h5', 'r+') as f:
        attempt(lambda: f[f['to'][0]].shape[0])
        attempt(lambda: f[f['region'][()]].shape[0])
        attempt(lambda: int(f[f['to'][1]][2]))
        attempt(lambda: f[h5py.Reference()])
        attempt(lambda: h5py.h5r.get_obj_type(f['to'][0], f.id))
    with h5py.File('f.h5@1', 'r') as f:
        attempt(lambda: f[f['to'][0]].shape[0])
        attempt(lambda: f[f['region'][()]].shape[0])
    """
    done = programs.python(code, cwd=tmp_path, errors=False)
    assert done.stdout.splitlines() == [
        "KeyError", "KeyError", "fine 2", "ValueError", "RuntimeError", "fine 5000", "fine 5000"
    ], done.stderr  # fmt: skip


def test_cycles(programs, tmp_path):
    code = TRY + """\
    with h5py.File('f.h5', 'w') as f:
        g = f.create_group('a/b')
        g['up'] = f['a']
        g['root'] = f['/']
        g['self'] = g
        g['soft'] = h5py.SoftLink('/a/b/soft')
        g['one'] = h5py.SoftLink('/a/b/two')
        g['two'] = h5py.SoftLink('/a/b/one')
        g['parent'] = h5py.SoftLink('/a')
        g['there'] = h5py.ExternalLink('f.h5', '/a/b/there')
        g['d'] = np.arange(5000)
        g.attrs['loop'] = g.ref
    for n in range(3):
        with h5py.File('f.h5', 'r+') as f:
            names = []
            f.visit(names.append)
            print(names)
            print(f['a/b/up/b/root/a/b/self/self/d'][n], f['a/b/parent/b/d'][1])
            for name in 'soft', 'one', 'two', 'there':
                attempt(lambda: f['a/b/' + name])
            print(f[f['a/b'].attrs['loop']] == f['a/b/self'], f['a/b/self'] == f['a/b'], f['a/b/root'] == f['/'])
            f['a/b/self/self/d'][n] = -n - 1
            if n == 1:
                f.move('a/b', 'c')
                f['a']['b'] = f['c']
            if n == 2:
                del f['a']
                print(f['c/root/c/d'][0], sorted(f['c']), sorted(f['c/up']))
    """
    here = as_natively(programs, code, tmp_path)
    code = TRY + """\
    for number in 1, 2, 3, 4:
        f = h5py.File('f.h5@%d' % number, 'r')
        names = []
        f.visit(names.append)
        print(len(names), *(f['c/root/c/self/d' if number == 4 else 'a/b/up/b/root/a/b/self/self/d'][:3]))
        attempt(lambda: f['c/soft' if number == 4 else 'a/b/one'])
    """
    done = programs.python(code, cwd=here, errors=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[1::2] == 3 * ["RuntimeError"] + ["KeyError"], done.stdout + done.stderr
    assert [line.split()[1:] for line in lines[::2]] == [["0", "1", "2"], ["-1", "1", "2"], ["-1", "-2", "2"], ["-1", "-2", "-3"]]


NAMES = ["a@3", "@", "@1", "x@~1", "~1", "{2026-01-31}", "ä ö", "数据", "\N{GRINNING FACE}", "a\u0308", "with space", "tab\there",
         "new\nline", "%d %s %b", "back\\slash", "semi;colon=1", "'quoted'", "a" * 300, "\x01\x7f"]  # fmt: skip


def test_names_of_links_and_attributes(programs, tmp_path):
    code = TRY + f"""\
    names = {NAMES!r}
    with h5py.File('f.h5', 'w') as f:
        for n, name in enumerate(names):
            f[name] = np.arange(5000) + n
            f['group/' + name + '/inside'] = n
            f['group'].attrs[name] = n
            f['soft ' + name] = h5py.SoftLink('/' + name)
            f['external ' + name] = h5py.ExternalLink('f.h5', '/' + name)
        f.id.links.create_hard(b'bytes \\xff\\xfe', f.id, b'group')
    with h5py.File('f.h5', 'r+') as f:
        print(sorted(f.id.links.get_info(name).type for name in f.id))
        print(sorted(f['group'].attrs) == sorted(names))
        for n, name in enumerate(names):
            print(f[name][0], f['group/' + name + '/inside'][()], f['group'].attrs[name], f['soft ' + name][1], f['external ' + name][2])
            f[name][0] = -n
            f['group'].attrs[name] = -n
            if n % 3 == 0:
                f.move(name, 'moved ' + name)
            if n % 3 == 1:
                del f['group/' + name]
        print(b'bytes \\xff\\xfe' in list(f.id))
    with h5py.File('f.h5', 'r') as f:
        for n, name in enumerate(names):
            print(f[('moved ' if n % 3 == 0 else '') + name][0], f['group'].attrs[name], 'group/' + name in f)
        attempt(lambda: f['/a/b//../@'])
        attempt(lambda: f['']), attempt(lambda: f['/']), attempt(lambda: f['./@'][1]), attempt(lambda: f['//@/'][1])
    """
    here = as_natively(programs, code, tmp_path)
    code = f"""
    names = {NAMES!r}
    f = h5py.File('f.h5@1', 'r')
    for n, name in enumerate(names):
        assert f[name][0] == n and f['group/' + name + '/inside'][()] == n and f['group'].attrs[name] == n, name
        assert f['soft ' + name][1] == n + 1 and f['external ' + name][0] == -n if n % 3 else True, name
    f = h5py.File('f.h5@2', 'r')
    for n, name in enumerate(names):
        assert f[('moved ' if n % 3 == 0 else '') + name][0] == -n and f['group'].attrs[name] == -n, name
        assert ('group/' + name in f) == (n % 3 != 1), name
    print('fine')
    """
    done = programs.python(code, cwd=here, errors=False)
    assert done.stdout.strip() == "fine", done.stderr


FILES = ["a@3.h5", "data@2", "@", "@.h5", "x@", "ä ö.h5", "数据.h5", "with space.h5", "new\nline.h5", "%d.h5", "semi;colon.h5",
         "{x}.h5", "run.h5@~1", "a" * 200 + ".h5"]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_names_of_files(programs, tmp_path, name):
    code = """
    name = sys.argv[1]
    for n in range(3):
        with h5py.File(name, 'a') as f:
            f['d%d' % n] = np.arange(5000) + n
            print(f.filename == name, sorted(f))
    with h5py.File(name, 'r') as f:
        print(f['d2'][0], f.filename == name)
    with h5py.File('outer.h5', 'w') as f:
        f['there'] = h5py.ExternalLink(name, '/d1')
        f['own'] = np.arange(5000)
    with h5py.File('outer.h5', 'r') as f:
        print(f['there'][0], f['there'].file.filename.rpartition('/')[2])
    """
    here = as_natively(programs, code, tmp_path, name)
    code = """
    for number in 1, 2, 3:
        f = h5py.File('%s@%d' % (sys.argv[1], number), 'r')
        print(sorted(f), f.filename == '%s@%d' % (sys.argv[1], number))
        f.close()
    """
    done = programs.python(code, name, cwd=here, errors=False)
    assert done.stdout.splitlines() == ["['d0'] True", "['d0', 'd1'] True", "['d0', 'd1', 'd2'] True"], done.stderr


def test_a_file_that_is_called_like_a_version_wins(programs, tmp_path):
    """data@2 exists, beside versions of data."""
    code = """
    for n in range(3):
        with h5py.File('data', 'a') as f:
            f['d%d' % n] = n
    print(sorted(h5py.File('data@2', 'r')))
    with h5py.File('literal', 'w') as f:
        f['literal'] = 1
    import os
    os.rename('literal', 'data@2')
    print(sorted(h5py.File('data@2', 'r')), sorted(h5py.File('data@1', 'r')), sorted(h5py.File('data@2@1', 'r')))
    with h5py.File('data@2', 'r+') as f:
        f['more'] = 2
    print(sorted(h5py.File('data@2@1', 'r')), sorted(h5py.File('data@2', 'r')), sorted(h5py.File('data', 'r')))
    os.remove('data@2')
    print(sorted(h5py.File('data@2', 'r')))
    """
    done = programs.python(code, cwd=tmp_path, errors=False)
    assert done.stdout.splitlines() == [
        "['d0', 'd1']",
        "['literal'] ['d0'] ['literal']",
        "['literal'] ['literal', 'more'] ['d0', 'd1', 'd2']",
        "['d0', 'd1']",
    ], done.stderr


def test_a_call_that_fails_makes_no_version(programs, made):
    """Nothing of it reached the file."""
    code = """
    with h5py.File(sys.argv[1], 'r+') as f:
        for change in (lambda: f['group/x'].__setitem__((0, 0), 'text'), lambda: f.create_dataset('group/x', data=1),
                       lambda: f.__delitem__('none'), lambda: f.move('none', 'other'), lambda: f['group/x'].resize((5, 5, 5)),
                       lambda: f['group/x'].id.write(h5py.h5s.ALL, h5py.h5s.ALL, np.zeros(1, 'V3'))):
            try:
                change()
                print('it succeeded')
            except Exception:
                pass
    """
    done = programs.python(code, made, errors=False)
    assert done.returncode == 0 and done.stdout == "", done.stdout + done.stderr
    with h5py.File(made, "r") as f:
        assert sorted(f["_versioned_data/versions"]) == ["1", "2", "3"]


@pytest.mark.parametrize("shape", [(20, 30), (100, 100), (3, 4, 5)])
def test_a_source_of_a_virtual_dataset_that_has_other_dimensions_is_an_error(programs, tmp_path, shape):
    """HDF5 1.14.5 goes beyond its memory (contiguous), or does not come back (chunks): it is not asked."""
    done = programs.python(f"""
import h5py, numpy as np
with h5py.File(sys.argv[1], 'w') as f:
    layout = h5py.VirtualLayout((5000,), 'f8')
    layout[:] = h5py.VirtualSource('.', '/s', (10000,))[2000:7000]
    f.create_virtual_dataset('v', layout)
    f['s'] = np.zeros({shape})
with h5py.File(sys.argv[1]) as f:
    try:
        f['v'][()]
    except OSError as error:
        print(error)
""", tmp_path / "a.h5")
    assert done.returncode == 0 and "has {} dimensions, mapping 0 of it has 1".format(len(shape)) in done.stdout, done
