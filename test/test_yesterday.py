"""Files of yesterday: what earlier states of h5cow wrote (test/files/FORMAT/STATE, by test/files/make.py) is read, verified,
gone on with and taken out again. What their versions hold is known from native HDF5 (listing.json). Sets are added, never
changed: the first one is of 6c48d51, which was linked with libhdf5."""

import json
import pathlib
import shutil

import h5py
import pytest
from files.make import VERSIONS, listing

SETS = sorted(path.parent for path in (pathlib.Path(__file__).parent / "files").glob("format-*/*/listing.json"))
SEEN = "import sys, json, h5py; sys.path[:0] = [%r]; from files.make import listing\n" % str(pathlib.Path(__file__).parent)

pytestmark = pytest.mark.parametrize("files", SETS, ids=lambda path: f"{path.parent.name} {path.name}")


def expected(files, version):
    return json.loads((files / "listing.json").read_text())[str(version)]


def as_json(told):
    return json.loads(json.dumps(told))


def seen(programs, name, cwd):
    """NAME through the connector."""
    done = programs.python(SEEN + f"print(json.dumps(listing(h5py.File({name!r}))))", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def versions(programs, path):
    done = programs.cow("log", "--json", path)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_files_of_each_format(files):
    assert {path.parent.name for path in SETS} == {"format-1", "format-2", "format-3", "format-4", "format-5", "format-6"}
    assert (files / "all.h5").is_file() and (files / "killed.h5").is_file()


def test_every_version_is_read_with_and_without_the_connector(programs, tmp_path, files):
    shutil.copy(files / "all.h5", tmp_path)
    done = programs.cow("verify", tmp_path / "all.h5")
    assert done.returncode == 0, done.stdout + done.stderr
    for version in range(1, VERSIONS + 1):
        assert seen(programs, f"all.h5@{version}", tmp_path) == expected(files, version)
    assert seen(programs, "all.h5", tmp_path) == expected(files, VERSIONS)
    with h5py.File(tmp_path / "all.h5") as f:
        assert as_json(listing(f)) == expected(files, VERSIONS)
    done = programs.cow("export", tmp_path / "all.h5@2", tmp_path / "two.h5")
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "two.h5") as f:
        assert as_json(listing(f)) == expected(files, 2)


def test_they_are_gone_on_with(programs, tmp_path, files):
    shutil.copy(files / "all.h5", tmp_path)
    more = """
    with h5py.File('all.h5', 'r+') as f:
        f['grid'][0, 0] = 1000
        f['few again'] = [7]
        f['records'][:3] = f['records'][3:6]
        del f['words']
        f.copy('group', 'copied')
    """
    for _ in range(2):
        done = programs.python(more.replace("few again", f"few again {_}").replace("del f['words']", "f.pop('words', 0)")
                               .replace("'copied'", f"'copied {_}'"), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    for version in range(1, VERSIONS + 1):
        assert seen(programs, f"all.h5@{version}", tmp_path) == expected(files, version)
    new = seen(programs, f"all.h5@{VERSIONS + 2}", tmp_path)
    assert new == seen(programs, "all.h5", tmp_path)
    old = expected(files, VERSIONS)
    assert set(new) - set(old) >= {"/few again 0", "/few again 1", "/copied 0", "/copied 1"} and "/words" not in new
    assert new["/grid"]["values"] != old["/grid"]["values"] and new["/line"] == old["/line"]
    done = programs.cow("verify", tmp_path / "all.h5")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_killed_writer_of_then_has_lost_nothing_that_it_flushed(programs, tmp_path, files):
    for name in "read.h5", "written.h5":
        shutil.copy(files / "killed.h5", tmp_path / name)
        if name == "written.h5":
            done = programs.python(f"h5py.File({name!r}, 'r+').attrs['more'] = 1", cwd=tmp_path)
            assert done.returncode == 0, done.stderr
        head = seen(programs, name, tmp_path)
        if name == "written.h5":
            del head["/"]["attributes"]["more"]
        assert head == expected(files, 4)
        for version in range(1, 5):
            assert seen(programs, f"{name}@{version}", tmp_path) == expected(files, version)
        done = programs.cow("verify", tmp_path / name)
        assert done.returncode == 0, done.stdout + done.stderr
