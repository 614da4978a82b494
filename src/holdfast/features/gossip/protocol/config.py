"""The numbers of gossip.  Spec: gossip 4; foundation F4 (what must match at both ends), F17.

Members may have different periods: only what two ends count together, the buckets of the measured c, is in the
fingerprint.
"""

from __future__ import annotations

from math import ceil, inf, isfinite, log2, log10
from typing import Literal

from msgspec import Struct

from holdfast.errors import ConfigError, shown
from holdfast.host import SEEDS_MAX, Address, fingerprint

Target = Literal["shuffle", "spatial", "bag"]
TARGETS: tuple[Target, ...] = ("shuffle", "spatial", "bag")

PERIOD_MIN, PERIOD_MAX = 0.05, 60.0
PATIENCE_MIN, PATIENCE_MAX = 2.0, 20.0
HELPERS_MAX = 8
LHM_MAX = 64  # far beyond Lifeguard's 8: the longest period is then 65 T
CONFIRMATIONS_MAX = 3  # beside the first accuser: as many names as a rumour has room for
BETA_MAX = 64.0
FANOUT_MAX = 16  # per round of gossip; the rounds of one callback stay below 64 peers (F17)
EXPONENT_MAX = 6.0
BAG_CAP_MAX = 32  # most copies of one member in a bag: a bag has at most 32 n names
SYNC_MIN = 10.0  # seconds
SYNC_PERIODS = 30
AE_MIN = 8.0  # seconds
AE_PERIODS = 8
REAP_AFTER = 3600.0  # seconds
REAP_SYNCS = 4  # a dead member is remembered for so many comparisons of tables at least, or a table would bring it back
REAP_MAX = 365 * 86400.0
POSITION_MAX = 1e9  # metres
SMALL_PERIOD = 0.2  # seconds; below it rounds of gossip are T/2 apart
WINDOW_BUCKETS_MAX = 120  # of the measured c; each may have as many names as there are members
SETTLE_FACTOR = 3  # gossip D10


class GossipConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one member counts with. Raises ``ConfigError`` naming the field."""

    period: float = 1.0  # T: one probe, before Lifeguard's scaling
    probe_timeout: float = 0.0  # 0: 0.4 T, which leaves room inside T for the helpers and their NACKs
    k_indirect: int = 3  # helpers that are asked about a silent member
    lhm_max: int = 8  # S; 0: Lifeguard is off
    patience: float = 2.5  # alpha: the shortest suspicion, in T
    beta: float = 6.0  # the longest one, in shortest ones
    confirmations: int = 3  # K: so many others bring a suspicion to its shortest
    retransmit: float = 4.0  # lambda: a rumour is sent ceil(lambda log10(n+1)) times
    gossip_interval: float = 0.0  # 0: T/5, or T/2 below T = 0.2 s
    gossip_fanout: int = 3  # 0: rumours ride on probes alone
    sync_interval: float | None = None  # None: max(30 T, 10 s) for up to 32 members; 0: off
    reconnect_interval: float = 0.0  # 0: 10 T
    reap_after: float = REAP_AFTER  # how long a dead member is remembered
    target: Target = "shuffle"
    exponent: float = 3.0  # m of Medley
    bag_cap: int = 32
    health_half_life: float = 300.0  # inf: raw counts
    bucket: float = 30.0  # of the measured c; at least the longest election
    window: float = 600.0
    position: tuple[float, float] | None = None  # metres; published, for targets by distance
    seeds: tuple[Address, ...] = ()

    def __post_init__(self) -> None:
        _check(self)

    # Derived numbers, by the names of section 4.

    @property
    def timeout(self) -> float:
        """Seconds in which a healthy prober waits for an ACK before it asks helpers."""
        return self.probe_timeout or 0.4 * self.period

    @property
    def interval(self) -> float:
        """Seconds between two rounds of gossip."""
        return self.gossip_interval or self.period / (5 if self.period >= SMALL_PERIOD else 2)

    @property
    def reconnect(self) -> float:
        return self.reconnect_interval or 10 * self.period

    @property
    def ae_period(self) -> float:
        """Of the node's ``Exchange``: at 8 T three tables alone would cost 7.5 datagrams/s at T = 0.1 s."""
        return max(AE_PERIODS * self.period, AE_MIN)

    @property
    def suspicion_min(self) -> float:
        return self.patience * self.period

    def suspicion_max(self, n: int) -> float:
        return self.beta * self.suspicion_min * max(1.0, log10(n))

    def sends(self, n: int) -> int:
        """How often a rumour is sent in a group of ``n``."""
        return ceil(self.retransmit * log10(n + 1))

    def sync(self, n: int) -> float:
        """Seconds between two comparisons of tables in a group of ``n``, before jitter; 0: none."""
        base = max(SYNC_PERIODS * self.period, SYNC_MIN) if self.sync_interval is None else self.sync_interval
        return base * (1 + max(0, ceil(log2(n / 32))))

    def settling(self, n: int) -> float:
        """Seconds in which the news of a joiner has reached all (gossip D10)."""
        return ceil(SETTLE_FACTOR * log2(n + 1)) * (self.interval if self.gossip_fanout else self.period)

    @property
    def buckets(self) -> int:
        return ceil(self.window / self.bucket)

    @property
    def fingerprint(self) -> bytes:
        """What both ends count (F4)."""
        return fingerprint(bucket=self.bucket, window=self.window)


