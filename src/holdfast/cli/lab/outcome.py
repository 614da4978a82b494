"""How one run of a scenario is told, by ``run`` and by ``replay``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.lab.scenario import Outcome


def facts(outcome: Outcome, replay: str, **more: Any) -> dict[str, Any]:
    """One object for ``--json``."""
    return {
        "scenario": outcome.scenario,
        "seed": outcome.seed,
        "events": outcome.events,
        "seconds": outcome.seconds,
        "violation": outcome.violation,
        "verdict": "pass" if outcome.ok else "violation",
        "replay": replay,
        **more,
    }


def sentence(outcome: Outcome) -> str:
    told = outcome.violation and f"violation of {outcome.violation}"
    return f"{outcome.scenario}, seed {outcome.seed}, {outcome.events} events: {told or 'all invariants held'}"
