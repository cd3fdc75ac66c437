"""Unmodified tools over files with history: what each of them wrote is in its version, and each of them reads it back.

A story is told twice, step by step: with the connector to one file, and without it to another, of which a copy is kept
after each step. Each step is one version. Then every version is read through the connector by the tool that wrote it
(option at=N), and by h5diff (FILE@N), and must be what is read from the copy without the connector.

Tools that are not here are skipped with their name; ./dev test --suites has them all (H5COW_SUITES), and skips none.
"""

import importlib.util
import json
import os
import re
import shutil
import sys
import textwrap

import pytest

# One field over time, latitude and longitude, and a second one; {0} is its seed.
INPUT = """
import netCDF4, numpy as np, sys
random = np.random.default_rng(int(sys.argv[2]))
f = netCDF4.Dataset(sys.argv[1], 'w')
for name, size in (('time', None), ('lat', 18), ('lon', 36)):
    f.createDimension(name, size)
for name, units, values in (('time', 'days since 2026-01-01', np.arange(12.0)),
                            ('lat', 'degrees_north', np.linspace(-85, 85, 18)),
                            ('lon', 'degrees_east', np.linspace(5, 355, 36))):
    v = f.createVariable(name, 'f8', (name,))
    v.units, v.standard_name = units, {'lat': 'latitude', 'lon': 'longitude'}.get(name, 'time')
    v[:] = values
for name in ('temp', 'salt'):
    v = f.createVariable(name, 'f4', ('time', 'lat', 'lon'), fill_value=-999.0)
    v.units, v.long_name = 'K', name + ' of seed ' + sys.argv[2]
    v[:] = random.normal(280, 10, (12, 18, 36)).round(2)
f.close()
"""


def need(*names):
    """Programs, or modules as 'import NAME'."""
    for name in names:
        if name.startswith("import "):
            found = importlib.util.find_spec(name.removeprefix("import ")) is not None
        else:
            found = shutil.which(name) is not None
        if not found and os.environ.get("H5COW_SUITES"):
            pytest.fail(f"'{name}' is not here")
        if not found:
            pytest.skip(f"'{name}' is not here: ./dev test --suites has it")


def first_difference(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"at {at} of {len(a)} and {len(b)}: {a[max(0, at - 100):at + 100]!r}, {b[max(0, at - 100):at + 100]!r}\n"


class Story:
    """{F} in a command is the file, in the current folder; the other words are the same for both."""

    def __init__(self, programs, folder, name):
        self.programs, self.folder, self.name = programs, folder, name
        self.versions = 0
        for part in ("cow", "plain"):
            (folder / part).mkdir()

    def path(self, part):
        return self.folder / part / self.name

    @staticmethod
    def words(command, path):
        """A command is a list, or the text of a Python program, whose sys.argv[1] is the file."""
        if isinstance(command, str):
            command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(command), "{F}"]
        return [str(word).replace("{F}", path.name) for word in command]

    def neutral(self, text):
        """Without what is of the file itself: folder, addresses, superblock (of version 3 where there is history)."""
        return re.sub(rf"{re.escape(str(self.folder))}/\w+/|_SuperblockVersion = \d|OFFSET \d+", "", text)

    def input(self, seed):
        """A plain netCDF-4 file."""
        path = self.folder / f"input{seed}.nc"
        if not path.exists():
            done = self.programs.stock(sys.executable, "-c", INPUT, path, str(seed))
            assert done.returncode == 0, done.stderr
        return path

    def step(self, command):
        """One version more. Several commands in one step would be several versions."""
        for part, run in (("cow", self.programs.connector), ("plain", self.programs.stock)):
            done = run(*self.words(command, self.path(part)), cwd=self.folder / part)
            assert done.returncode == 0, f"{part}: {done.stdout}{done.stderr}"
        self.versions += 1
        (self.folder / f"kept{self.versions}").mkdir()
        shutil.copy(self.path("plain"), self.path(f"kept{self.versions}"))

    def check(self, *reads, diff=True):
        """READS: commands that print what they read, in each version something else. DIFF: h5diff understands the files."""
        log = self.programs.stock("h5cow", "log", "--json", self.path("cow"))
        assert len(json.loads(log.stdout or "[]")) == self.versions, f"{log.stdout}{log.stderr}"
        seen = {}
        for n in range(1, self.versions + 1):
            kept = self.path(f"kept{n}")
            for read in reads:
                now = self.programs.connector(*self.words(read, self.path("cow")), options=f"at={n}", cwd=self.folder / "cow")
                then = self.programs.stock(*self.words(read, kept), cwd=kept.parent)
                assert then.returncode == 0, then.stdout + then.stderr
                texts = [self.neutral(done.stdout) for done in (now, then)]
                same = texts[0] == texts[1]  # not in the assertion: pytest would look for all differences, for minutes
                assert same and now.returncode == 0, f"version {n}: {first_difference(*texts)}{now.stderr[-2000:]}"
                assert len(texts[0]) > 20, f"{read} says nothing: {texts[0]}"
                seen[n] = seen.get(n, "") + texts[0]
            if diff:
                itself = self.programs.stock("h5diff", kept, shutil.copy(kept, self.folder / "itself"))
                done = self.programs.connector("h5diff", f"{self.path('cow')}@{n}", kept)
                # Some objects h5diff never compares; then it says so also of a file and its copy.
                assert done.returncode == 0 and done.stdout == itself.stdout, f"version {n}: {done.stdout}{done.stderr}"
        different = len(set(seen.values())) == len(seen)
        assert different, "two versions look the same"
        if diff:
            for n in range(1, self.versions):
                names = [f"{self.path('cow')}@{n}", f"{self.path('cow')}@{n + 1}"]
                assert self.programs.connector("h5diff", "-q", *names).returncode == 1, f"{names} do not differ"


