"""h5py's files through the connector, whatever the environment says.

h5py opens every file by `h5py.h5f.open` or `create`, with a file access list that chooses HDF5's default connector. Both are
replaced, once, by functions that let the list choose what `choice()` says; while that is nothing they do what they did.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, Union

from . import _hdf5
from ._command import check_installed
from ._errors import Error, OptionError
from ._history import Path, versions
from ._options import Revision, encode, override, revision, selected

if TYPE_CHECKING:
    import h5py


class Choice:
    """Which connector: h5cow with OPTIONS; None: HDF5's own."""

    def __init__(self, options: Optional[str]):
        self.options = options


# Of the file that this thread is opening.
_this_file: contextvars.ContextVar[Optional[Choice]] = contextvars.ContextVar("h5cow", default=None)

# Of all files, where the environment came too late. Returns None: whatever the library does by itself.
follow: Callable[[], Optional[Choice]] = lambda: None


@functools.lru_cache(maxsize=None)
def h5py_library() -> _hdf5.Library:
    """The library of h5py, which is imported, with h5py's functions replaced."""
    import h5py

    library = _hdf5.library_of("h5py")
    if library is None:
        raise Error("this h5py is not made as h5cow knows it: no compiled part of it is linked with HDF5")
    h5py.h5f.open = _replaced(h5py.h5f.open, 2, library)
    h5py.h5f.create = _replaced(h5py.h5f.create, 3, library)
    return library


def _replaced(real: Callable[..., Any], place: int, library: _hdf5.Library) -> Callable[..., Any]:
    """A function as REAL, whose argument number PLACE is `fapl`."""
    import h5py

    @functools.wraps(real)
    def function(*arguments: Any, **named: Any) -> Any:
        choice = _this_file.get() or follow()
        if choice is None:
            return real(*arguments, **named)
        with _hdf5.h5py_lock():
            given = arguments[place] if len(arguments) > place else named.pop("fapl", None)
            access = h5py.h5p.create(h5py.h5p.FILE_ACCESS) if given is None else given.copy()
            library.select(access.id, choice.options)
            return real(*arguments[:place], fapl=access, **named)

    return function


@contextlib.contextmanager
def _chosen(choice: Choice) -> Iterator[None]:
    token = _this_file.set(choice)
    try:
        yield
    finally:
        _this_file.reset(token)


def open(
    file: Path,
    mode: str = "r",
    *,
    at: Optional[Revision] = None,
    options: Optional[Mapping[str, Any]] = None,
    **h5py_options: Any,
) -> h5py.File:
    """Open FILE with h5py, through h5cow, whether or not `enable()` was called or the program is run by `h5cow run`.

    AT: the version to read, by name, number (-1: the newest), time, or as `versions()` returned it. OPTIONS: of the connector, for
    this file (docs/options.md), besides those of `enable()` or HDF5_VOL_CONNECTOR. H5PY_OPTIONS go to `h5py.File`.
    """
    import h5py

    check_installed()
    name, wanted = os.fsdecode(file), dict(options or {})
    base = selected(os.environ.get("HDF5_VOL_CONNECTOR")) or ""
    if at is not None:
        if mode != "r":
            raise OptionError(f"at={at!r} with mode={mode!r}: a version is read-only")
        if "at" in wanted or "name" in wanted or "message" in wanted:
            raise OptionError("at opens a version; at, name and message cannot be among its options")
        text = revision(at)
        base = override(base, {}, drop=("at", "name", "message"))
        encode({"at": text})  # is it one?
        if os.path.exists(f"{name}@{text}"):  # a file that is really called so would win
            wanted["at"] = text
        else:
            name = f"{name}@{text}"
    chosen = Choice(override(base, wanted))
    library = h5py_library()
    with _hdf5.h5py_lock():
        library.check(chosen.options or "")
    with _chosen(chosen):
        return h5py.File(name, mode, **h5py_options)


def _check_way_back(file: Path, mode: str, options: Mapping[str, Any], h5py_options: Mapping[str, Any]) -> None:
    """Raises `Error` where a block that fails could not leave what is there now."""
    try:
        there = os.path.getsize(file)
    except OSError:
        there = None
    driver = h5py_options.get("driver")
    if driver not in (None, "sec2") and (mode in ("w", "w-", "x") or there is None):
        raise OptionError(f"driver={driver!r}: a new file has a history with HDF5's default driver only")
    if driver == "core" and not h5py_options.get("backing_store", True):
        raise OptionError("driver='core' with backing_store=False: what is kept in memory makes no version")
    if mode == "w" and there:
        kept = {key: value for key, value in options.items() if key not in ("name", "message")}
        try:
            with open(file, "r", options=kept) as old, _hdf5.h5py_lock():
                h5py_library().check_history(old.id.id)
        except FileNotFoundError:  # its program died before it had committed anything
            return
        except (Error, OSError) as error:
            raise Error(f"mode='w' would empty a file that could not be brought back: {error}") from error


def _drop(library: _hdf5.Library, f: h5py.File, opened_by: int) -> None:
    """Close F, unless the block has, without a commit."""
    if not f or os.getpid() != opened_by:  # what is written is not a forked child's to drop
        return
    try:
        with _hdf5.h5py_lock():
            library.abort(f.id.id)
    finally:
        f.close()


def _open_here(f: h5py.File, kinds: int) -> int:
    import h5py

    return int(h5py.h5f.get_obj_count(f.id, kinds))


def _is_taken(file: Path, name: str) -> bool:
    """By a version that stands, or a tag. A file that has none is not there yet, or refused elsewhere."""
    try:
        return any(name == one.name or name in one.tags for one in versions(file))
    except Error:
        return False


@contextlib.contextmanager
def version(
    file: Path,
    mode: str = "a",
    *,
    name: Optional[str] = None,
    message: Optional[str] = None,
    options: Optional[Mapping[str, Any]] = None,
    **h5py_options: Any,
) -> Iterator[h5py.File]:
    """One version of FILE: `with h5cow.version("t.h5", message="corrected") as f: ...`

    It is made when the block ends. An exception drops what was written in the block, and goes on: the file stays as it was, and
    one that was not there is not made. What the block has flushed stays, since that was committed. Refused, since it could not
    be dropped: a plain file, and one that this program has open for writing already, as in another such block.
    """
    import h5py

    if mode not in ("a", "r+", "w", "w-", "x"):
        raise OptionError(f"mode={mode!r}: a version is made by writing: a, r+, w, w- or x")
    library = h5py_library()
    _check_way_back(file, mode, options or {}, h5py_options)
    if name is not None and _is_taken(file, name):
        raise Error(f"{os.fsdecode(file)}: there is a version '{name}' already; choose another name")
    with _hdf5.h5py_lock():  # of two threads, the first is in
        f = open(file, mode, options={**(options or {}), "name": name, "message": message}, **h5py_options)
        try:
            if _open_here(f, h5py.h5f.OBJ_ALL) > _open_here(f, h5py.h5f.OBJ_ALL | h5py.h5f.OBJ_LOCAL):
                raise Error(
                    f"{os.fsdecode(file)} is open for writing in this program already, and what is written there could not be "
                    "told from what is written here: close it first"
                )
            library.check_history(f.id.id)
        except BaseException:
            f.close()
            raise
    process = os.getpid()
    try:
        yield f
        with _hdf5.h5py_lock():
            if f and _open_here(f, h5py.h5f.OBJ_FILE) > 1:  # somebody has opened it meanwhile: closing is no commit
                library.commit(f.id.id)
        f.close()
    except BaseException:
        _drop(library, f, process)
        raise
