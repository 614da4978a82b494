"""Guardians without room: who wants a ticket then, and who has one.  Spec: tickets 5.5, 5.6; G1, G5, D18, D21; docs/decisions.md H133."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.features.tickets.protocol import cells
from holdfast.features.tickets.protocol.facts import CellLost, Excluded
from holdfast.features.tickets.protocol.guardian import SWEEP_PERIOD
from holdfast.features.tickets.protocol.messages import Accept, AckCjoin, Forget
from holdfast.features.tickets.protocol.reasons import Crowded, TooManyPools
from holdfast.features.tickets.protocol.values import ANCHOR, Key
from tests.features.tickets.stand import CONFIG, POOL, Asker, Stand


def bounds(patch: pytest.MonkeyPatch, **values: int) -> None:
    for name, value in values.items():
        patch.setattr(cells, name, value)


def cycle(stand: Stand, name: str) -> Asker:
    """One more ticket is taken and given back: a split, a merge, a tombstone."""
    asker = stand.acquire(name, 4, run=0.5)
    asker.release()
    stand.run(0.5)
    return asker


def expire(stand: Stand, names: str) -> None:
    """The tombstones of these seats are as old as they get, and swept."""
    for name in names:
        guardian = stand.tickets[name].guardian
        for cell in guardian.table.tombstones.values():
            cell.touched_at -= CONFIG.tombstone_ttl + SWEEP_PERIOD
        guardian._on_sweep()


def test_churn_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """H133: cells that were merged take no room of those that are held. With one bound for both the ninth turn found a full table."""
    bounds(monkeypatch, CELLS_MAX=8)
    stand = Stand("abcd", seats=3)
    keeper = stand.acquire("a", 4, run=1.0)
    tokens = [cycle(stand, "d").token for _ in range(20)]
    assert tokens == sorted(set(tokens))
    assert min(tokens) > 0
    assert keeper.acting
    assert {stand.tickets[name].guardian.counts["table_full"] for name in "abc"} == {0}
    assert [len(stand.tickets[name].guardian.table.tombstones) for name in "abc"] == [20, 20, 20]


def crowded(patch: pytest.MonkeyPatch) -> Stand:
    """Churn until the seats' tombstones are as many as they may be; ``a`` holds a ticket, three are free."""
    bounds(patch, TOMBSTONES_MAX=5)
    stand = Stand("abcd", seats=3)
    stand.acquire("a", 4, run=1.0)
    for _ in range(5):
        assert cycle(stand, "d").number > 0
    return stand


def test_who_waits_is_served_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """H133: it keeps its place, its coordinator asks the seats once per poll and does not flood them, and no tombstone is dropped early."""
    stand = crowded(monkeypatch)
    asked, forgotten = stand.count(Accept, "a"), stand.count(Forget, "a")
    asker = stand.acquire("d", 4, run=10.0)
    assert (asker.number, asker.lost, asker.queued) == (-1, [], [1])
    tries = stand.tickets["a"].counts["crowded"]
    assert 10.0 / (CONFIG.poll + CONFIG.period) <= tries <= 10.0 / CONFIG.poll + 1  # looked at in every round, asked after every poll
    assert stand.count(Accept, "a") - asked <= 3 * tries
    assert stand.count(Forget, "a") - forgotten <= tries  # to the third seat only, whose answer nobody waited for
    assert [len(stand.tickets[name].guardian.table.tombstones) for name in "abc"] == [5, 5, 5]
    expire(stand, "abc")
    stand.run(2 * CONFIG.poll)
    assert asker.number > 0
    assert asker.acting


def test_who_does_not_wait_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """10, H133: tickets are free, so "full" would be wrong, and going on asking for ever too."""
    stand = crowded(monkeypatch)
    asker = stand.acquire("d", 4, wait=False, run=6 * CONFIG.poll)
    assert asker.lost == [Crowded(POOL)]
    assert stand.holder(0) == ["a"]


def test_a_ticket_that_waits_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """5.8, H133: a hand-over makes no new cell, so it works without room."""
    stand = crowded(monkeypatch)
    asker = stand.acquire("d", 4, run=3.0)
    stand.coordinators("a")[0].leave()
    stand.run(1.0)
    assert asker.number == 0
    assert asker.acting


@pytest.mark.parametrize("wait", [True, False])
def test_one_pool_too_many(monkeypatch: pytest.MonkeyPatch, wait: bool) -> None:
    """H133, D21: no anchor is ever forgotten, so whoever would found one more is told at once, and pools that are there go on."""
    bounds(monkeypatch, ANCHORS_MAX=1)
    stand = Stand("abcd", seats=3)
    stand.acquire("d", 4, run=1.0).release()
    stand.run(1.0)
    asker = Asker(stand.hosts["d"])
    stand.tickets["d"].acquire("another", 4, asker, wait=wait)
    stand.run(CONFIG.poll)
    assert asker.lost == [TooManyPools("another")]
    assert stand.acquire("d", 4, run=1.0).acting
    assert {stand.tickets[name].guardian.table.anchors for name in "abc"} == {1}


