"""Datasets that a session creates, which HDF5 does not have open for it: what the session does to them before they are committed is seen, in the head and in
the version, as native HDF5 makes it."""

import random
import sys

import pytest
from seeds import seed
from test_copy_unopened import CASES

MORE = {
    "attribute by name": "attribute(f, 'g/d', 'a')",
    "attribute by name, deleted by name": "attribute(f, 'g/d', 'a'); h5py.h5a.delete(f.id, b'a', obj_name=b'g/d')",
    "attribute by name while open": "global d; d = f['g/d']; attribute(f, 'g/d', 'a'); d[3] = 1",
    "attribute by name, flushed, another": "attribute(f, 'g/d', 'a'); f.flush(); attribute(f, 'g/d', 'b')",
    "comment by name": "h5py.h5o.set_comment(f.id, b'what it is', obj_name=b'g/d')",
    "renamed over and over": "[f.move('g/d' if k % 2 == 0 else 'e', 'e' if k % 2 == 0 else 'g/d') for k in range(8)]",
    "made and deleted": "[(f['g'].create_dataset('t', data=np.arange(2000)), f['g'].__delitem__('t')) for k in range(9)]",
    "made, kept and deleted": "global k; k = [f['g'].create_dataset(f't{i}', data=np.arange(2000)) for i in range(9)]; [f['g'].__delitem__(f't{i}') for i in range(9)]; k[3][5] = 1; k[3].attrs['a'] = 5; f['g/back'] = k[3]",
    "made and deleted, and others in its place": "[(f['g'].create_dataset('t', data=np.arange(2000)), f['g'].__delitem__('t'), f['g'].create_dataset(f'u{k}', data=np.arange(300) + k, fillvalue=3, chunks=(50 + k,)), f['g'].create_group(f'v{k}'), f['g'].create_dataset(f'w{k}', data=np.arange(900) + k)) for k in range(12)]; f['g/u3'][5] = 9; f['g/w3'].attrs['a'] = 2",
    "its group goes": "f.copy('g', 'other'); del f['g']; f['other'].move('d', 'e'); f['g'] = f['other']; f['g/d'] = f['g/e']",
    "references": "f['g'].create_dataset('r', data=np.array([f['g/d'].ref, f['g'].ref], dtype=h5py.ref_dtype)); assert f[f['g/r'][0]][7] == f['g/d'][7]",
    "never written": "f['g'].create_dataset('empty', shape=(3000,), dtype='i4', chunks=(100,)); f['g'].create_dataset('plain', shape=(3000,), dtype='f4')",
    "a scale": "f['g/d'].make_scale('x'); s = f['g'].create_dataset('s', data=np.arange(200.)); s.dims[0].attach_scale(f['g/d'])",
    "many": "[f['g'].create_dataset(f'm{k}', data=np.arange(1500) + k, chunks=(500,)) for k in range(70)]; f['g/m9'].attrs['a'] = 1; del f['g/m11']",
}
MAKE = """
def attribute(f, name, what):
    space = h5py.h5s.create(h5py.h5s.SCALAR)
    h5py.h5a.create(f.id, what.encode(), h5py.h5t.NATIVE_INT8, space, obj_name=name.encode()).write(np.array(5, 'i1'))

made = sys.argv[2] == 'made'
if not made:
    with h5py.File(sys.argv[1], 'w', **eval(sys.argv[4])) as f:
        f.create_dataset('first', data=np.arange(900))
with h5py.File(sys.argv[1], 'w' if made else 'r+', **eval(sys.argv[4])) as f:
    if made:
        f.create_dataset('first', data=np.arange(900))
    g = f.create_group('g')
    g.create_dataset('d', data=np.arange(200.), chunks=(40,), maxshape=(None,))
    g.create_dataset('with', data=np.arange(200.), chunks=(40,), maxshape=(None,)).attrs['unit'] = 'K'
    g.create_dataset('strings', data=np.array([b'a', b'bc'] * 40), chunks=(8,), maxshape=(None,))
    g.create_dataset('filled', data=np.arange(70, dtype='i2'), chunks=(8,), maxshape=(None,), fillvalue=-3, compression='gzip')
    exec(sys.argv[3])
"""
LISTS = ["{}", "{'libver': 'latest'}", "{'track_order': True}"]
# All that a program sees, in the order in which HDF5 lists it. argv[3]: and how it is stored.
LOOK = """
def value(f, v):
    return h5py.h5i.get_name(f[v].id).decode() if isinstance(v, h5py.Reference) else v.tolist() if isinstance(v, np.ndarray) and v.dtype != h5py.ref_dtype else str(v)
def told(f, g):
    found = {}
    for name in g:
        if name == '_versioned_data':
            continue
        o = g[name]
        attributes = {k: value(f, v) for k, v in o.attrs.items()} if not {'REFERENCE_LIST', 'DIMENSION_LIST'} & set(o.attrs) else sorted(o.attrs)
        link = g.id.links.get_info(name.encode())
        what = [attributes, str(o.id.get_comment(b'.')) if isinstance(o, h5py.Group) else None, link.cset]
        if sys.argv[3] == 'all':
            what += [h5py.h5o.get_info(o.id).rc, o.name]
        if isinstance(o, h5py.Group):
            what.append(told(f, o))
        else:
            what += [str(o.dtype), o.shape, o.maxshape, value(f, o.fillvalue), [value(f, v) for v in o[...]] if o.dtype == h5py.ref_dtype else o[...].tolist()]
            if sys.argv[3] == 'all':
                what += [o.chunks, o.compression, 'libver' in sys.argv[2] and o.id.get_create_plist().get_obj_track_times()]  # in old headers all have times
        found[name] = what
    return found
with h5py.File(sys.argv[1], **eval(sys.argv[2])) as f:
    print(told(f, f))
"""


@pytest.mark.parametrize("case", {**CASES, **MORE})
def test_head_and_version_are_as_native_hdf5_makes_it(programs, tmp_path, case):
    text = {**CASES, **MORE}[case]
    draw = random.Random(f"{seed()} {case}")
    how, lists = draw.choice(["made", "opened"]), draw.choice(LISTS)
    print(how, lists)
    native, file = tmp_path / "native.h5", tmp_path / "a.h5"

    def run(how, code, *arguments):
        done = how(sys.executable, "-c", programs.code(code), *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for way, name in ((programs.stock, native), (programs.connector, file)):
        run(way, MAKE, name, how, text, lists)
    programs.verified(file)
    right = run(programs.stock, LOOK, native, lists, "all")
    assert right == run(programs.connector, LOOK, file, lists, "all")
    assert right == run(programs.connector, LOOK, f"{file}@latest", lists, "all")
    assert run(programs.stock, LOOK, native, lists, "") == run(programs.stock, LOOK, file, lists, "")
