"""What a version changed is counted over all of its transaction, whatever was flushed in between.

The judge are the versions' own trees, which HDF5 without the connector reads: an object that the version before has as well is one and
the same there.
"""

import json
import random

import h5py
import pytest
from conftest import h5cow
from seeds import seed

FLUSHED = """
with h5py.File(sys.argv[1], 'a') as f:
    for i in range(8):
        f['d%d' % i] = np.arange(3000.) + i
    f.flush()
    f['d0'][3] = -1
"""

RANDOM = """
import random
dice, flushes = random.Random(sys.argv[2]), int(sys.argv[3])
with h5py.File(sys.argv[1], 'a', track_order=dice.random() < 0.3) as f:
    for step in range(dice.randint(3, 14)):
        groups = [f]
        f.visititems(lambda name, o: groups.append(o) if isinstance(o, h5py.Group) else None)
        group, new = dice.choice(groups), 'n%s_%d' % (sys.argv[2].replace(':', '_'), step)
        there = [name for name in group if not isinstance(group.get(name, getlink=True), h5py.SoftLink)]
        old = dice.choice(there) if there else None
        kind = dice.choice(['dataset', 'small', 'group', 'attribute', 'attribute', 'edit', 'edit', 'delete', 'move', 'link', 'soft'])
        if kind == 'dataset':
            group.create_dataset(new, data=np.arange(3000) + step, chunks=(500,))
        elif kind == 'small':
            group[new] = [b'text %d' % step, b'more']
        elif kind == 'group':
            for k in range(dice.choice([0, 1, 40])):
                group.require_group(new)['m%d' % k] = k
            group.require_group(new)
        elif kind == 'attribute':
            (group[old] if old and dice.random() < 0.7 else group).attrs[dice.choice('abc')] = dice.randint(0, 3)
        elif old and kind == 'edit' and isinstance(group[old], h5py.Dataset):
            group[old][...] = group[old][...]
            if group[old].dtype.kind in 'if' and group[old].shape:
                group[old][0] = step
        elif old and kind == 'delete':
            del group[old]
        elif old and kind == 'move' and not isinstance(group[old], h5py.Group):
            f.move(group.name.rstrip('/') + '/' + old, dice.choice(groups).name.rstrip('/') + '/' + new)
        elif old and kind == 'link' and not isinstance(group[old], h5py.Group):
            dice.choice(groups)[new] = group[old]
        elif kind == 'soft':
            group[new] = h5py.SoftLink('/d0')
        if dice.random() < flushes / 10:
            f.flush()
"""


def objects(version):
    """Their addresses."""
    met = set()

    def go(group):
        for name in group:
            if group.get(name, getlink=True).__class__ is not h5py.HardLink:
                continue
            address = h5py.h5o.get_info(group.id, name.encode()).addr
            if address not in met:
                met.add(address)
                if isinstance(group[name], h5py.Group):
                    go(group[name])

    met.add(h5py.h5o.get_info(version.id).addr)
    go(version)
    return met


def anew(path):
    """How many objects each version does not have from the one before."""
    with h5py.File(path) as f:
        versions = f["_versioned_data/versions"]
        trees = [objects(versions[name]) for name in sorted(versions, key=int)]
    return [len(tree - before) for before, tree in zip([set(), *trees], trees)]


def counted(path):
    return [v["changed"] for v in reversed(json.loads(h5cow("log", "--json", path)))]


def test_all_of_a_transaction_with_a_flush_is_counted(programs, tmp_path):
    done = programs.python(FLUSHED, tmp_path / "a.h5")
    assert done.returncode == 0, done.stderr
    assert counted(tmp_path / "a.h5") == anew(tmp_path / "a.h5") == [9]  # with the root group
    told = h5cow("log", tmp_path / "a.h5").splitlines()
    assert told[1][told[0].index("changed") :].split()[0] == "9"


@pytest.mark.parametrize("history", range(4))
def test_flushes_change_no_count(programs, tmp_path, history):
    dice = random.Random(f"{seed()}:{history}")
    path = tmp_path / "a.h5"
    for session in range(4):
        done = programs.python(RANDOM, path, f"{seed()}:{history}:{session}", dice.choice([0, 2, 6]))
        assert done.returncode == 0, done.stderr
    assert counted(path) == anew(path)
    programs.verified(path)


def test_a_named_type_that_goes_with_its_use_is_not_counted(programs, tmp_path):
    done = programs.python(
        """
        with h5py.File(sys.argv[1], 'a') as f:
            f['kept'] = np.arange(9)
            f['type'] = np.dtype('i4, f8')
            f.create_dataset('user', (4,), dtype=f['type'])
            del f['type']  # lives as long as its use
            f.flush()
            del f['user']
        """,
        tmp_path / "a.h5",
    )
    assert done.returncode == 0, done.stderr
    assert counted(tmp_path / "a.h5") == anew(tmp_path / "a.h5") == [2]
