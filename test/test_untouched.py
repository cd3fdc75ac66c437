"""Verbs that have nothing to do leave the file alone: its bytes, its size and the time of its last change."""

import os
import time

import pytest
from conftest import h5cow

MAKE = "with h5py.File(sys.argv[1], 'a') as f: f.require_dataset('x', (200000,), 'f8')[:] = np.random.random(200000)"
SMALL = "with h5py.File(sys.argv[1], 'a') as f: f.require_dataset('s%d' % len(f), (20,), 'i4')[:] = len(f); f.attrs['n'] = len(f)"


@pytest.fixture
def story(programs, tmp_path):
    path = tmp_path / "a.h5"
    for k in range(3):
        done = programs.python(MAKE, path, options=f"message=m{k + 1}")
        assert done.returncode == 0, done.stderr
    return path


def state(path, sha256):
    about = os.stat(path)
    return about.st_mtime_ns, about.st_size, about.st_ino, sha256(path)


def unchanged(path, sha256, *words):
    before = state(path, sha256)
    time.sleep(0.02)  # a later time is another one
    said = h5cow(*words)
    assert state(path, sha256) == before, words
    return said


def test_what_changes_nothing_writes_nothing(programs, story, sha256):
    assert "nothing to make free" in unchanged(story, sha256, "gc", story)
    h5cow("tag", f"{story}@2", "mark")
    told = h5cow("log", "--operations", story)
    unchanged(story, sha256, "tag", "-f", f"{story}@2", "mark")
    unchanged(story, sha256, "describe", f"{story}@2", "m2")
    unchanged(story, sha256, "rename", f"{story}@2", "2")
    unchanged(story, sha256, "rename", f"{story}@mark", "2")
    unchanged(story, sha256, "gc", story)
    unchanged(story, sha256, "forget", "--keep-last=9", story)
    unchanged(story, sha256, "restore", f"{story}@3")
    unchanged(story, sha256, "cp", "-n", f"{story}@1:/x", f"{story}:/y")
    assert h5cow("log", "--operations", story) == told
    h5cow("tag", "-f", f"{story}@3", "mark")
    assert h5cow("log", "--operations", story) != told
    h5cow("describe", f"{story}@2", "another")
    assert "another" in h5cow("log", story)
    programs.verified(story)


def test_gc_frees_and_then_has_nothing_to_do(programs, story, sha256):
    h5cow("forget", story, 1)
    assert "became free" in h5cow("gc", story)
    unchanged(story, sha256, "gc", story)
    programs.verified(story)
    assert programs.python(MAKE, story).returncode == 0
    programs.verified(story)


def test_compacting_what_is_small_already_leaves_it(programs, tmp_path, story, sha256):
    h5cow("forget", story, 1)
    size = os.stat(story).st_size
    h5cow("gc", "--compact", story)
    assert os.stat(story).st_size < size
    assert "as small as it can be" in unchanged(story, sha256, "gc", "--compact", story)
    small = tmp_path / "small.h5"
    for _ in range(3):
        assert programs.python(SMALL, small).returncode == 0
    for words in (("gc", small), ("gc", "--compact", small), ("gc", small), ("gc", "--compact", small)):
        size = os.stat(small).st_size
        h5cow(*words)
        assert os.stat(small).st_size <= size, words
    programs.verified(small)
    assert programs.python(SMALL, small).returncode == 0
    programs.verified(small)
