"""The numbers of leadership, and its limits.  Spec: fast-detection 4, D17b, D26; foundation F4, F8, F16, F17."""

from __future__ import annotations

from holdfast.errors import ConfigError, shown
from holdfast.features.leadership.detector.config import RENEW_TRIES_MAX, FfdConfig
from holdfast.host import fingerprint
from holdfast.kit.deadline import RHO_MAX
from holdfast.kit.rows import KEYS_MAX

TOPIC = "leads"  # of the table of candidates and leaders
NAME_BYTES_MAX = 100  # of a leadership; with its prefix it is a key at the seats (128 bytes)
CANDIDACIES_MAX = 256  # names that one agent stands for: some ten pages of a heartbeat
NAMES_MAX = KEYS_MAX  # names that one agent knows of, as many as the table has rows; a seat promises 4096
MONITORS_MAX = 15  # F17: the seats, then the lowest others
LEADS_MAX = 64  # in one message of a peer: more do not fit a datagram


class LeadershipConfig(FfdConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What leadership counts with: ``FfdConfig``'s fields, and these. Raises ``ConfigError`` naming the field."""

    rho: float = 1e-3  # each clock's rate is within 1 +- rho of true time (F8)
    renew_tries: int = 2  # repeats of a heartbeat that has no quorum of grants

    def __post_init__(self) -> None:
        FfdConfig.__post_init__(self)
        if not 0 <= self.rho <= RHO_MAX:
            raise ConfigError(f"rho: {shown(self.rho)}; accepted are 0 to {RHO_MAX:g}")
        if not 0 <= self.renew_tries <= RENEW_TRIES_MAX:
            raise ConfigError(f"renew_tries: {shown(self.renew_tries)}; accepted are 0 to {RENEW_TRIES_MAX}")

    @property
    def length_min(self) -> float:
        """What ``campaign`` accepts at least: a heartbeat and its repeats must fit."""
        return self.t_itv + 3 * self.t_rtt

    @property
    def delta_c(self) -> float:
        """Patience with a candidate that was never heard (quorum mode)."""
        return 4 * self.t_rtt

    def patience(self, length: float) -> float:
        """How long a candidate follows without a sign of the leader before it looks at the seats. Longer than a promise and the slow
        path of a detector, because a candidate that hears nothing may be no monitor; a look costs one question to each seat."""
        return 2 * length + 2 * self.t_itv

    @property
    def fingerprint(self) -> bytes:
        return fingerprint(t_itv=self.t_itv, t_lat=self.lat, synchronised=self.skew is not None, rho=self.rho)
