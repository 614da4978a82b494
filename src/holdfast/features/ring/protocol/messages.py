"""What members of a ring say to each other.  Spec: ring 3; paper 000, sections III to V.

Every message between memberships names the ring, the sender's id and the ``inc`` it is meant for: a life may hold several ids
one after the other, and what was meant for a former one must not count for the present one. Names are the paper's.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.bounds import U64, Generation, Growing, Number
from holdfast.features.ring.protocol.ids import Peer, RingId
from holdfast.host import Address, Message

# What a peer may send. Two lists of 2k neighbours and a group of 2 + 4k, k up to 8, with room to spare.
Neighbours = Annotated[tuple[Peer, ...], Meta(max_length=64)]
Group = Annotated[tuple[RingId, ...], Meta(max_length=64)]
Reason = Annotated[str, Meta(max_length=64)]


class OfRing(Message, frozen=True):
    """What all messages between two memberships have in common."""

    ring: U64
    source: RingId
    to: U64  # the receiver's inc


class Lease(OfRing, frozen=True):
    """What a lease request and its answer have in common: the pair's state, as the sender has it."""

    epoch: Growing  # which instance of this pair
    n: Number  # session
    ver: Growing  # of the arbitrator group
    want: bool  # I want to keep this pair
    gen: Generation  # my fencing generation
    seen: Generation  # yours, as I know it
    view: U64  # hash of my neighbours
    knows: U64  # hash of your neighbours, as I know them
    nbrs: Neighbours = ()  # the list itself, when you do not know it
    cfg: Group = ()  # the arbitrator group of ``ver``, when it is news


class LeaseRequest(Lease, frozen=True, tag=16):
    """LR: are you there? Also what opens a pair and what makes it binding."""

    open: bool = False  # create your side of the pair
    join: bool = False  # I am a candidate that holds your lock
    ready: bool = False  # I am obliged now: you may become ACTIVE
    peer: Peer | None = None  # who I am and where, while you may not know it


class LeaseAck(Lease, frozen=True, tag=17):
    """ACK: I am, and I do not suspect you."""


class LeaseNak(OfRing, frozen=True, tag=18):
    """NAK: I do not hold this instance and never will."""

    epoch: Growing


class ArbUpgrd(OfRing, frozen=True, tag=19):
    """The opener proposes another arbitrator group."""

    epoch: Growing
    ver: Growing
    cfg: Group
    peers: Neighbours = ()  # where those of the group are whom you may not know


class ArbUpgrdAck(OfRing, frozen=True, tag=20):
    """The responder has this version."""

    epoch: Growing
    ver: Growing


class Dissolve(OfRing, frozen=True, tag=21):
    """Neither of us wants this pair; I have given up my right."""

    epoch: Growing


class Dissolved(OfRing, frozen=True, tag=22):
    """I have dropped it."""

    epoch: Growing


class Want(OfRing, frozen=True, tag=23):
    """I want a pair with you and you have the lower id: please open it."""

    nbrs: Neighbours


class Arb(OfRing, frozen=True, tag=24):
    """I suspect ``accused``: may I hold it to be dead? ``source`` is the accuser."""

    greeting: ClassVar[bool] = True  # static arbitrators are known by their address alone
    serial: Number
    accused: RingId
    epoch: Growing
    ver: Growing


class Vote(OfRing, frozen=True, tag=25):
    """The answer of one arbitrator."""

    serial: Number
    accept: bool


class Leave(OfRing, frozen=True, tag=26):
    """I am no member any more."""

    reason: Reason
    gen: Generation


class Gone(OfRing, frozen=True, tag=27):
    """This id is over."""

    id: RingId
    certain: bool


class Gen(OfRing, frozen=True, tag=28):
    """My generation rose."""

    epoch: Growing
    gen: Generation
    seen: Generation
    reply: bool


NOWHERE = Address("", 0)


class Answer(IntEnum):
    """How a member answers a candidate."""

    OK = 0
    BUSY = 1
    REDIRECT = 2
    NO_MEMBER = 3  # I am in no ring myself


class Discover(Message, frozen=True, tag=29):
    """Phase 1: who are my neighbours?"""

    greeting: ClassVar[bool] = True
    serial: Number
    candidate: RingId
    former: Group  # my last memberships in this life; they are over, and no client acts under them any more
    over: bool  # so is every earlier life of this name at this address (F6)
    address: Address = NOWHERE  # where I am reached; a life of my name that was elsewhere may be another process


INVITED = 0  # serials begin at 1


class Discovered(Message, frozen=True, tag=30):
    """The owner of the candidate's position and its neighbours, or whom to ask instead."""

    serial: Number  # INVITED: no answer; I had to send you away, and now my door is open
    answer: Answer
    ring: U64
    view: Neighbours  # OK: owner and its neighbours; REDIRECT: the owner alone
    seeded: bool  # a majority of the seeds is in this ring
    asked: Address  # where I am
    gen: Generation = 0  # NO_MEMBER: the highest generation I ever knew, should you found a ring


class Lock(OfRing, frozen=True, tag=31):
    """Phase 2: admit no other candidate for a while. ``source`` is the candidate."""

    serial: Number


class Locked(OfRing, frozen=True, tag=32):
    """Granted, with what the grantor knows of its neighbourhood; or not."""

    serial: Number
    granted: bool
    view: Neighbours


class Unlock(OfRing, frozen=True, tag=33):
    """The candidate has given up."""


class Vouch(OfRing, frozen=True, tag=34):
    """Does any member monitor this one?"""

    about: RingId


class Vouched(OfRing, frozen=True, tag=35):
    """I do, or I do not."""

    about: RingId
    active: bool


class FoundAsk(Message, frozen=True, tag=36):
    """A seed would found a ring (D20), or has given it up."""

    greeting: ClassVar[bool] = True
    serial: Number
    withdraw: bool = False  # the attempt of this serial is over


class FoundPromise(Message, frozen=True, tag=37):
    """Another seed's answer: it will found nothing itself for a while, or it knows why the asker should not."""

    serial: Number
    granted: bool
    member: bool  # I am in a ring: join it through me
    seed: Address  # which of the seeds I am
    gen: Generation = 0  # the highest generation I ever knew: tokens of a ring that is founded now have to be larger
    guide: Address | None = None  # I am in no ring, and know a process that is


class Relay(OfRing, frozen=True, tag=38):
    """P1: pass this on to ``target``, and its answer back to me."""

    target: RingId
    request: LeaseRequest


class Relayed(OfRing, frozen=True, tag=39):
    """P1: a lease request on its way by another road; answer to whom it came from."""

    request: LeaseRequest


class RelayedAck(OfRing, frozen=True, tag=40):
    """P1: the answer, on its way back. ``origin`` is whom it is for."""

    origin: RingId
    ack: LeaseAck


class Here(OfRing, frozen=True, tag=41):
    """P3: I am alive, should a member accuse me. ``peer`` is the one that might."""

    peer: RingId


class Propose(OfRing, frozen=True, tag=42):
    """The paper's first phase of a group upgrade (lab only): may the pair with ``peer`` move to this version?"""

    serial: Number
    peer: RingId
    epoch: Growing
    ver: Growing


class Proposed(OfRing, frozen=True, tag=43):
    """The answer of one arbitrator to a proposal."""

    serial: Number
    accept: bool
