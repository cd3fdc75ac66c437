"""References of versions, as programs of every day use them: netCDF-4 dimension scales, h5py, PyTables, HDF5's tools.

Each program runs over several versions twice: through the connector, and natively with a copy kept after each. What
tools and programs tell of version N must be what they tell of copy N.
"""

import json
import re
import shutil
import sys

import pytest
from conftest import H5COW

NETCDF = """
import netCDF4, sys, numpy as np
step = int(sys.argv[2])
if step == 1:
    with netCDF4.Dataset(sys.argv[1], "w") as f:
        f.createDimension("time", None), f.createDimension("y", 3), f.createDimension("x", 4)
        f.createDimension("bare", 2)
        for name, unit in (("time", "h"), ("y", "m"), ("x", "m")):
            v = f.createVariable(name, "f8", (name,))
            v.units = unit
        f["y"][:] = range(3)
        f["x"][:] = range(10, 14)
        f["time"][:2] = [0, 6]
        t = f.createVariable("t", "f4", ("time", "y", "x"), zlib=True, chunksizes=(1, 3, 4))
        t.coordinates = "time y x"
        t[:2] = np.arange(24).reshape(2, 3, 4)
        f.createVariable("plain", "i4", ("bare", "x"))[:] = 7
        g = f.createGroup("deeper")
        g.createDimension("z", 2)
        g.createVariable("z", "i2", ("z",))[:] = [1, 2]
        g.createVariable("v", "i2", ("z", "x"))[:] = 3
elif step == 2:  # the scales change, and there are more that use them
    with netCDF4.Dataset(sys.argv[1], "a") as f:
        f["time"][2:5] = [12, 18, 24]
        f["t"][2:5] = 100 + np.arange(36).reshape(3, 3, 4)
        f["x"][:] = range(20, 24)
        f.createVariable("u", "f4", ("time", "x"))[:5] = 5
elif step == 3:  # they get other names
    with netCDF4.Dataset(sys.argv[1], "a") as f:
        f.renameVariable("u", "wind")
        f.renameDimension("bare", "naked")
        f["deeper"].createVariable("w", "i2", ("z", "y"))[:] = 4
        f["x"].units = "km"
else:  # all of it anew, in the same places
    with netCDF4.Dataset(sys.argv[1], "w") as f:
        f.createDimension("x", 2), f.createDimension("other", 9)
        f.createVariable("x", "f8", ("x",))[:] = [1, 2]
        f.createVariable("other", "f8", ("other",))[:] = range(9)
        f.createVariable("t", "f4", ("other", "x"))[:] = 1
"""

H5PY = """
step = int(sys.argv[2])
def refer(f):
    a, g = f["data"], f["group"]
    f["objects"] = np.array([a.ref, g.ref, f["tiny"].ref, f["type"].ref], dtype=h5py.ref_dtype)
    f["regions"] = np.array([a.regionref[2:4], a.regionref[5, ::2], f["tiny"].regionref[1:3]], dtype=h5py.regionref_dtype)
    f.create_dataset("one", data=a.ref, dtype=h5py.ref_dtype)
    f.create_dataset("many", (2000,), dtype=h5py.ref_dtype, chunks=(100,))[:5] = g.ref
    s = f.create_dataset("sequences", (3,), dtype=h5py.vlen_dtype(h5py.ref_dtype))
    s[0], s[2] = [a.ref], [g.ref, f["tiny"].ref]
    c = f.create_dataset("pairs", (2,), dtype=[("n", "i2"), ("to", h5py.ref_dtype), ("part", h5py.regionref_dtype)])
    c[0] = (1, a.ref, a.regionref[1])
    c[1] = (2, g.ref, f["tiny"].regionref[2])
    f.create_dataset("cells", data=np.array([[a.ref], [f["x"].ref]], dtype=h5py.ref_dtype))
    f.attrs["to"] = a.ref
    f.attrs["part"] = a.regionref[3:6]
    a.attrs.create("list", np.array([g.ref, a.ref], dtype=h5py.ref_dtype))
def make(f, step):
    f.create_dataset("data", data=np.arange(80).reshape(8, 10) + 100 * step, chunks=(4, 5), maxshape=(None, 10))
    f["tiny"] = np.arange(6) + 100 * step
    f["type"] = np.dtype("i4")
    f.create_group("group").attrs["step"] = step
    f.create_dataset("x", data=np.arange(8.0) + 1000 * step)
    f["x"].make_scale("x")
    f["data"].dims[0].attach_scale(f["x"])
if step == 1:
    with h5py.File(sys.argv[1], "w") as f:
        make(f, step)
        refer(f)
elif step == 2:
    with h5py.File(sys.argv[1], "a") as f:
        f["data"][...] += 100
        f["data"].resize(3, 0)
        f["tiny"][...] += 100
        f["group"].attrs["step"] = step
        f["x"][...] += 1
        f.move("group", "moved")
elif step == 3:
    with h5py.File(sys.argv[1], "a") as f:
        for name in ("data", "tiny", "type", "moved", "x"):
            del f[name]
        make(f, step)
        for i in range(30):
            f[f"stranger {i}"] = np.arange(i)
else:
    with h5py.File(sys.argv[1], "w") as f:
        make(f, step)
        refer(f)
"""

