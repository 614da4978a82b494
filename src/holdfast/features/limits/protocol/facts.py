"""Facts inside the protocol of limits, for traces, checkers, metrics and the page.  Spec: limits 9."""

from __future__ import annotations

from typing import ClassVar

from holdfast.events import Internal
from holdfast.host import NodeId, ViewId


class LimitFact(Internal, frozen=True):
    """Base of these facts."""

    family: ClassVar[str] = "limits"


class InstanceBegan(LimitFact, frozen=True):
    """This member began to gossip anew: a view was delivered, or a peer knows a newer one (``provisional``)."""

    inst: ViewId
    size: int
    provisional: bool


class InstanceConfirmed(LimitFact, frozen=True):
    """The view that a peer knew was delivered here, too."""

    inst: ViewId


class Panicked(LimitFact, frozen=True):
    """There is no lease: 1/n from now on, or less."""

    why: str


class Calmed(LimitFact, frozen=True):
    """There is a lease again."""

    inst: ViewId | None


class Lapsed(LimitFact, frozen=True):
    """All that could count on this member have stopped: it takes its 1/n, and acts in this instance no more (D20, D23)."""

    inst: ViewId | None


class Raised(LimitFact, frozen=True):
    """Quota of an exact limit came back to 1/n, ``settle`` after the instance began."""

    name: str
    by: int


class QuotaGiven(LimitFact, frozen=True):
    """Quota left this member: from now on it belongs to ``to``."""

    key: int
    to: NodeId
    amount: int


class QuotaTaken(LimitFact, frozen=True):
    """Quota of another member is this one's."""

    key: int
    by: NodeId
    amount: int


class Reconciled(LimitFact, frozen=True):
    """What was stranded on the link with this peer is home on both sides, or was exchanged with it."""

    peer: NodeId
    step: int


class WentQuiet(LimitFact, frozen=True):
    """Nothing changes: it speaks less (D26)."""


class Woke(LimitFact, frozen=True):
    """Something changed: it speaks at full pace."""
