"""h5cow recover and h5cow copy from outside: what a dead program leaves, damaged files, copies of a file at work.

Damage is done by changing bytes, as a disk or an accident would; where they are, HDF5 without the connector tells.
"""

import contextlib
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import textwrap

import h5py
import numpy as np
import pytest
from conftest import H5COW, STOCK as ENV, h5cow
from seeds import seed
from waiting import WAITING
from results import results

X = np.arange(6000, dtype="<i4").reshape(200, 30)
MAKE = """
for number in (1, 2, 3):
    with h5py.File(FILE, 'a') as f:
        if number == 1:
            f.create_dataset('g/x', data=np.arange(6000, dtype='<i4').reshape(200, 30), chunks=(10, 30),
                             maxshape=(None, 30), fillvalue=-9)
            f.create_dataset('plain', data=np.arange(50000.))
            f.create_dataset('zip', data=np.arange(4000), chunks=(500,), compression='gzip')
            f.create_dataset('text', data=np.array(['a', 'bb', 'ccc'], dtype=object), dtype=h5py.string_dtype(), chunks=(2,))
            f['again'] = f['plain']
            f['soft'] = h5py.SoftLink('/g/x')
            f['g'].attrs['title'] = 'one'
            f['g/x'].attrs['unit'] = 'K'
        else:
            f['g/x'][:10] += 10000 * number
            f['zip'][0] = -number
"""


def salvage(path, code=0):
    """The answer of `recover FILE OUT`; FILE must not change."""
    out = path.with_suffix(".out.h5")
    before = path.read_bytes()
    answer = json.loads(h5cow("recover", "--json", path, out, code=code))
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.tmp"))
    h5cow("verify", out)
    return out, answer


def text(code, path):
    return "import h5py, numpy as np, os, signal, sys, time\n" + textwrap.dedent(code).replace("FILE", repr(str(path)))


def program(path, code, *options):
    return h5cow("run", *options, "--", sys.executable, "-c", text(code, path))


