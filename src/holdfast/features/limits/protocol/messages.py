"""What limiters say to each other.  Spec: limits 3, H265; views D30; foundation F3; tags 152 to 160.

Every message names the instance that it is of. Amounts are what is outstanding since ``lb``, not what is new (``kit.ledger``). A limit is
named by the number of ``key_of``: so all portions of 256 limits fit a parcel, whatever they are called.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.bounds import U64, Number, Small
from holdfast.features.limits.protocol.config import AMOUNT_MAX, LIMITS_MAX, PORTIONS_MAX
from holdfast.host import Message, ViewId

Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
Portions = Annotated[dict[U64, Amount], Meta(max_length=PORTIONS_MAX)]
Quotas = Annotated[dict[U64, Amount], Meta(max_length=2 * LIMITS_MAX)]  # of limits that are there, and of some that were
Step = Annotated[int, Meta(ge=1, le=3)]
Round = Annotated[int, Meta(ge=0, le=3)]


class Gossip(Message, frozen=True, tag=152):
    """Weight and portions for you, and whatever of mine you have not acknowledged (5.3)."""

    inst: ViewId
    size: Small  # members of the instance
    lb: Number
    seq: Number
    w: Amount
    p: Portions


class GossipAck(Message, frozen=True, tag=153):
    """I have taken everything up to ``seq``; or: I am in a newer instance, and took nothing."""

    inst: ViewId  # of the gossip
    seq: Number
    newer: ViewId | None = None


class Probe(Message, frozen=True, tag=154):
    """Does the direct link work again? 1 asks, 2 answers, 3 answers that (5.4)."""

    inst: ViewId
    step: Step
    nonce: Number


class Reconcile(Message, frozen=True, tag=155):
    """What is stranded on a link, by the overlay. 0: an exchange (D14), not answered for a loss; 1 to 3: round by round (5.4)."""

    carried: ClassVar[bool] = True
    inst: ViewId
    step: Round
    lb: Number
    seq: Number
    w: Amount
    p: Portions
    ack: Number  # newest number taken from the receiver
    qlb: Number  # the same for quota
    qseq: Number
    q: Quotas
    qack: Number


class Ask(Message, frozen=True, tag=156):
    """This much quota of an exact limit I could use (5.5)."""

    inst: ViewId
    key: U64
    need: Amount


class Give(Message, frozen=True, tag=157):
    """Quota for you, and whatever of it you have not acknowledged."""

    inst: ViewId
    lb: Number
    seq: Number
    q: Quotas


class GiveAck(Message, frozen=True, tag=158):
    """I have taken it."""

    inst: ViewId
    seq: Number


class Demand(Message, frozen=True, tag=159):
    """To the collector: what I want (5.8). May go by the overlay."""

    carried: ClassVar[bool] = True
    inst: ViewId
    seq: Number
    d: Portions


class Sum(Message, frozen=True, tag=160):
    """From the collector: what all of us want."""

    carried: ClassVar[bool] = True
    inst: ViewId
    seq: Number  # of the demand that it answers
    a: Portions
    counted: Small  # members whose demand is in it


TYPES: tuple[type[Message], ...] = (Gossip, GossipAck, Probe, Reconcile, Ask, Give, GiveAck, Demand, Sum)
