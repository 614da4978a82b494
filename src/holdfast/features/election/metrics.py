"""Numbers about elections for Prometheus.  Spec: election 9 (metrics); docs/http.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from holdfast.agent.observe.metrics import Metric, Sample, counter, gauge, histogram, labelled

if TYPE_CHECKING:
    from holdfast.features.election.board import Board
    from holdfast.features.election.kind import ElectKind
    from holdfast.features.election.protocol.config import ElectionConfig
    from holdfast.features.election.protocol.elections import Elections
    from holdfast.features.election.protocol.shown import State
    from holdfast.host import Host

NAMES_MAX = 64  # with numbers of their own: a label per name must not fill a database

# The texts are for operators who write alerts.
COUNTERS = {
    "started": "Elections that began at this agent.",
    "finished": "Of these, those after which its nominee led.",
    "yielded": "Of these, those that were given up for another initiator.",
    "failed": "Of these, those that came to nothing.",
    "restarts": "Elections that began anew because all candidates were excluded.",
    "nominations": "Nominees that this agent told that they are.",
    "rank_violations": "Leaders that rank behind this agent, which was a candidate.",
    "responses_used": "Answers that elections of this agent used.",
    "elected": "Times this agent became a leader.",
    "stepped_down": "Times it led, or was named, and does so no more.",
    "unsure": "Times it was stopped as a leader, and asked before it went on.",
    "lapsed": "Deadlines of its clients that passed before they were extended.",
    "term_conflicts": "Leaders of one term that met: an assumption broke.",
}
REFUSED = (
    "mismatches", "malformed", "far_ahead", "unsound", "late", "secondhand", "own_leader", "unanswered", "not_a_seat", "misplaced",
    "table_full", "names_full", "c_unusable", "no_seats", "unsaved", "health_unread",
)  # fmt: skip
GAUGES = {
    "names": "Names of elections that this agent knows.",
    "stands": "Names that a client of this agent asks for.",
    "running": "Elections of this agent that run.",
    "tentative_now": "Names for which this agent was named leader and may not act yet.",
    "active_now": "Names that this agent leads.",
    "led": "Names with a known leader.",
}
BY_NAME: dict[str, tuple[str, Callable[[Elections, State], float]]] = {
    "term": ("The newest term of this name that was heard of.", lambda elections, each: float(elections.highest(each.name))),
    "c": ("Lists that may lack a live member, as an election of this name counts.", lambda elections, each: float(each.c)),
    "f": ("Listed members that may be down, as an election of this name counts.", lambda elections, each: float(each.f)),
    "needed": ("Acceptances that a term of this name needs.", lambda elections, each: float(each.needed)),
    "state": ("Of this agent: 0 follower, 1 tentative, 2 active.", lambda elections, each: float(each.role)),
}
NAMED = {"tentative_now": "tentative", "active_now": "own"}


class ElectionSource(Protocol):
    """What HTTP shows of elections: ``running.ElectionAgent``."""

    config: ElectionConfig
    elections: Elections
    kind: ElectKind
    board: Board
    terms_heard: int
    facts: int

    @property
    def host(self) -> Host: ...


def of_elections(running: ElectionSource) -> Iterable[Metric]:
    elections = running.elections
    numbers = elections.metrics()
    for name, text in GAUGES.items():
        yield gauge(f"election_{NAMED.get(name, name)}", text, float(numbers.get(name, 0.0)))
    for name, text in COUNTERS.items():
        yield counter(f"election_{name}_total", text, float(numbers.get(name, 0.0)))
    yield counter("election_terms_total", "Terms that began, of whatever leader, as known here.", float(running.terms_heard))
    refused = {name: float(numbers.get(name, 0.0)) for name in REFUSED}
    yield labelled("election_refused_total", "counter", "What peers said that could not be, and what had no room.", "reason", refused)
    yield histogram(
        "election_lease_margin_seconds", "Seconds that were left of a client's deadline when it was extended.", running.kind.margins
    )
    yield histogram("election_seconds", "Seconds from the first question of an election here until its nominee led.", elections.took)
    yield from _by_name(running)


def _by_name(running: ElectionSource) -> Iterable[Metric]:
    elections = running.elections
    found = [state for name in elections.names()[:NAMES_MAX] if (state := elections.state(name)) is not None]
    for name, (text, value) in BY_NAME.items():
        yield Metric(f"election_{name}", "gauge", text, tuple(Sample(value(elections, each), (("name", each.name),)) for each in found))
