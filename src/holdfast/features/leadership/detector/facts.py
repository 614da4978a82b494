"""What fast detection tells traces, metrics and checkers; users see ``LeaderSuspected`` at most.

Spec: fast-detection 9 (events), foundation 5.
"""

from __future__ import annotations

from typing import ClassVar

from holdfast.events import Internal
from holdfast.features.leadership.detector.config import Term
from holdfast.features.leadership.detector.plan import Plan


class DetectionFact(Internal, frozen=True):
    """Base of the facts of detection and leadership."""

    family: ClassVar[str] = "detection"


class Suspect(DetectionFact, frozen=True):
    """A ballot was closed: who misses the watched, and what that is worth. Also the report to the owner of the detector."""

    term: Term
    watched: str
    boot: int  # the life that is missed; 0: none was ever heard
    seq: int  # the heartbeat that was missed; -1: none was ever heard
    misses: tuple[str, ...]  # sorted; the asker is among them if it ever heard the watched
    silent: tuple[str, ...]  # asked, no answer
    unheard: tuple[str, ...]  # never heard the watched in this term
    have: tuple[str, ...]  # slow ballots only: a fast one ends with the first of them
    p_false: float  # the chance that the watched is alive, after all heartbeats missed in a row (D9)
    acted: bool  # the demand is met, and the owner says that these are enough
    slow: bool


Report = Suspect


class Dismissed(DetectionFact, frozen=True):
    """A ballot ended with a sign of life: a monitor has the heartbeat, or it came after all (D6)."""

    term: Term
    watched: str
    seq: int
    by: str  # the voter, or the watched itself


class PlanChanged(DetectionFact, frozen=True):
    """Another number of heartbeats is needed for the demanded accuracy than before."""

    term: Term
    watched: str
    plan: Plan
