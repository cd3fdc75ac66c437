"""History for the files of this process: the environment that HDF5 reads, and what can be done where it has read it already."""

from __future__ import annotations

import contextlib
import os
import types
import warnings
from typing import Any, List, Optional, Type

from . import _files, _hdf5
from ._command import FOLDER, check_installed, other_plugin_folders
from ._errors import Error, TooLate, TooLateWarning
from ._options import encode, selected

_VARIABLES = ("HDF5_VOL_CONNECTOR", "HDF5_PLUGIN_PATH")


_active: List[Enabled] = []  # in the order of their calls


class Enabled:
    """What `enable()` has done. As a context manager it takes that back at its end, as `disable()` does."""

    def __init__(self) -> None:
        self._before = {name: os.environ.get(name) for name in _VARIABLES}
        _active.append(self)

    def disable(self) -> None:
        """Take it back: the environment is as it was, or as a later `enable()` wants it, and h5py opens files as that says.

        What was imported meanwhile, and is not h5py, goes on with h5cow: HDF5 reads the environment once.
        """
        if self not in _active:
            return
        place = _active.index(self)
        del _active[place]
        if place < len(_active):  # it is the later one that will take this back
            _active[place]._before = self._before
            return
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        library = _hdf5.library_of("h5py")
        if library is not None and library.initialised:
            _follow_environment()

    def __enter__(self) -> Enabled:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[types.TracebackType],
    ) -> None:
        self.disable()


def _chosen_by_environment() -> Optional[_files.Choice]:
    """None: another connector, which h5cow leaves alone."""
    variable = os.environ.get("HDF5_VOL_CONNECTOR")
    options = selected(variable)
    return None if options is None and variable else _files.Choice(options)


def _follow_environment() -> None:
    """h5py opens each file as HDF5_VOL_CONNECTOR says then."""
    _files.h5py_library()
    _files.follow = _chosen_by_environment


def _check_possible(options: str) -> List[_hdf5.Library]:
    """The libraries that have read another environment, of which h5py can be helped."""
    late, unknown, helped = [], [], []
    for library in _hdf5.loaded():
        if not library.initialised:
            continue
        with _hdf5.h5py_lock(), contextlib.suppress(Error, AttributeError):  # HDF5 before 1.14 lacks what is asked
            if library.uses(options):
                continue
        modules = _hdf5.users(library)
        late += [module for module in modules if module != "h5py"]
        if not modules:
            unknown.append(library.path)
        if "h5py" in modules:
            helped.append(library)
    if late:
        raise TooLate(
            f"enable() comes too late for {' and '.join(late)}, because HDF5 reads the environment once, at the import: call it "
            f"before {' and '.join(late)} is imported, or run the program by 'h5cow run'"
        )
    for path in unknown:
        warnings.warn(
            f"h5cow.enable() comes too late for the HDF5 library {path}, which has read the environment already: its files "
            "get no history",
            TooLateWarning,
            stacklevel=3,
        )
    return helped


def enable(**options: Any) -> Enabled:
    """From now on the HDF5 files of this process, and of those that it starts, have a history.

    OPTIONS are the connector's (docs/options.md), for example `message="second run"` or `compress="blosc:zstd:3"`. Call it before
    netCDF4 and tables are imported, else it raises `TooLate`; h5py may be imported already. In a program that was started by
    `h5cow run` it changes nothing, unless it is given options.

    As a context manager, `with h5cow.enable(...):`, it holds for the block.
    """
    text = encode(options)
    check_installed()
    if os.environ.get("HDF5_PLUGIN_PRELOAD") == "::":
        raise Error("HDF5_PLUGIN_PRELOAD=:: forbids HDF5 to load any plugin: unset it")
    if ":" in FOLDER:
        raise Error(f"the folder {FOLDER} has a ':' in its name, which HDF5_PLUGIN_PATH cannot say")
    if not options:
        text = selected(os.environ.get("HDF5_VOL_CONNECTOR")) or ""
    helped = _check_possible(text)
    for library in helped:
        with _hdf5.h5py_lock():
            library.check(text)
    enabled = Enabled()
    others = [folder for folder in other_plugin_folders() if folder != FOLDER]
    os.environ["HDF5_PLUGIN_PATH"] = ":".join([FOLDER, *others])
    os.environ["HDF5_VOL_CONNECTOR"] = f"h5cow {text}".rstrip()
    if helped:
        _follow_environment()
    return enabled
