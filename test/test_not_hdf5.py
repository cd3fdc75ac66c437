"""What is no HDF5 file: natively and through h5cow a program gets the same answer, in every mode.

Answers are what h5py shows: a value, or the type and number of an exception; and whether the file was changed.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import H5COW, PLUGINS, STOCK

SETPRIV = shutil.which("setpriv")
OBEYS = [SETPRIV, "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []  # root that obeys permissions

ASK = """
import ctypes, os, re, stat, sys, h5py

SIGNATURE = b'\\x89HDF\\r\\n\\x1a\\n'
CONTENT = {'empty': b'', 'one byte': b'\\0', '8 bytes': bytes(8), '511 bytes': bytes(511), '4096 bytes': bytes(4096),
           'text': 99 * b'hello, world\\n', 'text after 512': bytes(512) + b'hello', 'signature alone': SIGNATURE,
           'signature and zeros': SIGNATURE + bytes(600), 'half a signature': SIGNATURE[:5],
           'signature at 512': bytes(512) + SIGNATURE, 'the journal alone': b'h5cow', 'SQLite': b'SQLite format 3\\0' + bytes(4080)}
PLACES = ['missing', 'dangling link', 'link to itself', 'link to an empty file', 'folder', 'link to a folder',
          'below a file', 'no name', 'long name', 'not to be read', 'empty and not to be read', 'not to be written',
          'empty and not to be written', 'folder not to be searched']
library = next(line.split()[-1] for line in open('/proc/self/maps') if re.search(r'/libhdf5(_serial)?[-.][^/]*so', line))
library = ctypes.CDLL(library)

def make(kind):
    name = kind.replace(' ', '_') + '.h5'
    if kind in CONTENT:
        open(name, 'wb').write(CONTENT[kind])
    elif kind == 'dangling link':
        os.symlink('nowhere.h5', name)
    elif kind == 'link to itself':
        os.symlink(name, name)
    elif kind == 'link to an empty file':
        open('behind.h5', 'wb').close()
        os.symlink('behind.h5', name)
    elif kind == 'folder':
        os.mkdir(name)
    elif kind == 'link to a folder':
        os.mkdir('behind')
        os.symlink('behind', name)
    elif kind == 'below a file':
        open('file', 'w').close()
        name = 'file/x.h5'
    elif kind == 'no name':
        name = ''
    elif kind == 'long name':
        name = 300 * 'x'
    elif kind.endswith('not to be read'):
        open(name, 'w').write('' if 'empty' in kind else 'no HDF5')
        os.chmod(name, 0)
    elif kind.endswith('not to be written'):
        open(name, 'w').write('' if 'empty' in kind else 'no HDF5')
        os.chmod(name, 0o444)
    elif kind == 'folder not to be searched':
        os.mkdir('closed')
        os.chmod('closed', 0)
        name = 'closed/x.h5'
    return name

def about(name):
    if name == '/dev/null':
        return 'not looked at'
    try:
        is_ = os.stat(name)
        if stat.S_ISREG(is_.st_mode):
            os.chmod(name, 0o600)
            content = open(name, 'rb').read()
            os.chmod(name, is_.st_mode & 0o777)
            return 'an HDF5 file' if len(content) >= 700 and content.startswith(SIGNATURE) else content[:30]
        return oct(is_.st_mode)
    except OSError as e:
        return e.strerror

def say(call):
    try:
        return call()
    except Exception as e:
        return f'{type(e).__name__} {getattr(e, "errno", None)}'

def opened(name, mode):
    with h5py.File(name, mode) as f:
        made = len(f)
        if mode != 'r':
            f['x'] = 1
    return f'{made} links'

WAYS = {'is_hdf5': h5py.is_hdf5, 'h5f.is_hdf5': lambda name: h5py.h5f.is_hdf5(name.encode()),
        'delete': lambda name: library.H5Fdelete(name.encode(), ctypes.c_int64(0)) >= 0,
        **{mode: lambda name, mode=mode: opened(name, mode) for mode in ('r', 'r+', 'a', 'w', 'w-', 'x')}}
os.mkdir('all')
os.chdir('all')
for kind in [*CONTENT, *PLACES]:
    for way, call in WAYS.items():
        os.mkdir('one')
        os.chdir('one')
        name = make(kind)
        print(f'{kind}: {way}: {say(lambda: call(name))}, then {about(name)}', flush=True)
        os.chdir('..')
        os.system('chmod -R u+rwX one; rm -rf one')
