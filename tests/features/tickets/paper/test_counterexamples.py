"""The schedules that break the paper's Theorem 4.1, on our protocol with the paper's guardians: what holds, and what holds it.

Spec: tickets D3, D5, D6, D19; 8 (E3). ``PaperRing`` breaks on them (``test_theorem_4_1_does_not_hold``); D4 on ours is in
``unit/test_schedules.py``. As there, seven agents hold seven adjacent tickets, k = 1, and what matters happens to ticket 3.
"""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.coordinator import Coordinator, State
from holdfast.features.tickets.protocol.messages import Alive, Refuse
from holdfast.kit.hold import Lapsed
from holdfast.papers.tickets.lab.paper_traces import BUFFERED, ROUND_PHASES
from tests.features.tickets import ablations
from tests.features.tickets.ablations import Ablation, without
from tests.features.tickets.stand import Stand

RING = TicketConfig(period=0.5, lease=2.0, rtx=0.1, guardians="ring", k=1, rho=0.0)
NAMES, N = "abcdefg", 7
TICKET = 3
PHASES = (0.0, 0.1, 0.2, 0.3, 0.4)  # seconds into a round of T


class Circle:
    """Seven adjacent tickets. ``r`` owns ticket 3, ``p`` is its predecessor; p and the two before it guard r's cell, and none is a seat."""

    def __init__(self) -> None:
        self.stand = Stand(NAMES, seats=3, config=RING)
        self.users = {name: self.stand.acquire(name, N, run=1.5) for name in NAMES}
        self.stand.run(10 * RING.period)  # until every cell has moved to its predecessors
        ring = {each.head: each for name in NAMES for each in self.stand.coordinators(name)}
        assert sorted(ring) == list(range(N))
        self.p, self.r = ring[TICKET + 1], ring[TICKET]
        before = [ring[TICKET + i].desk.me.life for i in (1, 2, 3)]
        assert [place.agent.life for place in self.r.places] == before
        assert all(life.name not in "abc" for life in before)

    def watch(self, seconds: float) -> set[int]:
        """Tickets that two coordinate at one moment (I1, I2); looked at after every step."""
        found: set[int] = set()
        end = self.stand.now + seconds
        while self.stand.now < end:
            self.stand.run(0.02)
            found |= self.common()
        return found

    def common(self) -> set[int]:
        valid = [each for name in NAMES if name not in self.stand.down for each in self.stand.coordinators(name) if each.valid]
        return {ticket for i, each in enumerate(valid) for other in valid[i + 1 :] for ticket in set(each.tickets) & set(other.tickets)}

    def buffer(self) -> str:
        """The answers to r's next RENEW wait unread; its name."""
        name = name_of(self.r)
        self.stand.hold = lambda source, target, message: target == name and isinstance(message, Alive)
        while not any(target == name for _, target, _, _ in self.stand.held):
            self.stand.run(0.02)
        self.stand.hold = lambda source, target, message: False
        return name


def name_of(coordinator: Coordinator) -> str:
    return coordinator.desk.me.life.name


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("ablation, broken", [(None, False), (ablations.ignores_busy, True)], ids=["rule", "ignores_busy"])
def test_round_phases_do_not_matter(ablation: Ablation | None, broken: bool, phase: float) -> None:
    """D3, D6: only the link p-r is cut, at any phase of their rounds. The other two guardians have granted, and refuse: r keeps its ticket,
    and p loses nothing by asking. If guardians promise while a grant of theirs runs, p takes ticket 3 while r acts with it."""
    assert ROUND_PHASES.ticket == TICKET
    with without(ablation) if ablation else nullcontext():
        circle = Circle()
        circle.stand.run(phase)
        p, r = name_of(circle.p), name_of(circle.r)
        circle.stand.lose = lambda source, target, message: {source, target} == {p, r}
        found = circle.watch(4 * RING.lease)
        assert (TICKET in found) == broken
        if not broken:
            assert found == set()
            assert circle.stand.tickets[p].counts["exclusions"] == 0
            assert any(target == p and isinstance(message, Refuse) for _, target, message in circle.stand.sent)
            assert all(user.acting and user.lost == [] for user in circle.users.values())


