"""Random runs that look for a rule taken out: how many does it take?  Spec: tickets 8 (E4).

The runs are those of tickets/mixed with as many faults in a seventh of the time. What a restart confuses shows only where answers to the
former life are still on their way: those runs have quick restarts and slow links.
"""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from holdfast.features.tickets.lab.mutations import RANDOM
from holdfast.features.tickets.lab.scenarios.tickets import TicketScenario
from holdfast.lab.faults import Crash, Fault, Plan, Weather
from holdfast.lab.links import Link, Uniform
from holdfast.lab.mutation import without
from holdfast.lab.scenario import Setup, run

RESTARTS = "op counter restarts"  # the one that needs restless runs
UNSETTLED = "settled:"  # how such a violation begins
BEGIN, END = 3.0, 1.0  # seconds without restarts, at the beginning (seats come up together) and before faults stop


class Hurried(TicketScenario):
    """Everything in little time."""

    seconds = 8.0


class Restless(TicketScenario):
    """All agents restart again and again, and messages take up to a second."""

    seconds = 10.0

    def setup(self, random: Random) -> Setup:
        setup = super().setup(random)
        slow = Weather(0.0, self.seconds, Link(Uniform(0.001, random.choice((0.2, 0.5, 1.0)))))
        restarts = [fault for name in setup.names for fault in self._restarts(random, name)]
        plan = Plan((slow, *sorted(restarts, key=lambda fault: fault.at)))
        return replace(setup, plan=plan, parameters={**setup.parameters, "hold": 0.3})

    def _restarts(self, random: Random, name: str) -> list[Fault]:
        found: list[Fault] = []
        at = BEGIN + random.random()
        while at < self.seconds - END:
            found.append(Crash(round(at, 3), name, round(random.uniform(0.0, 0.3), 3)))
            at += random.uniform(0.5, 2.5)
        return found


def hunt(mutation: str, first: int, runs: int) -> tuple[int, str]:
    """In which run, from 1, it was caught that the rule is out, and what was violated; 0 and "" if in none.

    A group that does not settle is no proof: only what must never happen counts.
    """
    scenario = Restless() if mutation == RESTARTS else Hurried()
    for number in range(runs):
        with without(RANDOM[mutation]):
            outcome = run(scenario, first + number)
        if not outcome.ok and not outcome.violation.startswith(UNSETTLED):
            return number + 1, outcome.violation
    return 0, ""
