"""What is beside the file: where the command and the connector write, whom they replace, and who may read the result."""

import json
import os
import pathlib
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np
import pytest
from conftest import H5COW, PLUGINS, STOCK as ENV, h5cow
from seeds import seed

PROGRAM = "import h5py,sys; f=h5py.File(sys.argv[1],sys.argv[2]); f.require_dataset('x',(1000,),'i4')[0]=int(sys.argv[3]); f.close()"
OTHER = 54321  # a user and a group that nobody is in

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


def write(path, value=1, mode="a", options=(), **more):
    h5cow("run", *options, "--", sys.executable, "-c", PROGRAM, path, mode, value, **more)


def versions(path):
    return [v["name"] for v in json.loads(h5cow("log", "--json", path))]


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def leftovers(folder):
    return [name for name in os.listdir(folder) if ".h5cow-" in name or name.endswith(".tmp")]


@pytest.fixture
def made(tmp_path):
    path = tmp_path / "a.h5"
    write(path, 1)
    write(path, 2)
    return path


@pytest.fixture
def shared():
    """A folder that every user can reach."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="h5cow-beside-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def plain(path, value=0):
    with h5py.File(path, "w") as f:
        f["x"] = np.full(1000, value, "i4")
    return path


# ---- what is replaced -----------------------------------------------------------------------------------------------


def test_export_replaces_a_regular_file_and_nothing_else(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("old")
    os.mkfifo("fifo")
    os.mkdir("folder")
    os.symlink("nowhere", "dangling")
    os.symlink("text", "link")
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket")
    kinds = {"fifo": "a named pipe", "folder": "a folder", "dangling": "a symbolic link", "link": "a symbolic link",
             "socket": "a socket"}
    if os.geteuid() == 0:
        try:
            os.mknod("device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
            kinds["device"] = "a device"
        except PermissionError:
            pass
    before = {name: os.lstat(name) for name in kinds}
    for name, kind in kinds.items():
        for words in (["export", "--force", made, name], ["export", "--force", "--discard-history", made, name],
                      ["export", made, name], ["copy", made, name], ["recover", made, name]):
            told = h5cow(*words, code=2)
            assert kind in told and len(told.splitlines()) == 1, (words, told)
        told = h5cow("import", plain("plain.h5"), name, code=2)
        assert kind in told and len(told.splitlines()) == 1, told
        assert os.path.samestat(os.lstat(name), before[name]) and os.lstat(name).st_mode == before[name].st_mode
    assert (tmp_path / "text").read_text() == "old" and not os.path.exists("nowhere")
    h5cow("export", "--force", made, "text")
    with h5py.File("text") as f:
        assert f["x"][0] == 2
    assert leftovers(tmp_path) == []


def test_export_never_takes_a_history_away_unless_told_to(made, tmp_path):
    target = tmp_path / "b.h5"
    write(target, 5)
    for _ in range(2):
        told = h5cow("export", "--force", f"{made}@1", target, code=2)
        assert "history" in told and "--discard-history" in told and versions(target) == ["1"]
        # h5repack's output has one as well, without a journal
        subprocess.run(["h5repack", target, tmp_path / "c.h5"], check=True, env=ENV)
        os.replace(tmp_path / "c.h5", target)
    h5cow("export", "--force", "--discard-history", f"{made}@1", target)
    with h5py.File(target) as f:
        assert f["x"][0] == 1
    assert "exists" in h5cow("export", "--discard-history", f"{made}@1", target, code=2)


HOLD = """
import h5py, sys
f = h5py.File(sys.argv[1], sys.argv[2])
print('open', flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("kind", ["history", "plain", "new"])
@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("connector", [True, False])
def test_export_asks_who_uses_what_it_replaces(made, tmp_path, kind, mode, connector):
    if not connector and (kind != "plain" and mode == "r+"):
        pytest.skip("HDF5 alone does not write such a file")
    if kind == "new" and mode == "r":
        pytest.skip("there is nothing to read")
    target = tmp_path / "b.h5"
    if kind == "history":
        write(target, 5)
    elif kind == "plain":
        plain(target, 5)
    run = [H5COW, "run", "--"] if connector else []
    child = subprocess.Popen([*run, sys.executable, "-c", HOLD, target, "w" if kind == "new" else mode],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV)
    assert child.stdout.readline() == b"open\n"
    before = target.read_bytes()
    told = h5cow("export", "--force", "--discard-history", made, target, code=2)
    assert len(told.splitlines()) == 1 and ("open" in told or "written" in told), told
    assert target.read_bytes() == before
    child.communicate()
    assert child.returncode == 0
    h5cow("export", "--force", "--discard-history", made, target)
    assert leftovers(tmp_path) == []


# ---- who may read it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0o077, 0])
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o664, 0o604, 0o444])
def test_what_is_made_from_a_file_has_its_permissions(made, tmp_path, permissions, mask):
    source = plain(tmp_path / "plain.h5")
    for path in (made, source):
        path.chmod(permissions)
    try:
        old = os.umask(mask)
        h5cow("export", made, tmp_path / "exported.h5")
        h5cow("copy", made, tmp_path / "copied.h5")
        h5cow("recover", made, tmp_path / "saved.h5")
        h5cow("import", source, tmp_path / "imported.h5")
    finally:
        os.umask(old)
    for name in ("exported", "copied", "saved", "imported"):
        assert mode_of(tmp_path / f"{name}.h5") == permissions, name
    private = tmp_path / "private.h5"
    private.write_text("")
    private.chmod(0o600)
    h5cow("export", "--force", made, private)
    assert mode_of(private) == permissions & 0o600, "wider than the file that it replaced"


