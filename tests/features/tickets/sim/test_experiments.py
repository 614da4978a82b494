"""tickets/E4, E5, E7, E9 to E12 and E14 at reduced size, and proof that each can miss.  Spec: tickets 8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from matplotlib.figure import Figure

from holdfast.errors import ConfigError
from holdfast.features.tickets.lab import hunts as ticket_hunts
from holdfast.features.tickets.lab.experiments import churn as tickets_churn
from holdfast.features.tickets.lab.experiments import exclusion as tickets_exclusion
from holdfast.features.tickets.lab.experiments import failover as tickets_failover
from holdfast.features.tickets.lab.experiments import founding as tickets_founding
from holdfast.features.tickets.lab.experiments import handover as tickets_handover
from holdfast.features.tickets.lab.experiments import messages as tickets_messages
from holdfast.features.tickets.lab.experiments import partition as tickets_partition
from holdfast.features.tickets.lab.experiments import theorem41_ours as tickets_theorem41_ours
from holdfast.features.tickets.lab.experiments.failover import GAP
from holdfast.features.tickets.lab.experiments.founding import REST, TALK
from holdfast.features.tickets.lab.experiments.messages import RATE
from holdfast.features.tickets.lab.experiments.partition import ALL, HARM, STOPS
from holdfast.features.tickets.lab.experiments.theorem41_ours import ENOUGH, MUTATION, RUNS, SCHEDULE, VIOLATIONS
from holdfast.features.tickets.lab.groups import Grant, TicketGroup, lock
from holdfast.features.tickets.lab.locks import BROKEN, NEVER
from holdfast.features.tickets.lab.mutations import DIRECTED, RANDOM
from holdfast.features.tickets.lab.schedules import SCHEDULES, played
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.lab import registry
from holdfast.lab.experiment import Experiment, Finding, Measured, parameters_of
from holdfast.lab.mutation import put, without
from holdfast.lab.results import Chunk, Failure
from holdfast.lab.source import commit
from holdfast.lab.violation import Violation
from tests.support.search import Search

FAILOVER, HANDOVER, MESSAGES = tickets_failover.EXPERIMENT, tickets_handover.EXPERIMENT, tickets_messages.EXPERIMENT
FOUNDING, PARTITION, EXCLUSION = tickets_founding.EXPERIMENT, tickets_partition.EXPERIMENT, tickets_exclusion.EXPERIMENT
CHURN, OURS = tickets_churn.EXPERIMENT, tickets_theorem41_ours.EXPERIMENT
EVERY: list[Experiment[Any]] = [OURS, MESSAGES, CHURN, EXCLUSION, FAILOVER, HANDOVER, FOUNDING, PARTITION]


def conducted(experiment: Experiment[Any], **settings: str) -> Finding:
    parameters = parameters_of(experiment, settings)
    finding = judged(experiment, [experiment.measure(cell) for cell in experiment.cells(parameters, 0)], **settings)
    experiment.draw(Figure(), finding)
    return finding


def judged(experiment: Experiment[Any], rows: Sequence[Measured], **settings: str) -> Finding:
    finding = experiment.judge(parameters_of(experiment, settings), rows)
    assert isinstance(finding, Finding)
    assert bool(finding.notes) != finding.passed
    return finding


@pytest.mark.parametrize("experiment", EVERY, ids=lambda experiment: experiment.id)
def test_found_and_quick(experiment: Experiment[Any]) -> None:
    """Section 8: `holdfast lab list` and `reproduce tickets` find it, and its quick settings are settings it has."""
    assert experiment in registry.folder("tickets")
    parameters = parameters_of(experiment, experiment.quick)
    assert experiment.cells(parameters, 1) != experiment.cells(parameters, 2)


@pytest.mark.parametrize("experiment, repeated", [(FAILOVER, 3), (HANDOVER, 3), (PARTITION, 1)], ids=lambda each: getattr(each, "id", ""))
def test_every_repetition_is_played(experiment: Experiment[Any], repeated: int) -> None:
    """Repetitions that do not fill their last cell are neither lost nor doubled."""
    cells = experiment.cells(parameters_of(experiment, {"seeds": "25"}), 3)
    runs = [(cell.get("loss"), seed) for cell in cells for seed in range(cell["seed"], cell["seed"] + cell["runs"])]
    assert len(set(runs)) == len(runs) == repeated * 25


# What they measure with


def test_overlaps_are_seen() -> None:
    """G1: the second look, from what users were told alone, sees two users of one ticket, and no more than that."""
    group = TicketGroup(0, 2, seats=1, others=0, config=TicketConfig())
    group.grants = [Grant("a", 0, 1, 0.0, 2.0), Grant("b", 0, 2, 2.0, 4.0), Grant("c", 1, 3, 1.0, 3.0)]
    assert group.overlaps() == []
    group.grants[1].since = 1.9
    assert group.overlaps() == ["ticket 0: b while a has it"]


def test_the_same_seed_plays_the_same() -> None:
    """Cells are pure functions: other processes and other machines find the same."""
    (first, holder), (second, other) = lock(5, 0.2), lock(5, 0.2)
    assert holder == other
    assert [vars(grant) for grant in first.grants] == [vars(grant) for grant in second.grants]
    assert first.sent() == second.sent()


# One lock: E10 and E11


def test_failover() -> None:
    """E10: about D after the death of the holder somebody else has the lock, and not before its deadline."""
    finding = conducted(FAILOVER, seeds="3", losses="[0.0,0.2]")
    assert finding.passed, finding.notes
    assert min(finding.measured[GAP].values()) > 0
    assert 1.0 < finding.measured["p50"]["loss 0%"] < 2.3


@pytest.mark.parametrize(
    "worse",
    [
        {"times": [2.31] * 3},
        {"times": [2.0] * 60 + [4.1]},
        {"gaps": [0.04, 0.0]},
        {NEVER: 1},
        {BROKEN: ["seed 1: I1"]},
        {"times": [], "gaps": []},
    ],
    ids=["median", "p99", "gap", "never", "violation", "nothing"],
)
def test_failover_can_miss(worse: Mapping[str, Any]) -> None:
    """E10: too slow, too slow in the worst case, too early, never, with a violation."""
    good = {"loss": 0.0, "times": [2.0, 2.1, 2.2], "gaps": [0.04, 0.05, 0.1], NEVER: 0, BROKEN: []}
    assert judged(FAILOVER, [good], losses="[0.0]").passed
    assert not judged(FAILOVER, [{**good, **worse}], losses="[0.0]").passed


def test_a_violation_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """E10: a run that a checker ends is counted as such, and the others are played."""
    runs = iter([Violation("I1 own-exclusive", "two"), None, (2.0, 0.1)])

    def death(seed: int, loss: float) -> tuple[float, float] | None:
        found = next(runs)
        if isinstance(found, Violation):
            raise found
        return found

    monkeypatch.setattr(tickets_failover, "_death", death)
    row = FAILOVER.measure({"loss": 0.0, "runs": 3, "seed": 7})
    assert row == {"loss": 0.0, "times": [2.0], "gaps": [0.1], NEVER: 1, BROKEN: ["seed 7: I1 own-exclusive: two"]}


def test_handover() -> None:
    """E11, H113: one round trip to the seats and one word."""
    finding = conducted(HANDOVER, seeds="3", losses="[0.0]")
    assert finding.passed, finding.notes
    assert 0.003 < finding.measured["p50"]["loss 0%"] < 0.038


@pytest.mark.parametrize(
    "worse", [{"times": [0.038] * 2}, {NEVER: 1}, {BROKEN: ["seed 1: I1"]}, {"times": []}], ids=["median", "never", "violation", "nothing"]
)
def test_handover_can_miss(worse: Mapping[str, Any]) -> None:
    """E11: too slow, never, with a violation. Where messages are lost the median is only shown."""
    good = {"loss": 0.0, "times": [0.02, 0.03], NEVER: 0, BROKEN: []}
    lossy = {"loss": 0.2, "times": [0.3, 0.4], NEVER: 0, BROKEN: []}
    assert judged(HANDOVER, [good, lossy], losses="[0.0,0.2]").passed
    assert not judged(HANDOVER, [{**good, **worse}, lossy], losses="[0.0,0.2]").passed


# What a ticket costs: E5


def test_messages() -> None:
    """E5, D22: 2k + 1 questions and answers, and a word with each neighbour."""
    finding = conducted(MESSAGES, ks="[1]", seconds="5", owners="8", tickets="8")
    assert finding.passed, finding.notes
    assert finding.measured[RATE]["seats, k=1"] == pytest.approx(8.0, rel=0.05)


def test_seven_seats_cannot_be() -> None:
    """E5: k = 3 is measured with the paper's guardians alone; a group has at most five seats."""
    cells = MESSAGES.cells(parameters_of(MESSAGES, {}), 0)
    assert [(cell["placement"], cell["k"]) for cell in cells] == [("seats", 1), ("seats", 2), ("ring", 1), ("ring", 2), ("ring", 3)]


