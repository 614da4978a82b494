"""Where the pins find what they write down: the one file of this folder that knows modules, so a move edits one line here.

Everything else in ``tests/pins`` asks this file. What lies in the spine (``host``, ``node``, ``events``, ``errors``) and the public modules
keeps its place; messages, facts and calls are found by their base class, wherever they are defined.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer.main import get_command

from holdfast import config as settings
from holdfast.agent.life import exits as agent_exits
from holdfast.agent.life.told import Told
from holdfast.agent.membership import kind_of
from holdfast.agent.observe.doctor import SECURITY
from holdfast.agent.observe.http_app import every_route
from holdfast.agent.observe.narrator import Narrator
from holdfast.agent.observe.openapi import document
from holdfast.agent.observe.seat_watch import SeatWatch
from holdfast.cli import exits as cli_exits
from holdfast.cli.app import app
from holdfast.config import Config
from holdfast.disk.horizon import Horizon
from holdfast.disk.state_directory import State
from holdfast.drops import Drop
from holdfast.errors import HoldfastError
from holdfast.events import Event, Internal
from holdfast.features.leadership.running import LeadershipAgent
from holdfast.features.mail.calls import MessageItem
from holdfast.features.ring.agent import RingSide
from holdfast.features.tickets.running import TicketAgent
from holdfast.features.views.calls import ViewItem
from holdfast.features.views.running import ViewAgent
from holdfast.host import Message, NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.disk import LabDisk
from holdfast.lab.registry import experiments, scenarios
from holdfast.lab.scenario import run
from holdfast.local import leaders
from holdfast.local.calls import VERSION, Call, EventItem, FromAgent, GrantItem
from holdfast.local.frame import framed
from holdfast.local.news import encoded_fields, name_of
from holdfast.wire import Codec, Keyring, Plain, Sealed, parse_key
from tests.agent.live import Live
from tests.lab.trace_hash import trace_hash
from tests.tidy.tree import import_all, source, subclasses

__all__ = [
    "Codec", "Keyring", "Plain", "Sealed", "parse_key", "Message", "NodeId",
    "Call", "FromAgent", "LOCAL_VERSION", "LINES", "STREAMED", "framed",
    "Event", "Internal", "name_of", "encoded_fields", "log_line",
    "Checker", "experiments", "scenarios", "trace_hash", "saved_in", "file_records", "state_files",
    "Drop", "openapi_document", "security_findings", "root_command", "exit_codes", "source_texts",
    "settings", "fingerprints", "import_all", "subclasses", "ships",
]  # fmt: skip

LOCAL_VERSION = VERSION
LINES = dict.fromkeys(leaders.LINES, leaders.LeaderView)  # what features add to a view, by the name of the feature
# What ``Pushed`` carries; calls say in ``answers`` what ``Done`` carries.
STREAMED: tuple[Any, ...] = (EventItem, MessageItem, GrantItem, ViewItem)

# Modules that no agent, client or command loads: what they define stays inside the lab and the tests.
STAYS_INSIDE = ("lab", "papers")


def openapi_document(version: str) -> dict[str, Any]:
    return document(version, every_route(kind_of(Config())))


def ships(kind: type) -> bool:
    """Whether an agent may load the type, so that its name can leave the process."""
    return not set(kind.__module__.split(".")) & set(STAYS_INSIDE)


class _Lines:
    """As much of a log as a narrator uses."""

    level = "debug"

    def __init__(self) -> None:
        self.said: list[str] = []

    def __getattr__(self, level: str) -> Any:
        return lambda event, **fields: self.said.append(f"{level} {event} {' '.join(fields)}".rstrip())


def log_line(event: Event) -> str:
    """What an agent that debugs writes into its log: the level, the name, the names of the fields."""
    lines = _Lines()
    warning = (*RingSide.warning, *LeadershipAgent.warning, *TicketAgent.warning, *ViewAgent.warning)
    Narrator(lines, info=(*RingSide.info, *SeatWatch.info), warning=warning).on_event(event)  # type: ignore[arg-type]
    return " / ".join(lines.said) or "(none)"


def fingerprints(folder: Path, **given: Any) -> dict[bytes, list[str]]:
    """What an agent with these settings compares with its peers (F4), and for which messages."""
    found: dict[bytes, list[str]] = {}
    with Live(folder, **given) as live:
        for kind, route in live.agent.host.node._routes.items():
            found.setdefault(b"" if route.machine is None else route.machine.fingerprint, []).append(kind.__name__)
    return found


def root_command() -> Any:
    """``holdfast`` as click knows it, with every verb below it."""
    return get_command(app)


def exit_codes() -> list[str]:
    """The numbers by name, and of each error the number with which a command and an agent end."""
    lines = []
    for program, module in (("command", cli_exits), ("agent", agent_exits)):
        lines += [f"{program} {name} {value}" for name, value in sorted(vars(module).items()) if name.isupper() and isinstance(value, int)]
    import_all()
    kinds: list[type[HoldfastError | OSError]] = [HoldfastError, *subclasses(HoldfastError), OSError]
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        error = kind.__new__(kind)
        agent = "/".join(str(agent_exits.exit_code(error, loaded=loaded)) for loaded in (False, True))
        lines.append(f"{kind.__name__}: command {cli_exits.exit_code(error)}, agent {agent} (before/after its settings were read)")
    return lines


def source_texts() -> list[str]:
    return [text for _, text in source()]


def saved_in(scenario: str, seed: int) -> dict[str, bytes]:
    """The first value that was kept under each key, by any member of a run, also what was deleted later."""
    kept: dict[str, bytes] = {}
    keep = LabDisk._keep

    def kept_too(disk: LabDisk, write: Any) -> None:
        key, value, _ = write
        if value is not None:
            kept.setdefault(key, value)
        keep(disk, write)

    with patch.object(LabDisk, "_keep", kept_too):
        run(scenarios()[scenario], seed)
    return kept


def file_records(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Files of a state directory after a first life that saved, deleted and saved below a part; then those beside it."""
    asyncio.run(_first_life(folder / "state"))
    for name in ("boot", "journal"):
        yield name, (folder / "state" / name).read_bytes()
    horizon = Horizon.open(folder / "until", former=0, life=5, stamp="kernel/0_0")
    assert horizon is not None
    horizon.cover(10.0)
    horizon.close()
    yield "until", (folder / "until").read_bytes()
    told = Told(folder / "told", bytes(range(16)))
    told.begin(10.0)
    told.close()
    yield "told", (folder / "told").read_bytes()


async def _first_life(path: Path) -> None:
    state = State.open(path, wall=lambda: 1_753_000_000.0)
    part = state.journal.part("seats")
    state.journal.save("key", b"value", lambda: None)
    await state.journal.drain()
    part.save("me", b"1", lambda: None)
    await state.journal.drain()
    part.part("below").save("me", b"2", lambda: None)
    state.journal.save("key", None, lambda: None)
    await state.journal.drain()
    state.close()


def state_files(folder: Path) -> list[str]:
    """The files of an agent that is alone on its machine, below its state directory and in its runtime directory."""
    own, runtime = folder / "agent-state", folder / "runtime"
    runtime.mkdir(mode=0o700)
    with Live(runtime, state_dir=str(own)) as live:
        live.until_member()
    return sorted(f"{place} {path.name}" for place, where in (("state", own), ("runtime", runtime)) for path in where.iterdir())


def security_findings() -> list[str]:
    """Findings of doctor that are called as what was dropped."""
    return list(SECURITY)
