"""One plugin file for every libhdf5: several in a process, strange ones, and what an instance needs besides.

The other libraries are copies of the system's with another soname, so that nothing has to be downloaded; with wheels and other
releases: reach.py. Programs use them by ctypes.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import H5COW, PLUGINS, STOCK
from test_bad_input import unchanged

# library(PATH) is a libhdf5; names of files are written with its own calls.
CTYPES = """
import ctypes, os, sys, threading
class library:
    def __init__(self, path):
        self.c = c = ctypes.CDLL(path)
        ids = {"H5Fopen": "su_", "H5Fcreate": "su__", "H5Gcreate2": "_s___", "H5Fclose": "_", "H5Gclose": "_", "H5Lexists": "_s_"}
        for name, kinds in ids.items():
            call = getattr(c, name)
            call.restype = ctypes.c_int64 if name[2] in "FG" and "close" not in name else ctypes.c_int
            call.argtypes = [{"s": ctypes.c_char_p, "u": ctypes.c_uint, "_": ctypes.c_int64}[k] for k in kinds]
        c.H5open()
    def open(self, name, flags=0):
        return self.c.H5Fopen(name.encode(), flags, 0)
    def create(self, name):
        return self.c.H5Fcreate(name.encode(), 2, 0, 0)
    def add(self, file, group):
        return self.c.H5Gclose(self.c.H5Gcreate2(file, group.encode(), 0, 0, 0))
    def has(self, file, group):
        return self.c.H5Lexists(file, group.encode(), 0) > 0
    def close(self, file):
        return self.c.H5Fclose(file)
    def version(self, name, group):
        file = self.create(name) if not os.path.exists(name) else self.open(name, 1)
        assert file > 0 and self.add(file, group) >= 0 and self.close(file) >= 0, (name, group)
"""


@pytest.fixture(scope="module")
def system():
    """The libhdf5 of h5py here, and its soname."""
    where = "import h5py, re; print(*sorted(set(re.findall(r'/\\S*libhdf5\\S*', open('/proc/self/maps').read()))))"
    done = subprocess.run([sys.executable, "-c", where], capture_output=True, text=True, check=True)
    path = pathlib.Path(next(name for name in done.stdout.split() if "_hl" not in name))
    return path, re.match(rb"libhdf5\w*\.so\.\d+", path.name.encode())[0]


@pytest.fixture
def another(system, tmp_path):
    """Makes a copy of libhdf5 with a name of its own, in which each text of CHANGES is another of the same length."""

    def make(name="other", changes=()):
        path, soname = system
        data = path.read_bytes().replace(soname + b"\0", name.encode().ljust(len(soname), b"x") + b"\0")
        for old, new in changes:
            assert len(old) == len(new) and old + b"\0" in data, old
            data = data.replace(old + b"\0", new + b"\0")
        copy = tmp_path / f"lib{name}.so"
        copy.write_bytes(data)
        return copy

    return make


def run(programs, code, *arguments, preload="", options="", **more):
    before = ["env", f"LD_PRELOAD={preload}"] if preload else []
    return programs.connector(*before, sys.executable, "-c", CTYPES + code, *arguments, options=options, **more)


def compile_shared(source, target):
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", target, source], check=True)


def versions(programs, path):
    done = programs.cow("log", "--json", path)
    assert done.returncode == 0, done.stderr
    return sorted((v["name"] for v in json.loads(done.stdout)), key=int)


# ---- what is in the file ---------------------------------------------------------------------------------------------


def test_plugin_and_command_are_not_linked_with_libhdf5():
    if not shutil.which("nm") or not shutil.which("readelf"):
        pytest.skip("no binutils here")

    for file in pathlib.Path(PLUGINS.split(":")[0]) / "libh5cow.so", pathlib.Path(H5COW):
        needed = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
        assert "NEEDED" in needed and "hdf5" not in needed, needed
        symbols = subprocess.run(["nm", "-D", file], capture_output=True, text=True, check=True).stdout
        assert not re.search(r" U H5", symbols), symbols
    names = re.findall(r" [TDBRVW] (\S+)", subprocess.run(
        ["nm", "-D", "--defined-only", pathlib.Path(PLUGINS.split(":")[0]) / "libh5cow.so"],
        capture_output=True, text=True, check=True).stdout)
    assert {"H5PLget_plugin_type", "H5PLget_plugin_info", "h5cow_instance_1"} <= set(names)
    assert [n for n in names if n.startswith(("H5", "cow_"))] == ["H5PLget_plugin_info", "H5PLget_plugin_type"]


# ---- several in a process --------------------------------------------------------------------------------------------

TWO = """
a, b = library(sys.argv[1]), library(sys.argv[2])
for i in range(3):
    a.version("a.h5", f"a{i}")
    b.version("b.h5", f"b{i}")
    a.version("both.h5", f"a{i}")
    b.version("both.h5", f"b{i}")