def _check(config: GossipConfig) -> None:
    _within("period", config.period, PERIOD_MIN, PERIOD_MAX)
    if config.probe_timeout:
        _within("probe_timeout", config.probe_timeout, 0.001, config.period / 2)
    _within("k_indirect", config.k_indirect, 0, HELPERS_MAX)
    _within("lhm_max", config.lhm_max, 0, LHM_MAX)
    _within("patience", config.patience, PATIENCE_MIN, PATIENCE_MAX)
    _within("beta", config.beta, 1.0, BETA_MAX)
    _within("confirmations", config.confirmations, 0, CONFIRMATIONS_MAX)
    _within("retransmit", config.retransmit, 2.0, 8.0)
    if config.gossip_interval:
        _within("gossip_interval", config.gossip_interval, 0.001, PERIOD_MAX)
    _within("gossip_fanout", config.gossip_fanout, 0, FANOUT_MAX)
    if config.sync_interval:
        _within("sync_interval", config.sync_interval, config.period, REAP_MAX)
    if config.reconnect_interval:
        _within("reconnect_interval", config.reconnect_interval, config.period, REAP_MAX)
    _within("reap_after", config.reap_after, REAP_SYNCS * config.sync(1), REAP_MAX)
    if config.target not in TARGETS:
        raise ConfigError(f"target: {shown(config.target)}; accepted are {', '.join(TARGETS)}")
    _within("exponent", config.exponent, 0.0, EXPONENT_MAX)
    _within("bag_cap", config.bag_cap, 1, BAG_CAP_MAX)
    if config.health_half_life != inf:
        _within("health_half_life", config.health_half_life, 1.0, REAP_MAX)
    _within("bucket", config.bucket, 0.1, REAP_MAX)
    _within("window", config.window, config.bucket, WINDOW_BUCKETS_MAX * config.bucket)
    for axis in config.position or ():
        _within("position", axis, -POSITION_MAX, POSITION_MAX)
    if len(config.seeds) > SEEDS_MAX:
        raise ConfigError(f"seeds: {len(config.seeds)} of them; accepted are at most {SEEDS_MAX}")


def _within(field: str, value: float, least: float, most: float) -> None:
    if not isfinite(value) or not least <= value <= most:
        raise ConfigError(f"{field}: {shown(value)}; accepted are {least:g} to {most:g}")
