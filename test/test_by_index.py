"""Links asked for by their index, in the order of names, as programs in C do: what HDF5 alone answers, and not in a time that grows with the
square of their number."""

import sys

MAKE = """
import h5py, numpy as np, random, sys
names = [f'{k * 7919 % 10007}-{k}' for k in range(int(sys.argv[2]))]
with h5py.File(sys.argv[1], 'w') as f:
    for group in f, f.create_group('in/group'), f.create_group('few', track_order=True):
        for k, name in enumerate(names if group.name != '/few' else names[:9]):
            if k % 50 == 0:
                group.create_dataset(name, data=np.arange(k % 7))
            elif k % 50 == 1:
                group[name] = h5py.SoftLink(names[0])
            else:
                group[name] = f['few']
with h5py.File(sys.argv[1], 'r+') as f:
    del f[names[3]], f['in/group'][names[70]]
    f['later'] = f['_'] = f['in/group/later'] = f['few']
"""
ASK = """
import h5py, sys
def told(call, *words, **more):
    try:
        return call(*words, **more)
    except Exception as error:
        return type(error).__name__
for path in sys.argv[2:]:
    with h5py.File(path, sys.argv[1]) as f:
        for group in f, f['in/group'], f['few'], f['in']:
            n = len(group)
            print(group.name, n)
            for i in list(range(0, n, 1 + n // 300)) + [n - 1, n, n + 1]:
                print(i, told(group.id.get_objname_by_idx, i), told(group.id.get_objtype_by_idx, i))
                for order in h5py.h5.ITER_INC, h5py.h5.ITER_DEC:
                    for index in h5py.h5.INDEX_NAME, h5py.h5.INDEX_CRT_ORDER:
                        found = told(h5py.h5o.get_info, group.id, index=i, index_type=index, order=order)
                        print(i, order, index, found if isinstance(found, str) else (found.type, found.rc if sys.argv[1] == 'r+' else 0))
        print([told(h5py.h5o.get_info, f.id, index=5, obj_name=name).__class__ for name in (b'in/group', b'none', b'few', b'/')])
"""
TIMES = """
import h5py, sys, time
with h5py.File(sys.argv[1], 'r') as f:
    begin = time.process_time()
    names = [None] * len(f)
    for i in range(len(f)):
        names[i] = f.id.get_objname_by_idx(i)
    by_index = time.process_time() - begin
    begin = time.process_time()
    for name in names:
        h5py.h5o.get_info(f.id, name)
        f.id.links.get_info(name)
    print(by_index / (time.process_time() - begin))
    assert names == sorted(names) and len(set(names)) == len(f)
"""


def test_as_natively(programs, tmp_path):
    for folder in "native", "cow":
        (tmp_path / folder).mkdir()
    for n in "80", "300", "3000":
        said = []
        for run, folder in (programs.stock, "native"), (programs.connector, "cow"):
            for code, *words in (MAKE, f"{n}.h5", n), (ASK, "r", f"{n}.h5"), (ASK, "r+", f"{n}.h5"):
                if (n, words[0]) != ("3000", "r+"):  # for writing it takes HDF5 the time that it takes
                    done = run(sys.executable, "-c", code, *words, cwd=tmp_path / folder)
                    assert done.returncode == 0, done.stderr
                    said.append(done.stdout)
        half = len(said) // 2
        assert said[:half] == said[half:], n
        version = programs.connector(sys.executable, "-c", ASK, "r", f"{n}.h5@2", cwd=tmp_path / "cow")
        assert version.stdout == said[1], n


def test_time_is_linear(programs, tmp_path):
    """Against that of as many looks by name. HDF5 sorting them for each: 3,000 times as many comparisons."""
    done = programs.connector(sys.executable, "-c", MAKE, "a.h5", "4000", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for path in "a.h5", "a.h5@2", "a.h5@1":
        done = programs.connector(sys.executable, "-c", TIMES, path, cwd=tmp_path)
        assert done.returncode == 0 and float(done.stdout) < 20, done.stdout + done.stderr
