"""The rule of spatial timeouts alone: one heartbeat, one asker, voters whose words may get lost. No protocol, no time.

Spec: fast-detection 1 ("why p_L^k is right although votes get lost"), 8 (E6, E7); paper 002, section 4.
"""

from __future__ import annotations

from math import comb
from random import Random


def mistakes(random: Random, heartbeats: int, monitors: int, misses: int, loss: float) -> int:
    """How often in so many heartbeats of a live process the asker misses one, no monitor that is heard has it, and ``misses`` monitors, the
    asker among them, are known to miss it. Every message is lost with the same chance, query and vote as well."""
    heard = (1 - loss) ** 2  # s: query and vote get through
    veto, draw, count = heard * (1 - loss), random.random, 0
    for _ in range(heartbeats):
        if draw() >= loss:
            continue
        known = 1
        for _ in range(monitors - 1):
            fate = draw()
            if fate < veto:
                break
            known += fate < heard
        else:
            count += known >= misses
    return count


def chance(monitors: int, misses: int, loss: float) -> float:
    """The same as a formula: of the others each is known to miss it with p s, silent with 1 - s, and vetoes otherwise."""
    others, heard = monitors - 1, (1 - loss) ** 2
    ways = (comb(others, j) * (loss * heard) ** j * (1 - heard) ** (others - j) for j in range(misses - 1, others + 1))
    return loss * sum(ways)
