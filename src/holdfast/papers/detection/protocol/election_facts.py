"""What an election tells traces, metrics and checkers; users hear ``LeaderChanged``.  Spec: fast-detection 9 (events)."""

from __future__ import annotations

from holdfast.features.leadership.detector.config import Term
from holdfast.features.leadership.detector.facts import DetectionFact


class TermEntered(DetectionFact, frozen=True):
    """A member is in another term now."""

    term: Term
    why: str  # "view", "told", "reported", "silence", "restarted", "gave up", "lapsed", "resigned", "spent"


class Leading(DetectionFact, frozen=True):
    """This life leads the term."""

    term: Term


class LostLead(DetectionFact, frozen=True):
    """It does not any more."""

    term: Term
    why: str  # "demoted", "lapsed", "resigned", "not a member"
