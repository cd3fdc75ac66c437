"""The Python package: enable(), open(), version(), versions(), verify(), and the command.

Here with the plugin and the command of the build folder, and the distribution's h5py, netCDF4 and PyTables, which share one
libhdf5. `./dev test --wheel` runs the same with the wheel and with PyPI's modules, which bring one each.
"""

import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import pytest
from conftest import PACKAGE as SOURCE, STOCK, VENV
from waiting import WAITING

ENV = {name: value for name, value in STOCK.items() if name != "H5COW_LIBHDF5"}


@pytest.fixture
def run(package, tmp_path):
    """Run Python code, or words as a command; standard output. It must end with CODE."""

    def run(program, *arguments, code=0, env=None):
        words = [python(), "-c", textwrap.dedent(program), *arguments] if isinstance(program, str) else program
        env = {**ENV, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
        done = subprocess.run([str(word) for word in words], cwd=tmp_path, env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=WAITING)
        assert done.returncode == code, (program, done.returncode, done.stdout, done.stderr)
        run.errors = done.stderr
        return done.stdout

    return run


def python():
    return f"{VENV}/bin/python" if VENV else sys.executable


WRITE = {
    "h5py": "import h5py\nwith h5py.File('x', 'a') as f: f.require_dataset('d', (9,), 'i4')[0] = {0}\n",
    "netCDF4": "import netCDF4\nd = netCDF4.Dataset('x', 'a'); d.setncattr('n', {0}); d.close()\n",
    "tables": "import tables\nf = tables.open_file('x', 'a'); f.root._v_attrs.n = {0}; f.close()\n",
}
MESSAGES = "print([v.message for v in h5cow.versions('x')])\n"
PLAIN = "try: h5cow.versions('x')\nexcept h5cow.Error as error: print(error)\n"


# ---- enable ----


@pytest.mark.parametrize("module", WRITE)
def test_enable_before_the_import(run, module):
    writes = "".join(WRITE[module].format(n) for n in range(3))
    assert run(f"import h5cow\nh5cow.enable(message='m')\n{writes}{MESSAGES}") == "['m', 'm', 'm']\n"
    assert run.errors == ""


def test_enable_after_the_import_of_h5py(run):
    writes = "".join(WRITE["h5py"].format(n) for n in range(2))
    assert run(f"import h5py, h5cow\nh5cow.enable(message='m')\n{writes}{MESSAGES}") == "['m', 'm']\n"
    assert run.errors == ""


@pytest.mark.parametrize("module", ["netCDF4", "tables"])
def test_enable_tells_that_it_comes_too_late(run, module):
    told = run(f"""
        import {module}, os, h5cow
        before = dict(os.environ)
        try:
            h5cow.enable()
        except h5cow.TooLate as error:
            print(error)
        print(os.environ == before)
    """)
    assert told.startswith(f"enable() comes too late for {module}, because HDF5 reads the environment once")
    assert told.endswith("\nTrue\n"), "nothing is half done"


def test_enable_again(run):
    """With the same options it is not too late; with others it is."""
    told = run("""
        import h5cow
        h5cow.enable(compress="gzip:4", threads=2)
        import netCDF4
        h5cow.enable(threads="2", compress="gzip")
        h5cow.enable()
        try:
            h5cow.enable(threads=3)
        except h5cow.TooLate:
            print("too late")
    """)
    assert told == "too late\n"


def test_enable_for_a_block(run):
    told = run("""
        import os, h5py, h5cow
        before = dict(os.environ)

        def write(name):
            with h5py.File(name, "a") as f:
                f.require_dataset("d", (9,), "i4")

        write("before")
        with h5cow.enable(message="outer"):
            write("outer")
            with h5cow.enable(message="inner"):
                write("inner")
            write("outer again")
        write("after")
        print(os.environ == before)
        for name in ("outer", "inner", "outer again"):
            print(h5cow.versions(name)[0].message)
        for name in ("before", "after"):
            try:
                h5cow.versions(name)
            except h5cow.Error:
                print(name, "is plain")
    """)
    assert told == "True\nouter\ninner\nouter\nbefore is plain\nafter is plain\n"


def test_enable_is_taken_back_in_any_order(run):
    told = run("""
        import os, h5cow
        before = dict(os.environ)
        all = [h5cow.enable(message=m) for m in "abc"]
        for n in (1, 0, 2):
            all[n].disable()
            print(os.environ.get("HDF5_VOL_CONNECTOR"))
        print(os.environ == before)
    """)
    assert told == "h5cow message=c\nh5cow message=c\nNone\nTrue\n"


def test_a_block_in_which_h5py_is_imported(run):
    """HDF5 has read an environment that holds no longer."""
    write = WRITE["h5py"].format(1)
    told = run(f"import h5cow\nwith h5cow.enable():\n    import h5py\n{write}{PLAIN}")
    assert "has no history" in told


def test_enable_in_what_h5cow_run_has_started(run, package):
    code = f"import h5cow\nh5cow.enable()\n{WRITE['h5py'].format(1)}"
    run([python(), "-m", "h5cow", "run", "-m", "of run", "--", python(), "-c", code])
    assert run("import h5cow\n" + MESSAGES) == "['of run']\n"
    assert run.errors == ""


def test_enable_reaches_child_processes(run):
    told = run(f"""
        import h5cow, subprocess, sys
        h5cow.enable(message="child")
        subprocess.run([sys.executable, "-c", {WRITE['h5py'].format(1)!r}], check=True)
        {MESSAGES}""")
    assert told == "['child']\n"


def test_another_library_is_warned_of(run):
    """One that no module is known to use, and that has read the environment."""
    told = run("""
        import ctypes, h5py, os, re, shutil, warnings, h5cow
        path = next(line.split()[5] for line in open("/proc/self/maps") if re.search(r"/libhdf5(_serial)?[-.]", line))
        shutil.copy(path, "libhdf5_mine.so")
        library = ctypes.CDLL(os.path.abspath("libhdf5_mine.so"))
        h5cow.enable(message="before it starts")
        library.H5open()
        with warnings.catch_warnings(record=True) as all:
            warnings.simplefilter("always")
            h5cow.enable(message="after")
        print([(w.category.__name__, "libhdf5_mine.so" in str(w.message)) for w in all])
    """)
    assert told == "[('TooLateWarning', True)]\n"


@pytest.mark.parametrize("variable, value, why", [("HDF5_PLUGIN_PRELOAD", "::", "forbids HDF5 to load any plugin")])
def test_enable_where_hdf5_loads_no_plugins(run, variable, value, why):
    told = run("import h5cow\ntry: h5cow.enable()\nexcept h5cow.Error as error: print(error)", env={variable: value})
    assert why in told


# ---- options ----

GOOD = {
    "at": ["1", "#2", "~0", "{2026-01-31T12:00}", "calibrated", "a b"],
    "name": ["1", "run 3", "x" * 64, "é" * 32],
    "message": ["", "a; b% = c\nd", " spaces ", "日本", "\x01\x7f"],
    "commit": ["close", "flush"],
    "compress": ["none", "gzip", "gzip:9", "gzip:0:none", "lzf", "lzf:byte", "blosc:zstd", "blosc:lz4hc:3:bit"],
    "chunk": ["4K", "4096", "1G", "256k"],
    "cache": ["0", "1024G", "32M"],
    "memory": ["1K", "1024G", "64M"],
    "pieces": ["on", "off", "16", "8K", "1G"],
    "threads": ["1", "64"],
    "sync": ["full", "normal", "off"],
    "lock_timeout": ["0", "86400", "1K"],
    "adopt": ["yes", "no"],
    "protect": ["on", "off"],
    "truncate": ["keep", "discard"],
    "keep": ["last:20", "daily:7,weekly:4+within:2y5m"],
}
BAD = {
    "at": ["", ".x", "a/b", "x@1", "x" * 65, "a\tb"],
    "name": ["", ".x", "~1", "#1", "{x", "a/b", "x@1", "é" * 33, "a\nb"],
    "commit": ["", "open", "Close"],
    "compress": ["", "zstd", "gzip:10", "gzip:4:bit", "gzip:", "lzf:4", "blosc", "blosc:snappy", "blosc:lz4:3:none:x", "none:1"],
    "chunk": ["4095", "2G", "-1", "1.5M", "", "4 K"],
    "cache": ["1025G", "x"],
    "memory": ["1023", "0", "1025G", "x"],
    "pieces": ["yes", "15", "2G", "", "-1"],
    "threads": ["0", "65", "1K"],
    "sync": ["on", "FULL"],
    "lock_timeout": ["86401", "-1"],
    "adopt": ["True", "1"],
    "truncate": ["", "yes"],
    "keep": ["", "last", "last:0", 20],
    "colour": ["red"],
}


@pytest.fixture(scope="module")
def encode(package):
    """The package's own, in this process."""
    sys.path.insert(0, str(package.parent))
    try:
        from h5cow._options import encode
    finally:
        sys.path.remove(str(package.parent))
    return encode


@pytest.mark.parametrize("good, table", [(True, GOOD), (False, BAD)])
def test_options_are_the_connector_s(run, package, encode, good, table):
    """What one takes the other takes, and every key of docs/options.md is known."""
    page = (SOURCE.parent.parent / "docs/options.md").read_text().split("\n## ")[0]
    keys = re.findall(r"^\| `(\w+)` \|", page, re.M)
    assert not good or set(keys) == set(GOOD)
    command, env = package / "plugin/h5cow", library(run)
    for key, values in table.items():
        for value in values:
            if good:
                assert encode({key: value}).startswith(f"{key}=")
            else:
                with pytest.raises(ValueError, match=key):
                    encode({key: value})
            run([command, "run", "-q", "-o", f"{key}={value}", "--", "true"], code=0 if good else 2, env=env)


def test_options_of_python_s_types(encode):
    import datetime

    assert encode({"adopt": True, "threads": 2, "at": None, "lock_timeout": 5}) == "adopt=yes;threads=2;lock_timeout=5"
    assert [encode({"at": at}) for at in (3, -1, -3)] == ["at=#3", "at=~0", "at=~2"]
    when = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
    assert encode({"at": when}) == "at={2026-01-31T11:00:00Z}"
    for wrong in ({"at": 0}, {"at": 1.5}, {"threads": True}, {"message": 5}, {"message": "\0"}, {"adopt": 2},
                  {"at": 1, "name": "x"}, {"at": 1, "message": "x"}, {"name": "x", "commit": "flush"},
                  {"at": "\udcff"}, {"name": "\udcff"}, {"message": "\ud800"}):
        with pytest.raises(ValueError, match="|".join(wrong)) as error:
            encode(wrong)
        assert type(error.value).__name__ == "OptionError"


def test_options_of_numpy_s_types(run):
    pytest.importorskip("numpy")
    assert run("""
        import numpy as np
        from h5cow import _options
        print(_options.encode({"at": np.int64(-1)}), _options.encode({"threads": np.uint8(3)}))
    """) == "at=~0 threads=3\n"


@pytest.mark.parametrize("message", GOOD["message"])
def test_any_message_comes_back(run, message):
    told = run(f"import h5cow\nh5cow.enable(message={message!r})\n{WRITE['h5py'].format(1)}{MESSAGES}")
    assert ast.literal_eval(told) == [message]


# ---- versions ----

THREE = """
import h5py, h5cow
for n in (1, 2, 3):
    with h5cow.version("x", name=None if n == 1 else f"v{n}", message=f"<{n}>") as f:
        f.require_dataset("d", (10000,), "i4", chunks=(100,))[:] = n
"""


def test_versions_are_records(run):
    told = json.loads(run(THREE + """
import datetime, dataclasses, json
before = datetime.datetime.now().astimezone() - datetime.timedelta(seconds=60)
all = h5cow.versions("x")
assert isinstance(all, list) and all[0] == h5cow.versions("x")[0]
assert all(v.time.tzinfo is not None and before < v.time for v in all) and all[0].time <= all[1].time <= all[2].time
table = all._repr_html_()
assert table.count("<tr>") == 4 and "&lt;1&gt;" in table and "<1>" not in table
print(json.dumps([{**dataclasses.asdict(v), "time": None} for v in all]))
""".replace("all(v.time", "__builtins__.all(v.time")))
    assert [v["number"] for v in told] == [1, 2, 3]
    assert [v["name"] for v in told] == ["1", "v2", "v3"]
    assert [v["message"] for v in told] == ["<1>", "<2>", "<3>"]
    assert [v["parent"] for v in told] == [None, "1", "v2"]
    assert all(v["size"] > 0 and v["changed"] > 0 and v["chunks"] == 1 and v["incomplete"] == [] for v in told)
    assert all(not v["open"] and v["user"] and v["host"] and "-c" in v["program"] for v in told)


def test_versions_that_cannot_be_told(run):
    told = run("""
        import h5py, h5cow
        h5py.File("plain", "w").close()
        for name in ("plain", "nowhere"):
            try:
                h5cow.versions(name)
            except h5cow.Error as error:
                print(error)
    """).splitlines()
    assert "plain" in told[0] and "no history" in told[0]
    assert "nowhere" in told[1] and "No such file" in told[1]


def test_a_time_that_no_calendar_has(run):
    """Of a damaged log, which the command shows as well."""
    told = run("""
        from h5cow import _history
        for microseconds in (-(1 << 63), 0, (1 << 63) - 1):
            print(_history._time(microseconds).year)
    """)
    assert told == "1\n1970\n9999\n"


# ---- open ----


def test_open_by_every_way_to_name_a_version(run):
    told = run(THREE + """
all = h5cow.versions("x")
for at in ("1", "v2", "#2", 2, -2, "~1", all[1], all[1].time, all[1].time.replace(tzinfo=None), -1, None):
    with h5cow.open("x", at=at) as f:
        print(f["d"][0], end=" ")
""")
    assert told == "1 2 2 2 2 2 2 2 2 3 3 "


def test_open_goes_through_the_connector_and_h5py_does_not(run):
    told = run(THREE + """
with h5cow.open("x", "r+", options={"message": "by open", "compress": "gzip"}) as f:
    f.create_dataset("e", data=[1] * 9999)
print(h5cow.versions("x")[-1].message)
with h5cow.open("y", "w") as f:
    f["d"] = 1
print(len(h5cow.versions("y")))
h5py.File("z", "w").close()
""" + PLAIN.replace("'x'", "'z'"))
    assert told.startswith("by open\n1\n") and "no history" in told


def test_open_keeps_the_options_of_enable(run):
    told = run("""
        import h5cow
        h5cow.enable(message="all; of them", threads=2)
        with h5cow.open("x", "w", options={"name": "first"}) as f:
            f["d"] = 1
        with h5cow.open("x", at="first") as f:
            print(f["d"][()])
        print([(v.name, v.message) for v in h5cow.versions("x")])
    """)
    assert told == "1\n[('first', 'all; of them')]\n"


def test_open_of_a_version_is_read_only(run):
    told = run(THREE + """
for arguments in ({"mode": "r+", "at": 1}, {"at": 1, "options": {"message": "x"}}, {"at": "a/b"}, {"at": 0}):
    try:
        h5cow.open("x", **arguments)
    except ValueError as error:
        print("refused")
try:
    h5cow.open("x", at="nothing")
except OSError as error:
    print("there is no version 'nothing'" in str(error))
""")
    assert told == "refused\n" * 4 + "True\n"


def test_open_by_a_name_in_bytes(run):
    assert run(THREE + "print(h5cow.open(b'x', at=1)['d'][0], len(h5cow.versions(b'x')))") == "1 3\n"


def test_a_file_that_is_called_like_a_version_is_not_taken_for_it(run):
    told = run(THREE + """
with h5py.File("x@1", "w") as f:
    f["d"] = [77]
print(h5cow.open("x", at="1")["d"][0])
""")
    assert told == "1\n"


def test_open_in_threads(run):
    """What one thread opens is none of the others' business."""
    told = run("""
        import sys, threading, h5py, h5cow
        sys.setswitchinterval(1e-6)

        def write(n):
            for i in range(20):
                with h5cow.open(f"x{n}", "a", options={"message": f"by {n}"}) as f:
                    f.attrs["i"] = i

        def write_plain():
            for i in range(100):
                h5py.File(f"plain{i}", "w").close()

        threads = [threading.Thread(target=write, args=(n,)) for n in range(3)] + [threading.Thread(target=write_plain)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        print(*({v.message for v in h5cow.versions(f"x{n}")} for n in range(3)))
        print({h5py.File(f"plain{i}", "r").id.get_filesize() for i in range(100)})
    """)
    assert re.fullmatch(r"{'by 0'} {'by 1'} {'by 2'}\n{\d+}\n", told)


# ---- version ----


def test_an_exception_rolls_a_version_back(run):
    told = run(THREE + """
import os
try:
    with h5cow.version("x", name="bad") as f:
        f["d"][:] = 9
        f["e"] = 9
        del f["d"]
        raise KeyError("mine")
except KeyError as error:
    print(error)
try:
    with h5cow.version("new") as f:
        f["d"] = 1
        raise SystemExit
except SystemExit:
    print(os.path.exists("new"))
with h5cow.open("x") as f:
    print(list(f), f["d"][0])
print(len(h5cow.versions("x")), h5cow.verify("x").damaged)
with h5cow.version("x", name="good") as f:
    f["d"][0] = 4
print(h5cow.versions("x")[-1].name)
""")
    assert told == "'mine'\nFalse\n['d'] 3\n3 False\ngood\n"


def test_a_version_of_a_plain_file_is_refused(run):
    """It could not be rolled back."""
    told = run("""
        import h5py, h5cow, os
        h5py.File("x", "w").close()
        before = open("x", "rb").read()
        try:
            with h5cow.version("x") as f:
                print("entered")
        except h5cow.Error as error:
            print(error)
        print(open("x", "rb").read() == before)
        with h5cow.version("x", options={"adopt": True}, message="second") as f:
            f["d"] = 1
        print(len(h5cow.versions("x")))
        try:
            with h5cow.version("x", "r") as f:
                print("entered")
        except ValueError as error:
            print("refused")
    """)
    assert re.fullmatch(r"x: the file has no history.*h5cow import.*\nTrue\n2\nrefused\n", told)


def test_a_version_of_what_could_not_be_brought_back_is_refused(run):
    """Mode w empties a file, and other drivers give new ones no history."""
    told = run(THREE + """
import os
with h5py.File("plain", "w") as f:
    f["d"] = 1
open("text", "w").write("no HDF5")
before = {name: open(name, "rb").read() for name in ("plain", "text", "x")}
for name, more in [("plain", {}), ("plain", {"options": {"adopt": True}}), ("text", {}), ("x", {"driver": "core"}),
                   ("x", {"driver": "stdio"})]:
    try:
        with h5cow.version(name, "w", **more) as f:
            print("entered")
    except h5cow.Error as error:
        print("refused")
try:
    with h5cow.version("new", driver="core") as f:
        print("entered")
except h5cow.Error:
    print("refused")
try:
    with h5cow.version("x", driver="core", backing_store=False) as f:
        print("entered")
except h5cow.Error:
    print("refused")
print({name: open(name, "rb").read() == bytes for name, bytes in before.items()}, sorted(os.listdir()))
open("empty", "w")
for name in ("empty", "x"):
    with h5cow.version(name, "w") as f:
        f["again"] = 1
try:
    with h5cow.version("x", "w") as f:
        raise KeyError
except KeyError:
    print(list(h5cow.open("x")), len(h5cow.versions("x")))
""")
    assert told == "refused\n" * 7 + "{'plain': True, 'text': True, 'x': True} ['plain', 'text', 'x']\n['again'] 4\n"


def test_a_version_of_a_file_that_is_being_written_here_is_refused(run):
    """Its name and message would get lost, and an exception would drop what others have written."""
    told = run(THREE + """
import threading
writing = h5cow.open("x", "r+")
writing["mine"] = 1
try:
    with h5cow.version("x", name="inner") as f:
        print("entered")
except h5cow.Error as error:
    print("close it first" in str(error))
writing["mine"][()] = 2
writing.close()
with h5cow.version("x", name="outer") as f:
    f["outer"] = 1
    try:
        with h5cow.version("x", name="inner") as g:
            g["inner"] = 1
            raise KeyError
    except h5cow.Error as error:
        print("close it first" in str(error))
print([v.name for v in h5cow.versions("x")], list(h5cow.open("x")))

made = []
def one(n):
    try:
        with h5cow.version("x", name=f"thread {n}") as f:
            f[f"thread {n}"] = n
        made.append(f"thread {n}")
    except h5cow.Error:
        pass
threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(made != [] and made == [v.name for v in h5cow.versions("x")][5:])
""")
    assert told == "True\nTrue\n['1', 'v2', 'v3', '4', 'outer'] ['d', 'mine', 'outer']\nTrue\n"


def test_a_version_is_made_when_the_block_ends_though_others_have_the_file(run):
    told = run(THREE + """
with h5cow.version("x", name="mine", message="m") as f:
    f["a"] = 1
    other = h5cow.open("x", "r+")
print([(v.name, v.open) for v in h5cow.versions("x")][3:])
other["b"] = 1
other.close()
print(len(h5cow.versions("x")), list(h5cow.open("x", at="mine")))
""")
    assert told == "[('mine', False)]\n5 ['a', 'd']\n"


def test_an_exception_in_a_forked_child_is_its_own(run):
    """The version is the parent's, which makes it."""
    told = run(THREE + """
import os
with h5cow.version("x", name="parent's") as f:
    f["d"][0] = 4
    child = os.fork()
    if child == 0:
        raise SystemExit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(h5cow.versions("x")[-1].name, h5cow.open("x")["d"][0])
""")
    assert told == "7\nparent's 4\n" and run.errors == ""


def test_a_version_that_cannot_be_committed_leaves_the_file_closed(run):
    told = run(THREE + """
import os, resource
import numpy as np
most = os.path.getsize("x") + 4096
try:
    with h5cow.version("x") as f:
        f["noise"] = np.random.default_rng(1).random(100000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
except (RuntimeError, OSError) as error:
    print("File too large" in str(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
with h5cow.version("x", name="after") as f:
    f["d"][0] = 4
print([v.name for v in h5cow.versions("x")], list(h5cow.open("x")))
""")
    assert told == "True\n['1', 'v2', 'v3', 'after'] ['d']\n"


def test_a_version_whose_name_is_taken(run):
    told = run(THREE + """
try:
    with h5cow.version("x", name="v2") as f:
        f["d"][:] = 9
except h5cow.Error as error:
    print("there is a version 'v2' already" in str(error))
print(h5cow.open("x")["d"][0])
""")
    assert told == "True\n3\n"


def test_what_a_block_has_flushed_stays(run):
    """It is committed, as any flush."""
    told = run(THREE + """
try:
    with h5cow.version("x") as f:
        f["d"][:] = 4
        f.flush()
        f["d"][:] = 5
        raise KeyError
except KeyError:
    pass
print(h5cow.open("x")["d"][0], [v.open for v in h5cow.versions("x")])
""")
    assert told == "4 [False, False, False, True]\n"


def test_a_file_that_the_block_has_closed(run):
    told = run(THREE + """
with h5cow.version("x") as f:
    f["d"][:] = 4
    f.close()
try:
    with h5cow.version("x") as f:
        f["d"][:] = 5
        f.close()
        raise KeyError
except KeyError:
    pass
print(len(h5cow.versions("x")))
""")
    assert told == "5\n"


# ---- verify ----


def test_verify_finds_damage(run, tmp_path):
    run(THREE.replace("[:] = n", "[:] = 0x5a5a5a5a + n"))
    told = run("import h5cow\nv = h5cow.verify('x')\nprint(v.damaged, v.damage, v.incomplete, v.checked['versions'])")
    assert told == "False () [] 3\n"
    data = bytearray((tmp_path / "x").read_bytes())
    at = data.find(b"\x5c\x5a\x5a\x5a" * 100)
    assert at > 0
    data[at] ^= 1
    (tmp_path / "x").write_bytes(data)
    told = run("import h5cow\nv = h5cow.verify('x')\nprint(v.damaged, v.damage[0].what)\nprint(v.damage[0].details['versions'])")
    assert told.startswith("True ") and "v2" in told.splitlines()[1]
    told = run("import h5cow\nfor at in 'v2', -1, 1:\n    v = h5cow.verify('x', since=at)\n    print(v.damaged, v.since)")
    assert told == "False v2\nFalse v3\nTrue 1\n"
    told = run("import h5cow\ntry: h5cow.verify('nowhere')\nexcept h5cow.Error as error: print(error)")
    assert "nowhere" in told and "No such file" in told


def test_diff_and_blame_are_records(run):
    told = run(THREE + """
import h5py, json
with h5cow.version("x", name="last") as f:
    f["new"] = 5
    data = [name for name in f if name != "new"][0]
    f[data].attrs["unit"] = "K"
changes = h5cow.diff("x")
assert isinstance(changes, list) and changes and not h5cow.diff("x", -1) and not h5cow.diff("x", "last", -1)
assert {c.path: c.change for c in changes} == {"/new": "added", "/" + data: "changed"}
assert [c.after for c in changes if c.path == "/new"] == ["dataset of int64 ()"]
assert changes._repr_html_().count("<tr>") == 3
assert [c.path for c in h5cow.diff("x", 1, 2, path="/" + data)] == ["/" + data]
detail = h5cow.diff("x", 1, 2, path="/" + data, values=1)[0].details["elements"]
assert len(detail["values"]) == 1 and not h5cow.diff("x", 1, 2, path="/" + data, absolute=1e9)
h5py.File("plain", "w").close()
assert {c.change for c in h5cow.diff("x", other="plain")} == {"removed"}
parts = h5cow.blame("x", "/" + data)
assert {p.version.name for p in parts} == {"v3"}
one = h5cow.blame("x", "/" + data, at=1, start=[0], count=[2])
assert (one[0].first, one[0].last, one[0].elements, one[0].version.number) == ((0,), (1,), 2, 1)
hashes = [h5cow.content_hash("x", at=name) for name in ("v3", "last")]
assert len({*hashes, h5cow.content_hash("x")}) == 2 and h5cow.content_hash("x", path="/new") != hashes[1]
for wrong in (lambda: h5cow.diff("x", "nowhere"), lambda: h5cow.blame("x", "/nowhere")):
    try:
        wrong()
    except h5cow.Error as error:
        print(json.dumps(str(error)))
""").splitlines()
    assert len(told) == 2 and all("nowhere" in error for error in told)


def test_forgetting_squashing_and_collecting_are_records(run):
    told = run(THREE + """
all = h5cow.versions("x")
would = h5cow.forget("x", keep_last=1, keep=[all[1]], dry_run=True)
print([(v.name, v.forget, v.reasons) for v in would.versions], would.forgotten, would.collected)
print(would.versions[0].time == all[0].time, len(h5cow.versions("x")))
for wrong in ({}, {"revisions": [-1]}, {"keep_last": 0}, {"keep_tags": ["none"]}, {"revisions": [1], "keep_last": 1},
              {"revisions": "12"}, {"revisions": "none"}, {"keep": "12"}, {"keep_tags": "none"}):
    try:
        h5cow.forget("x", **wrong)
    except h5cow.Error as error:
        print(type(error).__name__)
done = h5cow.forget("x", [all[0]], gc=True)
print(done.forgotten, done.frees == done.collected.bytes, [v.name for v in h5cow.versions("x")])
print([(v.name, v.forgotten) for v in h5cow.versions("x", forgotten=True)])
print(h5cow.squash("x", "v2", -1).forgotten, [v.name for v in h5cow.versions("x")])
print(h5cow.gc("x", dry_run=True).holes, h5cow.gc("x").chunks >= 0, h5cow.compact("x").after > 0, h5cow.verify("x").damaged)
""").splitlines()
    assert told == ["[('1', True, ()), ('v2', False, ('named',)), ('v3', False, ('newest', 'last'))] 1 None", "True 3",
                    *["Error"] * 9, "1 True ['v2', 'v3']", "[('1', True), ('v2', False), ('v3', False)]", "1 ['v3']",
                    "None True True False"]


# ---- the command ----

# Besides the package, its command and what they name: nothing that Python has not in memory when it starts.
LIGHT = {"h5cow", "h5cow.__main__", "h5cow._command", "h5cow._errors", "__future__"}


def test_the_command_starts_without_what_it_does_not_need(run, package, tmp_path):
    """Each start pays for what is imported first: modules are counted, no time is."""
    seen = "import sys\nbefore = set(sys.modules)\nimport os\nfrom h5cow import __main__\n"
    seen += "os.execve = lambda *words: print(sorted(set(sys.modules) - before))\nsys.argv = ['h5cow', 'run', '--help']\n__main__.main()"
    more = set(ast.literal_eval(run(seen))) - LIGHT
    needed = set(ast.literal_eval(run("import sys\nbefore = set(sys.modules)\nimport re\nprint(sorted(set(sys.modules) - before))")))
    assert more <= needed, more - needed


def test_every_name_is_there_when_it_is_asked_for(run):
    run("""
        import h5cow, sys
        assert "h5cow._history" not in sys.modules
        assert set(h5cow.__all__) <= set(dir(h5cow))
        assert all(getattr(h5cow, name).__module__.startswith("h5cow.") for name in h5cow.__all__)
        assert not hasattr(h5cow, "nothing")
    """)
    run("from h5cow import *\nassert enable.__module__ == 'h5cow._enable' and versions and Error")


def test_python_m_h5cow_is_the_command(run, package):
    run(THREE)
    words = [python(), "-m", "h5cow"]
    assert run([*words, "log", "--json", "x"]) == run([package / "plugin/h5cow", "log", "--json", "x"], env=library(run))
    assert run([*words, "--version"]) == "h5cow " + run("import h5cow\nprint(h5cow.__version__)")
    run([*words, "nonsense"], code=2)
    run([*words, "run", "-q", "--", "sh", "-c", "exit 7"], code=7)


def library(run):
    found = run("from h5cow._command import find_libhdf5\nprint(find_libhdf5() or '')").strip()
    return {"H5COW_LIBHDF5": found} if found else {}


@pytest.mark.parametrize("module", WRITE)
def test_h5cow_run_of_the_package(run, module):
    for n in (1, 2):
        run([python(), "-m", "h5cow", "run", "-m", f"run {n}", "--", python(), "-c", WRITE[module].format(n)])
        assert run.errors == "", "all was recorded"
    assert run("import h5cow\n" + MESSAGES) == "['run 1', 'run 2']\n"


def test_which_libhdf5_the_command_gets(run, tmp_path):
    """h5py's, else netCDF4's, else PyTables'; one that is too old is passed over, and nothing is imported."""
    find = "import sys\nsys.path[:0] = ['site']\nfrom h5cow._command import find_libhdf5\nprint(find_libhdf5())"
    names = {"tables": "tables.libs/libhdf5-b93485fa.so.310.5.1", "netCDF4": "netcdf4.libs/libhdf5-34cf00cd.so.320.2.0",
             "h5py": "h5py.libs/libhdf5-9e18f0c6.so.200.0.0"}
    found = []
    for module in ("h5py", "netCDF4", "tables"):
        (tmp_path / "site" / module).mkdir(parents=True)
        (tmp_path / "site" / module / "__init__.py").write_text("raise SystemExit('imported')")
    for module, name in names.items():
        path = tmp_path / "site" / name
        path.parent.mkdir()
        path.touch()
        (path.parent / "libhdf5_hl-69da89c9.so.320.0.0").touch()
        found.append(run(find).strip())
    path.with_name("libhdf5-9e18f0c6.so.320.0.0").touch()
    found.append(run(find).strip())
    assert [pathlib.Path(f).parent.name for f in found] == ["tables.libs", "netcdf4.libs", "netcdf4.libs", "h5py.libs"]


@pytest.mark.skipif(bool(VENV), reason="there is no compiler's libhdf5 beside the wheel")
def test_a_libhdf5_that_leaves_it_to_others_what_it_needs(run, tmp_path, package):
    """As in older wheels: what libhdf5 needs is beside it, and it does not say so."""
    cc = ["cc", "-shared", "-fPIC", "-xc", "/dev/null", "-Wl,--no-as-needed", f"-L{tmp_path}"]
    real = run(["pkg-config", "--libs", "hdf5"]).split()
    run([*cc, "-o", "libinner-1.so", "-Wl,-soname,libinner-1.so"])
    run([*cc, "-o", "libouter-2.so", "-Wl,-soname,libouter-2.so", "-linner-1"])
    run([*cc, "-o", "libhdf5-3.so.310", "-louter-2", *real])
    run(THREE)
    command, env = package / "plugin/h5cow", {"H5COW_LIBHDF5": str(tmp_path / "libhdf5-3.so.310")}
    assert "v2" in run([command, "log", "x"], env=env)
    (tmp_path / "libinner-1.so").unlink()
    run([command, "log", "x"], env=env, code=2)
    assert "libinner-1.so: cannot open shared object file" in run.errors


def test_plugins_of_others_are_found_as_before(run, tmp_path):
    """netCDF4 sets HDF5_PLUGIN_PATH to its own filters, but only where nobody else has."""
    plugins = tmp_path / "site/netCDF4/plugins"
    plugins.mkdir(parents=True)
    (tmp_path / "site/netCDF4/__init__.py").touch()
    show = "import os, sys\nsys.path[:0] = ['site']\nimport h5cow\nh5cow.enable()\nprint(os.environ['HDF5_PLUGIN_PATH'])"
    first, second, *_ = run(show).strip().split(":")
    assert (pathlib.Path(first).name, second) == ("plugin", str(plugins))
    first, *others = run(show, env={"HDF5_PLUGIN_PATH": "/a:/b"}).strip().split(":")
    assert others == ["/a", "/b"]


# ---- the package ----


def test_the_package_is_typed_and_runs_on_python_3_9():
    assert (SOURCE / "py.typed").exists()
    for path in SOURCE.glob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 9))


@pytest.mark.skipif(not VENV or not shutil.which("mypy", path=f"{VENV}/bin"), reason="mypy is PyPI's: only with ./dev test --wheel")
def test_the_types_are_right(run):
    run([f"{VENV}/bin/mypy", "--strict", "--ignore-missing-imports", SOURCE], env={"PYTHONPATH": ""})


def test_importing_it_imports_nothing_heavy(run):
    told = run("import sys, h5cow\nprint([m for m in ('h5py', 'numpy', 'netCDF4', 'tables') if m in sys.modules])")
    assert told == "[]\n"
