"""Where the pins find what they write down: the one file of this folder that knows modules, so a move edits one line here.

Everything else in ``tests/pins`` asks this file. What lies in the spine (``host``, ``node``, ``events``, ``errors``) and the public modules
keeps its place; messages, facts and calls are found by their base class, wherever they are defined.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.main import get_command

from holdfast import config as settings
from holdfast.agent import exits as agent_exits
from holdfast.agent.narrator import Narrator
from holdfast.cli import exits as cli_exits
from holdfast.cli.app import app
from holdfast.errors import HoldfastError
from holdfast.events import Event, Internal
from holdfast.host import Message, NodeId
from holdfast.local.calls import VERSION, Call, EventItem, FromAgent, GrantItem, MessageItem
from holdfast.local.frame import framed
from holdfast.local.news import encoded_fields, name_of
from holdfast.wire import Codec, Keyring, Plain, Sealed, parse_key
from tests.agent.live import Live
from tests.tidy.tree import import_all, source, subclasses

__all__ = [
    "Codec", "Keyring", "Plain", "Sealed", "parse_key", "Message", "NodeId",
    "Call", "FromAgent", "LOCAL_VERSION", "STREAMED", "framed",
    "Event", "Internal", "name_of", "encoded_fields", "log_line",
    "root_command", "exit_codes", "source_texts",
    "settings", "fingerprints", "import_all", "subclasses", "ships",
]  # fmt: skip

LOCAL_VERSION = VERSION
STREAMED: tuple[Any, ...] = (EventItem, MessageItem, GrantItem)  # what ``Pushed`` carries; calls say in ``answers`` what ``Done`` carries

# Modules that no agent, client or command loads: what they define stays inside the lab and the tests. The last four wait for their folder.
STAYS_INSIDE = ("lab", "papers")
STAYS_INSIDE_TOO = tuple(f"holdfast.protocols.detection.{name}" for name in ("election", "omega", "heartbeat", "views_feed"))


def ships(kind: type) -> bool:
    """Whether an agent may load the type, so that its name can leave the process."""
    return not (set(kind.__module__.split(".")) & set(STAYS_INSIDE) or kind.__module__.startswith(STAYS_INSIDE_TOO))


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
    Narrator(lines).on_event(event)  # type: ignore[arg-type]
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
