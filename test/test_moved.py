"""Files with history whose start moved: a user block was put in front of them, made larger, or taken away.

Everything that knows nothing of the file's inside may do that: h5jam, h5unjam, cat, tail. HDF5 looks for its superblock
at 0, 512, 1024, 2048 ... and counts from where it finds it.
"""

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
from conftest import STOCK, h5cow
from seeds import seed
from waiting import WAITING

ROWS = 40
MAKE = """
for number in (1, 2, 3):
    if BASE and number == 1:
        f = h5py.File(FILE, 'w', userblock_size=BASE, libver='v110')
    else:
        f = h5py.File(FILE, 'a')
    with f:
        if number == 1:
            f.create_dataset('g/x', data=np.arange(1200, dtype='<i4').reshape(40, 30), chunks=(10, 30), maxshape=(None, 30))
            f.create_dataset('small', data=np.arange(5))
            f['g'].attrs['title'] = 'one'
        else:
            f['g/x'][:10] += 10000 * number
            f['small'][0] = number
            f['g'].attrs['title'] = str(number)
"""
# version 4, of which the others are told to wait: while somebody reads, nothing is applied
MORE = """
f = h5py.File(FILE, 'a')
f['g/x'].resize((ROWS, 30))
f['g/x'][-1] = -4
f['small'][0] = 4
f['g'].attrs['title'] = '4'
f.create_dataset('new', data=np.arange(3000.))
"""
READER = "f = h5py.File(FILE, 'r'); print('ready', flush=True); sys.stdin.readline()"
LOOK = """
import json
found = {}
for name in (FILE, FILE + '@1', FILE + '@2', FILE + '@3', FILE + '@4', FILE + '@5'):
    try:
        f = h5py.File(name, 'r')
    except OSError:
        continue
    found[name[len(FILE):]] = [f['g/x'].shape[0], int(f['g/x'][:].sum()), int(f['small'][0]), f['g'].attrs['title'],
                               float(f['new'][:].sum()) if 'new' in f else None]
    f.close()
print(json.dumps(found))
"""
WRITE = """
with h5py.File(FILE, 'a') as f:
    assert f.userblock_size == NOW, f.userblock_size
    f['g/x'][5] = 5
    f['small'][0] = 5
    f['g'].attrs['title'] = '5'
    if 'new' not in f:
        f.create_dataset('new', data=np.arange(3000.))
    f['new'][:10] = 7
"""


def command(code, path, **names):
    lines = [f"{name} = {value!r}" for name, value in {"FILE": str(path), "ROWS": 45, **names}.items()]
    return [sys.executable, "-c", "import h5py, sys, os, numpy as np\n" + "\n".join(lines) + "\n" + code]


def through():
    return {**STOCK, "HDF5_PLUGIN_PATH": os.environ.get("HDF5_PLUGIN_PATH", ""), "HDF5_VOL_CONNECTOR": "h5cow"}


def program(code, path, status=0, **names):
    done = subprocess.run(command(code, path, **names), env=through(), capture_output=True, text=True, timeout=WAITING)
    assert done.returncode == status, done.stderr
    return done.stdout


