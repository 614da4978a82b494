"""The numbers of one ring.  Spec: ring 4; foundation F4 (what must match at both ends), F8 (drift)."""

from __future__ import annotations

from math import isfinite
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import ConfigError, shown
from holdfast.events import ConfigMismatch
from holdfast.features.ring.protocol.ids import CIRCLE
from holdfast.host import SEEDS_MAX, Address, fingerprint
from holdfast.kit.deadline import RHO_MAX, wait_length

Mode = Literal["pairwise", "central"]

LEASE_MIN, LEASE_MAX = 0.03, 30.0
K_MAX = 8
BOTH_LISTS_K_MAX = 3  # up to here a lease message with the neighbours and a new group fits a datagram; beyond, they take turns (H28)
ARBITRATORS_MAX = 15
ANTI_ENTROPY_LEASES = 8  # in T_l
TOMBSTONE_LEASES_MIN = 100  # in T_l
BACKOFF_CALM, BACKOFF_FORCED = 8, 60  # longest backoff in T_l; after a forced departure (D23)
CALM_AFTER = 100  # in T_l of membership: then the last forced departure is forgotten (D23)
REFOUND_MAX = 1e9  # in T_l: practically never
FOUNDING_LEASES = 10  # in T_l: how long the promise of a seed holds (D20)


class Arbitrator(Struct, frozen=True):
    """A static arbitrator (CA): any process of this name at this address."""

    name: str
    address: Address


class RingConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one member of a ring counts with. Raises ``ConfigError`` naming the field."""

    lease: float = 1.0  # T_l: one session
    arbitration: float = 0.0  # T_a; 0: half a lease
    rho: float = 0.001  # each clock's rate is within 1 +- rho of true time
    margin: float = 0.01  # scheduling slop, added to what is waited for others
    k: int = 3  # neighbours per side: so many adjacent ones may crash at once
    retry: float = 0.125  # r: spacing of the tries inside a session, in T_l; 1 is the paper (a single try)
    mode: Mode = "pairwise"  # DA; "central" is CA
    arbitrators: tuple[Arbitrator, ...] = ()  # CA only
    seeds: tuple[Address, ...] = ()  # where to knock
    found: bool = False  # begin a new ring at once, without asking other seeds
    position: int | None = None  # None: the hash of the name, so that its keys come back to a process (D21)
    join_pace: bool = False  # every phase of a join takes a whole T_l, as in the paper's simulator
    refound: float = 100.0  # in T_l: how long a seed that was put out waits for a majority of those it last knew before it founds (H29)
    tombstone_ttl: float = 3600.0
    indirect: bool = True  # P1: lease requests through other neighbours, when the direct way does not answer
    patient: bool = False  # P2: a member that suspects many asks later
    here: bool = False  # P3: tells its arbitrators that it lives
    early_news: bool = True  # P4: a decision is gossiped at once

    def __post_init__(self) -> None:
        _check(self)

    # Derived numbers, by the names of section 4.

    @property
    def t_a(self) -> float:
        return self.arbitration or self.lease / 2

    @property
    def t_arb(self) -> float:
        """Longest life of a suspected loser (Th. 4)."""
        return 2 * self.lease + self.t_a

    @property
    def wait(self) -> float:
        """From suspicion to declaration (Cor. 3), counted on another clock than the loser's."""
        return wait_length(self.t_arb, self.rho, self.margin)

    @property
    def vote_ttl(self) -> float:
        return 2 * self.wait

    @property
    def lock_ttl(self) -> float:
        return 3 * self.lease

    @property
    def t_orph(self) -> float:
        return 2 * self.wait + 4 * self.lease

    @property
    def oversleep(self) -> float:
        return self.lease / 16

    @property
    def drain(self) -> float:
        return max(0.005, self.lease / 50)

    @property
    def publish_length(self) -> float:
        """Longest time for which ownership is told to a client (F14)."""
        return self.lease / 2

    @property
    def ae_period(self) -> float:
        """Of the node's ``Exchange``, which carries the member list."""
        return ANTI_ENTROPY_LEASES * self.lease

    @property
    def fingerprint(self) -> bytes:
        """What both ends count (F4)."""
        names = ",".join(sorted(each.name for each in self.arbitrators))
        mode = f"central:{names}" if self.mode == "central" else self.mode
        return fingerprint(T_l=self.lease, T_a=self.t_a, rho=self.rho, margin=self.margin, k=self.k, mode=mode)


_FIELDS = {"T_l": "lease", "T_a": "arbitration", "rho": "rho", "margin": "margin", "k": "k"}


def adopt(config: RingConfig, mismatch: ConfigMismatch) -> RingConfig:
    """This configuration with the ring's value of one field, as a refused joiner was told it. The mode is never adopted."""
    field = _FIELDS.get(mismatch.field)
    if field is None:
        raise ConfigError(f"{mismatch.field}: cannot be adopted from {mismatch.peer}; set it to {shown(mismatch.theirs)}")
    try:
        value = int(mismatch.theirs) if field == "k" else float(mismatch.theirs)
    except ValueError:
        raise ConfigError(f"{mismatch.field}: {mismatch.peer} says {shown(mismatch.theirs)}, which is no number") from None
    # Of the defaults T_a follows T_l: the ring's own T_a is reported as a field of its own if it differs then.
    return replace(config, **{field: value})


def _check(config: RingConfig) -> None:
    _within("lease", config.lease, LEASE_MIN, LEASE_MAX)
    if config.arbitration:
        _within("arbitration", config.arbitration, 0.001, LEASE_MAX)
    _within("rho", config.rho, 0.0, RHO_MAX)
    _within("margin", config.margin, 0.0, LEASE_MAX)
    _within("k", config.k, 1, K_MAX)
    _within("retry", config.retry, 1 / 16, 1.0)
    _within("refound", config.refound, 0.0, REFOUND_MAX)
    _within("tombstone_ttl", config.tombstone_ttl, TOMBSTONE_LEASES_MIN * config.lease, 365 * 86400.0)
    if config.position is not None:
        _within("position", config.position, 0, CIRCLE - 1)
    if len(config.seeds) > SEEDS_MAX:
        raise ConfigError(f"seeds: {len(config.seeds)} of them; accepted are at most {SEEDS_MAX}")
    names = {each.name for each in config.arbitrators}
    if len(names) != len(config.arbitrators):
        raise ConfigError("arbitrators: two of them have the same name")
    if config.mode not in ("pairwise", "central"):
        raise ConfigError(f"mode: {shown(config.mode)}; accepted are pairwise and central")
    if config.mode == "central" and not 1 <= len(names) <= ARBITRATORS_MAX:
        raise ConfigError(f"arbitrators: {len(names)} of them; mode central accepts 1 to {ARBITRATORS_MAX}, best an odd number")
    if config.mode == "pairwise" and names:
        raise ConfigError("arbitrators: mode pairwise has none of its own; accepted with mode central")


def _within(field: str, value: float, least: float, most: float) -> None:
    if not isfinite(value) or not least <= value <= most:
        raise ConfigError(f"{field}: {shown(value)}; accepted are {least:g} to {most:g}")