@pytest.mark.parametrize("alive, owned, passed", [(3.0, True, True), (3.6, True, False), (2.4, True, False), (3.0, False, False)])
def test_messages_can_miss(alive: float, owned: bool, passed: bool) -> None:
    """E5: too many, too few, a ticket lost in between."""
    sent = {"Renew": 3.0, "Alive": alive, "Update": 1.0, "AckUpdate": 1.0}
    row = {"placement": "seats", "k": 1, "sent": sent, tickets_messages.REST: 0.5, "owned": owned}
    assert judged(MESSAGES, [row], ks="[1]").passed is passed


# Everybody at once: E12


def test_founding() -> None:
    """E12, D13: as many owners as candidates, soon."""
    finding = conducted(FOUNDING, seeds="1", sizes="[4,8]")
    assert finding.passed, finding.notes
    assert finding.measured[TALK]["c=8"] > 10
    assert [len(curve["values"]) for curve in finding.measured["curves"]] == [4, 8]


@pytest.mark.parametrize(
    "worse",
    [{"times": [0.5, 3.1]}, {"talk": 500}, {"times": []}, {"times": [], "violation": "seed 1: I1"}],
    ids=["slow", "costly", "never", "violation"],
)
def test_founding_can_miss(worse: Mapping[str, Any]) -> None:
    """E12: too slow, too many messages, never, with a violation."""
    good = {"size": 2, "times": [0.5, 0.7], "talk": 200, "rest": 900, "violation": ""}
    finding = judged(FOUNDING, [good, good], sizes="[2]")
    assert finding.passed
    assert (finding.measured[TALK]["c=2"], finding.measured[REST]["c=2"]) == (100, 450)
    assert not judged(FOUNDING, [good, {**good, **worse}], sizes="[2]").passed


