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
    forgotten: bool = False
    """Nothing else is left of it: `versions(file, forgotten=True)` tells such ones as well."""


class Versions(List[Version]):
    """Versions, the oldest first. A notebook shows them as a table."""

    def _repr_html_(self) -> str:
        titles = ("version", "#", "time", "user", "added", "changed", "program", "message")
        lines = ["<table>", f"<tr>{''.join(f'<th>{title}</th>' for title in titles)}</tr>"]
        for v in self:
            marks = " (open)" * v.open + " (incomplete)" * bool(v.incomplete) + " (forgotten)" * v.forgotten
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
        forgotten=row.get("forgotten", False),
    )


def versions(file: Path, *, forgotten: bool = False) -> Versions:
    """The versions of FILE, the oldest first, so that `versions(file)[-1]` is the newest. FORGOTTEN: and those that are gone.

    FILE may be open, here or in another program: what is told is committed. Raises `Error` where it has no history.
    """
    rows, _ = ask("log", os.fspath(file), options=["--all"] * forgotten)
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
    since: Optional[str] = None
    """The name of the version since which everything was checked; None: all was."""

    @property
    def damaged(self) -> bool:
        return bool(self.damage)


def verify(file: Path, since: Optional[Revision] = None) -> Verified:
    """Check every stored chunk of FILE and everything that names it. Nothing is changed.

    SINCE: only what was stored since that version, which was verified before. What older versions alone have is not looked at.
    """
    options = [] if since is None else [f"--since={revision(since)}"]
    found, _ = ask("verify", os.fspath(file), options=options)
    return Verified(
        damage=tuple(Damage(one["what"], one) for one in found["damage"]),
        incomplete=found["incomplete"],
        checked=found["checked"],
        seconds=found["seconds"],
        since=found["since"],
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


@dataclass(frozen=True)
class Collected:
    """What `gc()` made free, or would."""

    chunks: int
    bytes: int
    """What these took in the file."""
    holes: Optional[int]
    """Bytes given back to the file system; None: nobody knows yet (dry_run)."""


def _collected(told: Any) -> Collected:
    return Collected(told["chunks"], told["bytes"], told["holes"])


@dataclass(frozen=True)
class Weighed(Numbered):
    """A version that `forget()` and `squash()` decided about."""

    number: int
    name: str
    time: datetime.datetime
    forget: bool
    """It goes, or would (dry_run)."""
    reasons: Tuple[str, ...]
    """Why it stays: "newest", "tag NAME", "named", "last", "hourly" ... "within"."""
    alone: int
    """Bytes of chunks that no other version has, and not the newest state."""
    frees: int
    """Bytes that are free once it is gone, and the older ones that go; 0 where it stays."""


@dataclass(frozen=True)
class Forgotten:
    """What `forget()` and `squash()` did, or would do."""

    versions: Tuple[Weighed, ...]
    """The oldest first: under a policy all that were there, else those that go."""
    forgotten: int
    """How many go."""
    frees: int
    """Bytes of chunks that nothing but these has."""
    collected: Optional[Collected]
    """What `gc=True` made free."""


def _forgotten(verb: str, *arguments: str, options: Sequence[str]) -> Forgotten:
    told, _ = ask(verb, *arguments, options=options)
    if told["trouble"] is not None:
        raise Error(f"what would be freed cannot be told: {told['trouble']}")
    weighed = (
        Weighed(
            one["number"], one["name"], _time(one["time_us"]), one["forget"], tuple(one["reasons"]), one["alone"],
            one["frees"],
        )
        for one in told["versions"]
    )
    collected = None if told["collected"] is None else _collected(told["collected"])
    return Forgotten(tuple(weighed), told["forgotten"], told["frees"], collected)


def _several(given: Union[Revision, Sequence[Revision]]) -> Sequence[Revision]:
    """One that stands alone is one: "12" is not "1" and "2"."""
    return [given] if isinstance(given, (str, int, datetime.datetime, Numbered)) else given


def forget(
    file: Path,
    revisions: Sequence[Revision] = (),
    *,
    keep_last: Optional[int] = None,
    keep_hourly: Optional[int] = None,
    keep_daily: Optional[int] = None,
    keep_weekly: Optional[int] = None,
    keep_monthly: Optional[int] = None,
    keep_yearly: Optional[int] = None,
    keep_within: Optional[str] = None,
    keep_tags: Sequence[str] = (),
    keep: Sequence[Revision] = (),
    dry_run: bool = False,
    gc: bool = False,
) -> Forgotten:
    """Let versions of FILE go, for good: REVISIONS, or all that no rule keeps. Others stay as they are.

    KEEP_LAST keeps the newest so many, KEEP_HOURLY and so on the newest version of each of the last so many hours, days ... in which
    there are some, KEEP_WITHIN ("2y5m7d3h") those not older than the newest by that, KEEP versions by name. The newest one and those
    with tags always stay; to name one of them is an `Error`. GC: make free what is not needed any more.
    """
    counts = {
        "last": keep_last,
        "hourly": keep_hourly,
        "daily": keep_daily,
        "weekly": keep_weekly,
        "monthly": keep_monthly,
        "yearly": keep_yearly,
        "within": keep_within,
    }
    options = [f"--keep-{rule}={value}" for rule, value in counts.items() if value is not None]
    options += [f"--keep-tag={name}" for name in _several(keep_tags)]
    options += [f"--keep={revision(one)}" for one in _several(keep)]
    options += ["--dry-run"] * dry_run + ["--gc"] * gc
    return _forgotten("forget", os.fspath(file), *(str(revision(one)) for one in _several(revisions)), options=options)


def squash(file: Path, first: Revision, last: Revision, *, dry_run: bool = False) -> Forgotten:
    """Make one version of those from FIRST to LAST: LAST stays, with all that they changed; the others go, for good."""
    options = ["--dry-run"] * dry_run
    return _forgotten("squash", os.fspath(file), f"{revision(first)}..{revision(last)}", options=options)


def gc(file: Path, *, dry_run: bool = False) -> Collected:
    """Make free what neither a version of FILE nor its newest state needs, as after `forget()`."""
    told, _ = ask("gc", os.fspath(file), options=["--dry-run"] * dry_run)
    return _collected(told)


@dataclass(frozen=True)
class Compacted:
    """What `compact()` did, or would do."""

    before: int
    """Bytes of the file."""
    after: int


def compact(file: Path, *, dry_run: bool = False) -> Compacted:
    """Write FILE anew, as small as it can be, with all its versions. FILE must not be open for writing, and there must be room for both."""
    told, _ = ask("gc", os.fspath(file), options=["--compact"] + ["--dry-run"] * dry_run)
    return Compacted(told["bytes_before"], told["bytes_after"])
