"""h5cow cp: objects of a version get back into a file, as the command says, in one version or not at all."""

import json
import os

import h5py
import numpy as np
import pytest
from conftest import h5cow

STORY = [
    """
with h5py.File(sys.argv[1], 'w') as f:
    f['x'] = np.arange(20000.)
    f['x'].attrs['unit'] = 'K'
    f.create_dataset('g/y', (300, 100), 'f4', chunks=(10, 100), compression='gzip', maxshape=(None, 100))[...] = 7
    f['g/text'] = np.array(['a', 'bc'], dtype=object)
    f['g/again'] = f['g/y']
    f['g/soft'] = h5py.SoftLink('/x')
    f['type'] = np.dtype('i2')
    f.create_dataset('typed', (3000,), f['type'])
    f['refs'] = np.array([f['x'].ref, f['g'].ref], dtype=h5py.ref_dtype)
""",
    """
with h5py.File(sys.argv[1], 'a') as f:
    f['x'][5:15] = -1
    f['x'].attrs['unit'] = 'C'
    f['g/y'].resize((200, 100))
    f['typed'][:] = 5
""",
    """
with h5py.File(sys.argv[1], 'a') as f:
    del f['g']
    f['refs'][0] = f['type'].ref
""",
]
LOOK = """
import json
with h5py.File(sys.argv[1], 'r') as f:
    print(json.dumps(eval(sys.argv[2], {'f': f, 'np': np, 'h5py': h5py})))
"""


@pytest.fixture
def story(programs, tmp_path):
    for code in STORY:
        done = programs.python(code, tmp_path / "a.h5")
        assert done.returncode == 0, done.stderr
    return tmp_path / "a.h5"


@pytest.fixture
def look(programs):
    def looked(path, what):
        done = programs.python(LOOK, path, what)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return looked


def versions(path):
    return [row["name"] for row in json.loads(h5cow("log", "--json", path))][::-1]


def same(a, b, *path):
    """No difference, seen through the connector."""
    assert h5cow("diff", a, b, *path) == ""


def test_an_object_of_an_older_version_takes_its_place_again(story, programs, look):
    before = os.path.getsize(story)
    said = h5cow("cp", "-f", "-m", "as it was", f"{story}@1:/x", story)
    assert said == f"{story}: /x, dataset of float64 (20000,) of version 1, in place of dataset of float64 (20000,); version #4\n"
    same(f"{story}@1", story, "/x")
    assert look(story, "[float(f['x'][5:15].sum()), f['x'].attrs['unit']]") == [95.0, "K"]
    assert look(f"{story}@3", "[float(f['x'][5]), f['x'].attrs['unit']]") == [-1.0, "C"]
    assert os.path.getsize(story) < before + 20_000  # 160,000 bytes of data
    assert versions(story) == ["1", "2", "3", "4"] and json.loads(h5cow("log", "--json", story))[0]["message"] == "as it was"
    programs.verified(story)
    with h5py.File(story, "r") as f:  # without the connector
        assert f["x"][5] == 5


def test_a_group_that_is_gone_comes_back_with_all_that_is_below(story, programs, look):
    h5cow("cp", f"{story}@2:/g", story)
    same(f"{story}@2", story, "/g")
    assert look(story, "[f['g/again'] == f['g/y'], f['g'].get('soft', getlink=True).path, f['g/y'].shape, f['g/y'].compression]") == [
        True, "/x", [200, 100], "gzip"]  # fmt: skip
    h5cow("cp", f"{story}@1:/g/y", f"{story}:/new/way/y/")
    assert look(story, "[float(f['new/way/y'][...].sum()), sorted(f)]") == [210000.0, ["g", "new", "refs", "type", "typed", "x"]]
    assert versions(story) == ["1", "2", "3", "4", "5"]
    programs.verified(story)


