"""detection/E20: pure cells, and proof that it can miss each promise; tests/cli runs it at quick size.  docs/decisions.md H136"""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.features.leadership.lab.experiments import ships as lead_ships
from holdfast.features.leadership.lab.experiments.ships import (
    AGENTS,
    CRASH,
    EXPERIMENT,
    FEW,
    NEXT_DEAD,
    PROMISED_NEXT_DEAD,
    RESIGN,
    ShipsParameters,
)
from holdfast.features.leadership.lab.groups import LENGTH, NUMBERS, LeadGroup
from holdfast.features.leadership.protocol import campaign as lead_campaign
from holdfast.features.leadership.protocol.office import LeadOffice
from holdfast.features.leadership.protocol.reigns import Reigns
from holdfast.lab.experiment import Finding, Measured, parameters_of

TINY = {"end": {"ends": 2}, "death": {"ends": 2}, "noise": {"heartbeats": 100}}


def tiny(kind: str, **chosen: Any) -> dict[str, Any]:
    """The first cell of the full size that is like this, with little to do."""
    cells = EXPERIMENT.cells(ShipsParameters(), 1)
    cell = next(cell for cell in cells if cell["kind"] == kind and all(cell[what] == value for what, value in chosen.items()))
    return {**cell, **TINY[kind]}


def end(way: str, seconds: float, *, n: int = AGENTS, p: float = 0.0, gap: float = 0.02, never: int = 0) -> Measured:
    return {"kind": "end", "way": way, "n": n, "p": p, "times": [seconds] * 3, "gaps": [0.03, gap, 0.03], "never": never}


def death(seconds: float, missed: int, *, n: int = AGENTS, p: float = 0.0, never: int = 0) -> Measured:
    return {"kind": "death", "n": n, "measured": False, "p": p, "times": [0.5, seconds], "missed": [1, missed], "never": never}


def noise(lapsed: int, *, renewals: int = 2, p: float = 0.1, heartbeats: int = 10_000) -> Measured:
    return {"kind": "noise", "p": p, "renewals": renewals, "heartbeats": heartbeats, "lapsed": lapsed}


def judged(*rows: Measured) -> Finding:
    finding = EXPERIMENT.judge(ShipsParameters(), rows)
    assert finding.passed != bool(finding.notes)
    return finding


@pytest.mark.parametrize("kind", TINY)
def test_same_seed_measures_the_same(kind: str) -> None:
    """H136: cells are pure functions: other processes and other machines find the same."""
    assert EXPERIMENT.measure(tiny(kind)) == EXPERIMENT.measure(tiny(kind))


def test_no_two_cells_are_the_same() -> None:
    """H136: another seed is another experiment, and no two cells share everything."""
    parameters = parameters_of(EXPERIMENT, EXPERIMENT.quick)
    cells = EXPERIMENT.cells(parameters, 1)
    assert len({repr(cell) for cell in cells}) == len(cells)
    assert cells != EXPERIMENT.cells(parameters, 2)


def test_the_promises_are_those_of_the_page() -> None:
    """D26, docs/leadership.md: a term of ``lan`` lasts 1.5 s, after a death at most about 1.6 s; two round trips of 1 to 10 ms."""
    promised = [LENGTH, lead_ships.PROMISED, lead_ships.PROMISED_NEXT_DEAD, lead_ships.PROMISED_RESIGN]
    assert promised == pytest.approx([1.5, 1.6, 2.1, 0.022])
    numbers = [NUMBERS.t_itv, NUMBERS.p_m]
    assert numbers == [1.0, 1e-5]


