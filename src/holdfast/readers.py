"""How a setting is read: a file of settings, and a value by the type of its setting.  Part of ``config``; docs/agent.md.

A file and an API say numbers, the environment and flags say texts: both mean the same. What a reader cannot read it raises a plain
``ValueError`` or ``TypeError`` for; ``config`` knows the setting's name and where the value came from, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.errors import ConfigError

FILE_BYTES_MAX = 256 * 1024  # whoever names a log by mistake gets an answer, not a full memory
YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def read_file(path: Path) -> dict[str, Any]:
    """A flat table of TOML. Raises ``ConfigError`` naming the file."""
    import tomllib

    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise ConfigError(f"{path}: more than {FILE_BYTES_MAX} bytes; this is no file of settings")
        return tomllib.loads(content.decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = _text(value).strip().lower()
    if word not in YES + NO:
        raise ValueError
    return word in YES


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool | float):
        raise TypeError
    return int(value)


def _mode(value: Any) -> int:
    return int(value, 8) if isinstance(value, str) else _whole(value)


def _list(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if isinstance(parts, Mapping):
        raise TypeError
    return tuple(word for part in parts if (word := _text(part).strip()))


def _table(value: Any) -> dict[str, str]:
    if isinstance(value, str):
        value = dict(part.split("=", 1) for part in value.split(",") if part.strip())
    return {name.strip(): _text(text).strip() for name, text in value.items()}


READERS = {
    "str": ("text", _text),
    "bool": ("true or false", _flag),
    "float": ("a number", _number),
    "int": ("a whole number", _whole),
    "mode": ("permission bits, such as 0600", _mode),
    "tuple": ("a list of texts, in one text with commas", _list),
    "table": ("a table of texts, in one text as name=value,name=value", _table),
}
