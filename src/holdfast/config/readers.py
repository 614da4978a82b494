"""How a setting is read: a file of settings, and a value by the type of its setting.  Part of ``config``; docs/agent.md.

A file and an API say numbers, the environment and flags say texts: both mean the same. What a reader cannot read it raises a plain
``ValueError`` or ``TypeError`` for; ``config`` knows the setting's name and where the value came from, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import ConfigError, shown

FILE_BYTES_MAX = 256 * 1024  # a user who names a log by mistake gets an answer, not a full memory
OTHER_VARIABLES = ("AGENT", "CONFIG", "RUNTIME_DIR", "HOLD", "TOKEN", "RUN")  # ours, and no settings; `run` sets the last three
# Kubernetes makes such variables for a service of that name, and its *_PORT are addresses with a protocol.
OF_KUBERNETES = re.compile(r"HOLDFAST(_\w+)?_(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)")
UNKNOWN_MAX = 16  # variables that are named one by one
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


def unknown(environ: Mapping[str, str], prefix: str, settings: Sequence[str], given: Sequence[str]) -> list[str]:
    """One line for each variable that begins with the prefix and is neither a setting, nor given by `run`, nor one of the others."""
    known = [*(prefix + name for name in (*settings, *OTHER_VARIABLES)), *given]
    odd = sorted(name for name in environ if name.startswith(prefix) and name not in known and not _is_foreign(name, environ[name]))
    if not odd:
        return []
    from difflib import get_close_matches

    lines = []
    for name in odd[:UNKNOWN_MAX]:
        near = get_close_matches(name, known, 1)
        advice = f"did you mean {near[0]}?" if near else "`holdfast agent --check` lists the settings"
        lines.append(f"{shown(name)[1:-1]}: is no setting and changes nothing; {advice}")
    return lines


def _is_foreign(name: str, value: str) -> bool:
    return OF_KUBERNETES.fullmatch(name) is not None or (name.endswith("_PORT") and value.startswith(("tcp://", "udp://", "sctp://")))


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
