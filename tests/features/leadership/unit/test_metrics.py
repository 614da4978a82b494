"""Numbers about leadership that an operator is woken by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.agent.observe.metrics import Sample
from holdfast.events import LeaderChanged
from holdfast.features.leadership.kind import LeadKind
from holdfast.features.leadership.leaders import Board
from holdfast.features.leadership.metrics import REFUSED, _plans, of_leadership, refused
from holdfast.host import Member, Membership, NodeId
from holdfast.kit import promise
from tests.features.leadership.stand import Stand

# Fast-detection 9, word by word.
SECTION_9 = {
    "p per link": ("lead_link_loss", "lead_link_loss_upper"),
    "jitter per link": ("lead_link_jitter_seconds",),
    "c": ("lead_common_loss",),
    "alpha": ("lead_link_alpha_seconds",),
    "ballots opened/dismissed/acted": ("lead_ballots_total",),
    "vote latency": ("lead_votes_total", "lead_vote_seconds_total"),
    "lease margin": ("lead_lease_margin_seconds", "lead_margin_seconds_least"),
    "step-downs by reason": ("lead_step_downs_total",),
    "late timers": ("lead_late_timers_total",),
    "messages per interval": ("lead_messages_total", "lead_interval_seconds"),
    "planned accuracy": ("lead_plan_heartbeats", "lead_plan_monitors", "lead_plan_bound_seconds"),
}


def test_a_name_beyond_what_seats_remember_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: every limit has a counter; a full seat is the reason why a name is never led, and only seats know it."""
    stand = Stand(agents=4)
    monkeypatch.setattr(promise, "KEYS_MAX", 0)
    stand.stand("a3")
    stand.run(3.0)
    assert stand.leader() == ""
    assert all(refused(stand.at(seat))["table_full"] > 0 for seat in ("a0", "a1", "a2"))
    assert refused(stand.at("a3")) == dict.fromkeys(REFUSED, 0.0)


class Observed:
    """An agent of the lab as ``of_leadership`` sees one: its machine is real, its clients are these numbers."""

    def __init__(self, stand: Stand, name: str) -> None:
        self.leadership, self.me = stand.at(name), stand.host(name).me
        self.leaders = Board()
        for _, who, fact in stand.facts:
            if who == name and isinstance(fact, LeaderChanged):
                self.leaders.note(fact, 0.0)
        self.kind = LeadKind(self.leadership, lambda: 10.0, term_length=lambda grace: 1.5 + grace, longest=15.0)
        self.kind._on_renewed(10.7)
        self._members: tuple[Member, ...] = stand.host(name).node.use(Membership).members()  # type: ignore[type-abstract]

    def view(self) -> Any:
        return SimpleNamespace(members=self._members)

    def metrics(self) -> dict[str, tuple[Sample, ...]]:
        return {metric.name: metric.samples for metric in of_leadership(self)}  # type: ignore[arg-type]


def test_every_metric_of_the_section_is_there() -> None:
    """Fast-detection 9 (metrics), H138: each of its words has a name and a value, after a leader was found dead."""
    stand = Stand()
    stand.stand("a4", "a3")
    stand.run(10.0)
    former = stand.leader()
    stand.world.crash(former)
    stand.run(10.0)
    leader = stand.leader()
    asked = [metrics for metrics in (Observed(stand, name).metrics() for name in ("a0", "a1", "a2")) if metrics["lead_ballots_total"]]
    assert asked, "one of the seats opened the ballot"
    metrics = asked[0]
    assert [name for names in SECTION_9.values() for name in names if not metrics.get(name)] == []
    of_leader = (("member", leader),)
    (plan,) = [sample.value for sample in metrics["lead_plan_heartbeats"] if sample.labels == of_leader]
    (monitors,) = [sample.value for sample in metrics["lead_plan_monitors"] if sample.labels == of_leader]
    (bound,) = [sample.value for sample in metrics["lead_plan_bound_seconds"] if sample.labels == of_leader]
    assert (plan, monitors) >= (1, 3)
    assert plan <= bound <= plan + 1
    received = {dict(sample.labels)["what"]: sample.value for sample in metrics["lead_messages_total"]}
    assert received["WatchedOk"] > received.get("DidYouMissToo", 0) + received.get("Vote", 0)
    assert [sample.value for sample in metrics["lead_lease_margin_seconds"] if dict(sample.labels).get("le") in ("0.5", "1.0")] == [0, 1]


def test_one_plan_per_member() -> None:
    """Fast-detection 9: after a restart both lives may be watched; the newer one's plan is told, because a series has one value."""
    plans = {NodeId("a", boot): SimpleNamespace(heartbeats=boot, misses=2, bound_s=1.0) for boot in (2, 1)}
    leadership: Any = SimpleNamespace(watches=SimpleNamespace(plans=lambda: plans))
    heartbeats, _, _ = _plans(leadership)
    assert [(sample.value, sample.labels) for sample in heartbeats.samples] == [(2.0, (("member", "a"),))]
