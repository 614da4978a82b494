"""What the machine shows of a name to agents, pages and checkers: records, no state.  Spec: election 10."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from holdfast.features.election.protocol.manner import Manner
from holdfast.host import NodeId


class Role(IntEnum):
    """What this member is in one name."""

    FOLLOWER = 0
    TENTATIVE = 1  # named by an initiator, not (yet) allowed to act
    ACTIVE = 2


class Reign(NamedTuple):
    """Who leads a name, as known here."""

    name: str
    leader: NodeId
    token: int  # the term
    active: bool  # False: tentative, it may not act yet
    listed: bool  # the own list has it
    manner: Manner


class Answered(NamedTuple):
    """One answer that an election used."""

    candidates: tuple[NodeId, ...]
    excluded: Mapping[NodeId, float]
    at: float  # seconds after the beginning


class Account(NamedTuple):
    """How the last election that began here went; also while it runs."""

    eid: int
    why: str  # as ``facts.Initiated`` has it
    began_at: float  # host clock
    x: int
    y: int
    c: int
    f: int
    asked: Mapping[NodeId, int]  # how often
    answers: Mapping[NodeId, Answered]  # in the order of arrival; this member itself is in it if it answered
    excluded: Mapping[NodeId, float]  # all that an answer excluded, with the largest value
    candidates: tuple[NodeId, ...]  # of all answers, excluded ones left out, best first
    nominee: NodeId | None
    term: int
    rounds: int
    retries: int
    outcome: str  # "": it runs; "elected", "yielded", "responses", "notify", "overtaken", "empty"
    took: float  # seconds until the outcome; 0.0 while it runs


class State(NamedTuple):
    """One name at this member, for checkers and pages."""

    name: str
    manner: Manner | None  # None: not known yet
    role: Role
    term: int  # of the own role; 0: FOLLOWER
    final: bool
    acks: frozenset[str]  # names that accepted the own term, or slots of seats as text
    needed: int  # W
    voter: bool
    promised: int
    promised_to: NodeId | None
    active: tuple[int, NodeId, bool] | None  # (term, leader, over): the newest reign known to be active
    shown: tuple[int, NodeId] | None  # the newest leader heard of, tentative or active
    running: bool  # an election of this member
    stands: bool  # a client of this member asks for the name
    c: int
    f: int
    deadline: float  # told to the client; -inf: none
