"""What a file's history is, as the command tells it."""

from __future__ import annotations

import datetime
import html
import os
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple, Union

from ._command import ask, tell
from ._errors import Error
from ._options import Numbered, Revision, revision

Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Lack:
    """Something that a version was made without."""

    path: Optional[str]
    """The object, None: not known."""
    reason: str


@dataclass(frozen=True)
class Version(Numbered):
    """What is recorded of a version."""

    number: int
    """1, 2, 3 ... in the order of commits."""
    name: str
    time: datetime.datetime
    """When it was committed, with zone: that of this machine."""
    message: str
    user: str
    host: str
    program: str
    """The command line."""
    parent: Optional[str]
    """The name of the version that it was made from."""
    size: int
    """Bytes by which the file grew."""
    chunks: int
    """Chunks that were stored anew."""
    changed: int
    """Objects that it has anew."""
    open: bool
    """Its program has not closed the file yet, or never did."""
    incomplete: Tuple[Lack, ...]
    """What it was made without; usually nothing."""
    hdf5: str
    """The versions of HDF5 and of h5cow that made it."""
    h5cow: str
    tags: Tuple[str, ...] = ()
    """Other names of it, as `versions()` tells them."""


class Versions(List[Version]):
    """Versions, the oldest first. A notebook shows them as a table."""

    def _repr_html_(self) -> str:
        titles = ("version", "#", "time", "user", "added", "changed", "program", "message")
        lines = ["<table>", f"<tr>{''.join(f'<th>{title}</th>' for title in titles)}</tr>"]
        for v in self:
            marks = " (open)" * v.open + " (incomplete)" * bool(v.incomplete)
            time = v.time.isoformat(" ", "seconds")
            cells = (v.name + marks, v.number, time, v.user, _bytes(v.size), v.changed, v.program, v.message)
            shown = "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells)
            lines.append(f"<tr>{shown}</tr>")
        return "\n".join([*lines, "</table>"])


def _bytes(number: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(number) < 1024:
            break
        number /= 1024
    else:
        unit = "TiB"
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"


def _time(microseconds: int) -> datetime.datetime:
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    try:
        return (start + datetime.timedelta(microseconds=microseconds)).astimezone()
    except (OverflowError, OSError, ValueError):  # a damaged log: what is nearest
        nearest = datetime.datetime.max if microseconds > 0 else datetime.datetime.min
        return nearest.replace(tzinfo=datetime.timezone.utc)


def _version(row: Any) -> Version:
    return Version(
        number=row["number"],
        name=row["name"],
        time=_time(row["time_us"]),
        message=row["message"],
        user=row["user"],
        host=row["host"],
        program=row["program"],
        parent=row["parent"],
        size=row["added"],
        chunks=row["chunks"],
        changed=row["changed"],
        open=row["open"],
        incomplete=tuple(Lack(lack["path"], lack["reason"]) for lack in row.get("incomplete", ())),
        hdf5=row["hdf5"],
        h5cow=row["h5cow"],
        tags=tuple(row.get("tags", ())),
    )


def versions(file: Path) -> Versions:
    """The versions of FILE, the oldest first, so that `versions(file)[-1]` is the newest.

    FILE may be open, here or in another program: what is told is committed. Raises `Error` where it has no history.
    """
    rows, _ = ask("log", os.fspath(file))
    return Versions(_version(row) for row in reversed(rows))


@dataclass(frozen=True)
class Damage:
    """One damaged place."""

    what: str
    details: Any
    """All that `h5cow verify --json` says of it: objects, versions, the newest older version that still has the data."""


@dataclass(frozen=True)
class Verified:
    """What `verify()` found."""

    damage: Tuple[Damage, ...]
    """Empty: the file is whole."""
    incomplete: Any
    """What versions were made without; that is no damage."""
    checked: Any
    """How many chunks, index nodes, objects ... were checked."""
    seconds: float

    @property
    def damaged(self) -> bool:
        return bool(self.damage)


def verify(file: Path) -> Verified:
    """Check every stored chunk of FILE and everything that names it. Nothing is changed."""
    found, _ = ask("verify", os.fspath(file))
    return Verified(
        damage=tuple(Damage(one["what"], one) for one in found["damage"]),
        incomplete=found["incomplete"],
        checked=found["checked"],
        seconds=found["seconds"],
    )


@dataclass(frozen=True)
class Change:
    """What differs of one object."""

    path: str
    change: str
    """"added", "removed", "changed" or "replaced"."""
    before: Optional[str]
    """What was there, where it is no more, as "dataset of float64 (10, 20)"; else None."""
    after: Optional[str]
    details: Any
    """All that `h5cow diff --json` says of it: type, shape, elements, attributes, comment, trouble."""


class Changes(List[Change]):
    """What differs between two states: empty, so false, where nothing does. A notebook shows it as a table."""

    def _repr_html_(self) -> str:
        lines = ["<table>", "<tr><th>object</th><th>change</th><th>what</th></tr>"]
        for c in self:
            what = " → ".join(text for text in (c.before, c.after) if text is not None) or ", ".join(
                key for key in c.details if key not in ("path", "change")
            )
            lines.append(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in (c.path, c.change, what))}</tr>")
        return "\n".join([*lines, "</table>"])


def _state(file: Path, at: Optional[Revision]) -> str:
    name = os.fspath(file)
    return name if at is None else f"{name}@{revision(at)}"


