"""Options of the connector as keyword arguments: checked here as the connector checks them, and written as it reads them.

docs/options.md says what they mean; test/test_package.py holds this file to the connector.
"""

from __future__ import annotations

import datetime
import operator
import os
import re
from typing import Any, Callable, Mapping, Optional, Union

from ._errors import OptionError

Revision = Union[str, int, datetime.datetime, "Numbered"]
"""A version: its name, its number (-1 is the newest), a time, `#N`, `~N`, `{DATE}`, or what `versions()` returned."""


class Numbered:
    """What has the number of a version."""

    number: int


def revision(at: Revision) -> str:
    """The text behind the @ of FILE@REVISION."""
    if isinstance(at, Numbered):
        return f"#{at.number}"
    if isinstance(at, datetime.datetime):
        if at.tzinfo is not None:
            return f"{{{at.astimezone(datetime.timezone.utc).replace(tzinfo=None).isoformat()}Z}}"
        return f"{{{at.isoformat()}}}"
    if isinstance(at, str):
        return at
    if isinstance(at, bool) or not hasattr(at, "__index__"):
        raise OptionError(f"at={at!r}: a version is a str, an int or a datetime")
    number = operator.index(at)  # also one of numpy's
    if number == 0:
        raise OptionError("at=0: versions are numbered from 1; -1 is the newest")
    return f"#{number}" if number > 0 else f"~{-number - 1}"


