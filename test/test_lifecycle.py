"""How Python programs begin and end: plugins that HDF5 tries by itself, file objects, closes that fail. And links that
lead into versions of other files.

In C: test_lifecycle.c.
"""

import subprocess
import sys

import h5py
import pytest
from conftest import PLUGINS, STOCK
from waiting import WAITING


def findable(*command, **more):
    """The plugin can be found and is not asked for: HDF5 tries it when it cannot open a file."""
    return subprocess.run(
        [str(word) for word in command],
        env={**STOCK, "HDF5_PLUGIN_PATH": PLUGINS},
        capture_output=True,
        text=True,
        timeout=WAITING,
        **more,
    )


@pytest.fixture(scope="module")
def made(programs, tmp_path_factory):
    path = tmp_path_factory.mktemp("lifecycle") / "two.h5"
    done = programs.python(
        """
        for mode in 'w', 'a':
            with h5py.File(sys.argv[1], mode) as f:
                f[mode] = np.arange(5000)
        """,
        path,
    )
    assert done.returncode == 0, done.stderr
    return path


OPEN_OBJECT = """
import h5py, sys
try:
    f = h5py.File(open(sys.argv[1], 'r+b'), sys.argv[2])
    print('open', sorted(name for name in f if name != '_versioned_data'))
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("mode", ["a", "r+", "r", "w", "x"])
def test_python_file_objects_end_as_without_the_plugin(programs, made, tmp_path, mode):
    """HDF5 keeps the access list of a file that a plugin says it can open, with what the file object's driver has on it,
    and frees that when Python has ended."""
    said = []
    for run in (programs.stock, findable):
        path = tmp_path / "copy.h5"
        path.write_bytes(made.read_bytes())
        done = run(sys.executable, "-c", OPEN_OBJECT, path, mode)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        said.append((done.stdout, done.stderr))
    assert said[0] == said[1]


OPEN_EACH = """
import h5py, sys
for name in sys.argv[1:] * 3:
    for mode in 'r', 'r+', 'x':
        try:
            h5py.File(name, mode).close()
            print(name, mode, 'open')
        except Exception as error:
            print(name, mode, type(error).__name__, error)
