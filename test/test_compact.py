"""h5cow gc --compact: the file is written anew, smallest; every version is what it was, and whatever happens there is a whole file.

What files hold, and how they are compared, is that of test_salvage.py: the same engine makes the new file.
"""

import json
import os
import random
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
from conftest import H5COW, STOCK as ENV, h5cow
from seeds import seed
from terminal import all_on_a_terminal
from test_bad_input import SMALL_DISK
from test_recover import READER, flip, running, stored
from test_salvage import CHANGES, LINKS, OTHERS, make, natively, shown, without_layout
from waiting import WAITING


FORGOTTEN = 2  # docs/format.md


# What the smallest file leaves out of the rows of forgotten versions.
LEFT_OUT = ("host", "program", "hdf5", "h5cow")


def rows(path):
    """The log, but for sizes."""
    with h5py.File(path, "r") as f:
        return [{n: x[n] for n in x.dtype.names if n not in ("added", "chunks", "changed")} for x in f["_versioned_data/log"]]


def without(log):
    return [row if row["open"] != FORGOTTEN else row | dict.fromkeys(LEFT_OUT, b"") for row in log]


def states(path):
    """What every version and the newest state hold, the latter also natively."""
    names = [f"@{row['name'].decode()}" for row in rows(path) if row["open"] != FORGOTTEN]
    return shown(*(f"{path}{name}" for name in [*names, ""])), without_layout(natively(path))


def compacted(path, *options):
    before, log, tags = states(path), rows(path), h5cow("tag", path)
    told = json.loads(h5cow("gc", "--compact", "--json", *options, path))
    assert states(path) == before and rows(path) == without(log) and h5cow("tag", path) == tags
    assert told["bytes_after"] == path.stat().st_size
    h5cow("verify", path)
    assert not list(path.parent.glob(".*"))
    return told


def refused(path, said, *options, **more):
    before = path.read_bytes()
    told = h5cow("gc", "--compact", *options, path, code=2, **more)
    assert said in told and len(told.splitlines()) == 1, told
    assert path.read_bytes() == before
    assert not list(path.parent.glob(".*"))


GROW = [
    "f.create_dataset('x', data=np.arange(20000.), chunks=(500,), maxshape=(None,)); f['g/t'] = np.array([b'a', b'b'])\n"
    "f['r'] = np.array([f['x'].ref, f['g'].ref], dtype=h5py.ref_dtype); f['s'] = Soft('/g/t')\n"
    "f.create_dataset('z', data=np.arange(4000).reshape(40, 100), chunks=(10, 10), compression='gzip', shuffle=True)",
    *(f"f['x'][{n}*1000:{n}*1000+700] = -{n}; f['z'][{n}] = {n}; f['g'].attrs['n'] = {n}" for n in range(1, 9)),
]


@pytest.fixture
def made(tmp_path):
    path = tmp_path / "a.h5"
    make(path, GROW)
    return path


# ---- what comes out -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [*LINKS.values(), *OTHERS.values()], ids=[*LINKS, *OTHERS])
def test_every_version_stays_as_it_is(tmp_path, steps):
    make(tmp_path / "a.h5", steps)
    compacted(tmp_path / "a.h5")


LATER = """
import time
now = int(time.time())
while int(time.time()) == now: time.sleep(0.01)
"""
TIMES = """
import json, sys
import h5py
def times(o):
    i = h5py.h5o.get_info(o.id)
    return i.atime, i.mtime, i.ctime, i.btime
def marks(group):
    return {n: group.id.links.get_info(n.encode()).cset for n in group}
def look(name):
    with h5py.File(name) as f:
        found = {"": times(f)}
        f.visititems(lambda n, o: found.update({n: times(o)}))
        own = {n: t for n, t in found.items() if not n.startswith('_versioned_data')}
        return own, marks(f), marks(f["g"])
print(json.dumps([look(name) for name in sys.argv[1:]]))
"""


@pytest.mark.parametrize("user_block", [0, 512])
def test_times_and_marks_of_names_stay(tmp_path, user_block):
    """The steps are seconds apart, and so is compacting: times are seconds."""
    path = tmp_path / "a.h5"
    steps = [
        "f.create_dataset('d', data=range(3), track_times=True); f['g/\u00f6'] = f['n'] = np.dtype('i4')\n"
        "f.create_dataset('e', (3000,), 'i8', chunks=(100,), maxshape=(None,), track_times=True)[:] = 1; f['\u00e9'] = 1; f['s'] = Soft('/\u00e9')\n"
        "f.create_dataset('no', (3000,), 'i8', chunks=(100,), track_times=False)[:] = 1",
        LATER + "f['e'][0] = 7",
        LATER + "f['g'].attrs['x'] = 1; f['g/\u00fc'] = Soft('/d')",
        LATER + "f['e'].resize((2000,)); f['d'][0] = 5",
        LATER + "pass",
    ]
    make(path, steps, **({"userblock_size": user_block} if user_block else {}))
    names = [*(f"{path}@{n}" for n in range(1, len(steps) + 1)), path]

    def look(*which, **more):
        done = subprocess.run([sys.executable, "-c", TIMES, *which], capture_output=True, text=True, **more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def all_of_it():
        return json.loads(h5cow("run", "--", sys.executable, "-c", TIMES, *names)), look(path, env=ENV)

    before = all_of_it()
    assert len({t["e"][1] for t, *_ in before[0]}) > 1 and before[1][0][1]["\u00e9"] == 1
    compacted(path)
    assert all_of_it() == before
    make(path, [LATER + "f['d'][1] = 6"])  # and it can be written on
    compacted(path)


@pytest.mark.parametrize("filters", ["", ", compression='gzip'", ", compression='lzf', shuffle=True, fletcher32=True"])
def test_pieces_stay_pieces(tmp_path, filters):
    """A row of a chunk is changed in each version: none of the new file's needs another whole chunk."""
    path = tmp_path / "a.h5"
    make(path, [
        f"f.create_dataset('d', data=np.random.default_rng(5).random((200, 300)), chunks=(50, 100){filters})",
        *(f"f['d'][{n}] = {n}" for n in range(1, 9)),
    ])  # fmt: skip
    compacted(path)
    added = [row["added"] for row in h5py.File(path)["_versioned_data/log"]]
    assert len(added) == 9 and all(0 < n < 20000 for n in added[1:]), added  # three chunks have some 110,000 bytes


@pytest.mark.parametrize("order", [False, True])
def test_marks_of_names_in_a_group_that_was_elsewhere_first(tmp_path, order):
    """In versions names are marked as ASCII, and the group that the head has is made where a version had it."""
    path = tmp_path / "a.h5"
    group = f"f.create_group('a', track_order={order})"
    steps = [
        f"a = {group}; a['\u00e9'] = 1; a['\u00fc'] = Soft('/x'); a['c'] = 2; f['b'] = a",
        "del f['a']",
        "f['x'] = 1",
    ]
    make(path, steps)
    before = natively(path)
    assert [mark for name, mark in before["/b/"]] == ([1, 1, 0] if order else [0, 1, 1])
    compacted(path)
    assert natively(path)["/b/"] == before["/b/"]


@pytest.mark.parametrize("number", range(8))
def test_whatever_is_forgotten_all_others_stay(tmp_path, number):
    rnd = random.Random(seed() + number)
    path = tmp_path / "a.h5"
    steps = [CHANGES.replace("SEED", str(rnd.getrandbits(32))) for _ in range(rnd.randrange(4, 8))]
    make(path, steps, track_order=rnd.random() < 0.5)
    h5cow("forget", path, *(f"#{n}" for n in sorted(rnd.sample(range(1, len(steps)), rnd.randrange(1, len(steps) - 1)))))
    told = compacted(path)
    assert told["versions"] + told["forgotten"] == len(steps)
    make(path, ["f.attrs['after'] = 1"])
    assert compacted(path)["versions"] == told["versions"] + 1


def test_numbers_names_and_tags_stay(made):
    h5cow("rename", f"{made}@4", "four")
    h5cow("tag", f"{made}@four", "paper")
    h5cow("describe", f"{made}@5", "a message")
    h5cow("forget", made, "1", "2", "6", "8")
    told = compacted(made)
    assert (told["versions"], told["forgotten"]) == (5, 4) and told["bytes_after"] < told["bytes_before"]
    assert h5cow("hash", f"{made}@#4").split()[0] == h5cow("hash", f"{made}@paper").split()[0]
    h5cow("hash", f"{made}@#6", code=2)
    make(made, ["f['x'][0] = 9"])
    assert rows(made)[-1]["name"] == b"10"


def test_a_version_that_is_the_same_as_the_one_before_stays_a_version(tmp_path):
    path = tmp_path / "a.h5"
    make(path, ["f['x'] = [1, 2, 3]; f['l'] = Soft('/x')", "f['x'][0] = 7"])
    h5cow("restore", f"{path}@1")
    make(path, ["f['x'][1] = 8"])
    h5cow("forget", path, "2")
    assert compacted(path)["versions"] == 3


WRITE = """
import sys
import h5py, numpy as np
for n in range(0, 120, int(sys.argv[2])):
    with h5py.File(sys.argv[1], "a") as f:
        if n == 0:
            f.create_dataset("x", data=np.random.default_rng(1).random(120000), chunks=(1000,))
            f.create_dataset("z", (120, 3000), "i8", chunks=(1, 3000), compression="gzip")
            f["small"] = np.arange(20)
        for k in range(n, n + int(sys.argv[2])):
            f["x"][k * 1000 : k * 1000 + 1000] = -k
            f["z"][k] = np.arange(3000) * k
            f["small"][...] = k
"""


def test_the_file_gets_as_small_as_if_only_what_is_kept_had_been_written(tmp_path):
    every, kept = tmp_path / "every.h5", tmp_path / "kept.h5"
    (tmp_path / "write.py").write_text(WRITE)
    for path, step in (every, 1), (kept, 2):
        h5cow("run", "--", sys.executable, tmp_path / "write.py", path, step)
    h5cow("forget", every, *map(str, range(1, 120, 2)))
    h5cow("gc", "--compact", every)  # which compares all versions
    h5cow("verify", every)
    assert every.stat().st_size <= 1.02 * kept.stat().st_size


def test_user_block_owner_and_permissions_stay(tmp_path):
    path = tmp_path / "a.h5"
    make(path, ["f['x'] = np.arange(3000)", "f['x'][0] = 7"], userblock_size=1024)
    with open(path, "r+b") as f:
        f.write(b"#!/bin/sh\n")
    path.chmod(0o640)
    os.setxattr(path, "user.colour", b"red")
    compacted(path)
    assert path.read_bytes()[:11] == b"#!/bin/sh\n\0"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640 and os.getxattr(path, "user.colour") == b"red"


SHARED = """
import ctypes, sys
import h5py
library = ctypes.CDLL(next(l.split()[-1] for l in open('/proc/self/maps') if 'libhdf5' in l and '_hl' not in l))
if sys.argv[2:]:
    fcpl = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    assert library.H5Pset_shared_mesg_nindexes(ctypes.c_int64(fcpl.id), 2) >= 0
    for index, kinds in enumerate((8, 3)):  # fill values; dataspaces and datatypes
        assert library.H5Pset_shared_mesg_index(ctypes.c_int64(fcpl.id), index, kinds, 50) >= 0
    with h5py.File(h5py.h5f.create(sys.argv[1].encode(), h5py.h5f.ACC_TRUNC, fcpl)) as f:
        f['x'] = range(3000)
with h5py.File(sys.argv[1], 'r') as f:
    fcpl, kinds, least = f.id.get_create_plist(), ctypes.c_uint(), ctypes.c_uint()
    for index in range(2):
        assert library.H5Pget_shared_mesg_index(ctypes.c_int64(fcpl.id), index, ctypes.byref(kinds), ctypes.byref(least)) >= 0
        print(kinds.value, least.value)
"""


def test_what_the_file_shares_stays(tmp_path):
    path = tmp_path / "a.h5"
    told = h5cow("run", "--", sys.executable, "-c", SHARED, path, "create")
    compacted(path)
    assert h5cow("run", "--", sys.executable, "-c", SHARED, path) == told == "8 50\n3 50\n"


def test_of_a_symbolic_link_the_file_that_it_leads_to_is_compacted(made, tmp_path):
    (tmp_path / "folder").mkdir()
    target, old = made.rename(tmp_path / "folder/b.h5"), tmp_path / "a.h5"
    old.symlink_to("folder/b.h5")
    inode = target.stat().st_ino
    h5cow("gc", "--compact", old)
    assert old.is_symlink() and target.stat().st_ino != inode and old.stat().st_ino == target.stat().st_ino
    h5cow("verify", target)


def test_with_dry_run_only_the_size_is_told(made):
    before = made.read_bytes()
    told = json.loads(h5cow("gc", "--compact", "--dry-run", "--json", made))
    assert made.read_bytes() == before and not list(made.parent.glob(".*"))
    assert compacted(made)["bytes_after"] == told["bytes_after"]


# ---- others who have the file open ----------------------------------------------------------------------------------


def test_a_reader_goes_on_with_the_old_file(tmp_path):
    path = tmp_path / "a.h5"
    make(path, ["f['g/x'] = np.arange(6000).reshape(200, 30)", "f['g/x'][50] = 7"])
    with running(path, READER) as reader:
        compacted(path)
        make(path, ["f['g/x'][50] = 8"])
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert reader.stdout.readline() == "7\n"
    assert len(rows(path)) == 3


def test_nobody_else_may_write_meanwhile(tmp_path):
    path = tmp_path / "a.h5"
    make(path, ["f['g/x'] = np.arange(6000).reshape(200, 30)", "f['g/x'][50] = 7"])
    with running(path, READER.replace("'r'", "'a'")):
        refused(path, "is being written by process")


# ---- what is refused ------------------------------------------------------------------------------------------------


def test_a_file_with_another_name_is_refused(made, tmp_path):
    (tmp_path / "b.h5").hardlink_to(made)
    refused(made, "hard links")


def test_a_file_without_history_is_refused(tmp_path):
    path = tmp_path / "plain.h5"
    with h5py.File(path, "w") as f:
        f["x"] = 1
    refused(path, "has no history")
    path.write_text("no HDF5 file at all")
    refused(path, "")


def test_a_damaged_file_is_refused(made):
    address, size = stored(made, "_versioned_data/raw/0")
    flip(made, address + size // 2)
    refused(made, "is damaged")


def test_a_file_in_a_folder_where_nothing_can_be_made_is_refused(made, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may do that")
    tmp_path.chmod(0o500)
    refused(made, "cannot create")


@pytest.mark.parametrize("part", [0, 0.1, 0.5, 0.9])
def test_where_the_file_may_not_grow_it_stays_as_it_is(made, part):
    most = int(made.stat().st_size * part)
    refused(made, "", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))


@pytest.mark.parametrize("room", [16, 200])  # KiB beside the file
def test_on_a_full_disk_the_file_stays_as_it_is(made, tmp_path, room):
    disk, after = tmp_path / "disk", tmp_path / "after.h5"
    disk.mkdir()
    size = made.stat().st_size // 1024 + room
    words = [sys.executable, "-c", SMALL_DISK, disk, size, made, after, H5COW, "gc", "--compact"]
    done = subprocess.run([str(w) for w in words], env=ENV, capture_output=True, text=True, timeout=WAITING)
    if done.returncode == 77:
        pytest.skip("only root can make a small disk; the limit on a file's size is tested")
    assert done.returncode == 2 and "no room" in done.stderr, done.stderr
    assert after.read_bytes() == made.read_bytes()


# ---- kills ----------------------------------------------------------------------------------------------------------


def left(path):
    return list(path.parent.glob(".*"))


def test_killed_at_any_moment_there_is_a_whole_file(tmp_path):
    rnd = random.Random(seed())
    path = tmp_path / "a.h5"
    make(path, [*GROW, *(f"f['x'][{n}] = 3; f['n{n}'] = np.arange({n})" for n in range(12))])
    h5cow("forget", path, "#2..#12")
    before, log = states(path), rows(path)
    begun = time.monotonic()
    h5cow("gc", "--compact", "--dry-run", path)
    whole = time.monotonic() - begun
    killed = 0
    for _ in range(20):
        child = subprocess.Popen([H5COW, "gc", "--compact", path], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(rnd.random() * 1.1 * whole)
        child.kill()
        child.communicate()
        killed += child.returncode == -signal.SIGKILL
        assert len(left(path)) <= 1, "one name, and the next run finds it"
        h5cow("verify", path)
        assert without(rows(path)) == without(log)
    assert killed > 5
    assert states(path) == before
    until = time.monotonic() + WAITING
    while True:  # what the last one has started may be ending
        done = subprocess.run([H5COW, "gc", "--compact", path], env=ENV, capture_output=True, text=True)
        if done.returncode == 0 or time.monotonic() > until:
            break
        assert "is being written" in done.stderr
    assert done.returncode == 0 and not left(path), done.stderr
    assert states(path) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_takes_the_unfinished_file_away(made, number):
    before = made.read_bytes()
    child = subprocess.Popen([H5COW, "gc", "--compact", made], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until = time.monotonic() + WAITING
    while not left(made) and child.poll() is None and time.monotonic() < until:
        pass
    child.send_signal(number)
    child.communicate()
    assert not left(made)
    assert child.returncode == 0 or (child.returncode == -number and made.read_bytes() == before)


# ---- progress -------------------------------------------------------------------------------------------------------


def on_a_terminal(*words, **environment):
    """What a command prints where its standard error is a terminal."""
    text, code = all_on_a_terminal(H5COW, *map(str, words), streams=["stderr"], env=ENV | environment, stdout=subprocess.DEVNULL)
    assert code == 0, text
    return text.decode()


def test_what_takes_long_says_how_far_it_is_on_a_terminal(tmp_path):
    path = tmp_path / "a.h5"
    make(path, ["for n in range(2500): f[f'g/{n}'] = np.arange(10)", "f['g/7'][0] = 1"])
    with h5py.File(tmp_path / "plain.h5", "w") as f:
        f["x"] = np.arange(3000000.)
    shutil.copy(tmp_path / "plain.h5", tmp_path / "same.h5")
    h5cow("import", tmp_path / "plain.h5", tmp_path / "history.h5")
    for words in (["hash", path], ["verify", path], ["gc", "--compact", "--dry-run", path], ["diff", tmp_path / "plain.h5", tmp_path / "same.h5"],
                  ["diff", f"{tmp_path}/history.h5@1", tmp_path / "same.h5"], ["export", "--force", tmp_path / "history.h5", tmp_path / "out.h5"]):
        told = on_a_terminal(*words, H5COW_PROGRESS="0")  # at once, and not after a second
        of_how_much = words[0] in ("diff", "export")
        assert re.search(r"\[#* *\] +[0-9.]+ %" + ("" if of_how_much else "|: [0-9]+"), told) and told.endswith("\r\x1b[K"), words
        assert on_a_terminal(*words, "--quiet", H5COW_PROGRESS="0") == ""


def test_what_is_quick_says_nothing(made):
    assert on_a_terminal("hash", made) == ""
