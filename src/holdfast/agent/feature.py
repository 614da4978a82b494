"""What a feature may offer to an agent, and the one place that loads the list of them.  docs/architecture.md (a feature says what it has).

A feature is a line in ``holdfast.features.FEATURES``. When an agent's life begins, each feature gets the ``Parts`` of that life and returns
what runs: its machines, its kind of grant, its calls, and what people see of it. The agent walks over the list and names no feature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, TypeVar

from holdfast.agent.grants.kinds import RefusedKind
from holdfast.errors import ConfigError
from holdfast.features import FEATURES

if TYPE_CHECKING:
    from asyncio import Future
    from pathlib import Path

    from msgspec import Raw

    from holdfast.agent.grants.grants import Grants
    from holdfast.agent.grants.kinds import GrantKind
    from holdfast.agent.observe.metrics import Metric
    from holdfast.agent.observe.openapi import Route
    from holdfast.agent.observe.sse import Lists
    from holdfast.agent.socket.connection import Connection, Handler
    from holdfast.config import Config
    from holdfast.events import Event
    from holdfast.host import Address, Machine, NodeId, Standing
    from holdfast.kit.broadcast import Broadcast
    from holdfast.kit.exchange import Exchange
    from holdfast.kit.overlay import Overlay
    from holdfast.kit.seats import Seats
    from holdfast.kit.slots import OwnSlots
    from holdfast.local.calls import Call, Finding, GroupView
    from holdfast.net.host import NetHost
    from holdfast.wire.keys import Keyring

T = TypeVar("T")

NONE: Mapping[Any, Any] = MappingProxyType({})


class Life(Protocol):
    """What a feature may ask of the life it is a part of, and what it tells it."""

    @property
    def version(self) -> int: ...
    @property
    def keyring(self) -> Keyring | None: ...

    def view(self) -> GroupView: ...
    def rekey(self, keyring: Keyring) -> None: ...
    def on_name_clear(self) -> None: ...
    def on_name_conflict(self, life: NodeId, address: Address) -> None: ...
    def on_behind(self, boot: int) -> None: ...
    def on_asked_to_leave(self) -> None: ...


class Parts(NamedTuple):
    """What one life has before its features are built."""

    host: NetHost
    config: Config
    membership: Standing
    broadcast: Broadcast
    exchange: Exchange
    seats: Seats | None
    seats_missing: str  # which setting is missing, where ``seats`` is None
    grants: Grants
    life: Life
    overlay: Overlay  # the other way to a peer, while a feature of this node offers one
    slots: OwnSlots  # where ``seats`` is None they may be known all the same: not all that a seat serves needs a journal


class Gate(Protocol):
    """An agent joins when every gate is clear."""

    is_clear: bool

    def greet(self, addresses: Iterable[Address]) -> None:
        """The addresses of the seeds are known; ask there."""


class Reply(Protocol):
    """What a peer answered to a ping."""

    @property
    def life(self) -> NodeId: ...
    @property
    def version(self) -> str: ...
    @property
    def paused(self) -> float: ...
    @property
    def seats(self) -> str: ...


class Pinger(Protocol):
    """Asks a peer whether a message of some size arrives. ``done`` gets None if no answer came in time."""

    def ping(self, to: NodeId | Address, size: int, done: Callable[[Reply | None], None], *, timeout: float) -> None: ...


class ViewLines(Protocol):
    """What a feature adds to the view that clients keep (``GroupView.lines``). The version grows with every change."""

    @property
    def version(self) -> int: ...
    @property
    def lines(self) -> Mapping[str, Raw]:
        """By name, each encoded once. The same objects until something changes."""


class Web(Protocol):
    """What the HTTP server does for the routes of a feature."""

    def again(self, name: str, make: Callable[[], Any]) -> Any:
        """A JSON response. ``make`` is called anew at most every KEPT_SECONDS."""

    def json(self, value: Any, status: int = 200) -> Any: ...
    async def in_turn(self, work: Callable[[], Any]) -> None:
        """Run it in a turn of the host (F10). Raises what it raises."""

    async def body(self, request: Any) -> bytes:
        """What was sent with it. Refused with 413 if it is too long."""

    async def while_there(self, request: Any, awaited: Future[T]) -> T:
        """What the client waits for. If it hangs up before, what is awaited is cancelled. Its body was read before."""


class HttpPart:
    """A feature over HTTP: one method per route, called as the route says. Imported when HTTP is served."""

    routes: tuple[Route, ...] = ()
    lists: tuple[Lists, ...] = ()  # what the page is sent whenever it changed
    page: Path | None = None  # a folder with ``panel.html``, ``panel.js`` and perhaps ``panel.css``: what the page shows of it

    def beat(self) -> Mapping[str, Any]:
        """What the page is told four times a second, by name."""
        return {}

    def metrics(self) -> Iterable[Metric]:
        """For Prometheus."""
        return ()


class Calls(NamedTuple):
    """What a feature answers clients on the local socket."""

    at_once: Mapping[type[Call], Handler] = NONE  # calls that only read what the agent knows
    in_turn: Mapping[type[Call], Handler] = NONE  # calls that enter a protocol
    needs: Mapping[type[Call], Sequence[str]] = NONE  # modules that the first call of a type loads; imported one by one before it (H382)


class Running:
    """One feature of one life. The defaults offer nothing: a feature overrides what it has."""

    on_seats = False  # its machines start after the seats, because they need them
    machines: tuple[Machine, ...] = ()
    grant_kind: GrantKind | None = None
    hears: tuple[type[Event], ...] = ()  # events that ``on_event`` gets, before any subscriber
    info: tuple[type[Event], ...] = ()  # facts that the log tells at this level
    warning: tuple[type[Event], ...] = ()
    frequent: tuple[type[Event], ...] = ()  # facts that are too many for the buffer of /events
    gate: Gate | None = None
    pinger: Pinger | None = None
    view_lines: ViewLines | None = None
    needs: Sequence[str] = ()  # modules that ``calls`` loads; imported one by one before it is asked (H382)

    def on_event(self, event: Event) -> None:
        """One of ``hears``."""

    def drain(self, *, draining: bool = True) -> None:
        """The agent begins to leave; or it joins again, with ``draining`` False."""

    @property
    def drained(self) -> bool:
        """Whether the agent may leave now, as far as this feature is concerned."""
        return True

    @property
    def running_until(self) -> float:
        """When the last promise of this agent's seat ends (H154)."""
        return -inf

    def calls(self) -> Calls:
        """Called once, when a client uses a call that the agent and the features before it in the list do not have: the
        ``calls.py`` of the feature is imported then."""
        return Calls()

    def counts(self) -> dict[str, float]:
        """Numbers for ``Info``, by name."""
        return {}

    def lost(self) -> dict[str, int]:
        """How much the clients of this agent did not read in time, by name, for ``Info``."""
        return {}

    def examined(self) -> None:
        """``doctor`` begins to look. What takes a moment to find out is asked for here; ``findings`` follows a moment later."""

    def findings(self) -> Iterable[Finding]:
        """What ``doctor`` has to say about it now."""
        return ()

    def setting_findings(self) -> Iterable[Finding]:
        """What ``doctor`` has to say about its settings."""
        return ()

    def unusable(self) -> Iterable[str]:
        """Records in the journal of this seat that no honest clock comes to (H174), as people call them."""
        return ()

    def http(self, web: Web) -> HttpPart | None:
        """Called when HTTP is served."""
        del web
        return None