"""


def test_the_reason_of_a_failed_open_outlives_the_search_for_plugins(programs, tmp_path):
    names = ["text.h5", "empty.h5", "short.h5", "nothing.h5/x", "text.h5@1"]
    said = []
    for run in (programs.stock, findable):
        here = tmp_path / run.__name__
        here.mkdir()
        (here / "text.h5").write_text("no HDF5 file " * 100)
        (here / "empty.h5").write_text("")
        with h5py.File(here / "short.h5", "w") as f:
            f["x"] = range(1000)
        with open(here / "short.h5", "r+b") as f:
            f.truncate(4000)
        done = run(sys.executable, "-c", OPEN_EACH, *names, cwd=here)
        assert done.returncode == 0, done.stderr
        said.append((done.stdout, done.stderr))
    assert said[0] == said[1] and said[0][0] != ""


def test_a_program_ends_well_after_a_close_that_failed(programs, made, tmp_path):
    path = tmp_path / "full.h5"
    path.write_bytes(made.read_bytes())
    done = programs.python(
        """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        f = h5py.File(sys.argv[1], 'r+')
        f['lost'] = np.random.default_rng(1).integers(0, 1 << 60, 500000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200000, resource.RLIM_INFINITY))
        try:
            f.close()
            print('closed')
        except Exception as error:
            print(type(error).__name__)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        again = h5py.File(sys.argv[1], 'r')
        print(int(again['w'][4999]))
        """,
        path,
        errors=False,
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    assert done.stdout.split()[-1] == "4999" and "closed" not in done.stdout, done.stdout
    programs.verified(path)
    with h5py.File(path, "r") as f:
        assert sorted(f) == ["_versioned_data", "a", "w"]


# ---- external links to FILE@REVISION ---------------------------------------------------------------------------------


@pytest.fixture
def linked(programs, tmp_path):
    """data/run.h5 of three versions, and links/main.h5 with links into them."""
    (tmp_path / "data").mkdir()
    (tmp_path / "links").mkdir()
    done = programs.python(
        """
        for version in range(1, 4):
            with h5py.File('data/run.h5', 'a') as f:
                if version == 1:
                    f['g/large'] = np.arange(5000)
                    f['g/small'] = [0, 1]
                    f['g/text'] = np.array(['one', 'two'], dtype=h5py.string_dtype())
                    f['g/soft'] = h5py.SoftLink('/g/large')
                    f['type'] = np.dtype('<i4')
                f['g/large'][0] = f['g/small'][0] = f['g'].attrs['version'] = version
        with h5py.File('links/main.h5', 'w') as f:
            for version in 1, 2, 3, 9:
                f['v%d' % version] = h5py.ExternalLink('../data/run.h5@%d' % version, '/g')
            f['dataset'] = h5py.ExternalLink('../data/run.h5@2', 'g/large')
            f['type'] = h5py.ExternalLink('../data/run.h5@2', 'type')
            f['root'] = h5py.ExternalLink('../data/run.h5@1', '/')
            f['gone'] = h5py.ExternalLink('../data/run.h5@1', '/nothing')
            f['bare'] = h5py.ExternalLink('run.h5@1', '/g')
            f['odd'] = h5py.ExternalLink('odd@1', '/here')
            f['a/link'] = h5py.ExternalLink('../data/run.h5@1', '/g')
            f['a/soft'] = h5py.SoftLink('link/large')
            f['absolute'] = h5py.SoftLink('/a/soft')
        """,
        cwd=tmp_path,
        errors=False,
    )
    assert done.returncode == 0, done.stderr
    return tmp_path


def said(done):
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout.split()


@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("start", [".", "links", "/"])
def test_external_links_lead_into_versions(programs, linked, mode, start):
    code = f"""
    f = h5py.File({str(linked / 'links/main.h5')!r}, {mode!r})
    for v in 'v1', 'v2', 'v3':
        g = f[v]
        print(g['large'][0], f[v + '/large'][0], f[v + '/small'][0], g.attrs['version'], g['soft'][0], len(g['text'][1]))
        print(v + '/large' in f, v + '/nothing' in f, f.get(v + '/large', getclass=True).__name__)
    print(f['dataset'][0], f['root/g/large'][0], f['a/soft'][0], f['absolute'][0], f['type'].dtype, f['dataset'].name)
    """
    words = said(programs.python(code, cwd=linked if start == "." else linked / start, errors=False))
    for n in (1, 2, 3):
        assert words[(n - 1) * 9 : n * 9] == [str(n)] * 5 + ["3", "True", "False", "Dataset"]
    assert words[27:] == ["2", "1", "1", "1", "int32", "/g/large"]


def test_external_links_lead_into_versions_by_index_too(programs, linked):
    """As by name: the link that is counted, and what leads to its group."""
    code = """
    import ctypes
    lib = ctypes.CDLL([line.split()[-1] for line in open('/proc/self/maps') if 'libhdf5' in line and '_hl' not in line][0])
    lib.H5Oopen_by_idx.restype = ctypes.c_int64
    lib.H5Oopen_by_idx.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_uint64, ctypes.c_int64]
    lib.H5Gget_info_by_idx.argtypes = lib.H5Oopen_by_idx.argtypes[:5] + [ctypes.c_void_p, ctypes.c_int64]
    f = h5py.File('links/main.h5', 'r')
    members = ctypes.create_string_buffer(100)
    def kind(ask):
        try:
            return ask().type
        except (KeyError, RuntimeError, OSError) as error:
            return 'none'
    for group in '/', 'a', 'v2':
        for order in h5py.h5.ITER_INC, h5py.h5.ITER_DEC:
            for n, name in enumerate(sorted(f[group], reverse=order == h5py.h5.ITER_DEC)):
                path, at = group + '/' + name, [f.id.id, group.encode(), h5py.h5.INDEX_NAME, order, n]
                kinds = [kind(lambda: h5py.h5o.get_info(f.id, path.encode())),
                         kind(lambda: h5py.h5o.get_info(f.id, index=n, order=order, obj_name=group.encode()))]
                opened = lib.H5Oopen_by_idx(*at, 0)
                names = [f.get(path).name if kinds[0] != 'none' else '']
                names += [h5py.h5i.get_name(h5py.h5i.wrap_identifier(opened)).decode() if opened >= 0 else '']
                count = lib.H5Gget_info_by_idx(*at, members, 0) >= 0
                print(path, kinds[0] == kinds[1], names[0] == names[1], count == isinstance(f.get(path), h5py.Group), kinds[0])
    """
    done = programs.python(code, cwd=linked, errors=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 2 * (12 + 2 + 4), (done.stdout, done.stderr)
    assert all(" True True True " in line for line in lines), done.stdout
    assert [line.split()[0] for line in lines[:12] if line.endswith("none")] == ["//bare", "//gone", "//odd", "//v9"]


def test_what_is_not_there_is_said(programs, linked):
    code = """
    f = h5py.File('links/main.h5', 'r')
    for name in 'v9', 'gone', 'bare', 'v1/none':
        try:
            f[name]
            print(name, 'open')
        except KeyError as error:
            print(name, error)
    """
    done = programs.python(code, cwd=linked, errors=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 4, (done.stdout, done.stderr)
    assert "no version '9'" in lines[0]
    assert not any(line.endswith("open") for line in lines)


def test_versions_behind_links_are_never_written(programs, linked, sha256):
    before = sha256(linked / "data/run.h5")
    code = """
    f = h5py.File('links/main.h5', 'r+')
    for what in (lambda: f['v1/large'].__setitem__(0, 7), lambda: f['v1'].create_group('new'),
                 lambda: f['v1'].attrs.__setitem__('version', 7), lambda: f['v1'].__delitem__('small')):
        try:
            what()
            print('done')
        except Exception as error:
            print('refused')
    f['new'] = 1
    """
    assert said(programs.python(code, cwd=linked, errors=False)) == ["refused"] * 4
    assert sha256(linked / "data/run.h5") == before


def test_prefixes_and_literal_names_hold_as_natively(programs, linked):
    code = """
    f = h5py.File('links/main.h5', 'r')
    print(f['bare/large'][0])
    """
    elink = """
    f = h5py.File('links/main.h5', 'r')
    lapl = h5py.h5p.create(h5py.h5p.LINK_ACCESS)
    lapl.set_elink_prefix(b'data')
    print(h5py.Dataset(h5py.h5o.open(f.id, b'bare/large', lapl))[0])
    """
    assert programs.python(code, cwd=linked, errors=False).returncode == 1
    with_prefix = ["env", "HDF5_EXT_PREFIX=/nowhere:data", sys.executable, "-c", programs.code(code, False)]
    assert said(programs.connector(*with_prefix, cwd=linked)) == ["1"]
    assert said(programs.python(elink, cwd=linked, errors=False)) == ["1"]
    for name, value in ("links/odd", 5), ("links/odd@1", 6):  # a file of that very name wins
        with h5py.File(linked / name, "w") as f:
            f["here"] = value
    code = "print(h5py.File('links/main.h5', 'r')['odd'][()])"
    assert said(programs.python(code, cwd=linked, errors=False)) == ["6"]


def heap_blocks(data):
    """How many bytes are free in each global heap block of a file."""
    free = []
    at = data.find(b"GCOL\1\0\0\0")
    while at >= 0:
        size = int.from_bytes(data[at + 8 : at + 16], "little")
        place, last = at + 16, at + size
        while place + 16 <= last:
            bytes_there = int.from_bytes(data[place + 8 : place + 16], "little")
            if data[place : place + 2] == b"\0\0":  # what is free
                free.append(bytes_there)
                break
            place += 16 + (bytes_there + 7) // 8 * 8
        at = data.find(b"GCOL\1\0\0\0", last)
    return free


def test_small_sessions_go_on_in_the_heap_block_of_the_last(programs, tmp_path):
    """HDF5 forgets which blocks of its heap have room. Where one ended in the middle of a row of the log, the next session
    did not meet the one that the row went on in, and began another: every second block stayed nearly empty."""
    path, script = tmp_path / "small.h5", tmp_path / "s.py"
    script.write_text(
        programs.code(
            """
            with h5py.File(sys.argv[1], 'a') as f:
                f.require_dataset('x', (5000,), 'f8')
            for k in range(30):
                with h5py.File(sys.argv[1], 'r+') as f:
                    f['x'][k] = np.random.random()
            """
        )
    )
    for length in range(1, 130, 16):  # a row ends elsewhere in its block
        done = programs.connector(sys.executable, script, path, options=f"message={'m' * length}")
        assert done.returncode == 0, done.stderr
    free = heap_blocks(path.read_bytes())
    assert len(free) > 10
    assert len([room for room in free if room > 2048]) <= 1


# ---- links that HDF5 cannot tell ---------------------------------------------------------------------------------------

UNTELLABLE = """
import ctypes
with h5py.File(sys.argv[1], 'w') as f:
    g = f.create_group('g', track_order=sys.argv[2] == 'tracked')
    names = [f'{(7 * i) % 53:02d}' for i in range(int(sys.argv[3]))]
    for i, name in enumerate(names):
        g[name] = h5py.SoftLink('nowhere') if i % 3 == 0 else np.full(4, i)
    path = next(line.split()[-1] for line in open('/proc/self/maps') if 'libhdf5' in line and '_hl' not in line)
    create = ctypes.CDLL(path).H5Lcreate_ud
    create.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64, ctypes.c_int64]
    assert create(g.id.id, b'10 bad', 64, b'\\x77nonsense', 9, 0, 0) >= 0   # as an external link
    f.flush()
    g[names[1]][0] = -1
    f.flush()
