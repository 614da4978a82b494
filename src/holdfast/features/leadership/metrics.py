"""Numbers about leadership for Prometheus.  Spec: fast-detection 9 (metrics); docs/http.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from holdfast.agent.observe.metrics import Metric, Sample, counter, gauge, histogram, labelled

if TYPE_CHECKING:
    from holdfast.config import Config
    from holdfast.features.leadership.detector.links import LinkStats
    from holdfast.features.leadership.kind import LeadKind
    from holdfast.features.leadership.leaders import Board
    from holdfast.features.leadership.protocol.leadership import Leadership
    from holdfast.host import NodeId
    from holdfast.local.calls import GroupView

LINKS_MAX = 64  # in one answer: whoever monitors more sees enough of them to judge its network
BALLOTS = "ballots_"
# What was not done for a peer or a name, by where it is counted. ``table_full`` at a seat: names beyond what it remembers are never led.
REFUSED = ("malformed", "not_a_seat", "far_ahead", "given_up", "table_full", "names_full", "watches_full", "two_leaders", "misplaced")


class LeadershipSource(Protocol):
    """What HTTP shows of leadership: ``running.LeadershipAgent``."""

    me: NodeId
    config: Config
    leadership: Leadership
    kind: LeadKind
    leaders: Board

    def view(self) -> GroupView: ...


def of_leadership(running: LeadershipSource) -> Iterable[Metric]:
    leadership, kind = running.leadership, running.kind
    office, links = leadership.office, leadership.watches.links
    yield gauge("lead_names", "Names with a known leader.", sum(line.leader is not None for line in running.leaders.views))
    yield gauge("lead_own", "Names that this agent leads.", running.leaders.led_by(running.me))
    yield gauge("lead_candidacies", "Names for which a client of this agent asks, those that it leads included.", len(office.campaigns))
    yield counter("lead_terms_total", "Terms that began, of whatever leader, as known here.", running.leaders.terms_heard)
    downs = {"lapsed": float(office.counts["lapsed"]), "gave_up": float(office.counts["gave_up"])}
    yield labelled("lead_step_downs_total", "counter", "Terms and questions of this agent that ended without its wish.", "reason", downs)
    yield labelled(
        "lead_refused_total",
        "counter",
        "What peers said or asked for that could not be, and what had no room.",
        "reason",
        refused(leadership),
    )
    yield counter("lead_starts_total", "Times another agent was told to ask for a name.", office.counts["starts"])
    yield counter(
        "lead_heartbeats_total", "Heartbeats of this agent as a leader or candidate, repeats included.", office.pulse.watched.stamp
    )
    received = {type_.__name__: float(count) for type_, count in leadership.received.items()}
    yield labelled("lead_messages_total", "counter", "Messages about leadership that came here, by what they are.", "what", received)
    yield gauge("lead_interval_seconds", "Seconds between two heartbeats of a leader.", leadership.config.t_itv)
    yield histogram("lead_lease_margin_seconds", "Seconds that were left of a client's term when it was renewed.", kind.margins)
    if kind.margin_least is not None:
        yield gauge("lead_margin_seconds_least", "Least time that was left of a term when it was renewed.", kind.margin_least)
    yield gauge("lead_common_loss", "Share of heartbeats that all monitors miss at once, as measured.", office.pulse.watched.common)
    ballots = {name.removeprefix(BALLOTS): float(count) for name, count in links.counts.items() if name.startswith(BALLOTS)}
    yield labelled(
        "lead_ballots_total", "counter", "Questions to other monitors about a missed heartbeat, by what became of them.", "what", ballots
    )
    yield counter("lead_votes_total", "Answers to these questions.", links.counts["votes"])
    yield counter("lead_vote_seconds_total", "Seconds that these answers took.", links.vote_seconds)
    yield counter("lead_late_timers_total", "Times this agent was too late to judge a leader.", links.counts["late_timers"])
    yield from _links(_measured(running))
    yield from _plans(leadership)


def refused(leadership: Leadership) -> dict[str, float]:
    """Those of all its parts, and of the promises that it keeps as a seat."""
    counts, promises = leadership.counters(), leadership.seat.promises
    kept = Counter[str]() if promises is None else promises.counts
    return {reason: float(counts[reason] + kept[reason]) for reason in REFUSED}


def _measured(running: LeadershipSource) -> dict[str, LinkStats]:
    """Links from those who lead something: nobody else sends heartbeats."""
    links = running.leadership.watches.links
    found = ((member.name, links.stats(member.id)) for member in running.view().members)
    return dict([each for each in found if each[1].samples > 0][:LINKS_MAX])


def _plans(leadership: Leadership) -> Iterable[Metric]:
    """Fast-detection 9: planned accuracy, as it is now. PlanChanged says when it became another one."""
    plans = sorted({life.name: plan for life, plan in sorted(leadership.watches.plans().items())}.items())[:LINKS_MAX]
    for name, text, field in (
        (
            "lead_plan_heartbeats",
            "Heartbeats of this member that all its monitors must miss in a row before it is found dead.",
            "heartbeats",
        ),
        ("lead_plan_monitors", "Monitors whose misses count for that.", "misses"),
        ("lead_plan_bound_seconds", "Longest time between its death and its being found dead, if no question is lost.", "bound_s"),
    ):
        yield Metric(name, "gauge", text, tuple(Sample(float(getattr(plan, field)), (("member", member),)) for member, plan in plans))


def _links(stats: dict[str, LinkStats]) -> Iterable[Metric]:
    for name, text, field in (
        ("lead_link_loss", "Measured loss of heartbeats from this member.", "p"),
        ("lead_link_loss_upper", "The same with its uncertainty: what evidence is weighed with.", "p_upper"),
        ("lead_link_jitter_seconds", "Standard deviation of their arrival.", "jitter"),
        ("lead_link_alpha_seconds", "Margin after which one is missed.", "alpha"),
    ):
        yield Metric(name, "gauge", text, tuple(Sample(getattr(each, field), (("member", peer),)) for peer, each in stats.items()))