@pytest.fixture
def story(programs, tmp_path):
    return lambda name: Story(programs, tmp_path, name)


# ---- netCDF tools ---------------------------------------------------------------------------------------------------


def test_nccopy(story):
    need("nccopy", "ncdump")
    s = story("data.nc")
    s.step(["nccopy", "-4", s.input(1), "{F}"])
    s.step(["nccopy", "-4", "-d", "5", "-s", s.input(2), "{F}"])
    s.step(["nccopy", "-4", "-u", "-c", "time/4,lat/9,lon/36", s.input(3), "{F}"])
    s.step(["nccopy", "-4", "-V", "time,temp", s.input(1), "{F}"])
    s.check(["ncdump", "-s", "{F}"])


def test_nccopy_reads_versions(story):
    """Into classic format, so that the copy is not written through HDF5."""
    need("nccopy", "ncdump")
    s = story("data.nc")
    for seed in (1, 2, 3):
        s.step(["nccopy", "-4", "-d", "1", s.input(seed), "{F}"])
    s.check(["sh", "-c", "nccopy -k nc6 {F} out.nc && ncdump -h out.nc && sha256sum out.nc"])


def test_ncks_appends_and_removes(story):
    """NCO works on a copy of the output and renames it; a copy has the history, and so has the result."""
    need("ncks", "ncdump")
    s = story("data.nc")
    s.step(["ncks", "-h", "--no_tmp_fl", "-4", "-v", "temp", s.input(1), "{F}"])
    s.step(["ncks", "-h", "-A", "-v", "salt", s.input(2), "{F}"])
    s.step(["ncks", "-h", "-A", "--no_tmp_fl", "-v", "temp", s.input(3), "{F}"])
    s.check(["ncdump", "{F}"], ["ncks", "--trd", "-v", "temp", "-d", "time,1", "{F}"])


def test_nco_changes_in_place(story):
    need("ncks", "ncatted", "ncrename", "ncdump")
    s = story("data.nc")
    s.step(["ncks", "-h", "--no_tmp_fl", "-4", "-L", "2", s.input(1), "{F}"])
    s.step(["ncatted", "-h", "-O", "-a", "units,temp,o,c,degC", "-a", "note,global,c,c,second", "{F}"])
    s.step(["ncrename", "-h", "-v", "salt,salinity", "{F}"])
    s.step(["ncatted", "-h", "-O", "-a", ",salinity,d,,", "{F}"])
    s.check(["ncdump", "{F}"], ["ncks", "--trd", "-m", "{F}"])


def test_cdo(story):
    need("cdo")
    s = story("data.nc")
    cdo = ["cdo", "-s", "--no_history", "-O", "-f", "nc4"]
    s.step([*cdo, "copy", s.input(1), "{F}"])
    s.step([*cdo, "-z", "zip_4", "addc,1.5", s.input(1), "{F}"])
    s.step([*cdo, "timmean", s.input(2), "{F}"])
    s.step([*cdo, "mergetime", "-seltimestep,1/3", s.input(2), "-seltimestep,7/9", s.input(3), "{F}"])
    dates = ["cdo", "-s", "showtimestamp", "-select,name=temp", "{F}"]
    s.check(["cdo", "-s", "output", "{F}"], ["cdo", "-s", "infon", "{F}"], dates)