# What a partition does: E14


def test_partition() -> None:
    """E14: who is cut off stops within D, the others take over."""
    finding = conducted(PARTITION, seeds="2")
    assert finding.passed, finding.notes
    assert 1.0 < finding.measured[STOPS] <= 2.0
    assert finding.measured["owners cut off"] >= 2
    assert finding.measured[ALL]["p50"] > 1.0


@pytest.mark.parametrize(
    "worse",
    [{"stops": [2.1]}, {"stops": []}, {"all": [3.6, 3.6, 1.0]}, {"all": [2.0, 2.0, 8.1]}, {NEVER: 1}, {HARM: ["seed 1: ticket 0"]}],
    ids=["stops late", "nobody", "median", "slowest", "never", "conflict"],
)
def test_partition_can_miss(worse: Mapping[str, Any]) -> None:
    """E14: an owner that goes on, nobody cut off, too slow, never, a conflict."""
    good = {"stops": [1.9, 1.5], "all": [2.5, 2.5, 7.0], NEVER: 0, HARM: [], "timeline": []}
    assert judged(PARTITION, [good]).passed
    assert not judged(PARTITION, [{**good, **worse}]).passed


# Deaths on the ring: E9 and E7


def test_exclusion() -> None:
    """E9: one after the other, each a little later."""
    finding = conducted(EXCLUSION, seeds="2", coordinators="6", tickets="[12]", neighbours="[1,2]")
    assert finding.passed, finding.notes
    one, two = finding.measured["p50"].values()
    assert 1.5 < one < two


@pytest.mark.parametrize(
    "worse", [{"times": [2.7]}, {"times": [1.9]}, {NEVER: 1}, {BROKEN: ["seed 1: I1"]}, {"times": []}], ids=lambda worse: str(worse)[:12]
)
def test_exclusion_can_miss(worse: Mapping[str, Any]) -> None:
    """E9: too slow, slower for one n than for another, never, with a violation."""
    rows = [{"j": 1, "n": n, "times": [2.3], NEVER: 0, BROKEN: []} for n in (12, 24)]
    settings = {"tickets": "[12,24]", "neighbours": "[1]"}
    assert judged(EXCLUSION, rows, **settings).passed
    assert not judged(EXCLUSION, [{**rows[0], **worse}, rows[1]], **settings).passed


def test_churn() -> None:
    """E7: with one death in a hundred agents and rounds a ticket is free."""
    finding = conducted(CHURN, seeds="1", ks="[1]", rates="[0.01]", seconds="12")
    assert finding.passed, finding.notes
    assert finding.measured["deaths"]["seats, k=1, p_f=0.01"] > 0
    assert finding.measured["P(free)"]["seats, k=1, p_f=0.01"] == 1.0


@pytest.mark.parametrize(
    "placement, k, p_f, worse",
    [
        ("seats", 1, 0.01, {"free": 99}),
        ("seats", 1, 0.05, {"free": 100}),
        ("seats", 1, 0.05, {"lost": [1]}),
        ("ring", 2, 0.01, {"lost": [2]}),
        ("ring", 1, 0.05, {"violation": "seed 1: I1"}),
    ],
)
def test_churn_can_miss(placement: str, k: int, p_f: float, worse: Mapping[str, Any]) -> None:
    """E7: not always free, free although half of them die, cells lost with the seats, or with many guardians and few deaths."""
    free = 100 if p_f == 0.01 else 80
    good = {"placement": placement, "k": k, "p_f": p_f, "free": free, "rounds": 100, "deaths": 1, "lost": [], "owned": 8.0, "violation": ""}
    assert judged(CHURN, [good]).passed
    assert not judged(CHURN, [{**good, **worse}]).passed


