"""Guardian sets and their changes, reading, abandoning, the ticket list.  Spec: tickets 5.5, 5.7, 5.9, 9.5, 9.6, 10; D4, D9, D27."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.errors import Unavailable
from holdfast.events import Failed, Joined
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.coordinator import Coordinator
from holdfast.features.tickets.protocol.cview import Entry
from holdfast.features.tickets.protocol.facts import CellLost, Excluded, GuardiansMoved
from holdfast.features.tickets.protocol.messages import Accept, AckUpdate, Cjoin, Prepare, Promised
from holdfast.features.tickets.protocol.tickets import TicketView
from holdfast.features.tickets.protocol.values import ANCHOR, NO_SLOT, Ballot, Key
from tests.features.tickets.stand import CONFIG, POOL, Stand
from tests.support.fake_members import member

RING = TicketConfig(period=0.5, lease=2.0, rtx=0.1, guardians="ring", k=1)
LEASE = CONFIG.lease


def names(stand: Stand, coordinator: Coordinator) -> list[str]:
    """Who guards it, by name."""
    return [stand.names[place.slot] if place.slot != NO_SLOT else place.agent.life.name for place in coordinator.places]


def ring(config: TicketConfig = RING) -> tuple[Stand, dict[str, Coordinator]]:
    """Seats a, b, c; d, e, f and g hold tickets, in this order along the ring."""
    stand = Stand("abcdefgh", seats=3, config=config)
    for name in "defg":
        stand.acquire(name, 16, run=1.0)
    return stand, {name: stand.coordinators(name)[0] for name in "defg"}


def test_seats_keep_every_cell_by_default() -> None:
    """Section 4, D27: with placement "seats" nothing ever moves."""
    stand = Stand("abcde", seats=3)
    for name in "de":
        stand.acquire(name, 4, run=0.5)
    stand.crash("c")
    stand.run(5.0)
    assert all(names(stand, each) == ["a", "b", "c"] for name in "de" for each in stand.coordinators(name))
    assert stand.events(GuardiansMoved) == []


def test_ring_placement_is_the_papers() -> None:
    """5.5 choose_guardians, paper 4: the coordinator that splits and its predecessors, then seats; never the newcomer itself."""
    stand, of = ring()
    assert names(stand, of["d"]) == ["a", "b", "c"]  # the anchor stays with the seats (D11)
    for name, predecessor in (("e", "d"), ("f", "e"), ("g", "f")):
        assert names(stand, of[name])[0] == predecessor
        assert name not in names(stand, of[name])
        assert len(names(stand, of[name])) == 3


def test_silent_guardian_is_replaced() -> None:
    """5.7: after 3 T without ALIVE; the old set knows of the new one first (D4), the predecessor records it, the old ones forget."""
    stand, of = ring()
    before = of["g"].key
    lost = names(stand, of["g"])[0]
    stand.crash(lost)
    stand.run(3.0)
    assert lost not in names(stand, of["g"])
    assert len(of["g"].places) == 3
    assert of["g"].valid
    stand.run(4.0)
    assert of["g"].valid
    tables = [stand.tickets[name].guardian.table for name in "abcde"]
    assert any(before in table.tombstones for table in tables)
    assert all(before not in table.kept for table in tables)


def test_draining_guardian_is_left() -> None:
    """9.6: ring cells move away from an agent that shuts down, and its own tickets are not concerned."""
    stand, of = ring()
    draining = names(stand, of["g"])[0]
    stand.tickets[draining].drain()
    stand.run(3.0)
    assert draining not in names(stand, of["g"])
    assert of["g"].valid
    assert stand.coordinators(draining)[0].valid


def test_failed_move_is_taken_back() -> None:
    """5.7: the new set does not answer; nxt is cancelled, the lease does not suffer, and the next attempt has another number."""
    stand, of = ring()
    coordinator = of["g"]
    stand.lose = lambda source, target, message: source == "g" and isinstance(message, Accept) and message.key.cfg != coordinator.cfg
    stand.crash(names(stand, coordinator)[0])
    stand.run(6.0)
    assert coordinator.valid
    assert coordinator.cfg == 0
    tried = {message.key.cfg for who, _, message in stand.sent if who == "g" and isinstance(message, Accept)} - {0}
    assert len(tried) >= 2
    stand.lose = lambda source, target, message: False
    stand.run(3.0)
    assert coordinator.cfg > max(tried)
    assert coordinator.val.nxt is None


def test_predecessor_that_missed_the_move_finds_it_alive() -> None:
    """D4: the pointer is old, the exclusion follows nxt, and the new guardians say that it lives (busy)."""
    stand, of = ring()
    stand.lose = lambda source, target, message: source == "g" and isinstance(message, AckUpdate)
    stand.crash("e")
    stand.run(12.0)
    assert of["g"].cfg > 0
    assert of["g"].valid
    assert any(isinstance(message, Prepare) and message.key.cfg == of["g"].cfg for who, _, message in stand.sent if who in "df")


def test_small_sets_are_odd() -> None:
    """5.5, D9: one seat and two agents; fewer than 2k+1 give a smaller odd set."""
    stand = Stand("ab", seats=1, config=RING)
    for name in "ab":
        assert stand.acquire(name, 4, run=1.0).acting
    stand.run(3.0)
    assert all(len(each.places) % 2 == 1 for name in "ab" for each in stand.coordinators(name))


def test_word_of_absence_only_starts_a_question() -> None:
    """F15: the membership says that the successor failed; its guardians say that it lives, and nothing happens."""
    stand = Stand("abcde", seats=3)
    for name in "de":
        stand.acquire(name, 2, run=0.5)
    life = stand.hosts["e"].me
    stand.members["d"].say(Failed(member(life), certain=True))
    stand.run(0.1)
    assert any(isinstance(message, Prepare) for who, _, message in stand.sent if who == "d")
    assert stand.coordinators("e")[0].valid
    assert stand.events(Excluded) == []
    stand.members["d"].say(Joined(member(life)))
    assert life not in stand.tickets["d"]._gone


def test_only_the_predecessor_excludes() -> None:
    """D11, D23, H134: everybody hears of a death in the same moment, and one agent alone asks: there are no exclusions to be spread by a
    jitter, and the one that there is does not wait for a round."""
    stand, of = ring(CONFIG)
    dead = member(stand.hosts["f"].me)
    stand.crash("f")
    stand.run(LEASE)  # Its grant has run out; nobody suspects it yet by its silence.
    assert stand.events(Excluded) == []
    since = len(stand.sent)
    for name in "abcdegh":
        stand.members[name].say(Failed(dead, certain=True))
    stand.deliver()  # No time passes.
    asked = {source for source, _, message in stand.sent[since:] if isinstance(message, Prepare) and message.key.rid == of["f"].rid}
    assert asked == {"e"}
    assert [name for name, _ in stand.events(Excluded)] == ["e"]


def test_concurrent_exclusions_are_ordered_by_ballots() -> None:
    """D23: somebody else prepares the same cell between the promises and the ACCEPT of its predecessor, which takes it in all the same: a
    round later, once, and under a higher ballot."""
    stand, of = ring(CONFIG)
    stand.crash("f")
    stand.hold = lambda source, target, message: target == "e" and isinstance(message, Promised)
    while not stand.held:
        stand.run(0.01)
    desk = stand.tickets["h"].desk
    higher = desk.ballot(desk.lease(), Ballot(99, desk.lease()))
    for name in "abc":
        stand.tickets[name].on_message(stand.hosts["h"].me, Prepare(1, of["f"].key, higher, None))
    stand.hold = lambda source, target, message: False
    stand.release_held()
    assert stand.events(Excluded) == []
    refused_at = stand.now
    while not stand.events(Excluded):
        stand.run(0.01)
    assert stand.now - refused_at <= 2 * CONFIG.period  # One is the pause, one may pass until the round.
    stand.run(LEASE)
    assert len(stand.events(Excluded)) == 1
    last = [message.ballot for source, _, message in stand.sent if source == "e" and isinstance(message, Accept)]
    assert max(last) > higher


def test_candidate_that_was_given_up_and_speaks_is_served() -> None:
    """H107: word that a candidate failed is forgotten when it asks again; until then its place goes to the next."""
    stand = Stand("abcde", seats=3)
    holder = stand.acquire("d", 1, run=0.5)
    first, second = stand.acquire("a", 1, run=0.3), stand.acquire("b", 1, run=1.0)
    stand.members["d"].say(Failed(member(stand.hosts["a"].me), certain=False))
    stand.lose = lambda source, target, message: source == "a" and isinstance(message, Cjoin)
    holder.release()
    stand.run(0.1)
    assert second.acting
    stand.lose = lambda source, target, message: False
    stand.run(2.0)
    assert stand.hosts["a"].me not in stand.tickets["d"]._gone
    second.release()
    stand.run(0.5)
    assert first.acting


def test_absence_is_acted_on_when_the_grant_is_over() -> None:
    """G5, F15: with word from the membership the dead successor is merged as soon as its guardians allow it."""
    stand = Stand("abcde", seats=3)
    for name in "de":
        stand.acquire(name, 2, run=0.5)
    stand.crash("e")
    crashed_at = stand.now
    while not stand.events(Excluded) and stand.now < crashed_at + 10:
        stand.run(0.1)
    assert stand.now - crashed_at <= max(CONFIG.lease, CONFIG.suspect_after) + 2 * CONFIG.period + 0.2


def read(stand: Stand, name: str, seconds: float = 6.0) -> list[TicketView | Unavailable]:
    found: list[TicketView | Unavailable] = []
    stand.tickets[name].read(POOL, found.append)
    stand.run(seconds)
    return found


@pytest.mark.parametrize("config", [CONFIG, RING], ids=["seats", "ring"])
def test_read_walks_the_cells(config: TicketConfig) -> None:
    """10: the truth by majorities, with metadata from the announcements; a released ticket is free at once."""
    stand = Stand("abcdef", seats=3, config=config)
    users = {name: stand.acquire(name, 8, run=1.0) for name in "def"}
    (view,) = read(stand, "a", 0.5)
    assert isinstance(view, TicketView)
    assert (view.hint, view.n) == (False, 8)
    assert {number: holder.agent.name for number, holder in view.owners.items()} == {user.number: name for name, user in users.items()}
    assert {holder.token for holder in view.owners.values()} == {user.token for user in users.values()}
    users["f"].release()
    (view,) = read(stand, "b", 0.5)
    assert isinstance(view, TicketView)
    assert users["f"].number not in view.owners


def test_read_without_a_majority_is_unavailable() -> None:
    """10: Unavailable(needed, reachable), and not a guess; a pool that nobody founded has no owners."""
    stand = Stand("abcd", seats=3)
    (view,) = read(stand, "d", 3.0)
    assert isinstance(view, TicketView)
    assert view.owners == {}
    stand.acquire("d", 2, run=0.5)
    stand.crash("b")
    stand.crash("c")
    (error,) = read(stand, "d", 3.0)
    assert isinstance(error, Unavailable)
    assert (error.needed, error.reachable) == (2, 1)


def test_ticket_list_is_shared() -> None:
    """G6, 5.9: announced on activation and on every change of an arc; the larger token wins, a release is told too."""
    stand = Stand("abcd", seats=3)
    seen: list[tuple[str, int]] = []
    stop = stand.tickets["a"].watch(lambda pool, number, view: seen.append((pool, number)))
    user = stand.acquire("d", 2, run=0.5)
    for name in "abcd":
        view = stand.tickets[name].view(POOL)
        assert view.hint
        assert {number: holder.token for number, holder in view.owners.items()} == {0: user.token}
        assert stand.tickets[name].pools() == (POOL,)
    user.release()
    stand.run(0.5)
    assert stand.tickets["a"].view(POOL).owners == {}
    assert (POOL, 0) in seen
    stop()
    before = len(seen)
    stand.acquire("d", 2, run=0.5)
    assert len(seen) == before


def lost_cell() -> tuple[Stand, dict[str, Coordinator], int]:
    """The guardians of g are f, e and d. All but d are gone for good, together with g; d takes in e and f, and then cannot go on."""
    stand, of = ring()
    assert sorted(names(stand, of["g"])) == ["d", "e", "f"]
    for name in "efg":
        stand.crash(name)
    stand.run(12.0)
    return stand, of, of["g"].head


def test_lost_cell_is_reported_and_nobody_gets_its_tickets() -> None:
    """D27: k+1 volatile guardians crashed with the holder; its predecessor says so once, and goes on without the arc."""
    stand, of, _ = lost_cell()
    lost = [event.rid for _, event in stand.events(CellLost) if isinstance(event, CellLost)]
    assert lost.count(of["g"].rid) == 1
    assert of["d"].tickets == tuple(ticket % 16 for ticket in range(16, 2, -1))


def abandon(stand: Stand, name: str, number: int, seconds: float = 8.0) -> list[str]:
    answers: list[str] = []
    stand.tickets[name].abandon(POOL, number, answers.append)
    stand.run(seconds)
    return answers


def test_abandon_is_refused_while_it_can_be_read() -> None:
    """9.5: a cell whose majority answers is excluded by itself."""
    stand, of = ring()
    (answer,) = abandon(stand, "a", of["g"].head)
    assert answer.startswith("every cell of the pool answers")


def test_abandon_lets_the_predecessor_go_on() -> None:
    """9.5: the operator confirms; the arc is merged by what the last guardian has, with fence + 2^20."""
    stand, of, number = lost_cell()
    fence = of["d"].val.fence
    assert abandon(stand, "h", number) == [""]
    assert of["d"].val.fence >= fence + 2**20
    assert len(of["d"].tickets) == 16


def test_abandon_is_refused_while_somebody_owns_a_part() -> None:
    """9.5: the copy that is left may be too old; an owner inside its arc shows that."""
    stand, of, number = lost_cell()
    inside = of["g"].tickets[1]
    stand.tickets["d"].cview.announce(POOL, inside, Entry(9, False, 1, stand.hosts["h"].me, stand.hosts["h"].address, 0, 16))
    (answer,) = abandon(stand, "h", number)
    assert f"tickets [{inside}]" in answer
    assert number not in of["d"].tickets


def test_abandon_names_the_ticket_that_is_stuck() -> None:
    """9.5: only the first unreadable cell can be abandoned."""
    stand, _, number = lost_cell()
    (answer,) = abandon(stand, "h", (number + 1) % 16)
    assert f"ticket {number}" in answer


def test_forgotten_set_is_not_asked_again() -> None:
    """5.6, 5.7: after the predecessor has recorded a move, the guardians before it have a tombstone."""
    stand, of = ring()
    key: Key = of["g"].key
    stand.crash(names(stand, of["g"])[0])
    stand.run(8.0)
    assert any(key in stand.tickets[name].guardian.table.tombstones for name in "abcdef")


def orphaned() -> tuple[Stand, Key]:
    """A child cell whose maker died before it pointed to it; the pool goes on without."""
    stand = Stand("abcde", seats=3)
    stand.acquire("d", 4, run=0.5)
    stand.lose = lambda source, target, message: source == "d" and isinstance(message, Accept) and message.key.rid == ANCHOR
    stand.acquire("e", 4, run=0.3)
    (orphan,) = (key for key in stand.tickets["a"].guardian.cells if key.rid != ANCHOR)
    stand.crash("d")
    stand.lose = lambda source, target, message: False
    stand.run(2 * CONFIG.lease)
    assert stand.holder(0) == ["e"]
    for name in "abc":
        stand.tickets[name].guardian.cells[orphan].touched_at -= 3 * CONFIG.tombstone_ttl
    return stand, orphan


def sweep(stand: Stand) -> None:
    for name in "abc":
        if name not in stand.down:
            stand.tickets[name]._on_sweep()
    stand.run(2.0)


def test_orphan_is_forgotten() -> None:
    """H109: nobody points to it, and every guardian of every cell says so."""
    stand, orphan = orphaned()
    sweep(stand)
    assert all(orphan in stand.tickets[name].guardian.table.tombstones for name in "abc")
    assert stand.holder(0) == ["e"]


def test_orphan_stays_while_a_guardian_is_silent() -> None:
    """H109: the one that does not answer may have the version that points to it."""
    stand, orphan = orphaned()
    stand.crash("c")
    sweep(stand)
    assert orphan in stand.tickets["a"].guardian.cells


def test_cell_that_a_single_guardian_refers_to_stays() -> None:
    """H109: a version that only one guardian has may still become the last one."""
    stand, orphan = orphaned()
    anchor = stand.tickets["c"].guardian.cells[Key(POOL, ANCHOR, 0)]
    assert anchor.val is not None
    anchor.val = replace(anchor.val, seq=0, succ=anchor.val.succ._replace(rid=orphan.rid))
    sweep(stand)
    assert orphan in stand.tickets["a"].guardian.cells


def test_cells_on_the_ring_are_no_orphans() -> None:
    """H109: however long nobody has asked about them."""
    stand = Stand("abcde", seats=3)
    users = [stand.acquire(name, 4, run=0.5) for name in "de"]
    for name in "abc":
        for cell in stand.tickets[name].guardian.cells.values():
            cell.touched_at -= 3 * CONFIG.tombstone_ttl
    sweep(stand)
    assert all(user.acting for user in users)
    assert not any(stand.tickets[name].guardian.table.tombstones for name in "abc")
