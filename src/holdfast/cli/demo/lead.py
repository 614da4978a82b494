"""Leadership in ``holdfast demo``: who asks, who leads, and how soon the next one leads after a kill.  Spec: fast-detection G2, G5, G6.

The demo is a client of every agent but the first, which shows the page. All of them ask to lead one name; a term counts as begun when the
client hears of it, and as over at the last deadline that it was told, whatever became of its agent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from holdfast.cli.agent_call import AgentCall
from holdfast.client.conversation import NOBODY
from holdfast.client.wire import ITEMS
from holdfast.errors import HoldfastError
from holdfast.local.calls import Acquire, Confirm, GrantItem
from holdfast.net import clock

NAME = "scheduler"
TIMERS = 3  # that may each have been late on the way from a death to the next term: the heartbeat, the ballot, the question to the seats


class Reign(NamedTuple):
    """One term, as its client was told."""

    leader: str
    token: int
    began_at: float  # heard here
    until: float  # the last deadline


class Candidate:
    """One client that asks to lead."""

    def __init__(self, name: str, path: str, kind: str) -> None:
        self.name, self._kind = name, kind
        self.reign: Reign | None = None
        self._call = AgentCall(path, program="holdfast demo")
        self._ask()

    def fileno(self) -> int:
        return self._call.fileno()

    def read(self) -> bool:
        """False when there is nothing more to hear: its agent is gone, and extends nothing any more."""
        try:
            while self._call.read(0):
                pass
        except HoldfastError:
            self._call.close()
            return False
        return True

    def close(self) -> None:
        self._call.close()

    def _ask(self) -> None:
        self._serial = self._call.begin(Acquire, (self._kind, NAME, {}), NOBODY, sink=self)

    def push(self, item: Any) -> None:
        news: GrantItem = ITEMS[Acquire](item)
        if news.what == "lost":
            self._ask()  # A busy machine costs it a term now and then; a candidate that lost one stands again, or in the end none would.
        elif news.what == "granted":
            self.reign = Reign(self.name, news.token, clock.now(), news.deadline)
            self._call.tell(Confirm, self._serial, news.token)
        elif news.what == "extended" and self.reign is not None:
            self.reign = self.reign._replace(until=news.deadline)

    def end(self, error: HoldfastError | None) -> None:
        """The next ``read`` says so."""


class Candidates:
    """All of them."""

    def __init__(self, kind: str = "lead") -> None:
        """``kind`` of the grant that they ask for."""
        self._kind = kind
        self._asking: dict[str, Candidate] = {}
        self.reigns: dict[int, Reign] = {}  # by token, as they came

    def ask(self, name: str, path: str) -> None:
        self._asking[name] = Candidate(name, path, self._kind)

    def listen(self) -> None:
        for name, candidate in list(self._asking.items()):
            if not candidate.read():
                del self._asking[name]
            if candidate.reign is not None:
                self.reigns[candidate.reign.token] = candidate.reign

    @property
    def last(self) -> Reign | None:
        """The latest term, by its token."""
        return self.reigns[max(self.reigns)] if self.reigns else None

    def leads_now(self) -> Reign | None:
        reign = self.last
        return reign if reign is not None and clock.now() < reign.until else None

    def close(self) -> None:
        for candidate in self._asking.values():
            candidate.close()
        self._asking.clear()


class Takeover(NamedTuple):
    """One death of a leader, and who came after it."""

    former: Reign
    killed_at: float
    next: Reign | None

    @property
    def seconds(self) -> float | None:
        return None if self.next is None else self.next.began_at - self.killed_at


def taken_over(killed_at: float, former: Reign, reigns: Iterable[Reign]) -> Takeover:
    """``former`` may have been extended by what was on its way when its agent died."""
    known = {reign.token: reign for reign in reigns}
    after = sorted(token for token in known if token > former.token)
    return Takeover(known.get(former.token, former), killed_at, known[after[0]] if after else None)
