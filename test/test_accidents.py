"""Everyday accidents: what happens to files while programs have them open. Real programs, each a process of its own.

What must hold is docs/promises.md. A "pending" commit is one that could not be applied yet, since a reader was in the
way: it is in the file, behind what HDF5 without the connector sees.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest
from conftest import BUILD, H5COW, PLUGINS, STOCK, h5cow
from results import results
from sessions import Journal, Refused, Session, connector_env, stock_env

N = 5000  # elements: 20 chunks of 2000 bytes


@pytest.fixture(scope="module", autouse=True)
def counted(request):
    """A line for docs/reliability.md."""
    failed = request.session.testsfailed
    yield
    failed = request.session.testsfailed - failed
    here = [item for item in request.session.items if item.path == pathlib.Path(__file__)]
    kinds = {item.originalname for item in here}
    results(
        7,
        "links, mv, cp, a replaced, cut or overwritten file, other writers, fork, exit, read-only places, "
        "network file systems (pretended), readers that stay through 200 commits",
        f"{len(kinds):,} accidents in {len(here):,} variants, {failed:,} ended otherwise than promised",
        "python3 -m pytest test/test_accidents.py",
    )


@pytest.fixture
def start(programs):
    """Starts sessions, and ends what is left of them."""
    sessions = []

    def start(kind="connector", options="", env={}, **more):
        envs = {"connector": connector_env(STOCK, PLUGINS, options), "stock": stock_env(STOCK)}
        sessions.append(Session({**envs[kind], **env}, **more))
        return sessions[-1]

    yield start
    for session in sessions:
        session.__exit__()


def opened(session, path, mode="r", name="f"):
    session.do(f"{name} = h5py.File({str(path)!r}, {mode!r})")
    return session


def state(value):
    """Version number VALUE of the file: all of it says so."""
    return f"f['d'][:] = {value}; f['g'].attrs['a'] = {value}; f['g/x'][...] = {value}"


# What a reader sees; a mixture is never one number.
SEEN = """
seen = {int(v) for v in f['d'][:]} | {int(f['g'].attrs['a']), int(f['g/x'][()])}
result = seen.pop() if len(seen) == 1 else f'mixture: {sorted(seen)}'
"""


def seen(session, path=None):
    if path is not None:
        return session.do(f"f = h5py.File({str(path)!r}, 'r')\n{SEEN}\nf.close()")
    return session.do(SEEN)


@pytest.fixture
def file(tmp_path, start):
    """A file with one version, whose state is 1."""
    path = tmp_path / "run.h5"
    writer = start()
    writer.do(
        f"f = h5py.File({str(path)!r}, 'w')\n"
        f"f.create_dataset('d', data=np.ones({N}, 'i8'), chunks=(250,), maxshape=(None,))\n"
        "f.create_group('g').attrs['a'] = 1\nf['g/x'] = 1\nf.close()"
    )
    assert writer.end() == (0, "")
    return path


def commit(start, path, value, change=None):
    writer = start()
    writer.do(f"f = h5py.File({str(path)!r}, 'r+')\n{change or state(value)}\nf.close()")
    assert writer.end() == (0, "")


@pytest.fixture
def pending(file, start):
    """The file with a second version that waits to be applied, since a reader was there while it was committed."""
    reader = opened(start("stock"), file)
    commit(start, file, 2)
    assert Journal(file).pending
    reader.kill()
    return file


def verify(programs, path):
    done = programs.connector(BUILD / "cli/h5cow", "verify", path)
    assert done.returncode == 0, done.stdout + done.stderr


def refusal(session, path, mode):
    with pytest.raises(Refused) as refused:
        opened(session, path, mode)
    return str(refused.value)


# ---- names ----


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_file_by_another_name_is_the_same_file(programs, start, pending, sha256, link):
    other = pending.with_name("other.h5")
    link(pending, other)
    writer = opened(start(), other, "r+")
    before = sha256(pending)
    assert f"process {writer.pid} (" in refusal(start(), pending, "r+")
    assert sha256(pending) == before
    reader = start()
    assert seen(opened(reader, pending)) == 2  # with the commit that was pending
    writer.do(state(3) + "\nf.close()")
    assert seen(reader) == 2 and seen(start(), pending) == 3 and seen(start(), other) == 3
    reader.do("f.close()")
    commit(start, pending, 4)
    assert seen(start("stock"), other) == 4
    verify(programs, other)


def test_two_names_in_one_process_are_one_file(programs, start, file):
    other = file.with_name("other.h5")
    os.symlink(file, other)
    writer = opened(opened(start(), file, "r+"), other, "r+", "g")
    writer.do("f['d'][:] = 2\ng['g'].attrs['a'] = 2\nf['g/x'][...] = 2\nresult = int(g['d'][0])")
    assert seen(start(), file) == 1
    writer.do("f.close()")
    assert seen(start(), file) == 2  # though it is still open by the other name
    writer.do("g.attrs['a'] = 3\ng.close()")
    assert seen(start(), file) == 2 and len(versions(programs, file)) == 2


def test_same_name_twice_in_one_process_is_one_file(programs, start, file):
    session = opened(opened(start(), file, "r+"), file, "r+", "g")
    session.do("f['d'][:] = 2\ng['g'].attrs['a'] = 2\ng['g/x'][...] = 2")
    assert seen(session) == 2
    session.do("g.close()\nf.close()")
    assert seen(start(), file) == 2 and len(versions(programs, file)) == 2
    # and reading twice holds nobody up
    reader = opened(opened(start(), file), file, "r", "g")
    commit(start, file, 3)
    reader.do("g.close()")
    assert seen(reader) == 2
    reader.do("f.close()")
    commit(start, file, 4)
    assert not Journal(file).pending


def versions(programs, path):
    done = programs.connector(BUILD / "cli/h5cow", "log", "--json", path)
    assert done.returncode == 0, done.stderr
    return [version["name"] for version in json.loads(done.stdout)]


def test_moved_file_takes_its_pending_commit_along(programs, start, pending, tmp_path):
    moved = tmp_path / "elsewhere" / "name.h5"
    moved.parent.mkdir()
    subprocess.run(["mv", pending, moved], check=True)
    assert seen(start("stock"), moved) == 1 and seen(start(), moved) == 2
    commit(start, moved, 3)
    assert seen(start("stock"), moved) == 3
    assert versions(programs, moved) == ["3", "2", "1"]
    verify(programs, moved)


def test_file_moved_under_a_writer_is_committed_where_it_went(programs, start, file, tmp_path):
    writer = opened(start(), file, "r+")
    writer.do(state(2))
    moved = tmp_path / "moved.h5"
    subprocess.run(["mv", file, moved], check=True)
    writer.do("f.flush()")
    assert seen(start(), moved) == 2
    writer.do(state(3) + "\nf.close()")
    assert not file.exists() and seen(start(), moved) == 3
    verify(programs, moved)


def test_copy_with_a_pending_commit_has_everything(programs, start, pending, tmp_path):
    copy = tmp_path / "copy.h5"
    subprocess.run(["cp", pending, copy], check=True)
    assert Journal(copy).pending
    assert seen(start("stock"), copy) == 1  # what is applied; whole
    done = programs.stock("h5dump", "-d", "/d", copy)
    assert done.returncode == 0 and "(4999): 1\n" in done.stdout, done.stderr
    assert seen(start(), copy) == 2 and seen(start(), f"{copy}@1") == 1 and seen(start(), f"{copy}@2") == 2
    verify(programs, copy)
    commit(start, copy, 3)
    assert seen(start("stock"), copy) == 3 and versions(programs, copy) == ["3", "2", "1"]
    assert seen(start(), pending) == 2  # the original is another file


# ---- others who write ----


@pytest.mark.parametrize("how", ["replaced", "replaced while new"])
def test_file_replaced_under_a_writer_is_not_touched(start, file, tmp_path, sha256, how):
    """As rsync, editors and `mv` onto it do."""
    writer = start()
    if how == "replaced":
        opened(writer, file, "r+").do(state(2))
        target = file
    else:
        target = tmp_path / "new.h5"
        opened(writer, target, "w").do("f['d'] = np.arange(1000)")
    replacement = tmp_path / "replacement.h5"
    opened(start(), replacement, "w").do("f['theirs'] = 7\nf.close()")
    os.replace(replacement, target)
    before = sha256(target)
    with pytest.raises(Refused, match="another file in the place"):
        writer.do("f.flush()")
    with pytest.raises(Refused, match="another file in the place"):
        writer.do("f.close()")
    assert sha256(target) == before
    writer.end()
    assert sha256(target) == before
    assert opened(start(), target).do("result = int(f['theirs'][()])") == 7


@pytest.mark.parametrize("how", ["cut to nothing", "cut a little", "copied over", "copied over, longer"])
def test_writer_notices_that_somebody_else_wrote_the_file(start, file, tmp_path, sha256, how):
    theirs = tmp_path / "theirs.h5"
    opened(start(), theirs, "w").do(f"f['theirs'] = np.arange({200000 if 'longer' in how else 10})\nf.close()")
    writer = opened(start(), file, "r+")
    writer.do("f.create_dataset('more', data=np.arange(1000))\nf.flush()\n" + state(2))
    if how == "copied over" or how == "copied over, longer":
        subprocess.run(["cp", theirs, file], check=True)
    else:
        os.truncate(file, 0 if how == "cut to nothing" else Journal(file).end - 100)
    before = sha256(file)
    with pytest.raises(Refused, match="somebody (cut|changed) the file while it was open"):
        writer.do("f.close()")
    writer.end()
    assert sha256(file) == before


@pytest.mark.parametrize("size", [10, 100_000])
def test_file_being_created_notices_that_somebody_else_wrote_it(start, tmp_path, sha256, size):
    """Nothing is committed yet, so that there is no slot to compare."""
    path, theirs = tmp_path / "new.h5", tmp_path / "theirs.h5"
    opened(start("stock"), theirs, "w").do(f"f['theirs'] = np.arange({size})\nf.close()")
    writer = opened(start(), path, "w")
    writer.do("f['d'] = np.arange(1000)")
    subprocess.run(["cp", theirs, path], check=True)
    before = sha256(path)
    with pytest.raises(Refused, match="somebody (cut|changed) the file while it was open"):
        writer.do("f.close()")
    writer.end()
    assert sha256(path) == before


@pytest.mark.parametrize("mode", ["r+", "a"])
@pytest.mark.parametrize("locking", ["TRUE", "FALSE"])
def test_stock_program_cannot_write_over_a_pending_commit(start, pending, sha256, mode, locking):
    before = sha256(pending)
    refusal(start("stock", env={"HDF5_USE_FILE_LOCKING": locking}), pending, mode)
    assert sha256(pending) == before
    assert seen(start(), pending) == 2


@pytest.mark.parametrize("mode", ["r+", "a"])
def test_stock_program_cannot_write_beside_a_writer(start, file, sha256, mode):
    writer = opened(start(), file, "r+")
    writer.do(state(2))
    before = sha256(file)
    refusal(start("stock"), file, mode)
    assert sha256(file) == before
    writer.do("f.close()")
    assert seen(start("stock"), file) == 2


def test_stock_program_that_creates_the_file_anew_is_noticed_by_the_writer(start, file, sha256):
    """It cannot be kept from emptying the file; its own file is not harmed then."""
    writer = opened(start(), file, "r+")
    writer.do(state(2))
    other = opened(start("stock"), file, "w")
    other.do("f['theirs'] = np.arange(30000)\nf.flush()")
    with pytest.raises(Refused, match="somebody (cut|changed) the file while it was open"):
        writer.do("f.close()")
    writer.end()
    other.do("f['more'] = 8\nf.close()")
    other = opened(start("stock"), file)
    assert other.do("result = (int(f['theirs'][29999]), int(f['more'][()]))") == [29999, 8]


def test_stock_program_that_creates_the_file_anew_leaves_a_plain_file(start, pending):
    """What was there is lost, a pending commit with it. What is there now is right."""
    opened(start("stock"), pending, "w").do("f['theirs'] = 7\nf.close()")
    for kind in "connector", "stock":
        assert opened(start(kind), pending).do("result = (list(f), int(f['theirs'][()]))") == [["theirs"], 7]


def test_stock_program_cannot_create_the_file_anew_while_it_is_read(start, file):
    """By a reader without the connector: HDF5's own lock. But O_TRUNC acts before any lock; so says promises.md."""
    opened(start("stock"), file)
    refusal(start("stock"), file, "w")


