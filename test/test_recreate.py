"""Creating a file over one that has a history: programs that write their output anew, each time they run."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys

import h5py
import numpy as np
import pytest
import test_import

# Two large variables that stay the same, one small that changes, and all that a re-creation must take away.
WRITE = """
    n = int(sys.argv[1])
    with h5py.File("out.h5", "w") as f:
        f["same"] = np.random.default_rng(1).random(300000)
        f.create_dataset("packed", data=np.arange(200000).reshape(400, 500), chunks=(50, 500), compression="gzip")
        f["changes"] = np.full(2000, n)
        f.attrs["run"] = n
        f["type"] = np.dtype([("x", "i4")])
        f.attrs.create("typed", np.zeros(1, dtype=[("x", "i4")])[0], dtype=f["type"])
        f.create_group(f"only in {n}/inside")["alias"] = f["changes"]
        f["reference"] = f["same"].ref
"""
# The same with a creation property that a file made by WRITE has not.
ORDERED = WRITE.replace('"w")', '"w", track_order=True)')


def versions(programs, path="out.h5"):
    done = programs.cow("log", path)
    return [line.split()[0] for line in done.stdout.splitlines()[1:]]


def run(programs, n, options="", code=WRITE, **more):
    done = programs.python(code, str(n), options=options, **more)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_ten_runs_leave_ten_readable_versions(programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sizes = []
    for n in range(1, 11):
        run(programs, n)
        sizes.append(os.path.getsize("out.h5"))
    assert versions(programs) == [str(n) for n in range(10, 0, -1)]
    programs.verified("out.h5")
    # four million bytes that did not change cost nothing; a changed chunk of 16000 bytes, and what a version costs
    assert max(b - a for a, b in zip(sizes, sizes[1:])) < 60_000, sizes
    done = programs.python("""
        for n in range(1, 11):
            with h5py.File(f"out.h5@{n}", "r") as f:
                assert sorted(f) == sorted(["same", "packed", "changes", f"only in {n}", "type", "reference"]), list(f)
                assert f.attrs["run"] == n and (f["changes"][...] == n).all()
                assert (f["same"][...] == np.random.default_rng(1).random(300000)).all()
                assert (f["packed"][...] == np.arange(200000).reshape(400, 500)).all()
                assert (f[f"only in {n}/inside/alias"][...] == n).all()
                assert f["type"].dtype == f.attrs["typed"].dtype
        with h5py.File("out.h5", "r") as f:
            assert f[f["reference"][()]].name == "/same"
            assert sorted(f.attrs) == ["run", "typed"] and "only in 9" not in f
    """)
    assert done.returncode == 0, done.stderr
    assert os.listdir() == ["out.h5"]
    # and to HDF5 without h5cow
    with h5py.File("out.h5", "r") as f:
        for n in range(1, 11):
            assert (f[f"/_versioned_data/versions/{n}/changes"][...] == n).all()


def test_ten_runs_of_nccopy(programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    netCDF4 = pytest.importorskip("netCDF4")
    for n in range(1, 11):
        with netCDF4.Dataset(f"in{n}.nc", "w", format="NETCDF3_64BIT_OFFSET") as d:
            d.createDimension("x", 200)
            d.createDimension("t", 300)
            d.createVariable("same", "f8", ("t", "x"))[:] = np.random.default_rng(2).random((300, 200))
            d.createVariable("changes", "i4", ("x",))[:] = n
            d.createVariable("x", "f4", ("x",))[:] = np.arange(200)
    sizes = []
    for n in range(1, 11):
        done = programs.connector("nccopy", "-k", "nc4", "-d", "1", f"in{n}.nc", "out.nc")
        assert done.returncode == 0, done.stderr
        sizes.append(os.path.getsize("out.nc"))
    assert versions(programs, "out.nc") == [str(n) for n in range(10, 0, -1)]
    programs.verified("out.nc")
    assert max(b - a for a, b in zip(sizes, sizes[1:])) < 60_000, sizes
    for n in range(1, 11):
        assert programs.stock("nccopy", "-k", "nc4", "-d", "1", f"in{n}.nc", "plain.nc").returncode == 0
        done = programs.connector("h5diff", "plain.nc", f"out.nc@{n}")
        assert done.returncode == 0, done.stdout + done.stderr
        dumped = programs.connector("ncdump", "out.nc", options=f"at={n}").stdout
        assert dumped.split("\n", 1)[1] == programs.stock("ncdump", "plain.nc").stdout.split("\n", 1)[1]


def test_properties_that_cannot_be_met_put_the_old_file_beside(programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(programs, 1)
    run(programs, 2, code=ORDERED)
    run(programs, 3, code=ORDERED)  # now they can
    assert sorted(os.listdir()) == ["out.h5", "out.h5.h5cow-old-1"]
    assert versions(programs) == ["2", "1"] and versions(programs, "out.h5.h5cow-old-1") == ["1"]
    run(programs, 4)
    assert sorted(os.listdir()) == ["out.h5", "out.h5.h5cow-old-1", "out.h5.h5cow-old-2"]
    for path in os.listdir():
        programs.verified(path)


def test_a_symbolic_link_stays_one(programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("store")
    run(programs, 1)
    os.rename("out.h5", "store/real.h5")
    os.symlink("store/real.h5", "out.h5")
    run(programs, 2, code=ORDERED)
    assert os.path.islink("out.h5")
    assert sorted(os.listdir("store")) == ["real.h5", "real.h5.h5cow-old-1"]
    run(programs, 3, options="truncate=discard")
    assert os.path.islink("out.h5") and versions(programs) == ["1"]


def test_a_history_without_journal_is_put_beside(programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    simple = """
        with h5py.File("out.h5", "w") as f:
            f["n"] = np.full(3000, int(sys.argv[1]))
    """
    run(programs, 1, code=simple)
    run(programs, 2, code=simple)
    assert programs.stock("h5repack", "out.h5", "repacked.h5").returncode == 0
    os.rename("repacked.h5", "out.h5")
    run(programs, 3)
    assert versions(programs) == ["1"] and versions(programs, "out.h5.h5cow-old-1") == ["2", "1"]


def test_discard_begins_anew_and_leaves_nothing_beside(programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(programs, 1)
    run(programs, 2)
    run(programs, 3, options="truncate=discard")
    assert versions(programs) == ["1"] and os.listdir() == ["out.h5"]
    programs.verified("out.h5")
    run(programs, 4, options="truncate=keep")
    assert versions(programs) == ["2", "1"]


def test_discard_without_a_commit_loses_nothing(programs, tmp_path, monkeypatch, sha256):
    monkeypatch.chdir(tmp_path)
    run(programs, 1)
    before = sha256("out.h5")
    killed = WRITE + "        import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
    done = programs.connector(sys.executable, "-c", programs.code(killed), "2", options="truncate=discard")
    assert done.returncode == -signal.SIGKILL
    assert sha256("out.h5.h5cow-old-1") == before
    # once it is flushed it is the new one
    run(programs, 3)
    flushed = WRITE + "        f.flush(); import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
    programs.connector(sys.executable, "-c", programs.code(flushed), "4", options="truncate=discard")
    assert sorted(os.listdir()) == ["out.h5", "out.h5.h5cow-old-1"]
    assert versions(programs) == ["1"]
    programs.verified("out.h5")


def test_discard_is_refused_while_others_use_the_file(programs, tmp_path, monkeypatch, sha256):
    monkeypatch.chdir(tmp_path)
    run(programs, 1)
    before = sha256("out.h5")
    hold = "f = h5py.File('out.h5', sys.argv[1]); f['same'][0]; print(flush=True); sys.stdin.read()"
    stock = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_")}
    plugins = {**stock, "HDF5_VOL_CONNECTOR": "h5cow", "HDF5_PLUGIN_PATH": os.environ.get("HDF5_PLUGIN_PATH", "")}
    for env, mode in ((plugins, "r"), (plugins, "r+"), ({**stock, "HDF5_PLUGIN_PATH": "/nowhere"}, "r")):
        holder = subprocess.Popen([sys.executable, "-c", "import h5py, sys\n" + hold, mode], env=env,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        holder.stdout.readline()
        done = programs.python(WRITE, "2", options="truncate=discard")
        assert done.returncode == 1 and os.listdir() == ["out.h5"], done.stderr
        assert ("another program is reading" if mode == "r" else "lock") in done.stderr, done.stderr
        holder.communicate(b"")
        assert sha256("out.h5") == before
    # a second opening in the same program
    done = programs.python("f = h5py.File('out.h5', 'r'); g = h5py.File('out.h5', 'w')", options="truncate=discard")
    assert done.returncode == 1 and os.listdir() == ["out.h5"]
    assert versions(programs) == ["1"]


# The program dies at each call that changes names: it is found by letting the kernel count them.
STRACE = shutil.which("strace")


@pytest.mark.skipif(STRACE is None, reason="needs strace")
@pytest.mark.parametrize(
    "options,code",
    [("", ORDERED), ("truncate=discard", WRITE), ("", WRITE)],
    ids=["put beside", "discarded", "in place"],
)
def test_a_crash_anywhere_while_creating_loses_nothing(programs, tmp_path, monkeypatch, options, code):
    monkeypatch.chdir(tmp_path)
    run(programs, 1)
    os.mkdir("kept")
    shutil.copy("out.h5", "kept/out.h5")
    died = 0
    for call in ("link", "unlink", "rename", "fsync", "fdatasync", "pwrite64"):
        for when in (1, 2, 3):
            for name in [name for name in os.listdir() if name.startswith("out.h5")]:
                os.remove(name)
            shutil.copy("kept/out.h5", "out.h5")
            done = programs.connector(
                STRACE, "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={when}",
                "-P", str(tmp_path / "out.h5"), "-P", str(tmp_path / "out.h5.h5cow-old-1"), "-P", str(tmp_path),
                sys.executable, "-c", programs.code(code), "2", options=options)
            if done.returncode == 0:
                break
            died += 1
            good = [name for name in os.listdir() if name.startswith("out.h5") and versions(programs, name)]
            assert good, (call, when, os.listdir())
            states = set()
            for name in good:
                programs.verified(name)
                for version in versions(programs, name):
                    text = programs.python(f"print(h5py.File('{name}@{version}', 'r').attrs['run'])").stdout
                    states.add(text.strip())
            assert "1" in states or (options and "2" in states), (call, when, good, states)
            run(programs, 3, options=options, code=code)  # and the next run works
            programs.verified("out.h5")
    assert died >= 3


def test_the_address_of_a_named_type_stays_its_own_when_only_an_attribute_held_it(programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(programs, 0, code="""
        with h5py.File("out.h5", "w") as f:
            f["T"] = np.dtype([("x", "i4")])
            f.create_group("g").attrs.create("typed", np.zeros(1, dtype=[("x", "i4")])[0], dtype=f["T"])
    """)
    with h5py.File("out.h5", "r") as f:
        address = h5py.h5o.get_info(f["T"].id).addr
    run(programs, 0, code="f = h5py.File('out.h5', 'r+'); del f['T']; f.close()")
    run(programs, 0, code="""
        f = h5py.File("out.h5", "r+")
        del f["g"].attrs["typed"]
        for i in range(50):
            f.create_group(str(i))  # HDF5 makes it where there is room
        f.close()
    """)
    programs.verified("out.h5")
    with h5py.File("out.h5", "r") as f:  # references of old versions lead there
        lib = test_import.library()
        opened = lib.H5Oopen_by_addr(test_import.hid(f.id.id), ctypes.c_uint64(address))
        assert opened >= 0 and lib.H5Iget_type(test_import.hid(opened)) == 3  # H5I_DATATYPE
        lib.H5Oclose(test_import.hid(opened))
    run(programs, 0, code="f = h5py.File('out.h5@1', 'r'); assert f['T'].dtype == f['g'].attrs['typed'].dtype")


def test_a_link_of_the_root_to_itself_goes_without_harm(programs, tmp_path, monkeypatch):
    """With the last one HDF5 1.14.5 takes the count of links out of a header that it is changing: wherever that lies."""
    monkeypatch.chdir(tmp_path)
    run(programs, 0, code="""
        for attributes in range(9):
            for length in range(0, 40, 3):
                name = f"{attributes}-{length}.h5"
                with h5py.File(name, "w", libver=("v110", "latest")) as f:
                    for i in range(attributes):
                        f.attrs[f"a{i}"] = np.arange(length)
                with h5py.File(name, "r+") as f:
                    for i in range(3):
                        f[f"s{i}"] = h5py.SoftLink("/" + "x" * length)
                    f["self"] = f["/"]
                    for i in range(attributes - 2):
                        del f.attrs[f"a{i}"]
                with h5py.File(name, "w", libver=("v110", "latest")) as f:
                    f["new"] = 1
    """)
    assert not list(tmp_path.glob("*.h5cow-old-*"))
    for file in tmp_path.glob("*.h5"):
        programs.verified(file)
        with h5py.File(file, "r") as f:
            assert set(f["_versioned_data/versions"]) == {"1", "2", "3"}
            assert set(f) == {"_versioned_data", "new"} and h5py.h5o.get_info(f.id).rc == 1


@pytest.mark.skipif(not shutil.which("nccopy"), reason="no nccopy")
def test_a_result_that_was_written_elsewhere_is_copied_into_the_file(programs, tmp_path, monkeypatch):
    """What docs/promises.md advises for programs that write a new file and rename it."""
    monkeypatch.chdir(tmp_path)
    code = """
    import netCDF4
    with netCDF4.Dataset(sys.argv[1], "w") as d:
        d.createDimension("x", 5000)
        d.createVariable("v", "f4", ("x",))[:] = np.arange(5000) + int(sys.argv[2])
    """
    for n in range(1, 4):
        name = "run.nc" if n == 1 else f"new{n}.nc"
        done = programs.python(code, name, str(n))
        assert done.returncode == 0, done.stderr
        if n > 1:
            done = programs.connector("nccopy", name, "run.nc")
            assert done.returncode == 0, done.stderr
    assert versions(programs, "run.nc") == ["3", "2", "1"] and not os.path.exists("run.nc.h5cow-old-1")
    programs.verified("run.nc")
    for n in range(1, 4):
        done = programs.python("print(int(h5py.File(sys.argv[1], 'r')['v'][0]))", f"run.nc@{n}")
        assert done.stdout.strip() == str(n), done.stderr
