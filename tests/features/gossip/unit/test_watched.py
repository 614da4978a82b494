"""A client that watches an agent whose membership gossips: what it is told, and the list of that agent.  Spec: gossip 5.1, 7 (G10).

Everything between the table and the client is the code that ships; a socket and its reader are not there. Clients come at any moment, also
before their agent is a member and in the midst of what a datagram has changed, and read when they like.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from holdfast.agent.socket.events import EventHub
from holdfast.agent.socket.view import Viewer
from holdfast.client.mirror import Mirror
from holdfast.events import Decided, Event, Joined, Left
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.messages import ALL_BUCKETS, Ping, Rumour, Sync
from holdfast.host import Member
from holdfast.local.calls import GroupView
from tests.features.gossip.stand import ALIVE, DEAD, LEFT, SUSPECT, Stand, place, rumour

NAMES = tuple(f"m{number}" for number in range(12))
SEEDS = 60  # of each buffer: 1 s of CPU for all
STEPS_MAX = 120
READERS_MAX = 4
WHOLE, SHORT = 1024, 4  # events that a subscriber may be behind: none is lost, and most are


def lives(members: tuple[Member, ...]) -> dict[str, int]:
    return {member.name: member.id.boot for member in members}


class Watched:
    """A member, its agent's hub and view, and clients that watch."""

    def __init__(self, random: Random, buffer_max: int) -> None:
        self.random = random
        self.stand = Stand(config=GossipConfig(seeds=(place("m0"),)) if random.random() < 0.7 else None, join=False)
        self.node = self.stand.node
        self.viewer = Viewer(self.stand.host, self.node, {})
        self.soon: list[Callable[[], None]] = []
        changes = self.viewer.changes.take
        self.hub = EventHub(lambda: self.view().version, lambda: 0.0, self.soon.append, changes=changes, buffer_max=buffer_max)
        self.readers: list[Reader] = []
        emit = self.stand.host.emit

        def publish(event: Event) -> None:
            """As ``Agent`` does."""
            emit(event)
            if self.hub.subscribers:
                self.hub.publish(event)

        self.stand.host.emit = publish  # type: ignore[method-assign]
        self.node.join()
        self._serial = 0

    @property
    def state(self) -> str:
        return "member" if self.node.is_member else "joining"

    def view(self) -> GroupView:
        return self.viewer.view(self.state)

    def step(self) -> None:
        """Something happens."""
        what, source = self.random.random(), self.random.choice(NAMES)
        if what < 0.35:
            self.stand.say(source, *self._rumours(1, 3))
        elif what < 0.5:
            self._serial += 1
            own = rumour(source, self.random.randrange(6))
            self.stand.hear(source, Sync(self._serial, 0, 1, (own, *self._rumours(0, 8)), (), True, ALL_BUCKETS))
        elif what < 0.6:
            for serial, asked in [*self.node.syncs._asked.items()][:1]:
                self.stand.hear(asked.peer.name, Sync(serial, 0, 1, (rumour(asked.peer.name), *self._rumours(0, 8))))
        elif what < 0.7:
            self.stand.host.pass_time(self.random.choice((0.0, 0.1, 1.0, 5.0)))
        elif what < 0.73:
            self.stand.hear(source, Ping(1, self._rumours(1, 1)))
        elif what < 0.8 and len(self.readers) < READERS_MAX:
            self.readers.append(Reader(self))
        elif what < 0.9:
            self.end_turn()
        else:
            for reader in self.readers:
                reader.read(self.random.choice((1, 3, 64)))

    def end_turn(self) -> None:
        soon, self.soon[:] = [*self.soon], []
        for callback in soon:
            callback()

    def _rumours(self, least: int, most: int) -> tuple[Rumour, ...]:
        random = self.random
        kinds = (ALIVE, ALIVE, ALIVE, SUSPECT, DEAD, LEFT)
        return tuple(
            rumour(random.choice(NAMES), random.randrange(6), random.choice(kinds), random.choice(NAMES), boot=random.choice((1, 1, 1, 2)))
            for _ in range(random.randint(least, most))
        )


class Reader:
    """One client. ``told`` is what it knows from the view at the beginning and the names of events alone."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._subscription = watched.hub.subscribe(lambda: None)
        view = watched.view()
        self.told = lives(view.members)
        self.mirror = Mirror(self._look)
        self.mirror.start(view)
        self._asked = False

    def read(self, limit: int) -> None:
        for record in self._subscription.take(limit):
            event = record.event
            if isinstance(event, Joined):
                self.told[event.member.name] = event.member.id.boot
            elif isinstance(event, Decided | Left):
                self.told.pop(event.member.name, None)
            self.mirror.push(record.item)
            if self._asked:
                self._asked = False
                self.mirror.set_result(self._watched.viewer.since(self._watched.state, self.mirror.since))

    def _look(self) -> None:
        self._asked = True


def watched(seed: int, buffer_max: int) -> Watched:
    """After a run, and when all was read."""
    random = Random(seed)
    found = Watched(random, buffer_max)
    for _ in range(random.randrange(5, STEPS_MAX)):
        found.step()
    while found.soon:
        found.end_turn()
    for reader in found.readers:
        while len(reader._subscription):
            reader.read(64)
    return found


@pytest.mark.parametrize("seed", range(SEEDS))
def test_events_alone_say_who_is_listed(seed: int) -> None:
    """G10: the view with which a Watch begins and what it tells from then on are the list of the agent; no ``Joined`` is missing."""
    found = watched(seed, WHOLE)
    assert found.hub.lost == 0
    for reader in found.readers:
        assert reader.told == lives(reader.mirror.view.members) == lives(found.node.members())


def test_a_client_that_falls_behind_has_the_list_again() -> None:
    """STYLE 4, H340: ``EventsLost`` is one reason to ask for the list; what it asks for is that of the agent."""
    lost = 0
    for seed in range(SEEDS):
        found = watched(seed, SHORT)
        lost += found.hub.lost
        for reader in found.readers:
            assert lives(reader.mirror.view.members) == lives(found.node.members())
    assert lost > SEEDS