def test_references_and_named_types_stay_those_of_the_file(story, look):
    h5cow("cp", "-f", f"{story}@1:/refs", story)
    h5cow("cp", "-f", f"{story}@1:/typed", story)
    assert look(story, "[f[f['refs'][0]].name, f['typed'].id.get_type().equal(f['type'].id), h5py.h5o.get_info(f['type'].id).rc]") == [
        "/x", True, 2]  # fmt: skip
    assert look(story, "[int(f['typed'][0]), h5py.h5o.get_info(f['typed'].id.get_type()).addr == h5py.h5o.get_info(f['type'].id).addr]") == [0, True]


def test_a_named_type_is_the_one_of_its_path(programs, tmp_path, look):
    make = """
with h5py.File(sys.argv[1], 'w') as f:
    for name, type in ('a', 'i2'), ('b', 'i2'), ('g/c', 'i4'):  # /x uses /b, though /a is the same
        f[name] = np.dtype(type)
    f.create_dataset('x', (3000,), f['b'])
    f['x'].attrs.create('n', 5, dtype=f['g/c'])
    f.create_dataset('g/y', (3000,), f['g/c'])
with h5py.File(sys.argv[1], 'a') as f: del f['x'], f['g/y']
"""
    path, new = tmp_path / "a.h5", tmp_path / "new.h5"
    assert programs.python(make, path).returncode == 0
    h5cow("cp", f"{path}@1:/x", path)
    same = "h5py.h5o.get_info({}).addr == h5py.h5o.get_info(f['{}'].id).addr"
    assert look(path, same.format("f['x'].id.get_type()", "b")) and look(path, same.format("f['x'].attrs.get_id('n').get_type()", "g/c"))
    h5cow("cp", "-f", f"{path}@1:/g", path)
    assert look(path, same.format("f['g/y'].id.get_type()", "g/c"))
    h5cow("cp", f"{path}@1:/g", new)
    assert look(new, same.format("f['g/y'].id.get_type()", "g/c"))
    programs.verified(path)


def test_references_lead_to_copies_then_to_what_has_the_path(programs, tmp_path, look):
    make = """
pair = np.dtype([('to', h5py.ref_dtype), ('n', 'i4')])
with h5py.File(sys.argv[1], 'w') as f:
    f['out'], f['gone'], f['g/in'] = 1, 2, 3
    f['g'].attrs['refs'] = np.array([f['out'].ref, f['gone'].ref, f['g/in'].ref, f['g'].ref], dtype=h5py.ref_dtype)
    d = f.create_dataset('g/pairs', (2000,), pair, chunks=(100,))
    d[3:5] = np.array([(f['g/in'].ref, 7), (f['out'].ref, 8)], pair)
    f.create_dataset('g/list', (1,), h5py.vlen_dtype(h5py.ref_dtype))[0] = np.array([f['g/in'].ref, f['out'].ref], dtype=h5py.ref_dtype)
    f['g/regions'] = np.array([f['g/pairs'].regionref[2:4]], dtype=h5py.regionref_dtype)
with h5py.File(sys.argv[1], 'a') as f: del f['gone'], f['g']
"""
    path = tmp_path / "a.h5"
    done = programs.python(make, path)
    assert done.returncode == 0, done.stderr
    h5cow("cp", f"{path}@1:/g", f"{path}:/back")
    names = "[f[r].name if r else None for r in {}]"
    assert look(path, names.format("f['back'].attrs['refs']")) == ["/out", None, "/back/in", "/back"]
    assert look(path, names.format("f['back/pairs']['to'][2:6]") + " + f['back/pairs']['n'][3:5].tolist()") == [None, "/back/in", "/out", None, 7, 8]
    assert look(path, names.format("f['back/list'][0]")) == ["/back/in", "/out"]
    assert look(path, "[f[f['back/regions'][0]].name, f['back/pairs'].regionref.selection(f['back/regions'][0])]") == ["/back/pairs", [2]]
    programs.verified(path)
    other = tmp_path / "b.h5"
    done = programs.cow("cp", f"{path}@1:/g", other)
    assert done.returncode == 0 and "references lead to what" in done.stderr
    assert look(other, names.format("f['g'].attrs['refs']")) == [None, None, "/g/in", "/g"]
    programs.verified(other)


