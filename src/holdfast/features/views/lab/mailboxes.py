"""Mailboxes of a real ensemble without views: many members share a session, so that one process can play hundreds.  Spec: views 5Z, 8 (Z2).

The letters are those of an agent: its ``Outbox`` and ``Inbox`` write, watch, read and delete the same znodes with the same questions. What
is left out is the view: each member's look at the list every quarter of a lease, which one process cannot do for so many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from holdfast.events import Event
from holdfast.features.views.lab.ensemble import Ensemble, NeverHappened
from holdfast.features.views.lab.zookeeper_members import GROUP, LoopHost
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.zookeeper.data import Letter, MemberData, Paths, encode
from holdfast.features.views.zookeeper.inbox import Inbox
from holdfast.features.views.zookeeper.link import Link
from holdfast.features.views.zookeeper.looks import ENSEMBLE
from holdfast.features.views.zookeeper.outbox import Outbox
from holdfast.features.views.zookeeper.servers import parse_servers
from holdfast.features.views.zookeeper.session import KazooSessions
from holdfast.features.views.zookeeper.znodes import Reply, Standing, Then
from holdfast.host import Carried, ViewMember
from holdfast.kit.parcels import Parcel

OPENED_WITHIN = 60.0  # seconds of a busy machine
SESSION = 10.0  # seconds; the longest that the ensemble grants: a machine under load shall not end one


class Mailbox:
    """One member: its letters out and in."""

    def __init__(self, name: str, office: Office) -> None:
        self.host = LoopHost(name, _untold)
        self.paths = Paths(GROUP, name)
        self.office = office
        self.me = ViewMember(self.host.me, self.host.address, 0, ENSEMBLE)  # as others know it, once it is open
        self.inbox = Inbox(self.host, office.link, self.paths, _received)
        self.outbox = Outbox(self.host, office.link, self.paths, ViewsConfig())

    def send(self, to: ViewMember, body: bytes, done: Callable[[Carried], None]) -> None:
        self.outbox.send(to, Parcel(b"", body), done)

    async def open(self) -> None:
        link = self.office.link
        for path in self.paths.persistent:
            await _asked(lambda then, path=path: link.create(path, b"", then))  # type: ignore[misc]
        data = encode(MemberData(self.host.me.boot, self.host.address))
        await _asked(lambda then: link.create(self.paths.own, data, then, ephemeral=True))
        found = await _asked(lambda then: link.exists(self.paths.own, then))
        if found.failure is not None:
            raise NeverHappened(f"the member {self.paths.own} was not made: {found.failure}")
        self.me = self.me._replace(attach=found.stat.czxid)
        self.inbox.look()


class Office:
    """One session, and the members that share it. A ``znodes.Listener``."""

    def __init__(self, ensemble: Ensemble, server: int) -> None:
        self.link = Link()
        self.boxes: list[Mailbox] = []
        self.connected = asyncio.Event()
        self.breaks = 0  # of the connection
        self._loop = asyncio.get_running_loop()
        self._by_path: dict[str, Mailbox] = {}
        address = str(ensemble.servers[server].ports.client)
        sessions = KazooSessions(parse_servers(address), SESSION, self._loop.call_soon_threadsafe)
        self._session = self.link.session = sessions.open(self)

    def add(self, name: str) -> Mailbox:
        box = Mailbox(name, self)
        self.boxes.append(box)
        self._by_path[box.paths.mailbox] = box
        return box

    def close(self) -> None:
        self.link.end()
        self._session.close()

    def on_standing(self, standing: Standing, session: int) -> None:
        """As an agent's views, without its entry: a session that is lost takes the members of this office with it."""
        if standing is Standing.CONNECTED:
            self.link.begin(session)
            for box in self.boxes if self.connected.is_set() else ():
                box.outbox.on_connected()
                box.inbox.look()
            self.connected.set()
            return
        self.breaks += 1
        self.link.end()
        for box in self.boxes:
            box.inbox.reset()
            if standing is Standing.LOST:
                box.outbox.on_lost()
            else:
                box.outbox.on_suspended()

    def on_watch(self, path: str, deleted: bool) -> None:
        box = self._by_path.get(path)
        if box is not None:
            box.inbox.look()
        else:
            any(each.outbox.on_watch(path, deleted) for each in self.boxes)


async def open_boxes(ensemble: Ensemble, names: Sequence[str], offices: int) -> list[Mailbox]:
    """These members, spread over so many sessions, which are spread over the servers."""
    opened = [Office(ensemble, number % len(ensemble.servers)) for number in range(offices)]
    boxes = [opened[number % offices].add(name) for number, name in enumerate(names)]
    for office in opened:
        await asyncio.wait_for(office.connected.wait(), OPENED_WITHIN)
    await boxes[0].open()  # What they share is there from here on.
    await asyncio.gather(*(box.open() for box in boxes[1:]))
    return boxes


def close_boxes(boxes: Sequence[Mailbox]) -> None:
    for box in boxes:
        box.outbox.drop()
    for office in dict.fromkeys(box.office for box in boxes):
        office.close()


async def _asked(question: Callable[[Then], None]) -> Reply:
    answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    question(answer.set_result)
    return await asyncio.wait_for(answer, OPENED_WITHIN)


def _received(letter: Letter) -> None:
    """Its sender is told by the deletion."""


def _untold(at: float, name: str, event: Event) -> None:
    """What came of a letter is told to the one that sent it."""
