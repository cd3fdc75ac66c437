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
