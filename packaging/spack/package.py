# For Spack 1.0 or newer, in a package repository of your own: docs/install.md says how.
import os

from spack_repo.builtin.build_systems.meson import MesonPackage

from spack.package import *


class H5cow(MesonPackage):
    """Version history for HDF5 files, for programs that know nothing of it: a connector (VOL plugin) for the HDF5 library, and
    the command h5cow. Programs that start with HDF5_VOL_CONNECTOR=h5cow make a version of a file each time they open, change
    and close it."""

    # The checkout whose packaging/spack/package.py this is, or a link to.
    git = "file://" + os.path.realpath(__file__).rpartition("/packaging/")[0]

    license("BSD-3-Clause")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("hdf5@1.14: +shared")
    depends_on("mpi", when="^hdf5+mpi")  # hdf5.h includes mpi.h
    depends_on("xxhash")
    depends_on("openssl@3:")
    depends_on("c-blosc")
    depends_on("zlib-api")
    depends_on("libdeflate")
    depends_on("json-c")

    requires("platform=linux", msg="h5cow needs what Linux says of files: descriptors of folders, locks, /proc")

    def meson_args(self):
        return ["-Dtests=false", "-Dbenchmarks=false", "-Dwerror=false", "-Dplugindir=lib/hdf5/plugin"]

    # Spack's libhdf5 does not look there by itself. Which programs get versions stays the user's choice:
    # HDF5_VOL_CONNECTOR=h5cow, or h5cow run.
    def setup_run_environment(self, env):
        env.prepend_path("HDF5_PLUGIN_PATH", self.prefix.lib.hdf5.plugin)

    # doctor answers 0 only where the plugin loads.
    @run_after("install")
    def try_it(self):
        Executable(self.prefix.bin.h5cow)("doctor")
