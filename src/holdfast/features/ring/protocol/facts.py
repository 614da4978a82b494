"""What happened inside a ring, for traces, metrics and checkers; users get ``holdfast.events``.  Spec: ring 9 (events)."""

from __future__ import annotations

from typing import ClassVar

from holdfast.events import Internal
from holdfast.features.ring.protocol.ids import RingId


class RingFact(Internal, frozen=True):
    """Base of the facts of a ring."""

    family: ClassVar[str] = "ring"


class BecameMember(RingFact, frozen=True):
    """This node is a member of a ring now."""

    ring: int
    id: RingId
    founded: bool


class Departed(RingFact, frozen=True):
    """It no longer is, or gave up an attempt to join."""

    id: RingId
    reason: str
    was_member: bool


class Suspicion(RingFact, frozen=True):
    """A lease on an obliged pair ran out."""

    peer: RingId
    epoch: int
    at: float  # nominal, own clock: the own deadline counts from it
    stop: float  # when acking stopped, own clock: the declaration counts from it (D28)
    entitled: bool


class Won(RingFact, frozen=True):
    """A majority of the arbitrators agreed."""

    peer: RingId
    epoch: int
    entitled: bool  # False: the pair was HALF, nothing is known about the peer
    stop: float


class Lost(RingFact, frozen=True):
    """They did not, or did not in time."""

    peer: RingId
    epoch: int
    why: str


class Removed(RingFact, frozen=True):
    """An id went from the member list."""

    id: RingId
    certain: bool
    reason: str
    gen: int  # the own generation after it


class NeighbourhoodChanged(RingFact, frozen=True):
    """The k nearest on each side are others now."""

    nbrs: tuple[RingId, ...]


class GroupProposed(RingFact, frozen=True):
    """An opener wants another arbitrator group for a pair."""

    peer: RingId
    epoch: int
    ver: int
    size: int


class JoinStarted(RingFact, frozen=True):
    """A candidate knocks."""

    id: RingId
    attempt: int


class PhaseReached(RingFact, frozen=True):
    """A candidate got so far: "lock", "open", "ready"."""

    id: RingId
    phase: str


class JoinRetry(RingFact, frozen=True):
    """An attempt to join failed; the next one follows."""

    why: str
    delay: float


class Overslept(RingFact, frozen=True):
    """A session's end came so late that the socket is read first (D6)."""

    seconds: float


class LinkBroken(RingFact, frozen=True):
    """For so long, nothing but relays has kept the lease on this peer (P1). Said again as long as it lasts."""

    peer: RingId
    seconds: float


class LinkMended(RingFact, frozen=True):
    """A link that was reported as broken answers again."""

    peer: RingId
    seconds: float  # for which it did not