# ---- one writer ----


@pytest.mark.parametrize("mode", ["r+", "a", "w"])
@pytest.mark.parametrize("at", ["creating", "working", "pending"])
def test_second_writer_is_refused_and_changes_nothing(start, tmp_path, sha256, mode, at, request):
    writer = start()
    if at == "creating":
        path = tmp_path / "new.h5"
        opened(writer, path, "w").do("f['d'] = np.arange(1000)")
    else:
        path = request.getfixturevalue("pending" if at == "pending" else "file")
        reader = opened(start(), path)  # so that nothing can be applied
        opened(writer, path, "r+").do(state(3))
    before = sha256(path)
    said = refusal(start(), path, mode)
    assert f"process {writer.pid} (python3) on {os.uname().nodename}" in said, said
    assert sha256(path) == before
    if at != "creating":
        assert seen(reader) == (2 if at == "pending" else 1)
    writer.do("f.close()")
    assert opened(start(), path).do("result = int(f['d'][5])") == (5 if at == "creating" else 3)


def test_second_creator_is_told_that_the_file_exists(start, file, tmp_path):
    assert "FileExistsError" in refusal(start(), file, "x")
    path = tmp_path / "new.h5"
    opened(start(), path, "x").do("f['d'] = 1")  # not committed yet
    assert "FileExistsError" in refusal(start(), path, "x")


