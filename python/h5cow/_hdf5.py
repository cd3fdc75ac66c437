"""The HDF5 libraries of this process, called directly: what no module offers.

A library is found in /proc/self/maps, and through the compiled part of each module that is known to use HDF5. HDF5 reads
HDF5_VOL_CONNECTOR and HDF5_PLUGIN_PATH once, when it is initialised, which importing any of these modules does.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, ContextManager, Dict, Iterator, List, Optional, Tuple

from ._command import FOLDER, MODULES, is_libhdf5
from ._errors import Error

_DEFAULT = 0  # H5P_DEFAULT, H5E_DEFAULT

_SIGNATURES: Dict[str, Tuple[Any, List[Any]]] = {  # result, arguments
    "H5get_libversion": (c_int, [POINTER(c_uint), POINTER(c_uint), POINTER(c_uint)]),
    "H5PLsize": (c_int, [POINTER(c_uint)]),
    "H5PLget": (c_int64, [c_uint, c_char_p, c_size_t]),
    "H5PLprepend": (c_int, [c_char_p]),
    "H5VLregister_connector_by_name": (c_int64, [c_char_p, c_int64]),
    "H5VLis_connector_registered_by_name": (c_int, [c_char_p]),
    "H5VLget_connector_id_by_name": (c_int64, [c_char_p]),
    "H5VLcmp_connector_cls": (c_int, [POINTER(c_int), c_int64, c_int64]),
    "H5VLconnector_str_to_info": (c_int, [c_char_p, c_int64, POINTER(c_void_p)]),
    "H5VLconnector_info_to_str": (c_int, [c_void_p, c_int64, POINTER(c_void_p)]),
    "H5VLfree_connector_info": (c_int, [c_int64, c_void_p]),
    "H5VLclose": (c_int, [c_int64]),
    "H5Pget_vol_id": (c_int, [c_int64, POINTER(c_int64)]),
    "H5Pget_vol_info": (c_int, [c_int64, POINTER(c_void_p)]),
    "H5Pset_vol": (c_int, [c_int64, c_int64, c_void_p]),
    "H5free_memory": (c_int, [c_void_p]),
    "H5Eget_auto2": (c_int, [c_int64, POINTER(c_void_p), POINTER(c_void_p)]),
    "H5Eset_auto2": (c_int, [c_int64, c_void_p, c_void_p]),
    "H5Eclear2": (c_int, [c_int64]),
    "H5Ewalk2": (c_int, [c_int64, c_int, c_void_p, c_void_p]),
    "H5VLfind_opt_operation": (c_int, [c_int, c_char_p, POINTER(c_int)]),
    "H5VLquery_optional": (c_int, [c_int64, c_int, c_int, POINTER(c_uint64)]),
    "H5VLfile_optional_op": (c_int, [c_char_p, c_char_p, c_uint, c_int64, c_void_p, c_int64, c_int64]),
}


class _ErrorRecord(ctypes.Structure):
    """H5E_error2_t."""

    _fields_ = [
        ("cls_id", c_int64),
        ("maj_num", c_int64),
        ("min_num", c_int64),
        ("line", c_uint),
        ("func_name", c_char_p),
        ("file_name", c_char_p),
        ("desc", c_char_p),
    ]


class _Operation(ctypes.Structure):
    """H5VL_optional_args_t."""

    _fields_ = [("op_type", c_int), ("args", c_void_p)]


class _Abort(ctypes.Structure):
    """h5cow_abort_t of h5cow.h."""

    _fields_ = [("size", c_size_t)]


class _Commit(ctypes.Structure):
    """h5cow_commit_t of h5cow.h."""

    _fields_ = [("size", c_size_t), ("number", c_uint64)]


class _State(ctypes.Structure):
    """h5cow_state_t of h5cow.h."""

    _fields_ = [
        ("size", c_size_t),
        ("version_size", c_size_t),
        ("version", c_void_p),
        ("old_version", c_int32),
        ("uncommitted", c_int32),
    ]


_SUBCLASS_FILE = 6  # H5VL_SUBCLS_FILE
_SUPPORTED = 1  # H5VL_OPT_QUERY_SUPPORTED

class _Place(ctypes.Structure):
    """Dl_info."""

    _fields_ = [("dli_fname", c_char_p), ("dli_fbase", c_void_p), ("dli_sname", c_char_p), ("dli_saddr", c_void_p)]


def _file_of(address: Optional[int]) -> Optional[str]:
    place = _Place()
    dladdr: Any = ctypes.CDLL(None).dladdr
    dladdr.argtypes = [c_void_p, POINTER(_Place)]
    return os.fsdecode(place.dli_fname) if dladdr(address, byref(place)) and place.dli_fname else None


_WALK = ctypes.CFUNCTYPE(c_int, c_uint, POINTER(_ErrorRecord), c_void_p)


class Library:
    """One libhdf5, found by its own path or by that of something that is linked with it.

    Calls raise `Error` with what HDF5 says. None may run beside other calls of this library: see `h5py_lock`.
    """

    def __init__(self, path: str, mode: int = ctypes.DEFAULT_MODE):
        self._loaded = ctypes.CDLL(path, mode=mode)
        self.address = ctypes.cast(self._loaded.H5open, c_void_p).value
        self.path = _file_of(self.address) or path
        self._connector: Optional[int] = None  # ids, kept for the life of the process
        self._own: Optional[int] = None

    def _function(self, name: str) -> Any:
        function = self._loaded[name]  # a new object each time, so that nobody else's signatures are changed
        function.restype, function.argtypes = _SIGNATURES[name]
        return function

    def _variable(self, name: str) -> int:
        return c_int64.in_dll(self._loaded, name).value

    @property
    def initialised(self) -> bool:
        """Has it read the environment? Asking does not initialise it."""
        return self._variable("H5P_CLS_FILE_ACCESS_ID_g") > 0

    # ---- calls ----

    @contextlib.contextmanager
    def _quietly(self) -> Iterator[None]:
        """Errors are raised, so HDF5 need not print them."""
        function, data = c_void_p(), c_void_p()
        known = self._function("H5Eget_auto2")(_DEFAULT, byref(function), byref(data)) >= 0
        self._function("H5Eset_auto2")(_DEFAULT, None, None)
        try:
            yield
        finally:
            self._function("H5Eclear2")(_DEFAULT)
            if known:
                self._function("H5Eset_auto2")(_DEFAULT, function, data)

    def _reason(self) -> str:
        """The innermost error, which says most."""
        found: List[str] = []

        def note(_: int, record: Any, __: Any) -> int:
            text = record.contents.desc
            found.append(text.decode(errors="replace") if text else "")
            return 0

        self._function("H5Ewalk2")(_DEFAULT, 0, ctypes.cast(_WALK(note), c_void_p), None)
        return found[0] if found and found[0] else "HDF5 does not say why"

    def _call(self, name: str, *arguments: Any) -> int:
        result: int = self._function(name)(*arguments)
        if result < 0:
            raise Error(self._reason())
        return result

    # ---- the connector ----

    def _prepend_folder(self) -> None:
        count = c_uint()
        self._call("H5PLsize", byref(count))
        text = ctypes.create_string_buffer(4096)
        for i in range(count.value):
            self._call("H5PLget", i, text, len(text))
            if text.value == os.fsencode(FOLDER):
                return
        self._call("H5PLprepend", os.fsencode(FOLDER))

    def _h5cow(self) -> int:
        if self._connector is None:
            self._prepend_folder()
            self._connector = self._call("H5VLregister_connector_by_name", b"h5cow", _DEFAULT)
        return self._connector

    def _info(self, options: str) -> c_void_p:
        info = c_void_p()
        self._call("H5VLconnector_str_to_info", os.fsencode(options), self._h5cow(), byref(info))
        return info

    def _free(self, info: c_void_p) -> None:
        if info:
            self._call("H5VLfree_connector_info", self._h5cow(), info)

    def _text(self, info: c_void_p) -> bytes:
        """All options, as the connector writes them. Frees INFO."""
        text = c_void_p()
        try:
            self._call("H5VLconnector_info_to_str", info, self._h5cow(), byref(text))
        finally:
            self._free(info)
        try:
            return ctypes.string_at(text) if text else b""
        finally:
            self._call("H5free_memory", text)

    def check(self, options: str) -> None:
        """Raises `Error` where the connector cannot be loaded, or does not take OPTIONS."""
        version = [c_uint(), c_uint(), c_uint()]
        self._function("H5get_libversion")(*map(byref, version))
        number = tuple(part.value for part in version)
        if number < (1, 14):
            raise Error(f"the HDF5 library {self.path} is {'.'.join(map(str, number))}, and h5cow needs 1.14 or newer")
        with self._quietly():
            self._free(self._info(options))

    def _connector_of(self, access: int, other: int) -> bool:
        """Is OTHER the connector of this file access list?"""
        connector, order = c_int64(), c_int()
        self._call("H5Pget_vol_id", access, byref(connector))
        try:
            self._call("H5VLcmp_connector_cls", byref(order), connector, other)
        finally:
            self._call("H5VLclose", connector)
        return order.value == 0

    def uses(self, options: Optional[str]) -> bool:
        """Do files of this library, which is initialised, go through the connector with OPTIONS by themselves? Through HDF5's own,
        where OPTIONS is None?"""
        with self._quietly():
            access = self._variable("H5P_LST_FILE_ACCESS_ID_g")
            if options is None:
                return self._connector_of(access, self._native())
            if not self._call("H5VLis_connector_registered_by_name", b"h5cow"):
                return False
            if not self._connector_of(access, self._h5cow()):
                return False
            info = c_void_p()
            self._call("H5Pget_vol_info", access, byref(info))
            return self._text(info if info else self._info("")) == self._text(self._info(options))

    def _native(self) -> int:
        if self._own is None:
            self._own = self._call("H5VLget_connector_id_by_name", b"native")
        return self._own

    def select(self, access: int, options: Optional[str]) -> None:
        """Let the file access list ACCESS choose the connector with OPTIONS; None: HDF5's own."""
        with self._quietly():
            if options is None:
                self._call("H5Pset_vol", access, self._native(), None)
                return
            info = self._info(options)
            try:
                self._call("H5Pset_vol", access, self._h5cow(), info)
            finally:
                self._free(info)

    # ---- operations on open files: docs/api.md ----

    def _operate(self, file: int, operation: bytes, argument: ctypes.Structure) -> None:
        number, flags = c_int(), c_uint64()
        try:
            self._call("H5VLfind_opt_operation", _SUBCLASS_FILE, operation, byref(number))
            self._call("H5VLquery_optional", file, _SUBCLASS_FILE, number, byref(flags))
        except Error:
            flags.value = 0
        if not flags.value & _SUPPORTED:
            raise Error("the file is not open through h5cow")
        arguments = _Operation(number, ctypes.addressof(argument))
        transfer = self._variable("H5P_LST_DATASET_XFER_ID_g")
        self._call("H5VLfile_optional_op", b"h5cow", b"h5cow", 0, file, byref(arguments), transfer, _DEFAULT)

    def check_history(self, file: int) -> None:
        """Raises `Error` where the open FILE has no history, or is not open through the connector."""
        with self._quietly():
            self._operate(file, b"h5cow.version", _State(ctypes.sizeof(_State)))

    def commit(self, file: int) -> None:
        """Make a version of what was written into the open FILE."""
        with self._quietly():
            self._operate(file, b"h5cow.commit", _Commit(ctypes.sizeof(_Commit)))

    def abort(self, file: int) -> None:
        """Drop what was written into the open FILE since its last commit. Nothing but closing it can be done then."""
        with self._quietly():
            self._operate(file, b"h5cow.abort", _Abort(ctypes.sizeof(_Abort)))