def test_the_umask_is_that_of_what_is_made_from_nothing(tmp_path):
    for mask in (0o022, 0o077, 0o007):
        old = os.umask(mask)
        try:
            write(tmp_path / f"{mask}.h5")
        finally:
            os.umask(old)
        assert mode_of(tmp_path / f"{mask}.h5") == 0o666 & ~mask


def has_attributes(folder):
    try:
        os.setxattr(folder, "user.try", b"1")
    except OSError:
        return False
    return True


def recreate(path, **more):
    """Files that are put aside: other creation properties, and truncate=discard."""
    code = "import h5py,sys; h5py.File(sys.argv[1],'w',userblock_size=512).create_dataset('x',data=[7])"
    h5cow("run", "--", sys.executable, "-c", code, path, **more)


def made_from(made, folder):
    """Everything that h5cow makes from MADE."""
    results = [folder / f"{name}.h5" for name in ("exported", "copied", "saved", "imported", "block", "discarded")]
    exported, copied, saved, imported, block, discarded = results
    h5cow("export", made, exported)
    h5cow("copy", made, copied)
    h5cow("recover", made, saved)
    h5cow("import", exported, imported)
    for path in (block, discarded):
        h5cow("copy", made, path)
    recreate(block)
    write(discarded, 9, "w", ["-o", "truncate=discard"])
    return results


def test_attributes_of_the_file_are_kept(made, tmp_path):
    if not has_attributes(tmp_path):
        pytest.skip("this file system has no extended attributes")
    os.setxattr(made, "user.origin", b"buoy 7")
    for path in made_from(made, tmp_path):
        assert os.getxattr(path, "user.origin") == b"buoy 7", path


def acl(*entries):
    tags = {"user": 1, "named": 2, "group": 4, "mask": 16, "other": 32}
    pack = b"".join(tags[tag].to_bytes(2, "little") + rights.to_bytes(2, "little") + who.to_bytes(4, "little")
                    for tag, rights, who in entries)
    return (2).to_bytes(4, "little") + pack


NOBODY = 0xFFFFFFFF
LIST = acl(("user", 6, NOBODY), ("named", 4, OTHER), ("group", 0, NOBODY), ("mask", 4, NOBODY), ("other", 0, NOBODY))


def set_list(path, name="access"):
    try:
        os.setxattr(path, f"system.posix_acl_{name}", LIST)
    except OSError as error:
        pytest.skip(f"no access control lists here: {error}")


def test_access_control_lists_are_kept(made, tmp_path):
    set_list(made)
    for path in made_from(made, tmp_path):
        assert os.getxattr(path, "system.posix_acl_access") == LIST, path


def test_a_list_that_the_folder_gives_to_new_files_makes_nothing_wider(made, tmp_path):
    made.chmod(0o640)
    set_list(tmp_path, "default")
    for path in made_from(made, tmp_path):
        assert mode_of(path) == 0o640 and "system.posix_acl_access" not in os.listxattr(path), path


@root_only
def test_the_owner_is_kept_where_the_user_may(made, tmp_path):
    os.chown(made, OTHER, OTHER + 1)
    made.chmod(0o640)
    for path in made_from(made, tmp_path):
        now = path.stat()
        assert (now.st_uid, now.st_gid, mode_of(path)) == (OTHER, OTHER + 1, 0o640), path