def test_into_other_files(story, programs, tmp_path, look):
    plain, new = tmp_path / "plain.h5", tmp_path / "new.h5"
    with h5py.File(plain, "w") as f:
        f["x"], f["other"] = 1, 2
    assert "no history" in h5cow("cp", "-f", f"{story}@2:/x", plain)
    with h5py.File(plain, "r") as f:
        assert sorted(f) == ["other", "x"] and list(f["x"][4:7]) == [4, -1, -1] and f["other"][()] == 2
    assert h5cow("cp", f"{story}@1:/g", f"{new}:/from/a").endswith("; version #1\n")
    assert versions(new) == ["1"] and look(new, "sorted(f['from/a'])") == ["again", "soft", "text", "y"]
    h5cow("cp", "-o", "name=third", f"{plain}:/other", new)
    assert versions(new) == ["1", "third"] and look(new, "int(f['other'][()])") == 2
    programs.verified(new)


def test_what_a_killed_one_left_is_no_file(programs, story, tmp_path, look):
    left = tmp_path / "left.h5"
    programs.python("import os\nf = h5py.File(sys.argv[1], 'w')\nf['y'] = np.arange(100000)\nos._exit(0)", left)
    assert left.stat().st_size > 0 and "holds nothing" in h5cow("ls", left, code=2)
    h5cow("cp", f"{story}@1:/x", f"{left}:/x")
    assert versions(left) == ["1"] and look(left, "[list(f), float(f['x'][7])]") == [["x"], 7.0]
    programs.verified(left)


def test_within_the_newest_state(story, look):
    h5cow("cp", f"{story}:/x", f"{story}:/copies/x")
    h5cow("cp", f"{story}:/", f"{story}:/all")
    assert look(story, "[sorted(f['all']), float(f['copies/x'][0])]") == [["copies", "refs", "type", "typed", "x"], 0.0]


def test_names_with_colons_and_ats(story, tmp_path, look):
    odd = tmp_path / "b@2:"
    odd.mkdir()
    story.rename(odd / "c:.h5")
    h5cow("cp", f"{odd}/c:.h5@#1:/g/text", f"{odd}/c:.h5:/text:/a")
    assert look(odd / "c:.h5", "list(f['text:/a'].asstr()[:])") == ["a", "bc"]
    assert versions(odd / "c:.h5")[-1] == "4"


def test_what_is_refused_changes_nothing(story, tmp_path, sha256):
    with h5py.File(tmp_path / "plain.h5", "w") as f:
        f["x"] = 1
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("no HDF5 file")
    files = {p: sha256(p) for p in tmp_path.iterdir()}
    plain, new = tmp_path / "plain.h5", tmp_path / "new.h5"
    for words, why in (
        ((), "it wants FILE"), ((f"{story}@1:/x",), "it wants FILE"), ((f"{story}@1", story), "which object?"),
        ((f"{story}@1:/x", story), "--force"), ((f"{story}@9:/x", new), "no version '9'"), ((f"{story}@1:/no", new), "no object '/no'"),
        ((f"{story}@1:/g/no/x", new), "no object"), ((f"{story}@1:/x/y", new), "/x/y"), ((f"{plain}@1:/x", new), "history"),
        ((f"{story}@1:/g", f"{story}:/x/g"), "no group"), ((f"{story}@1:/", f"{story}:/"), "root"), ((f"{tmp_path}/no.h5:/x", new), "No such file"),
        (("-f", f"{story}@1:/x", tmp_path / "text"), "not an HDF5 file"), (("-f", f"{story}@1:/x", tmp_path / "empty"), "empty"),
        (("-f", f"{story}@1:/x", tmp_path), "directory"), (("-o", "x", f"{story}@1:/x", new), "KEY=VALUE"),
        (("-o", "no=x", f"{story}@1:/x", new), "no"), ((f"{story}@1:/x", f"{tmp_path}/no/new.h5"), "No such file"),
        (("-f", f"{story}@1:/x", f"{story}@2:/x"), "versions do not change"),
    ):  # fmt: skip
        assert why in h5cow("cp", *words, code=2), words
    assert {p: sha256(p) for p in tmp_path.iterdir()} == files


