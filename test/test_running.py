"""The running version: what the last flush committed, which a later one of the same transaction amends. And two more findings
of a review: objects that are linked again, and a table of pools that cannot be read."""

import h5py
import numpy as np
import pytest

BEGUN = """
with h5py.File('a.h5', 'w') as f:
    f.create_dataset('a', data=np.arange(100000), chunks=(100,), maxshape=(None,))
"""


def said(done):
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout.split()


@pytest.mark.parametrize("old_handle", [False, True], ids=["by name", "by a handle from before the version was amended"])
def test_what_is_copied_out_of_the_running_version_is_whole(programs, tmp_path, old_handle):
    """The views of index nodes that a later flush replaces go, also those that a copy would share."""
    code = """
    f = h5py.File('a.h5', 'a')
    f['a'][0] = -1
    f.flush()
    v = h5py.File('a.h5@#2')
    d = v['a']
    f['a'][0] = -2
    if OLD:
        f.flush()
    seen = d[0]
    f.copy(d, f, 'b')
    assert f['b'][0] == seen, (f['b'][0], seen)
    v.close()
    f.close()
    print(seen)
    """
    (seen,) = said(programs.python(BEGUN + code.replace("OLD", str(old_handle)).replace("\n    ", "\n"), cwd=tmp_path))
    done = programs.cow("verify", tmp_path / "a.h5")
    assert done.returncode == 0, done.stdout + done.stderr
    with h5py.File(tmp_path / "a.h5") as f:
        assert f["b"][0] == int(seen) and np.array_equal(f["b"][1:], np.arange(1, 100000)) and f["a"][0] == -2


def test_links_in_the_running_version_are_counted_as_it_is_now(programs, tmp_path):
    code = """
with h5py.File('a.h5', 'a') as f:
    for name in 'b', 'c':
        f[name] = f['a']
        f.flush()
        with h5py.File('a.h5@#2') as v:
            print(h5py.h5o.get_info(v['a'].id).rc)
with h5py.File('a.h5@#2') as v:
    print(h5py.h5o.get_info(v['a'].id).rc)
"""
    assert said(programs.python(BEGUN + code, cwd=tmp_path)) == ["2", "3", "3"]


@pytest.mark.parametrize("what", ["f.create_dataset('x', data=np.arange(9999), chunks=(50,))", "f.create_dataset('x', data=1)",
                                  "f.create_group('x')"])
def test_what_is_linked_again_is_found_by_its_references(programs, tmp_path, what):
    code = f"""
    with h5py.File('a.h5', 'w') as f:
        {what}
    with h5py.File('a.h5', 'a') as f:
        x = f['x']
        ref = x.ref
        del f['x']
        f.flush()
        f['again'] = x
        print(f[ref].name)
        f.flush()
        print(f[ref].name)
    """
    assert said(programs.python(code, cwd=tmp_path)) == ["/again", "/again"]


def test_a_damaged_table_of_pools_is_an_error_and_is_verified(programs, tmp_path):
    """Not a reason to keep datasets without history."""
    assert said(programs.python(BEGUN, cwd=tmp_path)) == []
    with h5py.File(tmp_path / "a.h5") as f:
        at = f["_versioned_data/pools"].id.get_chunk_info(0).byte_offset
    bytes_of = bytearray((tmp_path / "a.h5").read_bytes())
    bytes_of[at] ^= 1
    (tmp_path / "a.h5").write_bytes(bytes_of)
    done = programs.python("with h5py.File('a.h5', 'a') as f: f.create_dataset('n', data=np.arange(20000, dtype='i2'), chunks=(100,))",
                           cwd=tmp_path)
    assert done.returncode != 0 and "reading which pools there are" in done.stderr, done.stderr
    done = programs.cow("verify", tmp_path / "a.h5")
    assert done.returncode == 1 and "the table of pools cannot be read" in done.stdout + done.stderr, done.stdout + done.stderr


