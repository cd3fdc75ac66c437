"""Slots found by their hashes in a file with many: /_versioned_data/hashes, which is a help and nothing else."""

import contextlib
import json
import shutil
import sys

import h5py
import numpy as np
import pytest
from conftest import BUILD
from hostile import fence_off, fence_on

WRITE = """
f = h5py.File(sys.argv[1], 'a', libver=tuple(json.loads(sys.argv[2])))
if 'x' not in f:
    f['x'] = np.arange(int(sys.argv[3]))
    f.create_dataset('y', (int(sys.argv[3]), 16), 'i4', chunks=(1, 16))
y = f['y']
for k in json.loads(sys.argv[4]):
    y[k] = k * 7 + int(sys.argv[5])
f.close()
"""
CHUNKS = 3000


def write(programs, path, rows, more=0, libver=("earliest", "v110"), **environment):
    there = ["env", *(f"{name}={value}" for name, value in environment.items())]
    done = programs.connector(*there, sys.executable, "-c", programs.code("import json\n" + WRITE), path, json.dumps(libver), CHUNKS,
                              json.dumps(list(rows)), more)
    assert done.returncode == 0, done.stderr


def slots(path):
    with h5py.File(path) as f:
        return {name: len(table) for name, table in f["_versioned_data/slots"].items()}


def hashes(path):
    with h5py.File(path) as f:
        return {name: table[...] for name, table in f.get("_versioned_data/hashes", {}).items()}


@contextlib.contextmanager
def damaging(path):
    fence = fence_off(path)
    with h5py.File(path, "r+") as f:
        yield f["_versioned_data"]
    fence_on(path, fence)


@pytest.fixture(params=["earliest", "latest"], scope="module")
def made(programs, tmp_path_factory, request):
    path = tmp_path_factory.mktemp("hashes") / "a.h5"
    write(programs, path, range(CHUNKS), libver=(request.param, "latest" if request.param == "latest" else "v110"))
    return path


@pytest.fixture
def large(made, tmp_path):
    return shutil.copy(made, tmp_path / "a.h5")


def test_only_files_with_many_chunks_have_it(programs, tmp_path, large):
    write(programs, tmp_path / "few.h5", range(10))
    assert hashes(tmp_path / "few.h5") == {}
    (table,) = hashes(large).values()
    assert table["key"][0] == CHUNKS and len(table) == (64 + CHUNKS + 255) // 256 * 256
    programs.verified(large)


def test_equal_chunks_are_stored_once_in_later_sessions(programs, large):
    before = slots(large)
    write(programs, large, range(0, CHUNKS, 7), 0)  # what is there
    write(programs, large, range(0, 2900, 3), 7)  # what the next rows have
    assert slots(large) == before
    write(programs, large, range(1500), 700_000_000)
    write(programs, large, range(1500, 1510), 700_000_000)
    write(programs, large, range(1510), 700_000_000)
    assert sum(slots(large).values()) == sum(before.values()) + 1510
    programs.verified(large)


def test_what_gc_frees_is_used_again(programs, large):
    write(programs, large, range(1000), 700_000_000)
    done = programs.cow("forget", "--gc", large, "1")
    assert done.returncode == 0, done.stderr
    programs.verified(large)
    before = slots(large)
    for first in range(0, 1000, 250):
        write(programs, large, range(first, first + 250), 900_000_000)
    assert slots(large) == before
    programs.verified(large)


def test_an_older_writer_does_not_know_it(programs, large):
    """Rows that are not noted, and a table that is gone."""
    with damaging(large) as history:
        del history["hashes"]
    write(programs, large, range(100), 700_000_000)
    assert len(hashes(large)) == 1
    write(programs, large, range(100), 700_000_000)
    programs.verified(large)


