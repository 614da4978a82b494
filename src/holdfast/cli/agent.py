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

from holdfast.agent.observe.http_extra import check_http
from holdfast.cli.options import JSON
from holdfast.cli.show import print_json, print_table
from holdfast.cli.words import Flag
from holdfast.config import DEFAULTS, load_with_sources

NOT_A_FLAG = ("key",)
HELP = {
    "group": ("Everybody who shares this name and a key is one group.", "NAME"),
    "name": ("Name of this agent, unique in the group (default: drawn once, kept in the state directory).", "NAME"),
    "bind": ("Where to listen, UDP and TCP; port 0 takes a free one.", "HOST:PORT"),
    "advertise": ("Where others reach it, if not at --bind.", "HOST:PORT"),
    "seeds": ("Where to knock, the same list everywhere; several with commas, or repeated.", "HOST:PORT,..."),
    "seats": ("The 1, 3 or 5 agents that remember (default: the first seeds).", "NAME@HOST:PORT,..."),
    "key_file": ("The group's key; `holdfast keys generate -o FILE` makes one.", "FILE"),
    "insecure": ("No key beyond loopback: everybody may read and join.", None),
    "state_dir": ("What must survive a restart; a seat needs one.", "DIR"),
    "preset": ("Timing: lan, wan or local.", "PRESET"),
    "lease": ("T_l of the ring, seconds; a crash is decided about one later.", "SECONDS"),
    "arbitration": ("T_a of the ring, seconds.", "SECONDS"),
    "heartbeat": ("t_itv of leaders, seconds.", "SECONDS"),
    "ticket_lease": ("D of tickets, seconds.", "SECONDS"),
    "ticket_round": ("T of tickets, seconds.", "SECONDS"),
    "ticket_guardians": ("Who keeps tickets: seats, or ring, the paper's placement: loses some when many agents die.", "PLACE"),
    "ticket_k": ("Of a ticket's guardians so many may be lost, 0 to 3; only with --ticket-guardians ring (default: 2).", "N"),
    "longest_grant": ("No promise of a seat is longer; a fresh seat waits so long once, seconds.", "SECONDS"),
    "k": ("Neighbours per side on the ring.", "N"),
    "rho": ("How far the rates of two clocks may differ from true time.", "SHARE"),
    "margin": ("Added to every wait for somebody else's deadline, seconds.", "SECONDS"),
    "tags": ("What this agent says about itself; several with commas, or repeated.", "NAME=VALUE,..."),
    "socket": ("Path of the local socket (default: of the group, in the runtime directory).", "PATH"),
    "socket_mode": ("Permissions of the local socket.", "OCTAL"),
    "http": ("Serve the page, /v1 and /metrics there.", "HOST:PORT"),
    "http_token_file": ("The bearer token that changing calls need.", "FILE"),
    "log_level": ("debug, info, warning or error.", "LEVEL"),
    "log_format": ("auto (text in a terminal, JSON elsewhere), json or text.", "FORMAT"),
    "membership": ("How members are found: ring.", "KIND"),
    "moved": ("The state directory was moved here from another machine, on purpose.", None),
}


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
    values = {**settings.shown(), "socket_mode": f"{settings.socket_mode:04o}"}
    if as_json:
        print_json({"settings": values, "sources": sources})
        return
    rows = [(name, _text(value), sources.get(name, "default")) for name, value in values.items()]
    print_table(("SETTING", "VALUE", "FROM"), rows)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={text}" for name, text in value.items())
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _become(settings: dict[str, Any]) -> NoReturn:
    memory = os.memfd_create("holdfast-settings", 0)  # 0: the agent inherits it
    os.write(memory, msgspec.json.encode(settings))
    # -P: a folder called like one of our modules, where somebody happens to stand, is not imported.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "holdfast.agent", "--settings-fd", str(memory)])


def _declare() -> None:
    """One flag for each setting, as ``cli.words`` reads it."""
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
