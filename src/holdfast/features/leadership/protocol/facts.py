"""What leadership tells traces, metrics and checkers; users see LeaderChanged and LeaderSuspected.  Spec: fast-detection 9 (events)."""

from __future__ import annotations

from holdfast.features.leadership.detector.facts import DetectionFact
from holdfast.host import NodeId


class RoundAsked(DetectionFact, frozen=True):
    """TermEntered by a candidate: it asks the seats for this number."""

    name: str
    number: int
    why: str  # "start": told by START; "vacant": it found no leader; "next": it is the next after a death it reported itself


class Leading(DetectionFact, frozen=True):
    """A quorum of seats promised it."""

    name: str
    number: int


class LostLead(DetectionFact, frozen=True):
    """It does not lead any more."""

    name: str
    number: int
    why: str  # "lapsed", "resigned"


class FoundDead(DetectionFact, frozen=True):
    """A report was acted upon: for so many names of that life the next candidate was told to ask."""

    life: NodeId
    names: tuple[str, ...]
