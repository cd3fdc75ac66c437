"""H5Ocopy of versioned datasets that an earlier session made, which are not opened for it: what this session did to them is seen."""

import sys

import h5py
import pytest
from conftest import H5COW

# Each case does something in a later session, before a group with `d` and `d` itself are copied; right is what native HDF5 makes of the same.
CASES = {
    "nothing": "",
    "attribute": "f['g/d'].attrs['a'] = 5",
    "attribute, closed and flushed": "f['g/d'].attrs['a'] = 5; f.flush()",
    "attribute by the group": "h5py.h5a.create(f['g'].id, b'a', h5py.h5t.NATIVE_INT8, h5py.h5s.create(h5py.h5s.SCALAR), obj_name=b'd')",
    "attribute through a second link": "f['second'] = f['g/d']; f['second'].attrs['a'] = 5",
    "attribute and its end": "f['g/d'].attrs['a'] = 5; del f['g/d'].attrs['a']",
    "many attributes": "[f['g/d'].attrs.create(f'a{k}', k) for k in range(20)]",
    "comment": "h5py.h5o.set_comment(f.id, b'what it is', obj_name=b'g/d')",
    "written": "f['g/d'][7] = -1",
    "written and open": "global d; d = f['g/d']; d[7] = -1",
    "written and flushed": "f['g/d'][7] = -1; f.flush()",
    "open": "global d; d = f['g/d']",
    "grown": "f['g/d'].resize((300,))",
    "cut": "f['g/d'].resize((30,))",
    "made anew": "del f['g/d']; f['g'].create_dataset('d', data=np.arange(50, dtype='i2'), chunks=(10,), maxshape=(None,))",
    "moved": "f.move('g/d', 'q'); f.move('q', 'g/d')",
    "second link in the group": "f['g/again'] = f['g/d']",
    "copied before": "f.copy('g/d', 'before'); f['before'][3] = 99; f['before'].attrs['a'] = 1",
    "copied over and over": "[f.copy('g/d', f'copy {k}') for k in range(12)]; f['copy 3'][0] = 77",
    "the copy changes": "f.copy('g', 'early'); f['early/d'][2] = 55; f['early/d'].resize((10,))",
    "both change": "f.copy('g/d', 'early'); f['early'][2] = 55; f['g/d'][2] = 66",
    "without attributes": "f['g/d'].attrs['a'] = 5; f.copy('g', 'without', without_attrs=True)",
    "with an attribute from the start": "f.copy('g/with', 'copy')",
    "fixed strings, and a fill value": "f.copy('g/strings', 'copy'); f.copy('g/filled', 'copy 2'); f['copy 2'].resize((90,))",
}
MAKE = """
with h5py.File(sys.argv[1], 'w') as f:
    g = f.create_group('g')
    g.create_dataset('d', data=np.arange(200.), chunks=(40,), maxshape=(None,))
    g.create_dataset('with', data=np.arange(200.), chunks=(40,), maxshape=(None,)).attrs['unit'] = 'K'
    g.create_dataset('strings', data=np.array([b'a', b'bc'] * 40), chunks=(8,), maxshape=(None,))
    g.create_dataset('filled', data=np.arange(70, dtype='i2'), chunks=(8,), maxshape=(None,), fillvalue=-3, compression='gzip')
"""
CHANGE = """
with h5py.File(sys.argv[1], 'r+') as f:
    %s
    f.copy('g', 'h')
    f.copy('g/d', 'e')
with h5py.File(sys.argv[1], 'r+') as f:
    f['h/d'][1] = -5
    f['e'].attrs['later'] = 1
"""


def tree(group):
    """All that a program sees below GROUP."""
    told = {}

    def look(name, object_):
        attributes = sorted((key, str(value)) for key, value in object_.attrs.items())
        told[name] = attributes, sorted(object_) if isinstance(object_, h5py.Group) else (
            object_.dtype, object_.maxshape, object_.fillvalue, object_.compression, object_[...].tolist())

    for name in list(group):
        if name != "_versioned_data":
            look(name, group[name])
            if isinstance(group[name], h5py.Group):
                group[name].visititems(lambda below, object_, name=name: look(f"{name}/{below}", object_))
    return told


@pytest.mark.parametrize("case", CASES)
def test_copies_are_those_of_native_hdf5(programs, tmp_path, case):
    for run, name in ((programs.stock, "native.h5"), (programs.connector, "a.h5")):
        for text in (MAKE, CHANGE % CASES[case]):
            done = run(sys.executable, "-c", programs.code(text), tmp_path / name)
            assert done.returncode == 0, done.stderr
    states = []
    with h5py.File(tmp_path / "native.h5") as native, h5py.File(tmp_path / "a.h5") as f:
        right = tree(native)
        assert native["h/d"][1] == -5
        states += [tree(f), tree(f["_versioned_data/versions"][max(f["_versioned_data/versions"], key=int)])]
        if case == "comment":
            assert [group["g"].parent.id.get_comment(b"e") for group in (native, f)] == [b"what it is"] * 2
    for state in states:
        for at in right:
            # what h5cow keeps, stock HDF5 sees as virtual datasets: without filters
            if isinstance(right[at][1], tuple):
                assert state[at][0] == right[at][0] and state[at][1][4] == right[at][1][4] and state[at][1][:2] == right[at][1][:2], at
            else:
                assert state[at] == right[at], at
        assert set(state) == set(right)
    done = programs.stock(H5COW, "verify", tmp_path / "a.h5")
    assert done.returncode == 0, done.stdout + done.stderr