@contextlib.contextmanager
def running(path, code):
    """A program through the connector, which prints a line when it is ready and then waits for one."""
    env = {**ENV, "HDF5_PLUGIN_PATH": os.environ.get("HDF5_PLUGIN_PATH", ""), "HDF5_VOL_CONNECTOR": "h5cow"}
    child = subprocess.Popen(
        [sys.executable, "-c", text(code, path)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "ready\n"
        yield child
    finally:
        child.kill()
        child.communicate()


READER = "f = h5py.File(FILE, 'r'); print('ready', flush=True); sys.stdin.readline(); print(f['g/x'][50, 0])"


def versions(path):
    """Everything in the versions of a file, natively."""
    found = {}
    with h5py.File(path, "r") as f:
        for name, root in f["_versioned_data/versions"].items():
            objects = found[name] = {}

            def note(where, o, objects=objects):
                objects[where] = o[...] if isinstance(o, h5py.Dataset) else None
                objects.update({f"{where}@{a}": v for a, v in o.attrs.items()})

            root.visititems(note)
    return found


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a if a[k] is not None)


def stock_opens(path, mode="r"):
    """Without any way to find the connector."""
    code = "import h5py, sys; h5py.File(sys.argv[1], sys.argv[2])"
    command = [sys.executable, "-c", code, path, mode]
    return subprocess.run(command, env={**ENV, "HDF5_PLUGIN_PATH": "/nowhere"}, capture_output=True).returncode == 0


def newest(path):
    """The newest state as a program with the connector sees it."""
    return int(program(path, "print(h5py.File(FILE, 'r')['g/x'][50, 0])"))


def slots(path):
    """[(address, generation, sequence, applied, extent address, extent length)], the newest first."""
    data = path.read_bytes()
    anchor = data.index(b"h5cowjnl")
    found = []
    for address in struct.unpack_from("<2Q", data, anchor + 48):
        if data[address : address + 8] == b"h5cowslt":
            g, n, a = struct.unpack_from("<3Q", data, address + 24)
            found.append((address, g, n, a, *struct.unpack_from("<2Q", data, address + 72)))
    return sorted(found, key=lambda slot: -slot[1])


def flip(path, address, mask=0x55):
    with open(path, "r+b") as f:
        f.seek(address)
        byte = f.read(1)[0]
        f.seek(address)
        f.write(bytes([byte ^ mask]))


def spoil(path, slot):
    """Both sectors of it, which hold the same."""
    for sector in (0, 512):
        flip(path, slot[0] + sector + 40)


def header(path, name):
    """Where the object header of an object is."""
    with h5py.File(path, "r") as f:
        return h5py.h5o.get_info(f[name].id).addr


def stored(path, name, chunk=0):
    """(address, size) of a stored chunk."""
    with h5py.File(path, "r") as f:
        info = f[name].id.get_chunk_info(chunk)
        return info.byte_offset, info.size


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("recover") / "three.h5"
    program(path, MAKE, "-m", "as made")
    return path


@pytest.fixture
def made(original, tmp_path):
    return pathlib.Path(shutil.copy(original, tmp_path / "three.h5"))


@pytest.fixture
def pending(made):
    """Two commits more, which a reader kept from being applied; the reader is gone."""
    with running(made, READER):
        program(made, "f = h5py.File(FILE, 'a'); f['g/x'][50:60] = -7; f.close()")
        program(made, "f = h5py.File(FILE, 'a'); f['g/x'][50:60] = -8; f.close()")
        copy = made.with_name("pending.h5")
        shutil.copy(made, copy)
    return copy


# ---- what is pending ------------------------------------------------------------------------------------------------


def test_nothing_is_done_to_a_file_that_is_whole(made, sha256):
    before = sha256(made)
    for options in ([], ["--dry-run"], ["--json"]):
        assert "there is nothing to do" in h5cow("recover", *options, made)
        assert sha256(made) == before


def test_pending_commits_are_shown_and_applied_once_nobody_reads(made, sha256):
    with running(made, READER) as reader:
        program(made, "f = h5py.File(FILE, 'a'); f['g/x'][50:60] = -7; f.close()")
        before = sha256(made)
        told = h5cow("recover", "--dry-run", made)
        assert "commit 4 waits" in told and "a reader has state 3 open" in told and "when the readers" in told
        assert sha256(made) == before
        assert "not applied yet" in h5cow("recover", made)
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert reader.stdout.readline() == "1500\n", "the reader saw another state than it opened"
    with h5py.File(made, "r") as f:
        assert f["g/x"][50, 0] == 1500, "not pending any more"
    before = sha256(made)
    told = json.loads(h5cow("recover", "--dry-run", "--json", made))
    assert sha256(made) == before
    assert told["newest"] == 4 and told["applied"] == 3 and [p["commit"] for p in told["pending"]] == [4]
    assert told["done"] == ["would be applied: 1 commit"]
    assert told["left_pending"] == 1
    told = h5cow("recover", made)
    assert "applied: 1 commit" in told and "checked: no damage" in told
    with h5py.File(made, "r") as f:
        assert f["g/x"][50, 0] == -7
    before = sha256(made)
    assert "there is nothing to do" in h5cow("recover", made)
    assert sha256(made) == before


def test_several_pending_commits_become_one_state(pending):
    told = json.loads(h5cow("recover", "--json", pending))
    assert (told["newest"], told["applied"], told["left_pending"]) == (5, 3, 0)
    with h5py.File(pending, "r") as f:
        assert f["g/x"][50, 0] == -8 and len(f["_versioned_data/versions"]) == 5


LOOP = """
import itertools
f = h5py.File(FILE, 'a')
print('ready', flush=True)
for i in itertools.count(1):
    f['g/x'][:] = i
    f.require_group(f'n{i}')
    f.flush()
    print(i, flush=True)
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_writer_killed_at_any_moment(made, seed):
    rnd = random.Random(seed)
    with running(made, LOOP) as child:
        for _ in range(rnd.randrange(1, 8)):
            last = int(child.stdout.readline())
        try:
            child.wait(rnd.random() * 0.05)
        except subprocess.TimeoutExpired:
            child.kill()
        child.wait()
        told = child.stdout.read().split()
        last = int(told[-1]) if told else last
    h5cow("recover", "--dry-run", made)
    assert "checked: no damage" in h5cow("recover", made)
    size = made.stat().st_size
    assert "there is nothing to do" in h5cow("recover", made)
    assert made.stat().st_size == size
    with h5py.File(made, "r") as f:
        x = f["g/x"][...]
        assert (x == x[0, 0]).all() and x[0, 0] in (last, last + 1)
        assert f"n{x[0, 0]}" in f and f"n{x[0, 0] + 1}" not in f
    assert "version" in h5cow("log", made)


def test_the_tail_is_given_back(made, sha256):
    code = """
    f = h5py.File(FILE, 'a')
    d = f.create_dataset('big', (4 << 20,), 'u1', chunks=(1 << 16,))
    d[:] = np.random.default_rng(1).integers(0, 256, 4 << 20, dtype='u1')
    print('ready', flush=True)
    sys.stdin.readline()
    """
    whole = made.stat().st_size
    with running(made, code) as child:
        child.kill()
        child.wait()
    left = made.stat().st_size
    assert left > whole + (1 << 20), "nothing was written before the commit, so there is nothing to test"
    before = sha256(made)
    told = json.loads(h5cow("recover", "--dry-run", "--json", made))
    assert told["uncommitted_bytes"] > 1 << 20 and "given back" in told["done"][0] and sha256(made) == before
    assert "given back" in h5cow("recover", made)
    assert made.stat().st_size == left - told["uncommitted_bytes"]
    assert "there is nothing to do" in h5cow("recover", made)


def test_a_writer_at_work_is_named_and_left_alone(made, sha256):
    with running(made, "f = h5py.File(FILE, 'a'); print('ready', flush=True); sys.stdin.readline()") as child:
        before = sha256(made)
        for words in ([made], ["--dry-run", made], [made, made.with_name("out.h5")]):
            told = h5cow("recover", *words, code=2)
            assert f"process {child.pid} (python3" in told, told
        assert sha256(made) == before and not made.with_name("out.h5").exists()


def test_an_unfinished_creation_holds_nothing_and_is_emptied(tmp_path, sha256):
    path = tmp_path / "new.h5"
    code = "f = h5py.File(FILE, 'w'); f['x'] = np.arange(100000); print('ready', flush=True); sys.stdin.readline()"
    with running(path, code) as child:
        assert "is being written by process" in h5cow("recover", path, code=2)
        child.kill()
        child.wait()
    before = sha256(path)
    assert "holds nothing" in h5cow("recover", "--dry-run", path) and sha256(path) == before
    assert "holds nothing" in h5cow("recover", path, tmp_path / "out.h5", code=2)
    assert not (tmp_path / "out.h5").exists() and sha256(path) == before
    assert "emptied" in h5cow("recover", path)
    assert path.stat().st_size == 0
    assert "there is nothing to do" in h5cow("recover", path)


@pytest.mark.parametrize("what", ["flagged", "torn", "zeroed"])
def test_the_superblock_is_put_right_from_the_journal(made, what, sha256):
    data = bytearray(made.read_bytes())
    whole = bytes(data)
    if what == "zeroed":
        data[:48] = bytes(48)
    elif what == "torn":
        data[30] ^= 0xFF
    else:
        data[11] |= 1  # with a checksum that is wrong: as torn as can be
    made.write_bytes(data)
    assert not stock_opens(made)
    before = sha256(made)
    assert "would be put right" in h5cow("recover", "--dry-run", made) and sha256(made) == before
    assert "put right: the superblock" in h5cow("recover", made)
    assert made.read_bytes() == whole and stock_opens(made)


READ_ONLY = """
import ctypes, os, sys
source, target, *command = [os.fsencode(word) for word in sys.argv[1:]]
libc = ctypes.CDLL(None, use_errno=True)
bind, remount, read_only, apart, namespace = 4096, 32, 1, 1 << 18 | 16384, 0x20000
if libc.unshare(namespace):
    sys.exit(77)
libc.mount(None, b"/", None, apart, None)  # nobody else is to see it
if libc.mount(source, target, None, bind, None) or (
    libc.mount(None, target, None, bind | remount | read_only, None)
):
    sys.exit(77)
os.execv(command[0], command)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to mount")
def test_a_read_only_medium_is_told_what_could_be_done(pending, tmp_path):
    folder = tmp_path / "ro"
    folder.mkdir()
    command = [sys.executable, "-c", READ_ONLY, pending.parent, folder, H5COW, "recover", folder / pending.name]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=ENV)
    if done.returncode == 77:
        pytest.skip("cannot mount here")
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "where it can be written, it will be applied: 2 commits" in done.stdout
    assert "Read-only file system" in done.stderr and "nothing is lost" in done.stderr


