"""Protected files: nobody but programs with h5cow can write them, so none without can empty them. As a user who is not root, whom
permissions keep from nothing. docs/promises.md, "Protection"."""

import errno
import json
import os
import pathlib
import random
import shutil
import stat
import subprocess
import sys
import tempfile
import time

import pytest
from conftest import BUILD, H5COW, PLUGINS, STOCK
from sessions import Refused, Session
from waiting import WAITING

USER = 65534
WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class User:
    """Runs programs as a user without privileges, in a folder of his own, with a plugin and a command that he can read."""

    def __init__(self, folder):
        self.folder = folder
        self.prefix = []
        if os.geteuid() == 0:
            if shutil.which("setpriv") is None:
                pytest.skip("root's privileges cannot be dropped here (setpriv)")
            self.prefix = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "--"]
        for source, to in ((self.plugin(), "plugin/connector"), (BUILD / "cli/h5cow", "plugin/cli")):
            (folder / to).mkdir(parents=True)
            shutil.copy(source, folder / to)
        home = {"HOME": str(folder), "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        self.stock = {**STOCK, **home, "HDF5_PLUGIN_PATH": "/nowhere"}
        self.ours = {**STOCK, **home, "HDF5_PLUGIN_PATH": str(folder / "plugin/connector"), "HDF5_VOL_CONNECTOR": "h5cow"}
        self.command = str(folder / "plugin/cli/h5cow")

    @staticmethod
    def plugin():
        return next(p for f in PLUGINS.split(":") for p in pathlib.Path(f).glob("libh5cow.so"))

    def run(self, *words, env=None, **more):
        more = {"capture_output": True, "text": True, "timeout": WAITING, "cwd": self.folder, **more}
        return subprocess.run([*self.prefix, *map(str, words)], env=env or self.stock, **more)

    def cow(self, *words, code=0):
        done = self.run(self.command, *words, env={**self.stock, "HDF5_PLUGIN_PATH": str(self.folder / "plugin/connector")})
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def write(self, path, value, mode="r+", options="", **more):
        """A session through h5cow."""
        done = self.run(sys.executable, "-c", f"import h5py, sys\nf = h5py.File(sys.argv[1], {mode!r})\n"
                        f"f.require_dataset('x', (), 'i8')[()] = {value}\nf.close()", path,
                        env={**self.ours, "HDF5_VOL_CONNECTOR": f"h5cow {options}"}, **more)
        assert done.returncode == 0, done.stderr

    def session(self, env):
        return Session(env, prefix=self.prefix, cwd=self.folder)


@pytest.fixture
def user():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="h5cow-test-"))
    folder.chmod(0o755)
    try:
        user = User(folder)
        if os.geteuid() == 0:
            os.chown(folder, USER, USER)
        yield user
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def file(user):
    path = user.folder / "run.h5"
    user.write(path, 1, "w")
    user.write(path, 2)
    user.cow("protect", path)
    return path


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def versions(user, path):
    return len(json.loads(user.cow("log", "--json", path)))


