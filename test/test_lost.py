"""A session is never lost without a word (docs/promises.md): whatever the program does with HDF5's errors, what is lost is said on
standard error, once, and by `h5cow run`, whose exit code then is not 0; and what does not fit on the disk fails where it is written.

PyTables ignores what H5Fclose returns, and so do destructors. Native HDF5 says which calls have to fail.
"""

import json
import os
import pathlib
import subprocess
import sys

import h5py
import pytest
from conftest import BUILD, H5COW, PLUGINS, STOCK
from waiting import WAITING

API = pathlib.Path(__file__).parent.parent / "api"
LOST = "the last changes were not committed"
RUN_LOST = 74

PREPARE = """
import os, resource, signal, sys, numpy as np
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, way = sys.argv[1:3]
values = np.random.default_rng(5).random(3000)

def limit(more):
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.stat(path).st_size + more, resource.RLIM_INFINITY))

def spoil():
    if way == 'limit':
        limit(100)
    elif way == 'replaced':
        open(path + '.new', 'wb').write(b'another')
        os.rename(path + '.new', path)
    elif way == 'cut':
        os.truncate(path, 100)
"""

H5PY = (
    PREPARE
    + """
import h5py
f = h5py.File(path, 'r+')
f['lost'] = values
spoil()
"""
)

# Each ends with 0, as far as HDF5 tells it anything.
ENDINGS = {
    "close ignored": "try:\n    f.close()\nexcept Exception:\n    pass\n",
    "never closed": "",
    "objects left": "d = f['lost']\ntry:\n    f.close()\nexcept Exception:\n    pass\n",
}

TABLES = (
    PREPARE
    + """
import tables
f = tables.open_file(path, 'a')
f.create_array('/', 'lost', values)
spoil()
f.close()
"""
)

C_PROGRAM = r"""
#include "h5cow.h"
#include <hdf5.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
static size_t fail(unsigned flags, size_t n, const unsigned values[], size_t bytes, size_t *size, void **buffer)
{
    return flags & H5Z_FLAG_REVERSE ? bytes : 0;
}
/* c FILE WAY END: ignores whatever HDF5 returns */
int main(int argc, char **argv)
{
    static double values[3000];
    hsize_t n = 3000;
    struct rlimit limit;
    struct stat about;

    (void)argc;
    signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < 3000; i++)
        values[i] = rand();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t file = H5Fopen(argv[1], H5F_ACC_RDWR, H5P_DEFAULT), space = H5Screate_simple(1, &n, NULL);
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    if (strncmp(argv[2], "filter", 6) == 0) {
        static const H5Z_class2_t class = {H5Z_CLASS_T_VERS, 300, 1, 1, "fails", NULL, NULL, fail};
        n = strcmp(argv[2], "filter, small") == 0 ? 30 : n;
        H5Sset_extent_simple(space, 1, &n, NULL);
        H5Zregister(&class);
        H5Pset_chunk(dcpl, 1, &n);
        H5Pset_filter(dcpl, 300, 0, 0, NULL);
    }
    hid_t dataset = H5Dcreate2(file, "lost", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    stat(argv[1], &about);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = (rlim_t)about.st_size + 100;
    if (strcmp(argv[2], "limit") == 0)
        setrlimit(RLIMIT_FSIZE, &limit);
    else if (strcmp(argv[2], "replaced") == 0) {
        unlink(argv[1]);
        fclose(fopen(argv[1], "w"));
    } else if (strcmp(argv[2], "cut") == 0 && truncate(argv[1], 100) != 0)
        return 9;
    if (strcmp(argv[3], "exit") == 0)
        return 0;
    if (strcmp(argv[3], "abort") == 0 && h5cow_abort(file) < 0)
        return 9;
    if (strcmp(argv[3], "H5close") == 0) {
        H5close();
        return 0;
    }
    if (strcmp(argv[3], "file first") == 0) {
        H5Fclose(file);
        H5Dclose(dataset);
        return 0;
    }
    H5Dclose(dataset);
    H5Fclose(file);
    if (strcmp(argv[3], "twice") == 0)
        H5Fclose(file);
    return strcmp(argv[3], "three") == 0 ? 3 : 0;
}
"""


