"""What members say to each other about a name.  Spec: election 3; paper 004, Algorithms 1 to 4.

All carry the name and how it is elected. Whose question it is says the envelope (F3): an ``eid`` counts the elections of one life.
No message carries news about members (D4).
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from msgspec import Meta

from holdfast.bounds import MEMBERS_MAX, Growing, Label, Number, Seconds, Slot
from holdfast.features.election.protocol.config import XY_MAX
from holdfast.features.election.protocol.manner import Manner
from holdfast.host import Address, Message, NodeId

RANK_BYTES_MAX = 136  # of a rank attribute: four tags of 33 bytes, and room

RankKey = Annotated[bytes, Meta(max_length=RANK_BYTES_MAX)]
Metric = Annotated[float, Meta(ge=0.0, le=1e15)]
Known = Annotated[int, Meta(ge=0, le=MEMBERS_MAX)]
Few = Annotated[int, Meta(ge=0, le=XY_MAX)]


class Standing(NamedTuple):
    """A candidate as one list has it: its rank attribute, how new that is, and where it is told so: the initiator may not list it."""

    id: NodeId
    rank: RankKey
    inc: Number
    address: Address


class Unhealthy(NamedTuple):
    """A candidate that one list holds to be unhealthy."""

    id: NodeId
    value: Metric


class Crown(NamedTuple):
    """A reign: which term, and whose."""

    term: Growing
    leader: NodeId


class OfElection(Message, frozen=True):
    """What all have in common."""

    name: Label
    manner: Manner


class Query(OfElection, frozen=True, tag=112):
    """Which x candidates rank first in your list, the y most unhealthy left out? ``sync``: what is the highest term you promised?"""

    eid: Number
    x: Few
    y: Few
    term: Growing  # highest that the asker knows
    sync: bool = False


class Response(OfElection, frozen=True, tag=113):
    """These, by a list that no question changes."""

    eid: Number
    candidates: Annotated[tuple[Standing, ...], Meta(max_length=XY_MAX)] = ()
    excluded: Annotated[tuple[Unhealthy, ...], Meta(max_length=XY_MAX)] = ()
    term: Growing = 0  # highest that was promised, or heard of
    active: Crown | None = None  # the newest reign known to be active
    leader_listed: bool = False  # that leader is in this list
    known: Known = 0  # names that are not forgotten here
    busy: NodeId | None = None  # a better-ranked initiator
    voter: bool = False


class NotifyLeader(OfElection, frozen=True, tag=114):
    """You are named. ``final``: by c+1 answers."""

    eid: Number
    term: Growing
    final: bool


class NotifyNack(OfElection, frozen=True, tag=115):
    """That term is taken, or (``gone``) this member stands no more."""

    eid: Number
    term: Growing
    gone: bool = False


class Leader(OfElection, frozen=True, tag=116):
    """That life is named, or (``active``) leads. ``final``: by an initiator that has finished."""

    term: Growing
    leader: NodeId
    active: bool
    final: bool = False


class LeaderAck(OfElection, frozen=True, tag=117):
    """This voter accepts that term, or has promised another one."""

    term: Growing
    ok: bool
    promised: Growing
    known: Known


class AskTerm(OfElection, frozen=True, tag=118):
    """To a seat: may this life lead under that term? The promise excludes no other for longer than ``length``; the term is spent."""

    greeting = True

    serial: Number
    term: Growing
    length: Seconds


class TermWord(OfElection, frozen=True, tag=119):
    """A seat's answer."""

    serial: Number
    slot: Slot
    granted: bool
    number: Growing  # the recorded one
    wait: Seconds
    era: Number


TYPES: tuple[type[OfElection], ...] = (Query, Response, NotifyLeader, NotifyNack, Leader, LeaderAck, AskTerm, TermWord)
