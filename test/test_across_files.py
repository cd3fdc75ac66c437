"""Paths that lead into another file, by a mount or an external link: what native HDF5 makes or refuses there is made or refused, and what a
program has changed elsewhere is kept."""

import json
import sys

import pytest

# A has `d` and groups, and in `m` the file B is mounted; `ext` is an external link to B's `sub`, `soft` a soft link to `m/sub`.
PROGRAM = """
import json, os
os.chdir(sys.argv[1])
with h5py.File('b.h5', 'w') as b:
    b['inner'] = np.arange(3000.)
    b.create_group('sub/below')
with h5py.File('a.h5', 'w') as a:
    a['d'] = np.arange(2000.)
    a['small'] = 5
    a['k/e'] = np.arange(2500.)
    a.create_group('m')
    a['ext'] = h5py.ExternalLink('b.h5', '/sub')
    a['soft'] = h5py.SoftLink('/m/sub')
    a['link'] = h5py.SoftLink('/k')
told = {}
a = h5py.File('a.h5', 'r+')
if MOUNTED:
    b = h5py.File('b.h5', 'r+')
    h5py.h5f.mount(a.id, b'm', b.id)
    below = a['m/sub']
else:
    below = a['k']
a['before'] = np.arange(1500.)

def attempt(what, work, *words):
    try:
        work(*words)
        told[what] = True
    except Exception as e:
        told[what] = False

copy, place = h5py.h5o.copy, 'm' if MOUNTED else 'k'
for source in ('d', 'small', 'k', 'm/inner'):
    for target in (f'{place}/X', f'{place}/sub/X', 'ext/X', 'soft/X', 'X', f'{place}/new/X', 'ext/below/X'):
        attempt(f'copy {source} to {target}', copy, a.id, source.encode(), a.id, target.replace('X', f'copy of {source}'.replace('/', ' ')).encode())
    attempt(f'copy {source} to an opened group', copy, a.id, source.encode(), below.id, f'by handle {source}'.replace('/', ' ').encode())
    if MOUNTED:
        attempt(f'copy {source} into the mounted file', copy, a.id, source.encode(), b.id, f'file {source}'.replace('/', ' ').encode())
        attempt(f'copy {source} into the mounted file, to the root', copy, a.id, source.encode(), b.id, f'/file root {source}'.replace('m/', '').encode())
    attempt(f'copy {source} from there to the root', copy, a.id, source.encode(), below.id, f'/absolute {source}'.replace('m/', '').encode())
for target in (f'{place}/Y', f'{place}/sub/Y', 'ext/Y', 'soft/Y', 'link/Y'):
    attempt(f'dataset {target}', lambda: a.create_dataset(target, data=np.arange(1700.)))
    attempt(f'group {target}', lambda: a.create_group(target + ' group'))
    attempt(f'hard link {target}', lambda: a.id.links.create_hard((target + ' hard').encode(), a.id, b'd'))
    attempt(f'move {target}', lambda: a.id.links.move(b'small', a.id, (target + ' moved').encode()) if 'm/Y' in target else None)
a['after'] = np.arange(1600.)
del below
if MOUNTED:
    h5py.h5f.unmount(a.id, b'm')
    b.close()
a.close()

def tree(group):
    return {name: x[...].tolist() if isinstance(x, h5py.Dataset) else tree(x) for name in group if name != '_versioned_data'
            for x in [group.get(name) if isinstance(group.get(name, getlink=True), h5py.HardLink) else None] if x is not None}

for name in ('a.h5', 'b.h5'):
    with h5py.File(name, 'r') as f:
        told[name] = tree(f)
print(json.dumps(told))
"""


@pytest.mark.parametrize("mounted", [True, False], ids=["mounted", "linked"])
def test_what_leads_into_another_file(programs, tmp_path, mounted):
    told = []
    for run, name in ((programs.stock, "native"), (programs.connector, "connector")):
        folder = tmp_path / name
        folder.mkdir()
        done = run(sys.executable, "-c", programs.code(PROGRAM.replace("MOUNTED", str(mounted)), errors=False), folder)
        assert done.returncode == 0, done.stderr
        told.append(json.loads(done.stdout))
    native, connector = told
    assert any(native[what] is False for what in native) and "before" in native["a.h5"]
    assert [what for what in native if connector[what] is not native[what] and "." not in what] == []
    assert all(connector[name] == native[name] for name in ("a.h5", "b.h5"))
    if mounted:
        for name in ("a.h5", "b.h5"):
            programs.verified(tmp_path / "connector" / name)
