"""Hand-built schedules: for each problem that a decision of the ring solves, a short run that shows it.  Spec: ring 6, 8 (E13), 11.

A schedule is played twice, by the protocol and with one decision switched off (``Rules``). Times are true seconds; T_l is 1 s, T_a half
of it, so T_arb is 2.5 s; links take 1 ms. Members sit evenly around the circle, in the order of their names.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from holdfast.events import Event
from holdfast.kit.exchange import Exchange
from holdfast.lab.links import Fixed, Link
from holdfast.lab.ring_watch import DELAY, Stage
from holdfast.protocols.ring import facts
from holdfast.protocols.ring import messages as m
from holdfast.protocols.ring.config import RingConfig
from holdfast.protocols.ring.pair import State
from holdfast.protocols.ring.rules import Rules


class Outcome(Struct, frozen=True):
    """What a run showed."""

    breaches: dict[str, str]  # invariant -> when and what
    departed: tuple[tuple[str, str], ...]  # members that ended, and why


class Schedule(Struct, frozen=True):
    """One problem."""

    name: str
    decision: str  # as in the spec
    off: Rules  # without that decision
    expected: frozenset[str]  # what at least must then be seen; "healthy" is a member that left for nothing
    play: Callable[[Rules], Outcome]
    spared: tuple[str, ...] = ()  # members whose departure is part of the schedule, with the decision and without


def _outcome(stage: Stage, *, culprits: tuple[str, ...] = ()) -> Outcome:
    return Outcome(stage.watch.breaches, tuple(each for each in stage.watch.departed if each[0] not in culprits))


def dormant_repair(rules: Rules) -> Outcome:
    """D10. n06 crashes; n04 opens a pair with n08 to close the hole. The link between the two is cut at the instant n08 becomes
    entitled, so ACK(2) is lost. An opener that is not obliged yet drops the pair and lives on, while n08 wins and declares it."""
    stage = Stage(RingConfig(k=3), rules, size=14)
    opener, responder = "n04", "n08"
    activated: list[float] = []

    def look() -> None:
        pair = stage.pair(responder, opener)
        if pair is not None and pair.state is State.ACTIVE and not activated:
            activated.append(stage.now)
            stage.cut(opener, responder)

    stage.each_event(look)
    stage.world.at(3.0, lambda: stage.world.crash("n06"))
    stage.run(16.0)
    assert activated
    return _outcome(stage, culprits=(opener, responder))
