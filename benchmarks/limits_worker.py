"""One process that wants so many permits per second, for `limits`: ``python -m benchmarks.limits_worker WAY OPTIONS``.

Requests arrive evenly, whether or not the limit lets them go; ``ASKERS`` of them wait at a time, the others stand before
the door. The instant of each permit, on the machine's clock, goes to a file of its own.

It is told in lines of JSON, ``{"rate": 50, "at": 12.5, "until": 32.5, "file": "..."}``, and answers each when it is done.
"""

from __future__ import annotations

import asyncio
import json
import sys
from array import array
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.limits_ways import WAYS, Way
from benchmarks.ring_fleet import now

ASKERS = 64  # as a pool of connections or of threads has it
TICK = 0.002  # seconds between two looks at what has arrived
PAUSE = 0.05  # seconds after an error, before a caller asks again
GRACE = 0.5  # seconds after the end in which callers end


class Arrivals:
    """Evenly spaced, from ``at`` to ``until``."""

    def __init__(self, rate: float, at: float, until: float) -> None:
        self._rate, self._at, self._until = rate, at, until
        self.waiting = asyncio.Semaphore(0)
        self.count = 0

    async def come(self) -> None:
        while (at := now()) < self._until:
            due = int(max(0.0, at - self._at) * self._rate)
            for _ in range(due - self.count):
                self.waiting.release()
            self.count = max(self.count, due)
            await asyncio.sleep(TICK)


class Record:
    """What one run saw."""

    def __init__(self) -> None:
        self.permits = array("d")
        self.errors = 0
        self.first_error = ""


async def run(way: Way, rate: float, at: float, until: float) -> Record:
    record, arrivals = Record(), Arrivals(rate, at, until)
    askers = [asyncio.create_task(_ask(way, arrivals, record)) for _ in range(ASKERS)]
    await arrivals.come()
    for asker in askers:
        asker.cancel()
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(*askers, return_exceptions=True), GRACE)
    return record


async def _ask(way: Way, arrivals: Arrivals, record: Record) -> None:
    while True:
        await arrivals.waiting.acquire()
        while True:
            try:
                await way.acquire()
                break
            except Exception as error:  # Of any library; what was not let go asks again.
                record.errors += 1
                record.first_error = record.first_error or f"{type(error).__name__}: {error}"
                await asyncio.sleep(PAUSE)
        record.permits.append(now())


async def serve(way: Way) -> None:
    await way.start()
    _say({"ready": True})
    while line := await asyncio.to_thread(sys.stdin.readline):
        order: dict[str, Any] = json.loads(line)
        record = await run(way, order["rate"], order["at"], order["until"])
        Path(order["file"]).write_bytes(record.permits.tobytes())  # noqa: ASYNC240 - nothing else is done now
        _say({"permits": len(record.permits), "errors": record.errors, "first_error": record.first_error})


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(WAYS[sys.argv[1]](**json.loads(sys.argv[2]))))
