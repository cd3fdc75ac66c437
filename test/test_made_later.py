"""Tables that a file gets when they are first needed, in a session of several commits: each goes on with what the one before has made."""

import json

import h5py
import numpy as np

FIRST = """
with h5py.File(sys.argv[1], "w") as f:
    f.create_dataset("small", data=np.arange(500))
    f.create_dataset("other", data=np.arange(3000), chunks=(1000,))
"""
COMMITS = """
with h5py.File(sys.argv[1], "r+") as f:
    f["small"].attrs["x"] = 1
    for n in range(4):
        f["other"][n] = 7000 + n
        f.attrs["n"] = n
        f.flush()
"""


def test_what_versions_lack(programs, tmp_path):
    """The elements of a small dataset in the head are damaged."""
    path = tmp_path / "a.h5"
    programs.python(FIRST, path)
    with h5py.File(path, "r") as f:
        at = f["small"].id.get_offset()
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    for session in (1, 2):
        done = programs.python(COMMITS, path)
        assert done.returncode == 0 and "no version" not in done.stderr, done.stderr
        versions = json.loads(programs.cow("log", "--json", path).stdout)
        assert [len(v["incomplete"]) for v in sorted(versions, key=lambda v: v["number"])] == [0] + [1] * session
        with h5py.File(path, "r") as f:
            newest = f[f"_versioned_data/versions/{session + 1}"]
            assert newest.attrs["n"] == 3 and "small" not in newest
            assert newest["other"][:].tolist() == [7000, 7001, 7002, 7003, *range(4, 3000)]


MANY = """
with h5py.File(sys.argv[1], sys.argv[2]) as f:
    if sys.argv[2] == "w":
        f.create_dataset("one", (1,))
    else:
        for n in range(3):
            f.create_dataset(f"d{n}", data=np.arange(160_000, dtype="i8") // 8 + 30_000 * n, chunks=(8,))
            f.flush()
            f.create_dataset(f"again{n}", data=f["d0"][...], chunks=(8,))
            f.flush()
"""


def test_what_finds_equal_chunks(programs, tmp_path):
    path = tmp_path / "a.h5"
    for how in "wa":
        done = programs.python(MANY, path, how, options="memory=4M")
        assert done.returncode == 0 and done.stderr == "", done.stderr
    programs.verified(path)
    with h5py.File(path, "r") as f:
        assert sum(map(len, f["_versioned_data/slots"].values())) < 60_000 + 2_000  # each once
        for n in range(3):
            assert np.array_equal(f[f"_versioned_data/versions/2/d{n}"], np.arange(160_000) // 8 + 30_000 * n)
