"""Seeded sweeps of tickets, and proof that their checkers can fail.  Spec: tickets 7 (I1 to I10), 8 (E4); foundation F9, F13, F14."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from holdfast.features.tickets.lab.scenarios import tickets as scenarios
from holdfast.features.tickets.lab.scenarios.tickets import TicketScenario, readable
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.tickets import Tickets
from holdfast.host import Host
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.roster import Roster
from holdfast.kit.seats import Seats
from holdfast.lab.scenario import run
from tests import sizes
from tests.features.tickets import ablations
from tests.features.tickets.ablations import Ablation, without
from tests.support.search import Search

SEEDS, CHUNK = sizes.seeds(), sizes.seeds(40)
ABLATION_SEEDS = 100


class ShortTickets(TicketScenario):
    """As many faults in a sixth of the time; counts which branches were taken."""

    seconds = 8.0

    def __init__(self) -> None:
        self.machines: list[Tickets] = []

    def make(self, host: Host, roster: Roster, seats: Seats, broadcast: Broadcast, exchange: Exchange, config: TicketConfig) -> Tickets:
        self.machines.append(super().make(host, roster, seats, broadcast, exchange, config))
        return self.machines[-1]


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_sweep(first: int) -> None:
    """I1 to I10 at every event of 20 seeds (40 nightly) per test, one in ten through the real wire; every branch that matters was taken."""
    scenario = ShortTickets()
    outcomes = (run(scenario, seed) for seed in range(first, first + CHUNK))
    assert [f"{outcome.violation}: {outcome.replay}" for outcome in outcomes if not outcome.ok] == []
    marks: Counter[str] = Counter()
    for machine in scenario.machines:
        marks.update(machine.counts)
    wanted = ("acquired", "takeovers", "handovers", "exclusions", "reballots", "moves", "returned", "phase_timeouts", "forgotten", "silent")
    assert [mark for mark in wanted if not marks[mark]] == [], marks


SAFETY = {"I1 own-exclusive", "I2 coordinate-exclusive", "G1 used-once", "I3 token-monotonic", "I4 ring-partition", "I5 lease-cover"}


@pytest.mark.parametrize(
    "ablation, caught_by",
    [
        (ablations.ignores_busy, SAFETY),
        (ablations.counts_from_receipt, SAFETY),
        (ablations.amnesic_seat, {*SAFETY, "settled", "I6 write-once"}),
        (ablations.no_restart_wait, SAFETY),
        (ablations.forgets_fence, {"I3 token-monotonic"}),
        (ablations.leave_builds_on_val, {*SAFETY, "I6 write-once"}),
        (ablations.leaves_the_dead, {"settled"}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_checkers_catch(ablation: Ablation, caught_by: set[str], search: Search) -> None:
    """E4: each rule taken out is found by random runs."""
    scenario = ShortTickets()
    with without(ablation):
        found = search(scenario, ABLATION_SEEDS)
    assert found in caught_by


@pytest.mark.parametrize("seed", [980, 1378])
def test_lost_on_the_way(seed: int) -> None:
    """I10, D27: the only guardian that knew where the cell was moved to is dead. Such a cell is lost, and its predecessor says so."""
    check_lost(seed)


def test_lost_in_the_middle_of_a_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """I10, D27, H142: a holder and the only guardian of the set that the cell was being moved to are dead. The set that it is moved from
    answers, and cannot know whether the new one has the cell: it is lost, too, which a check that leaves out the new set would not see."""
    seed = 9209
    check_lost(seed)
    monkeypatch.setattr(scenarios, "readable", lambda world, cells, keys, val: readable(world, cells, keys, replace(val, nxt=None)))
    assert "is nobody's" in run(TicketScenario(), seed).violation


def check_lost(seed: int) -> None:
    outcome = run(TicketScenario(), seed)
    assert outcome.ok, outcome.violation
    with without(ablations.loses_silently):
        assert "is lost and nobody says so" in run(TicketScenario(), seed).violation
