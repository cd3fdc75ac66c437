"""h5cow doctor --program and h5cow run: which libhdf5 the programs have loaded, who serves each, and what is not served and why.

Libraries are those of test_libraries.py: copies of the system's under other names, some with another number. Programs whose
library has never asked for the connector are seen only while they run, so those of the tests linger until every h5cow above
them has looked: it sleeps after each look, and Linux counts how often a process has (/proc/PID/status).
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import H5COW, PLUGINS, STOCK
from test_libraries import CTYPES, NO_COPIES, TWO, another, compile_shared, numbered, system  # noqa: F401
from waiting import WAITING

PLUGIN = os.path.realpath(PLUGINS.split(":")[0] + "/libh5cow.so")
CHOSEN = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS, "HDF5_VOL_CONNECTOR": "h5cow"}
LOOKS = 8  # one would do if it had no other reason to sleep
LINGER = f"""
import os, re, time
def status(pid, name):
    with open(f'/proc/{{pid}}/status') as f:
        return int(re.search(rf'^{{name}}:\\s*(\\d+)', f.read(), re.M)[1])
above, pid = [], os.getpid()
while (pid := status(pid, 'PPid')) > 1:
    if os.path.basename(os.readlink(f'/proc/{{pid}}/exe')) == 'h5cow':
        above.append((pid, status(pid, 'voluntary_ctxt_switches')))
assert above
while any(status(pid, 'voluntary_ctxt_switches') < began + {LOOKS} for pid, began in above):
    time.sleep(0.01)
try: # what was forked looks as often, and who is above goes only then
    while True:
        os.wait()
except ChildProcessError:
    pass