@pytest.mark.parametrize("mode", ["r+", "a", "w"])
@pytest.mark.parametrize("at", ["creating", "working"])
def test_second_writer_waits_for_the_first(start, file, tmp_path, mode, at):
    path = file if at == "working" else tmp_path / "new.h5"
    first, second = start(), start(options="lock_timeout=100")
    opened(first, path, "r+" if at == "working" else "w").do("f['more'] = 5")
    second.do("pass")
    second.begin(f"f = h5py.File({str(path)!r}, {mode!r})\nresult = sorted(f)")
    second.process.stdin.flush()
    with pytest.raises(Refused):
        opened(start(options="lock_timeout=1"), path, mode)  # that long at least the other has waited as well
    first.do("f.close()")
    assert second.answer() == ([] if mode == "w" else ["d", "g", "more"] if at == "working" else ["more"])


def test_waiting_for_a_writer_ends(start, file, sha256):
    writer = opened(start(), file, "r+")
    before = sha256(file)
    assert f"process {writer.pid} (" in refusal(start(options="lock_timeout=1"), file, "r+")
    assert sha256(file) == before


CHANGES = [
    ["tag", "FILE@1", "first"],
    ["tag", "-d", "FILE", "gone"],
    ["rename", "FILE@1", "first"],
    ["describe", "FILE@1", "a message"],
    ["restore", "-q", "FILE@1"],
    ["undo", "-q", "FILE"],
    ["redo", "-q", "FILE"],
    ["forget", "FILE", "1"],
    ["squash", "FILE", "1..3"],
    ["gc", "FILE"],
    ["gc", "-q", "--compact", "FILE"],
    ["cp", "FILE:/d", "FILE:/e"],
]


@pytest.mark.parametrize("words", CHANGES, ids=" ".join)
def test_the_command_waits_for_a_writer_where_it_is_told_to(start, file, sha256, words):
    for value in 2, 3:
        commit(start, file, value)
    h5cow("undo", "-q", file)
    h5cow("tag", f"{file}@3", "gone")
    verb, *rest = [w.replace("FILE", str(file)) for w in words]
    writer = opened(start(), file, "r+")
    before = sha256(file)
    waiting = subprocess.Popen([H5COW, verb, "--wait=3600", *rest], env=STOCK, stderr=subprocess.PIPE, text=True)
    for option in [], ["--wait=1"]:
        said = h5cow(verb, *option, *rest, code=2)
        assert f"process {writer.pid} (" in said and "--wait=SECONDS" in said and "lock_timeout" not in said, said
    assert waiting.poll() is None and sha256(file) == before
    writer.do("f.close()")
    assert waiting.communicate()[1] == "" and waiting.returncode == 0
    for text in "x", "", "-1", "1.5", "86401":
        assert "seconds, 0 to 86400" in h5cow(verb, f"--wait={text}", *rest, code=2)


HOLD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Once: says so by the file `waiting`, and goes on when there is the file `go`. */
static void hold(const char *at)
{
    static int held;
    if (held || strcmp(getenv("HOLD_AT"), at) != 0)
        return;
    held = 1;
    close(creat("waiting", 0600));
    while (access("go", F_OK) < 0)
        usleep(1000);
}

ssize_t pread64(int file, void *bytes, size_t size, off_t at)
{
    ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread64");
    ssize_t n = real(file, bytes, size, at);
    if (n >= 8 && memcmp(bytes, "h5cowext", 8) == 0) {
        hold("extent");
        n = real(file, bytes, size, at);
    }
    return n;
}

ssize_t pread(int file, void *bytes, size_t size, off_t at)
{
    return pread64(file, bytes, size, at);
}

int fcntl64(int file, int what, ...)
{
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, "fcntl64"), status;
    va_list list;
    void *argument;
    va_start(list, what);
    argument = va_arg(list, void *);
    va_end(list);
    status = real(file, what, argument);
    if (what == F_OFD_SETLK && status == 0 && ((struct flock *)argument)->l_type == F_WRLCK)
        hold("lock");
    return status;
}

