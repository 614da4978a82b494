"""Elections with one rule taken out: a lab that cannot show a break proves nothing by not seeing one.  Spec: election 7 (controls).

Each lasts as long as ``without``, and throws a switch of the laboratory (``Rules``) for every member that a scenario makes. Two controls
are properties of lists, not of the protocol, and have no mutation: a c that is bounded at each instant alone (D2), and news about members
on election messages (D4); experiment L2 has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from random import Random
from typing import Any

from msgspec.structs import replace

from holdfast.features.election.lab.checkers import TermUnique
from holdfast.features.election.lab.draws import FOUNDED_AFTER, draw_faults, manners_of, spared
from holdfast.features.election.lab.scenarios.mixed import SPARED_SECONDS, MixedScenario
from holdfast.features.election.lab.settled import Healed
from holdfast.features.election.lab.watch import ElectionWatch
from holdfast.features.election.protocol.rules import Rules
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Fault, LostJournal, Partition, Plan
from holdfast.lab.mutation import Mutation, put
from holdfast.lab.scenario import Setup
from holdfast.lab.world import World

FORGET_EVERY = 6.0  # seconds: longer than a quarantine and the sync after it


def _rule(stack: ExitStack, **changes: Any) -> None:
    put(stack, MixedScenario, "rules", replace(Rules(), **changes))


def one_acceptance(stack: ExitStack) -> None:
    """D9: a nominee that accepts itself is enough."""
    _rule(stack, quorum="one")


def half(stack: ExitStack) -> None:
    """D9: half of the voters is enough."""
    _rule(stack, quorum="half")


def no_sync(stack: ExitStack) -> None:
    """D20: a voter without memory votes at once."""
    _rule(stack, synced=False, quarantined=False)


def by_term_alone(stack: ExitStack) -> None:
    """D22: without a majority reigns are ordered by their terms alone."""
    _rule(stack, pairs=False, clock_terms=False)


def last_leader_wins(stack: ExitStack) -> None:
    """D5: each LEADER overwrites the one before."""
    _rule(stack, nomination_terms=False, confirm=False)


def no_self_naming(stack: ExitStack) -> None:
    """D1: a responder does not name itself."""
    _rule(stack, names_itself=False)


def no_watch(stack: ExitStack) -> None:
    """D10: no member starts an election because it saw that another one did not end."""
    _rule(stack, watch=False)


def empty_at_each(stack: ExitStack) -> None:
    """D7: an empty set is judged at each answer."""
    _rule(stack, empty_at_end=False)


def veto(stack: ExitStack) -> None:
    """D4: the initiator leaves out whom its own list does not have."""
    _rule(stack, no_veto=False)


def top_of_zeros(stack: ExitStack) -> None:
    """D8: y members are left out, also if all are healthy."""
    _rule(stack, only_unhealthy=False)


ABLATIONS: dict[str, Mutation] = {
    "D1": no_self_naming,
    "D4": veto,
    "D5": last_leader_wins,
    "D7": empty_at_each,
    "D8": top_of_zeros,
    "D9 one": one_acceptance,
    "D9 half": half,
    "D10": no_watch,
    "D20": no_sync,
    "D22": by_term_alone,
}


class EndScenario(MixedScenario):
    """For the controls of E4 and E5: what a run comes to when the faults are over, whatever was violated on the way."""

    name = "election/end"

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return [Healed(manners_of(setup), self.lists)]


class VotersScenario(MixedScenario):
    """For the controls of E1: promises of members, terms that no clock keeps apart, and no checker but E1 that would stop a run before."""

    name = "election/voters"

    def setup(self, random: Random) -> Setup:
        found = super().setup(random)
        parameters = {**found.parameters, "mode": "members", "clock": 0.0, "calm": 0.0, "sticky": 0.0}
        seconds = found.seconds + FOUNDED_AFTER
        plan = draw_faults(random, found.names, parameters, seconds).sparing(spared(random, found.names, parameters), SPARED_SECONDS)
        return replace(found, seconds=seconds, settle=1.0, plan=plan, parameters=parameters)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        watch = ElectionWatch(manners_of(setup))
        return [watch, TermUnique(watch)]

    def unsettled(self, world: World, setup: Setup) -> str:
        return ""


class ForgetfulScenario(VotersScenario):
    """For the control of D20: one member after the other loses its disk, when the one before has its vote again; sides change often."""

    name = "election/forgetful"

    def setup(self, random: Random) -> Setup:
        found = super().setup(random)
        names = tuple(f"n{number}" for number in range(random.choice((3, 4, 5, 5))))  # of one or two a majority would be forgetful
        faults: list[Fault] = []
        at = FOUNDED_AFTER + 1.0
        while at < found.seconds:
            shuffled = random.sample(names, len(names))
            faults.append(LostJournal(round(at, 3), random.choice(names), 0.0))
            middle = random.randint(1, max(1, len(names) - 1))
            apart = Partition(round(at + random.uniform(-0.5, 0.5), 3), 2.0, (tuple(shuffled[:middle]), tuple(shuffled[middle:])))
            faults += [apart] if 1 <= middle < len(names) else []
            at += FORGET_EVERY
        return replace(found, names=names, plan=Plan(tuple(sorted(faults, key=lambda fault: fault.at))))
