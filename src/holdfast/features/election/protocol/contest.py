"""One name at one member: its state, and nothing that it does.  Spec: election 2."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from holdfast.bounds import MEMBERS_MAX
from holdfast.features.election.protocol.manner import Manner
from holdfast.features.election.protocol.messages import Response
from holdfast.features.election.protocol.ranks import Candidate, hash_of, row_of
from holdfast.features.election.protocol.shown import Account, Role
from holdfast.host import NodeId, Timer
from holdfast.kit.hold import Holder

SPENT = NodeId("", 0)  # promised to a life that is not known: the term is taken
HEARD_MAX = 64  # initiators that are remembered


class Crowned(NamedTuple):
    """A reign that was active."""

    term: int
    leader: NodeId
    over: bool


class Wish:
    """What a client of this agent asks for: to lead the name."""

    def __init__(self, holder: Holder, length: float) -> None:
        self.holder, self.length = holder, length
        self.allowed = True
        self.deadline = -inf  # as told; -inf: nothing is granted
        self.timer: Timer | None = None  # of the next extension
        self.at_risk = False


class Run:
    """An election that this member initiated: its bounds, its answers and its nominee."""

    def __init__(self, eid: int, why: str, *, x: int, y: int, c: int, f: int, began_at: float) -> None:
        self.eid, self.why, self.x, self.y, self.c, self.f, self.began_at = eid, why, x, y, c, f, began_at
        self.needed = c + 1
        self.sticky = True
        self.got: dict[NodeId, Response] = {}
        self.got_at: dict[NodeId, float] = {}
        self.asked: dict[NodeId, int] = {}
        self.gone: dict[NodeId, None] = {}  # nominees that said that they stand no more
        self.nominee: NodeId | None = None
        self.term = 0  # nterm: of the last nomination
        self.hint = 0  # the highest term that an answer knew
        self.final = False  # the nominee was told that this is the end
        self.done = False  # c+1 answers are there
        self.led = False  # the nominee leads already
        self.rounds = 0
        self.retries = 0
        self.nacks = 0
        self.answered = False  # the nominee said something: it lives, and may lead soon
        self.timer: Timer | None = None


class Contest:
    """All that this member knows of one name, as candidate, as voter and as initiator."""

    def __init__(self, name: str, manner: Manner, now: float) -> None:
        self.name, self.manner = name, manner
        self.row = row_of(name)
        self.touched_at = now
        self.role = Role.FOLLOWER
        # As named, or as leader.
        self.term = 0
        self.final = False
        self.unsure = False  # it led under this term, was stopped, and asks
        self.began_at = 0.0
        self.acks: dict[str, None] = {}
        self.n_seen = 0
        self.spreads = 0
        self.candidacy: Timer | None = None
        self.respread: Timer | None = None
        self.weak_ticks = 0
        # As voter.
        self.voter = False
        self.promised = 0
        self.promised_to: NodeId | None = None
        # What is known.
        self.active: Crowned | None = None
        self.shown: tuple[int, NodeId] | None = None
        self.shown_at = -inf
        self.heard_from: tuple[int, NodeId] | None = None  # the reign that its leader itself spoke of last
        self.told: tuple[int, NodeId] | None = None  # LeaderChanged, as last emitted
        self.said_c = 0  # CBound, as last emitted
        self.floor = 0  # terms of this name are above it (F16)
        # As initiator.
        self.run: Run | None = None
        self.last: Account | None = None
        self.failures = 0  # elections in a row that came to nothing
        self.retry = (0, 0)  # x and y of an election that goes on in a moment; (0, 0): as configured
        self.retry_sticky = True
        self.greetings = 0  # times in a row that an election waited for a majority of seats
        self.yields = 0  # elections in a row that were given up for another initiator
        self.silent: dict[NodeId, int] = {}  # nominees that did not answer, in so many elections in a row
        self.heard: dict[NodeId, float] = {}  # initiators, and when
        self.boost = 0
        self.boost_until = -inf
        self.watch: Timer | None = None
        self.start: Timer | None = None  # of an election that begins in a moment
        self.wish: Wish | None = None
        self.inc = 0  # of the row that is published
        self.posted = b""
        self.unread = ""  # its health tag, while that is no number
        self.cached: tuple[int, Manner, tuple[Candidate, ...]] | None = None

    def pair(self, term: int, leader: NodeId) -> tuple[int, int, int]:
        """The key by which reigns compare: the larger term, then the better hash, then the newer life; everywhere the same (D22)."""
        return term, -hash_of(self.name, leader.name), leader.boot

    def order(self, life: NodeId) -> tuple[int, NodeId]:
        """The key by which initiators compare: the smaller one goes on (D11)."""
        return hash_of(self.name, life.name), life

    def hear(self, initiator: NodeId, now: float) -> None:
        self.heard.pop(initiator, None)
        if len(self.heard) >= HEARD_MAX:
            del self.heard[next(iter(self.heard))]
        self.heard[initiator] = now

    def quiet(self, now: float, seconds: float) -> bool:
        """True if no QUERY of another initiator was heard for so long."""
        return not any(now - at < seconds for at in self.heard.values())

    def raise_promise(self, term: int, leader: NodeId | None) -> None:
        """Count this term as promised to that life, if it is higher than the promise so far."""
        if term > self.promised:
            self.promised, self.promised_to = term, leader

    def show(self, term: int, leader: NodeId, now: float) -> None:
        """Note the member that early callers may contact, and its term."""
        self.shown, self.shown_at = (term, leader), now

    def see(self, known: int) -> None:
        self.n_seen = min(max(self.n_seen, known), MEMBERS_MAX)

    @property
    def stands(self) -> bool:
        """True if a client of this agent asks for the name and may have it."""
        return self.wish is not None and self.wish.allowed
