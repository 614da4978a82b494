"""A member of a group that gossips: one state machine, wired from its parts.  Spec: gossip 2, 5, 10; paper 004.

What is final here, for those who stand on it: the constructor of ``GossipNode``; ``host.Standing`` and ``host.Lists``, which it offers; the
attributes under "What checkers and pages read". /docs/spec/gossip.md says what they mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf

from holdfast.bounds import MEMBERS_MAX
from holdfast.events import MembershipEvent
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.messages import TYPES
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.features.gossip.protocol.table import EMPTY, Base, Entry, Table
from holdfast.host import Address, HealthSource, Host, Member, Message, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange

PART = "gossip"  # of the journal; its key is KNOWN (``lifecycle``)


class GossipNode:
    """One process in a group that gossips. Offers ``Standing`` and ``Lists``; keys have no owners that may act (gossip D21)."""

    sole_life: bool  # not needed: a higher boot of a name is the end of its former life (gossip D1)
    former_until: float | None = None  # keys have no owners, so a former life told nothing

    def __init__(
        self, host: Host, config: GossipConfig, broadcast: Broadcast, exchange: Exchange, *,
        rules: Rules | None = None, base: Base = EMPTY, sole_life: bool = False, members_max: int = MEMBERS_MAX,
    ) -> None:  # fmt: skip
        """``broadcast`` and ``exchange`` are the node's: other machines share tables and cast over this membership.

        The laboratory alone hands in ``rules``, and a ``base`` with which many tables begin."""
        self.broadcast, self.exchange, self.sole_life = broadcast, exchange, sole_life
        self.rules = Rules() if rules is None else rules
        self.core = Core(host, config, self.rules, Table(base, members_max=members_max))

    # Machine.

    handles: Sequence[type[Message]] = TYPES

    @property
    def fingerprint(self) -> bytes:
        return self.core.config.fingerprint

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def on_away(self, seconds: float) -> None: ...
    def on_message(self, source: NodeId, message: Message) -> None: ...

    # Membership.

    @property
    def version(self) -> int:
        return self.core.table.version

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        """The listed, sorted by id, this one included; none while this process is no member."""
        return self.core.table.members() if topic is None else ()

    def get(self, name: str) -> Member | None:
        return None

    def publish(self, row: str, value: bytes | None) -> None: ...

    def subscribe(self, listener: Callable[[MembershipEvent], None]) -> None:
        self.core.subscribers.append(listener)

    def usable_until(self) -> float:
        return inf

    # Standing.

    @property
    def is_member(self) -> bool:
        return self.core.is_member

    @property
    def is_joining(self) -> bool:
        return False

    @property
    def wanted(self) -> bool:
        return False

    @property
    def left(self) -> bool:
        return True

    @property
    def waits_for(self) -> str:
        return ""

    @property
    def rows(self) -> Mapping[str, bytes]:
        return {}

    @property
    def known(self) -> tuple[Address, ...]:
        return ()

    def seeds(self, addresses: tuple[Address, ...]) -> None: ...
    def join(self) -> None: ...
    def leave(self) -> None: ...

    def positions(self) -> Mapping[NodeId, int]:
        return {}

    def metrics(self) -> Mapping[str, float]:
        return {}

    # Keys: a hint, and a refusal (gossip D21).

    def owner(self, key: str | bytes) -> Member | None:
        return None

    # Lists.

    @property
    def sick(self) -> bool:
        return False

    def known_names(self) -> frozenset[str]:
        return frozenset()

    def settled(self, member: NodeId) -> bool:
        return False

    def unhealthy(self, member: NodeId, source: HealthSource = "any") -> float:
        return 0.0

    def c_measured(self) -> int:
        return 0

    def turbulent(self) -> bool:
        return False

    def observed_for(self) -> float:
        return 0.0

    def rtt_p99(self) -> float:
        return 0.0

    def probe_now(self, member: NodeId) -> None: ...

    # Operators.

    def forget(self, name: str) -> None:
        """Give up a dead member for good, here and, by rumour, elsewhere. Raises ``ConfigError`` for a member that is listed."""

    # What checkers and pages read.

    @property
    def config(self) -> GossipConfig:
        return self.core.config

    @property
    def table(self) -> Table:
        return self.core.table

    @property
    def lhm(self) -> int:
        return self.core.lhm

    @property
    def counts(self) -> Counter[str]:
        return self.core.counts

    def entry(self, name: str) -> Entry | None:
        """What is held of this name, tombstones included."""
        return self.core.table.get(name)
