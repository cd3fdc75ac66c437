"""Groups of a few members, of which a session changes some: versions are as native HDF5 had the file after each session, and every object of the file counts as
many links as lead to it, since the connector writes such groups, and these counts, as bytes."""

import json
import random
import sys

import h5py
import pytest
from seeds import seed

# argv: file, sessions, seed, open with, sessions of a process. After each session what is in the file, in a line.
SESSIONS = """
import json, random

def groups(f):
    found = ['/']
    f.visititems(lambda name, o: found.append('/' + name) if isinstance(o, h5py.Group) and not name.startswith('_versioned_data') else None)
    return sorted(found)

def members(f, kind):
    return sorted(f'{g}/{name}' for g in groups(f) for name in f[g]
                  if not name.startswith('_versioned') and f[g].get(name, getlink=True, getclass=True) is h5py.HardLink and isinstance(f[g][name], kind))

def reaches(o, group):
    return o == group or isinstance(o, h5py.Group) and any(reaches(o[name], group) for name in o if name != '_versioned_data' and o.get(name, getlink=True, getclass=True) is h5py.HardLink)

def step(f, n):
    what = draw.choice(['change'] * 5 + ['attribute', 'attribute of group', 'make', 'make', 'group', 'link', 'link', 'soft', 'move', 'delete', 'grow', 'flush', 'many', 'few'])
    sets, all_groups = members(f, h5py.Dataset), groups(f)
    g, d = draw.choice(all_groups), draw.choice(sets) if sets else None
    if what == 'make' or d is None:
        values = np.arange(draw.choice([600, 3000]), dtype=draw.choice(['i4', 'f8'])) + n
        f[g].create_dataset(f'd{n}' + 'x' * draw.choice([0, 0, 0, 250, 300]), data=values, chunks=(draw.choice([300, 1000]) if len(values) > 1000 else 300,), maxshape=(None,))
    elif what == 'change':
        f[d][draw.randrange(len(f[d]))] = n
    elif what == 'grow':
        f[d].resize((len(f[d]) + 50,))
        f[d][-50:] = n
    elif what == 'attribute':
        f[d].attrs[draw.choice('ab')] = n
    elif what == 'attribute of group':
        f[g].attrs[draw.choice('ab')] = np.arange(n % 40 + 1)
    elif what == 'group' and len(all_groups) < 9:
        f[g].create_group(f'g{n}', track_order=draw.choice([None, None, True]))
    elif what == 'many':
        for k in range(draw.choice([5, 12, 35])):
            f[g][f'n{n}_{k}'] = f[d]
    elif what == 'few':
        for name in [name for name in f[g] if name.startswith('n')][: draw.choice([3, 40])]:
            del f[g][name]
    elif what == 'link':
        to = f[draw.choice(members(f, (h5py.Dataset, h5py.Group)))]
        if not reaches(to, f[g]):  # what leads to itself is never given back
            f[g][f'l{n}'] = to
    elif what == 'soft':
        f[g][f's{n}'] = h5py.SoftLink(d)
    elif what == 'move':
        f.move(d, f'{g}/m{n}')
    elif what == 'delete' and len(sets) > 3:
        del f[d]
    elif what == 'flush':
        f.flush()

def told(f, g):
    found = {'': {k: v.tolist() if hasattr(v, 'tolist') else str(v) for k, v in g.attrs.items()}}
    for name in g:
        link = g.get(name, getlink=True)
        if name == '_versioned_data':
            continue
        if isinstance(link, h5py.SoftLink):
            found[name] = 'soft'
        elif isinstance(g[name], h5py.Group):
            found[name] = told(f, g[name])
        else:
            found[name] = [{k: int(v) for k, v in g[name].attrs.items()}, int(g[name][...].astype('f8').sum()), len(g[name]), g[name][:20].tolist()]
    return found

first = int(sys.argv[2])
for n in range(first, first + int(sys.argv[5])):
    draw = random.Random(f'{sys.argv[3]} {n}')
    with h5py.File(sys.argv[1], 'r+' if n > 0 else 'w', **eval(sys.argv[4])) as f:
        for k in range(8 if n == 0 else draw.choice([1, 1, 1, 2, 4])):
            step(f, 100 * n + k)
        f.attrs['session'] = n
    with h5py.File(sys.argv[1], 'r') as f:
        print(json.dumps(told(f, f)))
"""