def test_a_dry_run_says_and_does_nothing(story, tmp_path, sha256):
    before = sha256(story)
    assert "would replace '/x'" in h5cow("cp", "-nf", f"{story}@1:/x", story)
    assert "would make '/g'" in h5cow("cp", "-n", f"{story}@1:/g", story)
    assert "would make '/x'" in h5cow("cp", "-n", f"{story}@1:/x", tmp_path / "new.h5")
    assert "--force" in h5cow("cp", "-n", f"{story}@1:/x", story, code=2)
    assert before == sha256(story) and os.listdir(tmp_path) == ["a.h5"]


def test_while_another_program_writes_it_is_refused(story, programs):
    code = """
import subprocess
f = h5py.File(sys.argv[1], 'a')
done = subprocess.run([sys.argv[2], 'cp', '-f', sys.argv[1] + '@1:/x', sys.argv[1]], env={}, capture_output=True, text=True)
print(done.returncode, done.stderr)
"""
    from conftest import H5COW

    done = programs.python(code, story, H5COW)
    assert done.stdout.startswith("2 ") and "nother" in done.stdout, done.stdout
    assert versions(story) == ["1", "2", "3"]


def test_a_variable_of_netcdf(programs, tmp_path):
    path = tmp_path / "a.nc"
    make = """
import netCDF4
d = netCDF4.Dataset(sys.argv[1], sys.argv[2])
if sys.argv[2] == 'w':
    d.createDimension('t', None); d.createDimension('x', 500)
    d.createVariable('t', 'f8', ('t',)); d.createVariable('x', 'f8', ('x',)); d.createVariable('v', 'f4', ('t', 'x'))
    d['x'][:] = np.arange(500); d['t'][:] = [0, 1, 2]; d['v'].units = 'K'
d['v'][1, 10:20] = float(sys.argv[3]); d['v'][0] = 1
d.close()
"""
    for mode, value in (("w", 3), ("a", 4), ("a", 5)):
        done = programs.python(make, path, mode, value)
        assert done.returncode == 0, done.stderr
    h5cow("cp", "-f", f"{path}@1:/v", path)
    read = """
import netCDF4
d = netCDF4.Dataset(sys.argv[1])
print(d['v'].dimensions, d['v'].shape, float(d['v'][1, 10]), d['v'].units, float(d['x'][7]))
"""
    for run in (programs.python, lambda *words: programs.stock("python3", "-c", programs.code(words[0], errors=False), *words[1:])):
        done = run(read, path)
        assert done.stdout == "('t', 'x') (3, 500) 3.0 K 7.0\n", done.stdout + done.stderr
    programs.verified(path)


def test_a_table_of_pytables(programs, tmp_path):
    path = tmp_path / "a.h5"
    make = """
import tables
with tables.open_file(sys.argv[1], 'a') as f:
    if '/t' not in f:
        f.create_table('/', 't', {'a': tables.Int32Col(), 'b': tables.StringCol(8)})
    f.root.t.append([(int(sys.argv[2]), 'row')] * 1000)
"""
    for value in (1, 2, 3):
        done = programs.python(make, path, value)
        assert done.returncode == 0, done.stderr
    h5cow("cp", "-f", f"{path}@2:/t", path)
    read = "import tables\nwith tables.open_file(sys.argv[1]) as f: print(len(f.root.t), f.root.t[1500]['a'], f.root.t.read_where('a == 3').size)"
    done = programs.python(read, path)
    assert done.stdout == "2000 2 0\n", done.stdout + done.stderr
    assert np.array_equal(h5py.File(path, "r")["t"]["a"][::1000], [1, 2])
