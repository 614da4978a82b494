"""The paper's fault-tolerant protocol as it is written, for the lab alone: it is not safe.  Spec: tickets 5.10, D1-D7; paper 001, 4.

One process of Algorithms 3 to 5. Variables and messages have the paper's names, so that its counterexamples can be followed line by line
(``papers/tickets/lab/paper_traces.py``). Kept as written: sends are not repeated, rounds are counted, ALIVE messages are counted by L and
sent by Cview.

What had to be decided to make it run:

* The two lost ``else`` lines of Algorithms 3 and 5 are back (D2): exclusion follows an UPDATE that failed, disconnecting a request that
  found too few ACKCOORD. R_p is taken from L_p as the text has it, "the 2k closest predecessors in L_p".
* How many ALIVE messages are enough is a setting: the algorithm says 2k + 1, the text k + 1 (D1).
* A new coordinator's first round begins without counting: no process has heard of it yet.
* A process that is asked by itself (it is in R_p and mostly in L_q) acknowledges, as in the text.
* While it excludes, a process serves no cjoin, and the status of a message to a former successor is of no interest.
* ACKCJOIN names p's successor even if p had to remove it from Cview for the sake of another exclusion.
* What p takes over it coordinates when TempRounds has come down to 0, which is the latest the text allows.
* A process that has left the core accepts no connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from holdfast.host import Address, Host, Message, NodeId, Timer
from holdfast.papers.tickets.lab.circle import coordinated, distance, successors
from holdfast.papers.tickets.lab.paper_ring_messages import (
    AckCjoin,
    AckCoord,
    AckExclude,
    Acknowledged,
    Alive,
    ArcChanged,
    Cjoin,
    Disconnected,
    Exclude,
    Names,
    PrCast,
    Proceeded,
    Reject,
    ReqCoord,
    Status,
    Update,
)


class PaperConfig(Struct, frozen=True, kw_only=True):
    """The paper's parameters."""

    n: int
    k: int = 1
    enough: int = 2  # ALIVE messages without which a process leaves: k + 1 or 2k + 1
    round: float = 1.0  # T, longer than a PrCast
    delta: float = 0.1  # within which the status of a message is known
    p_exclude: float = 1.0

    @property
    def reach(self) -> int:
        return 2 * self.k + 1


Known = Callable[[], Sequence[str]]
Choose = Callable[[Sequence[int]], int]


