"""Numbers of all elections of one agent.  Spec: election 9 (``election_*``)."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.features.election.protocol.core import Core
from holdfast.features.election.protocol.shown import Role

COUNTERS = (
    "started", "finished", "yielded", "failed", "restarts", "nominations", "rank_violations", "responses_used", "queries", "answered",
    "notifies", "nacks", "tentative", "expired", "elected", "unsure", "stepped_down", "lapsed", "watch_fired", "corrections",
    "corrected", "asked_leader", "term_conflicts", "c_unusable", "mismatches", "malformed", "far_ahead", "unsound", "late",
    "secondhand", "own_leader", "silent", "unanswered", "unsaved", "waited", "no_seats", "not_a_seat", "misplaced", "table_full",
    "names_full", "names_forgotten", "health_unread",
)  # fmt: skip


def metrics(core: Core) -> Mapping[str, float]:
    """Counters by their names, and what is as of now."""
    contests = core.contests.values()
    now = {
        "names": len(core.contests),
        "stands": sum(each.wish is not None for each in contests),
        "running": sum(each.run is not None for each in contests),
        "tentative_now": sum(each.role is Role.TENTATIVE for each in contests),
        "active_now": sum(each.role is Role.ACTIVE for each in contests),
        "led": sum(each.told is not None for each in contests),
        "queued": len(core.outbox),
        "refused_sends": core.outbox.refused,
    }
    return {**{name: float(core.counts[name]) for name in COUNTERS}, **{name: float(value) for name, value in now.items()}}
