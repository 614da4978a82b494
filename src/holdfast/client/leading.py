"""``group.while_leader``: a function that runs while this process leads, and again when it leads again.  docs/client.md (leading)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from holdfast.client import streams, waits
from holdfast.errors import LeadershipLost

R = TypeVar("R")
LOOK_PERIOD = 1.0  # seconds; timers of a loop stand still while the machine is suspended (F10)


async def lead_again(lead: Callable[[], streams.Term], function: Callable[[streams.Term], Awaitable[R]], notice: float) -> R:
    """What the function returns by itself. It is cancelled ``notice`` seconds before the deadline, or when the term is over."""
    ended: asyncio.Future[R] | None = None
    while ended is None:
        with suppress(LeadershipLost):  # Before the block began.
            async with lead() as term:
                ended = await _ended(asyncio.ensure_future(_awaited(function, term)), term, notice)
    return ended.result()


async def _awaited(function: Callable[[streams.Term], Awaitable[R]], term: streams.Term) -> R:
    return await function(term)


async def _ended(work: asyncio.Future[R], term: streams.Term, notice: float) -> asyncio.Future[R] | None:
    """None: it had to be stopped, or stopped because ``term.check()`` said so. In any case it has ended."""
    lost = term.lost
    try:
        while not work.done() and term.left > notice:
            await asyncio.wait((work, lost), timeout=min(LOOK_PERIOD, term.left - notice), return_when=asyncio.FIRST_COMPLETED)
        in_time = work.done()
    finally:
        await _stopped(work)
    checked = not work.cancelled() and isinstance(work.exception(), LeadershipLost) and not term.valid
    return work if in_time and not checked else None


async def _stopped(work: asyncio.Future[R]) -> None:
    """Ends it, however often this is cancelled meanwhile: the agent hears "stopped" after this (F14)."""
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        work.cancel()
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def lead_again_blocking(lead: Callable[[], waits.Term], function: Callable[[waits.Term], R]) -> R:
    """What the function returns by itself, while the term is valid."""
    ended: Future[R] | None = None
    while ended is None:
        with suppress(LeadershipLost), lead() as term:
            ended = _ended_blocking(function, term)
    return ended.result()


def _ended_blocking(function: Callable[[waits.Term], R], term: waits.Term) -> Future[R] | None:
    """None: the term ended before it did."""
    work: Future[R] = Future()
    try:
        work.set_result(function(term))
    except LeadershipLost as error:  # By ``term.check()``; if the term is valid, of another name.
        work.set_exception(error)
    return work if term.valid else None
