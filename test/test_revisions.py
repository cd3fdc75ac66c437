"""FILE@REV in names that a file holds: external links, followed by every call that takes a name, and sources of virtual
datasets. Natively there is no such file; so what these calls do is what they do with a link to a plain file."""

import h5py
import numpy as np
import pytest


@pytest.fixture
def linked(programs, tmp_path):
    """run.h5 of two versions, plain.h5 that equals the first one, and main.h5 with a link to each."""
    done = programs.python(
        """
        import shutil
        def fill(f, version):
            if version == 1:
                f.create_dataset('g/x', data=np.arange(5000), maxshape=(None,), chunks=(100,))
                f['g/sub/small'] = [0, 1]
                f['g/soft'] = h5py.SoftLink('/g/x')
                f['g'].attrs['a'] = f['g'].attrs['b'] = 1
                h5py.h5o.set_comment(f['g'].id, b'said')
            f['g/x'][0] = f['g/sub/small'][0] = version
        for version in 1, 2:
            with h5py.File('run.h5', 'a') as f:
                fill(f, version)
        with h5py.File('main.h5', 'w') as f:
            f['past'] = h5py.ExternalLink('run.h5@1', '/g')
            f['plain'] = h5py.ExternalLink('plain.h5', '/g')
            f['circle'] = h5py.ExternalLink('main.h5@1', '/circle')
            f['ping'] = h5py.ExternalLink('other.h5@1', '/pong')
        with h5py.File('other.h5', 'w') as f:
            f['pong'] = h5py.ExternalLink('main.h5@1', '/ping')
        """,
        cwd=tmp_path,
        errors=False,
    )
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "plain.h5", "w") as f:
        f.create_dataset("g/x", data=np.arange(5000), maxshape=(None,), chunks=(100,))[0] = 1
        f["g/sub/small"] = [1, 1]
        f["g/soft"] = h5py.SoftLink("/g/x")
        f["g"].attrs["a"] = f["g"].attrs["b"] = 1
        h5py.h5o.set_comment(f["g"].id, b"said")
    return tmp_path


def said(done):
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout.splitlines()


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_every_call_that_takes_a_name_follows_links_to_versions(programs, linked, mode):
    code = f"""
    f = h5py.File('main.h5', {mode!r})
    h5a, h5g, h5l, h5o = h5py.h5a, h5py.h5g, h5py.h5l, h5py.h5o
    def visit(name, *info):
        met.append((name, h5o.get_info(f.id, where + b'/' + name).type if name != b'.' else 2))
    for name in 'past', 'plain':
        where = name.encode()
        print([h5o.open(f.id, where).id > 0, h5o.exists_by_name(f.id, where + b'/x')])
        print(h5g.open(f.id, where).get_num_objs(), h5g.get_objinfo(f.id, where + b'/x').type)
        met = []
        h5o.visit(f.id, visit, obj_name=where)
        print(met)
        met = []
        f.id.links.visit(visit, obj_name=where)
        print(met)
        met = []
        h5g.iterate(f.id, met.append, obj_name=where)
        print(met)
        print([f.id.links.get_info(where + b'/' + n).type for n in (b'x', b'soft', b'sub')], f.id.links.exists(where + b'/x'),
              f.id.links.exists(where + b'/none'), f.id.links.get_val(where + b'/soft'))
        print(h5a.exists(f.id, b'a', obj_name=where), h5a.exists(f.id, b'z', obj_name=where),
              h5a.get_info(f.id, b'a', obj_name=where).data_size)
        print([h5a.open(f.id, index=i, obj_name=where).name for i in (0, 1)])
        if f.mode == 'r+':
            f.copy(name + '/sub', 'copy-' + name)
            print(f['copy-' + name]['small'][...])
    """
    lines = said(programs.python(code, cwd=linked, errors=False))
    half = len(lines) // 2
    assert lines[:half] == lines[half:] and half >= 7, lines


BY_INDEX = """
import ctypes, h5py, os, sys
import numpy as np
f = h5py.File('main.h5', 'r')
c = ctypes.CDLL([line.split()[-1] for line in open('/proc/self/maps') if 'libhdf5_serial.so' in line or 'libhdf5.so' in line][0])
c.H5Oopen_by_idx.restype = c.H5Aopen_by_idx.restype = ctypes.c_int64
c.H5Lget_name_by_idx.restype = c.H5Aget_name_by_idx.restype = c.H5Oget_comment_by_name.restype = ctypes.c_ssize_t
for where in (b'past', b'plain'):
    names = []
    for n in range(4):
        text = ctypes.create_string_buffer(50)
        at = (ctypes.c_int64(f.id.id), where, 0, 0, ctypes.c_ulonglong(n))
        size = c.H5Lget_name_by_idx(*at, text, 50, ctypes.c_int64(0))
        opened = c.H5Oopen_by_idx(*at, ctypes.c_int64(0))
        attribute = c.H5Aopen_by_idx(*at, ctypes.c_int64(0), ctypes.c_int64(0))
        named = ctypes.create_string_buffer(50)
        c.H5Aget_name_by_idx(*at, named, 50, ctypes.c_int64(0))
        info = ctypes.create_string_buffer(500)
        names.append((size, text.value, opened > 0, attribute > 0, named.value, c.H5Oget_info_by_idx3(*at, info, 1, ctypes.c_int64(0)),
                      c.H5Lget_info_by_idx2(*at, info, ctypes.c_int64(0)), c.H5Aget_info_by_idx(*at, info, ctypes.c_int64(0))))
    group, comment = ctypes.create_string_buffer(100), ctypes.create_string_buffer(50)
    print(names, c.H5Gget_info_by_name(ctypes.c_int64(f.id.id), where, group, ctypes.c_int64(0)),
          c.H5Oget_comment_by_name(ctypes.c_int64(f.id.id), where, comment, ctypes.c_size_t(50), ctypes.c_int64(0)), comment.value)
"""