# By HDF5 alone: the same of each version, one that has a session's number for each of them; and objects that count other links than they have.
LOOK = SESSIONS[: SESSIONS.index("first = int")] + """
with h5py.File(sys.argv[1], 'r') as f:
    links, counted, waiting = {}, {}, [f['/']]
    while waiting:
        g = waiting.pop()
        for name in g:
            link = g.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                continue
            info = h5py.h5o.get_info(g[name].id)
            links[info.addr] = links.get(info.addr, 0) + 1
            if info.addr not in counted:
                counted[info.addr] = (info.rc, g[name].name)
                if isinstance(g[name], h5py.Group):
                    waiting.append(g[name])
    root = h5py.h5o.get_info(f.id).addr
    print(json.dumps([[counted[a][1], counted[a][0], n] for a, n in links.items() if n + (a == root) != counted[a][0]]))
    versions = f['_versioned_data/versions']
    found = {}
    for name in sorted(versions, key=int):
        tree = told(f, versions[name])
        if 'session' in tree['']:
            found[tree['']['session']] = tree
    print(json.dumps(found))
"""


@pytest.mark.parametrize("how", ["one process", "a process each"])
@pytest.mark.parametrize("lists", ["{}", "{'libver': 'latest'}", "{'libver': 'v110'}"])
def test_versions_are_as_native_and_counts_are_right(programs, tmp_path, how, lists):
    draw = random.Random(f"{seed()} {how} {lists}")
    number, each = draw.getrandbits(32), 40 if how == "one process" else 1
    sessions = 40 if each > 1 else 16
    native, file = tmp_path / "native.h5", tmp_path / "a.h5"

    def run(how, code, *arguments):
        done = how(sys.executable, "-c", programs.code(code), *arguments)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    right, found = [], []
    for first in range(0, sessions, each):
        right += run(programs.stock, SESSIONS, native, first, number, lists, each)
        found += run(programs.connector, SESSIONS, file, first, number, lists, each)
        assert found == right
    programs.verified(file)
    wrong, versions = run(programs.stock, LOOK, file)
    assert wrong == []
    assert versions == {str(n): tree for n, tree in enumerate(right)}
    for command in (["forget", "--keep-last", "3", file], ["gc", file]):
        done = programs.cow(*command)
        assert done.returncode == 0, done.stderr
    programs.verified(file)
    wrong, versions = run(programs.stock, LOOK, file)
    assert wrong == []
    assert versions == {str(n): right[n] for n in range(sessions - 3, sessions)}


SHARED = """
with h5py.File(sys.argv[1], "w" if sys.argv[2] == "0" else "r+") as f:
    if sys.argv[2] == "0":
        f.create_dataset("d", data=np.arange(5000), chunks=(1000,))
        f.create_dataset("e", data=np.arange(5000), chunks=(1000,))
        f.create_dataset("x", data=np.arange(5000), chunks=(1000,))
        for name in "afz":
            g = f.create_group(name, track_order=name != "f")
            g["d"], g["again"], g["e"], g["x"] = f["d"], f["d"], f["e"], f["x"]
            g.create_group("below")
            g["p"], g["q"] = np.arange(4000), np.arange(4000) + 7
    for name in "afz":
        f[name].attrs["n"] = f[name + "/below"].attrs["n"] = int(sys.argv[2])
        for old, new in ("pt", "qp", "tq"):
            f[name].move(old, new)
    f["x"].attrs["n"] = int(sys.argv[2])
    f["e"][3] = int(sys.argv[2])
"""


def test_what_hdf5_links_as_well_counts_both(programs, tmp_path):
    """A dataset that did not change is in groups that HDF5 makes anew, since they have an order, and in one of bytes."""
    file = tmp_path / "a.h5"
    for n in range(4):
        done = programs.python(SHARED, file, n)
        assert done.returncode == 0 and done.stderr == "", done.stderr
    programs.verified(file)
    with h5py.File(file, "r") as f:
        for n in range(4):
            v = f[f"_versioned_data/versions/{n + 1}"]
            assert [int(v[g].attrs["n"]) for g in "afz"] == [n] * 3
            assert v["f/d"] == v["a/again"] == v["z/d"] == v["d"] and v["f/e"][3] == n
            assert [int(v[f"{g}/p"][0]) for g in "afz"] == [0 if n % 2 else 7] * 3
            assert [int(v[name].attrs["n"]) for name in ("f/x", "x", "a/x", "f/below", "z/below")] == [n] * 5
    done = programs.stock(sys.executable, "-c", programs.code(LOOK.replace("if 'session' in tree['']", "if False")), file)
    assert done.returncode == 0 and json.loads(done.stdout.splitlines()[0]) == [], (done.stdout, done.stderr)
