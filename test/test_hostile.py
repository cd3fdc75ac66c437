"""Files in which somebody replaced what is under /_versioned_data: test/hostile.py says what is done with them.

Here a sample (H5COW_HOSTILE_COUNT makes it larger), and what was found by hand. All of it: test/hostile.py --all.
"""

import os
import resource
import shutil
import subprocess
import sys

import h5py
import hostile as harness
import numpy as np
import pytest
from conftest import BUILD, H5COW, PLUGINS, STOCK, TEST, unfence
from seeds import seed

MEMORY = 1 << 30


def hostile(*words):
    command = [sys.executable, str(TEST / "hostile.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return done.stdout


def test_a_sample_of_hostile_files_neither_crashes_nor_takes_memory():
    hostile("--seed", str(seed()), "--count", os.environ.get("H5COW_HOSTILE_COUNT", "60"))


def test_there_are_thousands_of_hostile_files():
    assert len(hostile("--list").splitlines()) >= 2000


FOUND_ONCE = [
    "_versioned_data/@format: u4 (1000,)",
    "_versioned_data/@format: text ()",
    "_versioned_data/@absolute_links: 2^20 values",
    "snapshots: grown to 40000000 rows",
    "log: grown to 40000000 rows",
    "log: 2,000 rows with one text of a mebibyte",
    "log: text 1 claims 4294967295 bytes",
    "incomplete: no rows",
    "incomplete: 20,000 rows with one text of 200 KiB",
    "raw/0: dataset of f8",
    "/_versioned_data/versions/1/small: 2^30 zeros, packed",
    "/_versioned_data/versions/1/small: four elements in a packed chunk",
    "/_versioned_data/versions/1/small: 4,096 texts that are one mebibyte",
    "raw/0: chunks of 2^24 bytes, packed",
    "in /_versioned_data/versions/1: 1,000 groups in each other",
    "in /_versioned_data/versions/1: a hard link to the history",
    "versions/1: soft link to itself",
    "versions/1: external link to itself",
]


def test_what_was_found_once():
    seen = hostile(*[word for case in FOUND_ONCE for word in ("--only", case)])
    assert f": {len(FOUND_ONCE)} of " in seen and "stock HDF5 does not make it: " not in seen.replace(
        "stock HDF5 does not make it: raw/0: chunks of", ""
    )


def test_some_of_the_forged_chunks_and_runs():
    hostile("--seed", str(seed()), "--count", "12", "--only", "composed: ", "--only", "leaf: ", "--only", "slot of the ", "--only", "contents of the ",
            "--only", "pool of pieces of ", "--only", "runs: ")


@pytest.fixture(scope="module")
def forged(tmp_path_factory):
    """CASE -> a file of hostile.py in which it was made."""
    run = harness.Run(tmp_path_factory.mktemp("forged"), BUILD / "cli/h5cow", PLUGINS, False, None)
    run.make_base()
    cases = harness.Cases(run.base, run.gap)

    def make(case):
        path = shutil.copy(run.base, run.folder / "forged.h5")
        with h5py.File(path, "r+", libver=("v110", "latest")) as f:
            cases.all[case](f)
        harness.fence_on(path, run.fence)
        return path

    yield make
    run.close()


@pytest.mark.parametrize(
    "case, dataset, words",
    [
        ("composed: cut: base is slot 1000000", "cut", "/cut: the chunk at (0, 0): pool 10 has no slot 1000000"),
        ("composed: cut: a piece in slot 1000000", "cut", "/cut: piece 3 of the chunk at (0, 0): pool 13 has no slot 1000000"),
        ("contents of the piece of packed_cut: zeros", "packed_cut", "/packed_cut: piece 0 of the chunk at (0) is not what was written"),
        ("leaf: texts: a composed chunk", "texts", "/texts: the chunk at (0) is said to be composed of pieces"),
    ],
)
def test_an_error_says_which_chunk_of_which_dataset_is_damaged(programs, forged, case, dataset, words):
    path = forged(case)
    done = programs.python(f"h5py.File(sys.argv[1], 'r')[{dataset!r}][()]", path)
    assert done.returncode == 1 and f"{path}: {words}" in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["group/x", "many", "texts", "packed_cut"])
def test_recover_doubts_what_a_tree_of_too_few_chunks_has_for_holes(programs, forged, tmp_path, name):
    """All but one or two chunks of a forged leaf, whose checksum is right, are holes; the views still show what there was."""
    path, new = forged(f"leaf: {name}: a composed chunk" if name != "packed_cut" else "leaf: packed_cut: a composed chunk outside the extent"), tmp_path / "new.h5"
    with h5py.File(path) as f:
        right = f[name][()]  # without the connector
    done = programs.cow("recover", path, new)
    with h5py.File(new) as f:
        same = (f[name][()] == right).all()
    assert done.returncode in (0, 1) and (same or f"of /{name}, from" in done.stdout), done.stdout + done.stderr


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))