def test_calls_by_index_follow_links_to_versions(programs, linked):
    past, plain = said(programs.python(BY_INDEX, cwd=linked, errors=False))
    # links by index behind an external link are an error natively: "address undefined"
    shown = ["(4, b'soft'", "(3, b'sub'", "(1, b'x'"]
    assert past.endswith("4 b'said'") and all(link in past for link in shown), past
    for link in shown:
        past = past.replace(link, "(-1, b''")
    assert past.replace("0, 0, 0)", "0, -1, 0)").replace("0, 0, -1)", "0, -1, -1)") == plain


@pytest.mark.parametrize("name", ["circle", "ping"])
def test_links_to_versions_in_a_circle_are_an_error(programs, linked, name):
    code = f"""
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    f = h5py.File('main.h5', 'r')
    print({name!r} in f)
    f[{name!r}]
    """
    done = programs.python(code, cwd=linked, errors=False)
    assert done.returncode == 1 and "external links to versions lead to one another" in done.stderr, done.stderr


def test_links_to_versions_are_found_behind_other_links_and_a_thousand_groups(programs, linked):
    """HDF5 goes all the way for each name that it is asked for: those of which a long one is made are not all asked for."""
    code = """
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    f = h5py.File('main.h5', 'r+')
    deep = f.create_group('d' + 999 * '/d').name
    for name in 'past', 'plain':
        f['soft-' + name] = h5py.SoftLink('/' + name)
        f['d/' + name] = h5py.SoftLink('/soft-' + name)
        f[deep + '/' + name] = f.get(name, getlink=True)
        f[deep + '/sub-' + name] = h5py.SoftLink('/d//' + name + '/./sub/')
        f['deep-' + name] = h5py.SoftLink(deep)
    f['gone'] = h5py.SoftLink('/d/none')
    f['elsewhere'] = h5py.ExternalLink('run.h5@9', '/g')
    for n in 'past', 'plain':
        for name in (f'soft-{n}/x', f'd/{n}/soft', f'/d/{n}/sub/small', f'{deep}/{n}/x', f'{deep}/sub-{n}/small',
                     f'deep-{n}/{n}/sub/small', f'deep-{n}/sub-{n}/small'):
            print(f[name][:2], name + '/none' in f, name.replace('/', '/none/', 1) in f,
                  [f.get(there + name) for there in ('d/', 'gone/', 'elsewhere/')])
    print(any(f.id.links.exists(f'{deep}/{n}'.encode()) for n in range(100)))
    """
    lines = said(programs.python(code, cwd=linked, errors=False))
    assert lines[:7] == lines[7:14] and lines[14:] == ["False"] and "[1 1]" in lines[1] + lines[2], lines


# ---- sources of virtual datasets ----------------------------------------------------------------------------------------

VIRTUAL = """
    def virtual(f, name, file, source='/g/x', shape=(5000,), maxshape=None):
        layout = h5py.VirtualLayout(shape, 'i8', maxshape=maxshape)
        layout[...] = h5py.VirtualSource(file, source, shape, maxshape=maxshape)
        return f.create_virtual_dataset(name, layout, fillvalue=-1)
"""


@pytest.mark.parametrize("holder", ["holder.h5", "run.h5"], ids=["another file", "the file itself"])
def test_virtual_datasets_show_versions(programs, linked, holder):
    code = VIRTUAL + f"""
    with h5py.File({holder!r}, 'a') as f:
        for v in 'run.h5@1', 'run.h5@2', 'run.h5', 'run.h5@9', 'none.h5@1':
            virtual(f, v.replace('@', '-'), v)
        virtual(f, 'absolute', {str(linked / "run.h5@1")!r})
    with h5py.File('run.h5', 'r+') as f:
        f['g/x'][0] = 7
    with h5py.File({holder!r}, 'r') as f:
        print(*[f[n][0] for n in ('run.h5-1', 'run.h5-2', 'run.h5', 'run.h5-9', 'none.h5-1', 'absolute')], f['absolute'][4999])
    """
    assert said(programs.python(code, cwd=linked, errors=False)) == ["1 2 7 -1 -1 1 4999"]


