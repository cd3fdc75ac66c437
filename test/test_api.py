"""api/h5cow.h and h5cow.f90 from outside: they compile alone, strictly, in each language; what they tell is what the
command tells; and docs/api.md does what it says. What the functions do and refuse: test_api.c.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess

import h5py
import pytest
from conftest import H5COW, PLUGINS, STOCK, h5cow, unfence
from waiting import WAITING

TOP = pathlib.Path(__file__).resolve().parent.parent
API = TOP / "api"
PAGE = (TOP / "docs/api.md").read_text()
BLOCKS = re.findall(r"^```(\w+)(?: ([\w+]+))?\n(.*?)^```$", PAGE, re.M | re.S)
FORTRAN = ["-lhdf5_serial_fortran"]  # Debian's name
STRICT = ["-Wall", "-Wextra", "-Wshadow", "-pedantic", "-Werror"]


def flags(what):
    return subprocess.run(["pkg-config", what, "hdf5"], check=True, capture_output=True, text=True).stdout.split()


def compiler(name, language):
    if shutil.which(name) is None:
        pytest.skip(f"there is no {language} compiler here ({name})")
    return name


def has_fortran():
    """A compiler, and HDF5's own library for it."""
    if shutil.which("gfortran") is None:
        return False
    use = "use hdf5\ninteger :: e\ncall h5open_f(e)\nend\n"
    command = ["gfortran", "-x", "f95", "-", "-o", "/dev/null", *flags("--cflags"), *FORTRAN, *flags("--libs")]
    return subprocess.run(command, input=use, capture_output=True, text=True).returncode == 0


def built(command, cwd):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stdout, done.stderr)


def through(command, cwd, options="", code=0):
    env = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS, "HDF5_VOL_CONNECTOR": f"h5cow {options}".strip()}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=env, capture_output=True, text=True, timeout=WAITING)
    assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


# ---- alone ----


@pytest.mark.parametrize("standard", ["c99", "c11", "c17"])
def test_the_header_is_strict_c(tmp_path, standard):
    (tmp_path / "a.c").write_text("#include <h5cow.h>\n#include <h5cow.h>\nint main(void) { return 0; }\n")
    built(["cc", f"-std={standard}", *STRICT, "-Wstrict-prototypes", f"-I{API}", *flags("--cflags"), "a.c", "-o", "a",
           *flags("--libs")], tmp_path)


@pytest.mark.parametrize("standard", ["c++11", "c++20"])
def test_the_header_is_strict_cpp(tmp_path, standard):
    (tmp_path / "a.cpp").write_text("#include <h5cow.h>\n#include <h5cow.h>\nint main() { return h5cow_free(nullptr); }\n")
    built([compiler("c++", "C++"), f"-std={standard}", *STRICT, f"-I{API}", *flags("--cflags"), "a.cpp", "-o", "a",
           *flags("--libs")], tmp_path)
    built(["./a"], tmp_path)


def test_the_header_needs_nothing_but_libhdf5():
    """Neither of ours, nor of HDF5's other libraries."""
    text = re.sub(r"/\*.*?\*/", "", (API / "h5cow.h").read_text(), flags=re.S)
    assert set(re.findall(r"#include <(\S+)>", text)) == {"hdf5.h", "stddef.h", "stdint.h", "string.h"}
    assert '#include "' not in text
    for function in re.findall(r"^static (.*)\(.*\)$", text, re.M):
        assert function.startswith("inline ")


@pytest.mark.parametrize("standard", ["f2008", "f2018"])
def test_the_module_is_strict_fortran(tmp_path, standard):
    built([compiler("gfortran", "Fortran"), f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror", "-c",
           API / "h5cow.f90"], tmp_path)


# ---- what is told ----