# ---- HDF5 tools -----------------------------------------------------------------------------------------------------


def test_h5repack_with_other_filters_and_layouts(story):
    need("h5repack", "h5dump", "h5diff")
    s = story("data.h5")
    s.step(["h5repack", "-f", "GZIP=5", "-l", "CHUNK=6x9x36", s.input(1), "{F}"])
    s.step(["h5repack", "-f", "SHUF", "-f", "GZIP=9", "-f", "FLET", "-l", "temp,salt:CHUNK=12x18x12", s.input(2), "{F}"])
    s.step(["h5repack", "-f", "NONE", "-l", "lat,lon:CONTI", s.input(3), "{F}"])
    s.step(["h5repack", "-l", "CONTI", "-f", "NONE", s.input(2), "{F}"])
    s.check(["h5dump", "-p", "-A", "0", "-w", "0", "-d", "/temp", "-d", "/lat", "{F}"], ["h5ls", "-r", "{F}"])
    for n in range(1, s.versions + 1):
        done = s.programs.connector("h5repack", "-f", "GZIP=1", f"{s.path('cow')}@{n}", "back.h5", cwd=s.folder)
        assert done.returncode == 0, done.stderr
        done = s.programs.connector("h5diff", "back.h5", s.path(f"kept{n}"), cwd=s.folder)
        assert done.returncode == 0, done.stdout + done.stderr


def test_h5copy(story):
    need("h5copy", "h5dump", "h5diff")
    s = story("data.h5")
    s.step(["h5copy", "-p", "-i", s.input(1), "-o", "{F}", "-s", "/temp", "-d", "/runs/first"])
    s.step(["h5copy", "-p", "-i", s.input(2), "-o", "{F}", "-s", "/salt", "-d", "/runs/deep/second"])
    s.step(["h5copy", "-i", "{F}", "-o", "{F}", "-s", "/runs", "-d", "/again"])
    s.check(["h5dump", "-w", "0", "{F}"])
    for n in range(1, s.versions + 1):
        done = s.programs.connector(
            "h5copy", "-p", "-i", f"{s.path('cow')}@{n}", "-o", f"back{n}.h5", "-s", "/runs", "-d", "/x", cwd=s.folder
        )
        assert done.returncode == 0, done.stderr
        done = s.programs.connector("h5diff", f"back{n}.h5", s.path(f"kept{n}"), "/x", "/runs", cwd=s.folder)
        assert done.returncode == 0 and not done.stdout, done.stdout + done.stderr


# ---- GDAL -----------------------------------------------------------------------------------------------------------


def test_gdal_translate_writes_netcdf(story):
    """Into a file that is there: gdal_translate deletes what it is to replace, unless it appends."""
    need("gdal_translate", "gdalinfo")
    s = story("data.nc")
    for n, seed in enumerate((1, 2, 3), 1):
        made = s.programs.stock(
            *("gdal_translate", "-q", "-b", seed, f"NETCDF:{s.input(seed)}:temp", s.folder / f"band{n}.tif"),
            cwd=s.folder,
        )
        assert made.returncode == 0, made.stderr
    write = ["gdal_translate", "-q", "-of", "netCDF", "-co", "FORMAT=NC4", "-co", "WRITE_GDAL_HISTORY=NO"]
    s.step([*write, "-co", "COMPRESS=DEFLATE", s.folder / "band1.tif", "{F}"])
    s.step([*write, "-co", "APPEND_SUBDATASET=YES", s.folder / "band2.tif", "{F}"])
    s.step([*write, "-co", "APPEND_SUBDATASET=YES", s.folder / "band3.tif", "{F}"])
    s.check(["gdalinfo", "-checksum", "{F}"])


def test_gdal_reads_netcdf_and_hdf5(story):
    need("gdal_translate", "gdalinfo", "nccopy")
    s = story("data.nc")
    for seed in (1, 2, 3):
        s.step(["nccopy", "-4", "-d", "2", s.input(seed), "{F}"])
    s.check(
        ["gdalinfo", "-checksum", "NETCDF:{F}:temp"],
        ["gdalinfo", "-checksum", 'HDF5:"{F}"://salt'],
        ["sh", "-c", "gdal_translate -q NETCDF:{F}:temp out.tif && sha256sum out.tif && gdalinfo out.tif"],
        ["sh", "-c", "gdal_translate -q -of XYZ -b 3 HDF5:{F}://temp out.xyz && cat out.xyz"],
    )


