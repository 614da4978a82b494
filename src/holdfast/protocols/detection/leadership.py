"""Leadership: many names, each led by at most one agent at a time; the voters are the seats.  Spec: fast-detection D17b, 5, D13-D26; foundation F8-F17.

Any agent may be a candidate for any number of names. Who leads is decided by the seats' promises (``kit.promise``) and by
nothing else: a majority of them promised a name to one life, for a number and a length; the leader counts from the
moment before it asked (F8). Everything besides is there to be fast: monitors that find a leader dead within about one
heartbeat (``ffd``), and START, which tells the next candidate to ask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from holdfast.host import Host, Membership, Message, NodeId
from holdfast.kit.exchange import Exchange
from holdfast.kit.seats import Seats
from holdfast.protocols.detection.config import FfdConfig

NAME_BYTES_MAX = 100  # of a leadership; with its prefix it is a key at the seats (128 bytes)
CANDIDACIES_MAX = 256  # names that one agent stands for: some eight pages of one heartbeat
TOPIC = "leads"  # of the table of candidates and leaders


class LeadershipConfig(FfdConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What leadership counts with: ``FfdConfig``'s fields, and these. Raises ``ConfigError`` naming the field."""

    rho: float = 1e-3  # each clock's rate is within 1 +- rho of true time (F8)
    renew_tries: int = 2  # repeats of a heartbeat that has no quorum of grants

    @property
    def lease(self) -> float:
        """D26: the shortest length that costs no step-downs; ask for more where processes stall."""
        return 1.5 * self.t_itv

    @property
    def length_min(self) -> float:
        """What ``campaign`` accepts at least: a heartbeat and its repeats must fit."""
        return self.t_itv + 3 * self.t_rtt


class Candidacy(Protocol):
    """Who stands for a name on this agent. Told in the host's turns; it may call back into ``Leadership`` from there."""

    def on_leading(self, token: int, deadline: float) -> None:
        """This agent leads under this token, until that instant of ``host.now`` unless it is extended."""

    def on_extended(self, deadline: float) -> None:
        """A quorum of seats renewed it: the new instant is later than the former one."""

    def on_at_risk(self) -> None:
        """One heartbeat passed without a quorum of grants. Once, until it is extended again."""

    def on_lost(self, why: str) -> None:
        """It is over: the deadline has passed. The candidacy stands on, and may lead again under a higher token."""


class Led(NamedTuple):
    """Who leads a name, as known here."""

    name: str
    leader: NodeId
    token: int
    leading: bool  # False: it is expected to, nobody has heard yet that it does


class Leadership:
    """One per agent; a Machine. Emits ``LeaderChanged`` on every agent of the group."""

    def __init__(self, host: Host, membership: Membership, seats: Seats, exchange: Exchange, config: LeadershipConfig) -> None:
        """Makes the table ``leads`` in ``exchange``, and uses the part "promises" of ``host.storage`` if this agent is a seat."""
        self.config = config
        self.counts: Counter[str] = Counter()
        raise NotImplementedError

    # What the agent calls.

    def campaign(self, name: str, length: float, candidacy: Candidacy) -> None:
        """This agent is a candidate from now on. ``length`` is what the seats are asked to promise: lease and grace, at least
        ``config.length_min``, at most the seats' ``keeper.length_max``. The deadlines that the candidacy hears count all of it,
        shortened for drift (F8), from before the asking. Raises ConfigError for a bad name or length, Unavailable for too many."""
        raise NotImplementedError

    def withdraw(self, name: str) -> None:
        """No candidate any more. What was asked for is given back. Whoever leads calls ``resign``. Unknown names are ignored."""
        raise NotImplementedError

    def resign(self, name: str) -> None:
        """Gives it up at once and stops being a candidate; the next one asks within a round trip. Call it when F14 allows: what was
        published has passed, or the client said that it stopped. ``on_lost`` is not called. Not leading: the same as ``withdraw``."""
        raise NotImplementedError

    def renew_allowed(self, name: str, allowed: bool) -> None:
        """False: what was told is not extended any more, so it ends by itself; and while it is not led here, it is not asked for
        either. True, as at first: it is."""
        raise NotImplementedError

    def is_leader(self, name: str) -> bool:
        """Compared with the clock at every call (F9)."""
        raise NotImplementedError

    def token(self, name: str) -> int:
        """Of this agent's leadership. Raises ``errors.Lost`` if it does not lead."""
        raise NotImplementedError

    def deadline(self, name: str) -> float:
        """Until when this agent leads, on ``host.now``; minus infinity if it does not."""
        raise NotImplementedError

    def leader(self, name: str) -> Led | None:
        """Who leads, as known here: a hint, on every agent of the group."""
        raise NotImplementedError

    def leaders(self) -> Mapping[str, Led]:
        """All of them, sorted by name."""
        raise NotImplementedError

    def candidates(self, name: str) -> tuple[NodeId, ...]:
        """Who stands for it, as known here, in the order in which they are asked to lead."""
        raise NotImplementedError

    # The machine.

    @property
    def handles(self) -> Sequence[type[Message]]:
        raise NotImplementedError

    @property
    def fingerprint(self) -> bytes:
        raise NotImplementedError

    def start(self) -> None:
        raise NotImplementedError

    def on_message(self, source: NodeId, message: Message) -> None:
        raise NotImplementedError

    def on_away(self, seconds: float) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError
