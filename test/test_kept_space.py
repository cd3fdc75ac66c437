"""Files that keep their free space (HDF5's file space strategies with persist): the last commit is what HDF5 writes by closing them.

HDF5 1.14.5 writes past the end of its memory where such a file is flushed: `test_groups_made_and_deleted` ended with an abort of
the C library in two programs of three, as long as each close was preceded by a flush. Some of these programs HDF5 alone does not end.
"""

import random
import signal
import sys

import pytest
from conftest import STOCK
from seeds import seed

# the C library looks for writes past the end of what it gives
CAREFUL = "LD_PRELOAD=libc_malloc_debug.so.0", "MALLOC_CHECK_=3"

# argv: file, properties, seed
GROUPS = """
import random, resource

resource.setrlimit(resource.RLIMIT_CPU, (15, 20))  # HDF5's own loops
draw = random.Random(sys.argv[3])
there, states = {}, []
for session in range(30):
    with h5py.File(sys.argv[1], 'r+' if session else 'w', **({} if session else eval(sys.argv[2]))) as f:
        assert list(f) == sorted(there)
        for name in draw.sample(sorted(there), min(3, len(there))):
            assert there[name] is None or (f[name][...] == there[name]).all()
        for n in range(draw.randrange(1, 9)):
            name = f'g{session}.{n}'
            f.create_group(name)
            there[name] = None
            if draw.random() < 0.33:
                name = f'd{session}.{n}'
                there[name] = np.full(draw.randrange(1, 3000), draw.randrange(100), 'i1')
                f[name] = there[name]
            if there and draw.random() < 0.5:
                name = draw.choice(sorted(there))
                del f[name], there[name]
    states.append(sorted(there))
for n, names in enumerate(states):
    with h5py.File(f'{sys.argv[1]}@{n + 1}', 'r') as f:
        assert list(f) == names
with h5py.File(sys.argv[1], 'r') as f:
    for name in there:
        assert there[name] is None or (f[name][...] == there[name]).all()
"""
PAGES = "dict(fs_strategy='page', fs_persist=True, fs_page_size={})"


@pytest.mark.parametrize(
    "properties, count", [(PAGES.format(512), 4), (PAGES.format(4096), 1), ("dict(fs_strategy='fsm', fs_persist=True)", 1)]
)
def test_groups_made_and_deleted(programs, tmp_path, properties, count):
    ended = 0
    for n in range(seed(), seed() + 4 * count):
        path = tmp_path / f"{n}.h5"
        done = programs.connector("env", *CAREFUL, sys.executable, "-c", programs.code(GROUPS), path, properties, n, options="sync=off")
        if done.returncode == -signal.SIGXCPU:
            continue
        assert done.returncode == 0, f"seed {n}: {done.returncode}\n{done.stdout}{done.stderr}"
        programs.verified(path)
        if (ended := ended + 1) == count:
            return
    raise AssertionError(f"{ended} programs came to their end")


# argv: file, the bytes by which it may grow. Prints what the close says, and whether the id is there still
FULL = f"""
import os, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with h5py.File(sys.argv[1], 'w', **{PAGES.format(512)}) as f:
    f['x'] = np.arange(20000)
f = h5py.File(sys.argv[1], 'r+')
id = f.id
f['x'][...] = -1
for n in range(300):
    f.create_group(f'many/{{n}}').attrs['a'] = n
resource.setrlimit(resource.RLIMIT_FSIZE, (os.stat(sys.argv[1]).st_size + int(sys.argv[2]),) * 2)
try:
    f.close()
    print('closed')
except RuntimeError:
    print('not closed')
print(bool(id.valid), end=' ')
for use in (lambda: id.name, lambda: id.reopen(), lambda: f['x'], lambda: f.create_group('z'), lambda: f.flush(), lambda: id.get_filesize(),
            lambda: list(f), lambda: f.attrs['z'], lambda: h5py.h5f.get_obj_count(id), lambda: h5py.h5f.open(sys.argv[1].encode())):
    try:
        use()
    except Exception:
        pass
"""
ALONE = """
with h5py.File(sys.argv[1], 'r') as f:
    print(f['x'][0], len(f.get('many', ())))
"""