@pytest.mark.parametrize(
    "ablation, broken",
    [(None, False), (ablations.counts_from_receipt, False), (ablations.never_lapses, False), (ablations.counts_what_waited, True)],
    ids=["rule", "counts_from_receipt", "never_lapses", "both"],
)
def test_stop_revives_nothing(ablation: Ablation | None, broken: bool) -> None:
    """D5, F9, F10: r is stopped for 8 s with answers in its buffer, p takes ticket 3 in; when r goes on it reads them and acts no more.

    The look at the deadline and the count from the send time both keep it away; only without either does it act again.
    """
    assert BUFFERED.ticket == TICKET
    with without(ablation) if ablation else nullcontext():
        circle = Circle()
        r = circle.buffer()
        circle.stand.lose = lambda source, target, message: source == r  # What it asks when it goes on would tell it the truth.
        circle.stand.pause(r, 8.0)
        assert circle.p.tickets == (TICKET + 1, TICKET)
        assert circle.users[r].acting == broken
        assert (TICKET in circle.common() | circle.watch(RING.period)) == broken
        assert circle.users[r].lost == ([Lapsed()] if circle.r.state is State.DEAD else [])


@pytest.mark.parametrize("ablation, broken", [(None, False), (ablations.counts_from_receipt, True)], ids=["rule", "counts_from_receipt"])
def test_short_stop_adds_nothing(ablation: Ablation | None, broken: bool) -> None:
    """D5: r goes on before its deadline, reads answers to what it sent before the stop, and is cut off then. They are worth what is left of
    the grants; counted from when they are read, they would last longer than those, and p takes ticket 3 in meanwhile."""
    with without(ablation) if ablation else nullcontext():
        circle = Circle()
        r = circle.buffer()
        circle.stand.lose = lambda source, target, message: source == r
        circle.stand.pause(r, 0.6 * RING.lease)
        assert circle.r.valid
        assert (TICKET in circle.watch(2 * RING.lease)) == broken
        assert circle.p.tickets == (TICKET + 1, TICKET)


def run_at(stand: Stand, names: str, rate: float, seconds: float) -> bool:
    """Let the clocks of some run at another rate; whether two owned ticket 0 at any step."""
    end, twice = stand.now + seconds, False
    while stand.now < end:
        before = {name: stand.hosts[name].clock for name in names}
        stand.run(0.02)
        for name in names:
            passed = stand.hosts[name].clock - before[name]
            if rate > 1:
                stand.hosts[name].pass_time(passed * (rate - 1))
            else:
                stand.hosts[name].clock -= passed * (1 - rate)
        twice = twice or len(stand.holder(0)) > 1
    return twice


@pytest.mark.parametrize("rate, broken", [(0.0, False), (0.5, False), (2.0, True)], ids=["stands still", "slow", "fast"])
def test_slow_guardian_grants_longer(rate: float, broken: bool) -> None:
    """D19, F8: a guardian that stands still, or whose clock is slow, holds its grant longer in real time than the holder counts: the next
    one waits, and nobody owns it twice. One whose clock is faster than rho allows is what breaks it (G1)."""
    stand = Stand("abcde", seats=3, config=RING)
    first, second = stand.acquire("d", 1, run=1.0), stand.acquire("e", 1, run=1.0)
    stand.lose = lambda source, target, message: "d" in (source, target)
    assert run_at(stand, "abc", rate, 1.5 * RING.lease) == broken
    assert not first.acting
    assert second.acting == broken  # By their clocks the grant has not run out yet.
    assert not run_at(stand, "abc", 1.0, 2 * RING.lease)
    assert second.acting
