"""What programs of h5py, netCDF4 and PyTables do, for tests that run them: each puts 1, 2, 3 ... into a file of its own.

begin() opens the file for a change, put(f, n) adds the number n + 1, flush(f) brings it to the disk, write(n) does all and
closes; read() is the list of what is there, and `version` HDF5's. Texts, since every test runs them in processes of their own.
"""

import textwrap

FILES = {"h5py": "h5py.h5", "netCDF4": "netCDF4.nc", "tables": "tables.h5"}

_TEXTS = {
    "h5py": """
        import h5py
        version = h5py.version.hdf5_version
        flush = h5py.File.flush
        def begin():
            return h5py.File("h5py.h5", "a")
        def put(f, n):
            f.require_dataset("d", (100, 100), "f4", chunks=(20, 20))[n] = n + 1
        def read(at=""):
            with h5py.File("h5py.h5" + at, "r") as f:
                return [int(x) for x in f["d"][:, 0] if x]
    """,
    "netCDF4": """
        import netCDF4, os
        version = netCDF4.__hdf5libversion__
        flush = netCDF4.Dataset.sync
        def begin():
            return netCDF4.Dataset("netCDF4.nc", "a" if os.path.exists("netCDF4.nc") else "w")
        def put(f, n):
            if "x" not in f.dimensions:
                f.createDimension("x", None)
                f.createVariable("d", "f4", ("x",), zlib=True)
            f["d"][n * 10 : n * 10 + 10] = n + 1
        def read(at=""):
            with netCDF4.Dataset("netCDF4.nc" + at) as f:
                return [int(x) for x in f["d"][::10]]
    """,
    "tables": """
        import tables
        version = tables.hdf5_version
        flush = tables.File.flush
        class Row(tables.IsDescription):
            d = tables.Int32Col()
        def begin():
            return tables.open_file("tables.h5", "a")
        def put(f, n):
            t = f.root.t if "/t" in f else f.create_table("/", "t", Row)
            t.append([(n + 1,)] * 100)
        def read(at=""):
            with tables.open_file("tables.h5" + at, "r") as f:
                return f.root.t.col("d").tolist()[::100]
    """,
}
_WRITE = """
def write(n):
    f = begin()
    put(f, n)
    f.close()
"""
TEXTS = {module: textwrap.dedent(text) + _WRITE for module, text in _TEXTS.items()}
