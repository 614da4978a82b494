"""What a program may say: every argument of the public API is checked here, before anything is sent.  docs/client.md (what can go wrong).

A wrong argument costs one ``ConfigError`` that names the field, what it was and what is accepted. It never reaches the agent, so the
connection, and with it everything that is held, stays. The limits are those of the protocols; a test compares them. What only one feature
accepts is checked in the feature's folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from math import isfinite
from pathlib import Path
from typing import Any

from holdfast.config import TAG_NAME, check_tags
from holdfast.errors import ConfigError, shown

KEY_BYTES_MAX = 4096  # of a key: the agent hashes it
CALL_SECONDS_MAX = 3600.0  # that an agent waits for a peer
SECONDS_MAX = 366 * 86_400.0  # a year: who waits longer gives no limit

Seconds = float | timedelta


def seconds(value: Seconds, field: str, *, most: float = SECONDS_MAX) -> float:
    """A duration as a float."""
    number = _number(value)
    if number is None or not 0 < number <= most:
        raise ConfigError(f"{field}: {shown(value)}; accepted is a positive number of seconds up to {most:g}, or a timedelta")
    return number


def limit(value: Seconds | None, field: str = "timeout") -> float | None:
    """How long to wait; None: for ever."""
    return None if value is None else seconds(value, field)


def patience(value: Seconds | None, field: str = "timeout") -> float | None:
    """The same of something that may be there already: 0 only looks."""
    return None if value is None else duration(value, field)


def duration(value: Seconds, field: str) -> float:
    """A duration that may be none at all. What is too long for this group is the agent's to say: it knows the settings."""
    number = _number(value)
    if number is None or not 0 <= number <= SECONDS_MAX:
        raise ConfigError(f"{field}: {shown(value)}; accepted are 0 or more seconds, up to {SECONDS_MAX:g}, or a timedelta")
    return number


def flag(value: bool, field: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{field}: {shown(value)}; accepted are True and False")
    return value


def name(value: str, field: str, bytes_max: int) -> str:
    """Of something that can be asked for."""
    if not isinstance(value, str) or not value.isprintable() or not 1 <= len(value.encode()) <= bytes_max:
        raise ConfigError(f"{field}: {shown(value)}; accepted are 1 to {bytes_max} bytes of printable text")  # half a surrogate is none
    return value


def text(value: str, field: str) -> str:
    """To look something up by: what nothing is called is simply not found."""
    if not isinstance(value, str):
        raise ConfigError(f"{field}: {shown(value)}; accepted is text")
    return value


def key(value: str | bytes) -> bytes:
    """Whose owner is asked for."""
    data = utf8(value) if isinstance(value, str) else value
    if not isinstance(data, bytes):
        raise ConfigError(f"key: {shown(value)}; accepted are texts and bytes")
    if len(data) > KEY_BYTES_MAX:
        raise ConfigError(f"key: {len(data)} bytes; accepted are up to {KEY_BYTES_MAX}")
    return data


def payload(data: bytes | bytearray | memoryview, bytes_max: int) -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ConfigError(f"data: a {type(data).__name__}; accepted are bytes")
    size = data.nbytes if isinstance(data, memoryview) else len(data)
    if size > bytes_max:
        raise ConfigError(f"data: {size} bytes; accepted are up to {bytes_max}: send where it can be fetched instead")
    return bytes(data)


def tags(given: Mapping[str, str | None] | None, more: Mapping[str, str | None]) -> dict[str, str | None]:
    """Some tags to change; None removes one. How many there may be in all is the agent's to say: it knows the others."""
    merged = {**table(given, "tags", "texts, or None to remove a tag"), **more}
    for tag, value in merged.items():
        if not isinstance(tag, str) or not TAG_NAME.fullmatch(tag):
            raise ConfigError(f"tags: {shown(tag)} is no name of a tag; accepted are 1 to 32 of A-Z a-z 0-9 _ . -")
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"tags: the value {shown(value)} of {shown(tag)}; accepted is text, or None to remove the tag")
    check_tags({tag: value for tag, value in merged.items() if value is not None})
    return merged


def first_tags(given: Mapping[str, str] | None) -> dict[str, str]:
    """Those of ``join``."""
    found = table(given, "tags", "texts")
    for tag, value in found.items():
        if not isinstance(tag, str) or not isinstance(value, str):
            raise ConfigError(f"tags: the value {shown(value)} of {shown(tag)}; accepted is a table of texts")
    check_tags(found)
    return found


# The arguments of ``join``.


def group(value: str | None) -> str:
    """Empty if none was given: then file and environment decide."""
    if value is None:
        return ""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ConfigError(f"group: {shown(value)}; accepted is printable text that is not empty, or none for the default")
    return value


def setting(value: str, field: str) -> str:
    """Empty: file and environment decide. What an agent accepts is checked with all other settings."""
    if not isinstance(value, str) or not value.isprintable():
        raise ConfigError(f"{field}: {shown(value)}; accepted is printable text")
    return value


def path(value: str | Path | None, field: str) -> str:
    """Empty if none was given."""
    try:
        found = "" if value is None else os.fspath(value)
        if isinstance(found, str) and "\0" not in found:
            os.fsencode(found)
            return found
    except (TypeError, UnicodeEncodeError):
        pass
    raise ConfigError(f"{field}: {shown(value)}; accepted is a path")


def addresses(value: Sequence[str], field: str) -> list[str]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence | set | frozenset):
        raise ConfigError(f'{field}: {shown(value)}; accepted is a list of texts such as ["10.0.0.5:7946"]')
    found = sorted(value, key=str) if isinstance(value, set | frozenset) else list(value)
    if not all(isinstance(each, str) and each.isprintable() for each in found):
        raise ConfigError(f'{field}: {shown(value)}; accepted is a list of texts such as ["10.0.0.5:7946"]')
    return found


def group_key(value: str | bytes | None) -> str | bytes | None:
    """An empty one is an error: a variable that is not set must not become a group without a key. It is not repeated."""
    if value is None:
        return None
    if not isinstance(value, str | bytes) or not value or (isinstance(value, str) and utf8(value) is None):
        kind = type(value).__name__ if not isinstance(value, str | bytes) else "empty, or no text"
        raise ConfigError(f"key: {kind}; accepted are the text that `holdfast keys generate` prints, 32 bytes, or None")
    return value


def _number(value: Any) -> float | None:
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    try:
        return float(number) if isfinite(number) else None
    except OverflowError:
        return None


def utf8(value: str) -> bytes | None:
    """None if it is no text that can be written."""
    try:
        return value.encode()
    except UnicodeEncodeError:  # half a surrogate
        return None


def table(value: Any, field: str, of: str) -> dict[Any, Any]:
    """A copy; empty if none was given."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{field}: {shown(value)}; accepted is a table of {of}")
    return dict(value)