def test_usage_and_what_is_not_ours(tmp_path, made):
    (tmp_path / "text").write_text("no HDF5 at all")
    assert "not an HDF5 file" in h5cow("recover", tmp_path / "text", code=2)
    assert "No such file" in h5cow("recover", tmp_path / "missing.h5", code=2)
    assert "which file" in h5cow("recover", code=2)
    assert "no option" in h5cow("recover", "--bogus", made, code=2)
    with h5py.File(tmp_path / "stock.h5", "w") as f:
        f["x"] = 1
    assert "no history" in h5cow("recover", tmp_path / "stock.h5")
    kept = tmp_path / "kept.h5"
    kept.write_text("mine")
    assert "exists" in h5cow("recover", made, kept, code=2) and kept.read_text() == "mine"
    assert "--dry-run" in h5cow("recover", "--help")


# ---- damaged journals -----------------------------------------------------------------------------------------------


def test_with_the_newest_slot_damaged_the_other_one_counts(made, original):
    spoil(made, slots(made)[0])
    assert "one of the two slots" in h5cow("recover", made)
    out, told = salvage(made)
    assert same_versions(out, original) and told["lost"] == []


def same_versions(a, b):
    found, want = versions(a), versions(b)
    return found.keys() == want.keys() and all(same(found[v], want[v]) for v in want)


def test_with_both_slots_damaged_the_applied_state_is_saved(made, original):
    for slot in slots(made):
        spoil(made, slot)
    told = h5cow("recover", made, code=1)
    assert "both slots" in told and f"h5cow recover {made} OUT" in told
    out, told = salvage(made)
    assert "applied last" in told["state"] and told["lost"] == []
    assert same_versions(out, original)


def test_with_both_slots_and_the_superblock_damaged_the_history_is_found(made, original):
    for slot in slots(made):
        spoil(made, slot)
    with open(made, "r+b") as f:
        f.write(bytes(48))
    h5cow("recover", made, code=1)
    out, told = salvage(made)
    assert same_versions(out, original)


def test_with_a_damaged_extent_the_state_before_is_saved(pending, original, sha256):
    address, *_, extent, length = slots(pending)[0]
    flip(pending, extent + 300)
    with pytest.raises(AssertionError, match="h5cow recover"):
        program(pending, "h5py.File(FILE, 'r')")
    before = sha256(pending)
    told = h5cow("recover", pending, code=1)
    assert "the record of the newest commit is damaged" in told and sha256(pending) == before
    assert "the record of the newest commit is damaged" in h5cow("recover", "--dry-run", pending, code=1)
    out, told = salvage(pending)
    assert "older state" in told["state"] or "applied last" in told["state"]
    found = versions(out)
    assert {"1", "2", "3"} <= found.keys() and "5" not in found
    want = versions(original)
    assert all(same(found[v], want[v]) for v in want)


@pytest.mark.parametrize("bytes_lost", [6500, 8000, 12000, 30000])
def test_a_file_that_was_cut_off(made, original, bytes_lost):
    """What is beyond the new end is lost: the newest version first, then the texts of the log (in a heap of zeros libhdf5
    1.14.5 goes round for ever), then the history's own group."""
    os.truncate(made, made.stat().st_size - bytes_lost)
    assert "cut off" in h5cow("recover", made, code=1)
    out = made.with_name("out.h5")
    answer = json.loads(h5cow("recover", "--json", made, out, code=1))
    found, want = versions(out), versions(original)
    assert answer["lost"]
    if bytes_lost < 10000:
        assert same(found["1"], want["1"]) and same(found["2"], want["2"])
    for name, objects in found.items():
        check(objects, want["3" if name == "newest" else name], [e for e in answer["lost"] if name in e["versions"]])