@pytest.fixture(scope="module")
def c_program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    (folder / "c.c").write_text(C_PROGRAM)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "hdf5"], capture_output=True, text=True).stdout.split()
    subprocess.run(["cc", "-w", f"-I{API}", "-o", folder / "c", folder / "c.c", *flags], check=True)
    return folder / "c"


@pytest.fixture
def made(programs, tmp_path):
    path = tmp_path / "a.h5"
    done = programs.python("h5py.File(sys.argv[1], 'w')['kept'] = np.arange(5000)", path)
    assert done.returncode == 0, done.stderr
    return path


def run(*command, quiet=False, **more):
    command = [H5COW, "run", *(["-q"] if quiet else []), "--", *map(str, command)]
    env = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=WAITING, **more)


def lost_lines(done, path):
    """What the program itself has said, and what `run` has said after it."""
    lines = [line for line in done.stderr.splitlines() if LOST in line]
    assert all(path.name in line for line in lines), done.stderr
    return [line for line in lines if "is not in its file" not in line], [line for line in lines if "is not in its file" in line]


def check_lost(done, path, code=RUN_LOST):
    said, by_run = lost_lines(done, path)
    assert (done.returncode, len(said), len(by_run)) == (code, 1, 1), (done.returncode, done.stdout, done.stderr)


def check_kept(done, path):
    assert done.returncode == 0 and lost_lines(done, path) == ([], []), (done.returncode, done.stderr)


