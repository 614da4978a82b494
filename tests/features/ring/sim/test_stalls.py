"""A member stands still for about a lease, wins against some of its peers and loses to another: who is still held to be dead?

Spec: ring P4, 7 (I9, I15); H380. What users saw: one agent of a busy machine stood still for half a second, and the list of each other
agent had members DECIDED from then on, which were alive.
"""

from __future__ import annotations

import pytest

from holdfast.features.ring.lab.observer import Observed, names_of
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.ring import RingNode
from holdfast.features.ring.protocol.rules import Rules
from holdfast.host import MemberStatus
from holdfast.lab.links import Link, Uniform

CONFIG = RingConfig(k=3)
T_L, T_A, WAIT = CONFIG.lease, CONFIG.t_a, CONFIG.wait
NAMES = names_of(7)
STILL = NAMES[3]
AT = 5.0
STALLS = (0.5, 0.9, 1.0, 1.1, 1.25, 1.4, 1.5, 1.6, 1.75, 2.0, 2.4, 2.5, 2.6, 4.0)  # in T_l; around T_l + T_a and T_arb a member wins some
# After the stall the last false suspicion begins within 2 T_l, and is decided T_a later. From then on I15: T_a for own suspicions of those
# that heard, 2 wait + 3 T_l.
BOUND = 2 * T_L + T_A + (T_A + 2 * WAIT + 3 * T_L)


def stalled(stall: float, seed: int, *, loss: float, rules: Rules | None = None, observed: bool = True) -> Observed:
    """Seven members, of which one stands still; the run ends ``BOUND`` after it goes on."""
    link = Link(Uniform(0.0005, 0.002), loss=loss)
    rings = Observed(seed, NAMES, CONFIG, rules=rules, link=link, seeds=NAMES[:3], lossless=loss == 0, checkers=None if observed else ())
    rings.form(NAMES)
    rings.world.run(AT)
    rings.world.stop(STILL)
    rings.world.run(AT + stall * T_L)
    rings.world.resume(STILL)
    rings.world.run(rings.world.now + BOUND)
    return rings


def doubted(rings: Observed) -> list[tuple[str, str]]:
    """Living members that are not shown as alive, and by which living member that has a pair with them."""
    living: dict[str, RingNode] = {ring.raw.me.name: ring for ring in rings.alive}
    return [
        (by, member.name)
        for by, ring in living.items()
        for member in ring.members()
        if member.status is not MemberStatus.ALIVE and member.name in living and living[member.name].id in ring.pairs
    ]


@pytest.mark.parametrize("loss", [0.0, 0.1], ids=["no loss", "a tenth is lost"])
@pytest.mark.parametrize("stall", STALLS)
def test_all_who_live_are_shown_alive_soon(stall: float, loss: float) -> None:
    """H380, I15: a stall of any length, with and without loss, leaves no doubt about a living member behind; I1 to I15 look on."""
    for seed in range(4):
        assert doubted(stalled(stall, seed, loss=loss)) == [], seed


def test_without_the_rule_they_stay_decided() -> None:
    """H380: the same stalls with the rule switched off: in one run in three of 1.25 and 1.5 T_l a living member stays DECIDED, at all."""
    found = [doubted(stalled(stall, seed, loss=0.0, rules=Rules(void=False), observed=False)) for stall in (1.25, 1.5) for seed in range(4)]
    assert sum(map(bool, found)) >= 2
    assert max(map(len, found)) >= len(NAMES) - 2