ATTRIBUTES = """
import shutil
from h5py import h5a, h5o, h5s, h5t

def begin(f):
    f['t'] = f['u'] = np.dtype('i4')
    del f['u']
    f['u'] = np.dtype('i4')
    for name in 'gain', 'lose', 'other', 'again', 'set', 'order', 'keep', 'text':
        f.create_group(name, track_order=True)
    for name in 'lose', 'other', 'again', 'keep':
        f[name].attrs.create('y', 1, dtype=f['t'])
    f['gain'].attrs.create('y', 1, dtype='i4')
    f['set'].attrs['\\N{LATIN SMALL LETTER E WITH ACUTE}'] = np.int32(1)
    f['order'].attrs.update(a=1, b=2)
    strings(f['text'], 'ascii')
    f['t'].attrs.create('own', 1, dtype=f['t'])
    f.create_dataset('d', data=np.int32(7), dtype=f['t'])

def change(f):
    f['gain'].attrs.create('y', 1, dtype=f['t'])
    f['lose'].attrs.create('y', 1, dtype='i4')
    f['other'].attrs.create('y', 1, dtype=f['u'])
    f['keep'].attrs.create('y', 1, dtype=f['t'])
    named(f['set'], 0)
    strings(f['text'], 'utf-8')
    del f['order'].attrs['a']
    f['order'].attrs['a'] = 1
    del f['d']
    f['d'] = np.int32(7)
    f['z'] = 1

def again(f): # the type's own place changes, its users' types do not
    del f['t'].attrs['own']
    f['again'].attrs.create('y', 1, dtype=f['t'])

def last(f):
    del f['t']
    f['t'] = np.dtype('i4')
    f['again'].attrs.create('y', 1, dtype=f['t'])
    named(f['set'], 1)

def strings(group, encoding):
    text = h5py.string_dtype(encoding)
    group.attrs.create('one', b'a', dtype=text)
    group.attrs.create('inside', np.array((1, b'a'), dtype=[('n', 'i4'), ('s', text)]))

def named(group, encoding):
    '''The attribute made anew, its name of this character set; h5py has no list to say it with.'''
    import ctypes
    lib = ctypes.CDLL(next(l.split()[-1] for l in open('/proc/self/maps') if '/libhdf5.so' in l or '/libhdf5_serial' in l))
    lib.H5Pcreate.restype = lib.H5Acreate2.restype = ctypes.c_int64
    hid = ctypes.c_int64
    name = '\\N{LATIN SMALL LETTER E WITH ACUTE}'.encode()
    h5a.delete(group.id, name)
    acpl = lib.H5Pcreate(hid.in_dll(lib, 'H5P_CLS_ATTRIBUTE_CREATE_ID_g'))
    space = h5s.create(h5s.SCALAR)
    assert lib.H5Pset_char_encoding(hid(acpl), encoding) >= 0
    made = lib.H5Acreate2(hid(group.id.id), name, hid(h5t.STD_I32LE.id), hid(space.id), hid(acpl), hid(0))
    assert made >= 0 and lib.H5Aclose(hid(made)) >= 0 and lib.H5Pclose(hid(acpl)) >= 0
    h5a.open(group.id, name).write(np.array(1, 'i4'))

def sets(type):
    inside = [type.get_member_type(i) for i in range(type.get_nmembers())] if isinstance(type, h5t.TypeCompoundID) else [type]
    return [t.get_cset() for t in inside if isinstance(t, h5t.TypeStringID)]

def told(name):
    '''Which named type each attribute is of, its character set and place; how often each type is used.'''
    with h5py.File(name) as f:
        types = {h5o.get_info(f[t].id).addr: t for t in 'tu' if t in f}
        def of(type):
            return types.get(h5o.get_info(type).addr, 'gone') if type.committed() else '-'
        for path in sorted(x for x in f if x != '_versioned_data'):
            for name in f[path].attrs:
                key = name.encode()
                a = h5a.open(f[path].id, key)
                yield path, key, of(a.get_type()), h5a.get_info(f[path].id, key).cset, sets(a.get_type())
        yield 'd', of(f['d'].id.get_type())
        yield from ((t, h5o.get_info(f[t].id).rc) for t in types.values())

NAME = sys.argv[1]
for step, what in enumerate((begin, change, again, last), 1):
    with h5py.File(NAME, 'a') as f:
        what(f)
    if NAME == 'plain.h5':
        shutil.copy(NAME, f'plain{step}.h5')
for step in range(1, 5):
    print(*told(f'plain{step}.h5' if NAME == 'plain.h5' else f'{NAME}@{step}'), sep='\\n')
"""


def test_versions_know_attributes_by_more_than_their_values(programs, tmp_path):
    """Which named type they are of, and the character set of their name and strings: made anew with an equal value, they changed."""
    told = [programs.stock("python3", "-c", programs.code(ATTRIBUTES), "plain.h5", cwd=tmp_path)]
    told.append(programs.python(ATTRIBUTES, "a.h5", cwd=tmp_path))
    assert [done.returncode for done in told] == [0, 0], (told[0].stderr, told[1].stderr)
    assert told[0].stdout.splitlines() == told[1].stdout.splitlines()
    programs.verified(tmp_path / "a.h5")


def test_attributes_of_named_types_make_no_versions_of_what_did_not_change(programs, tmp_path):
    """The head's types and those of versions are objects of their own, however equal."""
    code = """
    from h5py import h5o
    with h5py.File('a.h5', 'w') as f:
        f['t'], f['u'] = np.dtype('i4'), np.dtype('f8')
        for name in 'many', 'few':
            for i in range(1000 if name == 'many' else 3):
                f.require_group(name).attrs.create(f'a{i}', i, dtype=f['tu'[i % 2]])
    for step in range(3):
        with h5py.File('a.h5', 'a') as f:
            for i in 0, 1, 999:
                f['many'].attrs.modify(f'a{i}', i)
            f['few'].attrs.create('a1', 1, dtype=f['u'])
            f['few'].attrs['a2'] = np.int32(step)
    with h5py.File('a.h5', 'a') as f:
        f['t'].attrs['of the type'] = 1
    """
    assert said(programs.python(code, cwd=tmp_path)) == []
    with h5py.File(tmp_path / "a.h5") as f:
        made = {name: [h5py.h5o.get_info(f[f"_versioned_data/versions/{v}/{name}"].id).addr for v in range(1, 6)]
                for name in ("many", "few", "t", "u")}
    kinds = {name: [made[name].index(address) + 1 for address in made[name]] for name in made}
    assert kinds == {"many": [1, 1, 1, 1, 5], "few": [1, 2, 3, 4, 5], "t": [1, 1, 1, 1, 5], "u": [1] * 5}
