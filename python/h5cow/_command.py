"""The command `h5cow` of this package, and an HDF5 library for it: it is linked with none.

Modules are found, not imported: that would take a second. This one imports at its top only what Python has in memory when it
starts, since each start of the command pays for it.
"""

from __future__ import annotations

import os
import sys

from ._errors import Error

TYPE_CHECKING = False  # that of typing, without importing it
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Tuple

FOLDER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "plugin")
PLUGIN = os.path.join(FOLDER, "libh5cow.so")
COMMAND = os.path.join(FOLDER, "h5cow")

MODULES = ("h5py", "netCDF4", "tables")
"""Those whose wheels bring an HDF5 library of their own, in the order in which one is chosen for the command."""

# Where the HDF5 libraries of wheels, Debian and conda look for plugins by themselves, while HDF5_PLUGIN_PATH is not set.
_DEFAULT_FOLDERS = (
    "/usr/local/hdf5/lib/plugin",
    "/usr/local/lib/hdf5/plugin",
    "/usr/lib/x86_64-linux-gnu/hdf5/serial/plugins",
    "/usr/lib/aarch64-linux-gnu/hdf5/serial/plugins",
    f"{sys.prefix}/lib/hdf5/plugin",
)


def is_libhdf5(name: str) -> bool:
    """Is a file of this name HDF5's C library? Not its C++, Fortran and high-level ones."""
    if not name.startswith("libhdf5"):
        return False
    import re

    return re.match(r"libhdf5(?!\w*_?(?:hl|cpp|fortran|tools|java|f90cstub))[\w-]*\.so", name) is not None


def _old(name: str) -> bool:
    """HDF5 1.12 and older, by the number of its interface."""
    import re

    number = re.search(r"\.so\.(\d+)", name)
    return number is not None and int(number[1]) < 310


def _package(module: str) -> Optional[str]:
    """The folder of MODULE: what importlib.util.find_spec finds, without importing that."""
    found = getattr(sys.modules.get(module), "__spec__", None)
    for finder in sys.meta_path if found is None else ():
        try:
            found = finder.find_spec(module, None)
        except (AttributeError, ImportError, ValueError):
            continue
        if found is not None:
            break
    return os.path.dirname(os.path.realpath(found.origin)) if found is not None and found.origin else None


def _in(folders: Iterable[str]) -> Optional[str]:
    for folder in folders:
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if is_libhdf5(name) and not _old(name):
                return os.path.join(folder, name)
    return None


def _of_module(module: str) -> Optional[str]:
    """The libhdf5 that the wheel of MODULE has brought: tools for wheels put it into MODULE.libs beside the package."""
    package = _package(module)
    if package is None:
        return None
    beside = os.path.join(os.path.dirname(package), "")
    return _in([f"{beside}{module}.libs", f"{beside}{module.lower()}.libs", os.path.join(package, ".libs")])


def find_libhdf5() -> Optional[str]:
    """The libhdf5 of the installed h5py, else of netCDF4, else of PyTables, else of this environment (conda). None: the command
    looks where the dynamic linker does."""
    for module in MODULES:
        path = _of_module(module)
        if path is not None:
            return path
    return _in([os.path.join(sys.prefix, "lib")]) if os.path.isdir(os.path.join(sys.prefix, "conda-meta")) else None


def other_plugin_folders() -> List[str]:
    """Folders besides ours in which programs find plugins: HDF5_PLUGIN_PATH, or what stands for it while it is not set."""
    path = os.environ.get("HDF5_PLUGIN_PATH")
    if path:
        return [folder for folder in path.split(":") if folder]
    package = _package("netCDF4")  # which sets the variable itself, where nobody else has
    folders = [] if package is None else [os.path.join(package, "plugins")]
    return [folder for folder in [*folders, *_DEFAULT_FOLDERS] if os.path.isdir(folder)]


def environment() -> Dict[str, str]:
    """For the command."""
    env = dict(os.environ)
    library = None if env.get("H5COW_LIBHDF5") else find_libhdf5()
    if library is not None:
        env["H5COW_LIBHDF5"] = library
    return env


def check_installed() -> None:
    for path in (PLUGIN, COMMAND):
        if not os.path.isfile(path):
            raise Error(f"{path} is not there: install h5cow again (pip install --force-reinstall h5cow)")


def _run(verb: str, *words: str) -> Tuple[bytes, int, str]:
    import re
    import subprocess

    check_installed()
    try:
        done = subprocess.run(
            [COMMAND, verb, *words],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as why:  # an argument that is too long
        raise Error(f"{COMMAND} cannot be run: {why}") from why
    said = done.stderr.decode(errors="replace").strip()
    return done.stdout, done.returncode, re.sub(r"^h5cow: ", "", said) or f"h5cow {verb} ended with exit code {done.returncode}"


def ask(verb: str, *arguments: str, options: Iterable[str] = ()) -> Tuple[Any, int]:
    """What `h5cow VERB --json OPTION... -- ARGUMENT...` answers, and its exit code: 0, 1 when it found damage or a difference, or 2
    when it could not look at all that it was asked about, and its answer says at what."""
    told, code, said = _run(verb, "--json", *options, "--", *arguments)
    if code not in (0, 1, 2) or not told.strip():
        raise Error(said)
    import json

    return json.loads(told.decode(errors="surrogateescape")), code


def tell(verb: str, *arguments: str, options: Iterable[str] = ()) -> None:
    """`h5cow VERB OPTION... -- ARGUMENT...`, which answers nothing."""
    _, code, said = _run(verb, *options, "--", *arguments)
    if code != 0:
        raise Error(said)
