"""A commit that could not be applied, since somebody read an older state, does not stay hidden from programs without h5cow: the last
reader through h5cow that closes the file applies it, or `h5cow apply`. docs/promises.md, "Applying"."""

import json
import os
import shutil
import sys

import h5py
import pytest
from conftest import H5COW, PLUGINS, STOCK, h5cow
from sessions import Journal, Session, connector_env, stock_env


@pytest.fixture
def start(programs):
    sessions = []

    def start(kind="connector"):
        sessions.append(Session(connector_env(STOCK, PLUGINS, "") if kind == "connector" else stock_env(STOCK)))
        return sessions[-1]

    yield start
    for session in sessions:
        session.__exit__()


@pytest.fixture
def file(tmp_path, programs):
    path = tmp_path / "run.h5"
    done = programs.python(
        "f = h5py.File(sys.argv[1], 'w')\nf['d'] = np.full(3000, 1)\nf['x'] = 1\nf.close()", path)
    assert done.returncode == 0, done.stderr
    return path


def commit(programs, path, value):
    done = programs.python(
        "f = h5py.File(sys.argv[1], 'r+')\nf['d'][:] = int(sys.argv[2])\nf['x'][()] = int(sys.argv[2])\nf.close()", path, value)
    assert done.returncode == 0, done.stderr


def stock(path):
    """What HDF5 without h5cow sees, in the file and in a copy of its bytes."""
    copy = path.with_name("copy.h5")
    shutil.copyfile(path, copy)
    seen = []
    for name in (path, copy):
        with h5py.File(name, "r", locking=True) as f:
            seen += [int(f["x"][()]), *{int(v) for v in f["d"][:]}]
    assert len(set(seen)) == 1, seen
    return seen[0]


def reading(start, path, kind="connector"):
    session = start(kind)
    session.do(f"f = h5py.File({str(path)!r}, 'r')\nresult = int(f['x'][()])")
    return session


def test_last_reader_that_closes_applies(programs, start, file):
    first, second = reading(start, file), reading(start, file)
    commit(programs, file, 2)
    third = reading(start, file)  # of the new state: in nobody's way
    written = os.stat(file)
    assert stock(file) == 1
    first.do("f.close()")
    assert stock(file) == 1 and second.do("result = int(f['x'][()])") == 1
    second.do("f.close()")
    assert stock(file) == 2 and not Journal(file).pending
    now = os.stat(file)
    assert (now.st_mtime_ns, now.st_mode, now.st_ino) == (written.st_mtime_ns, written.st_mode, written.st_ino)
    third.do("f.close()")
    commit(programs, file, 3)
    assert stock(file) == 3
    programs.verified(file)


def test_reader_that_ends_without_closing_applies(programs, start, file):
    reader = reading(start, file)
    commit(programs, file, 2)
    assert stock(file) == 1
    assert reader.end() == (0, "")
    assert stock(file) == 2


def test_next_reader_applies_for_one_that_was_killed_or_has_no_h5cow(programs, start, file):
    for value, kind in ((2, "connector"), (3, "stock")):
        reader = reading(start, file, kind)
        commit(programs, file, value)
        reader.kill()
        assert stock(file) == value - 1
        reading(start, file).do("f.close()")
        assert stock(file) == value


def test_reader_without_h5cow_is_never_shown_a_change(programs, start, file):
    reader, other = reading(start, file), reading(start, file, "stock")
    commit(programs, file, 2)
    before = file.read_bytes()
    reader.do("f.close()")
    assert file.read_bytes() == before
    assert other.do("result = [int(v) for v in set(f['d'][:])]") == [1]


def test_reader_leaves_it_to_a_writer_and_never_waits_for_it(programs, start, file):
    reader, writer = reading(start, file), start()
    writer.do(f"f = h5py.File({str(file)!r}, 'r+')\nf['x'][()] = 2\nf['d'][:] = 2\nf.flush()\nf['x'][()] = 3\nf['d'][:] = 3")
    reader.do("f.close()")
    assert reader.end() == (0, "")
    writer.do("f.close()")
    assert stock(file) == 3