def _size(key: str, text: str) -> int:
    """In bytes."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise OptionError(f"{key}={text!r}: it is no text, since it cannot be encoded as UTF-8") from None


def _at(value: Any) -> str:
    text = revision(value)
    if not re.fullmatch(r"[^/@\x00-\x1f\x7f]+", text) or text.startswith(".") or _size("at", text) > 64:
        raise OptionError(f"at={value!r}: allowed is the name of a version, #N, ~N, or {{DATE}} as in {{2026-01-31T12:00}}")
    return text


def _name(value: Any) -> str:
    if (
        not isinstance(value, str)
        or not re.fullmatch(r"[^/@.~#{\x00-\x1f\x7f][^/@\x00-\x1f\x7f]*", value)
        or _size("name", value) > 64
    ):
        raise OptionError(
            f"name={value!r}: allowed is 1 to 64 bytes without '/', '@' and control characters, not starting with '.', '~', "
            "'#' or '{'"
        )
    return value


def _message(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise OptionError(f"message={value!r}: allowed is any text without the character 0")
    try:
        os.fsencode(value)  # other bytes, as Python has them in names of files, are recorded as they are
    except UnicodeEncodeError:
        raise OptionError(f"message={value!r}: it is no text, since it cannot be encoded") from None
    return value


def _keep(value: Any) -> str:
    number = "(last|hourly|daily|weekly|monthly|yearly):[1-9][0-9]*"
    duration = "within:[0-9]+ *[a-zA-Z]+( *[0-9]+ *[a-zA-Z]+)*"
    if not isinstance(value, str) or not re.fullmatch(f"({number}|{duration})([,+]({number}|{duration}))*", value):
        raise OptionError(f"keep={value!r}: allowed is last:20, or daily:7,weekly:4,within:30d")
    return value


def _compress(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(
        r"none|blosc:(blosclz|lz4|lz4hc|zlib|zstd)(:[0-9](:(none|byte|bit))?)?|gzip(:[0-9](:(none|byte))?)?|lzf(:(none|byte))?",
        value,
    ):
        raise OptionError(
            f"compress={value!r}: allowed is none, blosc:CODEC[:LEVEL[:SHUFFLE]] with CODEC blosclz, lz4, lz4hc, zlib or zstd, "
            "gzip[:LEVEL[:SHUFFLE]], lzf[:SHUFFLE]; LEVEL 0 to 9; SHUFFLE none, byte, or with blosc bit"
        )
    return value


def _one_of(key: str, *words: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in words:
            raise OptionError(f"{key}={value!r}: allowed is {' or '.join(words)}")
        return str(value)

    return check


def _yes_or_no(value: Any) -> str:
    return _one_of("adopt", "yes", "no")({True: "yes", False: "no"}.get(value, value))


def _on_or_off(value: Any) -> str:
    return _one_of("protect", "on", "off")({True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value)


def _number(key: str, least: int, most: int, allowed: str) -> Callable[[Any], str]:
    units = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

    def check(value: Any) -> str:
        whole = hasattr(value, "__index__") and not isinstance(value, bool)  # also one of numpy's
        text = str(operator.index(value)) if whole else value if isinstance(value, str) else ""
        parts = re.fullmatch(r"([0-9]+)([KMGkmg]?)", text)
        if not parts or not least <= int(parts[1]) * units[parts[2].upper()] <= most:
            raise OptionError(f"{key}={value!r}: allowed is {allowed}")
        return text

    return check


def _pieces(value: Any) -> str:
    value = {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value
    if value in ("on", "off"):
        return str(value)
    return _number("pieces", 16, 1 << 30, "on, off, or bytes from 16 to 1G, with K, M or G for the unit")(value)


_CHECKS: Mapping[str, Callable[[Any], str]] = {
    "at": _at,
    "name": _name,
    "message": _message,
    "commit": _one_of("commit", "close", "flush"),
    "compress": _compress,
    "chunk": _number("chunk", 4 << 10, 1 << 30, "bytes from 4K to 1G, with K, M or G for the unit"),
    "cache": _number("cache", 0, 1 << 40, "bytes from 0 to 1024G, with K, M or G for the unit"),
    "memory": _number("memory", 1 << 10, 1 << 40, "bytes from 1K to 1024G, with K, M or G for the unit"),
    "pieces": _pieces,
    "threads": _number("threads", 1, 64, "1 to 64"),
    "sync": _one_of("sync", "full", "normal", "off"),
    "lock_timeout": _number("lock_timeout", 0, 86400, "seconds, 0 to 86400"),
    "adopt": _yes_or_no,
    "protect": _on_or_off,
    "truncate": _one_of("truncate", "keep", "discard"),
    "keep": _keep,
}


def _percent(text: str) -> str:
    """What ends a value, or is taken off its ends, as %XX."""
    inner = re.sub(r"[;%\x00-\x1f\x7f]", lambda c: f"%{ord(c[0]):02X}", text)
    return re.sub(r"^ +| +$", lambda spaces: "%20" * len(spaces[0]), inner)


def encode(options: Mapping[str, Any]) -> str:
    """OPTIONS as they stand behind the connector's name. None is as if it was not given."""
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in _CHECKS:
            raise OptionError(f"option {key!r} is unknown: there are {', '.join(_CHECKS)}")
    if "at" in given and ("name" in given or "message" in given):
        raise OptionError("at opens a version that exists, which is read-only; name and message are for the version to be made")
    if "name" in given and given.get("commit") == "flush":
        raise OptionError("name and commit='flush': every flush would make a version of that one name")
    return ";".join(f"{key}={_percent(_CHECKS[key](value))}" for key, value in given.items())


def selected(variable: Optional[str]) -> Optional[str]:
    """The options in VARIABLE, a value of HDF5_VOL_CONNECTOR; None: it selects no h5cow."""
    words = (variable or "").split(None, 1)
    if not words or words[0] != "h5cow":
        return None
    return words[1].strip() if len(words) > 1 else ""


def override(text: str, options: Mapping[str, Any], drop: tuple[str, ...] = ()) -> str:
    """TEXT, encoded options, with OPTIONS in the place of those of the same key, and without the keys DROP."""
    gone = {*drop, *(key for key, value in options.items() if value is not None)}
    kept = [part for part in text.split(";") if part.strip() and part.split("=", 1)[0].strip() not in gone]
    return ";".join([*kept, *filter(None, [encode(options)])])
