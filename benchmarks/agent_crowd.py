"""An agent of a large group, as a command meets it, for `agent`: it answers ``Hello``, and every ``Look`` with the same bytes.

    python -m benchmarks.agent_crowd PATH MEMBERS

What `holdfast members` does with a list of a thousand is the command's own work: the agent encodes that list once.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import cast

from benchmarks.agent_events import member
from holdfast.features.ring.protocol.ids import position_of
from holdfast.local.calls import OWN, VERSION, GroupView, Hello, Look, Welcome
from holdfast.local.frame import CALL_BYTES_MAX, Frames, done, encoded
from holdfast.local.table import CallTable
from holdfast.net.clock import now


def view_of(count: int) -> GroupView:
    members = tuple(member(number, "0") for number in range(count))
    return GroupView(1, "member", members[0], members, tuple(position_of(each.name) for each in members))


class Crowd(asyncio.Protocol):
    """Serves one client."""

    def __init__(self, view: GroupView, answer: bytes) -> None:
        self._view, self._answer = view, answer
        self._frames, self._table = Frames(CALL_BYTES_MAX), CallTable(OWN)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for call in map(self._table.decode, self._frames.feed(data)):
            if isinstance(call, Hello):
                self._transport.write(done(call.serial, encoded(Welcome(VERSION, self._view.me.id, os.getpid(), "bench", now(), 1))))
            else:
                assert isinstance(call, Look)
                self._transport.write(done(call.serial, self._answer))


async def serve(path: str, count: int) -> None:
    view = view_of(count)
    answer = encoded(view)
    server = await asyncio.get_running_loop().create_unix_server(lambda: Crowd(view, answer), path)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