def test_virtual_datasets_of_files_without_history_show_versions(programs, linked):
    with h5py.File(linked / "plain.h5", "r+") as f:
        layout = h5py.VirtualLayout((5000,), "i8")
        layout[...] = h5py.VirtualSource("run.h5@1", "/g/x", (5000,))
        f.create_virtual_dataset("v", layout, fillvalue=-1)
        assert f["v"][0] == -1  # no file has that name
    code = "f = h5py.File('plain.h5', 'r'); print(f['v'][0], f['v'][4999])"
    assert said(programs.python(code, cwd=linked, errors=False)) == ["1 4999"]


def test_a_virtual_dataset_is_as_long_as_the_version_that_it_shows(programs, linked):
    code = VIRTUAL + """
    with h5py.File('run.h5', 'r+') as f:
        f['g/x'].resize((6000,))
    all_of_it = slice(0, h5py.h5s.UNLIMITED)
    with h5py.File('holder.h5', 'w') as f:
        for name, version in ('old', 'run.h5@2'), ('new', 'run.h5@3'):
            layout = h5py.VirtualLayout((1,), 'i8', maxshape=(None,))
            layout[all_of_it] = h5py.VirtualSource(version, '/g/x', (1,), maxshape=(None,))[all_of_it]
            f.create_virtual_dataset(name, layout)
    with h5py.File('holder.h5', 'r') as f:
        print(f['old'].shape, f['new'].shape)
    """
    assert said(programs.python(code, cwd=linked, errors=False)) == ["(5000,) (6000,)"]


def test_versions_are_never_written_through_virtual_datasets(programs, linked, sha256):
    before = sha256(linked / "run.h5")
    code = VIRTUAL + """
    with h5py.File('holder.h5', 'w') as f:
        virtual(f, 'v', 'run.h5@1')
        try:
            f['v'][0] = 9
        except OSError as error:
            print('refused', f['v'][0])
    """
    assert said(programs.python(code, cwd=linked, errors=False)) == ["refused 1"]
    assert sha256(linked / "run.h5") == before


LARGE = """
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    far = 1 << 40
    with h5py.File('run.h5', 'r+') as f:
        layout = h5py.VirtualLayout((far, 5), 'i8')
        layout[:1000] = h5py.VirtualSource('.', '/two', (1000, 5))
        f['two'] = np.arange(5000).reshape(1000, 5)
        f.create_virtual_dataset('v', layout, fillvalue=-1)
        f['words'] = np.array(['a', 'b', 'c'] * 100, dtype=h5py.string_dtype())
        layout = h5py.VirtualLayout((300,), h5py.string_dtype())
        layout[...] = h5py.VirtualSource('.', '/words', (300,))
        f.create_virtual_dataset('w', layout)
"""


def test_points_of_a_large_virtual_dataset_are_read_without_memory_for_all_of_it(programs, linked):
    code = LARGE + """
    with h5py.File('run.h5', 'r') as f:
        points = np.array([[999, 4], [far - 1, 0], [0, 0], [far // 2, 3], [1, 2], [999, 4]], dtype='u8')
        space = f['v'].id.get_space()
        space.select_elements(points)
        got = np.zeros(6, 'i8')
        f['v'].id.read(h5py.h5s.create_simple((6,)), space, got)
        print(*got)
        space = f['w'].id.get_space()
        space.select_elements(np.array([[2], [0], [2], [299]], dtype='u8'))
        got = np.empty(4, h5py.string_dtype())
        f['w'].id.read(h5py.h5s.create_simple((4,)), space, got)
        print(*got)
    """
    assert said(programs.python(code, cwd=linked, errors=False)) == ["4999 -1 0 -1 7 4999", "b'c' b'a' b'c' b'c'"]


def test_a_numbered_mapping_of_a_very_long_virtual_dataset_is_read_where_it_is_asked_for(programs, linked):
    """Its blocks are those of the selection; the extent comes from another mapping."""
    code = LARGE + """
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        from_ = h5py.h5s.create_simple((10,))
        to = h5py.h5s.create_simple((10,), (h5py.h5s.UNLIMITED,))
        to.select_hyperslab((0,), (h5py.h5s.UNLIMITED,), stride=(10,), block=(10,))
        dcpl.set_virtual(to, b'.', b'/part%b', from_)
        end = h5py.h5s.create_simple((far,), (h5py.h5s.UNLIMITED,))
        end.select_hyperslab((far - 10,), (10,))
        dcpl.set_virtual(end, b'.', b'/part0', from_)
        f['part0'] = np.arange(10)
        f['part1'] = np.arange(10, 20)
        h5py.h5d.create(f.id, b'long', h5py.h5t.STD_I64LE, h5py.h5s.create_simple((far,), (h5py.h5s.UNLIMITED,)), dcpl)
    with h5py.File('run.h5', 'r') as f:
        print(f['long'].shape[0] == far, *f['long'][8:12], f['long'][far - 1])
    """
    assert said(programs.python(code, cwd=linked, errors=False)) == ["True 8 9 10 11 9"]