TELL_H5PY = """
def tell(f, ref):
    if isinstance(ref, h5py.RegionReference):
        d = f[ref]
        try:
            return d.name, d[ref].tolist()
        except OSError:
            return d.name, "outside"
    o = f[ref]
    assert o == f[o.name] and hash(o) == hash(f[o.name]) and f[o.ref] == o, o.name
    assert o.file == f and h5py.h5r.get_name(ref, f.id).decode() == o.name
    return o.name, o[...].tolist() if isinstance(o, h5py.Dataset) else dict(o.attrs)
with h5py.File(sys.argv[1]) as f:
    for name in ("objects", "regions"):
        print(name, [tell(f, r) for r in f[name]])
    print("one", tell(f, f["one"][()]), "many", [tell(f, r) for r in f["many"][:5]], bool(f["many"][7]))
    print("sequences", [[tell(f, r) for r in s] for s in f["sequences"]])
    print("pairs", [(n, tell(f, to), tell(f, part)) for n, to, part in f["pairs"]])
    print("attributes", tell(f, f.attrs["to"]), tell(f, f.attrs["part"]),
          [tell(f, r) for r in f[f.attrs["to"]].attrs["list"]])
    d = f["data"]
    print("scales", [(s.name, s[:].tolist()) for s in d.dims[0].values()], [f[r].name for r in d.attrs["DIMENSION_LIST"][0]],
          [(f[r].name, int(n)) for r, n in f["x"].attrs["REFERENCE_LIST"]])
"""


@pytest.fixture
def history(programs, tmp_path):
    """Runs a program of steps; returns the file with history and the plain copy of each version."""

    def run(code, steps, name, imports=True):
        if imports:
            code = "import h5py, sys, numpy as np\n" + code
        (tmp_path / "plain").mkdir()
        path, plain, kept = tmp_path / name, tmp_path / "plain" / name, [None]
        for step in range(1, steps + 1):
            for way, where in ((programs.connector, path), (programs.stock, plain)):
                done = way(sys.executable, "-c", code, where, step)
                assert done.returncode == 0, done.stderr
            folder = tmp_path / f"kept{step}"
            folder.mkdir()
            kept.append(shutil.copy(plain, folder / name))
        return path, kept

    return run


def compared(programs, path, kept, version, *command):
    """The same command on version and copy, with the path last; both outputs, which must be the same."""
    ours = programs.connector(*command, path, options=f"at={version}")
    native = programs.stock(*command, kept[version])
    assert native.returncode == 0, native.stderr
    assert ours.returncode == 0, ours.stderr
    assert ours.stdout.replace(str(path), "FILE") == native.stdout.replace(str(kept[version]), "FILE")
    return ours.stdout


def test_netcdf_dimension_scales_of_every_version(programs, history, tmp_path):
    path, kept = history(NETCDF, 4, "run.nc", imports=False)
    tell = """if True:
        import netCDF4, sys
        def tell(g, indent=""):
            print(indent, g.path, {n: (len(d), d.isunlimited()) for n, d in g.dimensions.items()})
            for v in g.variables.values():
                print(indent, v.name, v.dimensions, v.shape, v.get_dims(), {a: str(v.getncattr(a)) for a in v.ncattrs()})
                print(indent, v[:].tolist())
            for below in g.groups.values():
                tell(below, indent + "  ")
        with netCDF4.Dataset(sys.argv[1]) as f:
            tell(f)
    """
    for version in range(1, 5):
        text = compared(programs, path, kept, version, "ncdump", "-n", "run")
        assert "dimensions" in text
        text = compared(programs, path, kept, version, sys.executable, "-c", tell)
        assert ("wind" in text) == (version == 3)
        copy = tmp_path / f"copy{version}.nc"
        done = programs.connector("nccopy", path, copy, options=f"at={version}")
        assert done.returncode == 0, done.stderr
        told = [programs.connector("ncdump", "-n", "run", name).stdout for name in (copy, kept[version])]
        assert told[0] == told[1] != ""


