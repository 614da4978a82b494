"""What happened inside gossip, for traces, metrics and checkers; users get ``holdfast.events``.  Spec: gossip 9."""

from __future__ import annotations

from typing import ClassVar

from holdfast.events import Internal
from holdfast.host import NodeId


class GossipFact(Internal, frozen=True):
    """Base of the facts of gossip."""

    family: ClassVar[str] = "gossip"


class BecameMember(GossipFact, frozen=True):
    """This node is a member now. ``listed``: how many it lists, itself included; 1: it is the group."""

    listed: int


class JoinRetry(GossipFact, frozen=True):
    """No member has answered the knocks; the next ones follow."""

    attempt: int
    delay: float


class Settled(GossipFact, frozen=True):
    """This node has been a member for so long that all others list it (D10)."""

    after: float  # seconds since it became one


class Refuted(GossipFact, frozen=True):
    """It was accused, and has raised its ``inc``. ``by``: the member whose word came, or "" for a ghost of itself."""

    inc: int
    by: str


class ProbeFailed(GossipFact, frozen=True):
    """A probe was judged: neither the member nor a helper answered."""

    target: NodeId
    helpers: int
    nacks: int


class LastCall(GossipFact, frozen=True):
    """A suspected member is asked once more (D16)."""

    target: NodeId


class Overslept(GossipFact, frozen=True):
    """This node was away for so long that it judges no member for a while (5.8)."""

    seconds: float


class CBound(GossipFact, frozen=True):
    """The measured c changed (5.11)."""

    value: int


class Synced(GossipFact, frozen=True):
    """Tables were compared with this peer. ``differing``: buckets that were not equal; all 64 for a whole table."""

    peer: NodeId
    differing: int
