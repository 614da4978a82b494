"""Loading settings: a flag beats the environment, that beats the file, that the preset, that the default.  docs/agent.md lists them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.config.readers import READERS, read_file, unknown
from holdfast.config.settings import DEFAULTS, HIDDEN, TABLES, Config
from holdfast.errors import ConfigError, shown

ENVIRONMENT = "HOLDFAST_"
FLAGS, ARGUMENTS = "flags", "arguments"  # where settings may come from beside file and environment


def load(path: str | Path | None = None, environ: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None) -> Config:
    """The settings of a TOML file, the environment and the flags, checked."""
    return load_with_sources(path, environ, overrides)[0]


def load_with_sources(
    path: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    source: str = FLAGS,
) -> tuple[Config, dict[str, str]]:
    """The same, and for each setting that was given, where. ``source`` says what the overrides are: FLAGS, or ARGUMENTS of a program."""
    found: dict[str, Any] = {}
    sources: dict[str, str] = {}
    file = {} if path is None else read_file(Path(path))
    for values, named in ((file, f"{path}"), (_of_environ(environ or {}), ""), (overrides or {}, source)):
        given = {field: value for field, value in values.items() if value is not None}  # else a flag that was not given
        for one, other in (("key", "key_file"), ("key_file", "key")):
            if given.get(one) and not given.get(other):  # Two spellings of one setting: the later source says which key it is.
                found.pop(other, None)
                sources.pop(other, None)
        for field, value in given.items():
            where = named or ENVIRONMENT + field.upper()
            found[field] = _read(field, value, where)
            sources[field] = where
    config = Config(**found)
    try:
        config.check()
    except ConfigError as error:
        field = str(error).partition(":")[0].split(" ")[0]
        if field not in sources:
            raise
        raise type(error)(f"{error}{_origin(sources[field])}") from None
    return config, sources


def _of_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Other variables that begin alike may belong to another program; ``unknown_variables`` names those that do not."""
    names = {ENVIRONMENT + field.upper(): field for field in DEFAULTS}
    return {names[variable]: value for variable, value in environ.items() if variable in names}


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """One line for each variable that looks like a setting and is none, with the nearest name: a typing error is not a default."""
    given = [variable for table in TABLES for variable in table.given_variables()]
    return unknown(environ, ENVIRONMENT, [field.upper() for field in DEFAULTS], given)


def _origin(where: str, word: str = "from") -> str:
    """The author of an argument knows where it is."""
    return "" if where == ARGUMENTS else f" ({word} {where})"


def _read(field: str, value: Any, where: str) -> Any:
    default = DEFAULTS.get(field)
    if default is None:
        raise ConfigError(f"{shown(field)[1:-1]}: no such setting{_origin(where, 'in')}; accepted are {', '.join(DEFAULTS)}")
    accepted, reader = READERS[_kind(field, default)]
    try:
        return reader(value)
    except (ValueError, TypeError, AttributeError):
        told = HIDDEN if field == "key" else shown(value)
        raise ConfigError(f"{field}: {told}; accepted is {accepted}{_origin(where)}") from None


def _kind(field: str, default: Any) -> str:
    return "mode" if field == "socket_mode" else "table" if field == "tags" else type(default).__name__
