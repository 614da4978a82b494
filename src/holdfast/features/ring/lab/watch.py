"""A stage for hand-built schedules of the ring, and who looks on.  Spec: ring 7 (I1, I2, I7, I8, I10), 8 (E13).

``Watch`` looks after every event, notes what goes wrong and stops nothing: a schedule that shows a breach is played to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace

from holdfast.events import Event
from holdfast.features.ring.lab.rings import Rings
from holdfast.features.ring.protocol import facts
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.ids import CIRCLE, RingId, owner_of, sides
from holdfast.features.ring.protocol.pair import Pair, State
from holdfast.features.ring.protocol.ring import RingNode
from holdfast.features.ring.protocol.rules import Rules
from holdfast.host import Message
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.links import Fixed, Link
from holdfast.lab.world import World

DELAY = 0.001
KEYS = 64  # sampled, evenly spaced between the positions of members
AT_ONCE = 1e-6  # after this instant, not in it
NOTHING: frozenset[int] = frozenset()


class Watch(Checker):
    """Notes the first breach of each invariant, and who had to leave although it was healthy."""

    name = "watch"

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.breaches: dict[str, str] = {}  # invariant -> what was seen first
        self.departed: list[tuple[str, str]] = []  # members that ended, and why
        self.seen: Counter[tuple[type[Event], str]] = Counter()
        self.members: Mapping[str, RingNode] = {}
        self._winners: dict[tuple[RingId, RingId, int], RingId] = {}
        self._suspected: dict[tuple[RingId, RingId], float] = {}  # nominal time, own clock
        self._claims: dict[str, frozenset[int]] = {}
        self._own: dict[tuple[RingId, int], frozenset[int]] = {}  # by id and version of its list
        self._new: str | None = None  # became a member in this very event
        self._keys = tuple((2 * i + 1) * (CIRCLE // (2 * KEYS)) + 1 for i in range(KEYS))

    def note(self, world: World, invariant: str, what: str) -> None:
        self.breaches.setdefault(invariant, f"{world.now:.3f} s: {what}")

    def is_valid(self, world: World, ring: RingNode) -> bool:
        return not world.nodes[ring.raw.me.name].dead and ring.valid

    def holder(self, ring_id: RingId) -> RingNode | None:
        return next((ring for ring in self.members.values() if ring.id == ring_id), None)

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        ring = self.members.get(host.me.name)
        if ring is None:
            return
        self.seen[type(event), host.me.name] += 1
        if isinstance(event, facts.Suspicion):
            self._suspected[ring.id, event.peer] = event.at
        elif isinstance(event, facts.Won):
            self._on_won(world, host, ring, event)
        elif isinstance(event, facts.Removed) and event.certain:
            loser = self.holder(event.id)
            if loser is not None and self.is_valid(world, loser):
                self.note(world, "I2", f"{host.me} declared {loser.raw.me}, which is valid")
        elif isinstance(event, facts.BecameMember) and not event.founded:
            self._new = host.me.name
        elif isinstance(event, facts.Departed) and event.was_member:
            self.departed.append((host.me.name, event.reason))

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None or host.me.name not in self.members:
            return
        if self._new is not None:
            self._check_known(world, self.members[self._new])
            self._new = None
        self._check_owners(world, host)

    def _on_won(self, world: World, host: LabHost, ring: RingNode, event: facts.Won) -> None:
        """I1 at once; I7 when the time is over that the winner waits, from the instant it counts from."""
        low, high = sorted((ring.id, event.peer))
        if self._winners.setdefault((low, high, event.epoch), ring.id) != ring.id:
            self.note(world, "I1", f"{host.me} won against somebody who has won against it")
        if event.entitled:
            since = event.stop if self.rules.from_stop else self._suspected[ring.id, event.peer]
            due = (since + ring.config.wait - host._offset) / host.rate
            world.at(due + AT_ONCE, partial(self._check_lifespan, world, ring, ring.id, event.peer))

    def _check_lifespan(self, world: World, winner: RingNode, as_id: RingId, peer: RingId) -> None:
        loser = self.holder(peer)
        if loser is not None and self.is_valid(world, loser) and winner.is_member and winner.id == as_id:
            self.note(world, "I7", f"{loser.raw.me} is valid although {winner.raw.me} has waited long enough")

    def _check_known(self, world: World, ring: RingNode) -> None:
        """I10: who becomes a member knows its nearest neighbours, and they know it."""
        others = [each for each in self.members.values() if each is not ring and self.is_valid(world, each) and each.ring == ring.ring]
        beside = sides([each for each in ring.list.ids if each != ring.id], ring.id)
        real = sides(sorted(each.id for each in others), ring.id)
        if beside is None or real is None:
            return
        for known, nearest in zip(beside, real, strict=True):
            holder = self.holder(nearest)
            assert holder is not None
            pair = holder.pairs.get(ring.id)
            held = (pair is not None and pair.state is State.ACTIVE) or ring.id in holder.condemned or ring.id in holder.list.gone
            if nearest not in ring.list:
                self.note(world, "I10", f"{ring.raw.me} became a member and does not know {holder.raw.me} beside it")
            elif known == nearest and not held:
                self.note(world, "I10", f"{ring.raw.me} became a member and {holder.raw.me} beside it does not hold it")

    def _check_owners(self, world: World, host: LabHost) -> None:
        """I8. Only who runs can act; only the touched node can have begun to."""
        name = host.me.name
        ring = self.members[name]
        claims = self._claims[name] = self._closest(ring) if host.running and ring.valid and ring.settled else NOTHING
        for other, theirs in self._claims.items():
            if other == name or not claims & theirs or not world.nodes[other].running:
                continue
            if any(self.members[other].claims(key) for key in claims & theirs):
                self.note(world, "I8", f"{host.me} and {world.nodes[other].me} own the same keys")

    def _closest(self, ring: RingNode) -> frozenset[int]:
        """The keys that are this member's by its own list."""
        state = ring.id, ring.list.version
        found = self._own.get(state)
        if found is None:
            found = self._own[state] = frozenset(key for key in self._keys if owner_of(ring.list.ids, key) == ring.id)
        return found


