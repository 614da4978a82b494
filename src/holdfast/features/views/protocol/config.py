"""The numbers of views, and their limits.  Spec: views 4, D24, D27, D28; foundation F4, F8, F17."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from holdfast.bounds import MEMBERS_MAX
from holdfast.errors import ConfigError, shown
from holdfast.host import fingerprint
from holdfast.kit.deadline import RHO_MAX, holder_length, wait_length
from holdfast.kit.slots import Slot

HEARTBEAT_MIN, HEARTBEAT_MAX = 0.05, 5.0
SERVERS_MAX = 7  # slots of the lab; a product has 1, 3 or 5
CLIENTS_MAX = 2000  # per group: an LSA that lists them all stays below 160 KiB
TOMBS_MAX = MEMBERS_MAX  # identities of removed clients: ten whole groups within TOMB_SECONDS
TOMB_SECONDS = 600.0  # no ping is under way for so long
HOPS_MAX = 4096  # overlay messages that wait for a hop acknowledgement here
RECENT_MAX = 65_536  # overlay ids forwarded lately: 10 s at 6,500 per second
RECENT_SECONDS = 10.0  # that such an id is remembered, or longer where the heartbeat is slow
GOT_SECONDS = 60.0  # that a receiver remembers what it was handed, or longer where the heartbeat is slow
GOT_MAX = 65_536
GOT_SENDERS_MAX = MEMBERS_MAX  # of whose older messages a receiver remembers the highest id
SENDS_MAX = 4096  # messages of one client under way; mail has no more letters under way either
RHO_MIN = 0.01  # ``settle`` and every lease count with clocks that drift by 1 % at least (views G6)
TRIP_PAUSE, TRIP_PAUSE_MAX = 10.0, 300.0  # seconds between two trips of one client; doubles while they go on
PEAK_SECONDS = 600.0  # how long the largest view is remembered


class ViewsConfig(Struct, frozen=True, kw_only=True):
    """Everything in seconds follows from the heartbeat. Raises ``ConfigError`` naming the field."""

    heartbeat: float = 0.25  # hb
    rho: float = 0.001
    margin: float = 0.01
    up_count: int = 2  # answers in a row before a link is up
    max_server_hops: int = 3  # the diameter of a group: up to two servers between two others
    hop_tries: int = 5
    overlay_rate: float = 200.0  # messages per second of one client at its server

    def __post_init__(self) -> None:
        if not HEARTBEAT_MIN <= self.heartbeat <= HEARTBEAT_MAX:
            raise ConfigError(f"view_heartbeat: {shown(self.heartbeat)}; accepted are {HEARTBEAT_MIN:g} to {HEARTBEAT_MAX:g} seconds")
        if not 0 <= self.rho <= RHO_MAX:
            raise ConfigError(f"rho: {shown(self.rho)}; accepted are 0 to {RHO_MAX:g}")

    @property
    def link_timeout(self) -> float:
        """Silence before a link between servers is down; a round trip must fit into it."""
        return 4 * self.heartbeat

    @property
    def quarantine(self) -> float:
        """After a hop failed; doubles while it repeats within ``quarantine_window``."""
        return 8 * self.heartbeat

    @property
    def quarantine_max(self) -> float:
        return 240 * self.heartbeat

    @property
    def quarantine_window(self) -> float:
        return 1200 * self.heartbeat

    @property
    def server_timeout(self) -> float:
        """Silence before a client tries the next server, its lease still running (views D28)."""
        return 3 * self.heartbeat

    @property
    def lease(self) -> float:
        """How long one answered ping lets a client trust its view, from before it was sent."""
        return 6 * self.heartbeat

    @property
    def held(self) -> float:
        """The same on the clock of the client (F8)."""
        return holder_length(self.lease, self.rho)

    @property
    def view_timeout(self) -> float:
        """How long a client waits for a view that its server names (H235): longer than a lease, and as servers wait for link states."""
        return self.lsa_max_age

    @property
    def move_pause(self) -> float:
        """Between two moves of one client for such a view; doubles while they go on, since each of them changes the view of all."""
        return 8 * self.heartbeat

    @property
    def move_pause_max(self) -> float:
        return 1200 * self.heartbeat

    @property
    def client_timeout(self) -> float:
        """Age of the last proof of life at which a server drops a client; longer than a lease."""
        return 7 * self.heartbeat

    @property
    def lsa_max_age(self) -> float:
        """What was last confirmed longer ago counts no more (views D24)."""
        return 8 * self.heartbeat

    @property
    def settle(self) -> float:
        """When a view is old enough that all it left out have stopped (views G6, D24): three lengths on three clocks."""
        return wait_length(self.client_timeout + self.lsa_max_age + self.lease, max(self.rho, RHO_MIN), self.margin)

    @property
    def hop_rto(self) -> float:
        return 0.6 * self.heartbeat

    @property
    def e2e_rto(self) -> float:
        return 4 * self.heartbeat

    @property
    def ov_deadline(self) -> float:
        """For a whole overlay send; longer than five hops that all need their last try."""
        return 16 * self.heartbeat

    @property
    def recent_seconds(self) -> float:
        """A server remembers what it forwarded; the sender repeats itself after ``e2e_rto``."""
        return max(RECENT_SECONDS, self.e2e_rto)

    @property
    def got_seconds(self) -> float:
        """A receiver remembers what it was handed (views G7): a sender repeats itself for 16 heartbeats, and each of up to five servers on
        the way may keep the last copy for two times five tries: 30 more."""
        return max(GOT_SECONDS, 64 * self.heartbeat)

    @property
    def join_batch(self) -> float:
        """Joins that follow one another are published together after so long (views D15); the first one at once."""
        return 0.4 * self.heartbeat

    @property
    def change_warn(self) -> float:
        return 20 * self.heartbeat


def views_fingerprint(config: ViewsConfig, slots: Sequence[Slot]) -> bytes:
    """F4: what both ends count with."""
    return fingerprint(view_heartbeat=config.heartbeat, rho=config.rho, **{f"seat{slot.number}": str(slot) for slot in slots})