for l in a, b:
    for name, group in ("a.h5", "a"), ("b.h5", "b"):
        f, old = l.open(name), l.open(name + "@1")
        assert l.has(f, group + "2") and l.has(old, group + "0") and not l.has(old, group + "1")
        assert l.close(f) >= 0 and l.close(old) >= 0
"""


def test_two_libraries_each_keep_history(programs, another, system, tmp_path):
    for order in (system[0], another()), (another("third"), system[0]), (another("fourth"), another("fifth")):
        for path in tmp_path.glob("*.h5"):
            path.unlink()
        done = run(programs, TWO, *order, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert versions(programs, tmp_path / "a.h5") == versions(programs, tmp_path / "b.h5") == ["1", "2", "3"]
        assert versions(programs, tmp_path / "both.h5") == [str(n) for n in range(1, 7)]
        for name in "a.h5", "b.h5", "both.h5":
            programs.verified(tmp_path / name)


def test_a_second_writer_is_refused_whichever_library_it_uses(programs, another, system, tmp_path):
    code = """
a, b = library(sys.argv[1]), library(sys.argv[2])
a.version("f.h5", "first")
f = a.open("f.h5", 1)
assert f > 0 and a.add(f, "second") >= 0
print("second writer", b.open("f.h5", 1))
r = b.open("f.h5")
assert r > 0 and b.has(r, "first") and not b.has(r, "second") and b.close(r) >= 0
assert a.close(f) >= 0
r = b.open("f.h5")
assert r > 0 and b.has(r, "second") and b.close(r) >= 0
b.version("f.h5", "third")
"""
    done = run(programs, code, system[0], another(), cwd=tmp_path)
    assert done.returncode == 0 and "second writer -1" in done.stdout, (done.stdout, done.stderr)
    assert "h5cow" in done.stderr and versions(programs, tmp_path / "f.h5") == ["1", "2", "3"]
    programs.verified(tmp_path / "f.h5")


def test_two_threads_with_a_library_each(programs, another, system, tmp_path):
    code = """
def work(l, name):
    for i in range(20):
        l.version(name, f"g{i}")
libraries = library(sys.argv[1]), library(sys.argv[2])
threads = [threading.Thread(target=work, args=(l, f"{i}.h5")) for i, l in enumerate(libraries)]
[t.start() for t in threads]
[t.join() for t in threads]
"""
    done = run(programs, code, system[0], another(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    for name in "0.h5", "1.h5":
        assert len(versions(programs, tmp_path / name)) == 20
        programs.verified(tmp_path / name)


def test_children_of_a_fork_use_both(programs, another, system, tmp_path):
    code = """
a, b = library(sys.argv[1]), library(sys.argv[2])
a.version("0.h5", "before"), b.version("0.h5", "before too")
for i in range(4):
    if os.fork() == 0:
        (a, b)[i % 2].version(f"{i}.h5", "child")
        (b, a)[i % 2].version(f"{i}.h5", "child too")
        os._exit(0)
assert all(os.wait()[1] == 0 for i in range(4))
"""
    done = run(programs, code, system[0], another(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert [len(versions(programs, tmp_path / f"{i}.h5")) for i in range(4)] == [4, 2, 2, 2]


def test_libraries_that_are_closed_or_unloaded_with_a_file_open(programs, another, system, tmp_path):
    """What HDF5 then does natively, closing its files, makes a version; and the library may come again, many times."""
    code = """