def test_writers_do_not_meet_a_reader_that_applies(programs, start, file):
    """A writer that comes just then waits for the reader's moment instead of being refused."""
    for value in range(2, 12):
        reader, writer = reading(start, file), start()
        writer.do("result = 0")
        commit(programs, file, value)
        reader.begin("f.close()")
        writer.do(f"f = h5py.File({str(file)!r}, 'r+')\nf.close()")
        reader.answer()
        assert stock(file) == value
        reader.kill()
        writer.kill()


def test_reader_that_may_not_write_closes_without_a_word(programs, start, file):
    reader = reading(start, file)
    commit(programs, file, 2)
    reader.do("import os\nos.setegid(65534); os.seteuid(65534)")
    os.chmod(file, 0o644)
    before = file.read_bytes()
    reader.do("f.close()")
    assert reader.end() == (0, "")
    assert file.read_bytes() == before
    assert h5cow("apply", file) == "applied: 1 commit\n"
    assert stock(file) == 2


def test_file_that_was_replaced_or_emptied_is_left_alone(programs, start, file):
    reader = reading(start, file)
    commit(programs, file, 2)
    other = file.with_name("other.h5")
    shutil.copyfile(file, other)
    before = file.read_bytes()
    os.replace(other, file)
    reader.do("f.close()")
    assert file.read_bytes() == before
    reader = reading(start, file)
    commit(programs, file, 3)
    os.truncate(file, 0)
    reader.do("f.close()")
    assert file.read_bytes() == b""


@pytest.mark.parametrize("kind", ["connector", "stock"])
def test_apply_says_who_is_in_the_way(programs, start, file, kind):
    assert h5cow("apply", file) == f"{file}: nothing waits to be applied\n"
    reader = reading(start, file, kind)
    commit(programs, file, 2)
    who = f"process {reader.pid} (python3"
    before, written = file.read_bytes(), os.stat(file).st_mtime_ns
    said = h5cow("apply", file, code=2)
    assert "1 commit still waits to be applied" in said and who in said
    answer = json.loads(h5cow("stat", "--json", file))
    assert answer["waiting"] == 1 and who in answer["why_waiting"]
    assert who in h5cow("stat", file)
    assert who in h5cow("doctor", file)
    assert file.read_bytes() == before  # looking changes nothing
    reader.kill()
    for verb in ("stat", "doctor", "log", "ls"):
        h5cow(verb, file)
    assert "h5cow apply" in h5cow("stat", file)
    assert file.read_bytes() == before
    assert json.loads(h5cow("apply", "--json", file)) == {"file": str(file), "applied": 1, "waiting": 0, "why": None}
    assert stock(file) == 2 and os.stat(file).st_mtime_ns == written
    assert json.loads(h5cow("stat", "--json", file))["waiting"] == 0


def test_reader_whose_own_child_commits_applies(programs, start, file):
    commit(programs, file, 2)
    script = file.with_name("script.py")
    script.write_text(
        "import h5py, sys\nf = h5py.File(sys.argv[1], 'r+')\nf['x'][()] = 7\nf['d'][:] = 7\nf.close()")
    code = ("import subprocess, sys, h5py\nf = h5py.File(sys.argv[1], 'r')\n"
            "subprocess.run([sys.executable, sys.argv[2], sys.argv[1]], check=True)\nf.close()")
    done = programs.python(code, file, script)
    assert done.returncode == 0, done.stderr
    assert stock(file) == 7


def test_apply_refuses_what_it_cannot_apply(file, tmp_path):
    assert "no journal" in h5cow("apply", __file__, code=2)
    assert "cannot read" in h5cow("apply", tmp_path / "nowhere.h5", code=2)


def test_opening_for_writing_that_changes_nothing_leaves_the_time(programs, start, file):
    reader = reading(start, file, "stock")
    commit(programs, file, 2)
    written = os.stat(file).st_mtime_ns
    reader.kill()
    done = programs.python("h5py.File(sys.argv[1], 'r+').close()", file)
    assert done.returncode == 0, done.stderr
    assert stock(file) == 2 and os.stat(file).st_mtime_ns == written