int fcntl(int file, int what, ...)
{
    va_list list;
    void *argument;
    va_start(list, what);
    argument = va_arg(list, void *);
    va_end(list);
    return fcntl64(file, what, argument);
}
"""


class Held:
    """A session that stops AT its first lock for writing, once it has it, or at its first read of an extent, until it is let go."""

    def __init__(self, start, folder, at):
        (folder / "hold.c").write_text(HOLD)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "hold.so", folder / "hold.c"], check=True)
        self.folder = folder
        self.session = start(env={"LD_PRELOAD": str(folder / "hold.so"), "HOLD_AT": at}, cwd=folder)

    def begin(self, code):
        self.session.do("pass")
        self.session.begin(code)
        while not (self.folder / "waiting").exists():
            assert self.session.process.poll() is None
            time.sleep(0.001)

    def answer(self):
        (self.folder / "go").touch()
        return self.session.answer()


@pytest.mark.parametrize("mode", ["r+", "a", "w"])
def test_who_waits_for_the_creator_of_a_file_gets_what_it_asked_for(start, tmp_path, mode):
    """The file has no byte yet when the second one looks at it first."""
    path, first = tmp_path / "new.h5", Held(start, tmp_path, "lock")
    first.begin(f"f = h5py.File({str(path)!r}, 'w')\nf['x'] = 1\nf.close()")
    assert path.stat().st_size == 0
    second = start(options="lock_timeout=100")
    second.do("pass")
    second.begin(f"f = h5py.File({str(path)!r}, {mode!r})\nresult = sorted(f)")
    with pytest.raises(Refused):
        opened(start(options="lock_timeout=1"), path, mode)  # that long at least the other has waited as well
    first.answer()
    assert second.answer() == ([] if mode == "w" else ["x"])


@pytest.mark.parametrize("commits", [1, 2, 3, 4])
@pytest.mark.parametrize("sync", ["off", "full"])
def test_a_reader_that_is_held_up_between_slot_and_extent_sees_no_mixture(start, file, tmp_path, commits, sync):
    """Meanwhile the writer applies what the reader was about to read, and uses its place again."""
    writer, other = start(options=f"sync={sync}"), opened(start("stock"), file)
    writer.do(f"f = h5py.File({str(file)!r}, 'r+')\n{state(2)}\nf['new'] = np.full(50000, 2)\nf.flush()")
    assert Journal(file).pending
    other.kill()
    reader = Held(start, tmp_path, "extent")
    reader.begin(f"f = h5py.File({str(file)!r}, 'r')\n{SEEN}\nresult = (result, sorted(f), set(f.get('new', [2])[:]) == {{2}})\nf.close()")
    for value in range(3, 3 + commits):
        writer.do(f"{state(value)}\nf.flush()")
    value, names, right = reader.answer()
    assert value in range(1, 3 + commits) and right and (value == 1 or "new" in names), (value, names, right)


def test_what_a_failed_writer_left_behind_the_end_is_given_back_at_once(start, file):
    """A full disk may have no room but that."""
    size = file.stat().st_size
    with open(file, "ab") as left:
        left.write(b"x" * 1000000)
    session = start()
    session.do(f"f = h5py.File({str(file)!r}, 'r+')")
    assert file.stat().st_size <= size
    session.do("f['more'] = 1\nf.close()")
    verified = subprocess.run([str(BUILD / "cli/h5cow"), "verify", str(file)], capture_output=True, text=True)
    assert verified.returncode == 0, verified.stdout


@pytest.mark.parametrize("opens", ["h5py.File({!r}, 'r')", "h5py.File({!r}, 'r+')"])
def test_plain_files_take_one_descriptor_each(start, tmp_path, opens):
    start("stock").do(f"for i in range(150): h5py.File({str(tmp_path)!r} + f'/{{i}}.h5', 'w').close()")
    session = start()
    session.do("import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))")
    session.do(f"all = [{opens.format('NAME')} for i in range(150)]".replace("'NAME'", f"{str(tmp_path)!r} + f'/{{i}}.h5'"))


@pytest.mark.parametrize("kind", ["other", "killed"])
def test_a_large_file_that_is_created_anew_is_not_read_through(start, tmp_path, kind):
    """One of another kind, and a plain one whose program was killed: HDF5 cannot open them, so we look for a history."""
    path = tmp_path / "large"
    if kind == "other":
        path.write_bytes(b"CDF\x01 of another library")
    else:
        killed = start("stock")
        killed.do(f"f = h5py.File({str(path)!r}, 'w', libver='latest')\nf['y'] = 1\nf.flush()")
        killed.kill()
    with open(path, "r+b") as f:
        f.truncate(8 << 30)
    session = start()
    session.do("read = lambda: int(open('/proc/self/io').read().split()[1])\nbefore = read()")
    assert session.do(f"f = h5py.File({str(path)!r}, 'w')\nf['x'] = 1\nf.close()\nresult = read() - before") < 1 << 28
    assert opened(start(), path).do("result = sorted(f)") == ["x"]


def test_a_file_that_hdf5_gives_up_creating_takes_no_other_along(start, file):
    """HDF5 asks for the real path of what it has created, and there is none."""
    session = opened(start(), file, "r+")
    session.do("import os\nf['more'] = 1\nm = os.memfd_create('m')")
    with pytest.raises(Refused):
        session.do("h5py.File(f'/proc/self/fd/{m}', 'w')")
    session.do("f.close()")
    assert opened(start(), file).do("result = int(f['more'][()])") == 1


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace here")
def test_a_reader_that_meets_the_last_commits_of_a_writer_finds_no_damage(start, file, tmp_path):
    """Both times that it looks, the state moves on; then nobody writes any more. Its calls for locks are slowed down, so that
    there is time for the writer: where the writer is slower nevertheless, this finds nothing."""
    writer, log = opened(start(), file, "r+"), tmp_path / "log"
    command = ["strace", "-o", log, "-e", "trace=fcntl", "-e", "inject=fcntl:delay_enter=400000", BUILD / "cli/h5cow", "copy"]
    reader = subprocess.Popen([*command, file, tmp_path / "out.h5"], env=STOCK, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def pins():
        return sum("F_OFD_SETLK" in line and "F_RDLCK" in line for line in log.read_text().splitlines()) if log.exists() else 0

    for number, change in enumerate((f"{state(2)}\nf.flush()", f"{state(3)}\nf.close()")):
        while pins() <= number and reader.poll() is None:
            time.sleep(0.005)
        writer.do(change)
    said, _ = reader.communicate()
    assert reader.returncode == 0, said
    assert seen(start(), tmp_path / "out.h5") in (1, 2, 3)


def test_lock_ends_with_the_process(start, file):
    writer = opened(start(), file, "r+")
    writer.do(state(2))
    writer.kill()
    commit(start, file, 3)
    assert seen(start("stock"), file) == 3


def test_switched_off_locking_does_not_let_two_write(start, file):
    off = {"HDF5_USE_FILE_LOCKING": "FALSE"}
    writer = opened(start(env=off), file, "r+")
    writer.do(state(2))
    assert f"process {writer.pid} (" in refusal(start(env=off), file, "r+")
    reader = opened(start(env=off), file)
    writer.do("f.close()")
    assert seen(reader) == 1 and seen(start("stock", env=off), file) == 1 and Journal(file).pending
    reader.do("f.close()")
    commit(start, file, 3)
    assert seen(start("stock", env=off), file) == 3


# ---- what is no commit ----

H5 = """
import ctypes
lib = next(line.split()[-1] for line in open('/proc/self/maps') if 'libhdf5' in line and '_hl' not in line)
lib = ctypes.CDLL(lib)
H5Oflush = lib.H5Oflush
H5Oflush.argtypes = [ctypes.c_int64]
"""


def test_flush_of_an_object_is_no_commit(start, file):
    writer = opened(start(), file, "r+")
    writer.do(H5 + state(2) + "\nd, g = f['d'], f['g']\nd.flush()\nassert H5Oflush(g.id.id) >= 0")
    writer.do("assert H5Oflush(d.id.id) >= 0")
    assert Journal(file).sequence == 1 and seen(start(), file) == 1 and seen(start("stock"), file) == 1
    assert seen(writer) == 2
    writer.do("f.flush()")
    assert seen(start(), file) == 2
    writer.do(state(3) + "\nf['d'].flush()")
    writer.kill()
    assert seen(start(), file) == 2


def test_swmr_programs_need_no_swmr_here(start, file, sha256):
    """Programs made for SWMR work; what HDF5 itself would do to the file is not done to one with history."""
    before = sha256(file)
    with pytest.raises(Refused, match="fail if unknown"):
        start("stock").do(
            f"fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)\nfapl.set_libver_bounds(3, 3)\n"
            f"h5py.h5f.open({str(file).encode()!r}, h5py.h5f.ACC_RDWR | h5py.h5f.ACC_SWMR_WRITE, fapl)"
        )
    assert sha256(file) == before
    writer = start()
    writer.do(f"f = h5py.File({str(file)!r}, 'r+', libver='latest')\nf.swmr_mode = True\n" + state(2))
    writer.do("f['d'].flush()")  # in this mode a commit, so that readers see it
    assert seen(start(), file) == 2
    reader = start()
    assert reader.do(f"f = h5py.File({str(file)!r}, 'r', swmr=True)\n" + SEEN) == 2
    writer.do(state(3) + "\nf['d'].flush()")
    reader.do("f['d'].refresh()")
    assert seen(reader) == 2 and seen(start(), file) == 3
    writer.do("f.close()")
    reader.do("f.close()")
    commit(start, file, 4)
    assert start("stock").do(f"f = h5py.File({str(file)!r}, 'r', swmr=True)\n" + SEEN) == 4


# ---- fork and exit ----

FORK = """
import subprocess
def fork(child):
    pid = os.fork()
    if pid == 0:
        try:
            child()
        except SystemExit as end:
            raise
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(9)
        os._exit(0)
    return os.waitpid(pid, 0)[1]
