"""What limiters say to each other.  Spec: limits 3, H265; views D30; foundation F3; tags 152 to 161.

Every message names the instance that it is of. Amounts are what is outstanding since ``lb``, not what is new (``kit.ledger``). A limit is
named by the number of ``key_of``: so all portions of 256 limits fit a parcel, whatever they are called.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.bounds import U64, Number, Small
from holdfast.features.limits.protocol import choke
from holdfast.features.limits.protocol.config import AMOUNT_MAX, LIMITS_MAX, PORTIONS_MAX
from holdfast.host import Message, ViewId

Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
Portions = Annotated[dict[U64, Amount], Meta(max_length=PORTIONS_MAX)]
Quotas = Annotated[dict[U64, Amount], Meta(max_length=2 * LIMITS_MAX)]  # of limits that are there, and of some that were
Step = Annotated[int, Meta(ge=1, le=3)]
Round = Annotated[int, Meta(ge=0, le=3)]


class OfInstance(Message, frozen=True):
    """What all have in common: of which instance they are."""

    inst: ViewId


class Gossip(OfInstance, frozen=True, tag=152):
    """Weight and portions for you, and whatever of mine you have not acknowledged (5.3)."""

    size: Small  # members of the instance
    lb: Number
    seq: Number
    w: Amount
    p: Portions


class GossipAck(OfInstance, frozen=True, tag=153):
    """I have taken everything up to ``seq``; or: I am in a newer instance, and took nothing."""

    seq: Number
    newer: ViewId | None = None


class Probe(OfInstance, frozen=True, tag=154):
    """Does the direct link work again? 1 asks, 2 answers, 3 answers that (5.4)."""

    step: Step
    nonce: Number


class Reconcile(OfInstance, frozen=True, tag=155):
    """What is stranded on a link, by the overlay. 0: an exchange (D14), not answered for a loss; 1 to 3: round by round (5.4)."""

    carried: ClassVar[bool] = True
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


class Ask(OfInstance, frozen=True, tag=156):
    """This much quota of an exact limit I could use (5.5). By the overlay to one whose link is cut."""

    carried: ClassVar[bool] = True
    key: U64
    need: Amount


class Give(OfInstance, frozen=True, tag=157):
    """Quota for you, and whatever of it you have not acknowledged."""

    lb: Number
    seq: Number
    q: Quotas


class GiveAck(OfInstance, frozen=True, tag=158):
    """I have taken it."""

    seq: Number


class Demand(OfInstance, frozen=True, tag=159):
    """To the collector: what I want (5.8). May go by the overlay."""

    carried: ClassVar[bool] = True
    seq: Number
    d: Portions
    is_round: bool  # it came by the overlay, and so shall the answer


class Sum(OfInstance, frozen=True, tag=160):
    """From the collector: what all of us want."""

    carried: ClassVar[bool] = True
    seq: Number  # of the demand that it answers
    a: Portions
    counted: Small  # members whose demand is in it
    is_round: bool


class Cuts(OfInstance, frozen=True, tag=161):
    """To the smallest member: whom I do not reach directly, by their places in the list of members (5.9)."""

    carried: ClassVar[bool] = True
    places: Annotated[tuple[Small, ...], Meta(max_length=choke.MEMBERS_MAX)]


TYPES: tuple[type[OfInstance], ...] = (Gossip, GossipAck, Probe, Reconcile, Ask, Give, GiveAck, Demand, Sum, Cuts)