"""
ONE = "library(sys.argv[1]).version('f.h5', 'g')\n"


def clear(folder):
    """A file of an earlier run has its groups already."""
    for file in pathlib.Path(folder).glob("*.h5"):
        file.unlink()


def program(*words, code=0, env=CHOSEN, **more):
    """What doctor tells of it, as JSON and in words; and its standard error."""
    answers = []
    for json_too in ["--json"], []:
        clear(more.get("cwd", "/nowhere"))
        done = subprocess.run([H5COW, "doctor", *json_too, "--program", *map(str, words)], capture_output=True, text=True,
                              env=env, timeout=WAITING, **more)  # fmt: skip
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        answers.append(done.stdout)
    told = json.loads(answers[0])
    for line in told["problems"]:
        assert f"Problem: {line}." in answers[1]
    for library in told["program"].get("libraries", []):
        assert library["file"] in answers[1] and (library["plugin"] or library["why_not"]) in answers[1]
    return told, done.stderr


def python(code, *arguments, before=()):
    return [*before, sys.executable, "-c", CTYPES + code, *map(str, arguments)]


def libraries(told):
    return {os.path.basename(each["file"]): each for each in told["program"]["libraries"]}


def run(*words, **more):
    """What it says when the command has ended."""
    clear(more.get("cwd", "/nowhere"))
    done = subprocess.run([H5COW, "run", *map(str, words)], capture_output=True, text=True, env=STOCK, timeout=WAITING, **more)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("h5cow: ")]


# ---- what is served --------------------------------------------------------------------------------------------------


def test_one_library_is_served_by_the_file_of_the_plugin(system, tmp_path):  # noqa: F811
    told, said = program(*python(ONE + "print('printed')" + LINGER, system[0]), cwd=tmp_path)
    assert "printed" in said
    of = told["program"]
    assert (of["exit_code"], of["ran"], of["looked_at"], of["opened_files"], of["made_versions"]) == (0, True, True, True, True)
    [library] = of["libraries"]
    assert library["file"] == os.path.realpath(system[0]) and re.fullmatch(r"\d+\.\d+\.\d+", library["version"])
    assert (library["service"], library["instance"], library["processes"]) == ("served", "file", 1)
    assert os.path.realpath(library["plugin"]) == PLUGIN and library["program"] == os.path.realpath(sys.executable)


def test_two_libraries_have_an_instance_each(system, another, tmp_path):  # noqa: F811
    told, _ = program(*python(TWO, system[0], another()), cwd=tmp_path)
    found = libraries(told)
    assert len(found) == 2 and {each["service"] for each in found.values()} == {"served"}
    assert found["libother.so"]["instance"] == "copy in memory" and found["libother.so"]["plugin"] == PLUGIN
    (tmp_path / "shim.c").write_text(NO_COPIES[: NO_COPIES.index("int mkostemps")])
    compile_shared(tmp_path / "shim.c", tmp_path / "shim.so")
    shim = ("env", f"LD_PRELOAD={tmp_path}/shim.so")
    told, _ = program(*python(TWO, system[0], another(), before=shim), cwd=tmp_path)
    assert libraries(told)["libother.so"]["instance"] == "copy in a temporary folder"


def test_what_a_child_of_a_fork_has_is_known_from_its_parent(system, tmp_path):  # noqa: F811
    code = ONE + "for i in range(2): os.fork()\nlibrary(sys.argv[1]).version(f'{os.getpid()}.h5', 'g')" + LINGER
    told, _ = program(*python(code, system[0]), cwd=tmp_path)
    [library] = told["program"]["libraries"]
    assert (library["service"], library["processes"]) == ("served", 4)


def test_programs_that_a_run_starts_are_told(system, tmp_path):  # noqa: F811
    told, said = program(H5COW, "run", "--", *python(ONE + LINGER, system[0]), cwd=tmp_path, env=STOCK)
    [library] = told["program"]["libraries"]
    assert library["service"] == "served" and told["program"]["made_versions"] and said == ""


# ---- what is not -----------------------------------------------------------------------------------------------------


def test_a_library_that_is_refused_is_told_with_the_reason(another, tmp_path):  # noqa: F811
    lacking = another("lacking", changes=[(b"H5Dscatter", b"H5Dscattex")])
    code = "l = library(sys.argv[1])\nassert l.create('f.h5') < 0\n"
    told, _ = program(*python(code, lacking), code=1, cwd=tmp_path)
    [library] = told["program"]["libraries"]
    assert (library["service"], library["why_not"], library["instance"]) == ("refused", "it lacks H5Dscatter", None)
    assert any("it lacks H5Dscatter" in line and str(lacking) in line for line in told["problems"])
    lines = [line for line in run("--", *python(code + LINGER, lacking), cwd=tmp_path) if "makes no version with" in line]
    assert len(lines) == 1 and "it lacks H5Dscatter" in lines[0] and str(lacking) in lines[0], lines
    assert not any("makes no version with" in line for line in run("-q", "--", *python(code + LINGER, lacking), cwd=tmp_path))


@pytest.mark.parametrize("asks", [True, False], ids=["1.12", "1.10"])
def test_an_older_library_is_told(system, another, asks, tmp_path):  # noqa: F811
    """1.12 asks for the connector and does not take it; 1.10 knows of none, as here where it looks for another variable."""
    old = numbered(system, another, "1.12.3" if asks else "1.10.9", changes=() if asks else [
        (b"HDF5_VOL_CONNECTOR", b"HDF5_VOL_CONNECTXX")])  # fmt: skip
    code = "l = library(sys.argv[1])\nl.close(l.create('f.h5'))\n" + LINGER
    told, _ = program(*python(code, old), code=1, cwd=tmp_path)
    [library] = told["program"]["libraries"]
    assert library["service"] == "refused" and library["why_not"] == "h5cow needs HDF5 1.14 or newer", library
    for inner, lines in ([], 1), ([H5COW, "run", "--"], 1), ([H5COW, "run", "-q", "--"], 0):  # the inner one tells, once
        said = [line for line in run("--", *inner, *python(code, old), cwd=tmp_path) if "makes no version with" in line]
        assert len(said) == lines and all(str(old) in line and "1.14 or newer" in line for line in said), said


def test_an_older_library_beside_one_that_is_served(system, another, tmp_path):  # noqa: F811
    old = numbered(system, another, "1.10.9", changes=[(b"HDF5_VOL_CONNECTOR", b"HDF5_VOL_CONNECTXX")])
    os.rename(old, tmp_path / "libhdf5-old.so")
    code = ONE + "library('./libhdf5-old.so')\n" + LINGER
    told, _ = program(*python(code, system[0]), code=1, cwd=tmp_path)
    assert {each["service"] for each in told["program"]["libraries"]} == {"served", "refused"}
    [line] = run("--", *python(code, system[0]), cwd=tmp_path)
    assert "libhdf5-old.so" in line and "1.14 or newer" in line


def test_what_keeps_a_library_from_finding_the_plugin_is_told(system, tmp_path):  # noqa: F811
    words = python("library(sys.argv[1])" + LINGER, system[0])
    for change, reason, service in (
        ({"HDF5_PLUGIN_PATH": str(tmp_path)}, "no folder of HDF5_PLUGIN_PATH has libh5cow.so", "refused"),
        ({"HDF5_PLUGIN_PRELOAD": "::"}, "HDF5_PLUGIN_PRELOAD=:: forbids HDF5 to load plugins", "refused"),
        ({"HDF5_VOL_CONNECTOR": ""}, "HDF5_VOL_CONNECTOR does not choose h5cow", "not chosen"),
    ):
        told, _ = program(*words, code=1, env={**CHOSEN, **change})
        [library] = told["program"]["libraries"]
        assert library["service"] == service and reason in library["why_not"], (change, library)
        assert any(reason in line for line in told["problems"])
    [line] = run("--", "env", f"HDF5_PLUGIN_PATH={tmp_path}", *words)
    assert "makes no version" in line and "no folder of HDF5_PLUGIN_PATH" in line


def test_a_program_that_another_one_becomes_is_seen_with_its_own_environment(system, tmp_path):  # noqa: F811
    """A look may fall into its exec, when it has no environment yet; and it may begin itself again with another one."""
    words = python("library(sys.argv[1])" + LINGER, system[0])
    again = "import os, sys\nif len(sys.argv) < 3:\n    os.environ['HDF5_PLUGIN_PATH'] = '/nowhere'\n" \
            "    os.execv(sys.executable, [*sys.orig_argv, 'again'])\n"
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for [line] in pool.map(lambda _: run("--", "env", "HDF5_PLUGIN_PATH=/nowhere", *words), range(24)):
            assert "makes no version" in line and "no folder of HDF5_PLUGIN_PATH" in line
    [line] = run("--", *words[:2], again + words[2], *words[3:])
    assert "makes no version" in line and "no folder of HDF5_PLUGIN_PATH" in line


STATIC = """
#include <stdio.h>
#include <unistd.h>
static long slept(void)
{
    char line[200];
    long times = -1;
    snprintf(line, sizeof line, "/proc/%ld/status", (long)getppid());
    FILE *file = fopen(line, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "voluntary_ctxt_switches: %ld", &times);
    if (file != NULL)
        fclose(file);
    return times;
}
static int linger(void)
{
    long began = slept(), now;
    while ((now = slept()) >= 0 && now < began + LOOKS)
        usleep(10000);
    return now < 0;
}
#ifdef LIBHDF5
#include <hdf5.h>
int main(void)
{
    H5Fcreate("f.h5", H5F_ACC_TRUNC, 0, 0);
    return linger();
}
#else /* no more of HDF5 than every program has that it is linked into */
static volatile const char text[] = "HDF5 library version: 1.14.5";
int main(void)
{
    return text[0] == 'H' ? linger() : 0;
}
#endif
"""


@pytest.mark.parametrize("compiler", [["h5cc", "-DLIBHDF5"], ["cc", "-static"]], ids=["libhdf5", "all"])
def test_a_program_with_libhdf5_in_it_is_told(tmp_path, compiler):
    if compiler[0] == "h5cc" and "libhdf5.a" not in subprocess.run(["h5cc", "-show"], capture_output=True, text=True).stdout:
        pytest.skip("there is no static libhdf5 here")
    (tmp_path / "static.c").write_text(STATIC)
    linked = subprocess.run([*compiler, f"-DLOOKS={LOOKS}", "-o", "static", "static.c", "-laec"], cwd=tmp_path, capture_output=True, text=True)
    if linked.returncode != 0:
        pytest.skip("what a static program needs is not all here: " + linked.stderr[-300:])
    told, _ = program(tmp_path / "static", code=1, cwd=tmp_path)
    [library] = told["program"]["libraries"]
    assert library["file"] == str(tmp_path / "static") and library["service"] == "refused", library
    assert "h5cc -shlib" in library["why_not"] and re.fullmatch(r"1\.14\.\d", library["version"])
    [line] = [line for line in run("--", tmp_path / "static", cwd=tmp_path) if "no version is made" in line]
    assert str(tmp_path / "static") in line and "h5cc -shlib" in line


# ---- what cannot be looked at ----------------------------------------------------------------------------------------


HIDE = """
import ctypes, os, sys
if ctypes.CDLL(None).mount(b"none", b"/proc", b"tmpfs", 0, None) != 0:
    sys.exit("cannot hide /proc")