with h5py.File(sys.argv[1], 'a') as f:
    f['g/' + names[2]][0] = -2
with h5py.File(sys.argv[1], 'a') as f:
    del f['g/10 bad']
    f['g/' + names[4]][0] = -3
print(*names)
"""


@pytest.mark.parametrize("order", ["tracked", "untracked"])
@pytest.mark.parametrize("members", [5, 11, 12, 40])
def test_a_link_that_cannot_be_told_costs_no_other_one(programs, tmp_path, order, members):
    """Few links are asked for one by one, many are listed by one walk, which such a link ends."""
    path = tmp_path / "a.h5"
    done = programs.python(UNTELLABLE, path, order, members)
    assert done.returncode == 0, done.stderr
    assert "'10 bad'" in done.stderr and "/g: link" in done.stderr
    names = done.stdout.split()
    with h5py.File(path) as f:
        for version, changed in (1, [-1]), (2, [-1, -2]), (3, [-1, -2, -3]):
            g = f[f"_versioned_data/versions/{version}/g"]
            assert list(g) == (names if order == "tracked" else sorted(names)), version
            for i, name in enumerate(names):
                if i % 3 == 0:
                    assert g.get(name, getlink=True).path == "nowhere"
                else:
                    place = {1: 0, 2: 1, 4: 2}.get(i, 9)
                    assert g[name][0] == (changed[place] if place < len(changed) else i), (version, name)
    programs.verified(path)


@pytest.mark.parametrize("way", ["fs_strategy='page'", "fs_strategy='page', fs_persist=True", "alignment_threshold=1, alignment_interval=512",
                                 "libver='latest'"])
def test_what_was_never_written_has_no_record_of_the_journal_in_it(programs, tmp_path, way):
    """HDF5 does not write what the program did not write of a dataset, and reads what stands there."""
    code = f"""
    from h5py import h5d, h5p, h5s, h5t
    with h5py.File(sys.argv[1], 'w', {way}) as f:
        for n in range(6):
            h5d.create(f.id, b'd%d' % n, h5t.IEEE_F64LE, h5s.create_simple((200 + 37 * n,)), h5p.create(h5p.DATASET_CREATE))
    for n in range(6):
        with h5py.File(sys.argv[1], 'r+'{', ' + way if 'alignment' in way else ''}) as f:
            f[f'd{{n}}'][100 + 10 * n:] = 1
            f.attrs[f'{{n}}'] = 'x' * 3000
    with h5py.File(sys.argv[1], 'r') as f:
        print([int(np.count_nonzero(f[f'd{{n}}'][:100])) for n in range(6)])
    """
    done = programs.python(code, tmp_path / "part.h5")
    assert done.returncode == 0 and done.stdout.strip() == "[0, 0, 0, 0, 0, 0]", done.stdout + done.stderr


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_reasons_of_failures_are_as_natively(programs, tmp_path, mode):
    """A program prints them: h5py gives the innermost record of HDF5's stack for the reason."""
    made = """
        path, mode = sys.argv[1:]
        with h5py.File(path, 'w', libver='v110') as f:
            f['x'], f['type'] = np.arange(100), np.dtype('i4')
            f.create_dataset('chunked', data=np.arange(100), chunks=(10,), maxshape=(None,))
            f.create_group('g/h')
            f['soft'], f['external'] = h5py.SoftLink('/gone'), h5py.ExternalLink('none.h5', '/x')

        def tried(name, what):
            try:
                print(name, type(what()).__name__)
            except Exception as e:
                print(name, type(e).__name__, str(e).replace(path, 'FILE'))

        with h5py.File(path, mode) as f:
            for written in range(2):
                for name in 'nix', '/nix', 'g/nix', 'g/h/nix', 'x/nix', 'soft', 'external', 'soft/y', 'type/z', 'chunked', '.', 'g/h':
                    raw = name.encode()
                    tried('get ' + name, lambda: f[name])
                    tried('in ' + name, lambda: name in f)
                    tried('link ' + name, lambda: f.get(name, getlink=True))
                    tried('dataset ' + name, lambda: h5py.h5d.open(f.id, raw))
                    tried('group ' + name, lambda: h5py.h5g.open(f.id, raw))
                    tried('named type ' + name, lambda: h5py.h5t.open(f.id, raw))
                    tried('info ' + name, lambda: h5py.h5o.get_info(f.id, raw))
                    tried('attribute ' + name, lambda: h5py.h5a.open(f.id, b'nix', obj_name=raw))
                    if 'nix' in name:
                        tried('delete ' + name, lambda: f.__delitem__(name))
                        tried('move ' + name, lambda: f.move(name, 'g/new'))
                if mode == 'r+':
                    f['chunked'][3] = 7
    """
    code = programs.code(made, errors=False)
    told = [run(sys.executable, "-c", code, tmp_path / name, mode, cwd=tmp_path)
            for run, name in ((programs.stock, "native.h5"), (programs.connector, "cow.h5"))]
    assert all(done.returncode == 0 for done in told), told[1].stderr
    assert "doesn't exist" in told[0].stdout
    assert told[1].stdout == told[0].stdout


