"""First contact, and contact again: knocks, what members name to those that knock, and the way back after a partition.

Spec: gossip 5.7 (join, reconnect), D9, D20; H3, H43. A knock is a datagram to an address, because it is not known
which life listens there.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.features.gossip.protocol.checks import is_life, is_place
from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.merge import Merge
from holdfast.features.gossip.protocol.messages import MET_MAX, Knock, Met, Named, Status
from holdfast.features.gossip.protocol.sync import Syncs
from holdfast.features.gossip.protocol.table import NO_ROWS, Entry
from holdfast.host import SEEDS_MAX, Address, Member, NodeId, Storage, Timer

KNOWN = "known"  # key in the journal
KNOWN_MAX = 32  # addresses of members that were heard last
KNOCKS_MAX = SEEDS_MAX  # addresses in one go: the seeds first
REMEMBER_PERIODS = 8  # in T: so often the known addresses are saved, at most
SYNCS_PER_KNOCK = 2  # of the members that a MET names, drawn at random: a seed does not show its table to a thousand newcomers
SYNCS_MAX = 8  # per round of knocks: 64 seeds answer, and a few tables are enough
RECONNECT_MIN = 0.1  # chance of a knock at a dead member, however few there are

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[Address, ...]).decode


class Contact:
    """Knows addresses: the seeds, and where members were heard last."""

    def __init__(self, core: Core, merge: Merge, syncs: Syncs, storage: Storage) -> None:
        self._core, self._merge, self._syncs, self._storage = core, merge, syncs, storage
        self.seeds = core.config.seeds
        self.known: tuple[Address, ...] = ()
        self._saved_at = core.host.now
        self._answers_until = core.host.now
        self._syncs_left = 0
        self._timer: Timer | None = None

    def load(self) -> None:
        kept = self._storage.load().get(KNOWN)
        if kept is not None:
            try:
                self.known = tuple(each for each in _decode(kept)[:KNOWN_MAX] if is_place(each))
            except (msgspec.DecodeError, ValueError):
                self._core.counts["known_unreadable"] += 1

    def start(self) -> None:
        if self._timer is None:
            self._timer = self._core.host.after(self._core.config.reconnect, self._on_reconnect)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def other_seeds(self) -> tuple[Address, ...]:
        """Those at which another process listens."""
        return tuple(each for each in dict.fromkeys(self.seeds) if each != self._core.host.address)

    def knock_at_all(self) -> None:
        """Seeds, then the members known from before."""
        addresses = dict.fromkeys((*self.other_seeds, *self.known))
        self._knock([each for each in addresses if each != self._core.host.address][:KNOCKS_MAX])

    # What comes in.

    def on_knock(self, source: NodeId) -> None:
        core = self._core
        chosen = core.table.draw(core.host.random, MET_MAX, lambda each: each.status is Status.ALIVE and each.id.name != source.name)
        core.answer(source, Met(tuple(Named(each.id, each.address) for each in chosen)))

    def on_met(self, source: NodeId, message: Met) -> None:
        core = self._core
        if core.host.now > self._answers_until or self._syncs_left <= 0:
            core.counts["met_unasked"] += 1
            return
        named = [each for each in message.members if each.id.name != core.name and is_life(each.id) and is_place(each.address)]
        if core.is_member and core.table.lists(source):
            named = [each for each in named if not core.table.lists(each.id)]
            if not named:
                return  # It is one of us, and names no member that is new.
        chosen = core.host.random.sample(named, min(SYNCS_PER_KNOCK, len(named), self._syncs_left))
        if not chosen:
            self._syncs_left -= 1
            self._syncs.with_life(source)
        for each in chosen:
            self._syncs_left -= 1
            found = core.table.of(each.id)
            self._syncs.with_table(Member(each.id, each.address, NO_ROWS) if found is None else found.member)

    # Timers.

    def _on_reconnect(self) -> None:
        core = self._core
        self._timer = core.host.after(core.config.reconnect, self._on_reconnect)
        self._reap()
        self._remember()
        if not core.is_member:
            return
        if core.n == 1:
            self.knock_at_all()
        elif core.rules.standing_seeds:
            self._knock_at_a_seed()
        if core.rules.reconnect:
            self._knock_at_a_dead_one()

    def _knock(self, addresses: Sequence[Address]) -> None:
        core = self._core
        if not addresses:
            return
        self._syncs_left = SYNCS_MAX
        self._answers_until = core.host.now + core.config.reconnect
        for each in addresses:
            core.count_out(_KNOCK)
            core.outbox.put(each, _KNOCK)

    def _knock_at_a_seed(self) -> None:
        """One at which no listed member listens: two joiners that were cut off from all others have found each other (gossip D9)."""
        core = self._core
        if not self.other_seeds:
            return
        listed = {each.address for each in core.table.listed()}
        strange = [each for each in self.other_seeds if each not in listed]
        if strange:
            self._knock([core.host.random.choice(strange)])

    def _knock_at_a_dead_one(self) -> None:
        core = self._core
        dead = [each for name in core.table.tombstones if (each := self._dead(name)) is not None]
        if dead and core.host.random.random() < max(RECONNECT_MIN, len(dead) / (len(dead) + core.n)):
            self._knock([core.host.random.choice(dead).address])

    def _dead(self, name: str) -> Entry | None:
        """Never one that has left."""
        each = self._core.table.get(name)
        return each if each is not None and each.status is Status.DEAD else None

    def _reap(self) -> None:
        core = self._core
        oldest = core.host.now - core.config.reap_after
        for name in [name for name, stone in core.table.tombstones.items() if stone.since <= oldest and name != core.name]:
            self._merge.reap(name)

    def _remember(self) -> None:
        core = self._core
        if core.host.now < self._saved_at + REMEMBER_PERIODS * core.config.period:
            return
        recent: list[Address] = []
        for name in reversed(core.heard):
            each = core.table.get(name)
            if each is not None and each.listed:
                recent.append(each.address)
            if len(recent) == KNOWN_MAX:
                break
        if recent and sorted(recent) != sorted(self.known):
            self.known = tuple(recent)
            self._saved_at = core.host.now
            self._storage.save(KNOWN, _encode(self.known), _nothing)


_KNOCK = Knock()


def _nothing() -> None:
    """These addresses are hints: nothing waits until they are durable."""