"""
ENDS = {
    "exit": "ctypes.CDLL(None).exit(0)",  # C's: atexit handlers run, HDF5 closes its files
    "sys.exit": "raise SystemExit(0)",
    "close, exit": "f.close(); ctypes.CDLL(None).exit(0)",
    "flush, exit": "f.flush(); ctypes.CDLL(None).exit(0)",
    "_exit": "os._exit(0)",
    "kill": "os.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize("end", ENDS)
def test_forked_child_commits_nothing(programs, start, file, end):
    writer = opened(start(), file, "r+")
    writer.do(FORK + "import ctypes\n" + state(2))
    code = f"def child():\n    {ENDS[end]}\nresult = fork(child)"
    if end == "sys.exit":  # the child must leave the server's loop
        code = "pid = os.fork()\nif pid == 0: sys.exit(0)\nresult = os.waitpid(pid, 0)[1]"
    assert writer.do(code) == (9 if end == "kill" else 0)
    assert Journal(file).sequence == 1 and seen(start(), file) == 1 and seen(start("stock"), file) == 1
    assert f"process {writer.pid} (" in refusal(start(), file, "r+")
    writer.do("f['d'][100:200] = 7\nf['d'][100:200] = 2\nf.close()")
    code, errors = writer.end()
    assert code == 0 and errors == ""
    assert seen(start(), file) == 2 and versions(programs, file) == ["2", "1"]
    verify(programs, file)


@pytest.mark.parametrize("closed", [(2,), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("mode", ["w", "r+"])
def test_what_is_printed_does_not_land_in_the_file(programs, file, closed, mode):
    """Where a daemon has closed its standard files, a file that is opened would get their numbers."""
    programs.python(f"""
        import os
        for n in {closed}:
            os.close(n)
        with h5py.File(sys.argv[1], {mode!r}) as f:
            f["new"] = np.arange(100000)
            f.flush()
            try:
                h5py.h5d.open(f.id, b"is not there")  # HDF5 prints why
            except KeyError:
                f["new"][0] = 5
        os._exit(0)
    """, file)
    programs.verified(file)
    assert programs.python("print(h5py.File(sys.argv[1])['new'][:2])", file).stdout == "[5 1]\n"


def test_forked_child_that_lives_on_does_not_keep_the_lock(start, file):
    writer = opened(start(), file, "r+")
    child = writer.do(
        state(2) + "\nr, w = os.pipe()\npid = os.fork()\nif pid == 0:\n    os.read(r, 1)\n    os._exit(0)\nresult = pid"
    )
    try:
        writer.do("f.close()")
        commit(start, file, 3)
        assert os.kill(child, 0) is None
    finally:
        writer.do("os.write(w, b'x')\nos.waitpid(pid, 0)")


def test_process_that_is_just_being_started_does_not_keep_the_lock(start, file):
    """Between its fork, of which libraries need not be told, and its exec."""
    writer = opened(start(), file, "r+")
    writer.do(
        state(2) + "\nimport ctypes, platform\nr, w = os.pipe()\n"
        "clone = {'x86_64': 56, 'aarch64': 220}[platform.machine()]\n"
        "pid = ctypes.CDLL(None).syscall(clone, 17, 0, 0, 0, 0)\n"  # 17: SIGCHLD
        "if pid == 0:\n    os.read(r, 1)\n    os._exit(0)"
    )
    try:
        writer.do("f.close()")
        commit(start, file, 3)
    finally:
        writer.do("os.write(w, b'x')\nos.waitpid(pid, 0)")


def test_forked_child_cannot_write_what_its_parent_has_open(start, file):
    """Nothing it writes is ever lost silently."""
    writer = opened(start(), file, "r+")
    writer.do(FORK + state(2))
    said = writer.do(
        f"""