def test_h5py_references_of_every_version(programs, history):
    path, kept = history(H5PY, 4, "run.h5")
    code = programs.code(TELL_H5PY, errors=False)
    for version in (1, 2, 4):
        text = compared(programs, path, kept, version, sys.executable, "-c", code)
        assert "/group" in text if version != 2 else "/moved" in text
        done = programs.connector(sys.executable, "-c", code, f"{path}@{version}")
        assert done.returncode == 0 and done.stdout == text, done.stderr
    done = programs.connector(sys.executable, "-c", code, path)
    assert done.returncode == 0 and done.stdout == text, done.stderr


UNREACHED = """
from contextlib import suppress
step, count = sys.argv[2], int(sys.argv[3])
with h5py.File(sys.argv[1], "w" if step == "make" else "r+") as f:
    if step == "make":
        d = f.create_dataset("g/d", data=np.arange(float(count)), chunks=(50,))
        d.attrs["long"] = "first" * 600
        f["to"] = np.array([d.ref, d.ref], dtype=h5py.ref_dtype)
        f["g/self"] = f["g"]
    elif step == "change":  # no link leads to it any more, and nothing of the rest changes afterwards
        d = f[f["to"][0]]
        del f["g"]
        f.flush()
        d[3] = 77
        d.attrs["long"] = "second" * 600
        f.flush()
        print(d[3], d.attrs["long"][:6])
    elif step == "other":
        f["other"] = 1
        print(f[f["to"][1]][3])
    else:
        f["again"] = f[f["to"][0]]
"""


@pytest.mark.parametrize("count", [100, 9000])
@pytest.mark.parametrize("options", ["", "commit=flush"])
def test_what_changes_while_no_link_leads_to_it_is_kept(programs, tmp_path, count, options):
    """A link to itself holds the group. What it holds is in no version, and no damage, until it is linked again."""
    path = tmp_path / "f.h5"
    for step, told in ("make", ""), ("change", "77.0 second"), ("other", "77.0"), ("link", ""):
        done = programs.python(UNREACHED, path, step, count, options=options, errors=False)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, told, ""), step
        programs.verified(path)
    newest = json.loads(programs.cow("log", "--json", path).stdout)[0]
    assert newest["incomplete"] == []
    for name in path, f"{path}@{newest['name']}":
        done = programs.python("d = h5py.File(sys.argv[1])['again']; print(d[3], d[4], d.attrs['long'][:6])", name)
        assert (done.stdout.strip(), done.stderr) == ("77.0 4.0 second", "")


