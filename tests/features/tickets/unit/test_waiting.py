"""Waiting for a ticket: places, what a hand-over takes along, what it costs.  Spec: tickets 5.5, 5.8, 9.3, 9.7; G7, D26; H126."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.features.tickets.protocol.facts import FREQUENT, TicketQueued
from holdfast.features.tickets.protocol.messages import Accept, Cjoin, Query, Queued
from holdfast.features.tickets.protocol.pool import _server_for
from holdfast.features.tickets.protocol.values import LeaseId
from tests.features.tickets.stand import CONFIG, POOL, Stand

POLL = CONFIG.poll
HANDED_ON = 8  # as docs/tickets.md says
TURNS = 20  # polls that a test waits


def test_places_in_a_queue_are_facts() -> None:
    """9.7, H126: Queued when a candidate gets a place and when its place changes, and not with every answer."""
    stand = Stand("abcd", seats=3)
    holder = stand.acquire("d", 1, run=0.5)
    first, second = stand.acquire("a", 1, run=0.3), stand.acquire("b", 1, run=0.3)
    stand.run(5 * POLL)
    assert stand.count(Queued, "d") > 6
    holder.release()
    stand.run(2 * POLL)

    def places(name: str) -> list[int]:
        return [event.position for host, event in stand.events(TicketQueued) if host == name and isinstance(event, TicketQueued)]

    assert (places("a"), places("b")) == ([1], [2, 1])
    assert (first.queued, second.queued) == (places("a"), places("b"))
    facts = [event for _, event in stand.events(TicketQueued) if isinstance(event, TicketQueued)]
    assert {(event.pool, event.lease.life.name) for event in facts} == {(POOL, "a"), (POOL, "b")}
    assert not issubclass(TicketQueued, FREQUENT)


def test_crowd_behind_a_handover() -> None:
    """G7, 5.8: the first who waits gets the ticket, the eight behind it keep their order, and whoever is further back asks the next holder
    within a poll, in whatever order: nobody is forgotten."""
    crowd = "defghijklmno"
    stand = Stand("abc" + crowd + "p", seats=3)
    holder = stand.acquire("p", 1, run=0.5)
    for name in crowd:
        stand.acquire(name, 1, run=0.05)
    stand.run(POLL)
    assert waiting(stand, "p") == list(crowd)
    stand.lose = lambda source, target, message: isinstance(message, Cjoin)
    holder.release()
    stand.run(0.05)
    assert stand.holder(0) == [crowd[0]]
    assert waiting(stand, crowd[0]) == list(crowd[1 : HANDED_ON + 1])
    assert all(0 < waiter.stamp < stand.now for waiter in stand.coordinators(crowd[0])[0].server.waiters.values())  # H133: how old they are
    stand.lose = lambda source, target, message: False
    stand.run(2 * POLL)
    assert waiting(stand, crowd[0])[:HANDED_ON] == list(crowd[1 : HANDED_ON + 1])
    assert sorted(waiting(stand, crowd[0])) == list(crowd[1:])


def waiting(stand: Stand, name: str) -> list[str]:
    (coordinator,) = stand.coordinators(name)
    return [lease.life.name for lease in coordinator.server.waiters]


@pytest.mark.parametrize("tickets", [1, 5])
def test_cost_of_waiting(tickets: int) -> None:
    """5.5: each turn of a candidate that waits is a QUERY to every seat and a CJOIN to at most three holders; a turn comes after 0.3 to 1
    poll, and nothing is written."""
    stand = Stand("abcdefghi", seats=3)
    for name in "defgh"[:tickets]:
        stand.acquire(name, tickets, run=1.5)
    stand.acquire("i", tickets, run=2 * POLL)
    since = len(stand.sent)
    stand.run(TURNS * POLL)
    sent = stand.sent[since:]
    asked = [target for source, target, message in sent if source == "i" and isinstance(message, Query)]
    joins = [target for source, target, message in sent if source == "i" and isinstance(message, Cjoin)]
    turns = len(asked) / 3
    assert set(asked) == set("abc")
    assert TURNS - 1 <= turns <= TURNS / 0.3 + 1
    assert len(joins) == pytest.approx(turns * min(tickets, 3), abs=3)
    assert not any(isinstance(message, Accept) for _, _, message in sent)


def test_room_beside_a_queue() -> None:
    """I10, 5.5: one agent has two tickets. Who waits at the one is served by the other when that has taken in a dead neighbour's."""
    stand = Stand("abcdef", seats=3)
    for name in "dfd":
        stand.acquire(name, 3, run=1.0)
    waiter = stand.acquire("e", 3, run=3 * POLL)
    (queue,) = [each for each in stand.coordinators("d") if each.server.waiters]
    (neighbour,) = stand.coordinators("f")
    assert queue.val.succ.rid != neighbour.rid
    stand.crash("f")
    stand.run(2 * CONFIG.lease + 4 * POLL)
    assert waiter.acting
    assert not queue.server.waiters


def coordinator(free: int, *waiters: str, splitting: str | None = None) -> Any:
    places = {name: place for place, name in enumerate(waiters, 1)}
    server = SimpleNamespace(waiters=places, splitting=splitting, position=lambda name: places.get(name, 0))
    return SimpleNamespace(free=free, server=server)


@pytest.mark.parametrize(
    "active, chosen",
    [
        ([coordinator(0, "x"), coordinator(1)], 1),  # only there is room
        ([coordinator(0, "x"), coordinator(1, splitting="y")], 0),  # which is about to be somebody's
        ([coordinator(0, "x"), coordinator(1, "y")], 0),  # or will be
        ([coordinator(0, "x", splitting="x"), coordinator(1)], 0),  # it is being served
        ([coordinator(0, "y", "x"), coordinator(0, "x"), coordinator(0)], 1),  # nearest to the front
        ([coordinator(0, "x"), coordinator(2, "y", "x")], 1),
        ([coordinator(0, "y"), coordinator(0)], 1),  # it waits nowhere: the shortest queue
        ([coordinator(1, "y"), coordinator(2, "y")], 1),  # or the most room
    ],
)
def test_which_ticket_of_an_agent_serves(active: list[Any], chosen: int) -> None:
    """H145, G7, 5.5: one agent holds several tickets of a pool."""
    assert _server_for(cast(LeaseId, "x"), active) is active[chosen]
