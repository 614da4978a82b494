"""One contestant of `datagrams`: a process with two echo nodes, one sealed, one plain, that measures itself.

Each contestant has a process of its own, because memory has a history. asyncio's transport reads into 256 KiB of fresh
memory, and what that costs depends on glibc: until a process has once freed a block at least that large, every such read
is a mapping of its own (mmap, page faults, munmap); ever after it is a few instructions. So stock asyncio competes twice:
as it comes (``stock``), and in a process that has freed a large block before (``stock-settled``).

One order per line (JSON) on standard input, one line out when the node is waiting, one with what it took.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from benchmarks.echo import Cost, Echo, open_ours, open_stock, sealer_for
from holdfast.host import NodeId

SETTLING_BYTES = 1 << 20  # more than the 256 KiB of a read, less than the 32 MiB up to which glibc learns
KINDS = {"ours": open_ours, "stock": open_stock, "stock-settled": open_stock}
BOOT = 1
ANSWERED_WITHIN = 30.0  # seconds for one round, which takes a fraction of one


async def open_echoes(kind: str, key: str) -> dict[str, Echo]:
    """By key; the one without is plain."""
    return {each: await KINDS[kind](NodeId(kind, BOOT), sealer_for(each)) for each in (key, "")}


async def serve(echo: Echo, order: dict[str, Any]) -> Cost:
    cost: asyncio.Future[Cost] = asyncio.get_running_loop().create_future()
    echo.expect(order["warm"], order["counted"], cost.set_result)
    print("ready", flush=True)
    return await asyncio.wait_for(cost, ANSWERED_WITHIN)


def main(kind: str, key: str) -> None:
    if kind == "stock-settled":
        bytearray(SETTLING_BYTES)
    with asyncio.Runner() as runner:
        echoes = runner.run(open_echoes(kind, key))
        print(json.dumps({each: echo.host.address for each, echo in echoes.items()}), flush=True)
        for line in sys.stdin:
            order = json.loads(line)
            echo = echoes[order["key"]]
            cost = runner.run(serve(echo, order))
            print(json.dumps({**cost._asdict(), "dropped": echo.host.node.drops.total()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
