"""Version history for HDF5 files, for programs that know nothing of it.

    import h5cow
    h5cow.enable(message="first run")       # before netCDF4 or tables is imported

    import h5py
    with h5py.File("t.h5", "a") as f:       # opened, changed, closed: a version
        f["x"] = 1

    h5cow.versions("t.h5")                  # list of records; a table in a notebook
    h5cow.open("t.h5", at=1)["x"][()]       # as it was
    h5cow.diff("t.h5")                      # what the newest version changed
    h5cow.blame("t.h5", "/x")               # which version wrote what
    h5cow.content_hash("t.h5", at=1)        # what it held, however it is stored
    h5cow.restore("t.h5", 1)                # as it was, as a new version; h5cow.undo("t.h5")
    h5cow.tag("t.h5", 1, "submitted")       # "t.h5@submitted"
    h5cow.forget("t.h5", keep_last=20)      # older ones go; h5cow.gc("t.h5") makes free what they had

    with h5cow.version("t.h5", name="calibrated") as f:   # one version, or none at all when the block fails
        f["x"][()] = 2

The rest is told by the command: `python -m h5cow --help`.
"""

TYPE_CHECKING = False  # that of typing, without importing it
if TYPE_CHECKING:
    from ._enable import Enabled, enable
    from ._errors import Error, OptionError, TooLate, TooLateWarning
    from ._files import open, version
    from ._history import (
        Change,
        Changes,
        Collected,
        Compacted,
        Damage,
        Forgotten,
        Lack,
        Part,
        Restored,
        Verified,
        Version,
        Versions,
        Weighed,
        blame,
        compact,
        content_hash,
        describe,
        diff,
        forget,
        gc,
        redo,
        rename,
        restore,
        squash,
        tag,
        undo,
        untag,
        verify,
        versions,
    )

__version__ = "0.1.0"

__all__ = [
    "Change",
    "Changes",
    "Collected",
    "Compacted",
    "Damage",
    "Enabled",
    "Error",
    "Forgotten",
    "Lack",
    "OptionError",
    "Part",
    "Restored",
    "TooLate",
    "TooLateWarning",
    "Verified",
    "Version",
    "Versions",
    "Weighed",
    "blame",
    "compact",
    "content_hash",
    "describe",
    "diff",
    "enable",
    "forget",
    "gc",
    "open",
    "redo",
    "rename",
    "restore",
    "squash",
    "tag",
    "undo",
    "untag",
    "verify",
    "version",
    "versions",
]


# `h5cow` and `python -m h5cow` start without what follows: the modules are imported when the first of these names is asked for.
def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _enable, _errors, _files, _history

    for module in (_enable, _errors, _files, _history):
        globals().update({known: value for known, value in vars(module).items() if known in __all__})
    return globals()[name]


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__})