class Stage:
    """One run of one schedule."""

    def __init__(
        self,
        config: RingConfig,
        rules: Rules,
        seed: int,
        *,
        size: int,
        late: Mapping[str, float] | None = None,
        drift: Mapping[str, float] | None = None,
    ) -> None:
        """Members n00, n01, ... sit evenly around the circle. ``late`` names joiners by their place: 2.5 is between n02 and n03."""
        self.names = [f"n{i:02d}" for i in range(size)]
        places = dict(zip(self.names, range(size), strict=True)) | dict(late or {})
        self.positions = {name: int(place * (CIRCLE // size)) + 1 for name, place in places.items()}
        self.watch = Watch(rules)
        self.others: dict[str, RingConfig] = {}  # who counts with other numbers
        self.rings = Rings(
            seed, config, rules=rules, link=Link(Fixed(DELAY)), seeds=self.names[:1], checkers=[self.watch], configure=self._configure
        )
        self.watch.members = self.rings.members
        self.world = self.rings.world
        self.world.drift.update(drift or {})
        self.rings.form(self.names)

    def without_return(self) -> Stage:
        """A member that has to leave stays out: what follows a departure is not what is looked at."""
        for name in self.names:
            self[name].lifecycle.stop()
        return self

    def _configure(self, name: str, config: RingConfig) -> RingConfig:
        return replace(self.others.get(name, config), seeds=config.seeds, position=self.positions[name])

    def start(self, name: str) -> None:
        """A joiner begins to knock."""
        self.rings.start(name)

    def __getitem__(self, name: str) -> RingNode:
        return self.rings.members[name]

    @property
    def now(self) -> float:
        return self.world.now

    def run(self, seconds: float) -> None:
        self.world.run(self.world.now + seconds)

    def pair(self, one: str, other: str) -> Pair | None:
        """What ``one`` holds with ``other``."""
        return self[one].pairs.get(self[other].id)

    def cut(self, one: str, other: str) -> None:
        """Nothing passes between these two, in either direction."""
        self.world.network.partition(("cut", one, other), ([one], [other]))

    def mend(self, one: str, other: str) -> None:
        """What ``cut`` has cut."""
        self.world.network.heal(("cut", one, other))

    def lose(self, *kinds: type[Message], source: str | None = None, target: str | None = None) -> None:
        """Messages of these kinds get lost from now on, between these ends if they are named; all kinds if none is."""

        def lost(a: str, b: str, message: Message) -> bool:
            return (source in (None, a)) and (target in (None, b)) and (not kinds or isinstance(message, kinds))

        self.world.network.lose_if(lost)

    def when(self, kind: type[Event], name: str, then: Callable[[Event], None]) -> None:
        """At the first event of this kind at this node, inside it."""
        met: list[Event] = []

        def listen(host: LabHost, event: Event) -> None:
            if isinstance(event, kind) and host.me.name == name and not met:
                met.append(event)
                then(event)

        self.world.listeners.append(listen)

    def seen(self, kind: type[Event], name: str) -> int:
        """Events of this kind at this node so far."""
        return self.watch.seen[kind, name]

    def true_time(self, name: str, own: float) -> float:
        host = self.world.nodes[name]
        return (own - host._offset) / host.rate