def attempt(what):
    r, w = os.pipe()
    def child():
        try:
            exec(what, globals())
            os.write(w, b'it worked')
        except Exception as error:
            os.write(w, str(error).encode())
    assert fork(child) == 0
    os.close(w)
    said = os.read(r, 100000).decode()
    os.close(r)
    return said
result = [attempt("f['d'][5] = 99"), attempt("f['g'].attrs['a'] = 99"), attempt("f['new'] = 99"),
          attempt("h5py.File({str(file)!r}, 'r+')['d'][5] = 99"), attempt("h5py.File({str(file)!r}, 'w')")]
"""
    )
    for text in said[:3]:
        assert "forked" in text, said
    for text in said[3:]:
        assert f"process {writer.pid} (" in text, said
    # it can read the file, by an opening of its own
    assert writer.do(f"result = attempt(\"assert h5py.File({str(file)!r}, 'r')['d'][5] == 1\")") == "it worked"
    writer.do("f.close()")
    assert seen(start(), file) == 2


def test_forked_child_reads_on_what_its_parent_opened_for_reading(start, file):
    """As workers that load data do; also when the parent has closed the file and others write it."""
    reader = opened(start(), file)
    reader.do(
        "go, answers = os.pipe(), os.pipe()\npid = os.fork()\nif pid == 0:\n    while os.read(go[0], 1) == b'x':\n"
        + "        "
        + "\n        ".join(SEEN.strip().splitlines())
        + "\n        os.write(answers[1], str(result).encode())\n    os._exit(0)\nf.close()"
    )
    for value in 2, 3, 4:
        commit(start, file, value, f"del f['d'], f['g/x']\nf['d'] = np.full({N}, {value})\nf['g/x'] = {value}\n"
               f"f['g'].attrs['a'] = {value}")  # fmt: skip
        reader.do("os.write(go[1], b'x')")
        assert reader.do("result = os.read(answers[0], 1000).decode()") == "1"
    reader.do("os.write(go[1], b'q')\nos.waitpid(pid, 0)")
    commit(start, file, 5)
    assert seen(start("stock"), file) == 5


EXITS = {  # -> what is committed: all, or what was flushed last
    "raise SystemExit(0)": "all",
    "raise RuntimeError('not caught')": "all",
    "ctypes.CDLL(None).exit(0)": "all",
    "os._exit(0)": "flushed",
    "os.abort()": "flushed",
    "os.kill(os.getpid(), 9)": "flushed",
    "os.kill(os.getpid(), 15)": "flushed",
    "ctypes.string_at(0)": "flushed",  # segmentation fault
}


@pytest.mark.parametrize("flushes", [0, 1, 2])
@pytest.mark.parametrize("end", EXITS)
def test_exit_without_close(programs, file, end, flushes, start):
    changes = "".join(f"{state(value)}\nf.flush()\n" for value in range(2, 2 + flushes))
    code = f"import ctypes, os, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    code += f"f = h5py.File({str(file)!r}, 'r+')\n{changes}{state(2 + flushes)}\n{end}"
    programs.connector(sys.executable, "-c", programs.code(code, errors=False))
    assert seen(start(), file) == (2 + flushes if EXITS[end] == "all" else 1 + flushes)
    # all flushes of one opening are one version, which such an end leaves unfinished; the next one is another
    assert len(versions(programs, file)) == (1 if EXITS[end] == "flushed" and flushes == 0 else 2)
    commit(start, file, 9)
    assert seen(start(), f"{file}@1") == 1 and seen(start("stock"), file) == 9
    verify(programs, file)


# All that a commit meets; HDF5 makes ids of some of it, which it can only while it knows for which connector.
OBJECTS = """
f['type'] = np.dtype('i2')
f.create_dataset('of the type', data=np.arange(9000), dtype=f['type'], chunks=(100,))
f.create_dataset('small, of the type', data=5, dtype=f['type'])
f['of the type'].attrs.create('named', 7, dtype=f['type'])
f.attrs.create('named', 7, dtype=f['type'])
f['type'].attrs.create('named', 7, dtype=f['type'])
f.create_dataset('texts', data=['one', 'two'], dtype=h5py.string_dtype())
f.attrs['texts'] = ['three']
f['scale'] = np.arange(9000)
f['scale'].make_scale('x')
f['of the type'].dims[0].attach_scale(f['scale'])
f.create_dataset('references', data=[f['scale'].ref], dtype=h5py.ref_dtype)
f.create_dataset('regions', data=[f['scale'].regionref[3:5]], dtype=h5py.regionref_dtype)
f['soft'], f['elsewhere'] = h5py.SoftLink('/scale'), h5py.ExternalLink('none.h5', '/')
f['again'] = f['scale']
"""


@pytest.mark.parametrize("end", [end for end in EXITS if EXITS[end] == "all"])
def test_exit_commits_objects_of_all_kinds(programs, tmp_path, start, end):
    closed, left = tmp_path / "closed.h5", tmp_path / "left.h5"
    for path, last in ((closed, "f.close()"), (left, end)):
        for mode, change in (("w", OBJECTS), ("r+", "f.copy('of the type', 'copied')\nf['type'].attrs['a'] = 1")):
            code = f"import ctypes\nf = h5py.File({str(path)!r}, {mode!r})\n{change}\n{last}"
            done = programs.connector(sys.executable, "-c", programs.code(code, errors=False))
            assert "h5cow" not in done.stderr
    assert versions(programs, left) == ["2", "1"]
    for at in ("@1", "@2", ""):
        done = programs.connector("h5diff", f"{closed}{at}", f"{left}{at}")
        assert done.returncode == 0, done.stdout + done.stderr
    verify(programs, left)


@pytest.mark.parametrize("end", EXITS)
@pytest.mark.parametrize("mode", ["w", "a", "x"])
def test_exit_while_creating(programs, tmp_path, start, end, mode):
    """A file that was never committed holds nothing, is said to be missing, and the program's next start makes it."""
    path = tmp_path / "new.h5"
    code = "import ctypes, os, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    code += f"f = h5py.File({str(path)!r}, {mode!r})\nf['d'] = np.arange(100000)\n{end}"
    programs.connector(sys.executable, "-c", programs.code(code, errors=False))
    if EXITS[end] == "all":
        assert opened(start("stock"), path).do("result = int(f['d'][7])") == 7
        return
    assert "FileNotFoundError" in refusal(start(), path, "r") and "committed" in refusal(start(), path, "r+")
    refusal(start("stock"), path, "r")
    again = opened(start(), path, mode)
    again.do("f['d'] = np.arange(10)\nf.close()")
    assert opened(start("stock"), path).do("result = f['d'][:].tolist()") == list(range(10))


