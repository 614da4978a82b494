"""The lease of a coordinator and the writing of its cell.  Spec: tickets 5.3, 5.4, G1, G4; D1, D3, D5 to D7, D14; paper 001, 4."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.coordinator import State
from holdfast.features.tickets.protocol.facts import AnchorTaken, TicketReleased
from holdfast.features.tickets.protocol.messages import Accept, Alive, Prepare, Renew
from holdfast.features.tickets.protocol.values import Status
from holdfast.host import Message
from holdfast.kit.hold import Deposed, Lapsed
from tests.features.tickets.stand import CONFIG, Stand

HOLD, LEASE, PERIOD = CONFIG.hold, CONFIG.lease, CONFIG.period


def test_lease_counts_from_the_send_time() -> None:
    """5.3, D5: the deadline is the send time of the RENEW that a majority echoed plus hold, however late the answers come."""
    stand = Stand("abcd", seats=3)
    user = stand.acquire("d", 1, run=1.0)
    stand.hold = lambda source, target, message: isinstance(message, Alive)
    before = len(stand.held)
    while len(stand.held) == before:
        stand.run(0.01)
    stamp = max(message.stamp for _, _, message, _ in stand.held if isinstance(message, Alive))
    stand.run(0.4)
    stand.release_held()
    assert user.until == pytest.approx(stamp + HOLD)


def test_majority_is_enough_and_less_is_not() -> None:
    """G4, D1: k+1 of 2k+1 guardians keep a ticket for ever; with k it ends at its deadline."""
    stand = Stand("abcd", seats=3)
    user = stand.acquire("d", 1, run=1.0)
    stand.crash("a")
    stand.run(5 * LEASE)
    assert user.acting
    stand.crash("b")
    crashed_at = stand.now
    stand.run(LEASE + PERIOD)
    assert user.lost == [Lapsed()]
    assert stand.holder(0) == []
    assert user.until <= crashed_at + HOLD


def test_single_broken_link_excludes_nobody() -> None:
    """D3, D6: the link between two neighbours is cut for a long time; both keep their tickets, because their guardians decide."""
    stand = Stand("abcde", seats=3)
    first, second = stand.acquire("d", 2, run=1.0), stand.acquire("e", 2, run=1.0)
    stand.lose = lambda source, target, message: {source, target} == {"d", "e"}
    stand.run(10 * LEASE)
    assert first.acting
    assert second.acting
    assert first.lost == second.lost == []


def test_pause_revives_nothing() -> None:
    """D5, F9, F10: after a stop of 8 s the answers that waited are read first, and extend nothing."""
    stand = Stand("abcde", seats=3)
    user = stand.acquire("d", 1, run=1.0)
    next_user = stand.acquire("e", 1, run=0.5)
    stand.hold = lambda source, target, message: target == "d" and isinstance(message, Alive)
    stand.run(PERIOD)
    stand.pause("d", 8.0)
    assert next_user.acting
    stand.hold = lambda source, target, message: False
    stand.release_held()
    assert user.lost == [Lapsed()]
    assert stand.holder(0) == ["e"]
    assert next_user.token > user.token


def test_every_entry_looks_at_the_clock_first() -> None:
    """F9, 5.3 lapse: whatever arrives after the deadline finds a dead coordinator, which does nothing more."""
    stand = Stand("abcd", seats=3)
    user = stand.acquire("d", 1, run=1.0)
    coordinator = stand.coordinators("d")[0]
    stand.hosts["d"].clock += LEASE  # no timer runs
    alive = Alive(coordinator.key, coordinator.who, coordinator._stamp, ok=True, promised=coordinator.ballot, stale=False, draining=False)
    stand.tickets["d"].on_message(stand.hosts["a"].me, alive)
    assert coordinator.state is State.DEAD
    assert user.lost == [Lapsed()]
    sent = len(stand.sent)
    coordinator.on_round(stand.now)
    assert not [message for _, _, message in stand.sent[sent:] if isinstance(message, Renew)]


def test_deadline_is_compared_without_any_event() -> None:
    """F9: valid reads the clock, not a flag that a timer sets."""
    stand = Stand("abcd", seats=3)
    user = stand.acquire("d", 1, run=1.0)
    assert user.attempt is not None
    assert user.attempt.valid
    stand.hosts["d"].clock = user.until
    assert not user.attempt.valid


def test_only_members_of_the_set_are_counted() -> None:
    """5.3 ALIVE, D7: answers of strangers, of another cell and of a RENEW that was never sent extend nothing."""
    stand = Stand("abcde", seats=3)
    user = stand.acquire("d", 1, run=1.0)
    coordinator, until = stand.coordinators("d")[0], user.until
    stand.lose = lambda source, target, message: isinstance(message, Alive)
    stand.run(PERIOD)

    def echo(source: str, stamp: float) -> None:
        alive = Alive(coordinator.key, coordinator.who, stamp, ok=True, promised=coordinator.ballot, stale=False, draining=False)
        stand.tickets["d"].on_message(stand.hosts[source].me, alive)

    echo("e", coordinator._stamp)
    echo("e", coordinator._stamp)
    echo("a", coordinator._stamp + 1.0)
    echo("b", coordinator._stamp + 1.0)
    assert user.until == until
    echo("a", coordinator._stamp)
    echo("b", coordinator._stamp)
    assert user.until == pytest.approx(coordinator._stamp + HOLD)


def test_at_risk_is_said_once_per_gap() -> None:
    """9.2: when a round has passed without an extension."""
    stand = Stand("abcd", seats=3)
    user = stand.acquire("d", 1, run=1.0)
    stand.lose = lambda source, target, message: isinstance(message, Alive)
    stand.run(1.5 * PERIOD)
    assert user.at_risk == 1
    stand.lose = lambda source, target, message: False
    stand.run(2 * PERIOD)
    assert user.acting


def test_stale_guardian_is_repaired() -> None:
    """5.3: a guardian that missed a write gets the present version with the next round."""
    stand = Stand("abcd", seats=3)
    stand.lose = lambda source, target, message: target == "c" and isinstance(message, Accept)
    stand.acquire("d", 4, run=0.2)
    key = stand.coordinators("d")[0].key
    assert stand.tickets["c"].guardian.cells[key].val is None
    stand.lose = lambda source, target, message: False
    stand.run(2 * PERIOD)
    assert stand.tickets["c"].guardian.cells[key].val == stand.coordinators("d")[0].val


def test_promise_to_another_is_answered_with_a_higher_ballot() -> None:
    """D14: a guardian cut off from the holder promises to a candidate; the holder, alive by the others, writes under a higher ballot."""
    stand = Stand("abcde", seats=3)
    user = stand.acquire("d", 1, run=1.0)
    coordinator = stand.coordinators("d")[0]
    before = coordinator.ballot
    stand.lose = lambda source, target, message: {source, target} == {"d", "c"}
    stand.run(LEASE + PERIOD)
    ballot = stand.tickets["e"].desk.ballot(stand.tickets["e"].desk.lease(), before)
    stand.tickets["c"].on_message(stand.hosts["e"].me, Prepare(99, coordinator.key, ballot, None))
    stand.run(0.001)
    assert stand.tickets["c"].guardian.cells[coordinator.key].promised == ballot
    stand.lose = lambda source, target, message: False
    stand.run(2 * PERIOD)
    assert coordinator.ballot > ballot
    assert stand.tickets["c"].guardian.cells[coordinator.key].promised == coordinator.ballot
    assert user.acting


def test_write_goes_on_until_it_is_chosen() -> None:
    """5.4: a timeout repeats the same version; a release whose answers are lost ends when one gets through."""
    stand = Stand("abcd", seats=3)
    user = stand.acquire("d", 1, run=1.0)
    stand.lose = lambda source, target, message: target == "d"
    user.release()
    stand.run(1.5 * CONFIG.phase_timeout)
    assert [each.state for each in stand.coordinators("d")] == [State.LEAVING]
    stand.lose = lambda source, target, message: False
    stand.run(CONFIG.phase_timeout)
    assert stand.coordinators("d") == []
    cell = stand.tickets["a"].guardian.cells[next(iter(stand.tickets["a"].guardian.cells))]
    assert cell.val is not None
    assert cell.val.status is Status.FREE


def test_deposed_holder_dies() -> None:
    """5.4: a holder that finds another owner in its cell is over, also if its clock still said otherwise."""
    stand = Stand("abcd", seats=3)
    user = stand.acquire("d", 1, run=1.0)
    coordinator = stand.coordinators("d")[0]
    ballot = stand.tickets["a"].desk.ballot(stand.tickets["a"].desk.lease(), coordinator.ballot)
    val = coordinator.val
    other = replace(val, seq=val.seq + 1, token=val.token + 1, fence=val.fence + 1, holder=ballot.lease)
    for name in "abc":  # what only a broken clock can bring about
        stand.tickets[name].guardian.on_message(Accept(0, coordinator.key, ballot, other, grant=False), lambda answer: None)
    stand.run(2 * PERIOD)
    assert user.lost == [Deposed()]


def test_release_stops_before_it_is_written() -> None:
    """5.8, D8: ownership ends first; not one RENEW follows."""
    stand = Stand("abcd", seats=3)
    user = stand.acquire("d", 1, run=1.0)
    user.release()
    assert stand.holder(0) == []
    assert len(stand.events(TicketReleased)) == 1
    before = stand.count(Renew)
    stand.run(2 * PERIOD)
    assert stand.count(Renew) == before


def test_failover_to_a_candidate_within_the_bound() -> None:
    """G5, E10: after a crash a waiting candidate owns the lock when the grant has run out, and not before."""
    stand = Stand("abcde", seats=3)
    first = stand.acquire("d", 1, run=1.0)
    second = stand.acquire("e", 1, run=1.0)
    stand.crash("d")
    crashed_at, until = stand.now, first.until
    stand.run(LEASE + 2 * PERIOD)
    assert second.acting
    assert until < second.acquired_at <= crashed_at + LEASE + 0.3
    assert second.token > first.token
    assert len(stand.events(AnchorTaken)) == 2


def test_clock_bounds_are_kept_apart() -> None:
    """F8: with rho the holder's count ends before the guardian's, the worst case included."""
    config = TicketConfig(rho=0.02)
    slowest_holder = config.hold / (1 - config.rho)
    fastest_guardian = config.lease / (1 + config.rho)
    assert slowest_holder <= fastest_guardian + 1e-12


def messages(stand: Stand, kind: type[Message], since: int) -> int:
    return sum(isinstance(message, kind) for _, _, message in stand.sent[since:])


def test_message_cost_of_a_round() -> None:
    """D22: each round 2k+1 RENEW and 2k+1 ALIVE for one coordinator; nothing else to guardians."""
    stand = Stand("abcd", seats=3)
    stand.acquire("d", 1, run=1.0)
    since = len(stand.sent)
    stand.run(10 * PERIOD)
    assert messages(stand, Renew, since) == pytest.approx(30, abs=3)
    assert messages(stand, Alive, since) == pytest.approx(30, abs=3)
    assert messages(stand, Accept, since) == 0
