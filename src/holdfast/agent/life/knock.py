"""Does a port take connections?  It tells an agent that is down from one that does not understand us: another key, group or version.

An agent drops what it cannot open and answers nothing, so to a newcomer with a wrong key its seeds look dead. A TCP connection
needs no key: the kernel of the other machine accepts it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from holdfast.agent.observe.logs import Log
from holdfast.events import Event, Joined
from holdfast.host import Address
from holdfast.net.host import NetHost

STRANGE = "the port is open and answers nothing that this agent understands: another key, group or version, or UDP is closed"
CLOSED = "no agent answers there, and the port takes no connection"
TRIES = 3  # attempts to join before the log says why nothing comes back
KNOCK_TIMEOUT = 3.0  # seconds for a connection
KNOCKS_MAX = 64  # at a time; seeds and seats are fewer

_tasks: set[asyncio.Task[None]] = set()  # asyncio keeps only weak references to tasks


def knock(host: NetHost, to: Address, timeout: float, done: Callable[[bool], None]) -> None:
    """Try a TCP connection and close it; ``done(open)`` runs in a turn of the host."""
    address = host.node.leads_to(to)
    if address is None or len(_tasks) >= KNOCKS_MAX:
        host.after(0.0, lambda: done(False))
        return
    task = asyncio.get_running_loop().create_task(_knock(host, address, timeout, done))
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def _knock(host: NetHost, address: Address, seconds: float, done: Callable[[bool], None]) -> None:
    is_open = False
    with suppress(OSError, ValueError):  # TimeoutError is an OSError.
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(address.host, address.port)
        is_open = True
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    host.post(lambda: done(is_open))


class JoinWatch:
    """Writes one warning into the log when joining has failed three times and a seed never answered."""

    def __init__(
        self,
        host: NetHost,
        log: Log,
        seeds: Callable[[], tuple[Address, ...]],
        retried: tuple[type[Event], ...],
        joined: Callable[[], bool],
    ) -> None:
        """``retried``: facts that say that an attempt failed. ``joined``: is this agent a member?"""
        self._host, self._log, self._seeds = host, log, seeds
        self._retried, self._joined = retried, joined
        self.hears: tuple[type[Event], ...] = (*retried, Joined)
        self._tries = 0

    def on_event(self, event: Event) -> None:
        """One of ``hears``. An agent that becomes a member joins first of all itself."""
        if self._tries and self._joined():
            self._tries = 0
        if isinstance(event, self._retried):
            self._tries += 1
            if self._tries == TRIES:
                self._look()

    def _look(self) -> None:
        for seed in self._seeds():
            if seed != self._host.address and self._host.node.life_at(seed) is None:
                knock(self._host, seed, KNOCK_TIMEOUT, partial(self._say, seed))

    def _say(self, seed: Address, is_open: bool) -> None:
        self._log.warning("seed does not answer", seed=str(seed), text=STRANGE if is_open else CLOSED)
