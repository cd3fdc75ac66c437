"""Very many versions: rows of snapshots are found by /_versioned_data/snapshot_rows, which is a help and nothing else."""

import json
import shutil
import sys

import h5py
import numpy as np
import pytest
from conftest import BUILD, TEST
from test_found_by_hash import damaging

sys.path.insert(0, str(TEST.parent / "docs"))
from xxh3 import xxh3  # noqa: E402

WRITE = """
import json
import os
for k in json.loads(sys.argv[2]):
    with h5py.File(sys.argv[1], 'r+' if os.path.exists(sys.argv[1]) else 'w', libver=('earliest', 'v110')) as f:
        if 'x' not in f:
            f['x'], f['rare'], f['g/old'] = np.arange(3000), np.arange(3000), np.arange(3000)
            f['g'].attrs['text'] = 'never changed ' * 100
        f['x'][3] = k
        if k % 250 == 0:
            f['rare'][5] = k
        if k % 500 == 499 and 'old' in f['g']:
            del f['g/old']
"""
MANY = 700


def write(programs, path, values, options="sync=off", **environment):
    there = ["env", *(f"{name}={value}" for name, value in environment.items())]
    done = programs.connector(*there, sys.executable, "-c", programs.code(WRITE), path, json.dumps(list(values)), options=options)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def noted(path):
    """Rows of snapshots that the runs know, and all; None: there are no runs."""
    with h5py.File(path) as f:
        history = f["_versioned_data"]
        table = history.get("snapshot_rows", getlink=True) and history["snapshot_rows"]
        return int(table[0]["key"]) if table else None, len(history["snapshots"])


def check(programs, path, last):
    """All versions are what was written, and share what did not change."""
    programs.verified(path)
    with h5py.File(path) as f:
        versions = f["_versioned_data/versions"]
        names = sorted((int(name) for name in versions if name.isdigit()))
        before = None
        for name in names:
            k, version = name - 1, versions[str(name)]
            if k > last:
                continue
            assert version["x"][3] == k and version["rare"][5] == k // 250 * 250, name
            assert ("old" in version["g"]) == (k < 499), name
            here = {path: h5py.h5o.get_info(version[path].id).addr for path in ("rare", "g")}
            if before is not None and before[0] == name - 1:
                for path, changes in ("rare", k % 250 == 0), ("g", k == 499):
                    assert (here[path] == before[1][path]) == (not changes), (name, path)
            before = name, here


@pytest.fixture(scope="module")
def made(programs, tmp_path_factory):
    path = tmp_path_factory.mktemp("many") / "a.h5"
    write(programs, path, range(10))
    assert noted(path)[0] is None
    write(programs, path, range(10, MANY))
    return path


@pytest.fixture
def large(made, tmp_path):
    return shutil.copy(made, tmp_path / "a.h5")


def test_every_version_is_right_and_shares(programs, large):
    rows, all_rows = noted(large)
    assert rows > 1024 and all_rows - rows < 512 + 3
    check(programs, large, MANY - 1)
    write(programs, large, range(MANY, MANY + 300))
    assert noted(large)[0] > rows
    check(programs, large, MANY + 299)


def test_a_program_that_reads_one_reads_few_rows(programs, large):
    code = "f = h5py.File(sys.argv[1] + '@' + sys.argv[2], 'r'); print(f['rare'][5], f['x'][3], f['g'].attrs['text'][:5], 'old' in f['g'])"
    for version in 1, 2, 300, 500, MANY:
        done = programs.connector(sys.executable, "-c", programs.code(code), large, version)
        k = version - 1
        assert done.stdout == f"{k // 250 * 250} {k} never {k < 499}\n", done.stderr


def test_what_was_deleted_long_ago_comes_back(programs, large):
    done = programs.cow("restore", f"{large}@1")
    assert done.returncode == 0, done.stderr
    with h5py.File(large) as f:
        assert (f["g/old"][...] == np.arange(3000)).all() and f["x"][3] == 0
        versions = f["_versioned_data/versions"]
        assert h5py.h5o.get_info(versions["1/g/old"].id).addr != h5py.h5o.get_info(f["g/old"].id).addr
    check(programs, large, MANY - 1)


def test_an_older_writer_that_forgets_puts_it_out_of_force(programs, large):
    """All rows have other numbers then; as many as before may be there again."""
    with h5py.File(large) as f:
        former = f["_versioned_data/snapshot_rows"][...]
    done = programs.cow("forget", large, *map(str, range(2, 200)))
    assert done.returncode == 0, done.stderr
    check(programs, large, MANY - 1)
    write(programs, large, range(MANY, MANY + 250))
    with damaging(large) as history:
        assert len(history["snapshots"]) > former[0]["key"]
        table = history["snapshot_rows"]
        table.resize((len(former),))
        table[...] = former
    assert programs.cow("verify", large).returncode == 0
    write(programs, large, [MANY + 250])
    assert noted(large)[0] > 1024
    check(programs, large, MANY + 250)


