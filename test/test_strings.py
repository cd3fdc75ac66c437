"""Strings and sequences written and read in parts, in whole chunks, and over versions, against plain lists."""

import json
import random

import h5py
import pytest
from seeds import seed

WRITE = """
import json, random
path, number = sys.argv[1], int(sys.argv[2])
rnd = random.Random(number)
strings = rnd.random() < 0.7
kind = h5py.string_dtype() if strings else h5py.vlen_dtype('i4')
more = rnd.choice([{}, {'compression': 'gzip'}, {'fillvalue': 'fill'} if strings else {}])
fill = more.get('fillvalue', '') if strings else []
told, model, versions = [], [], []

def value():
    if not strings:
        return [rnd.randrange(9) for _ in range(rnd.choice([0, 0, 1, 3]))]
    return rnd.choice(['', '', 'x' * rnd.randrange(30), 'é' * 3, 'value %d' % rnd.randrange(50)])

def put(x, at, values):
    if strings:
        x[at] = values
        return
    data = np.empty(len(values), kind)
    for i, v in enumerate(values):
        data[i] = np.array(v, 'i4')
    x.write_direct(data, dest_sel=at)

def plain(v):
    return v.decode() if strings else [int(i) for i in v]

f = h5py.File(path, 'w', libver='latest')
kind = np.dtype(kind)
f.create_dataset('x', (0,), kind, chunks=(rnd.choice([3, 7, 16]),), maxshape=(None,), **more)
for step in range(100):
    x, what = f['x'], rnd.randrange(9)
    if what < 3:  # append
        n = rnd.randrange(1, 40) if what == 0 else rnd.randrange(1, 8)
        x.resize((len(model) + n,))
        new = [value() for _ in range(n)]
        put(x, slice(len(model), None), new)
        model += new
    elif what == 3:  # longer, or shorter
        n = rnd.randrange(0, len(model) + 5)
        x.resize((n,))
        model = model[:n] + [fill] * (n - len(model))
    elif what in (4, 5) and model:
        first = rnd.randrange(len(model))
        places = list(range(first, rnd.randrange(first, len(model)) + 1, rnd.choice([1, 1, 2, 3])))
        new = [value() for _ in places]
        put(x, slice(places[0], places[-1] + 1, places[1] - places[0] if len(places) > 1 else 1), new)
        for i, v in zip(places, new):
            model[i] = v
    elif what == 6:
        f.flush()
    elif what == 7:
        f.close()
        versions.append(list(model))
        f = h5py.File(path, 'a', libver='latest')
    elif model:
        assert [plain(v) for v in x[...]] == model, step
f.close()
print(json.dumps(versions + [model]))
"""


def shown(path, name="x"):
    with h5py.File(path, "r") as f:
        return [v.decode() if isinstance(v, bytes) else [int(i) for i in v] for v in f[name][...]]


@pytest.mark.parametrize("number", range(12))
def test_parts_and_whole_chunks_in_every_version(programs, tmp_path, number):
    path = tmp_path / "a.h5"
    done = programs.python(WRITE, path, seed() + number)
    assert done.returncode == 0, done.stderr
    states = json.loads(done.stdout)
    programs.verified(path)
    log = json.loads(programs.cow("log", "--json", path).stdout)
    versions = [shown(path, f"_versioned_data/versions/{row['name']}/x") for row in reversed(log)]
    assert shown(path) == states[-1] == versions[-1]
    # nothing differs: no version; versions that a flush made are not known here
    kept = iter(versions)
    for i, state in enumerate(states):
        assert i > 0 and state == states[i - 1] or state in kept
    done = programs.python("import json\nprint(json.dumps([[v.decode() if isinstance(v, bytes) else [int(i) for i in v] for v in "
                           "h5py.File(sys.argv[1] + '@' + n, 'r')['x'][...]] for n in sys.argv[2:]]))",
                           path, *(row["name"] for row in reversed(log)))
    assert done.returncode == 0 and json.loads(done.stdout) == versions, done.stderr


NULLS = """
import ctypes, h5py.h5t as h5t, h5py.h5s as h5s, h5py.h5d as h5d, h5py.h5p as h5p
library = ctypes.CDLL(next(l.split()[-1] for l in open('/proc/self/maps') if 'libhdf5' in l and '_hl' not in l))
kind = h5t.C_S1.copy()
kind.set_size(h5t.VARIABLE)

def call(name, d, values):
    library[name](ctypes.c_int64(d.id), ctypes.c_int64(kind.id), ctypes.c_int64(0), ctypes.c_int64(0), ctypes.c_int64(0), values)

with h5py.File(sys.argv[1], 'a') as f:
    if 'x' not in f:
        p = h5p.create(h5p.DATASET_CREATE)
        p.set_chunk((4,))
        for name in (b'x', b'y'):
            h5d.create(f.id, name, kind, h5s.create_simple((8,)), p)
    call('H5Dwrite', f['x'].id, (ctypes.c_char_p * 8)(b'a', None, b'', b'b', None, None, b'', b''))
    call('H5Dwrite', f['y'].id, (ctypes.c_char_p * 8)(b'a', b'', None, b'b', b'', b'', None, None))
with h5py.File(sys.argv[1], 'r') as f:
    for name in 'xy':
        back = (ctypes.c_char_p * 8)()
        call('H5Dread', f[name].id, back)
        print(*back)
"""


def test_no_string_and_an_empty_one_stay_apart(programs, tmp_path):
    native = programs.stock("python3", "-c", programs.code(NULLS), tmp_path / "native.h5")
    for _ in range(2):  # the second time, equal chunks are found
        done = programs.python(NULLS, tmp_path / "a.h5")
        assert done.returncode == 0 and done.stdout == native.stdout != "", done.stderr + native.stderr
    assert "None b''" in native.stdout
    programs.verified(tmp_path / "a.h5")
