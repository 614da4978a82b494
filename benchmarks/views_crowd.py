"""Many clients of views in one process, for `views`.

    python -m benchmarks.views_crowd GROUP KEY HEARTBEAT SEEDS NAMES

Each is a real host with sockets of its own and the protocol that an agent runs as a client, and nothing else of an agent:
to the seat it makes no difference. It says "ready" when all of them are leased in one view, and ends with its input.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from benchmarks.views_fleet import slots_of
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.views import ViewNode
from holdfast.host import Address, NodeId, ViewState
from holdfast.kit.parcels import Parcels
from holdfast.kit.slots import Slot
from holdfast.net.host import NetHost
from holdfast.wire.keys import Keyring, parse_key
from holdfast.wire.seal import Sealed

LOOPBACK = "127.0.0.1"
LOOK = 0.05  # seconds


async def member(group: str, key: str, config: ViewsConfig, slots: Sequence[Slot], name: str) -> tuple[NetHost, ViewNode]:
    host = await NetHost.open(NodeId(name, 1), Address(LOOPBACK, 0), Sealed(group, Keyring(parse_key(key))))
    views = ViewNode(host, config, slots, None, Parcels(host.node, host.wall))
    host.node.add(views)
    host.start()
    host.post(views.take_part)
    return host, views


def is_whole(crowd: Sequence[ViewNode]) -> bool:
    """All are leased in one view that has them all."""
    first = crowd[0].view
    return first is not None and first.size >= len(crowd) and all(each.state is ViewState.STABLE and each.view == first for each in crowd)


async def until_whole(crowd: Sequence[ViewNode]) -> None:
    """The end of a change of views is no event for each of them, so they are looked at."""
    while True:
        if is_whole(crowd):
            return
        await asyncio.sleep(LOOK)


async def main(group: str, key: str, heartbeat: str, seeds: str, names: str) -> None:
    slots, config = slots_of(seeds.split(",")), ViewsConfig(heartbeat=float(heartbeat))
    crowd = [await member(group, key, config, slots, name) for name in names.split(",")]
    await until_whole([views for _, views in crowd])
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for host, _ in crowd:
        await host.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