a, path = library(sys.argv[1]), sys.argv[2]
unload = ctypes.CDLL(None).dlclose
unload.argtypes = [ctypes.c_void_p]
for i in range(12):
    b = library(path)
    f = b.create("b.h5") if i == 0 else b.open("b.h5", 1)
    assert f > 0 and b.add(f, f"g{i}") >= 0
    if i % 2:
        b.c.H5close()
        b.c.H5open()
        assert b.has(b.open("b.h5"), f"g{i}")
    a.version("a.h5", f"g{i}")
    handle = b.c._handle
    del b
    assert unload(handle) == 0
maps = open("/proc/self/maps").read()
print(os.path.basename(path) in maps, maps.count("libh5cow") // 8)
"""
    done = run(programs, code, system[0], another(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), (done.stdout, done.stderr)
    assert len(versions(programs, tmp_path / "a.h5")) == len(versions(programs, tmp_path / "b.h5")) == 12
    programs.verified(tmp_path / "b.h5")


def test_another_libhdf5_that_is_preloaded(programs, another, tmp_path):
    code = "with h5py.File('f.h5', 'w') as f: f['x'] = np.arange(1000)\nwith h5py.File('f.h5', 'a') as f: f['x'][3] = 0"
    done = programs.connector("env", f"LD_PRELOAD={another('preloaded')}", sys.executable, "-c", programs.code(code), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert versions(programs, tmp_path / "f.h5") == ["1", "2"]


# ---- libraries that cannot be served ---------------------------------------------------------------------------------

TRY = """
l = library(sys.argv[1])
print([l.open(sys.argv[2]), l.open(sys.argv[2], 1), l.create(sys.argv[2])])
"""


@pytest.fixture
def made(programs, tmp_path):
    path = tmp_path / "kept" / "made.h5"
    path.parent.mkdir()
    done = programs.python("with h5py.File(sys.argv[1], 'w') as f: f['x'] = np.arange(100)", path)
    assert done.returncode == 0, done.stderr
    return path


def stays_shut(programs, made, sha256, library, *words, **more):
    """Refused three times, on the error stack each time, on standard error once."""
    with unchanged(sha256, made):
        done = run(programs, TRY, library, made, **more)
    assert "[-1, -1, -1]" in done.stdout, (done.stdout, done.stderr)
    told = [line for line in done.stderr.splitlines() if line.startswith("h5cow: ")]
    assert len(told) == 1 and all(word in told[0] for word in ("opens no file", *words)), done.stderr
    assert done.stderr.count("opens no file") == 4, done.stderr


def version_text(library):
    return re.search(rb"HDF5 library version: [\d.]+", library.read_bytes())[0]


def numbered(system, another, number, changes=()):
    """A library that calls itself another release."""
    text = version_text(system[0])
    other = text[: text.rindex(b" ") + 1] + number.encode()
    if len(other) != len(text):
        pytest.skip("the library's number has another length")
    return another(changes=[(text, other), *changes])


@pytest.mark.parametrize("number", ["2.3.00", "3.0.00"])
def test_a_release_that_is_not_known_is_refused(programs, another, system, made, sha256, number):
    stays_shut(programs, made, sha256, numbered(system, another, number), number[:-1], "knows HDF5 up to")


def test_an_older_release_is_told_that_nothing_is_kept(programs, another, system, made, sha256):
    """HDF5 1.12 leaves connectors of 1.14 out and goes on: once for the program, and only where h5cow is asked for."""
    library = numbered(system, another, "1.12.3")
    done = run(programs, TRY, library, made)
    told = [line for line in done.stderr.splitlines() if line.startswith("h5cow: ")]
    assert len(told) == 1 and "1.12.3" in told[0] and "no version is made" in told[0], done.stderr
    done = programs.run([sys.executable, "-c", CTYPES + TRY, library, made], {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS})
    assert "h5cow: " not in done.stderr, done.stderr


def test_a_library_that_lacks_a_function_is_refused(programs, another, made, sha256):
    stays_shut(programs, made, sha256, another(changes=[(b"H5Dscatter", b"H5Dscattex")]), "lacks H5Dscatter")


NO_COPIES = """
#include <errno.h>
#include <stdlib.h>
int memfd_create(const char *name, unsigned flags) { (void)name, (void)flags; errno = ENOSYS; return -1; }
int mkostemps(char *name, int suffix, int flags) { (void)name, (void)suffix, (void)flags; errno = ENOSPC; return -1; }
int mkostemps64(char *name, int suffix, int flags) { return mkostemps(name, suffix, flags); }
"""


def test_without_memory_files_a_copy_goes_through_a_folder(programs, another, system, tmp_path):
    """No memfd (seccomp, an old kernel) or no /proc: the copy is a file, gone again at once."""
    (tmp_path / "shim.c").write_text(NO_COPIES[: NO_COPIES.index("int mkostemps")])
    compile_shared(tmp_path / "shim.c", tmp_path / "shim.so")
    folder = tmp_path / "folder"
    folder.mkdir()
    done = run(programs, TWO, system[0], another(), cwd=tmp_path, preload=tmp_path / "shim.so")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert versions(programs, tmp_path / "b.h5") == ["1", "2", "3"]


def test_where_no_copy_can_be_made_the_second_library_is_refused(programs, another, system, made, sha256, tmp_path):
    (tmp_path / "shim.c").write_text(NO_COPIES)
    compile_shared(tmp_path / "shim.c", tmp_path / "shim.so")
    code = f"a = library({str(system[0])!r})\na.version({str(tmp_path / 'a.h5')!r}, 'g')\n" + TRY
    with unchanged(sha256, made):
        done = run(programs, code, another(), made, preload=tmp_path / "shim.so")
    assert "[-1, -1, -1]" in done.stdout and "TMPDIR" in done.stderr, (done.stdout, done.stderr)
    assert versions(programs, tmp_path / "a.h5") == ["1"]


def test_a_libhdf5_within_the_program_is_refused_on_standard_error(programs, made, tmp_path, sha256):
    """Its functions and its error stack cannot be reached."""
    shown = subprocess.run(["h5cc", "-show"], capture_output=True, text=True)
    if "libhdf5.a" not in shown.stdout:
        pytest.skip("there is no static libhdf5 here")
    (tmp_path / "static.c").write_text(
        "#include <hdf5.h>\nint main(int argc, char **argv)\n{\n    (void)argc;\n"
        "    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);\n"
        "    return (H5Fopen(argv[1], H5F_ACC_RDONLY, 0) >= 0) + (H5Fopen(argv[1], H5F_ACC_RDWR, 0) >= 0) +\n"
        "           (H5Fcreate(argv[1], H5F_ACC_TRUNC, 0, 0) >= 0);\n}\n"
    )
    linked = subprocess.run(["h5cc", "-o", "static", "static.c", "-laec"], cwd=tmp_path, capture_output=True, text=True)
    if linked.returncode != 0:
        pytest.skip("what a static libhdf5 needs is not all here: " + linked.stderr[-300:])
    with unchanged(sha256, made):
        done = programs.connector(tmp_path / "static", made)
        assert done.returncode == 0 and done.stdout == "", (done.returncode, done.stdout, done.stderr)
        lines = done.stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith(f"h5cow: {made}: ") and "h5cc -shlib" in lines[0], lines
    done = programs.stock(tmp_path / "static", made)
    assert done.stderr == "", "said where h5cow was not asked for"


# ---- where the plugin is, and what becomes of it ---------------------------------------------------------------------

MOUNT = """
import ctypes, os, sys
folder, flags, options = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if ctypes.CDLL(None).mount(b"none", folder.encode(), b"tmpfs", flags, options.encode()) != 0:
    sys.exit("cannot mount")
os.execvp(sys.argv[4], sys.argv[4:])
"""
NOEXEC = 8


def on_tmpfs(folder, flags, options):
    """Words in front of a program for which FOLDER is a file system of its own."""
    words = ["unshare", "--mount", "--propagation", "unchanged", sys.executable, "-c", MOUNT, str(folder), str(flags), options]
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        pytest.skip("this user cannot mount")
    return words


@pytest.mark.parametrize("flags, options", [(NOEXEC, ""), (0, "size=4k")], ids=["noexec", "full"])
def test_a_temporary_folder_that_is_of_no_use_is_passed_over(programs, another, system, tmp_path, flags, options):
    """The copy is in memory; where there is none, in the next folder."""
    folder = tmp_path / "folder"
    folder.mkdir()
    before = [*on_tmpfs(folder, flags, options), "env", f"TMPDIR={folder}"]
    (tmp_path / "shim.c").write_text(NO_COPIES[: NO_COPIES.index("int mkostemps")])
    compile_shared(tmp_path / "shim.c", tmp_path / "shim.so")
    for shim in [], [f"LD_PRELOAD={tmp_path}/shim.so"]:
        for path in tmp_path.glob("*.h5"):
            path.unlink()
        code = CTYPES + TWO + "assert os.listdir(os.environ['TMPDIR']) == []\n"
        done = programs.connector(*before, *shim, sys.executable, "-c", code, system[0], another(), cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert versions(programs, tmp_path / "both.h5") == [str(n) for n in range(1, 7)]


def test_run_hears_of_programs_with_a_full_temporary_folder(programs, system, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    code = CTYPES + "library(sys.argv[1]).version('f.h5', 'g')\n"
    done = programs.stock(*on_tmpfs(folder, 0, "size=4k"), "sh", "-c", 'head -c 4096 /dev/zero >"$0/f"; export TMPDIR="$0"; "$@"', folder,
                          H5COW, "run", "-m", "text", "--", sys.executable, "-c", code, system[0], cwd=tmp_path)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert versions(programs, tmp_path / "f.h5") == ["1"]


def test_libraries_that_are_loaded_for_all(programs, another, system, tmp_path):
    """RTLD_GLOBAL: the functions of the second are then the first's, which is all the same to whom they serve."""
    everywhere = CTYPES.replace("ctypes.CDLL(path)", "ctypes.CDLL(path, ctypes.RTLD_GLOBAL)")
    mixed = CTYPES.replace("ctypes.CDLL(path)", "ctypes.CDLL(path, ctypes.RTLD_GLOBAL if 'other' in path else ctypes.RTLD_LOCAL)")
    for code in everywhere, mixed:
        for order in (system[0], another()), (another(), system[0]):
            for path in tmp_path.glob("*.h5"):
                path.unlink()
            done = programs.connector(sys.executable, "-c", code + TWO, *order, cwd=tmp_path)
            assert (done.returncode, done.stderr) == (0, ""), done.stderr
            assert versions(programs, tmp_path / "both.h5") == [str(n) for n in range(1, 7)]
            programs.verified(tmp_path / "both.h5")


@pytest.fixture
def installed(tmp_path):
    """A copy of the plugin in a folder of its own; more by name."""

    def make(name="installed"):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(pathlib.Path(PLUGINS.split(":")[0]) / "libh5cow.so", folder)
        return folder

    return make


REPLACED = """
a = library(sys.argv[1])
f = a.create("a.h5")
assert f > 0 and a.add(f, "before") >= 0
exec(sys.argv[3])
assert a.add(f, "after") >= 0 and a.close(f) >= 0
a.version("a.h5", "later")
b = library(sys.argv[2])
print("other", b.create("b.h5") > 0)
b.c.H5close()
"""


@pytest.mark.parametrize("change, served, word", [
    ("os.rename(p + '.new', p)", True, ""),
    ("open(p + '.new', 'w').write('no plugin'); os.rename(p + '.new', p)", False, "copy of itself"),
    ("os.unlink(p)", True, ""),
    ("d = open(p + '.new', 'rb').read(); open(p, 'r+b').write(d)", True, ""),
], ids=["newer", "garbage", "removed", "in place"])  # fmt: skip
def test_a_plugin_that_is_replaced_while_it_is_used(programs, another, system, installed, tmp_path, change, served, word):
    """Who uses it goes on with the old one; a further library gets what is there now, or is refused. Where nothing is there HDF5
    asks nobody, and goes on without history, which h5cow run tells (test_doctor_program.py). Written over in place by the same
    bytes is all that can be survived: the program runs what is in the file."""
    plugin = installed() / "libh5cow.so"
    shutil.copy(plugin, f"{plugin}.new")
    change = f"p = {str(plugin)!r}; " + change
    done = programs.connector(sys.executable, "-c", CTYPES + REPLACED, system[0], another(), change, plugins=str(plugin.parent), cwd=tmp_path)
    assert done.returncode == 0 and f"other {served}" in done.stdout and word in done.stderr, (done.stdout, done.stderr)
    assert versions(programs, tmp_path / "a.h5") == ["1", "2"]
    programs.verified(tmp_path / "a.h5")
    if served and "unlink" not in change:
        assert versions(programs, tmp_path / "b.h5") == ["1"]


def test_of_two_plugins_the_first_serves_and_both_keep_one_file(programs, installed, system, tmp_path):
    """HDF5 may load the second as well, when it asks all plugins of whom a file is that it could not open."""
    one, other = installed("one"), installed("other")
    code = """
l = library(sys.argv[1])
l.version("f.h5", "g" + sys.argv[2])
open("none.h5", "w").write("no HDF5")
assert l.open("none.h5") < 0 and l.open("nowhere.h5") < 0
f = l.open("f.h5", 1)
assert f > 0 and l.add(f, "more" + sys.argv[2]) >= 0
if len(sys.argv) > 3:
    print(os.popen(sys.argv[3]).read())
assert l.close(f) >= 0
loaded = {line.split()[-1] for line in open("/proc/self/maps") if "libh5cow" in line}
print("serves", sorted(os.path.basename(os.path.dirname(name)) for name in loaded))
"""
    for n, (path, first) in enumerate(((f"{one}:{other}", "one"), (f"{other}:{one}", "other"))):
        done = run(programs, code, system[0], n, cwd=tmp_path, plugins=path)
        assert done.returncode == 0 and f"'{first}'" in done.stdout, (done.stdout, done.stderr)
    assert versions(programs, tmp_path / "f.h5") == ["1", "2", "3", "4"]
    second = "HDF5_PLUGIN_PATH=%s %s -c \"import h5py; h5py.File('f.h5', 'a')\" 2>&1 | tail -1" % (other, sys.executable)
    done = run(programs, code, system[0], 3, second, cwd=tmp_path, plugins=str(one))
    assert done.returncode == 0 and "nothing was changed" in done.stdout, (done.stdout, done.stderr)
    assert versions(programs, tmp_path / "f.h5") == [str(n) for n in range(1, 7)]
    programs.verified(tmp_path / "f.h5")


def test_two_plugins_in_one_process_do_not_quarrel(programs, installed, system, tmp_path):
    """HDF5 asks all plugins whether they know a file that it cannot open, where no connector is chosen: both are loaded then, and
    a file with history that is to be written finds one of them."""
    path = f"{installed('one')}:{installed('other')}"
    assert run(programs, "library(sys.argv[1]).version('f.h5', 'g')", system[0], cwd=tmp_path, plugins=path).returncode == 0
    code = """
l = library(sys.argv[1])
open("none.h5", "w").write("no HDF5")
for i in range(3):
    assert l.open("none.h5") < 0 and l.open("nowhere.h5") < 0
    f = l.open("f.h5", 1)
    assert f > 0 and l.add(f, f"more{i}") >= 0
    r = l.open("f.h5", 1)
    assert r > 0 and l.has(r, f"more{i}") and l.close(r) >= 0 and l.close(f) >= 0
print(len({line.split()[-1] for line in open("/proc/self/maps") if "libh5cow" in line}), "plugins")
"""
    done = programs.run([sys.executable, "-c", CTYPES + code, system[0]], {**STOCK, "HDF5_PLUGIN_PATH": path}, cwd=tmp_path)
    assert done.returncode == 0 and "2 plugins" in done.stdout, (done.stdout, done.stderr)
    assert versions(programs, tmp_path / "f.h5") == ["1", "2", "3", "4"]
    programs.verified(tmp_path / "f.h5")