class PaperRing:
    """One process p of the paper."""

    handles = (Cjoin, AckCjoin, Reject, Alive, Update, Exclude, AckExclude, ReqCoord, AckCoord, Status, PrCast)
    fingerprint = b""

    def __init__(self, host: Host, config: PaperConfig, group: Mapping[str, Address], known: Known) -> None:
        self.host, self.config = host, config
        self.me = host.me.name
        self.in_core = False  # a coordinator that does not think it is disconnected
        self.L: Names = ()  # nearest predecessor first
        self.R: Names = ()  # what the successor is known to have received
        self.alive: set[str] = set()  # ALIVE_p
        self.cview: dict[int, str] = {}
        self.i = self.j = -1  # owns i, its successor owns j
        self.immed_succ = self.immed_pred = ""
        self.temp_rounds = 0
        self.rounds = 0
        self.phase = config.round * host.random.uniform(0.5, 1.0)  # from ACKCJOIN to the first round
        self.known = known  # the coordinators that a newcomer may have heard of
        self.choose: Choose = host.random.choice  # "select ticket t"
        self._group = dict(group)
        self._takes = -1  # the successor's ticket when TempRounds is over
        self._excluding = False
        self._asked = 0  # serial of the running exclusion's REQCOORD
        self._acks: set[str] = set()  # who has acknowledged it
        self._blocked: list[tuple[float, int, int]] = []  # until when no news about tickets between i and j is believed
        self._sends: dict[int, tuple[Callable[[Message | None], None], Timer]] = {}
        self._serial = 0

    @property
    def coordinates(self) -> tuple[int, ...]:
        """S_p."""
        return coordinated(self.i, self.j, self.config.n) if self.i >= 0 else ()

    def start(self) -> None:
        for name, address in self._group.items():
            self.host.meet(NodeId(name, 1), address)

    def stop(self) -> None:
        """A process of the paper never stops in good order."""

    def on_away(self, seconds: float) -> None:
        """A process of the paper does not look at its clock (D5)."""

    def place(self, i: int, cview: Mapping[int, str], phase: float) -> None:
        """Begin as a member of a core in which all know all."""
        n, reach = self.config.n, self.config.reach
        self.i, self.cview = i, dict(cview)
        order = successors(i, self.cview, n)
        self.j = order[0]
        self.immed_succ, self.immed_pred = self.cview[order[0]], self.cview[order[-2]]
        self.L = tuple(self.cview[ticket] for ticket in reversed(order[:-1]))[:reach]
        self.R = self._to_send()
        self.in_core = True
        self.host.after(phase, self._on_round)

    def cjoin(self) -> None:
        """Init_p, again every round until a coordinator lets it in."""
        if self.i < 0:
            known = self.known()
            if known:
                self._say(self.host.random.choice(known), Cjoin())
            self.host.after(self.config.round, self.cjoin)

    def on_message(self, source: NodeId, message: Message) -> None:
        name = source.name
        if isinstance(message, PrCast):
            self._on_news(name, message)
        elif isinstance(message, AckCjoin):
            self._on_ack_cjoin(name, message)
        elif not self.in_core:
            return
        elif isinstance(message, Alive):
            self.alive.add(name)
        elif isinstance(message, Status | AckExclude):
            self._settle(message.serial, message)
        elif isinstance(message, AckCoord):
            self._on_ack_coord(name, message)
        elif isinstance(message, Update):
            self.L, self.immed_pred = message.predecessors, name
            self._say(name, Status(message.serial))
        elif isinstance(message, Exclude):
            self._say(name, AckExclude(message.serial, self.L))
        elif isinstance(message, ReqCoord):
            self._on_req_coord(name, message)
        elif isinstance(message, Cjoin):
            self._on_cjoin(name)

    # Algorithm 3: the main loop

    def _on_round(self) -> None:
        if not self.in_core:
            return
        if self.rounds and len(self.alive.intersection(self.L)) < self.config.enough:
            self._disconnect("too few ALIVE")
            return
        self.rounds += 1
        self.host.emit(Proceeded())
        self.alive.clear()
        self._send_alive()
        if self.temp_rounds == 0:
            self._update()
        else:
            self.temp_rounds -= 1
            self._take_if_due()
        self.host.after(self.config.round, self._on_round)

    def _send_alive(self) -> None:
        others = [self.cview[ticket] for ticket in successors(self.i, self.cview, self.config.n) if ticket != self.i]
        for name in others[: self.config.reach]:
            self._say(name, Alive())

    def _to_send(self) -> Names:
        """R: p and the 2k closest predecessors in L_p."""
        return (self.me, *self.L[: self.config.reach - 1])

    def _update(self) -> None:
        if self._excluding or self.immed_succ == self.me:
            return
        predecessors, successor = self._to_send(), self.immed_succ
        self._send(successor, lambda serial: Update(serial, predecessors), lambda answer: self._on_status(successor, predecessors, answer))

    def _on_status(self, successor: str, predecessors: Names, answer: Message | None) -> None:
        if successor != self.immed_succ or self._excluding:
            return
        if answer is not None:
            self.R = predecessors
        elif self.host.random.random() < self.config.p_exclude:
            self._exclude()

    # Algorithm 4: handling of messages

    def _on_ack_cjoin(self, q: str, ack: AckCjoin) -> None:
        if self.i >= 0:
            return
        self.cview = dict(ack.view)
        self.L, self.R = ack.predecessors, ()
        self.i, self.j = ack.t, ack.j
        self.immed_succ, self.immed_pred = self.cview[ack.j], q
        self.in_core = True
        self._say(q, Status(ack.serial))
        self._send_alive()
        for name in self._group:
            self._say(name, PrCast(self.i))
        self.host.emit(ArcChanged(self.i, self.j))
        self.host.after(self.phase, self._on_round)

    def _on_news(self, name: str, news: PrCast) -> None:
        n, now = self.config.n, self.host.now
        self._blocked = [block for block in self._blocked if block[0] > now]
        if not any(news.ticket in _between(i, j, n) for _, i, j in self._blocked):
            self.cview[news.ticket] = name

    def _on_cjoin(self, q: str) -> None:
        free = self.coordinates[1:]
        if not free or self.temp_rounds or self._excluding:
            self._say(q, Reject())
            return
        t, j = self.choose(free), self.j
        view = tuple(sorted({**self.cview, j: self.immed_succ, t: q}.items()))
        self.cview[t] = self.immed_succ = q
        self.j = t
        self.host.emit(ArcChanged(self.i, self.j))
        predecessors = self._to_send()
        self._send(q, lambda serial: AckCjoin(serial, predecessors, t, j, view), lambda answer: self._on_status(q, predecessors, answer))

    # Algorithm 5: exclusion

    def _exclude(self) -> None:
        """The next possible successor of Cview is asked; if it does not answer, the one after it."""
        order = successors(self.i, self.cview, self.config.n)
        following = [ticket for ticket in order if ticket != self.i]
        names = [self.cview[ticket] for ticket in following]
        behind = following[names.index(self.immed_succ) + 1 :] if self.immed_succ in names else following
        if not behind:
            self._disconnect("nobody answers")
            return
        self._excluding = True
        self.immed_succ, j = self.cview[behind[0]], behind[0]
        self._send(self.immed_succ, Exclude, lambda answer: self._on_ack_exclude(j, answer))

    def _on_ack_exclude(self, j: int, answer: Message | None) -> None:
        if not isinstance(answer, AckExclude):
            self._exclude()
            return
        excluded = tuple(self.cview[ticket] for ticket in _between(self.i, j, self.config.n) if ticket in self.cview)
        self._serial += 1
        self._asked, self._acks = self._serial, set()
        for name in self.R:
            if name == self.me and name in answer.predecessors:
                self._remove(self.i, j)
                self._acks.add(name)
            elif name in answer.predecessors:
                self._say(name, ReqCoord(self._asked, self.i, j))
        self.host.after(2 * self.config.delta, lambda: self._on_acknowledged(excluded, j))

    def _on_ack_coord(self, name: str, ack: AckCoord) -> None:
        if ack.serial == self._asked:
            self._acks.add(name)

    def _on_acknowledged(self, excluded: Names, j: int) -> None:
        if not self.in_core:
            return
        if len(self._acks) <= self.config.k:
            self._disconnect("too few ACKCOORD")
            return
        self._excluding = False
        self._takes = j
        self.temp_rounds = distance(self.i, j, self.config.n) - 1
        self.host.emit(Acknowledged(excluded, self.immed_succ, self.temp_rounds))
        self._take_if_due()

    def _take_if_due(self) -> None:
        if self.temp_rounds == 0:
            self.j = self._takes
            self.host.emit(ArcChanged(self.i, self.j))

    def _on_req_coord(self, p: str, request: ReqCoord) -> None:
        if self.i not in _between(request.i, request.j, self.config.n):
            self._say(p, AckCoord(request.serial))
            self._remove(request.i, request.j)

    def _remove(self, i: int, j: int) -> None:
        """Those between leave Cview, and no news of them is believed for dist(p, q) rounds."""
        n = self.config.n
        for ticket in _between(i, j, n):
            self.cview.pop(ticket, None)
        self._blocked.append((self.host.now + distance(i, j, n) * self.config.round, i, j))

    # Sending

    def _disconnect(self, why: str) -> None:
        self.in_core = False
        for _, timer in self._sends.values():
            timer.cancel()
        self._sends.clear()
        self.host.emit(Disconnected(why))

    def _send(self, to: str, message: Callable[[int], Message], then: Callable[[Message | None], None]) -> None:
        """``then`` is told the answer, or None: delta has passed and nothing is known."""
        self._serial += 1
        serial = self._serial
        self._sends[serial] = then, self.host.after(self.config.delta, lambda: self._settle(serial, None))
        self._say(to, message(serial))

    def _settle(self, serial: int, answer: Message | None) -> None:
        entry = self._sends.pop(serial, None)
        if entry is not None:
            then, timer = entry
            timer.cancel()
            then(answer)

    def _say(self, to: str, message: Message) -> None:
        if to != self.me:
            self.host.send(NodeId(to, 1), message)


def _between(i: int, j: int, n: int) -> tuple[int, ...]:
    """The tickets after i and before j."""
    return coordinated(i, j, n)[1:]
