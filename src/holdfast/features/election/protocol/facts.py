"""What happened inside elections, for traces, metrics and checkers; users get ``holdfast.events``.  Spec: election 9."""

from __future__ import annotations

from typing import ClassVar

from holdfast.events import Internal
from holdfast.host import NodeId


class ElectionFact(Internal, frozen=True):
    """Base of the facts of elections: about one name."""

    family: ClassVar[str] = "election"
    name: str


class VoterReady(ElectionFact, frozen=True):
    """This member may promise again (5.2). ``answers``: of others that it asked; 0: it remembers, or nothing can be forgotten."""

    answers: int


class Initiated(ElectionFact, frozen=True):
    """An election began here. ``asked``: the members that were asked first."""

    eid: int
    x: int
    y: int
    asked: tuple[NodeId, ...]
    why: str  # "watch", "gone", "elect", "retry", "empty", "violation"


class Nominated(ElectionFact, frozen=True):
    """NOTIFYLEADER was sent to a nominee that is another one than before, or under another term."""

    eid: int
    nominee: NodeId
    term: int
    final: bool
    used: int  # answers so far


class Yielded(ElectionFact, frozen=True):
    """This initiator gave up for a better-ranked one (D11)."""

    eid: int
    initiator: NodeId


class Tentative(ElectionFact, frozen=True):
    """This member was named, and may not act yet."""

    term: int


class TentativeExpired(ElectionFact, frozen=True):
    """It was named, and no initiator finished, or no majority answered."""

    term: int


class Elected(ElectionFact, frozen=True):
    """This member leads under this term; again with the same one after a pause (5.9)."""

    term: int


class Unsure(ElectionFact, frozen=True):
    """This leader was stopped for a while, and asks before it acts again."""

    term: int


class SteppedDown(ElectionFact, frozen=True):
    """This member leads, or is named, under this term no more. ``why``: "superseded", "no support", "conflict", "refused", "resigned",
    "unsure", "withdrawn"."""

    term: int
    why: str
    active: bool  # it led


class ElectionFailed(ElectionFact, frozen=True):
    """An election that began here came to nothing."""

    why: str  # "responses", "notify"
    got: int
    needed: int


class RankViolation(ElectionFact, frozen=True):
    """This member ranks before the new leader, and was eligible (D6)."""

    leader: NodeId
    term: int


class CBound(ElectionFact, frozen=True):
    """The c of this name changed by more than a quarter."""

    c: int
    f: int


class CBoundUnusable(ElectionFact, frozen=True):
    """The lists are too inconsistent, or the group is too small: the rank of the leader is best effort."""

    want: int
    most: int


class TermConflict(ElectionFact, frozen=True):
    """Another member leads under this member's own term: an assumption broke."""

    term: int
    other: NodeId
