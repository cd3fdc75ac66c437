"""`h5cow run` looks at the programs that it starts: what a look costs, and that it sees what comes late."""

import re
import shutil
import subprocess
import sys

import pytest
from conftest import H5COW, STOCK
from waiting import WAITING

OLD = b"HDF5 library version: 1.10.4"  # what every release has in its library


def watched(words, **more):
    return subprocess.run([str(word) for word in words], env=STOCK, capture_output=True, text=True, timeout=WAITING, **more)


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace here")
def test_a_program_that_goes_on_as_it_was_costs_a_few_short_reads_a_look(tmp_path):
    """System calls between two looks are counted; no time is."""
    log = tmp_path / "log"
    idle = "import h5py, time\nfor i in range(40): time.sleep(0.1); x = bytes(i * 100000)"
    done = watched(["strace", "-o", log, "-e", "trace=openat,readlink,rt_sigtimedwait", H5COW, "run", "--", sys.executable, "-c", idle])
    assert done.returncode == 0 and "no HDF5 file was opened" in done.stderr, done.stderr
    looks = re.split(r"rt_sigtimedwait.*\n", log.read_text())[-9:-1]
    assert len(looks) == 8
    # where the machine has started another process, it is looked for among the children of threads
    opened = sorted(len(re.findall(r"(?:openat|readlink)\((?!.*/task)", look)) for look in looks)
    assert opened[-2] <= 3, looks  # one of them may have been thorough
    assert sum("/maps" in look or "/environ" in look for look in looks) <= 1, looks


LATE = {
    "loaded late": "time.sleep(3); ctypes.CDLL(old); time.sleep(1)",
    "a child": "time.sleep(3); subprocess.run([sys.executable, '-c', load])",
    "a child of a thread": "time.sleep(3); t = threading.Thread(target=subprocess.run, args=([sys.executable, '-c', load],)); t.start(); t.join()",
    "a child of a child": "time.sleep(3); subprocess.run(['sh', '-c', '\"$0\" -c \"$1\"; :', sys.executable, load])",
    "another program of the same file": "time.sleep(3); os.execv(sys.executable, [sys.executable, '-c', load])",
}


@pytest.mark.parametrize("what", LATE)
def test_a_library_that_is_loaded_late_is_seen(tmp_path, what):
    old = tmp_path / "libhdf5-old.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", old], input=b'const char *version = "%s";' % OLD, check=True)
    load = f"import ctypes, time; ctypes.CDLL({str(old)!r}); time.sleep(1)"
    code = f"import ctypes, os, subprocess, sys, threading, time; old, load = {str(old)!r}, {load!r}; {LATE[what]}"
    done = watched([H5COW, "run", "--", sys.executable, "-c", code])
    assert done.returncode == 0 and "1.10.4" in done.stderr and "h5cow needs HDF5 1.14 or newer" in done.stderr, done.stderr


def test_the_environment_of_a_program_that_begins_itself_again_is_seen(tmp_path):
    """Its libhdf5 cannot find the plugin."""
    code = ("import os, sys, time\nif 'AGAIN' in os.environ: import h5py; time.sleep(1)\n"
            "else: time.sleep(3); env = dict(os.environ, AGAIN='1', HDF5_PLUGIN_PATH='/nowhere')\n"
            "if 'AGAIN' not in os.environ: os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], env)")
    done = watched([H5COW, "run", "--", sys.executable, "-c", code])
    assert done.returncode == 0 and "no folder of HDF5_PLUGIN_PATH has" in done.stderr, done.stderr