@pytest.fixture
def plain(tmp_path):
    """A file without a history, but with a group of that name."""

    def make(value):
        path = tmp_path / "plain.h5"
        with h5py.File(path, "w") as f:
            f["x"] = np.arange(10)
            if value is not None:
                f.create_group("_versioned_data").attrs["format"] = value
        return path

    return make


@pytest.mark.parametrize("value", [np.full(1000, 0x41414141, "u4"), "text", 1.5, np.float64(1), np.array([1], "u4")], ids=repr)
@pytest.mark.parametrize("verb", ["log", "stat", "verify", "doctor"])
def test_a_format_of_another_type_or_extent_is_an_error_of_the_command(plain, value, verb):
    done = subprocess.run([H5COW, verb, plain(value)], env=STOCK, capture_output=True, text=True, preexec_fn=limited)
    assert done.returncode in (1, 2), done.stderr
    assert "'format' is not the one number that it should be" in done.stdout + done.stderr


@pytest.mark.parametrize("value", [np.full(1000, 0x41414141, "u4"), "text", 1.5], ids=repr)
def test_a_format_of_another_type_or_extent_is_an_error_of_hdf5(programs, plain, value):
    done = programs.python("h5py.File(sys.argv[1], 'r')", plain(value))
    assert done.returncode > 0 and "'format' is not the one number" in done.stderr


def test_a_group_of_that_name_without_format_or_behind_a_link_is_somebody_elses(programs, plain, tmp_path):
    path = plain(None)
    with h5py.File(path, "r+") as f:
        f.create_group("theirs").attrs["format"] = np.uint32(1)
        f["_versioned_data"] = h5py.SoftLink("/theirs")
    done = programs.python("print(h5py.File(sys.argv[1], 'r')['x'][3])", path)
    assert done.stdout.strip() == "3", done.stderr


def test_rows_that_were_never_stored_are_damage_that_says_what_to_do(programs, tmp_path):
    path = tmp_path / "sparse.h5"
    programs.python("f = h5py.File(sys.argv[1], 'w'); f['x'] = np.arange(5000)", path)
    unfence(path)
    with h5py.File(path, "r+") as f:
        f["_versioned_data/snapshots"].resize((40_000_000,))
    done = subprocess.run([H5COW, "verify", path], env=STOCK, capture_output=True, text=True, preexec_fn=limited)
    assert done.returncode == 1 and "claims 40000000 rows" in done.stdout and "h5cow recover" in done.stdout
    done = programs.python("h5py.File(sys.argv[1] + '@1', 'r')['x'][...]", path)
    assert done.returncode > 0 and "claims 40000000 rows" in done.stderr


def test_verify_reads_small_datasets_of_a_named_type(programs, tmp_path):
    path = tmp_path / "named.h5"
    code = "f = h5py.File(sys.argv[1], 'w'); f['t'] = np.dtype('<i4'); f.create_dataset('s', (3,), f['t'])[...] = 7"
    assert programs.python(code, path).returncode == 0
    done = subprocess.run([H5COW, "verify", path], env=STOCK, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