@pytest.mark.parametrize("mode", ["a", "r+", "w"])
def test_empty_file_becomes_one_where_it_is_opened_for_writing(programs, tmp_path, start, mode):
    """As natively. For reading it is none, and there for a program that creates only what is not: test_not_hdf5.py has all answers."""
    path = tmp_path / "new.h5"
    path.write_bytes(b"")
    assert "file signature not found" in refusal(start(), path, "r")
    assert "FileExistsError" in refusal(start(), path, "x") and path.read_bytes() == b""
    opened(start(), path, mode).do("f['d'] = 5\nf.close()")
    assert versions(programs, path) == ["1"] and opened(start("stock"), path).do("result = int(f['d'][()])") == 5


def test_file_that_another_program_is_creating_is_left_alone(tmp_path, start):
    """Without the connector: it has locked the file, which is still empty."""
    path = tmp_path / "theirs.h5"
    theirs = opened(start("stock"), path, "w")
    for mode in "a", "w", "x", "r+":
        refusal(start(), path, mode)
    theirs.do("f['d'] = 5\nf.close()")
    assert opened(start("stock"), path).do("result = int(f['d'][()])") == 5


# ---- where nothing can be written ----

SETPRIV = shutil.which("setpriv")
NOBODY = [SETPRIV, "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []  # root that obeys permissions


def obeys_permissions(path):
    done = subprocess.run([*NOBODY, "test", "-w", str(path)])
    return done.returncode == 1


@pytest.fixture
def unprivileged(tmp_path):
    if os.geteuid() == 0 and (not SETPRIV or subprocess.run([*NOBODY, "true"], capture_output=True).returncode != 0):
        pytest.skip("root's privileges cannot be dropped here (setpriv)")
    return NOBODY


def test_read_only_file_with_a_pending_commit(start, pending, sha256, unprivileged):
    pending.chmod(0o444)
    assert obeys_permissions(pending)
    before = sha256(pending)
    reader = opened(start(prefix=unprivileged), pending)
    assert seen(reader) == 2 and seen(start("stock", prefix=unprivileged), pending) == 1
    assert "PermissionError" in refusal(start(prefix=unprivileged), pending, "r+")
    assert "PermissionError" in refusal(start(prefix=unprivileged), pending, "w")
    assert sha256(pending) == before
    # who cannot write keeps those who can from nothing, and its state is kept for it
    commit(start, pending, 3)
    assert seen(reader) == 2 and seen(start(prefix=unprivileged), pending) == 3


def test_folder_without_write_permission(start, pending, unprivileged):
    """All is inside the file: nothing is created beside it."""
    pending.parent.chmod(0o555)
    try:
        assert obeys_permissions(pending.parent)
        writer = opened(start(prefix=unprivileged), pending, "r+")
        writer.do(state(3) + "\nf.flush()\n" + state(4) + "\nf.close()")
        assert seen(start("stock", prefix=unprivileged), pending) == 4
    finally:
        pending.parent.chmod(0o755)


BIND, REMOUNT, READ_ONLY = 4096, 32, 1
MOUNT = """
import ctypes, json, os, shutil, sys
for step in json.loads(sys.argv[1]):
    if len(step) == 2:
        shutil.copy(*step)
        continue
    source, target, kind, flags = step
    source, target, kind = (word and word.encode() for word in (source, target, kind))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source, target, kind, ctypes.c_ulong(flags), None) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize("medium", ["mount", "medium"])
def test_read_only_mount_with_a_pending_commit(start, pending, sha256, medium):
    before = sha256(pending)
    view = pending.parent / "view"
    view.mkdir()
    if medium == "mount":
        steps = [(pending.parent, view, None, BIND), (None, view, None, REMOUNT | BIND | READ_ONLY)]
    else:
        steps = [("none", view, "tmpfs", 0), (pending, view), (None, view, None, REMOUNT | READ_ONLY)]
    steps = [[str(word) if isinstance(word, pathlib.Path) else word for word in step] for step in steps]
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    # in a chroot, whose root is no mount point, nothing can be made private; ./dev did that before
    for propagation in "private", "unchanged":
        prefix = ["unshare", "--mount", *user, "--propagation", propagation]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0:
            break
    prefix += [sys.executable, "-c", MOUNT, json.dumps(steps)]
    there = view / pending.name
    done = subprocess.run([*prefix, "sh", "-c", f": > {view}/probe"], capture_output=True, text=True)
    if "ead-only" not in done.stderr:
        pytest.skip(f"no read-only mount can be made here: {done.stderr.strip()}")
    reader = opened(start(prefix=prefix), there)
    assert seen(reader) == 2 and seen(start(prefix=prefix), f"{there}@1") == 1
    assert seen(start("stock", prefix=prefix), there) == 1
    for mode in "r+", "w":
        assert "Read-only file system" in refusal(start(prefix=prefix), there, mode)
    assert sha256(pending) == before
    if medium == "mount":  # written through another mount: the reader's pin counts there as well
        commit(start, pending, 3)
        assert seen(reader) == 2 and seen(start(prefix=prefix), there) == 3


# ---- file systems whose locks do not reach everybody ----

FAKE = BUILD / "test/libfake_fs.so"


NETWORK = ["6969", "65735546", "01021997", "0bd00bd0", "ff534d42", "fe534d42", "517b", "47504653"]  # see locks.c


@pytest.mark.parametrize("magic", NETWORK)
def test_on_network_file_systems_readers_and_a_writer_exclude_each_other(start, file, sha256, magic):
    there = {"LD_PRELOAD": str(FAKE), "FAKE_FS": magic}
    reader = opened(start(env=there), file)
    before = sha256(file)
    said = refusal(start(env=there), file, "r+")
    assert "network" in said and "read" in said, said
    assert sha256(file) == before
    assert seen(opened(start(env=there), file)) == 1  # readers do not exclude each other
    reader.do("f.close()")
    with pytest.raises(Refused):
        opened(start(env=there), file, "r+")  # the other one is still there


def test_writer_on_a_network_file_system_keeps_readers_out(start, file):
    there = {"LD_PRELOAD": str(FAKE), "FAKE_FS": "6969"}
    writer = opened(start(env=there), file, "r+")
    said = refusal(start(env=there), file, "r")
    assert f"process {writer.pid} (" in said and "network" in said, said
    writer.do(state(2) + "\nf.close()")
    assert seen(start(env=there), file) == 2 and seen(start("stock"), file) == 2


def test_without_working_locks_writing_needs_to_be_asked_for(start, file, sha256):
    there = {"LD_PRELOAD": str(FAKE), "FAKE_FS": "6969", "FAKE_NO_LOCKS": "1"}
    before = sha256(file)
    assert "HDF5_USE_FILE_LOCKING=FALSE" in refusal(start(env=there), file, "r+")
    assert sha256(file) == before
    only = {**there, "HDF5_USE_FILE_LOCKING": "FALSE"}
    writer = opened(start(env=only), file, "r+")
    writer.do(state(2) + "\nf.close()")
    assert seen(start(env=only), file) == 2 and seen(start("stock"), file) == 2


# ---- readers ----


def test_reader_keeps_its_state(programs, start, file):
    """While versions are made, datasets deleted and their space used again."""
    readers = []
    for value in range(2, 22):
        readers.append(opened(start(), file)) if value % 5 == 2 else None
        if value % 4 == 0:
            commit(start, file, value, f"del f['d']\nf.create_dataset('d', data=np.full({N}, {value}))\n"
                   f"del f['g']\nf.create_group('g').attrs['a'] = {value}\nf['g/x'] = {value}")  # fmt: skip
        else:
            commit(start, file, value)
        for i, reader in enumerate(readers):
            assert seen(reader) == 5 * i + 1
    opened(readers[1], file, "r", "g")
    assert readers[1].do("result = int(g['d'][0])\ng.close()") == 6  # opened once more: no other state
    with pytest.raises(Refused, match="the file has 6"):
        opened(readers[1], f"{file}@7", "r", "g")
    for reader in readers:
        reader.do("f.close()")
    assert seen(readers[0], file) == 21
    commit(start, file, 22)
    assert seen(start("stock"), file) == 22 and not Journal(file).pending
    verify(programs, file)


def sizes(start, path, commits, reader, check):
    writer = start()
    for value in range(2, 2 + commits):
        writer.do(f"f = h5py.File({str(path)!r}, 'r+')\n{state(value)}\nf.close()")
        if value % check == 0:
            assert seen(reader) == 1
    return path.stat().st_size


@pytest.mark.parametrize("kind", ["stock", "connector"])
@pytest.mark.parametrize("commits", [20, 200])
def test_reader_that_stays_does_not_let_the_journal_grow(programs, start, file, tmp_path, kind, commits):
    alone = tmp_path / "alone.h5"
    shutil.copy(file, alone)
    sizes(start, alone, commits, None, 10**9)
    reader = opened(start(kind), file)
    size = sizes(start, file, commits, reader, max(1, commits // 20))
    assert Journal(file).pending and seen(start(), file) == commits + 1
    # the same commits without a reader, and the journal: a few times what all the pending ones changed
    assert size <= 2 * alone.stat().st_size + 5_000_000, (size, alone.stat().st_size)
    print(kind, commits, size, alone.stat().st_size)
    reader.do("f.close()")
    commit(start, file, 999)
    assert not Journal(file).pending and seen(start("stock"), file) == 999
    verify(programs, file)


@pytest.mark.parametrize("sync", ["full", "off"])
def test_reader_of_a_state_in_the_middle_of_what_is_pending(programs, start, file, sync):
    """With off, the writer that goes on makes one of its own commit and the pending one, not on the disk yet."""
    stock = opened(start("stock"), file)
    first = opened(start(options=f"sync={sync}"), file, "r+")
    first.do(state(2) + "\nf.close()")
    reader = opened(start(), file)  # sees 2, which is not applied
    writer = opened(start(), file, "r+")
    stock.kill()
    writer.do(state(3) + "\nf.flush()\n" + state(4) + "\nf.flush()\n" + state(5) + "\nf.close()")
    assert seen(reader) == 2 and seen(start(), file) == 5
    assert seen(start("stock"), file) == (2 if sync == "full" else 1)  # what is applied; and is not refused
    reader.kill()
    commit(start, file, 6)
    assert seen(start("stock"), file) == 6
    verify(programs, file)
