"""Views by script, and as much of an agent's life as the feature uses: a test says what the machine would say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from types import SimpleNamespace
from typing import Any

from holdfast.config import Config
from holdfast.events import ViewEvent
from holdfast.features.views.protocol.survey import LinkLook, ViewSurvey
from holdfast.host import Address, Carried, Machine, Message, NodeId, View, ViewId, ViewMember, ViewState
from holdfast.kit.overlay import Overlay
from holdfast.kit.slots import OwnSlots, Slot
from tests.support.fake_host import FakeHost

SERVER = NodeId("s0", 1)
SLOTS = tuple(Slot(number, f"s{number}", Address("127.0.0.1", 7000 + number)) for number in range(3))


def view(number: int, *names: str, server: NodeId = SERVER, attach: int = 1) -> View:
    return view_of(number, {server: names}, attach=attach)


def view_of(number: int, attached: Mapping[NodeId, Iterable[str]], *, attach: int = 1) -> View:
    """With the names of the members by their server."""
    members = sorted(
        ViewMember(NodeId(name, 1), Address("127.0.0.1", 7100), attach, server) for server, names in attached.items() for name in names
    )
    servers = tuple(sorted(attached))
    return View(ViewId(number, servers[0].name, servers[0].boot), servers, tuple(members), len(members))


class FakeTurns(FakeHost):
    """With the way in for code outside of the machines."""

    def __init__(self, name: str = "a") -> None:
        super().__init__(name)
        self.posted: list[Callable[[], None]] = []
        self.node = FakeNode()

    def post(self, callback: Callable[[], None]) -> None:
        self.posted.append(callback)

    def turn(self) -> None:
        """What was posted runs, and what that posts."""
        while self.posted:
            self.posted.pop(0)()


class FakeNode:
    """Which machines it has."""

    def __init__(self) -> None:
        self.machines: list[Machine] = []

    def add(self, machine: Machine) -> None:
        assert machine not in self.machines
        self.machines.append(machine)

    def remove(self, machine: Machine) -> None:
        self.machines.remove(machine)


class FakeViews:
    """A back end."""

    handles: Sequence[type[Message]] = ()
    fingerprint = b""
    left = False
    settle, lease = 5.4, 1.5

    def __init__(self, *, own: int | None = None) -> None:
        self.own = own
        self.view: View | None = None
        self.state = ViewState.LOST
        self.leased_until = -inf
        self.settled_at = inf
        self.left_at: float | None = None
        self.settled = False
        self.idle_since: float | None = None
        self.trips_again_in = 0.0
        self.takes_part = False
        self.said: list[Any] = []  # messages, reasons to trip
        self.listeners: list[Callable[[ViewEvent], None]] = []
        self.links: tuple[LinkLook, ...] = ()
        self.looks: dict[str, Any] = {}  # what else the survey says
        self.counted: dict[str, float] = {}

    def subscribe(self, listener: Callable[[ViewEvent], None]) -> None:
        self.listeners.append(listener)

    def tell(self, event: ViewEvent) -> None:
        for listener in self.listeners:
            listener(event)

    def stand(self, view: View | None, leased_until: float = -inf, state: ViewState = ViewState.STABLE) -> None:
        self.view, self.leased_until = view, leased_until
        self.state = ViewState.LOST if view is None else state
        self.settled_at = inf if view is None else leased_until + 1.0

    def take_part(self) -> None:
        self.takes_part = True

    def withdraw(self) -> None:
        self.takes_part = False
        self.stand(None)

    def trip(self, why: str, *, above: int = 0) -> bool:
        self.said.append(why)
        return not self.trips_again_in

    def hurry(self) -> None: ...

    def carry(self, to: NodeId, message: Message, done: Callable[[Carried], None]) -> None:
        done(Carried.NOT_IN_VIEW)

    def survey(self) -> ViewSurvey:
        return ViewSurvey(self.own, SERVER, 3, 1.5, None, None, "", self.links, ((0, 1, True),), 2, 0, 0.004, 9)._replace(**self.looks)

    def metrics(self) -> dict[str, float]:
        return {"size": 0.0 if self.view is None else float(self.view.size), **self.counted}

    def start(self) -> None: ...
    def on_message(self, source: NodeId, message: Message) -> None:
        self.said.append(message)

    def on_away(self, seconds: float) -> None: ...
    def stop(self) -> None: ...


def parts(host: FakeTurns, *, own: int | None = None, slots: bool = True, **settings: Any) -> Any:
    """``agent.feature.Parts``, as much of it as views use."""
    found = OwnSlots(SLOTS, own) if slots else OwnSlots((), missing="seats: who are the seats?")
    return SimpleNamespace(host=host, config=Config(**settings), slots=found, overlay=Overlay())


class FakeClient:
    """A connection, as handlers of calls use it."""

    def __init__(self) -> None:
        self.streams: dict[int, Any] = {}
        self.answers: dict[int, bytes] = {}
        self.woken: list[int] = []

    def check_room(self) -> None: ...
    def open_stream(self, serial: int, stream: Any) -> None:
        self.streams[serial] = stream

    def done(self, serial: int, value: bytes = b"") -> None:
        self.answers[serial] = value

    def wake(self, serial: int) -> None:
        self.woken.append(serial)