# ---- damaged contents -----------------------------------------------------------------------------------------------


def check(found, want, lost):
    """Everything that is not told to be lost is as it was."""
    for path, value in want.items():
        name = "/" + path.split("@")[0]
        mine = [e for e in lost if name == e["object"] or name.startswith(e["object"].rstrip("/") + "/")]
        if path not in found:
            assert mine, f"{path} is missing and nobody said so: {lost}"
        elif value is not None and not np.array_equal(found[path], value):
            inside = np.ones(np.shape(value), bool)
            for e in mine:
                if "start" in e:
                    inside[tuple(slice(a, a + n) for a, n in zip(e["start"], e["count"]))] = False
                elif "attribute" not in e or "@" in path:
                    inside[...] = False
            assert np.array_equal(found[path][inside], value[inside]), f"{path} differs where nothing was lost: {lost}"


def test_one_byte_of_a_chunk_costs_that_chunk_where_it_is_used(made, original, sha256):
    address, size = stored(made, "_versioned_data/raw/0", 3)
    flip(made, address + 17)
    told = h5cow("recover", made, code=1)
    assert "damaged place" in told and "/g/x" in told
    before = sha256(made)
    dry = json.loads(h5cow("recover", "--json", "--dry-run", made, made.with_name("none.h5"), code=1))
    assert not made.with_name("none.h5").exists() and sha256(made) == before
    out, told = salvage(made, code=1)
    (lost,) = told["lost"]
    assert lost["object"] == "/g/x" and lost["chunk"] == [3, 0] and lost["elements"] == 300
    assert (lost["start"], lost["count"]) == ([30, 0], [10, 30]) and lost["versions"] == ["1", "2", "3"]
    assert "checksum" in lost["why"] or "not what was stored" in lost["why"]
    assert dry["lost"] == told["lost"]
    found, want = versions(out), versions(original)
    for name in want:
        assert (found[name]["g/x"][30:40] == -9).all(), "not the fill value"
        check(found[name], want[name], told["lost"])
    text = h5cow("recover", made, made.with_name("again.h5"), code=1)
    assert "chunk (3, 0) of /g/x, from (30, 0) on (10, 30), 300 elements" in text and "in versions 1, 2, 3" in text