def test_h5py_reference_to_a_deleted_object_is_an_error(programs, history):
    path, _ = history(H5PY, 3, "run.h5")
    code = """
    for name in sys.argv[1], sys.argv[1] + "@3":
        with h5py.File(name) as f:
            for r in [*f["objects"], *f["regions"], f["one"][()], *f["sequences"][2], f.attrs["to"], f["pairs"][1]["to"]]:
                try:
                    print(f[r])
                except (ValueError, KeyError) as error:
                    print("error")
    """
    done = programs.python(code, path, errors=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["error"] * 24


def test_tools_follow_references_of_every_version(programs, history, tmp_path):
    path, kept = history(H5PY, 4, "run.h5")
    for version in (1, 2, 4):
        for arguments in ([], ["-R"]):
            ours = programs.connector("h5dump", *arguments, f"{path}@{version}")
            native = programs.stock("h5dump", *arguments, kept[version])
            assert native.returncode == ours.returncode == 0, ours.stderr
            # in attributes h5dump tells pointers of its own
            told = [re.sub(r"(DATASET|GROUP|DATATYPE) [0-9]+ ", r"\1 ", done.stdout) for done in (ours, native)]
            assert told[0].replace(f"{path}@{version}", "FILE") == told[1].replace(str(kept[version]), "FILE")
        done = programs.connector("h5diff", f"{path}@{version}", kept[version])
        native = programs.stock("h5diff", shutil.copy(kept[version], tmp_path / "again.h5"), kept[version])
        assert (done.returncode, done.stdout) == (0, native.stdout), done.stdout + done.stderr
        copy = tmp_path / f"copy{version}.h5"
        done = programs.connector("h5repack", f"{path}@{version}", copy)
        assert done.returncode == 0, done.stderr
        # h5repack translates no references inside of sequences and compounds
        simple = "\n".join(line for line in TELL_H5PY.splitlines() if "sequences" not in line and "pairs" not in line)
        code = programs.code(simple, errors=False)
        for way in programs.connector, programs.stock:
            done = way(sys.executable, "-c", code, copy)
            same = programs.stock(sys.executable, "-c", code, kept[version])
            assert (done.returncode, done.stdout) == (0, same.stdout), done.stderr
    differ = programs.connector("h5diff", f"{path}@1", f"{path}@2")
    assert differ.returncode == 1 and "data" in differ.stdout


def test_export_of_every_version_keeps_references(programs, history, tmp_path):
    path, kept = history(H5PY, 4, "run.h5")
    for version in (1, 2, 4):
        out = tmp_path / f"out{version}.h5"
        done = programs.connector(H5COW, "export", f"{path}@{version}", out)
        assert done.returncode == 0, done.stderr
        code = programs.code(TELL_H5PY, errors=False)
        told = [programs.stock(sys.executable, "-c", code, name).stdout for name in (out, kept[version])]
        assert told[0] == told[1] != ""


PYTABLES = """
import tables, sys, numpy as np
step = int(sys.argv[2])
with tables.open_file(sys.argv[1], "w" if step == 1 else "a") as f:
    if step == 1:
        class Row(tables.IsDescription):
            name = tables.StringCol(8)
            value = tables.Float64Col(shape=(2,))
        g = f.create_group("/", "group")
        t = f.create_table(g, "table", Row)
        f.create_earray(g, "grows", tables.Int32Atom(), (0, 3))
        f.create_vlarray(g, "ragged", tables.Int16Atom())
        f.create_vlarray(g, "objects", tables.ObjectAtom())
        f.create_carray("/", "array", obj=np.arange(12).reshape(3, 4))
        f.create_soft_link("/", "soft", "/group/table")
        f.create_hard_link("/", "hard", g.grows)
        f.create_external_link("/", "elsewhere", "nowhere.h5:/x")
        t.cols.name.create_index()
    if step < 4:
        t = f.root.group.table
        for i in range(step):
            t.row["name"], t.row["value"] = f"{step}.{i}", (step, i)
            t.row.append()
        t.flush()
        f.root.group.grows.append([[step] * 3] * step)
        f.root.group.ragged.append(list(range(step)))
        f.root.group.objects.append({"step": step})
    if step == 3:
        f.move_node("/array", "/group", "moved")
        f.root.group.table.modify_coordinates([0], [("changed", (9, 9))])
        f.remove_node("/hard")
    if step == 4:
        f.remove_node("/group", recursive=True)
"""

TELL_PYTABLES = """
import tables, sys
with tables.open_file(sys.argv[1]) as f:
    for node in f.walk_nodes():
        print(node._v_pathname, type(node).__name__, node._v_attrs._v_attrnamesuser)
        if isinstance(node, tables.Table):
            print(node[:].tolist(), [r["name"] for r in node.where('name == b"2.1"')], node.indexedcolpathnames)
        elif isinstance(node, tables.Leaf):
            print(list(node) if isinstance(node, tables.VLArray) else node[:].tolist())
"""


def test_pytables_reads_every_version(programs, history):
    path, kept = history(PYTABLES, 4, "run.h5", imports=False)
    for version in range(1, 5):
        text = compared(programs, path, kept, version, sys.executable, "-c", TELL_PYTABLES)
        assert ("table" in text) == (version < 4)


def test_pytables_follows_references_of_every_version(programs, history):
    path, kept = history(H5PY, 4, "run.h5")
    code = """if True:
        import tables, sys
        with tables.open_file(sys.argv[1]) as f:
            print([[x.tolist() for x in row] for row in f.root.cells.read()])
    """
    told = {compared(programs, path, kept, version, sys.executable, "-c", code) for version in (1, 2, 4)}
    assert len(told) == 3