def test_a_last_commit_that_fails_is_told_by_the_close(programs, tmp_path):
    outcomes = set()
    for n, room in enumerate(range(random.Random(seed()).randrange(5000), 600_000, 17_000)):
        path = tmp_path / f"{n}.h5"
        done = programs.python(FULL, path, room)
        assert done.returncode == 0, (room, done.stderr)
        outcome = done.stdout.splitlines()[0]
        if outcome == "not closed":
            assert "errno = 27" in done.stderr and path.name in done.stderr
            outcome += ", and nothing under the id" * ("nothing was committed; the file is as it was" in done.stderr)
        outcomes.add(outcome)
        wanted = "-1 300" if outcome == "closed" else "0 0"
        assert programs.run([sys.executable, "-c", programs.code(ALONE), path], STOCK).stdout.strip() == wanted, (room, outcome)
        programs.verified(path)
    assert outcomes == {"closed", "not closed", "not closed, and nothing under the id"}, outcomes


# Bodies that leave f closed, and something of the file open for longer
OTHERS = {
    "a dataset": "d = f['x']; f.id.close(); d[3] = {n}; d.id.close()",
    "a version": "v = h5py.File(sys.argv[1] + '@1', 'r'); f['x'][3] = {n}; f.close(); assert v['x'][3] == 3; v.close()",
    "a second id": "g = h5py.File(sys.argv[1], 'r+'); f['x'][3] = {n}; f.close(); g.create_group('of g{n}'); g.close()",
    "a second name of the id": "g = f.id.reopen(); f['x'][3] = {n}; f.close(); h5py.File(g).create_group('of g{n}'); g.close()",
    "what was flushed": "f['x'][3] = -{n}; f.flush(); f['x'][3] = {n}; f.close()",
    "nothing": "f.close(); f = h5py.File(sys.argv[1], 'r+'); f['x'][3] = {n}; f.close()",
    "what failed": "f['x'][3] = {n}\ntry: f.create_group('x')\nexcept ValueError: pass\nf.close()",
}


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("cached", [False, True])
def test_what_is_open_besides(programs, tmp_path, others, cached):
    """CACHED: HDF5 keeps files open that external links lead to. A writer that is killed after the close has lost nothing. Without pages,
    since most of these are flushed as well."""
    path = tmp_path / "a.h5"
    code = f"""
    import ctypes, os, signal
    with h5py.File(sys.argv[1], 'w', fs_strategy='fsm', fs_persist=True) as f:
        f['x'] = np.arange(20000)
    if {cached}:
        with h5py.File(sys.argv[1] + '.parent', 'w') as f:
            f['link'] = h5py.ExternalLink(sys.argv[1], '/x')
        library = [line.split()[-1] for line in open('/proc/self/maps') if 'libhdf5' in line and '_hl' not in line][0]
        fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        assert ctypes.CDLL(library).H5Pset_elink_file_cache_size(ctypes.c_int64(fapl.id), 4) >= 0
        parent = h5py.h5f.open(sys.argv[1].encode() + b'.parent', h5py.h5f.ACC_RDWR, fapl)
        assert h5py.File(parent)['link'][3] == 3
    for n in range(4, 8):
        f = h5py.File(sys.argv[1], 'r+')
        exec({OTHERS[others]!r}.replace('{{n}}', str(n)))
    os.kill(os.getpid(), signal.SIGKILL)
    """
    done = programs.connector(sys.executable, "-c", programs.code(code), path)
    assert done.returncode == -signal.SIGKILL, done.stderr
    for run in (programs.stock, programs.connector):
        read = run(sys.executable, "-c", programs.code("print(*(h5py.File(n, 'r')['x'][3] for n in sys.argv[1:]))"), path)
        assert read.stdout.strip() == "7", (run, read.stdout, read.stderr)
    programs.verified(path)