for way in ('is_hdf5', 'h5f.is_hdf5', 'r', 'w-'):  # devices are only read
    print(f'/dev/null: {way}: {say(lambda: WAYS[way]("/dev/null"))}')
os.mkfifo('fifo')
held = os.open('fifo', os.O_RDWR)  # without the other end HDF5 waits for it
for way in ('is_hdf5', 'h5f.is_hdf5', 'r', 'r+', 'a', 'w', 'w-'):
    print(f'fifo: {way}: {say(lambda: WAYS[way]("fifo"))}')
"""


@pytest.mark.skipif(os.geteuid() == 0 and not SETPRIV, reason="root's privileges cannot be dropped here (setpriv)")
def test_what_is_no_hdf5_file_gets_the_native_answer(programs, tmp_path):
    answers = []
    for folder, variables in (("native", {}), ("h5cow", {"HDF5_VOL_CONNECTOR": "h5cow", "HDF5_PLUGIN_PATH": PLUGINS})):
        (tmp_path / folder).mkdir()
        done = subprocess.run([*OBEYS, sys.executable, "-c", ASK], cwd=tmp_path / folder, env={**STOCK, **variables},
                              capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout.splitlines())
    assert len(answers[0]) > 200
    assert [pair for pair in zip(*answers, strict=True) if pair[0] != pair[1]] == []




@pytest.mark.parametrize("mode", ["r", "r+", "a", "w", "w-"])
def test_a_file_whose_program_died_before_its_first_commit_is_no_hdf5_file_and_can_be_created(programs, tmp_path, mode):
    """Natively such a file is damaged, and only 'w' gets anywhere; `a` and `w-` work here, for there is nothing to lose."""
    path = tmp_path / "left.h5"
    dying = "f = h5py.File(sys.argv[1], 'w'); f['x'] = 1; sys.stdout.flush(); os._exit(7)"
    assert programs.python("import os\n" + dying, path).returncode == 7
    before = path.read_bytes()
    assert 0 < len(before) and not before.startswith(b"\x89HDF")
    done = programs.python("print(h5py.is_hdf5(sys.argv[1]), h5py.h5f.is_hdf5(sys.argv[1].encode()))", path)
    assert (done.returncode, done.stdout) == (0, "False False\n"), done.stderr
    assert path.read_bytes() == before
    done = programs.python(f"with h5py.File(sys.argv[1], '{mode}') as f: f['y'] = 2", path)
    if mode in ("r", "r+"):
        assert done.returncode == 1 and "FileNotFoundError" in done.stderr and "before it committed" in done.stderr
        assert path.read_bytes() == before
    else:
        assert done.returncode == 0, done.stderr
        done = programs.python("f = h5py.File(sys.argv[1]); print(*f)", path)
        assert (done.returncode, done.stdout) == (0, "y\n"), done.stderr


@pytest.mark.parametrize("made", ["empty", "left"])
def test_run_does_not_say_of_a_program_that_only_asked_that_it_uses_no_hdf5(programs, tmp_path, made):
    path = tmp_path / "a.h5"
    if made == "empty":
        path.touch()
    else:
        assert programs.python("import os\nf = h5py.File(sys.argv[1], 'w'); os._exit(7)", path).returncode == 7
    done = subprocess.run([H5COW, "run", "--", sys.executable, "-c", "import h5py, sys; print(h5py.is_hdf5(sys.argv[1]))", path],
                          env={**STOCK, "HDF5_PLUGIN_PATH": PLUGINS}, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_a_temporary_file_is_written_as_natively(programs, tmp_path):
    """As pyscf makes its checkpoint: the name of a temporary file, asked first, then read, then written."""
    code = """
import tempfile
with tempfile.NamedTemporaryFile(dir=sys.argv[1]) as t:
    told = [h5py.is_hdf5(t.name)]
    try:
        h5py.File(t.name, 'r')
    except OSError as e:
        told.append(type(e).__name__)
    with h5py.File(t.name, 'a') as f:
        f['x'] = 3
    with h5py.File(t.name, 'r') as f:
        print(*told, f['x'][()], h5py.is_hdf5(t.name))
"""
    done = programs.python(code, tmp_path)
    assert (done.returncode, done.stdout) == (0, "False OSError 3 True\n"), done.stderr