def test_a_seat_without_room_hinders_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """5.5, H133: a majority is enough for a new cell. The seat that refused it gets it by repair, so another one may fail."""
    bounds(monkeypatch, TOMBSTONES_MAX=5)
    stand = Stand("abcd", seats=3)
    keeper = stand.acquire("d", 4, run=1.0)
    for number in range(5):
        stand.tickets["c"].guardian.on_message(Forget(1, Key(POOL, f"x#1/{number}", 0)), lambda answer: None)
    asker = stand.acquire("b", 4, run=1.0)
    assert asker.number > 0
    assert stand.tickets["c"].guardian.counts["table_full"] > 0
    (key,) = (each.key for each in stand.coordinators("b"))
    assert key in stand.tickets["c"].guardian.cells
    stand.crash("a")
    stand.run(3 * CONFIG.lease)
    assert keeper.acting
    assert asker.acting


def test_an_arc_is_not_lost_for_want_of_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """5.6, H133: a guardian that missed the cell and has no room for it refuses. That is no loss, and ends when there is room."""
    stand = Stand("abcde", seats=3)
    stand.lose = lambda source, target, message: target == "c" and isinstance(message, Accept) and message.key.rid != ANCHOR
    stand.acquire("d", 4, run=1.0)
    stand.acquire("e", 4, run=1.0)
    assert [len(stand.tickets[name].guardian.cells) for name in "abc"] == [2, 2, 1]
    with monkeypatch.context() as patch:
        bounds(patch, CELLS_MAX=0, RESERVE=0)
        stand.crash("a")
        stand.crash("e")
        stand.run(4 * CONFIG.lease)
        assert stand.tickets["c"].guardian.counts["table_full"] > 0
        assert stand.events(CellLost) == []
        assert stand.events(Excluded) == []
    stand.lose = lambda source, target, message: False
    stand.run(2 * CONFIG.lease)
    assert len(stand.events(Excluded)) == 1
    assert len(stand.coordinators("d")[0].tickets) == 4


def merged_unheard() -> tuple[Stand, Asker, Asker]:
    """A cell was split off for ``e``, which has not heard of it, and was merged; ``f`` owns the ticket, and no tombstone is left."""
    stand = Stand("abcdef", seats=3)
    stand.acquire("d", 2, run=1.0)
    stand.hold = lambda source, target, message: target == "e" and isinstance(message, AckCjoin)
    late = stand.acquire("e", 2, run=0.5)
    stand.lose = lambda source, target, message: "e" in (source, target)
    stand.run(3 * CONFIG.lease)
    assert len(stand.events(Excluded)) == 1
    owner = stand.acquire("f", 2, run=1.0)
    assert owner.number == 1
    expire(stand, "abc")
    ((ack, _, _),) = (each for lease, each in stand.tickets["d"].pool_table[POOL]._granted.items() if lease.life.name == "e")
    assert all(stand.tickets[name].guardian.table.get(ack.key) is None for name in "abc")
    stand.hold = stand.lose = lambda source, target, message: False
    return stand, owner, late


def test_a_grant_is_not_repeated_when_its_tombstone_may_be_gone() -> None:
    """D18, G1, H133: who was cut off for as long as a tombstone lives is not handed the cell that was merged meanwhile."""
    stand, owner, late = merged_unheard()
    pool = stand.tickets["d"].pool_table[POOL]
    for lease, (ack, agent, at) in tuple(pool._granted.items()):
        # Swept once a minute, and not when the seats sweep. Without a stamp, as one who waited behind another gets it.
        pool._granted[lease] = replace(ack, stamp=0.0), agent, at - CONFIG.tombstone_ttl
    stand.run(2.0)
    assert stand.holder(1) == ["f"]
    assert owner.acting
    assert late.number == -1


def test_a_grant_that_is_read_too_late_is_dropped() -> None:
    """D18, G1, H133: it lay in the socket of a process that was stopped; by its own CJOIN the candidate knows how old it is."""
    stand, owner, late = merged_unheard()
    stand.lose = lambda source, target, message: target == "e" and isinstance(message, AckCjoin)  # no other grant
    (held,) = {message.lease: message for _, _, message, _ in stand.held if isinstance(message, AckCjoin)}.values()
    stand.held = [("d", "e", replace(held, stamp=held.stamp - CONFIG.tombstone_ttl), 0)]
    stand.release_held()
    stand.run(2.0)
    assert stand.tickets["e"].counts["old_grant"] == 1
    assert stand.holder(1) == ["f"]
    assert owner.acting
    assert late.number == -1


def test_a_grant_without_a_stamp_is_as_old_as_the_last_question() -> None:
    """D18, G1, H133: whoever was stopped for longer than a tombstone lives asked nobody meanwhile, and reads its socket first (F10)."""
    stand, owner, late = merged_unheard()
    stand.lose = lambda source, target, message: target == "e" and isinstance(message, AckCjoin)
    (held,) = {message.lease: message for _, _, message, _ in stand.held if isinstance(message, AckCjoin)}.values()
    candidate, _ = stand.tickets["e"].pool_table[POOL]._leases[held.lease]
    candidate._stamp -= CONFIG.tombstone_ttl
    stand.held = [("d", "e", replace(held, stamp=0.0), 0)]
    stand.release_held()
    stand.run(2.0)
    assert stand.tickets["e"].counts["old_grant"] == 1
    assert (stand.holder(1), owner.acting, late.number) == (["f"], True, -1)
