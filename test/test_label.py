"""Labels: what emptied or replaced files were is said by the next program that opens them, and by doctor. docs/promises.md, "Protection"."""

import errno
import json
import os
import random
import shutil
import subprocess
import sys

import pytest
from conftest import BUILD, H5COW, PLUGINS, STOCK
from waiting import WAITING

OURS = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS, "HDF5_VOL_CONNECTOR": "h5cow"}
LABEL = "user.h5cow"


def python(code, *words, env=OURS, code_wanted=0):
    done = subprocess.run([sys.executable, "-c", code, *map(str, words)], env=env, capture_output=True, text=True, timeout=WAITING)
    assert done.returncode == code_wanted, done.stderr
    return done.stderr


def write(path, value, mode="a", **more):
    return python(f"import h5py, sys\nf = h5py.File(sys.argv[1], {mode!r})\nf.require_dataset('x', (), 'i8')[()] = {value}\nf.close()",
                  path, **more)


def read(path, **more):
    return python("import h5py, sys\nh5py.File(sys.argv[1], 'r').close()", path, **more)


def cow(*words, code=0):
    done = subprocess.run([H5COW, *map(str, words)], env={**STOCK, "HDF5_PLUGIN_PATH": PLUGINS}, capture_output=True, text=True,
                          timeout=WAITING)
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def lost(path):
    """What doctor says of a history that is gone; None: nothing."""
    done = subprocess.run([H5COW, "doctor", "--json", str(path)], env={**STOCK, "HDF5_PLUGIN_PATH": PLUGINS}, capture_output=True,
                          text=True, timeout=WAITING)
    whole = json.loads(done.stdout)
    told = whole["file"].get("lost_history")
    assert (told is not None) == any("had a history" in problem for problem in map(str, whole["problems"]))
    return told


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "run.h5"
    for value in (1, 2, 3):
        assert write(path, value) == ""
    if LABEL not in os.listxattr(path):
        probe = tmp_path / "probe"
        probe.touch()
        try:
            os.setxattr(probe, "user.test", b"1")
        except OSError as error:
            pytest.skip(f"the file system keeps no extended attributes of users: {error}")
    cow("rename", f"{path}@3", "last one")
    return path


ENDS = {
    "stock 'w'": "import h5py\nh5py.File(path, 'w')['y'] = 1",
    "truncated": "import os\nos.truncate(path, 0)",
    "cut off": "import os\nos.truncate(path, 600)",
    "overwritten": "open(path, 'w').write('something else')",
    "renamed first": "import h5py, os\nos.rename(path, path + 'x')\nh5py.File(path + 'x', 'w')['y'] = 1\nos.rename(path + 'x', path)",
}


@pytest.mark.parametrize("end", ENDS)
def test_doctor_and_the_next_opening_say_what_it_was(file, end):
    assert lost(file) is None
    python(f"import sys\npath = sys.argv[1]\n{ENDS[end]}", file, env=STOCK)
    before = os.stat(file)
    for _ in range(2):
        told = lost(file)
        assert (told["versions"], told["newest"]) == (3, "last one")
    opens = "import h5py, sys\ntry:\n h5py.File(sys.argv[1], 'r').close()\nexcept OSError:\n pass"
    said = python(opens, file)
    assert "had a history, whose last version known is #3 'last one', made 20" in said and said.count("\n") == 1
    assert python(opens, file) == ""
    assert os.stat(file).st_mtime_ns == before.st_mtime_ns
    assert lost(file)["versions"] == 3


@pytest.mark.parametrize("mode", ["w", "a"])
@pytest.mark.parametrize("emptied", [False, True])
def test_new_history_is_said_once_and_has_the_label(file, mode, emptied):
    if emptied:
        os.truncate(file, 0)
    else:
        python("import h5py, sys\nh5py.File(sys.argv[1], 'w')['x'] = 1", file, env=STOCK)
    plain = mode == "a" and not emptied
    said = write(file, 4, mode)
    assert "#3 'last one'" in said and ("it has none now" if plain else "a new history begins") in said
    assert write(file, 5, mode) == "" and read(file) == ""
    assert (lost(file) is not None) == plain  # a plain file that is changed stays one
    if not plain:
        os.truncate(file, 0)
        assert lost(file)["newest"] == "2"
        assert "#2 '2'" in write(file, 1)


def test_other_history_in_its_place_is_said_once(file, tmp_path):
    other = tmp_path / "other.h5"
    write(other, 7)
    with open(file, "wb") as to:
        to.write(other.read_bytes())
    assert "another history now" in read(file) and read(file) == ""
    assert lost(file)["versions"] == 3
    assert write(file, 8) == "" and lost(file) is None