@root_only
def test_a_private_file_created_over_by_another_user_stays_private(shared):
    """As root the file keeps its owner; what another user cannot keep is taken away."""
    for name, before, mode, after in [("a", 0o600, "userblock", None), ("b", 0o666, "userblock", 0o666),
                                      ("c", 0o606, "userblock", 0o600), ("d", 0o664, "discard", 0o644)]:
        path = shared / f"{name}.h5"
        write(path, 1)
        path.chmod(before)
        as_other = {"user": OTHER, "group": OTHER, "extra_groups": [], "cwd": shared}
        if after is None:  # root itself creates over a file of somebody else
            os.chown(path, OTHER, OTHER)
            recreate(path)
            assert (path.stat().st_uid, mode_of(path)) == (OTHER, 0o600)
            continue
        os.chown(path, -1, OTHER + 1)
        path.chmod(before | 0o006)  # that it can be written at all
        want = before | 0o006
        both = want >> 3 & want & 7
        program = [sys.executable, "-c",
                   "import h5py,sys; h5py.File(sys.argv[1],'w',userblock_size=512).create_dataset('x',data=[7])", path]
        done = subprocess.run([H5COW, "run", "--", *program], capture_output=True, text=True, env=ENV, **as_other)
        assert done.returncode == 0, done.stderr
        assert "owner, group and attributes" in done.stderr
        assert path.stat().st_uid == OTHER and mode_of(path) == (want & 0o700 | both << 3 | both), oct(mode_of(path))


@root_only
def test_a_group_that_cannot_be_kept_gets_nothing_that_it_had_not(shared):
    path = shared / "a.h5"
    write(path, 1)
    os.chown(path, 0, OTHER + 1)
    path.chmod(0o604)  # its group may not read it: the members must not read the export as others
    for verb in ("export", "copy", "recover"):
        out = shared / f"{verb}.h5"
        done = subprocess.run([H5COW, verb, path, out], capture_output=True, text=True, env=ENV, user=OTHER,
                              group=OTHER, extra_groups=[], cwd=shared)
        assert done.returncode == 0 and "owner" in done.stderr, done.stderr
        assert (out.stat().st_uid, mode_of(out)) == (OTHER, 0o600)


def test_nothing_is_readable_for_others_before_it_is_complete(made, tmp_path):
    """Every name that h5cow makes, watched from outside by the system calls that make it."""
    source = plain(tmp_path / "plain.h5")
    for path in (made, source):
        path.chmod(0o600)
    copied = tmp_path / "over.h5"
    h5cow("copy", made, copied)
    code = "import h5py,sys; h5py.File(sys.argv[1],'w',userblock_size=512).create_dataset('x',data=[7])"
    for words in (["export", made, tmp_path / "1.h5"], ["copy", made, tmp_path / "2.h5"],
                  ["recover", made, tmp_path / "3.h5"], ["import", source, tmp_path / "4.h5"], ["import", source],
                  ["run", "--", sys.executable, "-c", code, copied]):
        log = tmp_path / "trace"
        trace = ["strace", "-f", "-o", log, "-e", "trace=openat,open,creat,fchmod,chmod"]
        done = subprocess.run([*trace, H5COW, *words], capture_output=True, text=True, env=ENV)
        if "PTRACE" in done.stderr or "ptrace" in done.stderr:
            pytest.skip("no strace here")
        assert done.returncode == 0, done.stderr
        made_here = [line for line in log.read_text().splitlines() if "O_CREAT" in line and str(tmp_path) in line]
        new = [line for line in made_here if "O_EXCL" in line]
        assert new, words
        for line in new:
            assert "O_NOFOLLOW" in line and "O_CLOEXEC" in line and "0600" in line, line
        for line in made_here:  # all others open what is there: by the descriptor, or what was just made
            assert line in new or words[0] == "run", line
        assert not [line for line in log.read_text().splitlines() if "chmod(" in line and "0600" not in line]


# ---- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [232, 233, 240, 249, 250, 255])
def test_every_legal_name_works(tmp_path, monkeypatch, length):
    monkeypatch.chdir(tmp_path)
    name = lambda letter: letter * (length - 3) + ".h5"
    write(name("a"), 1)
    h5cow("export", name("a"), name("b"))
    h5cow("copy", name("a"), name("c"))
    h5cow("recover", name("a"), name("d"))
    h5cow("import", name("b"), name("e"))
    h5cow("import", name("b"))
    recreate(name("a"))
    recreate(name("a"))
    write(name("c"), 9, "w", ["-o", "truncate=discard"])
    assert [n for n in os.listdir() if n.endswith(".tmp")] == []
    aside = [n for n in os.listdir() if ".h5cow-old-" in n]
    assert len(aside) == 1, aside
    assert versions(aside[0]) == ["1"] and [versions(name(c)) for c in "abcde"] == [["2", "1"], ["1"], ["1"], ["1"], ["1"]]


def test_a_long_name_is_cut_between_characters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "ä" * 126 + ".h5"
    write(name, 1)
    recreate(name)
    assert sorted(os.listdir()) == sorted([name, "ä" * 121 + ".h5cow-old-1"])


