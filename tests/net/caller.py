"""A process that calls its peer all the time: ``python -m tests.net.caller NAME BIND_HOST PEER_HOST PORT``.

It greets the peer's address every 20 ms and prints a line for every Ping it hears: who sent it, and its serial.
"""

from __future__ import annotations

import asyncio
import sys

from holdfast.host import Address, Message
from holdfast.net.host import NetHost
from tests.net.machines import Ping, Talker, sealed, talker

INTERVAL = 0.02


def call(host: NetHost, machine: Talker, peer: Address, serial: int) -> None:
    machine.ping(peer, serial)
    host.after(INTERVAL, lambda: call(host, machine, peer, serial + 1))


def report(message: Message) -> None:
    if isinstance(message, Ping):
        sys.stdout.write(f"{message.serial}\n")
        sys.stdout.flush()


async def main() -> None:
    name, mine, theirs, port = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    host, machine = await talker(name, sealed(), host=mine, port=port)
    machine.on_heard = report
    host.post(lambda: call(host, machine, Address(theirs, port), 1))
    await host.failed


if __name__ == "__main__":
    asyncio.run(main())