# What else has the file open when it is closed
STAYS = {
    "a reader": "g = h5py.File(path, 'r')",
    "another id": "g = h5py.File(path, 'r+')",
    "the same opened again": "g = f.id.reopen()",
    "an object": "g = f['x']",
    "a version": "g = h5py.File(path + '@1', 'r')",
    "a virtual dataset of another file": "g = by_another('a'); v = g['v']; assert v[0] == 0",
    "one of the same file": "f.create_virtual_dataset('v', layout); v = f['v']; assert v[0] == 0",
    "a mount": "g = h5py.File(path + '.b', 'w'); g.create_group('m'); h5py.h5f.mount(g.id, b'm', f.id); at = g['m']",
}


@pytest.mark.parametrize("stays", STAYS)
@pytest.mark.parametrize("kept", ["", ", fs_strategy='fsm', fs_persist=True"])
def test_a_file_that_is_closed_is_committed_whatever_stays_open(programs, tmp_path, stays, kept):
    """As HDF5 flushes it then: the program may be killed."""
    path = tmp_path / "a.h5"
    code = f"""
        import os, signal
        path = sys.argv[1]
        layout = h5py.VirtualLayout((10,), 'i8')
        layout[:] = h5py.VirtualSource(path, 'x', (10,))

        def by_another(mode):
            g = h5py.File(path + '.b', mode)
            g.create_virtual_dataset('v', layout)
            return g

        with h5py.File(path, 'w'{kept}) as f:
            f['x'] = np.arange(10)
        at = f = h5py.File(path, 'r+')
        {STAYS[stays]}
        at.create_group('new')
        at['x'][3] = 77
        f.id.close()
        os.kill(os.getpid(), signal.SIGKILL)
        """
    read = "f = h5py.File(sys.argv[1], 'r'); print('new' in f, f['x'][3])"
    done = programs.connector(sys.executable, "-c", programs.code(code), path)
    assert done.returncode == -9, done.stderr
    done = programs.connector(sys.executable, "-c", programs.code(read), path)
    assert done.stdout == "True 77\n", done.stdout + done.stderr
    programs.verified(path)
