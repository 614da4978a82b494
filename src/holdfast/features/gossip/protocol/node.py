"""A member of a group that gossips: one state machine, wired from its parts.  Spec: gossip 2, 5, 10; paper 004.

What is final here, for those who stand on it: the constructor of ``GossipNode``; ``host.Standing`` and
``host.Lists``, which it offers; the attributes under "What checkers and pages read". The parts do not know this
class: each takes the core, the parts below it and a few calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from holdfast.bounds import MEMBERS_MAX
from holdfast.errors import ConfigError, shown
from holdfast.events import MembershipEvent
from holdfast.features.gossip.protocol import messages as m
from holdfast.features.gossip.protocol.cbound import Kept, MeasuredC, Reports
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.contact import Contact
from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.distance import POSITION_ROW, Distances, position_row
from holdfast.features.gossip.protocol.fetch import Fetch
from holdfast.features.gossip.protocol.health import Health
from holdfast.features.gossip.protocol.lifecycle import NOT_YET, SETTLED_ROW, YES, Lifecycle
from holdfast.features.gossip.protocol.merge import Merge
from holdfast.features.gossip.protocol.metrics import metrics
from holdfast.features.gossip.protocol.myself import Myself
from holdfast.features.gossip.protocol.owners import Owners
from holdfast.features.gossip.protocol.pause import PauseGuard
from holdfast.features.gossip.protocol.probe import Prober
from holdfast.features.gossip.protocol.receiving import Receiving
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.features.gossip.protocol.rumours import Item, Rumours
from holdfast.features.gossip.protocol.suspicion import Suspicion, Suspicions
from holdfast.features.gossip.protocol.sync import Comparison, Syncs
from holdfast.features.gossip.protocol.table import EMPTY, Base, Entry, Table
from holdfast.features.gossip.protocol.targets import Targets, targets_of
from holdfast.host import Address, HealthSource, Host, Member, Message, NodeId, Ownership
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange

PART = "gossip"  # of the journal; its key is KNOWN (``contact``)
SYNCS_AFTER_PAUSE = 2
COMPARED_AT_ONCE = 3  # members that an operator's look asks for their list

Handler = Callable[[NodeId, Any], None]


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
        core = self.core = Core(host, config, self.rules, Table(base, members_max=members_max))
        self.health = Health(lambda: host.now, config.health_half_life)
        self.distances = Distances(config, core.table)
        self.measured = MeasuredC(host, config, core.counts, members_max=members_max, n=lambda: core.n)
        self.reports = Reports(host, self.measured, core.counts, members_max=members_max)
        self.rumours = Rumours(core)
        self.targets: Targets = targets_of(core, self.distances)
        self.guard = PauseGuard(core, self._on_overslept)
        self.myself = Myself(core, self.rumours)
        self.merge = Merge(core, self.rumours, self.myself, self.health, self.targets, self.reports.missed)
        self.prober = Prober(core, self.rumours, self.merge, self.targets, self.distances, self.guard, self.measured.hint)
        self.suspicion = Suspicions(core, self.rumours, call=self.prober.call, bury=self.merge.bury, was_away=self.guard.was_away)
        self.fetch = Fetch(core, self.merge.take_rows)
        self.merge.connect(self.suspicion, self.fetch)
        self.syncs = Syncs(core, self.merge, self.measured, self._on_complete)
        self.contact = Contact(core, self.merge, self.syncs, host.storage.part(PART))
        self.lifecycle = Lifecycle(core, self.myself, self.rumours, self.contact, self.syncs, begin=self._begin, end=self._end)
        self.owners = Owners(core)
        receiving = Receiving(core, self.rumours, self.myself, self.merge, self.measured, self.prober, self.syncs)
        self._on = self._handlers(receiving)
        if config.position is not None:
            self.myself.publish(POSITION_ROW, position_row(config.position))
        if SETTLED_ROW not in self.myself.rows:
            self.myself.publish(SETTLED_ROW, NOT_YET)

    # Machine.

    handles: Sequence[type[Message]] = m.TYPES

    @property
    def fingerprint(self) -> bytes:
        return self.config.fingerprint

    def start(self) -> None:
        self.contact.load()

    def stop(self) -> None:
        """The node ends. A polite member calls ``leave`` first and waits for ``left``."""
        self.lifecycle.stop()
        self.core.outbox.clear()
        self._end()

    def on_away(self, seconds: float) -> None:
        if self.wanted:
            self.guard.on_away(seconds)

    def on_message(self, source: NodeId, message: Message) -> None:
        core = self.core
        core.received[type(message)] += 1
        if not core.active or (core.is_leaving and not isinstance(message, m.Ping)):
            core.counts["not_joined"] += 1
            return
        self._on[type(message)](source, message)
        if core.table.lists(source):
            core.heard.pop(source.name, None)
            core.heard[source.name] = core.host.now

    # Membership.

    @property
    def version(self) -> int:
        return self.core.table.version + self.core.turns

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        """The listed, sorted by id, this one included; none while this process is no member."""
        return self.owners.members(topic)

    def get(self, name: str) -> Member | None:
        found = self.core.table.get(name) if self.core.is_member else None
        return found.member if found is not None and found.listed else None

    def publish(self, row: str, value: bytes | None) -> None:
        self.myself.publish(row, value)

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
        return self.wanted and not self.is_member

    @property
    def wanted(self) -> bool:
        return self.lifecycle.wanted

    @property
    def left(self) -> bool:
        return self.lifecycle.left

    @property
    def is_over(self) -> bool:
        return self.lifecycle.is_over

    @property
    def waits_for(self) -> str:
        return self.lifecycle.waits_for

    @property
    def rows(self) -> Mapping[str, bytes]:
        return self.myself.rows

    @property
    def known(self) -> tuple[Address, ...]:
        return self.contact.known

    def seeds(self, addresses: tuple[Address, ...]) -> None:
        self.contact.seeds = addresses

    def join(self) -> None:
        self.lifecycle.join()

    def leave(self) -> None:
        self.lifecycle.leave()

    def positions(self) -> Mapping[NodeId, int]:
        return self.owners.positions()

    def metrics(self) -> Mapping[str, float]:
        now = {
            "suspects": len(self.suspicion), "rumours": len(self.rumours), "relays": len(self.prober.relays), "reports": len(self.reports),
            "rows_missing": len(self.fetch), "c_measured": self.measured.measured, "turbulent": self.measured.turbulent,
            "settled": self.lifecycle.settled_at is not None, "rtt_p99": self.distances.rtt_p99,
        }  # fmt: skip
        return metrics(self.core, {name: float(value) for name, value in now.items()})

    # Keys: a hint, and a refusal (gossip D21).

    def owner(self, key: str | bytes) -> Member | None:
        """The listed member that is closest to a key, in the list of this one; another list may name another."""
        return self.owners.owner(key)

    def owns(self, key: str | bytes) -> Ownership | None:
        raise ConfigError(f"membership: 'gossip' has no owners of keys that may act, asked for {shown(key)}; accepted is ring")

    def withdrawn(self) -> None:
        """Do nothing: no member may act for a key here, so no answer of ``owns`` was ever used."""

    # Lists.

    @property
    def sick(self) -> bool:
        return self.core.sick

    def known_names(self) -> frozenset[str]:
        return frozenset(each.id.name for each in self.table.entries() if each.status is not m.Status.LEFT)

    def gave_up(self, member: NodeId) -> bool:
        """That life is over, as far as it is known here: it is dead, it has left, or another life has its name."""
        found = self.table.get(member.name)
        return found is not None and ((found.id == member and not found.listed) or found.id.boot > member.boot)

    def settled(self, member: NodeId) -> bool:
        found = self.table.of(member)
        return found is not None and found.listed and found.rows.get(SETTLED_ROW) == YES

    def unhealthy(self, member: NodeId, source: HealthSource = "any") -> float:
        return self.health.unhealthy(member, source)

    def c_measured(self) -> int:
        return self.measured.measured

    def turbulent(self) -> bool:
        return self.measured.turbulent

    def observed_for(self) -> float:
        settled_at = self.lifecycle.settled_at
        return 0.0 if settled_at is None else self.core.host.now - settled_at

    def rtt_p99(self) -> float:
        return self.distances.rtt_p99

    def probe_now(self, member: NodeId) -> None:
        if self.wanted:
            self.prober.now(member)

    # Operators.

    def forget(self, name: str) -> None:
        """Give up a dead member for good, here and, by rumour, elsewhere. Raises ``ConfigError`` for a member that is listed."""
        found = self.table.get(name)
        if found is None or found.listed:
            state = "is listed" if found is not None else "is not known"
            raise ConfigError(f"name: {shown(name)} {state}; accepted is a member that failed and is still remembered")
        if found.status is m.Status.DEAD:
            self.merge.forget(found)

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

    @property
    def one_way(self) -> Mapping[str, int]:
        """How many probes in a row only a helper's way answered, by the name of the member."""
        return self.prober.one_way

    @property
    def compared(self) -> Mapping[str, Comparison]:
        """What the last comparisons of tables found, by the name of the member."""
        return self.syncs.compared

    def compare_lists(self) -> None:
        """Ask a few members whether they have the same list; ``compared`` says it as they answer."""
        core = self.core
        if self.is_member:
            for each in core.table.draw(core.host.random, COMPARED_AT_ONCE, core.is_other):
                self.syncs.compare(each.member)

    def entry(self, name: str) -> Entry | None:
        """What is held of this name, tombstones included."""
        return self.core.table.get(name)

    @property
    def inc(self) -> int:
        """The own incarnation."""
        return self.myself.inc

    @property
    def suspicions(self) -> Mapping[str, Suspicion]:
        return self.suspicion.open

    @property
    def queue(self) -> Mapping[str, Item]:
        """Rumours that are still told, by name."""
        return self.rumours.items

    @property
    def c_front(self) -> Sequence[Kept]:
        return self.measured.front

    @property
    def guarded_until(self) -> float:
        """No member is buried here before that: this process was away (gossip 5.8)."""
        return self.suspicion.guarded_until

    # How the parts hang together.

    def _handlers(self, receiving: Receiving) -> dict[type[Message], Handler]:
        return {
            m.Knock: lambda source, message: self.contact.on_knock(source), m.Met: self.contact.on_met,
            m.Ping: receiving.on_ping, m.Ack: receiving.on_ack, m.PingReq: receiving.on_ping_req, m.Nack: receiving.on_nack,
            m.Gossip: receiving.on_gossip, m.SyncDigest: self.syncs.on_digest, m.Sync: self.syncs.on_sync,
            m.Want: self.fetch.on_want, m.Rows: self.fetch.on_rows,
            m.Missed: self.measured.on_missed, m.MissedAck: self.reports.on_ack,
        }  # fmt: skip

    def _begin(self) -> None:
        self.prober.start()
        self.syncs.start()
        self.contact.start()

    def _end(self) -> None:
        for part in (self.prober, self.suspicion, self.rumours, self.fetch, self.syncs, self.contact, self.myself, self.reports):
            part.stop()
        self.rumours.clear()

    def _on_complete(self, peer: NodeId) -> None:
        self.lifecycle.on_complete(peer)

    def _on_overslept(self) -> None:
        """This process was away (gossip 5.8)."""
        self.prober.forget()
        self.suspicion.guard()
        self.core.host.after(0.0, self._ask_for_tables)  # After what waited in the socket: others wait for an answer (H451).

    def _ask_for_tables(self) -> None:
        """For what this member has missed."""
        core = self.core
        if self.wanted:
            others = core.table.draw(core.host.random, SYNCS_AFTER_PAUSE, core.is_other)
            self.syncs.after_pause(each.member for each in others)
