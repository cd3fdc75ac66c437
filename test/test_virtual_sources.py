"""A program's own virtual datasets over sources that have grown or shrunk since: read as HDF5 alone reads them. Each in a process of its
own, natively and through the connector. Where HDF5 alone crashes, or gives an error, the connector must not crash."""

import os
import random
import sys

import pytest
from seeds import again, seed

ONE = """
import h5py, numpy as np, sys
with h5py.File('a.h5', 'w') as f:
    f.create_dataset('a', data=np.arange(2000), maxshape=(None,), chunks=(100,), fillvalue=7)
    layout = h5py.VirtualLayout((2000,), 'i8')
    source = h5py.VirtualSource('.', 'a', (2000,), maxshape=(None,))
    if kind == 'all':
        layout[:] = source
    elif kind == 'box':
        layout[0:2000] = source[0:2000]
    elif kind == 'part':
        layout[100:1100] = source[500:1500]
    else:
        layout[0:1000], layout[1000:2000] = source[0:1000], source[1000:2000]
    f.create_virtual_dataset('v', layout, fillvalue=-5)
"""
TWO = """
import h5py, numpy as np, sys
with h5py.File('a.h5', 'w') as f:
    f.create_dataset('a', data=np.arange(1600).reshape(40, 40), maxshape=(None, None), chunks=(16, 16), fillvalue=7)
    layout = h5py.VirtualLayout((40, 40), 'i8')
    source = h5py.VirtualSource('.', 'a', (40, 40), maxshape=(None, None))
    if kind == 'all':
        layout[:] = source
    elif kind == 'box':
        layout[0:40, 0:40] = source[0:40, 0:40]
    elif kind == 'part':
        layout[0:40, 0:20] = source[0:40, 20:40]
    else:
        layout[0:20], layout[20:40] = source[0:20], source[20:40]
    f.create_virtual_dataset('v', layout, fillvalue=-5)
"""
READ = """
with h5py.File('a.h5', 'r+') as f:
    f['a'].resize(shape)
with h5py.File('a.h5', 'r') as f:
    print(np.asarray(f['v'][wanted]).ravel().tolist())
"""
CASES = [(ONE, kind, shape, wanted) for kind in ("all", "box", "part", "halves") for shape in ((700,), (2500,), (2000,), (1,), (0,))
         for wanted in ("3", "699", "700", "np.s_[:10]", "np.s_[650:1210:7]", "np.s_[:]", "[5, 650, 720, 1999]")]
CASES += [(TWO, kind, shape, wanted) for kind in ("all", "box", "part", "halves")
          for shape in ((32, 40), (50, 40), (40, 32), (40, 60), (10, 80), (0, 40))
          for wanted in ("np.s_[:2, :3]", "np.s_[30:, 35:]", "np.s_[:]", "(39, 39)", "np.s_[::5, 39]")]


def code_of(case):
    make, kind, shape, wanted = case
    return f"kind, shape = {kind!r}, {shape}\n{make}\nwanted = {wanted}\n{READ}"


@pytest.mark.parametrize("part", range(4))
def test_as_natively(programs, tmp_path, part):
    same = 0
    for case in random.Random(seed() + part).sample(CASES, 25):
        answers = []
        for folder in "native", "cow":
            (tmp_path / folder).mkdir(exist_ok=True)
            code = f"import os; os.chdir({os.fspath(tmp_path / folder)!r})\n{code_of(case)}"
            done = programs.stock(sys.executable, "-c", code) if folder == "native" else programs.python(code)
            answers.append(done.stdout if done.returncode == 0 else None)
        if answers[0] is not None:
            assert answers[0] == answers[1], (case[1:], again())
            same += 1
    assert same > 5


NOWHERE = """
import h5py, numpy as np
def make(name):
    with h5py.File(name, 'w') as f:
        f['a'] = np.arange(5)
        f['scalar'] = 1
        f['g/inner/x'] = np.arange(5) + 10
        f['type'] = np.dtype('i8')
        f['soft'] = h5py.SoftLink('/g/inner/x')
        f['dangling'] = h5py.SoftLink('/none/x')
        f['around'] = h5py.SoftLink('/around')
        f['through'] = h5py.SoftLink('/a/x')
        f['out'] = h5py.ExternalLink('other.h5', '/a')
        f['nofile'] = h5py.ExternalLink('none.h5', '/a')
make('other.h5')
make('v.h5')
paths = ['a', '/a', 'none', 'none/x', 'a/x', 'a/x/y', 'scalar/x', 'type/x', 'type', 'g', 'g/inner', 'g/inner/x', 'g//inner/./x', 'soft', 'soft/x', 'dangling',
         'dangling/x', 'around', 'around/x', 'through', 'through/x', 'out', 'out/x', 'nofile', 'nofile/x', '/', '.', './a', 'a/', 'a/.', 'g/inner/x/.']
with h5py.File('v.h5', 'a') as f:
    for i, path in enumerate(paths):
        for where in '.', 'other.h5', 'none.h5', 'a':
            layout = h5py.VirtualLayout((5,), 'i8')
            layout[:] = h5py.VirtualSource(where, path, (5,))
            f.create_virtual_dataset(f'v{i}{where}', layout, fillvalue=-5)
with h5py.File('v.h5', 'r') as f:
    for i, path in enumerate(paths):
        for where in '.', 'other.h5', 'none.h5', 'a':
            try:
                print(path, where, f[f'v{i}{where}'][()].tolist())
            except Exception as error:
                print(path, where, type(error).__name__)
"""


def test_sources_that_are_not_there(programs, tmp_path):
    """Whatever a path leads through, or to, what HDF5 alone does not find is fill value."""
    answers = []
    for folder in "native", "cow":
        (tmp_path / folder).mkdir()
        code = f"import os; os.chdir({os.fspath(tmp_path / folder)!r})\n{NOWHERE}"
        done = programs.stock(sys.executable, "-c", code) if folder == "native" else programs.python(code)
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout.splitlines())
    assert [pair for pair in zip(*answers) if pair[0] != pair[1]] == [] and len(answers[0]) == len(answers[1]) > 100
