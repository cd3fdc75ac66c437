"""Who may read what a verb makes of a file: never more than may read that file, and nobody before it is done."""

import os
import stat
import subprocess
import threading

import pytest
from conftest import H5COW, STOCK, h5cow

MAKE = "with h5py.File(sys.argv[1], 'w') as f: f['x'] = np.arange(300000); f['g/y'] = 5"
VERBS = {
    "cp": lambda source, out: ("cp", f"{source}:/x", f"{out}:/x"),
    "cp of a version": lambda source, out: ("cp", f"{source}@1:/g", out),
    "export": lambda source, out: ("export", source, out),
    "copy": lambda source, out: ("copy", source, out),
    "recover": lambda source, out: ("recover", source, out),
    "import": lambda source, out: ("import", f"{source}.plain", out),
    "report": lambda source, out: ("report", "-o", out, source),
}


@pytest.fixture
def source(programs, tmp_path):
    path = tmp_path / "secret.h5"
    done = programs.python(MAKE, path)
    assert done.returncode == 0, done.stderr
    h5cow("export", path, f"{path}.plain")
    return path


def seen_while(command, folder, **more):
    """All modes that new regular files in FOLDER have while COMMAND runs."""
    before, modes, done = set(os.listdir(folder)), set(), threading.Event()

    def watch():
        while not done.is_set():
            for entry in os.scandir(folder):
                if entry.name not in before:
                    try:
                        modes.add(stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode))
                    except FileNotFoundError:
                        pass

    watcher = threading.Thread(target=watch)
    watcher.start()
    finished = subprocess.run([H5COW, *map(str, command)], env=STOCK, capture_output=True, text=True, **more)
    done.set()
    watcher.join()
    assert finished.returncode == 0, finished.stderr
    return modes


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o400])
def test_a_new_file_is_as_its_source(source, tmp_path, verb, mode):
    out = tmp_path / "new.h5"
    for name in (source, f"{source}.plain"):
        os.chmod(name, mode)
    old = os.umask(0)
    try:
        modes = seen_while(VERBS[verb](source, out), tmp_path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(out).st_mode) == mode
    assert modes <= {0o600, mode}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("verb", VERBS)
def test_owner_and_group_where_root(source, tmp_path, verb):
    out = tmp_path / "new.h5"
    for name in (source, f"{source}.plain"):
        os.chmod(name, 0o640)
        os.chown(name, 12345, 23456)
    h5cow(*VERBS[verb](source, out))
    about = os.stat(out)
    assert (about.st_uid, about.st_gid, stat.S_IMODE(about.st_mode)) == (12345, 23456, 0o640)


def test_compact_keeps_who_may_read(source, programs):
    assert programs.python("with h5py.File(sys.argv[1], 'a') as f: f['x'][:] = 1", source).returncode == 0
    h5cow("forget", source, 1)
    os.chmod(source, 0o640)
    assert seen_while(("gc", "--compact", source), source.parent) <= {0o600, 0o640}
    assert stat.S_IMODE(os.stat(source).st_mode) == 0o640


def test_a_copy_that_fails_leaves_no_file(source, tmp_path):
    h5cow("cp", f"{source}:/nothing", tmp_path / "new.h5", code=2)
    h5cow("cp", "-o", "compress=gzip:77", f"{source}:/x", tmp_path / "new.h5", code=2)
    assert {p.name for p in tmp_path.iterdir()} == {"secret.h5", "secret.h5.plain"}
