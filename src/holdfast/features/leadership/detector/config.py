"""The numbers of fast detection and of the election on top of it.  Spec: fast-detection 4; foundation F4, F8, F16."""

from __future__ import annotations

from math import ceil, isfinite, log
from typing import Literal, NamedTuple

from msgspec import Struct

from holdfast.errors import ConfigError, shown
from holdfast.host import fingerprint
from holdfast.kit.deadline import RHO_MAX

Mode = Literal["paper", "quorum"]

INTERVAL_MIN, INTERVAL_MAX = 0.1, 60.0  # t_itv
LATENCY_MIN = 0.001  # t_lat
LATENCY_SHARE_MAX = 12  # t_lat is at most t_itv / 12: a ballot, its two backups and a renewal end before the next heartbeat
DEMAND_MIN, DEMAND_MAX = 1e-9, 0.5  # P_m
BACKUPS_MAX = 5
MISSES_MAX = 100  # m_max: what an operator may set; beyond, a dead leader is not replaced in any useful time
LENGTH_MAX = 60.0  # L: a fresh seat waits so long once
RENEW_TRIES_MAX = 3
ELECT_AFTER_MAX = 2  # Figure 3 waits for two heartbeats, Figure 4 for one
LOSS_MIN, LOSS_MAX = 1e-4, 0.999  # p_i: no link is better or worse than that, whatever was measured
WINDOW = 100  # arrivals that the estimate of the next one rests on (NFD-E)
WINDOW_MIN = 16  # with fewer, one late heartbeat moves the estimate too far (section 5)
ROUNDING = 1e-9  # section 4: log(1e-5) / log(.1) is 5.000000000000001 in floats, and a bare ceil gives 6
ROUND_BITS = 32  # of a token over agreed views


class Term(NamedTuple):
    """One reign; terms are compared lexicographically."""

    view: int  # 0 with seats (D17b)
    round: int

    @property
    def token(self) -> int:
        """The number that users compare (F16)."""
        return self.round if self.view == 0 else self.view << ROUND_BITS | self.round

    def next(self) -> Term:
        """The round after this one, of the same view."""
        return Term(self.view, self.round + 1)


class FfdConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the watched and its monitors count with. Raises ``ConfigError`` naming the field."""

    t_itv: float = 1.0  # seconds between two heartbeats
    t_lat: float = 0.0  # one-way bound, a high quantile of the delay (D24): what is later counts as lost; 0: t_itv / 20
    skew: float | None = None  # wall clocks are synchronised this well: freshness points follow from them; None: they are estimated
    p_m: float = 1e-5  # P_m: the accuracy that is demanded
    backups: int = 2  # monitors of rank 1..backups ask too, one ballot window after the other (D15)
    m_max: int = 10  # most heartbeats that the slow path waits for; a longer gap is an outage, not loss
    p_new: float = 0.1  # loss of a link that is not measured yet
    drift: float = 2.5e-4  # two clocks run apart by this share of time: it decides on how many arrivals an estimate rests
    p_fixed: float | None = None  # p_L is known and not measured: the paper. With what comes late (H131)
    common: float | None = None  # c as the operator knows it; None: measured; 0: the paper

    def __post_init__(self) -> None:
        _check_ffd(self)

    # Derived numbers, by the names of section 4.

    @property
    def lat(self) -> float:
        """t_lat, with its default."""
        return self.t_lat or self.t_itv / 20

    @property
    def t_rtt(self) -> float:
        return 2 * self.lat

    @property
    def w(self) -> float:
        """The window of a ballot (Figure 2, line 32)."""
        return 2 * self.t_rtt

    @property
    def nag(self) -> float:
        """Between two STARTs to a candidate that was not heard yet, and between two repeats of a heartbeat."""
        return 1.5 * self.t_rtt

    @property
    def alpha_max(self) -> float:
        """The margin of an estimated freshness point, until there are samples to know better."""
        return max(2 * self.lat, self.t_itv / 4)

    @property
    def window(self) -> int:
        """Arrivals that a freshness point rests on: drift d puts their mean d window/2 t_itv behind, which stays below t_lat / 4."""
        return max(WINDOW_MIN, min(WINDOW, round(self.lat / (2 * self.drift * self.t_itv))))

    @property
    def delta(self) -> float:
        """The most that lies between sigma_i and its freshness point, for plans and bounds: delta, or the mean delay and alpha."""
        return self.lat + (self.alpha_max if self.skew is None else self.skew)

    @property
    def c0(self) -> float:
        """Common-cause loss before there is anything measured."""
        return min(1e-6, self.p_m / 10) if self.common is None else self.common

    def m_omega(self, p: float, sharers: int = 1) -> int:
        """Heartbeats that one monitor must have missed before it acts by itself (or opens a slow ballot).
        ``sharers``: n - 1 in paper mode, where each of them may demote (amplification); 1 in quorum mode."""
        assert 0 < p < 1
        assert sharers >= 1
        return min(max(2, ceil(log(self.p_m / sharers) / log(p) - ROUNDING)), self.m_max)

    @property
    def fingerprint(self) -> bytes:
        """What both ends count (F4)."""
        return fingerprint(t_itv=self.t_itv, t_lat=self.lat, synchronised=self.skew is not None)


class ElectionConfig(FfdConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fast detection with an election on top. Raises ``ConfigError`` naming the field."""

    mode: Mode = "quorum"  # "paper": any monitor demotes, nothing is exclusive
    length: float = 0.0  # L: how long a promise lasts; 0: 1.5 t_itv (D26)
    rho: float = 1e-3  # each clock's rate is within 1 +- rho of true time
    renew_tries: int = 2  # repeats of a heartbeat that has no quorum of grants
    elect_after: int = 1  # paper mode: heartbeats of a term before its leader is named

    def __post_init__(self) -> None:
        _check_ffd(self)
        _check_election(self)

    @property
    def lease(self) -> float:
        """L, with its default."""
        return self.length or 1.5 * self.t_itv

    @property
    def delta_c(self) -> float:
        """Patience with a candidate that was never heard."""
        return 4 * self.t_rtt if self.mode == "quorum" else 2 * self.t_itv + self.lat

    @property
    def fingerprint(self) -> bytes:
        return fingerprint(t_itv=self.t_itv, t_lat=self.lat, synchronised=self.skew is not None, rho=self.rho, mode=self.mode)


def _check_ffd(config: FfdConfig) -> None:
    _within("t_itv", config.t_itv, INTERVAL_MIN, INTERVAL_MAX)
    if config.t_lat:
        _within("t_lat", config.t_lat, LATENCY_MIN, config.t_itv / LATENCY_SHARE_MAX)
    if config.skew is not None:
        _within("skew", config.skew, 0.0, config.t_itv / 4)
    _within("p_m", config.p_m, DEMAND_MIN, DEMAND_MAX)
    _within("backups", config.backups, 0, BACKUPS_MAX)
    _within("m_max", config.m_max, 2, MISSES_MAX)
    _within("p_new", config.p_new, LOSS_MIN, LOSS_MAX)
    _within("drift", config.drift, 1e-6, 2 * RHO_MAX)
    if config.p_fixed is not None:
        _within("p_fixed", config.p_fixed, LOSS_MIN, LOSS_MAX)
    if config.common is not None:
        _within("common", config.common, 0.0, 1.0)


def _check_election(config: ElectionConfig) -> None:
    if config.mode not in ("paper", "quorum"):
        raise ConfigError(f"mode: {shown(config.mode)}; accepted are paper and quorum")
    if config.length:
        _within("length", config.length, config.t_itv + 3 * config.t_rtt, LENGTH_MAX)
    _within("rho", config.rho, 1e-5, RHO_MAX)
    _within("renew_tries", config.renew_tries, 0, RENEW_TRIES_MAX)
    _within("elect_after", config.elect_after, 1, ELECT_AFTER_MAX)


def _within(field: str, value: float, least: float, most: float) -> None:
    if not isfinite(value) or not least * (1 - ROUNDING) <= value <= most * (1 + ROUNDING):
        raise ConfigError(f"{field}: {shown(value)}; accepted are {least:g} to {most:g}")