os.execvp(sys.argv[1], sys.argv[1:])
"""


def without_proc(*words):
    """An empty folder in the place of /proc, for these programs."""
    command = ["unshare", "--mount", "--propagation", "unchanged", sys.executable, "-c", HIDE]
    if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        pytest.skip("this user cannot hide /proc")
    return [*command, *map(str, words)]


def test_without_proc_what_asked_is_told(system, another, tmp_path):  # noqa: F811
    folder = str(tmp_path / "temporary")
    os.mkdir(folder)
    env = {**CHOSEN, "TMPDIR": folder}
    command = without_proc(H5COW, "doctor", "--json", "--program", *python(TWO, system[0], another()))
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=WAITING)
    assert done.returncode == 0, done.stdout + done.stderr
    of = json.loads(done.stdout)["program"]
    assert not of["looked_at"] and [each["instance"] for each in of["libraries"]] == ["file", "copy in a temporary folder"]
    assert all(each["program"] is None for each in of["libraries"]) and os.listdir(folder) == []
    command.remove("--json")
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=WAITING)
    assert "There is no /proc" in done.stdout, done.stdout
    done = subprocess.run(without_proc(H5COW, "run", "true"), capture_output=True, text=True, env=CHOSEN, timeout=WAITING)
    assert done.returncode == 0 and "without /proc" in done.stderr, done.stderr


def test_words_behind_program_are_the_command_s():
    assert program("sh", "-c", "exit 7", code=1)[0]["program"]["exit_code"] == 7
    assert program("--", "sh", "-c", "exit 7", code=1)[0]["program"]["command"] == ["sh", "-c", "exit 7"]
    told, _ = program("sh", "-c", "echo $0", "--json", "--program", code=1)
    assert told["program"]["command"][2:] == ["echo $0", "--json", "--program"] and "has opened no HDF5 file" in told["problems"][0]
    told, said = program("/nowhere/at/all", code=1)
    assert told["program"]["ran"] is False and "was not run" in told["problems"][0] and "/nowhere/at/all" in said
    for words in (["--program"], ["--program", "--"], ["--prog", "true"], ["a", "b", "--program", "true"]):
        done = subprocess.run([H5COW, "doctor", *words], capture_output=True, text=True, env=STOCK)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 2, (words, done.stderr)
    assert shutil.which("true")
