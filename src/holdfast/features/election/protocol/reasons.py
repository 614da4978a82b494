"""Why a reign ended, as its client hears it.  Spec: election 5.9; foundation 4 (Grants)."""

from __future__ import annotations

from holdfast.kit.hold import LossReason


class Superseded(LossReason, frozen=True):
    """Another reign is larger."""

    word = "superseded"

    def __str__(self) -> str:
        return "superseded: another agent leads under a larger term"


class NoSupport(LossReason, frozen=True):
    """Too few voters are left in its list."""

    word = "no support"

    def __str__(self) -> str:
        return "no support: this agent lists too few voters to lead"


class Unconfirmed(LossReason, frozen=True):
    """Its agent was stopped for a while, and no majority confirmed it again."""

    word = "unsure"

    def __str__(self) -> str:
        return "unsure: the agent was stopped, and its reign was not confirmed again"


class Conflict(LossReason, frozen=True):
    """Two lead under one term."""

    word = "conflict"

    def __str__(self) -> str:
        return "conflict: another agent leads under the same term"


REASONS: dict[str, type[LossReason]] = {kind.word: kind for kind in (Superseded, NoSupport, Unconfirmed, Conflict)}
