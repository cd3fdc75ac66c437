"""h5cow doctor: why history is kept, or is not, for a file and in an environment. And what other file drivers do that the
environment chooses (HDF5_DRIVER), or Python programs.
"""

import json
import os
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
import test_accidents
from conftest import BUILD, H5COW, PLUGINS, STOCK, h5cow
from waiting import WAITING
from sessions import Session, connector_env, stock_env

FAKE = BUILD / "test/libfake_fs.so"

MAKE = """
for n in range(3):
    with h5py.File(sys.argv[1], 'a' if n else 'w') as f:
        f['x%d' % n] = np.arange(5000) + n
"""


@pytest.fixture
def made(programs, tmp_path):
    path = tmp_path / "run.h5"
    done = programs.python(MAKE, path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def start():
    sessions = []

    def start(kind="connector", env={}):
        envs = {"connector": connector_env(STOCK, PLUGINS, ""), "stock": stock_env(STOCK)}
        sessions.append(Session({**envs[kind], **env}))
        return sessions[-1]

    yield start
    for session in sessions:
        session.__exit__()


def doctor(*words, code, **env):
    """What it answers as JSON; the text, which is printed without --json, has the same problems."""
    answers = []
    for more in ([], ["--json"]):
        command = [H5COW, "doctor", *more, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, env={**STOCK, **env}, timeout=WAITING)
        assert done.returncode == code and done.stderr == "", (done.returncode, done.stdout, done.stderr)
        answers.append(done.stdout)
    told = json.loads(answers[1])
    assert bool(told["problems"]) == (code == 1) == ("All is well." not in answers[0])
    assert [line for line in answers[0].splitlines() if line.startswith("Problem: ")] == [
        f"Problem: {problem}." for problem in told["problems"]
    ]
    return told, answers[0]


def told_by(command, path):
    done = subprocess.run([*command, "doctor", "--json", str(path)], capture_output=True, text=True, env=STOCK, timeout=WAITING)
    assert done.returncode == 1 and done.stderr == "", done.stdout + done.stderr
    return json.loads(done.stdout)


def problem(told, *words):
    assert any(all(word in text for word in words) for text in told["problems"]), (words, told["problems"])


# ---- the environment -------------------------------------------------------------------------------------------------


def test_all_is_well(made):
    told, text = doctor(made, code=0)
    assert told["plugin"]["loads"] and told["h5cow"] in text and told["file"]["history"]
    assert told["libhdf5"]["version"] in text and "gzip" in told["filters"]
    assert told["file"]["versions"] == ["1", "2", "3"] and "3 versions, the newest is '3'" in text
    assert told["file"]["locks"] == "work" and told["file"]["may_write"] and told["file"]["journal"]
    assert told["file"]["writer"] is None and told["file"]["pending"] == 0
    assert not told["programs_use_h5cow"] and "HDF5_VOL_CONNECTOR=h5cow" in text


def test_options_are_told_as_they_are_understood():
    folder = PLUGINS.split(":")[0]
    told, text = doctor(code=0, HDF5_VOL_CONNECTOR="h5cow chunk=64K; compress=gzip", HDF5_PLUGIN_PATH=folder)
    assert "chunk=65536" in told["options"] and "compress=gzip:4:byte" in told["options"] and told["options"] in text
    assert told["programs_use_h5cow"] and os.path.samefile(told["programs_find"], folder)
    told, _ = doctor(code=1, HDF5_VOL_CONNECTOR="h5cow chunk=64X", HDF5_PLUGIN_PATH=folder)
    problem(told, "chunk=64X", "4K to 1G")
    assert told["options"] is None


def test_what_keeps_programs_from_history_is_told():
    problem(doctor(code=1, HDF5_VOL_CONNECTOR="h5cow", HDF5_PLUGIN_PATH="/nowhere")[0], "no folder of HDF5_PLUGIN_PATH")
    problem(doctor(code=1, HDF5_VOL_CONNECTOR="other x=1")[0], "another connector")
    problem(doctor(code=1, HDF5_VOL_CONNECTOR="h5cow2")[0], "another connector")
    told, _ = doctor(code=1, HDF5_DRIVER="core", HDF5_PLUGIN_PRELOAD="::")
    problem(told, "HDF5_DRIVER=core", "unset it")
    problem(told, "HDF5_PLUGIN_PRELOAD=::", "unset it")
    assert told["environment"] == {"HDF5_DRIVER": "core", "HDF5_PLUGIN_PRELOAD": "::"}


# ---- files -----------------------------------------------------------------------------------------------------------


def test_why_a_file_has_no_history(programs, tmp_path):
    plain = tmp_path / "plain.h5"
    h5py.File(plain, "w").close()
    told, _ = doctor(plain, code=1)
    problem(told, "plain.h5", "without h5cow", f"h5cow import {plain}")
    assert told["file"]["history"] is False and told["file"]["opens"] is True
    done = subprocess.run([H5COW, "import", plain], capture_output=True, text=True, env={**STOCK, "HDF5_PLUGIN_PATH": PLUGINS})
    assert done.returncode == 0, done.stderr
    assert doctor(plain, code=0)[0]["file"]["versions"] == ["1"]
    with h5py.File(tmp_path / "foreign.h5", "w") as f:
        f.create_group("_versioned_data")
    problem(doctor(tmp_path / "foreign.h5", code=1)[0], "versioned-hdf5 uses that name")


@pytest.mark.parametrize("driver, names, options", [
    ("family", ["parts%d.h5", "parts0.h5"], "memb_size=4096"),
    ("split", ["parts", "parts-m.h5"], ""),
])  # fmt: skip
def test_files_of_other_drivers_are_known(programs, tmp_path, driver, names, options):
    code = f"""
    with h5py.File(sys.argv[1], 'w', driver={driver!r}, {options}) as f:
        f['x'] = np.arange(4000)
    with h5py.File(sys.argv[1], 'r', driver={driver!r}, {options}) as f:
        assert f['x'][7] == 7
    """
    done = programs.python(code, tmp_path / names[0])
    assert done.returncode == 0, done.stderr
    for name in names:
        problem(doctor(tmp_path / name, code=1)[0], name, driver, "no history")


def test_what_is_no_file(tmp_path):
    (tmp_path / "text.h5").write_text("only a text\n" * 50)
    (tmp_path / "empty.h5").touch()
    problem(doctor(tmp_path / "text.h5", code=1)[0], "text.h5", "not an HDF5 file")
    problem(doctor(tmp_path / "empty.h5", code=1)[0], "empty.h5", "empty")
    problem(doctor(tmp_path / "missing.h5", code=1)[0], "there is no file", "missing.h5")
    problem(doctor(tmp_path, code=1)[0], "not a file")


def test_a_damaged_file(made, tmp_path):
    size = made.stat().st_size
    os.truncate(made, size // 2)
    problem(doctor(made, code=1)[0], "run.h5", "damaged", "h5cow recover")
    plain = tmp_path / "plain.h5"
    with h5py.File(plain, "w") as f:
        f["x"] = np.arange(5000)
    os.truncate(plain, 3000)
    told, _ = doctor(plain, code=1)
    problem(told, "plain.h5", "truncated")
    assert told["file"]["opens"] is False


def test_who_is_writing_and_what_is_pending(made, start):
    writer = start()
    writer.do(f"f = h5py.File({str(made)!r}, 'r+'); f.attrs['a'] = 1; f.flush()")
    told, text = doctor(made, code=0)
    assert f"process {writer.process.pid}" in told["file"]["writer"] and told["file"]["writer"] in text
    assert told["file"]["versions"] == ["1", "2", "3", "4"] and "not finished by a close" in text
    writer.do("f.close()")
    assert doctor(made, code=0)[0]["file"]["writer"] is None
    reader = start("stock")
    reader.do(f"f = h5py.File({str(made)!r}, 'r')")
    writer.do(f"f = h5py.File({str(made)!r}, 'r+'); f.attrs['a'] = 2; f.close()")
    told, text = doctor(made, code=0)
    assert told["file"]["pending"] >= 1 and f"process {reader.process.pid} (" in text
    reader.do("f.close()")
    writer.do(f"f = h5py.File({str(made)!r}, 'r+'); f.attrs['a'] = 3; f.close()")
    assert doctor(made, code=0)[0]["file"]["pending"] == 0


def test_a_creation_that_was_never_committed(start, tmp_path):
    path = tmp_path / "new.h5"
    writer = start()
    writer.do(f"f = h5py.File({str(path)!r}, 'w'); f['x'] = np.arange(100000); f.id")
    told, _ = doctor(path, code=1)
    assert told["file"].get("unfinished", True)
    writer.kill()
    told, _ = doctor(path, code=1)
    problem(told, "new.h5", "empty" if path.stat().st_size == 0 else "holds nothing")


def test_a_history_without_journal(programs, made, tmp_path):
    copy = tmp_path / "copy.h5"
    done = programs.stock("h5repack", made, copy)
    assert done.returncode == 0, done.stderr
    problem(doctor(copy, code=1)[0], "copy.h5", "no journal", "h5repack", f"h5cow import {copy} OUT")
    h5cow("import", copy, tmp_path / "new.h5")
    h5cow("verify", tmp_path / "new.h5")


def test_verify_says_first_that_another_program_has_rewritten_the_file(programs, made, tmp_path):
    copy = tmp_path / "copy.h5"
    assert programs.stock("h5repack", made, copy).returncode == 0
    for verb in "verify", "recover":
        told = h5cow(verb, copy, code=1).splitlines()
        said = [n for n, line in enumerate(told) if "has a history but no journal" in line and f"h5cow import {copy} OUT" in line]
        assert len(said) == 1 and said[0] < min(n for n, line in enumerate(told) if "damaged place" in line), told
    assert "h5repack" in json.loads(h5cow("verify", "--json", copy, code=1))["rewritten"]
    assert json.loads(h5cow("verify", "--json", made))["rewritten"] is None


def test_file_systems_and_their_locks(made):
    told, text = doctor(made, code=0, LD_PRELOAD=str(FAKE), FAKE_FS="6969")
    assert told["file"]["file_system"] == "NFS" and not told["file"]["locks_between_machines"] and "NFS" in text
    told, _ = doctor(made, code=1, LD_PRELOAD=str(FAKE), FAKE_NO_LOCKS="1")
    problem(told, "locks do not work", "HDF5_USE_FILE_LOCKING=FALSE")
    doctor(made, code=0, LD_PRELOAD=str(FAKE), FAKE_NO_LOCKS="1", HDF5_USE_FILE_LOCKING="FALSE")


def test_a_file_that_this_user_may_not_write(made):
    if os.geteuid() == 0 and not test_accidents.SETPRIV:
        pytest.skip("root's privileges cannot be dropped here (setpriv)")
    made.chmod(0o444)
    told = told_by([*test_accidents.NOBODY, H5COW], made)
    problem(told, "run.h5", "cannot be written here", "Permission denied")
    assert told["file"]["may_write"] is False and told["file"]["versions"] == ["1", "2", "3"]


def test_a_file_on_a_read_only_mount(made, tmp_path):
    view = tmp_path / "view"
    view.mkdir()
    bind = [[str(tmp_path), str(view), None, test_accidents.BIND]]
    bind.append([None, str(view), None, test_accidents.BIND | test_accidents.REMOUNT | test_accidents.READ_ONLY])
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    for propagation in "private", "unchanged":  # in a chroot, whose root is no mount point, ./dev made them private
        mounted = ["unshare", "--mount", *user, "--propagation", propagation]
        if subprocess.run([*mounted, "true"], capture_output=True).returncode == 0:
            break
    mounted += [sys.executable, "-c", test_accidents.MOUNT, json.dumps(bind)]
    if subprocess.run([*mounted, "true"], capture_output=True).returncode != 0:
        pytest.skip("no read-only mount can be made here")
    told = told_by([*mounted, H5COW], view / "run.h5")
    problem(told, "run.h5", "cannot be written here", "mounted read-only")
    assert told["file"]["may_write"] is False and told["file"]["versions"] == ["1", "2", "3"]


# ---- drivers that the environment or a Python program chooses --------------------------------------------------------

OPEN = "f = h5py.File(sys.argv[1], sys.argv[2], **eval(sys.argv[3])); print(list(f))"


@pytest.mark.parametrize("env, driver", [({"HDF5_DRIVER": "stdio"}, {}), ({}, {"driver": "stdio"}), ({}, {"driver": "core"}),
                                         ({"HDF5_DRIVER": "core"}, {})])  # fmt: skip
def test_drivers_that_do_what_the_default_one_does_keep_the_history(programs, made, sha256, env, driver):
    def run(code, path=made):
        words = [f"{k}={v}" for k, v in env.items()]
        done = programs.connector("env", *words, sys.executable, "-c", programs.code(code, errors=False), path, repr(driver))
        return done

    for number, mode in enumerate(("r+", "a"), 4):
        done = run(f"with h5py.File(sys.argv[1], {mode!r}, **eval(sys.argv[2])) as f: f['x0'][0] = -{number}; print(f.driver)")
        assert done.returncode == 0 and done.stdout.strip() == (env.get("HDF5_DRIVER") or driver["driver"]), done.stderr
    done = run("print([int(h5py.File(sys.argv[1] + v, 'r', **eval(sys.argv[2]))['x0'][0]) for v in ('@3', '@4', '@5', '')])")
    assert done.returncode == 0 and done.stdout.strip().endswith(", -4, -5, -5]"), (done.stdout, done.stderr)
    programs.verified(made)
    done = run("h5py.File(sys.argv[1], 'r+', **eval(sys.argv[2]))", f"{made}@2")
    assert done.returncode == 1 and "version is never changed" in done.stderr, done.stderr
    if env:
        problem(doctor(made, code=1, **env)[0], f"HDF5_DRIVER={env['HDF5_DRIVER']}", "some drivers only")
    before = sha256(made)
    done = run("h5py.File(sys.argv[1], 'w', **eval(sys.argv[2]))")  # the old file is kept beside
    assert done.returncode == 0, done.stderr
    assert sha256(f"{made}.h5cow-old-1") == before


def test_core_without_backing_store_works_in_memory(programs, made, sha256):
    before = sha256(made)
    code = """
    import io
    with h5py.File(sys.argv[1], 'r+', driver='core', backing_store=False) as f:
        f['x0'][0] = -77
        f['new'] = np.arange(5)
        image = f.id.get_file_image()
    for mode in ('r', 'r+'):
        data = io.BytesIO(image)
        with h5py.File(data, mode) as f:
            assert f['x0'][0] == -77 and 'new' in f and '_versioned_data' not in f
            if mode == 'r+':
                f['x0'][0] = -78
                f['more'] = np.arange(5000)
        with h5py.File(data, 'r') as f:
            assert f['x0'][0] == (-78 if mode == 'r+' else -77)
    with h5py.File(sys.argv[1], 'r') as f:
        assert f['x0'][0] != -77 and 'new' not in f
    """
    done = programs.python(code, made)
    assert done.returncode == 0, done.stderr
    assert sha256(made) == before


def test_a_refusal_says_what_where_and_what_to_do(programs, made, sha256):
    """In h5py as well, whose exception has the lowest record of HDF5's stack."""
    before = sha256(made)
    other = made.with_name("part0.h5")
    shutil.copy(made, other)
    done = programs.python("h5py.File(sys.argv[1], 'r+', driver='family', memb_size=2**20)", made.with_name("part%d.h5"), errors=False)
    told = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and told.startswith("OSError"), done.stderr
    assert all(word in told for word in (str(other), "history", "driver family", "sec2", f"h5cow export {other}")), told
    done = programs.python("h5py.File(open(sys.argv[1], 'r+b'), 'r+')", made, errors=False)
    told = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and all(word in told for word in ("OSError", "history", "sec2")), done.stderr
    assert sha256(made) == sha256(other) == before


def test_netcdf_with_another_driver_in_the_environment(programs, tmp_path):
    path = tmp_path / "run.nc"
    code = "import netCDF4, sys; d = netCDF4.Dataset(sys.argv[1], sys.argv[2]); d.createDimension(sys.argv[2], 3); d.close()"
    for mode, env in (("w", "X=x"), ("a", "HDF5_DRIVER=stdio")):
        done = programs.connector("env", env, sys.executable, "-c", code, path, mode)
        assert done.returncode == 0, done.stderr
    code = "import netCDF4, sys; print(sorted(netCDF4.Dataset(sys.argv[1]).dimensions))"
    assert programs.connector(sys.executable, "-c", code, path).stdout.strip() == "['a', 'w']"
    assert len(json.loads(programs.cow("log", "--json", path).stdout)) == 2
    programs.verified(path)