@pytest.mark.parametrize(
    "row, passed",
    [
        (end(CRASH, 1.3), True),
        (end(CRASH, 1.3, p=0.1), True),
        (end(CRASH, 1.61), False),
        (end(CRASH, 1.61, p=0.1), False),
        (end(CRASH, 1.31), False),
        (end(CRASH, 1.61, n=FEW), False),
        (end(CRASH, 1.3, gap=-1e-6), False),
        (end(CRASH, 1.3, never=1), False),
        (end(NEXT_DEAD, 2.09), True),
        (end(NEXT_DEAD, 2.11), False),
        (end(NEXT_DEAD, 2.0, gap=-1e-6), False),
        (end(RESIGN, 0.022), True),
        (end(RESIGN, 0.023), False),
        (end(RESIGN, 0.02, never=1), False),
        (death(1.4, 1), True),
        (death(1.51, 1), False),
        (death(1.4, 2), False),
        (death(2.4, 2, p=0.1), True),
        (death(1.4, 1, p=0.1, never=1), False),
        (death(3.4, 3, n=FEW), True),
        (death(3.4, 4, n=FEW), False),
        (noise(40, p=0.2), True),
        (noise(40, renewals=1), True),
    ],
)
def test_e20_can_miss(row: Measured, passed: bool) -> None:
    """H136, D26, G2, G5, H84, H86: each promise by itself; beside it a leader that lost nothing in 10,000 heartbeats."""
    assert judged(noise(0), row).passed == passed


@pytest.mark.parametrize("lapsed, passed", [(0, True), (3, True), (6, False)])
def test_e20_can_miss_step_downs(lapsed: int, passed: bool) -> None:
    """D26, H132: two renewals at p = 0.1, and the interval ends below 1 per 1000; if that is not measured, nothing was shown."""
    assert judged(end(CRASH, 1.3), noise(lapsed)).passed == passed
    assert not judged(end(CRASH, 1.3), noise(0, p=0.2)).passed


def test_a_promise_that_ends_too_early_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """G5, F8: a leader that counts a fifth more than it was promised has a deadline that the next term does not wait for."""
    cell = tiny("end", way=CRASH, n=AGENTS, p=0.0)
    right = EXPERIMENT.measure(cell)
    assert min(right["gaps"]) > 0
    monkeypatch.setattr(lead_campaign, "holder_length", lambda x, rho: 1.2 * x)
    wrong = EXPERIMENT.measure(cell)
    assert min(wrong["gaps"]) < 0
    assert not judged(noise(0), wrong).passed


@pytest.mark.parametrize("agents, heartbeats", [(FEW, 3), (AGENTS, 1)])
def test_few_agents_need_more_heartbeats(agents: int, heartbeats: int) -> None:
    """H84, D9: two monitors of links that are not measured reach 1e-5 with the third heartbeat, six with the first."""
    found = EXPERIMENT.measure(tiny("death", n=agents, measured=False, p=0.0))
    assert found["missed"] == [heartbeats, heartbeats]


@pytest.mark.parametrize("once, left", [(False, 1.25), (True, 0.75)])
def test_what_is_left_of_a_term(once: bool, left: float) -> None:
    """H132: three quarters of an interval after a heartbeat a term was renewed a quarter ago, and three quarters ago without it."""
    group = LeadGroup(1, AGENTS, once=once)
    leader = group.ready(5.0, 0.75)
    assert group.published(leader) - group.world.now == pytest.approx(left, abs=0.01)


def test_the_next_candidate_is_the_one_that_follows() -> None:
    """H84: the next in the order of candidates leads after a crash; if it dies too, another one does."""
    group = LeadGroup(3, AGENTS, standing=["a3", "a4", "a5"])
    leader = group.ready(5.0, 0.25)
    chosen = group.next_candidate(leader)
    group.crash([leader])
    assert group.next_term(5.0) is not None
    assert group.led[-1][1] == chosen
    group.crash([group.ready(5.0, 0.25)])
    assert group.next_term(5.0) is not None
    assert group.led[-1][1] not in (leader, chosen)


@pytest.mark.parametrize("without", ["", "names the same one again", "waits for the dead one's turn"])
def test_leader_and_next_candidate_die_together(without: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """H144, H84, D23: whoever was named and not heard is not named again, and the one after it waits Delta_c. Without either it is late."""
    if without.startswith("names"):
        monkeypatch.setattr(Reigns, "unheard", lambda self, name: ())
    elif without:
        place = LeadOffice.place
        monkeypatch.setattr(LeadOffice, "place", lambda self, name, but=None: place(self, name))
    found = EXPERIMENT.measure({**tiny("end", way=NEXT_DEAD, n=AGENTS, p=0.0), "ends": 72})
    assert (max(found["times"]) <= PROMISED_NEXT_DEAD) == (not without)