def test_a_chunk_that_one_version_has_costs_that_version_only(made, original):
    with h5py.File(made, "r") as f:
        raw = f["_versioned_data/raw/0"]
        (slot,) = [s for s in range(raw.shape[0] // 10) if raw[s * 10, 0] == X[0, 0] + 20000]
    flip(made, stored(made, "_versioned_data/raw/0", slot)[0])
    out, told = salvage(made, code=1)
    (lost,) = told["lost"]
    assert lost["chunk"] == [0, 0] and lost["versions"] == ["2"]
    found, want = versions(out), versions(original)
    assert same(found["1"], want["1"]) and same(found["3"], want["3"])
    assert (found["2"]["g/x"][:10] == -9).all()
    check(found["2"], want["2"], told["lost"])


def test_a_compressed_chunk_is_lost_alone(made, original):
    with h5py.File(made, "r") as f:
        pools = f["_versioned_data/raw"]
        (pool,) = [p for p in pools if pools[p].compression == "gzip"]
    address, size = stored(made, f"_versioned_data/raw/{pool}", 4)
    flip(made, address + size // 2)
    out, told = salvage(made, code=1)
    (lost,) = told["lost"]
    assert lost["object"] == "/zip" and lost["chunk"] == [4] and lost["elements"] == 500
    found, want = versions(out), versions(original)
    for name in want:
        check(found[name], want[name], told["lost"])


def records(path):
    """Index records: (address in the file, kind)."""
    address, size = stored(path, "_versioned_data/index")
    data = path.read_bytes()[address : address + size]
    found, at = [], 16
    while data[at : at + 2] == b"cN":
        found.append((address + at, data[at + 2]))
        at += 14 + struct.unpack_from("<H", data, at + 4)[0]
    return found


def test_one_byte_of_an_index_node_costs_nothing_the_views_still_know(made, original):
    leaves = [a for a, kind in records(made) if kind == 1]
    for leaf in leaves:
        flip(made, leaf + 8)
    out, told = salvage(made)
    assert told["lost"] == [] and same_versions(out, original)


def test_an_index_node_and_what_shows_it_cost_the_chunks_below(made, original):
    with h5py.File(made, "r") as f:
        views = {name: h5py.h5o.get_info(f[f"_versioned_data/views/{name}"].id).addr for name in f["_versioned_data/views"]}
        index = h5py.h5d.open(f.id, b"_versioned_data/index").get_chunk_info(0).byte_offset
    leaf, shows = next((a, b) for (a, kind), (b, after) in itertools.pairwise(records(made)) if (kind, after) == (1, 3))
    flip(made, leaf + 8)
    flip(made, views[f"{shows - index:x}"] + 20)  # the root's: its leaf has no view
    out, told = salvage(made, code=1)
    assert told["lost"] and all(e["elements"] > 0 for e in told["lost"])
    found, want = versions(out), versions(original)
    for name in want:
        check(found[name], want[name], [e for e in told["lost"] if name in e["versions"]])


def test_a_damaged_root_record_costs_that_dataset_in_its_version(made, original):
    roots = [a for a, kind in records(made) if kind == 3]
    flip(made, roots[-1] + 8)
    out, told = salvage(made, code=1)
    assert {e["object"] for e in told["lost"]} <= {"/g/x", "/zip"}
    found, want = versions(out), versions(original)
    assert same(found["1"], want["1"])
    for name in want:
        check(found[name], want[name], [e for e in told["lost"] if name in e["versions"]])


@pytest.mark.parametrize("table", ["log", "snapshots", "datasets", "pools", "slots/0", "index"])
def test_a_table_that_cannot_be_opened_costs_little(made, original, table):
    flip(made, header(made, f"_versioned_data/{table}") + 12)
    out = made.with_name("out.h5")
    done = subprocess.run([H5COW, "recover", "--json", made, out], capture_output=True, text=True, env=ENV, timeout=WAITING)
    assert done.returncode in (0, 1), done.stderr
    told = json.loads(done.stdout)
    found, want = versions(out), versions(original)
    assert found.keys() == want.keys()
    for name in want:
        check(found[name], want[name], [e for e in told["lost"] if name in e["versions"]])
    if table in ("log", "pools", "snapshots"):
        assert told["lost"] == []
    if table == "datasets":  # no chunk is lost, its elements are checked in another way
        assert all(np.array_equal(found[v]["g/x"], want[v]["g/x"]) for v in want)


def test_a_row_of_the_slot_table_costs_nothing_the_hash_still_proves(made, original):
    address, _ = stored(made, "_versioned_data/slots/0")
    flip(made, address + 48 * 3 + 33)  # the checksum of slot 3
    out, told = salvage(made)
    assert told["lost"] == [] and same_versions(out, original)


def test_names_messages_and_times_are_kept(made):
    out, told = salvage(made)
    a, b = (json.loads(h5cow("log", "--json", p)) for p in (made, out))
    for key in ("name", "time_us", "user", "host", "program", "message", "parent"):
        assert [v[key] for v in a] == [v[key] for v in b], key
    assert all(v["message"] == "as made" for v in b)
    assert out.stat().st_size < made.stat().st_size * 1.2, "chunks are not shared"


def test_a_dataset_with_chunks_larger_than_its_maximum(tmp_path):
    """HDF5 makes such a dataset only with the extent 0."""
    path = tmp_path / "large.h5"
    make = """
        with h5py.File(FILE, 'a') as f:
            if 'x' not in f:
                dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                dcpl.set_chunk((16, 3))
                space = h5py.h5s.create_simple((0, 9), (4, 9))
                h5py.h5d.create(f.id, b'x', h5py.h5t.NATIVE_INT32, space, dcpl)
            f['x'].resize(ROWS, 0)
            f['x'][:] = ROWS
    """
    for rows in "2", "3":
        program(path, make.replace("ROWS", rows))
    want = versions(path)
    out, told = salvage(path)
    assert told["lost"] == [] and same_versions(out, path)
    assert [want[v]["x"].shape for v in sorted(want)] == [(2, 9), (3, 9)]
    told = program(out, "x = h5py.File(FILE, 'r')['x']; print(x.shape, x.maxshape, x.chunks)")
    assert told == "(3, 9) (4, 9) (16, 3)\n"


@pytest.mark.parametrize("what", ["versions", "versions/2", "versions/2/g", "versions/3"])
def test_the_trees_of_versions(made, original, what):
    flip(made, header(made, f"_versioned_data/{what}") + 12)
    out = made.with_name("out.h5")
    code = {"versions": 0, "versions/3": 0}.get(what, 1)
    told = json.loads(h5cow("recover", "--json", made, out, code=code))
    found, want = versions(out), versions(original)
    assert same(found["1"], want["1"]) and same(found["3"], want["3"]), told
    if what == "versions/2":
        assert "2" not in found and [e["version"] for e in told["lost"]] == [True]
        assert {v["name"]: v["state"] for v in told["versions"]} == {"1": "whole", "2": "lost", "3": "whole"}
    elif what == "versions/2/g":
        assert [(e["object"], e["versions"]) for e in told["lost"]] == [("/g", ["2"])]
        check(found["2"], want["2"], told["lost"])
    else:
        assert same(found["2"], want["2"])


@pytest.mark.parametrize("what", ["/", "/g", "/g/x", "/_versioned_data"])
def test_the_head_and_the_history_itself(made, original, what):
    flip(made, header(made, what) + 12)
    out, told = salvage(made)
    assert same_versions(out, original), told
    program(out, "h5py.File(FILE, 'a').attrs['goes'] = 'on'")
    assert len(json.loads(h5cow("log", "--json", out))) == 4


def test_it_says_which_references_lead_nowhere(tmp_path):
    path, out = tmp_path / "nulls.h5", tmp_path / "out.h5"
    program(path, """
with h5py.File(FILE, 'a') as f:
    gone = f.create_group('gone')
    f.create_dataset('some refs', (3,), h5py.ref_dtype)[:2] = [gone.ref, gone.ref]
    f.create_group('g').attrs['to'] = gone.ref
    del f['gone']
""")
    told = h5cow("recover", path, out)
    assert "3 references to what is not there are null: " in told
    assert "the dataset '/some refs' (2)" in told and "the attribute 'to' of '/g' (1)" in told


REFER = """
with h5py.File(FILE, 'a') as f:
    kinds = {'plain': {}, 'chunks': {'chunks': (1,)}, 'zip': {'chunks': (2,), 'compression': 'gzip'}}
    if not len(f):
        aim = f.create_dataset('g/aim', (5,), h5py.string_dtype(), fillvalue='none')
        f.create_dataset('other', data=np.zeros(3)).attrs['row'] = np.array([(aim.ref, 1)], [('r', h5py.ref_dtype), ('n', 'i4')])
        for kind, more in kinds.items():
            f.create_dataset(kind, (3,), h5py.ref_dtype, **more)[:2] = [aim.ref, f['other'].ref]
        f['g'].attrs['aim'] = aim.ref
    elif 'STEP' == 'renamed':
        f.move('g/aim', 'aim')
    elif 'STEP' == 'written':
        f['g/aim'][1] = 'written'
    elif 'STEP' == 'moved':
        f.move('g', 'h')
    else:
        f['zip'][2] = f['g/aim'].ref
"""


@pytest.mark.parametrize("step", ["renamed", "written", "moved", "refers"])
def test_references_lead_to_what_has_a_new_place(tmp_path, step):
    """An object that is renamed, or cannot be changed in place, is made anew in OUT; what refers to it is unchanged."""
    path = tmp_path / "refers.h5"
    for now in ("made", step, "written" if step == "refers" else "nothing"):
        program(path, REFER.replace("STEP", now) if now != "nothing" else "h5py.File(FILE, 'a').attrs['n'] = 1")
    out, answer = salvage(path)
    assert answer["null_references"] == 0 and not answer["lost"]
    for number in (1, 2, 3):
        plain = tmp_path / f"{number}.h5"
        assert "null" not in h5cow("export", f"{out}@{number}", plain)
        with h5py.File(plain) as f:
            group = f["h" if step == "moved" and number > 1 else "g"]
            aim = f["aim" if step == "renamed" and number > 1 else f"{group.name}/aim"]
            assert f[group.attrs["aim"]] == aim and f[f["other"].attrs["row"][0]["r"]] == aim
            for kind in ("plain", "chunks", "zip"):
                assert [f[r] for r in f[kind][:2]] == [aim, f["other"]]
                assert bool(f[kind][2]) == (kind == "zip" and step == "refers" and number > 1)


OWN = """
with h5py.File(sys.argv[1], "w") as f:
    f.attrs["t"] = "ROOTVALUE"
    f.create_group("g").attrs["t"] = "GROUPVALUE"
    f.create_dataset("s", data=[1, 2]).attrs["t"] = "SMALLVALUE"
    f.create_dataset("d", data=np.arange(3000.0)).attrs["t"] = "LARGEVALUE"
    f.create_dataset("w", data=["SMALLTEXT", "x"], dtype=h5py.string_dtype())
"""
WORDS = ["ROOTVALUE", "GROUPVALUE", "SMALLVALUE", "LARGEVALUE", "SMALLTEXT"]


def own_words(path):
    with h5py.File(path) as f:
        return [f[name].attrs.get("t") for name in "/gsd"] + [f["w"][0].decode() if "w" in f else None]


@pytest.mark.parametrize("word", WORDS)
def test_a_value_that_hdf5_keeps_is_taken_where_it_is_whole(programs, tmp_path, word):
    """The newest version and the head have a copy each. One is enough; if both changed, that is told."""
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    assert programs.python(OWN, path).returncode == 0
    data = path.read_bytes()

    def change(places):
        bad = bytearray(data)
        for place in places:
            bad[place + 2] ^= 1
        path.write_bytes(bad)

    places, harmed = [], []
    for place in (m.start() for m in re.finditer(word.encode(), data)):
        change([place])
        if programs.cow("verify", path).returncode:  # else it lies in the journal
            places.append(place)
    assert len(places) == 2
    for chosen in [[p] for p in places] + [places]:
        change(chosen)
        told = json.loads(programs.cow("recover", "--json", path, out).stdout)
        found = own_words(out)
        harmed.append(bool(told["lost"]))
        for right, value in zip(WORDS, found, strict=True):
            assert value == right or (right == word and told["lost"] and value in (None, "")), (chosen, found, told)
        out.unlink()
    assert harmed == [False] * len(places) + [True]


def test_nothing_readable_makes_nothing(made):
    with open(made, "r+b") as f:
        f.write(bytes(made.stat().st_size))
    out = made.with_name("out.h5")
    assert "nothing can be read" in h5cow("recover", made, out, code=2)
    assert not out.exists() and not list(made.parent.glob("*.tmp"))


@pytest.mark.parametrize("part", [0.08, 0.3, 0.6])
def test_where_nothing_can_be_saved_nothing_is_made(tmp_path, part):
    """The root can be opened, and none of its links: they are behind the end. In parts libhdf5 ends in the C library, which writes to
    standard error on its own account."""
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    code = """
        for number in 1, 2:
            with h5py.File(FILE, 'a') as f:
                for i in range(30):
                    f.require_dataset(f'd{i}', (500,), 'f8', chunks=(100,))[3] = number
    """
    program(path, code)
    os.truncate(path, int(path.stat().st_size * part))
    for words in (["recover", path, out], ["recover", "--dry-run", path, out]):
        told = h5cow(*words, code=2)
        assert told.startswith(f"h5cow: nothing can be read of '{path}': ") and told.count("\n") == 1, told
        assert sorted(os.listdir(tmp_path)) == ["a.h5"]
    done = subprocess.run([H5COW, "verify", path], env=ENV, capture_output=True, text=True)
    assert done.stderr == "" or done.stderr.startswith("h5cow: "), done.stderr


def test_a_file_of_many_versions_that_was_cut_off(tmp_path):
    """Links of large groups are in a heap, a part of which is behind the end: libhdf5 1.14.5 crashes where it lists them in their order."""
    path, out, rnd = tmp_path / "a.h5", tmp_path / "out.h5", random.Random(seed())
    code = """
        import numpy as np
        for n in range(120):
            with h5py.File(FILE, 'a') as f:
                d = f.require_dataset(f'd{n % 5}', (600,), 'f8', chunks=(100,), maxshape=(None,))
                d[...] = n
    """
    program(path, code)
    data = path.read_bytes()
    made = 0
    for part in [0.667] + [rnd.uniform(0.5, 0.999) for _ in range(6)]:
        path.write_bytes(data[: int(len(data) * part)])
        out.unlink(missing_ok=True)
        done = subprocess.run([H5COW, "recover", "--json", path, out], env=ENV, capture_output=True, text=True)
        assert "again and again" not in done.stderr and done.stderr.count("\n") <= 1, (part, done.stderr)
        if done.returncode == 2:
            assert done.stderr.startswith("h5cow: nothing can be read of "), (part, done.stderr)
            continue
        answer = json.loads(done.stdout)
        assert done.returncode == 1 and answer["lost"], (part, answer)
        made += 1
        whole = {v["name"] for v in answer["versions"] if v["name"] and v["state"] == "whole" and "same_as_before" not in v}
        with h5py.File(out, "r") as f:
            for name in whole:
                last = 119 if name == "newest" else int(name) - 1
                for k, d in f[f"_versioned_data/versions/{name}"].items():
                    assert set(d[...].tolist()) == {last - (last - int(k[1:])) % 5}, (part, name, k)
    assert made > 0


def test_versions_that_a_file_which_was_cut_off_may_have_had(tmp_path):
    """The group of the history is behind the end, and an older list of versions may be found: it is not all there was."""
    path, out = tmp_path / "a.h5", tmp_path / "out.h5"
    code = """
        import numpy as np
        rng = np.random.default_rng(1)
        for n in range(8):
            with h5py.File(FILE, 'a') as f:
                if n == 0:
                    f.create_dataset('a', data=rng.integers(1, 2**31, 20000), chunks=(50,), maxshape=(None,))
                    for k in range(30):
                        f.create_dataset(f'g/n{k}', data=rng.random(900) + 1)
                else:
                    f['a'][n * 2000:n * 2000 + 200] = n
                    f[f'g/n{n}'][3:500] = n
                    f.create_dataset(f'new{n}', data=rng.random(700) + 1)
    """
    program(path, code)
    data = path.read_bytes()
    for percent in range(40, 100, 4):
        path.write_bytes(data[: len(data) * percent // 100])
        out.unlink(missing_ok=True)
        done = subprocess.run([H5COW, "recover", "--json", path, out], env=ENV, capture_output=True, text=True)
        if done.returncode == 2:
            continue
        answer = json.loads(done.stdout)
        named = {v["name"] for v in answer["versions"]}
        whole = {v["name"] for v in answer["versions"] if v["state"] == "whole"}
        untold = any(one["object"] == "/_versioned_data/versions" for one in answer["lost"])
        assert done.returncode == 1 and answer["lost"], (percent, answer)
        assert untold or {str(n) for n in range(1, 9)} <= named, (percent, named, whole)


def test_wherever_a_byte_changes_what_is_not_told_is_right(original, tmp_path):
    rnd = random.Random(seed())
    data = original.read_bytes()
    chunks = set()
    with h5py.File(original, "r") as f:
        for pool in f["_versioned_data/raw"].values():
            for i in range(pool.id.get_num_chunks()):
                info = pool.id.get_chunk_info(i)
                chunks.update(range(info.byte_offset, info.byte_offset + info.size))
    metadata = [a for a in range(len(data)) if a not in chunks]
    want = versions(original)
    path, out = tmp_path / "bad.h5", tmp_path / "out.h5"
    lossless = 0
    for at in rnd.sample(metadata, 100) + rnd.sample(sorted(chunks), 20):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << rnd.randrange(8)]) + data[at + 1 :])
        done = subprocess.run([H5COW, "recover", "--json", path, out], capture_output=True, text=True, env=ENV, timeout=WAITING)
        assert done.returncode in (0, 1), (at, done.stderr)
        told, found = json.loads(done.stdout), versions(out)
        lossless += done.returncode == 0
        for name in want:
            lost = [e for e in told["lost"] if name in e["versions"]]
            state = {v["name"]: v for v in told["versions"]}[name]
            if name not in found:
                assert state["state"] == "lost" or "same_as_before" in state, (at, told)
                continue
            check(found[name], want[name], lost)
        out.unlink()
    assert lossless > 60
    results(
        5,
        "h5cow recover FILE OUT on 120 files with one bit flipped",
        f"{lossless} saved whole, {120 - lossless} with every loss told; 0 wrong elements",
        "python3 -m pytest test/test_recover.py -k wherever",
    )


# ---- copy -----------------------------------------------------------------------------------------------------------


def test_copies_of_a_file_at_work_are_committed_states(made, tmp_path):
    with running(made, LOOP) as child:
        last = 0
        for n in range(8):
            for _ in range(3):
                last = int(child.stdout.readline())
            copy = tmp_path / f"copy{n}.h5"
            h5cow("copy", made, copy)
            assert "there is nothing to do" in h5cow("recover", copy)
            assert "no damage" in h5cow("verify", copy)
            with h5py.File(copy, "r") as f:
                x = f["g/x"][...]
                assert (x == x[0, 0]).all() and x[0, 0] >= last
                assert f"n{x[0, 0]}" in f and f"n{x[0, 0] + 1}" not in f
                assert len(f["_versioned_data/versions"]) == 4
        assert child.poll() is None, "the writer did not go on"
    program(copy, "h5py.File(FILE, 'a').attrs['goes'] = 'on'")
    assert "checked: no damage" in h5cow("recover", copy)


def test_a_copy_has_what_is_pending_applied_and_history_and_fence(pending):
    copy = pending.with_name("copy.h5")
    before = pending.read_bytes()
    h5cow("copy", pending, copy)
    assert pending.read_bytes() == before
    with h5py.File(copy, "r") as f:
        assert f["g/x"][50, 0] == -8 and sorted(f["_versioned_data/versions"]) == list("12345")
    assert stock_opens(copy) and not stock_opens(copy, "r+"), "without a fence"
    assert newest(copy) == -8


def test_a_copy_never_takes_a_name_that_exists(made, tmp_path):
    kept = tmp_path / "kept.h5"
    kept.write_text("mine")
    assert "exists" in h5cow("copy", made, kept, code=2)
    assert "exists" in h5cow("copy", made, made, code=2)
    assert kept.read_text() == "mine"
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert "exists" in h5cow("copy", made, tmp_path / "dangling", code=2)
    assert "cannot create" in h5cow("copy", made, tmp_path / "no" / "folder.h5", code=2)
    assert "No such file" in h5cow("copy", tmp_path / "missing.h5", tmp_path / "new.h5", code=2)
    (tmp_path / "text").write_text("no HDF5 at all")
    assert "not an HDF5 file" in h5cow("copy", tmp_path / "text", tmp_path / "new.h5", code=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dangling", "kept.h5", "text", "three.h5"]


def test_a_file_without_history_is_copied_when_nobody_writes_it(tmp_path):
    stock, copy = tmp_path / "stock.h5", tmp_path / "copy.h5"
    with h5py.File(stock, "w") as f:
        f["x"] = np.arange(1000)
        f.flush()
        assert "lock" in h5cow("copy", stock, copy, code=2)
        assert not copy.exists()
    h5cow("copy", stock, copy)
    assert copy.read_bytes() == stock.read_bytes()


def test_holes_stay_holes(tmp_path):
    path, copy = tmp_path / "sparse.h5", tmp_path / "copy.h5"
    program(path, "f = h5py.File(FILE, 'w'); f['x'] = np.arange(1000); f.close()")
    with h5py.File(tmp_path / "stock.h5", "w") as f:
        f.create_dataset("x", (1 << 26,), "u1")[-1] = 1
    if (tmp_path / "stock.h5").stat().st_blocks * 512 > 1 << 25:
        pytest.skip("this file system has no holes")
    h5cow("copy", tmp_path / "stock.h5", copy)
    assert copy.stat().st_size == (tmp_path / "stock.h5").stat().st_size
    assert copy.stat().st_blocks * 512 < 1 << 20


def test_a_damaged_file_is_not_copied(pending):
    flip(pending, slots(pending)[0][4] + 300)
    assert "h5cow recover" in h5cow("copy", pending, pending.with_name("copy.h5"), code=2)
    assert not pending.with_name("copy.h5").exists() and not list(pending.parent.glob("*.tmp"))


# ---- advice ----------------------------------------------------------------------------------------------------------


def test_saving_is_advised_only_where_there_is_something_to_save(tmp_path, original):
    """A damaged file without history: what HDF5 cannot read, h5cow cannot either."""
    plain, out = tmp_path / "plain.h5", tmp_path / "out.h5"
    with h5py.File(plain, "w") as f:
        f["x"] = np.arange(5000)
    os.truncate(plain, 9000)
    before = plain.read_bytes()
    told = h5cow("recover", plain, code=1)
    assert "truncated" in told and "no history" in told and "OUT" not in told, told
    told = h5cow("recover", plain, out, code=2)
    assert "no history" in told and "journal" not in told and len(told.splitlines()) == 1, told
    assert plain.read_bytes() == before and os.listdir(tmp_path) == ["plain.h5"]

    repacked = tmp_path / "repacked.h5"  # a history without a journal can be saved from
    subprocess.run(["h5repack", str(original), str(repacked)], check=True, env={**ENV, "HDF5_PLUGIN_PATH": "/nowhere"})
    os.truncate(repacked, int(os.path.getsize(repacked) * 0.9))
    assert f"h5cow recover {repacked} OUT" in h5cow("recover", repacked, code=1)
    done = subprocess.run([H5COW, "recover", repacked, out], capture_output=True, text=True, env=ENV, timeout=WAITING)
    assert done.returncode in (0, 1) and out.exists(), done.stderr
    h5cow("verify", out)
