"""New groups that nothing was put into get their snapshots without being opened: what may be put into them, or into their places, is seen."""

import sys

import h5py
import pytest
from conftest import H5COW

# Each case does something after `g` was made, among other groups; right is what native HDF5 makes of the same, in the head and in version 1.
CASES = {
    "nothing": "",
    "attribute": "g.attrs['a'] = 5",
    "attribute, not opened for it": "h5py.h5a.create(f.id, b'a', h5py.h5t.NATIVE_INT8, h5py.h5s.create(h5py.h5s.SCALAR), obj_name=b'g')",
    "attribute through a second link": "f['second'] = g; f['second'].attrs['a'] = 5",
    "attribute through a soft link": "f['soft'] = h5py.SoftLink('/g'); f['soft'].attrs['a'] = 5",
    "attribute by its token": "r = g.ref; f[r].attrs['a'] = 5",
    "attribute, and without it again": "g.attrs['a'] = 5; del g.attrs['a']",
    "comment": "h5py.h5o.set_comment(f.id, b'what it is', obj_name=b'g')",
    "member": "g.create_group('h')",
    "member by its path": "f['g/h/i'] = 5",
    "member through a soft link": "f['soft'] = h5py.SoftLink('/g'); f['soft/h'] = 5",
    "member that is linked": "g['h'] = f['other 3']",
    "member that is moved": "f.move('other 3', 'g/h')",
    "soft link": "g['s'] = h5py.SoftLink('other 3')",
    "absolute soft link": "g['s'] = h5py.SoftLink('/other 3')",
    "external link": "g['e'] = h5py.ExternalLink('no.h5', '/x')",
    "member by another opening": "k = h5py.File(sys.argv[1], 'r+', libver=LIBVER); k['g/h'] = 5; k.close()",
    "member of a copy": "f.copy('g', 'copy'); f['copy/h'] = 5",
    "second link": "f['second'] = g",
    "circle": "g['self'] = g",
    "moved": "f.move('g', 'other 3/g')",
    "deleted": "del f['g'], g",
    "deleted, kept open": "del f['g']; g['h'] = 5; f['again'] = g",
    "deleted, others in its place": "del f['g'], g; [f.create_group(f'new {k}', track_order=k % 2 == 1).attrs.create('n', k) for k in range(8)]",
    "deleted, datasets in its place": "del f['g'], g; [f.create_dataset(f'new {k}', data=k) for k in range(8)]",
    "deleted, types in its place": "import numpy; del f['g'], g; f['type'] = numpy.dtype('i2'); f['type'].attrs['a'] = 1",
    "deleted, groups with more in its place": "del f['g'], g; [f.create_group(f'new {k}/below/more') for k in range(4)]",
    "creation order": "f.create_group('ordered', track_order=True).create_group('b'); f['ordered'].create_group('a')",
    "made on the way": "f.create_group('p/q/r'); f['p'].attrs['a'] = 1",
    "flushed": "f.flush()",
    "flushed, and an attribute": "f.flush(); g.attrs['a'] = 5",
    "flushed, and a member": "f.flush(); g['h'] = 5",
    "flushed, and deleted": "f.flush(); del f['g'], g; f.create_group('h')",
    "without a link, then with one": "h = h5py.Group(h5py.h5g.create(f.id, None)); h.create_group('x'); f['h'] = h",
    "gone with a group without a link, others in its place": "x = h5py.Group(h5py.h5g.create(f.id, None)); x.create_group('in'); del x; f.create_group('i/j/k')",
    "gone with groups without a link, others in their place": "for k in range(6):\n        x = h5py.Group(h5py.h5g.create(f.id, None)); x.create_group('in'); del x"
                                                              "; f.create_group(f'i{k}/j/k')",
    "gone with a deleted group, others in its place": "x = f.create_group('p'); del f['p']; x.create_group('in'); del x; f.create_group('i/j/k')",
    "gone in another opening, others in its place": "k = h5py.File(sys.argv[1], 'r+', libver=LIBVER); x = h5py.Group(h5py.h5g.create(k.id, None))"
                                                    "; x.create_group('in'); del x; k.create_group('i/j/k'); k.close()",
    "counted": "h5py.h5o.link(g.id, f.id, b'third')",
}
PROGRAM = """
import sys, h5py
LIBVER = %r
with h5py.File(sys.argv[1], 'w', libver=LIBVER) as f:
    for k in range(4):
        f.create_group(f'other {k}')
    g = f.create_group('g')
    for k in range(4, 40):
        f.create_group(f'other {k}')
    %s
    f.create_group('last')
"""


def tree(group, prefix=""):
    """All that a program sees below GROUP; links of a version's absolute soft links lead into the version, which PREFIX is taken away for."""
    told = {}

    def look(name, object_):
        plist = object_.id.get_create_plist() if isinstance(object_, h5py.Group) else None
        told[name] = (
            type(object_).__name__.replace("File", "Group"),
            sorted((key, str(value)) for key, value in object_.attrs.items()),
            plist and (plist.get_link_creation_order(), plist.get_attr_creation_order(), plist.get_attr_phase_change(), plist.get_obj_track_times()),
            [(key, type(link).__name__, getattr(link, "path", "").removeprefix(prefix))
             for key in object_ for link in [object_.get(key, getlink=True)]
             if key != "_versioned_data"] if isinstance(object_, h5py.Group) else str(object_[()]) if isinstance(object_, h5py.Dataset) else "",
        )

    look(".", group)
    for name in list(group):
        if name == "_versioned_data":
            continue
        if isinstance(group.get(name, getlink=True), h5py.HardLink):
            look(name, group[name])
            if isinstance(group[name], h5py.Group):
                group[name].visititems(lambda below, object_, name=name: look(f"{name}/{below}", object_))
    return told


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_what_becomes_of_a_new_group(programs, tmp_path, case, libver):
    program = PROGRAM % (libver, CASES[case])
    for run, name in ((programs.stock, "native.h5"), (programs.connector, "a.h5")):
        done = run(sys.executable, "-c", program, tmp_path / name)
        assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "native.h5") as native, h5py.File(tmp_path / "a.h5") as f:
        right = tree(native)
        assert tree(f) == right
        versions = f["_versioned_data/versions"]
        newest = versions[max(versions, key=int)]
        if case == "comment":
            assert [group["g"].parent.id.get_comment(b"g") for group in (native, f, newest)] == [b"what it is"] * 3
        assert tree(newest, newest.name) == right
    done = programs.stock(H5COW, "verify", tmp_path / "a.h5")
    assert done.returncode == 0, done.stdout + done.stderr
