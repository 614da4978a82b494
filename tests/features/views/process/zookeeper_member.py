"""One member as a process: real sockets, kazoo, and views; told what to do by lines, and tells what happens in lines of JSON.

python -m tests.features.views.process.zookeeper_member NAME BOOT SERVERS SESSION STALE
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from holdfast.events import Event, ViewChanged, ViewLost, ViewRestored, ViewTripped
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.zookeeper.servers import parse_servers
from holdfast.features.views.zookeeper.session import KazooSessions
from holdfast.features.views.zookeeper.views import ZooKeeperViews
from holdfast.host import Address, Carried, Message, NodeId
from holdfast.kit.parcels import Parcels
from holdfast.net import clock
from holdfast.net.host import NetHost
from holdfast.wire.seal import Plain
from tests.features.views.fake_ensemble import Note

LEAVE_MAX = 10.0


class Hearer:
    """Owns the type that is carried."""

    handles: Sequence[type[Message]] = (Note,)
    fingerprint = b""

    def start(self) -> None:
        """It waits for messages."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Note)
        say(heard=message.text, source=source.name)

    def on_away(self, seconds: float) -> None:
        say(away=seconds)

    def stop(self) -> None:
        """It keeps nothing."""


def say(**fields: Any) -> None:
    print(json.dumps({"at": clock.now(), **fields}), flush=True)  # noqa: T201 - read by the test


def on_event(event: Event) -> None:
    if isinstance(event, ViewChanged):
        say(view=[str(member.id) for member in event.view.members], number=event.view.number)
    elif isinstance(event, ViewRestored):
        say(restored=event.view.number)
    elif isinstance(event, ViewLost):
        say(lost=event.why)
    elif isinstance(event, ViewTripped):
        say(tripped=event.why)


class Program:
    """Carries out the orders."""

    def __init__(self, host: NetHost, views: ZooKeeperViews) -> None:
        self.host, self.views = host, views
        self.over = asyncio.Event()

    def obey(self, line: str) -> None:
        verb, *words = line.split()
        self.host.post(partial(getattr(self, verb), *words))

    def carry(self, to: str, text: str, bytes_more: str = "0") -> None:
        def done(result: Carried) -> None:
            say(result=result.name, text=text)

        view = self.views.view
        member = None if view is None else view.find(to)
        if member is None:
            say(result="NO_VIEW", text=text)
        else:
            self.views.carry(member.id, Note(text + " " * int(bytes_more)), done)

    def trip(self) -> None:
        say(trip=self.views.trip("as told"))

    def ask(self) -> None:
        say(metrics=self.views.metrics(), why=self.views.survey().lost_why, granted=self.views.session_granted, settled=self.views.settled)

    def leave(self) -> None:
        self.views.withdraw()
        self.host.after(0.05, self._look)

    def stop(self) -> None:
        self.over.set()

    def _look(self) -> None:
        if self.views.left:
            self.over.set()
        else:
            self.host.after(0.05, self._look)


async def main(name: str, boot: str, servers: str, session: str, stale: str) -> None:
    loop = asyncio.get_running_loop()
    host = await NetHost.open(NodeId(name, int(boot)), Address("127.0.0.1", 0), Plain("g"), on_event=on_event)
    sessions = KazooSessions(parse_servers(servers), float(session), lambda turn: loop.call_soon_threadsafe(host.post, turn))
    views = ZooKeeperViews(host, ViewsConfig(), "g", sessions, Parcels(host.node, host.wall), stale=float(stale))
    program = Program(host, views)
    for machine in (Hearer(), views):
        host.node.add(machine)
    host.start()
    host.post(views.take_part)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    orders = asyncio.create_task(_orders(reader, program))
    over: asyncio.Future[Any] = asyncio.ensure_future(program.over.wait())
    await asyncio.wait([over, host.failed], return_when=asyncio.FIRST_COMPLETED)
    orders.cancel()
    await host.close()
    say(ended=True)


async def _orders(reader: asyncio.StreamReader, program: Program) -> None:
    while line := await reader.readline():
        program.obey(line.decode())
    program.over.set()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
