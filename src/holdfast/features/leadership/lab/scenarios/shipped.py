"""Leadership as it is shipped: three seats of seven agents at the preset's pace, and member lists that differ for ten seconds at a time.

Spec: fast-detection 7, D17b; foundation F12, F15.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from holdfast.config import PRESETS
from holdfast.features.leadership.lab.scenarios.leadership import HIDE_SECONDS, LeadershipScenario, slots
from holdfast.lab.listed_members import Hidden
from holdfast.lab.scenario import Setup

SEATS, AGENTS = 3, 7
HIDES_MAX = 3  # times in a run that lists differ


class ShippedScenario(LeadershipScenario):
    """Three seats, seven agents; candidates change and things go wrong as in the other sizes, and so do clocks: by 2 %, twenty times the
    preset's ``rho``, and all count with that."""

    name = "detection/shipped"
    title = "Leadership as shipped: 3 seats, 7 agents, member lists that differ for 10 s at a time, under mixed faults"
    heartbeats = (PRESETS["lan"].heartbeat,)

    def size(self, random: Random) -> tuple[int, int]:
        return SEATS, AGENTS

    def hides(self, random: Random, setup: Setup) -> list[Hidden]:
        """All of ten seconds each; all lists are the same again when the faults are over."""
        found = []
        for _ in range(random.randint(1, HIDES_MAX)):
            at = random.uniform(0, setup.seconds - HIDE_SECONDS)
            found += [Hidden(at, HIDE_SECONDS, viewer, member) for viewer, member in unlisted(random, setup)]
        return found


def unlisted(random: Random, setup: Setup) -> Iterable[tuple[str, str]]:
    """Who does not list whom: a seat or another agent is in no list but its own, or in some only; one lists no other; two halves do not
    list each other."""
    names = setup.names
    what = random.choice(("seat", "seat", "member", "some", "alone", "halves"))
    if what == "halves":
        half = random.sample(names, random.randint(2, len(names) - 2))
        return [(viewer, member) for viewer in names for member in names if (viewer in half) != (member in half)]
    one = random.choice([slot.name for slot in slots(setup)] if what == "seat" else names)
    others = [name for name in names if name != one]
    if what == "alone":
        return [(one, other) for other in others]
    viewers = random.sample(others, random.randint(1, len(others) - 1)) if what == "some" else others
    return [(viewer, one) for viewer in viewers]


SCENARIO = ShippedScenario()
