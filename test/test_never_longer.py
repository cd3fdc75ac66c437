"""No file gets longer by `gc`, nor by `gc --compact`, whatever it holds, and however HDF5 keeps its free space (text and attributes apart)."""

import os
import random

import pytest
from conftest import h5cow
from seeds import seed

STRATEGIES = ["", "fs_strategy='fsm'", "fs_strategy='page', fs_page_size=4096", "fs_strategy='page', fs_page_size=512",
              "fs_strategy='aggregate'", "fs_strategy='none'", "libver='latest'"]

SESSION = """
import random
dice, first = random.Random(sys.argv[2]), sys.argv[2].endswith(':0')
with h5py.File(sys.argv[1], 'w' if first else 'a', **(eval('dict(%s)' % sys.argv[3]) if first else {})) as f:
    for step in range(dice.randint(1, 20)):
        groups = [f]
        f.visititems(lambda name, o: groups.append(o) if isinstance(o, h5py.Group) else None)
        group, new = dice.choice(groups), 'n%s_%d' % (sys.argv[2].replace(':', '_'), step)
        sets = [name for name in group if isinstance(group[name], h5py.Dataset)]
        kind = dice.choice(['large', 'small', 'small', 'many', 'group', 'edit', 'edit', 'delete', 'resize', 'flush'])
        if kind == 'large':
            n = dice.randint(1, 30000)
            group.create_dataset(new, data=np.random.default_rng(dice.getrandbits(32)).integers(0, dice.choice([5, 2**30]), n),
                                 chunks=(min(n, dice.choice([100, 1000, 5000])),), maxshape=(None,), compression=dice.choice([None, None, 'gzip']))
        elif kind == 'small':
            group[new] = dice.randint(0, 99) if dice.random() < 0.5 else np.arange(dice.randint(1, 400)) * 1.0
        elif kind == 'many':
            within = group.create_group(new)
            for k in range(dice.choice([5, 40])):
                within['m%d' % k] = np.arange(dice.randint(1, 300)) + k
        elif kind == 'group':
            group.create_group(new)
        elif kind == 'flush':
            f.flush()
        elif kind == 'delete' and len(group) and dice.random() < 0.6:
            del group[dice.choice(list(group))]
        elif sets:
            d = group[dice.choice(sets)]
            if kind == 'edit' and d.shape == ():
                d[()] = dice.randint(0, 99)
            elif kind == 'edit' and len(d):
                at = dice.randrange(len(d))
                d[at:at + dice.choice([1, 10, 5000])] = dice.randint(0, 99)
            elif kind == 'resize' and d.maxshape == (None,):
                d.resize((dice.randint(1, 30000),))
"""


def check(programs, path, *words):
    before = os.stat(path).st_size
    told = h5cow(*words, path)
    assert os.stat(path).st_size <= before, (words, before, os.stat(path).st_size, told)
    return told


@pytest.mark.parametrize("history", range(5))
def test_random_histories(programs, tmp_path, history):
    dice = random.Random(f"{seed()}:{history}")
    path, how = tmp_path / "a.h5", dice.choice(STRATEGIES)
    for session in range(dice.randint(1, 4)):
        done = programs.python(SESSION, path, f"{seed()}:{history}:{session}", how)
        assert done.returncode == 0, done.stderr
    for left in (3, 1):
        if dice.random() < 0.8:
            h5cow("forget", f"--keep-last={left}", path)
        check(programs, path, "gc")
    programs.verified(path)
    check(programs, path, "gc", "--compact", "-q")
    programs.verified(path)


@pytest.mark.parametrize("how", STRATEGIES)
def test_small_files(programs, tmp_path, how):
    """What is noted of it would take more than is left behind the end of the file."""
    path = tmp_path / "a.h5"
    for k in range(3):
        code = f"with h5py.File(sys.argv[1], {repr('a' if k else 'w')}{', ' + how if how and not k else ''}) as f: f.require_dataset('x', (3000,), 'f8')[:] = np.random.random(3000)"
        done = programs.python(code, path)
        assert done.returncode == 0, done.stderr
    h5cow("forget", "--keep-last=1", path)
    assert "2 chunks became free" in check(programs, path, "gc")
    check(programs, path, "gc")
    programs.verified(path)
    done = programs.python("with h5py.File(sys.argv[1], 'a') as f: f['x'][:] = np.random.random(3000)", path)
    assert done.returncode == 0, done.stderr
    programs.verified(path)


def test_many_small_datasets(programs, tmp_path):
    path = tmp_path / "lab.h5"
    for k in range(2):
        done = programs.python(
            f"""
            with h5py.File(sys.argv[1], 'a') as f:
                for g in range(20):
                    group = f.require_group('g%d' % g)
                    for d in range(20):
                        group.require_dataset('d%d' % d, (50 + d,), 'f8')[:] = np.arange(50 + d) + {k} * (d % 3 == 0)
            """,
            path,
        )
        assert done.returncode == 0, done.stderr
    check(programs, path, "gc")
    check(programs, path, "gc", "--compact", "-q")


@pytest.mark.parametrize("how", STRATEGIES)
def test_nothing_names_what_became_free(programs, tmp_path, how):
    """A dataset that was copied and deleted in one session has a place in the index, but is in no version."""
    path = tmp_path / "copied.h5"
    for code in (
        f"with h5py.File(sys.argv[1], 'w'{', ' if how else ''}{how}) as f: f['x'] = 1",
        """
        with h5py.File(sys.argv[1], 'a') as f:
            f.create_dataset('d', data=np.arange(1000) ** 2, chunks=(100,))
            f.copy('d', 'c')
            del f['c'], f['d']
            f['x'][()] = 2
        """,
    ):
        done = programs.python(code, path)
        assert done.returncode == 0, done.stderr
    # in a file by pages nobody remembers that the head's place became free
    assert "10 chunks became free" in check(programs, path, "gc") or "page" in how
    programs.verified(path)