@contextlib.contextmanager
def reading(path):
    child = subprocess.Popen(command(READER, path), env=through(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        yield
    finally:
        child.kill()  # when it closes the file it applies what waits
        child.communicate()


def expected(versions, rows=45):
    x = np.arange(1200, dtype=np.int64).reshape(40, 30)
    found = {}
    for number in range(1, versions + 1):
        title, new = "one" if number == 1 else str(number), None
        if number in (2, 3):
            x[:10] += 10000 * number
        if number == 4:
            x = np.vstack([x, np.zeros((rows - 40, 30), x.dtype)])
            x[-1] = -4
        if number == 5:
            x[5] = 5
        if number >= 4:
            values = np.arange(3000.0)
            values[:10] = values[:10] if number == 4 else 7
            new = float(values.sum())
        found[f"@{number}"] = [x.shape[0], int(x.sum()), 0 if number == 1 else number, title, new]
    found[""] = found[f"@{versions}"]
    return found


def make(path, base, state):
    """A file with three versions; or a fourth, that waits to be applied, of a program that ended well or was killed."""
    program(MAKE, path, BASE=base)
    if state == "clean":
        return
    with reading(path):
        if state == "pending":
            program(MORE + "f.close()", path)
        else: # with changes after the commit that nobody has
            program(MORE + "f.flush(); f['g/x'][:] = 99; f.create_dataset('lost', data=np.arange(9000.)); os.kill(os.getpid(), 9)",
                    path, status=-9)


def move(path, base, to):
    data = path.read_bytes()
    block = bytes(i * 31 % 251 for i in range(to))
    if to and base:
        block = (data[:base] + block)[:to]
    path.write_bytes(block + data[base:])
    return block


def stock(path):
    """What HDF5 without the connector reads in the head: the newest state that was applied."""
    with h5py.File(path, "r") as f:
        assert "_versioned_data" in f
        return int(f["small"][0]), int(f["g/x"][:].sum())


def fenced(path):
    code = "import h5py, sys; h5py.File(sys.argv[1], 'r+')"
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", code, path], env={**STOCK, "HDF5_PLUGIN_PATH": "/nowhere"}, capture_output=True)
    assert done.returncode != 0 and path.read_bytes() == before


def check(path, base, block, versions, clean):
    """Everything that reads such a file."""
    assert json.loads(program(LOOK, path)) == expected(versions)
    h5cow("verify", path)
    assert len(json.loads(h5cow("log", "--json", path))) == versions
    h5cow("stat", path)
    h5cow("doctor", path)
    assert path.read_bytes()[:base] == block
    if clean:
        assert stock(path) == (expected(versions)[""][2], expected(versions)[""][1])
        fenced(path)
    copy, out, old = (path.with_name(name) for name in ("copy.h5", "out.h5", "old.h5"))
    for file in (copy, out, old):
        file.unlink(missing_ok=True)
    h5cow("copy", path, copy)
    assert json.loads(program(LOOK, copy)) == expected(versions)
    assert copy.read_bytes()[:base] == block
    h5cow("verify", copy)
    fenced(copy)
    h5cow("export", path, out)
    h5cow("export", f"{path}@2", old)
    assert stock(copy) == (expected(versions)[""][2], expected(versions)[""][1])
    with h5py.File(out, "r") as f, h5py.File(old, "r") as g:
        assert int(f["g/x"][:].sum()) == expected(versions)[""][1] and int(g["g/x"][:].sum()) == expected(2)[""][1]


MOVES = [(0, 512), (0, 1024), (0, 2048), (0, 4096), (0, 1 << 20), (512, 0), (1024, 512), (2048, 0), (512, 1024), (4096, 512),
         (1 << 20, 0), (2048, 8192)]


@pytest.mark.parametrize("base, to", MOVES)
def test_a_moved_file_is_read_and_written_with_its_history(tmp_path, base, to):
    state = random.Random(f"{seed()} {base} {to}").choice(["clean", "pending", "killed"])
    print("state:", state)
    path = tmp_path / "file.h5"
    make(path, base, state)
    count = 3 if state == "clean" else 4
    block = move(path, base, to)
    if state != "clean":
        # what looks at it through h5cow sees the newest state, HDF5 alone the one that was applied: until such a reader has closed
        assert stock(path) == (expected(3)[""][2], expected(3)[""][1])
        assert json.loads(program(LOOK, path)) == expected(4)
        assert stock(path) == (expected(4)[""][2], expected(4)[""][1])
    check(path, to, block, count, state == "clean")
    fenced(path)
    if count == 3:
        program(MORE + "f.close()", path)
    program(WRITE, path, NOW=to)
    check(path, to, block, 5, True)
    # and once more, back to where it was
    block = move(path, to, base)
    check(path, base, block, 5, True)
    program(WRITE.replace("= 5\n", "= 5\n    f['small'][1] = 9\n", 1), path, NOW=base)
    h5cow("verify", path)


@pytest.mark.parametrize("to", [512, 1 << 20])
def test_commits_follow_one_another_on_both_sides_of_a_move(tmp_path, to):
    """A chain of commits that are not applied, the older half of them made before the move."""
    path = tmp_path / "file.h5"
    make(path, 0, "pending")
    block = move(path, 0, to)
    with reading(path):
        program(WRITE, path, NOW=to)
        assert json.loads(program(LOOK, path)) == expected(5)
    back = tmp_path / "back.h5"
    shutil.copy(path, back)
    assert move(back, to, 0) == b""
    for file, base in ((path, to), (back, 0)):
        assert json.loads(program(LOOK, file)) == expected(5)
        h5cow("verify", file)
        program("h5py.File(FILE, 'a').close()", file)
        check(file, base, block if base else b"", 5, True)


@pytest.mark.parametrize("state", ["clean", "pending"])
@pytest.mark.parametrize("base, to", [(0, 512), (0, 2048), (512, 0), (2048, 512), (1024, 4096)])
def test_a_moved_file_is_saved_when_its_journal_is_damaged(tmp_path, base, to, state):
    path = tmp_path / "file.h5"
    make(path, base, state)
    block = move(path, base, to)
    whole = path.read_bytes()
    anchor = whole.index(b"h5cowjnl")
    slots = [i for i in range(anchor, len(whole) - 7, 512) if whole[i : i + 8] == b"h5cowslt"]
    assert len(slots) == 4
    for places in ([anchor + 40], [to + 20], [to, anchor + 40], [slots[0] + 40, slots[2] + 40], [anchor + 40, slots[0] + 40, slots[2] + 40]):
        data = bytearray(whole)
        for place in places:
            data[place] ^= 0x55
        path.write_bytes(data)
        out = tmp_path / "out.h5"
        out.unlink(missing_ok=True)
        h5cow("recover", path, out)
        assert path.read_bytes() == bytes(data)
        h5cow("verify", out)
        assert json.loads(program(LOOK, out))[""] == expected(3 if state == "clean" else 4)[""], places
    assert block == whole[:to]


def test_a_file_in_which_nothing_was_committed_is_none_after_a_move(tmp_path):
    path = tmp_path / "file.h5"
    program("f = h5py.File(FILE, 'w'); f['x'] = np.arange(10); os.kill(os.getpid(), 9)", path, status=-9)
    move(path, 0, 512)
    code = "try: h5py.File(FILE, 'r')\nexcept OSError as why: print(why)"
    assert "began to create it" in program(code, path)


@pytest.mark.skipif(shutil.which("h5jam") is None, reason="no h5jam")
def test_h5jam_and_h5unjam(tmp_path):
    path, jammed, again = (tmp_path / name for name in ("file.h5", "jammed.h5", "again.h5"))
    make(path, 0, "clean")
    (tmp_path / "block").write_bytes(b"a user block " * 60)
    for env in (STOCK, through()):
        for file in (jammed, again):
            file.unlink(missing_ok=True)
        done = subprocess.run(["h5jam", "-i", path, "-u", tmp_path / "block", "-o", jammed], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        check(jammed, 1024, jammed.read_bytes()[:1024], 3, True)
        done = subprocess.run(["h5unjam", "-i", jammed, "-u", tmp_path / "got", "-o", again], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        check(again, 0, b"", 3, True)
