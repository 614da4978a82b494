"""What the agent process is told when it starts, and what it tells the process that started it.

``python -m holdfast.agent [--settings-fd N] [--ready-fd M] [--log-fd L] [--parent PID] [--check]``. The settings come as one JSON object
through a descriptor, so that no key is ever in an argument list; ``config`` in it names a TOML file. On the second descriptor goes one
JSON line: where the local socket is, or why there is none. The third is for the log, as JSON: a program reads its agent's lines there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from holdfast.config import ARGUMENTS, FLAGS, Config, load_with_sources
from holdfast.errors import ConfigError, shown

SETTINGS_BYTES_MAX = 1 << 20
CONFIG_VARIABLE = "HOLDFAST_CONFIG"
USAGE = "accepted are --settings-fd N, --ready-fd M, --log-fd L, --parent PID and --check"


class Options(NamedTuple):
    """The words after ``python -m holdfast.agent``."""

    settings_fd: int | None = None
    ready_fd: int | None = None
    parent: int | None = None
    check: bool = False
    log_fd: int | None = None


class Settings(NamedTuple):
    """Where the settings come from; kept, because SIGHUP asks again."""

    path: str | None
    environ: Mapping[str, str]
    overrides: Mapping[str, Any]
    source: str = FLAGS  # what the overrides are

    def load(self) -> tuple[Config, dict[str, str]]:
        return load_with_sources(self.path, self.environ, self.overrides, source=self.source)


def parse(words: Sequence[str]) -> Options:
    """By hand: a parser of arguments costs as much memory as a membership."""
    found: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        field = word.removeprefix("--").replace("-", "_")
        if word == "--check":
            found["check"] = True
        elif word.startswith("--") and field in Options._fields and rest and rest[0].isascii() and rest[0].isdigit():
            found[field] = int(rest.pop(0))
        else:
            raise ConfigError(f"{shown(word)}: {USAGE}")
    return Options(**found)


def read_settings(options: Options, environ: Mapping[str, str]) -> Settings:
    overrides: dict[str, Any] = {}
    if options.settings_fd is not None:
        overrides = _object(_content(options.settings_fd))
    path = overrides.pop("config", None) or environ.get(CONFIG_VARIABLE) or None
    if path is not None and not isinstance(path, str):
        raise ConfigError(f"config: {shown(path)}; accepted is the path of a TOML file")
    return Settings(path, dict(environ), overrides, FLAGS if options.parent is None else ARGUMENTS)


class Ready:
    """Tells the process that started this one how it went, once."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    def tell(self, **fields: Any) -> None:
        if self._fd is None:
            return
        fd, self._fd = self._fd, None
        with suppress(OSError):  # The process that wanted to know is gone.
            os.write(fd, msgspec.json.encode(fields) + b"\n")
            os.close(fd)


def _content(fd: int) -> bytes:
    with suppress(OSError):
        os.lseek(fd, 0, os.SEEK_SET)  # A file in memory stands where its writer stopped; a pipe has no place.
    content = b""
    try:
        while len(content) <= SETTINGS_BYTES_MAX and (data := os.read(fd, 65536)):
            content += data
        os.close(fd)
    except OSError as error:
        raise ConfigError(f"--settings-fd {fd}: {error.strerror}") from None
    return content


def _object(content: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ConfigError("--settings-fd: accepted is one JSON object of settings") from None