@pytest.mark.parametrize("instead", ["nothing", "link", "group", "rows", "no rows", "too many rows"])
def test_something_else_in_its_place(programs, large, instead):
    with damaging(large) as history:
        if instead == "too many rows":
            history["snapshot_rows"][0] = (1 << 40, 1)
        else:
            table = history["snapshot_rows"][...]
            del history["snapshot_rows"]
            if instead == "link":
                history["snapshot_rows"] = h5py.SoftLink("/x")
            elif instead == "group":
                history.create_group("snapshot_rows")
            elif instead == "rows":
                history.create_dataset("snapshot_rows", data=np.arange(9), maxshape=(None,), chunks=(3,))
            elif instead == "no rows":
                history.create_dataset("snapshot_rows", shape=(0,), dtype=table.dtype, maxshape=(None,), chunks=(256,), fletcher32=True)
    damaged = instead in ("link", "group", "rows", "no rows")
    done = programs.cow("verify", large)
    assert done.returncode == damaged and (not damaged or "nothing is lost" in done.stdout), done.stdout
    write(programs, large, [MANY])
    assert noted(large)[0] > 1024
    check(programs, large, MANY)


def test_an_entry_that_leads_elsewhere_is_told_and_does_no_harm(programs, large):
    with damaging(large) as history:
        table = history["snapshot_rows"]
        rows = table[...]
        rows["row"][64:] = rows["row"][64:] - 1
        table[...] = rows
    write(programs, large, [MANY])  # the stamp does not fit
    check(programs, large, MANY)
    with damaging(large) as history:
        table = history["snapshot_rows"]
        rows = table[...]
        count = int(rows["key"][1]) & 0xFFFFFFFF
        run = rows[64 : 64 + count]
        last = np.uint64(2**64 - 1) - np.uint64(int(rows["key"][0]) - 1)
        for at in range(count):
            if run["row"][at] != last:
                run["row"][at] -= np.uint64(1) if run["row"][at] > last + np.uint64(1) else np.uint64(0)
        rows[64 : 64 + count] = run
        table[...] = rows
    done = programs.cow("verify", large)
    assert done.returncode == 1 and "nothing is lost" in done.stdout, done.stdout
    write(programs, large, range(MANY + 1, MANY + 3))
    check(programs, large, MANY + 2)


@pytest.mark.parametrize("forgotten", [False, True])
def test_an_entry_that_leads_to_an_older_row_is_told_and_does_no_harm(programs, large, forgotten):
    """All that can be compared in a row fits. What versions are forgotten, the newest one's rows are noted as well."""
    if forgotten:
        assert programs.cow("forget", large, "2").returncode == 0
    with damaging(large) as history:
        table, heads = history["snapshot_rows"], history["snapshots"]["head"]
        rows = table[...]
        noted = heads[: int(rows["key"][0])]
        for head in np.unique(noted):
            oldest, newest = (np.uint64(2**64 - 1 - int(np.flatnonzero(noted == head)[end])) for end in (0, -1))
            key = np.uint64(xxh3(np.array([0, head], "u8").tobytes()))
            rows["row"][64:][(rows["key"][64:] == key) & (rows["row"][64:] == newest)] = oldest
        table[...] = rows
    done = programs.cow("verify", large)
    assert done.returncode == 1 and "nothing is lost" in done.stdout, done.stdout
    write(programs, large, [MANY])
    check(programs, large, MANY)


def test_damaged_bytes_are_told_and_do_no_harm(programs, large):
    with h5py.File(large) as f:
        table = f["_versioned_data/snapshot_rows"]
        places = [table.id.get_chunk_info(i).byte_offset for i in range(1, table.id.get_num_chunks())]
    with open(large, "r+b") as f:
        for place in places:
            f.seek(place + 77)
            f.write(b"\xa5\x5a")
    done = programs.cow("verify", large)
    assert done.returncode == 1 and "nothing is lost" in done.stdout, done.stdout
    write(programs, large, [MANY])
    check(programs, large, MANY)


@pytest.mark.parametrize("index", [False, True])
def test_a_bad_disk_below_it_fails_no_commit(programs, large, index):
    with h5py.File(large) as f:
        table = f["_versioned_data/snapshot_rows"]
        first = h5py.h5o.get_info(table.id).addr if index else table.id.get_chunk_info(1).byte_offset
        end = first + (64 if index else 4096)
    bad = {"LD_PRELOAD": str(BUILD / "test/libfake_fs.so"), "FAKE_BAD": f"{first}-{end}"}
    write(programs, large, [MANY], **bad)
    check(programs, large, MANY)


def test_compact_and_recover_do_without_it(programs, large):
    new = large.with_suffix(".new.h5")
    done = programs.cow("recover", large, new)
    assert done.returncode == 0, done.stdout + done.stderr
    check(programs, new, MANY - 1)
    done = programs.cow("gc", "--compact", large)
    assert done.returncode == 0, done.stderr
    check(programs, large, MANY - 1)
    write(programs, large, [MANY])
    assert noted(large)[0] > 1024
    check(programs, large, MANY)


def test_one_program_makes_very_many(programs, large):
    """And amends what it has flushed."""
    code = """
f = h5py.File(sys.argv[1], 'r+', libver=('earliest', 'v110'))
for k in range(700, 1300):
    f['x'][3] = k
    if k % 250 == 0:
        f['rare'][5] = k
    f.flush()
f.close()
"""
    done = programs.connector(sys.executable, "-c", programs.code(code), large, options="sync=off;commit=flush")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    check(programs, large, 1299)
    done = programs.connector(sys.executable, "-c", programs.code(code), large, options="sync=off")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    programs.verified(large)
    assert len(json.loads(programs.cow("log", "--json", large).stdout)) == 1301
