"""A process that ticks and listens, to be stopped from outside: ``python -m tests.net.sleeper``.

It prints its port, and at the first Blob the diary of its life.
"""

from __future__ import annotations

import asyncio
import json
import sys

from holdfast.net.host import NetHost
from tests.net.machines import Blob, Talker, talker

TICK = 0.05


def tick(host: NetHost, machine: Talker, due_at: float) -> None:
    machine.write_down("tick")
    next_at = due_at + TICK if due_at + TICK > host.now else host.now + TICK
    host.at(next_at, lambda: tick(host, machine, next_at))


async def main() -> None:
    host, machine = await talker("sleeper")
    enough = asyncio.Event()
    machine.on_heard = lambda message: enough.set() if isinstance(message, Blob) else None
    host.at(host.now, lambda: tick(host, machine, host.now))
    sys.stdout.write(f"{host.bound.port}\n")
    sys.stdout.flush()
    await enough.wait()
    await asyncio.sleep(3 * TICK)
    sys.stdout.write(json.dumps(machine.diary))
    await host.close()


if __name__ == "__main__":
    asyncio.run(main())