def test_churn_counts_what_is_lost() -> None:
    """E7, D27: cells of the paper's placement whose guardians died together are counted, and nothing else."""
    group = TicketGroup(1, 8, seats=3, others=6, config=TicketConfig(k=1, guardians="ring"))
    for name in group.others:
        group.wish(name)
    assert group.until(lambda: len(group.owning()) == 6, 30.0)
    group.run(8.0)
    assert group.lost() == []
    *_, second, third, last = (name for name, _ in group.coordinators())
    for name in (second, third, last):  # the last one and the two nearest of its three guardians
        group.crash(name)
    group.run(0.1)
    assert [val.holder.life.name for val in group.lost() if val.holder is not None] == [last]


# Theorem 4.1 on ours: E4


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str) -> None:
    """E4, D4, D12, D15, D16, H102, H103: with the rule nothing is violated, without it something is."""
    assert played(name, 11) == ""
    with without(DIRECTED[name]):
        assert played(name, 11)
    assert played(name, 11) == ""


def test_random_runs_catch() -> None:
    """E4: as the experiment hunts."""
    found, violation = ticket_hunts.hunt("ignore busy", 0, 80)
    assert found
    assert violation.startswith("I5")


def test_restless_runs_catch(search: Search) -> None:
    """E4, D18: the mutation that the sweep's own tests do not hunt in this way. It takes 61 runs."""
    with without(RANDOM[ticket_hunts.RESTARTS]):
        assert search(ticket_hunts.Restless(), 80, ignored=ticket_hunts.UNSETTLED) == "I5 lease-cover"


def test_mutations_leave_nothing_behind() -> None:
    """E4: what was taken out is back, inherited attributes included."""

    class Base:
        rule = 1

    class Child(Base):
        """Has nothing of its own."""

    with without(lambda stack: put(stack, Child, "rule", 2)):
        assert Child.rule == 2
    assert "rule" not in vars(Child)
    assert Child.rule == 1


def good_rows() -> dict[str, dict[str, Any]]:
    return {
        RUNS: {"kind": RUNS, "runs": ENOUGH, VIOLATIONS: [], "events": 1},
        **{name: {"kind": MUTATION, "name": name, "run": 9, "violation": "I1: two"} for name in RANDOM},
        **{name: {"kind": SCHEDULE, "name": name, "kept": 0, "broken": 3, "violation": "I1: two"} for name in SCHEDULES},
    }


@pytest.mark.parametrize(
    "which, worse",
    [
        (RUNS, {"runs": ENOUGH - 1}),
        (RUNS, {VIOLATIONS: ["I1: two"]}),
        ("ignore busy", {"run": 0}),
        ("amnesic seat", {"run": 101}),
        ("ignore nxt", {"broken": 2}),
        ("leave builds on val", {"kept": 1}),
    ],
)
def test_ours_can_miss(which: str, worse: Mapping[str, Any]) -> None:
    """E4: too few runs, a violation, a mutation that nobody catches, a schedule that shows nothing or fails anyway."""
    rows = good_rows()
    finding = judged(OURS, list(rows.values()))
    assert set(OURS.parameters().mutations) == set(RANDOM)
    assert finding.passed
    OURS.draw(Figure(), finding)
    assert not judged(OURS, list({**rows, which: {**rows[which], **worse}}.values())).passed


def test_sweeps_count(tmp_path: Path) -> None:
    """E4: runs that a sweep of these sources made count, each seed once; those of other sources do not; a failure is one."""
    file = tmp_path / "sweep.jsonl"
    chunk = Chunk(scenario="tickets/mixed", first=0, last=9, commit=commit(), passed=10, failed=(), events=100, seconds=1.0)
    failed = (Failure(12, "I1: two", "holdfast lab replay tickets/mixed --seed 12"),)
    chunks = [
        chunk,
        msgspec.structs.replace(chunk, first=5, last=14, passed=9, failed=failed),
        msgspec.structs.replace(chunk, first=100, last=199, commit="other"),
    ]
    file.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in chunks))
    cells = OURS.cells(parameters_of(OURS, {"sweep": str(file)}), 0)
    (found,) = (OURS.measure(cell) for cell in cells if cell["kind"] == RUNS)
    assert (found["runs"], found[VIOLATIONS]) == (15, ["I1: two; holdfast lab replay tickets/mixed --seed 12"])
    with pytest.raises(ConfigError, match="there is no file"):
        OURS.cells(parameters_of(OURS, {"sweep": str(tmp_path / "none")}), 0)
