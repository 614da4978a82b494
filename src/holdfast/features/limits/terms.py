"""What a limit may be: every number and word of it is checked here, by clients, agents and the command line alike.  Spec: limits 4, 10.

A wrong value costs one ``ConfigError`` that names the field, what it was and what is accepted. It changes nothing.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final, Literal

from msgspec import Struct

from holdfast.bounds import MEMBERS_MAX
from holdfast.errors import ConfigError, shown

NAME_BYTES_MAX: Final = 128
LIMITS_MAX: Final = 256  # of one group: each costs two portions in every message
WORKERS_MAX: Final = 64  # processes of one agent that use one limit
WAITERS_MAX: Final = 10_000  # of one limit in one process
RATE_MAX: Final = 1e9  # cost per second
BURST_MIN: Final = 1.0  # d_min: a bucket below it lets no cost of 1 go without debt
COST_MAX: Final = float(1 << 31)
PENALTY_MAX: Final = 3600.0  # seconds
WAIT_MAX: Final = 3600.0  # seconds that a caller waits at its agent
FLEET_MAX: Final = MEMBERS_MAX
WEIGHT_MIN, WEIGHT_MAX = 0.1, 1.0  # H276
POLICIES = ("fair", "strict", "exact")
SHARES = ("maxmin", "demand")
AGGREGATES = ("gossip", "central")
AUTO: Final = 0  # ``fleet``: the largest view of the last ten minutes

Fleet = int | Literal["auto"]
Given = tuple[float | None, float | None, float, str, Fleet, str, float, float, str]  # the arguments of ``checked_terms``


class Terms(Struct, frozen=True, array_like=True):
    """A limit as its users describe it. Rates are cost per second."""

    rate: float
    burst: float
    policy: str = "fair"
    share: str = "maxmin"
    fleet: int = AUTO
    reserve: float = 0.05
    headroom: float = 0.02
    aggregate: str = "gossip"


class Change(Struct, frozen=True, array_like=True):
    """What is to be different. None: as before."""

    rate: float | None = None
    burst: float | None = None
    fleet: int | None = None


def checked_terms(
    rate: float | None,
    burst: float | None,
    per: float,
    policy: str,
    fleet: Fleet,
    share: str,
    reserve: float,
    headroom: float,
    aggregate: str,
) -> Terms | None:
    """Raises ``ConfigError``. Without a rate: those of the limit that is there. Without a burst: what comes in within a second."""
    seconds = number(per, "per", "a number of seconds from 0.001 to 86400", 0.001, 86_400.0)
    each = 1.0 if rate is None else checked_rate(number(rate, "rate", _RATES, 0.0, RATE_MAX * seconds) / seconds)
    terms = Terms(
        each,
        max(BURST_MIN, each) if burst is None else checked_burst(burst),
        word(policy, "policy", POLICIES),
        word(share, "share", SHARES),
        checked_fleet(fleet),
        number(reserve, "reserve", "a part from 0 to 1", 0.0, 1.0),
        number(headroom, "headroom", "a part from 0 to 0.5", 0.0, 0.5),
        word(aggregate, "aggregate", AGGREGATES),
    )
    if rate is None:
        return None
    check_together(terms)
    return terms


def check_together(terms: Terms) -> None:
    """What stands in one field may ask for something in another."""
    if terms.policy != "fair" and terms.fleet == AUTO:
        raise ConfigError(
            f'fleet: "auto", with policy "{terms.policy}"; accepted is the number of members to divide this limit for, 1 to {FLEET_MAX}'
        )


def check_told(terms: Terms) -> None:
    """The same of what came over the local socket."""
    fleet: Fleet = terms.fleet or "auto"
    checked_terms(terms.rate, terms.burst, 1.0, terms.policy, fleet, terms.share, terms.reserve, terms.headroom, terms.aggregate)


def check_change(change: Change) -> None:
    if change.rate is not None:
        checked_rate(change.rate)
    if change.burst is not None:
        checked_burst(change.burst)
    if change.fleet is not None:
        checked_fleet(change.fleet or "auto")


def checked_name(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable() or not 1 <= len(value.encode()) <= NAME_BYTES_MAX:
        raise ConfigError(f"name: {shown(value)}; accepted are 1 to {NAME_BYTES_MAX} bytes of printable text")  # half a surrogate is none
    return value


def checked_rate(value: Any) -> float:
    rate = number(value, "rate", _RATES, 0.0, RATE_MAX)
    if rate < _RATE_MIN:
        raise ConfigError(f"rate: {shown(value)}; accepted is {_RATES}")
    return rate


def checked_burst(value: Any) -> float:
    return number(value, "burst", f"a cost from {BURST_MIN:g} to {RATE_MAX:.0e}", BURST_MIN, RATE_MAX)


def checked_fleet(value: Any) -> int:
    if value == "auto":
        return AUTO
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= FLEET_MAX:
        raise ConfigError(f'fleet: {shown(value)}; accepted are "auto" and a number of members from 1 to {FLEET_MAX}')
    return value


def checked_weight(value: Any) -> float:
    return number(value, "weight", f"a part of the largest weight, {WEIGHT_MIN:g} to {WEIGHT_MAX:g}", WEIGHT_MIN, WEIGHT_MAX)


def checked_cost(value: Any) -> float:
    cost = number(value, "cost", _COSTS, 0.0, COST_MAX)
    if cost <= 0:
        raise ConfigError(f"cost: {shown(value)}; accepted is {_COSTS}")
    return cost


def checked_factor(value: Any) -> float:
    return number(value, "factor", "a part of the rate from 0.001 to 1", 0.001, 1.0)


def number(value: Any, field: str, accepted: str, least: float, most: float) -> float:
    if not isinstance(value, bool) and isinstance(value, int | float):
        try:
            if isfinite(value) and least <= value <= most:
                return float(value)
        except OverflowError:
            pass
    raise ConfigError(f"{field}: {shown(value)}; accepted is {accepted}")


def word(value: Any, field: str, words: tuple[str, ...]) -> str:
    if value not in words:
        raise ConfigError(f"{field}: {shown(value)}; accepted are {', '.join(words[:-1])} and {words[-1]}")
    return str(value)


_RATE_MIN = 1e-6  # a micro-unit per second
_RATES = f"a cost per second above 0, up to {RATE_MAX:.0e}"
_COSTS = f"a number above 0, up to {COST_MAX:.0f}"
