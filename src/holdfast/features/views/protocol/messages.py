"""What servers and clients of views say to each other.  Spec: views 3, D14, D24, D30; tags 128 to 139.

Ages and moments: a stamp is a reading of the clock of the server that gave it, and only that life of it may count with it. An age is what
the answerer counted up to its answer, so the asker subtracts it from the moment at which it asked.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, NamedTuple

from msgspec import Meta

from holdfast.bounds import Growing, Instant, Name, Number, Seconds, Slot, Small
from holdfast.features.views.protocol.config import CLIENTS_MAX, SERVERS_MAX
from holdfast.host import Address, Message, NodeId, ViewId, ViewMember
from holdfast.kit.parcels import Parcel

KEY_BYTES = 16
NEVER = 1e9  # an age: it was never confirmed

KeyDigest = Annotated[bytes, Meta(min_length=KEY_BYTES, max_length=KEY_BYTES)]

STABLE, CHANGING, ATTACHING, UNKNOWN, REFUSED = range(5)  # ``ClientPong.state``
Attach = Annotated[int, Meta(ge=0, le=1 << 40)]  # one more per attachment: no life gets near it, and a lie leaves room above
Answer = Annotated[int, Meta(ge=0, le=REFUSED)]
# ``OvResult.why``; 0 with ``ok``.
DELIVERED, NOT_A_MEMBER, NO_PATH, RECEIVER_LOST, BUSY = range(5)
Why = Annotated[int, Meta(ge=0, le=BUSY)]
WHY = {NOT_A_MEMBER: "not a member", NO_PATH: "no path", RECEIVER_LOST: "receiver lost", BUSY: "busy"}


class Known(NamedTuple):
    """What a server holds of one slot."""

    slot: Slot
    life: NodeId  # of the server there
    seq: Number  # of its LSA; 0: none is held
    age: Seconds  # since a moment at which that LSA was its present one
    num: Growing  # the highest number known of it
    num_age: Seconds  # since a moment at which it had that number


class Listed(NamedTuple):
    """A client in an LSA."""

    life: NodeId
    attach: Attach
    address: Address


class LinkPing(Message, frozen=True, tag=128):
    """A server asks another slot."""

    greeting: ClassVar[bool] = True
    seq: Number
    slot: Slot  # the asker's
    used: bool = True  # the asker knows of clients somewhere: a seat that does not serve views yet begins to


class LinkPong(Message, frozen=True, tag=129):
    """What the answerer is and holds, after it looked (5.4)."""

    seq: Number
    slot: Slot  # the answerer's
    known: Annotated[tuple[Known, ...], Meta(max_length=SERVERS_MAX)]


class Lsa(Message, frozen=True, tag=130):
    """The servers that one server has links with, and the clients attached to it."""

    slot: Slot
    origin: NodeId
    seq: Number
    up: Annotated[tuple[NodeId, ...], Meta(max_length=SERVERS_MAX)]
    clients: Annotated[tuple[Listed, ...], Meta(max_length=CLIENTS_MAX)]


class LsaWant(Message, frozen=True, tag=131):
    """Your pong named newer LSAs than I hold."""

    slots: Annotated[tuple[Slot, ...], Meta(max_length=SERVERS_MAX)]


class Propose(Message, frozen=True, tag=132):
    """One server's only proposal under this number."""

    slot: Slot
    origin: NodeId
    num: Growing
    key: KeyDigest
    peak: Small
    done: bool  # the origin has delivered it
    ttl: Small
    dst: NodeId


class ClientPing(Message, frozen=True, tag=133):
    """A client to its server, once per heartbeat. The second one of an attachment, which brings the first stamp back, attaches."""

    greeting: ClassVar[bool] = True
    attach: Attach
    seq: Number
    server: Growing  # boot of the life that gave the stamp; 0: none did in this attachment
    stamp: Instant  # of the newest pong of this attachment; 0 if there is none
    last_num: Growing
    leave: bool = False
    want_full: bool = False  # the last view came as a delta that does not fit (D14)
    address: Address | None = None  # until it is attached


class ClientPong(Message, frozen=True, tag=134):
    """The answer to a ping."""

    attach: Attach
    seq: Number
    state: Answer
    view: ViewId | None  # with STABLE
    sc: Number
    hint: Attach  # with UNKNOWN: the attach number that must be exceeded
    stamp: Instant


class StartChange(Message, frozen=True, tag=135):
    """A change begins, or moves to a higher number."""

    attach: Attach
    sc: Number
    num: Growing


class ViewMsg(Message, frozen=True, tag=136):
    """A view that the server delivered: whole, or as what differs from the view ``base`` (D14)."""

    attach: Attach
    echo: Number  # newest ping seen
    id: ViewId
    servers: Annotated[tuple[NodeId, ...], Meta(max_length=SERVERS_MAX)]
    base: ViewId | None  # None: ``members`` is the whole list
    members: Annotated[tuple[ViewMember, ...], Meta(max_length=CLIENTS_MAX)]  # all, or those that are new or attached otherwise
    gone: Annotated[tuple[Name, ...], Meta(max_length=CLIENTS_MAX)]
    size: Small  # of the view
    digest: KeyDigest  # of all its members
    fleet: Small


class OvData(Message, frozen=True, tag=137):
    """A message under way through the overlay; ``hop`` is acknowledged by each receiver."""

    src: NodeId
    mid: Number  # of src's life
    dst: NodeId
    view: ViewId
    parcel: Parcel
    ttl: Small  # servers that it may still be handed on to
    hop: Number
    last: bool = False  # from a server to the receiver itself


class HopAck(Message, frozen=True, tag=138):
    """That hop arrived."""

    hop: Number


class OvResult(Message, frozen=True, tag=139):
    """To the sender: delivered to the client, or given up."""

    src: NodeId  # of the message
    mid: Number
    ok: bool
    why: Why
    ttl: Small
    hops: Small = 0  # that the message took, with ``ok``


TYPES: tuple[type[Message], ...] = (
    LinkPing, LinkPong, Lsa, LsaWant, Propose, ClientPing, ClientPong, StartChange, ViewMsg, OvData, HopAck, OvResult,
)  # fmt: skip
