"""A fleet that gossips. One client leads and holds a ticket all the time, and no change of a list may end either.  Spec: foundation F15.

with GossipFleet(folder, Forwarders(names), names) as fleet:
    fleet.kill("a9")
    fleet.right()
    assert fleet.touched() == ""

The client is one of the seventh member.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import holdfast.sync
from holdfast.local.calls import Acquire, GrantItem
from tests.agent.raw_client import RawClient
from tests.support.agents import AgentProcess
from tests.support.member_fleet import MemberFleet
from tests.support.nets import SEATS, SEEDS, Net

GRACE: Final = 4.0  # seconds: the term outlasts what a busy machine keeps its agent from
LONGEST: Final = 5.0  # seconds: a seat grants no more; the grace and a term of this preset fit
HELD, POOL = "kept", "gpu"


class Holder:
    """A client that leads and holds a ticket, and another one, elsewhere, that waits for both and must get neither."""

    def __init__(self, agent: AgentProcess, other: AgentProcess) -> None:
        self._stack = ExitStack()
        group = self._stack.enter_context(holdfast.sync.join(agent=agent.socket))
        self.term = self._stack.enter_context(group.lead(HELD, grace=GRACE, timeout=60))
        self.ticket = self._stack.enter_context(group.ticket(POOL, of=1, timeout=60))
        self._rival = self._stack.enter_context(RawClient(other.socket))
        self._waits = [
            self._rival.say(Acquire, "lead", HELD, {"grace": GRACE}),
            self._rival.say(Acquire, "ticket", POOL, {"of": 1}),
        ]

    def close(self) -> None:
        self._stack.close()

    def missing(self) -> str:
        """What was touched; "" if nothing was."""
        gone = [what for what, held in (("the term", self.term), ("the ticket", self.ticket)) if not held.valid]
        self._rival.sock.settimeout(0.01)
        try:
            while True:
                self._rival.next()
        except TimeoutError:
            pass
        finally:
            self._rival.sock.settimeout(30.0)
        given = [item.what for serial in self._waits for item in self._items(serial) if item.what == "granted"]
        return " and ".join([*(f"{each} was lost" for each in gone), *(f"another client was {each} it" for each in given)])

    def _items(self, serial: int) -> Iterator[GrantItem]:
        while self._rival.pushed.get(serial):
            yield self._rival.item(serial, GrantItem)


class GossipFleet(MemberFleet):
    """With a client that holds, unless there are no seats."""

    def __init__(self, folder: Path, net: Net, names: Sequence[str], *, seats: bool = True, **settings: Any) -> None:
        super().__init__(folder, net, names, seats=seats, longest_grant=LONGEST, ticket_lease=GRACE, **settings)
        self._holder: Holder | None = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._holder is not None:
            self._holder.close()
        super().__exit__(kind, error, trace)

    def begin(self) -> None:
        if self.seats:
            self.hold()

    @property
    def holder(self) -> str:
        return self.names[SEEDS + SEATS]

    @property
    def others(self) -> tuple[str, ...]:
        """No seeds, no seats, not the holder."""
        return self.names[SEEDS + SEATS + 1 :]

    def rest(self) -> None:
        """Also, the client holds what it held."""
        super().rest()
        if self.touched():
            self.hold()

    # Grants.

    def hold(self) -> None:
        """A client of the holder leads and holds the ticket; one of the last seat waits for both."""
        if self._holder is not None:
            self._holder.close()
        self._holder = Holder(self.agents[self.holder], self.agents[self.seats[-1]])

    def touched(self) -> str:
        """What happened to the grants; "" if nothing did."""
        return "" if self._holder is None else self._holder.missing()