def diff(
    file: Path,
    before: Optional[Revision] = -2,
    after: Optional[Revision] = None,
    *,
    other: Optional[Path] = None,
    path: str = "/",
    values: int = 0,
    absolute: float = 0,
    relative: float = 0,
) -> Changes:
    """What the state AFTER of FILE has that BEFORE has not, and the other way round; None is the newest state.

    By default what the newest version changed. OTHER: the file of AFTER, if it is another one. PATH: only that object, and what is
    below it. VALUES: so many elements of each dataset are told with their values. ABSOLUTE, RELATIVE: numbers that are no
    farther apart count as equal. Raises `Error` where something of it cannot be read.
    """
    options = [f"--values={int(values)}"]
    options += [f"--absolute={float(absolute)!r}"] if absolute else []
    options += [f"--relative={float(relative)!r}"] if relative else []
    name = os.fspath(file)
    told, _ = ask("diff", _state(name, before), _state(name if other is None else other, after), path, options=options)
    changes = Changes(
        Change(one["path"], one["change"], one.get("before"), one.get("after"), one) for one in told["objects"]
    )
    for change in changes:
        for trouble in change.details.get("trouble", ()):
            raise Error(f"{change.path}: {trouble}")
    return changes


@dataclass(frozen=True)
class Part:
    """A part of a dataset that one version wrote."""

    first: Tuple[int, ...]
    """Position of its first element; of its last one, or of the first element of its last chunk."""
    last: Tuple[int, ...]
    elements: Optional[int]
    """How many it has, or how many chunks; the other is None."""
    chunks: Optional[int]
    version: Version


def blame(
    file: Path,
    path: str,
    at: Optional[Revision] = None,
    *,
    start: Optional[Sequence[int]] = None,
    count: Optional[Sequence[int]] = None,
) -> List[Part]:
    """Which version wrote what the dataset PATH of FILE holds, in the newest state or AT a version.

    By chunks; with START or COUNT by the elements of that box. Parts are in row-major order.
    """
    options = [
        f"--{name}={','.join(str(int(n)) for n in numbers)}"
        for name, numbers in (("start", start), ("count", count))
        if numbers is not None
    ]
    told, _ = ask("blame", _state(file, at), path, options=options)
    return [
        Part(tuple(one["first"]), tuple(one["last"]), one.get("elements"), one.get("chunks"), _version(one["version"]))
        for one in told
    ]


def content_hash(file: Path, at: Optional[Revision] = None, path: str = "/") -> str:
    """The SHA-256 of what FILE holds in the newest state or AT a version, or of the object PATH and what is below it.

    64 hexadecimal digits that do not depend on how it is stored: two states with the same hash hold the same.
    """
    told, _ = ask("hash", _state(file, at), path)
    return str(told["hash"])


@dataclass(frozen=True)
class Restored:
    """What `restore()`, `undo()` and `redo()` did, or would do."""

    version: Optional[int]
    """The number of the version that was made; None: nothing differed, or nothing was done (dry_run)."""
    restored: str
    """The name of the version that the file is as."""
    changes: Tuple[Tuple[str, str], ...]
    """Paths, and what became of them: "added", "removed", "replaced" or "changed"."""


def _restored(verb: str, *arguments: str, message: Optional[str], dry_run: bool, force: bool = False) -> Restored:
    options = [] if message is None else [f"--message={message}"]
    options += ["--dry-run"] * dry_run + ["--force"] * force
    told, _ = ask(verb, *arguments, options=options)
    return Restored(told["version"], told["restored"], tuple((one["path"], one["change"]) for one in told["changes"]))


def restore(
    file: Path,
    at: Revision,
    *paths: str,
    message: Optional[str] = None,
    dry_run: bool = False,
    force: bool = False,
) -> Restored:
    """Make FILE, or the objects PATHS of it, as they were AT a version: a new version, without copying data.

    FORCE: also where that version is incomplete, or the file has what no version has, which is lost then. Raises `Error` where it
    cannot be done; then nothing has changed. FILE must not be open for writing, here or elsewhere.
    """
    return _restored("restore", _state(file, at), *paths, message=message, dry_run=dry_run, force=force)


def undo(file: Path, *, message: Optional[str] = None, dry_run: bool = False) -> Restored:
    """Make FILE as it was before its newest version; once more goes back one more. `redo()` takes it back."""
    return _restored("undo", os.fspath(file), message=message, dry_run=dry_run)


def redo(file: Path, *, message: Optional[str] = None, dry_run: bool = False) -> Restored:
    """Take back the last `undo()` of FILE."""
    return _restored("redo", os.fspath(file), message=message, dry_run=dry_run)


def tag(file: Path, at: Revision, name: str, *, move: bool = False) -> None:
    """Let NAME name the version AT of FILE as well. MOVE: it may be the tag of another version so far."""
    tell("tag", _state(file, at), name, options=["--force"] * move)


def untag(file: Path, name: str) -> None:
    """Remove a tag; its version stays."""
    tell("tag", os.fspath(file), name, options=["--delete"])


def rename(file: Path, at: Revision, name: str) -> None:
    """Call the version AT of FILE NAME from now on. Its number and its tags stay."""
    tell("rename", _state(file, at), name)


def describe(file: Path, at: Revision, message: str) -> None:
    """Change the message of the version AT of FILE. `h5cow log --operations` tells the one before."""
    tell("describe", _state(file, at), message)
