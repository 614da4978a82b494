"""A client process for `agent`: asks an agent and a bare echo, in whatever turns it is told to.

    python -m benchmarks.agent_calls AGENT_SOCKET AGENT_PID ECHO_SOCKET ECHO_PID SETTLED_SOCKET SETTLED_PID

An order per line on standard input: ``{"kind": "owns", "calls": 500}``. ``owns`` is ``group.owns(key)`` of the blocking client for a key
that another member owns, so that every one of them is a question to the agent; ``granted`` the same for a new key of its own; ``look`` the
member list on a blocking line; ``owns_piped`` as many questions on one connection of the event loop, by many tasks at once. Each has its
echo, which carries the same bytes or more.

Who asks one by one shares a core with who answers: they take turns, so that neither waits for the other's core, and no core has to be woken
up. Left to the scheduler, best and median of the same code are 52 or 115 us, as chance has it. ``owns_apart`` and its kin are on two cores.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count, islice
from statistics import median
from typing import Any

import msgspec

from benchmarks.agent_echo import EchoConnection, EchoLine
from benchmarks.agent_fleet import cpu_seconds
from holdfast import sync
from holdfast.client.line import Line
from holdfast.client.loop.connection import Connection
from holdfast.local import calls

TASKS = 50
APART = "_apart"  # how a kind ends that is asked on another core than the one that answers


class Asker:
    """All contestants, connected."""

    def __init__(self, agent: str, echo: str, settled: str) -> None:
        self._group = sync.join(agent=agent)
        self._line = Line(agent)
        self._echo_line, self._settled_line = EchoLine(echo), EchoLine(settled)
        self._runner = asyncio.Runner()
        self._connection = self._runner.run(Connection.open(agent))
        self._batched = self._runner.run(EchoConnection.open(echo, batched=True))
        self._unbatched = self._runner.run(EchoConnection.open(echo, batched=False))
        self._view = msgspec.msgpack.decode(msgspec.msgpack.encode(self._line.call(calls.Look)))
        self._own, self._foreign = self._keys(own=True), self._keys(own=False)
        self._key = next(self._foreign)

    def prepared(self, kind: str, number: int) -> Callable[[], float]:
        """What takes the time of so many calls, per call; what it needs is there before the clocks start."""
        if "piped" in kind:
            return partial(self._run, self._pipelined(kind), number // TASKS)
        return partial(_one_by_one, self._blocking(kind.removesuffix(APART), number), number)

    def _run(self, ask: Callable[[], Awaitable[Any]], each: int) -> float:
        return self._runner.run(_piped(ask, each))

    def _blocking(self, kind: str, number: int) -> Callable[[], Any]:
        owns, echo, settled = self._group.owns, self._echo_line.ask, self._settled_line.ask
        own = iter(list(islice(self._own, number if kind == "granted" else 0)))  # Drawn before the clock starts.
        asking: dict[str, Callable[[], Any]] = {
            "owns": lambda: owns(self._key),
            "granted": lambda: owns(next(own)),
            "look": lambda: self._line.call(calls.Look),
            "echo": lambda: echo((4, 1, self._key)),
            "echo_settled": lambda: settled((4, 1, self._key)),
            "echo_view": lambda: echo((2, 1, self._view)),
        }
        return asking[kind]

    def _pipelined(self, kind: str) -> Callable[[], Awaitable[Any]]:
        asking: dict[str, Callable[[], Awaitable[Any]]] = {
            "owns_piped": lambda: self._connection.call(calls.Owns, self._key),
            "look_piped": lambda: self._connection.call(calls.Look),
            "echo_view_piped": lambda: self._batched.ask((2, self._view)),
            "echo_piped": lambda: self._batched.ask((4, self._key)),
            "echo_piped_unbatched": lambda: self._unbatched.ask((4, self._key)),
        }
        return asking[kind]

    def _keys(self, *, own: bool) -> Iterator[bytes]:
        """Keys that this member owns, or another one; in a group of one everything is its own."""
        me = self._group.me.id
        for number in count():
            key = f"key-{number:08}".encode()
            owner = self._group.owner(key)
            if owner is not None and ((owner.id == me) is own or len(self._group.members) == 1):
                yield key


@contextmanager
def placed(kind: str, server: int) -> Iterator[None]:
    """The main threads of both sides where this kind is measured; many tasks at once are left to the scheduler."""
    cores = sorted(os.sched_getaffinity(0))
    ours, theirs = {cores[0]}, {cores[-1] if kind.endswith(APART) else cores[0]}
    for pid, core in () if "piped" in kind else ((0, ours), (server, theirs)):
        os.sched_setaffinity(pid, core)
    try:
        yield
    finally:
        for pid in (0, server):
            os.sched_setaffinity(pid, cores)


def _one_by_one(ask: Callable[[], Any], number: int) -> float:
    """Seconds of the one in the middle."""
    took = []
    for _ in range(number):
        began_at = time.perf_counter()
        ask()
        took.append(time.perf_counter() - began_at)
    return median(took)


async def _piped(ask: Callable[[], Awaitable[Any]], each: int) -> float:
    """Seconds per call: ``TASKS`` tasks, each of which asks again when it has its answer."""

    async def task() -> None:
        for _ in range(each):
            await ask()

    began_at = time.perf_counter()
    await asyncio.gather(*(task() for _ in range(TASKS)))
    return (time.perf_counter() - began_at) / (each * TASKS)


def main(agent: str, agent_pid: str, echo: str, echo_pid: str, settled: str, settled_pid: str) -> None:
    asker = Asker(agent, echo, settled)
    servers = {"echo_settled": int(settled_pid)}
    for line in sys.stdin:
        order = json.loads(line)
        print("ready", flush=True)
        kind, number = order["kind"], order["calls"]
        server = servers.get(kind, int(echo_pid if kind.startswith("echo") else agent_pid))
        ask = asker.prepared(kind, number)
        with placed(kind, server):
            client_cpu, server_cpu = time.process_time(), cpu_seconds(server)
            seconds = ask()
        spent = {"client": time.process_time() - client_cpu, "server": cpu_seconds(server) - server_cpu}
        print(json.dumps({"seconds": seconds, **{side: each / number for side, each in spent.items()}}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
