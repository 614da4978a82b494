"""Placement as a setting: agents that differ in it, and who hands on what it keeps before it goes.  Spec: tickets 4, 5.7, 9.6; H140."""

from __future__ import annotations

from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.facts import CellLost, TicketLost
from holdfast.features.tickets.protocol.messages import Accept
from tests.features.tickets.stand import POOL, Asker, Stand

RING = TicketConfig(period=0.5, lease=2.0, rtx=0.1, guardians="ring", k=1)
SEATS = TicketConfig(period=0.5, lease=2.0, rtx=0.1, k=1)
N = 16


def ring(*, seats_at: str = "") -> Stand:
    """Seats a, b, c; d, e, f and g hold tickets in this order along the ring. Those in ``seats_at`` want theirs on the seats."""
    stand = Stand("abcdefgh", seats=3, config=RING)
    for name in seats_at:
        stand.tickets[name].desk.config = SEATS
    for name in "defg":
        assert stand.acquire(name, N, run=2.0).acting
    stand.run(5.0)
    return stand


def one_seat(names: str) -> tuple[Stand, list[Asker]]:
    """Seat a; d, e, f and g hold tickets, and each but the first is kept by the other three."""
    stand = Stand(names, seats=1, config=RING)
    users = [stand.acquire(name, N, run=3.0) for name in "defg"]
    stand.run(10.0)
    assert all(user.acting for user in users)
    return stand, users


def guardians(stand: Stand, name: str) -> list[str]:
    (it,) = stand.coordinators(name)
    return sorted(stand.names[place.slot] if place.slot >= 0 else place.agent.life.name for place in it.places)


def drained(stand: Stand, name: str) -> bool:
    return stand.tickets[name].drained


def test_each_holder_places_its_own_cell() -> None:
    """H140, 5.7: the cell of f was made by an agent with "ring", and f wants it on the seats, so it moves there; those of the others
    are where the paper puts them."""
    stand = ring(seats_at="f")
    assert guardians(stand, "f") == ["a", "b", "c"]
    assert all(set(guardians(stand, name)) & set("defg") for name in "eg")


def test_who_wants_seats_outlives_the_agents_that_were_its_guardians() -> None:
    """H140, D27: a group that changes from "ring" to "seats" restarts one agent after the other. Nothing that was on the ring is lost."""
    stand = ring(seats_at="fg")
    for name in "de":
        stand.crash(name)
    stand.run(12.0)
    assert all(stand.coordinators(name)[0].valid for name in "fg")
    assert [name for name, _ in stand.events(TicketLost) if name in "fg"] == []
    assert stand.events(CellLost) == []


def test_a_guardian_goes_when_others_keep_its_cells() -> None:
    """9.6: an agent that holds nothing and keeps cells of others is needed until they have moved, and its end costs nobody anything."""
    stand = ring()
    (it,) = stand.coordinators("e")
    tickets = stand.tickets["e"]
    tickets.drain()
    it.leave()
    stand.run(0.1)
    assert tickets.coordinators == []
    assert tickets.guardian.kept > 0
    assert not drained(stand, "e")
    stand.run(RING.leave_timeout / 2)
    assert (drained(stand, "e"), tickets.guardian.kept) == (True, 0)
    assert all("e" not in guardians(stand, name) for name in "dfg")


def test_nobody_is_waited_for_longer_than_that() -> None:
    """9.6: 4 D at most; cells whose holders do not move them stay behind."""
    stand = ring()
    (it,) = stand.coordinators("e")
    it.leave()
    stand.lose = lambda source, target, message: isinstance(message, Accept) and source != "e"
    tickets = stand.tickets["e"]
    tickets.drain()
    stand.run(RING.leave_timeout - 0.1)
    tickets.drain()  # Asked again: the time runs on.
    assert not drained(stand, "e")
    stand.run(0.2)
    assert drained(stand, "e")
    assert tickets.guardian.kept > 0
    tickets.drain(draining=False)  # It joined again, and leaves again.
    tickets.drain()
    assert not drained(stand, "e")


def test_a_seat_is_not_waited_for() -> None:
    """9.6, 5.2: a seat comes back with its journal; whoever stops it for an update need not wait."""
    stand = ring()
    assert stand.tickets["a"].guardian.kept > 0
    stand.tickets["a"].drain()
    assert drained(stand, "a")


def test_who_has_only_dead_neighbours_gets_another_ticket() -> None:
    """5.5, D27, H127: d knows e, f and g as its predecessors, and they are dead; the seat is the only other one. A cell that d splits off
    for a client of its own is kept by the seat and by d itself before anybody who did not answer is asked again."""
    stand, _ = one_seat("adefg")
    for name in "efg":
        stand.crash(name)
    stand.run(10.0)
    assert stand.acquire("d", N, run=5.0).acting


def test_a_group_that_stops_as_a_whole_keeps_the_first_arc() -> None:
    """D27, 5.8, H140: everybody leaves in good order, so nobody is left to take in what the agents keep, and they wait 4 D in vain. The
    rest of the pool is gone with them, and no operator can bring it back: what docs/tickets.md warns of."""
    stand, users = one_seat("adefgh")
    for name, user in zip("defg", users, strict=True):
        stand.tickets[name].drain()
        user.release()
    stand.run(RING.leave_timeout + 0.1)
    for name in "defg":
        assert drained(stand, name)
        stand.crash(name)
    again = [stand.acquire("h", N, run=2.0) for _ in range(N)]
    assert sorted(user.number for user in again if user.acting) == [0, *range(N // 2 + 1, N)]
    answers: list[str] = []
    stand.tickets["h"].abandon(POOL, N // 2, answers.append)
    stand.run(10.0)
    assert answers == ["no guardian has a copy of it: the end of its arc is unknown"]


def test_seats_that_do_not_answer_are_not_pressed() -> None:
    """H140, 5.7: f wants its cell on the seats, and most of them do not hear it. It stays where it is, and a try is not followed by another
    one at the next occasion: there is no other set that is wanted."""
    stand = ring()
    began = len(stand.sent)
    (it,) = stand.coordinators("f")
    it.config = SEATS
    stand.lose = lambda source, target, message: source == "f" and target in "bc" and isinstance(message, Accept)
    stand.run(10.0)
    tried = {message.key.cfg for source, to, message in stand.sent[began:] if (source, to) == ("f", "a") and isinstance(message, Accept)}
    assert len(tried) == 1
    assert it.valid
