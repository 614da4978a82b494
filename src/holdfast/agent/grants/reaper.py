"""Ends the command of a grant when ``holdfast run`` and its guardian cannot: they are dead, or stopped.  Spec: foundation F14.

The client asks for it when it registers a body (``Body.before``), and only what was registered so, what descends from it and what
bears its mark is ended (``local.family``), in the name of the client's user. A client that merely holds something is never touched.

A look through /proc takes milliseconds that protocols do not have: each round runs in a thread, one after the other for all grants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.agent.grants.bodies import Asked, Body
from holdfast.disk.worker import Worker
from holdfast.local.family import Family, may_end
from holdfast.local.process import EVER, Process

INTERVAL = 0.005  # seconds between the first two rounds: a process that was killed is gone after less
INTERVAL_MAX = 0.5  # seconds: what is not gone by then waits for a disk, or is another user's
LATE_TIMEOUT = 60.0  # seconds that the agent goes on for a grant that is over; a process that is left then cannot be ended

_worker = Worker("reaper")

Notice = Callable[..., None]


class Reaper:
    """One command of one grant."""

    def __init__(self, client: Body | None, asked: Asked, *, since: float, notice: Notice) -> None:
        self.before = 0.0  # seconds before the deadline at which it begins
        self.begun = False
        self.over = False  # nothing of the command is left
        self._notice = notice
        above = [] if client is None else _kept(client)
        self._family = Family(above, mark=asked.mark, since=since, user=asked.user)
        self._above = above
        self._looked: Callable[[], None] = _nothing
        self._timer: asyncio.TimerHandle | None = None
        self._interval = INTERVAL
        self._under_way = self._left = False
        self._closing_at = EVER  # on the loop's clock
        self._told_beyond = False

    def add(self, body: Body | None, asked: Asked) -> None:
        """One more process to end; the first one is the guardian, the parent of the others. None: only what bears the mark."""
        self.before = max(self.before, asked.before)
        if body is None:
            return
        if may_end(asked.user, body.pid):
            if self._family.guardian is None:
                self._family.guardian = body.process()
            else:
                self._family.roots.extend(_kept(body))
        else:
            self._notice("not ended", why="another user's", pids=[body.pid])

    def note(self, now: float) -> None:
        """Orphans of a dead guardian go to the client; what the client starts later is not theirs."""
        guardian = self._family.guardian
        if self._family.until == EVER and guardian is not None and guardian.dead:
            self._family.until = now

    def begin(self, looked: Callable[[], None]) -> None:
        """``looked`` is called, on the loop, when nothing is left."""
        if not self.begun:
            self.begun, self._looked = True, looked
            self._round()

    def leave(self) -> None:
        """The grant is over. What has begun goes on until it is done, or cannot be."""
        if not self.begun or self.over:
            self._close()
        else:
            self._closing_at = min(self._closing_at, asyncio.get_running_loop().time() + LATE_TIMEOUT)

    def abandon(self, after: float) -> None:
        """This life of the agent ends. Its process may go on, and so does this: it begins after so many seconds, and tells no client."""
        if self.over:
            self._close()
            return
        loop = asyncio.get_running_loop()
        self._looked = _nothing
        self._closing_at = min(self._closing_at, loop.time() + max(0.0, after) + LATE_TIMEOUT)
        if not self.begun:
            self.begun = True
            self._timer = loop.call_later(max(0.0, after), self._round)

    def _round(self) -> None:
        self._timer = None
        self._under_way = True
        guardian = self._family.guardian
        if self._family.until == EVER and (guardian is None or guardian.dead):
            self._family.above = [each for each in self._above if each.dead]  # Which children of the client are the command's is not known.
        _worker.ask(self._look, self._on_looked)

    def _look(self) -> None:
        """In the thread."""
        self._left = self._family.round()

    def _on_looked(self, error: BaseException | None) -> None:
        self._under_way = False
        loop = asyncio.get_running_loop()
        family = self._family
        if family.beyond and not self._told_beyond:
            self._told_beyond = True
            self._notice("not ended", why="another user's, or refused by the kernel", pids=[each.pid for each in family.beyond])
        if error is not None:
            self._notice("not ended", why=repr(error))
            self._close()
        elif not self._left:
            self.over = True
            if family.ended:
                self._notice("ended a command", processes=len(family.ended))
            self._looked()
            self._close()
        elif loop.time() >= self._closing_at:
            self._close()
        else:
            self._timer = loop.call_later(self._interval, self._round)
            self._interval = min(INTERVAL_MAX, 2 * self._interval)

    def _close(self) -> None:
        if self._under_way:
            self._closing_at = 0.0
            return
        if self._timer is not None:
            self._timer.cancel()
        self._family.close()
        for each in self._above:
            each.close()


def _kept(body: Body) -> list[Process]:
    process = body.process()
    return [] if process is None else [process]


def _nothing() -> None:
    pass
