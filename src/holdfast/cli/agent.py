"""``holdfast agent``: reads the flags and becomes the agent process.

Every setting is a flag of the same name (docs/agent.md), except the key, which no list of processes shall show. The values travel as text,
through a file in memory, to the one place where settings are read; this process then turns into the agent, so that its pid is the
agent's and nothing of the command line stays in memory.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, NoReturn

import msgspec

from holdfast.agent.feature import features
from holdfast.agent.observe.http_extra import check_http
from holdfast.cli.options import JSON
from holdfast.cli.parser import Flag
from holdfast.cli.show import print_json, print_table, shown
from holdfast.config import DEFAULTS, SETTINGS, load_with_sources

NOT_A_FLAG = ("key",)
HELP = {name: (setting.text, setting.metavar) for name, setting in SETTINGS.items() if name not in NOT_A_FLAG}


def agent(
    *,
    config: Annotated[str, Flag("--config", help="Settings from this file (default: HOLDFAST_CONFIG).", metavar="FILE")] = "",
    check: Annotated[bool, Flag("--check", help="Only say whether the settings are fine, and where each comes from.")] = False,
    as_json: Annotated[bool, JSON] = False,
    **flags: Any,
) -> None:
    """Run an agent: a member of a group. Settings: flags, then HOLDFAST_*, then --config FILE, then the preset."""
    overrides = {name: _joined(value) for name, value in flags.items() if value}
    if check:
        _check(config or os.environ.get("HOLDFAST_CONFIG", ""), overrides, as_json=as_json)
    else:
        _become({**overrides, "config": config} if config else overrides)


def _joined(value: Any) -> Any:
    """A list may be spelled with commas or by repeating the flag."""
    return ",".join(value) if isinstance(value, tuple) else value


def _check(path: str, overrides: dict[str, Any], *, as_json: bool) -> None:
    settings, sources = load_with_sources(path or None, os.environ, overrides)
    if settings.http:
        check_http()
    would = [line for feature in features() for line in feature.would(settings)]
    values = {**settings.shown(), "socket_mode": f"{settings.socket_mode:04o}"}
    if as_json:
        print_json({"settings": values, "sources": sources, "would": would})
        return
    rows = [(name, _text(value), sources.get(name, "default")) for name, value in values.items()]
    print_table(("SETTING", "VALUE", "FROM"), rows)
    for line in would:
        print(shown(line))


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={text}" for name, text in value.items())
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _become(settings: dict[str, Any]) -> NoReturn:
    memory = os.memfd_create("holdfast-settings", 0)  # 0: the agent inherits it
    os.write(memory, msgspec.json.encode(settings))
    # -P: a folder called like one of our modules, in the current directory, is not imported.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "holdfast.agent", "--settings-fd", str(memory)])


def _declare() -> None:
    """One flag for each setting, as ``cli.parser`` reads it."""
    defaults = agent.__kwdefaults__
    assert defaults is not None
    del agent.__annotations__["flags"]
    for name, default in DEFAULTS.items():
        if name in NOT_A_FLAG:
            continue
        text, metavar = HELP[name]
        kind: Any = tuple[str, ...] if isinstance(default, tuple | dict) else bool if isinstance(default, bool) else str
        agent.__annotations__[name] = Annotated[kind, Flag(f"--{name.replace('_', '-')}", help=text, metavar=metavar)]
        defaults[name] = () if isinstance(default, tuple | dict) else False if isinstance(default, bool) else ""


_declare()