@pytest.mark.parametrize("row, value", [(0, (1 << 60, 5)), (0, (CHUNKS, 300 << 32 | 1)), (1, (CHUNKS, 1 << 31)), (500, (9, 9)), (63, (1, 1)), (64, (0, 0))])
def test_a_damaged_one_is_told_and_does_no_harm(programs, large, row, value):
    with damaging(large) as history:
        (table,) = history["hashes"].values()
        table[row] = value
    damaged = row != 63  # of a run that there is not
    done = programs.cow("verify", large)
    assert done.returncode == damaged, done.stdout
    assert not damaged or "nothing is lost" in done.stdout
    write(programs, large, range(50), 700_000_000)
    if row < 2:  # noticed when it was opened
        programs.verified(large)
    with h5py.File(large) as f:
        assert (f["_versioned_data/versions/1/y"][:, 0] == np.arange(CHUNKS) * 7).all()
        assert (f["y"][:50, 0] == np.arange(50) * 7 + 700_000_000).all() and (f["y"][50:, 0] == np.arange(50, CHUNKS) * 7).all()
    new = large.with_suffix(".new.h5")
    done = programs.cow("recover", large, new)
    assert done.returncode == 0, done.stdout + done.stderr
    programs.verified(new)
    with h5py.File(new) as f:
        assert (f["_versioned_data/versions/1/y"][:, 0] == np.arange(CHUNKS) * 7).all()


def test_what_an_older_writer_left_is_told_and_no_damage(programs, large):
    with damaging(large) as history:
        (table,) = history["hashes"].values()
        rows = table[...]
        rows["key"][500] = rows["key"][499]
        table[...] = rows
    done = programs.cow("verify", large)
    assert done.returncode == 0 and "do not lead to: 1 (" in done.stdout, done.stdout


def test_a_damage_that_a_search_meets_is_mended_by_one_chunk(programs, large):
    with damaging(large) as history:
        (table,) = history["hashes"].values()
        places = [table.id.get_chunk_info(i) for i in range(1, table.id.get_num_chunks())]
    with open(large, "r+b") as f:
        for place in places:
            f.seek(place.byte_offset + 77)
            f.write(b"\xa5\x5a")
    done = programs.cow("verify", large)
    assert done.returncode == 1 and "nothing is lost" in done.stdout
    before = slots(large)
    write(programs, large, [5], 7)  # what the next row has
    assert slots(large) == before
    programs.verified(large)


@pytest.mark.parametrize("index", [False, True])
def test_a_bad_disk_below_it_fails_no_commit(programs, large, index):
    """Where the index of its chunks cannot be read, or the chunks cannot."""
    with h5py.File(large) as f:
        (table,) = f["_versioned_data/hashes"].values()
        chunks = [table.id.get_chunk_info(i) for i in range(1, table.id.get_num_chunks())]
        # the middle of each: of an object header before it HDF5 reads up to 512 bytes, wherever that ends
        bad = [(h5py.h5o.get_info(table.id).addr, 64)] if index else [(c.byte_offset + 1024, c.size - 2048) for c in chunks]
        first = bad[0][0]
    before = slots(large)
    bad = {"LD_PRELOAD": str(BUILD / "test/libfake_fs.so"), "FAKE_BAD": ",".join(f"{at}-{at + size}" for at, size in bad)}
    for more in 7, 700_000_000, 700_000_001:
        write(programs, large, [5, 6, 7], more, **bad)
        with h5py.File(large) as f:
            assert (f["y"][5:8, 0] == np.arange(5, 8) * 7 + more).all()
    assert sum(slots(large).values()) == sum(before.values()) + 6
    done = programs.connector("env", *(f"{k}={v}" for k, v in bad.items()), sys.executable, "-c", "import os; os.pread(os.open(%r, 0), 9, %d)" % (str(large), first))
    assert "Input/output error" in done.stderr
    programs.verified(large)


@pytest.mark.parametrize("instead", ["link", "group", "rows", "nothing", "no group"])
def test_something_else_in_its_place(programs, large, instead):
    with damaging(large) as history:
        group = history["hashes"]
        (name,) = group
        del group[name]
        if instead == "no group":
            del history["hashes"]
            history["hashes"] = h5py.SoftLink("/")
            history.file[name] = np.arange(9)
        elif instead == "link":
            group[name] = h5py.SoftLink("/x")
        elif instead == "group":
            group.create_group(name)
        elif instead == "rows":
            group.create_dataset(name, data=np.arange(9), maxshape=(None,), chunks=(3,))
    assert programs.cow("verify", large).returncode == (instead != "nothing")
    write(programs, large, range(50), 700_000_000)
    assert programs.cow("verify", large).returncode == (instead == "no group")


def test_compact_and_export_leave_it_out(programs, large):
    write(programs, large, range(20), 700_000_000)
    done = programs.cow("gc", "--compact", large)
    assert done.returncode == 0, done.stderr
    programs.verified(large)
    write(programs, large, range(20), 900_000_000)
    assert len(hashes(large)) == 1
    programs.verified(large)
