#!/usr/bin/env python3
"""Files of today for the tests of tomorrow: test_yesterday.py opens what this has made, and nothing ever changes it again.

usage: HDF5_PLUGIN_PATH=FOLDER [H5COW_OPTIONS=OPTIONS] make.py TARGET

The plugin in FOLDER writes the files of one format into TARGET, one set for each format and state that was released:
  all.h5       six versions of objects of many kinds
  killed.h5    the same after three versions, and a writer that was killed after a flush in the fourth
  listing.json what each version holds: read from files that native HDF5 wrote with the same calls, not from ours
What is in format-2 to format-6 was made with H5COW_OPTIONS=pieces=16: the chunks here are smaller than those that are cut otherwise.
The group `many`, whose versions are copied, is in format-5 and later ones; `rows`, whose views need parts, in format-6.
Run it in Debian 13's h5py (./dev exec), so that the files are of the oldest HDF5 that is supported.
"""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import h5py
import numpy as np

VERSIONS = 6


def plain(value):
    """A value as JSON has it; references by where they lead."""
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value]
    if isinstance(value, np.void) and value.dtype.names:
        return [plain(value[name]) for name in value.dtype.names]
    if isinstance(value, (bytes, np.void)):
        return bytes(value).hex()
    return value.item() if isinstance(value, np.generic) else value


def values(f, kind, got):
    if h5py.check_ref_dtype(kind) is h5py.Reference:
        refs = np.asarray(got, dtype=object).reshape(-1)
        return [f[r].name if r else None for r in refs]
    if kind.hasobject:
        return plain(np.asarray(got, dtype=object).reshape(-1))
    data = np.ascontiguousarray(got)
    return data.tolist() if data.size < 20 and data.dtype.names is None else hashlib.sha256(data.tobytes()).hexdigest()


def described(f, item):
    told = {"attributes": {name: [str(item.attrs.get_id(name).dtype), list(item.attrs.get_id(name).shape),
                                  values(f, item.attrs.get_id(name).dtype, item.attrs[name])]
                           for name in sorted(item.attrs)}}
    if isinstance(item, h5py.Dataset):
        told.update(type=str(item.dtype), shape=None if item.shape is None else list(item.shape),
                    maxshape=None if item.shape is None else list(item.maxshape),
                    values=None if item.shape is None else values(f, item.dtype, item[()]))
    elif isinstance(item, h5py.Datatype):
        told.update(type=str(item.dtype))
    return told


def listing(f):
    """Everything below the root of F: links by their kinds, objects once, by their first name."""
    met, told = {}, {}

    def look(item, path):
        token = h5py.h5o.get_info(item.id).addr
        if token in met:
            told[path or "/"] = {"same": met[token]}
            return
        met[token] = path or "/"
        told[path or "/"] = described(f, item)
        if not isinstance(item, h5py.Group):
            return
        for name in sorted(item):
            link = item.get(name, getlink=True)
            if name == "_versioned_data":
                continue
            if isinstance(link, h5py.HardLink):
                look(item[name], f"{path}/{name}")
            else:
                told[f"{path}/{name}"] = {"link": type(link).__name__, "to": link.path}

    look(f["/"], "")
    return told