# ---- Python ---------------------------------------------------------------------------------------------------------

PANDAS = """
import pandas as pd, numpy as np, sys
random = np.random.default_rng({0})
def frame(n):
    return pd.DataFrame({{'a': random.normal(size=n), 'b': random.integers(0, 9, n), 'c': ['x%d' % i for i in range(n)]}},
                        index=pd.date_range('2026-01-01', periods=n))
s = pd.HDFStore(sys.argv[1], mode='a')
{1}
s.close()
"""

READ_PANDAS = """
import pandas as pd, sys
s = pd.HDFStore(sys.argv[1], mode='r')
for key in sorted(s.keys()):
    print(key, s[key].to_csv(), s[key].dtypes, s.get_storer(key).shape)
if '/rows' in s.keys():
    print(s.select('rows', where='b > 4 & index > "2026-02-01"').to_csv())
s.close()
"""


def test_pandas_hdfstore(story):
    """Tables, fixed frames and series, with compression and indexed columns; h5diff cannot compare their pickles."""
    need("import pandas", "import tables")
    s = story("data.h5")
    steps = (
        "s.put('fixed', frame(50)); s.append('rows', frame(300), data_columns=['b'], complib='zlib', complevel=5)",
        "s.append('rows', frame(200), data_columns=['b']); s.put('series', frame(80)['a'])",
        "s.remove('rows', where='b < 3'); s.put('fixed', frame(60))",
        "s.remove('series'); s.put('other', frame(40), format='table')",
        "s.remove('fixed'); s.append('other', frame(5))",
    )
    for seed, step in enumerate(steps):
        s.step(PANDAS.format(seed, step))
    s.check(READ_PANDAS, diff=False)


XARRAY = """
import xarray as xr, numpy as np, sys
random = np.random.default_rng({seed})
d = xr.Dataset({{{names!r}[0]: (('time', 'x'), random.normal(size=(30, 200)), {{'units': 'K', 'seed': {seed}}}),
                 {names!r}[1]: (('x',), ['s%d' % i for i in random.integers(0, 99, 200)])}},
               coords={{'time': np.arange(30) * 2.5, 'x': np.arange(200)}}, attrs={{'step': {seed}}})
d.to_netcdf(sys.argv[1], mode={mode!r}, engine={engine!r}, group={group!r},
            encoding={{{names!r}[0]: {{'zlib': True, 'chunksizes': (10, 50)}}}} if {mode!r} == 'w' else None)
"""

READ_XARRAY = """
import xarray as xr, sys
tree = xr.open_datatree(sys.argv[1], engine={engine!r})
for node in tree.subtree:
    print(node.path, node.to_dataset().load().to_dict())
    print({{name: v.encoding.get('chunksizes') for name, v in node.data_vars.items()}})
"""


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_xarray_to_netcdf(story, engine):
    need("import xarray", f"import {'netCDF4' if engine == 'netcdf4' else engine}")
    s = story("data.nc")
    steps = (
        ("w", None, ("temp", "name")),
        ("a", None, ("temp", "name")),
        ("a", "runs/second", ("temp", "name")),
        ("a", None, ("salt", "label")),
        ("w", None, ("temp", "name")),
    )
    for seed, (mode, group, names) in enumerate(steps):
        s.step(XARRAY.format(seed=seed, mode=mode, group=group, names=names, engine=engine))
    s.check(READ_XARRAY.format(engine=engine))


# ---- the test itself ------------------------------------------------------------------------------------------------


def test_a_difference_and_a_missing_version_are_seen(story):
    """The comparison above can fail: one kept copy is of another time, one step wrote round the connector."""
    need("nccopy", "ncdump")
    s = story("data.nc")
    for seed in (1, 2, 3):
        s.step(["nccopy", "-4", s.input(seed), "{F}"])
    shutil.copy(s.path("kept1"), s.path("kept2"))
    with pytest.raises(AssertionError, match="version 2"):
        s.check(["ncdump", "{F}"])
    shutil.copy(s.path("kept3"), s.path("cow"))
    with pytest.raises(AssertionError):
        s.check(["ncdump", "{F}"])
