"""Elections in an agent: the machine, clients that ask to lead, who leads as known here, what doctor remembers.  Spec: election 10."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from holdfast.agent.feature import Calls, Parts, Running
from holdfast.agent.grants.ways import Taken
from holdfast.events import Event, LeaderChanged
from holdfast.features.election.board import Board
from holdfast.features.election.kind import ElectKind
from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.facts import CBoundUnusable, ElectionFact, Initiated, RankViolation, TermConflict
from holdfast.features.election.settings import ElectionSettings
from holdfast.local.leaders import ELECTION

if TYPE_CHECKING:
    from holdfast.agent.feature import HttpPart, Web
    from holdfast.agent.socket.connection import Connection
    from holdfast.features.election.calls import Elect
    from holdfast.host import Lists
    from holdfast.local.calls import Finding

BUCKET = 30.0  # seconds after the start during which nothing was measured, and all members are asked (election 5.1)
VIOLATIONS_MAX = 64  # that doctor counts; more say nothing else


class ElectionAgent(Running):
    """One ``Elections``."""

    by = ELECTION
    hears = (LeaderChanged, ElectionFact)
    info = (RankViolation, CBoundUnusable)
    warning = (TermConflict,)

    def __init__(self, parts: Parts) -> None:
        host = self.host = parts.host
        self.config = ElectionSettings.of(parts.config).election_config()
        self.lists = cast("Lists", parts.membership)
        self.on_seats = parts.seats is not None
        self.elections = Elections(host, self.lists, parts.exchange, parts.seats, self.config, broadcast=parts.broadcast)
        self.ways = parts.grants.ways
        self.kind = self.grant_kind = ElectKind(
            self.elections, lambda: host.now, me=str(host.me), hold=self.config.hold, enter=lambda name: self.ways.enter(name, self)
        )
        self.board = self.view_lines = Board(self.elections, lambda: host.now, host.wall)
        self.machines = (self.elections,)
        self.violations: deque[tuple[float, RankViolation]] = deque(maxlen=VIOLATIONS_MAX)  # with the time of each
        self.unusable_c: dict[str, CBoundUnusable] = {}  # names whose c is more than the group has members for
        self._begins_unusable: dict[str, CBoundUnusable] = {}
        self.terms_heard = 0
        self.facts = 0  # that were heard
        self.ways.add(self)

    def on_event(self, event: Event) -> None:
        self.board.note()
        self.facts += 1
        if isinstance(event, LeaderChanged):
            self.terms_heard += event.by == self.by and event.leader is not None
        elif isinstance(event, Initiated):
            self.elections.exceed(event.name, self.ways.highest(event.name, self))  # F16; before a term of it is nominated.
            self._note_c(event.name)
        elif isinstance(event, RankViolation):
            self.violations.append((self.host.now, event))
        elif isinstance(event, CBoundUnusable) and self.lists.observed_for() >= BUCKET:
            self._begins_unusable[event.name] = event

    def _note_c(self, name: str) -> None:
        """An election has begun. Whether its c was usable was said just before."""
        unusable = self._begins_unusable.pop(name, None)
        if unusable is None:
            self.unusable_c.pop(name, None)
        else:
            self.unusable_c[name] = unusable

    def standing_since(self) -> dict[str, float]:
        """Names that clients of this agent ask for, and since when."""
        return {name: self.kind.asked_since(name) for name in self.kind.waiting}

    # A way to lead a name.

    def taken(self, name: str) -> Taken | None:
        reign, waits = self.elections.leader(name), self.elections.candidates(name)
        if reign is not None and reign.listed:
            return Taken(reign.leader, "leads")
        return Taken(waits[0], "waits") if waits else None

    def highest(self, name: str) -> int:
        return self.elections.highest(name)

    # What it offers.

    def calls(self) -> Calls:
        from holdfast.features.election.calls import Elect

        return Calls(in_turn={Elect: self._elect})

    def counts(self) -> dict[str, float]:
        return {f"election_{name}": value for name, value in self.elections.metrics().items()}

    def findings(self) -> Iterable[Finding]:
        from holdfast.features.election.findings import of_elections

        return of_elections(self)

    def http(self, web: Web) -> HttpPart:
        from holdfast.features.election.http import ElectionHttp

        return ElectionHttp(web, self)

    def _elect(self, client: Connection, call: Elect) -> None:
        self.elections.elect(call.name)
        client.done(call.serial)