# ---- which there are ----


def loaded() -> List[Library]:
    """The HDF5 libraries of this process, each once."""
    found: List[Library] = []
    mapped = (_library(path, os.RTLD_NOLOAD | os.RTLD_LAZY) for path in _mapped())
    for library in [*mapped, *map(library_of, MODULES)]:
        if library is not None and all(library.address != other.address for other in found):
            found.append(library)
    return found


def _library(path: str, mode: int = ctypes.DEFAULT_MODE) -> Optional[Library]:
    try:
        return Library(path, mode)
    except (OSError, AttributeError):  # gone, or it has no H5open
        return None


def _mapped() -> List[str]:
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            paths = [line.rstrip("\n").split(None, 5)[5] for line in maps if "/libhdf5" in line]
    except OSError:
        return []
    return [path for path in dict.fromkeys(paths) if is_libhdf5(os.path.basename(path))]


def library_of(module: str) -> Optional[Library]:
    """The library that MODULE, one of `MODULES`, uses: what one of its compiled parts is linked with. None: it is not imported."""
    parts = [part for name, part in sorted(sys.modules.items()) if name.startswith(f"{module}.")]
    files = [getattr(part, "__file__", None) for part in parts]
    found = (_library(file) for file in files if file and file.endswith(".so"))
    return next((library for library in found if library is not None), None)


def users(library: Library) -> List[str]:
    """Which of the modules that are imported use LIBRARY."""
    used = ((module, library_of(module)) for module in MODULES)
    return [module for module, its in used if its is not None and its.address == library.address]


def h5py_lock() -> ContextManager[Any]:
    """What h5py holds while it calls HDF5. Its parts may be in a package of another name (Debian)."""
    low = getattr(sys.modules.get("h5py"), "h5f", None)
    objects = sys.modules.get(getattr(low, "__name__", "").rpartition(".")[0] + "._objects")
    lock: Any = getattr(objects, "phil", None)
    return lock if lock is not None else contextlib.nullcontext()