@pytest.mark.parametrize("way", ["none", "limit", "replaced", "cut"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_h5py_programs(made, way, ending):
    done = run(sys.executable, "-c", H5PY + ENDINGS[ending], made, way)
    check_kept(done, made) if way == "none" else check_lost(done, made)


@pytest.mark.parametrize("way", ["none", "limit", "replaced", "cut"])
def test_pytables_programs(made, way):
    pytest.importorskip("tables")
    done = run(sys.executable, "-c", TABLES, made, way)
    check_kept(done, made) if way == "none" else check_lost(done, made)


@pytest.mark.parametrize("way", ["none", "limit", "replaced", "cut"])
@pytest.mark.parametrize("end", ["exit", "H5close", "file first", "close", "twice"])
def test_c_programs(made, c_program, way, end):
    done = run(c_program, made, way, end)
    check_kept(done, made) if way == "none" else check_lost(done, made)


def test_the_exit_code_of_the_command_stays_where_it_is_another(made, c_program):
    check_lost(run(c_program, made, "limit", "three"), made, 3)
    check_lost(run(c_program, made, "limit", "close", quiet=True), made)


def test_a_run_inside_of_a_run_says_it_once(made, c_program):
    """And the outer one ends with 74 as well, though the program between has ignored what the inner one told it."""
    script = f"{H5COW} run -- {c_program} {made} limit close; exit 0"
    check_lost(run("sh", "-c", script), made)


def test_the_newest_version_is_what_it_was(programs, made, c_program):
    check_lost(run(c_program, made, "limit", "close"), made)
    done = programs.python("print(sorted(h5py.File(sys.argv[1])))", made)
    assert done.stdout.split() == ["['kept']"], done.stdout + done.stderr
    programs.verified(made)


def test_a_new_file_of_which_nothing_was_committed(tmp_path):
    path = tmp_path / "new.h5"
    code = PREPARE + "import h5py\nf = h5py.File(path, 'w')\nf['x'] = values\nspoil()\ntry:\n    f.close()\nexcept Exception:\n    pass\n"
    done = run(sys.executable, "-c", code.replace("limit(100)", "limit(2000)"), path, "limit")
    check_lost(done, path)
    assert "there is no file yet" in done.stderr
    os.unlink(path)
    # not even the file by which `run` hears of it may grow so far
    done = run(sys.executable, "-c", code, path, "limit")
    assert (done.returncode, len(lost_lines(done, path)[0])) == (RUN_LOST, 1) and "a file: what was written to it is lost" in done.stderr


def test_what_a_flush_has_committed_is_not_called_lost(made):
    """The close has nothing to commit but that the version is finished."""
    code = PREPARE + "import h5py\nf = h5py.File(path, 'r+')\nf['x'] = values\nf.flush()\nspoil()\ntry:\n    f.close()\nexcept Exception:\n    pass\n"
    done = run(sys.executable, "-c", code, made, "replaced")
    assert done.returncode == 0 and lost_lines(done, made) == ([], []), done.stderr
    assert "all changes are committed, but the file could not be closed as it should be: " in done.stderr, done.stderr


def test_dropped_changes_are_not_lost(made, c_program):
    """h5cow_abort is the program's wish."""
    check_kept(run(c_program, made, "limit", "abort"), made)


@pytest.mark.parametrize("way", ["filter", "filter, small"])  # the second is one that HDF5 keeps itself
@pytest.mark.parametrize("end", ["close", "file first"])
def test_a_chunk_that_a_filter_refuses(made, c_program, way, end):
    """Natively H5Dclose reports it, and all else is there."""
    done = run(c_program, made, way, end)
    lines = [line for line in done.stderr.splitlines() if "not all of its data is stored: " in line or "a chunk is lost: " in line]
    assert done.returncode == RUN_LOST and len(lines) == 2 and all(str(made) in line for line in lines), (done.returncode, done.stderr)


# ---- room on the disk --------------------------------------------------------------------------------------------------

# A disk of so many KiB, on which the programs run one after the other; what each has ended with, and what the file has then.
DISK = """
import ctypes, json, os, subprocess, sys
folder, kilobytes, command, seen = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), []
libc = ctypes.CDLL(None, use_errno=True)
NEW_NAMESPACE, PRIVATE = 0x20000, 0x44000
if libc.unshare(NEW_NAMESPACE):
    sys.exit(77)
libc.mount(b"none", b"/", None, PRIVATE, None)
if libc.mount(b"none", folder.encode(), b"tmpfs", 0, f"size={kilobytes}k".encode()):
    sys.exit(77)
path = os.path.join(folder, "t.h5")
look = "import h5py, sys; f = h5py.File(sys.argv[1], 'r'); print(*[k for k in f if k[0] == 'a' and (f[k][...] >= 1).all() and (f[k][...] <= 5).all()])"
for i in range(int(sys.argv[4])):
    done = subprocess.run([*command, path, str(i)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    names = subprocess.run([sys.executable, "-c", look, path], capture_output=True, text=True)
    about = os.stat(path) if os.path.exists(path) else None
    seen.append({"code": done.returncode, "said": done.stderr, "has": names.stdout.split(), "file": about and [about.st_size, about.st_blocks * 512]})
print(json.dumps(seen))
"""

VALUES = """
import os, sys, numpy as np
path, i = sys.argv[1], int(sys.argv[2])
values = np.random.default_rng(i).random(100000) + 1
"""
FILL = {
    "PyTables": "import tables\nf = tables.open_file(path, 'a')\nf.create_array('/', f'a{i}', values)\nf.close()",
    "PyTables, flushed": "import tables\nf = tables.open_file(path, 'a')\ne = f.create_earray('/', f'a{i}', obj=values)\ne.flush()\nf.flush()\nf.close()",
    "netCDF4": "import netCDF4\nf = netCDF4.Dataset(path, 'a' if os.path.exists(path) else 'w')\nf.createDimension(f'd{i}', 100000)\n"
    "f.createVariable(f'a{i}', 'f8', (f'd{i}',))[:] = values",
    "h5py": "import h5py\nf = h5py.File(path, 'a')\nf.create_dataset(f'a{i}', data=values)\nf.close()",
    "h5py, in rows": "import h5py\nf = h5py.File(path, 'a')\nd = f.create_dataset(f'a{i}', 100000, 'f8', maxshape=(None,), chunks=(5000,))\n"
    "for k in range(0, 100000, 1000):\n    d[k:k + 1000] = values[k:k + 1000]\nd.flush()\nf.close()",
    "h5py, compressed": "import h5py\nf = h5py.File(path, 'a')\nf.create_dataset(f'a{i}', data=values, chunks=(5000,), compression=1)\nf.close()",
}


@pytest.fixture
def disk(tmp_path):
    (tmp_path / "disk").mkdir()

    def on_disk(kilobytes, command, times, **env):
        words = [sys.executable, "-c", DISK, tmp_path / "disk", kilobytes, json.dumps([str(word) for word in command]), times]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=WAITING,
                              env={**STOCK, "HDF5_PLUGIN_PATH": PLUGINS, **env})
        if done.returncode == 77:
            pytest.skip("only root can make a small disk")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return on_disk


def module_of(program):
    return "tables" if "PyTables" in program else program.split(",")[0]


@pytest.mark.parametrize("program", FILL)
def test_what_fails_on_a_full_disk_natively_fails_through_h5cow(disk, program):
    """In the call that writes or flushes, so the program ends with an exception; and no program that ends well is not in the file."""
    pytest.importorskip(module_of(program))
    code = [sys.executable, "-c", VALUES + FILL[program]]
    native = disk(4096, code, 7)
    through = disk(4096, [H5COW, "run", "--", *code], 7)
    assert through[0]["code"] == 0 and through[-1]["code"] == 1, through
    assert native[-1]["code"] != 0 or "flushed" in program, native  # there PyTables loses all of it, and says nothing
    for i, (alone, ours) in enumerate(zip(native, through)):
        assert ours["code"] in (0, 1), ours  # 1: an exception
        assert alone["code"] == 0 or ours["code"] == 1, (i, alone, ours)
        assert (ours["code"] == 0) == (f"a{i}" in ours["has"]), (i, ours)
        size, blocks = ours["file"]
        assert blocks <= (size + 4095) // 4096 * 4096 + 65536, ours  # nothing is held when the file is closed
    kept = {name for step in through if step["code"] == 0 for name in step["has"]}
    assert kept <= set(through[-1]["has"])


def test_the_session_goes_on_after_a_write_that_did_not_fit(disk):
    code = VALUES + """
import h5py
f = h5py.File(path, 'a')
f['a'] = values
try:
    f.create_dataset('b', data=np.random.default_rng(7).random(900000), chunks=(1000,))
    sys.exit(5)
except OSError as error:
    assert error.errno == 28, error
f['a1'] = values[:100]
f.close()
"""
    (step,) = disk(4096, [H5COW, "run", "--", sys.executable, "-c", code], 1)
    assert (step["code"], step["said"], step["has"]) == (0, "", ["a", "a1"]), step


SMALL = {
    "compressed": "f.create_dataset('a0', data=np.ones(5_000_000), chunks=(50_000,), compression=1)",
    "compressed, in rows": "d = f.create_dataset('a0', 5_000_000, 'f8', chunks=(50_000,), compression=1)\nfor k in range(0, 5_000_000, 10_000):\n    d[k:k + 10_000] = 1",
    "never written": "f.create_dataset('a0', 50_000_000, 'f8', chunks=(50_000,))[:10] = 1",
    "a value of each chunk": "d = f.create_dataset('a0', data=np.random.default_rng(1).random(250_000) + 1, chunks=(25_000,))\nf.close()\n"
    "f = h5py.File(path, 'a')\nf['a0'][::25_000] = 5",
}


@pytest.mark.parametrize("way", SMALL)
def test_what_takes_little_in_the_end_is_not_refused(disk, way):
    """Chunks wait in memory as they are; on a disk that has not that much room they are stored at once, and take what they take."""
    code = [sys.executable, "-c", VALUES + "import h5py\nf = h5py.File(path, 'w')\n" + SMALL[way] + "\nf.close()"]
    for command in (code, [H5COW, "run", "--", *code]):
        # the head has all of each chunk of which a value was changed
        (step,) = disk(8192 if way == "a value of each chunk" else 4096, command, 1)
        assert (step["code"], step["said"]) == (0, ""), step
        assert step["has"] == ["a0"] or way == "never written"


@pytest.mark.parametrize("way", ["none", "limit"])
def test_room_that_was_taken_is_given_back(made, way):
    """On the file system of the tests, also when the session comes to nothing."""
    code = PREPARE + """
import h5py
f = h5py.File(path, 'r+')
f['lost'] = np.random.default_rng(5).random(300000)
about = os.stat(path)
print(about.st_size, about.st_blocks * 512)
spoil()
try:
    f.close()
except OSError:
    pass
"""
    before = made.stat()
    done = run(sys.executable, "-c", code, made, way)
    taken = list(map(int, done.stdout.split()))
    if taken[1] < 2_400_000:
        pytest.skip("this file system takes no room ahead")
    after = made.stat()
    assert after.st_blocks * 512 <= (after.st_size + 4095) // 4096 * 4096 + 65536, (before, taken, after)


def test_room_of_a_program_that_was_killed_is_given_back_by_the_next_one(made):
    code = PREPARE + "import h5py\nf = h5py.File(path, 'r+')\nf['lost'] = np.random.default_rng(5).random(600000)\nos.kill(os.getpid(), 9)\n"
    assert run(sys.executable, "-c", code, made, "none").returncode == 128 + 9
    code = PREPARE + "import h5py\nf = h5py.File(path, 'r+')\nf['one'] = 1\nf.close()\n"
    check_kept(run(sys.executable, "-c", code, made, "none"), made)
    assert made.stat().st_blocks * 512 <= made.stat().st_size + 500_000


def test_a_limit_on_the_size_of_files_fails_where_it_is_written(made):
    code = PREPARE + """
import h5py
f = h5py.File(path, 'r+')
limit(500_000)
f['a'] = np.arange(20_000)
try:
    f['b'] = np.arange(100_000)
    sys.exit(5)
except OSError as error:
    assert error.errno == 27, error
f.close()
"""
    done = run(sys.executable, "-c", code, made, "none")
    check_kept(done, made)
    with h5py.File(made) as f:
        assert f["a"][-1] == 19_999 and "kept" in f


NO_ROOM_AHEAD = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
int fallocate(int fd, int mode, off_t offset, off_t size) { (void)fd, (void)mode, (void)offset, (void)size; errno = EOPNOTSUPP; return -1; }
int fallocate64(int fd, int mode, off_t offset, off_t size) { return fallocate(fd, mode, offset, size); }
"""


def test_where_no_room_can_be_taken_nothing_is_lost_without_a_word(disk, tmp_path):
    """As on network file systems: then the disk fails in the write itself, or in the commit."""
    (tmp_path / "shim.c").write_text(NO_ROOM_AHEAD)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "shim.so", tmp_path / "shim.c"], check=True)
    code = ["env", f"LD_PRELOAD={tmp_path / 'shim.so'}", sys.executable, "-c", VALUES + FILL["h5py"].replace("f.close()", "try:\n    f.close()\nexcept OSError:\n    pass")]
    steps = disk(4096, [H5COW, "run", "--", *code], 7)
    assert steps[0]["code"] == 0 and steps[-1]["code"] != 0, steps
    for i, step in enumerate(steps):
        assert (step["code"] == 0) == (f"a{i}" in step["has"]) and (step["code"] == 0 or LOST in step["said"]), (i, step)


@pytest.mark.parametrize("program", FILL)
def test_a_quota_is_as_a_full_disk(tmp_path, program):
    """Pretended: what is written beyond it fails with EDQUOT, while the disk has room, as statfs says."""
    pytest.importorskip(module_of(program))
    code = [sys.executable, "-c", VALUES + FILL[program]]
    env = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS, "LD_PRELOAD": str(BUILD / "test/libfake_fs.so"), "FAKE_QUOTA": str(4 << 20)}
    look = "import h5py, sys\nf = h5py.File(sys.argv[1], 'r')\nprint(*[k for k in f if k[0] == 'a' and (f[k][...] >= 1).all() and (f[k][...] <= 2).all()])"
    native, ours, failed = tmp_path / "native.h5", tmp_path / "ours.h5", 0
    for i in range(7):
        alone = subprocess.run([*code, str(native), str(i)], capture_output=True, text=True, env=env, timeout=WAITING)
        done = subprocess.run([H5COW, "run", "--", *code, str(ours), str(i)], capture_output=True, text=True, env=env, timeout=WAITING)
        has = subprocess.run([sys.executable, "-c", look, str(ours)], capture_output=True, text=True, env=STOCK, timeout=WAITING).stdout.split()
        assert alone.returncode == 0 or done.returncode != 0, (i, done.stderr)
        assert (done.returncode == 0) == (f"a{i}" in has), (i, done.returncode, has, done.stderr)
        if done.returncode != 0:
            failed += 1
            assert "Disk quota exceeded" in done.stderr or "122" in done.stderr or "disk" in done.stderr.lower(), done.stderr
    assert failed > 0
    done = subprocess.run([H5COW, "verify", str(ours)], capture_output=True, text=True, env={**STOCK, "HDF5_PLUGIN_PATH": PLUGINS})
    assert done.returncode == 0, done.stdout
