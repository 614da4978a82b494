"""How strong is the evidence, how long will it take?  Spec: fast-detection 1 (proof), 9 (plan), D9, D10; paper 002, Prop. 4.2."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, exp, inf, log, prod
from typing import NamedTuple

from holdfast.features.leadership.detector.config import ROUNDING, FfdConfig

P_FALSE_MIN = 1e-300  # many monitors with good links and no common cause: it has a logarithm all the same


class Plan(NamedTuple):
    """What a demand P_m costs with the links as they are measured now."""

    misses: int  # monitors whose misses can be counted, the asker included
    heartbeats: int  # r: heartbeats in a row that all of them must miss
    bound_s: float  # the longest time between a death and its acted report, if no question and no answer is lost
    feasible: bool  # False: the slow path is faster (r above m_max), or no number of heartbeats reaches it


def p_false(losses: Iterable[float], common: float) -> float:
    """The chance that a live watched is missed like this: one heartbeat never beats the common-cause rate (D10)."""
    return min(1.0, common + prod(losses))


class Evidence:
    """D9: heartbeats missed in a row multiply, each of them once. A sign of life takes it all back."""

    def __init__(self) -> None:
        self._log = 0.0
        self._seq = -1  # the last index folded in

    @property
    def p_false(self) -> float:
        """The chance that a live watched is missed like this; 1.0 without any evidence."""
        return exp(self._log)

    def fold(self, seq: int, losses: Iterable[float], common: float) -> None:
        if seq > self._seq:
            self._seq = seq
            self._log += log(max(p_false(losses, common), P_FALSE_MIN))

    def meets(self, demand: float) -> bool:
        return self._log <= log(demand) + ROUNDING

    def reset(self) -> None:
        self._log = 0.0


def make_plan(config: FfdConfig, demand: float, losses: Iterable[float], common: float) -> Plan:
    """Heartbeats needed: r = ceil(log P_m / log(c + prod p))."""
    known = tuple(losses)
    once = p_false(known, common)
    if once >= 1.0:
        return Plan(len(known), config.m_max, inf, False)
    heartbeats = max(1, ceil(log(demand) / log(once) - ROUNDING))
    bound = heartbeats * config.t_itv + config.delta + config.w
    return Plan(len(known), heartbeats, bound, heartbeats <= config.m_max)