LIST = r"""
#include <h5cow.h>
#include <stdio.h>

static void text(const char *name, const char *value)
{
    printf(", \"%s\": \"", name);
    for (const unsigned char *c = (const unsigned char *)value; *c != 0; c++)
        if (*c < ' ' || *c == '"' || *c == '\\' || *c == 0x7f)
            printf("\\u%04x", *c);
        else
            putchar(*c);
    putchar('"');
}

int main(int argc, char **argv)
{
    hid_t file = H5Fopen(argv[argc - 1], H5F_ACC_RDONLY, H5P_DEFAULT);
    h5cow_version_t *v;
    size_t count;

    if (h5cow_versions(file, &count, &v) < 0)
        return 1;
    H5Fclose(file);
    H5close(); /* what was told stays */
    for (size_t i = 0; i < count; i++) {
        printf("%s{\"number\": %llu, \"parent_number\": %llu, \"time_us\": %lld, \"nanoseconds\": %lld, \"open\": %d, "
               "\"incomplete\": %d, \"added\": %lld, \"chunks\": %lld, \"changed\": %lld", i == 0 ? "[" : ", ",
               (unsigned long long)v[i].number, (unsigned long long)v[i].parent,
               (long long)v[i].seconds * 1000000 + v[i].nanoseconds / 1000, (long long)v[i].nanoseconds, v[i].unfinished,
               v[i].incomplete, (long long)v[i].added, (long long)v[i].chunks, (long long)v[i].changed);
        text("name", v[i].name);
        text("message", v[i].message);
        text("user", v[i].user);
        text("host", v[i].host);
        text("program", v[i].program);
        text("hdf5", v[i].hdf5);
        text("h5cow", v[i].h5cow);
        printf(", \"tags\": [");
        for (size_t t = 0; t < v[i].tag_count; t++)
            printf("%s\"%s\"", t == 0 ? "" : ", ", v[i].tags[t]);
        printf("]}");
    }
    puts(count == 0 ? "[]" : "]");
    return 0;
}
"""


