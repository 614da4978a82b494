"""This process's part in a group: the connection to its agent, what it reads and what it holds. A feature's client stands on it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from signal import SIGTERM
from typing import Any, TypeVar
from weakref import WeakSet

from holdfast.client import checks
from holdfast.client.aio.holds import Holding
from holdfast.client.aio.streams import Opened, Watch
from holdfast.client.attached import END_TIMEOUT, FINAL, KNOCK_TIMEOUT, LEAVE_TIMEOUT, check_welcome, left, not_joined, pauses, retries
from holdfast.client.attempts import check_stays
from holdfast.client.checks import CALL_SECONDS_MAX, Seconds
from holdfast.client.loop.connection import Connection
from holdfast.client.loop.reaching import reach
from holdfast.client.loop.tasks import Beside, Flag, Guard, all_done, in_thread
from holdfast.client.mirror import Looking, Mirror, Opening
from holdfast.client.options import Options, Plan
from holdfast.client.ownership import Ownership
from holdfast.client.start import Child, NotWanted
from holdfast.client.wire import CALL_TIMEOUT, forked
from holdfast.errors import AgentLost, HoldfastError, JoinTimeout, NotAMember
from holdfast.local import calls
from holdfast.net.clock import now

H = TypeVar("H", bound=Holding)
S = TypeVar("S", bound=Opened[Any])


class Link:
    """What a group object and the clients of features share."""

    def __init__(self, plan: Plan, child: Child | None, *, reconnect: bool) -> None:
        self.plan, self.child = plan, child
        self.name = plan.group
        self.pid = os.getpid()
        self.mirror = Mirror(self._look)
        self.ownership = Ownership()
        self._reconnect = reconnect
        self._connection: Connection | None = None
        self._returning = Beside()  # the search for another agent
        self._leaving = Flag()
        self._leave_once = Guard()
        self._sets = Guard()  # of the two
        self._streams: WeakSet[Opened[Any]] = WeakSet()
        self._holdings: WeakSet[Holding] = WeakSet()

    # For the clients of features.

    async def call(self, kind: type[calls.Call], *fields: Any, timeout: float = CALL_TIMEOUT) -> Any:  # noqa: ASYNC109 - the agent's
        """Ask the agent, and wait: for what may take other members' time. Raises what it answers, ``Timeout`` when it is silent,
        ``AgentLost`` when it is gone."""
        return await self.check().call(kind, *fields, timeout=timeout)

    async def ask(self, kind: type[calls.Call], *fields: Any, timeout: float = CALL_TIMEOUT) -> Any:  # noqa: ASYNC109 - the agent's
        """The same for what the agent answers by itself, at once."""
        return await self.check().ask(kind, *fields, timeout=timeout)

    def hold(self, made: type[H], kind: str, name: str, options: Mapping[str, Any], timeout: Seconds | None) -> H:
        """Something that excludes others, to be entered as a block. ``kind`` is what the agent calls it."""
        limit = checks.limit(timeout)
        holding = made(self.check(), kind, name, options, limit)
        with self._sets:
            self._holdings.add(holding)
        return holding

    def open(self, stream: S) -> S:
        """A stream of its own on the connection, to be ended with the group."""
        connection = self.check()
        stream.keep = self._reconnect
        stream.open(connection)
        with self._sets:
            self._streams.add(stream)
        return stream

    def held(self) -> list[Holding]:
        """What this group object holds or asks for."""
        with self._sets:
            return list(self._holdings)

    def read(self) -> Mirror:
        """The group as it is known. Never waits."""
        self.check_pid()
        return self.mirror

    # For the group object.

    def check(self) -> Connection:
        """The connection, if there is one to ask on."""
        if os.getpid() != self.pid:
            raise forked()
        if self._leaving.is_set():
            raise left(self.name)
        assert self._connection is not None
        self._connection.check()
        return self._connection

    def check_pid(self) -> None:
        if os.getpid() != self.pid:
            raise forked()

    def watch(self) -> Watch:
        self.check()
        watch = Watch()
        self.mirror.add(watch)
        return watch

    async def look(self) -> None:
        """The view is as new as this call on return."""
        connection = self.check()
        looked = connection.answer()
        connection.begin(calls.Look, (self.mirror.since,), Looking(self.mirror, looked))
        await connection.answered(looked)

    # Coming and going.

    async def attach(self) -> None:
        """Connect, and know the group."""
        connection = await Connection.open(self.plan.path)
        try:
            check_welcome(self.plan, connection.welcome)
            self._connection = connection  # The first event may come with the answer, and ask for a look.
            opened = connection.answer()
            connection.begin(calls.Watch, (), Opening(self.mirror, opened), sink=self.mirror)
            await connection.answered(opened)
            connection.notice(self._on_lost)  # A loss before this is an attempt that failed; one after it is looked after here.
        except BaseException:
            connection.close()
            raise
        self.name = connection.welcome.group

    async def become_member(self, end_at: float, options: Options, *, wait: bool) -> None:
        """Have this agent join, with what was asked for. Without ``wait`` it goes on to join by itself, and may stay outside (H248)."""
        if self.mirror.members.state not in ("joining", "member") and options.seeds:
            await self._knock(options.seeds, end_at, wait=wait)
        if wait:
            await self._wait_for_group(end_at, options)
        else:
            await self.look()
            check_stays(self.plan, self.mirror.members.state)
        if options.tags and self.child is None:
            await self.set_tags(options.tags)

    async def _knock(self, seeds: Sequence[str], end_at: float, *, wait: bool) -> None:
        """Without ``wait`` returns when the agent has begun."""
        limit = min(CALL_SECONDS_MAX, end_at - now()) if wait else KNOCK_TIMEOUT
        try:
            await self.call(calls.Join, tuple(seeds), limit, timeout=end_at - now() + CALL_TIMEOUT)
        except JoinTimeout:
            if wait:
                raise

    async def _wait_for_group(self, end_at: float, options: Options) -> None:
        for pause in pauses(end_at):
            await self.look()
            if self.mirror.members.state == "member":
                return
            check_stays(self.plan, self.mirror.members.state)
            await self._leaving.wait(pause)
        raise not_joined(self.plan, self.mirror.view, options)

    async def set_tags(self, tags: Mapping[str, str | None]) -> None:
        await self.call(calls.SetTags, tags)
        await self.look()

    async def leave(self) -> None:
        """Give back what is held, and leave the group. A second call does nothing."""
        self.check_pid()
        with self._leave_once:
            if self._leaving.is_set():
                return
            self._leaving.set()
        told = False
        try:
            await self._returning.stop()
            await all_done([holding.release for holding in self.held()])
            connection = self._connection
            if self.child is not None and not self.child.shared and connection is not None and not connection.lost:
                with suppress(HoldfastError):  # It may be gone before its answer; what counts is that it ends.
                    await connection.call(calls.Leave, True, timeout=LEAVE_TIMEOUT)
                    told = True
        finally:
            self._finish()
            await self._end_child(told=told)

    async def abandon(self) -> None:
        """It did not work out: nothing stays behind."""
        self._leaving.set()
        self._finish()
        if self.child is not None and self.child.shared:
            await in_thread(self.child.end)
        await self._end_child(told=False)

    def _look(self) -> None:
        if self._connection is not None:
            with suppress(AgentLost):
                self._connection.begin(calls.Look, (self.mirror.since,), self.mirror)

    def _on_lost(self, error: HoldfastError) -> None:
        self.mirror.become("lost")
        self.ownership.close()
        if self._reconnect:
            self._returning.run(self._return)
        else:
            self._close_streams(error)

    async def _return(self) -> None:
        """Find an agent again, however long it takes, unless it says that it cannot be; then go on with the streams."""
        for pause in retries():
            try:
                await self._start_again()
                break
            except NotWanted:
                return
            except FINAL as error:
                self._close_streams(error)
                return
            except (HoldfastError, OSError):  # The latter: no process or descriptor is to be had just now.
                if await self._leaving.wait(pause):
                    return
        with suppress(AgentLost, NotAMember):  # Lost again: another search has begun, and two must not go on. Or the group was left.
            for stream in self._opened():
                self._open_again(stream)

    def _open_again(self, stream: Opened[Any]) -> None:
        """Go on with it on another connection. An agent that refuses it ends it."""
        connection = self.check()
        stream.missed()
        try:
            stream.open(connection)
        except AgentLost:
            raise
        except HoldfastError as error:
            stream.finish(error)

    async def _start_again(self) -> None:
        if self.child is not None:
            await in_thread(self.child.end)
            self.child = None
        self.plan, self.child = await reach(self.plan.again(), now() + CALL_TIMEOUT, self._leaving.is_set)
        await self.attach()

    def _finish(self) -> None:
        self._close_streams(None)
        while (connection := self._connection) is not None:
            connection.close()
            if connection is self._connection:  # Else another agent was found while this was told to stop.
                break
        self.mirror.become("left")
        self.ownership.close()

    def _close_streams(self, error: HoldfastError | None) -> None:
        self.mirror.finish(error)
        for stream in self._opened():
            stream.finish(error)

    def _opened(self) -> list[Opened[Any]]:
        with self._sets:
            return [stream for stream in self._streams if not stream.over]

    async def _end_child(self, *, told: bool) -> None:
        child, self.child = self.child, None
        if child is None:
            return
        if child.shared:
            child.let_go()
            return
        try:
            if not told or not await in_thread(child.wait, END_TIMEOUT):
                await in_thread(child.end)
        except BaseException:
            child.signal(SIGTERM)  # It drains, leaves and ends by itself; a second interruption does not wait for that.
            child.let_go()
            raise