# ---- what is printed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("verb", ["export", "copy", "import", "recover", "import in place", "recover in place"])
def test_what_is_printed_never_lands_in_the_file(tmp_path, verb, closed):
    """A file that is opened takes the lowest descriptor, and that may be the one of standard output."""
    source, out = tmp_path / "a.h5", tmp_path / "out.h5"
    if verb.startswith("import"):
        with h5py.File(plain(source), "a") as f:  # of which it has something to say on standard error
            f.create_dataset("elsewhere", shape=(9,), dtype="i4", external=[("elsewhere.raw", 0, 36)])
    else:
        write(source)
        with open(source, "ab") as f:
            f.write(b"never committed")
    files = [source] if "in place" in verb else [source, out]
    done = subprocess.run(["sh", "-c", f'exec "$0" "$@" {closed}', H5COW, verb.split()[0], *files], env=ENV,
                          capture_output=True)
    quiet = verb in ("export", "copy") or ">&-" not in closed.replace("2>&-", "")
    assert done.returncode == (0 if quiet else 2), done.stderr
    if verb == "export":
        assert h5py.File(out)["x"][0] == 1
    else:
        h5cow("verify", files[-1])
    if verb.startswith("import"):
        new = tmp_path / "as it should be.h5"
        h5cow("export", files[-1], new)
        assert h5py.File(new)["x"][0] == 0
    for file in files:
        assert b"has a history:" not in file.read_bytes() and b"h5cow: the data of" not in file.read_bytes()


def test_an_import_whose_words_nobody_reads_says_nothing_of_damage(tmp_path):
    source = plain(tmp_path / "a.h5")
    ends = os.pipe()
    os.close(ends[0])
    done = subprocess.run([H5COW, "import", source], env=ENV, stdout=ends[1], stderr=subprocess.PIPE, text=True)
    os.close(ends[1])
    assert done.returncode == -signal.SIGPIPE and done.stderr == ""
    assert versions(source) == ["1"] and leftovers(tmp_path) == []


# ---- killed ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["export", "copy", "import", "recover"])
def test_what_a_killed_verb_leaves_is_in_nobodys_way(tmp_path, verb):
    folder = tmp_path / "data"
    folder.mkdir()
    source = folder / "a.h5"
    with h5py.File(source, "w") as f:
        f.create_dataset("x", data=np.random.default_rng(1).random(4_000_000), chunks=(1000,))
    source.chmod(0o600)  # and so what is made, to its last moment; a killed one never had more rights
    if verb != "import":
        h5cow("import", source)
    before = source.read_bytes()
    out = folder / "out.h5"
    for number in (signal.SIGTERM, signal.SIGKILL):
        child = subprocess.Popen([H5COW, verb, source, out], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV)
        while not leftovers(folder) and child.poll() is None:
            time.sleep(0.0005)
        child.send_signal(number)
        child.communicate()  # and what it has started is gone too: nobody can write there any more
        if out.exists():
            out.unlink()  # it was quicker
            continue
        left = leftovers(folder)
        assert len(left) == (number == signal.SIGKILL), left
        for name in left:
            assert name.startswith(".h5cow-") and name.endswith(".tmp") and mode_of(folder / name) == 0o600
    assert source.read_bytes() == before
    h5cow(verb, source, out)  # and again with the leftovers there
    assert out.exists() and source.read_bytes() == before


def calls_after_the_new_file(verb, source, out, log):
    """The system calls of the command's own process once it begins to make its new file, each with its number among
    the calls of that name."""
    subprocess.run(["strace", "-o", log, H5COW, verb, source, out], env=ENV, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    seen, calls, begun = {}, [], False
    for line in log.read_text().splitlines():
        name = line.partition("(")[0]
        if not name.isidentifier():
            continue
        seen[name] = seen.get(name, 0) + 1
        if begun:
            calls.append((name, seen[name]))
        begun |= "O_EXCL" in line and ".h5cow-" in line
        if begun and name in ("rename", "renameat", "renameat2", "link", "linkat"):
            break
    return calls[:-1]


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace here")
@pytest.mark.parametrize("verb", ["export", "copy", "import", "recover"])
def test_a_verb_that_is_ended_anywhere_takes_its_new_file_along(tmp_path, verb):
    source, folder = tmp_path / "a.h5", tmp_path / "out"
    plain(source) if verb == "import" else write(source)
    folder.mkdir()
    out = folder / "out.h5"
    calls = calls_after_the_new_file(verb, source, out, tmp_path / "log")
    assert calls and out.exists()
    early, late = calls[:12], calls[12:]
    for name, number in early + random.Random(seed()).sample(late, min(len(late), 8)):
        out.unlink(missing_ok=True)
        subprocess.run(["strace", "-o", "/dev/null", "-e", f"inject={name}:signal=SIGTERM:when={number}", H5COW, verb,
                        source, out], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert leftovers(folder) == [], f"{name}, call {number}"
