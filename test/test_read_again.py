"""Datasets that are opened again and again are kept open by the connector for a while. Programs that could notice it: each natively and
through the connector, in a process of its own, since nothing is kept any more once a prefix for external files was used."""

import os

import pytest

MAKE = """
import h5py, numpy as np, sys
from h5py import h5d, h5f, h5o, h5p, h5r, h5s
with h5py.File('a.h5', 'w') as f:
    for name in 'abc':
        f[name] = np.arange(3000) + 10
    f['refs'] = np.array([f['a'].ref, f['b'].ref], h5py.ref_dtype)
    space = h5s.create_simple((3000,))
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_virtual(space, b'.', b'a', space)
    h5d.create(f.id, b'virtual', f['a'].id.get_type(), space, plist)
with h5py.File('links.h5', 'w') as f:
    f['a'] = h5py.ExternalLink('a.h5', 'a')
prefixed = h5p.create(h5p.DATASET_ACCESS)
prefixed.set_efile_prefix(b'elsewhere')
def opened(f, name, dapl=None):
    d = h5d.open(f.id, name, dapl)
    return h5py.Dataset(d)[2999]
def tell(call):
    try:
        print(call())
    except Exception as error:
        print(type(error).__name__)
f = h5py.File('a.h5', mode)
"""
PROGRAMS = {
    "by name after a prefix": "print(opened(f, b'a', prefixed))\ntell(lambda: f['a'][7])\ntell(lambda: h5o.get_info(f.id, b'a').rc)",
    "a prefix after names": "for _ in range(3): f['a'][0]\ntell(lambda: opened(f, b'a', prefixed))\ntell(lambda: f['a'][7])",
    "by reference": "print(opened(f, b'a', prefixed))\ntell(lambda: f[f['refs'][0]][7])\nfor _ in range(3): f['b'][0]\n"
                    "tell(lambda: f[f['refs'][1]][7])",
    "by address": "print(opened(f, b'a', prefixed))\ntell(lambda: h5py.Dataset(h5o.open(f.id, b'a'))[7])",
    "through an external link": "for _ in range(3): f['a'][0]\nwith h5py.File('links.h5', mode) as g:\n tell(lambda: opened(g, b'a', prefixed))\n"
                                " tell(lambda: g['a'][7])\n tell(lambda: dict(g['a'].attrs))\n tell(lambda: h5o.get_info(g.id, b'a').rc)",
    "by name through an external link": "print(opened(f, b'a', prefixed))\nwith h5py.File('links.h5', mode) as g:\n tell(lambda: g['a'][7])\n"
                                        " tell(lambda: h5py.h5a.exists(g.id, b'x', b'a'))\n tell(lambda: h5o.get_info(g.id, b'a').rc)",
    "a virtual dataset over it": "print(opened(f, b'a', prefixed))\ntell(lambda: f['virtual'][7])\nfor _ in range(3): f['a'][0]\n"
                                 "tell(lambda: f['virtual'][7])\ntell(lambda: opened(f, b'virtual', prefixed))",
    "what references lead to is copied": "print(opened(f, b'a', prefixed))\nwith h5py.File('out.h5', 'w') as g:\n"
                                         " f.copy('refs', g, 'r', expand_refs=True)\n print(len(g))\n tell(lambda: g[g['r'][0]][7])",
    "deleted": "for _ in range(3): f['a'][0]\nif mode == 'r+':\n del f['a']\n f['a'] = np.arange(3000) * 2\n tell(lambda: f['a'][9])\n tell(lambda: f['virtual'][3])",
    "closed with handles": "for name in 'abcabc': f[name][0]\nprint(h5f.get_obj_count(f.id, h5f.OBJ_ALL))\nf.close()\n"
                           "f = h5py.File('a.h5', 'r+')\nf['c'][0] = 5\nprint(f['c'][0])\nf.close()\nos.remove('a.h5')",
}


@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_natively(programs, tmp_path, name, mode):
    code = f"import os\nmode = {mode!r}\n{MAKE}\n{PROGRAMS[name]}\n"
    answers = []
    for folder, run in ("native", programs.stock), ("cow", None):
        (tmp_path / folder).mkdir()
        where = f"import os; os.chdir({os.fspath(tmp_path / folder)!r})\n{code}"
        done = run("python3", "-c", where) if run else programs.python(where)
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout)
    assert answers[0] == answers[1]
