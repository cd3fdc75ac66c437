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

    with h5cow.version("t.h5", name="calibrated") as f:   # one version, or none at all when the block fails
        f["x"][()] = 2

The rest is told by the command: `python -m h5cow --help`.
"""

from ._enable import Enabled, enable
from ._errors import Error, OptionError, TooLate, TooLateWarning
from ._files import open, version
from ._history import (
    Change,
    Changes,
    Damage,
    Lack,
    Part,
    Restored,
    Verified,
    Version,
    Versions,
    blame,
    content_hash,
    describe,
    diff,
    redo,
    rename,
    restore,
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
    "Damage",
    "Enabled",
    "Error",
    "Lack",
    "OptionError",
    "Part",
    "Restored",
    "TooLate",
    "TooLateWarning",
    "Verified",
    "Version",
    "Versions",
    "blame",
    "content_hash",
    "describe",
    "diff",
    "enable",
    "open",
    "redo",
    "rename",
    "restore",
    "tag",
    "undo",
    "untag",
    "verify",
    "version",
    "versions",
]