class Missing(Running):
    """A feature that cannot run with these settings: a client that asks for it is told which one is missing (F12)."""

    def __init__(self, why: str, *, kind: str = "") -> None:
        self.why = why
        self.grant_kind = RefusedKind(kind, why) if kind else None

    def refuse(self, client: Connection, call: Call) -> NoReturn:
        del client, call
        raise ConfigError(self.why)


class Feature:
    """A feature before it runs. Its module is light: what only a running feature needs is imported by ``build``."""

    name: str

    def build(self, parts: Parts) -> Running:
        """Build its machines; nothing is sent yet. ``Missing`` says why there are none."""
        raise NotImplementedError

    def routes(self) -> tuple[Route, ...]:
        """Over HTTP, whether it runs or is missing."""
        return ()

    def would(self, config: Config) -> Iterable[str]:
        """For ``holdfast agent --check``: what an agent with these settings would do that their values alone do not say, in sentences.
        Raises the error with which it could not do that here."""
        del config
        return ()


def features() -> list[Feature]:
    """All that there are, in the order of the list."""
    found: list[Feature] = []
    for place in FEATURES:
        module, _, name = place.partition(":")
        found.append(getattr(import_module(module), name)())
    return found


def running(parts: Parts) -> dict[str, Running]:
    """Those of one life, by name."""
    return {feature.name: feature.build(parts) for feature in features()}
