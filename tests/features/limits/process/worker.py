"""A program that uses one limit and writes down each permit: ``python -m tests.features.limits.process.worker SOCKET RECORD ASKED``.

The load is open: ``want`` requests arrive each second whatever becomes of the earlier ones, and each waits for at most ``patience``
seconds. A line is written as soon as a request may go, so that a kill -9 loses none that went before. SIGTERM closes the limit.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any, Final

import holdfast
from holdfast.errors import HoldfastError
from holdfast.net.clock import now, now_ns

TICK: Final = 0.004  # seconds between two looks at the clock: what arrived meanwhile arrives together
MISSED: Final = 1.0  # seconds: a program that was stopped for longer does not make up for what should have arrived
LOOK: Final = 0.25  # seconds between two lines about the state


class Writer:
    """One record: a head, a line per permit, and the state every now and then. Nothing is buffered in this process."""

    def __init__(self, path: str, head: dict[str, Any]) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(self._file, json.dumps({**head, "pid": os.getpid(), "at": now_ns()}).encode() + b"\n")

    def permit(self) -> None:
        os.write(self._file, b"%d\n" % now_ns())

    def state(self, state: str, share: float, late: int) -> None:
        os.write(self._file, f"{now_ns()} {state} {share:.6f} {late}\n".encode())


class Load:
    """Requests of one program."""

    def __init__(self, limit: Any, writer: Writer, want: float, patience: float) -> None:
        self._limit, self._writer, self._want, self._patience = limit, writer, want, patience
        self._requests: set[asyncio.Task[None]] = set()
        self.late = 0  # requests that did not go in time

    async def run(self) -> None:
        due_at, look_at = now(), now()
        while True:
            at = now()
            if at - due_at > MISSED:
                due_at = at
            while due_at <= at:
                due_at += 1 / self._want
                request = asyncio.create_task(self._request())
                self._requests.add(request)
                request.add_done_callback(self._requests.discard)
            if at >= look_at:
                look_at = at + LOOK
                self._writer.state(self._limit.state, self._limit.share, self.late)
            await asyncio.sleep(max(TICK, due_at - now()))

    async def _request(self) -> None:
        try:
            await self._limit.acquire(timeout=self._patience)
        except HoldfastError:
            self.late += 1
        else:
            self._writer.permit()


async def work(agent: str, record: str, asked: dict[str, Any]) -> None:
    head, want, patience = asked["head"], asked["want"], asked["patience"]
    async with holdfast.join(agent=agent, reconnect=True, wait=False) as group, group.limit(**asked["limit"]) as limit:
        await limit.ready()
        load = asyncio.create_task(Load(limit, Writer(record, {**head, "want": want}), want, patience).run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, load.cancel)
        await asyncio.wait([load])
        if not load.cancelled():
            load.result()


def main() -> None:
    _, agent, record, asked = sys.argv
    asyncio.run(work(agent, record, json.loads(asked)))


if __name__ == "__main__":
    main()