@pytest.fixture(scope="module")
def lister(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lister")
    (folder / "list.c").write_text(LIST)
    built(["cc", "-std=c99", *STRICT, f"-I{API}", *flags("--cflags"), "list.c", "-o", "list", *flags("--libs")], folder)
    return folder / "list"


def told(lister, path):
    return json.loads(through([lister, path], path.parent))


def agree(lister, path):
    """All that both know, in the order of numbers."""
    ours, theirs = told(lister, path), json.loads(h5cow("log", "--json", path))[::-1]
    assert [v["number"] for v in ours] == list(range(1, len(ours) + 1))
    names = {v["number"]: v["name"] for v in theirs} | {0: None}
    for a, b in zip(ours, theirs, strict=True):
        assert names[a["parent_number"]] == b["parent"] and bool(a["open"]) == b["open"]
        assert bool(a["incomplete"]) == bool(b["incomplete"])
        for key in ("number", "name", "message", "user", "host", "program", "hdf5", "h5cow", "time_us", "added", "chunks",
                    "changed"):
            assert a[key] == b[key], key
    return ours


WRITE = """
with h5py.File(sys.argv[1], "a") as f:
    d = f.require_dataset("d", (5000,), "i4", chunks=(1000,))
    d[...] = np.arange(5000) * int(sys.argv[2])
"""


def test_what_is_told_is_what_the_command_tells(programs, lister, tmp_path):
    path = tmp_path / "a.h5"
    programs.python(WRITE, path, 1)
    programs.python(WRITE, path, 2, options='name=a b;message=two%0Alines "quoted" \\ \xe4')
    programs.python(WRITE + "\n    f.flush(); import os; os._exit(0)\n", path, 3, options="message=never finished")
    programs.python(WRITE, path, 4)
    ours = agree(lister, path)
    assert [v["name"] for v in ours] == ["1", "a b", "3", "4"] and [v["open"] for v in ours] == [0, 0, 1, 0]
    assert ours[1]["message"] == 'two\nlines "quoted" \\ \xe4' and ours[2]["message"] == "never finished"
    assert told(lister, tmp_path / "a.h5@1") == ours  # of any version, all are told


def test_an_incomplete_version_is_told(programs, lister, tmp_path):
    """The elements of a small dataset in the head are damaged."""
    path = tmp_path / "a.h5"
    code = """
    with h5py.File(sys.argv[1], "a") as f:
        f.require_dataset("small", (500,), "i4", data=np.arange(500))
        f.attrs["n"] = int(sys.argv[2])
    """
    programs.python(code, path, 1)
    with h5py.File(path, "r") as f:
        at = f["small"].id.get_offset()
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    programs.python(code.replace('f.require', 'f.attrs["m"] = 2; f["small"].attrs["x"] = 1; 0 and f.require'), path, 2)
    assert [v["incomplete"] for v in agree(lister, path)] == [0, 1]


def test_tags_are_told(programs, lister, tmp_path):
    path = tmp_path / "a.h5"
    for n in (1, 2, 3):
        programs.python(WRITE, path, n)
    unfence(path)
    with h5py.File(path, "r+") as f:
        tags = f["_versioned_data/tags"]
        for name, version in {"newest": "3", "b": "1", "a": "1", "lost": "9", "deep": "1/d"}.items():
            tags[name] = h5py.SoftLink(f"/_versioned_data/versions/{version}")
        tags["elsewhere"] = h5py.SoftLink("/d")
        tags["not soft"] = f["d"]
    assert [v["tags"] for v in told(lister, path)] == [["a", "b"], [], ["newest"]]


def test_a_damaged_log_is_an_error(programs, lister, tmp_path):
    path = tmp_path / "a.h5"
    programs.python(WRITE, path, 1)
    unfence(path)
    with h5py.File(path, "r+") as f:
        del f["_versioned_data/log"]
        f["_versioned_data/log"] = [1, 2, 3]
    through([lister, path], tmp_path, code=1)


# ---- libraries above HDF5 ----

ABORT = """
import ctypes, sys, h5py

hdf5 = ctypes.CDLL(h5py.h5f.__file__)

class Arguments(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int), ("argument", ctypes.c_void_p)]

def abort():
    "The one file of this program."
    ids = (ctypes.c_int64 * 1)()
    assert hdf5.H5Fget_obj_ids(ctypes.c_int64(0x1F), 1, ctypes.c_size_t(1), ids) == 1  # H5F_OBJ_ALL, of files
    size, number = ctypes.c_size_t(8), ctypes.c_int()
    assert hdf5.H5VLfind_opt_operation(6, b"h5cow.abort", ctypes.byref(number)) >= 0
    args = Arguments(number.value, ctypes.addressof(size))
    assert hdf5.H5VLfile_optional_op(b"", b"", 0, ctypes.c_int64(ids[0]), ctypes.byref(args), ctypes.c_int64(0),
                                     ctypes.c_int64(0)) >= 0

for n in (1, 2):
"""
LIBRARIES = {
    "h5py, of a file that keeps its free space": """
    with h5py.File("a", "r+" if n == 2 else "w", **({} if n == 2 else dict(fs_strategy="page", fs_persist=True))) as f:
        f.require_dataset("x", (3000,), "i4")[...] = n
        if n == 2: abort()
print(h5py.File("a")["x"][0])""",
    "h5py": """
    with h5py.File("a", "a") as f:
        f.require_dataset("x", (3000,), "i4")[...] = n
        if n == 2: abort()
print(h5py.File("a")["x"][0])""",
    "tables": """
    import tables
    with tables.open_file("a", "a") as f:
        if "x" not in f.root: f.create_carray("/", "x", tables.Int32Atom(), (3000,))
        f.root.x[:] = n
        if n == 2: abort()
with tables.open_file("a") as f: print(f.root.x[0])""",
    "netCDF4": """
    import netCDF4
    with netCDF4.Dataset("a", "a" if n == 2 else "w") as f:
        if n == 1: f.createDimension("t", 3000); f.createVariable("x", "i4", ("t",))
        f["x"][:] = n
        if n == 2: abort()
print(netCDF4.Dataset("a")["x"][0])""",
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries_close_what_was_aborted(programs, tmp_path, library):
    done = programs.connector("python3", "-c", ABORT + LIBRARIES[library], cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert len(json.loads(h5cow("log", "--json", tmp_path / "a"))) == 1


# ---- Fortran ----

ERRORS = """
program errors
  use hdf5
  use h5cow
  implicit none
  integer(hid_t) :: file
  integer :: hdferr
  integer(kind=8) :: number
  logical :: has, old, uncommitted
  character(len=100) :: name
  type(h5cow_version_t) :: version
  type(h5cow_version_t), allocatable :: versions(:)

  call get_command_argument(1, name)
  call h5open_f(hdferr)
  call h5fopen_f(trim(name), H5F_ACC_RDWR_F, file, hdferr)
  call h5cow_has_history_f(file, has, hdferr)
  print *, has, hdferr
  call h5cow_version_f(file, version, hdferr, old, uncommitted)
  print *, version%number, hdferr, old, uncommitted
  if (version%number > 0) print *, version%name, '|', version%message, '|', version%h5cow, ubound(version%tags, 1)
  call h5cow_describe_f(file, hdferr, name='a/b')
  print *, hdferr
  call h5cow_commit_f(file, hdferr, number)
  print *, hdferr, number
  call h5cow_abort_f(file, hdferr)
  print *, hdferr
  call h5cow_versions_f(file, versions, hdferr)
  print *, hdferr, ubound(versions, 1)
  call h5cow_abort_f(-1_hid_t, hdferr)
  print *, hdferr
  call h5fclose_f(file, hdferr)
  call h5fopen_f(trim(name), H5F_ACC_RDWR_F, file, hdferr)
  call h5cow_tag_f(file, 'latest ', 'mark', hdferr)
  print *, 'named', hdferr
  call h5cow_set_message_f(file, 'mark', 'from Fortran', hdferr)
  print *, hdferr
  call h5cow_rename_f(file, 'mark', 'first', hdferr)
  print *, hdferr
  call h5cow_untag_f(file, 'mark', hdferr)
  print *, hdferr
  call h5cow_restore_f(file, 'first', hdferr, path='/', differs=has)
  print *, hdferr, has
  call h5cow_tag_f(file, 'none', 'mark', hdferr)
  print *, hdferr
  call h5cow_forget_f(file, ['first ', 'latest'], hdferr, dry_run=.true., forgotten=number)
  print *, hdferr, any(versions%forgotten)
  call h5cow_collect_f(file, hdferr, chunks=number)
  print *, hdferr, number
  call h5fclose_f(file, hdferr)
  call h5close_f(hdferr)
end program errors
"""


def test_fortran_tells_the_same_and_the_same_errors(programs, tmp_path):
    if not has_fortran():
        pytest.skip("there is no Fortran compiler here, or no Fortran library of HDF5")
    (tmp_path / "errors.f90").write_text(ERRORS)
    built(["gfortran", "-o", "errors", API / "h5cow.f90", "errors.f90", *flags("--cflags"), *FORTRAN, *flags("--libs")], tmp_path)
    programs.python(WRITE, tmp_path / "a.h5", 1, options="message=from Python")
    done = programs.connector(tmp_path / "errors", "a.h5", cwd=tmp_path)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines == [["T", "0"], ["1", "0", "F", "F"], ["1|from", "Python|0.1.0", "0"], ["-1"], ["0", "0"], ["0"], ["0", "1"],
                     ["-1"], ["named", "0"], ["0"], ["0"], ["0"], ["0", "F"], ["-1"], ["-1", "F"], ["0", "0"]], done.stdout
    assert "name=a/b: allowed is 1 to 64 bytes" in done.stderr and "not the id of a file" in done.stderr
    assert done.stderr.count("HDF5-DIAG") == 4
    with h5py.File(tmp_path / "plain.h5", "w") as f:
        f["x"] = 1
    done = programs.stock(tmp_path / "errors", "plain.h5", cwd=tmp_path)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines == [["F", "0"], ["0", "-1", "F", "F"], ["-1"], ["-1", "0"], ["-1"], ["-1", "0"], ["-1"],
                     ["named", "-1"], ["-1"], ["-1"], ["-1"], ["-1", "F"], ["-1"], ["-1", "F"], ["-1", "0"]], done.stdout
    assert done.stderr.count("HDF5_VOL_CONNECTOR=h5cow") == 13 == done.stderr.count("HDF5-DIAG") - 1
    for name in ("version", "describe", "commit", "abort", "versions"):
        assert f"in h5cow_{name}_f()" in done.stderr


# ---- the page ----


def test_every_block_of_the_page(tmp_path):
    env = {**STOCK, "PATH": f"{pathlib.Path(H5COW).parent}:{os.environ['PATH']}", "HDF5_PLUGIN_PATH": PLUGINS,
           "CPATH": str(API), "H5COW_INCLUDE": str(API), "COLUMNS": "200"}
    said, ran = None, 0
    missing = {"c++": shutil.which("c++") is None, "fortran": not has_fortran()}
    for kind, language, text in BLOCKS:
        if kind in ("c", "cpp", "fortran", "python"):
            name = re.match(r"(?:/\*|//|!|#) (\w+\.\w+)\b", text)
            assert name, f"this block has no name: {text}"
            (tmp_path / name[1]).write_text(text)
            continue
        if kind == "text":
            assert said in (text, None)
            continue
        assert kind == "sh", kind
        if missing.get(language):
            said = None
            continue
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], cwd=tmp_path, env=env, capture_output=True,
                              text=True, timeout=WAITING)
        assert done.returncode == 0, (text, done.stdout, done.stderr)
        said, ran = done.stdout, ran + 1
    assert ran >= 3


def test_the_page_has_every_function_and_operation():
    header = (API / "h5cow.h").read_text()
    for function in re.findall(r"^static inline \w+ (h5cow_(?!private)\w+)\(", header, re.M):
        assert f"`{function}(" in PAGE, function
    for operation in re.findall(r'"(h5cow\.\w+)"', header):
        assert f"| `{operation}` |" in PAGE, operation
    for routine in re.findall(r"^  subroutine (h5cow_\w+)\(", (API / "h5cow.f90").read_text(), re.M):
        assert f"`{routine}(" in PAGE, routine


def test_the_page_has_the_layout_of_every_structure(tmp_path):
    rows, structure = [], None
    for line in re.search(r"\| structure \| offset .*?\n\n", PAGE, re.S)[0].splitlines()[2:]:
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        if len(cells) < 5:
            continue
        structure = cells[0] or structure
        rows.append((structure, int(cells[1]), cells[2], cells[4]))
    header = re.sub(r"/\*.*?\*/", "", (API / "h5cow.h").read_text(), flags=re.S)
    declared = {name: re.findall(r"(\w+)\s*(?=[,;])", body)
                for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", header, re.S)}
    assert {name: [row[2] for row in rows if row[0] == name] for name in declared} == declared
    tests = "".join(f'if (offsetof({s}, {m}) != {at}) {{ puts("{s}.{m}"); return 1; }}\n' for s, at, m, _ in rows)
    sizes = {s: int(re.match(r"\d+", note)[0]) for s, _, m, note in rows if m == "size"}
    tests += "".join(f'if (sizeof({s}) != {size}) {{ puts("{s}"); return 1; }}\n' for s, size in sizes.items())
    (tmp_path / "a.c").write_text(f"#include <h5cow.h>\n#include <stdio.h>\nint main(void) {{\n{tests}return 0; }}\n")
    built(["cc", f"-I{API}", *flags("--cflags"), "a.c", "-o", "a", *flags("--libs")], tmp_path)
    built(["./a"], tmp_path)


def test_messages_on_the_page_are_those_of_the_sources():
    sources = "".join(re.sub(r'"\s*\n\s*"', "", (TOP / name).read_text())
                      for name in ("api/h5cow.h", "connector/vol/operations.c"))
    table = re.search(r"\| \| message \|\n.*?\n\n", PAGE, re.S)[0].splitlines()[2:]
    messages = [line.strip("|").split("|")[1].strip() for line in table if line.strip("| -")]
    assert len(messages) == 6
    for message in messages:
        pattern = message.replace("FILE: ", "%s: ").replace("version NAME", "version %s")
        assert pattern in sources, message