PROGRAMS = {
    "h5py w": "import h5py\nh5py.File(path, 'w')",
    "h5py a": "import h5py\nh5py.File(path, 'a')",
    "h5py r+": "import h5py\nh5py.File(path, 'r+')",
    "netCDF4 w": "import netCDF4\nnetCDF4.Dataset(path, 'w')",
    "netCDF4 a": "import netCDF4\nnetCDF4.Dataset(path, 'a')",
    "xarray": "import xarray\nxarray.Dataset({'x': 5}).to_netcdf(path)",
    "xarray h5netcdf": "import xarray\nxarray.Dataset({'x': 5}).to_netcdf(path, engine='h5netcdf')",
    "open": "open(path, 'w')",
    "truncate": "import os\nos.truncate(path, 0)",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_without_h5cow_are_refused_and_change_no_byte(user, file, program):
    for module in ("netCDF4", "xarray", "h5netcdf"):
        if module in PROGRAMS[program] and user.run(sys.executable, "-c", f"import {module}").returncode != 0:
            pytest.skip(f"there is no {module}")
    code = f"import sys\npath = sys.argv[1]\n{PROGRAMS[program]}"
    before = file.read_bytes()
    done = user.run(sys.executable, "-c", code, file)
    assert done.returncode == 1 and ("ermission denied" in done.stderr or "HDF error" in done.stderr), done.stderr
    assert file.read_bytes() == before
    writer = user.session(user.ours)  # and while a session is at work
    writer.do(f"f = h5py.File({str(file)!r}, 'r+')\nf['x'][()] = 3\nf.flush()")
    before = file.read_bytes()
    assert user.run(sys.executable, "-c", code, file).returncode == 1
    assert file.read_bytes() == before
    writer.do("f.close()")
    assert writer.end() == (0, "")
    assert versions(user, file) == 3 and not mode(file) & WRITE
    user.cow("verify", file)


@pytest.mark.parametrize("permissions", [0o600, 0o644, 0o664, 0o640, 0o666])
def test_permissions_return(user, permissions):
    path = user.folder / "run.h5"
    user.write(path, 1, "w")
    path.chmod(permissions)
    user.cow("protect", path)
    assert mode(path) == permissions & ~WRITE
    user.cow("protect", path)  # once more changes nothing
    user.write(path, 2)
    user.write(path, 3, "w")
    user.cow("tag", f"{path}@1", "first")
    user.cow("undo", path)
    user.cow("forget", path, "--keep-last=2")
    user.cow("gc", path)
    user.cow("gc", "--compact", path)
    user.cow("recover", path)
    assert mode(path) == permissions & ~WRITE
    before = os.stat(path).st_mtime_ns
    user.cow("unprotect", path)
    assert mode(path) == permissions and os.stat(path).st_mtime_ns == before
    user.cow("unprotect", path)
    assert mode(path) == permissions
    user.write(path, 4)
    assert mode(path) == permissions
    user.cow("verify", path)


def test_what_its_owner_changed_of_other_permissions_stays(user, file):
    file.chmod(0o400)
    user.write(file, 3)
    user.cow("unprotect", file)
    assert mode(file) == 0o600


def test_file_that_its_owner_may_not_write_is_not_protected_and_not_lifted(user):
    path = user.folder / "run.h5"
    user.write(path, 1, "w")
    path.chmod(0o444)
    before = path.read_bytes()
    assert "may not write it" in user.cow("protect", path, code=2)
    with pytest.raises(Refused, match="ermission denied"):
        user.session(user.ours).do(f"h5py.File({str(path)!r}, 'r+')")
    assert path.read_bytes() == before and mode(path) == 0o444


def test_twenty_kills_leave_it_protected_or_the_next_opening_does(user, file):
    code = ("import h5py, sys\nprint('begins', flush=True)\nwhile True:\n f = h5py.File(sys.argv[1], 'r+')\n f['x'][()] += 1\n"
            " f.flush()\n f['x'][()] += 1\n f.close()\n")
    for _ in range(20):
        child = subprocess.Popen([*user.prefix, sys.executable, "-c", code, str(file)], env=user.ours, cwd=user.folder,
                                 stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        time.sleep(random.random() / 5)
        child.kill()
        child.communicate()
        if mode(file) & WRITE:  # in the moment of opening
            user.write(file, 1)
        assert not mode(file) & WRITE
    user.cow("verify", file)


@pytest.mark.parametrize("how", ["r", "r+"])
def test_permission_that_a_killed_process_left_is_taken_away(user, file, how):
    file.chmod(mode(file) | stat.S_IWUSR)
    done = user.run(sys.executable, "-c", f"import h5py, sys\nh5py.File(sys.argv[1], {how!r}).close()", file, env=user.ours)
    assert done.returncode == 0, done.stderr
    assert mode(file) == 0o444


def test_programs_that_open_it_at_once_are_not_in_each_others_way(user, file):
    """One adds the permission, the other takes it away."""
    code = ("import h5py, sys\nfor i in range(60):\n f = h5py.File(sys.argv[1], 'r+')\n f.attrs[sys.argv[2]] = i\n f.close()\n")
    env = {**user.ours, "HDF5_VOL_CONNECTOR": "h5cow lock_timeout=300;sync=off"}
    children = [subprocess.Popen([*user.prefix, sys.executable, "-c", code, str(file), name], env=env, cwd=user.folder,
                                 stderr=subprocess.PIPE, text=True) for name in "abc"]
    assert [child.communicate()[1] for child in children] == ["", "", ""]
    assert mode(file) == 0o444 and versions(user, file) == 182


def test_run_writable_lifts_it_for_one_program(user, file):
    script = user.folder / "script.py"
    script.write_text("import h5py, os, sys\nfor i in range(2):\n assert os.access(sys.argv[1], os.W_OK)\n"
                      " f = h5py.File(sys.argv[1], 'r+')\n f['x'][()] += 1\n f.close()\nassert os.access(sys.argv[1], os.W_OK)\n")
    assert "AssertionError" in user.cow("run", "--", sys.executable, script, file, code=1)
    user.cow("run", "--writable", file, "--", sys.executable, script, file)
    assert mode(file) == 0o444 and versions(user, file) == 4
    assert "no-such" in user.cow("run", f"--writable={user.folder}/no-such.h5", "--", "true", code=2)
    child = subprocess.Popen([*user.prefix, user.command, "run", f"--writable={file}", "--", "sh", "-c", "echo there; exec sleep 60"],
                             env={**user.ours}, cwd=user.folder, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert child.stdout.readline() == "there\n" and mode(file) == 0o644
    user.write(file, 9)
    assert mode(file) == 0o644  # others leave it as it is meanwhile
    os.killpg(child.pid, 9)
    child.communicate()
    assert mode(file) == 0o644
    user.write(file, 10)
    assert mode(file) == 0o444


def test_option_protects_what_is_written(user):
    path = user.folder / "run.h5"
    user.write(path, 1, "w", "protect=on", umask=0o002)
    assert mode(path) == 0o444
    user.write(path, 2)
    assert mode(path) == 0o444 and versions(user, path) == 2
    user.cow("unprotect", path)
    assert mode(path) == 0o664
    user.write(path, 3, "r+", "protect=off")
    assert mode(path) == 0o664
    user.write(path, 4, "r+", "protect=on")
    assert mode(path) == 0o444


def test_file_that_is_created_over_it_is_protected_as_well(user, file):
    """With other properties the old file is put aside, and a new one made."""
    done = user.run(sys.executable, "-c", "import h5py, sys\nf = h5py.File(sys.argv[1], 'w', userblock_size=512)\nf['x'] = 1\nf.close()",
                    file, env=user.ours)
    assert done.returncode == 0, done.stderr
    aside = file.with_name("run.h5.h5cow-old-1")
    assert mode(file) == mode(aside) == 0o444 and versions(user, aside) == 2
    user.write(file, 2)
    user.cow("unprotect", file)
    assert mode(file) == 0o644


def test_copies_are_protected_and_plain_files_are_not(user, file):
    out = [user.folder / name for name in ("copy.h5", "saved.h5", "plain.h5", "cp.h5")]
    user.cow("copy", file, out[0])
    user.cow("recover", file, out[1])
    user.cow("export", f"{file}@1", out[2])
    assert user.run("cp", file, out[3]).returncode == 0
    assert [mode(path) for path in out] == [0o444, 0o444, 0o644, 0o444]
    for path in (out[0], out[1], out[3]):
        user.write(path, 7)
        assert mode(path) == 0o444 and versions(user, path) == 3
        user.cow("unprotect", path)
        assert mode(path) == 0o644
    assert user.run(sys.executable, "-c", "import h5py, sys\nh5py.File(sys.argv[1], 'r+')", out[2]).returncode == 0
    protected = user.folder / "other.h5"
    shutil.copy(file, protected)
    if os.geteuid() == 0:
        os.chown(protected, USER, USER)
    user.cow("export", "--force", "--discard-history", f"{file}@1", protected)
    assert mode(protected) == 0o644


def test_only_its_owner(user, file):
    if os.geteuid() != 0:
        pytest.skip("there is no other user")
    user.cow("unprotect", file)
    file.chmod(0o666)
    os.chown(file, 0, 0)
    assert "only its owner" in user.cow("protect", file, code=2)
    assert mode(file) == 0o666
    subprocess.run([user.command, "protect", str(file)], env=user.stock, check=True)
    assert mode(file) == 0o444
    before = file.read_bytes()
    assert "only its owner may" in user.cow("unprotect", file, code=2)
    with pytest.raises(Refused, match="ermission denied"):
        user.session(user.ours).do(f"h5py.File({str(file)!r}, 'r+')")
    assert user.session(user.ours).do(f"result = int(h5py.File({str(file)!r}, 'r')['x'][()])") == 2
    assert file.read_bytes() == before and mode(file) == 0o444


def test_doctor_says_so(user, file):
    said = user.cow("doctor", file)
    assert "protected: programs of this user write it with h5cow alone" in said and "All is well" in said
    user.cow("unprotect", file)
    assert json.loads(user.cow("doctor", "--json", file))["file"]["protected"] is False


def test_plain_file_is_not_protected(user):
    path = user.folder / "plain.h5"
    done = user.run(sys.executable, "-c", "import h5py, sys\nh5py.File(sys.argv[1], 'w')['x'] = 1", path)
    assert done.returncode == 0, done.stderr
    before = path.read_bytes()
    assert "has no history" in user.cow("protect", path, code=2)
    assert path.read_bytes() == before and mode(path) == 0o644


def test_reader_of_it_applies_what_waits(user, file):
    reader = user.session(user.ours)
    reader.do(f"f = h5py.File({str(file)!r}, 'r')")
    user.write(file, 3)
    seen = "result = int(h5py.File({!r}, 'r')['x'][()])".format(str(file))
    assert user.session(user.stock).do(seen) == 2
    reader.do("f.close()")
    assert user.session(user.stock).do(seen) == 3 and mode(file) == 0o444


def test_reader_that_may_not_write_an_emptied_file_says_nothing(user):
    """Who cannot note that it was said would say it each time."""
    path = user.folder / "run.h5"
    user.write(path, 1, "w")
    assert user.run(sys.executable, "-c", "import h5py, sys\nh5py.File(sys.argv[1], 'w')", path).returncode == 0
    path.chmod(0o444)
    reading = [sys.executable, "-c", "import h5py, sys\nh5py.File(sys.argv[1], 'r').close()", path]
    done = user.run(*reading, env=user.ours)
    assert done.returncode == 0 and done.stderr == ""
    path.chmod(0o644)
    if "user.h5cow" in os.listxattr(path):
        assert "had a history" in user.run(*reading, env=user.ours).stderr
    assert user.run(*reading, env=user.ours).stderr == ""


# ---- file systems without permissions ----

@pytest.mark.parametrize("number", [0, errno.EPERM])
def test_file_system_that_keeps_no_permissions_is_found_out(user, number):
    """Of FAT some refuse to change them (EPERM), and some say nothing."""
    path = user.folder / "run.h5"
    user.write(path, 1, "w")
    shutil.copy(BUILD / "test/libfake_fs.so", user.folder)
    fake = {"LD_PRELOAD": str(user.folder / "libfake_fs.so"), "FAKE_NO_PERMISSIONS": str(number)}
    done = user.run(user.command, "protect", path, env={**user.stock, "HDF5_PLUGIN_PATH": user.ours["HDF5_PLUGIN_PATH"], **fake})
    assert done.returncode == 2 and "keeps no permissions" in done.stderr, done.stderr
    assert mode(path) == 0o644 and json.loads(user.cow("doctor", "--json", path))["file"]["protected"] is False
    session = [sys.executable, "-c", "import h5py, sys\nf = h5py.File(sys.argv[1], 'r+')\nf['x'][()] += 1\nf.flush()\nf['x'][()] += 1\nf.close()", path]
    for _ in range(2):
        done = user.run(*session, env={**user.ours, "HDF5_VOL_CONNECTOR": "h5cow protect=on", **fake})
        assert done.returncode == 0 and "is not protected" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert json.loads(user.cow("doctor", "--json", path))["file"]["protected"] is False
    assert mode(path) == 0o644 and versions(user, path) == 3
    user.cow("verify", path)


@pytest.mark.parametrize("kind", ["vfat", "exfat"])
def test_fat(user, kind, tmp_path):
    mkfs = shutil.which(f"mkfs.{kind}")
    if os.geteuid() != 0 or mkfs is None or kind not in pathlib.Path("/proc/filesystems").read_text():
        pytest.skip(f"{kind} cannot be mounted here: this takes root, mkfs.{kind}, and a kernel that has it")
    image, folder = tmp_path / "image", tmp_path / "fat"
    folder.mkdir()
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    subprocess.run([mkfs, str(image)], check=True, capture_output=True)
    done = subprocess.run(["mount", "-o", f"loop,uid={USER}", str(image), str(folder)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"{kind} cannot be mounted here: {done.stderr}")
    try:
        path = folder / "run.h5"
        env = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS}
        done = subprocess.run([H5COW, "run", "--", sys.executable, "-c", f"import h5py\nh5py.File({str(path)!r}, 'w')['x'] = 1"], env=env)
        assert done.returncode == 0
        done = subprocess.run([H5COW, "protect", str(path)], env=env, capture_output=True, text=True)
        assert done.returncode == 2 and "keeps no permissions" in done.stderr, done.stderr
        assert subprocess.run([H5COW, "verify", str(path)], env=env).returncode == 0
    finally:
        subprocess.run(["umount", str(folder)], check=True)


# ---- programs that ask whether they may write ----

PANDAS = """
import sys, warnings
warnings.simplefilter("ignore")
import pandas
frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [int(sys.argv[2]), 4]})
frame.to_hdf(sys.argv[1], key="frame", mode="a", format=sys.argv[3])
assert pandas.read_hdf(sys.argv[1], "frame").equals(frame)
with pandas.HDFStore(sys.argv[1], "a") as store:
    store.append("rows", frame)
    assert store.get_storer("rows").nrows % 2 == 0
"""
PYTABLES = """
import sys, tables
with tables.open_file(sys.argv[1], "a") as file:
    if "/array" in file:
        file.remove_node("/array")
    file.create_array("/", "array", [int(sys.argv[2])] * 5)
with tables.open_file(sys.argv[1], "r+") as file:
    file.root.array[0] = 7
assert tables.open_file(sys.argv[1]).root.array[0] == 7
"""


@pytest.mark.parametrize("module, code, options", [("pandas", PANDAS, "table"), ("pandas", PANDAS, "fixed"), ("tables", PYTABLES, "")])
def test_pandas_and_pytables_write_a_protected_file_with_run_writable(user, module, code, options):
    for name in ("tables", module):
        if user.run(sys.executable, "-c", f"import {name}").returncode != 0:
            pytest.skip(f"there is no {name}")
    path = user.folder / "run.h5"
    words = [sys.executable, "-c", code, path]
    user.cow("run", "--", *words, 1, options)
    user.cow("protect", path)
    before = versions(user, path)
    refused = user.cow("run", "--", *words, 2, options, code=1)
    assert "ermission" in refused or "rite" in refused, refused
    assert versions(user, path) == before and mode(path) == 0o444
    for value in (3, 4):
        user.cow("run", "--writable", path, "--", *words, value, options)
        assert mode(path) == 0o444
    assert versions(user, path) > before
    user.cow("verify", path)
