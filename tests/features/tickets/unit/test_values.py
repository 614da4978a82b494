"""Values and numbers of tickets.  Spec: tickets 2, 4, 5.5 (split), 5.6 (merge); D24; foundation F4, F16."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.errors import ConfigError
from holdfast.features.tickets.protocol.care import merge
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.leaving import given_up, handed_over
from holdfast.features.tickets.protocol.serving import Waiter, child_of, parent_of
from holdfast.features.tickets.protocol.values import (
    ANCHOR,
    NO_BALLOT,
    NOBODY,
    Agent,
    Ballot,
    LeaseId,
    Next,
    Ptr,
    Status,
    Val,
    arc,
    life,
    newest,
    seat,
)
from holdfast.host import Address, NodeId

P, Q = LeaseId(NodeId("p", 1), 1), LeaseId(NodeId("q", 1), 1)
PTR = Ptr(ANCHOR, 0, (seat(0), seat(1), seat(2)), NOBODY)


def val(head: int, length: int, n: int = 8, **more: object) -> Val:
    return replace(Val(0, P, 10, 10, head, length, PTR, Status.LIVE, None, n, Address("p", 1)), **more)


def test_arc_runs_downward() -> None:
    """D24, Fig. 1: p2 owns 4 and coordinates {3, 2} besides; the circle closes below 0."""
    assert arc(4, 3, 8) == (4, 3, 2)
    assert arc(1, 4, 8) == (1, 0, 7, 6)


@pytest.mark.parametrize("length", range(2, 9))
def test_split_partitions_the_arc(length: int) -> None:
    """5.5 split, I4: the two arcs are the one, the upper half with the head is the larger, and the pointers chain them."""
    whole = val(5, length)
    child = child_of(whole, Q, Address("q", 1))
    succ = Ptr("p#1/2", 0, (seat(0),), NOBODY)
    parent = parent_of(whole, child, succ)
    assert parent.arc + child.arc == whole.arc
    assert parent.length - child.length in (0, 1)
    assert (parent.succ, child.succ) == (succ, whole.succ)


def test_split_raises_the_fence_of_both() -> None:
    """G3: the child's token is above every token of the arc, and the parent never gives it again."""
    whole = val(5, 4, fence=20)
    child = child_of(whole, Q, Address("q", 1))
    assert child.token == child.fence == 21
    assert parent_of(whole, child, PTR).fence == 21
    assert parent_of(whole, child, PTR).token == whole.token


def test_merge_undoes_a_split() -> None:
    """5.6 step 5: arcs join, the pointer goes on, and the larger fence stays."""
    whole = val(5, 4, fence=20)
    child = replace(child_of(whole, Q, Address("q", 1)), fence=30)
    merged = merge(parent_of(whole, child, Ptr("p#1/2", 0, (seat(0),), NOBODY)), child)
    assert (merged.arc, merged.succ, merged.fence) == (whole.arc, whole.succ, 30)


def test_handover_and_end() -> None:
    """5.8: a waiter gets the whole arc under a higher token; otherwise FREE is the anchor's end and RETIRED everybody else's."""
    given = handed_over(val(5, 4, fence=20), Waiter(Q, Agent(Q.life, Address("q", 1)), 0.0, wait=True))
    assert (given.holder, given.token, given.fence, given.length) == (Q, 21, 21, 4)
    assert given_up(val(0, 4), anchor=True).status is Status.FREE
    assert given_up(val(5, 4), anchor=False).status is Status.RETIRED
    assert given_up(val(5, 4), anchor=False).holder is None


def test_newest_is_by_ballot_then_version() -> None:
    """5.4: the highest accepted value."""
    old, new = val(0, 1, seq=9), val(0, 1, seq=2)
    assert newest([(Ballot(1, P), old), (Ballot(2, P), new), (NO_BALLOT, None)]) == (Ballot(2, P), new)
    assert newest([(Ballot(1, P), new), (Ballot(1, P), old)])[1] is old
    assert newest([]) == (NO_BALLOT, None)


def test_value_survives_the_journal() -> None:
    """5.2: what is written is what is read, moves and lives included."""
    moving = val(5, 4, nxt=Next(7, (seat(0), life(Agent(P.life, Address("p", 1))), seat(2))))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(moving), type=Val) == moving


@pytest.mark.parametrize(
    "field, value",
    [
        ("k", 4),
        ("period", 0.01),
        ("lease", 1.9),
        ("rho", 0.06),
        ("stop_margin", 1.5),
        ("suspect", 0.9),
        ("silent", 0.5),
        ("poll", 0.0),
        ("phase_timeout", 0.0),
        ("rtx", 2.0),
        ("tombstone_ttl", 1.0),
        ("guardians", "moon"),
        ("lease", float("nan")),
    ],
)
def test_config_names_the_field(field: str, value: object) -> None:
    """Section 4: ranges; an error says which field and what is accepted."""
    with pytest.raises(ConfigError, match=f"^{field}: .*accepted"):
        TicketConfig(**{field: value})  # type: ignore[arg-type]


def test_config_derives() -> None:
    """Section 4: hold = D(1-rho)/(1+rho); suspect D; silent 3T; move_gap 2T; stop_margin min(0.25, D/4)."""
    config = TicketConfig(rho=0.01)
    assert config.hold == pytest.approx(2.0 * 0.99 / 1.01)
    assert (config.suspect_after, config.silent_after, config.move_after, config.margin) == (2.0, 1.5, 1.0, 0.25)
    assert TicketConfig(lease=0.4, period=0.1).margin == pytest.approx(0.1)