def change(f, version):
    random = np.random.default_rng(version)
    if version == 1:
        f.create_dataset("grid", data=random.integers(0, 9, (60, 40)), chunks=(16, 8), maxshape=(None, 40), compression="gzip",
                         shuffle=True, fillvalue=7)
        f.create_dataset("line", data=random.random(3000), fletcher32=True)
        f.create_dataset("words", data=[b"a", b"longer " * 9, b""] * 30, dtype=h5py.string_dtype(), chunks=(32,), maxshape=(None,))
        f.create_dataset("lists", (40,), dtype=h5py.vlen_dtype("<i4"), chunks=(8,))
        f["lists"][3] = [1, 2, 3]
        f.create_dataset("few", data=[1, 2, 3])
        f.create_dataset("none", dtype="f4", data=h5py.Empty("f4"))
        f.create_dataset("records", data=np.zeros(500, [("at", "<i8"), ("what", "S6"), ("where", "<f4", (3,))]), chunks=(100,))
        f.create_group("group/deeper", track_order=True)["leaf"] = np.arange(2000)
        f["type"] = np.dtype("<i2")
        f.create_dataset("of type", (1000,), dtype=f["type"], chunks=(500,))
        f["again"] = f["group/deeper"]
        f["soft"] = h5py.SoftLink("/group/deeper/leaf")
        f["elsewhere"] = h5py.ExternalLink("other.h5", "/thing")
        f["refs"] = np.array([f["grid"].ref, f["group"].ref, h5py.Reference()], dtype=h5py.ref_dtype)
        f.attrs["title"] = "first"
        f["grid"].attrs["units"] = np.arange(4.0)
        f["group"].attrs["words"] = np.array(["x", "yy"], dtype=h5py.string_dtype())
        for k in range(50):
            f[f"many/{k}"] = np.arange(k, 600 + k) if k % 7 == 1 else k
        for k in range(60):
            f.create_dataset(f"rows/{k}", data=np.arange(4800) % 100, dtype="u1", chunks=(1200,))
    else:
        for k in range(60):
            f[f"rows/{k}"][version * 700] = 200 + version
        f[f"many/{version}"][...] = version
        f[f"many/made in {version}"] = version
        f["grid"].resize(60 + 10 * version, 0)
        f["grid"][version : version + 20, ::3] = version
        if "line" in f:
            f["line"][version % 10] = -version
        f["words"].resize(90 + version, 0)
        f["words"][-1] = f"version {version}"
        f["lists"][version] = np.arange(version * 10)
        f["few" if "few" in f else "group/few"][0] = version
        f["records"][version] = (version, b"word", (1, 2, 3))
        f["of type"][version::7] = version
        f.attrs["title"] = f"version {version}"
        f["group"].create_dataset(f"made in {version}", data=np.full(900, version))
    if version == 3:
        del f["line"]
        f.move("few", "group/few")
        f["grid"].attrs["many"] = np.arange(3000)
        f["refs"][2] = f["group/deeper/leaf"].ref
    if version == 4:
        f.create_dataset("line", data=random.random(10))
        f.copy("grid", "copy of grid")
        f["refs"][2] = f["grid"].ref
        del f["group/deeper/leaf"]
    if version == 5:
        f["copy of grid"][0] = 5
        f["grid"].resize((20, 40))
        del f["again"]


def run(words, connector):
    env = {**os.environ, "HDF5_VOL_CONNECTOR": f"h5cow {os.environ.get('H5COW_OPTIONS', '')}".strip()} if connector else {
        name: value for name, value in os.environ.items() if not name.startswith("HDF5_")}
    return subprocess.run([sys.executable, __file__, *map(str, words)], env=env).returncode


def go(name, version, killed):
    h5py.get_config().track_order = False
    with h5py.File(name, "w" if version == 1 else "r+", libver="latest") as f:
        change(f, version)
        if killed:
            f.flush()
            f["grid"][:] = 99  # nobody shall see this
            os.kill(os.getpid(), signal.SIGKILL)


def main(target):
    target.mkdir(parents=True)
    told = {}
    for version in range(1, VERSIONS + 1):
        native = target / "native.h5"
        assert run(["--go", native, version, 0], False) == 0
        with h5py.File(native) as f:
            told[version] = listing(f)
        assert run(["--go", target / "all.h5", version, 0], True) == 0
        if version <= 4:
            assert run(["--go", target / "killed.h5", version, int(version == 4)], True) == (-signal.SIGKILL if version == 4 else 0)
    native.unlink()
    (target / "listing.json").write_text(json.dumps(told, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "--go":
        go(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")
    else:
        main(pathlib.Path(sys.argv[1]))