def test_what_is_made_of_a_file_has_its_label_or_none(file, tmp_path):
    data = "import h5py, numpy, sys\nfor i in range(3):\n with h5py.File(sys.argv[1], 'a') as f:\n  f.require_dataset('d', (200000,), 'f8')[:] = numpy.random.random(200000)"
    python(data, file)
    cow("forget", file, "--keep-last=1")
    out = {name: tmp_path / name for name in ("copy.h5", "saved.h5", "plain.h5", "cp.h5", "part.h5", "old.h5")}
    cow("copy", file, out["copy.h5"])
    cow("recover", file, out["saved.h5"])
    cow("export", file, out["plain.h5"])
    cow("cp", f"{file}:/x", f"{out['part.h5']}:/x")
    shutil.copy2(file, out["cp.h5"])
    inode = os.stat(file).st_ino
    cow("gc", "--compact", file)
    assert os.stat(file).st_ino != inode
    for path in (file, *out.values()):
        if path.exists():
            assert lost(path) is None and read(path) == "", path
    assert LABEL not in os.listxattr(out["plain.h5"])
    for path in (file, out["copy.h5"], out["saved.h5"], out["cp.h5"]):
        python("import h5py, sys\nh5py.File(sys.argv[1], 'w')", path, env=STOCK)
        assert lost(path)["versions"] == 6, path


def test_compacted_file_is_the_same_history_to_run(file, tmp_path):
    python("import h5py, numpy, sys\nfor i in range(3):\n with h5py.File(sys.argv[1], 'a') as f:\n"
           "  f.require_dataset('d', (200000,), 'f8')[:] = numpy.random.random(200000)", file)
    cow("forget", file, "--keep-last=1")
    done = subprocess.run([H5COW, "run", "--", H5COW, "gc", "--compact", str(file)], env={**STOCK, "HDF5_PLUGIN_PATH": PLUGINS},
                          cwd=tmp_path, capture_output=True, text=True, timeout=WAITING)
    assert done.returncode == 0 and "instead of" in done.stdout and "another file" not in done.stderr, done.stderr
    write(file, 9)
    cow("verify", file)


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.ENOSPC, errno.EDQUOT, errno.EPERM])
def test_nothing_fails_where_there_is_no_label(tmp_path, number):
    path = tmp_path / "run.h5"
    env = {**OURS, "LD_PRELOAD": str(BUILD / "test/libfake_fs.so"), "FAKE_NO_ATTRIBUTES": str(number)}
    for mode in ("w", "a", "r+", "w"):
        assert write(path, 1, mode, env=env) == ""
    assert LABEL not in os.listxattr(path) and len(json.loads(cow("log", "--json", path))) >= 2
    cow("verify", path)
    os.truncate(path, 0)
    assert write(path, 1, "a", env=env) == "" and lost(path) is None


def test_whatever_the_label_is_it_does_no_harm(file):
    ours = os.getxattr(file, LABEL)
    labels = [b"", b"\x01", ours[:33], ours[:34], ours + bytes(300), b"\x02" + ours[1:], ours + b"\x1b[31m", ours + b"/"]
    labels += [random.randbytes(random.randrange(1, 600)) for _ in range(10)]
    for value, label in enumerate(labels):
        os.setxattr(file, LABEL, label)
        read(file)
        assert "\x1b" not in write(file, 100 + value, "r+")
        assert os.getxattr(file, LABEL)[:18] == ours[:18]
        os.setxattr(file, LABEL, label)
        assert "\x1b" not in cow("log", file)
        lost(file)
        cow("export", "--force", file, file.with_name("out.h5"))


def test_looking_and_verbs_that_change_nothing_leave_the_label(file):
    before = os.stat(file).st_ctime_ns
    for verb in (["log", file], ["ls", file], ["doctor", file], ["verify", file], ["tag", file], ["apply", file]):
        cow(*verb)
    read(file)
    assert os.stat(file).st_ctime_ns == before


def test_a_copy_without_a_label_is_compacted_to_one_without(file, tmp_path):
    copy = tmp_path / "copy.h5"
    shutil.copyfile(file, copy)
    cow("gc", "--compact", copy)
    assert write(copy, 77) == "" and lost(copy) is None
    out = tmp_path / "out.h5"
    plain_copy = tmp_path / "again.h5"
    shutil.copyfile(file, plain_copy)
    cow("recover", plain_copy, out)
    assert write(out, 78) == "" and lost(out) is None
